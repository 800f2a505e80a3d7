/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_DISPATCH_H
#define ERRAND_DISPATCH_H
/* dispatch: work.  From a prepared job to the one settle.  See the file names for the stages:
 * prepare, bind, submission (tokens), settle, cancel, contain (panic), hands (running a body). */
#include <pthread.h>
#include <setjmp.h>
#include "inbox/inbox.h"
#include "errand/async.h"
#include "dispatch/fault.h"

/* ---- counters ------------------------------------------------------------------------------- */
/* One cell per worker and lease, and one of the owner's. */
typedef struct errand__cell {
    /* started, outcomes (settled after a start), cancelled_queued (settled without), codes
     * (failure codes of both): Writers: one thread.  Readers: snapshots, any thread.
     * Order: release, acquire.  Pairs: cell-count.  Why: a snapshot that sees a later stage must
     * see the earlier ones (accounts.c). */
    _Alignas(ERRAND_LINE) _Atomic uint64_t started;
    _Atomic uint64_t outcomes[6];
    _Atomic uint64_t cancelled_queued;
    _Atomic uint64_t codes[ERRAND_CODES];
} errand__cell;
static inline void
errand__count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_release); /* Pairs: cell-count */
}

/* ---- claim, settle -------------------------------------------------------------------------- */
/* claim: QUEUED -> RUNNING if the generation is right; counts started.  Any thread that holds the
 * block. */
bool errand__claim(errand__record *record, uint32_t generation, errand__cell *cell);
/* The same two moves by the owner, whose job runs on its own thread (seeded, or a reactor without
 * threads): while no other thread can write the control word they are plain stores. */
static inline bool errand__claim_here(const errand__block *block, errand__record *record,
                                      uint32_t generation, errand__cell *cell);
bool errand__settle_begin_here(const errand__block *block, errand__record *record,
                               uint32_t generation, errand_outcome outcome,
                               errand_code code, uint64_t more_flags);
/* settle_begin: the move to SETTLED from RUNNING or QUEUED, with outcome and code; false: somebody
 * else made it.  settle: the put; called once by the winner of settle_begin, which asserts it.
 * Counts in cell (after the put it touches neither record nor job).  Payload of a refused put is
 * dropped here, once. */
bool errand__settle_begin(errand__record *record, uint32_t generation, unsigned from,
                          errand_outcome outcome, errand_code code, uint64_t more_flags);
void errand__settle(errand__block *block, errand__record *record, errand__cell *cell,
                    errand__putter *putter);
/* settle_here: the same without the put, for the owner who ran the body and has it in hand. */
void errand__settle_here(errand__record *record, errand__cell *cell);
extern errand__putter errand__owner_putter; /* as putter: the caller is the owner */
/* settle_queued: QUEUED -> SETTLED and put, as one call; false: it was not queued.
 * code: CANCELLED, DEADLINE or WORKER_LOST. */
bool errand__settle_queued(errand__block *block, errand__record *record,
                           uint32_t generation, errand_outcome outcome, errand_code code,
                           errand__cell *cell, errand__putter *putter);
/* return: the body of a held operation came back (O45).  Worker.  Puts the record once more if its
 * completion was drained; drops the state here if the inbox is closed. */
void errand__return(errand__block *block, errand__record *record);
/* Links the record's post node, once, with FLAG_ASKED or 0 in more_flags; false: that operation or
 * the inbox is gone.  Any thread that holds the block (O44). */
bool errand__post_record(errand__block *block, errand__record *record,
                         uint32_t generation, uint64_t more_flags);
/* Sets the token; answers the word before. */
uint64_t errand__token_set(errand__record *record);
/* Its deadline does.  If nobody else did before, a failure of the job's own says DEADLINE. */
void errand__token_set_overdue(errand__record *record);
/* Arms: stores QUEUED with the record's generation; answers the generation.  named: the host had
 * its identity before, so another thread may be posting to it. */
static inline uint32_t
errand__arm(errand__record *record, bool named)
{
    uint32_t generation = (uint32_t)record->generation;

    record->node = ERRAND__NODE_UNPUT;
    record->details = 0;
    if (named)
        atomic_fetch_or_explicit(&record->control, ERRAND__QUEUED,
                                 memory_order_release); /* Pairs: control-claim */
    else
        atomic_store_explicit(&record->control,
                              (uint64_t)generation << ERRAND__GENERATION_SHIFT |
                                  ERRAND__QUEUED,
                              memory_order_release); /* Pairs: control-claim */
    return generation;
}

/* Can no other thread write the control word?  Those with an inbox handle could, and a job's own
 * threads, which report their work. */
static inline bool
errand__is_alone(const errand__block *block, const errand__record *record)
{
    const errand__extra *whole = errand__record_whole(record);

    return !block->shared && (whole == NULL || whole->work_max == 0);
}

static inline bool
errand__claim_here(const errand__block *block, errand__record *record,
                   uint32_t generation, errand__cell *cell)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    if (!errand__is_alone(block, record))
        return errand__claim(record, generation, cell);
    if (errand__control_generation(control) != generation ||
        errand__control_state(control) != ERRAND__QUEUED)
        return false;
    atomic_store_explicit(&record->control, control + (ERRAND__RUNNING - ERRAND__QUEUED),
                          memory_order_release); /* Pairs: control-claim */
    errand__count(&cell->started);
    return true;
}

/* Times of the first line: 40 bits of start in 4096 ns since the block's epoch, 24 bits of length
 * as 18 bits mantissa and 6 bits exponent of ns. */
uint64_t errand__times_pack(uint64_t since_epoch_ns, uint64_t length_ns);
void errand__times_unpack(uint64_t packed, uint64_t epoch_ns, uint64_t t_submit,
                          uint64_t *out_start, uint64_t *out_end);

/* ---- containment ------------------------------------------------------------------------------ */
/* A frame is a place that errand_panic jumps to.  Frames nest per thread; the innermost counts.
 *   if (ERRAND__CATCH(&frame)) { ... a panic arrived; frame.message says which ... }
 *   ... errand__frame_leave(&frame);
 * Locals changed in between must live in memory (a struct), not in registers. */
typedef struct errand__frame {
    struct errand__frame *outer;
    jmp_buf jump;
    char message[256];
    struct errand__hands *hands; /* the worker's context if a job runs in it, or NULL */
} errand__frame;
void errand__frame_enter(errand__frame *frame);
void errand__frame_leave(errand__frame *frame);
/* The stack of the frames inside this one  is gone (a thread's exit): it is the innermost again, or (NULL) none is. */
void errand__frame_unwind(errand__frame *frame);
errand__frame *errand__frame_innermost(void); /* NULL = none */
#define ERRAND__CATCH(frame) (errand__frame_enter(frame), _setjmp((frame)->jump) != 0)
/* Calls fn(arg) in a frame of its own; true if it panicked (text gets its message). */
bool errand__contained(void (*fn)(void *arg), void *arg, char *text, size_t size);
/* Is the calling thread inside a job (worker or step)?  Waiting calls answer EDEADLOCK then. */
bool errand__on_worker(void);
errand_job *errand__frame_job(void); /* that job; NULL = none */

/* ---- traps.c ------------------------------------------------------------------------------------ */
/* For errand/traps.h; by who makes a seeded runtime. */
void errand__traps_offer(void);

/* ---- hands: one worker's context --------------------------------------------------------------- */
typedef struct errand__defer { /* errand_job_defer: newest first */
    struct errand__defer *next;
    void (*fn)(void *arg);
    void *arg;
} errand__defer;
typedef struct
    errand__gathered { /* a response that was copied out of its worker's reach */
    unsigned char *bytes;
    size_t room, used;
    size_t wished; /* the room of the last one that was taken; 0 = none was */
} errand__gathered;
struct errand_job { /* the running job's view; an async job's lives in its waker */
    struct errand__hands *hands; /* of the thread that runs or polls it now */
    errand__record *record;      /* NULL = no job */
    uint32_t generation;
    int32_t kept_answer; /* see keeps */
    int32_t sys_errno;
    bool held;     /* async: its waker is in its roster's list of those with requests */
    bool is_async; /* read by who popped it, perhaps while the owner drops it */
    bool finished : 1;
    /* Async: it has ended, but requests of it are under way: what it answered, or that it
     * panicked, is told when the last is back (errand__hands_poll). */
    bool keeps : 1, keeps_panic : 1;
    bool recalled : 1; /* a cancel has asked its requests back */
    bool impure : 1;   /* see errand_job_impure */
    bool message_lost : 1;
    struct errand_io *requests; /* under way, newest first; see workers/reactor */
    errand__defer *defers;
    errand_payload payload;
    errand__failure *failure;
    uintptr_t follows;                 /* tagged, see errand__record.details */
    uint64_t t_start;                  /* ns on CLOCK_MONOTONIC */
    struct errand__block_link *blocks; /* async: its own memory */
};
/* interrupt: the signal for the body of a cancelled blocking job (interrupt.c); one per worker of a
 * pool that was asked for it. */
typedef struct errand__interrupt {
    errand__lock lock;
    /* Immutable while its thread lives. */
    int signal_number;
    pthread_t thread;
    void (*ring)(void *arg); /* somebody is to be signalled again: see to it */
    void *arg;
    /* Guarded by lock; record: written by the worker alone. */
    errand__record *record; /* whose body may be signalled now; NULL = none */
    uint32_t generation;
    bool asked; /* it was asked to end */
    uint64_t due_ns, distance_ns;
} errand__interrupt;
/* init: its thread.  open, close: its thread, before and after a body. */
void errand__interrupt_init(errand__interrupt *interrupt, int signal_number,
                            void (*ring)(void *arg), void *arg);
void errand__interrupt_open(errand__interrupt *interrupt, errand__record *record,
                            uint32_t generation);
void errand__interrupt_close(errand__interrupt *interrupt);
bool errand__interrupt_wanted(const errand__record *record);
/* ask: signals the body of this operation; true: for the first time, so that it has to be signalled
 * again.  Its token was set before.  again: does that where it is due; answers when to call it next,
 * UINT64_MAX = not at all.  Any thread. */
bool errand__interrupt_ask(errand__interrupt *interrupt, const errand__record *record,
                           uint32_t generation);
uint64_t errand__interrupt_again(errand__interrupt *interrupt, uint64_t now);
/* ringer: what ends errand_wait_fd of a cancelled body (wait_fd.c); one per worker of a pool. */
typedef struct errand__ringer {
    errand__lock lock;
    /* Guarded by lock; fd, record, generation: written by the worker alone. */
    int fd;                 /* 0 = not made yet */
    errand__record *record; /* whose body waits now; NULL = none */
    uint32_t generation;
    bool rung;
    /* waiters: its pool's, see blocking.h.
     * Writers: as there.  Readers: as there.  Order: acquire-release steps.  Pairs: pool-waiters.
     * Why: as there. */
    _Atomic uint32_t *waiters;
} errand__ringer;
void errand__ringer_init(errand__ringer *ringer, _Atomic uint32_t *waiters);
void errand__ringer_fini(errand__ringer *ringer);
/* Ends the wait of this operation's body, whose token was set before.  Any thread. */
void errand__ringer_ring(errand__ringer *ringer, const errand__record *record,
                         uint32_t generation);
typedef struct errand__hands {
    errand__frame frame;              /* the worker loop's; panics of bodies land there */
    errand_job own;                   /* of blocking jobs */
    errand_job *job;                  /* the current one; NULL between jobs */
    errand__block *block;             /* its runtime's */
    errand__cell *cell;               /* where its end is counted */
    errand__arena *arena;             /* made at first use; NULL before */
    size_t arena_blocks, arena_bytes; /* of it, handed to this job */
    volatile bool allocating;         /* inside the arena: its lists may be torn */
    errand__interrupt *interrupt;     /* NULL: bodies are not signalled */
    errand__fault *fault;             /* NULL: faults are not caught */
    errand__ringer *ringer; /* NULL: errand_wait_fd looks at the token now and then */
    size_t memory_max;      /* of errand_job_alloc, per job; 0 = no bound */
    errand__putter
        putter; /* owes: a dozing runtime is to be rung, see errand__hands_ring */
    /* The clock: one reading per group, then the cycle counter. */
    uint64_t base_ns, base_cycles;
    uint64_t cycles, now_ns; /* the last reading, and what it means */
    /* How many jobs in a row may share a reading: a few where each is far below a microsecond. */
    unsigned lazy, lazy_left;
    double ns_per_cycle;
    uint64_t epoch; /* attachment epoch of the lease whose job runs */
    uint64_t destructor_panics, leaked;
    uint64_t memory_lost, cleanups_lost; /* after faults; they count as leaked too */
    errand__gathered *gathered; /* what read_response has; NULL = it does not run */
    /* The owner runs one job of a seeded lease: its end is not put, and real times are nobody's.
     * The end clears it. */
    bool here;
    bool owners; /* they are the owner's own: what they put wakes nobody */
    bool owned;  /* the owner's, of a lease in arrival order: it needs no waking */
} errand__hands;
void errand__hands_init(errand__hands *hands);
void errand__hands_fini(errand__hands *hands);
/* Tells the runtime what these hands gave up so far (O76); for those that no executor's snapshot
 * shows. */
void errand__hands_tell(errand__hands *hands, errand__block *block);
/* Reads the clock; at the start of each group, and after a millisecond. */
void errand__hands_clock(errand__hands *hands);
/* Reads the cycle counter, or takes what somebody read: cycles and now_ns. */
static inline void
errand__hands_at_cycles(errand__hands *hands, uint64_t cycles)
{
    hands->cycles = cycles;
    hands->now_ns =
        hands->base_ns +
        (uint64_t)((double)(hands->cycles - hands->base_cycles) * hands->ns_per_cycle);
}
static inline void
errand__hands_read(errand__hands *hands)
{
    errand__hands_at_cycles(hands, errand__cycles());
}
/* The same for the begin or end of a job: where jobs are tiny, a few share a reading. */
static inline void
errand__hands_glance(errand__hands *hands)
{
    if (hands->lazy_left > 0) {
        hands->lazy_left--;
        return;
    }
    errand__hands_read(hands);
    hands->lazy_left = hands->lazy;
}
/* Wakes the runtime whose wake was put off; at the end of a group, before anything that may block. */
static inline void
errand__hands_ring(errand__hands *hands, errand__block *block)
{
    if (hands->putter.owes) {
        hands->putter.owes = false;
        errand__inbox_ring(block);
    }
}
/* execute: claim, enter the blocking body, settle.  False: there was nothing to claim.
 * A panic leaves through hands->frame; the loop's owner then calls errand__hands_panicked and goes
 * on.  The frame must have been entered.  hands->cycles is read after the body. */
bool errand__hands_execute(errand__hands *hands, errand__block *block,
                           errand__record *record, uint32_t generation,
                           errand__cell *cell);
/* The same by the owner, for a lease of a seeded order: nothing interrupts it, no fault is caught, and
 * the end is not put (hands->here). */
bool errand__hands_execute_here(errand__hands *hands, errand__block *block,
                                errand__record *record, uint32_t generation,
                                errand__cell *cell);
/* Settles the current job as PANICKED with the message: deferred cleanups, then the put.  Also for a
 * thread that ends inside a job (pthread_exit).  Nothing if there is no current job. */
void errand__hands_panicked(errand__hands *hands, const char *message);
/* Jobs whose body runs in another process, claimed before.  away: the job begins; whoever looks after
 * it then, one thread at a time, gives it hands.  at: before anything of errand_job_... is called for
 * it; put_down: after that.  back: the end: with COMPLETED as a body that answered so, else with
 * that outcome and code; JOB takes the answer.  A panic in between leaves through hands->frame. */
void errand__hands_away(errand__hands *hands, errand_job *job, errand__block *block,
                        errand__record *record, uint32_t generation, errand__cell *cell);
void errand__hands_at(errand__hands *hands, errand_job *job, errand__block *block,
                      errand__cell *cell);
void errand__hands_put_down(errand__hands *hands);
void errand__hands_back(errand_job *job, errand_outcome outcome, errand_code code,
                        int32_t answer);
/* Settles the current job as CRASHED, for a thread that a fault tore out of its body and that touches
 * nothing of this any more.  Deferred cleanups do not run; after a suspect verdict memory and payload
 * are given up. */
void errand__hands_crashed(errand__hands *hands, const errand_fault *fault);
/* Async.  start: claim and construct; poll: one poll.  Answers what the job now is.  A panic leaves
 * as above. */
typedef enum errand__poll {
    ERRAND__POLL_NOTHING = 0, /* it was not to be claimed */
    ERRAND__POLL_PENDING = 1, /* also: it keeps its answer until its requests are back */
    ERRAND__POLL_ENDED = 2
} errand__poll;
errand__poll errand__hands_start(errand__hands *hands, errand__block *block,
                                 errand__record *record, uint32_t generation,
                                 errand__cell *cell);
errand__poll errand__hands_poll(errand__hands *hands, struct errand_waker *waker);
/* A pending async job is dropped unpolled: settles it as CANCELLED; false: it had ended. */
bool errand__hands_drop_pending(errand__hands *hands, struct errand_waker *waker);

/* Wakers (async.h).  The executor that claims the job sets the port before start is called. */
typedef struct errand__waker_port {            /* a port begins with these */
    void (*rouse)(struct errand_waker *waker); /* state went 0 -> 1: queue it */
    void (*forget)(void *port);                /* one waker less leads to it */
} errand__waker_port;
struct errand_waker {
    /* refs: Writers, Readers: any thread that holds one.  Order: acquire-release on the way down.
     * Pairs: waker-refs.  Why: the last one frees it. */
    atomic_uint refs;
    /* state: 0 quiet, 1 woken (queued for a poll), 2 dead.  Writers: any thread.  Readers: the
     * executor's thread.  Order: compare-exchange, acquire-release.  Pairs: waker-state.
     * Why: the poll must see what was done before the wake. */
    atomic_uint state;
    errand__waker_port *port;  /* NULL: who runs the job sleeps on the state */
    struct errand_waker *next; /* in the executor's queues, while woken */
    errand__link pending;      /* in the executor's list of those that wait for a wake */
    void *lease;               /* the executor's; see workers/async/async.h */
    errand_job job;            /* the executor thread's */
};
struct errand_waker *errand__waker_create(void); /* refs 1; NULL = no memory */
/* Its job has ended: makes it as new if nobody else holds it, else gives it up (*take_waker = NULL). */
void errand__waker_renew(struct errand_waker **take_waker);

/* ---- prepare and bind ----------------------------------------------------------------------------- */
/* What errand_job_type was before held_portable: hosts that were compiled then are served still. */
enum { ERRAND__JOB_TYPE_FIRST = offsetof(errand_job_type, held_portable) };
/* Every rule of errand_prepare's documentation; OK or EINVAL with text. */
errand_status errand__spec_check(const errand_spec *spec, const char **out_text);
static inline bool
errand__spec_needs_extra(const errand_spec *spec)
{
    return (spec->deadline_ns | spec->soft_ns | spec->quarantine_ns | spec->work_max |
            spec->domain | (spec->flags & ERRAND_SPEC_NO_SIGNAL)) != 0 ||
           spec->resource_class == ERRAND_INTERRUPTIBLE_ASYNC;
}
static inline bool
errand__spec_needs_label(const errand_spec *spec)
{
    return ((uintptr_t)spec->held_name | spec->trace_id) != 0;
}
/* The commonest good spec, seen at a glance; false: check it rule by rule. */
static inline bool
errand__spec_is_plain(const errand_spec *spec)
{
    const errand_job_type *job = spec->held_job;
    const errand_decoder_type *decoder = spec->held_decoder;

    return spec->struct_size == sizeof *spec && spec->kind != 0 && job != NULL &&
           job->struct_size == sizeof *job &&
           ((spec->resource_class == ERRAND_INTERRUPTIBLE_BLOCKING && job->run != NULL) ||
            (spec->resource_class == ERRAND_INTERRUPTIBLE_ASYNC && job->poll != NULL)) &&
           (spec->priority | spec->lane | (spec->flags & ~ERRAND_SPEC_EFFECT_FREE)) ==
               0 &&
           (spec->quarantine_ns | spec->work_max | (uintptr_t)spec->held_hook) == 0 &&
           (decoder == NULL ||
            (decoder->struct_size == sizeof *decoder && decoder->decode != NULL));
}
/* Fills an ISSUED record from a checked spec; extra may be NULL if none is needed. */
void errand__record_fill(errand__record *record, const errand_spec *spec,
                         errand__extra *extra);
/* Drops, each contained; owner's, but for follow-ups that nobody will hear of.  They answer how many
 * panicked (counted as leaked by the caller).  spec_drop: decoder data, hook data, state; each part is
 * taken out of the spec before its call. */
unsigned errand__spec_drop(errand_spec *spec);
unsigned errand__record_drop_decoder(errand__record *record);
unsigned errand__record_drop_hook(errand__record *record);
unsigned errand__record_drop_state(errand__record *record);
unsigned errand__payload_drop(errand_payload *payload);

/* details of a record: follow-ups, then a failure; see registrar.h. */
uintptr_t errand__details_join(uintptr_t follows, errand__failure *failure);
errand__failure *errand__details_failure(uintptr_t details);
/* Unheard follow-ups are dropped; answers how many drops panicked. */
unsigned errand__details_drop(errand__block *block, uintptr_t details);
void errand__job_blocks_free(errand_job *job);
#endif
