/* SPDX-License-Identifier: MIT */
/* Goal: tasks have names that are never used again, keys that hang on their place in the tree,
 * bounded memory, and an end that needs no stack.
 * Method: scripted tasks in a scheduler without a runtime. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "scheduler_rig.h"

/* D13 */
static void
names_go_up_and_old_ones_find_nothing(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "d"};
    errand_task_id old = errand__task_id(rig_spawn(rig, NULL, "a", &script)), new;

    assert_int_equal(old.task, 1);
    assert_non_null(errand__task_find(&rig->scheduler, &old));
    rig_pass(rig);
    assert_null(errand__task_find(&rig->scheduler, &old));
    new = errand__task_id(rig_spawn(rig, NULL, "a", &script));
    assert_int_equal(new.task, 2);
    assert_int_equal(new.slot, old.slot); /* the record, not the name */
    assert_null(errand__task_find(&rig->scheduler, &old));
    assert_non_null(errand__task_find(&rig->scheduler, &new));
    new.slot = 1000000;
    assert_null(errand__task_find(&rig->scheduler, &new));
}

/* O5 */
static void
last_number_is_issued_once_and_then_none(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "d"};
    const errand_task_spec spec = {.struct_size = sizeof spec, .fn = NULL};
    errand_task *task = NULL;

    rig->scheduler.next_task = UINT64_MAX;
    task = rig_spawn(rig, NULL, "last", &script);
    assert_true(task->number == UINT64_MAX);
    assert_int_equal(errand__task_spawn(&rig->scheduler, NULL, 5, &spec, &task),
                     ERRAND_EEXHAUSTED);
    assert_int_equal(rig->scheduler.live, 1);
}

static void
keys_hang_on_parent_label_and_count_of_siblings(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "p"};
    errand_task *a = rig_spawn(rig, NULL, "a", &script);
    errand_task *b = rig_spawn(rig, NULL, "a", &script);
    errand_task *a1 = rig_spawn(rig, a, "x", &script);
    uint64_t key = a1->key, sibling = rig_spawn(rig, a, "x", &script)->key;

    assert_int_not_equal(a->key, b->key);
    assert_int_not_equal(key, sibling);
    assert_int_not_equal(key, rig_spawn(rig, b, "x", &script)->key);
    /* Once more, with strangers in between: nothing shifts. */
    rig_restart(rig, ERRAND_ORDER_INLINE, 7);
    a = rig_spawn(rig, NULL, "a", &script);
    b = rig_spawn(rig, a, "z", &script);
    for (unsigned i = 0; i < 10; i++)
        rig_spawn(rig, b, "y", &script);
    assert_int_equal(errand__key_child(a->key, "x", 0), key);
    assert_int_equal(rig_spawn(rig, a, "x", &script)->key, sibling);
}

static void
long_labels_are_cut_and_missing_ones_called_task(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "p"};
    char label[200];

    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    assert_int_equal(strlen(rig_spawn(rig, NULL, label, &script)->label), 63);
    assert_string_equal(rig_spawn(rig, NULL, NULL, &script)->label, "task");
}

/* D64 */
static void
million_short_children_need_the_memory_of_a_few(void **state)
{
    scheduler_rig *rig = *state;
    rig_script parent_script = {.letters = "p"}, script = {.letters = "d"};
    errand_task *parent = rig_spawn(rig, NULL, "parent", &parent_script);
    uint64_t children = test_scaled(1000000);
    int64_t bytes = 0;

    rig_pass(rig);
    for (uint64_t i = 0; i < children; i++) {
        rig_spawn(rig, parent, "child", &script);
        rig_pass(rig);
        if (i == 0)
            bytes = errand__mem_live_bytes();
    }
    assert_int_equal(errand__mem_live_bytes(), bytes);
    assert_int_equal(script.visits, children);
    assert_int_equal(script.drops, children);
    assert_int_equal(rig->scheduler.tasks.fresh, 2);
    assert_true(errand__list_empty(&parent->children));
}

/* D63: a chain of 50 000 is cancelled, aborted and freed on a stack of 64 KiB. */
enum { DEEP = 50000, SMALL_STACK = 65536 };

static size_t unwound_from = DEEP; /* the last that ended, from the deepest up */

static void
end_in_order(errand_runtime *runtime, errand_task_id id, void *state)
{
    (void)runtime;
    (void)state;
    assert_int_equal(id.task, unwound_from);
    unwound_from--;
}

static void *
abort_chain(void *arg)
{
    scheduler_rig *rig = arg;
    errand_task *top = ERRAND__CONTAINER(rig->scheduler.roots.next, errand_task, sibling);

    errand__task_cancel(top, ERRAND_REASON_EXPLICIT);
    errand__cancels_run(&rig->scheduler);
    errand__task_end(top, ERRAND_END_ABORTED);
    errand__endings_run(&rig->scheduler);
    return NULL;
}

static void
deep_chain_is_aborted_on_a_small_stack(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "p"};
    errand_task *task = NULL;
    pthread_attr_t attributes;
    pthread_t thread;

    unwound_from = DEEP;
    for (size_t i = 0; i < DEEP; i++) {
        task = rig_spawn(rig, task, "link", &script);
        task->on_end = end_in_order;
    }
    rig_pass(rig);
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(
                         &attributes, SMALL_STACK > PTHREAD_STACK_MIN || ERRAND_SANITIZED
                                          ? (ERRAND_SANITIZED ? 1048576 : SMALL_STACK)
                                          : (size_t)PTHREAD_STACK_MIN),
                     0);
    assert_int_equal(pthread_create(&thread, &attributes, abort_chain, rig), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_int_equal(unwound_from, 0);
    assert_int_equal(rig->scheduler.live, 0);
    assert_int_equal(script.drops, DEEP);
    assert_int_equal(script.visits, DEEP);
}

/* D55, D58 */
static void
end_of_a_parent_aborts_its_children_and_no_sibling(void **state)
{
    scheduler_rig *rig = *state;
    rig_script scripts[4] = {
        {.letters = "yd"}, {.letters = "p"}, {.letters = "p"}, {.letters = "p"}};
    errand_task *parent = rig_spawn(rig, NULL, "parent", &scripts[0]);

    rig_spawn(rig, rig_spawn(rig, parent, "child", &scripts[1]), "grandchild",
              &scripts[2]);
    rig_spawn(rig, NULL, "sibling", &scripts[3]);
    rig_pass(rig);
    rig_pass(rig);
    assert_int_equal(scripts[0].end, ERRAND_END_DONE);
    assert_int_equal(scripts[1].end, ERRAND_END_ABORTED);
    assert_int_equal(scripts[2].end, ERRAND_END_ABORTED);
    assert_int_equal(scripts[3].ends, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(scripts[i].ends, 1);
        assert_int_equal(scripts[i].drops, 1);
    }
    assert_int_equal(rig->scheduler.live, 1);
}

static void
records_never_move_and_slots_lead_to_them(void **state)
{
    enum { MANY = 1000 };
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "p"};
    errand_task *tasks[MANY];

    for (size_t i = 0; i < MANY; i++)
        tasks[i] = rig_spawn(rig, NULL, NULL, &script);
    for (size_t i = 0; i < MANY; i++) {
        errand_task_id id = errand__task_id(tasks[i]);

        assert_ptr_equal(errand__task_find(&rig->scheduler, &id), tasks[i]);
    }
}

static void
answer_wait_without_a_wait_is_a_failure(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "w"};

    rig_spawn(rig, NULL, "careless", &script);
    rig_pass(rig);
    assert_int_equal(script.end, ERRAND_END_FAILED);
    assert_int_equal(rig->scheduler.live, 0);
}

/* O34: the task that was left by longjmp fails at the next turn; its children are aborted. */
static void
task_left_by_longjmp_ends_as_failed(void **state)
{
    scheduler_rig *rig = *state;
    rig_script script = {.letters = "p"}, child = {.letters = "p"};
    errand_task *task = rig_spawn(rig, NULL, "jumper", &script);

    rig_spawn(rig, task, "child", &child);
    rig->scheduler.running = task; /* as its function was left */
    task->phase = ERRAND_TASK_RUNNING;
    errand__list_unlink(&task->ready.link);
    errand__scheduler_unwound(&rig->scheduler);
    assert_int_equal(script.ends + child.ends, 0); /* nothing foreign is called here */
    errand__endings_run(&rig->scheduler);
    assert_int_equal(script.end, ERRAND_END_FAILED);
    assert_int_equal(child.end, ERRAND_END_ABORTED);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_go_up_and_old_ones_find_nothing,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(last_number_is_issued_once_and_then_none,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(keys_hang_on_parent_label_and_count_of_siblings,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(long_labels_are_cut_and_missing_ones_called_task,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(million_short_children_need_the_memory_of_a_few,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(deep_chain_is_aborted_on_a_small_stack,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(
            end_of_a_parent_aborts_its_children_and_no_sibling, rig_setup_inline,
            rig_teardown),
        cmocka_unit_test_setup_teardown(records_never_move_and_slots_lead_to_them,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(answer_wait_without_a_wait_is_a_failure,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(task_left_by_longjmp_ends_as_failed,
                                        rig_setup_inline, rig_teardown),
    };
    return test_group("scheduler/tasks", tests, NULL, NULL);
}
