/* SPDX-License-Identifier: MIT */
/* arena: memory of one job, given back as a whole.
 *
 * Design notes.
 * - An arena is a list: each block carries its link in front.  A reset frees them one by
 *   one.
 * - jemalloc is named only for arenas, by weak references, so that the library loads into
 *   a program that has none (O63).  There the blocks come from an arena of jemalloc's,
 *   which is emptied as a whole where that is cheaper: it costs as much as a few hundred
 *   blocks.  It has a cache of its own, flushed before, because blocks may then be in
 *   nobody's cache.
 * - Sanitizers see nothing of mallocx, and jemalloc makes only some 4000 arenas: in these
 *   cases the blocks come from the C library. */
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

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

static void *take_block(errand__arena *arena, size_t size);
static void give_block(errand__arena *arena, void *block);
#if !ERRAND_SANITIZED
static bool jemalloc_arena_init(errand__arena *arena);
static void jemalloc_arena_call(errand__arena *arena, const char *verb);
#endif

bool
errand__mem_has_jemalloc(void)
{
#if ERRAND_SANITIZED
    return false;
#else
    return mallocx != NULL && dallocx != NULL && mallctl != NULL;
#endif
}

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
    if (errand__mem_refused() || size > SIZE_LIMIT)
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
    bool by_hand = errand__mem_zero_by_hand(size);
    void *block;

#if !ERRAND_SANITIZED
    if (arena->jemalloc)
        block = mallocx(size,
                        arena->flags | (by_hand ? 0 : JEMALLOC_ZERO) | JEMALLOC_ALIGN_16);
    else
#endif
        block = by_hand ? malloc(size) : calloc(1, size);
    (void)arena;
    return errand__mem_zeroed(block, size);
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
