/* SPDX-License-Identifier: MIT */
/* Design notes: calls that misuse the library, and calls that find no memory.  Each answers what is
 * documented, is reported to the misuse hook once, and changes nothing. */
#include <stdatomic.h>
#include <string.h>
#include "errand/base.h"
#include "errand/portable.h"
#include "play.h"

/* reports: how often the hook was called.
 * Writers, Readers: the threads of a program, of which one runs at a time.
 * Order: relaxed.  Pairs: none.
 * Why: a plain number. */
static atomic_uint reports;

static void
count_report(void *arg, errand_status status, const char *text)
{
    (void)arg, (void)status, (void)text;
    atomic_fetch_add_explicit(&reports, 1, memory_order_relaxed);
}

void
play_watch_misuse(void)
{
    errand_misuse_hook(count_report, NULL);
}

static unsigned
reports_now(void)
{
    return atomic_load_explicit(&reports, memory_order_relaxed);
}

/* Functions of a job that answer no status: what they answer without one. */
static bool
answers_nothing(unsigned which)
{
    static const errand_identity nobody;
    errand_identity identity;

    switch (which) {
    case 0:
        return !errand_job_cancelled(NULL);
    case 1:
        return errand_job_name(NULL)[0] == '\0';
    case 2:
        return errand_job_trace_id(NULL) == 0;
    case 3:
        identity = errand_job_identity(NULL);
        return memcmp(&identity, &nobody, sizeof identity) == 0;
    case 4:
        return errand_job_epoch(NULL) == 0;
    case 5:
        errand_job_message(NULL, "nobody hears of %d", 1);
        return true;
    case 6:
        errand_job_fail(NULL, 1, 2, "open", "nobody hears of %d", 1);
        return true;
    case 7:
        return errand_job_alloc(NULL, 8) == NULL;
    default:
        return errand_payload_alloc(NULL, 8, &(errand_payload){0}) == NULL;
    }
}

void
play_slip(play *p, unsigned a, unsigned b, unsigned c)
{
    unsigned before = reports_now(), which = b % 14, expected = 1;
    errand_status status = ERRAND_EINVAL;
    bool nothing = true;

    (void)a, (void)c;
    switch (which) {
    case 9:
        status = errand_job_work(NULL, 1);
        break;
    case 10:
        status = errand_job_defer(NULL, NULL, NULL);
        break;
    case 11:
        status = errand_job_follow(NULL, &p->op[0].spec, NULL);
        break;
    case 12:
        nothing = errand_job_waker(NULL) == NULL && errand_waker_hold(NULL) == NULL;
        expected = 0;
        break;
    case 13:
        errand_payload_drop(NULL);
        errand_waker_wake(NULL);
        errand_waker_abandon(NULL);
        expected = 0;
        break;
    default:
        nothing = answers_nothing(which);
    }
    if (status != ERRAND_EINVAL || !nothing || reports_now() - before != expected)
        play_fail(p, "slip %u answers %s and is reported %u times", which,
                  errand_status_name(status), reports_now() - before);
    play_said(p, "slip", status, which);
}

static void
run_never(void *arg)
{
    play_fail(((play_op *)arg)->play, "a cleanup that was refused runs");
}

/* Inside a body: what a job may not, and what finds no memory, leaves it as it was. */
void
play_slip_inside(play_op *op, errand_job *job)
{
    play *p = op->play;
    bool is_async = op->spec.resource_class == ERRAND_INTERRUPTIBLE_ASYNC;
    unsigned before = reports_now();
    errand_spec no_spec = {.struct_size = 1};
    errand_payload payload = {0};
    errand_command no_command = {.fn = NULL};
    errand_waker *waker;

    if (errand_payload_alloc(job, 8, NULL) != NULL ||
        errand_job_defer(job, NULL, op) != ERRAND_EINVAL ||
        errand_job_follow(job, NULL, op) != ERRAND_EINVAL ||
        errand_job_follow(job, &no_spec, op) != ERRAND_EINVAL ||
        errand_job_post(job, NULL) != ERRAND_EINVAL ||
        errand_job_post(job, &no_command) != ERRAND_EINVAL ||
        errand_portable_take(job, NULL) || reports_now() - before != 7)
        play_fail(p, "op %d may do what no job may", op->index);
    if (errand_portable_take(job, &payload) || payload.data != NULL)
        play_fail(p, "op %d takes bytes that nobody handed in", op->index);
    errand_testing_fail_allocation(1);
    errand_status status = errand_job_defer(job, run_never, op);
    errand_testing_fail_allocation(1);
    if (status != ERRAND_ENOMEM || errand_payload_alloc(job, 8, &payload) != NULL ||
        payload.data != NULL)
        play_fail(p, "op %d needs no memory", op->index);
    errand_testing_fail_allocation(1);
    if (is_async && errand_job_alloc(job, 8) != NULL)
        play_fail(p, "op %d has a block without memory", op->index);
    errand_testing_fail_allocation(1);
    status = errand_job_follow(job, &op->spec, op);
    errand_testing_fail_allocation(0);
    if (status != ERRAND_ENOMEM)
        play_fail(p, "op %d hands on without memory", op->index);
    waker = errand_job_waker(job);
    if ((waker != NULL) != is_async ||
        (is_async && errand_job_alloc(job, SIZE_MAX) != NULL))
        play_fail(p, "op %d: a waker, or a block of any size", op->index);
    errand_waker_abandon(&waker);
    if (op->spec.work_max == 0 && errand_job_work(job, UINT64_MAX) != ERRAND_OK)
        play_fail(p, "op %d has a bound that it did not declare", op->index);
}
