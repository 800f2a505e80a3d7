/* SPDX-License-Identifier: MIT */
/* Goal: an identity is five numbers that name one operation and no other, ever (O7, O8).
 * Method: one slot is used again and again; every old name is tried on every call that takes one. */
#include <string.h>
#include "world.h"

static int
one_slot_setup(void **state)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .flags = ERRAND_RUNTIME_TEST_CLOCK,
                                    .operations_max = 1};
    int made = world_setup(state);
    test_world *world = *state;

    world_end(world);
    world_begin(world, &config, 0);
    return made;
}

/* Nothing that takes an identity finds the operation that this one names. */
static void
check_names_nothing(test_world *world, errand_inbox *inbox, const errand_identity *old)
{
    errand_cancel_answer answer = 0;

    assert_int_equal(errand_retire(world->runtime, old), ERRAND_ESPENT);
    assert_int_equal(errand_cancel(world->runtime, old, ERRAND_REASON_EXPLICIT, &answer),
                     ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_UNKNOWN);
    assert_int_equal(errand_cancel_later(world->runtime, old), ERRAND_EUNKNOWN);
    assert_int_equal(errand_reap_ready(world->runtime, old), ERRAND_EUNKNOWN);
    assert_int_equal(errand_post_cancel(inbox, old), ERRAND_EGONE);
}

enum { KEPT = 32 };

static void
a_recycled_slot_never_lets_an_old_identity_match(void **state)
{
    /* O7, C-A11: all uses are of slot 1. */
    test_world *world = *state;
    uint64_t uses = test_scaled(UINT64_C(1) << 20);
    errand_identity kept[KEPT], old = {.runtime = 0}, fresh;
    errand_inbox *inbox;
    size_t count = 0;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    for (uint64_t i = 0; i < uses; i++) {
        assert_int_equal(errand_issue(world->runtime, 1, NULL, &fresh), ERRAND_OK);
        assert_int_equal(fresh.slot, 1);
        if (i > 0)
            check_names_nothing(world, inbox, &old);
        if (i * KEPT / uses >= count)
            kept[count++] = fresh;
        assert_int_equal(errand_retire(world->runtime, &fresh), ERRAND_OK);
        check_names_nothing(world, inbox, &fresh);
        old = fresh;
    }
    assert_int_equal(count, KEPT);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &fresh), ERRAND_OK);
    for (size_t i = 0; i < KEPT; i++)
        check_names_nothing(world, inbox, &kept[i]);
    errand_inbox_abandon(&inbox);
}

static void
an_old_identity_is_not_found_after_its_low_half_came_round(void **state)
{
    /* O7 */
    test_world *world = *state;
    errand_identity old, fresh;

    assert_int_equal(errand_issue(world->runtime, 1, NULL, &old), ERRAND_OK);
    assert_int_equal(errand_retire(world->runtime, &old), ERRAND_OK);
    assert_int_equal(errand_testing_counters(world->runtime, old.wait,
                                             old.generation + (UINT64_C(1) << 32),
                                             old.operation),
                     ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &fresh), ERRAND_OK);
    assert_int_equal(fresh.wait, old.wait);
    assert_int_equal(fresh.operation, old.operation);
    assert_int_equal(fresh.slot, old.slot);
    assert_int_equal(errand_retire(world->runtime, &old), ERRAND_ESPENT);
    assert_int_equal(errand_retire(world->runtime, &fresh), ERRAND_OK);
}

static void
a_generation_that_looks_like_a_free_slot_is_never_issued(void **state)
{
    /* O7: free records have 0 where others have the low half of their generation. */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_identity identity;

    assert_int_equal(errand_testing_counters(world->runtime, 0, UINT64_C(3) << 32, 0),
                     ERRAND_OK);
    identity = world_start(world, &job);
    assert_true((uint32_t)identity.generation != 0);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
}

static void
each_of_the_five_fields_counts(void **state)
{
    /* O7 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_identity right = world_start(world, &job), copy = right, wrong[5];
    errand_cancel_answer answer;

    for (int i = 0; i < 5; i++)
        wrong[i] = right;
    wrong[0].wait++;
    wrong[1].generation++;
    wrong[2].operation++;
    wrong[3].kind++;
    wrong[4].slot++;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(
            errand_cancel(world->runtime, &wrong[i], ERRAND_REASON_EXPLICIT, &answer),
            ERRAND_OK);
        assert_int_equal(answer, ERRAND_CANCEL_UNKNOWN);
    }
    wrong[0] = right;
    wrong[0].runtime++;
    assert_int_equal(
        errand_cancel(world->runtime, &wrong[0], ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_EFOREIGN);
    assert_int_equal(
        errand_cancel(world->runtime, &copy, ERRAND_REASON_EXPLICIT, &answer), ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_CANCELLED); /* any copy is the name */
    assert_int_equal(world_drain(world, 10), 1);
}

static void
names_are_of_one_runtime_only(void **state)
{
    /* O8: on every call that takes a name or a token of another runtime. */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_spec spec = world_spec(&job);
    errand_runtime *other;
    errand_identity theirs, mine;
    errand_prepared prepared, foreign;
    errand_binding binding = {NULL, 0};

    assert_int_equal(errand_runtime_create(NULL, &other), ERRAND_OK);
    assert_int_equal(errand_issue(other, 1, NULL, &theirs), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &mine), ERRAND_OK);
    assert_int_equal(theirs.slot, mine.slot);
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_prepare(other, &spec, &foreign), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &theirs, &prepared, &binding),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_bind(world->runtime, &mine, &foreign, &binding),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_retire(world->runtime, &theirs), ERRAND_EFOREIGN);
    assert_null(binding.held_record);
    assert_int_equal(errand_prepared_kind(&prepared), 1); /* O10: as they were */
    assert_int_equal(errand_prepared_kind(&foreign), 1);
    errand_prepared_abandon(&prepared);
    assert_int_equal(errand_retire(world->runtime, &mine), ERRAND_OK);
    assert_int_equal(errand_retire(other, &theirs), ERRAND_OK);
    assert_int_equal(
        errand_runtime_shutdown(&other, 0, ERRAND_SHUTDOWN_QUIET, &world->report),
        ERRAND_OK);
    assert_int_equal(job.dropped, 2); /* the shutdown dropped the foreign one */
}

static void
a_submission_is_refused_by_another_runtimes_lease(void **state)
{
    /* O8, O10 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_runtime *other;
    errand_lease *lease;
    errand_identity identity;
    errand_submission submission = world_submission(world, &job, &identity);

    assert_int_equal(errand_runtime_create(NULL, &other), ERRAND_OK);
    assert_int_equal(errand_attach(other, world->executor, 0, &lease), ERRAND_OK);
    assert_int_equal(errand_submit(lease, &submission), ERRAND_EFOREIGN);
    assert_non_null(submission.held_record);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    assert_int_equal(world_step(world, 10), 1);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(errand_runtime_shutdown(&other, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_ONE_SLOT(test)                                                              \
    cmocka_unit_test_setup_teardown(test, one_slot_setup, world_teardown)
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_ONE_SLOT(a_recycled_slot_never_lets_an_old_identity_match),
        WITH_ONE_SLOT(an_old_identity_is_not_found_after_its_low_half_came_round),
        WITH_ONE_SLOT(a_generation_that_looks_like_a_free_slot_is_never_issued),
        WITH_WORLD(each_of_the_five_fields_counts),
        WITH_WORLD(names_are_of_one_runtime_only),
        WITH_WORLD(a_submission_is_refused_by_another_runtimes_lease),
    };
    return test_group("registrar/identity", tests, NULL, NULL);
}
