/* SPDX-License-Identifier: MIT */
/* Design notes: what running jobs ask the runtime's thread (errand_job_post).
 *
 * In arrival order it is news like any other.  In the seeded orders a command that came when it came
 * would make the run hang on real time.  There it stays aside, with the record of its job, until the
 * runtime waits for that job at its due: then it is run, before the job's completion is told.  A job
 * that waits for the answer ends after it, so what is asked, and when, is a function of virtual
 * state like the rest.
 *
 * From the shutdown on nothing is waited for: then all of it is news. */
#include "runtime/runtime.h"

static bool
is_asked(uintptr_t link, const errand__record *record)
{
    const errand_command *command = errand__node_pointer(link);
    uintptr_t mark;

    if (errand__node_tag(link) != ERRAND__NODE_COMMAND)
        return false;
    mark = (uintptr_t)command->library[1];
    return record == NULL ? (mark & ERRAND__COMMAND_OF_JOB) != 0
                          : mark == ((uintptr_t)record | ERRAND__COMMAND_OF_JOB);
}

bool
errand__asked_aside(errand_runtime *runtime, uintptr_t link)
{
    if (runtime->asked_over || !is_asked(link, NULL))
        return false;
    *errand__node_next(link) = 0;
    if (runtime->asked == 0)
        runtime->asked = link;
    else
        *errand__node_next(runtime->asked_last) = link;
    runtime->asked_last = link;
    return true;
}

uintptr_t
errand__asked_sift(errand_runtime *runtime, uintptr_t first, uintptr_t *last)
{
    uintptr_t kept = 0, *place = &kept, next;

    for (; first != 0; first = next) {
        next = *errand__node_next(first);
        if (errand__asked_aside(runtime, first))
            continue;
        *place = *last = first;
        place = errand__node_next(first);
    }
    *place = 0;
    return kept;
}

bool
errand__asked_run(errand_runtime *runtime, const errand__record *record)
{
    bool any = false;
    uintptr_t before = 0, link = runtime->asked, next;

    while (link != 0) {
        next = *errand__node_next(link);
        if (!is_asked(link, record)) {
            before = link;
            link = next;
            continue;
        }
        if (before == 0)
            runtime->asked = next;
        else
            *errand__node_next(before) = next;
        if (next == 0)
            runtime->asked_last = before;
        errand__command_run(runtime, errand__node_pointer(link));
        any = true;
        before = 0; /* the host's code ran: begin again */
        link = runtime->asked;
    }
    return any;
}

void
errand__asked_release(errand_runtime *runtime)
{
    runtime->asked_over = true;
    if (runtime->asked == 0)
        return;
    if (runtime->pending == 0)
        runtime->pending = runtime->asked;
    else
        *errand__node_next(runtime->pending_last) = runtime->asked;
    runtime->pending_last = runtime->asked_last;
    runtime->asked = runtime->asked_last = 0;
}
