/* SPDX-License-Identifier: MIT */
/* Goal: timers fire in one order, whatever the heap looks like inside, and never when removed.
 * Method: timers that write their number into a list; the clock is a number. */
#include <stdlib.h>
#include "scheduler_rig.h"

typedef struct numbered {
    errand__timer timer;
    unsigned number;
} numbered;

static unsigned fired[1000];
static size_t fired_count;

static void
note(errand__timer *timer, void *context)
{
    (void)context;
    fired[fired_count++] = ERRAND__CONTAINER(timer, numbered, timer)->number;
}

static void
add(scheduler_rig *rig, numbered *entry, unsigned number, uint64_t deadline)
{
    *entry = (numbered){.timer = {.fire = note}, .number = number};
    assert_true(errand__timers_reserve(&rig->scheduler, rig->scheduler.timers.count + 1));
    errand__timer_add(&rig->scheduler, &entry->timer, deadline, 0);
}

/* O72 */
static void
timers_fire_by_deadline_and_then_by_registration(void **state)
{
    static numbered entries[200];

    fired_count = 0;
    for (unsigned i = 0; i < 200; i++)
        add(*state, &entries[i], i, 100 - i % 5);
    rig_time(*state, 95);
    assert_int_equal(fired_count, 0);
    rig_time(*state, 100);
    assert_int_equal(fired_count, 200);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(fired[i], (i % 40) * 5 + 4 - i / 40);
}

/* O72 */
static void
removed_timer_is_gone_at_once(void **state)
{
    scheduler_rig *rig = *state;
    numbered kept, removed;

    fired_count = 0;
    add(rig, &removed, 1, 10);
    add(rig, &kept, 2, 20);
    errand__timer_remove(&rig->scheduler, &removed.timer);
    errand__timer_remove(&rig->scheduler, &removed.timer);
    assert_int_equal(rig->scheduler.timers.count, 1);
    assert_int_equal(errand__timers_next(&rig->scheduler), 20);
    rig_time(rig, 20);
    assert_int_equal(fired_count, 1);
    assert_int_equal(fired[0], 2);
}

/* O72 */
static void
timer_at_the_largest_time_counts_as_none(void **state)
{
    scheduler_rig *rig = *state;
    numbered never;

    fired_count = 0;
    add(rig, &never, 1, UINT64_MAX);
    assert_int_equal(errand__timers_next(&rig->scheduler), UINT64_MAX);
    assert_int_equal(rig->scheduler.timers.count, 0);
    rig_time(rig, UINT64_MAX);
    assert_int_equal(fired_count, 0);
}

static void
timer_registered_in_a_turn_waits_for_the_next(void **state)
{
    scheduler_rig *rig = *state;
    numbered before, after;
    uint64_t turn;

    fired_count = 0;
    add(rig, &before, 1, 5);
    turn = rig->scheduler.registrations;
    add(rig, &after, 2, 1);
    assert_false(errand__timers_fire(&rig->scheduler, 5, turn));
    errand__timer_remove(&rig->scheduler, &after.timer);
    assert_true(errand__timers_fire(&rig->scheduler, 5, turn));
    assert_int_equal(fired[0], 1);
}

/* D148 */
static void
sleep_holds_one_timer_however_often_its_task_is_looked_at(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "ss"};
    errand_task *task = rig_spawn(rig, NULL, "sleeper", &script);

    for (uint64_t round = 0; round < 3; round++) {
        rig_pass(rig);
        assert_int_equal(rig->scheduler.timers.count, 1);
        task->token = true; /* a wake that is for no sleep */
        rig_pass(rig);
        assert_int_equal(rig->scheduler.timers.count, 1);
        assert_int_equal(script.visits, round + 1);
        rig_time(rig, (round + 1) * 1000);
        assert_int_equal(rig->scheduler.timers.count, 0);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_by_deadline_and_then_by_registration,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(removed_timer_is_gone_at_once, rig_setup_inline,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(timer_at_the_largest_time_counts_as_none,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(
            sleep_holds_one_timer_however_often_its_task_is_looked_at, rig_setup_inline,
            rig_teardown),
        cmocka_unit_test_setup_teardown(timer_registered_in_a_turn_waits_for_the_next,
                                        rig_setup_inline, rig_teardown),
    };
    return test_group("scheduler/timers", tests, NULL, NULL);
}
