/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_ISOLATION_H
#define ERRAND_BENCH_ISOLATION_H
/* isolation: calls in another process, by errand's sandbox and by what one would write instead.  All
 * do the same: number * 3 + 1, or the same bytes back. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ISOLATION_WORKERS_MAX = 2, ISOLATION_WINDOW_MAX = 64 };

typedef struct isolation_plan {
    uint32_t workers, in_flight;
    bool apart;   /* workers on the second processor, the host's thread on the first */
    bool threads; /* errand: a pool of threads instead */
    size_t bytes; /* the largest message */
} isolation_plan;

/* Functions that fail write text, of 120 bytes. */
typedef struct isolation_peer {
    const char *name;
    void *(*open)(const isolation_plan *plan, char *text);
    /* One call, and its answer. */
    bool (*trip)(void *world, uint64_t number, uint64_t *out_answer, char *text);
    /* total calls, in_flight at a time; how many were answered right.  NULL: it has one in flight. */
    uint64_t (*pump)(void *world, uint64_t total, char *text);
    /* NULL: no. */
    bool (*echo)(void *world, const unsigned char *bytes, size_t size,
                 unsigned char *out_bytes, char *text);
    /* One worker ends, by a signal: ns until the next one is there.  NULL: no such thing. */
    bool (*refill)(void *world, uint64_t *out_ns, char *text);
    /* One call that ends its process by a signal.  NULL: no such thing. */
    bool (*crash)(void *world, char *text);
} isolation_peer;

extern const isolation_peer isolation_errand, isolation_fork, isolation_sockets,
    isolation_futexes, isolation_spins;

static inline uint64_t
isolation_turn(uint64_t number)
{
    return number * 3 + 1;
}

/* Keeps a process on the n-th of the processors that this one may use. */
bool isolation_pin(int process, int nth);

#endif
