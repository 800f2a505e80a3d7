/* SPDX-License-Identifier: MIT */
/* Goal: the manual executor runs what it is told, when it is told, in the pool's shares.
 * Method: bodies write down who they are; the order of the notes is the order of the starts. */
#include <pthread.h>
#include <stdatomic.h>
#include "manual_rig.h"

static noter a = {'a'}, b = {'b'}, q = {'q'}, low = {'l'}, high = {'h'}, normal = {'n'};

static void
jobs_run_only_when_stepped_and_within_the_budget(void **state)
{
    (void)state;
    scene world;
    manual_open(&world, 1, NULL);
    for (int i = 0; i < 5; i++)
        scene_block(&world, 0, &note_job, &a);
    assert_int_equal(note_count, 0);
    assert_int_equal(scene_step(&world, 0), 0);
    assert_int_equal(scene_step(&world, 2), 2);
    assert_int_equal(scene_drain(&world, 0), 2);
    assert_int_equal(scene_step(&world, 9), 3);
    assert_int_equal(scene_step(&world, 9), 0);
    assert_string_equal(notes, "aaaaa");
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], 5);
    scene_close(&world);
}

/* O51: a lease's next job waits for at most one job of each other waiting lease. */
static void
leases_with_queued_work_take_turns(void **state)
{
    (void)state;
    scene world;
    manual_open(&world, 2, NULL);
    for (int i = 0; i < 100; i++)
        scene_block(&world, 0, &note_job, &a);
    assert_int_equal(scene_step(&world, 3), 3);
    for (int i = 0; i < 3; i++)
        scene_block(&world, 1, &note_job, &b);
    assert_int_equal(scene_step(&world, 7), 7);
    assert_memory_equal(notes + 3, "bababaa", 7);
    scene_step(&world, SIZE_MAX);
    scene_close(&world);
}

/* O52: fifteen of the highest, then the oldest of a lower one. */
static void
every_sixteenth_start_is_the_oldest_of_a_lower_priority(void **state)
{
    (void)state;
    scene world;
    char expected[64];
    manual_open(&world, 1, NULL);
    for (int i = 0; i < 2; i++) {
        scene_start(&world, 0, &note_job, &low, ERRAND_INTERRUPTIBLE_BLOCKING, 0, 2);
        scene_start(&world, 0, &note_job, &normal, ERRAND_INTERRUPTIBLE_BLOCKING, 0, 0);
    }
    for (int i = 0; i < 40; i++)
        scene_start(&world, 0, &note_job, &high, ERRAND_INTERRUPTIBLE_BLOCKING, 0, 1);
    assert_int_equal(scene_step(&world, SIZE_MAX), 44);
    memset(expected, 'h', 42);
    expected[15] = 'l';
    expected[31] = 'n';
    strcpy(expected + 42, "nl");
    assert_string_equal(notes, expected);
    scene_close(&world);
}

/* O53: of a lane at most its limit in each round of the pretended workers, and a job that waits
 * for its lane holds up no other. */
static void
lanes_have_limits_and_hold_up_no_other(void **state)
{
    (void)state;
    scene world;
    errand_manual_config config = {
        .struct_size = sizeof config, .workers = 4, .quarantined_limit = 1};
    manual_open(&world, 1, &config);
    for (int i = 0; i < 6; i++)
        scene_start(&world, 0, &note_job, &q, ERRAND_QUARANTINED_BLOCKING, 0, 0);
    for (int i = 0; i < 6; i++)
        scene_block(&world, 0, &note_job, &a);
    assert_int_equal(scene_step(&world, SIZE_MAX), 12);
    for (int round = 0; round < 2; round++) {
        int quarantined = 0;

        for (int i = 0; i < 4; i++)
            quarantined += notes[4 * round + i] == 'q';
        assert_int_equal(quarantined, 1);
    }
    assert_string_equal(notes + 8, "qqqq");
    scene_close(&world);
}

static void
with_one_worker_lanes_take_turns(void **state)
{
    (void)state;
    scene world;
    manual_open(&world, 1, NULL);
    for (int i = 0; i < 3; i++)
        scene_block(&world, 0, &note_job, &a);
    for (int i = 0; i < 3; i++)
        scene_start(&world, 0, &note_job, &q, ERRAND_QUARANTINED_BLOCKING, 0, 0);
    scene_step(&world, SIZE_MAX);
    assert_string_equal(notes, "aqaqaq");
    scene_close(&world);
}

static void
own_lanes_are_defined_before_the_first_lease(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor;
    errand_spec spec = ERRAND_SPEC_INIT;
    uint8_t lane = 0, other = 0;
    scene_begin(&world);
    note_count = 0;
    errand_manual_config config = {.struct_size = sizeof config, .workers = 3};
    assert_int_equal(errand_manual_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_lane_define(executor, "first", 1, &lane), ERRAND_OK);
    for (int i = 1; i < 16; i++)
        assert_int_equal(errand_lane_define(executor, "more", 1, &other), ERRAND_OK);
    assert_int_equal(errand_lane_define(executor, "seventeenth", 1, &other),
                     ERRAND_EFULL);
    errand_executor_abandon(&executor);

    assert_int_equal(errand_manual_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_lane_define(executor, "own", 1, &lane), ERRAND_OK);
    scene_open(&world, executor, 1, NULL, 0);
    assert_int_equal(errand_lane_define(executor, "late", 1, &other), ERRAND_EBUSY);
    for (int i = 0; i < 3; i++)
        scene_start(&world, 0, &note_job, &b, ERRAND_INTERRUPTIBLE_BLOCKING, lane, 0);
    for (int i = 0; i < 4; i++)
        scene_block(&world, 0, &note_job, &a);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &note_job;
    spec.lane = (uint8_t)(lane + 1); /* never defined */
    assert_int_equal(errand_start(world.leases[0], &spec, NULL, NULL), ERRAND_EINVAL);
    scene_step(&world, SIZE_MAX);
    assert_string_equal(notes, "ababaab"); /* rounds of three: aba, baa, b */
    scene_close(&world);
}

/* ---- inside a body ---------------------------------------------------------------------------- */

static scene *inner;
static errand_identity self_identity;
static errand_cancel_answer self_answer;
static bool token_seen;

static int32_t
meddle(errand_job *job, void *state, errand_payload *out_payload)
{
    size_t count = 77;

    (void)state;
    (void)out_payload;
    assert_int_equal(errand_manual_step(inner->executor, 1, &count), ERRAND_EBUSY);
    assert_int_equal(count, 77);
    assert_int_equal(errand_park(inner->runtimes[0], 0), ERRAND_EDEADLOCK);
    assert_int_equal(errand_lease_wait_room(inner->leases[0], SCENE_NONE),
                     ERRAND_EDEADLOCK);
    scene_block(inner, 0, &note_job, &b);
    self_answer = scene_cancel(inner, 0, self_identity);
    token_seen = errand_job_cancelled(job);
    return 0;
}
static const errand_job_type meddle_job = {
    .struct_size = sizeof(errand_job_type), .name = "meddle", .run = meddle};

/* O54; and a body on its owner's thread may call everything else. */
static void
a_stepped_body_may_meddle_but_not_wait_or_step(void **state)
{
    (void)state;
    scene world;
    manual_open(&world, 1, NULL);
    inner = &world;
    self_answer = 0;
    self_identity = scene_block(&world, 0, &meddle_job, NULL);
    assert_int_equal(scene_step(&world, SIZE_MAX), 2);
    assert_int_equal(self_answer, ERRAND_CANCEL_RUNNING);
    assert_true(token_seen);
    assert_string_equal(notes, "b");
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], 2);
    scene_close(&world);
}

static int32_t
panic_in_body(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    errand_panic("number %d", *(int *)state);
}
static const errand_job_type panic_job = {
    .struct_size = sizeof(errand_job_type), .name = "panic", .run = panic_in_body};

/* O74 */
static void
a_panic_ends_its_job_and_the_step_goes_on(void **state)
{
    (void)state;
    scene world;
    int numbers[] = {1, 2};
    manual_open(&world, 1, NULL);
    scene_block(&world, 0, &panic_job, &numbers[0]);
    scene_block(&world, 0, &panic_job, &numbers[1]);
    scene_block(&world, 0, &note_job, &a);
    assert_int_equal(scene_step(&world, 2), 2);
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_PANICKED], 2);
    assert_string_equal(world.seen[0].message, "number 2");
    assert_int_equal(scene_step(&world, 2), 1);
    scene_close(&world);
}

static void *
step_elsewhere(void *arg)
{
    size_t count = 0;

    assert_int_equal(errand_manual_step(arg, SIZE_MAX, &count), ERRAND_OK);
    return (void *)(uintptr_t)count;
}

static void
another_thread_may_step_than_the_owner(void **state)
{
    (void)state;
    scene world;
    manual_open(&world, 1, NULL);
    for (int turn = 0; turn < 3; turn++) {
        pthread_t thread;
        void *count;

        scene_block(&world, 0, &note_job, &a);
        assert_int_equal(pthread_create(&thread, NULL, step_elsewhere, world.executor),
                         0);
        scene_await(&world, 0, (size_t)(2 * turn + 1));
        assert_int_equal(pthread_join(thread, &count), 0);
        assert_int_equal((uintptr_t)count, 1);
        scene_block(&world, 0, &note_job, &a);
        assert_int_equal(scene_step(&world, 9), 1);
        scene_drain(&world, 0);
    }
    scene_close(&world);
}

/* ---- queues ---------------------------------------------------------------------------------------- */

/* O22: entries of cancelled operations never use up the room of live ones. */
static void
cancelled_jobs_leave_room_for_others(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor;
    scene_begin(&world);
    note_count = 0;
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 1, NULL, 32);
    for (int i = 0; i < 16; i++)
        scene_block(&world, 0, &note_job, &a);
    for (int i = 0; i < 5000; i++) {
        scene_sleeper sleeper = {.wakes_wanted = 0};
        errand_identity first = scene_block(&world, 0, &note_job, &b);
        errand_identity second = scene_poll(&world, 0, &scene_sleeper_job, &sleeper);

        scene_cancel(&world, 0, first);
        scene_cancel(&world, 0, second);
        scene_drain(&world, 0);
    }
    assert_int_equal(scene_step(&world, SIZE_MAX), 16);
    assert_string_equal(notes, "aaaaaaaaaaaaaaaa");
    scene_close(&world);
}

static void
snapshots_show_queued_jobs_and_their_age(void **state)
{
    (void)state;
    scene world;
    errand_executor_snapshot snapshot;
    errand_manual_config config = {.struct_size = sizeof config, .workers = 3};
    uint64_t runs = 0;
    manual_open(&world, 2, &config);
    scene_block(&world, 0, &note_job, &a);
    scene_block(&world, 1, &note_job, &a);
    assert_int_equal(errand_executor_snapshot_read(world.executor, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.workers, 3);
    assert_int_equal(snapshot.idle, 3);
    assert_int_equal(snapshot.queued, 2);
    assert_true(snapshot.oldest_queued_ns > 0);
    scene_step(&world, 1);
    assert_int_equal(errand_executor_snapshot_read(world.executor, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.queued, 1);
    for (int i = 0; i < 40; i++)
        runs += snapshot.run_histogram[i];
    assert_int_equal(runs, 1);
    scene_step(&world, 1);
    scene_close(&world);
}

static void
refusals_name_the_argument_and_change_nothing(void **state)
{
    (void)state;
    int64_t live = errand_testing_live_bytes();
    errand_executor *executor = NULL;
    errand_async_config other = {.struct_size = sizeof other};
    errand_manual_config config = {.struct_size = sizeof config, .flags = 1};
    size_t count = 5;
    assert_int_equal(errand_manual_create(&config, &executor), ERRAND_EINVAL);
    config = (errand_manual_config){.struct_size = 1};
    assert_int_equal(errand_manual_create(&config, &executor), ERRAND_EINVAL);
    assert_int_equal(errand_manual_create(NULL, NULL), ERRAND_EINVAL);
    errand_testing_fail_allocation(1);
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_ENOMEM);
    assert_null(executor);
    assert_int_equal(errand_manual_step(NULL, 1, &count), ERRAND_EINVAL);
    assert_int_equal(errand_async_create(&other, &executor), ERRAND_OK);
    assert_int_equal(errand_manual_step(executor, 1, &count), ERRAND_EUNSUPPORTED);
    assert_int_equal(count, 5);
    errand_executor_abandon(&executor);
    assert_int_equal(errand_testing_live_bytes(), live);
}

/* Each allocation of attach and of the first submit fails in turn. */
static void
refused_memory_leaves_the_operation_with_its_caller(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor;
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_status status;
    unsigned refused = 0;
    scene_begin(&world);
    note_count = 0;
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    world.executor = executor;
    assert_int_equal(errand_runtime_create(NULL, &world.runtimes[0]), ERRAND_OK);
    do {
        errand_testing_fail_allocation(++refused);
        status = errand_attach(world.runtimes[0], executor, 0, &world.leases[0]);
    } while (status == ERRAND_ENOMEM);
    assert_int_equal(status, ERRAND_OK);
    assert_true(refused > 2);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &note_job;
    spec.state = &a;
    refused = 0;
    do {
        errand_testing_fail_allocation(++refused);
        status = errand_start(world.leases[0], &spec, NULL, NULL);
    } while (status == ERRAND_ENOMEM);
    errand_testing_fail_allocation(0);
    assert_int_equal(status, ERRAND_OK);
    assert_true(refused > 2);
    assert_int_equal(scene_step(&world, SIZE_MAX), 1);
    scene_close(&world);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_only_when_stepped_and_within_the_budget),
        cmocka_unit_test(leases_with_queued_work_take_turns),
        cmocka_unit_test(every_sixteenth_start_is_the_oldest_of_a_lower_priority),
        cmocka_unit_test(lanes_have_limits_and_hold_up_no_other),
        cmocka_unit_test(with_one_worker_lanes_take_turns),
        cmocka_unit_test(own_lanes_are_defined_before_the_first_lease),
        cmocka_unit_test(a_stepped_body_may_meddle_but_not_wait_or_step),
        cmocka_unit_test(a_panic_ends_its_job_and_the_step_goes_on),
        cmocka_unit_test(another_thread_may_step_than_the_owner),
        cmocka_unit_test(cancelled_jobs_leave_room_for_others),
        cmocka_unit_test(snapshots_show_queued_jobs_and_their_age),
        cmocka_unit_test(refusals_name_the_argument_and_change_nothing),
        cmocka_unit_test(refused_memory_leaves_the_operation_with_its_caller),
    };
    return test_group("workers/manual", tests, NULL, NULL);
}
