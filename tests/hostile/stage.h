/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_STAGE_H
#define ERRAND_TESTS_HOSTILE_STAGE_H
/* stage: everything that a public call can be given, once and valid, and a table of all calls.
 *
 * A probe makes one call in a place where it is misuse and looks at the status, at what the misuse
 * hook was told and at what the call was given; stage_close then sees that every job was dropped as
 * often as it should and that no byte is left (O80). */
#include "errand/async.h"
#include "errand/doctor.h"
#include "errand/executor.h"
#include "errand/operations.h"
#include "errand/order.h"
#include "errand/record.h"
#include "errand/task.h"
#include "errand/testing.h"
#include "errand/tree.h"
#include "group.h"

enum { STAGE_JOBS = 8 };

typedef struct stage_job { /* state of one job */
    struct stage *stage;
    int ran, dropped;
    void (*inside)(struct stage *stage, errand_job *job);
    void (*at_drop)(struct stage *stage);
} stage_job;

typedef struct stage_tokens { /* what a refused call must not change */
    errand_prepared prepared;
    errand_binding binding;
    errand_wait wait;
    errand_submission submission;
    errand_runtime *runtime;
    errand_lease *lease;
} stage_tokens;

typedef struct stage {
    stage_tokens tokens;               /* runtime, lease: the stage's own */
    errand_executor *executor, *spare; /* spare: no lease yet */
    errand_identity issued, queued;    /* unbound; of jobs[3] */
    errand_identity fresh;             /* unbound, of kind 2 */
    errand_spec spec;                  /* of jobs[4]; nobody has it */
    errand_inbox *inbox;
    errand_command command;
    errand_task_id task;    /* waits for ever */
    errand_task_id held_id; /* the same, held once */
    errand_context context; /* below it */
    errand_handle handle;   /* of the task */
    errand_select select;   /* an empty one */
    errand_signal signal;
    errand_job *job;         /* inside a body */
    errand_completion *news; /* inside a handler */
    errand_task *inner;      /* inside the task's function */
    stage_job jobs[STAGE_JOBS];
    /* What the misuse hook was told. */
    int misuses;
    errand_status misuse;
    char text[256];
    int64_t bytes;
    int task_drops, spawned, commands, heard;
    void (*in_handler)(struct stage *stage);
    void (*in_task)(struct stage *stage);
    bool child;
    errand_runtime *made; /* by a call, to be ended */
} stage;

void stage_open(stage *self);
void stage_close(stage *self);
/* Makes of it what it was made for: tokens are submitted, everything runs and comes back.  After
 * that nothing of the tokens is left. */
void stage_use(stage *self);
void stage_forget_misuse(stage *self);
/* Was the hook told of this status, by this function? */
bool stage_told(const stage *self, errand_status status, const char *function);

/* ---- the table of all calls --------------------------------------------------------------------- */

enum {                       /* instead of a status */
       ANSWER_ANY = 1000,    /* whatever it answers, nothing is lost */
       ANSWER_REFUSAL = 1001 /* any but OK */
};

typedef enum call_place {
    PLACE_PLAIN = 1, /* the owner's thread, outside of everything */
    PLACE_JOB = 2,   /* inside a body */
    PLACE_NEWS = 3,  /* inside a handler */
    PLACE_TASK = 4   /* inside a task's function */
} call_place;

typedef struct public_call {
    const char *name;
    /* broken: 0 = as it should be, n = its n-th pointer is NULL.  Answers the status, of a function
     * without one what the misuse hook was told. */
    errand_status (*call)(stage *self, int broken);
    call_place place; /* where it is no misuse */
    int nulls;        /* how many pointers must not be NULL, each EINVAL */
    /* What it answers elsewhere; OK = it may be called there. */
    int thread;   /* on another thread */
    int child;    /* in a forked child */
    int handler;  /* inside a handler */
    int body;     /* inside a body that the owner steps */
    int shutdown; /* inside a drop while the runtime is shut down */
} public_call;

/* Of errand.h's runtime; of everything else outside of jobs; of recording; of jobs, news and
 * tasks; of the tree; of choices. */
extern const public_call runtime_calls[], other_calls[], record_calls[], inside_calls[],
    tree_calls[], choice_calls[];
extern const size_t runtime_call_count, other_call_count, record_call_count,
    inside_call_count, tree_call_count, choice_call_count;

#endif
