/* SPDX-License-Identifier: MIT */
/* ring: what is queued, as numbers of records with their generations.
 *
 * Design notes.
 * - Numbers and not linked records: a cancelled record is free at once and its entry goes
 *   stale; whoever meets it passes it, because its generation or its state does not fit.
 * - The producer publishes each entry at once with one store and takes no lock.  It overwrites
 *   what is freed; head may run ahead of that, by what groups may still put back at the front,
 *   so putting back always finds its place.
 * - A ring has room for the lease's bound and nearly half as much again.  Live entries never exceed
 *   the bound; stale ones are swept out when they pass half of what is queued (O22), so the
 *   ring seldom fills up.  If it does, groups give back what they have not begun and a sweep
 *   leaves live entries alone: then there is room.
 * - A sweep reads a word of each record that is queued, cold by then.  Who cancels many often
 *   does so in the order of their submission: so what went stale at the front is passed first,
 *   256 or more at a time, while their words are warm (a million cancels in order: a third less).
 * - A sweep moves live entries towards the tail, which does not move: the owner sweeps, so
 *   nothing is published meanwhile.
 * - The flush that follows submits steps the tail by nothing and looks at open, a worker that
 *   closes a queue stores open and looks at the tail, all sequentially consistent: one of the
 *   two sides sees the other.  A submit itself looks too, so that nothing waits for its flush
 *   but in the moment in which a queue is being closed.
 * - On one processor each wake is a switch.  There a submit leaves waking to its flush, as long
 *   as a sleeper looks round by its timer anyway.
 * - A stamp stands for 32 entries and is written when it is 4 us old: seldom a store. */
#include "workers/blocking/blocking.h"

#define SWEEP_LEAST 1024
#define SWEEP_AHEAD 16  /* records that are on their way meanwhile */
#define LOOK_EACH   256 /* cancels, when there are many */
#define MANY_WAIT   8   /* more than this: whoever takes them comes back */
#define STAMPED     (1U << ERRAND__STAMP_SHIFT)
#define STAMP_NS    4096 /* how much newer an entry is than the stamp it goes by */

#define ENTRIES_IN_LINE (ERRAND_LINE / sizeof(uint64_t))
#define AHEAD           (4 * ENTRIES_IN_LINE)

static const uint8_t rank_of[] = {1, 0, 2}; /* of priorities: normal, high, low */

static void consider_waking(errand__pool *pool, errand__queue *queue, errand__ring *ring,
                            uint64_t tail);
static bool looked_after(errand__pool *pool);
static ERRAND_COLD void make_room(errand__pool *pool, const errand_lease *lease,
                                  errand__ring *ring);
static void sweep_locked(const errand_lease *lease, errand__ring *ring);

/* ---- owner -------------------------------------------------------------------------------- */

/* The bound and some slack for stale entries. */
static void
ring_shape(errand__ring *ring, uint32_t owed_max)
{
    size_t slack = owed_max / 16 * 7 > SWEEP_LEAST ? owed_max / 16 * 7 : SWEEP_LEAST;
    size_t wanted = owed_max + slack;
    unsigned shift = 10;

    while ((size_t)3 << shift < wanted)
        shift++;
    ring->thirds = (size_t)2 << shift < wanted;
    ring->shift = ring->thirds ? shift : shift + 1;
    ring->capacity = ring->room = (size_t)(ring->thirds ? 3 : 1) << ring->shift;
}

static bool
ring_map(errand__ring *ring, uint32_t owed_max)
{
    size_t capacity, stamps, size;

    ring_shape(ring, owed_max);
    capacity = ring->capacity;
    stamps = capacity >> ERRAND__STAMP_SHIFT;
    size = (capacity + stamps) * sizeof(uint64_t);
    uint64_t *entries = errand__mem_map(size);

    if (entries == NULL)
        return false;
    ring->entries = entries;
    ring->stamps = (_Atomic uint64_t *)(void *)(entries + capacity);
    ring->mapped = size;
    return true;
}

void
errand__ring_unmap(errand__ring *ring)
{
    if (ring->entries != NULL)
        errand__mem_unmap(ring->entries, ring->mapped);
}

errand_status
errand__pool_ready(errand_lease *lease, const errand__record *record)
{
    errand__place *place = errand__place_of(lease);
    uint8_t lane = errand__lane_of(record);
    uint8_t rank = rank_of[record->priority];

    if (record->resource_class == ERRAND_INTERRUPTIBLE_ASYNC)
        return errand__misuse(ERRAND_EUNSUPPORTED, "errand_submit",
                              "a blocking pool cannot poll; attach a reactor "
                              "(errand_reactor_create), or an async executor for a job "
                              "that only wakers wake");
    if (lane >= ERRAND_LANES)
        return ERRAND_EINVAL;
    errand__queue *queue = place->queues[lane];
    bool ready = queue != NULL && queue->rings[rank].entries != NULL;
    const errand__extra *whole = errand__record_whole(record);
    if (ready && (whole == NULL || whole->soft_ns == 0))
        return ERRAND_OK;
    if (place->pool->lanes[lane].limit == 0)
        return errand__misuse(ERRAND_EINVAL, "errand_submit",
                              "the pool has no such lane; define it first");
    errand__queue *made = NULL;
    if (queue == NULL) {
        made = queue = errand__mem_map(sizeof *queue);
        if (queue == NULL)
            return ERRAND_ENOMEM;
        queue->place = place;
        queue->lane = lane;
        atomic_store_explicit(&queue->cost, ERRAND__COST_UNKNOWN, memory_order_relaxed);
    }
    errand__ring *ring = &queue->rings[rank];
    if ((ring->entries == NULL && !ring_map(ring, lease->owed_max)) ||
        errand__soft_ready(place, record) != ERRAND_OK) {
        if (made != NULL) {
            errand__ring_unmap(ring);
            errand__mem_unmap(made, sizeof *made);
        }
        return ERRAND_ENOMEM;
    }
    errand__lock_acquire(&place->pool->lock);
    place->queues[lane] = queue;
    errand__lock_release(&place->pool->lock);
    return ERRAND_OK;
}

/* Is somebody going to look?  While jobs before this one are waiting, whoever takes them looks again, and
 * a flush follows; else a handler may wait for this very job before that, so the question has to
 * be asked for sure: of submit and a worker that closes the queue, one sees the other. */
static bool
is_open(errand__queue *queue, errand__ring *ring, uint64_t tail)
{
    uint64_t waiting = tail - atomic_load_explicit(&ring->head, memory_order_relaxed);

    if (waiting >= MANY_WAIT && waiting <= ring->capacity)
        return atomic_load_explicit(&queue->open, memory_order_relaxed) != 0;
    /* Pairs: ring-tail (also the next one) */
    atomic_fetch_add_explicit(&ring->tail, 0, memory_order_seq_cst);
    return atomic_load_explicit(&queue->open, memory_order_seq_cst) != 0;
}

void
errand__pool_submit(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__place *place = lease->impl;
    errand__queue *queue = place->queues[record->lane];
    unsigned rank = rank_of[record->priority];
    errand__ring *ring = &queue->rings[rank];
    uint64_t tail = ring->next, at = ring->next_at;

    if (__builtin_expect(tail == ring->room, 0))
        make_room(place->pool, lease, ring);
    if (at % ENTRIES_IN_LINE == 0) /* workers read these lines the last time round */
        errand__prefetch_own(&ring->entries[errand__ring_step(ring, at, AHEAD)]);
    ring->entries[at] = errand__entry_make(generation, record->slot);
    if (!lease->is_virtual &&
        (at % STAMPED == 0 || record->t_submit - ring->stamp > STAMP_NS)) {
        ring->stamp = record->t_submit;
        atomic_store_explicit(&ring->stamps[at / STAMPED], ring->stamp,
                              memory_order_relaxed);
    }
    if (__builtin_expect(place->soft != NULL, 0))
        errand__soft_note(place, record, generation);
    place->unflushed |= UINT64_C(1) << (queue->lane * ERRAND__RANKS + rank);
    ring->next = tail + 1;
    ring->next_at = errand__ring_step(ring, at, 1);
    /* Pairs: ring-tail */
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    bool open = is_open(queue, ring, tail);
    if (__builtin_expect(place->pool->processors == 1, 0) && looked_after(place->pool)) {
        if (!open)
            errand__pool_announce(place->pool, queue, ERRAND__WAKE_LATER);
        return; /* the flush rings */
    }
    if (!open)
        errand__pool_announce(place->pool, queue, ERRAND__WAKE_NEEDED);
    else
        consider_waking(place->pool, queue, ring, tail + 1);
}

void
errand__pool_flush(errand_lease *lease)
{
    errand__place *place = lease->impl;
    uint64_t unflushed = place->unflushed;

    place->unflushed = 0;
    for (; unflushed != 0; unflushed &= unflushed - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(unflushed);
        errand__queue *queue = place->queues[bit / ERRAND__RANKS];
        /* Pairs: ring-tail (also the next one) */
        atomic_fetch_add_explicit(&queue->rings[bit % ERRAND__RANKS].tail, 0,
                                  memory_order_seq_cst);
        if (atomic_load_explicit(&queue->open, memory_order_seq_cst) == 0)
            errand__pool_announce(place->pool, queue, ERRAND__WAKE_NEEDED);
        else if (place->pool->processors == 1 && looked_after(place->pool))
            errand__pool_announce(place->pool, queue, ERRAND__WAKE_IDLE);
    }
}

/* Does somebody sleep on the timer? */
static bool
looked_after(errand__pool *pool)
{
    return atomic_load_explicit(&pool->idle, memory_order_relaxed) >> 32 != 0;
}

/* Somebody sleeps, and somebody is or was awake for this queue.  Short jobs: those awake come
 * back for them, unless they fall behind; a sleeper on its timer sees if they do not come back
 * at all.  Long ones: each that no seeking worker will take gets a worker. */
static void
consider_waking(errand__pool *pool, errand__queue *queue, errand__ring *ring,
                uint64_t tail)
{
    uint64_t idle = atomic_load_explicit(&pool->idle, memory_order_relaxed);

    if ((uint32_t)idle == 0)
        return;
    uint32_t seekers = atomic_load_explicit(&pool->seekers, memory_order_relaxed);
    if (idle >> 32 != 0 && atomic_load_explicit(&queue->quick, memory_order_relaxed)) {
        if (tail % 16 != 0 || seekers != 0)
            return;
        uint64_t left = tail - atomic_load_explicit(&ring->head, memory_order_relaxed);
        uint64_t cost = atomic_load_explicit(&queue->cost, memory_order_relaxed);
        if (left > tail || left * cost < pool->soon_cycles)
            return;
    } else if (tail - atomic_load_explicit(&ring->head, memory_order_relaxed) <=
               seekers) {
        return;
    }
    errand__pool_announce(pool, queue, ERRAND__WAKE_NEEDED);
}

void
errand__pool_stale(errand_lease *lease, uint8_t lane, uint8_t priority)
{
    errand__place *place = errand__place_of(lease);
    errand__ring *ring = &place->queues[lane]->rings[rank_of[priority]];

    if (++ring->stale <= SWEEP_LEAST || ring->stale % LOOK_EACH != 0)
        return;
    errand__lock_acquire(&place->pool->lock);
    uint64_t passed = errand__ring_pass_locked(lease, ring, ring->stale);
    ring->stale -= passed;
    if (ring->stale > SWEEP_LEAST && ring->stale > errand__ring_count(ring) / 2)
        sweep_locked(lease, ring);
    errand__lock_release(&place->pool->lock);
}

/* Nothing is freed where the tail has to go: groups give back what they have not begun, and
 * what is stale goes. */
static void
make_room(errand__pool *pool, const errand_lease *lease, errand__ring *ring)
{
    uint64_t tail = ring->next;

    /* Pairs: ring-freed */
    ring->room =
        atomic_load_explicit(&ring->freed, memory_order_acquire) + ring->capacity;
    if (ring->room > tail)
        return;
    errand__lock_acquire(&pool->lock);
    for (uint32_t i = 0; i < pool->worker_room; i++) {
        errand__worker *worker = pool->workers[i];
        if (worker != NULL && worker->group.active && worker->group.ring == ring)
            errand__group_steal_locked(pool, worker);
    }
    sweep_locked(lease, ring);
    ring->room =
        atomic_load_explicit(&ring->freed, memory_order_relaxed) + ring->capacity;
    errand__lock_release(&pool->lock);
    ERRAND_ASSERT(ring->room > tail);
}

/* ---- with the lock -------------------------------------------------------------------------- */

static void
publish_head(errand__ring *ring, uint64_t head)
{
    atomic_store_explicit(&ring->head, head, memory_order_release);
    /* Pairs: ring-freed */
    atomic_store_explicit(&ring->freed, head - ring->out, memory_order_release);
}

static bool
is_in_state(const errand_lease *lease, uint64_t entry, unsigned state)
{
    const errand__record *record = &lease->block->records[(uint32_t)entry];
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    return errand__control_generation(control) == entry >> 32 &&
           errand__control_state(control) == state;
}

bool
errand__entry_live(const errand_lease *lease, uint64_t entry)
{
    return is_in_state(lease, entry, ERRAND__QUEUED);
}

bool
errand__entry_runs(const errand_lease *lease, uint64_t entry)
{
    return is_in_state(lease, entry, ERRAND__RUNNING);
}

uint64_t
errand__ring_pass_locked(const errand_lease *lease, errand__ring *ring, uint64_t most)
{
    uint64_t first = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint64_t head = first, at = errand__ring_at(ring, head);

    if (most > tail - head)
        most = tail - head;
    while (head - first < most && !errand__entry_live(lease, ring->entries[at])) {
        head++;
        at = errand__ring_step(ring, at, 1);
    }
    if (head != first)
        publish_head(ring, head);
    return head - first;
}

static void
sweep_locked(const errand_lease *lease, errand__ring *ring)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t to = tail;

    for (uint64_t from = tail; from != head;) {
        uint64_t entry = ring->entries[errand__ring_at(ring, --from)];
        if (from - head >= SWEEP_AHEAD)
            __builtin_prefetch(
                &lease->block->records[(uint32_t)ring->entries[errand__ring_at(
                    ring, from - SWEEP_AHEAD)]]);
        if (!errand__entry_live(lease, entry))
            continue;
        ring->entries[errand__ring_at(ring, --to)] = entry;
        uint64_t stamp = atomic_load_explicit(
            &ring->stamps[errand__ring_at(ring, from) >> ERRAND__STAMP_SHIFT],
            memory_order_relaxed);
        atomic_store_explicit(
            &ring->stamps[errand__ring_at(ring, to) >> ERRAND__STAMP_SHIFT], stamp,
            memory_order_relaxed);
    }
    ring->stale = 0;
    publish_head(ring, to);
}

void
errand__ring_take_locked(errand__ring *ring, errand__group *group, uint32_t count)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t at = errand__ring_at(ring, head), stamp = at >> ERRAND__STAMP_SHIFT;
    uint64_t stamps =
        ((head + count - 1) >> ERRAND__STAMP_SHIFT) - (head >> ERRAND__STAMP_SHIFT) + 1;

    group->ring = ring;
    group->position = head;
    group->count = count;
    for (uint32_t i = 0; i < count; i++) {
        group->entries[i] = ring->entries[at];
        at = errand__ring_step(ring, at, 1);
    }
    for (uint64_t i = 0; i < stamps; i++) {
        group->stamps[i] =
            atomic_load_explicit(&ring->stamps[stamp], memory_order_relaxed);
        group->started_in[i] = 0;
        if (++stamp == ring->capacity >> ERRAND__STAMP_SHIFT)
            stamp = 0;
    }
    ring->out += count;
    atomic_store_explicit(&ring->head, head + count, memory_order_release);
}

void
errand__ring_return_locked(errand__ring *ring, const uint64_t *entries, uint32_t count)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

    while (count > 0)
        ring->entries[errand__ring_at(ring, --head)] = entries[--count];
    atomic_store_explicit(&ring->head, head, memory_order_release);
}

void
errand__ring_release_locked(errand__ring *ring, uint32_t count)
{
    ERRAND_ASSERT(ring->out >= count);
    ring->out -= count;
    publish_head(ring, atomic_load_explicit(&ring->head, memory_order_relaxed));
}
