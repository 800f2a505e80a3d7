/* SPDX-License-Identifier: MIT */
/* Design notes: the end of a body.
 *
 * What a body makes (payload, failure, follow-ups, deferred cleanups) stays in the errand_job
 * until the exchange to SETTLED is won; only then is the record written.  So a body whose
 * operation was settled for it (written off) can go on as long as it likes without a race, and
 * what it made is dropped when it comes back.
 *
 * A payload that a failing body left goes with the record too: nobody is shown half a result, but
 * it is dropped by the owner after the handler, like any other (O23). */
#include <string.h>
#include "core/pause.h"
#include "dispatch/hands.h"

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

void
errand__hands_finish(errand_job *job, errand_outcome outcome, errand_code code,
                     int32_t job_code)
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
    errand__hands_finish(job, ERRAND_FAILED, ERRAND_CODE_JOB, answer);
}

void
errand__hands_finish_answer(errand_job *job, int32_t answer)
{
    if (answer == 0) {
        if (job->failure != NULL) {
            errand__failure_give(job->hands->block, job->failure);
            job->failure = NULL;
        }
        errand__hands_finish(job, ERRAND_COMPLETED, ERRAND_CODE_NONE, 0);
        return;
    }
    finish_failed(job, answer);
}
