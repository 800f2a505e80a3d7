/* SPDX-License-Identifier: MIT */
/* Goal: each call that needs memory answers ENOMEM when there is none, changes nothing it was given,
 * and does what it should when called again (O10, O26, O80).
 * Method: the first allocation of the call fails. */
#include <string.h>
#include "runtime/runtime.h"
#include "stage.h"

/* The call once without memory, then with it. */
#define TWICE(call)                                                                      \
    do {                                                                                 \
        (void)errand_testing_fail_allocation(1);                                         \
        errand_status without_ = (call);                                                 \
        (void)errand_testing_fail_allocation(0);                                         \
        assert_int_equal(without_, ERRAND_ENOMEM);                                       \
        assert_int_equal((call), ERRAND_OK);                                             \
    } while (0)

static stage the_stage;

static void
objects_without_memory_are_not_made(void **state)
{
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 1};
    errand_runtime_config seeded = {.struct_size = sizeof seeded,
                                    .order = ERRAND_ORDER_INLINE};
    errand_executor *executor;
    errand_runtime *runtime;
    errand_inbox *inbox;
    errand_lease *lease;

    (void)state;
    stage_open(&the_stage);
    TWICE(errand_runtime_create(NULL, &runtime));
    TWICE(errand_inbox_open(runtime, &inbox));
    errand_inbox_abandon(&inbox);
    TWICE(errand_blocking_create(&config, &executor));
    TWICE(errand_attach(runtime, executor, 0, &lease));
    errand_executor_abandon(&executor);
    TWICE(errand_async_create(NULL, &executor));
    TWICE(errand_attach(runtime, executor, 0, &lease));
    errand_executor_abandon(&executor);
    TWICE(errand_manual_create(NULL, &executor));
    errand_executor_abandon(&executor);
    assert_int_equal(errand_runtime_shutdown(&runtime, errand_deadline_in(5000000000),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    assert_int_equal(errand_runtime_create(&seeded, &runtime), ERRAND_OK);
    TWICE(errand_order_latency(runtime, 1, 1000));
    assert_int_equal(errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    stage_use(&the_stage);
    stage_close(&the_stage);
}

static errand_payload_type some_type = {"some", NULL};

static uint64_t
digest(const void *data, size_t size)
{
    (void)data;
    return size;
}

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    (void)own_data;
    (void)runtime;
    (void)news;
}

static void
names_without_memory_stay_as_they_were(void **state)
{
    errand_continuation continuation = {.resume = resume};
    stage *self = &the_stage;
    errand_status status = ERRAND_OK;
    errand_prepared prepared[64];
    errand_binding binding;
    size_t count = 0;

    (void)state;
    stage_open(self);
    self->jobs[5].stage = self;
    errand_spec spec = self->spec;
    spec.state = &self->jobs[5];
    spec.deadline_ns = UINT64_C(1) << 60; /* needs a block of its own in bind */
    do { /* until the blocks that are there are used up */
        (void)errand_testing_fail_allocation(1);
        status = errand_prepare(self->tokens.runtime, &spec, &prepared[count]);
        (void)errand_testing_fail_allocation(0);
    } while (status == ERRAND_OK && ++count < 63);
    assert_int_equal(status, ERRAND_ENOMEM); /* of errand_prepare */
    assert_int_equal(errand_prepare(self->tokens.runtime, &spec, &prepared[count++]),
                     ERRAND_OK);
    TWICE(errand_bind(self->tokens.runtime, &self->issued, &prepared[0], &binding));
    errand_binding_abandon(&binding);
    for (size_t i = 1; i < count; i++)
        errand_prepared_abandon(&prepared[i]);
    assert_int_equal(self->jobs[5].dropped, count);
    TWICE(errand_await(&self->tokens.wait, &continuation));
    TWICE(errand_audit_payload(self->tokens.runtime, &some_type, digest));
    stage_close(self);
}

static errand_task_answer
never_entered(errand_task *task, void *state, const errand_task_news *news)
{
    (void)task;
    (void)state;
    (void)news;
    fail();
    return ERRAND_TASK_DONE;
}

static void
nodes_of_the_tree_without_memory_are_not_made(void **state)
{
    stage *self = &the_stage;
    errand_status status = ERRAND_OK;
    errand_context context;
    errand_handle watch;
    errand_select select;
    errand_signal signal;
    errand_task_spec spec = {.struct_size = sizeof spec, .fn = never_entered};

    (void)state;
    stage_open(self);
    do { /* until the records that are there are used up */
        (void)errand_testing_fail_allocation(1);
        status = errand_context_create(self->tokens.runtime, NULL, "full", &context);
        (void)errand_testing_fail_allocation(0);
    } while (status == ERRAND_OK);
    assert_int_equal(status, ERRAND_ENOMEM); /* of errand_context_create */
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(
        errand_context_child(self->tokens.runtime, &self->context, "full", &context),
        ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(
        errand_context_spawn(self->tokens.runtime, &self->context, &spec, NULL),
        ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_signal_hold(self->tokens.runtime, &signal), ERRAND_ENOMEM);
    TWICE(errand_handle_watch(self->tokens.runtime, &self->task, &watch));
    TWICE(errand_select_open(self->tokens.runtime, &self->handle, 1, &select));
    self->tokens.runtime->scheduler.next_task = 0; /* O5: no number is left */
    assert_int_equal(
        errand_context_spawn(self->tokens.runtime, &self->context, &spec, NULL),
        ERRAND_EEXHAUSTED);
    stage_close(self);
}

static void
a_lanes_first_submission_without_memory_is_still_there(void **state)
{
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 1};
    stage *self = &the_stage;
    errand_executor *pool;
    errand_lease *lease;

    (void)state;
    stage_open(self);
    assert_int_equal(errand_blocking_create(&config, &pool), ERRAND_OK);
    assert_int_equal(errand_attach(self->tokens.runtime, pool, 0, &lease), ERRAND_OK);
    errand_executor_abandon(&pool);
    TWICE(errand_submit(lease, &self->tokens.submission));
    stage_close(self);
}

/* ---- bodies ------------------------------------------------------------------------------------------ */

static int deferred;

static void
count_defer(void *arg)
{
    (void)arg;
    deferred++;
}

static void
use_memory(stage *self, errand_job *job)
{
    errand_payload payload;

    TWICE(errand_job_defer(job, count_defer, NULL));
    TWICE(errand_job_follow(job, &self->spec, NULL));
    (void)errand_testing_fail_allocation(1);
    assert_null(errand_job_alloc(job, 100));
    (void)errand_testing_fail_allocation(1);
    assert_null(errand_payload_alloc(job, 100, &payload));
    (void)errand_testing_fail_allocation(0);
    assert_non_null(errand_job_alloc(job, 100));
    assert_non_null(errand_payload_alloc(job, 100, &payload));
    errand_payload_drop(&payload);
}

static void
a_body_without_memory_goes_on(void **state)
{
    stage *self = &the_stage;
    size_t count;

    (void)state;
    stage_open(self);
    deferred = 0;
    self->jobs[3].inside = use_memory;
    assert_int_equal(errand_manual_step(self->executor, 1, &count), ERRAND_OK);
    assert_int_equal(deferred, 1);
    assert_int_equal(errand_drain(self->tokens.runtime, SIZE_MAX, NULL, NULL, &count),
                     ERRAND_OK);
    assert_int_equal(errand_manual_step(self->executor, 1, &count), ERRAND_OK);
    assert_int_equal(self->jobs[4].ran, 1); /* the follow-up, once */
    stage_close(self);
    assert_int_equal(self->jobs[4].dropped, 1);
}

/* ---- tasks -------------------------------------------------------------------------------------------- */

static void
wait_without_memory(stage *self)
{
    static errand_task_id ids[64];

    for (int i = 0; i < 64; i++)
        ids[i] = (errand_task_id){.runtime = errand_runtime_id(self->tokens.runtime),
                                  .task = self->task.task + 2 + (uint64_t)i};
    self->in_task = NULL;
    TWICE(errand_task_defer(self->inner, count_defer, NULL));
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_task_join(self->inner, ids, 64, UINT64_MAX), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(
        errand_task_await(self->inner, self->tokens.lease, &self->spec, UINT64_MAX, NULL),
        ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
}

static errand_task_answer
end_at_once(errand_task *task, void *state, const errand_task_news *news)
{
    (void)task;
    (void)state;
    (void)news;
    return ERRAND_TASK_DONE;
}

static void
a_task_without_memory_goes_on(void **state)
{
    errand_task_spec spec = {.struct_size = sizeof spec, .fn = end_at_once};
    stage *self = &the_stage;
    errand_status status;
    errand_turn turn;
    int spawned = 0;

    (void)state;
    stage_open(self);
    deferred = 0;
    do { /* until the records that are there are used up */
        (void)errand_testing_fail_allocation(1);
        status = errand_spawn(self->tokens.runtime, NULL, &spec, NULL);
        (void)errand_testing_fail_allocation(0);
    } while (status == ERRAND_OK && ++spawned < 1000);
    assert_int_equal(status, ERRAND_ENOMEM); /* of errand_spawn */
    assert_int_equal(errand_spawn(self->tokens.runtime, NULL, &spec, NULL), ERRAND_OK);
    self->in_task = wait_without_memory;
    assert_int_equal(errand_task_wake(self->tokens.runtime, &self->task), ERRAND_OK);
    assert_int_equal(errand_drive(self->tokens.runtime, NULL, &turn), ERRAND_OK);
    assert_null(self->in_task);
    assert_int_equal(errand_task_abort(self->tokens.runtime, &self->task), ERRAND_OK);
    assert_int_equal(deferred, 1);
    /* O5: the counter of tasks at its end. */
    self->tokens.runtime->scheduler.next_task = UINT64_MAX;
    assert_int_equal(errand_spawn(self->tokens.runtime, NULL, &spec, NULL), ERRAND_OK);
    assert_int_equal(errand_spawn(self->tokens.runtime, NULL, &spec, NULL),
                     ERRAND_EEXHAUSTED);
    stage_close(self);
}

/* ---- ready-made operations ------------------------------------------------------------------------------ */

static void
ready_made_specs_without_memory_are_untouched(void **state)
{
    const char *const argv[] = {"/bin/true", NULL};
    errand_command_config command = {.struct_size = sizeof command, .argv = argv};
    errand_spec spec;

    (void)state;
    TWICE(errand_spec_echo(&spec, "bytes", 5));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_read_file(&spec, "name", 0));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_write_file(&spec, "name", "bytes", 5, 0));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_append_file(&spec, "name", "bytes", 5, 0));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_list_dir(&spec, "name", 0));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_stat_file(&spec, "name", false));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_hash_file(&spec, "name"));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_resolve(&spec, "localhost", NULL, 0));
    errand_spec_abandon(&spec);
    TWICE(errand_spec_command(&spec, &command));
    errand_spec_abandon(&spec);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_without_memory_are_not_made),
        cmocka_unit_test(nodes_of_the_tree_without_memory_are_not_made),
        cmocka_unit_test(a_lanes_first_submission_without_memory_is_still_there),
        cmocka_unit_test(names_without_memory_stay_as_they_were),
        cmocka_unit_test(a_body_without_memory_goes_on),
        cmocka_unit_test(a_task_without_memory_goes_on),
        cmocka_unit_test(ready_made_specs_without_memory_are_untouched),
    };

    return test_group("hostile/memory", tests, NULL, NULL);
}
