/* SPDX-License-Identifier: MIT */
/* Design notes: since when the jobs of a roster are queued and running (O49).
 *
 * - One line per record, which the owner writes at submit and the runner at the start, without a
 *   lock.  A snapshot reads all lines that were ever used, and asks the record's control word,
 *   which is the only thing of it that others may read, how far the operation is.
 * - Times are cycles: real time, whatever clock the runtime has.  Seeded orders have no lines:
 *   what a program sees there follows virtual time alone. */
#include "workers/async/async.h"

struct errand__age {
    /* generation: of the record, 0 while the rest changes.  soft: limit in ns, 0 = none.
     * submitted: when.
     * Writers: owner.  Readers: snapshots.
     * Order:   release; acquire.  Pairs: age-line.
     * Why:     a reader that saw something new must see that the generation changed. */
    _Alignas(32) _Atomic uint64_t generation;
    _Atomic uint64_t soft, submitted;
    /* began: when its body was entered, or was about to be.
     * Writers: owner (0), the runner.  Readers: snapshots that saw it running.
     * Order:   relaxed.  Pairs: none.
     * Why:     the claim that follows orders it. */
    _Atomic uint64_t began;
};
/* Behind the lines, by slot: whose they are; written, and in memory at all, only where there is a soft
 * limit. */
struct errand__age_name {
    /* words: wait, generation, operation, {kind : 32 | slot : 32}.
     * Writers: owner.  Readers: snapshots.
     * Order:   release; acquire.  Pairs: age-line.
     * Why:     as the line's. */
    _Atomic uint64_t words[4];
};

static struct errand__age_name *
name_of(const errand__ages *ages, uint32_t slot)
{
    const size_t each = sizeof(struct errand__age) + sizeof(struct errand__age_name);

    return (struct errand__age_name *)(void *)(ages->lines + ages->mapped / each) + slot;
}

bool
errand__ages_init(errand__ages *ages, const errand_lease *lease)
{
    if (lease->is_virtual)
        return true;
    ages->mapped = lease->block->record_count *
                   (sizeof(struct errand__age) + sizeof(struct errand__age_name));
    ages->lines = errand__mem_map(ages->mapped);
    return ages->lines != NULL;
}

void
errand__ages_fini(errand__ages *ages)
{
    if (ages->lines != NULL)
        errand__mem_unmap(ages->lines, ages->mapped);
    ages->lines = NULL;
}

void
errand__ages_submitted(errand__ages *ages, const errand__record *record,
                       uint32_t generation, uint64_t cycles)
{
    if (ages->lines == NULL)
        return;
    struct errand__age *line = &ages->lines[record->slot];
    const errand__extra *whole = errand__record_whole(record);
    uint64_t soft = whole != NULL ? whole->soft_ns : 0;
    const uint64_t words[4] = {record->wait_id, record->generation, record->operation,
                               (uint64_t)record->kind << 32 | record->slot};

    atomic_store_explicit(&line->generation, 0, memory_order_relaxed);
    atomic_store_explicit(&line->began, 0, memory_order_relaxed);
    atomic_store_explicit(&line->soft, soft, memory_order_release);
    atomic_store_explicit(&line->submitted, cycles, memory_order_release);
    for (int i = 0; i < 4 && soft != 0; i++) /* Pairs: age-line */
        atomic_store_explicit(&name_of(ages, record->slot)->words[i], words[i],
                              memory_order_release);
    atomic_store_explicit(&line->generation, generation, memory_order_release);
    if (record->slot >= atomic_load_explicit(&ages->end, memory_order_relaxed))
        atomic_store_explicit(&ages->end, record->slot + 1, memory_order_release);
}

/* A dispatch that comes late, of an operation that was cancelled, finds another's line. */
void
errand__ages_began(errand__ages *ages, const errand__record *record, uint32_t generation,
                   uint64_t cycles)
{
    if (ages->lines == NULL)
        return;
    struct errand__age *line = &ages->lines[record->slot];
    if (atomic_load_explicit(&line->generation, memory_order_relaxed) == generation)
        atomic_store_explicit(&line->began, cycles, memory_order_relaxed);
}

static uint64_t
passed(uint64_t since, uint64_t cycles)
{
    return since != 0 && cycles > since
               ? (cycles - since) * 1000 / errand__cycles_per_us()
               : 0;
}

static void
look_at(const errand__ages *ages, uint32_t slot, const errand__block *block,
        errand_executor_snapshot *out)
{
    const struct errand__age *line = &ages->lines[slot];
    uint64_t words[4] = {0};
    /* Pairs: age-line (all loads) */
    uint64_t generation = atomic_load_explicit(&line->generation, memory_order_acquire);

    if (generation == 0)
        return;
    uint64_t soft = atomic_load_explicit(&line->soft, memory_order_acquire);
    uint64_t submitted = atomic_load_explicit(&line->submitted, memory_order_acquire);
    for (int i = 0; i < 4 && soft != 0; i++)
        words[i] =
            atomic_load_explicit(&name_of(ages, slot)->words[i], memory_order_acquire);
    uint64_t control =
        atomic_load_explicit(&block->records[slot].control, memory_order_acquire);
    uint64_t began = atomic_load_explicit(&line->began, memory_order_relaxed);
    if (errand__control_generation(control) != generation ||
        atomic_load_explicit(&line->generation, memory_order_relaxed) != generation)
        return;
    if (errand__control_state(control) == ERRAND__QUEUED)
        errand__age_raise(&out->oldest_queued_ns, passed(submitted, errand__cycles()));
    if (errand__control_state(control) != ERRAND__RUNNING)
        return;
    errand_overrun overrun = {.identity = {.runtime = block->runtime_id,
                                           .wait = words[0],
                                           .generation = words[1],
                                           .operation = words[2],
                                           .kind = (uint32_t)(words[3] >> 32),
                                           .slot = (uint32_t)words[3]},
                              .age_ns = passed(began, errand__cycles())};
    errand__age_raise(&out->oldest_running_ns, overrun.age_ns);
    if (soft != 0 && overrun.age_ns > soft)
        errand__overrun_note(out, &overrun);
}

void
errand__ages_read(const errand__ages *ages, const errand__block *block,
                  errand_executor_snapshot *out_snapshot)
{
    uint32_t end = atomic_load_explicit(&ages->end, memory_order_acquire);

    for (uint32_t slot = 0; slot < end; slot++)
        look_at(ages, slot, block, out_snapshot);
}
