/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SCHEDULER_H
#define ERRAND_SCHEDULER_H
/* scheduler: order.  Timers, tasks and their tree, the ready list, the draws of the seeded orders,
 * audit and trace.  Owner thread only, all of it.  Knows nothing of leases or executors: what has
 * to be cancelled outside is done by the runtime, through the callbacks of errand__scheduler. */
#include "inbox/inbox.h"
#include "errand/order.h"
#include "errand/task.h"

/* ---- timers (timers.c): (deadline, registration) order ----------------------------------------- */
typedef struct errand__timer {
    errand__heap_entry entry; /* major = deadline, minor = registration */
    void (*fire)(struct errand__timer *timer, void *context); /* context: the scheduler's */
} errand__timer;

/* ---- ready items: what one visit of a turn runs ---------------------------------------------------- */
typedef struct errand__ready {
    errand__link link;
    uint64_t key; /* seeded orders: for the audit and the shuffle */
    void (*visit)(struct errand__ready *ready, void *context);
} errand__ready;

/* ---- audit (audit.c) --------------------------------------------------------------------------------- */
typedef struct errand__audit {
    bool seeded;
    uint64_t mix, steps;
    errand_trace_fn *trace;
    void *trace_arg;
} errand__audit;

struct errand__task_table; /* tasks.c's own */

typedef struct errand__scheduler {
    const errand_allocator *allocator;
    errand__registrar *registrar;
    void *context; /* the errand_runtime: given to fire and visit */
    errand_order order;
    uint64_t seed;
    /* Time.  now is virtual (inline) or set by the runtime at each turn (arrival, test clock). */
    uint64_t now;
    uint64_t cycle; /* D21: 1 ms */
    errand__heap timers;
    uint64_t registrations;
    /* ready: items that the next pass takes; pass: the snapshot that is being run (D3). */
    errand__link ready, pass;
    size_t ready_count;
    uint64_t passes;
    /* Tasks. */
    struct errand__task_table *tasks;
    errand_task *running; /* whose function is being called */
    uint64_t next_task;
    errand__audit audit;
    /* Seeded orders: operations by (due, tie, key); entries are errand__extra.due_entry. */
    errand__heap due;
    struct errand__latency *latencies; /* order.c's own */
    size_t latency_count;
} errand__scheduler;
#endif
