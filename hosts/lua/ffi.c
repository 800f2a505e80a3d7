/* SPDX-License-Identifier: MIT */
/* ffi: errand.ffi.open(library, options):fn(name, signature)(arguments...).
 *
 * Design notes.  A library is a name, a way of isolation and, once a process was asked for, a
 * sandbox of its own, which lives as long as the library's userdata: a script that opens two
 * libraries has two tenants.  A lease belongs to a run; the userdata remembers of which.  In a
 * replay no job runs, so there the lease is one of an executor without workers.
 * A function's call is a verb like all others: it awaits. */
#include "ffi.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct library {
    errand_ffi_library *library;
    const char *name; /* NULL = what the process has; kept with the userdata */
    errand__lua_isolation isolation;
    errand_executor *executor; /* of processes, from the first call on */
    uint64_t runtime;          /* whose lease it is */
    errand_lease *lease;
} library;

typedef struct function {
    errand_ffi_function *function;
    library *home; /* kept by user value 1 */
    bool gives_errno;
    char name[64];
} function;

/* A script may have called its __gc. */
static function *
check_function(lua_State *L)
{
    function *own = luaL_checkudata(L, 1, ERRAND__LUA_FUNCTION);

    if (own->function == NULL)
        errand__lua_error_raise(L, "misuse", "ffi", "the function was closed");
    return own;
}

/* ---- where a call goes --------------------------------------------------------------------- */

/* The functions that were described so far are known to the first worker, so that what one call
 * leaves in its process is there for the next function's.  The list is user value 2 of
 * the library's userdata, which is user value 1 of the function at index 1; three values are
 * pushed, of which the entries have to stay. */
static void
push_entries(lua_State *L, library *home)
{
    errand_sandbox_policy *policy = &home->isolation.policy;

    lua_getiuservalue(L, 1, 1);
    lua_getiuservalue(L, -1, 2);
    size_t count = lua_rawlen(L, -1), known = 0;
    errand_entry *entries = lua_newuserdatauv(L, (count + 1) * sizeof *entries, 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        const function *own = lua_touserdata(L, -1);
        if (own->function != NULL)
            entries[known++] = (errand_entry){
                .library = home->name,
                .symbol = errand_ffi_function_signature(own->function)->symbol,
                .signature = errand_ffi_function_text(own->function),
            };
        lua_pop(L, 1);
    }
    policy->entries = entries;
    policy->entry_count = known;
}

/* What the library refused of a sandbox, in the words of the options. */
static void
raise_refusal(lua_State *L, errand_status status, const char *operation, const char *text)
{
    char said[512];

    if (status == ERRAND_OK || text[0] == '\0')
        return;
    errand__lua_ffi_reword(text, said, sizeof said);
    errand__lua_error_raise(L, status == ERRAND_EINVAL ? "inval" : "unsupported",
                            operation, "%s", said);
}

static void
open_sandbox(lua_State *L, library *home, const errand__lua_run *run,
             const char *operation)
{
    char text[512] = "";
    errand_status status;

    if (run->options.held_replay != NULL) {
        status = errand_manual_create(NULL, &home->executor);
    } else {
        push_entries(L, home);
        status = errand_sandbox_create(&home->isolation.sandbox, &home->executor, text,
                                       sizeof text);
        lua_pop(L, 3);
    }
    raise_refusal(L, status, operation, text);
    errand__lua_work_filled(L, status, operation);
}

static errand_lease *
lease_of(lua_State *L, library *home, errand__lua_run *run, const char *operation)
{
    if (!home->isolation.process)
        return run->lease;
    if (home->executor == NULL)
        open_sandbox(L, home, run, operation);
    if (home->runtime != errand_runtime_id(run->runtime)) {
        errand_lease *lease = NULL;
        errand_status status = errand_attach(run->runtime, home->executor, 0, &lease);

        errand__lua_work_filled(L, status, operation);
        home->lease = lease;
        home->runtime = errand_runtime_id(run->runtime);
    }
    return home->lease;
}

/* ---- a call ----------------------------------------------------------------------------------- */

/* With report_denied: what its policy answered with an error. */
static void
warn_of_refusals(lua_State *L, const errand_completion *completion, const char *name)
{
    errand_sandbox_outcome outcome = {.struct_size = sizeof outcome};
    char text[160], call[48];

    if (errand_sandbox_outcome_read(completion, &outcome) != ERRAND_OK)
        return;
    for (uint32_t i = 0; i < outcome.refused_count; i++) {
        errand_sandbox_call_name(outcome.refused[i].call, call, sizeof call);
        snprintf(text, sizeof text, "%s: its policy refused the system call %s: %s", name,
                 call, strerror(outcome.refused[i].error));
        lua_warning(L, text, 0);
    }
}

static int
call_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    const function *own = (const function *)context;
    const errand_task_news *news = errand__lua_wait_news(L, own->name);
    errand_completion *completion = news->completion;
    void *data = NULL;
    size_t size = 0;

    errand__lua_ffi_raised(L, errand__lua_wait_running(L)->run, &completion->identity);
    if (own->home->isolation.policy.on_deny == ERRAND_DENY_REPORT)
        warn_of_refusals(L, completion, own->name);
    if (completion->outcome != ERRAND_COMPLETED)
        errand__lua_error_completion(L, completion, own->name);
    if (errand_completion_read(completion, &errand_ffi_result_type, &data, &size) !=
        ERRAND_OK)
        errand__lua_error_raise(L, "decode", own->name, "%s", completion->message);
    const errand_ffi_result *result = data;
    int values = 0;
    luaL_checkstack(L, (int)result->output_count + 4, own->name);
    if (result->value.kind != ERRAND_FFI_VOID) {
        errand__lua_ffi_push(L, &result->value);
        values++;
    }
    for (uint32_t i = 0; i < result->output_count; i++, values++)
        if (result->outputs[i].bytes == NULL)
            lua_pushnil(L);
        else
            lua_pushlstring(L, (const char *)result->outputs[i].bytes,
                            result->outputs[i].size);
    if (own->gives_errno) {
        lua_pushinteger(L, result->sys_errno);
        values++;
    }
    return values;
}

/* Index 1 is the function, then the arguments. */
static int
call(lua_State *L)
{
    function *own = check_function(L);
    const errand_ffi_signature *signature = errand_ffi_function_signature(own->function);
    errand__lua_task *task = errand__lua_wait_task(L, own->name);
    errand__lua_run *run = task->run;
    int given = lua_gettop(L) - 1;
    errand_ffi_error error = {0};
    errand_ffi_value values[64];
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_identity identity;

    errand__lua_join_alive(L, task, own->name);
    if (given != (int)signature->count)
        return luaL_error(L, "%s: %d arguments are wanted, not %d: it is %s", own->name,
                          (int)signature->count, given,
                          errand_ffi_function_text(own->function));
    for (int i = 0; i < given; i++)
        errand__lua_ffi_argument(L, i + 2, &signature->parameters[i], own->name, i + 1,
                                 &values[i]);
    errand_lease *lease = lease_of(L, own->home, run, own->name);
    errand_status status =
        errand_spec_call(&spec, own->function, values, (size_t)given, &error);
    if (status != ERRAND_OK && error.text[0] != '\0')
        return luaL_error(L, "%s: %s", own->name, error.text);
    errand__lua_work_filled(L, status, own->name);
    spec.held_name = own->name;
    spec.deadline_ns = own->home->isolation.deadline_ns;
    status = errand_task_await(run->visit, lease, &spec, UINT64_MAX, &identity);
    if (status != ERRAND_OK) {
        errand_spec_abandon(&spec);
        if (status == ERRAND_EINVAL && own->home->isolation.process)
            errand__lua_error_raise(
                L, "inval", own->name,
                "the arguments are larger than input_max allows, or the "
                "name of the library or function is too long");
    } else if (run->options.on_completion != NULL) {
        lua_pushstring(L, errand_ffi_function_text(own->function));
        errand__lua_report_subject(L, run, &identity);
    }
    /* The function's userdata stays at index 1 while the call is out. */
    return errand__lua_wait_for(L, task, status, own->name, call_over, (lua_KContext)own);
}

/* ---- functions ----------------------------------------------------------------------------------- */

static int
library_fn(lua_State *L)
{
    library *home = luaL_checkudata(L, 1, ERRAND__LUA_LIBRARY);
    const char *name = errand__lua_work_name(L, 2, "ffi.fn", "name", "name the function");
    const char *signature = lua_isnoneornil(L, 3) ? NULL : errand__lua_work_text(L, 3);
    errand_ffi_error error = {0};

    if (home->library == NULL)
        errand__lua_error_raise(L, "misuse", "ffi.fn", "the library was closed");
    lua_settop(L, 4);
    function *own = lua_newuserdatauv(L, sizeof *own, 1);
    memset(own, 0, sizeof *own);
    own->home = home;
    luaL_setmetatable(L, ERRAND__LUA_FUNCTION);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    if (lua_istable(L, 4)) {
        lua_getfield(L, 4, "errno");
        own->gives_errno = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    const char *given = signature != NULL ? signature : name;
    errand_status status =
        signature != NULL
            ? errand_ffi_describe_named(home->library, name, signature, &own->function,
                                        &error)
            : errand_ffi_describe(home->library, name, &own->function, &error);
    if (status != ERRAND_OK && error.column > 0)
        errand__lua_error_raise(L, "inval", "ffi.fn", "%.120s: column %d: %s", given,
                                (int)error.column, error.text);
    if (status != ERRAND_OK && error.text[0] != '\0')
        errand__lua_error_raise(L, "inval", "ffi.fn", "%.120s: %s", given, error.text);
    errand__lua_work_filled(L, status, "ffi.fn");
    const char *symbol = errand_ffi_function_signature(own->function)->symbol;
    size_t length = strnlen(symbol, sizeof own->name - 1);
    memcpy(own->name, symbol, length);
    if (home->isolation.process && home->executor == NULL) {
        lua_getiuservalue(L, 1, 2);
        lua_pushvalue(L, 5);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    lua_pushvalue(L, 5);
    return 1;
}

static int
function_collect(lua_State *L)
{
    function *own = luaL_checkudata(L, 1, ERRAND__LUA_FUNCTION);

    errand_ffi_function_abandon(&own->function);
    return 0;
}

static int
function_text(lua_State *L)
{
    const function *own = check_function(L);

    lua_pushfstring(L, "errand.function: %s", errand_ffi_function_text(own->function));
    return 1;
}

/* ---- libraries ------------------------------------------------------------------------------------ */

static int
library_collect(lua_State *L)
{
    library *home = luaL_checkudata(L, 1, ERRAND__LUA_LIBRARY);

    errand_ffi_library_abandon(&home->library);
    errand_executor_abandon(
        &home->executor); /* leases of a run in progress keep it alive */
    return 0;
}

/* library:sandbox(): the figures of its pool, or nil. */
static int
library_sandbox(lua_State *L)
{
    library *home = luaL_checkudata(L, 1, ERRAND__LUA_LIBRARY);
    errand_sandbox_snapshot snapshot = {.struct_size = sizeof snapshot};

    if (home->executor == NULL ||
        errand_sandbox_snapshot_read(home->executor, &snapshot) != ERRAND_OK) {
        lua_pushnil(L);
        return 1;
    }
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"ready", snapshot.ready},
        {"busy", snapshot.busy},
        {"starting", snapshot.starting},
        {"dying", snapshot.dying},
        {"reserve", snapshot.reserve},
        {"started", snapshot.started},
        {"recycled", snapshot.recycled},
        {"crashed", snapshot.crashed},
        {"killed", snapshot.killed},
        {"layers", snapshot.layers},
        {"landlock_abi", snapshot.landlock_abi},
        {"degraded", snapshot.degraded},
    };
    lua_createtable(L, 0, 13);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        lua_pushinteger(L, (lua_Integer)fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    lua_pushboolean(L, snapshot.breaker_open);
    lua_setfield(L, -2, "breaker_open");
    lua_pushstring(L, snapshot.text);
    lua_setfield(L, -2, "text");
    return 1;
}

/* What the options mean together is refused where they are written.  What the machine lacks is told by
 * the first call, which a replay never makes. */
static void
check_sandbox(lua_State *L, library *home)
{
    char text[512] = "";

    home->isolation.sandbox.policy = &home->isolation.policy;
    errand_status status =
        errand_sandbox_check(&home->isolation.sandbox, text, sizeof text);
    if (status == ERRAND_EINVAL)
        raise_refusal(L, status, "ffi.open", text);
}

static int
ffi_open(lua_State *L)
{
    const char *name = lua_isnoneornil(L, 1)
                           ? NULL
                           : errand__lua_work_name(L, 1, "ffi.open", "library",
                                                   "name it as for dlopen, or give nil "
                                                   "for what the process has already");
    lua_settop(L, 2);
    library *home = lua_newuserdatauv(L, sizeof *home, 2);
    memset(home, 0, sizeof *home);
    home->name = name;
    luaL_setmetatable(L, ERRAND__LUA_LIBRARY);
    lua_newtable(L); /* of its functions; keeps the name too */
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "name");
    lua_setiuservalue(L, 3, 2);
    errand__lua_ffi_options(L, 2, 3, &home->isolation);
    if (home->isolation.process)
        check_sandbox(L, home);
    if (home->isolation.process && name != NULL && name[0] != '/' && strchr(name, '/')) {
        /* A worker has another folder: the path counts from this one, now. */
        char whole[PATH_MAX];
        if (realpath(name, whole) == NULL)
            errand__lua_error_raise(
                L, "inval", "ffi.open",
                "'%s' counts from the current folder, where it cannot "
                "be found: %s",
                name, strerror(errno));
        home->name = name = lua_pushstring(L, whole);
        lua_getiuservalue(L, 3, 2);
        lua_insert(L, -2);
        lua_setfield(L, -2, "name");
        lua_pop(L, 1);
    }
    errand__lua_work_filled(L, errand_ffi_library_create(name, &home->library),
                            "ffi.open");
    return 1;
}

/* ---- the module's field -------------------------------------------------------------------------------- */

void
errand__lua_ffi_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void
errand__lua_ffi_open(lua_State *L)
{
    static const luaL_Reg libraries[] = {{"fn", library_fn},
                                         {"sandbox", library_sandbox},
                                         {"__gc", library_collect},
                                         {NULL, NULL}};
    static const luaL_Reg functions[] = {{"__call", call},
                                         {"__tostring", function_text},
                                         {"__gc", function_collect},
                                         {NULL, NULL}};
    static const luaL_Reg verbs[] = {
        {"open", ffi_open}, {"buffer", errand__lua_ffi_buffer}, {NULL, NULL}};

    errand__lua_ffi_type(L, ERRAND__LUA_LIBRARY, libraries);
    errand__lua_ffi_type(L, ERRAND__LUA_FUNCTION, functions);
    errand__lua_ffi_type(L, ERRAND__LUA_BUFFER, errand__lua_ffi_buffer_methods);
    luaL_newlib(L, verbs);
}
