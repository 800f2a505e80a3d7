/* SPDX-License-Identifier: MIT */
/* serve: a request becomes a frame, a call, and a response.
 *
 * Design notes: the request is read twice: first all of it is checked and what must be copied is
 * measured, then the frame is filled.  Texts and bytes that are only read are not copied: the callee
 * gets their address in the request.  What it may write (out, inout) lies in the frame's own block,
 * and is written to the reply when it returned.
 *
 * A plain function, of a few scalars, is the common case and has nothing to be measured: one look at
 * its request tells that it fits, and its response is one piece.  What does not fit goes the long way,
 * where the error is found.
 */
#include <string.h>
#include "foreign/foreign.h"

enum { FRAME_SMALL = 1024 };

_Thread_local const errand__current *errand__current_call;

typedef struct served {
    errand__callee *callee;
    errand__wire request;
    const unsigned char *input; /* the region */
    size_t input_size;
    bool direct; /* addresses may be named */
    errand_ffi_error *error;
    errand__frame frame;
    size_t copies; /* bytes of out and inout parameters */
    struct {
        uint64_t tag, size;
    } memory[FFI_PARAMETERS_MAX]; /* of out and inout parameters */
} served;

/* ---- reading ------------------------------------------------------------------------------ */

static bool
tag_fits(const served *self, errand_ffi_kind kind, const errand__record_view *view)
{
    switch (view->tag) {
    case FFI_TAG_NULL:
        return true;
    case FFI_TAG_INLINE:
        return kind == ERRAND_FFI_STRING || kind == ERRAND_FFI_BYTES ||
               kind == ERRAND_FFI_INOUT;
    case FFI_TAG_ZEROED:
        return kind == ERRAND_FFI_OUT;
    case FFI_TAG_REGION:
        return kind == ERRAND_FFI_BYTES && view->word <= self->input_size &&
               view->size <= self->input_size - view->word;
    case FFI_TAG_DIRECT:
        return self->direct && kind != ERRAND_FFI_STRING;
    case FFI_TAG_ASK:
        return kind == ERRAND_FFI_CALLBACK;
    default:
        return false;
    }
}

/* Bytes that a record needs in the frame's block. */
static uint64_t
copied(errand_ffi_kind kind, const errand__record_view *view)
{
    bool copy = view->tag == FFI_TAG_ZEROED ||
                (view->tag == FFI_TAG_INLINE && kind == ERRAND_FFI_INOUT);

    return copy && view->size < SIZE_MAX / 4 ? (view->size + 15) / 16 * 16 : 0;
}

static bool
read_head(served *self)
{
    uint32_t version, count;

    self->request.at = 0;
    self->request.good = true;
    errand__wire_head(&self->request, &version, &count);
    return errand__wire_word(&self->request) == self->request.size &&
           version == FFI_WIRE_VERSION && count == self->callee->signature->view.count;
}

static int32_t
check(served *self)
{
    const errand_ffi_signature *view = &self->callee->signature->view;
    errand__record_view record;

    if (!read_head(self)) {
        errand__ffi_refuse(self->error, 0,
                           "the request is not of this function: %u parameters",
                           (unsigned)view->count);
        return ERRAND_FFI_CODE_REQUEST;
    }
    for (uint32_t i = 0; i < view->count; i++) {
        errand_ffi_kind kind = view->parameters[i].kind;

        if (!errand__wire_record(&self->request, &view->parameters[i], &record) ||
            !tag_fits(self, kind, &record) || record.size >= SIZE_MAX / 4 ||
            self->copies >= SIZE_MAX / 4) {
            errand__ffi_refuse(self->error, i + 1, "the request's bytes are no %s",
                               errand__kind_name(kind));
            return ERRAND_FFI_CODE_REQUEST;
        }
        if (record.tag == FFI_TAG_ASK && self->callee->trampolines == NULL) {
            errand__ffi_refuse(self->error, i + 1,
                               "callbacks are not possible here: no memory for code; a "
                               "sandbox gives it with the promise 'callback'");
            return ERRAND_FFI_CODE_NO_EXEC;
        }
        self->copies += (size_t)copied(kind, &record);
    }
    if (errand__wire_end(&self->request))
        return 0;
    errand__ffi_refuse(self->error, 0, "the request goes on behind its arguments");
    return ERRAND_FFI_CODE_REQUEST;
}

/* ---- the frame ---------------------------------------------------------------------------- */

static const void *
address_of(served *self, uint32_t i, const errand__record_view *record, char **copies)
{
    errand_ffi_kind kind = self->callee->signature->view.parameters[i].kind;
    char *copy = *copies;

    switch (record->tag) {
    case FFI_TAG_INLINE:
        if (kind != ERRAND_FFI_INOUT)
            return record->bytes;
        if (record->size > 0)
            memcpy(copy, record->bytes, (size_t)record->size);
        *copies += copied(kind, record);
        return copy;
    case FFI_TAG_ZEROED:
        *copies += copied(kind, record);
        return copy;
    case FFI_TAG_REGION:
        return self->input + record->word;
    case FFI_TAG_DIRECT:
        return (const void *)(uintptr_t)record->word;
    case FFI_TAG_ASK:
        return self->callee->trampolines[i]->code;
    default:
        return NULL;
    }
}

static void
fill(served *self, char *copies)
{
    const errand_ffi_signature *view = &self->callee->signature->view;
    void **addresses = self->frame.addresses;
    errand__record_view record;

    (void)read_head(self);
    for (uint32_t i = 0; i < view->count; i++) {
        const errand_ffi_type *type = &view->parameters[i];
        uint64_t *slot = self->frame.words + self->callee->slots[i];

        *addresses++ = slot;
        if ((self->callee->splits >> i & 1) != 0)
            *addresses++ = slot + 1;
        errand__wire_record(&self->request, type, &record);
        self->memory[i].tag = record.tag;
        self->memory[i].size = record.size;
        if (type->kind == ERRAND_FFI_STRUCT) {
            memcpy(slot, record.bytes, (size_t)record.size);
            continue;
        }
        *slot = errand__kind_scalar(type->kind)
                    ? errand__word_narrow(type->kind, record.word)
                    : (uint64_t)(uintptr_t)address_of(self, i, &record, &copies);
        addresses[-1] = errand__word_place(type->kind, slot);
    }
}

static bool
respond(served *self, errand__reply *reply)
{
    const errand_ffi_signature *view = &self->callee->signature->view;
    errand_ffi_kind kind = view->result.kind;
    const void *at = kind == ERRAND_FFI_STRUCT
                         ? self->frame.result
                         : errand__word_place(kind, self->frame.result);

    if (!errand__wire_put_head(reply, FFI_WIRE_VERSION,
                               (uint32_t)self->frame.sys_errno) ||
        !errand__wire_put_result(reply, &view->result, at))
        return false;
    for (uint32_t i = 0; i < view->count; i++) {
        uint64_t words[2] = {FFI_TAG_INLINE, self->memory[i].size};

        if (view->parameters[i].kind != ERRAND_FFI_OUT &&
            view->parameters[i].kind != ERRAND_FFI_INOUT)
            continue;
        if (self->memory[i].tag == FFI_TAG_NULL)
            words[0] = FFI_TAG_NULL;
        if (self->memory[i].tag == FFI_TAG_DIRECT)
            words[0] = FFI_TAG_IN_PLACE;
        if (!errand__wire_put_words(reply, words, 2))
            return false;
        if (words[0] == FFI_TAG_INLINE &&
            !errand__wire_put_bytes(
                reply, (const void *)(uintptr_t)self->frame.words[self->callee->slots[i]],
                (size_t)words[1]))
            return false;
    }
    return true;
}

/* False: the long way. */
static bool
serve_plain(const errand__callee *callee, const unsigned char *bytes, size_t bytes_size,
            errand__reply *reply, errand_ffi_error *out_error, int32_t *out_code)
{
    const errand_ffi_signature *view = &callee->signature->view;
    uint32_t head[2];
    uint64_t size, words[FFI_PLAIN_MAX], response[2];
    void *addresses[FFI_PLAIN_MAX];
    _Alignas(16) uint64_t result[2] = {0, 0};
    errand__frame frame = {.words = words, .addresses = addresses, .result = result};

    if (!callee->plain || bytes_size != 16 + 8 * (size_t)view->count)
        return false;
    memcpy(head, bytes, sizeof head);
    memcpy(&size, bytes + 8, sizeof size);
    if (head[0] != FFI_WIRE_VERSION || head[1] != view->count || size != bytes_size)
        return false;
    for (uint32_t i = 0; i < view->count; i++) {
        errand_ffi_kind kind = view->parameters[i].kind;

        memcpy(&words[i], bytes + 16 + (size_t)8 * i, sizeof words[i]);
        words[i] = errand__word_narrow(kind, words[i]);
        addresses[i] = errand__word_place(kind, &words[i]);
    }
    errand__callee_call(callee, &frame);
    head[1] = (uint32_t)frame.sys_errno;
    memcpy(response, head, sizeof head);
    response[1] = errand__word_narrow(view->result.kind, result[0]);
    *out_code = 0;
    if (!reply->write(reply, response, view->result.kind == ERRAND_FFI_VOID ? 8 : 16)) {
        errand__ffi_refuse(out_error, 0,
                           "the answer is larger than allowed; raise the limit");
        *out_code = ERRAND_FFI_CODE_OUTPUT;
    }
    return true;
}

static int32_t
serve(served *self, errand__reply *reply, void *running)
{
    _Alignas(16) unsigned char small[FRAME_SMALL];
    unsigned char *block = small;
    size_t words = (self->callee->words * 8 + 15) / 16 * 16, size;
    size_t addresses = (self->callee->cif.nargs * sizeof(void *) + 15) / 16 * 16;
    errand__current current = {self->callee, reply, running};
    const errand__current *outer = errand__current_call;
    int32_t code = check(self);

    if (code != 0)
        return code;
    size = words + addresses + self->callee->result_room + self->copies;
    if (size > sizeof small)
        block = errand__mem_alloc_used(size);
    else
        memset(small, 0, size);
    if (block == NULL) {
        errand__ffi_refuse(self->error, 0, "no memory for the %zu bytes of the call",
                           size);
        return ERRAND_FFI_CODE_MEMORY;
    }
    self->frame.words = (uint64_t *)(void *)block;
    self->frame.addresses = (void **)(void *)(block + words);
    self->frame.result = block + words + addresses;
    fill(self, (char *)block + words + addresses + self->callee->result_room);
    if (running != NULL || self->callee->trampolines != NULL)
        errand__current_call = &current; /* else a panic would leave it behind */
    errand__callee_call(self->callee, &self->frame);
    errand__current_call = outer;
    if (!respond(self, reply)) {
        errand__ffi_refuse(self->error, 0,
                           "the answer is larger than allowed; raise the limit");
        code = ERRAND_FFI_CODE_OUTPUT;
    }
    if (block != small)
        errand__mem_free(NULL, block, size);
    return code;
}

int32_t
errand__callee_serve(errand__callee *callee, const unsigned char *request, size_t size,
                     const unsigned char *input, size_t input_size, errand__reply *reply,
                     errand_ffi_error *out_error)
{
    int32_t code;

    if (serve_plain(callee, request, size, reply, out_error, &code))
        return code;
    served self = {.callee = callee,
                   .request = {.base = request, .size = size},
                   .input = input,
                   .input_size = input == NULL ? 0 : input_size,
                   .error = out_error};
    return serve(&self, reply, NULL);
}

int32_t
errand__callee_serve_direct(errand__callee *callee, const unsigned char *request,
                            size_t size, errand__reply *reply, void *running,
                            errand_ffi_error *out_error)
{
    int32_t code;

    if (serve_plain(callee, request, size, reply, out_error, &code))
        return code;
    served self = {.callee = callee,
                   .request = {.base = request, .size = size},
                   .direct = true,
                   .error = out_error};
    return serve(&self, reply, running);
}
