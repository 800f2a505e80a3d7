/* SPDX-License-Identifier: MIT */
/* Goal: a shutdown that meets a submit or a worker at any of their steps ends by its deadline, and the
 * operation is drained or counted undeliverable, once, with its state dropped once (O1, O18, O31,
 * O58, C-B7, C-B8).
 * Method: pause points hold the worker at each step while the owner shuts down with no time left. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "errand/executor.h"
#include "errand/testing.h"
#include "gate.h"
#include "stress.h"

typedef struct world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    int64_t bytes;
    atomic_uint ran, dropped, stopped; /* stopped: threads of the pool that ended */
    unsigned heard;
    errand_report report;
} world;

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    world *self = state;

    atomic_fetch_add_explicit(&self->ran, 1, memory_order_relaxed);
    if (errand_payload_alloc(job, 100, out_payload) == NULL)
        return 1;
    errand_job_message(job, "text");
    return 0;
}
static void
drop(void *state)
{
    atomic_fetch_add_explicit(&((world *)state)->dropped, 1, memory_order_release);
}
static const errand_job_type job_type = {
    .struct_size = sizeof(errand_job_type), .name = "job", .run = run, .drop = drop};

static void
count_stop(void *arg, uint32_t worker)
{
    (void)worker;
    atomic_fetch_add_explicit(&((world *)arg)->stopped, 1, memory_order_release);
}

static void
world_open(world *self)
{
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = 1,
                                     .workers_max = 1,
                                     .held_on_stop = count_stop,
                                     .held_arg = self};

    memset(self, 0, sizeof *self);
    self->bytes = errand_testing_live_bytes();
    assert_int_equal(errand_blocking_create(&config, &self->executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, self->executor, 0, &self->lease),
                     ERRAND_OK);
}

static errand_spec
spec_of(world *self)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &job_type;
    spec.state = self;
    return spec;
}

static void
start(world *self)
{
    errand_spec spec = spec_of(self);

    assert_int_equal(errand_start(self->lease, &spec, NULL, NULL), ERRAND_OK);
}

static void
shut(world *self, uint64_t deadline_ns)
{
    assert_int_equal(errand_runtime_shutdown(&self->runtime, deadline_ns,
                                             ERRAND_SHUTDOWN_QUIET, &self->report),
                     ERRAND_OK);
}

static void
world_close(world *self, unsigned operations)
{
    const errand_snapshot *sums = &self->report.accounts;

    assert_int_equal(sums->accepted, operations);
    assert_int_equal(sums->drained + sums->undeliverable, operations);
    assert_int_equal(self->report.undeliverable, sums->undeliverable);
    assert_int_equal(self->report.clean, sums->undeliverable == 0);
    errand_executor_abandon(&self->executor);
    stress_await(&self->dropped, operations);
    stress_await(&self->stopped, 1);
    while (errand_testing_live_bytes() != self->bytes) /* a thread of the pool is last */
        sched_yield();
    assert_int_equal(atomic_load_explicit(&self->dropped, memory_order_relaxed),
                     operations);
}

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

/* ---- steps of a submit ----------------------------------------------------------------------------------- */

typedef struct look { /* what a snapshot of another thread shows at each step */
    world *world;
    unsigned seen;
    uint64_t accepted[4];
} look;

static void *
take_snapshot(void *arg)
{
    look *self = arg;
    errand_snapshot snapshot;
    errand_runtime *runtime = self->world->runtime;

    if (errand_runtime_snapshot(runtime, &snapshot) == ERRAND_OK &&
        snapshot.accepted == snapshot.queued + snapshot.running + snapshot.undrained +
                                 snapshot.drained + snapshot.undeliverable)
        self->accepted[self->seen] = snapshot.accepted;
    /* Nobody but the owner may end it meanwhile. */
    if (errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL) !=
        ERRAND_ETHREAD)
        self->accepted[self->seen] = 99;
    return NULL;
}

static void
look_from_outside(void *arg, const char *place)
{
    static const char *const places[] = {"submit-checked", "submit-counted",
                                         "submit-armed", "submit-handed"};
    look *self = arg;
    pthread_t thread;

    if (strncmp(place, "submit-", 7) != 0 || /* a worker's place */
        self->seen == 4 || strcmp(place, places[self->seen]) != 0 ||
        pthread_create(&thread, NULL, take_snapshot, self) != 0)
        return;
    pthread_join(thread, NULL);
    self->seen++;
}

static void
operation_is_counted_before_it_is_armed(void **state)
{
    /* O18 */
    static world self;
    look looks = {.world = &self};

    (void)state;
    world_open(&self);
    errand_testing_pause(look_from_outside, &looks);
    start(&self);
    errand_testing_pause(NULL, NULL);
    assert_int_equal(looks.seen, 4);
    assert_int_equal(looks.accepted[0], 0);
    for (int i = 1; i < 4; i++)
        assert_int_equal(looks.accepted[i], 1);
    shut(&self, errand_deadline_in(UINT64_C(20000000000)));
    assert_true(self.report.clean);
    world_close(&self, 1);
}

typedef struct poster { /* another thread asks to cancel at one step of the submit */
    const char *place;
    errand_inbox *inbox;
    errand_identity identity;
    bool done;
} poster;

static void *
post_cancel(void *arg)
{
    poster *self = arg;

    self->done = errand_post_cancel(self->inbox, &self->identity) == ERRAND_OK;
    return NULL;
}

static void
post_from_outside(void *arg, const char *place)
{
    poster *self = arg;
    pthread_t thread;

    if (strncmp(place, "submit-", 7) != 0 || /* a worker's place */
        strcmp(place, self->place) != 0 || self->done ||
        pthread_create(&thread, NULL, post_cancel, self) != 0)
        return;
    pthread_join(thread, NULL);
}

static void
posted_cancel_meets_a_submit_at_each_of_its_steps(void **state)
{
    /* O18, O44 */
    static const char *const places[] = {"submit-checked", "submit-counted",
                                         "submit-armed", "submit-handed"};
    static world self;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        poster other = {.place = places[i]};
        errand_submission submission;
        errand_prepared prepared;
        errand_binding binding;
        errand_wait wait;
        errand_spec spec;

        world_open(&self);
        spec = spec_of(&self);
        assert_int_equal(errand_inbox_open(self.runtime, &other.inbox), ERRAND_OK);
        assert_int_equal(errand_prepare(self.runtime, &spec, &prepared), ERRAND_OK);
        assert_int_equal(errand_issue(self.runtime, 1, NULL, &other.identity), ERRAND_OK);
        assert_int_equal(errand_bind(self.runtime, &other.identity, &prepared, &binding),
                         ERRAND_OK);
        assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
        errand_wait_abandon(&wait);
        errand_testing_pause(post_from_outside, &other);
        assert_int_equal(errand_submit(self.lease, &submission), ERRAND_OK);
        errand_testing_pause(NULL, NULL);
        assert_true(other.done);
        shut(&self, errand_deadline_in(UINT64_C(20000000000)));
        assert_true(self.report.clean);
        errand_inbox_abandon(&other.inbox);
        world_close(&self, 1);
    }
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
        cmocka_unit_test(operation_is_counted_before_it_is_armed),
        cmocka_unit_test(posted_cancel_meets_a_submit_at_each_of_its_steps),
        cmocka_unit_test(stepped_wall_clock_moves_no_deadline),
        cmocka_unit_test(runtime_attached_after_anothers_end_still_works),
    };

    return test_group("stress/shutdown", tests, NULL, NULL);
}
