/* SPDX-License-Identifier: MIT */
/* Goal: the clocks go forward and agree, and the processor counts are those of the
 *       calling thread now.  Method: compare clocks over a few milliseconds; change a
 *       thread's affinity. */
#include <pthread.h>
#include <sched.h>
#include "core/core.h"
#include "group.h"

static void
clock_never_goes_back(void **state)
{
    (void)state;
    uint64_t last = errand__clock_now();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = errand__clock_now();
        assert_true(now >= last);
        last = now;
    }
}

static void
coarse_clock_lags_a_few_milliseconds_at_most(void **state)
{
    (void)state;
    uint64_t coarse = errand__clock_coarse(), now = errand__clock_now();
    assert_true(coarse <= now);
    coarse = errand__clock_coarse();
    assert_true(coarse + 100000000 > now);
}

/* The counter's rate against the clock's over 5 ms; the best of a few tries, because a
 * pause of the machine between two reads spoils one. */
static void
cycle_counter_goes_at_the_measured_rate(void **state)
{
    (void)state;
    uint64_t rate = errand__cycles_per_us();
    assert_true(rate >= 1);
    double least = 1;
    for (int i = 0; i < 5 && least >= 0.01; i++) {
        uint64_t cycles = errand__cycles(), start = errand__clock_now(), now;
        do {
            now = errand__clock_now();
        } while (now - start < 5000000);
        double ticks = (double)(errand__cycles() - cycles);
        double off = ticks / ((double)(now - start) / 1000 * (double)rate) - 1;
        off = off < 0 ? -off : off;
        least = off < least ? off : least;
    }
    assert_true(least <
                0.05); /* a slow counter has few ticks: the rate is a whole number */
}

static void *
ask_rate(void *arg)
{
    *(uint64_t *)arg = errand__cycles_per_us();
    return NULL;
}

static void
all_threads_get_the_same_rate(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uint64_t rates[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_rate, &rates[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(rates[i], errand__cycles_per_us());
}

static void
processors_are_those_of_the_thread_at_the_call(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(errand__cpus_allowed(), CPU_COUNT(&before));
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &before))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(errand__cpus_allowed(), 1);
        assert_int_equal(errand__cpu_current(), cpu);
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(errand__cpus_allowed(), CPU_COUNT(&before));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            all_threads_get_the_same_rate), /* first: nothing is measured yet */
        cmocka_unit_test(clock_never_goes_back),
        cmocka_unit_test(coarse_clock_lags_a_few_milliseconds_at_most),
        cmocka_unit_test(cycle_counter_goes_at_the_measured_rate),
        cmocka_unit_test(processors_are_those_of_the_thread_at_the_call),
    };
    return test_group("core/clock", tests, NULL, NULL);
}
