/* SPDX-License-Identifier: MIT */
/* Goal: one holder at a time, sleepers are woken, and no lock nests in another.
 * Method: threads raise a plain counter under the lock (the thread sanitizer sees whether
 *         the lock orders them); the word shows that a thread is about to sleep before it
 *         is released. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/core.h"
#include "group.h"

enum { THREADS = 4 };

/* inside, overlaps: threads between acquire and release; how often there were two.
 * Writers: all threads.  Readers: the same.  Order: relaxed.  Pairs: none.
 * Why: they must not order what the lock alone is to order. */
typedef struct shared {
    errand__lock lock;
    uint64_t rounds;
    uint64_t count, other; /* Guarded by lock. */
    atomic_uint inside, overlaps;
} shared;

static void *
raise_count(void *arg)
{
    shared *all = arg;
    for (uint64_t i = 0; i < all->rounds; i++) {
        errand__lock_acquire(&all->lock);
        unsigned others =
            atomic_fetch_add_explicit(&all->inside, 1, memory_order_relaxed);
        if (others != 0)
            atomic_fetch_add_explicit(&all->overlaps, 1, memory_order_relaxed);
        all->count++;
        if (i % 64 == 0)
            sched_yield(); /* lets others find the lock held */
        all->other = all->count;
        atomic_fetch_sub_explicit(&all->inside, 1, memory_order_relaxed);
        errand__lock_release(&all->lock);
    }
    return NULL;
}

static void
run_threads(shared *all)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, raise_count, all), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(all->count, THREADS * all->rounds);
    assert_int_equal(all->other, all->count);
    assert_int_equal(atomic_load_explicit(&all->overlaps, memory_order_relaxed), 0);
    assert_int_equal(atomic_load_explicit(&all->lock.word, memory_order_relaxed), 0);
}

static void
threads_exclude_each_other(void **state)
{
    (void)state;
    shared all = {.rounds = test_scaled(200000)};
    run_threads(&all);
}

static void
threads_exclude_each_other_on_one_processor(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(errand__cpu_current(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    shared all = {.rounds = test_scaled(50000)};
    run_threads(&all);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* got: the lock was acquired.  Writers: the sleeper.  Readers: the test.  Order: relaxed.
 * Pairs: none.  Why: a plain answer. */
typedef struct sleeper {
    errand__lock lock;
    atomic_bool got;
} sleeper;

static void *
acquire_once(void *arg)
{
    sleeper *one = arg;
    errand__lock_acquire(&one->lock);
    atomic_store_explicit(&one->got, true, memory_order_relaxed);
    errand__lock_release(&one->lock);
    return NULL;
}

static void
sleeper_is_woken_by_release_and_not_before(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        sleeper one = {0};
        pthread_t thread;
        errand__lock_acquire(&one.lock);
        assert_int_equal(pthread_create(&thread, NULL, acquire_once, &one), 0);
        /* It writes 2 just before it sleeps. */
        while (atomic_load_explicit(&one.lock.word, memory_order_relaxed) != 2)
            sched_yield();
        assert_false(atomic_load_explicit(&one.got, memory_order_relaxed));
        errand__lock_release(&one.lock);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(atomic_load_explicit(&one.got, memory_order_relaxed));
    }
}

static void
errno_survives_a_contended_lock(void **state)
{
    (void)state;
    sleeper one = {0};
    pthread_t thread;
    errand__lock_acquire(&one.lock);
    assert_int_equal(pthread_create(&thread, NULL, acquire_once, &one), 0);
    while (atomic_load_explicit(&one.lock.word, memory_order_relaxed) != 2)
        sched_yield();
    errno = 4321;
    errand__lock_release(&one.lock);
    assert_int_equal(errno, 4321);
    atomic_uint word = 5;
    assert_true(errand__futex_wait(&word, 4, UINT64_MAX));
    assert_false(errand__futex_wait(&word, 5, 1000));
    assert_int_equal(errno, 4321);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void
waiting_for_another_value_returns_at_once(void **state)
{
    (void)state;
    atomic_uint word = 1;
    assert_true(errand__futex_wait(&word, 2, UINT64_MAX));
    assert_true(errand__futex_wait(&word, 2, 0));
}

static void
waiting_says_false_only_when_the_time_has_passed(void **state)
{
    (void)state;
    atomic_uint word = 1;
    uint64_t start = errand__clock_now();
    assert_false(errand__futex_wait(&word, 1, 3000000));
    assert_true(errand__clock_now() - start >= 3000000);
    assert_false(errand__futex_wait(&word, 1, 0));
}

static void *
wait_for_change(void *arg)
{
    atomic_uint *word = arg;
    while (atomic_load_explicit(word, memory_order_acquire) == 0)
        errand__futex_wait(word, 0, UINT64_MAX);
    return NULL;
}

static void
change_and_wake_reach_all_waiters(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        atomic_uint word = 0;
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for_change, &word),
                             0);
        atomic_store_explicit(&word, 1, memory_order_release);
        errand__futex_wake(&word, THREADS);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

/* Does this abort?  In a child, whose last words are thrown away. */
static bool
aborts(void (*act)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        act();
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT;
}

static errand__lock first, second;

static void
nest_locks(void)
{
    errand__lock_acquire(&first);
    errand__lock_acquire(&second);
}

static void
enter_foreign_code_locked(void)
{
    errand__lock_acquire(&first);
    errand__lock_none_held();
}

static void
misuse_locked(void)
{
    errand__lock_acquire(&first);
    (void)errand__misuse(ERRAND_EINVAL, "f", "t");
}

static void
release_free_lock(void)
{
    errand__lock_release(&first);
}

static void
use_locks_one_after_another(void)
{
    errand__lock_none_held();
    errand__lock_acquire(&first);
    errand__lock_release(&first);
    errand__lock_acquire(&second);
    errand__lock_release(&second);
    errand__lock_none_held();
}

static void
nested_locks_and_foreign_code_under_a_lock_abort(void **state)
{
    (void)state;
    assert_false(aborts(use_locks_one_after_another));
    assert_true(aborts(nest_locks));
    assert_true(aborts(enter_foreign_code_locked));
    assert_true(aborts(misuse_locked));
    assert_true(aborts(release_free_lock));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_exclude_each_other),
        cmocka_unit_test(threads_exclude_each_other_on_one_processor),
        cmocka_unit_test(sleeper_is_woken_by_release_and_not_before),
        cmocka_unit_test(errno_survives_a_contended_lock),
        cmocka_unit_test(waiting_for_another_value_returns_at_once),
        cmocka_unit_test(waiting_says_false_only_when_the_time_has_passed),
        cmocka_unit_test(change_and_wake_reach_all_waiters),
        cmocka_unit_test(nested_locks_and_foreign_code_under_a_lock_abort),
    };
    return test_group("core/lock", tests, NULL, NULL);
}
