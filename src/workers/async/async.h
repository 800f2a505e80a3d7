/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_ASYNC_H
#define ERRAND_WORKERS_ASYNC_H
/* async: polled jobs.  What every executor that takes them shares (ports, rosters, pollers), and
 * the executor with one thread.
 *
 * Who holds a waker: record->extra->waker is one reference, given back by whoever drops the
 * record's extra (drain, abandon, or settle for an undeliverable one).  From submit on the
 * executor has one of its own, which goes with the job from the port (woken) to the poller (in
 * hand) to the roster (pending) and back, and ends in errand__waker_end.  A wake takes one more
 * for the port.  So the executor never reads the record to find its waker.
 *
 * A job with requests under way (reactor) stays in its roster's other list while it is polled: it
 * is its loop's, and nobody else may take it out.
 *
 * Who holds the lease: the waker of each job that has not ended, and a dead waker that is still
 * linked in a port, because it leads the consumer to its roster. */
#include <pthread.h>
#include "workers/workers.h"

enum { /* errand_waker.state */
       ERRAND__WAKER_QUIET = 0,
       ERRAND__WAKER_WOKEN = 1, /* linked in a port or queue, or about to be */
       ERRAND__WAKER_DEAD = 2
};

/* ---- port: where wakers push themselves (port.c) -------------------------------------------- */
enum { /* values of the head that are no waker */
       ERRAND__PORT_EMPTY = 0,
       ERRAND__PORT_SLEEPING = 1, /* the consumer sleeps, or is about to */
       ERRAND__PORT_CLOSED = 2    /* whoever pushes takes its waker back */
};
/* Counted: by its executor or roster, and by every waker that may push into it. */
typedef struct errand__port {
    errand__waker_port base; /* immutable */
    /* refs: Writers, Readers: whoever holds or lets.  Order: acquire-release.
     * Pairs: port-refs.  Why: the last one frees what the others used. */
    atomic_uint refs;
    /* head: the newest waker, linked to the older ones, or what the consumer does.
     * Writers: any thread (push); the consumer (take, sleep, close).  Readers: the same.
     * Order: compare-exchange and exchange, acquire-release.  Pairs: port-head.
     * Why: the consumer must see what the waker's thread wrote before. */
    _Atomic uintptr_t head;
    /* bell: what the consumer sleeps on.  Writers: whoever replaced SLEEPING, or wants it to
     * look up.  Readers: the consumer.  Order: release, acquire.  Pairs: port-bell.
     * Why: what was written before the ring must be seen after the sleep. */
    atomic_uint bell;
    /* Immutable.  Instead of the bell: a descriptor that is written (-1 = none; the port's), or the
     * inbox of a runtime whose own thread is the consumer (NULL = none; held). */
    int fd;
    errand__block *block;
} errand__port;
errand__port *errand__port_create(void); /* refs 1; NULL = no memory */
void errand__port_hold(errand__port *port);
void errand__port_let(void *port);
/* push: consumes one reference of a WOKEN waker.  Any thread. */
void errand__port_push(errand__port *port, errand_waker *waker);
/* take: what was pushed, oldest first; NULL = nothing.  One consumer at a time. */
errand_waker *errand__port_take(errand__port *port);
/* rest: the consumer is about to sleep elsewhere; false: something was pushed.  rouse: it woke. */
bool errand__port_rest(errand__port *port);
void errand__port_rouse(errand__port *port);
/* sleep: until something is pushed or rung since bell was read.  The consumer. */
unsigned errand__port_bell(errand__port *port);
void errand__port_sleep(errand__port *port, unsigned bell, uint64_t timeout_ns);
bool errand__port_asleep(const errand__port *port);
bool errand__port_empty(const errand__port *port); /* the consumer */
void errand__port_ring(errand__port *port);
/* close: as take, and nothing is pushed any more. */
errand_waker *errand__port_close(errand__port *port);

/* A waker left its port or queue.  True: its job has not ended, and the next wake queues it again;
 * the caller keeps the reference.  False: it is dead and gone.  The caller holds the lease. */
bool errand__waker_pop(errand_waker *waker);
bool errand__waker_quieten(errand_waker *waker); /* WOKEN to QUIET; false: it is dead */

/* ---- spans: histograms of a snapshot, single writer ------------------------------------------ */
typedef struct errand__spans {
    /* wait, run: counts of [2^i, 2^(i+1)) ns; panics, leaked: of the hands that run the bodies.
     * Writers: who runs the bodies.  Readers: snapshots.  Order: release, acquire.
     * Pairs: cell-count.  Why: as the cells'. */
    _Atomic uint64_t wait[40], run[40];
    _Atomic uint64_t panics, leaked;
} errand__spans;
void errand__spans_hands(errand__spans *spans, const errand__hands *hands);
void errand__spans_count(_Atomic uint64_t *histogram, uint64_t ns);
void errand__spans_add(const errand__spans *spans,
                       errand_executor_snapshot *out_snapshot);

/* ---- ages: since when jobs are queued and running (ages.c) ------------------------------------ */
typedef struct errand__ages {
    struct errand__age *lines; /* by slot; NULL = a seeded order, which has none */
    size_t mapped;
    /* end: lines from here on were never used.  Writers: owner.  Readers: snapshots.
     * Order: release, acquire.  Pairs: none.  Why: a bound; the lines have an order of their own. */
    _Atomic uint32_t end;
} errand__ages;
bool errand__ages_init(errand__ages *ages,
                       const errand_lease *lease); /* false: no memory */
void errand__ages_fini(errand__ages *ages);
/* submitted: owner, before it is handed over.  began: who will claim it, before. */
void errand__ages_submitted(errand__ages *ages, const errand__record *record,
                            uint32_t generation, uint64_t cycles);
void errand__ages_began(errand__ages *ages, const errand__record *record,
                        uint32_t generation, uint64_t cycles);
void errand__ages_read(const errand__ages *ages, const errand__block *block,
                       errand_executor_snapshot *out_snapshot);

/* ---- roster: the async jobs of one lease (roster.c) ------------------------------------------- */
typedef struct errand__roster {
    /* Immutable. */
    errand_lease *lease;
    errand__lock *lock; /* the executor's; NULL: only the owner's thread comes here */
    errand__port *port; /* held; NULL: each job's runner sleeps on the waker's state */
    errand__ages ages;  /* also of blocking jobs, where the executor runs some */
    /* Guarded by *lock. */
    errand__link link;    /* in the executor's list of rosters */
    errand__link pending; /* wakers of the jobs that wait for a wake, each a reference */
    errand__link held; /* the same of jobs with requests under way: nobody drops those */
    bool closing;      /* a job that goes pending now gets its token set */
    bool dropping;     /* a job that goes pending now is dropped */
    uint64_t kept;     /* without a lock: how many keep the lease, which is held once */
    /* live: async jobs that were submitted and have not ended; AWAITED: somebody waits for none.
     * Writers: owner (up, AWAITED), whoever ends a job (down).  Readers: owner.
     * Order: acquire-release.  Pairs: roster-live.
     * Why: who waits for 0 must see what the last one wrote. */
    atomic_uint live;
} errand__roster;
/* The roster's lock; one without is its owner's alone. */
static inline void ERRAND_NO_ANALYSIS
errand__roster_acquire(errand__roster *roster)
{
    if (roster->lock != NULL)
        errand__lock_acquire(roster->lock);
}
static inline void ERRAND_NO_ANALYSIS
errand__roster_release(errand__roster *roster)
{
    if (roster->lock != NULL)
        errand__lock_release(roster->lock);
}
/* Takes over the caller's reference of port, if there is memory (true).  Zeroed before. */
bool errand__roster_init(errand__roster *roster, errand_lease *lease, errand__lock *lock,
                         errand__port *port);
void errand__roster_fini(errand__roster *roster); /* the lease's last reference is gone */
/* A job is submitted (at cycles): makes its waker ready to be queued, WOKEN, and answers it with a reference
 * for the queue.  Owner. */
errand_waker *errand__roster_enter(errand__roster *roster, errand__record *record,
                                   uint32_t generation, uint64_t cycles);
/* What an ended job, or its dead waker, kept of the lease. */
void errand__roster_keep_less(errand__roster *roster);
/* Of a waker whose job has not ended: is the roster's one thread alone with it?  It is where the
 * references that it knows of (the record's, the roster's, a queue's) are all there are; then words
 * that others may write are written by plain stores.  From the close on the record's may be gone. */
static inline bool
errand__waker_is_alone(const errand__roster *roster, const errand_waker *waker,
                       unsigned references)
{
    return roster->lock == NULL && roster->port != NULL && !roster->closing &&
           atomic_load_explicit(&waker->refs, memory_order_acquire) ==
               references; /* Pairs: waker-refs */
}
/* The end of a lease, in this order; owner.  close: pending jobs get their token set and are woken.
 * await: until all have ended, or the deadline.  drop: what is pending is settled as CANCELLED here
 * and now, deferred cleanups included; what is being polled follows at the end of its poll. */
void errand__roster_close(errand__roster *roster);
void errand__roster_await(errand__roster *roster, uint64_t deadline_ns);
void errand__roster_drop(errand__roster *roster);
unsigned errand__roster_busy(const errand__roster *roster); /* how many have not ended */
/* ops->nudge and ops->write_off of async jobs.  A pending one that the owner has settled is dropped
 * at once; false: it is being polled, and is dropped at the end of that. */
void errand__roster_nudge(errand_lease *lease, errand__record *record,
                          uint32_t generation);
bool errand__roster_write_off(errand__roster *roster, errand__record *record);
/* Ages and overruns of all its jobs.  While the lease is attached. */
void errand__roster_ages(const errand__roster *roster,
                         errand_executor_snapshot *out_snapshot);

/* ---- poller: a thread's hands for async jobs (poller.c) ------------------------------------------ */
typedef struct errand__poller {
    errand__hands hands;
    errand_waker *waker; /* whose body runs, a reference; NULL = none */
    errand__spans *spans;
    /* recall: asks all requests of a job back, once for each cancel; NULL = there are none. */
    void (*recall)(struct errand__poller *poller, errand_waker *waker);
    uint32_t cell; /* of the lease: where again counts */
} errand__poller;
void errand__poller_init(errand__poller *poller, errand__spans *spans);
void errand__poller_fini(errand__poller *poller);
/* run: start the job and poll it once, or poll it again.  Consumes the reference of a popped waker;
 * the caller holds the lease.  A panic leaves through hands.frame.  False: no body was entered.
 * panicked: what to do then. */
bool errand__poller_run(errand__poller *poller, errand_waker *waker, errand__cell *cell);
void errand__poller_panicked(errand__poller *poller, const char *message);
/* again: a started job whose request is done is polled, woken or not.  As run, but it consumes no
 * reference. */
void errand__poller_again(errand__poller *poller, errand_waker *waker);
/* The job of this waker is over: consumes the reference and gives the lease back. */
void errand__waker_end(errand_waker *waker);

/* ---- woken jobs, sorted by lease ------------------------------------------------------------------ */
/* Those of one lease, oldest first, and its place among the leases that have some: whose turn it is first.
 * lease->impl begins with its roster, and has this behind it.  The consumer's. */
typedef struct errand__woken {
    errand__link turn;
    errand_waker *first, *last;
} errand__woken;
typedef struct errand__woken_lease {
    errand__roster roster;
    errand__woken woken;
} errand__woken_lease;
static inline void
errand__woken_add(errand__link *turns, errand_waker *waker)
{
    errand__woken *mine = &((errand__woken_lease *)waker->lease)->woken;

    waker->next = NULL;
    if (mine->first == NULL) {
        mine->first = waker;
        errand__list_append(turns, &mine->turn);
    } else {
        mine->last->next = waker;
    }
    mine->last = waker;
}
/* What was pushed, each behind those of its lease. */
static inline void
errand__woken_sort(errand__link *turns, errand__port *port)
{
    errand_waker *waker = errand__port_take(port);

    while (waker != NULL) {
        errand_waker *newer = waker->next;

        errand__woken_add(turns, waker);
        waker = newer;
    }
}
/* The oldest; there is one. */
static inline errand_waker *
errand__woken_take(errand__woken *mine)
{
    errand_waker *waker = mine->first;

    mine->first = waker->next;
    return waker;
}
/* Its turn is over: it stands behind the others, if it has more. */
static inline void
errand__woken_end_turn(errand__link *turns, errand__woken *mine)
{
    errand__list_unlink(&mine->turn);
    if (mine->first != NULL)
        errand__list_append(turns, &mine->turn);
}

/* ---- the executor with one thread (async.c, thread.c) --------------------------------------------- */
typedef struct errand__async_lease { /* lease->impl */
    errand__roster roster;
    errand__woken woken;
} errand__async_lease;
_Static_assert(offsetof(errand__async_lease, woken) ==
                   offsetof(errand__woken_lease, woken),
               "errand__woken_add finds it");
typedef struct errand__async {
    errand_executor base;
    /* Immutable after create. */
    errand__port *port;
    char name[16];
    /* thread: who serves; written at create, and by a thread that ends inside a job, while it
     * holds the executor. */
    pthread_t thread;
    /* stopping: the last reference is gone.  Writers: destroy.  Readers: the thread.
     * Order: release, acquire.  Pairs: port-bell.  Why: the thread may free the rest then. */
    atomic_bool stopping;
    /* The thread's. */
    bool orphan; /* it gave up the last reference itself: nobody joins it */
    errand__poller poller;
    errand__link turns; /* async_leases with woken jobs, whose turn it is first */
    errand__spans spans;
    /* replaced: threads that ended inside a job.  Writers: they.  Readers: snapshots.
     * Order: release, acquire.  Pairs: cell-count.  Why: as the cells'. */
    _Atomic uint64_t replaced;
    errand__lock lock;
    /* Guarded by lock. */
    errand__link rosters;
} errand__async;
errand_status errand__async_start(errand__async *executor); /* OK, ENOTHREAD */
bool errand__async_is_own_thread(const errand__async *executor);
void errand__async_free(errand__async *executor);
#endif
