/* SPDX-License-Identifier: MIT */
/* Goal: what cannot be stopped or bounded cannot be built, by no call that takes a spec (O12, O14).
 * Method: a table of wrong specs, each given to prepare, start, await in a task, and follow in a
 * job; the spec without the fault is accepted by all four. */
#include "errand/async.h"
#include "errand/task.h"
#include "world.h"

static int32_t
answer_nothing(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}

static errand_hook_answer
cancel_nothing(void *data, char *text, size_t size)
{
    (void)data;
    (void)text;
    (void)size;
    return ERRAND_HOOK_REAPED;
}

static const errand_job_type async_type = {
    .struct_size = sizeof async_type, .name = "async", .poll = answer_nothing};
static const errand_job_type empty_type = {.struct_size = sizeof empty_type};
static const errand_job_type old_type = {.struct_size = 8, .run = answer_nothing};
static const errand_hook_type hook = {.struct_size = sizeof hook,
                                      .cancel = cancel_nothing};
static const errand_hook_type empty_hook = {.struct_size = sizeof empty_hook};
static const errand_decoder_type empty_decoder = {.struct_size = sizeof empty_decoder};

static errand_spec
blocking(world_job *job)
{
    return world_spec(job);
}

static errand_spec
quarantined(world_job *job)
{
    errand_spec spec = world_spec(job);

    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = 1000;
    return spec;
}

static errand_spec
counted_work(world_job *job)
{
    errand_spec spec = quarantined(job);

    spec.quarantine_ns = 0;
    spec.work_max = 10;
    spec.held_work_unit = "rows";
    return spec;
}

static errand_spec
async(world_job *job)
{
    errand_spec spec = world_spec(job);

    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &async_type;
    return spec;
}

/* ---- the four ways in ----------------------------------------------------------------------- */

typedef struct entrance {
    test_world *world;
    const errand_spec *spec;
    errand_status status;
} entrance;

static errand_status
by_prepare(entrance *self)
{
    errand_prepared prepared;
    errand_status status = errand_prepare(self->world->runtime, self->spec, &prepared);

    if (status == ERRAND_OK)
        errand_prepared_abandon(&prepared);
    return status;
}

static errand_status
by_start(entrance *self)
{
    return errand_start(self->world->lease, self->spec, NULL, NULL);
}

static errand_task_answer
await_spec(errand_task *task, void *state, const errand_task_news *news)
{
    entrance *self = state;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    self->status =
        errand_task_await(task, self->world->lease, self->spec, UINT64_MAX, NULL);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
}

static errand_status
by_await(entrance *self)
{
    errand_task_spec task = {.struct_size = sizeof task, .fn = await_spec, .state = self};

    assert_int_equal(errand_spawn(self->world->runtime, NULL, &task, NULL), ERRAND_OK);
    assert_int_equal(errand_drive(self->world->runtime, NULL, NULL), ERRAND_OK);
    return self->status;
}

static void
follow_spec(errand_job *job, world_job *parent)
{
    entrance *self = parent->arg;

    self->status = errand_job_follow(job, self->spec, NULL);
}

static errand_status
by_follow(entrance *self)
{
    static world_job parent;

    parent = (world_job){.inside = follow_spec, .arg = self};
    world_start(self->world, &parent);
    world_step(self->world, 1);
    world_drain(self->world, 10);
    return self->status;
}

static void
try_all(test_world *world, const errand_spec *spec, errand_status status)
{
    errand_status (*const ways[])(entrance *) = {by_prepare, by_start, by_await,
                                                 by_follow};

    for (int i = 0; i < 4; i++) {
        entrance self = {.world = world, .spec = spec, .status = 77};

        assert_int_equal(ways[i](&self), status);
        world_step(world, 10);
        assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
    }
}

/* ---- what is wrong ----------------------------------------------------------------------------- */

#define FAULT(name, statement)                                                           \
    static void name(errand_spec *spec)                                                  \
    {                                                                                    \
        statement;                                                                       \
    }
FAULT(no_size, spec->struct_size = 0)
FAULT(other_size, spec->struct_size--)
FAULT(no_kind, spec->kind = 0)
FAULT(no_class, spec->resource_class = 0)
FAULT(unknown_class, spec->resource_class = 4)
FAULT(no_job, spec->held_job = NULL)
FAULT(empty_job, spec->held_job = &empty_type)
FAULT(old_job, spec->held_job = &old_type)
FAULT(high_priority, spec->priority = 3)
FAULT(high_lane, spec->lane = ERRAND_LANES)
FAULT(some_flags, spec->flags = 2)
FAULT(poll_alone, spec->held_job = &async_type)
FAULT(run_alone, spec->held_job = &world_job_type)
FAULT(with_quarantine, spec->quarantine_ns = 1)
FAULT(with_work, (spec->work_max = 1, spec->held_work_unit = "rows"))
FAULT(hook_without_cancel, spec->held_hook = &empty_hook)
FAULT(decoder_without_decode, spec->held_decoder = &empty_decoder)
FAULT(no_bound, spec->quarantine_ns = 0)
FAULT(with_hook, spec->held_hook = &hook)
FAULT(no_unit, spec->held_work_unit = NULL)
FAULT(no_work, spec->work_max = 0)

typedef struct wrong {
    errand_spec (*make)(world_job *job);
    void (*spoil)(errand_spec *spec);
} wrong;

static void
what_nothing_can_stop_or_bound_is_refused_by_every_call(void **state)
{
    /* O12, O14 */
    static const wrong table[] = {
        {blocking, no_size},
        {blocking, other_size},
        {blocking, no_kind},
        {blocking, no_class},
        {blocking, unknown_class},
        {blocking, no_job},
        {blocking, empty_job},
        {blocking, old_job},
        {blocking, high_priority},
        {blocking, high_lane},
        {blocking, some_flags},
        {blocking, poll_alone},
        {blocking, with_quarantine},
        {blocking, with_work},
        {blocking, hook_without_cancel},
        {blocking, decoder_without_decode},
        {quarantined, no_bound},
        {quarantined, with_hook},
        {quarantined, poll_alone},
        {counted_work, no_unit},
        {counted_work, no_work},
        {counted_work, with_hook},
        {async, run_alone},
        {async, empty_job},
        {async, with_quarantine},
        {async, with_work},
    };
    test_world *world = *state;
    static world_job job;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        errand_spec spec;
        unsigned misuses = (unsigned)world->misuses;

        job = (world_job){.answer = 0};
        spec = table[i].make(&job);
        try_all(world, &spec, ERRAND_OK); /* it is the fault alone that is refused */
        job = (world_job){.answer = 0};
        table[i].spoil(&spec);
        try_all(world, &spec, ERRAND_EINVAL);
        assert_int_equal((unsigned)world->misuses - misuses, 4);
        assert_int_equal(world->last_misuse, ERRAND_EINVAL);
        assert_int_equal(job.ran, 0); /* the state is still the caller's */
        assert_int_equal(job.dropped, 0);
    }
}

static void
a_bound_may_be_time_or_work_or_both(void **state)
{
    /* O14 */
    test_world *world = *state;
    static world_job job;
    errand_spec spec = counted_work(&job);

    try_all(world, &spec, ERRAND_OK);
    spec.quarantine_ns = 1;
    try_all(world, &spec, ERRAND_OK);
    spec.work_max = 0;
    spec.held_work_unit = NULL;
    try_all(world, &spec, ERRAND_OK);
    assert_int_equal(job.ran, 9); /* three ways of four run it */
    assert_int_equal(job.dropped, 12);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(what_nothing_can_stop_or_bound_is_refused_by_every_call),
        WITH_WORLD(a_bound_may_be_time_or_work_or_both),
    };
    return test_group("dispatch/spec", tests, NULL, NULL);
}
