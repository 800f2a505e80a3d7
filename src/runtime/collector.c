/* SPDX-License-Identifier: MIT */
/* Design notes: a collector's view (O15).
 *
 * Fixed order: prepared blocks, records by slot (decoder, then hook), waits and readied resumes
 * (continuation, then decoded value), cleanup entries, tasks.  Addresses of slots are passed, so
 * a collector that moves objects can write the new address back.  Nothing is allocated. */
#include "runtime/runtime.h"

static bool
trace_parts(const errand_decoder_type *decoder, void *decoder_data,
            const errand_hook_type *hook, void *hook_data, errand_visitor *visitor)
{
    if (decoder != NULL && decoder->trace != NULL &&
        decoder->trace(decoder_data, visitor))
        return true;
    return hook != NULL && hook->trace != NULL && hook->trace(hook_data, visitor);
}

static bool
trace_resume(errand__resume *resume, errand_visitor *visitor)
{
    if (resume->task == NULL && resume->continuation.trace != NULL &&
        resume->continuation.trace(resume->continuation.data, visitor))
        return true;
    return resume->verdict.trace != NULL &&
           resume->verdict.trace(&resume->verdict.value, visitor);
}

static bool
trace_records(errand_runtime *runtime, errand_visitor *visitor)
{
    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];

        if (record->phase == ERRAND__PHASE_FREE ||
            record->phase == ERRAND__PHASE_ISSUED ||
            record->phase == ERRAND__PHASE_LINGER || record->phase == ERRAND__PHASE_HELD)
            continue;
        if (trace_parts(record->decoder, record->decoder_data, record->hook,
                        record->hook_data, visitor))
            return true;
        if (record->resume != NULL && trace_resume(record->resume, visitor))
            return true;
    }
    return false;
}

static bool
trace_ready(const errand__link *head, errand_visitor *visitor)
{
    const errand__link *link = head->next;

    for (; link != head; link = link->next) {
        errand__ready *ready = ERRAND__CONTAINER(link, errand__ready, link);

        if ((ready->visit == errand__resume_visit ||
             ready->visit == errand__task_resume_visit) &&
            trace_resume(ERRAND__CONTAINER(ready, errand__resume, ready), visitor))
            return true;
    }
    return false;
}

bool
errand_runtime_trace(errand_runtime *runtime, errand_visitor *visitor)
{
    const errand__link *link;

    if (errand__runtime_check(runtime, __func__) != ERRAND_OK)
        return false;
    if (visitor == NULL || visitor->visit == NULL) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "a visitor with visit is needed");
        return false;
    }
    for (errand__prepared *prepared = runtime->registrar.prepared_all; prepared != NULL;
         prepared = prepared->next_all)
        if (prepared->taken &&
            trace_parts(prepared->spec.held_decoder, prepared->spec.decoder_data,
                        prepared->spec.held_hook, prepared->spec.hook_data, visitor))
            return true;
    if (trace_records(runtime, visitor) ||
        trace_ready(&runtime->scheduler.ready, visitor) ||
        trace_ready(&runtime->scheduler.pass, visitor))
        return true;
    for (link = runtime->cleanups.next; link != &runtime->cleanups; link = link->next) {
        errand__cleanup *entry = ERRAND__CONTAINER(link, errand__cleanup, link);

        if (trace_parts(NULL, NULL, entry->hook, entry->hook_data, visitor))
            return true;
    }
    for (uintptr_t at = runtime->follow_first; at != 0;) {
        errand__follow *follow = (errand__follow *)at;

        if (trace_parts(follow->spec.held_decoder, follow->spec.decoder_data,
                        follow->spec.held_hook, follow->spec.hook_data, visitor))
            return true;
        at = follow->next;
    }
    return errand__tasks_trace(runtime, visitor);
}
