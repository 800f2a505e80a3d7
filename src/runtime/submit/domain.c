/* SPDX-License-Identifier: MIT */
/* Design notes: one at a time (D142).
 *
 * A domain's queue holds what has not really ended, in the order of submission.  Its first one is
 * handed to its executor once it has begun (in arrival order: at once), the next when the first
 * one's completion was collected; so nothing of a domain overlaps, whatever executors it is spread
 * over.  One that was settled for its body, which goes on, keeps its place until the body is back.
 *
 * In inline order nothing overlaps anyway; there a domain only keeps dues in order (scheduler). */
#include "runtime/runtime.h"

/* In the last part of a runtime's end, and in that of the lease, everything queued is cancelled, one
 * after the other. */
static bool
ends(const errand_runtime *runtime, const errand_lease *lease)
{
    return (runtime->closing && runtime->draining && runtime->driving) ||
           lease->refusing || lease->closed;
}

static void
go_on(errand_runtime *runtime, errand__domain *domain)
{
    errand__extra *extra;
    errand__record *record;

    if (domain->handed || errand__list_empty(&domain->queue))
        return;
    extra = ERRAND__CONTAINER(domain->queue.next, errand__extra, domain_link);
    record = &runtime->registrar.records[extra->slot];
    if (!extra->begun || ends(runtime, runtime->leases[record->lease]))
        return;
    domain->handed = true;
    errand__hand_over(runtime, record);
}

void
errand__domain_enter(errand_runtime *runtime, errand__record *record)
{
    errand__extra *extra = record->extra;

    extra->slot = record->slot;
    if (errand__seeded(runtime)) {
        extra->in_domain = true;
        extra->domain->out++;
    }
    if (runtime->config.order == ERRAND_ORDER_INLINE)
        return;
    errand__list_append(&extra->domain->queue, &extra->domain_link);
    if (!errand__seeded(runtime))
        errand__domain_begin(runtime, record);
}

void
errand__domain_begin(errand_runtime *runtime, errand__record *record)
{
    record->extra->begun = true;
    go_on(runtime, record->extra->domain);
}

void
errand__domain_leave(errand_runtime *runtime, errand__record *record)
{
    errand__extra *extra = errand__record_whole(record);
    errand__domain *domain = extra == NULL ? NULL : extra->domain;

    if (domain == NULL || !errand__list_linked(&extra->domain_link))
        return;
    if (domain->queue.next == &extra->domain_link)
        domain->handed = false;
    errand__list_unlink(&extra->domain_link);
    go_on(runtime, domain);
}

void
errand__domain_told(errand__extra *extra)
{
    errand__domain *domain = extra->domain;

    if (!extra->in_domain)
        return;
    extra->in_domain = false;
    if (--domain->out == 0)
        domain->due = domain->tie = 0;
}

void
errand__domains_note(errand_runtime *runtime, uintptr_t link)
{
    for (; link != 0; link = *errand__node_next(link)) {
        errand__record *record = errand__node_pointer(link);

        if (errand__node_tag(link) == ERRAND__NODE_COMPLETION &&
            (atomic_load_explicit(&record->control, memory_order_relaxed) &
             ERRAND__FLAG_HELD) == 0)
            errand__domain_leave(runtime, record);
    }
}
