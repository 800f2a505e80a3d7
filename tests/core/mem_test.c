/* SPDX-License-Identifier: MIT */
/* Goal: memory comes zeroed, in the right size, from the right allocator, and its end is
 * counted.  Method: an allocator that fills its blocks with rubbish and counts calls; the
 * failure of every single request. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "core/core.h"
#include "group.h"

typedef struct counted {
    size_t allocs, frees, bytes;
} counted;

static void *
rubbish_alloc(void *arg, size_t size)
{
    counted *counts = arg;
    counts->allocs++;
    counts->bytes += size;
    void *block = malloc(size);
    assert_non_null(block);
    memset(block, 0xA5, size);
    return block;
}

static void
rubbish_free(void *arg, void *block, size_t size)
{
    counted *counts = arg;
    counts->frees++;
    counts->bytes -= size;
    free(block);
}

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
blocks_come_zeroed_also_where_memory_was_used_before(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        char *block = errand__mem_alloc(NULL, 1000);
        assert_non_null(block);
        assert_true(all_are(block, 1000, 0));
        memset(block, 0x5A, 1000);
        errand__mem_free(NULL, block, 1000);
    }
}

static void
hosts_allocator_gets_blocks_zeroed_and_its_sizes_back(void **state)
{
    (void)state;
    counted counts = {0};
    errand_allocator allocator = {rubbish_alloc, rubbish_free, &counts};
    void *block = errand__mem_alloc(&allocator, 300);
    assert_true(all_are(block, 300, 0));
    assert_int_equal(counts.allocs, 1);
    assert_int_equal(counts.bytes, 300);
    errand__mem_free(&allocator, block, 300);
    assert_int_equal(counts.frees, 1);
    assert_int_equal(counts.bytes, 0);
}

static void
growing_keeps_the_front_and_zeroes_the_tail(void **state)
{
    (void)state;
    counted counts = {0};
    errand_allocator custom = {rubbish_alloc, rubbish_free, &counts};
    const errand_allocator *allocators[] = {NULL, &custom};
    for (int i = 0; i < 2; i++) {
        char *block = errand__mem_grow(allocators[i], NULL, 0, 10);
        assert_true(all_are(block, 10, 0));
        memset(block, 7, 10);
        block = errand__mem_grow(allocators[i], block, 10, 5000);
        assert_non_null(block);
        assert_true(all_are(block, 10, 7));
        assert_true(all_are(block + 10, 4990, 0));
        errand__mem_free(allocators[i], block, 5000);
    }
    assert_int_equal(counts.bytes, 0);
    assert_int_equal(counts.allocs, counts.frees);
}

static void
refused_growth_leaves_the_block_alone(void **state)
{
    (void)state;
    counted counts = {0};
    errand_allocator custom = {rubbish_alloc, rubbish_free, &counts};
    const errand_allocator *allocators[] = {NULL, &custom};
    for (int i = 0; i < 2; i++) {
        char *block = errand__mem_alloc(allocators[i], 16);
        memset(block, 9, 16);
        int64_t live = errand__mem_live_bytes();
        errand__mem_fail_nth(1);
        assert_null(errand__mem_grow(allocators[i], block, 16, 64));
        errand__mem_fail_nth(0);
        assert_null(errand__mem_grow(allocators[i], block, 16, SIZE_MAX));
        assert_true(all_are(block, 16, 9));
        assert_int_equal(errand__mem_live_bytes(), live);
        errand__mem_free(allocators[i], block, 16);
    }
    assert_int_equal(counts.bytes, 0);
}

static void
sizes_beyond_memory_answer_null(void **state)
{
    (void)state;
    errand__arena *arena = errand__arena_create();
    size_t sizes[] = {SIZE_MAX, SIZE_MAX - 15, (size_t)PTRDIFF_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_null(errand__mem_alloc(NULL, sizes[i]));
        assert_null(errand__mem_map(sizes[i]));
        assert_null(errand__arena_alloc(arena, sizes[i]));
    }
    assert_int_equal(errand__arena_live(arena), 0);
    errand__arena_destroy(arena);
}

static void
size_zero_gives_a_block_and_null_is_freed_harmlessly(void **state)
{
    (void)state;
    int64_t live = errand__mem_live_bytes();
    void *block = errand__mem_alloc(NULL, 0);
    assert_non_null(block);
    errand__mem_free(NULL, block, 0);
    errand__mem_free(NULL, NULL, 10);
    errand__mem_unmap(NULL, 10);
    errand__arena_destroy(NULL);
    assert_int_equal(errand__mem_live_bytes(), live);
}

static void
live_bytes_follow_alloc_grow_and_free(void **state)
{
    (void)state;
    int64_t before = errand__mem_live_bytes();
    void *block = errand__mem_alloc(NULL, 100);
    assert_int_equal(errand__mem_live_bytes() - before, 100);
    block = errand__mem_grow(NULL, block, 100, 250);
    assert_int_equal(errand__mem_live_bytes() - before, 250);
    errand__mem_free(NULL, block, 250);
    assert_int_equal(errand__mem_live_bytes() - before, 0);
}

/* One request of each kind, in a fixed order; answers which one got NULL, 0 = none. */
static int
ask_all_kinds(void)
{
    int failed = 0;
    void *block = errand__mem_alloc(NULL, 8);
    if (block == NULL)
        failed = 1;
    void *larger = errand__mem_grow(NULL, block, 8, 64);
    if (larger == NULL && failed == 0)
        failed = 2;
    errand__mem_free(NULL, larger != NULL ? larger : block, larger != NULL ? 64 : 8);
    void *pages = errand__mem_map(4096);
    if (pages == NULL)
        failed = 3;
    errand__mem_unmap(pages, 4096);
    errand__arena *arena = errand__arena_create();
    if (arena == NULL)
        return 4;
    if (errand__arena_alloc(arena, 8) == NULL)
        failed = 5;
    errand__arena_destroy(arena);
    return failed;
}

static void
exactly_the_nth_request_fails_whatever_its_kind(void **state)
{
    (void)state;
    int64_t live = errand__mem_live_bytes();
    errand__mem_fail_nth(0);
    assert_int_equal(ask_all_kinds(), 0);
    assert_int_equal(errand__mem_fail_nth(0), 5);
    for (int n = 1; n <= 5; n++) {
        errand__mem_fail_nth((uint64_t)n);
        assert_int_equal(ask_all_kinds(), n);
    }
    errand__mem_fail_nth(6);
    assert_int_equal(ask_all_kinds(), 0);
    errand__mem_fail_nth(0);
    assert_int_equal(errand__mem_live_bytes(), live);
}

enum { ASKERS = 4, ASKED_EACH = 2000 };

static void *
ask_often(void *arg)
{
    size_t *refused = arg;
    for (int i = 0; i < ASKED_EACH; i++) {
        void *block = errand__mem_alloc(NULL, 24);
        *refused += block == NULL;
        errand__mem_free(NULL, block, 24);
    }
    return NULL;
}

static void
one_of_many_threads_requests_fails_and_all_are_counted(void **state)
{
    (void)state;
    pthread_t threads[ASKERS];
    size_t refused[ASKERS] = {0}, sum = 0;
    errand__mem_fail_nth(ASKERS * ASKED_EACH / 2);
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &refused[i]), 0);
    for (int i = 0; i < ASKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        sum += refused[i];
    }
    assert_int_equal(errand__mem_fail_nth(0), ASKERS * ASKED_EACH);
    assert_int_equal(sum, 1);
}

static void
mapped_pages_are_zeroed_and_cost_nothing_until_touched(void **state)
{
    (void)state;
    static unsigned char resident[(1 << 28) / 4096];
    size_t size = (size_t)1 << 28, count = 0;
    char *block = errand__mem_map(size);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 4096, 0);
    assert_int_equal(block[0], 0);
    assert_int_equal(block[size - 1], 0);
    block[size / 2] = 1;
    assert_int_equal(mincore(block, size, resident), 0);
    for (size_t i = 0; i < sizeof resident; i++)
        count += resident[i] & 1;
    assert_in_range(count, 1, 3 * 512); /* three pages, which may be huge */
    errand__mem_unmap(block, size);
}

static void *
from_heap(void *from, size_t size)
{
    (void)from;
    return errand__mem_alloc_used(size);
}

static void
to_heap(void *to, void *block, size_t size)
{
    (void)to;
    errand__mem_free(NULL, block, size);
}

static void *
from_arena(void *from, size_t size)
{
    return errand__arena_alloc(from, size);
}

static void
to_arena(void *to, void *block, size_t size)
{
    (void)size;
    errand__arena_free(to, block);
}

/* How many pages the kernel gives for so many blocks, one after the other, each used and given back. */
static long
pages_given(void *(*take)(void *from, size_t size),
            void (*give)(void *to, void *block, size_t size), void *where, int blocks)
{
    enum { SIZE = 200000 };
    struct rusage before, after;

    assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
    for (int i = 0; i < blocks; i++) {
        char *block = take(where, SIZE);

        assert_non_null(block);
        assert_true(all_are(block, SIZE, 0));
        memset(block, 0xA5, SIZE);
        give(where, block, SIZE);
    }
    assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
    return after.ru_minflt - before.ru_minflt;
}

/* O63 */
static void
blocks_for_use_take_no_new_pages_where_used_ones_lie_ready(void **state)
{
    (void)state;
    if (ERRAND_SANITIZED || test_under("valgrind"))
        test_skip("what was given back is not given out again there");
    errand__arena *arena = errand__arena_create();
    assert_non_null(arena);
    (void)pages_given(from_heap, to_heap, NULL, 20);
    assert_in_range(pages_given(from_heap, to_heap, NULL, 200), 0,
                    200); /* not 200 * 49 */
    (void)pages_given(from_arena, to_arena, arena, 20);
    assert_in_range(pages_given(from_arena, to_arena, arena, 200), 0, 200);
    errand__arena_destroy(arena);
}

/* O63: both ways run this; the report says which one it is. */
static void
features_say_which_allocator_serves_arenas(void **state)
{
    (void)state;
    const char *features = errand_features();
    assert_int_equal(strncmp(features, errand_version(), strlen(errand_version())), 0);
    if (errand__mem_has_jemalloc()) {
        assert_non_null(strstr(features, " jemalloc=yes sanitizer=none arenas=jemalloc"));
    } else {
        assert_non_null(strstr(features, " jemalloc=no sanitizer="));
        assert_non_null(strstr(features, " arenas=lists"));
    }
    assert_int_equal(strstr(features, "sanitizer=none") == NULL, ERRAND_SANITIZED);
}

static void
jemalloc_is_found_exactly_where_the_program_links_it(void **state)
{
    (void)state;
    const char *program = program_invocation_short_name;
    size_t length = strlen(program), tail = strlen("_jemalloc");
    bool linked = length > tail && strcmp(program + length - tail, "_jemalloc") == 0;
    assert_int_equal(errand__mem_has_jemalloc(), linked);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_zeroed_also_where_memory_was_used_before),
        cmocka_unit_test(hosts_allocator_gets_blocks_zeroed_and_its_sizes_back),
        cmocka_unit_test(growing_keeps_the_front_and_zeroes_the_tail),
        cmocka_unit_test(refused_growth_leaves_the_block_alone),
        cmocka_unit_test(sizes_beyond_memory_answer_null),
        cmocka_unit_test(size_zero_gives_a_block_and_null_is_freed_harmlessly),
        cmocka_unit_test(live_bytes_follow_alloc_grow_and_free),
        cmocka_unit_test(exactly_the_nth_request_fails_whatever_its_kind),
        cmocka_unit_test(one_of_many_threads_requests_fails_and_all_are_counted),
        cmocka_unit_test(mapped_pages_are_zeroed_and_cost_nothing_until_touched),
        cmocka_unit_test(blocks_for_use_take_no_new_pages_where_used_ones_lie_ready),
        cmocka_unit_test(features_say_which_allocator_serves_arenas),
        cmocka_unit_test(jemalloc_is_found_exactly_where_the_program_links_it),
    };
    return test_group("core/mem", tests, NULL, NULL);
}
