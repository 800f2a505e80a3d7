/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_CORE_DUES_H
#define ERRAND_CORE_DUES_H
/* dues: a heap for what often comes in windows and is asked for in between: the same order, the
 * same calls (dues.c).  One thread at a time. */
#include "core/core.h"

typedef struct errand__due {
    uint64_t key; /* fresh: the first word; sorted: what it is sorted by, see dues.c */
    errand__heap_entry *entry; /* sorted: NULL = it was removed */
} errand__due;
typedef struct errand__dues {
    errand__heap heap;
    size_t count; /* of all */
    /* Both arrays are of one block, room entries each; NULL = all go to the heap. */
    errand__due *block, *sorted, *fresh;
    uint32_t room, next, end, fresh_count; /* sorted[next .. end - 1] */
    uint64_t
        least; /* no fresh one's first word is below this; UINT64_MAX = there are none */
    uint64_t bound;            /* a sorted one below this comes before everything else */
    uint64_t base;             /* of sorted keys */
    errand__heap_entry *first; /* NULL = it has to be found */
    uint64_t first_major;
} errand__dues;
void errand__dues_init(errand__dues *dues, const errand_allocator *allocator);
void errand__dues_fini(errand__dues *dues);
/* Makes sure that it can hold count entries, so that insert cannot fail. */
bool errand__dues_grow(errand__dues *dues, size_t count); /* it cannot yet */
static inline bool
errand__dues_reserve(errand__dues *dues, size_t count)
{
    return count <= dues->heap.room || errand__dues_grow(dues, count);
}
/* Needs room (reserve first); asserts it. */
void errand__dues_insert(errand__dues *dues, errand__heap_entry *entry);
/* Harmless on an entry that is in none. */
void errand__dues_remove(errand__dues *dues, errand__heap_entry *entry);
errand__heap_entry *errand__dues_find(errand__dues *dues); /* it is not empty */
static inline errand__heap_entry *
errand__dues_first(errand__dues *dues)
{
    if (dues->first != NULL || dues->count == 0)
        return dues->first;
    return errand__dues_find(dues);
}
/* Its major; UINT64_MAX = there is none. */
static inline uint64_t
errand__dues_next(errand__dues *dues)
{
    return errand__dues_first(dues) == NULL ? UINT64_MAX : dues->first_major;
}
/* Who is first so many removals on, as far as that is known without a search, or NULL: to be fetched
 * ahead. */
static inline errand__heap_entry *
errand__dues_known(const errand__dues *dues, uint32_t ahead)
{
    if (dues->next + ahead < dues->end)
        return dues->sorted[dues->next + ahead].entry;
    return dues->heap.count == 0 || ahead != 0 ? NULL : dues->heap.slots[1].entry;
}
/* All of them, in no order; see errand__heap_walk. */
errand__heap_entry *errand__dues_walk(const errand__dues *dues, size_t *place);
#endif
