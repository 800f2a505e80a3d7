/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Compiled into the library and into the worker program: it calls nothing of the library.
 * - Each side stores its word, then looks whether the other sleeps; the other says that it
 *   sleeps, then looks at the word.  All four are seq_cst, so that one of the two sees the
 *   other.  What a lying worker can reach is that its own answer is seen a bound later.
 * - The answer is stored by a plain store where that is enough: a host that looks all the time has
 *   the line, and a locked store waits for it before anything else goes on (4 % of a trip, and
 *   15 % if the line was not asked for long before).
 * - Spinning pays only across processors (3.1 of the measurements: a hundredth of a park there, a
 *   loss on one), so a side spins only if the other's processor is known and is not its own.
 *   How long follows what helped: more after an answer that came while spinning, less after a
 *   sleep. */
#include "workers/sandbox/wire.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS_MIN = 64, SPINS_START = 512, SPINS_MAX = 4096 };
/* Looks per pause: a pause is 40 ns and more on some processors, which is late for an answer. */
enum { DENSE = 8 };

static void
spin_once(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static uint32_t
processor_now(void)
{
    int processor = sched_getcpu();
    return processor < 0 ? 0 : (uint32_t)processor + 1;
}

static bool
may_spin(const errand__wire_waiter *waiter, uint32_t own, uint32_t peer)
{
    return waiter->processors > 1 && own != 0 && peer != 0 && own != peer;
}

static void
learn(errand__wire_waiter *waiter, bool helped)
{
    if (helped) {
        uint32_t more = waiter->spins * 2;
        waiter->spins = more > SPINS_MAX ? SPINS_MAX : more;
    } else {
        uint32_t fewer = waiter->spins - waiter->spins / 4;
        waiter->spins = fewer < SPINS_MIN ? SPINS_MIN : fewer;
    }
}

void
errand__wire_waiter_init(errand__wire_waiter *waiter, uint32_t processors)
{
    waiter->processors = processors;
    waiter->spins = SPINS_START;
}

uint64_t
errand__wire_await_answer(errand__wire_waiter *waiter, errand__wire_request *request,
                          errand__wire_response *response, uint64_t seen,
                          uint64_t timeout_ns)
{
    uint32_t own = processor_now();
    atomic_store_explicit(&request->host_cpu, own, memory_order_relaxed);
    uint32_t peer = atomic_load_explicit(&response->worker_cpu, memory_order_relaxed);
    uint64_t now;
    if (may_spin(waiter, own, peer)) {
        for (uint32_t i = 0; i < waiter->spins; i++) {
            now = atomic_load_explicit(&response->answer, memory_order_acquire);
            if (now != seen) {
                learn(waiter, true);
                return now;
            }
            spin_once();
        }
        learn(waiter, false);
    }
    atomic_store_explicit(&request->host_sleeps, 1, memory_order_seq_cst);
    now = atomic_load_explicit(&response->answer,
                               memory_order_seq_cst); /* Pairs: wire-answer */
    if (now == seen) {
        errand__wire_sleep(errand__wire_futex(response), (uint32_t)(seen >> 32),
                           timeout_ns);
        now = atomic_load_explicit(&response->answer, memory_order_acquire);
    }
    atomic_store_explicit(&request->host_sleeps, 0, memory_order_seq_cst);
    return now;
}

uint32_t
errand__wire_await_doorbell(errand__wire_waiter *waiter,
                            const errand__wire_request *request,
                            errand__wire_response *response, uint32_t seen,
                            uint64_t timeout_ns)
{
    uint32_t own = processor_now();
    if (atomic_load_explicit(&response->worker_cpu, memory_order_relaxed) != own)
        atomic_store_explicit(&response->worker_cpu, own, memory_order_relaxed);
    uint32_t peer = atomic_load_explicit(&request->host_cpu, memory_order_relaxed);
    uint32_t now;
    if (may_spin(waiter, own, peer)) {
        for (uint32_t i = 0; i < waiter->spins * DENSE; i++) {
            now = atomic_load_explicit(&request->doorbell, memory_order_acquire);
            if (now != seen) {
                learn(waiter, true);
                return now;
            }
            if (i % DENSE == DENSE - 1)
                spin_once();
        }
        learn(waiter, false);
    }
    /* Pairs: wire-worker-sleeps */
    atomic_store_explicit(&response->worker_sleeps, 1, memory_order_seq_cst);
    now = atomic_load_explicit(&request->doorbell, memory_order_seq_cst);
    if (now == seen) {
        errand__wire_sleep(&request->doorbell, seen, timeout_ns);
        /* Pairs: wire-doorbell */
        now = atomic_load_explicit(&request->doorbell, memory_order_acquire);
    }
    atomic_store_explicit(&response->worker_sleeps, 0, memory_order_seq_cst);
    return now;
}

void
errand__wire_ring(errand__wire_request *request, errand__wire_response *response)
{
    /* Pairs: wire-doorbell */
    atomic_fetch_add_explicit(&request->doorbell, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&response->worker_sleeps, memory_order_seq_cst) != 0)
        errand__wire_wake(&request->doorbell);
}

void
errand__wire_put(const errand__wire_request *request, errand__wire_response *response,
                 uint64_t answer)
{
#if defined(__x86_64__)
    /* stand: what is locked in its place.  Writers: the worker.  Readers: none.  Order: seq_cst.
     * Pairs: none.  Why: on x86 a store is seen before any locked operation that follows, so
     *   also before the look below.  The host's word cannot be the one: it is read-only here. */
    static atomic_uint stand;
    atomic_store_explicit(&response->answer, answer,
                          memory_order_release); /* Pairs: wire-answer */
    atomic_fetch_add_explicit(&stand, 1, memory_order_seq_cst);
#else
    /* Pairs: wire-answer */
    atomic_exchange_explicit(&response->answer, answer, memory_order_seq_cst);
#endif
    /* Pairs: wire-host-sleeps */
    if (atomic_load_explicit(&request->host_sleeps, memory_order_seq_cst) != 0)
        errand__wire_wake(errand__wire_futex(response));
}

void
errand__wire_sleep(const _Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
    struct timespec limit = {.tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
                             .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000))};
    int before = errno;
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
    errno = before;
}

void
errand__wire_wake(const _Atomic uint32_t *word)
{
    int before = errno;
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    errno = before;
}
