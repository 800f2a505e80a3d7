/* SPDX-License-Identifier: MIT */
/* Goal: in the seeded orders what a program sees of a cancel, a deadline or a snapshot follows
 * virtual time alone, and is the same in both.
 * Method: the manual executor, moments between the drawn begins and dues, both orders in turn. */
#include "seeded.h"

static const errand_order orders[] = {ERRAND_ORDER_INLINE, ERRAND_ORDER_PACED};

static void
move_to(test_world *in, uint64_t time)
{
    assert_int_equal(errand_park(in->runtime, time), ERRAND_OK);
    assert_int_equal(errand_runtime_now(in->runtime), time);
}

static errand_cancel_answer
cancel(test_world *in, const errand_identity *identity)
{
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(in->runtime, identity, ERRAND_REASON_EXPLICIT, &answer), ERRAND_OK);
    return answer;
}

static int saw_cancel, hooked, reaped, hook_drops;

static void
look_at_token(errand_job *job, world_job *self)
{
    (void)self;
    saw_cancel = errand_job_cancelled(job);
    errand_job_message(job, "said by the body");
}

static errand_hook_answer
hook_cancel(void *data, char *text, size_t size)
{
    (void)data;
    (void)text;
    (void)size;
    hooked++;
    return ERRAND_HOOK_PENDING;
}

static errand_hook_answer
hook_reap(void *data, char *text, size_t size)
{
    (void)data;
    (void)text;
    (void)size;
    reaped++;
    return ERRAND_HOOK_REAPED;
}

static void
hook_drop(void *data)
{
    (void)data;
    hook_drops++;
}

static const errand_hook_type hook = {.struct_size = sizeof hook,
                                      .cancel = hook_cancel,
                                      .reap = hook_reap,
                                      .drop = hook_drop};

/* Starts a job whose begin is after now, so that all three parts of its life can be met. */
static errand_identity
start_hooked(test_world *in, errand_order order, world_job *job, uint16_t flags,
             uint64_t deadline_ns, const errand_hook_type *held_hook)
{
    static int marker;
    errand_identity identity;

    saw_cancel = -1;
    hooked = reaped = hook_drops = 0;
    for (uint64_t seed = 1;; seed++) {
        errand_spec spec;
        const errand__extra *extra;

        restart(in, order, seed, 0);
        job->world = in;
        spec = world_spec(job);
        spec.flags = flags;
        spec.deadline_ns = deadline_ns;
        spec.held_hook = held_hook;
        spec.hook_data = &marker;
        assert_int_equal(errand_start(in->lease, &spec, job, &identity), ERRAND_OK);
        extra = extra_of(in, &identity);
        if (extra->begin > 10 && extra->due > extra->begin + 10)
            return identity;
        world_end(in);
        hook_drops = 0;
    }
}

static errand_identity
start(test_world *in, errand_order order, world_job *job, uint16_t flags,
      uint64_t deadline_ns)
{
    return start_hooked(in, order, job, flags, deadline_ns, &hook);
}

/* D141, D143, I5: cancelled before its begin its body never runs, and it is told at that instant. */
static void
cancelled_before_its_begin_its_body_never_runs(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.ran = 0};
        errand_identity identity = start(in, orders[i], &job, 0, 0);
        uint64_t at = extra_of(in, &identity)->begin - 1;

        move_to(in, at);
        assert_int_equal(cancel(in, &identity), ERRAND_CANCEL_CANCELLED);
        assert_int_equal(cancel(in, &identity), ERRAND_CANCEL_ALREADY);
        drive_all(in);
        assert_int_equal(errand_runtime_now(in->runtime), at);
        assert_int_equal(in->news_count, 1);
        assert_int_equal(world_last(in)->outcome, ERRAND_CANCELLED);
        assert_int_equal(job.ran, 0);
        assert_int_equal(job.dropped, 1);
        assert_int_equal(hooked, 0);
        assert_int_equal(hook_drops, 1);
        world_end(in);
    }
}

/* D141, D143: from its begin on a job that may leave something behind hears nothing, and its
 * result comes late, at its due. */
static void
cancelled_after_its_begin_a_job_runs_to_its_end_unasked(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.inside = look_at_token, .give_payload = true, .answer = 0};
        errand_identity identity = start(in, orders[i], &job, 0, 0);
        uint64_t due = extra_of(in, &identity)->due;

        move_to(in, extra_of(in, &identity)->begin);
        assert_int_equal(cancel(in, &identity), ERRAND_CANCEL_RUNNING);
        assert_int_equal(cancel(in, &identity), ERRAND_CANCEL_RUNNING);
        assert_int_equal(errand_reap_ready(in->runtime, &identity), ERRAND_OK);
        move_to(in, due - 1);
        drive_items(in, 1);
        assert_int_equal(reaped, 0); /* its entry answers PENDING until the due */
        drive_all(in);
        assert_int_equal(in->news_count, 1);
        assert_int_equal(world_last(in)->outcome, ERRAND_COMPLETED);
        assert_int_equal(world_last(in)->flags, ERRAND_LATE | ERRAND_CANCEL_REQUESTED);
        assert_int_equal(world_last(in)->t_end, due);
        assert_int_equal(job.ran, 1);
        assert_int_equal(job.payload_dropped, 1);
        assert_int_equal(saw_cancel, false);
        assert_int_equal(hooked + reaped, 0);
        assert_int_equal(hook_drops, 1);
        world_end(in);
        assert_true(in->report.clean);
    }
}

/* D141, D143: an effect-free one hears of it at once, and says the same whatever it answered. */
static void
cancelled_after_its_begin_an_effect_free_job_has_one_answer(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        for (int answer = 0; answer < 2; answer++) {
            world_job job = {
                .inside = look_at_token, .give_payload = true, .answer = answer * 5};
            errand_identity identity =
                start(in, orders[i], &job, ERRAND_SPEC_EFFECT_FREE, 0);
            uint64_t due = extra_of(in, &identity)->due;
            const world_news *news;

            move_to(in, extra_of(in, &identity)->begin);
            assert_int_equal(cancel(in, &identity), ERRAND_CANCEL_RUNNING);
            assert_int_equal(hooked, 1);
            drive_all(in);
            news = world_last(in);
            assert_int_equal(in->news_count, 1);
            assert_int_equal(news->outcome, ERRAND_FAILED);
            assert_int_equal(news->code, ERRAND_CODE_CANCELLED);
            assert_int_equal(news->job_code, 0);
            assert_int_equal(news->payload_size, 0);
            assert_string_equal(news->message,
                                "cancelled while it ran: what its body made of "
                                "it does not count");
            assert_int_equal(news->t_end, due);
            assert_int_equal(saw_cancel, true);
            assert_int_equal(job.payload_dropped, 1);
            assert_int_equal(reaped, 1);
            world_end(in);
            assert_true(in->report.clean);
        }
    }
}

static errand_hook_answer
hook_reap_ran(void *data, char *text, size_t size)
{
    (void)data;
    (void)text;
    (void)size;
    return saw_cancel < 0 ? ERRAND_HOOK_PENDING : ERRAND_HOOK_REAPED;
}

/* D143, O39: asked after its virtual begin, overtaken by the shutdown before its real one: its hook
 * waits for a body that never comes, and nothing is left. */
static void
effect_free_job_that_the_shutdown_overtakes_leaves_no_entry(void **state)
{
    static const errand_hook_type ran = {.struct_size = sizeof ran,
                                         .cancel = hook_cancel,
                                         .reap = hook_reap_ran,
                                         .drop = hook_drop};
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.inside = look_at_token};
        errand_identity identity =
            start_hooked(in, orders[i], &job, ERRAND_SPEC_EFFECT_FREE, 0, &ran);

        move_to(in, extra_of(in, &identity)->begin);
        assert_int_equal(cancel(in, &identity), ERRAND_CANCEL_RUNNING);
        assert_int_equal(hooked, 1);
        world_end(in);
        assert_int_equal(job.ran, 0);
        assert_int_equal(hook_drops, 1);
        assert_int_equal(in->report.entries, 0);
        assert_true(in->report.clean);
    }
}

/* I6, D141: at its due and not before it has ended. */
static void
cancelled_at_its_due_it_has_ended(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.inside = look_at_token};
        errand_identity identity = start(in, orders[i], &job, ERRAND_SPEC_EFFECT_FREE, 0);

        move_to(in, extra_of(in, &identity)->due);
        assert_int_equal(cancel(in, &identity), ERRAND_CANCEL_SETTLED);
        drive_all(in);
        assert_int_equal(world_last(in)->outcome, ERRAND_COMPLETED);
        assert_int_equal(saw_cancel, false);
        world_end(in);
    }
}

/* D141: a deadline is a moment of virtual time; no worker is written off for it. */
static void
deadline_between_begin_and_due_fails_at_the_due(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.give_payload = true};
        errand_identity identity = start(in, orders[i], &job, 0, 0);
        uint64_t begin = extra_of(in, &identity)->begin;
        uint64_t due = extra_of(in, &identity)->due;

        for (int when = 0; when < 3; when++) {
            uint64_t deadline = when == 0 ? begin - 1 : when == 1 ? begin : due;

            job = (world_job){.give_payload = true};
            identity = start(in, orders[i], &job, 0, deadline);
            assert_int_equal(extra_of(in, &identity)->due, due);
            drive_all(in);
            assert_int_equal(in->news_count, 1);
            assert_int_equal(world_last(in)->outcome,
                             when == 2 ? ERRAND_COMPLETED : ERRAND_FAILED);
            assert_int_equal(world_last(in)->code,
                             when == 2 ? ERRAND_CODE_NONE : ERRAND_CODE_DEADLINE);
            assert_int_equal(world_last(in)->t_end, when == 0 ? deadline : due);
            assert_int_equal(job.ran, when != 0);
            assert_int_equal(job.payload_dropped, job.ran);
            world_end(in);
        }
    }
}

/* D141: counts follow the same instants. */
static void
snapshots_follow_virtual_time(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        world_job job = {.answer = 3};
        errand_identity identity = start(in, orders[i], &job, 0, 0);
        uint64_t at[3] = {0, extra_of(in, &identity)->begin,
                          extra_of(in, &identity)->due};
        errand_snapshot of[2];

        for (int when = 0; when < 3; when++) {
            move_to(in, at[when]);
            assert_int_equal(errand_runtime_snapshot(in->runtime, &of[0]), ERRAND_OK);
            assert_int_equal(errand_lease_snapshot(in->lease, &of[1]), ERRAND_OK);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(of[k].queued, when == 0);
                assert_int_equal(of[k].running, when == 1);
                assert_int_equal(of[k].undrained, when == 2);
                assert_int_equal(of[k].failed, 0);
            }
        }
        drive_all(in);
        assert_int_equal(errand_runtime_snapshot(in->runtime, &of[0]), ERRAND_OK);
        assert_int_equal(of[0].failed, 1);
        assert_int_equal(of[0].codes[ERRAND_CODE_JOB], 1);
        world_end(in);
        assert_int_equal(in->report.accounts.failed, 1);
    }
}

static errand_task_answer
step_read_figures(errand_task *task, actor *self, const errand_task_news *news)
{
    errand_executor_snapshot figures;

    (void)task;
    (void)news;
    assert_int_equal(errand_executor_snapshot_read(self->in->executor, &figures),
                     self->number != 0 ? ERRAND_EUNSUPPORTED : ERRAND_OK);
    assert_int_equal(errand_lease_ages(self->in->lease, &figures),
                     self->number != 0 ? ERRAND_EUNSUPPORTED : ERRAND_OK);
    assert_int_equal(errand_runtime_ages(self->in->runtime, &figures),
                     self->number != 0 ? ERRAND_EUNSUPPORTED : ERRAND_OK);
    return ERRAND_TASK_DONE;
}

/* D141: real figures are refused to tasks. */
static void
figures_of_an_executor_are_refused_to_tasks(void **state)
{
    test_world *in = *state;
    errand_executor_snapshot figures;

    for (unsigned i = 0; i < 3; i++) {
        actor self = {.step = step_read_figures, .number = i != 2};

        restart(in, i == 2 ? ERRAND_ORDER_ARRIVAL : orders[i], 1, 0);
        actor_spawn(in, NULL, "curious", &self);
        drive_all(in);
        actor_end(&self);
        assert_int_equal(errand_executor_snapshot_read(in->executor, &figures),
                         ERRAND_OK);
        world_end(in);
    }
}

static world_job children[4];
static unsigned child_count;

static void
follow_once(errand_job *job, world_job *self)
{
    world_job *child = &children[child_count++];
    errand_spec spec;

    *child = (world_job){.world = self->world};
    spec = world_spec(child);
    assert_int_equal(errand_job_follow(job, &spec, child), ERRAND_OK);
}

/* The times at which the parent and its child were told; others follow, or do not. */
static void
follow_times(test_world *in, errand_order order, unsigned others, uint64_t *out_times)
{
    world_job jobs[3];
    size_t found = 0;

    restart(in, order, 3, 0);
    child_count = 0;
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = (world_job){.inside = i == 0 || i <= others ? follow_once : NULL};
        world_start(in, &jobs[i]);
    }
    drive_all(in);
    for (size_t i = 0; i < in->news_count; i++) {
        if (in->news[i].wait == &jobs[0])
            out_times[found++] = in->news[i].t_end;
    }
    for (size_t i = 0; i < in->news_count; i++) {
        if (in->news[i].t_submit == out_times[0])
            out_times[found++] = in->news[i].t_end;
    }
    assert_int_equal(found, 2);
    world_end(in);
}

/* I11, I19: what a job hands on gets its key when its parent is told, and from its parent. */
static void
follow_ups_hang_on_their_parent(void **state)
{
    test_world *in = *state;
    uint64_t alone[2], company[2];

    for (unsigned i = 0; i < 2; i++) {
        follow_times(in, orders[i], 0, alone);
        for (unsigned others = 1; others < 3; others++) {
            follow_times(in, orders[i], others, company);
            assert_memory_equal(alone, company, sizeof alone);
        }
    }
}

/* I9: how much is out is counted in submissions. */
static void
full_is_a_virtual_answer(void **state)
{
    test_world *in = *state;

    for (unsigned i = 0; i < 2; i++) {
        errand_runtime_config config = {
            .struct_size = sizeof config, .order = orders[i], .seed = 1};
        world_job jobs[4];
        errand_spec spec;

        world_end(in);
        world_begin(in, &config, 3);
        for (int k = 0; k < 4; k++) {
            jobs[k] = (world_job){.world = in};
            spec = world_spec(&jobs[k]);
            assert_int_equal(errand_start(in->lease, &spec, NULL, NULL),
                             k < 3 ? ERRAND_OK : ERRAND_EFULL);
        }
        assert_int_equal(errand_park(in->runtime, NEVER), ERRAND_OK);
        assert_int_equal(errand_start(in->lease, &spec, NULL, NULL), ERRAND_EFULL);
        assert_int_equal(world_drain(in, 1), 1);
        assert_int_equal(errand_start(in->lease, &spec, NULL, NULL), ERRAND_OK);
        drive_all(in);
        world_end(in);
    }
}

static void
watchdog_and_order_are_checked(void **state)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = (errand_order)99};
    errand_runtime *runtime;

    (void)state;
    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_EINVAL);
}

int
main(void)
{
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(cancelled_before_its_begin_its_body_never_runs),
        WITH_WORLD(cancelled_after_its_begin_a_job_runs_to_its_end_unasked),
        WITH_WORLD(cancelled_after_its_begin_an_effect_free_job_has_one_answer),
        WITH_WORLD(effect_free_job_that_the_shutdown_overtakes_leaves_no_entry),
        WITH_WORLD(cancelled_at_its_due_it_has_ended),
        WITH_WORLD(deadline_between_begin_and_due_fails_at_the_due),
        WITH_WORLD(snapshots_follow_virtual_time),
        WITH_WORLD(figures_of_an_executor_are_refused_to_tasks),
        WITH_WORLD(follow_ups_hang_on_their_parent),
        WITH_WORLD(full_is_a_virtual_answer),
        WITH_WORLD(watchdog_and_order_are_checked),
    };
    return test_group("runtime/paced", tests, NULL, NULL);
}
