/* SPDX-License-Identifier: MIT */
/* tape_file: --policy, --tape and --save-tape: who decides a run, and what was decided.
 *
 * Design notes.  Both paths count from where the program was started, and both are opened before
 * the run: that a tape cannot be kept is said before an hour of work, not after it. */
#include "program.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
errand__tape_file_init(errand__tape_file *tape, const errand__options *options)
{
    static const errand_choices plain = ERRAND_CHOICES_INIT;
    char text[400] = "memory ran out";
    *tape = (errand__tape_file){.options = options, .choices = plain};
    if (options->tape_path != NULL) {
        if (errand_tape_read(options->tape_path, &tape->choices.held_tape, text,
                             sizeof text) != ERRAND_OK) {
            errand__help_problem("--tape %s: %s: give a file that --save-tape wrote",
                                 options->tape_path, text);
            return false;
        }
        tape->choices.provider = ERRAND_PROVIDER_TAPE;
    }
    if (options->save_tape_path == NULL)
        return true;
    if (errand_tape_create(&tape->choices.held_record) != ERRAND_OK) {
        errand__help_problem("--save-tape %s: memory ran out", options->save_tape_path);
        return false;
    }
    tape->file = fopen(options->save_tape_path, "we");
    if (tape->file == NULL)
        errand__help_problem("--save-tape %s: %s: give a file that can be written",
                             options->save_tape_path, strerror(errno));
    return tape->file != NULL;
}

const errand_choices *
errand__tape_file_choices(errand__tape_file *tape, uint64_t seed)
{
    const char *policy = tape->options->policy;
    if (tape->options->order == ERRAND_ORDER_ARRIVAL)
        return NULL;
    if (policy != NULL &&
        errand_choices_parse(&tape->choices, policy, seed, NULL, 0) != ERRAND_OK)
        return NULL; /* it was parsed before, with the command line */
    return &tape->choices;
}

/* Choices of a tape that no longer fit the run. */
static void
print_unused(errand__tape_file *tape)
{
    errand_tape *read = tape->choices.held_tape;
    errand_choice choice;
    size_t unused = 0, changed = 0;
    if (read == NULL || !tape->ran)
        return;
    while (errand_tape_changed(read, changed, &choice))
        changed++;
    while (errand_tape_unused(read, unused, &choice))
        unused++;
    if (unused == 0 && changed == 0)
        return;
    errand__help_problem("--tape %s: of %zu choices the run did not ask for %zu, and had "
                         "another number of values for %zu: it is not the run that the "
                         "tape was made of",
                         tape->options->tape_path, errand_tape_count(read), unused,
                         changed);
}

static bool
save(errand__tape_file *tape)
{
    errand_tape *record = tape->choices.held_record;
    size_t size = errand_tape_print(record, NULL, 0);
    char *text = malloc(size + 1);
    bool good = text != NULL;
    errno = ENOMEM;
    if (good) {
        errand_tape_print(record, text, size + 1);
        errno = EIO;
        good = fwrite(text, 1, size, tape->file) == size;
    }
    free(text);
    if (fclose(tape->file) != 0)
        good = false;
    tape->file = NULL;
    if (!good)
        errand__help_problem("--save-tape %s: the tape is not complete: %s: %s",
                             tape->options->save_tape_path, strerror(errno),
                             errand__output_mend(errno));
    return good;
}

bool
errand__tape_file_fini(errand__tape_file *tape)
{
    bool good = true;
    if (!tape->options->quiet)
        print_unused(tape);
    if (tape->file != NULL)
        good = save(tape);
    errand_tape_abandon(&tape->choices.held_tape);
    errand_tape_abandon(&tape->choices.held_record);
    return good;
}
