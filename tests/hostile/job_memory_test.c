/* SPDX-License-Identifier: MIT */
/* Goal: memory of a job is zeroed, aligned and gone at its end however it ends, and memory of a
 * payload is the completion's (O77).
 * Method: bodies that end in every way, many times over, while the bytes that are live are counted. */
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sched.h>
#include "core/core.h"
#include "world.h"

enum { BLOCK = 64 * 1024, BLOCKS = 8 };

static void
use(errand_job *job, world_job *self)
{
    (void)self;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = i == 0 ? 1 : (size_t)BLOCK >> i;
        unsigned char *bytes = errand_job_alloc(job, size);

        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % 16, 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(bytes[k], 0); /* never the former job's */
        memset(bytes, 0xa5, size);
    }
}

static errand_executor_snapshot
workers(const test_world *world)
{
    errand_executor_snapshot snapshot;

    assert_int_equal(errand_executor_snapshot_read(world->executor, &snapshot),
                     ERRAND_OK);
    return snapshot;
}

static void
memory_of_a_job_is_gone_however_it_ends(void **state)
{
    test_world *world = *state;
    int64_t live = 0;

    for (int round = 0; round < 300; round++) {
        world_job job = {.inside = use, .answer = round % 3 == 1 ? 9 : 0};

        job.panic = round % 3 == 2 ? "panic" : NULL;
        world_start(world, &job);
        world_step(world, 1);
        assert_int_equal(world_drain(world, 1), 1);
        if (round == 2)
            live = errand_testing_live_bytes();
        if (round > 2)
            assert_int_equal(errand_testing_live_bytes(), live);
    }
    assert_int_equal(workers(world).leaked, 0);
}

static void
memory_that_never_comes_back_would_be_seen_by_the_system(void **state)
{
    /* A hundred MiB in all, through one arena: what the process holds stays flat. */
    test_world *world = *state;
    size_t before = 0;

    if (ERRAND_SANITIZED)
        test_skip("a sanitizer keeps freed blocks for a while");
    for (int round = 0; round < 1000; round++) {
        world_job job = {.inside = use};

        world_start(world, &job);
        world_step(world, 1);
        world_drain(world, 1);
        if (round == 10)
            before = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks < before + 1024 * 1024);
}

static void
take_none(errand_job *job, world_job *self)
{
    (void)job;
    (void)self;
}

static void
jobs_that_ask_for_none_pay_nothing(void **state)
{
    /* O77, O26: once warm no allocation at all; O77: not even an arena for those who do not ask. */
    test_world *world = *state;
    world_job job = {.inside = take_none};

    for (int round = 0; round < 10; round++) {
        world_start(world, &job);
        world_step(world, 1);
        world_drain(world, 1);
    }
    (void)errand_testing_fail_allocation(0); /* counts from here */
    for (int round = 0; round < 100; round++) {
        world_start(world, &job);
        world_step(world, 1);
        world_drain(world, 1);
    }
    assert_int_equal(errand_testing_fail_allocation(0), 0);
}

/* ---- payloads ------------------------------------------------------------------------------------------ */

static int32_t
give(errand_job *job, void *state, errand_payload *out_payload)
{
    unsigned char *bytes = errand_payload_alloc(job, 5000, out_payload);

    (void)state;
    if (bytes == NULL)
        return 1;
    for (size_t i = 0; i < 5000; i++)
        if (bytes[i] != 0)
            return 2;
    memset(bytes, 0x5a, 5000);
    (void)errand_job_alloc(job, 5000);
    return 0;
}
static const errand_job_type give_type = {
    .struct_size = sizeof(errand_job_type), .name = "give", .run = give};

static errand_payload taken;

static void
take(void *arg, errand_completion *completion)
{
    (void)arg;
    assert_int_equal(completion->outcome, ERRAND_COMPLETED);
    taken = errand_completion_take(completion);
}

static void
memory_of_a_payload_outlives_its_job_and_its_worker(void **state)
{
    test_world *world = *state;
    errand_spec spec = ERRAND_SPEC_INIT;
    int64_t live;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &give_type;
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_step(world, 1);
    live = errand_testing_live_bytes();
    assert_int_equal(world_drain(world, 1), 1); /* nobody took it: dropped */
    assert_true(errand_testing_live_bytes() <= live - 5000);
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(errand_drain(world->runtime, 1, take, NULL, NULL), ERRAND_OK);
    world_end(world); /* runtime and executor are gone */
    assert_int_equal(taken.size, 5000);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(((unsigned char *)taken.data)[i], 0x5a);
    errand_payload_drop(&taken);
    assert_null(taken.data);
    errand_payload_drop(&taken); /* once */
}

/* ---- threads that end ------------------------------------------------------------------------------------- */

static int32_t
use_and_leave(errand_job *job, void *state, errand_payload *out_payload)
{
    unsigned char *bytes = errand_job_alloc(job, 100000);

    (void)state;
    (void)out_payload;
    if (bytes != NULL)
        memset(bytes, 1, 100000);
    pthread_exit(NULL);
}
static const errand_job_type leave_type = {
    .struct_size = sizeof(errand_job_type), .name = "leave", .run = use_and_leave};

static void
count_completion(void *arg, errand_completion *completion)
{
    assert_int_equal(completion->outcome, ERRAND_PANICKED);
    assert_int_equal(completion->payload.size, 0);
    ++*(int *)arg;
}

static void
thread_that_ends_takes_its_jobs_memory_with_it(void **state)
{
    /* O75, O77, C-F10 */
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 2};
    int64_t bytes = errand_testing_live_bytes();
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    int heard = 0;

    (void)state;
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &runtime), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, executor, 0, &lease), ERRAND_OK);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &leave_type;
    for (int i = 1; i <= 20; i++) {
        assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
        while (heard < i) {
            assert_int_equal(errand_drain(runtime, 1, count_completion, &heard, NULL),
                             ERRAND_OK);
            if (heard < i)
                assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK);
        }
    }
    assert_int_equal(errand_runtime_shutdown(&runtime,
                                             errand_deadline_in(UINT64_C(5000000000)),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    errand_executor_abandon(&executor);
    while (errand_testing_live_bytes() != bytes) /* the last thread's own */
        sched_yield();
}

#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(memory_of_a_job_is_gone_however_it_ends),
        WITH_WORLD(memory_that_never_comes_back_would_be_seen_by_the_system),
        WITH_WORLD(jobs_that_ask_for_none_pay_nothing),
        WITH_WORLD(memory_of_a_payload_outlives_its_job_and_its_worker),
        cmocka_unit_test(thread_that_ends_takes_its_jobs_memory_with_it),
    };

    return test_group("hostile/job_memory", tests, NULL, NULL);
}
