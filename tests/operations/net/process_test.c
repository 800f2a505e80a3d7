/* SPDX-License-Identifier: MIT */
/* Goal: a process is fed, listened to, waited for and ended while it runs, and nothing of it is left.
 * Method: small programs of the shell; teardown finds processes and descriptors that stay. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/process.h"
#include "net_rig.h"

static int
teardown(void **state)
{
    int status = net_teardown(state);

    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return status;
}

static errand_process *
spawn(net_rig *rig, const char *script, uint32_t flags)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const errand_process_config config = {
        .struct_size = sizeof config, .flags = flags, .argv = argv};
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    if (result.outcome != ERRAND_COMPLETED)
        print_error("%s\n", result.message);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_process_type);
    return result.payload.data;
}

static errand_exit
await_exit(net_rig *rig, errand_process *process)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_process_wait(&spec, process), ERRAND_OK);
    net_run(rig, &spec, &result);
    if (result.outcome != ERRAND_COMPLETED)
        print_error("%s\n", result.message);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_exit_type);
    errand_exit exit = *(const errand_exit *)result.payload.data;
    net_clear(&result);
    return exit;
}

/* All of an output, to its end. */
static void
assert_output(net_rig *rig, errand_process *process, errand_output output,
              const char *text)
{
    net_result item = {.started = false};
    char got[256] = "";
    size_t used = 0;
    errand_source *source;
    errand_spec spec;

    assert_int_equal(errand_source_output(process, output, NULL, &source), ERRAND_OK);
    for (;;) {
        assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
        net_run(rig, &spec, &item);
        assert_int_equal(item.outcome, ERRAND_COMPLETED);
        if (item.payload.data == NULL)
            break;
        const errand_file_bytes *piece = item.payload.data;
        assert_true(used + piece->size < sizeof got);
        memcpy(got + used, piece->bytes, piece->size);
        used += piece->size;
    }
    net_clear(&item);
    assert_string_equal(got, text);
    errand_source_abandon(&source);
}

static void
a_process_is_fed_and_listened_to_while_it_runs(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false}, item = {.started = false};
    errand_process *process =
        spawn(rig, "while read line; do echo \"got $line\"; done; echo bye >&2; exit 7",
              ERRAND_PROCESS_INPUT | ERRAND_PROCESS_OUTPUT | ERRAND_PROCESS_ERRORS);
    errand_source *source, *second;
    errand_spec spec;

    assert_true(errand_process_id(process) > 0);
    assert_int_equal(errand_source_output(process, ERRAND_OUTPUT_OUT, NULL, &source),
                     ERRAND_OK);
    assert_int_equal(errand_source_output(process, ERRAND_OUTPUT_OUT, NULL, &second),
                     ERRAND_EBUSY);
    for (int i = 0; i < 3; i++) {
        char line[16], answer[32];

        snprintf(line, sizeof line, "%d\n", i);
        snprintf(answer, sizeof answer, "got %d\n", i);
        assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
        net_start(rig, &spec, &item);
        assert_int_equal(errand_spec_process_write(&spec, process, line, strlen(line)),
                         ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_nothing(&result);
        net_await(rig, &item);
        net_assert_bytes(&item, answer, strlen(answer));
    }
    assert_int_equal(errand_process_end_input(process), ERRAND_OK);
    errand_exit exit = await_exit(rig, process);
    assert_int_equal(exit.exit_status, 7);
    assert_int_equal(exit.signal_number, 0);
    assert_output(rig, process, ERRAND_OUTPUT_ERR, "bye\n");
    exit = await_exit(rig, process); /* the same again */
    assert_int_equal(exit.exit_status, 7);
    assert_int_equal(errand_process_signal(process, SIGTERM), ERRAND_EGONE);
    assert_int_equal(errand_spec_process_write(&spec, process, "x", 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_source_abandon(&source);
    errand_process_abandon(&process);
}

static void
both_outputs_can_be_one(void **state)
{
    net_rig *rig = *state;
    errand_process *process = spawn(rig, "echo a; echo b >&2; echo c",
                                    ERRAND_PROCESS_OUTPUT | ERRAND_PROCESS_TOGETHER);

    assert_output(rig, process, ERRAND_OUTPUT_OUT, "a\nb\nc\n");
    assert_int_equal(await_exit(rig, process).exit_status, 0);
    errand_process_abandon(&process);
}

/* A grandchild of the group that outlived the cancel would keep the pipe open. */
static void
a_cancelled_wait_ends_the_whole_group(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_process *process =
        spawn(rig, "trap '' TERM; (trap '' TERM; sleep 1000) & echo up; sleep 1000",
              ERRAND_PROCESS_OUTPUT);
    errand_source *source;
    errand_spec spec;

    assert_int_equal(errand_source_output(process, ERRAND_OUTPUT_OUT, NULL, &source),
                     ERRAND_OK);
    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "up\n", 3);
    assert_int_equal(errand_spec_process_wait(&spec, process), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    net_cancel(rig, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result); /* nobody has the other end any more */
    assert_int_equal(await_exit(rig, process).signal_number, SIGKILL);
    errand_source_abandon(&source);
    errand_process_abandon(&process);
}

static void
a_process_that_nobody_waits_for_goes_with_its_object(void **state)
{
    net_rig *rig = *state;
    errand_process *process = spawn(rig, "sleep 1000", 0);
    int32_t id = errand_process_id(process);

    errand_process_abandon(&process);
    assert_int_equal(kill(id, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void
a_signal_is_a_result_and_a_missing_command_a_failure(void **state)
{
    net_rig *rig = *state;
    const char *const argv[] = {"no-such-command-at-all", NULL};
    const errand_process_config config = {.struct_size = sizeof config, .argv = argv};
    net_result result = {.started = false};
    errand_process *process = spawn(rig, "exec sleep 1000", 0);
    errand_source *source;
    errand_spec spec;

    /* Not SIGINT: a shell that starts a command lets that one decide. */
    assert_int_equal(errand_process_signal(process, SIGUSR1), ERRAND_OK);
    assert_int_equal(await_exit(rig, process).signal_number, SIGUSR1);
    assert_int_equal(errand_source_output(process, ERRAND_OUTPUT_OUT, NULL, &source),
                     ERRAND_EINVAL);
    assert_int_equal(errand_spec_process_write(&spec, process, "x", 1), ERRAND_EINVAL);
    errand_process_abandon(&process);
    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_NOT_FOUND);
}

static void
a_write_to_a_process_that_does_not_read_fails_without_a_signal(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_process *process = spawn(rig, "exec <&-; sleep 1000", ERRAND_PROCESS_INPUT);
    const size_t size = 1 << 20;
    char *bytes = calloc(1, size);
    errand_spec spec;

    assert_int_equal(errand_spec_process_write(&spec, process, bytes, size), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.sys_errno, EPIPE);
    net_assert_failed(&result, ERRAND_OPERATION_SEND_FAILED);
    free(bytes);
    errand_process_abandon(&process);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, teardown)
    static const struct CMUnitTest tests[] = {
        WITH_NET(a_process_is_fed_and_listened_to_while_it_runs),
        WITH_NET(both_outputs_can_be_one),
        WITH_NET(a_cancelled_wait_ends_the_whole_group),
        WITH_NET(a_process_that_nobody_waits_for_goes_with_its_object),
        WITH_NET(a_signal_is_a_result_and_a_missing_command_a_failure),
        WITH_NET(a_write_to_a_process_that_does_not_read_fails_without_a_signal),
    };
    return test_group("operations/net/process", tests, NULL, NULL);
}
