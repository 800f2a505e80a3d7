/* SPDX-License-Identifier: MIT */
/* run: one script from its text to its report.
 *
 * Design notes.  Everything that can raise for want of memory runs in one protected call.  Streams
 * and bar come before the lua_State; the bar stops before the report is printed. */
#include "explore/marks.h"
#include <errno.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

typedef struct run_state {
    const errand__options *options;
    const errand__script *script;
    errand__trace_file trace;
    errand__tape_file tape;
    errand__recording recording;
    errand_replay *replay;
    errand__progress progress;
    errand_lua_options lua;
    errand_lua_result result;
    lua_State *L;
    bool loaded; /* the script is Lua */
} run_state;

static uint64_t
draw_seed(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec * 1000000007U ^ (uint64_t)now.tv_nsec;
    }
    return seed;
}

static void
on_step(void *arg, const errand_step *step)
{
    run_state *state = arg;
    if (step->kind == ERRAND_STEP_SUBMIT)
        errand__bar_submitted();
    errand__trace_file_step(&state->trace, step);
    if (state->options->marks != NULL)
        errand__marks_step(state->options->marks, step);
}

static void
on_start(void *arg, errand_runtime *runtime)
{
    run_state *state = arg;
    if (state->options->marks != NULL)
        errand__marks_begin(state->options->marks, runtime, state->L,
                            state->options->verdict_fd);
}

/* In arrival order a seed decides the random numbers alone. */
static void
print_seed(errand_order order, uint64_t seed)
{
    if (order == ERRAND_ORDER_ARRIVAL)
        errand__help_problem("seed %" PRIu64 " (drawn; --order arrival --seed %" PRIu64
                             " draws the same numbers)",
                             seed, seed);
    else
        errand__help_problem("seed %" PRIu64 " (drawn; --seed %" PRIu64 " repeats it)",
                             seed, seed);
}

static void
on_unheard(void *arg, const char *text)
{
    (void)arg;
    errand__help_problem("%s", text);
}

static void
fill_lua_options(run_state *state)
{
    const errand__options *options = state->options;
    state->lua = (errand_lua_options)ERRAND_LUA_OPTIONS_INIT;
    state->lua.order = options->order;
    state->lua.has_seed = true;
    state->lua.seed = options->has_seed ? options->seed : draw_seed();
    state->lua.choices = options->held_choices != NULL
                             ? options->held_choices
                             : errand__tape_file_choices(&state->tape, state->lua.seed);
    state->lua.workers = options->workers;
    state->lua.reactor = options->reactor;
    state->lua.deadline_ns = options->deadline_ns;
    state->lua.propagate = options->no_catch;
    state->lua.held_stop = errand__signals_install();
    state->lua.on_completion = errand__progress_event;
    state->lua.held_on_completion_arg = &state->progress;
    state->lua.on_unheard = on_unheard;
    state->lua.trace = on_step;
    state->lua.held_trace_arg = state;
    state->lua.alone = options->marks != NULL;
    state->lua.on_start = on_start;
    state->lua.held_on_start_arg = state;
    state->lua.held_recorder = state->recording.recorder;
    state->lua.held_replay = state->replay;
    errand_traps_set(options->traps);
    state->lua.argc = options->argc;
    state->lua.argv = (const char *const *)options->argv;
    if (!options->has_seed && !options->quiet)
        print_seed(options->order, state->lua.seed);
}

/* arg, as the stand-alone interpreter has it. */
static void
set_arguments(lua_State *L, const errand__options *options)
{
    lua_createtable(L, options->argc, 1);
    lua_pushstring(L, options->script != NULL ? options->script : "tour");
    lua_rawseti(L, -2, 0);
    for (int i = 0; i < options->argc; i++) {
        lua_pushstring(L, options->argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setglobal(L, "arg");
}

/* Index 1 is the state.  Raises for want of memory only, and with what Lua says about a script
 * that is no Lua. */
static int
run_protected(lua_State *L)
{
    run_state *state = lua_touserdata(L, 1);
    luaL_openlibs(L);
    luaL_requiref(L, "errand", luaopen_errand, 0);
    errand__jobs_register(L);
    set_arguments(L, state->options);
    lua_settop(L, 0);
    const errand__script *script = state->script;
    if (luaL_loadbufferx(L, script->text, script->size, script->chunk, "t") != LUA_OK)
        return lua_error(L);
    state->loaded = true;
    fill_lua_options(state);
    errand__progress_init(&state->progress, state->options);
    errand__progress_open(L, &state->progress);
    state->tape.ran = true;
    errand_lua_run(L, 0, &state->lua, &state->result);
    return 0;
}

static int
run_in_state(run_state *state)
{
    const errand__options *options = state->options;
    errand__output_start();
    errand__bar_start(options->order == ERRAND_ORDER_ARRIVAL, options->quiet);
    lua_State *L = luaL_newstate();
    if (L == NULL) {
        errand__bar_stop();
        errand__help_problem("memory ran out before the script could be loaded");
        return ERRAND__EXIT_REFUSED;
    }
    state->L = L;
    lua_pushcfunction(L, run_protected);
    lua_pushlightuserdata(L, state);
    bool good = lua_pcall(L, 1, 0, 0) == LUA_OK;
    errand__bar_stop();
    int code;
    if (good) {
        code = errand__report_print(options, &state->progress, &state->result);
        errand__verdict_send(options, &state->progress, &state->result);
        errand_lua_result_fini(&state->result);
    } else {
        const char *text = lua_tostring(L, -1);
        errand__help_problem("%s", text != NULL ? text : "memory ran out");
        code = state->loaded ? ERRAND__EXIT_REFUSED : ERRAND__EXIT_SCRIPT;
    }
    lua_close(L);
    return code;
}

int
errand__run_script(const errand__options *given)
{
    errand__script script = {0};
    errand__options own = *given,
                    *options = &own; /* a log that is replayed changes them */
    run_state state = {
        .options = options, .script = options->held_script, .tape = {.options = options}};
    if (!errand__paths_check(options))
        return ERRAND__EXIT_USAGE;
    if (state.script == NULL) {
        if (!errand__script_init(&script, options))
            return ERRAND__EXIT_SCRIPT;
        state.script = &script;
    }
    int code = ERRAND__EXIT_USAGE;
    /* Their paths count from where the program was started. */
    if (!errand__replaying_init(options, state.script, &state.replay) ||
        !errand__trace_file_init(&state.trace, options->trace_path) ||
        !errand__tape_file_init(&state.tape, options) ||
        !errand__recording_init(&state.recording, options, state.script))
        goto out;
    if (options->tree != NULL && chdir(options->tree) != 0) {
        errand__help_problem("--tree %s: %s: give a folder", options->tree,
                             strerror(errno));
        goto out;
    }
    code = run_in_state(&state);
    code = errand__output_code(code);
out:
    if (!errand__trace_file_fini(&state.trace) && code == ERRAND__EXIT_GOOD)
        code = ERRAND__EXIT_OUTPUT;
    if (!errand__tape_file_fini(&state.tape) && code == ERRAND__EXIT_GOOD)
        code = ERRAND__EXIT_OUTPUT;
    if (!errand__recording_fini(&state.recording) && code == ERRAND__EXIT_GOOD)
        code = ERRAND__EXIT_OUTPUT;
    if (errand_replay_close(&state.replay) != ERRAND_OK && code == ERRAND__EXIT_GOOD)
        code = ERRAND__EXIT_REFUSED; /* the run could not be ended */
    errand__script_fini(&script);
    return code;
}
