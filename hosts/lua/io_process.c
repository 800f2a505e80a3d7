/* SPDX-License-Identifier: MIT */
/* io_process: errand.process, and errand.command with stream = true: a child process that is
 * written to and read from while it runs.
 *
 * Design notes.  What it writes are sources, made at the first read, so that one that the script
 * never reads holds nothing but a pipe. */
#include "io.h"
#include <signal.h>
#include <string.h>

typedef struct process {
    errand_process *process; /* NULL = closed */
    errand_source *outputs[2];
    bool told; /* of its end */
} process;

static process *
check(lua_State *L, const char *operation)
{
    process *self = luaL_checkudata(L, 1, ERRAND__LUA_PROCESS);
    if (self->process == NULL)
        errand__lua_error_raise(L, "closed", operation, "the process was closed");
    return self;
}

/* ---- start ------------------------------------------------------------------------------- */

static int
spawn_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    errand_completion *completion = errand__lua_io_completion(L, "process");
    errand_process *own =
        errand__lua_io_payload(L, completion, &errand_process_type, "process");
    process *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (process){.process = NULL};
    luaL_setmetatable(L, ERRAND__LUA_PROCESS);
    self->process = errand_process_hold(own);
    return 1;
}

static uint32_t
read_flags(lua_State *L)
{
    uint32_t flags = ERRAND_PROCESS_OUTPUT;
    bool closed = lua_getfield(L, 1, "input") == LUA_TBOOLEAN && !lua_toboolean(L, -1);
    if (!closed && !lua_isnil(L, -1) && !lua_isboolean(L, -1))
        luaL_error(L, "process: input must be true or false: write() sends bytes");
    flags |= closed ? 0 : ERRAND_PROCESS_INPUT;
    const char *word = errand__lua_io_text(L, 1, "errors", "process");
    if (word == NULL || strcmp(word, "together") == 0)
        flags |= ERRAND_PROCESS_TOGETHER;
    else if (strcmp(word, "pipe") == 0)
        flags |= ERRAND_PROCESS_ERRORS;
    else if (strcmp(word, "none") != 0)
        luaL_error(L, "process: errors must be 'together', 'pipe' or 'none'");
    return flags;
}

int
errand__lua_verb_process(lua_State *L)
{
    static const char *const fields[] = {"argv",   "input",  "env", "cwd",
                                         "errors", "stream", NULL};
    errand__lua_task *task = errand__lua_io_task(L, "process");
    errand_lease *lease = errand__lua_io_lease(L, task->run, "process");
    errand_process_config config = {.struct_size = sizeof config};
    errand_spec spec = ERRAND_SPEC_INIT;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    errand__lua_command_fields(L, "process", fields);
    config.argv = errand__lua_command_argv(L, "process");
    config.env = errand__lua_command_env(L, "process");
    config.cwd = errand__lua_io_text(L, 1, "cwd", "process");
    config.flags = read_flags(L);
    errand__lua_command_line(L, config.argv);
    errand__lua_io_filled(L, errand_spec_spawn(&spec, &config), "process");
    return errand__lua_io_await(L, task, lease, &spec, lua_gettop(L), "process",
                                spawn_over, 0);
}

/* ---- while it runs ------------------------------------------------------------------------- */

static void
fill_write(lua_State *L, errand_spec *spec)
{
    process *self = check(L, "write");
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    errand_status status = errand_spec_process_write(spec, self->process, bytes, size);
    if (status == ERRAND_EINVAL)
        errand__lua_error_raise(L, "inval", "write", "its input is no pipe");
    errand__lua_io_filled(L, status, "write");
}

static void
fill_read(lua_State *L, errand_spec *spec, errand_output output, const char *name)
{
    process *self = check(L, name);
    errand_source **own = &self->outputs[output - ERRAND_OUTPUT_OUT];
    if (*own == NULL) {
        errand_status status = errand_source_output(self->process, output, NULL, own);
        if (status == ERRAND_EINVAL)
            errand__lua_error_raise(L, "inval", name,
                                    "it is no pipe: start it with errors = 'pipe'");
        errand__lua_io_filled(L, status, name);
    }
    errand__lua_io_filled(L, errand_source_next(*own, spec), name);
}

static void
fill_read_output(lua_State *L, errand_spec *spec)
{
    fill_read(L, spec, ERRAND_OUTPUT_OUT, "read");
}

static void
fill_read_errors(lua_State *L, errand_spec *spec)
{
    fill_read(L, spec, ERRAND_OUTPUT_ERR, "read_errors");
}

static int
push_read(lua_State *L, errand_completion *completion)
{
    return errand__lua_io_push_bytes(L, completion, "read");
}

/* for text in process do: what a generic for gives besides is not its. */
static int
process_call(lua_State *L)
{
    lua_settop(L, 1);
    return errand__lua_io_call(L);
}

static void
fill_wait(lua_State *L, errand_spec *spec)
{
    process *self = check(L, "wait");
    errand__lua_io_filled(L, errand_spec_process_wait(spec, self->process), "wait");
}

static int
push_wait(lua_State *L, errand_completion *completion)
{
    const errand_exit *end =
        errand__lua_io_payload(L, completion, &errand_exit_type, "wait");
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, end->signal_number != 0 ? end->signal_number : end->exit_status);
    lua_setfield(L, -2, end->signal_number != 0 ? "signal" : "status");
    process *self = luaL_testudata(L, 1, ERRAND__LUA_PROCESS);
    if (self != NULL)
        self->told = true;
    return 1;
}

static int
process_end_input(lua_State *L)
{
    errand_status status = errand_process_end_input(check(L, "end_input")->process);
    if (status == ERRAND_EINVAL)
        errand__lua_error_raise(L, "inval", "end_input", "its input is no pipe");
    errand__lua_io_filled(L, status, "end_input");
    return 0;
}

/* true = it was sent; false = the process had ended. */
static int
process_kill(lua_State *L)
{
    process *self = check(L, "kill");
    int32_t number =
        lua_isnoneornil(L, 2) ? SIGKILL : errand__lua_io_signal(L, 2, "kill");
    errand_status status = errand_process_signal(self->process, number);
    if (status != ERRAND_EGONE)
        errand__lua_io_filled(L, status, "kill");
    /* In a replay there is none: what the script was told is what it can know. */
    bool replayed = errand_process_id(self->process) == 0;
    lua_pushboolean(L, replayed ? !self->told : status == ERRAND_OK);
    return 1;
}

static int
process_id(lua_State *L)
{
    lua_pushinteger(L, errand_process_id(check(L, "id")->process));
    return 1;
}

static int
process_close(lua_State *L)
{
    process *self = luaL_checkudata(L, 1, ERRAND__LUA_PROCESS);
    for (int i = 0; i < 2; i++) {
        errand_source_close(self->outputs[i]);
        errand_source_abandon(&self->outputs[i]);
    }
    if (self->process != NULL) { /* whoever waits for it hears of its end */
        errand_status status = errand_process_signal(self->process, SIGKILL);
        (void)status; /* it has ended already */
    }
    errand_process_abandon(&self->process);
    return 0;
}

void
errand__lua_process_open(lua_State *L)
{
    static const errand__lua_io_verb verbs[] = {
        {"read", fill_read_output, push_read, NULL},
        {"write", fill_write, NULL, NULL},
        {"read_errors", fill_read_errors, push_read, NULL},
        {"wait", fill_wait, push_wait, NULL},
        {NULL, NULL, NULL, NULL},
    };
    static const luaL_Reg methods[] = {{"end_input", process_end_input},
                                       {"kill", process_kill},
                                       {"id", process_id},
                                       {NULL, NULL}};
    errand__lua_io_class(L, ERRAND__LUA_PROCESS, process_close);
    luaL_setfuncs(L, methods, 0);
    errand__lua_io_verbs(L, verbs);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&verbs[0]);
    lua_pushcclosure(L, process_call, 1);
    lua_setfield(L, -3, "__call");
    lua_pop(L, 2);
    lua_pushcfunction(L, errand__lua_verb_process);
    lua_setfield(L, -2, "process");
}
