/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_ASYNC_H
#define ERRAND_ASYNC_H
/* async: jobs that are polled instead of run.  Conventions: errand.h.
 *
 * An async job's start (if any) is called once by its worker, then poll until it answers
 * something other than ERRAND_PENDING.  Before it answers that, it must have arranged
 * that a waker of it is woken later.  A job that is cancelled while queued is never
 * started; one that is cancelled while pending has its token set and is polled again. */
#include "errand.h"
ERRAND_BEGIN

#define ERRAND_PENDING INT32_MIN /* of poll: not ready; a waker will tell */

/* A waker is counted; it may outlive its job, its runtime and its executor. */
typedef struct errand_waker errand_waker;

/* errand_job_waker: a reference to the job's waker (the same one each time), which
 * errand_waker_abandon is owed.  NULL without memory or for a job that is not async.
 * Thread: [worker]. */
ERRAND_API ERRAND_MUST_USE errand_waker *errand_job_waker(errand_job *job);
/* errand_waker_hold: one reference more.   Thread: [any]. */
ERRAND_API errand_waker *errand_waker_hold(errand_waker *waker);
/* errand_waker_wake: have the job polled soon; wakes before a poll count once; harmless
 * after its end.  Does not consume the reference.   Thread: [any]. */
ERRAND_API void errand_waker_wake(errand_waker *waker);
/* NULL-safe.   Thread: [any]. */
ERRAND_API void errand_waker_abandon(errand_waker **take_waker);

ERRAND_END
#endif
