/* SPDX-License-Identifier: MIT */
/* Goal: what counters hand out, from their first number to their last (O5, O6).
 * Method: counters are set to shortly before their end; the law is checked after each step. */
#include <pthread.h>
#include "errand/async.h"
#include "errand/task.h"
#include "world.h"

static errand_identity
issue(test_world *world)
{
    errand_identity identity;

    assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_OK);
    return identity;
}

static void
check_exhausted(test_world *world)
{
    errand_identity identity = {.operation = 7};

    assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_EEXHAUSTED);
    assert_int_equal(identity.operation, 7);
}

static void
counters_hand_out_one_and_two_and_three(void **state)
{
    /* O5 */
    test_world *world = *state;

    for (uint64_t number = 1; number <= 3; number++) {
        errand_identity identity = issue(world);

        assert_int_equal(identity.wait, number);
        assert_int_equal(identity.generation, number);
        assert_int_equal(identity.operation, number);
        assert_int_equal(errand_retire(world->runtime, &identity), ERRAND_OK);
    }
}

/* which: 0 wait, 1 generation, 2 operation. */
static void
exhaust(test_world *world, int which)
{
    uint64_t next[3] = {0, 0, 0};
    errand_identity last;

    next[which] = UINT64_MAX - 1;
    assert_int_equal(errand_testing_counters(world->runtime, next[0], next[1], next[2]),
                     ERRAND_OK);
    for (uint64_t number = UINT64_MAX - 1; number != 0; number++) {
        last = issue(world);
        assert_true((which == 0   ? last.wait
                     : which == 1 ? last.generation
                                  : last.operation) == number);
    }
    for (int i = 0; i < 3; i++)
        check_exhausted(world);
    assert_int_equal(errand_retire(world->runtime, &last), ERRAND_OK);
    for (int i = 0; i < 3; i++)
        check_exhausted(world); /* for ever, whatever was given back */
}

static void
the_wait_counter_ends_with_its_largest_number(void **state)
{
    /* O5 */
    exhaust(*state, 0);
}

static void
the_generation_counter_ends_with_its_largest_number(void **state)
{
    /* O5 */
    exhaust(*state, 1);
}

static void
the_operation_counter_ends_with_its_largest_number(void **state)
{
    /* O5 */
    exhaust(*state, 2);
}

static int32_t
never_polled(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}

static void
exhaustion_half_way_leaves_nothing_behind(void **state)
{
    /* O5: one counter is at its end, and the refused calls take nothing from the two others, no
     * slot, no memory and no job. */
    static const errand_job_type async_type = {
        .struct_size = sizeof async_type, .name = "async", .poll = never_polled};
    test_world *world = *state;
    world_job job = {.answer = 0}, next = {.answer = 0};
    errand_spec spec = world_spec(&job), async = spec;
    errand_identity identity;

    assert_int_equal(errand_testing_counters(world->runtime, 100, 200, UINT64_MAX),
                     ERRAND_OK);
    identity = world_start(world, &next);
    assert_true(identity.operation == UINT64_MAX);
    spec.held_name = "needs a block of its own";
    async.held_job = &async_type;
    async.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    for (int i = 0; i < 100000; i++) /* more than there are slots */
        assert_int_equal(
            errand_start(world->lease, i % 2 == 0 ? &spec : &async, NULL, NULL),
            ERRAND_EEXHAUSTED);
    check_exhausted(world);
    world_check(world);
    assert_int_equal(job.dropped, 0);
    assert_int_equal(world_step(world, 10), 1); /* only these calls failed */
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(errand_testing_counters(world->runtime, 0, 0, 5), ERRAND_OK);
    identity = issue(world);
    assert_int_equal(identity.wait, 101);
    assert_int_equal(identity.generation, 201);
    assert_int_equal(identity.operation, 5);
    assert_int_equal(identity.slot, 1);
}

static errand_task_answer
sleep_once(errand_task *task, void *state, const errand_task_news *news)
{
    errand_status *status = state;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    *status = errand_task_sleep(task, 1000);
    return *status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_FAILED;
}

static errand_status
sleep_in_a_task(test_world *world)
{
    errand_status status = ERRAND_EINVAL;
    errand_task_spec spec = {
        .struct_size = sizeof spec, .fn = sleep_once, .state = &status};

    assert_int_equal(errand_spawn(world->runtime, NULL, &spec, NULL), ERRAND_OK);
    assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
    return status;
}

static void
waits_of_tasks_and_of_operations_share_their_counters(void **state)
{
    /* O6 */
    test_world *world = *state;
    errand_identity before = issue(world), after;

    assert_int_equal(sleep_in_a_task(world), ERRAND_OK);
    after = issue(world);
    assert_int_equal(after.wait, before.wait + 2);
    assert_int_equal(after.generation, before.generation + 2);
    assert_int_equal(after.operation, before.operation + 1);
    /* O5: and the same end. */
    assert_int_equal(errand_testing_counters(world->runtime, UINT64_MAX, 0, 0),
                     ERRAND_OK);
    after = issue(world);
    assert_int_equal(sleep_in_a_task(world), ERRAND_EEXHAUSTED);
}

enum { CREATORS = 4, CREATED = 20 };

typedef struct creator {
    uint64_t numbers[CREATED];
    bool failed;
} creator;

static void *
create_runtimes(void *arg)
{
    creator *self = arg;

    for (int i = 0; i < CREATED; i++) {
        errand_runtime_config config = {.struct_size = sizeof config,
                                        .operations_max = 4};
        errand_runtime *runtime;

        if (errand_runtime_create(&config, &runtime) != ERRAND_OK) {
            self->failed = true;
            return NULL;
        }
        self->numbers[i] = errand_runtime_id(runtime);
        if (errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL) !=
            ERRAND_OK)
            self->failed = true;
    }
    return NULL;
}

static void
runtime_numbers_come_from_one_counter_of_the_process(void **state)
{
    /* O6 */
    test_world *world = *state;
    static creator creators[CREATORS];
    static bool seen[1 + CREATORS * CREATED];
    pthread_t threads[CREATORS];
    uint64_t first = errand_runtime_id(world->runtime);

    for (int i = 0; i < CREATORS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, create_runtimes, &creators[i]),
                         0);
    for (int i = 0; i < CREATORS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < CREATORS; i++) {
        assert_false(creators[i].failed);
        for (int k = 0; k < CREATED; k++) {
            uint64_t offset = creators[i].numbers[k] - first;

            assert_in_range(offset, 1, CREATORS * CREATED);
            assert_false(seen[offset]);
            seen[offset] = true;
        }
    }
}

static void
counters_of_two_runtimes_do_not_know_of_each_other(void **state)
{
    /* O6 */
    test_world *world = *state;
    errand_identity mine = issue(world), theirs;
    errand_runtime *other;

    assert_int_equal(errand_runtime_create(NULL, &other), ERRAND_OK);
    assert_int_equal(errand_issue(other, 1, NULL, &theirs), ERRAND_OK);
    assert_int_equal(theirs.wait, mine.wait);
    assert_int_equal(theirs.generation, mine.generation);
    assert_int_equal(theirs.operation, mine.operation);
    assert_int_not_equal(theirs.runtime, mine.runtime);
    assert_int_equal(errand_runtime_shutdown(&other, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(counters_hand_out_one_and_two_and_three),
        WITH_WORLD(the_wait_counter_ends_with_its_largest_number),
        WITH_WORLD(the_generation_counter_ends_with_its_largest_number),
        WITH_WORLD(the_operation_counter_ends_with_its_largest_number),
        WITH_WORLD(exhaustion_half_way_leaves_nothing_behind),
        WITH_WORLD(waits_of_tasks_and_of_operations_share_their_counters),
        WITH_WORLD(runtime_numbers_come_from_one_counter_of_the_process),
        WITH_WORLD(counters_of_two_runtimes_do_not_know_of_each_other),
    };
    return test_group("registrar/counters", tests, NULL, NULL);
}
