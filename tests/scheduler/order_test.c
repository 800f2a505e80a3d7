/* SPDX-License-Identifier: MIT */
/* Goal: what the seed decides about an operation lies in its bounds, follows its curve, and hangs
 * on the operation's key alone.
 * Method: many draws, counted; and the same draws among others. */
#include <stdlib.h>
#include "scheduler_rig.h"

static void
draw(scheduler_rig *rig, errand__extra *extra, uint64_t key, uint32_t kind)
{
    *extra = (errand__extra){.key = 0};
    assert_true(errand__order_reserve(&rig->scheduler, rig->scheduler.due.count + 1));
    errand__order_draw(&rig->scheduler, extra, key, kind);
}

/* D141 */
static void
due_and_begin_lie_in_their_bounds(void **state)
{
    scheduler_rig *rig = *state;
    errand__extra extra;

    rig->scheduler.now = 5000;
    assert_int_equal(errand__latency_set(&rig->scheduler, 3, 1000), ERRAND_OK);
    for (uint64_t key = 0; key < 20000; key++) {
        draw(rig, &extra, key, 3);
        assert_in_range(extra.due, 5500, 7000);
        assert_in_range(extra.begin, 5000, extra.due);
        errand__order_forget(&rig->scheduler, &extra);
        draw(rig, &extra, key, 4); /* a kind without a model */
        assert_in_range(extra.due, 5000 + ERRAND__LATENCY_DEFAULT / 2,
                        5000 + ERRAND__LATENCY_DEFAULT * 2);
        errand__order_forget(&rig->scheduler, &extra);
    }
}

/* A quarter of the draws in each quarter of the exponent; begin halfway on the average. */
static void
due_is_log_uniform_and_begin_uniform(void **state)
{
    enum { DRAWS = 40000, ESTIMATE = 1000000 };
    static const uint64_t bounds[] = {707107, 1000000, 1414214, 2000001};
    scheduler_rig *rig = *state;
    unsigned quarters[4] = {0};
    double begins = 0;
    errand__extra extra;

    for (uint64_t key = 0; key < DRAWS; key++) {
        unsigned quarter = 0;

        draw(rig, &extra, key, 9);
        while (extra.due >= bounds[quarter])
            quarter++;
        quarters[quarter]++;
        begins += (double)extra.begin / (double)extra.due;
        errand__order_forget(&rig->scheduler, &extra);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_in_range(quarters[i], DRAWS / 4 - DRAWS / 80, DRAWS / 4 + DRAWS / 80);
    assert_true(begins / DRAWS > 0.49 && begins / DRAWS < 0.51);
}

/* D52 */
static void
draws_hang_on_the_key_and_not_on_others(void **state)
{
    scheduler_rig *rig = *state;
    errand__extra alone, others[10], among;

    draw(rig, &alone, 42, 1);
    for (uint64_t i = 0; i < 10; i++)
        draw(rig, &others[i], i, 1);
    errand__order_forget(&rig->scheduler, &alone);
    draw(rig, &among, 42, 1);
    assert_int_equal(rig->scheduler.due.count, 11);
    assert_int_equal(alone.due, among.due);
    assert_int_equal(alone.begin, among.begin);
    assert_int_equal(alone.tie, among.tie);
    assert_int_equal(alone.fate, among.fate);
    assert_int_not_equal(alone.tie, alone.fate);
    assert_int_not_equal(alone.due, others[0].due);
    rig_restart(rig, ERRAND_ORDER_INLINE, 8);
    draw(rig, &among, 42, 1);
    assert_int_not_equal(alone.due, among.due);
    errand__order_forget(&rig->scheduler, &among);
}

static void
equal_dues_are_ordered_by_the_seed(void **state)
{
    scheduler_rig *rig = *state;
    unsigned first_is_first = 0;

    for (uint64_t seed = 0; seed < 200; seed++) {
        errand__extra a, b;

        rig_restart(rig, ERRAND_ORDER_INLINE, seed);
        errand__latency_set(&rig->scheduler, 1, 1); /* due is 1 ns off for all */
        draw(rig, &a, 1, 1);
        draw(rig, &b, 2, 1);
        assert_int_equal(a.due, b.due);
        first_is_first += errand__dues_first(&rig->scheduler.due) == &a.due_entry;
        assert_int_equal(errand__order_next(&rig->scheduler), a.due);
        errand__order_forget(&rig->scheduler, &a);
        errand__order_forget(&rig->scheduler, &b);
    }
    assert_in_range(first_is_first, 60, 140);
}

static void
models_are_kept_per_kind_in_any_order(void **state)
{
    scheduler_rig *rig = *state;

    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(errand__latency_set(&rig->scheduler, i * 37 % 101 + 1, i + 1),
                         ERRAND_OK);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(errand__latency_of(&rig->scheduler, i * 37 % 101 + 1), i + 1);
    assert_int_equal(errand__latency_set(&rig->scheduler, 1, 5), ERRAND_OK);
    assert_int_equal(errand__latency_of(&rig->scheduler, 1), 5);
    assert_int_equal(errand__latency_of(&rig->scheduler, 5000), ERRAND__LATENCY_DEFAULT);
}

static void
the_largest_latency_ends_before_the_end_of_time(void **state)
{
    scheduler_rig *rig = *state;
    errand__extra extra;

    errand__latency_set(&rig->scheduler, 1, ERRAND__LATENCY_MAX);
    for (uint64_t key = 0; key < 1000; key++) {
        rig->scheduler.now = key;
        draw(rig, &extra, key, 1);
        assert_in_range(extra.due, ERRAND__LATENCY_MAX / 2, UINT64_MAX - 1);
        errand__order_forget(&rig->scheduler, &extra);
    }
    rig->scheduler.now = UINT64_MAX - 5;
    draw(rig, &extra, 1, 1);
    assert_int_equal(extra.due, UINT64_MAX - 1);
    errand__order_forget(&rig->scheduler, &extra);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(due_and_begin_lie_in_their_bounds,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(due_is_log_uniform_and_begin_uniform,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(draws_hang_on_the_key_and_not_on_others,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(equal_dues_are_ordered_by_the_seed,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(models_are_kept_per_kind_in_any_order,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(the_largest_latency_ends_before_the_end_of_time,
                                        rig_setup_inline, rig_teardown),
    };
    return test_group("scheduler/order", tests, NULL, NULL);
}
