/* SPDX-License-Identifier: MIT */
/* lock: leaf locks on one futex word, and the futex itself.
 *
 * Design notes.
 * - 0 free, 1 held, 2 held and somebody may sleep.  A thread that once slept takes the
 *   lock as 2, because it cannot know whether others sleep: at worst one wake too many.
 * - Critical sections here are a few dozen instructions, so a waiter looks again for a
 *   short while before it sleeps, but only if its holder can run meanwhile: with one
 *   processor a spin only keeps the holder from it.
 * - Locks are leaves: test builds count them per thread and refuse a second one.
 * - ThreadSanitizer puts a signal's handler off until the thread calls a function that it knows,
 *   and a system call is none.  There a long sleep is many short ones, or a signal that asks a
 *   sleeping host to end would not be heard.
 * - errno is left alone: a lock taken on an error's way must not hide that error. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/core.h"

_Static_assert(sizeof(atomic_uint) == 4, "a futex word has four bytes");

#define SPINS          64 /* looks before sleeping; about 2 us */
#define SPINS_MEASURED 64 /* contended acquisitions until affinity is asked for again */

#if defined(__SANITIZE_THREAD__)
#define ERRAND__THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ERRAND__THREAD_SANITIZER 1
#endif
#endif
#ifndef ERRAND__THREAD_SANITIZER
#define ERRAND__THREAD_SANITIZER 0
#endif
#define SLICE_NS UINT64_C(50000000)

#if ERRAND_TESTING
static _Thread_local unsigned held;
#endif

static void acquire_contended(errand__lock *lock);
static bool spin_pays(void);

ERRAND_NO_ANALYSIS void
errand__lock_acquire(errand__lock *lock)
{
    errand__lock_none_held();
    unsigned expected = 0;
    /* Pairs: lock-word */
    if (!atomic_compare_exchange_strong_explicit(
            &lock->word, &expected, 1, memory_order_acquire, memory_order_relaxed))
        acquire_contended(lock);
#if ERRAND_TESTING
    held++;
#endif
}

ERRAND_NO_ANALYSIS void
errand__lock_release(errand__lock *lock)
{
#if ERRAND_TESTING
    ERRAND_ASSERT(held == 1);
    held--;
#endif
    /* Pairs: lock-word */
    unsigned old = atomic_exchange_explicit(&lock->word, 0, memory_order_release);
    if (old == 2)
        errand__futex_wake(&lock->word, 1);
    else
        ERRAND_ASSERT(old == 1);
}

void
errand__lock_none_held(void)
{
#if ERRAND_TESTING
    ERRAND_ASSERT(held == 0);
#endif
}

static bool
wait_once(atomic_uint *word, unsigned expected, uint64_t timeout_ns)
{
    int saved = errno;
    struct timespec relative;
    struct timespec *timeout = NULL;
    if (timeout_ns != UINT64_MAX) {
        relative.tv_sec = (time_t)(timeout_ns / 1000000000U);
        relative.tv_nsec = (long)(timeout_ns % 1000000000U);
        timeout = &relative;
    }
    long answer =
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
    bool passed = answer == -1 && errno == ETIMEDOUT;
    errno = saved;
    return !passed;
}

bool
errand__futex_wait(atomic_uint *word, unsigned expected, uint64_t timeout_ns)
{
#if ERRAND__THREAD_SANITIZER
    while (timeout_ns > SLICE_NS) {
        if (wait_once(word, expected, SLICE_NS))
            return true;
        (void)errand__clock_now(); /* a call that it knows: the handler runs */
        if (timeout_ns != UINT64_MAX)
            timeout_ns -= SLICE_NS;
    }
#endif
    return wait_once(word, expected, timeout_ns);
}

void
errand__futex_wake(atomic_uint *word, int threads)
{
    int saved = errno;
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
    errno = saved;
}

static void
acquire_contended(errand__lock *lock)
{
    if (spin_pays()) {
        for (int i = 0; i < SPINS; i++) {
            unsigned seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
            if (seen == 2)
                break;
            /* Pairs: lock-word */
            if (seen == 0 && atomic_compare_exchange_weak_explicit(&lock->word, &seen, 1,
                                                                   memory_order_acquire,
                                                                   memory_order_relaxed))
                return;
            errand__cpu_relax();
        }
    }
    /* Pairs: lock-word */
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        errand__futex_wait(&lock->word, 2, UINT64_MAX);
}

/* More than one processor for this thread?  Asked for now and then: affinity can
 * change. */
static bool
spin_pays(void)
{
    static _Thread_local unsigned left;
    static _Thread_local bool pays;
    if (left == 0) {
        left = SPINS_MEASURED;
        pays = errand__cpus_allowed() > 1;
    }
    left--;
    return pays;
}
