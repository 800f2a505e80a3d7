/* SPDX-License-Identifier: MIT */
/* Design notes: one bounded turn of everything.
 *
 * There are four sources of work: news (completions and commands), timers (deadlines, sleeps,
 * graces), visits (tasks and continuations) and cleanups.  In arrival order a turn goes round
 * them and takes at most an eighth of its items from one before it goes to the next, so none
 * starves another (O70).  Where it stands, and how much of that eighth is left, outlives the
 * turn: turns of one item reach every source, and a turn that was cut goes on where it was (O69).
 * The seeded orders have an order of their own (drive_seeded.c) for the same sources.
 *
 * Every item may leave by longjmp.  What a turn counts stands on the stack and is lost then, and
 * nothing else is. */
#include "runtime/runtime.h"

#define ITEMS_DEFAULT 256
#define SHARE         8

typedef bool take_fn(errand_runtime *runtime, errand__turn *turn);

static void rotate(errand_runtime *runtime, errand__turn *turn);

static errand_status
budget_check(const errand_runtime *runtime, const errand_budget *budget,
             const char *function)
{
    if (budget == NULL)
        return ERRAND_OK;
    if (budget->struct_size != sizeof *budget)
        return errand__misuse(ERRAND_EINVAL, function,
                              "budget->struct_size must be sizeof(errand_budget)");
    if (budget->wall_ns != 0 && errand__seeded(runtime))
        return errand__misuse(
            ERRAND_EINVAL, function,
            "real time may not decide in a seeded order: leave wall_ns 0");
    return ERRAND_OK;
}

static uint32_t
limit_of(uint32_t budgeted)
{
    return budgeted == 0 ? UINT32_MAX : budgeted;
}

void
errand__turn_init(errand__turn *turn, const errand_budget *budget)
{
    static const errand_budget standard = {.items = ITEMS_DEFAULT};

    if (budget == NULL)
        budget = &standard;
    turn->items = limit_of(budget->items);
    turn->completions = limit_of(budget->completions);
    turn->timers = limit_of(budget->timers);
    turn->visits = limit_of(budget->visits);
    turn->cleanups = limit_of(budget->cleanups);
    turn->commands = limit_of(budget->commands);
    turn->unlimited = budget->items == 0;
    turn->taken = turn->passed = turn->collected = turn->moved = turn->over = false;
    turn->wall_end =
        budget->wall_ns == 0 ? 0 : errand__time_add(errand__clock_now(), budget->wall_ns);
    turn->until = UINT64_MAX;
    turn->registration = turn->stop_number = 0;
    turn->stop = NULL;
    turn->done = (errand_turn){.completions = 0};
}

errand_status
errand_drive(errand_runtime *runtime, const errand_budget *budget, errand_turn *out_turn)
{
    errand__turn turn;
    errand_status status;

    ERRAND__ENTER(runtime);
    if (runtime->draining || runtime->driving)
        return errand__misuse(
            ERRAND_EBUSY, __func__,
            "a drain or drive is in progress, or was left and not unwound");
    status = budget_check(runtime, budget, __func__);
    if (status != ERRAND_OK)
        return status;
    if (!runtime->external) {
        errand__turn_init(&turn, budget);
        errand__turn_run(runtime, &turn);
    }
    errand__input_turn(runtime, ERRAND_TURN_STEP_END, 0, 0);
    if (runtime->external)
        return runtime->external_status;
    if (out_turn != NULL)
        *out_turn = turn.done;
    return ERRAND_OK;
}

/* Is anything left that could ever end? */
static bool
quiescent(const errand_runtime *runtime)
{
    return runtime->scheduler.live == 0 && runtime->wait_count == 0 &&
           runtime->cleanup_count == 0 && errand__next_deadline(runtime) == UINT64_MAX;
}

static void
conclude(errand_runtime *runtime, errand__turn *turn)
{
    errand_turn *done = &turn->done;

    done->next_deadline_ns = UINT64_MAX;
    done->kind = ERRAND_TURN_PROGRESS;
    if (turn->moved || done->completions != 0 || done->timers != 0 || done->visits != 0 ||
        done->cleanups != 0 || done->commands != 0)
        return;
    done->next_deadline_ns = errand__next_deadline(runtime);
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++)
        done->inbox_needed |= runtime->leases[i]->owed != 0;
    done->inbox_needed |= atomic_load_explicit(&runtime->held, memory_order_relaxed) != 0;
    done->kind = quiescent(runtime) && !done->inbox_needed ? ERRAND_TURN_QUIESCENT
                                                           : ERRAND_TURN_IDLE;
}

void
errand__put_off_run(errand_runtime *runtime)
{
    if (runtime->follow_first == 0 && runtime->later == 0)
        return;
    errand__input_turn(runtime, ERRAND_TURN_STEP_LATER, 0, 0);
    errand__follows_run(runtime);
    if (runtime->later != 0)
        errand__later_run(runtime);
}

void
errand__turn_run(errand_runtime *runtime, errand__turn *turn)
{
    errand__scheduler *scheduler = &runtime->scheduler;

    runtime->driving = true;
    runtime->turn = turn;
    runtime->frame = errand__frame_innermost();
    errand__virtual_enter(errand__seeded(runtime));
    errand__scheduler_time(scheduler);
    turn->registration = scheduler->registrations;
    if (turn->unlimited && turn->cleanups > runtime->cleanup_count)
        turn->cleanups = (uint32_t)runtime->cleanup_count; /* each once */
    errand__visit_finish(runtime);                         /* what an unwind left */
    if (runtime->hand_live)
        errand__hand_finish(runtime);
    errand__tasks_resume_work(runtime);
    if (errand__replay_arrival(runtime)) {
        errand__turn_replay(runtime, turn, runtime->config.on_completion,
                            runtime->config.held_on_completion_arg);
    } else {
        if (runtime->follow_first != 0 || runtime->later != 0)
            errand__put_off_run(runtime);
        if (errand__seeded(runtime))
            errand__turn_seeded(runtime, turn);
        else
            rotate(runtime, turn);
    }
    if (runtime->unflushed)
        errand__flush_many(runtime);
    errand__virtual_enter(false);
    runtime->driving = false;
    runtime->turn = NULL;
    conclude(runtime, turn);
    if (runtime->fd_wanted)
        errand__fd_update(runtime);
}

/* ---- sources ------------------------------------------------------------------------------------ */

void
errand__interrupt_heed(errand_runtime *runtime)
{
    errand__block *block = runtime->block;

    atomic_store_explicit(&block->interrupted, 0, memory_order_relaxed);
    errand__foreign_mark(runtime, ERRAND__FOREIGN_INTERRUPT, 0);
    runtime->interrupted = true;
    errand__tasks_cancel_all(runtime, ERRAND_REASON_HOST_STOP);
}

bool
errand__take_news(errand_runtime *runtime, errand__turn *turn)
{
    bool completion;

    if (!errand__seeded(runtime)) { /* there the instant says when */
        errand__interrupt_take(runtime);
        if (runtime->pending == 0 && !(turn->unlimited && turn->collected))
            errand__collect(runtime);
        turn->collected = true;
    }
    if (runtime->pending == 0)
        return false;
    completion = errand__node_tag(runtime->pending) == ERRAND__NODE_COMPLETION;
    if ((completion ? turn->completions : turn->commands) == 0)
        return false;
    if (errand__deliver_next(runtime, runtime->config.on_completion,
                             runtime->config.held_on_completion_arg) ==
        ERRAND__ITEM_COMPLETION)
        errand__turn_count(turn, &turn->completions, &turn->done.completions);
    else
        errand__turn_count(turn, &turn->commands, &turn->done.commands);
    return true;
}

uint64_t
errand__timer_next(const errand_runtime *runtime)
{
    uint64_t deadline = errand__heap_next(&runtime->deadlines);
    uint64_t timer = errand__timers_next(&runtime->scheduler);

    return deadline < timer ? deadline : timer;
}

bool
errand__take_timer(errand_runtime *runtime, errand__turn *turn)
{
    uint64_t now;

    if (turn->timers == 0 || errand__timer_next(runtime) == UINT64_MAX)
        return false;
    now = errand__scheduler_time(&runtime->scheduler);
    if (errand__deadlines_fire(runtime, 1) == 0 &&
        !errand__timers_fire(&runtime->scheduler, now, turn->registration))
        return false;
    errand__turn_count(turn, &turn->timers, &turn->done.timers);
    return true;
}

bool
errand__take_visit(errand_runtime *runtime, errand__turn *turn)
{
    errand__ready *ready;

    if (turn->visits == 0)
        return false;
    ready = errand__pass_next(&runtime->scheduler);
    if (ready == NULL) {
        /* In seeded orders a pass is begun by the turn, at its instant. */
        if (errand__seeded(runtime) || (turn->unlimited && turn->passed) ||
            errand__list_empty(&runtime->scheduler.ready))
            return false;
        turn->passed = true;
        errand__pass_begin(&runtime->scheduler);
        ready = errand__pass_next(&runtime->scheduler);
    }
    if (__builtin_expect(errand__inputs(runtime), 0))
        errand__input_turn(runtime, ERRAND_TURN_STEP_VISIT, ready->key, 0);
    ready->visit(ready, runtime);
    errand__turn_count(turn, &turn->visits, &turn->done.visits);
    return true;
}

bool
errand__take_cleanup(errand_runtime *runtime, errand__turn *turn)
{
    if (turn->cleanups == 0 || runtime->cleanup_count == 0 ||
        !errand__cleanup_visit(runtime))
        return false;
    errand__turn_count(turn, &turn->cleanups, &turn->done.cleanups);
    return true;
}

/* ---- arrival order --------------------------------------------------------------------------------- */

static void
rotate(errand_runtime *runtime, errand__turn *turn)
{
    static take_fn *const sources[] = {errand__take_news, errand__take_timer,
                                       errand__take_visit, errand__take_cleanup};
    const int source_count = sizeof sources / sizeof sources[0];
    errand__scheduler *scheduler = &runtime->scheduler;
    uint32_t share = turn->unlimited ? UINT32_MAX : turn->items / SHARE;
    int empty = 0, rounds = 0;

    if (share == 0)
        share = 1;
    if (scheduler->turn_left == 0 || scheduler->turn_left > share)
        scheduler->turn_left = share;
    while (empty < source_count && !(turn->unlimited && rounds++ == source_count)) {
        bool any = false;

        while (scheduler->turn_left != 0 && !errand__turn_ended(turn) &&
               sources[scheduler->turn_source](runtime, turn)) {
            scheduler->turn_left--;
            any = true;
        }
        if (scheduler->turn_left != 0 && errand__turn_ended(turn))
            return; /* cut: the next turn goes on here */
        scheduler->turn_source = (scheduler->turn_source + 1) % source_count;
        scheduler->turn_left = share;
        empty = any ? 0 : empty + 1;
        if (errand__turn_ended(turn))
            return;
    }
}
