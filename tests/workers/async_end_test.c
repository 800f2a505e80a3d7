/* SPDX-License-Identifier: MIT */
/* Goal: each job of the async executor ends exactly once, also through panics and the end of its
 * thread, lease, runtime and executor.
 * Method: each end is made to happen alone, at a gate; then all of them race. */
#include <pthread.h>
#include "workers/async/async.h"
#include "async_rig.h"

static int32_t
poll_caller(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}
static const errand_job_type caller_job = {
    .struct_size = sizeof(errand_job_type), .name = "caller", .poll = poll_caller};

/* ---- panics ------------------------------------------------------------------------------------------ */

typedef struct breaker {
    bool in_start, ends_thread;
} breaker;

static int32_t
break_now(const breaker *self)
{
    if (self->ends_thread)
        pthread_exit(NULL);
    errand_panic("broken in %s", self->in_start ? "start" : "poll");
}
static int32_t
start_breaker(errand_job *job, void *state, errand_payload *out_payload)
{
    const breaker *self = state;

    (void)job;
    (void)out_payload;
    return self->in_start ? break_now(self) : 0;
}
static int32_t
poll_breaker(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    return break_now(state);
}
static const errand_job_type breaker_job = {.struct_size = sizeof(errand_job_type),
                                            .name = "breaker",
                                            .start = start_breaker,
                                            .poll = poll_breaker};

/* O21: a panic while constructing and one while polling are one PANIC each. */
static void
a_panic_in_start_or_poll_is_one_completion(void **state)
{
    (void)state;
    scene world;
    breaker at_start = {.in_start = true}, at_poll = {.in_start = false};
    async_open(&world, 1);
    scene_poll(&world, 0, &breaker_job, &at_start);
    scene_await(&world, 0, 1);
    assert_string_equal(world.seen[0].message, "broken in start");
    scene_poll(&world, 0, &breaker_job, &at_poll);
    scene_await(&world, 0, 2);
    assert_string_equal(world.seen[0].message, "broken in poll");
    scene_poll(&world, 0, &caller_job, NULL);
    scene_await(&world, 0, 3);
    assert_int_equal(world.seen[0].outcomes[ERRAND_PANICKED], 2);
    scene_close(&world);
}

/* O75: pthread_exit in a job is a panic, and another thread goes on; where none can be made, the
 * dying one does. */
static void
a_job_that_ends_its_thread_is_settled_and_the_thread_replaced(void **state)
{
    (void)state;
    scene world;
    errand_executor_snapshot snapshot;
    breaker thread_end = {.ends_thread = true};
    size_t count = 0;
    async_open(&world, 1);
    for (unsigned refused = 0; refused < 3; refused++) {
        scene_sleeper sleeper = {.wakes_wanted = 1};

        scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
        await_count(&sleeper.polls, 1);
        errand_testing_refuse_threads(refused == 1 ? 1 : 0);
        scene_poll(&world, 0, &breaker_job, &thread_end);
        scene_await(&world, 0, ++count);
        assert_int_equal(world.seen[0].outcomes[ERRAND_PANICKED], refused + 1);
        while (scene_waker(&sleeper) == NULL)
            sched_yield();
        errand_waker_wake(scene_waker(&sleeper)); /* it was pending meanwhile */
        scene_await(&world, 0, ++count);
        scene_sleeper_end(&sleeper);
    }
    assert_int_equal(errand_executor_snapshot_read(world.executor, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.workers, 1);
    assert_int_equal(snapshot.threads_replaced, 3);
    assert_true(scene_end(&world, 0, 0).clean);
    errand_executor_abandon(&world.executor);
    scene_await_memory(
        &world); /* the last thread that ended may still hold the executor */
}

static void
refusals_change_nothing(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor = NULL;
    errand_prepared prepared;
    errand_binding binding;
    errand_wait wait;
    errand_submission submission;
    errand_identity identity;
    errand_async_config config = {.struct_size = sizeof config, .flags = 2};
    errand_spec spec = ERRAND_SPEC_INIT;
    int64_t live = errand_testing_live_bytes();
    assert_int_equal(errand_async_create(&config, &executor), ERRAND_EINVAL);
    config =
        (errand_async_config){.struct_size = sizeof config, .name = "sixteen letters!"};
    assert_int_equal(errand_async_create(&config, &executor), ERRAND_EINVAL);
    assert_int_equal(errand_async_create(NULL, NULL), ERRAND_EINVAL);
    errand_testing_refuse_threads(1);
    assert_int_equal(errand_async_create(NULL, &executor), ERRAND_ENOTHREAD);
    for (uint64_t n = 1; n <= 2; n++) {
        errand_testing_fail_allocation(n);
        assert_int_equal(errand_async_create(NULL, &executor), ERRAND_ENOMEM);
    }
    errand_testing_fail_allocation(0);
    assert_int_equal(errand_testing_live_bytes(), live);
    assert_null(executor);

    async_open(&world, 1);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    static const errand_job_type blocking = {
        .struct_size = sizeof(errand_job_type), .name = "blocking", .run = poll_caller};
    spec.held_job = &blocking;
    assert_int_equal(errand_issue(world.runtimes[0], 1, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_prepare(world.runtimes[0], &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_bind(world.runtimes[0], &identity, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    errand_wait_abandon(&wait);
    assert_int_equal(errand_submit(world.leases[0], &submission), ERRAND_EUNSUPPORTED);
    assert_non_null(submission.held_record); /* O10: still the caller's */
    errand_submission_abandon(&submission);
    assert_int_equal(errand_start(world.leases[0], &spec, NULL, NULL),
                     ERRAND_EUNSUPPORTED);
    scene_close(&world);
}

/* ---- ends --------------------------------------------------------------------------------------------- */

/* O57, O19 */
static void
a_lease_ends_its_pending_jobs_at_the_deadline(void **state)
{
    (void)state;
    scene world;
    errand_report report;
    scene_sleeper tidy = {.wakes_wanted = -1, .ends_when_cancelled = true};
    scene_sleeper stubborn = {.wakes_wanted = -1};
    async_open(&world, 2);
    scene_sleeper other = {.wakes_wanted = 1};
    scene_poll(&world, 1, &scene_sleeper_job, &other);
    while (scene_waker(&other) == NULL) /* else the thread may begin with the others */
        sched_yield();
    scene_poll(&world, 0, &scene_sleeper_job, &tidy);
    scene_poll(&world, 0, &scene_sleeper_job, &stubborn);
    await_count(&stubborn.polls, 1);
    assert_int_equal(errand_lease_shutdown(&world.leases[0], 0, &report), ERRAND_OK);
    /* Both were woken to be asked; only a poll that is going on now may be left. */
    assert_true(report.clean || report.running != 0);
    assert_int_equal(report.accounts.failed + report.accounts.cancelled + report.running,
                     2);
    scene_await(&world, 0, 2); /* O57: completions stay for the next drain */
    assert_int_equal(scene_count(&tidy.drops) + scene_count(&stubborn.drops), 2);
    errand_waker_wake(scene_waker(&stubborn)); /* harmless after its end */
    errand_waker_wake(scene_waker(&other));    /* others are untouched */
    scene_await(&world, 1, 1);
    scene_sleeper_end(&tidy);
    scene_sleeper_end(&stubborn);
    scene_sleeper_end(&other);
    scene_close(&world);
}

typedef struct closer {
    errand__async *executor;
    errand__roster *roster;
    test_gate *gate;
} closer;

/* Lets the poll go on once the owner has asked the lease's jobs to end. */
static void *
open_when_closing(void *arg)
{
    closer *self = arg;
    bool closing = false;

    while (!closing) {
        errand__lock_acquire(&self->executor->lock);
        closing = self->roster->closing;
        errand__lock_release(&self->executor->lock);
        sched_yield();
    }
    gate_open(self->gate);
    return NULL;
}

static int32_t
poll_until_cancelled(errand_job *job, void *state, errand_payload *out_payload)
{
    gated *self = state;

    (void)out_payload;
    if (++self->polls == 1)
        gate_wait(&self->gate);
    return errand_job_cancelled(job) && self->polls > 1 ? 3 : ERRAND_PENDING;
}
static const errand_job_type until_cancelled_job = {.struct_size =
                                                        sizeof(errand_job_type),
                                                    .name = "until cancelled",
                                                    .poll = poll_until_cancelled};

/* A detach with time left: the job that is being polled meanwhile gets its token at the end of that
 * poll and one poll more, and the owner waits no longer than for that. */
static void
a_job_that_goes_pending_while_its_lease_ends_is_asked_too(void **state)
{
    (void)state;
    scene world;
    gated holder;
    pthread_t thread;
    async_open(&world, 1);
    gated_init(&holder, 0);
    errand_lease *lease = world.leases[0];
    closer self = {ERRAND__CONTAINER(world.executor, errand__async, base),
                   &((errand__async_lease *)lease->impl)->roster, &holder.gate};
    scene_poll(&world, 0, &until_cancelled_job, &holder);
    gate_await_arrival(&holder.gate);
    assert_int_equal(pthread_create(&thread, NULL, open_when_closing, &self), 0);
    lease->executor->ops->detach(lease, errand_deadline_in(UINT64_C(30000000000)));
    assert_int_equal(pthread_join(thread, NULL), 0);
    scene_drain(&world, 0);
    assert_int_equal(world.seen[0].outcomes[ERRAND_FAILED], 1);
    assert_int_equal(holder.polls, 2);
    gate_fini(&holder.gate);
    scene_close(&world);
}

/* O58: a body that outlives its runtime ends undelivered; its executor goes with it, on its own
 * thread. */
static void
a_poll_that_outlives_runtime_and_executor_ends_alone(void **state)
{
    (void)state;
    scene world;
    gated holder;
    async_open(&world, 1);
    gated_init(&holder, 2);
    scene_poll(&world, 0, &gated_job, &holder);
    gate_await_arrival(&holder.gate);
    assert_int_equal(scene_end(&world, 0, 0).undeliverable, 1);
    errand_executor_abandon(&world.executor);
    assert_true(errand_testing_live_bytes() > world.live_bytes);
    gate_open(&holder.gate);
    scene_await_memory(&world);
    assert_int_equal(holder.polls, 1);
    gate_fini(&holder.gate);
}

static void
a_waker_outlives_job_runtime_and_executor(void **state)
{
    (void)state;
    scene world;
    scene_sleeper sleeper = {.wakes_wanted = 1};
    async_open(&world, 1);
    scene_poll(&world, 0, &scene_sleeper_job, &sleeper);
    await_count(&sleeper.polls, 1);
    while (scene_waker(&sleeper) == NULL)
        sched_yield();
    errand_waker_wake(scene_waker(&sleeper));
    scene_await(&world, 0, 1);
    errand_waker_wake(scene_waker(&sleeper));
    assert_true(scene_end(&world, 0, 0).clean);
    errand_executor_abandon(&world.executor);
    errand_waker_wake(scene_waker(&sleeper));
    assert_true(errand_testing_live_bytes() > world.live_bytes);
    scene_sleeper_end(&sleeper);
    scene_await_memory(&world); /* its thread may hold the lease a little longer */
}

/* ---- everything at once --------------------------------------------------------------------------------- */

enum { RACERS = 8 };
static scene_sleeper racers[RACERS];
static atomic_bool race_over;

static void *
wake_at_random(void *arg)
{
    unsigned at = (unsigned)(uintptr_t)arg;

    while (!atomic_load_explicit(&race_over, memory_order_acquire)) {
        errand_waker *waker = scene_waker(&racers[at++ % RACERS]);

        if (waker != NULL)
            errand_waker_wake(waker);
    }
    return NULL;
}

/* O4, O17: wakes, polls, cancels, panics and the end of the lease race; every job ends once. */
static void
wakes_that_race_every_kind_of_end_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < test_scaled(2000); round++) {
        scene world;
        pthread_t wakers[2];
        errand_identity identities[RACERS];

        async_open(&world, 1);
        atomic_store_explicit(&race_over, false, memory_order_release);
        for (int i = 0; i < RACERS; i++) {
            racers[i].wakes_wanted = (int)(round + (uint64_t)i * 3) % 7 - 1;
            racers[i].ends_when_cancelled = i % 3 == 0;
            atomic_store_explicit(&racers[i].starts, 0, memory_order_relaxed);
            atomic_store_explicit(&racers[i].polls, 0, memory_order_relaxed);
            atomic_store_explicit(&racers[i].drops, 0, memory_order_relaxed);
        }
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&wakers[i], NULL, wake_at_random,
                                            (void *)(uintptr_t)(i * 3)),
                             0);
        for (int i = 0; i < RACERS; i++)
            identities[i] = scene_poll(&world, 0, &scene_sleeper_job, &racers[i]);
        for (int i = 0; i < RACERS; i += 2)
            scene_cancel(&world, 0, identities[i]);
        scene_drain(&world, 0);
        scene_end(&world, 0, 0);
        errand_executor_abandon(&world.executor);
        for (int i = 0; i < RACERS; i++)
            await_count(&racers[i].drops, 1);
        atomic_store_explicit(&race_over, true, memory_order_release);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(pthread_join(wakers[i], NULL), 0);
        for (int i = 0; i < RACERS; i++) {
            assert_int_equal(scene_count(&racers[i].drops), 1);
            assert_true(scene_count(&racers[i].starts) <= 1);
            scene_sleeper_end(&racers[i]);
        }
        scene_await_memory(&world);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_panic_in_start_or_poll_is_one_completion),
        cmocka_unit_test(a_job_that_ends_its_thread_is_settled_and_the_thread_replaced),
        cmocka_unit_test(refusals_change_nothing),
        cmocka_unit_test(a_lease_ends_its_pending_jobs_at_the_deadline),
        cmocka_unit_test(a_job_that_goes_pending_while_its_lease_ends_is_asked_too),
        cmocka_unit_test(a_poll_that_outlives_runtime_and_executor_ends_alone),
        cmocka_unit_test(a_waker_outlives_job_runtime_and_executor),
        cmocka_unit_test(wakes_that_race_every_kind_of_end_lose_nothing),
    };
    return test_group("workers/async_end", tests, NULL, NULL);
}
