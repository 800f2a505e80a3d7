/* SPDX-License-Identifier: MIT */
/* Goal: an operation whose worker is killed, dies or cannot be started ends once, soon, with the
 * right code; nothing stays behind.  Method: simulated workers that hang, obey or die as told. */
#include "pool_rig.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define MS UINT64_C(1000000)

static void
a_deadline_ends_the_operation_before_its_worker_is_dead(void **state) /* S8 */
{
    rig *self = *state;
    const rig_news *news;

    self->policy.deadline_ns = 300 * MS; /* the next job has to be faster */
    rig_begin(self);
    atomic_store_explicit(&self->sim.deaf, true,
                          memory_order_release); /* the kill takes no effect yet */
    news = rig_run(self, SIM_HANG, 0);
    assert_int_equal(news->outcome, ERRAND_FAILED);
    assert_int_equal(news->code, ERRAND_CODE_DEADLINE);
    assert_non_null(
        strstr(news->message, "its deadline of 300 ms passed, the policy's (its "));
    while (rig_snapshot(self).dying != 1) { /* it is told first */
    }
    assert_int_equal(atomic_load_explicit(&self->sim.reaps, memory_order_acquire), 0);
    atomic_store_explicit(&self->sim.deaf, false, memory_order_release);
    assert_int_equal(rig_run(self, SIM_PATTERN, 1)->outcome, ERRAND_COMPLETED);
    assert_int_equal(atomic_load_explicit(&self->sim.reaps, memory_order_acquire), 1);
}

typedef struct turns {
    atomic_uint count;
} turns;

static void
count_turns(void *arg, const char *place)
{
    if (strcmp(place, "monitor-sleep") == 0)
        atomic_fetch_add_explicit(&((turns *)arg)->count, 1, memory_order_relaxed);
}

/* While the sim is deaf a kill does nothing, as where the host has no right to it. */
static void
a_worker_that_cannot_be_killed_is_tried_again_and_keeps_no_thread_busy(void **state)
{
    enum { KILLS = 4, MOST = 100 };
    static turns seen;
    rig *self = *state;

    self->policy.deadline_ns = 300 * MS;
    rig_begin(self);
    atomic_store_explicit(&self->sim.deaf, true, memory_order_release);
    assert_int_equal(rig_run(self, SIM_HANG, 0)->code, ERRAND_CODE_DEADLINE);
    while (rig_snapshot(self).dying != 1) {
    }
    atomic_store_explicit(&seen.count, 0, memory_order_relaxed);
    errand_testing_pause(count_turns, &seen);
    while (atomic_load_explicit(&self->sim.kills, memory_order_relaxed) < KILLS &&
           atomic_load_explicit(&seen.count, memory_order_relaxed) < MOST)
        sched_yield();
    errand_testing_pause(NULL, NULL);
    assert_true(atomic_load_explicit(&seen.count, memory_order_relaxed) < MOST);
    atomic_store_explicit(&self->sim.deaf, false, memory_order_release);
    assert_int_equal(rig_run(self, SIM_PATTERN, 1)->outcome, ERRAND_COMPLETED);
    assert_int_equal(atomic_load_explicit(&self->sim.reaps, memory_order_acquire), 1);
}

static void
a_deadline_of_the_operations_own_counts_from_submit(void **state) /* S8 */
{
    rig *self = *state;
    errand_spec spec;
    errand_identity first;

    rig_begin(self);
    first = rig_start(self, 1, SIM_HANG, 0); /* it has no deadline, and no end */
    spec = rig_spec(self, SIM_HANG, 0, NULL, 0);
    spec.deadline_ns = 10 * MS; /* it is queued behind the first */
    rig_start_spec(self, 2, &spec);
    rig_await(self, 1);
    assert_int_equal(self->news[0].wait, 2);
    assert_int_equal(self->news[0].code, ERRAND_CODE_DEADLINE);
    assert_int_equal(errand_cancel(self->runtime, &first, ERRAND_REASON_EXPLICIT, NULL),
                     ERRAND_OK);
    rig_await(self, 2);
    rig_await_ready(self, 1);
    spec = rig_spec(self, SIM_HANG, 0, NULL, 0);
    spec.deadline_ns = 10 * MS; /* a worker has it at once */
    rig_start_spec(self, 3, &spec);
    rig_await(self, 3);
    assert_int_equal(self->news[2].outcome, ERRAND_FAILED);
    assert_int_equal(self->news[2].code, ERRAND_CODE_DEADLINE);
    assert_non_null(strstr(self->news[2].message,
                           "its deadline of 10 ms passed, counted from its submit"));
}

static void
a_cancelled_one_is_killed_at_once_without_a_grace(void **state) /* S9 */
{
    rig *self = *state;
    errand_identity identity;
    errand_cancel_answer answer;

    rig_begin(self);
    identity = rig_start(self, 0, SIM_HANG, 0);
    assert_int_equal(
        errand_cancel(self->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
    rig_await(self, 1);
    assert_int_equal(self->news[0].outcome, ERRAND_FAILED);
    assert_int_equal(self->news[0].code, ERRAND_CODE_CANCELLED);
    assert_int_equal(rig_run(self, SIM_PATTERN, 1)->outcome, ERRAND_COMPLETED);
}

static void
a_grace_lets_a_cancelled_one_answer_itself(void **state) /* S9 */
{
    rig *self = *state;
    errand_identity identity;

    self->policy.grace_ns = 5000 * MS;
    rig_begin(self);
    identity = rig_start(self, 0, SIM_OBEY, 0);
    assert_int_equal(
        errand_cancel(self->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL), ERRAND_OK);
    rig_await(self, 1);
    assert_int_equal(self->news[0].code, ERRAND_CODE_JOB);
    assert_int_equal(self->news[0].job_code, 7);
    assert_int_equal(atomic_load_explicit(&self->sim.kills, memory_order_acquire), 0);
}

static void
a_queued_one_is_cancelled_at_once(void **state) /* S9, O22 */
{
    rig *self = *state;
    errand_cancel_answer answer;
    errand_identity first, queued[100];

    rig_begin(self);
    first = rig_start(self, 1000, SIM_HANG, 0);
    for (uintptr_t i = 0; i < 100; i++)
        queued[i] = rig_start(self, i, SIM_PATTERN, 1);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(
            errand_cancel(self->runtime, &queued[i], ERRAND_REASON_EXPLICIT, &answer),
            ERRAND_OK);
        assert_int_equal(answer, ERRAND_CANCEL_CANCELLED);
    }
    rig_await(self, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(self->news[i].outcome, ERRAND_CANCELLED);
    for (uintptr_t i = 0; i < 100; i++) /* in the same records */
        rig_start(self, i, SIM_PATTERN, i);
    assert_int_equal(errand_cancel(self->runtime, &first, ERRAND_REASON_EXPLICIT, NULL),
                     ERRAND_OK);
    rig_await(self, 201);
    for (int i = 101; i < 201; i++)
        assert_int_equal(self->news[i].size, self->news[i].wait);
}

static void
check_end(rig *self, int how, int status, errand_code code)
{
    const rig_news *news = rig_run(self, SIM_DIE, (uint64_t)(how << 8 | status));

    assert_int_equal(news->outcome, ERRAND_CRASHED);
    assert_int_equal(news->code, code);
    if (code == ERRAND_CODE_EXITED)
        assert_int_equal(news->job_code, status);
    else if (code != ERRAND_CODE_WORKER_LOST)
        assert_int_equal(news->signal_number, status);
    assert_int_equal(news->more_status, ERRAND_OK);
    assert_true(news->more.layers != 0);
}

static void
each_end_of_a_worker_has_its_code(void **state) /* S10, S11, O29, C-L11, C-F6 */
{
    rig *self = *state;

    self->config.crash_limit = 1000;
    rig_begin(self);
    check_end(self, CLD_EXITED, 7, ERRAND_CODE_EXITED);
    check_end(self, CLD_EXITED, 0, ERRAND_CODE_EXITED);
    check_end(self, CLD_EXITED, 90, ERRAND_CODE_EXITED);
    check_end(self, CLD_EXITED, 124, ERRAND_CODE_EXITED);
    check_end(self, CLD_EXITED, 137, ERRAND_CODE_EXITED);
    check_end(self, CLD_EXITED, 159, ERRAND_CODE_EXITED);
    check_end(self, CLD_KILLED, SIGABRT, ERRAND_CODE_CRASHED);
    check_end(self, CLD_DUMPED, SIGSEGV, ERRAND_CODE_CRASHED);
    check_end(self, CLD_KILLED, SIGSYS, ERRAND_CODE_POLICY);
    check_end(self, CLD_KILLED, SIGXCPU, ERRAND_CODE_CPU);
    check_end(self, CLD_KILLED, SIGXFSZ, ERRAND_CODE_OUTPUT);
    check_end(self, CLD_KILLED, SIGKILL, ERRAND_CODE_KILLED);
    atomic_store_explicit(&self->sim.thief, true, memory_order_release);
    check_end(self, CLD_EXITED, 3, ERRAND_CODE_WORKER_LOST);
    atomic_store_explicit(&self->sim.thief, false, memory_order_release);
    assert_int_equal(rig_snapshot(self).crashed, 13);
}

static void
a_limit_that_was_met_is_told_by_its_name(void **state) /* S10 */
{
    rig *self = *state;
    const rig_news *news;

    self->config.crash_limit = 1000;
    self->policy.cpu_seconds = 77;
    self->policy.descriptors = 33;
    rig_begin(self);
    news = rig_run(self, SIM_DIE, CLD_KILLED << 8 | SIGXCPU);
    assert_non_null(strstr(news->message, "cpu_seconds of the policy, 77, which counts"));
    news = rig_run(self, SIM_DIE, CLD_KILLED << 8 | SIGSEGV);
    assert_null(strstr(news->message, "stack_bytes"));
    news = rig_run(self, SIM_DIE, CLD_KILLED << 8 | SIGXFSZ);
    assert_non_null(strstr(news->message, "file_bytes of the policy, 0"));
    news = rig_run(self, SIM_FAIL, UINT64_C(5) | (uint64_t)EMFILE << 32);
    assert_int_equal(news->sys_errno, EMFILE);
    assert_string_equal(news->message, "sim failed (descriptors of the policy is 33)");
    news = rig_run(self, SIM_FAIL, UINT64_C(5) | (uint64_t)EDOM << 32);
    assert_string_equal(news->message, "sim failed");
}

static void
a_limit_of_processor_time_that_is_not_the_policys_is_not_told_as_its(
    void **state) /* S10 */
{
    rig *self = *state;
    const rig_news *news;

    self->config.crash_limit = 1000;
    self->policy.cpu_seconds = 0;
    rig_begin(self);
    news = rig_run(self, SIM_DIE, CLD_KILLED << 8 | SIGXCPU);
    assert_null(strstr(news->message, "cpu_seconds"));
    assert_non_null(strstr(news->message, "SIGXCPU"));
}

static void
a_worker_is_recycled_after_its_number_of_jobs(void **state) /* S13 */
{
    rig *self = *state;

    self->policy.reuse = 3;
    rig_begin(self);
    for (int i = 0; i < 30; i++)
        assert_int_equal(rig_run(self, SIM_PATTERN, 5)->outcome, ERRAND_COMPLETED);
    rig_await_started(self, 11);
    assert_int_equal(rig_snapshot(self).recycled, 10);
}

static void
a_warm_pool_starts_nothing_between_jobs(void **state) /* S13 */
{
    rig *self = *state;

    rig_begin(self);
    for (int i = 0; i < 500; i++)
        rig_run(self, SIM_PATTERN, 5);
    assert_int_equal(rig_snapshot(self).started, 1);
}

static void
a_start_that_fails_is_said_by_create(void **state)
{
    rig *self = *state;
    errand__launcher launcher = sim_launcher(&self->sim);

    self->config.policy = &self->policy;
    atomic_store_explicit(&self->sim.start_error, ENOENT, memory_order_release);
    assert_int_equal(errand__sandbox_make(&self->config, &launcher, &self->executor,
                                          self->text, sizeof self->text),
                     ERRAND_ESYSTEM);
    assert_non_null(strstr(self->text, "No such file"));
    atomic_store_explicit(&self->sim.start_error, 0, memory_order_release);
    atomic_store_explicit(&self->sim.setup_status, ERRAND__SETUP_LAYER,
                          memory_order_release);
    assert_int_equal(errand__sandbox_make(&self->config, &launcher, &self->executor,
                                          self->text, sizeof self->text),
                     ERRAND_EUNSUPPORTED);
    assert_non_null(strstr(self->text, "sim has no landlock"));
    atomic_store_explicit(&self->sim.setup_status, 0, memory_order_release);
    rig_begin(self);
    assert_int_equal(rig_run(self, SIM_PATTERN, 1)->outcome, ERRAND_COMPLETED);
}

static void
what_is_queued_fails_when_no_worker_can_be_started(void **state) /* S14 */
{
    rig *self = *state;

    rig_begin(self);
    atomic_store_explicit(&self->sim.start_error, EAGAIN, memory_order_release);
    rig_start(self, 1, SIM_DIE, CLD_KILLED << 8 | SIGSEGV);
    rig_start(self, 2, SIM_PATTERN, 1);
    rig_start(self, 3, SIM_PATTERN, 1);
    rig_await(self, 3);
    assert_int_equal(self->news[0].code, ERRAND_CODE_CRASHED);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(self->news[i].outcome, ERRAND_FAILED);
        assert_int_equal(self->news[i].code, ERRAND_CODE_SPAWN);
        assert_int_equal(self->news[i].more.pid, -1);
        assert_true(self->news[i].more.retry_hint);
        assert_non_null(strstr(self->news[i].message, "could not be started"));
    }
    atomic_store_explicit(&self->sim.start_error, 0, memory_order_release);
    rig_await_ready(self, 1); /* it is tried again by itself */
    assert_int_equal(rig_run(self, SIM_PATTERN, 1)->outcome, ERRAND_COMPLETED);
}

static void
too_many_crashes_open_the_breaker_for_a_while(void **state) /* S14, 96 */
{
    rig *self = *state;

    for (int brief = 0; brief < 2;
         brief++) { /* it stays open longer than anybody sleeps */
        const rig_news *news;

        self->config.crash_limit = 3;
        self->config.crash_window_ns = 60000 * MS;
        self->config.breaker_ns = brief ? 100 * MS : 60000 * MS;
        rig_begin(self);
        for (int i = 0; i < 3; i++) {
            news = rig_run(self, SIM_DIE, CLD_KILLED << 8 | SIGSEGV);
            assert_int_equal(news->code, ERRAND_CODE_CRASHED);
        }
        if (brief) {
            rig_await_ready(self, 1);
            assert_int_equal(rig_run(self, SIM_PATTERN, 1)->outcome, ERRAND_COMPLETED);
            continue;
        }
        news = rig_run(self, SIM_PATTERN, 1);
        assert_int_equal(news->code, ERRAND_CODE_SPAWN);
        assert_non_null(strstr(news->message, "too many workers crashed"));
        assert_int_not_equal(news->message[strlen(news->message) - 1], ' ');
        assert_true(rig_snapshot(self).breaker_open);
        rig_end(self);
    }
}

static void
a_shutdown_ends_what_runs_and_what_waits(void **state) /* S15, 84 */
{
    rig *self = *state;
    errand_report report;

    self->config.workers_max = 4;
    self->policy.grace_ns = 60000 * MS; /* a cancel alone ends nothing */
    rig_begin(self);
    for (uintptr_t i = 0; i < 20; i++)
        rig_start(self, i, SIM_HANG, 0);
    assert_int_equal(errand_runtime_shutdown(&self->runtime, errand_deadline_in(50 * MS),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_int_equal(report.undeliverable, 0);
    assert_int_equal(report.accounts.accepted, 20);
    assert_int_equal(report.accounts.drained, 20);
    assert_int_equal(self->dropped, 20);
}

static void
a_lease_ends_while_the_runtime_goes_on(void **state) /* S15 */
{
    rig *self = *state;
    errand_report report;

    self->policy.grace_ns = 60000 * MS;
    rig_begin(self);
    rig_start(self, 1, SIM_HANG, 0);
    rig_start(self, 2, SIM_HANG, 0);
    assert_int_equal(
        errand_lease_shutdown(&self->lease, errand_deadline_in(20 * MS), &report),
        ERRAND_OK);
    rig_await(self, 2);
    assert_int_equal(self->news[0].outcome, ERRAND_CANCELLED);
    assert_int_equal(self->news[1].code, ERRAND_CODE_CANCELLED);
    assert_int_equal(self->news[1].outcome, ERRAND_FAILED);
}

static void
the_executor_may_go_before_its_leases(void **state)
{
    rig *self = *state;

    rig_begin(self);
    errand_executor_abandon(&self->executor);
    assert_int_equal(rig_run(self, SIM_PATTERN, 7)->size, 7);
}

/* 81: the answer comes just when the deadline does; each ends once, both ways occur. */
static void
deadline_and_answer_race_to_one_end(void **state)
{
    rig *self = *state;
    uint64_t rounds = test_scaled(2000), answered = 0, late = 0, delay_us = 2000;

    self->config.crash_limit = 60000;
    self->config.workers_max = 2;
    self->config.workers_min = 2;
    self->policy.deadline_ns = 2 * MS;
    rig_begin(self);
    for (uint64_t i = 0; i < rounds; i++) {
        errand_spec spec = rig_spec(self, SIM_SLOW, delay_us, "x", 1);
        const rig_news *news;

        rig_start_spec(self, 0, &spec);
        rig_await(self, self->count + 1);
        news = &self->news[(self->count - 1) % RIG_NEWS];
        if (news->outcome == ERRAND_COMPLETED) {
            answered++;
            delay_us += 50;
        } else {
            assert_int_equal(news->code, ERRAND_CODE_DEADLINE);
            late++;
            delay_us -= delay_us > 100 ? 50 : 0;
        }
    }
    assert_int_equal(self->dropped, rounds);
    assert_true(answered * 20 >= rounds);
    assert_true(late * 20 >= rounds);
}

static void
an_unknown_entry_gets_a_worker_that_knows_it(void **state)
{
    rig *self = *state;

    rig_begin(self);
    rig_run(self, SIM_PATTERN, 1);
    rig_symbol = "second";
    assert_int_equal(rig_run(self, SIM_PATTERN, 4)->size, 4);
    assert_int_equal(rig_snapshot(self).started, 2);
    rig_symbol = "first";
    assert_int_equal(rig_run(self, SIM_PATTERN, 5)->size, 5);
    assert_int_equal(rig_snapshot(self).started, 2);
}

static void
an_idle_worker_that_knows_less_makes_room_while_others_are_busy(void **state)
{
    rig *self = *state;

    self->config.workers_min = self->config.workers_max = 2;
    rig_begin(self);
    rig_run(self, SIM_PATTERN, 1);
    rig_symbol = "second";
    rig_run(self, SIM_PATTERN, 1); /* one of the two was replaced for it */
    rig_start(self, 1000, SIM_HANG, 0);
    rig_start(self, 1001, SIM_PATTERN, 4);
    rig_await(self, 3);
    assert_int_equal(self->news[2].wait, 1001);
    assert_int_equal(self->news[2].size, 4);
    rig_symbol = "first";
}

static void
short_jobs_in_a_queue_leave_no_job_behind_a_long_one(void **state)
{
    rig *self = *state;

    self->config.workers_min = self->config.workers_max = 2;
    rig_begin(self);
    rig_await_ready(self, 2);
    for (uintptr_t round = 0; round < 20; round++) {
        for (uintptr_t i = 0; i < 32; i++)
            rig_start(self, i, SIM_PATTERN, 1);
        rig_await(self, 32 * (round + 1));
    }
    rig_start(self, 1000, SIM_HANG, 0);
    rig_start(self, 1001, SIM_PATTERN, 4);
    rig_await(self, 641);
    assert_int_equal(self->news[640 % RIG_NEWS].wait, 1001);
}

static void
other_entries_are_refused_where_they_are_fixed(void **state)
{
    rig *self = *state;
    errand_spec spec;

    self->policy.entries_fixed = true;
    rig_begin(self);
    rig_symbol = "second";
    spec = rig_spec(self, SIM_PATTERN, 1, NULL, 0);
    assert_int_equal(errand_start(self->lease, &spec, NULL, NULL), ERRAND_EUNSUPPORTED);
    rig_job_type.drop(spec.state);
    rig_symbol = "first";
    assert_int_equal(rig_run(self, SIM_PATTERN, 5)->size, 5);
}

static void
what_cannot_be_written_down_is_refused(void **state)
{
    rig *self = *state;
    static unsigned char large[70000];
    errand_job_type plain = rig_job_type;
    errand_spec spec;

    self->policy.in_bytes = 65536;
    rig_begin(self);
    spec = rig_spec(self, SIM_ECHO, 0, large, sizeof large);
    assert_int_equal(errand_start(self->lease, &spec, NULL, NULL), ERRAND_EINVAL);
    plain.held_portable = NULL;
    spec.held_job = &plain;
    assert_int_equal(errand_start(self->lease, &spec, NULL, NULL), ERRAND_EUNSUPPORTED);
    rig_job_type.drop(spec.state);
}

int
main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_RIG(a_deadline_ends_the_operation_before_its_worker_is_dead),
        WITH_RIG(a_worker_that_cannot_be_killed_is_tried_again_and_keeps_no_thread_busy),
        WITH_RIG(a_deadline_of_the_operations_own_counts_from_submit),
        WITH_RIG(a_cancelled_one_is_killed_at_once_without_a_grace),
        WITH_RIG(a_grace_lets_a_cancelled_one_answer_itself),
        WITH_RIG(a_queued_one_is_cancelled_at_once),
        WITH_RIG(each_end_of_a_worker_has_its_code),
        WITH_RIG(a_limit_that_was_met_is_told_by_its_name),
        WITH_RIG(a_limit_of_processor_time_that_is_not_the_policys_is_not_told_as_its),
        WITH_RIG(a_worker_is_recycled_after_its_number_of_jobs),
        WITH_RIG(a_warm_pool_starts_nothing_between_jobs),
        WITH_RIG(a_start_that_fails_is_said_by_create),
        WITH_RIG(what_is_queued_fails_when_no_worker_can_be_started),
        WITH_RIG(too_many_crashes_open_the_breaker_for_a_while),
        WITH_RIG(a_shutdown_ends_what_runs_and_what_waits),
        WITH_RIG(a_lease_ends_while_the_runtime_goes_on),
        WITH_RIG(the_executor_may_go_before_its_leases),
        WITH_RIG(deadline_and_answer_race_to_one_end),
        WITH_RIG(an_unknown_entry_gets_a_worker_that_knows_it),
        WITH_RIG(an_idle_worker_that_knows_less_makes_room_while_others_are_busy),
        WITH_RIG(short_jobs_in_a_queue_leave_no_job_behind_a_long_one),
        WITH_RIG(other_entries_are_refused_where_they_are_fixed),
        WITH_RIG(what_cannot_be_written_down_is_refused),
    };
    return test_group("workers/sandbox/pool_ends", tests, NULL, NULL);
}
