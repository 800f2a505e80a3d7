/* SPDX-License-Identifier: MIT */
/* Design notes.  Timers with one deadline fire in the order in which they were registered (O72,
 * D30); a cancelled timer leaves the heap at once, so none is ever stale (D31).  A timer at the
 * largest time never fires, so it is not even added. */
#include "scheduler/scheduler.h"

bool
errand__timers_reserve(errand__scheduler *scheduler, size_t count)
{
    return errand__heap_reserve(&scheduler->timers, count);
}

void
errand__timer_add(errand__scheduler *scheduler, errand__timer *timer, uint64_t deadline,
                  uint64_t key)
{
    ERRAND_ASSERT(timer->fire != NULL);
    if (deadline == UINT64_MAX)
        return;
    timer->entry.major = deadline;
    timer->entry.minor = scheduler->registrations++;
    timer->entry.last = key;
    errand__heap_insert(&scheduler->timers, &timer->entry);
}

void
errand__timer_remove(errand__scheduler *scheduler, errand__timer *timer)
{
    errand__heap_remove(&scheduler->timers, &timer->entry);
}

uint64_t
errand__timers_next(const errand__scheduler *scheduler)
{
    return errand__heap_next(&scheduler->timers);
}

bool
errand__timers_fire(errand__scheduler *scheduler, uint64_t until, uint64_t registration)
{
    errand__heap_entry *first = errand__heap_first(&scheduler->timers);
    errand__timer *timer;

    if (first == NULL || first->major > until || first->minor >= registration)
        return false;
    errand__heap_remove(&scheduler->timers, first);
    timer = ERRAND__CONTAINER(first, errand__timer, entry);
    errand__audit_step(scheduler, ERRAND_STEP_TIMER, 0, first->last, first->major, NULL);
    timer->fire(timer, scheduler->context);
    return true;
}
