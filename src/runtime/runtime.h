/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_H
#define ERRAND_RUNTIME_H
/* runtime: the whole.  Create, submit (draws and admits), waits, drain, drive, cancel, cleanup,
 * shutdown.  Owner thread only, but for snapshot and what inbox handles offer. */
#include <pthread.h>
#include "scheduler/scheduler.h"
#include "workers/workers.h"

#define ERRAND__LEASES_MAX 64

/* Who is resumed when a wait ends, and with what: made by errand_await or a task's await, readied by
 * delivery or cancel, visited once. */
typedef struct errand__resume {
    errand__ready ready;        /* link: in the scheduler's ready list once the wait ended */
    errand__link waiting;       /* in runtime->waits while active, wait key order of registration */
    uint64_t wait_id, generation;
    errand__record *record;     /* while the wait is active; NULL once it ended */
    errand_continuation continuation; /* resume NULL: task's wait */
    errand_task *task;
    errand_reason reason;       /* of a cancel */
    bool completed;             /* completion and verdict count */
    errand_completion completion;
    errand_verdict verdict;
    errand__failure *failure;   /* keeps completion.message alive */
    struct errand__resume *next_free;
} errand__resume;

/* What is left of a cancelled operation that was running: reap it (O39, O41). */
typedef struct errand__cleanup {
    errand__link link;          /* in runtime->cleanups, round-robin */
    uint64_t wait_id, generation;
    errand__record *record;     /* until its completion was drained */
    const errand_hook_type *hook;
    void *hook_data;
    uint64_t bound_ns;          /* quarantine */
    uint64_t due_ns;            /* next reap; UINT64_MAX = only waits for the completion */
    uint32_t tries, errors;
    bool stuck;
    struct errand__cleanup *next_free;
} errand__cleanup;

struct errand_inbox { /* handle for other threads */
    atomic_uint refs;
    errand__block *block;
    bool seeded_refuses;
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
    /* The owner.  Written by release and adopt. */
    pthread_t owner;
    _Atomic bool owned;
    /* Owner thread only. */
    bool closed, closing;
    bool draining, driving;     /* in progress: EBUSY; left by a longjmp: until unwound */
    bool fd_wanted;
    errand__registrar registrar;
    errand__scheduler scheduler;
    errand_lease *leases[ERRAND__LEASES_MAX];
    uint32_t lease_count;
    uint64_t key, submissions;  /* of what is submitted outside tasks */
    /* News taken from the inbox and not yet delivered, in order: a chain of tagged links. */
    uintptr_t pending, pending_last;
    size_t pending_count;       /* completions among them */
    /* The item in hand of a drain or drive; survives an unwind. */
    errand__record *hand;       /* parts not dropped yet */
    errand_completion hand_completion;
    errand__failure *hand_failure;
    bool hand_live;
    char scratch[256];          /* messages made here (EDECODE, stall) */
    errand__link waits, cleanups;
    size_t wait_count, cleanup_count, held;
    errand__resume *resumes_free;
    errand__cleanup *cleanups_free;
    uintptr_t later;            /* cancel_later and abandon_later: a list of records */
    errand__heap deadlines;     /* extra->deadline_entry, on the runtime's clock */
    /* Single writer: owner; read by snapshot.  Pairs: cell-count. */
    _Atomic uint64_t resumed, late, reaped, stale;
    errand__cell own; /* settled by the owner on no lease's behalf */
    unsigned cpus;
    bool idle_spin;             /* recent traffic: parking may spin */
    int turn_source;            /* drive's persistent cursor */
    bool foreign_input;         /* seeded and something came from another thread */
    char foreign_text[64];
    struct errand__digesters *digesters; /* errand_audit_payload */
};

/* ---- entry checks -------------------------------------------------------------------------------------- */
/* The status that a call on this runtime gets before anything else: OK, EINVAL (NULL), EFORKED, ETHREAD,
 * ECLOSED.  With the misuse hook called. */
errand_status errand__runtime_check(const errand_runtime *runtime, const char *function);
#define ERRAND__ENTER(runtime)                                                                \
    do {                                                                                      \
        errand_status entered_ = errand__runtime_check((runtime), __func__);                  \
        if (__builtin_expect(entered_ != ERRAND_OK, 0))                                       \
            return entered_;                                                                  \
    } while (0)

/* ---- submit.c -------------------------------------------------------------------------------------------- */
/* Admission of a SPLIT or filled record on a lease: checks, accounts, arms, hands over (arrival) or queues by
 * due (seeded).  task: whose key and ordinal the draws hang on; NULL = the runtime's. */
errand_status errand__admit(errand_lease *lease, errand__record *record, errand_task *task);
/* errand_start with a resume object attached (wait active) before it can complete. */
errand_status errand__start(errand_lease *lease, const errand_spec *spec, void *wait,
                            errand__resume *resume, errand_task *task,
                            errand_identity *out_identity);

/* ---- waits.c --------------------------------------------------------------------------------------------- */
errand__resume *errand__resume_take(errand_runtime *runtime); /* NULL = no memory */
void errand__resume_give(errand_runtime *runtime, errand__resume *resume);
/* Ends an active wait with a reason: unlinked, decoder dropped, continuation readied. */
void errand__wait_end(errand_runtime *runtime, errand__resume *resume, errand_reason reason);
/* ends without resuming: the continuation's drop is called (abandon, abort, QUIET). */
void errand__wait_forget(errand_runtime *runtime, errand__resume *resume);
/* Drops verdict and payload that nobody was resumed with; after a visit too. */
void errand__resume_clear(errand_runtime *runtime, errand__resume *resume);

/* ---- drain.c --------------------------------------------------------------------------------------------- */
/* Moves what is in the inbox behind pending.  Cheap when there is nothing. */
void errand__collect(errand_runtime *runtime);
/* Takes the next item of pending: a completion is routed, given to fn and dropped; a command runs.
 * Answers what it was. */
typedef enum errand__item {
    ERRAND__ITEM_NONE = 0,
    ERRAND__ITEM_COMPLETION = 1,
    ERRAND__ITEM_COMMAND = 2
} errand__item;
errand__item errand__deliver_next(errand_runtime *runtime, errand_completion_fn *fn, void *arg);
/* One completion, of a record that is not in the chain any more. */
void errand__deliver(errand_runtime *runtime, errand__record *record,
                     errand_completion_fn *fn, void *arg);

/* ---- cancel.c -------------------------------------------------------------------------------------------- */
errand_cancel_answer errand__cancel_record(errand_runtime *runtime, errand__record *record,
                                           errand_reason reason);
/* Deadlines that are due, at most budget; held bodies' return. */
size_t errand__deadlines_fire(errand_runtime *runtime, size_t budget);
void errand__later_run(errand_runtime *runtime);

/* ---- cleanup.c ------------------------------------------------------------------------------------------- */
errand_status errand__cleanup_add(errand_runtime *runtime, errand__record *record,
                                  bool quarantined);
/* One reap; true if it made progress.  See O41. */
bool errand__cleanup_visit(errand_runtime *runtime);
uint64_t errand__cleanup_next(const errand_runtime *runtime); /* earliest due, or UINT64_MAX */

/* ---- order.c / drive.c ------------------------------------------------------------------------------------ */
/* Seeded orders: the earliest due operation is run to its end (manual step, or its worker is waited for) and
 * delivered; time moves there.  False: none is due at or before limit. */
bool errand__due_next(errand_runtime *runtime, uint64_t limit, errand_completion_fn *fn,
                      void *arg);
uint64_t errand__runtime_time(errand_runtime *runtime); /* now, on its clock */

/* ---- tasks.c (runtime) -------------------------------------------------------------------------------------- */
/* Cancels or aborts every task below the roots, in key order; used by shutdown and interrupt. */
void errand__tasks_cancel_all(errand_runtime *runtime, errand_reason reason);
void errand__tasks_abort_all(errand_runtime *runtime);
size_t errand__tasks_live(const errand_runtime *runtime);
void errand__tasks_fini(errand_runtime *runtime);
/* The operation that a task waits for has ended or been cancelled: readies it. */
bool errand__tasks_trace(errand_runtime *runtime, errand_visitor *visitor);
#endif
