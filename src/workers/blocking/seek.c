/* SPDX-License-Identifier: MIT */
/* seek: how a worker waits while it is awake.
 *
 * Design notes.
 * - It spins on the tails of the queue it served last and on the pool's news, if a processor is
 *   free for that: for longer than it takes to wake the other side, because two sides that both
 *   give up sooner wake each other for ever; but only every 2nd, 4th ... 64th time after
 *   failures, and two microseconds else.
 * - A worker that is faster than the producer would follow it one by one, each line of memory
 *   going to and fro.  So it waits until some entries have gathered, as long as they keep
 *   coming, and learns how many that may be: one more after each success, fewer when they stop
 *   coming.  With one job in flight it wants one, and tries more once in a thousand jobs. */
#include "workers/blocking/blocking.h"

#define SEEK_MOST_US  75 /* longer than it takes to wake the other side */
#define SEEK_LEAST_US 2
#define SKIPS_MOST    64
#define GATHER_MOST   48
#define EXPLORED      4  /* how many are wanted when that is tried */
#define EXPLORE_FIRST 16 /* groups between tries */
#define EXPLORE_LAST  1024

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
errand__worker_may_seek_locked(const errand__pool *pool, const errand__worker *worker)
{
    return worker->cpus > 1 &&
           atomic_load_explicit(&pool->seekers, memory_order_relaxed) + 1 < worker->cpus;
}

/* Is there more than was seen?  Then its lines come while the lock is taken. */
static bool
has_come(const errand__ring *ring, uint64_t seen)
{
    uint64_t at;

    /* Pairs: ring-tail */
    if (atomic_load_explicit(&ring->tail, memory_order_acquire) == seen)
        return false;
    at = errand__ring_at(ring, seen);
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
errand__worker_seek_locked(errand__pool *pool, errand__worker *worker)
{
    const errand__queue *queue = worker->group.queue;
    uint64_t tails[ERRAND__RANKS] = {0};
    uint64_t limit =
        (worker->seek_skips > 0 ? SEEK_LEAST_US : SEEK_MOST_US) * pool->per_us;
    uint64_t start = errand__cycles();
    bool found = false;

    worker->seeking = true;
    errand__seekers_change_locked(pool, 1);
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
    errand__worker_unseek_locked(pool, worker);
}

void
errand__worker_unseek_locked(errand__pool *pool, errand__worker *worker)
{
    if (!worker->seeking)
        return;
    worker->seeking = false;
    errand__seekers_change_locked(pool, -1);
}
