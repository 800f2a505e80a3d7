/* SPDX-License-Identifier: MIT */
/* Goal: everything that happens in a run is a step of its audit, and says of whom (D44).
 * Method: one run in which each kind of thing happens, and a count of the steps of each kind. */
#include <string.h>
#include "actor.h"

typedef struct heard {
    unsigned counts[32];
    unsigned nameless; /* of kinds that have a name */
    unsigned keyless;
} heard;

static void
count_step(void *arg, const errand_step *step)
{
    heard *self = arg;
    bool named = step->kind != ERRAND_STEP_TIMER && step->kind != ERRAND_STEP_TIME;
    bool keyed = step->kind != ERRAND_STEP_TIME && step->kind != ERRAND_STEP_NOTE &&
                 step->kind != ERRAND_STEP_COMMAND;

    assert_in_range(step->kind, 1, 31);
    self->counts[step->kind]++;
    self->nameless += named && (step->label == NULL || step->label[0] == '\0');
    self->keyless += keyed && step->key == 0;
}

static errand_task_answer
step_draw_and_note(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    (void)errand_task_random(task);
    assert_int_equal(errand_audit_note(self->in->runtime, "note", "bytes", 5), ERRAND_OK);
    return ERRAND_TASK_DONE;
}

static void
do_nothing(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    (void)arg;
}

static void
each_kind_of_thing_is_a_step_that_names_whom(void **state)
{
    test_world *in = *state;
    world_job job = {.answer = 0};
    actor draws = {.step = step_draw_and_note};
    actor sleeps = {.step = step_sleep, .number = 5 * MS};
    actor parks = {.step = step_park};
    actor awaits = {.step = step_await, .arg = &job};
    errand_command command = {.fn = do_nothing};
    errand_inbox *inbox;
    errand_task_id parked;
    heard all = {.nameless = 0};

    actors_restart(in, 4, NULL, NULL);
    assert_int_equal(errand_trace(in->runtime, count_step, &all), ERRAND_OK);
    actor_spawn(in, NULL, "draws", &draws);
    actor_spawn(in, NULL, "sleeps", &sleeps);
    actor_spawn(in, NULL, "awaits", &awaits);
    parked = actor_spawn(in, NULL, "parks", &parks);
    drive_all(in);
    assert_int_equal(errand_task_cancel(in->runtime, &parked, ERRAND_REASON_EXPLICIT),
                     ERRAND_OK);
    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    assert_int_equal(errand_post(inbox, &command), ERRAND_OK);
    drive_all(in);
    errand_inbox_abandon(&inbox);
    assert_int_equal(all.counts[ERRAND_STEP_SPAWN], 4);
    assert_int_equal(all.counts[ERRAND_STEP_TASK], 4 + 3); /* all but one visited twice */
    assert_int_equal(all.counts[ERRAND_STEP_END], 4);
    assert_int_equal(all.counts[ERRAND_STEP_SUBMIT], 1);
    assert_int_equal(all.counts[ERRAND_STEP_COMPLETION], 1);
    assert_int_equal(all.counts[ERRAND_STEP_TIMER], 1);
    assert_int_equal(all.counts[ERRAND_STEP_CANCEL], 1);
    assert_int_equal(all.counts[ERRAND_STEP_DRAW], 1);
    assert_int_equal(all.counts[ERRAND_STEP_NOTE], 1);
    assert_int_equal(all.counts[ERRAND_STEP_COMMAND], 1);
    assert_true(all.counts[ERRAND_STEP_TIME] >= 2);
    assert_int_equal(all.nameless, 0);
    assert_int_equal(all.keyless, 0);
    assert_int_equal(job.ran, 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_kind_of_thing_is_a_step_that_names_whom,
                                        world_setup_inline, world_teardown),
    };
    return test_group("runtime/kinds", tests, NULL, NULL);
}
