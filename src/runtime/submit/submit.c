/* SPDX-License-Identifier: MIT */
/* Design notes: the point of admission (O18).
 *
 * First everything that may refuse, changing nothing.  Then the count of accepted operations,
 * then the arming, then the hand-over: so whoever looks at the counts after the arming sees the
 * operation, and from the arming on exactly one completion is owed.  In arrival order the
 * hand-over is to the executor at once; in the seeded orders to the due heap, from where it
 * goes to the executor at its due (order_runtime.c). */
#include "core/pause.h"
#include "runtime/runtime.h"

#define CLOCK_AGE_NS                                                                     \
    UINT64_C(1000000) /* how old the clock reading of submissions may be */

#define FLUSH_MANY 16 /* paced: so many may be handed over before sleepers are woken */

#define CLOCK_SHARED    15 /* submissions in a drain that may share one reading */
#define CLOCK_SHARED_NS UINT64_C(50000)

/* Time of a submission, without a system clock call for each.  *out_cycles: what the counter said
 * then; untouched: nobody read it. */
static uint64_t
submit_time(errand_runtime *runtime, uint64_t *out_cycles)
{
    uint64_t passed;

    if (runtime->config.times == ERRAND_TIMES_NONE)
        return 0;
    if (!runtime->scheduler.real_clock)
        return runtime->scheduler.now;
    if (runtime->clock_left > 0 && (runtime->draining || runtime->driving)) {
        runtime->clock_left--;
        return runtime->clock_submit;
    }
    *out_cycles = errand__cycles();
    passed =
        (uint64_t)((double)(*out_cycles - runtime->clock_cycles) * runtime->ns_per_cycle);
    if (passed < CLOCK_AGE_NS) {
        uint64_t now = runtime->clock_ns + passed;

        /* Handlers that are quick at submitting: their next few submissions share a time. */
        if (now - runtime->clock_submit < CLOCK_SHARED_NS)
            runtime->clock_left = CLOCK_SHARED;
        return runtime->clock_submit = now;
    }
    runtime->clock_cycles = *out_cycles = errand__cycles();
    runtime->clock_ns = errand__clock_now();
    return runtime->clock_submit = runtime->clock_ns;
}

/* An executor of the host's may call back: what would end the runtime under it answers EBUSY. */
static inline errand_status
reserve(errand_runtime *runtime, errand_lease *lease)
{
    const errand__executor_ops *ops = lease->executor->ops;
    errand_status status;
    bool calling;

    if (__builtin_expect(!ops->is_hosts, 1))
        return ops->reserve(lease, 1);
    calling = errand__calls_begin(runtime);
    status = ops->reserve(lease, 1);
    errand__calls_end(runtime, calling);
    return status;
}

static inline void
hand_over(errand_runtime *runtime, errand_lease *lease, errand__record *record,
          uint32_t generation)
{
    const errand__executor_ops *ops = lease->executor->ops;
    bool calling;

    record->owner_flags |= ERRAND__OWN_HANDED;
    if (__builtin_expect(!ops->is_hosts, 1)) {
        ops->submit(lease, record, generation);
        return;
    }
    calling = errand__calls_begin(runtime);
    ops->submit(lease, record, generation);
    errand__calls_end(runtime, calling);
}

void
errand__hand_over(errand_runtime *runtime, errand__record *record)
{
    errand_lease *lease = runtime->leases[record->lease];

    lease->submit_cycles = 0;
    hand_over(runtime, lease, record, (uint32_t)record->generation);
    if (lease->executor->ops->flush != NULL)
        lease->unflushed = runtime->unflushed = true;
}

/* Everything that may refuse.  Changes nothing. */
static errand_status
admissible(errand_runtime *runtime, errand_lease *lease, bool quarantined)
{
    if (__builtin_expect(runtime->config.held_replay != NULL, 0)) {
        errand_status status = errand__input_refusal(runtime);

        if (status != ERRAND_OK)
            return status;
    }
    if (runtime->closing || lease->closed || lease->refusing)
        return ERRAND_ECLOSED;
    if (lease->owed >= lease->owed_max)
        return ERRAND_EFULL;
    if (quarantined && atomic_load_explicit(&runtime->held, memory_order_relaxed) >=
                           runtime->config.held_max)
        return ERRAND_EFULL;
    return runtime->unhanded ? ERRAND_OK : reserve(runtime, lease);
}

/* The queue that the record needs; asked of the executor once per lane and priority, where nothing
 * else hangs on it. */
static inline errand_status
make_ready(errand_lease *lease, const errand__record *record)
{
    uint64_t bit = UINT64_C(1) << (errand__lane_of(record) * 3 + record->priority);
    const errand__extra *whole = errand__record_whole(record);
    bool plain = record->resource_class != ERRAND_INTERRUPTIBLE_ASYNC &&
                 (whole == NULL || whole->soft_ns == 0);
    errand_status status;

    if (plain && (lease->ready & bit) != 0) /* never set with ready_each */
        return ERRAND_OK;
    if (((errand_runtime *)lease->runtime)->unhanded)
        return ERRAND_OK;
    status = lease->executor->ops->ready(lease, record);
    if (status == ERRAND_OK && plain && !lease->executor->ops->ready_each)
        lease->ready |= bit;
    return status;
}

static ERRAND_APART void
queue_seeded(errand_runtime *runtime, errand__record *record, errand_task *task)
{
    errand__order_queue(runtime, record, task);
}

static ERRAND_APART void
audit(errand_runtime *runtime, errand__record *record, errand_task *task)
{
    errand__submit_audit(runtime, record, task);
}

/* Nothing here can fail.  named: see errand__arm. */
static void
admit(errand_runtime *runtime, errand_lease *lease, errand__record *record,
      errand_task *task, bool named)
{
    uint32_t generation;

    ERRAND__PAUSE("submit-checked");
    record->lease = lease->index;
    record->lane = errand__lane_of(record);
    lease->submit_cycles = 0;
    record->t_submit = submit_time(runtime, &lease->submit_cycles);
    lease->owed++;
    errand__count(&lease->accepted);
    ERRAND__PAUSE("submit-counted");
    record->phase = ERRAND__PHASE_ARMED;
    if (errand__record_whole(record) != NULL)
        errand__deadline_begin(runtime, record);
    generation = errand__arm(record, named);
    ERRAND__PAUSE("submit-armed");
    if (errand__seeded(runtime)) {
        queue_seeded(runtime, record, task);
    } else {
        if (errand__audit_listens(&runtime->scheduler.audit))
            audit(runtime, record, task);
        if (__builtin_expect(runtime->unhanded, 0))
            goto handed; /* its result is in the log */
        errand__extra *whole = errand__record_whole(record);

        if (__builtin_expect(whole != NULL && whole->domain != NULL, 0))
            errand__domain_enter(runtime, record);
        else
            hand_over(runtime, lease, record, generation);
    }
handed:
    ERRAND__PAUSE("submit-handed");
}

/* It was not admissible. */
static ERRAND_COLD errand_status
refuse(errand_runtime *runtime, errand_status status, const char *name, uint32_t kind,
       errand_task *task)
{
    if (status != ERRAND_ENOTHREAD || !errand__seeded(runtime))
        return errand__input_refused(runtime, status, task);
    errand__external_thread(runtime, name, kind);
    return ERRAND_EEXTERNAL;
}

errand_status
errand__admit(errand_lease *lease, errand__record *record, errand_task *task)
{
    errand_runtime *runtime = lease->runtime;
    errand_status status =
        admissible(runtime, lease, record->resource_class == ERRAND_QUARANTINED_BLOCKING);

    if (status != ERRAND_OK)
        return refuse(runtime, status, errand__record_name(record), record->kind, task);
    status = make_ready(lease, record);
    if (status != ERRAND_OK)
        return errand__input_refused(runtime, status, task);
    admit(runtime, lease, record, task, true);
    return ERRAND_OK;
}

static inline errand_status
lease_check(const errand_lease *lease, const char *function)
{
    if (lease == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "the lease is NULL");
    return errand__runtime_enter(lease->runtime, function);
}

errand_status
errand__refusal_tell(errand_status status, const char *function)
{
    if (status == ERRAND_ECLOSED)
        (void)errand__misuse(status, function, "runtime or lease is being shut down");
    return status;
}

static errand_status
submit_one(errand_lease *lease, errand_submission *take_submission, const char *function)
{
    errand__record *record;
    errand_status status = errand__token_record(
        take_submission->held_record, take_submission->stamp, function, &record);

    if (status != ERRAND_OK)
        return status;
    if (errand__record_owner(record) != lease->runtime)
        return errand__misuse(ERRAND_EFOREIGN, function,
                              "the lease is another runtime's");
    if (record->phase != ERRAND__PHASE_SPLIT)
        return errand__misuse(ERRAND_ESPENT, function, "it was submitted already");
    if ((record->owner_flags & ERRAND__OWN_CANCELLED) != 0)
        return ERRAND_ECANCELLED;
    status = errand__admit(lease, record, NULL);
    if (status != ERRAND_OK)
        return errand__refusal_tell(status, function);
    *take_submission = (errand_submission){NULL, 0};
    return ERRAND_OK;
}

void
errand__flush(errand_lease *lease)
{
    errand_runtime *runtime = lease->runtime;

    if (lease->unflushed && runtime->draining) /* its handler submits many */
        return;
    if (lease->executor->ops->flush == NULL || errand__seeded(runtime))
        return;
    if (runtime->draining || runtime->driving)
        lease->unflushed = runtime->unflushed = true;
    else
        lease->executor->ops->flush(lease);
}

void
errand__flush_all(errand_runtime *runtime)
{
    uint32_t count = atomic_load_explicit(&runtime->lease_count, memory_order_relaxed);

    if (!runtime->unflushed)
        return;
    runtime->unflushed = false;
    runtime->unflushed_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        errand_lease *lease = runtime->leases[i];

        if (lease->unflushed && !lease->closed)
            lease->executor->ops->flush(lease);
        lease->unflushed = false;
    }
}

void
errand__flush_many(errand_runtime *runtime)
{
    if (!errand__paced(runtime) || runtime->unflushed_count >= FLUSH_MANY)
        errand__flush_all(runtime);
}

errand_status
errand_submit(errand_lease *lease, errand_submission *take_submission)
{
    errand_status status = lease_check(lease, __func__);

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(take_submission != NULL, ERRAND_EINVAL, "take_submission is NULL");
    status = submit_one(lease, take_submission, __func__);
    if (status == ERRAND_OK)
        errand__flush(lease);
    return status;
}

errand_status
errand_submit_many(errand_lease *lease, errand_submission *take_submissions, size_t count,
                   size_t *out_accepted)
{
    errand_status status = lease_check(lease, __func__);
    size_t accepted = 0;

    if (status == ERRAND_OK && out_accepted == NULL)
        return errand__misuse(ERRAND_EINVAL, __func__, "out_accepted is NULL");
    if (status == ERRAND_OK && take_submissions == NULL && count > 0)
        status = errand__misuse(ERRAND_EINVAL, __func__, "take_submissions is NULL");
    while (status == ERRAND_OK && accepted < count) {
        status = submit_one(lease, &take_submissions[accepted], __func__);
        accepted += status == ERRAND_OK;
    }
    if (accepted > 0)
        errand__flush(lease);
    if (out_accepted != NULL)
        *out_accepted = accepted;
    return status;
}

errand_status
errand__start(errand_lease *lease, const errand_spec *spec, void *wait,
              errand__resume *resume, errand_task *task, errand_identity *out_identity)
{
    errand_runtime *runtime = lease->runtime;
    errand__record *record;
    errand__extra *extra = NULL;
    errand_status status =
        admissible(runtime, lease, spec->resource_class == ERRAND_QUARANTINED_BLOCKING);

    if (status == ERRAND_OK && errand__needs_extra(runtime, spec))
        status = errand__extra_make(runtime, spec, &extra);
    if (status != ERRAND_OK)
        return refuse(runtime, status,
                      spec->held_name != NULL ? spec->held_name : spec->held_job->name,
                      spec->kind, task);
    status = errand__registrar_issue(&runtime->registrar, spec->kind, wait, &record);
    if (status == ERRAND_OK) {
        errand__record_fill(record, spec, extra);
        status = make_ready(lease, record);
        if (status != ERRAND_OK)
            errand__registrar_recycle(&runtime->registrar,
                                      record); /* extra goes with it */
    } else if (extra != NULL) {
        errand__extra_give(&runtime->registrar, extra);
    }
    if (status != ERRAND_OK)
        return errand__input_refused(runtime, status, task);
    if (resume != NULL)
        errand__wait_begin(runtime, record, resume);
    if (out_identity != NULL)
        *out_identity = errand__record_identity(runtime->id, record);
    admit(runtime, lease, record, task, false);
    return ERRAND_OK;
}

errand_status
errand_start(errand_lease *lease, const errand_spec *spec, void *wait,
             errand_identity *out_identity)
{
    errand_status status = lease_check(lease, __func__);
    const char *text;

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(spec != NULL, ERRAND_EINVAL, "spec is NULL");
    if (!errand__spec_is_plain(spec) && errand__spec_check(spec, &text) != ERRAND_OK)
        return errand__misuse(ERRAND_EINVAL, __func__, text);
    status = errand__start(lease, spec, wait, NULL, NULL, out_identity);
    if (status != ERRAND_OK)
        return errand__refusal_tell(status, __func__);
    errand__flush(lease);
    return ERRAND_OK;
}
