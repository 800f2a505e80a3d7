/* SPDX-License-Identifier: MIT */
/* Design notes: see pool_rig.h. */
#include "pool_rig.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    rig_job *self = state;

    (void)out_payload;
    atomic_fetch_add_explicit(&self->ran, 1, memory_order_relaxed);
    if (self->fn != NULL)
        self->fn(self, job);
    return 0;
}

static void
drop(void *state)
{
    ((rig_job *)state)->dropped++;
}

static const errand_job_type job_type = {
    .struct_size = sizeof(errand_job_type), .name = "rig job", .run = run, .drop = drop};

void
rig_init_config(pool_rig *rig, const errand_blocking_config *config, uint32_t owed_max)
{
    errand_executor *executor;

    assert_int_equal(errand_blocking_create(config, &executor), ERRAND_OK);
    rig_join(rig, executor, owed_max);
    rig->shares = false;
}

void
rig_init(pool_rig *rig, uint32_t workers_min, uint32_t workers_max)
{
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = workers_min,
                                     .workers_max = workers_max};

    rig_init_config(rig, &config, 0);
}

void
rig_join(pool_rig *rig, errand_executor *executor, uint32_t owed_max)
{
    errand_runtime_config config = {.struct_size = sizeof config};

    memset(rig, 0, sizeof *rig);
    rig->executor = executor;
    rig->shares = true;
    assert_int_equal(errand_runtime_create(&config, &rig->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(rig->runtime, executor, owed_max, &rig->lease),
                     ERRAND_OK);
}

void
rig_fini(pool_rig *rig)
{
    assert_int_equal(errand_runtime_shutdown(&rig->runtime,
                                             errand_deadline_in(10000000000),
                                             ERRAND_SHUTDOWN_QUIET, &rig->report),
                     ERRAND_OK);
    if (!rig->unclean)
        assert_true(rig->report.clean);
    if (!rig->shares)
        errand_executor_abandon(&rig->executor);
}

errand_spec
rig_spec(rig_job *job)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &job_type;
    spec.state = job;
    return spec;
}

void
rig_start_spec(pool_rig *rig, const errand_spec *spec)
{
    rig_job *job = spec->state;

    assert_int_equal(errand_start(rig->lease, spec, job, &job->identity), ERRAND_OK);
}

void
rig_start(pool_rig *rig, rig_job *job)
{
    errand_spec spec = rig_spec(job);

    rig_start_spec(rig, &spec);
}

static void
hear(void *arg, errand_completion *completion)
{
    pool_rig *rig = arg;

    rig->heard++;
    rig->outcomes[completion->outcome]++;
    rig->codes[completion->code]++;
    rig->held += (completion->flags & ERRAND_HELD) != 0;
    if (completion->outcome != ERRAND_COMPLETED)
        snprintf(rig->message, sizeof rig->message, "%s", completion->message);
}

static void
check_law(const pool_rig *rig)
{
    errand_snapshot of;

    assert_int_equal(errand_runtime_snapshot(rig->runtime, &of), ERRAND_OK);
    assert_int_equal(of.accepted, of.queued + of.running + of.undrained + of.drained +
                                      of.undeliverable);
    assert_int_equal(of.drained, rig->heard);
}

void
rig_await(pool_rig *rig, uint64_t heard)
{
    while (rig->heard < heard) {
        size_t count = 0;

        assert_int_equal(errand_drain(rig->runtime, SIZE_MAX, hear, rig, &count),
                         ERRAND_OK);
        if (count == 0)
            assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK);
    }
    check_law(rig);
}

uint64_t
rig_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void
rig_spin(uint64_t ns)
{
    uint64_t until = rig_now() + ns;

    while (rig_now() < until)
        continue;
}

void
rig_until(bool (*holds)(void *arg), void *arg)
{
    uint64_t limit = rig_now() + UINT64_C(20000000000);

    while (!holds(arg)) {
        assert_true(rig_now() < limit);
        sched_yield();
    }
}

errand_executor_snapshot
rig_snapshot(const pool_rig *rig)
{
    errand_executor_snapshot snapshot;

    assert_int_equal(errand_executor_snapshot_read(rig->executor, &snapshot), ERRAND_OK);
    return snapshot;
}
