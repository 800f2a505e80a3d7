/* SPDX-License-Identifier: MIT */
/* Goal: a pass is a snapshot, permuted by the seed and by nothing else.
 * Method: ready items that write their number into a list. */
#include <string.h>
#include "scheduler_rig.h"

enum { ITEMS = 6 };

typedef struct item {
    errand__ready ready;
    unsigned number;
    unsigned again; /* so often it readies itself */
} item;

static item items[1000];
static unsigned visited[2000];
static size_t visited_count;
static uint64_t rounds; /* of visits, which an item's choices hang on */

static void
note(errand__ready *ready, void *context)
{
    item *self = ERRAND__CONTAINER(ready, item, ready);
    scheduler_rig *rig = context;

    visited[visited_count++] = self->number;
    if (self->again-- > 0)
        errand__ready_append(&rig->scheduler, ready);
}

static void
ready_up(scheduler_rig *rig, unsigned count)
{
    visited_count = 0;
    for (unsigned i = 0; i < count; i++) {
        items[i] =
            (item){.ready = {.visit = note, .key = i, .visits = rounds}, .number = i};
        errand__ready_append(&rig->scheduler, &items[i].ready);
    }
    rounds++;
}

static void
arrival_order_takes_items_as_they_came(void **state)
{
    scheduler_rig *rig = *state;

    ready_up(rig, ITEMS);
    assert_int_equal(rig_pass(rig), ITEMS);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(visited[i], i);
    assert_int_equal(rig_pass(rig), 0);
}

/* D3, D6 */
static void
what_is_readied_in_a_pass_waits_for_the_next(void **state)
{
    scheduler_rig *rig = *state;

    ready_up(rig, 3);
    for (unsigned i = 0; i < 3; i++)
        items[i].again = 19;
    for (unsigned pass = 0; pass < 20; pass++) {
        unsigned seen = 0;

        visited_count = 0;
        assert_int_equal(rig_pass(rig), 3);
        for (unsigned i = 0; i < 3; i++)
            seen |= 1U << visited[i];
        assert_int_equal(seen, 7); /* each once */
    }
    assert_int_equal(rig_pass(rig), 0);
}

/* D1, D2 */
static void
same_seed_gives_the_same_order_and_another_seed_another(void **state)
{
    scheduler_rig *rig = *state;
    unsigned orders[3][1000];

    for (unsigned run = 0; run < 3; run++) {
        rounds = 0;
        rig_restart(rig, ERRAND_ORDER_INLINE, run < 2 ? 11 : 12);
        ready_up(rig, 1000);
        rig_pass(rig);
        memcpy(orders[run], visited, sizeof orders[run]);
    }
    assert_memory_equal(orders[0], orders[1], sizeof orders[0]);
    assert_memory_not_equal(orders[0], orders[2], sizeof orders[0]);
    rig_restart(rig, ERRAND_ORDER_INLINE, 11);
    ready_up(rig, 1000);
    rig_pass(rig);
    ready_up(rig, 1000);
    rig_pass(rig); /* the second visit draws anew */
    assert_memory_not_equal(orders[0], visited, sizeof orders[0]);
}

/* D5: all 24 orders of four, each about as often; chi-square below its 99.9 % point. */
static void
every_permutation_is_equally_likely(void **state)
{
    enum { ROUNDS = 24000 };
    scheduler_rig *rig = *state;
    unsigned seen[256] = {0};
    double square = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        ready_up(rig, 4);
        rig_pass(rig);
        seen[visited[0] | visited[1] << 2 | visited[2] << 4 | visited[3] << 6]++;
    }
    for (unsigned code = 0; code < 256; code++) {
        double off = seen[code] - ROUNDS / 24.0;

        if (seen[code] != 0)
            square += off * off / (ROUNDS / 24.0);
    }
    assert_true(square < 49.7);
}

/* D4 */
static void
none_or_one_entry_draws_nothing(void **state)
{
    scheduler_rig *rig = *state;

    assert_int_equal(rig_pass(rig), 0);
    assert_int_equal(rig->scheduler.audit.chosen, 0);
    ready_up(rig, 1);
    assert_int_equal(rig_pass(rig), 1);
    assert_int_equal(rig->scheduler.audit.chosen, 0);
    ready_up(rig, 2);
    assert_int_equal(rig_pass(rig), 2);
    assert_int_not_equal(rig->scheduler.audit.chosen, 0);
}

/* D52, D145: an item's place hangs on the item; those that stay keep their order. */
static void
an_item_less_leaves_the_others_in_their_order(void **state)
{
    scheduler_rig *rig = *state;
    unsigned all[100], missing = 0;

    rounds = 0;
    ready_up(rig, 100);
    assert_int_equal(rig_pass(rig), 100);
    memcpy(all, visited, sizeof all);
    rounds = 0;
    rig_restart(rig, ERRAND_ORDER_INLINE, 7);
    ready_up(rig, 100);
    for (unsigned i = 0; i < 100; i += 3)
        errand__list_unlink(&items[i].ready.link);
    assert_int_equal(rig_pass(rig), 66);
    for (unsigned i = 0; i < 100; i++) {
        if (all[i] % 3 == 0)
            missing++;
        else
            assert_int_equal(visited[i - missing], all[i]);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(arrival_order_takes_items_as_they_came,
                                        rig_setup_arrival, rig_teardown),
        cmocka_unit_test_setup_teardown(what_is_readied_in_a_pass_waits_for_the_next,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(
            same_seed_gives_the_same_order_and_another_seed_another, rig_setup_inline,
            rig_teardown),
        cmocka_unit_test_setup_teardown(every_permutation_is_equally_likely,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(none_or_one_entry_draws_nothing, rig_setup_inline,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(an_item_less_leaves_the_others_in_their_order,
                                        rig_setup_inline, rig_teardown),
    };
    return test_group("scheduler/pass", tests, NULL, NULL);
}
