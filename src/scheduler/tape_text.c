/* SPDX-License-Identifier: MIT */
/* Design notes: tapes as text, for people and version control.
 *
 * A line is split and checked field by field, so that the message names what is wrong with it; a
 * tape is given out only if every line was good. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scheduler/scheduler.h"

#define FIRST_LINE "errand tape 1"

enum { LINE_MAX_BYTES = 160, FIELDS = 5 };

size_t
errand_tape_print(errand_tape *tape, char *out, size_t size)
{
    size_t length = strlen(FIRST_LINE "\n");
    errand_choice choice;
    char line[LINE_MAX_BYTES];

    if (tape == NULL)
        return 0;
    if (out != NULL && size > 0)
        snprintf(out, size, "%s", FIRST_LINE "\n");
    for (size_t i = 0; errand_tape_at(tape, i, &choice); i++) {
        size_t room = size > length ? size - length : 0;

        snprintf(line, sizeof line,
                 "%s %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 errand_site_name(choice.site), choice.key, choice.ordinal, choice.n,
                 choice.value);
        if (out != NULL && room > 0)
            snprintf(out + length, room, "%s", line);
        length += strlen(line);
    }
    return length;
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* Digits of that base and nothing else. */
static bool
read_number(const char *text, int base, uint64_t *out_number)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    size_t length = strspn(text, digits);
    char *end;

    if (length == 0 || text[length] != '\0')
        return false;
    errno = 0;
    *out_number = strtoull(text, &end, base);
    return errno == 0 && *end == '\0';
}

static bool
read_site(const char *text, errand_site *out_site)
{
    for (int site = 1; site <= ERRAND_SITES; site++) {
        if (strcmp(text, errand_site_name((errand_site)site)) == 0) {
            *out_site = (errand_site)site;
            return true;
        }
    }
    return false;
}

/* What is wrong with a line, or NULL: then the choice counts, unless its site is 0. */
static const char *
read_line(char *line, errand_choice *out_choice)
{
    static const char between[] = " \t\r";
    char *fields[FIELDS] = {NULL}, *rest = NULL;
    size_t count = 0;

    *out_choice = (errand_choice){.n = 0};
    for (char *field = strtok_r(line, between, &rest); field != NULL;
         field = strtok_r(NULL, between, &rest)) {
        if (count == 0 && field[0] == '#')
            return NULL;
        if (count == FIELDS)
            return "there are more than five fields: site key ordinal n value";
        fields[count++] = field;
    }
    if (count == 0)
        return NULL;
    if (count < FIELDS)
        return "five fields are needed: site key ordinal n value";
    if (!read_number(fields[1], 16, &out_choice->key))
        return "the key must be up to 16 hexadecimal digits";
    if (!read_number(fields[2], 10, &out_choice->ordinal))
        return "the ordinal must be a whole number";
    if (!read_number(fields[3], 10, &out_choice->n))
        return "n must be a whole number; 0 means 2^64";
    if (!read_number(fields[4], 10, &out_choice->value))
        return "the value must be a whole number";
    if (!read_site(fields[0], &out_choice->site))
        return "there is no site of that name";
    return errand__choice_fault(out_choice);
}

static const char *
read_first(char *line)
{
    size_t length = strlen(line);

    while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
        line[--length] = '\0';
    if (strcmp(line, FIRST_LINE) == 0)
        return NULL;
    if (strncmp(line, "errand tape ", strlen("errand tape ")) == 0)
        return "the tape is of another format: this version reads 'errand tape 1'";
    return "this is no tape: its first line must be 'errand tape 1'";
}

/* What is wrong with the line of that number; *out_status says of what sort it is. */
static const char *
take_line(errand_tape *tape, char *line, uint64_t number, errand_status *out_status)
{
    errand_choice choice, other;
    const char *fault = number == 1 ? read_first(line) : read_line(line, &choice);

    *out_status = fault == NULL ? ERRAND_OK : ERRAND_EINVAL;
    if (fault != NULL || number == 1 || choice.site == 0)
        return fault;
    if (errand_tape_find(tape, choice.site, choice.key, choice.ordinal, &other) ==
        ERRAND_OK) {
        *out_status = ERRAND_EINVAL;
        return "a line before has this site, key and ordinal: keep one of them";
    }
    *out_status = errand_tape_put(tape, &choice);
    return *out_status == ERRAND_OK ? NULL : "memory ran out";
}

errand_status
errand_tape_parse(const char *text, size_t size, errand_tape **out_tape, char *message,
                  size_t room)
{
    errand_tape *tape = NULL;
    errand_status status;
    uint64_t number = 0;
    const char *fault = NULL;
    size_t at = 0;

    ERRAND_REQUIRE_ARG(out_tape != NULL && (text != NULL || size == 0), ERRAND_EINVAL,
                       "text and out_tape are needed");
    status = errand_tape_create(&tape);
    if (status != ERRAND_OK)
        return status;
    do {
        const char *end = size == at ? NULL : memchr(text + at, '\n', size - at);
        size_t length = (end == NULL ? size : (size_t)(end - text)) - at;
        char line[LINE_MAX_BYTES];

        number++;
        if (length >= sizeof line ||
            (length > 0 && memchr(text + at, 0, length) != NULL)) {
            bool remark = number > 1 && length > 0 && text[at] == '#';

            status = remark ? ERRAND_OK : ERRAND_EINVAL;
            fault = "the line is too long, or holds a zero byte";
        } else {
            if (length > 0)
                memcpy(line, text + at, length);
            line[length] = '\0';
            fault = take_line(tape, line, number, &status);
        }
        at += length + 1;
    } while (status == ERRAND_OK && at < size);
    if (status == ERRAND_OK) {
        *out_tape = tape;
        return ERRAND_OK;
    }
    if (message != NULL && room > 0)
        errand__text_format(message, room, "line %" PRIu64 ": %s", number, fault);
    errand_tape_abandon(&tape);
    return status;
}

/* ---- files --------------------------------------------------------------------------------------- */

/* malloc'd: a file is the caller's business, not the runtime's memory.  What does not begin as a
 * tape is not read to its end: a device may have none. */
static char *
read_whole(FILE *file, size_t *out_size)
{
    size_t room = 65536, size = 0, got;
    char *text = malloc(room), *larger;

    while (text != NULL && (got = fread(text + size, 1, room - size, file)) > 0) {
        size += got;
        if (size < strlen(FIRST_LINE) ||
            memcmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0)
            break;
        if (size < room)
            continue;
        room *= 2;
        larger = realloc(text, room);
        if (larger == NULL)
            free(text);
        text = larger;
    }
    *out_size = size;
    return text;
}

errand_status
errand_tape_read(const char *path, errand_tape **out_tape, char *message, size_t room)
{
    errand_status status;
    size_t size = 0;
    FILE *file;
    char *text;
    bool good;

    ERRAND_REQUIRE_ARG(path != NULL && out_tape != NULL, ERRAND_EINVAL,
                       "path and out_tape are needed");
    file = fopen(path, "re");
    text = file == NULL ? NULL : read_whole(file, &size);
    good = file != NULL && ferror(file) == 0;
    if (message != NULL && room > 0)
        errand__text_format(message, room, "%s",
                            good ? "memory ran out" : strerror(errno));
    if (text != NULL && good)
        status = errand_tape_parse(text, size, out_tape, message, room);
    else
        status = good ? ERRAND_ENOMEM : ERRAND_ESYSTEM;
    free(text);
    if (file != NULL)
        fclose(file);
    return status;
}

errand_status
errand_tape_write(errand_tape *tape, const char *path)
{
    size_t size;
    char *text;
    FILE *file;
    bool good;

    ERRAND_REQUIRE_ARG(tape != NULL && path != NULL, ERRAND_EINVAL,
                       "tape and path are needed");
    size = errand_tape_print(tape, NULL, 0);
    text = errand__tape_has_lost(tape) ? NULL : malloc(size + 1);
    if (text == NULL)
        return ERRAND_ENOMEM;
    errand_tape_print(tape, text, size + 1);
    file = fopen(path, "we");
    good = file != NULL && fwrite(text, 1, size, file) == size;
    if (file != NULL)
        good = fclose(file) == 0 && good;
    free(text);
    return good ? ERRAND_OK : ERRAND_ESYSTEM;
}
