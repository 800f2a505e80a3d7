/* SPDX-License-Identifier: MIT */
/* heap: a tournament of embedded entries.
 *
 * Design notes.
 * - What comes out depends on the entries' three words alone; entries that are equal in all
 *   three come out in an order fixed by the calls made, never by addresses.
 * - slots[room .. 2 * room - 1] are the places, slots[i] is the earlier of slots[2 * i] and
 *   slots[2 * i + 1], slots[1] the first of all.  An entry stays at one place, so nothing is
 *   written but the way from there to the top, and no other entry's memory is touched.
 * - When the first leaves, each level is played again.  How many there are is the same each time,
 *   the other side's slots are known before, and who is earlier is decided without a branch.  In
 *   a heap proper each level waits for the one above it, and how far it goes is foretold wrongly
 *   half of the time, when all that was begun meanwhile is in vain.
 * - Slots have the first word, so that entries are read only where these are equal.  Slots of
 *   nobody have a word each of their own, later than all: they are never equal to any other.
 *   slots[0] has nobody, and how many entries the tree knows.
 * - What is inserted is played for when somebody asks.  A window of submissions between two
 *   questions costs one game for each slot of the tree then, without branches. */
#include <string.h>
#include "core/core.h"

#define ROOM_LEAST 2
#define LATEST     ERRAND__HEAP_LATEST

static size_t bytes_for(size_t room);
static void play_all(const errand__heap *heap);

void
errand__heap_init(errand__heap *heap, const errand_allocator *allocator)
{
    *heap = (errand__heap){.allocator = allocator};
}

void
errand__heap_fini(errand__heap *heap)
{
    errand__heap_entry *entry;
    size_t place = 0;

    while ((entry = errand__heap_walk(heap, &place)) != NULL)
        entry->position = 0;
    errand__mem_free(heap->allocator, heap->slots, bytes_for(heap->room));
    errand__heap_init(heap, heap->allocator);
}

static inline errand__heap_slot
nobody(size_t place)
{
    return (errand__heap_slot){LATEST + 1 + place, NULL};
}

bool
errand__heap_grow(errand__heap *heap, size_t count)
{
    size_t room = heap->room > ROOM_LEAST ? heap->room : ROOM_LEAST;
    errand__heap_slot *slots;
    uint32_t *places;

    if (count > UINT32_MAX / 2 || count > SIZE_MAX / 8 / sizeof *slots)
        return false;
    while (room < count)
        room *= 2;
    slots = errand__mem_alloc(heap->allocator, bytes_for(room));
    if (slots == NULL)
        return false;
    places = (uint32_t *)(slots + 2 * room);
    for (size_t i = 0; i < room; i++) {
        slots[room + i] = nobody(i);
        places[i] = (uint32_t)i;
    }
    if (heap->slots != NULL) {
        memcpy(slots + room, heap->slots + heap->room, heap->room * sizeof *slots);
        memcpy(places, heap->places, heap->room * sizeof *places);
        errand__mem_free(heap->allocator, heap->slots, bytes_for(heap->room));
    }
    heap->slots = slots;
    heap->places = places;
    heap->room = room;
    play_all(heap);
    return true;
}

void
errand__heap_insert(errand__heap *heap, errand__heap_entry *entry)
{
    size_t place;

    ERRAND_ASSERT(entry->position == 0);
    ERRAND_ASSERT(heap->count < heap->room);
    place = heap->places[heap->count++];
    entry->position = place + 1;
    heap->slots[heap->room + place] =
        (errand__heap_slot){entry->major < LATEST ? entry->major : LATEST, entry};
}

/* Two first words are equal, or both are late. */
static bool
before_equals(const errand__heap_entry *a, const errand__heap_entry *b)
{
    if (a->major != b->major)
        return a->major < b->major;
    if (a->minor != b->minor)
        return a->minor < b->minor;
    return a->last < b->last;
}

/* By bytes from the first, so that none has to be multiplied at each level. */
static inline errand__heap_slot *
slot_at(errand__heap_slot *slots, size_t at)
{
    return (errand__heap_slot *)(void *)((char *)slots + at);
}

void
errand__heap_remove(errand__heap *heap, errand__heap_entry *entry)
{
    errand__heap_slot *slots = heap->slots, *mine;
    size_t place = entry->position, at;
    uint64_t major;
    errand__heap_entry *winner = NULL;

    if (place == 0)
        return;
    if (__builtin_expect(slots[0].major != heap->count, 0))
        errand__heap_play(heap);
    entry->position = 0;
    slots[0].major = --heap->count;
    heap->places[heap->count] = (uint32_t)--place;
    at = (heap->room + place) * sizeof *slots;
    mine = slot_at(slots, at);
    ERRAND_ASSERT(place < heap->room && mine->entry == entry);
    *mine = nobody(place);
    major = mine->major;
    /* Up to the top, whoever stood there: to look costs more than the games that it saves.  Both
     * words are loaded before it is known who is earlier, so that compilers choose by conditional
     * moves; 15 instructions a level. */
    while (at > sizeof *slots) {
        const errand__heap_slot *other = slot_at(slots, at ^ sizeof *slots);
        uint64_t its = other->major;
        errand__heap_entry *its_entry = other->entry;

        if (__builtin_expect(its == major, 0)) {
            winner = before_equals(its_entry, winner) ? its_entry : winner;
        } else {
            winner = its < major ? its_entry : winner;
            major = its < major ? its : major;
        }
        at = (at / 2) & ~(sizeof *slots - 1);
        mine = slot_at(slots, at);
        mine->major = major;
        mine->entry = winner;
    }
}

/* An entry at this place is new. */
static void
climb(const errand__heap *heap, size_t place)
{
    errand__heap_slot *slots = heap->slots;
    errand__heap_entry *entry = slots[heap->room + place].entry;
    uint64_t major = entry->major < LATEST ? entry->major : LATEST;

    for (place = (heap->room + place) / 2; place != 0; place /= 2) {
        if (slots[place].major < major ||
            (slots[place].major == major && !before_equals(entry, slots[place].entry)))
            return;
        slots[place].major = major;
        slots[place].entry = entry;
    }
}

void
errand__heap_play(const errand__heap *heap)
{
    uint64_t *known = &heap->slots[0].major;
    size_t more = heap->count - (size_t)*known;

    if (more > 1 && more >= heap->room / 4) {
        play_all(heap);
        return;
    }
    while (*known < heap->count)
        climb(heap, heap->places[(*known)++]);
}

static void
play_all(const errand__heap *heap)
{
    errand__heap_slot *slots = heap->slots;

    for (size_t i = heap->room - 1; i > 0; i--) {
        const errand__heap_slot *pair = &slots[2 * i];
        uint64_t a = pair[0].major, b = pair[1].major;
        size_t second = b < a;

        if (__builtin_expect(a == b, 0))
            second = before_equals(pair[1].entry, pair[0].entry);
        slots[i].major = b < a ? b : a;
        slots[i].entry = pair[second].entry;
    }
    slots[0].major = heap->count;
}

errand__heap_entry *
errand__heap_walk(const errand__heap *heap, size_t *place)
{
    while (*place < heap->room) {
        errand__heap_entry *entry = heap->slots[heap->room + (*place)++].entry;

        if (entry != NULL)
            return entry;
    }
    return NULL;
}

static size_t
bytes_for(size_t room)
{
    return room * (2 * sizeof(errand__heap_slot) + sizeof(uint32_t));
}
