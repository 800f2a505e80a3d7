/* SPDX-License-Identifier: MIT */
/* Goal: once warm nothing is allocated, and from its bind on no operation needs memory (O26).
 * Method: the library counts what it asks for (errand_testing_fail_allocation), on all threads. */
#include "counted.h"
#include "errand/task.h"

static uint64_t
asked(void)
{
    return errand_testing_fail_allocation(0);
}

typedef void round_fn(test_world *world);

static void
start_and_drain(test_world *world)
{
    world_job jobs[8];

    for (int i = 0; i < 8; i++) {
        jobs[i] = (world_job){.answer = i % 3, .panic = i == 7 ? "warm" : NULL};
        world_start(world, &jobs[i]);
    }
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 8);
}

static void
use_everything(test_world *world)
{
    counted works[6];

    for (int i = 0; i < 6; i++) {
        errand_spec spec;
        errand_submission submission;

        works[i] = (counted){.lingers = i % 2 == 0, .cancel_answer = ERRAND_HOOK_PENDING};
        spec = counted_spec(world, &works[i]);
        spec.held_name = "named";
        spec.trace_id = 7;
        spec.deadline_ns = 1000000000;
        spec.soft_ns = 1000;
        submission = counted_submission_of(world, &works[i], &spec);
        counted_await(&works[i]);
        assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    }
    (void)counted_cancel(&works[1]);
    world_step(world, 10);
    for (int i = 0; i < 6; i++)
        (void)counted_cancel(&works[i]);
    world_step(world, 10);
    counted_drive(world);
    for (int i = 0; i < 6; i++)
        counted_check_ended(&works[i]);
}

static void
abandon_and_retire(test_world *world)
{
    counted work = {.answer = 0};
    errand_submission submission = counted_submission(world, &work);
    errand_identity identity;

    counted_await(&work);
    errand_submission_abandon(&submission);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_retire(world->runtime, &identity), ERRAND_OK);
}

static void
run_on_the_pool(test_world *world)
{
    world_job jobs[8];

    world->news_count = 0;
    for (int i = 0; i < 8; i++) {
        jobs[i] = (world_job){.answer = i % 3};
        world_start(world, &jobs[i]);
    }
    world_await(world, 8);
}

static void
check_warm(test_world *world, round_fn *round, uint64_t rounds)
{
    for (int i = 0; i < 20; i++) /* blocks of all sorts have gone round */
        round(world);
    (void)asked();
    for (uint64_t i = 0; i < rounds; i++)
        round(world);
    assert_int_equal(asked(), 0);
}

static void
nothing_is_allocated_once_warm(void **state)
{
    /* O26: async jobs, deadlines, hooks, waits, panics, cancels. */
    test_world *world = *state;

    check_warm(world, start_and_drain, 200);
    check_warm(world, abandon_and_retire, 200);
    check_warm(world, use_everything, 200);
}

static void
nothing_is_allocated_on_a_warm_pool(void **state)
{
    /* O26 */
    test_world *world = *state;

    world_pool(world, 2);
    check_warm(world, run_on_the_pool, 500);
}

static void
count_in_the_handler(void *arg, errand_completion *completion)
{
    world_handler(arg, completion);
    assert_int_equal(asked(), 0);
}

static void
an_operation_needs_no_memory_after_its_bind(void **state)
{
    /* O26: the first ones of all; only the lane's queue is made by the first submit to it. */
    test_world *world = *state;
    counted works[4];
    errand_submission submissions[4];
    world_job first = {.answer = 0};
    size_t count;

    world_start(world, &first);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    for (int i = 0; i < 4; i++) {
        errand_spec spec;

        works[i] = (counted){.no_hook = true, .answer = i, .panics = i == 3};
        spec = counted_spec(world, &works[i]);
        spec.deadline_ns = 1000000;
        submissions[i] = counted_submission_of(world, &works[i], &spec);
        counted_await(&works[i]);
    }
    (void)asked();
    for (int i = 0; i < 4; i++)
        assert_int_equal(errand_submit(world->lease, &submissions[i]), ERRAND_OK);
    assert_int_equal(asked(), 0);
    assert_int_equal(counted_cancel(&works[0]), ERRAND_CANCEL_CANCELLED);
    assert_int_equal(asked(), 0);
    world_step(world, 10); /* run, settle, put; also of a failure and a panic */
    assert_int_equal(asked(), 0);
    assert_int_equal(
        errand_drain(world->runtime, 10, count_in_the_handler, world, &count), ERRAND_OK);
    assert_int_equal(count, 4);
    counted_drive(world);
    assert_int_equal(asked(), 0);
    for (int i = 0; i < 4; i++)
        counted_check_ended(&works[i]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(nothing_is_allocated_once_warm),
        WITH_WORLD(nothing_is_allocated_on_a_warm_pool),
        WITH_WORLD(an_operation_needs_no_memory_after_its_bind),
    };
    return test_group("runtime/warm", tests, NULL, NULL);
}
