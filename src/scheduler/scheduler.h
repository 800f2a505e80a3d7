/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SCHEDULER_H
#define ERRAND_SCHEDULER_H
/* scheduler: order.  Timers, tasks and their tree, the ready list, the draws of the seeded orders,
 * audit and trace.  Owner thread only, all of it.  Knows nothing of leases or executors: what has
 * to be cancelled outside is done by the runtime, through errand__outside.
 *
 * Foreign code (task functions, cleanups, hooks) may leave any of these functions by longjmp: what
 * is to be done stands in lists here, never on the stack, and the next drive goes on with it. */
#include "core/dues.h"
#include "scheduler/choices.h"
#include "scheduler/queue.h"
#include "scheduler/tasks.h"

#define ERRAND__CYCLE_MAX UINT64_C(3600000000000)

/* What the scheduler has done outside, by the runtime; context first, always. */
typedef struct errand__outside {
    /* The operation of task->operation is to be cancelled; its wait ends with the reason and the task
     * is readied (cancel), or ends unresumed and task->operation is let go of (forget). */
    void (*cancel)(void *context, errand_task *task, errand_reason reason);
    void (*forget)(void *context, errand_task *task);
    /* Calls foreign code that may panic, contained (O76). */
    void (*contain)(void *context, void (*fn)(void *arg), void *arg);
} errand__outside;

struct errand__scheduler {
    /* Immutable after init. */
    const errand_allocator *allocator;
    errand__registrar *registrar;
    void *context; /* the errand_runtime: given to fire, visit and the outside */
    const errand__outside *outside;
    errand_order order;
    uint64_t seed, grace;
    bool real_clock; /* arrival without a test clock: now follows CLOCK_MONOTONIC */
    /* Time.  now is virtual (inline), moved by hand (test clock) or the last reading. */
    uint64_t now;
    uint64_t cycle; /* D21, D32 */
    errand__heap timers;
    uint64_t registrations;
    /* ready: items that the next pass takes; pass: the snapshot that is being run (D3). */
    errand__link ready, pass;
    uint64_t passes;
    uint64_t visits; /* begun, in any order */
    errand__chooser chooser;
    errand__policy policy;
    /* Tasks. */
    errand__task_table tasks;
    errand__link all;     /* records in use, in spawn order */
    errand__link waiting; /* by wait key */
    errand__link roots;   /* errand_task.sibling */
    errand__link ending;  /* a stack: the first is being ended */
    errand__link cancelling;
    size_t live;                           /* tasks that have not finished */
    uint64_t nodes;                        /* numbers of what is no task */
    uint64_t spawned, undecided, contexts; /* errand_tree */
    bool propagates;                       /* the default of roots */
    /* The stop (stop.c). */
    bool stop_asked;
    int32_t stop_value;
    uint64_t signals; /* those it waits for */
    uint64_t root_spawns, root_contexts;
    uint64_t next_task;
    errand_task *running; /* whose function is being called */
    bool busy_ending, busy_cancelling;
    errand__audit audit;
    errand__label_known labels[ERRAND__LABELS_KNOWN]; /* by address */
    /* Seeded orders: operations by (due, tie, key); entries are errand__extra.due_entry. */
    errand__dues due;
    errand__dues begins; /* paced: by (begin, tie, key); errand__extra.begin_entry */
    errand__latency *latencies; /* by kind */
    size_t latency_count, latency_room;
    /* The drive's cursor (runtime/turns/drive.c): which source a turn goes on with, and how many items it
     * may still take there. */
    int turn_source;
    uint32_t turn_left;
    bool turn_begun; /* seeded: this source has begun its part of the instant */
    bool
        turn_over; /* seeded: the instant has ended; time is to move before the next one */
};

/* scheduler.c.  config: order, seed, start_ns, grace_ns and flags count. */
void errand__scheduler_init(errand__scheduler *scheduler,
                            const errand_runtime_config *config,
                            const errand_allocator *allocator,
                            errand__registrar *registrar, const errand__outside *outside,
                            void *context);
/* Frees the memory; all tasks have finished. */
void errand__scheduler_fini(errand__scheduler *scheduler);
uint64_t errand__scheduler_time(errand__scheduler *scheduler);
/* The same, where the program sees what comes of it: an input. */
uint64_t errand__scheduler_read(errand__scheduler *scheduler);
/* a + b, at most UINT64_MAX. */
static inline uint64_t
errand__time_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
#endif
