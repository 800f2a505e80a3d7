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

/* ---- prepare and bind ----------------------------------------------------------------------------- */
/* What errand_job_type was before held_portable, and before told: hosts that were compiled then are
 * served still. */
enum {
    ERRAND__JOB_TYPE_FIRST = offsetof(errand_job_type, held_portable),
    ERRAND__JOB_TYPE_SECOND = offsetof(errand_job_type, told)
};
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
/* Is its job one that hears what its owner knows?  tell: told of its type; drops count as above. */
static inline bool
errand__record_hears(const errand__record *record)
{
    return record->job->struct_size == sizeof(errand_job_type) &&
           record->job->told != NULL;
}
unsigned errand__record_tell(errand__record *record);
unsigned errand__payload_drop(errand_payload *payload);

/* details of a record: follow-ups, then a failure; see registrar.h. */
uintptr_t errand__details_join(uintptr_t follows, errand__failure *failure);
errand__failure *errand__details_failure(uintptr_t details);
/* Unheard follow-ups are dropped; answers how many drops panicked. */
unsigned errand__details_drop(errand__block *block, uintptr_t details);
void errand__job_blocks_free(errand_job *job);
#endif
