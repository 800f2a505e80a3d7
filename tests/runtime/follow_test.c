/* SPDX-License-Identifier: MIT */
/* Goal: a job waits for no errand; the work it hands on is submitted once, in call order, when its own
 * completion is drained, and dropped unrun where nobody will drain it (O54, C-C3).
 * Method: bodies that follow, on the manual executor; bodies that try to wait, on real workers. */
#include <string.h>
#include "world.h"

enum { FOLLOWERS = 5 };

typedef struct leader {
    world_job job;
    world_job followers[FOLLOWERS];
    const char *panic;
    errand_status status[FOLLOWERS];
} leader;

static void
follow_all(errand_job *job, world_job *self)
{
    leader *lead = self->arg;

    for (int i = 0; i < FOLLOWERS; i++) {
        errand_spec spec = world_spec(&lead->followers[i]);

        lead->followers[i].world = self->world;
        lead->status[i] = errand_job_follow(job, &spec, &lead->followers[i]);
    }
}

static void
lead_begin(test_world *world, leader *lead)
{
    lead->job.inside = follow_all;
    lead->job.arg = lead;
    lead->job.panic = lead->panic;
    world_start(world, &lead->job);
}

static void
count(const leader *lead, int ran, int dropped)
{
    for (int i = 0; i < FOLLOWERS; i++) {
        assert_int_equal(lead->status[i], ERRAND_OK);
        assert_int_equal(lead->followers[i].ran, ran);
        assert_int_equal(lead->followers[i].dropped, dropped);
    }
}

static void
follow_ups_are_submitted_in_call_order_when_their_parent_is_drained(void **state)
{
    test_world *world = *state;
    leader lead = {.panic = NULL};

    lead_begin(world, &lead);
    assert_int_equal(world_step(world, 100), 1); /* not before the drain */
    count(&lead, 0, 0);
    assert_int_equal(world_drain(world, 100), 1);
    assert_ptr_equal(world->news[0].wait, &lead.job);
    assert_string_equal(world->news[0].message, ""); /* of a failure only */
    assert_int_equal(world_step(world, 100), FOLLOWERS);
    assert_int_equal(world_drain(world, 100), FOLLOWERS);
    for (int i = 0; i < FOLLOWERS; i++)
        assert_ptr_equal(world->news[1 + i].wait, &lead.followers[i]);
    count(&lead, 1, 1);
}

static void
follow_ups_of_a_job_that_panics_come_all_the_same(void **state)
{
    test_world *world = *state;
    leader lead = {.panic = "afterwards"};

    lead_begin(world, &lead);
    world_step(world, 100);
    assert_int_equal(world_drain(world, 100), 1);
    assert_int_equal(world->news[0].outcome, ERRAND_PANICKED);
    assert_string_equal(world->news[0].message, "afterwards");
    assert_int_equal(world_step(world, 100), FOLLOWERS);
    world_drain(world, 100);
    count(&lead, 1, 1);
}

static void
follow_ups_wait_for_room_and_keep_their_order(void **state)
{
    /* O50 */
    test_world *world = *state;
    errand_runtime_config config = world->config;
    leader lead = {.panic = NULL};

    world_end(world);
    world_begin(world, &config, 2); /* two owed operations at most */
    lead_begin(world, &lead);
    for (int done = 0; done < 1 + FOLLOWERS;) {
        errand_snapshot snapshot;

        world_step(world, 100);
        done += (int)world_drain(world, 1);
        assert_int_equal(errand_lease_snapshot(world->lease, &snapshot), ERRAND_OK);
        assert_true(snapshot.owed <= 2);
        assert_int_equal(world->news_count, done);
    }
    for (int i = 0; i < FOLLOWERS; i++)
        assert_ptr_equal(world->news[1 + i].wait, &lead.followers[i]);
    count(&lead, 1, 1);
}

static void
follow_ups_of_the_undeliverable_are_dropped_unrun(void **state)
{
    test_world *world = *state;
    leader settled = {.panic = NULL}, waiting = {.panic = NULL};
    errand_runtime_config config = world->config;

    lead_begin(world, &settled);
    world_step(world, 100); /* settled, not drained: the shutdown drains it */
    world_end(world);
    count(&settled, 0, 1);
    world_begin(world, &config, 1);
    lead_begin(world, &waiting);
    world_step(world, 100);
    assert_int_equal(world_drain(world, 100), 1); /* one has room, four wait */
    world_end(world);
    count(&waiting, 0, 1);
    assert_int_equal(world->report.accounts.accepted, 2);
}

/* ---- on real workers ------------------------------------------------------------------------------------ */

typedef struct
    waiter { /* a body that makes a runtime of its own and tries to wait in it */
    errand_executor *executor;
    errand_runtime *runtime;
    int failed; /* line */
    bool done;
} waiter;

static int32_t
nothing(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}
static const errand_job_type nothing_type = {
    .struct_size = sizeof(errand_job_type), .name = "nothing", .run = nothing};

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            self->failed = __LINE__;                                                     \
            return 0;                                                                    \
        }                                                                                \
    } while (0)

static int32_t
submit_and_wait(errand_job *job, void *state, errand_payload *out_payload)
{
    waiter *self = state;
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_task_id id = {.task = 1};
    errand_lease *lease;

    (void)job;
    (void)out_payload;
    CHECK(errand_runtime_create(NULL, &self->runtime) == ERRAND_OK);
    CHECK(errand_attach(self->runtime, self->executor, 1, &lease) == ERRAND_OK);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &nothing_type;
    CHECK(errand_start(lease, &spec, NULL, NULL) == ERRAND_OK);
    CHECK(errand_park(self->runtime, UINT64_MAX) == ERRAND_EDEADLOCK);
    CHECK(errand_lease_wait_room(lease, UINT64_MAX) == ERRAND_EDEADLOCK);
    CHECK(errand_run(self->runtime, &id, UINT64_MAX) == ERRAND_EDEADLOCK);
    CHECK(errand_lease_shutdown(&lease, UINT64_MAX, NULL) == ERRAND_EDEADLOCK);
    CHECK(errand_runtime_shutdown(&self->runtime, UINT64_MAX, ERRAND_SHUTDOWN_RUN,
                                  NULL) == ERRAND_EDEADLOCK);
    CHECK(errand_runtime_release(self->runtime) == ERRAND_OK); /* for the test */
    self->done = true;
    return 0;
}
static const errand_job_type waiter_type = {
    .struct_size = sizeof(errand_job_type), .name = "waiter", .run = submit_and_wait};

static void
wait_on(uint32_t workers)
{
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = workers, .workers_max = workers};
    waiter waiters[4];
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    size_t heard = 0, now;

    memset(waiters, 0, sizeof waiters);
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &runtime), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, executor, 0, &lease), ERRAND_OK);
    for (uint32_t i = 0; i < workers; i++) {
        errand_spec spec = ERRAND_SPEC_INIT;

        waiters[i].executor = executor;
        spec.kind = 1;
        spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
        spec.held_job = &waiter_type;
        spec.state = &waiters[i];
        assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    }
    while (heard < workers) {
        assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(runtime, 100, NULL, NULL, &now), ERRAND_OK);
        heard += now;
    }
    for (uint32_t i = 0; i < workers; i++) {
        assert_int_equal(waiters[i].failed, 0);
        assert_true(waiters[i].done);
        assert_int_equal(errand_runtime_adopt(waiters[i].runtime), ERRAND_OK); /* O9 */
        assert_int_equal(errand_runtime_shutdown(&waiters[i].runtime,
                                                 errand_deadline_in(UINT64_C(5000000000)),
                                                 ERRAND_SHUTDOWN_QUIET, NULL),
                         ERRAND_OK);
    }
    assert_int_equal(errand_runtime_shutdown(&runtime,
                                             errand_deadline_in(UINT64_C(5000000000)),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    errand_executor_abandon(&executor);
}

static void
waiting_for_the_pool_that_one_runs_on_is_a_deadlock(void **state)
{
    /* C-C3 */
    (void)state;
    wait_on(1);
    wait_on(4);
}

#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(follow_ups_are_submitted_in_call_order_when_their_parent_is_drained),
        WITH_WORLD(follow_ups_of_a_job_that_panics_come_all_the_same),
        WITH_WORLD(follow_ups_wait_for_room_and_keep_their_order),
        WITH_WORLD(follow_ups_of_the_undeliverable_are_dropped_unrun),
        cmocka_unit_test(waiting_for_the_pool_that_one_runs_on_is_a_deadlock),
    };

    return test_group("runtime/follow", tests, NULL, NULL);
}
