/* SPDX-License-Identifier: MIT */
/* Goal: a runtime is one thread's; what others call changes nothing, and it can move (O9, O10).
 * Method: another thread makes each call once, is joined, and then all goes on as if it had not. */
#include <pthread.h>
#include "errand/order.h"
#include "errand/task.h"
#include "world.h"

typedef struct stranger { /* another thread's calls and what they answered */
    test_world *world;
    errand_identity identity;
    errand_prepared prepared;
    errand_binding binding;
    errand_wait wait;
    errand_submission submission;
    errand_status answers[64];
    int count;
    uint32_t kind;
} stranger;

static void
note(stranger *self, errand_status status)
{
    self->answers[self->count++] = status;
}

static errand_task_answer
never(errand_task *task, void *state, const errand_task_news *news)
{
    (void)task;
    (void)state;
    (void)news;
    return ERRAND_TASK_DONE;
}

static void
hear_nothing(void *arg, errand_completion *completion)
{
    (void)arg;
    (void)completion;
}

static void
never_resumed(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    (void)own_data;
    (void)runtime;
    (void)news;
}

static void
call_names(stranger *self)
{
    errand_runtime *runtime = self->world->runtime;
    world_job job = {.answer = 0};
    errand_spec spec = world_spec(&job);
    errand_prepared prepared;
    errand_identity identity;
    errand_binding binding;
    errand_wait wait;
    errand_submission submission;
    errand_continuation continuation = {.resume = never_resumed};
    size_t accepted = 9;

    note(self, errand_prepare(runtime, &spec, &prepared));
    note(self, errand_issue(runtime, 1, NULL, &identity));
    note(self, errand_retire(runtime, &self->identity));
    note(self, errand_bind(runtime, &self->identity, &self->prepared, &binding));
    note(self, errand_split(&self->binding, &wait, &submission));
    note(self, errand_await(&self->wait, &continuation));
    note(self, errand_submit(self->world->lease, &self->submission));
    note(self, errand_submit_many(self->world->lease, &self->submission, 1, &accepted));
    note(self, errand_start(self->world->lease, &spec, NULL, NULL));
    note(self, errand_abandon_later(&self->submission));
    note(self, errand_cancel(runtime, &self->identity, ERRAND_REASON_EXPLICIT, NULL));
    note(self, errand_cancel_later(runtime, &self->identity));
    note(self, errand_reap_ready(runtime, &self->identity));
}

static void
call_drives(stranger *self)
{
    test_world *world = self->world;
    errand_runtime *runtime = world->runtime;
    errand_lease *lease = world->lease, *made;
    errand_task_spec task = {.struct_size = sizeof task, .fn = never};
    errand_task_id id = {.task = 1};
    errand_inbox *inbox;
    size_t count;
    int fd;

    note(self, errand_drain(runtime, 10, hear_nothing, NULL, &count));
    note(self, errand_drive(runtime, NULL, NULL));
    note(self, errand_run(runtime, &id, 0));
    note(self, errand_park(runtime, 0));
    note(self, errand_runtime_wake_fd(runtime, &fd));
    note(self, errand_runtime_unwound(runtime));
    note(self, errand_runtime_release(runtime));
    note(self, errand_inbox_open(runtime, &inbox));
    note(self, errand_attach(runtime, world->executor, 0, &made));
    note(self, errand_lease_wait_room(lease, 0));
    note(self, errand_spawn(runtime, NULL, &task, &id));
    note(self, errand_cancel_roots(runtime, ERRAND_REASON_ROOT));
    note(self, errand_testing_clock(runtime, 1));
    note(self, errand_testing_counters(runtime, 9, 9, 9));
    note(self, errand_trace(runtime, NULL, NULL));
    note(self, errand_lease_shutdown(&lease, 0, NULL));
    note(self, errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL));
}

static void *
make_every_call(void *arg)
{
    stranger *self = arg;

    call_names(self);
    call_drives(self);
    /* Silent ones do nothing. */
    errand_prepared_abandon(&self->prepared);
    errand_binding_abandon(&self->binding);
    errand_submission_abandon(&self->submission);
    errand_wait_abandon(&self->wait);
    return NULL;
}

static void
calls_of_another_thread_change_nothing(void **state)
{
    /* O9, O10 */
    test_world *world = *state;
    world_job jobs[3] = {{.answer = 0}};
    errand_spec spec = world_spec(&jobs[0]), second = world_spec(&jobs[1]);
    stranger self = {.world = world};
    errand_identity bound;
    errand_prepared prepared;
    pthread_t thread;

    self.submission = world_submission(world, &jobs[2], &bound);
    assert_int_equal(errand_prepare(world->runtime, &second, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &bound), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &bound, &prepared, &self.binding),
                     ERRAND_OK);
    assert_int_equal(errand_prepare(world->runtime, &spec, &self.prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &self.identity), ERRAND_OK);
    /* A wait half to try errand_await on: the binding's, which is still whole. */
    self.wait = (errand_wait){self.binding.held_record, self.binding.stamp};
    assert_int_equal(pthread_create(&thread, NULL, make_every_call, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.count, 30);
    for (int i = 0; i < self.count; i++)
        assert_int_equal(self.answers[i], ERRAND_ETHREAD);
    assert_int_equal(jobs[0].dropped + jobs[1].dropped + jobs[2].dropped, 0);
    assert_non_null(self.prepared.held_record);
    assert_non_null(self.binding.held_record);
    assert_non_null(self.submission.held_record);
    assert_non_null(self.wait.held_record);
    /* Everything can still be used, here. */
    assert_int_equal(errand_submit(world->lease, &self.submission), ERRAND_OK);
    errand_binding_abandon(&self.binding);
    assert_int_equal(
        errand_bind(world->runtime, &self.identity, &self.prepared, &self.binding),
        ERRAND_OK);
    errand_binding_abandon(&self.binding);
    assert_int_equal(world_step(world, 10), 1);
    assert_int_equal(world_drain(world, 10), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jobs[i].dropped, 1);
}

typedef struct adopter {
    test_world *world;
    world_job job;
    errand_status adopted, started, drained, released;
    size_t stepped, heard;
} adopter;

static void *
adopt_and_use(void *arg)
{
    adopter *self = arg;
    test_world *world = self->world;
    errand_spec spec = world_spec(&self->job);

    self->adopted = errand_runtime_adopt(world->runtime);
    self->started = errand_start(world->lease, &spec, NULL, NULL);
    if (errand_manual_step(world->executor, 10, &self->stepped) != ERRAND_OK)
        return NULL;
    self->drained = errand_drain(world->runtime, 10, world_handler, world, &self->heard);
    self->released = errand_runtime_release(world->runtime);
    return NULL;
}

static void
a_released_runtime_goes_on_with_the_thread_that_adopts_it(void **state)
{
    /* O9 */
    test_world *world = *state;
    adopter self = {.world = world};
    world_job job = {.answer = 0};
    errand_snapshot snapshot;
    pthread_t thread;
    size_t count = 9;

    world_start(world, &job);
    assert_int_equal(errand_runtime_adopt(world->runtime), ERRAND_EMISUSE);
    assert_int_equal(errand_runtime_release(world->runtime), ERRAND_OK);
    /* Nobody's: not even the one who released it. */
    assert_int_equal(errand_drain(world->runtime, 10, NULL, NULL, &count),
                     ERRAND_ETHREAD);
    assert_int_equal(errand_runtime_release(world->runtime), ERRAND_ETHREAD);
    assert_int_equal(count, 9);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(pthread_create(&thread, NULL, adopt_and_use, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.adopted, ERRAND_OK);
    assert_int_equal(self.started, ERRAND_OK);
    assert_int_equal(self.drained, ERRAND_OK);
    assert_int_equal(self.stepped, 2);
    assert_int_equal(self.heard, 2);
    assert_int_equal(self.released, ERRAND_OK);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(self.job.dropped, 1);
    assert_int_equal(errand_runtime_adopt(world->runtime), ERRAND_OK);
    world_check(world);
}

static void *
adopt_only(void *arg)
{
    adopter *self = arg;

    self->adopted = errand_runtime_adopt(self->world->runtime);
    return NULL;
}

static void
an_owned_runtime_cannot_be_adopted(void **state)
{
    /* O9 */
    test_world *world = *state;
    adopter self = {.world = world};
    world_job job = {.answer = 0};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, adopt_only, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.adopted, ERRAND_EMISUSE);
    world_start(world, &job); /* it is still ours */
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
}

static void
release_in_a_handler(void *arg, errand_completion *completion)
{
    test_world *world = arg;

    world_handler(world, completion);
    assert_int_equal(errand_runtime_release(world->runtime), ERRAND_EBUSY);
}

static errand_task_answer
release_in_a_task(errand_task *task, void *state, const errand_task_news *news)
{
    test_world *world = state;

    (void)news;
    assert_ptr_equal(errand_task_runtime(task), world->runtime);
    assert_int_equal(errand_runtime_release(world->runtime), ERRAND_EBUSY);
    world->misuses = 1000;
    return ERRAND_TASK_DONE;
}

static void
a_runtime_cannot_be_released_in_the_middle_of_a_drive(void **state)
{
    /* O9 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_task_spec task = {
        .struct_size = sizeof task, .fn = release_in_a_task, .state = world};
    size_t count;

    world_start(world, &job);
    world_step(world, 1);
    assert_int_equal(
        errand_drain(world->runtime, 10, release_in_a_handler, world, &count), ERRAND_OK);
    assert_int_equal(count, 1);
    assert_int_equal(errand_spawn(world->runtime, NULL, &task, NULL), ERRAND_OK);
    assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
    assert_int_equal(world->misuses, 1000);
    assert_int_equal(errand_runtime_release(world->runtime), ERRAND_OK);
    assert_int_equal(errand_runtime_adopt(world->runtime), ERRAND_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(calls_of_another_thread_change_nothing),
        WITH_WORLD(a_released_runtime_goes_on_with_the_thread_that_adopts_it),
        WITH_WORLD(an_owned_runtime_cannot_be_adopted),
        WITH_WORLD(a_runtime_cannot_be_released_in_the_middle_of_a_drive),
    };
    return test_group("runtime/threads", tests, NULL, NULL);
}
