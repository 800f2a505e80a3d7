/* SPDX-License-Identifier: MIT */
/* Goal: only the job goes to a worker, and what comes back is put before anything of it is
 * destroyed, on the owner's thread (O13, O23, O31).
 * Method: a pool with one thread; every call notes its thread; gates and pause points stop the
 * worker where the test wants to look. */
#include <stdlib.h>
#include <string.h>
#include "counted.h"
#include "gate.h"

static const counted_place owners[] = {
    AT_DECODE, AT_DECODER_DROP,      AT_CANCEL,     AT_REAP,         AT_HOOK_DROP,
    AT_RESUME, AT_CONTINUATION_DROP, AT_STATE_DROP, AT_PAYLOAD_DROP, AT_VALUE_DROP};

static void
check_threads(const counted *self)
{
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++)
        if (self->count[owners[i]] > 0)
            counted_check_here(self, owners[i]);
    if (self->count[AT_BODY] > 0)
        assert_false(pthread_equal(self->thread[AT_BODY], pthread_self()));
    if (self->count[AT_DEFER] > 0)
        assert_true(pthread_equal(self->thread[AT_DEFER], self->thread[AT_BODY]));
}

static void
run_until_ended(test_world *world, counted *self)
{
    errand_turn turn;

    while (self->count[AT_STATE_DROP] == 0 ||
           self->count[AT_RESUME] + self->count[AT_CONTINUATION_DROP] == 0) {
        assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
        if (turn.kind == ERRAND_TURN_IDLE)
            assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
    }
}

static void
wait_for_its_token(counted *self, counted_place place)
{
    if (place != AT_BODY)
        return;
    gate_wait(self->arg);
    while (!errand_job_cancelled(self->running))
        continue;
}

static void
only_the_job_goes_to_a_worker(void **state)
{
    /* O13, O23: every end. */
    test_world *world = *state;
    counted works[] = {{.defers = true},
                       {.answer = 7, .defers = true},
                       {.panics = true, .defers = true},
                       {.on = wait_for_its_token, .cancel_answer = ERRAND_HOOK_PENDING}};
    test_gate gate;

    gate_init(&gate, "body");
    gate_open(&gate);
    world_pool(world, 1);
    for (int i = 0; i < 4; i++) {
        works[i].arg = &gate;
        counted_submit(world, &works[i]);
        if (i == 3) {
            gate_await_arrival(&gate);
            assert_int_equal(counted_cancel(&works[i]), ERRAND_CANCEL_RUNNING);
        }
        run_until_ended(world, &works[i]);
        counted_drive(world);
        check_threads(&works[i]);
        counted_check_ended(&works[i]);
        assert_int_equal(works[i].count[AT_DEFER], i < 3);
    }
    gate_fini(&gate);
}

/* ---- the order at the end ---------------------------------------------------------------------------- */

static pthread_t owner; /* set before there is any other thread */

typedef struct watcher {
    counted *work;
    test_gate gate;
    unsigned settles, puts, early; /* early: something was destroyed before the put */
} watcher;

static unsigned
count_destroyed(const counted *work)
{
    unsigned destroyed = 0;

    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++)
        destroyed += work->count[owners[i]];
    return destroyed;
}

/* The worker is in here before its put only: afterwards the owner writes what this reads. */
static void
watch_the_worker(void *arg, const char *place)
{
    watcher *self = arg;
    bool settles = strcmp(place, "settle") == 0;

    if (pthread_equal(pthread_self(), owner) || !(settles || strcmp(place, "put") == 0))
        return;
    self->early += count_destroyed(self->work) != 0;
    self->early += self->work->count[AT_DEFER] != 1;
    self->settles += settles;
    self->puts += !settles;
    if (settles)
        gate_wait(&self->gate);
}

static void
a_completion_is_put_before_anything_is_destroyed(void **state)
{
    /* O23: also what a failing or panicking body leaves; deferred cleanups are over by then. */
    test_world *world = *state;

    world_pool(world, 1);
    for (int i = 0; i < 3; i++) {
        counted work = {.answer = i == 1 ? 5 : 0, .panics = i == 2, .defers = true};
        watcher self = {.work = &work};

        gate_init(&self.gate, "settle");
        errand_testing_pause(watch_the_worker, &self);
        counted_submit(world, &work);
        gate_await_arrival(&self.gate);
        assert_int_equal(world_drain(world, 10), 0); /* nothing is out yet */
        assert_int_equal(work.count[AT_STATE_DROP] + work.count[AT_PAYLOAD_DROP], 0);
        gate_open(&self.gate);
        run_until_ended(world, &work);
        errand_testing_pause(NULL, NULL);
        assert_int_equal(self.settles, 1);
        assert_int_equal(self.puts, 1);
        assert_int_equal(self.early, 0);
        counted_drive(world);
        counted_check_ended(&work);
        check_threads(&work);
        gate_fini(&self.gate);
    }
}

static void
note_order(void *arg, errand_completion *completion)
{
    const counted *self = completion->wait;

    world_handler(arg, completion);
    assert_int_equal(self->count[AT_STATE_DROP], 0);
    assert_int_equal(self->count[AT_PAYLOAD_DROP], 0);
    assert_int_equal(self->count[AT_HOOK_DROP], 0);
}

static void
parts_are_dropped_after_the_handler_inside_the_same_drain(void **state)
{
    /* O23, C-H1 */
    test_world *world = *state;
    counted work = {.no_continuation = true};
    size_t count = 0;

    world_pool(world, 1);
    counted_submit(world, &work);
    while (count == 0) {
        assert_int_equal(errand_drain(world->runtime, 1, note_order, world, &count),
                         ERRAND_OK);
        if (count == 0)
            assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
    }
    counted_check_ended(&work);
    check_threads(&work);
}

/* ---- memory that is gone when it was dropped --------------------------------------------------------- */

typedef struct brief { /* a state that is freed by its drop */
    uint64_t bytes[32];
} brief;

static int32_t
use_state(errand_job *job, void *state, errand_payload *out_payload)
{
    brief *self = state;

    (void)job;
    (void)out_payload;
    self->bytes[0]++;
    return self->bytes[31] == 0 ? 0 : 1;
}

static void
free_state(void *state)
{
    memset(state, 0xee, sizeof(brief));
    free(state);
}

static const errand_job_type brief_type = {.struct_size = sizeof brief_type,
                                           .name = "brief",
                                           .run = use_state,
                                           .drop = free_state};

static void
a_worker_touches_nothing_after_its_put(void **state)
{
    /* O23: sanitizers look; the slots are few, so that each is used again at once. */
    test_world *world = *state;
    uint64_t left = test_scaled(100000);
    unsigned failed = 0;

    world->config.operations_max = 8;
    world_end(world);
    world_begin(world, &world->config, 8);
    world_pool(world, 2);
    while (left > 0 || world->news_count > 0) {
        errand_spec spec = ERRAND_SPEC_INIT;
        errand_status status = ERRAND_EFULL;

        world->news_count = 0;
        spec.kind = 1;
        spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
        spec.held_job = &brief_type;
        spec.state = left > 0 ? calloc(1, sizeof(brief)) : NULL;
        if (left > 0) {
            status = errand_start(world->lease, &spec, NULL, NULL);
            if (status == ERRAND_OK)
                left--;
            else
                free(spec.state);
        }
        if (status != ERRAND_OK && world_drain(world, 8) == 0 && left > 0)
            assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
        for (size_t i = 0; i < world->news_count; i++)
            failed += world->news[i].outcome != ERRAND_COMPLETED;
    }
    assert_int_equal(failed, 0);
}

/* ---- closed ------------------------------------------------------------------------------------------- */

typedef struct late_one {
    test_gate body, dropped;
} late_one;

static void
come_late(counted *self, counted_place place)
{
    late_one *gates = self->arg;

    if (place == AT_BODY)
        gate_wait(&gates->body);
    if (place == AT_STATE_DROP)
        gate_wait(&gates->dropped);
}

static void
a_put_into_a_closed_inbox_drops_its_payload_once(void **state)
{
    /* O31, O23, O1: on the thread that settled it; what was put before the close is drained. */
    test_world *world = *state;
    static late_one gates; /* the worker may be slow to leave its drop */
    static counted late;
    counted before = {.answer = 0};

    late = (counted){.on = come_late, .arg = &gates};
    gate_init(&gates.body, "body");
    gate_init(&gates.dropped, "drop");
    world_pool(world, 1);
    counted_submit(world, &before);
    run_until_ended(world, &before);
    counted_submit(world, &late);
    gate_await_arrival(&gates.body);
    world->ended = true;
    assert_int_equal(errand_runtime_shutdown(&world->runtime, 0, ERRAND_SHUTDOWN_QUIET,
                                             &world->report),
                     ERRAND_OK);
    errand_executor_abandon(&world->executor);
    errand_executor_abandon(&world->pool);
    assert_int_equal(world->report.undeliverable, 1);
    assert_int_equal(world->report.accounts.undeliverable, 1);
    assert_int_equal(world->report.accounts.accepted, 2);
    assert_int_equal(world->report.accounts.drained, 1);
    assert_int_equal(world->report.running, 1);
    assert_false(world->report.clean);
    /* The owner's parts went with the runtime, the job's stay with the body. */
    assert_int_equal(late.count[AT_DECODER_DROP], 1);
    assert_int_equal(late.count[AT_HOOK_DROP], 1);
    assert_int_equal(late.count[AT_CONTINUATION_DROP], 1);
    assert_int_equal(late.count[AT_STATE_DROP], 0);
    gate_open(&gates.body);
    gate_await_arrival(&gates.dropped);
    gate_open(&gates.dropped);
    counted_check_ended(&late);
    assert_true(pthread_equal(late.thread[AT_STATE_DROP], late.thread[AT_BODY]));
    assert_true(pthread_equal(late.thread[AT_PAYLOAD_DROP], late.thread[AT_BODY]));
    assert_true(late.order[AT_PAYLOAD_DROP] < late.order[AT_STATE_DROP]);
    gate_fini(&gates.body);
}

static void
what_was_put_before_the_close_is_drained(void **state)
{
    /* O31: buffered anywhere: taken by a drain that was cut, and still in the list. */
    test_world *world = *state;
    counted works[6];

    for (int i = 0; i < 6; i++) {
        works[i] = (counted){.answer = 0};
        counted_submit(world, &works[i]);
    }
    world_step(world, 3);
    assert_int_equal(world_drain(world, 1), 1); /* two are pending now */
    world_step(world, 1);
    world_end(world);
    assert_int_equal(world->report.accounts.drained, 6);
    assert_int_equal(world->report.accounts.completed, 4);
    assert_int_equal(world->report.accounts.cancelled, 2);
    assert_int_equal(world->report.undeliverable, 0);
    for (int i = 0; i < 6; i++)
        counted_check_ended(&works[i]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(only_the_job_goes_to_a_worker),
        WITH_WORLD(a_completion_is_put_before_anything_is_destroyed),
        WITH_WORLD(parts_are_dropped_after_the_handler_inside_the_same_drain),
        WITH_WORLD(a_worker_touches_nothing_after_its_put),
        WITH_WORLD(a_put_into_a_closed_inbox_drops_its_payload_once),
        WITH_WORLD(what_was_put_before_the_close_is_drained),
    };
    owner = pthread_self();
    return test_group("runtime/handover", tests, NULL, NULL);
}
