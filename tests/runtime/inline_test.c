/* SPDX-License-Identifier: MIT */
/* Goal: in the seeded orders time moves as promised, and operations follow it.
 * Method: exact instants, and dues read from the records. */
#include <pthread.h>
#include <string.h>
#include "actor.h"
#include "runtime/runtime.h"

#define SECOND UINT64_C(1000000000)

/* D19, D22, D23 */
static void
lone_sleep_ends_exactly_at_its_time(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_sleep, .number = 10 * SECOND};

    assert_int_equal(errand_runtime_now(in->runtime), 0);
    actor_spawn(in, NULL, "sleeper", &self);
    assert_int_equal(errand_run(in->runtime, &self.id, NEVER), ERRAND_OK);
    assert_int_equal(errand_runtime_now(in->runtime), 10 * SECOND);
    assert_true(in->runtime->scheduler.passes < 10);
    world_end(in);
    in->config.start_ns = 77;
    world_begin(in, &in->config, 0);
    assert_int_equal(errand_runtime_now(in->runtime), 77);
    world_end(in);
}

static uint64_t times[8][64];
static unsigned time_count[8];

static errand_task_answer
step_note_time(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    times[self->number][time_count[self->number]++] = self->time;
    return self->visits == 20 ? ERRAND_TASK_DONE : step_yield(task, self, news);
}

/* D20, D21: all of a pass see one time; the next pass is one cycle on. */
static void
pass_has_one_time_and_the_next_is_one_cycle_on(void **state)
{
    test_world *in = *state;
    actor actors[3];

    memset(time_count, 0, sizeof time_count);
    for (unsigned i = 0; i < 3; i++) {
        actors[i] = (actor){.step = step_note_time, .number = i};
        actor_spawn(in, NULL, "noter", &actors[i]);
    }
    drive_all(in);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned visit = 0; visit < 20; visit++)
            assert_int_equal(times[i][visit], visit * MS);
    world_end(in);
}

/* D24, D144: with tasks ready time goes to the next timer if that is nearer than a cycle. */
static void
time_never_passes_an_event_while_tasks_are_ready(void **state)
{
    test_world *in = *state;
    actor busy = {.step = step_note_time, .number = 0};
    actor sleeper = {.step = step_sleep, .number = MS / 4};

    memset(time_count, 0, sizeof time_count);
    actor_spawn(in, NULL, "busy", &busy);
    actor_spawn(in, NULL, "sleeper", &sleeper);
    drive_all(in);
    assert_int_equal(sleeper.time, MS / 4);
    assert_int_equal(times[0][0], 0);
    assert_int_equal(times[0][1], MS / 4);
    assert_int_equal(times[0][2], MS / 4 + MS);
    world_end(in);
}

/* D37, D38 */
static void
timeout_of_a_run_comes_before_what_is_due_at_its_instant(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_sleep, .number = 5 * MS};

    actor_spawn(in, NULL, "sleeper", &self);
    assert_int_equal(errand_run(in->runtime, &self.id, 3 * MS), ERRAND_ETIMEOUT);
    assert_int_equal(errand_runtime_now(in->runtime), 3 * MS);
    assert_int_equal(errand_run(in->runtime, &self.id, 5 * MS), ERRAND_ETIMEOUT);
    assert_int_equal(errand_runtime_now(in->runtime), 5 * MS);
    assert_int_equal(self.visits, 1);
    assert_int_equal(errand_run(in->runtime, &self.id, 5 * MS + 1), ERRAND_OK);
    assert_int_equal(self.time, 5 * MS);
    world_end(in);
}

/* D34 */
static void
stall_is_found_without_waiting(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_park};
    char text[100];

    actor_spawn(in, NULL, "stuck", &self);
    assert_int_equal(errand_run(in->runtime, &self.id, NEVER), ERRAND_EDEADLOCK);
    errand_stall_text(in->runtime, text, sizeof text);
    assert_string_equal(text, "task 1 'stuck' is parked\n");
    world_end(in);
}

enum { MANY = 60 };
static uint64_t dues[MANY], ties[MANY]; /* by job */
static unsigned ran_at[MANY];           /* place of the body */
static unsigned told_at[MANY];          /* place of the completion */
static unsigned ran_count, told_count;

static void
note_body(errand_job *job, world_job *self)
{
    size_t number = (size_t)(uintptr_t)self->arg;

    (void)job;
    if (ACTOR_ORDER == ERRAND_ORDER_INLINE)
        assert_int_equal(errand_runtime_now(self->world->runtime), dues[number]);
    ran_at[number] = ran_count++;
}

static void
note_told(void *arg, errand_completion *completion)
{
    test_world *in = arg;
    world_job *job = completion->wait;
    size_t number = (size_t)(uintptr_t)job->arg;

    assert_int_equal(errand_runtime_now(in->runtime), dues[number]);
    assert_int_equal(completion->t_end_ns, dues[number]);
    assert_true(completion->t_submit_ns <= completion->t_start_ns);
    assert_true(completion->t_start_ns <= completion->t_end_ns); /* O28 */
    told_at[number] = told_count++;
}

static const errand__record *
record_of(test_world *in, const errand_identity *identity)
{
    return errand__registrar_find(&in->runtime->registrar, identity);
}

/* All of them, with what was drawn for each. */
static void
start_all(test_world *in, world_job *jobs)
{
    ran_count = told_count = 0;
    for (size_t i = 0; i < MANY; i++) {
        errand_identity identity;
        const errand__extra *drawn;

        jobs[i] = (world_job){.inside = note_body, .arg = (void *)i};
        identity = world_start(in, &jobs[i]);
        drawn = record_of(in, &identity)->extra;
        dues[i] = drawn->due;
        ties[i] = drawn->tie;
    }
}

/* I1, I2, D141: bodies run, and completions come, at their dues and in their order, so a job sees what one
 * with an earlier due wrote and not what a later one wrote. */
static void
jobs_run_and_are_told_at_their_dues_in_order(void **state)
{
    static world_job jobs[MANY];
    test_world *in = *state;
    unsigned inverted = 0;

    actors_restart(in, 3, note_told, in);
    start_all(in, jobs);
    for (size_t i = 0; i < MANY; i++)
        assert_in_range(dues[i], MS / 2, 2 * MS);
    drive_all(in);
    assert_int_equal(ran_count, MANY);
    assert_int_equal(told_count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        for (size_t j = 0; j < MANY; j++) {
            assert_true(dues[i] >= dues[j] || told_at[i] < told_at[j]);
            assert_true(ACTOR_ORDER != ERRAND_ORDER_INLINE || dues[i] >= dues[j] ||
                        ran_at[i] < ran_at[j]);
            inverted += i < j && told_at[i] > told_at[j];
        }
    }
    assert_in_range(inverted, MANY * MANY / 8,
                    MANY * MANY * 3 / 8); /* not as submitted */
    world_end(in);
}

/* I1: of those that are due at one instant the ties decide who is told first. */
static void
jobs_that_are_due_at_once_are_told_by_their_ties(void **state)
{
    static world_job jobs[MANY];
    test_world *in = *state;
    unsigned inverted = 0;

    actors_restart(in, 3, note_told, in);
    assert_int_equal(errand_order_latency(in->runtime, 1, 1), ERRAND_OK);
    start_all(in, jobs);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(dues[i], dues[0]);
    drive_all(in);
    assert_int_equal(told_count, MANY);
    for (size_t i = 0; i < MANY; i++)
        for (size_t j = 0; j < MANY; j++) {
            assert_true(ties[i] >= ties[j] || told_at[i] < told_at[j]);
            inverted += i < j && told_at[i] > told_at[j];
        }
    assert_in_range(inverted, MANY * MANY / 8, MANY * MANY * 3 / 8);
    world_end(in);
}

/* When the one operation of a task is due, with others before it. */
static uint64_t
due_in_company(test_world *in, unsigned strangers)
{
    static world_job jobs[20];
    static actor actors[20];
    actor self = {.step = step_await, .arg = &jobs[0]};

    actors_restart(in, 5, NULL, NULL);
    memset(jobs, 0, sizeof jobs);
    for (unsigned i = 1; i <= strangers; i++) {
        actors[i] = (actor){.step = step_await, .arg = &jobs[i]};
        actor_spawn(in, NULL, i % 2 == 0 ? "stranger" : "another", &actors[i]);
    }
    in->runtime->scheduler.root_spawns = 0; /* the same place among the roots */
    actor_spawn(in, NULL, "self", &self);
    drive_all(in);
    return self.time;
}

/* I19, D52 */
static void
operations_of_others_shift_no_due(void **state)
{
    uint64_t alone = due_in_company(*state, 0);

    for (unsigned strangers = 1; strangers < 8; strangers++)
        assert_int_equal(due_in_company(*state, strangers), alone);
}

static errand_why
why_with_limit(test_world *in, uint64_t limit, uint64_t *out_time)
{
    world_job job = {.ran = 0};
    actor self = {.step = step_await, .arg = &job, .number = limit};

    actors_restart(in, 11, NULL, NULL);
    actor_spawn(in, NULL, "limited", &self);
    drive_all(in);
    *out_time = self.time;
    assert_int_equal(job.dropped, 1);
    actor_end(&self);
    return self.news.why;
}

/* D29, I7, D144: an operation that is due at its limit's instant wins. */
static void
operation_due_at_its_limit_wins(void **state)
{
    uint64_t due, time;

    assert_int_equal(why_with_limit(*state, NEVER, &due), ERRAND_WHY_COMPLETION);
    assert_int_equal(why_with_limit(*state, due, &time), ERRAND_WHY_COMPLETION);
    assert_int_equal(time, due);
    assert_int_equal(why_with_limit(*state, due - 1, &time), ERRAND_WHY_TIME);
    assert_int_equal(time, due - 1);
}

static errand_step steps[256];
static size_t step_count;

static void
note_step(void *arg, const errand_step *step)
{
    (void)arg;
    if (step_count < 256)
        steps[step_count++] = *step;
}

/* D144 */
static void
instant_goes_completions_timers_tasks(void **state)
{
    test_world *in = *state;
    world_job job = {.ran = 0};
    actor awaits = {.step = step_await, .arg = &job}, sleeps = {.step = step_sleep};
    size_t first = 0;
    uint64_t due;

    why_with_limit(in, NEVER,
                   &due); /* the first operation of the first root of seed 11 */
    actors_restart(in, 11, NULL, NULL);
    actor_spawn(in, NULL, "limited", &awaits);
    sleeps.number = due;
    actor_spawn(in, NULL, "sleeps", &sleeps);
    step_count = 0;
    assert_int_equal(errand_trace(in->runtime, note_step, NULL), ERRAND_OK);
    drive_all(in);
    assert_int_equal(awaits.time, due);
    assert_int_equal(sleeps.time, due);
    while (steps[first].time_ns != due)
        first++;
    assert_int_equal(steps[first].kind, ERRAND_STEP_TIME);
    assert_int_equal(steps[first + 1].kind, ERRAND_STEP_COMPLETION);
    assert_int_equal(steps[first + 2].kind, ERRAND_STEP_TIMER);
    assert_int_equal(steps[first + 3].kind, ERRAND_STEP_TASK);
    world_end(in);
}

/* D141: the answer follows virtual time, whatever any worker has done. */
static void
cancel_answers_by_begin_and_due(void **state)
{
    test_world *in = *state;

    for (uint64_t seed = 0; seed < 50; seed++) {
        for (unsigned when = 0; when < 5; when++) {
            world_job job = {.ran = 0};
            errand_identity identity;
            errand_cancel_answer answer;
            uint64_t begin, due, at;

            actors_restart(in, seed, NULL, NULL);
            identity = world_start(in, &job);
            begin = record_of(in, &identity)->extra->begin;
            due = record_of(in, &identity)->extra->due;
            at = when == 0   ? 0
                 : when == 1 ? begin - 1
                 : when == 2 ? begin
                             : due - (when == 3);
            if ((when <= 1 && begin == 0) || (when == 2 && begin == due))
                continue;
            assert_int_equal(errand_park(in->runtime, at),
                             ERRAND_OK); /* moves time there */
            assert_int_equal(errand_runtime_now(in->runtime), at);
            assert_int_equal(
                errand_cancel(in->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
                ERRAND_OK);
            assert_int_equal(answer, at < begin ? ERRAND_CANCEL_CANCELLED
                                     : at < due ? ERRAND_CANCEL_RUNNING
                                                : ERRAND_CANCEL_SETTLED);
            drive_all(in);
            assert_int_equal(job.ran, at >= begin);
            assert_int_equal(job.dropped, 1);
            world_end(in);
        }
    }
}

static errand_identity victim;

static errand_task_answer
step_cancel_own(errand_task *task, actor *self, const errand_task_news *news)
{
    static world_job job;
    errand_cancel_answer answer;
    errand_spec spec;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    job = (world_job){.world = self->in};
    spec = world_spec(&job);
    assert_int_equal(errand_start(self->in->lease, &spec, &job, &victim), ERRAND_OK);
    assert_int_equal(
        errand_cancel(self->in->runtime, &victim, ERRAND_REASON_OWNER, &answer),
        ERRAND_OK);
    self->status = errand_task_sleep(task, SECOND);
    return ERRAND_TASK_WAIT;
}

static uint64_t told_time;

static void
note_told_time(void *arg, errand_completion *completion)
{
    (void)completion;
    told_time = errand_runtime_now(((test_world *)arg)->runtime);
}

static void
completion_of_a_cancelled_operation_comes_before_time_moves(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_cancel_own};

    actors_restart(in, 1, note_told_time, in);
    told_time = 99;
    actor_spawn(in, NULL, "changes its mind", &self);
    drive_all(in);
    assert_int_equal(told_time, 0);
    assert_int_equal(self.time, SECOND);
    world_end(in);
}

/* A host without tasks: park moves time to the next due, drain takes what is due. */
static void
drain_takes_what_is_due_and_park_moves_time(void **state)
{
    test_world *in = *state;
    world_job jobs[10];
    size_t taken = 0;

    for (unsigned i = 0; i < 10; i++) {
        jobs[i] = (world_job){.ran = 0};
        world_start(in, &jobs[i]);
    }
    assert_int_equal(world_drain(in, 10), 0);
    while (taken < 10) {
        uint64_t before = errand_runtime_now(in->runtime);

        assert_int_equal(errand_park(in->runtime, NEVER), ERRAND_OK);
        assert_true(errand_runtime_now(in->runtime) > before);
        taken += world_drain(in, 10);
    }
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(jobs[i].ran, 1);
    world_end(in);
}

static unsigned commands;

static void
count_command(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    (void)arg;
    commands++;
}

static void *
post_from_outside(void *arg)
{
    static errand_command command;

    command = (errand_command){.fn = count_command};
    return (void *)(uintptr_t)errand_post(arg, &command);
}

static errand_status
post_by_thread(errand_inbox *inbox)
{
    pthread_t thread;
    void *status;

    assert_int_equal(pthread_create(&thread, NULL, post_from_outside, inbox), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    return (errand_status)(uintptr_t)status;
}

/* O65 */
static void
input_from_another_thread_marks_the_run_or_is_refused(void **state)
{
    test_world *in = *state;
    errand_inbox *inbox;
    char text[100];
    uint64_t digest = errand_digest(in->runtime);

    commands = 0;
    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    assert_int_equal(post_by_thread(inbox), ERRAND_OK);
    assert_true(errand_reproducible(in->runtime, NULL, 0));
    drive_all(in);
    assert_int_equal(commands, 1);
    assert_false(errand_reproducible(in->runtime, text, sizeof text));
    assert_true(text[0] != '\0');
    assert_int_not_equal(errand_digest(in->runtime), digest);
    errand_inbox_abandon(&inbox);
    world_end(in);
    in->config.flags = ERRAND_RUNTIME_REFUSE_FOREIGN;
    world_begin(in, &in->config, 0);
    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    assert_int_equal(post_by_thread(inbox), ERRAND_EREPRODUCE);
    drive_all(in);
    assert_int_equal(commands, 1);
    assert_true(errand_reproducible(in->runtime, NULL, 0));
    errand_inbox_abandon(&inbox);
    world_end(in);
}

static void
latency_model_holds_for_later_submissions(void **state)
{
    test_world *in = *state;
    world_job jobs[2] = {{.ran = 0}, {.ran = 0}};
    errand_identity before = world_start(in, &jobs[0]), after;

    assert_int_equal(errand_order_latency(in->runtime, 1, SECOND), ERRAND_OK);
    after = world_start(in, &jobs[1]);
    assert_in_range(record_of(in, &before)->extra->due, MS / 2, 2 * MS);
    assert_in_range(record_of(in, &after)->extra->due, SECOND / 2, 2 * SECOND);
    drive_all(in);
    world_end(in);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lone_sleep_ends_exactly_at_its_time, actors_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(pass_has_one_time_and_the_next_is_one_cycle_on,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(time_never_passes_an_event_while_tasks_are_ready,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            timeout_of_a_run_comes_before_what_is_due_at_its_instant, actors_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(stall_is_found_without_waiting, actors_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(jobs_run_and_are_told_at_their_dues_in_order,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(jobs_that_are_due_at_once_are_told_by_their_ties,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(operations_of_others_shift_no_due, actors_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(operation_due_at_its_limit_wins, actors_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(instant_goes_completions_timers_tasks,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(cancel_answers_by_begin_and_due, actors_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(
            completion_of_a_cancelled_operation_comes_before_time_moves, actors_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(drain_takes_what_is_due_and_park_moves_time,
                                        actors_setup, world_teardown),
        cmocka_unit_test_setup_teardown(
            input_from_another_thread_marks_the_run_or_is_refused, actors_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(latency_model_holds_for_later_submissions,
                                        actors_setup, world_teardown),
    };
    return test_group("runtime/inline", tests, NULL, NULL);
}
