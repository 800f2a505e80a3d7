/* SPDX-License-Identifier: MIT */
/* Design notes: verbs that make things happen: steps, drains and drives, clocks, ends.  Each
 * tells the model before and after; what comes in between tells it itself (parts.c).  A drain
 * or drive of the outermost level is a place where a handler may leave by longjmp. */
#include <poll.h>
#include "play.h"

void
play_step(play *p, unsigned a, unsigned b, unsigned c)
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
    if (p->hand.busy && p->hand.executor == (int)(a & 1)) {
        if (errand_manual_step(p->executor[a & 1], 1, &count) != ERRAND_EBUSY)
            play_fail(p, "two threads step at once");
        return;
    }
    p->entered = 0;
    p->at_home = false;
    p->stepping = a & 1;
    errand_status status = errand_manual_step(p->executor[a & 1], budget, &count);
    p->at_home = outer;
    if (status != ERRAND_OK || count != p->entered || count > budget)
        play_fail(p, "a step of %zu answers %s and %zu, not %llu", budget,
                  errand_status_name(status), count, (unsigned long long)p->entered);
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
    p->arming = -1;
    p->busy[runtime] = false;
    p->at_home = false;
    errand_status busy = errand_drain(p->runtime[runtime], 1, play_heard, p, &count);
    errand_status status = errand_runtime_unwound(p->runtime[runtime]);
    if (busy != ERRAND_EBUSY || status != ERRAND_OK ||
        errand_runtime_unwound(p->runtime[runtime]) != ERRAND_EMISUSE)
        play_fail(p, "unwound answers %s and %s", errand_status_name(busy),
                  errand_status_name(status));
    r->budget = r->count;
    r->left = true;
    PLAY_MODEL(p, model_leave(&p->model, runtime, r->count, r->commands, false));
    play_said(p, "unwound", status, 0);
}

void
play_drain(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1;
    size_t budget = b >= 192 ? SIZE_MAX : 1 + b % 5, count = 0;

    (void)c;
    if (p->in_body && !p->judged)
        return;
    if (p->busy[runtime]) {
        if (errand_drain(p->runtime[runtime], budget, play_heard, p, &count) !=
            ERRAND_EBUSY)
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
    p->arming = runtime;
    errand_status status =
        errand_drain(p->runtime[runtime], budget, play_heard, p, &count);
    p->arming = -1;
    p->busy[runtime] = false;
    p->at_home = false;
    if (status != ERRAND_OK)
        play_fail(p, "drain answers %s", errand_status_name(status));
    PLAY_MODEL(p, model_leave(&p->model, runtime, count, SIZE_MAX, false));
    play_said(p, "drain", status, count);
}

void
play_drive(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1;
    errand_budget budget = {.struct_size = sizeof budget, .items = 1 + b % 5};
    errand_turn turn = {0};

    if (p->in_body && !p->judged)
        return;
    if (p->busy[runtime]) {
        if (errand_drive(p->runtime[runtime], NULL, &turn) != ERRAND_EBUSY)
            play_fail(p, "a drive inside a drive");
        return;
    }
    if (model_tangled(&p->model, runtime)) {
        play_drain(p, a, 255, c);
        return;
    }
    PLAY_MODEL(p, model_enter(&p->model, runtime, SIZE_MAX, true));
    p->busy[runtime] = true;
    p->at_home = p->depth == 0;
    if (p->depth == 0 && setjmp(p->home) != 0) {
        unwind(p, runtime);
        return;
    }
    errand_status status =
        errand_drive(p->runtime[runtime], b >= 96 ? NULL : &budget, &turn);
    p->busy[runtime] = false;
    p->at_home = false;
    if (status != ERRAND_OK)
        play_fail(p, "drive answers %s", errand_status_name(status));
    p->interrupted[runtime] &= turn.kind == ERRAND_TURN_PROGRESS;
    bool rest = turn.kind == ERRAND_TURN_IDLE || turn.kind == ERRAND_TURN_QUIESCENT;
    uint64_t items = (uint64_t)turn.completions + turn.timers + turn.visits +
                     turn.cleanups + turn.commands;
    if (b < 96 && items > budget.items)
        play_fail(p, "a drive of %u items does %llu", budget.items,
                  (unsigned long long)items);
    if (p->trace)
        play_event(p, "turn", (int)turn.kind, items);
    play_meanwhile(p, runtime);
    PLAY_MODEL(p, model_leave(&p->model, runtime, turn.completions, turn.commands, rest));
    if (rest)
        PLAY_MODEL(p, model_rests(&p->model, runtime, turn.kind == ERRAND_TURN_QUIESCENT,
                                  turn.inbox_needed, turn.next_deadline_ns));
    play_said(p, "drive", status, turn.completions);
}

void
play_clock(play *p, unsigned a, unsigned b, unsigned c)
{
    (void)c;
    if (model_tangled(&p->model, a & 1) || p->real_clock)
        return;
    errand_status status = errand_testing_clock(p->runtime[a & 1], b & 15);
    if (status != (p->judged ? ERRAND_OK : ERRAND_EUNSUPPORTED))
        play_fail(p, "clock answers %s", errand_status_name(status));
    p->model.runtime[a & 1].now_ns += b & 15;
    if (p->judged &&
        errand_runtime_now(p->runtime[a & 1]) != p->model.runtime[a & 1].now_ns)
        play_fail(p, "the clock reads otherwise");
    play_said(p, "clock", status, b & 15);
}

void
play_wake(play *p, unsigned a, unsigned b, unsigned c)
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

void
play_detach(play *p, unsigned a, unsigned b, unsigned c)
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

void
play_end_runtime(play *p, unsigned a, unsigned b, unsigned c)
{
    (void)c;
    if (p->depth > 0 || b < 64)
        return;
    play_close_runtime(p, a & 1, b & 1 ? ERRAND_SHUTDOWN_RUN : ERRAND_SHUTDOWN_QUIET);
    if (!play_failed(p))
        play_open_runtime(p, a & 1);
}

static bool
count_slot(errand_visitor *visitor, void **slot)
{
    *(int *)visitor->arg += *slot != NULL;
    return false;
}

/* A collector sees each decoder, hook and continuation that the runtime holds, once. */
static void
look_at_edges(play *p, int runtime)
{
    int seen = 0, held = 0, handed_on = 0;
    errand_visitor visitor = {count_slot, &seen};

    for (int i = 0; i < p->ops; i++) {
        const play_op *op = &p->op[i];
        if (op->runtime != runtime || !op->owned)
            continue;
        int edges = (op->spec.held_decoder != NULL && op->decoder_ends == 0) +
                    (op->spec.held_hook != NULL && op->hook_drops == 0) +
                    (op->continued && op->continuation_ends == 0);
        held += edges;
        handed_on += op->name < 0 && op->parent >= 0 ? edges : 0; /* not prepared yet */
    }
    if (errand_runtime_trace(p->runtime[runtime], &visitor))
        play_fail(p, "a walk is stopped by nobody");
    if (p->depth == 0 && (seen > held || seen < held - handed_on))
        play_fail(p, "a collector sees %d edges of %d", seen, held);
}

/* The descriptor is readable, and parking returns, if anything is there. */
void
play_look(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1, fd = -1;
    const model_runtime *r = &p->model.runtime[runtime];
    errand_status status;

    (void)c;
    if (b & 1) {
        look_at_edges(p, runtime);
        return;
    }
    if ((b & 2) && p->posts) {
        errand_interrupt(p->inbox[runtime]);
        p->interrupted[runtime] = true;
        return;
    }
    if (b & 4) {
        status = errand_park(p->runtime[runtime], 0);
        if (status != (p->in_body         ? ERRAND_EDEADLOCK
                       : p->busy[runtime] ? ERRAND_EBUSY
                                          : ERRAND_OK))
            play_fail(p, "park answers %s", errand_status_name(status));
        return;
    }
    p->arming = p->busy[runtime] ? -1 : runtime;
    status = errand_runtime_wake_fd(p->runtime[runtime], &fd);
    p->arming = -1;
    struct pollfd looked = {fd, POLLIN, 0};
    if (status != ERRAND_OK || poll(&looked, 1, 0) < 0)
        play_fail(p, "no descriptor: %s", errand_status_name(status));
    if (p->judged && p->depth == 0 && r->head < r->tail && !(looked.revents & POLLIN))
        play_fail(p, "news are there and the descriptor is not readable");
}

/* Between release and adopt the runtime is nobody's. */
void
play_hand_over(play *p, unsigned a, unsigned b, unsigned c)
{
    errand_runtime *runtime = p->runtime[a & 1];
    errand_identity identity;

    (void)b, (void)c;
    if (p->in_body)
        return;
    errand_status status = errand_runtime_release(runtime);
    if (status != (p->busy[a & 1] ? ERRAND_EBUSY : ERRAND_OK))
        play_fail(p, "release answers %s", errand_status_name(status));
    if (status != ERRAND_OK)
        return;
    if (errand_issue(runtime, 1, NULL, &identity) != ERRAND_ETHREAD ||
        errand_runtime_adopt(runtime) != ERRAND_OK ||
        errand_runtime_adopt(runtime) != ERRAND_EMISUSE)
        play_fail(p, "a runtime changes hands otherwise");
}
