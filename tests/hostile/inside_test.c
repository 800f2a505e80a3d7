/* SPDX-License-Identifier: MIT */
/* Goal: what may be called in a body, a handler or a task only answers NULLs and strangers there, and
 * host code that is called in the middle of a call cannot take away what that call stands on (O33,
 * O80).
 * Method: the table of calls_inside.c, and hooks, drops and continuations that end the runtime. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gate.h"
#include "stage.h"

static const public_call *the_call;
static int reached, failures;

static void
expect(stage *self, int broken, errand_status wanted)
{
    errand_status answer;

    stage_forget_misuse(self);
    answer = the_call->call(self, broken);
    if (answer == wanted &&
        (wanted == ERRAND_OK ? self->misuses == 0
                             : stage_told(self, wanted, the_call->name)))
        return;
    fprintf(stderr, "%s (NULL %d): %s, expected %s; hook: %s\n", the_call->name, broken,
            errand_status_name(answer), errand_status_name(wanted), self->text);
    failures++;
}

/* Each NULL, then as it should be. */
static void
expect_all(stage *self)
{
    for (int broken = 1; broken <= the_call->nulls; broken++)
        expect(self, broken, ERRAND_EINVAL);
    expect(self, 0, ERRAND_OK);
    reached++;
}

static void
in_body(stage *self, errand_job *job)
{
    self->job = job;
    expect_all(self);
    self->job = NULL;
}

static void
drive(stage *self)
{
    errand_turn turn;

    assert_int_equal(errand_drive(self->tokens.runtime, NULL, &turn), ERRAND_OK);
}

/* ---- nobody but the task itself --------------------------------------------------------------------- */

static errand_task *stranger;

static void *
ask_from_thread(void *arg)
{
    stage *self = arg;

    self->inner = stranger;
    expect(self, 0, ERRAND_ETHREAD);
    return NULL;
}

/* Inside the task: from another thread meanwhile, then itself. */
static void
in_task(stage *self)
{
    pthread_t thread;

    self->in_task = NULL; /* once */
    stranger = self->inner;
    if (pthread_create(&thread, NULL, ask_from_thread, self) == 0)
        pthread_join(thread, NULL);
    self->inner = stranger;
    expect_all(self);
}

static errand_task_answer
meddle(errand_task *task, void *state, const errand_task_news *news)
{
    stage *self = state;

    (void)task;
    (void)news;
    self->inner = stranger;
    expect(self, 0, ERRAND_EMISUSE);
    return ERRAND_TASK_DONE;
}

static void
spawn_meddler(stage *self)
{
    errand_task_spec spec = {.struct_size = sizeof spec, .fn = meddle, .state = self};

    assert_int_equal(errand_spawn(self->tokens.runtime, NULL, &spec, NULL), ERRAND_OK);
    drive(self);
}

/* ---- the table ------------------------------------------------------------------------------------------ */

static void
probe(const public_call *call)
{
    bool takes = strcmp(call->name, "errand_job_follow") == 0 ||
                 strcmp(call->name, "errand_task_await") == 0;
    bool may_wait = strcmp(call->name, "errand_task_unshield") != 0 &&
                    strcmp(call->name, "errand_task_undefer") != 0;
    stage self;
    size_t count;

    the_call = call;
    reached = 0;
    stage_open(&self);
    switch (call->place) {
    case PLACE_JOB:
        self.jobs[3].inside = in_body;
        assert_int_equal(errand_manual_step(self.executor, 1, &count), ERRAND_OK);
        break;
    case PLACE_NEWS:
        assert_int_equal(errand_manual_step(self.executor, 1, &count), ERRAND_OK);
        self.in_handler = expect_all;
        drive(&self);
        break;
    default:
        self.in_task = in_task;
        assert_int_equal(errand_task_wake(self.tokens.runtime, &self.task), ERRAND_OK);
        drive(&self);
        self.in_task = NULL;
        if (may_wait)
            spawn_meddler(&self);
        break;
    }
    assert_int_equal(reached, 1);
    self.in_handler = self.in_task = NULL;
    stage_close(&self);
    assert_int_equal(self.jobs[4].dropped, takes);
}

static void
calls_inside_bodies_handlers_and_tasks_are_checked_too(void **state)
{
    (void)state;
    failures = 0;
    for (size_t i = 0; i < inside_call_count; i++)
        probe(&inside_calls[i]);
    assert_int_equal(failures, 0);
}

/* ---- what a call stands on --------------------------------------------------------------------------------- */

typedef struct saboteur { /* host code that tries to end everything */
    stage self;
    int tried, refused;
} saboteur;

static saboteur the_saboteur;

static void
try_to_end(void)
{
    stage *self = &the_saboteur.self;
    errand_runtime *runtime = self->tokens.runtime;
    errand_lease *lease = self->tokens.lease;

    the_saboteur.tried++;
    the_saboteur.refused += errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET,
                                                    NULL) == ERRAND_EBUSY &&
                            errand_lease_shutdown(&lease, 0, NULL) == ERRAND_EBUSY &&
                            errand_runtime_release(self->tokens.runtime) == ERRAND_EBUSY;
}

static void
end_at_drop(stage *self)
{
    (void)self;
    try_to_end();
}
static void
end_at_data_drop(void *data)
{
    (void)data;
    try_to_end();
}
static void
decode_nothing(void *own_data, errand_completion *completion, errand_verdict *out_verdict)
{
    (void)own_data;
    (void)completion;
    (void)out_verdict;
    try_to_end();
}
static const errand_decoder_type ending_decoder = {.struct_size =
                                                       sizeof(errand_decoder_type),
                                                   .decode = decode_nothing,
                                                   .drop = end_at_data_drop};
static errand_hook_answer
end_in_cancel(void *data, char *text, size_t size)
{
    (void)data;
    (void)text;
    (void)size;
    try_to_end();
    return ERRAND_HOOK_REAPED;
}
static const errand_hook_type ending_hook = {.struct_size = sizeof(errand_hook_type),
                                             .cancel = end_in_cancel};

static void
sabotage_begin(void)
{
    memset(&the_saboteur, 0, sizeof the_saboteur);
    stage_open(&the_saboteur.self);
}

static void
sabotage_end(int times)
{
    for (int i = 0; i < STAGE_JOBS; i++)
        the_saboteur.self.jobs[i].at_drop = NULL;
    stage_close(&the_saboteur.self);
    assert_int_equal(the_saboteur.tried, times);
    assert_int_equal(the_saboteur.refused, times);
}

static void
a_drop_inside_an_abandon_cannot_end_the_runtime(void **state)
{
    (void)state;
    sabotage_begin();
    stage *self = &the_saboteur.self;
    for (int i = 0; i <= 2; i++)
        self->jobs[i].at_drop = end_at_drop;
    errand_prepared_abandon(&self->tokens.prepared);
    errand_binding_abandon(&self->tokens.binding);
    errand_submission_abandon(&self->tokens.submission);
    sabotage_end(3);
}

static void
a_decoder_dropped_by_a_cancel_cannot_end_the_runtime(void **state)
{
    (void)state;
    sabotage_begin();
    stage *self = &the_saboteur.self;
    errand_identity identity;
    errand_spec spec = self->spec;
    spec.held_decoder = &ending_decoder;
    assert_int_equal(errand_start(self->tokens.lease, &spec, NULL, &identity), ERRAND_OK);
    assert_int_equal(
        errand_cancel(self->tokens.runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
        ERRAND_OK);
    sabotage_end(1);
}

static test_gate gate;

static void
wait_at_gate(stage *self, errand_job *job)
{
    (void)self;
    (void)job;
    gate_wait(&gate);
}

static void *
step_all(void *arg)
{
    stage *self = arg;
    size_t count;

    if (errand_manual_step(self->executor, SIZE_MAX, &count) != ERRAND_OK)
        abort();
    return NULL;
}

static void
a_cancel_hook_cannot_end_the_runtime(void **state)
{
    errand_identity identity;
    pthread_t stepper;

    (void)state;
    gate_init(&gate, "running");
    sabotage_begin();
    stage *self = &the_saboteur.self;
    errand_spec spec = self->spec;
    spec.held_hook = &ending_hook;
    self->jobs[4].inside = wait_at_gate;
    assert_int_equal(errand_start(self->tokens.lease, &spec, NULL, &identity), ERRAND_OK);
    assert_int_equal(pthread_create(&stepper, NULL, step_all, self), 0);
    gate_await_arrival(&gate);
    assert_int_equal(
        errand_cancel(self->tokens.runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
        ERRAND_OK);
    gate_open(&gate);
    pthread_join(stepper, NULL);
    sabotage_end(1);
    gate_fini(&gate);
}

static void
abort_defer(void *arg)
{
    (void)arg;
    try_to_end();
}

static void
defer_an_end(stage *self)
{
    assert_int_equal(errand_task_defer(self->inner, abort_defer, NULL), ERRAND_OK);
}

static void
a_tasks_cleanup_inside_an_abort_cannot_end_the_runtime(void **state)
{
    (void)state;
    sabotage_begin();
    stage *self = &the_saboteur.self;
    self->in_task = defer_an_end;
    assert_int_equal(errand_task_wake(self->tokens.runtime, &self->task), ERRAND_OK);
    drive(self);
    self->in_task = NULL;
    assert_int_equal(errand_task_abort(self->tokens.runtime, &self->task), ERRAND_OK);
    sabotage_end(1);
}

static void
resume_nobody(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    (void)own_data;
    (void)runtime;
    (void)news;
    try_to_end();
}

/* A shutdown that drives cancels waits before it drains; it is not ended twice by what that calls. */
static void
a_shutdown_cannot_be_ended_by_what_it_calls(void **state)
{
    errand_continuation continuation = {.resume = resume_nobody};

    (void)state;
    sabotage_begin();
    stage *self = &the_saboteur.self;
    errand_spec spec = self->spec;
    errand_prepared prepared;
    errand_binding binding;
    errand_wait wait;
    errand_submission submission;
    spec.held_decoder = &ending_decoder;
    assert_int_equal(errand_prepare(self->tokens.runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(
        errand_bind(self->tokens.runtime, &self->issued, &prepared, &binding), ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    assert_int_equal(errand_await(&wait, &continuation), ERRAND_OK);
    assert_int_equal(errand_submit(self->tokens.lease, &submission), ERRAND_OK);
    assert_int_equal(errand_runtime_shutdown(&self->tokens.runtime,
                                             errand_deadline_in(1000000000),
                                             ERRAND_SHUTDOWN_RUN, NULL),
                     ERRAND_OK);
    sabotage_end(2); /* the decoder's drop, the continuation */
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_inside_bodies_handlers_and_tasks_are_checked_too),
        cmocka_unit_test(a_drop_inside_an_abandon_cannot_end_the_runtime),
        cmocka_unit_test(a_decoder_dropped_by_a_cancel_cannot_end_the_runtime),
        cmocka_unit_test(a_cancel_hook_cannot_end_the_runtime),
        cmocka_unit_test(a_tasks_cleanup_inside_an_abort_cannot_end_the_runtime),
        cmocka_unit_test(a_shutdown_cannot_be_ended_by_what_it_calls),
    };

    return test_group("hostile/inside", tests, NULL, NULL);
}
