/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_STRESS_ONE_WORKER_H
#define ERRAND_TESTS_STRESS_ONE_WORKER_H
/* one_worker: a runtime on a pool of one thread, opened and closed many times in a test; closing waits
 * for everything that is still on its way. */
#include <string.h>
#include "errand/executor.h"
#include "errand/testing.h"
#include "stress.h"

typedef struct world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    int64_t bytes;
    atomic_uint ran, dropped;
    atomic_uint started, stopped; /* threads of the pool */
    unsigned heard;
    errand_report report;
} world;

static inline int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    world *self = state;

    atomic_fetch_add_explicit(&self->ran, 1, memory_order_relaxed);
    if (errand_payload_alloc(job, 100, out_payload) == NULL)
        return 1;
    errand_job_message(job, "text");
    return 0;
}
static inline void
drop(void *state)
{
    atomic_fetch_add_explicit(&((world *)state)->dropped, 1, memory_order_release);
}
static const errand_job_type job_type = {
    .struct_size = sizeof(errand_job_type), .name = "job", .run = run, .drop = drop};

static inline void
count_start(void *arg, uint32_t worker)
{
    (void)worker;
    atomic_fetch_add_explicit(&((world *)arg)->started, 1, memory_order_release);
}
static inline void
count_stop(void *arg, uint32_t worker)
{
    (void)worker;
    atomic_fetch_add_explicit(&((world *)arg)->stopped, 1, memory_order_release);
}

static inline void
world_open(world *self)
{
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = 1,
                                     .workers_max = 1,
                                     .held_on_start = count_start,
                                     .held_on_stop = count_stop,
                                     .held_arg = self};

    memset(self, 0, sizeof *self);
    self->bytes = errand_testing_live_bytes();
    assert_int_equal(errand_blocking_create(&config, &self->executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, self->executor, 0, &self->lease),
                     ERRAND_OK);
}

static inline errand_spec
spec_of(world *self)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &job_type;
    spec.state = self;
    return spec;
}

static inline void
start(world *self)
{
    errand_spec spec = spec_of(self);

    assert_int_equal(errand_start(self->lease, &spec, NULL, NULL), ERRAND_OK);
}

static inline void
shut(world *self, uint64_t deadline_ns)
{
    assert_int_equal(errand_runtime_shutdown(&self->runtime, deadline_ns,
                                             ERRAND_SHUTDOWN_QUIET, &self->report),
                     ERRAND_OK);
}

static inline void
world_close(world *self, unsigned operations)
{
    const errand_snapshot *sums = &self->report.accounts;

    assert_int_equal(sums->accepted, operations);
    assert_int_equal(sums->drained + sums->undeliverable, operations);
    assert_int_equal(self->report.undeliverable, sums->undeliverable);
    assert_int_equal(self->report.clean, sums->undeliverable == 0);
    errand_executor_abandon(&self->executor);
    stress_await(&self->dropped, operations);
    while (atomic_load_explicit(&self->stopped, memory_order_acquire) !=
           atomic_load_explicit(&self->started, memory_order_acquire))
        sched_yield();
    while (errand_testing_live_bytes() != self->bytes) /* a thread of the pool is last */
        sched_yield();
    assert_int_equal(atomic_load_explicit(&self->dropped, memory_order_relaxed),
                     operations);
}

#endif
