/* SPDX-License-Identifier: MIT */
/* Goal: cancel and claim race for every operation, exactly one wins, and answer, body and completion
 * tell the same story (O17, O20, O22).
 * Method: one thread claims as soon as a dispatch is there, the owner cancels; whoever won is held
 * up longer in the next round, and the test fails if either side won under 5 % of them. */
#include <pthread.h>
#include <string.h>
#include "errand/executor.h"
#include "errand/testing.h"
#include "stress.h"

typedef struct arena { /* an executor with one thread, and what each round showed */
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_dispatch dispatch;
    uint64_t delay;   /* of the claiming thread */
    atomic_uint full; /* round whose dispatch is there */
    atomic_uint done; /* round that the thread has ended */
    bool ran;         /* what errand_dispatch_run answered */
    atomic_bool stop;
    atomic_uint entered; /* bodies */
    unsigned dropped, heard;
    errand_outcome outcome;
    race race;
} arena;

static int32_t
body(errand_job *job, void *state, errand_payload *out_payload)
{
    arena *self = state;

    (void)job;
    (void)out_payload;
    atomic_fetch_add_explicit(&self->entered, 1, memory_order_relaxed);
    return 0;
}
static void
drop(void *state)
{
    ((arena *)state)->dropped++;
}
static const errand_job_type job_type = {
    .struct_size = sizeof(errand_job_type), .name = "race", .run = body, .drop = drop};

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
    arena *self = lease;

    self->dispatch = dispatch;
    atomic_fetch_add_explicit(&self->full, 1, memory_order_release);
}
static void
host_detach(void *lease, uint64_t deadline_ns)
{
    (void)lease;
    (void)deadline_ns;
}
static const errand_executor_type host_type = {.struct_size =
                                                   sizeof(errand_executor_type),
                                               .name = "race",
                                               .attach = host_attach,
                                               .reserve = host_reserve,
                                               .submit = host_submit,
                                               .detach = host_detach};

static void *
claim_all(void *arg)
{
    arena *self = arg;
    unsigned round = 0, spins = 0;

    while (!atomic_load_explicit(&self->stop, memory_order_acquire)) {
        if (atomic_load_explicit(&self->full, memory_order_acquire) == round) {
            if (++spins % 256 == 0)
                sched_yield();
            continue;
        }
        round++;
        race_delay(self->delay);
        self->ran = errand_dispatch_run(self->dispatch);
        atomic_store_explicit(&self->done, round, memory_order_release);
    }
    return NULL;
}

static void
hear(void *arg, errand_completion *completion)
{
    arena *self = arg;

    self->heard++;
    self->outcome = completion->outcome;
}

static void
arena_open(arena *self, errand_executor *executor)
{
    errand_runtime_config config = {.struct_size = sizeof config, .operations_max = 64};

    self->executor = executor;
    self->race = (race){.first_name = "cancelled", .second_name = "claimed", .random = 1};
    assert_int_equal(errand_runtime_create(&config, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, executor, 0, &self->lease), ERRAND_OK);
}

static void
arena_close(arena *self, uint64_t rounds)
{
    errand_report report;

    assert_int_equal(errand_runtime_shutdown(&self->runtime,
                                             errand_deadline_in(UINT64_C(20000000000)),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_true(report.clean);
    assert_int_equal(report.accounts.accepted, rounds);
    assert_int_equal(report.accounts.drained, rounds);
    assert_int_equal(report.accounts.cancelled, self->race.first);
    assert_int_equal(report.accounts.completed, self->race.second);
    errand_executor_abandon(&self->executor);
}

/* Starts one and cancels it after the offset; true: the cancel won. */
static bool
start_and_cancel(arena *self)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_cancel_answer answer;
    errand_identity identity;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &job_type;
    spec.state = self;
    self->delay = race_second_delay(&self->race);
    assert_int_equal(errand_start(self->lease, &spec, NULL, &identity), ERRAND_OK);
    race_delay(race_first_delay(&self->race));
    assert_int_equal(
        errand_cancel(self->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_true(answer == ERRAND_CANCEL_CANCELLED || answer == ERRAND_CANCEL_RUNNING ||
                answer == ERRAND_CANCEL_SETTLED);
    return answer == ERRAND_CANCEL_CANCELLED;
}

/* One completion, which agrees with who won. */
static void
check_round(arena *self, unsigned round, bool cancelled, unsigned entered_before)
{
    unsigned entered = atomic_load_explicit(&self->entered, memory_order_acquire);

    assert_int_equal(self->heard, round);
    assert_int_equal(self->dropped, round);
    assert_int_equal(self->outcome, cancelled ? ERRAND_CANCELLED : ERRAND_COMPLETED);
    assert_int_equal(entered - entered_before, !cancelled);
    race_won(&self->race, cancelled);
}

static void
cancel_and_claim_race_and_one_of_them_wins(void **state)
{
    static arena self;
    uint64_t rounds = stress_rounds(2000000);
    errand_executor *executor;
    pthread_t claimer;
    size_t count;

    (void)state;
    assert_int_equal(errand_executor_create(&host_type, &self, &executor), ERRAND_OK);
    arena_open(&self, executor);
    assert_int_equal(pthread_create(&claimer, NULL, claim_all, &self), 0);
    for (unsigned round = 1; round <= rounds; round++) {
        unsigned entered = atomic_load_explicit(&self.entered, memory_order_relaxed);
        bool cancelled = start_and_cancel(&self);

        stress_await(&self.done, round);
        assert_int_equal(errand_drain(self.runtime, SIZE_MAX, hear, &self, &count),
                         ERRAND_OK);
        assert_int_equal(self.ran, !cancelled);
        check_round(&self, round, cancelled, entered);
    }
    atomic_store_explicit(&self.stop, true, memory_order_release);
    pthread_join(claimer, NULL);
    arena_close(&self, rounds);
    race_check(&self.race);
}

/* The same against the pool's own claiming: its groups, its sleeping workers. */
static void
cancel_and_a_pools_worker_race_and_one_of_them_wins(void **state)
{
    static arena self;
    uint64_t rounds = stress_rounds(200000);
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 2, .workers_max = 2};
    errand_executor *executor;
    size_t count;

    (void)state;
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    arena_open(&self, executor);
    for (unsigned round = 1; round <= rounds; round++) {
        unsigned entered = atomic_load_explicit(&self.entered, memory_order_relaxed);
        bool cancelled = start_and_cancel(&self);

        while (self.heard < round) {
            assert_int_equal(errand_drain(self.runtime, SIZE_MAX, hear, &self, &count),
                             ERRAND_OK);
            if (self.heard < round)
                assert_int_equal(errand_park(self.runtime, UINT64_MAX), ERRAND_OK);
        }
        check_round(&self, round, cancelled, entered);
    }
    arena_close(&self, rounds);
    race_check(&self.race);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel_and_claim_race_and_one_of_them_wins),
        cmocka_unit_test(cancel_and_a_pools_worker_race_and_one_of_them_wins),
    };

    return test_group("stress/claim_race", tests, NULL, NULL);
}
