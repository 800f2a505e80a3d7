/* SPDX-License-Identifier: MIT */
/* candidate: one attempt of the minimiser, run in a child.
 *
 * Design notes.  The tape needs no file: the child has the parent's memory, so it finds the
 * candidate there and fills its own copy of the empty record, which its verdict brings back as
 * text.  Choices of 0 are dropped, because 0 is what a tape's missing choice means.  Several
 * candidates run at once, but the first by number is taken, so that a result hangs on no timing
 * but the budget's. */
#include "explore/minimise.h"
#include <stdlib.h>
#include <string.h>

bool
errand__candidate_late(const errand__minimiser *minimiser)
{
    return errand__explore_signal() != 0 || errand__trial_now() >= minimiser->end_ns;
}

static bool
counts(const errand_choice *choice, bool items)
{
    if (items)
        return choice->site == ERRAND_SITE_WORKLOAD && choice->value == 0;
    return choice->site != ERRAND_SITE_WORKLOAD && choice->value != 0;
}

static size_t
count_of(errand_tape *tape, bool items)
{
    errand_choice choice;
    size_t count = 0;
    for (size_t i = 0; errand_tape_at(tape, i, &choice); i++)
        count += counts(&choice, items);
    return count;
}

size_t
errand__candidate_items(errand_tape *tape)
{
    return count_of(tape, true);
}

size_t
errand__candidate_choices(errand_tape *tape)
{
    return count_of(tape, false);
}

errand_choice *
errand__candidate_list(errand_tape *tape, bool items, size_t *out_count)
{
    errand_choice *list = malloc((errand_tape_count(tape) + 1) * sizeof *list), choice;
    *out_count = 0;
    for (size_t i = 0; list != NULL && errand_tape_at(tape, i, &choice); i++) {
        if (counts(&choice, items))
            list[(*out_count)++] = choice;
    }
    return list;
}

/* A tape with what matters of another: all of workloads, and what is not 0. */
static errand_tape *
copy_tape(errand_tape *tape)
{
    errand_tape *copy = NULL;
    errand_choice choice;
    if (errand_tape_create(&copy) != ERRAND_OK)
        return NULL;
    for (size_t i = 0; errand_tape_at(tape, i, &choice); i++) {
        if (choice.value == 0 && choice.site != ERRAND_SITE_WORKLOAD)
            continue;
        if (errand_tape_put(copy, &choice) != ERRAND_OK) {
            errand_tape_abandon(&copy);
            return NULL;
        }
    }
    return copy;
}

bool
errand__candidate_copy(const errand__minimiser *minimiser, errand__candidate *out)
{
    memset(out, 0, sizeof *out);
    out->choices = minimiser->choices;
    out->seed = minimiser->seed;
    out->tape = copy_tape(minimiser->best);
    return out->tape != NULL;
}

/* ---- running ---------------------------------------------------------------------------------- */

static bool
start(errand__minimiser *minimiser, const errand__candidate *candidate,
      errand__trial *trial)
{
    trial->options = minimiser->explore->run;
    trial->options.held_script = minimiser->held_script;
    trial->options.seed = candidate->seed;
    trial->choices = candidate->choices;
    trial->choices.provider = ERRAND_PROVIDER_TAPE;
    trial->choices.held_tape = candidate->tape;
    trial->choices.seed_missing = candidate->from_seed;
    trial->choices.held_record = minimiser->record;
    trial->timeout_ns = minimiser->timeout_ns;
    minimiser->runs++;
    if (errand__trial_start(trial))
        return true;
    errand__trial_fini(trial);
    return false;
}

static void
show(errand__minimiser *minimiser)
{
    char text[192], items[48] = "";
    if (!errand__meter_due(&minimiser->meter))
        return;
    uint64_t now = errand__trial_now(), budget = minimiser->explore->budget_ns;
    uint64_t begun = minimiser->end_ns - budget;
    size_t left = errand__candidate_items(minimiser->best);
    if (left > 0)
        snprintf(items, sizeof items, "%zu items, ", left);
    snprintf(text, sizeof text, "%s: %s%zu choices  %llu runs  %u of %u s",
             minimiser->phase, items, errand__candidate_choices(minimiser->best),
             (unsigned long long)minimiser->runs, (unsigned)((now - begun) / 1000000000U),
             (unsigned)(budget / 1000000000U));
    errand__meter_draw(&minimiser->meter, now - begun < budget ? now - begun : budget,
                       budget, text);
}

/* The child's record, or what the candidate was if it could send none. */
static bool
take(errand__minimiser *minimiser, const errand__candidate *candidate,
     errand__trial *trial)
{
    errand_tape *recorded = NULL, *best = NULL;
    if (trial->verdict.tape != NULL &&
        errand_tape_parse(trial->verdict.tape, trial->verdict.tape_size, &recorded, NULL,
                          0) == ERRAND_OK)
        best = copy_tape(recorded);
    else
        best = copy_tape(candidate->tape);
    errand_tape_abandon(&recorded);
    if (best == NULL)
        return false;
    errand_tape_abandon(&minimiser->best);
    minimiser->best = best;
    minimiser->choices = candidate->choices;
    return true;
}

int
errand__candidate_try(errand__minimiser *minimiser, errand__candidate *candidates,
                      size_t count)
{
    errand__trial *trials = minimiser->trials;
    size_t running = 0;
    int found = -1;
    for (size_t i = 0; i < count; i++)
        running += start(minimiser, &candidates[i], &trials[i]);
    while (running > 0) {
        errand__trial *ended =
            errand__trial_wait(trials, count, errand__meter_next(&minimiser->meter));
        running -= ended != NULL;
        if (errand__explore_signal() != 0) {
            for (size_t i = 0; i < count; i++)
                errand__trial_kill(&trials[i]);
        }
        show(minimiser);
    }
    for (size_t i = 0; i < count; i++) {
        if (found < 0 && trials[i].output != NULL && errand__explore_signal() == 0 &&
            errand__fingerprint_same(&trials[i].fingerprint, minimiser->wanted) &&
            take(minimiser, &candidates[i], &trials[i]))
            found = (int)i;
        errand__trial_fini(&trials[i]);
        errand_tape_abandon(&candidates[i].tape);
    }
    return found;
}
