/* SPDX-License-Identifier: MIT */
/* information: verbs that answer at once: now, random, stats.
 *
 * Design notes.  In the seeded orders all three are functions of the seed and of what the script
 * did: the clock is virtual, random numbers come from the task's own stream, and the library's
 * accounts count virtual states. */
#include "lua_host.h"

static int
verb_now(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "now");
    lua_pushnumber(L,
                   (lua_Number)(errand_runtime_now(run->runtime) - run->start_ns) / 1e9);
    return 1;
}

int
errand__lua_verb_random(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "random");
    if (run->visit == NULL)
        errand__lua_error_raise(L, "misuse", "random", "no task is running here");
    int count = lua_gettop(L);
    if (count == 0) {
        uint64_t bits = errand_task_choose(run->visit, UINT64_C(1) << 53);
        lua_pushnumber(L, (lua_Number)bits * 0x1p-53);
        return 1;
    }
    luaL_argcheck(L, count <= 2, 3, "at most two numbers expected");
    lua_Integer low = count == 2 ? luaL_checkinteger(L, 1) : 1;
    lua_Integer high = luaL_checkinteger(L, count);
    if (count == 1 && high == 0) { /* all bits, as math.random(0) */
        lua_pushinteger(L, (lua_Integer)errand_task_random(run->visit));
        return 1;
    }
    luaL_argcheck(L, low <= high, count, "the interval is empty");
    uint64_t n = (uint64_t)high - (uint64_t)low + 1; /* 0 = 2^64 */
    lua_pushinteger(L, (lua_Integer)((uint64_t)low + errand_task_choose(run->visit, n)));
    return 1;
}

static void
set_count(lua_State *L, const char *name, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

static int
verb_stats(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "stats");
    errand_snapshot snapshot;
    errand_status status = errand_runtime_snapshot(run->runtime, &snapshot);
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, "stats");
    lua_createtable(L, 0, 20);
    set_count(L, "accepted", snapshot.accepted);
    set_count(L, "queued", snapshot.queued);
    set_count(L, "running", snapshot.running);
    set_count(L, "undrained", snapshot.undrained);
    set_count(L, "drained", snapshot.drained);
    set_count(L, "undeliverable", snapshot.undeliverable);
    set_count(L, "resumed", snapshot.resumed);
    set_count(L, "late", snapshot.late);
    set_count(L, "reaped", snapshot.reaped);
    set_count(L, "completed", snapshot.completed);
    set_count(L, "failed", snapshot.failed);
    set_count(L, "cancelled", snapshot.cancelled);
    set_count(L, "panicked", snapshot.panicked);
    set_count(L, "crashed", snapshot.crashed);
    set_count(L, "held", snapshot.held);
    set_count(L, "returned_late", snapshot.returned_late);
    set_count(L, "tasks", run->tasks_live);
    return 1;
}

const luaL_Reg errand__lua_information_verbs[] = {
    {"now", verb_now},
    {"random", errand__lua_verb_random},
    {"stats", verb_stats},
    {NULL, NULL},
};
