/* SPDX-License-Identifier: MIT */
/* Goal: a pool whose jobs panic one after the other, or whose bodies do not end, says so at the next
 * submit, and only as long as that is so (O10, O45, O78).
 * Method: panics and thread exits on a pool whose clock the test moves; bodies behind gates. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "errand/faults.h"
#include "errand/task.h"
#include "pool_rig.h"

#define SECOND UINT64_C(1000000000)

static void
begin(pool_rig *rig, const errand_faults_config *trouble)
{
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 1, .workers_max = 1};
    errand_executor *executor;

    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    if (trouble != NULL)
        assert_int_equal(errand_faults_set(executor, trouble), ERRAND_OK);
    rig_join(rig, executor, 0);
    rig->shares = false;
}

static errand_faults
faults(const pool_rig *rig)
{
    errand_faults out;

    assert_int_equal(errand_faults_read(rig->executor, &out), ERRAND_OK);
    return out;
}

static void
panic_now(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
    errand_panic("no");
}

static void
end_thread(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
    pthread_exit(NULL);
}

static void
run(pool_rig *rig, rig_job *job)
{
    rig_start(rig, job);
    rig_await(rig, rig->heard + 1);
}

static errand_status
try_again(pool_rig *rig, rig_job *job)
{
    errand_spec spec = rig_spec(job);

    return errand_start(rig->lease, &spec, NULL, NULL);
}

static void
breaker_opens_after_so_many_panics_and_closes_by_the_clock(void **state)
{
    errand_faults_config config = {.struct_size = sizeof config,
                                   .breaker_events = 3,
                                   .breaker_window_ns = 60 * SECOND,
                                   .breaker_open_ns = 90 * SECOND};
    rig_job bad = {.fn = panic_now}, leaver = {.fn = end_thread}, good = {.fn = NULL};
    pool_rig rig;

    (void)state;
    begin(&rig, &config);
    for (int round = 1; round <= 2; round++) {
        run(&rig, &bad);
        run(&rig, &leaver);
        run(&rig, &good); /* what ends well counts for nothing */
        assert_int_equal(faults(&rig).flags, 0);
        run(&rig, &bad);
        assert_int_equal(faults(&rig).flags, ERRAND_FAULTS_BREAKER_OPEN);
        assert_int_equal(try_again(&rig, &good), ERRAND_EBREAKER); /* of errand_submit */
        errand_testing_idle_clock(rig.executor, 80 * SECOND);
        assert_int_equal(try_again(&rig, &good), ERRAND_EBREAKER);
        errand_testing_idle_clock(rig.executor, 10 * SECOND);
        run(&rig, &good);
        assert_int_equal(faults(&rig).flags, 0);
        assert_int_equal(faults(&rig).breaker_opened, round);
        assert_int_equal(faults(&rig).panics, 3 * round);
    }
    assert_int_equal(good.dropped, 4); /* none by a refusal */
    rig_fini(&rig);
}

static void
breaker_stays_closed_where_panics_are_rare(void **state)
{
    errand_faults_config config = {.struct_size = sizeof config,
                                   .breaker_events = 3,
                                   .breaker_window_ns = 60 * SECOND};
    rig_job bad = {.fn = panic_now};
    pool_rig rig;

    (void)state;
    begin(&rig, &config);
    for (int i = 0; i < 10; i++) { /* two within each window */
        run(&rig, &bad);
        errand_testing_idle_clock(rig.executor, 30 * SECOND);
        assert_int_equal(faults(&rig).flags, 0);
    }
    run(&rig, &bad);
    run(&rig, &bad);
    assert_int_equal(faults(&rig).flags, ERRAND_FAULTS_BREAKER_OPEN);
    rig_fini(&rig);
}

static void
pool_that_was_told_nothing_takes_any_number_of_panics(void **state)
{
    rig_job bad = {.fn = panic_now};
    pool_rig rig;

    (void)state;
    begin(&rig, NULL);
    for (int i = 0; i < 300; i++)
        run(&rig, &bad);
    assert_int_equal(faults(&rig).panics, 300);
    assert_int_equal(faults(&rig).flags, 0);
    rig_fini(&rig);
}

/* ---- threads that are given up ------------------------------------------------------------------------ */

static test_gate gate;

static void
stay(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
    gate_wait(&gate);
}

static bool
all_are_back(void *arg)
{
    return faults(arg).abandoned == 0;
}

static void
pool_refuses_while_too_many_threads_are_given_up(void **state)
{
    errand_faults_config config = {.struct_size = sizeof config, .abandoned_max = 2};
    errand_runtime_config clock = {.struct_size = sizeof clock,
                                   .flags = ERRAND_RUNTIME_TEST_CLOCK};
    errand_blocking_config pool = {
        .struct_size = sizeof pool, .workers_min = 1, .workers_max = 1};
    rig_job stuck[2] = {{.fn = stay}, {.fn = stay}}, good = {.fn = NULL};
    pool_rig rig = {.unclean = true};
    errand_turn turn;

    (void)state;
    gate_init(&gate, "stuck");
    assert_int_equal(errand_runtime_create(&clock, &rig.runtime), ERRAND_OK);
    assert_int_equal(errand_blocking_create(&pool, &rig.executor), ERRAND_OK);
    assert_int_equal(errand_faults_set(rig.executor, &config), ERRAND_OK);
    assert_int_equal(errand_attach(rig.runtime, rig.executor, 0, &rig.lease), ERRAND_OK);
    for (uint32_t i = 0; i < 2; i++) {
        errand_spec spec = rig_spec(&stuck[i]);

        spec.deadline_ns = SECOND;
        spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
        spec.quarantine_ns = SECOND;
        rig_start_spec(&rig, &spec);
        gate_await_arrival(&gate);
        for (int k = 0; k < 4; k++) { /* the deadline, then the quarantine */
            assert_int_equal(errand_testing_clock(rig.runtime, 2 * SECOND), ERRAND_OK);
            assert_int_equal(errand_drive(rig.runtime, NULL, &turn), ERRAND_OK);
        }
        assert_int_equal(faults(&rig).abandoned, i + 1);
        if (i == 0)
            assert_int_equal(try_again(&rig, &good), ERRAND_OK);
    }
    assert_int_equal(try_again(&rig, &good), ERRAND_EFULL);
    gate_open_many(&gate, 2);
    rig_until(all_are_back, &rig);
    assert_int_equal(try_again(&rig, &good), ERRAND_OK);
    rig_fini(&rig);
    gate_fini(&gate);
    assert_int_equal(good.dropped, 2);
}

/* ---- misuse --------------------------------------------------------------------------------------------- */

static void
what_no_pool_can_do_is_refused(void **state)
{
    errand_faults_config good = {.struct_size = sizeof good}, bad;
    errand_identity identity = {.runtime = 1};
    errand_executor *manual;
    errand_faults counts;
    errand_fault fault;
    pool_rig rig;

    (void)state;
    begin(&rig, NULL);
    assert_int_equal(errand_faults_set(rig.executor, &good), ERRAND_EBUSY);
    assert_int_equal(errand_faults_find(rig.executor, &identity, &fault),
                     ERRAND_EUNKNOWN);
    rig_fini(&rig);
    assert_int_equal(errand_manual_create(NULL, &manual), ERRAND_OK);
    assert_int_equal(errand_faults_set(manual, &good), ERRAND_EUNSUPPORTED);
    assert_int_equal(errand_faults_read(manual, &counts), ERRAND_EUNSUPPORTED);
    assert_int_equal(errand_faults_find(manual, &identity, &fault), ERRAND_EUNSUPPORTED);
    errand_executor_abandon(&manual);
    assert_int_equal(errand_blocking_create(NULL, &manual), ERRAND_OK);
    for (int i = 0; i < 4; i++) {
        bad = good;
        bad.struct_size = i == 0 ? 4 : (uint32_t)sizeof bad;
        bad.flags = i == 1 ? 8 : 0;
        bad.abandoned_max = i == 2 ? 65 : 0;
        bad.breaker_events = i == 3 ? 257 : 0;
        assert_int_equal(errand_faults_set(manual, &bad), ERRAND_EINVAL);
    }
    assert_int_equal(errand_faults_set(manual, &good), ERRAND_OK);
    errand_executor_abandon(&manual);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaker_opens_after_so_many_panics_and_closes_by_the_clock),
        cmocka_unit_test(breaker_stays_closed_where_panics_are_rare),
        cmocka_unit_test(pool_that_was_told_nothing_takes_any_number_of_panics),
        cmocka_unit_test(pool_refuses_while_too_many_threads_are_given_up),
        cmocka_unit_test(what_no_pool_can_do_is_refused),
    };

    return test_group("workers/blocking_breaker", tests, NULL, NULL);
}
