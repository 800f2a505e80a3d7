/* SPDX-License-Identifier: MIT */
/* group: gather and race: one task waits for many.
 *
 * Design notes.  The waiter parks; each task that ends tells the groups that watch it, in O(1),
 * so that gathering n tasks costs O(n).  Once the first counts (race: the first end; gather: the
 * first that did not end well), the others are cancelled, and the waiter goes on when all have
 * ended.  A group is a userdata on the waiter's stack, which also holds the tasks; it unlinks
 * itself before the waiter leaves the verb, and when the waiter ends. */
#include "lua_host.h"
#include <string.h>

struct errand__lua_group {
    errand__lua_task *waiter;
    errand__lua_task *first;
    bool race, table, stopping;
    size_t pending, count;
    errand__lua_task **tasks; /* behind watches */
    errand__lua_watch watches[];
};

static const char *
group_name(const errand__lua_group *group)
{
    return group->race ? "race" : "gather";
}

static void
watch_link(errand__lua_watch *watch, errand__lua_task *task)
{
    watch->next = task->watchers;
    watch->previous = &task->watchers;
    if (watch->next != NULL)
        watch->next->previous = &watch->next;
    task->watchers = watch;
}

static void
watch_unlink(errand__lua_watch *watch)
{
    if (watch->previous == NULL)
        return;
    *watch->previous = watch->next;
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    watch->previous = NULL;
}

static void
group_leave(errand__lua_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        watch_unlink(&group->watches[i]);
    group->waiter->group = NULL;
}

/* Does this end decide the group? */
static bool
group_note(errand__lua_group *group, errand__lua_task *task)
{
    if (group->first != NULL || (!group->race && task->phase == ERRAND__LUA_DONE))
        return false;
    group->first = task;
    return true;
}

void
errand__lua_group_ended(errand__lua_task *task)
{
    while (task->watchers != NULL) {
        errand__lua_watch *watch = task->watchers;
        errand__lua_group *group = watch->group;
        watch_unlink(watch);
        group->pending--;
        if ((group_note(group, task) || group->pending == 0) && !task->run->quiet) {
            errand_status woken =
                errand_task_wake(task->run->runtime, &group->waiter->id);
            (void)woken; /* EUNKNOWN: the waiter is ending too */
        }
    }
    if (task->group != NULL)
        group_leave(task->group);
}

/* ---- the end of a group --------------------------------------------------------------------- */

static int
gather_results(lua_State *L, errand__lua_group *group)
{
    if (group->count > INT32_MAX / 2)
        return luaL_error(L, "too many tasks");
    int count = (int)group->count;
    if (group->table)
        lua_createtable(L, count, 0);
    else
        luaL_checkstack(L, count + 4, "too many tasks: give gather one table");
    for (int i = 0; i < count; i++) {
        int base = lua_gettop(L);
        errand__lua_join_results(L, group->tasks[i], "gather");
        lua_settop(L, base + 1);
        if (group->table)
            lua_rawseti(L, -2, i + 1);
    }
    return group->table ? 1 : count;
}

static int
group_finish(lua_State *L, errand__lua_group *group)
{
    group_leave(group);
    for (size_t i = 0; i < group->count; i++)
        errand__lua_task_heard(L, group->tasks[i]);
    if (group->first != NULL)
        return errand__lua_join_results(L, group->first, group_name(group));
    return gather_results(L, group);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static int group_step(lua_State *L, errand__lua_group *group);

static int
group_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    errand__lua_group *group = (errand__lua_group *)context;
    if (group->waiter->news->why == ERRAND_WHY_CANCELLED) {
        group_leave(group);
        errand__lua_wait_news(L, group_name(group));
    }
    return group_step(L, group);
}

static int
group_step(lua_State *L, errand__lua_group *group)
{
    errand__lua_task *waiter = group->waiter;
    if (group->first != NULL && !group->stopping) {
        group->stopping = true;
        for (size_t i = 0; i < group->count; i++) {
            if (errand__lua_task_ended(group->tasks[i]))
                continue;
            errand_status cancelled = errand_task_cancel(
                waiter->run->runtime, &group->tasks[i]->id, ERRAND_REASON_OWNER);
            (void)cancelled; /* EUNKNOWN: it is ending */
        }
    }
    if (group->pending == 0)
        return group_finish(L, group);
    errand_status parked = errand_task_park(waiter->run->visit, UINT64_MAX);
    if (parked != ERRAND_OK)
        group_leave(group);
    return errand__lua_wait_for(L, waiter, parked, group_name(group), group_over,
                                (lua_KContext)group);
}

/* "a number": the kind of a value with its article; "nil" has none. */
static const char *
kind_text(lua_State *L, int index)
{
    if (lua_isnil(L, index))
        return "nil";
    return lua_pushfstring(L, "a %s", luaL_typename(L, index));
}

/* Leaves the group alone on the stack; its user value is the table of its tasks. */
static errand__lua_group *
group_make(lua_State *L, errand__lua_task *waiter, bool race)
{
    bool table = lua_gettop(L) == 1 && lua_istable(L, 1);
    const char *name = race ? "race" : "gather";
    lua_Integer count = table ? luaL_len(L, 1) : lua_gettop(L);
    luaL_argcheck(L, count <= 1 << 24, 1, "too many tasks");
    size_t n = (size_t)count;
    luaL_checkstack(L, 8, name);
    errand__lua_group *group = lua_newuserdatauv(
        L, sizeof *group + n * (sizeof group->watches[0] + sizeof group->tasks[0]), 1);
    memset(group, 0, sizeof *group + n * sizeof group->watches[0]);
    group->waiter = waiter;
    group->race = race;
    group->table = table;
    group->tasks = (errand__lua_task **)(void *)&group->watches[n];
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        if (table)
            lua_geti(L, 1, (lua_Integer)i + 1);
        else
            lua_pushvalue(L, (int)i + 1);
        group->tasks[i] = luaL_testudata(L, -1, ERRAND__LUA_TASK);
        if (group->tasks[i] == NULL)
            luaL_error(L, "%s: %s %d is %s, not a task: give what errand.spawn returns",
                       name, table ? "element" : "argument", (int)i + 1,
                       kind_text(L, -1));
        if (group->tasks[i] == waiter)
            errand__lua_error_raise(L, "misuse", name, "a task cannot wait for itself");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setiuservalue(L, -2, 1);
    lua_replace(L, 1);
    lua_settop(L, 1);
    group->count = n;
    return group;
}

static int
group_start(lua_State *L, bool race)
{
    const char *name = race ? "race" : "gather";
    errand__lua_task *waiter = errand__lua_wait_task(L, name);
    if (lua_gettop(L) == 0) {
        luaL_argcheck(L, !race, 1, "at least one task expected");
        return 0;
    }
    errand__lua_join_alive(L, waiter, name);
    errand__lua_group *group = group_make(L, waiter, race);
    luaL_argcheck(L, !race || group->count > 0, 1, "at least one task expected");
    waiter->group = group;
    for (size_t i = 0; i < group->count; i++) {
        group->watches[i].group = group;
        if (errand__lua_task_ended(group->tasks[i])) {
            group_note(group, group->tasks[i]);
        } else {
            watch_link(&group->watches[i], group->tasks[i]);
            group->pending++;
        }
    }
    return group_step(L, group);
}

int
errand__lua_verb_gather(lua_State *L)
{
    return group_start(L, false);
}

int
errand__lua_verb_race(lua_State *L)
{
    return group_start(L, true);
}
