/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_ORDER_H
#define ERRAND_ORDER_H
/* order: what the seeded orders add: latency models, digest, trace.
 * Conventions: errand.h.  All functions are [owner]. */
#include "errand.h"
ERRAND_BEGIN

/* How long operations of a kind take in virtual time: due is drawn log-uniformly from
 * [estimate / 2, estimate * 2] after submission, begin uniformly from [submission, due].
 * Kinds without a model: 1 ms.  Takes effect for later submissions; EINVAL: zero or too
 * large (2^62), EUNSUPPORTED: arrival order, ENOMEM. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_order_latency(errand_runtime *runtime, uint32_t kind, uint64_t estimate_ns);

/* Cancel and deadlines in the seeded orders go by virtual time alone.  Before its begin an
 * operation is queued, then it runs until its due, then it has ended.
 *   - Cancelled before its begin: CANCELLED; its body never runs.
 *   - Cancelled while it runs: its wait ends at once, its token is not set and its hook not
 *     called; it runs to its end, and its completion comes late, at its due.
 *   - The same with ERRAND_SPEC_EFFECT_FREE: token and hook hear of it at once; at its due
 *     it has FAILED with ERRAND_CODE_CANCELLED, without payload or follow-ups, whatever its
 *     body answered.
 *   - Its deadline passes while it runs: FAILED with ERRAND_CODE_DEADLINE at its due; no
 *     worker is written off.  So a deadline ends nobody who never ends: the executor's own real
 *     limit does (a sandbox's deadline_ns), which is an answer and makes the run not reproducible,
 *     or the watchdog.  Nothing bounds a body on the runtime's own thread (errand_manual_step, a
 *     stepped executor, all workers busy).
 * Snapshots of runtime and leases follow virtual time, too; that of an executor, which
 * cannot, answers EUNSUPPORTED during a turn.
 *
 * What cannot be virtual ends the run: a due operation that takes longer in real time than
 * watchdog_ns, a thread that cannot be made, a lost worker.  Then errand_run, _drive, _drain
 * and _park answer EEXTERNAL from there on, errand_stall_text says what it was, and the
 * shutdown accounts for everything, as always.  An interrupt also makes it real: what is
 * with an executor is then asked to end as in arrival order.  So does the shutdown. */

/* errand_digest: the audit of every step so far; 0 in arrival order.  Reading it
 *   changes nothing.
 * errand_audit_note: fold a host's own event in (label, bytes); in arrival order the
 *   trace alone hears of it.  Never put addresses, process ids, real times or outside
 *   paths in.
 * Errors: EINVAL · ETHREAD. */
ERRAND_API uint64_t errand_digest(const errand_runtime *runtime);
ERRAND_API ERRAND_MUST_USE errand_status errand_audit_note(
    errand_runtime *runtime, const char *label, const void *bytes, size_t size);
/* errand_audit_payload: how the payloads of a type enter the digest.  Without it only
 * their size does.  fn writes a canonical 64-bit hash.  ENOMEM. */
ERRAND_API ERRAND_MUST_USE errand_status errand_audit_payload(
    errand_runtime *runtime, const errand_payload_type *held_type,
    uint64_t (*fn)(const void *data, size_t size));

/* Steps of the audit; the numbers are part of the digest and are never reused. */
typedef enum errand_step_kind {
    ERRAND_STEP_SUBMIT = 1,
    ERRAND_STEP_COMPLETION = 2,
    ERRAND_STEP_TASK = 3, /* a task runs */
    ERRAND_STEP_SPAWN = 4,
    ERRAND_STEP_END = 5,
    ERRAND_STEP_TIMER = 6,
    ERRAND_STEP_CANCEL = 7,
    ERRAND_STEP_DRAW = 8,
    ERRAND_STEP_COMMAND = 9, /* foreign input */
    ERRAND_STEP_NOTE = 10,
    ERRAND_STEP_TIME = 11,
    ERRAND_STEP_STOP = 16,    /* the first; value = its own */
    ERRAND_STEP_STOPPED = 17, /* a signal was taken; value = how many are held */
    /* Arrival order with a recorder only: what was real, so that it can be replayed. */
    ERRAND_STEP_REFUSED = 18, /* a submission; detail = the status */
    ERRAND_STEP_FOUND = 19,   /* an operation's state was asked for; see detail below */
    ERRAND_STEP_HOOK = 20,    /* detail = its answer; value 0 = cancel, 1 = reap */
    ERRAND_STEP_TURN = 21     /* detail = errand_turn_step; value hangs on that */
} errand_step_kind;
typedef enum errand_turn_step {
    ERRAND_TURN_STEP_VISIT = 1,    /* a task or continuation gets its turn */
    ERRAND_TURN_STEP_DEADLINE = 2, /* of the operation passed */
    ERRAND_TURN_STEP_LATER = 3,    /* what was put off is done */
    ERRAND_TURN_STEP_END = 4,      /* of an errand_drive or errand_drain */
    ERRAND_TURN_STEP_RUN = 5,      /* an errand_run ended; value = the status */
    ERRAND_TURN_STEP_WAIT = 6,     /* errand_lease_wait_room ended; value = the status */
    ERRAND_TURN_STEP_BACK = 7      /* the body of an operation that outlived it ended */
} errand_turn_step;
typedef struct errand_step {
    uint64_t step, time_ns;
    errand_step_kind kind;
    uint32_t detail;   /* outcome, reason, kind of operation */
    uint64_t key;      /* of the task or operation */
    uint64_t value;    /* result digest, draw, deadline */
    const char *label; /* of the task or operation, or NULL */
    uint64_t chosen;   /* the choices since the step before, folded; 0 = none */
    uint64_t context;  /* what it hangs on: see below */
} errand_step;
/* context: of SUBMIT the key of the task that submits, of SPAWN that of the parent (0 =
 * none); of TASK a hash of what was ready when its pass was taken; of DRAW how many the
 * task drew before; of NOTE the number of bytes.  FOUND: detail = 1 queued, 3 running,
 * 4 settled; value = the outcome, if it was settled.
 * errand_step_name: "submit", "completion" ...; "unknown".   Thread: [any]. */
ERRAND_API const char *errand_step_name(errand_step_kind kind);
/* errand_trace: have fn called with each step (in arrival order too), inside the call
 * that made it; it may call nothing of this runtime.  NULL takes it away.
 * Errors: ETHREAD. */
typedef void errand_trace_fn(void *arg, const errand_step *step);
ERRAND_API ERRAND_MUST_USE errand_status
errand_trace(errand_runtime *runtime, errand_trace_fn *fn, void *arg);
/* errand_reproducible: false once foreign input reached a seeded run, or an executor's real limit
 *   ended an operation of it; out_text names the thread or the operation. */
ERRAND_API bool
errand_reproducible(const errand_runtime *runtime, char *out_text, size_t size);

ERRAND_END
#endif
