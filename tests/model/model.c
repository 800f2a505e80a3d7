/* SPDX-License-Identifier: MIT */
/* Design notes: one row per name and operation, never reused, so an old copy of a token or
 * identity is an old row's number.  The inbox is a list of what came, in order.  Deadlines
 * end work in a drive; how many were ended so far is told, which ones is the model's. */
#include "rules.h"

void
model_rule(model *m, bool holds, const char *why)
{
    if (!holds && m->why == NULL)
        m->why = why;
}

bool
model_answered(model *m, const char *call, uint64_t causes, uint64_t may,
               errand_status got)
{
    uint64_t wanted = (causes != 0 ? causes : CAUSE(true, OK)) | may;

    if (m->why == NULL)
        m->wanted = wanted;
    model_rule(m, (wanted >> got & 1) != 0, call);
    return got == ERRAND_OK && m->why == NULL;
}

model_op *
model_op_at(model *m, int op, model_phase phase)
{
    return op >= 0 && m->op[op].phase == phase ? &m->op[op] : NULL;
}

/* ---- names and jobs ---------------------------------------------------------------------- */
/* A name counts until its record is free: its handler holds it perhaps, and a posted cancel does
 * until it was taken, which a drive does unseen. */
uint64_t
model_name_causes(const model *m, int runtime, uint64_t *out_may)
{
    const model_runtime *r = &m->runtime[runtime];
    uint32_t live = 0, held = 0;

    for (int i = 0; i < m->names; i++) {
        const model_name *n = &m->name[i];
        bool back =
            n->op >= 0 && m->op[n->op].phase == MODEL_DELIVERED && m->op[n->op].back;
        live += n->runtime == runtime && !n->over && !back;
        held += n->runtime == runtime && (n->over ? n->posted : back);
    }
    *out_may = CAUSE(r->hand != 0 && live + held + 1 >= r->names_max, EFULL) |
               CAUSE(r->driving && live < r->names_max, OK);
    return CAUSE(live + held >= r->names_max, EFULL) |
           CAUSE(r->numbers_left == 0, EEXHAUSTED);
}

int
model_new_name(model *m, int runtime, uint32_t kind, int op)
{
    m->name[m->names] = (model_name){.runtime = runtime, .op = op, .kind = kind};
    m->runtime[runtime].numbers_left--;
    return m->names++;
}

int
model_new_op(model *m, int runtime, const errand_spec *spec, model_phase phase)
{
    m->op[m->ops] = (model_op){.runtime = runtime,
                               .lease = -1,
                               .name = -1,
                               .parent = -1,
                               .spec = *spec,
                               .phase = phase};
    return m->ops++;
}

bool
model_is_bad(const errand_spec *s)
{
    bool quarantined = s->resource_class == ERRAND_QUARANTINED_BLOCKING;

    if (s->struct_size != sizeof *s ||
        (s->held_decoder != NULL && s->held_decoder->decode == NULL) ||
        (s->held_hook != NULL && s->held_hook->cancel == NULL) ||
        (!quarantined && (s->quarantine_ns | s->work_max) != 0))
        return true;
    return s->kind == 0 || s->resource_class < 1 || s->resource_class > 3 ||
           s->flags > 3 || s->priority > 2 || s->lane >= 19 || s->held_job == NULL ||
           (s->resource_class == ERRAND_INTERRUPTIBLE_ASYNC ? !s->held_job->poll
                                                            : !s->held_job->run) ||
           (quarantined &&
            ((s->quarantine_ns == 0 && s->work_max == 0) || s->held_hook != NULL)) ||
           (s->work_max != 0 && s->held_work_unit == NULL);
}

void
model_issue(model *m, int runtime, uint32_t kind, errand_status got)
{
    uint64_t may, causes = model_name_causes(m, runtime, &may);

    if (model_answered(m, "issue", causes | CAUSE(kind == 0, EINVAL), may, got))
        model_new_name(m, runtime, kind, -1);
}

void
model_retire(model *m, int runtime, int name, errand_status got)
{
    model_name *n = name >= 0 ? &m->name[name] : NULL;

    if (model_answered(m, "retire",
                       CAUSE(n && n->runtime != runtime, EFOREIGN) |
                           CAUSE(!n || n->over || n->op >= 0, ESPENT),
                       0, got))
        n->over = true;
}

void
model_prepare(model *m, int runtime, const errand_spec *spec, errand_status got)
{
    if (model_answered(m, "prepare", CAUSE(model_is_bad(spec), EINVAL), 0, got))
        model_new_op(m, runtime, spec, MODEL_PREPARED);
}

void
model_bind(model *m, int runtime, int name, int op, errand_status got)
{
    model_name *n = name >= 0 ? &m->name[name] : NULL;
    model_op *o = model_op_at(m, op, MODEL_PREPARED);

    if (!model_answered(m, "bind",
                        CAUSE((n && n->runtime != runtime) ||
                                  (op >= 0 && m->op[op].runtime != runtime),
                              EFOREIGN) |
                            CAUSE(!o || !n || n->over || n->op >= 0, ESPENT) |
                            CAUSE(n && op >= 0 && n->kind != m->op[op].spec.kind, EKIND),
                        0, got))
        return;
    n->op = op;
    o->name = name;
    o->phase = MODEL_BOUND;
}

void
model_split(model *m, int op, errand_status got)
{
    if (!model_answered(m, "split", CAUSE(!model_op_at(m, op, MODEL_BOUND), ESPENT), 0,
                        got))
        return;
    m->op[op].phase = MODEL_SPLIT;
    m->op[op].wait = MODEL_OUT;
}

void
model_await(model *m, int op, errand_status got)
{
    model_op *o = op >= 0 ? &m->op[op] : NULL;
    bool cancelled = o && o->name >= 0 && m->name[o->name].reason != ERRAND_REASON_NONE;

    if (model_answered(m, "await",
                       CAUSE(!o || o->wait != MODEL_OUT || o->phase == MODEL_GONE ||
                                 o->phase == MODEL_DOOMED || o->phase == MODEL_DELIVERED,
                             ESPENT) |
                           CAUSE(cancelled, ECANCELLED),
                       0, got))
        o->wait = MODEL_REGISTERED;
}

void
model_abandon(model *m, int op, model_phase stage)
{
    model_op *o = op >= 0 ? &m->op[op] : NULL;

    if (stage == MODEL_FOLLOWS && o && o->wait == MODEL_OUT)
        o->wait = MODEL_ENDED;
    if (stage == MODEL_FOLLOWS || !model_op_at(m, op, stage))
        return;
    o->phase = MODEL_GONE;
    o->wait =
        o->wait == MODEL_READY ? MODEL_READY : MODEL_ENDED; /* a cancel ended it before */
    if (o->name >= 0)
        m->name[o->name].over = true;
}

/* ---- out --------------------------------------------------------------------------------- */
errand_snapshot *
model_sums_of(model *m, const model_op *o, int which)
{
    return which == 0 ? &m->runtime[o->runtime].sums : &m->lease[o->lease].sums;
}

void
model_admit(model *m, int lease, int op)
{
    model_op *o = &m->op[op];
    uint64_t now = m->runtime[o->runtime].now_ns;

    o->lease = lease;
    o->phase = MODEL_QUEUED;
    o->order = ++m->orders;
    o->submit_ns = now;
    o->due_ns = UINT64_MAX;
    if (o->spec.deadline_ns != 0)
        model_limit(m, op, MODEL_OWN, o->spec.deadline_ns);
    for (int i = 0; i < 2; i++)
        model_sums_of(m, o, i)->accepted++, model_sums_of(m, o, i)->owed++;
}

void
model_submit(model *m, int lease, int op, errand_status got)
{
    const model_op *o = op >= 0 ? &m->op[op] : NULL;
    const model_lease *l = lease >= 0 ? &m->lease[lease] : NULL;

    if (model_answered(
            m, "submit",
            CAUSE(!l, EINVAL) | CAUSE(!o || o->phase != MODEL_SPLIT, ESPENT) |
                CAUSE(o && l && o->runtime != l->runtime, EFOREIGN) |
                CAUSE(o && o->name >= 0 && m->name[o->name].reason, ECANCELLED) |
                CAUSE(l && l->sums.owed >= l->owed_max, EFULL),
            0, got))
        model_admit(m, lease, op);
}

void
model_start(model *m, int lease, const errand_spec *spec, errand_status got)
{
    const model_lease *l = lease >= 0 ? &m->lease[lease] : NULL;
    uint64_t may = 0,
             causes = l ? model_name_causes(m, l->runtime, &may) : CAUSE(true, EINVAL);

    if (!model_answered(m, "start",
                        causes | CAUSE(model_is_bad(spec), EINVAL) |
                            CAUSE(l && l->sums.owed >= l->owed_max, EFULL),
                        may, got))
        return;
    int op = model_new_op(m, l->runtime, spec, MODEL_SPLIT);
    m->op[op].name = model_new_name(m, l->runtime, spec->kind, op);
    model_admit(m, lease, op);
}

/* News: a completion, a posted cancel, or a command; nothing if that is there already. */
void
model_put(model_runtime *r, int op, int name, int node)
{
    if (op < 0 && name < 0 && node == -1)
        return;
    r->inbox[r->tail].op = op;
    r->inbox[r->tail].name = name;
    r->inbox[r->tail++].node = node;
}

void
model_settle(model *m, int op, errand_outcome outcome, errand_code code)
{
    model_op *o = &m->op[op];
    model_runtime *r = &m->runtime[o->runtime];

    o->phase = MODEL_SETTLED;
    o->pending = false;
    o->outcome = outcome;
    o->code = code;
    o->end_ns = r->now_ns;
    model_put(r, op, -1, -1);
    for (int i = 0; i < 2; i++) {
        errand_snapshot *s = model_sums_of(m, o, i);
        *(outcome == ERRAND_COMPLETED   ? &s->completed
          : outcome == ERRAND_FAILED    ? &s->failed
          : outcome == ERRAND_CANCELLED ? &s->cancelled
                                        : &s->panicked) += 1;
        s->codes[code] += code != ERRAND_CODE_NONE;
    }
}

/* ---- a change of mind -------------------------------------------------------------------- */
errand_cancel_answer
model_change(model *m, int name, errand_reason reason, errand_cancel_answer hint)
{
    model_name *n = name >= 0 ? &m->name[name] : NULL;
    model_op *o = n && n->op >= 0 ? &m->op[n->op] : NULL;
    errand_cancel_answer answer = ERRAND_CANCEL_NOT_SUBMITTED;

    if (!n ||
        ((n->over || (o && o->held)) && hint == ERRAND_CANCEL_UNKNOWN &&
         m->runtime[n->runtime].hand == n->op + 1) ||
        (n->over && !(o && o->wait == MODEL_READY && n->reason == ERRAND_REASON_NONE)))
        return ERRAND_CANCEL_UNKNOWN;
    if (n->reason != ERRAND_REASON_NONE &&
        (hint == ERRAND_CANCEL_ALREADY || (o && o->outcome == ERRAND_CANCELLED)))
        return ERRAND_CANCEL_ALREADY; /* but its state may be answered again */
    bool again = n->reason != ERRAND_REASON_NONE;
    n->reason = again ? n->reason : reason;
    if (!o)
        return answer;
    if (o->phase >= MODEL_SETTLED)
        answer = ERRAND_CANCEL_SETTLED;
    else if (o->phase >= MODEL_QUEUED)
        answer =
            o->phase == MODEL_QUEUED ? ERRAND_CANCEL_CANCELLED : ERRAND_CANCEL_RUNNING;
    if (again)
        return answer;
    o->asked = true;
    o->woken |= o->phase == MODEL_RUNNING;
    o->entry |= o->phase == MODEL_RUNNING &&
                o->spec.resource_class == ERRAND_QUARANTINED_BLOCKING;
    if (o->phase == MODEL_RUNNING && o->spec.quarantine_ns != 0)
        model_limit(m, n->op, MODEL_GRACE, o->spec.quarantine_ns);
    if (o->phase == MODEL_QUEUED)
        model_settle(m, n->op, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED);
    if (o->wait == MODEL_REGISTERED)
        o->wait = MODEL_READY;
    return answer;
}

void
model_cancel(model *m, int runtime, int name, errand_reason reason, errand_status got,
             errand_cancel_answer answer)
{
    bool foreign = name >= 0 && m->name[name].runtime != runtime;

    if (model_answered(m, "cancel",
                       CAUSE(foreign, EFOREIGN) |
                           CAUSE(reason < 1 || reason > ERRAND_REASON_SHUTDOWN, EINVAL),
                       0, got))
        model_rule(m, model_change(m, name, reason, answer) == answer, "cancel's answer");
}
