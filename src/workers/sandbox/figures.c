/* SPDX-License-Identifier: MIT */
/* Design notes: what is told of a pool.  The slots' phases are read without the lock, so the counts of one
 * snapshot may be of neighbouring moments. */
#include "workers/sandbox/sandbox.h"

void
errand__sandbox_count(const errand__sandbox *pool, errand_sandbox_snapshot *out)
{
    for (uint32_t i = 0; i < pool->slot_count; i++)
        switch (errand__slot_phase_of(&pool->slots[i])) {
        case ERRAND__SLOT_STARTING:
            out->starting++;
            break;
        case ERRAND__SLOT_IDLE:
            out->ready++;
            break;
        case ERRAND__SLOT_BUSY:
        case ERRAND__SLOT_HELD:
            out->busy++;
            break;
        case ERRAND__SLOT_DYING:
            out->dying++;
            break;
        case ERRAND__SLOT_RESERVE:
            out->reserve++;
            break;
        default:
            break;
        }
}

errand_status
errand_sandbox_snapshot_read(errand_executor *executor,
                             errand_sandbox_snapshot *out_snapshot)
{
    errand__sandbox *pool;

    ERRAND_REQUIRE_ARG(executor != NULL && out_snapshot != NULL, ERRAND_EINVAL,
                       "an executor and a place for its snapshot are needed");
    ERRAND_REQUIRE_ARG(out_snapshot->struct_size == sizeof *out_snapshot, ERRAND_EINVAL,
                       "struct_size must be sizeof(errand_sandbox_snapshot)");
    ERRAND_REQUIRE_ARG(executor->ops == &errand__sandbox_ops, ERRAND_EINVAL,
                       "the executor is no sandbox");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor belongs to the parent process");
    if (errand__virtual_inside())
        return errand__virtual_refuse(__func__);
    pool = errand__sandbox_of(executor);
    errand__lock_acquire(&pool->lock);
    *out_snapshot = pool->counts;
    errand__lock_release(&pool->lock);
    out_snapshot->struct_size = sizeof *out_snapshot;
    errand__sandbox_count(pool, out_snapshot);
    return ERRAND_OK;
}

void
errand__sandbox_snapshot(errand_executor *executor, const errand_lease *only,
                         errand_executor_snapshot *out_snapshot)
{
    errand__sandbox *pool = errand__sandbox_of(executor);
    errand_sandbox_snapshot now = {.struct_size = 0};
    errand_snapshot sums = {.accepted = 0};

    errand__sandbox_count(pool, &now);
    errand__lock_acquire(&pool->lock);
    for (errand__link *link = pool->places.next; link != &pool->places;
         link = link->next) {
        const errand__sandbox_place *place =
            ERRAND__CONTAINER(link, errand__sandbox_place, attached);

        if (only != NULL && place->lease != only)
            continue;
        errand__lease_account(place->lease, &sums);
        errand__ages_read(&place->ages, place->lease->block, out_snapshot);
    }
    out_snapshot->threads_started = pool->counts.started;
    out_snapshot->threads_retired = pool->counts.recycled;
    out_snapshot->threads_replaced = pool->counts.crashed + pool->counts.killed;
    errand__lock_release(&pool->lock);
    out_snapshot->queued = sums.queued;
    out_snapshot->running = sums.running;
    out_snapshot->workers = now.ready + now.busy + now.starting;
    out_snapshot->idle = now.ready;
    out_snapshot->written_off = now.dying;
}
