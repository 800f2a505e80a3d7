/* SPDX-License-Identifier: MIT */
/* unheard: failures that nobody took note of, and when they are told.
 *
 * Design notes.  Such a failure fails the run, when the root has ended.  A root that serves may
 * never end, so in arrival order it is told before: when the handle of the task is garbage, because
 * nobody can await it then.  As long as a handle is there, a later await takes the error, and to
 * tell it would be noise.  The rest is told when the run ends for another reason; in seeded orders
 * all of it, because when something becomes garbage is no seed's.
 *
 * A task that may be told holds its place in the run's table by `false`, so that its userdata can
 * be collected; the finaliser puts it back, for its coroutine has the error that the run ends with,
 * and needs no memory for that.  A server that waits makes no garbage, so the failure itself begins
 * a collection.  What these may take is saved up: a twentieth of the time, and BUDGET_NS at most;
 * without it the look is put off to a later visit. */
#include "lua_host.h"
#include <time.h>

#define BUDGET_NS 250000000

enum { TOLD_MAX = 8, SHARE = 20 };

void
errand__lua_unheard_add(errand__lua_task *task)
{
    errand__lua_run *run = task->run;
    task->unheard = true;
    *run->unheard_end = task;
    run->unheard_end = &task->unheard_next;
    if (run->options.propagate && run->first == NULL)
        run->first = task;
}

void
errand__lua_task_heard(lua_State *L, errand__lua_task *task)
{
    if (!task->unheard || task == task->run->first)
        return;
    errand__lua_task **link = &task->run->unheard;
    while (*link != task)
        link = &(*link)->unheard_next;
    *link = task->unheard_next;
    if (task->run->unheard_end == &task->unheard_next)
        task->run->unheard_end = link;
    task->unheard = false;
    errand__lua_task_unanchor(L, task);
}

/* ---- told before the end ------------------------------------------------------------------- */

/* Writes over the task's place in the run's table with the value on top, which is popped. */
static void
set_place(lua_State *L, const errand__lua_task *task)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, task->run) == LUA_TTABLE) {
        lua_insert(L, -2);
        lua_rawsetp(L, -2, task); /* the key exists: no memory is needed */
        lua_pop(L, 1);
        return;
    }
    lua_pop(L, 2);
}

static void
tell(lua_State *L, errand__lua_run *run, errand__lua_task *task)
{
    task->told = true;
    errand__lua_report_failure(L, task, true);
    run->options.on_unheard(run->options.held_on_unheard_arg, lua_tostring(L, -1));
    lua_pop(L, 1);
}

int
errand__lua_unheard_collect(lua_State *L)
{
    /* A script may call it, with anything. */
    errand__lua_task *task = luaL_checkudata(L, 1, ERRAND__LUA_TASK);
    errand__lua_run *run = task->run;
    if (!task->unheard || errand__lua_run_find(L) != run || run->runtime == NULL ||
        run->quiet || run->options.on_unheard == NULL)
        return 0;
    lua_pushvalue(L, 1);
    set_place(L, task);
    if (!task->told && !run->closing)
        tell(L, run, task);
    return 0;
}

static int64_t
processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* May a collection begin now? */
static bool
affordable(errand__lua_run *run)
{
    uint64_t now = errand__lua_watch_now();
    int64_t saved =
        run->look_time == 0 ? BUDGET_NS : (int64_t)(now - run->look_time) / SHARE;
    run->look_time = now;
    run->look_budget =
        saved < BUDGET_NS - run->look_budget ? run->look_budget + saved : BUDGET_NS;
    return run->look_budget > 0;
}

void
errand__lua_unheard_look(errand__lua_run *run)
{
    if (!run->looks || run->current != NULL || !lua_gc(run->L, LUA_GCISRUNNING) ||
        !affordable(run))
        return;
    int64_t begin = processor_ns();
    run->looks = false;
    lua_gc(run->L, LUA_GCCOLLECT);
    run->look_budget -= processor_ns() - begin;
}

void
errand__lua_unheard_dropped(lua_State *L, errand__lua_task *task)
{
    errand__lua_run *run = task->run;
    if (run->options.on_unheard == NULL || run->options.propagate || task == run->root ||
        run->options.order != ERRAND_ORDER_ARRIVAL || !lua_checkstack(task->co, 1))
        return;
    /* The traceback goes below the error, where it is found without the userdata. */
    errand__lua_task_push(L, task);
    if (lua_isuserdata(L, -1)) {
        lua_getiuservalue(L, -1, ERRAND__LUA_VALUE_TRACEBACK);
        lua_xmove(L, task->co, 1);
        lua_insert(task->co, -2);
        task->traced = true;
        lua_pushboolean(L, false);
        set_place(L, task);
        run->looks = true;
    }
    lua_pop(L, 1);
    errand__lua_unheard_look(run);
}

/* ---- told at the end ----------------------------------------------------------------------- */

static void
tell_more(lua_State *L, const errand__lua_run *run, uint64_t count)
{
    lua_pushfstring(L, "%I more task%s failed and nobody awaited %s", (LUAI_UACINT)count,
                    count == 1 ? "" : "s", count == 1 ? "it" : "them");
    run->options.on_unheard(run->options.held_on_unheard_arg, lua_tostring(L, -1));
    lua_pop(L, 1);
}

uint64_t
errand__lua_unheard_tell(lua_State *L, errand__lua_run *run,
                         const errand__lua_task *raised)
{
    uint64_t count = 0, untold = 0;
    for (errand__lua_task *task = run->unheard; task != NULL; task = task->unheard_next) {
        if (task == raised || task == run->root)
            continue;
        count++;
        if (task->told || run->options.on_unheard == NULL)
            continue;
        if (++untold <= TOLD_MAX)
            tell(L, run, task);
    }
    if (untold > TOLD_MAX)
        tell_more(L, run, untold - TOLD_MAX);
    return count;
}
