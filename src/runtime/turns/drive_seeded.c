/* SPDX-License-Identifier: MIT */
/* Design notes: a turn in the seeded orders.
 *
 * An instant is: news that are there, operations that are due by (due, tie, key), deadlines and
 * timers by registration, one pass over the tasks that are ready, cleanups (D144), and news once
 * more: what was cancelled in the pass is delivered before time moves.  Input from outside is
 * admitted with the news, so between passes only (O65).  A turn goes through one instant; where
 * it was cut the next one goes on, so the budget changes nothing that a program can see.  When
 * the instant is over time is due to move, and the next turn moves it first: to the earliest of
 * the next event and, if tasks are ready, one cycle on (D21), and never past an event.
 *
 * Sources do not share here as they do in arrival order: what an instant holds is finite, and
 * its order is the promise. */
#include "runtime/runtime.h"

enum { /* scheduler.turn_source */
       PHASE_NEWS = 0,
       PHASE_DUES = 1,
       PHASE_TIMERS = 2,
       PHASE_VISITS = 3,
       PHASE_CLEANUPS = 4,
       PHASE_NEWS_AGAIN = 5
};

static bool
take_due(errand_runtime *runtime, errand__turn *turn)
{
    if (turn->completions == 0 ||
        !errand__due_next(runtime, runtime->scheduler.now, runtime->config.on_completion,
                          runtime->config.held_on_completion_arg))
        return false;
    errand__turn_count(turn, &turn->completions, &turn->done.completions);
    return true;
}

/* Has this phase anything, or anything more? */
static inline bool
has_more(errand_runtime *runtime, int phase)
{
    errand__scheduler *scheduler = &runtime->scheduler;

    switch (phase) {
    case PHASE_DUES:
        return errand__order_next(scheduler) <= scheduler->now;
    case PHASE_TIMERS:
        return (runtime->deadlines.count | scheduler->timers.count) != 0 &&
               errand__timer_next(runtime) <= scheduler->now;
    case PHASE_VISITS:
        return errand__pass_pending(scheduler);
    case PHASE_CLEANUPS:
        return runtime->cleanup_count != 0 &&
               errand__cleanup_next(runtime) <= scheduler->now;
    default:
        return runtime->pending != 0;
    }
}

static inline bool
take(errand_runtime *runtime, errand__turn *turn, int phase)
{
    switch (phase) {
    case PHASE_DUES:
        return take_due(runtime, turn);
    case PHASE_TIMERS:
        return errand__take_timer(runtime, turn);
    case PHASE_VISITS:
        return errand__take_visit(runtime, turn);
    case PHASE_CLEANUPS:
        return errand__take_cleanup(runtime, turn);
    default:
        return errand__take_news(runtime, turn);
    }
}

/* True: it may have ended what the turn waits for. */
static inline bool
begin_phase(errand_runtime *runtime, int phase)
{
    bool taken;

    if (phase == PHASE_VISITS)
        errand__pass_begin(&runtime->scheduler);
    if (phase != PHASE_NEWS && phase != PHASE_NEWS_AGAIN)
        return false;
    taken = errand__interrupt_take(runtime);
    errand__collect(runtime);
    if (__builtin_expect(runtime->unhanded, 0))
        errand__replay_news(runtime);
    return taken || runtime->unhanded;
}

/* One phase, a constant in each of its copies: most have nothing to do at an instant, and that
 * should be all they cost.  False: the turn was cut. */
__attribute__((always_inline)) static inline bool
run_phase(errand_runtime *runtime, errand__turn *turn, bool *ended, int phase)
{
    errand__scheduler *scheduler = &runtime->scheduler;

    scheduler->turn_source = phase; /* a call may be left by longjmp */
    if (*ended)
        return false;
    if (!scheduler->turn_begun && begin_phase(runtime, phase))
        *ended = errand__turn_ended(turn);
    if (!has_more(runtime, phase)) {
        scheduler->turn_begun = false;
        return true;
    }
    scheduler->turn_begun = true;
    do {
        if (*ended || !take(runtime, turn, phase))
            return false; /* what is left is beyond a limit of the turn */
        *ended = errand__turn_ended(turn);
    } while (has_more(runtime, phase));
    scheduler->turn_begun = false;
    return true;
}

/* Goes on with the instant; false: the turn was cut before its end.  *ended: it has; in, and out
 * where true is answered. */
static bool
run_instant(errand_runtime *runtime, errand__turn *turn, bool *out_ended)
{
    errand__scheduler *scheduler = &runtime->scheduler;
    int from = scheduler->turn_source;
    bool ended = *out_ended;

    if ((from > PHASE_NEWS || run_phase(runtime, turn, &ended, PHASE_NEWS)) &&
        (from > PHASE_DUES || run_phase(runtime, turn, &ended, PHASE_DUES)) &&
        (from > PHASE_TIMERS || run_phase(runtime, turn, &ended, PHASE_TIMERS)) &&
        (from > PHASE_VISITS || run_phase(runtime, turn, &ended, PHASE_VISITS)) &&
        (from > PHASE_CLEANUPS || run_phase(runtime, turn, &ended, PHASE_CLEANUPS)) &&
        run_phase(runtime, turn, &ended, PHASE_NEWS_AGAIN)) {
        scheduler->turn_source = PHASE_NEWS;
        scheduler->turn_over = true;
        *out_ended = ended;
        return true;
    }
    return false;
}

/* Moves time to the next instant, if there is one; true if there is something to do then.  begins:
 * the turn does; else the instant before has just looked for news. */
static bool
move_on(errand_runtime *runtime, errand__turn *turn, bool begins)
{
    errand__scheduler *scheduler = &runtime->scheduler;
    uint64_t next;

    scheduler->turn_over = false;
    if (begins)
        errand__collect(runtime);
    if (runtime->pending != 0) { /* between turns an operation was cancelled */
        scheduler->turn_source = PHASE_NEWS_AGAIN;
        return true;
    }
    next = errand__order_event(runtime);
    if (!errand__list_empty(&scheduler->ready) &&
        next > errand__time_add(scheduler->now, scheduler->cycle))
        next = errand__time_add(scheduler->now, scheduler->cycle);
    if (next == UINT64_MAX)
        return true;
    if (next >= turn->until &&
        turn->until > scheduler->now) { /* the run's timeout is first */
        errand__order_move(runtime, turn->until);
        turn->moved = true;
        return false;
    }
    turn->moved = next > scheduler->now;
    errand__order_move(runtime, next);
    return true;
}

/* A run goes on in the same turn: nobody could do anything in between, and there is nothing that
 * only the begin or the end of a turn does. */
static bool
goes_on(const errand_runtime *runtime, const errand__turn *turn, bool ended)
{
    return turn->stop != NULL && !ended && !runtime->external &&
           runtime->follow_first == 0 && runtime->later == 0 && !runtime->fd_wanted;
}

void
errand__turn_seeded(errand_runtime *runtime, errand__turn *turn)
{
    uint32_t before = turn->items;
    bool ended = errand__turn_ended(turn);

    for (bool begins = true;; begins = false) {
        if (runtime->scheduler.turn_over && !move_on(runtime, turn, begins))
            return;
        ended |= turn->over; /* a step of the move was not in the log */
        turn->registration = runtime->scheduler.registrations;
        if (!run_instant(runtime, turn, &ended))
            return;
        if (turn->items != before || turn->moved) {
            if (!goes_on(runtime, turn, ended))
                return;
            before = turn->items;
            turn->moved = false;
            continue;
        }
        /* Nothing was there at this instant.  Is there a next one? */
        if (errand__order_event(runtime) == UINT64_MAX && runtime->pending == 0 &&
            errand__inbox_empty(runtime->block) &&
            errand__list_empty(&runtime->scheduler.ready))
            return;
    }
}
