/* SPDX-License-Identifier: MIT */
/* Goal: a runtime has a place in as many executors as it likes, each keeps its executor alive and
 * bounds what it owes, and nobody's allocator is called where it must not be (O47, O50, O58, O68).
 * Method: several executors of every kind under one runtime; an allocator that looks who calls it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "gate.h"
#include "world.h"

static int32_t
run_nothing(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)out_payload;
    if (state != NULL && !errand_job_cancelled(job))
        atomic_fetch_add_explicit((atomic_int *)state, 1, memory_order_relaxed);
    return 0;
}
static const errand_job_type count_type = {
    .struct_size = sizeof(errand_job_type), .name = "count", .run = run_nothing};

static errand_status
start(errand_lease *lease, atomic_int *ran)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &count_type;
    spec.state = ran;
    return errand_start(lease, &spec, NULL, NULL);
}

static void
end_runtime(errand_runtime **take_runtime)
{
    errand_report report;

    assert_int_equal(errand_runtime_shutdown(take_runtime,
                                             errand_deadline_in(UINT64_C(5000000000)),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_true(report.clean);
}

/* ---- many places -------------------------------------------------------------------------------------- */

static void
runtime_uses_many_executors_and_its_leases_keep_them(void **state)
{
    /* O47 */
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 2};
    errand_executor *executors[6];
    errand_lease *leases[6], *again;
    errand_snapshot whole, part, sum = {.accepted = 0};
    errand_runtime *runtime;
    atomic_int ran = 0;
    size_t count, heard = 0;

    (void)state;
    assert_int_equal(errand_runtime_create(NULL, &runtime), ERRAND_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(i < 3 ? errand_manual_create(NULL, &executors[i])
                               : errand_blocking_create(&config, &executors[i]),
                         ERRAND_OK);
        assert_int_equal(errand_attach(runtime, executors[i], 0, &leases[i]), ERRAND_OK);
        assert_int_equal(errand_attach(runtime, executors[i], 0, &again),
                         ERRAND_EDUPLICATE);
    }
    for (int i = 3; i < 6; i++)
        errand_executor_abandon(&executors[i]); /* the leases keep them */
    for (int i = 0; i < 60; i++)
        assert_int_equal(start(leases[i % 6], &ran), ERRAND_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(errand_manual_step(executors[i], 100, &count), ERRAND_OK);
        assert_int_equal(count, 10);
        errand_executor_abandon(&executors[i]);
    }
    while (heard < 60) {
        assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(runtime, 100, NULL, NULL, &count), ERRAND_OK);
        heard += count;
    }
    assert_int_equal(atomic_load_explicit(&ran, memory_order_relaxed), 60);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(errand_lease_snapshot(leases[i], &part), ERRAND_OK);
        assert_int_equal(part.drained, 10);
        sum.accepted += part.accepted;
        sum.completed += part.completed;
    }
    assert_int_equal(errand_runtime_snapshot(runtime, &whole), ERRAND_OK);
    assert_int_equal(whole.accepted, sum.accepted);
    assert_int_equal(whole.completed, sum.completed);
    /* After its end a lease may be had again. */
    errand_executor *manual;
    assert_int_equal(errand_manual_create(NULL, &manual), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, manual, 0, &again), ERRAND_OK);
    assert_int_equal(errand_lease_shutdown(&again, 0, NULL), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, manual, 0, &again), ERRAND_OK);
    end_runtime(&runtime);
    errand_executor_abandon(&manual);
}

/* ---- what is owed ---------------------------------------------------------------------------------------- */

static void
fill(errand_order order)
{
    errand_runtime_config config = {.struct_size = sizeof config, .order = order};
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    errand_snapshot snapshot;
    size_t count;

    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_OK);
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, executor, 0, &lease), ERRAND_OK);
    for (int i = 0; i < 16384; i++)
        assert_int_equal(start(lease, NULL), ERRAND_OK);
    assert_int_equal(start(lease, NULL), ERRAND_EFULL);
    assert_int_equal(errand_lease_wait_room(lease, 0), ERRAND_ETIMEOUT);
    if (order == ERRAND_ORDER_ARRIVAL) { /* settled is not drained: still owed */
        assert_int_equal(errand_manual_step(executor, 5000, &count), ERRAND_OK);
        assert_int_equal(start(lease, NULL), ERRAND_EFULL);
        assert_int_equal(errand_lease_wait_room(lease, 0), ERRAND_OK); /* news */
    } else {
        assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK); /* time goes on */
    }
    assert_int_equal(errand_drain(runtime, 1, NULL, NULL, &count), ERRAND_OK);
    assert_int_equal(count, 1);
    assert_int_equal(errand_lease_wait_room(lease, 0), ERRAND_OK);
    assert_int_equal(start(lease, NULL), ERRAND_OK);
    assert_int_equal(start(lease, NULL), ERRAND_EFULL);
    assert_int_equal(errand_lease_snapshot(lease, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.owed, 16384);
    end_runtime(&runtime);
    errand_executor_abandon(&executor);
}

static void
lease_owes_sixteen_thousand_by_default_in_every_order(void **state)
{
    /* O50 */
    (void)state;
    fill(ERRAND_ORDER_ARRIVAL);
    fill(ERRAND_ORDER_INLINE);
}

static void *
step_one(void *arg)
{
    test_world *world = arg;
    size_t count;

    if (errand_manual_step(world->executor, 1, &count) != ERRAND_OK)
        abort();
    return NULL;
}

static void
waiting_for_room_ends_when_there_is_something_to_drain(void **state)
{
    /* O50 */
    test_world *world = *state;
    errand_runtime_config config = {.struct_size = sizeof config};
    world_job job = {.ran = 0};
    pthread_t thread;

    world_end(world);
    world_begin(world, &config, 1);
    world_start(world, &job);
    assert_int_equal(pthread_create(&thread, NULL, step_one, world), 0);
    assert_int_equal(errand_lease_wait_room(world->lease, UINT64_MAX), ERRAND_OK);
    pthread_join(thread, NULL);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(errand_lease_wait_room(world->lease, 0), ERRAND_OK);
}

/* ---- drains are bounded --------------------------------------------------------------------------------------- */

static errand_status
host_attach(void *data, uint64_t runtime_id, uint32_t owed_max, void **out_lease)
{
    (void)runtime_id;
    (void)owed_max;
    *out_lease = data;
    return ERRAND_OK;
}
static errand_status
host_reserve(void *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_OK;
}
static void
host_submit(void *lease, errand_dispatch dispatch)
{
    (void)lease;
    assert_true(errand_dispatch_run(dispatch)); /* finished inside submit */
}
static void
host_detach(void *lease, uint64_t deadline_ns)
{
    (void)lease;
    (void)deadline_ns;
}
static const errand_executor_type instant_type = {.struct_size =
                                                      sizeof(errand_executor_type),
                                                  .name = "instant",
                                                  .attach = host_attach,
                                                  .reserve = host_reserve,
                                                  .submit = host_submit,
                                                  .detach = host_detach};

static void
start_another(void *arg, errand_completion *completion)
{
    (void)completion;
    assert_int_equal(start(arg, NULL), ERRAND_OK);
}

static void
drain_takes_no_more_than_what_was_there(void **state)
{
    /* O68, C-I1: each completion submits an instant job, which is there at once. */
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    size_t count;

    (void)state;
    assert_int_equal(errand_runtime_create(NULL, &runtime), ERRAND_OK);
    assert_int_equal(errand_executor_create(&instant_type, NULL, &executor), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, executor, 0, &lease), ERRAND_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(start(lease, NULL), ERRAND_OK);
    assert_int_equal(errand_drain(runtime, 64, start_another, lease, &count), ERRAND_OK);
    assert_int_equal(count, 64);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(errand_drain(runtime, SIZE_MAX, start_another, lease, &count),
                         ERRAND_OK);
        assert_in_range(count, 36, 100); /* the rest, or all that came meanwhile */
    }
    assert_int_equal(errand_drain(runtime, 0, start_another, lease, &count), ERRAND_OK);
    assert_int_equal(count, 0);
    end_runtime(&runtime);
    errand_executor_abandon(&executor);
}

/* ---- the host's allocator --------------------------------------------------------------------------------------- */

typedef struct
    watched { /* an allocator that only the owner may call, and not after the end */
    pthread_t owner;
    atomic_bool closed;
    atomic_int strangers, late;
    int64_t bytes;
    unsigned calls;
} watched;

static void
look_who_calls(watched *self)
{
    if (!pthread_equal(self->owner, pthread_self()))
        atomic_fetch_add_explicit(&self->strangers, 1, memory_order_relaxed);
    if (atomic_load_explicit(&self->closed, memory_order_acquire))
        atomic_fetch_add_explicit(&self->late, 1, memory_order_relaxed);
}
static void *
watched_alloc(void *arg, size_t size)
{
    watched *self = arg;
    void *block = malloc(size);

    look_who_calls(self);
    self->calls++;
    self->bytes += block != NULL ? (int64_t)size : 0;
    return block;
}
static void
watched_free(void *arg, void *block, size_t size)
{
    watched *self = arg;

    look_who_calls(self);
    self->bytes -= block != NULL ? (int64_t)size : 0;
    free(block);
}

static test_gate gate;
static atomic_int state_dropped;

static int32_t
run_at_gate(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    (void)state;
    gate_wait(&gate);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &count_type;
    (void)!errand_job_follow(job, &spec, NULL);
    (void)errand_job_alloc(job, 1000);
    (void)errand_payload_alloc(job, 1000, out_payload);
    errand_job_message(job, "late");
    return 0;
}
static void
drop_gated(void *state)
{
    (void)state;
    atomic_fetch_add_explicit(&state_dropped, 1, memory_order_release);
}
static const errand_job_type gated_type = {.struct_size = sizeof(errand_job_type),
                                           .name = "gated",
                                           .run = run_at_gate,
                                           .drop = drop_gated};

static errand_task_answer
sleep_once(errand_task *task, void *state, const errand_task_news *news)
{
    (void)state;
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    return errand_task_sleep(task, 1) == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
}

static void
hosts_allocator_is_called_by_the_owner_and_never_after_the_end(void **state)
{
    /* O58 */
    watched self = {.owner = pthread_self()};
    errand_allocator allocator = {watched_alloc, watched_free, &self};
    errand_blocking_config pool = {.struct_size = sizeof pool, .workers_max = 2};
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .held_allocator = &allocator};
    errand_task_spec task = {.struct_size = sizeof task, .fn = sleep_once};
    int64_t before = errand_testing_live_bytes();
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_executor *executor;
    errand_runtime *runtime;
    errand_report report;
    errand_lease *lease;
    errand_turn turn;

    (void)state;
    gate_init(&gate, "outlives");
    assert_int_equal(errand_blocking_create(&pool, &executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, executor, 0, &lease), ERRAND_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(errand_spawn(runtime, NULL, &task, NULL), ERRAND_OK);
    do
        assert_int_equal(errand_drive(runtime, NULL, &turn), ERRAND_OK);
    while (turn.kind == ERRAND_TURN_PROGRESS || turn.kind == ERRAND_TURN_IDLE);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &gated_type;
    spec.held_name = "named";
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    gate_await_arrival(&gate);
    assert_int_equal(errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_int_equal(report.undeliverable, 1);
    assert_true(self.calls > 0);
    assert_int_equal(self.bytes, 0); /* all of it is back */
    atomic_store_explicit(&self.closed, true, memory_order_release);
    gate_open(&gate);
    while (atomic_load_explicit(&state_dropped, memory_order_acquire) == 0)
        sched_yield();
    errand_executor_abandon(&executor);
    while (errand_testing_live_bytes() != before)
        sched_yield();
    assert_int_equal(atomic_load_explicit(&self.strangers, memory_order_relaxed), 0);
    assert_int_equal(atomic_load_explicit(&self.late, memory_order_relaxed), 0);
    gate_fini(&gate);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(runtime_uses_many_executors_and_its_leases_keep_them),
        cmocka_unit_test(lease_owes_sixteen_thousand_by_default_in_every_order),
        cmocka_unit_test_setup_teardown(
            waiting_for_room_ends_when_there_is_something_to_drain, world_setup,
            world_teardown),
        cmocka_unit_test(drain_takes_no_more_than_what_was_there),
        cmocka_unit_test(hosts_allocator_is_called_by_the_owner_and_never_after_the_end),
    };

    return test_group("runtime/executors", tests, NULL, NULL);
}
