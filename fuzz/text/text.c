/* SPDX-License-Identifier: MIT */
/* Goal: find texts of tapes and policies that are read otherwise than they are written.
 * Method: the first byte's lowest bit says which of the two the rest is.  What is taken is printed,
 * read again and printed: both prints, and what was read, must be the same; what is refused must be
 * named, and nothing be made of it.  A tape is also searched, changed and emptied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "errand/choice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(bool good, const char *text)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", text);
    abort();
}

static char *
print_tape(errand_tape *tape, size_t *out_size)
{
    char *text;

    *out_size = errand_tape_print(tape, NULL, 0);
    text = malloc(*out_size + 1);
    need(text != NULL, "no memory");
    need(errand_tape_print(tape, text, *out_size + 1) == *out_size, "a print's length");
    return text;
}

static void
empty(errand_tape *tape)
{
    errand_choice choice, found;
    size_t count = errand_tape_count(tape);

    errand_tape_rewind(tape);
    for (; count > 0; count--) {
        need(errand_tape_at(tape, (count - 1) / 2, &choice), "a choice is missing");
        need(errand_tape_find(tape, choice.site, choice.key, choice.ordinal, &found) ==
                     ERRAND_OK &&
                 found.n == choice.n && found.value == choice.value,
             "a choice is not found, or is another");
        need(errand_tape_unused(tape, count - 1, &found), "nobody asked for any");
        need(errand_tape_remove(tape, choice.site, choice.key, choice.ordinal) ==
                 ERRAND_OK,
             "a choice stays");
        need(errand_tape_find(tape, choice.site, choice.key, choice.ordinal, &found) ==
                 ERRAND_EUNKNOWN,
             "a choice is found after its end");
        need(errand_tape_count(tape) == count - 1, "a count of choices");
        if (count % 3 == 0) { /* and again, with the largest value that it may have */
            choice.value = choice.n - 1;
            need(errand_tape_put(tape, &choice) == ERRAND_OK &&
                     errand_tape_remove(tape, choice.site, choice.key, choice.ordinal) ==
                         ERRAND_OK,
                 "a choice is not taken a second time");
        }
    }
    need(!errand_tape_at(tape, 0, &choice), "an empty tape has a choice");
}

/* The same by way of a file, whose name this process has to itself. */
static void
by_a_file(errand_tape *tape, const char *text, size_t length)
{
    static char path[] = "/tmp/errand-fuzz-XXXXXX";
    static bool made;
    errand_tape *read = NULL;
    char message[160] = "", *again;
    size_t again_length;

    if (!made) {
        int fd = mkstemp(path);

        need(fd >= 0 && close(fd) == 0, "no file");
        made = true;
    }
    need(errand_tape_write(tape, path) == ERRAND_OK, "a tape is not written");
    need(errand_tape_read(path, &read, message, sizeof message) == ERRAND_OK,
         "what was written is refused");
    again = print_tape(read, &again_length);
    need(again_length == length && memcmp(again, text, length) == 0, "a file says other");
    free(again);
    errand_tape_abandon(&read);
    need(unlink(path) == 0, "the file is gone");
    made = false;
    memcpy(strrchr(path, '-'), "-XXXXXX", 8);
    need(errand_tape_read(path, &read, message, sizeof message) == ERRAND_ESYSTEM &&
             read == NULL && message[0] != '\0',
         "a file that is not there is read");
}

static void
read_tape(const char *given, size_t size)
{
    errand_tape *tape = NULL, *again = NULL;
    size_t lengths[2];
    char message[160] = "", *texts[2];

    errand_status status = errand_tape_parse(given, size, &tape, message, sizeof message);
    if (status != ERRAND_OK) {
        need(status == ERRAND_EINVAL && tape == NULL && message[0] != '\0',
             "a refusal that says nothing, or leaves something");
        return;
    }
    texts[0] = print_tape(tape, &lengths[0]);
    need(errand_tape_parse(texts[0], lengths[0], &again, message, sizeof message) ==
             ERRAND_OK,
         "what was printed is refused");
    need(errand_tape_count(tape) == errand_tape_count(again), "choices were lost");
    texts[1] = print_tape(again, &lengths[1]);
    need(lengths[0] == lengths[1] && memcmp(texts[0], texts[1], lengths[0]) == 0,
         "two prints differ");
    if (size % 8 == 0)
        by_a_file(tape, texts[0], lengths[0]);
    empty(again);
    for (int i = 0; i < 2; i++)
        free(texts[i]);
    errand_tape_abandon(&again);
    errand_tape_abandon(&tape);
}

static void
read_policy(const uint8_t *data, size_t size)
{
    errand_choices choices = ERRAND_CHOICES_INIT, again = ERRAND_CHOICES_INIT;
    char given[64] = "", text[64], message[160] = "";

    memcpy(given, data, size < sizeof given ? size : sizeof given - 1);
    choices.steps = again.steps = size;
    if (errand_choices_parse(&choices, given, size, message, sizeof message) !=
        ERRAND_OK) {
        need(message[0] != '\0', "a refusal that says nothing");
        return;
    }
    need(errand_choices_print(&choices, text, sizeof text) < sizeof text, "a long text");
    need(errand_choices_parse(&again, text, size, message, sizeof message) == ERRAND_OK,
         "what was printed is refused");
    if (choices.policy <= ERRAND_POLICY_PICK)
        choices.depth = again.depth; /* they have none */
    need(choices.policy == again.policy &&
             (choices.depth == 0 ? 3 : choices.depth) ==
                 (again.depth == 0 ? 3 : again.depth) &&
             (choices.steps == again.steps || choices.policy <= ERRAND_POLICY_PICK),
         "what was printed is read as another");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] & 1)
        read_policy(data + 1, size - 1);
    else
        read_tape((const char *)data + 1, size - 1);
    return 0;
}
