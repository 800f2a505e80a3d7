/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_BLOCKING_H
#define ERRAND_WORKERS_BLOCKING_H
/* blocking: the pool of threads.
 *
 *   ring     one lease's queue of one lane and priority: numbers of records, one producer
 *   queue    the three rings of one lease and lane; what the lists below are made of
 *   place    a lease's part of the pool: its queues
 *   group    up to 64 entries that a worker took from one ring
 *   worker   a thread
 *   pool     all of it, with one leaf lock
 *
 * Guarded by pool->lock unless a head says otherwise.  Functions that end in _locked need it. */
#include "core/pause.h"
#include "errand/faults.h"
#include "workers/blocking/queue.h"
#include "workers/workers.h"

#define ERRAND__SPARE_CELLS  64 /* written-off workers that keep their cell meanwhile */
#define ERRAND__COST_UNKNOWN UINT32_MAX /* long until measured */

extern const errand__executor_ops errand__pool_ops;
/* ---- workers -------------------------------------------------------------------------------- */
enum { /* errand__worker.torn */
       ERRAND__WORKER_WHOLE = 0,
       ERRAND__WORKER_TORN = 1, /* a fault tore its thread out of a body */
       ERRAND__WORKER_GONE = 2  /* ... which touches nothing here any more */
};
typedef struct errand__worker {
    errand__fault *fault; /* NULL: faults are not caught; stays with the block */
    /* Immutable while its thread lives. */
    errand__pool *pool;
    uint32_t index;
    unsigned cpus; /* that it may use */
    /* Guarded by lock. */
    errand__link link;                   /* in pool->sleepers, newest first */
    bool alive, sleeping, seeking, lost; /* lost: written off */
    uint64_t seen_progress;              /* by the watcher's last tick */
    uint64_t idle_since;                 /* pool's idle clock */
    /* Its thread only. */
    bool proven, ending;    /* it took work once; its last hook is called */
    errand_lease *outgoing; /* was held for an earlier group; to be let go */
    uint32_t seek_skips, seek_backoff;
    uint32_t wanted, explore_in, explore_every; /* see errand__worker_gather */
    errand__group group;
    errand__hands hands;
    errand__interrupt interrupt; /* kicker.c; see its heads */
    errand__ringer ringer;
    /* torn: see above.
     * Writers: its thread; the monitor (WHOLE), when that has gone.  Readers: the monitor.
     * Order:   release, acquire.  Pairs: worker-torn.
     * Why:     the monitor settles the job with what the thread left. */
    atomic_uint torn;
    /* bell: 1 = do not sleep.
     * Writers: itself (0), whoever wakes it (1), with the lock.  Readers: itself.
     * Order:   release, acquire.  Pairs: worker-bell.
     * Why:     a futex word; what it was woken for is read with the lock. */
    _Alignas(ERRAND_LINE) atomic_uint bell;
    /* progress: {serial : 56 | index in the group : 8} of the job that runs.  since: cycle
     * counter at its start, 0 between groups.
     * Writers: itself.  Readers: the watcher, write_off, snapshots.
     * Order:   release, acquire.  Pairs: worker-progress.
     * Why:     whoever saw the job RUNNING must find it here. */
    _Alignas(ERRAND_LINE) _Atomic uint64_t progress;
    _Atomic uint64_t since;
    /* leave: lost, or the pool ends: look at the lock's side.
     * Writers: with the lock.  Readers: itself.
     * Order:   relaxed.  Pairs: none.
     * Why:     a hint; the lock decides. */
    atomic_bool leave;
    /* waits, runs: histograms, [i] counts [2^i, 2^(i+1)) ns.  panics, leaked: of its hands.
     * Writers: itself.  Readers: snapshots.
     * Order:   as counters.  Pairs: cell-count.
     * Why:     as counters. */
    _Alignas(ERRAND_LINE) _Atomic uint64_t waits[40];
    _Atomic uint64_t runs[40], panics, leaked;
} errand__worker;

typedef struct errand__lane {
    uint32_t limit, running; /* workers at once; limit 0 = not defined */
    errand__link waiting;    /* queues whose jobs wait for the lane, in order */
    char name[32];
} errand__lane;

/* ---- what goes wrong (breaker.c, monitor.c) -------------------------------------------------- */
#define ERRAND__FAULTS_KEPT  32
#define ERRAND__BREAKER_MOST 256
typedef struct errand__trouble {
    errand_faults_config
        config; /* defaults filled in; immutable once a lease is attached */
    /* Guarded by the pool's lock. */
    errand_faults counts;
    errand_fault kept[ERRAND__FAULTS_KEPT]; /* the last, by counts.caught */
    /* When the last faults and panics were, on the pool's idle clock; how many since the breaker
     * closed; when it closes. */
    uint64_t events[ERRAND__BREAKER_MOST], event_count, open_until;
} errand__trouble;

/* ---- the pool ------------------------------------------------------------------------------- */
struct errand__pool {
    errand_executor base;
    /* Immutable after create. */
    errand_blocking_config
        config; /* defaults filled in; name points into the pool, cpus is NULL */
    char name[12];
    unsigned long *affinity; /* mask of processors; NULL = any */
    size_t affinity_size;
    uint32_t worker_room; /* entries of workers: maximum and spares */
    unsigned processors;
    uint64_t per_us; /* cycles */
    uint64_t quick_cycles, group_cycles, gather_cycles, soon_cycles, late_cycles;
    /* idle: {watching : 1 | sleepers : 32}, bits 32, 0.
     * Writers: with the lock.  Readers: submitters.
     * Order:   relaxed.  Pairs: none.
     * Why:     a hint whether waking could help: a sleeper closed every queue it saw empty
     *          before it slept, and a worker on its timer looks after the others. */
    _Alignas(ERRAND_LINE) _Atomic uint64_t idle;
    /* news: stepped when a queue is opened.
     * Writers: with the lock.  Readers: seeking workers.
     * Order:   release, acquire.  Pairs: pool-news.
     * Why:     a seeking worker then takes the lock and sees the queue. */
    _Atomic uint64_t news;
    /* living: workers that are not written off.
     * Writers: with the lock.  Readers: owners.
     * Order:   relaxed.  Pairs: none.
     * Why:     zero is looked at again with the lock. */
    _Atomic uint32_t living;
    /* refusal: a status that submit answers, 0 = none; see breaker.c.
     * Writers: with the lock.  Readers: owners.
     * Order:   relaxed.  Pairs: none.
     * Why:     anything but zero is looked at again with the lock. */
    _Atomic uint32_t refusal;
    /* waiters: bodies in errand_wait_fd.
     * Writers: workers; owners who cancel, by nothing.  Readers: the same.
     * Order:   acquire-release steps on both sides.  Pairs: pool-waiters.
     * Why:     whoever comes second sees what the first did before: the token, or the waiter. */
    _Atomic uint32_t waiters;
    /* seekers: workers that look for work, were roused for it or start.
     * Writers: with the lock.  Readers: submitters, if somebody sleeps.
     * Order:   relaxed.  Pairs: none.
     * Why:     a hint. */
    _Alignas(ERRAND_LINE) _Atomic uint32_t seekers;
    _Alignas(ERRAND_LINE) errand__lock lock;
    /* Guarded by lock. */
    bool closing;
    bool lanes_fixed; /* a lease was attached */
    uint32_t active_count, sleeper_count, busy, grouped, lost_count;
    uint32_t refused;    /* threads that were refused and are still missing */
    uint64_t retry_ns;   /* not before this, unless nobody lives */
    uint64_t lost_since; /* since when nobody lives; 0 = somebody does */
    bool watch_wanted;   /* the next that sleeps does so on a timer */
    uint64_t takes, tick_takes, serial, idle_ticks;
    uint64_t clock_offset; /* of the idle clock, by tests */
    uint64_t last_busy;    /* idle clock */
    uint64_t started, retired, replaced;
    errand__worker *watcher; /* the sleeper on a timer */
    errand__link active, places, sleepers;
    errand__lane lanes[ERRAND_LANES];
    errand__worker **workers; /* by index; blocks stay until the pool ends */
    /* kicks: stepped when the kicker has to look.
     * Writers: whoever asks a body to end, a worker, destroy.  Readers: the kicker.
     * Order:   release, acquire.  Pairs: pool-kicks.
     * Why:     a futex word; what it looks at has locks. */
    atomic_uint kicks;
    errand__trouble trouble;
    /* reports: stepped when the monitor has to look.  monitor_bell: it waits on that for a thread that
     * can be made; nobody steps it.
     * Writers: a torn worker, destroy.  Readers: the monitor.
     * Order:   release, acquire.  Pairs: pool-reports.
     * Why:     a futex word; what it looks at is in worker->torn. */
    atomic_uint reports, monitor_bell;
    /* users: the executor and each thread.
     * Writers, Readers: they.
     * Order:   acquire-release.  Pairs: pool-users.
     * Why:     the last one frees what the others wrote. */
    _Atomic uint32_t users;
};

static inline errand__pool *
errand__pool_of(errand_executor *executor)
{
    return ERRAND__CONTAINER(executor, errand__pool, base);
}
static inline errand__place *
errand__place_of(const errand_lease *lease)
{
    return lease->impl;
}
/* Where the entry of a number stands. */
static inline uint64_t
errand__ring_at(const errand__ring *ring, uint64_t number)
{
    uint64_t low = number & ((UINT64_C(1) << ring->shift) - 1);

    return ring->thirds ? (number >> ring->shift) % 3 << ring->shift | low : low;
}
/* The same, so many steps on, at most the capacity: without a division, which is 30 instructions. */
static inline uint64_t
errand__ring_step(const errand__ring *ring, uint64_t at, uint64_t steps)
{
    at += steps;
    return at < ring->capacity ? at : at - ring->capacity;
}
static inline uint64_t
errand__entry_make(uint32_t generation, uint32_t slot)
{
    return (uint64_t)generation << 32 | slot;
}
static inline uint64_t
errand__ring_count(const errand__ring *ring) /* with the lock, or a guess without */
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail =
        atomic_load_explicit(&ring->tail, memory_order_acquire); /* Pairs: ring-tail */

    return tail > head ? tail - head : 0;
}
/* Whoever changes it holds the lock: a locked step, 20 cycles, is not needed. */
static inline void
errand__seekers_change_locked(errand__pool *pool, int change)
{
    uint32_t seekers = atomic_load_explicit(&pool->seekers, memory_order_relaxed);

    atomic_store_explicit(&pool->seekers, seekers + (uint32_t)change,
                          memory_order_relaxed);
}
static inline uint64_t
errand__queue_count(const errand__queue *queue)
{
    uint64_t count = 0;

    for (int rank = 0; rank < ERRAND__RANKS; rank++)
        count += errand__ring_count(&queue->rings[rank]);
    return count;
}

/* ring.c */
errand_status errand__pool_ready(errand_lease *lease, const errand__record *record);
void errand__pool_submit(errand_lease *lease, errand__record *record,
                         uint32_t generation);
void errand__pool_flush(errand_lease *lease);
void errand__pool_stale(errand_lease *lease, uint8_t lane, uint8_t priority);
/* rescue.c */
bool errand__pool_rescue(errand_lease *lease, errand__record *record);
bool errand__entry_live(const errand_lease *lease, uint64_t entry); /* queued */
bool errand__entry_runs(const errand_lease *lease, uint64_t entry);
/* Passes at most so many entries at the front that are not live; answers how many. */
uint64_t errand__ring_pass_locked(const errand_lease *lease, errand__ring *ring,
                                  uint64_t most);
void errand__ring_take_locked(errand__ring *ring, errand__group *group, uint32_t count);
/* Puts the last count entries of what a group took back at the front. */
void errand__ring_return_locked(errand__ring *ring, const uint64_t *entries,
                                uint32_t count);
/* A group of so many entries will put nothing back any more. */
void errand__ring_release_locked(errand__ring *ring, uint32_t count);
void errand__ring_unmap(errand__ring *ring);

/* group.c */
void errand__queue_open_locked(errand__pool *pool, errand__queue *queue)
    ERRAND_REQUIRES(pool->lock);
/* last_look: the worker is about to sleep, every queue that is empty is closed. */
bool errand__group_take_locked(errand__pool *pool, errand__worker *worker, bool last_look)
    ERRAND_REQUIRES(pool->lock);
void errand__group_end_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);
/* Puts back what the victim has not begun; false: nothing was left to put back. */
bool errand__group_steal_locked(errand__pool *pool, errand__worker *victim)
    ERRAND_REQUIRES(pool->lock);
/* The group does not count any more: its lane and its place among the busy are free. */
void errand__group_leave_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);
void errand__place_close_locked(errand__pool *pool, errand__place *place)
    ERRAND_REQUIRES(pool->lock);
bool errand__pool_has_work_locked(const errand__pool *pool) ERRAND_REQUIRES(pool->lock);

/* sleep.c, seek.c: what wakes answers whom; ring its bell when the lock was given back. */
typedef enum errand__wake {
    ERRAND__WAKE_LATER = 0,  /* nobody: a flush follows */
    ERRAND__WAKE_NEEDED = 1, /* one more, if those awake would not do */
    ERRAND__WAKE_IDLE = 2    /* one, if all are asleep */
} errand__wake;
/* Opens the queue if it is closed, and wakes. */
void errand__pool_announce(errand__pool *pool, errand__queue *queue, errand__wake wake);
errand__worker *errand__worker_rouse_locked(errand__pool *pool)
    ERRAND_REQUIRES(pool->lock);
void errand__worker_wake(errand__worker *worker); /* NULL: nobody */
void errand__pool_wake_all(errand__pool *pool);
bool errand__pool_behind_locked(const errand__pool *pool, const errand__queue *queue,
                                uint64_t left) ERRAND_REQUIRES(pool->lock);
bool errand__pool_lull_locked(const errand__pool *pool) ERRAND_REQUIRES(pool->lock);
void errand__worker_gather(errand__worker *worker);
bool errand__worker_may_seek_locked(const errand__pool *pool,
                                    const errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);
void errand__worker_seek_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock); /* gives the lock back meanwhile */
void errand__worker_unseek_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);
/* Gives the lock back meanwhile.  False: it retires. */
bool errand__worker_sleep_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);
uint64_t errand__pool_clock_locked(const errand__pool *pool) ERRAND_REQUIRES(pool->lock);
void errand__pool_publish_locked(errand__pool *pool) ERRAND_REQUIRES(pool->lock);

/* worker.c */
void *errand__worker_main(void *arg);
void errand__worker_let_held(errand__worker *worker); /* the lease of its last group */

/* threads.c */
bool errand__pool_spawn(errand__pool *pool, bool replacement);
/* A thread with the pool's attributes; answers an errno. */
int errand__pool_thread(const errand__pool *pool, void *(*run)(void *arg), void *arg);
/* Who runs the entry now; NULL = nobody who was not written off. */
errand__worker *errand__worker_find_locked(errand__pool *pool, const errand_lease *lease,
                                           uint64_t entry) ERRAND_REQUIRES(pool->lock);
/* Its thread, first. */
void errand__worker_enter(errand__worker *worker);
/* Its thread ends inside a body that was settled: the group ends, the lease is let go.  True: it is to be
 * replaced. */
bool errand__worker_retire(errand__worker *worker);
void errand__worker_forget_key(void); /* its thread: it ends, and not inside a body */
void errand__worker_leave(
    errand__worker *worker); /* its thread, last; the block is gone then */
bool errand__pool_write_off(errand_lease *lease, errand__record *record,
                            uint32_t generation);
void errand__pool_let(errand__pool *pool);

/* lost.c */
#define ERRAND__RETRY_NS UINT64_C(100000000)
/* The last thread, or the monitor: until somebody lives.  Waits on bell; counts in this cell of each
 * lease. */
void errand__pool_stand_in(errand__pool *pool, atomic_uint *bell, uint32_t cell);
errand_status errand__pool_reserve(errand_lease *lease, uint32_t count);
uint64_t errand__pool_tend(errand_lease *lease);

/* kicker.c */
bool errand__kicker_may_use(int signal_number);
errand_status errand__kicker_start(errand__pool *pool);    /* OK, EBUSY, ENOTHREAD */
void errand__kicker_stop(errand__pool *pool);              /* no body runs any more */
void errand__worker_interruptible(errand__worker *worker); /* its thread, first */
void errand__pool_nudge(errand_lease *lease, errand__record *record, uint32_t generation);

/* breaker.c */
errand_status errand__trouble_refusal(errand__pool *pool); /* what submit answers now */
void errand__trouble_refresh_locked(errand__pool *pool) ERRAND_REQUIRES(pool->lock);
/* Its body panicked or ended its thread, and is not settled yet. */
void errand__trouble_panic(errand__worker *worker);
void errand__trouble_fault_locked(errand__pool *pool, const errand_fault *fault)
    ERRAND_REQUIRES(pool->lock);
/* Fills the defaults in; what is wrong, NULL = nothing. */
const char *errand__trouble_complete(const errand__pool *pool,
                                     const errand_faults_config *given,
                                     errand_faults_config *out);

/* monitor.c */
static inline bool
errand__pool_catches(const errand__pool *pool)
{
    return (pool->config.flags & ERRAND_BLOCKING_CATCH_FAULTS) != 0;
}
errand_status errand__monitor_start(errand__pool *pool); /* OK, EUNSUPPORTED, ENOTHREAD */
void errand__monitor_stop(errand__pool *pool);           /* no body runs any more */
void errand__worker_torn(errand__worker *worker);        /* its thread, last */

/* accounts.c */
errand_status errand__soft_ready(errand__place *place, const errand__record *record);
void errand__soft_note(errand__place *place, const errand__record *record,
                       uint32_t generation);
void errand__soft_unmap(errand__place *place);
void errand__worker_account(errand__worker *worker); /* a job that began ended just now */
void errand__group_account(errand__worker *worker);  /* waits of a group that ended */
void errand__pool_snapshot(errand_executor *executor, const errand_lease *only,
                           errand_executor_snapshot *out);
#endif
