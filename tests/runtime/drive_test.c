/* SPDX-License-Identifier: MIT */
/* Goal: a turn is bounded, fair to its sources, goes on where it was cut, and says the truth about
 * what is left.
 * Method: endless work on every source at once, in arrival order on the test clock; each item
 * counts itself. */
#include "actor.h"

enum { NEWS, COMMANDS, TIMERS, VISITS, CLEANUPS, SOURCES };

/* ---- endless work ----------------------------------------------------------------------------- */

typedef struct endless {
    test_world *in;
    errand_inbox *inbox;
    unsigned done[SOURCES];
    world_job jobs[2];
    errand_command command;
    actor sleepers[40], yields[3];
    bool stop;
} endless;

static void
again(void *arg, errand_completion *completion)
{
    endless *all = arg;
    size_t count;

    all->done[NEWS]++;
    if (all->stop)
        return;
    world_start(all->in, completion->wait); /* and the next one is there at once */
    assert_int_equal(errand_manual_step(all->in->executor, 1, &count), ERRAND_OK);
}

static void
command_again(errand_runtime *runtime, void *arg)
{
    endless *all = arg;

    (void)runtime;
    all->done[COMMANDS]++;
    if (!all->stop)
        assert_int_equal(errand_post(all->inbox, &all->command), ERRAND_OK);
}

static errand_task_answer
step_sleep_again(errand_task *task, actor *self, const errand_task_news *news)
{
    endless *all = self->arg;

    if (news->why == ERRAND_WHY_TIME)
        all->done[VISITS]++;
    self->status = errand_task_sleep(task, 1);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
}

static errand_task_answer
step_yield_again(errand_task *task, actor *self, const errand_task_news *news)
{
    ((endless *)self->arg)->done[VISITS]++;
    return step_yield(task, self, news);
}

static errand_hook_answer
ask(void *data, char *text, size_t size)
{
    (void)data;
    (void)text;
    (void)size;
    return ERRAND_HOOK_PENDING;
}

static errand_identity reaped[8];

static errand_hook_answer
reap_again(void *data, char *text, size_t size)
{
    endless *all = data;

    (void)text;
    (void)size;
    all->done[CLEANUPS]++;
    return all->stop ? ERRAND_HOOK_REAPED : ERRAND_HOOK_PENDING;
}

static const errand_hook_type hook = {
    .struct_size = sizeof hook, .cancel = ask, .reap = reap_again};

static void
cancel_while_running(errand_job *job, world_job *self)
{
    errand_identity identity = errand_job_identity(job);
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(self->world->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
}

/* Entries whose hook never answers REAPED; their cleanups are asked for before each turn. */
static void
make_entries(endless *all)
{
    static world_job jobs[8];

    for (unsigned i = 0; i < 8; i++) {
        errand_spec spec;

        jobs[i] = (world_job){.world = all->in, .inside = cancel_while_running};
        spec = world_spec(&jobs[i]);
        spec.held_hook = &hook;
        spec.hook_data = all;
        assert_int_equal(errand_start(all->in->lease, &spec, NULL, &reaped[i]),
                         ERRAND_OK);
    }
    world_step(all->in, 8);
    world_drain(all->in, 8);
}

static endless *
endless_begin(test_world *in)
{
    static endless all;
    errand_runtime_config config = in->config;

    world_end(in);
    all = (endless){.in = in};
    config.on_completion = again;
    config.held_on_completion_arg = &all;
    world_begin(in, &config, 0);
    assert_int_equal(errand_inbox_open(in->runtime, &all.inbox), ERRAND_OK);
    all.command = (errand_command){.fn = command_again, .arg = &all};
    make_entries(&all);
    for (unsigned i = 0; i < 40; i++) {
        all.sleepers[i] = (actor){.step = step_sleep_again, .arg = &all};
        actor_spawn(in, NULL, "sleeper", &all.sleepers[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        all.yields[i] = (actor){.step = step_yield_again, .arg = &all};
        actor_spawn(in, NULL, "yields", &all.yields[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        world_start(in, &all.jobs[i]);
    world_step(in, 2);
    assert_int_equal(errand_post(all.inbox, &all.command), ERRAND_OK);
    while (drive_items(in, 43).visits == 43) /* every sleeper sleeps */
        continue;
    return &all;
}

static void
endless_end(endless *all)
{
    all->stop = true;
    errand_inbox_abandon(&all->inbox);
    world_end(all->in);
}

/* Work for every source is there again, however little of it was taken. */
static errand_turn
turn_of(endless *all, uint32_t items)
{
    assert_int_equal(errand_testing_clock(all->in->runtime, 1), ERRAND_OK);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(errand_reap_ready(all->in->runtime, &reaped[i]), ERRAND_OK);
    return drive_items(all->in, items);
}

/* O70 (completions and commands are one source: they keep their order among themselves) */
static void
each_source_gets_an_eighth_of_the_items_over_eight_turns(void **state)
{
    static const uint32_t budgets[] = {1, 2, 3, 5, 7, 8, 9, 13, 16, 40};
    endless *all = endless_begin(*state);

    for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
        uint32_t items = budgets[b];
        errand_turn turns[8] = {{.kind = 0}};

        for (unsigned i = 0; i < 64; i++) { /* any eight: a window that slides */
            unsigned sums[4] = {0};

            turns[i % 8] = turn_of(all, items);
            for (unsigned j = 0; i >= 7 && j < 8; j++) {
                sums[0] += turns[j].completions + turns[j].commands;
                sums[1] += turns[j].timers;
                sums[2] += turns[j].visits;
                sums[3] += turns[j].cleanups;
            }
            for (unsigned source = 0; i >= 7 && source < 4; source++)
                if (source != 3 || items <= 16) /* eight entries are 8 a turn at most */
                    assert_true(sums[source] >= items);
        }
    }
    endless_end(all);
}

/* O69 */
static void
turn_never_takes_more_than_its_items(void **state)
{
    endless *all = endless_begin(*state);

    for (uint32_t items = 1; items < 60; items++) {
        errand_turn turn = turn_of(all, items);
        uint32_t sum =
            turn.completions + turn.timers + turn.visits + turn.cleanups + turn.commands;

        assert_int_equal(sum, items); /* there is more than enough */
        assert_int_equal(turn.kind, ERRAND_TURN_PROGRESS);
    }
    endless_end(all);
}

/* O69 */
static void
turns_of_one_item_reach_every_source(void **state)
{
    endless *all = endless_begin(*state);
    unsigned sums[SOURCES] = {0};

    for (unsigned i = 0; i < 16; i++) {
        errand_turn turn = turn_of(all, 1);

        sums[NEWS] += turn.completions;
        sums[COMMANDS] += turn.commands;
        sums[TIMERS] += turn.timers;
        sums[VISITS] += turn.visits;
        sums[CLEANUPS] += turn.cleanups;
    }
    for (unsigned source = 0; source < SOURCES; source++)
        assert_true(sums[source] > 0);
    endless_end(all);
}

static void
limits_of_each_kind_hold_and_the_others_go_on(void **state)
{
    endless *all = endless_begin(*state);
    const errand_budget budget = {.struct_size = sizeof budget,
                                  .items = 100,
                                  .completions = 2,
                                  .timers = 3,
                                  .visits = 4,
                                  .cleanups = 5,
                                  .commands = 1};
    errand_turn turn;

    assert_int_equal(errand_testing_clock(all->in->runtime, 1), ERRAND_OK);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(errand_reap_ready(all->in->runtime, &reaped[i]), ERRAND_OK);
    assert_int_equal(errand_drive(all->in->runtime, &budget, &turn), ERRAND_OK);
    assert_in_range(turn.completions, 1, 2);
    assert_int_equal(turn.timers, 3);
    assert_int_equal(turn.visits, 4);
    assert_int_equal(turn.cleanups, 5);
    assert_int_equal(turn.commands, 1);
    endless_end(all);
}

static void
turn_without_a_limit_ends_although_the_work_does_not(void **state)
{
    endless *all = endless_begin(*state);
    const errand_budget budget = {.struct_size = sizeof budget};
    errand_turn turn;

    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(errand_testing_clock(all->in->runtime, 1), ERRAND_OK);
        assert_int_equal(errand_drive(all->in->runtime, &budget, &turn), ERRAND_OK);
        assert_int_equal(turn.kind, ERRAND_TURN_PROGRESS);
    }
    endless_end(all);
}

/* ---- what a turn says -------------------------------------------------------------------------- */

/* O71 */
static void
turn_says_progress_idle_or_quiescent(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    actor self = {.step = step_done};
    errand_turn turn;

    assert_int_equal(drive_items(in, 10).kind, ERRAND_TURN_QUIESCENT);
    actor_spawn(in, NULL, "done", &self);
    turn = drive_items(in, 10);
    assert_int_equal(turn.kind, ERRAND_TURN_PROGRESS);
    assert_int_equal(turn.visits, 1);
    assert_int_equal(drive_items(in, 10).kind, ERRAND_TURN_QUIESCENT);
    world_start(in, &job);
    turn = drive_items(in, 10);
    assert_int_equal(turn.kind, ERRAND_TURN_IDLE);
    assert_true(turn.inbox_needed);
    assert_int_equal(turn.next_deadline_ns, NEVER);
    world_step(in, 1);
    turn = drive_items(in, 10); /* nothing is buffered when it says idle */
    assert_int_equal(turn.kind, ERRAND_TURN_PROGRESS);
    assert_int_equal(turn.completions, 1);
    assert_int_equal(drive_items(in, 10).kind, ERRAND_TURN_QUIESCENT);
    world_end(in);
}

static void
budget_that_cannot_be_read_is_refused(void **state)
{
    test_world *in = *state;
    errand_budget budget = {.struct_size = sizeof budget - 1};
    errand_turn turn = {.kind = 0};

    assert_int_equal(errand_drive(in->runtime, &budget, &turn), ERRAND_EINVAL);
    assert_int_equal(turn.kind, 0);
    budget.struct_size++;
    budget.wall_ns = 1;
    assert_int_equal(errand_drive(in->runtime, &budget, NULL), ERRAND_OK);
    world_end(in);
    in->config.order = ERRAND_ORDER_INLINE;
    in->config.flags = 0;
    world_begin(in, &in->config, 0);
    assert_int_equal(errand_drive(in->runtime, &budget, NULL), ERRAND_EINVAL);
    world_end(in);
}

/* O69: real time is looked at after each item. */
static void
wall_clock_ends_a_turn_of_endless_work(void **state)
{
    test_world *in = *state;
    const errand_budget budget = {
        .struct_size = sizeof budget, .items = UINT32_MAX, .wall_ns = MS};
    actor self = {.step = step_yield};
    errand_turn turn;

    actor_spawn(in, NULL, "endless", &self);
    assert_int_equal(errand_drive(in->runtime, &budget, &turn), ERRAND_OK);
    assert_in_range(turn.visits, 1, 10000000);
    world_end(in);
}

static int order[4];
static size_t order_count;

static void
note_completion(void *arg, errand_completion *completion)
{
    (void)arg;
    (void)completion;
    order[order_count++] = NEWS;
}

static void
note_command(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    order[order_count++] = *(int *)arg;
}

/* O65: news keep the order in which they were put. */
static void
command_does_not_overtake_a_completion(void **state)
{
    static int marks[2] = {7, 8};
    test_world *in = *state;
    errand_runtime_config config = in->config;
    errand_command commands[2];
    world_job job = {.ran = 0};
    errand_inbox *inbox;

    world_end(in);
    config.on_completion = note_completion;
    world_begin(in, &config, 0);
    order_count = 0;
    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    for (int i = 0; i < 2; i++)
        commands[i] = (errand_command){.fn = note_command, .arg = &marks[i]};
    world_start(in, &job);
    assert_int_equal(errand_post(inbox, &commands[0]), ERRAND_OK);
    world_step(in, 1);
    assert_int_equal(errand_post(inbox, &commands[1]), ERRAND_OK);
    drive_all(in);
    assert_int_equal(order_count, 3);
    assert_int_equal(order[0], 7);
    assert_int_equal(order[1], NEWS);
    assert_int_equal(order[2], 8);
    errand_inbox_abandon(&inbox);
    world_end(in);
}

/* O45: a queued operation's deadline is a timer of the turn. */
static void
deadline_of_an_operation_fires_in_a_turn(void **state)
{
    test_world *in = *state;
    world_job job = {.world = in};
    errand_spec spec = world_spec(&job);
    errand_turn turn;

    spec.deadline_ns = 50;
    assert_int_equal(errand_start(in->lease, &spec, NULL, NULL), ERRAND_OK);
    turn = drive_all(in);
    assert_int_equal(turn.next_deadline_ns, 50);
    assert_int_equal(errand_testing_clock(in->runtime, 50), ERRAND_OK);
    turn = drive_items(in, 10);
    assert_int_equal(turn.timers, 1);
    assert_int_equal(turn.completions, 1);
    assert_int_equal(job.ran, 0);
    assert_int_equal(job.dropped, 1);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            each_source_gets_an_eighth_of_the_items_over_eight_turns, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(turn_never_takes_more_than_its_items, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(turns_of_one_item_reach_every_source, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(limits_of_each_kind_hold_and_the_others_go_on,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            turn_without_a_limit_ends_although_the_work_does_not, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(turn_says_progress_idle_or_quiescent, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(budget_that_cannot_be_read_is_refused,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(wall_clock_ends_a_turn_of_endless_work,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(command_does_not_overtake_a_completion,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(deadline_of_an_operation_fires_in_a_turn,
                                        world_setup, world_teardown),
    };
    return test_group("runtime/drive", tests, NULL, NULL);
}
