/* SPDX-License-Identifier: MIT */
/* io_file: errand.open and open files.
 *
 * Design notes.  What works at the position of a file shares a domain of the file's own, so that it
 * happens one after the other, in the order in which it was started, whichever task started it;
 * the library moves the position with what succeeds.  What has no position is read and written
 * independently, so there each direction has a domain.
 * close() asks for a close of its own and waits for it, because a system may tell only then that
 * something was not written.  Where nothing can wait (__gc, __close, a task that was cancelled), and
 * where operations are out, the file is let go of: whoever has it last closes it. */
#include "io.h"
#include <string.h>

#define FIRST_DOMAIN UINT64_C(0xF11E000000000000)

enum { WHAT = 2, OFFSET = 3, MOST = 4 };

static const char domains_key;

typedef errand__lua_file file;

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

file *
errand__lua_file_need(lua_State *L, const char *operation)
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
    errand__lua_io_payload(L, completion, &errand_file_type, "open");
    file *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (file){NULL, next_domain(L)};
    luaL_setmetatable(L, ERRAND__LUA_FILE);
    /* Held beside, it would be somebody else's, too, until the visit is over: see close. */
    self->file = errand_completion_take(completion).data;
    return 1;
}

/* ---- read and write ------------------------------------------------------------------------ */

/* The argument, or the position. */
int64_t
errand__lua_file_offset(lua_State *L, int index)
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
    file *self = errand__lua_file_need(L, "read");
    int64_t offset = errand__lua_file_offset(L, OFFSET);
    errand_status status;
    if (lua_type(L, WHAT) == LUA_TSTRING) {
        luaL_argcheck(L, strcmp(lua_tostring(L, WHAT), "a") == 0, WHAT,
                      "give a number of bytes, or 'a' for all; lines() gives lines");
        size_t most = errand__lua_io_size(L, MOST, 64 << 20);
        status = errand_spec_read_rest(spec, self->file, most, offset);
    } else {
        size_t size = errand__lua_io_size(L, WHAT, ERRAND__LUA_PIECE);
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
    file *self = errand__lua_file_need(L, "write");
    size_t size;
    const char *bytes = luaL_checklstring(L, WHAT, &size);
    int64_t offset = errand__lua_file_offset(L, OFFSET);
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
    file *self = errand__lua_file_need(L, "seek");
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
    file *self = errand__lua_file_need(L, "sync");
    bool data_only = luaL_checkoption(L, WHAT, "all", words) == 1;
    errand__lua_io_filled(L, errand_spec_sync(spec, self->file, data_only), "sync");
    spec->domain = write_domain(self);
}

static void
fill_stat(lua_State *L, errand_spec *spec)
{
    file *self = errand__lua_file_need(L, "stat");
    errand__lua_io_filled(L, errand_spec_file_stat(spec, self->file), "stat");
    spec->domain = write_domain(self);
}

static int
push_stat(lua_State *L, errand_completion *completion)
{
    return errand__lua_push_stat(
        L, errand__lua_io_payload(L, completion, &errand_file_stat_type, "stat"));
}

static void
fill_truncate(lua_State *L, errand_spec *spec)
{
    file *self = errand__lua_file_need(L, "truncate");
    lua_Integer size = luaL_checkinteger(L, WHAT);
    luaL_argcheck(L, size >= 0, WHAT, "a size must not be negative");
    errand__lua_io_filled(L, errand_spec_truncate(spec, self->file, (uint64_t)size),
                          "truncate");
    spec->domain = self->domain;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* __close and __gc: nothing is waited for. */
static int
file_drop(lua_State *L)
{
    file *self = luaL_checkudata(L, 1, ERRAND__LUA_FILE);
    errand_file_abandon(&self->file);
    return 0;
}

static int
close_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    errand__lua_io_completion(L, "close");
    lua_pushboolean(L, true);
    return 1;
}

/* true: it is closed, and nothing was lost; false: nobody looked. */
static int
file_close(lua_State *L)
{
    file *self = luaL_checkudata(L, 1, ERRAND__LUA_FILE);
    errand__lua_task *task = errand__lua_wait_able(L);
    errand_spec spec = ERRAND_SPEC_INIT;
    lua_settop(L, 1);
    if (self->file == NULL || task == NULL ||
        errand_task_cancelled(task->run->visit) != ERRAND_REASON_NONE) {
        lua_pushboolean(L, self->file == NULL);
        errand_file_abandon(&self->file);
        return 1;
    }
    errand_lease *lease = errand__lua_io_lease(L, task->run, "close");
    errand_status status = errand_spec_file_close(&spec, self->file);
    if (status != ERRAND_EBUSY)
        errand__lua_io_filled(L, status, "close");
    errand_file_abandon(&self->file); /* the spec has a reference */
    if (status == ERRAND_EBUSY) {
        lua_pushboolean(L, false);
        return 1;
    }
    return errand__lua_io_await(L, task, lease, &spec, 0, "close", close_over, 0);
}

void
errand__lua_file_open(lua_State *L)
{
    static const errand__lua_io_verb verbs[] = {
        {"read", fill_read, push_read, NULL},
        {"write", fill_write, push_write, NULL},
        {"seek", fill_seek, push_seek, NULL},
        {"sync", fill_sync, NULL, NULL},
        {"stat", fill_stat, push_stat, NULL},
        {"truncate", fill_truncate, NULL, NULL},
        {NULL, NULL, NULL, NULL},
    };
    static const errand__lua_io_verb opens[] = {{"open", fill_open, push_open, NULL},
                                                {NULL, NULL, NULL, NULL}};
    errand__lua_io_class(L, ERRAND__LUA_FILE, file_drop);
    lua_pushcfunction(L, file_close);
    lua_setfield(L, -2, "close");
    lua_pushcfunction(L, errand__lua_file_lines);
    lua_setfield(L, -2, "lines");
    errand__lua_io_verbs(L, verbs);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&verbs[0]);
    lua_pushcclosure(L, file_call, 1);
    lua_setfield(L, -3, "__call");
    lua_pop(L, 2);
    errand__lua_io_verbs(L, opens);
}
