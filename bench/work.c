/* SPDX-License-Identifier: MIT */
/* work: the busy loop counts rounds, not time, so a job that loses its processor in the middle
 * has as much left to do as before.  The rounds are calibrated against the cycle counter, and
 * that against the clock, at the program's start: the fastest of many tries counts. */
#include "work.h"

#include <pthread.h>

bool bench_body_is_long;

static uint64_t busy_rounds;
static uint32_t gate_index = UINT32_MAX;
static double cycles_per_ns, rounds_per_ns;

/* Guarded by gate_lock. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_is_open, gate_is_reached;

static void
busy(uint64_t rounds)
{
    uint64_t x = rounds | 1;
    for (uint64_t i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    __asm__ volatile("" : : "r"(x));
}

uint64_t
bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void
bench_calibrate(void)
{
    enum { TRIES = 200, ROUNDS = 20000 };
    uint64_t from_ns = bench_now(), from_cycles = bench_cycles();
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t from = bench_cycles();
        busy(ROUNDS);
        uint64_t took = bench_cycles() - from;
        if (took < best)
            best = took;
    }
    uint64_t ns = bench_now() - from_ns;
    cycles_per_ns = (double)(bench_cycles() - from_cycles) / (double)ns;
    rounds_per_ns = ROUNDS / ((double)best / cycles_per_ns);
}

double
bench_cycles_per_ns(void)
{
    return cycles_per_ns;
}

double
bench_rounds_per_ns(void)
{
    return rounds_per_ns;
}

void
bench_set_job(uint32_t ns)
{
    busy_rounds = (uint64_t)(ns * rounds_per_ns);
    bench_body_is_long = busy_rounds != 0 || gate_index != UINT32_MAX;
}

void
bench_set_gate(uint32_t index)
{
    gate_index = index;
    bench_body_is_long = true;
}

void
bench_body_rest(bench_slot *slot)
{
    if (slot->index == gate_index) {
        pthread_mutex_lock(&gate_lock);
        gate_is_reached = true;
        pthread_cond_broadcast(&gate_changed);
        while (!gate_is_open)
            pthread_cond_wait(&gate_changed, &gate_lock);
        pthread_mutex_unlock(&gate_lock);
    }
    busy(busy_rounds);
}

void
bench_open_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    gate_is_open = true;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

void
bench_wait_at_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    while (!gate_is_reached)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}
