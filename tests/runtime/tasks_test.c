/* SPDX-License-Identifier: MIT */
/* Goal: a name always means the same task; runs, stalls, collectors and unwinding see tasks as
 * they are.
 * Method: actors in arrival order on the manual executor and the test clock. */
#include <stdio.h>
#include <string.h>
#include "actor.h"

static void
spawn_refuses_what_it_cannot_read(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_done};
    errand_task_spec spec = actor_spec(in, "a", &self);
    errand_task_id id = {.task = 99}, foreign = {.runtime = 12345, .task = 1, .slot = 1};

    spec.struct_size--;
    assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &id), ERRAND_EINVAL);
    spec = actor_spec(in, "a", &self);
    spec.flags = 8;
    assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &id), ERRAND_EINVAL);
    spec.flags = 0;
    spec.fn = NULL;
    assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &id), ERRAND_EINVAL);
    assert_int_equal(errand_spawn(in->runtime, NULL, NULL, &id), ERRAND_EINVAL);
    spec = actor_spec(in, "a", &self);
    assert_int_equal(errand_spawn(in->runtime, &foreign, &spec, &id), ERRAND_EFOREIGN);
    assert_int_equal(id.task, 99);
    assert_int_equal(in->misuses, 5);
    assert_int_equal(self.visits + self.ends + self.drops, 0); /* O10 */
    world_end(in);
}

/* D60, D61 */
static void
spawn_below_an_ended_or_cancelled_task_is_refused(void **state)
{
    test_world *in = *state;
    actor parent = {.step = step_park}, ended = {.step = step_done},
          child = {.step = step_done};
    errand_task_spec spec = actor_spec(in, "child", &child);

    actor_spawn(in, NULL, "parent", &parent);
    actor_spawn(in, NULL, "ended", &ended);
    drive_all(in);
    assert_int_equal(errand_task_cancel(in->runtime, &parent.id, ERRAND_REASON_EXPLICIT),
                     ERRAND_OK);
    assert_int_equal(errand_spawn(in->runtime, &parent.id, &spec, NULL),
                     ERRAND_ECANCELLED);
    assert_int_equal(errand_spawn(in->runtime, &ended.id, &spec, NULL),
                     ERRAND_ECANCELLED);
    assert_int_equal(child.visits + child.drops, 0);
    world_end(in);
}

/* O80 */
static void
name_of_an_ended_task_is_recognised(void **state)
{
    test_world *in = *state;
    actor first = {.step = step_done}, second = {.step = step_park};
    errand_task_state now;
    errand_task_end end;

    actor_spawn(in, NULL, "first", &first);
    drive_all(in);
    actor_spawn(in, NULL, "second", &second); /* in the same record */
    assert_int_equal(second.id.slot, first.id.slot);
    assert_int_equal(errand_task_wake(in->runtime, &first.id), ERRAND_EUNKNOWN);
    assert_int_equal(errand_task_hold(in->runtime, &first.id), ERRAND_EUNKNOWN);
    assert_int_equal(errand_task_cancel(in->runtime, &first.id, ERRAND_REASON_OWNER),
                     ERRAND_EUNKNOWN);
    assert_int_equal(errand_task_abort(in->runtime, &first.id), ERRAND_EUNKNOWN);
    assert_int_equal(errand_task_state_read(in->runtime, &first.id, &now, &end),
                     ERRAND_EUNKNOWN);
    first.id.runtime++;
    assert_int_equal(errand_task_wake(in->runtime, &first.id), ERRAND_EFOREIGN);
    assert_int_equal(errand_task_state_read(in->runtime, &second.id, &now, &end),
                     ERRAND_OK);
    assert_int_equal(now, ERRAND_TASK_READY);
    assert_int_equal(end, ERRAND_END_NONE);
    world_end(in);
}

static void
held_task_says_how_it_ended_until_it_is_let_go(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_done};
    errand_task_state now;
    errand_task_end end;

    actor_spawn(in, NULL, "held", &self);
    assert_int_equal(errand_task_hold(in->runtime, &self.id), ERRAND_OK);
    assert_int_equal(errand_task_hold(in->runtime, &self.id), ERRAND_OK);
    drive_all(in);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(errand_task_state_read(in->runtime, &self.id, &now, &end),
                         ERRAND_OK);
        assert_int_equal(now, ERRAND_TASK_ENDED);
        assert_int_equal(end, ERRAND_END_DONE);
        assert_int_equal(errand_task_abort(in->runtime, &self.id), ERRAND_EUNKNOWN);
        errand_task_let(in->runtime, &self.id);
    }
    assert_int_equal(errand_task_state_read(in->runtime, &self.id, &now, &end),
                     ERRAND_EUNKNOWN);
    assert_int_equal(in->misuses, 0);
    world_end(in);
}

static errand_task_answer
step_join_late(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why != ERRAND_WHY_YIELDED)
        return ERRAND_TASK_DONE;
    self->status = errand_task_join(task, self->arg, 2, 5000);
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
step_join_forever(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    self->status = errand_task_join(task, self->arg, 1, NEVER);
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
step_draw(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    self->number = errand_task_random(task);
    *(uint64_t *)self->arg = errand_task_random(task);
    return ERRAND_TASK_DONE;
}

static void
random_numbers_are_a_tasks_own(void **state)
{
    test_world *in = *state;
    uint64_t second[3];
    actor same = {.step = step_draw, .arg = &second[0]};
    actor other = {.step = step_draw, .arg = &second[1]};
    actor again = {.step = step_draw, .arg = &second[2]};

    actor_spawn(in, NULL, "a", &same);
    actor_spawn(in, NULL, "a", &other);
    drive_all(in);
    world_end(in);
    world_begin(in, &in->config, 0);
    actor_spawn(in, NULL, "a", &again);
    drive_all(in);
    assert_int_not_equal(same.number, second[0]);
    assert_int_not_equal(same.number, other.number);
    assert_int_equal(again.number, same.number);
    assert_int_equal(second[2], second[0]);
    world_end(in);
}

/* O42: the text lists waits by their keys, whatever the tasks' numbers are. */
static void
stall_is_found_and_told_in_key_order(void **state)
{
    static const char expected[] = "task 2 'second' is parked\n"
                                   "task 3 'third' awaits operation 1 'world job'\n"
                                   "task 1 'first' joins task 2, task 3 until 5000 ns\n";
    test_world *in = *state;
    errand_task_id ids[2];
    world_job job = {.ran = 0};
    actor first = {.step = step_yield}, second = {.step = step_park};
    actor third = {.step = step_await, .arg = &job};
    char text[300], little[10];

    actor_spawn(in, NULL, "first", &first);
    ids[0] = actor_spawn(in, NULL, "second", &second);
    ids[1] = actor_spawn(in, NULL, "third", &third);
    drive_items(in, 3);
    first.step = step_join_late;
    first.arg = ids;
    drive_items(in, 1);
    assert_int_equal(errand_stall_text(in->runtime, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(errand_stall_text(in->runtime, little, sizeof little),
                     strlen(expected));
    assert_string_equal(little, "task 2 's");
    assert_int_equal(errand_stall_text(in->runtime, NULL, 0), strlen(expected));
    world_end(in);
}

static void
run_drives_until_the_task_ended_or_says_why_not(void **state)
{
    test_world *in = *state;
    errand_task_id unknown = {.task = 77, .slot = 3};
    actor done = {.step = step_done}, stuck = {.step = step_park};

    unknown.runtime = errand_runtime_id(in->runtime);
    assert_int_equal(errand_run(in->runtime, &unknown, NEVER), ERRAND_EUNKNOWN);
    actor_spawn(in, NULL, "stuck", &stuck);
    actor_spawn(in, NULL, "done", &done);
    assert_int_equal(errand_run(in->runtime, &done.id, NEVER), ERRAND_OK);
    assert_int_equal(actor_end(&done), ERRAND_END_DONE);
    assert_int_equal(errand_run(in->runtime, &stuck.id, NEVER), ERRAND_EDEADLOCK);
    assert_int_equal(errand_run(in->runtime, &stuck.id, 0), ERRAND_ETIMEOUT);
    assert_int_equal(stuck.ends, 0);
    world_end(in);
}

/* D9, D10 */
static void
run_ends_with_its_task_and_leaves_the_rest_of_the_pass(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_done},
          others[2] = {{.step = step_yield}, {.step = step_yield}};

    actor_spawn(in, NULL, "before", &others[0]);
    actor_spawn(in, NULL, "root", &root);
    actor_spawn(in, NULL, "after", &others[1]);
    assert_int_equal(errand_run(in->runtime, &root.id, NEVER), ERRAND_OK);
    assert_int_equal(others[0].visits, 1);
    assert_int_equal(others[1].visits, 0);
    world_end(in);
}

/* D15: tasks that wait for each other in a circle are all dropped, once. */
static void
circle_of_joins_is_released_at_the_end(void **state)
{
    test_world *in = *state;
    static errand_task_id ids[2];
    static actor circle[2];

    circle[0] = (actor){.step = step_join_forever, .arg = &ids[1]};
    circle[1] = (actor){.step = step_join_forever, .arg = &ids[0]};
    ids[0] = actor_spawn(in, NULL, "left", &circle[0]);
    ids[1] = actor_spawn(in, NULL, "right", &circle[1]);
    drive_all(in);
    world_end(in);
    assert_int_equal(in->report.live_tasks, 2);
    assert_int_equal(actor_end(&circle[0]), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&circle[1]), ERRAND_END_ABORTED);
}

static size_t traced;

static bool
trace_number(void *state, errand_visitor *visitor)
{
    actor *self = state;

    assert_int_equal(self->number, traced + 1);
    return visitor->visit(visitor, &self->arg);
}

static bool
count_until(errand_visitor *visitor, void **slot)
{
    (void)slot;
    return ++traced == *(size_t *)visitor->arg;
}

/* O15: in spawn order; a stop is passed up. */
static void
collector_sees_tasks_in_spawn_order(void **state)
{
    test_world *in = *state;
    actor actors[5];
    size_t stop = 0;
    errand_visitor visitor = {.visit = count_until, .arg = &stop};

    for (unsigned i = 0; i < 5; i++) {
        errand_task_spec spec;

        actors[i] =
            (actor){.step = i == 1 ? step_done : step_park, .number = i + 1u - (i > 1)};
        spec = actor_spec(in, "traced", &actors[i]);
        spec.held_trace = trace_number;
        assert_int_equal(
            errand_spawn(in->runtime, i > 2 ? &actors[2].id : NULL, &spec, &actors[i].id),
            ERRAND_OK);
    }
    drive_all(in); /* the second is gone */
    traced = 0;
    assert_false(errand_runtime_trace(in->runtime, &visitor));
    assert_int_equal(traced, 4);
    traced = 0;
    stop = 2;
    assert_true(errand_runtime_trace(in->runtime, &visitor));
    assert_int_equal(traced, 2);
    world_end(in);
}

static jmp_buf escape;

static errand_task_answer
step_jump(errand_task *task, actor *self, const errand_task_news *news)
{
    self->status = errand_task_defer(task, self->arg, self);
    if (news->why == ERRAND_WHY_START && self->number != 0) {
        assert_int_equal(errand_task_yield(task), ERRAND_OK);
        longjmp(escape, 1);
    }
    return ERRAND_TASK_DONE;
}

static void
count_cleanup(void *arg)
{
    ((actor *)arg)->number += 100;
}

/* O34 */
static void
task_left_by_longjmp_fails_and_the_rest_goes_on(void **state)
{
    test_world *in = *state;
    static actor jumper, child, other;
    errand_turn turn;

    jumper =
        (actor){.step = step_jump, .number = 1, .arg = (void *)(uintptr_t)count_cleanup};
    child = (actor){.step = step_park};
    other = (actor){.step = step_done};
    actor_spawn(in, NULL, "jumper", &jumper);
    actor_spawn(in, &jumper.id, "child", &child);
    actor_spawn(in, NULL, "other", &other);
    if (setjmp(escape) == 0) {
        drive_all(in);
        fail();
    }
    assert_int_equal(errand_drive(in->runtime, NULL, &turn), ERRAND_EBUSY);
    assert_int_equal(errand_run(in->runtime, &other.id, NEVER), ERRAND_EBUSY);
    assert_int_equal(errand_runtime_unwound(in->runtime), ERRAND_OK);
    drive_all(in);
    assert_int_equal(jumper.visits, 1);
    assert_int_equal(jumper.number, 101);
    assert_int_equal(actor_end(&jumper), ERRAND_END_FAILED);
    assert_int_equal(actor_end(&child), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&other), ERRAND_END_DONE);
    world_end(in);
}

static errand_task_answer
step_jump_with_news(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why == ERRAND_WHY_START)
        return step_await(task, self, news);
    longjmp(escape, 1);
}

/* O34: what the task was told is dropped once. */
static void
news_of_a_task_left_by_longjmp_are_dropped_once(void **state)
{
    test_world *in = *state;
    static actor jumper;
    static world_job job;

    job = (world_job){.give_payload = true};
    jumper = (actor){.step = step_jump_with_news, .arg = &job};
    actor_spawn(in, NULL, "jumper", &jumper);
    drive_all(in);
    world_step(in, 1);
    if (setjmp(escape) == 0) {
        drive_all(in);
        fail();
    }
    assert_int_equal(errand_runtime_unwound(in->runtime), ERRAND_OK);
    drive_all(in);
    assert_int_equal(job.payload_dropped, 1);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(actor_end(&jumper), ERRAND_END_FAILED);
    world_end(in);
}

static unsigned jumps;

static void
jump_once(void *state)
{
    ((actor *)state)->drops++;
    if (jumps++ == 0)
        longjmp(escape, 1);
    errand_panic("the second drop");
}

/* O34, O76: a drop that was left is not called again; a panic of the next one is still contained. */
static void
drop_left_by_longjmp_is_not_repeated_and_panics_stay_contained(void **state)
{
    test_world *in = *state;
    static actor actors[3];

    jumps = 0;
    for (unsigned i = 0; i < 3; i++) {
        errand_task_spec spec;

        actors[i] = (actor){.step = step_done};
        spec = actor_spec(in, "dropped", &actors[i]);
        if (i < 2)
            spec.held_drop = jump_once;
        assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &actors[i].id),
                         ERRAND_OK);
    }
    if (setjmp(escape) == 0) {
        drive_all(in);
        fail();
    }
    assert_int_equal(errand_runtime_unwound(in->runtime), ERRAND_OK);
    assert_int_equal(errand_run(in->runtime, &actors[2].id, NEVER), ERRAND_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(actor_end(&actors[i]), ERRAND_END_DONE);
    world_end(in);
}

static errand_task_answer
step_nested(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_turn turn;
    size_t count;

    (void)task;
    (void)news;
    assert_int_equal(errand_drive(self->in->runtime, NULL, &turn), ERRAND_EBUSY);
    assert_int_equal(errand_drain(self->in->runtime, 1, NULL, NULL, &count),
                     ERRAND_EBUSY);
    assert_int_equal(errand_run(self->in->runtime, &self->id, NEVER), ERRAND_EBUSY);
    return ERRAND_TASK_DONE;
}

/* O71 */
static void
nested_drive_is_busy(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_nested};

    actor_spawn(in, NULL, "nested", &self);
    drive_all(in);
    assert_int_equal(actor_end(&self), ERRAND_END_DONE);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spawn_refuses_what_it_cannot_read, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(spawn_below_an_ended_or_cancelled_task_is_refused,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(name_of_an_ended_task_is_recognised, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(held_task_says_how_it_ended_until_it_is_let_go,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(random_numbers_are_a_tasks_own, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(stall_is_found_and_told_in_key_order, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(run_drives_until_the_task_ended_or_says_why_not,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            run_ends_with_its_task_and_leaves_the_rest_of_the_pass, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(circle_of_joins_is_released_at_the_end,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(collector_sees_tasks_in_spawn_order, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(task_left_by_longjmp_fails_and_the_rest_goes_on,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(news_of_a_task_left_by_longjmp_are_dropped_once,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            drop_left_by_longjmp_is_not_repeated_and_panics_stay_contained, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(nested_drive_is_busy, world_setup,
                                        world_teardown),
    };
    return test_group("runtime/tasks", tests, NULL, NULL);
}
