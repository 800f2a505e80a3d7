/* SPDX-License-Identifier: MIT */
/* join: await and timeout: one task waits for one other.
 *
 * Design notes.  timeout runs its function as a child task, so that it can be cancelled alone,
 * and waits for the child's end in every case: after the limit, and also when the caller itself
 * is cancelled meanwhile (then in a shield, bounded by the child's own grace). */
#include "lua_host.h"

void
errand__lua_join_alive(lua_State *L, errand__lua_task *waiter, const char *operation)
{
    errand_reason reason = errand_task_cancelled(waiter->run->visit);
    if (reason == ERRAND_REASON_NONE)
        return;
    if (waiter->reason == ERRAND_REASON_NONE)
        waiter->reason = reason;
    errand__lua_error_cancelled(L, waiter, waiter->reason, operation);
}

/* "task 3 was cancelled (timeout)", as the error of whoever awaited it. */
static int
raise_cancelled(lua_State *L, errand__lua_task *task, const char *operation)
{
    bool aborted = task->phase == ERRAND__LUA_ABORTED;
    const char *reason = "its owner ended";
    if (task->reason_text[0] != '\0')
        reason = task->reason_text;
    else if (task->reason != ERRAND_REASON_NONE)
        reason = errand_reason_name(task->reason);
    errand__lua_error_push(L, "cancelled", operation, "task %llu was %s (%s)",
                           (unsigned long long)task->id.task,
                           aborted ? "aborted" : "cancelled", reason);
    lua_pushinteger(L, (lua_Integer)task->id.task);
    lua_setfield(L, -2, "task");
    return lua_error(L);
}

int
errand__lua_join_results(lua_State *L, errand__lua_task *task, const char *operation)
{
    errand__lua_task_heard(L, task);
    if (task->phase == ERRAND__LUA_CANCELLED || task->phase == ERRAND__LUA_ABORTED)
        return raise_cancelled(L, task, operation);
    int count = task->phase == ERRAND__LUA_FAILED ? 1 : task->results;
    luaL_checkstack(L, count, "too many results");
    if (!lua_checkstack(task->co, count))
        return luaL_error(L, "too many results");
    int first = lua_gettop(task->co) - count + 1;
    for (int i = 0; i < count; i++)
        lua_pushvalue(task->co, first + i);
    lua_xmove(task->co, L, count);
    if (task->phase == ERRAND__LUA_FAILED)
        return lua_error(L);
    return count;
}

static int
await_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    errand__lua_wait_news(L, "await");
    return errand__lua_join_results(L, lua_touserdata(L, 1), "await");
}

int
errand__lua_verb_await(lua_State *L)
{
    errand__lua_task *waiter = errand__lua_wait_task(L, "await");
    errand__lua_task *target = errand__lua_task_check(L, 1);
    if (target == waiter)
        errand__lua_error_raise(L, "misuse", "await", "a task cannot wait for itself");
    errand__lua_join_alive(L, waiter, "await");
    lua_settop(L, 1);
    if (errand__lua_task_ended(target))
        return errand__lua_join_results(L, target, "await");
    errand_status joined =
        errand_task_join(waiter->run->visit, &target->id, 1, UINT64_MAX);
    return errand__lua_wait_for(L, waiter, joined, "await", await_over, 0);
}

/* ---- timeout: index 1 is the child, index 2 the seconds ---------------------------------------- */

enum { LIMITED = 0, STOPPING = 1, CANCELLED = 2 };

static int timeout_over(lua_State *L, int status, lua_KContext context);

static int
timeout_join(lua_State *L, lua_KContext stage, uint64_t limit_ns)
{
    errand__lua_task *waiter = errand__lua_wait_running(L);
    errand__lua_task *child = lua_touserdata(L, 1);
    errand_status joined = errand_task_join(waiter->run->visit, &child->id, 1, limit_ns);
    return errand__lua_wait_for(L, waiter, joined, "timeout", timeout_over, stage);
}

static int
timeout_cancelled(lua_State *L, errand__lua_task *waiter)
{
    errand__lua_task *child = lua_touserdata(L, 1);
    errand_status shielded = errand_task_shield(waiter->run->visit, UINT64_MAX);
    if (shielded != ERRAND_OK)
        errand__lua_error_cancelled(L, waiter, waiter->reason, "timeout");
    if (!errand__lua_task_ended(child)) {
        errand_status cancelled =
            errand_task_cancel(waiter->run->runtime, &child->id, ERRAND_REASON_OWNER);
        (void)cancelled; /* it was, with its ancestors, or it ends now */
    }
    if (!errand__lua_task_ended(child))
        return timeout_join(L, CANCELLED, UINT64_MAX);
    return timeout_over(L, LUA_YIELD, CANCELLED);
}

static int
timeout_over(lua_State *L, int status, lua_KContext stage)
{
    (void)status;
    errand__lua_task *waiter = errand__lua_wait_running(L);
    errand__lua_task *child = lua_touserdata(L, 1);
    if (stage == CANCELLED) {
        errand_status unshielded = errand_task_unshield(waiter->run->visit);
        (void)unshielded; /* timeout_cancelled shielded it */
        errand__lua_task_heard(L, child);
        errand__lua_error_cancelled(L, waiter, waiter->reason, "timeout");
    }
    if (waiter->news->why == ERRAND_WHY_CANCELLED)
        return timeout_cancelled(L, waiter);
    if (stage == STOPPING && child->heard_ns == 0 &&
        child->phase != ERRAND__LUA_CANCELLED && child->phase != ERRAND__LUA_ABORTED)
        return errand__lua_join_results(L, child, "timeout"); /* it heard of no cancel */
    if (stage == STOPPING) {
        errand__lua_task_heard(L, child);
        errand__lua_error_raise(L, "timeout", "timeout", "no result within %g s",
                                (double)lua_tonumber(L, 2));
    }
    if (waiter->news->why != ERRAND_WHY_TIME)
        return errand__lua_join_results(L, child, "timeout");
    errand_status cancelled =
        errand_task_cancel(waiter->run->runtime, &child->id, ERRAND_REASON_TIMEOUT);
    (void)cancelled; /* EUNKNOWN: it ended in this very turn, after the limit */
    return timeout_join(L, STOPPING, UINT64_MAX);
}

int
errand__lua_verb_timeout(lua_State *L)
{
    errand__lua_task *waiter = errand__lua_wait_task(L, "timeout");
    luaL_checknumber(L, 1);
    uint64_t limit_ns = errand__lua_wait_limit(L, 1, waiter->run, 0);
    errand__lua_wait_callable(L, 2);
    errand__lua_join_alive(L, waiter, "timeout");
    errand__lua_task_spawn(L, waiter->run, &waiter->id, lua_gettop(L) - 2, "timeout");
    lua_insert(L, 1);
    return timeout_join(L, LIMITED, limit_ns);
}
