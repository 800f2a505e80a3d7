/* SPDX-License-Identifier: MIT */
/* Goal: a cancel is a request and an abort is an end, also where operations are in between.
 * Method: actors in arrival order on the manual executor and the test clock. */
#include <string.h>
#include "actor.h"

#define SECOND UINT64_C(1000000000)

static void
cancel(test_world *in, const actor *self, errand_reason reason)
{
    assert_int_equal(errand_task_cancel(in->runtime, &self->id, reason), ERRAND_OK);
}

static errand_snapshot
snapshot_of(test_world *in)
{
    errand_snapshot snapshot;

    assert_int_equal(errand_runtime_snapshot(in->runtime, &snapshot), ERRAND_OK);
    return snapshot;
}

/* After the cancel it tries each wait, then answers what number says. */
static errand_task_answer
step_stubborn(errand_task *task, actor *self, const errand_task_news *news)
{
    world_job job = {.world = self->in};
    errand_spec spec = world_spec(&job);

    if (news->why == ERRAND_WHY_START) {
        self->status = errand_task_park(task, NEVER);
        return ERRAND_TASK_WAIT;
    }
    assert_int_equal(errand_task_cancelled(task), news->reason);
    assert_int_equal(errand_task_yield(task), ERRAND_ECANCELLED);
    assert_int_equal(errand_task_sleep(task, 1), ERRAND_ECANCELLED);
    assert_int_equal(errand_task_sleep_until(task, 0), ERRAND_ECANCELLED);
    assert_int_equal(errand_task_park(task, NEVER), ERRAND_ECANCELLED);
    assert_int_equal(errand_task_join(task, &self->id, 1, NEVER), ERRAND_ECANCELLED);
    assert_int_equal(errand_task_await(task, self->in->lease, &spec, NEVER, NULL),
                     ERRAND_ECANCELLED);
    assert_int_equal(job.dropped, 0);
    return (errand_task_answer)self->number;
}

/* O40: told once, sticky, first reason wins, ends as cancelled whatever it answers. */
static void
cancelled_task_is_told_once_and_each_wait_answers_it(void **state)
{
    test_world *in = *state;
    actor done = {.step = step_stubborn, .number = ERRAND_TASK_DONE};
    actor failed = {.step = step_stubborn, .number = ERRAND_TASK_FAILED};

    actor_spawn(in, NULL, "done", &done);
    actor_spawn(in, NULL, "failed", &failed);
    drive_all(in);
    cancel(in, &done, ERRAND_REASON_OWNER);
    cancel(in, &done, ERRAND_REASON_EXPLICIT);
    cancel(in, &failed, ERRAND_REASON_TIMEOUT);
    drive_all(in);
    assert_int_equal(done.visits, 2);
    assert_int_equal(done.news.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(done.news.reason, ERRAND_REASON_OWNER);
    assert_int_equal(actor_end(&done), ERRAND_END_CANCELLED);
    assert_int_equal(actor_end(&failed), ERRAND_END_CANCELLED);
    assert_int_equal(in->misuses, 0);
    assert_int_equal(errand_task_cancel(in->runtime, &done.id, ERRAND_REASON_NONE),
                     ERRAND_EINVAL);
    world_end(in);
}

/* O37: the operation is asked to end at the moment of the request, not at the next turn. */
static void
cancel_of_a_task_cancels_its_operation_at_once(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    actor self = {.step = step_await, .arg = &job};

    actor_spawn(in, NULL, "awaits", &self);
    drive_all(in);
    assert_int_equal(snapshot_of(in).queued, 1);
    cancel(in, &self, ERRAND_REASON_HOST_STOP);
    assert_int_equal(snapshot_of(in).queued, 0);
    drive_all(in);
    assert_int_equal(self.news.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(self.news.reason, ERRAND_REASON_HOST_STOP);
    assert_int_equal(actor_end(&self), ERRAND_END_CANCELLED);
    assert_int_equal(job.ran, 0);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(snapshot_of(in).late, 1);
    world_end(in);
}

/* O39: settled but undrained: cancel wins, the completion becomes late.  Drained but not resumed: the
 * task gets the reason, the value is dropped. */
static void
cancel_wins_over_a_completion_that_was_not_told(void **state)
{
    test_world *in = *state;
    world_job jobs[2] = {{.give_payload = true}, {.give_payload = true}};
    actor settled = {.step = step_await, .arg = &jobs[0]};
    actor drained = {.step = step_await, .arg = &jobs[1]};

    actor_spawn(in, NULL, "drained", &drained);
    drive_all(in);
    world_step(in, 1);
    world_drain(in, 1); /* readied, and no turn since */
    actor_spawn(in, NULL, "settled", &settled);
    cancel(in, &drained, ERRAND_REASON_EXPLICIT);
    assert_int_equal(jobs[1].payload_dropped, 1);
    drive_all(in);
    assert_int_equal(drained.news.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(actor_end(&drained), ERRAND_END_CANCELLED);
    world_step(in, 1);
    cancel(in, &settled, ERRAND_REASON_EXPLICIT);
    drive_all(in);
    assert_int_equal(settled.news.why, ERRAND_WHY_CANCELLED);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(jobs[i].ran, 1);
        assert_int_equal(jobs[i].payload_dropped, 1);
        assert_int_equal(jobs[i].dropped, 1);
    }
    assert_int_equal(snapshot_of(in).late, 1);
    world_end(in);
}

/* I16: abort of the owning task cancels its operation; nobody is resumed. */
static void
abort_forgets_the_operation_and_resumes_nobody(void **state)
{
    test_world *in = *state;
    world_job jobs[3] = {
        {.give_payload = true}, {.give_payload = true}, {.give_payload = true}};
    actor actors[3];

    for (unsigned i = 0; i < 3; i++) {
        actors[i] = (actor){.step = step_await, .arg = &jobs[i]};
        actor_spawn(in, NULL, "awaits", &actors[i]);
        drive_all(in);
        if (i < 2)
            world_step(in,
                       1); /* the first drained, the second settled, the third queued */
        if (i == 0)
            world_drain(in, 1);
        assert_int_equal(errand_task_abort(in->runtime, &actors[i].id), ERRAND_OK);
        assert_int_equal(actor_end(&actors[i]), ERRAND_END_ABORTED);
        assert_int_equal(errand_task_abort(in->runtime, &actors[i].id), ERRAND_EUNKNOWN);
    }
    world_step(in, 10);
    drive_all(in);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(actors[i].visits, 1);
        assert_int_equal(jobs[i].ran, i < 2);
        assert_int_equal(jobs[i].dropped, 1);
        assert_int_equal(jobs[i].payload_dropped, i < 2);
    }
    world_end(in);
}

static void
abort_in_handler(void *arg, errand_completion *completion)
{
    actor *self = arg;

    assert_int_equal(completion->outcome, ERRAND_COMPLETED);
    assert_int_equal(errand_task_abort(self->in->runtime, &self->id), ERRAND_OK);
}

static void
abort_inside_the_handler_of_its_own_completion_drops_it_once(void **state)
{
    test_world *in = *state;
    world_job job = {.give_payload = true};
    actor self = {.step = step_await, .arg = &job};
    size_t count;

    actor_spawn(in, NULL, "awaits", &self);
    drive_all(in);
    world_step(in, 1);
    assert_int_equal(errand_drain(in->runtime, 1, abort_in_handler, &self, &count),
                     ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.visits, 1);
    assert_int_equal(actor_end(&self), ERRAND_END_ABORTED);
    assert_int_equal(job.payload_dropped, 1);
    assert_int_equal(job.dropped, 1);
    world_end(in);
}

static errand_task_answer
step_abort(errand_task *task, actor *self, const errand_task_news *news)
{
    actor *victim = self->arg;

    (void)news;
    assert_int_equal(errand_task_abort(self->in->runtime, &victim->id), ERRAND_OK);
    self->status = errand_task_yield(task);
    return ERRAND_TASK_DONE;
}

/* D56: itself, or what it hangs on: its function runs to its end first. */
static void
task_may_abort_itself_and_its_parent(void **state)
{
    test_world *in = *state;
    actor parent = {.step = step_park}, sibling = {.step = step_park};
    actor killer = {.step = step_abort}, self = {.step = step_abort};

    killer.arg = &parent;
    self.arg = &self;
    actor_spawn(in, NULL, "parent", &parent);
    actor_spawn(in, &parent.id, "killer", &killer);
    actor_spawn(in, &parent.id, "sibling", &sibling);
    actor_spawn(in, NULL, "self", &self);
    drive_all(in);
    assert_int_equal(killer.status, ERRAND_ECANCELLED);
    assert_int_equal(actor_end(&killer), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&parent), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&sibling), ERRAND_END_ABORTED);
    assert_int_equal(sibling.visits, 0);
    assert_int_equal(self.status, ERRAND_ECANCELLED);
    assert_int_equal(actor_end(&self), ERRAND_END_ABORTED);
    world_end(in);
}

static errand_task_answer
step_ignore(errand_task *task, actor *self, const errand_task_news *news)
{
    if (self->visits == 2 && news->why == ERRAND_WHY_CANCELLED) {
        assert_int_equal(errand_task_shield(task, errand_runtime_now(self->in->runtime) +
                                                      self->number),
                         ERRAND_OK);
        assert_int_equal(errand_task_cancelled(task), ERRAND_REASON_NONE);
    }
    self->status = errand_task_park(task, NEVER);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
}

/* O40: abort after a grace; the default is 1 s of the runtime's clock. */
static void
grace_ends_in_an_abort_at_the_runtimes_clock(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_ignore, .number = 5 * SECOND},
          child = {.step = step_ignore};
    errand_turn turn;

    child.number = SECOND / 2;
    actor_spawn(in, NULL, "ignores", &self);
    actor_spawn(in, &self.id, "child", &child);
    drive_all(in);
    cancel(in, &self, ERRAND_REASON_EXPLICIT);
    turn = drive_all(in);
    assert_int_equal(turn.next_deadline_ns, SECOND / 2);
    assert_int_equal(errand_testing_clock(in->runtime, SECOND / 2), ERRAND_OK);
    drive_all(in); /* the child's shield is over: it is told again, and done */
    assert_int_equal(actor_end(&child), ERRAND_END_CANCELLED);
    assert_int_equal(errand_testing_clock(in->runtime, 9 * SECOND / 2 - 1), ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.ends, 0); /* inside its shield */
    assert_int_equal(errand_testing_clock(in->runtime, 1), ERRAND_OK);
    drive_all(in);
    assert_int_equal(self.visits, 2);
    assert_int_equal(actor_end(&self), ERRAND_END_ABORTED);
    world_end(in);
}

static errand_task_answer
step_clean_up(errand_task *task, actor *self, const errand_task_news *news)
{
    switch (news->why) {
    case ERRAND_WHY_START:
        self->status = errand_task_park(task, NEVER);
        return ERRAND_TASK_WAIT;
    case ERRAND_WHY_CANCELLED:
        assert_int_equal(errand_task_shield(task, NEVER), ERRAND_OK);
        return step_await(task, self, &(errand_task_news){.why = ERRAND_WHY_START});
    default:
        assert_int_equal(news->why, ERRAND_WHY_COMPLETION);
        assert_int_equal(errand_task_unshield(task), ERRAND_OK);
        assert_int_equal(errand_task_unshield(task), ERRAND_EMISUSE);
        self->status = errand_task_yield(task);
        return ERRAND_TASK_DONE;
    }
}

/* O40 */
static void
shield_lets_a_cancelled_task_wait_for_its_cleanup(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    actor self = {.step = step_clean_up, .arg = &job};

    actor_spawn(in, NULL, "cleans up", &self);
    drive_all(in);
    cancel(in, &self, ERRAND_REASON_EXPLICIT);
    drive_all(in);
    assert_int_equal(world_step(in, 1), 1);
    drive_all(in);
    assert_int_equal(job.ran, 1);
    assert_int_equal(self.visits, 3);
    assert_int_equal(self.status, ERRAND_ECANCELLED); /* after the shield */
    assert_int_equal(actor_end(&self), ERRAND_END_CANCELLED);
    world_end(in);
}

static errand_task_answer
step_shield_then_wait(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    assert_int_equal(errand_task_shield(task, NEVER), ERRAND_OK);
    assert_int_equal(
        errand_task_cancel(self->in->runtime, &self->id, ERRAND_REASON_OWNER), ERRAND_OK);
    self->status = errand_task_park(task, NEVER);
    assert_int_equal(errand_task_unshield(task),
                     ERRAND_OK); /* the kept cancel ends the park */
    return ERRAND_TASK_WAIT;
}

static void
kept_cancel_ends_a_wait_when_the_shield_is_left(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_shield_then_wait};

    actor_spawn(in, NULL, "keeps", &self);
    drive_all(in);
    assert_int_equal(self.status, ERRAND_OK);
    assert_int_equal(self.visits, 2);
    assert_int_equal(self.news.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(self.news.reason, ERRAND_REASON_OWNER);
    assert_int_equal(actor_end(&self), ERRAND_END_CANCELLED);
    world_end(in);
}

static char trail[64];

static void
note(void *arg)
{
    trail[strlen(trail)] = *(const char *)arg;
}

static errand_task_answer
step_defer(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_FAILED;
    for (const char *letter = self->arg; *letter != '\0'; letter++)
        assert_int_equal(errand_task_defer(task, note, (void *)(uintptr_t)letter),
                         ERRAND_OK);
    if (self->number != 0)
        assert_int_equal(errand_task_undefer(task), ERRAND_OK);
    self->status = errand_task_park(task, NEVER);
    return ERRAND_TASK_WAIT;
}

/* O40: newest first, children before their parent; after every end. */
static void
deferred_cleanups_run_newest_first_and_children_before_parents(void **state)
{
    static char of_parent[] = "abc", of_child[] = "xyz", of_newer[] = "uvw";
    test_world *in = *state;
    actor parent = {.step = step_defer, .arg = of_parent, .number = 1};
    actor child = {.step = step_defer, .arg = of_child};
    actor newer = {.step = step_defer, .arg = of_newer};

    memset(trail, 0, sizeof trail);
    actor_spawn(in, NULL, "parent", &parent);
    actor_spawn(in, &parent.id, "child", &child);
    actor_spawn(in, &parent.id, "newer", &newer);
    drive_all(in);
    assert_string_equal(trail, "");
    assert_int_equal(errand_task_wake(in->runtime, &parent.id), ERRAND_OK);
    drive_all(in);
    assert_string_equal(trail, "wvuzyxba"); /* c was undone */
    assert_int_equal(actor_end(&parent), ERRAND_END_FAILED);
    assert_int_equal(actor_end(&child), ERRAND_END_ABORTED);
    world_end(in);
}

/* O43 */
static void
cancel_of_the_roots_reaches_everything_alive(void **state)
{
    test_world *in = *state;
    actor actors[6];

    for (unsigned i = 0; i < 6; i++) { /* two roots, each with a child and a grandchild */
        actors[i] = (actor){.step = step_stubborn, .number = ERRAND_TASK_DONE};
        actor_spawn(in, i < 2 ? NULL : &actors[i - 2].id, "x", &actors[i]);
    }
    drive_all(in);
    assert_int_equal(errand_cancel_roots(in->runtime, ERRAND_REASON_ROOT), ERRAND_OK);
    /* The waits ended in key order, so the parents are visited first; they wait for the others. */
    drive_items(in, 2);
    assert_int_equal(actors[0].visits + actors[1].visits, 4);
    assert_int_equal(actors[0].ends + actors[1].ends, 0);
    drive_all(in);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(actors[i].visits, 2);
        assert_int_equal(actor_end(&actors[i]), ERRAND_END_CANCELLED);
    }
    world_end(in);
}

/* O44: from a signal handler; at the next drive, with the reason host stop. */
static void
interrupt_cancels_the_roots_at_the_next_drive(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_stubborn, .number = ERRAND_TASK_DONE};
    errand_inbox *inbox;

    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    actor_spawn(in, NULL, "root", &self);
    drive_all(in);
    errand_interrupt(inbox);
    assert_int_equal(self.visits, 1);
    assert_int_equal(errand_park(in->runtime, NEVER), ERRAND_OK); /* does not sleep */
    drive_all(in);
    assert_int_equal(self.news.reason, ERRAND_REASON_HOST_STOP);
    assert_int_equal(actor_end(&self), ERRAND_END_CANCELLED);
    errand_inbox_abandon(&inbox);
    world_end(in);
}

static errand_task_answer
step_panicky(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)task;
    (void)self;
    (void)news;
    return ERRAND_TASK_DONE;
}

static void
panic_in_drop(void *state)
{
    ((actor *)state)->drops++;
    errand_panic("the drop of %s", "an actor");
}

/* O76 */
static void
panic_in_a_tasks_drop_is_contained(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_panicky}, other = {.step = step_done};
    errand_task_spec spec = actor_spec(in, "panics", &self);

    spec.held_drop = panic_in_drop;
    assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &self.id), ERRAND_OK);
    actor_spawn(in, NULL, "other", &other);
    drive_all(in);
    assert_int_equal(self.drops, 1);
    assert_int_equal(actor_end(&other), ERRAND_END_DONE);
    world_end(in);
}

/* O73: RUN tells the tasks and gives them their turn; what ignores it is in the report. */
static void
shutdown_tells_tasks_that_listen_and_reports_the_others(void **state)
{
    test_world *in = *state;
    static actor listens, ignores;
    errand_report report;

    listens = (actor){.step = step_stubborn, .number = ERRAND_TASK_DONE};
    ignores = (actor){.step = step_ignore, .number = 90 * SECOND};
    actor_spawn(in, NULL, "listens", &listens);
    actor_spawn(in, NULL, "ignores", &ignores);
    drive_all(in);
    assert_int_equal(errand_runtime_shutdown(&in->runtime, errand_deadline_in(SECOND),
                                             ERRAND_SHUTDOWN_RUN, &report),
                     ERRAND_OK);
    assert_int_equal(listens.news.reason, ERRAND_REASON_SHUTDOWN);
    assert_int_equal(actor_end(&listens), ERRAND_END_CANCELLED);
    assert_int_equal(actor_end(&ignores), ERRAND_END_ABORTED);
    assert_int_equal(report.live_tasks, 1);
    assert_false(report.clean);
    in->ended = true;
    errand_executor_abandon(&in->executor);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            cancelled_task_is_told_once_and_each_wait_answers_it, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(cancel_of_a_task_cancels_its_operation_at_once,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(cancel_wins_over_a_completion_that_was_not_told,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(abort_forgets_the_operation_and_resumes_nobody,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            abort_inside_the_handler_of_its_own_completion_drops_it_once, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(task_may_abort_itself_and_its_parent, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(grace_ends_in_an_abort_at_the_runtimes_clock,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(shield_lets_a_cancelled_task_wait_for_its_cleanup,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(kept_cancel_ends_a_wait_when_the_shield_is_left,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            deferred_cleanups_run_newest_first_and_children_before_parents, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(cancel_of_the_roots_reaches_everything_alive,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(interrupt_cancels_the_roots_at_the_next_drive,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(panic_in_a_tasks_drop_is_contained, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(
            shutdown_tells_tasks_that_listen_and_reports_the_others, world_setup,
            world_teardown),
    };
    return test_group("runtime/cancel_tasks", tests, NULL, NULL);
}
