/* SPDX-License-Identifier: MIT */
/* Goal: whatever errand answers can be named and explained, and a number means one thing.
 * Method: the tables of base.h are unfolded here once more and compared with the calls. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "errand/base.h"
#include "group.h"

typedef struct row {
    int number;
    const char *name;
    const char *sentence;
} row;

#define ROW(name, number, sentence) {number, #name, sentence},
static const row statuses[] = {ERRAND_STATUS_TABLE(ROW)};
static const row codes[] = {ERRAND_CODE_TABLE(ROW)};
#undef ROW
enum {
    STATUSES = sizeof statuses / sizeof statuses[0],
    CODES = sizeof codes / sizeof codes[0]
};

static void
assert_numbers_unique(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            assert_int_not_equal(rows[i].number, rows[j].number);
            assert_string_not_equal(rows[i].name, rows[j].name);
            assert_string_not_equal(rows[i].sentence, rows[j].sentence);
        }
}

static void
each_status_has_its_name_and_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        errand_status status = (errand_status)statuses[i].number;
        assert_string_equal(errand_status_name(status), statuses[i].name);
        assert_string_equal(errand_status_text(status), statuses[i].sentence);
    }
}

/* O29, the table: every number of it has one name and one sentence. */
static void
each_code_has_its_name_and_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++) {
        errand_code code = (errand_code)codes[i].number;
        assert_string_equal(errand_code_name(code), codes[i].name);
        assert_string_equal(errand_code_text(code), codes[i].sentence);
    }
}

static void
no_number_or_sentence_is_used_twice(void **state)
{
    (void)state;
    assert_numbers_unique(statuses, STATUSES);
    assert_numbers_unique(codes, CODES);
}

static void
codes_are_counted_without_gaps(void **state)
{
    (void)state;
    assert_int_equal(CODES, ERRAND_CODES);
    for (size_t i = 0; i < CODES; i++)
        assert_int_equal(codes[i].number, (int)i);
}

static void
only_ok_has_number_zero(void **state)
{
    (void)state;
    assert_int_equal(ERRAND_OK, 0);
    assert_string_equal(errand_status_name(ERRAND_OK), "OK");
    for (size_t i = 1; i < STATUSES; i++)
        assert_int_equal(statuses[i].name[0], 'E');
}

static void
outcomes_are_named_as_they_are_printed(void **state)
{
    static const char *const names[] = {"completed", "failed", "cancelled", "panicked",
                                        "crashed"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(errand_outcome_name((errand_outcome)(i + 1)), names[i]);
}

static void
unknown_numbers_are_named_unknown(void **state)
{
    (void)state;
    assert_string_equal(errand_status_name((errand_status)0x7fff), "unknown");
    assert_string_equal(errand_status_text((errand_status)0x7fff), "unknown");
    assert_string_equal(errand_code_name((errand_code)ERRAND_CODES), "unknown");
    assert_string_equal(errand_code_text((errand_code)0x7fff), "unknown");
    assert_string_equal(errand_outcome_name((errand_outcome)0), "unknown");
}

static void
sentences_fit_a_line_and_end_without_a_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        size_t length = strlen(statuses[i].sentence);
        assert_in_range(length, 10, 80);
        assert_true(islower((unsigned char)statuses[i].sentence[0]));
        assert_true(isalpha((unsigned char)statuses[i].sentence[length - 1]));
    }
}

static void
version_is_that_of_the_header(void **state)
{
    char expected[64];

    (void)state;
    snprintf(expected, sizeof expected, "%d.%d.%d", ERRAND_VERSION_MAJOR,
             ERRAND_VERSION_MINOR, ERRAND_VERSION_PATCH);
    assert_string_equal(errand_version(), expected);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_has_its_name_and_sentence),
        cmocka_unit_test(each_code_has_its_name_and_sentence),
        cmocka_unit_test(no_number_or_sentence_is_used_twice),
        cmocka_unit_test(codes_are_counted_without_gaps),
        cmocka_unit_test(only_ok_has_number_zero),
        cmocka_unit_test(outcomes_are_named_as_they_are_printed),
        cmocka_unit_test(unknown_numbers_are_named_unknown),
        cmocka_unit_test(sentences_fit_a_line_and_end_without_a_stop),
        cmocka_unit_test(version_is_that_of_the_header),
    };
    return test_group("core/status", tests, NULL, NULL);
}
