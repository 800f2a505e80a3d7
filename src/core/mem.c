/* SPDX-License-Identifier: MIT */
/* mem: where the library's memory comes from.
 *
 * Design notes.
 * - Ordinary blocks come from the C library or from the host's allocator; jemalloc, where
 *   the program links it, is the C library's malloc then and needs no word from us.
 * - An arena is a list: each block carries its link in front.  A reset frees them one by
 *   one.
 * - jemalloc is named only for arenas, by weak references, so that the library loads into
 *   a program that has none (O63).  There the blocks come from an arena of jemalloc's,
 *   which is emptied as a whole where that is cheaper: it costs as much as a few hundred
 *   blocks.  It has a cache of its own, flushed before, because blocks may then be in
 *   nobody's cache.
 * - Sanitizers see nothing of mallocx, and jemalloc makes only some 4000 arenas: in these
 *   cases the blocks come from the C library.
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

#if !ERRAND_SANITIZED
extern void *mallocx(size_t size, int flags) __attribute__((weak));
extern void dallocx(void *block, int flags) __attribute__((weak));
extern int mallctl(const char *name, void *old_value, size_t *old_size, void *new_value,
                   size_t new_size) __attribute__((weak));
#define JEMALLOC_ZERO         0x40
#define JEMALLOC_ALIGN_16     4 /* the alignment's logarithm */
#define JEMALLOC_CACHE(cache) ((int)(((cache) + 2U) << 8))
#define JEMALLOC_ARENA(arena) ((int)(((arena) + 1U) << 20))
#endif

/* In front of each block of a list arena: 16 bytes, so that the block stays aligned. */
typedef struct header {
    _Alignas(16) errand__link link;
} header;
_Static_assert(sizeof(header) == 16, "a block's header keeps the block aligned");

struct errand__arena {
    size_t live;
    errand__link blocks;
    bool jemalloc;
    unsigned index, cache; /* jemalloc's numbers of its arena and cache */
    int flags;             /* what mallocx and dallocx get */
};

#define SIZE_LIMIT      ((size_t)PTRDIFF_MAX - sizeof(header))
#define BLOCKS_TO_RESET 512 /* from here on jemalloc's reset is the cheaper one */

static bool refused(void);
static void count_live(size_t more, size_t less);
static void *take_block(errand__arena *arena, size_t size);
static void give_block(errand__arena *arena, void *block);
#if !ERRAND_SANITIZED
static bool jemalloc_arena_init(errand__arena *arena);
static void jemalloc_arena_call(errand__arena *arena, const char *verb);
#endif

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
    if (refused() || size > SIZE_LIMIT)
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
    if (refused() || new_size > SIZE_LIMIT)
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
    if (refused() || size > SIZE_LIMIT)
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

bool
errand__mem_has_jemalloc(void)
{
#if ERRAND_SANITIZED
    return false;
#else
    return mallocx != NULL && dallocx != NULL && mallctl != NULL;
#endif
}

/* ---- arenas ------------------------------------------------------------------------ */
errand__arena *
errand__arena_create(void)
{
    errand__arena *arena = errand__mem_alloc(NULL, sizeof *arena);
    if (arena == NULL)
        return NULL;
    errand__list_init(&arena->blocks);
#if !ERRAND_SANITIZED
    arena->jemalloc = errand__mem_has_jemalloc() && jemalloc_arena_init(arena);
#endif
    return arena;
}

void
errand__arena_destroy(errand__arena *arena)
{
    if (arena == NULL)
        return;
    errand__arena_reset(arena);
#if !ERRAND_SANITIZED
    if (arena->jemalloc) {
        (void)mallctl("tcache.destroy", NULL, NULL, &arena->cache, sizeof arena->cache);
        jemalloc_arena_call(arena, "destroy");
    }
#endif
    errand__mem_free(NULL, arena, sizeof *arena);
}

void *
errand__arena_alloc(errand__arena *arena, size_t size)
{
    if (refused() || size > SIZE_LIMIT)
        return NULL;
    header *block = take_block(arena, sizeof *block + size);
    if (block == NULL)
        return NULL;
    errand__list_append(&arena->blocks, &block->link);
    arena->live++;
    return block + 1;
}

void
errand__arena_free(errand__arena *arena, void *block)
{
    if (block == NULL)
        return;
    ERRAND_ASSERT(arena->live > 0);
    arena->live--;
    header *front = (header *)block - 1;
    errand__list_unlink(&front->link);
    give_block(arena, front);
}

size_t
errand__arena_live(const errand__arena *arena)
{
    return arena->live;
}

void
errand__arena_reset(errand__arena *arena)
{
#if !ERRAND_SANITIZED
    if (arena->jemalloc && arena->live >= BLOCKS_TO_RESET) {
        (void)mallctl("tcache.flush", NULL, NULL, &arena->cache, sizeof arena->cache);
        jemalloc_arena_call(arena, "reset");
        errand__list_init(&arena->blocks);
    }
#endif
    while (!errand__list_empty(&arena->blocks)) {
        header *front = ERRAND__CONTAINER(arena->blocks.next, header, link);
        errand__list_unlink(&front->link);
        give_block(arena, front);
    }
    arena->live = 0;
}

/* ---- where an arena's blocks come from --------------------------------------------- */
static void *
take_block(errand__arena *arena, size_t size)
{
#if !ERRAND_SANITIZED
    if (arena->jemalloc)
        return mallocx(size, arena->flags | JEMALLOC_ZERO | JEMALLOC_ALIGN_16);
#endif
    (void)arena;
    return calloc(1, size);
}

static void
give_block(errand__arena *arena, void *block)
{
#if !ERRAND_SANITIZED
    if (arena->jemalloc) {
        dallocx(block, arena->flags);
        return;
    }
#endif
    (void)arena;
    free(block);
}

#if !ERRAND_SANITIZED
static bool
jemalloc_arena_init(errand__arena *arena)
{
    size_t size = sizeof arena->index;
    if (mallctl("arenas.create", &arena->index, &size, NULL, 0) != 0)
        return false;
    size = sizeof arena->cache;
    if (mallctl("tcache.create", &arena->cache, &size, NULL, 0) != 0) {
        jemalloc_arena_call(arena, "destroy");
        return false;
    }
    arena->flags = JEMALLOC_ARENA(arena->index) | JEMALLOC_CACHE(arena->cache);
    return true;
}

static void
jemalloc_arena_call(errand__arena *arena, const char *verb)
{
    char name[48];
    errand__text_format(name, sizeof name, "arena.%u.%s", arena->index, verb);
    ERRAND_ASSERT(mallctl(name, NULL, NULL, NULL, 0) == 0);
}
#endif

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

static bool
refused(void)
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

static bool
refused(void)
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
