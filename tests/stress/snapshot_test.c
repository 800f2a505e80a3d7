/* SPDX-License-Identifier: MIT */
/* Goal: a snapshot obeys the law exactly whoever takes it and whenever, its counters only grow, and
 * what it says is running the bodies themselves can confirm; times of a completion are in order
 * (O4, O28, O48, C-N2).
 * Method: two threads take snapshots of runtime and lease as fast as they can while operations complete,
 * fail, panic and are cancelled on real workers. */
#include <pthread.h>
#include <stdlib.h>
#include "errand/executor.h"
#include "errand/testing.h"
#include "stress.h"

enum { WORKERS = 3, SAMPLERS = 2 };

typedef struct scene {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    atomic_ulong began, ended; /* bodies, counted by themselves */
    atomic_bool stop;
    uint64_t accepted, heard, backwards;
    errand_times times;
} scene;

static int32_t
body(errand_job *job, void *state, errand_payload *out_payload)
{
    scene *self = state;
    unsigned long number =
        atomic_fetch_add_explicit(&self->began, 1, memory_order_seq_cst);

    (void)out_payload;
    race_delay(number % 64);
    atomic_fetch_add_explicit(&self->ended, 1, memory_order_seq_cst);
    if (number % 7 == 3) {
        errand_job_message(job, "seventh");
        return 7;
    }
    if (number % 11 == 5)
        errand_panic("eleventh");
    return 0;
}
static const errand_job_type body_type = {
    .struct_size = sizeof(errand_job_type), .name = "body", .run = body};

/* ---- those who look ------------------------------------------------------------------------------------ */

typedef struct sampler {
    scene *scene;
    pthread_t thread;
    atomic_ulong moving; /* snapshots during which bodies began */
    uint64_t taken, broken, shrunk, astray;
    errand_snapshot last;
} sampler;

static bool
obeys(const errand_snapshot *of)
{
    return of->accepted == of->queued + of->running + of->undrained + of->drained +
                               of->undeliverable &&
           of->queued <= of->accepted && of->running <= of->accepted &&
           of->undrained <= of->accepted && of->drained <= of->accepted &&
           of->owed == of->accepted - of->drained &&
           of->completed + of->failed + of->cancelled + of->panicked + of->crashed <=
               of->accepted;
}

static bool
has_grown(const errand_snapshot *from, const errand_snapshot *to)
{
    bool codes = true;

    for (int i = 0; i < ERRAND_CODES; i++)
        codes = codes && from->codes[i] <= to->codes[i];
    return codes && from->accepted <= to->accepted && from->drained <= to->drained &&
           from->completed <= to->completed && from->failed <= to->failed &&
           from->cancelled <= to->cancelled && from->panicked <= to->panicked &&
           from->late <= to->late; /* resumed is derived from drained */
}

static void
look_once(sampler *self)
{
    scene *in = self->scene;
    unsigned long ended_before = atomic_load_explicit(&in->ended, memory_order_seq_cst);
    unsigned long began_before = atomic_load_explicit(&in->began, memory_order_seq_cst);
    errand_snapshot whole, lease;

    if (errand_runtime_snapshot(in->runtime, &whole) != ERRAND_OK ||
        errand_lease_snapshot(in->lease, &lease) != ERRAND_OK)
        abort();
    unsigned long began_after = atomic_load_explicit(&in->began, memory_order_seq_cst);
    unsigned long ended_after = atomic_load_explicit(&in->ended, memory_order_seq_cst);
    self->taken++;
    if (began_after != began_before)
        atomic_fetch_add_explicit(&self->moving, 1, memory_order_relaxed);
    self->broken += !obeys(&whole) || !obeys(&lease) ||
                    whole.drained != whole.resumed + whole.late + whole.reaped;
    self->shrunk += !has_grown(&self->last, &whole);
    /* Running: claimed and not settled.  Each worker may stand between its claim and the body, or
     * between the body and its settling. */
    int64_t most = (int64_t)(began_after - ended_before) + WORKERS + WORKERS;
    int64_t least = (int64_t)(began_before - ended_after) - WORKERS - WORKERS;
    self->astray += (int64_t)whole.running > most || (int64_t)whole.running < least;
    self->last = whole;
}

static void *
look(void *arg)
{
    sampler *self = arg;

    while (!atomic_load_explicit(&self->scene->stop, memory_order_acquire)) {
        look_once(self);
        sched_yield(); /* where there are fewer processors than threads */
    }
    return NULL;
}

/* ---- those who work -------------------------------------------------------------------------------------- */

static void
hear(void *arg, errand_completion *completion)
{
    scene *self = arg;

    self->heard++;
    if (self->times == ERRAND_TIMES_NONE)
        self->backwards += completion->t_submit_ns != 0 || completion->t_start_ns != 0 ||
                           completion->t_end_ns != 0;
    else
        self->backwards += completion->t_submit_ns == 0 ||
                           (completion->outcome != ERRAND_CANCELLED &&
                            (completion->t_start_ns < completion->t_submit_ns ||
                             completion->t_end_ns < completion->t_start_ns));
}

static void
scene_open(scene *self, errand_times times)
{
    errand_blocking_config pool = {
        .struct_size = sizeof pool, .workers_min = WORKERS, .workers_max = WORKERS};
    errand_runtime_config config = {.struct_size = sizeof config, .times = times};

    *self = (scene){.times = times};
    assert_int_equal(errand_blocking_create(&pool, &self->executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(&config, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, self->executor, 256, &self->lease),
                     ERRAND_OK);
}

static void
scene_work(scene *self, uint64_t operations)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_identity identity;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &body_type;
    spec.state = self;
    while (self->accepted < operations) {
        errand_status status = errand_start(self->lease, &spec, NULL, &identity);

        if (status == ERRAND_EFULL) {
            assert_int_equal(errand_lease_wait_room(self->lease, UINT64_MAX), ERRAND_OK);
            assert_int_equal(errand_drain(self->runtime, 100, hear, self, NULL),
                             ERRAND_OK);
            continue;
        }
        assert_int_equal(status, ERRAND_OK);
        if (++self->accepted % 13 == 0)
            assert_int_equal(
                errand_cancel(self->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
                ERRAND_OK);
    }
    while (self->heard < self->accepted) {
        assert_int_equal(errand_drain(self->runtime, 100, hear, self, NULL), ERRAND_OK);
        if (self->heard < self->accepted)
            assert_int_equal(errand_park(self->runtime, UINT64_MAX), ERRAND_OK);
    }
}

/* At rest everything is exact. */
static void
scene_close(scene *self)
{
    errand_executor_snapshot executor;
    unsigned long began = atomic_load_explicit(&self->began, memory_order_seq_cst);
    uint64_t waits = 0, runs = 0;
    errand_report report;

    while ((waits < began && self->times != ERRAND_TIMES_NONE) ||
           runs < began) { /* the last group is accounted after its put */
        assert_int_equal(errand_executor_snapshot_read(self->executor, &executor),
                         ERRAND_OK);
        waits = runs = 0;
        for (int i = 0; i < 40; i++) {
            waits += executor.wait_histogram[i];
            runs += executor.run_histogram[i];
        }
    }
    if (self->times != ERRAND_TIMES_NONE) /* else nobody knows when it was submitted */
        assert_int_equal(waits, began);   /* C-N2: one for each start */
    assert_int_equal(runs, began);
    assert_int_equal(errand_runtime_shutdown(&self->runtime,
                                             errand_deadline_in(UINT64_C(5000000000)),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    const errand_snapshot *sums = &report.accounts;
    assert_int_equal(sums->accepted, self->accepted);
    assert_int_equal(sums->drained, self->accepted);
    assert_int_equal(sums->completed + sums->failed + sums->panicked, began);
    assert_int_equal(sums->cancelled, self->accepted - began);
    assert_int_equal(sums->codes[ERRAND_CODE_JOB], sums->failed);
    assert_int_equal(sums->codes[ERRAND_CODE_PANIC], sums->panicked);
    assert_int_equal(sums->codes[ERRAND_CODE_CANCELLED], sums->cancelled);
    assert_int_equal(self->backwards, 0);
    errand_executor_abandon(&self->executor);
}

static void
snapshots_of_other_threads_obey_the_law(void **state)
{
    static sampler samplers[SAMPLERS];
    static scene self;
    uint64_t rounds = stress_rounds(1000000);

    (void)state;
    scene_open(&self, ERRAND_TIMES_COARSE);
    for (int i = 0; i < SAMPLERS; i++) {
        samplers[i] = (sampler){.scene = &self};
        assert_int_equal(pthread_create(&samplers[i].thread, NULL, look, &samplers[i]),
                         0);
    }
    scene_work(&self, rounds);
    for (int i = 0; i < SAMPLERS; i++) /* on a busy machine they may have slept */
        while (atomic_load_explicit(&samplers[i].moving, memory_order_relaxed) < 100)
            scene_work(&self, self.accepted + 1000);
    atomic_store_explicit(&self.stop, true, memory_order_release);
    for (int i = 0; i < SAMPLERS; i++) {
        sampler *seen = &samplers[i];

        pthread_join(seen->thread, NULL);
        printf("%s: %llu snapshots, %lu of them while bodies began\n", test_name(),
               (unsigned long long)seen->taken,
               atomic_load_explicit(&seen->moving, memory_order_relaxed));
        assert_int_equal(seen->broken, 0);
        assert_int_equal(seen->shrunk, 0);
        assert_int_equal(seen->astray, 0);
    }
    scene_close(&self);
}

static void
times_are_in_order_however_they_are_taken(void **state)
{
    /* O28 */
    static scene self;

    (void)state;
    for (int times = ERRAND_TIMES_COARSE; times <= ERRAND_TIMES_NONE; times++) {
        scene_open(&self, (errand_times)times);
        scene_work(&self, 5000);
        scene_close(&self);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_of_other_threads_obey_the_law),
        cmocka_unit_test(times_are_in_order_however_they_are_taken),
    };

    return test_group("stress/snapshot", tests, NULL, NULL);
}
