/* SPDX-License-Identifier: MIT */
/* Goal: tests of bodies say what goes in and what must come out, and nothing else.
 * Method: every body runs through a real runtime and executor, and is drained from there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rig.h"
#include "descriptors.h"

static void take(void *arg, errand_completion *completion);
static void clear(test_rig *rig);
static int setup(void **state, bool threads);

int
rig_setup_manual(void **state)
{
    return setup(state, false);
}

int
rig_setup_threads(void **state)
{
    return setup(state, true);
}

static int
setup(void **state, bool threads)
{
    test_rig *made = calloc(1, sizeof *made);
    const errand_blocking_config pool = {
        .struct_size = sizeof pool, .workers_min = 1, .workers_max = 2};
    const errand_manual_config manual = {.struct_size = sizeof manual};

    assert_non_null(made);
    made->threads = threads;
    made->fds = test_count_descriptors();
    made->bytes = errand_testing_live_bytes();
    snprintf(made->dir, sizeof made->dir, "/tmp/errand-operations-XXXXXX");
    assert_non_null(mkdtemp(made->dir));
    assert_int_equal(threads ? errand_blocking_create(&pool, &made->executor)
                             : errand_manual_create(&manual, &made->executor),
                     ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &made->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(made->runtime, made->executor, 0, &made->lease),
                     ERRAND_OK);
    *state = made;
    return 0;
}

int
rig_teardown(void **state)
{
    test_rig *done = *state;
    errand_report report;
    char command[128];

    clear(done);
    assert_int_equal(errand_runtime_shutdown(&done->runtime,
                                             errand_deadline_in(30000000000u),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_true(report.clean);
    errand_executor_abandon(&done->executor);
    snprintf(command, sizeof command, "rm -rf %s", done->dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(test_count_descriptors(), done->fds);
    assert_int_equal(errand_testing_live_bytes(), done->bytes);
    free(done);
    return 0;
}

void
rig_run(test_rig *rig, errand_spec *spec)
{
    errand_identity identity;

    rig_start(rig, spec, &identity);
    rig_await_end(rig);
}

void
rig_start(test_rig *rig, errand_spec *spec, errand_identity *out_identity)
{
    clear(rig);
    assert_int_equal(errand_start(rig->lease, spec, rig, out_identity), ERRAND_OK);
}

void
rig_cancel(test_rig *rig, const errand_identity *identity)
{
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(rig->runtime, identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
}

void
rig_await_running(test_rig *rig)
{
    errand_snapshot snapshot;

    do {
        assert_int_equal(errand_runtime_snapshot(rig->runtime, &snapshot), ERRAND_OK);
        assert_int_equal(snapshot.undrained, 0);
    } while (snapshot.running == 0);
}

void
rig_await_end(test_rig *rig)
{
    size_t count = 0;

    while (rig->result.completions == 0) {
        if (!rig->threads)
            assert_int_equal(errand_manual_step(rig->executor, 1, &count), ERRAND_OK);
        else
            assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(rig->runtime, 16, take, rig, &count), ERRAND_OK);
    }
    assert_int_equal(rig->result.completions, 1);
    assert_int_equal(errand_drain(rig->runtime, 16, take, rig, &count), ERRAND_OK);
    assert_int_equal(rig->result.completions, 1);
}

static void
take(void *arg, errand_completion *completion)
{
    rig_result *result = &((test_rig *)arg)->result;

    assert_ptr_equal(completion->wait, arg);
    result->completions++;
    result->outcome = completion->outcome;
    result->code = completion->code;
    result->job_code = completion->job_code;
    result->sys_errno = completion->sys_errno;
    result->signal_number = completion->signal_number;
    result->flags = completion->flags;
    snprintf(result->message, sizeof result->message, "%s",
             completion->message == NULL ? "" : completion->message);
    snprintf(result->system_call, sizeof result->system_call, "%s",
             completion->system_call == NULL ? "" : completion->system_call);
    snprintf(result->operation, sizeof result->operation, "%s", completion->operation);
    result->payload = errand_completion_take(completion);
}

static void
clear(test_rig *rig)
{
    errand_payload_drop(&rig->result.payload);
    memset(&rig->result, 0, sizeof rig->result);
}

void
rig_await_held(test_rig *rig)
{
    errand_snapshot snapshot;
    size_t count;

    do {
        assert_int_equal(errand_drain(rig->runtime, 16, take, rig, &count), ERRAND_OK);
        assert_int_equal(count, 0);
        assert_int_equal(errand_runtime_snapshot(rig->runtime, &snapshot), ERRAND_OK);
    } while (snapshot.held != 0);
    assert_int_equal(snapshot.returned_late, 1);
}

const void *
rig_payload(test_rig *rig, const errand_payload_type *type)
{
    if (rig->result.outcome != ERRAND_COMPLETED)
        print_error("%s: %s\n", rig->result.operation, rig->result.message);
    assert_int_equal(rig->result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(rig->result.payload.held_type, type);
    if (type != NULL)
        assert_non_null(rig->result.payload.data);
    return rig->result.payload.data;
}

void
rig_assert_failed(test_rig *rig, errand_operation_code code, int sys_errno)
{
    if (rig->result.job_code != (int32_t)code)
        print_error("%s: %s\n", rig->result.operation, rig->result.message);
    assert_int_equal(rig->result.outcome, ERRAND_FAILED);
    assert_int_equal(rig->result.code, ERRAND_CODE_JOB);
    assert_string_equal(errand_operation_code_name(rig->result.job_code),
                        errand_operation_code_name((int32_t)code));
    assert_int_equal(rig->result.sys_errno, sys_errno);
    assert_int_equal(sys_errno != 0, rig->result.system_call[0] != 0);
    assert_null(rig->result.payload.data);
}

void
rig_assert_says(test_rig *rig, const char *part)
{
    if (strstr(rig->result.message, part) == NULL)
        fail_msg("'%s' is not in: %s", part, rig->result.message);
}

const char *
rig_path(test_rig *rig, const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", rig->dir, name);
    return path;
}

void
rig_put(test_rig *rig, const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(rig_path(rig, name), "we");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void
rig_put_executable(test_rig *rig, const char *name, const char *text)
{
    rig_put(rig, name, text, strlen(text));
    assert_int_equal(chmod(rig_path(rig, name), 0755), 0);
}
