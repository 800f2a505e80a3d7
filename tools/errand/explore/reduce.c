/* SPDX-License-Identifier: MIT */
/* reduce: what the minimiser takes away, and in which order.
 *
 * Design notes.  Blocks as in delta debugging: halves, quarters, ... single ones; after a block
 * was taken away the next one is tried at the same size.  A pass at size one without success
 * ends it.  Keys of choices hang on tasks and operations, so what is left out seldom moves what
 * stays; where it does, a few runs under other seeds look for the failure with the smaller
 * workload (reduce_items_anew). */
#include "explore/minimise.h"
#include <stdlib.h>
#include <string.h>

/* ---- blocks ----------------------------------------------------------------------------------- */

/* Takes list[begin .. end - 1] out of the candidate. */
static bool
drop(errand__candidate *candidate, const errand_choice *list, size_t begin, size_t end)
{
    errand_status status = ERRAND_OK;
    for (size_t i = begin; i < end && status == ERRAND_OK; i++) {
        errand_choice choice = list[i];
        choice.value = 1;
        status = choice.site == ERRAND_SITE_WORKLOAD
                     ? errand_tape_put(candidate->tape, &choice)
                     : errand_tape_remove(candidate->tape, choice.site, choice.key,
                                          choice.ordinal);
    }
    return status == ERRAND_OK;
}

/* Tries blocks of a size from *at on, as many as there are jobs.  true = one was taken away, and
 * the list is no longer true; *at is where to go on. */
static bool
try_blocks(errand__minimiser *minimiser, const errand_choice *list, size_t count,
           size_t size, size_t *at)
{
    errand__candidate candidates[ERRAND__TRIALS_MAX];
    size_t begins[ERRAND__TRIALS_MAX], made = 0;
    for (; made < minimiser->explore->jobs && *at < count; *at += size) {
        size_t end = *at + size < count ? *at + size : count;
        if (!errand__candidate_copy(minimiser, &candidates[made]))
            break;
        if (!drop(&candidates[made], list, *at, end)) {
            errand_tape_abandon(&candidates[made].tape);
            break;
        }
        begins[made++] = *at;
    }
    if (made == 0) { /* no memory */
        *at = count;
        return false;
    }
    int found = errand__candidate_try(minimiser, candidates, made);
    if (found >= 0)
        *at = begins[found];
    return found >= 0;
}

void
errand__reduce_blocks(errand__minimiser *minimiser, bool items)
{
    size_t count = 0, at = 0;
    bool taken = false;
    errand_choice *list = errand__candidate_list(minimiser->best, items, &count);
    minimiser->phase = items ? "workload" : "tape";
    for (size_t size = count; size > 0 && !errand__candidate_late(minimiser);) {
        if (list == NULL || at >= count) {
            if (size == 1 && !taken)
                break;
            size = size > 1 ? (size + 1) / 2 : 1;
            taken = false;
            at = 0;
        }
        if (list == NULL || count == 0)
            break;
        if (try_blocks(minimiser, list, count, size, &at)) {
            free(list);
            list = errand__candidate_list(minimiser->best, items, &count);
            taken = true;
        }
    }
    free(list);
}

/* ---- anew ----------------------------------------------------------------------------------------- */

/* The items of the best one, without one or NULL; the schedule is a seed's, under a policy. */
static bool
make_anew(const errand__minimiser *minimiser, const errand_choice *item,
          errand_choices choices, uint64_t seed, errand__candidate *out)
{
    errand_choice choice;
    errand_status status = ERRAND_OK;
    memset(out, 0, sizeof *out);
    out->choices = choices;
    out->from_seed = true;
    out->seed = seed;
    if (errand_tape_create(&out->tape) != ERRAND_OK)
        return false;
    for (size_t i = 0; errand_tape_at(minimiser->best, i, &choice); i++) {
        /* What the program itself drew makes the items, so it stays. */
        if (choice.site != ERRAND_SITE_WORKLOAD && choice.site != ERRAND_SITE_APPLICATION)
            continue;
        if (item != NULL && choice.site == ERRAND_SITE_WORKLOAD &&
            choice.key == item->key && choice.ordinal == item->ordinal)
            choice.value = 1;
        if (status == ERRAND_OK)
            status = errand_tape_put(out->tape, &choice);
    }
    if (status != ERRAND_OK)
        errand_tape_abandon(&out->tape);
    return status == ERRAND_OK;
}

/* Under some seeds; policy NULL: under the policies that they have. */
static bool
try_anew(errand__minimiser *minimiser, const errand_choice *item,
         const errand_choices *policy)
{
    enum { SEEDS = 16 };
    errand__candidate candidates[ERRAND__TRIALS_MAX];
    for (uint64_t seed = 1; seed <= SEEDS && !errand__candidate_late(minimiser);) {
        size_t made = 0;
        for (; made < minimiser->explore->jobs && seed <= SEEDS; made++, seed++) {
            errand_choices choices =
                policy != NULL ? *policy
                               : errand__explore_choices(minimiser->explore, seed);
            if (!make_anew(minimiser, item, choices, seed, &candidates[made]))
                break;
        }
        if (made == 0)
            return false;
        if (errand__candidate_try(minimiser, candidates, made) >= 0)
            return true;
    }
    return false;
}

void
errand__reduce_items_anew(errand__minimiser *minimiser)
{
    size_t count = 0;
    errand_choice *list = errand__candidate_list(minimiser->best, true, &count);
    minimiser->phase = "workload anew";
    for (size_t at = 0;
         list != NULL && at < count && count > 1 && !errand__candidate_late(minimiser);) {
        if (!try_anew(minimiser, &list[at], NULL)) {
            at++;
            continue;
        }
        free(list);
        list = errand__candidate_list(minimiser->best, true, &count);
    }
    free(list);
}

/* ---- policy ---------------------------------------------------------------------------------- */

void
errand__reduce_policy(errand__minimiser *minimiser)
{
    static const errand_policy plainer[] = {ERRAND_POLICY_FIFO, ERRAND_POLICY_SHUFFLE};
    minimiser->phase = "policy";
    for (size_t i = 0; i < sizeof plainer / sizeof plainer[0]; i++) {
        errand__candidate candidate;
        if (minimiser->choices.policy == plainer[i] || errand__candidate_late(minimiser))
            return;
        if (!errand__candidate_copy(minimiser, &candidate))
            return;
        candidate.choices.policy = plainer[i];
        errand_choices plain = candidate.choices;
        if (errand__candidate_try(minimiser, &candidate, 1) == 0 ||
            try_anew(minimiser, NULL, &plain))
            return;
    }
}

/* ---- the tape's end ---------------------------------------------------------------------------------- */

/* Keeps the first so many choices. */
static bool
try_length(errand__minimiser *minimiser, size_t length)
{
    errand__candidate candidate;
    size_t count = 0;
    errand_choice *list = errand__candidate_list(minimiser->best, false, &count);
    bool good =
        list != NULL && length < count && errand__candidate_copy(minimiser, &candidate);
    if (good && !drop(&candidate, list, length, count)) {
        errand_tape_abandon(&candidate.tape);
        good = false;
    }
    free(list);
    return good && errand__candidate_try(minimiser, &candidate, 1) == 0;
}

void
errand__reduce_end(errand__minimiser *minimiser)
{
    size_t high = errand__candidate_choices(minimiser->best), low = 0;
    minimiser->phase = "end";
    if (high == 0 || try_length(minimiser, 0))
        return;
    while (high - low > 1 && !errand__candidate_late(minimiser)) {
        size_t middle = low + (high - low) / 2;
        if (try_length(minimiser, middle)) {
            size_t left = errand__candidate_choices(minimiser->best);
            high = left < middle ? left : middle;
            if (high <= low)
                break;
        } else {
            low = middle;
        }
    }
}

/* ---- values ----------------------------------------------------------------------------------------- */

static bool
try_value(errand__minimiser *minimiser, errand_choice choice, uint64_t value)
{
    errand__candidate candidate;
    if (value >= choice.value || !errand__candidate_copy(minimiser, &candidate))
        return false;
    choice.value = value;
    if (errand_tape_put(candidate.tape, &choice) != ERRAND_OK) {
        errand_tape_abandon(&candidate.tape);
        return false;
    }
    return errand__candidate_try(minimiser, &candidate, 1) == 0;
}

/* Towards 1: by halves of the way, so that a number ends near the smallest that will do. */
static void
lower(errand__minimiser *minimiser, errand_choice choice)
{
    uint64_t low = 0; /* fails not: the blocks have tried it */
    if (try_value(minimiser, choice, 1))
        return;
    for (int i = 0; i < 12 && choice.value - low > 1; i++) {
        uint64_t middle = low + (choice.value - low) / 2;
        if (errand__candidate_late(minimiser))
            return;
        if (try_value(minimiser, choice, middle))
            choice.value = middle;
        else
            low = middle;
    }
}

/* All choices that are equal to the first one, at once: what must be equal to fail. */
static void
lower_equals(errand__minimiser *minimiser, const errand_choice *list, size_t count,
             size_t first)
{
    errand__candidate candidate;
    size_t equals = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].site == list[first].site && list[i].n == list[first].n &&
            list[i].value == list[first].value)
            equals += i >= first ? 1 : count; /* an earlier one: it was tried */
    }
    if (equals < 2 || equals > count || !errand__candidate_copy(minimiser, &candidate))
        return;
    bool good = true;
    for (size_t i = first; i < count && good; i++) {
        if (list[i].site == list[first].site && list[i].n == list[first].n &&
            list[i].value == list[first].value)
            good = drop(&candidate, list, i, i + 1);
    }
    if (good)
        errand__candidate_try(minimiser, &candidate, 1);
    else
        errand_tape_abandon(&candidate.tape);
}

void
errand__reduce_values(errand__minimiser *minimiser)
{
    size_t count = 0;
    errand_choice *list = errand__candidate_list(minimiser->best, false, &count), now;
    minimiser->phase = "values";
    for (size_t i = 0; list != NULL && i < count && !errand__candidate_late(minimiser);
         i++) {
        /* A removed one makes drop fail, and then nothing is tried. */
        lower_equals(minimiser, list, count, i);
    }
    for (size_t i = 0; list != NULL && i < count; i++) {
        if (errand__candidate_late(minimiser))
            break;
        /* An earlier one may have taken it away. */
        if (errand_tape_find(minimiser->best, list[i].site, list[i].key, list[i].ordinal,
                             &now) == ERRAND_OK &&
            now.value > 1)
            lower(minimiser, now);
    }
    free(list);
}
