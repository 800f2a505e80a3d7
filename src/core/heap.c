/* SPDX-License-Identifier: MIT */
/* heap: a heap of four children each, of embedded entries that know their places.
 *
 * Design notes.
 * - What comes out depends on the entries' three words alone; entries that are equal in all
 *   three come out in an order fixed by the calls made, never by addresses.
 * - The first word stands in the array too: four children are one or two cache lines, and the
 *   entries themselves are read only where first words are equal.
 * - A removal sinks the hole to the bottom and lets the last entry rise from there.  It is a
 *   late one nearly always, so asking at each level whether it may stay would be answered no,
 *   and the choice among four children is made without branches, which nobody could foretell. */
#include "core/core.h"

#define ROOM_LEAST 16
#define CHILDREN   4

static void rise(errand__heap *heap, errand__heap_slot slot, size_t position);
static size_t sink(errand__heap *heap, size_t position);
static size_t bytes_for(size_t room);

void
errand__heap_init(errand__heap *heap, const errand_allocator *allocator)
{
    *heap = (errand__heap){.allocator = allocator};
}

void
errand__heap_fini(errand__heap *heap)
{
    for (size_t i = 1; i <= heap->count; i++)
        heap->slots[i].entry->position = 0;
    errand__mem_free(heap->allocator, heap->slots, bytes_for(heap->room));
    errand__heap_init(heap, heap->allocator);
}

bool
errand__heap_grow(errand__heap *heap, size_t count)
{
    if (count > SIZE_MAX / 4 / sizeof(errand__heap_slot))
        return false;
    size_t room = heap->room * 2 > ROOM_LEAST ? heap->room * 2 : ROOM_LEAST;
    if (room < count)
        room = count;
    errand__heap_slot *slots = errand__mem_grow(
        heap->allocator, heap->slots, heap->slots == NULL ? 0 : bytes_for(heap->room),
        bytes_for(room));
    if (slots == NULL)
        return false;
    heap->slots = slots;
    heap->room = room;
    return true;
}

void
errand__heap_insert(errand__heap *heap, errand__heap_entry *entry)
{
    ERRAND_ASSERT(entry->position == 0);
    ERRAND_ASSERT(heap->count < heap->room);
    rise(heap, (errand__heap_slot){entry->major, entry}, ++heap->count);
}

void
errand__heap_remove(errand__heap *heap, errand__heap_entry *entry)
{
    size_t position = entry->position;
    if (position == 0)
        return;
    ERRAND_ASSERT(position <= heap->count && heap->slots[position].entry == entry);
    entry->position = 0;
    errand__heap_slot last = heap->slots[heap->count--];
    if (last.entry != entry)
        rise(heap, last, sink(heap, position));
}

static bool
before_equals(const errand__heap_entry *a, const errand__heap_entry *b)
{
    if (a->minor != b->minor)
        return a->minor < b->minor;
    return a->last < b->last;
}

static inline bool
before(const errand__heap_slot *a, const errand__heap_slot *b)
{
    if (__builtin_expect(a->major == b->major, 0))
        return before_equals(a->entry, b->entry);
    return a->major < b->major;
}

static inline void
place(errand__heap *heap, errand__heap_slot slot, size_t position)
{
    heap->slots[position] = slot;
    slot.entry->position = position;
}

static void
rise(errand__heap *heap, errand__heap_slot slot, size_t position)
{
    while (position > 1) {
        size_t parent = (position + CHILDREN - 2) / CHILDREN;
        if (!before(&slot, &heap->slots[parent]))
            break;
        place(heap, heap->slots[parent], position);
        position = parent;
    }
    place(heap, slot, position);
}

/* The earliest of count neighbours. */
static size_t
earliest(const errand__heap_slot *slots, size_t first, size_t count)
{
    size_t least = first;
    for (size_t i = first + 1; i < first + count; i++) {
        if (before(&slots[i], &slots[least]))
            least = i;
    }
    return least;
}

/* The earliest of four neighbours, without a branch unless two first words are equal. */
static inline size_t
earliest_of_four(const errand__heap_slot *slots, size_t first)
{
    const errand__heap_slot *four = &slots[first];
    uint64_t a = four[0].major, b = four[1].major, c = four[2].major, d = four[3].major;
    size_t right = b < a, other = 2 + (size_t)(d < c);
    uint64_t low = b < a ? b : a, high = d < c ? d : c;
    if (__builtin_expect((a == b) | (c == d) | (low == high), 0))
        return earliest(slots, first, CHILDREN);
    return first + (right ^ ((right ^ other) & -(size_t)(high < low)));
}

/* Moves the hole to the bottom; answers where it is then. */
static size_t
sink(errand__heap *heap, size_t position)
{
    const errand__heap_slot *slots = heap->slots;
    size_t child;
    while ((child = position * CHILDREN - (CHILDREN - 2)) <= heap->count) {
        size_t rest = heap->count - child + 1;
        size_t least = __builtin_expect(rest >= CHILDREN, 1)
                           ? earliest_of_four(slots, child)
                           : earliest(slots, child, rest);
        place(heap, slots[least], position);
        position = least;
    }
    return position;
}

/* slots[0] is never used, so that a position of 0 can mean "in no heap". */
static size_t
bytes_for(size_t room)
{
    return (room + 1) * sizeof(errand__heap_slot);
}
