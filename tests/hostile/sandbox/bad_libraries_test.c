/* SPDX-License-Identifier: MIT */
/* Goal: a library that ends, hangs or misuses the worker that opens it fails the jobs that ask for it, in
 * bounded time, and nobody else's: neither those of workers that live, nor of those that start later.
 * Method: one pool, an honest job, a job of a bad library, honest jobs again; with a fresh worker for each
 * job, so that each start meets what went before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group.h"
#include "pool.h"
#include "reach.h"

#define MS UINT64_C(1000000)

typedef struct bad {
    const char *name;
    const char *object;
    int allowed;
    uint32_t most_ms;
    uint32_t promises, workers_max;
} bad;

#define OBJECT(kind) ERRAND_TEST_OBJECTS "/sandbox_bad_" kind ".so"

static bool
honest(hostile_pool *pool, const char *name, int round)
{
    uint64_t began = hostile_now();
    int ends;

    pool->object = test_reachable(ERRAND_TEST_JOBS);
    ends = hostile_run(pool, "job_ok", NULL, 0, 20000 * MS);
    if (ends == ENDS_OK && hostile_now() - began < 5000 * MS)
        return true;
    printf("[  WRONG   ] %s: honest job %d: %s after %u ms (%s)\n", name, round,
           hostile_ends_text(ends), (unsigned)((hostile_now() - began) / MS),
           pool->message);
    return false;
}

static int
meet(void *arg)
{
    const bad *self = arg;
    errand_sandbox_config config;
    errand_sandbox_policy policy;
    hostile_pool pool;
    char text[256];
    int wrong = 0;

    hostile_config(&config, &policy);
    config.workers_max = self->workers_max;
    config.crash_limit = 0; /* as by default */
    policy.promises = self->promises;
    if (!hostile_begin(&pool, &config, ERRAND_TEST_JOBS, text, sizeof text)) {
        printf("no sandbox: %s\n", text);
        return 99;
    }
    wrong += !honest(&pool, self->name, 0);
    for (int round = 1; round <= 3; round++) {
        uint64_t began = hostile_now();

        pool.object = self->object;
        int ends = hostile_run(&pool, "job_ok", NULL, 0, 30000 * MS);
        uint64_t took = (hostile_now() - began) / MS;
        if ((ends & self->allowed) == 0 || took > self->most_ms) {
            printf("[  WRONG   ] %s: %s after %u ms (%s)\n", self->name,
                   hostile_ends_text(ends), (unsigned)took, pool.message);
            wrong++;
        }
        for (int i = 0; i < 4; i++)
            wrong += !honest(&pool, self->name, round * 10 + i);
    }
    return wrong + !hostile_end(&pool);
}

static void
meet_it(const char *name, const char *object, int allowed, uint32_t most_ms,
        uint32_t promises)
{
    for (uint32_t most = 1; most <= 2; most++) {
        bad it = {name, test_reachable(object), allowed, most_ms, promises, most};

        assert_int_equal(hostile_in_child(false, meet, &it), 0);
    }
}

#define MEETS(kind, allowed, most_ms, promises)                                          \
    static void a_library_whose_constructor_##kind##_fails_its_own_jobs_alone(           \
        void **state)                                                                    \
    {                                                                                    \
        (void)state;                                                                     \
        meet_it(#kind, OBJECT(#kind), allowed, most_ms, promises);                       \
    }
MEETS(crashes, ENDS_SPAWN | ENDS_JOB, 5000, 0)
MEETS(exits, ENDS_SPAWN | ENDS_JOB, 5000, 0)
MEETS(aborts, ENDS_SPAWN | ENDS_JOB, 5000, 0)
MEETS(kills_host, ENDS_SPAWN | ENDS_JOB, 5000, 0)
MEETS(hangs, ENDS_SPAWN | ENDS_JOB, 25000, 0)
MEETS(loops_deaf, ENDS_SPAWN | ENDS_JOB, 25000, 0)

static void
a_constructor_that_forks_is_refused(void **state)
{
    (void)state;
    meet_it("forks", OBJECT("forks"), ENDS_OK, 5000, 0);
}

static void
a_constructor_that_starts_a_thread_is_refused_or_promised(void **state)
{
    (void)state;
    meet_it("thread", OBJECT("thread"), ENDS_OK, 5000, 0);
    meet_it("thread", OBJECT("thread"), ENDS_ODD, 5000, ERRAND_PROMISE_THREAD);
}

#define MET(kind)                                                                        \
    cmocka_unit_test(a_library_whose_constructor_##kind##_fails_its_own_jobs_alone)
int
main(void)
{
    static const struct CMUnitTest tests[] = {
        MET(crashes),
        MET(exits),
        MET(aborts),
        MET(kills_host),
        MET(hangs),
        MET(loops_deaf),
        cmocka_unit_test(a_constructor_that_forks_is_refused),
        cmocka_unit_test(a_constructor_that_starts_a_thread_is_refused_or_promised),
    };

    return test_group("hostile/sandbox/bad_libraries", tests, NULL, NULL);
}
