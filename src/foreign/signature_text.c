/* SPDX-License-Identifier: MIT */
/* signature_text: the canonical text of a signature.
 *
 * Design notes: two equal descriptions have one text, so texts can be compared and a sandbox knows a
 * function by it.  What was described by structures is written first and read back, so that all rules
 * stand in one place; so the writer must bear anything: types that contain themselves, unknown
 * kinds, NULLs. */
#include <stdio.h>
#include <string.h>
#include "foreign/foreign.h"

typedef struct writer {
    char *out;
    size_t size, length;
    unsigned depth;
    bool good;
} writer;

static void put_type(writer *to, const errand_ffi_type *type);

static void
put(writer *to, const char *text)
{
    size_t length = strlen(text);

    if (to->length + length > FFI_TEXT_MAX)
        to->good = false;
    if (!to->good)
        return;
    for (size_t i = 0; i < length; i++)
        if (to->length + i + 1 < to->size)
            to->out[to->length + i] = text[i];
    to->length += length;
}

static void
put_list(writer *to, const errand_ffi_type *types, size_t count)
{
    for (size_t i = 0; i < count && to->good; i++) {
        if (i > 0)
            put(to, ", ");
        put_type(to, &types[i]);
    }
}

static void
put_compound(writer *to, const errand_ffi_type *type)
{
    char number[24];

    if (type->kind == ERRAND_FFI_STRUCT) {
        put(to, "{");
        put_list(to, type->items, type->count);
        put(to, "}");
    } else if (type->kind == ERRAND_FFI_ARRAY) {
        snprintf(number, sizeof number, "[%u]", (unsigned)type->count);
        put(to, number);
        put_type(to, type->items);
    } else {
        put(to, "fn(");
        put_type(to, &type->items[0]);
        put(to, "(");
        put_list(to, type->items + 1, type->count);
        put(to, "))");
    }
}

static void
put_type(writer *to, const errand_ffi_type *type)
{
    bool compound = type->kind == ERRAND_FFI_STRUCT || type->kind == ERRAND_FFI_ARRAY ||
                    type->kind == ERRAND_FFI_CALLBACK;

    if (++to->depth > FFI_DEPTH_MAX || (compound && type->items == NULL) ||
        type->kind < ERRAND_FFI_VOID || type->kind > ERRAND_FFI_CALLBACK)
        to->good = false;
    if (to->good && compound)
        put_compound(to, type);
    else if (to->good)
        put(to, errand__kind_name(type->kind));
    to->depth--;
}

size_t
errand__signature_text(const errand_ffi_signature *signature, char *out, size_t size)
{
    writer to = {.out = out, .size = size, .good = true};

    if (signature->convention != ERRAND_FFI_DEFAULT)
        put(&to, signature->convention == ERRAND_FFI_UNIX64 ? "unix64 " : "win64 ");
    put_type(&to, &signature->result);
    if (signature->symbol != NULL) {
        put(&to, " ");
        put(&to, signature->symbol);
    }
    put(&to, "(");
    for (uint32_t i = 0; i < signature->count && to.good; i++) {
        if (i > 0)
            put(&to, ", ");
        if (signature->variadic && i == signature->fixed)
            put(&to, "..., ");
        put_type(&to, &signature->parameters[i]);
    }
    if (signature->variadic && signature->fixed == signature->count)
        put(&to, ", ...");
    put(&to, ")");
    if (size > 0)
        out[to.good && to.length < size ? to.length : 0] = 0;
    return to.good ? to.length : 0;
}
