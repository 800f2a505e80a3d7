/* SPDX-License-Identifier: MIT */
/* Design notes: every part of an operation that the library holds is this play_op itself, so
 * whatever it drops, decodes or resumes is counted where it belongs.  Callbacks tell the model
 * first, then make calls of their own, then do as planned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "play.h"

static void
drop_forged(void *data, size_t size)
{
    play *p = data;

    p->forged -= size == 1;
}

static const errand_payload_type forged_type = {"forged", drop_forged};
errand_payload
play_payload(play *p)
{
    p->forged++;
    return (errand_payload){&forged_type, p, 1};
}

/* What follows another is named by the library: the model says when, else it is named when it
 * is seen. */
void
play_know_name(play_op *op)
{
    if (op->name >= 0)
        return;
    if (op->play->judged)
        play_fail(op->play, "op %d is known before it is named", op->index);
    op->name = op->play->names;
    play_new_name(op->play, NULL, op->index);
}

/* Told by nobody: what is left of an operation whose runtime has ended; but if its body came back
 * late, that tells it. */
void
play_burst(play_op *op, unsigned part)
{
    play *p = op->play;
    const model_op *o = &p->model.op[op->index];
    bool late = o->held || (o->parent >= 0 && o->name < 0 && p->model.op[o->parent].held);

    if (op->plan.burst != part)
        return;
    p->bursts += !p->judged || o->runtime != MODEL_RUNTIMES ||
                 part == PLAY_BURST_DEFERRED || (late && !op->outlives) ||
                 (late && part == PLAY_BURST_PAYLOAD);
    errand_panic("part %u of op %d", part, op->index);
}

/* ---- the owner's parts ----------------------------------------------------------------------- */
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
    *out_verdict = (errand_verdict){.status = ERRAND_OK, .value = op, .drop = drop_value};
}

static void
drop_decoder(void *data)
{
    ((play_op *)data)->decoder_ends++;
    play_burst(data, PLAY_BURST_DECODER);
}

static errand_hook_answer
answer_hook(play_op *op, bool reap)
{
    errand_hook_answer answer =
        op->plan.take && !reap ? ERRAND_HOOK_REAPED : ERRAND_HOOK_PENDING;

    if (reap ? op->reaps++ > 0 : op->hook_cancels++ > 0)
        answer = ERRAND_HOOK_REAPED;
    play_event(op->play, reap ? "reap" : "hook", op->index, answer);
    if (op->plan.burst == PLAY_BURST_HOOK && !reap && op->hook_cancels == 1)
        answer = ERRAND_HOOK_ERROR;
    PLAY_MODEL(op->play, model_hooked(&op->play->model, op->index, reap, answer));
    if (answer == ERRAND_HOOK_ERROR)
        errand_panic("the hook of op %d", op->index);
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

static bool
show(void *data, errand_visitor *visitor)
{
    play_op *op = data;

    op->slot = op;
    return visitor->visit(visitor, &op->slot);
}

static const errand_decoder_type decoder_type = {sizeof(errand_decoder_type), decode,
                                                 drop_decoder, show};
static const errand_hook_type hook_type = {sizeof(errand_hook_type), hook_cancel,
                                           hook_reap, drop_hook, show};
static const errand_decoder_type no_decoder_type = {.struct_size =
                                                        sizeof no_decoder_type};
static const errand_hook_type no_hook_type = {.struct_size = sizeof no_hook_type};

/* ---- news ------------------------------------------------------------------------------------ */
static void
look_at_payload(play_op *op, errand_completion *completion)
{
    play *p = op->play;
    void *data = NULL;
    size_t size = 0;

    if (op->payloads != 1 || completion->outcome != ERRAND_COMPLETED)
        return;
    if (errand_completion_read(completion, &play_another, &data, &size) !=
            ERRAND_EDECODE ||
        strstr(completion->message, "another") == NULL)
        play_fail(p, "op %d is read as another type", op->index);
    if (completion->payload.held_type == NULL)
        return; /* the decoder's, or destroyed with its entry */
    if (errand_completion_read(completion, &play_typed, &data, &size) != ERRAND_OK ||
        data != op)
        play_fail(p, "op %d cannot be read", op->index);
    if (op->plan.take && op->plan.burst != PLAY_BURST_PAYLOAD) {
        errand_payload payload = errand_completion_take(completion);
        errand_payload_drop(&payload);
    }
}

void
play_heard(void *arg, errand_completion *completion)
{
    play *p = arg;
    uintptr_t wait = (uintptr_t)completion->wait;

    for (int i = p->names - 1; wait == 0 && i >= 0;
         i--) /* a task's has no wait of the host */
        if (p->name[i].identity.operation == completion->identity.operation &&
            p->name[i].identity.runtime == completion->identity.runtime)
            wait = (uintptr_t)&p->name[i];
    if (wait == 0) {
        play_fail(p, "a completion of nobody");
        return;
    }
    int index = wait & 1 ? ((play_op *)(wait - 1))->index : ((play_name *)wait)->op;
    play_op *op = &p->op[index];

    p->result->completions++;
    play_event(p, "completion", index,
               (uint64_t)completion->outcome << 40 | (uint64_t)completion->code << 32 |
                   completion->flags);
    play_know_name(op);
    if (++op->completions != 1)
        play_fail(p, "op %d completes %d times", index, op->completions);
    if (p->name[op->name].identity.operation == 0)
        p->name[op->name].identity = completion->identity;
    if (memcmp(&p->name[op->name].identity, &completion->identity,
               sizeof completion->identity) != 0 ||
        strcmp(completion->operation, "played") != 0 ||
        completion->trace_id != (uint64_t)index ||
        (completion->outcome == ERRAND_COMPLETED ? completion->message[0] != '\0'
                                                 : completion->message == NULL))
        play_fail(p, "the completion of op %d says otherwise", index);
    if (completion->t_submit_ns > completion->t_start_ns ||
        completion->t_start_ns > completion->t_end_ns)
        play_fail(p, "op %d has times that go back", index);
    play_meanwhile(p, op->runtime);
    PLAY_MODEL(p, model_heard(&p->model, index, completion));
    if (op->state_drops + op->hook_drops != 0 && !p->model.op[index].back &&
        op->hook_cancels + op->reaps == 0)
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
    return (errand_continuation){resume, drop_continuation, show, op};
}

void
play_ran_command(errand_runtime *runtime, void *arg)
{
    play_node *node = arg;
    play *p = node->play;

    if (runtime != p->runtime[node->runtime])
        play_fail(p, "a command runs elsewhere");
    play_event(p, "command", node->index, 0);
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

    *name = (play_name){.play = p, .op = op};
    if (identity != NULL)
        name->identity = *identity;
    p->names++;
    return name;
}

/* Specs that nothing may accept. */
static void
spoil(errand_spec *spec, unsigned kind)
{
    switch (kind) {
    case 240:
        spec->kind = 0;
        break;
    case 241:
        spec->resource_class = 7;
        break;
    case 242:
        spec->quarantine_ns = spec->work_max = 0;
        spec->resource_class = 2;
        break;
    case 243:
        spec->resource_class = 2;
        spec->quarantine_ns = 1;
        spec->held_hook = &hook_type;
        break;
    case 244:
        spec->flags = 4;
        break;
    case 245:
        spec->held_job = &play_no_job;
        break;
    case 246:
        spec->priority = 3;
        break;
    case 247:
        spec->held_job = NULL;
        break;
    case 248:
        spec->struct_size--;
        break;
    case 249:
        spec->resource_class = 1;
        spec->quarantine_ns = 5;
        break;
    case 250:
        spec->resource_class = 2;
        spec->work_max = 5;
        spec->held_work_unit = NULL;
        break;
    case 251:
        spec->held_hook = &no_hook_type;
        break;
    case 252:
        spec->held_decoder = &no_decoder_type;
        break;
    default:
        break;
    }
}

/* b: class 2 bits, end 3, priority 2, deadline 1; c: nested or polls 2, hook 1, decoder 1,
 * take 1, extra 3.  Kind 0 and what a spec may not say come with rare values. */
play_op *
play_new_op(play *p, int runtime, uint8_t kind, uint8_t b, uint8_t c)
{
    static const errand_resource_class classes[4] = {1, 2, 3, 1};
    play_op *op = &p->op[p->ops];
    errand_spec *spec = &op->spec;

    *op = (play_op){
        .play = p, .index = p->ops, .runtime = runtime, .name = -1, .parent = -1};
    op->plan = (play_plan){.end = b >> 2 & 7,
                           .nested = c & 3,
                           .polls = c & 3,
                           .extra = c >> 5,
                           .burst = kind >> 4,
                           .take = c >> 4 & 1,
                           .leave = c == 0x13 || c == 0x2b};
    *spec = (errand_spec)ERRAND_SPEC_INIT;
    spec->kind = 1 + kind % 3;
    spec->resource_class = classes[b & 3];
    spec->priority = (b >> 5 & 3) % 3;
    spec->held_job =
        op->plan.extra == PLAY_EXTRA_START || op->plan.extra == PLAY_EXTRA_START_PANIC
            ? &play_job_with_start
            : &play_job;
    spec->state = op;
    spec->trace_id = (uint64_t)op->index;
    spec->held_decoder = c >> 3 & 1 ? &decoder_type : NULL;
    spec->decoder_data = op;
    if (spec->resource_class == ERRAND_QUARANTINED_BLOCKING &&
        op->plan.end == PLAY_END_WORK) {
        spec->work_max = 9;
        spec->held_work_unit = "rows";
    } else if (spec->resource_class == ERRAND_QUARANTINED_BLOCKING)
        spec->quarantine_ns =
            b >> 7 && !p->real_clock ? UINT64_C(1) + (c >> 2 & 7) : UINT64_C(1) << 60;
    else if (c >> 2 & 1) {
        spec->held_hook = &hook_type;
        spec->hook_data = op;
    }
    if (b >> 7 && !p->real_clock)
        spec->deadline_ns = 1 + (c & 15);
    if (!p->judged && c % 3 == 0) /* often the same two */
        spec->domain = b % 8 < 6 ? 1 + (b >> 3 & 1) : 3 + b % 40;
    spoil(spec, kind);
    return op;
}
