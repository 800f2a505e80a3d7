/* SPDX-License-Identifier: MIT */
/* Goal: what a program gets from hosts/lua/host.h: results, reports, native jobs, the stop switch.
 * Method: short scripts on a lua_State of their own; other threads only where a signal or a
 * body needs one, held by gates. */
#include "host.h"
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "gate.h"
#include "group.h"

static lua_State *
state_open(void)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    luaL_requiref(L, "errand", luaopen_errand, 1);
    lua_pop(L, 1);
    return L;
}

/* Loads and runs; the state keeps the results. */
static errand_lua_kind
state_run(lua_State *L, const char *script, const errand_lua_options *options,
          errand_lua_result *result)
{
    assert_int_equal(luaL_loadbuffer(L, script, strlen(script), "=script"), LUA_OK);
    return errand_lua_run(L, 0, options, result);
}

static errand_lua_options
seeded(uint64_t seed)
{
    errand_lua_options options = ERRAND_LUA_OPTIONS_INIT;
    options.order = ERRAND_ORDER_INLINE;
    options.has_seed = true;
    options.seed = seed;
    return options;
}

/* ---- results ------------------------------------------------------------------------------------ */

static void
results_lie_on_the_stack_and_arguments_are_strings(void **unused)
{
    (void)unused;
    lua_State *L = state_open();
    static const char *const argv[] = {"a", "b"};
    errand_lua_options options = ERRAND_LUA_OPTIONS_INIT;
    options.argc = 2;
    options.argv = argv;
    errand_lua_result result;
    assert_int_equal(luaL_loadstring(L, "return select('#', ...), ..."), LUA_OK);
    lua_pushinteger(L, 7);
    assert_int_equal(errand_lua_run(L, 1, &options, &result), ERRAND_LUA_OK);
    assert_int_equal(result.values, 4);
    assert_int_equal(lua_gettop(L), 4);
    assert_int_equal(lua_tointeger(L, 1), 3);
    assert_int_equal(lua_tointeger(L, 2), 7);
    assert_string_equal(lua_tostring(L, 4), "b");
    assert_null(result.message);
    assert_true(result.report.clean);
    assert_int_not_equal(result.seed, 0);
    errand_lua_result_fini(&result);
    lua_close(L);
}

static void
script_errors_tell_line_and_traceback(void **unused)
{
    (void)unused;
    lua_State *L = state_open();
    errand_lua_result result;
    const char *script = "local function deep()\n errand.yield() error('a word')\nend\n"
                         "deep()\n";
    assert_int_equal(state_run(L, script, NULL, &result), ERRAND_LUA_SCRIPT_ERROR);
    assert_non_null(strstr(result.message, "script:2: a word"));
    assert_non_null(strstr(result.message, "stack traceback:"));
    assert_non_null(strstr(result.message, "script:4:"));
    assert_int_equal(lua_gettop(L), 0);
    errand_lua_result_fini(&result);
    script = "errand.spawn(function() errand.read_file('/nowhere') end) errand.sleep(1)";
    errand_lua_options options = seeded(1);
    assert_int_equal(state_run(L, script, &options, &result), ERRAND_LUA_SCRIPT_ERROR);
    assert_non_null(strstr(result.message,
                           "task 2 failed and nobody awaited it: script:1: "
                           "read_file: "));
    errand_lua_result_fini(&result);
    script = "error(setmetatable({}, {__tostring = function() error('no') end}))";
    assert_int_equal(state_run(L, script, NULL, &result), ERRAND_LUA_SCRIPT_ERROR);
    assert_non_null(strstr(result.message, "broken __tostring"));
    errand_lua_result_fini(&result);
    lua_close(L);
}

static void
stalls_and_deadlines_are_kinds_of_their_own(void **unused)
{
    (void)unused;
    lua_State *L = state_open();
    errand_lua_result result;
    errand_lua_options options = seeded(1);
    const char *script = "local a, b\n"
                         "a = errand.spawn(function() errand.await(b) end)\n"
                         "b = errand.spawn(function() errand.await(a) end)\n"
                         "errand.await(a)";
    assert_int_equal(state_run(L, script, &options, &result), ERRAND_LUA_STALL);
    assert_non_null(strstr(result.message, "\n  task 2 (its function is at script:2) "
                                           "waits in await for task 3 at script:2\n"));
    assert_true(result.report.clean);
    errand_lua_result_fini(&result);
    options.deadline_ns = 1000000;
    assert_int_equal(state_run(L, "errand.sleep(1)", &options, &result),
                     ERRAND_LUA_DEADLINE);
    assert_true(result.elapsed_ns >= 1000000);
    errand_lua_result_fini(&result);
    lua_close(L);
}

static int
nested_run(lua_State *L)
{
    errand_lua_result result;
    assert_int_equal(luaL_loadstring(L, "return 1"), LUA_OK);
    assert_int_equal(errand_lua_run(L, 0, NULL, &result), ERRAND_LUA_REFUSED);
    assert_int_equal(result.status, ERRAND_EMISUSE);
    assert_non_null(strstr(result.message, "errand.spawn"));
    errand_lua_result_fini(&result);
    return 0;
}

static void
a_second_run_on_the_same_state_is_refused_inside_the_first(void **unused)
{
    (void)unused;
    lua_State *L = state_open();
    lua_register(L, "nested", nested_run);
    errand_lua_result result;
    assert_int_equal(state_run(L, "nested() errand.yield() return 2", NULL, &result),
                     ERRAND_LUA_OK);
    assert_int_equal(lua_tointeger(L, -1), 2);
    errand_lua_result_fini(&result);
    lua_close(L);
}

/* ---- completions and digest ------------------------------------------------------------------------ */

typedef struct transcript {
    char text[4096];
    size_t length;
    uint64_t steps;
} transcript;

static void
write_event(void *arg, const errand_lua_event *event)
{
    transcript *out = arg;
    out->length +=
        (size_t)snprintf(out->text + out->length, sizeof out->text - out->length,
                         "%s %s: %s %s%s\n", event->name, event->subject, event->outcome,
                         event->detail, event->late ? " (late)" : "");
    assert_true(out->length < sizeof out->text);
}

static void
count_step(void *arg, const errand_step *step)
{
    transcript *out = arg;
    assert_int_equal(step->step, out->steps + 1);
    out->steps++;
}

static uint64_t
transcribe(uint64_t seed, transcript *out)
{
    lua_State *L = state_open();
    errand_lua_options options = seeded(seed);
    errand_lua_result result;
    memset(out, 0, sizeof *out);
    options.on_completion = write_event;
    options.held_on_completion_arg = out;
    options.trace = count_step;
    options.held_trace_arg = out;
    const char *script = "local tasks = {}\n"
                         "for i, path in ipairs{'/etc/hostname', '/etc/passwd', "
                         "'/etc/nothing', '/etc/group'} do\n"
                         "  tasks[i] = errand.spawn(pcall, errand.hash_file, path)\n"
                         "end\n"
                         "errand.gather(tasks)\n"
                         "errand.command{'true', 'x'}\n"
                         "for i = 1, 20 do\n"
                         "  pcall(errand.timeout, 0.002, errand.stat, '/etc')\n"
                         "end\n"
                         "errand.sleep(1)\n";
    assert_int_equal(state_run(L, script, &options, &result), ERRAND_LUA_OK);
    uint64_t digest = result.digest;
    assert_int_equal(result.snapshot.accepted, result.snapshot.drained);
    errand_lua_result_fini(&result);
    lua_close(L);
    return digest;
}

static void
completions_are_told_as_they_come_and_alike_for_one_seed(void **unused)
{
    (void)unused;
    transcript first, again, other;
    uint64_t digest = transcribe(5, &first);
    assert_int_not_equal(digest, 0);
    assert_int_equal(transcribe(5, &again), digest);
    assert_string_equal(again.text, first.text);
    assert_int_equal(again.steps, first.steps);
    assert_true(first.steps > 10);
    assert_true(transcribe(6, &other) != digest);
    assert_non_null(strstr(first.text, "hash_file /etc/hostname: completed "));
    assert_non_null(strstr(first.text, "hash_file /etc/nothing: failed "));
    assert_non_null(strstr(first.text, "command true x: completed status 0\n"));
    const char *late = strstr(first.text, "\nstat /etc: ");
    assert_non_null(late); /* some of the twenty end before their limit, some after */
    assert_non_null(strstr(late, " (late)\n"));
    assert_non_null(strstr(late, "directory\n"));
}

/* ---- native jobs ------------------------------------------------------------------------------------- */

typedef struct sum_state {
    int64_t a, b;
} sum_state;
static int dropped;

static int32_t
sum_run(errand_job *job, void *state, errand_payload *out_payload)
{
    sum_state *sum = state;
    if (sum->b == 0)
        errand_panic("cannot add nothing to %d", (int)sum->a);
    if (sum->b < 0) {
        errand_job_message(job, "only upwards");
        return 4;
    }
    int64_t *value = errand_payload_alloc(job, sizeof *value, out_payload);
    *value = sum->a + sum->b;
    return 0;
}

static void
sum_drop(void *state)
{
    free(state);
    dropped++;
}

static void
sum_fill(lua_State *L, errand_spec *spec, void *arg)
{
    static const errand_job_type type = {
        .struct_size = sizeof type, .name = "sum", .run = sum_run, .drop = sum_drop};
    int64_t a = luaL_checkinteger(L, 2), b = luaL_checkinteger(L, 3);
    sum_state *state = malloc(sizeof *state);
    assert_non_null(state);
    state->a = a;
    state->b = b;
    assert_ptr_equal(arg, &dropped);
    spec->resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec->held_job = &type;
    spec->state = state;
}

static int
sum_push(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    lua_pushinteger(L, *(int64_t *)completion->payload.data);
    return 1;
}

static void
registered_jobs_answer_fail_and_panic_as_errors(void **unused)
{
    (void)unused;
    lua_State *L = state_open();
    errand_lua_job job = {sizeof job, "sum", sum_fill, sum_push, &dropped, NULL, NULL};
    errand_lua_register_job(L, &job);
    dropped = 0;
    errand_lua_result result;
    const char *script =
        "local ok, panic = pcall(errand.job, 'sum', 1, 0)\n"
        "assert(not ok and panic.code == 'panic', panic)\n"
        "assert(panic.message:find('cannot add nothing to 1', 1, true), panic.message)\n"
        "local ok, own = pcall(errand.job, 'sum', 1, -1)\n"
        "assert(own.code == 'job' and own.job_code == 4 and own.operation == 'sum', "
        "own)\n"
        "assert(own.message:find('only upwards', 1, true), own.message)\n"
        "local ok, wrong = pcall(errand.job, 'sum', 'one', 2)\n"
        "assert(wrong:find('#2 ', 1, true), wrong)\n"
        "assert(wrong:find('number expected', 1, true), wrong)\n"
        "return errand.job('sum', 40, 2)\n";
    assert_int_equal(state_run(L, script, NULL, &result), ERRAND_LUA_OK);
    assert_int_equal(lua_tointeger(L, -1), 42);
    assert_int_equal(dropped, 3);
    assert_int_equal(result.snapshot.panicked, 1);
    errand_lua_result_fini(&result);
    lua_close(L);
}

/* ---- the switch ----------------------------------------------------------------------------------------- */

static errand_lua_stop switch_of_tests;
static test_gate in_script;

static int
tell_test(lua_State *L)
{
    (void)L;
    gate_open(&in_script);
    return 0;
}

static void *
interrupt_when_told(void *arg)
{
    gate_wait(&in_script);
    assert_int_equal(errand_lua_interrupt(arg), 1);
    return NULL;
}

static void
stop_script(const char *script, errand_order order)
{
    lua_State *L = state_open();
    lua_register(L, "tell_test", tell_test);
    gate_init(&in_script, "script");
    errand_lua_stop_reset(&switch_of_tests);
    errand_lua_options options = seeded(1);
    options.order = order;
    options.held_stop = &switch_of_tests;
    options.grace_ns = 50000000;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, interrupt_when_told, &switch_of_tests),
                     0);
    errand_lua_result result;
    assert_int_equal(state_run(L, script, &options, &result), ERRAND_LUA_STOPPED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(strstr(result.message, "stopped"));
    assert_null(atomic_load_explicit(&switch_of_tests.inbox, memory_order_seq_cst));
    errand_lua_result_fini(&result);
    lua_close(L);
    gate_fini(&in_script);
}

static void
an_interrupt_ends_waits_and_endless_loops(void **unused)
{
    (void)unused;
    stop_script("tell_test() errand.sleep(1000)", ERRAND_ORDER_ARRIVAL);
    stop_script("tell_test() while true do end", ERRAND_ORDER_ARRIVAL);
    stop_script("tell_test() while true do pcall(function() while true do end end) end",
                ERRAND_ORDER_INLINE);
    stop_script("tell_test() while true do errand.sleep(1) end", ERRAND_ORDER_INLINE);
}

static void
an_interrupt_lets_cleanup_run(void **unused)
{
    (void)unused;
    stop_script("local guard <close> = setmetatable({}, {__close = function()\n"
                "  errand.shield(function() errand.sleep(0.001) end)\n"
                "end})\n"
                "tell_test() errand.sleep(1000)",
                ERRAND_ORDER_ARRIVAL);
}

static void
on_signal(int number)
{
    (void)number;
    errand_lua_interrupt(&switch_of_tests);
}

static int
raise_signal(lua_State *L)
{
    (void)L;
    assert_int_equal(raise(SIGUSR1), 0);
    return 0;
}

static void
an_interrupt_may_come_from_a_signal_handler_and_before_the_run(void **unused)
{
    (void)unused;
    lua_State *L = state_open();
    lua_register(L, "raise_signal", raise_signal);
    struct sigaction action = {.sa_handler = on_signal}, old;
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    errand_lua_options options = ERRAND_LUA_OPTIONS_INIT;
    options.held_stop = &switch_of_tests;
    errand_lua_stop_reset(&switch_of_tests);
    errand_lua_result result;
    assert_int_equal(state_run(L, "raise_signal() errand.sleep(1000)", &options, &result),
                     ERRAND_LUA_STOPPED);
    errand_lua_result_fini(&result);
    /* The switch still stands: the next run ends at once. */
    assert_int_equal(state_run(L, "errand.sleep(1000)", &options, &result),
                     ERRAND_LUA_STOPPED);
    errand_lua_result_fini(&result);
    assert_int_equal(errand_lua_interrupt(&switch_of_tests), 2);
    errand_lua_stop_reset(&switch_of_tests);
    assert_int_equal(state_run(L, "errand.sleep(0)", &options, &result), ERRAND_LUA_OK);
    errand_lua_result_fini(&result);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
    lua_close(L);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_lie_on_the_stack_and_arguments_are_strings),
        cmocka_unit_test(script_errors_tell_line_and_traceback),
        cmocka_unit_test(stalls_and_deadlines_are_kinds_of_their_own),
        cmocka_unit_test(a_second_run_on_the_same_state_is_refused_inside_the_first),
        cmocka_unit_test(completions_are_told_as_they_come_and_alike_for_one_seed),
        cmocka_unit_test(registered_jobs_answer_fail_and_panic_as_errors),
        cmocka_unit_test(an_interrupt_ends_waits_and_endless_loops),
        cmocka_unit_test(an_interrupt_lets_cleanup_run),
        cmocka_unit_test(an_interrupt_may_come_from_a_signal_handler_and_before_the_run),
    };
    return test_group("hosts/lua/host", tests, NULL, NULL);
}
