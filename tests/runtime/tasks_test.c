/* SPDX-License-Identifier: MIT */
/* Goal: each wait of a task ends as its documentation says, once, and a name always means the
 * same task.
 * Method: actors in arrival order on the manual executor and the test clock. */
#include <stdio.h>
#include <string.h>
#include "actor.h"

/* ---- names and spawning ---------------------------------------------------------------------- */

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
    spec.flags = 1;
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

/* ---- waits ------------------------------------------------------------------------------------- */

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
    drive_all(
        in); /* the second wake met a readied task: it is a token for the park after */
    assert_int_equal(self.visits, 4);
    assert_int_equal(self.news.why, ERRAND_WHY_WOKEN);
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

/* ---- operations ---------------------------------------------------------------------------------- */

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

/* ---- the rest --------------------------------------------------------------------------------------- */

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

#define WITH(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH(spawn_refuses_what_it_cannot_read),
        WITH(spawn_below_an_ended_or_cancelled_task_is_refused),
        WITH(name_of_an_ended_task_is_recognised),
        WITH(held_task_says_how_it_ended_until_it_is_let_go),
        WITH(second_wait_and_wait_from_outside_are_misuse),
        WITH(sleep_ends_at_its_time_and_not_before),
        WITH(overflowing_sleep_is_refused_and_endless_sleep_accepted),
        WITH(past_deadline_is_ready_in_the_same_pass_and_a_yield_in_the_next),
        WITH(endless_past_deadlines_do_not_keep_others_out_of_the_pass),
        WITH(wakes_before_a_park_count_once),
        WITH(earliest_of_the_list_counts_for_a_join),
        WITH(join_of_a_forgotten_task_ends_at_once_and_of_no_task_is_refused),
        WITH(limit_ends_a_join_and_a_park_with_time),
        WITH(completion_belongs_to_the_task_that_awaited_it),
        WITH(limit_of_an_await_cancels_its_operation),
        WITH(cancelled_operation_tells_its_task_which_may_go_on),
        WITH(refused_await_changes_nothing),
        WITH(random_numbers_are_a_tasks_own),
        WITH(stall_is_found_and_told_in_key_order),
        WITH(run_drives_until_the_task_ended_or_says_why_not),
        WITH(run_ends_with_its_task_and_leaves_the_rest_of_the_pass),
        WITH(circle_of_joins_is_released_at_the_end),
        WITH(collector_sees_tasks_in_spawn_order),
        WITH(task_left_by_longjmp_fails_and_the_rest_goes_on),
        WITH(news_of_a_task_left_by_longjmp_are_dropped_once),
        WITH(nested_drive_is_busy),
    };
    return test_group("runtime/tasks", tests, NULL, NULL);
}
