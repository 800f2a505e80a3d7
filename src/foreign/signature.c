/* SPDX-License-Identifier: MIT */
/* signature: the text of a signature, read.
 *
 * Design notes: one descent over the text.  A type takes at least one character and a separator, so a
 * text of n characters has fewer than n + 2 types: all of them lie in one block, measured before. */
#include "foreign/parser.h"

static bool
read_parameters(errand__parser *in, errand_ffi_signature *out)
{
    size_t from = in->stack_count;
    const char *start;

    out->variadic = false;
    if (errand__parser_take(in, ')'))
        return true;
    do {
        errand_ffi_type item;
        in->argument++;
        errand__parser_skip(in);
        start = in->at;
        if (strncmp(in->at, "...", 3) == 0) {
            if (out->variadic || in->argument == 1)
                return ERRAND__PARSER_REFUSE(
                    in, start, "'...' stands once, behind the first parameter");
            out->variadic = true;
            out->fixed = --in->argument;
            in->at += 3;
            continue;
        }
        if (in->argument == 1 && strncmp(in->at, "void", 4) == 0 &&
            errand__parser_word_length(in->at) == 4) {
            in->at += 4;
            in->argument = 0;
            break;
        }
        if (in->argument > FFI_PARAMETERS_MAX)
            return ERRAND__PARSER_REFUSE(
                in, start, "a function has at most %d parameters", FFI_PARAMETERS_MAX);
        if (!errand__parser_type(
                in, out->variadic ? FFI_PLACE_VARIADIC : FFI_PLACE_PARAMETER, &item))
            return false;
        in->stack[in->stack_count++] = item;
    } while (errand__parser_take(in, ','));
    if (!errand__parser_take(in, ')'))
        return ERRAND__PARSER_REFUSE(
            in, in->at,
            *in->at == '*' ? "'*' is no type; write string, bytes, out bytes or pointer"
            : errand__parser_word_length(in->at) > 0
                ? "parameters have a type alone, of one word (uint, llong) and no name"
                : "',' or ')' belongs here");
    out->count = (uint32_t)(in->stack_count - from);
    out->parameters = errand__parser_keep(in, in->stack + from, out->count);
    in->argument = 0;
    return true;
}

static bool
symbol_letter(char c)
{
    return errand__parser_letter(c) || errand__parser_digit(c) || c == '$' || c == '.' ||
           c == '@';
}

/* Reads the whole; the symbol's place is answered apart. */
static bool
read_signature(errand__parser *in, errand_ffi_signature *out, const char **out_symbol,
               size_t *out_length)
{
    size_t length;

    errand__parser_skip(in);
    length = errand__parser_word_length(in->at);
    if (errand__parser_word_is(in->at, length, "unix64") ||
        errand__parser_word_is(in->at, length, "win64")) {
        out->convention = length == 6 ? ERRAND_FFI_UNIX64 : ERRAND_FFI_WIN64;
        in->at += length;
    }
    if (!errand__parser_type(in, FFI_PLACE_RESULT, &out->result))
        return false;
    errand__parser_skip(in);
    *out_symbol = in->at;
    if (!errand__parser_digit(*in->at))
        while (symbol_letter(*in->at))
            in->at++;
    *out_length = (size_t)(in->at - *out_symbol);
    errand__parser_skip(in);
    if (*in->at == '*')
        return ERRAND__PARSER_REFUSE(in, in->at,
                                     "'*' is no type; write pointer or string");
    if (!errand__parser_take(in, '('))
        return ERRAND__PARSER_REFUSE(in, in->at,
                                     *out_length == 0
                                         ? "the function's name belongs here"
                                         : "'(' and the parameters belong here");
    if (!read_parameters(in, out))
        return false;
    errand__parser_skip(in);
    return *in->at == 0 ||
           ERRAND__PARSER_REFUSE(in, in->at, "the text goes on behind the signature");
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
    errand__parser in = {.text = text, .at = text, .error = out_error};
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
