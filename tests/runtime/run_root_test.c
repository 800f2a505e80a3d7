/* SPDX-License-Identifier: MIT */
/* Goal: a run ends with its root, by a stall or at its deadline; then nothing of it is left, and
 * the report says what there is to say.
 * Method: actors on the manual executor in inline order; what holds in both orders runs in both. */
#include <string.h>
#include "errand/tree.h"
#include "actor.h"
#include "both.h"

static errand_status
run(test_world *in, actor *root, uint64_t deadline, errand_run_report *report)
{
    errand_task_spec spec = actor_spec(in, "root", root);
    errand_status status;

    /* the id is the next one: actors look at it */
    errand_tree tree;
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    root->id.task = tree.spawned + 1;
    status = errand_run_root(in->runtime, &spec, deadline, report);
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    assert_int_equal(tree.running, 0);
    return status;
}

static errand_task_answer
step_spin(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    self->status = errand_task_yield(task);
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
step_with_spinner(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why == ERRAND_WHY_START) {
        errand_task_id id = errand_task_self(task);

        actor_spawn(self->in, &id, "spinner", self->arg);
        self->status = errand_task_yield(task);
        return ERRAND_TASK_WAIT;
    }
    if (self->number != 0)
        assert_int_equal(errand_task_fail(task, (int32_t)self->number, "as asked"),
                         ERRAND_OK);
    return self->number == 0 ? ERRAND_TASK_DONE : ERRAND_TASK_FAILED;
}

/* D9, D10, D11 */
static void
run_ends_with_its_root_and_has_its_value(void **state)
{
    test_world *in = *state;

    for (uint64_t code = 0; code < 2; code++) {
        actor spinner = {.step = step_spin}, other = {.step = step_spin};
        actor root = {.step = step_with_spinner, .arg = &spinner, .number = code};
        errand_run_report report;

        actor_spawn(in, NULL, "other", &other);
        assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
        assert_int_equal(report.end, code == 0 ? ERRAND_END_DONE : ERRAND_END_FAILED);
        if (code != 0) {
            assert_int_equal(report.failure.code, 1);
            assert_string_equal(report.failure.message, "as asked");
        }
        assert_string_equal(report.stall, "");
        assert_int_equal(report.digest, errand_digest(in->runtime));
        assert_int_equal(actor_end(&spinner), ERRAND_END_ABORTED);
        assert_int_equal(actor_end(&other), ERRAND_END_ABORTED);
    }
    world_end(in);
}

static errand_task_answer
step_stall(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_task_id id = errand_task_self(task);

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    if (self->arg != NULL) {
        errand_context context, side;
        actor *child = self->arg;
        errand_task_spec spec = actor_spec(self->in, "task", child);
        errand_handle handle;

        assert_int_equal(errand_context_create(self->in->runtime, &id, "place", &context),
                         ERRAND_OK);
        assert_int_equal(errand_context_child(self->in->runtime, &context, "side", &side),
                         ERRAND_OK);
        assert_int_equal(errand_context_spawn(self->in->runtime, &side, &spec, &handle),
                         ERRAND_OK);
        child->id = handle.task;
        errand_handle_close(self->in->runtime, &handle);
        assert_int_equal(errand_task_join(task, &child->id, 1, NEVER), ERRAND_OK);
        return ERRAND_TASK_WAIT;
    }
    assert_int_equal(errand_task_park(task, NEVER), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* D34, D40 */
static void
stall_names_all_who_wait_and_is_told_after_the_cleanup(void **state)
{
    test_world *in = *state;
    actor child = {.step = step_stall};
    actor root = {.step = step_stall, .arg = &child};
    errand_run_report report;

    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_EDEADLOCK);
    assert_int_equal(report.end, ERRAND_END_ABORTED);
    assert_int_equal(report.waiting, 2);
    assert_non_null(strstr(report.stall, "task 1 'root' joins task 2\n"));
    assert_non_null(strstr(report.stall, "task 2 'root/place/side/task' is parked\n"));
    assert_int_equal(actor_end(&child), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&root), ERRAND_END_ABORTED);
    /* and the next run begins with nothing of it */
    root = (actor){.step = step_done};
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    assert_string_equal(report.stall, "");
    world_end(in);
}

static errand_task_answer
step_wait_oddly(errand_task *task, actor *self, const errand_task_news *news)
{
    static errand_select select;
    static errand_signal signal;
    static errand_handle handles[2];
    errand_task_id parent = *(const errand_task_id *)self->arg;

    (void)news;
    switch (self->number) {
    case 1:
        assert_int_equal(errand_handle_open(self->in->runtime, &parent, &handles[0]),
                         ERRAND_OK);
        assert_int_equal(errand_handle_watch(self->in->runtime, &parent, &handles[1]),
                         ERRAND_OK);
        assert_int_equal(errand_select_open(self->in->runtime, handles, 2, &select),
                         ERRAND_OK);
        assert_int_equal(errand_task_select(task, &select, NEVER), ERRAND_OK);
        break;
    case 2:
        assert_int_equal(errand_signal_hold(self->in->runtime, &signal), ERRAND_OK);
        assert_int_equal(errand_task_stopped(task, &signal, NEVER), ERRAND_OK);
        break;
    default:
        assert_int_equal(errand_task_stop(task, 0, NEVER), ERRAND_OK);
        break;
    }
    return ERRAND_TASK_WAIT;
}

/* D34: also those who wait for a select or the stop, and from deep below */
static void
stall_text_knows_every_kind_of_wait_and_cuts_long_paths(void **state)
{
    test_world *in = *state;
    actor parked = {.step = step_park}, actors[2], stops;
    errand_context context, next;
    char text[600];

    actor_spawn(in, NULL, "parked", &parked);
    for (size_t i = 0; i < 2; i++) {
        actors[i] = (actor){.step = step_wait_oddly, .number = i + 1, .arg = &parked.id};
        actor_spawn(in, NULL, i == 0 ? "selects" : "hears", &actors[i]);
    }
    drive_all(in);
    errand_stall_text(in->runtime, text, sizeof text);
    assert_non_null(strstr(text, "'selects' selects task 1, a watch\n"));
    assert_non_null(strstr(text, "'hears' waits for the stop\n"));
    assert_int_equal(errand_context_create(in->runtime, NULL, "deep", &context),
                     ERRAND_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(errand_context_child(in->runtime, &context, "d", &next),
                         ERRAND_OK);
        context = next;
    }
    stops = (actor){.step = step_wait_oddly, .number = 3, .arg = &parked.id};
    errand_task_spec spec = actor_spec(in, "stops", &stops);
    errand_handle handle;
    assert_int_equal(errand_signal_hold(in->runtime, &(errand_signal){.node = 0}),
                     ERRAND_OK);
    assert_int_equal(errand_context_spawn(in->runtime, &context, &spec, &handle),
                     ERRAND_OK);
    stops.id = handle.task;
    drive_items(in, 1);
    errand_stall_text(in->runtime, text, sizeof text);
    assert_non_null(strstr(text, "'.../d/d/d"));
    assert_non_null(strstr(text, "/d/stops' waits for "));
    errand_handle_close(in->runtime, &handle);
    world_end(in);
}

static errand_task_answer
step_watch_time(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    self->status = errand_task_sleep(task, self->number);
    return ERRAND_TASK_WAIT;
}

/* D36, D37, D39: a task that would go on at that very instant is not entered */
static void
deadline_comes_before_what_is_due_at_its_instant(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_watch_time, .number = 5 * MS};
    errand_run_report report;

    assert_int_equal(run(in, &root, 10 * MS, &report),
                     ERRAND_ETIMEOUT); /* of errand_run_root */
    assert_int_equal(report.time_ns, 10 * MS);
    assert_int_equal(errand_runtime_now(in->runtime), 10 * MS);
    assert_int_equal(root.visits, 2); /* at 0 and 5 ms, not at 10 */
    assert_int_equal(actor_end(&root), ERRAND_END_ABORTED);
    root = (actor){.step = step_spin};
    assert_int_equal(run(in, &root, 15 * MS, &report), ERRAND_ETIMEOUT);
    assert_int_equal(report.time_ns, 15 * MS);
    assert_int_equal(root.visits, 5);
    root = (actor){.step = step_done}; /* it is over before it begins */
    assert_int_equal(run(in, &root, 15 * MS, &report), ERRAND_ETIMEOUT);
    assert_int_equal(root.visits, 0);
    world_end(in);
}

/* D38 */
static void
timer_behind_the_deadline_is_a_timeout_and_no_stall(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_sleep, .number = 60 * MS};
    errand_run_report report;

    assert_int_equal(run(in, &root, 10 * MS, &report), ERRAND_ETIMEOUT);
    assert_int_equal(report.time_ns, 10 * MS);
    assert_non_null(strstr(report.stall, "sleeps until 60000000 ns"));
    world_end(in);
}

/* D36: the runtime's own deadline counts for each of its runs */
static void
deadline_of_the_runtime_ends_its_runs(void **state)
{
    test_world *in = *state;
    errand_runtime_config config = in->config;
    actor root = {.step = step_spin};
    errand_run_report report;

    world_end(in);
    config.deadline_ns = 20 * MS;
    world_begin(in, &config, 0);
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_ETIMEOUT);
    assert_int_equal(report.time_ns, 20 * MS);
    world_end(in);
}

static errand_task_answer
step_run_nested(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_task_spec spec = actor_spec(self->in, "nested", self);
    errand_run_report report;

    (void)task;
    (void)news;
    self->status = errand_run_root(self->in->runtime, &spec, NEVER, &report);
    return ERRAND_TASK_DONE;
}

static void
nested_run_is_busy_and_leaves_no_task(void **state)
{
    test_world *in = *state;
    actor root = {.step = step_run_nested};
    errand_run_report report;

    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    assert_int_equal(root.status, ERRAND_EBUSY); /* of errand_run_root */
    assert_int_equal(in->misuses, 1);
    world_end(in);
}

/* D15 */
static errand_task_answer
step_join_arg(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    assert_int_equal(errand_task_join(task, self->arg, 1, NEVER), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static void
circle_of_waits_is_released_at_the_end_of_the_run(void **state)
{
    test_world *in = *state;
    actor first = {.step = step_join_arg}, second = {.step = step_join_arg};
    actor root = {.step = step_yield};
    errand_run_report report;

    first.arg = &second.id;
    second.arg = &first.id;
    actor_spawn(in, NULL, "first", &first);
    actor_spawn(in, NULL, "second", &second);
    root.step = step_done;
    assert_int_equal(run(in, &root, NEVER, &report), ERRAND_OK);
    assert_int_equal(actor_end(&first), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&second), ERRAND_END_ABORTED);
    /* D14: a wake that comes later finds nobody */
    assert_int_equal(errand_task_wake(in->runtime, &first.id), ERRAND_EUNKNOWN);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        BOTH_ORDERS(run_ends_with_its_root_and_has_its_value),
        BOTH_ORDERS(stall_names_all_who_wait_and_is_told_after_the_cleanup),
        BOTH_ORDERS(stall_text_knows_every_kind_of_wait_and_cuts_long_paths),
        cmocka_unit_test_setup_teardown(deadline_comes_before_what_is_due_at_its_instant,
                                        world_setup_inline, world_teardown),
        cmocka_unit_test_setup_teardown(
            timer_behind_the_deadline_is_a_timeout_and_no_stall, world_setup_inline,
            world_teardown),
        cmocka_unit_test_setup_teardown(deadline_of_the_runtime_ends_its_runs,
                                        world_setup_inline, world_teardown),
        BOTH_ORDERS(nested_run_is_busy_and_leaves_no_task),
        BOTH_ORDERS(circle_of_waits_is_released_at_the_end_of_the_run),
    };
    return test_group("runtime/run_root", tests, NULL, NULL);
}
