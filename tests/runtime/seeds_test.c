/* SPDX-License-Identifier: MIT */
/* Goal: in the seeded orders everything that a program can see follows from its seed.
 * Method: the same small program run twice, or with one thing changed, and digests compared. */
#include <sched.h>
#include <string.h>
#include "actor.h"

enum { WORKERS = 6, ROUNDS = 5 };

typedef struct program {
    actor root, workers[WORKERS], children[WORKERS];
    world_job jobs[WORKERS][ROUNDS];
    unsigned rounds[WORKERS];
} program;

static errand_task_answer
step_worker(errand_task *task, actor *self, const errand_task_news *news)
{
    program *all = self->arg;
    size_t me = (size_t)(self - all->workers);
    unsigned round = all->rounds[me]++;

    (void)news;
    if (round >= ROUNDS)
        return ERRAND_TASK_DONE;
    if (round == 2 && me % 2 == 0) {
        all->children[me] =
            (actor){.step = step_sleep, .number = errand_task_random(task) % MS};
        actor_spawn(self->in, &self->id, "child", &all->children[me]);
    }
    switch ((errand_task_random(task) >> 20) % 4) {
    case 0:
        self->status = errand_task_yield(task);
        break;
    case 1:
        self->status = errand_task_sleep(task, errand_task_random(task) % (3 * MS));
        break;
    default: {
        errand_spec spec = world_spec(&all->jobs[me][round]);

        all->jobs[me][round].world = self->in;
        self->status = errand_task_await(task, self->in->lease, &spec, NEVER, NULL);
    } break;
    }
    assert_int_equal(self->status, ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
step_root(errand_task *task, actor *self, const errand_task_news *news)
{
    program *all = self->arg;
    errand_task_id ids[WORKERS];

    if (news->why != ERRAND_WHY_START && ++self->number == WORKERS)
        return ERRAND_TASK_DONE;
    for (size_t i = 0; i < WORKERS; i++) {
        if (news->why == ERRAND_WHY_START) {
            all->workers[i] = (actor){.step = step_worker, .arg = all};
            actor_spawn(self->in, &self->id, "worker", &all->workers[i]);
        }
        ids[i] = all->workers[i].id;
    }
    self->status =
        errand_task_join(task, &ids[self->number], WORKERS - self->number, NEVER);
    return ERRAND_TASK_WAIT;
}

static void
begin_program(test_world *in, program *all)
{
    memset(all, 0, sizeof *all);
    all->root = (actor){.step = step_root, .arg = all};
    actor_spawn(in, NULL, "root", &all->root);
}

static uint64_t
digest_of(test_world *in, uint64_t seed, uint32_t items)
{
    static program all;
    errand_turn turn;
    uint64_t digest;

    actors_restart(in, seed, NULL, NULL);
    begin_program(in, &all);
    do
        turn = drive_items(in, items);
    while (turn.kind == ERRAND_TURN_PROGRESS);
    assert_int_equal(turn.kind, ERRAND_TURN_QUIESCENT);
    actor_end(&all.root);
    digest = errand_digest(in->runtime);
    assert_int_equal(errand_digest(in->runtime), digest); /* D46 */
    assert_true(errand_reproducible(in->runtime, NULL, 0));
    return digest;
}

/* D1, D2 */
static void
same_seed_gives_the_same_digest_and_no_two_seeds_do(void **state)
{
    static uint64_t digests[1000];
    uint64_t seeds = test_scaled(1000);

    for (uint64_t seed = 0; seed < seeds; seed++) {
        digests[seed] = digest_of(*state, seed, 256);
        assert_int_equal(digest_of(*state, seed, 256), digests[seed]);
        for (uint64_t other = 0; other < seed; other++)
            assert_int_not_equal(digests[other], digests[seed]);
    }
}

static void
how_turns_are_cut_changes_nothing(void **state)
{
    static const uint32_t items[] = {0, 1, 2, 3, 5, 16};

    for (uint64_t seed = 1; seed < 20; seed++) {
        uint64_t digest = digest_of(*state, seed, 256);

        for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
            assert_int_equal(digest_of(*state, seed, items[i]), digest);
    }
}

/* I8: a pool's worker is waited for, and changes nothing. */
static void
pool_of_threads_gives_the_same_digest_as_the_manual_executor(void **state)
{
    test_world *in = *state;
    errand_executor *manual;
    errand_lease *lease;

    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        const errand_blocking_config pool = {
            .struct_size = sizeof pool, .workers_min = workers, .workers_max = workers};
        uint64_t digest = digest_of(in, 99, 256);
        static program all;

        actors_restart(in, 99, NULL, NULL);
        manual = in->executor;
        assert_int_equal(errand_blocking_create(&pool, &in->executor), ERRAND_OK);
        lease = in->lease;
        assert_int_equal(errand_attach(in->runtime, in->executor, 0, &in->lease),
                         ERRAND_OK);
        begin_program(in, &all);
        while (drive_items(in, 256).kind == ERRAND_TURN_PROGRESS)
            continue;
        assert_int_equal(errand_digest(in->runtime), digest);
        in->lease = lease;
        world_end(in);
        errand_executor_abandon(&manual);
        while (errand_testing_live_bytes() != in->bytes)
            sched_yield(); /* the pool's threads end on their own */
    }
}

static errand_step steps[256];
static size_t step_count;

static void
note_step(void *arg, const errand_step *step)
{
    (void)arg;
    if (step_count < 256)
        steps[step_count++] = *step;
}

static uint64_t
digest_with_note(test_world *in, const char *label, const char *bytes)
{
    actors_restart(in, 7, NULL, NULL);
    assert_int_equal(errand_audit_note(in->runtime, label, bytes, strlen(bytes)),
                     ERRAND_OK);
    return errand_digest(in->runtime);
}

/* D42 */
static void
notes_enter_the_digest_with_their_lengths(void **state)
{
    test_world *in = *state;

    assert_int_equal(digest_with_note(in, "a", "bc"), digest_with_note(in, "a", "bc"));
    assert_int_not_equal(digest_with_note(in, "a", "bc"),
                         digest_with_note(in, "ab", "c"));
    assert_int_not_equal(digest_with_note(in, "a", ""), digest_with_note(in, "a", "b"));
    assert_int_equal(errand_audit_note(in->runtime, NULL, "", 0), ERRAND_EINVAL);
}

static uint64_t content;

static uint64_t
digest_content(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return content;
}

static uint64_t
digest_with_content(test_world *in, bool registered, uint64_t value)
{
    world_job job = {.give_payload = true};

    actors_restart(in, 7, NULL, NULL);
    content = value;
    for (int i = 0; registered && i < 2; i++) /* the second replaces the first */
        assert_int_equal(
            errand_audit_payload(in->runtime, &world_payload_type, digest_content),
            ERRAND_OK);
    world_start(in, &job);
    drive_all(in);
    assert_int_equal(job.payload_dropped, 1);
    return errand_digest(in->runtime);
}

/* D45 */
static void
registered_payloads_enter_the_digest_by_content(void **state)
{
    test_world *in = *state;

    assert_int_equal(digest_with_content(in, false, 1),
                     digest_with_content(in, false, 2));
    assert_int_equal(digest_with_content(in, true, 1), digest_with_content(in, true, 1));
    assert_int_not_equal(digest_with_content(in, true, 1),
                         digest_with_content(in, true, 2));
}

static void
trace_and_snapshots_change_no_digest(void **state)
{
    static program all;
    test_world *in = *state;
    uint64_t digest = digest_of(in, 21, 256);
    errand_snapshot snapshot;

    actors_restart(in, 21, NULL, NULL);
    step_count = 0;
    assert_int_equal(errand_trace(in->runtime, note_step, NULL), ERRAND_OK);
    begin_program(in, &all);
    while (drive_items(in, 1).kind == ERRAND_TURN_PROGRESS)
        assert_int_equal(errand_runtime_snapshot(in->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(errand_digest(in->runtime), digest);
    assert_true(step_count > 50);
    for (size_t i = 0; i < step_count; i++) {
        assert_int_equal(steps[i].step, i + 1);
        assert_true(i == 0 || steps[i].time_ns >= steps[i - 1].time_ns);
    }
    world_end(in);
}

static void
arrival_order_has_no_digest_and_no_latencies(void **state)
{
    test_world *in = *state;

    world_end(in);
    in->config.order = ERRAND_ORDER_ARRIVAL;
    world_begin(in, &in->config, 0);
    assert_int_equal(errand_digest(in->runtime), 0);
    assert_int_equal(errand_order_latency(in->runtime, 1, 5), ERRAND_EUNSUPPORTED);
    assert_int_equal(errand_order_latency(in->runtime, 1, 0), ERRAND_EINVAL);
    assert_int_equal(errand_order_latency(in->runtime, 1, UINT64_MAX), ERRAND_EINVAL);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            same_seed_gives_the_same_digest_and_no_two_seeds_do, actors_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(how_turns_are_cut_changes_nothing, actors_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(
            pool_of_threads_gives_the_same_digest_as_the_manual_executor, actors_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(notes_enter_the_digest_with_their_lengths,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(registered_payloads_enter_the_digest_by_content,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(trace_and_snapshots_change_no_digest,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(arrival_order_has_no_digest_and_no_latencies,
                                        actors_setup, world_teardown),
    };
    return test_group("runtime/seeds", tests, NULL, NULL);
}
