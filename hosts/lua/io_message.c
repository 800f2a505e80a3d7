/* SPDX-License-Identifier: MIT */
/* io_message: a request's headers, and what a web server answered, between tables and C. */
#include "io_request.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Pushes the texts, "Name: value" each, and the sorted array of pointers to them, of the table on
 * top, which goes: the order of a Lua table is not the same in two processes. */
void
errand__lua_request_headers(lua_State *L, const char *operation)
{
    int given = lua_gettop(L);
    lua_Integer count = 0;
    if (!lua_isnil(L, given) && !lua_istable(L, given))
        luaL_error(L, "%s: headers must be a table of names and values", operation);
    lua_newtable(L);
    for (lua_pushnil(L); lua_istable(L, given) && lua_next(L, given) != 0;
         lua_settop(L, given + 2)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isstring(L, -1))
            luaL_error(L, "%s: headers must be a table of names and values", operation);
        size_t size;
        lua_pushfstring(L, "%s: %s", lua_tostring(L, -2), lua_tostring(L, -1));
        const char *text = lua_tolstring(L, -1, &size);
        if (strpbrk(text, "\r\n") != NULL ||
            lua_rawlen(L, -2) + lua_rawlen(L, -3) + 2 != size)
            luaL_error(L, "%s: a header holds a line break or a zero byte", operation);
        size = strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (size == 0 || size != lua_rawlen(L, -3))
            luaL_error(L, "%s: '%s' is no name of a header", operation,
                       lua_tostring(L, -3));
        lua_rawseti(L, given + 1, ++count);
    }
    lua_settop(L, given + 1);
    const char **all = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *all, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, given + 1, i);
        all[i - 1] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    all[count] = NULL;
    qsort(all, (size_t)count, sizeof *all, compare_texts);
    lua_remove(L, given);
}

/* They are for the origin that they were given for. */
void
errand__lua_request_forget(lua_State *L)
{
    static const char *const names[] = {
        "authorization:", "cookie:", "proxy-authorization:"};
    const char **all = lua_touserdata(L, REQUEST_HEADERS), **kept = all;
    for (; *all != NULL; all++) {
        bool secret = false;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            secret = secret || strncasecmp(*all, names[i], strlen(names[i])) == 0;
        if (!secret)
            *kept++ = *all;
    }
    *kept = NULL;
}

/* ---- what came ------------------------------------------------------------------- */

/* Pushes {name in lower case = value}, those of one name joined, and the list of all. */
static void
push_fields(lua_State *L, const errand_http_response *response)
{
    lua_newtable(L);
    lua_createtable(L, (int)response->header_count, 0);
    for (size_t i = 0; i < response->header_count; i++) {
        const errand_http_header *header = &response->headers[i];
        luaL_Buffer name;
        lua_createtable(L, 0, 2);
        lua_pushstring(L, header->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, header->value);
        lua_setfield(L, -2, "value");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        luaL_buffinit(L, &name);
        for (const char *at = header->name; *at != '\0'; at++)
            luaL_addchar(&name, (char)tolower((unsigned char)*at));
        luaL_pushresult(&name);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -4) == LUA_TSTRING) {
            lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), header->value);
            lua_remove(L, -2);
        } else {
            lua_pop(L, 1);
            lua_pushstring(L, header->value);
        }
        lua_rawset(L, -4);
    }
}

int
errand__lua_request_push(lua_State *L, const errand__lua_request *self,
                         const errand_http_response *response)
{
    lua_createtable(L, 0, 6);
    lua_pushinteger(L, response->status);
    lua_setfield(L, -2, "status");
    lua_pushstring(L, response->url);
    lua_setfield(L, -2, "url");
    if (response->location != NULL) {
        lua_pushstring(L, response->location);
        lua_setfield(L, -2, "location");
    }
    push_fields(L, response);
    lua_setfield(L, -3, "fields");
    lua_setfield(L, -2, "headers");
    if ((self->flags & ERRAND_HTTP_STREAM) != 0)
        *errand__lua_source_new(L, self->name, errand__lua_source_bytes) =
            errand_source_hold(response->pieces);
    else
        lua_pushlstring(L, (const char *)response->body.bytes, response->body.size);
    lua_setfield(L, -2, "body");
    return 1;
}
