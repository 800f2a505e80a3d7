/* SPDX-License-Identifier: MIT */
/* Design notes: snapshots (O48).
 *
 * Counters only grow, stage by stage.  A snapshot reads them from the last stage to the first,
 * so each stage that it read is at most the stage before it, and the terms that it derives
 * (queued, running, undrained) are never negative and add up exactly.  No lock, any thread. */
#include "runtime/runtime.h"

errand_status
errand_lease_snapshot(const errand_lease *lease, errand_snapshot *out_snapshot)
{
    errand_snapshot snapshot = {.accepted = 0};

    ERRAND_REQUIRE_ARG(lease != NULL && out_snapshot != NULL, ERRAND_EINVAL,
                       "lease and out_snapshot are needed");
    ERRAND_REQUIRE_ARG(lease->executor->fork_epoch == errand__fork_epoch(),
                       ERRAND_EFORKED, "the lease was made by the parent");
    errand__lease_account(lease, &snapshot);
    snapshot.owed = snapshot.accepted - snapshot.drained;
    *out_snapshot = snapshot;
    return ERRAND_OK;
}

void
errand__runtime_account(const errand_runtime *runtime, errand_snapshot *out)
{
    uint32_t count = atomic_load_explicit(&runtime->lease_count,
                                          memory_order_acquire); /* Pairs: lease-count */

    /* Before the leases: late and reaped are counted after drained. */
    out->late = atomic_load_explicit(&runtime->late,
                                     memory_order_acquire); /* Pairs: cell-count */
    out->reaped = atomic_load_explicit(&runtime->reaped, memory_order_acquire);
    out->stale = atomic_load_explicit(&runtime->stale, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        errand__lease_account(runtime->leases[i], out);
    out->resumed = out->drained - out->late - out->reaped;
    out->owed = out->accepted - out->drained;
    out->returned_late =
        atomic_load_explicit(&runtime->block->returned_late, memory_order_relaxed);
    out->messages_lost =
        atomic_load_explicit(&runtime->block->messages_lost, memory_order_relaxed);
    out->leaked = atomic_load_explicit(&runtime->leaked, memory_order_acquire) +
                  atomic_load_explicit(&runtime->block->leaked, memory_order_relaxed);
    out->held = atomic_load_explicit(&runtime->held, memory_order_relaxed);
}

errand_status
errand_runtime_snapshot(const errand_runtime *runtime, errand_snapshot *out_snapshot)
{
    errand_snapshot snapshot = {.accepted = 0};

    ERRAND_REQUIRE_ARG(runtime != NULL && out_snapshot != NULL, ERRAND_EINVAL,
                       "runtime and out_snapshot are needed");
    ERRAND_REQUIRE_ARG(runtime->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the runtime was made by the parent");
    errand__runtime_account(runtime, &snapshot);
    *out_snapshot = snapshot;
    return ERRAND_OK;
}

/* ---- ages (O49) ----------------------------------------------------------------------------- */

errand_status
errand_lease_ages(const errand_lease *lease, errand_executor_snapshot *out_snapshot)
{
    errand_executor_snapshot snapshot = {.workers = 0};

    ERRAND_REQUIRE_ARG(lease != NULL && out_snapshot != NULL, ERRAND_EINVAL,
                       "lease and out_snapshot are needed");
    ERRAND_REQUIRE_ARG(lease->executor->fork_epoch == errand__fork_epoch(),
                       ERRAND_EFORKED, "the lease was made by the parent");
    errand__lease_ages(lease, &snapshot);
    *out_snapshot = snapshot;
    return ERRAND_OK;
}

errand_status
errand_runtime_ages(const errand_runtime *runtime, errand_executor_snapshot *out_snapshot)
{
    errand_executor_snapshot snapshot = {.workers = 0};
    uint32_t count;

    ERRAND_REQUIRE_ARG(runtime != NULL && out_snapshot != NULL, ERRAND_EINVAL,
                       "runtime and out_snapshot are needed");
    ERRAND_REQUIRE_ARG(runtime->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the runtime was made by the parent");
    count = atomic_load_explicit(&runtime->lease_count,
                                 memory_order_acquire); /* Pairs: lease-count */
    for (uint32_t i = 0; i < count; i++) {
        errand_executor_snapshot one = {.workers = 0};

        errand__lease_ages(runtime->leases[i], &one);
        errand__ages_add(&snapshot, &one);
    }
    *out_snapshot = snapshot;
    return ERRAND_OK;
}
