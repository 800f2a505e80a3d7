/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SCHEDULER_H
#define ERRAND_SCHEDULER_H
/* scheduler: order.  Timers, tasks and their tree, the ready list, the draws of the seeded orders,
 * audit and trace.  Owner thread only, all of it.  Knows nothing of leases or executors: what has
 * to be cancelled outside is done by the runtime, through errand__outside.
 *
 * Foreign code (task functions, cleanups, hooks) may leave any of these functions by longjmp: what
 * is to be done stands in lists here, never on the stack, and the next drive goes on with it. */
#include "inbox/inbox.h"
#include "errand/choice.h"
#include "errand/order.h"
#include "errand/task.h"
#include "errand/tree.h"

#define ERRAND__CYCLE_MAX UINT64_C(3600000000000)

typedef struct errand__scheduler errand__scheduler;

/* ---- timers (timers.c): (deadline, registration) order ------------------------------------ */
typedef struct errand__timer {
    errand__heap_entry
        entry; /* major = deadline, minor = registration, last = key (audit) */
    void (*fire)(struct errand__timer *timer,
                 void *context); /* context: the scheduler's */
} errand__timer;
/* Room for count timers at once, so that add cannot fail. */
bool errand__timers_reserve(errand__scheduler *scheduler, size_t count);
/* A deadline of UINT64_MAX counts as no timer: nothing is added. */
void errand__timer_add(errand__scheduler *scheduler, errand__timer *timer,
                       uint64_t deadline, uint64_t key);
void errand__timer_remove(errand__scheduler *scheduler,
                          errand__timer *timer);                  /* harmless twice */
uint64_t errand__timers_next(const errand__scheduler *scheduler); /* UINT64_MAX = none */
/* Fires the first timer with a deadline of at most until that was registered before registration
 * (scheduler->registrations at the start of a turn, so that a turn ends). */
bool errand__timers_fire(errand__scheduler *scheduler, uint64_t until,
                         uint64_t registration);

/* ---- ready items (pass.c): what one visit of a turn runs ------------------------------------- */
typedef struct errand__ready {
    errand__link link;
    void (*visit)(struct errand__ready *ready, void *context);
    errand_task *task; /* whose visit it is, or NULL */
    uint64_t key;      /* what its choices hang on; a task's is the task's */
    uint64_t ordinal;  /* of this visit */
    uint64_t place;    /* chosen: the smallest goes first (shuffle, pct) */
    /* What an item keeps from visit to visit; see errand__ready_item. */
    uint64_t visits;         /* readied so often */
    uint64_t rank;           /* pct: its place + 1; 0 = not chosen yet */
    uint32_t asked, starves; /* starve: by window */
} errand__ready;
/* A task that awaits an operation is visited through another object: both are one item. */
errand__ready *errand__ready_item(errand__ready *ready);
void errand__ready_append(errand__scheduler *scheduler, errand__ready *ready);
/* For this very pass. */
void errand__ready_append_soon(errand__scheduler *scheduler, errand__ready *ready);
/* Under fair policies a pass is a snapshot of the ready list (D3): begin takes all of it, permuted
 * by choice if there are two or more (D4, D5).  Under the others it is a number of picks.  next
 * unlinks and answers what is to be visited; NULL = the pass is over.  pending: it is not. */
void errand__pass_begin(errand__scheduler *scheduler);
errand__ready *errand__pass_next(errand__scheduler *scheduler);
bool errand__pass_pending(const errand__scheduler *scheduler);

/* ---- choices (choice.c) ------------------------------------------------------------------------ */
typedef struct errand__chooser {
    bool plain; /* by the seed alone, and nobody records */
    errand_choices given;
    size_t bytes_used;
} errand__chooser;
/* OK, or what is wrong with them. */
errand_status errand__choices_check(const errand_choices *choices, const char **out_text);
void errand__chooser_init(errand__scheduler *scheduler, const errand_choices *choices);
/* From here on by this seed; what a policy chose and has not come to yet is chosen anew. */
void errand__chooser_branch(errand__scheduler *scheduler, uint64_t seed);
/* By the seed, in the place of an earlier choice: one of least .. n - 1. */
uint64_t errand__choose_again(errand__scheduler *scheduler, errand_site site,
                              uint64_t key, uint64_t ordinal, uint64_t least, uint64_t n);
/* The one seam: one of 0 .. n - 1, n = 0 meaning 2^64.  Nothing else draws. */
uint64_t errand__choose(errand__scheduler *scheduler, errand_site site, uint64_t key,
                        uint64_t ordinal, uint64_t n);
/* The four choices of an operation, as errand__choose would make them one by one. */
typedef struct errand__operation_choices {
    uint64_t latency, begin, tie; /* of 2^32 */
    uint64_t fate;                /* of 2^64 */
} errand__operation_choices;
errand__operation_choices errand__choose_operation(errand__scheduler *scheduler,
                                                   uint64_t key);
/* tape.c: the choice's value, if the tape has it; put what was chosen, or count it as lost. */
bool errand__tape_ask(errand_tape *tape, const errand_choice *asked, uint64_t *out_value);
void errand__tape_record(errand_tape *tape, const errand_choice *choice);
bool errand__tape_has_lost(const errand_tape *tape);
static inline bool
errand__site_known(errand_site site)
{
    return (unsigned)site - 1 < (unsigned)ERRAND_SITES;
}
/* NULL = it is well formed. */
const char *errand__choice_fault(const errand_choice *choice);
/* enumerate.c */
uint64_t errand__enumerator_choose(errand_enumerator *enumerator, errand_site site,
                                   uint64_t n);

/* ---- policies (policy.c) ------------------------------------------------------------------------- */
typedef struct errand__policy {
    errand_policy kind; /* shuffle in arrival order, where it does nothing */
    bool fair;
    uint32_t depth;
    uint64_t steps;
    uint64_t picks; /* by unfair policies */
    size_t left;    /* picks of this instant */
    struct {
        uint64_t first, length; /* picks count from 1; 0 = never */
    } points[ERRAND_DEPTH_MAX];
} errand__policy;
void errand__policy_init(errand__scheduler *scheduler);
void errand__policy_branch(errand__scheduler *scheduler);
/* Unfair: an item was readied; the next one, which stays in the ready list (not empty). */
void errand__policy_readied(errand__scheduler *scheduler, errand__ready *ready);
errand__ready *errand__policy_pick(errand__scheduler *scheduler);

/* ---- audit (audit.c) ----------------------------------------------------------------------------- */
typedef struct errand__audit {
    bool seeded;
    uint64_t mix, steps;
    uint64_t chosen; /* values since the last step, folded */
    uint64_t ready;  /* hash of what was ready when the pass was taken */
    errand_trace_fn *trace;
    void *trace_arg;
    /* A recorder hears of each step: with its bytes and its label's hash. */
    void (*record)(void *arg, const errand_step *step, const unsigned char *bytes,
                   uint64_t label_hash);
    void *record_arg;
    /* A replay compares each step, and says what time it is where the program asks. */
    void (*replay)(void *arg, const errand_step *step);
    bool (*replay_time)(void *arg, uint64_t *out_now);
    void *replay_arg;
    bool inputs; /* arrival order: what is real gets steps, too */
} errand__audit;
static inline bool
errand__audit_listens(const errand__audit *audit)
{
    return audit->seeded || audit->trace != NULL || audit->record != NULL ||
           audit->replay != NULL;
}
/* The common case: nobody hears of a step, the digest takes it in. */
static inline bool
errand__audit_only_folds(const errand__audit *audit)
{
    return audit->seeded && ((uintptr_t)audit->trace | (uintptr_t)audit->record |
                             (uintptr_t)audit->replay) == 0;
}
/* One step: folded into the digest in seeded orders, handed to trace and recorder in all. */
void errand__audit_step(errand__scheduler *scheduler, errand_step_kind kind,
                        uint32_t detail, uint64_t key, uint64_t value, const char *label);
/* The same, with what it hangs on, and the label's hash known already (errand__label_hash).
 * step: all but its number and time are the caller's. */
void errand__audit_event(errand__scheduler *scheduler, const errand_step *step,
                         uint64_t label_hash);

/* The digest, with the choices that no step followed yet. */
uint64_t errand__audit_digest(const errand__audit *audit);

/* ---- draws (order.c) ------------------------------------------------------------------------------ */
typedef struct errand__latency {
    uint32_t kind;
    uint64_t estimate;
} errand__latency;
#define ERRAND__LATENCY_DEFAULT UINT64_C(1000000) /* 1 ms */
#define ERRAND__LATENCY_MAX     (UINT64_C(1) << 62)
errand_status errand__latency_set(errand__scheduler *scheduler, uint32_t kind,
                                  uint64_t estimate);
uint64_t errand__latency_of(const errand__scheduler *scheduler, uint32_t kind);
/* Room for count queued operations at once: asked for where memory may still run out (bind). */
bool errand__order_reserve(errand__scheduler *scheduler, size_t count);
/* draw: key, begin, due, tie and fate of an operation that is submitted now, and its place in the due
 * heap (paced: and in that of begins).  A function of (seed, key, kind's estimate, now) and, in a
 * domain, of the one before it: its due is no earlier, its tie behind it, its begin not before its
 * due (D142).  forget: takes it out again; harmless twice. */
void errand__order_draw(errand__scheduler *scheduler, errand__extra *extra, uint64_t key,
                        uint32_t kind);
void errand__order_forget(errand__scheduler *scheduler, errand__extra *extra);
uint64_t
errand__order_next(const errand__scheduler *scheduler); /* earliest due; UINT64_MAX */

/* ---- tasks ------------------------------------------------------------------------------------------ */
#define ERRAND__LABEL_MAX 64

typedef enum errand__task_wait {
    ERRAND__TASK_WAIT_NONE = 0,
    ERRAND__TASK_WAIT_SLEEP = 1,
    ERRAND__TASK_WAIT_OPERATION = 2,
    ERRAND__TASK_WAIT_JOIN = 3,
    ERRAND__TASK_WAIT_PARK = 4,
    ERRAND__TASK_WAIT_SELECT = 5,
    ERRAND__TASK_WAIT_SIGNAL = 6, /* until somebody stops */
    ERRAND__TASK_WAIT_STOP = 7    /* until its hearers have let go */
} errand__task_wait;

/* What stands at a node of the tree.  All have records of one table, so that a name by value is
 * recognised whatever it names. */
typedef enum errand__node {
    ERRAND__NODE_TASK = 0,
    ERRAND__NODE_CONTEXT = 1, /* no task; spawn uses it up (context.c) */
    ERRAND__NODE_WATCH = 2,   /* joins one task and ends as it does (context.c) */
    ERRAND__NODE_SELECT = 3,  /* joins its members; one task may wait for it (select.c) */
    ERRAND__NODE_SIGNAL = 4   /* held by who hears the stop (stop.c) */
} errand__node;
/* Numbers of nodes that are no tasks have this bit, so that these shift none of a task's. */
#define ERRAND__NODE_BIT (UINT64_C(1) << 63)

typedef struct errand__join { /* one task that another waits for */
    errand__link link;        /* in the target's joiners, until it ended */
    errand_task *joiner;
    errand_task *record; /* the target, until it ended */
    uint64_t target;     /* its number */
    bool ended;
    uint8_t state; /* errand_handle_state once it ended */
} errand__join;

typedef struct
    errand__cause { /* why a task failed; counted, because watches and roots share it */
    uint32_t holders;
    int32_t code;
    uint64_t task;
    char message[sizeof((errand_failure *)0)->message];
} errand__cause;

typedef struct errand__task_defer {
    struct errand__task_defer *next; /* older */
    void (*fn)(void *arg);
    void *arg;
} errand__task_defer;

struct errand_task {
    /* First what every wait and visit of a task needs. */
    errand__ready ready; /* linked: it runs at the next pass with why */
    errand__scheduler *scheduler;
    uint64_t key;
    uint64_t number; /* the name; 0 = a free record; records stay mapped */
    uint64_t label_hash;
    /* What it is.  fn NULL once it ended; on_end, drop, trace NULL once they may not be called. */
    errand_task_fn *fn;
    void *state;
    void *operation; /* the runtime's resume object of an operation's wait, or NULL */
    errand__link
        waiting;         /* in scheduler->waiting while a wait is registered: key order */
    uint8_t phase;       /* errand_task_state; 0 = free */
    uint8_t wait;        /* errand__task_wait */
    uint8_t why;         /* errand_why of the next visit */
    uint8_t end;         /* errand_task_end, once decided */
    uint8_t reason;      /* errand_reason; sticky, the first wins */
    bool told;           /* it was resumed with the reason */
    bool shield_over;    /* the shield's limit passed */
    bool timed_out;      /* its operation was cancelled by the wait's limit */
    bool token;          /* errand_task_wake came before the park */
    bool ending;         /* its end was decided */
    bool finished;       /* ended: only holds keep the record */
    bool spent;          /* a context: it had its task */
    bool consumes;       /* a task: its end is that of the context above it (D55) */
    bool propagates;     /* a root: the first failure below becomes its own (D70) */
    bool doomed;         /* a root: it ends as failed at its next turn */
    bool selects;        /* it waits for a select, or did until its visit */
    bool decided;        /* a select: the winner is chosen */
    bool counts;         /* a signal: the stop waits for it */
    bool told_end;       /* a watch: what it watched has ended */
    uint8_t node;        /* errand__node */
    uint32_t shields;    /* depth */
    uint32_t reruns;     /* how often a past deadline put it into pass rerun_pass */
    errand__timer limit; /* of its wait */
    uint64_t wait_id, generation; /* the wait's key; an operation's is the record's */
    size_t join_count, join_room;
    errand__join *joins, join_own;
    errand_task *group; /* the select it waits for; of a select, who waits for it */
    uint64_t spawns, submissions, draws; /* ordinals of what hangs on its key */
    errand__timer guard; /* the limit of its shield, else the end of its grace */
    errand__link all;    /* in scheduler->all: spawn order */
    errand__link work;   /* in scheduler->ending or ->cancelling */
    uint32_t slot, holds;
    void (*on_end)(errand_runtime *runtime, errand_task_id id, void *state);
    void (*drop)(void *state);
    bool (*trace)(void *state, errand_visitor *visitor);
    /* The tree.  Children in spawn order.  root: the topmost task on the way up, itself if there is
     * none above; NULL of a context that has none. */
    errand_task *parent, *root;
    errand__link children, sibling;
    uint64_t contexts;    /* ordinal of those made below it */
    errand__cause *cause; /* of its failure, or NULL */
    size_t winner;        /* of a select: the member that counts; SIZE_MAX = none */
    errand__link joiners; /* errand__join.link of those who wait for this one */
    /* Cancel. */
    uint64_t grace_end; /* 0 = no grace has begun */
    uint64_t shield_limit;
    uint64_t rerun_pass;
    errand__task_defer *defers;
    char label[ERRAND__LABEL_MAX];
    errand_task *next_free;
};

/* Chunk i holds 64 << i records, so that a slot is found without a search and none ever moves. */
#define ERRAND__TASK_CHUNK_FIRST 6
#define ERRAND__TASK_CHUNKS      25
typedef struct errand__task_table {
    errand_task *chunks[ERRAND__TASK_CHUNKS];
    uint32_t fresh; /* slots 1 .. fresh were used */
    errand_task *free_first;
} errand__task_table;

/* What the scheduler has done outside, by the runtime; context first, always. */
typedef struct errand__outside {
    /* The operation of task->operation is to be cancelled; its wait ends with the reason and the task
     * is readied (cancel), or ends unresumed and task->operation is let go of (forget). */
    void (*cancel)(void *context, errand_task *task, errand_reason reason);
    void (*forget)(void *context, errand_task *task);
    /* Calls foreign code that may panic, contained (O76). */
    void (*contain)(void *context, void (*fn)(void *arg), void *arg);
} errand__outside;

struct errand__scheduler {
    /* Immutable after init. */
    const errand_allocator *allocator;
    errand__registrar *registrar;
    void *context; /* the errand_runtime: given to fire, visit and the outside */
    const errand__outside *outside;
    errand_order order;
    uint64_t seed, grace;
    bool real_clock; /* arrival without a test clock: now follows CLOCK_MONOTONIC */
    /* Time.  now is virtual (inline), moved by hand (test clock) or the last reading. */
    uint64_t now;
    uint64_t cycle; /* D21, D32 */
    errand__heap timers;
    uint64_t registrations;
    /* ready: items that the next pass takes; pass: the snapshot that is being run (D3). */
    errand__link ready, pass;
    uint64_t passes;
    uint64_t visits; /* begun, in any order */
    errand__chooser chooser;
    errand__policy policy;
    /* Tasks. */
    errand__task_table tasks;
    errand__link all;     /* records in use, in spawn order */
    errand__link waiting; /* by wait key */
    errand__link roots;   /* errand_task.sibling */
    errand__link ending;  /* a stack: the first is being ended */
    errand__link cancelling;
    size_t live;                           /* tasks that have not finished */
    uint64_t nodes;                        /* numbers of what is no task */
    uint64_t spawned, undecided, contexts; /* errand_tree */
    bool propagates;                       /* the default of roots */
    /* The stop (stop.c). */
    bool stop_asked;
    int32_t stop_value;
    uint64_t signals; /* those it waits for */
    uint64_t root_spawns, root_contexts;
    uint64_t next_task;
    errand_task *running; /* whose function is being called */
    bool busy_ending, busy_cancelling;
    errand__audit audit;
    /* Seeded orders: operations by (due, tie, key); entries are errand__extra.due_entry. */
    errand__heap due;
    errand__heap begins; /* paced: by (begin, tie, key); errand__extra.begin_entry */
    errand__latency *latencies; /* by kind */
    size_t latency_count, latency_room;
    /* The drive's cursor (runtime/turns/drive.c): which source a turn goes on with, and how many items it
     * may still take there. */
    int turn_source;
    uint32_t turn_left;
    bool turn_begun; /* seeded: this source has begun its part of the instant */
    bool
        turn_over; /* seeded: the instant has ended; time is to move before the next one */
};

/* scheduler.c.  config: order, seed, start_ns, grace_ns and flags count. */
void errand__scheduler_init(errand__scheduler *scheduler,
                            const errand_runtime_config *config,
                            const errand_allocator *allocator,
                            errand__registrar *registrar, const errand__outside *outside,
                            void *context);
/* Frees the memory; all tasks have finished. */
void errand__scheduler_fini(errand__scheduler *scheduler);
uint64_t errand__scheduler_time(errand__scheduler *scheduler);
/* The same, where the program sees what comes of it: an input. */
uint64_t errand__scheduler_read(errand__scheduler *scheduler);
/* a + b, at most UINT64_MAX. */
static inline uint64_t
errand__time_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* tasks.c: records, names, the tree. */
/* parent NULL = a root, whose key hangs on root_key.  ENOMEM · EEXHAUSTED. */
errand_status errand__task_spawn(errand__scheduler *scheduler, errand_task *parent,
                                 uint64_t root_key, const errand_task_spec *spec,
                                 errand_task **out_task);
/* A node that is no task; parent NULL = a root.  NULL = no memory.  Its key hangs on the parent's,
 * its label and how many such nodes were made there. */
errand_task *errand__node_make(errand__scheduler *scheduler, errand__node node,
                               errand_task *parent, uint64_t root_key, const char *label);
/* The record that has this name, ended and held ones too; NULL = none.  The runtime is the caller's
 * business. */
errand_task *errand__task_find(const errand__scheduler *scheduler,
                               const errand_task_id *id);
errand_task_id errand__task_id(const errand_task *task);
/* Gives the record back, if it finished and nobody holds it. */
void errand__task_release(errand_task *task);
/* The next task of the tree below top (top included) in spawn order, children first after their
 * parent; NULL = that was all.  No recursion. */
errand_task *errand__task_following(const errand_task *task, const errand_task *top);

/* task_wait.c: one wait. */
/* May the task register a wait now?  OK, ECANCELLED or EMISUSE (text). */
errand_status errand__task_may_wait(const errand_task *task, const char **out_text);
/* Registers a wait with a key of its own (O6), until errand__task_ready or the limit.  EEXHAUSTED. */
errand_status errand__task_wait_begin(errand_task *task, errand__task_wait wait,
                                      uint64_t limit);
/* The same for an operation, which has a key. */
void errand__task_wait_operation(errand_task *task, void *operation, uint64_t wait_id,
                                 uint64_t generation, uint64_t limit);
/* Takes away the wait's timer and its place in the list of waits; joins and operation stay. */
void errand__task_wait_clear(errand_task *task);
/* Ends the wait, if there is one, and readies the task.  soon: for this very pass, unless the task
 * stayed in it too often already. */
void errand__task_ready(errand_task *task, errand_why why);
void errand__task_ready_soon(errand_task *task, errand_why why);
/* Joins: names that mean nothing any more count as ended.  ENOMEM. */
errand_status errand__task_join_begin(errand_task *task, const errand_task_id *ids,
                                      size_t count);
bool errand__task_joined(const errand_task *task, size_t *out_index);
void errand__task_joins_clear(errand_task *task);
/* The target has ended: what is left of it for the joiner. */
void errand__join_ended(errand__join *join, const errand_task *target);

/* task_visit.c: the function is called. */
void errand__task_visit(errand__ready *ready, void *context);
void errand__task_enter(errand_task *task, const errand_task_news *news);
/* The running task was left by longjmp: it ends as failed, at the next drive. */
void errand__scheduler_unwound(errand__scheduler *scheduler);

/* task_end.c */
/* Decides the end and marks everything below as aborted; calls no foreign code. */
void errand__task_end(errand_task *task, errand_task_end end);
/* Ends all that was decided, but not the running task nor what is above it. */
void errand__endings_run(errand__scheduler *scheduler);
errand_status errand__task_defer_push(errand_task *task, void (*fn)(void *arg),
                                      void *arg);
bool errand__task_defer_pop(
    errand_task *task); /* without calling it; false = there was none */

/* context.c */
/* Has something above it been aborted, or been cancelled outside a shield? */
bool errand__context_dead(const errand_task *context);
/* A watch of a task that has not finished.  NULL = no memory. */
errand_task *errand__watch_make(errand_task *target);
/* What a watch watched has ended. */
void errand__watch_told(errand_task *watch, const errand_task *target);

errand_handle_state errand__handle_state(const errand_task *task);

/* select.c */
/* A select below the running task, if there is one, with room for count members, which are added
 * at once.  NULL = no memory. */
errand_task *errand__select_make(errand__scheduler *scheduler, size_t count);
void errand__select_add(errand_task *group, size_t index, errand_task *member);
bool errand__select_ready(const errand_task *group);
void errand__select_begin(errand_task *task, errand_task *group);
void errand__select_leave(errand_task *task); /* harmless twice */
/* At the visit of the task: who won (SIZE_MAX = the select is empty or was closed).  False: the task
 * has ended meanwhile, by a cleanup of a loser. */
bool errand__select_decide(errand_task *task, size_t *out_index);
bool errand__select_drop(errand_task *group);

/* stop.c */
void errand__stop_ask(errand__scheduler *scheduler, int32_t value);
/* parent NULL = nobody's.  NULL = no memory. */
errand_task *errand__signal_make(errand__scheduler *scheduler, errand_task *parent);
void errand__signal_ended(errand_task *signal);

/* failure.c */
/* False = no memory; the old one is gone then. */
bool errand__cause_write(errand_task *task, int32_t code, const char *format,
                         va_list arguments);
void errand__cause_share(errand_task *task, const errand_task *from);
void errand__cause_forget(errand_task *task);
/* Of a task that failed. */
void errand__cause_read(const errand_task *task, errand_failure *out_failure);
/* It has failed: its root is doomed, if that propagates. */
void errand__failure_rise(errand_task *task);

/* task_cancel.c */
/* Marks the task and all below; what has to be torn down is queued for cancels_run. */
void errand__task_cancel(errand_task *task, errand_reason reason);
void errand__cancels_run(errand__scheduler *scheduler);
/* All tasks: first those that wait, in key order, then the others in spawn order. */
void errand__cancel_all(errand__scheduler *scheduler, errand_reason reason);
errand_reason errand__task_reason(const errand_task *task); /* NONE inside a shield */
void errand__task_shield_enter(errand_task *task, uint64_t limit);
void errand__task_shield_leave(errand_task *task);
#endif
