/* SPDX-License-Identifier: MIT */
/* Design notes: a job's way in, and its changes of mind.
 *
 * - Whether a job can be written down, and which entry it calls, is asked before it is admitted;
 *   after that nothing can refuse it.  Where memory for a queued request is missing the operation
 *   ends, with MEMORY.
 * - A cancel of a running job sets the moment of its kill: now, or after the grace.  It is set
 *   under the lock, where the job is certainly still that worker's; the monitor does the rest. */
#include <string.h>
#include "workers/sandbox/sandbox.h"

#define STALE_LEAST 64

static const errand_portable_type *
portable_of(const errand__record *record)
{
    const errand_job_type *type = record->job;

    return type->struct_size >= offsetof(errand_job_type, held_portable) + sizeof(void *)
               ? type->held_portable
               : NULL;
}

/* What the job borrows of the pool's region. */
static errand_status
borrow(errand__sandbox *pool, errand__sandbox_job *job,
       const errand_portable_type *portable, const void *state)
{
    const errand_ffi_buffer *buffer = NULL;

    job->ready_input_offset = job->ready_input_size = 0;
    if (portable->struct_size >=
            offsetof(errand_portable_type, borrowed) + sizeof(void *) &&
        portable->borrowed != NULL)
        buffer = portable->borrowed(state);
    if (buffer == NULL)
        return ERRAND_OK;
    if (pool->region == NULL ||
        !errand__region_holds(pool->region, buffer, &job->ready_input_offset))
        return errand__misuse(ERRAND_EINVAL, "errand_submit",
                              "the job borrows a buffer that is not of this sandbox");
    job->ready_input_size = errand_ffi_buffer_size(buffer);
    return ERRAND_OK;
}

errand_status
errand__sandbox_ready(errand_lease *lease, const errand__record *record)
{
    errand__sandbox_place *place = lease->impl;
    errand__sandbox_job *job = &place->jobs[record->slot];
    const errand_portable_type *portable = portable_of(record);
    const errand_entry *entry;
    errand_status status;
    size_t size;

    if (portable == NULL || record->resource_class == ERRAND_INTERRUPTIBLE_ASYNC)
        return errand__misuse(ERRAND_EUNSUPPORTED, "errand_submit",
                              "only a blocking job with a held_portable can run in a "
                              "sandbox");
    if (errand__lane_of(record) > ERRAND_LANE_QUARANTINED)
        return errand__misuse(ERRAND_EINVAL, "errand_submit",
                              "a sandbox has no lanes of the host's own");
    size = portable->request_size(record->state);
    if (size > place->pool->policy.values.in_bytes)
        return errand__misuse(ERRAND_EINVAL, "errand_submit",
                              "the request is larger than in_bytes of the policy");
    status = borrow(place->pool, job, portable, record->state);
    if (status != ERRAND_OK)
        return status;
    entry = portable->entry(record->state);
    status = errand__entry_find(place->pool, entry, &job->ready_entry);
    if (status == ERRAND_OK)
        job->ready_size = size;
    return status;
}

/* Ends a job that no worker was asked for.  False: it had ended before. */
static bool
end_unasked(errand__sandbox_place *place, const errand__sandbox_hand *hand,
            errand__record *record, uint32_t generation, errand_code code,
            const char *text)
{
    errand_lease *lease = place->lease;
    errand__cell *cell = errand__hand_cell(hand, lease);
    errand_job job = {.hands = NULL};

    errand__hands_clock(hand->hands);
    if (!errand__claim(record, generation, cell))
        return false;
    errand__outcome_none(place, record, code == ERRAND_CODE_SPAWN);
    errand__hands_away(hand->hands, &job, lease->block, record, generation, cell);
    errand__hands_at(hand->hands, &job, lease->block, cell);
    errand_job_message(&job, "%s", text);
    errand__hands_back(&job, ERRAND_FAILED, code, 0);
    errand__hands_ring(hand->hands, lease->block);
    return true;
}

/* No worker is free: the request is written down and waits. */
static void
wait_for_worker(errand__sandbox_place *place, errand__sandbox_job *job,
                errand__record *record, uint32_t generation)
{
    errand__sandbox *pool = place->pool;
    size_t room;
    bool idle, starts;
    unsigned char *bytes = errand__bytes_take(place, job->size, &room);

    if (bytes == NULL) {
        end_unasked(place, &place->hand, record, generation, ERRAND_CODE_MEMORY,
                    "there was no memory to keep its request until a worker is free");
        return;
    }
    if (job->size != 0)
        portable_of(record)->write_request(record->state, bytes);
    errand__lock_acquire(&pool->lock);
    job->bytes = bytes;
    job->room = room;
    job->rank = (uint8_t)errand__job_rank(record->priority);
    errand__job_enqueue_locked(place, job);
    idle = !errand__list_empty(&pool->idle); /* one may be free by now */
    starts = !pool->full || job->entry >= pool->full_entries;
    errand__lock_release(&pool->lock);
    if (idle)
        errand__sandbox_pump(pool, &place->hand);
    if (atomic_load_explicit(&pool->waiting, memory_order_seq_cst) == 0)
        return;
    if (starts)
        errand__sandbox_monitor_kick(pool);
    errand__watcher_mind(pool);
}

void
errand__sandbox_submit(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__sandbox_place *place = lease->impl;
    errand__sandbox *pool = place->pool;
    errand__sandbox_job *job = &place->jobs[record->slot];
    const errand__extra *extra = errand__record_whole(record);
    struct errand__spare *free_later = NULL;
    errand__sandbox_slot *slot = NULL;

    uint64_t deadline = 0;

    if (extra != NULL && extra->deadline_ns != 0 && !lease->is_virtual &&
        !lease->block->test_time)
        deadline = extra->deadline_entry.major;
    errand__ages_submitted(&place->ages, record, generation, errand__cycles());
    errand__lock_acquire(&pool->lock);
    if (errand__list_linked(&job->link)) /* of an operation that was cancelled */
        errand__job_drop_locked(place, job, &free_later);
    job->generation = generation;
    job->entry = job->ready_entry;
    job->size = job->ready_size;
    job->input_offset = job->ready_input_offset;
    job->input_size = job->ready_input_size;
    job->deadline_ns = deadline;
    job->deadline_ms = deadline == 0 ? 0 : errand__verdict_ms(extra->deadline_ns);
    if (place->queued == 0 && !errand__sandbox_enough_locked(pool))
        slot = errand__idle_take_locked(pool, job->entry);
    if (slot != NULL)
        errand__job_assign_locked(slot, place, job);
    errand__lock_release(&pool->lock);
    errand__spares_free(free_later);
    if (slot == NULL) {
        wait_for_worker(place, job, record, generation);
    } else if (!errand__job_begin(slot, &place->hand, NULL)) {
        errand__slot_release(slot, ERRAND__INTENT_NONE);
    }
}

/* Drops all stale ones of a place. */
static void
sweep_locked(errand__sandbox_place *place, struct errand__spare **free_later)
{
    for (int rank = 0; rank < ERRAND__SANDBOX_RANKS; rank++) {
        errand__link *link = place->queues[rank].next;

        while (link != &place->queues[rank]) {
            errand__sandbox_job *job = ERRAND__CONTAINER(link, errand__sandbox_job, link);

            link = link->next;
            if (!errand__job_is_live(place, job))
                errand__job_drop_locked(place, job, free_later);
        }
    }
    place->stale = 0;
}

void
errand__sandbox_stale(errand_lease *lease, uint8_t lane, uint8_t priority)
{
    errand__sandbox_place *place = lease->impl;
    struct errand__spare *free_later = NULL;

    (void)lane;
    (void)priority;
    errand__lock_acquire(&place->pool->lock);
    if (++place->stale >= STALE_LEAST && place->stale > place->queued / 2)
        sweep_locked(place, &free_later);
    errand__lock_release(&place->pool->lock);
    errand__spares_free(free_later);
}

/* Has its worker end this operation at that moment, for that reason.  False: no worker has it. */
static bool
set_kill(errand__sandbox_place *place, const errand__record *record, uint32_t generation,
         errand__slot_intent intent, uint64_t moment)
{
    errand__sandbox *pool = place->pool;
    const errand__sandbox_job *job = &place->jobs[record->slot];
    bool found = false;

    errand__lock_acquire(&pool->lock);
    if (job->slot != 0 && job->generation == generation) {
        errand__sandbox_slot *slot = &pool->slots[job->slot - 1];

        found = true;
        if (moment < atomic_load_explicit(&slot->kill_ns, memory_order_relaxed)) {
            slot->kill_intent = intent;
            atomic_store_explicit(&slot->kill_ns, moment, memory_order_seq_cst);
        }
        atomic_store_explicit(&slot->request->cancelled, slot->call_sequence,
                              memory_order_relaxed);
    }
    errand__lock_release(&pool->lock);
    if (found)
        errand__sandbox_monitor_heed(pool, moment);
    return found;
}

void
errand__sandbox_nudge(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__sandbox_place *place = lease->impl;
    uint64_t now = errand__clock_now(), grace = place->pool->policy.values.grace_ns;

    if (record->reason == 0 && !lease->is_virtual) /* its deadline asked, nobody else */
        set_kill(place, record, generation, ERRAND__INTENT_DEADLINE, now);
    else
        set_kill(place, record, generation, ERRAND__INTENT_CANCEL,
                 grace > UINT64_MAX - now ? UINT64_MAX : now + grace);
}

bool
errand__sandbox_write_off(errand_lease *lease, errand__record *record,
                          uint32_t generation)
{
    return set_kill(lease->impl, record, generation, ERRAND__INTENT_DEADLINE,
                    errand__clock_now());
}

/* ---- what is queued ends ------------------------------------------------------------------------- */

void
errand__sandbox_fail_queued(errand__sandbox *pool, uint32_t known, const char *text)
{
    for (;;) {
        struct errand__spare *free_later = NULL;
        errand__sandbox_place *place = NULL;
        errand__sandbox_job *job = NULL;
        errand__record *record = NULL;
        uint32_t generation = 0;

        errand__lock_acquire(&pool->lock);
        errand__link *link = pool->turns.next;
        while (job == NULL && link != &pool->turns) {
            place = ERRAND__CONTAINER(link, errand__sandbox_place, turn);
            link = link->next; /* it may leave the turns */
            job = errand__job_head_locked(place, &free_later);
            if (job != NULL && job->entry < known)
                job = NULL;
        }
        if (job != NULL) {
            record = &place->lease->block->records[job - place->jobs];
            generation = job->generation;
            errand__job_drop_locked(place, job, &free_later);
            errand__lease_hold(place->lease);
        }
        errand__lock_release(&pool->lock);
        errand__spares_free(free_later);
        if (job == NULL)
            return;
        end_unasked(place, &pool->monitor_hand, record, generation, ERRAND_CODE_SPAWN,
                    text);
        errand__lease_let(place->lease);
    }
}

void
errand__place_empty(errand__sandbox_place *place)
{
    struct errand__spare *free_later = NULL;

    errand__lock_acquire(&place->pool->lock);
    for (int rank = 0; rank < ERRAND__SANDBOX_RANKS; rank++)
        while (!errand__list_empty(&place->queues[rank]))
            errand__job_drop_locked(
                place,
                ERRAND__CONTAINER(place->queues[rank].next, errand__sandbox_job, link),
                &free_later);
    errand__lock_release(&place->pool->lock);
    errand__spares_free(free_later);
}

void
errand__place_fini(errand__sandbox_place *place)
{
    for (unsigned class = 0; class < ERRAND__SANDBOX_SPARES; class ++)
        while (place->spares[class] != NULL) {
            struct errand__spare *spare = place->spares[class];

            place->spares[class] = spare->next;
            errand__mem_free(NULL, spare, errand__bytes_room(class));
        }
    errand__ages_fini(&place->ages);
    errand__hands_fini(&place->hands);
    if (place->jobs != NULL)
        errand__mem_unmap(place->jobs, place->mapped);
    errand__mem_unmap(place, sizeof *place);
}
