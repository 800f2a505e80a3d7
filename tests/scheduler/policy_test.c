/* SPDX-License-Identifier: MIT */
/* Goal: each policy picks as it says, in instants that end, and plain choices leave first in, first
 * out.
 * Method: items that ready themselves again a number of times; tapes that hold one decision. */
#include <stdio.h>
#include <string.h>
#include "scheduler_rig.h"

enum { ITEMS = 5, TRAIL = 4000 };

typedef struct item {
    errand__ready ready;
    unsigned number, visits, rounds; /* rounds: so often it readies itself again */
} item;

static item items[ITEMS];
static char trail[TRAIL];
static size_t trail_length;

static void
visit(errand__ready *ready, void *context)
{
    item *self = ERRAND__CONTAINER(ready, item, ready);
    scheduler_rig *rig = context;

    if (trail_length < TRAIL - 1)
        trail[trail_length++] = (char)('a' + self->number);
    self->visits++;
    if (self->rounds > 0) {
        self->rounds--;
        errand__ready_append(&rig->scheduler, ready);
    }
}

static errand_choices
choices_of(errand_policy policy, uint32_t depth, uint64_t steps)
{
    errand_choices choices = ERRAND_CHOICES_INIT;

    choices.policy = policy;
    choices.depth = depth;
    choices.steps = steps;
    return choices;
}

/* Starts over with these choices and so many items, which are ready. */
static void
begin(scheduler_rig *rig, uint64_t seed, const errand_choices *choices, unsigned count,
      unsigned rounds)
{
    rig->config.choices = choices;
    rig_restart(rig, ERRAND_ORDER_INLINE, seed);
    rig->config.choices = NULL;
    memset(trail, 0, sizeof trail);
    trail_length = 0;
    for (unsigned i = 0; i < count; i++) {
        items[i] = (item){
            .ready = {.visit = visit, .key = 100 + i}, .number = i, .rounds = rounds};
        errand__ready_append(&rig->scheduler, &items[i].ready);
    }
}

static const char *
run_all(scheduler_rig *rig)
{
    while (!errand__list_empty(&rig->scheduler.ready))
        rig_pass(rig);
    return trail;
}

static errand_tape *
tape_of(const errand_choice *choices, size_t count)
{
    errand_tape *tape = NULL;

    assert_int_equal(errand_tape_create(&tape), ERRAND_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(errand_tape_put(tape, &choices[i]), ERRAND_OK);
    return tape;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static void
plain_choices_are_first_in_first_out_under_every_policy(void **state)
{
    errand_tape *tape = tape_of(NULL, 0);

    for (int policy = 0; policy < ERRAND_POLICIES; policy++) {
        errand_choices choices = choices_of((errand_policy)policy, 4, 50);

        choices.provider = ERRAND_PROVIDER_TAPE;
        choices.held_tape = tape;
        begin(*state, 1, &choices, 3, 3);
        assert_string_equal(run_all(*state), "abcabcabcabc");
    }
    errand_tape_abandon(&tape);
}

/* D3, D6: also under the other fair policy. */
static void
fifo_runs_each_of_a_pass_once_and_draws_nothing(void **state)
{
    scheduler_rig *rig = *state;
    errand_choices choices = choices_of(ERRAND_POLICY_FIFO, 0, 0);

    begin(rig, 1, &choices, ITEMS, 2);
    assert_int_equal(rig_pass(rig), ITEMS);
    assert_string_equal(trail, "abcde");
    assert_string_equal(run_all(rig), "abcdeabcdeabcde");
    assert_int_equal(rig->scheduler.audit.chosen, 0);
}

/* D144: whatever an item does, the instant ends. */
static void
an_instant_has_as_many_picks_as_were_ready(void **state)
{
    scheduler_rig *rig = *state;

    for (int policy = ERRAND_POLICY_PICK; policy < ERRAND_POLICIES; policy++) {
        errand_choices choices = choices_of((errand_policy)policy, 3, 40);

        for (uint64_t seed = 0; seed < 20; seed++) {
            begin(rig, seed, &choices, 4, 1000);
            for (int pass = 0; pass < 30; pass++) {
                assert_int_equal(rig_pass(rig), 4);
                assert_false(errand__pass_pending(&rig->scheduler));
            }
            for (unsigned i = 0; i < 4; i++)
                errand__list_unlink(&items[i].ready.link);
        }
    }
}

/* What is readied in the middle takes part at once. */
static void
unfair_policies_choose_among_all_that_is_ready_now(void **state)
{
    scheduler_rig *rig = *state;

    for (int policy = ERRAND_POLICY_PICK; policy < ERRAND_POLICIES; policy++) {
        errand_choices choices = choices_of((errand_policy)policy, 4, 12);
        bool twice = false;

        for (uint64_t seed = 0; seed < 60; seed++) {
            begin(rig, seed, &choices, 3, 3);
            assert_int_equal(rig_pass(rig), 3);
            twice |= items[0].visits > 1 || items[1].visits > 1 || items[2].visits > 1;
            run_all(rig);
            assert_int_equal(trail_length, 12);
        }
        assert_true(twice);
    }
}

static void
the_same_seed_gives_the_same_picks_and_others_others(void **state)
{
    for (int policy = ERRAND_POLICY_PICK; policy < ERRAND_POLICIES; policy++) {
        errand_choices choices = choices_of((errand_policy)policy, 4, 40);
        unsigned changes = 0;
        char before[TRAIL];

        for (uint64_t seed = 0; seed < 20; seed++) {
            begin(*state, seed, &choices, ITEMS, 8);
            memcpy(before, run_all(*state), sizeof before);
            begin(*state, seed, &choices, ITEMS, 8);
            assert_string_equal(run_all(*state), before);
            begin(*state, seed + 1, &choices, ITEMS, 8);
            changes += strcmp(run_all(*state), before) != 0;
        }
        assert_true(changes > 15);
    }
}

static void
an_item_that_is_always_ready_cannot_hold_up_others_for_ever(void **state)
{
    scheduler_rig *rig = *state;

    for (int policy = ERRAND_POLICY_PICK; policy < ERRAND_POLICIES; policy++) {
        errand_choices choices = choices_of((errand_policy)policy, 2, 30);

        for (uint64_t seed = 0; seed < 40; seed++) {
            begin(rig, seed, &choices, 3, 0);
            items[0].rounds = 1000000;
            for (int pass = 0; pass < 100; pass++)
                rig_pass(rig);
            assert_int_equal(items[1].visits, 1);
            assert_int_equal(items[2].visits, 1);
            errand__list_unlink(&items[0].ready.link);
        }
    }
}

/* ---- pick ----------------------------------------------------------------------------------------- */

/* Chi-square below its 99.9 % point at 4 degrees of freedom. */
static void
pick_takes_each_of_those_ready_as_often(void **state)
{
    enum { SEEDS = 5000 };
    errand_choices choices = choices_of(ERRAND_POLICY_PICK, 0, 0);
    unsigned first[ITEMS] = {0};
    double square = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(*state, seed, &choices, ITEMS, 0);
        first[run_all(*state)[0] - 'a']++;
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        double off = first[i] - SEEDS / (double)ITEMS;

        square += off * off / (SEEDS / (double)ITEMS);
    }
    assert_true(square < 18.5);
}

/* D4, D145 */
static void
a_single_ready_item_is_picked_without_a_draw(void **state)
{
    scheduler_rig *rig = *state;
    errand_choices choices = choices_of(ERRAND_POLICY_PICK, 0, 0);

    begin(rig, 3, &choices, 1, 10);
    run_all(rig);
    assert_int_equal(rig->scheduler.audit.chosen, 0);
}

/* ---- pct ------------------------------------------------------------------------------------------- */

static void
pct_runs_the_first_in_line_until_a_change_point(void **state)
{
    const errand_choice made[] = {
        {ERRAND_SITE_PRIORITY, 100, 0, UINT64_C(1) << 32, 20}, /* a */
        {ERRAND_SITE_PRIORITY, 101, 0, UINT64_C(1) << 32, 10}, /* b */
        {ERRAND_SITE_PRIORITY, 102, 0, UINT64_C(1) << 32, 30}, /* c */
        {ERRAND_SITE_CHANGE, 1, 0, 51, 3},                     /* b, after two visits */
        {ERRAND_SITE_CHANGE, 2, 0, 51, 4},                     /* a, after one */
    };
    errand_tape *tape = tape_of(made, 5);
    errand_choices choices = choices_of(ERRAND_POLICY_PCT, 3, 50);

    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    begin(*state, 1, &choices, 3, 3);
    assert_string_equal(run_all(*state), "bbaccccbbaaa");
    assert_int_equal(errand_tape_remove(tape, ERRAND_SITE_CHANGE, 2, 0), ERRAND_OK);
    begin(*state, 1, &choices, 3, 3);
    assert_string_equal(run_all(*state), "bbaaaaccccbb");
    choices.depth = 1;
    begin(*state, 1, &choices, 3, 3);
    assert_string_equal(run_all(*state), "bbbbaaaacccc");
    errand_tape_abandon(&tape);
}

/* Three orderings at once: c is through while b is in its middle and a is hardly begun.  */
static bool
has_planted_bug(const char *picked)
{
    unsigned visits[3] = {0};

    for (; *picked != '\0'; picked++) {
        if (++visits[*picked - 'a'] == 40 && *picked == 'c')
            return visits[0] >= 1 && visits[0] <= 13 && visits[1] >= 1 && visits[1] <= 26;
    }
    return false;
}

static unsigned
count_found(scheduler_rig *rig, errand_policy policy, uint32_t depth, uint64_t seeds)
{
    errand_choices choices = choices_of(policy, depth, 120);
    unsigned found = 0;

    for (uint64_t seed = 0; seed < seeds; seed++) {
        begin(rig, seed, &choices, 3, 39);
        found += has_planted_bug(run_all(rig));
    }
    return found;
}

static void
pct_finds_a_bug_of_three_orderings_sooner_than_uniform_picks(void **state)
{
    enum { SEEDS = 3000 };
    unsigned pct = count_found(*state, ERRAND_POLICY_PCT, 3, SEEDS);
    unsigned pick = count_found(*state, ERRAND_POLICY_PICK, 0, SEEDS);

    print_message("of %d runs pct:3 finds it in %u, pick in %u\n", SEEDS, pct, pick);
    assert_in_range(pct, 10, SEEDS / 20); /* about one in 130 */
    assert_true(pct >= 5 * (pick + 1));
    assert_int_equal(count_found(*state, ERRAND_POLICY_PCT, 2, SEEDS), 0);
}

/* ---- delay, starve ------------------------------------------------------------------------------------ */

static void
delay_passes_over_the_oldest_at_its_points(void **state)
{
    const errand_choice made[] = {
        {ERRAND_SITE_DELAY, 1, 0, 51, 2},
        {ERRAND_SITE_DELAY, 2, 0, 51, 5},
        {ERRAND_SITE_DELAY, 3, 0, 51, 5},
    };
    errand_tape *tape = tape_of(made, 3);
    errand_choices choices = choices_of(ERRAND_POLICY_DELAY, 3, 50);

    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    begin(*state, 1, &choices, 3, 2);
    /* Of abc a; of bca b is passed over: c; of abc a, b; of cab c and a are: b; then in turn. */
    assert_string_equal(run_all(*state), "acabbcabc");
    errand_tape_abandon(&tape);
}

static void
starving_items_wait_in_their_window_if_others_are_ready(void **state)
{
    const errand_choice made[] = {
        {ERRAND_SITE_STARVE, 1, 0, 51, 3}, /* from the third pick */
        {ERRAND_SITE_STARVE, 1, 1, 14, 4}, /* for four */
        {ERRAND_SITE_STARVE, 100, 2, 2, 1},
        {ERRAND_SITE_STARVE, 102, 2, 2, 1},
    };
    errand_tape *tape = tape_of(made, 4);
    errand_choices choices = choices_of(ERRAND_POLICY_STARVE, 1, 50);

    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    begin(*state, 1, &choices, 3, 4);
    assert_string_equal(run_all(*state), "abbbbbcacacacac"); /* b is through in it */
    begin(*state, 1, &choices, 1, 9);                        /* nobody else is there */
    assert_string_equal(run_all(*state), "aaaaaaaaaa");
    errand_tape_abandon(&tape);
}

/* ---- words ------------------------------------------------------------------------------------------ */

static void
policies_have_words(void **state)
{
    static const struct {
        const char *text;
        errand_policy policy;
        uint32_t depth;
        uint64_t steps;
    } good[] = {
        {"shuffle", ERRAND_POLICY_SHUFFLE, 0, 0},
        {"fifo", ERRAND_POLICY_FIFO, 0, 0},
        {"pick", ERRAND_POLICY_PICK, 0, 0},
        {"pct", ERRAND_POLICY_PCT, 0, 0},
        {"pct:3", ERRAND_POLICY_PCT, 3, 0},
        {"pct:3:500", ERRAND_POLICY_PCT, 3, 500},
        {"delay:32:1", ERRAND_POLICY_DELAY, 32, 1},
        {"starve:1", ERRAND_POLICY_STARVE, 1, 0},
    };
    static const char *const bad[] = {
        "",        "random",  "pct:",     "pct:0",       "pct:33",      "pct:3:",
        "pct:x",   "pct:3:0", "pct:3:5:", "pct:-3",      "shuffle:1",   "pick:2",
        "pct:+3",  "pc",      "pctx",     "portfolio:0", "portfolio:x", "portfolio:5:5",
        "delay: 3"};
    errand_choices choices = ERRAND_CHOICES_INIT;
    char text[400];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        choices = (errand_choices)ERRAND_CHOICES_INIT;
        assert_int_equal(errand_choices_parse(&choices, good[i].text, 1, NULL, 0),
                         ERRAND_OK);
        assert_int_equal(choices.policy, good[i].policy);
        assert_int_equal(choices.depth, good[i].depth);
        assert_int_equal(choices.steps, good[i].steps);
        assert_int_equal(errand_choices_print(&choices, text, sizeof text),
                         strlen(good[i].text));
        assert_string_equal(text, good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        choices = choices_of(ERRAND_POLICY_PICK, 7, 70);
        assert_int_equal(errand_choices_parse(&choices, bad[i], 1, text, sizeof text),
                         ERRAND_EINVAL);
        assert_int_equal(choices.policy, ERRAND_POLICY_PICK);
        assert_int_equal(choices.depth, 7);
        assert_non_null(strstr(text, "use shuffle, fifo, pick, pct:DEPTH"));
    }
    choices = choices_of(ERRAND_POLICY_PICK, 7, 70);
    assert_int_equal(errand_choices_parse(&choices, "pct:2", 1, NULL, 0), ERRAND_OK);
    assert_int_equal(choices.steps, 70); /* kept */
    assert_int_equal(errand_choices_print(NULL, text, sizeof text), 0);
    assert_int_equal(errand_choices_print(&choices, text, 4), 8);
    assert_string_equal(text, "pct");
}

static void
a_portfolio_gives_each_policy_its_share_of_the_seeds(void **state)
{
    unsigned shares[ERRAND_POLICIES] = {0}, depths = 0;
    errand_choices choices = ERRAND_CHOICES_INIT, other = ERRAND_CHOICES_INIT;

    (void)state;
    for (uint64_t seed = 0; seed < 800; seed++) {
        assert_int_equal(errand_choices_portfolio(&choices, seed, 123), ERRAND_OK);
        assert_int_equal(errand_choices_parse(&other, "portfolio:123", seed, NULL, 0),
                         ERRAND_OK);
        assert_memory_equal(&choices, &other, sizeof choices);
        assert_int_equal(choices.steps, 123);
        shares[choices.policy]++;
        depths |= choices.policy == ERRAND_POLICY_PCT ? 1U << choices.depth : 0;
    }
    for (int i = 0; i < ERRAND_POLICIES; i++)
        assert_true(shares[i] >= 100);
    assert_int_equal(depths, 1U << 2 | 1U << 3 | 1U << 4 | 1U << 5);
    assert_int_equal(errand_choices_portfolio(&choices, 1, UINT64_MAX), ERRAND_EINVAL);
}

#define POLICY_TEST(name)                                                                \
    cmocka_unit_test_setup_teardown(name, rig_setup_inline, rig_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        POLICY_TEST(plain_choices_are_first_in_first_out_under_every_policy),
        POLICY_TEST(fifo_runs_each_of_a_pass_once_and_draws_nothing),
        POLICY_TEST(an_instant_has_as_many_picks_as_were_ready),
        POLICY_TEST(unfair_policies_choose_among_all_that_is_ready_now),
        POLICY_TEST(the_same_seed_gives_the_same_picks_and_others_others),
        POLICY_TEST(an_item_that_is_always_ready_cannot_hold_up_others_for_ever),
        POLICY_TEST(pick_takes_each_of_those_ready_as_often),
        POLICY_TEST(a_single_ready_item_is_picked_without_a_draw),
        POLICY_TEST(pct_runs_the_first_in_line_until_a_change_point),
        POLICY_TEST(pct_finds_a_bug_of_three_orderings_sooner_than_uniform_picks),
        POLICY_TEST(delay_passes_over_the_oldest_at_its_points),
        POLICY_TEST(starving_items_wait_in_their_window_if_others_are_ready),
        cmocka_unit_test(policies_have_words),
        cmocka_unit_test(a_portfolio_gives_each_policy_its_share_of_the_seeds),
    };
    return test_group("scheduler/policy", tests, NULL, NULL);
}
