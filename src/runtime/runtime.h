/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_H
#define ERRAND_RUNTIME_H
/* runtime: the whole.  Create, submit (draws and admits), waits, drain, drive, cancel, cleanup,
 * shutdown.  Owner thread only, but for snapshot and what inbox handles offer. */
#include "recording/recording.h"
#include "scheduler/scheduler.h"
#include "workers/workers.h"

#define ERRAND__LEASES_MAX 255 /* attachments in a runtime's life */

typedef struct errand__resume errand__resume;   /* deliver/deliver.h */
typedef struct errand__cleanup errand__cleanup; /* cancel/cancel.h */
typedef struct errand__turn errand__turn;       /* turns/turns.h */

struct errand_inbox {     /* handle for other threads; immutable */
    errand__block *block; /* held */
    uint32_t fork_epoch;
    bool refuses; /* seeded, with REFUSE_FOREIGN */
    uint64_t runtime_id;
};

struct errand_runtime {
    /* Immutable after create. */
    uint64_t id;
    errand_runtime_config config;
    const errand_allocator *allocator; /* NULL or &config copy */
    errand_allocator allocator_copy;
    errand__block *block;
    uint32_t fork_epoch;
    /* owner: errand__thread_self() of the owner, 0 = released.  Writers: release, adopt.  Readers: every
     * call.  Order: release store, compare-exchange, acquire load.  Pairs: runtime-owner.  Why: what the one thread
     * wrote must be there for the other. */
    _Atomic uintptr_t owner;
    /* Owner thread only. */
    bool closed, closing;     /* closing: nothing new is admitted */
    uint64_t stop_ns;         /* while closing: its deadline, CLOCK_MONOTONIC */
    bool draining, driving;   /* in progress: EBUSY; left by a longjmp: until unwound */
    bool unflushed;           /* a lease has submits whose flush was put off */
    uint32_t unflushed_count; /* paced: how many at most */
    uint32_t unpolled;        /* async jobs asked to end since the last flush for them */
    bool fd_wanted;
    int foreign_fd; /* what a foreign loop got; -1 = none; the inbox's own, or one around several */
    errand__registrar registrar;
    errand__scheduler scheduler;
    errand_lease *leases[ERRAND__LEASES_MAX];
    /* lease_count: Writers: the owner.  Readers: snapshots, any thread.  Order: release, acquire.
     * Pairs: lease-count.  Why: a lease is there before it is counted. */
    _Atomic uint32_t lease_count;
    uint64_t key, submissions; /* of what is submitted outside tasks */
    /* News taken from the inbox and not yet delivered, in order: a chain of tagged links. */
    uintptr_t pending, pending_last;
    uintptr_t asked, asked_last; /* seeded: by jobs that are not due yet; see asked.c */
    bool asked_over;
    uintptr_t follow_first, follow_last; /* follow-ups that found no room yet */
    /* The clock of submissions: one reading per drain and millisecond, then the cycle counter. */
    uint64_t clock_ns, clock_cycles, clock_submit;
    unsigned clock_left; /* submissions that share clock_submit */
    uint64_t news_ns;    /* when what is pending was collected; 0 = not asked yet */
    double ns_per_cycle;
    /* The item in hand of a drain or drive; survives an unwind. */
    errand__record *hand; /* parts not dropped yet */
    errand_completion hand_completion;
    errand__failure *hand_failure;
    bool hand_live;
    bool hand_dropped;           /* its state */
    errand__frame *frame;        /* innermost when the drain or drive began */
    bool hand_rest;              /* hand_completion's cold fields hold something */
    errand__resume *visiting;    /* whose continuation is being called */
    errand__resume *hand_resume; /* gets the payload if the handler does not take it */
    char scratch[256];           /* messages made here (EDECODE, stall) */
    errand__link waits, cleanups;
    size_t wait_count, cleanup_count;
    errand__resume *resumes_free;
    errand__cleanup *cleanups_free;
    size_t later; /* records with OWN_LATER set: cancel_later, abandon_later */
    errand__heap
        deadlines; /* extra->deadline_entry, on the runtime's clock; last = slot */
    /* resumed, late, reaped, stale, leaked (objects whose drop panicked, O76), held (bodies that
     * outlived their operation): Writers: the owner.  Readers: snapshots, any thread.
     * Order: release, acquire.  Pairs: cell-count.  Why: see accounts.c. */
    _Atomic uint64_t resumed, late, reaped, stale, leaked, held;
    errand__cell own;    /* settled by the owner on no lease's behalf */
    uint32_t collectors; /* open or lingering leases whose executor has an ops->collect */
    uint64_t given_key;  /* of the operation that is being started; 0 = see order_queue */
    bool
        interrupted; /* seeded: what is with its executor goes by real state from here on */
    bool dues_over; /* seeded: at the end what comes is told as it comes */
    /* The run ended for something that is not its own: real in a seeded order, or not in the log
     * that is replayed; external_text says what. */
    bool external;
    errand_status external_status; /* EEXTERNAL or EREPRODUCE */
    char external_text[512];
    struct errand__turn *turn; /* in progress, or NULL */
    bool unhanded;      /* replay: results come from the log, no executor gets anything */
    bool foreign_input; /* seeded and something came from another thread */
    char foreign_text[96];
    errand_lease
        *dedicated; /* for work with a thread of its own; NULL until it is asked for */
    char *stall;    /* of the last errand_run_root that failed; stall_size bytes */
    size_t stall_size;
    struct errand__digesters *digesters; /* errand_audit_payload, errand_record_codec */
    /* What goes into the log with the next step, beside it; see record.c. */
    const errand_log_completion *record_completion;
    const void *record_bytes;
    size_t record_size;
    errand_status run_status; /* of the last errand_run */
};

static inline void
errand__leak_count(errand_runtime *runtime, unsigned leaked)
{
    while (leaked-- > 0)
        errand__count(&runtime->leaked);
}

/* ---- entry checks -------------------------------------------------------------------------------------- */
/* The status that a call on this runtime gets before anything else: OK, EINVAL (NULL), EFORKED, ETHREAD,
 * ECLOSED.  With the misuse hook called. */
errand_status errand__runtime_check(const errand_runtime *runtime, const char *function);
static inline errand_status
errand__runtime_enter(const errand_runtime *runtime, const char *function)
{
    if (__builtin_expect(
            runtime != NULL && runtime->fork_epoch == errand__fork_epoch() &&
                atomic_load_explicit(&runtime->owner,
                                     memory_order_acquire) == /* Pairs: runtime-owner */
                    errand__thread_self() &&
                !runtime->closed,
            1))
        return ERRAND_OK;
    return errand__runtime_check(runtime, function);
}
#define ERRAND__ENTER(runtime)                                                           \
    do {                                                                                 \
        errand_status entered_ = errand__runtime_enter((runtime), __func__);             \
        if (__builtin_expect(entered_ != ERRAND_OK, 0))                                  \
            return entered_;                                                             \
    } while (0)
static inline uint32_t
errand__lease_count(const errand_runtime *runtime) /* owner */
{
    return atomic_load_explicit(&runtime->lease_count, memory_order_relaxed);
}
uint64_t errand__runtime_time(const errand_runtime *runtime); /* now, on its clock */
/* The same, where the program sees what comes of it: an input. */
uint64_t errand__runtime_read(errand_runtime *runtime);
static inline bool
errand__seeded(const errand_runtime *runtime)
{
    return runtime->config.order != ERRAND_ORDER_ARRIVAL;
}
static inline bool
errand__paced(const errand_runtime *runtime)
{
    return runtime->config.order == ERRAND_ORDER_PACED;
}
/* Are steps made of what is real (arrival order, for a replay)? */
static inline bool
errand__inputs(const errand_runtime *runtime)
{
    return runtime->scheduler.audit.inputs;
}
/* What the audit knows an armed operation by. */
static inline uint64_t
errand__record_key(const errand_runtime *runtime, const errand__record *record)
{
    bool keyed = errand__seeded(runtime) || errand__inputs(runtime);

    const errand__extra *extra = keyed ? record->extra : NULL;

    return extra != NULL && !extra->brief && extra->key != 0 ? extra->key
                                                             : record->operation;
}
/* Does virtual time say how far this armed operation is?  Not at the end of its runtime or lease,
 * which no due will be waited for; nor, once the run was interrupted, if its executor has it. */
static inline bool
errand__virtually(const errand_runtime *runtime, const errand__record *record)
{
    return errand__seeded(runtime) && !runtime->closing &&
           !runtime->leases[record->lease]->refusing &&
           !(runtime->interrupted && (record->owner_flags & ERRAND__OWN_HANDED) != 0);
}
/* Around all that calls the host's hooks and drops outside a drain or drive: inside them nobody may
 * drain, drive or end the runtime either, and they may be left by longjmp.  begin answers what end
 * needs. */
bool errand__calls_begin(errand_runtime *runtime);
void errand__calls_end(errand_runtime *runtime, bool begun);
/* A worker's, or a host's, foreign input reached a run: a seeded one is marked (O65).  key: of the
 * operation that it is about; 0 = none. */
void errand__foreign_mark(errand_runtime *runtime, const char *what, uint64_t key);
#define ERRAND__FOREIGN_INTERRUPT "an interrupt"
#define ERRAND__FOREIGN_CANCEL    "a posted cancel"
#define ERRAND__FOREIGN_COMMAND   "a posted command"
#define ERRAND__FOREIGN_WORK      "a report of work" /* arrival order only */

/* ---- accounts.c -------------------------------------------------------------------------------- */
/* Seeded: an operation has ended for the program; counted once. */
void errand__told(errand_runtime *runtime, errand__record *record, errand_outcome outcome,
                  errand_code code);
void errand__runtime_account(const errand_runtime *runtime, errand_snapshot *out);

/* Its parts, a folder each. */
#include "runtime/submit/submit.h"
#include "runtime/orders/orders.h"
#include "runtime/deliver/deliver.h"
#include "runtime/cancel/cancel.h"
#include "runtime/turns/turns.h"
#include "runtime/tasks/tasks.h"
#include "runtime/replay/inputs.h"
#include "runtime/replay/record.h"
#endif
