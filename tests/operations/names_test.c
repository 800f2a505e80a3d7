/* SPDX-License-Identifier: MIT */
/* Goal: directories and file status come back in one canonical form.
 * Method: a directory with every kind of entry in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "rig.h"

static const errand_dir_list *
list(test_rig *rig, const char *path, size_t max)
{
    errand_spec spec;

    assert_int_equal(errand_spec_list_dir(&spec, path, max), ERRAND_OK);
    rig_run(rig, &spec);
    return rig->result.outcome == ERRAND_COMPLETED
               ? rig_payload(rig, &errand_dir_list_type)
               : NULL;
}

static void
make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void
a_directory_is_listed_by_bytes_with_kinds(void **state)
{
    static const struct {
        const char *name;
        errand_file_kind kind;
    } expected[] = {
        {".hidden", ERRAND_FILE_REGULAR},  {"B", ERRAND_FILE_DIRECTORY},
        {"a", ERRAND_FILE_REGULAR},        {"fifo", ERRAND_FILE_FIFO},
        {"link", ERRAND_FILE_LINK},        {"sock", ERRAND_FILE_SOCKET},
        {"\xc3\xa4", ERRAND_FILE_REGULAR}, {"\xff", ERRAND_FILE_REGULAR},
    };
    const size_t count = sizeof expected / sizeof expected[0];
    test_rig *rig = *state;

    assert_int_equal(mkdir(rig_path(rig, "d"), 0700), 0);
    rig_put(rig, "d/\xff", "", 0);
    rig_put(rig, "d/a", "", 0);
    rig_put(rig, "d/\xc3\xa4", "", 0);
    rig_put(rig, "d/.hidden", "", 0);
    assert_int_equal(mkdir(rig_path(rig, "d/B"), 0700), 0);
    assert_int_equal(mkfifo(rig_path(rig, "d/fifo"), 0600), 0);
    assert_int_equal(symlink("a", rig_path(rig, "d/link")), 0);
    make_socket(rig_path(rig, "d/sock"));
    const errand_dir_list *found = list(rig, rig_path(rig, "d"), 0);
    assert_non_null(found);
    assert_int_equal(found->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(found->entries[i].name, expected[i].name);
        assert_string_equal(errand_file_kind_name(found->entries[i].kind),
                            errand_file_kind_name(expected[i].kind));
    }
}

static void
devices_are_told_apart(void **state)
{
    test_rig *rig = *state;
    const errand_dir_list *found = list(rig, "/dev", 0);
    bool seen = false;

    assert_non_null(found);
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->entries[i].name, "null") == 0) {
            assert_int_equal(found->entries[i].kind, ERRAND_FILE_CHARACTERS);
            seen = true;
        }
    assert_true(seen);
}

static void
a_large_directory_is_listed_whole_or_refused(void **state)
{
    test_rig *rig = *state;
    char name[32];

    assert_int_equal(mkdir(rig_path(rig, "many"), 0700), 0);
    assert_int_equal(list(rig, rig_path(rig, "many"), 1)->count, 0);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "many/%08d", (i * 7919) % 3000);
        rig_put(rig, name, "", 0);
    }
    const errand_dir_list *found = list(rig, rig_path(rig, "many"), 3000);
    assert_non_null(found);
    assert_int_equal(found->count, 3000);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "%08d", i);
        assert_string_equal(found->entries[i].name, name);
    }
    assert_null(list(rig, rig_path(rig, "many"), 2999));
    rig_assert_failed(rig, ERRAND_OPERATION_TOO_LARGE, 0);
    rig_assert_says(rig, "more than the 2999 names allowed");
}

static void
what_is_no_directory_is_refused(void **state)
{
    test_rig *rig = *state;

    rig_put(rig, "file", "", 0);
    assert_null(list(rig, rig_path(rig, "file"), 0));
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_DIRECTORY, ENOTDIR);
    assert_null(list(rig, rig_path(rig, "missing"), 0));
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, ENOENT);
    rig_assert_says(rig, "cannot open directory '");
}

static void
no_descriptor_lands_on_a_standard_number(void **state)
{
    test_rig *rig = *state;
    int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);

    close(0);
    const errand_dir_list *found = list(rig, "/proc/self/fd", 0);
    dup2(kept, 0);
    close(kept);
    assert_non_null(found);
    assert_string_not_equal(found->entries[0].name, "0");
}

static void
status_follows_links_only_when_asked(void **state)
{
    test_rig *rig = *state;
    const struct timespec times[2] = {{1, 0}, {1234567890, 5000}};
    errand_spec spec;

    rig_put(rig, "target", "12345", 5);
    assert_int_equal(chmod(rig_path(rig, "target"), 04751), 0);
    assert_int_equal(utimensat(AT_FDCWD, rig_path(rig, "target"), times, 0), 0);
    assert_int_equal(symlink("target", rig_path(rig, "to")), 0);
    assert_int_equal(errand_spec_stat_file(&spec, rig_path(rig, "to"), true), ERRAND_OK);
    rig_run(rig, &spec);
    const errand_file_stat *found = rig_payload(rig, &errand_file_stat_type);
    assert_int_equal(found->kind, ERRAND_FILE_REGULAR);
    assert_int_equal(found->mode, 04751);
    assert_int_equal(found->size, 5);
    assert_true(found->mtime_ns == INT64_C(1234567890000005000));
    assert_int_equal(errand_spec_stat_file(&spec, rig_path(rig, "to"), false), ERRAND_OK);
    rig_run(rig, &spec);
    found = rig_payload(rig, &errand_file_stat_type);
    assert_int_equal(found->kind, ERRAND_FILE_LINK);
    assert_int_equal(errand_spec_stat_file(&spec, rig_path(rig, "target/x"), true),
                     ERRAND_OK);
    rig_run(rig, &spec);
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_DIRECTORY, ENOTDIR);
    assert_string_equal(rig->result.system_call, "stat");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_directory_is_listed_by_bytes_with_kinds,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(devices_are_told_apart, rig_setup_manual,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(a_large_directory_is_listed_whole_or_refused,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_directory_is_refused, rig_setup_manual,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(no_descriptor_lands_on_a_standard_number,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(status_follows_links_only_when_asked,
                                        rig_setup_manual, rig_teardown),
    };
    return test_group("operations/names", tests, NULL, NULL);
}
