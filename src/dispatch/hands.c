/* SPDX-License-Identifier: MIT */
/* Design notes: one worker's context, and how a body is entered.
 *
 * Times: the group's clock reading plus the cycle counter, which costs a fraction of a clock
 * call; a job's start is the end of the one before it.  Even that costs as much as a tiny job,
 * so where jobs were measured to be tiny, eight share a reading. */
#include <string.h>
#include "core/pause.h"
#include "dispatch/hands.h"

static bool keep(errand_job *job, int32_t answer);

void
errand__hands_init(errand__hands *hands)
{
    memset(hands, 0, sizeof *hands);
    hands->own.hands = hands;
    hands->frame.hands = hands;
    hands->ns_per_cycle = 1000.0 / (double)errand__cycles_per_us();
    errand__hands_clock(hands);
}

void
errand__hands_fini(errand__hands *hands)
{
    errand__arena_destroy(hands->arena);
    hands->arena = NULL;
}

void
errand__hands_tell(errand__hands *hands, errand__block *block)
{
    if (hands->leaked != 0)
        atomic_fetch_add_explicit(&block->leaked, hands->leaked, memory_order_relaxed);
    hands->leaked = hands->destructor_panics = 0;
}

void
errand__hands_clock(errand__hands *hands)
{
    hands->base_ns = errand__clock_now();
    hands->now_ns = hands->base_ns;
    hands->base_cycles = hands->cycles = errand__cycles();
}

static inline void
begin(errand_job *job, errand__hands *hands, errand__block *block, errand__record *record,
      uint32_t generation, errand__cell *cell)
{
    job->hands = hands;
    job->record = record;
    hands->block = block;
    hands->cell = cell;
    job->generation = generation;
    job->payload = (errand_payload){.data = NULL};
    job->failure = NULL;
    job->message_lost = false;
    job->impure = false;
    job->follows = 0;
    job->sys_errno = 0;
    job->keeps = job->keeps_panic = job->recalled = false;
    job->t_start = block->times == ERRAND_TIMES_EXACT && !hands->here
                       ? errand__block_now(block)
                       : hands->now_ns;
    hands->job = job;
}

/* A body is about to be entered on a worker that is interrupted, or whose faults are caught. */
static ERRAND_COLD void
open_worker(errand__hands *hands, errand__record *record, uint32_t generation)
{
    if (hands->fault != NULL)
        errand__fault_arm(hands->fault, (uintptr_t)record->job->run);
    if (hands->interrupt != NULL)
        errand__interrupt_open(hands->interrupt, record, generation);
}

bool
errand__hands_execute(errand__hands *hands, errand__block *block, errand__record *record,
                      uint32_t generation, errand__cell *cell)
{
    errand_job *job = &hands->own;

    if (!errand__claim(record, generation, cell))
        return false;
    begin(job, hands, block, record, generation, cell);
    if (__builtin_expect(hands->interrupt != NULL || hands->fault != NULL, 0))
        open_worker(hands, record, generation);
    int32_t answer = record->job->run(job, record->state, &job->payload);
    if (hands->interrupt != NULL)
        errand__interrupt_close(hands->interrupt);
    errand__hands_finish_answer(job, answer);
    return true;
}

/* What finish does for a body that the owner ran here, and that answered 0 and left nothing but its
 * payload: most do, and this is a fifth of it.  False: it is not that simple. */
static inline bool
finish_here(errand_job *job, errand__record *record, errand__cell *cell)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    if (((uintptr_t)job->failure | (uintptr_t)job->defers | job->follows |
         job->hands->arena_blocks) != 0 ||
        job->sys_errno != 0 || job->message_lost ||
        !errand__is_alone(job->hands->block, record) ||
        errand__control_generation(control) != job->generation ||
        errand__control_state(control) != ERRAND__RUNNING)
        return false;
    ERRAND__PAUSE("body-done");
    ERRAND_ASSERT(record->node == ERRAND__NODE_UNPUT);
    ERRAND__PAUSE("settle");
    job->hands->job = NULL;
    job->record = NULL;
    job->hands->here = false;
    atomic_store_explicit(&record->control,
                          control + (ERRAND__SETTLED - ERRAND__RUNNING) +
                              ((uint64_t)ERRAND_COMPLETED << ERRAND__OUTCOME_SHIFT),
                          memory_order_release); /* Pairs: control-settle */
    record->payload = job->payload;
    record->node = 0;
    errand__count(&cell->outcomes[ERRAND_COMPLETED]);
    return true;
}

bool
errand__hands_execute_here(errand__hands *hands, errand__block *block,
                           errand__record *record, uint32_t generation,
                           errand__cell *cell)
{
    errand_job *job = &hands->own;
    int32_t answer;

    if (!errand__claim_here(block, record, generation, cell))
        return false;
    begin(job, hands, block, record, generation, cell);
    answer = record->job->run(job, record->state, &job->payload);
    if (answer != 0 || !finish_here(job, record, cell))
        errand__hands_finish_answer(job, answer);
    return true;
}

void
errand__hands_panicked(errand__hands *hands, const char *message)
{
    errand_job *job = hands->job;

    if (job == NULL)
        return;
    if (hands->interrupt != NULL)
        errand__interrupt_close(hands->interrupt);
    errand_job_message(job, "%s", message);
    if (keep(job, 0)) {
        job->keeps_panic = true;
        hands->job = NULL;
        return;
    }
    if (job->is_async)
        job->finished = true;
    errand__hands_finish(job, ERRAND_PANICKED, ERRAND_CODE_PANIC, 0);
}

void
errand__hands_crashed(errand__hands *hands, const errand_fault *fault)
{
    if (hands->job == NULL)
        return;
    errand__fault_note(fault, hands);
    errand__hands_finish(hands->job, ERRAND_CRASHED, ERRAND_CODE_CRASHED, 0);
}

/* ---- bodies in other processes ------------------------------------------------------------- */

void
errand__hands_away(errand__hands *hands, errand_job *job, errand__block *block,
                   errand__record *record, uint32_t generation, errand__cell *cell)
{
    job->is_async = true; /* its memory is its own, not an arena's */
    job->finished = false;
    begin(job, hands, block, record, generation, cell);
    hands->job = NULL;
}

void
errand__hands_at(errand__hands *hands, errand_job *job, errand__block *block,
                 errand__cell *cell)
{
    hands->block = block;
    job->hands = hands;
    hands->cell = cell;
    hands->job = job;
}

void
errand__hands_put_down(errand__hands *hands)
{
    hands->job = NULL;
}

void
errand__hands_back(errand_job *job, errand_outcome outcome, errand_code code,
                   int32_t answer)
{
    job->finished = true;
    if (outcome == ERRAND_COMPLETED || code == ERRAND_CODE_JOB)
        errand__hands_finish_answer(job, answer);
    else
        errand__hands_finish(job, outcome, code, answer);
}

/* ---- async -------------------------------------------------------------------------------- */

/* What the kernel has is not handed back: an end with requests under way waits for them. */
static bool
keep(errand_job *job, int32_t answer)
{
    if (job->requests == NULL)
        return false;
    job->keeps = true;
    job->kept_answer = answer;
    return true;
}

/* The last request of a job that had ended came back. */
static void
finish_kept(errand_job *job)
{
    job->finished = true;
    if (job->keeps_panic)
        errand__hands_finish(job, ERRAND_PANICKED, ERRAND_CODE_PANIC, 0);
    else
        errand__hands_finish_answer(job, job->kept_answer);
}

errand__poll
errand__hands_start(errand__hands *hands, errand__block *block, errand__record *record,
                    uint32_t generation, errand__cell *cell)
{
    errand_job *job;
    int32_t answer;

    if (!(hands->owned ? errand__claim_here(block, record, generation, cell)
                       : errand__claim(record, generation, cell)))
        return ERRAND__POLL_NOTHING;
    job = &record->extra->waker->job;
    job->is_async = true;
    begin(job, hands, block, record, generation, cell);
    answer = record->job->start == NULL
                 ? 0
                 : record->job->start(job, record->state, &job->payload);
    if (answer != 0 && !keep(job, answer)) {
        job->finished = true;
        errand__hands_finish_answer(job, answer);
        return ERRAND__POLL_ENDED;
    }
    hands->job = NULL;
    return ERRAND__POLL_PENDING;
}

errand__poll
errand__hands_poll(errand__hands *hands, errand_waker *waker)
{
    errand_job *job = &waker->job;
    errand__record *record = job->record;
    int32_t answer;

    if (record == NULL || job->finished)
        return ERRAND__POLL_NOTHING;
    job->hands = hands;
    if (__builtin_expect(job->keeps, 0)) {
        if (job->requests != NULL)
            return ERRAND__POLL_PENDING;
        hands->job = job;
        finish_kept(job);
        return ERRAND__POLL_ENDED;
    }
    hands->job = job;
    answer = record->job->poll(job, record->state, &job->payload);
    if (answer == ERRAND_PENDING || keep(job, answer)) {
        hands->job = NULL;
        return ERRAND__POLL_PENDING;
    }
    job->finished = true;
    errand__hands_finish_answer(job, answer);
    return ERRAND__POLL_ENDED;
}

bool
errand__hands_drop_pending(errand__hands *hands, errand_waker *waker)
{
    errand_job *job = &waker->job;

    if (job->record == NULL || job->finished)
        return false;
    job->hands = hands;
    job->finished = true;
    errand__hands_finish(job, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED, 0);
    return true;
}
