/* SPDX-License-Identifier: MIT */
/* Goal: what a cancel answers and does in every state of an operation (O35 - O39, C-B2).
 * Method: async jobs on the manual executor run while the test cancels them on the same thread. */
#include "counted.h"

static void
every_state_has_its_answer(void **state)
{
    /* O35, C-B2: twice each. */
    test_world *world = *state;
    counted queued = {.answer = 0}, running = {.lingers = true, .deaf = true},
            settled = {.answer = 0}, early = {.answer = 0};
    errand_submission submission = counted_submission(world, &early);
    errand_identity unknown;

    counted_await(&early);
    assert_int_equal(counted_cancel(&early), ERRAND_CANCEL_NOT_SUBMITTED);
    assert_int_equal(counted_cancel(&early), ERRAND_CANCEL_NOT_SUBMITTED);
    counted_submit(world, &running);
    counted_submit(world, &settled);
    world_step(world, 2);
    counted_submit(world, &queued);
    unknown = queued.identity;
    unknown.operation++;
    assert_int_equal(counted_cancel(&queued), ERRAND_CANCEL_CANCELLED);
    assert_int_equal(counted_cancel(&queued), ERRAND_CANCEL_ALREADY);
    assert_int_equal(counted_cancel(&running), ERRAND_CANCEL_RUNNING);
    assert_int_equal(counted_cancel(&running), ERRAND_CANCEL_RUNNING);
    assert_int_equal(counted_cancel(&settled), ERRAND_CANCEL_SETTLED);
    assert_int_equal(counted_cancel(&settled), ERRAND_CANCEL_SETTLED);
    queued.identity = unknown;
    assert_int_equal(counted_cancel(&queued), ERRAND_CANCEL_UNKNOWN);
    queued.identity.operation--;
    counted_ready(&running);
    world_step(world, 10);
    counted_drive(world);
    /* One completion each, the wait resumed with the reason each. */
    assert_int_equal(counted_cancel(&queued), ERRAND_CANCEL_UNKNOWN);
    assert_int_equal(counted_cancel(&running), ERRAND_CANCEL_UNKNOWN);
    assert_int_equal(counted_cancel(&settled), ERRAND_CANCEL_UNKNOWN);
    assert_int_equal(early.reason, ERRAND_REASON_EXPLICIT);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_ECANCELLED);
    errand_submission_abandon(&submission);
    counted_check_ended(&queued);
    counted_check_ended(&running);
    counted_check_ended(&settled);
    counted_check_ended(&early);
}

static void
look_at_the_world_in_the_hook(counted *self, counted_place place)
{
    errand_turn turn;

    if (place == AT_CANCEL) { /* O37: the wait is gone, the decoder not yet */
        errand_wait copy = *(errand_wait *)self->arg;
        errand_continuation never = {.resume = NULL};

        assert_int_equal(self->count[AT_DECODER_DROP], 0);
        assert_int_equal(self->count[AT_RESUME], 0);
        assert_int_equal(errand_await(&copy, &never), ERRAND_EINVAL);
        assert_int_equal(errand_drive(self->world->runtime, NULL, &turn), ERRAND_EBUSY);
    }
}

static void
a_cancel_takes_effect_inside_the_call(void **state)
{
    /* O37: wait removed, word tried, hook run, decoder dropped; only the continuation waits for a
     * turn, and it is ready. */
    test_world *world = *state;
    counted work = {.lingers = true, .on = look_at_the_world_in_the_hook};
    errand_snapshot snapshot;
    errand_turn turn;

    work.arg = &work.wait;
    counted_submit(world, &work);
    world_step(world, 1);
    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_RUNNING);
    assert_int_equal(work.count[AT_CANCEL], 1);
    assert_int_equal(work.count[AT_DECODER_DROP], 1);
    assert_int_equal(work.count[AT_RESUME], 0);
    assert_true(work.order[AT_CANCEL] < work.order[AT_DECODER_DROP]);
    assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
    assert_int_equal(turn.visits, 1);
    assert_int_equal(work.reason, ERRAND_REASON_EXPLICIT);
    assert_false(work.completed);
    /* O36: the operation itself still runs, and nothing of it was dropped. */
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.running, 1);
    assert_int_equal(work.count[AT_STATE_DROP] + work.count[AT_HOOK_DROP], 0);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->flags, ERRAND_CANCEL_REQUESTED | ERRAND_LATE);
    assert_int_equal(world_last(world)->outcome, ERRAND_COMPLETED);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.late, 1);
    assert_int_equal(snapshot.resumed, 0);
    counted_check_ended(&work);
}

static void
a_cancel_drops_a_decoder_that_nobody_waits_with(void **state)
{
    /* O37: queued, running, settled. */
    test_world *world = *state;

    for (int i = 0; i < 3; i++) {
        counted work = {.no_continuation = true, .lingers = i == 1};

        counted_submit(world, &work);
        if (i > 0)
            world_step(world, 1);
        (void)counted_cancel(&work);
        assert_int_equal(work.count[AT_DECODER_DROP], 1);
        world_step(world, 1);
        counted_drive(world);
        counted_check_ended(&work);
    }
}

static void
a_queued_cancel_is_over_inside_the_call(void **state)
{
    /* O37, O22: settled before the call returns. */
    test_world *world = *state;
    counted work = {.answer = 0};
    errand_snapshot snapshot;

    counted_submit(world, &work);
    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_CANCELLED);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.queued, 0);
    assert_int_equal(snapshot.undrained, 1);
    assert_int_equal(snapshot.cancelled, 1);
    assert_int_equal(work.count[AT_CANCEL], 0);
    counted_drive(world);
    counted_check_ended(&work);
}

/* ---- O39 by state --------------------------------------------------------------------------------- */

/* Cancels everything in the way it can be: again, by the roots, later, at the end. */
static void
cancel_in_every_way(test_world *world, counted *work)
{
    errand_inbox *inbox;

    (void)counted_cancel(work);
    assert_int_equal(errand_cancel_later(world->runtime, &work->identity), ERRAND_OK);
    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    assert_int_equal(errand_post_cancel(inbox, &work->identity), ERRAND_OK);
    errand_inbox_abandon(&inbox);
    counted_drive(world);
    assert_int_equal(counted_cancel(work), ERRAND_CANCEL_RUNNING);
}

static void
a_hook_runs_once_for_life_whoever_cancels(void **state)
{
    /* O38 */
    test_world *world = *state;
    counted work = {.lingers = true, .deaf = true};
    errand_spec spec = counted_spec(world, &work);
    errand_submission submission;

    spec.deadline_ns = 1000;
    submission = counted_submission_of(world, &work, &spec);
    counted_await(&work);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    world_step(world, 1);
    cancel_in_every_way(world, &work);
    assert_int_equal(errand_testing_clock(world->runtime, 1000), ERRAND_OK);
    counted_drive(world); /* its deadline asks once more */
    world_end(world);
    assert_int_equal(work.count[AT_CANCEL], 1);
    counted_check_ended(&work);
}

/* How many entries does the runtime keep?  Its report says so. */
static void
check_entries(test_world *world, counted *work, unsigned entries)
{
    errand_turn turn;

    assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
    (void)work;
    assert_int_equal(errand_reap_ready(world->runtime, &work->identity),
                     entries != 0 ? ERRAND_OK : ERRAND_EUNKNOWN);
}

static void
a_reaped_resource_leaves_no_entry_and_a_pending_one_leaves_one(void **state)
{
    /* O39 */
    static const errand_hook_answer answers[] = {ERRAND_HOOK_REAPED, ERRAND_HOOK_PENDING,
                                                 ERRAND_HOOK_ERROR};
    test_world *world = *state;

    for (int i = 0; i < 3; i++) {
        counted work = {.lingers = true, .cancel_answer = answers[i]};

        counted_submit(world, &work);
        world_step(world, 1);
        assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_RUNNING);
        check_entries(world, &work, i > 0);
        world_step(world, 1);
        counted_drive(world);
        assert_int_equal(work.count[AT_REAP], i > 0);
        check_entries(world, &work, 0);
        counted_check_ended(&work);
    }
}

static void
a_queued_or_settled_operation_leaves_no_entry(void **state)
{
    /* O39 */
    test_world *world = *state;
    counted queued = {.cancel_answer = ERRAND_HOOK_PENDING},
            settled = {.cancel_answer = ERRAND_HOOK_PENDING};

    counted_submit(world, &settled);
    world_step(world, 1);
    counted_submit(world, &queued);
    assert_int_equal(counted_cancel(&settled), ERRAND_CANCEL_SETTLED);
    assert_int_equal(counted_cancel(&queued), ERRAND_CANCEL_CANCELLED);
    assert_int_equal(errand_reap_ready(world->runtime, &settled.identity),
                     ERRAND_EUNKNOWN);
    assert_int_equal(errand_reap_ready(world->runtime, &queued.identity),
                     ERRAND_EUNKNOWN);
    assert_int_equal(world_drain(world, 10), 2);
    for (int i = 0; i < 2; i++)
        assert_true((world->news[i].flags & ERRAND_LATE) != 0);
    assert_int_equal(settled.count[AT_DECODE], 0);
    counted_drive(world);
    assert_int_equal(settled.count[AT_CANCEL] + queued.count[AT_CANCEL], 0);
    counted_check_ended(&settled);
    counted_check_ended(&queued);
}

static void
cancel_itself(counted *self, counted_place place)
{
    errand_snapshot snapshot;

    if (place != AT_BODY)
        return;
    assert_int_equal(counted_cancel(self), ERRAND_CANCEL_RUNNING);
    assert_int_equal(errand_runtime_snapshot(self->world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.running, 1);
}

static void
a_quarantined_operation_is_kept_until_its_completion_reaps_it(void **state)
{
    /* O39: an entry without a hook; running only. */
    test_world *world = *state;
    counted running = {.no_hook = true, .on = cancel_itself}, queued = {.no_hook = true};
    counted *works[] = {&running, &queued};
    errand_snapshot snapshot;

    for (int i = 0; i < 2; i++) {
        errand_spec spec = counted_spec(world, works[i]);
        errand_submission submission;

        spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
        spec.quarantine_ns = 1000000;
        submission = counted_submission_of(world, works[i], &spec);
        counted_await(works[i]);
        assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    }
    assert_int_equal(counted_cancel(&queued), ERRAND_CANCEL_CANCELLED);
    world_step(world, 10);
    assert_int_equal(errand_reap_ready(world->runtime, &running.identity),
                     ERRAND_EUNKNOWN); /* it has no hook to ask */
    assert_int_equal(world_drain(world, 10), 2);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.reaped, 1);
    assert_int_equal(snapshot.late, 1); /* the queued one */
    counted_drive(world);
    assert_int_equal(running.reason, ERRAND_REASON_EXPLICIT);
    counted_check_ended(&running);
    counted_check_ended(&queued);
    world_end(world);
    assert_true(world->report.clean);
}

static void
a_drained_operation_that_was_not_resumed_gets_the_reason(void **state)
{
    /* O39: the decoded value is dropped. */
    test_world *world = *state;
    counted work = {.answer = 0};

    counted_submit(world, &work);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(work.count[AT_DECODE], 1);
    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_SETTLED);
    assert_int_equal(work.count[AT_VALUE_DROP], 1);
    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_UNKNOWN);
    counted_drive(world);
    assert_int_equal(work.reason, ERRAND_REASON_EXPLICIT);
    assert_false(work.completed);
    counted_check_ended(&work);
}

static void
the_first_reason_of_a_wait_counts(void **state)
{
    /* O36, O40 */
    test_world *world = *state;
    counted work = {.lingers = true, .deaf = true};

    counted_submit(world, &work);
    world_step(world, 1);
    assert_int_equal(
        errand_cancel(world->runtime, &work.identity, ERRAND_REASON_TIMEOUT, NULL),
        ERRAND_OK);
    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_RUNNING);
    counted_ready(&work);
    world_step(world, 1);
    counted_drive(world);
    assert_int_equal(work.reason, ERRAND_REASON_TIMEOUT);
    counted_check_ended(&work);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(every_state_has_its_answer),
        WITH_WORLD(a_cancel_takes_effect_inside_the_call),
        WITH_WORLD(a_cancel_drops_a_decoder_that_nobody_waits_with),
        WITH_WORLD(a_queued_cancel_is_over_inside_the_call),
        WITH_WORLD(a_hook_runs_once_for_life_whoever_cancels),
        WITH_WORLD(a_reaped_resource_leaves_no_entry_and_a_pending_one_leaves_one),
        WITH_WORLD(a_queued_or_settled_operation_leaves_no_entry),
        WITH_WORLD(a_quarantined_operation_is_kept_until_its_completion_reaps_it),
        WITH_WORLD(a_drained_operation_that_was_not_resumed_gets_the_reason),
        WITH_WORLD(the_first_reason_of_a_wait_counts),
    };
    return test_group("runtime/cancel", tests, NULL, NULL);
}
