/* SPDX-License-Identifier: MIT */
/* Goal: a panic ends what panicked and nothing else: a body becomes one completion, a drop, decoder or
 * hook ends alone and is counted, and one that comes while another is contained does no more (O74,
 * O76, C-F1).
 * Method: each kind of host code panics once, on the manual executor, in the middle of other work. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/async.h"
#include "world.h"

static errand_snapshot
accounts(const test_world *world)
{
    errand_snapshot snapshot;

    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    return snapshot;
}

static errand_executor_snapshot
workers(const test_world *world)
{
    errand_executor_snapshot snapshot;

    assert_int_equal(errand_executor_snapshot_read(world->executor, &snapshot),
                     ERRAND_OK);
    return snapshot;
}

/* ---- bodies ----------------------------------------------------------------------------------------- */

static char order[16];
static size_t ordered;

static void
note(void *arg)
{
    order[ordered++] = *(const char *)arg;
}

static void
panic_now(void *arg)
{
    errand_panic("%s", (const char *)arg);
}

static void
defer_and_panic(errand_job *job, world_job *self)
{
    assert_int_equal(errand_job_defer(job, note, "a"), ERRAND_OK);
    assert_int_equal(errand_job_defer(job, note, "b"), ERRAND_OK);
    assert_int_equal(errand_job_defer(job, note, "c"), ERRAND_OK);
    if (self->arg != NULL)
        assert_int_equal(errand_job_defer(job, panic_now, self->arg), ERRAND_OK);
    errand_panic("body %d", 7);
}

static void
panic_runs_the_deferred_cleanups_newest_first(void **state)
{
    /* O74 */
    test_world *world = *state;
    world_job bad = {.inside = defer_and_panic}, good = {.give_payload = true};

    ordered = 0;
    memset(order, 0, sizeof order);
    world_start(world, &bad);
    world_start(world, &good);
    assert_int_equal(world_step(world, 10), 2);
    assert_string_equal(order, "cba");
    assert_int_equal(world_drain(world, 10), 2);
    assert_int_equal(world->news[0].outcome, ERRAND_PANICKED);
    assert_int_equal(world->news[0].code, ERRAND_CODE_PANIC);
    assert_string_equal(world->news[0].message, "body 7");
    assert_int_equal(world->news[1].outcome, ERRAND_COMPLETED);
    assert_int_equal(accounts(world).panicked, 1);
    assert_int_equal(accounts(world).leaked + workers(world).leaked, 0);
}

static void
cleanups_that_panic_during_a_panic_are_counted_and_the_rest_runs(void **state)
{
    /* O76 */
    test_world *world = *state;
    world_job bad = {.inside = defer_and_panic, .arg = "cleanup"};

    ordered = 0;
    memset(order, 0, sizeof order);
    world_start(world, &bad);
    world_step(world, 10);
    assert_string_equal(order, "cba");
    assert_int_equal(world_drain(world, 10), 1);
    assert_string_equal(world->news[0].message, "body 7"); /* the first one's */
    assert_int_equal(workers(world).destructor_panics, 1);
    assert_int_equal(workers(world).leaked, 1);
    assert_int_equal(bad.dropped, 1);
}

static void
panicking_payload_drop(void *data, size_t size)
{
    (void)size;
    ++*(int *)data;
    errand_panic("payload");
}
static const errand_payload_type panicking_payload = {"panicking",
                                                      panicking_payload_drop};

static int payload_drops;

static int32_t
give_and_fail(errand_job *job, void *state, errand_payload *out_payload)
{
    world_job *self = state;

    *out_payload = (errand_payload){&panicking_payload, &payload_drops, 1};
    if (self->answer == 0)
        errand_panic("with a payload");
    errand_job_message(job, "no more");
    return self->answer;
}
static void
drop_world_job(void *state)
{
    ((world_job *)state)->dropped++;
}
static const errand_job_type failing_type = {.struct_size = sizeof(errand_job_type),
                                             .name = "failing",
                                             .run = give_and_fail,
                                             .drop = drop_world_job};

static void
what_a_failed_body_left_is_never_delivered(void **state)
{
    /* C-F1: no half of a result; O76: its drop panics. */
    test_world *world = *state;
    world_job jobs[2] = {{.answer = 0}, {.answer = 5}};

    payload_drops = 0;
    for (int i = 0; i < 2; i++) {
        errand_spec spec = world_spec(&jobs[i]);

        spec.held_job = &failing_type;
        assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    }
    assert_int_equal(world_step(world, 10), 2);
    assert_int_equal(world_drain(world, 10), 2);
    assert_int_equal(payload_drops, 2);
    assert_int_equal(accounts(world).leaked, 2);
    assert_int_equal(world->news[0].payload_size, 0);
    assert_int_equal(world->news[1].payload_size, 0);
    assert_string_equal(world->news[0].message, "with a payload");
    assert_string_equal(world->news[1].message, "no more");
    assert_int_equal(world->news[1].job_code, 5);
    assert_int_equal(jobs[0].dropped + jobs[1].dropped, 2);
}

static void
panic_outside_of_everything_prints_and_aborts(void **state)
{
    /* O74 */
    char text[512] = "";
    int ends[2], status = -1;

    (void)state;
    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        errand_panic("the %s", "end");
    }
    assert_true(child > 0);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "the end"));
}

/* ---- host code of the owner ------------------------------------------------------------------------------ */

typedef struct culprit { /* which of its callbacks panics */
    const char *place;
    int decoded, dropped, hooked, reaped, hook_dropped, resumed, continuation_dropped;
    int value_dropped;
    errand_news news;
} culprit;

static void
maybe(const culprit *self, const char *place)
{
    if (strcmp(self->place, place) == 0)
        errand_panic("panic in %s", place);
}

static void
drop_value(void *value)
{
    culprit *self = value;

    self->value_dropped++;
    maybe(self, "value");
}
static void
decode(void *own_data, errand_completion *completion, errand_verdict *out_verdict)
{
    culprit *self = own_data;

    (void)completion;
    self->decoded++;
    maybe(self, "decode");
    *out_verdict = (errand_verdict){.value = self, .drop = drop_value};
}
static void
drop_decoder(void *data)
{
    culprit *self = data;

    self->dropped++;
    maybe(self, "decoder drop");
}
static errand_hook_answer
cancel_hook(void *data, char *text, size_t size)
{
    culprit *self = data;

    (void)text;
    (void)size;
    self->hooked++;
    maybe(self, "cancel hook");
    return ERRAND_HOOK_PENDING;
}
static errand_hook_answer
reap_hook(void *data, char *text, size_t size)
{
    culprit *self = data;

    (void)text;
    (void)size;
    if (++self->reaped == 1)
        maybe(self, "reap hook");
    return ERRAND_HOOK_REAPED;
}
static void
drop_hook(void *data)
{
    culprit *self = data;

    self->hook_dropped++;
    maybe(self, "hook drop");
}
static const errand_decoder_type decoder_type = {
    .struct_size = sizeof(errand_decoder_type), .decode = decode, .drop = drop_decoder};
static const errand_hook_type hook_type = {.struct_size = sizeof(errand_hook_type),
                                           .cancel = cancel_hook,
                                           .reap = reap_hook,
                                           .drop = drop_hook};

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    culprit *self = own_data;

    (void)runtime;
    self->resumed++;
    self->news = *news;
}
static void
drop_continuation(void *data)
{
    culprit *self = data;

    self->continuation_dropped++;
    maybe(self, "continuation drop");
}

/* Submits the job with decoder, hook and a registered wait. */
static errand_identity
start_with_all(test_world *world, world_job *job, culprit *self)
{
    errand_continuation continuation = {
        .resume = resume, .drop = drop_continuation, .data = self};
    errand_spec spec = world_spec(job);
    errand_submission submission;
    errand_identity identity;
    errand_prepared prepared;
    errand_binding binding;
    errand_wait wait;

    spec.held_decoder = &decoder_type;
    spec.decoder_data = self;
    spec.held_hook = &hook_type;
    spec.hook_data = self;
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &identity, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    assert_int_equal(errand_await(&wait, &continuation), ERRAND_OK);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    return identity;
}

static void
drive_all(test_world *world)
{
    errand_turn turn;

    do
        assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
    while (turn.kind == ERRAND_TURN_PROGRESS);
}

static void
decoder_that_panics_is_a_failure_that_says_so(void **state)
{
    /* O76, O32 */
    test_world *world = *state;
    culprit self = {.place = "decode"};
    world_job job = {.ran = 0}, other = {.ran = 0};

    start_with_all(world, &job, &self);
    world_start(world, &other);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 2);
    assert_int_equal(world->news[0].outcome, ERRAND_FAILED);
    assert_int_equal(world->news[0].code, ERRAND_CODE_DECODE);
    assert_non_null(strstr(world->news[0].message, "panic in decode"));
    assert_non_null(strstr(world->news[0].message, "world job"));
    assert_int_equal(world->news[1].outcome, ERRAND_COMPLETED);
    drive_all(world);
    assert_int_equal(self.resumed, 1);
    assert_int_equal(self.news.verdict.status, ERRAND_EDECODE);
    assert_int_equal(self.decoded, 1);
    assert_int_equal(self.dropped, 0); /* consumed all the same */
    assert_int_equal(accounts(world).leaked, 1);
}

static void
drops_that_panic_are_counted_and_everything_else_is_dropped(void **state)
{
    /* O76 */
    static const char *const places[] = {"decoder drop", "hook drop", "continuation drop",
                                         "value"};
    test_world *world = *state;

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        culprit self = {.place = places[i]};
        world_job job = {.ran = 0};
        bool cancels = i == 0, ends = i == 2;
        errand_identity identity = start_with_all(world, &job, &self);
        uint64_t before = accounts(world).leaked;

        if (ends) { /* nobody may be resumed any more: told by an abandon */
            world_end(world);
            assert_int_equal(world->report.accounts.leaked, before + 1);
            assert_int_equal(self.continuation_dropped, 1);
            assert_int_equal(job.dropped, 1);
            errand_runtime_config config = world->config;
            world_begin(world, &config, 0);
            continue;
        }
        if (cancels)
            assert_int_equal(
                errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
                ERRAND_OK);
        world_step(world, 10);
        world_drain(world, 10);
        if (i == 3) /* decoded, not told yet: the value goes */
            assert_int_equal(
                errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
                ERRAND_OK);
        drive_all(world);
        assert_int_equal(self.resumed, 1);
        assert_int_equal(self.decoded + self.dropped, 1);
        assert_int_equal(self.hook_dropped, 1);
        assert_int_equal(job.dropped, 1);
        assert_int_equal(accounts(world).leaked, before + 1);
    }
}

static errand_job_type panicking_job;

static void
panic_in_drop(void *state)
{
    ((world_job *)state)->dropped++;
    errand_panic("state");
}

static void
state_whose_drop_panics_is_given_up_alone(void **state)
{
    /* O76 */
    static errand_job_type type;
    test_world *world = *state;
    world_job jobs[3] = {{.ran = 0}};

    type = world_job_type;
    type.drop = panic_in_drop;
    for (int i = 0; i < 3; i++) {
        errand_spec spec = world_spec(&jobs[i]);

        if (i == 1)
            spec.held_job = &type;
        assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    }
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jobs[i].dropped, 1);
    assert_int_equal(accounts(world).leaked, 1);
    assert_int_equal(accounts(world).drained, 3);
}

static void
defer_a_panic(errand_job *job, world_job *self)
{
    assert_int_equal(errand_job_defer(job, panic_now, self->arg), ERRAND_OK);
}

static void
cleanup_that_panics_is_told_where_no_executor_runs_it(void **state)
{
    /* O76: the seeded orders run jobs on the owner's thread. */
    test_world *world = *state;
    world_job job = {.inside = defer_a_panic, .arg = "cleanup"};

    world_start(world, &job);
    drive_all(world);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(accounts(world).leaked + workers(world).leaked, 1);
}

static int32_t
pend_with_a_panic(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)out_payload;
    defer_a_panic(job, state);
    return ERRAND_PENDING;
}

static void
cleanup_that_panics_when_its_lease_ends_is_told(void **state)
{
    /* O76 */
    static errand_job_type type;
    test_world *world = *state;
    world_job job = {.arg = "cleanup"};
    errand_spec spec = world_spec(&job);

    type = world_job_type;
    type.poll = pend_with_a_panic;
    spec.held_job = &type;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    assert_int_equal(world_step(world, 1), 1);
    assert_int_equal(errand_lease_shutdown(&world->lease, 0, NULL), ERRAND_OK);
    assert_int_equal(errand_drain(world->runtime, 10, NULL, NULL, NULL), ERRAND_OK);
    assert_int_equal(job.dropped, 1);
    assert_true(accounts(world).leaked >= 1); /* it is asked to end first, and polled */
}

/* Its deadline passes meanwhile, so that what it hands on is dropped. */
static void
hand_on_too_late(errand_job *job, world_job *self)
{
    errand_spec spec = world_spec(self->arg);

    spec.held_job = &panicking_job;
    assert_int_equal(errand_job_follow(job, &spec, NULL), ERRAND_OK);
    assert_int_equal(errand_testing_clock(self->world->runtime, 50), ERRAND_OK);
    assert_int_equal(world_drain(self->world, 10), 1);
}

static void
follow_up_of_a_late_body_whose_drop_panics_is_told(void **state)
{
    /* O76 */
    test_world *world = *state;
    world_job next = {.ran = 0};
    world_job job = {.world = world, .inside = hand_on_too_late, .arg = &next};
    errand_spec spec = world_spec(&job);

    panicking_job = world_job_type;
    panicking_job.drop = panic_in_drop;
    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = 100;
    spec.deadline_ns = 50;
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(next.dropped, 1);
    assert_int_equal(workers(world).leaked, 1);
    drive_all(world);
    assert_int_equal(job.dropped, 1);
}

static void
cancel_from_inside(errand_job *job, world_job *self)
{
    errand_identity identity = errand_job_identity(job);

    assert_int_equal(
        errand_cancel(self->world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
        ERRAND_OK);
}

static void
hooks_that_panic_leave_an_entry_that_is_reaped_later(void **state)
{
    /* O76, O39 */
    static const char *const places[] = {"cancel hook", "reap hook"};
    test_world *world = *state;

    for (size_t i = 0; i < 2; i++) {
        culprit self = {.place = places[i]};
        world_job job = {.inside = cancel_from_inside};

        job.world = world;
        start_with_all(world, &job, &self);
        world_step(world, 10);
        assert_int_equal(world_drain(world, 10), 1);
        for (int k = 0; k < 5; k++) {
            assert_int_equal(errand_testing_clock(world->runtime, 2000000000), ERRAND_OK);
            drive_all(world);
        }
        assert_int_equal(self.hooked, 1);
        assert_true(self.reaped >= 1);
        assert_int_equal(self.hook_dropped, 1);
        assert_int_equal(self.resumed, 1);
        assert_int_equal(job.dropped, 1);
    }
    world_end(world);
    assert_int_equal(world->report.entries, 0);
}

#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(panic_runs_the_deferred_cleanups_newest_first),
        WITH_WORLD(cleanups_that_panic_during_a_panic_are_counted_and_the_rest_runs),
        WITH_WORLD(what_a_failed_body_left_is_never_delivered),
        cmocka_unit_test(panic_outside_of_everything_prints_and_aborts),
        WITH_WORLD(decoder_that_panics_is_a_failure_that_says_so),
        WITH_WORLD(drops_that_panic_are_counted_and_everything_else_is_dropped),
        WITH_WORLD(state_whose_drop_panics_is_given_up_alone),
        cmocka_unit_test_setup_teardown(
            cleanup_that_panics_is_told_where_no_executor_runs_it, world_setup_inline,
            world_teardown),
        WITH_WORLD(cleanup_that_panics_when_its_lease_ends_is_told),
        WITH_WORLD(follow_up_of_a_late_body_whose_drop_panics_is_told),
        WITH_WORLD(hooks_that_panic_leave_an_entry_that_is_reaped_later),
    };

    return test_group("hostile/panics", tests, NULL, NULL);
}
