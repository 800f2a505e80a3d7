/* SPDX-License-Identifier: MIT */
/* Design notes: operations of the seeded orders.
 *
 * Everything about an operation is drawn when it is submitted; then it waits in the due heap.  At
 * its due its job is handed to its executor and waited for, so exactly one runs at a time, and it
 * sees the world as it is at its due.  What a real worker does meanwhile changes nothing that a
 * program can see: news that other threads put in between stay in `pending` until the next
 * instant (O65).
 *
 * Time moves here and nowhere else. */
#include "runtime/runtime.h"
#include "scheduler/audit.h"

static void put_back(errand_runtime *runtime, errand__record *record);

uint64_t
errand__submit_key(errand_runtime *runtime, errand_task *task)
{
    if (runtime->given_key != 0)
        return runtime->given_key;
    return task == NULL ? errand__key_operation(runtime->key, runtime->submissions++)
                        : errand__key_operation(task->key, task->submissions++);
}

void
errand__order_queue(errand_runtime *runtime, errand__record *record, errand_task *task)
{
    errand__scheduler *scheduler = &runtime->scheduler;
    const char *name;
    uint64_t key;

    if (task == NULL)
        task = scheduler->running;
    key = errand__submit_key(runtime, task);
    record->extra->slot = record->slot;
    if (record->extra->domain != NULL)
        errand__domain_enter(runtime, record);
    errand__order_draw(scheduler, record->extra, key, record->kind);
    name = errand__record_name(record);
    record->extra->label_hash = errand__label_recall(scheduler, name);
    errand__audit_fold(scheduler,
                       &(errand_step){
                           .kind = ERRAND_STEP_SUBMIT,
                           .detail = record->kind,
                           .key = key,
                           .value = record->extra->due,
                           .context = task == NULL ? 0 : task->key,
                           .label = name,
                       },
                       record->extra->label_hash);
    if (errand__paced(runtime) && record->extra->begin <= scheduler->now)
        errand__paced_hand(runtime, record);
}

void
errand__order_move(errand_runtime *runtime, uint64_t to)
{
    errand__scheduler *scheduler = &runtime->scheduler;

    if (to <= scheduler->now)
        return;
    scheduler->now = to;
    errand__audit_fold(scheduler, &(errand_step){.kind = ERRAND_STEP_TIME, .value = to},
                       0);
    if (scheduler->begins.count != 0)
        errand__paced_begin(runtime);
}

uint64_t
errand__order_event(errand_runtime *runtime)
{
    uint64_t due = errand__order_next(&runtime->scheduler), other;

    if ((runtime->deadlines.count | runtime->scheduler.timers.count |
         runtime->cleanup_count) == 0)
        return due;
    other = errand__next_deadline(runtime);
    return due < other ? due : other;
}

void
errand__order_advance(errand_runtime *runtime, uint64_t limit)
{
    uint64_t next = errand__order_event(runtime);

    if (limit < next)
        next = limit;
    if (next != UINT64_MAX)
        errand__order_move(runtime, next);
    runtime->scheduler.turn_over = false;
}

/* Runs the job of a due operation here and now, whoever's thread does it.  False: the deadline of
 * the runtime's end passed first; the job is its executor's, which drops it (O73). */
static bool
run_now(errand_runtime *runtime, errand__record *record)
{
    errand_lease *lease = runtime->leases[record->lease];
    const errand__executor_ops *ops = lease->executor->ops;
    uint64_t since = 0;

    record->owner_flags |= ERRAND__OWN_HANDED;
    if (errand__due_run_here(lease, record))
        return true;
    ops->submit(lease, record, (uint32_t)record->generation);
    if (ops->flush != NULL)
        ops->flush(lease);
    for (;;) {
        if (ops->step != NULL)
            ops->step(lease);
        if (errand__pending_take(runtime, record)) {
            errand__asked_run(runtime, record);
            if (!errand__due_lost(runtime, record))
                return true;
            put_back(runtime, record);
            return false;
        }
        if (errand__asked_run(runtime, record))
            continue;
        if (!errand__due_sleep(runtime, record, &since))
            return false;
    }
}

/* Of a window of a thousand each operation is cold when it is due, and so are who waits for it and the
 * task behind that.  Each names the next, so they are fetched a step ahead: before the body of the
 * one in hand the extra of whoever is first then, and the resume of the one in hand; after it the
 * record of the first and the task of the one in hand.  With 1024 tasks that await it saves 20 of
 * 240 ns. */
static inline void
fetch_three(const void *lines)
{
    errand__prefetch_own(lines);
    errand__prefetch_own((const char *)lines + ERRAND_LINE);
    errand__prefetch_own((const char *)lines + 2 * ERRAND_LINE);
}

static inline void
fetch_before(const errand_runtime *runtime, const errand__record *record)
{
    const errand__heap_entry *next = errand__dues_known(&runtime->scheduler.due, 0);

    if (record->resume != NULL) {
        fetch_three(record->resume);
        fetch_three((const char *)record->resume + 3 * ERRAND_LINE);
    }
    if (next != NULL)
        fetch_three(ERRAND__CONTAINER(next, const errand__extra, due_entry));
}

static inline void
fetch_after(const errand_runtime *runtime, const errand__record *record)
{
    const errand__heap_entry *next = errand__dues_known(&runtime->scheduler.due, 0);

    if (record->resume != NULL && record->resume->task != NULL)
        fetch_three(&record->resume->task->ready.visits);
    if (next != NULL)
        fetch_three(
            &runtime->registrar
                 .records[ERRAND__CONTAINER(next, const errand__extra, due_entry)->slot]);
}

bool
errand__due_next(errand_runtime *runtime, uint64_t limit, errand_completion_fn *fn,
                 void *arg)
{
    errand__heap_entry *first = errand__dues_first(&runtime->scheduler.due);
    errand__record *record;
    errand__extra *extra;

    if (errand__paced(runtime)) {
        record = errand__paced_due(runtime, limit);
        if (record != NULL)
            errand__deliver(runtime, record, fn, arg);
        return record != NULL;
    }
    if (first == NULL || first->major > limit || runtime->external)
        return false;
    extra = ERRAND__CONTAINER(first, errand__extra, due_entry);
    record = &runtime->registrar.records[extra->slot];
    ERRAND_ASSERT(extra->due <=
                  runtime->scheduler.now); /* its job sees its due, or later */
    if (runtime->unhanded) {
        if (!errand__replay_settle(runtime, record))
            return false;
        errand__order_forget(&runtime->scheduler, extra);
    } else {
        errand__dues_remove(&runtime->scheduler.due, first);
        fetch_before(runtime, record);
        if (!run_now(runtime, record))
            return false;
        fetch_after(runtime, record);
    }
    errand__deliver(runtime, record, fn, arg);
    return true;
}

/* The run has ended with this completion in hand: its shutdown tells it. */
static void
put_back(errand_runtime *runtime, errand__record *record)
{
    uintptr_t link = (uintptr_t)record | ERRAND__NODE_COMPLETION;

    *errand__node_next(link) = runtime->pending;
    if (runtime->pending == 0)
        runtime->pending_last = link;
    runtime->pending = link;
}

/* The rest stays in its order. */
bool
errand__pending_take(errand_runtime *runtime, errand__record *record)
{
    uintptr_t self = (uintptr_t)record | ERRAND__NODE_COMPLETION;
    uintptr_t before = runtime->pending == 0 || runtime->config.held_replay != NULL
                           ? 0
                           : runtime->pending_last;
    uintptr_t link, *place;

    /* But for a replay, it can only be among what was not collected before: it was not handed over
     * before. */
    errand__collect(runtime);
    place = before == 0 ? &runtime->pending : errand__node_next(before);
    for (link = *place; link != 0; link = *place) {
        if (link == self) {
            *place = *errand__node_next(link);
            if (*place == 0)
                runtime->pending_last = before;
            return true;
        }
        before = link;
        place = errand__node_next(link);
    }
    return false;
}
