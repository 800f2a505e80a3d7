/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_H
#define ERRAND_WORKERS_H
/* workers: hands.  Executors and leases.  Workers see dispatches, never registrars' counters or
 * the runtime: they can neither forge a name nor settle twice. */
#include <pthread.h>
#include "dispatch/hands.h"
#include "errand/executor.h"

typedef struct errand__executor_ops errand__executor_ops;

/* Common head of every executor; each kind embeds it first. */
struct errand_executor {
    const errand__executor_ops *ops;
    /* refs: the creator, each lease, each waker that may touch it.
     * Writers, Readers: whoever holds or lets.
     * Order: acquire-release.  Pairs: executor-refs.
     * Why: the last one destroys what the others wrote. */
    _Atomic uint32_t refs;
    uint32_t fork_epoch; /* errand__fork_epoch() at create */
};

/* One runtime's place.  Counted: its runtime, and every worker while it holds work of it. */
struct errand_lease {
    /* Immutable after attach. */
    errand_executor *executor;
    errand__block *block;           /* held */
    struct errand_runtime *runtime; /* owner thread only */
    void *impl;                     /* the executor's own */
    uint32_t owed_max, cell_count;
    uint8_t index; /* in its runtime */
    bool
        is_virtual; /* seeded order: jobs are handed over by virtual time and waited for */
    uint64_t epoch; /* attachment epoch, process-wide counter */
    /* Cells: [0] the owner's, [1 ..] the executor's workers'. */
    errand__cell *cells;
    /* refs: its runtime, and every worker while it holds work of it.
     * Writers, Readers: whoever holds or lets.
     * Order: acquire-release.  Pairs: lease-refs.
     * Why: the last one frees what the others wrote. */
    _Alignas(ERRAND_LINE) _Atomic uint32_t refs;
    /* accepted, drained, undeliverable: the owner's counts (undeliverable: by the owner at
     * close; late ones are the block's).
     * Writers: owner.  Readers: anyone, last stage first.
     * Order: release stores, acquire loads.  Pairs: cell-count.
     * Why: a reader that sees a later stage must see the earlier one of the same operation. */
    _Alignas(ERRAND_LINE) _Atomic uint64_t accepted;
    _Atomic uint64_t drained;
    _Atomic uint64_t undeliverable;
    /* Owner thread only. */
    uint64_t owed; /* accepted - drained */
    /* What the cycle counter said at the submission that is being handed over; 0 = nobody read it. */
    uint64_t submit_cycles;
    uint64_t ready;        /* bit 3 * lane + priority: ops->ready answered OK for it */
    bool closed, refusing; /* detached; being shut: nothing new is admitted */
    bool lingers;          /* closed, but what it had out still comes: ops->lingers */
    bool unflushed;        /* submitted to since the last flush */
    /* Seeded orders: of what has ended for the program. */
    uint64_t told_outcomes[6], told_codes[ERRAND_CODES];
};
void errand__lease_hold(errand_lease *lease);
void errand__lease_let(
    errand_lease *lease); /* the last one frees it and lets executor, block go */
/* Does nobody hold it but (at most) the caller? */
bool errand__lease_is_alone(const errand_lease *lease);

struct errand__executor_ops {
    const char *name;
    bool
        is_hosts; /* reserve and submit are the host's code, which may call anything back */
    bool
        ready_each; /* ready is asked for each operation, not once per lane and priority */
    uint32_t (*cells)(
        errand_executor *executor); /* how many a lease needs beyond the owner's */
    /* Sets lease->impl.  Owner. */
    errand_status (*attach)(errand_executor *executor, errand_lease *lease);
    /* A lane and priority will be used: allocate their queue.  Owner; called by bind. */
    errand_status (*ready)(errand_lease *lease, const errand__record *record);
    /* May one more be submitted?  OK, ENOTHREAD, EFULL.  Owner; no allocation. */
    errand_status (*reserve)(errand_lease *lease, uint32_t count);
    /* Owner.  The record is QUEUED; lane is resolved (never ERRAND_LANE_CLASS).  A flush of the
     * lease follows, at once or at the end of the drain or turn. */
    void (*submit)(errand_lease *lease, errand__record *record, uint32_t generation);
    /* Several submits have ended: whoever has to be woken is (NULL = nothing to do).  Owner. */
    void (*flush)(errand_lease *lease);
    /* A queued operation of this lease was cancelled: an entry went stale.  Owner. */
    void (*stale)(errand_lease *lease, uint8_t lane, uint8_t priority);
    /* The operation runs beyond its hard deadline and was settled as held: write its worker off and
     * replace it.  False: no worker of this executor runs it.  Owner. */
    bool (*write_off)(errand_lease *lease, errand__record *record, uint32_t generation);
    /* A pending async job was cancelled: have it polled (its token is set).  Owner.  NULL = none. */
    void (*nudge)(errand_lease *lease, errand__record *record, uint32_t generation);
    /* No more comes.  Queued operations were settled by the owner before; forget stale entries and the
     * lease.  Running bodies go on and hold the lease.  Owner. */
    void (*detach)(errand_lease *lease, uint64_t deadline_ns);
    /* Seeded orders: run the queued jobs of this lease here, now (no threads), or NULL if the executor has
     * threads of its own that will do it.  Owner. */
    void (*step)(errand_lease *lease);
    /* Seeded orders, beside step: runs a blocking job to its end without any queue.  True: it is
     * settled, and not put; false: it was settled by somebody else, who put it.  Owner. */
    bool (*run_here)(errand_lease *lease, errand__record *record);
    /* Seeded orders: runs a blocking job that no worker has taken yet, puts its end.  False: one has,
     * or it is settled.  NULL = its workers are never all busy.  Owner. */
    bool (*rescue)(errand_lease *lease, errand__record *record);
    /* Fills a zeroed snapshot: of one lease, but for queued and running, or (NULL) of all.  Ages and
     * overruns are the lease's then; threads and histograms are the executor's, and left zero if the
     * lease was detached.  Any thread. */
    void (*snapshot)(errand_executor *executor, const errand_lease *only,
                     errand_executor_snapshot *out_snapshot);
    void (*destroy)(errand_executor *executor); /* the last reference is gone */
    /* The lease's last reference is gone: free lease->impl.  Any thread.  NULL = nothing to do. */
    void (*forget)(errand_lease *lease);
    /* errand_lane_define.  Any thread, before the first lease.  NULL = EUNSUPPORTED. */
    errand_status (*lane_define)(errand_executor *executor, const char *name,
                                 uint32_t limit, uint8_t *out_lane);
    /* No worker lives and none can be made (O55): retries, and after 1 s settles what this lease
     * has queued as worker lost.  Answers in how many ns it wants to be called again,
     * UINT64_MAX = not at all; the runtime asks before it parks.  Owner.  NULL = never. */
    uint64_t (*tend)(errand_lease *lease);
    /* Are as many workers awake as there are processors?  Then a runtime that parks does not spin:
     * it would keep one of them from its work.  Owner.  NULL = never. */
    bool (*crowded)(const errand_lease *lease);
    /* The owner puts ends of this lease itself: those that are there.  Owner, often: cheap where nothing
     * is out.  NULL = others put all ends. */
    void (*collect)(errand_lease *lease);
    /* Jobs that run in other processes: the owner is about to wait: adds the words that say of an
     * answer.  What is not added is put by somebody else.  Owner.  NULL = there are none. */
    void (*watch)(errand_lease *lease, errand__watch *watch);
    /* The owner's own thread does this lease's work, in collect and without blocking (all owner; NULL =
     * its workers need nobody).
     * rest: the owner is about to sleep or to go elsewhere, and collected: what comes from now on
     * is told to the inbox, and makes descriptor readable.  False: there is something to collect.
     * sleep: instead of a park of the inbox: at most so long, until something comes, then collects.
     * descriptor: what a foreign loop has to watch beside the inbox's; -1 = nothing.
     * leave: another thread may be the owner next; false: not now.
     * lingers: detached, it still has something that only collect and sleep bring in. */
    bool (*rest)(errand_lease *lease);
    void (*sleep)(errand_lease *lease, uint64_t length_ns);
    int (*descriptor)(errand_lease *lease);
    bool (*leave)(errand_lease *lease);
    bool (*lingers)(const errand_lease *lease);
};
void errand__executor_init(errand_executor *executor, const errand__executor_ops *ops);
void errand__executor_hold(errand_executor *executor);
/* Real figures are refused to this thread, which goes through a turn of a seeded order, or not any
 * more (D141); refuse answers EUNSUPPORTED. */
void errand__virtual_enter(bool is_virtual);
bool errand__virtual_inside(void);
errand_status errand__virtual_refuse(const char *function);
void errand__executor_let(errand_executor *executor);

/* errand__forks: forks between the process that loaded the library and this one (O61).
 * Writers: the fork handler and adopt (executor.c), in a child that has one thread.  Readers:
 * every call.
 * Order: relaxed.  Pairs: none.  Why: written while there is no other thread. */
extern _Atomic uint32_t errand__forks;
static inline uint32_t
errand__fork_epoch(void)
{
    return atomic_load_explicit(&errand__forks, memory_order_relaxed);
}
/* In a child of a process that had one thread: what was made at that epoch is the child's. */
void errand__fork_adopt(uint32_t epoch);

/* thread.c: pthread_create for the library's own threads, which take no signals but those that a
 * fault of their own raises (O60).  attributes NULL = the usual ones.  Answers an errno. */
int errand__thread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *arg), void *arg);

/* lease.c: the runtime's side.  EDUPLICATE is the runtime's business. */
errand_status errand__lease_create(errand_executor *executor, errand__block *block,
                                   struct errand_runtime *runtime, uint32_t owed_max,
                                   bool is_virtual, errand_lease **out_lease);
/* Derives the terms of O4 for one lease, last stage first; adds to *out. */
void errand__lease_account(const errand_lease *lease, errand_snapshot *out);

/* ages.c: parts of snapshots.  add: sums, but the older of the ages.  lease_ages: ops->snapshot of
 * this lease, with its accounts. */
void errand__age_raise(uint64_t *oldest, uint64_t age);
void errand__overrun_note(errand_executor_snapshot *out, const errand_overrun *overrun);
void errand__ages_add(errand_executor_snapshot *out,
                      const errand_executor_snapshot *more);
void errand__lease_ages(const errand_lease *lease, errand_executor_snapshot *out);

/* Which lane a record goes to, when its spec said ERRAND_LANE_CLASS. */
static inline uint8_t
errand__lane_of(const errand__record *record)
{
    if (record->lane != ERRAND_LANE_CLASS)
        return record->lane;
    return record->resource_class == ERRAND_QUARANTINED_BLOCKING ? ERRAND_LANE_QUARANTINED
                                                                 : ERRAND_LANE_MAIN;
}
#endif
