/* SPDX-License-Identifier: MIT */
/* Design notes: cancel, a request (O40).
 *
 * Two steps again: marking a whole subtree calls nothing foreign; what has to be torn down is put
 * into the list scheduler->cancelling and torn down from there, one task at a time, each taken off
 * before its hook is called.  So a hook may change the tree, or leave by longjmp.
 *
 * A cancel counts from the moment it is outside any shield.  Then the wait ends, the grace
 * begins, and the task is told at its next visit, whatever else it was to be visited for.  The
 * guard is one timer: inside a shield that shield's limit, else the end of the grace.  A grace that
 * passes inside a shield is over with it. */
#include "scheduler/scheduler.h"

static bool shielded(const errand_task *task);
static void request(errand_task *task, errand_reason reason);
static void take_effect(errand_task *task);
static void guard_until(errand_task *task, uint64_t deadline);

void
errand__task_cancel(errand_task *task, errand_reason reason)
{
    errand_task *top = task->consumes ? task->parent : task; /* what ends with it (D55) */

    for (errand_task *below = top; below != NULL;
         below = errand__task_following(below, top))
        request(below, reason);
}

void
errand__cancel_all(errand__scheduler *scheduler, errand_reason reason)
{
    errand__link *link;

    for (link = scheduler->waiting.next; link != &scheduler->waiting; link = link->next)
        request(ERRAND__CONTAINER(link, errand_task, waiting), reason);
    for (link = scheduler->all.next; link != &scheduler->all; link = link->next)
        request(ERRAND__CONTAINER(link, errand_task, all), reason);
}

void
errand__cancels_run(errand__scheduler *scheduler)
{
    if (scheduler->busy_cancelling)
        return; /* called from a hook that cancel called: its caller goes on */
    scheduler->busy_cancelling = true;
    while (!errand__list_empty(&scheduler->cancelling)) {
        errand_task *task =
            ERRAND__CONTAINER(scheduler->cancelling.next, errand_task, work);

        errand__list_unlink(&task->work);
        take_effect(task);
    }
    scheduler->busy_cancelling = false;
}

errand_reason
errand__task_reason(const errand_task *task)
{
    return shielded(task) ? ERRAND_REASON_NONE : (errand_reason)task->reason;
}

void
errand__task_shield_enter(errand_task *task, uint64_t limit)
{
    if (task->shields++ != 0)
        return; /* the outermost limit rules */
    task->shield_over = limit <= errand__scheduler_read(task->scheduler);
    if (!task->shield_over)
        guard_until(task, limit);
}

void
errand__task_shield_leave(errand_task *task)
{
    if (--task->shields != 0)
        return;
    task->shield_over = false;
    errand__timer_remove(task->scheduler, &task->guard);
    take_effect(task);
}

static bool
shielded(const errand_task *task)
{
    return task->shields != 0 && !task->shield_over;
}

static void
request(errand_task *task, errand_reason reason)
{
    errand__scheduler *scheduler = task->scheduler;

    if (task->node != ERRAND__NODE_TASK || task->ending ||
        task->reason != ERRAND_REASON_NONE)
        return; /* the first reason wins */
    task->reason = (uint8_t)reason;
    errand__audit_event(scheduler,
                        &(errand_step){
                            .kind = ERRAND_STEP_CANCEL,
                            .detail = (uint32_t)reason,
                            .key = task->key,
                            .value = task->number,
                            .label = task->label,
                        },
                        task->label_hash);
    errand__list_append(&scheduler->cancelling, &task->work);
}

/* The last thing it does may call a hook. */
static void
take_effect(errand_task *task)
{
    errand__scheduler *scheduler = task->scheduler;
    errand_reason reason = errand__task_reason(task);

    if (reason == ERRAND_REASON_NONE || task->ending)
        return;
    if (task->grace_end == 0)
        task->grace_end =
            errand__time_add(errand__scheduler_read(scheduler), scheduler->grace);
    guard_until(task, task->grace_end);
    if (task->wait == ERRAND__TASK_WAIT_OPERATION)
        scheduler->outside->cancel(scheduler->context, task, reason);
    else if (task->wait != ERRAND__TASK_WAIT_NONE)
        errand__task_ready(task, ERRAND_WHY_CANCELLED);
}

static void
guard_fired(errand__timer *timer, void *context)
{
    errand_task *task = ERRAND__CONTAINER(timer, errand_task, guard);

    (void)context;
    if (shielded(task)) {
        task->shield_over = true;
        if (task->grace_end == 0 || task->grace_end > task->scheduler->now) {
            take_effect(task);
            return;
        }
    }
    errand__task_end(task, ERRAND_END_ABORTED);
    errand__endings_run(task->scheduler);
}

static void
guard_until(errand_task *task, uint64_t deadline)
{
    errand__timer_remove(task->scheduler, &task->guard);
    task->guard.fire = guard_fired;
    errand__timer_add(task->scheduler, &task->guard, deadline, task->key);
}
