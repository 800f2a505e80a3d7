/* SPDX-License-Identifier: MIT */
/* Goal: pools and leases end while jobs run, wait and are cancelled; forks touch nothing.
 * Method: many short lives with varied timing; a body that outlives its runtime stands at a
 * gate. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "pool_rig.h"

static void
wait_at_gate(rig_job *self, errand_job *job)
{
    (void)job;
    gate_wait(self->arg);
}

static void
spin_a_little(rig_job *self, errand_job *job)
{
    (void)job;
    rig_spin((uint64_t)self->number);
}

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

static bool
all_stopped(void *arg)
{
    hooked *hooks = arg;

    return atomic_load_explicit(&hooks->stopped, memory_order_relaxed) ==
           atomic_load_explicit(&hooks->started, memory_order_relaxed);
}

static bool
bytes_are_back(void *arg)
{
    return errand_testing_live_bytes() == *(const int64_t *)arg;
}

static void
a_pool_ends_with_its_last_lease_and_leaves_nothing(void **state)
{
    /* O47, O57 */
    static hooked hooks;
    static rig_job jobs[64];
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = 1,
                                     .workers_max = 3,
                                     .held_on_start = on_start,
                                     .held_on_stop = on_stop,
                                     .held_arg = &hooks};
    int64_t before = errand_testing_live_bytes();
    uint64_t rounds = test_scaled(2000);

    (void)state;
    for (uint64_t round = 0; round < rounds; round++) {
        int count = (int)(round % 64);
        pool_rig rig;

        rig_init_config(&rig, &config, 0);
        errand_executor *early = rig.executor;
        if (round % 2 == 0) { /* the leases keep it alive */
            rig.shares = true;
            errand_executor_abandon(&early);
        }
        for (int i = 0; i < count; i++) {
            jobs[i] = (rig_job){.fn = spin_a_little, .number = (int)(round * 7 % 5000)};
            rig_start(&rig, &jobs[i]);
        }
        if (round % 3 == 0)
            rig_await(&rig, (uint64_t)count);
        rig_fini(&rig);
        assert_int_equal(rig.report.accounts.accepted, count);
        for (int i = 0; i < count; i++) {
            assert_int_equal(jobs[i].dropped, 1);
        }
    }
    rig_until(all_stopped, &hooks);
    rig_until(bytes_are_back, &before);
}

static void
a_body_that_outlives_its_runtime_touches_nothing_of_it(void **state)
{
    /* O58, O59 */
    static hooked hooks;
    test_gate gate;
    rig_job stuck = {.fn = wait_at_gate, .arg = &gate}, queued = {.fn = NULL};
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = 1,
                                     .workers_max = 1,
                                     .held_on_start = on_start,
                                     .held_on_stop = on_stop,
                                     .held_arg = &hooks};
    pool_rig rig;

    (void)state;
    gate_init(&gate, "outlives");
    rig_init_config(&rig, &config, 0);
    rig_start(&rig, &stuck);
    gate_await_arrival(&gate);
    rig_start(&rig, &queued);
    assert_int_equal(errand_runtime_shutdown(&rig.runtime, errand_deadline_in(20000000),
                                             ERRAND_SHUTDOWN_QUIET, &rig.report),
                     ERRAND_OK);
    errand_executor_abandon(&rig.executor);
    assert_false(rig.report.clean);
    assert_int_equal(rig.report.running, 1);
    assert_int_equal(queued.dropped, 1);
    gate_open(&gate);
    rig_until(all_stopped, &hooks);
    assert_int_equal(stuck.dropped, 1);
    gate_fini(&gate);
}

static void
other_leases_are_untouched_by_the_end_of_one(void **state)
{
    /* O57 */
    enum { EACH = 300 };
    static rig_job ended[EACH], others[EACH];
    pool_rig rig, other;

    (void)state;
    rig_init(&rig, 2, 2);
    for (int round = 0; round < 20; round++) {
        rig_join(&other, rig.executor, 0);
        for (int i = 0; i < EACH; i++) {
            ended[i] = (rig_job){.fn = spin_a_little, .number = 2000};
            others[i] = (rig_job){.fn = spin_a_little, .number = 2000};
            rig_start(&other, &ended[i]);
            rig_start(&rig, &others[i]);
        }
        rig_fini(&other);
        rig_await(&rig, rig.heard + EACH);
        for (int i = 0; i < EACH; i++) {
            assert_int_equal(atomic_load_explicit(&others[i].ran, memory_order_relaxed),
                             1);
            assert_int_equal(ended[i].dropped, 1);
        }
    }
    assert_int_equal(rig.outcomes[ERRAND_COMPLETED], rig.heard);
    rig_fini(&rig);
}

/* ---- runtimes on threads of their own ---------------------------------------------------------- */

typedef struct guest {
    errand_executor *executor;
    uint64_t rounds;
    pthread_t thread;
    int failures;
} guest;

static void
count_heard(void *arg, errand_completion *completion)
{
    (void)completion;
    ++*(int *)arg;
}

static int32_t
nothing(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}

static const errand_job_type nothing_type = {
    .struct_size = sizeof(errand_job_type), .name = "nothing", .run = nothing};

/* No cmocka assertion on a thread that is not the test's. */
static void *
be_guest(void *arg)
{
    guest *self = arg;
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &nothing_type;
    for (uint64_t round = 0; round < self->rounds; round++) {
        errand_runtime_config config = {.struct_size = sizeof config};
        errand_runtime *runtime;
        errand_lease *lease;
        errand_report report;
        int heard = 0, wanted = 1 + (int)(round % 200), waited = wanted / (1 + round % 2);

        if (errand_runtime_create(&config, &runtime) != ERRAND_OK ||
            errand_attach(runtime, self->executor, 0, &lease) != ERRAND_OK) {
            self->failures++;
            return NULL;
        }
        for (int i = 0; i < wanted; i++)
            self->failures += errand_start(lease, &spec, NULL, NULL) != ERRAND_OK;
        while (heard < waited) {
            size_t count = 0;

            self->failures +=
                errand_drain(runtime, SIZE_MAX, count_heard, &heard, &count) != ERRAND_OK;
            if (count == 0)
                self->failures += errand_park(runtime, UINT64_MAX) != ERRAND_OK;
        }
        self->failures +=
            errand_runtime_shutdown(&runtime, errand_deadline_in(10000000000),
                                    ERRAND_SHUTDOWN_QUIET, &report) != ERRAND_OK;
        self->failures += !report.clean || report.accounts.accepted != (uint64_t)wanted;
    }
    return NULL;
}

static void
runtimes_on_many_threads_share_a_pool(void **state)
{
    enum { GUESTS = 4 };
    guest guests[GUESTS];
    pool_rig rig;

    (void)state;
    rig_init(&rig, 1, 3);
    for (int i = 0; i < GUESTS; i++) {
        guests[i] = (guest){.executor = rig.executor, .rounds = test_scaled(2000)};
        assert_int_equal(pthread_create(&guests[i].thread, NULL, be_guest, &guests[i]),
                         0);
    }
    for (int i = 0; i < GUESTS; i++) {
        pthread_join(guests[i].thread, NULL);
        assert_int_equal(guests[i].failures, 0);
    }
    rig_fini(&rig);
}

/* ---- forks --------------------------------------------------------------------------------------- */

static int
child_answers(pool_rig *rig)
{
    errand_executor_snapshot snapshot;
    errand_executor *executor = rig->executor;
    uint8_t lane;

    if (errand_executor_snapshot_read(executor, &snapshot) != ERRAND_EFORKED)
        return 1;
    if (errand_lane_define(executor, "child", 1, &lane) != ERRAND_EFORKED)
        return 2;
    errand_executor_abandon(&executor); /* returns and frees nothing */
    return executor == NULL ? 0 : 3;
}

static void
a_forked_child_is_refused_and_the_parent_goes_on(void **state)
{
    /* O61 */
    pool_rig rig;
    test_gate gate;
    rig_job stuck = {.fn = wait_at_gate, .arg = &gate}, other = {.fn = NULL};
    int status = -1;

    (void)state;
    gate_init(&gate, "while forking");
    rig_init(&rig, 2, 2);
    rig_start(&rig, &stuck);
    gate_await_arrival(&gate);
    pid_t child = fork();
    if (child == 0)
        _exit(child_answers(&rig));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gate_open(&gate);
    rig_start(&rig, &other);
    rig_await(&rig, 2);
    rig_fini(&rig);
    gate_fini(&gate);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_ends_with_its_last_lease_and_leaves_nothing),
        cmocka_unit_test(a_body_that_outlives_its_runtime_touches_nothing_of_it),
        cmocka_unit_test(other_leases_are_untouched_by_the_end_of_one),
        cmocka_unit_test(runtimes_on_many_threads_share_a_pool),
        cmocka_unit_test(a_forked_child_is_refused_and_the_parent_goes_on),
    };

    return test_group("workers/blocking_ends", tests, NULL, NULL);
}
