/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_DIFF_RIG_H
#define ERRAND_TESTS_DIFF_RIG_H
/* diff_rig: a program that runs one seed and records it, and in which one kind of nondeterminism may
 * be injected:
 *
 *     program LOG plain|injected SEED
 *
 * It prints the number of the first step that the injection changed ("step N"), which it knows
 * because it made it: that is what errand diff must find.  Three tasks chatter (operations, draws,
 * sleeps), one is the victim, one stays parked; the injection comes late, so that blocks of equal
 * steps stand before it. */
#include "errand/executor.h"
#include "errand/order.h"
#include "errand/record.h"
#include "errand/task.h"

typedef struct diff_run {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    bool injected;
    errand_task_id parked; /* waits until it is woken, counts that, and parks again */
    unsigned round;        /* of the victim */
    /* The trace. */
    uint64_t steps;
    bool (*watch)(struct diff_run *run, const errand_step *step); /* is it the first? */
    uint64_t watch_ns;
    uint64_t found; /* the first step that the injection changed */
} diff_run;

/* What the victim does in its round INJECTION.  Answers false if it registered no wait: then it
 * sleeps like in every round.  Sets found or watch, in both runs. */
enum { DIFF_ROUNDS = 900, DIFF_INJECTION = 600 };
bool diff_inject(diff_run *run, errand_task *task);

/* The next step is the one. */
void diff_next(diff_run *run);
/* The first step that watch accepts. */
void diff_watch(diff_run *run, bool (*watch)(diff_run *run, const errand_step *step));
/* Starts an operation whose job gives these bytes, with nobody waiting. */
void diff_start(diff_run *run, const char *name, const void *bytes, size_t size);
void diff_require(bool good, const char *what); /* else it says so and exits with 3 */
#endif
