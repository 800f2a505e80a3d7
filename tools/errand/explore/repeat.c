/* SPDX-License-Identifier: MIT */
/* repeat: each seed twice, and the same digest both times.
 *
 * Design notes.  The second run is the reproduce line in a new process, with other addresses and
 * other hash seeds than the first, which was forked: what hangs on them shows.  Both leave a
 * log; equal ones are removed at once, and of unequal ones those of the smallest
 * seed are kept. */
#include "explore/explore.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
make_path(const errand__explore *explore, uint64_t seed, char which, char *path)
{
    char name[ERRAND__PATH_SIZE - 16];
    errand__keep_name(explore, seed, name, sizeof name);
    snprintf(path, ERRAND__PATH_SIZE, "%s-%c.log", name, which);
}

void
errand__repeat_first(const errand__explore *explore, errand__trial *trial,
                     errand__repeat *repeat)
{
    memset(repeat, 0, sizeof *repeat);
    make_path(explore, trial->options.seed, 'a', repeat->logs[0]);
    make_path(explore, trial->options.seed, 'b', repeat->logs[1]);
    trial->options.record_path = repeat->logs[0];
}

bool
errand__repeat_again(const errand__explore *explore, errand__trial *trial,
                     errand__repeat *repeat)
{
    uint64_t seed = trial->options.seed;
    errand_choices choices = trial->choices;
    repeat->digest = trial->verdict.digest;
    errand__trial_fini(trial);
    trial->options = explore->run;
    trial->options.seed = seed;
    trial->choices = choices;
    trial->timeout_ns = explore->timeout_ns;
    repeat->words = errand__reproduce_words(
        explore, seed, &choices, (errand__reproduce){.record = repeat->logs[1]});
    trial->words = repeat->words;
    if (trial->words != NULL && errand__trial_start(trial))
        return true;
    errand__repeat_fini(repeat, false);
    errand__trial_fini(trial);
    return false;
}

bool
errand__repeat_differs(errand__trial *trial, const errand__repeat *repeat)
{
    const char *last = NULL;
    for (const char *at = trial->output; (at = strstr(at, "digest: ")) != NULL;) {
        at += strlen("digest: ");
        last = at;
    }
    if (last != NULL && strtoull(last, NULL, 16) == repeat->digest)
        return false;
    memset(&trial->fingerprint, 0, sizeof trial->fingerprint);
    trial->fingerprint.class = ERRAND__CLASS_DIFFERS;
    snprintf(trial->fingerprint.message, sizeof trial->fingerprint.message,
             "the same line gave %s in a second process",
             last != NULL ? "another digest" : "no digest");
    return true;
}

void
errand__repeat_fini(errand__repeat *repeat, bool keep)
{
    for (int i = 0; i < 2 && !keep && repeat->logs[i][0] != '\0'; i++)
        unlink(repeat->logs[i]);
    free(repeat->words);
    memset(repeat, 0, sizeof *repeat);
}
