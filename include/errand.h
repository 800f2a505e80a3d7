/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_H
#define ERRAND_H
/* errand: the life of one operation, in order.
 *
 * The law: errand_submit() answering ERRAND_OK means that exactly one completion of that
 * operation is drained from its runtime's inbox, or counted, by operation, as
 * undeliverable in that runtime's closing report.  Any other answer means that none is,
 * and that its job never runs.
 *
 * Parameters: plain pointer = borrowed for the call; take_x = a token, moved and zeroed
 *   on success, untouched on failure; out_x = written on success only; own_x = a
 *   callback's to keep.  A field held_x is kept, not copied: what it points to must outlive
 *   what was made with it (of a spec: its operation), as static data does.
 * Tokens (errand_prepared, errand_binding, errand_wait, errand_submission) are small
 *   values: one type per stage, so that a skipped stage does not compile.  A copy that
 *   was used already is recognised (ESPENT) while its runtime lives.
 * Threads: [owner] the runtime's thread, else ETHREAD; [any]; [worker] inside a job;
 *   [signal] async-signal-safe.
 * Every function answers EINVAL for a NULL it does not allow, and EFORKED in a forked
 *   child.  What would begin something answers ECLOSED while its runtime is being shut
 *   down, when handlers, drops and tasks are still called, and on a copy of a lease that
 *   was shut down.  These are not repeated below.
 * Lifetimes: errand_runtime_shutdown gives back all that is the runtime's: its leases,
 *   and what tokens, tasks and callbacks point to.  After it nothing of that may be given
 *   to any call, no copy of the runtime's pointer either: that is freed memory, and not
 *   recognised.  Inbox handles, wakers, executors, payloads that were taken and names by
 *   value (identities, task ids) outlive it.
 * Config structs: set struct_size, leave the rest zero for the documented defaults;
 *   unknown option bits answer EINVAL. */
#include "errand/base.h"
#include "errand/config.h"
ERRAND_BEGIN

typedef struct errand_runtime errand_runtime;   /* one interpreter's side; one thread's */
typedef struct errand_executor errand_executor; /* owns workers; see errand/executor.h */
typedef struct errand_lease errand_lease;       /* one runtime's place in an executor */
typedef struct errand_inbox errand_inbox;       /* a counted handle for other threads */
typedef struct errand_job errand_job;           /* a running job's view of itself */
typedef struct errand_visitor errand_visitor;   /* see errand_runtime_trace */
typedef struct errand_recorder errand_recorder; /* see errand/record.h */

/* An identity names an operation, by value.  It grants nothing.  slot is where the
 * library looks first; it is no part of the name. */
typedef struct errand_identity {
    uint64_t runtime, wait, generation, operation;
    uint32_t kind, slot;
} errand_identity;

#define ERRAND_TOKEN(name)                                                               \
    typedef struct name {                                                                \
        void *held_record;                                                               \
        uint64_t stamp;                                                                  \
    } name
ERRAND_TOKEN(errand_prepared);   /* a job, not yet named */
ERRAND_TOKEN(errand_binding);    /* a job with a name */
ERRAND_TOKEN(errand_wait);       /* the runtime's half of a binding */
ERRAND_TOKEN(errand_submission); /* the executor's half, unarmed */

/* ---- 1. A world -------------------------------------------------------------------- */

/* Before all else install errand_misuse_hook (errand/base.h): every status of misuse
 * calls it with a text that names the function, the cause and a mend.  What a runtime
 * can be told, its order above all, stands in errand/config.h. */

/* errand_runtime_create: make the calling thread's runtime.  config NULL = all defaults.
 * Thread: [any], which becomes the owner.   Errors: ENOMEM · EINVAL · EEXHAUSTED ·
 *   EUNSUPPORTED (choices in arrival order) · ESPENT (held_checkpoint) · EREPRODUCE. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_runtime_create(const errand_runtime_config *config, errand_runtime **out_runtime);

/* errand_runtime_release: let go of a runtime that is not in a drive or drain, so that
 * another thread may adopt it.  Between the two every call but adopt answers ETHREAD.
 * Thread: [owner] / [any].   Errors: ETHREAD · EBUSY · EMISUSE (adopt: owned). */
ERRAND_API ERRAND_MUST_USE errand_status errand_runtime_release(errand_runtime *runtime);
ERRAND_API ERRAND_MUST_USE errand_status errand_runtime_adopt(errand_runtime *runtime);

/* errand_runtime_now: the runtime's clock in ns: CLOCK_MONOTONIC in arrival order,
 * virtual in the seeded orders, 0 for NULL.
 * errand_runtime_id: its number, from one counter per process.   Thread: [owner]. */
ERRAND_API uint64_t errand_runtime_now(const errand_runtime *runtime);
ERRAND_API uint64_t errand_runtime_id(const errand_runtime *runtime);

/* errand_attach: give the runtime a place in an executor.  owed_max bounds accepted -
 * drained, operations that wait on a reactor too; beyond it a submit is refused (0 =
 * 16384; at most 2^24 - 1, and not more than the runtime's operations_max helps).  The
 * lease belongs to the runtime and keeps the executor alive.
 * Thread: [owner].   Errors: ETHREAD · EDUPLICATE · ECLOSED · ENOMEM · EINVAL · EBUSY (a
 *   reactor without threads, and the wake descriptor was asked for) · ESYSTEM (it has no
 *   descriptors). */
ERRAND_API ERRAND_MUST_USE errand_status errand_attach(
    errand_runtime *runtime, errand_executor *executor, uint32_t owed_max,
    errand_lease **out_lease);

/* ---- 2. Work ----------------------------------------------------------------------- */

/* What a payload is: compared by address.  drop may be NULL. */
typedef struct errand_payload_type {
    const char *name;
    void (*drop)(void *data, size_t size);
} errand_payload_type;
typedef struct errand_payload {
    const errand_payload_type *held_type; /* NULL = untyped bytes, nothing to drop */
    void *data;
    size_t size;
} errand_payload;

/* How it can be stopped; there is no other way (O12). */
typedef enum errand_resource_class {
    ERRAND_INTERRUPTIBLE_BLOCKING = 1, /* a body that watches its token or has a hook */
    ERRAND_QUARANTINED_BLOCKING = 2,   /* a plain blocking call: needs a bound */
    ERRAND_INTERRUPTIBLE_ASYNC = 3     /* polled; see errand/async.h */
} errand_resource_class;

/* A body.  Answers 0 and may write *out_payload, or answers a code of its own, 1 ..
 * INT32_MAX (say more with errand_job_message).  Negative numbers are the library's:
 * answering one is a plain failure that names the misuse (O25). */
typedef int32_t errand_body_fn(errand_job *job, void *state, errand_payload *out_payload);

/* Usually one static const per kind of work. */
typedef struct errand_job_type {
    uint32_t struct_size;
    const char *name;          /* the operation's name, unless the spec gives one */
    errand_body_fn *run;       /* blocking: the body */
    errand_body_fn *start;     /* async: constructs; NULL = nothing to construct */
    errand_body_fn *poll;      /* async: ERRAND_PENDING, or as a body */
    void (*drop)(void *state); /* [owner], after the completion's handler; once, always */
    const struct errand_portable_type *held_portable; /* errand/portable.h; NULL = none */
    /* [owner]: it was told to end (a cancel, its deadline, a shutdown), or its completion is
     * about to be delivered.  May be called again, its body may run meanwhile, and drop comes
     * after.  It says when the next job may be made of what a state names.  NULL = none */
    void (*told)(void *state);
} errand_job_type;

/* Hooks of an interruptible resource, all [owner].  cancel: at most once for life; reap:
 * any number of times.  Both may write a text, of at most size bytes, for HOOK_ERROR. */
typedef enum errand_hook_answer {
    ERRAND_HOOK_REAPED = 1,  /* nothing of it is left */
    ERRAND_HOOK_PENDING = 2, /* ask again later (reap) */
    ERRAND_HOOK_ERROR = 3
} errand_hook_answer;
typedef struct errand_hook_type {
    uint32_t struct_size;
    errand_hook_answer (*cancel)(void *data, char *text, size_t size);
    errand_hook_answer (*reap)(void *data, char *text, size_t size); /* NULL = reaped */
    void (*drop)(void *data);
    bool (*trace)(void *data, errand_visitor *visitor);
} errand_hook_type;

/* Verdict of a decoder: what the continuation is resumed with. */
typedef struct errand_verdict {
    errand_status status;      /* OK, EDECODE, or ECANCELLED */
    void *value;               /* the decoder's, for the continuation */
    void (*drop)(void *value); /* called if nobody is resumed with it */
    /* A collector's view of value until somebody is resumed with it; NULL = none. */
    bool (*trace)(void **value, errand_visitor *visitor);
} errand_verdict;
/* All [owner].  decode may read the payload or take it: see errand_completion_fn. */
typedef struct errand_decoder_type {
    uint32_t struct_size;
    void (*decode)(void *own_data, struct errand_completion *completion,
                   errand_verdict *out_verdict);
    void (*drop)(void *data); /* instead of decode, if there is nothing to decode */
    bool (*trace)(void *data, errand_visitor *visitor);
} errand_decoder_type;

/* errand_spec.flags */
enum {
    ERRAND_SPEC_NO_SIGNAL = 1,  /* see errand_blocking_config */
    ERRAND_SPEC_EFFECT_FREE = 2 /* nobody can tell how far it ran: errand/order.h */
};
/* What a prepared operation owns: kind, decoder, resource class, job.  From the success
 * of prepare (or start) on, state, decoder and hook data are the operation's: each is
 * dropped exactly once on every path. */
typedef struct errand_spec {
    uint32_t struct_size;
    uint32_t kind; /* the host's own number; nonzero */
    errand_resource_class resource_class;
    uint8_t priority; /* 0 = normal, 1 = high, 2 = low; within one lease only */
    uint8_t lane;     /* 0 = the class's own; else from errand_lane_define */
    uint16_t flags;   /* ERRAND_SPEC_... */
    const errand_job_type *held_job;
    void *state;
    const errand_decoder_type *held_decoder; /* may be NULL */
    void *decoder_data;
    const errand_hook_type *held_hook; /* interruptible only; NULL = the token alone */
    void *hook_data;
    uint64_t deadline_ns;   /* its own: a length from submit; 0 = none; see below */
    uint64_t quarantine_ns; /* quarantined: a length from a cancel; 0 = see work_max */
    uint64_t work_max;      /* quarantined: finite work, told by errand_job_work */
    const char *held_work_unit; /* with work_max: "bytes", "rows" */
    uint64_t soft_ns;           /* running longer is listed as overrun; 0 = never */
    const char *held_name;      /* NULL = the job type's */
    uint64_t trace_id;
    /* The host's number of a file, account ... that it works on; 0 = none.  A runtime's jobs
     * of one domain run one at a time, as submitted, in every order. */
    uint64_t domain;
} errand_spec;
/* A deadline passes while it is queued: FAILED with ERRAND_CODE_DEADLINE, and its body never
 * runs.  While it runs: it is asked to end as by a cancel, but its wait goes on; what it
 * completes counts, and a failure of its own says DEADLINE (with its message), unless a
 * cancel asked first.  If it has not ended after the runtime's grace: DEADLINE, and HELD. */
/* errand_spec spec = ERRAND_SPEC_INIT; in C, and in C++, which names no members. */
#if defined(__cplusplus)
inline errand_spec
errand__spec_init()
{
    errand_spec spec = errand_spec();
    spec.struct_size = sizeof(errand_spec);
    return spec;
}
#define ERRAND_SPEC_INIT errand__spec_init()
#else
#define ERRAND_SPEC_INIT                                                                 \
    {                                                                                    \
        .struct_size = sizeof(errand_spec)                                               \
    }
#endif

/* errand_prepare: a job becomes a token.
 * Thread: [owner].   Gives: *out_prepared; pass it to errand_bind or abandon it.
 * Errors: ENOMEM · EINVAL (zero kind, unknown class, a class without what can stop it, a
 *   bound of zero, a hook on quarantined work, a job type without its functions) ·
 *   ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_prepare(
    errand_runtime *runtime, const errand_spec *spec, errand_prepared *out_prepared);
/* errand_prepared_kind: the declared kind, 0 for a spent token.   Thread: [owner]. */
ERRAND_API uint32_t errand_prepared_kind(const errand_prepared *prepared);

/* ---- 3. A name, and the two joined ------------------------------------------------- */

/* errand_issue: the next identity.  wait is the host's own pointer, never touched, handed
 * back in the completion.
 * Thread: [owner].   Errors: EEXHAUSTED · EFULL (operations_max) · EINVAL · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_issue(
    errand_runtime *runtime, uint32_t kind, void *wait, errand_identity *out_identity);
/* errand_retire: give back an issued identity that was never bound.
 * Thread: [owner].   Errors: ESPENT · EFOREIGN · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_retire(errand_runtime *runtime, const errand_identity *identity);

/* errand_bind: join a name to a job.  Everything its completion needs is allocated here:
 * from now on memory cannot fail this operation.
 * Thread: [owner].   Consumes: *take_prepared on success.
 * Errors: EFOREIGN · ESPENT (identity or token used already) · EKIND · ENOMEM ·
 * ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_bind(
    errand_runtime *runtime, const errand_identity *identity,
    errand_prepared *take_prepared, errand_binding *out_binding);

/* errand_split: a binding becomes the runtime's half (who is told) and the submission.
 * Thread: [owner].   Errors: ESPENT · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_split(
    errand_binding *take_binding, errand_wait *out_wait,
    errand_submission *out_submission);

/* Why a wait or a task was ended. */
typedef enum errand_reason {
    ERRAND_REASON_NONE = 0,
    ERRAND_REASON_EXPLICIT = 1,
    ERRAND_REASON_TIMEOUT = 2,
    ERRAND_REASON_OWNER = 3,
    ERRAND_REASON_ROOT = 4,
    ERRAND_REASON_HOST_STOP = 5,
    ERRAND_REASON_RESOURCE_LOST = 6,
    ERRAND_REASON_SHUTDOWN = 7
} errand_reason;
ERRAND_API const char *errand_reason_name(errand_reason reason); /* [any] */

/* completion: as decoder and handler left it, NULL if the wait ended before; its payload
 * is dropped when resume returns.  verdict: without a decoder OK and NULL. */
typedef struct errand_news {
    errand_reason reason; /* NONE: completion and verdict count */
    const struct errand_completion *completion;
    errand_verdict verdict;
} errand_news;
/* Who is resumed when the wait ends: once, by errand_drive.  drop is called instead if
 * nobody may be resumed. */
typedef struct errand_continuation {
    void (*resume)(void *own_data, errand_runtime *runtime, const errand_news *news);
    void (*drop)(void *data);
    bool (*trace)(void *data, errand_visitor *visitor);
    void *data;
} errand_continuation;

/* errand_await: register the wait, before or after its submission was submitted.  A half
 * that is abandoned instead leaves the operation to errand_drain's handler alone.
 * Thread: [owner].   Errors: ESPENT · ECANCELLED (the operation was cancelled before) ·
 * ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_await(errand_wait *take_wait, const errand_continuation *continuation);

/* Silent, NULL-safe and safe on zeroed or spent tokens: the job's state, decoder and hook
 * data are dropped unrun, no completion is owed.  An abandoned submission ends its wait
 * without resuming it.  Called on another thread or in a forked child they do nothing.
 * Thread: [owner]. */
ERRAND_API void errand_prepared_abandon(errand_prepared *take_prepared);
ERRAND_API void errand_binding_abandon(errand_binding *take_binding);
ERRAND_API void errand_wait_abandon(errand_wait *take_wait);
ERRAND_API void errand_submission_abandon(errand_submission *take_submission);

/* ---- 4. Out ------------------------------------------------------------------------ */

/* errand_submit: the point of admission.  Never blocks; allocates for a lease's first
 * submission of a lane and priority at most.
 * Thread: [owner].   Consumes: *take_submission on success; refused, it stays valid.
 * Errors: EFULL (owed_max of errand_attach, held_max for quarantined work) ·
 *   ENOTHREAD · EFULL, ETAINTED, EBREAKER (pools: errand/faults.h; seeded: EEXTERNAL, as
 *   ENOTHREAD) · ENOMEM (the first of its lane) · ESPENT · EFOREIGN (lease) · ECANCELLED
 *   · EUNSUPPORTED (an async job) · EINVAL (no such lane) · EREPRODUCE · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_submit(errand_lease *lease, errand_submission *take_submission);
/* errand_submit_many: the first *out_accepted submissions are admitted and zeroed, the
 * rest are untouched; the status is the first refusal's, or OK.  *out_accepted is always
 * written.
 * Thread: [owner].   Errors: those of errand_submit. */
ERRAND_API ERRAND_MUST_USE errand_status errand_submit_many(
    errand_lease *lease, errand_submission *take_submissions, size_t count,
    size_t *out_accepted);
/* errand_start: prepare, issue, bind, split and submit in one step, with no wait
 * registered.  out_identity may be NULL.  On any error state, decoder and hook data stay
 * the caller's.
 * Thread: [owner].   Errors: those of the five; EUNSUPPORTED as of errand_submit. */
ERRAND_API ERRAND_MUST_USE errand_status errand_start(
    errand_lease *lease, const errand_spec *spec, void *wait,
    errand_identity *out_identity);

/* ---- 5. Inside a job --------------------------------------------------------------- */

/* All [worker], on the job they were given; any thread of the job may call
 * errand_job_cancelled.
 * errand_job_cancelled: has somebody asked it to end?  Cheap: one load.
 * errand_job_name, errand_job_trace_id, errand_job_identity, errand_job_epoch: what it
 *   runs for.
 * errand_job_message: text for the code that the body is about to answer; cut at 255
 *   bytes.
 * errand_job_fail: the same, and names errno, a signal or a system call (0 = none).
 * errand_job_work: report finished work; EBOUND beyond work_max: return within the grace.
 * errand_job_defer: fn(arg) runs on this worker before the completion is put, newest
 *   first, also after a panic.  ENOMEM.
 * errand_job_alloc: zeroed memory that is gone at the job's end, however it ends.  NULL
 *   if none.
 * errand_payload_alloc: zeroed memory for a payload of *out_payload; it is the
 *   completion's, and freed by the library when nobody took it, by errand_payload_drop
 *   when somebody did.  It sets held_type to a type of its own; memory for a payload of
 *   your own type comes from your own allocator, because that type's drop frees it.
 * errand_job_follow: hand follow-up work to the runtime: named, bound and submitted on
 *   its thread when this job's completion is drained, in call order, on the same lease;
 *   dropped unrun if that is undeliverable.  wait as in errand_issue.  ENOMEM ·
 *   EINVAL. */
ERRAND_API bool errand_job_cancelled(const errand_job *job);
ERRAND_API const char *errand_job_name(const errand_job *job);
ERRAND_API uint64_t errand_job_trace_id(const errand_job *job);
ERRAND_API errand_identity errand_job_identity(const errand_job *job);
ERRAND_API uint64_t errand_job_epoch(const errand_job *job);
ERRAND_API void
errand_job_message(errand_job *job, const char *format, ...) ERRAND_PRINTF(2, 3);
ERRAND_API void
errand_job_fail(errand_job *job, int32_t sys_errno, int32_t signal_number,
                const char *system_call, const char *format, ...) ERRAND_PRINTF(5, 6);
ERRAND_API ERRAND_MUST_USE errand_status
errand_job_work(errand_job *job, uint64_t amount);
ERRAND_API ERRAND_MUST_USE errand_status
errand_job_defer(errand_job *job, void (*fn)(void *), void *arg);
ERRAND_API void *errand_job_alloc(errand_job *job, size_t size);
ERRAND_API void *
errand_payload_alloc(errand_job *job, size_t size, errand_payload *out_payload);
ERRAND_API void errand_payload_drop(errand_payload *payload);
ERRAND_API ERRAND_MUST_USE errand_status
errand_job_follow(errand_job *job, const errand_spec *spec, void *wait);
/* errand_panic: end this job with one PANICKED completion and this message; the worker
 * goes on.  Outside a contained frame it prints the message and aborts, like assert.
 * Thread: [any]. */
ERRAND_API ERRAND_NORETURN void errand_panic(const char *format, ...) ERRAND_PRINTF(1, 2);

/* ---- 6. A change of mind ----------------------------------------------------------- */

typedef enum errand_cancel_answer {
    ERRAND_CANCEL_CANCELLED = 1,     /* it was queued: its body will never run */
    ERRAND_CANCEL_ALREADY = 2,       /* cancelled while queued before; nothing changes */
    ERRAND_CANCEL_RUNNING = 3,       /* asked to end, by this cancel or by one before */
    ERRAND_CANCEL_SETTLED = 4,       /* it has ended; who was not resumed yet hears why */
    ERRAND_CANCEL_NOT_SUBMITTED = 5, /* await and submit of it will answer ECANCELLED */
    ERRAND_CANCEL_UNKNOWN = 6        /* retired, delivered, or its handler runs now */
} errand_cancel_answer;

/* errand_cancel: end the wait with the reason, and ask the operation to end.  From
 * RUNNING or CANCELLED on, its completion is drained like any other and flagged and
 * counted late, also if nobody ever waited (errand_start).  out_answer may be NULL.
 * A running one has its token set and its hook called, and may end early; in the seeded
 * orders that is so for effect-free ones alone: see errand/order.h.
 * Thread: [owner].   Errors: ETHREAD · EFOREIGN · EINVAL (reason). */
ERRAND_API ERRAND_MUST_USE errand_status errand_cancel(
    errand_runtime *runtime, const errand_identity *identity, errand_reason reason,
    errand_cancel_answer *out_answer);
/* errand_reap_ready: the resource of a cancelled operation can be reaped now: ask its
 * hook at the next drive.   Thread: [owner].   Errors: ETHREAD · EUNKNOWN. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_reap_ready(errand_runtime *runtime, const errand_identity *identity);

/* From other threads.  A handle is counted and may outlive the runtime.
 * errand_inbox_open [owner] · errand_inbox_abandon [any] · errand_inbox_closed [any]: has
 *   the runtime ended?
 * errand_post_cancel [any]: OK = posted (also when it was posted before), EGONE = that
 *   operation or the inbox is gone, EREPRODUCE.
 * errand_post [any]: OK = fn(runtime, arg) runs once on the owner's thread inside a drain
 *   or drive, or drop(arg) is called at close.  node is the poster's until OK, the
 *   library's until fn or drop is called.  EGONE · EREPRODUCE · EBUSY (node is posted
 *   already).
 * errand_interrupt [signal]: wakes, and the next drive cancels the roots with
 *   HOST_STOP. */
typedef struct errand_command {
    void *library[2];
    void (*fn)(errand_runtime *runtime, void *arg);
    void (*drop)(void *arg);
    void *arg;
} errand_command;
ERRAND_API ERRAND_MUST_USE errand_status
errand_inbox_open(errand_runtime *runtime, errand_inbox **out_inbox);
ERRAND_API void errand_inbox_abandon(errand_inbox **take_inbox);
ERRAND_API bool errand_inbox_closed(const errand_inbox *inbox);
ERRAND_API ERRAND_MUST_USE errand_status
errand_post_cancel(errand_inbox *inbox, const errand_identity *identity);
ERRAND_API ERRAND_MUST_USE errand_status
errand_post(errand_inbox *inbox, errand_command *node);
ERRAND_API void errand_interrupt(errand_inbox *inbox);
/* errand_job_post [worker]: as errand_post, for a job whose body has not returned.  In the
 *   seeded orders fn runs when the job is due, before its completion is told, and the run
 *   stays reproducible; fn may not be left by longjmp there.  EGONE · EBUSY · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_job_post(errand_job *job, errand_command *node);
/* For a collector's finaliser [owner]: no lock, no host code; done by the next drive or
 * drain.  errand_cancel_later: EUNKNOWN.  errand_abandon_later: ESPENT. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_cancel_later(errand_runtime *runtime, const errand_identity *identity);
ERRAND_API ERRAND_MUST_USE errand_status
errand_abandon_later(errand_submission *take_submission);

/* ---- 7. News ----------------------------------------------------------------------- */

/* errand_completion.flags */
enum {
    ERRAND_LATE = 1,             /* its wait had ended, or it was cancelled without one */
    ERRAND_HELD = 2,             /* settled by the library; its body has not returned */
    ERRAND_CANCEL_REQUESTED = 4, /* somebody asked it to end */
    ERRAND_MESSAGE_LOST = 8      /* no block was free: the code's fixed sentence stands */
};
typedef struct errand_completion {
    errand_identity identity;
    void *wait; /* as given to issue or start */
    errand_outcome outcome;
    errand_code code;
    uint32_t flags;
    int32_t job_code; /* with ERRAND_CODE_JOB; with DEADLINE what the body said, or 0 */
    errand_payload payload;
    const char *operation; /* its name */
    const char *message;   /* of a failure, never NULL; valid until the handler returns */
    int32_t sys_errno, signal_number;
    const char *system_call; /* or NULL */
    uint64_t trace_id;
    uint64_t t_submit_ns, t_start_ns, t_end_ns; /* see errand/config.h */
} errand_completion;

/* errand_completion_fn: a handler hears of each completion once, on the owner's thread,
 * as the second of those that one is delivered to:
 *   1. the decoder, if somebody waits and it is not CANCELLED; else it is dropped
 *   2. the handler: errand_drain's own, or on_completion in a drive and a RUN shutdown
 *   3. the continuation or task, if one waits: at its turn in a later drive
 * What none of them took is dropped when the last has returned; the job's state after 2.
 * Who takes the payload (errand_completion_take) has it alone: errand_completion_read
 * tells those behind EDECODE.  A handler that looks on should only read.  It may call all
 * but what answers EBUSY then, and be left by longjmp: errand_runtime_unwound. */
typedef void errand_completion_fn(void *arg, errand_completion *completion);

/* errand_completion_take: the payload becomes the caller's; give it to
 *   errand_payload_drop.
 * errand_completion_read: look at the payload as a type; it stays where it is.  EDECODE:
 *   it has another type, was taken, or there is none; completion->message says which.
 * Thread: [owner], inside the handler, decoder or task. */
ERRAND_API errand_payload errand_completion_take(errand_completion *completion);
ERRAND_API ERRAND_MUST_USE errand_status errand_completion_read(
    errand_completion *completion, const errand_payload_type *type, void **out_data,
    size_t *out_size);

/* errand_drain: hand completions to fn in the configured order: at most budget, and at
 * most what was there at entry.  fn may be NULL.  *out_count counts completions.
 * Thread: [owner]; never blocks, but for what is due in seeded orders.   Errors: EBUSY
 *   (inside a handler, decoder, hook or drop, or not unwound) · EEXTERNAL · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_drain(
    errand_runtime *runtime, size_t budget, errand_completion_fn *fn, void *arg,
    size_t *out_count);
/* errand_runtime_unwound: the host left a handler, decoder, continuation, hook, drop or
 * task by longjmp or an exception: the item in hand counts as delivered, the call that
 * was left as made, and the rest is done by the next drain or drive, in order.
 * Thread: [owner].   Errors: EMISUSE (nothing was in progress) · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_runtime_unwound(errand_runtime *runtime);

/* errand_park: sleep until something is buffered, or until deadline_ns on the runtime's
 * clock (UINT64_MAX = none), whichever is first.  Virtual time never waits: returns
 * at once.
 * Thread: [owner].   Errors: ETHREAD · EBUSY · EDEADLOCK (inside a job) · EEXTERNAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_park(errand_runtime *runtime, uint64_t deadline_ns);
/* errand_runtime_wake_fd: a descriptor for a foreign event loop: readable while something
 * is buffered; level-triggered; poll it, never read it.  It is the runtime's.
 * Thread: [owner].   Errors: ESYSTEM · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_runtime_wake_fd(errand_runtime *runtime, int *out_fd);

/* ---- 8. Accounts ------------------------------------------------------------------- */

/* accepted = queued + running + undrained + drained + undeliverable, in every
 * snapshot. */
typedef struct errand_snapshot {
    uint64_t accepted, queued, running, undrained, drained, undeliverable;
    uint64_t resumed, late, reaped; /* drained = resumed + late + reaped; runtimes only */
    /* terminals of all settled, and those by failure code */
    uint64_t completed, failed, cancelled, panicked, crashed;
    uint64_t codes[ERRAND_CODES];
    uint64_t held, returned_late, messages_lost, owed, stale;
    /* Runtimes only: objects given up because their drop, decoder or hook panicked; those
     * of workers: errand_executor_snapshot (O76). */
    uint64_t leaked;
} errand_snapshot;
/* Thread: [any], while the runtime lives; takes no lock.   Errors: EFORKED. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_runtime_snapshot(const errand_runtime *runtime, errand_snapshot *out_snapshot);
ERRAND_API ERRAND_MUST_USE errand_status
errand_lease_snapshot(const errand_lease *lease, errand_snapshot *out_snapshot);
/* errand_lease_wait_room: sleep until a submit would find room or there is something to
 * drain, or until deadline_ns on the runtime's clock.
 * Thread: [owner].   Errors: ETIMEOUT · EDEADLOCK (on a worker) · EEXTERNAL · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_lease_wait_room(errand_lease *lease, uint64_t deadline_ns);

/* A collector's view (O15): calls visit(visitor, slot) for every pointer that decoders,
 * hooks, continuations, decoded values and tasks hold, in a fixed order.  visit answering
 * true stops: passed up.  Without the own_ arguments of a call in progress. */
struct errand_visitor {
    bool (*visit)(errand_visitor *visitor, void **slot);
    void *arg;
};
/* Thread: [owner], also inside a collection.  Allocates nothing.
 * Gives: true if it was stopped. */
ERRAND_API bool errand_runtime_trace(errand_runtime *runtime, errand_visitor *visitor);

/* ---- 9. The end -------------------------------------------------------------------- */

typedef enum errand_shutdown_mode {
    ERRAND_SHUTDOWN_RUN = 1,  /* cancelled continuations and tasks are driven */
    ERRAND_SHUTDOWN_QUIET = 2 /* no continuation, task or decoder is entered */
} errand_shutdown_mode;
typedef struct errand_report {
    errand_snapshot accounts;
    uint64_t live_waits, live_tasks, entries, undeliverable, held, posts_dropped;
    uint64_t running; /* bodies still in progress that were not written off */
    bool clean;       /* all of the above but accounts are zero */
} errand_report;
/* errand_lease_shutdown: stop admission, cancel its queued jobs, wait until nothing of it
 * is unsettled or the deadline (on CLOCK_MONOTONIC), detach.  The lease is spent
 * afterwards: copies of its pointer answer ECLOSED until the runtime is shut down.
 * Thread: [owner].   Errors: EBUSY · ETHREAD · EDEADLOCK. */
ERRAND_API ERRAND_MUST_USE errand_status errand_lease_shutdown(
    errand_lease **take_lease, uint64_t deadline_ns, errand_report *out_report);
/* errand_runtime_shutdown: stop admission, cancel every wait in key order, run hooks,
 * shut all leases with the one deadline (CLOCK_MONOTONIC ns), drain, close.  Always ends
 * the runtime; the report names every exception.  out_report may be NULL.  Leases, waits,
 * tokens and tasks of the runtime are freed with it: let go of their pointers, too.
 * Thread: [owner].   Errors: EBUSY · ETHREAD · EDEADLOCK · EINVAL (mode); it lives on. */
ERRAND_API ERRAND_MUST_USE errand_status errand_runtime_shutdown(
    errand_runtime **take_runtime, uint64_t deadline_ns, errand_shutdown_mode mode,
    errand_report *out_report);
/* errand_deadline_in: CLOCK_MONOTONIC now + ns, saturating: for the two shutdowns, which
 * always count on that clock.  Every other moment counts on the runtime's, which is the
 * same only in arrival order without ERRAND_RUNTIME_TEST_CLOCK.   Thread: [any]. */
ERRAND_API uint64_t errand_deadline_in(uint64_t ns);

ERRAND_END
#endif
