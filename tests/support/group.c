/* SPDX-License-Identifier: MIT */
/* group: wraps each test's set-up and tear-down so that its name is known and its watchdog
 * runs.
 *
 * Design notes: cmocka keeps the running test's name to itself, so each record is copied, our
 * set-up takes the place of the test's own and finds that one by the record's initial state.
 * Tests run one after another on one thread; only the name is read from others. */
#include "group.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "watchdog.h"

enum { TESTS_MAX = 512 };

/* running: the test that cmocka is in, or NULL.
 * Writers: the test thread.  Readers: any thread of the test, for messages.
 * Order:   release and acquire.  Pairs: test-running (group.c test_begin, test_name).
 * Why:     the record must be complete before another thread reads its name. */
static _Atomic(const struct CMUnitTest *) running;

static const struct CMUnitTest *
running_test(void)
{
    return atomic_load_explicit(&running, memory_order_acquire); /* Pairs: test-running */
}

static int
test_begin(void **state)
{
    const struct CMUnitTest *test = *state;

    atomic_store_explicit(&running, test, memory_order_release); /* Pairs: test-running */
    watchdog_start(test->name, watchdog_seconds());
    *state = test->initial_state;
    return test->setup_func != NULL ? test->setup_func(state) : 0;
}

static int
test_end(void **state)
{
    const struct CMUnitTest *test = running_test();
    int failed = test->teardown_func != NULL ? test->teardown_func(state) : 0;

    watchdog_stop();
    atomic_store_explicit(&running, NULL, memory_order_release);
    return failed;
}

int
test_group_run(const char *name, const struct CMUnitTest *tests, size_t count,
               CMFixtureFunction setup, CMFixtureFunction teardown)
{
    static struct CMUnitTest wrapped[TESTS_MAX];
    const char *filter = getenv("ERRAND_TEST_FILTER");

    if (count > TESTS_MAX) {
        fprintf(stderr, "%s: more than %d tests in one program\n", name, TESTS_MAX);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        wrapped[i].name = tests[i].name;
        wrapped[i].test_func = tests[i].test_func;
        wrapped[i].setup_func = test_begin;
        wrapped[i].teardown_func = test_end;
        wrapped[i].initial_state = (void *)&tests[i];
    }
    if (filter != NULL)
        cmocka_set_test_filter(filter);
    int failed = _cmocka_run_group_tests(name, wrapped, count, setup, teardown);
    return failed != 0; /* a count of 256 would look like success */
}

const char *
test_name(void)
{
    const struct CMUnitTest *test = running_test();

    return test != NULL ? test->name : "(no test)";
}

void
test_skip(const char *reason)
{
    printf("[  REASON  ] %s: %s\n", test_name(), reason);
    fflush(stdout);
    _skip(__FILE__, __LINE__);
}

bool
test_under(const char *config)
{
    const char *text = getenv("ERRAND_TEST_CONFIG");

    return text != NULL && strcmp(text, config) == 0;
}

uint64_t
test_scaled(uint64_t full)
{
    const char *text = getenv("ERRAND_TEST_SCALE");
    uint64_t tenths = text != NULL ? strtoull(text, NULL, 10) : 1;
    uint64_t scaled = full / 10 * tenths + full % 10 * tenths / 10;

    if (test_under("valgrind"))
        scaled /= 20; /* it runs one thread at a time, and that one slowly */
    return scaled > 0 ? scaled : 1;
}
