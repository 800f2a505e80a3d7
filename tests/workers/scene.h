/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SCENE_H
#define ERRAND_TESTS_WORKERS_SCENE_H
/* scene: one executor, runtimes with a lease each, and what was drained from them. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "errand/async.h"
#include "errand/executor.h"
#include "errand/task.h"
#include "errand/testing.h"
#include "gate.h"
#include "group.h"

#define SCENE_NONE UINT64_MAX /* no limit, no deadline */

typedef struct scene_seen { /* what one runtime drained */
    size_t count, outcomes[6], codes[ERRAND_CODES];
    char message[256]; /* the last one's */
} scene_seen;

typedef struct scene {
    errand_executor *executor;
    errand_runtime *runtimes[4];
    errand_lease *leases[4];
    scene_seen seen[4];
    int64_t live_bytes;
} scene;

static inline void
scene_open(scene *world, errand_executor *executor, int runtimes,
           const errand_runtime_config *config, uint32_t owed_max)
{
    world->executor = executor;
    for (int i = 0; i < runtimes; i++) {
        assert_int_equal(errand_runtime_create(config, &world->runtimes[i]), ERRAND_OK);
        assert_int_equal(
            errand_attach(world->runtimes[i], executor, owed_max, &world->leases[i]),
            ERRAND_OK);
    }
}

static inline void
scene_begin(scene *world)
{
    memset(world, 0, sizeof *world);
    world->live_bytes = errand_testing_live_bytes();
}

static inline void
scene_heard(void *arg, errand_completion *completion)
{
    scene_seen *seen = arg;

    seen->count++;
    seen->outcomes[completion->outcome]++;
    seen->codes[completion->code]++;
    strncpy(seen->message, completion->message, sizeof seen->message - 1);
}

/* Drains what is there. */
static inline size_t
scene_drain(scene *world, int at)
{
    size_t count = 0;

    assert_int_equal(errand_drain(world->runtimes[at], SIZE_MAX, scene_heard,
                                  &world->seen[at], &count),
                     ERRAND_OK);
    return count;
}

/* Drains until so many were heard in all. */
static inline void
scene_await(scene *world, int at, size_t count)
{
    while (world->seen[at].count < count) {
        if (scene_drain(world, at) == 0)
            assert_int_equal(errand_park(world->runtimes[at], SCENE_NONE), ERRAND_OK);
    }
    assert_int_equal(world->seen[at].count, count);
}

static inline size_t
scene_step(scene *world, size_t budget)
{
    size_t count = 0;

    assert_int_equal(errand_manual_step(world->executor, budget, &count), ERRAND_OK);
    return count;
}

/* Ends one runtime; unless bodies are still running, its accounts have to add up (O4). */
static inline errand_report
scene_end(scene *world, int at, uint64_t deadline_ns)
{
    errand_report report;
    const errand_snapshot *sums = &report.accounts;

    assert_int_equal(errand_runtime_shutdown(&world->runtimes[at], deadline_ns,
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    world->leases[at] = NULL;
    if (report.running == 0)
        assert_int_equal(sums->accepted, sums->queued + sums->running + sums->undrained +
                                             sums->drained + sums->undeliverable);
    return report;
}

/* Waits until all is given back; a thread of the library may be the last to do so. */
static inline void
scene_await_memory(const scene *world)
{
    while (errand_testing_live_bytes() != world->live_bytes)
        sched_yield();
}

/* Ends the rest, which has to end clean, and sees that nothing is left. */
static inline void
scene_close(scene *world)
{
    for (int i = 0; i < 4; i++) {
        if (world->runtimes[i] != NULL)
            assert_true(
                scene_end(world, i, errand_deadline_in(UINT64_C(20000000000))).clean);
    }
    errand_executor_abandon(&world->executor);
    scene_await_memory(world);
}

static inline errand_identity
scene_start(scene *world, int at, const errand_job_type *job, void *state,
            errand_resource_class class, uint8_t lane, uint8_t priority)
{
    errand_identity identity;
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = class;
    spec.held_job = job;
    spec.state = state;
    spec.lane = lane;
    spec.priority = priority;
    if (class == ERRAND_QUARANTINED_BLOCKING)
        spec.quarantine_ns = UINT64_C(1000000000);
    assert_int_equal(errand_start(world->leases[at], &spec, NULL, &identity), ERRAND_OK);
    return identity;
}
static inline errand_identity
scene_block(scene *world, int at, const errand_job_type *job, void *state)
{
    return scene_start(world, at, job, state, ERRAND_INTERRUPTIBLE_BLOCKING, 0, 0);
}
static inline errand_identity
scene_poll(scene *world, int at, const errand_job_type *job, void *state)
{
    return scene_start(world, at, job, state, ERRAND_INTERRUPTIBLE_ASYNC, 0, 0);
}

static inline errand_cancel_answer
scene_cancel(scene *world, int at, errand_identity identity)
{
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(world->runtimes[at], &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    return answer;
}

/* ---- a job that goes pending until its waker is woken so many times ----------------------------- */
typedef struct scene_sleeper {
    atomic_int starts, polls, drops; /* how often; any thread looks */
    int wakes_wanted; /* polls after the first that it takes; -1 = for ever */
    bool ends_when_cancelled;
    _Atomic(errand_waker *) waker; /* the test's reference, from the first poll on */
} scene_sleeper;

static inline int32_t
scene_sleeper_start(errand_job *job, void *state, errand_payload *out_payload)
{
    scene_sleeper *self = state;

    (void)job;
    (void)out_payload;
    atomic_fetch_add_explicit(&self->starts, 1, memory_order_relaxed);
    return 0;
}
static inline int32_t
scene_sleeper_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    scene_sleeper *self = state;
    int before = atomic_fetch_add_explicit(&self->polls, 1, memory_order_acq_rel);

    (void)out_payload;
    if (before == 0)
        atomic_store_explicit(&self->waker, errand_job_waker(job), memory_order_release);
    if (self->ends_when_cancelled && errand_job_cancelled(job))
        return 7;
    return before == self->wakes_wanted ? 0 : ERRAND_PENDING;
}
static inline void
scene_sleeper_drop(void *state)
{
    scene_sleeper *self = state;

    atomic_fetch_add_explicit(&self->drops, 1, memory_order_relaxed);
}
static const errand_job_type scene_sleeper_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "sleeper",
    .start = scene_sleeper_start,
    .poll = scene_sleeper_poll,
    .drop = scene_sleeper_drop,
};
static inline errand_waker *
scene_waker(scene_sleeper *sleeper)
{
    return atomic_load_explicit(&sleeper->waker, memory_order_acquire);
}
/* Gives up the test's reference. */
static inline void
scene_sleeper_end(scene_sleeper *sleeper)
{
    errand_waker *waker =
        atomic_exchange_explicit(&sleeper->waker, NULL, memory_order_acq_rel);

    errand_waker_abandon(&waker);
}
static inline int
scene_count(atomic_int *counter)
{
    return atomic_load_explicit(counter, memory_order_acquire);
}
#endif
