/* SPDX-License-Identifier: MIT */
/* Goal: a cancel is told once, sticks, spares shields, and becomes an abort after the grace.
 * Method: scripted tasks in a scheduler without a runtime; time is a number. */
#include "scheduler_rig.h"

static void
cancel(scheduler_rig *rig, errand_task *task, errand_reason reason)
{
    errand__task_cancel(task, reason);
    errand__cancels_run(&rig->scheduler);
}

/* O40 */
static void
waiting_task_is_told_once_and_ends_as_cancelled(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "spd"};
    errand_task *task = rig_spawn(rig, NULL, "a", &script);

    rig_pass(rig);
    cancel(rig, task, ERRAND_REASON_EXPLICIT);
    cancel(rig, task, ERRAND_REASON_HOST_STOP); /* the first wins */
    assert_int_equal(rig_pass(rig), 1);
    assert_int_equal(script.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(script.reason, ERRAND_REASON_EXPLICIT);
    assert_int_equal(script.status, ERRAND_ECANCELLED); /* of the park that it tried */
    assert_int_equal(script.end, ERRAND_END_CANCELLED); /* though it answered DONE */
    assert_int_equal(rig->scheduler.timers.count, 0);
}

/* O39 */
static void
readied_task_hears_the_reason_in_place_of_its_news(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "sd"}, never = {.letters = "d"};
    errand_task *task = rig_spawn(rig, NULL, "a", &script);

    rig_pass(rig);
    rig_time(rig, 1000); /* WHY_TIME is on its way */
    cancel(rig, task, ERRAND_REASON_OWNER);
    cancel(rig, rig_spawn(rig, NULL, "unborn", &never), ERRAND_REASON_ROOT);
    rig_pass(rig);
    assert_int_equal(script.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(script.reason, ERRAND_REASON_OWNER);
    assert_int_equal(never.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(never.reason, ERRAND_REASON_ROOT);
}

/* O43: whoever is visited first, each hears it. */
static void
cancel_reaches_every_living_descendant(void **state)
{
    scheduler_rig *rig = *state;
    rig_script scripts[7];
    errand_task *tasks[7];

    for (unsigned i = 0; i < 7; i++) { /* a tree of three levels: 0; 1, 2; 3, 4, 5, 6 */
        scripts[i] = (rig_script){.letters = "pd"};
        tasks[i] = rig_spawn(rig, i == 0 ? NULL : tasks[(i - 1) / 2], NULL, &scripts[i]);
    }
    rig_pass(rig);
    cancel(rig, tasks[2], ERRAND_REASON_TIMEOUT);
    cancel(rig, tasks[0], ERRAND_REASON_ROOT);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(errand__task_reason(tasks[i]),
                         i == 2 || i >= 5 ? ERRAND_REASON_TIMEOUT : ERRAND_REASON_ROOT);
    for (unsigned i = 0; i < 4; i++)
        rig_pass(rig);
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(scripts[i].ends, 1);
        assert_int_equal(scripts[i].visits, 2);
        assert_int_equal(scripts[i].reason,
                         i == 2 || i >= 5 ? ERRAND_REASON_TIMEOUT : ERRAND_REASON_ROOT);
        assert_int_equal(scripts[i].end, ERRAND_END_CANCELLED);
    }
    assert_int_equal(rig->scheduler.timers.count, 0);
}

static errand_task_answer
stubborn(errand_task *task, void *state, const errand_task_news *news)
{
    rig_script *script = state;

    script->visits++;
    script->why = news->why;
    if (news->why == ERRAND_WHY_CANCELLED)
        errand__task_shield_enter(task, script->mark);
    script->status = errand__task_wait_begin(task, ERRAND__TASK_WAIT_PARK, UINT64_MAX);
    return ERRAND_TASK_WAIT;
}

/* O40: grace 1 s from the cancel; the shield holds the abort up until its limit. */
static void
grace_ends_in_an_abort_but_not_inside_a_shield(void **state)
{
    const uint64_t second = UINT64_C(1000000000);
    scheduler_rig *rig = *state;
    rig_script short_script = {.letters = "", .mark = 0};
    rig_script long_script = {.letters = "", .mark = 3 * second};
    errand_task *short_one = rig_spawn(rig, NULL, "short", &short_script);
    errand_task *long_one = rig_spawn(rig, NULL, "long", &long_script);

    short_one->fn = long_one->fn = stubborn;
    rig_pass(rig);
    cancel(rig, short_one, ERRAND_REASON_EXPLICIT);
    cancel(rig, long_one, ERRAND_REASON_EXPLICIT);
    rig_pass(rig);
    rig_time(rig, second - 1);
    assert_int_equal(short_script.ends, 0);
    rig_time(rig, second);
    assert_int_equal(short_script.ends, 1);
    assert_int_equal(short_script.end, ERRAND_END_ABORTED);
    rig_time(rig, 3 * second - 1);
    assert_int_equal(long_script.ends, 0);
    rig_time(rig, 3 * second);
    assert_int_equal(long_script.ends, 1);
    assert_int_equal(long_script.end, ERRAND_END_ABORTED);
}

/* O40: a task that was cancelled ends after those below it that were, however long their shields
 * are; not after what was started since. */
static void
cancelled_task_lingers_until_those_below_it_have_ended(void **state)
{
    const uint64_t second = UINT64_C(1000000000);
    scheduler_rig *rig = *state;
    rig_script above_script = {.letters = "pd"}, middle_script = {.letters = "pd"};
    rig_script short_script = {.letters = ""};
    rig_script long_script = {.letters = "", .mark = 3 * second};
    rig_script new_script = {.letters = "p"};
    errand_task *above = rig_spawn(rig, NULL, "above", &above_script);
    errand_task *middle = rig_spawn(rig, above, "middle", &middle_script);
    errand_task *short_one = rig_spawn(rig, middle, "short", &short_script);
    errand_task *long_one = rig_spawn(rig, middle, "long", &long_script);

    short_one->fn = long_one->fn = stubborn;
    rig_pass(rig);
    cancel(rig, above, ERRAND_REASON_HOST_STOP);
    rig_spawn(rig, above, "new", &new_script);
    rig_pass(rig);
    rig_pass(rig);
    assert_int_equal(above_script.visits, 2);
    assert_int_equal(middle_script.visits, 2);
    assert_int_equal(long_script.why, ERRAND_WHY_CANCELLED);
    rig_time(rig,
             second); /* which is the grace: only the one without a shield has ended */
    rig_pass(rig);
    assert_int_equal(short_script.end, ERRAND_END_ABORTED);
    assert_int_equal(long_script.ends + middle_script.ends + above_script.ends, 0);
    errand__task_end(long_one, ERRAND_END_DONE); /* its cleanup is done */
    errand__endings_run(&rig->scheduler);
    assert_int_equal(middle_script.ends, 0);
    rig_pass(rig);
    assert_int_equal(middle_script.end, ERRAND_END_CANCELLED);
    assert_int_equal(above_script.ends, 0);
    rig_pass(rig);
    assert_int_equal(above_script.end, ERRAND_END_CANCELLED);
    assert_int_equal(above_script.visits + middle_script.visits,
                     4); /* no more of either */
    assert_int_equal(new_script.end, ERRAND_END_ABORTED);
    assert_int_equal(rig->scheduler.live, 0);
    assert_int_equal(rig->scheduler.timers.count, 0);
}

/* O40, D55: of a context that was used up, all that stands below it is waited for. */
static void
cancelled_task_lingers_for_its_siblings_children(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "pd"};
    rig_script beside_script = {.letters = "", .mark = UINT64_MAX};
    errand_task *top =
        errand__node_make(&rig->scheduler, ERRAND__NODE_CONTEXT, NULL, 1, "t");
    errand_task *aside =
        errand__node_make(&rig->scheduler, ERRAND__NODE_CONTEXT, top, 0, "a");
    errand_task *beside = rig_spawn(rig, aside, "beside", &beside_script);
    errand_task *task = rig_spawn(rig, top, "task", &script);

    beside->fn = stubborn;
    rig_pass(rig);
    cancel(rig, task, ERRAND_REASON_EXPLICIT);
    rig_pass(rig);
    rig_pass(rig);
    assert_int_equal(script.visits, 2);
    assert_int_equal(script.ends, 0);
    assert_true(errand__task_lingers(task));
    /* An abort ends it at once, and what is below; it had answered already. */
    errand__task_end(task, ERRAND_END_ABORTED);
    errand__endings_run(&rig->scheduler);
    assert_int_equal(script.end, ERRAND_END_CANCELLED);
    assert_int_equal(beside_script.end, ERRAND_END_ABORTED);
    assert_int_equal(rig->scheduler.live, 0);
}

static errand_task_answer
careful(errand_task *task, void *state, const errand_task_news *news)
{
    rig_script *script = state;

    script->visits++;
    script->why = news->why;
    script->reason = news->reason;
    if (news->why == ERRAND_WHY_CANCELLED)
        return ERRAND_TASK_DONE;
    if (news->why == ERRAND_WHY_START) {
        errand__task_shield_enter(task, script->mark);
        errand__task_shield_enter(task, 0); /* the outermost limit rules */
    }
    assert_int_equal(errand__task_wait_begin(task, ERRAND__TASK_WAIT_SLEEP,
                                             task->scheduler->now + 1000),
                     ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* O40 */
static void
cancel_inside_a_shield_is_kept_until_its_end(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "", .mark = 2500};
    errand_task *task = rig_spawn(rig, NULL, "careful", &script);

    task->fn = careful;
    rig_pass(rig);
    cancel(rig, task, ERRAND_REASON_HOST_STOP);
    assert_int_equal(errand__task_reason(task), ERRAND_REASON_NONE);
    rig_time(rig, 1000);
    rig_pass(rig);
    assert_int_equal(script.why, ERRAND_WHY_TIME); /* its waits work */
    rig_time(rig, 2000);
    rig_pass(rig);
    assert_int_equal(script.why, ERRAND_WHY_TIME);
    rig_time(rig, 2500); /* the shield's limit ends the sleep until 3000 */
    assert_int_equal(rig_pass(rig), 1);
    assert_int_equal(script.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(script.reason, ERRAND_REASON_HOST_STOP);
    assert_int_equal(script.end, ERRAND_END_CANCELLED);
}

static errand_task_answer
rested(errand_task *task, void *state, const errand_task_news *news)
{
    rig_script *script = state;

    script->visits++;
    script->why = news->why;
    if (news->why == ERRAND_WHY_TIME)
        return ERRAND_TASK_DONE;
    if (news->why == ERRAND_WHY_CANCELLED)
        errand__task_shield_enter(task, 2000);
    assert_int_equal(errand__task_wait_begin(task, ERRAND__TASK_WAIT_SLEEP, 1999),
                     ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* O40: once; what a told task waited for inside its shield is told as it is. */
static void
told_task_is_not_told_again(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = ""};
    errand_task *task = rig_spawn(rig, NULL, "rested", &script);

    task->fn = rested;
    rig_pass(rig);
    cancel(rig, task, ERRAND_REASON_EXPLICIT);
    rig_pass(rig);
    rig_time(rig, 2000); /* the sleep is over, and then the shield */
    rig_pass(rig);
    assert_int_equal(script.visits, 3);
    assert_int_equal(script.why, ERRAND_WHY_TIME);
    assert_int_equal(script.end, ERRAND_END_CANCELLED);
}

static void
operation_of_an_ended_task_is_forgotten_and_of_a_cancelled_one_cancelled(void **state)
{
    scheduler_rig *rig = *state;
    rig_script scripts[2] = {{.letters = "pd"}, {.letters = "p"}};
    errand_task *told = rig_spawn(rig, NULL, "told", &scripts[0]);
    errand_task *gone = rig_spawn(rig, NULL, "gone", &scripts[1]);

    rig_pass(rig);
    errand__task_wait_clear(told);
    errand__task_wait_operation(told, rig, 10, 10, UINT64_MAX);
    errand__task_wait_clear(gone);
    errand__task_wait_operation(gone, rig, 11, 11, UINT64_MAX);
    cancel(rig, told, ERRAND_REASON_RESOURCE_LOST);
    assert_int_equal(rig->cancelled, 1);
    assert_int_equal(rig->reason, ERRAND_REASON_RESOURCE_LOST);
    errand__task_end(gone, ERRAND_END_ABORTED);
    errand__endings_run(&rig->scheduler);
    assert_int_equal(rig->forgotten, 1);
    rig_pass(rig);
    assert_int_equal(scripts[0].why, ERRAND_WHY_CANCELLED);
    assert_int_equal(scripts[1].visits, 1);
}

static int order[8];
static size_t order_count;

static void
note_order(void *arg)
{
    order[order_count++] = *(int *)arg;
}

static void
cleanups_run_newest_first_and_only_once(void **state)
{
    static int numbers[3] = {0, 1, 2};
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "p"};
    errand_task *task = rig_spawn(rig, NULL, "a", &script);

    order_count = 0;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(errand__task_defer_push(task, note_order, &numbers[i]),
                         ERRAND_OK);
    assert_true(errand__task_defer_pop(task)); /* number 2 */
    errand__task_end(task, ERRAND_END_ABORTED);
    errand__endings_run(&rig->scheduler);
    assert_int_equal(order_count, 2);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waiting_task_is_told_once_and_ends_as_cancelled,
                                        rig_setup_arrival, rig_teardown),
        cmocka_unit_test_setup_teardown(
            readied_task_hears_the_reason_in_place_of_its_news, rig_setup_arrival,
            rig_teardown),
        cmocka_unit_test_setup_teardown(cancel_reaches_every_living_descendant,
                                        rig_setup_arrival, rig_teardown),
        cmocka_unit_test_setup_teardown(grace_ends_in_an_abort_but_not_inside_a_shield,
                                        rig_setup_arrival, rig_teardown),
        cmocka_unit_test_setup_teardown(
            cancelled_task_lingers_until_those_below_it_have_ended, rig_setup_arrival,
            rig_teardown),
        cmocka_unit_test_setup_teardown(cancelled_task_lingers_for_its_siblings_children,
                                        rig_setup_arrival, rig_teardown),
        cmocka_unit_test_setup_teardown(cancel_inside_a_shield_is_kept_until_its_end,
                                        rig_setup_arrival, rig_teardown),
        cmocka_unit_test_setup_teardown(told_task_is_not_told_again, rig_setup_arrival,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(
            operation_of_an_ended_task_is_forgotten_and_of_a_cancelled_one_cancelled,
            rig_setup_arrival, rig_teardown),
        cmocka_unit_test_setup_teardown(cleanups_run_newest_first_and_only_once,
                                        rig_setup_arrival, rig_teardown),
    };
    return test_group("scheduler/cancel", tests, NULL, NULL);
}
