/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FUZZ_CHOICE_PLAN_H
#define ERRAND_FUZZ_CHOICE_PLAN_H
/* plan: a small program of tasks, as the input's first bytes say, and what a run of it shows. */
#include "errand/choice.h"

enum { PLAN_TASKS = 6, PLAN_MOVES = 12, PLAN_EVENTS = 1024 };

typedef enum plan_move {
    MOVE_END = 0,
    MOVE_YIELD = 1,
    MOVE_SLEEP = 2,  /* argument * 250 us */
    MOVE_PARK = 3,   /* until somebody wakes it */
    MOVE_WAKE = 4,   /* task argument; goes on */
    MOVE_CHOOSE = 5, /* one of argument; goes on */
    MOVES = 6
} plan_move;

typedef struct task_plan {
    errand_policy policy;
    uint32_t depth;
    uint64_t steps;
    size_t tasks;
    uint8_t moves[PLAN_TASKS][PLAN_MOVES], arguments[PLAN_TASKS][PLAN_MOVES];
} task_plan;

/* What was seen: who ran when, and what it chose. */
typedef struct plan_event {
    size_t task;
    uint64_t time_ns, value;
} plan_event;
typedef struct plan_trail {
    plan_event events[PLAN_EVENTS];
    size_t count;
    uint64_t keys[PLAN_TASKS]; /* of the tasks, as the trace told them */
    uint64_t digest, picks;
} plan_trail;

static inline void
plan_note(plan_trail *trail, size_t task, uint64_t time_ns, uint64_t value)
{
    if (trail->count < PLAN_EVENTS)
        trail->events[trail->count++] = (plan_event){task, time_ns, value};
}

/* reference.c: what the run has to be, by docs/promises.md and errand/choice.h, from the choices
 * that were made in it.  NULL, or what is wrong with the tape. */
const char *reference_run(const task_plan *plan, const uint64_t *keys, errand_tape *tape,
                          plan_trail *out_trail);
#endif
