/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_MODEL_PLAY_H
#define ERRAND_TESTS_MODEL_PLAY_H
/* play: one run of a program: what it holds of the library, what it counted, and the model.
 * play.c runs calls and compares; calls.c has one function per verb; parts.c has the bodies,
 * handlers and drops that the library calls. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include "errand/async.h"
#include "errand/choice.h"
#include "errand/executor.h"
#include "errand/order.h"
#include "errand/task.h"
#include "errand/testing.h"
#include "errand/tree.h"
#include "model.h"
#include "program.h"

enum { PLAY_REGISTERS = 8, PLAY_NODES = MODEL_NODES, PLAY_TASKS = 40 };

/* What an operation's parts do; from a call's bytes. */
typedef struct play_plan {
    uint8_t end;    /* see parts.c */
    uint8_t nested; /* calls made inside its body, and inside its handler */
    uint8_t extra;
    uint8_t polls;
    uint8_t burst; /* which part of it panics when it is dropped */
    bool take, leave;
} play_plan;
enum { /* as the upper half of a byte, so that most operations have none */
       PLAY_BURST_STATE = 8,
       PLAY_BURST_DECODER,
       PLAY_BURST_PAYLOAD,
       PLAY_BURST_DEFERRED,
       PLAY_BURST_HOOK
};
enum {
    PLAY_END_OK,
    PLAY_END_TYPED,
    PLAY_END_BLOCK,
    PLAY_END_CODE,
    PLAY_END_DETAILS,
    PLAY_END_FORGED,
    PLAY_END_PANIC,
    PLAY_END_WORK
};
enum {
    PLAY_EXTRA_NONE,
    PLAY_EXTRA_CANCEL,
    PLAY_EXTRA_FOLLOW,
    PLAY_EXTRA_DEFER,
    PLAY_EXTRA_WAKE,
    PLAY_EXTRA_START,
    PLAY_EXTRA_START_PANIC,
    PLAY_EXTRA_POST
};

typedef struct play_op {
    struct play *play;
    int index, name, runtime, parent; /* parent: it follows that one; else -1 */
    errand_spec spec;
    play_plan plan;
    errand_waker *waker;
    void *slot;                           /* what its trace shows to a collector */
    bool owned, continued, left, awaited; /* awaited: by a task */
    bool outlives;                        /* its body runs, and its runtime has ended */
    bool body_over;
    int bodies, deferred;
    int state_drops, decoder_ends, decodes, hook_drops, hook_cancels, reaps,
        continuation_ends;
    int payloads, payload_drops, values, value_ends, completions;
} play_op;
typedef struct play_name {
    struct play *play;
    errand_identity identity;
    int op; /* < 0: none yet */
} play_name;
typedef struct play_token { /* one register of each sort; op < 0: zeroed */
    int op;
    union {
        errand_prepared prepared;
        errand_binding binding;
        errand_wait wait;
        errand_submission submission;
    } is;
} play_token;
enum { PLAY_PREPARED, PLAY_BINDING, PLAY_WAIT, PLAY_SUBMISSION, PLAY_SORTS };
typedef struct play_task {
    struct play *play;
    int index, runtime, visits, ended, drops, deferred, shields;
    errand_task *handle; /* of its first visit on */
    int32_t why;         /* the code that it failed with, if it said one */
    bool answered_failed;
    errand_handle held, watch;
    errand_select select;
    errand_signal signal;
    errand_handle members[4]; /* of its select */
    bool selecting;           /* it waits for it */
    errand_task_id id;
    uint8_t plan[3];
} play_task;
typedef struct play_node {
    errand_command command;
    struct play *play;
    int index, runtime;
} play_node;

typedef struct play_hand { /* the second thread; see hand.c */
    pthread_t thread;
    sem_t begun, arrived, opened; /* begun, opened: for it; arrived: for the first */
    bool started, busy, slept;    /* slept: the first is asleep, or about to be */
    int first;                    /* that thread's number */
    int act, executor, runtime, stop, op; /* op < 0: it is in no body */
    play_node *node;
    errand_status status;
    size_t count, entered;
} play_hand;
enum { PLAY_STOP_NOWHERE, PLAY_STOP_BODY, PLAY_STOP_CLAIM };

typedef struct play {
    model model;
    bool judged, trace, posts, real_clock, in_body, closing, busy[MODEL_RUNTIMES];
    bool interrupted[MODEL_RUNTIMES]; /* and perhaps not told yet */
    bool opens;                       /* the next park lets the hand go on */
    int naps, arming;                 /* arming: the runtime whose descriptor may be */
    unsigned trap;
    uint64_t bursts, told_bursts; /* told: by reports of runtimes that have ended */
    play_hand hand;
    int stepping; /* executor */
    const char *verb;
    int depth;   /* of callbacks */
    int leaving; /* op whose handler leaves by longjmp, + 1 */
    jmp_buf home;
    bool
        at_home; /* home is where drain or drive was called, and no other frame is between */
    const uint8_t *bytes;
    size_t size, at;
    errand_executor *executor[2];
    errand_runtime *runtime[MODEL_RUNTIMES];
    errand_runtime_config config;
    errand_inbox *inbox[MODEL_RUNTIMES];
    uint64_t runtime_id[MODEL_RUNTIMES], operations[MODEL_RUNTIMES];
    errand_lease *lease[MODEL_LEASES];
    uint32_t owed_max;
    play_token token[PLAY_SORTS][PLAY_REGISTERS];
    int names, ops, tasks;
    play_task task[PLAY_TASKS];
    errand_context place[MODEL_RUNTIMES][2];
    errand_select select[MODEL_RUNTIMES];
    errand_signal signal[MODEL_RUNTIMES];
    errand_choices choices;
    play_name name[MODEL_OPS];
    play_op op[MODEL_OPS];
    play_node node[MODEL_RUNTIMES][PLAY_NODES];
    int forged;       /* payloads of forged completions that live */
    uint64_t entered; /* bodies and polls */
    program_result *result;
} play;

/* play.c */
void play_fail(play *p, const char *format, ...) ERRAND_PRINTF(2, 3);
bool play_failed(const play *p);
/* Has the model agreed?  Fold and print what was answered. */
void play_said(play *p, const char *call, errand_status status, uint64_t more);
void play_event(play *p, const char *event, int op, uint64_t more);
void play_nested(play *p, int calls); /* the next calls, inside a callback */
void play_open_runtime(play *p, int runtime);
void play_attach(play *p, int lease);
void play_close_lease(play *p, int lease);
void play_close_runtime(play *p, int runtime, errand_shutdown_mode mode);
#define PLAY_MODEL(p, call)                                                              \
    do {                                                                                 \
        if ((p)->judged)                                                                 \
            call, play_sync(p);                                                          \
    } while (0)

void play_sync(play *p); /* names that the model gave to followers */
/* A drive shows the model what it did before this. */
void play_meanwhile(play *p, int runtime);

void play_check_ended(play *p, play_op *op); /* all of it was dropped */

/* hand.c */
bool play_is_hand(void);
void play_stop_in_body(play_op *op); /* if this is the hand */
void play_hold(play *p, unsigned a, unsigned b, unsigned c);
void play_let(play *p);
void play_end_hand(play *p);
void play_park(play *p, unsigned a, unsigned b, unsigned c);
void play_set_trap(play *p, unsigned a, unsigned b, unsigned c);
void play_paused(void *arg, const char *place);

/* slips.c */
void play_watch_misuse(void);
void play_slip(play *p, unsigned a, unsigned b, unsigned c);
void play_slip_inside(play_op *op, errand_job *job);

/* calls.c */
void play_call(play *p, const uint8_t *call);
bool play_has_room(const play *p, int ops); /* for so many more */

/* turns.c */
void play_step(play *p, unsigned a, unsigned b, unsigned c);
void play_drain(play *p, unsigned a, unsigned b, unsigned c);
void play_drive(play *p, unsigned a, unsigned b, unsigned c);
void play_clock(play *p, unsigned a, unsigned b, unsigned c);
void play_wake(play *p, unsigned a, unsigned b, unsigned c);
void play_detach(play *p, unsigned a, unsigned b, unsigned c);
void play_look(play *p, unsigned a, unsigned b, unsigned c);
void play_hand_over(play *p, unsigned a, unsigned b, unsigned c);
void play_end_runtime(play *p, unsigned a, unsigned b, unsigned c);

/* jobs.c: what runs on a worker. */
extern const errand_job_type play_job, play_job_with_start, play_no_job;
extern const errand_payload_type play_typed, play_another;

/* tasks.c */
void play_spawn(play *p, unsigned a, unsigned b, unsigned c);
void play_nudge(play *p, unsigned a, unsigned b, unsigned c);
void play_check_tasks(play *p, int runtime);
void play_close_handles(play *p, int runtime);
void play_step_taken(void *arg, const errand_step *step);

/* tree.c */
void play_tree(play *p, unsigned a, unsigned b, unsigned c);
void play_tree_told(play_task *self, const errand_task_news *news);
/* which: 0 the first of several, 1 a signal or the stop, 2 a watch. */
errand_status play_tree_wait(play_task *self, errand_task *task, unsigned byte,
                             unsigned which);
void play_close_tree(play *p, int runtime);

/* parts.c: what runs on the owner's thread. */
void play_know_name(play_op *op); /* it is seen for the first time, perhaps */
/* The next operation, to be kept by p->ops++ once the library took its parts. */
play_op *play_new_op(play *p, int runtime, uint8_t kind, uint8_t b, uint8_t c);
void play_burst(play_op *op, unsigned part); /* panics if that is the plan */
play_name *play_new_name(play *p, const errand_identity *identity, int op);
errand_continuation play_continuation(play_op *op);
errand_payload play_payload(play *p); /* of a forged completion; counted in forged */
void play_heard(void *arg, errand_completion *completion);
void play_ran_command(errand_runtime *runtime, void *arg);
void play_dropped_command(void *arg);

#endif
