/* SPDX-License-Identifier: MIT */
/* Goal: leases come and go while their workers complete jobs, and nobody else notices (O57, O58,
 * C-A13, C-D6, C-D8, C-I1).
 * Method: a hundred thousand short lives on one pool, ended at a moment that wanders; memory that a
 * job lends is freed by its drop, so that AddressSanitizer sees a drop that comes early. */
#include <stdlib.h>
#include <string.h>
#include "errand/executor.h"
#include "errand/testing.h"
#include "gate.h"
#include "stress.h"

enum { WORKERS = 4 };

typedef struct guest { /* one runtime on the pool */
    errand_runtime *runtime;
    errand_lease *lease;
    uint64_t accepted, heard;
    errand_report report;
} guest;

static errand_executor *
pool_create(void)
{
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = WORKERS, .workers_max = WORKERS};
    errand_executor *executor;

    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    return executor;
}

static void
guest_open(guest *self, errand_executor *executor)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .operations_max = 64, .messages = 4};

    *self = (guest){.accepted = 0};
    assert_int_equal(errand_runtime_create(&config, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, executor, 0, &self->lease), ERRAND_OK);
}

static void
guest_start(guest *self, const errand_job_type *type, void *state)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = type;
    spec.state = state;
    assert_int_equal(errand_start(self->lease, &spec, self, NULL), ERRAND_OK);
    self->accepted++;
}

static void
guest_close(guest *self, uint64_t deadline_ns)
{
    assert_int_equal(errand_runtime_shutdown(&self->runtime, deadline_ns,
                                             ERRAND_SHUTDOWN_QUIET, &self->report),
                     ERRAND_OK);
    assert_int_equal(self->report.accounts.accepted, self->accepted);
    assert_int_equal(self->report.accounts.drained + self->report.undeliverable,
                     self->accepted);
}

static void
hear(void *arg, errand_completion *completion)
{
    (void)completion;
    ((guest *)arg)->heard++;
}

/* ---- register, complete, unregister ---------------------------------------------------------------- */

static atomic_uint dropped;

static int32_t
touch(errand_job *job, void *state, errand_payload *out_payload)
{
    char *lent = errand_job_alloc(job, 32);

    race_delay(*(uint64_t *)state);
    if (lent != NULL)
        memset(lent, 1, 32);
    memset(state, 2, 64);
    (void)errand_payload_alloc(job, 16, out_payload);
    return 0;
}
static void
free_it(void *state)
{
    free(state);
    atomic_fetch_add_explicit(&dropped, 1, memory_order_release);
}
static const errand_job_type touch_type = {.struct_size = sizeof(errand_job_type),
                                           .name = "touch",
                                           .run = touch,
                                           .drop = free_it};

static void
leases_that_end_while_their_jobs_do_lose_nothing(void **state)
{
    /* C-D6 */
    uint64_t rounds = stress_rounds(100000), late = 0, clean = 0;
    errand_executor *executor = pool_create();
    race random = {.random = 3};
    unsigned started = 0;
    guest self;

    (void)state;
    atomic_store_explicit(&dropped, 0, memory_order_relaxed);
    for (uint64_t round = 0; round < rounds; round++) {
        guest_open(&self, executor);
        for (int i = 0; i < 2 * WORKERS; i++, started++) {
            uint64_t *buffer = malloc(64);

            assert_non_null(buffer);
            *buffer = race_random(&random) % 3000;
            guest_start(&self, &touch_type, buffer);
        }
        race_delay(race_random(&random) % 4000);
        guest_close(&self,
                    round % 16 == 0 ? errand_deadline_in(UINT64_C(5000000000)) : 0);
        late += self.report.undeliverable;
        clean += self.report.clean;
    }
    stress_await(&dropped, started);
    errand_executor_abandon(&executor);
    printf("%s: %llu of %llu ended clean, %llu jobs were late\n", test_name(),
           (unsigned long long)clean, (unsigned long long)rounds,
           (unsigned long long)late);
    assert_true(clean >= rounds / 16);
    assert_true(late >= rounds / 100); /* else nothing raced */
}

/* ---- a dying runtime and a living one ------------------------------------------------------------------ */

typedef struct lender { /* lends its buffer to its job */
    char *buffer;
    test_gate gate;
    atomic_bool stop;
    atomic_uint gone;
} lender;

static int32_t
write_on(errand_job *job, void *state, errand_payload *out_payload)
{
    lender *self = state;

    (void)job;
    (void)out_payload;
    gate_wait(&self->gate);
    while (!atomic_load_explicit(&self->stop, memory_order_acquire))
        memset(self->buffer, 3, 4096);
    return 0;
}
static void
take_back(void *state)
{
    lender *self = state;

    free(self->buffer);
    self->buffer = NULL;
    atomic_store_explicit(&self->gone, 1, memory_order_release);
}
static const errand_job_type lender_type = {.struct_size = sizeof(errand_job_type),
                                            .name = "lender",
                                            .run = write_on,
                                            .drop = take_back};

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

/* Drains and parks until so many were heard. */
static void
guest_await(guest *self, uint64_t heard, size_t budget)
{
    while (self->heard < heard) {
        assert_int_equal(errand_drain(self->runtime, budget, hear, self, NULL),
                         ERRAND_OK);
        if (self->heard < heard)
            assert_int_equal(errand_park(self->runtime, UINT64_MAX), ERRAND_OK);
    }
}

static void
buffer_of_a_dead_runtime_is_its_jobs_until_that_ends(void **state)
{
    /* C-D8, O58 */
    errand_executor *executor = pool_create();
    static lender lent;
    guest dying, living;

    (void)state;
    memset(&lent, 0, sizeof lent);
    gate_init(&lent.gate, "lender");
    lent.buffer = malloc(4096);
    assert_non_null(lent.buffer);
    guest_open(&dying, executor);
    guest_open(&living, executor);
    guest_start(&dying, &lender_type, &lent);
    gate_await_arrival(&lent.gate);
    gate_open(&lent.gate);
    guest_close(&dying, 0);
    assert_int_equal(dying.report.undeliverable, 1);
    for (int i = 0; i < 1000; i++) {
        guest_start(&living, &nothing_type, NULL);
        if (living.accepted > 30)
            guest_await(&living, living.accepted - 30, SIZE_MAX);
    }
    guest_await(&living, 1000, SIZE_MAX);
    guest_close(&living, errand_deadline_in(UINT64_C(20000000000)));
    assert_true(living.report.clean);
    assert_int_equal(living.report.accounts.completed, 1000);
    assert_int_equal(atomic_load_explicit(&lent.gone, memory_order_acquire), 0);
    atomic_store_explicit(&lent.stop, true, memory_order_release);
    stress_await(&lent.gone, 1);
    errand_executor_abandon(&executor);
    gate_fini(&lent.gate);
}

/* ---- chains ---------------------------------------------------------------------------------------------- */

typedef struct chain {
    guest *guest;
    unsigned left, ran;
} chain;

static const errand_job_type link_type;

static int32_t
follow_itself(errand_job *job, void *state, errand_payload *out_payload)
{
    chain *self = state;
    errand_spec spec = ERRAND_SPEC_INIT;

    (void)out_payload;
    self->ran++;
    if (--self->left == 0)
        return 0;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &link_type;
    spec.state = self;
    return errand_job_follow(job, &spec, NULL) == ERRAND_OK ? 0 : 1;
}
static const errand_job_type link_type = {
    .struct_size = sizeof(errand_job_type), .name = "link", .run = follow_itself};

static void
submit_the_next(void *arg, errand_completion *completion)
{
    chain *self = arg;

    (void)completion;
    self->ran++;
    if (--self->left > 0)
        guest_start(self->guest, &nothing_type, NULL);
}

static void
chains_of_a_thousand_completions_end(void **state)
{
    /* C-A13, O54 */
    errand_executor *executor = pool_create();
    guest self;
    chain links = {.guest = &self, .left = 1000};
    errand_snapshot snapshot;

    (void)state;
    guest_open(&self, executor);
    guest_start(&self, &link_type, &links); /* from inside the bodies */
    self.accepted = 1000;
    guest_await(&self, 1000, 7);
    assert_int_equal(links.ran, 1000);
    links = (chain){.guest = &self, .left = 1000}; /* from the handlers */
    guest_start(&self, &nothing_type, NULL);
    while (links.left > 0) {
        assert_int_equal(
            errand_drain(self.runtime, SIZE_MAX, submit_the_next, &links, NULL),
            ERRAND_OK);
        if (links.left > 0)
            assert_int_equal(errand_park(self.runtime, UINT64_MAX), ERRAND_OK);
    }
    assert_int_equal(links.ran, 1000);
    assert_int_equal(errand_runtime_snapshot(self.runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.owed, 0);
    guest_close(&self, errand_deadline_in(UINT64_C(20000000000)));
    assert_true(self.report.clean);
    errand_executor_abandon(&executor);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_that_end_while_their_jobs_do_lose_nothing),
        cmocka_unit_test(buffer_of_a_dead_runtime_is_its_jobs_until_that_ends),
        cmocka_unit_test(chains_of_a_thousand_completions_end),
    };

    return test_group("stress/leases", tests, NULL, NULL);
}
