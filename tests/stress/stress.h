/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_STRESS_STRESS_H
#define ERRAND_TESTS_STRESS_STRESS_H
/* stress: what race tests share: how many rounds, and an offset that looks for the race.
 *
 * A race test in a plain loop is won by the same side a million times.  Here whoever won the last
 * round is held up a little longer in the next, so the two meet again and again where either may
 * win; race_check fails if either side won under 5 %. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include "core/core.h"
#include "group.h"
#include "watchdog.h"

#if defined(__SANITIZE_THREAD__)
#define STRESS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STRESS_TSAN 1
#endif
#endif
#ifndef STRESS_TSAN
#define STRESS_TSAN 0
#endif

/* full rounds in ./check --long, a tenth by default, a tenth of both under ThreadSanitizer. */
static inline uint64_t
stress_rounds(uint64_t full)
{
    uint64_t rounds = test_scaled(full);

    watchdog_start(test_name(), 10 * watchdog_seconds());
    return STRESS_TSAN && rounds >= 10 ? rounds / 10 : rounds;
}

typedef struct race {
    const char *first_name, *second_name;
    uint64_t first, second; /* rounds won */
    int64_t offset;         /* above 0: the first is held up so long, below: the second */
    uint64_t random;
} race;

static inline uint64_t
race_random(race *self)
{
    self->random = self->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return self->random >> 33;
}

/* How long the first side, and the second, waits in this round. */
static inline uint64_t
race_first_delay(const race *self)
{
    return self->offset > 0 ? (uint64_t)self->offset : 0;
}
static inline uint64_t
race_second_delay(const race *self)
{
    return self->offset < 0 ? (uint64_t)-self->offset : 0;
}

static inline void
race_won(race *self, bool by_first)
{
    int64_t step = 1 + (int64_t)(race_random(self) % 32);

    self->first += by_first;
    self->second += !by_first;
    self->offset += by_first ? step : -step;
    if (self->offset > 20000 || self->offset < -20000)
        self->offset /= 2;
}

/* Where there is one processor for both, the other side has to get it now and then. */
static inline void
race_delay(uint64_t spins)
{
    for (uint64_t i = 1; i <= spins; i++) {
        if (i % 1024 == 0)
            sched_yield();
        else
            errand__cpu_relax();
    }
}

static inline void
race_check(const race *self)
{
    uint64_t rounds = self->first + self->second;

    printf("%s: %s %llu, %s %llu\n", test_name(), self->first_name,
           (unsigned long long)self->first, self->second_name,
           (unsigned long long)self->second);
    assert_true(self->first * 20 >= rounds);
    assert_true(self->second * 20 >= rounds);
}

/* Waits for a word that other threads count up to this, also where there is one processor. */
static inline void
stress_await(atomic_uint *word, unsigned wanted)
{
    for (unsigned spins = 0; atomic_load_explicit(word, memory_order_acquire) != wanted;
         spins++) {
        if (spins % 256 == 255)
            sched_yield();
        else
            errand__cpu_relax();
    }
}

#endif
