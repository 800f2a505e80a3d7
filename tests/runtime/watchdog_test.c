/* SPDX-License-Identifier: MIT */
/* Goal: what virtual time cannot express ends a seeded run with a report, never with an answer.
 * Method: bodies that stand at a gate longer than the watchdog waits, threads that are refused. */
#include <sched.h>
#include <string.h>
#include "actor.h"
#include "gate.h"
#include "runtime/runtime.h"
#include "workers/sandbox/limits.h"

static const errand_order orders[] = {ERRAND_ORDER_INLINE, ERRAND_ORDER_PACED};
static test_gate gate;

static void
restart(test_world *in, errand_order order, uint32_t workers)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = order, .seed = 1, .watchdog_ns = 20 * MS};

    world_end(in);
    world_begin(in, &config, 0);
    world_pool(in, workers);
}

static void
stand(errand_job *job, world_job *self)
{
    (void)job;
    (void)self;
    gate_wait(&gate);
}

/* I14, D141: the report names operation, kind and how long; no task is resumed with anything. */
static void
a_job_that_does_not_end_ends_the_run(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.inside = stand};
        actor self = {.step = step_await, .arg = &job, .number = 3600000 * MS};
        errand_turn turn;
        char text[400];
        uint64_t time;

        gate_init(&gate, "endless");
        restart(in, orders[i], 1);
        actor_spawn(in, NULL, "waits", &self);
        assert_int_equal(errand_run(in->runtime, &self.id, NEVER), ERRAND_EEXTERNAL);
        time = errand_runtime_now(in->runtime);
        assert_in_range(time, MS / 2, 2 * MS);
        errand_stall_text(in->runtime, text, sizeof text);
        assert_non_null(strstr(text, "operation 1 'world job' of kind 1"));
        assert_non_null(strstr(text, " s of real time"));
        assert_non_null(strstr(text, "its own deadline is virtual here: give what it"));
        assert_non_null(strstr(text, "raise watchdog_ns"));
        assert_int_equal(self.visits, 1);
        assert_int_equal(errand_run(in->runtime, &self.id, NEVER), ERRAND_EEXTERNAL);
        assert_int_equal(errand_drive(in->runtime, NULL, &turn), ERRAND_EEXTERNAL);
        assert_int_equal(errand_drain(in->runtime, 1, NULL, NULL, NULL),
                         ERRAND_EEXTERNAL);
        assert_int_equal(errand_park(in->runtime, NEVER), ERRAND_EEXTERNAL);
        assert_int_equal(errand_lease_wait_room(in->lease, NEVER), ERRAND_EEXTERNAL);
        assert_int_equal(errand_runtime_now(in->runtime), time);
        gate_open(&gate);
        world_end(in);
        assert_int_equal(in->report.accounts.accepted, 1);
        assert_int_equal(in->report.accounts.drained, 1);
        assert_int_equal(job.dropped, 1);
        assert_int_equal(actor_end(&self), ERRAND_END_ABORTED);
        gate_fini(&gate);
    }
}

/* What does not come back before the shutdown's deadline either is named there. */
static void
the_end_of_such_a_run_accounts_for_everything(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job jobs[3] = {{.inside = stand}, {.ran = 0}, {.ran = 0}};
        actor selves[3];

        gate_init(&gate, "endless");
        restart(in, orders[i], 1);
        for (unsigned k = 0; k < 3; k++) {
            selves[k] = (actor){.step = step_await, .arg = &jobs[k]};
            jobs[k].inside = stand;
            actor_spawn(in, NULL, "waits", &selves[k]);
        }
        assert_int_equal(errand_run(in->runtime, &selves[0].id, NEVER), ERRAND_EEXTERNAL);
        gate_await_arrival(&gate); /* a slow worker has taken one by now */
        in->ended = true;
        assert_int_equal(errand_runtime_shutdown(&in->runtime, errand_deadline_in(MS),
                                                 ERRAND_SHUTDOWN_RUN, &in->report),
                         ERRAND_OK);
        assert_int_equal(in->report.accounts.accepted, 3);
        assert_int_equal(in->report.undeliverable, 1);
        assert_int_equal(in->report.accounts.drained, 2);
        gate_open(&gate);
        errand_executor_abandon(&in->executor);
        errand_executor_abandon(&in->pool);
        while (errand_testing_live_bytes() != in->bytes)
            sched_yield();
        for (unsigned k = 0; k < 3; k++)
            assert_int_equal(jobs[k].dropped, 1);
        gate_fini(&gate);
    }
}

/* D141: no thread is no answer. */
static void
a_thread_that_cannot_be_made_ends_the_run(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.world = in};
        errand_spec spec = world_spec(&job);
        actor self = {.step = step_await, .arg = &job};
        errand_submission submission;
        errand_identity identity;
        char text[300];

        errand_testing_refuse_threads(UINT32_MAX);
        restart(in, orders[i], 1);
        assert_int_equal(errand_start(in->lease, &spec, NULL, NULL), ERRAND_EEXTERNAL);
        submission = world_submission(in, &job, &identity);
        assert_int_equal(errand_submit(in->lease, &submission), ERRAND_EEXTERNAL);
        errand_submission_abandon(&submission);
        assert_int_equal(job.dropped, 1);
        actor_spawn(in, NULL, "waits", &self);
        assert_int_equal(errand_run(in->runtime, &self.id, NEVER), ERRAND_EEXTERNAL);
        errand_stall_text(in->runtime, text, sizeof text);
        assert_non_null(strstr(text, "'world job' of kind 1 was not submitted"));
        world_end(in);
        errand_testing_refuse_threads(0);
    }
}

/* D141: where nobody says anything, the limit of a sandboxed job is over before the watchdog is, also
 * after two starts of its worker that were held up, or behind one such job: so that is what is told. */
static void
a_sandboxed_jobs_own_limit_is_over_before_the_watchdog(void **state)
{
    test_world *in = *state;
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = ERRAND_ORDER_PACED, .seed = 1};

    world_end(in);
    world_begin(in, &config, 0);
    uint64_t watchdog = in->runtime->config.watchdog_ns;
    assert_true(ERRAND__DEADLINE_DEFAULT_NS + 2 * ERRAND__READY_NS < watchdog);
    assert_true(2 * ERRAND__DEADLINE_DEFAULT_NS + 5000 * MS < watchdog);
    world_end(in);
}

int
main(void)
{
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(a_job_that_does_not_end_ends_the_run),
        WITH_WORLD(the_end_of_such_a_run_accounts_for_everything),
        WITH_WORLD(a_thread_that_cannot_be_made_ends_the_run),
        WITH_WORLD(a_sandboxed_jobs_own_limit_is_over_before_the_watchdog),
    };
    return test_group("runtime/watchdog", tests, NULL, NULL);
}
