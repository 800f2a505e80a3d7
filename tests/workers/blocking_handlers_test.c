/* SPDX-License-Identifier: MIT */
/* Goal: what a handler submits is run, also while the handler goes on, on many processors and
 * on one.
 * Method: each test runs twice, as the program found the machine and pinned to one processor. */
#include <sched.h>
#include <string.h>
#include "pool_rig.h"

enum { CHAIN = 5000, WINDOW = 64 };

static void
open_gate(rig_job *self, errand_job *job)
{
    (void)job;
    gate_open(self->arg);
}

static void
wait_at_gate(rig_job *self, errand_job *job)
{
    (void)job;
    gate_wait(self->arg);
}

typedef struct chain {
    pool_rig *rig;
    rig_job *jobs;
    int left, heard;
    test_gate *gate;
} chain;

static void
start_the_same_again(void *arg, errand_completion *completion)
{
    chain *self = arg;

    self->heard++;
    if (self->left == 0)
        return;
    self->left--;
    rig_start(self->rig, completion->wait);
}

static void
drain_all(chain *self, errand_completion_fn *fn, int heard)
{
    while (self->heard < heard) {
        size_t count = 0;

        assert_int_equal(errand_drain(self->rig->runtime, SIZE_MAX, fn, self, &count),
                         ERRAND_OK);
        if (count == 0)
            assert_int_equal(errand_park(self->rig->runtime, UINT64_MAX), ERRAND_OK);
    }
}

static void
keep_a_window_full(uint32_t workers, int window)
{
    static rig_job jobs[WINDOW];
    pool_rig rig;
    chain self = {.rig = &rig, .left = CHAIN};

    rig_init(&rig, workers, workers);
    for (int i = 0; i < window; i++) {
        jobs[i] = (rig_job){.fn = NULL};
        rig_start(&rig, &jobs[i]);
    }
    drain_all(&self, start_the_same_again, CHAIN + window);
    rig_fini(&rig);
}

static void
what_handlers_start_is_run(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers++) {
        keep_a_window_full(workers, 1);
        keep_a_window_full(workers, 2);
        keep_a_window_full(workers, WINDOW);
    }
}

/* Starts a job and waits in the handler until that has run. */
static void
start_and_wait(void *arg, errand_completion *completion)
{
    chain *self = arg;
    rig_job *job = &self->jobs[1];

    (void)completion;
    self->heard++;
    if (self->left == 0)
        return;
    self->left--;
    *job = (rig_job){.fn = open_gate, .arg = self->gate};
    rig_start(self->rig, job);
    gate_wait(self->gate);
    gate_await_arrival(self->gate);
}

static void
a_handler_may_wait_for_what_it_started(void **state)
{
    static rig_job jobs[2 + WINDOW];
    test_gate gate;
    pool_rig rig;
    chain self = {.rig = &rig, .jobs = jobs, .gate = &gate};

    (void)state;
    gate_init(&gate, "handler");
    rig_init(&rig, 1, 2);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < WINDOW; i++) { /* so that the pool takes them for short */
            jobs[2 + i] = (rig_job){.fn = NULL};
            rig_start(&rig, &jobs[2 + i]);
        }
        self.left = 20;
        drain_all(&self, start_and_wait, self.heard + WINDOW + 20);
    }
    rig_fini(&rig);
    gate_fini(&gate);
}

enum { TOGETHER = 4 };

/* Starts jobs that end only when all of them have begun. */
static void
start_together(void *arg, errand_completion *completion)
{
    chain *self = arg;

    (void)completion;
    if (self->heard++ > 0)
        return;
    for (int i = 0; i < TOGETHER; i++) {
        self->jobs[1 + i] = (rig_job){.fn = wait_at_gate, .arg = self->gate};
        rig_start(self->rig, &self->jobs[1 + i]);
    }
    for (int i = 0; i < TOGETHER; i++)
        gate_await_arrival(self->gate);
    gate_open_many(self->gate, TOGETHER);
}

static void
long_jobs_started_in_a_handler_run_at_once(void **state)
{
    rig_job jobs[1 + TOGETHER];
    test_gate gate;
    pool_rig rig;

    (void)state;
    gate_init(&gate, "together");
    for (int round = 0; round < 50; round++) {
        chain self = {.rig = &rig, .jobs = jobs, .gate = &gate};

        rig_init(&rig, 1, TOGETHER);
        jobs[0] = (rig_job){.fn = NULL};
        rig_start(&rig, &jobs[0]);
        drain_all(&self, start_together, 1 + TOGETHER);
        rig_fini(&rig);
    }
    gate_fini(&gate);
}

static cpu_set_t found;

static int
pin_to_one(void **state)
{
    cpu_set_t one;
    int cpu = 0;

    (void)state;
    sched_getaffinity(0, sizeof found, &found);
    while (!CPU_ISSET(cpu, &found))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one);
}

static int
unpin(void **state)
{
    (void)state;
    return sched_setaffinity(0, sizeof found, &found);
}

static void
what_handlers_start_is_run_on_one_processor(void **state)
{
    what_handlers_start_is_run(state);
}

static void
a_handler_may_wait_for_what_it_started_on_one_processor(void **state)
{
    a_handler_may_wait_for_what_it_started(state);
}

static void
long_jobs_started_in_a_handler_run_at_once_on_one_processor(void **state)
{
    long_jobs_started_in_a_handler_run_at_once(state);
}

#define PINNED(test) cmocka_unit_test_setup_teardown(test, pin_to_one, unpin)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_handlers_start_is_run),
        cmocka_unit_test(a_handler_may_wait_for_what_it_started),
        cmocka_unit_test(long_jobs_started_in_a_handler_run_at_once),
        PINNED(what_handlers_start_is_run_on_one_processor),
        PINNED(a_handler_may_wait_for_what_it_started_on_one_processor),
        PINNED(long_jobs_started_in_a_handler_run_at_once_on_one_processor),
    };

    return test_group("workers/blocking_handlers", tests, NULL, NULL);
}
