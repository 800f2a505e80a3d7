/* SPDX-License-Identifier: MIT */
/* Design notes: jobs[0] is behind tokens.prepared, [1] behind binding, [2] behind submission and wait,
 * [3] is queued, [4] is in spec. */
#include "stage.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    stage_job *self = state;

    (void)out_payload;
    self->ran++;
    if (self->inside != NULL)
        self->inside(self->stage, job);
    return 0;
}

static void
drop(void *state)
{
    stage_job *self = state;

    self->dropped++;
    if (self->at_drop != NULL)
        self->at_drop(self->stage);
}

static const errand_job_type job_type = {.struct_size = sizeof(errand_job_type),
                                         .name = "stage job",
                                         .run = run,
                                         .drop = drop};

static errand_spec
spec_of(stage *self, int index, uint32_t kind)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    self->jobs[index].stage = self;
    spec.kind = kind;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &job_type;
    spec.state = &self->jobs[index];
    return spec;
}

static void
hear_misuse(void *arg, errand_status status, const char *text)
{
    stage *self = arg;

    self->misuses++;
    self->misuse = status;
    snprintf(self->text, sizeof self->text, "%s", text);
}

static errand_task_answer
task_step(errand_task *task, void *state, const errand_task_news *news)
{
    stage *self = state;
    errand_status status;

    (void)news;
    self->inner = task;
    if (self->in_task != NULL)
        self->in_task(self);
    self->inner = NULL;
    status = errand_task_park(task, UINT64_MAX);
    return status == ERRAND_OK || status == ERRAND_EMISUSE ? ERRAND_TASK_WAIT
                                                           : ERRAND_TASK_DONE;
}

static void
task_drop(void *state)
{
    ((stage *)state)->task_drops++;
}

static void
run_command(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    ((stage *)arg)->commands++;
}
static void
drop_command(void *arg)
{
    ((stage *)arg)->commands++;
}

static void
on_completion(void *arg, errand_completion *completion)
{
    stage *self = arg;

    self->heard++;
    self->news = completion;
    if (self->in_handler != NULL)
        self->in_handler(self);
    self->news = NULL;
}

static void
make_tokens(stage *self)
{
    errand_runtime *runtime = self->tokens.runtime;
    errand_spec spec = spec_of(self, 0, 1);
    errand_identity identity;
    errand_prepared prepared;
    errand_binding binding;

    assert_int_equal(errand_prepare(runtime, &spec, &self->tokens.prepared), ERRAND_OK);
    for (int i = 1; i <= 2; i++) {
        spec = spec_of(self, i, 1);
        assert_int_equal(errand_prepare(runtime, &spec, &prepared), ERRAND_OK);
        assert_int_equal(errand_issue(runtime, 1, NULL, &identity), ERRAND_OK);
        assert_int_equal(errand_bind(runtime, &identity, &prepared,
                                     i == 1 ? &self->tokens.binding : &binding),
                         ERRAND_OK);
    }
    assert_int_equal(errand_split(&binding, &self->tokens.wait, &self->tokens.submission),
                     ERRAND_OK);
    assert_int_equal(errand_issue(runtime, 1, NULL, &self->issued), ERRAND_OK);
    assert_int_equal(errand_issue(runtime, 2, NULL, &self->fresh), ERRAND_OK);
    spec = spec_of(self, 3, 1);
    assert_int_equal(errand_start(self->tokens.lease, &spec, NULL, &self->queued),
                     ERRAND_OK);
}

void
stage_open(stage *self)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .operations_max = 64,
                                    .messages = 4,
                                    .flags = ERRAND_RUNTIME_TEST_CLOCK,
                                    .on_completion = on_completion,
                                    .held_on_completion_arg = self};
    errand_task_spec task = {.struct_size = sizeof task,
                             .fn = task_step,
                             .state = self,
                             .held_drop = task_drop};
    errand_turn turn;

    memset(self, 0, sizeof *self);
    self->bytes = errand_testing_live_bytes();
    errand_misuse_hook(hear_misuse, self);
    assert_int_equal(errand_runtime_create(&config, &self->tokens.runtime), ERRAND_OK);
    assert_int_equal(errand_manual_create(NULL, &self->executor), ERRAND_OK);
    assert_int_equal(errand_manual_create(NULL, &self->spare), ERRAND_OK);
    assert_int_equal(
        errand_attach(self->tokens.runtime, self->executor, 0, &self->tokens.lease),
        ERRAND_OK);
    assert_int_equal(errand_inbox_open(self->tokens.runtime, &self->inbox), ERRAND_OK);
    assert_int_equal(errand_spawn(self->tokens.runtime, NULL, &task, &self->task),
                     ERRAND_OK);
    self->spawned = 1;
    assert_int_equal(errand_task_hold(self->tokens.runtime, &self->task), ERRAND_OK);
    self->held_id = self->task;
    assert_int_equal(
        errand_context_create(self->tokens.runtime, &self->task, NULL, &self->context),
        ERRAND_OK);
    assert_int_equal(errand_handle_open(self->tokens.runtime, &self->task, &self->handle),
                     ERRAND_OK);
    assert_int_equal(errand_drive(self->tokens.runtime, NULL, &turn), ERRAND_OK);
    assert_int_equal(errand_select_open(self->tokens.runtime, NULL, 0, &self->select),
                     ERRAND_OK);
    assert_int_equal(errand_signal_hold(self->tokens.runtime, &self->signal), ERRAND_OK);
    self->command =
        (errand_command){.fn = run_command, .drop = drop_command, .arg = self};
    make_tokens(self);
    self->spec = spec_of(self, 4, 1);
    assert_int_equal(self->misuses, 0);
}

void
stage_forget_misuse(stage *self)
{
    self->misuses = 0;
    self->misuse = ERRAND_OK;
    self->text[0] = '\0';
}

bool
stage_told(const stage *self, errand_status status, const char *function)
{
    size_t length = strlen(function);

    /* Name, cause, and mend, unless the status has none but to look the call up. */
    bool complete =
        strstr(errand_status_text(status), "; see the call's documentation") != NULL;
    return self->misuses == 1 && self->misuse == status &&
           strncmp(self->text, function, length) == 0 && self->text[length] == ':' &&
           self->text[length + 1] == ' ' && strlen(self->text + length) > 8 &&
           strstr(self->text, "; see the call's documentation") == NULL &&
           (complete || strstr(self->text + length, "; ") != NULL);
}

void
stage_use(stage *self)
{
    errand_runtime *runtime = self->tokens.runtime;
    errand_submission submission;
    errand_snapshot snapshot;
    errand_wait wait;
    size_t count;

    assert_int_equal(errand_prepared_kind(&self->tokens.prepared), 1);
    assert_int_equal(errand_submit(self->tokens.lease, &self->tokens.submission),
                     ERRAND_OK);
    errand_wait_abandon(&self->tokens.wait);
    assert_int_equal(errand_split(&self->tokens.binding, &wait, &submission), ERRAND_OK);
    assert_int_equal(errand_submit(self->tokens.lease, &submission), ERRAND_OK);
    errand_wait_abandon(&wait);
    assert_int_equal(errand_bind(runtime, &self->issued, &self->tokens.prepared,
                                 &self->tokens.binding),
                     ERRAND_OK);
    errand_binding_abandon(&self->tokens.binding);
    assert_int_equal(errand_manual_step(self->executor, SIZE_MAX, &count), ERRAND_OK);
    assert_int_equal(count, 3);
    assert_int_equal(errand_drain(runtime, SIZE_MAX, NULL, NULL, &count), ERRAND_OK);
    assert_int_equal(count, 3);
    assert_int_equal(errand_runtime_snapshot(runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.accepted, snapshot.drained);
    for (int i = 0; i < 4; i++)
        assert_int_equal(self->jobs[i].ran, i != 0);
}

void
stage_close(stage *self)
{
    errand_report report;

    if (self->tokens.runtime != NULL)
        assert_int_equal(errand_runtime_shutdown(&self->tokens.runtime,
                                                 errand_deadline_in(5000000000),
                                                 ERRAND_SHUTDOWN_QUIET, &report),
                         ERRAND_OK);
    if (self->made != NULL && errand_runtime_adopt(self->made) == ERRAND_OK)
        assert_int_equal(
            errand_runtime_shutdown(&self->made, 0, ERRAND_SHUTDOWN_QUIET, NULL),
            ERRAND_OK);
    assert_int_equal(errand_post(self->inbox, &self->command), ERRAND_EGONE);
    errand_inbox_abandon(&self->inbox);
    errand_executor_abandon(&self->executor);
    errand_executor_abandon(&self->spare);
    errand_misuse_hook(NULL, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(self->jobs[i].dropped, 1);
    assert_int_equal(self->task_drops, self->spawned);
    /* The last of an executor's threads may still be on its way out. */
    for (uint64_t end = errand_deadline_in(5000000000);
         errand_testing_live_bytes() != self->bytes && errand_deadline_in(0) < end;)
        sched_yield();
    assert_int_equal(errand_testing_live_bytes(), self->bytes);
}
