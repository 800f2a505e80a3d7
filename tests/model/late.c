/* SPDX-License-Identifier: MIT */
/* Design notes: deadlines, and operations that end without their body (O45).  A deadline ends what
 * is queued and asks what runs to end; what does not, is settled for its body, which keeps its
 * state until it is back and until its completion was heard. */
#include "rules.h"

bool
model_is_due(const model *m, const model_op *o)
{
    return (o->phase == MODEL_QUEUED || o->phase == MODEL_RUNNING) &&
           o->due_ns <= m->runtime[o->runtime].now_ns;
}

int
model_next_due(const model *m, int runtime)
{
    int first = -1;

    for (int i = 0; i < m->ops; i++) {
        const model_op *o = &m->op[i];
        if (o->runtime == runtime && model_is_due(m, o) &&
            (first < 0 || o->due_ns < m->op[first].due_ns ||
             (o->due_ns == m->op[first].due_ns && o->due_order < m->op[first].due_order)))
            first = i;
    }
    return first;
}

void
model_limit(model *m, int op, model_stage stage, uint64_t in_ns)
{
    model_op *o = &m->op[op];
    uint64_t now = m->runtime[o->runtime].now_ns;
    uint64_t due = now + in_ns < now ? UINT64_MAX : now + in_ns;

    if (o->stage != MODEL_NO_LIMIT && o->due_ns <= due)
        return;
    o->stage = stage;
    o->due_ns = due;
    o->due_order = ++m->orders;
}

static void
settle_held(model *m, int op, errand_code code)
{
    model_op *o = &m->op[op];

    o->held = true;
    m->runtime[o->runtime].sums.held++;
    if (o->pending) /* nobody polls it: it is dropped where it stands */
        model_back(m, op);
    model_settle(m, op, ERRAND_FAILED, code);
}

void
model_fire(model *m, int op)
{
    model_op *o = &m->op[op];
    model_stage stage = o->stage;

    o->stage = MODEL_NO_LIMIT;
    o->due_ns = UINT64_MAX;
    if (o->phase == MODEL_QUEUED) {
        model_settle(m, op, ERRAND_FAILED, ERRAND_CODE_DEADLINE);
    } else if (stage == MODEL_OWN &&
               o->spec.resource_class != ERRAND_QUARANTINED_BLOCKING) {
        o->overdue |= !o->asked;
        o->asked = o->woken = true;
        model_limit(m, op, MODEL_GRACE, m->grace_ns);
    } else {
        settle_held(m, op,
                    stage == MODEL_WORK ? ERRAND_CODE_BOUND : ERRAND_CODE_DEADLINE);
    }
}

void
model_fire_all(model *m, int runtime)
{
    for (int first; (first = model_next_due(m, runtime)) >= 0;)
        model_fire(m, first);
}

/* Nobody hears of what it made, and what it handed on never starts. */
void
model_back(model *m, int op)
{
    model_op *o = &m->op[op];
    model_runtime *r = &m->runtime[o->runtime];

    model_rule(m, !o->back, "a body is back once");
    o->back = true;
    o->pending = false;
    r->sums.returned_late++;
    for (int i = 0; i < m->ops; i++)
        if (m->op[i].parent == op && m->op[i].phase == MODEL_FOLLOWS)
            m->op[i].phase = MODEL_GONE;
    if (o->phase == MODEL_DELIVERED && r->hand != op + 1) /* else it waits for a drain */
        model_put(r, -1, -1, model_back_node(op));
}

void
model_freed(model *m, int op)
{
    model_op *o = &m->op[op];

    model_rule(m, o->held && o->back && !o->freed, "the end of a held operation");
    o->freed = true;
    m->runtime[o->runtime].sums.held--;
    m->name[o->name].over = true;
}

bool
model_pends(model *m, int op)
{
    model_op *o = &m->op[op];

    if (o->held)
        model_back(m, op);
    else
        o->pending = true;
    return o->held;
}
