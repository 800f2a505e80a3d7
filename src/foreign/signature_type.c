/* SPDX-License-Identifier: MIT */
/* signature_type: one type of a signature's text, read.
 *
 * Design notes: a result, parameter, field, element, and a callback's result and parameter take
 * different kinds: what stands where it may not is refused here, at its column. */
#include "foreign/parser.h"

/* What people write who know C, and what to write instead. */
static bool
refuse_word(errand__parser *in, const char *at, size_t length)
{
    static const char *const known[][2] = {
        {"union",
         "a union cannot be passed by value reliably; pass its address as pointer"},
        {"struct", "a structure is written as {TYPE, TYPE}"},
        {"const", "const is left out; write string, bytes or pointer"},
        {"unsigned", "write uchar, ushort, uint, ulong or u8, u16, u32, u64"},
        {"signed", "write char, short, int, long or i8, i16, i32, i64"},
        {"complex", "complex numbers cannot be passed; pass an address as pointer"},
        {"_Complex", "complex numbers cannot be passed; pass an address as pointer"},
        {"long", "long double cannot be passed; pass an address as pointer"},
        {"f80", "long double cannot be passed; pass an address as pointer"},
        {"f128", "long double cannot be passed; pass an address as pointer"},
        {"packed", "packed structures cannot be passed; pass an address as pointer"},
        {"va_list", "a va_list cannot be passed; call the variadic function itself"},
        {"enum", "write the enum's integer, most often int or uint"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (errand__parser_word_is(at, length, known[i][0]))
            return ERRAND__PARSER_REFUSE(in, at, "%s", known[i][1]);
    return ERRAND__PARSER_REFUSE(
        in, at,
        "'%.*s' is no type; use i32, u64, f64, bool, string, "
        "bytes, pointer, a name of C as size_t (errand help call, "
        "docs/ffi.md)",
        (int)(length < 40 ? length : 40), at);
}

/* The types from the stack's `from` on become a type's items. */
static void
keep_stack(errand__parser *in, size_t from, errand_ffi_type *out_type)
{
    size_t count = in->stack_count - from;

    out_type->items = errand__parser_keep(in, in->stack + from, count);
    out_type->count = (uint32_t)count;
    in->stack_count = from;
}

static bool
read_struct(errand__parser *in, errand_ffi_type *out_type)
{
    size_t from = in->stack_count;
    const char *start = in->at - 1;
    errand__layout layout;

    out_type->kind = ERRAND_FFI_STRUCT;
    if (errand__parser_take(in, '}'))
        return ERRAND__PARSER_REFUSE(in, start, "a structure needs a field");
    do {
        errand_ffi_type field;
        if (!errand__parser_type(in, FFI_PLACE_FIELD, &field))
            return false;
        in->stack[in->stack_count++] = field;
        errand__parser_skip(in);
        if (*in->at == ':')
            return ERRAND__PARSER_REFUSE(
                in, in->at,
                "bit-fields cannot be passed by value reliably; pass the "
                "structure's address as pointer");
    } while (errand__parser_take(in, ','));
    if (!errand__parser_take(in, '}'))
        return ERRAND__PARSER_REFUSE(in, in->at, "',' or '}' belongs here");
    keep_stack(in, from, out_type);
    return errand__type_layout(out_type, &layout) ||
           ERRAND__PARSER_REFUSE(
               in, start,
               "the structure is larger than 64 KiB or 4096 scalars; pass "
               "its address as pointer");
}

static bool
read_array(errand__parser *in, errand__parser_place where, errand_ffi_type *out_type)
{
    const char *start = in->at - 1;
    uint32_t count = 0;
    errand_ffi_type element;

    if (where != FFI_PLACE_FIELD)
        return ERRAND__PARSER_REFUSE(in, start,
                                     "an array cannot be passed by value; put it into a "
                                     "structure, or pass bytes");
    errand__parser_skip(in);
    if (!errand__parser_digit(*in->at))
        return ERRAND__PARSER_REFUSE(in, in->at, "the number of elements belongs here");
    for (; errand__parser_digit(*in->at); in->at++) {
        count = count * 10 + (uint32_t)(*in->at - '0');
        if (count > FFI_STRUCT_MAX)
            return ERRAND__PARSER_REFUSE(in, start,
                                         "an array has at most 65536 elements");
    }
    if (count == 0)
        return ERRAND__PARSER_REFUSE(in, start, "an array needs an element");
    if (!errand__parser_take(in, ']'))
        return ERRAND__PARSER_REFUSE(in, in->at, "']' belongs here");
    if (!errand__parser_type(in, FFI_PLACE_FIELD, &element))
        return false;
    out_type->kind = ERRAND_FFI_ARRAY;
    out_type->count = count;
    out_type->items = errand__parser_keep(in, &element, 1);
    return true;
}

/* RESULT(TYPE, ...) behind its "fn(", or alone. */
static bool
read_callback(errand__parser *in, errand_ffi_type *out_type)
{
    size_t from = in->stack_count;
    errand_ffi_type item;

    out_type->kind = ERRAND_FFI_CALLBACK;
    if (!errand__parser_type(in, FFI_PLACE_CALLBACK_RESULT, &item))
        return false;
    in->stack[in->stack_count++] = item;
    if (!errand__parser_take(in, '('))
        return ERRAND__PARSER_REFUSE(in, in->at,
                                     "'(' and the callback's parameters belong here");
    if (!errand__parser_take(in, ')')) {
        do {
            const char *start = in->at;
            if (!errand__parser_type(in, FFI_PLACE_CALLBACK_PARAMETER, &item))
                return false;
            if (in->stack_count - from > FFI_PARAMETERS_MAX)
                return ERRAND__PARSER_REFUSE(in, start,
                                             "a callback has at most %d parameters",
                                             FFI_PARAMETERS_MAX);
            in->stack[in->stack_count++] = item;
        } while (errand__parser_take(in, ','));
        if (!errand__parser_take(in, ')'))
            return ERRAND__PARSER_REFUSE(in, in->at, "',' or ')' belongs here");
    }
    keep_stack(in, from, out_type);
    out_type->count--;
    return true;
}

static const char *
unfit(errand_ffi_kind kind, errand__parser_place where)
{
    bool result = where == FFI_PLACE_RESULT || where == FFI_PLACE_CALLBACK_RESULT;

    if (kind == ERRAND_FFI_VOID)
        return result ? NULL : "void is a result only; write () for no parameters";
    if (errand__kind_memory(kind) && result)
        return "the size of bytes is not known here; use pointer or string";
    if (errand__kind_memory(kind) && where == FFI_PLACE_FIELD)
        return "bytes do not lie in a structure; use pointer, or an array";
    if (errand__kind_memory(kind) && where == FFI_PLACE_CALLBACK_PARAMETER)
        return "the size of bytes is not known here; use pointer or string";
    if (kind == ERRAND_FFI_STRING &&
        (where == FFI_PLACE_FIELD || where == FFI_PLACE_CALLBACK_RESULT))
        return "nobody could tell how long a string lives here; use pointer";
    if (kind == ERRAND_FFI_CALLBACK && where != FFI_PLACE_PARAMETER &&
        where != FFI_PLACE_VARIADIC)
        return "a callback is a parameter only; use pointer";
    if (kind == ERRAND_FFI_STRUCT && where == FFI_PLACE_CALLBACK_RESULT)
        return "a callback answers void, a scalar or a pointer";
    if (where == FFI_PLACE_VARIADIC && kind == ERRAND_FFI_F32)
        return "C passes a variadic f32 as f64; write f64";
    if (where == FFI_PLACE_VARIADIC && kind < ERRAND_FFI_I32)
        return "C passes a variadic integer this small as i32; write i32";
    return NULL;
}

static bool
read_words(errand__parser *in, errand_ffi_type *out_type)
{
    const char *start = in->at;
    size_t length = errand__parser_word_length(in->at);

    if (length == 0)
        return *in->at == 0 ? ERRAND__PARSER_REFUSE(in, in->at,
                                                    "a type belongs here; the text ends")
               : *in->at == '*'
                   ? ERRAND__PARSER_REFUSE(
                         in, in->at, "'*' is no type; write pointer, string or bytes")
                   : ERRAND__PARSER_REFUSE(in, in->at, "a type belongs here");
    in->at += length;
    if (errand__parser_word_is(start, length, "out") ||
        errand__parser_word_is(start, length, "inout")) {
        out_type->kind = length == 3 ? ERRAND_FFI_OUT : ERRAND_FFI_INOUT;
        errand__parser_skip(in);
        length = errand__parser_word_length(in->at);
        if (!errand__parser_word_is(in->at, length, "bytes"))
            return ERRAND__PARSER_REFUSE(in, in->at,
                                         "'bytes' belongs behind out and inout");
        in->at += length;
        return true;
    }
    if (errand__parser_word_is(start, length, "fn")) {
        if (!errand__parser_take(in, '('))
            return ERRAND__PARSER_REFUSE(in, in->at,
                                         "'(' belongs behind fn: fn(RESULT(TYPE, ...))");
        if (!read_callback(in, out_type))
            return false;
        return errand__parser_take(in, ')') ||
               ERRAND__PARSER_REFUSE(in, in->at, "')' belongs here");
    }
    out_type->kind = errand__kind_of_word(start, length);
    if (out_type->kind == 0)
        return refuse_word(in, start, length);
    if (errand__parser_word_is(start, length, "long")) {
        const char *after = in->at;
        while (*after == ' ')
            after++;
        size_t next = errand__parser_word_length(after);
        if (errand__parser_word_is(after, next, "double"))
            return refuse_word(in, start, length);
    }
    return true;
}

bool
errand__parser_type(errand__parser *in, errand__parser_place where,
                    errand_ffi_type *out_type)
{
    const char *start, *text;
    bool good;

    errand__parser_skip(in);
    start = in->at;
    *out_type = (errand_ffi_type){.count = 0};
    if (++in->depth > FFI_DEPTH_MAX)
        return ERRAND__PARSER_REFUSE(
            in, start, "structures and arrays are nested deeper than %d", FFI_DEPTH_MAX);
    if (*in->at == '{') {
        in->at++;
        good = read_struct(in, out_type);
    } else if (*in->at == '[') {
        in->at++;
        good = read_array(in, where, out_type);
    } else {
        good = read_words(in, out_type);
    }
    in->depth--;
    if (!good)
        return false;
    text = unfit(out_type->kind, where);
    return text == NULL || ERRAND__PARSER_REFUSE(in, start, "%s", text);
}
