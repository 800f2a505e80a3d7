/* SPDX-License-Identifier: MIT */
/* Goal: host code that the library calls does the worst it may: it calls back.
 * Method: every sort of callback calls what changes the thing it is called for; then the law is
 * checked, and teardown finds what was lost or dropped twice. */
#include "actor.h"

/* ---- decoders --------------------------------------------------------------------------------- */

typedef struct decoder {
    test_world *in;
    actor *task;
    bool abort; /* or cancel */
    bool in_drop;
    int decodes, drops, value_drops;
    errand_submission copy;
    errand_cancel_answer answer;
    errand_status status;
    void (*act)(struct decoder *self);
    errand_identity identity;
} decoder;

static void
end_own_task(decoder *self)
{
    assert_int_equal(self->abort ? errand_task_abort(self->in->runtime, &self->task->id)
                                 : errand_task_cancel(self->in->runtime, &self->task->id,
                                                      ERRAND_REASON_EXPLICIT),
                     ERRAND_OK);
}

static void
drop_value(void *value)
{
    ((decoder *)value)->value_drops++;
}

static void
decode(void *own_data, errand_completion *completion, errand_verdict *out_verdict)
{
    decoder *self = own_data;

    (void)completion;
    self->decodes++;
    *out_verdict =
        (errand_verdict){.status = ERRAND_OK, .value = self, .drop = drop_value};
    if (self->act != NULL)
        self->act(self);
}

static void
drop_decoder(void *data)
{
    decoder *self = data;

    self->drops++;
    if (self->in_drop)
        self->act(self);
}

static const errand_decoder_type decoder_type = {
    .struct_size = sizeof decoder_type, .decode = decode, .drop = drop_decoder};

typedef struct awaiting {
    world_job job;
    decoder decoder;
} awaiting;

static errand_task_answer
step_await_decoded(errand_task *task, actor *self, const errand_task_news *news)
{
    awaiting *what = self->arg;
    errand_spec spec = world_spec(&what->job);

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    spec.held_decoder = &decoder_type;
    spec.decoder_data = &what->decoder;
    self->status =
        errand_task_await(task, self->in->lease, &spec, NEVER, &what->decoder.identity);
    assert_int_equal(self->status, ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

static void
await_decoded(test_world *world, bool abort, bool in_drop)
{
    actor self = {.step = step_await_decoded};
    awaiting what = {.decoder = {.in = world,
                                 .task = &self,
                                 .abort = abort,
                                 .in_drop = in_drop,
                                 .act = end_own_task}};

    self.arg = &what;
    actor_spawn(world, NULL, "decodes", &self);
    drive_all(world);
    if (in_drop) /* its wait ends, so its decoder is dropped */
        assert_int_equal(errand_cancel(world->runtime, &what.decoder.identity,
                                       ERRAND_REASON_EXPLICIT, NULL),
                         ERRAND_OK);
    world_step(world, 10);
    drive_all(world);
    assert_int_equal(actor_end(&self), abort ? ERRAND_END_ABORTED : ERRAND_END_CANCELLED);
    assert_int_equal(self.visits, abort ? 1 : 2);
    if (!abort)
        assert_int_equal(self.news.why, ERRAND_WHY_CANCELLED);
    assert_int_equal(what.decoder.decodes, !in_drop);
    assert_int_equal(what.decoder.drops, in_drop);
    assert_int_equal(what.decoder.value_drops, !in_drop);
    assert_int_equal(what.job.dropped, 1);
    world_check(world);
}

static void
a_decoder_may_end_the_task_that_it_decodes_for(void **state)
{
    /* O32, O33 */
    await_decoded(*state, true, false);
    await_decoded(*state, false, false);
}

static void
a_dropped_decoder_may_end_the_task_that_it_was_for(void **state)
{
    /* O33, O37 */
    await_decoded(*state, true, true);
    await_decoded(*state, false, true);
}

/* ---- tokens used while what they name is going ---------------------------------------------- */

typedef struct goer {
    test_world *in;
    errand_wait wait;
    errand_submission copy;
    errand_identity old, fresh;
    errand_status status;
    int resumed, dropped;
} goer;

static void
resume_goer(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    (void)runtime;
    (void)news;
    ((goer *)own_data)->resumed++;
}

static void
await_in_drop(void *data, size_t size)
{
    goer *self = data;
    errand_continuation continuation = {.resume = resume_goer, .data = self};

    (void)size;
    self->dropped++;
    self->status = errand_await(&self->wait, &continuation);
}

static int32_t
run_goer(errand_job *job, void *state, errand_payload *out_payload)
{
    static const errand_payload_type type = {"goer", await_in_drop};

    (void)job;
    *out_payload = (errand_payload){&type, state, sizeof(goer)};
    return 0;
}

static errand_submission
goer_submission(test_world *world, goer *self, const errand_job_type *type,
                const errand_decoder_type *decoder_type_, void *decoder_data)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_prepared prepared;
    errand_binding binding;
    errand_submission submission;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = type;
    spec.state = self;
    spec.held_decoder = decoder_type_;
    spec.decoder_data = decoder_data;
    self->in = world;
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &self->old), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &self->old, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_split(&binding, &self->wait, &submission), ERRAND_OK);
    return submission;
}

static const errand_job_type goer_job = {
    .struct_size = sizeof(errand_job_type), .name = "goer", .run = run_goer};

static void
a_wait_is_spent_while_its_delivered_payload_is_dropped(void **state)
{
    /* O9, O80 */
    test_world *world = *state;
    goer self = {.status = ERRAND_OK};
    errand_submission submission = goer_submission(world, &self, &goer_job, NULL, NULL);
    errand_turn turn;

    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(self.dropped, 1);
    assert_int_equal(self.status, ERRAND_ESPENT);
    turn = drive_all(world);
    assert_int_equal(turn.kind, ERRAND_TURN_QUIESCENT);
    assert_int_equal(self.resumed, 0);
}

static void
submit_copy(void *data)
{
    goer *self = data;
    errand_submission twin = self->copy;

    self->dropped++;
    errand_submission_abandon(&twin);
    self->status = errand_submit(self->in->lease, &self->copy);
}

static void
what_is_being_abandoned_cannot_be_submitted(void **state)
{
    /* O1, O11 */
    test_world *world = *state;
    goer self = {.status = ERRAND_OK};
    errand_submission submission = goer_submission(world, &self, &goer_job, NULL, NULL);
    errand_continuation continuation = {
        .resume = resume_goer, .drop = submit_copy, .data = &self};

    self.copy = submission;
    assert_int_equal(errand_await(&self.wait, &continuation), ERRAND_OK);
    errand_submission_abandon(&submission);
    assert_int_equal(self.dropped, 1);
    assert_int_equal(self.status, ERRAND_ESPENT);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 10), 0);
    world_check(world);
}

static void
abandon_and_issue(decoder *self)
{
    errand_submission_abandon(&self->copy);
    assert_int_equal(errand_issue(self->in->runtime, 1, NULL, &self->identity),
                     ERRAND_OK);
}

static void
a_cancel_does_not_reach_what_was_issued_meanwhile(void **state)
{
    /* O7 */
    test_world *world = *state;
    goer self = {.status = ERRAND_OK};
    decoder made = {.in = world, .in_drop = true, .act = abandon_and_issue};
    errand_continuation continuation = {.resume = resume_goer, .data = &self};
    errand_cancel_answer answer;
    errand_prepared prepared;
    errand_binding binding;
    errand_wait wait;
    errand_submission submission;
    world_job job = {.answer = 0};
    errand_spec spec = world_spec(&job);

    made.copy = goer_submission(world, &self, &goer_job, &decoder_type, &made);
    assert_int_equal(errand_await(&self.wait, &continuation), ERRAND_OK);
    assert_int_equal(
        errand_cancel(world->runtime, &self.old, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_NOT_SUBMITTED);
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &made.identity, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    errand_wait_abandon(&wait);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    world_step(world, 1);
    drive_all(world);
    assert_int_equal(job.ran, 1);
    assert_int_equal(made.drops, 1);
}

/* ---- the end, asked for inside a callback --------------------------------------------------- */

typedef struct ender {
    test_world *in;
    errand_status drain, drive, lease, runtime, release;
    int calls;
} ender;

static void
try_all(ender *self)
{
    errand_runtime *runtime = self->in->runtime;
    errand_lease *lease = self->in->lease;

    self->calls++;
    self->drain = errand_drain(runtime, 10, NULL, NULL, NULL);
    self->drive = errand_drive(runtime, NULL, NULL);
    self->release = errand_runtime_release(runtime);
    self->lease = errand_lease_shutdown(&lease, 0, NULL);
    self->runtime = errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL);
}

static void
all_were_busy(const ender *self)
{
    assert_int_equal(self->calls, 1);
    assert_int_equal(self->drain, ERRAND_EBUSY);
    assert_int_equal(self->drive, ERRAND_EBUSY);
    assert_int_equal(self->release, ERRAND_EBUSY);
    assert_int_equal(self->lease, ERRAND_EBUSY);
    assert_int_equal(self->runtime, ERRAND_EBUSY);
}

static void
drop_ender(void *data)
{
    try_all(data);
}

static const errand_job_type ender_job = {.struct_size = sizeof(errand_job_type),
                                          .name = "ender",
                                          .run = run_goer,
                                          .drop = drop_ender};

static void
no_callback_ends_the_runtime_under_its_caller(void **state)
{
    /* O33, O68 */
    test_world *world = *state;
    ender self = {.in = world};
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_prepared prepared;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &ender_job;
    spec.state = &self;
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    errand_prepared_abandon(&prepared);
    all_were_busy(&self);
}

static void
end_in_on_end(void *state)
{
    try_all(((actor *)state)->arg);
}

static void
no_task_that_is_aborted_ends_the_runtime_under_its_caller(void **state)
{
    /* O33, O68 */
    test_world *world = *state;
    ender self = {.in = world};
    actor parked = {.in = world, .step = step_park, .arg = &self};
    errand_task_spec spec = actor_spec(world, "ender", &parked);

    spec.held_on_end = NULL;
    spec.held_drop = end_in_on_end;
    assert_int_equal(errand_spawn(world->runtime, NULL, &spec, &parked.id), ERRAND_OK);
    drive_all(world);
    assert_int_equal(errand_task_abort(world->runtime, &parked.id), ERRAND_OK);
    all_were_busy(&self);
}

static errand_hook_answer
end_in_hook(void *data, char *text, size_t size)
{
    (void)text;
    (void)size;
    try_all(data);
    return ERRAND_HOOK_REAPED;
}

static void
cancel_inside(errand_job *job, world_job *self)
{
    errand_identity identity = errand_job_identity(job);
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(self->world->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
}

static void
no_cancel_hook_drains_the_operation_that_is_being_cancelled(void **state)
{
    /* O33, O38 */
    static const errand_hook_type hook = {.struct_size = sizeof hook,
                                          .cancel = end_in_hook};
    test_world *world = *state;
    ender self = {.in = world};
    world_job job = {.world = world, .inside = cancel_inside};
    errand_spec spec = world_spec(&job);

    spec.held_hook = &hook;
    spec.hook_data = &self;
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(self.calls, 1);
    assert_int_equal(self.drain, ERRAND_EBUSY);
    assert_int_equal(self.drive, ERRAND_EBUSY);
    assert_int_equal(world_drain(world, 10), 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)
        T(a_decoder_may_end_the_task_that_it_decodes_for),
        T(a_dropped_decoder_may_end_the_task_that_it_was_for),
        T(a_wait_is_spent_while_its_delivered_payload_is_dropped),
        T(what_is_being_abandoned_cannot_be_submitted),
        T(a_cancel_does_not_reach_what_was_issued_meanwhile),
        T(no_callback_ends_the_runtime_under_its_caller),
        T(no_task_that_is_aborted_ends_the_runtime_under_its_caller),
        T(no_cancel_hook_drains_the_operation_that_is_being_cancelled),
#undef T
    };

    return test_group("runtime/reentry", tests, NULL, NULL);
}
