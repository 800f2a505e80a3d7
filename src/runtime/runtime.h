/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_H
#define ERRAND_RUNTIME_H
/* runtime: the whole.  Create, submit (draws and admits), waits, drain, drive, cancel, cleanup,
 * shutdown.  Owner thread only, but for snapshot and what inbox handles offer. */
#include "recording/recording.h"
#include "scheduler/scheduler.h"
#include "workers/workers.h"

#define ERRAND__LEASES_MAX 255 /* attachments in a runtime's life */

/* Who is resumed when a wait ends, and with what: made by errand_await or a task's await, readied by
 * delivery or cancel, visited once. */
typedef struct errand__resume {
    errand__ready ready; /* link: in the scheduler's ready list once the wait ended */
    errand__link
        waiting; /* in runtime->waits while active, wait key order of registration */
    uint64_t wait_id, generation;
    errand__record *record;           /* while the wait is active; NULL once it ended */
    errand_continuation continuation; /* resume NULL: task's wait */
    errand_task *task;
    errand_reason reason; /* of a cancel */
    bool completed;       /* completion and verdict count */
    bool decoding;        /* its decoder is being called, or was left */
    errand_completion completion;
    errand_verdict verdict;
    errand__failure *failure; /* keeps completion.message alive */
    struct errand__resume *next_free;
} errand__resume;

/* What is left of a cancelled operation that was running: reap it (O39, O41). */
typedef struct errand__cleanup {
    errand__link link; /* in runtime->cleanups, round-robin */
    uint64_t wait_id, generation;
    errand__record *record; /* until its completion was drained */
    const errand_hook_type *hook;
    void *hook_data;
    uint64_t bound_ns;      /* quarantine */
    uint64_t due_ns;        /* next reap; UINT64_MAX = only waits for the completion */
    uint32_t tries, errors; /* errors: in a row */
    bool sealed;            /* seeded: nothing is reaped before its due */
    bool asked;             /* its hook's cancel was called */
    char text[128];         /* of the last error */
    struct errand__cleanup *next_free;
} errand__cleanup;

typedef struct errand__turn errand__turn;

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
    bool fd_wanted;
    int foreign_fd; /* what a foreign loop got; -1 = none; the inbox's own, or one around several */
    uint32_t collectors; /* leases whose work is this thread's own */
    errand__registrar registrar;
    errand__scheduler scheduler;
    errand_lease *leases[ERRAND__LEASES_MAX];
    /* lease_count: Writers: the owner.  Readers: snapshots, any thread.  Order: release, acquire.
     * Pairs: lease-count.  Why: a lease is there before it is counted. */
    _Atomic uint32_t lease_count;
    uint64_t key, submissions; /* of what is submitted outside tasks */
    /* News taken from the inbox and not yet delivered, in order: a chain of tagged links. */
    uintptr_t pending, pending_last;
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
    errand__cell own;   /* settled by the owner on no lease's behalf */
    uint64_t given_key; /* of the operation that is being started; 0 = see order_queue */
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

/* What is known of a payload type. */
typedef struct errand__digesters {
    struct errand__digesters *next;
    const errand_payload_type *type;
    uint64_t (*digest)(const void *data, size_t size); /* or NULL */
    const errand_payload_codec *codec;                 /* or NULL */
    const char *codec_name;
} errand__digesters;

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

    return keyed && record->extra != NULL && record->extra->key != 0 ? record->extra->key
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

/* ---- submit.c -------------------------------------------------------------------------------------------- */
/* Admission of a SPLIT or filled record on a lease: checks, accounts, arms, hands over (arrival) or queues by
 * due (seeded).  task: whose key and ordinal the draws hang on; NULL = the runtime's. */
errand_status errand__admit(errand_lease *lease, errand__record *record,
                            errand_task *task);
/* Seeded orders, after the count and before the arming cannot fail any more: draws begin, due, tie and
 * fate into record->extra, puts it into the due heap, audits (order_runtime.c). */
void errand__order_queue(errand_runtime *runtime, errand__record *record,
                         errand_task *task);
/* Gives an armed operation to its executor; its lease is flushed with the others (flush_all). */
void errand__hand_over(errand_runtime *runtime, errand__record *record);
/* errand_start with a resume object attached (wait active) before it can complete. */
errand_status errand__start(errand_lease *lease, const errand_spec *spec, void *wait,
                            errand__resume *resume, errand_task *task,
                            errand_identity *out_identity);

/* A refusal that is misuse (ECLOSED) is told to the misuse hook; answers the status. */
errand_status errand__refusal_tell(errand_status status, const char *function);

/* Every submit is followed by a flush of its lease: at once, or inside a drain or turn at its end,
 * all of them together (flush_all; before a wait inside one too). */
void errand__flush(errand_lease *lease);
void errand__flush_all(errand_runtime *runtime);
/* The same at the end of a drain, a turn or a move of time: in paced order not for a few. */
void errand__flush_many(errand_runtime *runtime);

/* names.c */
bool errand__needs_extra(const errand_runtime *runtime, const errand_spec *spec);
/* An extra with everything that the operation may need later: heap places, a waker.  ENOMEM. */
errand_status errand__extra_make(errand_runtime *runtime, const errand_spec *spec,
                                 errand__extra **out_extra);
/* The live record of a token that this thread may use, or a status with its misuse reported. */
errand_status errand__token_record(void *held_record, uint64_t stamp,
                                   const char *function, errand__record **out_record);
/* Drops all that an unarmed record owns, ends its wait silently, recycles it. */
void errand__record_abandon(errand_runtime *runtime, errand__record *record);

/* ---- waits.c --------------------------------------------------------------------------------------------- */
errand__resume *errand__resume_take(errand_runtime *runtime); /* NULL = no memory */
void errand__resume_give(errand_runtime *runtime, errand__resume *resume);
/* Ties a resume object (its continuation or task set) to a record: active. */
void errand__wait_begin(errand_runtime *runtime, errand__record *record,
                        errand__resume *resume);
/* Visit function of a continuation's resume; a task's is errand__task_resume_visit. */
void errand__resume_visit(errand__ready *ready, void *context);
void errand__task_resume_visit(errand__ready *ready, void *context); /* tasks.c */
/* Ends an active wait by its completion, which the caller has put into it: readied. */
void errand__wait_complete(errand_runtime *runtime, errand__resume *resume);
/* After a continuation returned, or was left: what it was told is dropped. */
void errand__visit_finish(errand_runtime *runtime);
/* Ends an active wait with a reason: unlinked, decoder dropped, continuation readied. */
void errand__wait_end(errand_runtime *runtime, errand__resume *resume,
                      errand_reason reason);
/* ends without resuming: the continuation's drop is called (abandon, abort, QUIET). */
void errand__wait_forget(errand_runtime *runtime, errand__resume *resume);
/* Drained but not resumed yet (O39): the reason takes the place of the verdict.  False: there is
 * no such wait. */
bool errand__wait_recall(errand_runtime *runtime, const errand_identity *identity,
                         errand_reason reason);
/* Drops verdict and payload that nobody was resumed with; after a visit too. */
void errand__resume_clear(errand_runtime *runtime, errand__resume *resume);

/* ---- drain.c --------------------------------------------------------------------------------------------- */
/* Takes an operation's completion out of what has come and was not told; false: it is not there. */
bool errand__pending_take(errand_runtime *runtime, errand__record *record);
/* Moves what is in the inbox behind pending. */
void errand__collect_some(errand_runtime *runtime);
/* Leases whose work is this thread's own (own_leases.c): it is done here, put, and taken from the
 * inbox like any other. */
void errand__collect_leases(errand_runtime *runtime);
bool errand__leases_rest(errand_runtime *runtime);
bool errand__leases_sleep(errand_runtime *runtime, uint64_t length_ns);
bool errand__leases_leave(errand_runtime *runtime);
errand_status errand__leases_descriptor(errand_runtime *runtime, int *out_fd);
static inline void
errand__collect(errand_runtime *runtime)
{
    if (__builtin_expect(runtime->collectors != 0, 0))
        errand__collect_leases(runtime);
    if (!errand__inbox_empty(runtime->block))
        errand__collect_some(runtime);
}
/* Takes the next item of pending: a completion is routed, given to fn and dropped; a command runs.
 * Answers what it was. */
typedef enum errand__item {
    ERRAND__ITEM_NONE = 0,
    ERRAND__ITEM_COMPLETION = 1,
    ERRAND__ITEM_COMMAND = 2
} errand__item;
errand__item errand__deliver_next(errand_runtime *runtime, errand_completion_fn *fn,
                                  void *arg);
/* What an unwind left in hand, or the end of a delivery: drops, follow-ups, recycling. */
void errand__hand_finish(errand_runtime *runtime);
/* The body of a held operation came back and its completion was drained: the rest is dropped. */
void errand__held_finish(errand_runtime *runtime, errand__record *record);
/* Submits the follow-ups that find room, in call order (O54). */
void errand__follows_run(errand_runtime *runtime);
/* A command of errand_post was taken from the chain. */
void errand__command_run(errand_runtime *runtime, errand_command *command);
/* Keeps the wake descriptor's promise at the end of a drain or turn (fd_wanted). */
void errand__fd_update(errand_runtime *runtime);
/* The same for what became buffered outside of them: by a call, a park or an unwind. */
void errand__fd_news(errand_runtime *runtime);
/* Sleeps until something comes, whatever the clock says (a test clock stands still meanwhile). */
void errand__park_news(errand_runtime *runtime);
/* One audit step for the completion in hand, which nobody has been told of yet; in arrival order
 * for a submission (order.c). */
void errand__completion_audit(errand_runtime *runtime, errand__record *record);
void errand__submit_audit(errand_runtime *runtime, errand__record *record,
                          errand_task *task);
/* Of the operation that is submitted now, by this task or (NULL) outside of any. */
uint64_t errand__submit_key(errand_runtime *runtime, errand_task *task);
/* One completion, of a record that is not in the chain any more. */
void errand__deliver(errand_runtime *runtime, errand__record *record,
                     errand_completion_fn *fn, void *arg);

/* ---- deadlines.c, cancel.c ------------------------------------------------------------------ */
/* Settles a queued operation; false: it runs, or has ended, for everyone who can see it. */
bool errand__cancel_queued(errand_runtime *runtime, errand__record *record,
                           errand_outcome outcome, errand_code code);
/* Asks it to end, once for life: the token and the hook.  code: of an effect-free one in the seeded
 * orders, where one that is not effect-free hears nothing (D143). */
void errand__ask_to_end(errand_runtime *runtime, errand__record *record,
                        errand_code code);
/* What comes first counts: a later limit never puts off one that is set already. */
void errand__deadline_set(errand_runtime *runtime, errand__record *record, unsigned stage,
                          uint64_t in_ns);
enum { /* extra->deadline_stage: what the entry in the deadline heap waits for */
       ERRAND__STAGE_NONE = 0,
       ERRAND__STAGE_OWN = 1,   /* the operation's deadline, from submit */
       ERRAND__STAGE_GRACE = 2, /* asked to end: now it is settled without its body */
       ERRAND__STAGE_BOUND = 3  /* beyond its finite work */
};
errand_cancel_answer errand__cancel_record(errand_runtime *runtime,
                                           errand__record *record, errand_reason reason);
/* Out of the deadline heap, if it is in. */
void errand__deadline_forget(errand_runtime *runtime, errand__record *record);
/* Starts the deadline of an armed record, if it has one (room was reserved). */
void errand__deadline_begin(errand_runtime *runtime, errand__record *record);
/* A posted node was taken from the chain. */
void errand__posted_run(errand_runtime *runtime, errand__record *record);
/* asked: to cancel it; else its job has told of its work. */
void errand__posted_apply(errand_runtime *runtime, errand__record *record, bool asked,
                          bool reported);
/* Deadlines that are due, at most budget. */
size_t errand__deadlines_fire(errand_runtime *runtime, size_t budget);
/* That of this operation, whatever the clock says; false: it has none. */
bool errand__deadline_replay(errand_runtime *runtime, errand__record *record);
void errand__later_run(errand_runtime *runtime);

/* ---- cleanup.c ------------------------------------------------------------------------------------------- */
/* Cannot fail: without memory there is no entry, and the completion alone ends it. */
void errand__cleanup_add(errand_runtime *runtime, errand__record *record,
                         const char *error, /* the hook's, or NULL */
                         bool sealed, bool asked);
/* Its hook is called, if it was not: virtual time does not count any more. */
void errand__cleanup_ask(errand_runtime *runtime, errand__record *record);
/* The stuck entry (32 errors in a row) that follows this one by wait and generation (NULL = the
 * first); NULL: there is none. */
const errand__cleanup *errand__cleanup_stuck(const errand_runtime *runtime,
                                             const errand__cleanup *after);
/* The completion of a record with an entry was drained: true if it was a quarantine's (reaped). */
bool errand__cleanup_completed(errand_runtime *runtime, errand__record *record);
void errand__cleanups_fini(errand_runtime *runtime);
/* One reap; true if it made progress.  See O41. */
bool errand__cleanup_visit(errand_runtime *runtime);
uint64_t
errand__cleanup_next(const errand_runtime *runtime); /* earliest due, or UINT64_MAX */

/* ---- domain.c -------------------------------------------------------------------------------- */
/* An armed operation of a domain takes its place there; arrival: and begins. */
void errand__domain_enter(errand_runtime *runtime, errand__record *record);
/* From here on it may be handed over, once it is the first. */
void errand__domain_begin(errand_runtime *runtime, errand__record *record);
/* Its body has ended, or will never run: the next one's turn.  Harmless twice, and outside of any
 * domain. */
void errand__domain_leave(errand_runtime *runtime, errand__record *record);
/* Seeded: it has ended for the program.  Harmless twice. */
void errand__domain_told(errand__extra *extra);
/* Completions that came in arrival order: whoever waited for them in a domain goes on. */
void errand__domains_note(errand_runtime *runtime, uintptr_t link);

/* ---- paced.c, watchdog.c --------------------------------------------------------------------- */
/* Virtual time was moved: whoever has begun is handed over. */
void errand__paced_begin(errand_runtime *runtime);
/* Completions of a chain that are not due stay aside; answers the rest of it. */
uintptr_t errand__paced_sift(errand_runtime *runtime, uintptr_t first, uintptr_t *last);
/* The first due operation, once its completion is there; NULL: none is due, or it cannot be waited
 * for (the end, or something real). */
errand__record *errand__paced_due(errand_runtime *runtime, uint64_t limit);
/* The end: what has come is told, earliest due first; dues are over. */
void errand__paced_release(errand_runtime *runtime);
/* Sleeps for an operation that is due, until news come or it is time to look again; *since: when
 * the wait began, 0 at first.  False: the end's deadline passed, or the watchdog ended the run. */
bool errand__due_sleep(errand_runtime *runtime, errand__record *record, uint64_t *since);
/* Did its completion come because nobody was there to run it?  Then the run has ended. */
bool errand__due_lost(errand_runtime *runtime, const errand__record *record);
/* The run ends: no thread could be made for this operation. */
void errand__external_thread(errand_runtime *runtime, const char *name, uint32_t kind);
/* park.c: sleeps on the inbox after the executors were asked; true: one of them wants to be asked
 * again. */
void errand__park(errand_runtime *runtime, uint64_t deadline_ns);
bool errand__sleep_at_most(errand_runtime *runtime, uint64_t length_ns);

/* ---- order.c / drive.c ----------------------------------------------------------------------- */
/* Seeded orders: the earliest due operation is run to its end (manual step, or its worker is waited for) and
 * delivered.  False: none is due at or before limit, which is now at most: time is moved before. */
bool errand__due_next(errand_runtime *runtime, uint64_t limit, errand_completion_fn *fn,
                      void *arg);
/* due_here.c: runs the job on this very thread if its executor can, and has it in hand then, settled
 * and not put; false: it goes the way of all others. */
bool errand__due_run_here(errand_lease *lease, errand__record *record);
/* Moves virtual time towards limit: to the next due, timer or deadline, or limit, whichever is first. */
void errand__order_advance(errand_runtime *runtime, uint64_t limit);

extern const errand__outside errand__tasks_outside; /* tasks.c */

void errand__order_fini(errand_runtime *runtime); /* digesters */
/* What is known of the type, or NULL; need: made if it is not there, NULL = no memory. */
errand__digesters *errand__digester_find(const errand_runtime *runtime,
                                         const errand_payload_type *type);
errand__digesters *errand__digester_need(errand_runtime *runtime,
                                         const errand_payload_type *type);

/* record.c: the recorder of config.held_recorder hears of each step. */
void errand__record_begin(errand_runtime *runtime);
/* The completion in hand; digest: of its payload, as the audit takes it. */
void errand__record_completion(errand_runtime *runtime, const errand__record *record,
                               uint64_t digest, errand_log_completion *out_image);
/* A note's bytes, for the next step; the redaction hook may keep them out. */
void errand__record_note(errand_runtime *runtime, const char *label, const void *bytes,
                         size_t size);
void errand__record_end(errand_runtime *runtime, bool clean);

/* accounts.c, park.c */
/* Seeded: an operation has ended for the program; counted once. */
void errand__told(errand_runtime *runtime, errand__record *record, errand_outcome outcome,
                  errand_code code);
void errand__runtime_account(const errand_runtime *runtime, errand_snapshot *out);
uint64_t errand__next_deadline(const errand_runtime *runtime);

/* ---- due.c, drive.c, drive_seeded.c -------------------------------------------------------------------- */
/* Seeded orders: moves virtual time; the only place that does.  event: the earliest of dues, timers,
 * deadlines and reaps; UINT64_MAX = none. */
void errand__order_move(errand_runtime *runtime, uint64_t to);
uint64_t errand__order_event(const errand_runtime *runtime);

struct errand__turn { /* a turn in progress */
    uint32_t items, completions, timers, visits, cleanups, commands; /* left */
    bool unlimited;          /* no limit of items: each source once */
    bool taken;              /* an item */
    bool passed;             /* a pass was begun */
    bool collected;          /* the inbox was emptied */
    bool moved;              /* virtual time */
    uint64_t wall_end;       /* 0 = none */
    uint64_t until;          /* virtual time does not go on beyond this */
    uint64_t registration;   /* timers from this one on are of a later turn */
    const errand_task *stop; /* the turn ends when this task has; or NULL */
    uint64_t stop_number;    /* its number: its record may be another's by then */
    bool over;               /* the run has ended: see runtime->external */
    errand_turn done;
};
void errand__turn_init(errand__turn *turn, const errand_budget *budget);
static inline void
errand__turn_count(errand__turn *turn, uint32_t *left, uint32_t *done)
{
    turn->taken = true;
    turn->items -= turn->items != 0;
    *left -= *left != 0;
    (*done)++;
}
/* Follow-ups that found no room, and what was put off to now. */
void errand__put_off_run(errand_runtime *runtime);
/* One turn; what was left undone by an unwind goes first. */
void errand__turn_run(errand_runtime *runtime, errand__turn *turn);
void errand__turn_seeded(errand_runtime *runtime, errand__turn *turn);
static inline bool
errand__turn_ended(const errand__turn *turn)
{
    return turn->items == 0 || turn->over ||
           (turn->stop != NULL &&
            (turn->stop->number != turn->stop_number || turn->stop->finished)) ||
           (turn->wall_end != 0 && turn->taken && errand__clock_now() >= turn->wall_end);
}
/* One item of a source; false: it has none now, or may not in this turn. */
bool errand__take_news(errand_runtime *runtime, errand__turn *turn);
bool errand__take_timer(errand_runtime *runtime, errand__turn *turn);
bool errand__take_visit(errand_runtime *runtime, errand__turn *turn);
bool errand__take_cleanup(errand_runtime *runtime, errand__turn *turn);
void errand__interrupt_heed(errand_runtime *runtime);
static inline void
errand__interrupt_take(errand_runtime *runtime)
{
    if (atomic_load_explicit(&runtime->block->interrupted, memory_order_relaxed) != 0)
        errand__interrupt_heed(runtime);
}
uint64_t
errand__timer_next(const errand_runtime *runtime); /* operations' deadlines too */

/* ---- tree.c, tasks.c, task_waits.c ------------------------------------------------------------------------------ */
/* Goes on with cancels and ends that a longjmp cut short. */
void errand__tasks_resume_work(errand_runtime *runtime);
void errand__stall_forget(errand_runtime *runtime); /* run_root.c */
/* The record of a name, ended and held ones too: OK, EINVAL, EFOREIGN or EUNKNOWN. */
errand_status errand__task_named(errand_runtime *runtime, const errand_task_id *id,
                                 const char *function, errand_task **out_task);
/* OK, EINVAL or ECLOSED, misuse reported. */
errand_status errand__task_spec_check(const errand_runtime *runtime,
                                      const errand_task_spec *spec, const char *function);
/* Is this the running task, in its function?  OK or a status, misuse reported. */
errand_status errand__task_enter_own(const errand_task *task, const char *function,
                                     errand_runtime **out_runtime);
/* May this task wait now?  The first thing that every wait of a task asks. */
errand_status errand__task_enter_wait(const errand_task *task, const char *function,
                                      errand_runtime **out_runtime);
/* Is this called inside the task's own function? */
errand_status errand__task_enter_own(const errand_task *task, const char *function,
                                     errand_runtime **out_runtime);
/* Cancels or aborts every task below the roots, in key order; used by shutdown and interrupt. */
void errand__tasks_cancel_all(errand_runtime *runtime, errand_reason reason);
void errand__tasks_abort_all(errand_runtime *runtime);
size_t errand__tasks_live(const errand_runtime *runtime);
void errand__tasks_fini(errand_runtime *runtime);
bool errand__tasks_trace(errand_runtime *runtime, errand_visitor *visitor);
#include "runtime/inputs.h"
#endif
