/* SPDX-License-Identifier: MIT */
/* Goal: what a library does while it is opened is confined already.
 * Method: objects whose constructors try one thing each; in a worker they get an error or end it,
 * and the host can say which library that was. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inside_rig.h"
#include "reach.h"

static void
start_with(inside *worker, const char *name, uint32_t promises, errand_entry *entry,
           char *library, size_t size)
{
    char built[512];
    snprintf(built, sizeof built, "%s/constructor_%s.so", ERRAND_TEST_OBJECTS, name);
    snprintf(library, size, "%s", test_reachable(built));
    *entry = (errand_entry){.library = library, .symbol = "probe"};
    errand_sandbox_policy policy = inside_policy(promises);
    policy.entries = entry;
    inside_start(worker, &(inside_start_how){.policy = &policy});
}

/* It is opened, and its constructor was refused. */
static void
is_refused(const char *name, uint32_t promises, char noted)
{
    inside worker;
    errand_entry entry;
    char library[512];
    start_with(&worker, name, promises, &entry, library, sizeof library);
    uint32_t ready = inside_ready(&worker);
    if (ready != 1)
        fail_msg("%s: not ready: %u %s", name, ready, worker.response->setup_text);
    if (worker.response->entry_state[0] != ERRAND__ENTRY_FINE)
        fail_msg("%s: %s", name, worker.response->entry_text);
    inside_ask(&worker, 0, NULL, 0);
    uint32_t length;
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_DONE);
    assert_int_equal(length, 1);
    assert_int_equal(inside_bytes(&worker)[0], noted);
    inside_end(&worker);
}

/* It ends before it is ready, and the host reads which library it was about. */
static void
ends_it(const char *name, int signal_number, int code)
{
    inside worker;
    errand_entry entry;
    char library[512];
    start_with(&worker, name, ERRAND_PROMISE_PURE, &entry, library, sizeof library);
    assert_int_equal(inside_ready(&worker), 0);
    int status = inside_wait(&worker);
    if (signal_number != 0)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == code);
    assert_non_null(strstr(worker.response->setup_text, name));
    inside_end(&worker);
}

static void
a_constructor_that_forks_is_refused(void **state)
{
    (void)state;
    is_refused("forks", ERRAND_PROMISE_PURE, 'n');
}
static void
a_constructor_that_connects_is_refused(void **state)
{
    (void)state;
    is_refused("connects", ERRAND_PROMISE_PURE, 'n');
}
static void
a_constructor_that_writes_is_refused(void **state)
{
    (void)state;
    is_refused("writes", ERRAND_PROMISE_PURE, 'n');
    assert_int_not_equal(access("/tmp/errand-constructor", F_OK), 0);
}
static void
a_constructor_that_reads_elsewhere_is_refused(void **state)
{
    (void)state;
    inside_need_layer(ERRAND_LAYER_LANDLOCK);
    is_refused("reads", ERRAND_PROMISE_PURE, 'n');
}
static void
a_constructor_that_makes_code_is_refused(void **state)
{
    (void)state;
    is_refused("code", ERRAND_PROMISE_PURE, 'n');
    is_refused("code", ERRAND_PROMISE_CALLBACK, 'n');
}
static void
a_constructor_that_kills_its_parent_ends_its_worker(void **state)
{
    (void)state;
    ends_it("kills", SIGSYS, 0);
}
static void
a_constructor_that_executes_ends_its_worker(void **state)
{
    (void)state;
    ends_it("executes", SIGSYS, 0);
}
static void
a_constructor_that_exits_is_named(void **state)
{
    (void)state;
    ends_it("exits", 0, 0);
}
static void
a_constructor_has_threads_by_promise_only(void **state)
{
    (void)state;
    is_refused("thread", ERRAND_PROMISE_PURE, 'n');
    is_refused("thread", ERRAND_PROMISE_THREAD, 'y');
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constructor_that_forks_is_refused),
        cmocka_unit_test(a_constructor_that_connects_is_refused),
        cmocka_unit_test(a_constructor_that_writes_is_refused),
        cmocka_unit_test(a_constructor_that_reads_elsewhere_is_refused),
        cmocka_unit_test(a_constructor_that_makes_code_is_refused),
        cmocka_unit_test(a_constructor_that_kills_its_parent_ends_its_worker),
        cmocka_unit_test(a_constructor_that_executes_ends_its_worker),
        cmocka_unit_test(a_constructor_that_exits_is_named),
        cmocka_unit_test(a_constructor_has_threads_by_promise_only),
    };
    return test_group("workers/sandbox/inside_constructors", tests, NULL, NULL);
}
