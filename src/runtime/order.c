/* SPDX-License-Identifier: MIT */
/* Design notes: the public face of order.h: latencies, digest, trace, notes.
 *
 * What a payload adds to the digest is its size, and a canonical hash if the host registered one
 * for its type: bytes as they lie in memory may hold padding and addresses, which would make
 * equal runs differ (D151). */
#include "runtime/runtime.h"

struct errand__digesters {
    struct errand__digesters *next;
    const errand_payload_type *type;
    uint64_t (*digest)(const void *data, size_t size);
};

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
    return errand__audit_digest(&runtime->scheduler.audit);
}

errand_status
errand_audit_note(errand_runtime *runtime, const char *label, const void *bytes,
                  size_t size)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(label != NULL && (bytes != NULL || size == 0), ERRAND_EINVAL,
                       "label and bytes are needed");
    errand__audit_step(&runtime->scheduler, ERRAND_STEP_NOTE, 0, 0,
                       errand__mix_bytes(size, bytes, size), label);
    return ERRAND_OK;
}

errand_status
errand_audit_payload(errand_runtime *runtime, const errand_payload_type *held_type,
                     uint64_t (*fn)(const void *data, size_t size))
{
    struct errand__digesters *digester;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(held_type != NULL && fn != NULL, ERRAND_EINVAL,
                       "held_type and fn are needed");
    for (digester = runtime->digesters; digester != NULL; digester = digester->next) {
        if (digester->type == held_type) {
            digester->digest = fn;
            return ERRAND_OK;
        }
    }
    digester = errand__mem_alloc(runtime->allocator, sizeof *digester);
    if (digester == NULL)
        return ERRAND_ENOMEM;
    *digester = (struct errand__digesters){runtime->digesters, held_type, fn};
    runtime->digesters = digester;
    return ERRAND_OK;
}

errand_status
errand_trace(errand_runtime *runtime, errand_trace_fn *fn, void *arg)
{
    ERRAND__ENTER(runtime);
    runtime->scheduler.audit.trace = fn;
    runtime->scheduler.audit.trace_arg = arg;
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

static uint64_t
payload_digest(const errand_runtime *runtime, const errand_payload *payload)
{
    const struct errand__digesters *digester = runtime->digesters;

    if (payload->data == NULL || payload->held_type == NULL)
        return 0;
    for (; digester != NULL; digester = digester->next) {
        if (digester->type == payload->held_type)
            return digester->digest(payload->data, payload->size);
    }
    return 0;
}

void
errand__completion_audit(errand_runtime *runtime, errand__record *record)
{
    const errand__audit *audit = &runtime->scheduler.audit;
    const errand_completion *completion = &runtime->hand_completion;
    uint64_t value;

    if (!audit->seeded && audit->trace == NULL)
        return;
    value = errand__mix_words((uint64_t)completion->code << 32 | completion->flags,
                              (uint32_t)completion->job_code, completion->payload.size,
                              payload_digest(runtime, &completion->payload));
    errand__audit_step(&runtime->scheduler, ERRAND_STEP_COMPLETION,
                       (uint32_t)completion->outcome,
                       record->extra != NULL ? record->extra->key : record->operation,
                       value, completion->operation);
}
