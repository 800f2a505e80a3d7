/* SPDX-License-Identifier: MIT */
/* Design notes: what is attached, detached and freed.
 *
 * - A lease's end ends what its jobs still have out: each is looked at once more, then settled, and
 *   its worker killed, so that nothing of the lease runs afterwards.
 * - The last reference may be given up by one of the pool's own threads, when it settles the last
 *   job of a lease that is gone; then nobody waits for the monitor, which frees the pool itself.  So a
 *   lease's end waits until they have let go of it, for a second at most: whoever gives up the last
 *   lease and the executor then finds no worker left (S15). */
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#define SECOND UINT64_C(1000000000)

/* ---- leases ----------------------------------------------------------------------------------------- */

static uint32_t
sandbox_cells(errand_executor *executor)
{
    (void)executor;
    return ERRAND__CELL_WATCHER;
}

static errand_status
sandbox_attach(errand_executor *executor, errand_lease *lease)
{
    errand__sandbox *pool = errand__sandbox_of(executor);
    errand__sandbox_place *place = errand__mem_map(sizeof *place);

    if (place == NULL)
        return ERRAND_ENOMEM;
    place->pool = pool;
    place->lease = lease;
    place->mapped = lease->block->record_count * sizeof *place->jobs;
    place->jobs = errand__mem_map(place->mapped);
    for (int rank = 0; rank < ERRAND__SANDBOX_RANKS; rank++)
        errand__list_init(&place->queues[rank]);
    errand__hands_init(&place->hands);
    if (place->jobs == NULL || !errand__ages_init(&place->ages, lease)) {
        errand__place_fini(place);
        return ERRAND_ENOMEM;
    }
    place->hands.owners = true;
    place->hands.epoch = lease->epoch;
    place->hand = (errand__sandbox_hand){&place->hands, place, ERRAND__CELL_OWNER};
    lease->impl = place;
    errand__lock_acquire(&pool->lock);
    errand__list_append(&pool->places, &place->attached);
    errand__lock_release(&pool->lock);
    errand__outcome_enter(place);
    return ERRAND_OK;
}

static errand_status
sandbox_reserve(errand_lease *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_OK;
}

/* Ends a job that is out.  False: somebody else has it in hand. */
static bool
end_job(errand__sandbox_slot *slot, errand__sandbox_place *place)
{
    errand__slot_intent intent = ERRAND__INTENT_CLOSE;

    if (!errand__slot_take(slot))
        return false;
    if (slot->lease != place->lease) {
        errand__slot_put_back(slot, &place->hand);
        return true;
    }
    if (errand__slot_look_once(slot, &place->hand))
        intent = slot->intent;
    else
        errand__slot_fail(slot, &place->hand, intent, NULL);
    errand__slot_release(slot, intent);
    return true;
}

static void
sandbox_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__sandbox_place *place = lease->impl;
    errand__sandbox *pool = place->pool;
    uint64_t least = errand__clock_now() + SECOND;

    if (deadline_ns < least)
        deadline_ns = least; /* what is in a hand is there for a moment only */
    errand__place_empty(place);
    for (uint32_t i = 0; i < pool->slot_count; i++)
        while (
            (atomic_load_explicit(&place->busy[i / 64], memory_order_acquire) >> i % 64 &
             1) != 0 && /* Pairs: place-busy */
            !end_job(&pool->slots[i], place) &&
            errand__clock_now() < deadline_ns)
            sched_yield();
    errand__lock_acquire(&pool->lock);
    errand__list_unlink(&place->attached);
    place->gone = true;
    errand__lock_release(&pool->lock);
    errand__outcome_leave(place);
    if (atomic_load_explicit(&pool->waiting, memory_order_seq_cst) != 0)
        errand__sandbox_monitor_kick(pool); /* others' jobs, for the workers of these */
    /* A thread of the pool that has just ended a job lets go of the lease a moment later.  If it were
     * the last, nobody would wait for the workers' ends. */
    while (!errand__lease_is_alone(lease) && errand__clock_now() < deadline_ns)
        sched_yield();
}

static void
sandbox_forget(errand_lease *lease)
{
    errand__sandbox_place *place = lease->impl;

    if (!place->gone)
        sandbox_detach(lease, 0);
    errand__place_fini(place);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

void
errand__sandbox_free(errand__sandbox *pool)
{
    for (uint32_t i = 0; pool->slots != NULL && i < pool->slot_count; i++)
        errand__mem_free(NULL, pool->slots[i].gathered.bytes,
                         pool->slots[i].gathered.room);
    if (pool->addresses != NULL)
        munmap(pool->addresses,
               pool->slot_count * (pool->request_room + pool->response_room));
    if (pool->slots != NULL)
        errand__mem_unmap(pool->slots, pool->slot_count * sizeof *pool->slots);
    for (uint32_t i = 0; i < pool->path_count; i++)
        close(pool->path_fds[i]);
    if (pool->kick_fd >= 0)
        close(pool->kick_fd);
    if (pool->poll_fd >= 0)
        close(pool->poll_fd);
    if (pool->launcher.destroy != NULL)
        pool->launcher.destroy(pool->launcher.arg);
    errand__hands_fini(&pool->monitor_hands);
    errand__hands_fini(&pool->watcher_hands);
    errand__entries_fini(pool);
    errand__policy_destroy(&pool->policy);
    errand__region_let(pool->region);
    errand__groups_fini(&pool->groups);
    errand__mem_free(NULL, pool->crashes, pool->crash_limit * sizeof *pool->crashes);
    errand__sandbox_keep_end(pool);
    errand__mem_unmap(pool, sizeof *pool);
}

static void
sandbox_destroy(errand_executor *executor)
{
    errand__sandbox *pool = errand__sandbox_of(executor);
    bool here = errand__sandbox_monitor_is_here(pool);

    pool->orphan = here;
    atomic_store_explicit(&pool->closing, true,
                          memory_order_release); /* Pairs: sandbox-closing */
    errand__sandbox_monitor_kick(pool);
    if (here)
        return;
    pthread_join(pool->monitor, NULL);
    errand__sandbox_free(pool);
}

const errand__executor_ops errand__sandbox_ops = {
    .name = "sandbox",
    .ready_each = true,
    .cells = sandbox_cells,
    .attach = sandbox_attach,
    .ready = errand__sandbox_ready,
    .reserve = sandbox_reserve,
    .submit = errand__sandbox_submit,
    .stale = errand__sandbox_stale,
    .write_off = errand__sandbox_write_off,
    .nudge = errand__sandbox_nudge,
    .detach = sandbox_detach,
    .snapshot = errand__sandbox_snapshot,
    .destroy = sandbox_destroy,
    .forget = sandbox_forget,
    .collect = errand__sandbox_collect,
    .watch = errand__sandbox_watch,
};
