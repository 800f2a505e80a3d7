/* SPDX-License-Identifier: MIT */
/* Goal: an exception of a body ends inside errand/cxx.hpp: it becomes a panic, or the failure that was
 * asked for, with its words, its destructors have run, and the worker goes on (O75).
 * Method: bodies in C++ on a real worker, one after the other. */
#include <string.h>
#include "cxx_bodies.h"
#include "world.h"

static void
start(test_world *world, cxx_case which)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = cxx_body(which);
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_await(world, world->news_count + 1);
}

static void
exceptions_become_panics_with_their_words(void **state)
{
    /* O75 */
    static const struct {
        cxx_case which;
        const char *words;
    } cases[] = {{CXX_WORDS, "the words"},
                 {CXX_PANIC, "a panic"},
                 {CXX_NUMBER, "an exception that is no std::exception"}};
    test_world *world = *state;

    world_pool(world, 1);
    cxx_destroyed = 0;
    for (int i = 0; i < 3; i++) {
        start(world, cases[i].which);
        assert_int_equal(world_last(world)->outcome, ERRAND_PANICKED);
        assert_int_equal(world_last(world)->code, ERRAND_CODE_PANIC);
        assert_string_equal(world_last(world)->message, cases[i].words);
        assert_int_equal(cxx_destroyed, i + 1);
    }
    start(world, CXX_LONG); /* cut, as every message */
    assert_int_equal(world_last(world)->outcome, ERRAND_PANICKED);
    assert_int_equal(strlen(world_last(world)->message), 255);
    start(world, CXX_ANSWER);
    assert_int_equal(world_last(world)->outcome, ERRAND_FAILED);
    assert_int_equal(world_last(world)->job_code, 9);
}

static void
exceptions_become_failures_where_that_was_asked_for(void **state)
{
    /* O75 */
    test_world *world = *state;

    world_pool(world, 1);
    start(world, CXX_OR_FAIL);
    assert_int_equal(world_last(world)->outcome, ERRAND_FAILED);
    assert_int_equal(world_last(world)->code, ERRAND_CODE_JOB);
    assert_int_equal(world_last(world)->job_code, 5);
    assert_string_equal(world_last(world)->message, "the words");
}

static void
thread_that_ends_passes_through_and_is_contained(void **state)
{
    /* O75, C-F10 */
    test_world *world = *state;

    world_pool(world, 1);
    cxx_destroyed = 0;
    start(world, CXX_THREAD_END);
    assert_int_equal(world_last(world)->outcome, ERRAND_PANICKED);
    assert_memory_equal(world_last(world)->message, "thread exit", 11);
    assert_int_equal(cxx_destroyed, 1);
    start(world, CXX_ANSWER);
    assert_int_equal(world_last(world)->job_code, 9);
}

static void
exception_in_a_cleanup_ends_that_cleanup_alone(void **state)
{
    /* O75, O76 */
    errand_executor_snapshot snapshot;
    test_world *world = *state;

    world_pool(world, 1);
    start(world, CXX_IN_DEFER);
    assert_int_equal(world_last(world)->outcome, ERRAND_COMPLETED);
    start(world, CXX_ANSWER); /* its group's end publishes the count */
    do
        assert_int_equal(errand_executor_snapshot_read(world->pool, &snapshot),
                         ERRAND_OK);
    while (snapshot.destructor_panics == 0);
    assert_int_equal(snapshot.destructor_panics, 1);
}

#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(exceptions_become_panics_with_their_words),
        WITH_WORLD(exceptions_become_failures_where_that_was_asked_for),
        WITH_WORLD(thread_that_ends_passes_through_and_is_contained),
        WITH_WORLD(exception_in_a_cleanup_ends_that_cleanup_alone),
    };

    return test_group("hostile/cxx", tests, NULL, NULL);
}
