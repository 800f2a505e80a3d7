/* SPDX-License-Identifier: MIT */
/* Design notes: a body tells the model first that it runs, then makes calls of its own, then ends
 * as planned.  An async one is begun by its start, or by its first poll. */
#include <stdio.h>
#include <string.h>
#include "play.h"

static void
drop_payload(void *data, size_t size)
{
    play_op *op = data;

    if (size != sizeof *op)
        play_fail(op->play, "a payload of %zu bytes is dropped", size);
    op->payload_drops++;
    play_burst(op, PLAY_BURST_PAYLOAD);
}

const errand_payload_type play_typed = {"typed", drop_payload};
const errand_payload_type play_another = {"another", NULL};

static void
run_deferred(void *arg)
{
    ((play_op *)arg)->deferred--;
    play_burst(arg, PLAY_BURST_DEFERRED);
}

static void
count_entered(play *p)
{
    if (play_is_hand())
        p->hand.entered++;
    else
        p->entered++;
}

/* Jobs of one domain run one at a time. */
static void
check_domain(play *p, play_op *op)
{
    for (int i = 0; i < p->ops; i++) {
        const play_op *other = &p->op[i];
        if (other != op && other->runtime == op->runtime &&
            other->spec.domain == op->spec.domain && other->bodies > 0 &&
            !other->body_over)
            play_fail(p, "op %d runs beside %d of its domain", op->index, i);
    }
}

static int32_t
begin(play_op *op, errand_job *job)
{
    play *p = op->play;
    errand_identity identity = errand_job_identity(job);

    op->bodies++;
    if (op->spec.domain != 0)
        check_domain(p, op);
    (void)errand_job_epoch(job);
    p->result->bodies++;
    play_event(p, "body", op->index, 0);
    play_know_name(op);
    if (p->name[op->name].identity.operation == 0)
        p->name[op->name].identity = identity;
    if (memcmp(&identity, &p->name[op->name].identity, sizeof identity) != 0)
        play_fail(p, "op %d runs under another identity", op->index);
    if (op->bodies != 1 || strcmp(errand_job_name(job), "played") != 0 ||
        errand_job_trace_id(job) != (uint64_t)op->index)
        play_fail(p, "op %d is entered %d times, as %s", op->index, op->bodies,
                  errand_job_name(job));
    PLAY_MODEL(p, model_began(&p->model, op->index));
    play_stop_in_body(op);
    return 0;
}

static void
follow(play_op *op, errand_job *job)
{
    play *p = op->play;

    if (!play_has_room(p, 1))
        return;
    play_op *child = play_new_op(p, op->runtime, (uint8_t)(op->index * 83 + 1),
                                 (uint8_t)(op->index * 37), (uint8_t)(op->index * 29));
    child->parent = op->index;
    errand_status status = errand_job_follow(job, &child->spec, (char *)child + 1);
    PLAY_MODEL(p, model_followed(&p->model, op->index, &child->spec, status));
    play_said(p, "follow", status, (uint64_t)child->index);
    if (status != ERRAND_OK)
        return;
    child->owned = true;
    p->ops++;
}

static void
do_extra(play_op *op, errand_job *job)
{
    play *p = op->play;
    errand_cancel_answer answer = 0;
    errand_status status;
    bool closed = p->judged && p->model.op[op->index].runtime == MODEL_RUNTIMES;

    switch (op->plan.extra) {
    case PLAY_EXTRA_NONE:
        if (op->plan.take)
            play_slip_inside(op, job);
        break;
    case PLAY_EXTRA_CANCEL:
        if (play_is_hand()) {
            if (!closed &&
                errand_cancel(p->runtime[op->runtime], &p->name[op->name].identity,
                              ERRAND_REASON_EXPLICIT, NULL) != ERRAND_ETHREAD)
                play_fail(p, "op %d is cancelled by another thread", op->index);
            break;
        }
        status = errand_cancel(p->runtime[op->runtime], &p->name[op->name].identity,
                               ERRAND_REASON_EXPLICIT, &answer);
        PLAY_MODEL(p, model_cancel(&p->model, op->runtime, op->name,
                                   ERRAND_REASON_EXPLICIT, status, answer));
        play_said(p, "cancel myself", status, answer);
        if (p->judged &&
            !errand_job_cancelled(job)) /* seeded: it is due, so it has ended */
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
        if (!p->posts || closed)
            break;
        status = errand_post_cancel(p->inbox[op->runtime], &p->name[op->name].identity);
        PLAY_MODEL(p, model_post(&p->model, op->runtime, op->name, -1, status));
        play_said(p, "post my cancel", status, 0);
        break;
    default:
        break;
    }
}

static void
work_beyond(play_op *op, errand_job *job)
{
    play *p = op->play;

    if (op->spec.work_max == 0)
        return;
    if (errand_job_work(job, op->spec.work_max) != ERRAND_OK ||
        errand_job_work(job, 1) != ERRAND_EBOUND)
        play_fail(p, "op %d is beyond its bound", op->index);
    if (p->model.op[op->index].runtime != MODEL_RUNTIMES)
        PLAY_MODEL(p, model_beyond(&p->model, op->index));
}

static int32_t
end(play_op *op, errand_job *job, errand_payload *out_payload)
{
    play *p = op->play;
    int32_t answer = 0;

    switch (op->plan.end) {
    case PLAY_END_OK:
        if (op->plan.take) /* nobody is shown it */
            errand_job_message(job, "op %d ends well", op->index);
        break;
    case PLAY_END_TYPED:
        *out_payload = (errand_payload){&play_typed, op, sizeof *op};
        op->payloads++;
        break;
    case PLAY_END_BLOCK:
        if (errand_job_alloc(job, 24) == NULL ||
            errand_payload_alloc(job, 40, out_payload) == NULL)
            play_fail(p, "no memory");
        break;
    case PLAY_END_CODE:
        if (op->plan.take) { /* a failure takes no payload along */
            *out_payload = (errand_payload){&play_typed, op, sizeof *op};
            op->payloads++;
        }
        answer = 7;
        break;
    case PLAY_END_DETAILS:
        errand_job_fail(job, 2, 0, "open", "no file %d", op->index);
        answer = 8;
        break;
    case PLAY_END_FORGED:
        answer = -1 - op->index;
        break;
    case PLAY_END_PANIC:
        if (op->plan.take) {
            *out_payload = (errand_payload){&play_typed, op, sizeof *op};
            op->payloads++;
        }
        break;
    case PLAY_END_WORK:
        if (!op->plan.take)
            work_beyond(op, job);
        break;
    default:
        break;
    }
    op->body_over = true;
    play_event(p, "ends", op->index, (uint64_t)answer);
    PLAY_MODEL(p, model_ended(&p->model, op->index,
                              op->plan.end == PLAY_END_PANIC ? INT32_MIN : answer));
    if (op->plan.end == PLAY_END_PANIC)
        errand_panic("op %d", op->index);
    return answer;
}

static void
inside(play_op *op, errand_job *job)
{
    play *p = op->play;
    bool outer = p->in_body;

    if (op->plan.end == PLAY_END_WORK && op->plan.take)
        work_beyond(op, job); /* and goes on */
    if (play_is_hand()) {
        do_extra(op, job);
        return;
    }
    p->in_body = true;
    do_extra(op, job);
    play_nested(p, op->plan.nested);
    p->in_body = outer;
}

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    play_op *op = state;

    count_entered(op->play);
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
    count_entered(op->play); /* it will not be polled */
    op->body_over = true;
    PLAY_MODEL(op->play,
               model_ended(&op->play->model, op->index, op->plan.take ? 5 : INT32_MIN));
    if (op->plan.take)
        return 5;
    errand_panic("op %d at its start", op->index);
}

static int32_t
poll(errand_job *job, void *state, errand_payload *out_payload)
{
    play_op *op = state;
    play *p = op->play;
    bool first = op->waker == NULL;

    count_entered(p);
    if (op->bodies == 0)
        begin(op, job);
    PLAY_MODEL(p, model_polled(&p->model, op->index));
    play_event(p, "poll", op->index, 0);
    if (first) {
        op->waker = errand_job_waker(job);
        inside(op, job);
    }
    if (op->plan.polls == 0 || play_is_hand() ||
        (errand_job_cancelled(job) &&
         !(p->judged && op->plan.take))) /* some do not heed it */
        return end(op, job, out_payload);
    op->plan.polls--;
    if (p->judged && model_pends(&p->model, op->index))
        return ERRAND_PENDING; /* it is settled already: this was the last */
    if (op->plan.extra == PLAY_EXTRA_WAKE ||
        !p->judged) { /* inline order waits for its end */
        p->model.op[op->index].woken = true;
        errand_waker_wake(op->waker);
    }
    return ERRAND_PENDING;
}

static void
drop_state(void *state)
{
    ((play_op *)state)->state_drops++;
    ((play_op *)state)->body_over = true;
    play_burst(state, PLAY_BURST_STATE);
}

const errand_job_type play_job = {
    sizeof(errand_job_type), "played", run, NULL, poll, drop_state, NULL, NULL};
const errand_job_type play_job_with_start = {
    sizeof(errand_job_type), "played", run, start, poll, drop_state, NULL, NULL};
const errand_job_type play_no_job = {.struct_size = sizeof(errand_job_type),
                                     .name = "empty"};
