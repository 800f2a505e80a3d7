/* SPDX-License-Identifier: MIT */
/* Goal: the smallest entry is always first, and any entry can leave at once.
 * Method: random inserts and removals against a plain search for the smallest. */
#include <string.h>
#include "core/core.h"
#include "group.h"

enum { ENTRIES = 200 };

static uint64_t
draw(uint64_t ordinal, uint64_t n)
{
    return errand__random_below(1, ERRAND__STREAM_APPLICATION, 2, ordinal, n);
}

static int
compare(const errand__heap_entry *a, const errand__heap_entry *b)
{
    const uint64_t left[] = {a->major, a->minor, a->last};
    const uint64_t right[] = {b->major, b->minor, b->last};
    for (int i = 0; i < 3; i++) {
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    }
    return 0;
}

static void
assert_positions(const errand__heap *heap)
{
    size_t count = 0, place = 0;
    assert_true((errand__heap_first(heap) == NULL) == (heap->count == 0));
    for (size_t i = 2; i < 2 * heap->room; i++) {
        const errand__heap_entry *entry = heap->slots[i].entry;
        const errand__heap_entry *winner = heap->slots[i / 2].entry;
        assert_true(winner == entry || winner == heap->slots[i ^ 1].entry);
        if (entry != NULL)
            assert_true(winner != NULL && compare(winner, entry) <= 0);
    }
    for (const errand__heap_entry *entry; (entry = errand__heap_walk(heap, &place));)
        count += heap->slots[heap->room + entry->position - 1].entry == entry;
    assert_int_equal(count, heap->count);
}

/* O72: the order is that of the words, the first one foremost. */
static void
entries_leave_in_the_order_of_their_words(void **state)
{
    (void)state;
    static errand__heap_entry entries[ENTRIES];
    errand__heap heap;
    memset(entries, 0, sizeof entries);
    errand__heap_init(&heap, NULL);
    assert_null(errand__heap_first(&heap));
    assert_true(errand__heap_reserve(&heap, ENTRIES));
    for (uint64_t i = 0; i < ENTRIES; i++) {
        entries[i].major = draw(i, 4);
        entries[i].minor = UINT64_MAX - draw(1000 + i, 4);
        entries[i].last = i * 7 % ENTRIES;
        errand__heap_insert(&heap, &entries[i]);
        assert_positions(&heap);
    }
    errand__heap_entry *before = NULL;
    for (size_t i = 0; i < ENTRIES; i++) {
        errand__heap_entry *first = errand__heap_first(&heap);
        if (before != NULL)
            assert_true(compare(before, first) < 0);
        errand__heap_remove(&heap, first);
        assert_int_equal(first->position, 0);
        before = first;
    }
    assert_null(errand__heap_first(&heap));
    errand__heap_fini(&heap);
}

static void
any_entry_leaves_at_once_and_the_rest_stays_in_order(void **state)
{
    (void)state;
    static errand__heap_entry entries[ENTRIES];
    errand__heap heap;
    size_t in = 0;
    memset(entries, 0, sizeof entries);
    errand__heap_init(&heap, NULL);
    assert_true(errand__heap_reserve(&heap, ENTRIES));
    for (uint64_t step = 0; step < test_scaled(100000); step++) {
        errand__heap_entry *entry = &entries[draw(2 * step, ENTRIES)];
        if (entry->position != 0) {
            errand__heap_remove(&heap, entry);
            in--;
        } else {
            entry->major = draw(2 * step + 1, 50);
            entry->last = step;
            errand__heap_insert(&heap, entry);
            in++;
        }
        assert_int_equal(heap.count, in);
        assert_positions(&heap);
        const errand__heap_entry *least = NULL;
        for (size_t i = 0; i < ENTRIES; i++) {
            if (entries[i].position != 0 &&
                (least == NULL || compare(&entries[i], least) < 0))
                least = &entries[i];
        }
        assert_ptr_equal(errand__heap_first(&heap), least);
    }
    errand__heap_fini(&heap);
    for (size_t i = 0; i < ENTRIES; i++)
        assert_int_equal(entries[i].position, 0);
}

/* Windows of insertions between two questions, first words up to the largest, room that grows. */
static void
late_words_and_windows_of_any_size_keep_the_order(void **state)
{
    (void)state;
    static errand__heap_entry entries[ENTRIES];
    static const uint64_t bases[] = {0, UINT64_MAX / 2 - 1, UINT64_MAX - 3};
    for (size_t window = 1; window <= ENTRIES; window *= 3) {
        errand__heap heap;
        errand__heap_entry *before = NULL;
        memset(entries, 0, sizeof entries);
        errand__heap_init(&heap, NULL);
        for (uint64_t i = 0; i < ENTRIES; i++) {
            entries[i].major = bases[draw(3 * i, 3)] + draw(3 * i + 1, 4);
            entries[i].minor = draw(3 * i + 2, 4);
            entries[i].last = i;
            assert_true(errand__heap_reserve(&heap, i + 1));
            errand__heap_insert(&heap, &entries[i]);
            if (i % window == 0)
                assert_positions(&heap);
        }
        assert_positions(&heap);
        for (size_t i = 0; i < ENTRIES; i++) {
            errand__heap_entry *first = errand__heap_first(&heap);
            assert_true(errand__heap_next(&heap) == first->major);
            if (before != NULL)
                assert_true(compare(before, first) < 0);
            errand__heap_remove(&heap, first);
            before = first;
        }
        assert_true(errand__heap_next(&heap) == UINT64_MAX);
        errand__heap_fini(&heap);
    }
}

static void
equal_entries_leave_in_an_order_fixed_by_the_calls(void **state)
{
    (void)state;
    size_t orders[2][32];
    errand__heap_entry entries[2][32];
    memset(entries, 0, sizeof entries);
    for (int run = 0; run < 2; run++) {
        errand__heap heap;
        errand__heap_init(&heap, NULL);
        assert_true(errand__heap_reserve(&heap, 32));
        /* The second run has its entries at falling addresses. */
        for (int i = 0; i < 32; i++)
            errand__heap_insert(&heap, &entries[run][run == 0 ? i : 31 - i]);
        for (int i = 0; i < 32; i++) {
            errand__heap_entry *first = errand__heap_first(&heap);
            size_t index = (size_t)(first - entries[run]);
            orders[run][i] = run == 0 ? index : 31 - index;
            errand__heap_remove(&heap, first);
        }
        errand__heap_fini(&heap);
    }
    assert_memory_equal(orders[0], orders[1], sizeof orders[0]);
}

static void
refused_room_changes_nothing(void **state)
{
    (void)state;
    int64_t live = errand__mem_live_bytes();
    errand__heap heap;
    errand__heap_entry entry = {.major = 1};
    errand__heap_init(&heap, NULL);
    errand__mem_fail_nth(1);
    assert_false(errand__heap_reserve(&heap, 1));
    assert_true(errand__heap_reserve(&heap, 1));
    errand__heap_insert(&heap, &entry);
    size_t room = heap.room;
    errand__mem_fail_nth(1);
    assert_false(errand__heap_reserve(&heap, room + 1));
    errand__mem_fail_nth(0);
    assert_false(errand__heap_reserve(&heap, SIZE_MAX / 2));
    assert_int_equal(heap.room, room);
    assert_ptr_equal(errand__heap_first(&heap), &entry);
    assert_true(errand__heap_reserve(&heap, room + 1));
    assert_ptr_equal(errand__heap_first(&heap), &entry);
    errand__heap_fini(&heap);
    assert_int_equal(errand__mem_live_bytes(), live);
}

static void
reserved_room_is_there_without_further_memory(void **state)
{
    (void)state;
    static errand__heap_entry entries[ENTRIES];
    errand__heap heap;
    memset(entries, 0, sizeof entries);
    errand__heap_init(&heap, NULL);
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_true(errand__heap_reserve(&heap, i + 1));
        errand__mem_fail_nth(0);
        errand__heap_insert(&heap, &entries[i]);
        assert_int_equal(errand__mem_fail_nth(0), 0);
    }
    errand__heap_fini(&heap);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_leave_in_the_order_of_their_words),
        cmocka_unit_test(any_entry_leaves_at_once_and_the_rest_stays_in_order),
        cmocka_unit_test(late_words_and_windows_of_any_size_keep_the_order),
        cmocka_unit_test(equal_entries_leave_in_an_order_fixed_by_the_calls),
        cmocka_unit_test(refused_room_changes_nothing),
        cmocka_unit_test(reserved_room_is_there_without_further_memory),
    };
    return test_group("core/heap", tests, NULL, NULL);
}
