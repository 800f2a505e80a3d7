/* SPDX-License-Identifier: MIT */
/* Goal: the position of a file is where what succeeded left it, in every order of ends, and what shares
 * a domain happens as it was submitted.
 * Method: a directory of its own for each test, looked at by plain system calls. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "errand/files.h"
#include "folder_rig.h"
#include "workers/reactor/reactor.h"

static errand_file *
open_file(net_rig *rig, uint32_t flags)
{
    net_result result = {.started = false};
    char path[128];
    errand_spec spec;

    snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(errand_spec_open(&spec, path, flags, 0640), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    return result.payload.data;
}

static void
write_here(net_rig *rig, errand_file *file, const char *text)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(
        errand_spec_write_at(&spec, file, text, strlen(text), ERRAND_AT_POSITION),
        ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    net_clear(&result);
}

static void
expect_here(net_rig *rig, errand_file *file, size_t size, const char *text)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_read_at(&spec, file, size, ERRAND_AT_POSITION),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, text, strlen(text));
}

static uint64_t
seek(net_rig *rig, errand_file *file, int64_t offset, errand_from from)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_seek(&spec, file, offset, from), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_file_place_type);
    uint64_t place = ((const errand_file_place *)result.payload.data)->offset;
    net_clear(&result);
    return place;
}

static const uint32_t both =
    ERRAND_OPEN_READ | ERRAND_OPEN_WRITE | ERRAND_OPEN_CREATE | ERRAND_OPEN_EMPTY;

static void
reads_and_writes_go_on_where_the_one_before_left_off(void **state) /* L1, L2 */
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_spec spec;
    errand_file *file = open_file(rig, both);

    assert_true(errand_file_is_seekable(file));
    write_here(rig, file, "hello ");
    write_here(rig, file, "world");
    expect_here(rig, file, 5, ""); /* the end */
    assert_int_equal(seek(rig, file, 0, ERRAND_FROM_POSITION), 11);
    assert_int_equal(seek(rig, file, 0, ERRAND_FROM_BEGIN), 0);
    expect_here(rig, file, 5, "hello");
    assert_int_equal(errand_spec_read_at(&spec, file, 5, 6), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "world", 5); /* and nothing has moved */
    expect_here(rig, file, 100, " world");
    assert_int_equal(seek(rig, file, -4, ERRAND_FROM_END), 7);
    assert_int_equal(seek(rig, file, 1, ERRAND_FROM_POSITION), 8);
    write_here(rig, file, "R");
    assert_int_equal(seek(rig, file, -3, ERRAND_FROM_POSITION), 6);
    expect_here(rig, file, 100, "woRld");
    assert_int_equal(errand_spec_seek(&spec, file, -12, ERRAND_FROM_END), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_IO);
    assert_int_equal(seek(rig, file, 0, ERRAND_FROM_POSITION), 11);
    assert_int_equal(errand_spec_seek(&spec, file, -1, ERRAND_FROM_BEGIN), ERRAND_EINVAL);
    assert_int_equal(errand_spec_seek(&spec, file, 0, (errand_from)3), ERRAND_EINVAL);
    errand_file_abandon(&file);
}

static void
appends_go_to_the_end_and_move_nothing(void **state)
{
    net_rig *rig = *state;
    errand_file *file = open_file(rig, both | ERRAND_OPEN_APPEND);

    write_here(rig, file, "one");
    write_here(rig, file, "two");
    expect_here(rig, file, 4, "onet");
    write_here(rig, file, "three");
    expect_here(rig, file, 100, "wothree");
    errand_file_abandon(&file);
}

static void
the_rest_is_read_up_to_its_limit(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const size_t size = 300001;
    char *bytes = malloc(size);
    errand_spec spec;
    errand_file *file = open_file(rig, both);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    assert_int_equal(errand_spec_write_at(&spec, file, bytes, size, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_clear(&result);
    const size_t limits[] = {size, size + 1, 1 << 30, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(errand_spec_read_rest(&spec, file, limits[i], 1), ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_bytes(&result, bytes + 1, size - 1);
    }
    const size_t less[] = {size - 1, size / 2, 65536, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(errand_spec_read_rest(&spec, file, less[i], ERRAND_AT_POSITION),
                         ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_failed(&result, ERRAND_OPERATION_TOO_LARGE);
    }
    assert_int_equal(seek(rig, file, 0, ERRAND_FROM_POSITION), 0); /* nothing has moved */
    assert_int_equal(errand_spec_read_rest(&spec, file, 0, ERRAND_AT_POSITION),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, bytes, size);
    assert_int_equal(seek(rig, file, 0, ERRAND_FROM_POSITION), size);
    assert_int_equal(errand_spec_read_rest(&spec, file, (1 << 30) + 1, 0), ERRAND_EINVAL);
    free(bytes);
    errand_file_abandon(&file);
}

/* All are out at once; the domain puts them behind one another. */
static void
one_domain_keeps_the_order_of_submission(void **state)
{
    net_rig *rig = *state;
    enum { WRITES = 200 };
    net_result *results = calloc(WRITES, sizeof *results);
    char line[16], path[128];
    errand_spec spec;
    errand_file *file = open_file(rig, both);

    for (int i = 0; i < WRITES; i++) {
        snprintf(line, sizeof line, "line %05d\n", i);
        assert_int_equal(errand_spec_write_at(&spec, file, line, 11, ERRAND_AT_POSITION),
                         ERRAND_OK);
        spec.domain = 77;
        net_start(rig, &spec, &results[i]);
    }
    for (int i = 0; i < WRITES; i++) {
        net_await(rig, &results[i]);
        assert_int_equal(results[i].outcome, ERRAND_COMPLETED);
        net_clear(&results[i]);
    }
    snprintf(path, sizeof path, "%s/file", dir);
    FILE *stream = fopen(path, "re");
    char got[16];
    for (int i = 0; i < WRITES; i++) {
        snprintf(line, sizeof line, "line %05d\n", i);
        assert_non_null(fgets(got, sizeof got, stream));
        assert_string_equal(got, line);
    }
    assert_null(fgets(got, sizeof got, stream));
    fclose(stream);
    free(results);
    errand_file_abandon(&file);
}

static void
what_has_no_position_says_so(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int ends[2];
    errand_file *file;
    errand_spec spec;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(errand_file_adopt(&ends[0], &file), ERRAND_OK);
    assert_false(errand_file_is_seekable(file));
    assert_int_equal(errand_spec_seek(&spec, file, 0, ERRAND_FROM_POSITION), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_non_null(strstr(result.message, "or open a regular file")); /* the mend */
    net_assert_failed(&result, ERRAND_OPERATION_UNSUPPORTED);
    assert_int_equal(write(ends[1], "piece", 5), 5);
    expect_here(rig, file, 100, "piece"); /* what is there */
    assert_int_equal(errand_spec_read_rest(&spec, file, 0, ERRAND_AT_POSITION),
                     ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    assert_int_equal(write(ends[1], "the ", 4), 4);
    net_turn(rig, 1);
    assert_false(result.done);
    assert_int_equal(write(ends[1], "rest", 4), 4);
    close(ends[1]);
    net_await(rig, &result);
    net_assert_bytes(&result, "the rest", 8);
    errand_file_abandon(&file);
}

static uint64_t
size_of(net_rig *rig, errand_file *file)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_file_stat(&spec, file), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    uint64_t size = ((const errand_file_stat *)result.payload.data)->size;
    net_clear(&result);
    return size;
}

/* L5 */
static void
a_truncated_file_has_that_size_and_its_position_stays(void **state)
{
    static const uint64_t sizes[] = {4, 4, 0, 6};
    net_rig *rig = *state;
    net_result result = {.started = false};
    int ends[2];
    errand_spec spec;
    errand_file *file = open_file(rig, both);

    const errand__filers *filers = errand__reactor_of(rig->executor)->filers;
    unsigned given;

    write_here(rig, file, "0123456789");
    given = atomic_load_explicit(&filers->bell, memory_order_relaxed);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(errand_spec_truncate(&spec, file, sizes[i]), ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_nothing(&result);
        assert_int_equal(size_of(rig, file), sizes[i]);
        assert_int_equal(seek(rig, file, 0, ERRAND_FROM_POSITION), 10);
    }
    /* Not on the reactor's thread, which others need. */
    assert_true(atomic_load_explicit(&filers->bell, memory_order_relaxed) >= given + 4);
    write_here(rig, file, "end");
    assert_int_equal(errand_spec_read_rest(&spec, file, 0, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "\0\0\0\0\0\0\0\0\0\0end", 13);
    assert_int_equal(errand_spec_truncate(&spec, file, (uint64_t)INT64_MAX + 1),
                     ERRAND_EINVAL);
    errand_file_abandon(&file);
    file = open_file(rig, ERRAND_OPEN_READ);
    assert_int_equal(errand_spec_truncate(&spec, file, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.sys_errno, EINVAL);
    net_assert_failed(&result, ERRAND_OPERATION_IO);
    assert_int_equal(size_of(rig, file), 13);
    errand_file_abandon(&file);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(errand_file_adopt(&ends[1], &file), ERRAND_OK);
    assert_int_equal(errand_spec_truncate(&spec, file, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_non_null(strstr(result.message, "or open a regular file"));
    net_assert_failed(&result, ERRAND_OPERATION_UNSUPPORTED);
    errand_file_abandon(&file);
    close(ends[0]);
}

/* A descriptor's position counts when it becomes a file. */
static void
an_adopted_descriptor_begins_where_it_stood(void **state)
{
    net_rig *rig = *state;
    char path[128];
    errand_file *file = open_file(rig, both);

    write_here(rig, file, "0123456789");
    errand_file_abandon(&file);
    snprintf(path, sizeof path, "%s/file", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
    assert_int_equal(errand_file_adopt(&fd, &file), ERRAND_OK);
    expect_here(rig, file, 3, "456");
    expect_here(rig, file, 3, "789");
    errand_file_abandon(&file);
}

int
main(void)
{
#define WITH_DIR(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_DIR(reads_and_writes_go_on_where_the_one_before_left_off),
        WITH_DIR(appends_go_to_the_end_and_move_nothing),
        WITH_DIR(the_rest_is_read_up_to_its_limit),
        WITH_DIR(one_domain_keeps_the_order_of_submission),
        WITH_DIR(what_has_no_position_says_so),
        WITH_DIR(a_truncated_file_has_that_size_and_its_position_stays),
        WITH_DIR(an_adopted_descriptor_begins_where_it_stood),
    };
    return test_group("operations/net/position", tests, NULL, NULL);
}
