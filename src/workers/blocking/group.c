/* SPDX-License-Identifier: MIT */
/* group: which jobs a worker takes next.
 *
 * Design notes.
 * - Leases take turns: a worker takes one group of the first place in the list and moves that
 *   place to the back (O51).  Within a place its lanes take turns, within a queue the
 *   priorities go first to last, but every 16th start is the oldest of a lower one (O52).
 * - A queue whose lane is full leaves the list for the lane's own, so it is in nobody's way
 *   (O53).  Whoever leaves the lane opens the first that waits there, and its own queue goes
 *   to the back, so that queues of a lane take turns as well.
 * - A group is a reservation: its entries stay queued in their control words.  What its worker
 *   has not begun can be put back at the front by anybody with the lock; the worker may still
 *   try its copies, the claim decides.
 * - Groups of more than one only where jobs were measured to be short, and never of
 *   quarantined ones. */
#include "workers/blocking/blocking.h"

#define AGING       16
#define BATCH       8
#define STALE_STEPS 64 /* stale entries that one take passes with the lock */

static bool place_take_locked(errand__pool *pool, errand__worker *worker,
                              errand__place *place, bool last_look);
static bool queue_take_locked(errand__pool *pool, errand__worker *worker,
                              errand__queue *queue);

/* ---- states of queues ----------------------------------------------------------------------- */

static void
mask_set(errand__pool *pool, errand__queue *queue)
{
    errand__place *place = queue->place;

    place->mask |= UINT32_C(1) << queue->lane;
    if (errand__list_linked(&place->link))
        return;
    errand__list_append(&pool->active, &place->link);
    pool->active_count++;
}

static void
mask_clear(errand__pool *pool, errand__queue *queue)
{
    errand__place *place = queue->place;

    place->mask &= ~(UINT32_C(1) << queue->lane);
    if (place->mask != 0 || !errand__list_linked(&place->link))
        return;
    errand__list_unlink(&place->link);
    pool->active_count--;
}

static void
move(errand__pool *pool, errand__queue *queue, errand__queue_state state)
{
    if (queue->state == ERRAND__QUEUE_OPEN)
        mask_clear(pool, queue);
    else if (queue->state == ERRAND__QUEUE_WAITING)
        errand__list_unlink(&queue->waiting);
    queue->state = (uint8_t)state;
    if (state == ERRAND__QUEUE_OPEN)
        mask_set(pool, queue);
    else if (state == ERRAND__QUEUE_WAITING)
        errand__list_append(&pool->lanes[queue->lane].waiting, &queue->waiting);
    /* Pairs: ring-tail */
    atomic_store_explicit(&queue->open, state != ERRAND__QUEUE_CLOSED,
                          memory_order_seq_cst);
}

/* If a lane has room, the first queue that waits for it is tried again. */
static void
refill(errand__pool *pool, errand__lane *lane)
{
    if (lane->running < lane->limit && !errand__list_empty(&lane->waiting))
        move(pool, ERRAND__CONTAINER(lane->waiting.next, errand__queue, waiting),
             ERRAND__QUEUE_OPEN);
}

void
errand__queue_open_locked(errand__pool *pool, errand__queue *queue)
{
    if (queue->state != ERRAND__QUEUE_CLOSED)
        return;
    move(pool, queue, ERRAND__QUEUE_OPEN);
    atomic_fetch_add_explicit(&pool->news, 1,
                              memory_order_release); /* Pairs: pool-news */
}

/* Closes a queue that was seen empty; false: something came meanwhile, it stays open. */
static bool
queue_close(errand__pool *pool, errand__queue *queue)
{
    move(pool, queue, ERRAND__QUEUE_CLOSED);
    for (int rank = 0; rank < ERRAND__RANKS; rank++) {
        errand__ring *ring = &queue->rings[rank];
        /* Pairs: ring-tail */
        if (atomic_load_explicit(&ring->tail, memory_order_seq_cst) !=
            atomic_load_explicit(&ring->head, memory_order_relaxed)) {
            move(pool, queue, ERRAND__QUEUE_OPEN);
            return false;
        }
    }
    refill(pool, &pool->lanes[queue->lane]);
    return true;
}

void
errand__place_close_locked(errand__pool *pool, errand__place *place)
{
    place->gone = true;
    for (uint32_t i = 0; i < pool->worker_room; i++) {
        errand__worker *worker = pool->workers[i];
        if (worker != NULL && worker->group.active && worker->group.queue->place == place)
            worker->group.stolen = true; /* it puts nothing back */
    }
    for (int lane = 0; lane < ERRAND_LANES; lane++) {
        if (place->queues[lane] == NULL)
            continue;
        move(pool, place->queues[lane], ERRAND__QUEUE_GONE);
        refill(pool, &pool->lanes[lane]);
    }
}

bool
errand__pool_has_work_locked(const errand__pool *pool)
{
    const errand__link *link;

    for (link = pool->active.next; link != &pool->active; link = link->next) {
        const errand__place *place = ERRAND__CONTAINER(link, errand__place, link);
        for (uint32_t mask = place->mask; mask != 0; mask &= mask - 1) {
            int lane = __builtin_ctz(mask);
            if (pool->lanes[lane].running < pool->lanes[lane].limit &&
                errand__queue_count(place->queues[lane]) > 0)
                return true;
        }
    }
    return false;
}

/* ---- taking ------------------------------------------------------------------------------------ */

bool
errand__group_take_locked(errand__pool *pool, errand__worker *worker, bool last_look)
{
    for (uint32_t n = pool->active_count; n > 0 && !errand__list_empty(&pool->active);
         n--) {
        errand__place *place = ERRAND__CONTAINER(pool->active.next, errand__place, link);
        bool taken = place_take_locked(pool, worker, place, last_look);

        if (errand__list_linked(&place->link)) {
            errand__list_unlink(&place->link);
            errand__list_append(&pool->active, &place->link);
        }
        if (taken)
            return true;
    }
    return false;
}

static bool
place_take_locked(errand__pool *pool, errand__worker *worker, errand__place *place,
                  bool last_look)
{
    uint32_t untried = place->mask;

    while (untried != 0) {
        uint32_t ahead = untried & ~((UINT32_C(1) << place->next_lane) - 1);
        int index = __builtin_ctz(ahead != 0 ? ahead : untried);
        errand__queue *queue = place->queues[index];
        errand__lane *lane = &pool->lanes[index];

        untried &= ~(UINT32_C(1) << index);
        place->next_lane = (uint8_t)(index + 1);
        if (lane->running >= lane->limit) {
            move(pool, queue, ERRAND__QUEUE_WAITING);
            continue;
        }
        do {
            if (queue_take_locked(pool, worker, queue))
                return true;
        } while ((last_look || queue != worker->group.queue) &&
                 !queue_close(pool, queue));
    }
    return false;
}

/* What queue_take chose: a ring, how many at most, and why. */
typedef struct choice {
    errand__ring *ring; /* NULL = all are empty */
    uint32_t limit;
    bool contended, aged; /* lower ones have work too; it is the turn of one of them */
} choice;

static choice
choose_ring(errand__queue *queue)
{
    errand__ring *first = NULL, *lower = NULL;
    uint64_t oldest = UINT64_MAX;
    bool aged = queue->streak >= AGING - 1;

    for (int rank = 0; rank < ERRAND__RANKS; rank++) {
        errand__ring *ring = &queue->rings[rank];
        if (errand__ring_count(ring) == 0)
            continue;
        if (first == NULL) {
            first = ring;
            continue;
        }
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
        uint64_t stamp = atomic_load_explicit(
            &ring->stamps[errand__ring_at(ring, head) >> ERRAND__STAMP_SHIFT],
            memory_order_relaxed);
        if (lower == NULL || stamp < oldest) {
            lower = ring;
            oldest = stamp;
        }
    }
    if (lower == NULL)
        return (choice){first, ERRAND__GROUP_MAX, false, false};
    if (aged)
        return (choice){lower, 1, true, true};
    return (choice){first, (uint32_t)(AGING - 1 - queue->streak), true, false};
}

static uint32_t
group_size(const errand__pool *pool, const errand__queue *queue, uint64_t available)
{
    uint32_t cost = atomic_load_explicit(&queue->cost, memory_order_relaxed);

    if (cost > pool->quick_cycles || queue->lane == ERRAND_LANE_QUARANTINED)
        return 1;
    uint64_t size = pool->group_cycles / (cost > 0 ? cost : 1);
    /* Jobs of some microseconds are shared with who else is looking. */
    uint64_t sharers =
        1 + pool->grouped + atomic_load_explicit(&pool->seekers, memory_order_relaxed);
    uint64_t share = (available + sharers - 1) / sharers;
    if (size > share && share * cost > pool->group_cycles / 4)
        size = share;
    if (size > available)
        size = available;
    if (size > ERRAND__GROUP_MAX)
        size = ERRAND__GROUP_MAX;
    return size > 0 ? (uint32_t)size : 1;
}

static bool
queue_take_locked(errand__pool *pool, errand__worker *worker, errand__queue *queue)
{
    errand__group *group = &worker->group;
    errand_lease *lease = queue->place->lease;
    choice chosen;
    uint32_t size;

    for (;;) {
        chosen = choose_ring(queue);
        if (chosen.ring == NULL)
            return false;
        size = group_size(pool, queue, errand__ring_count(chosen.ring));
        if (size > chosen.limit)
            size = chosen.limit;
        if (size > 1)
            break;
        /* Where one is taken a stale one would waste a turn. */
        (void)errand__ring_pass_locked(lease, chosen.ring, STALE_STEPS);
        if (errand__ring_count(chosen.ring) > 0)
            break;
    }
    queue->streak =
        chosen.contended && !chosen.aged ? (uint8_t)(queue->streak + size) : 0;
    errand__ring_take_locked(chosen.ring, group, size);
    errand__prefetch_own(&lease->block->records[(uint32_t)group->entries[0]]);
    if (group->lease != lease) {
        errand__lease_hold(lease);
        worker->outgoing = group->lease;
        group->lease = lease;
    }
    group->queue = queue;
    group->active = true;
    group->stolen = false;
    group->quick = atomic_load_explicit(&queue->quick, memory_order_relaxed);
    group->tiny = size > 1 && atomic_load_explicit(&queue->cost, memory_order_relaxed) <=
                                  pool->per_us;
    group->next = group->started = 0;
    group->serial = ++pool->serial;
    /* Pairs: worker-progress */
    atomic_store_explicit(&worker->progress, group->serial << 8, memory_order_release);
    pool->lanes[queue->lane].running++;
    pool->busy++;
    pool->grouped += group->quick;
    pool->takes++;
    if (pool->processors == 1 && size >= BATCH)
        pool->watch_wanted = true; /* a timer costs as much as a switch: not for less */
    return true;
}

/* ---- after the jobs ----------------------------------------------------------------------------- */

static void
update_cost(const errand__pool *pool, errand__queue *queue, uint64_t cycles,
            uint32_t started)
{
    int64_t old = atomic_load_explicit(&queue->cost, memory_order_relaxed);
    int64_t mean = (int64_t)(cycles / started);
    int64_t cost = old;

    if (mean >= (int64_t)ERRAND__COST_UNKNOWN)
        mean = (int64_t)ERRAND__COST_UNKNOWN - 1;
    if (old == (int64_t)ERRAND__COST_UNKNOWN)
        cost = mean;
    else if (mean - old > old / 16 || old - mean > old / 16)
        cost = old + (mean - old) / 4;
    if (cost != old)
        atomic_store_explicit(&queue->cost, (uint32_t)cost, memory_order_relaxed);
    bool quick = cost <= (int64_t)pool->quick_cycles;
    if (atomic_load_explicit(&queue->quick, memory_order_relaxed) != quick)
        atomic_store_explicit(&queue->quick, quick, memory_order_relaxed);
}

void
errand__group_leave_locked(errand__pool *pool, errand__worker *worker)
{
    errand__group *group = &worker->group;
    errand__queue *queue = group->queue;
    errand__lane *lane = &pool->lanes[queue->lane];

    group->active = false;
    pool->grouped -= group->quick;
    pool->busy--;
    if (pool->busy == 0)
        pool->last_busy = errand__pool_clock_locked(pool);
    lane->running--;
    if (!errand__list_empty(&lane->waiting) && queue->state == ERRAND__QUEUE_OPEN &&
        errand__queue_count(queue) > 0)
        move(pool, queue, ERRAND__QUEUE_WAITING);
    refill(pool, lane);
}

void
errand__group_end_locked(errand__pool *pool, errand__worker *worker)
{
    errand__group *group = &worker->group;
    errand__queue *queue = group->queue;

    if (!group->stolen) {
        uint32_t rest = group->count - group->next;
        errand__ring_return_locked(group->ring, &group->entries[group->next], rest);
        errand__ring_release_locked(group->ring, group->count);
        if (rest > 0)
            errand__queue_open_locked(pool, queue);
    }
    if (group->started > 0)
        update_cost(pool, queue, worker->hands.cycles - group->start, group->started);
    errand__group_leave_locked(pool, worker);
}

bool
errand__group_steal_locked(errand__pool *pool, errand__worker *victim)
{
    errand__group *group = &victim->group;
    /* Pairs: worker-progress */
    uint64_t progress = atomic_load_explicit(&victim->progress, memory_order_acquire);
    uint32_t begun = (uint32_t)(progress & 0xff) + 1;

    if (!group->active || group->stolen)
        return false;
    group->stolen = true;
    errand__ring_return_locked(group->ring, &group->entries[begun], group->count - begun);
    errand__ring_release_locked(group->ring, group->count);
    if (begun == group->count)
        return false;
    errand__queue_open_locked(pool, group->queue);
    return true;
}
