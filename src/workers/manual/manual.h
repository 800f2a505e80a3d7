/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_MANUAL_H
#define ERRAND_WORKERS_MANUAL_H
/* manual: the executor without threads.
 *
 *   ring    queued jobs of one lease, lane and priority
 *   queue   the three rings of one lease and lane
 *   pick    the job whose turn it is
 *   step    a call that runs picks
 *
 * A round is what the pretended workers would start at the same time: as many picks as there are
 * workers, and of a lane at most its limit. */
#include "workers/async/async.h"

#define ERRAND__MANUAL_RANKS 3 /* high, normal, low */

typedef struct errand__manual_entry {
    uint64_t name;       /* {generation : 32 | slot : 32} */
    uint64_t order;      /* of submits of its lease */
    uint64_t since;      /* cycles */
    errand_waker *waker; /* async: a reference; NULL = blocking */
} errand__manual_entry;

typedef struct errand__manual_ring {
    errand__manual_entry *entries;
    size_t mapped;
    uint32_t capacity; /* 0 = not ready */
    uint32_t first, count, stale;
} errand__manual_ring;

typedef struct errand__manual_queue {
    uint8_t streak; /* starts since the last one of a lower priority */
    errand__manual_ring rings[ERRAND__MANUAL_RANKS];
} errand__manual_queue;

typedef struct errand__manual_lease { /* lease->impl */
    errand__roster roster;
    errand__poller own; /* the owner's hands, for seeded orders and the end */
    /* Guarded by the executor's lock. */
    errand__link turn;
    errand__manual_queue *queues[ERRAND_LANES];
    uint8_t next_lane;
    bool polled; /* its last pick was a poll */
    uint64_t orders;
    errand_waker *woken, *woken_last; /* taken from the port, oldest first */
} errand__manual_lease;

typedef struct errand__manual {
    errand_executor base;
    /* Immutable after create. */
    uint32_t workers;
    /* stepping: somebody is inside errand_manual_step.  Writers, Readers: steps, and owners at the
     * end of a lease.  Order: acquire-release.  Pairs: manual-stepping.
     * Why: what follows is handed from one stepping thread to the next. */
    atomic_bool stepping;
    /* busy: is a body being run?  Writers: the stepping thread.  Readers: snapshots.
     * Order: relaxed.  Pairs: none.  Why: nothing hangs on it. */
    atomic_bool busy;
    /* The stepping thread's. */
    errand__poller poller;
    errand__spans spans;
    errand__lock lock;
    /* Guarded by lock. */
    errand__link leases; /* whose turn it is first */
    bool lanes_fixed;    /* a lease was attached */
    uint32_t in_round;   /* picks of this round */
    struct {
        uint32_t limit,
            used; /* workers at once; used in this round; limit 0 = not defined */
    } lanes[ERRAND_LANES];
} errand__manual;

static inline errand__manual *
errand__manual_of(errand_executor *executor)
{
    return ERRAND__CONTAINER(executor, errand__manual, base);
}

/* queue.c */
typedef struct errand__manual_pick {
    errand_lease *lease; /* held */
    errand__record *record;
    uint32_t generation;
    errand_waker *waker; /* popped, a reference; NULL = a blocking job */
    uint64_t since;
} errand__manual_pick;
errand_status errand__manual_ready(errand_lease *lease, const errand__record *record);
void errand__manual_submit(errand_lease *lease, errand__record *record,
                           uint32_t generation);
void errand__manual_stale(errand_lease *lease, uint8_t lane, uint8_t priority);
/* Takes the job whose turn it is, of this lease only or (NULL) of any that is not seeded. */
bool errand__manual_pick_next(errand__manual *executor, errand__manual_lease *only,
                              bool woken_only, errand__manual_pick *out_pick);
/* The lease goes: forgets what is queued and woken.  Owner. */
void errand__manual_forget_queues(errand__manual *executor, errand__manual_lease *lease);

/* here.c: ops->run_here. */
bool errand__manual_run_here(errand_lease *lease, errand__record *record);

/* step.c */
/* ops->step.  A seeded lease: runs what it has queued or woken.  Another: poll_once. */
void errand__manual_step_lease(errand_lease *lease);
/* Polls once what is woken, unless another thread steps.  Owner. */
void errand__manual_poll_once(errand__manual_lease *lease);
#endif
