/* SPDX-License-Identifier: MIT */
/* Goal: large blocks that are given back serve the next who asks, within bounds, while somebody wants
 * that, and are all gone when nobody does.  Method: what can be taken back says what was kept. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/core.h"
#include "group.h"

#define MIB ((size_t)1 << 20)

static void
skip_where_nothing_is_kept(void)
{
    if (ERRAND_SANITIZED)
        test_skip("nothing is kept under sanitizers");
}

static void
give(size_t size)
{
    errand__mem_free(NULL, errand__mem_alloc_bare(size), size);
}

/* Takes all that fit and answers how many there were. */
static size_t
take_all(size_t size)
{
    size_t count = 0;

    for (void *block; (block = errand__keep_take(size)) != NULL; count++)
        free(block);
    return count;
}

/* Of the whole process, as RLIMIT_AS counts. */
static rlim_t
mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void
a_large_block_stays_for_the_next_while_it_is_open(void **state) /* S29 */
{
    (void)state;
    skip_where_nothing_is_kept();
    give(MIB);
    assert_int_equal(take_all(MIB), 0);
    errand__keep_open();
    give(MIB);
    give(1000);
    assert_int_equal(take_all(MIB), 1);
    errand__keep_shut();
}

static void
what_was_kept_comes_zeroed_to_who_wants_zeroes(void **state)
{
    unsigned char *block;

    (void)state;
    skip_where_nothing_is_kept();
    errand__keep_open();
    block = errand__mem_alloc_bare(MIB);
    memset(block, 0x5A, MIB);
    errand__mem_free(NULL, block, MIB);
    block = errand__mem_alloc(NULL, MIB);
    assert_int_equal(take_all(MIB), 0); /* it is that block */
    for (size_t i = 0; i < MIB; i++)
        assert_int_equal(block[i], 0);
    errand__mem_free(NULL, block, MIB);
    errand__keep_shut();
}

static void
the_last_who_shuts_it_gives_all_back(void **state) /* S29 */
{
    (void)state;
    skip_where_nothing_is_kept();
    errand__keep_open();
    errand__keep_open();
    give(MIB);
    errand__keep_shut();
    assert_int_equal(take_all(MIB), 1);
    give(MIB);
    errand__keep_shut();
    errand__keep_open(); /* only open it can be asked */
    assert_int_equal(take_all(MIB), 0);
    errand__keep_shut();
}

static void
what_is_kept_is_bounded_in_number_and_bytes(void **state) /* S29 */
{
    void *many[20];

    (void)state;
    skip_where_nothing_is_kept();
    errand__keep_open();
    for (size_t i = 0; i < 20; i++)
        many[i] = errand__mem_alloc_bare(MIB);
    for (size_t i = 0; i < 20; i++)
        errand__mem_free(NULL, many[i], MIB);
    assert_int_equal(take_all(MIB), 8);
    for (size_t i = 0; i < 4; i++)
        many[i] = errand__mem_alloc_bare(60 * MIB);
    for (size_t i = 0; i < 4; i++)
        errand__mem_free(NULL, many[i], 60 * MIB);
    give(100 * MIB);
    assert_int_equal(take_all(100 * MIB), 0);
    assert_int_equal(take_all(60 * MIB), 2);
    errand__keep_shut();
}

static void
a_block_goes_to_nobody_who_wants_less_than_half_of_it(void **state)
{
    (void)state;
    skip_where_nothing_is_kept();
    errand__keep_open();
    give(16 * MIB);
    give(3 * MIB);
    give(MIB);
    assert_int_equal(take_all(MIB), 1);
    assert_int_equal(take_all(2 * MIB), 1);
    assert_int_equal(take_all(7 * MIB), 0);
    assert_int_equal(take_all(16 * MIB), 1);
    errand__keep_shut();
}

static void
what_is_kept_goes_before_memory_is_short(void **state) /* S29 */
{
    struct rlimit before, tight;
    void *blocks[64];
    size_t got = 0;

    (void)state;
    skip_where_nothing_is_kept();
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    errand__keep_open();
    give(64 * MIB);
    tight = (struct rlimit){mapped_bytes() + 8 * MIB, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    /* The allocator may have something of its own left. */
    while (got < 64 && (blocks[got] = errand__mem_alloc(NULL, 24 * MIB)) != NULL)
        got++;
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_in_range(got, 1, 63);
    assert_int_equal(take_all(64 * MIB), 0);
    while (got > 0)
        errand__mem_free(NULL, blocks[--got], 24 * MIB);
    errand__keep_shut();
}

static void *
come_and_go(void *arg)
{
    const unsigned char mark = *(unsigned char *)arg;

    for (int i = 0; i < 2000; i++) {
        size_t size = ERRAND__KEEP_LEAST + (size_t)(i % 7) * 4096;
        unsigned char *block;

        errand__keep_open();
        block = errand__mem_alloc_bare(size);
        assert_non_null(block);
        block[0] = block[size - 1] = mark;
        errand__keep_shut();
        assert_int_equal(block[0], mark);
        assert_int_equal(block[size - 1], mark);
        errand__mem_free(NULL, block, size);
    }
    return NULL;
}

static void
threads_that_open_and_shut_it_leave_nothing_and_share_no_block(void **state) /* S29 */
{
    unsigned char marks[3] = {1, 2, 3};
    pthread_t threads[3];

    (void)state;
    skip_where_nothing_is_kept();
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &marks[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    errand__keep_open();
    assert_int_equal(take_all(ERRAND__KEEP_LEAST), 0);
    errand__keep_shut();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_block_stays_for_the_next_while_it_is_open),
        cmocka_unit_test(what_was_kept_comes_zeroed_to_who_wants_zeroes),
        cmocka_unit_test(the_last_who_shuts_it_gives_all_back),
        cmocka_unit_test(what_is_kept_is_bounded_in_number_and_bytes),
        cmocka_unit_test(a_block_goes_to_nobody_who_wants_less_than_half_of_it),
        cmocka_unit_test(what_is_kept_goes_before_memory_is_short),
        cmocka_unit_test(threads_that_open_and_shut_it_leave_nothing_and_share_no_block),
    };
    return test_group("core/keep", tests, NULL, NULL);
}
