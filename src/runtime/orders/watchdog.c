/* SPDX-License-Identifier: MIT */
/* Design notes: what virtual time cannot express (D141).
 *
 * A due operation is waited for in real time, but not for ever: when the watchdog's time is over,
 * or no thread can be made to run it, the run ends with a report.  It never becomes an answer: a
 * timeout or a failure that hung on real time would make real time an input of the program.
 *
 * Before that, a job that no worker takes because all are busy is run by the owner: who runs it is
 * not to be seen. */
#include "runtime/runtime.h"

#define RESCUE_AFTER_NS                                                                  \
    UINT64_C(5000000) /* far longer than a worker that is free needs to take a job */
#define STEP_AGAIN_NS                                                                    \
    UINT64_C(1000000) /* an async job on a stepped executor is pending */

static const char of_bodies[] =
    "; its own deadline is virtual here: give what it does a real limit (a sandbox's "
    "deadline_ns, a time-out), or raise watchdog_ns";
/* What waits for somebody else is not served by what is due later. */
static const char of_waits[] =
    ": it waits for a peer that says nothing, or that is part of this run: nothing of "
    "the run goes on until it has ended; talk to another process, or use the order "
    "arrival";

static void
say_late(errand_runtime *runtime, const errand__record *record, uint64_t ns)
{
    runtime->external = true;
    runtime->external_status = ERRAND_EEXTERNAL;
    errand__text_format(
        runtime->external_text, sizeof runtime->external_text,
        "operation %llu '%s' of kind %u, due at %llu ns of virtual time, "
        "has not ended after %llu.%03llu s of real time%s",
        (unsigned long long)record->operation, errand__record_name(record), record->kind,
        (unsigned long long)record->extra->due, (unsigned long long)(ns / 1000000000),
        (unsigned long long)(ns / 1000000 % 1000),
        record->resource_class == ERRAND_INTERRUPTIBLE_ASYNC ? of_waits : of_bodies);
}

static bool
is_queued(const errand__record *record)
{
    return errand__control_state(atomic_load_explicit(
               &record->control, memory_order_relaxed)) == ERRAND__QUEUED;
}

bool
errand__due_sleep(errand_runtime *runtime, errand__record *record, uint64_t *since)
{
    errand_lease *lease = runtime->leases[record->lease];
    const errand__executor_ops *ops = lease->executor->ops;
    uint64_t now = errand__clock_now(), limit = runtime->config.watchdog_ns;

    if (*since == 0)
        *since = now;
    if (runtime->closing) {
        if (now >= runtime->stop_ns)
            return false;
        limit = runtime->stop_ns - now;
    } else if (now - *since >= limit) {
        say_late(runtime, record, now - *since);
        return false;
    } else {
        limit -= now - *since;
    }
    errand__interrupt_take(runtime); /* the operation at hand is asked to end, too */
    if (ops->step != NULL && limit > STEP_AGAIN_NS)
        limit = STEP_AGAIN_NS;
    if (ops->rescue != NULL) {
        if (now - *since >= RESCUE_AFTER_NS && ops->rescue(lease, record))
            return true;
        if (limit > RESCUE_AFTER_NS && is_queued(record))
            limit = RESCUE_AFTER_NS;
    }
    errand__sleep_at_most(runtime, limit);
    return true;
}

bool
errand__due_lost(errand_runtime *runtime, const errand__record *record)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    if (runtime->closing ||
        ((control >> ERRAND__CODE_SHIFT) & 0xff) != ERRAND_CODE_WORKER_LOST)
        return false;
    runtime->external = true;
    runtime->external_status = ERRAND_EEXTERNAL;
    errand__text_format(
        runtime->external_text, sizeof runtime->external_text,
        "operation %llu '%s' of kind %u was never run: its worker was lost "
        "and could not be replaced",
        (unsigned long long)record->operation, errand__record_name(record), record->kind);
    return true;
}

void
errand__due_limited(errand_runtime *runtime, const errand__record *record)
{
    const errand__extra *extra = record->extra;

    if (runtime->closing || runtime->foreign_input || extra == NULL ||
        extra->fixed_code == ERRAND_CODE_DEADLINE ||
        (record->owner_flags & ERRAND__OWN_HANDED) == 0)
        return;
    runtime->foreign_input = true;
    errand__text_format(runtime->foreign_text, sizeof runtime->foreign_text,
                        "a real limit ended operation %llu '%.40s'",
                        (unsigned long long)record->operation,
                        errand__record_name(record));
}

void
errand__external_thread(errand_runtime *runtime, const char *name, uint32_t kind)
{
    if (runtime->external)
        return;
    runtime->external = true;
    runtime->external_status = ERRAND_EEXTERNAL;
    errand__text_format(runtime->external_text, sizeof runtime->external_text,
                        "operation '%s' of kind %u was not submitted: no worker thread "
                        "could be made for it",
                        name == NULL ? "operation" : name, kind);
}
