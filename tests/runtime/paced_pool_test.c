/* SPDX-License-Identifier: MIT */
/* Goal: with real workers, however fast or slow each is, paced order tells completions at their
 * virtual dues in their order, and gives the digest of inline order.
 * Method: a pool of 1 to 4 threads; bodies that wait for gates, or for each other. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "errand/async.h"
#include "gate.h"
#include "seeded.h"

enum { MANY = 40 };

/* ---- order ---------------------------------------------------------------------------------- */

static test_gate gates[MANY];
static atomic_uint arrived;

static void
wait_at_gate(errand_job *job, world_job *self)
{
    (void)job;
    gate_wait(self->arg);
    atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
}

typedef struct opener {
    test_gate *order[MANY];
    unsigned count;
} opener;

static void *
open_all(void *arg)
{
    opener *self = arg;

    for (unsigned i = 0; i < self->count; i++) { /* one after the other has ended */
        gate_await_arrival(self->order[i]);
        gate_open(self->order[i]);
        while (atomic_load_explicit(&arrived, memory_order_relaxed) <= i)
            sched_yield();
    }
    return NULL;
}

/* Starts three whose begins all come before the first due; out_order: by due.  That due. */
static uint64_t
start_three(test_world *in, world_job *jobs, unsigned *out_order)
{
    for (uint64_t seed = 1;; seed++) {
        uint64_t last_begin = 0, dues[3];

        restart(in, ERRAND_ORDER_PACED, seed, 3);
        for (unsigned i = 0; i < 3; i++) {
            errand_identity name;

            jobs[i] = (world_job){.inside = wait_at_gate, .arg = &gates[i]};
            name = world_start(in, &jobs[i]);
            dues[i] = extra_of(in, &name)->due;
            if (extra_of(in, &name)->begin > last_begin)
                last_begin = extra_of(in, &name)->begin;
        }
        for (unsigned i = 0; i < 3; i++) {
            unsigned place = 0;

            for (unsigned k = 0; k < 3; k++)
                place += dues[k] < dues[i];
            out_order[place] = i;
        }
        if (last_begin < dues[out_order[0]])
            return dues[out_order[0]];
    }
}

/* I1, I2, I3, I4, D140: the job that is due first ends last, and is told first; until it is there
 * nothing is told, and virtual time stands at its due. */
static void
the_first_due_is_told_first_although_it_ends_last(void **state)
{
    test_world *in = *state;
    world_job jobs[3];
    unsigned by_due[3];
    uint64_t first_due;
    opener self = {.count = 3};
    pthread_t thread;
    errand_turn turn;

    for (unsigned i = 0; i < 3; i++)
        gate_init(&gates[i], "body");
    first_due = start_three(in, jobs, by_due);
    for (unsigned i = 0; i < 3; i++)
        self.order[i] = &gates[by_due[2 - i]];
    atomic_store_explicit(&arrived, 0, memory_order_relaxed);
    assert_int_equal(pthread_create(&thread, NULL, open_all, &self), 0);
    while (in->news_count == 0)
        assert_int_equal(errand_drive(in->runtime, NULL, &turn), ERRAND_OK);
    assert_int_equal(atomic_load_explicit(&arrived, memory_order_relaxed), 3);
    assert_int_equal(in->news[0].t_end, first_due);
    drive_all(in);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(in->news[i].wait, &jobs[by_due[i]]);
        gate_fini(&gates[i]);
    }
    world_end(in);
}

static void
open_the_other(errand_job *job, world_job *self)
{
    (void)job;
    gate_open(self->arg);
}

/* D140: the only worker's body ends when one that is due before it has run: the thread that
 * waits runs that one. */
static void
a_due_job_behind_a_busy_worker_is_run_by_who_waits(void **state)
{
    test_world *in = *state;
    world_job jobs[2];
    bool found = false;

    gate_init(&gates[0], "body");
    for (uint64_t seed = 1; !found; seed++) {
        const errand__extra *first, *second;
        errand_identity names[2];

        restart(in, ERRAND_ORDER_PACED, seed, 1);
        jobs[0] = (world_job){.inside = wait_at_gate, .arg = &gates[0]};
        jobs[1] = (world_job){.inside = open_the_other, .arg = &gates[0]};
        for (unsigned i = 0; i < 2; i++)
            names[i] = world_start(in, &jobs[i]);
        first = extra_of(in, &names[0]);
        second = extra_of(in, &names[1]);
        /* The blocked one goes out first, and is due last. */
        found = first->begin < second->begin && second->due < first->due;
        if (!found)
            gate_open(&gates[0]); /* for the end of this world */
    }
    gate_fini(&gates[0]);
    gate_init(&gates[0], "body");
    drive_all(in);
    assert_int_equal(in->news_count, 2);
    assert_ptr_equal(in->news[0].wait, &jobs[1]);
    assert_ptr_equal(in->news[1].wait, &jobs[0]);
    assert_int_equal(in->news[0].outcome, ERRAND_COMPLETED);
    gate_fini(&gates[0]);
    world_end(in);
}

/* I2, D140: what has come long ago is not told before its due. */
static void
nothing_is_told_early(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    errand_identity name;
    errand_snapshot snapshot;
    uint64_t due;

    restart(in, ERRAND_ORDER_PACED, 4, 1);
    name = world_start(in, &job);
    due = extra_of(in, &name)->due;
    assert_int_equal(errand_park(in->runtime, due - 1), ERRAND_OK);
    while (errand__inbox_empty(in->runtime->block))
        sched_yield(); /* it is there */
    assert_int_equal(world_drain(in, 10), 0);
    assert_int_equal(errand_runtime_snapshot(in->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.running, 1);
    assert_int_equal(errand_park(in->runtime, NEVER), ERRAND_OK);
    assert_int_equal(errand_runtime_now(in->runtime), due);
    assert_int_equal(world_drain(in, 10), 1);
    world_end(in);
}

/* D143: no worker may take a job before virtual time has reached its begin. */
static void
no_job_runs_before_its_begin(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    errand_identity name;
    const errand__record *record;
    uint64_t begin;

    restart(in, ERRAND_ORDER_PACED, 4, 1);
    name = world_start(in, &job);
    record = errand__registrar_find(&in->runtime->registrar, &name);
    begin = record->extra->begin;
    assert_int_equal(errand_park(in->runtime, begin - 1), ERRAND_OK);
    assert_int_equal(record->owner_flags & ERRAND__OWN_HANDED, 0);
    assert_int_equal(errand_park(in->runtime, begin), ERRAND_OK);
    assert_int_equal(record->owner_flags & ERRAND__OWN_HANDED, ERRAND__OWN_HANDED);
    drive_all(in);
    assert_int_equal(job.ran, 1);
    world_end(in);
}

/* ---- digests --------------------------------------------------------------------------------- */

static uint64_t
mixed(uint64_t word)
{
    word ^= word >> 31;
    word *= UINT64_C(0x7fb5d329728ea185);
    return word ^ word >> 27;
}

static uint64_t jitter;

/* Its answer hangs on its state alone, its length on the worker. */
static void
take_some_time(errand_job *job, world_job *self)
{
    uint64_t turns = mixed(jitter + (uint64_t)(uintptr_t)self->arg) % 7;

    for (uint64_t i = 0; i < turns * turns; i++)
        sched_yield();
    if ((uintptr_t)self->arg % 5 == 0)
        errand_job_message(job, "job %d", (int)(uintptr_t)self->arg);
}

typedef struct load {
    actor workers[8];
    world_job jobs[8][12];
    unsigned rounds[8];
    errand_identity out[8];
} load;
static load all;

static errand_task_answer
step_load(errand_task *task, actor *self, const errand_task_news *news)
{
    size_t me = (size_t)(self - all.workers);
    unsigned round = all.rounds[me]++;
    uint64_t draw = errand_task_random(task);
    world_job *job;
    errand_spec spec;

    (void)news;
    if (round >= 12)
        return ERRAND_TASK_DONE;
    job = &all.jobs[me][round];
    *job = (world_job){.world = self->in,
                       .inside = take_some_time,
                       .give_payload = round % 3 == 0,
                       .answer = round % 4 == 3 ? 9 : 0,
                       .panic = round == 7 ? "on purpose" : NULL,
                       .arg = (void *)(uintptr_t)(me * 12 + round)};
    spec = world_spec(job);
    spec.flags = draw % 3 == 0 ? ERRAND_SPEC_EFFECT_FREE : 0;
    spec.domain = draw >> 8 & 3;
    if (round % 5 == 4) { /* one that nobody waits for, and is cancelled sometime */
        assert_int_equal(errand_start(self->in->lease, &spec, job, &all.out[me]),
                         ERRAND_OK);
        self->status = errand_task_sleep(task, draw >> 20 & 0xfffff);
    } else {
        if (round % 5 == 0 && round > 0)
            assert_int_equal(errand_cancel(self->in->runtime, &all.out[me],
                                           ERRAND_REASON_EXPLICIT, NULL),
                             ERRAND_OK);
        self->status = errand_task_await(
            task, self->in->lease, &spec,
            draw % 4 == 0 ? errand_runtime_now(self->in->runtime) + MS : NEVER, NULL);
    }
    assert_int_equal(self->status, ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static void
spawn_load(test_world *in)
{
    memset(&all, 0, sizeof all);
    for (unsigned i = 0; i < 8; i++) {
        all.workers[i] = (actor){.step = step_load};
        actor_spawn(in, NULL, "load", &all.workers[i]);
    }
}

static uint64_t
digest_of(test_world *in, errand_order order, uint64_t seed, uint32_t workers)
{
    uint64_t digest;

    restart(in, order, seed, workers);
    spawn_load(in);
    drive_all(in);
    for (unsigned i = 0; i < 8; i++)
        actor_end(&all.workers[i]);
    digest = errand_digest(in->runtime);
    assert_true(errand_reproducible(in->runtime, NULL, 0));
    world_end(in);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned round = 0; round < 12; round++)
            assert_int_equal(all.jobs[i][round].dropped, 1);
    return digest;
}

/* D1, D141, I8: neither the order nor how many workers there are nor how long each takes. */
static void
digest_is_that_of_inline_order_with_any_workers(void **state)
{
    static const uint32_t workers[] = {1, 2, 4};
    test_world *in = *state;
    uint64_t seeds = test_scaled(20);

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t digest = digest_of(in, ERRAND_ORDER_INLINE, seed, 1);

        for (unsigned i = 0; i < 3; i++) {
            jitter = mixed(seed * 3 + i);
            assert_int_equal(digest_of(in, ERRAND_ORDER_PACED, seed, workers[i]), digest);
        }
    }
}

static void
duplicate_hints(void *arg, const char *place)
{
    errand_inbox *inbox = arg;

    if (strcmp(place, "put") == 0 || strcmp(place, "park") == 0)
        errand__inbox_ring(inbox->block);
}

static unsigned kept_back;

static void
wake_nobody(errand_lease *lease)
{
    (void)lease;
    kept_back++;
}

/* I22: neither a wake more changes anything, nor that no worker is woken. */
static void
wakes_are_hints(void **state)
{
    test_world *in = *state;
    uint64_t digest = digest_of(in, ERRAND_ORDER_PACED, 5, 2);
    const errand__executor_ops *ops;
    errand__executor_ops deaf;
    errand_inbox *inbox;

    restart(in, ERRAND_ORDER_PACED, 5, 2);
    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    errand_testing_pause(duplicate_hints, inbox);
    spawn_load(in);
    drive_all(in);
    assert_int_equal(errand_digest(in->runtime), digest);
    world_end(in);
    errand_testing_pause(NULL, NULL);
    errand_inbox_abandon(&inbox);
    restart(in, ERRAND_ORDER_PACED, 5, 2);
    ops = in->lease->executor->ops;
    deaf = *ops;
    deaf.flush = wake_nobody;
    in->lease->executor->ops = &deaf;
    kept_back = 0;
    spawn_load(in);
    drive_all(in);
    assert_int_equal(errand_digest(in->runtime), digest);
    assert_true(kept_back > 0);
    in->lease->executor->ops = ops;
    world_end(in);
}

/* I20: which of two at one instant is first follows from the seed. */
static void
equal_dues_are_told_in_an_order_of_the_seed(void **state)
{
    test_world *in = *state;
    unsigned first[2] = {0, 0};

    for (uint64_t seed = 0; seed < 40; seed++) {
        world_job jobs[2] = {{.ran = 0}, {.ran = 0}};
        errand_identity names[2];

        restart(in, ERRAND_ORDER_PACED, seed, 2);
        assert_int_equal(errand_order_latency(in->runtime, 1, 1), ERRAND_OK);
        for (unsigned i = 0; i < 2; i++)
            names[i] = world_start(in, &jobs[i]);
        if (extra_of(in, &names[0])->due == extra_of(in, &names[1])->due) {
            drive_all(in);
            first[in->news[1].wait == &jobs[0]]++;
        }
        world_end(in);
    }
    assert_true(first[0] > 5 && first[1] > 5);
}

/* ---- ends -------------------------------------------------------------------------------------- */

static errand_status inside_status[3];

static void
wait_inside(errand_job *job, world_job *self)
{
    (void)job;
    inside_status[0] = errand_park(self->world->runtime, 0);
    inside_status[1] = errand_lease_wait_room(self->world->lease, 0);
    inside_status[2] = errand_run(self->world->runtime, &(errand_task_id){0}, 0);
}

/* I13 */
static void
a_job_may_not_wait_for_an_errand(void **state)
{
    test_world *in = *state;
    world_job job = {.inside = wait_inside};

    for (int pool = 0; pool < 2; pool++) {
        restart(in, ERRAND_ORDER_PACED, 4, 1);
        if (pool == 0)
            assert_int_equal(errand_lease_shutdown(&in->lease, 0, NULL), ERRAND_OK);
        if (pool == 0)
            in->lease = in->runtime->leases[0];
        world_start(in, &job);
        drive_all(in);
        for (int i = 0; i < 3; i++)
            assert_int_equal(inside_status[i],
                             pool == 0 ? ERRAND_EDEADLOCK : ERRAND_ETHREAD);
        world_end(in);
    }
}

int
main(void)
{
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, actors_setup, world_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(the_first_due_is_told_first_although_it_ends_last),
        WITH_WORLD(a_due_job_behind_a_busy_worker_is_run_by_who_waits),
        WITH_WORLD(nothing_is_told_early),
        WITH_WORLD(no_job_runs_before_its_begin),
        WITH_WORLD(digest_is_that_of_inline_order_with_any_workers),
        WITH_WORLD(wakes_are_hints),
        WITH_WORLD(equal_dues_are_told_in_an_order_of_the_seed),
        WITH_WORLD(a_job_may_not_wait_for_an_errand),
    };
    return test_group("runtime/paced_pool", tests, NULL, NULL);
}
