/* SPDX-License-Identifier: MIT */
/* worker: one thread's life: take a group, run it, again.
 *
 * Design notes.
 * - One frame contains the panics of all its bodies; a panic lands in worker_main, which
 *   settles the job and goes on with the group.  What must survive that is in the worker, not
 *   on the stack.
 * - A caught fault lands there too, and the thread ends; see monitor.c.
 * - Ending a group and taking the next is one visit to the lock.
 * - The lease of the last group stays held until the worker takes from another or lies down,
 *   so that records and queues stay mapped while it seeks.
 * - The ring that a dozing runtime is owed waits until its queue is empty or holds long jobs:
 *   the doze ends by itself after 100 us, and each wake costs as much as a hundred jobs.
 * - Only what is decided with the lock is done after it: waking, starting threads, letting a
 *   lease go. */
#include "workers/blocking/blocking.h"

#define PREFETCH_AHEAD 4
#define CLOCK_AGE_US   1000

static errand__worker *plan_locked(errand__pool *pool, const errand__worker *worker,
                                   bool *out_spawn) ERRAND_REQUIRES(pool->lock);

#define TINY_SHARED 7 /* jobs that share a reading with the one that takes it */

static void
run_group(errand__worker *worker)
{
    errand__group *group = &worker->group;
    errand__hands *hands = &worker->hands;
    errand__block *block = group->lease->block;
    errand__cell *cell = &group->lease->cells[1 + worker->index];

    if (group->next == 0) {
        ERRAND__PAUSE("group-taken");
        errand__lock_none_held();
        errand__hands_read(hands);
        if (hands->cycles - hands->base_cycles > CLOCK_AGE_US * worker->pool->per_us)
            errand__hands_clock(hands);
        group->start = hands->cycles;
        hands->lazy = hands->lazy_left = group->tiny ? TINY_SHARED : 0;
        hands->epoch = group->lease->epoch;
        hands->memory_max = worker->pool->trouble.config.job_memory_max;
    }
    while (group->next < group->count &&
           !atomic_load_explicit(&worker->leave, memory_order_relaxed)) {
        uint32_t index = group->next++;
        uint64_t entry = group->entries[index];
        if (index + PREFETCH_AHEAD < group->count)
            errand__prefetch_own(
                &block->records[(uint32_t)group->entries[index + PREFETCH_AHEAD]]);
        group->begin = hands->cycles;
        atomic_store_explicit(&worker->since, hands->cycles, memory_order_relaxed);
        /* Pairs: worker-progress */
        atomic_store_explicit(&worker->progress, group->serial << 8 | index,
                              memory_order_release);
        if (errand__hands_execute(hands, block, &block->records[(uint32_t)entry],
                                  (uint32_t)(entry >> 32), cell))
            errand__worker_account(worker);
        if (hands->cycles - group->start > worker->pool->group_cycles)
            break;
    }
    if (hands->lazy > 0)
        errand__hands_read(hands);
    atomic_store_explicit(&worker->since, 0, memory_order_relaxed);
    errand__group_account(worker);
}

/* What a taken group asks for besides itself: a sleeper that helps or watches, or a thread that
 * stands by. */
static errand__worker *
plan_locked(errand__pool *pool, const errand__worker *worker, bool *out_spawn)
{
    const errand__group *group = &worker->group;
    uint32_t living = atomic_load_explicit(&pool->living, memory_order_relaxed);

    if (atomic_load_explicit(&pool->seekers, memory_order_relaxed) > 0)
        return NULL;
    if (pool->sleeper_count == 0) {
        *out_spawn =
            living < pool->config.workers_max && errand__clock_coarse() >= pool->retry_ns;
        return NULL;
    }
    if (group->quick) {
        if (pool->watcher == NULL && group->count > 1) {
            pool->watch_wanted = true;
            return errand__worker_rouse_locked(pool);
        }
        if (errand__pool_behind_locked(pool, group->queue,
                                       errand__queue_count(group->queue)))
            return errand__worker_rouse_locked(pool);
        return NULL;
    }
    return errand__pool_has_work_locked(pool) ? errand__worker_rouse_locked(pool) : NULL;
}

/* The runtime of the last group dozes and its wake was put off. */
static void
ring(errand__worker *worker, const errand_lease *lease)
{
    if (worker->hands.putter.owes)
        errand__hands_ring(&worker->hands, lease->block);
}

void
errand__worker_let_held(errand__worker *worker)
{
    errand_lease *lease = worker->group.lease;

    ring(worker, lease);
    worker->group.lease = NULL;
    worker->group.queue = NULL;
    if (lease != NULL)
        errand__lease_let(lease);
}

/* After a group was taken. */
static void
carry_out(errand__worker *worker, errand__worker *roused, bool spawn)
{
    errand_lease *outgoing = worker->outgoing;

    if (outgoing != NULL || !worker->group.quick)
        ring(worker, outgoing != NULL ? outgoing : worker->group.lease);
    worker->proven = true;
    worker->outgoing = NULL;
    errand__worker_wake(roused);
    if (spawn)
        errand__pool_spawn(worker->pool, false);
    if (outgoing != NULL)
        errand__lease_let(outgoing);
}

/* Ends the last group and takes the next, however long that takes.  False: leave. */
static bool
next_group(errand__worker *worker)
{
    errand__pool *pool = worker->pool;
    errand__worker *roused = NULL;
    bool spawn = false, may_seek, lull, lively;

    errand__worker_gather(worker);
    errand__lock_acquire(&pool->lock);
    may_seek = lively = worker->group.active;
    if (worker->group.active)
        errand__group_end_locked(pool, worker);
    errand__worker_unseek_locked(pool, worker);
    while (!worker->lost && !pool->closing) {
        may_seek = may_seek && errand__worker_may_seek_locked(pool, worker);
        lull = lively && errand__pool_lull_locked(pool);
        if (!lull && errand__group_take_locked(pool, worker, !may_seek)) {
            roused = plan_locked(pool, worker, &spawn);
            errand__lock_release(&pool->lock);
            carry_out(worker, roused, spawn);
            return true;
        }
        if (!lull && may_seek && worker->hands.putter.owes) {
            errand__lock_release(&pool->lock);
            ring(worker, worker->group.lease);
            errand__lock_acquire(&pool->lock);
        } else if (!lull && may_seek) {
            errand__worker_seek_locked(pool, worker);
            may_seek = false;
        } else if (worker->group.lease != NULL) {
            errand__lock_release(&pool->lock);
            errand__worker_let_held(worker);
            errand__lock_acquire(&pool->lock);
            may_seek = false;
        } else {
            if (!errand__worker_sleep_locked(pool, worker))
                break;
            errand__worker_unseek_locked(pool, worker);
            lively = false;
        }
    }
    errand__lock_release(&pool->lock);
    return false;
}

static void
run(errand__worker *worker)
{
    do {
        if (worker->group.lease != NULL)
            run_group(worker);
    } while (next_group(worker));
}

void *
errand__worker_main(void *arg)
{
    errand__worker *worker = arg;

    errand__worker_enter(worker);
    if (worker->hands.fault != NULL && sigsetjmp(worker->fault->jump, 0) != 0) {
        errand__worker_torn(worker); /* by a fault: nothing of a body is run here again */
        return NULL;
    }
    if (ERRAND__CATCH(&worker->hands.frame)) {
        errand__trouble_panic(worker);
        errand__hands_panicked(&worker->hands, worker->hands.frame.message);
        errand__worker_account(worker);
    }
    run(worker);
    errand__frame_leave(&worker->hands.frame);
    errand__worker_let_held(worker);
    errand__worker_leave(worker);
    return NULL;
}
