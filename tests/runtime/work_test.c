/* SPDX-License-Identifier: MIT */
/* Goal: a task whose body is a worker's job has the handle, the place in the tree and the failures
 * of every task, on a shared worker and on a thread of its own.
 * Method: each test runs with work on a manual executor (or at its due, inline) and with
 * dedicated work; the one suite runs in arrival and in inline order. */
#include <pthread.h>
#include <string.h>
#include "errand/tree.h"
#include "actor.h"
#include "both.h"
#include "gate.h"

typedef struct work_scene {
    world_job job;
    errand_spec spec;
    errand_work work;
    unsigned done;
    errand_outcome outcome;
} work_scene;

static void
on_done(void *arg, errand_completion *completion)
{
    work_scene *scene = arg;

    scene->done++;
    scene->outcome = completion->outcome;
}

static errand_work *
prepare(test_world *in, work_scene *scene, bool dedicated)
{
    world_job job = scene->job;

    *scene = (work_scene){.job = job};
    scene->job.world = in;
    scene->spec = world_spec(&scene->job);
    scene->work = (errand_work){.struct_size = sizeof scene->work,
                                .flags = dedicated ? ERRAND_WORK_DEDICATED : 0,
                                .label = "work",
                                .lease = dedicated ? NULL : in->lease,
                                .spec = &scene->spec,
                                .held_on_done = on_done,
                                .held_arg = scene};
    in->threads |= dedicated;
    return &scene->work;
}

/* Until nothing is owed: work on a thread of its own takes its time. */
static void
run_all(test_world *in)
{
    errand_turn turn;
    size_t count;

    do {
        turn = drive_all(in);
        assert_int_equal(errand_manual_step(in->executor, SIZE_MAX, &count), ERRAND_OK);
        if (turn.inbox_needed && count == 0)
            assert_int_equal(errand_park(in->runtime, NEVER), ERRAND_OK);
    } while (turn.inbox_needed);
}

static errand_handle
spawn(test_world *in, const errand_task_id *parent, work_scene *scene, bool dedicated)
{
    errand_work *work = prepare(in, scene, dedicated);
    errand_context context;
    errand_handle handle;

    assert_int_equal(errand_context_create(in->runtime, parent, "place", &context),
                     ERRAND_OK);
    assert_int_equal(errand_context_spawn_work(in->runtime, &context, work, &handle),
                     ERRAND_OK);
    return handle;
}

static errand_handle_state
read_handle(test_world *in, const errand_handle *handle, errand_failure *out_failure)
{
    errand_handle_state state = 0;

    assert_int_equal(errand_handle_read(in->runtime, handle, &state, out_failure),
                     ERRAND_OK);
    return state;
}

/* D69 */
static void
work_ends_as_its_job_does(void **state)
{
    test_world *in = *state;
    errand_failure failure;

    for (int dedicated = 0; dedicated < 2; dedicated++) {
        work_scene good = {.job = {.give_payload = true}}, bad = {.job = {.answer = 31}};
        errand_handle handles[2] = {spawn(in, NULL, &good, dedicated),
                                    spawn(in, NULL, &bad, dedicated)};

        run_all(in);
        assert_int_equal(good.done, 1);
        assert_int_equal(good.job.payload_dropped, 1);
        assert_int_equal(read_handle(in, &handles[0], NULL), ERRAND_HANDLE_DONE);
        assert_int_equal(read_handle(in, &handles[1], &failure), ERRAND_HANDLE_EXITED);
        assert_int_equal(failure.code, 31);
        assert_int_equal(failure.task, handles[1].task.task);
        assert_int_equal(bad.outcome, ERRAND_FAILED);
        assert_int_equal(good.job.dropped + bad.job.dropped, 2);
        errand_handle_close(in->runtime, &handles[0]);
        errand_handle_close(in->runtime, &handles[1]);
    }
    world_end(in);
}

/* D75: a panic's own words are the root's, as of any failure */
static void
panic_of_work_is_the_failure_of_its_root(void **state)
{
    test_world *in = *state;

    for (int dedicated = 0; dedicated < 2; dedicated++) {
        actor root = {.step = step_park}, below = {.step = step_park};
        work_scene bad = {.job = {.panic = "the kettle is dry"}};
        errand_task_spec spec = actor_spec(in, "root", &root);
        errand_handle handle, watch;
        errand_failure failure;

        spec.flags = ERRAND_TASK_PROPAGATE;
        assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &root.id), ERRAND_OK);
        assert_int_equal(errand_handle_open(in->runtime, &root.id, &watch), ERRAND_OK);
        handle = spawn(in, &root.id, &bad, dedicated);
        actor_spawn(in, &handle.task, "below", &below);
        run_all(in);
        assert_int_equal(read_handle(in, &handle, &failure), ERRAND_HANDLE_EXITED);
        assert_int_equal(read_handle(in, &watch, &failure), ERRAND_HANDLE_EXITED);
        assert_int_equal(failure.code, -ERRAND_CODE_PANIC);
        assert_non_null(strstr(failure.message, "the kettle is dry"));
        assert_int_equal(actor_end(&below), ERRAND_END_ABORTED); /* D73 */
        errand_handle_close(in->runtime, &handle);
        errand_handle_close(in->runtime, &watch);
    }
    world_end(in);
}

/* D57, D60, D69 */
static void
work_ends_with_its_parent_and_never_starts_below_an_aborted_one(void **state)
{
    test_world *in = *state;

    for (int dedicated = 0; dedicated < 2; dedicated++) {
        actor root = {.step = step_park}, parent = {.step = step_park};
        work_scene queued = {.job = {.ran = 0}}, late = {.job = {.ran = 0}};
        errand_handle handles[2];
        errand_context context;
        errand_work *work;

        actor_spawn(in, NULL, "root", &root);
        actor_spawn(in, &root.id, "parent", &parent);
        drive_all(in);
        handles[0] = spawn(in, &parent.id, &queued, dedicated);
        assert_int_equal(errand_context_create(in->runtime, &parent.id, "late", &context),
                         ERRAND_OK);
        work = prepare(in, &late, dedicated);
        assert_int_equal(errand_task_abort(in->runtime, &parent.id), ERRAND_OK);
        assert_int_equal(
            errand_context_spawn_work(in->runtime, &context, work, &handles[1]),
            ERRAND_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(read_handle(in, &handles[i], NULL), ERRAND_HANDLE_CLOSED);
            errand_handle_close(in->runtime, &handles[i]);
        }
        run_all(in);
        assert_int_equal(queued.job.ran + late.job.ran + (int)queued.done, 0);
        assert_int_equal(queued.job.dropped + late.job.dropped, 2);
        assert_int_equal(errand_task_abort(in->runtime, &root.id), ERRAND_OK);
    }
    world_end(in);
}

static void
wait_at_the_gate(errand_job *job, world_job *self)
{
    (void)job;
    gate_wait(self->arg);
}

/* D68: dedicated work waits for no other work, and the next spawn is an ordinary one */
static void
dedicated_work_has_a_thread_that_nothing_else_waits_for(void **state)
{
    test_world *in = *state;
    test_gate gates[3];
    work_scene scenes[3] = {{.done = 0}}, shared = {.done = 0};
    errand_handle handles[3], handle;

    for (size_t i = 0; i < 3; i++) {
        gate_init(&gates[i], "dedicated");
        scenes[i].job.inside = wait_at_the_gate;
        scenes[i].job.arg = &gates[i];
        handles[i] = spawn(in, NULL, &scenes[i], true);
    }
    handle = spawn(in, NULL, &shared, false); /* of the manual executor's one worker */
    drive_all(in);
    for (size_t i = 0; i < 3; i++)
        gate_await_arrival(&gates[i]); /* all three at once */
    assert_int_equal(world_step(in, SIZE_MAX), 1);
    drive_all(in);
    assert_int_equal(read_handle(in, &handle, NULL), ERRAND_HANDLE_DONE);
    for (size_t i = 0; i < 3; i++)
        gate_open(&gates[i]);
    run_all(in);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(read_handle(in, &handles[i], NULL), ERRAND_HANDLE_DONE);
        errand_handle_close(in->runtime, &handles[i]);
    }
    errand_handle_close(in->runtime, &handle);
    world_end(in);
    for (size_t i = 0; i < 3; i++)
        gate_fini(&gates[i]);
}

static int32_t
poll_nothing(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}

static void
work_that_cannot_be_is_refused_and_stays_the_callers(void **state)
{
    test_world *in = *state;
    const errand_job_type async_type = {
        .struct_size = sizeof async_type, .name = "async", .poll = poll_nothing};
    work_scene scene = {.done = 0};
    errand_work *work = prepare(in, &scene, false);
    errand_context context, copy;
    errand_runtime *other;
    errand_handle handle;

    assert_int_equal(errand_context_create(in->runtime, NULL, "place", &context),
                     ERRAND_OK);
    copy = context;
    work->flags = 64;
    assert_int_equal(errand_spawn_work(in->runtime, NULL, work, NULL), ERRAND_EINVAL);
    work->flags = ERRAND_WORK_DEDICATED; /* and a lease */
    assert_int_equal(errand_spawn_work(in->runtime, NULL, work, NULL), ERRAND_EINVAL);
    work->lease = NULL;
    scene.spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    scene.spec.held_job = &async_type;
    assert_int_equal(errand_spawn_work(in->runtime, NULL, work, NULL),
                     ERRAND_EUNSUPPORTED);
    scene.spec.resource_class = 0;
    assert_int_equal(errand_spawn_work(in->runtime, NULL, work, NULL), ERRAND_EINVAL);
    work = prepare(in, &scene, false);
    assert_int_equal(errand_runtime_create(NULL, &other), ERRAND_OK);
    assert_int_equal(errand_attach(other, in->executor, 0, &work->lease), ERRAND_OK);
    assert_int_equal(errand_spawn_work(in->runtime, NULL, work, NULL), ERRAND_EFOREIGN);
    assert_int_equal(errand_runtime_shutdown(&other, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    work = prepare(in, &scene, false);
    assert_int_equal(
        errand_spawn_work(in->runtime, &(errand_task_id){.runtime = 1}, work, NULL),
        ERRAND_EFOREIGN);
    assert_int_equal(memcmp(&context, &copy, sizeof copy), 0);
    assert_int_equal(scene.job.dropped, 0);
    assert_int_equal(errand_context_spawn_work(in->runtime, &context, work, &handle),
                     ERRAND_OK);
    run_all(in);
    errand_handle_close(in->runtime, &handle);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        BOTH_ORDERS(work_ends_as_its_job_does),
        BOTH_ORDERS(panic_of_work_is_the_failure_of_its_root),
        BOTH_ORDERS(work_ends_with_its_parent_and_never_starts_below_an_aborted_one),
        cmocka_unit_test_setup_teardown(
            dedicated_work_has_a_thread_that_nothing_else_waits_for, world_setup,
            world_teardown),
        BOTH_ORDERS(work_that_cannot_be_is_refused_and_stays_the_callers),
    };
    return test_group("runtime/work", tests, NULL, NULL);
}
