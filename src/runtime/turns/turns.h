/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_TURNS_H
#define ERRAND_RUNTIME_TURNS_H
/* turns: the part of runtime.h, which includes it, that is this folder's: a drive, a run. */
#include "runtime/runtime.h"

struct errand__turn { /* a turn in progress */
    uint32_t items, completions, timers, visits, cleanups, commands; /* left */
    bool unlimited;          /* no limit of items: each source once */
    bool taken;              /* an item */
    bool passed;             /* a pass was begun */
    bool collected;          /* the inbox was emptied */
    bool moved;              /* virtual time */
    uint64_t wall_end;       /* 0 = none */
    uint64_t until;          /* virtual time does not go on beyond this */
    uint64_t registration;   /* timers from this one on are of a later turn */
    const errand_task *stop; /* the turn ends when this task has; or NULL */
    uint64_t stop_number;    /* its number: its record may be another's by then */
    bool over;               /* the run has ended: see runtime->external */
    errand_turn done;
};
void errand__turn_init(errand__turn *turn, const errand_budget *budget);
static inline void
errand__turn_count(errand__turn *turn, uint32_t *left, uint32_t *done)
{
    turn->taken = true;
    turn->items -= turn->items != 0;
    *left -= *left != 0;
    (*done)++;
}
/* Follow-ups that found no room, and what was put off to now. */
void errand__put_off_run(errand_runtime *runtime);
/* One turn; what was left undone by an unwind goes first. */
void errand__turn_run(errand_runtime *runtime, errand__turn *turn);
void errand__turn_seeded(errand_runtime *runtime, errand__turn *turn);
static inline bool
errand__turn_ended(const errand__turn *turn)
{
    return turn->items == 0 || turn->over ||
           (turn->stop != NULL &&
            (turn->stop->number != turn->stop_number || turn->stop->finished)) ||
           (turn->wall_end != 0 && turn->taken && errand__clock_now() >= turn->wall_end);
}
/* One item of a source; false: it has none now, or may not in this turn. */
bool errand__take_news(errand_runtime *runtime, errand__turn *turn);
bool errand__take_timer(errand_runtime *runtime, errand__turn *turn);
bool errand__take_visit(errand_runtime *runtime, errand__turn *turn);
bool errand__take_cleanup(errand_runtime *runtime, errand__turn *turn);
void errand__interrupt_heed(errand_runtime *runtime);
static inline bool
errand__interrupt_take(errand_runtime *runtime)
{
    if (atomic_load_explicit(&runtime->block->interrupted, memory_order_relaxed) == 0)
        return false;
    errand__interrupt_heed(runtime);
    return true;
}
void errand__stall_forget(errand_runtime *runtime); /* run_root.c */
uint64_t
errand__timer_next(const errand_runtime *runtime); /* operations' deadlines too */
#endif
