/* SPDX-License-Identifier: MIT */
/* Design notes: the whole guarantee.
 *
 * Held operations (O45): settled here while the body goes on.  Its return and the drain of its
 * completion set a flag each (BACK, DRAINED); whoever comes second drops the state: the owner at
 * its drain or at close, or the returning thread by one more put.
 *
 * The control word decides who settles: every way to an end is a compare-exchange to SETTLED,
 * and its winner alone calls errand__settle, which puts the completion.  The assertion on the
 * record's node makes a second put of one operation impossible in every build (O17).
 *
 * A put can be refused only by a closed inbox.  Then the operation is undeliverable: its report
 * was written at close, and what is left here is to drop what the worker's side holds, once,
 * and to give back the operation's share of the block (O23, O31). */
#include "core/pause.h"
#include "dispatch/dispatch.h"

errand__putter errand__owner_putter;

bool
errand__claim(errand__record *record, uint32_t generation, errand__cell *cell)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    ERRAND__PAUSE("claim");
    do {
        if (errand__control_generation(control) != generation ||
            errand__control_state(control) != ERRAND__QUEUED)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(
        &record->control, &control, control + (ERRAND__RUNNING - ERRAND__QUEUED),
        memory_order_acq_rel, /* Pairs: control-claim */
        memory_order_relaxed));
    errand__count(&cell->started);
    return true;
}

/* Who fails because its deadline asked it to end, fails by its deadline, whatever it calls that. */
static inline uint64_t
settled_word(uint64_t control, errand_outcome outcome, errand_code code,
             uint64_t more_flags)
{
    if (code == ERRAND_CODE_JOB && (control & ERRAND__FLAG_OVERDUE) != 0)
        code = ERRAND_CODE_DEADLINE;
    return (control & ~ERRAND__STATE_MASK) | ERRAND__SETTLED |
           (uint64_t)outcome << ERRAND__OUTCOME_SHIFT |
           (uint64_t)code << ERRAND__CODE_SHIFT | more_flags;
}

bool
errand__settle_begin_here(const errand__block *block, errand__record *record,
                          uint32_t generation, errand_outcome outcome, errand_code code,
                          uint64_t more_flags)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    if (!errand__is_alone(block, record))
        return errand__settle_begin(record, generation, ERRAND__RUNNING, outcome, code,
                                    more_flags);
    if (errand__control_generation(control) != generation ||
        errand__control_state(control) != ERRAND__RUNNING)
        return false;
    atomic_store_explicit(&record->control,
                          settled_word(control, outcome, code, more_flags),
                          memory_order_release); /* Pairs: control-settle */
    return true;
}

bool
errand__settle_begin(errand__record *record, uint32_t generation, unsigned from,
                     errand_outcome outcome, errand_code code, uint64_t more_flags)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    do {
        if (errand__control_generation(control) != generation ||
            errand__control_state(control) != from)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(
        &record->control, &control, settled_word(control, outcome, code, more_flags),
        memory_order_acq_rel, /* Pairs: control-settle, control-claim */
        memory_order_relaxed));
    return true;
}

/* The last of an operation whose runtime has ended: state, extra, its share of the block. */
static ERRAND_COLD void
drop_rest(errand__block *block, errand__record *record)
{
    if (errand__record_drop_state(record) != 0)
        atomic_fetch_add_explicit(&block->leaked, 1, memory_order_relaxed);
    if (record->extra != NULL) {
        errand_waker_abandon(&record->extra->waker);
        if (record->extra != &errand__label_only)
            errand__extra_free(record->extra);
    }
    errand__block_let(block);
}

/* The inbox is closed: nobody will hear of it.  Decoder and hook data went at close. */
static ERRAND_COLD void
settle_undeliverable(errand__block *block, errand__record *record)
{
    unsigned panics = errand__payload_drop(&record->payload) +
                      errand__details_drop(block, record->details);

    if (panics != 0)
        atomic_fetch_add_explicit(&block->leaked, panics, memory_order_relaxed);
    atomic_fetch_add_explicit(&block->undeliverable, 1, memory_order_relaxed);
    drop_rest(block, record);
}

void
errand__settle_here(errand__record *record, errand__cell *cell)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);
    unsigned outcome = (unsigned)(control >> ERRAND__OUTCOME_SHIFT) & 0xff;
    unsigned code = (unsigned)(control >> ERRAND__CODE_SHIFT) & 0xff;

    ERRAND__PAUSE("settle");
    ERRAND_ASSERT(errand__control_state(control) == ERRAND__SETTLED);
    ERRAND_ASSERT(record->node == ERRAND__NODE_UNPUT);
    record->node = 0;
    if (code != ERRAND_CODE_NONE)
        errand__count(&cell->codes[code]);
    errand__count(&cell->outcomes[outcome]);
}

void
errand__settle(errand__block *block, errand__record *record, errand__cell *cell,
               errand__putter *putter)
{
    errand__settle_here(record, cell);
    if (putter == &errand__owner_putter
            ? !errand__inbox_put_own(block, record, ERRAND__NODE_COMPLETION)
            : !errand__inbox_put(block, record, ERRAND__NODE_COMPLETION, putter))
        settle_undeliverable(block, record);
}

bool
errand__settle_queued(errand__block *block, errand__record *record, uint32_t generation,
                      errand_outcome outcome, errand_code code, errand__cell *cell,
                      errand__putter *putter)
{
    if (!errand__settle_begin(record, generation, ERRAND__QUEUED, outcome, code, 0))
        return false;
    record->payload = (errand_payload){.data = NULL};
    record->times = 0;
    errand__count(&cell->cancelled_queued);
    errand__settle(block, record, cell, putter);
    return true;
}

void
errand__return(errand__block *block, errand__record *record)
{
    uint64_t before =
        atomic_fetch_or_explicit(&record->control, ERRAND__FLAG_BACK,
                                 memory_order_acq_rel); /* Pairs: held-return */

    atomic_fetch_add_explicit(&block->returned_late, 1, memory_order_relaxed);
    if ((before & ERRAND__FLAG_DRAINED) == 0)
        return; /* its drain, or the close, will find it back */
    if (errand__inbox_put(block, record, ERRAND__NODE_COMPLETION, NULL))
        return;
    drop_rest(block, record);
}

/* Who waits inside its body for somebody else (foreign/ask.c) looks at the token again. */
static void
ring_token(const errand__record *record)
{
    errand__bell_ring(errand__bell_of(record->slot, record->generation));
}

uint64_t
errand__token_set(errand__record *record)
{
    uint64_t before = atomic_fetch_or_explicit(&record->control, ERRAND__FLAG_CANCEL,
                                               memory_order_acq_rel);

    ring_token(record);
    return before;
}

void
errand__token_set_overdue(errand__record *record)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);
    uint64_t flags = ERRAND__FLAG_CANCEL | ERRAND__FLAG_OVERDUE;

    if ((control & ERRAND__FLAG_CANCEL) != 0)
        flags = ERRAND__FLAG_CANCEL;
    atomic_fetch_or_explicit(&record->control, flags,
                             memory_order_acq_rel); /* Pairs: control-claim */
    ring_token(record);
}

bool
errand__post_record(errand__block *block, errand__record *record, uint32_t generation,
                    uint64_t more_flags)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_acquire);
    uint64_t wanted;

    do {
        if (errand__control_generation(control) != generation)
            return false;
        wanted = control | ERRAND__FLAG_POSTED | more_flags;
        if (wanted == control)
            return true;
    } while (!atomic_compare_exchange_weak_explicit(
        &record->control, &control, wanted,
        memory_order_acq_rel, /* Pairs: control-post */
        memory_order_acquire));
    if ((control & ERRAND__FLAG_POSTED) != 0)
        return true;
    if (errand__inbox_put(block, record, ERRAND__NODE_POSTED, NULL))
        return true;
    atomic_fetch_and_explicit(&record->control, ~ERRAND__FLAG_POSTED,
                              memory_order_acq_rel);
    return false;
}

uint64_t
errand__times_pack(uint64_t since_epoch_ns, uint64_t length_ns)
{
    unsigned exponent = 0;

    while (length_ns >= (UINT64_C(1) << 18)) {
        length_ns >>= 1;
        exponent++;
    }
    return (since_epoch_ns >> 12) << 24 | (uint64_t)exponent << 18 | length_ns;
}

void
errand__times_unpack(uint64_t packed, uint64_t epoch_ns, uint64_t t_submit,
                     uint64_t *out_start, uint64_t *out_end)
{
    uint64_t start = epoch_ns + ((packed >> 24) << 12);
    uint64_t length = (packed & 0x3ffff) << ((packed >> 18) & 0x3f);

    if (start < t_submit) /* rounding; or the 52 days of the start field went round */
        start = t_submit;
    *out_start = start;
    *out_end = start + length;
}
