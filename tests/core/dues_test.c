/* SPDX-License-Identifier: MIT */
/* What the heap promises, dues promise too, however many come at once and when somebody asks. */
#include <string.h>
#include "core/dues.h"
#include "group.h"

enum { ENTRIES = 6000, KINDS = 5 };

static errand__heap_entry entries[ENTRIES];

static uint64_t
draw(uint64_t ordinal, uint64_t n)
{
    return errand__random_below(1, ERRAND__STREAM_APPLICATION, 3, ordinal, n);
}

static bool
comes_before(const errand__heap_entry *a, const errand__heap_entry *b)
{
    if (a->major != b->major)
        return a->major < b->major;
    return a->minor != b->minor ? a->minor < b->minor : a->last < b->last;
}

/* Words of many shapes: due at one instant, at few, at many; so far apart, or so large, that no key
 * tells them apart; and the same but for the last word. */
static void
fill(errand__heap_entry *entry, uint64_t i, unsigned kind, uint64_t now)
{
    static const uint64_t widths[KINDS] = {1, 3, UINT64_C(1) << 20, UINT64_C(1) << 40, 1};

    entry->major = now + draw(4 * i, widths[kind]);
    entry->minor = draw(4 * i + 1, kind == 4 ? 2 : UINT64_C(1) << 32);
    if (kind == 3 && draw(4 * i + 2, 9) == 0)
        entry->minor |= UINT64_C(1) << 50;
    entry->last = i * 7 % ENTRIES;
}

/* Against a plain search. */
static errand__heap_entry *
search(size_t count)
{
    errand__heap_entry *first = NULL;

    for (size_t i = 0; i < count; i++)
        if (entries[i].position != 0 &&
            (first == NULL || comes_before(&entries[i], first)))
            first = &entries[i];
    return first;
}

static size_t
walk(const errand__dues *dues)
{
    size_t place = 0, count = 0;

    while (errand__dues_walk(dues, &place) != NULL)
        count++;
    return count;
}

/* I1: the order is that of the words, whoever was there before. */
static void
windows_leave_in_the_order_of_their_words_whatever_comes_in_between(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        errand__dues dues;
        uint64_t now = 1, used = 0, asked = 0;

        memset(entries, 0, sizeof entries);
        errand__dues_init(&dues, NULL);
        assert_null(errand__dues_first(&dues));
        assert_int_equal(errand__dues_next(&dues), UINT64_MAX);
        while (used < ENTRIES / 8) {
            uint64_t window = 1 + draw(used, draw(used, 3) == 0 ? 10 : 400);

            for (uint64_t i = 0; i < window && used < ENTRIES / 8; i++) {
                assert_true(errand__dues_reserve(&dues, dues.count + 1));
                fill(&entries[used], used, kind, now);
                errand__dues_insert(&dues, &entries[used++]);
            }
            for (uint64_t left = draw(used + 1, window + 1); left > 0; left--) {
                errand__heap_entry *first = search(used), *other;

                assert_ptr_equal(errand__dues_first(&dues), first);
                assert_int_equal(errand__dues_next(&dues), first->major);
                now = first->major;
                errand__dues_remove(&dues, first);
                errand__dues_remove(&dues, first); /* harmless */
                other = &entries[draw(++asked, used)];
                errand__dues_remove(&dues, other); /* anybody, in any place, or in none */
                assert_int_equal(other->position, 0);
                assert_int_equal(walk(&dues), dues.count);
                if (dues.count == 0)
                    break;
            }
        }
        while (dues.count > 0) {
            errand__heap_entry *first = search(used);

            assert_ptr_equal(errand__dues_first(&dues), first);
            errand__dues_remove(&dues, first);
        }
        assert_null(search(used));
        errand__dues_fini(&dues);
    }
}

static void
a_window_of_any_size_is_sorted_or_kept_in_the_heap(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        errand__heap_entry *before = NULL, *first;
        errand__dues dues;

        memset(entries, 0, sizeof entries);
        errand__dues_init(&dues, NULL);
        assert_true(errand__dues_reserve(&dues, ENTRIES));
        for (uint64_t i = 0; i < ENTRIES; i++) {
            fill(&entries[i], i, kind, 0);
            errand__dues_insert(&dues, &entries[i]);
        }
        for (size_t i = 0; i < ENTRIES; i++) {
            first = errand__dues_first(&dues);
            assert_true(before == NULL || comes_before(before, first));
            errand__dues_remove(&dues, first);
            before = first;
        }
        assert_null(errand__dues_first(&dues));
        errand__dues_fini(&dues);
    }
}

static void
what_is_left_at_the_end_is_in_none(void **state)
{
    (void)state;
    errand__dues dues;

    memset(entries, 0, sizeof entries);
    errand__dues_init(&dues, NULL);
    assert_true(errand__dues_reserve(&dues, 400));
    for (uint64_t i = 0; i < 400; i++) {
        fill(&entries[i], i, 2, 0);
        errand__dues_insert(&dues, &entries[i]);
        if (i % 150 == 149)
            assert_non_null(errand__dues_first(&dues));
    }
    errand__dues_fini(&dues);
    for (size_t i = 0; i < 400; i++)
        assert_int_equal(entries[i].position, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            windows_leave_in_the_order_of_their_words_whatever_comes_in_between),
        cmocka_unit_test(a_window_of_any_size_is_sorted_or_kept_in_the_heap),
        cmocka_unit_test(what_is_left_at_the_end_is_in_none),
    };

    return test_group("core/dues", tests, NULL, NULL);
}
