/* SPDX-License-Identifier: MIT */
/* Goal: an async job that is pending and that nobody wakes keeps neither a seeded runtime nor a lease
 * from its end (O73), and what it had asked for is reaped (O39).
 * Method: the manual executor; in inline order a root awaits the job, and the deadline has passed. */
#include "errand/async.h"
#include "world.h"

typedef struct sleeper {
    errand_lease *lease;
    int polls, drops;
} sleeper;

static int32_t
poll_never(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    ((sleeper *)state)->polls++;
    return ERRAND_PENDING;
}

static void
count_drop(void *state)
{
    ((sleeper *)state)->drops++;
}

static const errand_job_type never = {
    .struct_size = sizeof never, .name = "never", .poll = poll_never, .drop = count_drop};

static errand_task_answer
await_it(errand_task *task, void *state, const errand_task_news *news)
{
    sleeper *self = state;
    errand_spec spec = ERRAND_SPEC_INIT;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &never;
    spec.state = self;
    assert_int_equal(errand_task_await(task, self->lease, &spec, UINT64_MAX, NULL),
                     ERRAND_OK);
    assert_int_equal(errand_start(self->lease, &spec, NULL, NULL), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static void
a_pending_job_that_nobody_wakes_does_not_keep_a_runtime(void **state)
{
    test_world *world = *state;
    sleeper self = {.lease = world->lease};
    errand_task_spec task = {.struct_size = sizeof task, .fn = await_it, .state = &self};
    errand_turn turn;

    assert_int_equal(errand_spawn(world->runtime, NULL, &task, NULL), ERRAND_OK);
    assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
    world->ended = true;
    assert_int_equal(errand_runtime_shutdown(&world->runtime,
                                             errand_deadline_in(20000000),
                                             ERRAND_SHUTDOWN_RUN, &world->report),
                     ERRAND_OK);
    errand_executor_abandon(&world->executor);
    assert_int_equal(world->report.accounts.accepted, 2);
    assert_int_equal(world->report.accounts.drained + world->report.undeliverable, 2);
    assert_int_equal(self.drops, 2);
}

static unsigned cancels, reaps;

static errand_hook_answer
pend(void *data, char *text, size_t size)
{
    (void)data, (void)text, (void)size;
    cancels++;
    return ERRAND_HOOK_PENDING;
}

static errand_hook_answer
reap(void *data, char *text, size_t size)
{
    (void)data, (void)text, (void)size;
    return ++reaps == 2 ? ERRAND_HOOK_REAPED : ERRAND_HOOK_PENDING;
}

static const errand_hook_type slow_hook = {
    .struct_size = sizeof slow_hook, .cancel = pend, .reap = reap};

/* O39: its lease's end drops the job; the resource is not gone with it. */
static void
what_a_dropped_job_asked_for_is_reaped_until_it_is_gone(void **state)
{
    test_world *world = *state;
    sleeper self = {.lease = world->lease};
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_identity name;
    errand_turn turn;

    cancels = reaps = 0;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &never;
    spec.state = &self;
    spec.held_hook = &slow_hook;
    assert_int_equal(errand_start(world->lease, &spec, NULL, &name), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(self.polls, 1);
    assert_int_equal(errand_cancel(world->runtime, &name, ERRAND_REASON_EXPLICIT, NULL),
                     ERRAND_OK);
    assert_int_equal(cancels, 1);
    assert_int_equal(errand_lease_shutdown(&world->lease, 0, NULL), ERRAND_OK);
    do {
        assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
        if (turn.kind == ERRAND_TURN_IDLE)
            assert_int_equal(errand_testing_clock(world->runtime, 1000000), ERRAND_OK);
    } while (turn.kind != ERRAND_TURN_QUIESCENT);
    assert_int_equal(self.drops, 1);
    assert_int_equal(reaps, 2);
    world_end(world);
    assert_true(world->report.clean);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_pending_job_that_nobody_wakes_does_not_keep_a_runtime, world_setup_inline,
            world_teardown),
        cmocka_unit_test_setup_teardown(
            what_a_dropped_job_asked_for_is_reaped_until_it_is_gone, world_setup,
            world_teardown),
    };
    return test_group("runtime/pending_end", tests, NULL, NULL);
}
