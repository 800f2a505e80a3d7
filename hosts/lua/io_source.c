/* SPDX-License-Identifier: MIT */
/* io_source: what yields many items: signals, pieces of a body, what a process writes.
 *
 * Design notes.  A source is called for its next item, so that `for piece in source do` works; nil
 * is its end.  errand.signal blocks signals in the thread that runs the script; those that
 * were not blocked before are let through again when the run has ended, and what is pending of them
 * then is dropped: it was for the script. */
#include "io.h"
#include <signal.h>

typedef struct source {
    errand_source *source; /* NULL = closed */
    const char *name;
    errand__lua_source_push_fn *push;
} source;

errand_source **
errand__lua_source_new(lua_State *L, const char *name, errand__lua_source_push_fn *push)
{
    source *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (source){NULL, name, push};
    luaL_setmetatable(L, ERRAND__LUA_SOURCE);
    return &self->source;
}

int
errand__lua_source_bytes(lua_State *L, errand_completion *completion, const char *name)
{
    return errand__lua_io_push_bytes(L, completion, name);
}

static int
next_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    source *self = luaL_checkudata(L, 1, ERRAND__LUA_SOURCE);
    return self->push(L, errand__lua_io_completion(L, self->name), self->name);
}

static int
source_next(lua_State *L)
{
    source *self = luaL_checkudata(L, 1, ERRAND__LUA_SOURCE);
    errand__lua_task *task = errand__lua_io_task(L, self->name);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    if (self->source == NULL)
        errand__lua_error_raise(L, "closed", self->name, "it was closed");
    errand__lua_io_filled(L, errand_source_next(self->source, &spec), self->name);
    return errand__lua_io_await(L, task, lease, &spec, 0, self->name, next_over, 0);
}

static int
source_close(lua_State *L)
{
    source *self = luaL_checkudata(L, 1, ERRAND__LUA_SOURCE);
    errand_source_close(self->source);
    errand_source_abandon(&self->source);
    return 0;
}

/* ---- signals ------------------------------------------------------------------------------ */

static int
push_signal(lua_State *L, errand_completion *completion, const char *name)
{
    const errand_caught_signal *caught =
        errand__lua_io_payload(L, completion, &errand_caught_signal_type, name);
    errand__lua_io_push_signal(L, caught->number);
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, caught->number);
    lua_setfield(L, -2, "number");
    if (caught->pid != 0) {
        lua_pushinteger(L, caught->pid);
        lua_setfield(L, -2, "pid");
        lua_pushinteger(L, caught->uid);
        lua_setfield(L, -2, "uid");
    }
    return 2;
}

/* Notes which of them this call blocks. */
static void
note_blocked(errand__lua_run *run, const int32_t *numbers, int count)
{
    sigset_t before;
    if (!run->takes_signals)
        sigemptyset(&run->signals);
    run->takes_signals = true;
    if (pthread_sigmask(SIG_BLOCK, NULL, &before) != 0)
        return;
    for (int i = 0; i < count; i++) {
        if (sigismember(&before, numbers[i]) == 0)
            sigaddset(&run->signals, numbers[i]);
    }
}

static int
verb_signal(lua_State *L)
{
    errand__lua_task *task = errand__lua_io_task(L, "signal");
    int count = lua_gettop(L);
    int32_t numbers[64];
    luaL_argcheck(L, count >= 1 && count <= 64, 1, "name the signals, such as 'TERM'");
    for (int i = 0; i < count; i++)
        numbers[i] = errand__lua_io_signal(L, i + 1, "signal");
    errand_source **own = errand__lua_source_new(L, "signal", push_signal);
    note_blocked(task->run, numbers, count);
    errand_status status = errand_source_signals(numbers, (size_t)count, NULL, own);
    if (status == ERRAND_EINVAL)
        errand__lua_error_raise(L, "inval", "signal", "KILL and STOP cannot be caught");
    errand__lua_io_filled(L, status, "signal");
    return 1;
}

void
errand__lua_source_open(lua_State *L)
{
    errand__lua_io_class(L, ERRAND__LUA_SOURCE, source_close);
    lua_pushcfunction(L, source_next);
    lua_setfield(L, -2, "next");
    lua_pushcfunction(L, source_next);
    lua_setfield(L, -3, "__call");
    lua_pop(L, 2);
    lua_pushcfunction(L, verb_signal);
    lua_setfield(L, -2, "signal");
}
