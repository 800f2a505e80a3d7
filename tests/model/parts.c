/* SPDX-License-Identifier: MIT */
/* Design notes: every part of an operation that the library holds is this play_op itself, so
 * whatever it drops, decodes or resumes is counted where it belongs.  Callbacks tell the model
 * first, then make calls of their own, then do as planned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "play.h"

static void
drop_payload(void *data, size_t size)
{
    play_op *op = data;

    if (size != sizeof *op)
        play_fail(op->play, "a payload of %zu bytes is dropped", size);
    op->payload_drops++;
}

static const errand_payload_type typed = { "typed", drop_payload };
static const errand_payload_type another = { "another", NULL };

/* ---- bodies -------------------------------------------------------------------------------- */
static void
run_deferred(void *arg)
{
    ((play_op *)arg)->deferred--;
}

/* What follows another is named by the library: the model says when, else it is named when it
 * is seen. */
static void
know_name(play_op *op)
{
    if (op->name >= 0)
        return;
    if (op->play->judged)
        play_fail(op->play, "op %d is known before it is named", op->index);
    op->name = op->play->names;
    play_new_name(op->play, NULL, op->index);
}

static int32_t
begin(play_op *op, errand_job *job)
{
    play *p = op->play;
    errand_identity identity = errand_job_identity(job);

    op->bodies++;
    p->result->bodies++;
    play_event(p, "body", op->index, 0);
    know_name(op);
    if (p->name[op->name].identity.operation == 0)
        p->name[op->name].identity = identity;
    if (memcmp(&identity, &p->name[op->name].identity, sizeof identity) != 0)
        play_fail(p, "op %d runs under another identity", op->index);
    if (op->bodies != 1 || strcmp(errand_job_name(job), "played") != 0 ||
        errand_job_trace_id(job) != (uint64_t)op->index)
        play_fail(p, "op %d is entered %d times, as %s", op->index, op->bodies,
                  errand_job_name(job));
    PLAY_MODEL(p, model_began(&p->model, op->index));
    return 0;
}

static void
follow(play_op *op, errand_job *job)
{
    play *p = op->play;

    if (!play_has_room(p, 1))
        return;
    play_op *child = play_new_op(p, op->runtime, 1, (uint8_t)(op->index * 37), 0);
    child->parent = op->index;
    errand_status status = errand_job_follow(job, &child->spec, (char *)child + 1);
    play_said(p, "follow", status, (uint64_t)child->index);
    if (status != ERRAND_OK)
        return;
    PLAY_MODEL(p, model_followed(&p->model, op->index, &child->spec));
    child->owned = true;
    p->ops++;
}

static void
do_extra(play_op *op, errand_job *job)
{
    play *p = op->play;
    errand_cancel_answer answer = 0;
    errand_status status;

    switch (op->plan.extra) {
    case PLAY_EXTRA_CANCEL:
        status = errand_cancel(p->runtime[op->runtime], &p->name[op->name].identity,
                               ERRAND_REASON_EXPLICIT, &answer);
        PLAY_MODEL(p, model_cancel(&p->model, op->runtime, op->name, ERRAND_REASON_EXPLICIT, status,
                                   answer));
        play_said(p, "cancel myself", status, answer);
        if (!errand_job_cancelled(job))
            play_fail(p, "op %d does not see its cancel", op->index);
        break;
    case PLAY_EXTRA_FOLLOW:
        follow(op, job);
        break;
    case PLAY_EXTRA_DEFER:
        if (errand_job_defer(job, run_deferred, op) == ERRAND_OK)
            op->deferred++;
        break;
    case PLAY_EXTRA_POST:
        status = errand_post_cancel(p->inbox[op->runtime], &p->name[op->name].identity);
        PLAY_MODEL(p, model_post(&p->model, op->runtime, op->name, -1, status));
        play_said(p, "post my cancel", status, 0);
        break;
    default:
        break;
    }
}

static int32_t
end(play_op *op, errand_job *job, errand_payload *out_payload)
{
    play *p = op->play;
    int32_t answer = 0;

    switch (op->plan.end) {
    case PLAY_END_TYPED:
        *out_payload = (errand_payload){ &typed, op, sizeof *op };
        op->payloads++;
        break;
    case PLAY_END_BLOCK:
        if (errand_job_alloc(job, 24) == NULL || errand_payload_alloc(job, 40, out_payload) == NULL)
            play_fail(p, "no memory");
        break;
    case PLAY_END_CODE:
        answer = 7;
        break;
    case PLAY_END_DETAILS:
        errand_job_fail(job, 2, 0, "open", "no file %d", op->index);
        answer = 8;
        break;
    case PLAY_END_FORGED:
        answer = -1 - op->index;
        break;
    case PLAY_END_WORK:
        if (op->spec.work_max != 0 &&
            (errand_job_work(job, op->spec.work_max) != ERRAND_OK ||
             errand_job_work(job, 1) != ERRAND_EBOUND))
            play_fail(p, "op %d is beyond its bound", op->index);
        if (op->spec.work_max != 0)
            PLAY_MODEL(p, model_beyond(&p->model, op->index));
        break;
    default:
        break;
    }
    play_event(p, "ends", op->index, (uint64_t)answer);
    PLAY_MODEL(p, model_ended(&p->model, op->index, op->plan.end == PLAY_END_PANIC ? INT32_MIN : answer));
    if (op->plan.end == PLAY_END_PANIC)
        errand_panic("op %d", op->index);
    return answer;
}

static void
inside(play_op *op, errand_job *job)
{
    play *p = op->play;
    bool outer = p->in_body;

    p->in_body = true;
    do_extra(op, job);
    play_nested(p, op->plan.nested);
    p->in_body = outer;
}

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    play_op *op = state;

    op->play->entered++;
    begin(op, job);
    inside(op, job);
    return end(op, job, out_payload);
}

static int32_t
start(errand_job *job, void *state, errand_payload *out_payload)
{
    play_op *op = state;

    (void)out_payload;
    begin(op, job);
    if (op->plan.extra == PLAY_EXTRA_START)
        return 0;
    op->play->entered++; /* it will not be polled */
    PLAY_MODEL(op->play, model_ended(&op->play->model, op->index, INT32_MIN));
    errand_panic("op %d at its start", op->index);
}

static int32_t
poll(errand_job *job, void *state, errand_payload *out_payload)
{
    play_op *op = state;
    play *p = op->play;
    bool first = op->waker == NULL;

    p->entered++;
    if (op->bodies == 0)
        begin(op, job);
    PLAY_MODEL(p, model_polled(&p->model, op->index));
    play_event(p, "poll", op->index, 0);
    if (first) {
        op->waker = errand_job_waker(job);
        inside(op, job);
    }
    if (op->plan.polls == 0 || errand_job_cancelled(job))
        return end(op, job, out_payload);
    op->plan.polls--;
    p->model.op[op->index].pending = true;
    if (op->plan.extra == PLAY_EXTRA_WAKE || !p->judged) { /* inline order waits for its end */
        p->model.op[op->index].woken = true;
        errand_waker_wake(op->waker);
    }
    return ERRAND_PENDING;
}

/* ---- the owner's parts ----------------------------------------------------------------------- */
static void
drop_state(void *state)
{
    ((play_op *)state)->state_drops++;
}

static void
drop_value(void *value)
{
    ((play_op *)value)->value_ends++;
}

static void
decode(void *own_data, errand_completion *completion, errand_verdict *out_verdict)
{
    play_op *op = own_data;

    (void)completion;
    op->decoder_ends++;
    op->decodes++;
    op->values++;
    play_event(op->play, "decode", op->index, 0);
    *out_verdict =
        (errand_verdict){ .status = ERRAND_OK, .value = op, .drop = drop_value };
}

static void
drop_decoder(void *data)
{
    ((play_op *)data)->decoder_ends++;
}

static errand_hook_answer
answer_hook(play_op *op, bool reap)
{
    errand_hook_answer answer = op->plan.take && !reap ? ERRAND_HOOK_REAPED : ERRAND_HOOK_PENDING;

    if (reap ? op->reaps++ > 0 : op->hook_cancels++ > 0)
        answer = ERRAND_HOOK_REAPED;
    play_event(op->play, reap ? "reap" : "hook", op->index, answer);
    PLAY_MODEL(op->play, model_hooked(&op->play->model, op->index, reap, answer));
    return answer;
}

static errand_hook_answer
hook_cancel(void *data, char *text, size_t size)
{
    (void)text, (void)size;
    return answer_hook(data, false);
}

static errand_hook_answer
hook_reap(void *data, char *text, size_t size)
{
    (void)text, (void)size;
    return answer_hook(data, true);
}

static void
drop_hook(void *data)
{
    ((play_op *)data)->hook_drops++;
}

static const errand_job_type job_types[2] = {
    { sizeof(errand_job_type), "played", run, NULL, poll, drop_state },
    { sizeof(errand_job_type), "played", run, start, poll, drop_state },
};
static const errand_job_type empty_type = { .struct_size = sizeof(errand_job_type), .name = "empty" };
static const errand_decoder_type decoder_type = { sizeof(errand_decoder_type), decode, drop_decoder, NULL };
static const errand_hook_type hook_type = { sizeof(errand_hook_type), hook_cancel, hook_reap, drop_hook, NULL };

/* ---- news ------------------------------------------------------------------------------------ */
static void
look_at_payload(play_op *op, errand_completion *completion)
{
    play *p = op->play;
    void *data = NULL;
    size_t size = 0;

    if (op->payloads != 1 || completion->outcome != ERRAND_COMPLETED)
        return;
    if (errand_completion_read(completion, &another, &data, &size) != ERRAND_EDECODE ||
        strstr(completion->message, "another") == NULL)
        play_fail(p, "op %d is read as another type", op->index);
    if (completion->payload.held_type == NULL)
        return; /* the decoder's, or destroyed with its entry */
    if (errand_completion_read(completion, &typed, &data, &size) != ERRAND_OK || data != op)
        play_fail(p, "op %d cannot be read", op->index);
    if (op->plan.take) {
        errand_payload payload = errand_completion_take(completion);
        errand_payload_drop(&payload);
    }
}

void
play_heard(void *arg, errand_completion *completion)
{
    play *p = arg;
    uintptr_t wait = (uintptr_t)completion->wait;
    int index = wait & 1 ? ((play_op *)(wait - 1))->index : ((play_name *)wait)->op;
    play_op *op = &p->op[index];

    p->result->completions++;
    p->turn_heard++;
    play_event(p, "completion", index, (uint64_t)completion->outcome << 40 |
               (uint64_t)completion->code << 32 | completion->flags);
    know_name(op);
    if (++op->completions != 1)
        play_fail(p, "op %d completes %d times", index, op->completions);
    if (p->name[op->name].identity.operation == 0)
        p->name[op->name].identity = completion->identity;
    if (memcmp(&p->name[op->name].identity, &completion->identity, sizeof completion->identity) != 0 ||
        strcmp(completion->operation, "played") != 0 || completion->trace_id != (uint64_t)index ||
        (completion->outcome != ERRAND_COMPLETED && completion->message == NULL))
        play_fail(p, "the completion of op %d says otherwise", index);
    if (completion->t_submit_ns > completion->t_start_ns || completion->t_start_ns > completion->t_end_ns)
        play_fail(p, "op %d has times that go back", index);
    if (p->trace)
        fprintf(stderr, "times %llu %llu %llu now %llu\n", (unsigned long long)completion->t_submit_ns, (unsigned long long)completion->t_start_ns, (unsigned long long)completion->t_end_ns, (unsigned long long)errand_runtime_now(p->runtime[op->runtime]));
    play_meanwhile(p, op->runtime);
    PLAY_MODEL(p, model_heard(&p->model, index, completion));
    if (op->state_drops + op->hook_drops != 0 && op->hook_cancels + op->reaps == 0)
        play_fail(p, "op %d is dropped before its completion is heard", index);
    look_at_payload(op, completion);
    play_nested(p, op->plan.nested);
    if (op->plan.leave && p->at_home && p->depth == 0 && !p->closing) {
        op->left = true;
        p->leaving = 1;
        longjmp(p->home, 1);
    }
}

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    play_op *op = own_data;
    play *p = op->play;

    op->continuation_ends++;
    play_event(p, "resume", op->index, news->reason);
    play_meanwhile(p, op->runtime);
    PLAY_MODEL(p, model_resumed(&p->model, op->index, news->reason));
    if (runtime != p->runtime[op->runtime])
        play_fail(p, "op %d is resumed by another runtime", op->index);
    if (news->reason == ERRAND_REASON_NONE && op->spec.held_decoder != NULL &&
        news->completion->outcome != ERRAND_CANCELLED) {
        if (news->verdict.value != op)
            play_fail(p, "op %d is resumed without its verdict", op->index);
        op->value_ends++;
    }
    if (!model_posted(&p->model, op->runtime))
        play_nested(p, op->plan.nested);
}

static void
drop_continuation(void *data)
{
    ((play_op *)data)->continuation_ends++;
}

errand_continuation
play_continuation(play_op *op)
{
    return (errand_continuation){ resume, drop_continuation, NULL, op };
}

void
play_ran_command(errand_runtime *runtime, void *arg)
{
    play_node *node = arg;
    play *p = node->play;

    if (runtime != p->runtime[node->runtime])
        play_fail(p, "a command runs elsewhere");
    play_event(p, "command", node->index, 0);
    p->turn_commands++;
    play_meanwhile(p, node->runtime);
    PLAY_MODEL(p, model_command(&p->model, node->runtime, node->index));
    play_nested(p, node->index & 1);
}

void
play_dropped_command(void *arg)
{
    play_node *node = arg;

    play_event(node->play, "command dropped", node->index, 0);
    if (!node->play->closing)
        play_fail(node->play, "command %d is dropped", node->index);
}

/* ---- new ones ---------------------------------------------------------------------------------- */
play_name *
play_new_name(play *p, const errand_identity *identity, int op)
{
    play_name *name = &p->name[p->names];

    *name = (play_name){ .play = p, .op = op };
    if (identity != NULL)
        name->identity = *identity;
    p->names++;
    return name;
}

/* b: class 2 bits, end 3, priority 2, deadline 1; c: nested or polls 2, hook 1, decoder 1,
 * take 1, extra 3.  Kind 0 and what a spec may not say come with rare values. */
play_op *
play_new_op(play *p, int runtime, uint8_t kind, uint8_t b, uint8_t c)
{
    static const errand_resource_class classes[4] = { 1, 2, 3, 1 };
    play_op *op = &p->op[p->ops];
    errand_spec *spec = &op->spec;

    *op = (play_op){ .play = p, .index = p->ops, .runtime = runtime, .name = -1, .parent = -1 };
    op->plan = (play_plan){ .end = b >> 2 & 7, .nested = c & 3, .polls = c & 3, .extra = c >> 5,
                            .take = c >> 4 & 1, .leave = c == 0x13 || c == 0x2b };
    *spec = (errand_spec)ERRAND_SPEC_INIT;
    spec->kind = 1 + kind % 3;
    spec->resource_class = classes[b & 3];
    spec->priority = (b >> 5 & 3) % 3;
    spec->held_job = &job_types[op->plan.extra == PLAY_EXTRA_START || op->plan.extra == PLAY_EXTRA_START_PANIC];
    spec->state = op;
    spec->trace_id = (uint64_t)op->index;
    spec->held_decoder = c >> 3 & 1 ? &decoder_type : NULL;
    spec->decoder_data = op;
    if (spec->resource_class == ERRAND_QUARANTINED_BLOCKING && op->plan.end == PLAY_END_WORK) {
        spec->work_max = 9;
        spec->held_work_unit = "rows";
    } else if (spec->resource_class == ERRAND_QUARANTINED_BLOCKING)
        spec->quarantine_ns = UINT64_C(1) << 60;
    else if (c >> 2 & 1) {
        spec->held_hook = &hook_type;
        spec->hook_data = op;
    }
    if (b >> 7 && spec->resource_class != ERRAND_INTERRUPTIBLE_ASYNC)
        spec->deadline_ns = 1 + (c & 15);
    switch (kind >= 240 ? kind : 0) { /* specs that nothing may accept */
    case 240: spec->kind = 0; break;
    case 241: spec->resource_class = 7; break;
    case 242: spec->quarantine_ns = spec->work_max = 0; spec->resource_class = 2; break;
    case 243: spec->resource_class = 2; spec->quarantine_ns = 1; spec->held_hook = &hook_type; break;
    case 244: spec->flags = 1; break;
    case 245: spec->held_job = &empty_type; break;
    case 246: spec->priority = 3; break;
    case 247: spec->held_job = NULL; break;
    default: break;
    }
    return op;
}
