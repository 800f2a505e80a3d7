/* SPDX-License-Identifier: MIT */
/* Goal: jobs of one domain run one at a time in the order of submission, in every order, and those
 * of others do not wait for them.
 * Method: a pool of four threads; bodies that note who runs, and gates. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "errand/order.h"
#include "gate.h"
#include "runtime/runtime.h"
#include "world.h"

enum { MANY = 60, DOMAINS = 3 };
static const errand_order orders[] = {ERRAND_ORDER_ARRIVAL, ERRAND_ORDER_INLINE,
                                      ERRAND_ORDER_PACED};

static void
restart(test_world *in, errand_order order, uint64_t seed)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = order, .seed = seed};

    world_end(in);
    in->news_count = 0;
    world_begin(in, &config, 0);
    world_pool(in, 4);
}

static errand_identity
start(test_world *in, world_job *job, uint64_t domain)
{
    errand_spec spec = world_spec(job);
    errand_identity identity;

    job->world = in;
    spec.domain = domain;
    assert_int_equal(errand_start(in->lease, &spec, job, &identity), ERRAND_OK);
    return identity;
}

static atomic_uint inside[DOMAINS + 1], overlaps, ran[DOMAINS + 1], places[MANY];

static void
note_run(errand_job *job, world_job *self)
{
    size_t number = (size_t)(uintptr_t)self->arg, domain = number % DOMAINS + 1;

    (void)job;
    if (atomic_fetch_add_explicit(&inside[domain], 1, memory_order_relaxed) != 0)
        atomic_fetch_add_explicit(&overlaps, 1, memory_order_relaxed);
    atomic_store_explicit(
        &places[number], atomic_fetch_add_explicit(&ran[domain], 1, memory_order_relaxed),
        memory_order_relaxed);
    for (size_t i = 0; i < number % 7; i++)
        sched_yield();
    atomic_fetch_sub_explicit(&inside[domain], 1, memory_order_relaxed);
}

/* D142, I12 */
static void
jobs_of_a_domain_run_as_submitted_and_never_overlap(void **state)
{
    static world_job jobs[MANY];
    test_world *in = *state;

    for (unsigned i = 0; i < 3; i++) {
        memset(ran, 0, sizeof ran);
        atomic_store_explicit(&overlaps, 0, memory_order_relaxed);
        restart(in, orders[i], 5);
        for (size_t k = 0; k < MANY; k++) {
            jobs[k] = (world_job){.inside = note_run, .arg = (void *)k};
            start(in, &jobs[k], k % DOMAINS + 1);
        }
        world_await(in, MANY);
        assert_int_equal(atomic_load_explicit(&overlaps, memory_order_relaxed), 0);
        for (size_t k = 0; k < MANY; k++)
            assert_int_equal(atomic_load_explicit(&places[k], memory_order_relaxed),
                             k / DOMAINS);
        for (size_t k = 0; i != 0 && k < MANY;
             k++) { /* told as they ran, and virtually so */
            const world_job *job = in->news[k].wait;
            size_t number = (size_t)(uintptr_t)job->arg, before = k;

            while (before-- > 0) {
                const world_job *other = in->news[before].wait;

                if ((size_t)(uintptr_t)other->arg % DOMAINS != number % DOMAINS)
                    continue;
                assert_true((size_t)(uintptr_t)other->arg < number);
                assert_true(in->news[before].t_end <= in->news[k].t_start);
                break;
            }
        }
        assert_int_equal(in->runtime->registrar.domain_count, 0);
        world_end(in);
    }
}

static test_gate gate;

static void
wait_at_gate(errand_job *job, world_job *self)
{
    (void)job;
    (void)self;
    gate_wait(&gate);
}

/* D142: the second waits although there are workers, another domain's does not. */
static void
domains_do_not_wait_for_each_other(void **state)
{
    test_world *in = *state;
    world_job jobs[3] = {{.inside = wait_at_gate}, {.ran = 0}, {.ran = 0}};

    gate_init(&gate, "first");
    restart(in, ERRAND_ORDER_ARRIVAL, 0);
    start(in, &jobs[0], 8);
    start(in, &jobs[1], 8);
    start(in, &jobs[2], 9);
    gate_await_arrival(&gate);
    world_await(in, 1);
    assert_int_equal(jobs[2].ran, 1);
    assert_int_equal(jobs[1].ran, 0);
    gate_open(&gate);
    world_await(in, 3);
    assert_int_equal(jobs[1].ran, 1);
    world_end(in);
    gate_fini(&gate);
}

/* D143: a cancelled one that runs holds up the next until it has ended; one that waits is
 * cancelled where it stands. */
static void
a_cancel_in_a_domain_lets_the_next_one_run_in_its_turn(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 3; i += 2) {
        world_job jobs[3] = {{.inside = wait_at_gate}, {.ran = 0}, {.ran = 0}};
        errand_identity names[3];
        errand_cancel_answer answer;

        gate_init(&gate, "first");
        restart(in, orders[i], 3);
        for (unsigned k = 0; k < 3; k++)
            names[k] = start(in, &jobs[k], 8);
        if (i == 2)
            assert_int_equal(
                errand_park(in->runtime,
                            errand__registrar_find(&in->runtime->registrar, &names[0])
                                ->extra->begin),
                ERRAND_OK);
        gate_await_arrival(&gate);
        assert_int_equal(
            errand_cancel(in->runtime, &names[0], ERRAND_REASON_EXPLICIT, &answer),
            ERRAND_OK);
        assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
        assert_int_equal(
            errand_cancel(in->runtime, &names[1], ERRAND_REASON_EXPLICIT, &answer),
            ERRAND_OK);
        assert_int_equal(answer, ERRAND_CANCEL_CANCELLED);
        gate_open(&gate);
        world_await(in, 3);
        assert_int_equal(jobs[1].ran, 0);
        assert_int_equal(jobs[2].ran, 1);
        world_end(in);
        assert_true(in->report.clean);
        gate_fini(&gate);
    }
}

/* O45: a body that was written off is still there. */
static void
a_held_body_keeps_its_domain(void **state)
{
    test_world *in = *state;
    world_job jobs[2] = {{.inside = wait_at_gate}, {.ran = 0}};
    errand_spec spec;

    gate_init(&gate, "held");
    restart(in, ERRAND_ORDER_ARRIVAL, 0);
    spec = world_spec(&jobs[0]);
    jobs[0].world = in;
    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = 1;
    spec.deadline_ns = 1;
    spec.domain = 8;
    assert_int_equal(errand_start(in->lease, &spec, &jobs[0], NULL), ERRAND_OK);
    gate_await_arrival(&gate);
    start(in, &jobs[1], 8);
    world_await(in, 1);
    assert_int_equal(world_last(in)->flags & ERRAND_HELD, ERRAND_HELD);
    assert_int_equal(world_drain(in, 9), 0);
    assert_int_equal(jobs[1].ran, 0);
    gate_open(&gate);
    world_await(in, 2);
    assert_int_equal(jobs[1].ran, 1);
    world_end(in);
    gate_fini(&gate);
}

/* What waits for its turn when its runtime ends never runs, and nothing of it is left. */
static void
what_waits_in_a_domain_at_the_end_is_cancelled(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 3; i++) {
        world_job jobs[20];

        restart(in, orders[i], 3);
        for (unsigned k = 0; k < 20; k++) {
            jobs[k] = (world_job){.ran = 0};
            start(in, &jobs[k], 1 + k % 2);
        }
        world_end(in);
        assert_true(in->report.clean);
        assert_int_equal(in->report.accounts.drained, 20);
        for (unsigned k = 0; k < 20; k++)
            assert_int_equal(jobs[k].dropped, 1);
    }
}

/* Nothing is allocated per operation once warm. */
static void
domains_are_warm_after_the_first_round(void **state)
{
    test_world *in = *state;
    static world_job jobs[64];

    for (unsigned i = 0; i < 3; i++) {
        restart(in, orders[i], 3);
        for (unsigned round = 0; round < 4; round++) {
            if (round == 1)
                (void)errand_testing_fail_allocation(0);
            for (unsigned k = 0; k < 64; k++) {
                jobs[k] = (world_job){.ran = 0};
                start(in, &jobs[k], round * 64 + k / 2 + 1);
            }
            world_await(in, (round + 1) * 64);
        }
        assert_int_equal(errand_testing_fail_allocation(0), 0);
        world_end(in);
    }
}

int
main(void)
{
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(jobs_of_a_domain_run_as_submitted_and_never_overlap),
        WITH_WORLD(domains_do_not_wait_for_each_other),
        WITH_WORLD(a_cancel_in_a_domain_lets_the_next_one_run_in_its_turn),
        WITH_WORLD(a_held_body_keeps_its_domain),
        WITH_WORLD(what_waits_in_a_domain_at_the_end_is_cancelled),
        WITH_WORLD(domains_are_warm_after_the_first_round),
    };
    return test_group("runtime/domains", tests, NULL, NULL);
}
