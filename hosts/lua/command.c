/* SPDX-License-Identifier: MIT */
/* command: child processes.
 *
 * Design notes.  The arrays of pointers are userdata and the strings lie in a table, both on the
 * stack, so that an error half-way leaks nothing.  The environment is sorted: the order of a Lua
 * table is not the same in two processes, and the child would see it. */
#include "io.h"
#include <stdlib.h>
#include <string.h>

/* The key below the top is no name: it must be a place in the list of words. */
static void
check_place(lua_State *L, const char *operation)
{
    if (lua_getfield(L, 1, "argv") != LUA_TNIL)
        luaL_error(L,
                   "%s: the words are given twice: put all of them into argv, or "
                   "leave argv out",
                   operation);
    lua_pop(L, 1);
    if (!lua_isinteger(L, -2))
        luaL_error(L, "%s: a key is a %s: use places of the list, and names", operation,
                   luaL_typename(L, -2));
    lua_Integer place = lua_tointeger(L, -2);
    if (place < 1 || place > luaL_len(L, 1))
        luaL_error(L,
                   "%s: word %I stands outside the list: its places are 1, 2 and "
                   "so on without a gap",
                   operation, (LUAI_UACINT)place);
}

void
errand__lua_command_fields(lua_State *L, const char *operation, const char *const *fields)
{
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            check_place(L, operation);
            continue;
        }
        const char *name = lua_tostring(L, -2);
        size_t i = 0;
        while (fields[i] != NULL && strcmp(fields[i], name) != 0)
            i++;
        if (fields[i] == NULL) {
            errand__lua_io_names(L, fields);
            luaL_error(L, "%s: no field is called '%s': use %s", operation, name,
                       lua_tostring(L, -1));
        }
    }
}

/* The string at the top as text without zero bytes; numbers are converted in place. */
static const char *
top_text(lua_State *L, const char *operation, const char *what)
{
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    if (text == NULL)
        luaL_error(L, "%s: %s must be a string, not %s", operation, what,
                   luaL_typename(L, -1));
    if (strlen(text) != length)
        luaL_error(L, "%s: %s holds a zero byte", operation, what);
    return text;
}

const char *const *
errand__lua_command_argv(lua_State *L, const char *operation)
{
    if (lua_getfield(L, 1, "argv") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushvalue(L, 1);
    }
    if (!lua_istable(L, -1))
        luaL_error(L, "%s: argv must be a list of strings, not %s", operation,
                   luaL_typename(L, -1));
    int list = lua_gettop(L);
    lua_Integer count = luaL_len(L, list);
    if (count < 1 || count > 1 << 20)
        luaL_error(L,
                   "%s: argv is empty: give the command and its arguments, as in "
                   "errand.%s{'sort', '-u'}",
                   operation, operation);
    lua_createtable(L, (int)count, 0);
    const char **argv = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *argv, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_geti(L, list, i);
        argv[i - 1] = top_text(L, operation, "each of argv");
        if (i == 1 && argv[0][0] == '\0')
            errand__lua_error_raise(L, "inval", operation,
                                    "the command's name is empty: give one, as in "
                                    "errand.%s{'sort', '-u'}",
                                    operation);
        lua_rawseti(L, list + 1, i);
    }
    argv[count] = NULL;
    return argv;
}

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The string below the top. */
static void
check_env_name(lua_State *L, const char *operation)
{
    const char *name = lua_tostring(L, -2);
    if (name[0] == '\0' || strchr(name, '=') != NULL)
        luaL_error(L, "%s: env has the name '%s': a name is not empty and holds no =",
                   operation, name);
}

const char *const *
errand__lua_command_env(lua_State *L, const char *operation)
{
    int kind = lua_getfield(L, 1, "env");
    if (kind == LUA_TNIL)
        return NULL;
    if (kind != LUA_TTABLE)
        luaL_error(L, "%s: env must be a table of names and values, not %s", operation,
                   luaL_typename(L, -1));
    int table = lua_gettop(L);
    lua_Integer count = 0;
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_settop(L, table + 2)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "%s: env must be a table of names and values", operation);
        check_env_name(L, operation);
        const char *value = top_text(L, operation, "each value of env");
        lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), value);
        lua_rawseti(L, table + 1, ++count);
    }
    const char **env = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *env, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, table + 1, i);
        env[i - 1] = top_text(L, operation, "each name of env");
        lua_pop(L, 1);
    }
    env[count] = NULL;
    qsort(env, (size_t)count, sizeof *env, compare_texts);
    return env;
}

void
errand__lua_command_line(lua_State *L, const char *const *argv)
{
    luaL_Buffer line;
    luaL_buffinit(L, &line);
    for (size_t i = 0; argv[i] != NULL && luaL_bufflen(&line) < 200; i++) {
        if (i > 0)
            luaL_addchar(&line, ' ');
        luaL_addstring(&line, argv[i]);
    }
    luaL_pushresult(&line);
}

static void
fill_command(lua_State *L, errand_spec *spec, void *arg)
{
    static const char *const fields[] = {"argv",        "input",      "env",
                                         "cwd",         "output_max", "domain",
                                         "effect_free", "stream",     NULL};
    (void)arg;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    errand__lua_command_fields(L, "command", fields);
    errand_command_config config = {.struct_size = sizeof config};
    config.argv = errand__lua_command_argv(L, "command");
    config.env = errand__lua_command_env(L, "command");
    if (lua_getfield(L, 1, "cwd") != LUA_TNIL) {
        config.cwd = top_text(L, "command", "cwd");
        if (config.cwd[0] == '\0')
            errand__lua_error_raise(L, "inval", "command",
                                    "cwd is empty: give a folder, or leave it out");
    }
    if (lua_getfield(L, 1, "output_max") != LUA_TNIL) {
        lua_Integer max = lua_tointeger(L, -1);
        if (max < 1)
            luaL_error(L, "command: output_max must be a whole number of bytes above 0");
        config.output_max = (size_t)max;
    }
    if (lua_getfield(L, 1, "input") != LUA_TNIL) {
        config.input = lua_tolstring(L, -1, &config.input_size);
        if (config.input == NULL)
            luaL_error(L, "command: input must be a string, not %s",
                       luaL_typename(L, -1));
    }
    errand__lua_work_option options;
    errand__lua_work_options(L, 1, "command", &options);
    errand__lua_command_line(L, config.argv);
    errand__lua_work_filled(L, errand_spec_command(spec, &config), "command");
    spec->domain = options.domain;
    spec->flags = options.effect_free ? ERRAND_SPEC_EFFECT_FREE : 0;
}

static int
push_command(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    void *data = NULL;
    size_t size = 0;
    if (errand_completion_read(completion, &errand_command_result_type, &data, &size) !=
        ERRAND_OK)
        errand__lua_error_raise(L, "decode", "command", "%s", completion->message);
    errand_command_result *result = data;
    lua_createtable(L, 0, 4);
    lua_pushlstring(L, (const char *)result->out, result->out_size);
    lua_setfield(L, -2, "output");
    lua_pushlstring(L, (const char *)result->err, result->err_size);
    lua_setfield(L, -2, "errors");
    if (result->signal_number == 0) {
        lua_pushinteger(L, result->exit_status);
        lua_setfield(L, -2, "status");
    } else {
        lua_pushinteger(L, result->signal_number);
        lua_setfield(L, -2, "signal");
    }
    return 1;
}

static const errand_lua_job job = {.struct_size = sizeof(errand_lua_job),
                                   .name = "command",
                                   .fill = fill_command,
                                   .push = push_command};

/* Upvalue 1 is the job, as of errand__lua_work_verb. */
static int
verb_command(lua_State *L)
{
    bool streams = lua_istable(L, 1) && errand__lua_io_flag(L, 1, "stream");
    return streams ? errand__lua_verb_process(L) : errand__lua_work_verb(L);
}

void
errand__lua_command_open(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)&job);
    lua_pushcclosure(L, verb_command, 1);
    lua_setfield(L, -2, "command");
}
