/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_SANDBOX_H
#define ERRAND_WORKERS_SANDBOX_H
/* sandbox: an executor whose workers are processes.
 *
 *   slot      the place of one worker: its files, mapped where they always are, and what the host
 *             knows of it, none of which it reads back from there
 *   job       the side of a record that this executor needs: entry, written request, worker, outcome
 *   place     one lease: its queues, its jobs
 *   hand      who acts: the owner of a lease, the monitor, or the watcher; each has hands and a cell
 *   monitor   the thread that starts, kills and reaps workers; all deadlines
 *   watcher   a thread that looks for answers where no owner does
 *
 * Whoever moves a slot from BUSY to HELD has it in hand, alone, until it moves it on. */
#include <pthread.h>
#include "errand/sandbox.h"
#include "workers/async/async.h"
#include "workers/sandbox/group.h"
#include "workers/sandbox/policy.h"
#include "workers/sandbox/template.h"
#include "workers/sandbox/wire.h"

enum {
    ERRAND__SANDBOX_MOST = 256, /* workers of one pool */
    ERRAND__SANDBOX_WORDS = ERRAND__SANDBOX_MOST / 64,
    ERRAND__SANDBOX_RANKS = 3,    /* high, normal, low */
    ERRAND__SANDBOX_SPARES = 16,  /* sizes of kept request buffers: powers of two */
    ERRAND__SANDBOX_STORM = 1000, /* wakes without news that one job may cause */
    ERRAND__SANDBOX_STRIKES = 2,  /* starts that a library may end before it is skipped */
    ERRAND__SANDBOX_TEXT = 256,
    ERRAND__SANDBOX_WHY = 96
};

/* ---- workers, as the launcher sees them -------------------------------------------------- */
typedef struct errand__worker_end {
    bool known;          /* false: somebody else took its status */
    int code, status;    /* as of a siginfo: CLD_EXITED and the like */
    int32_t wait_status; /* as of wait, or -1 */
    uint64_t user_ns, system_ns, peak_bytes;
} errand__worker_end;
typedef struct errand__worker_files { /* what a start is given; its caller closes them */
    int request_fd, response_fd, lifeline_fd;
    const int *path_fds;
    size_t path_count;
    int input_fd;  /* -1 = none; the pool's */
    int join_fd;   /* of its group; -1 = none */
    bool template; /* it is no worker: response_fd is its socket */
} errand__worker_files;
/* How workers are started and ended.  Monitor. */
typedef struct errand__launcher {
    /* Answers an errno.  *out_fd: the launcher's, readable when it has ended. */
    int (*start)(void *arg, const errand__worker_files *files, int32_t *out_pid,
                 int *out_fd);
    void (*kill)(void *arg, int32_t pid, int fd);
    /* It has ended: takes its status and closes fd. */
    void (*reap)(void *arg, int32_t pid, int fd, errand__worker_end *out_end);
    void (*destroy)(void *arg); /* NULL = nothing to do */
    void *arg;
    const char *program; /* for messages; lives as long as arg; NULL = none */
    bool templates;      /* its program can be started as one */
} errand__launcher;
/* The real one: path is copied.  False: no memory. */
bool errand__launcher_make(const char *path, errand__launcher *out_launcher);
/* Is it a pidfd, and of that process? */
bool errand__pidfd_names(int fd, int32_t pid);
/* Where errand-worker is, if nobody says: beside this code, or where it was to be installed.  False: it
 * is not there; out_where says where it was looked for. */
bool errand__worker_find(char *out, size_t size, char *out_where, size_t where_size);

/* ---- region.c: bytes that all workers of a pool can read ---------------------------------- */
typedef struct errand__region errand__region; /* counted: the pool, and each buffer */
errand_status errand__region_create(uint64_t size, errand__region **out_region,
                                    char *out_text, size_t text_size);
void errand__region_let(errand__region *region); /* NULL: nothing */
int errand__region_fd(const errand__region *region);
uint64_t errand__region_size(const errand__region *region);
errand_status errand__region_buffer(errand__region *region, size_t size,
                                    struct errand_ffi_buffer **out_buffer);
/* Is it a buffer of this region?  Where does it lie there? */
bool errand__region_holds(const errand__region *region,
                          const struct errand_ffi_buffer *buffer, uint64_t *out_offset);

/* ---- slots -------------------------------------------------------------------------------- */
typedef struct errand__sandbox errand__sandbox;
typedef struct errand__sandbox_place errand__sandbox_place;

typedef enum errand__slot_phase {
    ERRAND__SLOT_EMPTY = 0,    /* no worker.  Monitor */
    ERRAND__SLOT_STARTING = 1, /* Monitor */
    ERRAND__SLOT_IDLE = 2,     /* in the pool's list: whoever has the lock */
    ERRAND__SLOT_BUSY = 3,     /* a job is out, nobody looks */
    ERRAND__SLOT_HELD = 4,     /* somebody has it in hand */
    ERRAND__SLOT_DYING = 5     /* to be killed, or dead and not buried.  Monitor */
} errand__slot_phase;
typedef enum errand__slot_intent { /* why the host ends a worker; the first reason counts */
                                   ERRAND__INTENT_NONE = 0,
                                   ERRAND__INTENT_RECYCLE = 1,
                                   ERRAND__INTENT_DEADLINE = 2,
                                   ERRAND__INTENT_CANCEL = 3,
                                   ERRAND__INTENT_PROTOCOL = 4,
                                   ERRAND__INTENT_OUTPUT = 5,
                                   ERRAND__INTENT_CLOSE = 6,
                                   ERRAND__INTENT_START = 7 /* not ready in time */
} errand__slot_intent;

typedef enum errand__lookout { /* of the watcher, while jobs are queued */
                               ERRAND__LOOKOUT_NONE = 0,
                               ERRAND__LOOKOUT_NAPS = 1, /* the owners are quick enough */
                               ERRAND__LOOKOUT_ALL = 2   /* it sleeps on all answers */
} errand__lookout;

typedef struct errand__sandbox_slot {
    /* Immutable after create. */
    errand__sandbox *pool;
    uint32_t index;
    errand__wire_request *request;   /* always at this address, whichever file is there */
    errand__wire_response *response; /* the same */
    /* phase: errand__slot_phase.
     * Writers: whoever has the slot; to HELD: anybody, from BUSY.
     * Readers: anybody.
     * Order: compare-exchange acquire-release to HELD; release stores, acquire loads.
     * Pairs: slot-phase.
     * Why: the next who has it must see what the last one wrote. */
    _Alignas(ERRAND_LINE) atomic_uint phase;
    /* quiet: the upper half of the answer that means that there is none yet.
     * Writers: whoever has it.  Readers: who looks or sleeps.  Order: relaxed.  Pairs: none.
     * Why: only says whether a look pays; what counts is compared by who has it. */
    atomic_uint quiet;
    /* wakes: wakes and looks without news since the job began.
     * Writers: who looks or sleeps.  Readers: whoever has it.  Order: relaxed.  Pairs: none.
     * Why: a count against storms. */
    atomic_uint wakes;
    /* asks: the job waits for an answer that its owner alone can give.
     * foreign: not its owner gave the job to it, who may sleep and know nothing of it.
     * Writers: whoever has it.  Readers: the watcher.  Order: relaxed; phase orders them.
     * Pairs: none.  Why: they only say whether the watcher need look. */
    atomic_uint asks, foreign;
    /* deadline_ns: when the job is ended, UINT64_MAX = never.  kill_ns: when, since somebody asked.
     * Writers: whoever has it (both); kill_ns also under the lock, while the job is this slot's.
     * Readers: monitor.  Order: seq_cst, with plan.  Pairs: sandbox-plan.
     * Why: of a new deadline and a monitor that goes to sleep one sees the other. */
    _Atomic uint64_t deadline_ns, kill_ns;
    /* Whoever has it. */
    size_t mapped_request, mapped_response;
    unsigned char *body, *reply, *response_bytes; /* in the files */
    int32_t pid;
    int fd;                      /* of the launcher's; -1 = no worker */
    uint32_t sequence, previous; /* of the last command; of the one before */
    uint32_t call_sequence;
    uint32_t jobs;        /* taken since its start */
    uint32_t entry_count; /* entries that it knows: those below */
    uint32_t layers, landlock_abi;
    errand__slot_intent intent;
    /* The job in hand. */
    errand__record *record;
    uint32_t generation, job_slot; /* of the record */
    uint64_t began_ns, began_cycles;
    errand_job job;
    size_t asked; /* bytes of the request area that are not 0 */
    size_t dirty; /* of the response area */
    errand__gathered gathered;
    bool borrowed; /* the last command named bytes of the region */
    bool settled;  /* its job is over; the slot is still to be released */
    /* Guarded by the pool's lock; also read by whoever has it. */
    errand__link idle;
    errand_lease *lease;             /* a reference while a job is assigned; else NULL */
    errand__slot_intent kill_intent; /* with kill_ns */
    /* Monitor's. */
    uint64_t started_ns;
    uint32_t
        ticket; /* the template was asked for its worker, and has not answered; 0 = no */
    int lifeline; /* the writing end: the worker ends with it; -1 = none */
    errand__group group;
    bool died, killed;
    /* Watcher's: the upper half of an answer that its owner had not taken at the last nap. */
    unsigned noticed;
} errand__sandbox_slot;

/* ---- jobs and places ----------------------------------------------------------------------- */
typedef struct errand__sandbox_job { /* beside a record */
    /* Owner's: of the operation that is admitted next; the old one may still stand in a queue. */
    uint32_t ready_entry;
    size_t ready_size;
    uint64_t ready_input_offset, ready_input_size;
    /* Guarded by the pool's lock until it is claimed; constant from then on. */
    uint32_t entry;
    size_t size; /* of its request */
    uint64_t input_offset,
        input_size;       /* what it borrows of the region; size 0 = nothing */
    uint64_t deadline_ns; /* its own, on the system's clock; 0 = none */
    errand__link link;    /* in its queue */
    uint32_t generation;
    uint32_t slot;        /* of the slot it is assigned to, + 1; 0 = none */
    uint8_t rank;         /* of its queue */
    unsigned char *bytes; /* its request, written down when it was queued */
    size_t room;
    /* Whoever ends it, before the put; then the owner's. */
    uint64_t operation; /* whose outcome this is; 0 = nobody's */
    errand_sandbox_outcome outcome;
} errand__sandbox_job;

typedef struct errand__sandbox_hand {
    errand__hands *hands;
    const errand__sandbox_place
        *only; /* the owner's: no other lease's jobs; NULL = any */
    uint32_t cell;
} errand__sandbox_hand;

struct errand__sandbox_place { /* lease->impl */
    /* Immutable. */
    errand__sandbox *pool;
    errand_lease *lease;
    errand__sandbox_job *jobs; /* by slot of the record */
    size_t mapped;
    errand__ages ages;
    errand__sandbox_place *next_known; /* guarded by outcome.c's lock */
    /* Owner's. */
    errand__hands hands;
    errand__sandbox_hand hand;
    bool collecting;
    /* busy: bit n: slot n has a job of this lease.
     * Writers: who assigns and releases.  Readers: owner.  Order: release, acquire.
     * Pairs: place-busy.  Why: says where to look; the slot's phase orders the rest. */
    _Atomic uint64_t busy[ERRAND__SANDBOX_WORDS];
    /* watched: its owner does not sleep on answers: the watcher looks for them.
     * Writers: owner.  Readers: watcher.  Order: seq_cst, with bell.  Pairs: sandbox-bell.
     * Why: as a bell's. */
    atomic_uint watched;
    /* Guarded by the pool's lock. */
    errand__link attached;
    errand__link turn; /* in the pool's turns while something is queued */
    errand__link queues[ERRAND__SANDBOX_RANKS];
    uint32_t queued, stale, streak;
    bool gone;
    struct errand__spare { /* in request buffers that nobody uses */
        struct errand__spare *next;
        size_t room;
    } * spares[ERRAND__SANDBOX_SPARES];
};

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
enum { ERRAND__CELL_OWNER = 0, ERRAND__CELL_MONITOR = 1, ERRAND__CELL_WATCHER = 2 };

static inline errand__sandbox *
errand__sandbox_of(errand_executor *executor)
{
    return ERRAND__CONTAINER(executor, errand__sandbox, base);
}
static inline errand__cell *
errand__hand_cell(const errand__sandbox_hand *hand, const errand_lease *lease)
{
    return &lease->cells[hand->cell];
}
static inline unsigned
errand__slot_phase_of(const errand__sandbox_slot *slot)
{
    return atomic_load_explicit(&slot->phase,
                                memory_order_acquire); /* Pairs: slot-phase */
}
static inline void
errand__slot_move(errand__sandbox_slot *slot, errand__slot_phase phase)
{
    atomic_store_explicit(&slot->phase, phase,
                          memory_order_release); /* Pairs: slot-phase */
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
/* BUSY to HELD: true, and the caller has it.  put_back: HELD to BUSY. */
bool errand__slot_take(errand__sandbox_slot *slot);
void errand__slot_put_back(errand__sandbox_slot *slot, const errand__sandbox_hand *hand);

/* pool.c: errand_sandbox_create with the launcher given; consumes it in any case. */
errand_status errand__sandbox_make(const errand_sandbox_config *config,
                                   errand__launcher *launcher,
                                   errand_executor **out_executor, char *out_text,
                                   size_t size);

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

/* slot.c */
/* A file of that size, mapped at the address; an errno.  Sealed: SHRINK, GROW, SEAL and those. */
int errand__sandbox_map_file(const char *name, void *address, size_t size, int seals,
                             int *out_fd);
/* What stands at the start of each request file, but for sizes and places. */
void errand__sandbox_sign(errand__wire_request *request);
/* New files for the worker to come, and its set-up.  An errno; *out_files are open then. */
int errand__slot_prepare(errand__sandbox_slot *slot, errand__worker_files *out_files);
/* Ends the worker without the right to signal it: see program/confine.c. */
void errand__slot_cut(errand__sandbox_slot *slot);
/* Lets go of a lifeline, and writes there first. */
void errand__lifeline_cut(int *lifeline);
/* Nothing is there any more but zeroed memory. */
void errand__slot_clear(errand__sandbox_slot *slot);
/* Has the idle worker left its last answer alone? */
bool errand__slot_is_quiet(const errand__sandbox_slot *slot);
/* The assigned job is written into the worker's file (bytes: its request, or NULL: the job writes
 * it) and the worker is rung.  HELD to BUSY. */
void errand__slot_ask(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                      const unsigned char *bytes);
/* Rings for the next command. */
void errand__slot_ring(errand__sandbox_slot *slot, uint32_t command);
/* What one job was answered is gone from the file; what it was asked the next request covers. */
void errand__slot_scrub(errand__sandbox_slot *slot);
/* Its job is settled: the slot goes back (IDLE), or (intent) to the monitor (DYING). */
void errand__slot_release(errand__sandbox_slot *slot, errand__slot_intent intent);

/* queue.c */
/* Hands queued jobs to idle workers, as far as this hand may. */
void errand__sandbox_pump(errand__sandbox *pool, const errand__sandbox_hand *hand);
/* The slot is assigned and in hand: the job is claimed and the worker asked.  False: the operation
 * has ended meanwhile, and the slot is still in hand. */
bool errand__job_begin(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                       const unsigned char *bytes);
bool errand__sandbox_enough_locked(const errand__sandbox *pool);
void errand__sandbox_served_locked(errand__sandbox *pool, uint64_t cycles);
void errand__job_assign_locked(errand__sandbox_slot *slot, errand__sandbox_place *place,
                               errand__sandbox_job *job);
/* An idle worker that knows the entry, out of the list and in the caller's hand; NULL = none.  One
 * that has written into its answer unasked broke the protocol. */
errand__sandbox_slot *errand__idle_take_locked(errand__sandbox *pool, uint32_t entry);
/* The job whose turn it is in this place; stale ones are dropped on the way. */
errand__sandbox_job *errand__job_head_locked(errand__sandbox_place *place,
                                             struct errand__spare **free_later);
void errand__job_enqueue_locked(errand__sandbox_place *place, errand__sandbox_job *job);
/* Out of its queue; its bytes are to be freed after the lock was released. */
void errand__job_drop_locked(errand__sandbox_place *place, errand__sandbox_job *job,
                             struct errand__spare **free_later);
void errand__spares_free(struct errand__spare *spare);
unsigned errand__job_rank(uint8_t priority);
bool errand__job_is_live(const errand__sandbox_place *place,
                         const errand__sandbox_job *job);
/* Memory for a written request, and back. */
size_t errand__bytes_room(unsigned class);
unsigned char *errand__bytes_take(errand__sandbox_place *place, size_t size,
                                  size_t *out_room);
void errand__place_spare(errand__sandbox_place *place, unsigned char *bytes, size_t room);

/* submit.c */
errand_status errand__sandbox_ready(errand_lease *lease, const errand__record *record);
void errand__sandbox_submit(errand_lease *lease, errand__record *record,
                            uint32_t generation);
void errand__sandbox_stale(errand_lease *lease, uint8_t lane, uint8_t priority);
void errand__sandbox_nudge(errand_lease *lease, errand__record *record,
                           uint32_t generation);
bool errand__sandbox_write_off(errand_lease *lease, errand__record *record,
                               uint32_t generation);
/* Ends with this text what is queued and next in its queue for an entry from known on; 0: all that is
 * queued.  Monitor. */
void errand__sandbox_fail_queued(errand__sandbox *pool, uint32_t known, const char *text);
/* Forgets what is queued; it was settled before. */
void errand__place_empty(errand__sandbox_place *place);
void errand__place_fini(errand__sandbox_place *place);

/* collect.c */
/* Looks whether the worker has answered, and does what follows.  True: it moved on. */
bool errand__slot_look(errand__sandbox_slot *slot, const errand__sandbox_hand *hand);
/* The same for one that the caller has in hand.  True: the job is settled, and the slot still
 * the caller's; false: there is no end yet, nothing was moved. */
bool errand__slot_look_once(errand__sandbox_slot *slot, const errand__sandbox_hand *hand);
/* Its owner does not sleep on answers: the watcher looks for them from now on. */
void errand__place_let_watch(errand__sandbox_place *place);
void errand__sandbox_collect(errand_lease *lease);
void errand__sandbox_watch(errand_lease *lease, errand__watch *watch);

/* verdict.c */
/* Settles the job in hand without an answer: by intent, or by how the worker ended (end). */
void errand__slot_fail(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                       errand__slot_intent intent, const errand__worker_end *end);
/* The same with an outcome, code and text of the caller's. */
void errand__slot_settle(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                         errand_outcome outcome, errand_code code, const char *text);
/* Why a worker ended before it was ready. */
errand_status errand__verdict_start(const errand__sandbox_slot *slot,
                                    const errand__worker_end *end, char *out_text,
                                    size_t size);

/* What of the policy a job met that failed with that errno; "" = nothing; size is ERRAND__SANDBOX_WHY. */
void errand__verdict_limit(const errand__sandbox *pool, int error, char *out_text,
                           size_t size);
/* The same in a few words, for those who come after it; size is ERRAND__SANDBOX_WHY. */
void errand__verdict_why(const errand__sandbox_slot *slot, const errand__worker_end *end,
                         char *out_text, size_t size);

/* outcome.c */
/* begin: of the job in hand, with what is known of its worker.  none: no worker had it. */
errand_sandbox_outcome *errand__outcome_begin(const errand__sandbox_slot *slot);
void errand__outcome_none(errand__sandbox_place *place, const errand__record *record,
                          bool retry);
void errand__outcome_enter(errand__sandbox_place *place);
void errand__outcome_leave(errand__sandbox_place *place);

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
/* Starts what is to be started now. */
void errand__sandbox_refill(errand__sandbox *pool, uint64_t now);
/* The slot's worker is known: watches for its end.  False: it is ended, and the start has failed. */
bool errand__sandbox_heed_worker(errand__sandbox_slot *slot, const char *program);
/* bury.c */
void errand__sandbox_monitor_bury(errand__sandbox_slot *slot);
void errand__sandbox_monitor_tend(errand__sandbox_slot *slot, uint64_t now);

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
