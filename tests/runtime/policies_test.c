/* SPDX-License-Identifier: MIT */
/* Goal: passes and picks of whole runs: who runs when, and that virtual time keeps its rules under
 * every policy.
 * Method: tasks that yield, wake each other and end each other, on a trail of who ran. */
#include <string.h>
#include "actor.h"
#include "errand/choice.h"

enum { TASKS = 6, TRAIL = 400 };

typedef struct scene {
    actor tasks[TASKS];
    char trail[TRAIL + 1];
    size_t length;
} scene;

static scene the;

static void
begin(test_world *in, uint64_t seed, errand_policy policy)
{
    errand_choices choices = ERRAND_CHOICES_INIT;
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_INLINE,
                                    .seed = seed,
                                    .choices = &choices};

    choices.policy = policy;
    choices.steps = 60;
    world_end(in);
    world_begin(in, &config, 0);
    memset(&the, 0, sizeof the);
}

static void
note(const actor *self)
{
    if (the.length < TRAIL)
        the.trail[the.length++] = (char)('a' + (self - the.tasks));
}

/* Yields number times. */
static errand_task_answer
step_turns(errand_task *task, actor *self, const errand_task_news *news)
{
    note(self);
    if (self->number-- == 0)
        return ERRAND_TASK_DONE;
    return step_yield(task, self, news);
}

static void
spawn_turns(test_world *in, size_t count, uint64_t turns)
{
    for (size_t i = 0; i < count; i++) {
        the.tasks[i] = (actor){.step = step_turns, .number = turns};
        actor_spawn(in, NULL, "turns", &the.tasks[i]);
    }
}

/* D2: five tasks and more that yield. */
static void
two_seeds_give_two_orders_of_yielding_tasks(void **state)
{
    char first[TRAIL + 1];
    unsigned others = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin(*state, seed, ERRAND_POLICY_SHUFFLE);
        spawn_turns(*state, 5, 2);
        drive_all(*state);
        assert_int_equal(the.length, 15);
        if (seed == 1)
            memcpy(first, the.trail, sizeof first);
        others += strcmp(first, the.trail) != 0;
    }
    assert_true(others >= 8);
}

/* D3, D6: under both fair policies nobody runs twice before all of a pass have run. */
static void
a_busy_task_waits_for_all_of_its_pass(void **state)
{
    for (errand_policy policy = ERRAND_POLICY_SHUFFLE; policy <= ERRAND_POLICY_FIFO;
         policy++) {
        begin(*state, 5, policy);
        spawn_turns(*state, TASKS, 9);
        drive_all(*state);
        assert_int_equal(the.length, 60);
        for (size_t pass = 0; pass < 60; pass += TASKS) {
            unsigned seen = 0;

            for (size_t i = 0; i < TASKS; i++)
                seen |= 1U << (the.trail[pass + i] - 'a');
            assert_int_equal(seen, (1U << TASKS) - 1);
        }
    }
}

/* D3: what is woken in a pass runs in a later one. */
static errand_task_answer
step_wake_next(errand_task *task, actor *self, const errand_task_news *news)
{
    test_world *in = self->in;

    note(self);
    if (self != &the.tasks[0]) {
        self->status = errand_task_park(task, 50 * MS);
        return news->why == ERRAND_WHY_TIME ? ERRAND_TASK_DONE : ERRAND_TASK_WAIT;
    }
    for (size_t i = 1; i < TASKS; i++) {
        assert_int_equal(errand_task_wake(in->runtime, &the.tasks[i].id), ERRAND_OK);
        assert_int_equal(errand_task_wake(in->runtime, &the.tasks[i].id), ERRAND_OK);
    }
    return ERRAND_TASK_DONE;
}

/* D3, D7: two wakes are one visit, in the next pass. */
static void
two_wakes_before_it_runs_are_one_visit(void **state)
{
    test_world *in = *state;

    begin(in, 5, ERRAND_POLICY_SHUFFLE);
    for (size_t i = 1; i < TASKS; i++) {
        the.tasks[i] = (actor){.step = step_wake_next};
        actor_spawn(in, NULL, "woken", &the.tasks[i]);
    }
    drive_items(in, TASKS - 1);
    assert_int_equal(the.length, TASKS - 1);
    the.tasks[0] = (actor){.step = step_wake_next};
    actor_spawn(in, NULL, "waker", &the.tasks[0]);
    while (the.length < 2 * TASKS - 1)
        drive_items(in, 1);
    assert_int_equal(the.trail[TASKS - 1], 'a');
    for (size_t i = 1; i < TASKS; i++)
        assert_true(the.tasks[i].time > the.tasks[0].time);
    drive_all(in);
    assert_int_equal(the.length, 3 * TASKS - 2); /* then their limit: no other wake */
    for (size_t i = 1; i < TASKS; i++) {
        assert_int_equal(actor_end(&the.tasks[i]), ERRAND_END_DONE);
        assert_int_equal(the.tasks[i].visits, 3);
        assert_true(the.tasks[i].time >= 50 * MS);
    }
}

/* ---- D8 ------------------------------------------------------------------------------------------- */

static unsigned visit_steps;

static void
count_visits(void *arg, const errand_step *step)
{
    (void)arg;
    visit_steps += step->kind == ERRAND_STEP_TASK;
}

static errand_task_answer
step_abort_others(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)task;
    (void)news;
    note(self);
    for (size_t i = 0; i < TASKS; i++) {
        if (&the.tasks[i] != self && the.tasks[i].ends == 0)
            assert_int_equal(errand_task_abort(self->in->runtime, &the.tasks[i].id),
                             ERRAND_OK);
    }
    return ERRAND_TASK_DONE;
}

static void
what_ended_in_the_middle_of_a_pass_is_skipped_without_a_step(void **state)
{
    test_world *in = *state;

    for (int policy = 0; policy < ERRAND_POLICIES; policy++) {
        begin(in, 5, (errand_policy)policy);
        visit_steps = 0;
        assert_int_equal(errand_trace(in->runtime, count_visits, NULL), ERRAND_OK);
        for (size_t i = 0; i < TASKS; i++) {
            the.tasks[i] = (actor){.step = step_abort_others};
            actor_spawn(in, NULL, "last", &the.tasks[i]);
        }
        drive_all(in);
        assert_int_equal(the.length, 1); /* the first to run ends all others */
        assert_int_equal(visit_steps, 1);
        assert_int_equal(errand_runtime_picks(in->runtime), 1);
        for (size_t i = 0; i < TASKS; i++)
            assert_int_equal(the.tasks[i].ends, 1);
        world_end(in);
    }
}

/* ---- time ------------------------------------------------------------------------------------------ */

/* D144: busy tasks under any policy: a sleep ends in its instant, and time moves a cycle at most. */
static void
time_moves_by_its_rules_under_every_policy(void **state)
{
    test_world *in = *state;

    for (int policy = 0; policy < ERRAND_POLICIES; policy++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            actor sleeper = {.step = step_sleep, .number = 20 * MS + 300};
            uint64_t now = 0;

            begin(in, seed, (errand_policy)policy);
            spawn_turns(in, 3, 1000);
            actor_spawn(in, NULL, "sleeper", &sleeper);
            while (sleeper.ends == 0) {
                uint64_t before = now;

                assert_int_equal(errand_drive(in->runtime, NULL, NULL), ERRAND_OK);
                now = errand_runtime_now(in->runtime);
                assert_true(now - before <= MS);
                assert_true(now < 200 * MS);
            }
            assert_true(sleeper.time >= 20 * MS + 300);
            /* Who is first in line of a policy that is not fair may hold it up for a while. */
            assert_true(policy > ERRAND_POLICY_FIFO || sleeper.time == 20 * MS + 300 ||
                        sleeper.time < 22 * MS);
            world_end(in);
        }
    }
}

/* A past deadline goes on in the same instant, so it is a pick more. */
static errand_task_answer
step_past(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    note(self);
    if (self->number-- == 0)
        return ERRAND_TASK_DONE;
    self->status = errand_task_sleep_until(task, 0);
    return ERRAND_TASK_WAIT;
}

static void
past_deadlines_take_no_time_under_every_policy(void **state)
{
    test_world *in = *state;

    for (int policy = 0; policy < ERRAND_POLICIES; policy++) {
        begin(in, 3, (errand_policy)policy);
        for (size_t i = 0; i < 3; i++) {
            the.tasks[i] = (actor){.step = step_past, .number = 10};
            actor_spawn(in, NULL, "past", &the.tasks[i]);
        }
        drive_all(in);
        assert_int_equal(the.length, 33);
        assert_int_equal(errand_runtime_now(in->runtime), 0);
        world_end(in);
    }
}

static uint64_t
digest_of(test_world *in, errand_policy policy, uint32_t items)
{
    errand_turn turn;
    uint64_t digest;

    begin(in, 7, policy);
    spawn_turns(in, TASKS, 5);
    do
        turn = drive_items(in, items);
    while (turn.kind == ERRAND_TURN_PROGRESS);
    digest = errand_digest(in->runtime);
    assert_int_equal(errand_runtime_picks(in->runtime), 6 * TASKS);
    world_end(in);
    return digest;
}

static void
how_turns_are_cut_changes_no_policys_run(void **state)
{
    for (int policy = 0; policy < ERRAND_POLICIES; policy++) {
        uint64_t digest = digest_of(*state, (errand_policy)policy, 256);

        for (uint32_t items = 0; items < 8; items++)
            assert_int_equal(digest_of(*state, (errand_policy)policy, items), digest);
    }
}

/* ---- continuations are items too ---------------------------------------------------------------------- */

static void
note_resume(void *data, errand_runtime *runtime, const errand_news *news)
{
    (void)runtime;
    (void)news;
    the.trail[the.length++] = *(char *)data;
}

static void
await_by_continuation(test_world *in, world_job *job, char *name)
{
    const errand_continuation continuation = {.resume = note_resume, .data = name};
    errand_spec spec = world_spec(job);
    errand_submission submission;
    errand_prepared prepared;
    errand_identity identity;
    errand_binding binding;
    errand_wait wait;

    job->world = in;
    assert_int_equal(errand_prepare(in->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(in->runtime, 1, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_bind(in->runtime, &identity, &prepared, &binding), ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    assert_int_equal(errand_await(&wait, &continuation), ERRAND_OK);
    assert_int_equal(errand_submit(in->lease, &submission), ERRAND_OK);
}

static void
a_continuations_place_hangs_on_its_operation(void **state)
{
    static char names[] = "abcde";
    test_world *in = *state;
    errand_choices choices = ERRAND_CHOICES_INIT;
    errand_choice choice, place;
    world_job jobs[5] = {{.ran = 0}};
    size_t places = 0;

    assert_int_equal(errand_tape_create(&choices.held_record), ERRAND_OK);
    world_end(in);
    in->config.choices = &choices;
    world_begin(in, &in->config, 0);
    memset(&the, 0, sizeof the);
    assert_int_equal(errand_order_latency(in->runtime, 1, 1), ERRAND_OK); /* equal dues */
    for (size_t i = 0; i < 5; i++)
        await_by_continuation(in, &jobs[i], &names[i]);
    drive_all(in);
    assert_int_equal(the.length, 5);
    for (size_t i = 0; errand_tape_at(choices.held_record, i, &choice); i++) {
        if (choice.site != ERRAND_SITE_TIE)
            continue;
        assert_int_equal(errand_tape_find(choices.held_record, ERRAND_SITE_PLACE,
                                          choice.key, 0, &place),
                         ERRAND_OK);
        places++;
    }
    assert_int_equal(places, 5);
    world_end(in);
    errand_tape_abandon(&choices.held_record);
}

#define RUN_TEST(name)                                                                   \
    cmocka_unit_test_setup_teardown(name, world_setup_inline, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        RUN_TEST(two_seeds_give_two_orders_of_yielding_tasks),
        RUN_TEST(a_busy_task_waits_for_all_of_its_pass),
        RUN_TEST(two_wakes_before_it_runs_are_one_visit),
        RUN_TEST(what_ended_in_the_middle_of_a_pass_is_skipped_without_a_step),
        RUN_TEST(time_moves_by_its_rules_under_every_policy),
        RUN_TEST(past_deadlines_take_no_time_under_every_policy),
        RUN_TEST(how_turns_are_cut_changes_no_policys_run),
        RUN_TEST(a_continuations_place_hangs_on_its_operation),
    };
    return test_group("runtime/policies", tests, NULL, NULL);
}
