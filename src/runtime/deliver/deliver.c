/* SPDX-License-Identifier: MIT */
/* Design notes: one delivery.
 *
 * What it has in hand stands in the runtime, not on the stack: every call of the host's may leave
 * by longjmp, and what was not done then happens at the next drain (O34).  So each part is crossed
 * out before it is called.  The order: account, route the wait (decode), handler, then payload,
 * follow-ups, state, recycling (O23). */
#include "runtime/runtime.h"

/* ---- the completion ------------------------------------------------------------------------- */

/* Has virtual time decided what the program hears, whatever the body answered (D143)? */
static bool
is_fixed(const errand__record *record)
{
    return record->extra != NULL && record->extra->fixed_code != ERRAND_CODE_NONE;
}

static void
fill_failure(errand_runtime *runtime, errand__record *record,
             errand_completion *completion)
{
    errand__failure *failure = errand__details_failure(record->details);

    runtime->hand_failure = failure;
    if (is_fixed(record)) {
        completion->message =
            completion->code == ERRAND_CODE_CANCELLED
                ? "cancelled while it ran: what its body made of it does not count"
                : errand_code_text(completion->code);
        return;
    }
    completion->job_code = record->job_code;
    completion->sys_errno = record->sys_errno;
    if (completion->code == ERRAND_CODE_NONE) /* it only handed something on */
        completion->message = "";
    else if (failure == NULL || failure->text[0] == '\0')
        completion->message = errand_code_text(completion->code);
    else
        completion->message = failure->text;
    if (failure == NULL)
        return;
    completion->signal_number = failure->signal_number;
    if (failure->system_call[0] != '\0')
        completion->system_call = failure->system_call;
}

static void
fill_times(errand_runtime *runtime, errand__record *record, errand_completion *completion)
{
    const errand__extra *extra = record->extra;

    completion->t_submit_ns = record->t_submit;
    if (runtime->config.times == ERRAND_TIMES_NONE)
        return;
    if (errand__seeded(runtime)) {
        completion->t_start_ns = extra->begin;
        completion->t_end_ns = runtime->scheduler.now;
        if (completion->t_start_ns > completion->t_end_ns)
            completion->t_start_ns = completion->t_end_ns;
    } else if (runtime->config.times == ERRAND_TIMES_EXACT && record->times != 0) {
        completion->t_start_ns = errand__record_label(record)->t_start;
        completion->t_end_ns = errand__record_label(record)->t_end;
    } else if (record->times != 0) {
        errand__times_unpack(record->times, runtime->block->epoch_ns, record->t_submit,
                             &completion->t_start_ns, &completion->t_end_ns);
    } else { /* its body never ran, or was not waited for */
        if (runtime->news_ns == 0)
            runtime->news_ns = errand__runtime_time(runtime);
        completion->t_start_ns = completion->t_end_ns = runtime->news_ns;
    }
    if (completion->t_start_ns < completion->t_submit_ns)
        completion->t_start_ns = completion->t_submit_ns;
    if (completion->t_end_ns < completion->t_start_ns)
        completion->t_end_ns = completion->t_start_ns;
}

/* May its completion have a trace id? */
static inline bool
has_rest(const errand__record *record)
{
    return record->extra != NULL && record->extra->labelled;
}

/* What only failures and traced operations have stays zero in between. */
static ERRAND_APART void
fill_rest(errand_runtime *runtime, errand__record *record, errand_completion *completion)
{
    completion->trace_id = record->extra != NULL && record->extra->labelled
                               ? errand__record_label(record)->trace_id
                               : 0;
    completion->job_code = completion->sys_errno = completion->signal_number = 0;
    completion->system_call = NULL;
    runtime->hand_rest = has_rest(record) || completion->code != ERRAND_CODE_NONE;
    if (completion->code != ERRAND_CODE_NONE || record->details != 0)
        fill_failure(runtime, record, completion);
}

static void
fill_completion(errand_runtime *runtime, errand__record *record, uint64_t control)
{
    errand_completion *completion = &runtime->hand_completion;

    completion->identity = errand__record_identity(runtime->id, record);
    completion->wait = record->wait;
    completion->outcome = (errand_outcome)((control >> ERRAND__OUTCOME_SHIFT) & 0xff);
    completion->code = (errand_code)((control >> ERRAND__CODE_SHIFT) & 0xff);
    completion->flags = ((control & ERRAND__FLAG_CANCEL) != 0 || record->reason != 0
                             ? ERRAND_CANCEL_REQUESTED
                             : 0) |
                        ((control & ERRAND__FLAG_HELD) != 0 ? ERRAND_HELD : 0) |
                        ((control & ERRAND__FLAG_LOST) != 0 ? ERRAND_MESSAGE_LOST : 0);
    if (is_fixed(record)) {
        completion->outcome = ERRAND_FAILED;
        completion->code = (errand_code)record->extra->fixed_code;
        completion->flags &= ~(uint32_t)ERRAND_MESSAGE_LOST;
    }
    completion->payload = (errand_payload){.data = NULL};
    if (completion->outcome == ERRAND_COMPLETED) { /* never half a result (C-F1) */
        completion->payload = record->payload;
        record->payload = (errand_payload){.data = NULL};
    }
    completion->operation = errand__record_name(record);
    completion->message = "";
    runtime->hand_failure = NULL;
    if (completion->code != ERRAND_CODE_NONE || record->details != 0 ||
        has_rest(record) || runtime->hand_rest)
        fill_rest(runtime, record, completion);
    fill_times(runtime, record, completion);
    if (__builtin_expect(runtime->unhanded, 0))
        errand__replay_fill(runtime, record, completion);
}

/* ---- routing (O46, O32) ----------------------------------------------------------------------- */

typedef struct decode_call {
    const errand_decoder_type *decoder;
    void *data;
    errand_completion *completion;
    errand_verdict verdict;
} decode_call;

static void
call_decoder(void *arg)
{
    decode_call *call = arg;

    call->decoder->decode(call->data, call->completion, &call->verdict);
}

static void
fail_decoding(errand_runtime *runtime, errand_completion *completion, const char *how,
              const char *text)
{
    completion->outcome = ERRAND_FAILED;
    completion->code = ERRAND_CODE_DECODE;
    errand__text_format(runtime->scratch, sizeof runtime->scratch,
                        "operation '%s': its decoder %s%s", completion->operation, how,
                        text);
    completion->message = runtime->scratch;
}

static errand_verdict
decode(errand_runtime *runtime, errand__record *record, errand_completion *completion)
{
    decode_call call = {
        record->decoder, record->decoder_data, completion, {.status = ERRAND_OK}};
    char text[200];

    record->decoder = NULL; /* it is used up from here on, whatever becomes of the call */
    if (errand__contained(call_decoder, &call, text, sizeof text)) {
        errand__leak_count(runtime, 1);
        fail_decoding(runtime, completion, "panicked: ", text);
        call.verdict = (errand_verdict){.status = ERRAND_EDECODE};
    }
    return call.verdict;
}

static void
drop_value(void *arg)
{
    errand_verdict *verdict = arg;

    verdict->drop(verdict->value);
}

/* Readied first: the decoder may cancel or abort the task that waits, which then finds the wait as
 * it is after a delivery.  A value that nobody will be resumed with is dropped here. */
static void
decode_for(errand_runtime *runtime, errand__record *record, errand__resume *resume)
{
    errand_verdict verdict;
    char text[64];
    bool kept;

    resume->decoding = true;
    verdict = decode(runtime, record, &runtime->hand_completion);
    kept = runtime->hand_resume == resume; /* else its task was aborted, and it is gone */
    if (kept)
        resume->decoding = false;
    if (kept && resume->completed)
        resume->verdict = verdict;
    else if (verdict.drop != NULL && verdict.value != NULL)
        errand__leak_count(runtime,
                           errand__contained(drop_value, &verdict, text, sizeof text));
}

/* Who is told?  Counts resumed, late or reaped; sets hand_resume for an active wait. */
static void
route(errand_runtime *runtime, errand__record *record)
{
    errand_completion *completion = &runtime->hand_completion;
    errand__resume *resume = record->resume;
    /* A deadline leaves an entry too, and does not end the wait. */
    bool reaped = errand__cleanup_completed(runtime, record);

    runtime->hand_resume = NULL;
    if (resume != NULL) {
        errand__count(&runtime->resumed);
        runtime->hand_resume = resume;
        errand__wait_complete(runtime, resume);
        if (completion->outcome != ERRAND_CANCELLED) {
            if (record->decoder == NULL)
                resume->verdict = (errand_verdict){.status = ERRAND_OK};
            else
                decode_for(runtime, record, resume);
        } else { /* hand_finish drops the decoder unused */
            resume->verdict.status =
                record->decoder == NULL ? ERRAND_OK : ERRAND_ECANCELLED;
            if (resume->reason == 0)
                resume->reason = runtime->closing ? ERRAND_REASON_SHUTDOWN
                                                  : ERRAND_REASON_RESOURCE_LOST;
        }
        return;
    }
    if (record->wait_state != ERRAND__WAIT_ENDED) { /* errand_drain's handler alone */
        errand__count(&runtime->resumed);
        return;
    }
    completion->flags |= ERRAND_LATE;
    if (reaped)
        errand__count(&runtime->reaped);
    else
        errand__count(&runtime->late);
}

/* ---- the item in hand ---------------------------------------------------------------------------- */

static void
held_add(errand_runtime *runtime, int amount)
{
    atomic_store_explicit(&runtime->held,
                          atomic_load_explicit(&runtime->held, memory_order_relaxed) +
                              (uint64_t)(int64_t)amount,
                          memory_order_relaxed);
}

/* May the state of a held operation be dropped now?  Not while its body still uses it. */
static ERRAND_COLD bool
body_is_back(errand_runtime *runtime, errand__record *record)
{
    if (runtime->unhanded && errand__replay_back(runtime, record))
        atomic_fetch_or_explicit(&record->control, ERRAND__FLAG_BACK,
                                 memory_order_acq_rel); /* Pairs: held-return */
    if ((atomic_fetch_or_explicit(&record->control, ERRAND__FLAG_DRAINED,
                                  memory_order_acq_rel) & /* Pairs: held-return */
         ERRAND__FLAG_BACK) == 0) {
        record->phase = ERRAND__PHASE_HELD;
        return false;
    }
    errand__input_turn(runtime, ERRAND_TURN_STEP_BACK,
                       errand__record_key(runtime, record), 0);
    held_add(runtime, -1);
    return true;
}

/* The last of an operation. */
static void
finish_record(errand_runtime *runtime, errand__record *record)
{
    if (!runtime->hand_dropped) {
        if ((atomic_load_explicit(&record->control, memory_order_relaxed) &
             ERRAND__FLAG_HELD) != 0 &&
            !body_is_back(runtime, record)) {
            runtime->hand = NULL;
            runtime->hand_live = false;
            return;
        }
        runtime->hand_dropped = true;
        if (record->job->drop != NULL)
            errand__leak_count(runtime, errand__record_drop_state(record));
    }
    runtime->hand = NULL;
    runtime->hand_live = runtime->hand_dropped = false;
    if (errand__record_whole(record) != NULL && record->extra->domain != NULL)
        errand__domain_leave(runtime, record); /* a body that was held is back */
    errand__registrar_recycle(&runtime->registrar, record);
}

/* The resume gets what the handler left. */
static void
hand_over(errand_runtime *runtime)
{
    errand__resume *resume = runtime->hand_resume;

    runtime->hand_resume = NULL;
    if (resume->decoding) { /* its decoder was left and told nothing */
        resume->decoding = false;
        fail_decoding(runtime, &runtime->hand_completion, "was left", "");
        resume->verdict = (errand_verdict){.status = ERRAND_EDECODE};
    }
    resume->completion = runtime->hand_completion;
    runtime->hand_completion.payload = (errand_payload){.data = NULL};
    resume->failure = runtime->hand_failure;
    runtime->hand_failure = NULL;
}

/* The body of a held operation came back and its completion was drained: the rest is dropped. */
void
errand__held_finish(errand_runtime *runtime, errand__record *record)
{
    runtime->hand = record;
    runtime->hand_live = true;
    errand__hand_finish(runtime);
}

/* Most operations leave nothing but, at times, a payload that was moved on. */
static inline bool
leaves_parts(const errand_runtime *runtime, const errand__record *record)
{
    return ((uintptr_t)runtime->hand_failure |
            (uintptr_t)runtime->hand_completion.payload.data |
            (uintptr_t)record->payload.data | (uintptr_t)record->decoder |
            (uintptr_t)record->hook | (record->details & ERRAND__DETAILS_FOLLOW)) != 0;
}

/* Not inlined: it calls the host's code in frames of its own, which costs every caller registers. */
__attribute__((noinline)) static void
drop_parts(errand_runtime *runtime, errand__record *record)
{
    if (runtime->hand_failure != NULL)
        errand__failure_give(runtime->block, runtime->hand_failure);
    runtime->hand_failure = NULL;
    if (runtime->hand_completion.payload.data != NULL)
        errand__leak_count(runtime,
                           errand__payload_drop(&runtime->hand_completion.payload));
    if (record->payload.data != NULL)
        errand__leak_count(runtime, errand__payload_drop(&record->payload));
    if ((record->details & ERRAND__DETAILS_FOLLOW) != 0) {
        if (is_fixed(record))
            errand__follows_drop(runtime, record);
        else
            errand__follows_take(runtime, record);
    }
    if (record->decoder != NULL)
        errand__leak_count(runtime, errand__record_drop_decoder(record));
    if (record->hook != NULL)
        errand__leak_count(runtime, errand__record_drop_hook(record));
}

void
errand__hand_finish(errand_runtime *runtime)
{
    errand__record *record = runtime->hand;

    if (!runtime->hand_live)
        return;
    if (runtime->hand_resume != NULL)
        hand_over(runtime);
    if (leaves_parts(runtime, record))
        drop_parts(runtime, record);
    finish_record(runtime, record);
    if (runtime->follow_first != 0)
        errand__follows_run(runtime);
}

void
errand__deliver(errand_runtime *runtime, errand__record *record, errand_completion_fn *fn,
                void *arg)
{
    errand_lease *lease = runtime->leases[record->lease];

    if (record->extra != NULL)
        errand__deadline_forget(runtime, record);
    lease->owed--;
    errand__count(&lease->drained);
    fill_completion(
        runtime, record,
        atomic_load_explicit(&record->control,
                             memory_order_acquire)); /* Pairs: control-settle */
    runtime->hand = record;
    runtime->hand_live = true;
    if (__builtin_expect(errand__audit_listens(&runtime->scheduler.audit), 0))
        errand__completion_audit(runtime, record); /* as it came: no decoder saw it yet */
    if (errand__record_hears(record))
        errand__leak_count(runtime, errand__record_tell(record));
    if (errand__seeded(runtime)) {
        if (runtime->hand_completion.code == ERRAND_CODE_DEADLINE)
            errand__due_limited(runtime, record);
        errand__told(runtime, record, runtime->hand_completion.outcome,
                     runtime->hand_completion.code);
    }
    route(runtime, record);
    if (fn != NULL) {
        errand__lock_none_held();
        fn(arg, &runtime->hand_completion);
    }
    errand__hand_finish(runtime);
}
