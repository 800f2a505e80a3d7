/* SPDX-License-Identifier: MIT */
/* task_waits: what a task may call inside its own function.
 *
 * Design notes.  Each wait asks first whether the task may wait at all: a cancelled one may not,
 * outside a shield, and is told so by the answer (O40).  What is satisfied already does not wait:
 * the task is readied at once. */
#include "runtime/runtime.h"

errand_status
errand__task_enter_wait(const errand_task *task, const char *function,
                        errand_runtime **out_runtime)
{
    const char *text = NULL;
    errand_status status;

    if (task == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "the task is NULL");
    *out_runtime = task->scheduler->context;
    status = errand__runtime_enter(*out_runtime, function);
    if (status == ERRAND_OK)
        status = errand__task_may_wait(task, &text);
    return text == NULL ? status : errand__misuse(status, function, text);
}

errand_status
errand__task_enter_own(const errand_task *task, const char *function,
                       errand_runtime **out_runtime)
{
    errand_status status;

    if (task == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "the task is NULL");
    *out_runtime = task->scheduler->context;
    status = errand__runtime_enter(*out_runtime, function);
    if (status != ERRAND_OK)
        return status;
    if (task->scheduler->running != task)
        return errand__misuse(ERRAND_EMISUSE, function,
                              "this is for the task's own function only");
    return ERRAND_OK;
}

errand_status
errand_task_yield(errand_task *task)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);

    if (status == ERRAND_OK)
        errand__task_ready(task, ERRAND_WHY_YIELDED);
    return status;
}

static errand_status
sleep_until(errand_task *task, errand_runtime *runtime, uint64_t deadline)
{
    if (deadline <= errand__runtime_read(runtime)) {
        errand__task_ready_soon(task, ERRAND_WHY_TIME);
        return ERRAND_OK;
    }
    return errand__task_wait_begin(task, ERRAND__TASK_WAIT_SLEEP, deadline);
}

errand_status
errand_task_sleep(errand_task *task, uint64_t ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);
    uint64_t now;

    if (status != ERRAND_OK)
        return status;
    now = errand__runtime_read(runtime);
    ERRAND_REQUIRE_ARG(ns <= UINT64_MAX - now, ERRAND_EINVAL,
                       "now + ns is beyond all time");
    return sleep_until(task, runtime, now + ns);
}

errand_status
errand_task_sleep_until(errand_task *task, uint64_t deadline_ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);

    return status != ERRAND_OK ? status : sleep_until(task, runtime, deadline_ns);
}

errand_status
errand_task_join(errand_task *task, const errand_task_id *ids, size_t count,
                 uint64_t until_ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);
    size_t first;

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(ids != NULL && count != 0, ERRAND_EINVAL,
                       "name one task at least");
    for (size_t i = 0; i < count; i++) {
        ERRAND_REQUIRE_ARG(ids[i].runtime == runtime->id, ERRAND_EFOREIGN,
                           "a task of another runtime cannot be joined");
        ERRAND_REQUIRE_ARG(ids[i].task != task->number, ERRAND_EINVAL,
                           "a task cannot wait for itself");
    }
    status = errand__task_join_begin(task, ids, count);
    if (status != ERRAND_OK)
        return status;
    if (errand__task_joined(task, &first)) {
        errand__task_ready(task, ERRAND_WHY_JOINED);
        return ERRAND_OK;
    }
    status = errand__task_wait_begin(task, ERRAND__TASK_WAIT_JOIN, until_ns);
    if (status != ERRAND_OK)
        errand__task_joins_clear(task);
    return status;
}

errand_status
errand_task_park(errand_task *task, uint64_t until_ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);

    if (status != ERRAND_OK)
        return status;
    if (task->token) {
        task->token = false;
        errand__task_ready(task, ERRAND_WHY_WOKEN);
        return ERRAND_OK;
    }
    return errand__task_wait_begin(task, ERRAND__TASK_WAIT_PARK, until_ns);
}

errand_status
errand_task_shield(errand_task *task, uint64_t until_ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_own(task, __func__, &runtime);

    if (status == ERRAND_OK)
        errand__task_shield_enter(task, until_ns);
    return status;
}

errand_status
errand_task_unshield(errand_task *task)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_own(task, __func__, &runtime);

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(task->shields != 0, ERRAND_EMISUSE, "the task is in no shield");
    errand__task_shield_leave(task);
    return ERRAND_OK;
}

errand_status
errand_task_defer(errand_task *task, void (*fn)(void *arg), void *arg)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_own(task, __func__, &runtime);

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(fn != NULL, ERRAND_EINVAL, "fn is NULL");
    return errand__task_defer_push(task, fn, arg);
}

errand_status
errand_task_undefer(errand_task *task)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_own(task, __func__, &runtime);

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(errand__task_defer_pop(task), ERRAND_EMISUSE,
                       "the task has no deferred cleanup");
    return ERRAND_OK;
}

errand_reason
errand_task_cancelled(const errand_task *task)
{
    return task == NULL ? ERRAND_REASON_NONE : errand__task_reason(task);
}

errand_task_id
errand_task_self(const errand_task *task)
{
    return task == NULL ? (errand_task_id){.task = 0} : errand__task_id(task);
}

errand_runtime *
errand_task_runtime(const errand_task *task)
{
    return task == NULL ? NULL : task->scheduler->context;
}
