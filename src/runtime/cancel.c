/* SPDX-License-Identifier: MIT */
/* Design notes: changes of mind.
 *
 * The wait ends at once with the reason; the operation ends at its completion (O36).  A queued
 * one is settled here, whatever the workers do (O22).  A running one has its token set and its
 * hook called, once for life.  Deadlines are cancels that the clock asks for; a body that does
 * not heed its deadline is settled by the library with HELD and its worker written off (O45).
 *
 * In the seeded orders "queued" and "running" follow virtual time: queued until begin, running
 * until due, whatever has really happened (D141). */
#include "core/pause.h"
#include "runtime/runtime.h"

enum { /* extra->deadline_stage: what the entry in the deadline heap waits for */
       STAGE_NONE = 0,
       STAGE_OWN = 1,   /* the operation's deadline, from submit */
       STAGE_GRACE = 2, /* asked to end: now it is settled without its body */
       STAGE_BOUND = 3  /* beyond its finite work */
};

static errand_lease *
lease_of(errand_runtime *runtime, errand__record *record)
{
    return runtime->leases[record->lease];
}

/* ---- deadlines ------------------------------------------------------------------------------------ */

/* What comes first counts: a later limit never puts off one that is set already. */
static void
deadline_set(errand_runtime *runtime, errand__record *record, unsigned stage,
             uint64_t in_ns)
{
    errand__extra *extra = record->extra;
    uint64_t due = errand__time_add(errand__runtime_time(runtime), in_ns);

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
    errand__heap_remove(&runtime->deadlines, &record->extra->deadline_entry);
}

void
errand__deadline_begin(errand_runtime *runtime, errand__record *record)
{
    if (record->extra->deadline_ns != 0)
        deadline_set(runtime, record, STAGE_OWN, record->extra->deadline_ns);
}

/* Does virtual time say how far it is?  Not once it was handed to its executor, nor at the end
 * of its runtime or lease, which no due will be waited for. */
static bool
virtually(errand_runtime *runtime, errand__record *record)
{
    return errand__seeded(runtime) && !runtime->closing &&
           !lease_of(runtime, record)->refusing &&
           (record->owner_flags & ERRAND__OWN_HANDED) == 0;
}

/* Is it, for everyone who can see it, still waiting for its begin? */
static bool
before_begin(errand_runtime *runtime, errand__record *record)
{
    return !virtually(runtime, record) || runtime->scheduler.now < record->extra->begin;
}

/* Settles a queued operation; false: it runs, or has ended. */
static bool
settle_queued(errand_runtime *runtime, errand__record *record, errand_outcome outcome,
              errand_code code)
{
    errand_lease *lease = lease_of(runtime, record);

    if (!before_begin(runtime, record) ||
        !errand__settle_queued(runtime->block, record, (uint32_t)record->generation,
                               outcome, code, &lease->cells[0], &errand__owner_putter))
        return false;
    if (errand__seeded(runtime))
        errand__order_forget(&runtime->scheduler, record->extra);
    if ((record->owner_flags & ERRAND__OWN_HANDED) != 0)
        lease->executor->ops->stale(lease, record->lane, record->priority);
    return true;
}

typedef struct hook_call {
    const errand_hook_type *hook;
    void *data;
    errand_hook_answer answer;
    char text[128];
} hook_call;

static void
call_cancel_hook(void *arg)
{
    hook_call *call = arg;

    call->answer = call->hook->cancel(call->data, call->text, sizeof call->text);
}

static void
nudge(errand_lease *lease, errand__record *record)
{
    /* Seeded orders: before its due no executor knows it. */
    if ((record->owner_flags & ERRAND__OWN_HANDED) != 0 &&
        lease->executor->ops->nudge != NULL)
        lease->executor->ops->nudge(lease, record, (uint32_t)record->generation);
}

/* Sets the token and calls the hook, once for life (O38). */
static void
ask_to_end(errand_runtime *runtime, errand__record *record)
{
    errand_lease *lease = lease_of(runtime, record);
    bool quarantined = record->resource_class == ERRAND_QUARANTINED_BLOCKING;
    char text[64];

    errand__token_set(record);
    if ((record->owner_flags & ERRAND__OWN_HOOK_RAN) == 0) {
        record->owner_flags |= ERRAND__OWN_HOOK_RAN;
        if (quarantined) {
            errand__cleanup_add(runtime, record, NULL);
        } else if (record->hook != NULL) {
            hook_call call = {record->hook, record->hook_data, ERRAND_HOOK_ERROR, ""};

            nudge(lease, record); /* the hook may be left by longjmp */
            if (errand__contained(call_cancel_hook, &call, text, sizeof text) ||
                call.answer != ERRAND_HOOK_REAPED)
                errand__cleanup_add(runtime, record,
                                    call.answer == ERRAND_HOOK_ERROR ? call.text : NULL);
        }
    }
    nudge(lease, record);
}

/* The body did not end: its operation does, and the worker is replaced. */
static void
settle_held(errand_runtime *runtime, errand__record *record, errand_code code)
{
    errand_lease *lease = lease_of(runtime, record);
    uint32_t generation = (uint32_t)record->generation;

    ERRAND__PAUSE("write-off");
    if (!errand__settle_begin(record, generation, ERRAND__RUNNING, ERRAND_FAILED, code,
                              ERRAND__FLAG_HELD))
        return;
    errand__count(&runtime->held);
    if (lease->executor->ops->write_off != NULL)
        lease->executor->ops->write_off(lease, record, generation);
    record->payload = (errand_payload){.data = NULL};
    record->times = 0;
    record->job_code = record->sys_errno = 0;
    errand__settle(runtime->block, record, &lease->cells[0], &errand__owner_putter);
}

static void
deadline_fire(errand_runtime *runtime, errand__record *record)
{
    unsigned stage = record->extra->deadline_stage;
    unsigned state = errand__control_state(
        atomic_load_explicit(&record->control, memory_order_acquire));

    record->extra->deadline_stage = STAGE_NONE;
    if (state == ERRAND__SETTLED ||
        (state == ERRAND__QUEUED &&
         settle_queued(runtime, record, ERRAND_FAILED, ERRAND_CODE_DEADLINE)))
        return;
    if (stage == STAGE_OWN && record->resource_class != ERRAND_QUARANTINED_BLOCKING) {
        deadline_set(runtime, record, STAGE_GRACE, runtime->config.grace_ns);
        ask_to_end(runtime, record);
        return;
    }
    settle_held(runtime, record,
                stage == STAGE_BOUND ? ERRAND_CODE_BOUND : ERRAND_CODE_DEADLINE);
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

/* ---- cancel ------------------------------------------------------------------------------------------- */

static errand_cancel_answer
cancel_armed(errand_runtime *runtime, errand__record *record, bool again)
{
    errand__extra *extra = record->extra;
    bool seeded_done = virtually(runtime, record) && runtime->scheduler.now >= extra->due;
    unsigned state;

    if (!seeded_done &&
        settle_queued(runtime, record, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED))
        return ERRAND_CANCEL_CANCELLED;
    state = errand__control_state(
        atomic_load_explicit(&record->control, memory_order_acquire));
    if (state == ERRAND__SETTLED || seeded_done) {
        bool cancelled = ((atomic_load_explicit(&record->control, memory_order_relaxed) >>
                           ERRAND__OUTCOME_SHIFT) &
                          0xff) == ERRAND_CANCELLED;

        return again && cancelled && state == ERRAND__SETTLED ? ERRAND_CANCEL_ALREADY
                                                              : ERRAND_CANCEL_SETTLED;
    }
    if (!again) {
        if (extra != NULL && extra->quarantine_ns != 0)
            deadline_set(runtime, record, STAGE_GRACE, extra->quarantine_ns);
        ask_to_end(runtime, record);
    }
    return ERRAND_CANCEL_RUNNING;
}

/* The order of O37: wait removed, word tried, hook run, decoder dropped; and the continuation is
 * ready whatever becomes of the calls in between. */
errand_cancel_answer
errand__cancel_record(errand_runtime *runtime, errand__record *record,
                      errand_reason reason)
{
    errand_cancel_answer answer = ERRAND_CANCEL_NOT_SUBMITTED;
    bool again = record->reason != 0, told = record->wait_state == ERRAND__WAIT_ACTIVE;

    if (!again)
        record->reason = (uint8_t)reason;
    errand__audit_step(
        &runtime->scheduler, ERRAND_STEP_CANCEL, (uint32_t)reason,
        record->extra != NULL ? record->extra->key : record->operation, 0,
        record->phase == ERRAND__PHASE_ISSUED ? NULL : errand__record_name(record));
    if (told)
        errand__wait_end(runtime, record->resume, reason);
    else if (record->wait_state == ERRAND__WAIT_HALF &&
             record->phase == ERRAND__PHASE_ARMED)
        record->wait_state = ERRAND__WAIT_ENDED;
    switch (record->phase) {
    case ERRAND__PHASE_ARMED:
        if (record->wait_state == ERRAND__WAIT_NONE)
            record->wait_state = ERRAND__WAIT_ENDED; /* its completion is late */
        told = true;
        answer = cancel_armed(runtime, record, again);
        break;
    case ERRAND__PHASE_HELD:
        answer = ERRAND_CANCEL_SETTLED;
        break;
    default:
        record->owner_flags |= ERRAND__OWN_CANCELLED;
    }
    if (told)
        errand__leak_count(runtime, errand__record_drop_decoder(record));
    return answer;
}

static bool
reason_known(errand_reason reason)
{
    return reason > ERRAND_REASON_NONE && reason <= ERRAND_REASON_SHUTDOWN;
}

errand_status
errand_cancel(errand_runtime *runtime, const errand_identity *identity,
              errand_reason reason, errand_cancel_answer *out_answer)
{
    errand__record *record;
    errand_cancel_answer answer = ERRAND_CANCEL_UNKNOWN;
    bool calling;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(identity != NULL && reason_known(reason), ERRAND_EINVAL,
                       "identity is NULL, or the reason is unknown");
    ERRAND_REQUIRE_ARG(identity->runtime == runtime->id, ERRAND_EFOREIGN,
                       "the identity is another runtime's");
    record = errand__registrar_find(&runtime->registrar, identity);
    calling = errand__calls_begin(runtime);
    if (record != NULL && record != runtime->hand)
        answer = errand__cancel_record(runtime, record, reason);
    else if (record == NULL && errand__wait_recall(runtime, identity, reason))
        answer = ERRAND_CANCEL_SETTLED;
    errand__calls_end(runtime, calling);
    if (out_answer != NULL)
        *out_answer = answer;
    return ERRAND_OK;
}

/* ---- later, posted --------------------------------------------------------------------------------------- */

void
errand__posted_run(errand_runtime *runtime, errand__record *record)
{
    uint64_t before = atomic_fetch_and_explicit(
        &record->control, ~(ERRAND__FLAG_POSTED | ERRAND__FLAG_ASKED),
        memory_order_acq_rel); /* Pairs: control-post */
    errand__extra *extra = record->extra;

    if (record->phase == ERRAND__PHASE_LINGER) {
        errand__registrar_recycle(&runtime->registrar, record);
        return;
    }
    if ((before & ERRAND__FLAG_ASKED) != 0) {
        errand__foreign_mark(runtime, "a posted cancel");
        errand__cancel_record(runtime, record, ERRAND_REASON_EXPLICIT);
    }
    if (record->phase == ERRAND__PHASE_ARMED && extra != NULL && extra->work_max != 0 &&
        atomic_load_explicit(&extra->work_done, memory_order_relaxed) > extra->work_max) {
        errand__token_set(record);
        deadline_set(runtime, record, STAGE_BOUND, runtime->config.grace_ns);
    }
}

errand_status
errand_cancel_later(errand_runtime *runtime, const errand_identity *identity)
{
    errand__record *record;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(identity != NULL, ERRAND_EINVAL, "identity is NULL");
    record = errand__registrar_find(&runtime->registrar, identity);
    if (record == NULL)
        return ERRAND_EUNKNOWN;
    record->owner_flags |= ERRAND__OWN_LATER;
    runtime->later++;
    errand__fd_news(runtime);
    return ERRAND_OK;
}

errand_status
errand_abandon_later(errand_submission *take_submission)
{
    errand__record *record;
    errand_status status;

    ERRAND_REQUIRE_ARG(take_submission != NULL, ERRAND_EINVAL, "take_submission is NULL");
    status = errand__token_record(take_submission->held_record, take_submission->stamp,
                                  __func__, &record);
    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(record->phase == ERRAND__PHASE_SPLIT &&
                           (record->owner_flags & ERRAND__OWN_ABANDON) == 0,
                       ERRAND_ESPENT, "it was submitted or abandoned already");
    record->owner_flags |= ERRAND__OWN_LATER | ERRAND__OWN_ABANDON;
    record->phase = ERRAND__PHASE_DOOMED;
    ((errand_runtime *)errand__record_owner(record))->later++;
    errand__fd_news(errand__record_owner(record));
    *take_submission = (errand_submission){NULL, 0};
    return ERRAND_OK;
}

/* In slot order: no list is needed, so a finaliser's call touches one flag. */
void
errand__later_run(errand_runtime *runtime)
{
    runtime->later = 1; /* until all were seen: a call in between may be left */
    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];
        bool abandon = (record->owner_flags & ERRAND__OWN_ABANDON) != 0;

        if (record->phase == ERRAND__PHASE_FREE ||
            record->phase == ERRAND__PHASE_LINGER || record == runtime->hand ||
            (record->owner_flags & ERRAND__OWN_LATER) == 0)
            continue;
        record->owner_flags &= (uint8_t) ~(ERRAND__OWN_LATER | ERRAND__OWN_ABANDON);
        if (abandon)
            errand__record_abandon(runtime, record);
        else
            errand__cancel_record(runtime, record, ERRAND_REASON_EXPLICIT);
    }
    if (runtime->later == 1)
        runtime->later = 0; /* else there were more meanwhile: next time */
}
