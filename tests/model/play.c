/* SPDX-License-Identifier: MIT */
/* Design notes: after each call of the outermost level the law, the model's accounts and the
 * count of everything dropped are compared; inside callbacks only the law, because a drain or
 * drive in progress may be further than what it has shown. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "play.h"

void
play_fail(play *p, const char *format, ...)
{
    va_list arguments;
    char text[256];

    if (play_failed(p))
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(p->result->text, sizeof p->result->text, "call %zu (%s): %s",
             (p->at - PROGRAM_HEAD) / PROGRAM_CALL, p->verb, text);
    if (p->trace)
        fprintf(stderr, "DISAGREES: %s\n", p->result->text);
}

bool
play_failed(const play *p)
{
    return p->result->text[0] != '\0';
}

static void
fold(play *p, uint64_t word)
{
    p->result->log = (p->result->log ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    p->result->log ^= p->result->log >> 29;
}

static void
judge(play *p)
{
    char wanted[200] = "";
    size_t used = 0;

    if (!p->judged || p->model.why == NULL || play_failed(p))
        return;
    for (unsigned i = 0; i < 25; i++)
        if (p->model.wanted >> i & 1)
            used += (size_t)snprintf(wanted + used, sizeof wanted - used, " %s",
                                     errand_status_name((errand_status)i));
    play_fail(p, "against the model: %s (the last status wanted was%s)", p->model.why,
              wanted);
}

void
play_said(play *p, const char *call, errand_status status, uint64_t more)
{
    if (p->trace)
        fprintf(stderr, "%*s%s %llx -> %s\n", p->depth * 4 + 2, "", call,
                (unsigned long long)more, errand_status_name(status));
    fold(p, (uint64_t)status << 56 ^ more);
    judge(p);
}

void
play_event(play *p, const char *event, int op, uint64_t more)
{
    if (p->trace)
        fprintf(stderr, "%*s. %s of %d: %llx\n", p->depth * 4 + 2, "", event, op,
                (unsigned long long)more);
    for (const char *c = event; *c != '\0'; c++)
        fold(p, (uint64_t)*c);
    fold(p, (uint64_t)op << 48 ^ more);
    judge(p);
}

void
play_sync(play *p)
{
    while (p->names < p->model.names) {
        int op = p->model.name[p->names].op;
        p->op[op].name = p->names;
        p->operations[p->op[op].runtime]++;
        play_new_name(p, NULL, op);
    }
}

/* A drive shows the model what it did before this. */
void
play_meanwhile(play *p, int runtime)
{
    errand_snapshot snapshot = {0};

    if (!p->judged || p->closing)
        return;
    if (errand_runtime_snapshot(p->runtime[runtime], &snapshot) != ERRAND_OK)
        play_fail(p, "no snapshot");
    model_meanwhile(&p->model, runtime, &snapshot);
}

/* ---- what holds after every call ------------------------------------------------------------ */
static void
check_law(play *p, const errand_snapshot *s, bool whole)
{
    if (s->accepted !=
            s->queued + s->running + s->undrained + s->drained + s->undeliverable ||
        (whole && s->drained != s->resumed + s->late + s->reaped))
        play_fail(p,
                  "the law: accepted %llu, queued %llu, running %llu, undrained %llu, "
                  "drained %llu",
                  (unsigned long long)s->accepted, (unsigned long long)s->queued,
                  (unsigned long long)s->running, (unsigned long long)s->undrained,
                  (unsigned long long)s->drained);
}

static void
compare(play *p, const errand_snapshot *has, const errand_snapshot *wanted,
        const char *whose, int number)
{
    static const struct {
        const char *name;
        size_t offset;
    } terms[] = {
#define TERM(name) {#name, offsetof(errand_snapshot, name)}
        TERM(accepted),      TERM(queued),        TERM(running),   TERM(undrained),
        TERM(drained),       TERM(undeliverable), TERM(resumed),   TERM(late),
        TERM(reaped),        TERM(completed),     TERM(failed),    TERM(cancelled),
        TERM(panicked),      TERM(crashed),       TERM(held),      TERM(returned_late),
        TERM(messages_lost), TERM(owed),          TERM(codes[1]),  TERM(codes[2]),
        TERM(codes[3]),      TERM(codes[4]),      TERM(codes[15]), TERM(codes[16]),
#undef TERM
    };
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        uint64_t is =
            *(const uint64_t *)(const void *)((const char *)has + terms[i].offset);
        uint64_t should =
            *(const uint64_t *)(const void *)((const char *)wanted + terms[i].offset);
        if (is != should)
            play_fail(p, "%s %d: %s is %llu, not %llu", whose, number, terms[i].name,
                      (unsigned long long)is, (unsigned long long)should);
    }
}

static void
check_accounts(play *p)
{
    errand_snapshot s;

    for (int i = 0; i < MODEL_RUNTIMES + MODEL_LEASES && !play_failed(p); i++) {
        int lease = i - MODEL_RUNTIMES;
        memset(&s, 0, sizeof s);
        if (lease >= 0 && p->lease[lease] == NULL)
            continue;
        if ((lease < 0 ? errand_runtime_snapshot(p->runtime[i], &s)
                       : errand_lease_snapshot(p->lease[lease], &s)) != ERRAND_OK)
            play_fail(p, "no snapshot");
        check_law(p, &s, lease < 0);
        fold(p, s.accepted << 32 ^ s.drained << 16 ^ s.undrained << 8 ^ s.running);
        if (!p->judged || p->depth > 0)
            continue;
        errand_snapshot wanted = model_accounts(&p->model, i, lease);
        if (lease >= 0)
            wanted.resumed = s.resumed, wanted.late = s.late, wanted.reaped = s.reaped;
        if (!p->model.messages) /* few blocks: who finds none is nobody's promise */
            wanted.messages_lost = s.messages_lost;
        compare(p, &s, &wanted, lease < 0 ? "runtime" : "lease", lease < 0 ? i : lease);
    }
}

static void
check_count(play *p, const play_op *op, const char *what, int is, int least, int most)
{
    if (is < least || is > most)
        play_fail(p, "op %d: its %s ended %d times, not %d to %d", op->index, what, is,
                  least, most);
}

static void
check_drops(play *p)
{
    for (int i = 0; i < p->ops && !play_failed(p); i++) {
        const play_op *op = &p->op[i];
        const model_op *o = &p->model.op[i];
        bool cancelled =
            o->name >= 0 && p->model.name[o->name].reason != ERRAND_REASON_NONE;
        bool done = o->phase == MODEL_GONE || o->phase == MODEL_DELIVERED;
        int most = done, least = done && !op->left;
        if (o->runtime >= MODEL_RUNTIMES)
            continue; /* its runtime ended; that was checked then */
        bool held = o->held && !o->freed;
        check_count(p, op, "state", op->state_drops, least && !held, most && !held);
        if (op->spec.held_hook != NULL)
            check_count(p, op, "hook", op->hook_drops, least && !o->entry,
                        most ||
                            (op->reaps > 0 && !o->entry)); /* reaped before it ended */
        if (op->spec.held_decoder != NULL)
            check_count(p, op, "decoder", op->decoder_ends,
                        least || (cancelled && o->phase >= MODEL_QUEUED),
                        most || cancelled);
        if (o->held) /* what it made is dropped when it is back */
            least = most = o->back;
        check_count(p, op, "payload", op->payload_drops,
                    op->payloads * (least && o->wait != MODEL_READY),
                    op->payloads * most);
        check_count(p, op, "continuation", op->continuation_ends,
                    op->continued && o->wait == MODEL_ENDED,
                    op->continued && o->wait == MODEL_ENDED);
        check_count(p, op, "value", op->value_ends, 0, op->values);
        if (op->deferred != 0 && o->phase >= MODEL_SETTLED && (!o->held || o->back))
            play_fail(p, "op %d: a deferred cleanup ran not once", i);
        if (cancelled && op->decodes > 0 && o->wait != MODEL_ENDED && !done)
            play_fail(p, "op %d was cancelled and decoded", i);
    }
}

/* What goes with the runtime, also if a body still has the rest. */
static void
check_owners_parts(play *p, const play_op *op)
{
    check_count(p, op, "hook", op->hook_drops, op->spec.held_hook != NULL,
                op->spec.held_hook != NULL);
    check_count(p, op, "decoder", op->decoder_ends, op->spec.held_decoder != NULL,
                op->spec.held_decoder != NULL);
    check_count(p, op, "continuation", op->continuation_ends, op->continued,
                op->continued);
    check_count(p, op, "value", op->value_ends, op->values, op->values);
}

void
play_check_ended(play *p, play_op *op)
{
    check_owners_parts(p, op);
    check_count(p, op, "state", op->state_drops, 1, 1);
    check_count(p, op, "payload", op->payload_drops, op->payloads, op->payloads);
    if (op->deferred != 0)
        play_fail(p, "op %d: a deferred cleanup is left", op->index);
    errand_waker_abandon(&op->waker);
    op->owned = op->outlives = false;
}

static void
check_ended(play *p, int runtime)
{
    for (int i = 0; i < p->ops && !play_failed(p); i++) {
        play_op *op = &p->op[i];
        if (op->runtime != runtime || !op->owned || op->outlives)
            continue;
        op->outlives = p->hand.busy && p->hand.op == i;
        if (!op->outlives) {
            play_check_ended(p, op);
            continue;
        }
        check_owners_parts(p, op);
        check_count(p, op, "state", op->state_drops, 0, 0);
        check_count(p, op, "payload", op->payload_drops, 0, 0);
    }
}

/* Every drop that panicked is told: by a runtime, by its report, or by an executor (O76). */
static void
check_bursts(play *p)
{
    uint64_t told = p->told_bursts;
    errand_snapshot s = {0};
    errand_executor_snapshot e = {0};

    for (int i = 0; i < 2 && !play_failed(p); i++) {
        if ((p->runtime[i] != NULL &&
             errand_runtime_snapshot(p->runtime[i], &s) != ERRAND_OK) ||
            errand_executor_snapshot_read(p->executor[i], &e) != ERRAND_OK)
            play_fail(p, "no snapshot");
        told += (p->runtime[i] != NULL ? s.leaked : 0) + e.leaked;
    }
    if (told != p->bursts)
        play_fail(p, "%llu drops panicked, and %llu are told",
                  (unsigned long long)p->bursts, (unsigned long long)told);
}

/* ---- one call -------------------------------------------------------------------------------- */
static bool
next(play *p)
{
    if (p->at + PROGRAM_CALL > p->size || play_failed(p))
        return false;
    p->at += PROGRAM_CALL;
    p->result->calls++;
    const char *verb = p->verb;
    play_call(p, p->bytes + p->at - PROGRAM_CALL);
    judge(p);
    check_accounts(p);
    if (p->depth == 0)
        check_bursts(p);
    if (p->judged && p->depth == 0)
        check_drops(p);
    p->verb = verb;
    return true;
}

void
play_nested(play *p, int calls)
{
    if (p->depth >= 3 || p->closing)
        return;
    p->depth++;
    for (int i = 0; i < calls && next(p); i++)
        continue;
    p->depth--;
}

/* ---- begin and end --------------------------------------------------------------------------- */
void
play_attach(play *p, int lease)
{
    model_lease *l = &p->model.lease[lease];
    errand_lease *new_lease;
    bool was_open = p->lease[lease] != NULL;
    errand_status status = errand_attach(p->runtime[lease & 1], p->executor[lease >> 1],
                                         p->owed_max, &new_lease);

    if (status != (was_open ? ERRAND_EDUPLICATE : ERRAND_OK))
        play_fail(p, "attach answers %s", errand_status_name(status));
    if (status != ERRAND_OK)
        return;
    p->lease[lease] = new_lease;
    *l = (model_lease){.runtime = lease & 1,
                       .executor = lease >> 1,
                       .open = true,
                       .owed_max = p->owed_max};
    for (int i = 0; i < p->ops; i++)
        if (p->model.op[i].lease == lease)
            p->model.op[i].lease = MODEL_LEASES; /* of the one before */
    play_said(p, "attach", status, (uint64_t)lease);
}

void
play_close_lease(play *p, int lease)
{
    errand_report report = {0};

    if (p->busy[lease & 1]) {
        if (errand_lease_shutdown(&p->lease[lease], 0, &report) != ERRAND_EBUSY)
            play_fail(p, "a lease is shut down inside a drain");
        return;
    }
    PLAY_MODEL(p, model_detach(&p->model, lease, true));
    p->closing = true;
    errand_status status = errand_lease_shutdown(&p->lease[lease], 0, &report);
    p->closing = false;
    PLAY_MODEL(p, model_detach(&p->model, lease, false));
    if (status != ERRAND_OK || p->lease[lease] != NULL)
        play_fail(p, "lease shutdown answers %s", errand_status_name(status));
    check_law(p, &report.accounts, false);
    play_said(p, "lease shutdown", status, (uint64_t)lease);
}

void
play_open_runtime(play *p, int runtime)
{
    model_runtime *r = &p->model.runtime[runtime];
    uint8_t numbers = p->bytes[2];
    uint64_t left = UINT64_MAX;

    if (errand_runtime_create(&p->config, &p->runtime[runtime]) != ERRAND_OK ||
        (p->posts &&
         errand_inbox_open(p->runtime[runtime], &p->inbox[runtime]) != ERRAND_OK))
        play_fail(p, "no runtime");
    if (!p->judged && errand_trace(p->runtime[runtime], play_step_taken, p) != ERRAND_OK)
        play_fail(p, "no trace");
    p->runtime_id[runtime] = errand_runtime_id(p->runtime[runtime]);
    p->operations[runtime] = 0;
    if (numbers < 16) { /* one counter is near its end, or near where its low half is 0 */
        uint64_t next = UINT64_MAX - numbers / 4;
        left = UINT64_MAX - next + 1;
        p->operations[runtime] = numbers % 4 == 0 ? next - 1 : 0;
        if (numbers % 4 == 3)
            next = (UINT64_C(1) << 32) - numbers / 4, left = UINT64_MAX;
        if (errand_testing_counters(p->runtime[runtime], numbers % 4 == 1 ? next : 0,
                                    numbers % 4 >= 2 ? next : 0,
                                    numbers % 4 == 0 ? next : 0) != ERRAND_OK)
            play_fail(p, "no counters");
    }
    memset(r, 0, sizeof *r);
    r->now_ns = errand_runtime_now(p->runtime[runtime]);
    r->names_max = p->config.operations_max;
    r->numbers_left = left;
    for (int i = 0; i < PLAY_NODES; i++)
        p->node[runtime][i] = (play_node){
            {{NULL, NULL}, play_ran_command, play_dropped_command, &p->node[runtime][i]},
            p,
            i,
            runtime};
    for (int i = runtime; i < MODEL_LEASES; i += 2) {
        p->lease[i] = NULL;
        play_attach(p, i);
    }
}

void
play_close_runtime(play *p, int runtime, errand_shutdown_mode mode)
{
    errand_report report = {0};
    size_t posted = 0;

    if (!p->judged)
        play_close_tree(p, runtime);
    play_close_handles(p, runtime);
    p->closing = true;
    PLAY_MODEL(p, model_closing(&p->model, runtime));
    uint64_t limit_ns = !p->judged     ? UINT64_C(10000000000)
                        : p->hand.busy ? UINT64_C(200000) /* its body does not end */
                                       : UINT64_C(2000000);
    errand_status status = errand_runtime_shutdown(
        &p->runtime[runtime], errand_deadline_in(limit_ns), mode, &report);
    p->closing = false;
    if (status != ERRAND_OK || p->runtime[runtime] != NULL)
        play_fail(p, "shutdown answers %s", errand_status_name(status));
    check_law(p, &report.accounts, true);
    p->told_bursts += report.accounts.leaked;
    p->interrupted[runtime] = false;
    PLAY_MODEL(p, model_closed(&p->model, runtime, &report));
    for (int i = 0; i < PLAY_NODES; i++)
        posted += p->model.runtime[runtime].posted[i];
    if (p->judged && report.posts_dropped != posted)
        play_fail(p, "%llu posts were dropped, not %zu",
                  (unsigned long long)report.posts_dropped, posted);
    if (p->posts &&
        errand_post(p->inbox[runtime], &p->node[runtime][0].command) != ERRAND_EGONE)
        play_fail(p, "a post into a closed inbox");
    errand_inbox_abandon(&p->inbox[runtime]);
    for (int sort = 0; sort < PLAY_SORTS; sort++)
        for (int i = 0; i < PLAY_REGISTERS; i++)
            if (p->token[sort][i].op >= 0 &&
                p->op[p->token[sort][i].op].runtime == runtime)
                p->token[sort][i] = (play_token){.op = -1};
    for (int i = runtime; i < MODEL_LEASES; i += 2)
        p->lease[i] = NULL;
    play_said(p, "shutdown", status, report.undeliverable);
    check_ended(p, runtime);
    play_check_tasks(p, runtime);
}

static void
begin(play *p, const uint8_t *bytes, size_t size, uint64_t inline_seed, bool trace,
      program_result *result)
{
    errand_manual_config manual = {.struct_size = sizeof manual};

    *p = (play){.judged = inline_seed == 0,
                .trace = trace,
                .bytes = bytes,
                .size = size,
                .at = PROGRAM_HEAD,
                .result = result,
                .verb = "begin",
                .arming = -1};
    p->choices = (errand_choices)ERRAND_CHOICES_INIT;
    p->choices.policy = (errand_policy)(bytes[1] / 12 % ERRAND_POLICIES);
    p->choices.depth = bytes[0] % 4;
    p->choices.steps = 1 + bytes[0];
    p->hand.op = -1;
    play_watch_misuse();
    errand_testing_pause(play_paused, p);
    if (p->size > PROGRAM_HEAD + PROGRAM_CALLS_MAX * PROGRAM_CALL)
        p->size = PROGRAM_HEAD + PROGRAM_CALLS_MAX * PROGRAM_CALL;
    p->real_clock = bytes[1] >= 224; /* then no deadlines */
    p->config = (errand_runtime_config){
        .struct_size = sizeof p->config,
        .operations_max = 4 + bytes[0] % 29,
        .times = (errand_times)(bytes[3] >> 2 & 3) % 3,
        .messages = bytes[3] >> 4 & 1 ? 2 : 0,
        .grace_ns = p->real_clock    ? UINT64_C(1) << 60
                    : bytes[0] & 128 ? UINT64_C(1) + bytes[0] % 7
                                     : 0,
        .order = p->judged              ? ERRAND_ORDER_ARRIVAL
                 : inline_seed % 2 != 0 ? ERRAND_ORDER_INLINE
                                        : ERRAND_ORDER_PACED,
        .seed = inline_seed,
        .flags = p->judged && !p->real_clock ? ERRAND_RUNTIME_TEST_CLOCK : 0,
        .choices = p->judged ? NULL : &p->choices,
        .on_completion = play_heard,
        .held_on_completion_arg = p,
    };
    p->model.times = p->config.times != ERRAND_TIMES_NONE && !p->real_clock;
    p->model.messages = p->config.messages == 0;
    p->model.grace_ns = p->config.grace_ns != 0 ? p->config.grace_ns : 1000000000;
    p->posts = (bytes[3] >> 5 & 3) != 3; /* else nobody has an inbox handle */
    p->owed_max = 1 + bytes[1] % 12;
    for (int sort = 0; sort < PLAY_SORTS; sort++)
        for (int i = 0; i < PLAY_REGISTERS; i++)
            p->token[sort][i].op = -1;
    for (int i = 0; i < 2; i++)
        if (errand_manual_create(&manual, &p->executor[i]) != ERRAND_OK)
            play_fail(p, "no executor");
    for (int i = 0; i < MODEL_RUNTIMES; i++)
        play_open_runtime(p, i);
}

bool
program_run(const uint8_t *bytes, size_t size, uint64_t inline_seed, bool trace,
            program_result *out_result)
{
    play *p = calloc(1, sizeof *p);

    if (p == NULL)
        abort();
    int64_t live = errand_testing_live_bytes();
    memset(out_result, 0, sizeof *out_result);
    if (size < PROGRAM_HEAD) {
        free(p);
        return true;
    }
    begin(p, bytes, size, inline_seed, trace, out_result);
    while (next(p))
        continue;
    p->verb = "end";
    if (bytes[2] & 1) /* else its body outlives both */
        play_let(p);
    for (int i = 0; i < MODEL_RUNTIMES && !play_failed(p); i++) {
        if (i == 0)
            out_result->digest = errand_digest(p->runtime[0]);
        play_close_runtime(
            p, i, bytes[3] >> i & 1 ? ERRAND_SHUTDOWN_RUN : ERRAND_SHUTDOWN_QUIET);
    }
    play_end_hand(p);
    errand_testing_pause(NULL, NULL);
    if (play_failed(p))
        return false; /* what is left may be broken: p stays as well */
    check_bursts(p);
    if (p->forged != 0)
        play_fail(p, "%d forged payloads were not dropped", p->forged);
    for (int i = 0; i < 2; i++)
        errand_executor_abandon(&p->executor[i]);
    if (errand_testing_live_bytes() != live)
        play_fail(p, "%lld bytes are left",
                  (long long)(errand_testing_live_bytes() - live));
    bool agreed = !play_failed(p);
    free(p);
    return agreed;
}
