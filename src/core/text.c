/* SPDX-License-Identifier: MIT */
/* text: formatting into a buffer of fixed size, cut where a reader can see it. */
#include <stdio.h>
#include <string.h>
#include "core/core.h"

#define MARK "..."

static size_t vformat_at(char *out, size_t used, size_t size, const char *format,
                         va_list arguments) ERRAND_PRINTF(4, 0);
static size_t cut(char *out, size_t room);
static bool continues(char byte);

size_t
errand__text_format(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t length = errand__text_vformat(out, size, format, arguments);
    va_end(arguments);
    return length;
}

size_t
errand__text_vformat(char *out, size_t size, const char *format, va_list arguments)
{
    return vformat_at(out, 0, size, format, arguments);
}

size_t
errand__text_append(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t length = vformat_at(out, size == 0 ? 0 : strlen(out), size, format, arguments);
    va_end(arguments);
    return length;
}

/* Behind used bytes, which with their end are at most size. */
static size_t
vformat_at(char *out, size_t used, size_t size, const char *format, va_list arguments)
{
    if (size == 0)
        return 0;
    int wanted = vsnprintf(out + used, size - used, format, arguments);
    if (wanted < 0) { /* a wide character that the locale cannot write */
        out[used] = '\0';
        return used;
    }
    if ((size_t)wanted < size - used)
        return used + (size_t)wanted;
    return cut(out, size - 1);
}

/* Ends the text in the mark, within room bytes, after a whole character.  Bytes that are
 * no UTF-8 are cut where they are. */
static size_t
cut(char *out, size_t room)
{
    size_t mark = sizeof MARK - 1;
    if (mark > room)
        mark = room;
    size_t end = room - mark, limit = end;
    while (end > 0 && limit - end < 3 && continues(out[end]))
        end--;
    if (continues(out[end]))
        end = limit;
    memcpy(out + end, MARK, mark);
    out[end + mark] = '\0';
    return end + mark;
}

/* Is it a byte of a character, and not its first? */
static bool
continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}
