/* SPDX-License-Identifier: MIT */
/* Goal: a command's bytes and end come back exactly, and nothing of it leaks either way.
 * Method: real commands through the manual executor; the teardown counts children and
 * descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "command_rig.h"

static void
both_outputs_and_the_exit_status_come_back(void **state)
{
    const errand_command_result *result =
        shell(*state, "printf one; printf 'two\\n' >&2; printf three; exit 7");

    assert_string_equal((const char *)result->out, "onethree");
    assert_string_equal((const char *)result->err, "two\n");
    assert_int_equal(result->out_size, 8);
    assert_int_equal(result->err_size, 4);
    assert_int_equal(result->exit_status, 7);
    assert_int_equal(result->signal_number, 0);
}

/* C-L11 */
static void
an_end_by_signal_is_told_apart_from_an_exit_status(void **state)
{
    const errand_command_result *result = shell(*state, "kill -6 $$");

    assert_int_equal(result->exit_status, -1);
    assert_int_equal(result->signal_number, SIGABRT);
    result = shell(*state, "exit 137");
    assert_int_equal(result->exit_status, 137);
    assert_int_equal(result->signal_number, 0);
}

/* C-F4 */
static void
input_and_output_larger_than_any_pipe_do_not_wait_for_each_other(void **state)
{
    const size_t size = 5000001;
    const char *argv[] = {"sh", "-c", "tee /dev/stderr", NULL};
    errand_command_config config = {.argv = argv, .input_size = size};
    char *input = malloc(size);

    assert_non_null(input);
    for (size_t i = 0; i < size; i++)
        input[i] = (char)(i * 7 + i / 251);
    config.input = input;
    const errand_command_result *result = run(*state, &config);
    assert_non_null(result);
    assert_int_equal(result->out_size, size);
    assert_memory_equal(result->out, input, size);
    assert_int_equal(result->err_size, size);
    assert_memory_equal(result->err, input, size);
    assert_int_equal(result->out[size], 0);
    free(input);
}

static void
input_that_nobody_reads_hurts_nobody(void **state)
{
    const char *argv[] = {"true", NULL};
    static const char input[300000];
    errand_command_config config = {
        .argv = argv, .input = input, .input_size = sizeof input};
    const errand_command_result *result = run(*state, &config);

    assert_non_null(result);
    assert_int_equal(result->exit_status, 0);
    /* without input there is an end, not a terminal */
    assert_int_equal(shell(*state, "cat")->out_size, 0);
}

static void
what_cannot_be_run_is_named(void **state)
{
    test_rig *rig = *state;
    const char *missing[] = {"errand-no-such-command", NULL};
    errand_command_config config = {.argv = missing};

    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, ENOENT);
    assert_string_equal(
        rig->result.message,
        "cannot find command 'errand-no-such-command' in PATH: No such file "
        "or directory; check the name");
    const char *slash[] = {"./errand-no-such-command", NULL};
    config.argv = slash;
    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, ENOENT);
    assert_string_equal(rig->result.system_call, "execve");
    rig_assert_says(rig, "cannot run command './errand-no-such-command'");
    rig_put(rig, "plain", "x", 1);
    const char *plain[] = {rig_path(rig, "plain"), NULL};
    config.argv = plain;
    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_PERMISSION, EACCES);
    rig_put_executable(rig, "noformat", "echo no line that names an interpreter\n");
    const char *noformat[] = {rig_path(rig, "noformat"), NULL};
    config.argv = noformat;
    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_EXEC, ENOEXEC);
    const char *fine[] = {"true", NULL};
    config.argv = fine;
    config.cwd = "/nowhere";
    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, ENOENT);
    rig_assert_says(rig, "cannot enter directory '/nowhere'");
}

static void
a_command_is_looked_for_only_in_absolute_directories_of_path(void **state)
{
    test_rig *rig = *state;
    const char *argv[] = {"planted", NULL}, *env[] = {"PATH=:.:here/:/nowhere", NULL};
    errand_command_config config = {.argv = argv, .env = env, .cwd = rig->dir};
    char before[4096];

    assert_int_equal(mkdir(rig_path(rig, "here"), 0700), 0);
    rig_put_executable(rig, "planted", "#!/bin/sh\n");
    rig_put_executable(rig, "here/planted", "#!/bin/sh\n");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(rig->dir), 0);
    assert_null(run(rig, &config));
    assert_int_equal(chdir(before), 0);
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, ENOENT);
    /* what is there but cannot be run is told apart, unless a later directory has it */
    char path[4096];
    snprintf(path, sizeof path, "PATH=%s:/usr/bin:/bin", rig->dir);
    env[0] = path;
    rig_put(rig, "plain", "x", 1);
    argv[0] = "plain";
    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_PERMISSION, EACCES);
    rig_put(rig, "true", "x", 1);
    argv[0] = "true";
    assert_non_null(run(rig, &config));
}

static void
directory_and_environment_are_those_that_were_given(void **state)
{
    test_rig *rig = *state;
    const char *argv[] = {"tool", "a b", "", NULL};
    char path[128];
    const char *env[] = {path, "WORD=two words", NULL};
    errand_command_config config = {.argv = argv, .env = env, .cwd = rig->dir};

    snprintf(path, sizeof path, "PATH=relative::/nowhere:%s:/usr/bin:/bin", rig->dir);
    rig_put_executable(rig, "tool",
                       "#!/bin/sh\npwd; printf '[%s]' \"$#\" \"$@\" \"$WORD\" \"$HOME\"");
    const errand_command_result *result = run(rig, &config);
    assert_non_null(result);
    char expected[128];
    snprintf(expected, sizeof expected, "%s\n[2][a b][][two words][]", rig->dir);
    assert_string_equal((const char *)result->out, expected);
}

static void
everything_is_copied_when_the_spec_is_made(void **state)
{
    test_rig *rig = *state;
    char word[] = "before", input[] = "kept";
    const char *argv[] = {"sh", "-c", NULL, NULL};
    errand_command_config config = {
        .struct_size = sizeof config, .argv = argv, .input = input, .input_size = 4};
    errand_spec spec;
    char text[64];

    snprintf(text, sizeof text, "cat; echo %s $ERRAND_WORD", word);
    argv[2] = text;
    assert_int_equal(setenv("ERRAND_WORD", "early", 1), 0);
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_OK);
    assert_int_equal(setenv("ERRAND_WORD", "late", 1), 0);
    memset(text, 'x', sizeof text - 1);
    memset(input, 'x', 4);
    rig_run(rig, &spec);
    const errand_command_result *result = rig_payload(rig, &errand_command_result_type);
    assert_string_equal((const char *)result->out, "keptbefore early\n");
    unsetenv("ERRAND_WORD");
}

static void
too_much_output_ends_the_command(void **state)
{
    test_rig *rig = *state;
    const char *argv[] = {"sh", "-c", "trap '' TERM PIPE; while :; do echo yes; done",
                          NULL};
    errand_command_config config = {
        .argv = argv, .output_max = 100000, .term_ns = 20000000};

    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_OUTPUT, 0);
    rig_assert_says(rig, "'sh' wrote more than 100000 bytes to stdout; raise output_max");
    const char *exactly[] = {"printf", "12345", NULL};
    config.argv = exactly;
    config.output_max = 5;
    assert_non_null(run(rig, &config));
    config.output_max = 4;
    assert_null(run(rig, &config));
    rig_assert_failed(rig, ERRAND_OPERATION_OUTPUT, 0);
}

static void
a_descendant_that_keeps_the_outputs_is_not_waited_for(void **state)
{
    int pid = 0;
    const errand_command_result *result = shell(*state, "sleep 600 & echo $!; exit 3");

    assert_int_equal(result->exit_status, 3);
    assert_int_equal(sscanf((const char *)result->out, "%d", &pid), 1);
    assert_true(pid > 1);
    assert_int_equal(kill(pid, 0), 0); /* left alone */
    assert_int_equal(kill(pid, SIGKILL), 0);
}

static void
a_descendant_that_writes_for_ever_is_read_for_a_while(void **state)
{
    const errand_command_result *result =
        shell(*state, "echo x; (while :; do echo x; done) & exit 0");

    assert_int_equal(result->exit_status, 0);
    assert_true(result->out_size >= 2);
    assert_memory_equal(result->out, "x\n", 2);
}

static void
outputs_that_are_closed_early_do_not_end_the_command(void **state)
{
    const errand_command_result *result =
        shell(*state, "echo x; exec >&- 2>&-; sleep 0.05; exit 9");

    assert_string_equal((const char *)result->out, "x\n");
    assert_int_equal(result->exit_status, 9);
}

static void
a_config_without_a_command_is_refused(void **state)
{
    const char *none[] = {NULL}, *empty[] = {"", NULL}, *fine[] = {"true", NULL};
    errand_command_config config = {.struct_size = sizeof config};
    errand_spec spec;

    (void)state;
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_EINVAL);
    config.argv = none;
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_EINVAL);
    config.argv = empty;
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_EINVAL);
    config.argv = fine;
    config.flags = 1;
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_EINVAL);
    config.flags = 0;
    config.input_size = 1;
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_EINVAL);
    config.input_size = 0;
    config.cwd = "";
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_EINVAL);
    config.cwd = NULL;
    config.struct_size = 0;
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_EINVAL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_outputs_and_the_exit_status_come_back,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            an_end_by_signal_is_told_apart_from_an_exit_status, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(
            input_and_output_larger_than_any_pipe_do_not_wait_for_each_other,
            rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(input_that_nobody_reads_hurts_nobody,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_run_is_named, rig_setup_manual,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_command_is_looked_for_only_in_absolute_directories_of_path,
            rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            directory_and_environment_are_those_that_were_given, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(everything_is_copied_when_the_spec_is_made,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(too_much_output_ends_the_command,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_descendant_that_keeps_the_outputs_is_not_waited_for, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_descendant_that_writes_for_ever_is_read_for_a_while, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(
            outputs_that_are_closed_early_do_not_end_the_command, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(a_config_without_a_command_is_refused,
                                        rig_setup_manual, rig_teardown),
    };
    return test_group("operations/command", tests, NULL, NULL);
}
