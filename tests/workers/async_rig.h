/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_ASYNC_RIG_H
#define ERRAND_TESTS_WORKERS_ASYNC_RIG_H
/* async_rig: an async executor in a scene, and a job whose first poll waits at a gate. */
#include "scene.h"

static inline void
async_open(scene *world, int runtimes)
{
    errand_executor *executor;

    scene_begin(world);
    assert_int_equal(errand_async_create(NULL, &executor), ERRAND_OK);
    scene_open(world, executor, runtimes, NULL, 0);
}

/* Waits for another thread's work that nothing announces. */
static inline void
await_count(atomic_int *counter, int count)
{
    while (scene_count(counter) < count)
        sched_yield();
}

typedef struct gated {
    test_gate gate;
    int polls, polls_wanted;
    bool wakes_itself;
    int other_polls_seen, *other_polls;
} gated;

static inline int32_t
poll_gated(errand_job *job, void *state, errand_payload *out_payload)
{
    gated *self = state;

    (void)out_payload;
    if (++self->polls == 1)
        gate_wait(&self->gate);
    if (self->wakes_itself) {
        errand_waker *waker = errand_job_waker(job);

        errand_waker_wake(waker);
        errand_waker_abandon(&waker);
    }
    return self->polls < self->polls_wanted ? ERRAND_PENDING : 0;
}
static const errand_job_type gated_job = {
    .struct_size = sizeof(errand_job_type), .name = "gated", .poll = poll_gated};

static inline void
gated_init(gated *self, int polls_wanted)
{
    memset(self, 0, sizeof *self);
    gate_init(&self->gate, "poll");
    self->polls_wanted = polls_wanted;
}

#endif
