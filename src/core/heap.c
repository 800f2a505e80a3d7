/* SPDX-License-Identifier: MIT */
/* heap: a binary heap of embedded entries, each of which knows its place.
 *
 * Design notes.  What comes out depends on the entries' three words alone; entries that
 * are equal in all three come out in an order fixed by the calls made, never by
 * addresses. */
#include "core/core.h"

#define ROOM_LEAST 16

static bool before(const errand__heap_entry *a, const errand__heap_entry *b);
static void place(errand__heap *heap, errand__heap_entry *entry, size_t position);
static void sift_up(errand__heap *heap, errand__heap_entry *entry, size_t position);
static void sift_down(errand__heap *heap, errand__heap_entry *entry, size_t position);
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
        heap->entries[i]->position = 0;
    errand__mem_free(heap->allocator, heap->entries, bytes_for(heap->room));
    errand__heap_init(heap, heap->allocator);
}

bool
errand__heap_reserve(errand__heap *heap, size_t count)
{
    if (count <= heap->room)
        return true;
    if (count > SIZE_MAX / 4 / sizeof(errand__heap_entry *))
        return false;
    size_t room = heap->room * 2 > ROOM_LEAST ? heap->room * 2 : ROOM_LEAST;
    if (room < count)
        room = count;
    errand__heap_entry **entries = errand__mem_grow(
        heap->allocator, heap->entries, heap->entries == NULL ? 0 : bytes_for(heap->room),
        bytes_for(room));
    if (entries == NULL)
        return false;
    heap->entries = entries;
    heap->room = room;
    return true;
}

void
errand__heap_insert(errand__heap *heap, errand__heap_entry *entry)
{
    ERRAND_ASSERT(entry->position == 0);
    ERRAND_ASSERT(heap->count < heap->room);
    sift_up(heap, entry, ++heap->count);
}

void
errand__heap_remove(errand__heap *heap, errand__heap_entry *entry)
{
    size_t position = entry->position;
    if (position == 0)
        return;
    ERRAND_ASSERT(position <= heap->count && heap->entries[position] == entry);
    entry->position = 0;
    errand__heap_entry *last = heap->entries[heap->count--];
    if (last == entry)
        return;
    if (position > 1 && before(last, heap->entries[position / 2]))
        sift_up(heap, last, position);
    else
        sift_down(heap, last, position);
}

static bool
before(const errand__heap_entry *a, const errand__heap_entry *b)
{
    if (a->major != b->major)
        return a->major < b->major;
    if (a->minor != b->minor)
        return a->minor < b->minor;
    return a->last < b->last;
}

static void
place(errand__heap *heap, errand__heap_entry *entry, size_t position)
{
    heap->entries[position] = entry;
    entry->position = position;
}

static void
sift_up(errand__heap *heap, errand__heap_entry *entry, size_t position)
{
    for (; position > 1 && before(entry, heap->entries[position / 2]); position /= 2)
        place(heap, heap->entries[position / 2], position);
    place(heap, entry, position);
}

static void
sift_down(errand__heap *heap, errand__heap_entry *entry, size_t position)
{
    for (size_t child; (child = position * 2) <= heap->count; position = child) {
        if (child < heap->count && before(heap->entries[child + 1], heap->entries[child]))
            child++;
        if (!before(heap->entries[child], entry))
            break;
        place(heap, heap->entries[child], position);
    }
    place(heap, entry, position);
}

/* entries[0] is never used, so that a position of 0 can mean "in no heap". */
static size_t
bytes_for(size_t room)
{
    return (room + 1) * sizeof(errand__heap_entry *);
}
