/* SPDX-License-Identifier: MIT */
/* Design notes: see counted.h.  order is an atomic counter, because bodies may run on workers;
 * all else is handed over by the library, as it promises. */
#include "counted.h"

#include <stdatomic.h>
#include <stdio.h>
#include "errand/async.h"

/* calls: how many calls of all parts there were.
 * Writers, Readers: any thread of a test.  Order: relaxed.  Pairs: none.  Why: a number. */
static atomic_uint calls;

static void
arrive(counted *self, counted_place place)
{
    self->count[place]++;
    self->order[place] = 1 + atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    self->thread[place] = pthread_self();
    if (self->on != NULL)
        self->on(self, place);
}

static void
drop_payload(void *data, size_t size)
{
    (void)size;
    arrive(data, AT_PAYLOAD_DROP);
}

static const errand_payload_type payload_type = {"counted payload", drop_payload};

static void
deferred(void *arg)
{
    arrive(arg, AT_DEFER);
}

/* AT_BODY is its first poll. */
static int32_t
poll(errand_job *job, void *state, errand_payload *out_payload)
{
    counted *self = state;

    if (self->waker == NULL) {
        self->waker = errand_job_waker(job);
        self->running = job;
        arrive(self, AT_BODY);
        self->running = NULL;
        if (!self->no_payload)
            *out_payload = (errand_payload){&payload_type, self, sizeof *self};
    }
    if (self->ready || (!self->deaf && errand_job_cancelled(job)))
        return self->answer;
    return ERRAND_PENDING;
}

void
counted_ready(counted *self)
{
    self->ready = true;
    errand_waker_wake(self->waker);
}

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    counted *self = state;

    self->running = job;
    if (!self->no_payload)
        *out_payload = (errand_payload){&payload_type, self, sizeof *self};
    if (self->defers && errand_job_defer(job, deferred, self) != ERRAND_OK)
        return 77;
    arrive(self, AT_BODY);
    self->running = NULL;
    if (self->panics)
        errand_panic("counted panic");
    return self->answer;
}

static void
drop_state(void *state)
{
    errand_waker_abandon(&((counted *)state)->waker);
    arrive(state, AT_STATE_DROP);
}

static const errand_job_type job_type = {.struct_size = sizeof job_type,
                                         .name = "counted job",
                                         .run = run,
                                         .drop = drop_state};

static const errand_job_type async_type = {.struct_size = sizeof async_type,
                                           .name = "counted async job",
                                           .poll = poll,
                                           .drop = drop_state};

#define TRACE(name, index)                                                               \
    static bool name(void *data, errand_visitor *visitor)                                \
    {                                                                                    \
        return visitor->visit(visitor, &((counted *)data)->held[index]);                 \
    }
TRACE(trace_decoder, HELD_BY_DECODER)
TRACE(trace_hook, HELD_BY_HOOK)
TRACE(trace_continuation, HELD_BY_CONTINUATION)

static bool
trace_value(void **value, errand_visitor *visitor)
{
    return visitor->visit(visitor, &((counted *)*value)->held[HELD_BY_VALUE]);
}

static void
drop_value(void *value)
{
    arrive(value, AT_VALUE_DROP);
}

static void
decode(void *own_data, errand_completion *completion, errand_verdict *out_verdict)
{
    counted *self = own_data;

    (void)completion;
    *out_verdict = (errand_verdict){
        .status = self->verdict, .value = self, .drop = drop_value, .trace = trace_value};
    arrive(self, AT_DECODE);
}

static void
drop_decoder(void *data)
{
    arrive(data, AT_DECODER_DROP);
}

static const errand_decoder_type decoder_type = {.struct_size = sizeof decoder_type,
                                                 .decode = decode,
                                                 .drop = drop_decoder,
                                                 .trace = trace_decoder};

static errand_hook_answer
cancel(void *data, char *text, size_t size)
{
    counted *self = data;

    (void)text;
    (void)size;
    arrive(self, AT_CANCEL);
    return self->cancel_answer != 0 ? self->cancel_answer : ERRAND_HOOK_REAPED;
}

static errand_hook_answer
reap(void *data, char *text, size_t size)
{
    counted *self = data;

    if (self->reap_answer == ERRAND_HOOK_ERROR)
        snprintf(text, size, "counted error");
    arrive(self, AT_REAP);
    return self->reap_answer != 0 ? self->reap_answer : ERRAND_HOOK_REAPED;
}

static void
drop_hook(void *data)
{
    arrive(data, AT_HOOK_DROP);
}

static const errand_hook_type hook_type = {.struct_size = sizeof hook_type,
                                           .cancel = cancel,
                                           .reap = reap,
                                           .drop = drop_hook,
                                           .trace = trace_hook};

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    counted *self = own_data;
    errand_verdict verdict = news->verdict;

    (void)runtime;
    self->reason = news->reason;
    self->completed = news->completion != NULL;
    if (self->completed) {
        self->outcome = news->completion->outcome;
        self->flags = news->completion->flags;
        self->told = verdict.status;
    }
    arrive(self, AT_RESUME);
    if (verdict.drop != NULL)
        verdict.drop(verdict.value);
}

static void
drop_continuation(void *data)
{
    arrive(data, AT_CONTINUATION_DROP);
}

errand_spec
counted_spec(test_world *world, counted *self)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    self->world = world;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &job_type;
    if (self->lingers) {
        spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
        spec.held_job = &async_type;
    }
    spec.state = self;
    spec.held_decoder = &decoder_type;
    spec.decoder_data = self;
    if (!self->no_hook) {
        spec.held_hook = &hook_type;
        spec.hook_data = self;
    }
    return spec;
}

errand_submission
counted_submission_of(test_world *world, counted *self, const errand_spec *spec)
{
    errand_prepared prepared;
    errand_binding binding;
    errand_submission submission;

    assert_int_equal(errand_prepare(world->runtime, spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, spec->kind, self, &self->identity),
                     ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &self->identity, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_split(&binding, &self->wait, &submission), ERRAND_OK);
    return submission;
}

errand_submission
counted_submission(test_world *world, counted *self)
{
    errand_spec spec = counted_spec(world, self);

    return counted_submission_of(world, self, &spec);
}

void
counted_await(counted *self)
{
    errand_continuation continuation = {.resume = resume,
                                        .drop = drop_continuation,
                                        .trace = trace_continuation,
                                        .data = self};

    assert_int_equal(errand_await(&self->wait, &continuation), ERRAND_OK);
}

void
counted_submit(test_world *world, counted *self)
{
    errand_submission submission = counted_submission(world, self);

    if (self->no_continuation)
        errand_wait_abandon(&self->wait);
    else
        counted_await(self);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    world_check(world);
}

void
counted_check_ended(const counted *self)
{
    const unsigned *count = self->count;

    assert_int_equal(count[AT_STATE_DROP], 1);
    assert_int_equal(count[AT_DECODE] + count[AT_DECODER_DROP], 1);
    assert_int_equal(count[AT_HOOK_DROP], self->no_hook ? 0 : 1);
    assert_int_equal(count[AT_RESUME] + count[AT_CONTINUATION_DROP],
                     self->no_continuation ? 0 : 1);
    assert_int_equal(count[AT_VALUE_DROP], count[AT_DECODE]);
    assert_int_equal(count[AT_PAYLOAD_DROP], self->no_payload ? 0 : count[AT_BODY]);
    assert_true(count[AT_BODY] <= 1);
}

errand_cancel_answer
counted_cancel(counted *self)
{
    errand_cancel_answer answer;

    assert_int_equal(errand_cancel(self->world->runtime, &self->identity,
                                   ERRAND_REASON_EXPLICIT, &answer),
                     ERRAND_OK);
    world_check(self->world);
    return answer;
}

void
counted_drive(test_world *world)
{
    errand_turn turn;

    do
        assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
    while (turn.kind == ERRAND_TURN_PROGRESS);
    world_check(world);
}

void
counted_check_here(const counted *self, counted_place place)
{
    assert_true(self->count[place] > 0);
    assert_true(pthread_equal(self->thread[place], pthread_self()));
}
