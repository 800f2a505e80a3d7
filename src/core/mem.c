/* SPDX-License-Identifier: MIT */
/* mem: where the library's memory comes from.
 *
 * Design notes.
 * - Ordinary blocks come from the C library or from the host's allocator; jemalloc, where
 *   the program links it, is the C library's malloc then and needs no word from us.
 * - Test builds count every request in one word together with the request to fail, so
 *   that "the n-th from now" stays exact with many threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/core.h"

/* Leak checkers look for pointers in blocks and stacks, in mappings only when told: a pool that
 * still ends its threads at the process's exit is reachable from its mapping alone. */
#if defined(__SANITIZE_ADDRESS__)
#define KNOWS_LEAKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KNOWS_LEAKS 1
#endif
#endif
#ifndef KNOWS_LEAKS
#define KNOWS_LEAKS 0
#endif
#if KNOWS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

#define SIZE_LIMIT ((size_t)PTRDIFF_MAX - 16) /* no allocator has more */

static void count_live(size_t more, size_t less);

/* ---- blocks ------------------------------------------------------------------------ */
/* The library's own block: a kept one, or a new one, for which what is kept goes if it must. */
static void *
own_block(size_t size, bool zeroed)
{
    void *block = errand__keep_take(size);

    if (block != NULL)
        return zeroed ? memset(block, 0, size) : block;
    do
        block = zeroed ? calloc(1, size) : malloc(size);
    while (block == NULL && errand__keep_drop());
    return block;
}

static void *
alloc(const errand_allocator *allocator, size_t size, bool zeroed)
{
    void *block;

    if (size == 0)
        size = 1;
    if (errand__mem_refused() || size > SIZE_LIMIT)
        return NULL;
    if (allocator == NULL) {
        block = own_block(size, zeroed);
    } else {
        block = allocator->alloc(allocator->arg, size);
        if (block != NULL)
            memset(block, 0, size);
    }
    if (block != NULL)
        count_live(size, 0);
    return block;
}

void *
errand__mem_alloc(const errand_allocator *allocator, size_t size)
{
    return alloc(allocator, size, true);
}

void *
errand__mem_alloc_bare(size_t size)
{
    return alloc(NULL, size, false);
}

void *
errand__mem_alloc_used(size_t size)
{
    return errand__mem_zeroed(alloc(NULL, size, !errand__mem_zero_by_hand(size)), size);
}

void
errand__mem_free(const errand_allocator *allocator, void *block, size_t size)
{
    if (block == NULL)
        return;
    if (size == 0)
        size = 1;
    count_live(0, size);
    if (allocator != NULL)
        allocator->free(allocator->arg, block, size);
    else if (!errand__keep_give(block, size))
        free(block);
}

void *
errand__mem_grow(const errand_allocator *allocator, void *block, size_t size,
                 size_t new_size)
{
    ERRAND_ASSERT(new_size >= size);
    if (block == NULL)
        return errand__mem_alloc(allocator, new_size);
    if (new_size == 0)
        return block;
    if (allocator != NULL) {
        void *moved = errand__mem_alloc(allocator, new_size);
        if (moved == NULL)
            return NULL;
        memcpy(moved, block, size);
        errand__mem_free(allocator, block, size);
        return moved;
    }
    if (errand__mem_refused() || new_size > SIZE_LIMIT)
        return NULL;
    char *moved = realloc(block, new_size);
    if (moved == NULL && errand__keep_drop())
        moved = realloc(block, new_size);
    if (moved == NULL)
        return NULL;
    memset(moved + size, 0, new_size - size);
    count_live(new_size, size == 0 ? 1 : size);
    return moved;
}

void *
errand__mem_map(size_t size)
{
    if (size == 0)
        size = 1;
    if (errand__mem_refused() || size > SIZE_LIMIT)
        return NULL;
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
#if KNOWS_LEAKS
    __lsan_register_root_region(block, size);
#endif
    return block;
}

void
errand__mem_unmap(void *block, size_t size)
{
    if (block == NULL)
        return;
#if KNOWS_LEAKS
    __lsan_unregister_root_region(block, size == 0 ? 1 : size);
#endif
    ERRAND_ASSERT(munmap(block, size == 0 ? 1 : size) == 0);
}

/* ---- failure injection and the count of live bytes --------------------------------- */
#if ERRAND_TESTING
#define ASKED_BITS 40

/* injection: low 40 bits: requests since the last call; above: which of them is to fail.
 * Writers: every request (one more), errand__mem_fail_nth (exchange).  Readers: the same.
 * Order:   relaxed.  Pairs: none.
 * Why:     one word decides alone; it hands no other memory over. */
static _Atomic uint64_t injection;

/* live_bytes: of mem_alloc, all allocators.
 * Writers: every alloc, grow and free.  Readers: tests.
 * Order:   release, acquire.  Pairs: live-bytes.
 * Why:     a test that waits for a thread's last free sees what it did before that. */
static _Atomic int64_t live_bytes;

uint64_t
errand__mem_fail_nth(uint64_t n)
{
    ERRAND_ASSERT(n < UINT64_C(1) << (64 - ASKED_BITS));
    uint64_t old =
        atomic_exchange_explicit(&injection, n << ASKED_BITS, memory_order_relaxed);
    return old & ((UINT64_C(1) << ASKED_BITS) - 1);
}

int64_t
errand__mem_live_bytes(void)
{
    return atomic_load_explicit(&live_bytes,
                                memory_order_acquire); /* Pairs: live-bytes */
}

bool
errand__mem_refused(void)
{
    uint64_t old = atomic_fetch_add_explicit(&injection, 1, memory_order_relaxed);
    return (old & ((UINT64_C(1) << ASKED_BITS) - 1)) + 1 == old >> ASKED_BITS;
}

static void
count_live(size_t more, size_t less)
{
    atomic_fetch_add_explicit(&live_bytes, (int64_t)more - (int64_t)less,
                              memory_order_release); /* Pairs: live-bytes */
}
#else
uint64_t
errand__mem_fail_nth(uint64_t n)
{
    (void)n;
    return 0;
}

int64_t
errand__mem_live_bytes(void)
{
    return 0;
}

bool
errand__mem_refused(void)
{
    return false;
}

static void
count_live(size_t more, size_t less)
{
    (void)more;
    (void)less;
}
#endif
