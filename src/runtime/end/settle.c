/* SPDX-License-Identifier: MIT */
/* Design notes: what is out is asked to end, and waited for until a deadline.
 *
 * What is queued is cancelled before anything that runs is asked: a body that heeds it lets its
 * worker go, which would begin the next one that is to be cancelled, and that may take its time.
 *
 * A lease's end tells nobody: what comes stays buffered for the next drain.  A runtime's drains
 * meanwhile, since what handlers do may settle more. */
#include "runtime/end/end.h"

bool
errand__end_news(errand_runtime *runtime, errand_shutdown_mode mode)
{
    errand_completion_fn *fn =
        mode == ERRAND_SHUTDOWN_RUN ? runtime->config.on_completion : NULL;
    bool any = false;

    errand__hand_finish(runtime);
    errand__deadlines_fire(runtime, runtime->deadlines.count);
    errand__collect(runtime);
    while (errand__deliver_next(runtime, fn, runtime->config.held_on_completion_arg) !=
           ERRAND__ITEM_NONE)
        any = true;
    return any;
}

/* A lease's end tells nobody: what came stays buffered for the next drain, in order. */
static void
keep_news(errand_runtime *runtime)
{
    errand__deadlines_fire(runtime, runtime->deadlines.count);
    errand__collect(runtime);
}

/* Is there nothing to wait for?  Of a lease: nothing is unsettled.  Of all (NULL): nothing is owed,
 * because an operation counts as settled a moment before its completion is put. */
static bool
at_rest(const errand_runtime *runtime, const errand_lease *only)
{
    uint32_t count = atomic_load_explicit(&runtime->lease_count, memory_order_relaxed);
    errand_snapshot snapshot = {.accepted = 0};
    uint64_t owed = 0;

    if (only != NULL) {
        errand__lease_account(only, &snapshot);
        return snapshot.queued + snapshot.running == 0;
    }
    for (uint32_t i = 0; i < count; i++)
        owed += runtime->leases[i]->owed;
    return owed == 0;
}

void
errand__end_queued(errand_runtime *runtime, bool waited_only)
{
    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];
        bool waited = record->wait_state == ERRAND__WAIT_ACTIVE;

        if (record->phase != ERRAND__PHASE_ARMED || record == runtime->hand ||
            (waited_only && !waited) ||
            !errand__cancel_queued(runtime, record, ERRAND_CANCELLED,
                                   ERRAND_CODE_CANCELLED))
            continue;
        errand__tell_job(runtime, record);
        if (!waited)
            errand__cancel_record(runtime, record, ERRAND_REASON_SHUTDOWN);
        else if (record->reason == 0)
            record->reason = ERRAND_REASON_SHUTDOWN;
    }
}

void
errand__end_cancel(errand_runtime *runtime, const errand_lease *only, bool queued_only)
{
    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];
        unsigned state;
        uint64_t control;

        if (record->phase != ERRAND__PHASE_ARMED || record == runtime->hand ||
            (only != NULL && runtime->leases[record->lease] != only))
            continue;
        state = errand__input_state(runtime, record, &control);
        if (state == ERRAND__SETTLED || (queued_only && state != ERRAND__QUEUED))
            continue;
        errand__cancel_record(runtime, record, ERRAND_REASON_SHUTDOWN);
    }
}

void
errand__end_settle(errand_runtime *runtime, const errand_lease *only,
                   uint64_t deadline_ns, errand_shutdown_mode mode)
{
    for (;;) {
        uint64_t now;

        if (only == NULL)
            errand__end_news(runtime, mode);
        else
            keep_news(runtime);
        if (at_rest(runtime, only) || (only != NULL && runtime->unhanded))
            break; /* nobody has what a replay's log will tell of */
        now = errand__clock_now();
        if (now >= deadline_ns)
            break;
        for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
            errand_lease *lease = runtime->leases[i];

            if (!lease->closed && (only == NULL || only == lease) &&
                lease->executor->ops->step != NULL)
                lease->executor->ops->step(
                    lease); /* woken async jobs of a manual executor */
        }
        errand__flush_all(runtime);
        if (errand__inbox_empty(runtime->block))
            errand__sleep_at_most(runtime, deadline_ns - now < UINT64_C(10000000)
                                               ? deadline_ns - now
                                               : UINT64_C(10000000));
    }
    if (only == NULL)
        errand__end_news(runtime, mode);
}
