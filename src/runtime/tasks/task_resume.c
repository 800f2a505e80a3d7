/* SPDX-License-Identifier: MIT */
/* Design notes: where tasks and operations meet.
 *
 * A task that awaits an operation holds a resume object, like a continuation does; delivery and
 * cancel ready that object, and its visit runs the task.  The news stand in runtime->visiting
 * while the task's function runs, so that an unwind finds and drops what was not taken. */
#include "runtime/runtime.h"

static void outside_cancel(void *context, errand_task *task, errand_reason reason);
static void outside_forget(void *context, errand_task *task);
static void outside_contain(void *context, void (*fn)(void *arg), void *arg);

const errand__outside errand__tasks_outside = {
    .cancel = outside_cancel,
    .forget = outside_forget,
    .contain = outside_contain,
};

errand_status
errand_task_await(errand_task *task, errand_lease *lease, const errand_spec *spec,
                  uint64_t until_ns, errand_identity *out_identity)
{
    errand_identity identity;
    errand_runtime *runtime;
    errand__resume *resume;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);
    const char *text;

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(lease != NULL && spec != NULL, ERRAND_EINVAL,
                       "lease and spec are needed");
    ERRAND_REQUIRE_ARG(lease->runtime == runtime, ERRAND_EFOREIGN,
                       "the lease is another runtime's");
    if (!errand__spec_is_plain(spec) && errand__spec_check(spec, &text) != ERRAND_OK)
        return errand__misuse(ERRAND_EINVAL, __func__, text);
    resume = errand__resume_take(runtime);
    if (resume == NULL)
        return ERRAND_ENOMEM;
    resume->task = task;
    status = errand__start(lease, spec, NULL, resume, task, &identity);
    if (status != ERRAND_OK) {
        errand__resume_give(runtime, resume);
        return errand__refusal_tell(status, __func__);
    }
    errand__task_wait_operation(task, resume, identity.wait, identity.generation,
                                until_ns);
    errand__flush(lease);
    if (out_identity != NULL)
        *out_identity = identity;
    return ERRAND_OK;
}

void
errand__task_resume_visit(errand__ready *ready, void *context)
{
    errand_runtime *runtime = context;
    errand__resume *resume = ERRAND__CONTAINER(ready, errand__resume, ready);
    errand_task *task = resume->task;
    errand_task_news news = {.why = ERRAND_WHY_CANCELLED, .reason = resume->reason};

    task->operation = NULL;
    errand__task_wait_clear(task);
    if (resume->completed) {
        news = (errand_task_news){.why = ERRAND_WHY_COMPLETION,
                                  .completion = &resume->completion,
                                  .verdict = resume->verdict};
        resume->verdict = (errand_verdict){.value = NULL}; /* the task's now */
    } else if (task->timed_out && resume->reason == ERRAND_REASON_TIMEOUT) {
        news = (errand_task_news){.why = ERRAND_WHY_TIME};
    }
    runtime->visiting = resume;
    errand__task_enter(task, &news);
    errand__visit_finish(runtime);
}

/* Also called when a wait's limit passed. */
static void
outside_cancel(void *context, errand_task *task, errand_reason reason)
{
    errand_runtime *runtime = context;
    errand__resume *resume = task->operation;

    if (resume->record != NULL) {
        errand__timer_remove(&runtime->scheduler, &task->limit);
        errand__cancel_record(runtime, resume->record, reason);
    } else if (errand__task_reason(task) != ERRAND_REASON_NONE) {
        /* Drained but not resumed: the task gets the reason, the value is dropped (O39). */
        resume->completed = false;
        resume->reason = reason;
        errand__resume_clear(runtime, resume);
    }
}

static void
outside_forget(void *context, errand_task *task)
{
    errand_runtime *runtime = context;
    errand__resume *resume = task->operation;
    errand__record *record = resume->record;

    if (runtime->hand_resume == resume)
        runtime->hand_resume = NULL; /* what is in hand is dropped, nobody gets it */
    errand__wait_forget(runtime, resume);
    task->operation = NULL;
    if (record != NULL)
        errand__cancel_record(runtime, record, ERRAND_REASON_OWNER);
}

static void
outside_contain(void *context, void (*fn)(void *arg), void *arg)
{
    char text[64];

    errand__leak_count(context, errand__contained(fn, arg, text, sizeof text));
}
