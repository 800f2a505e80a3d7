/* SPDX-License-Identifier: MIT */
/* sleep: who waits how, and who is woken when.
 *
 * Design notes.
 * - A worker without work first seeks: it spins on the tails of the queue it served last and on
 *   the pool's news, if a processor is free for that: for longer than it takes to wake the
 *   other side, because two sides that both give up sooner wake each other for ever; but only
 *   every 2nd, 4th ... 64th time after failures, and two microseconds else.  Then it looks once more, closes every queue it sees empty, and sleeps.
 *   A submit that finds its queue closed takes the lock, opens it and rouses a sleeper.
 * - Queues stay open while somebody seeks or works, so that a busy pool's submits take no lock.
 * - While short jobs are taken in groups, a sleeper sleeps on a timer of 1 ms (the watcher).
 *   It puts back the rest of groups that made no step since its last tick, because their
 *   worker blocks, and takes over when nobody takes what is queued.  Without it a batch could
 *   be stranded behind one job.
 * - More workers than processors lose on short jobs: a further one is roused when what is
 *   queued would take those awake some time, soon if a processor is free, late if not; and
 *   one that meets a lull lies down, never the last.
 * - A worker that is faster than the producer would follow it one by one, each line of memory
 *   going to and fro.  So it waits until some entries have gathered, as long as they keep
 *   coming, and learns how many that may be: one more after each success, fewer when they stop
 *   coming.  With one job in flight it wants one, and tries more once in a thousand jobs. */
#include <sched.h>
#include "workers/blocking/blocking.h"

#define TICK_NS       UINT64_C(1000000)
#define TICKS_IDLE    8
#define SEEK_MOST_US  75 /* longer than it takes to wake the other side */
#define SEEK_LEAST_US 2
#define SKIPS_MOST    64
#define GATHER_MOST   48
#define GATHER_PAUSES 6  /* between looks: each look takes the line from the producer */
#define EXPLORED      4  /* how many are wanted when that is tried */
#define EXPLORE_FIRST 16 /* groups between tries */
#define EXPLORE_LAST  1024

/* ---- waking ---------------------------------------------------------------------------------- */

void
errand__pool_publish_locked(errand__pool *pool)
{
    uint64_t idle = (uint64_t)(pool->watcher != NULL) << 32 | pool->sleeper_count;

    if (atomic_load_explicit(&pool->idle, memory_order_relaxed) != idle)
        atomic_store_explicit(&pool->idle, idle, memory_order_relaxed);
}

errand__worker *
errand__worker_rouse_locked(errand__pool *pool)
{
    if (pool->sleeper_count == 0)
        return NULL;
    errand__link *link = pool->sleepers.next;
    if (pool->sleeper_count > 1 && pool->watcher != NULL && link == &pool->watcher->link)
        link = link->next;
    errand__worker *worker = ERRAND__CONTAINER(link, errand__worker, link);
    errand__list_unlink(&worker->link);
    worker->sleeping = false;
    worker->seeking = true;
    pool->sleeper_count--;
    atomic_fetch_add_explicit(&pool->seekers, 1, memory_order_relaxed);
    if (pool->watcher == worker)
        pool->watcher = NULL;
    atomic_store_explicit(&worker->bell, 1,
                          memory_order_release); /* Pairs: worker-bell */
    errand__pool_publish_locked(pool);
    return worker;
}

void
errand__worker_wake(errand__worker *worker)
{
    if (worker != NULL)
        errand__futex_wake(&worker->bell, 1);
}

/* Would one more worker awake be of use to this queue? */
static bool
one_more_helps(const errand__pool *pool, const errand__queue *queue, errand__wake wake)
{
    uint64_t left = errand__queue_count(queue);
    uint32_t seekers = atomic_load_explicit(&pool->seekers, memory_order_relaxed);
    bool quick = atomic_load_explicit(&queue->quick, memory_order_relaxed) &&
                 pool->grouped + seekers > 0 && pool->watcher != NULL;

    if (wake == ERRAND__WAKE_IDLE)
        return pool->busy + seekers == 0 && left > 0;
    if (quick)
        return seekers == 0 && errand__pool_behind_locked(pool, queue, left);
    return left > seekers;
}

void
errand__pool_announce(errand__pool *pool, errand__queue *queue, errand__wake wake)
{
    errand__worker *roused = NULL;

    errand__lock_acquire(&pool->lock);
    /* Taken meanwhile, and closed by somebody who sleeps now: an open queue would hide the next. */
    if (errand__queue_count(queue) > 0)
        errand__queue_open_locked(pool, queue);
    if (wake != ERRAND__WAKE_LATER && queue->state == ERRAND__QUEUE_OPEN &&
        pool->sleeper_count > 0 && one_more_helps(pool, queue, wake))
        roused = errand__worker_rouse_locked(pool);
    errand__lock_release(&pool->lock);
    errand__worker_wake(roused);
}

/* Has every sleeper look round: the pool ends, or its clock was moved. */
void
errand__pool_wake_all(errand__pool *pool)
{
    errand__lock_acquire(&pool->lock);
    for (uint32_t i = 0; i < pool->worker_room; i++) {
        errand__worker *worker = pool->workers[i];
        if (worker == NULL)
            continue;
        if (pool->closing)
            atomic_store_explicit(&worker->leave, true, memory_order_relaxed);
        atomic_store_explicit(&worker->bell, 1,
                              memory_order_release); /* Pairs: worker-bell */
        errand__worker_wake(worker);
    }
    errand__lock_release(&pool->lock);
}

/* Would what is left keep those awake busy for so long that one more should help? */
bool
errand__pool_behind_locked(const errand__pool *pool, const errand__queue *queue,
                           uint64_t left)
{
    uint32_t awake =
        atomic_load_explicit(&pool->living, memory_order_relaxed) - pool->sleeper_count;
    uint64_t bound = pool->processors > awake + 1 ? pool->soon_cycles : pool->late_cycles;
    uint64_t cost = atomic_load_explicit(&queue->cost, memory_order_relaxed);

    return left * cost / (awake > 0 ? awake : 1) >= bound;
}

/* So little is queued that the other workers on short jobs will do. */
bool
errand__pool_lull_locked(const errand__pool *pool)
{
    if (pool->grouped == 0 || pool->active_count != 1)
        return false;
    const errand__place *place =
        ERRAND__CONTAINER(pool->active.next, errand__place, link);
    uint64_t left = 0;
    for (uint32_t mask = place->mask; mask != 0; mask &= mask - 1) {
        const errand__queue *queue = place->queues[__builtin_ctz(mask)];
        uint64_t cost = atomic_load_explicit(&queue->cost, memory_order_relaxed);
        if (cost > pool->quick_cycles)
            return false;
        left += errand__queue_count(queue) * cost;
    }
    return left < pool->late_cycles / 4;
}

/* ---- waiting awake ----------------------------------------------------------------------------- */

static void
pause_for(uint64_t cycles)
{
    uint64_t start = errand__cycles();

    while (errand__cycles() - start < cycles)
        errand__cpu_relax();
}

/* Waits while entries keep coming, until there are as many as wanted.  Each look takes the line
 * of the tail from the producer, so it looks again when there should be enough, going by how
 * fast they come. */
static uint64_t
gather_until(const errand__pool *pool, const errand__queue *queue, uint64_t count,
             uint64_t wanted)
{
    uint64_t left = 6 * pool->gather_cycles, wait = pool->gather_cycles / 2;

    while (count < wanted && left >= wait) {
        pause_for(wait);
        left -= wait;
        uint64_t grown = errand__queue_count(queue) - count;
        if ((int64_t)grown <= 0)
            break;
        count += grown;
        wait = count < wanted ? wait * (wanted - count) / grown + 1 : 0;
        if (wait > 2 * pool->gather_cycles)
            wait = 2 * pool->gather_cycles;
        else if (wait < pool->gather_cycles / 4)
            wait = pool->gather_cycles / 4;
    }
    return count;
}

void
errand__worker_gather(errand__worker *worker)
{
    const errand__queue *queue = worker->group.queue;
    uint64_t count, wanted = worker->wanted;

    if (queue == NULL || worker->cpus < 2)
        return;
    if (wanted == 1) {
        if (--worker->explore_in > 0)
            return;
        worker->explore_in = worker->explore_every;
        wanted = EXPLORED;
    }
    count = errand__queue_count(queue);
    if (count == 0 && wanted > EXPLORED) { /* a stream: let it come */
        pause_for(worker->pool->gather_cycles / 2);
        count = errand__queue_count(queue);
    }
    if (count == 0 || count >= ERRAND__GROUP_MAX)
        return;
    count = gather_until(worker->pool, queue, count, wanted);
    if (count >= wanted) {
        worker->wanted = (uint32_t)(wanted < GATHER_MOST ? wanted + 1 : wanted);
        worker->explore_every = EXPLORE_FIRST;
        return;
    }
    worker->wanted = (uint32_t)(count > 2 ? count * 3 / 4 : 1);
    if (worker->wanted == 1 && worker->explore_every < EXPLORE_LAST)
        worker->explore_every *= 2;
}

bool
errand__worker_may_seek_locked(const errand__worker *worker)
{
    return worker->cpus > 1 &&
           atomic_load_explicit(&worker->pool->seekers, memory_order_relaxed) + 1 <
               worker->cpus;
}

/* Is there more than was seen?  Then its lines come while the lock is taken. */
static bool
has_come(const errand__ring *ring, uint64_t seen)
{
    uint64_t at;

    /* Pairs: ring-tail */
    if (atomic_load_explicit(&ring->tail, memory_order_acquire) == seen)
        return false;
    at = seen & (ring->capacity - 1);
    __builtin_prefetch(&ring->entries[at]);
    __builtin_prefetch(&ring->stamps[at >> ERRAND__STAMP_SHIFT]);
    return true;
}

/* A long spin that fails is not tried again the next 1, 2, 4 ... 64 times. */
static void
adapt_seeking(errand__worker *worker, bool found)
{
    if (found) {
        worker->seek_skips = worker->seek_backoff = 0;
    } else if (worker->seek_skips > 0) {
        worker->seek_skips--;
    } else {
        worker->seek_backoff = worker->seek_backoff == 0 ? 1 : 2 * worker->seek_backoff;
        if (worker->seek_backoff > SKIPS_MOST)
            worker->seek_backoff = SKIPS_MOST;
        worker->seek_skips = worker->seek_backoff;
    }
}

void
errand__worker_seek_locked(errand__worker *worker)
{
    errand__pool *pool = worker->pool;
    const errand__queue *queue = worker->group.queue;
    uint64_t tails[ERRAND__RANKS] = {0};
    uint64_t limit =
        (worker->seek_skips > 0 ? SEEK_LEAST_US : SEEK_MOST_US) * pool->per_us;
    uint64_t start = errand__cycles();
    bool found = false;

    worker->seeking = true;
    atomic_fetch_add_explicit(&pool->seekers, 1, memory_order_relaxed);
    uint64_t news = atomic_load_explicit(&pool->news, memory_order_relaxed);
    for (int rank = 0; queue != NULL && rank < ERRAND__RANKS; rank++)
        tails[rank] =
            atomic_load_explicit(&queue->rings[rank].head, memory_order_relaxed);
    errand__lock_release(&pool->lock);
    do {
        for (int i = 0; i < 16 && !found; i++) {
            /* Pairs: pool-news */
            found = atomic_load_explicit(&pool->news, memory_order_acquire) != news ||
                    atomic_load_explicit(&worker->leave, memory_order_relaxed);
            for (int rank = 0; queue != NULL && rank < ERRAND__RANKS; rank++)
                found |= has_come(&queue->rings[rank], tails[rank]);
            errand__cpu_relax();
        }
    } while (!found && errand__cycles() - start < limit);
    adapt_seeking(worker, found);
    errand__worker_gather(worker);
    errand__lock_acquire(&pool->lock);
    errand__worker_unseek_locked(worker);
}

void
errand__worker_unseek_locked(errand__worker *worker)
{
    if (!worker->seeking)
        return;
    worker->seeking = false;
    atomic_fetch_sub_explicit(&worker->pool->seekers, 1, memory_order_relaxed);
}

/* ---- asleep ------------------------------------------------------------------------------------ */

uint64_t
errand__pool_clock_locked(const errand__pool *pool)
{
    return errand__clock_coarse() + pool->clock_offset;
}

static void
lie_down(errand__pool *pool, errand__worker *worker)
{
    worker->sleeping = true;
    worker->idle_since = errand__pool_clock_locked(pool);
    errand__list_prepend(&pool->sleepers, &worker->link);
    pool->sleeper_count++;
}

static void
get_up(errand__pool *pool, errand__worker *worker)
{
    worker->sleeping = false;
    errand__list_unlink(&worker->link);
    pool->sleeper_count--;
    if (pool->watcher == worker)
        pool->watcher = NULL;
    errand__pool_publish_locked(pool);
}

/* The watcher's look round; true: there is something to do for it. */
static bool
tick(errand__pool *pool)
{
    bool stolen = false;
    bool moved = pool->takes != pool->tick_takes;

    pool->tick_takes = pool->takes;
    for (uint32_t i = 0; i < pool->worker_room; i++) {
        errand__worker *worker = pool->workers[i];
        if (worker == NULL || !worker->group.active || worker->group.stolen)
            continue;
        /* Pairs: worker-progress */
        uint64_t progress = atomic_load_explicit(&worker->progress, memory_order_acquire);
        if (progress == worker->seen_progress)
            stolen |= errand__group_steal_locked(pool, worker);
        worker->seen_progress = progress;
    }
    if (stolen || (!moved && errand__pool_has_work_locked(pool)))
        return true;
    pool->idle_ticks = moved || pool->grouped > 0 ? 0 : pool->idle_ticks + 1;
    if (pool->idle_ticks >= TICKS_IDLE) {
        pool->watcher = NULL;
        pool->watch_wanted = false;
    }
    return false;
}

/* Above the minimum, idle for long, and not the only one that could stand in for a worker that
 * blocks. */
static bool
retires(const errand__pool *pool, const errand__worker *worker, uint64_t now)
{
    if (atomic_load_explicit(&pool->living, memory_order_relaxed) <=
            pool->config.workers_min ||
        now - worker->idle_since < pool->config.idle_ns)
        return false;
    return pool->sleeper_count > 1 ||
           (pool->busy == 0 && now - pool->last_busy >= pool->config.idle_ns);
}

static uint64_t
sleep_length(errand__pool *pool, const errand__worker *worker)
{
    if (pool->watcher == NULL && (pool->grouped > 0 || pool->watch_wanted)) {
        pool->watcher = (errand__worker *)worker;
        pool->tick_takes = pool->takes;
        pool->idle_ticks = 0;
    }
    if (pool->watcher == worker)
        return TICK_NS;
    if (atomic_load_explicit(&pool->living, memory_order_relaxed) <=
        pool->config.workers_min)
        return UINT64_MAX;
    uint64_t now = errand__pool_clock_locked(pool);
    uint64_t since = now - worker->idle_since;
    if (pool->sleeper_count == 1 && now - pool->last_busy < since)
        since = now - pool->last_busy;
    return since < pool->config.idle_ns
               ? pool->config.idle_ns - since + TICK_NS
               : 100 * TICK_NS; /* the only one, others are busy */
}

bool
errand__worker_sleep_locked(errand__worker *worker)
{
    errand__pool *pool = worker->pool;

    lie_down(pool, worker);
    for (;;) {
        uint64_t length = sleep_length(pool, worker);
        errand__pool_publish_locked(pool);
        atomic_store_explicit(&worker->bell, 0, memory_order_relaxed);
        errand__lock_release(&pool->lock);
        ERRAND__PAUSE("worker-sleep");
        errand__futex_wait(&worker->bell, 0, length);
        errand__lock_acquire(&pool->lock);
        if (!worker->sleeping)
            return true;
        bool act = pool->closing || (pool->watcher == worker && tick(pool));
        bool retire = !act && pool->watcher != worker &&
                      retires(pool, worker, errand__pool_clock_locked(pool));
        if (!act && !retire)
            continue;
        get_up(pool, worker);
        if (retire) {
            atomic_fetch_sub_explicit(&pool->living, 1, memory_order_relaxed);
            pool->retired++;
        }
        return act;
    }
}
