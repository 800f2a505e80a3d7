/* SPDX-License-Identifier: MIT */
/* run: one run from its runtime to its report.
 *
 * Design notes.  Everything happens in one protected C function, so that an error for want of
 * memory ends in one place, which closes the runtime; while the library drives, no error
 * can pass (lua_host.h).  The registry holds the run in progress under active_key, and under the
 * run's address a table: "run" its userdata, tasks by address, subjects by operation number.
 * When the lua_State is closed in the middle (os.exit(true, true) in a task, or a host that left
 * by longjmp), the run's finaliser says that the drive was left and shuts down in QUIET mode: no
 * Lua code is entered again, and the drive below must not be returned to. */
#include "io.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define GRACE_NS 1000000000U
#define STOP_NS  1000000000U

static const char active_key;

/* ---- the run in progress ------------------------------------------------------------------ */

errand__lua_run *
errand__lua_run_find(lua_State *L)
{
    luaL_checkstack(L, 1, "errand");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &active_key);
    errand__lua_run *run = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return run;
}

errand__lua_run *
errand__lua_run_need(lua_State *L, const char *operation)
{
    errand__lua_run *run = errand__lua_run_find(L);
    if (run == NULL || run->runtime == NULL)
        errand__lua_error_raise(L, "misuse", operation,
                                "no run is in progress: call it inside "
                                "errand.run(function() ... end)");
    return run;
}

static int
run_collect(lua_State *L)
{
    errand__lua_run *run = luaL_checkudata(L, 1, ERRAND__LUA_RUN);
    run->quiet = true;
    errand__lua_run_close(run, ERRAND_SHUTDOWN_QUIET, NULL);
    return 0;
}

void
errand__lua_run_open(lua_State *L)
{
    luaL_newmetatable(L, ERRAND__LUA_RUN);
    lua_pushcfunction(L, run_collect);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

uint64_t
errand__lua_run_seed(void)
{
    uint64_t seed = 0;
    while (seed == 0) {
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed && errno != EINTR)
            seed = errand__lua_watch_now();
    }
    return seed;
}

/* ---- begin ---------------------------------------------------------------------------------- */

/* Pushes the userdata and enters it into the registry. */
static errand__lua_run *
run_make(lua_State *L, const errand_lua_options *options)
{
    errand__lua_run_open(L);
    errand__lua_error_open(L);
    errand__lua_task_open(L);
    errand__lua_run *run = lua_newuserdatauv(L, sizeof *run, 0);
    memset(run, 0, sizeof *run);
    run->L = L;
    run->unheard_end = &run->unheard;
    run->options = *options;
    if (run->options.grace_ns == 0)
        run->options.grace_ns = GRACE_NS;
    if (run->options.stop_ns == 0)
        run->options.stop_ns = STOP_NS;
    run->seed = options->has_seed ? options->seed : errand__lua_run_seed();
    if (options->held_replay != NULL) {
        const errand_log_header *header = errand_replay_header_of(options->held_replay);
        run->options.order = header->order;
        run->seed = header->seed;
    }
    errand__lua_interpreter_find(L, run);
    luaL_setmetatable(L, ERRAND__LUA_RUN);
    lua_newtable(L);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "run");
    lua_rawsetp(L, LUA_REGISTRYINDEX, run);
    lua_pushlightuserdata(L, run);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &active_key);
    return run;
}

/* ---- end ------------------------------------------------------------------------------------- */

void
errand__lua_run_close(errand__lua_run *run, errand_shutdown_mode mode,
                      errand_report *out_report)
{
    if (run->inbox != NULL) {
        errand__lua_stop_hide(run->options.held_stop);
        errand_inbox_abandon(&run->inbox);
    }
    if (run->runtime != NULL) {
        uint64_t deadline = errand_deadline_in(run->options.stop_ns);
        errand_status status =
            errand_runtime_shutdown(&run->runtime, deadline, mode, out_report);
        if (status == ERRAND_EBUSY && errand_runtime_unwound(run->runtime) == ERRAND_OK)
            status = errand_runtime_shutdown(&run->runtime, deadline, mode, out_report);
        run->runtime = NULL;
    }
    run->io_lease = NULL;
    errand__lua_io_fini(run);
    errand_executor_abandon(&run->executor);
}

/* Both keys exist, so this allocates nothing. */
static void
run_forget(lua_State *L, errand__lua_run *run)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &active_key);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, run);
}

/* ---- between ----------------------------------------------------------------------------------- */

typedef struct run_frame {
    const errand_lua_options *options;
    errand_lua_result *result;
    errand__lua_run *run;
} run_frame;

/* Whose error the run raises. */
static errand__lua_task *
failed_task(const errand__lua_run *run)
{
    if (run->first != NULL)
        return run->first;
    return run->root->phase == ERRAND__LUA_DONE ? run->unheard : run->root;
}

/* Pushes the text for people and the value for scripts. */
static void
push_failure(lua_State *L, errand__lua_run *run, errand_lua_kind kind, int stall_text)
{
    errand__lua_task *failed = failed_task(run);
    if (kind == ERRAND_LUA_STALL || kind == ERRAND_LUA_EXTERNAL ||
        kind == ERRAND_LUA_DEPARTED) {
        lua_pushvalue(L, stall_text);
        errand__lua_error_push(L,
                               kind == ERRAND_LUA_STALL      ? "stall"
                               : kind == ERRAND_LUA_EXTERNAL ? "external"
                                                             : "departed",
                               "run", "%s", lua_tostring(L, stall_text));
    } else if (kind == ERRAND_LUA_DEADLINE) {
        lua_pushfstring(L, "the deadline of %f s passed",
                        (lua_Number)run->options.deadline_ns / 1e9);
        errand__lua_error_push(L, "deadline", "run", "%s", lua_tostring(L, -1));
    } else if (kind == ERRAND_LUA_STOPPED) {
        lua_pushliteral(L, "stopped from outside");
        errand__lua_error_push(L, "stopped", "run", "%s", lua_tostring(L, -1));
    } else if (failed->phase != ERRAND__LUA_FAILED) {
        lua_pushliteral(L, "the root task was cancelled by the script");
        errand__lua_error_push(L, "cancelled", "run", "%s", lua_tostring(L, -1));
    } else {
        if (failed->told)
            lua_pushfstring(L, "task %I failed and nobody awaited it, as was told then",
                            (LUAI_UACINT)failed->id.task);
        else
            errand__lua_report_failure(L, failed,
                                       failed != run->root && run->first == NULL);
        lua_pushnil(L);
        if (lua_checkstack(failed->co, 1) && lua_gettop(failed->co) > 0) {
            lua_pushvalue(failed->co, -1);
            lua_xmove(failed->co, L, 1);
            lua_replace(L, -2);
        }
    }
}

static void
keep_message(lua_State *L, int index, errand_lua_result *result)
{
    free(result->message);
    result->message = strdup(luaL_tolstring(L, index, NULL));
    lua_pop(L, 1);
}

/* What has come by now is the seed's; what comes later is the shutdown's. */
static void
drain_rest(errand__lua_run *run)
{
    errand_completion_fn *fn =
        run->options.on_completion != NULL ? errand__lua_report_completion : NULL;
    size_t count = 1;
    while (count > 0 &&
           errand_drain(run->runtime, SIZE_MAX, fn, run, &count) == ERRAND_OK)
        continue;
}

/* Leaves results, or the error value, above the task's userdata at index `base`. */
static int
run_end(lua_State *L, errand__lua_run *run, errand_lua_kind kind, int base,
        int stall_text, errand_lua_result *result)
{
    result->kind = kind;
    result->digest = errand_digest(run->runtime);
    result->picks = errand_runtime_picks(run->runtime);
    result->elapsed_ns = errand_runtime_now(run->runtime) - run->start_ns;
    if (run->options.order != ERRAND_ORDER_ARRIVAL)
        drain_rest(run);
    run->closing = true;
    errand_status status = errand_runtime_snapshot(run->runtime, &result->snapshot);
    (void)status; /* this process made the runtime */
    if (kind != ERRAND_LUA_OK) {
        bool raised = kind == ERRAND_LUA_SCRIPT_ERROR;
        result->unheard =
            errand__lua_unheard_tell(L, run, raised ? failed_task(run) : NULL);
        push_failure(L, run, kind, stall_text);
        keep_message(L, -2, result);
    }
    errand__lua_run_close(run, ERRAND_SHUTDOWN_RUN, &result->report);
    if (run->options.order == ERRAND_ORDER_ARRIVAL && result->elapsed_ns < run->last_ns)
        result->elapsed_ns = run->last_ns; /* what the shutdown drained */
    result->aborted = run->aborted;
    run_forget(L, run);
    if (kind != ERRAND_LUA_OK)
        return 1;
    lua_settop(L, base);
    result->values = errand__lua_join_results(L, run->root, "run");
    return result->values;
}

/* Index 1 is the frame, then the function and its arguments. */
static int
run_protected(lua_State *L)
{
    run_frame *frame = lua_touserdata(L, 1);
    const errand_lua_options *options = frame->options;
    luaL_checkstack(L, LUA_MINSTACK + options->argc, "too many arguments");
    errand__lua_run *run = frame->run = run_make(L, options);
    lua_replace(L, 1);
    frame->result->seed = run->seed;
    errand_status status = errand__lua_run_begin(run);
    if (status != ERRAND_OK) {
        frame->result->status = status;
        errand__lua_error_status(L, status, "run");
    }
    if (options->on_start != NULL)
        options->on_start(options->held_on_start_arg, run->runtime);
    for (int i = 0; i < options->argc; i++)
        lua_pushstring(L, options->argv[i]);
    run->root = errand__lua_task_spawn(L, run, NULL, lua_gettop(L) - 2, "run");
    int base = lua_gettop(L);
    errand__lua_stop_show(options->held_stop, run->inbox);
    errand_lua_kind kind = errand__lua_drive(L, run);
    return run_end(L, run, kind, base, base + 1, frame->result);
}

errand_lua_kind
errand__lua_run_value(lua_State *L, int arguments, const errand_lua_options *options,
                      errand_lua_result *out_result)
{
    static const errand_lua_options defaults = ERRAND_LUA_OPTIONS_INIT;
    memset(out_result, 0, sizeof *out_result);
    int function = lua_gettop(L) - arguments;
    errand__lua_wait_callable(L, function);
    luaL_checkstack(L, 8, "run");
    run_frame frame = {options != NULL ? options : &defaults, out_result, NULL};
    out_result->status = ERRAND_EMISUSE;
    if (errand__lua_run_find(L) != NULL) {
        out_result->kind = ERRAND_LUA_REFUSED;
        lua_settop(L, function - 1);
        lua_pushliteral(
            L, "a run is in progress already: call the function, or start it with "
               "errand.spawn");
        keep_message(L, -1, out_result);
        return out_result->kind;
    }
    out_result->status = ERRAND_OK;
    lua_pushcfunction(L, run_protected);
    lua_insert(L, function);
    lua_pushlightuserdata(L, &frame);
    lua_insert(L, function + 1);
    if (lua_pcall(L, arguments + 2, LUA_MULTRET, 0) == LUA_OK)
        return out_result->kind;
    /* It could not begin, or memory ran out on the way. */
    if (frame.run != NULL) {
        errand__lua_run_close(frame.run, ERRAND_SHUTDOWN_QUIET, &out_result->report);
        run_forget(L, frame.run);
    }
    out_result->kind = ERRAND_LUA_REFUSED;
    if (out_result->status == ERRAND_OK)
        out_result->status = ERRAND_ENOMEM;
    keep_message(L, -1, out_result);
    return out_result->kind;
}

errand_lua_kind
errand_lua_run(lua_State *L, int arguments, const errand_lua_options *options,
               errand_lua_result *out_result)
{
    errand_lua_kind kind = errand__lua_run_value(L, arguments, options, out_result);
    if (kind != ERRAND_LUA_OK)
        lua_pop(L, 1);
    return kind;
}

void
errand_lua_result_fini(errand_lua_result *result)
{
    free(result->message);
    result->message = NULL;
}
