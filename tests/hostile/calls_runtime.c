/* SPDX-License-Identifier: MIT */
/* Design notes: one small function per public call, and the table of what each answers where. */
#include "calls.h"

static errand_status
call_runtime_create(stage *self, int broken)
{
    errand_runtime_config config = {.struct_size = sizeof config, .operations_max = 8};

    errand_status status = errand_runtime_create(&config, N(1, &self->made));

    return status == ERRAND_OK ? errand_runtime_release(self->made) : status;
}

static errand_status
call_runtime_release(stage *self, int broken)
{
    return errand_runtime_release(N(1, RUNTIME));
}

static errand_status
call_runtime_adopt(stage *self, int broken)
{
    return errand_runtime_adopt(N(1, RUNTIME));
}

static errand_status
call_attach(stage *self, int broken)
{
    errand_lease *lease;

    return errand_attach(N(1, RUNTIME), N(2, self->spare), 0, N(3, &lease));
}

static errand_status
call_prepare(stage *self, int broken)
{
    errand_prepared prepared;

    return errand_prepare(N(1, RUNTIME), N(2, &self->spec), N(3, &prepared));
}

static errand_status
call_issue(stage *self, int broken)
{
    errand_identity identity;

    return errand_issue(N(1, RUNTIME), 1, NULL, N(2, &identity));
}

static errand_status
call_retire(stage *self, int broken)
{
    return errand_retire(N(1, RUNTIME), N(2, &self->fresh));
}

static errand_status
call_bind(stage *self, int broken)
{
    errand_prepared prepared = self->tokens.prepared;
    errand_binding binding;
    errand_status status =
        errand_bind(N(1, RUNTIME), N(2, &self->issued), N(3, &prepared), N(4, &binding));

    if (status == ERRAND_OK)
        errand_binding_abandon(&binding);
    return status;
}

static errand_status
call_split(stage *self, int broken)
{
    errand_binding copy = self->tokens.binding;
    errand_submission submission;
    errand_wait wait;
    errand_status status = errand_split(N(1, &copy), N(2, &wait), N(3, &submission));

    if (status == ERRAND_OK)
        errand_submission_abandon(&submission);
    return status;
}

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    (void)own_data;
    (void)runtime;
    (void)news;
}

static errand_status
call_await(stage *self, int broken)
{
    errand_continuation continuation = {.resume = resume};
    errand_wait copy = self->tokens.wait;

    return errand_await(N(1, &copy), N(2, &continuation));
}

static errand_status
call_prepared_abandon(stage *self, int broken)
{
    errand_prepared copy = self->tokens.prepared;

    errand_prepared_abandon(N(1, &copy));
    return told(self);
}

static errand_status
call_binding_abandon(stage *self, int broken)
{
    errand_binding copy = self->tokens.binding;

    errand_binding_abandon(N(1, &copy));
    return told(self);
}

static errand_status
call_wait_abandon(stage *self, int broken)
{
    errand_wait copy = self->tokens.wait;

    errand_wait_abandon(N(1, &copy));
    return told(self);
}

static errand_status
call_submission_abandon(stage *self, int broken)
{
    errand_submission copy = self->tokens.submission;

    errand_submission_abandon(N(1, &copy));
    return told(self);
}

static errand_status
call_submit(stage *self, int broken)
{
    errand_submission copy = self->tokens.submission;

    return errand_submit(N(1, LEASE), N(2, &copy));
}

static errand_status
call_submit_many(stage *self, int broken)
{
    errand_submission copy = self->tokens.submission;
    size_t accepted;

    return errand_submit_many(N(1, LEASE), N(2, &copy), 1, N(3, &accepted));
}

static errand_status
call_start(stage *self, int broken)
{
    return errand_start(N(1, LEASE), N(2, &self->spec), NULL, NULL);
}

static errand_status
call_cancel(stage *self, int broken)
{
    return errand_cancel(N(1, RUNTIME), N(2, &self->queued), ERRAND_REASON_EXPLICIT,
                         NULL);
}

static errand_status
call_reap_ready(stage *self, int broken)
{
    errand_status status = errand_reap_ready(N(1, RUNTIME), N(2, &self->queued));

    /* nothing of it is to be reaped */
    return status == ERRAND_EUNKNOWN ? ERRAND_OK : status;
}

static errand_status
call_inbox_open(stage *self, int broken)
{
    errand_inbox *inbox = NULL;
    errand_status status = errand_inbox_open(N(1, RUNTIME), N(2, &inbox));

    errand_inbox_abandon(&inbox);
    return status;
}

static errand_status
call_post_cancel(stage *self, int broken)
{
    return errand_post_cancel(N(1, self->inbox), N(2, &self->queued));
}

static errand_status
call_post(stage *self, int broken)
{
    return errand_post(N(1, self->inbox), N(2, &self->command));
}

static errand_status
call_cancel_later(stage *self, int broken)
{
    return errand_cancel_later(N(1, RUNTIME), N(2, &self->fresh));
}

static errand_status
call_abandon_later(stage *self, int broken)
{
    errand_submission copy = self->tokens.submission;

    return errand_abandon_later(N(1, &copy));
}

static errand_status
call_drain(stage *self, int broken)
{
    return errand_drain(N(1, RUNTIME), 0, NULL, NULL, NULL);
}

static errand_status
call_runtime_unwound(stage *self, int broken)
{
    return errand_runtime_unwound(N(1, RUNTIME));
}

static errand_status
call_park(stage *self, int broken)
{
    return errand_park(N(1, RUNTIME), 0);
}

static errand_status
call_runtime_wake_fd(stage *self, int broken)
{
    int fd;

    return errand_runtime_wake_fd(N(1, RUNTIME), N(2, &fd));
}

static errand_status
call_runtime_snapshot(stage *self, int broken)
{
    errand_snapshot snapshot;

    return errand_runtime_snapshot(N(1, RUNTIME), N(2, &snapshot));
}

static errand_status
call_lease_snapshot(stage *self, int broken)
{
    errand_snapshot snapshot;

    return errand_lease_snapshot(N(1, LEASE), N(2, &snapshot));
}

static errand_status
call_lease_wait_room(stage *self, int broken)
{
    return errand_lease_wait_room(N(1, LEASE), 0);
}

static bool
visit_all(errand_visitor *visitor, void **slot)
{
    (void)visitor;
    (void)slot;
    return false;
}

static errand_status
call_runtime_trace(stage *self, int broken)
{
    errand_visitor visitor = {.visit = visit_all};

    (void)errand_runtime_trace(N(1, RUNTIME), N(2, &visitor));
    return told(self);
}

static errand_status
call_lease_shutdown(stage *self, int broken)
{
    errand_lease *copy = LEASE;

    return errand_lease_shutdown(N(1, &copy), 0, NULL);
}

static errand_status
call_runtime_shutdown(stage *self, int broken)
{
    errand_runtime *copy = RUNTIME;

    return errand_runtime_shutdown(N(1, &copy), 0, ERRAND_SHUTDOWN_QUIET, NULL);
}

const public_call runtime_calls[] = {
    {"errand_runtime_create", call_runtime_create, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_runtime_release", call_runtime_release, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_EBUSY, ERRAND_OK, ERRAND_EBUSY},
    {"errand_runtime_adopt", call_runtime_adopt, PLACE_PLAIN, 1, ERRAND_EMISUSE,
     ERRAND_EFORKED, ERRAND_EMISUSE, ERRAND_EMISUSE, ERRAND_EMISUSE},
    {"errand_attach", call_attach, PLACE_PLAIN, 3, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_prepare", call_prepare, PLACE_PLAIN, 3, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_issue", call_issue, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_retire", call_retire, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_bind", call_bind, PLACE_PLAIN, 4, ERRAND_ETHREAD, ERRAND_EFORKED, ERRAND_OK,
     ERRAND_OK, ANSWER_ANY},
    {"errand_split", call_split, PLACE_PLAIN, 3, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_await", call_await, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_prepared_abandon", call_prepared_abandon, PLACE_PLAIN, 0, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_binding_abandon", call_binding_abandon, PLACE_PLAIN, 0, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_wait_abandon", call_wait_abandon, PLACE_PLAIN, 0, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_submission_abandon", call_submission_abandon, PLACE_PLAIN, 0, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_submit", call_submit, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_REFUSAL},
    {"errand_submit_many", call_submit_many, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_REFUSAL},
    {"errand_start", call_start, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_cancel", call_cancel, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_reap_ready", call_reap_ready, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_inbox_open", call_inbox_open, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_post_cancel", call_post_cancel, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_post", call_post, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_EFORKED, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_cancel_later", call_cancel_later, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_abandon_later", call_abandon_later, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_drain", call_drain, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_EBUSY, ERRAND_OK, ERRAND_EBUSY},
    {"errand_runtime_unwound", call_runtime_unwound, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ANSWER_ANY, ERRAND_EMISUSE, ANSWER_ANY},
    {"errand_park", call_park, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_EBUSY, ERRAND_EDEADLOCK, ERRAND_EBUSY},
    {"errand_runtime_wake_fd", call_runtime_wake_fd, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_runtime_snapshot", call_runtime_snapshot, PLACE_PLAIN, 2, ERRAND_OK,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_lease_snapshot", call_lease_snapshot, PLACE_PLAIN, 2, ERRAND_OK,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_lease_wait_room", call_lease_wait_room, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_EDEADLOCK, ANSWER_ANY},
    {"errand_runtime_trace", call_runtime_trace, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_lease_shutdown", call_lease_shutdown, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_EBUSY, ERRAND_EDEADLOCK, ERRAND_EBUSY},
    {"errand_runtime_shutdown", call_runtime_shutdown, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_EBUSY, ERRAND_EDEADLOCK, ERRAND_EBUSY},
};
const size_t runtime_call_count = sizeof runtime_calls / sizeof runtime_calls[0];
