/* SPDX-License-Identifier: MIT */
/* Goal: files are read, written and hashed byte by byte, and every refusal says why.
 * Method: real files in a directory of the test's own, through the manual executor; the kernel
 * is made to refuse, cut short and interrupt. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "rig.h"

static unsigned char *
pattern(size_t size)
{
    unsigned char *bytes = malloc(size + 1);
    uint64_t word = 1;

    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (unsigned char)(word >> 56);
    }
    return bytes;
}

static void
assert_file(test_rig *rig, const char *name, const void *bytes, size_t size)
{
    char *found = malloc(size + 2);
    FILE *file = fopen(rig_path(rig, name), "re");

    assert_non_null(file);
    assert_non_null(found);
    assert_int_equal(fread(found, 1, size + 2, file), size);
    assert_memory_equal(found, bytes, size);
    fclose(file);
    free(found);
}

static void
a_file_of_any_size_is_read_byte_by_byte(void **state)
{
    const size_t sizes[] = {0, 1, 65535, 65536, 1048576, 1048577, 5000000};
    test_rig *rig = *state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *bytes = pattern(sizes[i]);
        errand_spec spec;
        rig_put(rig, "read", bytes, sizes[i]);
        assert_int_equal(errand_spec_read_file(&spec, rig_path(rig, "read"), 0),
                         ERRAND_OK);
        rig_run(rig, &spec);
        const errand_file_bytes *file = rig_payload(rig, &errand_file_bytes_type);
        assert_int_equal(file->size, sizes[i]);
        assert_memory_equal(file->bytes, bytes, sizes[i]);
        assert_int_equal(file->bytes[file->size], 0);
        assert_string_equal(rig->result.operation, "read_file");
        free(bytes);
    }
}

static void
a_file_that_hides_its_size_is_read_to_its_end(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;

    assert_int_equal(errand_spec_read_file(&spec, "/proc/self/status", 0), ERRAND_OK);
    rig_run(rig, &spec);
    const errand_file_bytes *file = rig_payload(rig, &errand_file_bytes_type);
    assert_non_null(strstr((const char *)file->bytes, "nonvoluntary_ctxt_switches:"));
    assert_int_equal(file->bytes[file->size - 1], '\n');
}

static void
a_missing_file_is_named_with_errno_and_call(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;

    assert_int_equal(errand_spec_read_file(&spec, "/nowhere/x", 0), ERRAND_OK);
    rig_run(rig, &spec);
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, ENOENT);
    assert_string_equal(rig->result.system_call, "open");
    assert_string_equal(rig->result.message,
                        "cannot open '/nowhere/x': No such file or directory; "
                        "check the name");
}

static void
a_long_path_is_cut_in_messages_before_the_mend_is(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;
    char path[301];

    memset(path, 'p', 300);
    path[300] = 0;
    path[0] = '/';
    assert_int_equal(errand_spec_hash_file(&spec, path), ERRAND_OK);
    rig_run(rig, &spec);
    rig_assert_failed(rig, ERRAND_OPERATION_IO, ENAMETOOLONG);
    rig_assert_says(rig, "ppp...': File name too long; see the errno");
}

static void
what_is_no_regular_file_is_refused_at_once(void **state)
{
    test_rig *rig = *state;
    errand_spec specs[4];
    const char *fifo = rig_path(rig, "fifo");

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(errand_spec_read_file(&specs[0], fifo, 0), ERRAND_OK);
    assert_int_equal(errand_spec_hash_file(&specs[1], fifo), ERRAND_OK);
    assert_int_equal(errand_spec_write_file(&specs[2], fifo, "x", 1, 0), ERRAND_OK);
    assert_int_equal(errand_spec_append_file(&specs[3], "/dev/full", "x", 1, 0),
                     ERRAND_OK);
    for (int i = 0; i < 4; i++) {
        rig_run(rig, &specs[i]);
        rig_assert_failed(rig, ERRAND_OPERATION_NOT_REGULAR, 0);
        rig_assert_says(rig, i == 3 ? "is a device" : "is a fifo");
    }
    assert_int_equal(errand_spec_read_file(&specs[0], rig->dir, 0), ERRAND_OK);
    rig_run(rig, &specs[0]);
    rig_assert_failed(rig, ERRAND_OPERATION_IS_DIRECTORY, EISDIR);
    assert_int_equal(errand_spec_write_file(&specs[0], rig->dir, "x", 1, 0), ERRAND_OK);
    rig_run(rig, &specs[0]);
    rig_assert_failed(rig, ERRAND_OPERATION_IS_DIRECTORY, EISDIR);
}

static void
a_file_beyond_the_limit_is_refused_also_when_it_hides_its_size(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;

    rig_put(rig, "ten", "0123456789", 10);
    assert_int_equal(errand_spec_read_file(&spec, rig_path(rig, "ten"), 9), ERRAND_OK);
    rig_run(rig, &spec);
    rig_assert_failed(rig, ERRAND_OPERATION_TOO_LARGE, 0);
    rig_assert_says(rig, "has 10 bytes, at most 9 were allowed; raise the limit");
    assert_int_equal(errand_spec_read_file(&spec, rig_path(rig, "ten"), 10), ERRAND_OK);
    rig_run(rig, &spec);
    assert_non_null(rig_payload(rig, &errand_file_bytes_type));
    assert_int_equal(errand_spec_read_file(&spec, "/proc/self/status", 100), ERRAND_OK);
    rig_run(rig, &spec);
    rig_assert_failed(rig, ERRAND_OPERATION_TOO_LARGE, 0);
}

static void
writing_makes_the_file_hold_exactly_these_bytes(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;
    struct stat status;
    unsigned char *bytes = pattern(3000000);
    mode_t mask = umask(0027);

    assert_int_equal(
        errand_spec_write_file(&spec, rig_path(rig, "made"), bytes, 3000000, 0666),
        ERRAND_OK);
    rig_run(rig, &spec);
    umask(mask);
    const errand_file_written *done = rig_payload(rig, &errand_file_written_type);
    assert_int_equal(done->written, 3000000);
    assert_file(rig, "made", bytes, 3000000);
    assert_int_equal(stat(rig_path(rig, "made"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);

    assert_int_equal(
        errand_spec_write_file(&spec, rig_path(rig, "made"), "short", 5, 0600),
        ERRAND_OK);
    rig_run(rig, &spec);
    rig_payload(rig, &errand_file_written_type);
    assert_file(rig, "made", "short", 5);
    assert_int_equal(stat(rig_path(rig, "made"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);

    assert_int_equal(errand_spec_append_file(&spec, rig_path(rig, "made"), "er", 2, 0),
                     ERRAND_OK);
    rig_run(rig, &spec);
    rig_payload(rig, &errand_file_written_type);
    assert_file(rig, "made", "shorter", 7);

    assert_int_equal(errand_spec_write_file(&spec, rig_path(rig, "made"), NULL, 0, 0),
                     ERRAND_OK);
    rig_run(rig, &spec);
    rig_payload(rig, &errand_file_written_type);
    assert_file(rig, "made", "", 0);
    free(bytes);
}

static void
a_write_that_is_cut_short_goes_on_and_then_says_how_far_it_came(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;
    struct rlimit before, limit;
    unsigned char *bytes = pattern(3000000);

    /* The second piece ends in its middle, the third is refused. */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1500000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(
        errand_spec_write_file(&spec, rig_path(rig, "cut"), bytes, 3000000, 0),
        ERRAND_OK);
    rig_run(rig, &spec);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    rig_assert_failed(rig, ERRAND_OPERATION_TOO_LARGE, EFBIG);
    assert_string_equal(rig->result.system_call, "write");
    rig_assert_says(rig, "after 1500000 bytes");
    assert_file(rig, "cut", bytes, 1500000);
    free(bytes);
}

static void
a_hash_is_that_of_the_bytes_over_several_pieces(void **state)
{
    const size_t sizes[] = {0, 17, 1048576, 2500000};
    test_rig *rig = *state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *bytes = pattern(sizes[i]);
        errand_spec spec;
        rig_put(rig, "hashed", bytes, sizes[i]);
        assert_int_equal(errand_spec_hash_file(&spec, rig_path(rig, "hashed")),
                         ERRAND_OK);
        rig_run(rig, &spec);
        const errand_hash *hash = rig_payload(rig, &errand_hash_type);
        assert_int_equal(hash->size, sizes[i]);
        assert_true(hash->value == XXH3_64bits(bytes, sizes[i]));
        free(bytes);
    }
}

/* C-G7 */
static void
ignore(int signal_number)
{
    (void)signal_number;
}

static void
signals_that_interrupt_calls_change_no_result(void **state)
{
    test_rig *rig = *state;
    const struct itimerval storm = {{0, 500}, {0, 500}}, calm = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = ignore}, before;
    unsigned char *bytes = pattern(2000000);
    errand_spec spec;

    assert_int_equal(sigaction(SIGVTALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &storm, NULL), 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(
            errand_spec_write_file(&spec, rig_path(rig, "storm"), bytes, 2000000, 0),
            ERRAND_OK);
        rig_run(rig, &spec);
        rig_payload(rig, &errand_file_written_type);
        assert_int_equal(errand_spec_read_file(&spec, rig_path(rig, "storm"), 0),
                         ERRAND_OK);
        rig_run(rig, &spec);
        const errand_file_bytes *file = rig_payload(rig, &errand_file_bytes_type);
        assert_int_equal(file->size, 2000000);
        assert_memory_equal(file->bytes, bytes, 2000000);
    }
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &calm, NULL), 0);
    assert_int_equal(sigaction(SIGVTALRM, &before, NULL), 0);
    free(bytes);
}

static void
memory_that_is_refused_to_a_body_is_its_failure(void **state)
{
    test_rig *rig = *state;
    errand_spec specs[3];
    errand_identity identity;

    rig_put(rig, "small", "x", 1);
    assert_int_equal(errand_spec_read_file(&specs[0], rig_path(rig, "small"), 0),
                     ERRAND_OK);
    assert_int_equal(errand_spec_hash_file(&specs[1], rig_path(rig, "small")), ERRAND_OK);
    assert_int_equal(errand_spec_list_dir(&specs[2], rig->dir, 0), ERRAND_OK);
    for (int i = 0; i < 3; i++) {
        rig_start(rig, &specs[i], &identity);
        errand_testing_fail_allocation(1);
        rig_await_end(rig);
        errand_testing_fail_allocation(0);
        rig_assert_failed(rig, ERRAND_OPERATION_MEMORY, 0);
        rig_assert_says(rig, "free some or ask for less");
    }
}

static void
an_empty_or_missing_argument_is_refused(void **state)
{
    errand_spec spec;

    (void)state;
    assert_int_equal(errand_spec_read_file(&spec, NULL, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_read_file(&spec, "", 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_read_file(NULL, "x", 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_hash_file(&spec, ""), ERRAND_EINVAL);
    assert_int_equal(errand_spec_write_file(&spec, "x", NULL, 1, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_write_file(&spec, "x", "x", 1, 010000), ERRAND_EINVAL);
    assert_int_equal(errand_spec_append_file(&spec, "", "x", 1, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_list_dir(&spec, "", 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_stat_file(&spec, NULL, true), ERRAND_EINVAL);
    assert_int_equal(errand_spec_echo(&spec, NULL, 1), ERRAND_EINVAL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_of_any_size_is_read_byte_by_byte,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_hides_its_size_is_read_to_its_end,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_missing_file_is_named_with_errno_and_call,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_long_path_is_cut_in_messages_before_the_mend_is,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_refused_at_once,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_file_beyond_the_limit_is_refused_also_when_it_hides_its_size,
            rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(writing_makes_the_file_hold_exactly_these_bytes,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_write_that_is_cut_short_goes_on_and_then_says_how_far_it_came,
            rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_hash_is_that_of_the_bytes_over_several_pieces,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(signals_that_interrupt_calls_change_no_result,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(memory_that_is_refused_to_a_body_is_its_failure,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(an_empty_or_missing_argument_is_refused,
                                        rig_setup_manual, rig_teardown),
    };
    return test_group("operations/files", tests, NULL, NULL);
}
