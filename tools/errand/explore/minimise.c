/* SPDX-License-Identifier: MIT */
/* minimise: makes a failure small: plain policy, few items, few choices, low values. */
#include "explore/minimise.h"
#include <stdlib.h>
#include <string.h>

/* Runs the seed once more for its tape.  false = the failure did not come, or brought none. */
static bool
record(errand__minimiser *minimiser, errand__minimised *out)
{
    const errand__explore *explore = minimiser->explore;
    errand__trial *trial = &minimiser->trials[0];
    uint64_t begun_ns = errand__trial_now();
    trial->options = explore->run;
    trial->options.held_script = minimiser->held_script;
    trial->options.seed = minimiser->seed;
    trial->choices = minimiser->choices;
    trial->choices.held_record = minimiser->record;
    trial->timeout_ns = explore->timeout_ns;
    if (!errand__trial_start(trial)) {
        errand__trial_fini(trial);
        out->why = "no process could be started";
        return false;
    }
    while (trial->running) {
        errand__trial_wait(trial, 1, errand__trial_now() + 1000000000U);
        if (errand__explore_signal() != 0)
            errand__trial_kill(trial);
    }
    uint64_t took_ns = errand__trial_now() - begun_ns;
    uint64_t limit_ns = 10 * took_ns + 2000000000U;
    minimiser->timeout_ns =
        limit_ns < explore->timeout_ns ? limit_ns : explore->timeout_ns;
    bool same = errand__fingerprint_same(&trial->fingerprint, minimiser->wanted);
    if (!same)
        out->why = "the seed did not fail in the same way again";
    else if (trial->verdict.tape == NULL)
        out->why = "a run that ends its process leaves no record of its choices";
    same = same && trial->verdict.tape != NULL &&
           errand_tape_parse(trial->verdict.tape, trial->verdict.tape_size,
                             &minimiser->best, NULL, 0) == ERRAND_OK;
    errand__trial_fini(trial);
    return same;
}

/* The record itself must fail in the same way, else no part of it says anything. */
static bool
repeat(errand__minimiser *minimiser, errand__minimised *out)
{
    errand__candidate candidate;
    minimiser->phase = "record";
    if (errand__candidate_copy(minimiser, &candidate) &&
        errand__candidate_try(minimiser, &candidate, 1) == 0)
        return true;
    out->why = "the record of the seed's choices did not fail in the same way";
    return false;
}

static void
reduce(errand__minimiser *minimiser, errand__minimised *out)
{
    out->items_before = errand__candidate_items(minimiser->best);
    out->choices_before = errand__candidate_choices(minimiser->best);
    errand__reduce_policy(minimiser);
    errand__reduce_blocks(minimiser, true);
    errand__reduce_items_anew(minimiser);
    errand__reduce_policy(minimiser);
    errand__reduce_end(minimiser);
    errand__reduce_blocks(minimiser, false);
    errand__reduce_blocks(minimiser, true); /* fewer choices may need fewer items */
    errand__reduce_policy(minimiser);
    errand__reduce_values(minimiser);
    out->items = errand__candidate_items(minimiser->best);
    out->choices = errand__candidate_choices(minimiser->best);
    out->in_time = !errand__candidate_late(minimiser);
    out->runs = minimiser->runs;
    out->choices_of = minimiser->choices;
}

static void
write_and_prove(errand__minimiser *minimiser, errand__minimised *out)
{
    char name[sizeof out->path - 8];
    errand__keep_name(minimiser->explore, minimiser->seed, name, sizeof name);
    snprintf(out->path, sizeof out->path, "%s.tape", name);
    if (errand_tape_write(minimiser->best, out->path) != ERRAND_OK) {
        errand__help_problem("%s: the tape could not be written: give --keep a folder "
                             "that takes files",
                             out->path);
        out->why = "the tape could not be written";
        return;
    }
    out->made = true;
    char **words =
        errand__reproduce_words(minimiser->explore, minimiser->seed, &out->choices_of,
                                (errand__reproduce){.tape = out->path});
    out->proven = words != NULL &&
                  errand__reproduce_prove(minimiser->explore, words, minimiser->wanted);
    free(words);
}

void
errand__minimise(const errand__explore *explore, errand__script *held_script,
                 errand__trial *trials, const errand__fingerprint *wanted, uint64_t seed,
                 errand__minimised *out)
{
    uint64_t begun_ns = errand__trial_now();
    errand__minimiser minimiser = {
        .explore = explore,
        .held_script = held_script,
        .wanted = wanted,
        .seed = seed,
        .end_ns = begun_ns + explore->budget_ns,
        .choices = errand__explore_choices(explore, seed),
        .trials = trials,
    };
    memset(out, 0, sizeof *out);
    out->tried = true;
    errand__meter_init(&minimiser.meter, explore->quiet);
    if (errand_tape_create(&minimiser.record) != ERRAND_OK) {
        out->why = "memory ran out";
        return;
    }
    if (record(&minimiser, out) && repeat(&minimiser, out)) {
        reduce(&minimiser, out);
        errand__meter_wipe(&minimiser.meter);
        write_and_prove(&minimiser, out);
    }
    errand__meter_wipe(&minimiser.meter);
    errand__trial_sweep(trials, explore->jobs);
    errand_tape_abandon(&minimiser.best);
    errand_tape_abandon(&minimiser.record);
    out->elapsed_ns = errand__trial_now() - begun_ns;
}
