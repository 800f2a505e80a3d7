/* SPDX-License-Identifier: MIT */
/* Design notes: one row per name and operation, never reused, so an old copy of a token or
 * identity is an old row's number.  The inbox is a list of what came, in order.  Deadlines
 * end work in a drive; how many were ended so far is told, which ones is the model's. */
#include "model.h"

#define CAUSE(holds, status) ((holds) ? UINT64_C(1) << (ERRAND_##status) : 0)

static void
rule(model *m, bool holds, const char *why)
{
    if (!holds && m->why == NULL)
        m->why = why;
}

/* Is got one of the refusals that have a cause, or OK where none has?  may: allowed besides. */
static bool
answered(model *m, const char *call, uint64_t causes, uint64_t may, errand_status got)
{
    uint64_t wanted = (causes != 0 ? causes : CAUSE(true, OK)) | may;

    if (m->why == NULL)
        m->wanted = wanted;
    rule(m, (wanted >> got & 1) != 0, call);
    return got == ERRAND_OK && m->why == NULL;
}

static model_op *
op_at(model *m, int op, model_phase phase)
{
    return op >= 0 && m->op[op].phase == phase ? &m->op[op] : NULL;
}

static bool
is_due(const model *m, const model_op *o)
{
    return o->phase == MODEL_QUEUED && o->due_ns <= m->runtime[o->runtime].now_ns;
}

/* ---- names and jobs ---------------------------------------------------------------------- */
/* A name counts until its record is free: its handler holds it perhaps, and a posted cancel does
 * until it was taken, which a drive does unseen. */
static uint64_t
name_causes(const model *m, int runtime, uint64_t *out_may)
{
    const model_runtime *r = &m->runtime[runtime];
    uint32_t live = 0, held = 0;

    for (int i = 0; i < m->names; i++) {
        live += m->name[i].runtime == runtime && !m->name[i].over;
        held += m->name[i].runtime == runtime && m->name[i].over && m->name[i].posted;
    }
    *out_may = CAUSE(r->hand != 0 && live + held + 1 >= r->names_max, EFULL) |
               CAUSE(r->driving && live < r->names_max, OK);
    return CAUSE(live + held >= r->names_max, EFULL) | CAUSE(r->numbers_left == 0, EEXHAUSTED);
}

static int
new_name(model *m, int runtime, uint32_t kind, int op)
{
    m->name[m->names] = (model_name){ .runtime = runtime, .op = op, .kind = kind };
    m->runtime[runtime].numbers_left--;
    return m->names++;
}

static int
new_op(model *m, int runtime, const errand_spec *spec, model_phase phase)
{
    m->op[m->ops] = (model_op){ .runtime = runtime, .lease = -1, .name = -1, .parent = -1,
                                .spec = *spec, .phase = phase };
    return m->ops++;
}

static bool
is_bad(const errand_spec *s)
{
    bool quarantined = s->resource_class == ERRAND_QUARANTINED_BLOCKING;

    return s->kind == 0 || s->resource_class < 1 || s->resource_class > 3 || s->flags != 0 ||
           s->priority > 2 || s->lane >= 19 || s->held_job == NULL ||
           (s->resource_class == ERRAND_INTERRUPTIBLE_ASYNC ? !s->held_job->poll : !s->held_job->run) ||
           (quarantined && ((s->quarantine_ns == 0 && s->work_max == 0) || s->held_hook != NULL)) ||
           (s->work_max != 0 && s->held_work_unit == NULL);
}

void
model_issue(model *m, int runtime, uint32_t kind, errand_status got)
{
    uint64_t may, causes = name_causes(m, runtime, &may);

    if (answered(m, "issue", causes | CAUSE(kind == 0, EINVAL), may, got))
        new_name(m, runtime, kind, -1);
}

void
model_retire(model *m, int runtime, int name, errand_status got)
{
    model_name *n = name >= 0 ? &m->name[name] : NULL;

    if (answered(m, "retire", CAUSE(n && n->runtime != runtime, EFOREIGN) |
                 CAUSE(!n || n->over || n->op >= 0, ESPENT), 0, got))
        n->over = true;
}

void
model_prepare(model *m, int runtime, const errand_spec *spec, errand_status got)
{
    if (answered(m, "prepare", CAUSE(is_bad(spec), EINVAL), 0, got))
        new_op(m, runtime, spec, MODEL_PREPARED);
}

void
model_bind(model *m, int runtime, int name, int op, errand_status got)
{
    model_name *n = name >= 0 ? &m->name[name] : NULL;
    model_op *o = op_at(m, op, MODEL_PREPARED);

    if (!answered(m, "bind", CAUSE((n && n->runtime != runtime) ||
                                       (op >= 0 && m->op[op].runtime != runtime), EFOREIGN) |
                  CAUSE(!o || !n || n->over || n->op >= 0, ESPENT) |
                  CAUSE(n && op >= 0 && n->kind != m->op[op].spec.kind, EKIND), 0, got))
        return;
    n->op = op;
    o->name = name;
    o->phase = MODEL_BOUND;
}

void
model_split(model *m, int op, errand_status got)
{
    if (!answered(m, "split", CAUSE(!op_at(m, op, MODEL_BOUND), ESPENT), 0, got))
        return;
    m->op[op].phase = MODEL_SPLIT;
    m->op[op].wait = MODEL_OUT;
}

void
model_await(model *m, int op, errand_status got)
{
    model_op *o = op >= 0 ? &m->op[op] : NULL;
    bool cancelled = o && o->name >= 0 && m->name[o->name].reason != ERRAND_REASON_NONE;

    if (answered(m, "await", CAUSE(!o || o->wait != MODEL_OUT || o->phase == MODEL_GONE ||
                                   o->phase == MODEL_DELIVERED, ESPENT) |
                 CAUSE(cancelled, ECANCELLED), 0, got))
        o->wait = MODEL_REGISTERED;
}

void
model_abandon(model *m, int op, model_phase stage)
{
    model_op *o = op >= 0 ? &m->op[op] : NULL;

    if (stage == MODEL_FOLLOWS && o && o->wait == MODEL_OUT)
        o->wait = MODEL_ENDED;
    if (stage == MODEL_FOLLOWS || !op_at(m, op, stage))
        return;
    o->phase = MODEL_GONE;
    o->wait = o->wait == MODEL_READY ? MODEL_READY : MODEL_ENDED; /* a cancel ended it before */
    if (o->name >= 0)
        m->name[o->name].over = true;
}

/* ---- out --------------------------------------------------------------------------------- */
static errand_snapshot *
sums_of(model *m, const model_op *o, int which)
{
    return which == 0 ? &m->runtime[o->runtime].sums : &m->lease[o->lease].sums;
}

static void
admit(model *m, int lease, int op)
{
    model_op *o = &m->op[op];
    uint64_t now = m->runtime[o->runtime].now_ns;

    o->lease = lease;
    o->phase = MODEL_QUEUED;
    o->order = ++m->orders;
    o->submit_ns = now;
    o->due_ns = o->spec.deadline_ns == 0 || now + o->spec.deadline_ns < now ? UINT64_MAX
                                                                            : now + o->spec.deadline_ns;
    for (int i = 0; i < 2; i++)
        sums_of(m, o, i)->accepted++, sums_of(m, o, i)->owed++;
}

void
model_submit(model *m, int lease, int op, errand_status got)
{
    const model_op *o = op >= 0 ? &m->op[op] : NULL;
    const model_lease *l = lease >= 0 ? &m->lease[lease] : NULL;

    if (answered(m, "submit", CAUSE(!l, EINVAL) | CAUSE(!o || o->phase != MODEL_SPLIT, ESPENT) |
                 CAUSE(o && l && o->runtime != l->runtime, EFOREIGN) |
                 CAUSE(o && o->name >= 0 && m->name[o->name].reason, ECANCELLED) |
                 CAUSE(l && l->sums.owed >= l->owed_max, EFULL), 0, got))
        admit(m, lease, op);
}

void
model_start(model *m, int lease, const errand_spec *spec, errand_status got)
{
    const model_lease *l = lease >= 0 ? &m->lease[lease] : NULL;
    uint64_t may = 0, causes = l ? name_causes(m, l->runtime, &may) : CAUSE(true, EINVAL);

    if (!answered(m, "start", causes | CAUSE(is_bad(spec), EINVAL) |
                  CAUSE(l && l->sums.owed >= l->owed_max, EFULL), may, got))
        return;
    int op = new_op(m, l->runtime, spec, MODEL_SPLIT);
    m->op[op].name = new_name(m, l->runtime, spec->kind, op);
    admit(m, lease, op);
}

/* News: a completion, a posted cancel, or a command; nothing if that is there already. */
static void
put(model_runtime *r, int op, int name, int node)
{
    if (op < 0 && name < 0 && node < 0)
        return;
    r->inbox[r->tail].op = op;
    r->inbox[r->tail].name = name;
    r->inbox[r->tail++].node = node;
}

static void
settle(model *m, int op, errand_outcome outcome, errand_code code)
{
    model_op *o = &m->op[op];
    model_runtime *r = &m->runtime[o->runtime];

    o->phase = MODEL_SETTLED;
    o->pending = false;
    o->outcome = outcome;
    o->code = code;
    o->end_ns = r->now_ns;
    put(r, op, -1, -1);
    for (int i = 0; i < 2; i++) {
        errand_snapshot *s = sums_of(m, o, i);
        *(outcome == ERRAND_COMPLETED ? &s->completed : outcome == ERRAND_FAILED ? &s->failed
          : outcome == ERRAND_CANCELLED ? &s->cancelled : &s->panicked) += 1;
        s->codes[code] += code != ERRAND_CODE_NONE;
    }
}

/* The queued operation whose own deadline comes first, if that has passed; else -1. */
static int
next_due(const model *m, int runtime)
{
    int first = -1;

    for (int i = 0; i < m->ops; i++) {
        const model_op *o = &m->op[i];
        if (o->runtime == runtime && is_due(m, o) &&
            (first < 0 || o->due_ns < m->op[first].due_ns ||
             (o->due_ns == m->op[first].due_ns && o->order < m->op[first].order)))
            first = i;
    }
    return first;
}

/* ---- a change of mind -------------------------------------------------------------------- */
static errand_cancel_answer
cancel(model *m, int name, errand_reason reason, errand_cancel_answer hint)
{
    model_name *n = name >= 0 ? &m->name[name] : NULL;
    model_op *o = n && n->op >= 0 ? &m->op[n->op] : NULL;
    errand_cancel_answer answer = ERRAND_CANCEL_NOT_SUBMITTED;

    if (!n || (n->over && hint == ERRAND_CANCEL_UNKNOWN && m->runtime[n->runtime].hand == n->op + 1) ||
        (n->over && !(o && o->wait == MODEL_READY && n->reason == ERRAND_REASON_NONE)))
        return ERRAND_CANCEL_UNKNOWN;
    if (n->reason != ERRAND_REASON_NONE && (hint == ERRAND_CANCEL_ALREADY ||
                                            (o && o->outcome == ERRAND_CANCELLED)))
        return ERRAND_CANCEL_ALREADY; /* but its state may be answered again */
    bool again = n->reason != ERRAND_REASON_NONE;
    n->reason = again ? n->reason : reason;
    if (!o)
        return answer;
    if (o->phase >= MODEL_SETTLED)
        answer = ERRAND_CANCEL_SETTLED;
    else if (o->phase >= MODEL_QUEUED)
        answer = o->phase == MODEL_QUEUED ? ERRAND_CANCEL_CANCELLED : ERRAND_CANCEL_RUNNING;
    if (again)
        return answer;
    o->asked = true;
    o->woken |= o->phase == MODEL_RUNNING;
    o->entry |= o->phase == MODEL_RUNNING && o->spec.resource_class == ERRAND_QUARANTINED_BLOCKING;
    if (o->phase == MODEL_QUEUED)
        settle(m, n->op, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED);
    if (o->wait == MODEL_REGISTERED)
        o->wait = MODEL_READY;
    return answer;
}

void
model_cancel(model *m, int runtime, int name, errand_reason reason, errand_status got,
             errand_cancel_answer answer)
{
    bool foreign = name >= 0 && m->name[name].runtime != runtime;

    if (answered(m, "cancel", CAUSE(foreign, EFOREIGN) |
                 CAUSE(reason < 1 || reason > ERRAND_REASON_SHUTDOWN, EINVAL), 0, got))
        rule(m, cancel(m, name, reason, answer) == answer, "cancel's answer");
}

/* The one that is being heard may be there or not. */
static uint64_t
in_hand(const model *m, int runtime, int name)
{
    return CAUSE(name >= 0 && m->name[name].op >= 0 && m->runtime[runtime].hand == m->name[name].op + 1, OK);
}

/* What another thread or a finaliser asked for: node >= 0 is a command, else name is cancelled. */
void
model_post(model *m, int runtime, int name, int node, errand_status got)
{
    model_runtime *r = &m->runtime[runtime];
    model_name *n = name >= 0 ? &m->name[name] : NULL;
    bool gone = node < 0 && (!n || n->over || n->runtime != runtime);

    if (!answered(m, "post", CAUSE(gone, EGONE) | CAUSE(node >= 0 && r->posted[node], EBUSY),
                  in_hand(m, runtime, name) | CAUSE(n && n->posted, OK), got))
        return;
    if (n)
        n->asks = true;
    put(r, -1, n && n->posted ? -1 : name, node);
    *(n ? &n->posted : &r->posted[node]) = true;
}

/* That is news too: the runtime bounds how long it may go on. */
void
model_beyond(model *m, int op)
{
    model_name *n = &m->name[m->op[op].name];

    put(&m->runtime[n->runtime], -1, n->posted ? -1 : m->op[op].name, -1);
    n->posted = true;
}

void
model_cancel_later(model *m, int runtime, int name, errand_status got)
{
    bool unknown = name < 0 || m->name[name].over || m->name[name].runtime != runtime;

    if (answered(m, "cancel_later", CAUSE(unknown, EUNKNOWN), in_hand(m, runtime, name), got))
        m->name[name].later = true;
}

/* ---- news -------------------------------------------------------------------------------- */
/* The item in hand is done: what follows it is submitted, in order, as there is room. */
static void
follow_on(model *m, int runtime, bool at_start)
{
    uint64_t may;

    if (!at_start && m->runtime[runtime].hand == 0)
        return;
    m->runtime[runtime].hand = 0;
    for (;;) {
        model_op *first = NULL;
        for (int i = 0; i < m->ops; i++)
            if (m->op[i].phase == MODEL_FOLLOWS && m->op[i].runtime == runtime && m->op[i].order != 0 &&
                (first == NULL || m->op[i].order < first->order))
                first = &m->op[i];
        if (first == NULL)
            return;
        int lease = m->op[first->parent].lease;
        uint64_t causes = name_causes(m, runtime, &may);
        bool closed = m->runtime[runtime].closing || !m->lease[lease].open;
        if (!closed && m->lease[lease].sums.owed >= m->lease[lease].owed_max)
            return;
        if (closed || (causes & CAUSE(true, EEXHAUSTED)) != 0) {
            first->phase = MODEL_GONE;
            continue;
        }
        if (causes != 0)
            return;
        first->name = new_name(m, runtime, first->spec.kind, (int)(first - m->op));
        admit(m, lease, (int)(first - m->op));
    }
}

void
model_enter(model *m, int runtime, size_t budget, bool drive)
{
    model_runtime *r = &m->runtime[runtime];

    follow_on(m, runtime, true);
    r->left = false;
    r->driving = drive;
    for (int i = 0; i < m->names; i++)
        if (m->name[i].runtime == runtime && m->name[i].later) {
            m->name[i].later = false;
            if (!m->name[i].over && m->name[i].op >= 0)
                m->op[m->name[i].op].vague |= m->op[m->name[i].op].phase == MODEL_QUEUED;
            if (!m->name[i].over)
                cancel(m, i, ERRAND_REASON_EXPLICIT, 0);
        }
    for (int first; !drive && (first = next_due(m, runtime)) >= 0;)
        settle(m, first, ERRAND_FAILED, ERRAND_CODE_DEADLINE);
    r->budget = budget;
    r->count = r->commands = 0;
    r->end = drive ? MODEL_NEWS : r->tail;
}

/* Take posted cancels until something else is first, or so many commands were taken. */
static void
take_cancels(model *m, model_runtime *r, size_t commands)
{
    while (r->commands < commands && r->head < r->tail && r->head < r->end && r->inbox[r->head].name >= 0) {
        model_name *n = &m->name[r->inbox[r->head].name];
        if (n->asks && !n->over)
            cancel(m, r->inbox[r->head].name, ERRAND_REASON_EXPLICIT, 0);
        else if (n->op >= 0 && m->op[n->op].phase < MODEL_DELIVERED)
            m->op[n->op].asked = true;
        n->posted = n->asks = false;
        r->commands++;
        r->head++;
    }
}

/* A drive takes posted cancels unseen, and in its own order with deadlines. */
bool
model_posted(const model *m, int runtime)
{
    for (int i = 0; i < m->names; i++)
        if (m->name[i].runtime == runtime && m->name[i].posted)
            return true;
    return false;
}

bool
model_tangled(const model *m, int runtime)
{
    return m->runtime[runtime].driving || (model_posted(m, runtime) && next_due(m, runtime) >= 0);
}

void
model_meanwhile(model *m, int runtime, const errand_snapshot *now)
{
    model_runtime *r = &m->runtime[runtime];

    for (int first; r->driving && now->codes[ERRAND_CODE_DEADLINE] > r->sums.codes[ERRAND_CODE_DEADLINE] &&
                    (first = next_due(m, runtime)) >= 0;)
        settle(m, first, ERRAND_FAILED, ERRAND_CODE_DEADLINE);
    for (size_t before = SIZE_MAX; r->driving && now->cancelled > r->sums.cancelled && before != r->head;) {
        before = r->head;
        take_cancels(m, r, r->commands + 1);
    }
}

/* The next item is this one: of the vague ones that stand first, any may be. */
static bool
take(model *m, model_runtime *r, int op, int node)
{
    take_cancels(m, r, SIZE_MAX);
    for (size_t i = r->head; i < r->tail && i < r->end; i++) {
        bool vague = r->inbox[i].op >= 0 && m->op[r->inbox[i].op].vague;
        if (r->inbox[i].op == op && r->inbox[i].node == node && (i == r->head || vague)) {
            r->inbox[i] = r->inbox[r->head];
            return r->head++ < r->tail;
        }
        if (!vague)
            break;
    }
    return false;
}

void
model_command(model *m, int runtime, int node)
{
    model_runtime *r = &m->runtime[runtime];

    follow_on(m, runtime, false);
    rule(m, r->posted[node] && (r->closing || take(m, r, -1, node)), "a command's turn");
    r->posted[node] = false;
    r->commands++;
}

void
model_heard(model *m, int op, const errand_completion *c)
{
    model_op *o = &m->op[op];
    model_runtime *r = &m->runtime[o->runtime];
    follow_on(m, o->runtime, false);
    take_cancels(m, r, SIZE_MAX);
    rule(m, o->phase == MODEL_SETTLED || (r->closing && o->phase < MODEL_SETTLED), "a completion");
    rule(m, r->closing || (take(m, r, op, -1) && ++r->count <= r->budget), "a completion's turn");
    model_name *n = &m->name[o->name];
    bool reaped = o->spec.resource_class == ERRAND_QUARANTINED_BLOCKING && o->entry;
    bool late = (c->flags & ERRAND_LATE) != 0;
    if (!r->closing) {
        rule(m, o->outcome == c->outcome && o->code == c->code, "its outcome and code");
        rule(m, late == (n->reason != ERRAND_REASON_NONE), "its lateness");
        rule(m, o->vague || o->asked == ((c->flags & ERRAND_CANCEL_REQUESTED) != 0), "its cancel request");
        rule(m, c->t_submit_ns == o->submit_ns, "its times");
    }
    rule(m, (c->flags & (ERRAND_HELD | ERRAND_MESSAGE_LOST)) == 0, "its other flags");
    o->phase = MODEL_DELIVERED;
    o->entry &= !reaped;
    n->over = true;
    if (o->wait == MODEL_REGISTERED)
        o->wait = MODEL_READY;
    *(reaped ? &r->sums.reaped : late ? &r->sums.late : &r->sums.resumed) += 1;
    for (int i = 0; i < 2; i++)
        sums_of(m, o, i)->drained++, sums_of(m, o, i)->owed--;
    for (int i = 0; i < m->ops; i++)
        if (m->op[i].parent == op)
            m->op[i].order = ++m->orders;
    r->hand = op + 1;
}

void
model_resumed(model *m, int op, errand_reason reason)
{
    model_op *o = &m->op[op];
    model_runtime *r = &m->runtime[o->runtime];

    follow_on(m, o->runtime, false);
    for (size_t before = SIZE_MAX; o->wait == MODEL_REGISTERED && !r->closing && before != r->head;) {
        before = r->head;
        take_cancels(m, r, r->commands + 1);
    }
    rule(m, r->driving || r->closing, "a continuation outside a drive");
    rule(m, o->wait == MODEL_READY || (r->closing && o->wait == MODEL_REGISTERED), "a continuation");
    rule(m, r->closing || reason == m->name[o->name].reason, "its reason");
    o->wait = MODEL_ENDED;
}

void
model_leave(model *m, int runtime, size_t count, size_t commands, bool nothing_left)
{
    model_runtime *r = &m->runtime[runtime];

    if (!r->left)
        follow_on(m, runtime, false);
    rule(m, count == r->count, "how many were drained");
    if (r->count < r->budget)
        take_cancels(m, r, commands);
    rule(m, commands == SIZE_MAX || commands == r->commands, "how many commands were taken");
    if (r->driving ? nothing_left : r->count < r->budget)
        rule(m, r->head == r->tail || r->head == r->end, "nothing is left in the inbox");
    for (int i = 0; i < m->ops && r->driving && nothing_left; i++)
        rule(m, m->op[i].runtime != runtime || (m->op[i].wait != MODEL_READY && !is_due(m, &m->op[i])),
             "nothing is left to resume or to end");
    r->driving = false;
}

/* ---- the manual executor ----------------------------------------------------------------- */
static int
rank(const model_op *o)
{
    return o->spec.priority == 2 ? 2 : 1 - o->spec.priority;
}

/* First of its lease, lane and priority; a lower one is let past at every 16th start only. */
void
model_began(model *m, int op)
{
    model_op *o = op_at(m, op, MODEL_QUEUED);
    bool bypass = false;

    rule(m, o != NULL, "a body may run");
    if (o == NULL)
        return;
    for (int i = 0; i < m->ops; i++) {
        const model_op *other = &m->op[i];
        if (other->phase != MODEL_QUEUED || other->lease != o->lease ||
            (other->spec.resource_class == ERRAND_QUARANTINED_BLOCKING) !=
                (o->spec.resource_class == ERRAND_QUARANTINED_BLOCKING))
            continue;
        rule(m, other->spec.priority != o->spec.priority || other->order >= o->order, "first come");
        bypass |= rank(other) < rank(o);
    }
    model_lease *l = &m->lease[o->lease];
    rule(m, !bypass || l->since_bypass >= 15, "a higher priority goes first");
    l->since_bypass = bypass ? 0 : l->since_bypass + 1;
    o->phase = MODEL_RUNNING;
    o->start_ns = m->runtime[o->runtime].now_ns;
}

void
model_polled(model *m, int op)
{
    model_op *o = op_at(m, op, MODEL_RUNNING);

    rule(m, o && (!o->pending || o->woken || m->runtime[o->runtime].closing), "a poll");
    if (o)
        o->pending = o->woken = false;
}

void
model_ended(model *m, int op, int32_t answer)
{
    bool panicked = answer == INT32_MIN;

    settle(m, op, answer == 0 ? ERRAND_COMPLETED : panicked ? ERRAND_PANICKED : ERRAND_FAILED,
           answer == 0 ? ERRAND_CODE_NONE : panicked ? ERRAND_CODE_PANIC : ERRAND_CODE_JOB);
}

void
model_hooked(model *m, int op, bool reap, errand_hook_answer answer)
{
    model_op *o = &m->op[op];

    rule(m, reap ? o->entry : !o->hooked, reap ? "a reap" : "a cancel hook");
    o->hooked = true;
    o->entry = answer != ERRAND_HOOK_REAPED;
}

void
model_followed(model *m, int parent, const errand_spec *spec)
{
    m->op[new_op(m, m->op[parent].runtime, spec, MODEL_FOLLOWS)].parent = parent;
}

void
model_stepped(model *m, int executor, bool budget_left)
{
    for (int i = 0; i < m->ops && budget_left; i++) {
        const model_op *o = &m->op[i];
        bool waits = o->phase == MODEL_QUEUED || (o->phase == MODEL_RUNNING && o->pending && o->woken);
        rule(m, !waits || m->lease[o->lease].executor != executor, "a step takes what there is");
    }
}

/* ---- the end ----------------------------------------------------------------------------- */
/* before: of the call; what is queued then is cancelled, in an order that nobody promised. */
void
model_detach(model *m, int lease, bool before)
{
    m->lease[lease].open = false;
    for (int i = 0; i < m->ops; i++) {
        model_op *o = &m->op[i];
        if (o->lease != lease || (o->phase != MODEL_QUEUED && o->phase != MODEL_RUNNING))
            continue;
        o->woken = o->vague = true;
        if (o->phase == MODEL_QUEUED)
            cancel(m, o->name, ERRAND_REASON_SHUTDOWN, 0);
        else if (!before) /* pending, and dropped */
            settle(m, i, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED);
    }
    for (int first; before && (first = next_due(m, m->lease[lease].runtime)) >= 0;)
        settle(m, first, ERRAND_FAILED, ERRAND_CODE_DEADLINE);
}

/* The runtime has ended: what it had is foreign to the next one. */
void
model_closed(model *m, int runtime, const errand_report *report)
{
    model_runtime *r = &m->runtime[runtime];
    const errand_snapshot *a = &report->accounts;
    uint64_t entries = 0;

    rule(m, a->accepted == r->sums.accepted && a->drained >= r->sums.drained, "the report's sums");
    rule(m, report->undeliverable == a->accepted - a->drained && a->queued + a->running + a->undrained == 0,
         "the report's law");
    for (int i = 0; i < m->ops; i++)
        entries += m->op[i].runtime == runtime && m->op[i].entry;
    rule(m, report->entries <= entries, "the report's entries");
    rule(m, report->live_waits + report->held + report->running + report->live_tasks == 0,
         "the report names nothing that lives");
    for (int i = 0; i < m->ops; i++)
        if (m->op[i].runtime == runtime) {
            m->op[i].runtime = MODEL_RUNTIMES;
            m->op[i].phase = MODEL_GONE;
        }
    for (int i = 0; i < m->names; i++)
        if (m->name[i].runtime == runtime)
            m->name[i].runtime = MODEL_RUNTIMES;
    for (int i = 0; i < MODEL_LEASES; i++)
        m->lease[i].open &= m->lease[i].runtime != runtime;
}

errand_snapshot
model_accounts(const model *m, int runtime, int lease)
{
    errand_snapshot s = lease < 0 ? m->runtime[runtime].sums : m->lease[lease].sums;

    for (int i = 0; i < m->ops; i++) {
        const model_op *o = &m->op[i];
        if (lease < 0 ? o->runtime != runtime : o->lease != lease)
            continue;
        s.queued += o->phase == MODEL_QUEUED;
        s.running += o->phase == MODEL_RUNNING;
        s.undrained += o->phase == MODEL_SETTLED;
    }
    return s;
}
