/* SPDX-License-Identifier: MIT */
/* Goal: a tape finds what was put into it, keeps its order, and survives as text.
 * Method: tapes against plain arrays; texts that are wrong in one place each. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "errand/testing.h"
#include "scheduler_rig.h"

static errand_tape *
tape_of(const errand_choice *choices, size_t count)
{
    errand_tape *tape = NULL;

    assert_int_equal(errand_tape_create(&tape), ERRAND_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(errand_tape_put(tape, &choices[i]), ERRAND_OK);
    return tape;
}

static bool
same(const errand_choice *a, const errand_choice *b)
{
    return a->site == b->site && a->key == b->key && a->ordinal == b->ordinal &&
           a->n == b->n && a->value == b->value;
}

static errand_choice
made_up(uint64_t i)
{
    return (errand_choice){.site = (errand_site)(1 + i % ERRAND_SITES),
                           .key = i / 40,
                           .ordinal = i % 40,
                           .n = 1000,
                           .value = i % 1000};
}

static void
choices_are_found_by_site_key_and_ordinal(void **state)
{
    enum { COUNT = 20000 };
    errand_tape *tape = NULL;
    errand_choice found, choice;

    (void)state;
    assert_int_equal(errand_tape_create(&tape), ERRAND_OK);
    for (uint64_t i = 0; i < COUNT; i++) {
        choice = made_up(i);
        assert_int_equal(errand_tape_put(tape, &choice), ERRAND_OK);
    }
    assert_int_equal(errand_tape_count(tape), COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        choice = made_up(i);
        assert_int_equal(
            errand_tape_find(tape, choice.site, choice.key, choice.ordinal, &found),
            ERRAND_OK);
        assert_true(same(&found, &choice));
        assert_true(errand_tape_at(tape, i, &found));
        assert_true(same(&found, &choice)); /* in the order first put */
    }
    choice.ordinal = 77;
    assert_int_equal(errand_tape_find(tape, choice.site, choice.key, 77, &found),
                     ERRAND_EUNKNOWN);
    assert_false(errand_tape_at(tape, COUNT, &found));
    errand_tape_abandon(&tape);
    assert_null(tape);
    errand_tape_abandon(&tape);
}

static void
an_equal_choice_is_replaced_and_a_removed_one_is_gone(void **state)
{
    errand_choice choices[300], found;
    errand_tape *tape;
    size_t left = 0;

    (void)state;
    for (uint64_t i = 0; i < 300; i++)
        choices[i] = made_up(i);
    tape = tape_of(choices, 300);
    choices[5].value = 999;
    assert_int_equal(errand_tape_put(tape, &choices[5]), ERRAND_OK);
    assert_int_equal(errand_tape_count(tape), 300);
    assert_true(errand_tape_at(tape, 5, &found));
    assert_int_equal(found.value, 999);
    for (size_t i = 0; i < 300; i++) {
        if (i % 3 == 0)
            continue;
        assert_int_equal(
            errand_tape_remove(tape, choices[i].site, choices[i].key, choices[i].ordinal),
            ERRAND_OK);
        assert_int_equal(
            errand_tape_remove(tape, choices[i].site, choices[i].key, choices[i].ordinal),
            ERRAND_EUNKNOWN);
    }
    assert_int_equal(errand_tape_count(tape), 100);
    for (size_t i = 0; i < 300; i += 3) {
        assert_true(errand_tape_at(tape, left++, &found));
        assert_true(same(&found, &choices[i]));
        assert_int_equal(errand_tape_find(tape, choices[i].site, choices[i].key,
                                          choices[i].ordinal, &found),
                         ERRAND_OK);
    }
    for (uint64_t i = 0; i < 5000; i++) { /* many holes are squeezed out on the way */
        errand_choice more = {ERRAND_SITE_PLACE, 1, 1000 + i, 5, 1};

        assert_int_equal(errand_tape_put(tape, &more), ERRAND_OK);
        assert_int_equal(errand_tape_remove(tape, more.site, 1, 1000 + i), ERRAND_OK);
    }
    assert_int_equal(errand_tape_count(tape), 100);
    errand_tape_abandon(&tape);
}

static void
what_is_no_choice_is_refused(void **state)
{
    errand_choice bad[] = {
        {0, 1, 1, 2, 0},
        {(errand_site)13, 1, 1, 2, 0},
        {ERRAND_SITE_PICK, 1, 1, 1, 0}, /* D145 */
        {ERRAND_SITE_PICK, 1, 1, 4, 4},
    };
    errand_tape *tape = tape_of(NULL, 0);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(errand_tape_put(tape, &bad[i]), ERRAND_EINVAL);
    assert_int_equal(errand_tape_remove(tape, (errand_site)0, 0, 0), ERRAND_EINVAL);
    assert_int_equal(errand_tape_find(tape, (errand_site)13, 0, 0, &bad[0]),
                     ERRAND_EINVAL);
    assert_int_equal(errand_tape_count(tape), 0);
    errand_tape_abandon(&tape);
}

static void
memory_that_runs_out_leaves_the_tape_as_it_was(void **state)
{
    errand_choice choice = made_up(0);
    errand_tape *tape = NULL;

    (void)state;
    errand_testing_fail_allocation(1);
    assert_int_equal(errand_tape_create(&tape), ERRAND_ENOMEM);
    tape = tape_of(NULL, 0);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        errand_testing_fail_allocation(nth);
        assert_int_equal(errand_tape_put(tape, &choice), ERRAND_ENOMEM);
        assert_int_equal(errand_tape_count(tape), 0);
    }
    errand_testing_fail_allocation(0);
    assert_int_equal(errand_tape_put(tape, &choice), ERRAND_OK);
    errand_testing_fail_allocation(1);
    for (uint64_t i = 1; i <= 64; i++) { /* no room for the 65th */
        choice = made_up(i);
        errand__tape_record(tape, &choice);
    }
    errand_testing_fail_allocation(0);
    assert_int_equal(errand_tape_count(tape), 64);
    assert_int_equal(errand_tape_write(tape, "/dev/null"), ERRAND_ENOMEM);
    errand_tape_abandon(&tape);
}

/* ---- text ---------------------------------------------------------------------------------------- */

static void
a_tape_is_the_same_after_its_text(void **state)
{
    const errand_choice choices[] = {
        {ERRAND_SITE_FATE, UINT64_MAX, UINT64_MAX, 0, UINT64_MAX},
        {ERRAND_SITE_PICK, 0, 0, 3, 2},
        {ERRAND_SITE_APPLICATION, 0xabcdef, 7, UINT64_C(1) << 32, 1234567},
    };
    static const char expected[] =
        "errand tape 1\n"
        "fate ffffffffffffffff 18446744073709551615 0 18446744073709551615\n"
        "pick 0 0 3 2\n"
        "application abcdef 7 4294967296 1234567\n";
    errand_tape *tape = tape_of(choices, 3), *again = NULL;
    char text[512], part[20], path[] = "/tmp/errand-tape-XXXXXX";
    int file = mkstemp(path);

    (void)state;
    assert_int_equal(errand_tape_print(tape, NULL, 0), strlen(expected));
    assert_int_equal(errand_tape_print(tape, part, sizeof part), strlen(expected));
    assert_int_equal(strlen(part), sizeof part - 1);
    assert_int_equal(errand_tape_print(tape, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(errand_tape_write(tape, path), ERRAND_OK);
    assert_int_equal(errand_tape_read(path, &again, NULL, 0), ERRAND_OK);
    unlink(path);
    errand_tape_print(again, text, sizeof text);
    assert_string_equal(text, expected);
    errand_tape_abandon(&tape);
    errand_tape_abandon(&again);
}

static void
blank_lines_and_remarks_do_not_count(void **state)
{
    static const char text[] = "errand tape 1\r\n\n# the tape of a run\n"
                               "  pick 0 0 3 2  \n#\n\tpick 0 1 3 1";
    char longer[400];
    errand_tape *tape = NULL;

    (void)state;
    assert_int_equal(errand_tape_parse(text, strlen(text), &tape, NULL, 0), ERRAND_OK);
    assert_int_equal(errand_tape_count(tape), 2);
    errand_tape_abandon(&tape);
    memset(longer, 'x', sizeof longer);
    memcpy(longer, "errand tape 1\n#", 15);
    assert_int_equal(errand_tape_parse(longer, sizeof longer, &tape, NULL, 0), ERRAND_OK);
    assert_int_equal(errand_tape_count(tape), 0);
    errand_tape_abandon(&tape);
}

static void
a_bad_line_is_named_and_nothing_is_loaded(void **state)
{
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"", "line 1: this is no tape"},
        {"hello\n", "line 1: this is no tape"},
        {"errand tape 2\npick 0 0 3 2\n", "line 1: the tape is of another format"},
        {"errand tape 1\npick 0 0 3\n", "line 2: five fields"},
        {"errand tape 1\npick 0 0 3 2 1\n", "line 2: there are more than five"},
        {"errand tape 1\n\npeck 0 0 3 2\n", "line 3: there is no site"},
        {"errand tape 1\npick 0x 0 3 2\n", "line 2: the key"},
        {"errand tape 1\npick 11112222333344445 0 3 2\n", "line 2: the key"},
        {"errand tape 1\npick 0 -1 3 2\n", "line 2: the ordinal"},
        {"errand tape 1\npick 0 a 3 2\n", "line 2: the ordinal"},
        {"errand tape 1\npick 0 1 +3 2\n", "line 2: n must"},
        {"errand tape 1\npick 0 1 3 18446744073709551616\n",
         "line 2: the value must be a"},
        {"errand tape 1\npick 0 1 3 3\n", "line 2: the value must be below n"},
        {"errand tape 1\npick 0 1 1 0\n", "line 2: n = 1 is no choice"},
        {"errand tape 1\npick 0 1 3 2\npick 0 1 3 1\n", "line 3: a line before"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errand_tape *tape = NULL;
        char said[200] = "";

        assert_int_equal(
            errand_tape_parse(bad[i].text, strlen(bad[i].text), &tape, said, sizeof said),
            ERRAND_EINVAL);
        assert_null(tape);
        if (strncmp(said, bad[i].said, strlen(bad[i].said)) != 0)
            fail_msg("%s: %s", bad[i].text, said);
    }
}

static void
files_that_cannot_be_used_are_a_system_error(void **state)
{
    errand_tape *tape = NULL;
    char said[200] = "";

    (void)state;
    assert_int_equal(errand_tape_read("/nowhere/at/all", &tape, said, sizeof said),
                     ERRAND_ESYSTEM);
    assert_string_equal(said, "No such file or directory");
    assert_int_equal(errand_tape_read("/", &tape, said, sizeof said), ERRAND_ESYSTEM);
    /* Without an end. */
    assert_int_equal(errand_tape_read("/dev/zero", &tape, said, sizeof said),
                     ERRAND_EINVAL);
    assert_null(tape);
    tape = tape_of(NULL, 0);
    assert_int_equal(errand_tape_write(tape, "/nowhere/at/all"), ERRAND_ESYSTEM);
    assert_int_equal(errand_tape_write(tape, "/dev/full"), ERRAND_ESYSTEM);
    errand_tape_abandon(&tape);
}

static void
memory_that_runs_out_in_a_parse_leaves_nothing(void **state)
{
    static const char text[] = "errand tape 1\npick 0 0 3 2\n";
    errand_tape *tape = NULL;

    (void)state;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        errand_testing_fail_allocation(nth);
        assert_int_equal(errand_tape_parse(text, strlen(text), &tape, NULL, 0),
                         ERRAND_ENOMEM);
        assert_null(tape);
    }
    errand_testing_fail_allocation(0);
}

static int
note_bytes(void **state)
{
    static int64_t bytes;

    bytes = errand__mem_live_bytes();
    *state = &bytes;
    return 0;
}

static int
check_bytes(void **state)
{
    return errand__mem_live_bytes() == *(int64_t *)*state ? 0 : -1;
}

#define TAPE_TEST(name) cmocka_unit_test_setup_teardown(name, note_bytes, check_bytes)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TAPE_TEST(choices_are_found_by_site_key_and_ordinal),
        TAPE_TEST(an_equal_choice_is_replaced_and_a_removed_one_is_gone),
        TAPE_TEST(what_is_no_choice_is_refused),
        TAPE_TEST(memory_that_runs_out_leaves_the_tape_as_it_was),
        TAPE_TEST(a_tape_is_the_same_after_its_text),
        TAPE_TEST(blank_lines_and_remarks_do_not_count),
        TAPE_TEST(a_bad_line_is_named_and_nothing_is_loaded),
        TAPE_TEST(files_that_cannot_be_used_are_a_system_error),
        TAPE_TEST(memory_that_runs_out_in_a_parse_leaves_nothing),
    };
    return test_group("scheduler/tape", tests, NULL, NULL);
}
