/* SPDX-License-Identifier: MIT */
/* Goal: what is real in arrival order is in the log, and a replay serves it: what cancel found, what
 * was refused, hooks, deadlines, the clock, foreign input, and where each turn ended.
 * Method: hosts that drive and drain themselves, and say every answer that they get; recorded with
 * workers or a stepped executor, then replayed, where no job runs and no hook is called. */
#include <pthread.h>
#include "replay_rig.h"

typedef void host_fn(replay_rig *rig);

static void
record_and_replay(replay_rig *rig, host_fn *host)
{
    char text[1200];

    rig_record(rig, ERRAND_ORDER_ARRIVAL, ERRAND_RECORD_PAYLOADS);
    host(rig);
    rig_recorded(rig);
    rig_replay(rig);
    host(rig);
    rig_replayed(rig);
    if (errand_replay_status(rig->replay, text, sizeof text) != ERRAND_OK)
        fail_msg("%s", text);
    assert_string_equal(rig->said, rig->recorded);
    assert_int_equal(rig->ran, 0);
    assert_int_equal(rig->hooks, 0);
}

/* ---- a host that drains -------------------------------------------------------------------------- */

static void
say_drain(replay_rig *rig, size_t budget)
{
    size_t count = 0;

    assert_int_equal(
        errand_drain(rig->in->runtime, budget, rig_say_completion, rig, &count),
        ERRAND_OK);
    rig_say(rig, "drained %zu;", count);
}

static void
say_cancel(replay_rig *rig, const errand_identity *identity)
{
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(rig->in->runtime, identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    rig_say(rig, "cancel %d;", answer);
}

static errand_identity
start(replay_rig *rig, errand_spec spec)
{
    errand_identity identity;

    assert_int_equal(errand_start(rig->in->lease, &spec, NULL, &identity), ERRAND_OK);
    return identity;
}

static void
drain_with_cancels_and_refusals(replay_rig *rig)
{
    errand_identity first = start(rig, rig_spec(rig, "first"));
    errand_identity second = start(rig, rig_spec(rig, "second"));
    errand_identity third = start(rig, rig_spec(rig, "third"));

    rig_say(rig, "start %d;", rig_start(rig, "fourth"));
    world_step(rig->in, 1);
    say_cancel(rig, &first); /* it has ended */
    say_cancel(rig, &second);
    say_cancel(rig, &second);
    world_step(rig->in, 10);
    say_drain(rig, 1);
    rig_say(rig, "room %d;", errand_lease_wait_room(rig->in->lease, UINT64_MAX));
    rig_say(rig, "start %d;", rig_start(rig, "?"));
    assert_int_equal(errand_cancel_later(rig->in->runtime, &third), ERRAND_OK);
    world_step(rig->in, 10);
    say_drain(rig, SIZE_MAX);
    say_drain(rig, SIZE_MAX);
    say_cancel(rig, &third);
}

static void
answers_refusals_and_drains_are_the_same(void **state)
{
    replay_rig *rig = *state;

    rig->manual = true;
    rig->owed_max = 3;
    record_and_replay(rig, drain_with_cancels_and_refusals);
    assert_non_null(strstr(rig->recorded, "cancel 4;cancel 1;cancel 2;"));
    assert_non_null(strstr(rig->recorded, "'third' 1 "));
}

/* ---- a host that drives --------------------------------------------------------------------------- */

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    replay_rig *rig = own_data;

    rig_say(rig, "resumed %d %d at %llu;", news->reason,
            news->completion == NULL ? 0 : news->completion->outcome,
            (unsigned long long)errand_runtime_now(runtime));
}

static errand_identity
await(replay_rig *rig, errand_spec spec)
{
    const errand_continuation continuation = {.resume = resume, .data = rig};
    errand_runtime *runtime = rig->in->runtime;
    errand_prepared prepared;
    errand_binding binding;
    errand_submission submission;
    errand_wait wait;
    errand_identity identity;

    assert_int_equal(errand_prepare(runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(runtime, spec.kind, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_bind(runtime, &identity, &prepared, &binding), ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    assert_int_equal(errand_await(&wait, &continuation), ERRAND_OK);
    assert_int_equal(errand_submit(rig->in->lease, &submission), ERRAND_OK);
    return identity;
}

static void
drive_with(replay_rig *rig, uint32_t items)
{
    const errand_budget budget = {.struct_size = sizeof budget, .items = items};
    errand_turn turn;

    do {
        assert_int_equal(errand_drive(rig->in->runtime, &budget, &turn), ERRAND_OK);
        rig_say(rig, "turn %d: %u %u %u;", turn.kind, turn.completions, turn.visits,
                turn.timers);
        if (turn.kind == ERRAND_TURN_IDLE)
            assert_int_equal(errand_park(rig->in->runtime, turn.next_deadline_ns),
                             ERRAND_OK);
    } while (turn.kind != ERRAND_TURN_QUIESCENT);
}

static void
drive_continuations(replay_rig *rig)
{
    for (int i = 0; i < 5; i++)
        (void)await(rig, rig_spec(rig, i == 3 ? "?" : "box"));
    drive_with(rig, 2);
    (void)await(rig, rig_spec(rig, "last"));
    drive_with(rig, 0);
}

static void
turns_and_continuations_are_the_same(void **state)
{
    record_and_replay(*state, drive_continuations);
}

/* ---- cancels of what runs, hooks, deadlines --------------------------------------------------------- */

static errand_hook_answer
ask(void *data, char *text, size_t size)
{
    replay_rig *rig = data;

    (void)text;
    (void)size;
    return ++rig->hooks < 3 ? ERRAND_HOOK_PENDING : ERRAND_HOOK_REAPED;
}

static const errand_hook_type hook = {
    .struct_size = sizeof hook, .cancel = ask, .reap = ask};

static void
sleep_until_entered(replay_rig *rig)
{
    while (!rig->replays && atomic_load_explicit(&rig->ran, memory_order_relaxed) == 0)
        ;
}

static void
cancel_what_runs(replay_rig *rig)
{
    errand_spec spec = rig_spec(rig, "~");
    errand_identity identity;

    spec.held_hook = &hook;
    spec.hook_data = rig;
    identity = await(rig, spec);
    sleep_until_entered(rig);
    say_cancel(rig, &identity);
    say_cancel(rig, &identity);
    drive_with(rig, 0);
}

static void
no_hook_is_called_and_its_answers_are_the_logs(void **state)
{
    replay_rig *rig = *state;

    record_and_replay(rig, cancel_what_runs);
    assert_non_null(strstr(rig->recorded, "cancel 3;"));
}

static void
let_deadlines_pass(replay_rig *rig)
{
    errand_spec heeds = rig_spec(rig, "~"), ignores = rig_spec(rig, "!");

    heeds.deadline_ns = ignores.deadline_ns = 200000000; /* both have begun by then */
    (void)await(rig, heeds);
    (void)await(rig, ignores);
    drive_with(rig, 0);
}

static void
deadlines_pass_where_they_did(void **state)
{
    replay_rig *rig = *state;

    rig->grace_ns = 1000000;
    record_and_replay(rig, let_deadlines_pass);
    assert_non_null(strstr(rig->recorded, "'!' 2 "));
}

/* ---- tasks with limits ------------------------------------------------------------------------------- */

static errand_task_answer
time_out(errand_task *task, void *state, const errand_task_news *news)
{
    replay_actor *self = state;
    errand_spec spec;

    rig_say(self->rig, "step %d why %d reason %d at %llu;", self->step, news->why,
            news->reason, (unsigned long long)errand_runtime_now(self->rig->in->runtime));
    if (self->step++ == 2)
        return ERRAND_TASK_DONE;
    spec = rig_spec(self->rig, self->step == 1 ? "~" : "box");
    assert_int_equal(
        errand_task_await(task, self->rig->in->lease, &spec,
                          self->step == 1
                              ? errand_runtime_now(self->rig->in->runtime) + 1000000
                              : UINT64_MAX,
                          NULL),
        ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static void
run_with_a_timeout(replay_rig *rig)
{
    rig->root = (replay_actor){rig, 0, 0};
    rig_say(rig, "run %d;", rig_run(rig, time_out));
}

static void
timeouts_of_tasks_come_from_the_log(void **state)
{
    record_and_replay(*state, run_with_a_timeout);
}

static errand_task_answer
sleep_long(errand_task *task, void *state, const errand_task_news *news)
{
    replay_actor *self = state;

    rig_say(self->rig, "why %d reason %d;", news->why, news->reason);
    if (self->step++ != 0)
        return ERRAND_TASK_DONE;
    if (self->rig->inbox != NULL && !self->rig->replays)
        errand_interrupt(self->rig->inbox); /* in the replay nobody does */
    assert_int_equal(errand_task_sleep(task, 3600000000000), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static void
run_into_the_deadline(replay_rig *rig)
{
    errand_task_id id;

    rig->root = (replay_actor){rig, 0, 0};
    id = rig_spawn(rig, NULL, "root", sleep_long, &rig->root);
    rig_say(rig, "run %d;",
            errand_run(rig->in->runtime, &id,
                       errand_runtime_now(rig->in->runtime) + 1000000));
}

static void
a_run_that_timed_out_times_out_again(void **state)
{
    /* At once: nobody waits for a clock. */
    replay_rig *rig = *state;

    record_and_replay(rig, run_into_the_deadline);
    assert_non_null(strstr(rig->recorded, "run 1"));
}

/* ---- foreign input -------------------------------------------------------------------------------------- */

static void
be_told(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    rig_say(arg, "told;");
}

static void
post_to_itself(replay_rig *rig)
{
    errand_command command = {.fn = be_told, .arg = rig};
    errand_inbox *inbox = NULL;
    errand_identity identity;

    assert_int_equal(errand_inbox_open(rig->in->runtime, &inbox), ERRAND_OK);
    identity = await(rig, rig_spec(rig, "box"));
    assert_int_equal(errand_post(inbox, &command), ERRAND_OK);
    assert_int_equal(errand_post_cancel(inbox, &identity), ERRAND_OK);
    say_drain(rig, SIZE_MAX);
    drive_with(rig, 0);
    errand_inbox_abandon(&inbox);
}

static void
what_a_program_posts_itself_comes_again(void **state)
{
    replay_rig *rig = *state;

    rig->manual = true;
    record_and_replay(rig, post_to_itself);
    assert_non_null(strstr(rig->recorded, "told;"));
}

static void
be_interrupted(replay_rig *rig)
{
    assert_int_equal(errand_inbox_open(rig->in->runtime, &rig->inbox), ERRAND_OK);
    rig->root = (replay_actor){rig, 0, 0};
    rig_say(rig, "run %d;", rig_run(rig, sleep_long));
    errand_inbox_abandon(&rig->inbox);
}

static void
an_interrupt_comes_again(void **state)
{
    record_and_replay(*state, be_interrupted);
}

static void *
post_from_outside(void *arg)
{
    errand_command *command = arg;

    assert_int_equal(errand_post((errand_inbox *)command->arg, command), ERRAND_OK);
    return NULL;
}

static void
do_nothing(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    (void)arg;
}

static void
another_threads_command_ends_the_replay(void **state)
{
    replay_rig *rig = *state;
    errand_command command = {.fn = do_nothing};
    errand_inbox *inbox = NULL;
    errand_turn turn;
    pthread_t thread;
    char text[400];

    rig_record(rig, ERRAND_ORDER_ARRIVAL, ERRAND_RECORD_PAYLOADS);
    assert_int_equal(errand_inbox_open(rig->in->runtime, &inbox), ERRAND_OK);
    command.arg = inbox;
    assert_int_equal(pthread_create(&thread, NULL, post_from_outside, &command), 0);
    pthread_join(thread, NULL);
    assert_int_equal(errand_drive(rig->in->runtime, NULL, &turn), ERRAND_OK);
    assert_int_equal(turn.commands, 1);
    errand_inbox_abandon(&inbox);
    rig_recorded(rig);
    rig_replay(rig);
    assert_int_equal(errand_drive(rig->in->runtime, NULL, &turn), ERRAND_EREPRODUCE);
    rig_replayed(rig);
    assert_int_equal(errand_replay_status(rig->replay, text, sizeof text),
                     ERRAND_EREPRODUCE);
    assert_non_null(strstr(text, "another thread's command"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(answers_refusals_and_drains_are_the_same),
        TEST(turns_and_continuations_are_the_same),
        TEST(no_hook_is_called_and_its_answers_are_the_logs),
        TEST(deadlines_pass_where_they_did),
        TEST(timeouts_of_tasks_come_from_the_log),
        TEST(a_run_that_timed_out_times_out_again),
        TEST(what_a_program_posts_itself_comes_again),
        TEST(an_interrupt_comes_again),
        TEST(another_threads_command_ends_the_replay),
    };

    return test_group("recording/replay_arrival", tests, NULL, NULL);
}
