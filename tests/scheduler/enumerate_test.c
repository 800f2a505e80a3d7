/* SPDX-License-Identifier: MIT */
/* Goal: an enumerator makes every run of a small program once, and says when it did not.
 * Method: programs whose runs can be counted by hand. */
#include <string.h>
#include "errand/testing.h"
#include "scheduler_rig.h"

static errand_enumerator *
enumerator_of(errand_enumerator_config config)
{
    errand_enumerator *enumerator = NULL;

    config.struct_size = sizeof config;
    assert_int_equal(errand_enumerator_create(&config, &enumerator), ERRAND_OK);
    return enumerator;
}

/* Three choices of 2, 3 and 2 values, but only two where the first is 1: 6 + 3 runs. */
static void
every_path_is_taken_once_in_order(void **state)
{
    errand_enumerator *enumerator = enumerator_of((errand_enumerator_config){.width = 4});
    uint64_t runs = 0, last = 0;

    (void)state;
    while (errand_enumerator_next(enumerator)) {
        uint64_t first = errand__enumerator_choose(enumerator, ERRAND_SITE_PICK, 2);
        uint64_t path = 100 * first +
                        10 * errand__enumerator_choose(enumerator, ERRAND_SITE_PLACE, 3);

        if (first == 0)
            path += errand__enumerator_choose(enumerator, ERRAND_SITE_APPLICATION, 2);
        assert_true(runs == 0 ? path == 0 : path > last);
        last = path;
        runs++;
    }
    assert_int_equal(runs, 9);
    assert_int_equal(errand_enumerator_runs(enumerator), 9);
    assert_int_equal(last, 120);
    assert_true(errand_enumerator_complete(enumerator));
    assert_false(errand_enumerator_next(enumerator));
    errand_enumerator_abandon(&enumerator);
    assert_null(enumerator);
    errand_enumerator_abandon(&enumerator);
}

static void
other_sites_take_the_plainest_value(void **state)
{
    errand_enumerator *enumerator =
        enumerator_of((errand_enumerator_config){.sites = 1U << ERRAND_SITE_TIE});
    uint64_t runs = 0;

    (void)state;
    while (errand_enumerator_next(enumerator)) {
        assert_int_equal(errand__enumerator_choose(enumerator, ERRAND_SITE_PICK, 3), 0);
        assert_int_equal(errand__enumerator_choose(enumerator, ERRAND_SITE_TIE, 3),
                         runs++);
    }
    assert_int_equal(runs, 3);
    errand_enumerator_abandon(&enumerator);
}

static void
width_depth_and_runs_cut_and_are_said(void **state)
{
    static const uint64_t spread[] = {0, UINT64_MAX / 4, UINT64_MAX / 4 * 2,
                                      UINT64_MAX / 4 * 3};
    errand_enumerator *enumerator = enumerator_of((errand_enumerator_config){.width = 4});
    uint64_t runs = 0;

    (void)state;
    while (errand_enumerator_next(enumerator))
        assert_int_equal(errand__enumerator_choose(enumerator, ERRAND_SITE_PICK, 0),
                         spread[runs++]);
    assert_int_equal(runs, 4);
    assert_false(errand_enumerator_complete(enumerator));
    errand_enumerator_abandon(&enumerator);

    enumerator = enumerator_of((errand_enumerator_config){.depth = 2});
    for (runs = 0; errand_enumerator_next(enumerator); runs++)
        for (int i = 0; i < 50; i++)
            assert_true(errand__enumerator_choose(enumerator, ERRAND_SITE_PICK, 2) == 0 ||
                        i < 2);
    assert_int_equal(runs, 4);
    assert_false(errand_enumerator_complete(enumerator));
    errand_enumerator_abandon(&enumerator);

    enumerator = enumerator_of((errand_enumerator_config){.runs = 2});
    for (runs = 0; errand_enumerator_next(enumerator); runs++)
        (void)errand__enumerator_choose(enumerator, ERRAND_SITE_PICK, 3);
    assert_int_equal(runs, 2);
    assert_false(errand_enumerator_complete(enumerator));
    errand_enumerator_abandon(&enumerator);
}

static void
a_program_that_is_no_function_of_its_choices_is_noticed(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        errand_enumerator *enumerator =
            enumerator_of((errand_enumerator_config){.runs = 0});
        uint64_t runs = 0;

        (void)state;
        while (errand_enumerator_next(enumerator) && runs < 100) {
            if (kind == 0 || runs++ == 0)
                (void)errand__enumerator_choose(enumerator, ERRAND_SITE_PICK,
                                                kind == 0 ? 2 + (runs++ == 1) : 2);
        }
        assert_true(runs < 100);
        assert_false(errand_enumerator_complete(enumerator));
        errand_enumerator_abandon(&enumerator);
    }
}

/* ---- programs ------------------------------------------------------------------------------------ */

enum { TASKS = 3 };

/* Tasks of that many steps each, all interleavings: multinomial. */
static uint64_t
interleavings(scheduler_rig *rig, const char *const *scripts, size_t count)
{
    errand_enumerator *enumerator = enumerator_of((errand_enumerator_config){.width = 4});
    errand_choices choices = ERRAND_CHOICES_INIT;
    static char seen[400][16];
    uint64_t runs;

    choices.provider = ERRAND_PROVIDER_ENUMERATE;
    choices.policy = ERRAND_POLICY_PICK;
    choices.held_enumerator = enumerator;
    rig->config.choices = &choices;
    for (runs = 0; errand_enumerator_next(enumerator); runs++) {
        rig_script tasks[TASKS];
        size_t trail = 0, length = 0;

        memset(seen[runs], 0, sizeof seen[runs]);
        rig_restart(rig, ERRAND_ORDER_INLINE, 1);
        for (size_t i = 0; i < count; i++) {
            tasks[i] = (rig_script){.letters = scripts[i], .trail = &trail, .mark = i};
            rig_spawn(rig, NULL, "task", &tasks[i]);
        }
        while (rig->scheduler.live != 0) {
            errand__ready *ready;

            errand__pass_begin(&rig->scheduler);
            while ((ready = errand__pass_next(&rig->scheduler)) != NULL) {
                ready->visit(ready, rig);
                seen[runs][length++] = (char)('a' + trail);
            }
        }
        for (uint64_t other = 0; other < runs; other++)
            assert_string_not_equal(seen[other], seen[runs]);
    }
    assert_true(errand_enumerator_complete(enumerator));
    errand_enumerator_abandon(&enumerator);
    rig->config.choices = NULL;
    return runs;
}

static void
every_interleaving_of_a_small_program_is_met_once(void **state)
{
    static const char *const scripts[] = {"yd", "yyd", "d"};

    assert_int_equal(interleavings(*state, scripts, 1), 1);
    assert_int_equal(interleavings(*state, scripts, 2), 10); /* 5! / (2! 3!) */
    assert_int_equal(interleavings(*state, scripts, 3), 60); /* 6! / (2! 3! 1!) */
}

static void
configs_are_checked_and_memory_may_run_out(void **state)
{
    errand_enumerator_config config = {.struct_size = 1};
    errand_enumerator *enumerator = NULL;

    (void)state;
    assert_int_equal(errand_enumerator_create(&config, &enumerator), ERRAND_EINVAL);
    config = (errand_enumerator_config){.struct_size = sizeof config, .sites = 1};
    assert_int_equal(errand_enumerator_create(&config, &enumerator), ERRAND_EINVAL);
    config.sites = 1U << 13;
    assert_int_equal(errand_enumerator_create(&config, &enumerator), ERRAND_EINVAL);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        errand_testing_fail_allocation(nth);
        assert_int_equal(errand_enumerator_create(NULL, &enumerator), ERRAND_ENOMEM);
    }
    errand_testing_fail_allocation(0);
    assert_null(enumerator);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_is_taken_once_in_order),
        cmocka_unit_test(other_sites_take_the_plainest_value),
        cmocka_unit_test(width_depth_and_runs_cut_and_are_said),
        cmocka_unit_test(a_program_that_is_no_function_of_its_choices_is_noticed),
        cmocka_unit_test_setup_teardown(every_interleaving_of_a_small_program_is_met_once,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test(configs_are_checked_and_memory_may_run_out),
    };
    return test_group("scheduler/enumerate", tests, NULL, NULL);
}
