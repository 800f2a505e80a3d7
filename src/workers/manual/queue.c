/* SPDX-License-Identifier: MIT */
/* Design notes: whose turn it is.
 *
 * The same shares as the blocking pool: leases in turn; within a lease lanes in turn; within a
 * lane high before normal before low, but for every 16th start, which is the oldest job of a
 * lower priority (O51, O52, O53).  A lane whose limit is used up in this round is passed over;
 * when nothing else is left, the round is over.  Woken jobs of a lease take turns with its
 * queued ones.
 *
 * Entries name a record by slot and generation, so one whose operation was cancelled is
 * recognised by its control word, and passed over where it is met.  When cancelled ones are more
 * than 1024 and more than half of a ring, they are swept out (O22); a full ring is swept too,
 * which always makes room, because owed_max bounds the live ones. */
#include "workers/manual/manual.h"

#define STALE_LEAST 1024
#define STREAK_MAX  15 /* starts before one of a lower priority that waits */

static errand__manual *
executor_of(const errand__manual_lease *lease)
{
    return errand__manual_of(lease->roster.lease->executor);
}

static unsigned
rank_of(uint8_t priority)
{
    return priority == 1 ? 0 : priority == 0 ? 1 : 2;
}

static errand__manual_entry *
entry_at(const errand__manual_ring *ring, uint32_t index)
{
    return &ring->entries[(ring->first + index) & (ring->capacity - 1)];
}

static errand__record *
record_of(const errand__manual_lease *lease, const errand__manual_entry *entry)
{
    return &lease->roster.lease->block->records[(uint32_t)entry->name];
}

static bool
is_live(const errand__manual_lease *lease, const errand__manual_entry *entry)
{
    uint64_t control =
        atomic_load_explicit(&record_of(lease, entry)->control, memory_order_acquire);

    return errand__control_generation(control) == (uint32_t)(entry->name >> 32) &&
           errand__control_state(control) == ERRAND__QUEUED;
}

/* Gives back what an entry holds whose operation has ended. */
static void
drop_entry(errand__manual_entry *entry)
{
    if (entry->waker != NULL && errand__waker_pop(entry->waker))
        errand__waker_end(entry->waker);
    entry->waker = NULL;
}

/* ---- in ------------------------------------------------------------------------------------- */

errand_status
errand__manual_ready(errand_lease *lease, const errand__record *record)
{
    errand__manual_lease *mine = lease->impl;
    errand__manual *executor = executor_of(mine);
    uint8_t lane = errand__lane_of(record);
    errand__manual_queue *queue = mine->queues[lane];
    errand__manual_ring *ring;
    uint32_t capacity = 16;

    if (executor->lanes[lane].limit == 0)
        return errand__misuse(ERRAND_EINVAL, "errand_submit",
                              "the executor has no such lane; define it first");
    if (queue == NULL) {
        queue = errand__mem_alloc(NULL, sizeof *queue);
        if (queue == NULL)
            return ERRAND_ENOMEM;
        errand__lock_acquire(&executor->lock);
        mine->queues[lane] = queue;
        errand__lock_release(&executor->lock);
    }
    ring = &queue->rings[rank_of(record->priority)];
    if (ring->capacity != 0)
        return ERRAND_OK;
    while (capacity < lease->owed_max)
        capacity *= 2;
    ring->mapped = capacity * sizeof *ring->entries;
    ring->entries = errand__mem_map(ring->mapped);
    if (ring->entries == NULL)
        return ERRAND_ENOMEM;
    ring->capacity = capacity;
    return ERRAND_OK;
}

static void
sweep_locked(errand__manual_lease *lease, errand__manual_ring *ring)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ring->count; i++) {
        errand__manual_entry *entry = entry_at(ring, i);

        if (is_live(lease, entry))
            *entry_at(ring, kept++) = *entry;
        else
            drop_entry(entry);
    }
    ring->count = kept;
    ring->stale = 0;
}

void
errand__manual_submit(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__manual_lease *mine = lease->impl;
    errand__manual *executor = executor_of(mine);
    errand__manual_ring *ring =
        &mine->queues[errand__lane_of(record)]->rings[rank_of(record->priority)];
    errand__manual_entry entry = {.name = (uint64_t)generation << 32 | record->slot,
                                  .since = errand__cycles()};

    if (record->resource_class == ERRAND_INTERRUPTIBLE_ASYNC)
        entry.waker =
            errand__roster_enter(&mine->roster, record, generation, errand__cycles());
    errand__ages_submitted(&mine->roster.ages, record, generation, errand__cycles());
    errand__lock_acquire(&executor->lock);
    entry.order = mine->orders++;
    if (ring->count == ring->capacity)
        sweep_locked(mine, ring);
    ERRAND_ASSERT(ring->count < ring->capacity);
    *entry_at(ring, ring->count++) = entry;
    errand__lock_release(&executor->lock);
}

void
errand__manual_stale(errand_lease *lease, uint8_t lane, uint8_t priority)
{
    errand__manual_lease *mine = lease->impl;
    errand__manual *executor = executor_of(mine);
    errand__manual_ring *ring;

    if (lane >= ERRAND_LANES || mine->queues[lane] == NULL)
        return;
    ring = &mine->queues[lane]->rings[rank_of(priority)];
    errand__lock_acquire(&executor->lock);
    if (++ring->stale > STALE_LEAST && ring->stale > ring->count / 2)
        sweep_locked(mine, ring);
    errand__lock_release(&executor->lock);
}

/* ---- out ------------------------------------------------------------------------------------ */

static errand__manual_entry *
front_locked(errand__manual_lease *lease, errand__manual_ring *ring)
{
    while (ring->count > 0) {
        errand__manual_entry *entry = entry_at(ring, 0);

        if (is_live(lease, entry))
            return entry;
        drop_entry(entry);
        ring->first++;
        ring->count--;
        if (ring->stale > 0)
            ring->stale--;
    }
    return NULL;
}

/* Which ring of the queue is next; NULL = all are empty. */
static errand__manual_ring *
choose_locked(errand__manual_lease *lease, errand__manual_queue *queue)
{
    errand__manual_ring *best = NULL, *lower = NULL;
    uint64_t oldest = UINT64_MAX;

    for (unsigned rank = 0; rank < ERRAND__MANUAL_RANKS; rank++) {
        errand__manual_ring *ring = &queue->rings[rank];
        const errand__manual_entry *entry = front_locked(lease, ring);

        if (entry == NULL)
            continue;
        if (best == NULL) {
            best = ring;
        } else if (entry->order < oldest) {
            oldest = entry->order;
            lower = ring;
        }
    }
    if (lower == NULL) {
        queue->streak = 0;
        return best;
    }
    if (queue->streak++ < STREAK_MAX)
        return best;
    queue->streak = 0;
    return lower;
}

static bool
pick_queued_locked(errand__manual *executor, errand__manual_lease *lease, bool any_lane,
                   errand__manual_pick *out_pick)
{
    for (uint8_t i = 0; i < ERRAND_LANES; i++) {
        uint8_t lane = (uint8_t)((lease->next_lane + i) % ERRAND_LANES);
        errand__manual_ring *ring;
        errand__manual_entry *entry;

        if (lease->queues[lane] == NULL ||
            (!any_lane && executor->lanes[lane].used >= executor->lanes[lane].limit))
            continue;
        ring = choose_locked(lease, lease->queues[lane]);
        if (ring == NULL)
            continue;
        entry = entry_at(ring, 0);
        out_pick->record = record_of(lease, entry);
        out_pick->generation = (uint32_t)(entry->name >> 32);
        out_pick->since = entry->since;
        out_pick->waker = entry->waker;
        ring->first++;
        ring->count--;
        if (!any_lane)
            executor->lanes[lane].used++;
        lease->next_lane = (uint8_t)(lane + 1);
        return out_pick->waker == NULL || errand__waker_pop(out_pick->waker);
    }
    return false;
}

static bool
pick_woken_locked(errand__manual_lease *lease, errand__manual_pick *out_pick)
{
    errand_waker *chain = errand__port_take(lease->roster.port);

    while (chain != NULL) {
        errand_waker *newer = chain->next;

        chain->next = NULL;
        if (lease->woken == NULL)
            lease->woken = chain;
        else
            lease->woken_last->next = chain;
        lease->woken_last = chain;
        chain = newer;
    }
    while (lease->woken != NULL) {
        errand_waker *waker = lease->woken;

        lease->woken = waker->next;
        if (errand__waker_pop(waker)) {
            out_pick->waker = waker;
            return true;
        }
    }
    return false;
}

/* The lease had its turn. */
static bool
hold_pick_locked(errand__manual *executor, errand__manual_lease *lease,
                 errand__manual_pick *out_pick)
{
    out_pick->lease = lease->roster.lease;
    errand__lease_hold(out_pick->lease);
    errand__list_unlink(&lease->turn);
    errand__list_append(&executor->leases, &lease->turn);
    return true;
}

static bool
pick_of_locked(errand__manual *executor, errand__manual_lease *lease, bool any_lane,
               errand__manual_pick *out_pick)
{
    bool found = false;

    if (!lease->polled && pick_woken_locked(lease, out_pick))
        found = lease->polled = true;
    else if (pick_queued_locked(executor, lease, any_lane, out_pick))
        found = true, lease->polled = false;
    else if (lease->polled && pick_woken_locked(lease, out_pick))
        found = true;
    return found && hold_pick_locked(executor, lease, out_pick);
}

static void
new_round_locked(errand__manual *executor)
{
    executor->in_round = 0;
    for (unsigned lane = 0; lane < ERRAND_LANES; lane++)
        executor->lanes[lane].used = 0;
}

static bool
pick_any_locked(errand__manual *executor, errand__manual_pick *out_pick)
{
    if (executor->in_round >= executor->workers)
        new_round_locked(executor);
    for (;;) {
        for (errand__link *link = executor->leases.next; link != &executor->leases;
             link = link->next) {
            errand__manual_lease *lease =
                ERRAND__CONTAINER(link, errand__manual_lease, turn);

            if (lease->roster.lease->is_virtual ||
                !pick_of_locked(executor, lease, false, out_pick))
                continue;
            executor->in_round++;
            return true;
        }
        if (executor->in_round == 0)
            return false;
        new_round_locked(executor);
    }
}

bool
errand__manual_pick_next(errand__manual *executor, errand__manual_lease *only,
                         bool woken_only, errand__manual_pick *out_pick)
{
    bool found = false;

    *out_pick = (errand__manual_pick){.lease = NULL};
    errand__lock_acquire(&executor->lock);
    if (only == NULL)
        found = pick_any_locked(executor, out_pick);
    else if (!woken_only)
        found = pick_of_locked(executor, only, true, out_pick);
    else if (pick_woken_locked(only, out_pick))
        found = hold_pick_locked(executor, only, out_pick);
    errand__lock_release(&executor->lock);
    return found;
}

void
errand__manual_forget_queues(errand__manual *executor, errand__manual_lease *lease)
{
    errand_waker *woken;

    errand__lock_acquire(&executor->lock);
    errand__list_unlink(&lease->turn);
    woken = lease->woken;
    lease->woken = NULL;
    errand__lock_release(&executor->lock);
    for (int i = 0; i < 2; i++) {
        while (woken != NULL) { /* ended, or being polled: that poll is the last */
            errand_waker *waker = woken;

            woken = waker->next;
            if (errand__waker_pop(waker))
                errand_waker_abandon(&waker);
        }
        woken = errand__port_close(lease->roster.port);
    }
    for (unsigned lane = 0; lane < ERRAND_LANES; lane++) {
        errand__manual_queue *queue = lease->queues[lane];

        lease->queues[lane] = NULL;
        for (unsigned rank = 0; queue != NULL && rank < ERRAND__MANUAL_RANKS; rank++) {
            errand__manual_ring *ring = &queue->rings[rank];

            for (uint32_t i = 0; i < ring->count; i++)
                drop_entry(entry_at(ring, i));
            if (ring->entries != NULL)
                errand__mem_unmap(ring->entries, ring->mapped);
        }
        errand__mem_free(NULL, queue, sizeof *queue);
    }
}
