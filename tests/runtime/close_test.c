/* SPDX-License-Identifier: MIT */
/* Goal: between the close of the inbox and the end of a shutdown, workers that come back find
 * nothing of the runtime, and the runtime nothing of theirs.
 * Method: a real worker that stands in its body, or just before its put, at the deadline; what
 * the library drops meanwhile lets it go on at the wanted moment. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "actor.h"
#include "gate.h"

typedef struct closing {
    test_world *in;
    errand_executor *pool;
    errand_lease *lease;
    errand_inbox *inbox;
    errand_identity identity;
    errand_command command;
    test_gate gate;
    pthread_t owner;
    errand_status status;
    int command_drops;
} closing;

static void
closing_begin(closing *self, test_world *world)
{
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 1};

    *self = (closing){.in = world, .owner = pthread_self()};
    gate_init(&self->gate, "closing");
    assert_int_equal(errand_blocking_create(&config, &self->pool), ERRAND_OK);
    assert_int_equal(errand_attach(world->runtime, self->pool, 0, &self->lease),
                     ERRAND_OK);
    assert_int_equal(errand_inbox_open(world->runtime, &self->inbox), ERRAND_OK);
}

static void
closing_end(closing *self, const errand_report *report)
{
    const errand_snapshot *of = &report->accounts;

    assert_int_equal(report->undeliverable, 1);
    assert_int_equal(report->running, 1);
    assert_int_equal(of->queued, 0);
    assert_int_equal(of->running, 0);
    assert_int_equal(of->undrained, 0);
    assert_int_equal(of->accepted, of->drained + of->undeliverable);
    errand_inbox_abandon(&self->inbox);
    errand_executor_abandon(&self->pool);
    errand_executor_abandon(&self->in->executor);
    self->in->ended = true;
    while (errand_testing_live_bytes() != self->in->bytes) /* the worker's last */
        sched_yield();
    gate_fini(&self->gate);
}

static void
stand(errand_job *job, world_job *self)
{
    (void)job;
    gate_wait(&((closing *)self->arg)->gate);
}

static void
drop_command(void *arg)
{
    closing *self = arg;
    int64_t bytes = errand_testing_live_bytes();

    self->command_drops++;
    self->status =
        errand_cancel(self->in->runtime, &self->identity, ERRAND_REASON_EXPLICIT, NULL);
    gate_open(&self->gate);
    while (errand_testing_live_bytes() >= bytes) /* until its extra is freed */
        sched_yield();
}

static void
ignore(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    (void)arg;
}

/* Called after the last drain and before the close. */
static void
post_late(void *state)
{
    closing *self = ((world_job *)state)->arg;

    self->command = (errand_command){.fn = ignore, .drop = drop_command, .arg = self};
    assert_int_equal(errand_post(self->inbox, &self->command), ERRAND_OK);
    assert_int_equal(errand_post_cancel(self->inbox, &self->identity), ERRAND_OK);
}

static void
a_worker_that_comes_back_during_the_close_owns_what_it_frees(void **state)
{
    /* O31, O58, O73 */
    test_world *world = *state;
    errand_job_type late = world_job_type;
    closing self;
    world_job job = {.inside = stand}, unsent = {.answer = 0};
    errand_spec spec = world_spec(&job), other = world_spec(&unsent);
    errand_prepared prepared;
    errand_report report;

    closing_begin(&self, world);
    job.arg = unsent.arg = &self;
    late.drop = post_late;
    spec.deadline_ns = UINT64_C(3600000000000); /* it stands among the deadlines */
    other.held_job = &late;
    assert_int_equal(errand_prepare(world->runtime, &other, &prepared), ERRAND_OK);
    assert_int_equal(errand_start(self.lease, &spec, NULL, &self.identity), ERRAND_OK);
    gate_await_arrival(&self.gate);
    assert_int_equal(
        errand_runtime_shutdown(&world->runtime, 0, ERRAND_SHUTDOWN_QUIET, &report),
        ERRAND_OK);
    assert_int_equal(self.command_drops, 1);
    assert_int_equal(self.status, ERRAND_ECLOSED);
    assert_int_equal(report.posts_dropped, 1);
    closing_end(&self, &report);
    assert_int_equal(job.dropped, 1);
}

static void
stand_before_put(void *arg, const char *place)
{
    closing *self = arg;

    if (strcmp(place, "put") == 0 && !pthread_equal(pthread_self(), self->owner))
        gate_wait(&self->gate);
}

static void
a_put_that_comes_after_the_close_is_counted_once(void **state)
{
    /* O4, O31 */
    test_world *world = *state;
    closing self;
    world_job job = {.answer = 0};
    errand_spec spec = world_spec(&job);
    errand_report report;

    closing_begin(&self, world);
    spec.deadline_ns = UINT64_C(3600000000000); /* so bytes go after its state did */
    errand_testing_pause(stand_before_put, &self);
    assert_int_equal(errand_start(self.lease, &spec, NULL, &self.identity), ERRAND_OK);
    gate_await_arrival(&self.gate); /* it has settled, and counted that */
    assert_int_equal(
        errand_runtime_shutdown(&world->runtime, 0, ERRAND_SHUTDOWN_QUIET, &report),
        ERRAND_OK);
    errand_testing_pause(NULL, NULL);
    gate_open(&self.gate);
    closing_end(&self, &report);
    assert_int_equal(job.ran, 1);
    assert_int_equal(job.dropped, 1);
}

/* One that stays out while the run ends: by its timeout, or because its root is done. */
static void
end_a_run_early(test_world *in, uint64_t timeout, errand_status expected)
{
    world_job job = {.ran = 0}, stays = {.ran = 0};
    actor awaits = {.step = step_await, .arg = &job};
    actor root = {.step = timeout == NEVER ? step_done : step_park};
    const errand_snapshot *of = &in->report.accounts;

    actors_restart(in, 7, NULL, NULL);
    assert_int_equal(errand_order_latency(in->runtime, 1, 1000 * MS), ERRAND_OK);
    actor_spawn(in, NULL, "awaits", &awaits);
    drive_items(in, 1);
    world_start(in, &stays);
    actor_spawn(in, NULL, "root", &root);
    assert_int_equal(errand_run(in->runtime, &root.id, timeout), expected);
    world_end(in);
    assert_int_equal(of->accepted, 2);
    assert_int_equal(of->cancelled, 2);
    assert_int_equal(of->drained + in->report.undeliverable, 2);
    assert_false(in->report.clean); /* it names the task */
    assert_int_equal(in->report.live_tasks, timeout == NEVER ? 1 : 2);
    assert_int_equal(job.ran + stays.ran, 0);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(stays.dropped, 1);
}

static void
the_close_after_a_run_that_ended_early_counts_what_was_out(void **state)
{
    /* O3 */
    end_a_run_early(*state, 1, ERRAND_ETIMEOUT);
    end_a_run_early(*state, NEVER, ERRAND_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)
        T(a_worker_that_comes_back_during_the_close_owns_what_it_frees),
        T(a_put_that_comes_after_the_close_is_counted_once),
        T(the_close_after_a_run_that_ended_early_counts_what_was_out),
#undef T
    };

    return test_group("runtime/close", tests, NULL, NULL);
}
