/* SPDX-License-Identifier: MIT */
/* head: what libcurl gives of an answer's head, one line at a time.
 *
 * Design notes: libcurl believes the last length that it can read, as far as it can read it.  Others on
 * the way may have read it otherwise and seen another end, so a length that can be read in two
 * ways is a failure: two that differ, one that is no number, one that goes on in the next line, and
 * a name that is one only for who overlooks a space. */
#include <string.h>
#include <strings.h>
#include "operations/http/http.h"

#if ERRAND_HAS_CURL
static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* How long name is at the begin of the line, with the blanks behind it; 0: it is not there. */
static size_t
names(const char *line, size_t size, const char *name)
{
    size_t at = strlen(name);

    if (size <= at || strncasecmp(line, name, at) != 0)
        return 0;
    while (at < size && is_blank(line[at]))
        at++;
    return at < size && line[at] == ':' ? at : 0;
}

/* One number, whose first digit is there. */
static bool
read_length(const char *text, size_t size, size_t *at, uint64_t *out_length)
{
    uint64_t length = 0;
    size_t from = *at;

    for (; *at < size && text[*at] >= '0' && text[*at] <= '9'; (*at)++) {
        if (length > INT64_MAX / 10 - 1)
            return false;
        length = length * 10 + (uint64_t)(text[*at] - '0');
    }
    *out_length = length;
    return *at > from;
}

/* A number, or the same one several times: who joins lines makes that of two. */
static bool
take_lengths(errand__framing *framing, const char *text, size_t size)
{
    size_t at = 0;

    while (size > 0 &&
           (is_blank(text[size - 1]) || text[size - 1] == '\r' || text[size - 1] == '\n'))
        size--;
    for (;;) {
        uint64_t length;

        while (at < size && is_blank(text[at]))
            at++;
        if (!read_length(text, size, &at, &length) ||
            (framing->known && framing->length != length))
            return false;
        framing->known = true;
        framing->length = length;
        while (at < size && is_blank(text[at]))
            at++;
        if (at == size)
            return true;
        if (text[at++] != ',')
            return false;
    }
}

/* Does the line leave no doubt of where the body ends? */
static bool
is_clear(errand__framing *framing, const char *line, size_t size)
{
    static const char length_name[] = "Content-Length",
                      coding_name[] = "Transfer-Encoding";
    bool was_last = framing->last;
    size_t length = names(line, size, length_name);
    size_t coding = names(line, size, coding_name);

    framing->last = length != 0 || coding != 0;
    if (is_blank(line[0]))
        return !was_last;
    if (length > strlen(length_name) || coding > strlen(coding_name))
        return false;
    return length == 0 || take_lengths(framing, line + length + 1, size - length - 1);
}

/* A head that begins takes the place of one before ("100 Continue").  Behind the last one come only lines
 * that follow a body in chunks. */
size_t
errand__transfer_on_head(char *bytes, size_t size, size_t count, void *arg)
{
    errand__transfer *transfer = arg;

    size *= count;
    if (size == 0)
        return 0;
    if (bytes[0] == '\r' || bytes[0] == '\n') {
        transfer->head_open = false;
        transfer->head_done =
            transfer->head_done || errand__transfer_status(transfer) >= 200;
    } else if (!transfer->head_open && !transfer->head_done) {
        transfer->head_open = true;
        transfer->head.used = 0;
        transfer->framing = (errand__framing){.known = false};
    } else if (!errand__transfer_grow(transfer, &transfer->head, bytes, size)) {
        return 0;
    } else if (!transfer->head_done && !is_clear(&transfer->framing, bytes, size)) {
        transfer->trouble = TRANSFER_LENGTH;
        return 0;
    }
    return size;
}
#endif
