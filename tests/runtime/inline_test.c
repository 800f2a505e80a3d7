/* SPDX-License-Identifier: MIT */
/* Goal: in inline order everything that a program can see follows from its seed and virtual time.
 * Method: the same small program run twice, or with one thing changed; and exact instants. */
#include <pthread.h>
#include <string.h>
#include "actor.h"
#include "runtime/runtime.h"

#define SECOND UINT64_C(1000000000)

static void
restart(test_world *in, uint64_t seed, errand_completion_fn *fn, void *arg)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_INLINE,
                                    .seed = seed,
                                    .on_completion = fn,
                                    .held_on_completion_arg = arg};

    world_end(in);
    world_begin(in, &config, 0);
}

/* ---- a program: tasks that await, sleep, yield, draw, spawn ------------------------------------- */

enum { WORKERS = 6, ROUNDS = 5 };

typedef struct program {
    actor root, workers[WORKERS], children[WORKERS];
    world_job jobs[WORKERS][ROUNDS];
    unsigned rounds[WORKERS];
} program;

static errand_task_answer
step_worker(errand_task *task, actor *self, const errand_task_news *news)
{
    program *all = self->arg;
    size_t me = (size_t)(self - all->workers);
    unsigned round = all->rounds[me]++;

    (void)news;
    if (round >= ROUNDS)
        return ERRAND_TASK_DONE;
    if (round == 2 && me % 2 == 0) {
        all->children[me] =
            (actor){.step = step_sleep, .number = errand_task_random(task) % MS};
        actor_spawn(self->in, &self->id, "child", &all->children[me]);
    }
    switch ((errand_task_random(task) >> 20) % 4) {
    case 0:
        self->status = errand_task_yield(task);
        break;
    case 1:
        self->status = errand_task_sleep(task, errand_task_random(task) % (3 * MS));
        break;
    default: {
        errand_spec spec = world_spec(&all->jobs[me][round]);

        all->jobs[me][round].world = self->in;
        self->status = errand_task_await(task, self->in->lease, &spec, NEVER, NULL);
    } break;
    }
    assert_int_equal(self->status, ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
step_root(errand_task *task, actor *self, const errand_task_news *news)
{
    program *all = self->arg;
    errand_task_id ids[WORKERS];

    if (news->why != ERRAND_WHY_START && ++self->number == WORKERS)
        return ERRAND_TASK_DONE;
    for (size_t i = 0; i < WORKERS; i++) {
        if (news->why == ERRAND_WHY_START) {
            all->workers[i] = (actor){.step = step_worker, .arg = all};
            actor_spawn(self->in, &self->id, "worker", &all->workers[i]);
        }
        ids[i] = all->workers[i].id;
    }
    self->status =
        errand_task_join(task, &ids[self->number], WORKERS - self->number, NEVER);
    return ERRAND_TASK_WAIT;
}

static void
begin_program(test_world *in, program *all)
{
    memset(all, 0, sizeof *all);
    all->root = (actor){.step = step_root, .arg = all};
    actor_spawn(in, NULL, "root", &all->root);
}

static uint64_t
digest_of(test_world *in, uint64_t seed, uint32_t items)
{
    static program all;
    errand_turn turn;
    uint64_t digest;

    restart(in, seed, NULL, NULL);
    begin_program(in, &all);
    do
        turn = drive_items(in, items);
    while (turn.kind == ERRAND_TURN_PROGRESS);
    assert_int_equal(turn.kind, ERRAND_TURN_QUIESCENT);
    actor_end(&all.root);
    digest = errand_digest(in->runtime);
    assert_int_equal(errand_digest(in->runtime), digest); /* D46 */
    assert_true(errand_reproducible(in->runtime, NULL, 0));
    return digest;
}

/* D1, D2 */
static void
same_seed_gives_the_same_digest_and_no_two_seeds_do(void **state)
{
    static uint64_t digests[1000];
    uint64_t seeds = test_scaled(1000);

    for (uint64_t seed = 0; seed < seeds; seed++) {
        digests[seed] = digest_of(*state, seed, 256);
        assert_int_equal(digest_of(*state, seed, 256), digests[seed]);
        for (uint64_t other = 0; other < seed; other++)
            assert_int_not_equal(digests[other], digests[seed]);
    }
}

static void
how_turns_are_cut_changes_nothing(void **state)
{
    static const uint32_t items[] = {0, 1, 2, 3, 5, 16};

    for (uint64_t seed = 1; seed < 20; seed++) {
        uint64_t digest = digest_of(*state, seed, 256);

        for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
            assert_int_equal(digest_of(*state, seed, items[i]), digest);
    }
}

/* I8: a pool's worker is waited for, and changes nothing. */
static void
pool_of_threads_gives_the_same_digest_as_the_manual_executor(void **state)
{
    test_world *in = *state;
    errand_executor *manual;
    errand_lease *lease;

    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        const errand_blocking_config pool = {
            .struct_size = sizeof pool, .workers_min = workers, .workers_max = workers};
        uint64_t digest = digest_of(in, 99, 256);
        static program all;

        restart(in, 99, NULL, NULL);
        manual = in->executor;
        assert_int_equal(errand_blocking_create(&pool, &in->executor), ERRAND_OK);
        lease = in->lease;
        assert_int_equal(errand_attach(in->runtime, in->executor, 0, &in->lease),
                         ERRAND_OK);
        begin_program(in, &all);
        while (drive_items(in, 256).kind == ERRAND_TURN_PROGRESS)
            continue;
        assert_int_equal(errand_digest(in->runtime), digest);
        in->lease = lease;
        world_end(in);
        errand_executor_abandon(&manual);
    }
}

/* ---- time ------------------------------------------------------------------------------------------ */

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

/* ---- operations --------------------------------------------------------------------------------------- */

enum { MANY = 60 };
static uint64_t dues[MANY];    /* by job */
static unsigned ran_at[MANY];  /* place of the body */
static unsigned told_at[MANY]; /* place of the completion */
static unsigned ran_count, told_count;

static void
note_body(errand_job *job, world_job *self)
{
    size_t number = (size_t)(uintptr_t)self->arg;

    (void)job;
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

/* I1, I2, D141: bodies run, and completions come, at their dues and in their order, so a job sees what one
 * with an earlier due wrote and not what a later one wrote. */
static void
jobs_run_and_are_told_at_their_dues_in_order(void **state)
{
    static world_job jobs[MANY];
    test_world *in = *state;
    unsigned inverted = 0;

    restart(in, 3, note_told, in);
    ran_count = told_count = 0;
    for (size_t i = 0; i < MANY; i++) {
        errand_identity identity;

        jobs[i] = (world_job){.inside = note_body, .arg = (void *)i};
        identity = world_start(in, &jobs[i]);
        dues[i] = record_of(in, &identity)->extra->due;
        assert_in_range(dues[i], MS / 2, 2 * MS);
    }
    drive_all(in);
    assert_int_equal(ran_count, MANY);
    assert_int_equal(told_count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(ran_at[i], told_at[i]);
        for (size_t j = 0; j < MANY; j++) {
            assert_true(dues[i] >= dues[j] || ran_at[i] < ran_at[j]);
            inverted += i < j && ran_at[i] > ran_at[j];
        }
    }
    assert_in_range(inverted, MANY * MANY / 8,
                    MANY * MANY * 3 / 8); /* not as submitted */
    world_end(in);
}

/* When the one operation of a task is due, with others before it. */
static uint64_t
due_in_company(test_world *in, unsigned strangers)
{
    static world_job jobs[20];
    static actor actors[20];
    actor self = {.step = step_await, .arg = &jobs[0]};

    restart(in, 5, NULL, NULL);
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

    restart(in, 11, NULL, NULL);
    actor_spawn(in, NULL, "limited", &self);
    drive_all(in);
    *out_time = self.time;
    assert_int_equal(job.dropped, 1);
    actor_end(&self);
    return self.news.why;
}

/* D29, D144: an operation that is due at its limit's instant wins. */
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
    restart(in, 11, NULL, NULL);
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

            restart(in, seed, NULL, NULL);
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

    restart(in, 1, note_told_time, in);
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

/* ---- foreign input, audit ------------------------------------------------------------------------------- */

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

static uint64_t
digest_with_note(test_world *in, const char *label, const char *bytes)
{
    restart(in, 7, NULL, NULL);
    assert_int_equal(errand_audit_note(in->runtime, label, bytes, strlen(bytes)),
                     ERRAND_OK);
    return errand_digest(in->runtime);
}

/* D42 */
static void
notes_enter_the_digest_with_their_lengths(void **state)
{
    test_world *in = *state;

    assert_int_equal(digest_with_note(in, "a", "bc"), digest_with_note(in, "a", "bc"));
    assert_int_not_equal(digest_with_note(in, "a", "bc"),
                         digest_with_note(in, "ab", "c"));
    assert_int_not_equal(digest_with_note(in, "a", ""), digest_with_note(in, "a", "b"));
    assert_int_equal(errand_audit_note(in->runtime, NULL, "", 0), ERRAND_EINVAL);
}

static uint64_t content;

static uint64_t
digest_content(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return content;
}

static uint64_t
digest_with_content(test_world *in, bool registered, uint64_t value)
{
    world_job job = {.give_payload = true};

    restart(in, 7, NULL, NULL);
    content = value;
    for (int i = 0; registered && i < 2; i++) /* the second replaces the first */
        assert_int_equal(
            errand_audit_payload(in->runtime, &world_payload_type, digest_content),
            ERRAND_OK);
    world_start(in, &job);
    drive_all(in);
    assert_int_equal(job.payload_dropped, 1);
    return errand_digest(in->runtime);
}

/* D45 */
static void
registered_payloads_enter_the_digest_by_content(void **state)
{
    test_world *in = *state;

    assert_int_equal(digest_with_content(in, false, 1),
                     digest_with_content(in, false, 2));
    assert_int_equal(digest_with_content(in, true, 1), digest_with_content(in, true, 1));
    assert_int_not_equal(digest_with_content(in, true, 1),
                         digest_with_content(in, true, 2));
}

static void
trace_and_snapshots_change_no_digest(void **state)
{
    static program all;
    test_world *in = *state;
    uint64_t digest = digest_of(in, 21, 256);
    errand_snapshot snapshot;

    restart(in, 21, NULL, NULL);
    step_count = 0;
    assert_int_equal(errand_trace(in->runtime, note_step, NULL), ERRAND_OK);
    begin_program(in, &all);
    while (drive_items(in, 1).kind == ERRAND_TURN_PROGRESS)
        assert_int_equal(errand_runtime_snapshot(in->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(errand_digest(in->runtime), digest);
    assert_true(step_count > 50);
    for (size_t i = 0; i < step_count; i++) {
        assert_int_equal(steps[i].step, i + 1);
        assert_true(i == 0 || steps[i].time_ns >= steps[i - 1].time_ns);
    }
    world_end(in);
}

static void
arrival_order_has_no_digest_and_no_latencies(void **state)
{
    test_world *in = *state;

    world_end(in);
    in->config.order = ERRAND_ORDER_ARRIVAL;
    world_begin(in, &in->config, 0);
    assert_int_equal(errand_digest(in->runtime), 0);
    assert_int_equal(errand_order_latency(in->runtime, 1, 5), ERRAND_EUNSUPPORTED);
    assert_int_equal(errand_order_latency(in->runtime, 1, 0), ERRAND_EINVAL);
    assert_int_equal(errand_order_latency(in->runtime, 1, UINT64_MAX), ERRAND_EINVAL);
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

#define WITH(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, world_setup_inline, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH(same_seed_gives_the_same_digest_and_no_two_seeds_do),
        WITH(how_turns_are_cut_changes_nothing),
        WITH(pool_of_threads_gives_the_same_digest_as_the_manual_executor),
        WITH(lone_sleep_ends_exactly_at_its_time),
        WITH(pass_has_one_time_and_the_next_is_one_cycle_on),
        WITH(time_never_passes_an_event_while_tasks_are_ready),
        WITH(timeout_of_a_run_comes_before_what_is_due_at_its_instant),
        WITH(stall_is_found_without_waiting),
        WITH(jobs_run_and_are_told_at_their_dues_in_order),
        WITH(operations_of_others_shift_no_due),
        WITH(operation_due_at_its_limit_wins),
        WITH(instant_goes_completions_timers_tasks),
        WITH(cancel_answers_by_begin_and_due),
        WITH(completion_of_a_cancelled_operation_comes_before_time_moves),
        WITH(drain_takes_what_is_due_and_park_moves_time),
        WITH(input_from_another_thread_marks_the_run_or_is_refused),
        WITH(notes_enter_the_digest_with_their_lengths),
        WITH(registered_payloads_enter_the_digest_by_content),
        WITH(trace_and_snapshots_change_no_digest),
        WITH(arrival_order_has_no_digest_and_no_latencies),
        WITH(latency_model_holds_for_later_submissions),
    };
    return test_group("runtime/inline", tests, NULL, NULL);
}
