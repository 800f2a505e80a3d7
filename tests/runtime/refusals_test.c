/* SPDX-License-Identifier: MIT */
/* Goal: whatever the reason of a refusal, what was refused is as it was: it can be tried again
 * and works, or be abandoned and is dropped once (O10, C-H4).
 * Method: a table of reasons; each makes submit refuse twice, is mended, and the submission is
 * then used or abandoned. */
#include "counted.h"

typedef struct refusal {
    errand_status status;
    test_world *world;
    errand_lease *lease;
    errand_executor *pool;
} refusal;

static void
lease_is_full(refusal *self)
{
    test_world *world = self->world;

    self->status = ERRAND_EFULL;
    for (int i = 0; i < 4; i++) {
        static world_job jobs[4];

        jobs[i] = (world_job){.answer = 0};
        world_start(world, &jobs[i]);
    }
}

static void
lease_has_room(refusal *self)
{
    world_step(self->world, 10);
    assert_int_equal(world_drain(self->world, 10), 4);
}

static void
thread_is_refused(refusal *self)
{
    errand_blocking_config config = {.struct_size = sizeof config};

    self->status = ERRAND_ENOTHREAD;
    errand_testing_refuse_threads(UINT32_MAX);
    assert_int_equal(errand_blocking_create(&config, &self->pool), ERRAND_OK);
    assert_int_equal(errand_attach(self->world->runtime, self->pool, 4, &self->lease),
                     ERRAND_OK);
}

static void
thread_is_made(refusal *self)
{
    (void)self;
    errand_testing_refuse_threads(0);
}

static void
memory_is_short(refusal *self)
{
    self->status = ERRAND_ENOMEM; /* of the lane's first queue */
    (void)errand_testing_fail_allocation(1);
}

static void
memory_is_back(refusal *self)
{
    (void)self;
    (void)errand_testing_fail_allocation(0);
}

static void
refuse_and_mend(test_world *world, bool abandoned, void (*block)(refusal *self),
                void (*mend)(refusal *self))
{
    refusal self = {.world = world, .lease = world->lease};
    counted work = {.answer = 0};
    errand_submission submission = counted_submission(world, &work), before;
    size_t accepted = 9;

    counted_await(&work);
    block(&self);
    before = submission;
    assert_int_equal(errand_submit(self.lease, &submission), self.status);
    assert_memory_equal(&submission, &before, sizeof before);
    if (self.status == ERRAND_ENOMEM)
        block(&self);
    assert_int_equal(errand_submit_many(self.lease, &submission, 1, &accepted),
                     self.status);
    assert_int_equal(accepted, 0);
    assert_memory_equal(&submission, &before, sizeof before);
    for (int i = 0; i < COUNTED_PLACES; i++)
        assert_int_equal(work.count[i], 0);
    world_check(world);
    mend(&self);
    if (abandoned) {
        errand_submission_abandon(&submission);
        assert_int_equal(work.count[AT_RESUME], 0); /* O32: the caller holds the answer */
        assert_int_equal(work.count[AT_CONTINUATION_DROP], 1);
    } else {
        assert_int_equal(errand_submit(self.lease, &submission), ERRAND_OK);
        world_step(world, 10);
        while (work.count[AT_RESUME] == 0) {
            assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
            if (work.count[AT_RESUME] == 0)
                assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
        }
    }
    assert_int_equal(work.count[AT_BODY], !abandoned);
    counted_check_ended(&work);
    errand_executor_abandon(&self.pool);
}

static void
narrow(test_world *world)
{
    world_end(world);
    world_begin(world, &world->config, 4);
}

static void
a_full_lease_leaves_the_submission_as_it_was(void **state)
{
    /* O10, O50, C-H4 */
    narrow(*state);
    refuse_and_mend(*state, false, lease_is_full, lease_has_room);
    refuse_and_mend(*state, true, lease_is_full, lease_has_room);
}

static void
a_pool_without_threads_leaves_the_submission_as_it_was(void **state)
{
    /* O10, O55, C-H4 */
    refuse_and_mend(*state, false, thread_is_refused, thread_is_made);
    refuse_and_mend(*state, true, thread_is_refused, thread_is_made);
}

static void
missing_memory_leaves_the_submission_as_it_was(void **state)
{
    /* O10, C-H4 */
    refuse_and_mend(*state, true, memory_is_short, memory_is_back);
    refuse_and_mend(*state, false, memory_is_short, memory_is_back);
}

static void
a_cancelled_submission_is_refused_until_it_is_abandoned(void **state)
{
    /* O10, O35, C-H4 */
    test_world *world = *state;
    counted work = {.answer = 0};
    errand_submission submission = counted_submission(world, &work), before = submission;
    errand_continuation never = {.resume = NULL};

    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_NOT_SUBMITTED);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_ECANCELLED);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_ECANCELLED);
    assert_memory_equal(&submission, &before, sizeof before);
    assert_int_equal(errand_await(&work.wait, &never), ERRAND_EINVAL);
    assert_non_null(work.wait.held_record);
    assert_int_equal(work.count[AT_STATE_DROP], 0);
    errand_submission_abandon(&submission);
    errand_submission_abandon(&before); /* a copy: nothing more */
    work.no_continuation = true;
    counted_check_ended(&work);
    assert_int_equal(work.count[AT_BODY], 0);
}

static void
submit_in_a_shutdown(counted *self, counted_place place)
{
    errand_submission *submission = self->arg, before = *submission;
    errand_identity identity;
    errand_spec spec = counted_spec(self->world, self);

    if (place != AT_CONTINUATION_DROP)
        return;
    assert_int_equal(errand_submit(self->world->lease, submission), ERRAND_ECLOSED);
    assert_memory_equal(submission, &before, sizeof before);
    assert_int_equal(errand_start(self->world->lease, &spec, NULL, NULL), ERRAND_ECLOSED);
    assert_int_equal(errand_issue(self->world->runtime, 1, NULL, &identity),
                     ERRAND_ECLOSED);
}

static void
the_end_of_a_runtime_refuses_and_drops_once(void **state)
{
    /* O10, O18, C-H4: a submit inside the shutdown; what it refused is dropped by the shutdown. */
    test_world *world = *state;
    counted work = {.on = submit_in_a_shutdown}, late = {.answer = 0};
    errand_submission submission = counted_submission(world, &late);

    counted_await(&late);
    work.arg = &submission;
    counted_submit(world, &work);
    world_end(world);
    assert_int_equal(work.count[AT_CONTINUATION_DROP], 1);
    assert_int_equal(late.count[AT_BODY], 0);
    counted_check_ended(&late);
    counted_check_ended(&work);
    assert_int_equal(world->report.accounts.accepted, 1);
}

static void
every_refused_bind_leaves_both_sides_as_they_were(void **state)
{
    /* O10, C-H4 */
    test_world *world = *state;
    counted work = {.no_continuation = true};
    errand_spec spec = counted_spec(world, &work);
    errand_prepared prepared, copy;
    errand_binding binding = {NULL, 0};
    errand_identity right, other_kind, retired, foreign;

    spec.deadline_ns = UINT64_C(1) << 60; /* needs memory in bind */
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, &work, &right), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 2, NULL, &other_kind), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &retired), ERRAND_OK);
    assert_int_equal(errand_retire(world->runtime, &retired), ERRAND_OK);
    foreign = right;
    foreign.runtime++;
    copy = prepared;
    assert_int_equal(errand_bind(world->runtime, &other_kind, &prepared, &binding),
                     ERRAND_EKIND);
    assert_int_equal(errand_bind(world->runtime, &retired, &prepared, &binding),
                     ERRAND_ESPENT);
    assert_int_equal(errand_bind(world->runtime, &foreign, &prepared, &binding),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_bind(world->runtime, NULL, &prepared, &binding),
                     ERRAND_EINVAL);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_bind(world->runtime, &right, &prepared, &binding),
                     ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    assert_memory_equal(&prepared, &copy, sizeof copy);
    assert_int_equal(errand_prepared_kind(&prepared), 1);
    assert_null(binding.held_record);
    assert_int_equal(work.count[AT_STATE_DROP], 0);
    assert_int_equal(errand_bind(world->runtime, &right, &prepared, &binding), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &other_kind, &copy, &binding),
                     ERRAND_ESPENT); /* the token was used */
    errand_binding_abandon(&binding);
    errand_prepared_abandon(&copy); /* nothing: it was moved on */
    counted_check_ended(&work);
    assert_int_equal(errand_retire(world->runtime, &other_kind), ERRAND_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(a_full_lease_leaves_the_submission_as_it_was),
        WITH_WORLD(a_pool_without_threads_leaves_the_submission_as_it_was),
        WITH_WORLD(missing_memory_leaves_the_submission_as_it_was),
        WITH_WORLD(a_cancelled_submission_is_refused_until_it_is_abandoned),
        WITH_WORLD(the_end_of_a_runtime_refuses_and_drops_once),
        WITH_WORLD(every_refused_bind_leaves_both_sides_as_they_were),
    };
    return test_group("runtime/refusals", tests, NULL, NULL);
}
