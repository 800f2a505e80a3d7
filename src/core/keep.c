/* SPDX-License-Identifier: MIT */
/* keep: large blocks that were given back, for the next who wants one.
 *
 * Design notes.
 * - A job with large bytes takes a block for its request and one for its result, and both go when it is
 *   over.  An allocator gives such blocks back to the system at once, so that the next job pays
 *   for every page again: more than for all that is done with the bytes.
 * - So while somebody who has such jobs holds it open a few of them stay, bounded in number and
 *   bytes; the last who shuts it gives all of them back.
 * - Where the allocator has nothing more, what is kept goes first, and it is asked again.
 * - A flag and no lock: memory is asked for under locks, too, and whoever finds the flag taken goes
 *   to the allocator.  So does the child of a fork that copied it while it was taken.
 * - Sanitizers are to see every block's end: there nothing is kept. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

#ifndef ERRAND_KEEPS /* 0: the program counts its jobs' memory (errand-worker) */
#define ERRAND_KEEPS (!ERRAND_SANITIZED)
#endif
#define MOST   ((size_t)80 << 20)  /* of one block */
#define TOTAL  ((size_t)160 << 20) /* of all: a request and a result of 64 MiB, and more */
#define BLOCKS 8

typedef struct kept {
    void *block;
    size_t size;
} kept;

/* taken: 1 while somebody has the list in hand.  holders: how many hold it open.
 * Writers, Readers: any thread.  Order: seq_cst.  Pairs: keep-taken.
 * Why: the list is read and written by one at a time; and of one who shuts while the list is taken
 * and the other who lets go of it one sees the other's word (store, load), and empties it. */
static atomic_uint taken, holders;
/* Whoever took it: the oldest first. */
static kept blocks[BLOCKS];
static size_t count, total;

static bool
enter(void)
{
    return ERRAND_KEEPS && atomic_exchange_explicit(&taken, 1, memory_order_seq_cst) == 0;
}

static void
leave(void)
{
    atomic_store_explicit(&taken, 0, memory_order_seq_cst); /* Pairs: keep-taken */
}

static bool
is_open(void)
{
    return atomic_load_explicit(&holders, memory_order_seq_cst) !=
           0; /* Pairs: keep-taken */
}

static kept
remove_at(size_t at)
{
    kept found = blocks[at];

    count--;
    total -= found.size;
    memmove(blocks + at, blocks + at + 1, (count - at) * sizeof blocks[0]);
    return found;
}

/* With the list in hand: takes everything out of it. */
static size_t
remove_all(kept *out_old)
{
    size_t gone = count;

    memcpy(out_old, blocks, gone * sizeof blocks[0]);
    count = total = 0;
    return gone;
}

static void
free_all(const kept *old, size_t gone)
{
    while (gone > 0)
        free(old[--gone].block);
}

/* Lets go of the list; if it was shut meanwhile all blocks go. */
static void
leave_and_empty(void)
{
    kept old[BLOCKS];
    size_t gone;

    leave();
    if (is_open() || !enter())
        return;
    gone = remove_all(old);
    leave();
    free_all(old, gone);
}

void *
errand__keep_take(size_t size)
{
    size_t best = BLOCKS;
    void *block = NULL;

    if (size < ERRAND__KEEP_LEAST || size > MOST || !is_open() || !enter())
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].size >= size && blocks[i].size / 2 <= size &&
            (best == BLOCKS || blocks[i].size < blocks[best].size))
            best = i;
    }
    if (best != BLOCKS)
        block = remove_at(best).block;
    leave_and_empty();
    return block;
}

bool
errand__keep_give(void *block, size_t size)
{
    kept old[BLOCKS];
    size_t gone = 0;

    if (size < ERRAND__KEEP_LEAST || !is_open())
        return false;
    size = malloc_usable_size(block);
    if (size > MOST || !enter())
        return false;
    while (count == BLOCKS || total + size > TOTAL)
        old[gone++] = remove_at(0);
    blocks[count++] = (kept){block, size};
    total += size;
    leave_and_empty();
    free_all(old, gone);
    return true;
}

bool
errand__keep_drop(void)
{
    kept old[BLOCKS];
    size_t gone;

    if (!enter())
        return false;
    gone = remove_all(old);
    leave();
    free_all(old, gone);
    return gone != 0;
}

void
errand__keep_open(void)
{
    atomic_fetch_add_explicit(&holders, 1, memory_order_seq_cst);
}

void
errand__keep_shut(void)
{
    atomic_fetch_sub_explicit(&holders, 1, memory_order_seq_cst); /* Pairs: keep-taken */
    if (enter())
        leave_and_empty();
}
