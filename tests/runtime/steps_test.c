/* SPDX-License-Identifier: MIT */
/* Goal: arming is the point of admission; whoever looks or acts in the middle of a submit or of a
 * settle finds the operation counted once and ended once (O18, C-A4, C-A10, C-B7).
 * Method: pause points: the owner is stopped inside its submit while another thread looks, posts and
 * tries to end the runtime; a worker is stopped on its way to the put. */
#include <pthread.h>
#include <string.h>
#include "counted.h"
#include "gate.h"

static const char *const steps[] = {"submit-checked", "submit-counted", "submit-armed",
                                    "submit-handed"};
enum { STEPS = 4 };

static pthread_t owner; /* set before there is any other thread */

typedef struct intruder {
    test_world *world;
    errand_inbox *inbox;
    errand_identity identity;
    const char *step;
    unsigned reached;
    errand_snapshot runtime, lease;
    errand_status shut, lease_shut, posted;
} intruder;

static void *
intrude(void *arg)
{
    intruder *self = arg;
    errand_runtime *runtime = self->world->runtime;
    errand_lease *lease = self->world->lease;

    if (errand_runtime_snapshot(runtime, &self->runtime) != ERRAND_OK ||
        errand_lease_snapshot(lease, &self->lease) != ERRAND_OK)
        self->reached = 77;
    self->shut = errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL);
    self->lease_shut = errand_lease_shutdown(&lease, 0, NULL);
    if (self->inbox != NULL)
        self->posted = errand_post_cancel(self->inbox, &self->identity);
    return NULL;
}

static void
at_step(void *arg, const char *place)
{
    intruder *self = arg;
    pthread_t thread;

    if (!pthread_equal(pthread_self(), owner) || strcmp(place, self->step) != 0)
        return;
    self->reached++;
    if (pthread_create(&thread, NULL, intrude, self) != 0 ||
        pthread_join(thread, NULL) != 0)
        self->reached = 77;
}

static void
check_law(const errand_snapshot *of)
{
    assert_int_equal(of->accepted, of->queued + of->running + of->undrained +
                                       of->drained + of->undeliverable);
}

/* Submits with an intruder at that step; post: it cancels from there. */
static void
submit_intruded(test_world *world, counted *work, int step, bool post, intruder *self)
{
    errand_submission submission = counted_submission(world, work);

    counted_await(work);
    *self = (intruder){.world = world, .identity = work->identity, .step = steps[step]};
    if (post)
        assert_int_equal(errand_inbox_open(world->runtime, &self->inbox), ERRAND_OK);
    errand_testing_pause(at_step, self);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    errand_testing_pause(NULL, NULL);
    assert_int_equal(self->reached, 1);
    assert_int_equal(self->shut, ERRAND_ETHREAD);
    assert_int_equal(self->lease_shut, ERRAND_ETHREAD);
    check_law(&self->runtime);
    check_law(&self->lease);
    errand_inbox_abandon(&self->inbox);
}

static void
an_operation_is_counted_before_it_can_be_seen(void **state)
{
    /* O18, O4, C-B7: nothing is owed before the count; from the count on the end waits for it. */
    test_world *world = *state;

    for (int step = 0; step < STEPS; step++) {
        counted work = {.answer = 0};
        intruder self;

        submit_intruded(world, &work, step, false, &self);
        assert_int_equal(self.runtime.accepted, step > 0);
        assert_int_equal(self.runtime.queued, step > 0);
        world_end(world); /* straight after it */
        assert_int_equal(world->report.accounts.accepted, 1);
        assert_int_equal(world->report.accounts.drained, 1);
        assert_true(world->report.clean);
        counted_check_ended(&work);
        assert_int_equal(work.count[AT_BODY], 0);
        world_begin(world, &world->config, 0);
    }
}

static void
a_cancel_at_each_step_of_a_submit_ends_the_operation_once(void **state)
{
    /* O18, C-B7 */
    test_world *world = *state;

    for (int step = 0; step < STEPS; step++) {
        counted work = {.answer = 0};
        intruder self;

        submit_intruded(world, &work, step, true, &self);
        assert_int_equal(self.posted, ERRAND_OK);
        counted_drive(world);
        assert_int_equal(world_step(world, 10), 0);
        counted_drive(world);
        assert_int_equal(work.count[AT_BODY], 0);
        assert_int_equal(work.reason, ERRAND_REASON_EXPLICIT);
        counted_check_ended(&work);
    }
}

static void
a_pool_may_end_an_operation_inside_its_submit(void **state)
{
    /* O18, C-B7: the worker has run it before submit comes back, or not; the end sees it. */
    test_world *world = *state;
    counted work = {.answer = 0};
    intruder self;

    world_pool(world, 2);
    for (int step = 0; step < STEPS; step++) {
        work = (counted){.answer = 0};
        submit_intruded(world, &work, step, false, &self);
        while (work.count[AT_RESUME] == 0) {
            counted_drive(world);
            if (work.count[AT_RESUME] == 0)
                assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
        }
        counted_check_ended(&work);
    }
    work = (counted){.answer = 0};
    submit_intruded(world, &work, STEPS - 1, false, &self);
    world_end(world);
    assert_int_equal(world->report.accounts.accepted, STEPS + 1);
    assert_int_equal(world->report.accounts.drained, STEPS + 1);
    counted_check_ended(&work);
}

static void
note_step(void *arg, const char *place)
{
    unsigned *passed = arg;

    *passed += strncmp(place, "submit-", 7) == 0;
}

static void
a_refused_submit_reaches_no_step(void **state)
{
    /* O18: what may refuse comes first. */
    test_world *world = *state;
    counted work = {.answer = 0}, refused = {.no_continuation = true};
    errand_submission submission;
    unsigned passed = 0;

    world_end(world);
    world_begin(world, &world->config, 1);
    counted_submit(world, &work);
    submission = counted_submission(world, &refused);
    errand_testing_pause(note_step, &passed);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_EFULL);
    errand_testing_pause(NULL, NULL);
    assert_int_equal(passed, 0);
    errand_submission_abandon(&submission);
    world_step(world, 10);
    counted_drive(world);
    counted_check_ended(&work);
    counted_check_ended(&refused);
}

/* ---- the way to the put ------------------------------------------------------------------------- */

typedef struct stop {
    test_gate gate;
    const char *place;
} stop;

static void
stop_worker(void *arg, const char *place)
{
    stop *self = arg;

    if (!pthread_equal(pthread_self(), owner) && strcmp(place, self->place) == 0)
        gate_wait(&self->gate);
}

static void
cancel_at(test_world *world, stop *self, const char *place, errand_cancel_answer expected)
{
    counted work = {.no_payload = true};

    self->place = place;
    gate_init(&self->gate, place);
    errand_testing_pause(stop_worker, self);
    counted_submit(world, &work);
    gate_await_arrival(&self->gate);
    assert_int_equal(counted_cancel(&work), expected);
    errand_testing_pause(NULL, NULL);
    gate_open(&self->gate);
    while (work.count[AT_STATE_DROP] == 0) {
        counted_drive(world);
        if (work.count[AT_STATE_DROP] == 0)
            assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
    }
    counted_drive(world);
    assert_int_equal(work.count[AT_BODY], expected != ERRAND_CANCEL_CANCELLED);
    counted_check_ended(&work);
}

static void
a_cancel_on_the_way_to_the_put_meets_one_end(void **state)
{
    /* O17, O18, C-A4, C-A10: and a thousand more jobs are delivered. */
    test_world *world = *state;
    static world_job jobs[1000];
    static stop stops[4]; /* a worker may be slow to leave one */
    errand_snapshot snapshot;

    world_pool(world, 1);
    cancel_at(world, &stops[0], "claim", ERRAND_CANCEL_CANCELLED);
    cancel_at(world, &stops[1], "body-done", ERRAND_CANCEL_RUNNING);
    cancel_at(world, &stops[2], "settle", ERRAND_CANCEL_SETTLED);
    cancel_at(world, &stops[3], "put", ERRAND_CANCEL_SETTLED);
    for (int i = 0; i < 1000; i++) {
        jobs[i] = (world_job){.answer = 0};
        world_start(world, &jobs[i]);
    }
    world->news_count = 0;
    world_await(world, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(jobs[i].dropped, 1);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.accepted, 1004);
    assert_int_equal(snapshot.drained, 1004);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(an_operation_is_counted_before_it_can_be_seen),
        WITH_WORLD(a_cancel_at_each_step_of_a_submit_ends_the_operation_once),
        WITH_WORLD(a_pool_may_end_an_operation_inside_its_submit),
        WITH_WORLD(a_refused_submit_reaches_no_step),
        WITH_WORLD(a_cancel_on_the_way_to_the_put_meets_one_end),
    };
    owner = pthread_self();
    return test_group("runtime/steps", tests, NULL, NULL);
}
