/* SPDX-License-Identifier: MIT */
/* replay_drive: a turn of a replay in arrival order.
 *
 * Design notes.  The log says what comes next: a completion, a timer, somebody's turn, foreign input.
 * Each is done by the function that did it in the recorded run, which makes the same steps.  What is
 * first among those that wait for their turn hangs on nothing real, so it is not looked for; which
 * operation ended is: by its key.  A step that only the program makes cannot stand here: it should
 * have come, and did not. */
#include <string.h>
#include "runtime/replay/replay.h"

/* The search goes on where the last one ended: operations mostly end in the order of their slots. */
static errand__record *
find(errand_runtime *runtime, uint64_t key, uint8_t phase)
{
    errand_replay *replay = runtime->config.held_replay;
    uint32_t fresh = runtime->registrar.fresh;

    for (uint32_t i = 0; i < fresh; i++) {
        uint32_t slot = (replay->found + i) % fresh + 1;
        errand__record *record = &runtime->registrar.records[slot];

        if (record->phase == phase && record->extra != NULL && !record->extra->brief &&
            record->extra->key == key && record != runtime->hand) {
            replay->found = slot;
            return record;
        }
    }
    return NULL;
}

static errand__record *
find_armed(errand_runtime *runtime, uint64_t key)
{
    return find(runtime, key, ERRAND__PHASE_ARMED);
}

static void
missing(errand_runtime *runtime)
{
    errand__replay_leave(runtime, "nothing of that kind waits in this run");
}

static void
take_completion(errand_runtime *runtime, errand__turn *turn, uint64_t key,
                errand_completion_fn *fn, void *arg)
{
    errand__record *record = find_armed(runtime, key);

    if (record == NULL) {
        missing(runtime);
    } else if (errand__replay_settle(runtime, record)) {
        errand__deliver(runtime, record, fn, arg);
        errand__turn_count(turn, &turn->completions, &turn->done.completions);
    }
}

/* The first command that this very program posted, out of what has come. */
static errand_command *
own_command(errand_runtime *runtime)
{
    uintptr_t before = 0, link, *place = &runtime->pending;

    errand__collect(runtime);
    for (link = *place; link != 0; link = *place) {
        if (errand__node_tag(link) != ERRAND__NODE_COMPLETION &&
            errand__node_tag(link) != ERRAND__NODE_POSTED) {
            *place = *errand__node_next(link);
            if (*place == 0)
                runtime->pending_last = before;
            return errand__node_pointer(link);
        }
        before = link;
        place = errand__node_next(link);
    }
    return NULL;
}

/* False: the run has left the log. */
static bool
take_foreign(errand_runtime *runtime, const errand_step *step)
{
    const char *what = step->label == NULL ? "" : step->label;
    bool cancel = strcmp(what, ERRAND__FOREIGN_CANCEL) == 0;
    errand__record *record;
    errand_command *command;

    if (strcmp(what, ERRAND__FOREIGN_INTERRUPT) == 0) {
        errand__interrupt_heed(runtime);
        return true;
    }
    if (cancel || strcmp(what, ERRAND__FOREIGN_WORK) == 0) {
        record = find_armed(runtime, step->key);
        if (record == NULL)
            missing(runtime);
        else
            errand__posted_apply(runtime, record, cancel, !cancel);
        return record != NULL;
    }
    command = own_command(runtime);
    if (command == NULL)
        errand__replay_leave(runtime, "there another thread's command ran, whose "
                                      "function is not in the log");
    else
        errand__command_run(runtime, command);
    return command != NULL;
}

static void
take_deadline(errand_runtime *runtime, errand__turn *turn, uint64_t key)
{
    errand__record *record = find_armed(runtime, key);

    if (record == NULL || !errand__deadline_replay(runtime, record))
        missing(runtime);
    else
        errand__turn_count(turn, &turn->timers, &turn->done.timers);
}

static void
take_back(errand_runtime *runtime, errand__turn *turn, uint64_t key)
{
    errand__record *record = find(runtime, key, ERRAND__PHASE_HELD);

    if (record == NULL) {
        missing(runtime);
        return;
    }
    errand__held_finish(runtime, record);
    errand__turn_count(turn, &turn->commands, &turn->done.commands);
}

/* False: this turn has ended in the log. */
static bool
take_turn(errand_runtime *runtime, errand__turn *turn, const errand_step *step)
{
    switch (step->detail) {
    case ERRAND_TURN_STEP_VISIT:
        turn->passed = false;
        if (!errand__take_visit(runtime, turn))
            missing(runtime);
        return true;
    case ERRAND_TURN_STEP_DEADLINE:
        take_deadline(runtime, turn, step->key);
        return true;
    case ERRAND_TURN_STEP_BACK:
        take_back(runtime, turn, step->key);
        return true;
    case ERRAND_TURN_STEP_LATER:
        if (runtime->later == 0 && runtime->follow_first == 0)
            missing(runtime);
        errand__put_off_run(runtime);
        return true;
    default:
        if (step->detail != (turn->stop == NULL ? (uint32_t)ERRAND_TURN_STEP_END
                                                : (uint32_t)ERRAND_TURN_STEP_RUN))
            missing(runtime);
        return false;
    }
}

static void
take_timer(errand_runtime *runtime, errand__turn *turn)
{
    if (!errand__timers_fire(&runtime->scheduler, UINT64_MAX, UINT64_MAX))
        missing(runtime);
    else
        errand__turn_count(turn, &turn->timers, &turn->done.timers);
}

static void
take_reap(errand_runtime *runtime, errand__turn *turn)
{
    if (!errand__cleanup_visit(runtime))
        missing(runtime);
    else
        errand__turn_count(turn, &turn->cleanups, &turn->done.cleanups);
}

void
errand__turn_replay(errand_runtime *runtime, errand__turn *turn, errand_completion_fn *fn,
                    void *arg)
{
    turn->wall_end = 0;
    while (errand__replay_live(runtime) && !errand__turn_ended(turn)) {
        const errand_log_step *next = errand__replay_peek(runtime);
        errand_step step;

        if (next == NULL) {
            errand__replay_leave(runtime, "the run went on");
            return;
        }
        step = next->step; /* its label lives until it was met */
        runtime->scheduler.now = step.time_ns;
        switch (step.kind) {
        case ERRAND_STEP_COMPLETION:
            take_completion(runtime, turn, step.key, fn, arg);
            break;
        case ERRAND_STEP_TIMER:
            take_timer(runtime, turn);
            break;
        case ERRAND_STEP_COMMAND:
            if (take_foreign(runtime, &step))
                errand__turn_count(turn, &turn->commands, &turn->done.commands);
            break;
        case ERRAND_STEP_HOOK:
            take_reap(runtime, turn);
            break;
        case ERRAND_STEP_TURN:
            if (!take_turn(runtime, turn, &step))
                return;
            break;
        default:
            errand__replay_leave(
                runtime, step.kind == ERRAND_STEP_SUBMIT && step.context == 0
                             ? "the run came to its next turn without it (what a job "
                               "submits is not in a log)"
                             : "the run came to its next turn without it");
            return;
        }
    }
}

void
errand__replay_news(errand_runtime *runtime)
{
    for (;;) {
        const errand_log_step *next = errand__replay_peek(runtime);

        if (next == NULL || next->step.kind != ERRAND_STEP_COMMAND ||
            next->step.time_ns != runtime->scheduler.now)
            return;
        if (strcmp(next->step.label == NULL ? "" : next->step.label,
                   ERRAND__FOREIGN_COMMAND) == 0 &&
            runtime->pending != 0)
            return; /* it may be the program's own, and comes by itself */
        if (!take_foreign(runtime, &next->step))
            return;
    }
}
