/* SPDX-License-Identifier: MIT */
/* Design notes: why a task failed, and who fails with it.
 *
 * The cause is a block of its own, made when the task says why, and counted: the root that fails by
 * it and handles that only watch share it, so that the first failure is told with its own words
 * wherever it is read (D70).
 *
 * A root that propagates is doomed when the first task below it fails: what it waits for is over,
 * it is readied, and its next visit ends it in place of calling its function.  So it fails at its
 * next turn, and whatever fails until then changes nothing any more. */
#include "scheduler/scheduler.h"

bool
errand__cause_write(errand_task *task, int32_t code, const char *format,
                    va_list arguments)
{
    errand__cause *cause;

    errand__cause_forget(task);
    cause = errand__mem_alloc(task->scheduler->allocator, sizeof *cause);
    if (cause == NULL)
        return false;
    cause->holders = 1;
    cause->code = code;
    cause->task = task->number;
    errand__text_vformat(cause->message, sizeof cause->message, format, arguments);
    task->cause = cause;
    return true;
}

void
errand__cause_share(errand_task *task, const errand_task *from)
{
    errand__cause_forget(task);
    task->cause = from->cause;
    if (task->cause != NULL)
        task->cause->holders++;
}

void
errand__cause_forget(errand_task *task)
{
    errand__cause *cause = task->cause;

    task->cause = NULL;
    if (cause != NULL && --cause->holders == 0)
        errand__mem_free(task->scheduler->allocator, cause, sizeof *cause);
}

void
errand__cause_read(const errand_task *task, errand_failure *out_failure)
{
    const errand__cause *cause = task->cause;

    *out_failure = (errand_failure){.task = task->number};
    if (cause == NULL) {
        errand__text_format(out_failure->message, sizeof out_failure->message,
                            "task '%s' failed and did not say why", task->label);
        return;
    }
    out_failure->code = cause->code;
    out_failure->task = cause->task;
    errand__text_format(out_failure->message, sizeof out_failure->message, "%s",
                        cause->message);
}

static void
write_default(errand_task *root, const errand_task *from, ...)
{
    va_list arguments;

    va_start(arguments, from);
    if (errand__cause_write(root, 0, "task '%s' failed and did not say why", arguments))
        root->cause->task = from->number;
    va_end(arguments);
}

void
errand__failure_rise(errand_task *task)
{
    errand_task *root = task->root;

    if (root == NULL || root == task || !root->propagates || root->doomed ||
        root->ending || errand__task_lingers(root))
        return;
    root->doomed = true;
    if (task->cause != NULL)
        errand__cause_share(root, task);
    else
        write_default(root, task, task->label);
    if (root->phase != ERRAND_TASK_WAITING)
        return; /* it is about to have its turn */
    errand__task_ready(root, ERRAND_WHY_WOKEN);
}
