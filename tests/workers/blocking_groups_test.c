/* SPDX-License-Identifier: MIT */
/* Goal: groups of short jobs strand nothing and lose nothing.
 * Method: jobs that were measured short are taken in groups; then one of them blocks, panics or
 * ends its thread, at every place of the group and at varied times. */
#include <pthread.h>
#include <string.h>
#include "pool_rig.h"

enum { BATCH = 48 };

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t
next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void
wait_at_gate(rig_job *self, errand_job *job)
{
    (void)job;
    gate_wait(self->arg);
}

static void
panic(rig_job *self, errand_job *job)
{
    (void)job;
    errand_panic("job %d panics", self->number);
}

static void
end_thread(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
    pthread_exit(NULL);
}

/* Short jobs until the pool believes that they are. */
static void
warm_up(pool_rig *rig)
{
    static rig_job jobs[400];

    memset(jobs, 0, sizeof jobs);
    for (int i = 0; i < 400; i++)
        rig_start(rig, &jobs[i]);
    rig_await(rig, rig->heard + 400);
}

/* One of the batch blocks until all others are heard of. */
static void
blocked_batches(uint32_t workers_min, uint32_t workers_max, uint64_t rounds)
{
    static rig_job jobs[BATCH];
    test_gate gate;
    pool_rig rig;

    gate_init(&gate, "in the group");
    rig_init(&rig, workers_min, workers_max);
    warm_up(&rig);
    for (uint64_t round = 0; round < rounds; round++) {
        int count = 2 + (int)(next_random() % (BATCH - 1));
        int blocks = (int)(next_random() % (uint64_t)count);

        if (round % 16 == 0)
            warm_up(&rig);
        for (int i = 0; i < count; i++) {
            jobs[i] = (rig_job){.fn = i == blocks ? wait_at_gate : NULL, .arg = &gate};
            rig_start(&rig, &jobs[i]);
            if (next_random() % 32 == 0)
                rig_spin(next_random() % 3000);
        }
        rig_await(&rig, rig.heard + (uint64_t)count - 1);
        gate_open(&gate);
        rig_await(&rig, rig.heard + 1);
        gate_await_arrival(&gate);
        if (next_random() % 8 == 0)
            rig_spin(next_random() % 100000);
    }
    assert_int_equal(rig.outcomes[ERRAND_COMPLETED], rig.heard);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
a_job_that_blocks_in_a_group_strands_no_other(void **state)
{
    /* O51 */
    (void)state;
    blocked_batches(2, 2, test_scaled(5000));
}

static void
nor_does_it_where_the_second_thread_has_to_be_made(void **state)
{
    /* O51, O56 */
    (void)state;
    blocked_batches(1, 2, test_scaled(2000));
    blocked_batches(1, 4, test_scaled(2000));
}

static void
a_panic_in_a_group_ends_its_job_alone(void **state)
{
    /* O74 */
    static rig_job jobs[BATCH];
    pool_rig rig;
    uint64_t panics = 0, all;

    (void)state;
    rig_init(&rig, 1, 1);
    warm_up(&rig);
    all = rig.heard;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < BATCH; i++) {
            bool bad = next_random() % 4 == 0;

            jobs[i] = (rig_job){.fn = bad ? panic : NULL, .number = i};
            panics += bad;
            rig_start(&rig, &jobs[i]);
        }
        all += BATCH;
        rig_await(&rig, all);
        for (int i = 0; i < BATCH; i++) {
            assert_int_equal(atomic_load_explicit(&jobs[i].ran, memory_order_relaxed), 1);
            assert_int_equal(jobs[i].dropped, 1);
        }
    }
    assert_int_equal(rig.outcomes[ERRAND_PANICKED], panics);
    assert_int_equal(rig.codes[ERRAND_CODE_PANIC], panics);
    assert_int_equal(rig_snapshot(&rig).threads_replaced, 0);
    rig_fini(&rig);
}

static bool
replacements_are_live(void *arg)
{
    const pool_rig *rig = arg;
    errand_executor_snapshot snapshot = rig_snapshot(rig);

    return snapshot.threads_replaced == 20 && snapshot.workers >= 1;
}

static void
a_body_that_ends_its_thread_is_a_panic_and_its_worker_is_replaced(void **state)
{
    /* O75 */
    static rig_job jobs[BATCH];
    pool_rig rig;
    uint64_t all;

    (void)state;
    rig_init(&rig, 1, 1);
    warm_up(&rig);
    all = rig.heard;
    for (int round = 0; round < 20; round++) {
        int ends = (int)(next_random() % BATCH);

        for (int i = 0; i < BATCH; i++) {
            jobs[i] = (rig_job){.fn = i == ends ? end_thread : NULL};
            rig_start(&rig, &jobs[i]);
        }
        all += BATCH;
        rig_await(&rig, all);
        assert_int_equal(rig.outcomes[ERRAND_PANICKED], round + 1);
        for (int i = 0; i < BATCH; i++)
            assert_int_equal(atomic_load_explicit(&jobs[i].ran, memory_order_relaxed), 1);
    }
    assert_non_null(strstr(rig.message, "thread"));
    rig_until(replacements_are_live, &rig);
    assert_int_equal(rig_snapshot(&rig).workers, 1);
    rig_fini(&rig);
}

static void
cancelled_entries_never_fill_the_queue(void **state)
{
    /* O22, C-H2 */
    enum { BOUND = 64 };
    static rig_job jobs[BOUND];
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 1, .workers_max = 1};
    test_gate gate;
    rig_job blocker = {.fn = wait_at_gate, .arg = &gate}, last = {.fn = NULL};
    pool_rig rig;

    (void)state;
    gate_init(&gate, "blocker");
    rig_init_config(&rig, &config, BOUND);
    rig_start(&rig, &blocker);
    gate_await_arrival(&gate);
    for (int round = 0; round < 1000; round++) {
        int count = 1 + (int)(next_random() % (BOUND - 2));

        for (int i = 0; i < count; i++) {
            jobs[i] = (rig_job){.fn = NULL};
            rig_start(&rig, &jobs[i]);
        }
        for (int i = 0; i < count; i++) {
            errand_cancel_answer answer;

            assert_int_equal(errand_cancel(rig.runtime, &jobs[i].identity,
                                           ERRAND_REASON_EXPLICIT, &answer),
                             ERRAND_OK);
            assert_int_equal(answer, ERRAND_CANCEL_CANCELLED);
        }
        rig_await(&rig, rig.heard + (uint64_t)count);
    }
    rig_start(&rig, &last);
    gate_open(&gate);
    rig_await(&rig, rig.heard + 2);
    assert_int_equal(atomic_load_explicit(&last.ran, memory_order_relaxed), 1);
    rig_fini(&rig);
    gate_fini(&gate);
}

/* The i-th to be cancelled of so many: first to last, last to first, or strewn. */
static int
in_order(int order, int i, int count)
{
    if (order == 0)
        return i;
    return order == 1 ? count - 1 - i : (int)((int64_t)i * 1237 % count);
}

static void
what_is_left_between_many_cancelled_ones_runs_once(void **state)
{
    /* O17, O22: the gate opens after half of the cancels, so workers take what is left meanwhile */
    enum { BOUND = 6000, LEFT_EACH = 7 };
    static rig_job jobs[BOUND];
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 1, .workers_max = 2};

    (void)state;
    for (int order = 0; order < 3; order++) {
        test_gate gate;
        rig_job blockers[2] = {{.fn = wait_at_gate, .arg = &gate},
                               {.fn = wait_at_gate, .arg = &gate}};
        uint64_t cancelled = 0;
        pool_rig rig;

        gate_init(&gate, "blockers");
        rig_init_config(&rig, &config, BOUND + 2);
        for (int i = 0; i < 2; i++) {
            rig_start(&rig, &blockers[i]);
            gate_await_arrival(&gate);
        }
        for (int i = 0; i < BOUND; i++) {
            jobs[i] = (rig_job){.fn = NULL};
            rig_start(&rig, &jobs[i]);
        }
        for (int i = 0; i < BOUND; i++) {
            int at = in_order(order, i, BOUND);
            errand_cancel_answer answer;

            if (i == BOUND / 2)
                gate_open_many(&gate, 2);
            if (at % LEFT_EACH == 0 && at > 1000)
                continue;
            assert_int_equal(errand_cancel(rig.runtime, &jobs[at].identity,
                                           ERRAND_REASON_EXPLICIT, &answer),
                             ERRAND_OK);
            assert_true(i >= BOUND / 2 || answer == ERRAND_CANCEL_CANCELLED);
            cancelled += answer == ERRAND_CANCEL_CANCELLED;
        }
        rig_await(&rig, BOUND + 2);
        assert_int_equal(rig.outcomes[ERRAND_CANCELLED], cancelled);
        assert_int_equal(rig.outcomes[ERRAND_COMPLETED], BOUND + 2 - cancelled);
        for (int i = 1001; i < BOUND; i++)
            assert_true(i % LEFT_EACH != 0 ||
                        atomic_load_explicit(&jobs[i].ran, memory_order_relaxed) == 1);
        rig_fini(&rig);
        gate_fini(&gate);
    }
}

static void
a_group_that_takes_too_long_gives_the_rest_back(void **state)
{
    /* O51: short jobs, then slow ones that are taken for short */
    static rig_job jobs[BATCH];
    pool_rig rig, other;
    rig_job lone = {.fn = NULL};

    (void)state;
    rig_init(&rig, 1, 1);
    rig_join(&other, rig.executor, 0);
    for (int round = 0; round < 50; round++) {
        warm_up(&rig);
        for (int i = 0; i < BATCH; i++) {
            jobs[i] = (rig_job){.fn = NULL};
            rig_start(&rig, &jobs[i]);
        }
        rig_start(&other, &lone);
        rig_await(&other, (uint64_t)round + 1);
        rig_await(&rig, rig.heard + BATCH);
    }
    rig_fini(&other);
    rig_fini(&rig);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_blocks_in_a_group_strands_no_other),
        cmocka_unit_test(nor_does_it_where_the_second_thread_has_to_be_made),
        cmocka_unit_test(a_panic_in_a_group_ends_its_job_alone),
        cmocka_unit_test(
            a_body_that_ends_its_thread_is_a_panic_and_its_worker_is_replaced),
        cmocka_unit_test(cancelled_entries_never_fill_the_queue),
        cmocka_unit_test(what_is_left_between_many_cancelled_ones_runs_once),
        cmocka_unit_test(a_group_that_takes_too_long_gives_the_rest_back),
    };

    return test_group("workers/blocking_groups", tests, NULL, NULL);
}
