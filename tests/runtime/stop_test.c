/* SPDX-License-Identifier: MIT */
/* Goal: a stop has one value, is heard by all who hold a signal, and is complete when the last of
 * them has let go.
 * Method: actors on the manual executor; the one suite runs in arrival order, where the test moves
 * the clock, and in inline order. */
#include "errand/tree.h"
#include "actor.h"
#include "both.h"

typedef struct hearer { /* waits for the stop, cleans up for number ns, releases */
    errand_signal signal;
    bool keeps; /* it never releases, nor ends */
    uint64_t released;
    int32_t value;
} hearer;

static errand_task_answer
step_hear(errand_task *task, actor *self, const errand_task_news *news)
{
    hearer *mine = self->arg;

    switch (news->why) {
    case ERRAND_WHY_START:
        assert_int_equal(errand_signal_hold(self->in->runtime, &mine->signal), ERRAND_OK);
        self->status = errand_task_stopped(task, &mine->signal, NEVER);
        return ERRAND_TASK_WAIT;
    case ERRAND_WHY_STOPPED:
        assert_true(errand_stop_asked(self->in->runtime, &mine->value));
        self->status = mine->keeps ? errand_task_park(task, NEVER)
                                   : errand_task_sleep(task, self->number);
        return ERRAND_TASK_WAIT;
    default:
        errand_signal_release(self->in->runtime, &mine->signal);
        mine->released = errand_runtime_now(self->in->runtime);
        assert_int_equal(errand_task_park(task, NEVER), ERRAND_OK);
        return ERRAND_TASK_WAIT;
    }
}

typedef struct stopper {
    int32_t value;
    uint64_t limit;
} stopper;

static errand_task_answer
step_stop(errand_task *task, actor *self, const errand_task_news *news)
{
    const stopper *mine = self->arg;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    self->status = errand_task_stop(task, mine->value, mine->limit);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_FAILED;
}

/* Until nothing goes on for so long. */
static void
pass_time(test_world *in, uint64_t ns)
{
    drive_all(in);
    for (uint64_t gone = 0; in->config.order == ERRAND_ORDER_ARRIVAL && gone < ns;
         gone += MS) {
        assert_int_equal(errand_testing_clock(in->runtime, MS), ERRAND_OK);
        drive_all(in);
    }
}

/* D76, D77, D78, D80 */
static void
stop_returns_when_the_last_hearer_has_cleaned_up(void **state)
{
    test_world *in = *state;
    stopper first = {5, NEVER}, second = {6, NEVER};
    actor stoppers[2] = {{.step = step_stop, .arg = &first},
                         {.step = step_stop, .arg = &second}};
    hearer hearers[3] = {{.keeps = false}};
    actor actors[3];
    uint64_t last = 0;

    for (size_t i = 0; i < 3; i++) {
        actors[i] =
            (actor){.step = step_hear, .arg = &hearers[i], .number = (10 + 10 * i) * MS};
        actor_spawn(in, NULL, "hearer", &actors[i]);
    }
    drive_all(in);
    actor_spawn(in, NULL, "first", &stoppers[0]);
    drive_items(in, 1);
    actor_spawn(in, NULL, "second", &stoppers[1]);
    pass_time(in, 50 * MS);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hearers[i].value, 5); /* the first value wins for everyone */
        assert_true(hearers[i].released != 0);
        assert_int_equal(actors[i].ends, 0);
        last = hearers[i].released > last ? hearers[i].released : last;
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(stoppers[i].news.why, ERRAND_WHY_STOPPED);
        assert_true(stoppers[i].time >= last);
    }
    world_end(in);
}

/* D79 */
static void
stop_with_a_limit_leaves_the_holders_their_signals(void **state)
{
    test_world *in = *state;
    stopper limited = {1, errand_runtime_now(in->runtime) + 20 * MS};
    actor stop = {.step = step_stop, .arg = &limited};
    hearer mine = {.keeps = true};
    actor holder = {.step = step_hear, .arg = &mine};
    errand_tree tree;

    actor_spawn(in, NULL, "holder", &holder);
    drive_all(in);
    actor_spawn(in, NULL, "stop", &stop);
    pass_time(in, 30 * MS);
    assert_int_equal(stop.news.why, ERRAND_WHY_TIME);
    assert_int_equal(holder.ends, 0);
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    assert_int_equal(tree.signals, 1);
    limited.limit = NEVER;
    stop = (actor){.step = step_stop, .arg = &limited};
    actor_spawn(in, NULL, "stop", &stop);
    drive_all(in);
    assert_int_equal(stop.visits, 1);
    /* the end of its task releases a signal */
    assert_int_equal(errand_task_abort(in->runtime, &holder.id), ERRAND_OK);
    drive_all(in);
    assert_int_equal(stop.news.why, ERRAND_WHY_STOPPED);
    world_end(in);
}

/* D81, D83 */
static void
stop_without_holders_is_complete_at_once_and_stays_so(void **state)
{
    test_world *in = *state;
    stopper first = {9, NEVER}, later = {10, NEVER};
    actor stop = {.step = step_stop, .arg = &first};
    hearer mine = {.keeps = true};
    actor late = {.step = step_hear, .arg = &mine};
    int32_t value = 0;

    assert_false(errand_stop_asked(in->runtime, &value));
    actor_spawn(in, NULL, "stop", &stop);
    drive_all(in);
    assert_int_equal(stop.news.why, ERRAND_WHY_STOPPED);
    actor_spawn(in, NULL, "late", &late); /* keeps a signal that nobody waits for */
    drive_all(in);
    assert_int_equal(mine.value, 9);
    stop = (actor){.step = step_stop, .arg = &later};
    actor_spawn(in, NULL, "again", &stop);
    drive_all(in);
    assert_int_equal(stop.news.why, ERRAND_WHY_STOPPED);
    assert_true(errand_stop_asked(in->runtime, &value));
    assert_int_equal(value, 9);
    world_end(in);
}

/* D76: a clone holds, and each is released once */
static void
clone_of_a_signal_counts_as_held(void **state)
{
    test_world *in = *state;
    stopper first = {3, NEVER};
    actor stop = {.step = step_stop, .arg = &first};
    errand_signal signal, clone, other;
    errand_tree tree;

    assert_int_equal(errand_signal_hold(in->runtime, &signal), ERRAND_OK);
    assert_int_equal(errand_signal_clone(in->runtime, &signal, &clone), ERRAND_OK);
    other = signal;
    errand_signal_release(in->runtime, &signal);
    errand_signal_release(in->runtime, &signal);
    errand_signal_release(in->runtime, &other); /* a copy of what was released */
    assert_int_equal(errand_tree_read(in->runtime, &tree), ERRAND_OK);
    assert_int_equal(tree.signals, 1);
    assert_int_equal(errand_signal_clone(in->runtime, &signal, &other), ERRAND_ESPENT);
    other.runtime = 1;
    other.node = 1;
    assert_int_equal(errand_signal_clone(in->runtime, &other, &signal), ERRAND_EFOREIGN);
    actor_spawn(in, NULL, "stop", &stop);
    drive_all(in);
    assert_int_equal(stop.visits, 1);
    errand_signal_release(in->runtime, &clone);
    drive_all(in);
    assert_int_equal(stop.news.why, ERRAND_WHY_STOPPED);
    assert_int_equal(in->misuses, 2);
    world_end(in);
}

static errand_task_answer
step_wait_spent(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_signal signal = {.node = 0};

    (void)news;
    assert_int_equal(errand_task_stopped(task, &signal, NEVER), ERRAND_ESPENT);
    signal = (errand_signal){.runtime = 1, .node = 1};
    self->status = errand_task_stopped(task, &signal, NEVER);
    return ERRAND_TASK_DONE;
}

/* D82 */
static void
run_ends_although_a_task_waits_for_the_stop(void **state)
{
    test_world *in = *state;
    hearer mine = {.keeps = false};
    actor root = {.step = step_yield}, waiter = {.step = step_hear, .arg = &mine};
    actor spent = {.step = step_wait_spent};

    actor_spawn(in, NULL, "root", &root);
    actor_spawn(in, &root.id, "waiter", &waiter);
    actor_spawn(in, &root.id, "spent", &spent);
    drive_items(in, 3);
    assert_int_equal(spent.status, ERRAND_EFOREIGN); /* of errand_task_stopped */
    root.step = step_done;
    assert_int_equal(errand_run(in->runtime, &root.id, NEVER), ERRAND_OK);
    assert_int_equal(actor_end(&waiter), ERRAND_END_ABORTED);
    assert_int_equal(actor_end(&root), ERRAND_END_DONE);
    world_end(in);
    assert_true(in->report.clean);
}

static void
count_stops(void *arg, const errand_step *step)
{
    unsigned *counts = arg;

    counts[0] += step->kind == ERRAND_STEP_STOP;
    counts[1] += step->kind == ERRAND_STEP_STOPPED;
}

/* D84 */
static void
stop_and_signals_are_steps_of_the_audit(void **state)
{
    test_world *in = *state;
    unsigned counts[2] = {0, 0};
    errand_signal signal;
    uint64_t digest;

    assert_int_equal(errand_trace(in->runtime, count_stops, counts), ERRAND_OK);
    digest = errand_digest(in->runtime);
    assert_int_equal(errand_signal_hold(in->runtime, &signal), ERRAND_OK);
    assert_int_equal(errand_stop(in->runtime, 1), ERRAND_OK);
    assert_int_equal(errand_stop(in->runtime, 2), ERRAND_OK);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 1);
    if (in->config.order != ERRAND_ORDER_ARRIVAL)
        assert_int_not_equal(digest, errand_digest(in->runtime));
    assert_int_equal(errand_trace(in->runtime, NULL, NULL), ERRAND_OK);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        BOTH_ORDERS(stop_returns_when_the_last_hearer_has_cleaned_up),
        BOTH_ORDERS(stop_with_a_limit_leaves_the_holders_their_signals),
        BOTH_ORDERS(stop_without_holders_is_complete_at_once_and_stays_so),
        BOTH_ORDERS(clone_of_a_signal_counts_as_held),
        BOTH_ORDERS(run_ends_although_a_task_waits_for_the_stop),
        BOTH_ORDERS(stop_and_signals_are_steps_of_the_audit),
    };
    return test_group("runtime/stop", tests, NULL, NULL);
}
