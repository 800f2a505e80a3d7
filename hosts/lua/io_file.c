/* SPDX-License-Identifier: MIT */
/* io_file: errand.open and open files.
 *
 * Design notes.  What works at the position of a file shares a domain of the file's own, so that it
 * happens one after the other, in the order in which it was started, whichever task started it;
 * the library moves the position with what succeeds.  What has no position is read and written
 * independently, so there each direction has a domain.  Lines are read by offsets of the
 * iterator's own: what it has read ahead is nobody else's. */
#include "io.h"
#include <string.h>

#define PIECE        65536 /* bytes asked for at a time where the script names no number */
#define LINE_MOST    (1 << 20)
#define FIRST_DOMAIN UINT64_C(0xF11E000000000000)

enum { WHAT = 2, OFFSET = 3, MOST = 4 };

static const char domains_key;

typedef struct file {
    errand_file *file; /* NULL = closed */
    uint64_t domain;   /* and the next number: of writes to what has no position */
} file;

/* A number that no other file of this state has. */
static uint64_t
next_domain(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &domains_key);
    lua_Integer next = lua_tointeger(L, -1);
    lua_pushinteger(L, next + 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &domains_key);
    lua_pop(L, 1);
    return FIRST_DOMAIN + (uint64_t)next;
}

static file *
check(lua_State *L, const char *operation)
{
    file *self = luaL_checkudata(L, 1, ERRAND__LUA_FILE);
    if (self->file == NULL)
        errand__lua_error_raise(L, "closed", operation, "the file was closed");
    return self;
}

errand_file *
errand__lua_file_check(lua_State *L, int index)
{
    const file *self = luaL_testudata(L, index, ERRAND__LUA_FILE);
    return self == NULL ? NULL : self->file;
}

/* ---- open --------------------------------------------------------------------------------- */

/* As io.open has them, and x: there must be none yet. */
static uint32_t
read_mode(lua_State *L, int index)
{
    const char *mode = luaL_optstring(L, index, "r"), *at = mode;
    uint32_t flags = ERRAND_OPEN_READ;
    if (*at == 'w')
        flags = ERRAND_OPEN_WRITE | ERRAND_OPEN_CREATE | ERRAND_OPEN_EMPTY;
    else if (*at == 'a')
        flags = ERRAND_OPEN_WRITE | ERRAND_OPEN_CREATE | ERRAND_OPEN_APPEND;
    bool good = *at == 'r' || *at == 'w' || *at == 'a';
    at += good;
    if (*at == '+') {
        flags |= ERRAND_OPEN_READ | ERRAND_OPEN_WRITE;
        at++;
    }
    at += *at == 'b';
    if (*at == 'x' && (flags & ERRAND_OPEN_CREATE) != 0) {
        flags |= ERRAND_OPEN_EXCLUSIVE;
        at++;
    }
    luaL_argcheck(L, good && *at == '\0', index,
                  "a mode is 'r', 'w' or 'a', then '+' for both, then 'x' with 'w' and "
                  "'a' for a file that must not be there yet");
    return flags;
}

static void
fill_open(lua_State *L, errand_spec *spec)
{
    static const char *const options[] = {"permissions", "synced", NULL};
    const char *path =
        errand__lua_work_name(L, 1, "open", "path", "give one, such as 'notes.txt'");
    uint32_t flags = read_mode(L, 2), permissions = 0;
    lua_settop(L, 3);
    if (errand__lua_io_options(L, 3, "open", options)) {
        permissions = (uint32_t)errand__lua_io_number(L, 3, "permissions", "open", 07777);
        flags |= errand__lua_io_flag(L, 3, "synced") ? ERRAND_OPEN_SYNCED : 0;
    }
    errand__lua_io_filled(L, errand_spec_open(spec, path, flags, permissions), "open");
}

static int
push_open(lua_State *L, errand_completion *completion)
{
    errand_file *own = errand__lua_io_payload(L, completion, &errand_file_type, "open");
    file *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (file){NULL, next_domain(L)};
    luaL_setmetatable(L, ERRAND__LUA_FILE);
    self->file = errand_file_hold(own);
    return 1;
}

/* ---- read and write ------------------------------------------------------------------------ */

/* The argument, or the position. */
static int64_t
read_offset(lua_State *L, int index)
{
    if (lua_isnoneornil(L, index))
        return ERRAND_AT_POSITION;
    lua_Integer offset = luaL_checkinteger(L, index);
    luaL_argcheck(L, offset >= 0, index, "an offset must not be negative");
    return offset;
}

static void
fill_read(lua_State *L, errand_spec *spec)
{
    file *self = check(L, "read");
    int64_t offset = read_offset(L, OFFSET);
    errand_status status;
    if (lua_type(L, WHAT) == LUA_TSTRING) {
        luaL_argcheck(L, strcmp(lua_tostring(L, WHAT), "a") == 0, WHAT,
                      "give a number of bytes, or 'a' for all; lines() gives lines");
        size_t most = errand__lua_io_size(L, MOST, 64 << 20);
        status = errand_spec_read_rest(spec, self->file, most, offset);
    } else {
        size_t size = errand__lua_io_size(L, WHAT, PIECE);
        luaL_argcheck(L, lua_isnoneornil(L, MOST), MOST, "a limit is of 'a'");
        status = errand_spec_read_at(spec, self->file, size, offset);
    }
    errand__lua_io_filled(L, status, "read");
    spec->domain = offset < 0 ? self->domain : 0;
}

/* At the end: nil, or "" of all. */
static int
push_read(lua_State *L, errand_completion *completion)
{
    errand__lua_io_push_bytes(L, completion, "read");
    if (lua_isnil(L, -1) && lua_type(L, WHAT) == LUA_TSTRING)
        lua_pushliteral(L, "");
    return 1;
}

/* for bytes in file do: what a generic for gives besides is not its. */
static int
file_call(lua_State *L)
{
    lua_settop(L, 1);
    return errand__lua_io_call(L);
}

static uint64_t
write_domain(const file *self)
{
    return self->domain + !errand_file_is_seekable(self->file);
}

static void
fill_write(lua_State *L, errand_spec *spec)
{
    file *self = check(L, "write");
    size_t size;
    const char *bytes = luaL_checklstring(L, WHAT, &size);
    int64_t offset = read_offset(L, OFFSET);
    luaL_argcheck(L, size <= 1 << 30, WHAT, "at most 2^30 bytes at a time");
    errand__lua_io_filled(L, errand_spec_write_at(spec, self->file, bytes, size, offset),
                          "write");
    spec->domain = offset < 0 ? write_domain(self) : 0;
}

static int
push_write(lua_State *L, errand_completion *completion)
{
    const errand_file_written *done =
        errand__lua_io_payload(L, completion, &errand_file_written_type, "write");
    lua_pushinteger(L, (lua_Integer)done->written);
    return 1;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static void
fill_seek(lua_State *L, errand_spec *spec)
{
    static const char *const words[] = {"set", "cur", "end", NULL};
    file *self = check(L, "seek");
    int from = luaL_checkoption(L, WHAT, "cur", words);
    lua_Integer offset = luaL_optinteger(L, OFFSET, 0);
    luaL_argcheck(L, from != ERRAND_FROM_BEGIN || offset >= 0, OFFSET,
                  "an offset must not be negative");
    errand__lua_io_filled(
        L, errand_spec_seek(spec, self->file, offset, (errand_from)from), "seek");
    spec->domain = self->domain;
}

static int
push_seek(lua_State *L, errand_completion *completion)
{
    const errand_file_place *place =
        errand__lua_io_payload(L, completion, &errand_file_place_type, "seek");
    lua_pushinteger(L, (lua_Integer)place->offset);
    return 1;
}

static void
fill_sync(lua_State *L, errand_spec *spec)
{
    static const char *const words[] = {"all", "data", NULL};
    file *self = check(L, "sync");
    bool data_only = luaL_checkoption(L, WHAT, "all", words) == 1;
    errand__lua_io_filled(L, errand_spec_sync(spec, self->file, data_only), "sync");
    spec->domain = write_domain(self);
}

static void
fill_stat(lua_State *L, errand_spec *spec)
{
    file *self = check(L, "stat");
    errand__lua_io_filled(L, errand_spec_file_stat(spec, self->file), "stat");
    spec->domain = write_domain(self);
}

static int
push_stat(lua_State *L, errand_completion *completion)
{
    return errand__lua_push_stat(
        L, errand__lua_io_payload(L, completion, &errand_file_stat_type, "stat"));
}

static int
file_close(lua_State *L)
{
    file *self = luaL_checkudata(L, 1, ERRAND__LUA_FILE);
    errand_file_abandon(&self->file);
    return 0;
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* An iterator: upvalue 1 is the file, 2 this, 3 the string that holds what was read ahead. */
typedef struct lines {
    int64_t offset; /* of the next piece; -1 = there are none */
    size_t at, kept, max;
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
    (void)context;
    errand_completion *completion = errand__lua_io_completion(L, "lines");
    errand__lua_io_push_bytes(L, completion, "lines");
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

static int
lines_next(lua_State *L)
{
    errand__lua_task *task = errand__lua_io_task(L, "lines");
    errand_lease *lease = errand__lua_io_lease(L, task->run, "lines");
    const file *from = lua_touserdata(L, lua_upvalueindex(UP_FILE));
    lines *self = lua_touserdata(L, lua_upvalueindex(UP_LINES));
    errand_spec spec = ERRAND_SPEC_INIT;
    lua_settop(L, 0);
    if (from->file == NULL)
        errand__lua_error_raise(L, "closed", "lines", "the file was closed");
    if (kept_line(L, self) == 1)
        return 1;
    errand__lua_io_filled(L, errand_spec_read_at(&spec, from->file, PIECE, self->offset),
                          "lines");
    spec.domain = self->offset < 0 ? from->domain : 0;
    return errand__lua_io_await(L, task, lease, &spec, 0, "lines", lines_over, 0);
}

static int
file_lines(lua_State *L)
{
    file *self = check(L, "lines");
    int64_t offset = read_offset(L, 2);
    size_t max = errand__lua_io_size(L, 3, LINE_MOST);
    bool seekable = errand_file_is_seekable(self->file);
    luaL_argcheck(L, seekable || offset < 0, 2, "it has no offsets: leave it out");
    lua_settop(L, 1);
    lines *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = (lines){.offset = !seekable ? -1 : offset < 0 ? 0 : offset, .max = max};
    lua_pushliteral(L, "");
    lua_pushcclosure(L, lines_next, 3);
    return 1;
}

void
errand__lua_file_open(lua_State *L)
{
    static const errand__lua_io_verb verbs[] = {
        {"read", fill_read, push_read, NULL}, {"write", fill_write, push_write, NULL},
        {"seek", fill_seek, push_seek, NULL}, {"sync", fill_sync, NULL, NULL},
        {"stat", fill_stat, push_stat, NULL}, {NULL, NULL, NULL, NULL},
    };
    static const errand__lua_io_verb opens[] = {{"open", fill_open, push_open, NULL},
                                                {NULL, NULL, NULL, NULL}};
    errand__lua_io_class(L, ERRAND__LUA_FILE, file_close);
    lua_pushcfunction(L, file_lines);
    lua_setfield(L, -2, "lines");
    errand__lua_io_verbs(L, verbs);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&verbs[0]);
    lua_pushcclosure(L, file_call, 1);
    lua_setfield(L, -3, "__call");
    lua_pop(L, 2);
    errand__lua_io_verbs(L, opens);
}
