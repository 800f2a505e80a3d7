/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FOREIGN_PARSER_H
#define ERRAND_FOREIGN_PARSER_H
/* parser, inside: what signature.c and signature_type.c share: one place in one text.
 *
 * The items of a structure must lie side by side, so they wait on a stack in the block's second half
 * until the last one is read. */
#include <string.h>
#include "foreign/foreign.h"

/* What may stand where is decided while it is read, so that the error has a column. */
typedef enum errand__parser_place {
    FFI_PLACE_RESULT,
    FFI_PLACE_PARAMETER,
    FFI_PLACE_VARIADIC,
    FFI_PLACE_FIELD,
    FFI_PLACE_CALLBACK_RESULT,
    FFI_PLACE_CALLBACK_PARAMETER
} errand__parser_place;

typedef struct errand__parser {
    const char *text, *at;
    errand_ffi_type *nodes, *stack; /* both from the one block */
    size_t node_count, stack_count;
    uint32_t argument; /* of which parameter; 0 = the result, or none */
    unsigned depth;
    errand_ffi_error *error;
} errand__parser;

static inline bool
errand__parser_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool
errand__parser_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline void
errand__parser_skip(errand__parser *in)
{
    while (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r')
        in->at++;
}

#define ERRAND__PARSER_REFUSE(in, where, ...)                                            \
    errand__ffi_refuse_at((in)->error, (size_t)((where) - (in)->text) + 1,               \
                          (in)->argument, __VA_ARGS__)

/* The length of the word at `at`. */
static inline size_t
errand__parser_word_length(const char *at)
{
    size_t length = 0;

    if (!errand__parser_letter(at[0]))
        return 0;
    while (errand__parser_letter(at[length]) || errand__parser_digit(at[length]))
        length++;
    return length;
}

static inline bool
errand__parser_word_is(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(at, word, length) == 0;
}

static inline bool
errand__parser_take(errand__parser *in, char c)
{
    errand__parser_skip(in);
    if (*in->at != c)
        return false;
    in->at++;
    return true;
}

static inline const errand_ffi_type *
errand__parser_keep(errand__parser *in, const errand_ffi_type *types, size_t count)
{
    errand_ffi_type *kept = in->nodes + in->node_count;

    if (count > 0)
        memcpy(kept, types, count * sizeof *types);
    in->node_count += count;
    return kept;
}

/* One type; false: the error is written. */
bool errand__parser_type(errand__parser *in, errand__parser_place where,
                         errand_ffi_type *out_type);

#endif
