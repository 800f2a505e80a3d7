/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TASK_H
#define ERRAND_TASK_H
/* task: what an interpreter's coroutines hang on, and the turns that drive them.
 * Conventions: errand.h.  All functions are [owner] unless they say otherwise. */
#include "errand.h"
ERRAND_BEGIN

/* A task is a resumable function with a state pointer.  The library calls it with news;
 * it does some work, registers at most one wait (errand_task_sleep, _await, _join, _park,
 * _yield) and answers what is to happen.  The errand_task pointer is valid during that
 * call only; the errand_task_id is a name by value, for ever: its runtime recognises it as
 * long as that lives. */
typedef struct errand_task errand_task;
typedef struct errand_task_id {
    uint64_t runtime, task; /* numbers in spawn order, never reused */
    uint32_t slot;          /* where the library looks first; no part of the name */
} errand_task_id;

typedef enum errand_task_answer {
    ERRAND_TASK_WAIT = 1,  /* resume me when the wait that I registered ends */
    ERRAND_TASK_DONE = 2,  /* ended well */
    ERRAND_TASK_FAILED = 3 /* ended with a failure */
} errand_task_answer;

typedef enum errand_why {
    ERRAND_WHY_START = 1,
    ERRAND_WHY_YIELDED = 2,
    ERRAND_WHY_TIME = 3,       /* the sleep, or the limit of another wait, is over */
    ERRAND_WHY_COMPLETION = 4, /* completion and verdict count */
    ERRAND_WHY_JOINED = 5,     /* joined: the index of the task that ended */
    ERRAND_WHY_WOKEN = 6,      /* errand_task_wake */
    ERRAND_WHY_CANCELLED = 7,  /* reason counts; the wait is gone */
    ERRAND_WHY_STOPPED = 8     /* errand_task_stop, errand_task_stopped (errand/tree.h) */
} errand_why;
typedef struct errand_task_news {
    errand_why why;
    errand_reason reason;
    size_t joined;
    /* May be read and taken from until the function returns. */
    errand_completion *completion;
    errand_verdict verdict;
} errand_task_news;

typedef errand_task_answer
errand_task_fn(errand_task *task, void *state, const errand_task_news *news);
/* errand_task_spec.flags, of roots; the default is the runtime's (errand/tree.h). */
enum {
    ERRAND_TASK_PROPAGATE = 1, /* the first failure below it makes it fail */
    ERRAND_TASK_CATCH = 2      /* failures below it are for those who hold them */
};
typedef struct errand_task_spec {
    uint32_t struct_size;
    uint32_t flags;
    const char *label; /* copied, at most 63 bytes; part of the key; NULL = "task" */
    errand_task_fn *fn;
    void *state;
    /* Called once when the task has ended, however it ended. */
    void (*held_on_end)(errand_runtime *runtime, errand_task_id id, void *state);
    void (*held_drop)(void *state); /* after on_end, once nobody can resume it */
    bool (*held_trace)(void *state, errand_visitor *visitor);
} errand_task_spec;

typedef enum errand_task_state {
    ERRAND_TASK_READY = 1,
    ERRAND_TASK_RUNNING = 2,
    ERRAND_TASK_WAITING = 3,
    ERRAND_TASK_ENDED = 4 /* and unknown ones */
} errand_task_state;
typedef enum errand_task_end {
    ERRAND_END_NONE = 0, /* it has not ended */
    ERRAND_END_DONE = 1,
    ERRAND_END_FAILED = 2,
    ERRAND_END_CANCELLED = 3, /* it was cancelled, whatever its function answered */
    ERRAND_END_ABORTED = 4    /* ended without being resumed */
} errand_task_end;

/* errand_spawn: a new task; parent NULL = a root.  It runs at a later turn even if nobody
 * waits for it.  A task's end aborts its children, but see errand_task_cancel.  Errors: ENOMEM · EEXHAUSTED · EINVAL
 * · ECANCELLED (the parent has ended or was cancelled) · ETHREAD.  On any error state
 * stays the caller's. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spawn(
    errand_runtime *runtime, const errand_task_id *parent, const errand_task_spec *spec,
    errand_task_id *out_id);
ERRAND_API errand_task_id errand_task_self(const errand_task *task);
ERRAND_API errand_runtime *errand_task_runtime(const errand_task *task);
/* errand_task_hold: keep the record of an ended task, so that errand_task_state_read and
 * join can answer how it ended; by default that is forgotten when it ends and nobody
 * joins it.  Balanced by errand_task_let.  Errors: EUNKNOWN · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_hold(errand_runtime *runtime, const errand_task_id *id);
ERRAND_API void errand_task_let(errand_runtime *runtime, const errand_task_id *id);
/* Errors: EUNKNOWN · EFOREIGN · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_task_state_read(
    errand_runtime *runtime, const errand_task_id *id, errand_task_state *out_state,
    errand_task_end *out_end);

/* ---- waits: inside the task's function; one at a time ------------------------------ */
/* Each answers ECANCELLED at once if the task was cancelled, unless inside a shield;
 * nothing is registered then.  EMISUSE: not inside this task's function, or a wait is
 * registered already.  A limit is until_ns: a moment on the runtime's clock
 * (errand_runtime_now() plus a length), not a length; UINT64_MAX = none.  It ends the
 * wait with WHY_TIME.
 * errand_task_sleep_until: a past deadline is ready at once, in this same pass.  EINVAL
 *   is answered by errand_task_sleep if now + ns overflows.
 * errand_task_await: start an operation and wait for it; ends by limit: the operation is
 *   cancelled with TIMEOUT.  Errors of errand_start besides.  out_identity may be NULL.
 * errand_task_join: until any one of the tasks has ended (at once if one has); the
 *   earliest in the list counts.  ENOMEM.
 * errand_task_park: until errand_task_wake; a wake that came before counts.  Wakes that
 *   come before the task runs are one. */
ERRAND_API ERRAND_MUST_USE errand_status errand_task_yield(errand_task *task);
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_sleep(errand_task *task, uint64_t ns);
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_sleep_until(errand_task *task, uint64_t deadline_ns);
ERRAND_API ERRAND_MUST_USE errand_status errand_task_await(
    errand_task *task, errand_lease *lease, const errand_spec *spec, uint64_t until_ns,
    errand_identity *out_identity);
ERRAND_API ERRAND_MUST_USE errand_status errand_task_join(
    errand_task *task, const errand_task_id *ids, size_t count, uint64_t until_ns);
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_park(errand_task *task, uint64_t until_ns);
/* Errors: EUNKNOWN (it has ended) · EFOREIGN · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_wake(errand_runtime *runtime, const errand_task_id *id);

/* ---- cancel and abort (O40) -------------------------------------------------------- */
/* errand_task_cancel: the task is resumed once with the reason; from then on each of its
 * waits answers ECANCELLED; the first reason wins; it ends as cancelled.  If it has not
 * ended after the runtime's grace, it is aborted.  Reaches every living descendant, and
 * each hears it: a cancelled task whose function has answered ends once the cancelled
 * ones below it have, which their graces and shields bound; then what is left is
 * aborted.  Until then it is ERRAND_TASK_WAITING.
 * errand_task_abort: never resumed; its deferred cleanups run newest first, its
 * operations are cancelled, its descendants aborted.  Errors of both: EUNKNOWN · EFOREIGN
 * · ETHREAD · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_task_cancel(
    errand_runtime *runtime, const errand_task_id *id, errand_reason reason);
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_abort(errand_runtime *runtime, const errand_task_id *id);
/* errand_cancel_roots: every root and all below, also when something between has ended.
 * Errors: ETHREAD · EINVAL (reason). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_cancel_roots(errand_runtime *runtime, errand_reason reason);
/* errand_task_cancelled: the reason, or NONE.  Inside a shield: NONE until it ends. */
ERRAND_API errand_reason errand_task_cancelled(const errand_task *task);
/* errand_task_shield: until the matching unshield or until_ns, waits work although it was
 * cancelled, and a cancel that comes is kept for the end of the shield.  Shields nest;
 * the outermost limit rules.
 * errand_task_defer: fn(arg) runs once, newest first, when the task ends; undone by
 *   errand_task_undefer (the newest).  Errors: ENOMEM · EMISUSE. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_shield(errand_task *task, uint64_t until_ns);
ERRAND_API ERRAND_MUST_USE errand_status errand_task_unshield(errand_task *task);
ERRAND_API ERRAND_MUST_USE errand_status
errand_task_defer(errand_task *task, void (*fn)(void *arg), void *arg);
ERRAND_API ERRAND_MUST_USE errand_status errand_task_undefer(errand_task *task);
/* errand_task_random: the next 64 bits of this task's own stream (seed, task's key, draws
 *   so far). */
ERRAND_API uint64_t errand_task_random(errand_task *task);

/* ---- turns ------------------------------------------------------------------------- */
/* 0 = no limit of that kind. */
typedef struct errand_budget {
    uint32_t struct_size;
    uint32_t items; /* everything counts; default of errand_drive(NULL): 256 */
    uint32_t completions, timers, visits, cleanups, commands;
    uint64_t wall_ns; /* arrival order only; EINVAL else */
} errand_budget;
typedef enum errand_turn_kind {
    ERRAND_TURN_PROGRESS = 1,  /* something was done: drive again */
    ERRAND_TURN_IDLE = 2,      /* nothing ready or buffered: park, or it is a stall */
    ERRAND_TURN_QUIESCENT = 3, /* no task, no wait, no operation, no timer */
    ERRAND_TURN_SHUT_DOWN = 4
} errand_turn_kind;
typedef struct errand_turn {
    errand_turn_kind kind;
    uint32_t completions, timers, visits, cleanups, commands; /* done in this turn */
    uint64_t next_deadline_ns; /* IDLE: the next timer's, or UINT64_MAX */
    bool inbox_needed;         /* IDLE: something is out that will come back */
} errand_turn;
/* errand_drive: one bounded turn of everything that the runtime has to do.  budget
 *   NULL = default; out_turn may be NULL.
 * Errors: EBUSY (nested, or not unwound) · EINVAL · EEXTERNAL · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_drive(errand_runtime *runtime, const errand_budget *budget, errand_turn *out_turn);

/* errand_run: drive and park until the task has ended.
 * Errors: EUNKNOWN · EBUSY · EDEADLOCK (on a worker, or a stall: it can never end; see
 *   errand_stall_text) · ETIMEOUT (deadline_ns on the runtime's clock; UINT64_MAX = none)
 *   · EEXTERNAL (seeded orders; the text says what) · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_run(errand_runtime *runtime, const errand_task_id *id, uint64_t deadline_ns);
/* errand_stall_text: every task that waits, and for what, then every resource of a
 * cancelled operation whose hook answered ERROR 32 times in a row, a line each, in key
 * order.  Returns the length that it would need, like snprintf. */
ERRAND_API size_t errand_stall_text(errand_runtime *runtime, char *out, size_t size);

ERRAND_END
#endif
