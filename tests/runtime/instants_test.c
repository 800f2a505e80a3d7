/* SPDX-License-Identifier: MIT */
/* Goal: what sleeps, limits and ends mean in virtual time: at one instant, at the end of time, at the
 * end of a run.
 * Method: actors on the manual executor; the steps of the audit are heard.  Built for each seeded
 * order. */
#include <pthread.h>
#include <string.h>
#include "actor.h"
#include "gate.h"

static uint64_t timer_keys[64];
static unsigned timer_count;

static void
note_timers(void *arg, const errand_step *step)
{
    (void)arg;
    if (step->kind == ERRAND_STEP_TIMER && timer_count < 64)
        timer_keys[timer_count++] = step->key;
}

static uint64_t spawn_keys[64];
static unsigned spawn_count;

static void
note_both(void *arg, const errand_step *step)
{
    if (step->kind == ERRAND_STEP_SPAWN && spawn_count < 64)
        spawn_keys[spawn_count++] = step->key;
    note_timers(arg, step);
}

static void
listen(test_world *in, errand_trace_fn *fn)
{
    timer_count = spawn_count = 0;
    assert_int_equal(errand_trace(in->runtime, fn, NULL), ERRAND_OK);
}

static unsigned sleep_order[16], slept;

static errand_task_answer
step_sleep_until(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why == ERRAND_WHY_TIME)
        return ERRAND_TASK_DONE;
    assert_int_equal(news->why, ERRAND_WHY_START);
    sleep_order[slept++] = (unsigned)(self - (actor *)self->arg);
    assert_int_equal(errand_task_sleep_until(task, self->number), ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

/* D30: sixteen timers at one instant, which were registered in an order that the seed chose, all
 * fire there, in that order. */
static void
timers_of_one_instant_fire_together_as_they_were_registered(void **state)
{
    test_world *in = *state;
    actor actors[16];

    listen(in, note_both);
    slept = 0;
    for (unsigned i = 0; i < 16; i++) {
        actors[i] = (actor){.step = step_sleep_until, .number = 5 * MS, .arg = actors};
        actor_spawn(in, NULL, "sleeper", &actors[i]);
    }
    drive_all(in);
    assert_int_equal(slept, 16);
    assert_int_equal(timer_count, 16);
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(timer_keys[i], spawn_keys[sleep_order[i]]);
        assert_int_equal(actors[i].time, 5 * MS);
    }
    world_end(in);
}

/* D31: nobody hears of a cancelled sleep's time: what comes next is what time goes to, and with
 * nothing left it is a stall and no wait. */
static void
cancelled_sleep_leaves_no_time_behind(void **state)
{
    test_world *in = *state;
    actor early = {.step = step_sleep, .number = 3600 * 1000 * MS};
    actor late = {.step = step_sleep, .number = 7200 * 1000 * MS};
    actor stuck = {.step = step_park};

    actor_spawn(in, NULL, "early", &early);
    actor_spawn(in, NULL, "late", &late);
    actor_spawn(in, NULL, "stuck", &stuck);
    drive_items(in, 3);
    listen(in, note_timers);
    assert_int_equal(errand_task_cancel(in->runtime, &early.id, ERRAND_REASON_EXPLICIT),
                     ERRAND_OK);
    assert_int_equal(errand_run(in->runtime, &late.id, NEVER), ERRAND_OK);
    assert_int_equal(timer_count, 1);
    assert_int_equal(late.time, 7200 * 1000 * MS);
    early = (actor){.step = step_sleep, .number = 10000 * MS};
    actor_spawn(in, NULL, "early", &early);
    drive_items(in, 1);
    assert_int_equal(errand_task_cancel(in->runtime, &early.id, ERRAND_REASON_EXPLICIT),
                     ERRAND_OK);
    assert_int_equal(errand_run(in->runtime, &stuck.id, NEVER), ERRAND_EDEADLOCK);
    assert_true(errand_runtime_now(in->runtime) < 7200 * 1000 * MS + 10 * MS);
    world_end(in);
}

static errand_task_answer
step_sleep_too_long(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    self->status = errand_task_sleep(task, self->number);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
}

/* D33: at the end of time a length that goes beyond it is refused, an operation is due before it, and
 * time stands still there; nothing goes round. */
static void
time_does_not_go_round_at_its_end(void **state)
{
    test_world *in = *state;
    actor beyond = {.step = step_sleep_too_long, .number = 2 * MS};
    actor busy = {.step = step_yield};
    world_job job = {.world = in, .give_payload = true};
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ACTOR_ORDER,
                                    .seed = 3,
                                    .start_ns = UINT64_MAX - MS / 4,
                                    .on_completion = world_handler,
                                    .held_on_completion_arg = in};

    world_end(in);
    world_begin(in, &config, 0);
    actor_spawn(in, NULL, "beyond", &beyond);
    actor_spawn(in, NULL, "busy", &busy);
    world_start(in, &job);
    for (int i = 0; i < 30; i++)
        drive_items(in, 1);
    assert_int_equal(beyond.status, ERRAND_EINVAL);
    assert_true(busy.visits > 5);
    assert_true(errand_runtime_now(in->runtime) >= UINT64_MAX - MS / 4);
    assert_int_equal(in->news_count, 1);
    assert_int_equal(in->news[0].outcome, ERRAND_COMPLETED);
    assert_int_equal(in->news[0].t_end, UINT64_MAX - 1);
    world_end(in);
}

static void *
post_when_told(void *arg)
{
    gate_wait(arg);
    return NULL;
}

/* D35: a real thread that would wake it later, and has not, keeps no run from its stall. */
static void
thread_that_would_wake_it_does_not_prevent_the_stall(void **state)
{
    test_world *in = *state;
    actor self = {.step = step_park};
    errand_inbox *inbox;
    test_gate closed;
    pthread_t thread;

    gate_init(&closed, "closed");
    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    assert_int_equal(pthread_create(&thread, NULL, post_when_told, &closed), 0);
    actor_spawn(in, NULL, "waiter", &self);
    assert_int_equal(errand_run(in->runtime, &self.id, NEVER), ERRAND_EDEADLOCK);
    assert_int_equal(errand_runtime_now(in->runtime), 0);
    gate_open(&closed);
    assert_int_equal(pthread_join(thread, NULL), 0);
    gate_fini(&closed);
    errand_inbox_abandon(&inbox);
    world_end(in);
}

static unsigned asked;

static void
ask_the_runtime(void *state)
{
    actor *self = state;
    errand_snapshot snapshot;

    self->drops++;
    assert_int_equal(errand_runtime_now(self->in->runtime), 2 * MS);
    assert_int_equal(errand_runtime_snapshot(self->in->runtime, &snapshot), ERRAND_OK);
    (void)errand_digest(self->in->runtime);
    asked++;
}

/* D16: at the end no timer fires any more, and what tasks drop may ask the runtime. */
static void
at_the_end_no_timer_fires_and_drops_may_ask(void **state)
{
    test_world *in = *state;
    actor first = {.step = step_sleep, .number = 2 * MS}, actors[4];

    actor_spawn(in, NULL, "first", &first);
    for (unsigned i = 0; i < 4; i++) {
        errand_task_spec spec;

        actors[i] = (actor){.step = step_sleep, .number = 5 * MS + i};
        spec = actor_spec(in, "sleeper", &actors[i]);
        spec.held_drop = ask_the_runtime;
        assert_int_equal(errand_spawn(in->runtime, NULL, &spec, &actors[i].id),
                         ERRAND_OK);
    }
    assert_int_equal(errand_run(in->runtime, &first.id, NEVER), ERRAND_OK);
    listen(in, note_timers);
    asked = 0;
    world_end(in);
    assert_int_equal(asked, 4);
    assert_int_equal(timer_count, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(actors[i].visits, 1);
}

static errand_task_answer
step_start_late(errand_task *task, actor *self, const errand_task_news *news)
{
    world_job *job = self->arg;

    (void)task;
    (void)news;
    assert_int_equal(errand_order_latency(self->in->runtime, 1, 4 * MS), ERRAND_OK);
    world_start(self->in, job);
    assert_int_equal(errand_order_latency(self->in->runtime, 1, 4000 * MS), ERRAND_OK);
    return ERRAND_TASK_DONE;
}

static errand_task_answer
step_wake_the_sleeper(errand_task *task, actor *self, const errand_task_news *news)
{
    const actor *sleeper = self->arg;

    assert_int_equal(errand_task_wake(self->in->runtime, &sleeper->id), ERRAND_OK);
    return self->visits == 5 ? ERRAND_TASK_DONE : step_yield(task, self, news);
}

/* D148: a wake that is for no sleep neither ends it nor makes it anew. */
static void
a_sleep_that_is_woken_at_keeps_its_one_timer(void **state)
{
    test_world *in = *state;
    actor sleeper = {.step = step_sleep, .number = 10 * MS + 7};
    actor waker = {.step = step_wake_the_sleeper, .arg = &sleeper};

    listen(in, note_timers);
    actor_spawn(in, NULL, "sleeper", &sleeper);
    drive_items(in, 1);
    actor_spawn(in, NULL, "waker", &waker);
    drive_all(in);
    assert_int_equal(waker.visits, 5);
    assert_int_equal(sleeper.visits, 2);
    assert_int_equal(sleeper.news.why, ERRAND_WHY_TIME);
    assert_int_equal(sleeper.time, 10 * MS + 7);
    assert_int_equal(timer_count, 1);
    world_end(in);
}

static errand_task_answer
step_five_cycles(errand_task *task, actor *self, const errand_task_news *news)
{
    assert_int_equal(self->time, (self->visits - 1) * self->number);
    return self->visits == 6 ? ERRAND_TASK_DONE : step_yield(task, self, news);
}

static errand_status
create_with_cycle(errand_order order, uint64_t cycle)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = order, .cycle_ns = cycle};
    errand_runtime *runtime = NULL;
    errand_status status = errand_runtime_create(&config, &runtime);

    if (status != ERRAND_OK) {
        assert_null(runtime);
        return status;
    }
    return errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL);
}

/* D32 */
static void
a_cycle_is_as_long_as_was_said_and_a_bad_one_is_refused(void **state)
{
    const uint64_t hour = 3600 * 1000 * MS;
    test_world *in = *state;
    actor busy = {.step = step_five_cycles, .number = 70};

    world_end(in);
    in->config.cycle_ns = 70;
    world_begin(in, &in->config, 0);
    actor_spawn(in, NULL, "busy", &busy);
    drive_all(in);
    assert_int_equal(busy.visits, 6);
    world_end(in);
    assert_int_equal(create_with_cycle(ACTOR_ORDER, 1), ERRAND_OK);
    assert_int_equal(create_with_cycle(ACTOR_ORDER, hour), ERRAND_OK);
    assert_int_equal(create_with_cycle(ERRAND_ORDER_ARRIVAL, 0), ERRAND_OK);
    assert_int_equal(in->misuses, 0);
    assert_int_equal(create_with_cycle(ACTOR_ORDER, hour + 1), ERRAND_EINVAL);
    assert_int_equal(create_with_cycle(ACTOR_ORDER, UINT64_MAX), ERRAND_EINVAL);
    assert_int_equal(create_with_cycle(ERRAND_ORDER_ARRIVAL, 1), ERRAND_EINVAL);
    assert_int_equal(in->misuses, 3);
}

/* I24: what becomes of an operation is drawn when it is submitted. */
static void
models_that_change_after_a_submit_do_not_change_what_was_drawn(void **state)
{
    test_world *in = *state;
    world_job job = {.world = in};
    actor self = {.step = step_start_late, .arg = &job};

    actors_restart(in, 7, world_handler, in);
    actor_spawn(in, NULL, "starter", &self);
    drive_all(in);
    assert_int_equal(in->news_count, 1);
    assert_true(in->news[0].t_end >= 2 * MS && in->news[0].t_end <= 8 * MS);
    world_end(in);
}

int
main(void)
{
#define IN_ORDER(test) cmocka_unit_test_setup_teardown(test, actors_setup, world_teardown)
    static const struct CMUnitTest tests[] = {
        IN_ORDER(timers_of_one_instant_fire_together_as_they_were_registered),
        IN_ORDER(cancelled_sleep_leaves_no_time_behind),
        IN_ORDER(time_does_not_go_round_at_its_end),
        IN_ORDER(thread_that_would_wake_it_does_not_prevent_the_stall),
        IN_ORDER(at_the_end_no_timer_fires_and_drops_may_ask),
        IN_ORDER(a_sleep_that_is_woken_at_keeps_its_one_timer),
        IN_ORDER(a_cycle_is_as_long_as_was_said_and_a_bad_one_is_refused),
        IN_ORDER(models_that_change_after_a_submit_do_not_change_what_was_drawn),
    };
    return test_group("runtime/instants", tests, NULL, NULL);
}
