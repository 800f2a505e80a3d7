/* SPDX-License-Identifier: MIT */
/* signature: the text of a signature, read.
 *
 * Design notes: one descent over the text.  A type takes at least one character and a separator, so a
 * text of n characters has fewer than n + 2 types: all of them lie in one block, measured before.
 * The items of a structure must lie side by side, so they wait on a stack in the block's second half
 * until the last one is read.
 *
 * What may stand where is decided here too, so that the error has a column: a result, parameter,
 * field, element, and a callback's result and parameter take different kinds. */
#include <string.h>
#include "foreign/foreign.h"

typedef enum place {
    RESULT,
    PARAMETER,
    VARIADIC,
    FIELD,
    CALLBACK_RESULT,
    CALLBACK_PARAMETER
} place;

typedef struct parser {
    const char *text, *at;
    errand_ffi_type *nodes, *stack; /* both from the one block */
    size_t node_count, stack_count;
    uint32_t argument; /* of which parameter; 0 = the result, or none */
    unsigned depth;
    errand_ffi_error *error;
} parser;

static bool read_type(parser *in, place where, errand_ffi_type *out_type);

static bool
letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
digit(char c)
{
    return c >= '0' && c <= '9';
}

static void
skip(parser *in)
{
    while (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r')
        in->at++;
}

#define REFUSE(in, where, ...)                                                           \
    errand__ffi_refuse_at((in)->error, (size_t)((where) - (in)->text) + 1,               \
                          (in)->argument, __VA_ARGS__)

/* The length of the word at `at`. */
static size_t
word_length(const char *at)
{
    size_t length = 0;

    if (!letter(at[0]))
        return 0;
    while (letter(at[length]) || digit(at[length]))
        length++;
    return length;
}

static bool
word_is(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(at, word, length) == 0;
}

static bool
take(parser *in, char c)
{
    skip(in);
    if (*in->at != c)
        return false;
    in->at++;
    return true;
}

/* What people write who know C, and what to write instead. */
static bool
refuse_word(parser *in, const char *at, size_t length)
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
        if (word_is(at, length, known[i][0]))
            return REFUSE(in, at, "%s", known[i][1]);
    return REFUSE(in, at, "'%.*s' is no type; see the list in errand/ffi.h",
                  (int)(length < 40 ? length : 40), at);
}

static const errand_ffi_type *
keep(parser *in, const errand_ffi_type *types, size_t count)
{
    errand_ffi_type *kept = in->nodes + in->node_count;

    if (count > 0)
        memcpy(kept, types, count * sizeof *types);
    in->node_count += count;
    return kept;
}

/* The types from the stack's `from` on become a type's items. */
static void
keep_stack(parser *in, size_t from, errand_ffi_type *out_type)
{
    size_t count = in->stack_count - from;

    out_type->items = keep(in, in->stack + from, count);
    out_type->count = (uint32_t)count;
    in->stack_count = from;
}

static bool
read_struct(parser *in, errand_ffi_type *out_type)
{
    size_t from = in->stack_count;
    const char *start = in->at - 1;
    errand__layout layout;

    out_type->kind = ERRAND_FFI_STRUCT;
    if (take(in, '}'))
        return REFUSE(in, start, "a structure needs a field");
    do {
        errand_ffi_type field;
        if (!read_type(in, FIELD, &field))
            return false;
        in->stack[in->stack_count++] = field;
        skip(in);
        if (*in->at == ':')
            return REFUSE(in, in->at,
                          "bit-fields cannot be passed by value reliably; pass the "
                          "structure's address as pointer");
    } while (take(in, ','));
    if (!take(in, '}'))
        return REFUSE(in, in->at, "',' or '}' belongs here");
    keep_stack(in, from, out_type);
    return errand__type_layout(out_type, &layout) ||
           REFUSE(in, start,
                  "the structure is larger than 64 KiB or 4096 scalars; pass "
                  "its address as pointer");
}

static bool
read_array(parser *in, place where, errand_ffi_type *out_type)
{
    const char *start = in->at - 1;
    uint32_t count = 0;
    errand_ffi_type element;

    if (where != FIELD)
        return REFUSE(in, start,
                      "an array cannot be passed by value; put it into a "
                      "structure, or pass bytes");
    skip(in);
    if (!digit(*in->at))
        return REFUSE(in, in->at, "the number of elements belongs here");
    for (; digit(*in->at); in->at++) {
        count = count * 10 + (uint32_t)(*in->at - '0');
        if (count > FFI_STRUCT_MAX)
            return REFUSE(in, start, "an array has at most 65536 elements");
    }
    if (count == 0)
        return REFUSE(in, start, "an array needs an element");
    if (!take(in, ']'))
        return REFUSE(in, in->at, "']' belongs here");
    if (!read_type(in, FIELD, &element))
        return false;
    out_type->kind = ERRAND_FFI_ARRAY;
    out_type->count = count;
    out_type->items = keep(in, &element, 1);
    return true;
}

/* RESULT(TYPE, ...) behind its "fn(", or alone. */
static bool
read_callback(parser *in, errand_ffi_type *out_type)
{
    size_t from = in->stack_count;
    errand_ffi_type item;

    out_type->kind = ERRAND_FFI_CALLBACK;
    if (!read_type(in, CALLBACK_RESULT, &item))
        return false;
    in->stack[in->stack_count++] = item;
    if (!take(in, '('))
        return REFUSE(in, in->at, "'(' and the callback's parameters belong here");
    if (!take(in, ')')) {
        do {
            const char *start = in->at;
            if (!read_type(in, CALLBACK_PARAMETER, &item))
                return false;
            if (in->stack_count - from > FFI_PARAMETERS_MAX)
                return REFUSE(in, start, "a callback has at most %d parameters",
                              FFI_PARAMETERS_MAX);
            in->stack[in->stack_count++] = item;
        } while (take(in, ','));
        if (!take(in, ')'))
            return REFUSE(in, in->at, "',' or ')' belongs here");
    }
    keep_stack(in, from, out_type);
    out_type->count--;
    return true;
}

static const char *
unfit(errand_ffi_kind kind, place where)
{
    bool result = where == RESULT || where == CALLBACK_RESULT;

    if (kind == ERRAND_FFI_VOID)
        return result ? NULL : "void is a result only; write () for no parameters";
    if (errand__kind_memory(kind) && result)
        return "the size of bytes is not known here; use pointer or string";
    if (errand__kind_memory(kind) && where == FIELD)
        return "bytes do not lie in a structure; use pointer, or an array";
    if (errand__kind_memory(kind) && where == CALLBACK_PARAMETER)
        return "the size of bytes is not known here; use pointer or string";
    if (kind == ERRAND_FFI_STRING && (where == FIELD || where == CALLBACK_RESULT))
        return "nobody could tell how long a string lives here; use pointer";
    if (kind == ERRAND_FFI_CALLBACK && where != PARAMETER && where != VARIADIC)
        return "a callback is a parameter only; use pointer";
    if (kind == ERRAND_FFI_STRUCT && where == CALLBACK_RESULT)
        return "a callback answers void, a scalar or a pointer";
    if (where == VARIADIC && kind == ERRAND_FFI_F32)
        return "C passes a variadic f32 as f64; write f64";
    if (where == VARIADIC && kind < ERRAND_FFI_I32)
        return "C passes a variadic integer this small as i32; write i32";
    return NULL;
}

static bool
read_words(parser *in, errand_ffi_type *out_type)
{
    const char *start = in->at;
    size_t length = word_length(in->at);

    if (length == 0)
        return *in->at == 0 ? REFUSE(in, in->at, "a type belongs here; the text ends")
               : *in->at == '*'
                   ? REFUSE(in, in->at, "'*' is no type; write pointer, string or bytes")
                   : REFUSE(in, in->at, "a type belongs here");
    in->at += length;
    if (word_is(start, length, "out") || word_is(start, length, "inout")) {
        out_type->kind = length == 3 ? ERRAND_FFI_OUT : ERRAND_FFI_INOUT;
        skip(in);
        length = word_length(in->at);
        if (!word_is(in->at, length, "bytes"))
            return REFUSE(in, in->at, "'bytes' belongs behind out and inout");
        in->at += length;
        return true;
    }
    if (word_is(start, length, "fn")) {
        if (!take(in, '('))
            return REFUSE(in, in->at, "'(' belongs behind fn: fn(RESULT(TYPE, ...))");
        if (!read_callback(in, out_type))
            return false;
        return take(in, ')') || REFUSE(in, in->at, "')' belongs here");
    }
    out_type->kind = errand__kind_of_word(start, length);
    if (out_type->kind == 0)
        return refuse_word(in, start, length);
    if (word_is(start, length, "long")) {
        const char *after = in->at;
        while (*after == ' ')
            after++;
        size_t next = word_length(after);
        if (word_is(after, next, "double"))
            return refuse_word(in, start, length);
    }
    return true;
}

static bool
read_type(parser *in, place where, errand_ffi_type *out_type)
{
    const char *start, *text;
    bool good;

    skip(in);
    start = in->at;
    *out_type = (errand_ffi_type){.count = 0};
    if (++in->depth > FFI_DEPTH_MAX)
        return REFUSE(in, start, "structures and arrays are nested deeper than %d",
                      FFI_DEPTH_MAX);
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
    return text == NULL || REFUSE(in, start, "%s", text);
}

static bool
read_parameters(parser *in, errand_ffi_signature *out)
{
    size_t from = in->stack_count;
    const char *start;

    out->variadic = false;
    if (take(in, ')'))
        return true;
    do {
        errand_ffi_type item;
        in->argument++;
        skip(in);
        start = in->at;
        if (strncmp(in->at, "...", 3) == 0) {
            if (out->variadic || in->argument == 1)
                return REFUSE(in, start, "'...' stands once, behind the first parameter");
            out->variadic = true;
            out->fixed = --in->argument;
            in->at += 3;
            continue;
        }
        if (in->argument == 1 && strncmp(in->at, "void", 4) == 0 &&
            word_length(in->at) == 4) {
            in->at += 4;
            in->argument = 0;
            break;
        }
        if (in->argument > FFI_PARAMETERS_MAX)
            return REFUSE(in, start, "a function has at most %d parameters",
                          FFI_PARAMETERS_MAX);
        if (!read_type(in, out->variadic ? VARIADIC : PARAMETER, &item))
            return false;
        in->stack[in->stack_count++] = item;
    } while (take(in, ','));
    if (!take(in, ')'))
        return REFUSE(in, in->at, "',' or ')' belongs here");
    out->count = (uint32_t)(in->stack_count - from);
    out->parameters = keep(in, in->stack + from, out->count);
    in->argument = 0;
    return true;
}

static bool
symbol_letter(char c)
{
    return letter(c) || digit(c) || c == '$' || c == '.' || c == '@';
}

/* Reads the whole; the symbol's place is answered apart. */
static bool
read_signature(parser *in, errand_ffi_signature *out, const char **out_symbol,
               size_t *out_length)
{
    size_t length;

    skip(in);
    length = word_length(in->at);
    if (word_is(in->at, length, "unix64") || word_is(in->at, length, "win64")) {
        out->convention = length == 6 ? ERRAND_FFI_UNIX64 : ERRAND_FFI_WIN64;
        in->at += length;
    }
    if (!read_type(in, RESULT, &out->result))
        return false;
    skip(in);
    *out_symbol = in->at;
    if (!digit(*in->at))
        while (symbol_letter(*in->at))
            in->at++;
    *out_length = (size_t)(in->at - *out_symbol);
    skip(in);
    if (*in->at == '*')
        return REFUSE(in, in->at, "'*' is no type; write pointer or string");
    if (!take(in, '('))
        return REFUSE(in, in->at,
                      *out_length == 0 ? "the function's name belongs here"
                                       : "'(' and the parameters belong here");
    if (!read_parameters(in, out))
        return false;
    skip(in);
    return *in->at == 0 || REFUSE(in, in->at, "the text goes on behind the signature");
}

static errand_status
finish(errand__signature *signature, const char *symbol, size_t length,
       errand_ffi_error *out_error)
{
    size_t text_length;

    if (length > 0) {
        signature->symbol_size = length + 1;
        signature->symbol = errand__mem_alloc(NULL, length + 1);
        if (signature->symbol == NULL)
            return ERRAND_ENOMEM;
        memcpy(signature->symbol, symbol, length);
        signature->view.symbol = signature->symbol;
    }
    text_length = errand__signature_text(&signature->view, NULL, 0);
    if (text_length == 0) {
        errand__ffi_refuse(out_error, 0, "a signature has at most %d characters",
                           FFI_TEXT_MAX);
        return ERRAND_EINVAL;
    }
    signature->text_size = text_length + 1;
    signature->text = errand__mem_alloc(NULL, signature->text_size);
    if (signature->text == NULL)
        return ERRAND_ENOMEM;
    errand__signature_text(&signature->view, signature->text, signature->text_size);
    return ERRAND_OK;
}

errand_status
errand__signature_parse(const char *text, errand__signature **out_signature,
                        errand_ffi_error *out_error)
{
    parser in = {.text = text, .at = text, .error = out_error};
    size_t length = strlen(text), symbol_length = 0;
    const char *symbol = NULL;
    errand_status status;

    if (length > FFI_TEXT_MAX) {
        errand__ffi_refuse(out_error, 0, "a signature has at most %d characters",
                           FFI_TEXT_MAX);
        return ERRAND_EINVAL;
    }
    errand__signature *signature = errand__mem_alloc(NULL, sizeof *signature);
    if (signature == NULL)
        return ERRAND_ENOMEM;
    signature->view.struct_size = sizeof signature->view;
    signature->node_count = 2 * (length + 2);
    signature->nodes =
        errand__mem_alloc(NULL, signature->node_count * sizeof *signature->nodes);
    status = ERRAND_ENOMEM;
    if (signature->nodes != NULL) {
        in.nodes = signature->nodes;
        in.stack = signature->nodes + length + 2;
        status = read_signature(&in, &signature->view, &symbol, &symbol_length)
                     ? finish(signature, symbol, symbol_length, out_error)
                     : ERRAND_EINVAL;
    }
    if (status == ERRAND_OK)
        *out_signature = signature;
    else
        errand__signature_destroy(signature);
    return status;
}

void
errand__signature_destroy(errand__signature *signature)
{
    if (signature == NULL)
        return;
    if (signature->symbol != NULL)
        errand__mem_free(NULL, signature->symbol, signature->symbol_size);
    if (signature->text != NULL)
        errand__mem_free(NULL, signature->text, signature->text_size);
    if (signature->nodes != NULL)
        errand__mem_free(NULL, signature->nodes,
                         signature->node_count * sizeof *signature->nodes);
    errand__mem_free(NULL, signature, sizeof *signature);
}
