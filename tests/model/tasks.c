/* SPDX-License-Identifier: MIT */
/* Design notes: tasks are played in seeded orders only, where a program is compared with itself:
 * the model does not know them.  What a task does at each visit follows from its bytes and the
 * number of the visit.  Each ends once and is dropped once, however it ends. */
#include "play.h"

static int32_t
wait_answer(errand_status status)
{
    return status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
}

static void
run_deferred(void *arg)
{
    play_task *self = arg;

    self->deferred--;
    play_event(self->play, "task's deferred", self->index, 0);
}

static errand_status
await_operation(play_task *self, errand_task *task, unsigned byte)
{
    play *p = self->play;
    errand_lease *lease = p->lease[self->runtime | (byte & 2)];
    errand_identity identity;

    if (!play_has_room(p, 1) || lease == NULL)
        return errand_task_yield(task);
    play_op *op = play_new_op(p, self->runtime, 1, self->plan[1], (uint8_t)(byte * 7));
    errand_status status =
        errand_task_await(task, lease, &op->spec,
                          byte & 1 ? UINT64_MAX : byte * UINT64_C(10000), &identity);
    if (status != ERRAND_OK)
        return status;
    op->name = p->names;
    op->owned = op->awaited = true;
    play_new_name(p, &identity, p->ops++);
    return status;
}

static errand_status
join_others(play_task *self, errand_task *task, unsigned byte)
{
    play *p = self->play;
    errand_task_id ids[3];
    size_t count = 0;

    for (int i = 0; i < p->tasks && count < 3; i++)
        if (i != self->index && p->task[i].runtime == self->runtime &&
            (byte >> (i & 3) & 1))
            ids[count++] = p->task[i].id;
    if (count == 0)
        return errand_task_yield(task);
    return errand_task_join(task, ids, count, byte * UINT64_C(20000));
}

/* What needs no wait; then it yields. */
static errand_status
do_little(play_task *self, errand_task *task, unsigned byte)
{
    play *p = self->play;

    switch (byte % 6) {
    case 0:
        if (errand_task_shield(task, byte * UINT64_C(30000)) == ERRAND_OK && byte & 8 &&
            errand_task_unshield(task) != ERRAND_OK)
            play_fail(p, "a shield cannot be taken away");
        break;
    case 1:
        if (errand_task_defer(task, run_deferred, self) == ERRAND_OK)
            self->deferred++;
        if (byte & 8 && errand_task_undefer(task) == ERRAND_OK)
            self->deferred--;
        break;
    case 2:
        play_event(p, "draw", self->index, errand_task_random(task));
        break;
    case 3:
        play_event(p, "cancelled", self->index, errand_task_cancelled(task));
        break;
    default:
        play_nested(p, 2);
        break;
    }
    return errand_task_yield(task);
}

static errand_task_answer
visit(errand_task *task, void *state, const errand_task_news *news)
{
    play_task *self = state;
    play *p = self->play;
    unsigned byte = self->plan[self->visits % 3] + self->visits * 5u;

    play_event(p, "visit", self->index,
               (uint64_t)news->why << 8 | (uint64_t)news->reason);
    if (self->ended || errand_task_runtime(task) != p->runtime[self->runtime] ||
        errand_task_self(task).task != self->id.task)
        play_fail(p, "task %d is visited as another, or after its end", self->index);
    if (news->verdict.value != NULL)
        news->verdict.drop(news->verdict.value);
    if (++self->visits > 12)
        return ERRAND_TASK_DONE;
    switch (byte % 9) {
    case 0:
        return wait_answer(errand_task_sleep(task, byte * UINT64_C(1000)));
    case 1:
        return wait_answer(errand_task_sleep_until(task, byte));
    case 2:
        return wait_answer(join_others(self, task, byte));
    case 3:
        return wait_answer(errand_task_park(task, byte * UINT64_C(40000)));
    case 4:
    case 5:
        return wait_answer(await_operation(self, task, byte));
    case 6:
        return byte & 16 ? ERRAND_TASK_FAILED : ERRAND_TASK_DONE;
    default:
        return wait_answer(do_little(self, task, byte));
    }
}

static void
end(errand_runtime *runtime, errand_task_id id, void *state)
{
    play_task *self = state;

    play_event(self->play, "task ends", self->index, id.task);
    if (self->ended++ != 0 || runtime != self->play->runtime[self->runtime])
        play_fail(self->play, "task %d ends again, or elsewhere", self->index);
}

static void
drop(void *state)
{
    ((play_task *)state)->drops++;
}

void
play_spawn(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1;
    play_task *self = &p->task[p->tasks];
    const play_task *parent =
        p->tasks > 0 ? &p->task[p->tasks - 1 - (int)(a >> 2) % p->tasks] : NULL;
    errand_task_spec spec = {.struct_size = sizeof spec,
                             .label = c & 1 ? "odd" : NULL,
                             .fn = visit,
                             .state = self,
                             .held_on_end = end,
                             .held_drop = drop};

    if (p->judged || p->tasks == PLAY_TASKS)
        return;
    *self = (play_task){.play = p,
                        .index = p->tasks,
                        .runtime = runtime,
                        .plan = {(uint8_t)a, (uint8_t)b, (uint8_t)c}};
    if (parent != NULL && ((a & 2) == 0 || parent->runtime != runtime))
        parent = NULL;
    errand_status status = errand_spawn(
        p->runtime[runtime], parent == NULL ? NULL : &parent->id, &spec, &self->id);
    p->tasks += status == ERRAND_OK;
    play_said(p, "spawn", status, (uint64_t)self->index);
}

void
play_nudge(play *p, unsigned a, unsigned b, unsigned c)
{
    errand_runtime *runtime = p->runtime[a & 1];
    errand_task_state state = 0;
    errand_task_end ended = 0;
    errand_status status;

    if (p->judged)
        return;
    if (c >= 224) {
        status = errand_order_latency(runtime, 1 + b % 3, (uint64_t)a * 1000);
        play_said(p, "latency", status, errand_audit_note(runtime, "note", &b, 1));
        return;
    }
    if (p->tasks == 0)
        return;
    const play_task *task = &p->task[p->tasks - 1 - (int)b % p->tasks];
    switch (c % 8) {
    case 0:
        status = errand_task_cancel(runtime, &task->id, 1 + (a >> 1) % 7);
        break;
    case 1:
        status = errand_task_abort(runtime, &task->id);
        break;
    case 2:
        status = c == 2 ? errand_cancel_roots(runtime, ERRAND_REASON_ROOT) : ERRAND_OK;
        break;
    case 3:
        status = errand_task_hold(runtime, &task->id);
        if (status == ERRAND_OK && c & 16)
            errand_task_let(runtime, &task->id);
        break;
    case 4:
        status = errand_task_state_read(runtime, &task->id, &state, &ended);
        break;
    default:
        status = errand_task_wake(runtime, &task->id);
        break;
    }
    play_said(p, "nudge", status, (uint64_t)state << 8 | (uint64_t)ended);
}

void
play_check_tasks(play *p, int runtime)
{
    for (int i = 0; i < p->tasks; i++) {
        play_task *task = &p->task[i];
        if (task->runtime != runtime)
            continue;
        if (task->ended != 1 || task->drops != 1 || task->deferred != 0)
            play_fail(
                p,
                "task %d ended %d times, was dropped %d times, and %d cleanups are left",
                i, task->ended, task->drops, task->deferred);
        task->runtime = MODEL_RUNTIMES;
    }
}
