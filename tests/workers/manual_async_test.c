/* SPDX-License-Identifier: MIT */
/* Goal: the manual executor polls async jobs when it is told, once for each wake that counts.
 * Method: jobs count their polls between one step and the next. */
#include <pthread.h>
#include <stdatomic.h>
#include "manual_rig.h"

static noter a = {'a'};

static void
a_pending_job_is_polled_once_for_each_wake_that_finds_it_quiet(void **state)
{
    (void)state;
    scene world;
    scene_sleeper sleeper = {.wakes_wanted = 2};
    manual_open(&world, 1, NULL);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    assert_int_equal(scene_count(&sleeper.starts), 0);
    assert_int_equal(scene_step(&world, 9), 1);
    assert_int_equal(scene_count(&sleeper.starts), 1);
    assert_int_equal(scene_count(&sleeper.polls), 1);
    assert_int_equal(scene_step(&world, 9), 0);
    errand_waker_wake(scene_waker(&sleeper));
    errand_waker_wake(scene_waker(&sleeper));
    assert_int_equal(scene_step(&world, 9), 1);
    assert_int_equal(scene_count(&sleeper.polls), 2);
    errand_waker_wake(scene_waker(&sleeper));
    assert_int_equal(scene_step(&world, 9), 1);
    errand_waker_wake(scene_waker(&sleeper));
    assert_int_equal(scene_step(&world, 9), 0);
    assert_int_equal(scene_count(&sleeper.starts), 1);
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], 1);
    assert_int_equal(scene_count(&sleeper.drops), 1);
    scene_sleeper_end(&sleeper);
    scene_close(&world);
}

/* O21: queued and cancelled: never constructed. */
static void
a_queued_async_job_that_is_cancelled_never_starts(void **state)
{
    (void)state;
    scene world;
    scene_sleeper sleeper = {.wakes_wanted = 0};
    manual_open(&world, 1, NULL);
    errand_identity identity = scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    assert_int_equal(scene_cancel(&world, 0, identity), ERRAND_CANCEL_CANCELLED);
    scene_drain(&world, 0);
    assert_int_equal(scene_step(&world, 9), 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_CANCELLED], 1);
    assert_int_equal(scene_count(&sleeper.starts) + scene_count(&sleeper.polls), 0);
    assert_int_equal(scene_count(&sleeper.drops), 1);
    scene_close(&world);
}

static void
a_cancelled_pending_job_is_polled_once_more(void **state)
{
    (void)state;
    scene world;
    scene_sleeper sleeper = {.wakes_wanted = -1, .ends_when_cancelled = true};
    manual_open(&world, 1, NULL);
    errand_identity identity = scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    scene_step(&world, 9);
    assert_int_equal(scene_cancel(&world, 0, identity), ERRAND_CANCEL_RUNNING);
    assert_int_equal(scene_step(&world, 9), 1);
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_FAILED], 1);
    scene_sleeper_end(&sleeper);
    scene_close(&world);
}

/* O57, O19: at the end of the lease a pending job gets its token, is polled once and, if that does
 * not end it, dropped as cancelled. */
static void
a_lease_ends_its_pending_jobs(void **state)
{
    (void)state;
    scene world;
    errand_report report;
    scene_sleeper tidy = {.wakes_wanted = -1, .ends_when_cancelled = true};
    scene_sleeper stubborn = {.wakes_wanted = -1};
    manual_open(&world, 1, NULL);
    scene_poll(&world, 0, &scene_sleeper_job, &tidy);
    scene_poll(&world, 0, &scene_sleeper_job, &stubborn);
    assert_int_equal(scene_step(&world, 9), 2);
    assert_int_equal(errand_lease_shutdown(&world.leases[0], 0, &report), ERRAND_OK);
    assert_true(report.clean);
    assert_int_equal(report.accounts.failed, 1);
    assert_int_equal(report.accounts.cancelled, 1);
    assert_int_equal(scene_count(&tidy.polls), 2);
    assert_int_equal(scene_count(&stubborn.polls), 2);
    scene_await(&world, 0, 2); /* O57: completions stay for the next drain */
    assert_int_equal(scene_count(&tidy.drops) + scene_count(&stubborn.drops), 2);
    errand_waker_wake(scene_waker(&stubborn));
    assert_true(scene_end(&world, 0, 0).clean);
    errand_executor_abandon(&world.executor);
    errand_waker_wake(scene_waker(&stubborn)); /* it outlives them all */
    scene_sleeper_end(&tidy);
    scene_sleeper_end(&stubborn);
    assert_int_equal(errand_testing_live_bytes(), world.live_bytes);
}

static void
woken_jobs_and_queued_jobs_take_turns(void **state)
{
    (void)state;
    scene world;
    scene_sleeper sleepers[3];
    manual_open(&world, 1, NULL);
    for (int i = 0; i < 3; i++) {
        sleepers[i] = (scene_sleeper){.wakes_wanted = 1};
        scene_poll(&world, 0, &scene_sleeper_job, &sleepers[i]);
    }
    scene_step(&world, 3);
    for (int i = 0; i < 3; i++) {
        scene_block(&world, 0, &note_job, &a);
        errand_waker_wake(scene_waker(&sleepers[i]));
    }
    scene_step(&world, 4);
    scene_drain(&world, 0);
    assert_int_equal(note_count, 2);
    assert_int_equal(world.seen[0].count, 4);
    scene_step(&world, 9);
    for (int i = 0; i < 3; i++)
        scene_sleeper_end(&sleepers[i]);
    scene_close(&world);
}

/* A seeded runtime needs no step: its jobs run at their due, on its own thread. */
static void
a_seeded_runtime_runs_its_jobs_itself(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor;
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = ERRAND_ORDER_INLINE, .seed = 5};
    scene_sleeper sleeper = {.wakes_wanted = 0};
    scene_begin(&world);
    note_count = 0;
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 1, &config, 0);
    for (int i = 0; i < 3; i++)
        scene_block(&world, 0, &note_job, &a);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    assert_int_equal(scene_step(&world, SIZE_MAX), 0);
    scene_await(&world, 0, 4);
    assert_int_equal(note_count, 3);
    assert_int_equal(scene_count(&sleeper.polls), 1);
    scene_sleeper_end(&sleeper);
    scene_close(&world);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pending_job_is_polled_once_for_each_wake_that_finds_it_quiet),
        cmocka_unit_test(a_queued_async_job_that_is_cancelled_never_starts),
        cmocka_unit_test(a_cancelled_pending_job_is_polled_once_more),
        cmocka_unit_test(a_lease_ends_its_pending_jobs),
        cmocka_unit_test(woken_jobs_and_queued_jobs_take_turns),
        cmocka_unit_test(a_seeded_runtime_runs_its_jobs_itself),
    };
    return test_group("workers/manual_async", tests, NULL, NULL);
}
