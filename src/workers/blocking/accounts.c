/* SPDX-License-Identifier: MIT */
/* accounts: what a snapshot of the pool says.
 *
 * Design notes.
 * - Records may be recycled while a snapshot is taken, so it reads none: ages come from the
 *   rings' stamps and from the workers' cycle counters, identities of operations with a soft
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
    if (record->extra == NULL || record->extra->soft_ns == 0 || place->soft != NULL)
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

void
errand__soft_note(errand__place *place, const errand__record *record, uint32_t generation)
{
    struct errand__soft *soft = &place->soft[record->slot];

    if (record->extra == NULL || record->extra->soft_ns == 0)
        return;
    const uint64_t words[5] = {record->wait_id, record->generation, record->operation,
                               (uint64_t)record->kind << 32 | record->slot,
                               record->extra->soft_ns};
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

static void
raise_to(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

static void
look_at_place(const errand__place *place, uint64_t now, errand_executor_snapshot *out)
{
    errand_snapshot accounts = {0};

    errand__lease_account(place->lease, &accounts);
    out->queued += accounts.queued;
    out->running += accounts.running;
    for (int lane = 0; lane < ERRAND_LANES; lane++) {
        const errand__queue *queue = place->queues[lane];
        for (int rank = 0; queue != NULL && rank < ERRAND__RANKS; rank++) {
            const errand__ring *ring = &queue->rings[rank];
            if (errand__ring_count(ring) == 0)
                continue;
            uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
            uint64_t stamp = atomic_load_explicit(
                &ring->stamps[errand__ring_at(ring, head) >> ERRAND__STAMP_SHIFT],
                memory_order_relaxed);
            if (stamp != 0 && stamp < now)
                raise_to(&out->oldest_queued_ns, now - stamp);
        }
    }
}

/* Keeps the eight oldest, oldest first. */
static void
list_overrun(errand_executor_snapshot *out, const errand_overrun *overrun)
{
    uint32_t kept = out->overruns < 8 ? out->overruns : 8;
    uint32_t at = kept;

    out->overruns++;
    while (at > 0 && out->overrun[at - 1].age_ns < overrun->age_ns) {
        if (at < 8)
            out->overrun[at] = out->overrun[at - 1];
        at--;
    }
    if (at < 8)
        out->overrun[at] = *overrun;
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

static void
look_at_worker(const errand__pool *pool, const errand__worker *worker,
               errand_executor_snapshot *out)
{
    for (int i = 0; i < 40; i++) { /* Pairs: cell-count */
        out->wait_histogram[i] +=
            atomic_load_explicit(&worker->waits[i], memory_order_acquire);
        out->run_histogram[i] +=
            atomic_load_explicit(&worker->runs[i], memory_order_acquire);
    }
    out->destructor_panics += atomic_load_explicit(&worker->panics, memory_order_acquire);
    out->leaked += atomic_load_explicit(&worker->leaked, memory_order_acquire);
    if (!worker->group.active)
        return;
    /* Pairs: worker-progress */
    uint64_t progress = atomic_load_explicit(&worker->progress, memory_order_acquire);
    uint64_t since = atomic_load_explicit(&worker->since, memory_order_relaxed);
    uint64_t cycles = errand__cycles();
    errand_overrun overrun = {.age_ns = since != 0 && since < cycles
                                            ? (cycles - since) * 1000 / pool->per_us
                                            : 0};
    raise_to(&out->oldest_running_ns, overrun.age_ns);
    const errand__place *place = worker->group.queue->place;
    if (place->soft != NULL && !place->gone &&
        is_overrun(place, worker->group.entries[progress & 0xff], &overrun))
        list_overrun(out, &overrun);
}

void
errand__pool_snapshot(errand_executor *executor, errand_executor_snapshot *out)
{
    errand__pool *pool = errand__pool_of(executor);
    uint64_t now = errand__clock_now();

    errand__lock_acquire(&pool->lock);
    out->workers = atomic_load_explicit(&pool->living, memory_order_relaxed);
    out->idle =
        pool->sleeper_count + atomic_load_explicit(&pool->seekers, memory_order_relaxed);
    out->written_off = pool->lost_count;
    out->threads_refused = pool->refused;
    out->threads_started = pool->started;
    out->threads_retired = pool->retired;
    out->threads_replaced = pool->replaced;
    for (errand__link *link = pool->places.next; link != &pool->places; link = link->next)
        look_at_place(ERRAND__CONTAINER(link, errand__place, attached), now, out);
    for (uint32_t i = 0; i < pool->worker_room; i++)
        if (pool->workers[i] != NULL)
            look_at_worker(pool, pool->workers[i], out);
    errand__lock_release(&pool->lock);
}
