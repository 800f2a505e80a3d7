/* SPDX-License-Identifier: MIT */
/* Goal: a CALL is called once, on a helper thread, while its loop goes on with everything else; asked
 * back before it has begun it is not called; and what nobody waits for is done before the
 * reactor has ended.
 * Method: functions that stand at gates, with all helpers taken; timers beside them. */
#include <pthread.h>
#include <sys/wait.h>
#include "rig.h"
#include "workers/reactor/reactor.h"

enum { HELPERS = 4 }; /* the default */

typedef struct called {
    test_gate gate;
    pthread_t thread;
    atomic_int times;
    int32_t answer;
    bool waits;
} called;

static int32_t
call(void *arg)
{
    called *self = arg;

    self->thread = pthread_self();
    atomic_fetch_add_explicit(&self->times, 1, memory_order_relaxed);
    if (self->waits)
        gate_wait(&self->gate);
    return self->answer;
}

static errand_io
call_of(called *self)
{
    return (errand_io){.kind = ERRAND_IO_CALL, .function = call, .arg = self};
}

static int
times_of(called *self)
{
    return atomic_load_explicit(&self->times, memory_order_acquire);
}

/* Until so many jobs have been dropped: their ends may be told before. */
static void
await_drops(scene *world, rig_script *scripts, int count)
{
    for (int i = 0; i < count; i++)
        while (atomic_load_explicit(&scripts[i].drops, memory_order_relaxed) == 0)
            if (scene_drain(world, 0) == 0)
                assert_int_equal(errand_park(world->runtimes[0], 1000000), ERRAND_OK);
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void
answer_body(scene *world, const rig_config *config)
{
    /* Also those that mean something else inside. */
    const int32_t answers[] = {0,
                               -EIO,
                               7,
                               INT32_MAX,
                               INT32_MIN,
                               INT32_MIN + 1,
                               INT32_MIN + 2,
                               INT32_MIN + 3,
                               INT32_MIN + 4};

    (void)config;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        called one = {.answer = answers[i]};

        assert_int_equal(rig_do(world, call_of(&one)), answers[i]);
        assert_int_equal(times_of(&one), 1);
        assert_false(pthread_equal(one.thread, pthread_self()));
    }
}

/* O1 */
static void
a_function_is_called_once_on_another_thread_whatever_it_answers(void **state)
{
    (void)state;
    rig_each(answer_body);
}

static void
refused_body(scene *world, const rig_config *config)
{
    called one = {.answer = 3};

    (void)config;
    errand_testing_refuse_threads(UINT32_MAX);
    assert_int_equal(rig_do(world, call_of(&one)), 3);
    errand_testing_refuse_threads(0);
    assert_int_equal(times_of(&one), 1);
}

/* O1 */
static void
where_no_thread_can_be_made_the_loop_calls_it(void **state)
{
    (void)state;
    rig_each(refused_body);
}

/* ---- a loop beside functions that wait -------------------------------------------------------------- */

static void
busy_body(scene *world, const rig_config *config)
{
    called waiting[HELPERS], queued = {.answer = 1};
    rig_script scripts[HELPERS + 1] = {0};

    (void)config;
    for (int i = 0; i < HELPERS; i++) {
        waiting[i] = (called){.waits = true, .answer = 0};
        gate_init(&waiting[i].gate, "a helper");
        scripts[i] = (rig_script){.steps = {call_of(&waiting[i])}, .count = 1};
        scene_poll(world, 0, &rig_script_job, &scripts[i]);
        if (config->threads == 0)
            scene_drain(world, 0);
        gate_await_arrival(&waiting[i].gate);
    }
    scripts[HELPERS] = (rig_script){.steps = {call_of(&queued)}, .count = 1};
    scene_poll(world, 0, &rig_script_job, &scripts[HELPERS]);
    for (int i = 0; i < 3; i++) /* no helper is left, and the loop waits for none */
        assert_int_equal(
            rig_do(world, (errand_io){.kind = ERRAND_IO_TIMEOUT,
                                      .until_ns = errand_deadline_in(1000000)}),
            0);
    assert_int_equal(times_of(&queued), 0);
    gate_open(&waiting[0].gate);
    await_drops(world, &scripts[HELPERS], 1);
    assert_int_equal(times_of(&queued), 1);
    for (int i = 1; i < HELPERS; i++)
        gate_open(&waiting[i].gate);
    await_drops(world, scripts, HELPERS);
    for (int i = 0; i < HELPERS; i++)
        gate_fini(&waiting[i].gate);
}

/* L11 */
static void
timers_go_on_while_all_helpers_wait(void **state)
{
    (void)state;
    rig_each(busy_body);
}

static errand_identity
submit_script(scene *world, rig_script *script, uint64_t deadline_ns)
{
    errand_identity identity;
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &rig_script_job;
    spec.state = script;
    spec.deadline_ns = deadline_ns;
    assert_int_equal(errand_start(world->leases[0], &spec, NULL, &identity), ERRAND_OK);
    return identity;
}

static bool
open_with_one_helper(scene *world, const rig_config *config)
{
    errand_runtime_config patient = {.struct_size = sizeof patient, .grace_ns = 1000000};
    errand_reactor_config wanted = {.struct_size = sizeof wanted,
                                    .threads = config->threads,
                                    .backend = config->backend,
                                    .helpers = 1};
    errand_executor *executor;
    errand_status status;

    scene_begin(world);
    status = errand_reactor_create(&wanted, &executor);
    if (status == ERRAND_EUNSUPPORTED && config->backend == ERRAND_REACTOR_URING)
        return false;
    assert_int_equal(status, ERRAND_OK);
    scene_open(world, executor, 1, &patient, 0);
    return true;
}

/* Two that are cancelled: one is in the queue, the other has begun. */
static void
a_function_asked_back_before_it_began_is_not_called_and_one_that_began_returns(
    void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++) {
        called holder, queued = {.answer = 5};
        rig_script scripts[2];
        errand_identity identity;
        scene world;

        if (!open_with_one_helper(&world, &rig_configs[i]))
            continue;
        holder = (called){.waits = true, .answer = -EINTR};
        gate_init(&holder.gate, "the helper");
        scripts[0] = (rig_script){.steps = {call_of(&holder)}, .count = 1};
        errand_identity first = submit_script(&world, &scripts[0], 0);
        scene_drain(&world, 0);
        gate_await_arrival(&holder.gate);
        scripts[1] = (rig_script){.steps = {call_of(&queued)}, .count = 1};
        identity = submit_script(&world, &scripts[1], 0);
        while (atomic_load_explicit(&scripts[1].polls, memory_order_relaxed) == 0)
            scene_drain(&world, 0);
        scene_cancel(&world, 0, identity);
        await_drops(&world, &scripts[1], 1);
        assert_int_equal(scripts[1].steps[0].result, -ECANCELED);
        assert_int_equal(times_of(&queued), 0);
        scene_cancel(&world, 0, first);
        scene_drain(&world, 0);
        assert_int_equal(scripts[0].drops, 0); /* its memory is the function's */
        gate_open(&holder.gate);
        await_drops(&world, &scripts[0], 1);
        assert_int_equal(scripts[0].steps[0].result, -EINTR);
        gate_fini(&holder.gate);
        scene_close(&world);
    }
}

/* O45: the function has no end of its own; the deadline's is told all the same. */
static void
a_deadline_is_told_while_the_function_goes_on(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++) {
        called holder = {.waits = true};
        rig_script script;
        scene world;

        if (!open_with_one_helper(&world, &rig_configs[i]))
            continue;
        gate_init(&holder.gate, "the helper");
        int tries = 0;
        /* On a slow machine a short one passes before the helper begins. */
        for (uint64_t deadline = 20000000; times_of(&holder) == 0; deadline *= 5) {
            script = (rig_script){.count = 1, .steps = {call_of(&holder)}};
            submit_script(&world, &script, deadline);
            tries++;
            while (times_of(&holder) == 0 &&
                   atomic_load_explicit(&script.drops, memory_order_relaxed) == 0)
                if (scene_drain(&world, 0) == 0)
                    assert_int_equal(errand_park(world.runtimes[0], 1000000), ERRAND_OK);
        }
        gate_await_arrival(&holder.gate);
        scene_await(&world, 0, tries);
        assert_int_equal(world.seen[0].codes[ERRAND_CODE_DEADLINE], tries);
        assert_int_equal(script.drops, 0);
        gate_open(&holder.gate);
        await_drops(&world, &script, 1);
        gate_fini(&holder.gate);
        scene_close(&world);
    }
}

/* ---- what nobody waits for --------------------------------------------------------------------------- */

static errand_helpers *taken;

static int32_t
poll_take(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)state;
    (void)out_payload;
    taken = errand_job_helpers(job);
    return 0;
}
static const errand_job_type take_job = {
    .struct_size = sizeof(errand_job_type), .name = "take", .poll = poll_take};

static void
take_helpers(scene *world)
{
    size_t count = world->seen[0].count;

    scene_poll(world, 0, &take_job, NULL);
    scene_await(world, 0, count + 1);
}

static void
called_without_a_thread(errand_helpers *helpers)
{
    called here = {.answer = 1};

    errand_helpers_call(helpers, call, &here);
    assert_int_equal(times_of(&here), 1);
    assert_true(pthread_equal(here.thread, pthread_self()));
}

/* L11: where a helper cannot do it, whoever lets go does. */
static void
what_nobody_waits_for_is_called_on_a_helper_or_by_the_caller(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++) {
        called holder = {.waits = true}, later = {.answer = 0};
        scene world;
        pid_t child;
        int status;

        if (!open_with_one_helper(&world, &rig_configs[i]))
            continue;
        take_helpers(&world);
        assert_non_null(taken);
        gate_init(&holder.gate, "the helper");
        errand_helpers_call(taken, call, &holder);
        gate_await_arrival(&holder.gate);
        assert_false(pthread_equal(holder.thread, pthread_self()));
        errand_helpers_call(taken, call, &later); /* the helper has something to do */
        assert_int_equal(times_of(&later), 0);
        errand_testing_fail_allocation(1);
        called_without_a_thread(taken);
        errand_testing_fail_allocation(0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            called_without_a_thread(taken);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        gate_open(&holder.gate);
        scene_end(&world, 0, errand_deadline_in(UINT64_C(5000000000)));
        world.runtimes[0] = NULL;
        errand_executor_abandon(&world.executor);
        assert_int_equal(times_of(&later), 1); /* the reactor's end waits */
        called_without_a_thread(taken);
        errand_helpers_abandon(&taken);
        assert_null(taken);
        errand_helpers_abandon(&taken);
        called_without_a_thread(NULL);
        scene_await_memory(&world);
        gate_fini(&holder.gate);
    }
}

/* Stops the first thread that comes there. */
typedef struct held_once {
    const char *place;
    atomic_bool seen;
    test_gate gate;
} held_once;

static void
hold(void *arg, const char *place)
{
    held_once *self = arg;

    if (strcmp(place, self->place) == 0 &&
        !atomic_exchange_explicit(&self->seen, true, memory_order_relaxed))
        gate_wait(&self->gate);
}

static void *
open_at_the_end(void *arg)
{
    bool ending = false;

    while (!ending) {
        sched_yield();
        errand__lock_acquire(&taken->lock);
        ending = taken->stopping;
        errand__lock_release(&taken->lock);
    }
    gate_open(arg);
    errand_helpers_abandon(&taken);
    return NULL;
}

/* L11: it was woken for that, and sees the end at the same time. */
static void
a_helper_that_slept_until_the_reactors_end_does_what_is_queued(void **state)
{
    (void)state;
    held_once woken = {.place = "filer-wakes"};
    called first = {.answer = 0}, last = {.answer = 0};
    scene world;
    pthread_t watcher;

    assert_true(open_with_one_helper(&world, &rig_configs[1]));
    take_helpers(&world);
    assert_int_equal(rig_do(&world, call_of(&first)), 0); /* now there is one */
    gate_init(&woken.gate, "a helper that wakes");
    errand_testing_pause(hold, &woken);
    errand_helpers_call(taken, call, &last);
    assert_int_equal(pthread_create(&watcher, NULL, open_at_the_end, &woken.gate), 0);
    scene_close(&world);
    assert_int_equal(times_of(&last), 1);
    pthread_join(watcher, NULL);
    errand_testing_pause(NULL, NULL);
    gate_fini(&woken.gate);
}

/* The one that finds no helper any more does both. */
static void
what_nobody_waits_for_is_called_where_no_thread_can_be_made(void **state)
{
    (void)state;
    rig_config config = rig_configs[1];
    scene world;

    assert_true(open_with_one_helper(&world, &config));
    take_helpers(&world);
    errand_testing_refuse_threads(UINT32_MAX);
    called_without_a_thread(taken);
    errand_testing_refuse_threads(0);
    errand_helpers_abandon(&taken);
    scene_close(&world);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_called_once_on_another_thread_whatever_it_answers),
        cmocka_unit_test(where_no_thread_can_be_made_the_loop_calls_it),
        cmocka_unit_test(timers_go_on_while_all_helpers_wait),
        cmocka_unit_test(
            a_function_asked_back_before_it_began_is_not_called_and_one_that_began_returns),
        cmocka_unit_test(a_deadline_is_told_while_the_function_goes_on),
        cmocka_unit_test(what_nobody_waits_for_is_called_on_a_helper_or_by_the_caller),
        cmocka_unit_test(a_helper_that_slept_until_the_reactors_end_does_what_is_queued),
        cmocka_unit_test(what_nobody_waits_for_is_called_where_no_thread_can_be_made),
    };
    return test_group("workers/reactor/calls", tests, NULL, NULL);
}
