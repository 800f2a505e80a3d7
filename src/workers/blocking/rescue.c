/* SPDX-License-Identifier: MIT */
/* rescue: a due job that no worker takes is run by who waits for it.
 *
 * Design notes.  In the seeded orders the runtime waits for the operation that is due.  All workers
 * may be busy with bodies whose dues are later, and some of those may end only when the program has
 * heard of the one that is due: then nobody would ever run it.  The claim decides as it does between
 * workers, so whoever is first runs it; its entry in the queue goes stale as a cancelled one's does.
 * The accounts are the owner's cell.  What such a body gives up is told to the block: no worker's
 * figures are there for it. */
#include "workers/blocking/blocking.h"

/* Only then: a worker that is free but was not scheduled yet will take it, and can be waited for with
 * a watchdog, which a body on this thread cannot. */
static bool
nobody_is_free(errand_lease *lease, uint8_t lane)
{
    errand__pool *pool = errand__place_of(lease)->pool;
    bool none;

    errand__lock_acquire(&pool->lock);
    none = pool->busy >= pool->config.workers_max ||
           pool->lanes[lane].running >= pool->lanes[lane].limit;
    errand__lock_release(&pool->lock);
    return none;
}

bool
errand__pool_rescue(errand_lease *lease, errand__record *record)
{
    uint32_t generation = (uint32_t)record->generation;
    uint8_t lane = record->lane, priority = record->priority;
    errand__hands hands;
    volatile bool ran = true;

    if (errand__control_state(atomic_load_explicit(
            &record->control, memory_order_relaxed)) != ERRAND__QUEUED ||
        !nobody_is_free(lease, lane))
        return false;
    errand__hands_init(&hands);
    hands.epoch = lease->epoch;
    if (ERRAND__CATCH(&hands.frame))
        errand__hands_panicked(&hands, hands.frame.message);
    else
        ran = errand__hands_execute(&hands, lease->block, record, generation,
                                    &lease->cells[0]);
    errand__frame_leave(&hands.frame);
    errand__hands_ring(&hands, lease->block);
    errand__hands_tell(&hands, lease->block);
    errand__hands_fini(&hands);
    if (ran)
        errand__pool_stale(lease, lane, priority);
    return ran;
}
