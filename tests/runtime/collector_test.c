/* SPDX-License-Identifier: MIT */
/* Goal: a host's collector sees every pointer that the runtime holds for it, and no other (O15).
 * Method: a collector that moves (tests/support/collected.h) runs at every stage of an operation's
 * life and inside every call; the objects that each part holds must be there, and gone after it. */
#include "collected.h"
#include "counted.h"
#include "errand/task.h"

static collected_heap heap;

/* Each part of an operation holds an object of its own; the decoder's has an edge to another. */
static void
hold(counted *self, int number)
{
    collected_object *object = collected_new(&heap, number);

    object->next = collected_new(&heap, number + 9);
    self->held[HELD_BY_DECODER] = object;
    self->held[HELD_BY_HOOK] = collected_new(&heap, number + 1);
    self->held[HELD_BY_CONTINUATION] = collected_new(&heap, number + 2);
}

static void
check_held(const counted *self, int index, int number)
{
    collected_check(self->held[index], number);
    if (index == HELD_BY_DECODER)
        collected_check(((collected_object *)self->held[index])->next, number + 9);
}

/* Collects twice, so that both halves are written over. */
static void
expect(test_world *world, size_t alive)
{
    assert_int_equal(collected_collect(&heap, world->runtime), alive);
    assert_int_equal(collected_collect(&heap, world->runtime), alive);
    assert_int_equal(heap.allocations, 0);
}

/* What is held at each call, without what is the call's own now. */
static size_t
alive_in(counted_place place)
{
    switch (place) {
    case AT_DECODE:
        return 2; /* hook, continuation */
    case AT_HOOK_DROP:
    case AT_STATE_DROP:
        return 2; /* continuation, value */
    case AT_BODY:
        return 4;
    default:
        return 0;
    }
}

static void
collect_in_each_call(counted *self, counted_place place)
{
    if (place == AT_DECODE) {
        check_held(self, HELD_BY_DECODER, 100);
        self->held[HELD_BY_DECODER] = NULL; /* its own now; it gives up */
    }
    if (place == AT_HOOK_DROP)
        check_held(self, HELD_BY_HOOK, 101);
    if (place == AT_RESUME) {
        check_held(self, HELD_BY_CONTINUATION, 102);
        check_held(self, HELD_BY_VALUE, 103);
    }
    expect(self->world, alive_in(place));
    if (place == AT_DECODE)
        self->held[HELD_BY_VALUE] = collected_new(&heap, 103);
}

static void
collect_in_the_handler(void *arg, errand_completion *completion)
{
    test_world *world = arg;

    world_handler(world, completion);
    expect(world, 3); /* hook, continuation, value */
}

static void
every_edge_is_shown_at_every_stage_and_in_every_call(void **state)
{
    /* O15 */
    test_world *world = *state;
    counted work = {.on = collect_in_each_call};
    errand_spec spec = counted_spec(world, &work);
    errand_prepared prepared;
    errand_binding binding;
    errand_submission submission;
    size_t count;

    collected_init(&heap);
    hold(&work, 100);
    work.held[HELD_BY_CONTINUATION] = NULL; /* nobody holds it yet */
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    expect(world, 3);
    assert_int_equal(errand_issue(world->runtime, 1, &work, &work.identity), ERRAND_OK);
    expect(world, 3);
    assert_int_equal(errand_bind(world->runtime, &work.identity, &prepared, &binding),
                     ERRAND_OK);
    expect(world, 3);
    assert_int_equal(errand_split(&binding, &work.wait, &submission), ERRAND_OK);
    expect(world, 3);
    work.held[HELD_BY_CONTINUATION] = collected_new(&heap, 102);
    counted_await(&work);
    expect(world, 4);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    expect(world, 4);
    world_step(world, 1);
    expect(world, 4);
    assert_int_equal(
        errand_drain(world->runtime, 1, collect_in_the_handler, world, &count),
        ERRAND_OK);
    assert_int_equal(count, 1);
    expect(world, 2); /* drained and not resumed: continuation and value */
    counted_drive(world);
    assert_int_equal(work.count[AT_RESUME], 1);
    expect(world, 0);
    counted_check_ended(&work);
}

static void
check_survivors(counted *self, counted_place place)
{
    if (place == AT_CANCEL || place == AT_REAP) {
        /* In the cancel hook the wait has ended, the decoder is not dropped yet. */
        expect(self->world, place == AT_CANCEL ? 4 : 1);
        check_held(self, HELD_BY_HOOK, 201);
    }
    if (place == AT_DECODER_DROP)
        check_held(self, HELD_BY_DECODER, 200);
    if (place == AT_RESUME)
        check_held(self, HELD_BY_CONTINUATION, 202);
}

static void
what_a_cancel_leaves_behind_is_shown_until_it_is_reaped(void **state)
{
    /* O15: retained hooks, doomed submissions. */
    test_world *world = *state;
    counted work = {.lingers = true,
                    .on = check_survivors,
                    .cancel_answer = ERRAND_HOOK_PENDING,
                    .reap_answer = ERRAND_HOOK_PENDING},
            doomed = {.on = check_survivors};
    errand_submission submission;

    collected_init(&heap);
    hold(&work, 200);
    counted_submit(world, &work);
    world_step(world, 1);
    expect(world, 4);
    assert_int_equal(counted_cancel(&work), ERRAND_CANCEL_RUNNING);
    expect(world, 2); /* hook and continuation: the decoder was dropped */
    world_step(world, 1);
    counted_drive(world);
    assert_int_equal(work.count[AT_RESUME], 1);
    expect(world, 1); /* the hook, of a record that is free again */
    work.reap_answer = ERRAND_HOOK_REAPED;
    assert_int_equal(errand_reap_ready(world->runtime, &work.identity), ERRAND_OK);
    counted_drive(world);
    expect(world, 0);
    hold(&doomed, 200);
    submission = counted_submission(world, &doomed);
    counted_await(&doomed);
    expect(world, 4);
    assert_int_equal(errand_abandon_later(&submission), ERRAND_OK);
    expect(world, 4); /* a finaliser called that: nothing is gone yet */
    counted_drive(world);
    expect(world, 0);
    counted_check_ended(&doomed);
    counted_check_ended(&work);
}

typedef struct traced_task {
    test_world *world;
    counted *work;
    void *slot;
    bool checked;
} traced_task;

static bool
trace_task(void *state, errand_visitor *visitor)
{
    return visitor->visit(visitor, &((traced_task *)state)->slot);
}

static errand_task_answer
await_work(errand_task *task, void *state, const errand_task_news *news)
{
    traced_task *self = state;
    errand_spec spec = counted_spec(self->world, self->work);
    errand_verdict verdict = news->verdict;

    if (news->why == ERRAND_WHY_START) {
        assert_int_equal(
            errand_task_await(task, self->world->lease, &spec, UINT64_MAX, NULL),
            ERRAND_OK);
        return ERRAND_TASK_WAIT;
    }
    check_held(self->work, HELD_BY_VALUE, 303);
    collected_check(self->slot, 7);
    expect(self->world, 1); /* the task's own; the value is its function's now */
    self->checked = true;
    verdict.drop(verdict.value);
    return ERRAND_TASK_DONE;
}

static void
make_value(counted *self, counted_place place)
{
    if (place == AT_DECODE)
        self->held[HELD_BY_VALUE] = collected_new(&heap, 303);
}

static void
tasks_and_the_values_that_they_wait_for_are_shown(void **state)
{
    /* O15 */
    test_world *world = *state;
    counted work = {.no_continuation = true, .on = make_value};
    traced_task self = {.world = world, .work = &work};
    errand_task_spec spec = {.struct_size = sizeof spec,
                             .fn = await_work,
                             .state = &self,
                             .held_trace = trace_task};

    collected_init(&heap);
    hold(&work, 300);
    work.held[HELD_BY_CONTINUATION] = NULL;
    self.slot = collected_new(&heap, 7);
    assert_int_equal(errand_spawn(world->runtime, NULL, &spec, NULL), ERRAND_OK);
    assert_int_equal(collected_collect(&heap, world->runtime), 1);
    hold(&work, 300);
    work.held[HELD_BY_CONTINUATION] = NULL;
    assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
    expect(world, 4); /* the task's, decoder with its edge, hook */
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    expect(world, 2); /* the task's, and the value of a task that was not resumed yet */
    counted_drive(world);
    assert_true(self.checked);
    expect(world, 0);
}

/* ---- order and stop ------------------------------------------------------------------------------ */

typedef struct stopper {
    size_t visits, stop_at;
} stopper;

static bool
stop_at(errand_visitor *visitor, void **slot)
{
    stopper *self = visitor->arg;

    (void)slot;
    return ++self->visits == self->stop_at;
}

static void
edges_come_in_a_fixed_order_and_a_stop_is_passed_up(void **state)
{
    /* O15: decoder before hook before continuation, operations by slot. */
    test_world *world = *state;
    counted works[3] = {{.answer = 0}};
    int first[COLLECTED_MAX];

    collected_init(&heap);
    for (int i = 0; i < 3; i++) {
        works[i] = (counted){.answer = 0};
        hold(&works[i], 100 * (i + 1));
        counted_submit(world, &works[i]);
    }
    expect(world, 12);
    assert_int_equal(heap.visits, 9);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(heap.seen[i], 100 * (i / 3 + 1) + i % 3);
        first[i] = heap.seen[i];
    }
    collected_collect(&heap, world->runtime);
    for (int i = 0; i < 9; i++)
        assert_int_equal(heap.seen[i], first[i]);
    for (size_t stop = 1; stop <= 10; stop++) {
        stopper self = {.stop_at = stop};
        errand_visitor visitor = {.visit = stop_at, .arg = &self};

        assert_int_equal(errand_runtime_trace(world->runtime, &visitor), stop <= 9);
        assert_int_equal(self.visits, stop <= 9 ? stop : 9);
    }
    world_step(world, 10);
    counted_drive(world);
    expect(world, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(every_edge_is_shown_at_every_stage_and_in_every_call),
        WITH_WORLD(what_a_cancel_leaves_behind_is_shown_until_it_is_reaped),
        WITH_WORLD(tasks_and_the_values_that_they_wait_for_are_shown),
        WITH_WORLD(edges_come_in_a_fixed_order_and_a_stop_is_passed_up),
    };
    return test_group("runtime/collector", tests, NULL, NULL);
}
