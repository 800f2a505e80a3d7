/* SPDX-License-Identifier: MIT */
/* Design notes: a task's function is called.
 *
 * Everything that the call leads to is written down before it: the function may never return
 * here, because the host left it by longjmp (O34).  Then scheduler->running still says who it
 * was, and errand__scheduler_unwound ends it as failed. */
#include "scheduler/audit.h"

static void answered(errand_task *task, errand_task_answer answer);

/* Is it cancelled and untold? */
static bool
must_tell(const errand_task *task)
{
    return !task->told && errand__task_reason(task) != ERRAND_REASON_NONE;
}

void
errand__task_visit(errand__ready *ready, void *context)
{
    errand_task *task = ERRAND__CONTAINER(ready, errand_task, ready);
    errand_task_news news = {.why = (errand_why)task->why};

    (void)context;
    if (news.why == ERRAND_WHY_JOINED && task->selects) {
        if (!errand__select_decide(task, &news.joined))
            return;
    } else if (news.why == ERRAND_WHY_JOINED) {
        errand__task_joined(task, &news.joined);
    }
    if (news.why == ERRAND_WHY_CANCELLED)
        news.reason = errand__task_reason(task);
    errand__task_joins_clear(task);
    errand__select_leave(task);
    errand__task_enter(task, &news);
}

void
errand__task_enter(errand_task *task, const errand_task_news *news)
{
    errand__scheduler *scheduler = task->scheduler;
    errand_task_news told = {.why = ERRAND_WHY_CANCELLED};
    errand_task_answer answer;

    ERRAND_ASSERT(scheduler->running == NULL && !task->ending);
    if (task->doomed || errand__task_lingers(task)) {
        /* By a failure below it, whose cause it has (D70); or one that it waited for has ended. */
        errand__task_over(task, ERRAND_END_FAILED);
        errand__endings_run(scheduler);
        return;
    }
    if (must_tell(task)) { /* in place of what it was readied for (O39) */
        told.reason = errand__task_reason(task);
        task->told = true;
        news = &told;
    }
    task->phase = ERRAND_TASK_RUNNING;
    task->why = 0;
    scheduler->running = task;
    errand__audit_fold(scheduler,
                       &(errand_step){
                           .kind = ERRAND_STEP_TASK,
                           .detail = (uint32_t)news->why,
                           .key = task->key,
                           .value = task->number,
                           .context = scheduler->audit.ready,
                           .label = task->label,
                       },
                       task->label_hash);
    answer = task->fn(task, task->state, news);
    scheduler->running = NULL;
    answered(task, answer);
}

void
errand__scheduler_unwound(errand__scheduler *scheduler)
{
    errand_task *task = scheduler->running;

    scheduler->running = NULL;
    scheduler->busy_ending = scheduler->busy_cancelling = false;
    if (task != NULL && !task->ending)
        errand__task_over(task, ERRAND_END_FAILED);
}

static void
answered(errand_task *task, errand_task_answer answer)
{
    errand__scheduler *scheduler = task->scheduler;
    bool readied = errand__list_linked(&task->ready.link);

    if (task->ending) {
        errand__endings_run(scheduler);
        return;
    }
    if (answer == ERRAND_TASK_WAIT && (readied || task->wait != ERRAND__TASK_WAIT_NONE)) {
        task->phase = readied ? ERRAND_TASK_READY : ERRAND_TASK_WAITING;
        return;
    }
    if (answer == ERRAND_TASK_WAIT)
        (void)errand__misuse(
            ERRAND_EMISUSE, "errand_task_fn",
            "a task answered ERRAND_TASK_WAIT without a wait; it failed");
    if (answer == ERRAND_TASK_DONE)
        errand__cause_forget(task); /* it thought better of it */
    errand__task_over(task,
                      answer == ERRAND_TASK_DONE ? ERRAND_END_DONE : ERRAND_END_FAILED);
    errand__endings_run(scheduler);
}
