/* SPDX-License-Identifier: MIT */
/* result: a response, checked, as the payload of a call.
 *
 * Design notes: a response may come from a process that nobody trusts.  Its bytes were copied before;
 * here each length is compared with what was asked for and with what is left, and each value with its
 * type, before it is used.  The same walk is made twice: once to check and measure, once to fill the
 * one block that the payload is. */
#include <string.h>
#include "foreign/foreign.h"

typedef struct reading {
    const errand__call *call;
    errand__wire response, request;
    errand__result_block block;
    bool apart;
} reading;

static void drop_block(void *data, size_t size);

const errand_payload_type errand_ffi_result_type = {"foreign result", drop_block};

/* ---- the block -------------------------------------------------------------------------- */

errand_ffi_value *
errand__result_values(errand__result_block *self, size_t count)
{
    errand_ffi_value *first = NULL;

    if (self->block != NULL)
        first = (errand_ffi_value *)(void *)(self->block + 1) + self->values;
    self->values += count;
    return first;
}

static errand_ffi_output *
outputs_of(const errand__result_block *self)
{
    return (errand_ffi_output *)(void *)((errand_ffi_value *)(void *)(self->block + 1) +
                                         self->values_all);
}

errand_ffi_output *
errand__result_outputs(errand__result_block *self, size_t count)
{
    errand_ffi_output *first = NULL;

    if (self->block != NULL)
        first = outputs_of(self) + self->outputs;
    self->outputs += count;
    return first;
}

unsigned char *
errand__result_bytes(errand__result_block *self, size_t size)
{
    unsigned char *first = NULL;

    if (self->block != NULL)
        first = (unsigned char *)(outputs_of(self) + self->outputs_all) + self->bytes;
    self->bytes += (size + 1 + 15) / 16 * 16;
    return first;
}

bool
errand__result_alloc(errand__result_block *self)
{
    self->values_all = self->values;
    self->outputs_all = self->outputs;
    self->size = sizeof(errand_ffi_result) + self->values * sizeof(errand_ffi_value) +
                 self->outputs * sizeof(errand_ffi_output) + self->bytes;
    self->values = self->outputs = self->bytes = 0;
    self->block = errand__mem_alloc_used(self->size);
    return self->block != NULL;
}

void
errand__result_payload(errand__result_block *self, errand_payload *out_payload)
{
    *out_payload = (errand_payload){&errand_ffi_result_type, self->block, self->size};
}

static void
drop_block(void *data, size_t size)
{
    errand__mem_free(NULL, data, size);
}

/* ---- reading ------------------------------------------------------------------------------ */

static void
set_text(errand_ffi_value *out, const char *text)
{
    out->as.string = text;
    out->size = strlen(text);
}

/* out is NULL while it is measured. */
static void
set_scalar(errand_ffi_value *out, errand_ffi_kind kind, uint64_t word)
{
    if (out == NULL)
        return;
    *out = (errand_ffi_value){.kind = kind};
    if (kind == ERRAND_FFI_F32)
        errand__word_into(kind, &out->as.f32, word);
    else if (kind == ERRAND_FFI_POINTER)
        out->as.pointer = (const void *)(uintptr_t)word;
    else if (kind == ERRAND_FFI_STRING && word != 0)
        set_text(out, (const char *)(uintptr_t)word);
    else
        memcpy(&out->as, &word, sizeof word);
}

void
errand__result_image(errand__result_block *self, const errand_ffi_type *type,
                     const void *at, errand_ffi_value *out_value)
{
    const unsigned char *image = at;
    errand_ffi_value *items;
    errand__layout layout;
    size_t offset = 0;

    if (type->kind != ERRAND_FFI_STRUCT && type->kind != ERRAND_FFI_ARRAY) {
        set_scalar(out_value, type->kind, errand__word_of(type->kind, image));
        return;
    }
    items = errand__result_values(self, type->count);
    if (out_value != NULL) {
        out_value->kind = type->kind;
        out_value->size = type->count;
        out_value->as.items = items;
    }
    for (uint32_t i = 0; i < type->count; i++) {
        const errand_ffi_type *item =
            type->kind == ERRAND_FFI_ARRAY ? type->items : &type->items[i];

        errand__type_layout(item, &layout);
        offset = errand__align_up(offset, layout.align);
        errand__result_image(self, item, image + offset,
                             items == NULL ? NULL : items + i);
        offset += layout.size;
    }
}

static void
read_string(reading *self, errand_ffi_value *out)
{
    errand__record_view text;
    unsigned char *copy;

    if (!errand__wire_text(&self->response, &text) || text.bytes == NULL)
        return;
    copy = errand__result_bytes(&self->block, (size_t)text.size);
    if (out == NULL)
        return;
    memcpy(copy, text.bytes, (size_t)text.size);
    out->as.string = (const char *)copy;
    out->size = (size_t)text.size;
}

static void
read_value(reading *self, errand_ffi_value *out)
{
    const errand_ffi_type *type =
        &errand_ffi_function_signature(self->call->function)->result;
    errand__layout layout;
    const unsigned char *image;
    uint64_t word;

    if (out != NULL)
        out->kind = type->kind;
    if (type->kind == ERRAND_FFI_VOID)
        return;
    if (type->kind == ERRAND_FFI_STRING) {
        read_string(self, out);
    } else if (type->kind == ERRAND_FFI_STRUCT) {
        errand__type_layout(type, &layout);
        image = errand__wire_bytes(&self->response, layout.size);
        if (image != NULL)
            errand__result_image(&self->block, type, image, out);
    } else {
        word = errand__wire_word(&self->response);
        if (errand__word_narrow(type->kind, word) != word)
            self->response.good = false; /* no word that such a result has */
        set_scalar(out, type->kind, word);
    }
}

static void *
buffer_of(const errand__call *call, uint32_t parameter)
{
    for (size_t i = 0; i < call->hold_count; i++)
        if (call->holds[i].parameter == parameter &&
            call->holds[i].kind == ERRAND_FFI_BUFFER)
            return call->holds[i].object;
    return NULL;
}

/* One out or inout parameter: exactly what was asked for. */
static void
read_output(reading *self, uint32_t i, const errand__record_view *asked,
            errand_ffi_output *out)
{
    uint64_t tag = errand__wire_word(&self->response);
    uint64_t size = errand__wire_word(&self->response);
    uint64_t expected = asked->tag == FFI_TAG_NULL                     ? FFI_TAG_NULL
                        : asked->tag == FFI_TAG_DIRECT && !self->apart ? FFI_TAG_IN_PLACE
                                                                       : FFI_TAG_INLINE;
    const unsigned char *bytes;
    unsigned char *copy;

    if (out != NULL)
        out->argument = i + 1;
    if (tag != expected || size != asked->size)
        self->response.good = false;
    if (!self->response.good || tag != FFI_TAG_INLINE)
        return;
    bytes = errand__wire_bytes(&self->response, (size_t)size);
    if (bytes == NULL)
        return;
    if (asked->tag == FFI_TAG_DIRECT) {
        if (out != NULL) /* all of it was checked by now */
            memcpy(errand_ffi_buffer_data(buffer_of(self->call, i)), bytes, (size_t)size);
        return;
    }
    copy = errand__result_bytes(&self->block, (size_t)size);
    if (out == NULL)
        return;
    memcpy(copy, bytes, (size_t)size);
    out->bytes = copy;
    out->size = (size_t)size;
}

static bool
walk(reading *self)
{
    const errand_ffi_signature *view =
        errand_ffi_function_signature(self->call->function);
    errand_ffi_result *result = self->block.block;
    errand__record_view asked;
    uint32_t version, sys_errno;

    self->response.at = 0;
    self->request.at = 16;
    errand__wire_head(&self->response, &version, &sys_errno);
    if (version != FFI_WIRE_VERSION)
        self->response.good = false;
    read_value(self, result == NULL ? NULL : &result->value);
    for (uint32_t i = 0; i < view->count; i++) {
        errand_ffi_kind kind = view->parameters[i].kind;

        errand__wire_record(&self->request, &view->parameters[i], &asked);
        if (kind != ERRAND_FFI_OUT && kind != ERRAND_FFI_INOUT)
            continue;
        read_output(self, i, &asked, errand__result_outputs(&self->block, 1));
    }
    if (result != NULL) {
        result->sys_errno = (int32_t)sys_errno;
        result->output_count = (uint32_t)self->block.outputs;
        result->outputs = outputs_of(&self->block);
    }
    return errand__wire_end(&self->response);
}

int32_t
errand__result_read(const errand__call *call, const unsigned char *bytes, size_t size,
                    bool apart, errand_payload *out_payload, errand_ffi_error *out_error)
{
    reading self = {.call = call,
                    .response = {.base = bytes, .size = size, .good = true},
                    .request = {.base = call->request.bytes,
                                .size = call->request.size,
                                .good = true},
                    .apart = apart};

    if (!walk(&self)) {
        errand__ffi_refuse(out_error, 0,
                           "the answer of '%.100s' does not fit its description",
                           errand_ffi_function_signature(call->function)->symbol);
        return ERRAND_FFI_CODE_RESPONSE;
    }
    if (!errand__result_alloc(&self.block)) {
        errand__ffi_refuse(out_error, 0, "no memory for the result of %zu bytes",
                           self.block.size);
        return ERRAND_FFI_CODE_MEMORY;
    }
    ERRAND_ASSERT(walk(&self));
    errand__result_payload(&self.block, out_payload);
    return 0;
}
