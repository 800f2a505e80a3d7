/* SPDX-License-Identifier: MIT */
/* dues: what is due, in the order of three words.
 *
 * Design notes.
 * - An entry that is inserted is fresh, and nothing else happens, until somebody asks for the first
 *   and a fresh one might be it.  By then a window of them has often gathered: it is sorted, and
 *   each costs a few instructions when it is first and when it is removed, where the heap plays a game
 *   for each level.  A window that is due at one instant, in the order of the second words, costs a
 *   fifth of that; its games would be decided by branches that nobody foretells.
 * - Few fresh ones, those that come while sorted ones are left, and what a key of 64 bits does not
 *   tell apart go to the heap, which can do everything.  So the worst case is the heap's.
 * - A sorted key is {first word - the least of them : 32 | second word : 32}.  Sorting goes byte by byte from the
 *   last, counted and then placed, over those that differ at all.  Equal keys are put into the order
 *   of the third words one by one, as long as they are few.
 * - sorted[next] is never a removed one.  bound is the least first word of all that are not sorted, or
 *   less: so who comes behind a sorted one is mostly known without a look at anybody. */
#include <string.h>
#include "core/dues.h"

#define SORTED_LEAST 128
#define ROOM_MOST    4096
#define DIGITS       256
#define STEPS_MOST   4 /* for each: of equal keys, before the heap is asked */

/* position of an entry that is not in the heap: one of these, and its index + 1. */
#define IN_FRESH           (SIZE_MAX / 2 + 1)
#define IN_SORTED          (SIZE_MAX / 4 + 1)
#define INDEX_OF(position) (((position) & (IN_SORTED - 1)) - 1)

void
errand__dues_init(errand__dues *dues, const errand_allocator *allocator)
{
    *dues = (errand__dues){.least = UINT64_MAX};
    errand__heap_init(&dues->heap, allocator);
}

static size_t
bytes_for(uint32_t room)
{
    return (size_t)room * 2 * sizeof(errand__due);
}

void
errand__dues_fini(errand__dues *dues)
{
    const errand_allocator *allocator = dues->heap.allocator;
    errand__heap_entry *entry;
    size_t place = 0;

    while ((entry = errand__dues_walk(dues, &place)) != NULL)
        entry->position = 0;
    errand__heap_fini(&dues->heap);
    errand__mem_free(allocator, dues->block, bytes_for(dues->room));
    errand__dues_init(dues, allocator);
}

/* All fresh ones to the heap. */
static void
give_fresh(errand__dues *dues)
{
    for (uint32_t i = 0; i < dues->fresh_count; i++) {
        dues->fresh[i].entry->position = 0;
        errand__heap_insert(&dues->heap, dues->fresh[i].entry);
    }
    dues->fresh_count = 0;
    dues->least = UINT64_MAX;
}

bool
errand__dues_grow(errand__dues *dues, size_t count)
{
    errand__due *block;
    uint32_t room;

    if (!errand__heap_reserve(&dues->heap, count))
        return false;
    room = dues->heap.room < ROOM_MOST ? (uint32_t)dues->heap.room : ROOM_MOST;
    if (room < SORTED_LEAST || room <= dues->room)
        return true;
    block = errand__mem_alloc(dues->heap.allocator, bytes_for(room));
    if (block == NULL)
        return true; /* the heap does without */
    give_fresh(dues);
    for (uint32_t i = dues->next; i < dues->end; i++)
        block[i] = dues->sorted[i];
    errand__mem_free(dues->heap.allocator, dues->block, bytes_for(dues->room));
    dues->block = dues->sorted = block;
    dues->fresh = block + room;
    dues->room = room;
    return true;
}

void
errand__dues_insert(errand__dues *dues, errand__heap_entry *entry)
{
    ERRAND_ASSERT(entry->position == 0);
    ERRAND_ASSERT(dues->count < dues->heap.room);
    dues->count++;
    if (entry->major < dues->bound)
        dues->bound = entry->major;
    if (entry->major <= dues->first_major)
        dues->first = NULL;
    if (__builtin_expect(dues->fresh_count == dues->room, 0)) {
        give_fresh(dues);
        if (dues->room == 0) {
            errand__heap_insert(&dues->heap, entry);
            return;
        }
    }
    if (entry->major < dues->least)
        dues->least = entry->major;
    dues->fresh[dues->fresh_count++] = (errand__due){entry->major, entry};
    entry->position = IN_FRESH | dues->fresh_count;
}

/* The sorted one in front was the first, or not: that depends on the others. */
static void
pass_removed(errand__dues *dues)
{
    const errand__due *due = &dues->sorted[dues->next];
    const errand__due *end = dues->sorted + dues->end;

    while (due < end && due->entry == NULL)
        due++;
    dues->next = (uint32_t)(due - dues->sorted);
    if (due == end || dues->base + (due->key >> 32) >= dues->bound)
        return;
    dues->first = due->entry;
    dues->first_major = dues->base + (due->key >> 32);
}

void
errand__dues_remove(errand__dues *dues, errand__heap_entry *entry)
{
    size_t position = entry->position, index = INDEX_OF(position);

    if (position == 0)
        return;
    dues->count--;
    if (entry == dues->first)
        dues->first = NULL;
    if ((position & IN_SORTED) != 0) {
        entry->position = 0;
        dues->sorted[index].entry = NULL;
        if (index == dues->next)
            pass_removed(dues);
    } else if ((position & IN_FRESH) != 0) {
        errand__due *last = &dues->fresh[--dues->fresh_count];

        last->entry->position = position;
        dues->fresh[index] = *last;
        entry->position = 0;
        if (dues->fresh_count == 0)
            dues->least = UINT64_MAX;
    } else {
        errand__heap_remove(&dues->heap, entry);
    }
}

/* ---- sorting -------------------------------------------------------------------------------- */

/* Fresh ones get their keys; answers which bits differ between them.  False: a key is too small for
 * their words. */
static bool
make_keys(errand__dues *dues, uint64_t *out_differ)
{
    errand__due *fresh = dues->fresh;
    uint64_t base = UINT64_MAX, all = 0, any = 0;

    for (uint32_t i = 0; i < dues->fresh_count; i++)
        base = fresh[i].key < base ? fresh[i].key : base;
    for (uint32_t i = 0; i < dues->fresh_count; i++) {
        const errand__heap_entry *entry = fresh[i].entry;
        uint64_t far = fresh[i].key - base, key = far << 32 | (entry->minor & UINT32_MAX);

        all |= (far | entry->minor) >> 32;
        any |= key ^ (i == 0 ? key : fresh[0].key);
        fresh[i].key = key;
    }
    dues->base = base;
    *out_differ = any;
    return all == 0;
}

static void
restore_keys(errand__dues *dues)
{
    for (uint32_t i = 0; i < dues->fresh_count; i++)
        dues->fresh[i].key = dues->fresh[i].entry->major;
}

/* By one byte; equal ones keep their order.  Ends with the two arrays changed over. */
static void
place_by(errand__dues *dues, unsigned shift)
{
    uint32_t at[DIGITS] = {0}, count = dues->fresh_count, before = 0;
    const errand__due *from = dues->fresh;
    errand__due *to = dues->sorted;

    for (uint32_t i = 0; i < count; i++)
        at[from[i].key >> shift & (DIGITS - 1)]++;
    for (uint32_t i = 0; i < DIGITS; i++) {
        uint32_t number = at[i];

        at[i] = before;
        before += number;
    }
    for (uint32_t i = 0; i < count; i++)
        to[at[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    dues->sorted = dues->fresh;
    dues->fresh = to;
}

/* Equal keys by the third word; false: they are too many. */
static bool
settle_equals(errand__dues *dues)
{
    errand__due *fresh = dues->fresh;
    size_t steps = (size_t)STEPS_MOST * dues->fresh_count;

    for (uint32_t i = 1; i < dues->fresh_count; i++) {
        errand__due due = fresh[i];
        uint32_t j = i;

        if (__builtin_expect(due.key != fresh[i - 1].key, 1))
            continue;
        for (; j > 0 && fresh[j - 1].key == due.key &&
               fresh[j - 1].entry->last > due.entry->last;
             j--) {
            if (steps-- == 0) {
                fresh[j] = due;
                return false;
            }
            fresh[j] = fresh[j - 1];
        }
        fresh[j] = due;
    }
    return true;
}

/* Nothing is sorted; all fresh ones are then, or (false) none. */
static bool
sort_fresh(errand__dues *dues)
{
    uint64_t differ;
    errand__due *sorted;

    if (!make_keys(dues, &differ)) {
        restore_keys(dues);
        return false;
    }
    for (unsigned shift = 0; shift < 64; shift += 8)
        if ((differ >> shift & (DIGITS - 1)) != 0)
            place_by(dues, shift);
    if (!settle_equals(dues)) {
        restore_keys(dues);
        return false;
    }
    sorted = dues->fresh;
    dues->fresh = dues->sorted;
    dues->sorted = sorted;
    dues->next = 0;
    dues->end = dues->fresh_count;
    for (uint32_t i = 0; i < dues->end; i++)
        sorted[i].entry->position = IN_SORTED | (i + 1);
    dues->fresh_count = 0;
    dues->least = UINT64_MAX;
    return true;
}

/* ---- the first ------------------------------------------------------------------------------ */

static bool
comes_before(const errand__heap_entry *a, const errand__heap_entry *b)
{
    if (a->major != b->major)
        return a->major < b->major;
    return a->minor != b->minor ? a->minor < b->minor : a->last < b->last;
}

errand__heap_entry *
errand__dues_find(errand__dues *dues)
{
    errand__heap_entry *first, *best;

    for (;;) {
        first = errand__heap_first(&dues->heap);
        best = dues->next < dues->end ? dues->sorted[dues->next].entry : first;
        if (best != first && first != NULL && comes_before(first, best))
            best = first;
        if (dues->fresh_count == 0 || (best != NULL && best->major < dues->least))
            break;
        if (dues->next < dues->end || dues->fresh_count < SORTED_LEAST ||
            !sort_fresh(dues))
            give_fresh(dues);
    }
    dues->bound =
        first != NULL && first->major < dues->least ? first->major : dues->least;
    dues->first = best;
    dues->first_major = best->major;
    return best;
}

errand__heap_entry *
errand__dues_walk(const errand__dues *dues, size_t *place)
{
    size_t behind = dues->heap.room, index;
    errand__heap_entry *entry = errand__heap_walk(&dues->heap, place);

    while (entry == NULL && *place - behind < dues->end) {
        index = (*place)++ - behind;
        entry = dues->sorted[index].entry;
    }
    behind += dues->end;
    if (entry == NULL && *place - behind < dues->fresh_count)
        entry = dues->fresh[(*place)++ - behind].entry;
    return entry;
}
