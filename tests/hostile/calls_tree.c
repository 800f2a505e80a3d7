/* SPDX-License-Identifier: MIT */
/* Design notes: the calls of errand/tree.h; otherwise as calls_runtime.c. */
#include "errand/checkpoint.h"
#include "errand/snapshot.h"
#include "calls.h"

static errand_status
call_context_create(stage *self, int broken)
{
    errand_context context;

    return errand_context_create(N(1, RUNTIME), NULL, "label", N(2, &context));
}

static errand_status
call_context_child(stage *self, int broken)
{
    errand_context context;

    return errand_context_child(N(1, RUNTIME), N(2, &self->context), NULL,
                                N(3, &context));
}

static errand_task_answer
end_at_once(errand_task *task, void *state, const errand_task_news *news)
{
    (void)task;
    (void)state;
    (void)news;
    return ERRAND_TASK_DONE;
}

static errand_status
call_context_spawn(stage *self, int broken)
{
    errand_task_spec spec = {.struct_size = sizeof spec, .fn = end_at_once};

    return errand_context_spawn(N(1, RUNTIME), N(2, &self->context), N(3, &spec), NULL);
}

static errand_status
call_context_abort(stage *self, int broken)
{
    return errand_context_abort(N(1, RUNTIME), N(2, &self->context));
}

static errand_status
call_handle_open(stage *self, int broken)
{
    errand_handle handle;

    return errand_handle_open(N(1, RUNTIME), N(2, &self->task), N(3, &handle));
}

static errand_status
call_handle_watch(stage *self, int broken)
{
    errand_handle handle;

    return errand_handle_watch(N(1, RUNTIME), N(2, &self->task), N(3, &handle));
}

static errand_status
call_handle_read(stage *self, int broken)
{
    return errand_handle_read(N(1, RUNTIME), N(2, &self->handle), NULL, NULL);
}

static errand_status
call_handle_abort(stage *self, int broken)
{
    return errand_handle_abort(N(1, RUNTIME), N(2, &self->handle));
}

static errand_status
call_handle_close(stage *self, int broken)
{
    errand_handle handle = self->handle;

    if (broken == 0 && errand_task_hold(RUNTIME, &self->task) != ERRAND_OK)
        stage_forget_misuse(self); /* the answer of errand_handle_close counts */
    errand_handle_close(N(1, RUNTIME), &handle);
    return told(self);
}

static errand_status
call_select_open(stage *self, int broken)
{
    errand_select select;

    return errand_select_open(N(1, RUNTIME), N(2, &self->handle), 1, N(3, &select));
}

static errand_status
call_select_read(stage *self, int broken)
{
    return errand_select_read(N(1, RUNTIME), N(2, &self->select), NULL, NULL);
}

static errand_status
call_select_close(stage *self, int broken)
{
    errand_select_close(N(1, RUNTIME), &self->select);
    return told(self);
}

static errand_status
call_signal_hold(stage *self, int broken)
{
    errand_signal signal;

    return errand_signal_hold(N(1, RUNTIME), N(2, &signal));
}

static errand_status
call_signal_clone(stage *self, int broken)
{
    errand_signal signal;

    return errand_signal_clone(N(1, RUNTIME), N(2, &self->signal), N(3, &signal));
}

static errand_status
call_signal_release(stage *self, int broken)
{
    errand_signal_release(N(1, RUNTIME), &self->signal);
    return told(self);
}

static errand_status
call_stop(stage *self, int broken)
{
    return errand_stop(N(1, RUNTIME), 1);
}

static errand_status
call_stop_asked(stage *self, int broken)
{
    (void)errand_stop_asked(N(1, RUNTIME), NULL);
    return told(self);
}

static errand_status
call_spawn_work(stage *self, int broken)
{
    errand_work work = {
        .struct_size = sizeof work, .lease = self->tokens.lease, .spec = &self->spec};

    return errand_spawn_work(N(1, RUNTIME), NULL, N(2, &work), NULL);
}

static errand_status
call_context_spawn_work(stage *self, int broken)
{
    errand_work work = {
        .struct_size = sizeof work, .lease = self->tokens.lease, .spec = &self->spec};

    return errand_context_spawn_work(N(1, RUNTIME), N(2, &self->context), N(3, &work),
                                     NULL);
}

static errand_status
call_run_root(stage *self, int broken)
{
    errand_task_spec spec = {.struct_size = sizeof spec, .fn = end_at_once};
    errand_run_report report;

    return errand_run_root(N(1, RUNTIME), N(2, &spec), UINT64_MAX, N(3, &report));
}

static errand_status
call_runtime_checkpoint(stage *self, int broken)
{
    errand_checkpoint *checkpoint;
    errand_status status = errand_runtime_checkpoint(N(1, RUNTIME), N(2, &checkpoint));

    if (status != ERRAND_EUNSUPPORTED)
        return status;
    stage_forget_misuse(self); /* as it should be: the stage is in arrival order */
    return ERRAND_OK;
}

static errand_status
call_snapshot_fork(stage *self, int broken)
{
    int64_t child;
    errand_status status = errand_snapshot_fork(N(1, RUNTIME), NULL, 0, N(2, &child));

    /* As it should be: the stage is in arrival order. */
    return status == ERRAND_EUNSUPPORTED ? ERRAND_OK : status;
}

static errand_status
call_snapshot_branch(stage *self, int broken)
{
    errand_status status = errand_snapshot_branch(N(1, RUNTIME), 7);

    if (status != ERRAND_EUNSUPPORTED)
        return status;
    stage_forget_misuse(self);
    return ERRAND_OK;
}

static errand_status
call_tree_read(stage *self, int broken)
{
    errand_tree tree;

    return errand_tree_read(N(1, RUNTIME), N(2, &tree));
}

const public_call tree_calls[] = {
    {"errand_context_create", call_context_create, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_context_child", call_context_child, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_REFUSAL},
    {"errand_context_spawn", call_context_spawn, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_context_abort", call_context_abort, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_handle_open", call_handle_open, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_handle_watch", call_handle_watch, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_handle_read", call_handle_read, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_handle_abort", call_handle_abort, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_handle_close", call_handle_close, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_select_open", call_select_open, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_select_read", call_select_read, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_select_close", call_select_close, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_signal_hold", call_signal_hold, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_signal_clone", call_signal_clone, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_REFUSAL},
    {"errand_signal_release", call_signal_release, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_stop", call_stop, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_stop_asked", call_stop_asked, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_spawn_work", call_spawn_work, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_context_spawn_work", call_context_spawn_work, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_run_root", call_run_root, PLACE_PLAIN, 3, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_EBUSY, ERRAND_EDEADLOCK, ERRAND_EBUSY},
    {"errand_runtime_checkpoint", call_runtime_checkpoint, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_snapshot_fork", call_snapshot_fork, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_EBUSY, ERRAND_OK},
    {"errand_snapshot_branch", call_snapshot_branch, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_tree_read", call_tree_read, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
};
const size_t tree_call_count = sizeof tree_calls / sizeof tree_calls[0];
