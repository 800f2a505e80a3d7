/* SPDX-License-Identifier: MIT */
/* tree: contexts and handles, by name.
 *
 * Design notes.  A context's name carries its root's, so that one which outlived its run is told
 * from one whose parent was aborted while the run went on: the first is a mistake of the program
 * (D17), the second is not, and whoever spawns there gets a handle that is Closed (D60, D61). */
#include "runtime/runtime.h"

/* OK, ESPENT, EFOREIGN or EMISUSE; *out_node NULL: what it stood below was aborted. */
static errand_status
find_context(errand_runtime *runtime, const errand_context *context, const char *function,
             errand_task **out_node)
{
    errand_task_id id = {.task = context->node, .slot = context->slot};
    errand_task_id root_id = {.task = context->root, .slot = context->root_slot};
    const errand_task *root;

    if (context->node == 0)
        return errand__misuse(ERRAND_ESPENT, function, "the context was used up");
    if (context->runtime != runtime->id)
        return errand__misuse(ERRAND_EFOREIGN, function,
                              "the context is another runtime's");
    root = errand__task_find(&runtime->scheduler, &root_id);
    if (context->root != 0 && (root == NULL || root->ending))
        return errand__misuse(ERRAND_EMISUSE, function,
                              "the run that the context belongs to has ended");
    *out_node = errand__task_find(&runtime->scheduler, &id);
    if (*out_node != NULL && (*out_node)->spent)
        return errand__misuse(ERRAND_ESPENT, function, "the context has its task");
    return ERRAND_OK;
}

static errand_status
make_context(errand_runtime *runtime, errand_task *parent, const char *label,
             const char *function, errand_context *out_context)
{
    errand_task *node;

    if (runtime->closing)
        return errand__misuse(ERRAND_ECLOSED, function, "the runtime is being shut down");
    node = errand__node_make(&runtime->scheduler, ERRAND__NODE_CONTEXT, parent,
                             runtime->key, label == NULL ? "context" : label);
    if (node == NULL)
        return ERRAND_ENOMEM;
    *out_context = (errand_context){
        .runtime = runtime->id, .node = node->number, .slot = node->slot};
    if (node->root != NULL) {
        out_context->root = node->root->number;
        out_context->root_slot = node->root->slot;
    }
    return ERRAND_OK;
}

errand_status
errand_context_create(errand_runtime *runtime, const errand_task_id *parent,
                      const char *label, errand_context *out_context)
{
    errand_task *above = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_context != NULL, ERRAND_EINVAL, "out_context is NULL");
    if (parent != NULL) {
        status = errand__task_named(runtime, parent, __func__, &above);
        if (status != ERRAND_OK && status != ERRAND_EUNKNOWN)
            return status;
        if (above == NULL || above->ending || above->node != ERRAND__NODE_TASK ||
            errand__task_reason(above) != ERRAND_REASON_NONE)
            return ERRAND_ECANCELLED;
    }
    return make_context(runtime, above, label, __func__, out_context);
}

errand_status
errand_context_child(errand_runtime *runtime, const errand_context *above,
                     const char *label, errand_context *out_context)
{
    errand_task *node = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(above != NULL && out_context != NULL, ERRAND_EINVAL,
                       "above and out_context are needed");
    status = find_context(runtime, above, __func__, &node);
    if (status != ERRAND_OK)
        return status;
    if (node != NULL && !node->ending)
        return make_context(runtime, node, label, __func__, out_context);
    *out_context = *above; /* it is as dead as what it stands below */
    return ERRAND_OK;
}

/* A task of a context that was aborted: never entered, ended at once. */
static errand_status
spawn_closed(errand_runtime *runtime, const errand_context *context,
             const errand_task_spec *spec, errand_handle *out_handle)
{
    errand__scheduler *scheduler = &runtime->scheduler;
    uint64_t spawns = scheduler->root_spawns;
    errand_task *task = NULL;
    errand_status status;
    bool calling;

    scheduler->root_spawns = 0; /* it is nobody's child: no other key may hang on it */
    status = errand__task_spawn(scheduler, NULL, ~context->node, spec, &task);
    scheduler->root_spawns = spawns;
    if (status != ERRAND_OK)
        return status;
    if (out_handle != NULL) {
        task->holds++;
        out_handle->task = errand__task_id(task);
    }
    calling = errand__calls_begin(runtime);
    errand__task_end(task, ERRAND_END_ABORTED);
    errand__endings_run(scheduler);
    errand__calls_end(runtime, calling);
    return ERRAND_OK;
}

errand_status
errand_context_spawn(errand_runtime *runtime, errand_context *take_context,
                     const errand_task_spec *spec, errand_handle *out_handle)
{
    errand_context context;
    errand_task *node = NULL, *task;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(take_context != NULL, ERRAND_EINVAL, "take_context is NULL");
    status = errand__task_spec_check(runtime, spec, __func__);
    if (status != ERRAND_OK)
        return status;
    status = find_context(runtime, take_context, __func__, &node);
    if (status != ERRAND_OK)
        return status;
    context = *take_context;
    ERRAND_REQUIRE_ARG(context.root == 0 || spec->flags == 0, ERRAND_EINVAL,
                       "only a root says what failures below it do");
    if (node == NULL || errand__context_dead(node)) {
        *take_context = (errand_context){.node = 0};
        status = spawn_closed(runtime, &context, spec, out_handle);
        if (status != ERRAND_OK)
            *take_context = context;
        return status;
    }
    status = errand__task_spawn(&runtime->scheduler, node, 0, spec, &task);
    if (status != ERRAND_OK)
        return status;
    if (out_handle != NULL) {
        task->holds++;
        out_handle->task = errand__task_id(task);
    }
    *take_context = (errand_context){.node = 0};
    errand__fd_news(runtime);
    return ERRAND_OK;
}

static void
abort_node(errand_runtime *runtime, errand_task *node)
{
    bool calling = errand__calls_begin(runtime);

    errand__task_end(node, ERRAND_END_ABORTED);
    errand__endings_run(&runtime->scheduler);
    errand__calls_end(runtime, calling);
}

errand_status
errand_context_abort(errand_runtime *runtime, const errand_context *context)
{
    errand_task_id id;
    errand_task *node;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(context != NULL, ERRAND_EINVAL, "context is NULL");
    if (context->node == 0)
        return ERRAND_OK;
    ERRAND_REQUIRE_ARG(context->runtime == runtime->id, ERRAND_EFOREIGN,
                       "the context is another runtime's");
    id = (errand_task_id){.task = context->node, .slot = context->slot};
    node = errand__task_find(&runtime->scheduler, &id);
    if (node != NULL)
        abort_node(runtime, node);
    return ERRAND_OK;
}

/* ---- handles ------------------------------------------------------------------------------------ */

errand_status
errand_handle_open(errand_runtime *runtime, const errand_task_id *id,
                   errand_handle *out_handle)
{
    errand_task *task = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_handle != NULL, ERRAND_EINVAL, "out_handle is NULL");
    status = errand__task_named(runtime, id, __func__, &task);
    if (status != ERRAND_OK)
        return status;
    task->holds++;
    out_handle->task = *id;
    return ERRAND_OK;
}

errand_status
errand_handle_watch(errand_runtime *runtime, const errand_task_id *id,
                    errand_handle *out_handle)
{
    errand_task *task = NULL, *watch;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_handle != NULL, ERRAND_EINVAL, "out_handle is NULL");
    status = errand__task_named(runtime, id, __func__, &task);
    if (status != ERRAND_OK)
        return status;
    watch = errand__watch_make(task);
    if (watch == NULL)
        return ERRAND_ENOMEM;
    watch->holds = 1;
    out_handle->task = errand__task_id(watch);
    if (task->finished) {
        errand__watch_told(watch, task);
        errand__endings_run(&runtime->scheduler);
    }
    return ERRAND_OK;
}

static errand_status
find_handle(errand_runtime *runtime, const errand_handle *handle, const char *function,
            errand_task **out_task)
{
    if (handle == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "handle is NULL");
    if (handle->task.task == 0)
        return ERRAND_EUNKNOWN;
    return errand__task_named(runtime, &handle->task, function, out_task);
}

errand_status
errand_handle_read(errand_runtime *runtime, const errand_handle *handle,
                   errand_handle_state *out_state, errand_failure *out_failure)
{
    errand_handle_state state;
    errand_task *task = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    status = find_handle(runtime, handle, __func__, &task);
    if (status != ERRAND_OK)
        return status;
    state = errand__handle_state(task);
    if (state == ERRAND_HANDLE_EXITED && out_failure != NULL)
        errand__cause_read(task, out_failure);
    if (out_state != NULL)
        *out_state = state;
    return ERRAND_OK;
}

errand_status
errand_handle_abort(errand_runtime *runtime, const errand_handle *handle)
{
    errand_task *task = NULL;
    errand_status status;

    ERRAND__ENTER(runtime);
    status = find_handle(runtime, handle, __func__, &task);
    if (status == ERRAND_OK)
        abort_node(runtime, task);
    return status;
}

void
errand_handle_close(errand_runtime *runtime, errand_handle *take_handle)
{
    errand_handle handle;
    errand_task *task = NULL;

    if (errand__runtime_check(runtime, __func__) != ERRAND_OK || take_handle == NULL ||
        take_handle->task.task == 0)
        return;
    handle = *take_handle;
    *take_handle = (errand_handle){.task = {.task = 0}};
    if (errand__task_named(runtime, &handle.task, __func__, &task) != ERRAND_OK)
        return;
    if (task->node == ERRAND__NODE_WATCH)
        abort_node(runtime, task);
    errand_task_let(runtime, &handle.task);
}

/* ---- failures, the whole --------------------------------------------------------------------- */

errand_status
errand_task_fail(errand_task *task, int32_t code, const char *format, ...)
{
    errand_runtime *runtime = NULL;
    errand_status status = errand__task_enter_own(task, __func__, &runtime);
    va_list arguments;
    bool written;

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(code != 0 && format != NULL, ERRAND_EINVAL,
                       "a code other than 0 and a format are needed");
    va_start(arguments, format);
    written = errand__cause_write(task, code, format, arguments);
    va_end(arguments);
    return written ? ERRAND_OK : ERRAND_ENOMEM;
}

errand_status
errand_tree_read(errand_runtime *runtime, errand_tree *out_tree)
{
    const errand__scheduler *scheduler;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_tree != NULL, ERRAND_EINVAL, "out_tree is NULL");
    scheduler = &runtime->scheduler;
    *out_tree = (errand_tree){
        .spawned = scheduler->spawned,
        .running = scheduler->undecided,
        .contexts = scheduler->contexts,
        .signals = scheduler->signals,
    };
    return ERRAND_OK;
}
