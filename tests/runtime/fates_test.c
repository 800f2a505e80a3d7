/* SPDX-License-Identifier: MIT */
/* Goal: decoder and continuation meet one fate each, and it is the right one (O32), and a completion
 * wakes no other wait than its own (O46).
 * Method: a table of ends; and forged completions that differ from the right one in one field. */
#include "counted.h"

typedef struct fate {
    void (*end)(test_world *world, counted *self);
    bool decoded, told; /* told: resumed with the completion, else with the reason */
    errand_status status;
    errand_outcome outcome;
    errand_reason reason;
} fate;

static void
run_it(test_world *world, counted *self)
{
    counted_submit(world, self);
    world_step(world, 10);
}

static void
complete(test_world *world, counted *self)
{
    run_it(world, self);
}

static void
complete_undecodable(test_world *world, counted *self)
{
    self->verdict = ERRAND_EDECODE;
    run_it(world, self);
}

static void
fail_by_code(test_world *world, counted *self)
{
    self->answer = 5;
    run_it(world, self);
}

static void
end_by_panic(test_world *world, counted *self)
{
    self->panics = true;
    run_it(world, self);
}

static void
pass_deadline_queued(test_world *world, counted *self)
{
    errand_spec spec = counted_spec(world, self);
    errand_submission submission;

    spec.deadline_ns = 10;
    submission = counted_submission_of(world, self, &spec);
    counted_await(self);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    assert_int_equal(errand_testing_clock(world->runtime, 10), ERRAND_OK);
}

static void
cancel_queued(test_world *world, counted *self)
{
    counted_submit(world, self);
    assert_int_equal(counted_cancel(self), ERRAND_CANCEL_CANCELLED);
}

static void
cancel_running(test_world *world, counted *self)
{
    self->lingers = true;
    run_it(world, self);
    assert_int_equal(counted_cancel(self), ERRAND_CANCEL_RUNNING);
    world_step(world, 10);
}

static void
cancel_settled(test_world *world, counted *self)
{
    run_it(world, self);
    assert_int_equal(counted_cancel(self), ERRAND_CANCEL_SETTLED);
}

static void
end_lease(test_world *world, counted *self)
{
    errand_lease *lease;
    errand_executor *other;
    errand_submission submission = counted_submission(world, self);

    /* A second lease, which ends: nobody cancelled this wait. */
    assert_int_equal(errand_manual_create(NULL, &other), ERRAND_OK);
    assert_int_equal(errand_attach(world->runtime, other, 0, &lease), ERRAND_OK);
    counted_await(self);
    assert_int_equal(errand_submit(lease, &submission), ERRAND_OK);
    assert_int_equal(errand_lease_shutdown(&lease, 0, NULL), ERRAND_OK);
    errand_executor_abandon(&other);
}

static void
end_lease_running(test_world *world, counted *self)
{
    errand_lease *lease;
    errand_executor *other;
    errand_submission submission;
    size_t count;

    /* Dropped by its executor, as nobody asked it to end: the completion itself is a cancel. */
    self->lingers = self->deaf = true;
    submission = counted_submission(world, self);
    assert_int_equal(errand_manual_create(NULL, &other), ERRAND_OK);
    assert_int_equal(errand_attach(world->runtime, other, 0, &lease), ERRAND_OK);
    counted_await(self);
    assert_int_equal(errand_submit(lease, &submission), ERRAND_OK);
    assert_int_equal(errand_manual_step(other, 1, &count), ERRAND_OK);
    assert_int_equal(errand_lease_shutdown(&lease, 0, NULL), ERRAND_OK);
    errand_executor_abandon(&other);
}

static void
each_end_has_its_fate_for_decoder_and_continuation(void **state)
{
    /* O32 */
    static const fate fates[] = {
        {complete, true, true, ERRAND_OK, ERRAND_COMPLETED, 0},
        {complete_undecodable, true, true, ERRAND_EDECODE, ERRAND_COMPLETED, 0},
        {fail_by_code, true, true, ERRAND_OK, ERRAND_FAILED, 0},
        {end_by_panic, true, true, ERRAND_OK, ERRAND_PANICKED, 0},
        {pass_deadline_queued, true, true, ERRAND_OK, ERRAND_FAILED, 0},
        {cancel_queued, false, false, 0, 0, ERRAND_REASON_EXPLICIT},
        {cancel_running, false, false, 0, 0, ERRAND_REASON_EXPLICIT},
        {cancel_settled, false, false, 0, 0, ERRAND_REASON_EXPLICIT},
        {end_lease, false, false, 0, 0, ERRAND_REASON_SHUTDOWN},
        {end_lease_running, false, true, ERRAND_ECANCELLED, ERRAND_CANCELLED,
         ERRAND_REASON_RESOURCE_LOST},
    };
    test_world *world = *state;

    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++) {
        counted self = {.answer = 0};

        fates[i].end(world, &self);
        counted_drive(world);
        assert_int_equal(self.count[AT_DECODE], fates[i].decoded);
        assert_int_equal(self.count[AT_DECODER_DROP], !fates[i].decoded);
        assert_int_equal(self.count[AT_RESUME], 1);
        assert_int_equal(self.completed, fates[i].told);
        assert_int_equal(self.reason, fates[i].reason);
        if (fates[i].told) {
            assert_int_equal(self.told, fates[i].status);
            assert_int_equal(self.outcome, fates[i].outcome);
        }
        counted_check_ended(&self);
    }
}

static void
a_refused_submission_ends_its_wait_without_resuming_it(void **state)
{
    /* O32: the caller holds the answer. */
    test_world *world = *state;
    counted blocker = {.answer = 0}, self = {.answer = 0};
    errand_submission submission;

    world_end(world);
    world_begin(world, &world->config, 1);
    counted_submit(world, &blocker);
    submission = counted_submission(world, &self);
    counted_await(&self);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_EFULL);
    errand_submission_abandon(&submission);
    counted_drive(world);
    assert_int_equal(self.count[AT_RESUME], 0);
    assert_int_equal(self.count[AT_DECODE], 0);
    counted_check_ended(&self);
    world_step(world, 10);
    counted_drive(world);
    counted_check_ended(&blocker);
}

/* ---- routing --------------------------------------------------------------------------------------- */

static unsigned forged_drops;

static void
count_forged(void *data, size_t size)
{
    (void)data;
    (void)size;
    forged_drops++;
}

static const errand_payload_type forged_type = {"forged", count_forged};

static bool
deliver(test_world *world, const errand_identity *identity)
{
    errand_payload payload = {&forged_type, world, 1};
    bool woke = false;

    assert_int_equal(errand_testing_deliver(world->runtime, identity, ERRAND_COMPLETED,
                                            payload, &woke),
                     ERRAND_OK);
    return woke;
}

static uint64_t
stale(test_world *world)
{
    errand_snapshot snapshot;

    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    return snapshot.stale;
}

static void
a_completion_that_differs_in_one_field_wakes_nobody(void **state)
{
    /* O46, C-A11 */
    test_world *world = *state;
    counted self = {.answer = 0};
    errand_identity wrong[7], old;

    assert_int_equal(errand_issue(world->runtime, 1, NULL, &old), ERRAND_OK);
    assert_int_equal(errand_retire(world->runtime, &old), ERRAND_OK);
    counted_submit(world, &self);
    assert_int_equal(self.identity.slot, old.slot);
    for (int i = 0; i < 6; i++)
        wrong[i] = self.identity;
    wrong[0].runtime++;
    wrong[1].wait++;
    wrong[2].generation--;
    wrong[3].operation++;
    wrong[4].kind++;
    wrong[5].slot++;
    wrong[6] = old;
    forged_drops = 0;
    for (unsigned i = 0; i < 7; i++) {
        assert_false(deliver(world, &wrong[i]));
        assert_int_equal(stale(world), i + 1);
        assert_int_equal(forged_drops, i + 1); /* each payload destroyed once */
    }
    counted_drive(world);
    assert_int_equal(self.count[AT_RESUME], 0); /* the live wait was left alone */
    assert_true(deliver(world, &self.identity));
    assert_false(deliver(world, &self.identity)); /* a duplicate */
    assert_int_equal(forged_drops, 8);
    counted_drive(world);
    assert_int_equal(forged_drops, 9);
    assert_int_equal(self.count[AT_RESUME], 1);
    /* The true one comes now, and is late. */
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    assert_true((world_last(world)->flags & ERRAND_LATE) != 0);
    counted_drive(world);
    counted_check_ended(&self);
}

static void
late_completions_of_reused_slots_wake_nobody(void **state)
{
    /* O46, C-A11: the old operation's completion arrives while the next wait of the same host pointer
     * is active; and a retained hook is not released by it. */
    test_world *world = *state;
    counted first = {.lingers = true,
                     .cancel_answer = ERRAND_HOOK_PENDING,
                     .reap_answer = ERRAND_HOOK_PENDING},
            second = {.lingers = true};
    errand_snapshot snapshot;

    counted_submit(world, &first);
    world_step(world, 1);
    assert_int_equal(counted_cancel(&first), ERRAND_CANCEL_RUNNING);
    counted_submit(world, &second);
    world_step(world, 10); /* the first ends here */
    counted_drive(world);
    assert_int_equal(first.count[AT_STATE_DROP], 1);
    assert_int_equal(first.count[AT_HOOK_DROP], 0);
    assert_int_equal(second.count[AT_RESUME], 0);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.late, 1);
    assert_int_equal(snapshot.reaped, 0);
    first.reap_answer = ERRAND_HOOK_REAPED;
    assert_int_equal(errand_reap_ready(world->runtime, &first.identity), ERRAND_OK);
    counted_ready(&second);
    world_step(world, 1);
    counted_drive(world);
    counted_check_ended(&first);
    counted_check_ended(&second);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(each_end_has_its_fate_for_decoder_and_continuation),
        WITH_WORLD(a_refused_submission_ends_its_wait_without_resuming_it),
        WITH_WORLD(a_completion_that_differs_in_one_field_wakes_nobody),
        WITH_WORLD(late_completions_of_reused_slots_wake_nobody),
    };
    return test_group("runtime/fates", tests, NULL, NULL);
}
