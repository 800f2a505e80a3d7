/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_LUA_HOST_H
#define ERRAND_LUA_HOST_H
/* host: the Lua host for programs: open the module, run a loaded function, stop it.
 *
 * Scripts see the module `errand` (docs/lua.md).  A program links errand_lua_host and uses
 * this header; `errand.run` in a script goes through the same errand_lua_run.
 * All functions belong to the thread of the lua_State unless they say otherwise. */
#include <stdatomic.h>
#include <lua.h>
#include "errand.h"
#include "errand/choice.h"
#include "errand/order.h"
#include "errand/record.h"
#include "errand/task.h"

/* luaopen_errand: the module, as `require "errand"` wants it: pushes its table.  A program calls
 * luaL_requiref(L, "errand", luaopen_errand, 0). */
ERRAND_API int luaopen_errand(lua_State *L);

/* ---- a stop switch: what a signal handler may touch ----------------------------------------- */
/* Zero-initialise it (static storage will do); give it to a run by options.held_stop.  It may
 * serve many runs, one at a time. */
typedef struct errand_lua_stop {
    /* inbox, users, count.
     * Writers: interrupt (any thread, signal handlers), run (its thread).  Readers: the same.
     * Order:   seq_cst.
     * Pairs:   lua-stop (stop.c).
     * Why: interrupt counts and then looks for an inbox, run shows its inbox and then looks at
     * the count; with anything weaker both could miss the other.  users keeps the inbox alive
     * while a handler on another thread is between its two steps. */
    _Atomic(errand_inbox *) inbox; /* of the run in progress, or NULL */
    atomic_uint users;             /* handlers that may hold inbox */
    atomic_uint count;             /* calls since the last reset */
} errand_lua_stop;
/* errand_lua_interrupt: cancel the root with the reason "host stop", also when a CPU loop is
 * running; kept for the next run if none is in progress.  Returns how often it was called since
 * the last errand_lua_stop_reset, this call included, so that a second signal can end at once.
 * Thread: [signal] [any]. */
int errand_lua_interrupt(errand_lua_stop *stop);
void errand_lua_stop_reset(errand_lua_stop *stop);

/* ---- a run ------------------------------------------------------------------------------------ */

/* One completion as it is drained, in the drained order; every pointer lives during the call.
 * With seeded orders all texts are the same for the same seed (no time, no process id). */
typedef struct errand_lua_event {
    const char
        *name; /* the operation's: "hash_file", "resolve", "command", a job's name */
    const char *subject; /* path, host, command line, a job's first string; "" = none */
    const char *outcome; /* "completed" "failed" "cancelled" "panicked" "crashed" */
    const char *detail;  /* of a failure: its message; else what the verb knows, or "" */
    bool late;           /* its wait had ended before (a timeout, a cancel) */
    uint64_t time_ns;    /* when it ended: on the run's clock, from its start */
    bool
        closing; /* the run had ended, and its shutdown ended it: in real time, in any order */
    const errand_completion *completion;
} errand_lua_event;
/* Called inside a drive; calls nothing of Lua and nothing of this run. */
typedef void errand_lua_event_fn(void *arg, const errand_lua_event *event);

/* A task has failed, and nobody awaited it: text is "task 3 failed and nobody awaited it: " and the error
 * with its traceback, and lives during the call.  Called, once for each, in arrival order when its
 * handle is garbage, and for the rest (eight of them; then how many more) when the run ends with
 * something else than that error.  Calls nothing of Lua and nothing of this run. */
typedef void errand_lua_unheard_fn(void *arg, const char *text);

/* Zero in every field is the documented default. */
typedef struct errand_lua_options {
    uint32_t struct_size;
    errand_order order;
    bool has_seed; /* false: a seed is drawn; see result.seed */
    uint64_t seed;
    uint32_t workers;     /* threads of the run's pool; 0 = max(4, processors) */
    uint64_t deadline_ns; /* on the run's clock, from its start; 0 = none */
    uint64_t grace_ns;    /* between a cancel and the abort; 0 = 1 s */
    uint64_t stop_ns;     /* real time that the closing shutdown may take; 0 = 1 s */
    uint64_t watchdog_ns; /* as in errand_runtime_config */
    bool propagate;       /* the first task that fails ends the run */
    errand_lua_stop *held_stop;         /* NULL = cannot be interrupted */
    errand_lua_event_fn *on_completion; /* NULL = nobody */
    void *held_on_completion_arg;
    errand_lua_unheard_fn *on_unheard; /* NULL = nobody */
    void *held_on_unheard_arg;
    errand_trace_fn *trace; /* every step of the run; see errand/order.h */
    void *held_trace_arg;
    errand_recorder *held_recorder; /* of errand/record.h; NULL = none */
    errand_replay *held_replay;     /* the same: order, seed and choices are its log's */
    /* Inline order: jobs run on the calling thread, and the run has no other; so an
     * endless job is not noticed, but errand_snapshot_fork is possible. */
    bool alone;
    /* Called with the runtime before the root starts; NULL = nobody. */
    void (*on_start)(void *arg, errand_runtime *runtime);
    void *held_on_start_arg;
    int argc; /* more arguments for the function, as strings, after those */
    const char *const *argv;       /* on the stack: argv[0] .. argv[argc - 1] */
    const errand_choices *choices; /* who decides a seeded run; NULL = the seed */
    uint32_t reactor; /* of sockets and the like: ERRAND_REACTOR_... (errand/io.h) */
} errand_lua_options;
#define ERRAND_LUA_OPTIONS_INIT                                                          \
    {                                                                                    \
        .struct_size = sizeof(errand_lua_options)                                        \
    }

typedef enum errand_lua_kind {
    ERRAND_LUA_OK = 0,
    ERRAND_LUA_SCRIPT_ERROR = 1, /* the function, or a task that nobody awaited, raised */
    ERRAND_LUA_STALL = 2,    /* tasks wait for what can never come; message lists them */
    ERRAND_LUA_DEADLINE = 3, /* options.deadline_ns passed */
    ERRAND_LUA_STOPPED = 4,  /* errand_lua_interrupt ended it */
    ERRAND_LUA_REFUSED = 5,  /* it could not start: see status and message */
    ERRAND_LUA_EXTERNAL = 6, /* what virtual time cannot express; message says what */
    ERRAND_LUA_DEPARTED = 7 /* the run left the log that it replays; message says where */
} errand_lua_kind;

typedef struct errand_lua_result {
    errand_lua_kind kind;
    errand_status status; /* with REFUSED: why */
    char *message; /* unless OK: one paragraph, "file:line: text", then a traceback where
                           * there is one; of a task that on_unheard heard of already, only
                           * which it was; freed by errand_lua_result_fini */
    int values;    /* with OK: how many results lie on the stack */
    uint64_t digest;     /* of the audit; 0 in arrival order */
    uint64_t seed;       /* that was used */
    uint64_t elapsed_ns; /* on the run's clock (virtual in seeded orders); not before the
                          * time_ns of any completion that was reported */
    uint64_t picks;      /* errand_runtime_picks */
    uint64_t aborted; /* tasks that were alive when the root ended, and ended with it */
    uint64_t unheard; /* tasks that failed and nobody awaited, besides one in message */
    errand_report report;     /* of the closing shutdown */
    errand_snapshot snapshot; /* when the root had ended, before the shutdown */
} errand_lua_result;

/* errand_lua_run: run the function below the topmost arguments values of L as the root task, until
 * it has ended, and shut the runtime down.  Function and arguments are popped; with OK the
 * function's results are pushed.  Never raises, but for an argument that cannot be called.  Inside
 * a run it answers REFUSED.  options NULL = all defaults.
 * Gives: *out_result, always; give it to errand_lua_result_fini.  Returns its kind. */
errand_lua_kind errand_lua_run(lua_State *L, int arguments,
                               const errand_lua_options *options,
                               errand_lua_result *out_result);
void errand_lua_result_fini(errand_lua_result *result);
/* errand_lua_rested: the process of the run in progress stood still (errand_snapshot_fork): what
 * a visit may take of real time counts from here. */
void errand_lua_rested(lua_State *L);

/* Does the log at path, which this replay has opened, have results of which only digests were
 * recorded, so that the run would leave it at the first?  Reads it only if that may be. */
bool errand_lua_replay_lacks_results(const errand_replay *replay, const char *path);

/* ---- native jobs for errand.job(name, ...) ----------------------------------------------------- */

/* spec arrives with struct_size, kind and held_name set; fill reads the Lua arguments (indices 2
 * and up of L; 1 is the job's name, so luaL_check... count as the script does) and sets resource_class, held_job, state and what else it needs.  It may raise, as
 * long as it owns nothing then: check the arguments first, make the state last.  From its return
 * on the state is the run's, dropped once by held_job->drop.
 * push turns a finished completion (payload untaken) into Lua values and returns their number;
 * it may raise.  NULL = no results.  Any other outcome raises an error table. */
typedef struct errand_lua_job {
    uint32_t struct_size;
    const char *name; /* lives as long as the lua_State */
    void (*fill)(lua_State *L, errand_spec *spec, void *arg);
    int (*push)(lua_State *L, errand_completion *completion, void *arg);
    void *held_arg;
    /* The type of its payloads and how a log keeps them, with both names the same for all jobs of
     * that type; NULL = runs with this job can be recorded, and not replayed. */
    const errand_payload_type *held_type;
    const errand_payload_codec *held_codec;
} errand_lua_job;
/* errand_lua_register_job: scripts of this lua_State may call errand.job(job->name, ...); *job is
 * copied; a second one of a name replaces the first.  Raises a Lua error without memory. */
void errand_lua_register_job(lua_State *L, const errand_lua_job *job);

#endif
