/* SPDX-License-Identifier: MIT */
/* Design notes: real workers, virtual order (D140 - D143).
 *
 * An operation waits in two heaps.  When time is moved, all whose begin has come go to their
 * executors, in (begin, tie, key) order, before anything of the new instant is looked at; one that
 * begins when it is submitted goes at once, so that workers have something to do while others of
 * that instant are told.  A
 * completion that comes before its due stays aside: only its record says that it arrived, and
 * nothing that a program can see looks there.  At its due it is waited for, and nothing else is
 * told meanwhile; so the order of delivery is that of the due heap, whoever was faster.
 *
 * Workers that sleep are woken for several at once: whoever waits for a due one wakes them first, so
 * it is only speed that hangs on when.
 *
 * There is a slot for each completion (its record), so one that is due can always be put, however
 * many others have arrived. */
#include "runtime/runtime.h"

/* Sleepers are woken for several at once, and not at the end of a thousand: a worker runs its first
 * one while the rest is handed over. */
void
errand__paced_hand(errand_runtime *runtime, errand__record *record)
{
    if (record->extra->domain != NULL)
        errand__domain_begin(runtime, record);
    else
        errand__hand_over(runtime, record);
    runtime->unflushed_count++;
    errand__flush_many(runtime);
}

void
errand__paced_begin(errand_runtime *runtime)
{
    errand__scheduler *scheduler = &runtime->scheduler;
    errand__heap_entry *first;

    while ((first = errand__dues_first(&scheduler->begins)) != NULL &&
           first->major <= scheduler->now) {
        errand__extra *extra = ERRAND__CONTAINER(first, errand__extra, begin_entry);
        errand__record *record = &runtime->registrar.records[extra->slot];

        errand__dues_remove(&scheduler->begins, first);
        errand__paced_hand(runtime, record);
    }
}

/* May the program not hear of this node yet? */
static bool
stays_aside(errand_runtime *runtime, uintptr_t link)
{
    errand__record *record = errand__node_pointer(link);

    if (errand__node_tag(link) != ERRAND__NODE_COMPLETION)
        return errand__asked_aside(runtime, link);
    if ((atomic_load_explicit(&record->control, memory_order_relaxed) &
         ERRAND__FLAG_HELD) == 0)
        errand__domain_leave(runtime, record);
    if ((record->owner_flags & ERRAND__OWN_HANDED) == 0 ||
        record->phase != ERRAND__PHASE_ARMED || runtime->dues_over)
        return false;
    record->extra->arrived = true;
    return true;
}

uintptr_t
errand__paced_sift(errand_runtime *runtime, uintptr_t first, uintptr_t *last)
{
    uintptr_t kept = 0, *place = &kept, next;

    for (; first != 0; first = next) {
        next = *errand__node_next(first);
        if (next != 0)
            errand__prefetch_own((char *)errand__node_pointer(next) + ERRAND_LINE);
        if (stays_aside(runtime, first))
            continue;
        *place = *last = first;
        place = errand__node_next(first);
    }
    *place = 0;
    return kept;
}

/* Runs or waits until the operation's completion has arrived.  False: it cannot be waited for, or
 * is not due any more, because an interrupt cancelled it. */
static bool
wait_for(errand_runtime *runtime, errand__record *record)
{
    errand_lease *lease = runtime->leases[record->lease];
    const errand__extra *extra = record->extra;
    uint64_t since = 0;

    for (;;) {
        if (!extra->arrived)
            errand__collect(runtime);
        if (!extra->arrived && lease->executor->ops->step != NULL) {
            lease->executor->ops->step(lease);
            errand__collect(runtime);
        }
        if (errand__asked_run(runtime, record))
            continue;
        if (extra->arrived)
            return !errand__due_lost(runtime, record);
        errand__flush_all(runtime); /* a domain may have gone on */
        if (!errand__due_sleep(runtime, record, &since) || extra->due_entry.position == 0)
            return false;
    }
}

/* Who is told after this one is cold by now: its record was the worker's, its extra was last touched
 * when it was submitted. */
static inline void
fetch_next(const errand_runtime *runtime)
{
    const errand__dues *due = &runtime->scheduler.due;
    const errand__heap_entry *next = errand__dues_known(due, 1);
    const errand__heap_entry *second = errand__dues_known(due, 2);
    const errand__extra *extra;
    const errand__record *record;

    if (second != NULL) {
        extra = ERRAND__CONTAINER(second, const errand__extra, due_entry);
        errand__prefetch_own(extra);
        errand__prefetch_own((const char *)extra + ERRAND_LINE);
    }
    if (next != NULL) {
        extra = ERRAND__CONTAINER(next, const errand__extra, due_entry);
        record = &runtime->registrar.records[extra->slot];
        errand__prefetch_own(record);
        errand__prefetch_own((const char *)record + ERRAND_LINE);
        errand__prefetch_own((const char *)record + 2 * ERRAND_LINE);
    }
}

errand__record *
errand__paced_due(errand_runtime *runtime, uint64_t limit)
{
    for (;;) {
        errand__heap_entry *first = errand__dues_first(&runtime->scheduler.due);
        errand__extra *extra;
        errand__record *record;

        if (first == NULL || first->major > limit || runtime->external)
            return NULL;
        extra = ERRAND__CONTAINER(first, errand__extra, due_entry);
        record = &runtime->registrar.records[extra->slot];
        fetch_next(runtime);
        if (wait_for(runtime, record)) {
            errand__dues_remove(&runtime->scheduler.due, first);
            return record;
        }
        if (first->position != 0)
            return NULL;
    }
}

void
errand__paced_release(errand_runtime *runtime)
{
    errand__scheduler *scheduler = &runtime->scheduler;
    errand__heap_entry *first;

    runtime->dues_over = true;
    while ((first = errand__dues_first(&scheduler->begins)) != NULL)
        errand__dues_remove(&scheduler->begins, first);
    while ((first = errand__dues_first(&scheduler->due)) != NULL) {
        errand__extra *extra = ERRAND__CONTAINER(first, errand__extra, due_entry);
        errand__record *record = &runtime->registrar.records[extra->slot];
        uintptr_t link = (uintptr_t)record | ERRAND__NODE_COMPLETION;

        errand__dues_remove(&scheduler->due, first);
        if (!extra->arrived)
            continue;
        *errand__node_next(link) = 0;
        if (runtime->pending == 0)
            runtime->pending = link;
        else
            *errand__node_next(runtime->pending_last) = link;
        runtime->pending_last = link;
    }
}
