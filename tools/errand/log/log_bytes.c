/* SPDX-License-Identifier: MIT */
/* log_bytes: the bytes that were recorded of a result or a note, as numbers and as text. */
#include "log/log_view.h"
#include <string.h>

enum { ROW = 16, ROW_TEXT = 3 * ROW + 8 };

/* "6162636465666768 0a              abcdefgh.", at most ROW of them. */
static void
row_text(const unsigned char *bytes, size_t count, char text[ROW_TEXT])
{
    size_t used = 0;
    for (size_t i = 0; i < ROW; i++) {
        if (i == ROW / 2)
            text[used++] = ' ';
        if (i < count)
            snprintf(text + used, 3, "%02x", bytes[i]);
        else
            memcpy(text + used, "  ", 2);
        used += 2;
    }
    memcpy(text + used, "  ", 2);
    used += 2;
    for (size_t i = 0; i < count; i++)
        text[used++] = bytes[i] >= ' ' && bytes[i] <= '~' ? (char)bytes[i] : '.';
    text[used] = '\0';
}

static size_t
window_begin(size_t around)
{
    return around < ROW / 2 ? 0 : (around - ROW / 2) & ~(size_t)7;
}

void
errand__log_window(const void *bytes, size_t size, size_t around,
                   char out[ERRAND__LOG_WINDOW])
{
    size_t from = window_begin(around);
    size_t count = size < from ? 0 : size - from;
    char text[ROW_TEXT], at[32] = "";
    if (count > ROW)
        count = ROW;
    if (from > 0)
        snprintf(at, sizeof at, "at %zu: ", from);
    row_text((const unsigned char *)bytes + (count > 0 ? from : 0), count, text);
    snprintf(out, ERRAND__LOG_WINDOW, "%s%s%s", at, text,
             from + count < size ? " ..." : "");
}

const unsigned char *
errand__log_bytes(const errand_log_step *step, size_t *out_size)
{
    const errand_log_completion *completion = step->completion;
    *out_size = completion != NULL ? completion->size : step->size;
    return completion != NULL ? completion->bytes : step->bytes;
}

void
errand__log_dump(FILE *file, const errand_log_step *step)
{
    size_t size;
    const unsigned char *bytes = errand__log_bytes(step, &size);
    char text[ROW_TEXT];
    for (size_t at = 0; bytes != NULL && at < size; at += ROW) {
        row_text(bytes + at, size - at < ROW ? size - at : ROW, text);
        fprintf(file, "%17s%10zu  %s\n", "", at, text);
    }
}

void
errand__log_json_bytes(FILE *file, const errand_log_step *step, size_t around)
{
    bool whole = around == ERRAND__LOG_ALL_BYTES;
    size_t size, from = whole ? 0 : window_begin(around);
    const unsigned char *bytes = errand__log_bytes(step, &size);
    fputc('"', file);
    for (size_t i = from; i < size && (whole || i < from + ROW); i++)
        fprintf(file, "%02x", bytes[i]);
    fputc('"', file);
    if (from > 0)
        fprintf(file, ", \"bytes_from\": %zu", from);
}
