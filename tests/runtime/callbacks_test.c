/* SPDX-License-Identifier: MIT */
/* Goal: host code of every sort runs with no lock held and may call whatever is not documented as
 * not re-entrant (O33, C-A13, C-I1, C-I5).
 * Method: each part of an operation calls everything; what it starts ends like any other. */
#include "counted.h"
#include "errand/task.h"

enum { STARTED_MAX = 64 };

typedef struct guest { /* what host code did inside a call */
    test_world *world;
    errand_inbox *inbox;
    counted *victim;
    counted started[STARTED_MAX];
    unsigned count, called[COUNTED_PLACES], tasks;
} guest;

static errand_task_answer
count_task(errand_task *task, void *state, const errand_task_news *news)
{
    (void)task;
    (void)news;
    (*(unsigned *)state)++;
    return ERRAND_TASK_DONE;
}

static void
make_waiting_calls(guest *self)
{
    test_world *world = self->world;
    errand_runtime *runtime = world->runtime;
    errand_report report;
    size_t count = 77;

    assert_int_equal(errand_drain(runtime, 1, NULL, NULL, &count), ERRAND_EBUSY);
    assert_int_equal(errand_drive(runtime, NULL, NULL), ERRAND_EBUSY);
    assert_int_equal(errand_park(runtime, 0), ERRAND_EBUSY);
    assert_int_equal(errand_runtime_release(runtime), ERRAND_EBUSY);
    assert_int_equal(errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_EBUSY);
    assert_int_equal(count, 77);
    assert_ptr_equal(runtime, world->runtime);
}

static void
call_everything(guest *self)
{
    test_world *world = self->world;
    errand_runtime *runtime = world->runtime;
    counted *fresh = &self->started[self->count++];
    errand_task_spec task = {
        .struct_size = sizeof task, .fn = count_task, .state = &self->tasks};
    errand_prepared prepared;
    errand_identity identity;
    errand_snapshot snapshot;
    errand_spec spec;
    errand_cancel_answer answer;
    size_t stepped;

    assert_true(self->count <= STARTED_MAX);
    *fresh = (counted){.answer = 0};
    counted_submit(world, fresh);
    spec = counted_spec(world, fresh);
    spec.held_decoder = NULL; /* of a second one, which is given up */
    spec.held_hook = NULL;
    spec.held_job = &world_job_type;
    spec.state = &(world_job){.answer = 0};
    assert_int_equal(errand_prepare(runtime, &spec, &prepared), ERRAND_OK);
    errand_prepared_abandon(&prepared);
    assert_int_equal(errand_issue(runtime, 1, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_retire(runtime, &identity), ERRAND_OK);
    assert_int_equal(
        errand_cancel(runtime, &self->victim->identity, ERRAND_REASON_OWNER, &answer),
        ERRAND_OK);
    assert_int_equal(errand_cancel_later(runtime, &fresh->identity), ERRAND_OK);
    assert_int_equal(errand_post_cancel(self->inbox, &fresh->identity), ERRAND_OK);
    assert_int_equal(errand_spawn(runtime, NULL, &task, NULL), ERRAND_OK);
    assert_int_equal(errand_runtime_snapshot(runtime, &snapshot), ERRAND_OK);
    assert_int_equal(errand_testing_clock(runtime, 1), ERRAND_OK);
    assert_int_equal(errand_manual_step(world->executor, 0, &stepped), ERRAND_OK);
    make_waiting_calls(self);
}

static guest visitor;

static void
visit(counted *self, counted_place place)
{
    (void)self;
    if (place == AT_BODY || place == AT_DEFER)
        return; /* inside a step: other rules */
    visitor.called[place]++;
    call_everything(&visitor);
}

static void
visit_in_the_handler(void *arg, errand_completion *completion)
{
    world_handler(arg, completion);
    if (visitor.count < STARTED_MAX / 2)
        call_everything(&visitor);
}

static void
begin(test_world *world, counted *victim)
{
    visitor = (guest){.world = world, .victim = victim};
    victim->lingers = true;
    victim->cancel_answer = ERRAND_HOOK_PENDING;
    victim->reap_answer = ERRAND_HOOK_REAPED;
    assert_int_equal(errand_inbox_open(world->runtime, &visitor.inbox), ERRAND_OK);
    counted_submit(world, victim);
    world_step(world, 1);
}

static void
end(test_world *world, counted *victim)
{
    size_t count;

    for (int i = 0; i < 20; i++) {
        world_step(world, 100);
        counted_drive(world);
        assert_int_equal(errand_testing_clock(world->runtime, 1000000), ERRAND_OK);
    }
    assert_int_equal(errand_drain(world->runtime, 1, NULL, NULL, &count), ERRAND_OK);
    for (unsigned i = 0; i < visitor.count; i++)
        counted_check_ended(&visitor.started[i]);
    counted_check_ended(victim);
    assert_int_equal(visitor.tasks, visitor.count);
    errand_inbox_abandon(&visitor.inbox);
}

static void
every_part_may_call_everything(void **state)
{
    /* O33: in a drive, in a drain, in a cancel and in an abandon. */
    test_world *world = *state;
    counted victim = {.answer = 0}, works[4] = {{.answer = 0}};
    errand_submission submission;

    begin(world, &victim);
    for (int i = 0; i < 4; i++)
        works[i] = (counted){.on = visit};
    counted_submit(world, &works[0]); /* runs to its end */
    world_step(world, 10);
    counted_drive(world);
    works[1].lingers = true; /* is cancelled while it runs */
    works[1].cancel_answer = ERRAND_HOOK_PENDING;
    counted_submit(world, &works[1]);
    world_step(world, 10);
    assert_int_equal(counted_cancel(&works[1]), ERRAND_CANCEL_RUNNING);
    world_step(world, 10);
    counted_drive(world);
    assert_int_equal(errand_testing_clock(world->runtime, 1000000), ERRAND_OK);
    counted_drive(world);
    submission = counted_submission(world, &works[2]); /* is abandoned */
    counted_await(&works[2]);
    errand_submission_abandon(&submission);
    counted_submit(world, &works[3]); /* is cancelled when it was drained */
    world_step(world, 10);
    assert_int_equal(world_drain(world, 100) > 0, 1);
    (void)counted_cancel(&works[3]);
    for (int i = AT_DECODE; i < AT_DEFER; i++)
        assert_true(visitor.called[i] > 0);
    end(world, &victim);
    for (int i = 0; i < 4; i++)
        counted_check_ended(&works[i]);
}

static void
a_handler_may_call_everything(void **state)
{
    /* O33 */
    test_world *world = *state;
    counted victim = {.answer = 0};
    world_job jobs[4] = {{.answer = 0}};
    size_t count;

    begin(world, &victim);
    for (int i = 0; i < 4; i++)
        world_start(world, &jobs[i]);
    world_step(world, 10);
    assert_int_equal(
        errand_drain(world->runtime, 10, visit_in_the_handler, world, &count), ERRAND_OK);
    assert_true(count >= 4);
    assert_true(visitor.count >= 4);
    end(world, &victim);
}

/* ---- a job that says "again" --------------------------------------------------------------------- */

typedef struct chain {
    test_world *world;
    world_job jobs[2000];
    unsigned started;
    bool steps; /* the next one runs inside the handler, too */
} chain;

static void
start_next(chain *self)
{
    world_job *job = &self->jobs[self->started++];

    *job = (world_job){.answer = 0};
    world_start(self->world, job);
}

static void
start_another(void *arg, errand_completion *completion)
{
    chain *self = arg;
    size_t stepped;

    (void)completion;
    start_next(self);
    if (self->steps)
        assert_int_equal(errand_manual_step(self->world->executor, 1, &stepped),
                         ERRAND_OK);
}

static void
a_drain_is_bounded_by_what_was_there_although_each_item_makes_another(void **state)
{
    /* O68, C-I1 */
    test_world *world = *state;
    static chain self;
    size_t count;

    self = (chain){.world = world, .steps = true};
    for (int i = 0; i < 100; i++)
        start_next(&self);
    world_step(world, 100);
    assert_int_equal(errand_drain(world->runtime, 64, start_another, &self, &count),
                     ERRAND_OK);
    assert_int_equal(count, 64);
    assert_int_equal(errand_drain(world->runtime, SIZE_MAX, start_another, &self, &count),
                     ERRAND_OK);
    assert_int_equal(count, 100); /* 36 of before and 64 of the first drain */
    assert_int_equal(self.started, 264);
    assert_int_equal(world_drain(world, SIZE_MAX), 100);
}

static void
follow_itself(errand_job *job, world_job *self)
{
    chain *links = self->arg;
    world_job *next = &links->jobs[links->started];
    errand_spec spec;

    if (links->started == 1000)
        return;
    links->started++;
    *next = *self;
    next->ran = next->dropped = 0;
    spec = world_spec(next);
    assert_int_equal(errand_job_follow(job, &spec, NULL), ERRAND_OK);
}

static void
chains_of_a_thousand_operations_end(void **state)
{
    /* C-A13: by handlers, and by the bodies themselves. */
    test_world *world = *state;
    static chain self;
    errand_snapshot snapshot;
    size_t count;

    self = (chain){.world = world};
    start_next(&self);
    while (self.started < 1000) {
        world_step(world, 1);
        assert_int_equal(errand_drain(world->runtime, 10, start_another, &self, &count),
                         ERRAND_OK);
        assert_int_equal(count, 1);
    }
    world_step(world, 1);
    assert_int_equal(world_drain(world, 10), 1);
    self.started = 0;
    self.jobs[0] = (world_job){.inside = follow_itself, .arg = &self};
    self.started = 1;
    world_start(world, &self.jobs[0]);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(world_step(world, 1), 1);
        assert_int_equal(world_drain(world, 10), 1);
    }
    assert_int_equal(world_step(world, 1), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(self.jobs[i].dropped, 1);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.accepted, 2000);
    assert_int_equal(snapshot.drained, 2000);
    assert_int_equal(snapshot.owed, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(every_part_may_call_everything),
        WITH_WORLD(a_handler_may_call_everything),
        WITH_WORLD(a_drain_is_bounded_by_what_was_there_although_each_item_makes_another),
        WITH_WORLD(chains_of_a_thousand_operations_end),
    };
    return test_group("runtime/callbacks", tests, NULL, NULL);
}
