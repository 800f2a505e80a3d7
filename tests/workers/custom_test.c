/* SPDX-License-Identifier: MIT */
/* Goal: an executor that a host wrote runs or drops each dispatch once, and nothing it does or
 * does not do costs a completion (O64).
 * Method: a small executor keeps its dispatches in an array; the test says when which is run. */
#include <pthread.h>
#include <stdlib.h>
#include "scene.h"

enum { QUEUE_MOST = 8192 };

typedef struct hostmade { /* an executor as a host would write it */
    errand_dispatch queue[QUEUE_MOST];
    size_t count, taken;
    bool runs_in_submit, leaves_queue_at_detach;
    errand_status attach_answer, reserve_answer;
    uint64_t runtime_id;
    uint32_t owed_max;
    int detached, destroyed;
    bool refused_in_detach; /* what was queued had been settled before */
} hostmade;

static errand_status
host_attach(void *data, uint64_t runtime_id, uint32_t owed_max, void **out_lease)
{
    hostmade *self = data;

    if (self->attach_answer != ERRAND_OK)
        return self->attach_answer;
    self->runtime_id = runtime_id;
    self->owed_max = owed_max;
    *out_lease = self;
    return ERRAND_OK;
}
static errand_status
host_reserve(void *lease, uint32_t count)
{
    (void)count;
    return ((hostmade *)lease)->reserve_answer;
}
static void
host_submit(void *lease, errand_dispatch dispatch)
{
    hostmade *self = lease;

    if (self->runs_in_submit) {
        assert_true(errand_dispatch_run(dispatch));
        return;
    }
    assert_true(self->count < QUEUE_MOST);
    self->queue[self->count++] = dispatch;
}
static void
host_detach(void *lease, uint64_t deadline_ns)
{
    hostmade *self = lease;

    (void)deadline_ns;
    self->detached++;
    self->refused_in_detach = true;
    while (!self->leaves_queue_at_detach && self->taken < self->count) {
        if (errand_dispatch_drop(self->queue[self->taken++]))
            self->refused_in_detach = false;
    }
}
static void
host_destroy(void *data)
{
    ((hostmade *)data)->destroyed++;
}
static const errand_executor_type host_type = {.struct_size =
                                                   sizeof(errand_executor_type),
                                               .name = "hostmade",
                                               .attach = host_attach,
                                               .reserve = host_reserve,
                                               .submit = host_submit,
                                               .detach = host_detach,
                                               .destroy = host_destroy};

static hostmade *
custom_open(scene *world, int runtimes, uint32_t owed_max)
{
    errand_executor *executor;
    hostmade *self;

    scene_begin(world);
    self = calloc(1, sizeof *self);
    assert_int_equal(errand_executor_create(&host_type, self, &executor), ERRAND_OK);
    scene_open(world, executor, runtimes, NULL, owed_max);
    return self;
}

static void
custom_close(scene *world, hostmade *self)
{
    scene_close(world);
    assert_int_equal(self->destroyed, 1);
    free(self);
}

static atomic_int body_count;

static int32_t
count_body(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    atomic_fetch_add_explicit(&body_count, 1, memory_order_relaxed);
    return 0;
}
static const errand_job_type count_job = {
    .struct_size = sizeof(errand_job_type), .name = "count", .run = count_body};

static void
dispatches_are_read_and_run_when_the_host_likes(void **state)
{
    (void)state;
    scene world;
    errand_dispatch_view view;
    hostmade *self = custom_open(&world, 1, 0);
    atomic_store_explicit(&body_count, 0, memory_order_relaxed);
    assert_int_equal(self->runtime_id, errand_runtime_id(world.runtimes[0]));
    assert_int_equal(self->owed_max, 16384);
    errand_identity identity =
        scene_start(&world, 0, &count_job, NULL, ERRAND_QUARANTINED_BLOCKING, 0, 2);
    assert_int_equal(self->count, 1);
    assert_true(errand_dispatch_view_read(self->queue[0], &view));
    assert_memory_equal(&view.identity, &identity, sizeof identity);
    assert_int_equal(view.resource_class, ERRAND_QUARANTINED_BLOCKING);
    assert_int_equal(view.lane, ERRAND_LANE_QUARANTINED);
    assert_int_equal(view.priority, 2);
    assert_string_equal(view.name, "count");
    assert_int_equal(view.due_ns, 0);
    assert_int_equal(scene_count(&body_count), 0);
    assert_true(errand_dispatch_run(self->queue[0]));
    assert_int_equal(scene_count(&body_count), 1);
    assert_false(errand_dispatch_view_read(self->queue[0], &view));
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], 1);
    self->taken = 1;
    custom_close(&world, self);
}

static errand_status last_misuse;
static void
note_misuse(void *arg, errand_status status, const char *text)
{
    (void)arg;
    (void)text;
    last_misuse = status;
}

/* O64: each armed dispatch is run or dropped exactly once. */
static void
a_dispatch_is_good_for_one_use(void **state)
{
    (void)state;
    scene world;
    hostmade *self = custom_open(&world, 1, 0);
    atomic_store_explicit(&body_count, 0, memory_order_relaxed);
    scene_block(&world, 0, &count_job, NULL);
    assert_true(errand_dispatch_run(self->queue[0]));
    scene_drain(&world, 0);
    scene_block(&world, 0, &count_job, NULL); /* may live where the first one did */
    errand_misuse_hook(note_misuse, NULL);
    last_misuse = ERRAND_OK;
    assert_false(errand_dispatch_run(self->queue[0]));
    assert_int_equal(last_misuse, ERRAND_ESPENT);
    last_misuse = ERRAND_OK;
    assert_false(errand_dispatch_drop(self->queue[0]));
    assert_int_equal(last_misuse, ERRAND_ESPENT);
    errand_misuse_hook(NULL, NULL);
    assert_true(errand_dispatch_drop(self->queue[1]));
    assert_int_equal(scene_count(&body_count), 1);
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], 1);
    assert_int_equal(world.seen[0].outcomes[ERRAND_CANCELLED], 1); /* O19 */
    self->taken = 2;
    custom_close(&world, self);
}

static void
a_cancelled_operation_leaves_its_dispatch_without_use(void **state)
{
    (void)state;
    scene world;
    errand_dispatch_view view;
    scene_sleeper sleeper = {.wakes_wanted = 0};
    hostmade *self = custom_open(&world, 1, 0);
    atomic_store_explicit(&body_count, 0, memory_order_relaxed);
    errand_identity first = scene_block(&world, 0, &count_job, NULL);
    errand_identity second = scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    assert_int_equal(scene_cancel(&world, 0, first), ERRAND_CANCEL_CANCELLED);
    assert_int_equal(scene_cancel(&world, 0, second), ERRAND_CANCEL_CANCELLED);
    assert_false(errand_dispatch_view_read(self->queue[0], &view));
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_CANCELLED], 2);
    scene_block(&world, 0, &count_job, NULL);
    assert_false(errand_dispatch_view_read(self->queue[0], &view));
    assert_false(errand_dispatch_run(self->queue[0]));
    assert_false(errand_dispatch_run(self->queue[1]));
    assert_int_equal(scene_count(&sleeper.starts) + scene_count(&body_count), 0);
    assert_true(errand_dispatch_run(self->queue[2]));
    self->taken = 3;
    scene_drain(&world, 0);
    custom_close(&world, self);
}

static int32_t
panic_body(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    errand_panic("boom");
}
static const errand_job_type panic_job = {
    .struct_size = sizeof(errand_job_type), .name = "panic", .run = panic_body};
static const errand_job_type panic_poll_job = {
    .struct_size = sizeof(errand_job_type), .name = "panic", .poll = panic_body};

/* O47: an executor may finish work inside submit; O74: panics stay in their job. */
static void
an_executor_may_finish_work_inside_submit(void **state)
{
    (void)state;
    scene world;
    scene_sleeper sleeper = {.wakes_wanted = 0};
    hostmade *self = custom_open(&world, 1, 0);
    self->runs_in_submit = true;
    scene_block(&world, 0, &count_job, NULL);
    scene_block(&world, 0, &panic_job, NULL);
    scene_poll(&world, 0, &panic_poll_job, NULL);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    assert_int_equal(scene_drain(&world, 0), 4);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], 2);
    assert_int_equal(world.seen[0].outcomes[ERRAND_PANICKED], 2);
    scene_sleeper_end(&sleeper);
    custom_close(&world, self);
}

static void *
run_elsewhere(void *arg)
{
    return (void *)(uintptr_t)errand_dispatch_run(*(errand_dispatch *)arg);
}

static void
an_async_job_is_polled_by_its_runner_until_it_is_ready(void **state)
{
    (void)state;
    scene world;
    pthread_t thread;
    void *entered;
    scene_sleeper sleeper = {.wakes_wanted = 3};
    hostmade *self = custom_open(&world, 1, 0);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, &self->queue[0]), 0);
    for (int polls = 1; polls <= 3; polls++) {
        while (scene_count(&sleeper.polls) < polls || scene_waker(&sleeper) == NULL)
            sched_yield();
        errand_waker_wake(scene_waker(&sleeper));
    }
    scene_await(&world, 0, 1);
    assert_int_equal(pthread_join(thread, &entered), 0);
    assert_int_equal((uintptr_t)entered, 1);
    assert_int_equal(scene_count(&sleeper.starts), 1);
    assert_int_equal(scene_count(&sleeper.polls), 4);
    self->taken = 1;
    scene_sleeper_end(&sleeper);
    custom_close(&world, self);
}

/* O57, O19: the end of the lease drops a pending job under its sleeping runner. */
static void
the_end_of_a_lease_frees_the_runner_of_a_pending_job(void **state)
{
    (void)state;
    scene world;
    pthread_t thread;
    errand_report report;
    scene_sleeper sleeper = {.wakes_wanted = -1};
    hostmade *self = custom_open(&world, 1, 0);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    scene_block(&world, 0, &count_job, NULL); /* queued to the end */
    assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, &self->queue[0]), 0);
    while (scene_waker(&sleeper) == NULL)
        sched_yield();
    self->taken = 1;
    while (errand_lease_snapshot(world.leases[0], &report.accounts) == ERRAND_OK &&
           report.accounts.running == 0)
        sched_yield();
    assert_int_equal(
        errand_lease_shutdown(&world.leases[0], errand_deadline_in(20000000), &report),
        ERRAND_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(report.accounts.cancelled, 2);
    assert_int_equal(self->detached, 1);
    assert_true(self->refused_in_detach);
    assert_true(scene_count(&sleeper.polls) >= 1);
    scene_await(&world, 0, 2); /* O57: completions stay for the next drain */
    assert_int_equal(scene_count(&sleeper.drops), 1);
    scene_sleeper_end(&sleeper);
    custom_close(&world, self);
}

/* O57, D142: what is queued in a domain is cancelled where it is; a host's threads would begin it. */
static void
the_end_of_a_lease_hands_over_nothing_more(void **state)
{
    (void)state;
    scene world;
    errand_report report;
    errand_spec spec = ERRAND_SPEC_INIT;
    hostmade *self = custom_open(&world, 1, 0);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &count_job;
    spec.domain = 7;
    for (int i = 0; i < 3; i++)
        assert_int_equal(errand_start(world.leases[0], &spec, NULL, NULL), ERRAND_OK);
    assert_int_equal(self->count, 1);
    assert_int_equal(errand_lease_shutdown(&world.leases[0], 0, &report), ERRAND_OK);
    assert_int_equal(report.accounts.cancelled, 3);
    assert_int_equal(self->count, 1);
    scene_await(&world, 0, 3);
    custom_close(&world, self);
}

static test_gate body_gate;

static int32_t
wait_body(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    gate_wait(&body_gate);
    return 0;
}
static const errand_job_type wait_job = {
    .struct_size = sizeof(errand_job_type), .name = "wait", .run = wait_body};

/* O58: record, ticket and cells stay while the body runs. */
static void
a_body_that_outlives_its_runtime_ends_alone(void **state)
{
    (void)state;
    scene world;
    pthread_t thread;
    hostmade *self = custom_open(&world, 1, 0);
    gate_init(&body_gate, "body");
    scene_block(&world, 0, &wait_job, NULL);
    assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, &self->queue[0]), 0);
    gate_await_arrival(&body_gate);
    self->taken = 1;
    assert_int_equal(scene_end(&world, 0, 0).undeliverable, 1);
    errand_executor_abandon(&world.executor);
    assert_int_equal(self->destroyed, 0);
    gate_open(&body_gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self->destroyed, 1);
    assert_int_equal(errand_testing_live_bytes(), world.live_bytes);
    gate_fini(&body_gate);
    free(self);
}

enum { CROWD = 80 };

/* O48: more runs at once than a lease has cells; the counts stay exact. */
static void
many_runs_at_once_are_counted_exactly(void **state)
{
    (void)state;
    scene world;
    pthread_t threads[CROWD];
    errand_snapshot sums;
    hostmade *self = custom_open(&world, 1, 0);
    gate_init(&body_gate, "crowd");
    for (int i = 0; i < CROWD; i++)
        scene_block(&world, 0, &wait_job, NULL);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_elsewhere, &self->queue[i]), 0);
    for (int i = 0; i < 64; i++)
        gate_await_arrival(&body_gate);
    assert_int_equal(errand_lease_snapshot(world.leases[0], &sums), ERRAND_OK);
    assert_int_equal(sums.running, 64);
    assert_int_equal(sums.queued, CROWD - 64);
    gate_open_many(&body_gate, CROWD);
    scene_await(&world, 0, CROWD);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(errand_lease_snapshot(world.leases[0], &sums), ERRAND_OK);
    assert_int_equal(sums.completed, CROWD);
    assert_int_equal(sums.running + sums.queued + sums.undrained, 0);
    self->taken = self->count;
    gate_fini(&body_gate);
    custom_close(&world, self);
}

/* ---- refusals -------------------------------------------------------------------------------------- */

static errand_spec
count_spec(void)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &count_job;
    return spec;
}

static void
the_hosts_refusals_are_passed_on(void **state)
{
    (void)state;
    scene world;
    errand_lease *lease = NULL;
    errand_runtime *other;
    hostmade *self = custom_open(&world, 1, 0);
    errand_spec spec = count_spec();
    self->reserve_answer = ERRAND_ENOTHREAD;
    assert_int_equal(errand_start(world.leases[0], &spec, NULL, NULL), ERRAND_ENOTHREAD);
    assert_int_equal(self->count, 0);
    assert_int_equal(errand_runtime_create(NULL, &other), ERRAND_OK);
    self->attach_answer = ERRAND_ECLOSED;
    assert_int_equal(errand_attach(other, world.executor, 0, &lease), ERRAND_ECLOSED);
    self->attach_answer = ERRAND_OK;
    for (uint64_t n = 1; n <= 3; n++) {
        errand_testing_fail_allocation(n);
        assert_int_equal(errand_attach(other, world.executor, 0, &lease), ERRAND_ENOMEM);
    }
    errand_testing_fail_allocation(0);
    assert_null(lease);
    world.runtimes[1] = other;
    custom_close(&world, self);
    assert_int_equal(errand_testing_live_bytes(), world.live_bytes);
}

/* Dispatches of cancelled operations that the host holds on to use up its room, not its luck. */
static void
held_dispatches_of_cancelled_operations_fill_the_lease_up(void **state)
{
    (void)state;
    scene world;
    errand_status status;
    errand_spec spec = count_spec();
    hostmade *self = custom_open(&world, 1, 16);
    size_t accepted = 0;
    for (;;) {
        errand_identity identity;

        status = errand_start(world.leases[0], &spec, NULL, &identity);
        if (status != ERRAND_OK)
            break;
        accepted++;
        scene_cancel(&world, 0, identity);
        scene_drain(&world, 0);
    }
    assert_int_equal(status, ERRAND_EFULL);
    assert_int_equal(accepted, 16 + 1024);
    assert_false(errand_dispatch_run(self->queue[self->taken++]));
    assert_int_equal(errand_start(world.leases[0], &spec, NULL, NULL), ERRAND_OK);
    assert_true(errand_dispatch_run(self->queue[self->count - 1]));
    self->count--;
    scene_drain(&world, 0);
    custom_close(&world, self);
}

static void
a_type_without_what_is_needed_is_refused(void **state)
{
    (void)state;
    errand_executor *executor = NULL;
    errand_executor_type type = host_type;
    hostmade self = {.count = 0};
    type.struct_size = 8;
    assert_int_equal(errand_executor_create(&type, &self, &executor), ERRAND_EINVAL);
    type = host_type;
    type.submit = NULL;
    assert_int_equal(errand_executor_create(&type, &self, &executor), ERRAND_EINVAL);
    assert_int_equal(errand_executor_create(NULL, &self, &executor), ERRAND_EINVAL);
    assert_int_equal(errand_executor_create(&host_type, &self, NULL), ERRAND_EINVAL);
    errand_testing_fail_allocation(1);
    assert_int_equal(errand_executor_create(&host_type, &self, &executor), ERRAND_ENOMEM);
    assert_null(executor);
    assert_int_equal(self.destroyed, 0);
    type = host_type;
    type.destroy = NULL;
    assert_int_equal(errand_executor_create(&type, &self, &executor), ERRAND_OK);
    errand_executor_abandon(&executor);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(dispatches_are_read_and_run_when_the_host_likes),
        cmocka_unit_test(a_dispatch_is_good_for_one_use),
        cmocka_unit_test(a_cancelled_operation_leaves_its_dispatch_without_use),
        cmocka_unit_test(an_executor_may_finish_work_inside_submit),
        cmocka_unit_test(an_async_job_is_polled_by_its_runner_until_it_is_ready),
        cmocka_unit_test(the_end_of_a_lease_frees_the_runner_of_a_pending_job),
        cmocka_unit_test(the_end_of_a_lease_hands_over_nothing_more),
        cmocka_unit_test(a_body_that_outlives_its_runtime_ends_alone),
        cmocka_unit_test(many_runs_at_once_are_counted_exactly),
        cmocka_unit_test(the_hosts_refusals_are_passed_on),
        cmocka_unit_test(held_dispatches_of_cancelled_operations_fill_the_lease_up),
        cmocka_unit_test(a_type_without_what_is_needed_is_refused),
    };
    return test_group("workers/custom", tests, NULL, NULL);
}
