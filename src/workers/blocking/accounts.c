/* SPDX-License-Identifier: MIT */
/* accounts: what a snapshot of the pool says.
 *
 * Design notes.
 * - Records may be recycled while a snapshot is taken, so it reads only their control words: ages
 *   come from the rings' stamps and from the workers' cycle counters, identities of operations with a soft
 *   limit from a table of the place, one line per record, that the owner writes at submit.
 * - Waits are as exact as stamps (one for 32 entries, the newest of them) and the runtime's
 *   clock; runs as the cycle counter. */
#include "workers/blocking/blocking.h"

/* generation: of the record, 0 while the words change.  words: wait, generation, operation,
 * {kind : 32 | slot : 32}, soft limit in ns.
 * Writers: owner.  Readers: snapshots.
 * Order:   words and generation release; acquire.  Pairs: soft-line.
 * Why:     a reader that saw a new word must see that the generation changed. */
struct errand__soft {
    _Atomic uint64_t generation;
    _Atomic uint64_t words[5];
};

errand_status
errand__soft_ready(errand__place *place, const errand__record *record)
{
    const errand__extra *whole = errand__record_whole(record);

    if (whole == NULL || whole->soft_ns == 0 || place->soft != NULL)
        return ERRAND_OK;
    size_t size = place->lease->block->record_count * sizeof(struct errand__soft);
    struct errand__soft *soft = errand__mem_map(size);
    if (soft == NULL)
        return ERRAND_ENOMEM;
    errand__lock_acquire(&place->pool->lock);
    place->soft = soft;
    place->soft_mapped = size;
    errand__lock_release(&place->pool->lock);
    return ERRAND_OK;
}

void
errand__soft_unmap(errand__place *place)
{
    if (place->soft != NULL)
        errand__mem_unmap(place->soft, place->soft_mapped);
}

ERRAND_APART void
errand__soft_note(errand__place *place, const errand__record *record, uint32_t generation)
{
    struct errand__soft *soft = &place->soft[record->slot];
    const errand__extra *whole = errand__record_whole(record);

    if (whole == NULL || whole->soft_ns == 0)
        return;
    const uint64_t words[5] = {record->wait_id, record->generation, record->operation,
                               (uint64_t)record->kind << 32 | record->slot,
                               whole->soft_ns};
    atomic_store_explicit(&soft->generation, 0, memory_order_relaxed);
    for (int i = 0; i < 5; i++) /* Pairs: soft-line */
        atomic_store_explicit(&soft->words[i], words[i], memory_order_release);
    atomic_store_explicit(&soft->generation, generation, memory_order_release);
}

/* ---- a worker's histograms ---------------------------------------------------------------------- */

static unsigned
bucket_of(uint64_t ns)
{
    unsigned bucket = 63U - (unsigned)__builtin_clzll(ns | 1);

    return bucket < 40 ? bucket : 39;
}

static void
count_more(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, old + amount,
                          memory_order_release); /* Pairs: cell-count */
}

static void
count_run(errand__worker *worker, uint64_t cycles, uint64_t times)
{
    uint64_t ns = (uint64_t)((double)cycles * worker->hands.ns_per_cycle);

    count_more(&worker->runs[bucket_of(ns)], times);
}

void
errand__worker_account(errand__worker *worker)
{
    errand__group *group = &worker->group;
    uint64_t at = group->position + group->next - 1;

    group->started++;
    group->started_in[(at >> ERRAND__STAMP_SHIFT) -
                      (group->position >> ERRAND__STAMP_SHIFT)]++;
    if (!group->tiny)
        count_run(worker, worker->hands.cycles - group->begin, 1);
}

void
errand__group_account(errand__worker *worker)
{
    errand__group *group = &worker->group;
    const errand__hands *hands = &worker->hands;
    uint64_t first = group->position >> ERRAND__STAMP_SHIFT;
    uint64_t last = (group->position + group->count - 1) >> ERRAND__STAMP_SHIFT;
    uint64_t start =
        hands->base_ns +
        (uint64_t)((double)(group->start - hands->base_cycles) * hands->ns_per_cycle);

    for (uint64_t i = 0; i <= last - first; i++) {
        uint64_t stamp = group->stamps[i];
        if (group->started_in[i] == 0 || stamp == 0)
            continue;
        uint64_t wait = start > stamp ? start - stamp : 0;
        count_more(&worker->waits[bucket_of(wait)], group->started_in[i]);
    }
    if (group->tiny && group->started > 0) /* one reading for several: their mean */
        count_run(worker, (hands->cycles - group->start) / group->started,
                  group->started);
    if (hands->destructor_panics != 0)
        atomic_store_explicit(&worker->panics, hands->destructor_panics,
                              memory_order_release);
    if (hands->leaked != 0)
        atomic_store_explicit(&worker->leaked, hands->leaked, memory_order_release);
}

/* ---- the snapshot --------------------------------------------------------------------------------- */

static uint64_t
age_of(const errand_lease *lease, uint64_t stamp)
{
    uint64_t now = errand__block_now(lease->block); /* the clock of the stamps */

    return stamp != 0 && stamp < now ? now - stamp : 0;
}

/* The first that was not cancelled meanwhile counts. */
static void
look_at_ring(const errand_lease *lease, const errand__ring *ring,
             errand_executor_snapshot *out)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

    for (uint64_t count = errand__ring_count(ring); count > 0; count--, head++) {
        uint64_t at = errand__ring_at(ring, head);

        if (!errand__entry_live(lease, ring->entries[at]))
            continue;
        uint64_t stamp = atomic_load_explicit(&ring->stamps[at >> ERRAND__STAMP_SHIFT],
                                              memory_order_relaxed);
        errand__age_raise(&out->oldest_queued_ns, age_of(lease, stamp));
        return;
    }
}

static void
look_at_place(const errand__place *place, errand_executor_snapshot *out)
{
    errand_snapshot accounts = {0};

    errand__lease_account(place->lease, &accounts);
    out->queued += accounts.queued;
    out->running += accounts.running;
    if (place->lease->is_virtual || accounts.queued == 0)
        return;
    for (int lane = 0; lane < ERRAND_LANES; lane++) {
        const errand__queue *queue = place->queues[lane];
        for (int rank = 0; queue != NULL && rank < ERRAND__RANKS; rank++)
            look_at_ring(place->lease, &queue->rings[rank], out);
    }
}

/* Is the entry an operation with a soft limit below its age? */
static bool
is_overrun(const errand__place *place, uint64_t entry, errand_overrun *overrun)
{
    struct errand__soft *soft = &place->soft[(uint32_t)entry];
    uint64_t words[5];

    /* Pairs: soft-line (all loads) */
    uint64_t generation = atomic_load_explicit(&soft->generation, memory_order_acquire);
    for (int i = 0; i < 5; i++)
        words[i] = atomic_load_explicit(&soft->words[i], memory_order_acquire);
    if (generation != entry >> 32 ||
        generation != atomic_load_explicit(&soft->generation, memory_order_relaxed) ||
        overrun->age_ns <= words[4])
        return false;
    overrun->identity = (errand_identity){.runtime = place->lease->block->runtime_id,
                                          .wait = words[0],
                                          .generation = words[1],
                                          .operation = words[2],
                                          .kind = (uint32_t)(words[3] >> 32),
                                          .slot = (uint32_t)words[3]};
    return true;
}

/* What the worker runs, and what waits in its group behind that. */
static void
look_at_group(const errand__pool *pool, const errand__worker *worker,
              errand_executor_snapshot *out)
{
    const errand__group *group = &worker->group;
    const errand__place *place = group->queue->place;
    /* Pairs: worker-progress */
    uint64_t progress = atomic_load_explicit(&worker->progress, memory_order_acquire);
    uint64_t since = atomic_load_explicit(&worker->since, memory_order_relaxed);
    uint64_t cycles = errand__cycles(), entry = group->entries[progress & 0xff];
    errand_overrun overrun = {.age_ns = since != 0 && since < cycles
                                            ? (cycles - since) * 1000 / pool->per_us
                                            : 0};

    for (uint32_t i = progress & 0xff; i < group->count && !group->stolen; i++) {
        if (!errand__entry_live(group->lease, group->entries[i]))
            continue;
        uint64_t block = ((group->position + i) >> ERRAND__STAMP_SHIFT) -
                         (group->position >> ERRAND__STAMP_SHIFT);
        errand__age_raise(&out->oldest_queued_ns,
                          age_of(group->lease, group->stamps[block]));
        break;
    }
    if (!errand__entry_runs(group->lease, entry))
        return;
    errand__age_raise(&out->oldest_running_ns, overrun.age_ns);
    if (place->soft != NULL && !place->gone && is_overrun(place, entry, &overrun))
        errand__overrun_note(out, &overrun);
}

static void
look_at_worker(const errand__worker *worker, errand_executor_snapshot *out)
{
    for (int i = 0; i < 40; i++) { /* Pairs: cell-count */
        out->wait_histogram[i] +=
            atomic_load_explicit(&worker->waits[i], memory_order_acquire);
        out->run_histogram[i] +=
            atomic_load_explicit(&worker->runs[i], memory_order_acquire);
    }
    out->destructor_panics += atomic_load_explicit(&worker->panics, memory_order_acquire);
    out->leaked += atomic_load_explicit(&worker->leaked, memory_order_acquire);
}

static void
look_at_threads(const errand__pool *pool, errand_executor_snapshot *out)
{
    out->workers = atomic_load_explicit(&pool->living, memory_order_relaxed);
    out->idle =
        pool->sleeper_count + atomic_load_explicit(&pool->seekers, memory_order_relaxed);
    out->written_off = pool->lost_count;
    out->threads_refused = pool->refused;
    out->threads_started = pool->started;
    out->threads_retired = pool->retired;
    out->threads_replaced = pool->replaced;
    for (uint32_t i = 0; i < pool->worker_room; i++)
        if (pool->workers[i] != NULL)
            look_at_worker(pool->workers[i], out);
}

void
errand__pool_snapshot(errand_executor *executor, const errand_lease *only,
                      errand_executor_snapshot *out)
{
    errand__pool *pool = errand__pool_of(executor);

    errand__lock_acquire(&pool->lock);
    if (only == NULL || !errand__place_of(only)->gone)
        look_at_threads(pool, out);
    for (errand__link *link = pool->places.next; link != &pool->places;
         link = link->next) {
        const errand__place *place = ERRAND__CONTAINER(link, errand__place, attached);
        if (only == NULL || place->lease == only)
            look_at_place(place, out);
    }
    for (uint32_t i = 0; i < pool->worker_room; i++) {
        const errand__worker *worker = pool->workers[i];
        if (worker != NULL && worker->group.active && !worker->group.lease->is_virtual &&
            (only == NULL || worker->group.lease == only))
            look_at_group(pool, worker, out);
    }
    errand__lock_release(&pool->lock);
}
