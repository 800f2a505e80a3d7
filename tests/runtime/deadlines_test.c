/* SPDX-License-Identifier: MIT */
/* Goal: deadlines end operations whatever their bodies do, and memory stays until a body is back
 * (O45).
 * Method: the test clock moves; bodies on a pool with one thread stand at gates. */
#include "counted.h"
#include "gate.h"

#define GRACE UINT64_C(1000000000) /* the default */

typedef struct stuck {
    counted work;
    test_gate body, dropped;
} stuck;

static void
stand(counted *self, counted_place place)
{
    stuck *gates = self->arg;

    if (place == AT_BODY)
        gate_wait(&gates->body);
    if (place == AT_STATE_DROP)
        gate_wait(&gates->dropped);
}

static errand_spec
stuck_spec(test_world *world, stuck *self, bool quarantined)
{
    errand_spec spec;

    *self = (stuck){.work = {.on = stand, .arg = self, .no_hook = quarantined}};
    gate_init(&self->body, "body");
    gate_init(&self->dropped, "drop");
    gate_open(&self->dropped);
    spec = counted_spec(world, &self->work);
    if (quarantined) {
        spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
        spec.quarantine_ns = 100;
    }
    return spec;
}

static void
submit(test_world *world, counted *self, const errand_spec *spec)
{
    errand_submission submission = counted_submission_of(world, self, spec);

    if (self->no_continuation)
        errand_wait_abandon(&self->wait);
    else
        counted_await(self);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
}

static void
pass(test_world *world, uint64_t ns)
{
    assert_int_equal(errand_testing_clock(world->runtime, ns), ERRAND_OK);
    counted_drive(world);
}

static errand_snapshot
snapshot_of(test_world *world)
{
    errand_snapshot snapshot;

    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    return snapshot;
}

/* Drives until the state was dropped. */
static void
await_drop(test_world *world, const counted *self)
{
    while (self->count[AT_STATE_DROP] == 0) {
        assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
    }
}

static void
check_alive(test_world *world, const counted *self)
{
    assert_int_equal(self->count[AT_STATE_DROP] + self->count[AT_PAYLOAD_DROP], 0);
    assert_int_equal(snapshot_of(world).held, 1);
    assert_int_equal(snapshot_of(world).returned_late, 0);
}

/* Opens the gate of a held body, and finds all of it gone, dropped here. */
static void
let_return(test_world *world, stuck *self)
{
    gate_open(&self->body);
    await_drop(world, &self->work);
    assert_int_equal(snapshot_of(world).held, 0);
    assert_int_equal(snapshot_of(world).returned_late, 1);
    counted_check_here(&self->work, AT_STATE_DROP);
    counted_check_ended(&self->work);
    gate_fini(&self->body);
    gate_fini(&self->dropped);
}

static void
queued_work_ends_at_its_deadline_unrun(void **state)
{
    /* O45 */
    test_world *world = *state;
    counted work = {.answer = 0}, next = {.answer = 0};
    errand_spec spec = counted_spec(world, &work);

    spec.deadline_ns = 100;
    submit(world, &work, &spec);
    counted_submit(world, &next);
    pass(world, 99);
    assert_int_equal(work.count[AT_RESUME], 0);
    pass(world, 1);
    assert_int_equal(work.count[AT_RESUME], 1);
    assert_int_equal(work.outcome, ERRAND_FAILED);
    assert_int_equal(snapshot_of(world).codes[ERRAND_CODE_DEADLINE], 1);
    assert_int_equal(snapshot_of(world).held, 0);
    assert_int_equal(world_step(world, 10), 1); /* the next one alone */
    assert_int_equal(work.count[AT_BODY] + work.count[AT_CANCEL], 0);
    counted_drive(world);
    counted_check_ended(&work);
    counted_check_ended(&next);
}

static void
a_body_that_heeds_its_deadline_ends_by_itself(void **state)
{
    /* O45: asked by its hook, within the grace. */
    test_world *world = *state;
    counted work = {.lingers = true};
    errand_spec spec = counted_spec(world, &work);

    spec.deadline_ns = 100;
    submit(world, &work, &spec);
    world_step(world, 1);
    pass(world, 100);
    assert_int_equal(work.count[AT_CANCEL], 1);
    assert_int_equal(work.count[AT_RESUME], 0); /* a deadline does not end the wait */
    world_step(world, 1);
    counted_drive(world);
    assert_int_equal(work.outcome, ERRAND_COMPLETED);
    assert_int_equal(work.flags, ERRAND_CANCEL_REQUESTED);
    pass(world, 100 * GRACE);
    counted_check_ended(&work);
}

/* Its deadline, or a cancel 10 ns before and then its deadline, ask for its end; it answers 7. */
static void
heeds_and_fails(test_world *world, counted *self, bool cancelled)
{
    errand_spec spec = counted_spec(world, self);

    spec.deadline_ns = 100;
    submit(world, self, &spec);
    world_step(world, 1);
    pass(world, 90);
    if (cancelled)
        assert_int_equal(counted_cancel(self), ERRAND_CANCEL_RUNNING);
    pass(world, 10);
    if (!cancelled)
        assert_int_equal(counted_cancel(self),
                         ERRAND_CANCEL_RUNNING); /* too late to count */
    world_step(world, 1);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_FAILED);
    assert_int_equal(world_last(world)->job_code, 7);
    assert_string_equal(world_last(world)->message, "seven bytes came");
    counted_drive(world);
    counted_check_ended(self);
}

static void
say_how_far_it_came(counted *self, counted_place place)
{
    if (place == AT_BODY && self->running != NULL)
        errand_job_message(self->running, "seven bytes came");
}

static void
a_body_that_heeds_its_deadline_and_fails_has_its_code(void **state)
{
    /* O45 */
    test_world *world = *state;
    counted work = {.lingers = true, .answer = 7, .on = say_how_far_it_came};

    heeds_and_fails(world, &work, false);
    assert_int_equal(world_last(world)->code, ERRAND_CODE_DEADLINE);
    assert_int_equal(snapshot_of(world).codes[ERRAND_CODE_DEADLINE], 1);
    assert_int_equal(snapshot_of(world).codes[ERRAND_CODE_JOB], 0);
}

static void
a_cancel_before_the_deadline_leaves_the_body_its_own_code(void **state)
{
    /* O45 */
    test_world *world = *state;
    counted work = {.lingers = true, .answer = 7, .on = say_how_far_it_came};

    heeds_and_fails(world, &work, true);
    assert_int_equal(world_last(world)->code, ERRAND_CODE_JOB);
    assert_int_equal(snapshot_of(world).codes[ERRAND_CODE_DEADLINE], 0);
}

static void
a_body_that_stays_is_settled_and_its_worker_replaced(void **state)
{
    /* O45: held: memory stays the body's until it returns; another thread goes on. */
    test_world *world = *state;
    stuck stays;
    errand_spec spec = stuck_spec(world, &stays, false);
    counted next = {.answer = 0};
    errand_executor_snapshot pool;

    world_pool(world, 1);
    spec.deadline_ns = 100;
    submit(world, &stays.work, &spec);
    gate_await_arrival(&stays.body);
    counted_submit(world, &next);
    pass(world, 100);
    assert_int_equal(stays.work.count[AT_CANCEL], 1);
    pass(world, GRACE - 1);
    assert_int_equal(stays.work.count[AT_RESUME], 0);
    pass(world, 1);
    assert_int_equal(stays.work.count[AT_RESUME], 1);
    assert_int_equal(stays.work.outcome, ERRAND_FAILED);
    assert_int_equal(stays.work.flags, ERRAND_HELD | ERRAND_CANCEL_REQUESTED);
    assert_int_equal(snapshot_of(world).codes[ERRAND_CODE_DEADLINE], 1);
    await_drop(world, &next); /* while the gate is shut */
    check_alive(world, &stays.work);
    assert_int_equal(errand_executor_snapshot_read(world->pool, &pool), ERRAND_OK);
    assert_int_equal(pool.written_off, 1);
    assert_int_equal(pool.threads_replaced, 1);
    let_return(world, &stays);
    assert_int_equal(stays.work.count[AT_RESUME], 1); /* its return is no completion */
    assert_int_equal(snapshot_of(world).accepted, 2);
    assert_int_equal(snapshot_of(world).drained, 2);
    counted_drive(world);
    counted_check_ended(&next);
}

static void
a_return_before_the_drain_waits_for_the_completion(void **state)
{
    /* O45: the drop comes with the drain of the completion, once. */
    test_world *world = *state;
    stuck stays;
    errand_spec spec = stuck_spec(world, &stays, true);

    world_pool(world, 1);
    stays.work.no_continuation = true;
    submit(world, &stays.work, &spec);
    gate_await_arrival(&stays.body);
    assert_int_equal(counted_cancel(&stays.work), ERRAND_CANCEL_RUNNING);
    assert_int_equal(errand_testing_clock(world->runtime, 100), ERRAND_OK);
    assert_int_equal(world_drain(world, 0), 0); /* settles, delivers nothing yet */
    assert_int_equal(snapshot_of(world).held, 1);
    gate_open(&stays.body);
    while (snapshot_of(world).returned_late == 0)
        continue;
    assert_int_equal(stays.work.count[AT_STATE_DROP], 0);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->code, ERRAND_CODE_DEADLINE);
    assert_int_equal(world_last(world)->flags,
                     ERRAND_HELD | ERRAND_CANCEL_REQUESTED | ERRAND_LATE);
    assert_int_equal(stays.work.count[AT_STATE_DROP], 1);
    assert_int_equal(world_drain(world, 10), 0);
    let_return(world, &stays);
}

/* Its completion is heard in the body that it does not wait for, and then it is cancelled. */
static void
outlive_and_cancel(counted *self, counted_place place)
{
    test_world *world = self->world;

    if (place != AT_BODY)
        return;
    assert_int_equal(errand_testing_clock(world->runtime, 50), ERRAND_OK);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->flags, ERRAND_HELD);
    assert_int_equal(counted_cancel(self), ERRAND_CANCEL_SETTLED);
}

static void
a_cancel_before_the_resume_counts_while_the_body_is_held_too(void **state)
{
    /* O37, O45 */
    test_world *world = *state;
    counted work = {.on = outlive_and_cancel, .no_hook = true};
    errand_spec spec = counted_spec(world, &work);

    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = 100;
    spec.deadline_ns = 50;
    submit(world, &work, &spec);
    assert_int_equal(world_step(world, 1), 1);
    counted_drive(world);
    assert_int_equal(work.count[AT_RESUME], 1);
    assert_int_equal(work.reason, ERRAND_REASON_EXPLICIT);
    assert_false(work.completed);
    assert_int_equal(snapshot_of(world).held, 0);
    counted_check_ended(&work);
}

static void
a_quarantine_counts_from_its_cancel(void **state)
{
    /* O45 */
    test_world *world = *state;
    stuck stays;
    errand_spec spec = stuck_spec(world, &stays, true);

    world_pool(world, 1);
    submit(world, &stays.work, &spec);
    gate_await_arrival(&stays.body);
    pass(world, 100 * GRACE); /* nobody asked it to end */
    assert_int_equal(snapshot_of(world).held, 0);
    assert_int_equal(counted_cancel(&stays.work), ERRAND_CANCEL_RUNNING);
    pass(world, 99);
    assert_int_equal(snapshot_of(world).held, 0);
    pass(world, 1);
    check_alive(world, &stays.work);
    let_return(world, &stays);
}

static void
a_cancel_does_not_put_off_an_earlier_deadline(void **state)
{
    /* O45 */
    test_world *world = *state;
    stuck stays;
    errand_spec spec = stuck_spec(world, &stays, true);

    world_pool(world, 1);
    spec.deadline_ns = 120;
    submit(world, &stays.work, &spec);
    gate_await_arrival(&stays.body);
    pass(world, 110);
    assert_int_equal(counted_cancel(&stays.work), ERRAND_CANCEL_RUNNING);
    pass(world, 9);
    assert_int_equal(snapshot_of(world).held, 0);
    pass(world, 1); /* quarantined work has no hook to ask: at once */
    check_alive(world, &stays.work);
    let_return(world, &stays);
}

static void
held_operations_are_capped(void **state)
{
    /* O45, O10: quarantined submits are refused beyond the cap, others are not. */
    test_world *world = *state;
    stuck stays, refused;
    counted other = {.answer = 0};
    errand_spec spec;
    errand_submission submission;

    world->config.held_max = 1;
    world_end(world);
    world_begin(world, &world->config, 0);
    world_pool(world, 1);
    spec = stuck_spec(world, &stays, true);
    submit(world, &stays.work, &spec);
    gate_await_arrival(&stays.body);
    assert_int_equal(counted_cancel(&stays.work), ERRAND_CANCEL_RUNNING);
    pass(world, 100);
    check_alive(world, &stays.work);
    spec = stuck_spec(world, &refused, true);
    submission = counted_submission_of(world, &refused.work, &spec);
    counted_await(&refused.work);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_EFULL);
    counted_submit(world, &other);
    await_drop(world, &other);
    let_return(world, &stays);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    gate_open(&refused.body);
    await_drop(world, &refused.work);
    counted_drive(world);
    counted_check_ended(&refused.work);
    counted_check_ended(&other);
    gate_fini(&refused.body);
    gate_fini(&refused.dropped);
}

static void
a_return_after_the_end_is_dropped_by_who_returned(void **state)
{
    /* O45, O58, O73: the report names it; the runtime is not touched. */
    test_world *world = *state;
    static stuck stays; /* the worker may be slow to leave its drop */
    errand_spec spec = stuck_spec(world, &stays, true);

    world_pool(world, 1);
    submit(world, &stays.work, &spec);
    gate_await_arrival(&stays.body);
    assert_int_equal(counted_cancel(&stays.work), ERRAND_CANCEL_RUNNING);
    pass(world, 100);
    check_alive(world, &stays.work);
    world_end(world);
    assert_int_equal(world->report.held, 1);
    assert_false(world->report.clean);
    assert_int_equal(world->report.undeliverable, 0); /* its completion was drained */
    assert_int_equal(stays.work.count[AT_STATE_DROP], 0);
    gate_open(&stays.body);
    gate_await_arrival(&stays.dropped);
    assert_true(
        pthread_equal(stays.work.thread[AT_STATE_DROP], stays.work.thread[AT_BODY]));
    counted_check_ended(&stays.work);
    gate_fini(&stays.body);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(queued_work_ends_at_its_deadline_unrun),
        WITH_WORLD(a_body_that_heeds_its_deadline_ends_by_itself),
        WITH_WORLD(a_body_that_heeds_its_deadline_and_fails_has_its_code),
        WITH_WORLD(a_cancel_before_the_deadline_leaves_the_body_its_own_code),
        WITH_WORLD(a_body_that_stays_is_settled_and_its_worker_replaced),
        WITH_WORLD(a_return_before_the_drain_waits_for_the_completion),
        WITH_WORLD(a_cancel_before_the_resume_counts_while_the_body_is_held_too),
        WITH_WORLD(a_quarantine_counts_from_its_cancel),
        WITH_WORLD(a_cancel_does_not_put_off_an_earlier_deadline),
        WITH_WORLD(held_operations_are_capped),
        WITH_WORLD(a_return_after_the_end_is_dropped_by_who_returned),
    };
    return test_group("runtime/deadlines", tests, NULL, NULL);
}
