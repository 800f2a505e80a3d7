/* SPDX-License-Identifier: MIT */
/* Goal: a host that forks while work is in flight gets every completion, once, and a child is told so
 * by every call, waits for nothing and may exit at once (O3, O61, C-E1, C-E4).
 * Method: forks at every moment of a stream of operations; the child asks and leaves. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/executor.h"
#include "errand/task.h"
#include "errand/testing.h"
#include "gate.h"
#include "stress.h"

typedef struct parent {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_inbox *inbox;
    uint64_t accepted, heard, dropped;
    test_gate gate;
} parent;

static int32_t
nothing(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}
static int32_t
wait_at_gate(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    gate_wait(&((parent *)state)->gate);
    return 0;
}
static void
drop(void *state)
{
    ((parent *)state)->dropped++;
}
static const errand_job_type nothing_type = {.struct_size = sizeof(errand_job_type),
                                             .name = "nothing",
                                             .run = nothing,
                                             .drop = drop};
static const errand_job_type gated_type = {.struct_size = sizeof(errand_job_type),
                                           .name = "gated",
                                           .run = wait_at_gate,
                                           .drop = drop};

static void
hear(void *arg, errand_completion *completion)
{
    parent *self = arg;

    assert_int_equal(completion->outcome, ERRAND_COMPLETED);
    self->heard++;
}

static void
parent_open(parent *self, uint32_t workers)
{
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = workers, .workers_max = workers};

    *self = (parent){.heard = 0};
    gate_init(&self->gate, "in flight");
    assert_int_equal(errand_blocking_create(&config, &self->executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, self->executor, 0, &self->lease),
                     ERRAND_OK);
    assert_int_equal(errand_inbox_open(self->runtime, &self->inbox), ERRAND_OK);
}

static errand_status
start(parent *self, const errand_job_type *type)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = type;
    spec.state = self;
    return errand_start(self->lease, &spec, NULL, NULL);
}

static void
submit(parent *self, const errand_job_type *type)
{
    assert_int_equal(start(self, type), ERRAND_OK);
    self->accepted++;
}

static void
drain(parent *self)
{
    size_t count;

    assert_int_equal(errand_drain(self->runtime, SIZE_MAX, hear, self, &count),
                     ERRAND_OK);
}

static void
parent_close(parent *self)
{
    errand_report report;

    while (self->heard < self->accepted) {
        drain(self);
        if (self->heard < self->accepted)
            assert_int_equal(errand_park(self->runtime, UINT64_MAX), ERRAND_OK);
    }
    errand_inbox_abandon(&self->inbox);
    assert_int_equal(errand_runtime_shutdown(&self->runtime,
                                             errand_deadline_in(UINT64_C(20000000000)),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_true(report.clean);
    assert_int_equal(report.accounts.accepted, self->accepted);
    assert_int_equal(report.accounts.drained, self->accepted);
    assert_int_equal(report.accounts.completed, self->accepted);
    assert_int_equal(self->heard, self->accepted);
    assert_int_equal(self->dropped, self->accepted);
    errand_executor_abandon(&self->executor);
    gate_fini(&self->gate);
}

/* ---- the child -------------------------------------------------------------------------------------- */

/* 0, or which question was answered wrongly. */
static int
ask(parent *self)
{
    errand_executor *executor = self->executor;
    errand_runtime *runtime = self->runtime;
    errand_lease *lease = self->lease;
    errand_snapshot snapshot;
    errand_command command = {.fn = NULL};
    errand_turn turn;
    size_t count;
    int fd;

    if (start(self, &nothing_type) != ERRAND_EFORKED)
        return 1;
    if (errand_drain(runtime, SIZE_MAX, hear, self, &count) != ERRAND_EFORKED)
        return 2;
    if (errand_drive(runtime, NULL, &turn) != ERRAND_EFORKED)
        return 3;
    if (errand_park(runtime, UINT64_MAX) != ERRAND_EFORKED ||
        errand_lease_wait_room(lease, UINT64_MAX) != ERRAND_EFORKED)
        return 4;
    if (errand_runtime_snapshot(runtime, &snapshot) != ERRAND_EFORKED ||
        errand_lease_snapshot(lease, &snapshot) != ERRAND_EFORKED)
        return 5;
    if (errand_runtime_wake_fd(runtime, &fd) != ERRAND_EFORKED)
        return 6;
    if (errand_post(self->inbox, &command) != ERRAND_EFORKED)
        return 7;
    if (errand_lease_shutdown(&lease, UINT64_MAX, NULL) != ERRAND_EFORKED)
        return 8;
    if (errand_runtime_shutdown(&runtime, UINT64_MAX, ERRAND_SHUTDOWN_RUN, NULL) !=
        ERRAND_EFORKED)
        return 9;
    errand_interrupt(self->inbox);
    errand_executor_abandon(&executor);
    return 0;
}

static void
fork_once(parent *self)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        int wrong = ask(self);

        if (ERRAND_SANITIZED) /* whose exit handlers do not expect it */
            _exit(wrong);
        exit(wrong);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void
a_child_of_four_running_jobs_is_refused_and_exits_at_once(void **state)
{
    static parent self;

    (void)state;
    fflush(NULL); /* a child that exits writes what it finds there */
    parent_open(&self, 4);
    for (int i = 0; i < 4; i++)
        submit(&self, &gated_type);
    for (int i = 0; i < 4; i++)
        gate_await_arrival(&self.gate);
    for (int i = 0; i < 20; i++)
        submit(&self, &nothing_type); /* queued: all workers are at the gate */
    fork_once(&self);
    fork_once(&self);
    gate_open_many(&self.gate, 4);
    parent_close(&self);
}

static void
forks_at_any_moment_lose_nothing(void **state)
{
    static parent self;
    uint64_t forks = stress_rounds(1000);
    race random = {.random = 5};

    (void)state;
    fflush(NULL);
    parent_open(&self, 2);
    for (uint64_t i = 0; i < forks; i++) {
        for (uint64_t k = race_random(&random) % 64; k > 0; k--)
            submit(&self, &nothing_type);
        race_delay(race_random(&random) % 5000);
        fork_once(&self);
        if (race_random(&random) % 4 == 0)
            drain(&self);
        while (self.accepted - self.heard > 1000)
            drain(&self);
    }
    parent_close(&self);
}

/* The child makes objects of its own, and they work: nothing of the parent's is in the way. */
static int
live_anew(void)
{
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    parent self = {.heard = 0};
    size_t count;

    if (errand_manual_create(NULL, &executor) != ERRAND_OK ||
        errand_runtime_create(NULL, &runtime) != ERRAND_OK ||
        errand_attach(runtime, executor, 0, &lease) != ERRAND_OK)
        return 1;
    self.lease = lease;
    if (start(&self, &nothing_type) != ERRAND_OK ||
        errand_manual_step(executor, 1, &count) != ERRAND_OK || count != 1 ||
        errand_drain(runtime, 1, hear, &self, &count) != ERRAND_OK || self.heard != 1)
        return 2;
    if (errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL) != ERRAND_OK)
        return 3;
    errand_executor_abandon(&executor);
    return 0;
}

static void
a_child_may_make_objects_of_its_own(void **state)
{
    static parent self;
    int status = -1;

    (void)state;
    parent_open(&self, 2);
    submit(&self, &gated_type);
    gate_await_arrival(&self.gate);
    pid_t child = fork();
    if (child == 0)
        _exit(live_anew());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gate_open(&self.gate);
    parent_close(&self);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_of_four_running_jobs_is_refused_and_exits_at_once),
        cmocka_unit_test(forks_at_any_moment_lose_nothing),
        cmocka_unit_test(a_child_may_make_objects_of_its_own),
    };

    return test_group("stress/fork", tests, NULL, NULL);
}
