/* SPDX-License-Identifier: MIT */
/* Goal: small cases that went wrong elsewhere come out right here (C-A1, C-A14, C-B5, C-H2, C-H3,
 * C-H6, C-I4).
 * Method: as the cases say, with gates and the manual executor in place of sleeps. */
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"
#include "gate.h"

static void
hold_the_worker(counted *self, counted_place place)
{
    if (place == AT_BODY)
        gate_wait(self->arg);
}

static void
a_cancel_wakes_the_host_while_every_worker_is_busy(void **state)
{
    /* C-A1, O22: the wake descriptor says so, and nothing but the cancelled one is drained. */
    test_world *world = *state;
    test_gate gate;
    counted blocker = {.on = hold_the_worker, .arg = &gate}, work = {.answer = 0};
    struct pollfd wake = {.events = POLLIN};

    gate_init(&gate, "the only worker");
    world_pool(world, 1);
    assert_int_equal(errand_runtime_wake_fd(world->runtime, &wake.fd), ERRAND_OK);
    counted_submit(world, &blocker);
    gate_await_arrival(&gate);
    counted_submit(world, &work);
    assert_int_equal(world_drain(world, 10), 0);
    assert_int_equal(poll(&wake, 1, 0), 0);
    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_CANCELLED);
    assert_int_equal(poll(&wake, 1, 0), 1);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_CANCELLED);
    assert_ptr_equal(world_last(world)->wait, &work);
    assert_int_equal(work.count[AT_BODY], 0);
    assert_int_equal(world_drain(world, 10), 0);
    gate_open(&gate);
    while (blocker.count[AT_STATE_DROP] == 0)
        counted_drive(world);
    assert_int_equal(work.count[AT_BODY], 0);
    gate_fini(&gate);
}

/* ---- pools -------------------------------------------------------------------------------------- */

/* running: bodies that have begun.  Writers: workers.  Readers: the test.  Order: relaxed.
 * Pairs: none.  Why: a count to wait for. */
static atomic_int running;

static void
run_until_cancelled(errand_job *job, world_job *self)
{
    (void)self;
    atomic_fetch_add_explicit(&running, 1, memory_order_relaxed);
    while (!errand_job_cancelled(job))
        continue;
}

static void
a_pool_is_whole_after_a_hundred_cancelled_bodies(void **state)
{
    /* C-B5 */
    test_world *world = *state;
    errand_executor_snapshot pool;
    world_job fresh = {.answer = 0};
    size_t heard = 0;

    world_pool(world, 4);
    for (int i = 0; i < 100; i++) {
        world_job job = {.inside = run_until_cancelled};
        errand_identity identity;
        errand_cancel_answer answer;

        atomic_store_explicit(&running, 0, memory_order_relaxed);
        identity = world_start(world, &job);
        while (atomic_load_explicit(&running, memory_order_relaxed) == 0)
            continue;
        assert_int_equal(
            errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
            ERRAND_OK);
        assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
        world_await(world, ++heard);
        assert_int_equal(job.dropped, 1);
    }
    do
        assert_int_equal(errand_executor_snapshot_read(world->pool, &pool), ERRAND_OK);
    while (pool.idle < 4);
    assert_int_equal(pool.workers, 4);
    assert_int_equal(pool.written_off, 0);
    assert_int_equal(pool.threads_replaced, 0);
    world_start(world, &fresh);
    world_await(world, ++heard);
    assert_int_equal(fresh.ran, 1);
}

/* ---- memory -------------------------------------------------------------------------------------- */

static void
cancelled_operations_behind_a_gate_need_no_memory(void **state)
{
    /* C-H2, O22, O26: their entries leave the queue, their states go at the drain. */
    test_world *world = *state;
    uint64_t rounds = test_scaled(1000000);
    int64_t bytes = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        world_job job = {.answer = 0};
        errand_spec spec = world_spec(&job);
        errand_identity identity;

        assert_int_equal(errand_start(world->lease, &spec, NULL, &identity), ERRAND_OK);
        assert_int_equal(
            errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
            ERRAND_OK);
        assert_int_equal(job.dropped, 0);
        assert_int_equal(errand_drain(world->runtime, 10, NULL, NULL, NULL), ERRAND_OK);
        assert_int_equal(job.dropped, 1);
        if (i == 1000)
            bytes = errand_testing_live_bytes();
    }
    assert_int_equal(errand_testing_live_bytes(), bytes);
    assert_int_equal(world_step(world, 10), 0);
}

static void
submits_beyond_the_bound_are_refused_and_need_no_memory(void **state)
{
    /* C-H3, C-H6, O50 */
    test_world *world = *state;
    static world_job jobs[1000];
    uint64_t rounds = test_scaled(1000000), refused = 0;
    world_job other = {.answer = 0};
    errand_spec spec = world_spec(&other);
    int64_t bytes;

    world_end(world);
    world_begin(world, &world->config, 1000);
    for (int i = 0; i < 1000; i++) {
        jobs[i] = (world_job){.answer = 0};
        world_start(world, &jobs[i]);
    }
    bytes = errand_testing_live_bytes();
    for (uint64_t i = 1000; i < rounds; i++)
        refused += errand_start(world->lease, &spec, NULL, NULL) == ERRAND_EFULL;
    assert_int_equal(refused, rounds - 1000);
    assert_int_equal(errand_testing_live_bytes(), bytes);
    assert_int_equal(other.dropped, 0);
    world_step(world, 2000);
    assert_int_equal(world_drain(world, 2000), 1000);
}

/* ---- shares -------------------------------------------------------------------------------------- */

static void
a_high_priority_starts_next_and_a_low_one_starts_in_time(void **state)
{
    /* C-I4, O52 */
    test_world *world = *state;
    static world_job low[1000], high[64];
    errand_spec spec;
    int ran = 0;

    for (int i = 0; i < 1000; i++) {
        low[i] = (world_job){.answer = 0};
        spec = world_spec(&low[i]);
        spec.priority = 2;
        assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    }
    for (int i = 0; i < 64; i++) {
        high[i] = (world_job){.answer = 0};
        spec = world_spec(&high[i]);
        spec.priority = 1;
        assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
        if (i > 0)
            continue;
        world_step(world, 1);
        assert_int_equal(high[0].ran, 1);
    }
    while (high[63].ran == 0) /* each 16th start is a low one, no more and no less */
        world_step(world, 1);
    while (low[ran].ran)
        ran++;
    assert_in_range(ran, 63 / 16, 1 + 64 / 15);
    world_step(world, 2000);
    assert_int_equal(world_drain(world, 2000), 1064);
}

/* ---- ends without an end -------------------------------------------------------------------------- */

static void
leave_without_an_end(void)
{
    static test_world worlds[2];
    static world_job jobs[4];
    errand_runtime_config config = {.struct_size = sizeof config};

    for (int i = 0; i < 2; i++) {
        world_begin(&worlds[i], &config, 0);
        for (int k = 0; k < 2; k++)
            (void)world_start(&worlds[i], &jobs[2 * i + k]);
    }
    world_step(&worlds[0], 1);
    if (world_drain(&worlds[0], 10) == 1)
        exit(0);
    exit(1);
}

static void
a_process_may_end_without_ending_its_runtimes(void **state)
{
    /* C-A14: one inbox was drained, the other never. */
    int status;
    pid_t child;

    (void)state;
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        leave_without_an_end();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        cmocka_unit_test(a_process_may_end_without_ending_its_runtimes),
        WITH_WORLD(a_cancel_wakes_the_host_while_every_worker_is_busy),
        WITH_WORLD(a_pool_is_whole_after_a_hundred_cancelled_bodies),
        WITH_WORLD(cancelled_operations_behind_a_gate_need_no_memory),
        WITH_WORLD(submits_beyond_the_bound_are_refused_and_need_no_memory),
        WITH_WORLD(a_high_priority_starts_next_and_a_low_one_starts_in_time),
    };
    return test_group("runtime/field", tests, NULL, NULL);
}
