/* SPDX-License-Identifier: MIT */
/* Goal: threads come, go, are refused, lost and replaced.
 * Method: gates, the idle clock's test hook, the hook that refuses threads. */
#include <pthread.h>
#include <string.h>
#include "pool_rig.h"

#define HOUR UINT64_C(3600000000000)

static void
wait_at_gate(rig_job *self, errand_job *job)
{
    (void)job;
    gate_wait(self->arg);
}

static void
end_thread(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
    pthread_exit(NULL);
}

static void
arrive_and_end_thread(rig_job *self, errand_job *job)
{
    (void)job;
    gate_wait(self->arg);
    pthread_exit(NULL);
}

static bool
has_one_worker(void *arg)
{
    return rig_snapshot(arg).workers == 1;
}

static bool
has_three_workers(void *arg)
{
    return rig_snapshot(arg).workers == 3;
}

static bool
all_are_idle(void *arg)
{
    errand_executor_snapshot snapshot = rig_snapshot(arg);

    return snapshot.idle == snapshot.workers;
}

static void
a_pool_grows_to_its_maximum_and_shrinks_to_its_minimum(void **state)
{
    /* O56 */
    enum { MOST = 4 };
    rig_job jobs[MOST + 2];
    test_gate gate;
    pool_rig rig;
    errand_executor_snapshot snapshot;

    (void)state;
    gate_init(&gate, "bodies");
    rig_init(&rig, 1, MOST);
    assert_int_equal(rig_snapshot(&rig).workers, 1);
    for (int i = 0; i < MOST + 2; i++) {
        jobs[i] = (rig_job){.fn = wait_at_gate, .arg = &gate};
        rig_start(&rig, &jobs[i]);
    }
    for (int i = 0; i < MOST; i++)
        gate_await_arrival(&gate);
    snapshot = rig_snapshot(&rig);
    assert_int_equal(snapshot.workers, MOST);
    assert_int_equal(snapshot.running, MOST);
    assert_int_equal(snapshot.queued, 2);
    gate_open_many(&gate, MOST + 2);
    rig_await(&rig, MOST + 2);
    rig_until(all_are_idle, &rig);
    assert_int_equal(rig_snapshot(&rig).workers, MOST);
    errand_testing_idle_clock(rig.executor, HOUR);
    rig_until(has_one_worker, &rig);
    snapshot = rig_snapshot(&rig);
    assert_int_equal(snapshot.threads_retired, MOST - 1);
    assert_int_equal(snapshot.threads_started, MOST);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
the_minimum_does_not_retire(void **state)
{
    /* O56 */
    pool_rig rig;
    rig_job job = {.fn = NULL};

    (void)state;
    rig_init(&rig, 3, 3);
    rig_start(&rig, &job);
    rig_await(&rig, 1);
    for (int i = 0; i < 3; i++)
        errand_testing_idle_clock(rig.executor, HOUR);
    rig_until(has_three_workers, &rig);
    rig_start(&rig, &job);
    rig_await(&rig, 2);
    assert_int_equal(rig_snapshot(&rig).threads_retired, 0);
    rig_fini(&rig);
}

/* ---- refused ------------------------------------------------------------------------------- */

static void
with_no_thread_a_submit_is_refused_and_tries_again(void **state)
{
    /* O55 */
    pool_rig rig;
    rig_job job = {.fn = NULL};
    errand_spec spec = rig_spec(&job);

    (void)state;
    errand_testing_refuse_threads(UINT32_MAX);
    rig_init(&rig, 2, 2);
    assert_int_equal(rig_snapshot(&rig).workers, 0);
    assert_int_equal(rig_snapshot(&rig).threads_refused, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(errand_start(rig.lease, &spec, NULL, NULL), ERRAND_ENOTHREAD);
    assert_int_equal(job.dropped, 0);
    errand_testing_refuse_threads(0);
    rig_start(&rig, &job);
    rig_await(&rig, 1);
    assert_int_equal(rig.outcomes[ERRAND_COMPLETED], 1);
    rig_fini(&rig);
}

static void
with_fewer_threads_than_asked_for_the_pool_goes_on(void **state)
{
    /* O55 */
    pool_rig rig;
    rig_job jobs[50];

    (void)state;
    errand_testing_refuse_threads(2);
    rig_init(&rig, 3, 3);
    assert_int_equal(rig_snapshot(&rig).workers, 1);
    assert_int_equal(rig_snapshot(&rig).threads_refused, 2);
    for (int i = 0; i < 50; i++) {
        jobs[i] = (rig_job){.fn = NULL};
        rig_start(&rig, &jobs[i]);
    }
    rig_await(&rig, 50);
    rig_fini(&rig);
}

static void
what_is_queued_when_the_last_worker_is_lost_is_settled_so(void **state)
{
    /* O55 */
    pool_rig rig;
    test_gate gate;
    rig_job last = {.fn = arrive_and_end_thread, .arg = &gate}, queued[100];
    uint64_t began;

    (void)state;
    gate_init(&gate, "last worker");
    rig_init(&rig, 1, 1);
    rig_start(&rig, &last);
    gate_await_arrival(&gate);
    for (int i = 0; i < 100; i++) {
        queued[i] = (rig_job){.fn = NULL};
        rig_start(&rig, &queued[i]);
    }
    errand_testing_refuse_threads(UINT32_MAX);
    began = rig_now();
    gate_open(&gate);
    rig_await(&rig, 101);
    assert_true(rig_now() - began > 900000000);
    assert_int_equal(rig.codes[ERRAND_CODE_WORKER_LOST], 100);
    assert_int_equal(rig.outcomes[ERRAND_PANICKED], 1);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(atomic_load_explicit(&queued[i].ran, memory_order_relaxed), 0);
        assert_int_equal(queued[i].dropped, 1);
    }
    errand_testing_refuse_threads(0);
    queued[0] = (rig_job){.fn = NULL};
    rig_start(&rig, &queued[0]);
    rig_await(&rig, 102);
    assert_int_equal(rig.outcomes[ERRAND_COMPLETED], 1);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
count_completed(void *arg, errand_completion *completion)
{
    *(int *)arg += completion->outcome == ERRAND_COMPLETED;
}

static void
a_worker_that_can_be_made_later_takes_what_is_queued(void **state)
{
    /* O55: retried every 100 ms, also if the owner does not park */
    pool_rig rig;
    test_gate gate;
    rig_job last = {.fn = arrive_and_end_thread, .arg = &gate}, queued[10];

    (void)state;
    gate_init(&gate, "last worker");
    rig_init(&rig, 1, 1);
    rig_start(&rig, &last);
    gate_await_arrival(&gate);
    for (int i = 0; i < 10; i++) {
        queued[i] = (rig_job){.fn = NULL};
        rig_start(&rig, &queued[i]);
    }
    errand_testing_refuse_threads(3);
    gate_open(&gate);
    for (int completed = 0; completed < 10;)
        assert_int_equal(
            errand_drain(rig.runtime, SIZE_MAX, count_completed, &completed, NULL),
            ERRAND_OK);
    rig_fini(&rig);
    gate_fini(&gate);
}

static bool
minimum_lives(void *arg)
{
    errand_executor_snapshot snapshot = rig_snapshot(arg);

    return snapshot.workers >= 2 && snapshot.idle == snapshot.workers;
}

static void
many_ended_threads_are_replaced_one_by_one(void **state)
{
    /* O75 */
    enum { ENDS = 200 };
    static rig_job jobs[ENDS];
    pool_rig rig;

    (void)state;
    rig_init(&rig, 2, 3);
    for (int i = 0; i < ENDS; i++) {
        jobs[i] = (rig_job){.fn = end_thread};
        rig_start(&rig, &jobs[i]);
    }
    rig_await(&rig, ENDS);
    assert_int_equal(rig.outcomes[ERRAND_PANICKED], ENDS);
    rig_until(minimum_lives, &rig); /* the last replacement may still be under way */
    assert_in_range(rig_snapshot(&rig).workers, 2, 3);
    rig_fini(&rig);
}

/* ---- written off ---------------------------------------------------------------------------- */

static bool
nobody_is_written_off(void *arg)
{
    return rig_snapshot(arg).written_off == 0;
}

static void
a_worker_that_does_not_come_back_is_written_off_and_replaced(void **state)
{
    /* O45 */
    pool_rig rig;
    test_gate gate;
    rig_job stuck = {.fn = wait_at_gate, .arg = &gate}, others[20];
    errand_spec spec = rig_spec(&stuck);
    errand_snapshot accounts;

    (void)state;
    gate_init(&gate, "stuck body");
    rig_init(&rig, 1, 1);
    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = 1000000;
    spec.deadline_ns = 1000000;
    rig_start_spec(&rig, &spec);
    gate_await_arrival(&gate);
    for (int i = 0; i < 20; i++) {
        others[i] = (rig_job){.fn = NULL};
        rig_start(&rig, &others[i]);
    }
    rig_await(&rig, 21);
    assert_int_equal(rig.held, 1);
    assert_int_equal(rig.codes[ERRAND_CODE_DEADLINE], 1);
    assert_int_equal(rig.outcomes[ERRAND_COMPLETED], 20);
    assert_int_equal(stuck.dropped, 0);
    assert_int_equal(rig_snapshot(&rig).written_off, 1);
    assert_int_equal(rig_snapshot(&rig).workers, 1);
    assert_int_equal(rig_snapshot(&rig).threads_replaced, 1);
    gate_open(&gate);
    rig_until(nobody_is_written_off, &rig);
    assert_int_equal(errand_drain(rig.runtime, 10, NULL, NULL, NULL), ERRAND_OK);
    assert_int_equal(stuck.dropped, 1);
    assert_int_equal(errand_runtime_snapshot(rig.runtime, &accounts), ERRAND_OK);
    assert_int_equal(accounts.returned_late, 1);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
a_written_off_body_may_end_its_thread_too(void **state)
{
    /* O45, O75 */
    pool_rig rig;
    test_gate gate;
    rig_job stuck = {.fn = arrive_and_end_thread, .arg = &gate}, other = {.fn = NULL};
    errand_spec spec = rig_spec(&stuck);

    (void)state;
    gate_init(&gate, "stuck body");
    rig_init(&rig, 1, 1);
    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = 1000000;
    spec.deadline_ns = 1000000;
    rig_start_spec(&rig, &spec);
    gate_await_arrival(&gate);
    rig_await(&rig, 1);
    gate_open(&gate);
    rig_until(nobody_is_written_off, &rig);
    rig_start(&rig, &other);
    rig_await(&rig, 2);
    assert_int_equal(rig_snapshot(&rig).workers, 1);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
what_is_queued_behind_a_written_off_worker_is_settled_if_none_can_be_made(void **state)
{
    /* O45, O55 */
    pool_rig rig;
    test_gate gate;
    rig_job stuck = {.fn = wait_at_gate, .arg = &gate}, queued[10];
    errand_spec spec = rig_spec(&stuck);

    (void)state;
    gate_init(&gate, "stuck body");
    rig_init(&rig, 1, 1);
    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = 1000000;
    spec.deadline_ns = 1000000;
    rig_start_spec(&rig, &spec);
    gate_await_arrival(&gate);
    errand_testing_refuse_threads(UINT32_MAX);
    for (int i = 0; i < 10; i++) {
        queued[i] = (rig_job){.fn = NULL};
        rig_start(&rig, &queued[i]);
    }
    rig_await(&rig, 11);
    assert_int_equal(rig.held, 1);
    assert_int_equal(rig.codes[ERRAND_CODE_WORKER_LOST], 10);
    assert_int_equal(rig_snapshot(&rig).workers, 0);
    errand_testing_refuse_threads(0);
    gate_open(&gate);
    queued[0] = (rig_job){.fn = NULL};
    rig_start(&rig, &queued[0]);
    rig_await(&rig, 12);
    assert_int_equal(rig.outcomes[ERRAND_COMPLETED], 1);
    rig_until(nobody_is_written_off, &rig);
    rig_fini(&rig);
    gate_fini(&gate);
}

static int
allow_threads(void **state)
{
    (void)state;
    errand_testing_refuse_threads(0);
    return 0;
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, NULL, allow_threads)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        PLAIN(a_pool_grows_to_its_maximum_and_shrinks_to_its_minimum),
        PLAIN(the_minimum_does_not_retire),
        PLAIN(with_no_thread_a_submit_is_refused_and_tries_again),
        PLAIN(with_fewer_threads_than_asked_for_the_pool_goes_on),
        PLAIN(what_is_queued_when_the_last_worker_is_lost_is_settled_so),
        PLAIN(a_worker_that_can_be_made_later_takes_what_is_queued),
        PLAIN(many_ended_threads_are_replaced_one_by_one),
        PLAIN(a_worker_that_does_not_come_back_is_written_off_and_replaced),
        PLAIN(a_written_off_body_may_end_its_thread_too),
        PLAIN(what_is_queued_behind_a_written_off_worker_is_settled_if_none_can_be_made),
    };

    return test_group("workers/blocking_threads", tests, NULL, NULL);
}
