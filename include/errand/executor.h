/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_EXECUTOR_H
#define ERRAND_EXECUTOR_H
/* executor: who runs the jobs.  Three come with the library (blocking, async, manual),
 * and an embedder can write another on the same interface (last section).  Conventions:
 * errand.h. */
#include "errand.h"
ERRAND_BEGIN

/* ---- lanes ------------------------------------------------------------------------- */
enum {
    ERRAND_LANE_CLASS = 0,       /* in a spec: the resource class decides */
    ERRAND_LANE_MAIN = 1,        /* interruptible work */
    ERRAND_LANE_QUARANTINED = 2, /* quarantined work */
    ERRAND_LANE_FIRST_OWN = 3,   /* from here on: errand_lane_define */
    ERRAND_LANES = 19            /* two of the library's, 16 of the host's, and 0 */
};

/* ---- the blocking pool: threads ---------------------------------------------------- */
/* errand_blocking_config.flags */
enum { ERRAND_BLOCKING_CATCH_FAULTS = 1 /* see errand/faults.h */ };
typedef struct errand_blocking_config {
    uint32_t struct_size;
    uint32_t workers_min;       /* 0 = 1; threads that idle time does not retire */
    uint32_t workers_max;       /* 0 = max(4, processors); at most 1024 */
    uint32_t quarantined_limit; /* at once on quarantined work; 0 = max(1, max / 2) */
    uint64_t idle_ns;           /* an idle worker above the minimum retires; 0 = 10 s */
    size_t stack_size;          /* 0 = 1 MiB; a guard page below it */
    int32_t nice;               /* added to the thread's nice value */
    uint32_t flags;             /* ERRAND_BLOCKING_... */
    const char *name;           /* of the threads, at most 11 bytes; NULL = "errand" */
    const uint32_t *cpus;       /* processors to run on; NULL = any */
    size_t cpu_count;
    void (*held_on_start)(void *arg, uint32_t worker); /* on each new thread */
    void (*held_on_stop)(void *arg, uint32_t worker);
    void *held_arg;
    /* 0, or a signal that ends the blocking calls of a cancelled body with EINTR, for
     * example SIGURG: see below. */
    int32_t interrupt_signal;
} errand_blocking_config;

/* errand_blocking_create: a pool of threads.  The minimum is started here; with fewer
 * than asked for, it goes on with those and says so in its snapshot (threads_refused);
 * with none, submit answers ENOTHREAD and tries again.  config NULL = all defaults.
 *
 * interrupt_signal: when an interruptible job that runs is cancelled, its thread gets the
 *   signal, and again after 1, 2, 4 ... 1000 ms until its body has returned, so that also
 *   one that came just before the call is made good.  The body looks at its token when
 *   a call was interrupted.  No other body and nothing else is interrupted: the signal is let in during
 *   such bodies alone, quarantined ones and those with ERRAND_SPEC_NO_SIGNAL excepted.
 *   The handler is the process's: it does nothing, is put where the signal has none (and
 *   is not ignored), is shared by the pools that ask for the same signal, and goes with
 *   the last of them.  The pool has one thread more, which sends.
 * Thread: [any].   Errors: ENOMEM · EINVAL · EBUSY (interrupt_signal is in use by the
 *   host) · ENOTHREAD (with interrupt_signal or ERRAND_BLOCKING_CATCH_FAULTS: nobody to
 *   send it or to look after the others) · EUNSUPPORTED (faults cannot be caught here). */
ERRAND_API ERRAND_MUST_USE errand_status errand_blocking_create(
    const errand_blocking_config *config, errand_executor **out_executor);

/* errand_lane_define: a named share of a blocking pool: at most limit workers at once run
 * its jobs; a job that waits for its lane holds up no other.
 * Thread: [any], before the pool's first lease.   Errors: EFULL (16 are defined) · EBUSY
 *   (it has leases) · EINVAL · EUNSUPPORTED (not a blocking or manual executor). */
ERRAND_API ERRAND_MUST_USE errand_status errand_lane_define(
    errand_executor *executor, const char *name, uint32_t limit, uint8_t *out_lane);

/* ---- the async executor ------------------------------------------------------------ */
/* One thread polls every job that was woken; see errand/async.h.  It takes async jobs
 * only.  config NULL = all defaults.
 * Thread: [any].   Errors: ENOMEM · ENOTHREAD · EINVAL. */
typedef struct errand_async_config {
    uint32_t struct_size;
    uint32_t flags;   /* none yet; must be 0 */
    const char *name; /* of the thread, at most 15 bytes; NULL = "errand-async" */
} errand_async_config;
ERRAND_API ERRAND_MUST_USE errand_status
errand_async_create(const errand_async_config *config, errand_executor **out_executor);

/* ---- the manual executor: no threads; the caller steps it: tests need no sleeps ---- */
/* It takes blocking and async jobs of any lane, with the fairness of the blocking pool
 * and one pretended worker, or as many as workers says (for lanes and shares).  config
 * NULL = all defaults.
 * Thread: [any].   Errors: ENOMEM · EINVAL. */
typedef struct errand_manual_config {
    uint32_t struct_size;
    uint32_t workers;           /* 0 = 1 */
    uint32_t quarantined_limit; /* as in errand_blocking_config */
    uint32_t flags;             /* none yet; must be 0 */
} errand_manual_config;
ERRAND_API ERRAND_MUST_USE errand_status
errand_manual_create(const errand_manual_config *config, errand_executor **out_executor);
/* errand_manual_step: run at most budget queued jobs to their end, or poll woken async
 * jobs, on the calling thread.  *out_count counts bodies entered and polls.
 * Thread: [any], one at a time.   Errors: EUNSUPPORTED (another executor) · EBUSY (in
 * one). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_manual_step(errand_executor *executor, size_t budget, size_t *out_count);

/* ---- all executors ----------------------------------------------------------------- */
/* errand_executor_abandon: give up the creator's reference; leases keep the executor
 * alive; its threads end after the last lease did.  NULL-safe.
 * Thread: [any], not a worker. */
ERRAND_API void errand_executor_abandon(errand_executor **take_executor);

/* An operation beyond its soft limit. */
typedef struct errand_overrun {
    errand_identity identity;
    uint64_t age_ns;
} errand_overrun;
typedef struct errand_executor_snapshot {
    uint32_t workers, idle, written_off, threads_refused; /* threads now */
    uint64_t threads_started, threads_retired, threads_replaced;
    uint64_t queued, running; /* sums over leases, as errand_snapshot derives them */
    uint64_t oldest_queued_ns, oldest_running_ns;
    /* counts of [2^i, 2^(i+1)) ns */
    uint64_t wait_histogram[40], run_histogram[40];
    uint32_t overruns;         /* how many there are */
    errand_overrun overrun[8]; /* the oldest of them */
    uint64_t destructor_panics, leaked;
} errand_executor_snapshot;
/* Thread: [any], while the executor lives, but not inside a turn of a seeded order.
 * Errors: EINVAL · EFORKED · EUNSUPPORTED. */
ERRAND_API ERRAND_MUST_USE errand_status errand_executor_snapshot_read(
    errand_executor *executor, errand_executor_snapshot *out_snapshot);
/* errand_lease_ages, errand_runtime_ages: the same for one lease, or for all of a
 * runtime: queued, running, ages and overruns are theirs alone; the rest is about the
 * executors they are attached to, summed.  In all three ages are of real time (those
 * queued in a blocking pool: of the runtime's clock, none with ERRAND_TIMES_NONE), and
 * seeded orders show none.  Submit and run take no lock for it; the call takes the
 * executor's for a moment, which errand_lease_snapshot does not.
 * Thread: [any], while the lease or runtime lives, but not inside a turn of a seeded
 * order.   Errors: EINVAL · EFORKED · EUNSUPPORTED. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_lease_ages(const errand_lease *lease, errand_executor_snapshot *out_snapshot);
ERRAND_API ERRAND_MUST_USE errand_status errand_runtime_ages(
    const errand_runtime *runtime, errand_executor_snapshot *out_snapshot);

/* ---- an executor of one's own (O64) ------------------------------------------------ */
/* The library calls these.  Every dispatch that came through submit is run or dropped
 * exactly once; one whose operation was cancelled meanwhile answers false and needs
 * nothing more. */

/* An armed operation, by value. */
typedef struct errand_dispatch {
    void *held_record;
    uint64_t stamp;
} errand_dispatch;
typedef struct errand_dispatch_view {
    errand_identity identity;
    errand_resource_class resource_class;
    uint8_t lane, priority;
    uint64_t key, begin_ns, due_ns; /* seeded orders; 0 in arrival */
    const char *name;
} errand_dispatch_view;
typedef struct errand_executor_type {
    uint32_t struct_size;
    const char *name;
    /* A runtime attaches: *out_lease is yours, handed back to the others.  [owner] */
    errand_status (*attach)(
        void *data, uint64_t runtime_id, uint32_t owed_max, void **out_lease);
    /* May count operations be submitted next?  Refuse here: submit cannot.  [owner] */
    errand_status (*reserve)(void *lease, uint32_t count);
    /* Take it; run it here, elsewhere, later.  [owner] */
    void (*submit)(void *lease, errand_dispatch dispatch);
    /* No more comes: drop what is queued, let running bodies end until deadline_ns
     * (CLOCK_MONOTONIC), then forget the lease.  After the return no dispatch of it may
     * be touched, but for those whose body is running.  [owner] */
    void (*detach)(void *lease, uint64_t deadline_ns);
    /* The last reference is gone.  [any] */
    void (*destroy)(void *data);
} errand_executor_type;
/* Thread: [any].   Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_executor_create(
    const errand_executor_type *held_type, void *data, errand_executor **out_executor);
/* errand_dispatch_view_read: false if its operation was cancelled or ended.
 * errand_dispatch_run: claim it and run its body to the end here, panics contained,
 *   completion put; false if it was cancelled first.  Also polls an async job until it is
 *   ready (blocking between polls until woken), so that any executor can run any job.
 * errand_dispatch_drop: settle it unrun, as CANCELLED; false if it was settled before.
 * Thread: [any], while the lease is attached. */
ERRAND_API bool
errand_dispatch_view_read(errand_dispatch dispatch, errand_dispatch_view *out_view);
ERRAND_API bool errand_dispatch_run(errand_dispatch dispatch);
ERRAND_API bool errand_dispatch_drop(errand_dispatch dispatch);

ERRAND_END
#endif
