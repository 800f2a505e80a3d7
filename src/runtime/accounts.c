/* SPDX-License-Identifier: MIT */
/* Design notes: snapshots (O48).
 *
 * Counters only grow, stage by stage.  A snapshot reads them from the last stage to the first,
 * so each stage that it read is at most the stage before it, and the terms that it derives
 * (queued, running, undrained) are never negative and add up exactly.  No lock, any thread.
 *
 * In the seeded orders the runtime's own thread sees what virtual time says (D141): queued until
 * begin, running until due, and terminals of what has ended for the program. */
#include "runtime/runtime.h"

void
errand__told(errand_runtime *runtime, errand__record *record, errand_outcome outcome,
             errand_code code)
{
    errand_lease *lease = runtime->leases[record->lease];

    if (!errand__seeded(runtime) || record->extra->counted)
        return;
    record->extra->counted = true;
    lease->told_outcomes[outcome]++;
    if (code != ERRAND_CODE_NONE)
        lease->told_codes[code]++;
    if (record->extra->domain != NULL)
        errand__domain_told(record->extra);
}

static void
set_terminals(const uint64_t *outcomes, errand_snapshot *out)
{
    out->completed = outcomes[ERRAND_COMPLETED];
    out->failed = outcomes[ERRAND_FAILED];
    out->cancelled = outcomes[ERRAND_CANCELLED];
    out->panicked = outcomes[ERRAND_PANICKED];
    out->crashed = outcomes[ERRAND_CRASHED];
}

/* Terminals as the program was told them, of one lease or (NULL) all. */
static void
tell_terminals(const errand_runtime *runtime, const errand_lease *only,
               errand_snapshot *out)
{
    uint64_t outcomes[6] = {0};

    for (int k = 0; k < ERRAND_CODES; k++)
        out->codes[k] = 0;
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
        const errand_lease *lease = runtime->leases[i];

        if (only != NULL && only != lease)
            continue;
        for (int k = 0; k < 6; k++)
            outcomes[k] += lease->told_outcomes[k];
        for (int k = 0; k < ERRAND_CODES; k++)
            out->codes[k] += lease->told_codes[k];
    }
    set_terminals(outcomes, out);
}

/* May this thread see what virtual time says, and does it still say anything? */
static bool
sees_virtual(const errand_runtime *runtime)
{
    return errand__seeded(runtime) && !runtime->closing &&
           atomic_load_explicit(&runtime->owner,
                                memory_order_acquire) == /* Pairs: runtime-owner */
               errand__thread_self();
}

static void
account_virtually(const errand_runtime *runtime, const errand_lease *only,
                  errand_snapshot *out)
{
    const errand__scheduler *scheduler = &runtime->scheduler;
    const errand__heap_entry *entry;
    size_t place = 0;

    out->queued = out->running = 0;
    while ((entry = errand__dues_walk(&scheduler->due, &place)) != NULL) {
        const errand__extra *extra =
            ERRAND__CONTAINER(entry, const errand__extra, due_entry);
        const errand__record *record = &runtime->registrar.records[extra->slot];

        if (only != NULL && runtime->leases[record->lease] != only)
            continue;
        out->queued += scheduler->now < extra->begin;
        out->running += extra->begin <= scheduler->now && scheduler->now < extra->due;
    }
    out->undrained =
        out->accepted - out->drained - out->undeliverable - out->queued - out->running;
    tell_terminals(runtime, only, out);
}

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
    if (sees_virtual(lease->runtime))
        account_virtually(lease->runtime, lease, &snapshot);
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
    if (runtime->closed && errand__seeded(runtime)) /* the closing report */
        tell_terminals(runtime, NULL, out);
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
    if (sees_virtual(runtime))
        account_virtually(runtime, NULL, &snapshot);
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
    if (errand__virtual_inside())
        return errand__virtual_refuse(__func__);
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
    if (errand__virtual_inside())
        return errand__virtual_refuse(__func__);
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
