/* SPDX-License-Identifier: MIT */
/* Goal: other threads and finalisers reach a runtime without memory and without locks, and hear
 * whether it will be seen (O44).
 * Method: the poster's thread is joined before the owner looks. */
#include <pthread.h>
#include "counted.h"

typedef struct poster {
    errand_inbox *inbox;
    errand_identity identity;
    errand_status status, again;
    uint64_t allocations;
} poster;

static void *
post_a_cancel(void *arg)
{
    poster *self = arg;

    (void)errand_testing_fail_allocation(0);
    self->status = errand_post_cancel(self->inbox, &self->identity);
    self->again = errand_post_cancel(self->inbox, &self->identity);
    self->allocations = errand_testing_fail_allocation(0);
    return NULL;
}

static errand_status
post_from_elsewhere(errand_inbox *inbox, const errand_identity *identity)
{
    poster self = {.inbox = inbox, .identity = *identity};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, post_a_cancel, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.again, self.status);
    assert_int_equal(self.allocations, 0);
    return self.status;
}

static void
a_posted_cancel_does_what_a_cancel_does_at_the_next_drain(void **state)
{
    /* O44: in every state. */
    test_world *world = *state;
    counted queued = {.answer = 0}, running = {.lingers = true}, settled = {.answer = 0},
            early = {.answer = 0};
    errand_submission submission = counted_submission(world, &early);
    errand_inbox *inbox;

    counted_await(&early);
    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    counted_submit(world, &running);
    counted_submit(world, &settled);
    world_step(world, 2);
    counted_submit(world, &queued);
    assert_int_equal(post_from_elsewhere(inbox, &queued.identity), ERRAND_OK);
    assert_int_equal(post_from_elsewhere(inbox, &running.identity), ERRAND_OK);
    assert_int_equal(post_from_elsewhere(inbox, &settled.identity), ERRAND_OK);
    assert_int_equal(post_from_elsewhere(inbox, &early.identity), ERRAND_OK);
    assert_int_equal(running.count[AT_CANCEL], 0); /* nothing happened yet */
    counted_drive(world);
    assert_int_equal(running.count[AT_CANCEL], 1);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_ECANCELLED);
    errand_submission_abandon(&submission);
    world_step(world, 10);
    counted_drive(world);
    assert_int_equal(queued.count[AT_BODY], 0);
    assert_int_equal(queued.reason, ERRAND_REASON_EXPLICIT);
    assert_int_equal(running.reason, ERRAND_REASON_EXPLICIT);
    assert_int_equal(early.reason, ERRAND_REASON_EXPLICIT);
    /* O65: it cannot overtake the completion that was put before it. */
    assert_true(settled.completed);
    assert_int_equal(post_from_elsewhere(inbox, &settled.identity), ERRAND_EGONE);
    counted_check_ended(&queued);
    counted_check_ended(&running);
    counted_check_ended(&settled);
    counted_check_ended(&early);
    errand_inbox_abandon(&inbox);
}

static void
post_and_end(void *arg, errand_completion *completion)
{
    errand_inbox **inbox = completion->wait;

    (void)arg;
    assert_int_equal(errand_post_cancel(*inbox, &completion->identity), ERRAND_OK);
}

static void
a_record_is_not_used_again_while_its_post_is_on_the_way(void **state)
{
    /* O44, O7: one slot; the post comes after the completion and before its drain. */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_spec spec = world_spec(&job);
    errand_identity identity, next;
    errand_inbox *inbox;
    size_t count;

    world->config.operations_max = 1;
    world_end(world);
    world_begin(world, &world->config, 0);
    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    assert_int_equal(errand_start(world->lease, &spec, &inbox, &identity), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(errand_drain(world->runtime, 1, post_and_end, world, &count),
                     ERRAND_OK);
    assert_int_equal(count, 1);
    assert_int_equal(job.dropped,
                     1); /* the operation is gone; its post is still linked */
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &next), ERRAND_EFULL);
    assert_int_equal(world_drain(world, 1), 0);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &next), ERRAND_OK);
    assert_int_equal(next.slot, identity.slot);
    assert_int_equal(errand_post_cancel(inbox, &identity), ERRAND_EGONE);
    assert_int_equal(errand_retire(world->runtime, &next), ERRAND_OK);
    errand_inbox_abandon(&inbox);
}

static void
what_a_drain_left_comes_before_what_was_put_later(void **state)
{
    /* O65 */
    test_world *world = *state;
    world_job jobs[6] = {{.answer = 0}};

    for (int i = 0; i < 3; i++)
        world_start(world, &jobs[i]);
    world_step(world, 3);
    assert_int_equal(world_drain(world, 1), 1);
    for (int i = 3; i < 6; i++)
        world_start(world, &jobs[i]);
    world_step(world, 3);
    assert_int_equal(world_drain(world, 10), 5);
    for (int i = 0; i < 6; i++)
        assert_ptr_equal(world->news[i].wait, &jobs[i]);
}

/* ---- commands ------------------------------------------------------------------------------------- */

typedef struct order {
    errand_command node;
    errand_inbox *inbox;
    pthread_t thread;
    unsigned runs, drops;
    bool again;
} order;

static void
run_order(errand_runtime *runtime, void *arg)
{
    order *self = arg;

    (void)runtime;
    self->runs++;
    self->thread = pthread_self();
    if (self->again) { /* the node is the poster's again */
        self->again = false;
        assert_int_equal(errand_post(self->inbox, &self->node), ERRAND_OK);
    }
}

static void
drop_order(void *arg)
{
    ((order *)arg)->drops++;
}

static void *
post_the_order(void *arg)
{
    order *self = arg;

    if (errand_post(self->inbox, &self->node) != ERRAND_OK)
        self->runs = 77;
    return NULL;
}

static void
order_init(order *self, errand_inbox *inbox)
{
    *self = (order){.inbox = inbox};
    self->node = (errand_command){.fn = run_order, .drop = drop_order, .arg = self};
}

static void
a_posted_command_runs_once_here_or_is_dropped_at_the_end(void **state)
{
    /* O44 */
    test_world *world = *state;
    order first, second;
    errand_inbox *inbox;
    pthread_t thread;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    order_init(&first, inbox);
    order_init(&second, inbox);
    first.again = true;
    assert_int_equal(pthread_create(&thread, NULL, post_the_order, &first), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(errand_post(inbox, &first.node), ERRAND_EBUSY);
    assert_int_equal(first.runs, 0);
    assert_int_equal(world_drain(world, 10), 0);
    assert_int_equal(first.runs, 1);
    assert_true(pthread_equal(first.thread, pthread_self()));
    assert_int_equal(world_drain(world, 10), 0);
    assert_int_equal(first.runs, 2);
    assert_int_equal(errand_post(inbox, &second.node), ERRAND_OK);
    world_end(world);
    assert_int_equal(second.runs + second.drops, 1);
    assert_int_equal(first.drops, 0);
    assert_int_equal(first.runs, 2);
    errand_inbox_abandon(&inbox);
}

static void
a_handle_may_outlive_its_runtime(void **state)
{
    /* O44 */
    test_world *world = *state;
    counted work = {.answer = 0};
    order late;
    errand_inbox *inbox;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    counted_submit(world, &work);
    world_end(world);
    order_init(&late, inbox);
    assert_int_equal(errand_post(inbox, &late.node), ERRAND_EGONE);
    assert_int_equal(errand_post(inbox, &late.node), ERRAND_EGONE); /* still ours */
    assert_int_equal(late.drops + late.runs, 0);
    assert_int_equal(post_from_elsewhere(inbox, &work.identity), ERRAND_EGONE);
    errand_interrupt(inbox);
    errand_inbox_abandon(&inbox);
    assert_null(inbox);
    errand_inbox_abandon(&inbox);
}

/* ---- finalisers ------------------------------------------------------------------------------------- */

static void
what_a_finaliser_calls_takes_effect_at_the_next_drive(void **state)
{
    /* O44: no code of the host's inside the call, and no memory. */
    test_world *world = *state;
    counted running = {.lingers = true}, given_up = {.answer = 0};
    errand_submission submission = counted_submission(world, &given_up);

    counted_await(&given_up);
    counted_submit(world, &running);
    world_step(world, 1);
    (void)errand_testing_fail_allocation(0);
    assert_int_equal(errand_cancel_later(world->runtime, &running.identity), ERRAND_OK);
    assert_int_equal(errand_abandon_later(&submission), ERRAND_OK);
    assert_null(submission.held_record);
    assert_int_equal(errand_testing_fail_allocation(0), 0);
    for (int i = 0; i < COUNTED_PLACES; i++)
        assert_int_equal(running.count[i] + given_up.count[i], i == AT_BODY);
    assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK); /* at once */
    counted_drive(world);
    assert_int_equal(running.count[AT_CANCEL], 1);
    counted_check_ended(&given_up);
    world_step(world, 1);
    counted_drive(world);
    counted_check_ended(&running);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(a_posted_cancel_does_what_a_cancel_does_at_the_next_drain),
        WITH_WORLD(a_record_is_not_used_again_while_its_post_is_on_the_way),
        WITH_WORLD(what_a_drain_left_comes_before_what_was_put_later),
        WITH_WORLD(a_posted_command_runs_once_here_or_is_dropped_at_the_end),
        WITH_WORLD(a_handle_may_outlive_its_runtime),
        WITH_WORLD(what_a_finaliser_calls_takes_effect_at_the_next_drive),
    };
    return test_group("runtime/posts", tests, NULL, NULL);
}
