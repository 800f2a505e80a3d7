/* SPDX-License-Identifier: MIT */
/* Design notes: one wait of one task.
 *
 * A wait has a key like that of an operation (O6) and stands in scheduler->waiting from its
 * registration to its end; keys only grow, so that list is in key order without sorting (O42).
 * Its end, whatever it is, goes through wait_clear, which takes away everything that could wake
 * the task a second time. */
#include "scheduler/scheduler.h"

#define RERUNS_MAX 16

static void
limit_fired(errand__timer *timer, void *context)
{
    errand_task *task = ERRAND__CONTAINER(timer, errand_task, limit);

    if (task->wait == ERRAND__TASK_WAIT_OPERATION) {
        task->timed_out =
            true; /* what the runtime readies is news of the time, not a cancel */
        task->scheduler->outside->cancel(context, task, ERRAND_REASON_TIMEOUT);
        return;
    }
    errand__task_ready(task, ERRAND_WHY_TIME);
}

errand_status
errand__task_may_wait(const errand_task *task, const char **out_text)
{
    *out_text = NULL;
    if (task->scheduler->running != task) {
        *out_text = "a wait can be registered inside the task's own function only";
        return ERRAND_EMISUSE;
    }
    if (task->ending || errand__task_reason(task) != ERRAND_REASON_NONE)
        return ERRAND_ECANCELLED;
    if (task->wait != ERRAND__TASK_WAIT_NONE || errand__list_linked(&task->ready.link)) {
        *out_text = "a wait is registered already; return ERRAND_TASK_WAIT";
        return ERRAND_EMISUSE;
    }
    return ERRAND_OK;
}

/* A wait without one does not touch the timer's cache lines. */
static inline void
set_limit(errand_task *task, uint64_t limit)
{
    if (limit == UINT64_MAX)
        return;
    task->limited = true;
    task->limit.fire = limit_fired;
    errand__timer_add(task->scheduler, &task->limit, limit, task->key);
}

errand_status
errand__task_wait_begin(errand_task *task, errand__task_wait wait, uint64_t limit)
{
    errand__scheduler *scheduler = task->scheduler;
    errand_status status = errand__registrar_wait_key(scheduler->registrar,
                                                      &task->wait_id, &task->generation);

    if (status != ERRAND_OK)
        return status;
    task->wait = (uint8_t)wait;
    errand__list_append(&scheduler->waiting, &task->waiting);
    set_limit(task, limit);
    return ERRAND_OK;
}

void
errand__task_wait_operation(errand_task *task, void *operation, uint64_t wait_id,
                            uint64_t generation, uint64_t limit)
{
    task->wait = ERRAND__TASK_WAIT_OPERATION;
    task->operation = operation;
    task->wait_id = wait_id;
    task->generation = generation;
    task->timed_out = false;
    errand__list_append(&task->scheduler->waiting, &task->waiting);
    set_limit(task, limit);
}

void
errand__task_joins_clear(errand_task *task)
{
    for (size_t i = 0; i < task->join_count; i++)
        errand__list_unlink(&task->joins[i].link);
    if (task->joins != &task->join_own)
        errand__mem_free(task->scheduler->allocator, task->joins,
                         task->join_room * sizeof *task->joins);
    task->joins = NULL;
    task->join_count = task->join_room = 0;
}

void
errand__join_ended(errand__join *join, const errand_task *target)
{
    join->ended = true;
    join->record = NULL;
    join->state = (uint8_t)errand__handle_state(target);
}

void
errand__task_wait_clear(errand_task *task)
{
    if (task->limited)
        errand__timer_remove(task->scheduler, &task->limit);
    task->limited = false;
    errand__list_unlink(&task->waiting);
    task->wait = ERRAND__TASK_WAIT_NONE;
}

/* Joins stay until the visit: of those that ended by then the earliest counts. */
static void
wake(errand_task *task, errand_why why, bool soon)
{
    errand__scheduler *scheduler = task->scheduler;

    errand__task_wait_clear(task);
    if (why != ERRAND_WHY_JOINED)
        errand__task_joins_clear(task);
    task->why = (uint8_t)why;
    if (task->phase == ERRAND_TASK_WAITING)
        task->phase = ERRAND_TASK_READY;
    if (soon)
        errand__ready_append_soon(scheduler, &task->ready);
    else
        errand__ready_append(scheduler, &task->ready);
}

void
errand__task_ready(errand_task *task, errand_why why)
{
    wake(task, why, false);
}

void
errand__task_ready_soon(errand_task *task, errand_why why)
{
    errand__scheduler *scheduler = task->scheduler;

    if (task->rerun_pass != scheduler->passes) {
        task->rerun_pass = scheduler->passes;
        task->reruns = 0;
    }
    wake(task, why, ++task->reruns <= RERUNS_MAX);
}

errand_status
errand__task_join_begin(errand_task *task, const errand_task_id *ids, size_t count)
{
    errand__join *joins = &task->join_own;

    if (count > SIZE_MAX / sizeof *joins)
        return ERRAND_ENOMEM;
    if (count > 1) {
        joins = errand__mem_alloc(task->scheduler->allocator, count * sizeof *joins);
        if (joins == NULL)
            return ERRAND_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        errand_task *target = errand__task_find(task->scheduler, &ids[i]);

        joins[i] =
            (errand__join){.joiner = task, .record = target, .target = ids[i].task};
        if (target == NULL || target->finished)
            joins[i].ended = true;
        else
            errand__list_append(&target->joiners, &joins[i].link);
    }
    task->joins = joins;
    task->join_count = task->join_room = count;
    return ERRAND_OK;
}

bool
errand__task_joined(const errand_task *task, size_t *out_index)
{
    *out_index = 0;
    for (size_t i = 0; i < task->join_count; i++) {
        if (task->joins[i].ended) {
            *out_index = i;
            return true;
        }
    }
    return false;
}
