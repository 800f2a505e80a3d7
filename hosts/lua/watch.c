/* SPDX-License-Identifier: MIT */
/* watch: a loop that never awaits is stopped at the run's deadline, or by an interrupt.
 *
 * Design notes.  A count hook looks every 10 000 instructions.  It is a C hook, so coroutines
 * that a script makes inherit it.  In arrival order the deadline is that of the run; in seeded
 * orders, whose clock stands still while Lua code runs, one visit of a task may last as long in
 * real time as the deadline says: a run that is not stuck is then never touched by real time.
 * First the roots are cancelled and the loop gets one cancel error, which it may catch to clean
 * up.  After the grace the hook fires at every instruction, so that no pcall can hold it.  A task
 * that has heard its cancel, at a wait or here, is not told again within its grace, nor inside a
 * shield: then it is at work on its cleanup.  At the deadline two graces are the end of that.
 * A __tostring that is asked what to tell people of an error has a limit of its own. */
#include "lua_host.h"
#include <time.h>

#define INSTRUCTIONS 10000
#define TEXT_NS                                                                          \
    1000000000 /* a __tostring may take so long, as long as the default grace */

uint64_t
errand__lua_watch_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* current is NULL in __close handlers of an aborted task. */
static void
watch_raise(lua_State *L, errand__lua_run *run)
{
    errand__lua_task *task = run->current;
    errand_reason reason = run->watch_reason;
    if (task != NULL && task->reason == ERRAND_REASON_NONE)
        task->reason = reason;
    if (task != NULL)
        reason = task->reason;
    errand__lua_error_cancelled(L, task, reason, "errand.run");
}

/* Looks whether the run is to end.  True: it is. */
static bool
watch_look(errand__lua_run *run, uint64_t now)
{
    if (run->watch_over != 0)
        return true;
    bool stopped = errand__lua_stop_asked(run->options.held_stop) ||
                   errand__lua_interpreter_asked(run);
    uint64_t from =
        run->options.order == ERRAND_ORDER_ARRIVAL ? run->watch_start : run->watch_visit;
    bool late = run->options.deadline_ns != 0 && now - from >= run->options.deadline_ns;
    if (!stopped && !late)
        return false;
    run->watch_over = now;
    run->deadline_passed = run->deadline_passed || (late && !stopped);
    run->watch_reason = stopped ? ERRAND_REASON_HOST_STOP : ERRAND_REASON_TIMEOUT;
    errand_status status = errand_cancel_roots(run->runtime, run->watch_reason);
    (void)status; /* already cancelled: the first reason stands */
    return true;
}

static uint64_t
after(uint64_t from, uint64_t ns)
{
    return ns < UINT64_MAX - from ? from + ns : UINT64_MAX;
}

/* While a __tostring runs that is to be told; its coroutines, too, have this hook or the other. */
static void
text_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    errand__lua_run *run = errand__lua_run_find(L);
    if (run == NULL || errand__lua_watch_now() < run->watch_text)
        return;
    if (run->watch_text == 0) { /* it is over, and this coroutine is not */
        errand__lua_watch_set(run, L);
        return;
    }
    lua_sethook(L, text_hook, LUA_MASKCOUNT, 1);
    luaL_error(L, "it takes too long");
}

static void
watch_hook(lua_State *L, lua_Debug *ar)
{
    errand__lua_run *run = errand__lua_run_find(L);
    if (run == NULL || run->runtime == NULL)
        return;
    if (run->watch_text != 0) {
        text_hook(L, ar);
        return;
    }
    uint64_t now = errand__lua_watch_now(), grace = run->options.grace_ns;
    bool first = run->watch_over == 0;
    if (!watch_look(run, now))
        return;
    const errand__lua_task *task = run->current;
    uint64_t heard = first ? 0 : run->watch_over, shield = 0;
    if (task != NULL) {
        heard = task->heard_ns;
        shield = task->shield_until;
        if (run->watch_reason == ERRAND_REASON_TIMEOUT &&
            shield > after(run->watch_over, 2 * grace))
            shield = after(run->watch_over, 2 * grace);
    }
    if (now < shield || (heard != 0 && now < after(heard, grace)))
        return;
    if (heard != 0)
        lua_sethook(L, watch_hook, LUA_MASKCOUNT, 1);
    watch_raise(L, run);
}

void
errand__lua_watch_set(errand__lua_run *run, lua_State *co)
{
    if (run->options.deadline_ns != 0 || run->options.held_stop != NULL)
        lua_sethook(co, watch_hook, LUA_MASKCOUNT, INSTRUCTIONS);
    else if (lua_gethook(co) == text_hook)
        lua_sethook(co, NULL, 0, 0);
}

/* ---- texts of values ---------------------------------------------------------------------- */

static int
call_tostring(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* In a coroutine of its own: in a finaliser no hook of this one is called. */
bool
errand__lua_watch_text(lua_State *L, errand__lua_run *run)
{
    uint64_t before = run->watch_text;
    int count = 0;
    lua_State *co = lua_newthread(L);
    lua_insert(L, -2);
    lua_sethook(co, text_hook, LUA_MASKCOUNT, INSTRUCTIONS);
    lua_pushcfunction(co, call_tostring);
    lua_xmove(L, co, 1);
    run->watch_text = errand__lua_watch_now() + TEXT_NS;
    bool said = lua_resume(co, L, 1, &count) == LUA_OK;
    if (said)
        lua_xmove(co, L, 1);
    else
        lua_resetthread(co); /* its __close handlers */
    run->watch_text = before;
    if (said)
        lua_replace(L, -2);
    else
        lua_pop(L, 1);
    return said;
}

/* ---- visits --------------------------------------------------------------------------------- */

void
errand_lua_rested(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_find(L);
    if (run != NULL)
        run->watch_visit = errand__lua_watch_now();
}

void
errand__lua_watch_visit(errand__lua_run *run)
{
    if (run->options.deadline_ns != 0 && run->options.order != ERRAND_ORDER_ARRIVAL)
        run->watch_visit = errand__lua_watch_now();
}
