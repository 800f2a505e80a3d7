/* SPDX-License-Identifier: MIT */
/* tree_waits: selects and the stop, by name.
 *
 * Design notes.  Their names are of nodes in the table of tasks, so one that means nothing any more
 * is recognised, and what the host forgets goes with the runtime. */
#include "runtime/runtime.h"

/* OK, EFOREIGN or, if there is no such node, missing. */
static errand_status
find_node(errand_runtime *runtime, uint64_t runtime_id, uint64_t number, uint32_t slot,
          errand_status missing, const char *function, errand_task **out_node)
{
    errand_task_id id = {.task = number, .slot = slot};

    if (number != 0 && runtime_id != runtime->id)
        return errand__misuse(ERRAND_EFOREIGN, function, "it is another runtime's");
    *out_node = errand__task_find(&runtime->scheduler, &id);
    if (number != 0 && *out_node != NULL)
        return ERRAND_OK;
    return missing == ERRAND_ESPENT
               ? errand__misuse(missing, function, "it was released already")
               : missing;
}

/* ---- selects ------------------------------------------------------------------------------------ */

static errand_status
find_select(errand_runtime *runtime, const errand_select *select, const char *function,
            errand_task **out_node)
{
    return find_node(runtime, select->runtime, select->node, select->slot,
                     ERRAND_EUNKNOWN, function, out_node);
}

errand_status
errand_select_open(errand_runtime *runtime, const errand_handle *handles, size_t count,
                   errand_select *out_select)
{
    errand_task *member = NULL, *group;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_select != NULL && (handles != NULL || count == 0),
                       ERRAND_EINVAL, "handles and out_select are needed");
    if (runtime->closing)
        return errand__misuse(ERRAND_ECLOSED, __func__, "the runtime is being shut down");
    for (size_t i = 0; i < count; i++) {
        if (handles[i].task.runtime == 0 && handles[i].task.task == 0)
            return ERRAND_EUNKNOWN; /* what errand_handle_close leaves */
        status = errand__task_named(runtime, &handles[i].task, __func__, &member);
        if (status != ERRAND_OK)
            return status;
        ERRAND_REQUIRE_ARG(member != runtime->scheduler.running, ERRAND_EINVAL,
                           "a task cannot wait for itself");
    }
    group = errand__select_make(&runtime->scheduler, count);
    if (group == NULL)
        return ERRAND_ENOMEM;
    for (size_t i = 0; i < count; i++)
        errand__select_add(group, i,
                           errand__task_find(&runtime->scheduler, &handles[i].task));
    group->holds = 1;
    *out_select = (errand_select){runtime->id, group->number, group->slot};
    return ERRAND_OK;
}

errand_status
errand_select_read(errand_runtime *runtime, const errand_select *select,
                   size_t *out_index, errand_handle_state *out_state)
{
    errand_task *group = NULL;
    errand_status status;
    bool won;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(select != NULL, ERRAND_EINVAL, "select is NULL");
    status = find_select(runtime, select, __func__, &group);
    if (status != ERRAND_OK)
        return status;
    if (group->ending)
        return ERRAND_EUNKNOWN;
    if (!group->decided)
        return ERRAND_EBUSY;
    won = group->winner != SIZE_MAX;
    if (out_index != NULL)
        *out_index = group->winner;
    if (out_state != NULL)
        *out_state = won ? (errand_handle_state)group->joins[group->winner].state
                         : ERRAND_HANDLE_CLOSED;
    return ERRAND_OK;
}

void
errand_select_close(errand_runtime *runtime, errand_select *take_select)
{
    errand_select select;
    errand_task *group = NULL;
    bool calling;

    if (errand__runtime_check(runtime, __func__) != ERRAND_OK || take_select == NULL ||
        take_select->node == 0)
        return;
    select = *take_select;
    if (find_select(runtime, &select, __func__, &group) == ERRAND_EFOREIGN)
        return;
    *take_select = (errand_select){.node = 0};
    if (group == NULL)
        return;
    group->holds = 0;
    calling = errand__calls_begin(runtime);
    if (group->finished)
        errand__task_release(group);
    else
        errand__task_end(group, ERRAND_END_ABORTED);
    errand__endings_run(&runtime->scheduler);
    errand__calls_end(runtime, calling);
}

errand_status
errand_task_select(errand_task *task, const errand_select *select, uint64_t until_ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);
    errand_task *group = NULL;

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(select != NULL, ERRAND_EINVAL, "select is NULL");
    status = find_select(runtime, select, __func__, &group);
    if (status != ERRAND_OK)
        return status;
    if (group->ending)
        return ERRAND_EUNKNOWN;
    ERRAND_REQUIRE_ARG(group->group == NULL, ERRAND_EBUSY,
                       "another task waits for this select");
    if (!errand__select_ready(group))
        status = errand__task_wait_begin(task, ERRAND__TASK_WAIT_SELECT, until_ns);
    else
        errand__task_ready(task, ERRAND_WHY_JOINED);
    if (status == ERRAND_OK)
        errand__select_begin(task, group);
    return status;
}

/* ---- the stop ------------------------------------------------------------------------------------ */

static errand_status
find_signal(errand_runtime *runtime, const errand_signal *signal, const char *function,
            errand_task **out_node)
{
    errand_status status;

    if (signal == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "signal is NULL");
    status = find_node(runtime, signal->runtime, signal->node, signal->slot,
                       ERRAND_ESPENT, function, out_node);
    if (status == ERRAND_OK && (*out_node)->ending)
        return errand__misuse(ERRAND_ESPENT, function, "it was released already");
    return status;
}

static errand_status
hold(errand_runtime *runtime, errand_task *parent, const char *function,
     errand_signal *out_signal)
{
    errand_task *signal;

    if (runtime->closing)
        return errand__misuse(ERRAND_ECLOSED, function, "the runtime is being shut down");
    signal = errand__signal_make(&runtime->scheduler, parent);
    if (signal == NULL)
        return ERRAND_ENOMEM;
    *out_signal = (errand_signal){runtime->id, signal->number, signal->slot};
    return ERRAND_OK;
}

errand_status
errand_signal_hold(errand_runtime *runtime, errand_signal *out_signal)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_signal != NULL, ERRAND_EINVAL, "out_signal is NULL");
    return hold(runtime, runtime->scheduler.running, __func__, out_signal);
}

errand_status
errand_signal_clone(errand_runtime *runtime, const errand_signal *signal,
                    errand_signal *out_signal)
{
    errand_task *node = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_signal != NULL, ERRAND_EINVAL, "out_signal is NULL");
    status = find_signal(runtime, signal, __func__, &node);
    return status == ERRAND_OK ? hold(runtime, node->parent, __func__, out_signal)
                               : status;
}

void
errand_signal_release(errand_runtime *runtime, errand_signal *take_signal)
{
    errand_signal signal;
    errand_task *node = NULL;

    if (errand__runtime_check(runtime, __func__) != ERRAND_OK || take_signal == NULL ||
        take_signal->node == 0)
        return;
    signal = *take_signal;
    if (find_node(runtime, signal.runtime, signal.node, signal.slot, ERRAND_EUNKNOWN,
                  __func__, &node) == ERRAND_EFOREIGN)
        return;
    *take_signal = (errand_signal){.node = 0};
    if (node == NULL)
        return;
    errand__task_end(node, ERRAND_END_ABORTED);
    errand__endings_run(&runtime->scheduler);
    errand__fd_news(runtime);
}

errand_status
errand_stop(errand_runtime *runtime, int32_t value)
{
    ERRAND__ENTER(runtime);
    errand__stop_ask(&runtime->scheduler, value);
    errand__fd_news(runtime);
    return ERRAND_OK;
}

bool
errand_stop_asked(errand_runtime *runtime, int32_t *out_value)
{
    if (errand__runtime_check(runtime, __func__) != ERRAND_OK)
        return false;
    if (runtime->scheduler.stop_asked && out_value != NULL)
        *out_value = runtime->scheduler.stop_value;
    return runtime->scheduler.stop_asked;
}

/* Until the stop, or its completion; at once if that is so. */
static errand_status
wait_stopped(errand_task *task, errand__task_wait wait, bool over, uint64_t until_ns)
{
    if (!over)
        return errand__task_wait_begin(task, wait, until_ns);
    errand__task_ready(task, ERRAND_WHY_STOPPED);
    return ERRAND_OK;
}

errand_status
errand_task_stopped(errand_task *task, const errand_signal *signal, uint64_t until_ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);
    errand_task *node = NULL;

    if (status == ERRAND_OK)
        status = find_signal(runtime, signal, __func__, &node);
    if (status != ERRAND_OK)
        return status;
    return wait_stopped(task, ERRAND__TASK_WAIT_SIGNAL, runtime->scheduler.stop_asked,
                        until_ns);
}

errand_status
errand_task_stop(errand_task *task, int32_t value, uint64_t until_ns)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_wait(task, __func__, &runtime);

    if (status != ERRAND_OK)
        return status;
    errand__stop_ask(&runtime->scheduler, value);
    return wait_stopped(task, ERRAND__TASK_WAIT_STOP, runtime->scheduler.signals == 0,
                        until_ns);
}
