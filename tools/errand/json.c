/* SPDX-License-Identifier: MIT */
/* json: texts as JSON strings.
 *
 * Design notes.  JSON is UTF-8, but what scripts say and files are called need not be: bytes that
 * are no UTF-8 are written as if they were Latin 1, so that a reader takes every report. */
#include "program.h"

/* The length of the sequence that begins here, or 0: it is none. */
static int
sequence(const unsigned char *at)
{
    int length = at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (length == 0 || at[0] > 0xF4)
        return 0;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
        (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 0; /* too long, a surrogate, or beyond the last one */
    return length;
}

void
errand__json_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)(text != NULL ? text : "");
    fputc('"', file);
    for (; *at != '\0'; at++) {
        int length = sequence(at);
        if (length > 0) {
            fwrite(at, 1, (size_t)length, file);
            at += length - 1;
        } else if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else if (*at == '\n') {
            fputs("\\n", file);
        } else if (*at < 0x20 || *at >= 0x7F) {
            fprintf(file, "\\u%04x", *at);
        } else {
            fputc(*at, file);
        }
    }
    fputc('"', file);
}
