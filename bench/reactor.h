/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_REACTOR_H
#define ERRAND_BENCH_REACTOR_H
/* reactor: what the case of that name has each peer do, and how it is checked. */
#include "work.h"

enum { REACTOR_BLOCK = 4096, REACTOR_BLOCKS = 4096, REACTOR_WINDOW_MAX = 256 };
enum { REACTOR_COLD_BLOCKS = 65536 }; /* 256 MiB */

/* Reads of blocks that all lie in memory, or each of one that does not; each begins with its own
 * number. */
typedef struct reactor_reads {
    int fd;
    uint32_t in_flight;
    uint64_t left, done, wrong;
    uint64_t draws;
    bool cold; /* each block once, in a strewn order; draws: how many so far */
    char (*buffers)[REACTOR_BLOCK]; /* one per place in the window */
    uint32_t wanted[REACTOR_WINDOW_MAX];
} reactor_reads;

/* The next block for this place; -1: no more. */
static inline int64_t
reactor_next(reactor_reads *reads, uint32_t place)
{
    if (reads->left == 0)
        return -1;
    reads->left--;
    if (reads->cold)
        return reads->wanted[place] =
                   (uint32_t)(reads->draws++ * 40503u % REACTOR_COLD_BLOCKS);
    reads->draws = reads->draws * 6364136223846793005u + 1442695040888963407u;
    reads->wanted[place] = (uint32_t)(reads->draws >> 33) % REACTOR_BLOCKS;
    return reads->wanted[place];
}

static inline void
reactor_read(reactor_reads *reads, uint32_t place, int64_t result)
{
    uint64_t number;

    __builtin_memcpy(&number, reads->buffers[place], sizeof number);
    reads->wrong += result != REACTOR_BLOCK || number != reads->wanted[place];
    reads->buffers[place][0] ^= 1; /* the next has to write it */
    reads->done++;
}

/* reactor_cold.c.  open: a file of REACTOR_COLD_BLOCKS without a name; -1 and errno: EOPNOTSUPP = it
 * would lie in memory.  make: nothing of
 * it lies in memory; was: so many blocks were read since, and those lie there now; both answer false,
 * with a text. */
int reactor_cold_open(void);
bool reactor_cold_make(int fd, char *text, size_t size);
bool reactor_cold_was(int fd, uint64_t reads, char *text, size_t size);

/* Timers: armed one after the other; then all cancelled, or all waited for. */
typedef struct reactor_timers {
    uint32_t count;
    bool cancels;
    uint64_t armed_ns, ended_ns; /* what the two parts took */
    uint64_t heard, wrong;
} reactor_timers;
/* When timer i is due, from the first arming on, in ms. */
static inline uint64_t
reactor_due_ms(const reactor_timers *timers, uint32_t i)
{
    uint64_t spread = timers->cancels ? 60000 : 50;

    return (timers->cancels ? 60000 : 1) + (uint64_t)i * 2654435761u % spread;
}

/* Each answers false, with a text, if a call failed. */
typedef bool reactor_reads_fn(reactor_reads *reads, char *text, size_t size);
typedef bool reactor_timers_fn(reactor_timers *timers, char *text, size_t size);
reactor_reads_fn reactor_reads_errand, reactor_reads_libuv, reactor_reads_ring;
reactor_timers_fn reactor_timers_errand, reactor_timers_libuv;

#endif
