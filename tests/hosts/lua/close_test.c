/* SPDX-License-Identifier: MIT */
/* Goal: closing the lua_State in the middle of anything leaks nothing and hangs nowhere.
 * Method: a C function inside a task calls lua_close and leaves by longjmp, over the drive that
 * called it (O34, O73); an allocator of Lua's that counts bytes, and one that fails at the N-th
 * call for every N. */
#include "host.h"
#include <lauxlib.h>
#include <lualib.h>
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include "errand/testing.h"
#include "gate.h"
#include "group.h"

typedef struct memory {
    size_t live;
    uint64_t asked, fail_at; /* 0 = never */
} memory;

static void *
allocate(void *arg, void *block, size_t size, size_t new_size)
{
    memory *own = arg;
    size_t before = block != NULL ? size : 0;
    if (new_size == 0) {
        free(block);
        own->live -= before;
        return NULL;
    }
    own->asked++;
    if (own->fail_at != 0 && own->asked >= own->fail_at && new_size > before)
        return NULL;
    void *fresh = realloc(block, new_size);
    assert_non_null(fresh);
    own->live = own->live - before + new_size;
    return fresh;
}

static jmp_buf out;
static lua_State *closing;

static int
close_and_leave(lua_State *L)
{
    (void)L;
    lua_close(closing);
    longjmp(out, 1);
}

static test_gate body_gate;

static int32_t
gated_run(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)state;
    (void)out_payload;
    gate_wait(&body_gate);
    return errand_job_cancelled(job) ? 1 : 0;
}

static void
gated_fill(lua_State *L, errand_spec *spec, void *arg)
{
    static const errand_job_type type = {
        .struct_size = sizeof type, .name = "gated", .run = gated_run};
    (void)L;
    (void)arg;
    spec->resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec->held_job = &type;
}

static int
await_body(lua_State *L)
{
    (void)L;
    gate_await_arrival(&body_gate);
    gate_open(&body_gate);
    return 0;
}

static lua_State *
state_open(memory *own)
{
    static const errand_lua_job job = {
        .struct_size = sizeof job, .name = "gated", .fill = gated_fill};
    lua_State *L = lua_newstate(allocate, own);
    assert_non_null(L);
    luaL_openlibs(L);
    luaL_requiref(L, "errand", luaopen_errand, 1);
    lua_pop(L, 1);
    lua_register(L, "close_and_leave", close_and_leave);
    lua_register(L, "await_body", await_body);
    errand_lua_register_job(L, &job);
    return L;
}

/* The library's bytes are back at what they were; the pool's last thread may still be ending. */
static void
assert_all_given_back(int64_t before)
{
    uint64_t until = errand_deadline_in(10000000000U);
    while (errand_testing_live_bytes() != before && errand_deadline_in(0) < until)
        sched_yield();
    assert_int_equal(errand_testing_live_bytes(), before);
}

static void
close_inside(const char *script, errand_order order)
{
    static memory own;
    memset(&own, 0, sizeof own);
    errand_lua_options options = ERRAND_LUA_OPTIONS_INIT;
    errand_lua_result result;
    int64_t before = errand_testing_live_bytes();
    options.order = order;
    options.has_seed = true;
    closing = state_open(&own);
    assert_int_equal(luaL_loadstring(closing, script), LUA_OK);
    if (setjmp(out) == 0) {
        errand_lua_run(closing, 0, &options, &result);
        fail_msg("the script did not leave");
    }
    assert_int_equal(own.live, 0);
    assert_all_given_back(before);
}

static void
a_state_closed_inside_a_task_leaks_nothing_and_enters_no_lua_code(void **unused)
{
    (void)unused;
    static const char *const scripts[] = {
        "close_and_leave()",
        "errand.yield() close_and_leave()",
        "errand.spawn(errand.sleep, 1000) errand.sleep(0.001) close_and_leave()",
        "local t = errand.spawn(errand.sleep, 1000)\n"
        "errand.spawn(errand.gather, t) errand.spawn(errand.race, t)\n"
        "errand.spawn(errand.await, t) errand.spawn(errand.timeout, 1000, errand.sleep, "
        "900)\n"
        "errand.sleep(0.001) close_and_leave()",
        "for i = 1, 50 do errand.spawn(errand.hash_file, '/etc/passwd') end\n"
        "errand.yield() close_and_leave()",
        /* What waits on the reactor, what is kept, and what has not begun. */
        "local l = errand.listen('127.0.0.1:0')\n"
        "errand.spawn(l.accept, l) errand.yield() close_and_leave()",
        "errand.process({'sleep', '1000'}) local s = errand.signal('USR1')\n"
        "local u = errand.udp('127.0.0.1:0') errand.spawn(errand.yield) "
        "close_and_leave()",
        "errand.spawn(pcall, errand.http.get, 'http://127.0.0.1:1/')\n"
        "errand.spawn(errand.connect, 'localhost:1') errand.yield() close_and_leave()",
        "errand.spawn(function() error('unheard') end) errand.sleep(0.001) "
        "close_and_leave()",
        "errand.shield(function() errand.yield() close_and_leave() end)",
        "errand.timeout(1000, function() errand.yield() close_and_leave() end)",
        "errand.spawn(function()\n"
        "  local guard <close> = setmetatable({}, {__close = function() os.exit(false) "
        "end})\n"
        "  errand.sleep(1000)\n"
        "end)\n"
        "errand.sleep(0.001) close_and_leave()",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        close_inside(scripts[i], ERRAND_ORDER_ARRIVAL);
        close_inside(scripts[i], ERRAND_ORDER_INLINE);
    }
}

static void
a_state_closed_while_a_body_runs_waits_for_it_and_leaks_nothing(void **unused)
{
    (void)unused;
    gate_init(&body_gate, "body");
    close_inside("errand.spawn(errand.job, 'gated') errand.yield() errand.yield()\n"
                 "await_body() close_and_leave()",
                 ERRAND_ORDER_ARRIVAL);
    gate_fini(&body_gate);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static const char *const whole_life =
    "local function work(path)\n"
    "  local guard <close> = setmetatable({}, {__close = function() errand.now() end})\n"
    "  return errand.hash_file(path)\n"
    "end\n"
    "local a = errand.spawn(work, '/etc/passwd')\n"
    "local b = errand.spawn(work, '/etc/group')\n"
    "local c = errand.spawn(function() errand.sleep(1000) end)\n"
    "errand.yield()\n"
    "errand.cancel(c, 'enough')\n"
    "pcall(errand.await, c)\n"
    "local list = errand.gather{a, b}\n"
    "errand.race(errand.spawn(errand.sleep, 0.1), errand.spawn(errand.sleep, 0.2))\n"
    "pcall(errand.timeout, 0.001, errand.sleep, 5)\n"
    "errand.shield(function() errand.write_file('/dev/null/none', 'x') end)\n";

/* Ends in an error, as the other does. */
static const char *const talk =
    "local l <close> = errand.listen('127.0.0.1:0')\n"
    "local t = errand.spawn(l.accept, l)\n"
    "local a = errand.connect(l:address(), {receive_timeout = 60})\n"
    "local b <close> = errand.await(t)\n"
    "a:send('line\\n', 'kept') a:close()\n"
    "b:recv_line() b:recv(4) b:recv_some()\n"
    "local u <close> = errand.udp('127.0.0.1:0')\n"
    "u:send('x', u:address()) u:recv()\n"
    "local p <close> = errand.process{'sh', '-c', 'echo x', env = {PATH = "
    "'/bin:/usr/bin'}}\n"
    "for text in p do end p:wait()\n"
    "error('over')\n";

typedef struct life {
    const char *script;
    errand_order order;
    errand_lua_result result;
} life;

static int
run_life(lua_State *L)
{
    life *own = lua_touserdata(L, 1);
    errand_lua_options options = ERRAND_LUA_OPTIONS_INIT;
    options.order = own->order;
    options.has_seed = true;
    options.seed = 3;
    if (luaL_loadstring(L, own->script) != LUA_OK)
        return lua_error(L);
    errand_lua_run(L, 0, &options, &own->result);
    return 0;
}

static void
live_with_less(const char *script, errand_order order, const char *last)
{
    memory own = {0};
    int64_t before = errand_testing_live_bytes();
    bool complete = false;
    uint64_t n = 1;
    for (; !complete && n < 5000; n++) {
        life one = {.script = script, .order = order};
        memset(&own, 0, sizeof own);
        lua_State *L = state_open(&own);
        lua_gc(L, LUA_GCSTOP);
        own.fail_at = own.asked + n;
        lua_pushcfunction(L, run_life);
        lua_pushlightuserdata(L, &one);
        int status = lua_pcall(L, 1, 0, 0);
        complete = status == LUA_OK && own.asked < own.fail_at;
        if (complete) { /* its last call fails for good */
            assert_int_equal(one.result.kind, ERRAND_LUA_SCRIPT_ERROR);
            assert_non_null(strstr(one.result.message, last));
        }
        if (status == LUA_OK && one.result.kind == ERRAND_LUA_OK)
            fail_msg("the script cannot end well");
        own.fail_at = 0;
        errand_lua_result_fini(&one.result);
        lua_close(L);
        assert_int_equal(own.live, 0);
    }
    assert_all_given_back(before);
    assert_true(complete);
    assert_true(n > 100);
}

static void
lua_memory_that_ends_at_any_point_ends_the_run_and_leaks_nothing(void **unused)
{
    (void)unused;
    live_with_less(whole_life, ERRAND_ORDER_INLINE, "/dev/null/none");
}

static void
lua_memory_that_ends_while_peers_talk_ends_the_run_and_leaks_nothing(void **unused)
{
    (void)unused;
    live_with_less(talk, ERRAND_ORDER_ARRIVAL, "over");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_state_closed_inside_a_task_leaks_nothing_and_enters_no_lua_code),
        cmocka_unit_test(a_state_closed_while_a_body_runs_waits_for_it_and_leaks_nothing),
        cmocka_unit_test(
            lua_memory_that_ends_at_any_point_ends_the_run_and_leaks_nothing),
        cmocka_unit_test(
            lua_memory_that_ends_while_peers_talk_ends_the_run_and_leaks_nothing),
    };
    return test_group("hosts/lua/close", tests, NULL, NULL);
}
