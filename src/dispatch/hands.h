/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_DISPATCH_HANDS_H
#define ERRAND_DISPATCH_HANDS_H
/* hands: one worker's context, the job in it, and the wakers of jobs that are polled. */
#include "dispatch/dispatch.h"

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
/* finish.c.  The end of every body, one way or the other: what it left is written to its record, if nobody
 * settled that meanwhile, else dropped; after it neither record nor job is touched (O23).  answer: the body
 * came back with it. */
void errand__hands_finish(errand_job *job, errand_outcome outcome, errand_code code,
                          int32_t job_code);
void errand__hands_finish_answer(errand_job *job, int32_t answer);
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

#endif
