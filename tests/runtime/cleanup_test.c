/* SPDX-License-Identifier: MIT */
/* Goal: what cancelled operations leave behind is reaped in turn, at growing distances, and what
 * only waits does not keep the host awake (O41, O42).
 * Method: the test clock; each reap notes the time. */
#include <stdio.h>
#include <string.h>
#include "counted.h"
#include "errand/task.h"

#define MS UINT64_C(1000000)

static uint64_t reaps[64];
static size_t reap_count;

static void
note_reap(counted *self, counted_place place)
{
    if (place == AT_REAP && reap_count < 64)
        reaps[reap_count++] = errand_runtime_now(self->world->runtime);
}

/* A running operation whose wait was cancelled, and whose hook is not done. */
static void
leave_behind(test_world *world, counted *self)
{
    self->lingers = self->deaf = self->no_continuation = true;
    self->cancel_answer = ERRAND_HOOK_PENDING;
    self->on = note_reap;
    counted_submit(world, self);
    world_step(world, 10);
    assert_int_equal(counted_cancel(self), ERRAND_CANCEL_RUNNING);
}

static void
let_end(test_world *world, counted *self)
{
    self->reap_answer = ERRAND_HOOK_REAPED;
    counted_ready(self);
    world_step(world, 10);
    counted_drive(world);
    counted_check_ended(self);
}

static errand_turn
one_turn(test_world *world, uint32_t items)
{
    const errand_budget budget = {.struct_size = sizeof budget, .items = items};
    errand_turn turn;

    assert_int_equal(errand_drive(world->runtime, &budget, &turn), ERRAND_OK);
    return turn;
}

static void
reaps_come_at_doubling_distances_up_to_a_second(void **state)
{
    /* O41: 1, 2, 4 ... ms after the cancel; then every second. */
    test_world *world = *state;
    counted work = {.reap_answer = ERRAND_HOOK_PENDING};
    uint64_t expected = MS, distance = MS;

    reap_count = 0;
    leave_behind(world, &work);
    for (int i = 0; i < 16; i++) {
        errand_turn turn = one_turn(world, 0);

        /* In between it is no progress, and the host may park until the next one. */
        while (turn.kind == ERRAND_TURN_PROGRESS)
            turn = one_turn(world, 0);
        assert_int_equal(turn.kind, ERRAND_TURN_IDLE);
        assert_int_equal(turn.next_deadline_ns, expected);
        assert_int_equal(turn.cleanups, 0);
        assert_int_equal(reap_count, i);
        assert_int_equal(
            errand_testing_clock(world->runtime,
                                 expected - errand_runtime_now(world->runtime) - 1),
            ERRAND_OK);
        assert_int_equal(one_turn(world, 0).cleanups, 0); /* not a moment too early */
        assert_int_equal(errand_testing_clock(world->runtime, 1), ERRAND_OK);
        turn = one_turn(world, 0);
        assert_int_equal(turn.kind, ERRAND_TURN_PROGRESS);
        assert_int_equal(turn.cleanups, 1);
        expected += distance;
        distance = 2 * distance < 1000 * MS ? 2 * distance : 1000 * MS;
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(reaps[i], MS << i);
    assert_int_equal(reaps[15] - reaps[14], 1000 * MS);
    let_end(world, &work);
}

static void
news_has_a_resource_reaped_at_once(void **state)
{
    /* O41: its completion, and errand_reap_ready. */
    test_world *world = *state;
    counted work = {.reap_answer = ERRAND_HOOK_PENDING};

    reap_count = 0;
    leave_behind(world, &work);
    assert_int_equal(one_turn(world, 0).cleanups, 0);
    assert_int_equal(errand_reap_ready(world->runtime, &work.identity), ERRAND_OK);
    assert_int_equal(one_turn(world, 0).cleanups, 1);
    assert_int_equal(one_turn(world, 0).cleanups, 0); /* once */
    counted_ready(&work);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(work.count[AT_STATE_DROP], 1);
    assert_int_equal(work.count[AT_HOOK_DROP], 0); /* the entry's now */
    assert_int_equal(one_turn(world, 0).cleanups, 1);
    assert_int_equal(reap_count, 2);
    assert_int_equal(reaps[0] + reaps[1], 0); /* all at time 0 */
    work.reap_answer = ERRAND_HOOK_REAPED;
    assert_int_equal(errand_reap_ready(world->runtime, &work.identity), ERRAND_OK);
    assert_int_equal(one_turn(world, 0).cleanups, 1);
    assert_int_equal(errand_reap_ready(world->runtime, &work.identity), ERRAND_EUNKNOWN);
    counted_check_ended(&work);
}

static void
resources_are_reaped_one_per_item_in_turn(void **state)
{
    /* O41 */
    test_world *world = *state;
    counted works[3];

    reap_count = 0;
    for (int i = 0; i < 3; i++) {
        works[i] = (counted){.reap_answer = ERRAND_HOOK_PENDING};
        leave_behind(world, &works[i]);
    }
    while (one_turn(world, 0).kind == ERRAND_TURN_PROGRESS)
        continue;
    for (unsigned round = 1; round <= 4; round++) {
        assert_int_equal(errand_testing_clock(world->runtime, 1000 * MS), ERRAND_OK);
        for (unsigned i = 0; i < 3; i++) {
            errand_turn turn = one_turn(world, 1);

            while (turn.cleanups == 0) /* other sources have their turn too */
                turn = one_turn(world, 1);
            assert_int_equal(turn.cleanups, 1);
            assert_int_equal(works[i].count[AT_REAP], round);
            assert_int_equal(reap_count, 3 * (round - 1) + i + 1);
        }
    }
    for (int i = 0; i < 3; i++)
        let_end(world, &works[i]);
}

static void
an_entry_that_waits_for_its_completion_alone_lets_the_host_park(void **state)
{
    /* O41 */
    test_world *world = *state;
    counted work = {.reap_answer = ERRAND_HOOK_PENDING};
    errand_turn turn;

    leave_behind(world, &work);
    turn = one_turn(world, 0);
    assert_int_equal(turn.kind, ERRAND_TURN_IDLE);
    assert_true(turn.inbox_needed);
    assert_int_equal(errand_park(world->runtime, 0), ERRAND_OK);
    let_end(world, &work);
    turn = one_turn(world, 0);
    assert_int_equal(turn.kind, ERRAND_TURN_QUIESCENT);
}

static void
pass_reaps(test_world *world, const counted *self, unsigned until)
{
    while (self->count[AT_REAP] < until) {
        assert_int_equal(errand_testing_clock(world->runtime, 1000 * MS), ERRAND_OK);
        (void)one_turn(world, 0);
    }
}

static void
errors_in_a_row_are_reported_in_the_order_of_their_waits(void **state)
{
    /* O41, O42: the later cancelled one has the older wait. */
    test_world *world = *state;
    counted works[2] = {{.answer = 0}};
    char text[512], expected[512];

    reap_count = 0;
    for (int i = 0; i < 2; i++) {
        works[i] = (counted){.lingers = true, .deaf = true, .no_continuation = true};
        works[i].cancel_answer = ERRAND_HOOK_PENDING;
        works[i].reap_answer = ERRAND_HOOK_ERROR;
        counted_submit(world, &works[i]);
    }
    world_step(world, 10);
    assert_int_equal(counted_cancel(&works[1]), ERRAND_CANCEL_RUNNING);
    assert_int_equal(counted_cancel(&works[0]), ERRAND_CANCEL_RUNNING);
    pass_reaps(world, &works[0], 31);
    assert_int_equal(errand_stall_text(world->runtime, text, sizeof text), 0);
    pass_reaps(world, &works[0], 32);
    pass_reaps(world, &works[1], 32);
    (void)errand_stall_text(world->runtime, text, sizeof text);
    snprintf(expected, sizeof expected,
             "cleanup of wait %llu is stuck after %u errors: counted error\n"
             "cleanup of wait %llu is stuck after %u errors: counted error\n",
             (unsigned long long)works[0].identity.wait, works[0].count[AT_REAP],
             (unsigned long long)works[1].identity.wait, works[1].count[AT_REAP]);
    assert_string_equal(text, expected);
    /* One answer that is no error, and it is not stuck. */
    works[0].reap_answer = works[1].reap_answer = ERRAND_HOOK_PENDING;
    pass_reaps(world, &works[0], works[0].count[AT_REAP] + 1);
    pass_reaps(world, &works[1], works[1].count[AT_REAP] + 1);
    assert_int_equal(errand_stall_text(world->runtime, text, sizeof text), 0);
    for (int i = 0; i < 2; i++)
        let_end(world, &works[i]);
}

static void
an_end_asks_each_resource_once_and_counts_what_is_left(void **state)
{
    /* O41, O73 */
    test_world *world = *state;
    counted work = {.reap_answer = ERRAND_HOOK_PENDING};

    reap_count = 0;
    leave_behind(world, &work);
    counted_ready(&work);
    world_step(world, 10);
    world_end(world);
    assert_int_equal(work.count[AT_REAP], 1);
    assert_int_equal(world->report.entries, 1);
    assert_false(world->report.clean);
    counted_check_ended(&work);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(reaps_come_at_doubling_distances_up_to_a_second),
        WITH_WORLD(news_has_a_resource_reaped_at_once),
        WITH_WORLD(resources_are_reaped_one_per_item_in_turn),
        WITH_WORLD(an_entry_that_waits_for_its_completion_alone_lets_the_host_park),
        WITH_WORLD(errors_in_a_row_are_reported_in_the_order_of_their_waits),
        WITH_WORLD(an_end_asks_each_resource_once_and_counts_what_is_left),
    };
    return test_group("runtime/cleanup", tests, NULL, NULL);
}
