/* SPDX-License-Identifier: MIT */
/* clock: the two clocks, the cycle counter's rate, and the thread's processors. */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/core.h"

#define MEASURE_NS 1000000U /* one read costs some 30 ns of doubt: 1 ms makes it 0.01 % */

/* cycles_rate: 0 = not measured yet.
 * Writers: the first thread whose measurement is done.  Readers: anybody.
 * Order:   relaxed.  Pairs: none.
 * Why:     one number that nothing else hangs on; threads that measure at the same time
 *          agree on the first one stored. */
static _Atomic uint64_t cycles_rate;

static uint64_t read_clock(clockid_t clock);
static uint64_t measure_cycles(void);

ERRAND_APART uint64_t
errand__clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t
errand__clock_coarse(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t
errand__cycles_per_us(void)
{
    uint64_t rate = atomic_load_explicit(&cycles_rate, memory_order_relaxed);
    if (rate != 0)
        return rate;
    uint64_t measured = measure_cycles();
    if (atomic_compare_exchange_strong_explicit(
            &cycles_rate, &rate, measured, memory_order_relaxed, memory_order_relaxed))
        return measured;
    return rate;
}

unsigned
errand__cpus_allowed(void)
{
    /* The call itself, because the wrapper refuses on machines with over 1024
     * processors. */
    unsigned long mask[128] = {0};
    int saved = errno;
    long size = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    errno = saved;
    unsigned count = 0;
    for (size_t i = 0; i < sizeof mask / sizeof mask[0]; i++) {
        if (size <= (long)(i * sizeof mask[0]))
            break;
        count += (unsigned)__builtin_popcountl(mask[i]);
    }
    return count == 0 ? 1 : count;
}

unsigned
errand__cpu_current(void)
{
    int cpu = sched_getcpu();
    return cpu < 0 ? 0 : (unsigned)cpu;
}

static uint64_t
read_clock(clockid_t clock)
{
    struct timespec now;
    ERRAND_ASSERT(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__) || defined(__i386__)
/* One moment on both clocks: the tightest of a few tries, so that being interrupted
 * between the two reads does not count. */
static void
read_both(uint64_t *out_cycles, uint64_t *out_now)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = errand__cycles();
        uint64_t now = errand__clock_now();
        uint64_t between = errand__cycles() - before;
        if (between < least) {
            least = between;
            *out_cycles = before + between / 2;
            *out_now = now;
        }
    }
}

static uint64_t
measure_cycles(void)
{
    uint64_t cycles = 0, now = 0, end_cycles = 0, end = 0;
    read_both(&cycles, &now);
    while (errand__clock_now() - now < MEASURE_NS)
        errand__cpu_relax();
    read_both(&end_cycles, &end);
    uint64_t ns = end - now;
    uint64_t rate = ((end_cycles - cycles) * 1000U + ns / 2) / ns;
    return rate == 0 ? 1 : rate;
}
#elif defined(__aarch64__)
static uint64_t
measure_cycles(void)
{
    uint64_t hertz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hertz));
    return hertz < 1000000U ? 1 : hertz / 1000000U;
}
#else
static uint64_t
measure_cycles(void)
{
    return 1000U; /* cycles are the clock's nanoseconds */
}
#endif
