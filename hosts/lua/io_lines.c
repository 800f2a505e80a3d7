/* SPDX-License-Identifier: MIT */
/* io_lines: an open file's lines.
 *
 * Design notes.  They are read by offsets of the iterator's own: what it has read ahead is nobody
 * else's, and the position stays where it is.  Tasks may share an iterator: a piece that another one has
 * read meanwhile is dropped, and what it left is looked at again.  What has no offsets gives each byte
 * once, in the order of its reads and not in that in which tasks hear of them, so there one reads at a time. */
#include "io.h"
#include <string.h>

#define LINE_MOST (1 << 20)
#define LINES     "errand.lines"

/* An iterator: upvalue 1 is the file, 2 this, 3 the string that holds what was read ahead. */
typedef struct lines {
    int64_t offset; /* of the next piece; -1 = there are none */
    size_t at, kept, max;
    bool out; /* a read without an offset is */
} lines;
enum { UP_FILE = 1, UP_LINES = 2, UP_KEPT = 3 };

static int lines_next(lua_State *L);

/* Takes size bytes off what is kept, and pushes the first `shown` of them. */
static int
push_line(lua_State *L, lines *self, size_t size, size_t shown)
{
    const char *bytes = lua_tostring(L, lua_upvalueindex(UP_KEPT));
    lua_pushlstring(L, bytes + self->at, shown);
    self->at += size;
    self->kept -= size;
    return 1;
}

/* A line of what is kept; 0 = there is none yet. */
static int
kept_line(lua_State *L, lines *self)
{
    const char *from = lua_tostring(L, lua_upvalueindex(UP_KEPT));
    const char *end = self->kept == 0 ? NULL : memchr(from + self->at, '\n', self->kept);
    size_t length = end == NULL ? self->kept : (size_t)(end - from) - self->at;
    if (length > self->max)
        errand__lua_error_raise(L, "too_large", "lines",
                                "the line has more than %zu bytes: raise the limit",
                                self->max);
    return end == NULL ? 0 : push_line(L, self, length + 1, length);
}

static int
lines_over(lua_State *L, int status, lua_KContext context)
{
    lines *self = lua_touserdata(L, lua_upvalueindex(UP_LINES));
    (void)status;
    errand_completion *completion = errand__lua_io_completion(L, "lines");
    errand__lua_io_push_bytes(L, completion, "lines");
    if (self->offset != (int64_t)context)
        return lines_next(L);
    if (lua_isnil(L, -1)) /* the end: what is left is the last line */
        return self->kept == 0 ? 1 : push_line(L, self, self->kept, self->kept);
    size_t got = lua_rawlen(L, -1);
    if (self->kept > 0) {
        lua_pushlstring(L, lua_tostring(L, lua_upvalueindex(UP_KEPT)) + self->at,
                        self->kept);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    lua_replace(L, lua_upvalueindex(UP_KEPT));
    self->at = 0;
    self->kept += got;
    if (self->offset >= 0)
        self->offset += (int64_t)got;
    return lines_next(L);
}

/* The read that is out has ended, or who waited for it does not any more. */
static int
lines_read(lua_State *L)
{
    lines *self = luaL_checkudata(L, 1, LINES);
    self->out = false;
    return 0;
}

static void
take_turn(lua_State *L, lines *self)
{
    if (self->out)
        errand__lua_error_raise(L, "busy", "lines",
                                "another task waits for the next line: one at a time");
    lua_pushvalue(L, lua_upvalueindex(UP_LINES));
    self->out = true;
    lua_toclose(L, -1);
}

static int
lines_next(lua_State *L)
{
    errand__lua_task *task = errand__lua_io_task(L, "lines");
    errand_lease *lease = errand__lua_io_lease(L, task->run, "lines");
    const errand__lua_file *from = lua_touserdata(L, lua_upvalueindex(UP_FILE));
    lines *self = lua_touserdata(L, lua_upvalueindex(UP_LINES));
    errand_spec spec = ERRAND_SPEC_INIT;
    lua_settop(L, 0);
    if (from->file == NULL)
        errand__lua_error_raise(L, "closed", "lines", "the file was closed");
    if (kept_line(L, self) == 1)
        return 1;
    if (self->offset < 0)
        take_turn(L, self);
    errand__lua_io_filled(
        L, errand_spec_read_at(&spec, from->file, ERRAND__LUA_PIECE, self->offset),
        "lines");
    spec.domain = self->offset < 0 ? from->domain : 0;
    return errand__lua_io_await(L, task, lease, &spec, 0, "lines", lines_over,
                                (lua_KContext)self->offset);
}

int
errand__lua_file_lines(lua_State *L)
{
    const errand__lua_file *self = errand__lua_file_need(L, "lines");
    int64_t offset = errand__lua_file_offset(L, 2);
    size_t max = errand__lua_io_size(L, 3, LINE_MOST);
    bool seekable = errand_file_is_seekable(self->file);
    luaL_argcheck(L, seekable || offset < 0, 2, "it has no offsets: leave it out");
    lua_settop(L, 1);
    lines *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = (lines){.offset = !seekable ? -1 : offset < 0 ? 0 : offset, .max = max};
    if (luaL_newmetatable(L, LINES)) {
        lua_pushcfunction(L, lines_read);
        lua_setfield(L, -2, "__close");
    }
    lua_setmetatable(L, -2);
    lua_pushliteral(L, "");
    lua_pushcclosure(L, lines_next, 3);
    return 1;
}
