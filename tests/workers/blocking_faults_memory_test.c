/* SPDX-License-Identifier: MIT */
/* Goal: memory of a job that a fault ended is given back where that is safe, and counted where it is not,
 * and no job gets more than its host allows (O77, O78).
 * Method: bodies that take many blocks and fault, between bodies that look at theirs. */
#include <stdlib.h>
#include <string.h>
#include "fault_rig.h"

/* So many that an arena of jemalloc's is emptied as a whole. */
enum { BLOCKS = 600 };

static void
use_memory(errand_job *job)
{
    for (int i = 0; i < BLOCKS; i++) {
        unsigned char *bytes = errand_job_alloc(job, 1000);

        assert_non_null(bytes);
        for (int k = 0; k < 1000; k++)
            assert_int_equal(bytes[k], 0);
        memset(bytes, 0xa5, 1000);
    }
}

static void
never_called(void *arg)
{
    ++*(int *)arg;
}

static void
use_and_fault(rig_job *self, errand_job *job)
{
    use_memory(job);
    assert_int_equal(errand_job_defer(job, never_called, &self->number), ERRAND_OK);
    *(volatile int *)nowhere = 1;
}

static void
use_and_abort(rig_job *self, errand_job *job)
{
    (void)self;
    use_memory(job);
    abort();
}

static void
use_well(rig_job *self, errand_job *job)
{
    (void)self;
    use_memory(job);
}

static void
memory_of_a_crashed_job_is_given_back_only_where_that_is_safe(void **state)
{
    /* O77 */
    rig_job clean = {.fn = use_and_fault}, suspect = {.fn = use_and_abort},
            after = {.fn = use_well};
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    fault_rig_init(&rig, 1, NULL);
    for (uint64_t i = 0; i < 20; i++) {
        rig_start(&rig, &clean);
        rig_start(&rig, &after);
        rig_await(&rig, 2 * i + 2);
    }
    assert_int_equal(fault_rig_read(&rig).memory_given_up, 0);
    assert_int_equal(fault_rig_read(&rig).cleanups_given_up, 20);
    assert_int_equal(clean.number, 0);
    rig_start(&rig, &suspect);
    rig_start(&rig, &after);
    rig_await(&rig, 42);
    assert_int_equal(fault_rig_read(&rig).memory_given_up, BLOCKS);
    rig_fini(&rig);
}

static int32_t
give_bytes(errand_job *job, void *state, errand_payload *out_payload)
{
    void *bytes = errand_payload_alloc(job, 5000, out_payload);

    (void)state;
    if (bytes == NULL)
        return 1;
    use_memory(job);
    memset(bytes, 0x5a, 5000);
    return 0;
}

static void
take_bytes(void *arg, errand_completion *completion)
{
    *(errand_payload *)arg = errand_completion_take(completion);
}

static void
payload_of_an_earlier_job_outlives_a_crash(void **state)
{
    /* O77 */
    static const errand_job_type type = {
        .struct_size = sizeof type, .name = "give", .run = give_bytes};
    rig_job clean = {.fn = use_and_fault};
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_payload payload = {.data = NULL};
    size_t count = 0;
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    fault_rig_init(&rig, 1, NULL);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &type;
    assert_int_equal(errand_start(rig.lease, &spec, NULL, NULL), ERRAND_OK);
    while (count == 0) {
        assert_int_equal(errand_park(rig.runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(rig.runtime, 1, take_bytes, &payload, &count),
                         ERRAND_OK);
    }
    rig.heard = 1;
    rig_start(&rig, &clean); /* the arena is emptied as a whole */
    rig_await(&rig, 2);
    rig_fini(&rig);
    assert_int_equal(payload.size, 5000);
    for (size_t i = 0; i < payload.size; i++)
        assert_int_equal(((unsigned char *)payload.data)[i], 0x5a);
    errand_payload_drop(&payload);
}

static void
take_too_much(rig_job *self, errand_job *job)
{
    self->number = 0;
    while (errand_job_alloc(job, 1000) != NULL)
        self->number++;
    self->number += errand_job_alloc(job, SIZE_MAX) == NULL ? 0 : 1000;
}

static void
memory_of_a_job_has_a_bound_where_the_host_set_one(void **state)
{
    errand_blocking_config config = fault_rig_config(1);
    errand_faults_config trouble = {.struct_size = sizeof trouble,
                                    .job_memory_max = 10500};
    rig_job job = {.fn = take_too_much};
    errand_executor *executor;
    pool_rig rig;

    (void)state;
    config.flags = 0;
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_faults_set(executor, &trouble), ERRAND_OK);
    rig_join(&rig, executor, 0);
    rig.shares = false;
    for (uint64_t i = 1; i <= 3; i++) { /* each job anew */
        rig_start(&rig, &job);
        rig_await(&rig, i);
        assert_int_equal(job.number, 10);
    }
    rig_fini(&rig);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_a_crashed_job_is_given_back_only_where_that_is_safe),
        cmocka_unit_test(payload_of_an_earlier_job_outlives_a_crash),
        cmocka_unit_test(memory_of_a_job_has_a_bound_where_the_host_set_one),
    };

    return test_group("workers/blocking_faults_memory", tests, NULL, NULL);
}
