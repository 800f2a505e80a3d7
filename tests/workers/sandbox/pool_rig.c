/* SPDX-License-Identifier: MIT */
#include "pool_rig.h"
#include "descriptors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct rig_job {
    rig *owner;
    errand_entry entry;
    bool plugin; /* no head */
    size_t size; /* of the bytes behind the head */
    sim_request head;
    unsigned char bytes[];
} rig_job;

const char *rig_symbol = "first";

static const errand_entry *
entry_of(const void *state)
{
    return &((const rig_job *)state)->entry;
}

static size_t
request_size(const void *state)
{
    const rig_job *job = state;

    return (job->plugin ? 0 : sizeof(sim_request)) + job->size;
}

static void
write_request(const void *state, unsigned char *out_bytes)
{
    const rig_job *job = state;

    if (!job->plugin) {
        memcpy(out_bytes, &job->head, sizeof job->head);
        out_bytes += sizeof job->head;
    }
    memcpy(out_bytes, job->bytes, job->size);
}

static int32_t
read_response(errand_job *job, void *state, const unsigned char *bytes, size_t size,
              errand_payload *out_payload)
{
    const rig_job *self = state;
    uint64_t *sum;

    if (self->head.reserved == 1)
        errand_panic("the response is unreadable");
    for (int i = 0; i < 2 && self->head.reserved == 2 &&
                    errand_portable_take(job, &self->owner->held);
         i++) {
        self->owner->taken++;
        self->owner->held_bytes = bytes;
    }
    sum = errand_payload_alloc(job, 32, out_payload);
    if (sum == NULL)
        return 12;
    sum[1] = size;
    memcpy(&sum[2], bytes, size < 16 ? size : 16);
    for (size_t i = 0; i < size; i++) {
        sum[0] += bytes[i];
        if (self->head.act == SIM_PATTERN && bytes[i] != sim_byte(i)) {
            sum[0] = UINT64_MAX;
            break;
        }
    }
    return 0;
}

static size_t
answer(errand_job *job, void *state, const unsigned char *question, size_t size,
       unsigned char *out_answer, size_t room)
{
    errand_payload held;

    (void)state;
    assert_false(errand_portable_take(job, &held)); /* it is no response */
    if (size == 0 || size > room)
        return 0;
    for (size_t i = 0; i < size; i++)
        out_answer[i] = (unsigned char)(question[i] + 1);
    return size;
}

static int32_t
run_here(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 99; /* nobody runs it in this process */
}

static void
drop(void *state)
{
    rig_job *job = state;

    job->owner->dropped++;
    free(job);
}

static const errand_portable_type portable = {
    .struct_size = sizeof portable,
    .entry = entry_of,
    .request_size = request_size,
    .write_request = write_request,
    .read_response = read_response,
    .answer = answer,
};
const errand_job_type rig_job_type = {
    .struct_size = sizeof rig_job_type,
    .name = "simulated",
    .run = run_here,
    .drop = drop,
    .held_portable = &portable,
};

void
rig_await_started(rig *self, uint64_t started)
{
    struct timespec pause = {0, 200000};

    while (rig_snapshot(self).started < started)
        nanosleep(&pause, NULL);
    rig_await_ready(self, 1);
}
int
rig_setup(void **state)
{
    rig *self = calloc(1, sizeof *self);

    assert_non_null(self);
    self->policy.struct_size = sizeof self->policy;
    self->config.struct_size = sizeof self->config;
    self->config.workers_max = 1;
    self->runtime_config.struct_size = sizeof self->runtime_config;
    self->bytes = errand_testing_live_bytes();
    self->descriptors = test_count_descriptors();
    rig_symbol = "first";
    *state = self;
    return 0;
}

void
rig_begin(rig *self)
{
    errand__launcher launcher = sim_launcher(&self->sim);
    errand_status status;
    static const errand_entry first = {"/sim.so", "first", NULL};

    self->config.policy = &self->policy;
    if (self->worker_path == NULL) {
        self->policy.entries = &first;
        self->policy.entry_count = 1;
    }
    self->config.worker_path = self->worker_path;
    if (self->worker_path != NULL)
        status = errand_sandbox_create(&self->config, &self->executor, self->text,
                                       sizeof self->text);
    else
        status = errand__sandbox_make(&self->config, &launcher, &self->executor,
                                      self->text, sizeof self->text);
    if (status != ERRAND_OK)
        fail_msg("%s: %s", errand_status_name(status), self->text);
    assert_int_equal(errand_runtime_create(&self->runtime_config, &self->runtime),
                     ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, self->executor, 0, &self->lease),
                     ERRAND_OK);
}

void
rig_end(rig *self)
{
    if (self->runtime != NULL)
        assert_int_equal(errand_runtime_shutdown(
                             &self->runtime, errand_deadline_in(UINT64_C(10000000000)),
                             ERRAND_SHUTDOWN_QUIET, NULL),
                         ERRAND_OK);
    errand_executor_abandon(&self->executor);
}

static bool
all_ended(rig *self)
{
    return atomic_load_explicit(&self->sim.living, memory_order_relaxed) == 0 &&
           errand_testing_live_bytes() == self->bytes &&
           test_count_descriptors() == self->descriptors;
}

int
rig_teardown(void **state)
{
    rig *self = *state;
    const struct timespec pause = {0, 100000};

    atomic_store_explicit(&self->sim.deaf, false, memory_order_release);
    rig_end(self);
    /* Where a thread of the pool let go last, it ends by itself. */
    for (int i = 0; i < 50000 && !all_ended(self); i++)
        nanosleep(&pause, NULL);
    assert_int_equal(atomic_load_explicit(&self->sim.living, memory_order_relaxed), 0);
    assert_int_equal(test_count_descriptors(), self->descriptors);
    assert_int_equal(errand_testing_live_bytes(), self->bytes);
    free(self);
    return 0;
}

errand_spec
rig_spec(rig *self, sim_act act, uint64_t number, const void *bytes, size_t size)
{
    rig_job *job = calloc(1, sizeof *job + size);
    errand_spec spec = ERRAND_SPEC_INIT;

    assert_non_null(job);
    job->owner = self;
    job->entry = (errand_entry){"/sim.so", rig_symbol, NULL};
    job->size = size;
    job->head = (sim_request){.act = (uint32_t)act, .number = number};
    if (size != 0)
        memcpy(job->bytes, bytes, size);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &rig_job_type;
    spec.state = job;
    return spec;
}

void
rig_make_unreadable(const errand_spec *spec)
{
    ((rig_job *)spec->state)->head.reserved = 1;
}

void
rig_make_taking(const errand_spec *spec)
{
    ((rig_job *)spec->state)->head.reserved = 2;
}

errand_spec
rig_plugin_spec(rig *self, const char *library, const char *symbol, const void *bytes,
                size_t size)
{
    errand_spec spec = rig_spec(self, SIM_ECHO, 0, bytes, size);
    rig_job *job = spec.state;

    job->plugin = true;
    job->entry.library = library;
    job->entry.symbol = symbol;
    return spec;
}

errand_identity
rig_start_spec(rig *self, uintptr_t wait, const errand_spec *spec)
{
    errand_identity identity;

    assert_int_equal(errand_start(self->lease, spec, (void *)wait, &identity), ERRAND_OK);
    return identity;
}

errand_identity
rig_start(rig *self, uintptr_t wait, sim_act act, uint64_t number)
{
    errand_spec spec = rig_spec(self, act, number, NULL, 0);

    return rig_start_spec(self, wait, &spec);
}

static void
hear(void *arg, errand_completion *completion)
{
    rig *self = arg;
    rig_news *news = &self->news[self->count++ % RIG_NEWS];

    if (completion->payload.data != NULL && completion->payload.size >= 32)
        memcpy(self->first, (char *)completion->payload.data + 16, 16);
    *news = (rig_news){
        .wait = (uintptr_t)completion->wait,
        .outcome = completion->outcome,
        .code = completion->code,
        .job_code = completion->job_code,
        .sys_errno = completion->sys_errno,
        .signal_number = completion->signal_number,
        .submit_ns = completion->t_submit_ns,
        .start_ns = completion->t_start_ns,
        .end_ns = completion->t_end_ns,
    };
    snprintf(news->message, sizeof news->message, "%s", completion->message);
    snprintf(news->system_call, sizeof news->system_call, "%s",
             completion->system_call == NULL ? "" : completion->system_call);
    if (completion->payload.data != NULL) {
        news->sum = ((uint64_t *)completion->payload.data)[0];
        news->size = (size_t)((uint64_t *)completion->payload.data)[1];
    }
    news->more_status = errand_sandbox_outcome_read(completion, &news->more);
}

void
rig_drain(rig *self)
{
    size_t count;

    assert_int_equal(errand_drain(self->runtime, SIZE_MAX, hear, self, &count),
                     ERRAND_OK);
}

void
rig_await(rig *self, size_t count)
{
    while (self->count < count) {
        rig_drain(self);
        if (self->count < count)
            assert_int_equal(errand_park(self->runtime, UINT64_MAX), ERRAND_OK);
    }
}

const rig_news *
rig_run(rig *self, sim_act act, uint64_t number)
{
    rig_start(self, self->count, act, number);
    rig_await(self, self->count + 1);
    return &self->news[(self->count - 1) % RIG_NEWS];
}

errand_sandbox_snapshot
rig_snapshot(rig *self)
{
    errand_sandbox_snapshot snapshot = {.struct_size = sizeof snapshot};

    assert_int_equal(errand_sandbox_snapshot_read(self->executor, &snapshot), ERRAND_OK);
    return snapshot;
}

void
rig_await_ready(rig *self, uint32_t count)
{
    struct timespec pause = {0, 200000};

    while (rig_snapshot(self).ready < count)
        nanosleep(&pause, NULL);
}
