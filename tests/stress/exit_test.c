/* SPDX-License-Identifier: MIT */
/* Goal: a process ends at once whatever its workers do, and a body that outlived its runtime has
 * touched nothing of it (O58, O59, C-D1, C-D4).
 * Method: this program runs itself again with a case's name in the environment; the case leaves a
 * worker stuck and returns from main.  The parent looks at how, and how soon, it ended. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/async.h"
#include "errand/executor.h"
#include "errand/testing.h"
#include "gate.h"
#include "stress.h"

#define CASE_VARIABLE "ERRAND_EXIT_CASE"
#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition))                                                                \
            return __LINE__ % 200 + 1;                                                   \
    } while (0)

extern char **environ;

/* ---- the child --------------------------------------------------------------------------------------- */

static test_gate gate;

static int32_t
sleep_for_ever(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    gate_open(&gate);
    for (;;)
        pause();
    return 0;
}
static int32_t
spin_for_ever(errand_job *job, void *state, errand_payload *out_payload)
{
    atomic_uint *word = state;

    (void)job;
    (void)out_payload;
    gate_open(&gate);
    for (;;)
        atomic_fetch_add_explicit(word, 1, memory_order_relaxed);
    return 0;
}
static const errand_job_type sleeping_type = {
    .struct_size = sizeof(errand_job_type), .name = "sleeping", .run = sleep_for_ever};
static const errand_job_type spinning_type = {
    .struct_size = sizeof(errand_job_type), .name = "spinning", .run = spin_for_ever};
static const errand_job_type polling_type = {
    .struct_size = sizeof(errand_job_type), .name = "polling", .poll = sleep_for_ever};

typedef struct victim {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    atomic_uint word;
} victim;

static victim the_victim; /* static: a leak checker at exit sees what hangs on it */

static int
begin(const errand_job_type *type, errand_resource_class class)
{
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 2};
    errand_spec spec = ERRAND_SPEC_INIT;
    victim *self = &the_victim;

    gate_init(&gate, "child");
    CHECK((class == ERRAND_INTERRUPTIBLE_ASYNC
               ? errand_async_create(NULL, &self->executor)
               : errand_blocking_create(&config, &self->executor)) == ERRAND_OK);
    CHECK(errand_runtime_create(NULL, &self->runtime) == ERRAND_OK);
    CHECK(errand_attach(self->runtime, self->executor, 0, &self->lease) == ERRAND_OK);
    spec.kind = 1;
    spec.resource_class = class;
    spec.held_job = type;
    spec.state = &self->word;
    spec.quarantine_ns = class == ERRAND_QUARANTINED_BLOCKING ? 1000000 : 0;
    CHECK(errand_start(self->lease, &spec, NULL, NULL) == ERRAND_OK);
    gate_wait(&gate); /* until the body runs */
    return 0;
}

static int
end_runtime(uint64_t within_ns)
{
    errand_report report;
    uint64_t began = errand__clock_now();

    CHECK(errand_runtime_shutdown(&the_victim.runtime, errand_deadline_in(within_ns),
                                  ERRAND_SHUTDOWN_QUIET, &report) == ERRAND_OK);
    CHECK(errand__clock_now() - began < within_ns + UINT64_C(10000000000));
    CHECK(report.undeliverable + report.held == 1 && !report.clean);
    errand_executor_abandon(&the_victim.executor);
    return 0;
}

static int
child_main(const char *name)
{
    int failed;

    if (strcmp(name, "no shutdown") == 0)
        return begin(&sleeping_type, ERRAND_INTERRUPTIBLE_BLOCKING);
    if (strcmp(name, "async") == 0)
        failed = begin(&polling_type, ERRAND_INTERRUPTIBLE_ASYNC);
    else if (strcmp(name, "written off") == 0)
        failed = begin(&sleeping_type, ERRAND_QUARANTINED_BLOCKING);
    else
        failed = begin(strcmp(name, "spinning") == 0 ? &spinning_type : &sleeping_type,
                       ERRAND_INTERRUPTIBLE_BLOCKING);
    return failed != 0 ? failed : end_runtime(20000000);
}

/* ---- the parent ----------------------------------------------------------------------------------------- */

static void
run_case(const char *name)
{
    char *argv[] = {(char *)(uintptr_t) "exit_test", NULL};
    int status = -1;
    pid_t child;

    assert_int_equal(setenv(CASE_VARIABLE, name, 1), 0);
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    unsetenv(CASE_VARIABLE);
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR); /* the watchdog ends a child that hangs */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void
process_that_shuts_nothing_down_ends_at_once(void **state)
{
    (void)state;
    run_case("no shutdown");
}

static void
process_with_a_body_that_outlived_its_runtime_ends_at_once(void **state)
{
    (void)state;
    run_case("sleeping");
    run_case("spinning");
}

static void
process_with_a_stuck_poll_ends_at_once(void **state)
{
    (void)state;
    run_case("async");
}

static void
process_with_a_worker_written_off_ends_at_once(void **state)
{
    (void)state;
    run_case("written off");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_that_shuts_nothing_down_ends_at_once),
        cmocka_unit_test(process_with_a_body_that_outlived_its_runtime_ends_at_once),
        cmocka_unit_test(process_with_a_stuck_poll_ends_at_once),
        cmocka_unit_test(process_with_a_worker_written_off_ends_at_once),
    };
    const char *name = getenv(CASE_VARIABLE);

    if (name != NULL) {
        watchdog_start(name, 20);
        return child_main(name);
    }
    return test_group("stress/exit", tests, NULL, NULL);
}
