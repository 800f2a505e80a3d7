/* SPDX-License-Identifier: MIT */
/* Goal: who is served next: leases, lanes, priorities.
 * Method: jobs longer than the bound of short ones, so that each is a group of its own; a gate
 * holds the workers until everything is queued; then order and counts are exact. */
#include <stdlib.h>
#include <string.h>
#include "pool_rig.h"

enum { LONG_NS = 30000, DEEP = 8192 };

typedef struct tape { /* the order in which jobs were started */
    atomic_int count;
    atomic_int numbers[DEEP + 64]; /* workers still write behind what is read */
} tape;

static int
number_at(tape *order, int at)
{
    return atomic_load_explicit(&order->numbers[at], memory_order_relaxed);
}

static void
record(rig_job *self, errand_job *job)
{
    tape *order = self->arg;

    (void)job;
    int at = atomic_fetch_add_explicit(&order->count, 1, memory_order_relaxed);

    atomic_store_explicit(&order->numbers[at], self->number, memory_order_relaxed);
    rig_spin(LONG_NS);
}

static void
wait_at_gate(rig_job *self, errand_job *job)
{
    (void)job;
    gate_wait(self->arg);
}

/* Every worker stands at the gate. */
static void
block_workers(pool_rig *rig, test_gate *gate, rig_job *blockers, int workers)
{
    for (int i = 0; i < workers; i++) {
        blockers[i] = (rig_job){.fn = wait_at_gate, .arg = gate};
        rig_start(rig, &blockers[i]);
        gate_await_arrival(gate);
    }
}

/* A deep lease, and then one job of another. */
static void
lone_job_among_many(int workers)
{
    static tape order;
    static rig_job deep[DEEP];
    pool_rig rig, other;
    test_gate gate;
    rig_job blockers[4], lone = {.fn = record, .arg = &order, .number = 1};
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = (uint32_t)workers,
                                     .workers_max = (uint32_t)workers};
    int at = 0;

    memset(&order, 0, sizeof order);
    memset(deep, 0, sizeof deep);
    gate_init(&gate, "blockers");
    rig_init_config(&rig, &config, DEEP + 64);
    rig_join(&other, rig.executor, 0);
    block_workers(&rig, &gate, blockers, workers);
    for (int i = 0; i < DEEP; i++) {
        deep[i] = (rig_job){.fn = record, .arg = &order};
        rig_start(&rig, &deep[i]);
    }
    rig_start(&other, &lone);
    gate_open_many(&gate, (unsigned)workers);
    rig_await(&other, 1);
    while (number_at(&order, at) == 0)
        at++;
    assert_true(at <= workers);
    for (int i = 0; i < DEEP; i++) {
        errand_cancel_answer answer;

        assert_int_equal(errand_cancel(rig.runtime, &deep[i].identity,
                                       ERRAND_REASON_EXPLICIT, &answer),
                         ERRAND_OK);
    }
    rig_await(&rig, DEEP + (uint64_t)workers);
    rig_fini(&other);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
a_lone_job_starts_after_one_job_per_worker_of_a_deep_lease(void **state)
{
    /* O51, C-H1 */
    (void)state;
    lone_job_among_many(1);
    lone_job_among_many(2);
    lone_job_among_many(4);
}

static void
two_deep_leases_are_served_in_turn(void **state)
{
    /* O51 */
    static tape order;
    enum { EACH = 200 };
    static rig_job first[EACH], second[EACH];
    pool_rig rig, other;
    test_gate gate;
    rig_job blocker;
    int ahead = 0;

    (void)state;
    memset(&order, 0, sizeof order);
    gate_init(&gate, "blocker");
    rig_init(&rig, 1, 1);
    rig_join(&other, rig.executor, 0);
    block_workers(&rig, &gate, &blocker, 1);
    for (int i = 0; i < EACH; i++) {
        first[i] = (rig_job){.fn = record, .arg = &order, .number = 1};
        second[i] = (rig_job){.fn = record, .arg = &order, .number = -1};
        rig_start(&rig, &first[i]);
    }
    for (int i = 0; i < EACH; i++)
        rig_start(&other, &second[i]);
    gate_open(&gate);
    rig_await(&other, EACH);
    rig_await(&rig, EACH + 1);
    for (int i = 0; i < 2 * EACH; i++) {
        ahead += number_at(&order, i);
        assert_in_range(ahead + 1, 0, 2);
    }
    rig_fini(&other);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
every_sixteenth_start_is_the_oldest_of_a_lower_priority(void **state)
{
    /* O52 */
    static tape order;
    enum { HIGH = 64, LOWER = 3 };
    static rig_job high[HIGH], lower[2 * LOWER];
    pool_rig rig;
    test_gate gate;
    rig_job blocker;

    (void)state;
    memset(&order, 0, sizeof order);
    gate_init(&gate, "blocker");
    rig_init(&rig, 1, 1);
    block_workers(&rig, &gate, &blocker, 1);
    for (int i = 0; i < LOWER; i++) { /* low ones are older than normal ones */
        errand_spec spec;

        lower[i] = (rig_job){.fn = record, .arg = &order, .number = 200 + i};
        spec = rig_spec(&lower[i]);
        spec.priority = 2;
        rig_start_spec(&rig, &spec);
        rig_spin(20000);
    }
    for (int i = 0; i < HIGH; i++) {
        errand_spec spec;

        high[i] = (rig_job){.fn = record, .arg = &order, .number = i};
        spec = rig_spec(&high[i]);
        spec.priority = 1;
        rig_start_spec(&rig, &spec);
    }
    for (int i = LOWER; i < 2 * LOWER; i++) {
        lower[i] = (rig_job){.fn = record, .arg = &order, .number = 100 + i - LOWER};
        rig_start(&rig, &lower[i]);
    }
    gate_open(&gate);
    rig_await(&rig, HIGH + 2 * LOWER + 1);
    for (int at = 0, next_high = 0; at < 63; at++) {
        if (at % 16 == 15)
            assert_int_equal(number_at(&order, at), 200 + at / 16);
        else
            assert_int_equal(number_at(&order, at), next_high++);
    }
    rig_fini(&rig);
    gate_fini(&gate);
}

/* ---- lanes -------------------------------------------------------------------------------- */

typedef struct crowd { /* how many are inside at once */
    atomic_int inside, most, ran;
} crowd;

static void
enter(rig_job *self, errand_job *job)
{
    crowd *lane = self->arg;
    int inside = 1 + atomic_fetch_add_explicit(&lane->inside, 1, memory_order_relaxed);
    int most = atomic_load_explicit(&lane->most, memory_order_relaxed);

    (void)job;
    while (inside > most &&
           !atomic_compare_exchange_weak_explicit(
               &lane->most, &most, inside, memory_order_relaxed, memory_order_relaxed))
        continue;
    rig_spin(LONG_NS);
    atomic_fetch_sub_explicit(&lane->inside, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&lane->ran, 1, memory_order_relaxed);
}

static void
no_more_workers_than_its_limit_are_in_a_lane(void **state)
{
    /* O53 */
    enum { EACH = 150 };
    static rig_job jobs[3 * EACH];
    static crowd main_lane, own, quarantined;
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = 4,
                                     .workers_max = 4,
                                     .quarantined_limit = 1};
    errand_executor *executor;
    pool_rig rig;
    uint8_t lane;

    (void)state;
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_lane_define(executor, "own", 2, &lane), ERRAND_OK);
    rig_join(&rig, executor, 0);
    for (int i = 0; i < 3 * EACH; i++) {
        crowd *of[] = {&main_lane, &own, &quarantined};
        errand_spec spec;

        jobs[i] = (rig_job){.fn = enter, .arg = of[i % 3]};
        spec = rig_spec(&jobs[i]);
        if (i % 3 == 1)
            spec.lane = lane;
        if (i % 3 == 2) {
            spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
            spec.quarantine_ns = 1000000000;
        }
        rig_start_spec(&rig, &spec);
    }
    rig_await(&rig, 3 * EACH);
    assert_int_equal(atomic_load_explicit(&quarantined.most, memory_order_relaxed), 1);
    assert_in_range(atomic_load_explicit(&own.most, memory_order_relaxed), 1, 2);
    assert_int_equal(atomic_load_explicit(&main_lane.ran, memory_order_relaxed), EACH);
    assert_int_equal(atomic_load_explicit(&own.ran, memory_order_relaxed), EACH);
    assert_int_equal(atomic_load_explicit(&quarantined.ran, memory_order_relaxed), EACH);
    rig_fini(&rig);
    errand_executor_abandon(&executor);
}

static void
a_job_that_waits_for_its_lane_holds_up_no_other(void **state)
{
    /* O53 */
    enum { OTHERS = 50 };
    static rig_job stuck[3], others[OTHERS];
    test_gate gate;
    pool_rig rig;

    (void)state;
    gate_init(&gate, "quarantined");
    rig_init(&rig, 2, 2); /* one worker at once on quarantined work */
    for (int i = 0; i < 3; i++) {
        errand_spec spec;

        stuck[i] = (rig_job){.fn = wait_at_gate, .arg = &gate};
        spec = rig_spec(&stuck[i]);
        spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
        spec.quarantine_ns = 1000000000;
        rig_start_spec(&rig, &spec);
    }
    gate_await_arrival(&gate);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = (rig_job){.fn = NULL};
        rig_start(&rig, &others[i]);
    }
    rig_await(&rig, OTHERS);
    assert_int_equal(atomic_load_explicit(&stuck[1].ran, memory_order_relaxed), 0);
    gate_open_many(&gate, 3);
    rig_await(&rig, OTHERS + 3);
    rig_fini(&rig);
    gate_fini(&gate);
}

static void
lanes_take_turns_where_there_is_one_worker(void **state)
{
    /* O53 */
    enum { EACH = 20 };
    static rig_job jobs[2 * EACH];
    static tape order;
    test_gate gate;
    rig_job blocker;
    pool_rig rig;
    int ahead = 0;

    (void)state;
    memset(&order, 0, sizeof order);
    gate_init(&gate, "blocker");
    rig_init(&rig, 1, 1);
    block_workers(&rig, &gate, &blocker, 1);
    for (int i = 0; i < 2 * EACH; i++) {
        bool quarantined = i < EACH;
        errand_spec spec;

        jobs[i] = (rig_job){.fn = record, .arg = &order, .number = quarantined ? 1 : -1};
        spec = rig_spec(&jobs[i]);
        if (quarantined) {
            spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
            spec.quarantine_ns = 1000000000;
        }
        rig_start_spec(&rig, &spec);
    }
    gate_open(&gate);
    rig_await(&rig, 2 * EACH + 1);
    for (int i = 0; i < 2 * EACH; i++) {
        ahead += number_at(&order, i);
        assert_in_range(ahead + 1, 0, 2);
    }
    rig_fini(&rig);
    gate_fini(&gate);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_job_starts_after_one_job_per_worker_of_a_deep_lease),
        cmocka_unit_test(two_deep_leases_are_served_in_turn),
        cmocka_unit_test(every_sixteenth_start_is_the_oldest_of_a_lower_priority),
        cmocka_unit_test(no_more_workers_than_its_limit_are_in_a_lane),
        cmocka_unit_test(a_job_that_waits_for_its_lane_holds_up_no_other),
        cmocka_unit_test(lanes_take_turns_where_there_is_one_worker),
    };

    return test_group("workers/blocking_shares", tests, NULL, NULL);
}
