/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_DISPATCH_H
#define ERRAND_DISPATCH_H
/* dispatch: work.  From a prepared job to the one settle.  See the file names for the stages:
 * prepare, bind, submission (tokens), settle, cancel, contain (panic), hands (running a body). */
#include <setjmp.h>
#include "inbox/inbox.h"
#include "errand/async.h"

/* ---- counters ------------------------------------------------------------------------------- */
/* One cell per worker and lease, and one of the owner's: each has a single writer, only grows,
 * and is read by anyone.  Order: release stores, acquire loads.  Pairs: cell-count. */
typedef struct errand__cell {
    _Alignas(ERRAND_LINE) _Atomic uint64_t started;
    _Atomic uint64_t outcomes[6];          /* settled after a start, by errand_outcome */
    _Atomic uint64_t cancelled_queued;     /* settled without a start */
    _Atomic uint64_t codes[ERRAND_CODES];  /* failure codes of both */
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
/* settle_begin: the move to SETTLED from RUNNING or CANCELLED, with outcome and code; false: somebody
 * else made it.  settle: the put; called once by the winner of settle_begin, which asserts it.
 * Counts in cell (after the put it touches neither record nor job).  Payload of a refused put is
 * dropped here, once. */
bool errand__settle_begin(errand__record *record, uint32_t generation, unsigned from,
                          errand_outcome outcome, errand_code code, uint64_t more_flags);
void errand__settle(errand__block *block, errand__record *record, errand__cell *cell);
/* cancel_queued: QUEUED -> CANCELLED -> SETTLED and put, as one call; false: it was not queued.
 * code: CANCELLED, DEADLINE or WORKER_LOST. */
bool errand__settle_queued(errand__block *block, errand__record *record, uint32_t generation,
                           errand_outcome outcome, errand_code code, errand__cell *cell);
/* Sets the token; answers the word before. */
uint64_t errand__token_set(errand__record *record);
/* Arms: stores QUEUED with the record's generation; answers the generation. */
uint32_t errand__arm(errand__record *record);

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
#define ERRAND__CATCH(frame) (errand__frame_enter(frame), _setjmp((frame)->jump) != 0)
/* Calls fn(arg) in a frame of its own; true if it panicked (text gets its message). */
bool errand__contained(void (*fn)(void *arg), void *arg, char *text, size_t size);
/* Is the calling thread inside a job (worker or step)?  Waiting calls answer EDEADLOCK then. */
bool errand__on_worker(void);

/* ---- hands: one worker's context --------------------------------------------------------------- */
struct errand_job { /* the running job's view */
    struct errand__hands *hands;
    errand__record *record;
    errand__block *block;
    uint32_t generation;
    bool finished; /* async: after its end */
    struct errand__defer *defers;
    size_t arena_blocks; /* handed to this job */
};
typedef struct errand__hands {
    errand__frame frame; /* the worker loop's; panics of bodies land there */
    struct errand_job job; /* record NULL = no job now */
    errand__cell *cell;  /* of this worker in the lease whose job runs */
    errand__arena *arena; /* made at first use; NULL before */
    uint64_t now_ns;      /* coarse clock of this group */
    uint64_t epoch;       /* attachment epoch of the lease */
    uint64_t destructor_panics, leaked;
} errand__hands;
void errand__hands_init(errand__hands *hands);
void errand__hands_fini(errand__hands *hands);
/* execute: claim, enter the blocking body, settle.  False: there was nothing to claim.
 * A panic leaves through hands->frame with job.record set; the loop's owner then calls
 * errand__hands_panicked and goes on.  The frame must have been entered. */
bool errand__hands_execute(errand__hands *hands, errand__block *block, errand__record *record,
                           uint32_t generation, errand__cell *cell);
/* Settles the current job as PANICKED with frame.message: deferred cleanups, then the put. */
void errand__hands_panicked(errand__hands *hands, const char *message);
/* Async.  start: claim and construct; poll: one poll.  Answers what the job now is.  A panic leaves
 * as above. */
typedef enum errand__poll {
    ERRAND__POLL_NOTHING = 0, /* it was not to be claimed */
    ERRAND__POLL_PENDING = 1,
    ERRAND__POLL_ENDED = 2
} errand__poll;
errand__poll errand__hands_start(errand__hands *hands, errand__block *block,
                                 errand__record *record, uint32_t generation,
                                 errand__cell *cell);
errand__poll errand__hands_poll(errand__hands *hands, errand__block *block,
                                errand__record *record, uint32_t generation,
                                errand__cell *cell);
/* A pending async job is dropped unpolled (cancel, detach): settles it as CANCELLED. */
void errand__hands_drop_pending(errand__block *block, errand__record *record,
                                uint32_t generation, errand__cell *cell);

/* Wakers (async.h).  The executor that claims the job sets rouse before start is called. */
struct errand_waker {
    atomic_uint refs;
    /* state: 0 quiet, 1 woken (queued for a poll), 2 dead.  Any thread; exchange, acquire-release.
     * Pairs: waker-state. */
    atomic_uint state;
    void (*rouse)(struct errand_waker *waker); /* state went 0 -> 1: queue it */
    void (*forget)(void *port);                /* the last reference is gone */
    void *port;
    struct errand_waker *next; /* in the executor's woken list */
    errand__record *record;
    uint32_t generation;
    void *lease;
};
struct errand_waker *errand__waker_create(void); /* refs 1; NULL = no memory */

/* ---- prepare and bind ----------------------------------------------------------------------------- */
/* Every rule of errand_prepare's documentation; OK or EINVAL with text. */
errand_status errand__spec_check(const errand_spec *spec, const char **out_text);
bool errand__spec_needs_extra(const errand_spec *spec);
/* Fills an ISSUED record from a checked spec; extra may be NULL if none is needed. */
void errand__record_fill(errand__record *record, const errand_spec *spec, errand__extra *extra);
/* Drops state, decoder and hook data (contained), in this order; owner. */
void errand__spec_drop(const errand_spec *spec);
void errand__record_drop_parts(errand__record *record, bool decoder_consumed);
const char *errand__record_name(const errand__record *record);
#endif
