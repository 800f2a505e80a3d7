/* SPDX-License-Identifier: MIT */
/* Design notes: tokens.
 *
 * A prepared token points at a prepared block, the later ones at their record; both stay mapped
 * while the runtime lives, and the stamp (a block's use number, a record's generation) tells a
 * stale copy from a live one.  What a token may do next is the record's phase, so a copy that
 * was moved on is recognised as well. */
#include "runtime/runtime.h"

errand_status
errand_prepare(errand_runtime *runtime, const errand_spec *spec,
               errand_prepared *out_prepared)
{
    errand__prepared *prepared;
    const char *text;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(spec != NULL && out_prepared != NULL, ERRAND_EINVAL,
                       "spec and out_prepared are needed");
    if (errand__spec_check(spec, &text) != ERRAND_OK)
        return errand__misuse(ERRAND_EINVAL, __func__, text);
    if (runtime->closing) /* what is prepared was dropped, or is being */
        return errand__misuse(ERRAND_ECLOSED, __func__, "the runtime is being shut down");
    prepared = errand__prepared_take(&runtime->registrar);
    if (prepared == NULL)
        return ERRAND_ENOMEM;
    prepared->spec = *spec;
    *out_prepared = (errand_prepared){prepared, prepared->stamp};
    return ERRAND_OK;
}

/* The block of a live token on the owner's thread, or NULL. */
static errand__prepared *
prepared_of(const errand_prepared *token)
{
    errand__prepared *prepared = token == NULL ? NULL : token->held_record;

    if (prepared == NULL || !prepared->taken || prepared->stamp != token->stamp)
        return NULL;
    return prepared;
}

uint32_t
errand_prepared_kind(const errand_prepared *prepared)
{
    errand__prepared *block = prepared_of(prepared);

    return block == NULL ? 0 : block->spec.kind;
}

static errand_runtime *
prepared_runtime(errand__prepared *prepared)
{
    return ERRAND__CONTAINER(prepared->registrar, errand_runtime, registrar);
}

void
errand_prepared_abandon(errand_prepared *take_prepared)
{
    errand__prepared *prepared;

    if (take_prepared == NULL)
        return;
    prepared = take_prepared->held_record;
    if (prepared != NULL &&
        errand__runtime_check(prepared_runtime(prepared), __func__) != ERRAND_OK)
        return;
    prepared = prepared_of(take_prepared);
    *take_prepared = (errand_prepared){NULL, 0};
    if (prepared != NULL) {
        errand_runtime *runtime = prepared_runtime(prepared);
        bool calling = errand__calls_begin(runtime);

        prepared->stamp++; /* copies of the token are spent */
        errand__leak_count(runtime, errand__spec_drop(&prepared->spec));
        errand__prepared_give(prepared);
        errand__calls_end(runtime, calling);
    }
}

errand_status
errand_issue(errand_runtime *runtime, uint32_t kind, void *wait,
             errand_identity *out_identity)
{
    errand__record *record;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(kind != 0 && out_identity != NULL, ERRAND_EINVAL,
                       "kind must not be 0, out_identity not NULL");
    if (runtime->closing)
        return errand__misuse(ERRAND_ECLOSED, __func__, "the runtime is being shut down");
    status = errand__registrar_issue(&runtime->registrar, kind, wait, &record);
    if (status != ERRAND_OK)
        return status;
    *out_identity = errand__record_identity(runtime->id, record);
    return ERRAND_OK;
}

/* An identity's record in phase ISSUED, or why not. */
static errand_status
issued_find(errand_runtime *runtime, const errand_identity *identity,
            const char *function, errand__record **out_record)
{
    errand__record *record;

    if (identity->runtime != runtime->id)
        return errand__misuse(ERRAND_EFOREIGN, function,
                              "the identity is another runtime's");
    record = errand__registrar_find(&runtime->registrar, identity);
    if (record == NULL || record->phase != ERRAND__PHASE_ISSUED)
        return errand__misuse(ERRAND_ESPENT, function,
                              "the identity was bound or retired already");
    *out_record = record;
    return ERRAND_OK;
}

errand_status
errand_retire(errand_runtime *runtime, const errand_identity *identity)
{
    errand__record *record;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(identity != NULL, ERRAND_EINVAL, "identity is NULL");
    status = issued_find(runtime, identity, __func__, &record);
    if (status == ERRAND_OK)
        errand__registrar_recycle(&runtime->registrar, record);
    return status;
}

bool
errand__needs_extra(const errand_runtime *runtime, const errand_spec *spec)
{
    return errand__seeded(runtime) || errand__inputs(runtime) ||
           runtime->config.times == ERRAND_TIMES_EXACT ||
           errand__spec_needs_label(spec) || errand__spec_needs_extra(spec);
}

/* Does it wait for its job alone?  Then it never stands in a heap or a queue of the runtime's. */
static bool
may_be_brief(const errand_runtime *runtime, const errand_spec *spec)
{
    return !errand__seeded(runtime) && !errand__inputs(runtime) &&
           (spec->deadline_ns | spec->soft_ns | spec->quarantine_ns | spec->work_max |
            spec->domain) == 0;
}

ERRAND_APART errand_status
errand__extra_make(errand_runtime *runtime, const errand_spec *spec,
                   errand__extra **out_extra)
{
    bool brief = may_be_brief(runtime, spec);
    bool async = spec->resource_class == ERRAND_INTERRUPTIBLE_ASYNC;
    errand__extra *extra;

    if (!errand__block_labels(runtime->block))
        return ERRAND_ENOMEM;
    if (!errand__seeded(runtime) && !errand__inputs(runtime) &&
        !errand__spec_needs_extra(spec)) {
        *out_extra = &errand__label_only;
        return ERRAND_OK;
    }
    extra = errand__extra_take(&runtime->registrar, brief);
    *out_extra = extra;
    if (extra == NULL)
        return ERRAND_ENOMEM;
    if (async) /* its last job's: only now, when its lines are needed */
        errand__waker_renew(&extra->waker);
    /* Each armed operation may stand in the deadline heap: room for all that live. */
    if ((brief || errand__heap_reserve(&runtime->deadlines,
                                       (size_t)runtime->registrar.live + 1)) &&
        (!errand__seeded(runtime) ||
         errand__order_reserve(&runtime->scheduler,
                               (size_t)runtime->registrar.live + 1)) &&
        (!async || extra->waker != NULL ||
         (extra->waker = errand__waker_create()) != NULL) &&
        (spec->domain == 0 || (extra->domain = errand__domain_hold(
                                   &runtime->registrar, spec->domain)) != NULL))
        return ERRAND_OK;
    errand__extra_give(&runtime->registrar, extra);
    *out_extra = NULL;
    return ERRAND_ENOMEM;
}

errand_status
errand_bind(errand_runtime *runtime, const errand_identity *identity,
            errand_prepared *take_prepared, errand_binding *out_binding)
{
    errand__prepared *prepared;
    errand__record *record;
    errand__extra *extra = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(identity != NULL && take_prepared != NULL && out_binding != NULL,
                       ERRAND_EINVAL,
                       "identity, take_prepared and out_binding are needed");
    prepared = prepared_of(take_prepared);
    ERRAND_REQUIRE_ARG(prepared != NULL, ERRAND_ESPENT,
                       "the prepared operation was used already");
    ERRAND_REQUIRE_ARG(prepared->registrar == &runtime->registrar, ERRAND_EFOREIGN,
                       "it was prepared for another runtime");
    status = issued_find(runtime, identity, __func__, &record);
    if (status != ERRAND_OK)
        return status;
    if (identity->kind != prepared->spec.kind) {
        char text[96];

        errand__text_format(text, sizeof text,
                            "the identity expects kind %u, prepared is kind %u",
                            identity->kind, prepared->spec.kind);
        return errand__misuse(ERRAND_EKIND, __func__, text);
    }
    if (errand__needs_extra(runtime, &prepared->spec)) {
        status = errand__extra_make(runtime, &prepared->spec, &extra);
        if (status != ERRAND_OK)
            return status;
    }
    errand__record_fill(record, &prepared->spec, extra);
    record->phase = ERRAND__PHASE_BOUND;
    errand__prepared_give(prepared);
    *take_prepared = (errand_prepared){NULL, 0};
    *out_binding = (errand_binding){record, record->generation};
    return ERRAND_OK;
}

/* The record of a token whose runtime lives and belongs to this thread; NULL = it is spent. */
errand_status
errand__token_record(void *held_record, uint64_t stamp, const char *function,
                     errand__record **out_record)
{
    errand__record *record = held_record;
    errand_status status;

    if (record == NULL)
        return errand__misuse(ERRAND_ESPENT, function,
                              "the token is empty: it was used already");
    status = errand__runtime_check(errand__record_owner(record), function);
    if (status != ERRAND_OK)
        return status;
    if (record->generation != stamp || record->phase == ERRAND__PHASE_FREE)
        return errand__misuse(ERRAND_ESPENT, function, "its operation has ended");
    *out_record = record;
    return ERRAND_OK;
}

errand_status
errand_split(errand_binding *take_binding, errand_wait *out_wait,
             errand_submission *out_submission)
{
    errand__record *record;
    errand_status status;

    ERRAND_REQUIRE_ARG(take_binding != NULL && out_wait != NULL && out_submission != NULL,
                       ERRAND_EINVAL,
                       "take_binding, out_wait and out_submission are needed");
    status = errand__token_record(take_binding->held_record, take_binding->stamp,
                                  __func__, &record);
    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(record->phase == ERRAND__PHASE_BOUND, ERRAND_ESPENT,
                       "the binding was split already");
    record->phase = ERRAND__PHASE_SPLIT;
    record->wait_state = ERRAND__WAIT_HALF;
    *out_wait = (errand_wait){record, record->generation};
    *out_submission = (errand_submission){record, record->generation};
    *take_binding = (errand_binding){NULL, 0};
    return ERRAND_OK;
}

errand_status
errand_await(errand_wait *take_wait, const errand_continuation *continuation)
{
    errand__record *record;
    errand__resume *resume;
    errand_status status;

    ERRAND_REQUIRE_ARG(
        take_wait != NULL && continuation != NULL && continuation->resume != NULL,
        ERRAND_EINVAL, "take_wait and a continuation with resume are needed");
    status =
        errand__token_record(take_wait->held_record, take_wait->stamp, __func__, &record);
    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(
        record->phase == ERRAND__PHASE_SPLIT ||
            (record->phase == ERRAND__PHASE_ARMED &&
             record != ((errand_runtime *)errand__record_owner(record))->hand),
        ERRAND_ESPENT, "its completion was delivered, or it was abandoned");
    if (record->reason != 0) /* cancelled, submitted or not */
        return ERRAND_ECANCELLED;
    ERRAND_REQUIRE_ARG(record->wait_state == ERRAND__WAIT_HALF, ERRAND_ESPENT,
                       "the wait was registered or abandoned already");
    resume = errand__resume_take(errand__record_owner(record));
    if (resume == NULL)
        return ERRAND_ENOMEM;
    resume->continuation = *continuation;
    errand__wait_begin(errand__record_owner(record), record, resume);
    *take_wait = (errand_wait){NULL, 0};
    return ERRAND_OK;
}

/* Drops everything that an unarmed record owns and gives it back.  If one of the calls is left by
 * longjmp, the next drain or drive goes on here (errand__later_run). */
void
errand__record_abandon(errand_runtime *runtime, errand__record *record)
{
    if (record->phase != ERRAND__PHASE_ISSUED) {
        record->phase = ERRAND__PHASE_DOOMED;
        record->owner_flags |= ERRAND__OWN_LATER | ERRAND__OWN_ABANDON;
        runtime->later++;
        if (record->resume != NULL)
            errand__wait_forget(runtime, record->resume);
        errand__leak_count(runtime, errand__record_drop_decoder(record));
        errand__leak_count(runtime, errand__record_drop_hook(record));
        if ((record->owner_flags & ERRAND__OWN_DROPPED) == 0) {
            record->owner_flags |= ERRAND__OWN_DROPPED;
            errand__leak_count(runtime, errand__record_drop_state(record));
        }
        runtime->later--;
        record->owner_flags = 0;
    }
    errand__registrar_recycle(&runtime->registrar, record);
}

/* May this thread do anything about the token?  If not it keeps it. */
static bool
token_usable(void *held_record, const char *function)
{
    return held_record == NULL || errand__runtime_check(errand__record_owner(held_record),
                                                        function) == ERRAND_OK;
}

static void
token_abandon(void *held_record, uint64_t stamp, errand__phase phase)
{
    errand__record *record = held_record;
    errand_runtime *runtime;
    bool calling;

    if (record == NULL || record->generation != stamp || record->phase != phase)
        return;
    runtime = errand__record_owner(record);
    calling = errand__calls_begin(runtime);
    errand__record_abandon(runtime, record);
    errand__calls_end(runtime, calling);
}

void
errand_binding_abandon(errand_binding *take_binding)
{
    errand_binding token;

    if (take_binding == NULL || !token_usable(take_binding->held_record, __func__))
        return;
    token = *take_binding;
    *take_binding = (errand_binding){NULL, 0};
    token_abandon(token.held_record, token.stamp, ERRAND__PHASE_BOUND);
}

void
errand_submission_abandon(errand_submission *take_submission)
{
    errand_submission token;

    if (take_submission == NULL || !token_usable(take_submission->held_record, __func__))
        return;
    token = *take_submission;
    *take_submission = (errand_submission){NULL, 0};
    token_abandon(token.held_record, token.stamp, ERRAND__PHASE_SPLIT);
}

void
errand_wait_abandon(errand_wait *take_wait)
{
    errand__record *record;

    if (take_wait == NULL || !token_usable(take_wait->held_record, __func__))
        return;
    record = take_wait->held_record;
    if (record != NULL && record->generation == take_wait->stamp &&
        record->phase != ERRAND__PHASE_FREE && record->wait_state == ERRAND__WAIT_HALF)
        record->wait_state = ERRAND__WAIT_NONE;
    *take_wait = (errand_wait){NULL, 0};
}
