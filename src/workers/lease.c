/* SPDX-License-Identifier: MIT */
/* lease: one runtime's place in an executor, and its accounts.
 *
 * Design notes.
 * - A lease and its cells are one mapping of pages that are touched when they are first used:
 *   most executors can have many more workers than they ever start.
 * - A snapshot reads from the last stage to the first.  Counters only grow and each stage is
 *   counted before the next can be, so an operation that is seen in a later stage is seen in
 *   all earlier ones, and no difference is negative (O48).  outcomes counts every settled
 *   operation, cancelled_queued those of them that never started, a moment earlier.
 *   Saturating subtraction guards the one exception: an operation that the owner settles
 *   while its worker is about to count its start. */
#include "workers/workers.h"

/* epochs: the last attachment epoch.
 * Writers, Readers: any attaching thread.
 * Order:   relaxed.  Pairs: none.
 * Why:     a number that only has to differ from the others. */
static _Atomic uint64_t epochs;

static size_t
lease_size(uint32_t cell_count)
{
    size_t head = (sizeof(errand_lease) + ERRAND_LINE - 1) / ERRAND_LINE * ERRAND_LINE;

    return head + cell_count * sizeof(errand__cell);
}

errand_status
errand__lease_create(errand_executor *executor, errand__block *block,
                     struct errand_runtime *runtime, uint32_t owed_max, bool is_virtual,
                     errand_lease **out_lease)
{
    if (executor->fork_epoch != errand__fork_epoch())
        return ERRAND_EFORKED;
    uint32_t cell_count = 1 + executor->ops->cells(executor);
    size_t size = lease_size(cell_count);
    errand_lease *lease = errand__mem_map(size);
    if (lease == NULL)
        return ERRAND_ENOMEM;
    lease->executor = executor;
    lease->block = block;
    lease->runtime = runtime;
    lease->owed_max = owed_max;
    lease->cell_count = cell_count;
    lease->is_virtual = is_virtual;
    lease->epoch = 1 + atomic_fetch_add_explicit(&epochs, 1, memory_order_relaxed);
    lease->cells = (errand__cell *)(void *)((char *)lease + size -
                                            cell_count * sizeof(errand__cell));
    atomic_store_explicit(&lease->refs, 1, memory_order_relaxed);
    errand__executor_hold(executor);
    errand__block_hold(block);
    errand_status status = executor->ops->attach(executor, lease);
    if (status != ERRAND_OK) {
        errand__mem_unmap(lease, size);
        errand__block_let(block);
        errand__executor_let(executor);
        return status;
    }
    *out_lease = lease;
    return ERRAND_OK;
}

void
errand__lease_hold(errand_lease *lease)
{
    atomic_fetch_add_explicit(&lease->refs, 1, memory_order_relaxed);
}

bool
errand__lease_is_alone(const errand_lease *lease)
{
    return atomic_load_explicit(&lease->refs, memory_order_acquire) <=
           1; /* Pairs: lease-refs */
}

void
errand__lease_let(errand_lease *lease)
{
    uint32_t before = atomic_fetch_sub_explicit(
        &lease->refs, 1, memory_order_acq_rel); /* Pairs: lease-refs */

    ERRAND_ASSERT(before > 0);
    if (before > 1)
        return;
    errand_executor *executor = lease->executor;
    errand__block *block = lease->block;
    if (executor->ops->forget != NULL)
        executor->ops->forget(lease);
    errand__mem_unmap(lease, lease_size(lease->cell_count));
    errand__block_let(block);
    errand__executor_let(executor);
}

/* ---- accounts ------------------------------------------------------------------------------ */

static uint64_t
less(uint64_t from, uint64_t amount)
{
    return from > amount ? from - amount : 0;
}

static uint64_t
read_count(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_acquire); /* Pairs: cell-count */
}

typedef struct stages { /* sums over all cells */
    uint64_t started, cancelled_queued;
    uint64_t outcomes[6];
    uint64_t codes[ERRAND_CODES];
} stages;

static void
sum_cells(const errand_lease *lease, stages *out)
{
    for (uint32_t i = 0; i < lease->cell_count; i++) {
        const errand__cell *cell = &lease->cells[i];

        for (int k = 0; k < 6; k++)
            out->outcomes[k] += read_count(&cell->outcomes[k]);
        out->cancelled_queued += read_count(&cell->cancelled_queued);
        for (int k = 0; k < ERRAND_CODES; k++)
            out->codes[k] += read_count(&cell->codes[k]);
    }
    for (uint32_t i = 0; i < lease->cell_count; i++)
        out->started += read_count(&lease->cells[i].started);
}

void
errand__lease_account(const errand_lease *lease, errand_snapshot *out)
{
    stages sums = {0};
    uint64_t undeliverable = read_count(&lease->undeliverable);
    uint64_t drained = read_count(&lease->drained);

    sum_cells(lease, &sums);
    uint64_t accepted = read_count(&lease->accepted);
    uint64_t settled = 0;
    for (int k = 0; k < 6; k++)
        settled += sums.outcomes[k];
    out->accepted += accepted;
    out->drained += drained;
    out->undeliverable += undeliverable;
    out->queued += less(less(accepted, sums.started), sums.cancelled_queued);
    out->running += less(sums.started + sums.cancelled_queued, settled);
    out->undrained += less(less(settled, drained), undeliverable);
    out->owed += less(accepted, drained);
    out->completed += sums.outcomes[ERRAND_COMPLETED];
    out->failed += sums.outcomes[ERRAND_FAILED];
    out->cancelled += sums.outcomes[ERRAND_CANCELLED];
    out->panicked += sums.outcomes[ERRAND_PANICKED];
    out->crashed += sums.outcomes[ERRAND_CRASHED];
    for (int k = 0; k < ERRAND_CODES; k++)
        out->codes[k] += sums.codes[k];
}
