/* SPDX-License-Identifier: MIT */
/* Goal: what the other tests lean on holds.
 * Method: gates between two threads, and children of this process that hang on purpose. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gate.h"
#include "group.h"
#include "watchdog.h"

typedef struct walk {
    test_gate gate;
    int steps; /* handed over by the gate */
} walk;

static void *
two_steps(void *arg)
{
    walk *walker = arg;

    walker->steps = 1;
    gate_wait(&walker->gate);
    walker->steps = 2;
    gate_wait(&walker->gate);
    return NULL;
}

static void
a_gate_holds_a_body_until_it_is_opened(void **state)
{
    walk walker = {.steps = 0};
    pthread_t thread;

    (void)state;
    gate_init(&walker.gate, "two steps");
    assert_int_equal(pthread_create(&thread, NULL, two_steps, &walker), 0);
    gate_await_arrival(&walker.gate);
    assert_int_equal(walker.steps, 1);
    gate_open(&walker.gate);
    gate_await_arrival(&walker.gate);
    assert_int_equal(walker.steps, 2);
    gate_open(&walker.gate);
    pthread_join(thread, NULL);
    gate_fini(&walker.gate);
}

static void
an_opening_before_the_arrival_is_remembered(void **state)
{
    walk walker = {.steps = 0};

    (void)state;
    gate_init(&walker.gate, "early");
    gate_open_many(&walker.gate, 2);
    two_steps(&walker);
    assert_int_equal(walker.steps, 2);
    gate_fini(&walker.gate);
}

/* Runs fn in a child and gives what it wrote to stderr; it must end by SIGABRT. */
static void
aborts_saying(void (*fn)(void), const char *expected)
{
    char text[512] = "";
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    close(ends[1]);
    size_t size = 0;
    ssize_t got;
    while ((got = read(ends[0], text + size, sizeof text - 1 - size)) > 0)
        size += (size_t)got;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, expected));
}

static void
hang(void)
{
    watchdog_start("a_test_that_hangs", 1);
    for (;;)
        pause();
}

static void
wait_at_a_closed_gate(void)
{
    test_gate gate;

    gate_init(&gate, "never opened");
    gate_seconds(1);
    gate_wait(&gate);
}

static void
a_hung_test_is_ended_and_named(void **state)
{
    (void)state;
    aborts_saying(hang, "a_test_that_hangs: did not end within 1 s");
}

static void
a_gate_that_nobody_opens_ends_the_test_and_is_named(void **state)
{
    (void)state;
    aborts_saying(wait_at_a_closed_gate, "gate \"never opened\" was not opened");
}

static void
the_running_test_knows_its_name(void **state)
{
    (void)state;
    assert_string_equal(test_name(), "the_running_test_knows_its_name");
}

static void
repeats_scale_by_tenths(void **state)
{
    const char *before = getenv("ERRAND_TEST_SCALE");
    char *kept = before != NULL ? strdup(before) : NULL;

    (void)state;
    setenv("ERRAND_TEST_SCALE", "1", 1);
    assert_int_equal(test_scaled(2000000), 200000);
    assert_int_equal(test_scaled(5), 1);
    setenv("ERRAND_TEST_SCALE", "10", 1);
    assert_int_equal(test_scaled(2000000), 2000000);
    assert_int_equal(test_scaled(5), 5);
    unsetenv("ERRAND_TEST_SCALE");
    if (kept != NULL)
        setenv("ERRAND_TEST_SCALE", kept, 1);
    free(kept);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_holds_a_body_until_it_is_opened),
        cmocka_unit_test(an_opening_before_the_arrival_is_remembered),
        cmocka_unit_test(a_hung_test_is_ended_and_named),
        cmocka_unit_test(a_gate_that_nobody_opens_ends_the_test_and_is_named),
        cmocka_unit_test(the_running_test_knows_its_name),
        cmocka_unit_test(repeats_scale_by_tenths),
    };
    return test_group("support", tests, NULL, NULL);
}
