/* SPDX-License-Identifier: MIT */
/* thread: how the library makes its threads. */
#include <errno.h>
#include <signal.h>
#include "errand/testing.h"
#include "workers/workers.h"

#if ERRAND_TESTING
/* refusals: how many thread creations are still to be refused.
 * Writers: a test, spawning threads.  Readers: spawning threads.
 * Order:   relaxed.  Pairs: none.
 * Why:     a number of its own. */
static _Atomic uint32_t refusals;

void
errand_testing_refuse_threads(uint32_t n)
{
    atomic_store_explicit(&refusals, n, memory_order_relaxed);
}

static bool
refused_by_test(void)
{
    uint32_t left = atomic_load_explicit(&refusals, memory_order_relaxed);

    while (left != 0) {
        uint32_t after = left == UINT32_MAX ? left : left - 1;
        if (atomic_compare_exchange_weak_explicit(
                &refusals, &left, after, memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    return false;
}
#else
static bool
refused_by_test(void)
{
    return false;
}
#endif

int
errand__thread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                      void *(*run)(void *arg), void *arg)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked, before;

    if (refused_by_test())
        return EAGAIN;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(out_thread, attributes, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
