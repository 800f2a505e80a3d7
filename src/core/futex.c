/* SPDX-License-Identifier: MIT */
/* futex: sleeping on several words at once, also on those that other processes write.
 *
 * Design notes.
 * - The kernel has the call since 5.16; whether it is there is asked once.  A filter that a host
 *   lives in may refuse it with any errno, so only the one that the call itself would give counts.
 * - Its timeout is a moment, not a length. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/core.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef FUTEX_32
#define FUTEX_32 2
#endif

/* As the kernel wants it; its own name for it is newer than some headers. */
typedef struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
} waiter;

/* known: 0 not asked yet, 1 it is there, 2 it is not.
 * Writers, Readers: any thread.
 * Order:   relaxed.  Pairs: none.
 * Why:     whoever asks finds the same. */
static atomic_uint known;

bool
errand__futex_has_many(void)
{
    unsigned found = atomic_load_explicit(&known, memory_order_relaxed);

    if (found == 0) {
        int saved = errno;

        (void)syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0);
        found = errno == EINVAL ? 1 : 2;
        errno = saved;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found == 1;
}

int
errand__futex_wait_many(const errand__futex_word *words, unsigned count,
                        uint64_t timeout_ns)
{
    waiter waiters[ERRAND__FUTEX_MANY];
    struct timespec until;
    struct timespec *limit = NULL;
    int saved = errno;

    ERRAND_ASSERT(count <= ERRAND__FUTEX_MANY);
    for (unsigned i = 0; i < count; i++)
        waiters[i] = (waiter){
            .value = words[i].expected,
            .address = (uintptr_t)words[i].word,
            .flags = FUTEX_32 | (words[i].shared ? 0 : FUTEX_PRIVATE_FLAG),
        };
    if (timeout_ns != UINT64_MAX) {
        uint64_t moment = errand__clock_now();

        moment = timeout_ns > UINT64_MAX - moment ? UINT64_MAX : moment + timeout_ns;
        until.tv_sec = (time_t)(moment / 1000000000U);
        until.tv_nsec = (long)(moment % 1000000000U);
        limit = &until;
    }
    long answer = syscall(SYS_futex_waitv, waiters, count, 0, limit, CLOCK_MONOTONIC);
    errno = saved;
    return answer >= 0 && answer < (long)count ? (int)answer : -1;
}
