/* SPDX-License-Identifier: MIT */
/* Goal: one thread polls every woken job once for each wake that counts, in fair turns, and no
 * cancelled job is entered more often than it should be.
 * Method: jobs count their polls; gates hold the executor's thread where the test wants it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "async_rig.h"

/* ---- many jobs, one thread --------------------------------------------------------------------- */

enum { MANY = 10000 };
static atomic_int many_pending;
static _Atomic(pthread_t) many_thread;
static atomic_bool many_strangers; /* a second thread polled */

typedef struct many_job {
    bool polled;
    _Atomic(errand_waker *) waker;
} many_job;

static int32_t
poll_many(errand_job *job, void *state, errand_payload *out_payload)
{
    many_job *self = state;
    pthread_t nobody = 0;

    (void)out_payload;
    if (!atomic_compare_exchange_strong_explicit(&many_thread, &nobody, pthread_self(),
                                                 memory_order_relaxed,
                                                 memory_order_relaxed) &&
        nobody != pthread_self())
        atomic_store_explicit(&many_strangers, true, memory_order_relaxed);
    if (self->polled)
        return 0;
    self->polled = true;
    atomic_store_explicit(&self->waker, errand_job_waker(job), memory_order_release);
    atomic_fetch_add_explicit(&many_pending, 1, memory_order_release);
    return ERRAND_PENDING;
}
static const errand_job_type many_job_type = {
    .struct_size = sizeof(errand_job_type), .name = "many", .poll = poll_many};

static void
ten_thousand_pending_jobs_share_one_thread(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor;
    errand_executor_snapshot snapshot;
    many_job *jobs = calloc(MANY, sizeof *jobs);
    scene_begin(&world);
    assert_int_equal(errand_async_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 1, NULL, MANY);
    for (int i = 0; i < MANY; i++)
        scene_poll(&world, 0, &many_job_type, &jobs[i]);
    await_count(&many_pending, MANY);
    assert_int_equal(errand_executor_snapshot_read(executor, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.running, MANY);
    assert_int_equal(snapshot.workers, 1);
    assert_int_equal(snapshot.threads_started, 1);
    assert_true(snapshot.oldest_running_ns > 0);
    for (int i = MANY - 1; i >= 0; i--) {
        errand_waker *waker = atomic_load_explicit(&jobs[i].waker, memory_order_acquire);

        errand_waker_wake(waker);
        errand_waker_abandon(&waker);
    }
    scene_await(&world, 0, MANY);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], MANY);
    assert_false(atomic_load_explicit(&many_strangers, memory_order_relaxed));
    assert_true(atomic_load_explicit(&many_thread, memory_order_relaxed) !=
                pthread_self());
    scene_close(&world);
    free(jobs);
}

/* ---- wakes ---------------------------------------------------------------------------------------- */

static void
wakes_before_a_poll_count_once(void **state)
{
    (void)state;
    scene world;
    gated holder;
    scene_sleeper sleeper = {.wakes_wanted = 2};
    async_open(&world, 1);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    await_count(&sleeper.polls, 1);
    gated_init(&holder, 1);
    scene_poll(&world, 0, &gated_job, &holder);
    gate_await_arrival(&holder.gate);
    for (int i = 0; i < 10; i++)
        errand_waker_wake(scene_waker(&sleeper));
    gate_open(&holder.gate);
    scene_await(&world, 0, 1);
    await_count(&sleeper.polls, 2);
    errand_waker_wake(scene_waker(&sleeper));
    scene_await(&world, 0, 2);
    assert_int_equal(scene_count(&sleeper.polls), 3);
    assert_int_equal(scene_count(&sleeper.starts), 1);
    scene_sleeper_end(&sleeper);
    gate_fini(&holder.gate);
    scene_close(&world);
}

static void
a_wake_during_a_poll_has_the_job_polled_again(void **state)
{
    (void)state;
    scene world;
    gated self_waker;
    async_open(&world, 1);
    gated_init(&self_waker, 5);
    self_waker.wakes_itself = true;
    scene_poll(&world, 0, &gated_job, &self_waker);
    gate_open(&self_waker.gate);
    scene_await(&world, 0, 1);
    assert_int_equal(self_waker.polls, 5);
    gate_fini(&self_waker.gate);
    scene_close(&world);
}

/* ---- turns ---------------------------------------------------------------------------------------- */

static int busy_polls, busy_when_called;
static test_gate busy_gate;

static int32_t
poll_busy(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_waker *waker = errand_job_waker(job);

    (void)state;
    (void)out_payload;
    errand_waker_wake(waker);
    errand_waker_abandon(&waker);
    if (++busy_polls == 500)
        gate_wait(&busy_gate);
    return errand_job_cancelled(job) ? 1 : ERRAND_PENDING;
}
static const errand_job_type busy_job = {
    .struct_size = sizeof(errand_job_type), .name = "busy", .poll = poll_busy};

static int32_t
poll_caller(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    busy_when_called = busy_polls;
    return 0;
}
static const errand_job_type caller_job = {
    .struct_size = sizeof(errand_job_type), .name = "caller", .poll = poll_caller};

/* O51: a lease that keeps a hundred jobs awake for ever holds another's up by one group. */
static void
a_busy_lease_holds_up_another_by_one_group(void **state)
{
    (void)state;
    scene world;
    busy_polls = busy_when_called = 0;
    gate_init(&busy_gate, "busy");
    async_open(&world, 2);
    for (int i = 0; i < 100; i++)
        scene_poll(&world, 0, &busy_job, NULL);
    gate_await_arrival(&busy_gate);
    scene_poll(&world, 1, &caller_job, NULL);
    gate_open(&busy_gate);
    scene_await(&world, 1, 1);
    assert_true(busy_when_called >= 500);
    assert_true(busy_when_called <= 500 + 2 * 16);
    gate_fini(&busy_gate);
    scene_close(&world);
}

/* ---- cancel ----------------------------------------------------------------------------------------- */

/* O21 */
static void
a_job_cancelled_while_queued_never_starts(void **state)
{
    (void)state;
    scene world;
    gated holder;
    scene_sleeper sleeper = {.wakes_wanted = 0};
    async_open(&world, 1);
    gated_init(&holder, 1);
    scene_poll(&world, 0, &gated_job, &holder);
    gate_await_arrival(&holder.gate);
    errand_identity identity = scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    assert_int_equal(scene_cancel(&world, 0, identity), ERRAND_CANCEL_CANCELLED);
    scene_await(&world, 0, 1); /* settled while the only thread is busy (O22) */
    assert_int_equal(world.seen[0].outcomes[ERRAND_CANCELLED], 1);
    gate_open(&holder.gate);
    scene_await(&world, 0, 2);
    scene_poll(&world, 0, &caller_job, NULL);
    scene_await(&world, 0, 3);
    assert_int_equal(scene_count(&sleeper.starts) + scene_count(&sleeper.polls), 0);
    assert_int_equal(scene_count(&sleeper.drops), 1);
    gate_fini(&holder.gate);
    scene_close(&world);
}

static void
a_cancelled_pending_job_is_polled_once_more(void **state)
{
    (void)state;
    scene world;
    scene_sleeper sleeper = {.wakes_wanted = -1, .ends_when_cancelled = true};
    async_open(&world, 1);
    errand_identity identity = scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    await_count(&sleeper.polls, 1);
    scene_poll(&world, 0, &caller_job, NULL);
    scene_await(&world, 0, 1); /* so the only thread has come back from the first poll */
    assert_int_equal(scene_cancel(&world, 0, identity), ERRAND_CANCEL_RUNNING);
    scene_await(&world, 0, 2);
    assert_int_equal(scene_count(&sleeper.polls), 2);
    assert_int_equal(world.seen[0].outcomes[ERRAND_FAILED], 1);
    scene_sleeper_end(&sleeper);
    scene_close(&world);
}

/* O45: beyond its deadline a pending job is settled for it, and dropped: nothing of it stays. */
static void
a_pending_job_beyond_its_deadline_is_dropped(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor;
    errand_snapshot sums;
    scene_sleeper sleeper = {.wakes_wanted = -1};
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .flags = ERRAND_RUNTIME_TEST_CLOCK};
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_turn turn;
    scene_begin(&world);
    assert_int_equal(errand_async_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 1, &config, 0);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &scene_sleeper_job;
    spec.state = &sleeper;
    spec.deadline_ns = 1000;
    assert_int_equal(errand_start(world.leases[0], &spec, NULL, NULL), ERRAND_OK);
    await_count(&sleeper.polls, 1);
    while (scene_count(&sleeper.drops) == 0) { /* its thread may be in a poll */
        assert_int_equal(errand_testing_clock(world.runtimes[0], UINT64_C(1000000000)),
                         ERRAND_OK);
        assert_int_equal(errand_drive(world.runtimes[0], NULL, &turn), ERRAND_OK);
    }
    assert_int_equal(scene_count(&sleeper.drops), 1);
    assert_int_equal(errand_runtime_snapshot(world.runtimes[0], &sums), ERRAND_OK);
    assert_int_equal(sums.held, 0);
    assert_int_equal(sums.codes[ERRAND_CODE_DEADLINE], 1);
    scene_sleeper_end(&sleeper);
    scene_close(&world);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_pending_jobs_share_one_thread),
        cmocka_unit_test(wakes_before_a_poll_count_once),
        cmocka_unit_test(a_wake_during_a_poll_has_the_job_polled_again),
        cmocka_unit_test(a_busy_lease_holds_up_another_by_one_group),
        cmocka_unit_test(a_job_cancelled_while_queued_never_starts),
        cmocka_unit_test(a_cancelled_pending_job_is_polled_once_more),
        cmocka_unit_test(a_pending_job_beyond_its_deadline_is_dropped),
    };
    return test_group("workers/async", tests, NULL, NULL);
}
