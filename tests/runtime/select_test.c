/* SPDX-License-Identifier: MIT */
/* Goal: of several the first in the list that has ended wins, the others are aborted, and nobody
 * is left when the select is not needed any more.
 * Method: actors on the manual executor; the one suite runs in arrival and in inline order. */
#include "errand/tree.h"
#include "actor.h"
#include "both.h"

enum { MEMBERS = 3 };

typedef struct race_scene {
    actor members[MEMBERS], selector;
    errand_handle handles[MEMBERS];
    errand_select select;
    size_t count;
    unsigned
        ended_before; /* members whose cleanup had run when the selector was entered */
} race_scene;

static errand_task_answer
step_select(errand_task *task, actor *self, const errand_task_news *news)
{
    race_scene *scene = self->arg;

    if (news->why == ERRAND_WHY_START) {
        self->status = errand_task_select(task, &scene->select,
                                          self->number == 0 ? NEVER : self->number);
        return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
    }
    for (size_t i = 0; i < scene->count; i++)
        scene->ended_before += scene->members[i].drops;
    return ERRAND_TASK_DONE;
}

static void
set_up(test_world *in, race_scene *scene, size_t count)
{
    *scene = (race_scene){.count = count};
    for (size_t i = 0; i < count; i++) {
        scene->members[i] = (actor){.step = step_park};
        actor_spawn(in, NULL, "member", &scene->members[i]);
        assert_int_equal(
            errand_handle_open(in->runtime, &scene->members[i].id, &scene->handles[i]),
            ERRAND_OK);
    }
    assert_int_equal(
        errand_select_open(in->runtime, scene->handles, count, &scene->select),
        ERRAND_OK);
    scene->selector = (actor){.step = step_select, .arg = scene};
}

static void
tear_down(test_world *in, race_scene *scene)
{
    errand_select_close(in->runtime, &scene->select);
    for (size_t i = 0; i < scene->count; i++)
        errand_handle_close(in->runtime, &scene->handles[i]);
    world_end(in);
}

static errand_handle_state
state_of(test_world *in, const errand_handle *handle)
{
    errand_handle_state state = 0;

    assert_int_equal(errand_handle_read(in->runtime, handle, &state, NULL), ERRAND_OK);
    return state;
}

static void
wake(test_world *in, const actor *self)
{
    assert_int_equal(errand_task_wake(in->runtime, &self->id), ERRAND_OK);
}

/* D67 */
static void
first_that_ends_wins_and_the_others_are_aborted(void **state)
{
    test_world *in = *state;
    errand_handle_state won = 0;
    race_scene scene;
    size_t index = 0;

    set_up(in, &scene, MEMBERS);
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_all(in);
    assert_int_equal(errand_select_read(in->runtime, &scene.select, NULL, NULL),
                     ERRAND_EBUSY);
    wake(in, &scene.members[1]);
    drive_all(in);
    assert_int_equal(scene.selector.news.why, ERRAND_WHY_JOINED);
    assert_int_equal(scene.selector.news.joined, 1);
    assert_int_equal(scene.ended_before, 3); /* the losers' cleanup is over */
    assert_int_equal(state_of(in, &scene.handles[0]), ERRAND_HANDLE_CLOSED);
    assert_int_equal(state_of(in, &scene.handles[2]), ERRAND_HANDLE_CLOSED);
    assert_int_equal(errand_select_read(in->runtime, &scene.select, &index, &won),
                     ERRAND_OK);
    assert_int_equal(index, 1);
    assert_int_equal(won, ERRAND_HANDLE_DONE);
    tear_down(in, &scene);
}

/* D67, D149: it is the list's order that counts, not that of the ends */
static void
of_several_that_have_ended_the_earliest_in_the_list_wins(void **state)
{
    test_world *in = *state;
    race_scene scene;

    set_up(in, &scene, MEMBERS);
    drive_all(in);
    wake(in, &scene.members[2]);
    drive_all(in);
    wake(in, &scene.members[1]);
    drive_all(in);
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_all(in);
    assert_int_equal(scene.selector.news.joined, 1);
    assert_int_equal(state_of(in, &scene.handles[2]), ERRAND_HANDLE_DONE);
    assert_int_equal(state_of(in, &scene.handles[0]), ERRAND_HANDLE_CLOSED);
    assert_int_equal(scene.members[0].visits, 1);
    tear_down(in, &scene);
}

/* D67 */
static void
empty_select_is_closed_at_once(void **state)
{
    test_world *in = *state;
    errand_handle_state won = 0;
    race_scene scene;
    size_t index = 0;

    set_up(in, &scene, 0);
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_all(in);
    assert_int_equal(scene.selector.news.why, ERRAND_WHY_JOINED);
    assert_true(scene.selector.news.joined == SIZE_MAX);
    assert_int_equal(errand_select_read(in->runtime, &scene.select, &index, &won),
                     ERRAND_OK);
    assert_int_equal(won, ERRAND_HANDLE_CLOSED);
    tear_down(in, &scene);
}

/* D67 */
static void
select_that_is_closed_before_anybody_waits_aborts_all(void **state)
{
    test_world *in = *state;
    race_scene scene;

    set_up(in, &scene, MEMBERS);
    drive_all(in);
    errand_select_close(in->runtime, &scene.select);
    assert_int_equal(scene.select.node, 0);
    for (size_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(actor_end(&scene.members[i]), ERRAND_END_ABORTED);
        assert_int_equal(state_of(in, &scene.handles[i]), ERRAND_HANDLE_CLOSED);
    }
    errand_select_close(in->runtime, &scene.select);
    tear_down(in, &scene);
}

/* A waiter hears of a select that another closes. */
static void
waiter_of_a_closed_select_hears_of_no_winner(void **state)
{
    test_world *in = *state;
    race_scene scene;

    set_up(in, &scene, 1);
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_all(in);
    errand_select_close(in->runtime, &scene.select);
    drive_all(in);
    assert_int_equal(scene.selector.news.why, ERRAND_WHY_JOINED);
    assert_true(scene.selector.news.joined == SIZE_MAX);
    assert_int_equal(actor_end(&scene.members[0]), ERRAND_END_ABORTED);
    tear_down(in, &scene);
}

static errand_task_answer
step_open(errand_task *task, actor *self, const errand_task_news *news)
{
    race_scene *scene = self->arg;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    assert_int_equal(
        errand_select_open(self->in->runtime, scene->handles, MEMBERS, &scene->select),
        ERRAND_OK);
    self->status = errand_task_select(task, &scene->select, NEVER);
    return ERRAND_TASK_WAIT;
}

/* D67: and so does the end of the task that opened it */
static void
end_of_its_task_closes_a_select(void **state)
{
    test_world *in = *state;
    race_scene scene;
    actor opener = {.step = step_open, .arg = &scene};

    set_up(in, &scene, MEMBERS);
    wake(in, &scene.members[0]);
    errand_select_close(in->runtime, &scene.select);
    for (size_t i = 0; i < MEMBERS; i++)
        errand_handle_close(in->runtime, &scene.handles[i]);
    for (size_t i = 0; i < MEMBERS; i++) {
        scene.members[i] = (actor){.step = step_park};
        actor_spawn(in, NULL, "member", &scene.members[i]);
        assert_int_equal(
            errand_handle_open(in->runtime, &scene.members[i].id, &scene.handles[i]),
            ERRAND_OK);
    }
    actor_spawn(in, NULL, "opener", &opener);
    drive_all(in);
    assert_int_equal(opener.status, ERRAND_OK);
    assert_int_equal(errand_task_abort(in->runtime, &opener.id), ERRAND_OK);
    for (size_t i = 0; i < MEMBERS; i++)
        assert_int_equal(actor_end(&scene.members[i]), ERRAND_END_ABORTED);
    assert_int_equal(errand_select_read(in->runtime, &scene.select, NULL, NULL),
                     ERRAND_EUNKNOWN);
    tear_down(in, &scene);
}

/* A limit ends the wait alone. */
static void
limit_of_a_select_leaves_its_members(void **state)
{
    test_world *in = *state;
    race_scene scene;
    actor second;

    set_up(in, &scene, MEMBERS);
    scene.selector.number = errand_runtime_now(in->runtime) + 5 * MS;
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_items(in, 4);
    second = (actor){.step = step_select, .arg = &scene};
    actor_spawn(in, NULL, "second", &second);
    if (in->config.order == ERRAND_ORDER_ARRIVAL) {
        drive_all(in);
        assert_int_equal(second.status, ERRAND_EBUSY); /* one waits */
        assert_int_equal(errand_testing_clock(in->runtime, 5 * MS), ERRAND_OK);
    }
    drive_all(in);
    assert_int_equal(second.status, ERRAND_EBUSY); /* of errand_task_select */
    assert_int_equal(scene.selector.news.why, ERRAND_WHY_TIME);
    assert_int_equal(scene.members[0].ends, 0);
    second = (actor){.step = step_select, .arg = &scene};
    actor_spawn(in, NULL, "again", &second);
    wake(in, &scene.members[0]);
    drive_all(in);
    assert_int_equal(second.news.joined, 0);
    assert_int_equal(in->misuses, 1);
    tear_down(in, &scene);
}

/* A loser that is an ancestor of the task that selects takes it along, once. */
static void
selector_below_a_loser_ends_with_it(void **state)
{
    test_world *in = *state;
    race_scene scene;

    set_up(in, &scene, 2);
    actor_spawn(in, &scene.members[1].id, "selector", &scene.selector);
    drive_all(in);
    wake(in, &scene.members[0]);
    drive_all(in);
    assert_int_equal(scene.selector.visits, 1);
    assert_int_equal(actor_end(&scene.selector), ERRAND_END_ABORTED);
    tear_down(in, &scene);
}

static void
abort_the_selector(void *arg)
{
    race_scene *scene = arg;

    (void)!errand_task_abort(scene->selector.in->runtime, &scene->selector.id);
}

static errand_task_answer
step_defer(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    assert_int_equal(errand_task_defer(task, abort_the_selector, self->arg), ERRAND_OK);
    assert_int_equal(errand_task_park(task, NEVER), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* A loser's cleanup may end the task that is about to hear of the winner. */
static void
selector_that_a_losers_cleanup_ends_is_not_entered(void **state)
{
    test_world *in = *state;
    race_scene scene;

    set_up(in, &scene, 2);
    scene.members[1].step = step_defer;
    scene.members[1].arg = &scene;
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_all(in);
    wake(in, &scene.members[0]);
    drive_all(in);
    assert_int_equal(scene.selector.visits, 1);
    assert_int_equal(actor_end(&scene.selector), ERRAND_END_ABORTED);
    tear_down(in, &scene);
}

static void
names_of_selects_that_mean_nothing_are_refused(void **state)
{
    test_world *in = *state;
    race_scene scene;
    errand_select other;

    set_up(in, &scene, 1);
    other = scene.select;
    other.runtime++;
    assert_int_equal(errand_select_read(in->runtime, &other, NULL, NULL),
                     ERRAND_EFOREIGN);
    assert_int_equal(errand_select_open(in->runtime,
                                        &(errand_handle){.task = {.runtime = 1}}, 1,
                                        &other),
                     ERRAND_EFOREIGN);
    other = scene.select;
    errand_select_close(in->runtime, &scene.select);
    assert_int_equal(errand_select_read(in->runtime, &other, NULL, NULL),
                     ERRAND_EUNKNOWN);
    scene.select = other;
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_all(in);
    assert_int_equal(scene.selector.status, ERRAND_EUNKNOWN); /* of errand_task_select */
    scene.select.runtime++;
    scene.selector.drops = scene.selector.ends = 0;
    actor_spawn(in, NULL, "selector", &scene.selector);
    drive_all(in);
    assert_int_equal(scene.selector.status, ERRAND_EFOREIGN); /* of errand_task_select */
    errand_handle_close(in->runtime, &scene.handles[0]);
    scene.handles[0].task = scene.members[0].id;
    assert_int_equal(errand_select_open(in->runtime, scene.handles, 1, &other),
                     ERRAND_EUNKNOWN);
    scene.handles[0] = (errand_handle){.task = {.task = 0}}; /* as it was left by close */
    assert_int_equal(errand_select_open(in->runtime, scene.handles, 1, &other),
                     ERRAND_EUNKNOWN);
    tear_down(in, &scene);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        BOTH_ORDERS(first_that_ends_wins_and_the_others_are_aborted),
        BOTH_ORDERS(of_several_that_have_ended_the_earliest_in_the_list_wins),
        BOTH_ORDERS(empty_select_is_closed_at_once),
        BOTH_ORDERS(select_that_is_closed_before_anybody_waits_aborts_all),
        BOTH_ORDERS(waiter_of_a_closed_select_hears_of_no_winner),
        BOTH_ORDERS(end_of_its_task_closes_a_select),
        BOTH_ORDERS(limit_of_a_select_leaves_its_members),
        BOTH_ORDERS(selector_below_a_loser_ends_with_it),
        BOTH_ORDERS(selector_that_a_losers_cleanup_ends_is_not_entered),
        BOTH_ORDERS(names_of_selects_that_mean_nothing_are_refused),
    };
    return test_group("runtime/select", tests, NULL, NULL);
}
