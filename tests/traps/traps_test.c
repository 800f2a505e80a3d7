/* SPDX-License-Identifier: MIT */
/* Goal: what a job of a seeded run reads beside what it was given is refused, with a message that
 * names the call and the mend, or told, or let through; nothing is caught elsewhere (D141, D151).
 * Method: a body that makes one call, in each order, on the manual executor and on a pool. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include "errand/operations.h"
#include "errand/traps.h"
#include "world.h"

static const errand_order orders[] = {ERRAND_ORDER_INLINE, ERRAND_ORDER_PACED};

static void
restart(test_world *in, errand_order order)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = order,
                                    .seed = 5,
                                    .on_completion = world_handler,
                                    .held_on_completion_arg = in};

    world_end(in);
    in->news_count = 0;
    world_begin(in, &config, 0);
}

static int
setup(void **state)
{
    if (world_setup(state) != 0)
        return -1;
    errand_traps_set(ERRAND_TRAPS_REFUSE);
    return 0;
}

static void
need_traps(void)
{
    if (!errand_traps_present())
        test_skip("a sanitizer stands in the calls itself");
}

/* Runs one job to its completion. */
static const world_news *
run_one(test_world *in, world_job *job)
{
    size_t before = in->news_count;

    world_start(in, job);
    world_await(in, before + 1);
    return &in->news[before];
}

/* ---- the calls ------------------------------------------------------------------------------ */

static void *
thread_pthread(void *arg)
{
    return arg;
}

static int
thread_thrd(void *arg)
{
    (void)arg;
    return 0;
}

static void
call_time(void)
{
    (void)time(NULL);
}
static void
call_clock(void)
{
    (void)clock();
}
static void
call_clock_gettime(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
}
static void
call_gettimeofday(void)
{
    struct timeval now;
    (void)gettimeofday(&now, NULL);
}
static void
call_timespec_get(void)
{
    struct timespec now;
    (void)timespec_get(&now, TIME_UTC);
}
static void
call_rand(void)
{
    (void)rand();
}
static void
call_random(void)
{
    (void)random();
}
static void
call_drand48(void)
{
    (void)drand48();
}
static void
call_lrand48(void)
{
    (void)lrand48();
}
static void
call_mrand48(void)
{
    (void)mrand48();
}
static void
call_getrandom(void)
{
    char byte;
    if (getrandom(&byte, 1, 0) != 1)
        abort();
}
static void
call_getentropy(void)
{
    char byte;
    if (getentropy(&byte, 1) != 0)
        abort();
}
static void
call_pthread_create(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_pthread, NULL) == 0)
        pthread_join(thread, NULL);
}
static void
call_thrd_create(void)
{
    thrd_t thread;
    if (thrd_create(&thread, thread_thrd, NULL) == thrd_success)
        thrd_join(thread, NULL);
}
static void
call_getenv(void)
{
    (void)getenv("HOME");
}
static void
call_secure_getenv(void)
{
    (void)secure_getenv("HOME");
}
static void
call_getpid(void)
{
    (void)getpid();
}
static void
call_getppid(void)
{
    (void)getppid();
}

typedef struct trapped_call {
    const char *name, *mend;
    void (*make)(void);
} trapped_call;
static const trapped_call calls[] = {
    {"time", "errand_runtime_now", call_time},
    {"clock", "errand_runtime_now", call_clock},
    {"clock_gettime", "errand_runtime_now", call_clock_gettime},
    {"gettimeofday", "errand_runtime_now", call_gettimeofday},
    {"timespec_get", "errand_runtime_now", call_timespec_get},
    {"rand", "errand_task_random", call_rand},
    {"random", "errand_task_random", call_random},
    {"drand48", "errand_task_random", call_drand48},
    {"lrand48", "errand_task_random", call_lrand48},
    {"mrand48", "errand_task_random", call_mrand48},
    {"getrandom", "errand_task_random", call_getrandom},
    {"getentropy", "errand_task_random", call_getentropy},
    {"pthread_create", "errand_job_follow", call_pthread_create},
    {"thrd_create", "errand_job_follow", call_thrd_create},
    {"getenv", "before the run", call_getenv},
    {"secure_getenv", "before the run", call_secure_getenv},
    {"getpid", "leave it out", call_getpid},
    {"getppid", "leave it out", call_getppid},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void
make_call(errand_job *job, world_job *self)
{
    const trapped_call *call = self->arg;

    (void)job;
    call->make();
}

static void
make_call_impure(errand_job *job, world_job *self)
{
    errand_job_impure(job);
    make_call(job, self);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
refuse_all(test_world *in)
{
    for (size_t i = 0; i < CALLS; i++) {
        world_job job = {
            .world = in, .inside = make_call, .arg = (void *)(uintptr_t)&calls[i]};
        uint64_t before = errand_traps_caught();
        const world_news *news = run_one(in, &job);
        char called[64];

        snprintf(called, sizeof called, "called %s,", calls[i].name);
        assert_int_equal(news->outcome, ERRAND_PANICKED);
        assert_non_null(strstr(news->message, called));
        assert_non_null(strstr(news->message, calls[i].mend));
        assert_non_null(strstr(news->message, "errand_job_impure"));
        assert_int_equal(errand_traps_caught(), before + 1);
    }
}

static void
a_job_of_a_seeded_run_is_refused_what_no_seed_decides(void **state)
{
    test_world *in = *state;

    need_traps();
    for (int i = 0; i < 2; i++) {
        restart(in, orders[i]);
        refuse_all(in);
        world_end(in);
    }
}

static void
on_the_threads_of_a_pool_too(void **state)
{
    test_world *in = *state;

    need_traps();
    for (int i = 0; i < 2; i++) {
        restart(in, orders[i]);
        world_pool(in, 2);
        refuse_all(in);
        world_end(in);
    }
}

static void
let_all_through(test_world *in, void (*inside)(errand_job *, world_job *))
{
    for (size_t i = 0; i < CALLS; i++) {
        world_job job = {
            .world = in, .inside = inside, .arg = (void *)(uintptr_t)&calls[i]};

        assert_int_equal(run_one(in, &job)->outcome, ERRAND_COMPLETED);
    }
}

static void
arrival_order_lets_all_through(void **state)
{
    test_world *in = *state;
    uint64_t before = errand_traps_caught();

    restart(in, ERRAND_ORDER_ARRIVAL);
    world_pool(in, 2);
    let_all_through(in, make_call);
    assert_int_equal(errand_traps_caught(), before);
    world_end(in);
}

static void
an_impure_job_is_let_through_and_the_next_is_not(void **state)
{
    test_world *in = *state;

    need_traps();
    for (int i = 0; i < 2; i++) {
        world_job job = {
            .world = in, .inside = make_call, .arg = (void *)(uintptr_t)&calls[0]};
        uint64_t before = errand_traps_caught();

        restart(in, orders[i]);
        let_all_through(in, make_call_impure);
        assert_int_equal(errand_traps_caught(), before);
        assert_int_equal(run_one(in, &job)->outcome, ERRAND_PANICKED);
        world_end(in);
    }
}

static void
warn_lets_through_and_counts_and_off_does_not_count(void **state)
{
    test_world *in = *state;
    uint64_t before = errand_traps_caught();

    need_traps();
    restart(in, ERRAND_ORDER_PACED);
    errand_traps_set(ERRAND_TRAPS_OFF);
    let_all_through(in, make_call);
    assert_int_equal(errand_traps_caught(), before);
    errand_traps_set(ERRAND_TRAPS_WARN);
    let_all_through(in, make_call);
    assert_int_equal(errand_traps_caught(), before + CALLS);
    world_end(in);
}

/* What a job does by the library, the allocator and the C library is its own business. */
static void
use_the_library(errand_job *job, world_job *self)
{
    errand_payload payload = {.data = NULL};
    char text[64];

    (void)self;
    for (int i = 0; i < 1000; i++)
        free(malloc((size_t)i * 97 + 1));
    if (errand_job_alloc(job, 100000) == NULL ||
        errand_payload_alloc(job, 1000, &payload) == NULL)
        abort();
    errand_payload_drop(&payload);
    errand_job_message(job, "a message");
    (void)errand_job_cancelled(job);
    snprintf(text, sizeof text, "%g", 0.5);
    if (errand_job_work(job, 1) != ERRAND_OK)
        abort();
}

static void
what_the_library_does_for_a_job_is_not_caught(void **state)
{
    test_world *in = *state;

    for (int i = 0; i < 2; i++) {
        world_job job = {.world = in, .inside = use_the_library};
        uint64_t before = errand_traps_caught();

        restart(in, orders[i]);
        assert_int_equal(run_one(in, &job)->outcome, ERRAND_COMPLETED);
        assert_int_equal(errand_traps_caught(), before);
        world_end(in);
    }
}

static void
ready_made_operations_are_not_caught(void **state)
{
    test_world *in = *state;
    const char *const words[] = {"true", NULL};
    errand_command_config command = {.struct_size = sizeof command, .argv = words};

    for (int i = 0; i < 2; i++) {
        uint64_t before = errand_traps_caught();
        errand_spec specs[3];

        restart(in, orders[i]);
        assert_int_equal(errand_spec_sleep(&specs[0], 1000), ERRAND_OK);
        assert_int_equal(errand_spec_resolve(&specs[1], "localhost", NULL, 0), ERRAND_OK);
        assert_int_equal(errand_spec_command(&specs[2], &command), ERRAND_OK);
        for (size_t at = 0; at < 3; at++)
            assert_int_equal(errand_start(in->lease, &specs[at], NULL, NULL), ERRAND_OK);
        world_await(in, 3);
        for (size_t at = 0; at < 3; at++)
            assert_int_not_equal(in->news[at].outcome, ERRAND_PANICKED);
        assert_int_equal(errand_traps_caught(), before);
        world_end(in);
    }
}

static void
an_impure_nothing_is_misuse(void **state)
{
    test_world *in = *state;

    errand_job_impure(NULL);
    assert_int_equal(in->last_misuse, ERRAND_EINVAL);
}

int
main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, world_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(a_job_of_a_seeded_run_is_refused_what_no_seed_decides),
        WITH_WORLD(on_the_threads_of_a_pool_too),
        WITH_WORLD(arrival_order_lets_all_through),
        WITH_WORLD(an_impure_job_is_let_through_and_the_next_is_not),
        WITH_WORLD(warn_lets_through_and_counts_and_off_does_not_count),
        WITH_WORLD(what_the_library_does_for_a_job_is_not_caught),
        WITH_WORLD(ready_made_operations_are_not_caught),
        WITH_WORLD(an_impure_nothing_is_misuse),
    };
    return test_group("traps/traps", tests, NULL, NULL);
}
