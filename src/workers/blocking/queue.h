/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_BLOCKING_QUEUE_H
#define ERRAND_WORKERS_BLOCKING_QUEUE_H
/* queue: where the jobs of a lease wait in its pool, and what a worker takes of them; see blocking.h. */
#include "workers/workers.h"

#define ERRAND__GROUP_MAX   64
#define ERRAND__RANKS       3                            /* high, normal, low */
#define ERRAND__STAMP_SHIFT 5                            /* one stamp for 32 entries */
#define ERRAND__STAMPS_MOST (ERRAND__GROUP_MAX / 32 + 1) /* that a group may meet */

typedef struct errand__pool errand__pool;
typedef struct errand__place errand__place;

typedef struct errand__ring {
    /* Immutable once ready. */
    uint64_t *entries; /* {generation : 32 | slot : 32}; NULL = not ready */
    uint64_t capacity; /* 2^k or 3 * 2^k, so that little of it is waste */
    unsigned shift;    /* k */
    bool thirds;
    size_t mapped;
    /* stamps: when the newest of each 32 entries was submitted, ns.
     * Writers: owner; a sweep.  Readers: workers.
     * Order:   relaxed.  Pairs: none.
     * Why:     ages and histograms, nothing hangs on them. */
    _Atomic uint64_t *stamps;
    /* Owner thread only; on a line of their own, because workers that wait poll the tail's. */
    _Alignas(ERRAND_LINE) uint64_t next; /* what tail is */
    uint64_t next_at;                    /* where that is, see errand__ring_at */
    uint64_t room;  /* tail may grow to here before freed is looked at again */
    uint64_t stamp; /* the newest */
    uint64_t stale; /* entries that were cancelled since the last sweep */
    /* tail: where the next entry goes.
     * Writers: owner.  Readers: workers.
     * Order:   release; at a flush a sequentially consistent step by 0, then a load of the
     *          queue's open; workers that close the queue do the reverse; acquire elsewhere.
     * Pairs:   ring-tail.
     * Why:     the entry must be there, and of the two sides one must see the other. */
    _Alignas(ERRAND_LINE) _Atomic uint64_t tail;
    /* head: the next entry to take.  freed: entries below it will not come back; head minus
     * what groups may still put back.
     * Writers: with the lock.  Readers: owner and seeking workers without it.
     * Order:   release, acquire.  Pairs: ring-freed.
     * Why:     the owner overwrites what is freed: it must have been read before. */
    _Alignas(ERRAND_LINE) _Atomic uint64_t head;
    _Atomic uint64_t freed;
    uint64_t out; /* in groups that may put it back */
} errand__ring;

typedef enum errand__queue_state {
    ERRAND__QUEUE_CLOSED = 0,  /* empty, no worker will look: the next submit opens it */
    ERRAND__QUEUE_OPEN = 1,    /* in its place's mask */
    ERRAND__QUEUE_WAITING = 2, /* its lane is full: in the lane's list */
    ERRAND__QUEUE_GONE = 3     /* its lease was detached */
} errand__queue_state;

typedef struct errand__queue {
    /* Immutable. */
    errand__place *place;
    uint8_t lane;
    /* open: is the state anything but CLOSED?
     * Writers: with the lock.  Readers: owner.
     * Order:   sequentially consistent, see tail.  Pairs: ring-tail.
     * Why:     see tail. */
    atomic_uint open;
    /* quick: are its jobs short, as far as was measured?  Written when that changes.
     * Writers: with the lock.  Readers: owner.
     * Order:   relaxed.  Pairs: none.
     * Why:     an estimate. */
    atomic_bool quick;
    /* cost: cycles per job, a moving mean; UNKNOWN at first.
     * Writers: with the lock.  Readers: owner, now and then.
     * Order:   relaxed.  Pairs: none.
     * Why:     an estimate. */
    _Alignas(ERRAND_LINE) _Atomic uint32_t cost;
    /* Guarded by lock. */
    uint8_t state;
    uint8_t streak; /* starts since the last one of a lower priority */
    errand__link waiting;
    errand__ring rings[ERRAND__RANKS];
} errand__queue;

struct errand__place {
    /* Immutable; queues: set with the lock, by the owner, once. */
    errand__pool *pool;
    errand_lease *lease;
    errand__queue *queues[ERRAND_LANES];
    struct errand__soft *soft; /* see accounts.c; like queues; NULL = no soft limits */
    size_t soft_mapped;
    /* Owner thread only. */
    _Alignas(ERRAND_LINE) uint64_t unflushed; /* bit lane * 3 + rank: submitted to */
    /* Guarded by lock. */
    _Alignas(ERRAND_LINE) errand__link link; /* in pool->active while mask is not 0 */
    errand__link attached;                   /* in pool->places */
    uint32_t mask;                           /* lanes whose queue is OPEN */
    uint8_t next_lane;
    bool gone;
};

/* What a group is made of.  The worker's own, but for stolen; entries, position and count do
 * not change while others may look. */
typedef struct errand__group {
    errand_lease *lease; /* held; stays after the group's end, for the next one */
    errand__queue *queue;
    errand__ring *ring;
    bool active; /* between take and end */
    bool quick;  /* its jobs were expected to be short */
    bool tiny;   /* ... far below a microsecond: several share a clock reading */
    bool stolen; /* with the lock: its rest was put back by another */
    uint32_t count, next, started;
    uint64_t serial, position;
    uint64_t start, begin; /* cycles: of the group, of the job */
    uint8_t started_in[ERRAND__STAMPS_MOST];
    uint64_t stamps[ERRAND__STAMPS_MOST];
    uint64_t entries[ERRAND__GROUP_MAX];
} errand__group;

#endif
