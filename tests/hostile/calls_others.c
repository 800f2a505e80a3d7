/* SPDX-License-Identifier: MIT */
/* Design notes: one small function per public call, and the table of what each answers where. */
#include "errand/faults.h"
#include "errand/io.h"
#include "calls.h"

static errand_status
call_blocking_create(stage *self, int broken)
{
    errand_executor *executor = NULL;
    errand_status made =
        errand_blocking_create(NULL, N(1, self->child ? NULL : &executor));

    if (self->child) { /* a sanitizer's child may not make threads */
        stage_forget_misuse(self);
        return ERRAND_OK;
    }
    errand_executor_abandon(&executor);
    return made;
}

static errand_status
call_async_create(stage *self, int broken)
{
    errand_executor *executor = NULL;
    errand_status made = errand_async_create(NULL, N(1, self->child ? NULL : &executor));

    if (self->child) {
        stage_forget_misuse(self);
        return ERRAND_OK;
    }
    errand_executor_abandon(&executor);
    return made;
}

static errand_status
call_reactor_create(stage *self, int broken)
{
    (void)self;
    errand_executor *executor = NULL;
    errand_status made = errand_reactor_create(NULL, N(1, &executor));

    errand_executor_abandon(&executor);
    return made;
}

static errand_status
call_manual_create(stage *self, int broken)
{
    (void)self;
    errand_executor *executor = NULL;
    errand_status made = errand_manual_create(NULL, N(1, &executor));

    errand_executor_abandon(&executor);
    return made;
}

static errand_status
no_attach(void *data, uint64_t runtime_id, uint32_t owed_max, void **out_lease)
{
    (void)data;
    (void)runtime_id;
    (void)owed_max;
    (void)out_lease;
    return ERRAND_ENOTHREAD;
}
static errand_status
no_reserve(void *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_EFULL;
}
static void
no_submit(void *lease, errand_dispatch dispatch)
{
    (void)lease;
    (void)dispatch;
}
static void
no_detach(void *lease, uint64_t deadline_ns)
{
    (void)lease;
    (void)deadline_ns;
}

static errand_status
call_executor_create(stage *self, int broken)
{
    (void)self;
    errand_executor *executor = NULL;
    static const errand_executor_type type = {.struct_size = sizeof type,
                                              .name = "none",
                                              .attach = no_attach,
                                              .reserve = no_reserve,
                                              .submit = no_submit,
                                              .detach = no_detach};
    errand_status made = errand_executor_create(N(1, &type), NULL, N(2, &executor));

    errand_executor_abandon(&executor);
    return made;
}

static errand_status
call_lane_define(stage *self, int broken)
{
    uint8_t lane;

    return errand_lane_define(N(1, self->spare), N(2, "lane"), 1, N(3, &lane));
}

static errand_status
call_manual_step(stage *self, int broken)
{
    size_t count;

    return errand_manual_step(N(1, self->spare), 0, N(2, &count));
}

static errand_status
call_executor_snapshot_read(stage *self, int broken)
{
    errand_executor_snapshot snapshot;

    return errand_executor_snapshot_read(N(1, self->executor), N(2, &snapshot));
}

static void
hear_fact(void *arg, const errand_doctor_fact *fact)
{
    (void)arg;
    (void)fact;
}

static errand_status
call_doctor(stage *self, int broken)
{
    (void)self;
    return errand_doctor(N(1, hear_fact), NULL);
}

static errand_status
call_lease_ages(stage *self, int broken)
{
    errand_executor_snapshot snapshot;

    return errand_lease_ages(N(1, LEASE), N(2, &snapshot));
}

static errand_status
call_runtime_ages(stage *self, int broken)
{
    errand_executor_snapshot snapshot;

    return errand_runtime_ages(N(1, RUNTIME), N(2, &snapshot));
}

/* The stage's executors are no pools: where nothing else is wrong that is all they say. */
static errand_status
but_for_the_kind(stage *self, errand_status status)
{
    if (status != ERRAND_EUNSUPPORTED)
        return status;
    stage_forget_misuse(self);
    return ERRAND_OK;
}

static errand_status
call_faults_set(stage *self, int broken)
{
    errand_faults_config config = {.struct_size = sizeof config};

    return but_for_the_kind(self, errand_faults_set(N(1, self->spare), N(2, &config)));
}

static errand_status
call_faults_read(stage *self, int broken)
{
    errand_faults faults;

    return but_for_the_kind(self, errand_faults_read(N(1, self->spare), N(2, &faults)));
}

static errand_status
call_faults_find(stage *self, int broken)
{
    errand_fault fault;

    return but_for_the_kind(
        self, errand_faults_find(N(1, self->spare), N(2, &self->queued), N(3, &fault)));
}

static errand_status
call_digest(stage *self, int broken)
{
    (void)errand_digest(N(1, RUNTIME));
    return told(self);
}

static errand_status
call_order_latency(stage *self, int broken)
{
    errand_status status = errand_order_latency(N(1, RUNTIME), 1, 1);

    if (status != ERRAND_EUNSUPPORTED)
        return status;
    stage_forget_misuse(self); /* the stage's runtime has no seed */
    return ERRAND_OK;
}

static errand_status
call_audit_note(stage *self, int broken)
{
    return errand_audit_note(N(1, RUNTIME), N(2, "note"), N(3, "bytes"), 5);
}

static uint64_t
digest_nothing(const void *data, size_t size)
{
    (void)data;
    return size;
}

static errand_status
call_audit_payload(stage *self, int broken)
{
    return errand_audit_payload(N(1, RUNTIME), N(2, &errand_hash_type),
                                N(3, digest_nothing));
}

static errand_status
call_trace(stage *self, int broken)
{
    return errand_trace(N(1, RUNTIME), NULL, NULL);
}

static errand_status
call_reproducible(stage *self, int broken)
{
    (void)errand_reproducible(N(1, RUNTIME), NULL, 0);
    return told(self);
}

static errand_status
call_audit_operations(stage *self, int broken)
{
    return errand_audit_operations(N(1, RUNTIME));
}

static errand_status
call_testing_clock(stage *self, int broken)
{
    return errand_testing_clock(N(1, RUNTIME), 1);
}

static errand_status
call_testing_counters(stage *self, int broken)
{
    return errand_testing_counters(N(1, RUNTIME), 0, 0, 0);
}

static errand_status
call_testing_deliver(stage *self, int broken)
{
    errand_identity unknown = {.runtime = errand_runtime_id(RUNTIME), .slot = 1};
    errand_payload payload = {.data = NULL};
    bool woke;

    return errand_testing_deliver(N(1, RUNTIME), N(2, &unknown), ERRAND_COMPLETED,
                                  payload, N(3, &woke));
}

static errand_task_answer
end_at_once(errand_task *task, void *state, const errand_task_news *news)
{
    (void)task;
    (void)state;
    (void)news;
    return ERRAND_TASK_DONE;
}

static errand_status
call_spawn(stage *self, int broken)
{
    errand_task_spec spec = {
        .struct_size = sizeof spec, .fn = end_at_once, .state = self};
    errand_status status = errand_spawn(N(1, RUNTIME), NULL, N(2, &spec), NULL);

    return status;
}

static errand_status
call_task_hold(stage *self, int broken)
{
    errand_status status = errand_task_hold(N(1, RUNTIME), N(2, &self->task));

    if (status == ERRAND_OK)
        errand_task_let(RUNTIME, &self->task);
    return status;
}

static errand_status
call_task_let(stage *self, int broken)
{
    if (broken == 0 && errand_task_hold(RUNTIME, &self->task) != ERRAND_OK)
        stage_forget_misuse(self); /* the answer of errand_task_let counts */
    errand_task_let(N(1, RUNTIME), N(2, &self->task));
    return told(self);
}

static errand_status
call_task_state_read(stage *self, int broken)
{
    return errand_task_state_read(N(1, RUNTIME), N(2, &self->task), NULL, NULL);
}

static errand_status
call_task_wake(stage *self, int broken)
{
    return errand_task_wake(N(1, RUNTIME), N(2, &self->task));
}

static errand_status
call_task_cancel(stage *self, int broken)
{
    return errand_task_cancel(N(1, RUNTIME), N(2, &self->task), ERRAND_REASON_EXPLICIT);
}

static errand_status
call_task_abort(stage *self, int broken)
{
    return errand_task_abort(N(1, RUNTIME), N(2, &self->task));
}

static errand_status
call_cancel_roots(stage *self, int broken)
{
    return errand_cancel_roots(N(1, RUNTIME), ERRAND_REASON_EXPLICIT);
}

static errand_status
call_drive(stage *self, int broken)
{
    errand_budget budget = {.struct_size = sizeof budget, .items = 1};
    errand_turn turn;

    return errand_drive(N(1, RUNTIME), &budget, &turn);
}

static errand_status
call_run(stage *self, int broken)
{
    errand_status status = errand_run(N(1, RUNTIME), N(2, &self->task), 0);

    return status == ERRAND_ETIMEOUT ? ERRAND_OK : status;
}

static errand_status
call_stall_text(stage *self, int broken)
{
    (void)errand_stall_text(N(1, RUNTIME), NULL, 0);
    return told(self);
}

const public_call other_calls[] = {
    {"errand_blocking_create", call_blocking_create, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_async_create", call_async_create, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_reactor_create", call_reactor_create, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_manual_create", call_manual_create, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_executor_create", call_executor_create, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_lane_define", call_lane_define, PLACE_PLAIN, 3, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_manual_step", call_manual_step, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_executor_snapshot_read", call_executor_snapshot_read, PLACE_PLAIN, 2,
     ERRAND_OK, ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_doctor", call_doctor, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_lease_ages", call_lease_ages, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_runtime_ages", call_runtime_ages, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_faults_set", call_faults_set, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_faults_read", call_faults_read, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_faults_find", call_faults_find, PLACE_PLAIN, 3, ERRAND_OK, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_digest", call_digest, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_order_latency", call_order_latency, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_audit_note", call_audit_note, PLACE_PLAIN, 3, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_audit_payload", call_audit_payload, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_trace", call_trace, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_reproducible", call_reproducible, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_audit_operations", call_audit_operations, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_testing_clock", call_testing_clock, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_testing_counters", call_testing_counters, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_testing_deliver", call_testing_deliver, PLACE_PLAIN, 3, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_spawn", call_spawn, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_ECLOSED},
    {"errand_task_hold", call_task_hold, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_task_let", call_task_let, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_task_state_read", call_task_state_read, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_task_wake", call_task_wake, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_task_cancel", call_task_cancel, PLACE_PLAIN, 2, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_task_abort", call_task_abort, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ANSWER_ANY},
    {"errand_cancel_roots", call_cancel_roots, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_drive", call_drive, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_EBUSY, ERRAND_OK, ERRAND_EBUSY},
    {"errand_run", call_run, PLACE_PLAIN, 2, ERRAND_ETHREAD, ERRAND_EFORKED, ERRAND_EBUSY,
     ERRAND_EDEADLOCK, ERRAND_EBUSY},
    {"errand_stall_text", call_stall_text, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
};
const size_t other_call_count = sizeof other_calls / sizeof other_calls[0];
