/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_REACTOR_H
#define ERRAND_WORKERS_REACTOR_H
/* reactor: async jobs, and what they ask of the kernel.
 *
 * A loop is one thread's: it starts and polls jobs, hands their requests to its back end, and
 * polls again when they are done.  A lease without threads has a loop of its own, which its
 * owner's thread goes through; else each loop has a thread, and leases are spread over them.
 *
 * Rosters, pollers and ports are the async executor's. */
#include "errand/io.h"
#include "workers/async/async.h"

typedef struct errand__reactor errand__reactor;
typedef struct errand__loop errand__loop;

/* ---- requests (request.c) --------------------------------------------------------------------- */
enum { /* errand__request.state */
       ERRAND__IO_UNDER_WAY = 1,
       ERRAND__IO_ASKED = 2,   /* it was asked back */
       ERRAND__IO_LISTED = 4,  /* link is in a list of its loop or back end */
       ERRAND__IO_TIMED = 8,   /* link is in the loop's wheel */
       ERRAND__IO_KERNEL = 16, /* io_uring: the kernel has it */
       ERRAND__IO_POLLING =
           32,                /* io_uring: a poll stands for it; then it is tried again */
       ERRAND__IO_FILER = 64, /* a filer has it, or it is in their queue */
       /* a MANY whose ring has no room: nothing is under way for it, or (KERNEL) it is stopped */
       ERRAND__IO_FULL = 128,
       ERRAND__IO_FINISHED = 256, /* in the loop's list of those that are done */
       /* io_uring, a MANY: it goes on by itself; it was told to stop, and that is not back; it is
        * repeated one by one, once or for good. */
       ERRAND__IO_MULTI = 512,
       ERRAND__IO_STOPPING = 1024,
       ERRAND__IO_ONCE = 2048,
       ERRAND__IO_SINGLE = 4096,
       ERRAND__IO_SURPLUS = 8192 /* see surplus.c; also after it is done */
};
/* What errand_io.library holds. */
typedef struct __attribute__((may_alias)) errand__request {
    errand_io *next, *previous; /* in job->requests */
    errand_waker *waker;        /* whose job's it is */
    errand__link link;
    uintptr_t state;
} errand__request;
_Static_assert(sizeof(errand__request) == sizeof(((errand_io *)0)->library),
               "a request's part of the library");
static inline errand__request *
errand__request_of(errand_io *io)
{
    return (errand__request *)(void *)io->library;
}
static inline errand_io *
errand__request_io(errand__link *link)
{
    return (errand_io *)(void *)((char *)link - offsetof(errand__request, link) -
                                 offsetof(errand_io, library));
}
/* An item of a MANY, or the result of any other kind.  done: it is the job's again, which is polled.
 * item: more: the back end still has it.  Else it is started again, unless the ring is full now. */
void errand__request_done(errand__loop *loop, errand_io *io, int32_t result);
void errand__request_item(errand__loop *loop, errand_io *io, int32_t result, bool more);
/* here: what nobody has is done at once, unpolled, because the caller polls; else at the end of the
 * round. */
void errand__request_recall(errand__loop *loop, errand_io *io, bool here);
void errand__request_recall_all(errand__poller *poller, errand_waker *waker);
/* Nothing announces when it may be tried again: the back end starts it after a while. */
void errand__request_put_off(errand__loop *loop, errand_io *io);
/* The back end's way to say "later, in this round's end". */
void errand__request_finish_later(errand__loop *loop, errand_io *io, int32_t result);

/* Accepted connections beyond a full ring (surplus.c).  put: keeps one, or closes it where there is no
 * memory.  move: into the ring, as far as there is room.  close: what is left. */
void errand__surplus_put(errand_job *job, errand_io *io, int32_t descriptor);
void errand__surplus_move(errand_io *io);
void errand__surplus_close(errand_io *io);

/* ---- the wheel (timer.c) ------------------------------------------------------------------------ */
#define ERRAND__WHEEL_LEVELS 9
#define ERRAND__WHEEL_SLOTS  64
typedef struct errand__wheel {
    uint64_t now;   /* in ticks */
    uint64_t count; /* timers in it */
    uint64_t occupied[ERRAND__WHEEL_LEVELS];
    errand__link slots[ERRAND__WHEEL_LEVELS][ERRAND__WHEEL_SLOTS];
} errand__wheel;
void errand__wheel_init(errand__wheel *wheel, uint64_t now_ns);
void errand__wheel_insert(errand__wheel *wheel, errand_io *io);
void errand__wheel_remove(errand__wheel *wheel, errand_io *io);
/* When to call advance again, ns; UINT64_MAX = never: nothing is in it. */
uint64_t errand__wheel_next(const errand__wheel *wheel);
/* Takes one that is due; NULL: none is. */
errand_io *errand__wheel_take(errand__wheel *wheel, uint64_t now_ns);

/* ---- back ends (uring.c, epoll.c) ---------------------------------------------------------------- */
typedef struct errand__backend {
    const char *name;
    /* On the loop's thread.  bell: a descriptor that becomes readable when others ring.  An errno. */
    int (*init)(errand__loop *loop, int bell);
    void (*fini)(errand__loop *loop);
    /* start: UNDER_WAY; recall: ASKED. */
    void (*start)(errand__loop *loop, errand_io *io);
    void (*recall)(errand__loop *loop, errand_io *io);
    /* Hands over what was started, waits at most so long for something (0 = not at all), and gives
     * what is done to errand__request_done. */
    void (*turn)(errand__loop *loop, uint64_t timeout_ns);
    /* wanted: is a turn without waiting needed now?  filled: has something been started that only a
     * turn hands over, be it one that waits?  NULL = a turn is wanted then. */
    bool (*wanted)(errand__loop *loop);
    bool (*filled)(errand__loop *loop);
    /* Would a turn without waiting find nothing?  NULL = only a turn knows. */
    bool (*idle)(errand__loop *loop);
    /* For whoever waits elsewhere: what becomes readable between rest and rouse, when there is
     * something to do, or at that time (UINT64_MAX = none).  -1: it cannot be made. */
    int (*descriptor)(errand__loop *loop);
    void (*rest)(errand__loop *loop, uint64_t at_ns);
    void (*rouse)(errand__loop *loop);
} errand__backend;
extern const errand__backend errand__uring_backend, errand__epoll_backend;
/* 0, or the errno with which the kernel refuses io_uring, asked once. */
int errand__uring_refused(void);

/* ---- what each kind is, by back end (table.c) ------------------------------------------------------ */
struct io_uring_sqe;
enum {                                 /* answers of attempt, beside results */
       ERRAND__TRY_IN = INT32_MIN + 1, /* not now: wait until fd is readable */
       ERRAND__TRY_OUT = INT32_MIN + 2,
       ERRAND__TRY_FILER = INT32_MIN + 3, /* it would block: a filer does it */
       ERRAND__TRY_LATER = INT32_MIN + 4, /* of block: again after a while (IN: now) */
       ERRAND__TRY_MOST = INT32_MIN + 4
};
typedef struct errand__kind {
    const char *name;
    /* io_uring: fills an entry in; NULL: a filer does it, or the loop itself. */
    void (*fill)(struct io_uring_sqe *entry, errand_io *io);
    /* epoll: tries without blocking; block: does it on a filer (NULL: nobody ever asks). */
    int32_t (*attempt)(errand_io *io);
    int32_t (*block)(errand_io *io);
    uint32_t
        waits; /* POLLIN, POLLOUT: what a descriptor in non-blocking mode is waited for */
    bool of_loop;      /* done by the loop itself, whatever the back end */
    bool many, writes; /* writes: may raise SIGPIPE */
} errand__kind;
extern const errand__kind errand__kinds[ERRAND_IO_KINDS];

/* ---- filers: threads for what a back end cannot wait for (filers.c) ---------------------------------- */
typedef struct errand_helpers {
    errand__lock lock;
    /* Immutable. */
    uint32_t limit, fork_epoch;
    const char *name; /* the reactor's; not after its end */
    /* refs: the reactor's and those of errand_job_helpers.  Writers, readers: any.
     * Order: fetch_sub acquire-release.  Pairs: filer-refs.  Why: the last one frees it. */
    atomic_uint refs;
    uint64_t idle_ns; /* how long one without work stays */
    /* Guarded by lock. */
    errand__link queue; /* requests, oldest first */
    uint32_t idle, queued;
    uint32_t serving; /* filers that will look at the queue again, or are being made */
    /* threads: Writers: filers, whoever starts one (with lock).  Readers: destroy, tests.
     * Order: acquire-release.  Pairs: filer-count.  Why: the last one has let everything go. */
    atomic_uint threads;
    /* bell: what idle ones sleep on.  Writers: whoever queues.  Readers: filers.
     * Order: release, acquire.  Pairs: filer-bell.  Why: the queue must be seen. */
    atomic_uint bell;
    /* Guarded by lock. */
    bool stopping;
    bool any_ended; /* last: the filer that ended last, whom nobody has joined yet */
    pthread_t last;
} errand__filers;
errand__filers *errand__filers_create(uint32_t limit, const char *name);
/* The reactor's end: waits for the threads, which do what is queued, and lets them go. */
void errand__filers_end(errand__filers *filers);
void errand__filers_let(errand__filers *filers);
/* FILER from then on.  Where no thread can be made and none is there, the caller's does it, and what
 * else is queued, before this returns.  One without a waker is freed when it was done.  False: too
 * late, they are ending; never for requests of jobs, which keep the reactor. */
bool errand__filers_give(errand__filers *filers, errand_io *io);
/* It was asked back: what stands in the queue ends as ECANCELED, what a filer has when its call does.
 * False: it is not theirs. */
bool errand__filers_recall(errand__loop *loop, errand_io *io);
/* The loop's returned_fd is readable: what filers have done is done, or tried again. */
void errand__filers_collect(errand__loop *loop);

/* ---- a loop (loop.c) ------------------------------------------------------------------------------ */
typedef struct errand__loop_lease { /* lease->impl */
    errand__roster roster;
    errand__woken woken;
    errand__loop *loop;
} errand__loop_lease;
_Static_assert(offsetof(errand__loop_lease, woken) ==
                   offsetof(errand__woken_lease, woken),
               "errand__woken_add finds it");
struct errand__loop {
    errand__reactor *reactor;
    const errand__backend *backend;
    void *state; /* the back end's */
    errand__port *port;
    bool local; /* a lease's own */
    bool ready; /* the back end is there */
    bool inside;
    bool resting;          /* its port was told */
    bool moved;            /* a job was polled in this round */
    bool flushing;         /* a round for what was submitted, and no more */
    errand_lease *serving; /* whose turn it is; held */
    errand__poller poller;
    errand__spans spans;
    errand__wheel wheel;
    /* Local: cycles of the last submission, and how many more share them. */
    uint64_t submitted;
    uint32_t submits_left;
    uint64_t flushed_at;  /* flushing: the counter's last reading; 0 = it is too old */
    uint64_t under_way;   /* requests */
    errand__link turns;   /* leases with woken jobs */
    errand__link waiting; /* requests that found no place in the kernel's queue */
    errand__link
        finished;        /* requests that are done and not told: result is in the block */
    uint64_t alarm_ns;   /* what the back end was told */
    errand_lease *lease; /* a local one's */
    errand__link left;   /* local: among the thread's whose leases have ended */
    errand_lease
        *owed; /* whose runtime is to be rung before another's job is polled; held */
    int returned_fd; /* readable: see returned.  The back end watches it; -1 = none is there */
    /* returned: what filers have done, newest first, linked by link.next.  Writers: filers (push), the loop (take).
     * Readers: the same.  Order: compare-exchange, exchange, acquire-release.
     * Pairs: filer-return.  Why: the result must be seen. */
    _Atomic uintptr_t returned;
    /* Of a loop with a thread. */
    pthread_t thread;
    uint32_t index;
    int start_error;
    errand__lock lock; /* of its leases' rosters */
    /* phase: 0 starting, 1 serving, 2 failed.  Writers: the thread.  Readers: create.
     * Order: release, acquire.  Pairs: loop-phase.  Why: create reads start_error. */
    atomic_uint phase;
    /* stopping: the last reference of the reactor is gone.  Writers: destroy.  Readers: the thread.
     * Order: release, acquire.  Pairs: loop-stop.  Why: the thread may free the rest then. */
    atomic_bool stopping;
    bool orphan;
    /* asleep: Writers: the thread.  Readers: snapshots.  Order: relaxed.  Pairs: none.
     * Why: a figure. */
    atomic_bool asleep;
    /* replaced: bodies that ended the thread.  Writers: the thread.  Readers: snapshots.
     * Order: relaxed.  Pairs: none.  Why: a figure. */
    _Atomic uint64_t replaced;
};
/* Prepares memory and port; the back end is begun on its thread.  An errno or 0. */
int errand__loop_init(errand__loop *loop, errand__reactor *reactor, errand__port *port);
void errand__loop_fini(errand__loop *loop);
int errand__loop_begin(errand__loop *loop, int bell);
void errand__loop_end(errand__loop *loop);
/* The loop whose job runs on this thread now; NULL = none does. */
errand__loop *errand__loop_current(void);
/* turns.c.  queue: a woken job.  run_woken: each lease that has some, one turn.  end_turn: the first lease's,
 * also one that a panic ended. */
void errand__loop_queue(errand__loop *loop, errand_waker *waker);
void errand__loop_run_woken(errand__loop *loop);
void errand__loop_end_turn(errand__loop *loop);
/* One round: woken jobs, requests, timers; waits at most so long if there was nothing. */
void errand__loop_round(errand__loop *loop, uint64_t timeout_ns);
/* A job's body was left, by a panic or a thread's exit. */
void errand__loop_left(errand__loop *loop, const char *message);
/* A job of this lease is about to be polled. */
void errand__loop_serve(errand__loop *loop, errand_lease *lease);
/* busy: is there something that a round would do now?  pressed: ... and that a wait may not put off? */
bool errand__loop_busy(errand__loop *loop);
bool errand__loop_pressed(errand__loop *loop);
bool errand__loop_holds(errand__loop *loop);           /* jobs to poll or to tell of */
uint64_t errand__loop_until(const errand__loop *loop); /* its next timer, ns from now */

enum { ERRAND__TINY_COUNT = 4, ERRAND__TINY_SHARED = 7 };
/* So many bodies were polled since begun: are they so short that a few may share a reading of the
 * clock? */
static inline void
errand__loop_pace(errand__hands *hands, uint64_t begun, unsigned count)
{
    if (count < ERRAND__TINY_COUNT)
        return;
    errand__hands_read(hands);
    hands->lazy = (hands->cycles - begun) / count < errand__cycles_per_us()
                      ? ERRAND__TINY_SHARED
                      : 0;
}

/* ---- the executor (reactor.c, local.c, thread.c) ----------------------------------------------------- */
#define ERRAND__REACTOR_THREADS 64
struct errand__reactor {
    errand_executor base;
    /* Immutable after create. */
    const errand__backend *backend;
    uint32_t entries, helpers, thread_count;
    char name[16];
    char backend_text[96];
    errand__filers *filers;
    errand__loop *loops[ERRAND__REACTOR_THREADS];
    errand__lock lock;
    /* Guarded by lock. */
    errand__link rosters;
    uint32_t next_loop;
};
extern const errand__executor_ops errand__reactor_local_ops, errand__reactor_thread_ops;
static inline errand__reactor *
errand__reactor_of(errand_executor *executor)
{
    return ERRAND__CONTAINER(executor, errand__reactor, base);
}
void errand__reactor_free(errand__reactor *reactor);
/* What both kinds of leases share. */
errand_status errand__reactor_ready(errand_lease *lease, const errand__record *record);
errand_status errand__reactor_reserve(errand_lease *lease, uint32_t count);
void errand__reactor_stale(errand_lease *lease, uint8_t lane, uint8_t priority);
bool errand__reactor_write_off(errand_lease *lease, errand__record *record,
                               uint32_t generation);
void errand__reactor_join(errand__reactor *reactor, errand__loop_lease *mine);
void errand__reactor_part(errand__reactor *reactor, errand__loop_lease *mine);
void errand__reactor_snapshot(errand_executor *executor, const errand_lease *only,
                              errand_executor_snapshot *out_snapshot);
void errand__reactor_destroy(errand_executor *executor);
/* thread.c */
errand_status errand__loop_thread_start(errand__loop *loop);
void errand__loop_thread_stop(errand__loop *loop);
int errand__bell_create(void); /* an eventfd; -1 and errno */
bool errand__loop_is_own(const errand__loop *loop);
/* The pipe's signal (SIGPIPE) is kept from the calling thread between the two. */
typedef struct errand__pipe_guard {
    bool active, pending;
    unsigned char mask[128]; /* sigset_t */
} errand__pipe_guard;
void errand__pipe_guard_enter(errand__pipe_guard *guard);
void errand__pipe_guard_leave(errand__pipe_guard *guard);
#endif
