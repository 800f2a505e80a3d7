/* SPDX-License-Identifier: MIT */
/* io_upload: the body of errand.http.post where it comes in pieces: from a function, from whatever
 * else can be called (a source, a stream, a process), or from a file.
 *
 * Design notes.  The calling task asks for a piece, sends it, and asks for the next one when the
 * system has it, so one piece is in memory.  The upload is closed with the call, however that
 * ends: a body that raises breaks the connection off.  A file is read by offsets of the call's own. */
#include "io_request.h"

#define PIECE 65536

static int go_on(lua_State *L, errand__lua_task *task);

static errand__lua_request *
request_of(lua_State *L)
{
    return lua_touserdata(L, REQUEST_KEPT);
}

static errand_http_upload *
upload_of(lua_State *L)
{
    return *(errand_http_upload **)lua_touserdata(L, REQUEST_UPLOAD);
}

/* The file that is the body, if it has offsets; else NULL. */
static errand_file *
file_of(lua_State *L)
{
    errand_file *file = errand__lua_file_check(L, REQUEST_BODY);
    return errand_file_is_seekable(file) ? file : NULL;
}

void
errand__lua_upload_check(lua_State *L, errand__lua_request *request)
{
    request->pieces = !lua_isstring(L, REQUEST_BODY);
    if (request->sized && (!request->pieces || file_of(L) != NULL))
        luaL_error(L, "%s: size is of a body that is called; this one has its own",
                   request->name);
    if (!request->pieces)
        return;
    if (luaL_testudata(L, REQUEST_BODY, ERRAND__LUA_FILE) != NULL &&
        errand__lua_file_check(L, REQUEST_BODY) == NULL)
        errand__lua_error_raise(L, "closed", request->name, "the file was closed");
    if (!lua_isfunction(L, REQUEST_BODY) &&
        luaL_getmetafield(L, REQUEST_BODY, "__call") == LUA_TNIL)
        luaL_error(
            L,
            "%s: the body must be a string, a file, or a function (or a source) that "
            "gives a piece each time, not %s",
            request->name, luaL_typename(L, REQUEST_BODY));
}

/* ---- the end ------------------------------------------------------------------------------ */

static int
finish(lua_State *L, errand__lua_task *task)
{
    const errand__lua_request *self = request_of(L);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    errand__lua_io_filled(L, errand_spec_http_finish(&spec, upload_of(L)), self->name);
    return errand__lua_io_await(L, task, lease, &spec, REQUEST_URL, self->name,
                                errand__lua_request_answered, 0);
}

/* The body has ended: is it as long as it was said? */
static int
end_of_body(lua_State *L, errand__lua_task *task)
{
    const errand__lua_request *self = request_of(L);
    size_t left = errand_http_upload_left(upload_of(L));
    if (self->sized && left != 0)
        errand__lua_error_raise(L, "inval", self->name,
                                "the body ended %zu bytes before its size of %llu", left,
                                (unsigned long long)self->size);
    return finish(L, task);
}

/* ---- a piece -------------------------------------------------------------------------------- */

static int
sent(lua_State *L, int status, lua_KContext context)
{
    const errand__lua_request *self = request_of(L);
    errand_completion *completion = errand__lua_io_completion(L, self->name);
    const errand_file_written *done =
        errand__lua_io_payload(L, completion, &errand_file_written_type, self->name);
    bool all = done->written == (uint64_t)context;
    (void)status;
    errand__lua_task *task = errand__lua_io_task(L, self->name);
    return all ? go_on(L, task) : finish(L, task); /* the server has answered */
}

/* Sends the string on top. */
static int
send_piece(lua_State *L, errand__lua_task *task)
{
    const errand__lua_request *self = request_of(L);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    size_t size, left = errand_http_upload_left(upload_of(L));
    const char *bytes = lua_tolstring(L, -1, &size);
    if (self->sized && size > left)
        errand__lua_error_raise(L, "inval", self->name,
                                "the body is longer than its size of %llu bytes",
                                (unsigned long long)self->size);
    errand__lua_io_filled(L, errand_spec_http_send(&spec, upload_of(L), bytes, size),
                          self->name);
    lua_settop(L, REQUEST_UPLOAD);
    return errand__lua_io_await(L, task, lease, &spec, REQUEST_URL, self->name, sent,
                                (lua_KContext)size);
}

/* The body was called, and gave what is on top; "" is no piece. */
static int
produced(lua_State *L, int status, lua_KContext context)
{
    const errand__lua_request *self = request_of(L);
    (void)status;
    (void)context;
    while (lua_type(L, -1) == LUA_TSTRING && lua_rawlen(L, -1) == 0) {
        lua_settop(L, REQUEST_UPLOAD);
        lua_pushvalue(L, REQUEST_BODY);
        lua_callk(L, 0, 1, 0, produced);
    }
    if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "%s: the body gave a %s instead of a string, or nil at its end",
                   self->name, luaL_typename(L, -1));
    errand__lua_task *task = errand__lua_io_task(L, self->name);
    return lua_isnil(L, -1) ? end_of_body(L, task) : send_piece(L, task);
}

static int
read_over(lua_State *L, int status, lua_KContext context)
{
    errand__lua_request *self = request_of(L);
    (void)status;
    (void)context;
    errand_completion *completion = errand__lua_io_completion(L, self->name);
    errand__lua_io_push_bytes(L, completion, self->name);
    self->offset += lua_isnil(L, -1) ? 0 : lua_rawlen(L, -1);
    return produced(L, 0, 0);
}

static int
read_piece(lua_State *L, errand__lua_task *task, errand_file *file)
{
    const errand__lua_request *self = request_of(L);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    /* What it has grown by since is not sent. */
    uint64_t left = self->sized ? self->size - self->offset : PIECE;
    if (left == 0)
        return end_of_body(L, task);
    errand__lua_io_filled(L,
                          errand_spec_read_at(&spec, file, left < PIECE ? left : PIECE,
                                              (int64_t)self->offset),
                          self->name);
    return errand__lua_io_await(L, task, lease, &spec, REQUEST_URL, self->name, read_over,
                                0);
}

static int
go_on(lua_State *L, errand__lua_task *task)
{
    errand_file *file = file_of(L);
    lua_settop(L, REQUEST_UPLOAD);
    if (file != NULL)
        return read_piece(L, task, file);
    lua_pushvalue(L, REQUEST_BODY);
    lua_callk(L, 0, 1, 0, produced);
    return produced(L, 0, 0);
}

/* ---- the size -------------------------------------------------------------------------------- */

static int
measured(lua_State *L, int status, lua_KContext context)
{
    errand__lua_request *self = request_of(L);
    (void)status;
    (void)context;
    errand_completion *completion = errand__lua_io_completion(L, self->name);
    const errand_file_stat *stat =
        errand__lua_io_payload(L, completion, &errand_file_stat_type, self->name);
    self->sized = stat->kind == ERRAND_FILE_REGULAR;
    self->size = stat->size;
    return errand__lua_request_go(L, errand__lua_io_task(L, self->name));
}

int
errand__lua_upload_measure(lua_State *L, errand__lua_task *task)
{
    const errand__lua_request *self = request_of(L);
    errand_file *file = file_of(L);
    errand_spec spec = ERRAND_SPEC_INIT;
    if (file == NULL)
        return errand__lua_request_go(L, task);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->name);
    errand__lua_io_filled(L, errand_spec_file_stat(&spec, file), self->name);
    return errand__lua_io_await(L, task, lease, &spec, REQUEST_URL, self->name, measured,
                                0);
}

/* ---- the begin -------------------------------------------------------------------------------- */

static int
begun(lua_State *L, int status, lua_KContext context)
{
    const errand__lua_request *self = request_of(L);
    (void)status;
    (void)context;
    errand_completion *completion = errand__lua_io_completion(L, self->name);
    errand_http_upload *own =
        errand__lua_io_payload(L, completion, &errand_http_upload_type, self->name);
    *(errand_http_upload **)lua_touserdata(L, REQUEST_UPLOAD) =
        errand_http_upload_hold(own);
    return go_on(L, errand__lua_io_task(L, self->name));
}

int
errand__lua_upload_begin(lua_State *L, errand__lua_task *task,
                         const errand_addresses *addresses)
{
    const errand__lua_request *self = request_of(L);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_http_config config = errand__lua_request_config(L, task->run, addresses);
    config.limit_ns = self->limit_ns;
    config.body_size = self->sized ? (size_t)self->size : ERRAND_HTTP_SIZE_UNKNOWN;
    lua_settop(L, REQUEST_HEADERS);
    errand_http_upload **own = lua_newuserdatauv(L, sizeof *own, 0);
    *own = NULL;
    luaL_setmetatable(L, ERRAND__LUA_UPLOAD);
    lua_toclose(L, REQUEST_UPLOAD);
    errand__lua_io_filled(L, errand_spec_http_upload(&spec, &config), self->name);
    return errand__lua_io_await(L, task, lease, &spec, REQUEST_URL, self->name, begun, 0);
}

static int
upload_close(lua_State *L)
{
    errand_http_upload_abandon(luaL_checkudata(L, 1, ERRAND__LUA_UPLOAD));
    return 0;
}

void
errand__lua_upload_open(lua_State *L)
{
    errand__lua_io_class(L, ERRAND__LUA_UPLOAD, upload_close);
    lua_pop(L, 2);
}
