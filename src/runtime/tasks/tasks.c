/* SPDX-License-Identifier: MIT */
/* tasks: what anyone on the runtime's thread may do with tasks by name.
 *
 * Design notes.  Requests that lead to foreign calls (cancel, abort) first mark everything and
 * then run it down from the scheduler's lists; if a callback leaves by longjmp, the next drive
 * goes on from those lists. */
#include "runtime/runtime.h"

errand_status
errand__task_named(errand_runtime *runtime, const errand_task_id *id,
                   const char *function, errand_task **out_task)
{
    if (id == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "the id is NULL");
    if (id->runtime != runtime->id)
        return errand__misuse(ERRAND_EFOREIGN, function, "the task is another runtime's");
    *out_task = errand__task_find(&runtime->scheduler, id);
    return *out_task == NULL ? ERRAND_EUNKNOWN : ERRAND_OK;
}

static errand_status
find_living(errand_runtime *runtime, const errand_task_id *id, const char *function,
            errand_task **out_task)
{
    errand_status status = errand__task_named(runtime, id, function, out_task);

    return status == ERRAND_OK && (*out_task)->phase == ERRAND_TASK_ENDED
               ? ERRAND_EUNKNOWN
               : status;
}

errand_status
errand__task_spec_check(const errand_runtime *runtime, const errand_task_spec *spec,
                        const char *function)
{
    const uint32_t known = ERRAND_TASK_PROPAGATE | ERRAND_TASK_CATCH;

    if (spec == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "spec is NULL");
    if (spec->struct_size != sizeof *spec || (spec->flags & ~known) != 0 ||
        spec->flags == known)
        return errand__misuse(
            ERRAND_EINVAL, function,
            "struct_size must be sizeof(errand_task_spec), flags one of errand/task.h");
    if (spec->fn == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "spec->fn is NULL");
    if (runtime->closing)
        return errand__misuse(ERRAND_ECLOSED, function, "the runtime is being shut down");
    return ERRAND_OK;
}

errand_status
errand_spawn(errand_runtime *runtime, const errand_task_id *parent,
             const errand_task_spec *spec, errand_task_id *out_id)
{
    errand_task *above = NULL, *task;
    errand_status status;

    ERRAND__ENTER(runtime);
    status = errand__task_spec_check(runtime, spec, __func__);
    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(parent == NULL || spec->flags == 0, ERRAND_EINVAL,
                       "only a root says what failures below it do");
    if (parent != NULL) {
        status = errand__task_named(runtime, parent, __func__, &above);
        if (status != ERRAND_OK && status != ERRAND_EUNKNOWN)
            return status;
        if (above == NULL || above->ending || above->node != ERRAND__NODE_TASK ||
            errand__task_reason(above) != ERRAND_REASON_NONE)
            return ERRAND_ECANCELLED;
    }
    status = errand__task_spawn(&runtime->scheduler, above, runtime->key, spec, &task);
    if (status == ERRAND_OK && out_id != NULL)
        *out_id = errand__task_id(task);
    if (status == ERRAND_OK)
        errand__fd_news(runtime);
    return status;
}

errand_status
errand_task_hold(errand_runtime *runtime, const errand_task_id *id)
{
    errand_task *task = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    status = errand__task_named(runtime, id, __func__, &task);
    if (status == ERRAND_OK)
        task->holds++;
    return status;
}

void
errand_task_let(errand_runtime *runtime, const errand_task_id *id)
{
    errand_task *task = NULL;
    bool calling;

    if (errand__runtime_check(runtime, __func__) != ERRAND_OK ||
        errand__task_named(runtime, id, __func__, &task) != ERRAND_OK)
        return;
    if (task->holds == 0) {
        (void)errand__misuse(ERRAND_EMISUSE, __func__, "the task is not held");
        return;
    }
    task->holds--;
    calling = errand__calls_begin(runtime);
    errand__task_release(task);
    errand__calls_end(runtime, calling);
}

errand_status
errand_task_state_read(errand_runtime *runtime, const errand_task_id *id,
                       errand_task_state *out_state, errand_task_end *out_end)
{
    const errand__resume *resume;
    errand_task_state state;
    errand_task *task = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    status = errand__task_named(runtime, id, __func__, &task);
    if (status != ERRAND_OK)
        return status;
    state = (errand_task_state)task->phase;
    resume = task->operation;
    if (state == ERRAND_TASK_WAITING && resume != NULL && resume->record == NULL)
        state = ERRAND_TASK_READY; /* its operation's news wait to be told */
    if (out_state != NULL)
        *out_state = state;
    if (out_end != NULL)
        *out_end =
            state == ERRAND_TASK_ENDED ? (errand_task_end)task->end : ERRAND_END_NONE;
    return ERRAND_OK;
}

errand_status
errand_task_wake(errand_runtime *runtime, const errand_task_id *id)
{
    errand_task *task = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    status = find_living(runtime, id, __func__, &task);
    if (status != ERRAND_OK)
        return status;
    if (task->wait == ERRAND__TASK_WAIT_PARK)
        errand__task_ready(task, ERRAND_WHY_WOKEN);
    else if (task->why != ERRAND_WHY_WOKEN || !errand__list_linked(&task->ready.link))
        task->token = true; /* else it is about to run for a wake, and this is the same */
    errand__fd_news(runtime);
    return ERRAND_OK;
}

static bool
reason_known(errand_reason reason)
{
    return reason > ERRAND_REASON_NONE && reason <= ERRAND_REASON_SHUTDOWN;
}

errand_status
errand_task_cancel(errand_runtime *runtime, const errand_task_id *id,
                   errand_reason reason)
{
    errand_task *task = NULL;
    errand_status status;
    bool calling;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(reason_known(reason), ERRAND_EINVAL, "the reason is unknown");
    status = find_living(runtime, id, __func__, &task);
    if (status != ERRAND_OK)
        return status;
    calling = errand__calls_begin(runtime);
    errand__task_cancel(task, reason);
    errand__cancels_run(&runtime->scheduler);
    errand__calls_end(runtime, calling);
    return ERRAND_OK;
}

errand_status
errand_task_abort(errand_runtime *runtime, const errand_task_id *id)
{
    errand_task *task = NULL;
    errand_status status;
    bool calling;

    ERRAND__ENTER(runtime);
    status = find_living(runtime, id, __func__, &task);
    if (status != ERRAND_OK)
        return status;
    calling = errand__calls_begin(runtime);
    errand__task_end(task, ERRAND_END_ABORTED);
    errand__endings_run(&runtime->scheduler);
    errand__calls_end(runtime, calling);
    return ERRAND_OK;
}

errand_status
errand_cancel_roots(errand_runtime *runtime, errand_reason reason)
{
    bool calling;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(reason_known(reason), ERRAND_EINVAL, "the reason is unknown");
    calling = errand__calls_begin(runtime);
    errand__tasks_cancel_all(runtime, reason);
    errand__calls_end(runtime, calling);
    return ERRAND_OK;
}

/* ---- the runtime's own ------------------------------------------------------------------------ */

void
errand__tasks_cancel_all(errand_runtime *runtime, errand_reason reason)
{
    bool calling = errand__calls_begin(runtime);

    errand__cancel_all(&runtime->scheduler, reason);
    errand__cancels_run(&runtime->scheduler);
    errand__calls_end(runtime, calling);
}

void
errand__tasks_resume_work(errand_runtime *runtime)
{
    errand__scheduler *scheduler = &runtime->scheduler;

    scheduler->busy_cancelling = scheduler->busy_ending = false;
    errand__cancels_run(scheduler);
    errand__endings_run(scheduler);
}

void
errand__tasks_abort_all(errand_runtime *runtime)
{
    errand__scheduler *scheduler = &runtime->scheduler;

    ERRAND_ASSERT(scheduler->running == NULL);
    errand__tasks_resume_work(runtime);
    while (!errand__list_empty(&scheduler->roots)) {
        errand__task_end(ERRAND__CONTAINER(scheduler->roots.next, errand_task, sibling),
                         ERRAND_END_ABORTED);
        errand__endings_run(scheduler);
    }
}

size_t
errand__tasks_live(const errand_runtime *runtime)
{
    return runtime->scheduler.live;
}

void
errand__tasks_fini(errand_runtime *runtime)
{
    errand__tasks_abort_all(runtime);
}

bool
errand__tasks_trace(errand_runtime *runtime, errand_visitor *visitor)
{
    const errand__link *head = &runtime->scheduler.all, *link;

    for (link = head->next; link != head; link = link->next) {
        errand_task *task = ERRAND__CONTAINER(link, errand_task, all);

        if (task->trace != NULL && task->trace(task->state, visitor))
            return true;
    }
    return false;
}
