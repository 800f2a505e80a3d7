/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_PEER_H
#define ERRAND_BENCH_PEER_H
/* peer: one interface for everything that is measured.  A peer keeps a window of operations in
 * flight: the host's thread submits, a worker calls bench_body, the host's thread hears of it
 * and calls bench_completed, which checks the operation and says whether to submit it again.
 *
 * Each sample is taken in a process of its own (sample.h), so a peer need not undo what it has
 * set for its process. */
#include "work.h"

/* Why a sample is not counted. */
typedef struct bench_fault {
    uint64_t wrong; /* completions of an operation that did not run exactly once */
    uint64_t lost;  /* operations short of what was asked for, at the end */
    char text[120]; /* of a call that failed */
} bench_fault;

/* One measured stretch, on the host's thread. */
typedef struct bench_run {
    uint64_t total;     /* completions to wait for */
    uint64_t left;      /* operations that may still be submitted */
    uint64_t delivered; /* completions so far */
    uint64_t cancelled; /* of these, cancelled */
    uint64_t *stamps;   /* NULL, or the cycles between one completion and the next */
    uint64_t stamp_count, stamp_max;
    uint64_t last_cycles;  /* when the last completion was heard of */
    uint64_t until_cycles; /* 0, or no operation is submitted after this */
    bench_fault fault;
} bench_run;

/* What a peer is opened for. */
typedef struct bench_plan {
    uint32_t workers;
    uint32_t in_flight;   /* operations, each with a slot */
    bool cancels;         /* some will be cancelled */
    bool paced, in_order; /* errand: in virtual order; all operations take 1 ns of it */
    bool exact; /* errand: decoder, name and exact times, as a host may ask for */
} bench_plan;

/* A function that answers false has written run->fault.text. */
typedef struct bench_peer {
    const char *name;
    /* Start the workers and make the slots.  NULL: it cannot. */
    void *(*open)(const bench_plan *plan);
    /* Another place on the same workers, with a host's inbox of its own.  NULL: has none. */
    void *(*second)(void *world, const bench_plan *plan);
    /* Submit min(in_flight, run->left) operations, in the order of their slots. */
    bool (*fill)(void *world, bench_run *run);
    /* Deliver until run->delivered is run->total, and submit again what bench_completed says. */
    bool (*collect)(void *world, bench_run *run);
    /* Cancel every operation but that of the first slot.  NULL: it cannot. */
    bool (*cancel)(void *world, bench_run *run);
    /* Wait for news, which do not come, for that long. */
    bool (*rest)(void *world, uint64_t ns);
    bench_slot *(*slot)(void *world, uint32_t index);
    /* Do its own accounts say the same, and is nothing more to be heard?  NULL: keeps none. */
    bool (*settled)(void *world, uint64_t heard);
} bench_peer;

extern const bench_peer bench_peer_errand, bench_peer_libuv, bench_peer_glib,
    bench_peer_mutex, bench_peer_yardstick;

/* All of them; errand is the first. */
enum { BENCH_PEERS = 5 };
extern const bench_peer *const bench_peers[BENCH_PEERS];

/* bench_ended: is there nothing more to wait for? */
static inline bool
bench_ended(const bench_run *run)
{
    return run->delivered >= run->total;
}

/* bench_begin: the caller is about to submit an operation for the first time. */
static inline bool
bench_begin(bench_run *run)
{
    if (run->left == 0)
        return false;
    run->left--;
    return true;
}

/* bench_completed: check one completion.  True: submit the same operation again. */
static inline bool
bench_completed(bench_run *run, bench_slot *slot, bool cancelled)
{
    if (slot->ran != slot->done + !cancelled) {
        run->fault.wrong++;
    }
    slot->done = slot->ran;
    slot->heard++;
    run->delivered++;
    run->cancelled += cancelled;
    if (run->stamps != NULL) {
        uint64_t now = bench_cycles();
        if (run->stamp_count < run->stamp_max)
            run->stamps[run->stamp_count++] = now - run->last_cycles;
        run->last_cycles = now;
        if (run->until_cycles != 0 && now > run->until_cycles)
            run->left = 0;
    }
    if (run->left == 0)
        return false;
    run->left--;
    return true;
}

#endif
