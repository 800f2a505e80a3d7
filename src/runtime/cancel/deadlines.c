/* SPDX-License-Identifier: MIT */
/* Design notes: deadlines are cancels that the clock asks for.
 *
 * A body that heeds one ends by itself: what it completes counts, and a failure of its own has the
 * code DEADLINE, unless a cancel asked before (settle.c makes it so, as it counts the codes).
 * A body that does not heed its deadline is settled by the library with HELD and its worker
 * written off (O45).  In the seeded orders the deadline is a moment of virtual time, and a begun
 * operation that it finds fails with DEADLINE at its due. */
#include "core/pause.h"
#include "runtime/runtime.h"

void
errand__deadline_set(errand_runtime *runtime, errand__record *record, unsigned stage,
                     uint64_t in_ns)
{
    errand__extra *extra = record->extra;
    uint64_t due = errand__time_add(errand__runtime_read(runtime), in_ns);

    if (extra->deadline_entry.position != 0 && extra->deadline_entry.major <= due)
        return;
    errand__heap_remove(&runtime->deadlines, &extra->deadline_entry);
    extra->deadline_stage = (uint8_t)stage;
    extra->deadline_entry.major = due;
    extra->deadline_entry.minor = runtime->scheduler.registrations++; /* as timers, O72 */
    extra->deadline_entry.last = record->slot;
    errand__heap_insert(&runtime->deadlines, &extra->deadline_entry);
}

void
errand__deadline_forget(errand_runtime *runtime, errand__record *record)
{
    if (record->extra->deadline_stage != ERRAND__STAGE_NONE)
        errand__heap_remove(&runtime->deadlines, &record->extra->deadline_entry);
}

void
errand__deadline_begin(errand_runtime *runtime, errand__record *record)
{
    if (record->extra->deadline_ns != 0)
        errand__deadline_set(runtime, record, ERRAND__STAGE_OWN,
                             record->extra->deadline_ns);
}

/* The body did not end: its operation does, and the worker is replaced. */
static void
settle_held(errand_runtime *runtime, errand__record *record, errand_code code)
{
    errand_lease *lease = runtime->leases[record->lease];
    uint32_t generation = (uint32_t)record->generation;

    ERRAND__PAUSE("write-off");
    if (errand__replay_arrival(runtime)) {
        /* In the log it runs; here nobody has it, and what it ends with is in the log, too. */
        bool held = errand__input_is(runtime, record, ERRAND__RUNNING);

        if (held &&
            errand__settle_queued(runtime->block, record, generation, ERRAND_FAILED, code,
                                  &lease->cells[0], &errand__owner_putter)) {
            atomic_fetch_or_explicit(&record->control, ERRAND__FLAG_HELD,
                                     memory_order_relaxed);
            errand__count(&runtime->held);
        }
        errand__input_found(runtime, record, held ? ERRAND__RUNNING : ERRAND__SETTLED, 0);
        return;
    }
    if (!errand__settle_begin(record, generation, ERRAND__RUNNING, ERRAND_FAILED, code,
                              ERRAND__FLAG_HELD)) {
        errand__input_found(runtime, record, ERRAND__SETTLED, 0);
        return;
    }
    errand__input_found(runtime, record, ERRAND__RUNNING, 0);
    errand__count(&runtime->held);
    if (lease->executor->ops->write_off != NULL)
        lease->executor->ops->write_off(lease, record, generation);
    record->payload = (errand_payload){.data = NULL};
    record->times = 0;
    record->job_code = record->sys_errno = 0;
    errand__settle(runtime->block, record, &lease->cells[0], &errand__owner_putter);
}

/* The seeded orders: before its begin it is over, after it at its due; no worker is written off,
 * because when a body would end is real. */
static void
virtual_fire(errand_runtime *runtime, errand__record *record)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);
    bool settled = errand__control_state(control) == ERRAND__SETTLED &&
                   (record->owner_flags & ERRAND__OWN_HANDED) == 0;

    if (!settled &&
        !errand__cancel_queued(runtime, record, ERRAND_FAILED, ERRAND_CODE_DEADLINE) &&
        runtime->scheduler.now < record->extra->due)
        errand__ask_to_end(runtime, record, ERRAND_CODE_DEADLINE);
}

static void
deadline_fire(errand_runtime *runtime, errand__record *record)
{
    unsigned state, stage = record->extra->deadline_stage;
    uint64_t control;

    record->extra->deadline_stage = ERRAND__STAGE_NONE;
    errand__tell_job(runtime, record);
    if (errand__virtually(runtime, record)) {
        virtual_fire(runtime, record);
        return;
    }
    errand__input_turn(runtime, ERRAND_TURN_STEP_DEADLINE,
                       errand__record_key(runtime, record), 0);
    state = errand__input_state(runtime, record, &control);
    if (state == ERRAND__SETTLED ||
        (state == ERRAND__QUEUED &&
         errand__cancel_queued(runtime, record, ERRAND_FAILED, ERRAND_CODE_DEADLINE)))
        return;
    if (stage == ERRAND__STAGE_OWN &&
        record->resource_class != ERRAND_QUARANTINED_BLOCKING) {
        errand__deadline_set(runtime, record, ERRAND__STAGE_GRACE,
                             runtime->config.grace_ns);
        errand__ask_to_end(runtime, record, ERRAND_CODE_DEADLINE);
        return;
    }
    settle_held(runtime, record,
                stage == ERRAND__STAGE_BOUND ? ERRAND_CODE_BOUND : ERRAND_CODE_DEADLINE);
}

size_t
errand__deadlines_fire(errand_runtime *runtime, size_t budget)
{
    uint64_t now = errand__runtime_time(runtime);
    size_t fired = 0;

    while (fired < budget) {
        errand__heap_entry *first = errand__heap_first(&runtime->deadlines);

        if (first == NULL || first->major > now || first->major == UINT64_MAX)
            break;
        errand__heap_remove(&runtime->deadlines, first);
        deadline_fire(runtime, &runtime->registrar.records[first->last]);
        fired++;
    }
    return fired;
}

bool
errand__deadline_replay(errand_runtime *runtime, errand__record *record)
{
    if (record->extra->brief || record->extra->deadline_entry.position == 0)
        return false;
    errand__heap_remove(&runtime->deadlines, &record->extra->deadline_entry);
    deadline_fire(runtime, record);
    return true;
}
