/* SPDX-License-Identifier: MIT */
/* Goal: text of any length fits, ends at a whole character and shows that it was cut.
 * Method: every buffer size from none to enough, over texts of one- to four-byte
 *         characters. */
#include <string.h>
#include "core/core.h"
#include "group.h"

/* Is text whole UTF-8? */
static bool
whole(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        unsigned char lead = (unsigned char)text[i++];
        int more = lead < 0x80    ? 0
                   : lead >= 0xF0 ? 3
                   : lead >= 0xE0 ? 2
                   : lead >= 0xC0 ? 1
                                  : -1;
        for (; more > 0; more--) {
            if (i == length || ((unsigned char)text[i++] & 0xC0) != 0x80)
                return false;
        }
        if (more < 0)
            return false;
    }
    return true;
}

static void
text_that_fits_is_unchanged(void **state)
{
    (void)state;
    char out[8];
    assert_int_equal(errand__text_format(out, sizeof out, "%s-%d", "abc", 123), 7);
    assert_string_equal(out, "abc-123");
    assert_int_equal(errand__text_format(out, sizeof out, "%s", ""), 0);
    assert_string_equal(out, "");
}

static void
longer_text_is_cut_and_marked(void **state)
{
    (void)state;
    char out[8];
    assert_int_equal(errand__text_format(out, sizeof out, "%s", "abcdefgh"), 7);
    assert_string_equal(out, "abcd...");
}

/* O26 */
static void
cut_keeps_characters_whole_in_every_size(void **state)
{
    (void)state;
    const char *texts[] = {"plain text", "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F",
                           "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC",
                           "\xF0\x9F\x98\x80\xF0\x9F\x98\x81\xF0\x9F\x98\x82",
                           "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80 and so on"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t full = strlen(texts[i]);
        size_t before = 0;
        for (size_t size = 1; size <= full + 1; size++) {
            char out[64];
            memset(out, '#', sizeof out);
            size_t length = errand__text_format(out, size, "%s", texts[i]);
            assert_int_equal(out[length], '\0');
            assert_int_equal(out[size], '#');
            assert_true(length < size && length >= before);
            assert_true(whole(out, length));
            before = length;
            if (size == full + 1) {
                assert_string_equal(out, texts[i]);
                continue;
            }
            size_t mark = size - 1 < 3 ? size - 1 : 3;
            assert_true(length + 3 >= size - 1); /* loses no more than a character */
            assert_memory_equal(out + length - mark, "...", mark);
            assert_memory_equal(out, texts[i], length - mark);
        }
    }
}

static void
bytes_that_are_no_characters_are_cut_where_they_are(void **state)
{
    (void)state;
    char out[9];
    assert_int_equal(errand__text_format(out, sizeof out, "%s",
                                         "\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
                     8);
    assert_memory_equal(out, "\x80\x80\x80\x80\x80...", 9);
}

static void
no_room_is_left_alone_and_one_byte_is_the_end(void **state)
{
    (void)state;
    char out[2] = {'#', '#'};
    assert_int_equal(errand__text_format(out, 0, "%s", "abc"), 0);
    assert_int_equal(out[0], '#');
    assert_int_equal(errand__text_format(out, 1, "%s", "abc"), 0);
    assert_int_equal(out[0], '\0');
    assert_int_equal(out[1], '#');
}

/* O26: what is cut is marked, also where the text before it took all of the room. */
static void
appended_text_has_the_room_that_is_left_and_the_mark_stands_once(void **state)
{
    (void)state;
    char out[9] = "ab";
    out[8] = '#';
    assert_int_equal(errand__text_append(out, 8, "%d", 12), 4);
    assert_string_equal(out, "ab12");
    assert_int_equal(errand__text_append(out, 8, "%s", "xyz"), 7);
    assert_string_equal(out, "ab12xyz");
    assert_int_equal(errand__text_append(out, 8, "%s", ""), 7);
    assert_string_equal(out, "ab12xyz");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(errand__text_append(out, 8, "%s", "w"), 7);
        assert_string_equal(out, "ab12...");
    }
    strcpy(out, "ab\xC3\xA4");
    assert_int_equal(errand__text_append(out, 7, "%s", "cde"), 5);
    assert_string_equal(out, "ab...");
    assert_int_equal(errand__text_append(out, 0, "%s", "abc"), 0);
    assert_string_equal(out, "ab...");
    assert_int_equal(out[8], '#');
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_that_fits_is_unchanged),
        cmocka_unit_test(longer_text_is_cut_and_marked),
        cmocka_unit_test(cut_keeps_characters_whole_in_every_size),
        cmocka_unit_test(bytes_that_are_no_characters_are_cut_where_they_are),
        cmocka_unit_test(no_room_is_left_alone_and_one_byte_is_the_end),
        cmocka_unit_test(
            appended_text_has_the_room_that_is_left_and_the_mark_stands_once),
    };
    return test_group("core/text", tests, NULL, NULL);
}
