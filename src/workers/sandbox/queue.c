/* SPDX-License-Identifier: MIT */
/* Design notes: which job goes to which worker.
 *
 * - A job that finds an idle worker is written straight into its file.  One that does not is
 *   written down by its owner into memory of its own, so that whoever frees a worker can give it
 *   this job: the owner may be elsewhere then.
 * - Leases that have something queued take turns; within a lease high before normal before low,
 *   but for every 16th start, which is the oldest of a lower rank.  An owner starts jobs of its own
 *   lease alone (each cell has one writer); where another's turn has come it wakes the watcher.
 * - An idle worker knows the entries of its start.  A job of a newer one waits for a worker that is
 *   started later.
 * - Where jobs are so short that a worker and an owner who both spin are quicker than more workers
 *   than there are processors for, the others stay idle.  That is known from how long the last ones
 *   took; the watcher sees when one takes longer.
 * - A cancelled job stays in its queue until it is met, its record is submitted again, or more than
 *   half of what is queued went stale. */
#include <string.h>
#include "workers/sandbox/sandbox.h"

#define STREAK_MAX   15
#define SPARE_LEAST  6 /* buffers have 64 bytes or more */
#define CLOCK_AGE_NS UINT64_C(1000000)
#define SHORT_US     20 /* about what it costs to wake somebody, and to be woken */

/* ---- written requests -------------------------------------------------------------------------- */

static unsigned
class_of(size_t size)
{
    unsigned class = 0;

    while (((size_t)1 << (class + SPARE_LEAST)) < size)
        class ++;
    return class;
}

size_t
errand__bytes_room(unsigned class)
{
    return (size_t)1 << (class + SPARE_LEAST);
}

unsigned char *
errand__bytes_take(errand__sandbox_place *place, size_t size, size_t *out_room)
{
    unsigned class = class_of(size);
    struct errand__spare *spare = NULL;

    *out_room = (size_t)1 << (class + SPARE_LEAST);
    if (class < ERRAND__SANDBOX_SPARES) {
        errand__lock_acquire(&place->pool->lock);
        spare = place->spares[class];
        if (spare != NULL)
            place->spares[class] = spare->next;
        errand__lock_release(&place->pool->lock);
    }
    return spare != NULL ? (unsigned char *)spare : errand__mem_alloc(NULL, *out_room);
}

void
errand__place_spare(errand__sandbox_place *place, unsigned char *bytes, size_t room)
{
    struct errand__spare *spare = (struct errand__spare *)(void *)bytes;
    unsigned class = class_of(room);

    if (bytes != NULL && class < ERRAND__SANDBOX_SPARES) {
        errand__lock_acquire(&place->pool->lock);
        spare->next = place->spares[class];
        place->spares[class] = spare;
        errand__lock_release(&place->pool->lock);
    } else {
        errand__mem_free(NULL, bytes, room);
    }
}

/* ---- queues --------------------------------------------------------------------------------------- */

unsigned
errand__job_rank(uint8_t priority)
{
    return priority == 1 ? 0 : priority == 0 ? 1 : 2;
}

void
errand__job_enqueue_locked(errand__sandbox_place *place, errand__sandbox_job *job)
{
    errand__sandbox *pool = place->pool;

    errand__list_append(&place->queues[job->rank], &job->link);
    if (place->queued++ == 0)
        errand__list_append(&pool->turns, &place->turn);
    atomic_fetch_add_explicit(&pool->waiting, 1, memory_order_seq_cst);
}

static void
dequeue_locked(errand__sandbox_place *place, errand__sandbox_job *job)
{
    errand__list_unlink(&job->link);
    if (--place->queued == 0)
        errand__list_unlink(&place->turn);
    atomic_fetch_sub_explicit(&place->pool->waiting, 1, memory_order_seq_cst);
}

static errand__record *
record_of(const errand__sandbox_place *place, const errand__sandbox_job *job)
{
    return &place->lease->block->records[job - place->jobs];
}

bool
errand__job_is_live(const errand__sandbox_place *place, const errand__sandbox_job *job)
{
    uint64_t control =
        atomic_load_explicit(&record_of(place, job)->control, memory_order_acquire);

    return errand__control_generation(control) == job->generation &&
           errand__control_state(control) == ERRAND__QUEUED;
}

void
errand__job_drop_locked(errand__sandbox_place *place, errand__sandbox_job *job,
                        struct errand__spare **free_later)
{
    struct errand__spare *spare = (struct errand__spare *)(void *)job->bytes;

    dequeue_locked(place, job);
    job->bytes = NULL;
    if (spare != NULL) {
        spare->next = *free_later;
        spare->room = job->room;
        *free_later = spare;
    }
    if (place->stale > 0)
        place->stale--;
}

void
errand__spares_free(struct errand__spare *spare)
{
    while (spare != NULL) {
        struct errand__spare *next = spare->next;

        errand__mem_free(NULL, spare, spare->room);
        spare = next;
    }
}

errand__sandbox_job *
errand__job_head_locked(errand__sandbox_place *place, struct errand__spare **free_later)
{
    errand__sandbox_job *chosen = NULL, *lower = NULL;

    for (int rank = 0; rank < ERRAND__SANDBOX_RANKS; rank++) {
        errand__link *queue = &place->queues[rank];

        while (!errand__list_empty(queue)) {
            errand__sandbox_job *job =
                ERRAND__CONTAINER(queue->next, errand__sandbox_job, link);

            if (errand__job_is_live(place, job)) {
                if (chosen == NULL)
                    chosen = job;
                else if (lower == NULL)
                    lower = job;
                break;
            }
            errand__job_drop_locked(place, job, free_later);
        }
    }
    return lower != NULL && place->streak >= STREAK_MAX ? lower : chosen;
}

/* ---- matching --------------------------------------------------------------------------------------- */

/* Would one more worker at work be in the way of those that are? */
bool
errand__sandbox_enough_locked(const errand__sandbox *pool)
{
    uint32_t most = pool->processors > 1 ? pool->processors - 1 : 1;

    return pool->busy >= most && !pool->stalled &&
           pool->service < SHORT_US * errand__cycles_per_us() &&
           atomic_load_explicit(&pool->lookout, memory_order_relaxed) ==
               ERRAND__LOOKOUT_NAPS;
}

void
errand__sandbox_served_locked(errand__sandbox *pool, uint64_t cycles)
{
    uint64_t most = 8 * SHORT_US * errand__cycles_per_us();

    if (cycles > most)
        cycles = most; /* soon forgotten */
    pool->service += cycles / 8;
    pool->service -= pool->service / 8;
    pool->busy--;
    pool->done++;
    pool->stalled = false;
}

errand__sandbox_slot *
errand__idle_take_locked(errand__sandbox *pool, uint32_t entry)
{
    errand__link *link = pool->idle.next;

    while (link != &pool->idle) {
        errand__sandbox_slot *slot = ERRAND__CONTAINER(link, errand__sandbox_slot, idle);

        link = link->next;
        if (slot->entry_count <= entry)
            continue;
        errand__list_unlink(&slot->idle);
        if (errand__slot_is_quiet(slot)) {
            __builtin_prefetch(slot->body, 1); /* the request is written there soon */
            errand__slot_move(slot, ERRAND__SLOT_HELD);
            return slot;
        }
        slot->intent = ERRAND__INTENT_PROTOCOL;
        errand__slot_move(slot, ERRAND__SLOT_DYING);
        errand__sandbox_monitor_kick(pool);
    }
    return NULL;
}

void
errand__job_assign_locked(errand__sandbox_slot *slot, errand__sandbox_place *place,
                          errand__sandbox_job *job)
{
    errand__lease_hold(place->lease);
    place->pool->busy++;
    slot->lease = place->lease;
    slot->record = record_of(place, job);
    slot->job_slot = slot->record->slot;
    slot->generation = job->generation;
    slot->kill_intent = ERRAND__INTENT_NONE;
    atomic_store_explicit(&slot->kill_ns, UINT64_MAX, memory_order_relaxed);
    job->slot = slot->index + 1;
    atomic_fetch_or_explicit(&place->busy[slot->index / 64],
                             UINT64_C(1) << slot->index % 64,
                             memory_order_release); /* Pairs: place-busy */
}

/* The next queued job that an idle worker can take and this hand may start. */
static errand__sandbox_slot *
match_locked(errand__sandbox *pool, const errand__sandbox_hand *hand,
             errand__sandbox_job **out_job, bool *out_others,
             struct errand__spare **free_later)
{
    errand__link *link = pool->turns.next;

    while (link != &pool->turns && !errand__list_empty(&pool->idle) &&
           !errand__sandbox_enough_locked(pool)) {
        errand__sandbox_place *place =
            ERRAND__CONTAINER(link, errand__sandbox_place, turn);
        errand__sandbox_job *job = errand__job_head_locked(place, free_later);
        errand__sandbox_slot *slot;

        if (job == NULL) { /* it has left the turns */
            link = pool->turns.next;
            continue;
        }
        link = link->next;
        if (hand->only != NULL && hand->only != place) {
            *out_others = true;
            return NULL;
        }
        slot = errand__idle_take_locked(pool, job->entry);
        if (slot == NULL)
            continue;
        place->streak = job->rank < ERRAND__SANDBOX_RANKS - 1 ? place->streak + 1 : 0;
        if (place->streak > STREAK_MAX)
            place->streak = 0;
        dequeue_locked(place, job);
        if (errand__list_linked(&place->turn)) {
            errand__list_unlink(&place->turn);
            errand__list_append(&pool->turns, &place->turn);
        }
        errand__job_assign_locked(slot, place, job);
        *out_job = job;
        return slot;
    }
    return NULL;
}

bool
errand__job_begin(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                  const unsigned char *bytes)
{
    errand_lease *lease = slot->lease;
    errand__sandbox_place *place = lease->impl;
    errand__cell *cell = errand__hand_cell(hand, lease);

    errand__hands_read(hand->hands);
    if (hand->hands->now_ns - hand->hands->base_ns > CLOCK_AGE_NS)
        errand__hands_clock(hand->hands);
    errand__ages_began(&place->ages, slot->record, slot->generation, hand->hands->cycles);
    if (!errand__claim(slot->record, slot->generation, cell))
        return false;
    errand__hands_away(hand->hands, &slot->job, lease->block, slot->record,
                       slot->generation, cell);
    errand__slot_ask(slot, hand, bytes);
    return true;
}

void
errand__sandbox_pump(errand__sandbox *pool, const errand__sandbox_hand *hand)
{
    while (atomic_load_explicit(&pool->waiting, memory_order_seq_cst) != 0) {
        struct errand__spare *free_later = NULL;
        errand__sandbox_job *job = NULL;
        errand__sandbox_slot *slot;
        struct errand__spare *written = NULL;
        size_t room = 0;
        bool others = false, unfit;

        errand__lock_acquire(&pool->lock);
        slot = match_locked(pool, hand, &job, &others, &free_later);
        unfit = !others && !errand__list_empty(&pool->idle) &&
                !errand__sandbox_enough_locked(pool);
        if (slot != NULL) {
            written = (struct errand__spare *)(void *)job->bytes;
            room = job->room;
            job->bytes = NULL;
        }
        errand__lock_release(&pool->lock);
        errand__spares_free(free_later);
        if (others)
            errand__watcher_wake(pool);
        if (slot == NULL) {
            if (unfit && hand->cell != ERRAND__CELL_MONITOR)
                errand__sandbox_monitor_kick(pool); /* for one that knows more */
            return;
        }
        errand__sandbox_place *place = slot->lease->impl;
        errand__lease_hold(place->lease);
        if (!errand__job_begin(slot, hand, (unsigned char *)written))
            errand__slot_release(slot, ERRAND__INTENT_NONE);
        errand__place_spare(place, (unsigned char *)written, room);
        errand__lease_let(place->lease);
    }
}
