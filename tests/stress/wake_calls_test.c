/* SPDX-License-Identifier: MIT */
/* Goal: what waking costs in system calls, and that a host which polls is told as long as there is
 * something and no longer (O66, O67).
 * Method: the linker puts calls.c's read, write and syscall in front of the C library's; there they
 * are counted, and a write is held at a gate. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include "calls.h"
#include "runtime/runtime.h"
#include "stress.h"
#include "world.h"

static void
start_and_step(test_world *world, world_job *jobs, int amount)
{
    for (int i = 0; i < amount; i++)
        world_start(world, &jobs[i]);
    assert_int_equal(world_step(world, 100), amount);
}

static void
descriptor_costs_one_write_and_one_read_per_time_of_being_empty(void **state)
{
    /* O67 */
    test_world *world = *state;
    world_job jobs[12] = {{.ran = 0}};
    struct pollfd polled = {.events = POLLIN};

    assert_int_equal(errand_runtime_wake_fd(world->runtime, &polled.fd), ERRAND_OK);
    world_drain(world, SIZE_MAX);
    calls_reset();
    assert_int_equal(poll(&polled, 1, 0), 0);
    for (int time = 1; time <= 3; time++) {
        start_and_step(world, &jobs[4 * (time - 1)], 4);
        assert_int_equal(call_count(&call_writes), time); /* four puts, one write */
        assert_int_equal(poll(&polled, 1, 0), 1);
        assert_int_equal(world_drain(world, 2), 2);
        assert_int_equal(poll(&polled, 1, 0), 1); /* level-triggered: two are left */
        assert_int_equal(world_drain(world, SIZE_MAX), 2);
        assert_int_equal(poll(&polled, 1, 0), 0);
        assert_int_equal(call_count(&call_reads), time);
        /* C-J5: looking for nothing is harmless and free. */
        assert_int_equal(world_drain(world, SIZE_MAX), 0);
        assert_int_equal(call_count(&call_reads), time);
        assert_int_equal(call_count(&call_writes), time);
    }
    assert_int_equal(call_count(&call_unanswered), 0);
}

static void
runtime_without_a_descriptor_makes_no_system_call_until_it_parks(void **state)
{
    /* O67 */
    test_world *world = *state;
    world_job jobs[12] = {{.ran = 0}};

    calls_reset();
    for (int time = 0; time < 3; time++) {
        start_and_step(world, &jobs[4 * time], 4);
        assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK); /* O66 */
        assert_int_equal(world_drain(world, SIZE_MAX), 4);
    }
    assert_int_equal(call_count(&call_reads) + call_count(&call_writes) +
                         call_count(&call_futexes),
                     0);
}

static int32_t
open_for_all(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    atomic_fetch_add_explicit((atomic_uint *)state, 1, memory_order_release);
    return 0;
}
static const errand_job_type open_job = {
    .struct_size = sizeof(errand_job_type), .name = "open", .run = open_for_all};

/* An operation that was submitted elsewhere in the process must not write for this runtime. */
static void
puts_beyond_the_first_never_write(void **state)
{
    /* O67, with real workers: a hundred completions while nobody drains */
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 2};
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    errand_snapshot snapshot;
    errand_executor_snapshot workers;
    atomic_uint ended = 0;
    size_t drained;
    int fd;

    (void)state;
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &runtime), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, executor, 0, &lease), ERRAND_OK);
    assert_int_equal(errand_runtime_wake_fd(runtime, &fd), ERRAND_OK);
    calls_reset();
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &open_job;
    spec.state = &ended;
    for (int i = 0; i < 100; i++)
        assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    /* Counted as undrained is one before it is put: only a worker that rests has put its last. */
    do {
        sched_yield();
        assert_int_equal(errand_runtime_snapshot(runtime, &snapshot), ERRAND_OK);
        assert_int_equal(errand_executor_snapshot_read(executor, &workers), ERRAND_OK);
    } while (snapshot.undrained < 100 || workers.idle < workers.workers);
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, 20000), 1);
    assert_int_equal(errand_drain(runtime, SIZE_MAX, NULL, NULL, &drained), ERRAND_OK);
    assert_int_equal(drained, 100);
    assert_int_equal(call_count(&call_writes), 1);
    assert_int_equal(call_count(&call_reads), 1);
    assert_int_equal(errand_runtime_shutdown(&runtime,
                                             errand_deadline_in(UINT64_C(5000000000)),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    errand_executor_abandon(&executor);
}

static void *
step_two(void *arg)
{
    test_world *world = arg;
    size_t stepped;

    if (errand_manual_step(world->executor, 2, &stepped) != ERRAND_OK || stepped != 2)
        abort();
    return NULL;
}

static void *
step_when_parked(void *arg)
{
    while (call_count(&call_sleeps) == 0)
        sched_yield();
    return step_two(arg);
}

static void
write_that_comes_late_keeps_no_idle_host_awake(void **state)
{
    /* O67: the host drains before the worker that put has written. */
    test_world *world = *state;
    world_job jobs[2] = {{.ran = 0}};
    struct pollfd polled = {.events = POLLIN};
    pthread_t stepper;
    test_gate gate;

    gate_init(&gate, "write");
    assert_int_equal(errand_runtime_wake_fd(world->runtime, &polled.fd), ERRAND_OK);
    world_start(world, &jobs[0]);
    world_start(world, &jobs[1]);
    calls_hold_writes(&gate);
    assert_int_equal(pthread_create(&stepper, NULL, step_two, world), 0);
    gate_await_arrival(&gate);
    assert_int_equal(world_drain(world, SIZE_MAX), 1);
    calls_hold_writes(NULL);
    gate_open(&gate);
    pthread_join(stepper, NULL);
    for (int i = 0; i < 3 && poll(&polled, 1, 0) == 1; i++)
        world_drain(world, SIZE_MAX);
    assert_int_equal(poll(&polled, 1, 0), 0);
    assert_int_equal(world->news_count, 2);
    gate_fini(&gate);
}

static void
host_that_parks_and_polls_is_told_by_both(void **state)
{
    /* O66, O67: a put that ends a park has written nothing; what is left is shown all the same. */
    test_world *world = *state;
    world_job jobs[2] = {{.ran = 0}};
    struct pollfd polled = {.events = POLLIN};
    pthread_t stepper;

    assert_int_equal(errand_runtime_wake_fd(world->runtime, &polled.fd), ERRAND_OK);
    world->runtime->block->cpus = 1;
    world->runtime->block->last_traffic = 0;
    world_start(world, &jobs[0]);
    world_start(world, &jobs[1]);
    calls_reset();
    assert_int_equal(pthread_create(&stepper, NULL, step_when_parked, world), 0);
    assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
    pthread_join(stepper, NULL);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(poll(&polled, 1, 0), 1);
    assert_int_equal(world_drain(world, SIZE_MAX), 1);
    assert_int_equal(poll(&polled, 1, 0), 0);
}

static void
interrupt_makes_the_descriptor_readable_until_it_was_heeded(void **state)
{
    /* O44, O67 */
    test_world *world = *state;
    struct pollfd polled = {.events = POLLIN};
    errand_inbox *inbox;
    errand_turn turn;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    assert_int_equal(errand_runtime_wake_fd(world->runtime, &polled.fd), ERRAND_OK);
    for (int time = 0; time < 3; time++) {
        errand_interrupt(inbox);
        assert_int_equal(poll(&polled, 1, 0), 1);
        assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
        assert_int_equal(poll(&polled, 1, 0), 0);
    }
    errand_inbox_abandon(&inbox);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            descriptor_costs_one_write_and_one_read_per_time_of_being_empty, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(
            runtime_without_a_descriptor_makes_no_system_call_until_it_parks, world_setup,
            world_teardown),
        cmocka_unit_test(puts_beyond_the_first_never_write),
        cmocka_unit_test_setup_teardown(write_that_comes_late_keeps_no_idle_host_awake,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(host_that_parks_and_polls_is_told_by_both,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            interrupt_makes_the_descriptor_readable_until_it_was_heeded, world_setup,
            world_teardown),
    };

    return test_group("stress/wake_calls", tests, NULL, NULL);
}
