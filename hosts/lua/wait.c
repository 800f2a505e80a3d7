/* SPDX-License-Identifier: MIT */
/* wait: how a verb waits, and the verbs that only wait.
 *
 * Design notes.  A verb registers one wait with the library, says so in task->waits and yields
 * with a continuation.  The task's function sees the yield, answers WAIT, and at the next visit
 * resumes the coroutine, whose continuation reads task->news.  So results are made, and errors
 * raised, inside the coroutine, where the script's pcall catches them.  Between the registration
 * and the yield nothing raises. */
#include "lua_host.h"

errand__lua_task *
errand__lua_wait_able(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_find(L);
    if (run == NULL || run->runtime == NULL || run->current == NULL ||
        L != run->current->co || !lua_isyieldable(L))
        return NULL;
    return run->current;
}

errand__lua_task *
errand__lua_wait_task(lua_State *L, const char *operation)
{
    errand__lua_run *run = errand__lua_run_need(L, operation);
    if (run->current == NULL)
        errand__lua_error_raise(
            L, "misuse", operation,
            "no task is running here: a function that foreign code calls, a finaliser, "
            "or a __close handler of a task that was aborted, cannot wait");
    if (L != run->current->co)
        errand__lua_error_raise(
            L, "misuse", operation,
            "this coroutine was not started by errand: call it in the task "
            "itself, or start the function with errand.spawn");
    if (!lua_isyieldable(L))
        errand__lua_error_raise(
            L, "misuse", operation,
            "cannot wait inside a function that C code called, such as "
            "require, table.sort, string.gsub or a finaliser: call it before "
            "or after");
    return run->current;
}

int
errand__lua_wait_for(lua_State *L, errand__lua_task *task, errand_status status,
                     const char *operation, lua_KFunction k, lua_KContext context)
{
    if (status == ERRAND_ECANCELLED) {
        errand_reason reason = errand_task_cancelled(task->run->visit);
        if (task->reason == ERRAND_REASON_NONE)
            task->reason = reason;
        errand__lua_error_cancelled(L, task, task->reason, operation);
    }
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, operation);
    task->waits = true;
    task->operation = operation;
    return lua_yieldk(L, 0, context, k);
}

errand__lua_task *
errand__lua_wait_running(lua_State *L)
{
    return errand__lua_run_find(L)->current;
}

const errand_task_news *
errand__lua_wait_news(lua_State *L, const char *operation)
{
    errand__lua_task *task = errand__lua_wait_running(L);
    if (task->news->why == ERRAND_WHY_CANCELLED)
        errand__lua_error_cancelled(L, task, task->reason, operation);
    return task->news;
}

void
errand__lua_wait_callable(lua_State *L, int index)
{
    if (lua_isfunction(L, index))
        return;
    if (luaL_getmetafield(L, index, "__call") == LUA_TNIL)
        luaL_typeerror(L, index, "function");
    lua_pop(L, 1);
}

uint64_t
errand__lua_wait_seconds(lua_State *L, int index)
{
    lua_Number seconds = luaL_checknumber(L, index);
    luaL_argcheck(L, seconds == seconds, index, "seconds must be a number, not NaN");
    luaL_argcheck(L, seconds >= 0, index, "seconds must not be negative");
    luaL_argcheck(L, seconds < 9e9, index, "too many seconds (less than 9e9)");
    return (uint64_t)(seconds * 1e9 + 0.5);
}

uint64_t
errand__lua_wait_limit(lua_State *L, int index, const errand__lua_run *run,
                       uint64_t missing_ns)
{
    uint64_t ns = missing_ns;
    if (lua_type(L, index) == LUA_TNUMBER && lua_tonumber(L, index) >= 9e9)
        return UINT64_MAX;
    if (!lua_isnoneornil(L, index))
        ns = errand__lua_wait_seconds(L, index);
    uint64_t now = errand_runtime_now(run->runtime);
    return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

static int
wait_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    errand__lua_wait_news(L, (const char *)context);
    return 0;
}

int
errand__lua_verb_sleep(lua_State *L)
{
    errand__lua_task *task = errand__lua_wait_task(L, "sleep");
    uint64_t ns = errand__lua_wait_seconds(L, 1);
    errand_status status = errand_task_sleep(task->run->visit, ns);
    return errand__lua_wait_for(L, task, status, "sleep", wait_over,
                                (lua_KContext) "sleep");
}

int
errand__lua_verb_yield(lua_State *L)
{
    errand__lua_task *task = errand__lua_wait_task(L, "yield");
    errand_status status = errand_task_yield(task->run->visit);
    return errand__lua_wait_for(L, task, status, "yield", wait_over,
                                (lua_KContext) "yield");
}

static int
shield_over(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    errand__lua_task *task = errand__lua_wait_running(L);
    errand_status unshielded = errand_task_unshield(task->run->visit);
    (void)unshielded; /* it was shielded by this frame */
    if (--task->shields == 0)
        task->shield_until = 0;
    if (status != LUA_OK && status != LUA_YIELD)
        return lua_error(L);
    return lua_gettop(L);
}

int
errand__lua_verb_shield(lua_State *L)
{
    errand__lua_task *task = errand__lua_wait_task(L, "shield");
    errand__lua_wait_callable(L, 1);
    uint64_t limit = errand__lua_wait_limit(L, 2, task->run, task->run->options.grace_ns);
    errand_status status = errand_task_shield(task->run->visit, limit);
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, "shield");
    if (task->shields++ == 0) {
        uint64_t now = errand__lua_watch_now();
        uint64_t length = limit - errand_runtime_now(task->run->runtime);
        task->shield_until = length < UINT64_MAX - now ? now + length : UINT64_MAX;
    }
    lua_settop(L, 1);
    return shield_over(L, lua_pcallk(L, 0, LUA_MULTRET, 0, 0, shield_over), 0);
}
