/* SPDX-License-Identifier: MIT */
/* Goal: an arena's blocks come zeroed, are counted, and can all be freed at once.
 * Method: blocks of many sizes, overwritten and freed in all ways; the process's size, and
 * jemalloc's own word on where a block lies; sanitizers and valgrind find what is left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"
#include "group.h"

static bool
all_are(const void *block, size_t size, unsigned char value)
{
    const unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != value)
            return false;
    }
    return true;
}

static void
arena_blocks_are_zeroed_aligned_and_counted(void **state)
{
    (void)state;
    errand__arena *arena = errand__arena_create();
    assert_non_null(arena);
    enum { BLOCKS = 64 };
    char *blocks[BLOCKS];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t size = i * i * 7;
            blocks[i] = errand__arena_alloc(arena, size);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % 16, 0);
            assert_true(all_are(blocks[i], size, 0));
            memset(blocks[i], 0xEE, size);
            assert_int_equal(errand__arena_live(arena), i + 1);
        }
        for (size_t i = 0; i < BLOCKS; i++)
            errand__arena_free(arena, blocks[(i * 29) % BLOCKS]);
        assert_int_equal(errand__arena_live(arena), 0);
    }
    errand__arena_free(arena, NULL);
    errand__arena_destroy(arena);
}

/* Bytes of the process in memory now. */
static size_t
resident_bytes(void)
{
    size_t total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &total, &resident), 2);
    fclose(file);
    return resident * 4096;
}

static void
reset_frees_all_blocks_at_once_and_the_arena_goes_on(void **state)
{
    (void)state;
    enum { ROUNDS = 200, BYTES = 400000 }; /* 80 MB in all */
    errand__arena *arena = errand__arena_create();
    errand__arena *other = errand__arena_create();
    char *kept = errand__arena_alloc(other, 32);
    memset(kept, 3, 32);
    size_t before = resident_bytes();
    for (int round = 0; round < ROUNDS; round++) {
        char *first = errand__arena_alloc(arena, 100);
        assert_non_null(first);
        assert_true(all_are(first, 100, 0));
        memset(first, 1, 100);
        /* Few large blocks and many small ones: with jemalloc two ways of freeing. */
        size_t blocks = round < ROUNDS / 2 ? 20 : 1000, size = BYTES / blocks;
        for (size_t i = 0; i < blocks; i++) {
            char *block = errand__arena_alloc(arena, size);
            assert_non_null(block);
            assert_true(all_are(block, size, 0));
            memset(block, 1, size);
        }
        errand__arena_free(arena, first);
        assert_int_equal(errand__arena_live(arena), blocks);
        errand__arena_reset(arena);
        assert_int_equal(errand__arena_live(arena), 0);
    }
    if (errand__mem_has_jemalloc()) /* else sanitizers and valgrind find what is left */
        assert_true(resident_bytes() < before + (size_t)ROUNDS * BYTES / 3);
    assert_true(all_are(kept, 32, 3));
    assert_int_equal(errand__arena_live(other), 1);
    errand__arena_destroy(other); /* with a live block */
    errand__arena_destroy(arena);
}

/* Also when jemalloc, which makes some 4000, has none left. */
static void
arenas_beyond_the_allocators_limit_work_all_the_same(void **state)
{
    (void)state;
    enum { ARENAS = 4200 };
    errand__arena **arenas = calloc(ARENAS, sizeof(errand__arena *));
    for (int i = 0; i < ARENAS; i++) {
        arenas[i] = errand__arena_create();
        assert_non_null(arenas[i]);
        char *block = errand__arena_alloc(arenas[i], 40);
        assert_non_null(block);
        assert_true(all_are(block, 40, 0));
        if (i % 2 == 0)
            errand__arena_free(arenas[i], block);
    }
    for (int i = 0; i < ARENAS; i++)
        errand__arena_destroy(arenas[i]);
    free(arenas);
}

#if !ERRAND_SANITIZED
extern int mallctl(const char *name, void *old_value, size_t *old_size, void *new_value,
                   size_t new_size) __attribute__((weak));

/* The number of the jemalloc arena that the block lies in. */
static unsigned
arena_of(void *block)
{
    unsigned index = 0;
    size_t size = sizeof index;
    assert_int_equal(mallctl("arenas.lookup", &index, &size, &block, sizeof block), 0);
    return index;
}

static void
with_jemalloc_each_arena_is_one_of_its_own(void **state)
{
    (void)state;
    if (!errand__mem_has_jemalloc())
        test_skip("the program does not link jemalloc");
    errand__arena *arenas[2] = {errand__arena_create(), errand__arena_create()};
    void *plain = errand__mem_alloc(NULL, 100);
    void *blocks[2], *more = errand__arena_alloc(arenas[0], 100);
    for (int i = 0; i < 2; i++) {
        blocks[i] = errand__arena_alloc(arenas[i], 100);
        assert_int_not_equal(arena_of(blocks[i]), arena_of(plain));
    }
    assert_int_not_equal(arena_of(blocks[0]), arena_of(blocks[1]));
    assert_int_equal(arena_of(blocks[0]), arena_of(more));
    errand__mem_free(NULL, plain, 100);
    for (int i = 0; i < 2; i++)
        errand__arena_destroy(arenas[i]);
}
#endif

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_blocks_are_zeroed_aligned_and_counted),
        cmocka_unit_test(reset_frees_all_blocks_at_once_and_the_arena_goes_on),
        cmocka_unit_test(arenas_beyond_the_allocators_limit_work_all_the_same),
#if !ERRAND_SANITIZED
        cmocka_unit_test(with_jemalloc_each_arena_is_one_of_its_own),
#endif
    };
    return test_group("core/arena", tests, NULL, NULL);
}
