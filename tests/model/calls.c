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
    return p->ops + ops * 2 + 16 < MODEL_OPS &&
           p->names + p->ops + ops * 2 + 16 < MODEL_OPS;
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
    case 0:
        out_identity->wait += 100000;
        break;
    case 1:
        out_identity->generation += 100000;
        break;
    case 2:
        out_identity->operation += 1000;
        break;
    default:
        out_identity->kind ^= 4;
        break;
    }
    return -1;
}

static void
check_number(play *p, int runtime, const errand_identity *identity)
{
    if (!p->judged && identity->operation > p->operations[runtime])
        p->operations[runtime] = identity->operation - 1; /* followers have some, too */
    if (identity->operation != ++p->operations[runtime] ||
        identity->runtime != p->runtime_id[runtime] || identity->wait == 0 ||
        identity->generation == 0)
        play_fail(p, "operation number %llu, not %llu",
                  (unsigned long long)identity->operation,
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
    errand_status status =
        errand_issue(p->runtime[runtime], kind, &p->name[p->names], &identity);
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
    errand_status status =
        errand_bind(p->runtime[a & 1], &identity, &from->is.prepared, &binding);
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
    errand_continuation continuation = {0};
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
    static const model_phase stages[PLAY_SORTS] = {MODEL_PREPARED, MODEL_BOUND,
                                                   MODEL_FOLLOWS, MODEL_SPLIT};
    play_token *token = reg(p, a % PLAY_SORTS, b);

    if (a % PLAY_SORTS == PLAY_SUBMISSION && c < 64) {
        int op = token->op;
        errand_status status = errand_abandon_later(&token->is.submission);
        PLAY_MODEL(p, model_abandon_later(&p->model, op, status));
        play_said(p, "abandon_later", status, (uint64_t)op);
        if (status == ERRAND_OK)
            token->op = -1;
        return;
    }
    PLAY_MODEL(p, model_abandon(&p->model, token->op, stages[a % PLAY_SORTS]));
    switch (a % PLAY_SORTS) {
    case PLAY_PREPARED:
        errand_prepared_abandon(&token->is.prepared);
        break;
    case PLAY_BINDING:
        errand_binding_abandon(&token->is.binding);
        break;
    case PLAY_WAIT:
        errand_wait_abandon(&token->is.wait);
        break;
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
    errand_status status =
        errand_submit(lease < 0 ? NULL : p->lease[lease], &token->is.submission);

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
    errand_status status = errand_submit_many(lease < 0 ? NULL : p->lease[lease],
                                              submissions, count, &accepted);
    if (accepted > count || (status == ERRAND_OK && accepted != count))
        play_fail(p, "submit_many accepted %zu of %zu", accepted, count);
    for (size_t i = 0; i < count; i++) {
        play_token *token = reg(p, PLAY_SUBMISSION, b + (unsigned)i);
        bool same =
            memcmp(&token->is.submission, &submissions[i], sizeof submissions[i]) == 0;
        if (i <= accepted && !(i == accepted && lease < 0 && status == ERRAND_OK))
            PLAY_MODEL(p, model_submit(&p->model, lease, token->op,
                                       i < accepted ? ERRAND_OK : status));
        if (same == (i < accepted))
            play_fail(p, "submit_many left item %zu of %zu %s", i, accepted,
                      same ? "as it was" : "moved");
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
    p->token[PLAY_PREPARED][number].op >= 0 ? bind(p, r | number << 1 | number << 4, 0, 0)
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
    if (!p->posts)
        return;
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
    if (!p->posts)
        return;
    errand_status status = errand_post_cancel(p->inbox[a & 1], &identity);
    PLAY_MODEL(p, model_post(&p->model, a & 1, name, -1, status));
    play_said(p, "post_cancel", status, (uint64_t)name);
}

/* A completion that nobody owes: it wakes nobody and is counted nowhere. */
static void
forge(play *p, unsigned a, unsigned b, unsigned c)
{
    errand_identity identity;
    bool woke = true;

    if (p->names == 0 || p->depth > 0 || pick_name(p, a & 1, b, 224 | c, &identity) >= 0)
        return;
    errand_payload payload = play_payload(p);
    errand_status status = errand_testing_deliver(p->runtime[a & 1], &identity,
                                                  ERRAND_COMPLETED, payload, &woke);
    if (status == ERRAND_OK && woke)
        play_fail(p, "a forged completion wakes somebody");
    play_said(p, "forge", status, 0);
}

static void
copy(play *p, unsigned a, unsigned b, unsigned c)
{
    *reg(p, a % PLAY_SORTS, b) = *reg(p, a % PLAY_SORTS, c);
}

static const struct {
    const char *name;
    unsigned weight;
    void (*call)(play *p, unsigned a, unsigned b, unsigned c);
} verbs[] = {
    {"issue", 4, issue},
    {"retire", 2, retire},
    {"prepare", 4, prepare},
    {"bind", 5, bind},
    {"split", 5, split},
    {"await", 5, await},
    {"abandon", 4, abandon},
    {"submit", 6, submit},
    {"submit_many", 2, submit_many},
    {"start", 8, start},
    {"whole", 6, whole},
    {"cancel", 6, cancel},
    {"post", 2, post},
    {"post_cancel", 3, post_cancel},
    {"step", 10, play_step},
    {"drain", 6, play_drain},
    {"drive", 8, play_drive},
    {"clock", 3, play_clock},
    {"wake", 3, play_wake},
    {"copy", 2, copy},
    {"forge", 1, forge},
    {"look", 2, play_look},
    {"spawn", 3, play_spawn},
    {"nudge", 3, play_nudge},
    {"tree", 2, play_tree},
    {"hand_over", 1, play_hand_over},
    {"hold", 4, play_hold},
    {"park", 2, play_park},
    {"trap", 1, play_set_trap},
    {"slip", 1, play_slip},
    {"detach", 1, play_detach},
    {"end_runtime", 1, play_end_runtime},
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
