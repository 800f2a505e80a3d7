/* SPDX-License-Identifier: MIT */
/* Goal: what ends together ends in the order of waits and generations (O42), and what is queued
 * before what runs (O57).
 * Method: slots are used again so that their order is not the order of names, and waits are
 * registered in a third order; the hook of one that runs looks at the sums. */
#include "counted.h"

enum { WORKS = 4 };
static counted works[WORKS];

/* Four operations; names rise with the index, slots fall, waits are registered 2, 0, 3, 1. */
static void
begin(test_world *world)
{
    static const int registered[WORKS] = {2, 0, 3, 1};
    errand_identity names[WORKS];
    errand_submission submissions[WORKS];

    for (int i = 0; i < WORKS; i++)
        assert_int_equal(errand_issue(world->runtime, 1, NULL, &names[i]), ERRAND_OK);
    for (int i = 0; i < WORKS; i++)
        assert_int_equal(errand_retire(world->runtime, &names[i]), ERRAND_OK);
    for (int i = 0; i < WORKS; i++) {
        works[i] = (counted){.answer = 0};
        submissions[i] = counted_submission(world, &works[i]);
        assert_int_equal(works[i].identity.slot, WORKS - i);
    }
    for (int i = 0; i < WORKS; i++)
        counted_await(&works[registered[i]]);
    for (int i = 0; i < WORKS; i++)
        assert_int_equal(errand_submit(world->lease, &submissions[WORKS - 1 - i]),
                         ERRAND_OK);
}

static void
check_order(counted_place place)
{
    for (int i = 0; i < WORKS; i++) {
        assert_int_equal(works[i].count[place], 1);
        if (i > 0)
            assert_true(works[i - 1].order[place] < works[i].order[place]);
        counted_check_ended(&works[i]);
    }
}

static void
a_quiet_end_drops_waits_in_the_order_of_their_names(void **state)
{
    /* O42, O73 */
    test_world *world = *state;

    begin(world);
    world_end(world);
    check_order(AT_CONTINUATION_DROP);
    check_order(AT_DECODER_DROP);
}

static void
an_end_that_tells_everyone_does_so_in_the_order_of_their_names(void **state)
{
    /* O42, O73 */
    test_world *world = *state;

    begin(world);
    assert_int_equal(errand_runtime_shutdown(&world->runtime,
                                             errand_deadline_in(5000000000),
                                             ERRAND_SHUTDOWN_RUN, &world->report),
                     ERRAND_OK);
    errand_executor_abandon(&world->executor);
    world->ended = true;
    check_order(AT_RESUME);
    for (int i = 0; i < WORKS; i++)
        assert_int_equal(works[i].reason, ERRAND_REASON_SHUTDOWN);
}

static uint64_t cancelled_before; /* when the first one that ran was asked to end */

static void
note_sums(counted *self, counted_place place)
{
    errand_snapshot snapshot;

    if (place != AT_CANCEL)
        return;
    assert_int_equal(errand_runtime_snapshot(self->world->runtime, &snapshot), ERRAND_OK);
    cancelled_before = snapshot.cancelled;
}

static void
what_is_queued_is_cancelled_before_what_runs_is_asked_to_end(void **state)
{
    /* O57, O73: a body that heeds it would let its worker begin the next one */
    static const struct {
        errand_shutdown_mode mode;
        bool waitless;
    } rows[] = {{ERRAND_SHUTDOWN_QUIET, false},
                {ERRAND_SHUTDOWN_QUIET, true},
                {ERRAND_SHUTDOWN_RUN, false}};
    errand_runtime_config config = {.struct_size = sizeof config};
    test_world *world = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_end(world);
        world_begin(world, &config, 0);
        for (int k = 0; k < WORKS; k++) {
            works[k] = (counted){
                .lingers = k == 0, .on = note_sums, .no_continuation = rows[i].waitless};
            counted_submit(world, &works[k]);
            if (k == 0)
                world_step(world, SIZE_MAX);
        }
        assert_int_equal(works[0].count[AT_BODY], 1);
        cancelled_before = 0;
        assert_int_equal(errand_runtime_shutdown(&world->runtime,
                                                 errand_deadline_in(5000000000),
                                                 rows[i].mode, &world->report),
                         ERRAND_OK);
        errand_executor_abandon(&world->executor);
        world->ended = true;
        assert_int_equal(works[0].count[AT_CANCEL], 1);
        assert_int_equal(cancelled_before, WORKS - 1);
        for (int k = 0; k < WORKS; k++) {
            assert_int_equal(works[k].count[AT_BODY], k == 0);
            counted_check_ended(&works[k]);
        }
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(a_quiet_end_drops_waits_in_the_order_of_their_names),
        WITH_WORLD(an_end_that_tells_everyone_does_so_in_the_order_of_their_names),
        WITH_WORLD(what_is_queued_is_cancelled_before_what_runs_is_asked_to_end),
    };
    return test_group("runtime/end_order", tests, NULL, NULL);
}
