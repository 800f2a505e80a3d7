/* SPDX-License-Identifier: MIT */
/* Goal: find a text or an answer that the foreign part reads wrongly.  Method: the first byte says what
 * the rest is.  0: a signature; one that is read is written canonically and must read back as the same.
 * Else: a response, or a log's bytes, to one of the functions below; one that is accepted must be whole
 * (everything in it is read) and, written as a log, come back with the same digest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "foreign/foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const signatures[] = {
    "bool f()",
    "void f(out bytes, inout bytes, u64)",
    "string f(string, out bytes)",
    "{i8, [3]f64, [2]{u16, u16}} f(inout bytes)",
    "f32 f(bytes, fn(i32(i32, string, {u8, f64})))",
    "pointer f(out bytes, out bytes, out bytes)",
};
enum { SIGNATURES = sizeof signatures / sizeof signatures[0] };

static void
require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void
read_signature(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    errand__signature *signature = NULL, *again = NULL;
    errand_ffi_error error = {.column = 0};
    errand_status status;

    require(text != NULL, "no memory");
    memcpy(text, data, size);
    text[size] = 0;
    status = errand__signature_parse(text, &signature, &error);
    if (status == ERRAND_OK) {
        require(errand__signature_parse(signature->text, &again, &error) == ERRAND_OK,
                "a canonical text is not read");
        require(strcmp(signature->text, again->text) == 0,
                "a canonical text has another one");
        errand__signature_destroy(again);
        errand__signature_destroy(signature);
    } else {
        require(status == ERRAND_EINVAL, "an unknown status");
        require(error.text[0] != 0, "no text of an error");
        require(error.column <= strlen(text) + 1, "a column behind the text");
    }
    free(text);
}

static errand_ffi_value
value_for(const errand_ffi_type *type)
{
    switch (type->kind) {
    case ERRAND_FFI_OUT:
        return errand_ffi_out(5);
    case ERRAND_FFI_INOUT:
        return errand_ffi_inout("abc", 3);
    case ERRAND_FFI_BYTES:
        return errand_ffi_bytes("abcd", 4);
    case ERRAND_FFI_STRING:
        return errand_ffi_string("text");
    case ERRAND_FFI_CALLBACK:
        return errand_ffi_pointer(NULL);
    default:
        return errand_ffi_u(1);
    }
}

static void
read_response(const char *text, const uint8_t *data, size_t size)
{
    errand_ffi_value values[FFI_PARAMETERS_MAX];
    errand_ffi_library *library;
    errand_ffi_function *function;
    const errand_ffi_signature *view;
    errand_payload payload = {.data = NULL}, decoded = {.data = NULL};
    errand_ffi_error error;
    errand__call *call;

    require(errand_ffi_library_create(NULL, &library) == ERRAND_OK &&
                errand_ffi_describe(library, text, &function, &error) == ERRAND_OK,
            "no function");
    view = errand_ffi_function_signature(function);
    for (uint32_t i = 0; i < view->count; i++)
        values[i] = value_for(&view->parameters[i]);
    require(errand__call_create(function, values, view->count, &call, &error) ==
                ERRAND_OK,
            "no call");
    if (errand__result_read(call, data, size, true, &payload, &error) == 0) {
        (void)errand_ffi_result_digest(payload.data, payload.size);
        errand_payload_drop(&payload);
    } else {
        require(payload.data == NULL, "half a payload");
    }
    if (errand__result_decode(data, size, &decoded) == ERRAND_OK) {
        (void)errand_ffi_result_digest(decoded.data, decoded.size);
        errand_payload_drop(&decoded);
    }
    errand__call_destroy(call);
    errand_ffi_function_abandon(&function);
    errand_ffi_library_abandon(&library);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t before = errand__mem_live_bytes();

    if (size == 0)
        return 0;
    if (data[0] == 0)
        read_signature(data + 1, size - 1);
    else
        read_response(signatures[data[0] % SIGNATURES], data + 1, size - 1);
    require(errand__mem_live_bytes() == before, "memory is left");
    return 0;
}
