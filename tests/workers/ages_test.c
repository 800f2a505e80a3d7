/* SPDX-License-Identifier: MIT */
/* workers/ages: how long the jobs of a lease and of a runtime wait and run (O49).
 *
 * Goal: with every kind of executor the ages and overruns of a lease are its own jobs' alone.
 * Method: bodies stand at gates, so that it is certain which job is queued and which runs; time
 * passes by spinning, and only lower bounds are asked for. */
#include <pthread.h>
#include "pool_rig.h"
#include "scene.h"

#define MILLISECOND UINT64_C(1000000)
#define LONGEST     (600000 * MILLISECOND)

static test_gate gate;

static int32_t
stand(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    gate_wait(&gate);
    return 0;
}
static const errand_job_type standing = {
    .struct_size = sizeof(errand_job_type), .name = "standing", .run = stand};
static const errand_job_type standing_poll = {
    .struct_size = sizeof(errand_job_type), .name = "standing", .poll = stand};

static errand_identity
start_soft(scene *world, int at, const errand_job_type *type)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_identity identity;

    spec.kind = 1;
    spec.resource_class =
        type->poll != NULL ? ERRAND_INTERRUPTIBLE_ASYNC : ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = type;
    spec.soft_ns = MILLISECOND / 2;
    assert_int_equal(errand_start(world->leases[at], &spec, NULL, &identity), ERRAND_OK);
    return identity;
}

static errand_executor_snapshot
ages_of(const scene *world, int at)
{
    errand_executor_snapshot of;

    assert_int_equal(errand_lease_ages(world->leases[at], &of), ERRAND_OK);
    return of;
}

static void
expect_none(const errand_executor_snapshot *of)
{
    assert_int_equal(of->queued + of->running, 0);
    assert_int_equal(of->oldest_queued_ns, 0);
    assert_int_equal(of->oldest_running_ns, 0);
    assert_int_equal(of->overruns, 0);
}

static void
expect_running(const errand_executor_snapshot *of, const errand_identity *identity)
{
    assert_int_equal(of->running, 1);
    assert_in_range(of->oldest_running_ns, MILLISECOND, LONGEST);
    assert_int_equal(of->overruns, 1);
    assert_memory_equal(&of->overrun[0].identity, identity, sizeof *identity);
    assert_in_range(of->overrun[0].age_ns, MILLISECOND, LONGEST);
}

/* One job stands, two of the same lease and one of another wait behind it. */
static void
check_shared_thread(scene *world, const errand_job_type *type)
{
    errand_identity running, waiting;

    running = start_soft(world, 0, type);
    gate_await_arrival(&gate);
    start_soft(world, 0, type);
    start_soft(world, 0, type);
    rig_spin(2 * MILLISECOND);
    uint64_t since = rig_now();
    waiting = start_soft(world, 1, type);
    rig_spin(2 * MILLISECOND);
    errand_executor_snapshot first = ages_of(world, 0), second = ages_of(world, 1);
    uint64_t longest = rig_now() - since; /* and a little, because clocks are estimates */
    longest += MILLISECOND + longest / 100;
    expect_running(&first, &running);
    assert_int_equal(first.queued, 2);
    assert_in_range(first.oldest_queued_ns, 3 * MILLISECOND, LONGEST);
    assert_int_equal(second.queued, 1);
    assert_int_equal(second.running + second.overruns, 0);
    assert_int_equal(second.oldest_running_ns, 0);
    assert_in_range(second.oldest_queued_ns, MILLISECOND, longest);
    assert_int_equal(first.workers, 1);
    assert_int_equal(second.workers, 1);
    /* What was cancelled has no age, wherever its entry is. */
    assert_int_equal(scene_cancel(world, 1, waiting), ERRAND_CANCEL_CANCELLED);
    second = ages_of(world, 1);
    expect_none(&second);
    gate_open_many(&gate, 3);
    scene_await(world, 0, 3);
    first = ages_of(world, 0);
    expect_none(&first);
    scene_await(world, 1, 1);
}

static void
a_pool_tells_leases_apart(void **state)
{
    /* O49 */
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 1, .workers_max = 1};
    errand_executor *executor;
    scene world;

    (void)state;
    scene_begin(&world);
    gate_init(&gate, "body");
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    scene_open(&world, executor, 2, NULL, 0);
    check_shared_thread(&world, &standing);
    scene_close(&world);
    gate_fini(&gate);
}

static void
the_async_executor_tells_leases_apart(void **state)
{
    /* O49: also a job that is in the middle of its first poll */
    errand_executor *executor;
    scene world;

    (void)state;
    scene_begin(&world);
    gate_init(&gate, "poll");
    assert_int_equal(errand_async_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 2, NULL, 0);
    check_shared_thread(&world, &standing_poll);
    scene_close(&world);
    gate_fini(&gate);
}

static void
pending_jobs_go_on_ageing(void **state)
{
    /* O49 */
    errand_executor *executor;
    scene_sleeper sleeper = {.wakes_wanted = 1};
    scene world;

    (void)state;
    scene_begin(&world);
    assert_int_equal(errand_async_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 1, NULL, 0);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    while (scene_waker(&sleeper) == NULL)
        sched_yield();
    rig_spin(2 * MILLISECOND);
    errand_executor_snapshot of = ages_of(&world, 0);
    assert_int_equal(of.running, 1);
    assert_in_range(of.oldest_running_ns, MILLISECOND, LONGEST);
    errand_waker_wake(scene_waker(&sleeper));
    scene_await(&world, 0, 1);
    of = ages_of(&world, 0);
    expect_none(&of);
    scene_sleeper_end(&sleeper);
    scene_close(&world);
}

/* ---- on the caller's thread ------------------------------------------------------------------ */

static scene *inside;
static errand_executor_snapshot seen_inside[2];
static errand_dispatch late; /* of an operation that is gone; run inside, if any */

static int32_t
look(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    rig_spin(2 * MILLISECOND);
    if (late.held_record != NULL)
        assert_false(errand_dispatch_run(late));
    late.held_record = NULL;
    seen_inside[0] = ages_of(inside, 0);
    seen_inside[1] = ages_of(inside, 1);
    return 0;
}
static const errand_job_type looking = {
    .struct_size = sizeof(errand_job_type), .name = "looking", .run = look};
static const errand_job_type looking_poll = {
    .struct_size = sizeof(errand_job_type), .name = "looking", .poll = look};

static void
a_manual_executor_tells_leases_apart(void **state)
{
    /* O49: with blocking and with async jobs */
    const errand_job_type *const types[2] = {&looking, &looking_poll};
    errand_executor *executor;
    scene world;

    (void)state;
    scene_begin(&world);
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 2, NULL, 0);
    inside = &world;
    for (size_t i = 0; i < 2; i++) {
        errand_identity identity = start_soft(&world, 0, types[i]);
        rig_spin(2 * MILLISECOND);
        errand_executor_snapshot of = ages_of(&world, 0);
        assert_in_range(of.oldest_queued_ns, MILLISECOND, LONGEST);
        assert_int_equal(of.oldest_running_ns, 0);
        of = ages_of(&world, 1);
        expect_none(&of);
        assert_int_equal(scene_step(&world, 1), 1);
        expect_running(&seen_inside[0], &identity);
        assert_int_equal(seen_inside[0].oldest_queued_ns, 0);
        assert_int_equal(seen_inside[0].idle, 0);
        expect_none(&seen_inside[1]);
        scene_await(&world, 0, i + 1);
        of = ages_of(&world, 0);
        expect_none(&of);
    }
    scene_close(&world);
}

static errand_dispatch handed[2];
static size_t handed_count;

static errand_status
take_lease(void *data, uint64_t runtime_id, uint32_t owed_max, void **out_lease)
{
    (void)runtime_id;
    (void)owed_max;
    *out_lease = data;
    return ERRAND_OK;
}
static errand_status
take_any(void *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_OK;
}
static void
take(void *lease, errand_dispatch dispatch)
{
    (void)lease;
    handed[handed_count++ % 2] = dispatch;
}
static void
let_go(void *lease, uint64_t deadline_ns)
{
    (void)lease;
    (void)deadline_ns;
}
static const errand_executor_type own_type = {.struct_size = sizeof(errand_executor_type),
                                              .name = "own",
                                              .attach = take_lease,
                                              .reserve = take_any,
                                              .submit = take,
                                              .detach = let_go};

static void
an_executor_of_the_hosts_own_tells_leases_apart(void **state)
{
    /* O49, O64 */
    const errand_job_type *const types[2] = {&looking, &looking_poll};
    errand_executor *executor;
    scene world;

    (void)state;
    scene_begin(&world);
    assert_int_equal(errand_executor_create(&own_type, &world, &executor), ERRAND_OK);
    scene_open(&world, executor, 2, NULL, 0);
    inside = &world;
    for (size_t i = 0; i < 2; i++) {
        /* A dispatch of a cancelled one that comes late is nobody's start. */
        errand_identity gone = start_soft(&world, 0, types[i]);
        late = handed[(handed_count - 1) % 2];
        assert_int_equal(scene_cancel(&world, 0, gone), ERRAND_CANCEL_CANCELLED);
        scene_drain(&world, 0);
        errand_identity identity = start_soft(&world, 0, types[i]);
        rig_spin(2 * MILLISECOND);
        errand_executor_snapshot of = ages_of(&world, 0);
        assert_in_range(of.oldest_queued_ns, MILLISECOND, LONGEST);
        assert_int_equal(of.oldest_running_ns, 0);
        assert_true(errand_dispatch_run(handed[(handed_count - 1) % 2]));
        expect_running(&seen_inside[0], &identity);
        assert_int_equal(seen_inside[0].oldest_queued_ns, 0);
        expect_none(&seen_inside[1]);
        scene_await(&world, 0, 2 * (i + 1));
        of = ages_of(&world, 0);
        expect_none(&of);
    }
    scene_close(&world);
}

/* ---- runtimes -------------------------------------------------------------------------------- */

static void
a_runtime_has_the_oldest_of_its_leases(void **state)
{
    /* O49 */
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 2, .workers_max = 2};
    errand_executor *pool, *manual;
    errand_executor_snapshot of;
    errand_lease *second;
    errand_report report;
    scene world;

    (void)state;
    scene_begin(&world);
    gate_init(&gate, "body");
    assert_int_equal(errand_blocking_create(&config, &pool), ERRAND_OK);
    assert_int_equal(errand_manual_create(NULL, &manual), ERRAND_OK);
    scene_open(&world, pool, 1, NULL, 0);
    assert_int_equal(errand_attach(world.runtimes[0], manual, 0, &second), ERRAND_OK);
    errand_lease *first = world.leases[0];
    errand_identity running = start_soft(&world, 0, &standing);
    gate_await_arrival(&gate);
    world.leases[0] = second;
    start_soft(&world, 0, &standing);
    world.leases[0] = first;
    rig_spin(2 * MILLISECOND);
    assert_int_equal(errand_runtime_ages(world.runtimes[0], &of), ERRAND_OK);
    expect_running(&of, &running);
    assert_int_equal(of.queued, 1);
    assert_in_range(of.oldest_queued_ns, MILLISECOND, LONGEST);
    assert_int_equal(of.workers, 3);
    /* A lease that has ended says nothing of its executor any more. */
    assert_int_equal(errand_lease_shutdown(&second, 0, &report), ERRAND_OK);
    errand_executor_abandon(&manual);
    assert_int_equal(errand_runtime_ages(world.runtimes[0], &of), ERRAND_OK);
    expect_running(&of, &running);
    assert_int_equal(of.queued, 0);
    assert_int_equal(of.oldest_queued_ns, 0);
    assert_int_equal(of.workers, 2);
    gate_open(&gate);
    scene_await(&world, 0, 2);
    scene_close(&world);
    gate_fini(&gate);
}

static void
seeded_orders_show_no_real_time(void **state)
{
    /* O49: what a program sees there follows virtual time */
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = ERRAND_ORDER_INLINE, .seed = 7};
    errand_executor *executor;
    scene world;

    (void)state;
    scene_begin(&world);
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 2, &config, 0);
    inside = &world;
    start_soft(&world, 0, &looking);
    scene_await(&world, 0, 1);
    assert_int_equal(seen_inside[0].oldest_queued_ns, 0);
    assert_int_equal(seen_inside[0].oldest_running_ns, 0);
    assert_int_equal(seen_inside[0].overruns, 0);
    scene_close(&world);
}

static void
what_is_missing_is_refused(void **state)
{
    errand_executor_snapshot of;
    errand_executor *executor;
    scene world;

    (void)state;
    scene_begin(&world);
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 1, NULL, 0);
    assert_int_equal(errand_lease_ages(NULL, &of), ERRAND_EINVAL);
    assert_int_equal(errand_lease_ages(world.leases[0], NULL), ERRAND_EINVAL);
    assert_int_equal(errand_runtime_ages(NULL, &of), ERRAND_EINVAL);
    assert_int_equal(errand_runtime_ages(world.runtimes[0], NULL), ERRAND_EINVAL);
    scene_close(&world);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_tells_leases_apart),
        cmocka_unit_test(the_async_executor_tells_leases_apart),
        cmocka_unit_test(pending_jobs_go_on_ageing),
        cmocka_unit_test(a_manual_executor_tells_leases_apart),
        cmocka_unit_test(an_executor_of_the_hosts_own_tells_leases_apart),
        cmocka_unit_test(a_runtime_has_the_oldest_of_its_leases),
        cmocka_unit_test(seeded_orders_show_no_real_time),
        cmocka_unit_test(what_is_missing_is_refused),
    };

    return test_group("workers/ages", tests, NULL, NULL);
}
