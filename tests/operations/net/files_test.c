/* SPDX-License-Identifier: MIT */
/* Goal: open files, names, timers and foreign descriptors on a reactor do what the header says, and
 * what the system holds up can be cancelled.
 * Method: a directory of its own for each test, looked at by plain system calls. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "errand/files.h"
#include "errand/waits.h"
#include "folder_rig.h"

static const char *
path_of(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void
put(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(path_of(name), "we");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static errand_file *
open_file(net_rig *rig, const char *name, uint32_t flags)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_open(&spec, path_of(name), flags, 0640), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_file_type);
    return result.payload.data;
}

static void
a_file_is_written_read_and_looked_at(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_spec spec;
    errand_file *file =
        open_file(rig, "a", ERRAND_OPEN_READ | ERRAND_OPEN_WRITE | ERRAND_OPEN_CREATE);

    assert_int_equal(errand_spec_write_at(&spec, file, "hello world", 11, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_int_equal(((const errand_file_written *)result.payload.data)->written, 11);
    net_clear(&result);
    assert_int_equal(errand_spec_write_at(&spec, file, "W", 1, 6), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_clear(&result);
    assert_int_equal(errand_spec_sync(&spec, file, true), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(errand_spec_read_at(&spec, file, 100, 6), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "World", 5);
    assert_int_equal(errand_spec_read_at(&spec, file, 100, 11), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "", 0);
    assert_int_equal(errand_spec_file_stat(&spec, file), ERRAND_OK);
    net_run(rig, &spec, &result);
    const errand_file_stat *status = result.payload.data;
    assert_int_equal(status->kind, ERRAND_FILE_REGULAR);
    assert_int_equal(status->size, 11);
    net_clear(&result);
    errand_file_hold(file);
    assert_int_equal(errand_spec_file_close(&spec, file), ERRAND_EBUSY);
    errand_file *other = file;
    errand_file_abandon(&other);
    assert_int_equal(errand_spec_file_close(&spec, file), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(errand_file_fd(file), -1);
    assert_int_equal(errand_spec_read_at(&spec, file, 1, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_file_abandon(&file);
}

/* L3: what the system says of a close is told, and the descriptor is nobody's any more. */
static void
a_close_that_fails_is_told(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_spec spec;

    put("closed", "x", 1);
    errand_file *file = open_file(rig, "closed", ERRAND_OPEN_READ);
    assert_int_equal(close(errand_file_fd(file)), 0); /* somebody else's doing */
    assert_int_equal(errand_spec_file_close(&spec, file), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.sys_errno, EBADF);
    net_assert_failed(&result, ERRAND_OPERATION_IO);
    assert_int_equal(errand_file_fd(file), -1);
    errand_file_abandon(&file);
}

static void
a_missing_file_and_one_that_exists_have_their_codes(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_open(&spec, path_of("none"), ERRAND_OPEN_READ, 0),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.sys_errno, ENOENT);
    net_assert_failed(&result, ERRAND_OPERATION_NOT_FOUND);
    put("there", "x", 1);
    assert_int_equal(
        errand_spec_open(&spec, path_of("there"),
                         ERRAND_OPEN_WRITE | ERRAND_OPEN_CREATE | ERRAND_OPEN_EXCLUSIVE,
                         0),
        ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_EXISTS);
    assert_int_equal(errand_spec_open(&spec, "x", 0, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_open(&spec, "x", ERRAND_OPEN_READ | 1024, 0),
                     ERRAND_EINVAL);
    assert_int_equal(
        errand_spec_open(&spec, "x", ERRAND_OPEN_READ | ERRAND_OPEN_CREATE, 0),
        ERRAND_EINVAL);
}

static void
names_are_made_moved_listed_and_removed(void **state) /* L4 */
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_mkdir(&spec, path_of("d"), 0700), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(errand_spec_mkdir(&spec, path_of("d"), 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_EXISTS);
    put("one", "1", 1);
    put("two", "22", 2);
    assert_int_equal(errand_spec_rename(&spec, path_of("one"), path_of("two"), false),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_EXISTS);
    assert_int_equal(errand_spec_rename(&spec, path_of("one"), path_of("d/one"), false),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(errand_spec_scan(&spec, dir, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    const errand_dir_list *list = result.payload.data;
    assert_int_equal(list->count, 2);
    assert_string_equal(list->entries[0].name, "d");
    assert_int_equal(list->entries[0].kind, ERRAND_FILE_DIRECTORY);
    assert_string_equal(list->entries[1].name, "two");
    net_clear(&result);
    assert_int_equal(errand_spec_scan(&spec, dir, 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_TOO_LARGE);
    assert_int_equal(errand_spec_stat(&spec, path_of("two"), true), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(((const errand_file_stat *)result.payload.data)->size, 2);
    net_clear(&result);
    assert_int_equal(errand_spec_unlink(&spec, path_of("d"), true), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_EXISTS);
    assert_int_equal(errand_spec_unlink(&spec, path_of("d/one"), false), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(errand_spec_unlink(&spec, path_of("d"), true), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(access(path_of("d"), F_OK), -1);
}

static void
a_copy_has_the_same_bytes_and_mode(void **state) /* L4 */
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const size_t size = 3000001;
    unsigned char *bytes = malloc(size), *back = malloc(size);
    struct stat status;
    errand_spec spec;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 13 + i / 509);
    put("from", bytes, size);
    assert_int_equal(chmod(path_of("from"), 0750), 0);
    assert_int_equal(errand_spec_copy(&spec, path_of("from"), path_of("to")), ERRAND_OK);
    net_run(rig, &spec, &result);
    if (result.outcome != ERRAND_COMPLETED)
        print_error("%s\n", result.message);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_int_equal(((const errand_file_written *)result.payload.data)->written, size);
    net_clear(&result);
    int fd = open(path_of("to"), O_RDONLY | O_CLOEXEC);
    net_peer_read(fd, back, size);
    assert_memory_equal(bytes, back, size);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, size);
    assert_int_equal(status.st_mode & 07777, 0750);
    close(fd);
    assert_int_equal(errand_spec_copy(&spec, path_of("to"), path_of("to")), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_EXISTS);
    assert_int_equal(stat(path_of("to"), &status), 0);
    assert_int_equal(status.st_size, size);
    assert_int_equal(errand_spec_copy(&spec, dir, path_of("to")), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_IS_DIRECTORY);
    free(bytes);
    free(back);
}

/* Closes what is open as the file of this path, behind the library's back. */
static void
close_by_path(void *arg, const char *place)
{
    char link[64], path[256];

    if (strcmp(place, "copy-close") != 0)
        return;
    for (int fd = 3; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, path, sizeof path - 1);
        path[size < 0 ? 0 : size] = 0;
        if (strcmp(path, arg) == 0)
            close(fd);
    }
}

/* L4: some file systems say only then that the bytes found no room. */
static void
a_copy_whose_close_fails_has_failed(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    char to[128];
    errand_spec spec;

    put("from", "some bytes", 10);
    snprintf(to, sizeof to, "%s", path_of("to"));
    errand_testing_pause(close_by_path, to);
    assert_int_equal(errand_spec_copy(&spec, path_of("from"), to), ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_testing_pause(NULL, NULL);
    assert_int_equal(result.sys_errno, EBADF);
    net_assert_failed(&result, ERRAND_OPERATION_IO);
}

static size_t
count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;

    assert_non_null(tasks);
    while (readdir(tasks) != NULL)
        count++;
    closedir(tasks);
    return count - 2; /* "." and ".." */
}

/* C-C1: what the system holds up costs no thread each. */
static void
a_thousand_opens_of_a_fifo_without_a_writer_end_at_their_deadlines(void **state)
{
    net_rig *rig = *state;
    enum { OPENS = 1000 };
    net_result *results = calloc(OPENS, sizeof *results);
    uint64_t start = errand_runtime_now(rig->runtime);
    errand_spec spec;

    assert_non_null(results);
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    for (int i = 0; i < OPENS; i++) {
        assert_int_equal(errand_spec_open(&spec, path_of("fifo"), ERRAND_OPEN_READ, 0),
                         ERRAND_OK);
        spec.deadline_ns = 100000000;
        net_start(rig, &spec, &results[i]);
    }
    assert_true(count_threads() < 32);
    for (int i = 0; i < OPENS; i++) {
        net_await(rig, &results[i]);
        assert_int_equal(results[i].outcome, ERRAND_FAILED); /* queued or begun: O45 */
        assert_int_equal(results[i].code, ERRAND_CODE_DEADLINE);
        net_clear(&results[i]);
    }
    assert_true(errand_runtime_now(rig->runtime) - start >= 100000000);
    free(results);
}

/* C-B3, C-B4: its buffer is the kernel's until that has given it back; a sanitizer looks on. */
static void
a_read_of_a_silent_pipe_is_cancelled_and_takes_nothing(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int ends[2];
    errand_file *file;
    errand_spec spec;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(errand_file_adopt(&ends[0], &file), ERRAND_OK);
    assert_int_equal(errand_spec_read_at(&spec, file, 10, ERRAND_AT_POSITION), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    net_cancel(rig, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    assert_int_equal(write(ends[1], "later", 5), 5);
    assert_int_equal(errand_spec_read_at(&spec, file, 10, ERRAND_AT_POSITION), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "later", 5);
    errand_file_abandon(&file);
    close(ends[1]);
}

static void
a_timer_completes_not_before_its_time(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false}, never = {.started = false};
    uint64_t start = errand_runtime_now(rig->runtime);
    errand_spec spec;

    assert_int_equal(errand_spec_timer(&spec, UINT64_MAX), ERRAND_OK);
    net_start(rig, &spec, &never);
    assert_int_equal(errand_spec_timer(&spec, 20000000), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_true(errand_runtime_now(rig->runtime) - start >= 20000000);
    net_cancel(rig, &never);
    net_await(rig, &never);
    net_assert_failed(&never, ERRAND_OPERATION_STOPPED);
}

static void
a_foreign_descriptor_is_waited_for_and_left_alone(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    char byte;
    int ends[2];
    errand_spec spec;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(errand_spec_wait_fd(&spec, ends[1], ERRAND_WAIT_WRITABLE),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(((const errand_readiness *)result.payload.data)->events,
                     ERRAND_WAIT_WRITABLE);
    net_clear(&result);
    assert_int_equal(errand_spec_wait_fd(&spec, ends[0], ERRAND_WAIT_READABLE),
                     ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    assert_false(result.done);
    assert_int_equal(write(ends[1], "x", 1), 1);
    net_await(rig, &result);
    assert_ptr_equal(result.payload.held_type, &errand_readiness_type);
    assert_int_equal(((const errand_readiness *)result.payload.data)->events,
                     ERRAND_WAIT_READABLE);
    net_clear(&result);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[1]);
    assert_int_equal(errand_spec_wait_fd(&spec, ends[0], ERRAND_WAIT_READABLE),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_true((((const errand_readiness *)result.payload.data)->events &
                 ERRAND_WAIT_HANGUP) != 0);
    net_clear(&result);
    assert_int_equal(errand_spec_wait_fd(&spec, -1, ERRAND_WAIT_READABLE), ERRAND_EINVAL);
    assert_int_equal(errand_spec_wait_fd(&spec, 0, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_wait_fd(&spec, 0, 64), ERRAND_EINVAL);
    close(ends[0]);
}

int
main(void)
{
#define WITH_DIR(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_DIR(a_file_is_written_read_and_looked_at),
        WITH_DIR(a_close_that_fails_is_told),
        WITH_DIR(a_missing_file_and_one_that_exists_have_their_codes),
        WITH_DIR(names_are_made_moved_listed_and_removed),
        WITH_DIR(a_copy_has_the_same_bytes_and_mode),
        WITH_DIR(a_copy_whose_close_fails_has_failed),
        WITH_DIR(a_thousand_opens_of_a_fifo_without_a_writer_end_at_their_deadlines),
        WITH_DIR(a_read_of_a_silent_pipe_is_cancelled_and_takes_nothing),
        WITH_DIR(a_timer_completes_not_before_its_time),
        WITH_DIR(a_foreign_descriptor_is_waited_for_and_left_alone),
    };
    return test_group("operations/net/files", tests, NULL, NULL);
}
