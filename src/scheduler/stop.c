/* SPDX-License-Identifier: MIT */
/* Design notes: a stop that waits for those who hear it.
 *
 * The stop is one value for the whole runtime, the first that anybody gave (D80).  A signal is a
 * node below the task that asked for it, so a task's end gives its signals back whatever happened
 * to it.  Those made before the stop are counted; the stop is complete when none of them is left.
 * One that is made later is answered at once and holds nobody up (D81). */
#include "scheduler/scheduler.h"

/* Readies every task that waits like this, in key order. */
static void
ready_all(errand__scheduler *scheduler, errand__task_wait wait)
{
    errand__link *link = scheduler->waiting.next;

    while (link != &scheduler->waiting) {
        errand_task *task = ERRAND__CONTAINER(link, errand_task, waiting);

        link = link->next;
        if (task->wait == wait)
            errand__task_ready(task, ERRAND_WHY_STOPPED);
    }
}

void
errand__stop_ask(errand__scheduler *scheduler, int32_t value)
{
    if (scheduler->stop_asked)
        return;
    scheduler->stop_asked = true;
    scheduler->stop_value = value;
    errand__audit_step(scheduler, ERRAND_STEP_STOP, 0, 0, (uint32_t)value, NULL);
    ready_all(scheduler, ERRAND__TASK_WAIT_SIGNAL);
}

errand_task *
errand__signal_make(errand__scheduler *scheduler, errand_task *parent)
{
    errand_task *signal =
        errand__node_make(scheduler, ERRAND__NODE_SIGNAL, parent, 0, "signal");

    if (signal == NULL)
        return NULL;
    signal->counts = !scheduler->stop_asked;
    if (signal->counts)
        scheduler->signals++;
    errand__audit_step(scheduler, ERRAND_STEP_STOPPED, 0,
                       parent == NULL ? 0 : parent->key, scheduler->signals, NULL);
    return signal;
}

void
errand__signal_ended(errand_task *signal)
{
    errand__scheduler *scheduler = signal->scheduler;

    if (!signal->counts)
        return;
    signal->counts = false;
    if (--scheduler->signals == 0 && scheduler->stop_asked)
        ready_all(scheduler, ERRAND__TASK_WAIT_STOP);
}
