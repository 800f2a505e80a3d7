/* SPDX-License-Identifier: MIT */
/* Design notes: one worker's context, and how a body is entered and left.
 *
 * What a body makes (payload, failure, follow-ups, deferred cleanups) stays in the errand_job
 * until the exchange to SETTLED is won; only then is the record written.  So a body whose
 * operation was settled for it (written off) can go on as long as it likes without a race, and
 * what it made is dropped when it comes back.
 *
 * A payload that a failing body left goes with the record too: nobody is shown half a result, but
 * it is dropped by the owner after the handler, like any other (O23).
 *
 * Times: the group's clock reading plus the cycle counter, which costs a fraction of a clock
 * call; a job's start is the end of the one before it.  Even that costs as much as a tiny job,
 * so where jobs were measured to be tiny, eight share a reading. */
#include <string.h>
#include "core/pause.h"
#include "dispatch/dispatch.h"

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

/* A drop or deferred cleanup panicked: it ends there, and what it had in hand is given up (O76). */
static void
count_panic(errand__hands *hands)
{
    hands->destructor_panics++;
    hands->leaked++;
}

static void
run_defer(void *arg)
{
    errand__defer *defer = arg;

    defer->fn(defer->arg);
}

static ERRAND_COLD void
run_defers(errand_job *job)
{
    char text[64];

    while (job->defers != NULL) {
        errand__defer *defer = job->defers;

        job->defers = defer->next;
        if (errand__contained(run_defer, defer, text, sizeof text))
            count_panic(job->hands);
        errand__mem_free(NULL, defer, sizeof *defer);
    }
}

/* The memory of errand_job_alloc goes with the job.  The whole arena may be reset when it holds
 * nothing but this job's blocks (O77). */
static ERRAND_COLD void
release_memory(errand_job *job)
{
    errand__hands *hands = job->hands;

    if (job->is_async) {
        errand__job_blocks_free(job);
        return;
    }
    if (errand__arena_live(hands->arena) == hands->arena_blocks)
        errand__arena_reset(hands->arena);
    else
        hands->leaked += hands->arena_blocks;
    hands->arena_blocks = hands->arena_bytes = 0;
}

static void
stamp_times(errand_job *job, errand__record *record)
{
    errand__hands *hands = job->hands;
    uint64_t end;

    if (hands->here)
        return;
    if (hands->block->times == ERRAND_TIMES_EXACT) {
        errand__hands_read(hands);
        errand__record_label(record)->t_start = job->t_start;
        errand__record_label(record)->t_end = errand__block_now(hands->block);
        record->times = 1; /* the label has them */
        return;
    }
    errand__hands_glance(hands);
    end = hands->now_ns;
    record->times = errand__times_pack(job->t_start - hands->block->epoch_ns,
                                       end > job->t_start ? end - job->t_start : 0);
}

/* A body whose operation was settled meanwhile: all that it made is dropped. */
static ERRAND_COLD void
finish_late(errand_job *job)
{
    unsigned panics = errand__payload_drop(&job->payload) +
                      errand__details_drop(job->hands->block, job->follows);

    for (; panics > 0; panics--)
        count_panic(job->hands);
    if (job->failure != NULL)
        errand__failure_give(job->hands->block, job->failure);
    errand__hands_read(job->hands);
}

/* The end of every body, one way or the other.  After the put neither record nor job is touched
 * (O23). */
static void
finish(errand_job *job, errand_outcome outcome, errand_code code, int32_t job_code)
{
    errand__hands *hands = job->hands;
    errand__record *record = job->record;
    errand__putter *putter =
        hands->owners || hands->owned ? &errand__owner_putter : &hands->putter;
    uint64_t flags = job->message_lost ? ERRAND__FLAG_LOST : 0;

    ERRAND__PAUSE("body-done");
    if (job->defers != NULL)
        run_defers(job);
    if (hands->fault != NULL)
        errand__fault_disarm(hands->fault);
    if (job->is_async || hands->arena_blocks != 0)
        release_memory(job);
    hands->job = NULL;
    job->record = NULL;
    if (!(hands->here || hands->owned
              ? errand__settle_begin_here(hands->block, record, job->generation, outcome,
                                          code, flags)
              : errand__settle_begin(record, job->generation, ERRAND__RUNNING, outcome,
                                     code, flags))) {
        finish_late(job);
        errand__return(hands->block, record);
        return;
    }
    record->payload = job->payload;
    if (job_code != 0 || job->sys_errno != 0 || job->follows != 0 ||
        job->failure != NULL) {
        record->job_code = job_code; /* arming cleared them; the line is the owner's */
        record->sys_errno = job->sys_errno;
        record->details = errand__details_join(job->follows, job->failure);
    }
    stamp_times(job, record);
    if (hands->here) {
        hands->here = false;
        errand__settle_here(record, hands->cell);
        return;
    }
    errand__settle(hands->block, record, hands->cell, putter);
}

static ERRAND_COLD void
finish_failed(errand_job *job, int32_t answer)
{
    if (answer < 0)
        errand_job_message(job,
                           "the job answered %d, but negative codes are the library's; "
                           "answer 1 or more",
                           (int)answer);
    finish(job, ERRAND_FAILED, ERRAND_CODE_JOB, answer);
}

static void
finish_answer(errand_job *job, int32_t answer)
{
    if (answer == 0) {
        if (job->failure != NULL) {
            errand__failure_give(job->hands->block, job->failure);
            job->failure = NULL;
        }
        finish(job, ERRAND_COMPLETED, ERRAND_CODE_NONE, 0);
        return;
    }
    finish_failed(job, answer);
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
    finish_answer(job, answer);
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
        finish_answer(job, answer);
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
    finish(job, ERRAND_PANICKED, ERRAND_CODE_PANIC, 0);
}

void
errand__hands_crashed(errand__hands *hands, const errand_fault *fault)
{
    if (hands->job == NULL)
        return;
    errand__fault_note(fault, hands);
    finish(hands->job, ERRAND_CRASHED, ERRAND_CODE_CRASHED, 0);
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
        finish_answer(job, answer);
    else
        finish(job, outcome, code, answer);
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
        finish(job, ERRAND_PANICKED, ERRAND_CODE_PANIC, 0);
    else
        finish_answer(job, job->kept_answer);
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
        finish_answer(job, answer);
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
    finish_answer(job, answer);
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
    finish(job, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED, 0);
    return true;
}
