/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_WORK_H
#define ERRAND_BENCH_WORK_H
/* work: what a job does, and how the check knows that it did: the same for every peer. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* One per operation in flight.  ran is the worker's; done and heard are the host's thread's.
 * The peer orders the two threads: that is what it is for. */
typedef struct bench_slot {
    uint32_t ran;   /* bodies that ran */
    uint32_t done;  /* of these, heard of */
    uint32_t heard; /* completions, cancelled ones too */
    uint32_t index;
} bench_slot;

/* Set before there are workers. */
extern bool bench_body_is_long;

void bench_body_rest(bench_slot *slot);

/* bench_body: the job. */
static inline void
bench_body(bench_slot *slot)
{
    slot->ran++;
    if (bench_body_is_long)
        bench_body_rest(slot);
}

/* bench_cycles: the processor's cycle counter, or nanoseconds where it has none for us. */
static inline uint64_t
bench_cycles(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* bench_calibrate: how many cycles a nanosecond has, and how many rounds of the busy loop.
 * Call it once, before anything else here. */
void bench_calibrate(void);
double bench_cycles_per_ns(void);
double bench_rounds_per_ns(void);
/* bench_now: CLOCK_MONOTONIC in ns. */
uint64_t bench_now(void);

/* bench_set_job: how long each job is busy.  Before there are workers. */
void bench_set_job(uint32_t ns);
/* bench_set_gate: the job of this slot waits, until bench_open_gate.  Before there are workers. */
void bench_set_gate(uint32_t index);
void bench_open_gate(void);
/* bench_wait_at_gate: until the gate's job waits there. */
void bench_wait_at_gate(void);

#endif
