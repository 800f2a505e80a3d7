/* SPDX-License-Identifier: MIT */
/* Design notes: what happens between calls: posts, drains and drives, steps, ends.  A drive does
 * some things unseen; what they were is told by the accounts, never by how the library works. */
#include "rules.h"

/* The one that is being heard may be there or not. */
static uint64_t
in_hand(const model *m, int runtime, int name)
{
    return CAUSE(name >= 0 && m->name[name].op >= 0 &&
                     m->runtime[runtime].hand == m->name[name].op + 1,
                 OK);
}

/* What another thread or a finaliser asked for: node >= 0 is a command, else name is cancelled. */
void
model_post(model *m, int runtime, int name, int node, errand_status got)
{
    model_runtime *r = &m->runtime[runtime];
    model_name *n = name >= 0 ? &m->name[name] : NULL;
    bool gone = node < 0 && (!n || n->over || n->runtime != runtime);

    if (!model_answered(m, "post",
                        CAUSE(gone, EGONE) | CAUSE(node >= 0 && r->posted[node], EBUSY),
                        in_hand(m, runtime, name) | CAUSE(n && n->posted, OK), got))
        return;
    if (n)
        n->asks = true;
    model_put(r, -1, n && n->posted ? -1 : name, node);
    *(n ? &n->posted : &r->posted[node]) = true;
}

/* That is news too: the runtime bounds how long it may go on. */
void
model_beyond(model *m, int op)
{
    model_name *n = &m->name[m->op[op].name];

    m->op[op].beyond = true;
    model_put(&m->runtime[n->runtime], -1, n->posted ? -1 : m->op[op].name, -1);
    n->posted = true;
}

void
model_cancel_later(model *m, int runtime, int name, errand_status got)
{
    bool unknown = name < 0 || m->name[name].over || m->name[name].runtime != runtime;

    if (model_answered(m, "cancel_later", CAUSE(unknown, EUNKNOWN),
                       in_hand(m, runtime, name), got))
        m->name[name].later = true;
}

void
model_abandon_later(model *m, int op, errand_status got)
{
    if (model_answered(m, "abandon_later",
                       CAUSE(!model_op_at(m, op, MODEL_SPLIT), ESPENT), 0, got))
        m->op[op].phase = MODEL_DOOMED;
}

/* ---- news -------------------------------------------------------------------------------- */
/* The item in hand is done: what follows it is submitted, in order, as there is room. */
static void
follow_on(model *m, int runtime, bool at_start)
{
    uint64_t may;

    int hand = m->runtime[runtime].hand - 1;

    if (!at_start && hand < 0)
        return;
    m->runtime[runtime].hand = 0;
    if (hand >= 0 && m->op[hand].held && m->op[hand].back)
        model_freed(m, hand);
    for (;;) {
        model_op *first = NULL;
        for (int i = 0; i < m->ops; i++)
            if (m->op[i].phase == MODEL_FOLLOWS && m->op[i].runtime == runtime &&
                m->op[i].order != 0 && (first == NULL || m->op[i].order < first->order))
                first = &m->op[i];
        if (first == NULL)
            return;
        int lease = m->op[first->parent].lease;
        uint64_t causes = model_name_causes(m, runtime, &may);
        bool closed = m->runtime[runtime].closing || !m->lease[lease].open;
        if (!closed && m->lease[lease].sums.owed >= m->lease[lease].owed_max)
            return;
        if (closed || (causes & CAUSE(true, EEXHAUSTED)) != 0) {
            first->phase = MODEL_GONE;
            continue;
        }
        if (causes != 0)
            return;
        first->name = model_new_name(m, runtime, first->spec.kind, (int)(first - m->op));
        model_admit(m, lease, (int)(first - m->op));
    }
}

void
model_enter(model *m, int runtime, size_t budget, bool drive)
{
    model_runtime *r = &m->runtime[runtime];

    follow_on(m, runtime, true);
    r->left = false;
    r->driving = drive;
    for (int i = 0; i < m->ops; i++)
        if (m->op[i].runtime == runtime)
            model_abandon(m, i, MODEL_DOOMED);
    for (int i = 0; i < m->names; i++)
        if (m->name[i].runtime == runtime && m->name[i].later) {
            m->name[i].later = false;
            if (!m->name[i].over && m->name[i].op >= 0)
                m->op[m->name[i].op].vague |= m->op[m->name[i].op].phase == MODEL_QUEUED;
            if (!m->name[i].over)
                model_change(m, i, ERRAND_REASON_EXPLICIT, 0);
        }
    if (!drive)
        model_fire_all(m, runtime);
    r->budget = budget;
    r->count = r->commands = 0;
    r->end = drive ? MODEL_NEWS : r->tail;
}

/* What was posted for a name: a cancel, or that its work is beyond its bound, or both. */
static void
take_posted(model *m, int name)
{
    model_name *n = &m->name[name];
    model_op *o = n->op >= 0 ? &m->op[n->op] : NULL;

    if (n->asks && !n->over)
        model_change(m, name, ERRAND_REASON_EXPLICIT, 0);
    if (o && o->beyond && o->phase < MODEL_DELIVERED) {
        o->asked = true;
        if (o->phase == MODEL_RUNNING)
            model_limit(m, n->op, MODEL_WORK, m->grace_ns);
    }
    n->posted = n->asks = false;
}

/* Take what nobody is shown until something else is first, or so many commands were taken. */
static void
take_cancels(model *m, model_runtime *r, size_t commands)
{
    while (r->commands < commands && r->head < r->tail && r->head < r->end &&
           (r->inbox[r->head].name >= 0 || r->inbox[r->head].node < -1)) {
        if (r->inbox[r->head].name >= 0)
            take_posted(m, r->inbox[r->head].name);
        else
            model_freed(m, model_back_node(r->inbox[r->head].node));
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
    bool running = false; /* nobody is shown that it is asked to end */

    for (int i = 0; i < m->ops; i++)
        running |= m->op[i].runtime == runtime && model_is_due(m, &m->op[i]) &&
                   (m->op[i].phase == MODEL_RUNNING ||
                    m->op[i].spec.resource_class == ERRAND_INTERRUPTIBLE_ASYNC);
    return m->runtime[runtime].driving || running ||
           (model_posted(m, runtime) && model_next_due(m, runtime) >= 0);
}

void
model_meanwhile(model *m, int runtime, const errand_snapshot *now)
{
    model_runtime *r = &m->runtime[runtime];

    for (int first;
         r->driving &&
         now->codes[ERRAND_CODE_DEADLINE] > r->sums.codes[ERRAND_CODE_DEADLINE] &&
         (first = model_next_due(m, runtime)) >= 0;)
        model_fire(m, first);
    for (size_t before = SIZE_MAX;
         r->driving && now->cancelled > r->sums.cancelled && before != r->head;) {
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
    model_rule(m, r->posted[node] && (r->closing || take(m, r, -1, node)),
               "a command's turn");
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
    model_rule(m, o->phase == MODEL_SETTLED || (r->closing && o->phase < MODEL_SETTLED),
               "a completion");
    model_rule(m, r->closing || (take(m, r, op, -1) && ++r->count <= r->budget),
               "a completion's turn");
    model_name *n = &m->name[o->name];
    bool reaped = o->spec.resource_class == ERRAND_QUARANTINED_BLOCKING && o->entry;
    bool late = (c->flags & ERRAND_LATE) != 0;
    if (!r->closing) {
        model_rule(m, o->outcome == c->outcome && o->code == c->code,
                   "its outcome and code");
        model_rule(m, late == (n->reason != ERRAND_REASON_NONE), "its lateness");
        model_rule(m, o->vague || o->asked == ((c->flags & ERRAND_CANCEL_REQUESTED) != 0),
                   "its cancel request");
        bool ran = c->outcome != ERRAND_CANCELLED &&
                   (c->code != ERRAND_CODE_DEADLINE || (o->overdue && !o->held));
        model_rule(
            m,
            !m->times ||
                (c->t_submit_ns == o->submit_ns && c->t_end_ns <= r->now_ns &&
                 (ran ? c->t_start_ns == o->start_ns && c->t_end_ns == o->end_ns
                      : c->t_start_ns >= o->submit_ns && c->t_end_ns >= o->end_ns)),
            "its times");
    }
    model_rule(m, !m->messages || (c->flags & ERRAND_MESSAGE_LOST) == 0,
               "its other flags");
    model_rule(m, r->closing || o->held == ((c->flags & ERRAND_HELD) != 0),
               "whether its body is held");
    o->phase = MODEL_DELIVERED;
    o->entry &= !reaped;
    n->over = !o->held; /* else its record lives on */
    if (o->wait == MODEL_REGISTERED)
        o->wait = MODEL_READY;
    *(reaped ? &r->sums.reaped : late ? &r->sums.late : &r->sums.resumed) += 1;
    for (int i = 0; i < 2; i++)
        model_sums_of(m, o, i)->drained++, model_sums_of(m, o, i)->owed--;
    for (int i = 0; i < m->ops && !o->held; i++)
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
    for (size_t before = SIZE_MAX;
         o->wait == MODEL_REGISTERED && !r->closing && before != r->head;) {
        before = r->head;
        take_cancels(m, r, r->commands + 1);
    }
    bool lost = reason == ERRAND_REASON_RESOURCE_LOST && o->vague &&
                o->outcome == ERRAND_CANCELLED; /* with its lease */
    model_rule(m, r->driving || r->closing, "a continuation outside a drive");
    model_rule(m, o->wait == MODEL_READY || (r->closing && o->wait == MODEL_REGISTERED),
               "a continuation");
    model_rule(m, r->closing || reason == m->name[o->name].reason || lost, "its reason");
    o->wait = MODEL_ENDED;
}

void
model_leave(model *m, int runtime, size_t count, size_t commands, bool nothing_left)
{
    model_runtime *r = &m->runtime[runtime];

    if (!r->left)
        follow_on(m, runtime, false);
    model_rule(m, count == r->count, "how many were drained");
    if (r->count < r->budget)
        take_cancels(m, r, commands);
    model_rule(m, commands == SIZE_MAX || commands == r->commands,
               "how many commands were taken");
    if (r->driving ? nothing_left : r->count < r->budget)
        model_rule(m, r->head == r->tail || r->head == r->end,
                   "nothing is left in the inbox");
    for (int i = 0; i < m->ops && r->driving && nothing_left; i++)
        model_rule(m,
                   m->op[i].runtime != runtime ||
                       (m->op[i].wait != MODEL_READY && !model_is_due(m, &m->op[i])),
                   "nothing is left to resume or to end");
    r->driving = false;
}

void
model_rests(model *m, int runtime, bool quiescent, bool inbox_needed, uint64_t next_ns)
{
    const errand_snapshot *sums = &m->runtime[runtime].sums;
    uint64_t owed = sums->owed + sums->held, first = UINT64_MAX;
    bool waits = false, entries = false;

    for (int i = 0; i < m->ops; i++) {
        const model_op *o = &m->op[i];
        if (o->runtime != runtime)
            continue;
        waits |= o->wait == MODEL_REGISTERED;
        entries |= o->entry;
        if ((o->phase == MODEL_QUEUED || o->phase == MODEL_RUNNING) && o->due_ns < first)
            first = o->due_ns;
    }
    model_rule(m, quiescent == (owed == 0 && !waits && !entries), "quiescent or idle");
    model_rule(m, quiescent || inbox_needed == (owed != 0),
               "whether the inbox is needed");
    model_rule(m, entries || next_ns == first, "the next deadline");
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
    model_op *o = model_op_at(m, op, MODEL_QUEUED);
    bool bypass = false;

    model_rule(m, o != NULL, "a body may run");
    if (o == NULL)
        return;
    for (int i = 0; i < m->ops; i++) {
        const model_op *other = &m->op[i];
        if ((m->picked != 0 && other->order > m->picked) ||
            other->phase != MODEL_QUEUED || other->lease != o->lease ||
            (other->spec.resource_class == ERRAND_QUARANTINED_BLOCKING) !=
                (o->spec.resource_class == ERRAND_QUARANTINED_BLOCKING))
            continue;
        model_rule(m,
                   other->spec.priority != o->spec.priority || other->order >= o->order,
                   "first come");
        bypass |= rank(other) < rank(o);
    }
    model_lease *l = &m->lease[o->lease];
    model_rule(m, !bypass || l->since_bypass >= 15, "a higher priority goes first");
    l->since_bypass = bypass ? 0 : l->since_bypass + 1;
    o->phase = MODEL_RUNNING;
    o->start_ns = m->runtime[o->runtime].now_ns;
}

void
model_polled(model *m, int op)
{
    model_op *o = model_op_at(m, op, MODEL_RUNNING);

    if (m->op[op].runtime == MODEL_RUNTIMES || (m->op[op].held && !m->op[op].back))
        return; /* it was begun, and settled before its first poll */
    model_rule(m, o && (!o->pending || o->woken || m->runtime[o->runtime].closing),
               "a poll");
    if (o)
        o->pending = o->woken = false;
}

void
model_ended(model *m, int op, int32_t answer)
{
    bool panicked = answer == INT32_MIN;

    if (m->op[op].runtime == MODEL_RUNTIMES)
        return; /* nobody hears of it any more */
    if (m->op[op].held) {
        model_back(m, op);
        return;
    }
    model_settle(m, op,
                 answer == 0 ? ERRAND_COMPLETED
                 : panicked  ? ERRAND_PANICKED
                             : ERRAND_FAILED,
                 answer == 0         ? ERRAND_CODE_NONE
                 : panicked          ? ERRAND_CODE_PANIC
                 : m->op[op].overdue ? ERRAND_CODE_DEADLINE
                                     : ERRAND_CODE_JOB);
}

void
model_hooked(model *m, int op, bool reap, errand_hook_answer answer)
{
    model_op *o = &m->op[op];

    model_rule(m, reap ? o->entry : !o->hooked, reap ? "a reap" : "a cancel hook");
    o->hooked = true;
    o->entry = answer != ERRAND_HOOK_REAPED;
}

void
model_followed(model *m, int parent, const errand_spec *spec, errand_status got)
{
    if (model_answered(m, "follow", CAUSE(model_is_bad(spec), EINVAL), 0, got))
        m->op[model_new_op(m, m->op[parent].runtime, spec, MODEL_FOLLOWS)].parent =
            parent;
}

void
model_stepped(model *m, int executor, bool budget_left)
{
    for (int i = 0; i < m->ops && budget_left; i++) {
        const model_op *o = &m->op[i];
        bool waits = o->phase == MODEL_QUEUED ||
                     (o->phase == MODEL_RUNNING && o->pending && o->woken);
        model_rule(m, !waits || m->lease[o->lease].executor != executor,
                   "a step takes what there is");
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
        if (o->phase == MODEL_RUNNING && !o->pending)
            continue; /* its body runs, on another thread */
        o->woken = o->vague = true;
        if (o->phase == MODEL_QUEUED)
            model_change(m, o->name, ERRAND_REASON_SHUTDOWN, 0);
        else if (!before) /* pending, and dropped */
            model_settle(m, i, ERRAND_CANCELLED, ERRAND_CODE_CANCELLED);
    }
    if (before)
        model_fire_all(m, m->lease[lease].runtime);
}

void
model_closing(model *m, int runtime)
{
    m->runtime[runtime].closing = true;
    model_fire_all(m, runtime);
}

/* The runtime has ended: what it had is foreign to the next one. */
void
model_closed(model *m, int runtime, const errand_report *report)
{
    model_runtime *r = &m->runtime[runtime];
    const errand_snapshot *a = &report->accounts;
    uint64_t entries = 0, running = 0, held = 0;

    model_rule(m, a->accepted == r->sums.accepted && a->drained >= r->sums.drained,
               "the report's sums");
    model_rule(m,
               report->undeliverable == a->accepted - a->drained &&
                   a->queued + a->running + a->undrained == 0,
               "the report's law");
    for (int i = 0; i < m->ops; i++) {
        const model_op *o = &m->op[i];
        bool runs = o->runtime == runtime && o->phase == MODEL_RUNNING && !o->pending;
        entries += (o->runtime == runtime && o->entry) || runs; /* the end cancels it */
        held += o->runtime == runtime && o->held && !o->back;
        running += runs;
    }
    model_rule(m, report->entries <= entries, "the report's entries");
    model_rule(m, report->live_waits + report->live_tasks == 0,
               "the report names nothing that lives");
    model_rule(m, report->held == held, "the report's bodies that are held");
    model_rule(m, report->running == running && report->undeliverable == running,
               "the report's bodies that run");
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
