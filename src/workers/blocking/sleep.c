/* SPDX-License-Identifier: MIT */
/* sleep: who waits how, and who is woken when.
 *
 * Design notes.
 * - A worker without work first seeks (seek.c).  Then it looks once more, closes every queue it
 *   sees empty, and sleeps.  A submit that finds its queue closed takes the lock, opens it and
 *   rouses a sleeper.
 * - Queues stay open while somebody seeks or works, so that a busy pool's submits take no lock.
 * - While short jobs are taken in groups, a sleeper sleeps on a timer of 1 ms (the watcher).
 *   It puts back the rest of groups that made no step since its last tick, because their
 *   worker blocks, and takes over when nobody takes what is queued.  Without it a batch could
 *   be stranded behind one job.
 * - More workers than processors lose on short jobs: a further one is roused when what is
 *   queued would take those awake some time, soon if a processor is free, late if not; and
 *   one that meets a lull lies down, never the last. */
#include "workers/blocking/blocking.h"

#define TICK_NS    UINT64_C(1000000)
#define TICKS_IDLE 2 /* a pool is still within 5 ms */

static bool one_more_helps_locked(const errand__pool *pool, const errand__queue *queue,
                                  errand__wake wake) ERRAND_REQUIRES(pool->lock);
static void lie_down_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);
static void get_up_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);
static bool tick_locked(errand__pool *pool) ERRAND_REQUIRES(pool->lock);
static uint64_t sleep_length_locked(errand__pool *pool, const errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);

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
    errand__seekers_change_locked(pool, 1);
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
one_more_helps_locked(const errand__pool *pool, const errand__queue *queue,
                      errand__wake wake)
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

ERRAND_APART void
errand__pool_announce(errand__pool *pool, errand__queue *queue, errand__wake wake)
{
    errand__worker *roused = NULL;

    errand__lock_acquire(&pool->lock);
    /* Taken meanwhile, and closed by somebody who sleeps now: an open queue would hide the next. */
    if (errand__queue_count(queue) > 0)
        errand__queue_open_locked(pool, queue);
    if (wake != ERRAND__WAKE_LATER && queue->state == ERRAND__QUEUE_OPEN &&
        pool->sleeper_count > 0 && one_more_helps_locked(pool, queue, wake))
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

/* ---- asleep ------------------------------------------------------------------------------------ */

uint64_t
errand__pool_clock_locked(const errand__pool *pool)
{
    return errand__clock_coarse() + pool->clock_offset;
}

static void
lie_down_locked(errand__pool *pool, errand__worker *worker)
{
    worker->sleeping = true;
    worker->idle_since = errand__pool_clock_locked(pool);
    errand__list_prepend(&pool->sleepers, &worker->link);
    pool->sleeper_count++;
}

static void
get_up_locked(errand__pool *pool, errand__worker *worker)
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
tick_locked(errand__pool *pool)
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
sleep_length_locked(errand__pool *pool, const errand__worker *worker)
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
errand__worker_sleep_locked(errand__pool *pool, errand__worker *worker)
{
    lie_down_locked(pool, worker);
    for (;;) {
        uint64_t length = sleep_length_locked(pool, worker);
        errand__pool_publish_locked(pool);
        atomic_store_explicit(&worker->bell, 0, memory_order_relaxed);
        errand__lock_release(&pool->lock);
        ERRAND__PAUSE("worker-sleep");
        errand__futex_wait(&worker->bell, 0, length);
        errand__lock_acquire(&pool->lock);
        if (!worker->sleeping)
            return true;
        bool act = pool->closing || (pool->watcher == worker && tick_locked(pool));
        bool retire = !act && pool->watcher != worker &&
                      retires(pool, worker, errand__pool_clock_locked(pool));
        if (!act && !retire)
            continue;
        get_up_locked(pool, worker);
        if (retire) {
            atomic_fetch_sub_explicit(&pool->living, 1, memory_order_relaxed);
            pool->retired++;
        }
        return act;
    }
}
