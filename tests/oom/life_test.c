/* SPDX-License-Identifier: MIT */
/* Goal: memory that runs out anywhere in a whole life is a status, and loses nothing (O1, O10, O26).
 * Method: the n-th allocation fails, for n = 1, 2, ... until a life needs no more; each life is
 * create, attach, prepare, issue, bind, submit, start, tasks, panic, follow, cancel, drain, drive,
 * shutdown; whatever was accepted comes back, whatever was refused is dropped by its owner, and no
 * byte is left. */
#include "world.h"

typedef struct life {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_order order;
    bool pool; /* a blocking pool instead of the manual executor */
    world_job jobs[6];
    int accepted, refused, heard;
    bool started[6];
} life;

static void
hear(void *arg, errand_completion *completion)
{
    life *self = arg;

    self->heard++;
    assert_true(completion->outcome >= ERRAND_COMPLETED &&
                completion->outcome <= ERRAND_PANICKED);
}

static void
use_memory(errand_job *job, world_job *self)
{
    life *owner = self->arg;
    char *scratch = errand_job_alloc(job, 1000);
    errand_spec spec = world_spec(&owner->jobs[5]);

    if (scratch != NULL)
        scratch[999] = 1;
    if (errand_job_follow(job, &spec, NULL) == ERRAND_OK)
        owner->started[5] = true;
    errand_job_message(job, "not used");
}

/* The five steps; on a refusal everything that is left is abandoned. */
static void
step_by_step(life *self, int index)
{
    errand_spec spec = world_spec(&self->jobs[index]);
    errand_prepared prepared = {NULL, 0};
    errand_binding binding = {NULL, 0};
    errand_submission submission = {NULL, 0};
    errand_wait wait = {NULL, 0};
    errand_identity identity;

    spec.deadline_ns = UINT64_C(1) << 60; /* needs a block of its own in bind */
    if (errand_prepare(self->runtime, &spec, &prepared) != ERRAND_OK) {
        self->jobs[index].dropped++; /* still ours: drop it */
        self->refused++;
        return;
    }
    self->started[index] = true; /* from here on the library drops it */
    if (errand_issue(self->runtime, 1, NULL, &identity) == ERRAND_OK) {
        if (errand_bind(self->runtime, &identity, &prepared, &binding) == ERRAND_OK) {
            assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
            errand_wait_abandon(&wait);
            if (errand_submit(self->lease, &submission) == ERRAND_OK)
                self->accepted++;
        } else {
            assert_int_equal(errand_prepared_kind(&prepared), 1); /* untouched (O10) */
            assert_int_equal(errand_retire(self->runtime, &identity), ERRAND_OK);
        }
    }
    errand_submission_abandon(&submission);
    errand_binding_abandon(&binding);
    errand_prepared_abandon(&prepared);
}

static void
start_one(life *self, int index, errand_identity *out_identity)
{
    errand_spec spec = world_spec(&self->jobs[index]);

    if (errand_start(self->lease, &spec, NULL, out_identity) == ERRAND_OK) {
        self->accepted++;
        self->started[index] = true;
    } else {
        self->jobs[index].dropped++;
        self->refused++;
        *out_identity = (errand_identity){.runtime = 0};
    }
}

static errand_task_answer
task_body(errand_task *task, void *state, const errand_task_news *news)
{
    life *self = state;
    errand_spec spec = world_spec(&self->jobs[4]);

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    if (errand_task_await(task, self->lease, &spec, UINT64_MAX, NULL) != ERRAND_OK) {
        self->jobs[4].dropped++;
        self->refused++;
        return ERRAND_TASK_FAILED;
    }
    self->accepted++;
    self->started[4] = true;
    return ERRAND_TASK_WAIT;
}

static void
run_all(life *self)
{
    errand_turn turn;
    size_t count;

    for (int i = 0; i < 1000; i++) {
        if (!self->pool && self->order == ERRAND_ORDER_ARRIVAL)
            assert_int_equal(errand_manual_step(self->executor, 100, &count), ERRAND_OK);
        if (errand_drive(self->runtime, NULL, &turn) != ERRAND_OK ||
            turn.kind == ERRAND_TURN_QUIESCENT)
            return;
        if (turn.kind == ERRAND_TURN_IDLE)
            (void)!errand_park(self->runtime, errand_deadline_in(1000000000));
    }
}

/* One life.  Answers whether it got as far as a runtime with a lease. */
static void
live(life *self, errand_executor *pool)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = self->order,
                                    .operations_max = 64,
                                    .messages = 4,
                                    .on_completion = hear,
                                    .held_on_completion_arg = self};
    errand_manual_config manual = {.struct_size = sizeof manual};
    errand_task_spec task = {.struct_size = sizeof task, .fn = task_body, .state = self};
    errand_report report;
    errand_identity identity, other;

    self->jobs[0].panic = "as planned";
    self->jobs[1].inside = use_memory;
    self->jobs[1].arg = self;
    if (errand_runtime_create(&config, &self->runtime) != ERRAND_OK)
        return;
    self->executor = pool;
    if ((pool != NULL || errand_manual_create(&manual, &self->executor) == ERRAND_OK) &&
        errand_attach(self->runtime, self->executor, 16, &self->lease) == ERRAND_OK) {
        start_one(self, 0, &identity);
        start_one(self, 1, &identity);
        step_by_step(self, 2);
        start_one(self, 3, &other);
        if (other.runtime != 0)
            assert_int_equal(
                errand_cancel(self->runtime, &other, ERRAND_REASON_EXPLICIT, NULL),
                ERRAND_OK);
        if (errand_spawn(self->runtime, NULL, &task, NULL) != ERRAND_OK)
            self->refused++;
        run_all(self);
    }
    assert_int_equal(errand_runtime_shutdown(&self->runtime,
                                             errand_deadline_in(10000000000),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_int_equal(report.accounts.accepted,
                     report.accounts.drained + report.undeliverable);
    assert_int_equal(report.undeliverable, 0);
    if (pool == NULL)
        errand_executor_abandon(&self->executor);
}

static void
fail_each(errand_order order, errand_executor *pool)
{
    int64_t before = errand_testing_live_bytes();
    bool refused_once = false;

    for (uint64_t n = 1; n < 5000; n++) {
        life self = {.order = order, .pool = pool != NULL};
        uint64_t asked;

        (void)errand_testing_fail_allocation(n);
        live(&self, pool);
        asked = errand_testing_fail_allocation(0);
        for (int i = 0; i < 6; i++)
            assert_true(self.jobs[i].dropped <= 1 &&
                        (!self.started[i] || self.jobs[i].dropped == 1));
        refused_once |= self.refused > 0;
        if (pool == NULL)
            assert_int_equal(errand_testing_live_bytes(), before);
        if (asked < n) {
            assert_int_equal(self.refused, 0);
            assert_int_equal(self.heard, 6); /* five and the follow-up */
            assert_true(refused_once && n > 5);
            return;
        }
    }
    fail_msg("a life needs more than 5000 allocations");
}

static void
every_allocation_of_a_life_may_fail_in_arrival_order(void **state)
{
    (void)state;
    fail_each(ERRAND_ORDER_ARRIVAL, NULL);
}

static void
every_allocation_of_a_life_may_fail_in_inline_order(void **state)
{
    (void)state;
    fail_each(ERRAND_ORDER_INLINE, NULL);
}

static void
every_allocation_of_a_life_may_fail_with_threads(void **state)
{
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 1, .workers_max = 1};
    errand_executor *pool;

    (void)state;
    assert_int_equal(errand_blocking_create(&config, &pool), ERRAND_OK);
    fail_each(ERRAND_ORDER_ARRIVAL, pool);
    errand_executor_abandon(&pool);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_life_may_fail_in_arrival_order),
        cmocka_unit_test(every_allocation_of_a_life_may_fail_in_inline_order),
        cmocka_unit_test(every_allocation_of_a_life_may_fail_with_threads),
    };
    return test_group("oom/life", tests, NULL, NULL);
}
