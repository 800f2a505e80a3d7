/* SPDX-License-Identifier: MIT */
/* Goal: host and command do not get in each other's way: signals, descriptors, groups, exits.
 * Method: commands that print what they got, started by hosts in an unusual state. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include "command_rig.h"

/* C-G3 */
static void
a_command_has_default_signals_and_no_descriptors_of_the_host(void **state)
{
    sigset_t all, before;
    int leaked = open("/dev/null", O_RDONLY);
    int high = fcntl(leaked, F_DUPFD, 100);

    assert_true(leaked > 2 && high >= 100);
    signal(SIGPIPE, SIG_IGN);
    sigfillset(&all);
    sigdelset(&all, SIGALRM); /* the watchdog's */
    sigprocmask(SIG_BLOCK, &all, &before);
    const errand_command_result *result = shell(
        *state, "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t\\n'; echo $(ls "
                "/proc/self/fd)");
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, SIG_DFL);
    close(leaked);
    close(high);
    /* 3 is ls's own */
    assert_string_equal((const char *)result->out,
                        "SigBlk:0000000000000000SigIgn:00000000000000000 1 2 3\n");
}

static void
a_command_cannot_write_to_its_input(void **state)
{
    const char *argv[] = {"sh", "-c", "(echo x >&0) 2> /dev/null && echo written; cat",
                          NULL};
    errand_command_config config = {.argv = argv, .input = "input", .input_size = 5};
    const errand_command_result *result = run(*state, &config);

    assert_non_null(result);
    assert_string_equal((const char *)result->out, "input");
}

static void
a_command_leads_a_group_of_its_own(void **state)
{
    int pid, parent, group;
    char name[64], letter;
    const errand_command_result *result =
        shell(*state, "read a < /proc/$$/stat; echo $a");

    assert_int_equal(sscanf((const char *)result->out, "%d %63s %c %d %d", &pid, name,
                            &letter, &parent, &group),
                     5);
    assert_int_equal(group, pid);
    assert_int_equal(parent, getpid());
}

static void
a_stolen_exit_status_is_a_failure_that_says_so(void **state)
{
    test_rig *rig = *state;
    const char *argv[] = {"true", NULL};
    errand_command_config config = {.argv = argv};

    signal(SIGCHLD, SIG_IGN);
    assert_null(run(rig, &config));
    signal(SIGCHLD, SIG_DFL);
    rig_assert_failed(rig, ERRAND_OPERATION_LOST, 0);
    rig_assert_says(rig, "do not ignore SIGCHLD");
}

static void
ignore(int signal_number)
{
    (void)signal_number;
}

/* C-G7 */
static void
a_storm_of_signals_changes_no_result(void **state)
{
    const struct itimerval storm = {{0, 1000}, {0, 1000}}, calm = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = ignore}, before;

    assert_int_equal(sigaction(SIGVTALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &storm, NULL), 0);
    struct sigaction usual;
    assert_int_equal(sigaction(SIGCHLD, &action, &usual), 0);
    for (int i = 0; i < 20; i++) {
        const errand_command_result *result = shell(
            *state, "head -c 200000 /dev/zero; kill -CHLD $PPID; sleep 0.002; exit 5");
        assert_int_equal(result->out_size, 200000);
        assert_int_equal(result->exit_status, 5);
    }
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &calm, NULL), 0);
    assert_int_equal(sigaction(SIGCHLD, &usual, NULL), 0);
    assert_int_equal(sigaction(SIGVTALRM, &before, NULL), 0);
}

static void
a_host_without_standard_descriptors_gets_its_outputs_too(void **state)
{
    int kept[3];

    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    const char *argv[] = {"sh", "-c", "cat; echo err >&2", NULL};
    errand_command_config config = {.argv = argv, .input = "in", .input_size = 2};
    const errand_command_result *result = run(*state, &config);
    bool taken =
        fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0 || fcntl(2, F_GETFD) >= 0;
    for (int i = 0; i < 3; i++) {
        dup2(kept[i], i);
        close(kept[i]);
    }
    assert_false(taken);
    assert_non_null(result);
    assert_string_equal((const char *)result->out, "in");
    assert_string_equal((const char *)result->err, "err\n");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_command_has_default_signals_and_no_descriptors_of_the_host,
            rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_command_cannot_write_to_its_input,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_command_leads_a_group_of_its_own,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_stolen_exit_status_is_a_failure_that_says_so,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_storm_of_signals_changes_no_result,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_host_without_standard_descriptors_gets_its_outputs_too, rig_setup_manual,
            rig_teardown),
    };
    return test_group("operations/child", tests, NULL, NULL);
}
