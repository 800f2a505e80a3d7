/* SPDX-License-Identifier: MIT */
/* Goal: a ring reaches everybody who listens at that bell, however close it is to their sleep.
 * Method: threads that sleep until a word changes, rung once each time. */
#include <pthread.h>
#include <stdatomic.h>
#include "core/core.h"
#include "group.h"

enum { THREADS = 4, ROUNDS = 300 };

typedef struct listener {
    errand__bell *bell;
    atomic_uint word;
} listener;

static void *
listen_for_change(void *arg)
{
    listener *self = arg;

    errand__bell_listen(self->bell);
    for (;;) {
        unsigned rings = errand__bell_rings(self->bell);

        if (atomic_load_explicit(&self->word, memory_order_relaxed) != 0)
            break;
        errand__bell_await(self->bell, rings);
    }
    errand__bell_leave(self->bell);
    return NULL;
}

static void
a_ring_after_a_change_reaches_all_who_listen(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        listener self = {.bell = errand__bell_of((uint64_t)round, 7)};
        pthread_t threads[THREADS];

        atomic_init(&self.word, 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, listen_for_change, &self),
                             0);
        for (int spin = 0; spin < round; spin++)
            errand__cpu_relax();
        atomic_store_explicit(&self.word, 1, memory_order_relaxed);
        errand__bell_ring(self.bell);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void
a_ring_that_nobody_listens_to_changes_nothing(void **state)
{
    errand__bell *bell = errand__bell_of(3, 4);
    unsigned before = errand__bell_rings(bell);

    (void)state;
    assert_ptr_equal(bell, errand__bell_of(3, 4));
    errand__bell_ring(bell);
    assert_int_equal(errand__bell_rings(bell), before);
    errand__bell_listen(bell);
    errand__bell_ring(bell);
    assert_int_equal(errand__bell_rings(bell), before + 1);
    errand__bell_await(bell, before); /* was rung: does not sleep */
    errand__bell_leave(bell);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_after_a_change_reaches_all_who_listen),
        cmocka_unit_test(a_ring_that_nobody_listens_to_changes_nothing),
    };

    return test_group("core/bell", tests, NULL, NULL);
}
