/* SPDX-License-Identifier: MIT */
/* result_codec: what a call gave back in audit digests and in logs.
 *
 * Design notes: the bytes describe themselves, so that a log can be read without the function.  They
 * are anybody's when they are read: every count is compared with what is left.  An address means
 * nothing in another run, so digest and log hold only whether it is null. */
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "errand/order.h"
#include "errand/record.h"
#include "foreign/foreign.h"

/* ---- one walk for digest and log ------------------------------------------------------------- */
typedef struct sink {
    XXH3_state_t *mix;  /* or */
    errand_sink *bytes; /* a log's */
} sink;

static void
put_word(sink *to, uint64_t word)
{
    unsigned char bytes[8];

    if (to->bytes != NULL) {
        errand_sink_word(to->bytes, word);
        return;
    }
    errand__word_write(bytes, word);
    XXH3_64bits_update(to->mix, bytes, sizeof bytes);
}

static void
put_bytes(sink *to, const void *bytes, size_t size)
{
    put_word(to, size);
    if (to->bytes != NULL)
        errand_sink_put(to->bytes, bytes, size);
    else if (size > 0)
        XXH3_64bits_update(to->mix, bytes, size);
}

static void
put_value(sink *to, const errand_ffi_value *value)
{
    put_word(to, value->kind);
    switch (value->kind) {
    case ERRAND_FFI_VOID:
        return;
    case ERRAND_FFI_F32:
        put_word(to, errand__word_of(value->kind, &value->as.f32));
        return;
    case ERRAND_FFI_POINTER:
        put_word(to, value->as.pointer != NULL);
        return;
    case ERRAND_FFI_STRING:
        put_word(to, value->as.string != NULL);
        put_bytes(to, value->as.string, value->size);
        return;
    case ERRAND_FFI_STRUCT:
    case ERRAND_FFI_ARRAY:
        put_word(to, value->size);
        for (size_t i = 0; i < value->size; i++)
            put_value(to, &value->as.items[i]);
        return;
    default:
        put_word(to, value->as.u);
    }
}

static void
put_result(sink *to, const errand_ffi_result *result)
{
    put_value(to, &result->value);
    put_word(to, (uint64_t)(int64_t)result->sys_errno);
    put_word(to, result->output_count);
    for (uint32_t i = 0; i < result->output_count; i++) {
        put_word(to, result->outputs[i].argument);
        put_word(to, result->outputs[i].bytes != NULL);
        put_bytes(to, result->outputs[i].bytes, result->outputs[i].size);
    }
}

uint64_t
errand_ffi_result_digest(const void *data, size_t size)
{
    XXH3_state_t mix;
    sink to = {.mix = &mix};

    (void)size;
    XXH3_64bits_reset(&mix);
    put_result(&to, data);
    return XXH3_64bits_digest(&mix);
}

static bool
encode(const void *data, size_t size, errand_sink *bytes)
{
    sink to = {.bytes = bytes};

    (void)size;
    put_result(&to, data);
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------- */
typedef struct decoder {
    const unsigned char *at;
    size_t left;
    unsigned depth;
    bool good;
    errand__result_block block;
} decoder;

static uint64_t
take_word(decoder *in)
{
    uint64_t word = 0;

    if (!in->good || in->left < 8) {
        in->good = false;
        return 0;
    }
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)in->at[i] << (8 * i);
    in->at += 8;
    in->left -= 8;
    return word;
}

/* A word of at most max. */
static uint64_t
take_below(decoder *in, uint64_t max)
{
    uint64_t word = take_word(in);

    in->good = in->good && word <= max;
    return in->good ? word : 0;
}

/* present, then length and bytes; NULL while it is measured, and for what is absent. */
static const unsigned char *
take_bytes(decoder *in, size_t *out_size, bool text)
{
    uint64_t present = take_below(in, 1);
    size_t size = (size_t)take_below(in, in->left);
    unsigned char *copy = NULL;

    *out_size = size;
    if (!in->good || size > in->left || (present == 0 && size != 0) ||
        (text && memchr(in->at, 0, size) != NULL)) {
        in->good = false;
        return NULL;
    }
    if (present != 0)
        copy = errand__result_bytes(&in->block, size);
    if (copy != NULL && size > 0)
        memcpy(copy, in->at, size);
    in->at += size;
    in->left -= size;
    return copy;
}

static void take_value(decoder *in, errand_ffi_value *out);

static void
take_items(decoder *in, errand_ffi_value *out)
{
    size_t count = (size_t)take_below(in, in->left / 8);
    errand_ffi_value *items = errand__result_values(&in->block, count);

    if (out != NULL) {
        out->size = count;
        out->as.items = items;
    }
    if (++in->depth > FFI_DEPTH_MAX)
        in->good = false;
    for (size_t i = 0; i < count && in->good; i++)
        take_value(in, items == NULL ? NULL : items + i);
    in->depth--;
}

static void
take_value(decoder *in, errand_ffi_value *out)
{
    errand_ffi_value value = {.kind = (errand_ffi_kind)take_word(in)};
    uint64_t word;

    if (value.kind == ERRAND_FFI_STRING) {
        value.as.string = (const char *)take_bytes(in, &value.size, true);
    } else if (value.kind == ERRAND_FFI_STRUCT || value.kind == ERRAND_FFI_ARRAY) {
        take_items(in, &value);
    } else if (errand__kind_scalar(value.kind)) {
        word = take_word(in);
        in->good = in->good && errand__word_narrow(value.kind, word) == word;
        if (value.kind == ERRAND_FFI_F32)
            errand__word_into(value.kind, &value.as.f32, word);
        else if (value.kind == ERRAND_FFI_POINTER)
            value.as.pointer = (const void *)(uintptr_t)word;
        else
            value.as.u = word;
    } else if (value.kind != ERRAND_FFI_VOID) {
        in->good = false;
    }
    if (out != NULL)
        *out = value;
}

static bool
take_result(decoder *in)
{
    errand_ffi_result *result = in->block.block;
    errand_ffi_output *outputs;
    uint32_t count;
    int32_t sys_errno;

    take_value(in, result == NULL ? NULL : &result->value);
    sys_errno = (int32_t)(int64_t)take_word(in);
    count = (uint32_t)take_below(in, FFI_PARAMETERS_MAX);
    outputs = errand__result_outputs(&in->block, count);
    if (result != NULL) {
        result->sys_errno = sys_errno;
        result->output_count = count;
        result->outputs = outputs;
    }
    for (uint32_t i = 0; i < count && in->good; i++) {
        errand_ffi_output output = {.argument = (uint32_t)take_below(in, UINT32_MAX)};

        output.bytes = take_bytes(in, &output.size, false);
        if (outputs != NULL)
            outputs[i] = output;
    }
    return in->good && in->left == 0;
}

errand_status
errand__result_decode(const void *bytes, size_t size, errand_payload *out_payload)
{
    decoder in = {.at = bytes, .left = size, .good = true};

    if (!take_result(&in))
        return ERRAND_EDECODE;
    if (!errand__result_alloc(&in.block))
        return ERRAND_ENOMEM;
    in.at = bytes;
    in.left = size;
    ERRAND_ASSERT(take_result(&in));
    errand__result_payload(&in.block, out_payload);
    return ERRAND_OK;
}

errand_status
errand_ffi_codecs(errand_runtime *runtime)
{
    static const errand_payload_codec codec = {sizeof codec, encode,
                                               errand__result_decode};
    errand_status status =
        errand_audit_payload(runtime, &errand_ffi_result_type, errand_ffi_result_digest);

    if (status == ERRAND_OK)
        status = errand_record_codec(runtime, &errand_ffi_result_type,
                                     errand_ffi_result_type.name, &codec);
    return status;
}
