/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_LUA_LUA_HOST_H
#define ERRAND_LUA_LUA_HOST_H
/* lua_host: what the files of this folder share.  One lua_State has at most one run; a run has
 * tasks; a task is a coroutine.  Everything belongs to the thread of the lua_State.
 *
 * Who owns what: the run is a userdata, in the registry while it is in progress.  A task is a
 * userdata, anchored in the run's table while the library may call it, or while its failure was
 * heard by nobody (but see unheard.c); it keeps its coroutine.  The coroutine's stack keeps the results.
 * Errors: no Lua error leaves a callback of the library.  Lua code runs only inside lua_resume,
 * lua_pcall and lua_resetthread, which contain them. */
#include "host.h"
#include <lauxlib.h>
#include <signal.h>
#include "errand/executor.h"
#include "errand/operations.h"
#include "errand/tree.h"

#define ERRAND__LUA_TASK       "errand.task"
#define ERRAND__LUA_ERROR      "errand.error"
#define ERRAND__LUA_RUN        "errand.run"
#define ERRAND__LUA_JOB        "errand.job"
#define ERRAND__LUA_OPERATIONS (1U << 18) /* owed at once; beyond it verbs raise "full" */

/* ---- tasks ------------------------------------------------------------------------------------ */
typedef struct errand__lua_run errand__lua_run;
typedef struct errand__lua_group errand__lua_group;

/* Where a task is.  From DONE on it has ended. */
typedef enum errand__lua_phase {
    ERRAND__LUA_NEW = 0,
    ERRAND__LUA_RUNNING = 1,
    ERRAND__LUA_WAITING = 2,
    ERRAND__LUA_DONE = 3,
    ERRAND__LUA_FAILED = 4,
    ERRAND__LUA_CANCELLED = 5,
    ERRAND__LUA_ABORTED = 6
} errand__lua_phase;

/* One task that a group waits for: linked in that task's list of watchers. */
typedef struct errand__lua_watch {
    struct errand__lua_watch *next, **previous;
    errand__lua_group *group;
} errand__lua_watch;

/* A user value each. */
enum {
    ERRAND__LUA_VALUE_COROUTINE = 1,
    ERRAND__LUA_VALUE_TRACEBACK = 2, /* of a failure: a string */
    ERRAND__LUA_VALUE_RUN = 3,
    ERRAND__LUA_VALUES = 3
};

typedef struct errand__lua_task {
    errand__lua_run *run;
    errand_task_id id;
    lua_State *co;
    errand__lua_phase phase;
    int arguments;                /* NEW: values on co, above the body's runner */
    int results;                  /* DONE: values on top of co; else the error is there */
    bool waits;                   /* a verb registered a wait in this visit */
    bool body_failed;             /* set by the runner: the value on top is an error */
    bool anchored, dropped;       /* in the run's table; the library is done with it */
    const errand_task_news *news; /* during a visit */
    errand_reason reason;         /* of its cancel, as far as known */
    char reason_text[80];         /* given to errand.cancel, cut; or "" */
    const char *operation;        /* the verb it waits in */
    bool *io_asks;     /* becomes true when its next operation is out; NULL = none */
    uint64_t heard_ns; /* when a cancel was first raised in it; 0 = never; real ns */
    uint32_t shields;  /* it is inside so many */
    uint64_t
        shield_until; /* the outermost's end, as the watch sees it; 0 = none; real ns */
    errand__lua_watch *watchers;
    errand__lua_group *group; /* that it waits for, if any */
    /* Failed, and nobody awaited it: in the run's list, in the order of ends. */
    struct errand__lua_task *unheard_next;
    bool unheard, told; /* told: on_unheard has it */
    bool traced;        /* its traceback, or nil, lies below the error on co */
} errand__lua_task;

/* ---- the run ------------------------------------------------------------------------------------ */
struct errand__lua_run {
    errand_runtime *runtime; /* NULL once it was shut down */
    errand_executor *executor;
    errand_lease *lease;
    errand_inbox *inbox;
    lua_State *main;           /* the state's main thread */
    lua_State *L;              /* where the run was called; callbacks use its stack */
    errand__lua_task *current; /* whose visit it is, or NULL */
    errand_task *visit;        /* the library's view of it */
    errand__lua_task *root;
    errand__lua_task *unheard, **unheard_end;
    bool looks;              /* a handle of one of them may be garbage */
    uint64_t look_time;      /* of the last look; real ns */
    int64_t look_budget;     /* ns that collections may take */
    errand__lua_task *first; /* that failed, if failures propagate; it stays unheard */
    errand_lua_options options;
    uint64_t seed, start_ns;      /* start on the run's clock */
    bool closing;                 /* the shutdown is in progress */
    uint64_t last_ns;             /* of the completions that were reported; run's clock */
    uint64_t tasks_live, aborted; /* aborted: by the root's end */
    /* The stock interpreter's Ctrl-C; see drive.c. */
    bool interpreter_looks, interpreter_stopped;
    bool root_over; /* its function has ended; what it leaves is aborted before it has */
    bool quiet;     /* the state is being closed: no Lua code any more */
    /* The watch on endless loops; real ns. */
    uint64_t watch_start, watch_visit, watch_over;
    uint64_t watch_text; /* when the __tostring that is called has to have ended */
    errand_reason watch_reason;
    bool deadline_passed;
    errand_executor *reactor; /* io.c: NULL until a verb needs it */
    errand_lease *io_lease;
    bool takes_signals; /* of the process, those that errand.signal blocked */
    sigset_t signals;
};

/* ---- run.c ---------------------------------------------------------------------------------------- */
/* The run in progress of this state, or NULL.  The second raises, naming operation and mend. */
errand__lua_run *errand__lua_run_find(lua_State *L);
errand__lua_run *errand__lua_run_need(lua_State *L, const char *operation);
/* errand_lua_run, but on an error the error value is pushed too. */
errand_lua_kind errand__lua_run_value(lua_State *L, int arguments,
                                      const errand_lua_options *options,
                                      errand_lua_result *out_result);
/* begin.c: makes runtime, executor and lease; what was made before an error goes with the close. */
errand_status errand__lua_run_begin(errand__lua_run *run);
/* Shuts the runtime down and gives everything back; NULL-safe fields, may be called twice. */
void errand__lua_run_close(errand__lua_run *run, errand_shutdown_mode mode,
                           errand_report *out_report);
void errand__lua_run_open(lua_State *L); /* its metatable */
int errand__lua_verb_run(lua_State *L);  /* options.c: errand.run */
uint64_t errand__lua_run_seed(void);     /* drawn from the system; not 0 */

/* ---- recording.c: the log of errand.run ------------------------------------------------------------- */
typedef struct errand__lua_recording {
    const char *record, *replayed; /* paths, or NULL */
    bool payloads;
    errand_recorder *recorder;
    errand_replay *replay;
    char text[512]; /* what went wrong */
} errand__lua_recording;
/* Of the function at the top of the stack, into the options.  False: text says why. */
bool errand__lua_recording_init(errand__lua_recording *recording, lua_State *L,
                                errand_lua_options *options);
/* After the run.  False: the log is not whole; text says why. */
bool errand__lua_recording_fini(errand__lua_recording *recording);

/* ---- drive.c ----------------------------------------------------------------------------------------- */
/* Drives until the root has ended.  With STALL, EXTERNAL or DEPARTED its text is pushed. */
errand_lua_kind errand__lua_drive(lua_State *L, errand__lua_run *run);
/* Did the stock interpreter hear a Ctrl-C?  look: then the roots are cancelled, once. */
void errand__lua_interpreter_find(lua_State *L, errand__lua_run *run);
bool errand__lua_interpreter_asked(const errand__lua_run *run);
void errand__lua_interpreter_look(errand__lua_run *run);

/* ---- report.c: texts of a run's end ------------------------------------------------------------------ */
/* Both push a string; they may raise, for want of memory. */
void errand__lua_report_failure(lua_State *L, errand__lua_task *task, bool nobody);
void errand__lua_report_stall(lua_State *L, errand__lua_run *run);
/* Pushes what ended the run that virtual time cannot express. */
void errand__lua_report_external(lua_State *L, errand__lua_run *run);
/* Remembers what an operation is about: the string at the top of the stack.  Never raises. */
void errand__lua_report_subject(lua_State *L, errand__lua_run *run,
                                const errand_identity *identity);
/* The runtime's on_completion: arg is the run. */
void errand__lua_report_completion(void *arg, struct errand_completion *completion);

/* ---- task.c ---------------------------------------------------------------------------------------- */
/* Pushes a task that runs the function below `arguments` values, which are popped.  parent NULL =
 * the root.  Raises. */
errand__lua_task *errand__lua_task_spawn(lua_State *L, errand__lua_run *run,
                                         const errand_task_id *parent, int arguments,
                                         const char *operation);
/* The same, in a context, which is used up; below one that was aborted it is aborted at once. */
errand__lua_task *errand__lua_task_spawn_in(lua_State *L, errand__lua_run *run,
                                            errand_context *take_context, int arguments,
                                            const char *operation);
errand__lua_task *errand__lua_task_check(lua_State *L, int index);
/* Pushes the userdata of a task that is anchored in a run in progress, else nil. */
void errand__lua_task_push(lua_State *L, errand__lua_task *task);
/* Takes it out of the run's table, if nobody needs it there; allocates nothing. */
void errand__lua_task_unanchor(lua_State *L, errand__lua_task *task);
static inline bool
errand__lua_task_ended(const errand__lua_task *task)
{
    return task->phase >= ERRAND__LUA_DONE;
}
const char *errand__lua_task_phase_name(errand__lua_phase phase);
void errand__lua_task_open(lua_State *L);

/* ---- unheard.c: failures that nobody took note of ------------------------------------------------------ */
void errand__lua_unheard_add(errand__lua_task *task);
/* The library is done with one of them: from now on it may be told.  Raises nothing. */
void errand__lua_unheard_dropped(lua_State *L, errand__lua_task *task);
/* Somebody saw its failure. */
void errand__lua_task_heard(lua_State *L, errand__lua_task *task);
/* Between visits: collects garbage, if a handle may be among it.  Raises nothing. */
void errand__lua_unheard_look(errand__lua_run *run);
/* The run has ended, with this task's error or NULL: tells the others; returns how many they are. */
uint64_t errand__lua_unheard_tell(lua_State *L, errand__lua_run *run,
                                  const errand__lua_task *raised);
int errand__lua_unheard_collect(lua_State *L); /* a task's __gc */

/* ---- wait.c: how a verb waits ------------------------------------------------------------------------ */
/* The running task, if a verb may wait here; raises else, naming the mend. */
errand__lua_task *errand__lua_wait_task(lua_State *L, const char *operation);
/* The same, or NULL where it would raise. */
errand__lua_task *errand__lua_wait_able(lua_State *L);
/* After the library registered a wait (status OK): yields, and k goes on with task->news.  Any
 * other status raises.  Use as `return errand__lua_wait_for(...)`. */
int errand__lua_wait_for(lua_State *L, errand__lua_task *task, errand_status status,
                         const char *operation, lua_KFunction k, lua_KContext context);
/* In a continuation: the news; raises if it is a cancel. */
const errand_task_news *errand__lua_wait_news(lua_State *L, const char *operation);
/* The running task, in a continuation. */
errand__lua_task *errand__lua_wait_running(lua_State *L);
/* Argument index is a function, or has __call; raises else. */
void errand__lua_wait_callable(lua_State *L, int index);
/* Seconds of argument index to ns; raises for a negative one, a huge one or no number. */
uint64_t errand__lua_wait_seconds(lua_State *L, int index);
/* The same as a moment on the run's clock; UINT64_MAX for a huge number.  Absent: in missing_ns. */
uint64_t errand__lua_wait_limit(lua_State *L, int index, const errand__lua_run *run,
                                uint64_t missing_ns);
int errand__lua_verb_sleep(lua_State *L);
int errand__lua_verb_yield(lua_State *L);
int errand__lua_verb_shield(lua_State *L);

/* ---- join.c, group.c: tasks that wait for tasks -------------------------------------------------------- */
/* Pushes the results of an ended task, or raises its error. */
int errand__lua_join_results(lua_State *L, errand__lua_task *task, const char *operation);
/* Raises if the running task was cancelled: also where there is nothing left to wait for. */
void errand__lua_join_alive(lua_State *L, errand__lua_task *waiter,
                            const char *operation);
int errand__lua_verb_await(lua_State *L);
int errand__lua_verb_timeout(lua_State *L);
int errand__lua_verb_gather(lua_State *L);
int errand__lua_verb_race(lua_State *L);
/* A task has ended: tells the groups that watch it, and leaves its own. */
void errand__lua_group_ended(errand__lua_task *task);

/* ---- work.c: operations --------------------------------------------------------------------------------- */
/* A verb that awaits one operation: a closure over a light userdata, the errand_lua_job. */
int errand__lua_work_verb(lua_State *L);
/* Types and codecs of the registered jobs. */
errand_status errand__lua_work_codecs(lua_State *L, errand_runtime *runtime);
int errand__lua_verb_job(lua_State *L);
/* What a table of options says of an operation; raises for a domain that is none. */
typedef struct errand__lua_work_option {
    uint64_t domain;
    bool effect_free;
} errand__lua_work_option;
void errand__lua_work_options(lua_State *L, int index, const char *operation,
                              errand__lua_work_option *out_options);
/* After errand_spec_*: raises unless OK. */
void errand__lua_work_filled(lua_State *L, errand_status status, const char *operation);
/* Argument index as a string without a zero byte in it; raises.  The second refuses an empty one
 * with code inval: "the path is empty: ...". */
const char *errand__lua_work_text(lua_State *L, int index);
const char *errand__lua_work_name(lua_State *L, int index, const char *operation,
                                  const char *what, const char *mend);

/* ---- files.c, command.c: the verbs among them; the jobs up to one without a name -------------------------- */
extern const errand_lua_job errand__lua_files_jobs[];
int errand__lua_push_stat(lua_State *L, const errand_file_stat *file);
void errand__lua_command_open(lua_State *L); /* adds it to the table on top */

/* ---- tree.c: contexts, select, the stop ----------------------------------------------------------------- */
extern const luaL_Reg errand__lua_tree_verbs[];
void errand__lua_tree_open(lua_State *L);
/* Options in place of the function that is to be spawned: raises, and says why there are none. */
void errand__lua_tree_options(lua_State *L, int index, const char *operation);

/* ---- handle.c, information.c: verbs that answer at once --------------------------------------------------- */
extern const luaL_Reg errand__lua_handle_verbs[];
extern const luaL_Reg errand__lua_information_verbs[];
int errand__lua_verb_random(lua_State *L);

/* ---- served.c: Lua's own functions in seeded runs --------------------------------------------------------- */
void errand__lua_served_open(lua_State *L);

/* ---- choices.c ---------------------------------------------------------------------------------------------- */
extern const luaL_Reg errand__lua_choice_verbs[];
/* What errand.run's options say about choices: words and paths, each may be NULL. */
typedef struct errand__lua_choices {
    errand_choices all;
    const char *save;
    char text[600]; /* what went wrong */
} errand__lua_choices;
bool errand__lua_choices_init(errand__lua_choices *choices, const char *policy,
                              const char *tape, const char *save, uint64_t seed);
/* Writes the tape that was asked for; gives everything back in any case. */
bool errand__lua_choices_fini(errand__lua_choices *choices);

/* ---- ffi.c: foreign calls; pushes the table errand.ffi ------------------------------------------------------ */
void errand__lua_ffi_open(lua_State *L);

/* ---- error.c ------------------------------------------------------------------------------------------------ */
/* Pushes an error table {code, message, operation} with the caller's position. */
void errand__lua_error_push(lua_State *L, const char *code, const char *operation,
                            const char *format, ...) ERRAND_PRINTF(4, 5);
ERRAND_NORETURN void errand__lua_error_raise(lua_State *L, const char *code,
                                             const char *operation, const char *format,
                                             ...) ERRAND_PRINTF(4, 5);
/* The same for a refusal, a cancel with its reason, and a completion that is no success. */
ERRAND_NORETURN void errand__lua_error_status(lua_State *L, errand_status status,
                                              const char *operation);
ERRAND_NORETURN void errand__lua_error_cancelled(lua_State *L, errand__lua_task *task,
                                                 errand_reason reason,
                                                 const char *operation);
ERRAND_NORETURN void errand__lua_error_completion(lua_State *L,
                                                  const errand_completion *completion,
                                                  const char *operation);
void errand__lua_error_open(lua_State *L);

/* ---- watch.c: endless loops --------------------------------------------------------------------------------- */
/* Hooks a coroutine, if the run has a deadline or can be stopped. */
void errand__lua_watch_set(errand__lua_run *run, lua_State *co);
/* A visit begins. */
void errand__lua_watch_visit(errand__lua_run *run);
uint64_t errand__lua_watch_now(void); /* CLOCK_MONOTONIC */
/* Replaces the value on top by what its __tostring says.  False: that raised, waited or took too long;
 * the value is popped. */
bool errand__lua_watch_text(lua_State *L, errand__lua_run *run);

/* ---- stop.c --------------------------------------------------------------------------------------------------- */
/* Shows the run's inbox to the switch, and takes it away again; NULL-safe. */
void errand__lua_stop_show(errand_lua_stop *stop, errand_inbox *inbox);
void errand__lua_stop_hide(errand_lua_stop *stop);
bool errand__lua_stop_asked(errand_lua_stop *stop);
#endif
