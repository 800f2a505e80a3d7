/* SPDX-License-Identifier: MIT */
/* task: a coroutine that the library resumes.
 *
 * Design notes.  The coroutine's own function is `body`, which calls the script's function under
 * pcall: only so may __close handlers wait while an error or a cancel passes (lua_resetthread
 * cannot yield).  What the function returned, or its error, stays on the coroutine's stack,
 * so that an end allocates nothing.  An aborted task is never resumed: its __close handlers run
 * in lua_resetthread, where verbs that wait raise. */
#include "lua_host.h"
#include <string.h>

static errand_task_answer task_visit(errand_task *visit, void *state,
                                     const errand_task_news *news);
static void task_ended(errand_runtime *runtime, errand_task_id id, void *state);
static void task_drop(void *state);

/* ---- the body -------------------------------------------------------------------------------- */

static int
keep_traceback(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_find(L);
    if (run == NULL || run->current == NULL || run->current->co != L)
        return 1;
    errand__lua_task_push(L, run->current);
    luaL_traceback(L, L, NULL, 1);
    lua_setiuservalue(L, -2, ERRAND__LUA_VALUE_TRACEBACK);
    lua_pop(L, 1);
    return 1;
}

static int
body_over(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L) - 1;
    errand__lua_wait_running(L)->body_failed = true;
    return 1;
}

/* Index 1 is the message handler, then the function and its arguments. */
static int
body(lua_State *L)
{
    int arguments = lua_gettop(L) - 2;
    return body_over(L, lua_pcallk(L, arguments, LUA_MULTRET, 1, 0, body_over), 0);
}

/* ---- userdata ---------------------------------------------------------------------------------- */

void
errand__lua_task_push(lua_State *L, errand__lua_task *task)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, task->run) != LUA_TTABLE)
        return; /* nil: its run is over */
    lua_rawgetp(L, -1, task);
    lua_remove(L, -2);
}

void
errand__lua_task_unanchor(lua_State *L, errand__lua_task *task)
{
    if (!task->anchored || !task->dropped || task->unheard)
        return;
    task->anchored = false;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, task->run) == LUA_TTABLE) {
        lua_pushnil(L);
        lua_rawsetp(L, -2, task);
    }
    lua_pop(L, 1);
}

errand__lua_task *
errand__lua_task_check(lua_State *L, int index)
{
    return luaL_checkudata(L, index, ERRAND__LUA_TASK);
}

/* Pushes the userdata; its coroutine has body, handler, function and arguments on its stack. */
static errand__lua_task *
task_make(lua_State *L, errand__lua_run *run, int arguments)
{
    int function = lua_gettop(L) - arguments;
    luaL_checkstack(L, 8, "too many arguments");
    errand__lua_task *task = lua_newuserdatauv(L, sizeof *task, ERRAND__LUA_VALUES);
    memset(task, 0, sizeof *task);
    task->run = run;
    luaL_setmetatable(L, ERRAND__LUA_TASK);
    lua_insert(L, function);
    task->co = lua_newthread(L);
    lua_setiuservalue(L, function, ERRAND__LUA_VALUE_COROUTINE);
    lua_rawgetp(L, LUA_REGISTRYINDEX, run);
    lua_getfield(L, -1, "run");
    lua_setiuservalue(L, function, ERRAND__LUA_VALUE_RUN);
    lua_pop(L, 1);
    if (!lua_checkstack(task->co, arguments + 8))
        luaL_error(L, "too many arguments");
    errand__lua_watch_set(run, task->co);
    lua_pushcfunction(task->co, body);
    lua_pushcfunction(task->co, keep_traceback);
    lua_xmove(L, task->co, arguments + 1);
    task->arguments = arguments + 2;
    return task;
}

/* Below parent (NULL = the root), or in a context. */
static errand__lua_task *
spawn(lua_State *L, errand__lua_run *run, const errand_task_id *parent,
      errand_context *take_context, int arguments, const char *operation)
{
    errand__lua_task *task = task_make(L, run, arguments);
    lua_rawgetp(L, LUA_REGISTRYINDEX, run);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, task);
    lua_pop(L, 1);
    task->anchored = true;
    errand_task_spec spec = {
        .struct_size = sizeof spec,
        .fn = task_visit,
        .state = task,
        .held_on_end = task_ended,
        .held_drop = task_drop,
    };
    errand_handle handle = {.task = {.task = 0}};
    errand_status status;
    if (parent == NULL && take_context == NULL && run->options.propagate)
        spec.flags = ERRAND_TASK_PROPAGATE;
    run->tasks_live++;
    if (take_context == NULL) {
        status = errand_spawn(run->runtime, parent, &spec, &task->id);
    } else {
        status = errand_context_spawn(run->runtime, take_context, &spec, &handle);
        task->id = handle.task;
        errand_handle_close(run->runtime, &handle);
    }
    if (status != ERRAND_OK) {
        run->tasks_live--;
        task->phase = ERRAND__LUA_ABORTED;
        task->dropped = true;
        errand__lua_task_unanchor(L, task);
        if (status == ERRAND_ECANCELLED && run->current != NULL)
            errand__lua_error_cancelled(L, run->current, run->current->reason, operation);
        errand__lua_error_status(L, status, operation);
    }
    return task;
}

errand__lua_task *
errand__lua_task_spawn(lua_State *L, errand__lua_run *run, const errand_task_id *parent,
                       int arguments, const char *operation)
{
    return spawn(L, run, parent, NULL, arguments, operation);
}

errand__lua_task *
errand__lua_task_spawn_in(lua_State *L, errand__lua_run *run,
                          errand_context *take_context, int arguments,
                          const char *operation)
{
    return spawn(L, run, NULL, take_context, arguments, operation);
}

/* ---- a visit ------------------------------------------------------------------------------------ */

/* A yield that no verb made: the task cannot go on. */
static void
refuse_yield(errand__lua_task *task, int values)
{
    lua_pop(task->co, values);
    lua_resetthread(task->co);
    lua_settop(task->co, 0);
    lua_pushliteral(task->co,
                    "a task called coroutine.yield outside a coroutine of its own: "
                    "use errand.yield, or errand.sleep");
    task->body_failed = true;
}

static errand_task_answer
task_resume(errand__lua_task *task, int arguments)
{
    int values = 0;
    int status = lua_resume(task->co, task->run->L, arguments, &values);
    if (status == LUA_YIELD && task->waits) {
        lua_pop(task->co, values);
        return ERRAND_TASK_WAIT;
    }
    if (status == LUA_YIELD)
        refuse_yield(task, values);
    else if (status != LUA_OK)
        task->body_failed = true; /* the error is on top */
    task->results = values;
    return task->body_failed ? ERRAND_TASK_FAILED : ERRAND_TASK_DONE;
}

static errand_task_answer
task_visit(errand_task *visit, void *state, const errand_task_news *news)
{
    errand__lua_task *task = state;
    errand__lua_run *run = task->run;
    errand__lua_unheard_look(run);
    if (news->why == ERRAND_WHY_CANCELLED && task->reason == ERRAND_REASON_NONE)
        task->reason = news->reason;
    if (task->phase == ERRAND__LUA_NEW && news->why == ERRAND_WHY_CANCELLED)
        return ERRAND_TASK_FAILED; /* cancelled before it began: nothing of it ran */
    int arguments = task->phase == ERRAND__LUA_NEW ? task->arguments : 0;
    task->phase = ERRAND__LUA_RUNNING;
    task->news = news;
    task->waits = false;
    run->current = task;
    run->visit = visit;
    errand__lua_interpreter_look(run);
    errand__lua_watch_visit(run);
    errand_task_answer answer = task_resume(task, arguments);
    if (answer == ERRAND_TASK_WAIT)
        task->phase = ERRAND__LUA_WAITING;
    else if (task->reason == ERRAND_REASON_NONE)
        task->reason = errand_task_cancelled(visit);
    if (answer != ERRAND_TASK_WAIT && task == run->root)
        run->root_over = true;
    task->news = NULL;
    run->current = NULL;
    run->visit = NULL;
    return answer;
}

/* ---- its end -------------------------------------------------------------------------------------- */

/* How the library says that it ended; what the visit knows where that is forgotten. */
static errand__lua_phase
end_phase(errand_runtime *runtime, const errand__lua_task *task)
{
    errand_task_state state;
    errand_task_end end = ERRAND_END_NONE;
    if (errand_task_state_read(runtime, &task->id, &state, &end) != ERRAND_OK)
        end = ERRAND_END_NONE;
    if (end == ERRAND_END_ABORTED || task->phase == ERRAND__LUA_WAITING)
        return ERRAND__LUA_ABORTED;
    if (end == ERRAND_END_CANCELLED || task->reason != ERRAND_REASON_NONE)
        return ERRAND__LUA_CANCELLED;
    if (task->phase == ERRAND__LUA_NEW)
        return ERRAND__LUA_ABORTED;
    return task->body_failed ? ERRAND__LUA_FAILED : ERRAND__LUA_DONE;
}

static void
task_ended(errand_runtime *runtime, errand_task_id id, void *state)
{
    errand__lua_task *task = state;
    task->id = id; /* it may end before spawn has answered */
    errand__lua_run *run = task->run;
    errand__lua_phase phase = end_phase(runtime, task);
    bool open = task->phase == ERRAND__LUA_WAITING;
    task->phase = phase;
    run->tasks_live--;
    if (phase == ERRAND__LUA_ABORTED && task->reason == ERRAND_REASON_NONE &&
        run->root_over)
        run->aborted++;
    if (phase == ERRAND__LUA_FAILED && !run->quiet)
        errand__lua_unheard_add(task);
    errand__lua_group_ended(task);
    if (run->quiet)
        return;
    if (open)
        lua_resetthread(task->co); /* its __close handlers; their errors end here */
    if (phase != ERRAND__LUA_DONE && phase != ERRAND__LUA_FAILED)
        lua_settop(task->co, 0);
}

static void
task_drop(void *state)
{
    errand__lua_task *task = state;
    task->dropped = true;
    if (task->run->quiet)
        return;
    if (task->unheard)
        errand__lua_unheard_dropped(task->run->L, task);
    else
        errand__lua_task_unanchor(task->run->L, task);
}

const char *
errand__lua_task_phase_name(errand__lua_phase phase)
{
    static const char *const names[] = {"ready",  "running",   "waiting", "done",
                                        "failed", "cancelled", "aborted"};
    return names[phase];
}

static int
task_tostring(lua_State *L)
{
    errand__lua_task *task = errand__lua_task_check(L, 1);
    lua_pushfstring(L, "errand.task %I (%s)", (LUAI_UACINT)task->id.task,
                    errand__lua_task_phase_name(task->phase));
    return 1;
}

void
errand__lua_task_open(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__tostring", task_tostring},
                                    {"__gc", errand__lua_unheard_collect},
                                    {NULL, NULL}};
    luaL_newmetatable(L, ERRAND__LUA_TASK);
    luaL_setfuncs(L, meta, 0);
    lua_pop(L, 1);
}
