/* SPDX-License-Identifier: MIT */
/* explore: one script under many seeds, a process for each.
 *
 * Design notes.  The script is read once and checked before the first child, so that an edit in
 * the middle changes nothing and a script that is no Lua is said once.  Signals are blocked but
 * while it waits (trial.c), so none is missed: the first ends the exploration and prints
 * what was found, the second ends the process. */
#include "explore/marks.h"
#include "explore/minimise.h"
#include <inttypes.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "errand/executor.h"

typedef struct exploration {
    errand__explore explore;
    errand__script script;
    errand__findings findings;
    errand__explored explored;
    errand__meter meter;
    errand__trial *trials;   /* explore.jobs */
    errand__repeat *repeats; /* of each */
    uint64_t next;           /* seed */
    bool ended;              /* no more seeds are begun */
    bool refused;            /* because no process could be started */
} exploration;

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t asked; /* written by the handler alone */

static void
on_signal(int number)
{
    if (asked != 0)
        _exit(ERRAND__EXIT_SIGNAL + number);
    asked = number;
}

int
errand__explore_signal(void)
{
    return asked;
}

static void
install_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    action.sa_mask = set;
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* ---- before the first seed ------------------------------------------------------------------------ */

/* false = it is no Lua; a message said why. */
static bool
check_script(const errand__script *script)
{
    lua_State *L = luaL_newstate();
    if (L == NULL)
        return true; /* the trials will say so */
    bool good =
        luaL_loadbufferx(L, script->text, script->size, script->chunk, "t") == LUA_OK;
    if (!good)
        errand__help_problem("%s", lua_tostring(L, -1));
    lua_close(L);
    return good;
}

/* The library measures the processor's clock when it is first needed, for a millisecond: here once,
 * and not in each child. */
static void
warm(void)
{
    errand_executor *executor;
    if (errand_manual_create(NULL, &executor) == ERRAND_OK)
        errand_executor_abandon(&executor);
}

/* How many picks a run has in plain order: policies spread their changes over so many. */
static bool
learn_steps(exploration *all)
{
    errand__trial *trial = &all->trials[0];
    trial->options = all->explore.run;
    trial->options.held_script = &all->script;
    trial->options.seed = all->explore.first;
    trial->choices = (errand_choices)ERRAND_CHOICES_INIT;
    trial->choices.policy = ERRAND_POLICY_FIFO;
    trial->timeout_ns = all->explore.timeout_ns;
    if (!errand__trial_start(trial))
        return false;
    while (trial->running) {
        errand__trial_wait(trial, 1, errand__trial_now() + 1000000000U);
        if (asked != 0)
            errand__trial_kill(trial);
    }
    all->explore.steps = trial->verdict.picks;
    errand__trial_fini(trial);
    return true;
}

/* ---- the seeds -------------------------------------------------------------------------------- */

static void
tell_new(exploration *all, uint64_t seed, const errand__fingerprint *what)
{
    if (!all->meter.shown)
        return;
    errand__meter_wipe(&all->meter);
    fprintf(stderr, "seed %" PRIu64 ": %s", seed, errand__class_name(what->class));
    fprintf(stderr, what->site[0] != '\0' ? " at %s: " : "%s: ", what->site);
    errand__progress_text(stderr, what->message);
    fputc('\n', stderr);
}

/* false = no more can be started. */
static bool
start_next(exploration *all, errand__trial *trial)
{
    trial->options = all->explore.run;
    trial->options.held_script = &all->script;
    trial->options.seed = all->next;
    trial->choices = errand__explore_choices(&all->explore, all->next);
    trial->timeout_ns = all->explore.timeout_ns;
    if (all->explore.repeat > 1)
        errand__repeat_first(&all->explore, trial, &all->repeats[trial - all->trials]);
    if (!errand__trial_start(trial)) {
        errand__trial_fini(trial);
        return false;
    }
    all->ended = all->next == all->explore.last;
    all->next++;
    return true;
}

/* The run of a seed may have found something. */
static errand__finding *
add_failed(exploration *all, errand__trial *trial)
{
    errand__finding *finding = NULL;
    bool first = false;
    if (trial->fingerprint.class != ERRAND__CLASS_GOOD)
        finding = errand__findings_add(&all->findings, trial, &first);
    if (first)
        tell_new(all, trial->options.seed, &trial->fingerprint);
    return finding;
}

/* One of two runs of a seed has ended.  true = the other one runs now. */
static bool
take_repeated(exploration *all, errand__trial *trial)
{
    errand__repeat *repeat = &all->repeats[trial - all->trials];
    bool keep = false;
    if (repeat->words == NULL) {
        bool sent = trial->verdict.sent;
        add_failed(all, trial);
        if (sent && errand__repeat_again(&all->explore, trial, repeat))
            return true;
        errand__repeat_fini(repeat, false);
        return false;
    }
    if (errand__repeat_differs(trial, repeat)) {
        errand__finding *finding = add_failed(all, trial);
        keep = finding != NULL && finding->seed == trial->options.seed;
        for (int i = 0; i < 2 && keep; i++) {
            if (finding->logs[i] != NULL)
                unlink(finding->logs[i]); /* of a greater seed */
            free(finding->logs[i]);
            finding->logs[i] = strdup(repeat->logs[i]);
        }
    }
    errand__repeat_fini(repeat, keep);
    return false;
}

static void
take_ended(exploration *all, errand__trial *trial)
{
    if (all->explore.repeat > 1) {
        if (take_repeated(all, trial))
            return;
    } else {
        add_failed(all, trial);
    }
    all->explored.done++;
    if (trial->timed_out || trial->fingerprint.class == ERRAND__CLASS_CRASH)
        errand__trial_sweep(all->trials, all->explore.jobs);
    if (all->explore.stop_after != 0 && all->findings.count >= all->explore.stop_after)
        all->ended = true;
    errand__trial_fini(trial);
}

static void
show(exploration *all)
{
    uint64_t total = all->explore.last - all->explore.first;
    total += total != UINT64_MAX;
    char text[192];
    if (!errand__meter_due(&all->meter))
        return;
    errand__meter_count(&all->meter, all->explored.done, total, text, sizeof text);
    size_t used = strlen(text);
    if (all->findings.failed != 0)
        snprintf(text + used, sizeof text - used, "  %" PRIu64 " failed, %zu distinct",
                 all->findings.failed, all->findings.count);
    errand__meter_draw(&all->meter, all->explored.done, total, text);
}

/* Begins what there is room for.  Returns how many run. */
static uint32_t
fill(exploration *all)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < all->explore.jobs; i++) {
        errand__trial *trial = &all->trials[i];
        if (!trial->running && !all->ended && !start_next(all, trial))
            all->ended = all->refused = true;
        running += trial->running;
    }
    return running;
}

static void
kill_all(exploration *all)
{
    all->ended = true;
    for (uint32_t i = 0; i < all->explore.jobs; i++)
        errand__trial_kill(&all->trials[i]);
}

static void
explore_seeds(exploration *all)
{
    uint32_t jobs = all->explore.jobs;
    while (fill(all) > 0) {
        errand__trial *trial =
            errand__trial_wait(all->trials, jobs, errand__meter_next(&all->meter));
        if (trial != NULL && asked == 0)
            take_ended(all, trial);
        else if (trial != NULL) {
            errand__repeat_fini(&all->repeats[trial - all->trials], false);
            errand__trial_fini(trial);
        }
        if (asked != 0)
            kill_all(all);
        show(all);
    }
    errand__trial_sweep(all->trials, jobs);
    errand__meter_wipe(&all->meter);
    all->explored.elapsed_ns = errand__trial_now() - all->meter.begun_ns;
}

/* ---- after the last one ------------------------------------------------------------------------- */

static void
prove(exploration *all)
{
    for (size_t i = 0; i < all->findings.count && asked == 0; i++) {
        errand__finding *finding = &all->findings.list[i];
        if (finding->fingerprint.class == ERRAND__CLASS_DIFFERS)
            continue; /* one run alone says nothing */
        errand_choices choices = errand__explore_choices(&all->explore, finding->seed);
        char **words =
            errand__reproduce_words(&all->explore, finding->seed, &choices,
                                    (errand__reproduce){.tape = all->explore.tape_path});
        if (words == NULL)
            continue;
        finding->proven =
            errand__reproduce_prove(&all->explore, words, &finding->fingerprint);
        finding->proof_tried = asked == 0;
        free(words);
    }
}

static void
minimise(exploration *all)
{
    for (size_t i = 0; i < all->findings.count && asked == 0; i++) {
        errand__finding *finding = &all->findings.list[i];
        if (finding->fingerprint.class == ERRAND__CLASS_DIFFERS)
            continue;
        finding->minimised = calloc(1, sizeof *finding->minimised);
        if (finding->minimised != NULL)
            errand__minimise(&all->explore, &all->script, all->trials,
                             &finding->fingerprint, finding->seed, finding->minimised);
    }
}

static int
finish(exploration *all)
{
    bool searched = true;
    errand__findings_sort(&all->findings);
    if (all->meter.shown && all->findings.count > 0)
        fputc('\n', stderr); /* below what was told on the way */
    prove(all);
    if (all->explore.minimise)
        minimise(all);
    errand__trial_sweep(all->trials, all->explore.jobs);
    all->explored.signal = asked;
    errand__findings_print(&all->explore, &all->findings, &all->explored);
    if (all->explore.from_step != 0 && all->findings.count > 0 && asked == 0)
        searched = errand__from_step(&all->explore, &all->script, all->trials,
                                     &all->findings.list[0]);
    all->explored.signal = asked;
    bool written = errand__findings_write(&all->explore, &all->findings, &all->explored);
    if (asked != 0)
        errand__help_problem("ended by %s before the last seed",
                             errand__signals_name(asked));
    if (!searched && asked == 0)
        return ERRAND__EXIT_REFUSED;
    if (all->findings.count > 0)
        return ERRAND__EXIT_SCRIPT;
    if (asked != 0)
        return ERRAND__EXIT_SIGNAL + asked;
    if (all->refused)
        return ERRAND__EXIT_REFUSED;
    return written ? ERRAND__EXIT_GOOD : ERRAND__EXIT_OUTPUT;
}

static int
explore_all(exploration *all)
{
    all->next = all->explore.first;
    errand__meter_init(&all->meter, all->explore.quiet);
    explore_seeds(all);
    return finish(all);
}

int
errand__explore_main(int argc, char **argv)
{
    exploration all;
    memset(&all, 0, sizeof all);
    if (!errand__explore_options_read(argc, argv, &all.explore))
        return ERRAND__EXIT_USAGE;
    if (all.explore.help)
        return errand__help_print(stdout, "explore") ? ERRAND__EXIT_GOOD
                                                     : ERRAND__EXIT_USAGE;
    if (!errand__script_init(&all.script, &all.explore.run))
        return ERRAND__EXIT_SCRIPT;
    int code = ERRAND__EXIT_SCRIPT;
    all.trials = calloc(all.explore.jobs, sizeof *all.trials);
    all.repeats = calloc(all.explore.jobs, sizeof *all.repeats);
    if (all.trials == NULL || all.repeats == NULL) {
        errand__help_problem("memory ran out: use fewer --jobs");
        code = ERRAND__EXIT_REFUSED;
    } else if (check_script(&all.script)) {
        install_signals();
        warm();
        code = ERRAND__EXIT_REFUSED;
        if (learn_steps(&all))
            code = errand__output_code(explore_all(&all));
    }
    errand__findings_fini(&all.findings);
    free(all.trials);
    free(all.repeats);
    errand__script_fini(&all.script);
    errand_tape_abandon(&all.explore.tape);
    return code;
}
