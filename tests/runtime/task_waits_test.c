/* SPDX-License-Identifier: MIT */
/* Goal: each wait of a task ends as its documentation says, once.
 * Method: actors in arrival order on the manual executor and the test clock. */
#include <stdio.h>
#include <string.h>
#include "actor.h"

static errand_task *leaked;

static errand_task_answer
step_two_waits(errand_task *task, actor *self, const errand_task_news *news)
{
    leaked = task;
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    assert_int_equal(errand_task_park(task, NEVER), ERRAND_OK);
    self->status = errand_task_yield(task);
    return ERRAND_TASK_WAIT;
}

static void
second_wait_and_wait_from_outside_are_misuse(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_two_waits};

    actor_spawn(in, NULL, "two", &self);
    drive_all(in);
    assert_int_equal(self.status, ERRAND_EMISUSE);
    assert_int_equal(errand_task_yield(leaked), ERRAND_EMISUSE);
    assert_int_equal(errand_task_shield(leaked, NEVER), ERRAND_EMISUSE);
    assert_int_equal(errand_task_defer(leaked, NULL, NULL), ERRAND_EMISUSE);
    assert_int_equal(in->misuses, 4);
    assert_int_equal(errand_task_wake(in->runtime, &self.id), ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.news.why, ERRAND_WHY_WOKEN); /* the first wait stood */
    assert_int_equal(errand_task_yield(NULL), ERRAND_EINVAL);
    world_end(in);
}

/* D25, O72 */
static void
sleep_ends_at_its_time_and_not_before(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_sleep, .number = 1000};
    errand_turn turn;

    actor_spawn(in, NULL, "sleeper", &self);
    turn = drive_all(in);
    assert_int_equal(turn.kind, ERRAND_TURN_IDLE);
    assert_int_equal(turn.next_deadline_ns, errand_runtime_now(in->runtime) + 1000);
    assert_false(turn.inbox_needed);
    assert_int_equal(errand_testing_clock(in->runtime, 999), ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.visits, 1);
    assert_int_equal(errand_testing_clock(in->runtime, 1), ERRAND_OK);
    turn = drive_all(in);
    assert_int_equal(self.news.why, ERRAND_WHY_TIME);
    assert_int_equal(actor_end(&self), ERRAND_END_DONE);
    assert_int_equal(turn.kind, ERRAND_TURN_QUIESCENT);
    world_end(in);
}

static errand_task_answer
step_strange_sleeps(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why == ERRAND_WHY_START) {
        assert_int_equal(errand_task_sleep(task, UINT64_MAX - 1),
                         ERRAND_EINVAL);                     /* D28 */
        self->status = errand_task_sleep_until(task, NEVER); /* D27 */
        return ERRAND_TASK_WAIT;
    }
    return ERRAND_TASK_DONE;
}

static void
overflowing_sleep_is_refused_and_endless_sleep_accepted(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_strange_sleeps};
    errand_turn turn;

    assert_int_equal(errand_testing_clock(in->runtime, 10), ERRAND_OK);
    actor_spawn(in, NULL, "strange", &self);
    turn = drive_all(in);
    assert_int_equal(self.status, ERRAND_OK);
    assert_int_equal(self.visits, 1);
    assert_int_equal(turn.next_deadline_ns, NEVER);
    assert_int_equal(turn.kind, ERRAND_TURN_IDLE);
    world_end(in);
}

static char trail[64];

static errand_task_answer
step_trail_past(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    trail[strlen(trail)] = (char)self->number;
    if (self->visits == 3)
        return ERRAND_TASK_DONE;
    assert_int_equal(errand_task_sleep(task, 0), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
step_trail_yield(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    trail[strlen(trail)] = (char)self->number;
    if (self->visits == 2)
        return ERRAND_TASK_DONE;
    assert_int_equal(errand_task_yield(task), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* D18, D26: a past deadline stays in the pass; a yield lets the pass go on and waits for the next. */
static void
past_deadline_is_ready_in_the_same_pass_and_a_yield_in_the_next(void **state)
{
    test_world *in = *state;
    actor past = {.step = step_trail_past, .number = 'p'};
    actor yields = {.step = step_trail_yield, .number = 'y'};

    memset(trail, 0, sizeof trail);
    actor_spawn(in, NULL, "yields", &yields);
    actor_spawn(in, NULL, "past", &past);
    drive_all(in);
    assert_string_equal(trail, "ypppy");
    world_end(in);
}

static errand_task_answer
step_past_for_ever(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why == ERRAND_WHY_CANCELLED)
        return ERRAND_TASK_DONE;
    self->status = errand_task_sleep_until(task, 0);
    return ERRAND_TASK_WAIT;
}

static void
endless_past_deadlines_do_not_keep_others_out_of_the_pass(void **state)
{
    test_world *in = *state;
    actor endless = {.step = step_past_for_ever}, other = {.step = step_yield};

    actor_spawn(in, NULL, "endless", &endless);
    actor_spawn(in, NULL, "other", &other);
    drive_items(in, 200);
    assert_in_range(other.visits, 10, 40);
    world_end(in);
}

static errand_task_answer
step_tokens(errand_task *task, actor *self, const errand_task_news *news)
{
    if (self->visits == 4)
        return ERRAND_TASK_DONE;
    if (news->why == ERRAND_WHY_START) { /* two wakes before the park count once */
        assert_int_equal(errand_task_wake(self->in->runtime, &self->id), ERRAND_OK);
        assert_int_equal(errand_task_wake(self->in->runtime, &self->id), ERRAND_OK);
    }
    self->status = errand_task_park(task, self->visits == 3 ? 500 : NEVER);
    return ERRAND_TASK_WAIT;
}

static void
wakes_before_a_park_count_once(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_tokens};

    actor_spawn(in, NULL, "parker", &self);
    drive_all(in);
    assert_int_equal(self.visits, 2);
    assert_int_equal(self.news.why, ERRAND_WHY_WOKEN);
    assert_int_equal(errand_task_wake(in->runtime, &self.id), ERRAND_OK);
    assert_int_equal(errand_task_wake(in->runtime, &self.id), ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.visits, 3); /* both are one: the park after waits on */
    assert_int_equal(errand_testing_clock(in->runtime, 500), ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.visits, 4);
    assert_int_equal(self.news.why, ERRAND_WHY_TIME);
    assert_int_equal(actor_end(&self), ERRAND_END_DONE);
    world_end(in);
}

static errand_task_answer
step_join(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    self->status = errand_task_join(task, self->arg, (size_t)self->number, 5000);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_FAILED;
}

/* D67: of those that ended before the joiner was visited the earliest in the list counts. */
static void
earliest_of_the_list_counts_for_a_join(void **state)
{
    test_world *in = *state;
    errand_task_id ids[3];
    actor targets[3] = {{.step = step_park}, {.step = step_park}, {.step = step_park}};
    actor joiner = {.step = step_join, .arg = ids, .number = 3};

    for (unsigned i = 0; i < 3; i++)
        ids[i] = actor_spawn(in, NULL, "target", &targets[i]);
    actor_spawn(in, NULL, "joiner", &joiner);
    drive_all(in);
    assert_int_equal(joiner.visits, 1);
    assert_int_equal(errand_task_abort(in->runtime, &ids[2]), ERRAND_OK);
    assert_int_equal(errand_task_abort(in->runtime, &ids[1]), ERRAND_OK);
    drive_all(in);
    assert_int_equal(joiner.news.why, ERRAND_WHY_JOINED);
    assert_int_equal(joiner.news.joined, 1);
    assert_int_equal(targets[0].ends, 0);
    world_end(in);
}

static void
join_of_a_forgotten_task_ends_at_once_and_of_no_task_is_refused(void **state)
{
    test_world *in = *state;
    errand_task_id ids[2];
    actor target = {.step = step_done}, alive = {.step = step_park};
    actor joiner = {.step = step_join, .arg = ids, .number = 2};
    actor empty = {.step = step_join, .arg = ids, .number = 0};

    ids[0] = actor_spawn(in, NULL, "alive", &alive);
    ids[1] = actor_spawn(in, NULL, "target", &target);
    drive_all(in);
    actor_spawn(in, NULL, "joiner", &joiner);
    actor_spawn(in, NULL, "empty", &empty);
    drive_all(in);
    assert_int_equal(joiner.news.why, ERRAND_WHY_JOINED);
    assert_int_equal(joiner.news.joined, 1);
    assert_int_equal(empty.status, ERRAND_EINVAL);
    assert_int_equal(actor_end(&empty), ERRAND_END_FAILED);
    ids[0].runtime++;
    empty = (actor){.step = step_join, .arg = ids, .number = 1};
    actor_spawn(in, NULL, "foreign", &empty);
    drive_all(in);
    assert_int_equal(empty.status, ERRAND_EFOREIGN);
    world_end(in);
}

static void
limit_ends_a_join_and_a_park_with_time(void **state)
{
    test_world *in = *state;
    errand_task_id id;
    actor target = {.step = step_park},
          joiner = {.step = step_join, .arg = &id, .number = 1};

    id = actor_spawn(in, NULL, "target", &target);
    actor_spawn(in, NULL, "joiner", &joiner);
    drive_all(in);
    assert_int_equal(errand_testing_clock(in->runtime, 4999), ERRAND_OK);
    drive_all(in);
    assert_int_equal(joiner.visits, 1);
    assert_int_equal(errand_testing_clock(in->runtime, 1), ERRAND_OK);
    drive_all(in);
    assert_int_equal(joiner.news.why, ERRAND_WHY_TIME);
    assert_int_equal(errand_task_abort(in->runtime, &id),
                     ERRAND_OK); /* no joiner is left */
    assert_int_equal(joiner.visits, 2);
    world_end(in);
}

static errand_task_answer
step_take(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_payload *taken = (errand_payload *)(uintptr_t)self->number;

    if (news->why == ERRAND_WHY_START)
        return step_await(task, &(actor){.in = self->in, .arg = self->arg}, news);
    assert_int_equal(news->why, ERRAND_WHY_COMPLETION);
    assert_int_equal(news->verdict.status, ERRAND_OK);
    if (taken != NULL)
        *taken = errand_completion_take(news->completion);
    return ERRAND_TASK_DONE;
}

static void
completion_belongs_to_the_task_that_awaited_it(void **state)
{
    test_world *in = *state;
    world_job jobs[2] = {{.give_payload = true}, {.give_payload = true}};
    errand_payload taken = {.data = NULL};
    actor takes = {.step = step_take, .arg = &jobs[0], .number = (uintptr_t)&taken};
    actor leaves = {.step = step_take, .arg = &jobs[1]};
    errand_turn turn;

    actor_spawn(in, NULL, "takes", &takes);
    actor_spawn(in, NULL, "leaves", &leaves);
    turn = drive_all(in);
    assert_int_equal(turn.kind, ERRAND_TURN_IDLE);
    assert_true(turn.inbox_needed);
    assert_int_equal(world_step(in, 10), 2);
    turn = drive_all(in);
    assert_int_equal(takes.outcome, ERRAND_COMPLETED);
    assert_int_equal(actor_end(&takes), ERRAND_END_DONE);
    assert_int_equal(actor_end(&leaves), ERRAND_END_DONE);
    assert_ptr_equal(taken.data, &jobs[0]);
    assert_int_equal(jobs[0].payload_dropped, 0);
    assert_int_equal(jobs[1].payload_dropped, 1);
    assert_int_equal(turn.kind, ERRAND_TURN_QUIESCENT);
    errand_payload_drop(&taken);
    assert_int_equal(jobs[0].payload_dropped, 1);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(jobs[i].dropped, 1);
    world_end(in);
}

static void
limit_of_an_await_cancels_its_operation(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    actor self = {.step = step_await, .arg = &job};
    errand_snapshot snapshot;

    self.number = errand_runtime_now(in->runtime) + 700;
    actor_spawn(in, NULL, "impatient", &self);
    drive_all(in);
    assert_int_equal(errand_testing_clock(in->runtime, 700), ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.news.why, ERRAND_WHY_TIME);
    assert_int_equal(actor_end(&self), ERRAND_END_DONE); /* the task was not cancelled */
    assert_int_equal(job.ran, 0);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(errand_runtime_snapshot(in->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.cancelled, 1);
    assert_int_equal(snapshot.late, 1);
    world_end(in);
}

static errand_identity started;

static errand_task_answer
step_two_awaits(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_spec spec;

    if (self->visits == 3)
        return ERRAND_TASK_DONE;
    (void)news;
    spec = world_spec((world_job *)self->arg + (self->visits - 1));
    ((world_job *)self->arg)[self->visits - 1].world = self->in;
    self->status = errand_task_await(task, self->in->lease, &spec, NEVER, &started);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_FAILED;
}

static void
cancelled_operation_tells_its_task_which_may_go_on(void **state)
{
    test_world *in = *state;
    world_job jobs[2] = {{.ran = 0}, {.ran = 0}};
    actor self = {.step = step_two_awaits, .arg = jobs};
    errand_cancel_answer answer;

    actor_spawn(in, NULL, "goes on", &self);
    drive_all(in);
    assert_int_equal(
        errand_cancel(in->runtime, &started, ERRAND_REASON_RESOURCE_LOST, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_CANCELLED);
    drive_all(in);
    assert_int_equal(self.visits, 2);
    assert_int_equal(self.news.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(self.news.reason, ERRAND_REASON_RESOURCE_LOST);
    assert_int_equal(self.status,
                     ERRAND_OK); /* its next wait works: it was not cancelled */
    world_step(in, 10);
    drive_all(in);
    assert_int_equal(self.news.why, ERRAND_WHY_COMPLETION);
    assert_int_equal(actor_end(&self), ERRAND_END_DONE);
    world_end(in);
}

static void
refused_await_changes_nothing(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    actor self = {.step = step_await, .arg = &job};

    world_end(in);
    world_begin(in, &in->config, 1);
    world_start(in, &(world_job){.world = in}); /* the one place is taken */
    actor_spawn(in, NULL, "refused", &self);
    drive_items(in, 1);
    assert_int_equal(self.status, ERRAND_EFULL);
    assert_int_equal(job.dropped, 0); /* O10: still the caller's */
    assert_int_equal(actor_end(&self), ERRAND_END_FAILED);
    world_step(in, 10);
    drive_all(in);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(second_wait_and_wait_from_outside_are_misuse,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(sleep_ends_at_its_time_and_not_before,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            overflowing_sleep_is_refused_and_endless_sleep_accepted, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(
            past_deadline_is_ready_in_the_same_pass_and_a_yield_in_the_next, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(
            endless_past_deadlines_do_not_keep_others_out_of_the_pass, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(wakes_before_a_park_count_once, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(earliest_of_the_list_counts_for_a_join,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            join_of_a_forgotten_task_ends_at_once_and_of_no_task_is_refused, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(limit_ends_a_join_and_a_park_with_time,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(completion_belongs_to_the_task_that_awaited_it,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(limit_of_an_await_cancels_its_operation,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            cancelled_operation_tells_its_task_which_may_go_on, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(refused_await_changes_nothing, world_setup,
                                        world_teardown),
    };
    return test_group("runtime/task_waits", tests, NULL, NULL);
}
