/* SPDX-License-Identifier: MIT */
/* Design notes: the public face of order.h: latencies, digest, trace, notes.
 *
 * What a payload adds to the digest is its size, and a canonical hash if the host registered one
 * for its type: bytes as they lie in memory may hold padding and addresses, which would make
 * equal runs differ (D151). */
#include "runtime/runtime.h"
#include "scheduler/audit.h"

errand_status
errand_order_latency(errand_runtime *runtime, uint32_t kind, uint64_t estimate_ns)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(kind != 0 && estimate_ns != 0 &&
                           estimate_ns <= ERRAND__LATENCY_MAX,
                       ERRAND_EINVAL, "kind and estimate_ns are 1 or more, at most 2^62");
    if (!errand__seeded(runtime))
        return errand__misuse(ERRAND_EUNSUPPORTED, __func__,
                              "in arrival order operations take as long as they take");
    return errand__latency_set(&runtime->scheduler, kind, estimate_ns);
}

uint64_t
errand_digest(const errand_runtime *runtime)
{
    if (errand__runtime_check(runtime, __func__) != ERRAND_OK)
        return 0;
    return errand__seeded(runtime) ? errand__audit_digest(&runtime->scheduler.audit) : 0;
}

errand_status
errand_audit_note(errand_runtime *runtime, const char *label, const void *bytes,
                  size_t size)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(label != NULL && (bytes != NULL || size == 0), ERRAND_EINVAL,
                       "label and bytes are needed");
    if (!errand__audit_listens(&runtime->scheduler.audit))
        return ERRAND_OK;
    errand__record_note(runtime, label, bytes, size);
    errand__audit_event(&runtime->scheduler,
                        &(errand_step){
                            .kind = ERRAND_STEP_NOTE,
                            .value = errand__mix_bytes(size, bytes, size),
                            .context = size,
                            .label = label,
                        },
                        errand__label_hash(label));
    return ERRAND_OK;
}

errand_status
errand_audit_payload(errand_runtime *runtime, const errand_payload_type *held_type,
                     uint64_t (*fn)(const void *data, size_t size))
{
    errand__digesters *digester;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(held_type != NULL && fn != NULL, ERRAND_EINVAL,
                       "held_type and fn are needed");
    digester = errand__digester_need(runtime, held_type);
    if (digester == NULL)
        return ERRAND_ENOMEM;
    digester->digest = fn;
    return ERRAND_OK;
}

errand__digesters *
errand__digester_find(const errand_runtime *runtime, const errand_payload_type *type)
{
    errand__digesters *digester = runtime->digesters;

    while (digester != NULL && digester->type != type)
        digester = digester->next;
    return digester;
}

errand__digesters *
errand__digester_need(errand_runtime *runtime, const errand_payload_type *type)
{
    errand__digesters *digester = errand__digester_find(runtime, type);

    if (digester != NULL)
        return digester;
    digester = errand__mem_alloc(runtime->allocator, sizeof *digester);
    if (digester == NULL)
        return NULL;
    *digester = (errand__digesters){.next = runtime->digesters, .type = type};
    runtime->digesters = digester;
    return digester;
}

errand_status
errand_trace(errand_runtime *runtime, errand_trace_fn *fn, void *arg)
{
    ERRAND__ENTER(runtime);
    runtime->scheduler.audit.trace = fn;
    runtime->scheduler.audit.trace_arg = arg;
    errand__audit_heard(&runtime->scheduler.audit);
    return ERRAND_OK;
}

bool
errand_reproducible(const errand_runtime *runtime, char *out_text, size_t size)
{
    if (errand__runtime_check(runtime, __func__) != ERRAND_OK)
        return false;
    if (out_text != NULL && size > 0)
        errand__text_format(out_text, size, "%s", runtime->foreign_text);
    return !runtime->foreign_input;
}

void
errand__order_fini(errand_runtime *runtime)
{
    while (runtime->digesters != NULL) {
        struct errand__digesters *digester = runtime->digesters;

        runtime->digesters = digester->next;
        errand__mem_free(runtime->allocator, digester, sizeof *digester);
    }
}

/* ---- steps of operations -------------------------------------------------------------------- */

/* The host's own hash, else that of what the type's codec writes. */
static uint64_t
payload_digest(const errand_runtime *runtime, const errand_payload *payload)
{
    const errand__digesters *digester;
    uint64_t digest = 0;
    bool kept;

    if (payload->data == NULL || payload->held_type == NULL)
        return 0;
    digester = errand__digester_find(runtime, payload->held_type);
    if (digester == NULL)
        return 0;
    if (digester->digest != NULL)
        return digester->digest(payload->data, payload->size);
    if (!errand__sink_encode(digester->codec, payload->data, payload->size, NULL, &digest,
                             &kept))
        return 0;
    return digest;
}

void
errand__submit_audit(errand_runtime *runtime, errand__record *record, errand_task *task)
{
    const char *name = errand__record_name(record);

    if (task == NULL)
        task = runtime->scheduler.running;
    if (errand__inputs(runtime))
        record->extra->key = errand__submit_key(runtime, task);
    errand__audit_event(&runtime->scheduler,
                        &(errand_step){
                            .kind = ERRAND_STEP_SUBMIT,
                            .detail = record->kind,
                            .key = errand__record_key(runtime, record),
                            .context = task == NULL ? 0 : task->key,
                            .label = name,
                        },
                        errand__label_hash(name));
}

void
errand__completion_audit(errand_runtime *runtime, errand__record *record)
{
    const errand_completion *completion = &runtime->hand_completion;
    errand_log_completion image;
    bool seeded = errand__seeded(runtime);
    uint32_t flags = completion->flags;
    uint64_t value, digest, size = completion->payload.size;

    if (runtime->config.held_replay == NULL ||
        !errand__replay_digest(runtime, &digest, &size))
        digest = payload_digest(runtime, &completion->payload);

    if (record->resume == NULL && record->wait_state == ERRAND__WAIT_ENDED)
        flags |= ERRAND_LATE;
    value = (uint64_t)completion->code << 32 | flags;
    value = (value | (uint32_t)completion->job_code | size | digest) == 0
                ? runtime->scheduler.audit.plain /* most: 30 instructions of 2500 */
                : errand__mix_words(value, (uint32_t)completion->job_code, size, digest);
    if (runtime->config.held_recorder != NULL) {
        errand__record_completion(runtime, record, digest, &image);
        image.flags = flags;
    }
    errand__audit_fold(&runtime->scheduler,
                       &(errand_step){
                           .kind = ERRAND_STEP_COMPLETION,
                           .detail = (uint32_t)completion->outcome,
                           .key = errand__record_key(runtime, record),
                           .value = value,
                           .label = completion->operation,
                       },
                       seeded ? record->extra->label_hash
                              : errand__label_hash(completion->operation));
}
