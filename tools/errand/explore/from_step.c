/* SPDX-License-Identifier: MIT */
/* from_step: at which step a failure is decided.
 *
 * Design notes.  The failing run is made again with marks; from a mark go branches, each with a seed
 * of its own for all that is chosen behind it.  If all of a mark's branches fail, so do those of the
 * marks behind it: thus the first such step is found by bisection, among the marks of one run and
 * then, in a next run, between the two that are left, until these are neighbours.  A run is a
 * function of its choices, so each of these runs goes through the same steps.
 * Only so many branches are tried: what one in a thousand would do may be missed. */
#include "explore/marks.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "log/log_view.h"

typedef struct point { /* what was found out about a mark */
    errand__mark mark;
    uint64_t ran, failed, same; /* branches; same: in the same way */
    char *good_tape, *bad_tape; /* of one that did not fail, and of one that did */
} point;

typedef struct search {
    const errand__explore *explore;
    errand__script *script;
    errand__trial *trials;
    errand__finding *finding;
    errand_choices choices; /* of the failing run, with a tape that records */
    errand__marks marks;
    uint64_t steps; /* of the failing run */
    uint64_t runs, branches, begun_ns;
} search;

static void
point_fini(point *at)
{
    free(at->good_tape);
    free(at->bad_tape);
    memset(at, 0, sizeof *at);
}

/* ---- runs and branches ------------------------------------------------------------------------------- */

static void
end_all(search *all)
{
    for (uint32_t i = 0; i < all->explore->jobs; i++)
        errand__trial_kill(&all->trials[i]);
}

/* One of the running trials, once it has ended; NULL = none runs. */
static errand__trial *
await_trial(search *all)
{
    for (;;) {
        bool running = false;
        for (uint32_t i = 0; i < all->explore->jobs; i++)
            running = running || all->trials[i].running;
        if (!running)
            return NULL;
        errand__trial *trial = errand__trial_wait(all->trials, all->explore->jobs,
                                                  errand__trial_now() + 1000000000U);
        if (errand__explore_signal() != 0)
            end_all(all);
        if (trial != NULL)
            return trial;
    }
}

/* The failing run, with marks; fini them in any case.  false: it did not come again, or cannot have
 * marks; a message said so. */
static bool
run_marked(search *all, const uint64_t *plan, size_t count)
{
    errand__trial *trial = &all->trials[0];
    if (!errand__marks_init(&all->marks, plan, count))
        return false;
    trial->options = all->explore->run;
    trial->options.held_script = all->script;
    trial->options.seed = all->finding->seed;
    trial->options.marks = &all->marks;
    trial->choices = all->choices;
    trial->timeout_ns = all->explore->timeout_ns;
    all->runs++;
    if (!errand__trial_start(trial))
        return false;
    errand__marks_started(&all->marks);
    await_trial(all);
    bool same = errand__fingerprint_same(&trial->fingerprint, &all->finding->fingerprint);
    errand__trial_fini(trial);
    const char *problem = all->marks.shared->problem;
    if (errand__explore_signal() != 0)
        return false;
    if (problem[0] != '\0')
        errand__help_problem(
            "--from-step: a run cannot be forked at step %llu: %s.  Give a step before "
            "the "
            "script's first open file, socket, process, web request or foreign call, or "
            "leave --from-step out",
            (unsigned long long)all->marks.shared->refused, problem);
    else if (!same)
        errand__help_problem("--from-step: the run did not fail in the same way again: "
                             "something besides its choices takes part");
    all->steps = all->marks.shared->steps;
    return same && problem[0] == '\0';
}

static char *
copy_tape(const errand__trial *trial)
{
    return trial->verdict.tape != NULL ? strdup(trial->verdict.tape) : NULL;
}

static void
take_branch(search *all, errand__trial *trial, point *at)
{
    bool failed = trial->fingerprint.class != ERRAND__CLASS_GOOD;
    char **tape = failed ? &at->bad_tape : &at->good_tape;
    at->ran++;
    at->failed += failed;
    at->same += errand__fingerprint_same(&trial->fingerprint, &all->finding->fingerprint);
    if (*tape == NULL)
        *tape = copy_tape(trial);
    errand__trial_fini(trial);
}

static bool
start_branch(search *all, errand__trial *trial, size_t index, uint64_t number)
{
    trial->options.seed = all->finding->seed + 1 + number;
    trial->from = &all->marks;
    trial->mark = index;
    trial->timeout_ns = all->explore->timeout_ns;
    all->branches++;
    if (errand__trial_start(trial))
        return true;
    errand__trial_fini(trial);
    return false;
}

/* Goes on from a mark in all ways that were asked for.  false: not all could be started, or a signal
 * came. */
static bool
judge(search *all, size_t index, point *at)
{
    uint64_t next = 0, wanted = all->explore->branches;
    bool good = true;
    point_fini(at);
    at->mark = all->marks.shared->marks[index];
    for (;;) {
        for (uint32_t i = 0; i < all->explore->jobs && good && next < wanted; i++) {
            if (!all->trials[i].running)
                good = start_branch(all, &all->trials[i], index, next++);
        }
        errand__trial *trial = await_trial(all);
        if (trial == NULL)
            return good && errand__explore_signal() == 0;
        take_branch(all, trial, at);
        good = good && errand__explore_signal() == 0;
    }
}

/* ---- where it is decided ---------------------------------------------------------------------------- */

/* Of the marks that are set: the last one of which some branch does not fail goes to *open, the
 * first one of which all fail to *shut. */
static bool
bisect_marks(search *all, point *open, point *shut)
{
    size_t from = 0, to = all->marks.count;
    point at = {0};
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (!judge(all, middle, &at)) {
            point_fini(&at);
            return false;
        }
        bool all_fail = at.failed == at.ran;
        point *side = all_fail ? shut : open, before = *side;
        *side = at;
        at = before;
        if (all_fail)
            to = middle;
        else
            from = middle + 1;
    }
    point_fini(&at);
    return true;
}

/* Narrows down until open and shut are neighbours.  Step 0 of either: there was none. */
static bool
bisect(search *all, point *open, point *shut)
{
    uint64_t last = all->steps + 1;
    for (;;) {
        uint64_t from = open->mark.step,
                 to = shut->mark.step != 0 ? shut->mark.step : last;
        uint64_t plan[ERRAND__MARKS_MAX], inside = to - from - 1;
        size_t count = inside < ERRAND__MARKS_MAX ? (size_t)inside : ERRAND__MARKS_MAX;
        if (count == 0)
            return true;
        for (size_t i = 0; i < count; i++)
            plan[i] = from + (uint64_t)((double)(to - from) * (double)(i + 1) /
                                        (double)(count + 1));
        bool good = run_marked(all, plan, count) && bisect_marks(all, open, shut);
        errand__marks_fini(&all->marks);
        if (!good)
            return false;
    }
}

/* ---- what is said ------------------------------------------------------------------------------------- */

static void
print_mark(const errand__mark *mark)
{
    char time[32];
    errand__log_time(mark->time_ns, time, sizeof time);
    printf("%s, %s ", time, mark->kind);
    errand__progress_text(stdout, mark->who);
}

/* Does the line end well? */
static bool
ends_well(search *all, char **words)
{
    errand__trial *trial = &all->trials[0];
    trial->words = words;
    trial->timeout_ns = all->explore->timeout_ns;
    bool good =
        errand__trial_start(trial) && await_trial(all) != NULL && trial->wait_status == 0;
    errand__trial_fini(trial);
    return good;
}

/* Keeps the tape of a branch, and prints the line that makes it again. */
static void
print_line(search *all, const char *title, const char *tape, uint64_t step, bool fails,
           char *path)
{
    path[0] = '\0';
    if (tape == NULL)
        return;
    errand__keep_name(all->explore, all->finding->seed, path, ERRAND__PATH_SIZE);
    size_t used = strlen(path);
    snprintf(path + used, ERRAND__PATH_SIZE - used, "-step%" PRIu64 "-%s.tape", step,
             fails ? "fails" : "good");
    FILE *file = fopen(path, "we");
    bool written = file != NULL && fputs(tape, file) >= 0;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (!written) {
        errand__help_problem("%s: %s: give a folder that can be written by --keep", path,
                             strerror(errno));
        return;
    }
    errand_choices choices = all->choices;
    char **words = errand__reproduce_words(all->explore, all->finding->seed, &choices,
                                           (errand__reproduce){.tape = path});
    if (words == NULL)
        return;
    char *line = errand__reproduce_line(words);
    printf("  %s:\n    %s\n", title, line != NULL ? line : "(memory ran out)");
    free(line);
    if (ends_well(all, words) == fails)
        puts("    (this line ended otherwise: something besides its choices takes part)");
    free(words);
}

static void
print_counts(const point *at)
{
    printf("%" PRIu64 " of %" PRIu64, at->failed, at->ran);
    if (at->same != at->failed)
        printf(", %" PRIu64 " of them in the same way", at->same);
}

static void
print_effort(const search *all)
{
    printf("%" PRIu64 " run%s with marks, %" PRIu64 " branches in %.1f s\n", all->runs,
           all->runs == 1 ? "" : "s", all->branches,
           (double)(errand__trial_now() - all->begun_ns) / 1e9);
    errand__output_flush();
}

/* A branch that leaves step N to chance goes on from behind step N - 1. */
static void
print_decided(search *all, const point *open, const point *shut)
{
    uint64_t step = shut->mark.step;
    if (open->mark.step == 0 && step == 1) {
        printf("from step 2 on every branch fails, of %" PRIu64
               " steps: what is chosen in "
               "the run makes no difference\n",
               all->steps);
        return;
    }
    if (step == 0) {
        printf("no step decides: also from the last one, step %" PRIu64
               ", on some branches "
               "do not fail\n",
               all->steps);
        return;
    }
    printf("step %" PRIu64 " of %" PRIu64 " decides: ", step, all->steps);
    print_mark(&shut->mark);
    printf("\n  from step %" PRIu64 " on every branch fails: ", step + 1);
    print_counts(shut);
    printf("\n  from step %" PRIu64 " on some do not; those that do: ", step);
    print_counts(open);
    putchar('\n');
    errand__decided *decided = &all->finding->decided;
    *decided = (errand__decided){.step = step,
                                 .steps = all->steps,
                                 .time_ns = shut->mark.time_ns,
                                 .branches = open->ran,
                                 .failed = open->failed};
    memcpy(decided->kind, shut->mark.kind, sizeof decided->kind);
    memcpy(decided->who, shut->mark.who, sizeof decided->who);
    print_line(all, "one that does not", open->good_tape, step, false, decided->tape);
}

static bool
find_deciding(search *all)
{
    point open = {0}, shut = {0};
    bool good = run_marked(all, NULL, 0);
    errand__marks_fini(&all->marks);
    good = good && bisect(all, &open, &shut);
    if (good)
        print_decided(all, &open, &shut);
    point_fini(&open);
    point_fini(&shut);
    return good;
}

static bool
try_step(search *all, uint64_t step)
{
    const uint64_t plan[] = {step - 1};
    char path[ERRAND__PATH_SIZE];
    point at = {0};
    bool good = run_marked(all, plan, 1);
    if (good && all->marks.shared->marks[0].step == 0) {
        errand__help_problem("--from-step %" PRIu64 ": the run has %" PRIu64 " steps",
                             step, all->steps);
        good = false;
    }
    good = good && judge(all, 0, &at);
    errand__marks_fini(&all->marks);
    if (good) {
        printf("from step %" PRIu64 " of %" PRIu64 " on (behind ", step, all->steps);
        print_mark(&at.mark);
        printf("), branches that fail: ");
        print_counts(&at);
        putchar('\n');
        print_line(all, "one that does not", at.good_tape, step, false, path);
        print_line(all, "one that does", at.bad_tape, step, true, path);
    }
    point_fini(&at);
    return good;
}

bool
errand__from_step(const errand__explore *explore, errand__script *script,
                  errand__trial *trials, errand__finding *finding)
{
    search all = {.explore = explore,
                  .script = script,
                  .trials = trials,
                  .finding = finding,
                  .begun_ns = errand__trial_now()};
    all.choices = errand__explore_choices(explore, finding->seed);
    if (errand_tape_create(&all.choices.held_record) != ERRAND_OK) {
        errand__help_problem("--from-step: memory ran out");
        return false;
    }
    if (!explore->quiet)
        putchar('\n');
    bool good = explore->from_step == ERRAND__FROM_STEP_AUTO
                    ? find_deciding(&all)
                    : try_step(&all, explore->from_step);
    if (good)
        print_effort(&all);
    errand_tape_abandon(&all.choices.held_record);
    errand__trial_sweep(trials, explore->jobs);
    return good;
}
