/* SPDX-License-Identifier: MIT */
/* Design notes: tasks are played in seeded orders only, where a program is compared with itself:
 * the model does not know them.  What a task does at each visit follows from its bytes and the
 * number of the visit.  Each ends once and is dropped once, however it ends. */
#include <stdio.h>
#include <string.h>
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

static void
shield(play_task *self, errand_task *task, unsigned byte)
{
    if (errand_task_shield(task, byte * UINT64_C(30000)) != ERRAND_OK)
        play_fail(self->play, "a shield is refused");
    if (byte & 4)
        self->shields++;
    else if (errand_task_unshield(task) != ERRAND_OK)
        play_fail(self->play, "a shield cannot be taken away");
    if ((byte & 2) && self->shields > 0) {
        self->shields--;
        if (errand_task_unshield(task) != ERRAND_OK)
            play_fail(self->play, "a shield of before cannot be taken away");
    }
    if (self->shields == 0 && errand_task_unshield(task) != ERRAND_EMISUSE)
        play_fail(self->play, "a shield that is not there is taken away");
}

static void
defer(play_task *self, errand_task *task, unsigned byte)
{
    errand_status status;

    if (byte & 1) {
        errand_testing_fail_allocation(1);
        status = errand_task_defer(task, run_deferred, self);
        errand_testing_fail_allocation(0);
        if (status != ERRAND_ENOMEM)
            play_fail(self->play, "a cleanup without memory is taken");
    }
    if (errand_task_defer(task, run_deferred, self) == ERRAND_OK)
        self->deferred++;
    if (byte & 8 && errand_task_undefer(task) == ERRAND_OK)
        self->deferred--;
}

/* A wait is registered once, and inside the task's own function. */
static errand_status
wait_wrongly(play_task *self, errand_task *task)
{
    play *p = self->play;
    errand_status status = errand_task_yield(task);

    for (int i = 0; i < p->tasks; i++) {
        const play_task *other = &p->task[i];
        if (other != self && other->runtime == self->runtime && !other->ended &&
            other->handle != NULL && errand_task_yield(other->handle) != ERRAND_EMISUSE)
            play_fail(p, "task %d waits outside its function", i);
    }
    if (errand_task_sleep(task, 1) !=
        (status == ERRAND_OK ? ERRAND_EMISUSE : ERRAND_ECANCELLED))
        play_fail(p, "task %d waits twice", self->index);
    return status;
}

/* What needs no wait; then it yields. */
static errand_status
do_little(play_task *self, errand_task *task, unsigned byte)
{
    play *p = self->play;

    switch (byte / 9 % 9) {
    case 0:
        shield(self, task, byte);
        break;
    case 1:
        defer(self, task, byte);
        break;
    case 2:
        play_event(p, "draw", self->index, errand_task_random(task));
        break;
    case 3:
        play_event(p, "cancelled", self->index, errand_task_cancelled(task));
        break;
    case 4:
        return wait_wrongly(self, task);
    case 5:
    case 6:
    case 7:
        return play_tree_wait(self, task, byte, byte / 9 % 9 - 5);
    default:
        play_nested(p, 2);
        break;
    }
    return errand_task_yield(task);
}

static errand_task_answer
fail_task(play_task *self, errand_task *task, unsigned byte)
{
    self->answered_failed = true;
    if (byte & 1)
        return ERRAND_TASK_FAILED;
    if (errand_task_fail(task, 0, "no code") != ERRAND_EINVAL ||
        errand_task_fail(task, 1, "not the last") != ERRAND_OK ||
        errand_task_fail(task, 1 + self->index, "task %d", self->index) != ERRAND_OK)
        play_fail(self->play, "task %d cannot say why it fails", self->index);
    self->why = 1 + self->index;
    return ERRAND_TASK_FAILED;
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
    self->handle = task;
    if (news->verdict.value != NULL)
        news->verdict.drop(news->verdict.value);
    play_tree_told(self, news);
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
        return byte & 16   ? fail_task(self, task, byte)
               : byte & 32 ? ERRAND_TASK_WAIT /* for nothing: it fails */
                           : ERRAND_TASK_DONE;
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

/* A place in the tree is used up by its task. */
static errand_status
spawn_in_context(play_task *self, const errand_task_spec *spec)
{
    play *p = self->play;
    errand_runtime *runtime = p->runtime[self->runtime];
    errand_context *place = &p->place[self->runtime][self->plan[1] & 1];
    errand_context above, context = {0}, copy;

    if (place->node != 0) { /* made before, by play_tree; it may have been given up */
        context = *place;
        *place = (errand_context){0};
    } else if (errand_context_create(runtime, NULL, NULL, &above) != ERRAND_OK ||
               errand_context_child(runtime, &above, "below", &context) != ERRAND_OK)
        play_fail(self->play, "no context");
    copy = context;
    errand_status status = errand_context_spawn(runtime, &context, spec, &self->held);
    if (status == ERRAND_OK && self->ended == 0 && /* else it was given up before */
        errand_context_spawn(runtime, &copy, spec, NULL) != ERRAND_ESPENT)
        play_fail(self->play, "a context is used twice");
    self->id = self->held.task;
    return status;
}

/* A handle says how its task ended, and why if it failed. */
static void
read_handle(play *p, play_task *task)
{
    errand_failure failure = {.code = -1};
    errand_handle_state state = 0;
    char wanted[32] = "";

    if (errand_handle_read(p->runtime[task->runtime], &task->held, &state, &failure) !=
        ERRAND_OK)
        play_fail(p, "the handle of task %d is not known", task->index);
    if (task->why != 0)
        snprintf(wanted, sizeof wanted, "task %d", task->index);
    if ((state == ERRAND_HANDLE_OPEN) != (task->ended == 0) ||
        (state == ERRAND_HANDLE_DONE && task->answered_failed) ||
        (state == ERRAND_HANDLE_EXITED && task->why != 0 &&
         (failure.code != task->why || strcmp(failure.message, wanted) != 0 ||
          failure.task != task->id.task)))
        play_fail(p, "the handle of task %d says %d, %d, '%s'", task->index, (int)state,
                  (int)failure.code, failure.message);
}

/* Two runs take the same steps: they are part of the log. */
void
play_step_taken(void *arg, const errand_step *step)
{
    const char *name = errand_step_name(step->kind);

    if (strcmp(name, "unknown") == 0)
        play_fail(arg, "a step of kind %d has no name", (int)step->kind);
    play_event(arg, name, (int)step->detail, step->time_ns);
}

void
play_close_handles(play *p, int runtime)
{
    for (int i = 0; i < p->tasks; i++) {
        play_task *task = &p->task[i];
        if (task->runtime != runtime || task->held.task.task == 0)
            continue;
        read_handle(p, task);
        errand_handle_close(p->runtime[runtime], &task->held);
        if (task->held.task.task != 0)
            play_fail(p, "a handle that is closed is not zeroed");
    }
}

void
play_spawn(play *p, unsigned a, unsigned b, unsigned c)
{
    static const char *const labels[3] = {
        NULL, "odd",
        "a label that is longer than what the library keeps of a label: 64 bytes"};
    int runtime = a & 1;
    play_task *self = &p->task[p->tasks];
    const play_task *parent =
        p->tasks > 0 ? &p->task[p->tasks - 1 - (int)(a >> 2) % p->tasks] : NULL;
    errand_task_spec spec = {.struct_size = sizeof spec,
                             .label = labels[c % 3],
                             .fn = visit,
                             .state = self,
                             .flags = c & 16   ? ERRAND_TASK_PROPAGATE
                                      : c & 32 ? ERRAND_TASK_CATCH
                                               : 0,
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
    if (parent != NULL || c & 8)
        spec.flags = 0; /* they are of roots */
    errand_status status =
        parent == NULL && c & 8
            ? spawn_in_context(self, &spec)
            : errand_spawn(p->runtime[runtime], parent == NULL ? NULL : &parent->id,
                           &spec, &self->id);
    if (status == ERRAND_OK && self->held.task.task == 0 &&
        errand_handle_open(p->runtime[runtime], &self->id, &self->held) != ERRAND_OK)
        play_fail(p, "task %d has no handle", self->index);
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
