/* SPDX-License-Identifier: MIT */
/* call_values: arguments of a foreign call as words, and its results as text.
 *
 * Design notes.  The parameter's type decides how a word is read, so no word needs quotes of its
 * own: a number where a number is wanted, the word itself where a text or bytes are.  null stands
 * for a null pointer, wherever an address is passed; for bytes @FILE stands for a file's contents
 * and x:6869 for bytes in hexadecimal; where a text or bytes are wanted t:WORD is the word itself,
 * whatever it begins with.  {1, 2.5, {3, 4}} is for structures and arrays.  Results are printed in
 * the same notation, with what cannot be printed escaped.
 *
 * A file is read up to what a call may be given, which its size may not tell (/dev/zero). */
#include "call/call.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *
keep(errand__call_values *values, void *block)
{
    if (block == NULL ||
        values->kept_count == sizeof values->kept / sizeof values->kept[0]) {
        free(block);
        errand__help_problem("call: the arguments are too many or too large");
        return NULL;
    }
    values->kept[values->kept_count++] = block;
    return block;
}

void
errand__call_values_fini(errand__call_values *values)
{
    while (values->kept_count > 0)
        free(values->kept[--values->kept_count]);
}

/* ---- words -------------------------------------------------------------------------------- */

static bool
refuse(uint32_t at, const char *text, const char *wanted)
{
    errand__help_problem("call: argument %u, '%s': give %s", (unsigned)at + 1, text,
                         wanted);
    return false;
}

static bool
read_integer(uint32_t at, const char *text, errand_ffi_value *out_value)
{
    char *end;

    errno = 0;
    if (text[0] == '-') {
        long long number = strtoll(text, &end, 0);
        *out_value = errand_ffi_i(number);
    } else {
        unsigned long long number = strtoull(text, &end, 0);
        *out_value = errand_ffi_u(number);
    }
    if (end == text || *end != '\0' || errno != 0 || isspace((unsigned char)text[0]))
        return refuse(at, text, "a whole number (12, -3, 0xff)");
    return true;
}

static bool
read_float(uint32_t at, const char *text, errand_ffi_value *out_value)
{
    char *end;
    double number = strtod(text, &end);

    *out_value = errand_ffi_f64(number);
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]))
        return refuse(at, text, "a number (2.5, 1e-3, nan, inf)");
    return true;
}

/* All that is there, of at most limit bytes and one more; NULL: errno says why. */
static unsigned char *
read_stream(FILE *file, size_t limit, size_t *out_size)
{
    size_t size = 0, room = limit < 1 << 16 ? limit + 1 : 1 << 16, got = 1;
    unsigned char *bytes = malloc(room);

    while (bytes != NULL && size <= limit && got > 0) {
        if (size == room) {
            unsigned char *more;

            room = room > limit / 2 ? limit + 1 : room * 2;
            more = realloc(bytes, room);
            if (more == NULL)
                free(bytes);
            bytes = more;
            continue;
        }
        got = fread(bytes + size, 1, room - size, file);
        size += got;
    }
    if (bytes != NULL && ferror(file)) {
        free(bytes);
        return NULL;
    }
    *out_size = size;
    return bytes;
}

static bool
read_file(errand__call_values *values, uint32_t at, const char *text, size_t *out_size,
          unsigned char **out_bytes)
{
    FILE *file = fopen(text + 1, "rbe");
    unsigned char *bytes =
        file == NULL ? NULL : read_stream(file, values->file_max, out_size);
    int error = errno;

    if (file != NULL)
        fclose(file);
    if (bytes == NULL) {
        errand__help_problem("call: argument %u: %s cannot be read: %s", (unsigned)at + 1,
                             text + 1, strerror(error));
        return false;
    }
    if (*out_size > values->file_max) {
        free(bytes);
        errand__help_problem(
            "call: argument %u: %s has more than %zu bytes; %s", (unsigned)at + 1,
            text + 1, values->file_max,
            values->sandboxed
                ? "give --input more (at most 1G)"
                : "a program maps such a file and passes an errand_ffi_buffer");
        return false;
    }
    *out_bytes = bytes;
    return keep(values, bytes) != NULL;
}

static bool
read_hex(errand__call_values *values, uint32_t at, const char *text, size_t *out_size,
         unsigned char **out_bytes)
{
    size_t length = strlen(text + 2);
    unsigned char *bytes = keep(values, malloc(length / 2 + 1));

    if (bytes == NULL)
        return false;
    for (size_t i = 0; i < length / 2; i++) {
        char pair[3] = {text[2 + 2 * i], text[3 + 2 * i], '\0'};

        if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
            return refuse(at, text,
                          "pairs of hexadecimal digits behind x:, or t:WORD for a text");
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    if (length % 2 != 0)
        return refuse(at, text,
                      "pairs of hexadecimal digits behind x:, or t:WORD for a text");
    *out_size = length / 2;
    *out_bytes = bytes;
    return true;
}

static bool
is_plain(const char **text)
{
    if (strncmp(*text, "t:", 2) != 0)
        return false;
    *text += 2;
    return true;
}

static bool
read_bytes(errand__call_values *values, uint32_t at, const errand_ffi_type *type,
           const char *text, errand_ffi_value *out_value)
{
    bool plain = is_plain(&text);
    size_t size = strlen(text);
    unsigned char *bytes = (unsigned char *)(uintptr_t)text;

    if (!plain && text[0] == '@' && !read_file(values, at, text, &size, &bytes))
        return false;
    if (!plain && strncmp(text, "x:", 2) == 0 &&
        !read_hex(values, at, text, &size, &bytes))
        return false;
    *out_value = type->kind == ERRAND_FFI_BYTES ? errand_ffi_bytes(bytes, size)
                                                : errand_ffi_inout(bytes, size);
    return true;
}

/* ---- structures ---------------------------------------------------------------------------- */

static bool read_value(errand__call_values *values, uint32_t at,
                       const errand_ffi_type *type, const char *text,
                       errand_ffi_value *out_value);

/* The end of one item of "{a, {b, c}}": the comma or brace behind it. */
static char *
item_end(char *text)
{
    int depth = 0;

    while (*text != '\0' && !(depth == 0 && (*text == ',' || *text == '}'))) {
        depth += (*text == '{') - (*text == '}');
        text++;
    }
    return text;
}

static bool
read_items(errand__call_values *values, uint32_t at, const errand_ffi_type *type,
           const char *text, errand_ffi_value *out_value)
{
    char *at_text = keep(values, strdup(text));
    errand_ffi_value *items =
        keep(values, calloc((size_t)type->count + 1, sizeof *items));
    uint32_t count = 0;

    if (at_text == NULL || items == NULL)
        return false;
    if (*at_text != '{')
        return refuse(at, text, "{...}");
    for (at_text++;; at_text++) {
        at_text += strspn(at_text, " ");
        char *end = item_end(at_text), closing = *end;

        if (closing == '\0' || count == type->count)
            return refuse(at, text, "{...} with as many values as the type has");
        *end = '\0';
        for (char *last = end; last > at_text && last[-1] == ' '; last--)
            last[-1] = '\0';
        if (!read_value(values, at,
                        type->kind == ERRAND_FFI_STRUCT ? &type->items[count]
                                                        : type->items,
                        at_text, &items[count]))
            return false;
        count++;
        at_text = end;
        if (closing == '}')
            break;
    }
    if (count != type->count || at_text[1] != '\0')
        return refuse(at, text, "{...} with as many values as the type has");
    *out_value = type->kind == ERRAND_FFI_STRUCT ? errand_ffi_struct(items, count)
                                                 : errand_ffi_array(items, count);
    return true;
}

static bool
is_address(errand_ffi_kind kind)
{
    return kind == ERRAND_FFI_POINTER || kind == ERRAND_FFI_CALLBACK ||
           kind == ERRAND_FFI_STRING || kind == ERRAND_FFI_BYTES ||
           kind == ERRAND_FFI_OUT || kind == ERRAND_FFI_INOUT;
}

static bool
read_value(errand__call_values *values, uint32_t at, const errand_ffi_type *type,
           const char *text, errand_ffi_value *out_value)
{
    bool null = strcmp(text, "null") == 0;

    if (null && is_address(type->kind)) {
        *out_value = errand_ffi_pointer(NULL);
        return true;
    }
    switch (type->kind) {
    case ERRAND_FFI_BOOL:
        *out_value = errand_ffi_bool(strcmp(text, "true") == 0);
        return out_value->as.u != 0 || strcmp(text, "false") == 0 ||
               refuse(at, text, "true or false");
    case ERRAND_FFI_F32:
    case ERRAND_FFI_F64:
        return read_float(at, text, out_value);
    case ERRAND_FFI_POINTER:
    case ERRAND_FFI_CALLBACK:
        return refuse(at, text, "null: the command line knows no other address");
    case ERRAND_FFI_STRING:
        (void)is_plain(&text);
        *out_value = errand_ffi_string(text);
        return true;
    case ERRAND_FFI_BYTES:
    case ERRAND_FFI_INOUT:
        return read_bytes(values, at, type, text, out_value);
    case ERRAND_FFI_OUT:
        if (!read_integer(at, text, out_value))
            return false;
        if (out_value->kind == ERRAND_FFI_I64)
            return refuse(at, text, "a number of bytes to make room for");
        *out_value = errand_ffi_out((size_t)out_value->as.u);
        return true;
    case ERRAND_FFI_STRUCT:
    case ERRAND_FFI_ARRAY:
        return read_items(values, at, type, text, out_value);
    default:
        return read_integer(at, text, out_value);
    }
}

bool
errand__call_values_read(errand__call_values *values, uint32_t at,
                         const errand_ffi_type *type, const char *text)
{
    return read_value(values, at, type, text, &values->values[at]);
}

/* ---- results ---------------------------------------------------------------------------------- */

void
errand__call_bytes_print(FILE *file, const unsigned char *bytes, size_t size)
{
    fputc('"', file);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = bytes[i];

        if (byte == '"' || byte == '\\')
            fprintf(file, "\\%c", byte);
        else if (byte == '\n')
            fputs("\\n", file);
        else if (byte < 0x20 || byte >= 0x7f)
            fprintf(file, "\\x%02x", byte);
        else
            fputc(byte, file);
    }
    fputc('"', file);
}

void
errand__call_values_print(FILE *file, const errand_ffi_value *value)
{
    switch (value->kind) {
    case ERRAND_FFI_BOOL:
        fputs(value->as.u != 0 ? "true" : "false", file);
        break;
    case ERRAND_FFI_I8:
    case ERRAND_FFI_I16:
    case ERRAND_FFI_I32:
    case ERRAND_FFI_I64:
        fprintf(file, "%" PRId64, value->as.i);
        break;
    case ERRAND_FFI_F32:
        fprintf(file, "%.9g", (double)value->as.f32);
        break;
    case ERRAND_FFI_F64:
        fprintf(file, "%.17g", value->as.f64);
        break;
    case ERRAND_FFI_STRING:
        if (value->as.string == NULL)
            fputs("null", file);
        else
            errand__call_bytes_print(file, (const unsigned char *)value->as.string,
                                     strlen(value->as.string));
        break;
    case ERRAND_FFI_POINTER:
        if (value->as.pointer == NULL)
            fputs("null", file);
        else
            fprintf(file, "0x%" PRIxPTR, (uintptr_t)value->as.pointer);
        break;
    case ERRAND_FFI_STRUCT:
    case ERRAND_FFI_ARRAY:
        fputc('{', file);
        for (size_t i = 0; i < value->size; i++) {
            if (i > 0)
                fputs(", ", file);
            errand__call_values_print(file, &value->as.items[i]);
        }
        fputc('}', file);
        break;
    case ERRAND_FFI_VOID:
        fputs("void", file);
        break;
    default:
        fprintf(file, "%" PRIu64, value->as.u);
        break;
    }
}
