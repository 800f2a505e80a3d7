/* SPDX-License-Identifier: MIT */
/* Goal: a pool of real threads runs every job once and says what it does.
 * Method: rigs (pool_rig.h); gates where a moment matters. */
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "pool_rig.h"

enum { MANY = 2000 };

static void
every_job_runs_once_and_is_drained_once(void **state)
{
    /* O1, O20 */
    static rig_job jobs[MANY];
    pool_rig rig;

    (void)state;
    for (uint32_t workers = 1; workers <= 4; workers++) {
        memset(jobs, 0, sizeof jobs);
        rig_init(&rig, workers, workers);
        for (int i = 0; i < MANY; i++)
            rig_start(&rig, &jobs[i]);
        rig_await(&rig, MANY);
        assert_int_equal(rig.outcomes[ERRAND_COMPLETED], MANY);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(atomic_load_explicit(&jobs[i].ran, memory_order_relaxed), 1);
            assert_int_equal(jobs[i].dropped, 1);
        }
        rig_fini(&rig);
    }
}

static void
one_after_the_other_is_answered_each_time(void **state)
{
    pool_rig rig;
    rig_job job = {.fn = NULL};

    (void)state;
    rig_init(&rig, 1, 2);
    for (uint64_t i = 1; i <= 3000; i++) {
        rig_start(&rig, &job);
        rig_await(&rig, i);
    }
    assert_int_equal(atomic_load_explicit(&job.ran, memory_order_relaxed), 3000);
    rig_fini(&rig);
}

static void
refused(const errand_blocking_config *config)
{
    errand_executor *executor = (errand_executor *)1;

    assert_int_equal(errand_blocking_create(config, &executor), ERRAND_EINVAL);
    assert_ptr_equal(executor, (errand_executor *)1);
}

static void
configurations_out_of_range_are_refused(void **state)
{
    /* O80 */
    const uint32_t cpu = 70000;

    (void)state;
    refused(&(errand_blocking_config){.struct_size = 0});
    refused(&(errand_blocking_config){.struct_size = sizeof(errand_blocking_config) + 8});
    refused(&(errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                      .workers_min = 3,
                                      .workers_max = 2});
    refused(&(errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                      .workers_max = 1025});
    refused(&(errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                      .flags = UINT32_C(1) << 31});
    refused(&(errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                      .stack_size = 1});
    refused(&(errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                      .name = "twelve bytes"});
    refused(&(errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                      .cpu_count = 1});
    refused(&(errand_blocking_config){
        .struct_size = sizeof(errand_blocking_config), .cpus = &cpu, .cpu_count = 1});
}

static void
without_a_configuration_all_is_default(void **state)
{
    errand_executor *executor;
    errand_executor_snapshot snapshot;

    (void)state;
    assert_int_equal(errand_blocking_create(NULL, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_blocking_create(NULL, &executor), ERRAND_OK);
    assert_int_equal(errand_executor_snapshot_read(executor, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.workers, 1);
    errand_executor_abandon(&executor);
}

static void
lanes_are_defined_before_the_first_lease(void **state)
{
    /* O53 */
    errand_blocking_config config = {.struct_size = sizeof config};
    errand_executor *executor;
    uint8_t lane = 0, last = 0;
    pool_rig rig;

    (void)state;
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_lane_define(executor, "none", 0, &lane), ERRAND_EINVAL);
    assert_int_equal(errand_lane_define(executor, "", 1, &lane), ERRAND_EINVAL);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(errand_lane_define(executor, "own", 1, &lane), ERRAND_OK);
        assert_true(lane >= ERRAND_LANE_FIRST_OWN && lane > last);
        last = lane;
    }
    assert_int_equal(errand_lane_define(executor, "more", 1, &lane), ERRAND_EFULL);
    rig_join(&rig, executor, 0);
    assert_int_equal(errand_lane_define(executor, "late", 1, &lane), ERRAND_EBUSY);
    rig_fini(&rig);
    errand_executor_abandon(&executor);
    errand_executor_abandon(&executor);
}

static void
a_lane_that_nobody_defined_is_refused(void **state)
{
    pool_rig rig;
    rig_job job = {.fn = NULL};
    errand_spec spec = rig_spec(&job);

    (void)state;
    rig_init(&rig, 1, 1);
    spec.lane = 7;
    assert_int_equal(errand_start(rig.lease, &spec, NULL, NULL), ERRAND_EINVAL);
    assert_int_equal(job.dropped, 0);
    rig_fini(&rig);
}

/* ---- threads ----------------------------------------------------------------------------- */

typedef struct hooked {
    atomic_int started, stopped;
} hooked;

static void
on_start(void *arg, uint32_t worker)
{
    (void)worker;
    atomic_fetch_add_explicit(&((hooked *)arg)->started, 1, memory_order_relaxed);
}

static void
on_stop(void *arg, uint32_t worker)
{
    (void)worker;
    atomic_fetch_add_explicit(&((hooked *)arg)->stopped, 1, memory_order_relaxed);
}

typedef struct thread_facts {
    char name[16];
    bool blocks_usr1, blocks_segv, one_processor;
    int nice, cancel_state;
    size_t stack;
} thread_facts;

static void
note_thread(rig_job *self, errand_job *job)
{
    thread_facts *facts = self->arg;
    pthread_attr_t attributes;
    sigset_t blocked;
    cpu_set_t cpus;

    (void)job;
    pthread_getname_np(pthread_self(), facts->name, sizeof facts->name);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    facts->blocks_usr1 = sigismember(&blocked, SIGUSR1) == 1;
    facts->blocks_segv = sigismember(&blocked, SIGSEGV) == 1;
    sched_getaffinity(0, sizeof cpus, &cpus);
    facts->one_processor = CPU_COUNT(&cpus) == 1;
    facts->nice = getpriority(PRIO_PROCESS, 0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &facts->cancel_state);
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &facts->stack);
    pthread_attr_destroy(&attributes);
}

static bool
all_stopped(void *arg)
{
    hooked *hooks = arg;

    return atomic_load_explicit(&hooks->stopped, memory_order_relaxed) ==
           atomic_load_explicit(&hooks->started, memory_order_relaxed);
}

static void
threads_are_what_the_configuration_says(void **state)
{
    /* O56, O60 */
    static hooked hooks;
    cpu_set_t mine;
    uint32_t cpu = 0;
    thread_facts facts = {.nice = -100};
    rig_job job = {.fn = note_thread, .arg = &facts};
    pool_rig rig;

    (void)state;
    sched_getaffinity(0, sizeof mine, &mine);
    while (!CPU_ISSET(cpu, &mine))
        cpu++;
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = 1,
                                     .workers_max = 1,
                                     .name = "eleven_byte",
                                     .stack_size = 256 * 1024,
                                     .nice = 3,
                                     .cpus = &cpu,
                                     .cpu_count = 1,
                                     .held_on_start = on_start,
                                     .held_on_stop = on_stop,
                                     .held_arg = &hooks};
    rig_init_config(&rig, &config, 0);
    rig_start(&rig, &job);
    rig_await(&rig, 1);
    assert_string_equal(facts.name, "eleven_byte/0");
    assert_true(facts.blocks_usr1);
    assert_false(facts.blocks_segv);
    assert_true(facts.one_processor);
    int nice = getpriority(PRIO_PROCESS, 0) + 3;
    assert_int_equal(facts.nice, nice < 19 ? nice : 19); /* there is no more */
    assert_int_equal(facts.cancel_state, PTHREAD_CANCEL_DISABLE);
    assert_true(facts.stack >= 192 * 1024 && facts.stack <= 1024 * 1024);
    rig_fini(&rig);
    assert_int_equal(atomic_load_explicit(&hooks.started, memory_order_relaxed), 1);
    rig_until(all_stopped, &hooks);
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static void
wait_at_gate(rig_job *self, errand_job *job)
{
    (void)job;
    gate_wait(self->arg);
}

static void
a_snapshot_says_what_is_queued_and_running(void **state)
{
    /* O48, O49 */
    pool_rig rig;
    test_gate gate;
    rig_job jobs[3] = {{.fn = wait_at_gate, .arg = &gate}, {.fn = NULL}, {.fn = NULL}};
    errand_spec spec = rig_spec(&jobs[0]);

    (void)state;
    gate_init(&gate, "body");
    rig_init(&rig, 1, 1);
    spec.soft_ns = 1000;
    rig_start_spec(&rig, &spec);
    gate_await_arrival(&gate);
    rig_start(&rig, &jobs[1]);
    rig_start(&rig, &jobs[2]);
    rig_spin(6000000);
    errand_executor_snapshot snapshot = rig_snapshot(&rig);
    assert_int_equal(snapshot.workers, 1);
    assert_int_equal(snapshot.idle, 0);
    assert_int_equal(snapshot.running, 1);
    assert_int_equal(snapshot.queued, 2);
    assert_in_range(snapshot.oldest_running_ns, 5000000, 60000000000);
    assert_in_range(snapshot.oldest_queued_ns, 4000000, 60000000000);
    assert_int_equal(snapshot.overruns, 1);
    assert_memory_equal(&snapshot.overrun[0].identity, &jobs[0].identity,
                        sizeof jobs[0].identity);
    assert_in_range(snapshot.overrun[0].age_ns, 5000000, 60000000000);
    gate_open(&gate);
    rig_await(&rig, 3);
    rig_fini(&rig);
    gate_fini(&gate);
}

static bool
histograms_are_full(void *arg)
{
    const pool_rig *rig = arg;
    errand_executor_snapshot snapshot = rig_snapshot(rig);
    uint64_t waits = 0, runs = 0;

    for (int i = 0; i < 40; i++) {
        waits += snapshot.wait_histogram[i];
        runs += snapshot.run_histogram[i];
    }
    return waits == MANY && runs == MANY && snapshot.overruns == 0;
}

static void
histograms_count_every_job(void **state)
{
    /* O49 */
    static rig_job jobs[MANY];
    pool_rig rig;

    (void)state;
    memset(jobs, 0, sizeof jobs);
    rig_init(&rig, 2, 2);
    for (int i = 0; i < MANY; i++)
        rig_start(&rig, &jobs[i]);
    rig_await(&rig, MANY);
    rig_until(histograms_are_full, &rig);
    rig_fini(&rig);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_runs_once_and_is_drained_once),
        cmocka_unit_test(one_after_the_other_is_answered_each_time),
        cmocka_unit_test(configurations_out_of_range_are_refused),
        cmocka_unit_test(without_a_configuration_all_is_default),
        cmocka_unit_test(lanes_are_defined_before_the_first_lease),
        cmocka_unit_test(a_lane_that_nobody_defined_is_refused),
        cmocka_unit_test(threads_are_what_the_configuration_says),
        cmocka_unit_test(a_snapshot_says_what_is_queued_and_running),
        cmocka_unit_test(histograms_count_every_job),
    };

    return test_group("workers/blocking", tests, NULL, NULL);
}
