/* SPDX-License-Identifier: MIT */
/* Goal: a foreign event loop that polls the runtime's one descriptor hears of everything (requests,
 * timers, wakers, other executors), also where the runtime's own thread carries the requests; and
 * an idle runtime costs nothing.
 * Method: poll() on the descriptor without a time limit; a lost wake is a hang, which the watchdog
 * ends. */
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include "core/core.h"
#include "rig.h"

static void
await_by_descriptor(scene *world, int fd, size_t count)
{
    while (world->seen[0].count < count) {
        struct pollfd one = {.fd = fd, .events = POLLIN};

        assert_true(poll(&one, 1, 30000) == 1);
        scene_drain(world, 0);
    }
}

static int
descriptor_of(scene *world)
{
    int fd;

    assert_int_equal(errand_runtime_wake_fd(world->runtimes[0], &fd), ERRAND_OK);
    scene_drain(world, 0);
    return fd;
}

static void
requests_body(scene *world, const rig_config *config)
{
    int fd = descriptor_of(world), ends[2];
    char bytes[8];

    (void)config;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (int i = 0; i < 20; i++) {
        rig_script job = {.count = 3};

        job.steps[0] = (errand_io){
            .kind = ERRAND_IO_RECV, .fd = ends[0], .buffer = bytes, .length = 1};
        job.steps[1] = (errand_io){.kind = ERRAND_IO_TIMEOUT,
                                   .until_ns = errand_deadline_in(1000000)};
        job.steps[2] =
            (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = "/dev/null"};
        size_t before = world->seen[0].count;
        scene_poll(world, 0, &rig_script_job, &job);
        if (i % 2 == 0)
            scene_drain(world, 0);
        assert_int_equal(send(ends[1], "x", 1, 0), 1);
        await_by_descriptor(world, fd, before + 1);
        assert_true(job.steps[2].result > 2);
        close(job.steps[2].result);
    }
    close(ends[0]);
    close(ends[1]);
}

static void
a_foreign_loop_hears_of_requests_and_timers(void **state)
{
    (void)state;
    rig_each(requests_body);
}

typedef struct wakes {
    scene_sleeper *sleeper;
    int count;
} wakes;

static void *
wake_from_outside(void *arg)
{
    wakes *self = arg;
    const struct timespec pause = {0, 200000};

    while (scene_waker(self->sleeper) == NULL)
        sched_yield();
    for (int i = 0; i < self->count; i++) {
        int before = scene_count(&self->sleeper->polls);

        errand_waker_wake(scene_waker(self->sleeper));
        while (i + 1 < self->count && scene_count(&self->sleeper->polls) == before)
            sched_yield();
        if (i % 16 == 0)
            nanosleep(&pause, NULL); /* the owner is asleep by now, more often than not */
    }
    return NULL;
}

static void
wakers_body(scene *world, const rig_config *config)
{
    enum { WAKES = 300 };

    (void)config;
    for (int parks = 0; parks < 2; parks++) {
        scene_sleeper sleeper = {.wakes_wanted = WAKES};
        wakes from = {&sleeper, WAKES};
        pthread_t thread;
        size_t before = world->seen[0].count;

        scene_poll(world, 0, &scene_sleeper_job, &sleeper);
        assert_int_equal(pthread_create(&thread, NULL, wake_from_outside, &from), 0);
        if (parks == 0)
            scene_await(world, 0, before + 1);
        else
            await_by_descriptor(world, descriptor_of(world), before + 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        scene_sleeper_end(&sleeper);
    }
}

static void
wakes_from_another_thread_reach_a_parked_owner_and_a_foreign_loop(void **state)
{
    (void)state;
    rig_each(wakers_body);
}

/* ---- beside another executor ---------------------------------------------------------------------- */

static int32_t
run_short(errand_job *job, void *state, errand_payload *out_payload)
{
    const struct timespec pause = {0, 100000};

    (void)job;
    (void)state;
    (void)out_payload;
    nanosleep(&pause, NULL);
    return 0;
}
static const errand_job_type short_job = {
    .struct_size = sizeof(errand_job_type), .name = "short", .run = run_short};

static void
pool_body(scene *world, const rig_config *config)
{
    errand_executor *pool;
    errand_lease *lease;
    errand_spec spec = ERRAND_SPEC_INIT;
    rig_script never = {.count = 1};
    errand_identity identity;
    size_t before;

    (void)config;
    assert_int_equal(errand_blocking_create(NULL, &pool), ERRAND_OK);
    assert_int_equal(errand_attach(world->runtimes[0], pool, 0, &lease), ERRAND_OK);
    errand_executor_abandon(&pool);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &short_job;
    never.steps[0] = (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = UINT64_MAX};
    identity = scene_poll(world, 0, &rig_script_job, &never);
    for (int i = 0; i < 200; i++) {
        before = world->seen[0].count;
        assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
        scene_await(world, 0, before + 1);
    }
    int fd = descriptor_of(world);
    for (int i = 0; i < 200; i++) {
        before = world->seen[0].count;
        assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
        await_by_descriptor(world, fd, before + 1);
    }
    before = world->seen[0].count;
    scene_cancel(world, 0, identity);
    await_by_descriptor(world, fd, before + 1);
}

static void
another_executors_completions_wake_an_owner_that_sleeps_for_requests(void **state)
{
    (void)state;
    rig_each(pool_body);
}

static void
two_body(scene *world, const rig_config *config)
{
    errand_executor *second;
    errand_lease *lease;
    errand_spec spec = ERRAND_SPEC_INIT;
    rig_script job = {.count = 1}, other = {.count = 1};
    int ends[2];
    char bytes[8];

    assert_true(rig_create(config, 0, &second));
    assert_int_equal(errand_attach(world->runtimes[0], second, 0, &lease), ERRAND_OK);
    errand_executor_abandon(&second);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    job.steps[0] =
        (errand_io){.kind = ERRAND_IO_RECV, .fd = ends[0], .buffer = bytes, .length = 1};
    other.steps[0] =
        (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = errand_deadline_in(5000000)};
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &rig_script_job;
    spec.state = &job;
    scene_poll(world, 0, &rig_script_job, &other);
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    scene_await(world, 0, 1);
    assert_int_equal(other.drops, 1);
    assert_int_equal(send(ends[1], "x", 1, 0), 1);
    scene_await(world, 0, 2);
    close(ends[0]);
    close(ends[1]);
}

static void
two_reactors_of_one_runtime_sleep_together(void **state)
{
    (void)state;
    rig_each(two_body);
}

static void
late_body(scene *world, const rig_config *config)
{
    errand_executor *second;
    errand_lease *lease;

    (void)descriptor_of(world);
    assert_true(rig_create(config, 0, &second));
    errand_misuse_hook(NULL, NULL);
    if (config->threads == 0)
        assert_int_equal(errand_attach(world->runtimes[0], second, 0, &lease),
                         ERRAND_EBUSY);
    else
        assert_int_equal(errand_attach(world->runtimes[0], second, 0, &lease), ERRAND_OK);
    errand_executor_abandon(&second);
}

static void
a_reactor_without_threads_is_attached_before_the_descriptor_is_asked_for(void **state)
{
    (void)state;
    rig_each(late_body);
}

/* ---- idle ------------------------------------------------------------------------------------------ */

static uint64_t
cpu_ns(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
idle_body(scene *world, const rig_config *config)
{
    rig_script job = {.count = 1};
    int ends[2];
    char byte;
    errand_identity identity;

    (void)config;
    assert_int_equal(pipe2(ends, 0), 0);
    job.steps[0] = (errand_io){.kind = ERRAND_IO_READ,
                               .fd = ends[0],
                               .buffer = &byte,
                               .length = 1,
                               .offset = -1};
    identity = scene_poll(world, 0, &rig_script_job, &job);
    scene_drain(world, 0);
    uint64_t begun = cpu_ns();
    assert_int_equal(errand_park(world->runtimes[0],
                                 errand_runtime_now(world->runtimes[0]) + 300000000),
                     ERRAND_OK);
    assert_true(cpu_ns() - begun < 100000000); /* whoever spins takes three times that */
    scene_cancel(world, 0, identity);
    scene_await(world, 0, 1);
    close(ends[0]);
    close(ends[1]);
}

static void
a_parked_runtime_with_a_request_under_way_uses_no_processor(void **state)
{
    (void)state; /* C-J3 */
    rig_each(idle_body);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_loop_hears_of_requests_and_timers),
        cmocka_unit_test(
            wakes_from_another_thread_reach_a_parked_owner_and_a_foreign_loop),
        cmocka_unit_test(
            another_executors_completions_wake_an_owner_that_sleeps_for_requests),
        cmocka_unit_test(two_reactors_of_one_runtime_sleep_together),
        cmocka_unit_test(
            a_reactor_without_threads_is_attached_before_the_descriptor_is_asked_for),
        cmocka_unit_test(a_parked_runtime_with_a_request_under_way_uses_no_processor),
    };
    return test_group("workers/reactor/foreign", tests, NULL, NULL);
}
