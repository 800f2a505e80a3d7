/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SCHEDULER_TASKS_H
#define ERRAND_SCHEDULER_TASKS_H
/* tasks: the part of scheduler.h, which includes it, that tasks and other nodes of the tree need.
 * Owner thread only. */
#include "errand/tree.h"
#include "scheduler/queue.h"

typedef struct errand__scheduler errand__scheduler;

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
    /* First what every wait and visit of a task needs: three cache lines, with the end of `ready`. */
    errand__ready ready; /* linked: it runs at the next pass with why */
    errand__scheduler *scheduler;
    uint64_t key;
    uint64_t number; /* the name; 0 = a free record; records stay mapped */
    uint64_t label_hash;
    /* What it is.  fn NULL once it answered for the last time; on_end, drop, trace NULL once they may
     * not be called. */
    errand_task_fn *fn;
    void *state;
    void *operation; /* the runtime's resume object of an operation's wait, or NULL */
    errand__link
        waiting;      /* in scheduler->waiting while a wait is registered: key order */
    uint8_t phase;    /* errand_task_state; 0 = free */
    uint8_t wait;     /* errand__task_wait */
    uint8_t why;      /* errand_why of the next visit */
    uint8_t end;      /* errand_task_end, once decided */
    uint8_t reason;   /* errand_reason; sticky, the first wins */
    bool told;        /* it was resumed with the reason */
    bool shield_over; /* the shield's limit passed */
    bool timed_out;   /* its operation was cancelled by the wait's limit */
    bool limited;     /* limit may be in the heap of timers */
    bool token;       /* errand_task_wake came before the park */
    bool ending;      /* its end was decided */
    bool finished;    /* ended: only holds keep the record */
    bool spent;       /* a context: it had its task */
    bool consumes;    /* a task: its end is that of the context above it (D55) */
    bool propagates;  /* a root: the first failure below becomes its own (D70) */
    bool doomed;      /* a root: it ends as failed at its next turn */
    bool selects;     /* it waits for a select, or did until its visit */
    bool decided;     /* a select: the winner is chosen */
    bool counts;      /* a signal: the stop waits for it */
    bool told_end;    /* a watch: what it watched has ended */
    uint8_t node;     /* errand__node */
    uint32_t shields; /* depth */
    uint64_t wait_id, generation; /* the wait's key; an operation's is the record's */
    uint64_t submissions, spawns, draws; /* ordinals of what hangs on its key */
    errand__timer limit;                 /* of its wait */
    uint32_t reruns; /* how often a past deadline put it into pass rerun_pass */
    size_t join_count, join_room;
    errand__join *joins, join_own;
    errand_task *group;  /* the select it waits for; of a select, who waits for it */
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
/* The same, but without what stands below task. */
errand_task *errand__task_passing(const errand_task *task, const errand_task *top);

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
/* Its function has answered for the last time: the same, now, or, if it was cancelled, once those
 * below it that were cancelled have ended.  Until then it lingers. */
void errand__task_over(errand_task *task, errand_task_end end);
static inline bool
errand__task_lingers(const errand_task *task)
{
    return task->node == ERRAND__NODE_TASK && task->fn == NULL && !task->finished;
}
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
