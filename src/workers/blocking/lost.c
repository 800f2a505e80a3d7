/* SPDX-License-Identifier: MIT */
/* lost: what happens when no worker lives and none can be made.
 *
 * Design notes.
 * - If no thread can be made (O55): each submit tries, and answers ENOTHREAD.  What is queued
 *   already is looked after by the last thread, which does not end before somebody lives: it
 *   tries every 100 ms and after 1 s settles what is queued as worker lost.  A worker that was
 *   written off cannot do that, its body has it; then each runtime does it for its own lease
 *   (tend), before it parks. */
#include "workers/blocking/blocking.h"

#define GIVE_UP_NS UINT64_C(1000000000)
#define LOST_BATCH 64

/* Takes entries that nobody will run off the rings of a lease.  Answers how many. */
static uint32_t
take_lost_locked(errand__place *place, uint64_t *entries)
{
    uint32_t count = 0;

    for (int lane = 0; lane < ERRAND_LANES; lane++) {
        for (int rank = 0; place->queues[lane] != NULL && rank < ERRAND__RANKS; rank++) {
            errand__ring *ring = &place->queues[lane]->rings[rank];
            uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
            while (count < LOST_BATCH && errand__ring_count(ring) > 0) {
                entries[count++] = ring->entries[errand__ring_at(ring, head)];
                atomic_store_explicit(&ring->head, ++head, memory_order_release);
            }
            errand__ring_release_locked(ring, 0);
        }
    }
    return count;
}

static void
settle_lost(errand_lease *lease, const uint64_t *entries, uint32_t count,
            errand__cell *cell)
{
    for (uint32_t i = 0; i < count; i++)
        errand__settle_queued(lease->block, &lease->block->records[(uint32_t)entries[i]],
                              (uint32_t)(entries[i] >> 32), ERRAND_FAILED,
                              ERRAND_CODE_WORKER_LOST, cell, NULL);
}

/* One lease that has something queued, held; NULL = none. */
static errand_lease *
find_lost(errand__pool *pool, uint64_t *entries, uint32_t *out_count)
{
    errand_lease *lease = NULL;

    errand__lock_acquire(&pool->lock);
    *out_count = 0;
    for (errand__link *link = pool->places.next; link != &pool->places && *out_count == 0;
         link = link->next) {
        errand__place *place = ERRAND__CONTAINER(link, errand__place, attached);
        *out_count = take_lost_locked(place, entries);
        lease = place->lease;
    }
    if (*out_count > 0)
        errand__lease_hold(lease);
    errand__lock_release(&pool->lock);
    return *out_count > 0 ? lease : NULL;
}

/* Does nobody live, and since when? */
static bool
is_lost(errand__pool *pool, bool *out_given_up)
{
    errand__lock_acquire(&pool->lock);
    bool lost =
        atomic_load_explicit(&pool->living, memory_order_relaxed) == 0 && !pool->closing;
    *out_given_up = lost && errand__clock_now() - pool->lost_since >= GIVE_UP_NS;
    errand__lock_release(&pool->lock);
    return lost;
}

/* The last thread's end is put off until somebody lives. */
void
errand__pool_stand_in(errand__pool *pool, atomic_uint *bell, uint32_t cell)
{
    uint64_t entries[LOST_BATCH];
    uint32_t count;
    bool given_up;

    while (is_lost(pool, &given_up)) {
        errand_lease *lease;
        while (given_up && (lease = find_lost(pool, entries, &count)) != NULL) {
            settle_lost(lease, entries, count, &lease->cells[cell]);
            errand__lease_let(lease);
        }
        errand__futex_wait(bell, 0, ERRAND__RETRY_NS);
        atomic_store_explicit(bell, 0, memory_order_relaxed);
        if (is_lost(pool, &given_up) && errand__pool_spawn(pool, true))
            return;
    }
}

errand_status
errand__pool_reserve(errand_lease *lease, uint32_t count)
{
    errand__pool *pool = errand__place_of(lease)->pool;

    (void)count; /* rings have room for whatever the lease's bound lets in */
    if (__builtin_expect(atomic_load_explicit(&pool->refusal, memory_order_relaxed) != 0,
                         0)) {
        errand_status status = errand__trouble_refusal(pool);
        if (status !=
            ERRAND_OK) /* a seeded order takes it for what no order can express */
            return lease->is_virtual ? ERRAND_ENOTHREAD : status;
    }
    if (atomic_load_explicit(&pool->living, memory_order_relaxed) > 0 ||
        errand__pool_spawn(pool, true) ||
        atomic_load_explicit(&pool->living, memory_order_relaxed) > 0)
        return ERRAND_OK;
    return ERRAND_ENOTHREAD;
}

uint64_t
errand__pool_tend(errand_lease *lease)
{
    errand__place *place = errand__place_of(lease);
    errand__pool *pool = place->pool;
    uint64_t entries[LOST_BATCH];
    uint32_t count = 0;
    bool given_up;

    if (atomic_load_explicit(&pool->living, memory_order_relaxed) > 0 ||
        !is_lost(pool, &given_up) || errand__pool_spawn(pool, true))
        return UINT64_MAX;
    while (given_up) {
        errand__lock_acquire(&pool->lock);
        count = take_lost_locked(place, entries);
        errand__lock_release(&pool->lock);
        settle_lost(lease, entries, count, &lease->cells[0]);
        given_up = count > 0;
    }
    return ERRAND__RETRY_NS;
}
