/* SPDX-License-Identifier: MIT */
/* options: errand.run(f, {order=, seed=, ...}) for scripts.
 *
 * Design notes.  A field that nobody knows is an error, so that a slip of the pen does not run in
 * another order than meant.  A seed alone asks for a seeded order. */
#include "lua_host.h"
#include <string.h>
#include "errand/io.h"

static uint64_t
seconds_of(lua_State *L, const char *name)
{
    lua_Number seconds = lua_tonumber(L, -1);
    if (!(seconds > 0) || !lua_isnumber(L, -1))
        luaL_error(L, "errand.run: %s must be a number of seconds above 0", name);
    return seconds < 9e9 ? (uint64_t)(seconds * 1e9) : 0;
}

static void
read_order(lua_State *L, errand_lua_options *options)
{
    const char *order = lua_tostring(L, -1);
    if (order != NULL && strcmp(order, "inline") == 0)
        options->order = ERRAND_ORDER_INLINE;
    else if (order != NULL && strcmp(order, "paced") == 0)
        options->order = ERRAND_ORDER_PACED;
    else if (order == NULL || strcmp(order, "arrival") != 0)
        luaL_error(L, "errand.run: order must be \"arrival\", \"inline\" or \"paced\"");
}

static void
read_reactor(lua_State *L, errand_lua_options *options)
{
    const char *reactor = lua_tostring(L, -1);
    if (reactor != NULL && strcmp(reactor, "io_uring") == 0)
        options->reactor = ERRAND_REACTOR_URING;
    else if (reactor != NULL && strcmp(reactor, "epoll") == 0)
        options->reactor = ERRAND_REACTOR_EPOLL;
    else
        luaL_error(L, "errand.run: reactor must be \"io_uring\" or \"epoll\"");
}

/* What the table says and errand_lua_options has no field for. */
typedef struct run_words {
    bool ordered;
    const char *policy, *tape, *save_tape;
    errand__lua_recording recording;
} run_words;

static const char *
text_of(lua_State *L, const char *name)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "errand.run: %s must be a string", name);
    return lua_tostring(L, -1);
}

static void
read_field(lua_State *L, const char *name, errand_lua_options *options, run_words *words)
{
    if (strcmp(name, "order") == 0) {
        read_order(L, options);
        words->ordered = true;
    } else if (strcmp(name, "policy") == 0) {
        words->policy = text_of(L, name);
    } else if (strcmp(name, "tape") == 0) {
        words->tape = text_of(L, name);
    } else if (strcmp(name, "save_tape") == 0) {
        words->save_tape = text_of(L, name);
    } else if (strcmp(name, "record") == 0) {
        words->recording.record = text_of(L, name);
    } else if (strcmp(name, "record_payloads") == 0) {
        words->recording.payloads = lua_toboolean(L, -1);
    } else if (strcmp(name, "replay") == 0) {
        words->recording.replayed = text_of(L, name);
    } else if (strcmp(name, "seed") == 0) {
        int exact;
        options->seed = (uint64_t)lua_tointegerx(L, -1, &exact);
        options->has_seed = true;
        if (!exact)
            luaL_error(L, "errand.run: seed must be an integer");
    } else if (strcmp(name, "reactor") == 0) {
        read_reactor(L, options);
    } else if (strcmp(name, "workers") == 0) {
        lua_Integer workers = lua_tointeger(L, -1);
        if (workers < 1 || workers > 1024)
            luaL_error(L, "errand.run: workers must be 1 .. 1024");
        options->workers = (uint32_t)workers;
    } else if (strcmp(name, "deadline") == 0) {
        options->deadline_ns = seconds_of(L, name);
    } else if (strcmp(name, "grace") == 0) {
        options->grace_ns = seconds_of(L, name);
    } else if (strcmp(name, "watchdog") == 0) {
        options->watchdog_ns = seconds_of(L, name);
    } else if (strcmp(name, "catch") == 0) {
        if (!lua_isboolean(L, -1))
            luaL_error(L, "errand.run: catch must be true or false");
        options->propagate = !lua_toboolean(L, -1);
    } else {
        luaL_error(L,
                   "errand.run: no option is called '%s': use order, seed, workers, "
                   "deadline, grace, watchdog, catch, policy, tape, save_tape, record, "
                   "record_payloads, replay and reactor",
                   name);
    }
}

static bool
wants_choices(const run_words *words)
{
    return words->policy != NULL || words->tape != NULL || words->save_tape != NULL;
}

static void
read_options(lua_State *L, int index, errand_lua_options *options, run_words *words)
{
    if (lua_isnoneornil(L, index))
        return;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "errand.run: options have names");
        read_field(L, lua_tostring(L, -2), options, words);
    }
    if (words->recording.replayed != NULL &&
        (words->ordered || options->has_seed || wants_choices(words)))
        luaL_error(L, "errand.run: replay takes order, seed and choices from the log: "
                      "leave them out");
    if ((options->has_seed || wants_choices(words)) && !words->ordered)
        options->order = ERRAND_ORDER_PACED;
    if (wants_choices(words) && options->order == ERRAND_ORDER_ARRIVAL)
        luaL_error(L, "errand.run: policy, tape and save_tape need a seeded order");
}

/* Runs the function on top; its results or the error value are pushed.  That the log could not be
 * written is an error only if the run ended well. */
static errand_lua_kind
run_recorded(lua_State *L, errand_lua_options *options, errand__lua_recording *recording,
             errand_lua_result *result)
{
    int base = lua_gettop(L) - 1;
    if (errand__lua_run_find(L) != NULL)
        return errand__lua_run_value(L, 0, options, result);
    memset(result, 0, sizeof *result);
    errand_lua_kind kind = ERRAND_LUA_REFUSED;
    bool begun = errand__lua_recording_init(recording, L, options);
    if (begun)
        kind = errand__lua_run_value(L, 0, options, result);
    if (begun && (errand__lua_recording_fini(recording) || kind != ERRAND_LUA_OK))
        return kind;
    lua_settop(L, base);
    lua_pushfstring(L, "errand.run: %s", recording->text);
    return ERRAND_LUA_REFUSED;
}

/* The same, with its choices.  The tape is written
 * whatever the run's end; that it could not be raises only if the run ended well. */
static errand_lua_kind
run_chosen(lua_State *L, errand_lua_options *options, run_words *words,
           errand_lua_result *result)
{
    errand__lua_choices choices;
    if (!wants_choices(words) || errand__lua_run_find(L) != NULL)
        return run_recorded(L, options, &words->recording, result);
    if (!options->has_seed)
        options->seed = errand__lua_run_seed();
    options->has_seed = true;
    if (!errand__lua_choices_init(&choices, words->policy, words->tape, words->save_tape,
                                  options->seed))
        luaL_error(L, "errand.run: %s", choices.text);
    options->choices = &choices.all;
    errand_lua_kind kind = run_recorded(L, options, &words->recording, result);
    if (!errand__lua_choices_fini(&choices) && kind == ERRAND_LUA_OK) {
        errand_lua_result_fini(result);
        luaL_error(L, "errand.run: %s", choices.text);
    }
    return kind;
}

static void
print_unheard(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "errand: %s\n", text);
}

/* errand.run(f, options): f's results, or its error. */
int
errand__lua_verb_run(lua_State *L)
{
    errand_lua_options options = ERRAND_LUA_OPTIONS_INIT;
    errand_lua_result result;
    run_words words = {.ordered = false};
    errand__lua_wait_callable(L, 1);
    options.on_unheard = print_unheard;
    read_options(L, 2, &options, &words);
    lua_settop(L, 2);
    words.policy = lua_pushstring(L, words.policy); /* the script may change its table */
    words.tape = lua_pushstring(L, words.tape);
    words.save_tape = lua_pushstring(L, words.save_tape);
    words.recording.record = lua_pushstring(L, words.recording.record);
    words.recording.replayed = lua_pushstring(L, words.recording.replayed);
    lua_pushvalue(L, 1);
    errand_lua_kind kind = run_chosen(L, &options, &words, &result);
    int values = result.values;
    bool nested = kind == ERRAND_LUA_REFUSED && result.status == ERRAND_EMISUSE;
    errand_lua_result_fini(&result);
    if (nested) {
        errand__lua_error_raise(L, "misuse", "run", "%s", lua_tostring(L, -1));
    }
    if (kind != ERRAND_LUA_OK)
        return lua_error(L);
    return values;
}
