/* SPDX-License-Identifier: MIT */
/* Goal: a shutdown that meets a submit or a worker at any of their steps ends by its deadline, and the
 * operation is drained or counted undeliverable, once, with its state dropped once (O1, O18, O31,
 * O58, C-B7, C-B8).
 * Method: pause points hold the worker at each step while the owner shuts down with no time left. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "gate.h"
#include "one_worker.h"

/* ---- steps of a worker ------------------------------------------------------------------------------- */

typedef struct stop { /* a place where the worker is held, once */
    const char *place;
    pthread_t owner;
    atomic_bool reached;
    test_gate gate;
} stop;

static void
hold_worker(void *arg, const char *place)
{
    stop *self = arg;

    if (strcmp(place, self->place) != 0 || pthread_equal(pthread_self(), self->owner) ||
        atomic_exchange_explicit(&self->reached, true, memory_order_acq_rel))
        return;
    gate_wait(&self->gate);
}

static void
stop_at(stop *self, const char *place)
{
    self->place = place;
    self->owner = pthread_self();
    atomic_store_explicit(&self->reached, false, memory_order_relaxed);
    gate_init(&self->gate, place);
    errand_testing_pause(hold_worker, self);
}

/* Each stop is used once: threads that end may be at its place a little longer. */
static stop *
stop_next(void)
{
    static stop all[16];
    static size_t used;

    assert_true(used < 16);
    return &all[used++];
}

static void
shutdown_meets_a_worker_at_each_of_its_steps(void **state)
{
    static const struct {
        const char *place;
        unsigned undeliverable; /* of an operation whose worker stands there */
        bool ran;
    } rows[] = {
        {"group-taken", 0, false}, {"claim", 0, false}, {"body-done", 1, true},
        {"settle", 1, true},       {"put", 1, true},
    };
    static world self;
    stop *held;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_open(&self);
        stop_at(held = stop_next(), rows[i].place);
        start(&self);
        gate_await_arrival(&held->gate);
        start(&self); /* and one that is queued behind it */
        shut(&self, 0);
        assert_int_equal(self.report.undeliverable, rows[i].undeliverable);
        gate_open(&held->gate);
        world_close(&self, 2);
        assert_int_equal(atomic_load_explicit(&self.ran, memory_order_acquire),
                         rows[i].ran);
        errand_testing_pause(NULL, NULL);
    }
}

static void *
open_gate(void *arg)
{
    gate_open(arg);
    return NULL;
}

/* The same with time: what a worker has begun is drained. */
static void
shutdown_with_time_waits_for_what_a_worker_has_begun(void **state)
{
    static const char *const places[] = {"body-done", "settle", "put"};
    static world self;
    stop *held;
    pthread_t opener;

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        world_open(&self);
        stop_at(held = stop_next(), places[i]);
        start(&self);
        gate_await_arrival(&held->gate);
        assert_int_equal(pthread_create(&opener, NULL, open_gate, &held->gate), 0);
        shut(&self, errand_deadline_in(UINT64_C(20000000000)));
        pthread_join(opener, NULL);
        assert_true(self.report.clean);
        assert_int_equal(self.report.accounts.completed, 1);
        world_close(&self, 1);
        errand_testing_pause(NULL, NULL);
    }
}

/* ---- deadlines ------------------------------------------------------------------------------------- */

static int32_t
run_until_asked(errand_job *job, void *state, errand_payload *out_payload)
{
    world *self = state;

    (void)out_payload;
    atomic_fetch_add_explicit(&self->ran, 1, memory_order_release);
    while (!errand_job_cancelled(job))
        sched_yield();
    return 0;
}
static test_gate body_gate;
static int32_t
run_at_gate(errand_job *job, void *state, errand_payload *out_payload)
{
    world *self = state;

    (void)job;
    (void)out_payload;
    atomic_fetch_add_explicit(&self->ran, 1, memory_order_release);
    gate_wait(&body_gate);
    return 0;
}
static const errand_job_type asked_type = {.struct_size = sizeof(errand_job_type),
                                           .name = "asked",
                                           .run = run_until_asked,
                                           .drop = drop};
static const errand_job_type gated_type = {.struct_size = sizeof(errand_job_type),
                                           .name = "gated",
                                           .run = run_at_gate,
                                           .drop = drop};

static void
deadlines_of_running_work_survive_the_start_of_a_shutdown(void **state)
{
    /* C-D3, O45 */
    static world self;

    (void)state;
    for (int quarantined = 0; quarantined < 2; quarantined++) {
        errand_spec spec;

        world_open(&self);
        gate_init(&body_gate, "body");
        spec = spec_of(&self);
        spec.held_job = quarantined ? &gated_type : &asked_type;
        spec.deadline_ns = quarantined ? 0 : UINT64_C(60000000000);
        spec.quarantine_ns = quarantined ? 1000000 : 0;
        if (quarantined)
            spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
        assert_int_equal(errand_start(self.lease, &spec, NULL, NULL), ERRAND_OK);
        stress_await(&self.ran, 1);
        start(&self); /* queued behind it */
        shut(&self, errand_deadline_in(UINT64_C(20000000000)));
        assert_int_equal(self.report.undeliverable, 0);
        assert_int_equal(self.report.held, quarantined); /* its body is at the gate */
        assert_int_equal(self.report.accounts.codes[ERRAND_CODE_DEADLINE], quarantined);
        assert_int_equal(self.report.accounts.completed, !quarantined);
        self.report.clean = true; /* but for what is held */
        gate_open(&body_gate);
        world_close(&self, 2);
    }
    gate_fini(&body_gate);
}

/* ---- clocks and neighbours ------------------------------------------------------------------------------------ */

static unsigned wall_reads;           /* of the wall clock, by a thread for which */
static _Thread_local bool is_stepped; /* it is an hour earlier now */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    int answer = __real_clock_gettime(clock, out);

    if (is_stepped && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        wall_reads++;
        out->tv_sec -= 3600;
    }
    return answer;
}

static void
stepped_wall_clock_moves_no_deadline(void **state)
{
    /* O57, C-D12, C-D1 */
    static world self;
    stop *held;
    uint64_t began;

    (void)state;
    world_open(&self);
    stop_at(held = stop_next(), "body-done");
    start(&self);
    gate_await_arrival(&held->gate);
    began = errand__clock_now();
    is_stepped = true;
    shut(&self, errand_deadline_in(100000000));
    is_stepped = false;
    assert_true(errand__clock_now() - began >= 100000000);
    assert_true(errand__clock_now() - began < UINT64_C(10000000000));
    assert_int_equal(wall_reads, 0);
    assert_int_equal(self.report.undeliverable, 1);
    gate_open(&held->gate);
    world_close(&self, 1);
    errand_testing_pause(NULL, NULL);
}

static void
runtime_attached_after_anothers_end_still_works(void **state)
{
    /* C-D13, O57 */
    static world first, second;

    (void)state;
    world_open(&first);
    start(&first);
    shut(&first, errand_deadline_in(UINT64_C(20000000000)));
    memset(&second, 0, sizeof second);
    assert_int_equal(errand_runtime_create(NULL, &second.runtime), ERRAND_OK);
    assert_int_equal(errand_attach(second.runtime, first.executor, 0, &second.lease),
                     ERRAND_OK);
    for (int i = 0; i < 100; i++)
        start(&second);
    shut(&second, errand_deadline_in(UINT64_C(20000000000)));
    assert_true(second.report.clean);
    assert_int_equal(second.report.accounts.drained, 100);
    world_close(&first, 1);
    assert_int_equal(atomic_load_explicit(&second.dropped, memory_order_relaxed), 100);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shutdown_meets_a_worker_at_each_of_its_steps),
        cmocka_unit_test(shutdown_with_time_waits_for_what_a_worker_has_begun),
        cmocka_unit_test(deadlines_of_running_work_survive_the_start_of_a_shutdown),
        cmocka_unit_test(stepped_wall_clock_moves_no_deadline),
        cmocka_unit_test(runtime_attached_after_anothers_end_still_works),
    };

    return test_group("stress/shutdown", tests, NULL, NULL);
}
