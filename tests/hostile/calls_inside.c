/* SPDX-License-Identifier: MIT */
/* Design notes: one small function per public call, and the table of what each answers where. */
#include "errand/choice.h"
#include "errand/portable.h"
#include "errand/traps.h"
#include "errand/wait.h"
#include "calls.h"

static errand_status
call_job_cancelled(stage *self, int broken)
{
    (void)errand_job_cancelled(N(1, self->job));
    return told(self);
}

static errand_status
call_job_name(stage *self, int broken)
{
    (void)errand_job_name(N(1, self->job));
    return told(self);
}

static errand_status
call_job_trace_id(stage *self, int broken)
{
    (void)errand_job_trace_id(N(1, self->job));
    return told(self);
}

static errand_status
call_job_identity(stage *self, int broken)
{
    (void)errand_job_identity(N(1, self->job));
    return told(self);
}

static errand_status
call_job_epoch(stage *self, int broken)
{
    (void)errand_job_epoch(N(1, self->job));
    return told(self);
}

static errand_status
call_wait_fd(stage *self, int broken)
{
    errand_status status = errand_wait_fd(N(1, self->job), -1, 0, 1, NULL);

    return status == ERRAND_ETIMEOUT ? ERRAND_OK : status;
}

static errand_status
call_job_impure(stage *self, int broken)
{
    errand_job_impure(N(1, self->job));
    return told(self);
}

static errand_status
call_job_message(stage *self, int broken)
{
    errand_job_message(N(1, self->job), "text");
    return told(self);
}

static errand_status
call_job_fail(stage *self, int broken)
{
    errand_job_fail(N(1, self->job), 0, 0, NULL, "text");
    return told(self);
}

static errand_status
call_job_work(stage *self, int broken)
{
    return errand_job_work(N(1, self->job), 1);
}

static void
do_nothing(void *arg)
{
    (void)arg;
}

static errand_status
call_job_defer(stage *self, int broken)
{
    return errand_job_defer(N(1, self->job), N(2, do_nothing), NULL);
}

static errand_status
call_job_alloc(stage *self, int broken)
{
    (void)errand_job_alloc(N(1, self->job), 8);
    return told(self);
}

static errand_status
call_payload_alloc(stage *self, int broken)
{
    errand_payload payload = {.data = NULL};

    (void)errand_payload_alloc(N(1, self->job), 8, N(2, &payload));
    errand_payload_drop(&payload);
    return told(self);
}

static errand_status
call_portable_take(stage *self, int broken)
{
    errand_payload held = {.data = NULL};

    /* There is no response here. */
    assert_false(errand_portable_take(N(1, self->job), N(2, &held)));
    assert_null(held.data);
    return told(self);
}

static errand_status
call_job_follow(stage *self, int broken)
{
    return errand_job_follow(N(1, self->job), N(2, &self->spec), NULL);
}

static errand_status
call_job_post(stage *self, int broken)
{
    return errand_job_post(N(1, self->job), N(2, &self->command));
}

static errand_status
call_completion_take(stage *self, int broken)
{
    errand_payload payload = errand_completion_take(N(1, self->news));

    errand_payload_drop(&payload);
    return told(self);
}

static errand_status
call_completion_read(stage *self, int broken)
{
    static const errand_payload_type untold = {"untold", NULL};
    void *data;
    size_t size;
    errand_status status =
        errand_completion_read(N(1, self->news), N(2, &untold), N(3, &data), &size);

    return status == ERRAND_EDECODE ? ERRAND_OK : status; /* it has no payload */
}

static errand_status
call_task_yield(stage *self, int broken)
{
    return errand_task_yield(N(1, self->inner));
}

static errand_status
call_task_sleep(stage *self, int broken)
{
    return errand_task_sleep(N(1, self->inner), 1);
}

static errand_status
call_task_sleep_until(stage *self, int broken)
{
    return errand_task_sleep_until(N(1, self->inner), UINT64_MAX);
}

static errand_status
call_task_await(stage *self, int broken)
{
    return errand_task_await(N(1, self->inner), N(2, LEASE), N(3, &self->spec),
                             UINT64_MAX, NULL);
}

static errand_status
call_task_join(stage *self, int broken)
{
    errand_task_id other = {.runtime = errand_runtime_id(RUNTIME), .task = 77};

    return errand_task_join(N(1, self->inner), N(2, &other), 1, UINT64_MAX);
}

static errand_status
call_task_park(stage *self, int broken)
{
    return errand_task_park(N(1, self->inner), UINT64_MAX);
}

static errand_status
call_task_shield(stage *self, int broken)
{
    return errand_task_shield(N(1, self->inner), UINT64_MAX);
}

static errand_status
call_task_unshield(stage *self, int broken)
{
    if (broken == 0 && errand_task_shield(self->inner, UINT64_MAX) != ERRAND_OK)
        stage_forget_misuse(self);
    return errand_task_unshield(N(1, self->inner));
}

static errand_status
call_task_select(stage *self, int broken)
{
    return errand_task_select(N(1, self->inner), N(2, &self->select), 0);
}

static errand_status
call_task_stopped(stage *self, int broken)
{
    return errand_task_stopped(N(1, self->inner), N(2, &self->signal), 0);
}

static errand_status
call_task_stop(stage *self, int broken)
{
    return errand_task_stop(N(1, self->inner), 1, 0);
}

static errand_status
call_task_fail(stage *self, int broken)
{
    return errand_task_fail(N(1, self->inner), 1, "text");
}

static errand_status
call_task_defer(stage *self, int broken)
{
    return errand_task_defer(N(1, self->inner), N(2, do_nothing), NULL);
}

static errand_status
call_task_undefer(stage *self, int broken)
{
    if (broken == 0 && errand_task_defer(self->inner, do_nothing, NULL) != ERRAND_OK)
        stage_forget_misuse(self);
    return errand_task_undefer(N(1, self->inner));
}

static errand_status
call_task_random(stage *self, int broken)
{
    (void)errand_task_random(N(1, self->inner));
    return told(self);
}

static errand_status
call_task_choose(stage *self, int broken)
{
    (void)errand_task_choose(N(1, self->inner), 6);
    return told(self);
}

static errand_status
call_task_chance(stage *self, int broken)
{
    (void)errand_task_chance(N(1, self->inner), 1, 2);
    return told(self);
}

static errand_status
call_task_random32(stage *self, int broken)
{
    (void)errand_task_random32(N(1, self->inner));
    return told(self);
}

static errand_status
call_task_fill(stage *self, int broken)
{
    unsigned char bytes[3];

    errand_task_fill(N(1, self->inner), N(2, bytes), sizeof bytes);
    return told(self);
}

const public_call inside_calls[] = {
    {"errand_job_cancelled", call_job_cancelled, PLACE_JOB, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_job_name", call_job_name, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_job_trace_id", call_job_trace_id, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_job_identity", call_job_identity, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_job_epoch", call_job_epoch, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_job_impure", call_job_impure, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_wait_fd", call_wait_fd, PLACE_JOB, 1, ERRAND_EMISUSE, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_job_message", call_job_message, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_job_fail", call_job_fail, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_job_work", call_job_work, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_job_defer", call_job_defer, PLACE_JOB, 2, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_job_alloc", call_job_alloc, PLACE_JOB, 1, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_payload_alloc", call_payload_alloc, PLACE_JOB, 2, ANSWER_ANY, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_portable_take", call_portable_take, PLACE_JOB, 2, ANSWER_ANY, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_job_follow", call_job_follow, PLACE_JOB, 2, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_job_post", call_job_post, PLACE_JOB, 2, ANSWER_ANY, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_completion_take", call_completion_take, PLACE_NEWS, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_completion_read", call_completion_read, PLACE_NEWS, 3, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_yield", call_task_yield, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_sleep", call_task_sleep, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_sleep_until", call_task_sleep_until, PLACE_TASK, 1, ERRAND_ETHREAD,
     ERRAND_OK, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_await", call_task_await, PLACE_TASK, 3, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_join", call_task_join, PLACE_TASK, 2, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_park", call_task_park, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_shield", call_task_shield, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_unshield", call_task_unshield, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_select", call_task_select, PLACE_TASK, 2, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_stopped", call_task_stopped, PLACE_TASK, 2, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_stop", call_task_stop, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_fail", call_task_fail, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_defer", call_task_defer, PLACE_TASK, 2, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_undefer", call_task_undefer, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_random", call_task_random, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_choose", call_task_choose, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_chance", call_task_chance, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_random32", call_task_random32, PLACE_TASK, 1, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_task_fill", call_task_fill, PLACE_TASK, 2, ERRAND_ETHREAD, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
};
const size_t inside_call_count = sizeof inside_calls / sizeof inside_calls[0];
