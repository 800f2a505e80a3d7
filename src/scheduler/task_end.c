/* SPDX-License-Identifier: MIT */
/* Design notes: how tasks end.
 *
 * The decision and the work are apart.  The decision (errand__task_end) marks the task and all
 * below it and takes their waits away; it calls nothing foreign, so the tree holds still.  The
 * work stands on a stack of its own, the list scheduler->ending: the first on it has its newest
 * child put before it until it has none; then its operation is cancelled, its cleanups run newest
 * first, on_end and drop are called, and it is taken off.  So a chain of any depth needs no stack
 * of the machine (D63), children end before what they stand on, and a longjmp out of any of these
 * calls leaves a list that the next drive goes on with: each call is crossed out before it is made.
 *
 * The running task cannot end while its function runs: the work stops at it and goes on when the
 * function has answered.
 *
 * A task that was cancelled ends later than its function: it lingers until those below it that were
 * cancelled, too, have ended, so that each of them hears the cancel and may clean up.  It joins the
 * first of them, and looks again when that has ended.  It needs no guard of its own, because each
 * of them has one; what was started since the cancel is not waited for, and ends with it. */
#include "scheduler/scheduler.h"

static void mark(errand_task *task, errand_task_end end);
static void step(errand__scheduler *scheduler, errand_task *task);
static void finish(errand_task *task);

/* The first of the nearest tasks below that were cancelled and are alive. */
static errand_task *
cancelled_below(const errand_task *task)
{
    const errand_task *top = task->consumes ? task->parent : task;
    errand_task *below = errand__task_following(top, top);

    while (below != NULL) {
        if (below == task || below->node != ERRAND__NODE_TASK)
            below = errand__task_following(below, top);
        else if (below->reason == ERRAND_REASON_NONE || below->ending)
            below = errand__task_passing(below, top);
        else
            break;
    }
    return below;
}

/* False: there is nobody to wait for. */
static bool
linger(errand_task *task)
{
    const errand_task *below = cancelled_below(task);
    errand_task_id id;

    if (below == NULL)
        return false;
    errand__task_wait_clear(
        task); /* registered by a function that answered all the same */
    errand__task_joins_clear(task);
    errand__select_leave(task);
    errand__list_unlink(&task->ready.link);
    errand__timer_remove(task->scheduler, &task->guard);
    task->shields = 0;
    task->fn = NULL;
    id = errand__task_id(below);
    if (errand__task_join_begin(task, &id, 1) != ERRAND_OK)
        return false;
    if (errand__task_wait_begin(task, ERRAND__TASK_WAIT_JOIN, UINT64_MAX) != ERRAND_OK)
        return false; /* out of keys: all joins go with the end */
    task->phase = ERRAND_TASK_WAITING;
    return true;
}

void
errand__task_over(errand_task *task, errand_task_end end)
{
    if (task->reason == ERRAND_REASON_NONE || !linger(task))
        errand__task_end(task, end);
}

void
errand__task_end(errand_task *task, errand_task_end end)
{
    errand_task *top = task->consumes ? task->parent : task, *below;

    if (task->ending)
        return;
    if (end != ERRAND_END_ABORTED && task->reason != ERRAND_REASON_NONE)
        end = ERRAND_END_CANCELLED; /* whatever its function answered (O40) */
    mark(task, end);
    if (end == ERRAND_END_FAILED)
        errand__failure_rise(task);
    for (below = top; below != NULL; below = errand__task_following(below, top)) {
        if (!below->ending)
            mark(below, ERRAND_END_ABORTED);
    }
    errand__list_prepend(&task->scheduler->ending, &top->work);
}

void
errand__endings_run(errand__scheduler *scheduler)
{
    if (scheduler->busy_ending)
        return; /* called from a callback of one that is being ended: its caller goes on */
    scheduler->busy_ending = true;
    while (!errand__list_empty(&scheduler->ending)) {
        errand_task *task = ERRAND__CONTAINER(scheduler->ending.next, errand_task, work);

        if (task == scheduler->running)
            break;
        step(scheduler, task);
    }
    scheduler->busy_ending = false;
}

errand_status
errand__task_defer_push(errand_task *task, void (*fn)(void *arg), void *arg)
{
    errand__task_defer *defer =
        errand__mem_alloc(task->scheduler->allocator, sizeof *defer);

    if (defer == NULL)
        return ERRAND_ENOMEM;
    *defer = (errand__task_defer){.next = task->defers, .fn = fn, .arg = arg};
    task->defers = defer;
    return ERRAND_OK;
}

static errand__task_defer
take_defer(errand_task *task)
{
    errand__task_defer *defer = task->defers, taken = *defer;

    task->defers = defer->next;
    errand__mem_free(task->scheduler->allocator, defer, sizeof *defer);
    return taken;
}

bool
errand__task_defer_pop(errand_task *task)
{
    if (task->defers == NULL)
        return false;
    (void)take_defer(task);
    return true;
}

static void
mark(errand_task *task, errand_task_end end)
{
    errand__scheduler *scheduler = task->scheduler;

    if (errand__task_lingers(task))
        end = ERRAND_END_CANCELLED; /* its function had answered */
    task->ending = true;
    task->end = (uint8_t)end;
    if (task->node == ERRAND__NODE_TASK)
        scheduler->undecided--;
    if (scheduler->running != task)
        task->phase = ERRAND_TASK_ENDED;
    errand__task_wait_clear(task);
    if (task->node != ERRAND__NODE_SELECT) { /* which aborts its members yet */
        errand__task_joins_clear(task);
        errand__select_leave(task);
    }
    errand__timer_remove(scheduler, &task->guard);
    errand__list_unlink(&task->ready.link);
    errand__list_unlink(&task->work);
}

static void
call_on_end(void *arg)
{
    errand_task *task = arg;
    void (*on_end)(errand_runtime *, errand_task_id, void *) = task->on_end;

    task->on_end = NULL;
    on_end(task->scheduler->context, errand__task_id(task), task->state);
}

/* One call at most; what it is was crossed out before. */
static void
step(errand__scheduler *scheduler, errand_task *task)
{
    task->phase = ERRAND_TASK_ENDED;
    if (!errand__list_empty(&task->children)) {
        errand_task *child =
            ERRAND__CONTAINER(task->children.previous, errand_task, sibling);

        errand__list_unlink(&child->work);
        errand__list_prepend(&scheduler->ending, &child->work);
    } else if (task->operation != NULL) {
        scheduler->outside->forget(scheduler->context, task);
    } else if (task->defers != NULL) {
        errand__task_defer defer = take_defer(task);

        scheduler->outside->contain(scheduler->context, defer.fn, defer.arg);
    } else if (task->on_end != NULL) {
        scheduler->outside->contain(scheduler->context, call_on_end, task);
    } else if (task->drop != NULL) {
        void (*drop)(void *state) = task->drop;

        task->drop = NULL;
        task->trace = NULL;
        scheduler->outside->contain(scheduler->context, drop, task->state);
    } else if (task->node != ERRAND__NODE_SELECT || !errand__select_drop(task)) {
        finish(task);
    }
}

/* A select that ends lets go of who waits for it. */
static void
select_ended(errand_task *group)
{
    errand_task *waiter = group->group;

    errand__task_joins_clear(group);
    if (waiter == NULL)
        return;
    waiter->group = group->group = NULL;
    if (waiter->wait == ERRAND__TASK_WAIT_SELECT)
        errand__task_ready(waiter, ERRAND_WHY_JOINED);
}

/* What it is to others than its joiners. */
static void
count_out(errand_task *task)
{
    errand__scheduler *scheduler = task->scheduler;

    switch (task->node) {
    case ERRAND__NODE_CONTEXT:
        scheduler->contexts--;
        break;
    case ERRAND__NODE_SELECT:
        select_ended(task);
        break;
    case ERRAND__NODE_SIGNAL:
        errand__signal_ended(task);
        break;
    case ERRAND__NODE_TASK:
        scheduler->live--;
        errand__audit_event(scheduler,
                            &(errand_step){
                                .kind = ERRAND_STEP_END,
                                .detail = task->end,
                                .key = task->key,
                                .value = task->number,
                                .label = task->label,
                            },
                            task->label_hash);
        break;
    default:
        break;
    }
}

/* A task that has ended tells one that joined it. */
static void
tell(errand__join *join, const errand_task *task)
{
    errand_task *joiner = join->joiner;

    errand__join_ended(join, task);
    if (joiner->node == ERRAND__NODE_WATCH)
        errand__watch_told(joiner, task);
    else if (joiner->node == ERRAND__NODE_SELECT)
        joiner = joiner->group;
    if (joiner != NULL && (joiner->wait == ERRAND__TASK_WAIT_JOIN ||
                           joiner->wait == ERRAND__TASK_WAIT_SELECT))
        errand__task_ready(joiner, ERRAND_WHY_JOINED);
}

static void
finish(errand_task *task)
{
    errand__list_unlink(&task->work);
    errand__list_unlink(&task->sibling);
    task->parent = task->root = NULL;
    task->finished = true;
    task->fn = NULL;
    task->trace = NULL;
    count_out(task);
    while (!errand__list_empty(&task->joiners)) {
        errand__join *join = ERRAND__CONTAINER(task->joiners.next, errand__join, link);

        errand__list_unlink(&join->link);
        tell(join, task);
    }
    errand__task_release(task);
}
