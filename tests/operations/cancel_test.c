/* SPDX-License-Identifier: MIT */
/* Goal: a sleep and a command end soon after a cancel, and take along what they began.
 * Method: real threads; each operation would go on for hours, and tells through a FIFO or a
 * snapshot that it has begun; so an end at all shows that the cancel worked. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rig.h"

static void
assert_stopped(test_rig *rig)
{
    rig_assert_failed(rig, ERRAND_OPERATION_STOPPED, 0);
    assert_true((rig->result.flags & ERRAND_CANCEL_REQUESTED) != 0);
    rig_assert_says(rig, "was cancelled");
    rig_assert_says(rig, "start it again if it is still wanted");
}

/* Starts a shell that writes its pids into the FIFO "begun" and then goes on; answers them.  Its
 * deadline (0 = none) is looked at once they were read. */
static void
start_shell(test_rig *rig, const char *text, uint64_t term_ns, uint64_t deadline_ns,
            errand_identity *out_identity, int *out_pids, int count)
{
    const char *argv[] = {"sh", "-c", text, NULL};
    errand_command_config config = {
        .struct_size = sizeof config, .argv = argv, .cwd = rig->dir, .term_ns = term_ns};
    const char *fifo = rig_path(rig, "begun");
    errand_spec spec;

    unlink(fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_OK);
    spec.deadline_ns = deadline_ns;
    rig_start(rig, &spec, out_identity);
    FILE *begun = fopen(fifo, "re");
    assert_non_null(begun);
    for (int i = 0; i < count; i++)
        assert_int_equal(fscanf(begun, "%d", &out_pids[i]), 1);
    fclose(begun);
}

static void
a_sleep_ends_when_it_is_cancelled(void **state)
{
    test_rig *rig = *state;
    errand_identity identity;
    errand_spec spec;

    assert_int_equal(errand_spec_sleep(&spec, UINT64_MAX), ERRAND_OK);
    rig_start(rig, &spec, &identity);
    rig_await_running(rig);
    rig_cancel(rig, &identity);
    rig_await_end(rig);
    assert_stopped(rig);
}

static void
a_sleep_that_nobody_cancels_lasts_as_long_as_it_should(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;
    uint64_t before = errand_deadline_in(0);

    assert_int_equal(errand_spec_sleep(&spec, 30000000), ERRAND_OK);
    rig_run(rig, &spec);
    assert_null(rig_payload(rig, NULL));
    assert_true(errand_deadline_in(0) - before >= 30000000);
}

static void
a_cancelled_command_takes_its_whole_group_along(void **state)
{
    test_rig *rig = *state;
    errand_identity identity;
    int pids[2], status;

    /* Orphans come to us, so that their end can be seen. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    start_shell(rig, "sleep 1000 & echo $$ $! > begun; wait", 0, 0, &identity, pids, 2);
    rig_cancel(rig, &identity);
    rig_await_end(rig);
    assert_stopped(rig);
    rig_assert_says(rig, "'sh' was cancelled and ended by signal 15");
    assert_int_equal(rig->result.signal_number, SIGTERM);
    assert_int_equal(kill(pids[0], 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

static void
a_command_that_ignores_the_request_is_killed(void **state)
{
    test_rig *rig = *state;
    errand_identity identity;
    int pid;

    start_shell(rig, "trap '' TERM; echo $$ > begun; while :; do :; done", 30000000, 0,
                &identity, &pid, 1);
    uint64_t before = errand_deadline_in(0);
    rig_cancel(rig, &identity);
    rig_await_end(rig);
    assert_true(errand_deadline_in(0) - before >= 30000000);
    assert_stopped(rig);
    assert_int_equal(rig->result.signal_number, SIGKILL);
    assert_int_equal(kill(pid, 0), -1);
}

static void
a_command_may_clean_up_when_it_is_cancelled(void **state)
{
    test_rig *rig = *state;
    errand_identity identity;
    struct stat status;
    int pid;

    start_shell(rig,
                "trap 'echo > cleaned; exit 4' TERM; echo $$ > begun; "
                "while :; do sleep 0.01; done",
                20000000000u, 0, &identity, &pid, 1);
    rig_cancel(rig, &identity);
    rig_await_end(rig);
    assert_stopped(rig);
    rig_assert_says(rig, "exited with status 4");
    assert_int_equal(stat(rig_path(rig, "cleaned"), &status), 0);
}

/* O45: the deadline asks the hook, and what that leaves behind is reaped (teardown). */
static void
a_deadline_ends_a_command(void **state)
{
    test_rig *rig = *state;
    errand_identity identity;
    int pid;

    start_shell(rig, "echo $$ > begun; exec sleep 1000", 0, 50000000, &identity, &pid, 1);
    rig_await_end(rig);
    assert_int_equal(rig->result.outcome, ERRAND_FAILED);
    assert_int_equal(rig->result.code, ERRAND_CODE_DEADLINE);
    assert_int_equal(rig->result.job_code, ERRAND_OPERATION_STOPPED);
    rig_assert_says(rig, "'sh' was cancelled and ended by signal 15");
    assert_true((rig->result.flags & (ERRAND_HELD | ERRAND_LATE)) == 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sleep_ends_when_it_is_cancelled,
                                        rig_setup_threads, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_sleep_that_nobody_cancels_lasts_as_long_as_it_should, rig_setup_threads,
            rig_teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_command_takes_its_whole_group_along,
                                        rig_setup_threads, rig_teardown),
        cmocka_unit_test_setup_teardown(a_command_that_ignores_the_request_is_killed,
                                        rig_setup_threads, rig_teardown),
        cmocka_unit_test_setup_teardown(a_command_may_clean_up_when_it_is_cancelled,
                                        rig_setup_threads, rig_teardown),
        cmocka_unit_test_setup_teardown(a_deadline_ends_a_command, rig_setup_threads,
                                        rig_teardown),
    };
    return test_group("operations/cancel", tests, NULL, NULL);
}
