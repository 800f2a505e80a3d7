/* SPDX-License-Identifier: MIT */
/* Design notes: changes of mind.
 *
 * The wait ends at once with the reason; the operation ends at its completion (O36).  A queued
 * one is settled here, whatever the workers do (O22).  A running one has its token set and its
 * hook called, once for life.
 *
 * In the seeded orders "queued" and "running" follow virtual time: queued until begin, running
 * until due, whatever has really happened (D141).  A begun operation that may leave something
 * behind runs to its end unasked, since how far it had come would be seen; one that is effect-free
 * is asked, and its completion says at its due what it would say at best (D143). */
#include "runtime/runtime.h"

/* So many jobs are asked to end before those of the thread's own leases are polled: their lines are
 * still near. */
#define ASKED_MANY 16

static errand_lease *
lease_of(errand_runtime *runtime, errand__record *record)
{
    return runtime->leases[record->lease];
}

bool
errand__cancel_queued(errand_runtime *runtime, errand__record *record,
                      errand_outcome outcome, errand_code code)
{
    errand_lease *lease = lease_of(runtime, record);

    if (errand__virtually(runtime, record) &&
        runtime->scheduler.now >= record->extra->begin)
        return false;
    /* What it will say is decided, and a shutdown's tasks are still driven: at its due. */
    if (errand__seeded(runtime) && record->extra->fixed_code != ERRAND_CODE_NONE &&
        !(runtime->closing && runtime->draining && runtime->driving))
        return false;
    if (errand__inputs(runtime) && errand__replay_arrival(runtime) &&
        !errand__input_is(runtime, record, ERRAND__QUEUED))
        return false;
    if (!errand__settle_queued(runtime->block, record, (uint32_t)record->generation,
                               outcome, code, &lease->cells[0], &errand__owner_putter))
        return false;
    errand__input_found(runtime, record, ERRAND__QUEUED, 0);
    if (errand__seeded(runtime))
        errand__order_forget(&runtime->scheduler, record->extra);
    if ((record->owner_flags & ERRAND__OWN_HANDED) != 0) {
        record->owner_flags &= (uint8_t)~ERRAND__OWN_HANDED;
        lease->executor->ops->stale(lease, record->lane, record->priority);
    }
    errand__told(runtime, record, outcome, code);
    errand__domain_leave(runtime, record);
    return true;
}

void
errand__tell_job(errand_runtime *runtime, errand__record *record)
{
    bool has_state = record->phase == ERRAND__PHASE_BOUND ||
                     record->phase == ERRAND__PHASE_SPLIT ||
                     record->phase == ERRAND__PHASE_ARMED;

    if (has_state && errand__record_hears(record))
        errand__leak_count(runtime, errand__record_tell(record));
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

static void
call_hook(errand_runtime *runtime, errand__record *record, bool sealed)
{
    hook_call call = {record->hook, record->hook_data, ERRAND_HOOK_ERROR, ""};
    uint64_t key = errand__record_key(runtime, record);
    char text[64];

    nudge(lease_of(runtime, record), record); /* the hook may be left by longjmp */
    if (errand__input_hook(runtime, key, 0, &call.answer) &&
        errand__contained(call_cancel_hook, &call, text, sizeof text))
        call.answer = ERRAND_HOOK_ERROR;
    errand__input_hooked(runtime, key, 0, call.answer);
    if (call.answer != ERRAND_HOOK_REAPED)
        errand__cleanup_add(runtime, record,
                            call.answer == ERRAND_HOOK_ERROR ? call.text : NULL, sealed,
                            true);
}

void
errand__ask_to_end(errand_runtime *runtime, errand__record *record, errand_code code)
{
    bool is_virtual = errand__virtually(runtime, record);
    bool heard = !is_virtual || record->extra->effect_free;

    if (is_virtual && record->extra->fixed_code == ERRAND_CODE_NONE &&
        (heard || code == ERRAND_CODE_DEADLINE))
        record->extra->fixed_code = (uint8_t)code;
    if (heard && !is_virtual && code == ERRAND_CODE_DEADLINE)
        errand__token_set_overdue(record);
    else if (heard)
        errand__token_set(record);
    if ((record->owner_flags & ERRAND__OWN_HOOK_RAN) == 0) {
        record->owner_flags |= ERRAND__OWN_HOOK_RAN;
        if (record->resource_class == ERRAND_QUARANTINED_BLOCKING)
            errand__cleanup_add(runtime, record, NULL, false, true);
        else if (record->hook != NULL && heard)
            call_hook(runtime, record, is_virtual);
        else if (record->hook != NULL)
            errand__cleanup_add(runtime, record, NULL, true, false);
    } else if (!is_virtual) {
        errand__cleanup_ask(runtime, record); /* what heard nothing so far */
    }
    if (heard)
        nudge(lease_of(runtime, record), record);
}

/* ---- cancel ------------------------------------------------------------------------------------------- */

static errand_cancel_answer
answer_settled(uint64_t control, bool again)
{
    return again && ((control >> ERRAND__OUTCOME_SHIFT) & 0xff) == ERRAND_CANCELLED
               ? ERRAND_CANCEL_ALREADY
               : ERRAND_CANCEL_SETTLED;
}

/* Its begin has come; what its executor has made of it is nobody's business (D141). */
static errand_cancel_answer
cancel_begun(errand_runtime *runtime, errand__record *record, uint64_t control,
             bool again)
{
    bool before = errand__control_state(control) == ERRAND__SETTLED &&
                  (record->owner_flags & ERRAND__OWN_HANDED) == 0;

    if (before)
        return answer_settled(control, again);
    if (runtime->scheduler.now >= record->extra->due)
        return ERRAND_CANCEL_SETTLED;
    if (!again)
        errand__ask_to_end(runtime, record, ERRAND_CODE_CANCELLED);
    return ERRAND_CANCEL_RUNNING;
}

static errand_cancel_answer
cancel_armed(errand_runtime *runtime, errand__record *record, bool again)
{
    const errand__extra *extra = errand__record_whole(record);
    uint64_t control;

    if (errand__cancel_queued(runtime, record, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED))
        return ERRAND_CANCEL_CANCELLED;
    if (errand__virtually(runtime, record)) {
        control = atomic_load_explicit(&record->control, memory_order_acquire);
        return cancel_begun(runtime, record, control, again);
    }
    if (errand__input_state(runtime, record, &control) == ERRAND__SETTLED)
        return answer_settled(control, again);
    if (!again || errand__seeded(runtime)) {
        if (extra != NULL && extra->quarantine_ns != 0)
            errand__deadline_set(runtime, record, ERRAND__STAGE_GRACE,
                                 extra->quarantine_ns);
        errand__ask_to_end(runtime, record, ERRAND_CODE_CANCELLED);
    }
    return ERRAND_CANCEL_RUNNING;
}

static ERRAND_APART void
audit(errand_runtime *runtime, const errand__record *record, errand_reason reason)
{
    errand__audit_step(
        &runtime->scheduler, ERRAND_STEP_CANCEL, (uint32_t)reason,
        errand__record_key(runtime, record), 0,
        record->phase == ERRAND__PHASE_ISSUED ? NULL : errand__record_name(record));
}

/* The order of O37: wait removed, word tried, hook run, decoder dropped; and the continuation is
 * ready whatever becomes of the calls in between. */
errand_cancel_answer
errand__cancel_record(errand_runtime *runtime, errand__record *record,
                      errand_reason reason)
{
    errand_cancel_answer answer = ERRAND_CANCEL_NOT_SUBMITTED;
    bool again = record->reason != 0, told = record->wait_state == ERRAND__WAIT_ACTIVE;
    errand_identity identity;

    if (!again)
        record->reason = (uint8_t)reason;
    if (errand__audit_listens(&runtime->scheduler.audit))
        audit(runtime, record, reason);
    if (told)
        errand__wait_end(runtime, record->resume, reason);
    else if (record->wait_state == ERRAND__WAIT_HALF &&
             record->phase == ERRAND__PHASE_ARMED)
        record->wait_state = ERRAND__WAIT_ENDED;
    errand__tell_job(runtime, record);
    switch (record->phase) {
    case ERRAND__PHASE_ARMED:
        if (record->wait_state == ERRAND__WAIT_NONE)
            record->wait_state = ERRAND__WAIT_ENDED; /* its completion is late */
        told = true;
        answer = cancel_armed(runtime, record, again);
        break;
    case ERRAND__PHASE_HELD: /* heard, but perhaps not resumed yet */
        identity = errand__record_identity(runtime->id, record);
        (void)errand__wait_recall(runtime, &identity, reason);
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
    if (answer == ERRAND_CANCEL_RUNNING &&
        record->resource_class == ERRAND_INTERRUPTIBLE_ASYNC &&
        ++runtime->unpolled >= ASKED_MANY) {
        runtime->unpolled = 0;
        errand__flush(lease_of(runtime, record));
    }
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
    errand__extra *extra = errand__record_whole(record);

    if (record->phase == ERRAND__PHASE_LINGER) {
        errand__registrar_recycle(&runtime->registrar, record);
        return;
    }
    errand__posted_apply(
        runtime, record, (before & ERRAND__FLAG_ASKED) != 0,
        record->phase == ERRAND__PHASE_ARMED && extra != NULL && extra->work_max != 0 &&
            atomic_load_explicit(&extra->work_done, memory_order_relaxed) >
                extra->work_max);
}

void
errand__posted_apply(errand_runtime *runtime, errand__record *record, bool asked,
                     bool reported)
{
    uint64_t key = errand__record_key(runtime, record);

    if (asked) {
        errand__foreign_mark(runtime, ERRAND__FOREIGN_CANCEL, key);
        errand__cancel_record(runtime, record, ERRAND_REASON_EXPLICIT);
    }
    if (reported && record->phase == ERRAND__PHASE_ARMED) {
        if (errand__inputs(runtime))
            errand__foreign_mark(runtime, ERRAND__FOREIGN_WORK, key);
        errand__tell_job(runtime, record);
        errand__token_set(record);
        nudge(lease_of(runtime, record), record);
        errand__deadline_set(runtime, record, ERRAND__STAGE_BOUND,
                             runtime->config.grace_ns);
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
