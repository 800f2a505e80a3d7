/* SPDX-License-Identifier: MIT */
/* Design notes: places in the tree, watches, the first of several and the stop, in seeded orders
 * only, like all of tasks.  A task has one watch, one select and one signal at a time, which are
 * its own to close, or are left to its end; a runtime has two contexts that nobody has used yet, and
 * a signal and a select that no task holds. */
#include "play.h"

/* Handles of up to three tasks of the runtime; how many. */
static size_t
pick_handles(const play *p, int runtime, int but, unsigned byte, errand_handle *out)
{
    size_t count = 0;

    for (int i = p->tasks - 1; i >= 0 && count < 3; i--)
        if (i != but && p->task[i].runtime == runtime && p->task[i].held.task.task != 0 &&
            (byte >> (i & 3) & 1))
            out[count++] = p->task[i].held;
    return count;
}

/* ---- inside a task ------------------------------------------------------------------------- */

/* What it waited for last is over, or its limit has come. */
void
play_tree_told(play_task *self, const errand_task_news *news)
{
    play *p = self->play;
    errand_runtime *runtime = p->runtime[self->runtime];
    errand_handle_state state = 0;
    size_t winner = 0;

    if (news->why == ERRAND_WHY_STOPPED && !errand_stop_asked(runtime, NULL))
        play_fail(p, "task %d hears of a stop that nobody asked for", self->index);
    if (!self->selecting)
        return;
    self->selecting = false;
    errand_status status = errand_select_read(runtime, &self->select, &winner, &state);
    if (news->why == ERRAND_WHY_JOINED &&
        (status != ERRAND_OK || winner != news->joined || state == ERRAND_HANDLE_OPEN))
        play_fail(p, "task %d heard of winner %zu, and the select says %s, %zu, %d",
                  self->index, news->joined, errand_status_name(status), winner,
                  (int)state);
    for (size_t i = 0; i < winner && i < 4 && status == ERRAND_OK; i++) {
        /* It had not ended by itself, or it had won. */
        if (errand_handle_read(runtime, &self->members[i], &state, NULL) == ERRAND_OK &&
            state != ERRAND_HANDLE_CLOSED && state != ERRAND_HANDLE_ABORTED)
            play_fail(p, "task %d: %zu won, and %zu says %d", self->index, winner, i,
                      (int)state);
    }
    play_event(p, "select", self->index, (uint64_t)state << 8 | (winner & 0xff));
    if ((self->visits & 1) == 0)
        errand_select_close(runtime, &self->select);
}

static errand_status
first_of_several(play_task *self, errand_task *task, unsigned byte)
{
    play *p = self->play;
    errand_runtime *runtime = p->runtime[self->runtime];
    errand_handle *members = self->members;
    errand_status status = ERRAND_OK;

    if (self->select.node == 0) {
        size_t count = pick_handles(p, self->runtime, self->index, byte, members);
        if (self->watch.task.task != 0 && byte & 2)
            members[count++] = self->watch;
        status = errand_select_open(runtime, members, count, &self->select);
        play_event(p, "opens a select", self->index, count);
    }
    if (status != ERRAND_OK)
        play_fail(p, "task %d has no select: %s", self->index,
                  errand_status_name(status));
    status = errand_task_select(task, &self->select,
                                byte & 32 ? UINT64_MAX : byte * UINT64_C(20000));
    self->selecting = status == ERRAND_OK;
    return status;
}

static errand_status
hold_and_stop(play_task *self, errand_task *task, unsigned byte)
{
    play *p = self->play;
    errand_runtime *runtime = p->runtime[self->runtime];
    errand_signal more, gone;

    if (self->signal.node == 0 && errand_signal_hold(runtime, &self->signal) != ERRAND_OK)
        play_fail(p, "task %d holds no signal", self->index);
    switch ((byte + self->visits * 3u) % 5) {
    case 0:
        if (errand_signal_clone(runtime, &self->signal, &more) != ERRAND_OK)
            play_fail(p, "task %d has no second signal", self->index);
        if (byte & 1)
            errand_signal_release(runtime, &self->signal);
        gone = more;
        errand_signal_release(runtime, &more);
        if (errand_signal_clone(runtime, &gone, &more) != ERRAND_ESPENT)
            play_fail(p, "a signal that was released is cloned");
        return errand_task_yield(task);
    case 1:
        return errand_task_stopped(task, &self->signal,
                                   byte & 1 ? UINT64_MAX : byte * UINT64_C(30000));
    case 2:
        errand_signal_release(runtime, &self->signal);
        return errand_task_yield(task);
    case 3:
        if (byte & 1)
            errand_signal_release(runtime, &self->signal);
        return errand_task_stop(task, (int32_t)byte, byte * UINT64_C(50000));
    default:
        return errand_task_yield(task); /* it keeps it */
    }
}

static errand_status
watch_another(play_task *self, errand_task *task, unsigned byte)
{
    play *p = self->play;
    errand_runtime *runtime = p->runtime[self->runtime];
    const play_task *other = &p->task[byte / 4 % (unsigned)p->tasks];
    errand_handle_state state = 0;
    errand_failure failure = {.code = -1};

    if (self->watch.task.task == 0) {
        if (other->runtime != self->runtime)
            return errand_task_yield(task);
        errand_status status = errand_handle_watch(runtime, &other->id, &self->watch);
        if (status != (other->ended ? ERRAND_EUNKNOWN : ERRAND_OK) && !other->ended)
            play_fail(p, "task %d has no watch: %s", self->index,
                      errand_status_name(status));
        play_event(p, "watches", self->index, (uint64_t)status);
        return errand_task_yield(task);
    }
    if (byte & 1 && errand_handle_abort(runtime, &self->watch) != ERRAND_OK)
        play_fail(p, "a watch is not stopped");
    if (errand_handle_read(runtime, &self->watch, &state, &failure) != ERRAND_OK ||
        (byte & 1 && state == ERRAND_HANDLE_OPEN) ||
        (state == ERRAND_HANDLE_EXITED && failure.message[0] == '\0'))
        play_fail(p, "the watch of task %d says %d, '%s'", self->index, (int)state,
                  failure.message);
    play_event(p, "watch says", self->index, (uint64_t)state);
    if (byte & 2)
        errand_handle_close(runtime, &self->watch);
    return errand_task_yield(task);
}

errand_status
play_tree_wait(play_task *self, errand_task *task, unsigned byte, unsigned which)
{
    if (self->play->closing)
        return errand_task_yield(task); /* nothing new is made any more */
    return which == 0   ? first_of_several(self, task, byte)
           : which == 1 ? hold_and_stop(self, task, byte)
                        : watch_another(self, task, byte);
}

/* ---- outside ------------------------------------------------------------------------------- */

/* A place: made below nothing, a task or another place; or its end. */
static errand_status
move_place(play *p, int runtime, unsigned b, unsigned c)
{
    errand_context *place = &p->place[runtime][b & 1];
    const errand_context *above = &p->place[runtime][~b & 1];
    const play_task *task =
        p->tasks > 0 ? &p->task[p->tasks - 1 - (int)(c / 8) % p->tasks] : NULL;

    if (place->node != 0 && c & 4) {
        errand_status status = errand_context_abort(p->runtime[runtime], place);
        if (status != ERRAND_OK ||
            errand_context_abort(p->runtime[runtime], place) != ERRAND_OK)
            play_fail(p, "a place is not given up: %s", errand_status_name(status));
        if (c & 2)
            *place = (errand_context){0};
        return status;
    }
    if (place->node != 0)
        return ERRAND_OK;
    if (above->node != 0 && c & 1)
        return errand_context_child(p->runtime[runtime], above, "place", place);
    if (task == NULL || task->runtime != runtime || c & 2)
        return errand_context_create(p->runtime[runtime], NULL, NULL, place);
    return errand_context_create(p->runtime[runtime], &task->id, "below", place);
}

static errand_status
select_outside(play *p, int runtime, unsigned b, unsigned c)
{
    errand_select *select = &p->select[runtime];
    errand_handle_state state = 0;
    errand_handle handles[3];
    size_t winner = 0;
    errand_status status;

    if (select->node == 0) {
        size_t count = pick_handles(p, runtime, -1, b, handles);
        return errand_select_open(p->runtime[runtime], handles, count, select);
    }
    status = errand_select_read(p->runtime[runtime], select, &winner, &state);
    if (status != ERRAND_OK && status != ERRAND_EBUSY)
        play_fail(p, "a select answers %s", errand_status_name(status));
    if (c & 1)
        errand_select_close(p->runtime[runtime], select);
    play_event(p, "select outside", (int)state, winner & 0xff);
    return status;
}

static errand_status
signal_outside(play *p, int runtime, unsigned b, unsigned c)
{
    errand_signal *signal = &p->signal[runtime];
    int32_t value = -1;

    if (b >= 216) {
        bool before = errand_stop_asked(p->runtime[runtime], &value);
        int32_t wanted = before ? value : (int32_t)c;
        if (errand_stop(p->runtime[runtime], (int32_t)c) != ERRAND_OK ||
            !errand_stop_asked(p->runtime[runtime], &value) || value != wanted)
            play_fail(p, "the stop has the value %d, not %d", (int)value, (int)wanted);
        return ERRAND_OK;
    }
    if (signal->node == 0)
        return errand_signal_hold(p->runtime[runtime], signal);
    errand_signal_release(p->runtime[runtime], signal);
    if (signal->node != 0)
        play_fail(p, "a signal that was released is not zeroed");
    return ERRAND_OK;
}

void
play_tree(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1;
    errand_tree tree = {0};
    errand_status status;

    if (p->judged || p->in_body)
        return;
    switch (a / 2 % 4) {
    case 0:
    case 1:
        status = move_place(p, runtime, b, c);
        break;
    case 2:
        status = select_outside(p, runtime, b, c);
        break;
    default:
        status = signal_outside(p, runtime, b, c);
        break;
    }
    if (errand_tree_read(p->runtime[runtime], &tree) != ERRAND_OK ||
        tree.running > tree.spawned)
        play_fail(p, "%llu of %llu tasks run", (unsigned long long)tree.running,
                  (unsigned long long)tree.spawned);
    play_said(p, "tree", status, tree.running << 16 | tree.contexts << 8 | tree.signals);
}

void
play_close_tree(play *p, int runtime)
{
    for (int i = 0; i < p->tasks; i++) {
        play_task *task = &p->task[i];
        if (task->runtime != runtime)
            continue;
        errand_handle_close(p->runtime[runtime], &task->watch);
        errand_select_close(p->runtime[runtime], &task->select);
        errand_signal_release(p->runtime[runtime], &task->signal);
        if (task->watch.task.task != 0 || task->select.node != 0 ||
            task->signal.node != 0)
            play_fail(p, "what task %d held is not zeroed", i);
    }
    errand_select_close(p->runtime[runtime], &p->select[runtime]);
    errand_signal_release(p->runtime[runtime], &p->signal[runtime]);
    for (int i = 0; i < 2; i++)
        p->place[runtime][i] = (errand_context){0};
}
