/* SPDX-License-Identifier: MIT */
/* served: what Lua's own functions answer to a task of a seeded run.
 *
 * Design notes.  os.time, os.clock, os.date, os.getenv, math.random and pairs read what no seed
 * decides.  When the module is opened each gets a function in front that asks whether a task of a
 * seeded run is calling: if so it answers from virtual time and the task's own stream, in every
 * other case it calls what was there before (its first upvalue).  All but the clocks do so in a
 * recorded run of arrival order too, so that its replay comes by the same places.
 *
 * pairs: the order of strings in a table hangs on addresses, because Lua seeds its hash with some.
 * So in a seeded run pairs goes through numbers by size, strings by their bytes, false, true, tasks
 * by their spawns; only what has nothing but an address comes as the table has it, and a note in the
 * audit says so.  A list is left as it is: its keys are counted, which costs what the loop costs. */
#include "lua_host.h"
#include <lualib.h>
#include <string.h>

/* The run, if a task of it calls and it is seeded; of arrival order, if it is recorded or a replay,
 * with recorded. */
static errand__lua_run *
run_of(lua_State *L, bool recorded)
{
    errand__lua_run *run = errand__lua_run_find(L);
    if (run == NULL || run->runtime == NULL || run->visit == NULL)
        return NULL;
    if (run->options.order != ERRAND_ORDER_ARRIVAL)
        return run;
    recorded = recorded &&
               (run->options.held_recorder != NULL || run->options.held_replay != NULL);
    return recorded ? run : NULL;
}

static int
passed(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L);
}

static int
pass(lua_State *L)
{
    int arguments = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_callk(L, arguments, LUA_MULTRET, 0, passed);
    return passed(L, LUA_OK, 0);
}

/* ---- os ------------------------------------------------------------------------------------------ */

static int
served_time(lua_State *L)
{
    errand__lua_run *run = run_of(L, false);
    if (run == NULL || !lua_isnoneornil(L, 1))
        return pass(L);
    lua_pushinteger(L, (lua_Integer)(errand_runtime_now(run->runtime) / 1000000000U));
    return 1;
}

static int
served_clock(lua_State *L)
{
    errand__lua_run *run = run_of(L, false);
    if (run == NULL)
        return pass(L);
    lua_pushnumber(L,
                   (lua_Number)(errand_runtime_now(run->runtime) - run->start_ns) / 1e9);
    return 1;
}

/* Virtual time has no zone: it is told as universal time. */
static int
served_date(lua_State *L)
{
    errand__lua_run *run = run_of(L, false);
    if (run == NULL || !lua_isnoneornil(L, 2))
        return pass(L);
    lua_settop(L, 1);
    const char *format = luaL_optstring(L, 1, "%c");
    lua_pushfstring(L, "!%s", format[0] == '!' ? format + 1 : format);
    lua_replace(L, 1);
    lua_pushinteger(L, (lua_Integer)(errand_runtime_now(run->runtime) / 1000000000U));
    return pass(L);
}

/* An input from outside: what it was is a step of the audit. */
static int
served_getenv(lua_State *L)
{
    errand__lua_run *run = run_of(L, true);
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    if (run == NULL)
        return pass(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1))
        lua_pushstring(L, name);
    else
        lua_pushfstring(L, "%s=%s", name, lua_tostring(L, -1));
    size_t size;
    const char *text = lua_tolstring(L, -1, &size);
    errand_status status = errand_audit_note(run->runtime, "getenv", text, size);
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, "getenv");
    lua_pop(L, 1);
    return 1;
}

/* ---- math ---------------------------------------------------------------------------------------- */

static int
served_random(lua_State *L)
{
    return run_of(L, true) == NULL ? pass(L) : errand__lua_verb_random(L);
}

/* The run's seed is the seed. */
static int
served_randomseed(lua_State *L)
{
    errand__lua_run *run = run_of(L, true);
    if (run == NULL)
        return pass(L);
    lua_pushinteger(L, (lua_Integer)run->seed);
    lua_pushinteger(L, 0);
    return 2;
}

/* ---- pairs ---------------------------------------------------------------------------------------- */

enum { RANK_NUMBER = 1, RANK_STRING, RANK_BOOLEAN, RANK_TASK, RANK_ADDRESS };

static int
rank_of(lua_State *L, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        return RANK_NUMBER;
    case LUA_TSTRING:
        return RANK_STRING;
    case LUA_TBOOLEAN:
        return RANK_BOOLEAN;
    default:
        return luaL_testudata(L, index, ERRAND__LUA_TASK) != NULL ? RANK_TASK
                                                                  : RANK_ADDRESS;
    }
}

static bool
bytes_before(lua_State *L, int first, int second)
{
    size_t one, other;
    const char *a = lua_tolstring(L, first, &one), *b = lua_tolstring(L, second, &other);
    int difference = memcmp(a, b, one < other ? one : other);
    return difference != 0 ? difference < 0 : one < other;
}

/* For table.sort: is key 1 before key 2? */
static int
key_before(lua_State *L)
{
    int rank = rank_of(L, 1), other = rank_of(L, 2);
    bool before = rank < other;
    if (rank == other && rank == RANK_STRING)
        before = bytes_before(L, 1, 2);
    else if (rank == other && rank == RANK_NUMBER)
        before = lua_compare(L, 1, 2, LUA_OPLT);
    else if (rank == other && rank == RANK_BOOLEAN)
        before = lua_toboolean(L, 1) < lua_toboolean(L, 2);
    else if (rank == other && rank == RANK_TASK)
        before =
            errand__lua_task_check(L, 1)->id.task < errand__lua_task_check(L, 2)->id.task;
    lua_pushboolean(L, before);
    return 1;
}

/* Are the keys of the table at index 1 just 1 .. n? */
static bool
is_list(lua_State *L)
{
    lua_Unsigned length = lua_rawlen(L, 1), count = 0;
    lua_pushnil(L);
    while (lua_next(L, 1) != 0) {
        lua_pop(L, 1);
        if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1 || ++count > length) {
            lua_pop(L, 1);
            return false;
        }
    }
    return count == length;
}

/* Pushes the keys that have an order, as a list that table.sort (upvalue 2) has sorted, and puts the
 * others behind; answers how many these are. */
static uint64_t
push_keys(lua_State *L)
{
    lua_Integer ordered = 0, others = 0;
    lua_newtable(L);
    lua_newtable(L);
    int keys = lua_gettop(L) - 1, rest = keys + 1;
    lua_pushnil(L);
    while (lua_next(L, 1) != 0) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        if (rank_of(L, -1) == RANK_ADDRESS)
            lua_rawseti(L, rest, ++others);
        else
            lua_rawseti(L, keys, ++ordered);
    }
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, keys);
    lua_pushcfunction(L, key_before);
    lua_call(L, 2, 0);
    for (lua_Integer i = 1; i <= others; i++) {
        lua_rawgeti(L, rest, i);
        lua_rawseti(L, keys, ordered + i);
    }
    lua_settop(L, keys);
    return (uint64_t)others;
}

/* Upvalues: the keys, how many of them are behind.  What was taken out meanwhile is passed over. */
static int
next_pair(lua_State *L)
{
    lua_Integer at = lua_tointeger(L, lua_upvalueindex(2));
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    for (;;) {
        if (lua_rawgeti(L, lua_upvalueindex(1), ++at) == LUA_TNIL)
            return 1;
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) != LUA_TNIL)
            break;
        lua_settop(L, 1);
    }
    lua_pushinteger(L, at);
    lua_replace(L, lua_upvalueindex(2));
    return 2;
}

static int
served_pairs(lua_State *L)
{
    errand__lua_run *run = run_of(L, true);
    luaL_checkany(L, 1);
    if (run == NULL || lua_type(L, 1) != LUA_TTABLE)
        return pass(L);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pop(L, 1);
        return pass(L);
    }
    lua_settop(L, 1);
    if (is_list(L))
        return pass(L);
    uint64_t others = push_keys(L);
    if (others > 1) {
        unsigned char bytes[8];
        for (int i = 0; i < 8; i++)
            bytes[i] = (unsigned char)(others >> (8 * i));
        errand_status status =
            errand_audit_note(run->runtime, "pairs by address", bytes, sizeof bytes);
        if (status != ERRAND_OK)
            errand__lua_error_status(L, status, "pairs");
    }
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_pair, 2);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

/* ---- all ------------------------------------------------------------------------------------------ */

/* Puts function in front of the field of the table at the top, once. */
static void
serve(lua_State *L, const char *name, lua_CFunction function)
{
    if (lua_getfield(L, -1, name) != LUA_TFUNCTION ||
        lua_tocfunction(L, -1) == function) {
        lua_pop(L, 1);
        return;
    }
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, LUA_TABLIBNAME) == LUA_TTABLE)
        lua_getfield(L, -1, "sort");
    else
        lua_pushnil(L);
    lua_replace(L, -3);
    lua_pop(L, 1);
    if (function == served_pairs && lua_isnil(L, -1)) {
        lua_pop(L, 2);
        return;
    }
    lua_pushcclosure(L, function, 2);
    lua_setfield(L, -2, name);
}

void
errand__lua_served_open(lua_State *L)
{
    static const struct {
        const char *library, *name;
        lua_CFunction function;
    } all[] = {
        {LUA_OSLIBNAME, "time", served_time},
        {LUA_OSLIBNAME, "clock", served_clock},
        {LUA_OSLIBNAME, "date", served_date},
        {LUA_OSLIBNAME, "getenv", served_getenv},
        {LUA_MATHLIBNAME, "random", served_random},
        {LUA_MATHLIBNAME, "randomseed", served_randomseed},
        {LUA_GNAME, "pairs", served_pairs},
    };
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (lua_getfield(L, -1, all[i].library) == LUA_TTABLE)
            serve(L, all[i].name, all[i].function);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}
