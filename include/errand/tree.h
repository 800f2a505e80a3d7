/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TREE_H
#define ERRAND_TREE_H
/* tree: supervision.  Places in the tree before there are tasks, handles that say how
 * tasks ended, failures with a text, the first of several tasks, a stop that waits for
 * its hearers.  Conventions: errand.h; tasks: errand/task.h.  All functions are [owner].
 *
 * The names here are small values.  One that means nothing any more is recognised while
 * its runtime lives; one of another runtime answers EFOREIGN. */
#include "errand/task.h"
ERRAND_BEGIN

/* ---- contexts ---------------------------------------------------------------------- */
/* A context is a node of the tree without a task: a place that can be handed to somebody
 * who will spawn there later.  Spawning uses it up, and the task runs in a fresh node
 * below it.  When that task ends, everything below the context it was spawned from is
 * aborted: the task's own children, and what other contexts made below the same context
 * hold (D55).  When a node is aborted, so is all below it, through any depth, also
 * through contexts that never spawned. */
typedef struct errand_context {
    uint64_t runtime, node, root;
    uint32_t slot, root_slot; /* where the library looks first; no part of the name */
} errand_context;

/* A held task: its record stays until the handle is closed.  task may be given to
 * errand_task_join, errand_task_cancel and so on. */
typedef struct errand_handle {
    errand_task_id task;
} errand_handle;

typedef enum errand_handle_state {
    ERRAND_HANDLE_OPEN = 1,   /* it has not ended */
    ERRAND_HANDLE_DONE = 2,   /* it ended well */
    ERRAND_HANDLE_EXITED = 3, /* it failed: the failure says why */
    ERRAND_HANDLE_CLOSED = 4, /* it was cancelled or aborted, or never ran */
    ERRAND_HANDLE_ABORTED = 5 /* a watch was told to stop; what it watched goes on */
} errand_handle_state;

/* Why a task failed. */
typedef struct errand_failure {
    int32_t code;  /* errand_task_fail's, a job's own, or 0 */
    uint64_t task; /* whose failure it was: the number in its errand_task_id */
    char message[256];
} errand_failure;

/* errand_context_create: a context below a task; parent NULL = a root of its own.
 * Errors: ENOMEM · ECANCELLED (the parent has ended or was cancelled) · EFOREIGN ·
 *   ETHREAD.
 * errand_context_child: a context below a context.  Below one that was aborted it is
 *   aborted from the start.
 * Errors: ENOMEM · ESPENT (it was used up) · EMISUSE (its run has ended, D17) · EFOREIGN
 *   · ETHREAD.   label NULL = "context"; part of the keys of what is spawned below. */
ERRAND_API ERRAND_MUST_USE errand_status errand_context_create(
    errand_runtime *runtime, const errand_task_id *parent, const char *label,
    errand_context *out_context);
ERRAND_API ERRAND_MUST_USE errand_status errand_context_child(
    errand_runtime *runtime, const errand_context *above, const char *label,
    errand_context *out_context);
/* errand_context_spawn: use the context up for a task in a fresh node below it.  Where
 * something above was aborted or cancelled before, the function is never entered, the
 * state is dropped, and the handle is Closed at once.  out_handle may be NULL.
 * Errors: ENOMEM · EINVAL · EEXHAUSTED · ESPENT (it has a task already) · EMISUSE (its
 *   run has ended, D17) · EFOREIGN · ETHREAD.  On any error state stays the caller's and
 *   the context is as it was. */
ERRAND_API ERRAND_MUST_USE errand_status errand_context_spawn(
    errand_runtime *runtime, errand_context *take_context, const errand_task_spec *spec,
    errand_handle *out_handle);
/* errand_context_abort: abort everything below it, and the context.  Again, or after its
 * end: nothing happens.   Errors: EFOREIGN · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_context_abort(errand_runtime *runtime, const errand_context *context);

/* ---- handles ----------------------------------------------------------------------- */
/* errand_handle_open: hold a task.
 * errand_handle_watch: a handle that only waits for the task and ends as it does.
 *   Aborting it stops the waiting, and the task goes on (D66).
 * Errors of both: ENOMEM (watch) · EUNKNOWN · EFOREIGN · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_handle_open(
    errand_runtime *runtime, const errand_task_id *id, errand_handle *out_handle);
ERRAND_API ERRAND_MUST_USE errand_status errand_handle_watch(
    errand_runtime *runtime, const errand_task_id *id, errand_handle *out_handle);
/* errand_handle_read: out_state and out_failure may be NULL; the failure is written for
 *   an Exited one only.   Errors: EUNKNOWN (closed) · EFOREIGN · ETHREAD.
 * errand_handle_abort: abort the task, or stop the watch; nothing if it has ended.
 *   Errors: EUNKNOWN (closed) · EFOREIGN · ETHREAD.
 * errand_handle_close: let go of it; zeroes the handle, and nothing happens to a zeroed
 *   one.  The task goes on; a watch stops. */
ERRAND_API ERRAND_MUST_USE errand_status errand_handle_read(
    errand_runtime *runtime, const errand_handle *handle, errand_handle_state *out_state,
    errand_failure *out_failure);
ERRAND_API ERRAND_MUST_USE errand_status
errand_handle_abort(errand_runtime *runtime, const errand_handle *handle);
ERRAND_API void errand_handle_close(errand_runtime *runtime, errand_handle *take_handle);

/* ---- the first of several ---------------------------------------------------------- */
/* A select holds its members until it is closed.  The first of them to end wins, of
 * several that have ended the earliest in the list, and the others are aborted (a watch:
 * stopped).  A member that lost has told nobody anything. */
typedef struct errand_select {
    uint64_t runtime, node;
    uint32_t slot;
} errand_select;
/* errand_select_open: handles stay the caller's; count may be 0.  Opened in a task's
 *   function it is closed by that task's end.
 * Errors: ENOMEM · EINVAL · EUNKNOWN (a closed handle) · EFOREIGN · ETHREAD.
 * errand_select_read: who won and how it ended; an empty select has ended as Closed, with
 *   the index SIZE_MAX.   Errors: EBUSY (nobody yet) · EUNKNOWN (closed) · EFOREIGN ·
 *   ETHREAD.
 * errand_select_close: abort every member that has not ended, if nobody has won; zeroes
 *   it, and nothing happens to a zeroed one.  Who waits for it hears of no winner. */
ERRAND_API ERRAND_MUST_USE errand_status errand_select_open(
    errand_runtime *runtime, const errand_handle *handles, size_t count,
    errand_select *out_select);
ERRAND_API ERRAND_MUST_USE errand_status errand_select_read(
    errand_runtime *runtime, const errand_select *select, size_t *out_index,
    errand_handle_state *out_state);
ERRAND_API void errand_select_close(errand_runtime *runtime, errand_select *take_select);
/* errand_task_select: a wait as those in errand/task.h, until one has ended: WHY_JOINED,
 * joined = its index, SIZE_MAX for an empty or closed select.  The others have ended by
 * then.  A limit ends the wait, not the select.
 * Errors, besides those of a task's waits: EUNKNOWN (closed) · EFOREIGN · EBUSY (another
 *   task waits for it) · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_select(errand_task *task, const errand_select *select, uint64_t until_ns);

/* ---- the stop ---------------------------------------------------------------------- */
/* A runtime is stopped once, with a value; later values are ignored.  Nothing is ended by
 * it: who holds a signal hears of it, and the stop is complete when every signal that was
 * held before it has been released. */
typedef struct errand_signal {
    uint64_t runtime, node;
    uint32_t slot;
} errand_signal;
/* errand_signal_hold: in a task's function it is that task's, whose end releases it.
 * errand_signal_clone: one more, for the same.
 * Errors of both: ENOMEM · ESPENT (clone: it was released) · EFOREIGN · ETHREAD.
 * errand_signal_release: zeroes it, and nothing happens to a zeroed one. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_signal_hold(errand_runtime *runtime, errand_signal *out_signal);
ERRAND_API ERRAND_MUST_USE errand_status errand_signal_clone(
    errand_runtime *runtime, const errand_signal *signal, errand_signal *out_signal);
ERRAND_API void
errand_signal_release(errand_runtime *runtime, errand_signal *take_signal);
/* errand_stop: without waiting.   Errors: ETHREAD.
 * errand_stop_asked: has anybody?  *out_value (may be NULL) is the first value then. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_stop(errand_runtime *runtime, int32_t value);
ERRAND_API bool errand_stop_asked(errand_runtime *runtime, int32_t *out_value);
/* Waits as those in errand/task.h; both end with WHY_STOPPED, or WHY_TIME at their limit.
 * errand_task_stopped: until somebody stops; the signal stays held.
 * errand_task_stop: stop, and wait until that is complete.  At its limit the holders keep
 *   their signals.  A task that holds one itself waits for itself.
 * Errors of both, besides those of a task's waits: ESPENT (stopped: released) · EFOREIGN
 *   (stopped) · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_stopped(errand_task *task, const errand_signal *signal, uint64_t until_ns);
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_stop(errand_task *task, int32_t value, uint64_t until_ns);

/* ---- failures ---------------------------------------------------------------------- */
/* By default a failing task ends its own children, its handles say Exited, and others go
 * on.  Below a root with ERRAND_TASK_PROPAGATE (or any root of a runtime with
 * ERRAND_RUNTIME_PROPAGATE), the first failure makes the root fail at its next turn with
 * the same code and message, and later ones are ignored (D70).  A failure of the root is
 * never caught.
 *
 * errand_task_fail: inside the task's function: why it is about to answer
 * ERRAND_TASK_FAILED; the last call counts.  The message is cut at 255 bytes.
 * Errors: EINVAL (code 0) · ENOMEM (it will fail without a text) · EMISUSE · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_task_fail(
    errand_task *task, int32_t code, const char *format, ...) ERRAND_PRINTF(3, 4);

/* ---- work as a task ---------------------------------------------------------------- */
/* A task whose body is a job of a worker: submitted at the task's first turn, it ends as
 * the job does.  Cancelled or aborted it cancels the operation.  A failure's code is the
 * job's own, or errand_code times -1, its message the completion's. */
enum {
    /* A thread of its own, whatever else runs.  lease must be NULL.  It is said for this
     * work alone and inherited by nothing. */
    ERRAND_WORK_DEDICATED = 1
};
typedef struct errand_work {
    uint32_t struct_size;
    uint32_t flags;
    const char *label; /* as in errand_task_spec */
    errand_lease *lease;
    /* Copied; its state, decoder and hook are the task's from OK on. */
    const errand_spec *spec;
    /* May take the payload; not called if it was cancelled. */
    void (*held_on_done)(void *arg, errand_completion *completion);
    void *held_arg;
} errand_work;
/* As errand_spawn and errand_context_spawn.
 * Errors of both, besides theirs: EINVAL · EFOREIGN (the lease) · EUNSUPPORTED (an async
 *   job with a thread of its own).  On any error the spec's objects
 *   stay the caller's. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spawn_work(
    errand_runtime *runtime, const errand_task_id *parent, const errand_work *work,
    errand_task_id *out_id);
ERRAND_API ERRAND_MUST_USE errand_status errand_context_spawn_work(
    errand_runtime *runtime, errand_context *take_context, const errand_work *work,
    errand_handle *out_handle);

/* ---- a whole run ------------------------------------------------------------------- */
typedef struct errand_run_report {
    errand_task_end end;    /* the root's; ABORTED if the run failed */
    errand_failure failure; /* of a root that failed */
    uint64_t time_ns, digest;
    size_t waiting;    /* tasks that waited when the run failed */
    const char *stall; /* who waited, and for what, or ""; until the next run's */
} errand_run_report;
/* errand_run_root: spawn a root and drive until it has ended; then every task that is
 * left is aborted, and all has been cleaned up before the answer.  A run ends at
 * deadline_ns (or errand_runtime_config.deadline_ns) before anything that is due then.
 * Errors: EDEADLOCK (a stall, or on a worker) · ETIMEOUT: both end the run and write the
 *   report · those of errand_spawn · EBUSY. */
ERRAND_API ERRAND_MUST_USE errand_status errand_run_root(
    errand_runtime *runtime, const errand_task_spec *root, uint64_t deadline_ns,
    errand_run_report *out_report);

/* ---- the tree as a whole ----------------------------------------------------------- */
typedef struct errand_tree {
    uint64_t spawned;  /* tasks so far */
    uint64_t running;  /* tasks whose end is not decided yet */
    uint64_t contexts; /* that live, used up ones included */
    uint64_t signals;  /* held before the stop, see errand_signal_hold */
} errand_tree;
/* Errors: ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_tree_read(errand_runtime *runtime, errand_tree *out_tree);

ERRAND_END
#endif
