/* SPDX-License-Identifier: MIT */
/* Goal: a failure carries its own words to whoever reads them, and below a root that propagates
 * the first one is the root's.
 * Method: actors on the manual executor; the one suite runs in arrival and in inline order. */
#include <string.h>
#include "errand/tree.h"
#include "actor.h"
#include "both.h"

/* Fails with code number and the text arg when it is woken. */
static errand_task_answer
step_fail_late(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why == ERRAND_WHY_START) {
        assert_int_equal(errand_task_park(task, NEVER), ERRAND_OK);
        return ERRAND_TASK_WAIT;
    }
    if (self->arg != NULL)
        self->status =
            errand_task_fail(task, (int32_t)self->number, "%s", (const char *)self->arg);
    return ERRAND_TASK_FAILED;
}

static errand_task_id
spawn_root(test_world *in, uint32_t flags, const char *label, actor *self)
{
    errand_task_spec spec = actor_spec(in, label, self);

    spec.flags = flags;
    assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &self->id), ERRAND_OK);
    return self->id;
}

static errand_handle
open_handle(test_world *in, const actor *self)
{
    errand_handle handle;

    assert_int_equal(errand_handle_open(in->runtime, &self->id, &handle), ERRAND_OK);
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

static void
wake(test_world *in, const actor *self)
{
    assert_int_equal(errand_task_wake(in->runtime, &self->id), ERRAND_OK);
}

/* D71, D73 */
static void
caught_failure_is_exited_and_siblings_go_on(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, sibling = {.step = step_park};
    actor failing = {.step = step_fail_late, .number = 42, .arg = "no more tea"};
    actor below = {.step = step_park};
    errand_failure failure;
    errand_handle handle, watch;

    spawn_root(in, ERRAND_TASK_CATCH, "root", &root);
    actor_spawn(in, &root.id, "sibling", &sibling);
    actor_spawn(in, &root.id, "failing", &failing);
    actor_spawn(in, &failing.id, "below", &below);
    handle = open_handle(in, &failing);
    assert_int_equal(errand_handle_watch(in->runtime, &failing.id, &watch), ERRAND_OK);
    drive_all(in);
    wake(in, &failing);
    drive_all(in);
    assert_int_equal(read_handle(in, &handle, &failure), ERRAND_HANDLE_EXITED);
    assert_int_equal(failure.code, 42);
    assert_string_equal(failure.message, "no more tea");
    assert_int_equal(failure.task, failing.id.task);
    failure.code = 0;
    errand_handle_close(in->runtime, &handle);
    assert_int_equal(read_handle(in, &watch, &failure), ERRAND_HANDLE_EXITED);
    assert_int_equal(failure.code, 42);
    assert_int_equal(actor_end(&below), ERRAND_END_ABORTED);
    assert_int_equal(root.ends + sibling.ends, 0);
    errand_handle_close(in->runtime, &watch);
    world_end(in);
}

/* D70 */
static void
first_failure_is_the_roots_with_its_own_words(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, between = {.step = step_park};
    actor first = {.step = step_fail_late, .number = 1, .arg = "first"};
    actor second = {.step = step_fail_late, .number = 2, .arg = "second"};
    actor other = {.step = step_park};
    errand_failure failure;
    errand_handle handle;

    spawn_root(in, ERRAND_TASK_PROPAGATE, "root", &root);
    spawn_root(in, 0, "other", &other);
    actor_spawn(in, &root.id, "between", &between);
    actor_spawn(in, &between.id, "first", &first);
    actor_spawn(in, &between.id, "second", &second);
    handle = open_handle(in, &root);
    drive_all(in);
    wake(in, &first);
    drive_items(in, 1);
    while (first.ends == 0)
        drive_items(in, 1);
    assert_int_equal(root.ends, 0); /* at its next turn, not before */
    wake(in, &second);
    drive_all(in);
    assert_int_equal(read_handle(in, &handle, &failure), ERRAND_HANDLE_EXITED);
    assert_int_equal(failure.code, 1);
    assert_string_equal(failure.message, "first");
    assert_int_equal(failure.task, first.id.task);
    assert_int_equal(root.visits, 1); /* it was not resumed for it */
    assert_int_equal(actor_end(&root), ERRAND_END_FAILED);
    assert_int_equal(actor_end(&between), ERRAND_END_ABORTED);
    assert_int_equal(other.ends, 0); /* another root's business */
    errand_handle_close(in->runtime, &handle);
    world_end(in);
}

/* D70: the root may wait for anything, and what it waited for is given up */
static void
root_that_awaits_an_operation_fails_too(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    actor root = {.step = step_await, .arg = &job};
    actor failing = {.step = step_fail_late};
    errand_failure failure;
    errand_handle handle;
    /* Not before the failure; in arrival order it is never stepped. */
    errand_status slow = errand_order_latency(in->runtime, 1, UINT64_C(1000000000));

    assert_true(slow == ERRAND_OK || slow == ERRAND_EUNSUPPORTED);
    spawn_root(in, ERRAND_TASK_PROPAGATE, "root", &root);
    actor_spawn(in, &root.id, "failing", &failing);
    handle = open_handle(in, &root);
    while (root.visits + failing.visits < 2)
        drive_items(in, 1);
    wake(in, &failing);
    while (failing.ends == 0)
        drive_items(in, 1);
    drive_all(in);
    assert_int_equal(read_handle(in, &handle, &failure), ERRAND_HANDLE_EXITED);
    assert_int_equal(failure.code, 0);
    assert_non_null(strstr(failure.message, "'failing'"));
    assert_int_equal(failure.task, failing.id.task);
    assert_int_equal(root.visits, 1);
    errand_handle_close(in->runtime, &handle);
    world_end(in);
    assert_int_equal(job.dropped, 1);
}

/* D72 */
static void
failure_of_the_root_is_never_caught(void **state)
{
    static const uint32_t modes[] = {0, ERRAND_TASK_CATCH, ERRAND_TASK_PROPAGATE};
    test_world *in = *state;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        actor root = {.step = step_fail_late, .number = 7, .arg = "own"};
        errand_failure failure;
        errand_handle handle;

        spawn_root(in, modes[i], "root", &root);
        handle = open_handle(in, &root);
        drive_all(in);
        wake(in, &root);
        assert_int_equal(errand_run(in->runtime, &root.id, NEVER), ERRAND_OK); /* D11 */
        assert_int_equal(read_handle(in, &handle, &failure), ERRAND_HANDLE_EXITED);
        assert_int_equal(failure.code, 7);
        errand_handle_close(in->runtime, &handle);
    }
    world_end(in);
}

static errand_task *leaked;

static errand_task_answer
step_think_twice(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)self;
    leaked = task;
    if (news->why == ERRAND_WHY_START) {
        assert_int_equal(errand_task_fail(task, 0, "x"), ERRAND_EINVAL);
        (void)errand_testing_fail_allocation(1);
        assert_int_equal(errand_task_fail(task, 2, "x"), ERRAND_ENOMEM);
        assert_int_equal(errand_task_fail(task, 3, "written in vain"), ERRAND_OK);
        assert_int_equal(errand_task_fail(task, 4, "%0300d", 5), ERRAND_OK);
        assert_int_equal(errand_task_yield(task), ERRAND_OK);
        return ERRAND_TASK_WAIT;
    }
    return ERRAND_TASK_FAILED;
}

static void
last_words_count_and_long_ones_are_cut(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_think_twice};
    errand_failure failure;
    errand_handle handle;

    actor_spawn(in, NULL, "self", &self);
    handle = open_handle(in, &self);
    drive_all(in);
    assert_int_equal(read_handle(in, &handle, &failure), ERRAND_HANDLE_EXITED);
    assert_int_equal(failure.code, 4);
    assert_int_equal(strlen(failure.message), sizeof failure.message - 1);
    assert_int_equal(errand_task_fail(leaked, 1, "too late"), ERRAND_EMISUSE);
    assert_int_equal(in->misuses, 2);
    errand_handle_close(in->runtime, &handle);
    world_end(in);
}

/* The default of a runtime's roots, and what one says against it. */
static void
runtime_says_what_its_roots_do(void **state)
{
    test_world *in = *state;
    errand_runtime_config config = in->config;
    actor root = {.step = step_park}, failing = {.step = step_fail_late};
    actor tolerant = {.step = step_park}, other = {.step = step_fail_late};
    errand_task_spec spec;

    world_end(in);
    config.flags |= ERRAND_RUNTIME_PROPAGATE;
    world_begin(in, &config, 0);
    spawn_root(in, 0, "root", &root);
    actor_spawn(in, &root.id, "failing", &failing);
    spawn_root(in, ERRAND_TASK_CATCH, "tolerant", &tolerant);
    actor_spawn(in, &tolerant.id, "other", &other);
    drive_all(in);
    wake(in, &failing);
    wake(in, &other);
    drive_all(in);
    assert_int_equal(actor_end(&root), ERRAND_END_FAILED);
    assert_int_equal(actor_end(&other), ERRAND_END_FAILED);
    assert_int_equal(tolerant.ends, 0);
    spec = actor_spec(in, "child", &other);
    spec.flags = ERRAND_TASK_CATCH;
    assert_int_equal(errand_spawn(in->runtime, &tolerant.id, &spec, NULL), ERRAND_EINVAL);
    spec.flags = ERRAND_TASK_CATCH | ERRAND_TASK_PROPAGATE;
    assert_int_equal(errand_spawn(in->runtime, NULL, &spec, NULL), ERRAND_EINVAL);
    assert_int_equal(in->misuses, 2);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        BOTH_ORDERS(caught_failure_is_exited_and_siblings_go_on),
        BOTH_ORDERS(first_failure_is_the_roots_with_its_own_words),
        BOTH_ORDERS(root_that_awaits_an_operation_fails_too),
        BOTH_ORDERS(failure_of_the_root_is_never_caught),
        BOTH_ORDERS(last_words_count_and_long_ones_are_cut),
        BOTH_ORDERS(runtime_says_what_its_roots_do),
    };
    return test_group("runtime/failures", tests, NULL, NULL);
}
