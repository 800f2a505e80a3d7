/* SPDX-License-Identifier: MIT */
/* io: how verbs wait on the run's reactor.
 *
 * Design notes.  The reactor has no thread: the run's own carries what it waits for, in its drives.
 * It is made when a task first asks for something that needs it, so that scripts without sockets
 * pay nothing; in a replay no job runs, so there its place is one of an executor without
 * workers.  Objects outlive runs: they are references, and a later run's reactor serves them. */
#include "io.h"
#include <signal.h>
#include <string.h>

errand__lua_task *
errand__lua_io_task(lua_State *L, const char *operation)
{
    errand__lua_task *task = errand__lua_wait_task(L, operation);
    errand__lua_join_alive(L, task, operation);
    return task;
}

errand_lease *
errand__lua_io_lease(lua_State *L, errand__lua_run *run, const char *operation)
{
    if (run->io_lease != NULL)
        return run->io_lease;
    errand_reactor_config config = {.struct_size = sizeof config,
                                    .backend = run->options.reactor};
    errand_status status = ERRAND_OK;
    if (run->reactor == NULL)
        status = run->options.held_replay != NULL
                     ? errand_manual_create(NULL, &run->reactor)
                     : errand_reactor_create(&config, &run->reactor);
    if (status == ERRAND_EUNSUPPORTED)
        errand__lua_error_raise(
            L, "unsupported", operation,
            "this system refuses io_uring: use the reactor \"epoll\", or none");
    if (status == ERRAND_OK)
        status = errand_attach(run->runtime, run->reactor, ERRAND__LUA_OPERATIONS,
                               &run->io_lease);
    errand__lua_work_filled(L, status, operation);
    return run->io_lease;
}

void
errand__lua_io_filled(lua_State *L, errand_status status, const char *operation)
{
    if (status == ERRAND_EBUSY)
        errand__lua_error_raise(L, "busy", operation,
                                "another one is out on it: one at a time");
    errand__lua_work_filled(L, status, operation);
}

int
errand__lua_io_await(lua_State *L, errand__lua_task *task, errand_lease *lease,
                     errand_spec *spec, int subject, const char *operation,
                     lua_KFunction k, lua_KContext context)
{
    errand__lua_run *run = task->run;
    errand_identity identity;
    spec->held_name = operation;
    errand_status status =
        errand_task_await(run->visit, lease, spec, UINT64_MAX, &identity);
    if (task->io_asks != NULL)
        *task->io_asks = status == ERRAND_OK;
    task->io_asks = NULL;
    if (status != ERRAND_OK) {
        errand_spec_abandon(spec);
    } else if (run->options.on_completion != NULL && subject != 0 &&
               lua_type(L, subject) == LUA_TSTRING) {
        lua_pushvalue(L, subject);
        errand__lua_report_subject(L, run, &identity);
        lua_pop(L, 1);
    }
    return errand__lua_wait_for(L, task, status, operation, k, context);
}

errand_completion *
errand__lua_io_completion(lua_State *L, const char *operation)
{
    const errand_task_news *news = errand__lua_wait_news(L, operation);
    if (news->completion->outcome != ERRAND_COMPLETED)
        errand__lua_error_completion(L, news->completion, operation);
    return news->completion;
}

void *
errand__lua_io_payload(lua_State *L, errand_completion *completion,
                       const errand_payload_type *type, const char *operation)
{
    void *data = NULL;
    size_t size = 0;
    if (errand_completion_read(completion, type, &data, &size) != ERRAND_OK)
        errand__lua_error_raise(L, "decode", operation, "%s", completion->message);
    return data;
}

int
errand__lua_io_push_bytes(lua_State *L, errand_completion *completion,
                          const char *operation)
{
    const errand_file_bytes *bytes = NULL;
    if (completion->payload.data != NULL)
        bytes = errand__lua_io_payload(L, completion, &errand_file_bytes_type, operation);
    if (bytes == NULL || bytes->size == 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, (const char *)bytes->bytes, bytes->size);
    return 1;
}

/* ---- verbs --------------------------------------------------------------------------------- */

static int
call_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    const errand__lua_io_verb *verb = (const errand__lua_io_verb *)context;
    errand_completion *completion = errand__lua_io_completion(L, verb->name);
    return verb->push == NULL ? 0 : verb->push(L, completion);
}

int
errand__lua_io_call(lua_State *L)
{
    const errand__lua_io_verb *verb = lua_touserdata(L, lua_upvalueindex(1));
    errand__lua_task *task = errand__lua_io_task(L, verb->name);
    errand_lease *lease = errand__lua_io_lease(L, task->run, verb->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    int results = verb->ready == NULL ? -1 : verb->ready(L);
    if (results >= 0)
        return results;
    verb->fill(L, &spec);
    return errand__lua_io_await(L, task, lease, &spec, 1, verb->name, call_over,
                                (lua_KContext)verb);
}

void
errand__lua_io_verbs(lua_State *L, const errand__lua_io_verb *verbs)
{
    for (; verbs->name != NULL; verbs++) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)verbs);
        lua_pushcclosure(L, errand__lua_io_call, 1);
        lua_setfield(L, -2, verbs->name);
    }
}

void
errand__lua_io_class(lua_State *L, const char *name, lua_CFunction collect)
{
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__close");
    lua_newtable(L);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "close");
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
}

/* ---- begin and end ----------------------------------------------------------------------------- */

void
errand__lua_io_fini(errand__lua_run *run)
{
    static const struct timespec at_once = {0, 0};
    errand_executor_abandon(&run->reactor);
    if (!run->takes_signals)
        return;
    /* Those that nobody asked for any more would end the process now. */
    while (sigtimedwait(&run->signals, NULL, &at_once) > 0)
        continue;
    pthread_sigmask(SIG_UNBLOCK, &run->signals, NULL);
    run->takes_signals = false;
}

static int
close_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L);
}

/* errand.close(thing): its method, which may wait; or, of another's, its __close. */
static int
verb_close(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (luaL_getmetafield(L, 1, "__close") == LUA_TNIL)
        luaL_typeerror(L, 1, "something that can be closed");
    if (lua_isuserdata(L, 1) && luaL_getmetafield(L, 1, "__index") == LUA_TTABLE &&
        lua_getfield(L, -1, "close") == LUA_TFUNCTION)
        lua_replace(L, 2);
    lua_settop(L, 2);
    lua_insert(L, 1);
    lua_callk(L, 1, LUA_MULTRET, 0, close_over);
    return close_over(L, 0, 0);
}

void
errand__lua_io_open(lua_State *L)
{
    lua_pushcfunction(L, verb_close);
    lua_setfield(L, -2, "close");
    errand__lua_file_open(L);
    errand__lua_paths_open(L);
    errand__lua_stream_open(L);
    errand__lua_listener_open(L);
    errand__lua_reach_open(L);
    errand__lua_source_open(L);
    errand__lua_process_open(L);
    errand__lua_http_open(L);
}
