/* SPDX-License-Identifier: MIT */
/* Goal: what ends together ends in the order of waits and generations (O42).
 * Method: slots are used again so that their order is not the order of names, and waits are
 * registered in a third order. */
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

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(a_quiet_end_drops_waits_in_the_order_of_their_names),
        WITH_WORLD(an_end_that_tells_everyone_does_so_in_the_order_of_their_names),
    };
    return test_group("runtime/end_order", tests, NULL, NULL);
}
