/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_SANDBOX_H
#define ERRAND_WORKERS_SANDBOX_H
/* sandbox: an executor whose workers are processes.
 *
 *   slot      the place of one worker (slot.h)
 *   place     one lease: its queues, its jobs; and whose hand acts (place.h)
 *   monitor   the thread that starts, kills and reaps workers; all deadlines
 *   watcher   a thread that looks for answers where no owner does */
#include <pthread.h>
#include "errand/sandbox.h"
#include "workers/sandbox/place.h"
#include "workers/sandbox/policy.h"
#include "workers/sandbox/region.h"
#include "workers/sandbox/template.h"

enum {
    ERRAND__SANDBOX_STRIKES = 2, /* starts that a library may end before it is skipped */
    ERRAND__SANDBOX_TEXT = 256,
    ERRAND__SANDBOX_WHY = 96
};
typedef enum errand__lookout { /* of the watcher, while jobs are queued */
                               ERRAND__LOOKOUT_NONE = 0,
                               ERRAND__LOOKOUT_NAPS = 1, /* the owners are quick enough */
                               ERRAND__LOOKOUT_ALL = 2   /* it sleeps on all answers */
} errand__lookout;

/* ---- the pool ------------------------------------------------------------------------------- */
typedef struct errand__sandbox_entry {
    uint64_t hash;
    void *block; /* its strings; NULL: they are the policy's */
    size_t size;
    uint32_t strikes;              /* starts in a row that its library ended */
    char why[ERRAND__SANDBOX_WHY]; /* how the last of them ended */
} errand__sandbox_entry;

struct errand__sandbox {
    errand_executor base;
    /* Immutable after create. */
    errand__policy policy;
    int path_fds[ERRAND__WIRE_PATHS];
    uint32_t path_count; /* that are open */
    errand__launcher launcher;
    uint32_t workers_min, workers_max, crash_limit, processors;
    uint32_t slot_count; /* workers_max, and one for the reserve where there may be one */
    uint64_t crash_window_ns, breaker_ns;
    size_t body_size, reply_size, response_size; /* of parts of the files */
    size_t request_room, response_room;          /* addresses of one slot */
    errand__region *region;                      /* NULL = none */
    errand__groups groups;
    errand__sandbox_slot *slots;
    char *addresses;
    int poll_fd, kick_fd;
    pthread_t monitor, watcher;
    /* plan: until when the monitor sleeps.
     * Writers: monitor.  Readers: who sets a deadline.
     * Order: seq_cst.  Pairs: sandbox-plan.
     * Why: see deadline_ns. */
    _Atomic uint64_t plan;
    /* keeps: 1 while large blocks that are given back stay for the next job.
     * Writers: whoever has a job with large bytes in hand (0 to 1), the monitor.  Readers: the same.
     * Order: seq_cst, with plan.  Pairs: sandbox-plan.  Why: see deadline_ns. */
    atomic_uint keeps;
    /* large_ns: when there was such a job last.
     * Writers: whoever has it in hand.  Readers: monitor.
     * Order: seq_cst, with keeps.  Pairs: sandbox-plan.  Why: see deadline_ns. */
    _Atomic uint64_t large_ns;
    /* closing: the last reference is gone.  unwatched: the watcher is to end.
     * Writers: destroy; the monitor.  Readers: the two threads.
     * Order: release, acquire.  Pairs: sandbox-closing.  Why: they end what others made. */
    atomic_bool closing, unwatched;
    /* bell: what the watcher sleeps on; news: what create sleeps on.  Stepped for each.
     * Writers: who wakes.  Readers: who sleeps.  Order: seq_cst, acquire.  Pairs: sandbox-bell.
     * Why: who sleeps must see what it was woken for. */
    atomic_uint bell, news;
    /* watching: 0 no watcher yet, 1 it is wanted, 2 it is there, 3 none can be made.
     * Writers: who wants one (0 to 1), the monitor.  Readers: anybody.
     * Order: seq_cst.  Pairs: sandbox-bell.  Why: as bell. */
    atomic_uint watching;
    /* lookout: how the watcher minds the queue: errand__lookout.
     * Writers: watcher.  Readers: who queues or starts a job.  Order: seq_cst, with waiting and
     * phase.  Pairs: sandbox-bell.  Why: of a job that is queued and a watcher that stops looking
     * one sees the other. */
    atomic_uint lookout;
    /* waiting: how many jobs are queued.  Writers: under the lock.  Readers: anybody.
     * Order: seq_cst.  Pairs: sandbox-bell.  Why: as bell. */
    atomic_uint waiting;
    errand__lock lock;
    /* Guarded by lock. */
    errand__link idle;   /* slots, the last used first */
    errand__link turns;  /* places with queued jobs */
    errand__link places; /* attached */
    errand_entry entries[ERRAND__WIRE_ENTRIES];
    errand__sandbox_entry entry_blocks[ERRAND__WIRE_ENTRIES];
    uint32_t entry_count;
    /* As the monitor last counted: no more workers can be started; the entries that one knows. */
    bool full;
    uint32_t full_entries;
    uint32_t busy;    /* jobs that are assigned */
    uint32_t done;    /* jobs that were, ever */
    uint64_t service; /* cycles from asking to release, lately */
    bool stalled;     /* the watcher saw none of them end for a nap */
    errand_sandbox_snapshot counts;
    errand_status start_status; /* of the last start that failed */
    /* Monitor's. */
    errand__hands monitor_hands;
    errand__sandbox_hand monitor_hand;
    bool was_ready; /* a worker has been */
    bool orphan;    /* it gave up the last reference itself: nobody joins it */
    bool tick;      /* something has to be looked at again soon */
    bool wants;     /* workers are to be started, later */
    uint64_t *crashes;
    uint32_t crash_at;
    uint64_t open_until_ns, retry_ns, backoff_ns;
    errand__template template;
    /* Watcher's. */
    errand__hands watcher_hands;
    errand__sandbox_hand watcher_hand;
};
static inline errand__sandbox *
errand__sandbox_of(errand_executor *executor)
{
    return ERRAND__CONTAINER(executor, errand__sandbox, base);
}
/* Do its workers need every processor, so that a spin would be in their way? */
static inline bool
errand__place_crowded(const errand__sandbox_place *place)
{
    uint32_t left = place->pool->processors;

    for (int i = 0; i < ERRAND__SANDBOX_WORDS; i++) {
        uint64_t busy = atomic_load_explicit(&place->busy[i], memory_order_relaxed);

        for (; busy != 0; busy &= busy - 1)
            if (--left == 0)
                return true;
    }
    return false;
}

extern const errand__executor_ops errand__sandbox_ops;
/* create.c: errand_sandbox_create with the launcher given; consumes it in any case. */
errand_status errand__sandbox_make(const errand_sandbox_config *config,
                                   errand__launcher *launcher,
                                   errand_executor **out_executor, char *out_text,
                                   size_t size);

/* figures.c: count: slots by phase, added to out. */
void errand__sandbox_count(const errand__sandbox *pool, errand_sandbox_snapshot *out);
void errand__sandbox_snapshot(errand_executor *executor, const errand_lease *only,
                              errand_executor_snapshot *out_snapshot);

/* entries.c */
/* The number of an entry, which is added if it is new and may be.  Owner. */
errand_status errand__entry_find(errand__sandbox *pool, const errand_entry *entry,
                                 uint32_t *out_index);
/* A worker has ended while it opened that entry's library, as why says.  False: there is no such library.
 * opened: one has become ready with that many.  skip: which of them the next one leaves out.  Monitor. */
bool errand__entry_blame(errand__sandbox *pool, uint32_t index, const char *why);
/* Adds to the text of a job whose library is skipped how workers ended. */
void errand__entry_explain(errand__sandbox *pool, uint32_t index, char *text,
                           size_t size);
void errand__entries_opened(errand__sandbox *pool, uint32_t count);
void errand__entries_skip(errand__sandbox *pool, uint32_t count,
                          errand__wire_entry *out_entries);
void errand__entries_init(errand__sandbox *pool);
void errand__entries_fini(errand__sandbox *pool);

/* monitor.c */
errand_status errand__sandbox_monitor_start(errand__sandbox *pool);
/* The monitor wakes when fd is readable, and hears that number: a slot's, or one of those that stand for
 * something else.  False: see errno. */
bool errand__sandbox_listen(const errand__sandbox *pool, int fd, uint32_t number);
void errand__sandbox_monitor_kick(errand__sandbox *pool);
/* Kicks it if it would sleep beyond moment. */
void errand__sandbox_monitor_heed(errand__sandbox *pool, uint64_t moment);
/* A job has that many bytes: are they many, the memory that such jobs leave is kept until there was none
 * for two seconds.  Any thread. */
void errand__sandbox_monitor_keep(errand__sandbox *pool, size_t size, uint64_t now);
/* The pool ends. */
void errand__sandbox_keep_end(errand__sandbox *pool);
/* Is this one of the pool's own threads?  enter: it is from now on; NULL: not any more. */
bool errand__sandbox_monitor_is_here(const errand__sandbox *pool);
void errand__sandbox_monitor_enter(const errand__sandbox *pool);
void errand__sandbox_monitor_crash(errand__sandbox *pool, uint64_t now);
void errand__sandbox_monitor_start_failed(errand__sandbox *pool, errand_status status,
                                          const char *text, uint64_t now);
void errand__sandbox_monitor_start_blamed(errand__sandbox *pool, const char *text);
void errand__sandbox_monitor_tell(errand__sandbox *pool); /* create waits for it */
/* refill.c */
/* Starts what is to be started now.  step_in: the reserve takes a place before that, if one is free. */
void errand__sandbox_refill(errand__sandbox *pool, uint64_t now);
void errand__sandbox_step_in(errand__sandbox *pool, uint64_t now);
/* The slot's worker is known: watches for its end.  False: it is ended, and the start has failed. */
bool errand__sandbox_heed_worker(errand__sandbox_slot *slot, const char *program);
/* bury.c */
void errand__sandbox_monitor_bury(errand__sandbox_slot *slot);
/* tend: sees what has become of the worker.  end: kills one that is to end, and buries a dead one. */
void errand__sandbox_monitor_tend(errand__sandbox_slot *slot, uint64_t now);
void errand__sandbox_monitor_end(errand__sandbox_slot *slot, uint64_t now);

/* watcher.c */
void errand__watcher_wake(errand__sandbox *pool);
/* A job was queued: wakes it if it minds no queue. */
void errand__watcher_mind(errand__sandbox *pool);
/* All by the monitor.  tend: the monitor looks itself, where no thread could be made. */
void errand__watcher_start(errand__sandbox *pool);
void errand__watcher_stop(errand__sandbox *pool);
void errand__watcher_tend(errand__sandbox *pool);

/* pool.c: the threads' last act. */
void errand__sandbox_free(errand__sandbox *pool);
#endif
