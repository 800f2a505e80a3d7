/* SPDX-License-Identifier: MIT */
/* io_stream: what scripts do with a stream.
 *
 * Design notes.  Reading by lines takes more from the system than a line.  What is left over is kept
 * in the userdata, as a string and a place in it, and comes first in whatever is received next.
 * A receive whose wait was given up may have completed at that moment, with bytes that nobody heard
 * of: the half is spoiled whether or not its body knew.
 * A stream that the script lets go of closes itself. */
#include "io.h"
#include <string.h>

#define PIECE 65536 /* bytes asked for at a time where the script names no number */

typedef struct stream {
    errand_stream *stream; /* NULL = closed */
    size_t at, kept;       /* of the string that is user value 1; kept: still to give */
    bool resets;           /* linger: a close is no shutdown first */
    bool promised;         /* what is kept is part of a recv that is out */
    bool asked; /* bytes were, and did not come: they are out, or nobody heard of them */
} stream;

void
errand__lua_stream_push(lua_State *L, errand_stream *own)
{
    stream *self = lua_newuserdatauv(L, sizeof *self, 1);
    *self = (stream){.stream = NULL};
    luaL_setmetatable(L, ERRAND__LUA_STREAM);
    self->stream = errand_stream_hold(own);
}

static stream *
check(lua_State *L, const char *operation)
{
    stream *self = luaL_checkudata(L, 1, ERRAND__LUA_STREAM);
    if (self->stream == NULL)
        errand__lua_error_raise(L, "closed", operation, "the stream was closed");
    return self;
}

/* ---- what is kept ----------------------------------------------------------------------------- */

/* Pushes the kept bytes, at most max, and takes them out if wanted. */
static void
push_kept(lua_State *L, stream *self, size_t max, bool take)
{
    lua_getiuservalue(L, 1, 1);
    const char *bytes = lua_tostring(L, -1);
    size_t size = self->kept < max ? self->kept : max;
    lua_pushlstring(L, bytes + self->at, size);
    lua_remove(L, -2);
    if (!take)
        return;
    self->at += size;
    self->kept -= size;
    if (self->kept == 0) {
        lua_pushnil(L);
        lua_setiuservalue(L, 1, 1);
    }
}

/* The string on top goes behind what is kept. */
static void
keep(lua_State *L, stream *self)
{
    if (self->kept > 0) {
        push_kept(L, self, self->kept, false);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    size_t size;
    lua_tolstring(L, -1, &size);
    lua_setiuservalue(L, 1, 1);
    self->at = 0;
    self->kept = size;
}

/* ---- receive -------------------------------------------------------------------------------------- */

static stream *
check_source(lua_State *L, const char *operation)
{
    stream *self = check(L, operation);
    if (self->promised)
        errand__lua_error_raise(L, "busy", operation, "a recv on this stream is out");
    return self;
}

/* A spec that takes bytes was made. */
static void
ask(lua_State *L, stream *self, errand_status status, errand_spec *spec,
    const char *operation)
{
    errand__lua_io_filled(L, status, operation);
    if (self->asked) {
        errand_spec_abandon(spec);
        errand__lua_error_raise(L, "closed", operation,
                                "a receive before failed, or its wait was given up");
    }
    errand__lua_wait_running(L)->io_asks = &self->asked;
}

/* What a completion brought; nil is the end. */
static int
hear(lua_State *L, stream *self, errand_completion *completion, const char *operation)
{
    self->asked = false;
    return errand__lua_io_push_bytes(L, completion, operation);
}

static int
recv_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    stream *self = luaL_checkudata(L, 1, ERRAND__LUA_STREAM);
    size_t kept = self->promised ? self->kept : 0;
    self->promised = false;
    errand_completion *completion = errand__lua_io_completion(L, "recv");
    if (kept == 0)
        return hear(L, self, completion, "recv");
    push_kept(L, self, kept, true);
    hear(L, self, completion, "recv");
    lua_concat(L, 2);
    return 1;
}

static int
recv_begin(lua_State *L)
{
    errand__lua_task *task = errand__lua_io_task(L, "recv");
    errand_lease *lease = errand__lua_io_lease(L, task->run, "recv");
    errand_spec spec = ERRAND_SPEC_INIT;
    stream *self = check_source(L, "recv");
    size_t size = errand__lua_io_size(L, 2, 0);
    if (self->kept >= size) {
        push_kept(L, self, size, true);
        return 1;
    }
    ask(L, self, errand_spec_receive(&spec, self->stream, size - self->kept), &spec,
        "recv");
    self->promised = self->kept > 0;
    return errand__lua_io_await(L, task, lease, &spec, 0, "recv", recv_over, 0);
}

static int
some_ready(lua_State *L)
{
    stream *self = check_source(L, "recv_some");
    size_t max = errand__lua_io_size(L, 2, PIECE);
    if (self->kept == 0)
        return -1;
    push_kept(L, self, max, true);
    return 1;
}

static void
fill_some(lua_State *L, errand_spec *spec)
{
    stream *self = check(L, "recv_some");
    size_t max = errand__lua_io_size(L, 2, PIECE);
    ask(L, self, errand_spec_receive_some(spec, self->stream, max), spec, "recv_some");
}

static int
push_some(lua_State *L, errand_completion *completion)
{
    return hear(L, luaL_checkudata(L, 1, ERRAND__LUA_STREAM), completion, "recv_some");
}

static int
peek_ready(lua_State *L)
{
    stream *self = check(L, "peek");
    size_t max = errand__lua_io_size(L, 2, PIECE);
    if (self->kept == 0)
        return -1;
    push_kept(L, self, max, false);
    return 1;
}

/* for bytes in stream do: what a generic for gives besides is not its. */
static int
stream_call(lua_State *L)
{
    lua_settop(L, 1);
    return errand__lua_io_call(L);
}

static void
fill_peek(lua_State *L, errand_spec *spec)
{
    stream *self = check(L, "peek");
    size_t max = errand__lua_io_size(L, 2, PIECE);
    errand__lua_io_filled(L, errand_spec_peek(spec, self->stream, max), "peek");
}

static int
push_peek(lua_State *L, errand_completion *completion)
{
    errand__lua_io_push_bytes(L, completion, "peek");
    if (lua_isnil(L, -1))
        lua_pushliteral(L, "");
    return 1;
}

/* ---- lines -------------------------------------------------------------------------------------------- */

/* Pushes a line of what is kept and takes it out with its end; -1 = there is none yet. */
static int
line_ready(lua_State *L)
{
    stream *self = check_source(L, "recv_line");
    size_t max = errand__lua_io_size(L, 2, PIECE);
    if (self->kept == 0)
        return -1;
    lua_getiuservalue(L, 1, 1);
    const char *from = lua_tostring(L, -1) + self->at;
    const char *end = memchr(from, '\n', self->kept);
    size_t length = end == NULL ? self->kept : (size_t)(end - from);
    bool returns = end != NULL && length > 0 && end[-1] == '\r';
    if (length - returns > max)
        errand__lua_error_raise(L, "too_large", "recv_line",
                                "the line has more than %zu bytes", max);
    lua_pop(L, 1);
    if (end == NULL)
        return -1;
    push_kept(L, self, length + 1, true);
    lua_pushlstring(L, lua_tostring(L, -1), length - returns);
    return 1;
}

static int line_begin(lua_State *L);

static int
line_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    stream *self = luaL_checkudata(L, 1, ERRAND__LUA_STREAM);
    errand_completion *completion = errand__lua_io_completion(L, "recv_line");
    hear(L, self, completion, "recv_line");
    if (lua_isnil(L, -1)) { /* the end: what is left is the last line */
        if (self->stream != NULL && self->kept > 0)
            push_kept(L, self, self->kept, true);
        return 1;
    }
    keep(L, self);
    return line_begin(L);
}

static int
line_begin(lua_State *L)
{
    errand__lua_task *task = errand__lua_io_task(L, "recv_line");
    errand_lease *lease = errand__lua_io_lease(L, task->run, "recv_line");
    errand_spec spec = ERRAND_SPEC_INIT;
    int results = line_ready(L);
    if (results >= 0)
        return results;
    stream *self = check(L, "recv_line");
    ask(L, self, errand_spec_receive_some(&spec, self->stream, PIECE), &spec,
        "recv_line");
    return errand__lua_io_await(L, task, lease, &spec, 0, "recv_line", line_over, 0);
}

/* ---- send -------------------------------------------------------------------------------------------------- */

static void
fill_send(lua_State *L, errand_spec *spec)
{
    stream *self = check(L, "send");
    int count = lua_gettop(L) - 1;
    size_t size;
    if (count <= 1) {
        const char *bytes = luaL_checklstring(L, 2, &size);
        errand__lua_io_filled(L, errand_spec_send(spec, self->stream, bytes, size),
                              "send");
        return;
    }
    luaL_argcheck(L, count <= 200, 202, "too many strings at once");
    errand_file_bytes parts[200];
    for (int i = 0; i < count; i++) {
        const char *bytes = luaL_checklstring(L, i + 2, &size);
        parts[i] = (errand_file_bytes){(const unsigned char *)bytes, size};
    }
    errand__lua_io_filled(
        L, errand_spec_send_parts(spec, self->stream, parts, (size_t)count), "send");
}

static void
fill_shutdown(lua_State *L, errand_spec *spec)
{
    static const char *const words[] = {"receive", "send", "both", NULL};
    stream *self = check(L, "shutdown");
    int half = luaL_checkoption(L, 2, "send", words) + 1;
    errand__lua_io_filled(L, errand_spec_shutdown(spec, self->stream, (errand_half)half),
                          "shutdown");
}

/* ---- at once ---------------------------------------------------------------------------------------------------- */

static int
stream_close(lua_State *L)
{
    stream *self = luaL_checkudata(L, 1, ERRAND__LUA_STREAM);
    if (!self->resets)
        errand_stream_close(self->stream);
    errand_stream_abandon(&self->stream);
    self->kept = 0;
    lua_pushnil(L);
    lua_setiuservalue(L, 1, 1);
    return 0;
}

static int
stream_address(lua_State *L)
{
    errand_endpoint local = errand_stream_local(check(L, "address")->stream);
    return errand__lua_io_push_endpoint(L, &local);
}

static int
stream_peer(lua_State *L)
{
    errand_endpoint peer = errand_stream_peer(check(L, "peer")->stream);
    return errand__lua_io_push_endpoint(L, &peer);
}

errand_status
errand__lua_stream_put(lua_State *L, int object, errand_stream_option option,
                       uint64_t value)
{
    stream *self = luaL_checkudata(L, object, ERRAND__LUA_STREAM);
    errand_status status = errand_stream_set(self->stream, option, value);
    if (status == ERRAND_OK && option == ERRAND_STREAM_LINGER)
        self->resets = value != 0;
    return status;
}

static int
stream_set(lua_State *L)
{
    check(L, "set");
    luaL_checktype(L, 2, LUA_TTABLE);
    errand__lua_io_options(L, 2, "set", errand__lua_stream_options);
    errand__lua_stream_settings(L, 2, 1, "set");
    return 0;
}

void
errand__lua_stream_open(lua_State *L)
{
    static const errand__lua_io_verb verbs[] = {
        {"recv_some", fill_some, push_some, some_ready},
        {"peek", fill_peek, push_peek, peek_ready},
        {"send", fill_send, NULL, NULL},
        {"shutdown", fill_shutdown, NULL, NULL},
        {NULL, NULL, NULL, NULL},
    };
    static const luaL_Reg methods[] = {
        {"recv", recv_begin},  {"recv_line", line_begin}, {"address", stream_address},
        {"peer", stream_peer}, {"set", stream_set},       {NULL, NULL}};
    errand__lua_io_class(L, ERRAND__LUA_STREAM, stream_close);
    luaL_setfuncs(L, methods, 0);
    errand__lua_io_verbs(L, verbs);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&verbs[0]);
    lua_pushcclosure(L, stream_call, 1);
    lua_setfield(L, -3, "__call");
    lua_pop(L, 2);
}
