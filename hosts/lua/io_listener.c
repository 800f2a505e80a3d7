/* SPDX-License-Identifier: MIT */
/* io_listener: what scripts do with listeners and datagrams, and errand.accept, send, recv.
 *
 * Design notes.  errand.send(thing, ...) and errand.recv(thing, ...) are the methods of the thing.
 * In seeded orders a run waits for each operation that is due, so it cannot be its own peer.  The
 * state keeps a list of its listeners, which keeps none of them alive, and a connection to one of
 * them is refused there: most seeds would wait for ever. */
#include "io.h"
#include <string.h>

static const char listeners_key;

/* ---- listeners --------------------------------------------------------------------------- */

void
errand__lua_listener_push(lua_State *L, errand_listener *listener)
{
    errand_listener **own = lua_newuserdatauv(L, sizeof(errand_listener *), 0);
    *own = NULL;
    luaL_setmetatable(L, ERRAND__LUA_LISTENER);
    *own = errand_listener_hold(listener);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &listeners_key);
    lua_pushvalue(L, -2);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* Does who listens there hear what is sent to that address? */
static bool
is_heard(const errand_endpoint *there, const errand_endpoint *to)
{
    static const unsigned char any[sizeof to->bytes];
    if (to->family == ERRAND_ENDPOINT_UNIX)
        return there->family == to->family && there->path_size == to->path_size &&
               memcmp(there->path, to->path, to->path_size) == 0;
    return there->port == to->port && there->family != ERRAND_ENDPOINT_UNIX &&
           (memcmp(there->bytes, any, sizeof any) == 0 ||
            (there->family == to->family &&
             memcmp(there->bytes, to->bytes, sizeof any) == 0));
}

void
errand__lua_listener_refuse(lua_State *L, const errand__lua_run *run,
                            const errand_endpoint *to, const char *operation)
{
    int top = lua_gettop(L);
    bool found = false;
    if (run->options.order == ERRAND_ORDER_ARRIVAL)
        return;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &listeners_key);
    for (lua_pushnil(L); lua_next(L, top + 1) != 0; lua_pop(L, 1)) {
        errand_listener *const *own = luaL_testudata(L, -2, ERRAND__LUA_LISTENER);
        if (own == NULL || *own == NULL)
            continue;
        errand_endpoint there = errand_listener_local(*own);
        found = found || is_heard(&there, to);
    }
    lua_settop(L, top);
    if (!found)
        return;
    errand__lua_io_push_endpoint(L, to);
    errand__lua_error_raise(
        L, "misuse", operation,
        "this run listens at %s itself, and in a seeded order both sides would wait for "
        "each other: talk to another process, or use the order arrival",
        lua_tostring(L, -1));
}

static errand_listener *
check_listener(lua_State *L, const char *operation)
{
    errand_listener **own = luaL_checkudata(L, 1, ERRAND__LUA_LISTENER);
    if (*own == NULL)
        errand__lua_error_raise(L, "closed", operation, "the listener was closed");
    return *own;
}

static void
fill_accept(lua_State *L, errand_spec *spec)
{
    errand_listener *listener = check_listener(L, "accept");
    errand__lua_io_filled(L, errand_spec_accept(spec, listener), "accept");
}

static int
push_accept(lua_State *L, errand_completion *completion)
{
    errand__lua_stream_push(
        L, errand__lua_io_payload(L, completion, &errand_stream_type, "accept"));
    return 1;
}

static int
listener_address(lua_State *L)
{
    errand_endpoint local = errand_listener_local(check_listener(L, "address"));
    return errand__lua_io_push_endpoint(L, &local);
}

static int
listener_close(lua_State *L)
{
    errand_listener **own = luaL_checkudata(L, 1, ERRAND__LUA_LISTENER);
    errand_listener_close(*own);
    errand_listener_abandon(own);
    return 0;
}

/* ---- datagrams ------------------------------------------------------------------------------ */

void
errand__lua_datagram_push(lua_State *L, errand_datagram *datagram)
{
    errand_datagram **own = lua_newuserdatauv(L, sizeof(errand_datagram *), 0);
    *own = NULL;
    luaL_setmetatable(L, ERRAND__LUA_DATAGRAM);
    *own = errand_datagram_hold(datagram);
}

static errand_datagram *
check_datagram(lua_State *L, const char *operation)
{
    errand_datagram **own = luaL_checkudata(L, 1, ERRAND__LUA_DATAGRAM);
    if (*own == NULL)
        errand__lua_error_raise(L, "closed", operation, "the datagram was closed");
    return *own;
}

static void
fill_send(lua_State *L, errand_spec *spec)
{
    errand_datagram *datagram = check_datagram(L, "send");
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    errand_endpoint to = {.family = 0};
    luaL_argcheck(L, size <= 65507, 2, "a packet has at most 65507 bytes");
    if (!lua_isnoneornil(L, 3))
        to = errand__lua_io_endpoint(L, luaL_checkstring(L, 3), "to", "send");
    errand__lua_io_filled(
        L,
        errand_spec_send_packet(spec, datagram, to.family != 0 ? &to : NULL, bytes, size),
        "send");
}

static void
fill_recv(lua_State *L, errand_spec *spec)
{
    errand_datagram *datagram = check_datagram(L, "recv");
    size_t max = errand__lua_io_size(L, 2, 65536);
    errand__lua_io_filled(L, errand_spec_receive_packet(spec, datagram, max), "recv");
}

static int
push_recv(lua_State *L, errand_completion *completion)
{
    const errand_packet *packet =
        errand__lua_io_payload(L, completion, &errand_packet_type, "recv");
    lua_pushlstring(L, (const char *)packet->bytes.bytes, packet->bytes.size);
    errand__lua_io_push_endpoint(L, &packet->from);
    lua_pushboolean(L, packet->cut);
    return 3;
}

static int
datagram_address(lua_State *L)
{
    errand_endpoint local = errand_datagram_local(check_datagram(L, "address"));
    return errand__lua_io_push_endpoint(L, &local);
}

static int
datagram_close(lua_State *L)
{
    errand_datagram **own = luaL_checkudata(L, 1, ERRAND__LUA_DATAGRAM);
    errand_datagram_close(*own);
    errand_datagram_abandon(own);
    return 0;
}

/* ---- as functions of the module ----------------------------------------------------------------- */

static int
method_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L);
}

/* The method that is named by upvalue 1. */
static int
verb_method(lua_State *L)
{
    errand__lua_wait_task(L, lua_tostring(L, lua_upvalueindex(1)));
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__index") != LUA_TTABLE)
        luaL_typeerror(L, 1, "stream, listener or datagram");
    lua_pushvalue(L, lua_upvalueindex(1));
    if (lua_gettable(L, -2) != LUA_TFUNCTION)
        luaL_argerror(L, 1, "this cannot be done with it");
    lua_remove(L, -2);
    lua_insert(L, 1);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, method_over);
    return method_over(L, LUA_OK, 0);
}

void
errand__lua_listener_open(lua_State *L)
{
    static const errand__lua_io_verb listener_verbs[] = {
        {"accept", fill_accept, push_accept, NULL}, {NULL, NULL, NULL, NULL}};
    static const errand__lua_io_verb datagram_verbs[] = {
        {"send", fill_send, NULL, NULL},
        {"recv", fill_recv, push_recv, NULL},
        {NULL, NULL, NULL, NULL}};
    static const char *const words[] = {"accept", "send", "recv"};
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &listeners_key);
    errand__lua_io_class(L, ERRAND__LUA_LISTENER, listener_close);
    lua_pushcfunction(L, listener_address);
    lua_setfield(L, -2, "address");
    errand__lua_io_verbs(L, listener_verbs);
    lua_pop(L, 2);
    errand__lua_io_class(L, ERRAND__LUA_DATAGRAM, datagram_close);
    lua_pushcfunction(L, datagram_address);
    lua_setfield(L, -2, "address");
    errand__lua_io_verbs(L, datagram_verbs);
    lua_pop(L, 2);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        lua_pushstring(L, words[i]);
        lua_pushcclosure(L, verb_method, 1);
        lua_setfield(L, -2, words[i]);
    }
}
