/* SPDX-License-Identifier: MIT */
/* ffi_buffer: memory that foreign calls work on in place; while one has it, nobody looks. */
#include "ffi.h"
#include <string.h>

static errand_ffi_buffer **
check_buffer(lua_State *L)
{
    errand_ffi_buffer **own = luaL_checkudata(L, 1, ERRAND__LUA_BUFFER);

    if (*own == NULL) /* a script may have called its __gc */
        errand__lua_error_raise(L, "misuse", "buffer", "the buffer was closed");
    return own;
}

int
errand__lua_ffi_buffer(lua_State *L)
{
    lua_Integer size = luaL_checkinteger(L, 1);

    luaL_argcheck(L, size > 0, 1, "a buffer has at least one byte");
    errand_ffi_buffer **own = lua_newuserdatauv(L, sizeof *own, 0);
    *own = NULL;
    luaL_setmetatable(L, ERRAND__LUA_BUFFER);
    errand__lua_work_filled(L, errand_ffi_buffer_create((size_t)size, own), "ffi.buffer");
    return 1;
}

static int
buffer_collect(lua_State *L)
{
    errand_ffi_buffer_abandon(luaL_checkudata(L, 1, ERRAND__LUA_BUFFER));
    return 0;
}

static int
buffer_length(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)errand_ffi_buffer_size(*check_buffer(L)));
    return 1;
}

/* buffer:get(from, to), counted from 1 as string.sub does; refused while a call has it. */
static int
buffer_get(lua_State *L)
{
    errand_ffi_buffer *buffer = *check_buffer(L);
    lua_Integer size = (lua_Integer)errand_ffi_buffer_size(buffer);
    lua_Integer from = luaL_optinteger(L, 2, 1), to = luaL_optinteger(L, 3, size);

    luaL_argcheck(L, from >= 1, 2, "bytes are counted from 1");
    luaL_argcheck(L, to <= size, 3, "the buffer is shorter");
    if (errand_ffi_buffer_pinned(buffer))
        errand__lua_error_raise(L, "busy", "buffer", "a call that is out works on it");
    const char *bytes = errand_ffi_buffer_data(buffer);
    lua_pushlstring(L, from > to ? "" : bytes + from - 1,
                    from > to ? 0 : (size_t)(to - from + 1));
    return 1;
}

static int
buffer_set(lua_State *L)
{
    errand_ffi_buffer *buffer = *check_buffer(L);
    lua_Integer from = luaL_checkinteger(L, 2);
    size_t length, size = errand_ffi_buffer_size(buffer);
    const char *bytes = luaL_checklstring(L, 3, &length);

    luaL_argcheck(L, from >= 1, 2, "bytes are counted from 1");
    luaL_argcheck(L, length <= size && (size_t)from - 1 <= size - length, 3,
                  "the buffer is shorter");
    if (errand_ffi_buffer_pinned(buffer))
        errand__lua_error_raise(L, "busy", "buffer", "a call that is out works on it");
    memcpy((char *)errand_ffi_buffer_data(buffer) + from - 1, bytes, length);
    return 0;
}

static int
buffer_resize(lua_State *L)
{
    lua_Integer size = luaL_checkinteger(L, 2);

    luaL_argcheck(L, size > 0, 2, "a buffer has at least one byte");
    errand_status status = errand_ffi_buffer_resize(*check_buffer(L), (size_t)size);
    if (status == ERRAND_EBUSY)
        errand__lua_error_raise(L, "busy", "buffer", "a call that is out works on it");
    errand__lua_work_filled(L, status, "buffer");
    return 0;
}

const luaL_Reg errand__lua_ffi_buffer_methods[] = {
    {"get", buffer_get},      {"set", buffer_set},      {"resize", buffer_resize},
    {"__len", buffer_length}, {"__gc", buffer_collect}, {NULL, NULL}};
