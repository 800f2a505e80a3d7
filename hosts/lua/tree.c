/* SPDX-License-Identifier: MIT */
/* tree: contexts, select and the stop, for scripts.
 *
 * Design notes.  A context and a signal are userdata that hold the library's names, by value; their
 * user value keeps the run's userdata, so that one which outlived its run is recognised however late
 * it is used.  select lets the library choose; only where a task of the list has ended before, which
 * the library may have forgotten, the choice is made here. */
#include "lua_host.h"

#define CONTEXT "errand.context"
#define SIGNAL  "errand.signal"

/* Pushes an object of the run in progress with this metatable. */
static void *
push_object(lua_State *L, errand__lua_run *run, size_t size, const char *metatable)
{
    void *object = lua_newuserdatauv(L, size, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, run);
    lua_getfield(L, -1, "run");
    lua_setiuservalue(L, -3, 1);
    lua_pop(L, 1);
    luaL_setmetatable(L, metatable);
    return object;
}

/* The object at index 1, if its run is the one in progress. */
static void *
check_object(lua_State *L, const char *metatable, const char *operation,
             errand__lua_run **out_run)
{
    void *object = luaL_checkudata(L, 1, metatable);
    errand__lua_run *run = errand__lua_run_need(L, operation);
    lua_getiuservalue(L, 1, 1);
    bool own = lua_touserdata(L, -1) == run;
    lua_pop(L, 1);
    if (!own)
        errand__lua_error_raise(L, "misuse", operation,
                                "the run that it belongs to has ended: make one in "
                                "this run");
    *out_run = run;
    return object;
}

static void
need_current(lua_State *L, const errand__lua_run *run, const char *operation)
{
    if (run->current == NULL)
        errand__lua_error_raise(L, "misuse", operation,
                                "no task is running here: call it in a task");
}

/* ---- contexts ------------------------------------------------------------------------------------- */

void
errand__lua_tree_options(lua_State *L, int index, const char *operation)
{
    if (!lua_istable(L, index) || luaL_getmetafield(L, index, "__call") != LUA_TNIL)
        return;
    if (lua_getfield(L, index, "dedicated") != LUA_TNIL)
        errand__lua_error_raise(
            L, "unsupported", operation,
            "a Lua task has no thread of its own: one Lua state runs on one thread; "
            "give what blocks to errand.job, errand.command or the file verbs");
    lua_pop(L, 1);
}

static int
verb_context(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "context");
    const char *name = luaL_optstring(L, 1, NULL);
    need_current(L, run, "context");
    errand_context *context = push_object(L, run, sizeof *context, CONTEXT);
    context->node = 0;
    errand_status status =
        errand_context_create(run->runtime, &run->current->id, name, context);
    if (status == ERRAND_ECANCELLED)
        errand__lua_error_cancelled(L, run->current, run->current->reason, "context");
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, "context");
    return 1;
}

/* The library's misuses, in words for scripts. */
static void
check_status(lua_State *L, errand_status status, const char *operation)
{
    if (status == ERRAND_ESPENT)
        errand__lua_error_raise(L, "misuse", operation,
                                "the context was used up: each starts one task; make "
                                "another with errand.context or context:child");
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, operation);
}

static int
context_child(lua_State *L)
{
    errand__lua_run *run;
    const errand_context *above = check_object(L, CONTEXT, "child", &run);
    const char *name = luaL_optstring(L, 2, NULL);
    errand_context *context = push_object(L, run, sizeof *context, CONTEXT);
    context->node = 0;
    check_status(L, errand_context_child(run->runtime, above, name, context), "child");
    return 1;
}

static int
context_spawn(lua_State *L)
{
    errand__lua_run *run;
    errand_context *context = check_object(L, CONTEXT, "spawn", &run);
    errand__lua_tree_options(L, 2, "spawn");
    errand__lua_wait_callable(L, 2);
    if (context->node == 0)
        check_status(L, ERRAND_ESPENT, "spawn");
    errand__lua_task_spawn_in(L, run, context, lua_gettop(L) - 2, "spawn");
    return 1;
}

static int
context_abort(lua_State *L)
{
    errand__lua_run *run;
    const errand_context *context = check_object(L, CONTEXT, "abort", &run);
    check_status(L, errand_context_abort(run->runtime, context), "abort");
    return 0;
}

static int
context_tostring(lua_State *L)
{
    const errand_context *context = luaL_checkudata(L, 1, CONTEXT);
    lua_pushstring(L, context->node == 0 ? "errand.context (used up)" : "errand.context");
    return 1;
}

/* ---- select: index 1 is the list, index 2 the select ------------------------------------------------ */

static int
select_result(lua_State *L, size_t index)
{
    lua_geti(L, 1, (lua_Integer)index + 1);
    errand__lua_task *task = errand__lua_task_check(L, -1);
    lua_pushinteger(L, (lua_Integer)index + 1);
    return 1 + errand__lua_join_results(L, task, "select");
}

static int
select_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    errand_select *select = lua_touserdata(L, 2);
    errand__lua_task *waiter = errand__lua_wait_running(L);
    size_t winner = waiter->news->joined;
    errand_select_close(waiter->run->runtime, select); /* of a cancel: aborts them all */
    errand__lua_wait_news(L, "select");
    return select_result(L, winner);
}

/* Aborts what has not ended in the list at index 1, but for one. */
static void
abort_others(lua_State *L, errand__lua_run *run, lua_Integer count, lua_Integer but)
{
    for (lua_Integer i = 0; i < count; i++) {
        lua_geti(L, 1, i + 1);
        errand__lua_task *task = errand__lua_task_check(L, -1);
        lua_pop(L, 1);
        if (i == but || errand__lua_task_ended(task))
            continue;
        errand_status aborted = errand_task_abort(run->runtime, &task->id);
        (void)aborted; /* EUNKNOWN: another took it along */
    }
}

static int
verb_select(lua_State *L)
{
    errand__lua_task *waiter = errand__lua_wait_task(L, "select");
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    errand__lua_join_alive(L, waiter, "select");
    lua_Integer count = luaL_len(L, 1);
    luaL_argcheck(L, count <= 1 << 20, 1, "too many tasks");
    if (count <= 0)
        errand__lua_error_raise(L, "closed", "select", "there is nothing to wait for");
    errand_select *select = lua_newuserdatauv(L, sizeof *select, 0);
    errand_handle *handles = lua_newuserdatauv(L, (size_t)count * sizeof *handles, 0);
    lua_Integer ended = -1;
    for (lua_Integer i = 0; i < count; i++) {
        lua_geti(L, 1, i + 1);
        const errand__lua_task *task = errand__lua_task_check(L, -1);
        if (task == waiter)
            errand__lua_error_raise(L, "misuse", "select",
                                    "a task cannot wait for itself");
        if (ended < 0 && errand__lua_task_ended(task))
            ended = i;
        handles[i].task = task->id;
        lua_pop(L, 1);
    }
    if (ended >= 0) {
        abort_others(L, waiter->run, count, ended);
        return select_result(L, (size_t)ended);
    }
    errand_status status =
        errand_select_open(waiter->run->runtime, handles, (size_t)count, select);
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, "select");
    lua_settop(L, 2);
    status = errand_task_select(waiter->run->visit, select, UINT64_MAX);
    if (status != ERRAND_OK)
        errand_select_close(waiter->run->runtime, select);
    return errand__lua_wait_for(L, waiter, status, "select", select_over, 0);
}

/* ---- the stop ---------------------------------------------------------------------------------------- */

static int
stop_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    if (errand__lua_wait_news(L, "stop")->why == ERRAND_WHY_TIME)
        errand__lua_error_raise(L, "timeout", "stop", "signals are held after %g s",
                                (double)lua_tonumber(L, 2));
    return 0;
}

static int
verb_stop(lua_State *L)
{
    errand__lua_task *waiter = errand__lua_wait_task(L, "stop");
    lua_Integer value = luaL_optinteger(L, 1, 0);
    luaL_argcheck(L, value >= INT32_MIN && value <= INT32_MAX, 1,
                  "the value has 32 bits at most");
    uint64_t limit = UINT64_MAX;
    if (!lua_isnoneornil(L, 2))
        limit = errand__lua_wait_limit(L, 2, waiter->run, 0);
    lua_settop(L, 2);
    errand_status status = errand_task_stop(waiter->run->visit, (int32_t)value, limit);
    return errand__lua_wait_for(L, waiter, status, "stop", stop_over, 0);
}

static int
verb_stopped(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "stopped");
    need_current(L, run, "stopped");
    errand_signal *signal = push_object(L, run, sizeof *signal, SIGNAL);
    signal->node = 0;
    errand_status status = errand_signal_hold(run->runtime, signal);
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, "stopped");
    return 1;
}

static int
signal_over(lua_State *L, int status, lua_KContext context)
{
    int32_t value = 0;
    (void)status;
    (void)context;
    errand__lua_wait_news(L, "stopped");
    if (!errand_stop_asked(errand__lua_run_find(L)->runtime, &value))
        return 0;
    lua_pushinteger(L, value);
    return 1;
}

static int
signal_wait(lua_State *L)
{
    errand__lua_run *run;
    const errand_signal *signal = check_object(L, SIGNAL, "stopped", &run);
    errand__lua_task *waiter = errand__lua_wait_task(L, "stopped");
    if (signal->node == 0)
        errand__lua_error_raise(L, "misuse", "stopped", "the signal was released");
    errand_status status = errand_task_stopped(run->visit, signal, UINT64_MAX);
    return errand__lua_wait_for(L, waiter, status, "stopped", signal_over, 0);
}

static int
signal_release(lua_State *L)
{
    errand_signal *signal = luaL_checkudata(L, 1, SIGNAL);
    errand__lua_run *run = errand__lua_run_find(L);
    lua_getiuservalue(L, 1, 1);
    if (run != NULL && run->runtime != NULL && lua_touserdata(L, -1) == run)
        errand_signal_release(run->runtime, signal);
    signal->node = 0;
    return 0;
}

/* ---- the metatables ---------------------------------------------------------------------------------- */

static void
make_metatable(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void
errand__lua_tree_open(lua_State *L)
{
    static const luaL_Reg context[] = {
        {"child", context_child},
        {"spawn", context_spawn},
        {"abort", context_abort},
        {"__tostring", context_tostring},
        {NULL, NULL},
    };
    static const luaL_Reg signal[] = {
        {"wait", signal_wait},
        {"release", signal_release},
        {"__close", signal_release},
        {NULL, NULL},
    };
    make_metatable(L, CONTEXT, context);
    make_metatable(L, SIGNAL, signal);
}

const luaL_Reg errand__lua_tree_verbs[] = {
    {"context", verb_context},
    {"select", verb_select},
    {"stop", verb_stop},
    {"stopped", verb_stopped},
    {NULL, NULL},
};
