/* SPDX-License-Identifier: MIT */
/* Goal: what a run leaves is enough to go on where it ended, once, and nothing else of it comes
 * along.
 * Method: runs in inline order, a checkpoint of each, and runtimes that are made of it, some by way
 * of its bytes. */
#include <string.h>
#include "errand/checkpoint.h"
#include "errand/tree.h"
#include "actor.h"

#define SECOND UINT64_C(1000000000)

/* Sleeps ten seconds, then draws. */
static errand_task_answer
step_draw(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why == ERRAND_WHY_START) {
        assert_int_equal(errand_task_sleep(task, 10 * SECOND), ERRAND_OK);
        return ERRAND_TASK_WAIT;
    }
    self->number = errand_task_random(task);
    return ERRAND_TASK_DONE;
}

static errand_status
run(test_world *in, actor *root, uint64_t deadline, errand_run_report *report)
{
    errand_task_spec spec = actor_spec(in, "root", root);
    errand_tree tree;

    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    root->id.task = tree.spawned + 1;
    return errand_run_root(in->runtime, &spec, deadline, report);
}

/* Ends the world's runtime and makes one of the checkpoint. */
static void
recover(test_world *in, errand_checkpoint *checkpoint, uint64_t deadline)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .held_checkpoint = checkpoint,
                                    .deadline_ns = deadline,
                                    .on_completion = in->config.on_completion,
                                    .held_on_completion_arg =
                                        in->config.held_on_completion_arg};

    world_end(in);
    in->bytes = errand_testing_live_bytes(); /* the checkpoint's among them */
    world_begin(in, &config, 0);
}

static errand_checkpoint *
take(test_world *in)
{
    errand_checkpoint *checkpoint = NULL;

    assert_int_equal(errand_runtime_checkpoint(in->runtime, &checkpoint), ERRAND_OK);
    return checkpoint;
}

static errand_checkpoint_view
view_of(const errand_checkpoint *checkpoint)
{
    errand_checkpoint_view view;

    assert_int_equal(errand_checkpoint_read(checkpoint, &view), ERRAND_OK);
    return view;
}

/* After the last world_end: the checkpoint was counted as there before. */
static void
give_up(test_world *in, errand_checkpoint *checkpoint)
{
    world_end(in);
    errand_checkpoint_abandon(&checkpoint);
    errand_checkpoint_abandon(&checkpoint);
    in->bytes = errand_testing_live_bytes();
}

/* D46, D85, D87 */
static void
time_streams_and_digest_go_on_where_the_run_ended(void **state)
{
    test_world *in = *state;
    actor first = {.step = step_draw}, second = {.step = step_draw};
    errand_checkpoint *checkpoint;
    errand_run_report report;
    uint64_t digest;

    assert_int_equal(run(in, &first, NEVER, &report), ERRAND_OK);
    digest = errand_digest(in->runtime);
    checkpoint = take(in);
    assert_int_equal(errand_digest(in->runtime), digest); /* looking changes nothing */
    assert_int_equal(view_of(checkpoint).digest, digest);
    assert_int_equal(view_of(checkpoint).now_ns, 10 * SECOND);
    assert_int_equal(view_of(checkpoint).seed, 7);
    recover(in, checkpoint, 0);
    assert_int_equal(errand_runtime_now(in->runtime), 10 * SECOND);
    assert_int_equal(errand_digest(in->runtime), digest);
    assert_int_equal(run(in, &second, NEVER, &report), ERRAND_OK);
    assert_int_equal(errand_runtime_now(in->runtime), 20 * SECOND);
    assert_int_not_equal(first.number, second.number); /* not the same draws again */
    assert_int_not_equal(report.digest, digest);
    give_up(in, checkpoint);
}

static size_t
save(errand_checkpoint *checkpoint, unsigned char *bytes, size_t room)
{
    size_t size = errand_checkpoint_save(checkpoint, NULL, 0);

    assert_true(size > 0 && size <= room);
    assert_int_equal(errand_checkpoint_save(checkpoint, bytes, size - 1), size);
    assert_int_equal(errand_checkpoint_save(checkpoint, bytes, size), size);
    return size;
}

/* D1, D85: what was saved says the same as what was kept */
static void
runs_of_one_checkpoints_bytes_are_the_same(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_draw};
    errand_checkpoint *checkpoint, *copies[2];
    unsigned char bytes[1024];
    errand_run_report report, reports[2];
    uint64_t draws[2];
    size_t size;

    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    checkpoint = take(in);
    size = save(checkpoint, bytes, sizeof bytes);
    errand_checkpoint_abandon(&checkpoint);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(errand_checkpoint_load(bytes, size, &copies[i]), ERRAND_OK);
        recover(in, copies[i], 0);
        root = (actor){.step = step_draw};
        assert_int_equal(run(in, &root, NEVER, &reports[i]), ERRAND_OK);
        draws[i] = root.number;
    }
    assert_int_equal(draws[0], draws[1]);
    assert_int_equal(reports[0].digest, reports[1].digest);
    world_end(in);
    errand_checkpoint_abandon(&copies[0]);
    give_up(in, copies[1]);
}

/* D92 */
static void
checkpoint_is_used_up_by_one_runtime(void **state)
{
    test_world *in = *state;
    errand_checkpoint *checkpoint = take(in);
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .held_checkpoint = checkpoint};
    errand_runtime *other = NULL;
    unsigned char bytes[1024];

    config.seed = 8; /* another than the checkpoint's */
    assert_int_equal(errand_runtime_create(&config, &other), ERRAND_EINVAL);
    config.seed = 0;
    config.start_ns = 5;
    assert_int_equal(errand_runtime_create(&config, &other), ERRAND_EINVAL);
    config.start_ns = 0;
    config.operations_max = UINT32_MAX;
    assert_int_equal(errand_runtime_create(&config, &other), ERRAND_EINVAL);
    assert_false(view_of(checkpoint).spent);
    config.operations_max = 0;
    recover(in, checkpoint, 0);
    assert_true(view_of(checkpoint).spent);
    assert_int_equal(errand_runtime_create(&config, &other), ERRAND_ESPENT);
    assert_null(other);
    assert_int_equal(errand_checkpoint_save(checkpoint, bytes, sizeof bytes), 0);
    assert_int_equal(in->misuses, 4);
    give_up(in, checkpoint);
}

static void
checkpoint_outlives_a_runtime_that_could_not_be_made(void **state)
{
    test_world *in = *state;
    errand_checkpoint *checkpoint;
    errand_runtime_config config = {.struct_size = sizeof config};
    errand_runtime *other = NULL;
    errand_status status;
    uint64_t n = 0;

    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_runtime_checkpoint(in->runtime, &checkpoint), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(2);
    assert_int_equal(errand_runtime_checkpoint(in->runtime, &checkpoint), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    assert_int_equal(errand_order_latency(in->runtime, 1, 50 * MS), ERRAND_OK);
    config.held_checkpoint = checkpoint = take(in);
    do {
        (void)errand_testing_fail_allocation(++n);
        status = errand_runtime_create(&config, &other);
        (void)errand_testing_fail_allocation(0);
        assert_int_equal(view_of(checkpoint).spent, status == ERRAND_OK);
    } while (status == ERRAND_ENOMEM && n < 100);
    assert_int_equal(status, ERRAND_OK);
    assert_true(n > 3);
    assert_int_equal(errand_runtime_shutdown(&other, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    give_up(in, checkpoint);
}

static errand_task_answer
step_forever(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)self;
    (void)news;
    assert_int_equal(errand_task_sleep(task, SECOND), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* D88 */
static void
deadline_is_absolute_and_one_budget_for_all_lives(void **state)
{
    test_world *in = *state;
    errand_checkpoint *checkpoint, *second;
    actor root = {.step = step_draw};
    errand_run_report report;

    checkpoint = take(in);
    recover(in, checkpoint, 15 * SECOND);
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    second = take(in);
    assert_int_equal(view_of(second).deadline_ns, 15 * SECOND);
    recover(in, second, 0);
    root = (actor){.step = step_forever};
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_ETIMEOUT);
    assert_int_equal(report.time_ns, 15 * SECOND);
    world_end(in);
    errand_checkpoint_abandon(&second);
    in->bytes = errand_testing_live_bytes();
    world_begin(in,
                &(errand_runtime_config){.struct_size = sizeof in->config,
                                         .order = ERRAND_ORDER_INLINE,
                                         .deadline_ns = 5 * SECOND},
                0);
    second = take(in);
    recover(in, second, 30 * SECOND); /* a new one takes its place */
    root = (actor){.step = step_forever};
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_ETIMEOUT);
    assert_int_equal(report.time_ns, 30 * SECOND);
    world_end(in);
    errand_checkpoint_abandon(&second);
    give_up(in, checkpoint);
}

static errand_task_answer
step_fail(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)task;
    (void)self;
    (void)news;
    return ERRAND_TASK_FAILED;
}

static errand_task_answer
step_with_failing_child(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_task_id id = errand_task_self(task);

    if (news->why == ERRAND_WHY_START)
        actor_spawn(self->in, &id, "failing", self->arg);
    else
        return ERRAND_TASK_DONE;
    assert_int_equal(errand_task_sleep(task, SECOND), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* D74 */
static void
what_failures_do_survives_a_recovery(void **state)
{
    test_world *in = *state;
    errand_runtime_config config = in->config;
    errand_checkpoint *checkpoint;
    actor failing = {.step = step_fail};
    actor root = {.step = step_with_failing_child, .arg = &failing};
    errand_run_report report;

    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    assert_int_equal(report.end, ERRAND_END_DONE); /* caught */
    checkpoint = take(in);
    recover(in, checkpoint, 0);
    failing = (actor){.step = step_fail};
    root = (actor){.step = step_with_failing_child, .arg = &failing};
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    assert_int_equal(report.end, ERRAND_END_DONE);
    world_end(in);
    errand_checkpoint_abandon(&checkpoint);
    in->bytes = errand_testing_live_bytes();
    config.flags |= ERRAND_RUNTIME_PROPAGATE;
    world_begin(in, &config, 0);
    checkpoint = take(in);
    recover(in, checkpoint, 0);
    failing = (actor){.step = step_fail};
    root = (actor){.step = step_with_failing_child, .arg = &failing};
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    assert_int_equal(report.end, ERRAND_END_FAILED);
    give_up(in, checkpoint);
}

/* D84, D86 */
static void
no_task_and_no_stop_comes_along(void **state)
{
    test_world *in = *state;
    errand_checkpoint *checkpoint;
    errand_signal signal;
    errand_turn turn;
    errand_tree tree;

    assert_int_equal(errand_signal_hold(in->runtime, &signal), ERRAND_OK);
    assert_int_equal(errand_stop(in->runtime, 4), ERRAND_OK);
    checkpoint = take(in);
    recover(in, checkpoint, 0);
    assert_false(errand_stop_asked(in->runtime, NULL));
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    assert_int_equal(tree.running + tree.contexts + tree.signals, 0);
    turn = drive_all(in);
    assert_int_equal(turn.kind, ERRAND_TURN_QUIESCENT);
    give_up(in, checkpoint);
}

/* D85: latency models are among the settings */
static void
models_and_numbers_of_operations_go_on(void **state)
{
    test_world *in = *state;
    world_job jobs[2] = {{.ran = 0}};
    errand_checkpoint *checkpoint;
    uint64_t ends[2];

    assert_int_equal(errand_order_latency(in->runtime, 1, 800 * MS), ERRAND_OK);
    jobs[0].world = jobs[1].world = in;
    world_start(in, &jobs[0]);
    drive_all(in);
    ends[0] = errand_runtime_now(in->runtime);
    assert_in_range(ends[0], 400 * MS, 1600 * MS);
    checkpoint = take(in);
    recover(in, checkpoint, 0);
    world_start(in, &jobs[1]);
    drive_all(in);
    ends[1] = errand_runtime_now(in->runtime) - ends[0];
    assert_in_range(ends[1], 400 * MS, 1600 * MS);
    assert_int_not_equal(ends[0], ends[1]); /* another draw of the same stream */
    give_up(in, checkpoint);
}

static errand_task_answer
step_stall(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)self;
    (void)news;
    assert_int_equal(errand_task_park(task, NEVER), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* D150 */
static void
run_that_goes_on_has_no_checkpoint_and_a_failed_one_has(void **state)
{
    test_world *in = *state;
    actor waiting = {.step = step_stall}, root = {.step = step_stall};
    errand_checkpoint *checkpoint = NULL;
    errand_run_report report;

    actor_spawn(in, NULL, "waiting", &waiting);
    assert_int_equal(errand_runtime_checkpoint(in->runtime, &checkpoint), ERRAND_EBUSY);
    assert_null(checkpoint);
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_EDEADLOCK);
    checkpoint = take(in);
    assert_int_equal(view_of(checkpoint).digest, errand_digest(in->runtime));
    assert_int_equal(view_of(checkpoint).digest, report.digest);
    recover(in, checkpoint, 0);
    root = (actor){.step = step_draw};
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    give_up(in, checkpoint);
    world_begin(in, &(errand_runtime_config){.struct_size = sizeof in->config}, 0);
    assert_int_equal(errand_runtime_checkpoint(in->runtime, &checkpoint),
                     ERRAND_EUNSUPPORTED);
    world_end(in);
}

static void
damaged_bytes_are_no_checkpoint(void **state)
{
    test_world *in = *state;
    errand_checkpoint *checkpoint, *loaded = NULL;
    unsigned char bytes[1024];
    size_t size;

    assert_int_equal(errand_order_latency(in->runtime, 3, 5 * MS), ERRAND_OK);
    checkpoint = take(in);
    size = save(checkpoint, bytes, sizeof bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 16;
        assert_int_equal(errand_checkpoint_load(bytes, size, &loaded), ERRAND_EINVAL);
        bytes[i] ^= 16;
        assert_int_equal(errand_checkpoint_load(bytes, i, &loaded), ERRAND_EINVAL);
    }
    assert_int_equal(errand_checkpoint_load(NULL, size, &loaded), ERRAND_EINVAL);
    assert_int_equal(errand_checkpoint_load(bytes, size, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_checkpoint_read(NULL, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_checkpoint_save(NULL, NULL, 0), 0);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_checkpoint_load(bytes, size, &loaded), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    assert_null(loaded);
    errand_checkpoint_abandon(&checkpoint);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(time_streams_and_digest_go_on_where_the_run_ended,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(runs_of_one_checkpoints_bytes_are_the_same,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(checkpoint_is_used_up_by_one_runtime,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(
            checkpoint_outlives_a_runtime_that_could_not_be_made, world_setup_inline,
            world_teardown),
        cmocka_unit_test_setup_teardown(deadline_is_absolute_and_one_budget_for_all_lives,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(what_failures_do_survives_a_recovery,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(no_task_and_no_stop_comes_along,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(models_and_numbers_of_operations_go_on,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(
            run_that_goes_on_has_no_checkpoint_and_a_failed_one_has, world_setup_inline,
            world_teardown),
        cmocka_unit_test_setup_teardown(damaged_bytes_are_no_checkpoint,
                                        world_setup_inline, world_teardown),
    };
    return test_group("runtime/checkpoint", tests, NULL, NULL);
}
