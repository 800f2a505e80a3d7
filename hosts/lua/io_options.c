/* SPDX-License-Identifier: MIT */
/* io_options: arguments of verbs about sockets, requests, processes and signals.
 *
 * Design notes.  A field that nobody knows is an error: a slip of the pen must not run without the
 * limit that was meant. */
#include "io.h"
#include <signal.h>
#include <string.h>

static bool
is_known(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

void
errand__lua_io_names(lua_State *L, const char *const *names)
{
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (size_t i = 0; names[i] != NULL; i++) {
        if (i > 0)
            luaL_addstring(&text, names[i + 1] == NULL ? " and " : ", ");
        luaL_addstring(&text, names[i]);
    }
    luaL_pushresult(&text);
}

bool
errand__lua_io_options(lua_State *L, int index, const char *operation,
                       const char *const *names)
{
    if (lua_isnoneornil(L, index))
        return false;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        const char *name =
            lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
        if (lua_type(L, -2) == LUA_TSTRING && is_known(name, names))
            continue;
        errand__lua_io_names(L, names);
        luaL_error(L, "%s: no option is called '%s': use %s", operation, name,
                   lua_tostring(L, -1));
    }
    return true;
}

uint64_t
errand__lua_io_seconds(lua_State *L, int index, const char *name, const char *operation)
{
    uint64_t ns = 0;
    if (lua_getfield(L, index, name) != LUA_TNIL) {
        lua_Number seconds = lua_tonumber(L, -1);
        if (!lua_isnumber(L, -1) || !(seconds > 0) || seconds >= 9e9)
            luaL_error(L, "%s: %s must be a number of seconds above 0", operation, name);
        ns = (uint64_t)(seconds * 1e9 + 0.5);
        ns += ns == 0;
    }
    lua_pop(L, 1);
    return ns;
}

uint64_t
errand__lua_io_number(lua_State *L, int index, const char *name, const char *operation,
                      uint64_t most)
{
    lua_Integer number = 0;
    if (lua_getfield(L, index, name) != LUA_TNIL) {
        int exact;
        number = lua_tointegerx(L, -1, &exact);
        if (!exact || number < 0 || (uint64_t)number > most)
            luaL_error(L, "%s: %s must be a whole number, at most %I", operation, name,
                       (LUAI_UACINT)most);
    }
    lua_pop(L, 1);
    return (uint64_t)number;
}

bool
errand__lua_io_flag(lua_State *L, int index, const char *name)
{
    lua_getfield(L, index, name);
    bool set = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

const char *
errand__lua_io_text(lua_State *L, int index, const char *name, const char *operation)
{
    if (lua_getfield(L, index, name) == LUA_TNIL)
        return NULL;
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    if (lua_type(L, -1) != LUA_TSTRING || strlen(text) != length)
        luaL_error(L, "%s: %s must be a string without a zero byte", operation, name);
    return text;
}

size_t
errand__lua_io_size(lua_State *L, int index, lua_Integer missing)
{
    lua_Integer size =
        missing == 0 ? luaL_checkinteger(L, index) : luaL_optinteger(L, index, missing);
    luaL_argcheck(L, size >= 1 && size <= ERRAND_RECEIVE_MAX, index,
                  "a number of bytes is 1 to 2^30");
    return (size_t)size;
}

errand_endpoint
errand__lua_io_endpoint(lua_State *L, const char *text, const char *what,
                        const char *operation)
{
    errand_endpoint endpoint = {.family = 0};
    if (errand_endpoint_parse(text, &endpoint) != ERRAND_OK)
        errand__lua_error_raise(L, "inval", operation,
                                "%s '%.100s' is no address: write '127.0.0.1:80', "
                                "'[::1]:80' or 'unix:/path'; ports end at 65535",
                                what, text);
    return endpoint;
}

int
errand__lua_io_push_endpoint(lua_State *L, const errand_endpoint *endpoint)
{
    char text[ERRAND_ENDPOINT_TEXT];
    if (endpoint->family == 0) {
        lua_pushnil(L);
        return 1;
    }
    errand_endpoint_print(endpoint, text, sizeof text);
    lua_pushstring(L, text);
    return 1;
}

/* ---- signals ------------------------------------------------------------------------------------ */

int32_t
errand__lua_io_signal(lua_State *L, int index, const char *operation)
{
    if (lua_isinteger(L, index)) {
        lua_Integer number = lua_tointeger(L, index);
        luaL_argcheck(L, number >= 1 && number <= 64, index, "signals are 1 to 64");
        return (int32_t)number;
    }
    const char *name = luaL_checkstring(L, index);
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int32_t number = 1; number < 32; number++) {
        const char *known = sigabbrev_np(number);
        if (known != NULL && strcmp(known, name) == 0)
            return number;
    }
    errand__lua_error_raise(L, "inval", operation,
                            "no signal is called '%.40s': write 'TERM', 'USR1' or a "
                            "number",
                            name);
}

void
errand__lua_io_push_signal(lua_State *L, int32_t number)
{
    const char *name = sigabbrev_np(number);
    if (name != NULL)
        lua_pushstring(L, name);
    else
        lua_pushfstring(L, "%d", (int)number);
}
