/* SPDX-License-Identifier: MIT */
/* Design notes: a verb takes its arguments from three bytes, makes the call, tells the model
 * what was answered, and keeps what it got.  A token's register is what the program holds; a
 * copied register makes stale copies. */
#include <string.h>
#include "play.h"

static play_token *
reg(play *p, int sort, unsigned number)
{
    return &p->token[sort][number % PLAY_REGISTERS];
}

bool
play_has_room(const play *p, int ops)
{
    /* Each operation may have a follower, and names are not taken back. */
    return p->ops + ops * 2 + 16 < MODEL_OPS && p->names + p->ops + ops * 2 + 16 < MODEL_OPS;
}

/* One of the last names, sometimes with a field that is not its own. */
static int
pick_name(play *p, int runtime, unsigned b, unsigned c, errand_identity *out_identity)
{
    int name = p->names - 1 - (int)(b % (p->names < 24 ? (unsigned)p->names : 24u));

    while (p->name[name].identity.operation == 0)
        name--; /* a follower's, which was not seen yet; the first is none */
    *out_identity = p->name[name].identity;
    if (c < 224 || out_identity->runtime != p->runtime_id[runtime])
        return name;
    switch (c % 4) {
    case 0: out_identity->wait += 100000; break;
    case 1: out_identity->generation += 100000; break;
    case 2: out_identity->operation += 1000; break;
    default: out_identity->kind ^= 4; break;
    }
    return -1;
}

static void
check_number(play *p, int runtime, const errand_identity *identity)
{
    if (!p->judged && identity->operation > p->operations[runtime])
        p->operations[runtime] = identity->operation - 1; /* followers have some, too */
    if (identity->operation != ++p->operations[runtime] || identity->runtime != p->runtime_id[runtime] ||
        identity->wait == 0 || identity->generation == 0)
        play_fail(p, "operation number %llu, not %llu", (unsigned long long)identity->operation,
                  (unsigned long long)p->operations[runtime]);
}

static void
issue(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1;
    uint32_t kind = b == 255 ? 0 : 1 + b % 3;
    errand_identity identity;

    (void)c;
    if (!play_has_room(p, 1))
        return;
    errand_status status = errand_issue(p->runtime[runtime], kind, &p->name[p->names], &identity);
    if (status == ERRAND_OK) {
        check_number(p, runtime, &identity);
        play_new_name(p, &identity, -1);
    }
    PLAY_MODEL(p, model_issue(&p->model, runtime, kind, status));
    play_said(p, "issue", status, p->operations[runtime]);
}

static void
retire(play *p, unsigned a, unsigned b, unsigned c)
{
    errand_identity identity;

    if (p->names == 0)
        return;
    int name = pick_name(p, a & 1, b, c, &identity);
    errand_status status = errand_retire(p->runtime[a & 1], &identity);
    PLAY_MODEL(p, model_retire(&p->model, a & 1, name, status));
    play_said(p, "retire", status, (uint64_t)name);
}

static void
prepare(play *p, unsigned a, unsigned b, unsigned c)
{
    if (!play_has_room(p, 1))
        return;
    play_op *op = play_new_op(p, a & 1, (uint8_t)a, (uint8_t)b, (uint8_t)c);
    errand_prepared prepared;
    errand_status status = errand_prepare(p->runtime[a & 1], &op->spec, &prepared);
    PLAY_MODEL(p, model_prepare(&p->model, a & 1, &op->spec, status));
    if (status == ERRAND_OK) {
        play_token *token = reg(p, PLAY_PREPARED, a >> 1);
        token->op = op->index;
        token->is.prepared = prepared;
        op->owned = true;
        p->ops++;
        if (errand_prepared_kind(&prepared) != op->spec.kind)
            play_fail(p, "a prepared operation of another kind");
    }
    play_said(p, "prepare", status, (uint64_t)op->index);
}

static void
bind(play *p, unsigned a, unsigned b, unsigned c)
{
    play_token *from = reg(p, PLAY_PREPARED, a >> 1), *to = reg(p, PLAY_BINDING, a >> 4);
    errand_identity identity;
    errand_binding binding;
    int op = from->op;

    if (p->names == 0)
        return;
    int name = pick_name(p, a & 1, b, c, &identity);
    errand_status status = errand_bind(p->runtime[a & 1], &identity, &from->is.prepared, &binding);
    PLAY_MODEL(p, model_bind(&p->model, a & 1, name, op, status));
    play_said(p, "bind", status, (uint64_t)op << 16 | (uint16_t)name);
    if (status != ERRAND_OK || name < 0 || op < 0)
        return;
    from->op = -1;
    to->op = op;
    to->is.binding = binding;
    p->op[op].name = name;
    p->name[name].op = op;
}

static void
split(play *p, unsigned a, unsigned b, unsigned c)
{
    play_token *from = reg(p, PLAY_BINDING, a), *wait = reg(p, PLAY_WAIT, b),
               *submission = reg(p, PLAY_SUBMISSION, c);
    errand_wait new_wait;
    errand_submission new_submission;
    int op = from->op;
    errand_status status = errand_split(&from->is.binding, &new_wait, &new_submission);

    PLAY_MODEL(p, model_split(&p->model, op, status));
    play_said(p, "split", status, (uint64_t)op);
    if (status != ERRAND_OK)
        return;
    from->op = -1;
    wait->op = submission->op = op;
    wait->is.wait = new_wait;
    submission->is.submission = new_submission;
}

static void
await(play *p, unsigned a, unsigned b, unsigned c)
{
    play_token *token = reg(p, PLAY_WAIT, a);
    errand_continuation continuation = { 0 };
    int op = token->op;

    (void)b, (void)c;
    if (op >= 0)
        continuation = play_continuation(&p->op[op]);
    else
        continuation = play_continuation(&p->op[0]); /* for a token that cannot take it */
    errand_status status = errand_await(&token->is.wait, &continuation);
    PLAY_MODEL(p, model_await(&p->model, op, status));
    play_said(p, "await", status, (uint64_t)op);
    if (status == ERRAND_OK && op >= 0) {
        p->op[op].continued = true;
        token->op = -1;
    }
}

static void
abandon(play *p, unsigned a, unsigned b, unsigned c)
{
    (void)c;
    static const model_phase stages[PLAY_SORTS] = { MODEL_PREPARED, MODEL_BOUND, MODEL_FOLLOWS,
                                                    MODEL_SPLIT };
    play_token *token = reg(p, a % PLAY_SORTS, b);

    PLAY_MODEL(p, model_abandon(&p->model, token->op, stages[a % PLAY_SORTS]));
    switch (a % PLAY_SORTS) {
    case PLAY_PREPARED: errand_prepared_abandon(&token->is.prepared); break;
    case PLAY_BINDING: errand_binding_abandon(&token->is.binding); break;
    case PLAY_WAIT: errand_wait_abandon(&token->is.wait); break;
    default:
        errand_submission_abandon(&token->is.submission);
    }
    play_event(p, "abandon", token->op, a % PLAY_SORTS);
    token->op = -1;
    memset(&token->is, 0, sizeof token->is);
}

static void
submit(play *p, unsigned a, unsigned b, unsigned c)
{
    play_token *token = reg(p, PLAY_SUBMISSION, b);
    int lease = a >= 252 || p->lease[a & 3] == NULL ? -1 : (int)(a & 3), op = token->op;
    errand_status status = errand_submit(lease < 0 ? NULL : p->lease[lease], &token->is.submission);

    (void)c;
    PLAY_MODEL(p, model_submit(&p->model, lease, op, status));
    play_said(p, "submit", status, (uint64_t)op);
    if (status == ERRAND_OK)
        token->op = -1;
}

static void
submit_many(play *p, unsigned a, unsigned b, unsigned c)
{
    errand_submission submissions[PLAY_REGISTERS];
    size_t count = 1 + c % PLAY_REGISTERS, accepted = 99;
    int lease = a >= 252 || p->lease[a & 3] == NULL ? -1 : (int)(a & 3);

    for (size_t i = 0; i < count; i++)
        submissions[i] = reg(p, PLAY_SUBMISSION, b + (unsigned)i)->is.submission;
    errand_status status = errand_submit_many(lease < 0 ? NULL : p->lease[lease], submissions, count,
                                              &accepted);
    if (accepted > count || (status == ERRAND_OK && accepted != count))
        play_fail(p, "submit_many accepted %zu of %zu", accepted, count);
    for (size_t i = 0; i < count; i++) {
        play_token *token = reg(p, PLAY_SUBMISSION, b + (unsigned)i);
        bool same = memcmp(&token->is.submission, &submissions[i], sizeof submissions[i]) == 0;
        if (i <= accepted && !(i == accepted && lease < 0 && status == ERRAND_OK))
            PLAY_MODEL(p, model_submit(&p->model, lease, token->op, i < accepted ? ERRAND_OK : status));
        if (same == (i < accepted))
            play_fail(p, "submit_many left item %zu of %zu %s", i, accepted, same ? "as it was" : "moved");
        token->is.submission = submissions[i];
        if (i < accepted)
            token->op = -1;
    }
    play_said(p, "submit_many", status, accepted);
}

static void
start(play *p, unsigned a, unsigned b, unsigned c)
{
    int lease = p->lease[a & 3] == NULL ? -1 : (int)(a & 3);

    if (!play_has_room(p, 1))
        return;
    play_op *op = play_new_op(p, a & 1, (uint8_t)a, (uint8_t)b, (uint8_t)c);
    errand_identity identity;
    errand_status status = errand_start(lease < 0 ? NULL : p->lease[lease], &op->spec,
                                        &p->name[p->names], &identity);
    if (status == ERRAND_OK) {
        check_number(p, a & 1, &identity);
        op->name = p->names;
        op->owned = true;
        play_new_name(p, &identity, p->ops++);
    }
    PLAY_MODEL(p, model_start(&p->model, lease, &op->spec, status));
    play_said(p, "start", status, (uint64_t)op->index);
}

/* Issue, prepare, bind, split, submit, and await for even c. */
static void
whole(play *p, unsigned a, unsigned b, unsigned c)
{
    unsigned r = a & 1, number = b & 7;

    issue(p, r, a % 252, 0);
    prepare(p, r | number << 1 | (a % 3) << 4, b, c);
    p->token[PLAY_PREPARED][number].op >= 0
        ? bind(p, r | number << 1 | number << 4, 0, 0)
        : (void)0;
    split(p, number, number, number);
    if (c % 3 == 0)
        await(p, number, 0, 0);
    if (a & 64)
        submit(p, a & 3, number, 0);
    if (c % 3 == 1)
        await(p, number, 0, 0);
}

static void
cancel(play *p, unsigned a, unsigned b, unsigned c)
{
    errand_identity identity;
    errand_cancel_answer answer = 0;
    errand_reason reason = a >= 254 ? 0 : 1 + (a >> 1) % 7;

    if (p->names == 0)
        return;
    int name = pick_name(p, a & 1, b, c, &identity);
    errand_status status = errand_cancel(p->runtime[a & 1], &identity, reason, &answer);
    PLAY_MODEL(p, model_cancel(&p->model, a & 1, name, reason, status, answer));
    play_said(p, "cancel", status, (uint64_t)answer << 32 | (uint16_t)name);
}

static void
post(play *p, unsigned a, unsigned b, unsigned c)
{
    play_node *node = &p->node[a & 1][b % PLAY_NODES];

    (void)c;
    errand_status status = errand_post(p->inbox[a & 1], &node->command);
    PLAY_MODEL(p, model_post(&p->model, a & 1, -1, node->index, status));
    play_said(p, "post", status, (uint64_t)node->index);
}

static void
post_cancel(play *p, unsigned a, unsigned b, unsigned c)
{
    errand_identity identity;

    if (p->names == 0 || model_tangled(&p->model, a & 1))
        return;
    /* Another thread sees a record's generation only: that one tells it from any other. */
    int name = pick_name(p, a & 1, b, a & 4 || c < 224 ? c : 225, &identity);
    if (a & 4) {
        errand_status status = errand_cancel_later(p->runtime[a & 1], &identity);
        PLAY_MODEL(p, model_cancel_later(&p->model, a & 1, name, status));
        play_said(p, "cancel_later", status, (uint64_t)name);
        return;
    }
    errand_status status = errand_post_cancel(p->inbox[a & 1], &identity);
    PLAY_MODEL(p, model_post(&p->model, a & 1, name, -1, status));
    play_said(p, "post_cancel", status, (uint64_t)name);
}

static void
step(play *p, unsigned a, unsigned b, unsigned c)
{
    size_t budget = b >= 224 ? 1000 : 1 + b % 6, count = 77;
    bool outer = p->at_home;

    (void)c;
    if (p->in_body) {
        errand_status status = errand_manual_step(p->executor[p->stepping], 1, &count);
        if (p->judged && status != ERRAND_EBUSY)
            play_fail(p, "a step inside a step");
        return;
    }
    p->entered = 0;
    p->at_home = false;
    p->stepping = a & 1;
    errand_status status = errand_manual_step(p->executor[a & 1], budget, &count);
    p->at_home = outer;
    if (status != ERRAND_OK || count != p->entered || count > budget)
        play_fail(p, "a step of %zu answers %s and %zu, not %llu", budget, errand_status_name(status),
                  count, (unsigned long long)p->entered);
    PLAY_MODEL(p, model_stepped(&p->model, a & 1, count < budget));
    play_said(p, "step", status, count);
}

/* A handler left by longjmp: busy until the host says so. */
static void
unwind(play *p, int runtime)
{
    size_t count;
    model_runtime *r = &p->model.runtime[runtime];

    p->depth = 0;
    p->leaving = 0;
    p->busy[runtime] = false;
    p->at_home = false;
    errand_status busy = errand_drain(p->runtime[runtime], 1, play_heard, p, &count);
    errand_status status = errand_runtime_unwound(p->runtime[runtime]);
    if (busy != ERRAND_EBUSY || status != ERRAND_OK ||
        errand_runtime_unwound(p->runtime[runtime]) != ERRAND_EMISUSE)
        play_fail(p, "unwound answers %s and %s", errand_status_name(busy), errand_status_name(status));
    r->budget = r->count;
    r->left = true;
    PLAY_MODEL(p, model_leave(&p->model, runtime, r->count, r->commands, false));
    play_said(p, "unwound", status, 0);
}

static void
drain(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1;
    size_t budget = b >= 192 ? SIZE_MAX : 1 + b % 5, count = 0;

    (void)c;
    if (p->in_body)
        return;
    if (p->busy[runtime]) {
        if (errand_drain(p->runtime[runtime], budget, play_heard, p, &count) != ERRAND_EBUSY)
            play_fail(p, "a drain inside a drain");
        return;
    }
    PLAY_MODEL(p, model_enter(&p->model, runtime, budget, false));
    p->busy[runtime] = true;
    p->at_home = p->depth == 0;
    if (p->depth == 0 && setjmp(p->home) != 0) {
        unwind(p, runtime);
        return;
    }
    errand_status status = errand_drain(p->runtime[runtime], budget, play_heard, p, &count);
    p->busy[runtime] = false;
    p->at_home = false;
    if (status != ERRAND_OK)
        play_fail(p, "drain answers %s", errand_status_name(status));
    PLAY_MODEL(p, model_leave(&p->model, runtime, count, SIZE_MAX, false));
    play_said(p, "drain", status, count);
}

static void
drive(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1;
    errand_budget budget = { .struct_size = sizeof budget, .items = 1 + b % 5 };
    errand_turn turn = { 0 };

    if (p->in_body)
        return;
    if (p->busy[runtime]) {
        if (errand_drive(p->runtime[runtime], NULL, &turn) != ERRAND_EBUSY)
            play_fail(p, "a drive inside a drive");
        return;
    }
    if (model_tangled(&p->model, runtime)) {
        drain(p, a, 255, c);
        return;
    }
    PLAY_MODEL(p, model_enter(&p->model, runtime, SIZE_MAX, true));
    p->busy[runtime] = true;
    p->at_home = p->depth == 0;
    if (p->depth == 0 && setjmp(p->home) != 0) {
        unwind(p, runtime);
        return;
    }
    errand_status status = errand_drive(p->runtime[runtime], b >= 96 ? NULL : &budget, &turn);
    p->busy[runtime] = false;
    p->at_home = false;
    if (status != ERRAND_OK)
        play_fail(p, "drive answers %s", errand_status_name(status));
    bool rest = turn.kind == ERRAND_TURN_IDLE || turn.kind == ERRAND_TURN_QUIESCENT;
    uint64_t items = (uint64_t)turn.completions + turn.timers + turn.visits + turn.cleanups + turn.commands;
    if (b < 96 && items > budget.items)
        play_fail(p, "a drive of %u items does %llu", budget.items, (unsigned long long)items);
    if (p->trace)
        play_event(p, "turn", (int)turn.kind, items);
    play_meanwhile(p, runtime);
    PLAY_MODEL(p, model_leave(&p->model, runtime, turn.completions, turn.commands, rest));
    play_said(p, "drive", status, turn.completions);
}

static void
clock(play *p, unsigned a, unsigned b, unsigned c)
{
    (void)c;
    if (model_tangled(&p->model, a & 1))
        return;
    errand_status status = errand_testing_clock(p->runtime[a & 1], b & 15);
    if (status != (p->judged ? ERRAND_OK : ERRAND_EUNSUPPORTED))
        play_fail(p, "clock answers %s", errand_status_name(status));
    p->model.runtime[a & 1].now_ns += b & 15;
    if (p->judged && errand_runtime_now(p->runtime[a & 1]) != p->model.runtime[a & 1].now_ns)
        play_fail(p, "the clock reads otherwise");
    play_said(p, "clock", status, b & 15);
}

static void
wake(play *p, unsigned a, unsigned b, unsigned c)
{
    (void)a, (void)c;
    if (p->ops == 0)
        return;
    int op = p->ops - 1 - (int)(b % (p->ops < 16 ? (unsigned)p->ops : 16u));
    if (p->op[op].waker == NULL)
        return;
    p->model.op[op].woken = true;
    errand_waker_wake(p->op[op].waker);
    play_event(p, "wake", op, 0);
}

static void
copy(play *p, unsigned a, unsigned b, unsigned c)
{
    *reg(p, a % PLAY_SORTS, b) = *reg(p, a % PLAY_SORTS, c);
}

static void
detach(play *p, unsigned a, unsigned b, unsigned c)
{
    int lease = a & 3;

    (void)c;
    if (p->lease[lease] == NULL || b < 128) {
        play_attach(p, lease);
        return;
    }
    if (p->in_body)
        return;
    play_close_lease(p, lease);
}

static void
close_runtime(play *p, unsigned a, unsigned b, unsigned c)
{
    (void)c;
    if (p->depth > 0 || b < 64)
        return;
    play_close_runtime(p, a & 1, b & 1 ? ERRAND_SHUTDOWN_RUN : ERRAND_SHUTDOWN_QUIET);
    if (!play_failed(p))
        play_open_runtime(p, a & 1);
}

static const struct {
    const char *name;
    unsigned weight;
    void (*call)(play *p, unsigned a, unsigned b, unsigned c);
} verbs[] = {
    { "issue", 4, issue },       { "retire", 2, retire },
    { "prepare", 4, prepare },   { "bind", 5, bind },
    { "split", 5, split },       { "await", 5, await },
    { "abandon", 4, abandon },   { "submit", 6, submit },
    { "submit_many", 2, submit_many }, { "start", 8, start },
    { "whole", 6, whole },       { "cancel", 6, cancel },
    { "post", 2, post },         { "post_cancel", 3, post_cancel },
    { "step", 10, step },        { "drain", 6, drain },
    { "drive", 8, drive },       { "clock", 3, clock },
    { "wake", 3, wake },         { "copy", 2, copy },
    { "detach", 1, detach },     { "close_runtime", 1, close_runtime },
};

void
play_call(play *p, const uint8_t *call)
{
    unsigned sum = 0, pick, i = 0;

    for (size_t j = 0; j < sizeof verbs / sizeof verbs[0]; j++)
        sum += verbs[j].weight;
    for (pick = call[0] % sum; pick >= verbs[i].weight; i++)
        pick -= verbs[i].weight;
    p->verb = verbs[i].name;
    verbs[i].call(p, call[1], call[2], call[3]);
}
