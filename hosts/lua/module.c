/* SPDX-License-Identifier: MIT */
/* module: the table that require "errand" answers.
 *
 * Design notes.  Every verb looks for the run in progress itself, so the table is the same
 * inside and outside of errand.run, and a verb outside names errand.run. */
#include "io.h"

static void
add_jobs(lua_State *L, const errand_lua_job *jobs)
{
    for (; jobs->name != NULL; jobs++) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)jobs);
        lua_pushcclosure(L, errand__lua_work_verb, 1);
        lua_setfield(L, -2, jobs->name);
    }
}

/* Lua names a function in its messages by what is loaded, one table deep: "errand.http.get", not "?". */
static void
name_parts(lua_State *L)
{
    static const char *const parts[][2] = {{"ffi", "errand.ffi"},
                                           {"http", "errand.http"}};

    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        lua_getfield(L, -2, parts[i][0]);
        lua_setfield(L, -2, parts[i][1]);
    }
    lua_pop(L, 1);
}

int
luaopen_errand(lua_State *L)
{
    static const luaL_Reg waiting[] = {
        {"run", errand__lua_verb_run},       {"sleep", errand__lua_verb_sleep},
        {"yield", errand__lua_verb_yield},   {"shield", errand__lua_verb_shield},
        {"await", errand__lua_verb_await},   {"timeout", errand__lua_verb_timeout},
        {"gather", errand__lua_verb_gather}, {"race", errand__lua_verb_race},
        {"job", errand__lua_verb_job},       {NULL, NULL},
    };
    luaL_checkversion(L);
    errand__lua_error_open(L);
    errand__lua_task_open(L);
    errand__lua_run_open(L);
    errand__lua_tree_open(L);
    errand__lua_served_open(L);
    luaL_newlib(L, waiting);
    luaL_setfuncs(L, errand__lua_handle_verbs, 0);
    luaL_setfuncs(L, errand__lua_information_verbs, 0);
    luaL_setfuncs(L, errand__lua_choice_verbs, 0);
    luaL_setfuncs(L, errand__lua_tree_verbs, 0);
    add_jobs(L, errand__lua_files_jobs);
    errand__lua_command_open(L);
    errand__lua_io_open(L);
    errand__lua_ffi_open(L);
    lua_setfield(L, -2, "ffi");
    lua_pushstring(L, errand_version());
    lua_setfield(L, -2, "version");
    name_parts(L);
    return 1;
}
