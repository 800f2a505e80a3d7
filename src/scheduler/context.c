/* SPDX-License-Identifier: MIT */
/* Design notes: nodes of the tree that are no tasks.
 *
 * A context is a record without a function.  Walks, aborts and ends do not tell it from a task, so
 * whatever is aborted above reaches what is below through it (D56), and it needs no code of its
 * own to end.  A task that used a context up ends it with itself (task_end.c), which is what makes
 * siblings' children end, too (D55).
 *
 * A watch is a record that joins one task.  It stands at the root: its end is that of the task it
 * watches, or comes when somebody stops it, and neither touches the task (D66). */
#include "scheduler/scheduler.h"

bool
errand__context_dead(const errand_task *context)
{
    if (context->ending)
        return true;
    while (context != NULL && context->node != ERRAND__NODE_TASK)
        context = context->parent;
    return context != NULL && errand__task_reason(context) != ERRAND_REASON_NONE;
}

errand_task *
errand__watch_make(errand_task *target)
{
    errand_task *watch =
        errand__node_make(target->scheduler, ERRAND__NODE_WATCH, NULL, 0, target->label);

    if (watch == NULL)
        return NULL;
    watch->joins = &watch->join_own;
    watch->join_count = watch->join_room = 1;
    watch->join_own = (errand__join){.joiner = watch, .target = target->number};
    errand__list_append(&target->joiners, &watch->join_own.link);
    return watch;
}

void
errand__watch_told(errand_task *watch, const errand_task *target)
{
    if (watch->ending)
        return;
    watch->told_end = true;
    errand__cause_share(watch, target);
    errand__task_end(watch, (errand_task_end)target->end);
}

errand_handle_state
errand__handle_state(const errand_task *task)
{
    if (task->phase != ERRAND_TASK_ENDED)
        return ERRAND_HANDLE_OPEN;
    if (task->node == ERRAND__NODE_WATCH && !task->told_end)
        return ERRAND_HANDLE_ABORTED;
    if (task->end == ERRAND_END_DONE)
        return ERRAND_HANDLE_DONE;
    return task->end == ERRAND_END_FAILED ? ERRAND_HANDLE_EXITED : ERRAND_HANDLE_CLOSED;
}
