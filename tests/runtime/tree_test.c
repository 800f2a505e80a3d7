/* SPDX-License-Identifier: MIT */
/* Goal: what stands below a context ends with the task that used it up, handles say how tasks
 * ended, and none of it needs more than a bounded stack and bounded memory.
 * Method: actors on the manual executor; the one suite runs in arrival and in inline order. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "errand/tree.h"
#include "actor.h"
#include "both.h"

static errand_handle
spawn_in(test_world *in, errand_context *take_context, const char *label, actor *self)
{
    errand_task_spec spec = actor_spec(in, label, self);
    errand_handle handle;

    assert_int_equal(errand_context_spawn(in->runtime, take_context, &spec, &handle),
                     ERRAND_OK);
    self->id = handle.task;
    return handle;
}

static errand_context
context_of(test_world *in, const errand_task_id *parent, const char *label)
{
    errand_context context;

    assert_int_equal(errand_context_create(in->runtime, parent, label, &context),
                     ERRAND_OK);
    return context;
}

static errand_context
child_of(test_world *in, const errand_context *above, const char *label)
{
    errand_context context;

    assert_int_equal(errand_context_child(in->runtime, above, label, &context),
                     ERRAND_OK);
    return context;
}

static errand_handle_state
state_of(test_world *in, const errand_handle *handle)
{
    errand_handle_state state = 0;

    assert_int_equal(errand_handle_read(in->runtime, handle, &state, NULL), ERRAND_OK);
    return state;
}

static void
close_all(test_world *in, errand_handle *handles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        errand_handle_close(in->runtime, &handles[i]);
}

static void
wake(test_world *in, const actor *self)
{
    assert_int_equal(errand_task_wake(in->runtime, &self->id), ERRAND_OK);
    drive_all(in);
}

/* D12, D54 */
static void
spawn_uses_the_context_up_and_runs_in_a_fresh_node(void **state)
{
    test_world *in = *state;
    actor first = {.step = step_done}, second = {.step = step_park};
    errand_context context = context_of(in, NULL, "place"), copy = context;
    errand_task_spec spec = actor_spec(in, "second", &second);
    errand_handle handle = spawn_in(in, &context, "first", &first);
    errand_tree tree;

    assert_int_equal(context.node, 0);
    assert_int_equal(state_of(in, &handle), ERRAND_HANDLE_OPEN);
    assert_int_equal(errand_context_spawn(in->runtime, &context, &spec, NULL),
                     ERRAND_ESPENT);
    /* D62: a node has one task; a copy of the name changes nothing */
    assert_int_equal(errand_context_spawn(in->runtime, &copy, &spec, NULL),
                     ERRAND_ESPENT);
    assert_int_equal(errand_context_child(in->runtime, &copy, "x", &context),
                     ERRAND_ESPENT);
    assert_int_equal(in->misuses, 3);
    drive_all(in);
    assert_int_equal(first.visits, 1);
    assert_int_equal(second.visits, 0);
    assert_int_equal(state_of(in, &handle), ERRAND_HANDLE_DONE);
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    assert_int_equal(tree.contexts, 0); /* it ended with its task */
    assert_int_equal(tree.spawned, 1);
    assert_int_equal(tree.running, 0);
    errand_handle_close(in->runtime, &handle);
    assert_int_equal(errand_handle_read(in->runtime, &handle, NULL, NULL),
                     ERRAND_EUNKNOWN);
    world_end(in);
}

/* D55 */
static void
end_of_a_task_aborts_what_sibling_contexts_spawned(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, task = {.step = step_park};
    actor sibling = {.step = step_park}, below = {.step = step_park};
    errand_handle handles[3];
    errand_context context, side;

    actor_spawn(in, NULL, "root", &root);
    context = context_of(in, &root.id, "context");
    side = child_of(in, &context, "side");
    handles[0] = spawn_in(in, &context, "task", &task);
    handles[1] = spawn_in(in, &side, "sibling", &sibling);
    actor_spawn(in, &sibling.id, "below", &below);
    assert_int_equal(errand_handle_open(in->runtime, &below.id, &handles[2]), ERRAND_OK);
    drive_all(in);
    wake(in, &task); /* it ends well, and takes the others along */
    assert_int_equal(state_of(in, &handles[0]), ERRAND_HANDLE_DONE);
    assert_int_equal(state_of(in, &handles[1]), ERRAND_HANDLE_CLOSED);
    assert_int_equal(state_of(in, &handles[2]), ERRAND_HANDLE_CLOSED);
    assert_int_equal(actor_end(&sibling), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&below), ERRAND_END_ABORTED);
    assert_int_equal(root.ends, 0);
    close_all(in, handles, 3);
    world_end(in);
}

/* The end of what a side context holds says nothing to the task beside it. */
static void
end_below_a_child_context_leaves_its_siblings(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, a = {.step = step_park}, b = {.step = step_park};
    errand_handle handles[2];
    errand_context first, second;

    actor_spawn(in, NULL, "root", &root);
    first = context_of(in, &root.id, "first");
    second = context_of(in, &root.id, "second");
    handles[0] = spawn_in(in, &first, "a", &a);
    handles[1] = spawn_in(in, &second, "b", &b);
    drive_all(in);
    assert_int_equal(errand_handle_abort(in->runtime, &handles[0]), ERRAND_OK); /* D58 */
    assert_int_equal(state_of(in, &handles[0]), ERRAND_HANDLE_CLOSED);
    assert_int_equal(state_of(in, &handles[1]), ERRAND_HANDLE_OPEN);
    wake(in, &b);
    assert_int_equal(state_of(in, &handles[1]), ERRAND_HANDLE_DONE);
    assert_int_equal(root.ends, 0);
    wake(in, &root);
    assert_int_equal(actor_end(&root), ERRAND_END_DONE);
    close_all(in, handles, 2);
    world_end(in);
}

/* D56, D57 */
static void
abort_reaches_through_contexts_that_never_spawned(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, parent = {.step = step_park};
    actor leaf = {.step = step_park};
    errand_handle handle;
    errand_context first, second, third;

    actor_spawn(in, NULL, "root", &root);
    actor_spawn(in, &root.id, "parent", &parent);
    first = context_of(in, &parent.id, "first");
    second = child_of(in, &first, "second");
    third = child_of(in, &second, "third");
    handle = spawn_in(in, &third, "leaf", &leaf);
    drive_all(in);
    assert_int_equal(leaf.visits, 1);
    wake(in, &parent); /* completion of the parent aborts what runs below */
    assert_int_equal(state_of(in, &handle), ERRAND_HANDLE_CLOSED);
    assert_int_equal(leaf.visits, 1);
    errand_handle_close(in->runtime, &handle);
    world_end(in);
}

/* D59 */
static void
abort_at_the_top_closes_three_levels(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, top = {.step = step_park};
    actor actors[9];
    errand_handle handles[9], above;
    errand_context context;

    actor_spawn(in, NULL, "root", &root);
    context = context_of(in, &root.id, "top");
    above = spawn_in(in, &context, "top", &top);
    for (size_t i = 0; i < 9; i++) {
        const errand_task_id *parent = i < 3 ? &top.id : &actors[(i - 3) / 2].id;

        actors[i] = (actor){.step = step_park};
        context = context_of(in, parent, "context");
        handles[i] = spawn_in(in, &context, "task", &actors[i]);
    }
    drive_all(in);
    assert_int_equal(errand_handle_abort(in->runtime, &above), ERRAND_OK);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(state_of(in, &handles[i]), ERRAND_HANDLE_CLOSED);
        assert_int_equal(actor_end(&actors[i]), ERRAND_END_ABORTED);
    }
    close_all(in, handles, 9);
    errand_handle_close(in->runtime, &above);
    world_end(in);
}

/* D60, D61 */
static void
spawn_below_something_aborted_is_closed_at_once(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, parent = {.step = step_park};
    actor late = {.step = step_park}, later = {.step = step_park};
    errand_handle handle, handles[2];
    errand_context context, before, after;

    actor_spawn(in, NULL, "root", &root);
    context = context_of(in, &root.id, "context");
    before = child_of(in, &context, "before");
    after = context;
    handle = spawn_in(in, &context, "parent", &parent);
    drive_all(in);
    assert_int_equal(errand_handle_abort(in->runtime, &handle), ERRAND_OK);
    handles[0] = spawn_in(in, &before, "late", &late);
    assert_int_equal(before.node, 0);
    assert_int_equal(state_of(in, &handles[0]), ERRAND_HANDLE_CLOSED);
    assert_int_equal(actor_end(&late), ERRAND_END_ABORTED); /* its state was dropped */
    before = child_of(in, &after, "born dead");
    handles[1] = spawn_in(in, &before, "later", &later);
    assert_int_equal(state_of(in, &handles[1]), ERRAND_HANDLE_CLOSED);
    drive_all(in);
    assert_int_equal(late.visits + later.visits, 0);
    assert_int_equal(in->misuses, 0);
    errand_handle_close(in->runtime, &handle);
    close_all(in, handles, 2);
    world_end(in);
}

/* D61: cancelled is refused as aborted is; below a shield it is not yet */
static void
spawn_below_a_cancelled_task_is_closed(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, late = {.step = step_park};
    errand_context context, more;
    errand_handle handle;

    actor_spawn(in, NULL, "root", &root);
    context = context_of(in, &root.id, "context");
    drive_items(in, 1);
    assert_int_equal(errand_task_cancel(in->runtime, &root.id, ERRAND_REASON_EXPLICIT),
                     ERRAND_OK);
    assert_int_equal(errand_context_create(in->runtime, &root.id, "x", &more),
                     ERRAND_ECANCELLED);
    handle = spawn_in(in, &context, "late", &late);
    assert_int_equal(state_of(in, &handle), ERRAND_HANDLE_CLOSED);
    errand_handle_close(in->runtime, &handle);
    world_end(in);
}

/* D17 */
static void
context_that_outlived_its_run_is_refused(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_done}, late = {.step = step_done};
    errand_context context, more;
    errand_task_spec spec = actor_spec(in, "late", &late);
    errand_handle handle = {.task = {.task = 77}};

    actor_spawn(in, NULL, "root", &root);
    context = context_of(in, &root.id, "context");
    assert_int_equal(errand_run(in->runtime, &root.id, NEVER), ERRAND_OK);
    assert_int_equal(errand_context_spawn(in->runtime, &context, &spec, &handle),
                     ERRAND_EMISUSE);
    assert_int_equal(handle.task.task, 77);
    assert_int_not_equal(context.node, 0);
    assert_int_equal(errand_context_child(in->runtime, &context, "x", &more),
                     ERRAND_EMISUSE);
    assert_int_equal(in->misuses, 2);
    assert_non_null(strstr(in->misuse_text, "has ended"));
    assert_int_equal(errand_context_abort(in->runtime, &context), ERRAND_OK);
    context.runtime++;
    assert_int_equal(errand_context_spawn(in->runtime, &context, &spec, &handle),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_context_child(in->runtime, &context, "x", &more),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_context_abort(in->runtime, &context), ERRAND_EFOREIGN);
    assert_int_equal(late.drops, 0);
    world_end(in);
}

/* D65 */
static void
abort_is_idempotent_and_the_gauge_drops_once(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_park}, child = {.step = step_park};
    errand_context context;
    errand_handle handle;
    errand_tree tree;

    actor_spawn(in, NULL, "root", &root);
    context = context_of(in, &root.id, "context");
    handle = spawn_in(in, &context, "child", &child);
    drive_all(in);
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    assert_int_equal(tree.running, 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(errand_handle_abort(in->runtime, &handle), ERRAND_OK);
        assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
        assert_int_equal(tree.running, 1);
    }
    assert_int_equal(actor_end(&child), ERRAND_END_ABORTED);
    errand_handle_close(in->runtime, &handle);
    world_end(in);
}

static errand_task_answer
step_join_handle(errand_task *task, actor *self, const errand_task_news *news)
{
    const errand_handle *handle = self->arg;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    self->status = errand_task_join(task, &handle->task, 1, NEVER);
    return ERRAND_TASK_WAIT;
}

/* D66 */
static void
stopped_watch_is_aborted_and_the_work_goes_on(void **state)
{
    test_world *in = *state;
    actor worker = {.step = step_park}, waiter = {.step = step_join_handle};
    actor other = {.step = step_join_handle};
    errand_handle watch, second;

    actor_spawn(in, NULL, "worker", &worker);
    assert_int_equal(errand_handle_watch(in->runtime, &worker.id, &watch), ERRAND_OK);
    assert_int_equal(errand_handle_watch(in->runtime, &worker.id, &second), ERRAND_OK);
    waiter.arg = &watch;
    other.arg = &second;
    actor_spawn(in, NULL, "waiter", &waiter);
    actor_spawn(in, NULL, "other", &other);
    drive_all(in);
    assert_int_equal(errand_handle_abort(in->runtime, &watch), ERRAND_OK);
    drive_all(in);
    assert_int_equal(waiter.news.why, ERRAND_WHY_JOINED);
    assert_int_equal(state_of(in, &watch), ERRAND_HANDLE_ABORTED);
    assert_int_equal(worker.ends + other.ends, 0);
    wake(in, &worker);
    assert_int_equal(actor_end(&worker), ERRAND_END_DONE);
    assert_int_equal(state_of(in, &second), ERRAND_HANDLE_DONE);
    assert_int_equal(other.news.why, ERRAND_WHY_JOINED);
    errand_handle_close(in->runtime, &watch);
    errand_handle_close(in->runtime, &second);
    errand_handle_close(in->runtime, &second); /* zeroed: nothing */
    assert_int_equal(in->misuses, 0);
    world_end(in);
}

/* D57, D66 */
static void
wait_for_an_aborted_task_ends_and_its_handle_is_closed(void **state)
{
    test_world *in = *state;
    actor worker = {.step = step_park}, waiter = {.step = step_join_handle};
    errand_handle handle, watch;

    actor_spawn(in, NULL, "worker", &worker);
    assert_int_equal(errand_handle_open(in->runtime, &worker.id, &handle), ERRAND_OK);
    waiter.arg = &handle;
    actor_spawn(in, NULL, "waiter", &waiter);
    drive_all(in);
    assert_int_equal(errand_task_abort(in->runtime, &worker.id), ERRAND_OK);
    drive_all(in);
    assert_int_equal(waiter.news.why, ERRAND_WHY_JOINED);
    assert_int_equal(state_of(in, &handle), ERRAND_HANDLE_CLOSED);
    /* a watch of what has ended already ended with it */
    assert_int_equal(errand_handle_watch(in->runtime, &handle.task, &watch), ERRAND_OK);
    assert_int_equal(state_of(in, &watch), ERRAND_HANDLE_CLOSED);
    errand_handle_close(in->runtime, &watch);
    errand_handle_close(in->runtime, &handle);
    assert_int_equal(errand_handle_watch(in->runtime, &worker.id, &watch),
                     ERRAND_EUNKNOWN);
    assert_int_equal(errand_handle_open(in->runtime, &worker.id, &handle),
                     ERRAND_EUNKNOWN);
    handle.task = (errand_task_id){.runtime = 1, .task = 5};
    assert_int_equal(errand_handle_read(in->runtime, &handle, NULL, NULL),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_handle_abort(in->runtime, &handle), ERRAND_EFOREIGN);
    assert_int_equal(errand_handle_open(in->runtime, &handle.task, &handle),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_context_create(in->runtime, &handle.task, "x",
                                           &(errand_context){.node = 0}),
                     ERRAND_EFOREIGN);
    handle.task = (errand_task_id){.task = 0};
    assert_int_equal(errand_handle_abort(in->runtime, &handle), ERRAND_EUNKNOWN);
    world_end(in);
}

/* ---- depth and number --------------------------------------------------------------------------- */

enum { DEEP = 50000, SMALL_STACK = 65536 };

/* A chain of contexts with a task at every tenth, aborted from the top. */
static void *
build_and_abort(void *arg)
{
    test_world *in = arg;
    errand_context top, context, next;
    static actor leaf;
    errand_handle handle;
    errand_tree tree;

    assert_int_equal(errand_runtime_adopt(in->runtime), ERRAND_OK);
    leaf = (actor){.step = step_park};
    top = context = context_of(in, NULL, "top");
    for (int i = 0; i < DEEP; i++) {
        next = child_of(in, &context, "link");
        context = next;
    }
    handle = spawn_in(in, &context, "leaf", &leaf);
    drive_all(in);
    assert_int_equal(errand_context_abort(in->runtime, &top), ERRAND_OK);
    assert_int_equal(state_of(in, &handle), ERRAND_HANDLE_CLOSED);
    assert_int_equal(errand_context_abort(in->runtime, &top), ERRAND_OK);
    errand_handle_close(in->runtime, &handle);
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    assert_int_equal(tree.contexts, 0);
    /* and one that the end of the runtime frees */
    context = context_of(in, NULL, "top");
    for (int i = 0; i < DEEP; i++) {
        next = child_of(in, &context, "link");
        context = next;
    }
    world_end(in);
    return NULL;
}

/* D63 */
static void
chain_of_fifty_thousand_contexts_needs_no_stack(void **state)
{
    test_world *in = *state;
    pthread_attr_t attributes;
    pthread_t thread;

    assert_int_equal(errand_runtime_release(in->runtime), ERRAND_OK);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SMALL_STACK);
    assert_int_equal(pthread_create(&thread, &attributes, build_and_abort, in), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

static errand_task_answer
end_at_once(errand_task *task, void *state, const errand_task_news *news)
{
    (void)task;
    (void)state;
    (void)news;
    return ERRAND_TASK_DONE;
}

/* D64: 2 million at full count */
static void
short_children_without_end_need_bounded_memory(void **state)
{
    enum { AT_ONCE = 32 };
    test_world *in = *state;
    const errand_task_spec spec = {.struct_size = sizeof spec, .fn = end_at_once};
    uint64_t rounds = test_scaled(2000000) / AT_ONCE;
    actor root = {.step = step_park};
    errand_context context;
    int64_t bytes = 0;

    actor_spawn(in, NULL, "root", &root);
    for (uint64_t round = 0; round < rounds; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            context = context_of(in, &root.id, "short");
            assert_int_equal(errand_context_spawn(in->runtime, &context, &spec, NULL),
                             ERRAND_OK);
        }
        assert_int_equal(errand_drive(in->runtime, NULL, NULL), ERRAND_OK);
        if (round == 3)
            bytes = errand_testing_live_bytes();
        if (round > 3)
            assert_int_equal(errand_testing_live_bytes(), bytes);
    }
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        BOTH_ORDERS(spawn_uses_the_context_up_and_runs_in_a_fresh_node),
        BOTH_ORDERS(end_of_a_task_aborts_what_sibling_contexts_spawned),
        BOTH_ORDERS(end_below_a_child_context_leaves_its_siblings),
        BOTH_ORDERS(abort_reaches_through_contexts_that_never_spawned),
        BOTH_ORDERS(abort_at_the_top_closes_three_levels),
        BOTH_ORDERS(spawn_below_something_aborted_is_closed_at_once),
        BOTH_ORDERS(spawn_below_a_cancelled_task_is_closed),
        BOTH_ORDERS(context_that_outlived_its_run_is_refused),
        BOTH_ORDERS(abort_is_idempotent_and_the_gauge_drops_once),
        BOTH_ORDERS(stopped_watch_is_aborted_and_the_work_goes_on),
        BOTH_ORDERS(wait_for_an_aborted_task_ends_and_its_handle_is_closed),
        BOTH_ORDERS(chain_of_fifty_thousand_contexts_needs_no_stack),
        BOTH_ORDERS(short_children_without_end_need_bounded_memory),
    };
    return test_group("runtime/tree", tests, NULL, NULL);
}
