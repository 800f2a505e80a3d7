/* SPDX-License-Identifier: MIT */
/* Goal: what a real worker made in paced order comes whole, whatever else is there, and to nobody
 * once the runtime has ended.
 * Method: pools of 1 to 4 threads; bodies that wait for gates, or for how many have ended. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "gate.h"
#include "seeded.h"

/* ---- room ------------------------------------------------------------------------------------- */

static atomic_uint arrived;

static void
fail_with_a_text(errand_job *job, world_job *self)
{
    errand_job_message(job, "number %d", (int)(intptr_t)self->arg);
    atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
}

enum { OUT = 300, BEFORE_THE_FIRST = 16 };

static void
fail_after_others(errand_job *job, world_job *self)
{
    while (atomic_load_explicit(&arrived, memory_order_relaxed) < BEFORE_THE_FIRST)
        sched_yield();
    fail_with_a_text(job, self);
}

/* I10: the first due one is put, with its text, although many others have come before and took
 * what there is for messages. */
static void
a_due_completion_is_put_whatever_else_has_come(void **state)
{
    static world_job jobs[OUT];
    test_world *in = *state;
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_PACED,
                                    .operations_max = OUT,
                                    .messages = 8,
                                    .seed = 2};
    const errand__extra *extras[OUT];
    unsigned first = 0, begun = 0;
    char text[32];

    world_end(in);
    in->news_count = 0;
    world_begin(in, &config, OUT);
    world_pool(in, 2);
    for (unsigned i = 0; i < OUT; i++) {
        errand_identity name;

        jobs[i] = (world_job){
            .inside = fail_with_a_text, .answer = 7, .arg = (void *)(intptr_t)i};
        name = world_start(in, &jobs[i]);
        extras[i] = extra_of(in, &name);
        if (extras[i]->due < extras[first]->due)
            first = i;
    }
    for (unsigned i = 0; i < OUT; i++)
        begun += extras[i]->begin < extras[first]->due;
    assert_true(begun > 2 * BEFORE_THE_FIRST);
    jobs[first].inside = fail_after_others;
    atomic_store_explicit(&arrived, 0, memory_order_relaxed);
    world_await(in, OUT);
    for (unsigned i = 0; i < OUT; i++) {
        const world_job *job = in->news[i].wait;

        snprintf(text, sizeof text, "number %d", (int)(job - jobs));
        assert_string_equal(in->news[i].message, text);
        assert_int_equal(in->news[i].flags, 0);
        assert_true(i == 0 || in->news[i - 1].t_end <= in->news[i].t_end);
    }
    world_end(in);
}

/* ---- what workers write ---------------------------------------------------------------------- */

enum { WRITERS = 64, WRITTEN = 2048 };

static unsigned char written[WRITERS][WRITTEN];
static const errand__record *looked_at;
static atomic_uint put_count, unwritten_count;

static void
write_much(errand_job *job, world_job *self)
{
    size_t me = (size_t)(uintptr_t)self->arg;

    (void)job;
    memset(written[me], (int)me + 1, WRITTEN);
}

/* On the worker's thread: everything that the owner will read stands there before the put. */
static void
look_before_the_put(void *arg, const char *place)
{
    (void)arg;
    if (strcmp(place, "put") != 0 || looked_at == NULL)
        return;
    atomic_fetch_add_explicit(&put_count, 1, memory_order_relaxed);
    if (looked_at->payload.data == NULL)
        atomic_fetch_add_explicit(&unwritten_count, 1, memory_order_relaxed);
}

/* I23: what a worker wrote, of its own and of the result, is there when the runtime hears.  Under
 * the thread sanitizer it is also there by rights. */
static void
what_a_worker_wrote_is_there_when_it_is_told(void **state)
{
    test_world *in = *state;
    static world_job jobs[WRITERS];
    errand_identity name;

    restart(in, ERRAND_ORDER_PACED, 3, 1);
    jobs[0] = (world_job){.inside = write_much, .give_payload = true, .arg = NULL};
    name = world_start(in, &jobs[0]);
    looked_at = errand__registrar_find(&in->runtime->registrar, &name);
    errand_testing_pause(look_before_the_put, NULL);
    world_await(in, 1);
    errand_testing_pause(NULL, NULL);
    looked_at = NULL;
    assert_int_equal(atomic_load_explicit(&put_count, memory_order_relaxed), 1);
    assert_int_equal(atomic_load_explicit(&unwritten_count, memory_order_relaxed), 0);
    restart(in, ERRAND_ORDER_PACED, 3, 4);
    memset(written, 0, sizeof written);
    for (size_t i = 0; i < WRITERS; i++) {
        jobs[i] = (world_job){
            .inside = write_much, .give_payload = i % 2 == 0, .arg = (void *)i};
        world_start(in, &jobs[i]);
    }
    for (size_t heard = 0; heard < WRITERS; heard++) {
        size_t me;

        while (world_drain(in, 1) == 0)
            assert_int_equal(errand_park(in->runtime, NEVER), ERRAND_OK);
        me = (size_t)((const world_job *)in->news[heard].wait - jobs);
        for (size_t k = 0; k < WRITTEN; k++)
            assert_int_equal(written[me][k], me + 1);
        assert_int_equal(in->news[heard].payload_size > 0, me % 2 == 0);
    }
    world_end(in);
}

/* ---- ends -------------------------------------------------------------------------------------- */

static test_gate gate;

static void
wait_at_gate(errand_job *job, world_job *self)
{
    (void)job;
    gate_wait(self->arg);
}

/* Starts two on one worker: the first is at its gate, the second waits behind it. */
static void
start_one_behind_the_other(test_world *in, world_job *running, world_job *queued)
{
    for (uint64_t seed = 4;; seed++) {
        const errand__record *first, *second;
        errand_identity name;
        uint64_t begin;

        gate_init(&gate, "outlives");
        *running =
            (world_job){.inside = wait_at_gate, .arg = &gate, .give_payload = true};
        *queued = (world_job){.ran = 0};
        restart(in, ERRAND_ORDER_PACED, seed, 1);
        name = world_start(in, running);
        first = errand__registrar_find(&in->runtime->registrar, &name);
        assert_int_equal(errand_park(in->runtime, first->extra->begin), ERRAND_OK);
        gate_await_arrival(&gate);
        name = world_start(in, queued);
        second = errand__registrar_find(&in->runtime->registrar, &name);
        begin = second->extra->begin;
        if (begin < first->extra->due) {
            assert_int_equal(errand_park(in->runtime, begin), ERRAND_OK);
            assert_int_equal(second->owner_flags & ERRAND__OWN_HANDED,
                             ERRAND__OWN_HANDED);
            return;
        }
        gate_open(&gate);
        world_end(in);
        gate_fini(&gate);
    }
}

/* I15, I21: a job that runs when the runtime ends comes back to nobody, and touches nothing of it;
 * one that was with the executor, but queued, never runs. */
static void
a_result_after_the_end_is_dropped(void **state)
{
    test_world *in = *state;
    world_job running, queued;

    start_one_behind_the_other(in, &running, &queued);
    in->ended = true;
    assert_int_equal(errand_runtime_shutdown(&in->runtime, errand_deadline_in(0),
                                             ERRAND_SHUTDOWN_QUIET, &in->report),
                     ERRAND_OK);
    assert_int_equal(in->report.undeliverable, 1);
    assert_int_equal(queued.ran, 0);
    assert_int_equal(queued.dropped, 1);
    assert_int_equal(running.dropped, 0);
    gate_open(&gate);
    errand_executor_abandon(&in->executor);
    errand_executor_abandon(&in->pool);
    while (errand_testing_live_bytes() != in->bytes)
        sched_yield();
    assert_int_equal(running.dropped, 1);
    assert_int_equal(running.payload_dropped, 1);
    assert_int_equal(queued.ran, 0);
    gate_fini(&gate);
}

int
main(void)
{
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, actors_setup, world_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(a_due_completion_is_put_whatever_else_has_come),
        WITH_WORLD(what_a_worker_wrote_is_there_when_it_is_told),
        WITH_WORLD(a_result_after_the_end_is_dropped),
    };
    return test_group("runtime/paced_results", tests, NULL, NULL);
}
