/* SPDX-License-Identifier: MIT */
/* Goal: equal results have equal digests wherever they lie, each field counts, and a spec that
 * goes nowhere leaves nothing behind.
 * Method: results are made by hand, twice, then changed in one field at a time. */
#include <stdlib.h>
#include <string.h>
#include "errand/order.h"
#include "rig.h"

static void
bytes_are_echoed(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;
    char bytes[] = {'a', 0, 'b'};

    assert_int_equal(errand_spec_echo(&spec, bytes, 3), ERRAND_OK);
    memset(bytes, 'x', 3);
    rig_run(rig, &spec);
    const errand_file_bytes *echoed = rig_payload(rig, &errand_file_bytes_type);
    assert_int_equal(echoed->size, 3);
    assert_memory_equal(echoed->bytes, "a\0b", 4);
    assert_int_equal(rig->result.payload.size, sizeof *echoed + 3);
    assert_int_equal(errand_spec_echo(&spec, NULL, 0), ERRAND_OK);
    rig_run(rig, &spec);
    echoed = rig_payload(rig, &errand_file_bytes_type);
    assert_int_equal(echoed->size, 0);
    assert_int_equal(errand_spec_nothing(&spec), ERRAND_OK);
    rig_run(rig, &spec);
    assert_null(rig_payload(rig, NULL));
    assert_string_equal(rig->result.operation, "nothing");
}

static void
a_digest_depends_on_contents_and_not_on_places(void **state)
{
    char first[] = "abc", second[] = "abc";
    errand_file_bytes one = {(unsigned char *)first, 3},
                      two = {(unsigned char *)second, 3};

    (void)state;
    assert_true(errand_file_bytes_digest(&one, 0) == errand_file_bytes_digest(&two, 0));
    second[2] = 'd';
    assert_true(errand_file_bytes_digest(&one, 0) != errand_file_bytes_digest(&two, 0));
    two = one;
    two.size = 2;
    assert_true(errand_file_bytes_digest(&one, 0) != errand_file_bytes_digest(&two, 0));
    errand_file_written five = {5}, six = {6};
    assert_true(errand_file_written_digest(&five, 8) !=
                errand_file_written_digest(&six, 8));
    errand_hash hash = {1, 2}, value = {3, 2}, size = {1, 3};
    assert_true(errand_hash_digest(&hash, 0) != errand_hash_digest(&value, 0));
    assert_true(errand_hash_digest(&hash, 0) != errand_hash_digest(&size, 0));
}

static void
a_digest_of_a_list_sees_names_kinds_and_where_names_end(void **state)
{
    const errand_dir_entry entries[][2] = {
        {{"ab", ERRAND_FILE_REGULAR}, {"c", ERRAND_FILE_REGULAR}},
        {{"a", ERRAND_FILE_REGULAR}, {"bc", ERRAND_FILE_REGULAR}},
        {{"ab", ERRAND_FILE_REGULAR}, {"c", ERRAND_FILE_LINK}},
        {{"ab", ERRAND_FILE_REGULAR}, {"d", ERRAND_FILE_REGULAR}},
    };
    errand_dir_list lists[5];
    (void)state;
    for (int i = 0; i < 4; i++)
        lists[i] = (errand_dir_list){entries[i], 2};
    lists[4] = (errand_dir_list){entries[0], 1};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            assert_int_equal(errand_dir_list_digest(&lists[i], 0) ==
                                 errand_dir_list_digest(&lists[j], 0),
                             i == j);
}

static void
a_digest_of_a_status_leaves_out_what_no_two_runs_share(void **state)
{
    const errand_file_stat file = {ERRAND_FILE_REGULAR, 0644, 10, 1000};
    errand_file_stat other = file;

    (void)state;
    other.mtime_ns = 2000;
    assert_true(errand_file_stat_digest(&file, 0) == errand_file_stat_digest(&other, 0));
    other.mode = 0600;
    assert_true(errand_file_stat_digest(&file, 0) != errand_file_stat_digest(&other, 0));
    other = file;
    other.size = 11;
    assert_true(errand_file_stat_digest(&file, 0) != errand_file_stat_digest(&other, 0));
    errand_file_stat directory = file, larger;
    directory.kind = ERRAND_FILE_DIRECTORY;
    assert_true(errand_file_stat_digest(&file, 0) !=
                errand_file_stat_digest(&directory, 0));
    larger = directory;
    larger.size = 4096;
    assert_true(errand_file_stat_digest(&larger, 0) ==
                errand_file_stat_digest(&directory, 0));
}

static void
a_digest_of_addresses_sees_each_field_but_the_scope(void **state)
{
    const errand_address base = {.family = 6, .port = 80, .bytes = {1}, .scope = 2};
    errand_address changed[5] = {base, base, base, base, base};
    const errand_addresses one = {&base, 1};

    (void)state;
    changed[0].scope = 3;
    changed[1].family = 4;
    changed[2].port = 81;
    changed[3].bytes[15] = 1;
    changed[4].bytes[0] = 2;
    for (int i = 0; i < 5; i++) {
        errand_addresses other = {&changed[i], 1};
        assert_int_equal(errand_addresses_digest(&one, 0) ==
                             errand_addresses_digest(&other, 0),
                         i == 0);
    }
}

static void
a_digest_of_a_command_sees_each_field(void **state)
{
    const unsigned char *ab = (const unsigned char *)"ab",
                        *c = (const unsigned char *)"c";
    const errand_command_result results[] = {
        {ab, c, 2, 1, 0, 0},   {ab, c, 2, 1, 1, 0},      {ab, c, 2, 1, -1, 9},
        {ab, c, 1, 1, 0, 0},   {c, ab, 1, 2, 0, 0},      {ab, c, 2, 0, 0, 0},
        {ab, c, 2, 1, -1, 15}, {ab, ab + 1, 1, 1, 0, 0}, {ab, ab, 0, 2, 0, 0},
    };
    const size_t count = sizeof results / sizeof results[0];

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            assert_int_equal(errand_command_result_digest(&results[i], 0) ==
                                 errand_command_result_digest(&results[j], 0),
                             i == j);
}

/* Each kind of spec, made once. */
static errand_status
make(int which, errand_spec *spec)
{
    const char *argv[] = {"true", "x", NULL}, *env[] = {"A=B", NULL};
    const errand_command_config config = {.struct_size = sizeof config,
                                          .argv = argv,
                                          .env = env,
                                          .cwd = "/",
                                          .input = "in",
                                          .input_size = 2};

    switch (which) {
    case 0:
        return errand_spec_echo(spec, "x", 1);
    case 1:
        return errand_spec_sleep(spec, 1);
    case 2:
        return errand_spec_read_file(spec, "x", 0);
    case 3:
        return errand_spec_write_file(spec, "x", "y", 1, 0);
    case 4:
        return errand_spec_append_file(spec, "x", "y", 1, 0);
    case 5:
        return errand_spec_list_dir(spec, "x", 0);
    case 6:
        return errand_spec_stat_file(spec, "x", false);
    case 7:
        return errand_spec_hash_file(spec, "x");
    case 8:
        return errand_spec_resolve(spec, "x", "y", 0);
    case 9:
        return errand_spec_command(spec, &config);
    default:
        return errand_spec_nothing(spec);
    }
}

static void
an_abandoned_spec_leaves_nothing_and_may_be_abandoned_again(void **state)
{
    int64_t before = errand_testing_live_bytes();

    (void)state;
    for (int i = 0; i <= 10; i++) {
        errand_spec spec;
        assert_int_equal(make(i, &spec), ERRAND_OK);
        assert_int_equal(errand_testing_live_bytes() > before, i < 10);
        assert_int_equal(spec.struct_size, sizeof spec);
        assert_int_equal(
            spec.kind >= ERRAND_KIND_NOTHING && spec.kind <= ERRAND_KIND_COMMAND, true);
        errand_spec_abandon(&spec);
        assert_int_equal(errand_testing_live_bytes(), before);
        assert_int_equal(spec.kind, 0);
        errand_spec_abandon(&spec);
        assert_int_equal(errand_testing_live_bytes(), before);
    }
    errand_spec_abandon(NULL);
}

/* O10 */
static void
memory_that_is_refused_to_a_spec_changes_nothing(void **state)
{
    int64_t before = errand_testing_live_bytes();
    errand_spec untouched;

    (void)state;
    memset(&untouched, 0x5a, sizeof untouched);
    for (int i = 0; i < 10; i++)
        for (uint64_t n = 1;; n++) {
            errand_spec spec = untouched;
            errand_testing_fail_allocation(n);
            errand_status status = make(i, &spec);
            errand_testing_fail_allocation(0);
            if (status == ERRAND_OK) {
                assert_true(n > 1);
                errand_spec_abandon(&spec);
                break;
            }
            assert_int_equal(status, ERRAND_ENOMEM);
            assert_memory_equal(&spec, &untouched, sizeof spec);
            assert_int_equal(errand_testing_live_bytes(), before);
        }
}

static void
codes_have_names(void **state)
{
    (void)state;
    assert_string_equal(errand_operation_code_name(ERRAND_OPERATION_NOT_FOUND),
                        "NOT_FOUND");
    assert_string_equal(errand_operation_code_name(ERRAND_OPERATION_IO), "IO");
    assert_string_equal(errand_operation_code_name(0), "unknown");
    assert_string_equal(errand_operation_code_name(1000), "unknown");
    assert_string_equal(errand_file_kind_name(ERRAND_FILE_BLOCKS), "blocks");
    assert_string_equal(errand_file_kind_name((errand_file_kind)99), "other");
}

/* The digest of a seeded run that echoes one byte. */
static uint64_t
digest_of_run(test_rig *rig, const char *byte)
{
    const errand_runtime_config config = {
        .struct_size = sizeof config, .order = ERRAND_ORDER_INLINE, .seed = 7};
    errand_runtime *runtime;
    errand_lease *lease;
    errand_spec spec;
    size_t count;

    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_OK);
    assert_int_equal(errand_audit_operations(runtime), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, rig->executor, 0, &lease), ERRAND_OK);
    assert_int_equal(errand_spec_echo(&spec, byte, 1), ERRAND_OK);
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    do {
        assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(runtime, 1, NULL, NULL, &count), ERRAND_OK);
    } while (count == 0);
    uint64_t digest = errand_digest(runtime);
    assert_int_equal(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    return digest;
}

static void
contents_enter_the_digest_of_a_seeded_run(void **state)
{
    uint64_t digest = digest_of_run(*state, "a");

    assert_true(digest != 0);
    assert_true(digest_of_run(*state, "a") == digest);
    assert_true(digest_of_run(*state, "b") != digest);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_echoed, rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_digest_depends_on_contents_and_not_on_places,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_digest_of_a_list_sees_names_kinds_and_where_names_end, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_digest_of_a_status_leaves_out_what_no_two_runs_share, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_digest_of_addresses_sees_each_field_but_the_scope, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(a_digest_of_a_command_sees_each_field,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            an_abandoned_spec_leaves_nothing_and_may_be_abandoned_again, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(memory_that_is_refused_to_a_spec_changes_nothing,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(codes_have_names, rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(contents_enter_the_digest_of_a_seeded_run,
                                        rig_setup_manual, rig_teardown),
    };
    return test_group("operations/payload", tests, NULL, NULL);
}
