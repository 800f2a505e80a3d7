/* SPDX-License-Identifier: MIT */
/* Design notes: drive and park until one task has ended; and what to say if it never will.
 *
 * The run ends with the item in which the task ended (D9), and its timeout comes before all that
 * is due at the same instant (D37).  A stall is a turn that did nothing, with nothing out and no
 * deadline to wait for: then no later turn can do anything either. */
#include <stdio.h>
#include <string.h>
#include "runtime/runtime.h"

static bool
has_ended(errand_runtime *runtime, const errand_task_id *id)
{
    const errand_task *task = errand__task_find(&runtime->scheduler, id);

    return task == NULL || task->finished;
}

/* After a turn without progress. */
static errand_status
wait_for_more(errand_runtime *runtime, const errand_turn *turn, uint64_t deadline)
{
    uint64_t until =
        turn->next_deadline_ns < deadline ? turn->next_deadline_ns : deadline;

    if (turn->next_deadline_ns == UINT64_MAX && !turn->inbox_needed)
        return ERRAND_EDEADLOCK;
    if ((runtime->config.flags & ERRAND_RUNTIME_TEST_CLOCK) != 0 &&
        !errand__seeded(runtime) && until != UINT64_MAX) {
        /* That clock moves by hand, and this is the hand's thread. */
        if (!turn->inbox_needed && !runtime->registrar.shared)
            return ERRAND_EDEADLOCK;
        errand__park_news(runtime);
        return ERRAND_OK;
    }
    errand__park(runtime, until);
    return runtime->external ? runtime->external_status : ERRAND_OK;
}

/* A replay: how the log says that the run ended here; OK = it went on. */
static errand_status
logged_end(errand_runtime *runtime)
{
    const errand_log_step *next = errand__replay_peek(runtime);

    if (next == NULL || next->step.kind != ERRAND_STEP_TURN ||
        next->step.detail != ERRAND_TURN_STEP_RUN)
        return ERRAND_OK;
    if (next->step.value == ERRAND_OK)
        errand__replay_leave(runtime, "in this run its task has not ended");
    return errand__replay_status_of(next->step.value);
}

static errand_status
run_until(errand_runtime *runtime, const errand_task_id *id, uint64_t deadline_ns)
{
    errand__turn turn;
    errand_status status = ERRAND_OK;

    while (status == ERRAND_OK && !has_ended(runtime, id)) {
        if (errand__replay_arrival(runtime)) {
            status = logged_end(runtime);
            if (status != ERRAND_OK || runtime->external)
                break;
        } else if (errand__runtime_time(runtime) >= deadline_ns) {
            return ERRAND_ETIMEOUT;
        }
        errand__turn_init(&turn, NULL);
        turn.stop = errand__task_find(&runtime->scheduler, id);
        turn.stop_number = id->task;
        turn.until = deadline_ns;
        errand__turn_run(runtime, &turn);
        if (turn.done.kind != ERRAND_TURN_PROGRESS && !errand__replay_arrival(runtime))
            status = wait_for_more(runtime, &turn.done, deadline_ns);
        if (runtime->external)
            status = runtime->external_status;
    }
    return status;
}

errand_status
errand_run(errand_runtime *runtime, const errand_task_id *id, uint64_t deadline_ns)
{
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(id != NULL, ERRAND_EINVAL, "the id is NULL");
    ERRAND_REQUIRE_ARG(!errand__on_worker(), ERRAND_EDEADLOCK,
                       "a job may not run a runtime");
    if (runtime->draining || runtime->driving)
        return errand__misuse(
            ERRAND_EBUSY, __func__,
            "a drain or drive is in progress, or was left and not unwound");
    if (id->runtime != runtime->id || errand__task_find(&runtime->scheduler, id) == NULL)
        return ERRAND_EUNKNOWN;
    if (runtime->external)
        return runtime->external_status;
    if (runtime->config.deadline_ns != 0 && runtime->config.deadline_ns < deadline_ns)
        deadline_ns = runtime->config.deadline_ns;
    status = run_until(runtime, id, deadline_ns);
    errand__input_turn(runtime, ERRAND_TURN_STEP_RUN, 0, (uint64_t)status);
    if (runtime->external)
        status = runtime->external_status;
    return runtime->run_status = status;
}

/* ---- the text of a stall ------------------------------------------------------------------------ */

enum { PATH_LABELS = 16 }; /* the nearest ones */

typedef struct stall_report {
    char *out;
    size_t size, length;
} stall_report;

static void ERRAND_PRINTF(2, 3) add(stall_report *report, const char *format, ...)
{
    size_t room = report->size > report->length ? report->size - report->length : 0;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(room == 0 ? NULL : report->out + report->length, room, format,
                       arguments);
    va_end(arguments);
    if (length > 0)
        report->length += (size_t)length;
}

/* Who waits, with the labels of what it stands below: 'run/server/session'. */
static void
add_path(stall_report *report, const errand_task *task)
{
    const errand_task *path[PATH_LABELS], *node = task;
    size_t count = 0;

    add(report, "task %llu '", (unsigned long long)task->number);
    for (; node != NULL && count < PATH_LABELS; node = node->parent)
        path[count++] = node;
    if (node != NULL)
        add(report, ".../");
    while (count-- > 0)
        add(report, "%s%s", path[count]->label, count == 0 ? "'" : "/");
}

static void
add_joins(stall_report *report, const errand_task *task, const char *between)
{
    for (size_t i = 0; i < task->join_count; i++) {
        uint64_t target = task->joins[i].target;

        if ((target & ERRAND__NODE_BIT) == 0)
            add(report, "%s task %llu", between, (unsigned long long)target);
        else
            add(report, "%s a watch", between);
        between = ",";
    }
}

static void
add_wait(stall_report *report, const errand_task *task)
{
    const errand__resume *resume = task->operation;
    const errand__record *record = resume == NULL ? NULL : resume->record;

    switch (task->wait) {
    case ERRAND__TASK_WAIT_SLEEP:
        add(report, " sleeps");
        break;
    case ERRAND__TASK_WAIT_JOIN:
        add_joins(report, task,
                  errand__task_lingers(task) ? " has answered, and waits for the end of"
                                             : " joins");
        break;
    case ERRAND__TASK_WAIT_SELECT:
        add_joins(report, task->group, " selects");
        break;
    case ERRAND__TASK_WAIT_SIGNAL:
        add(report, " waits for the stop");
        break;
    case ERRAND__TASK_WAIT_STOP:
        add(report, " waits for %llu signals to be released",
            (unsigned long long)task->scheduler->signals);
        break;
    case ERRAND__TASK_WAIT_PARK:
        add(report, " is parked");
        break;
    default:
        if (record == NULL)
            add(report, " is about to hear of its operation");
        else
            add(report, " awaits operation %llu '%s'",
                (unsigned long long)record->operation, errand__record_name(record));
        break;
    }
    if (task->limit.entry.position != 0)
        add(report, " until %llu ns", (unsigned long long)task->limit.entry.major);
}

size_t
errand_stall_text(errand_runtime *runtime, char *out, size_t size)
{
    stall_report report = {.out = out, .size = out == NULL ? 0 : size};
    const errand__link *head, *link;

    if (errand__runtime_check(runtime, __func__) != ERRAND_OK)
        return 0;
    if (report.size > 0)
        out[0] = '\0';
    if (runtime->external)
        add(&report, "%s\n", runtime->external_text);
    head = &runtime->scheduler.waiting;
    for (link = head->next; link != head; link = link->next) {
        const errand_task *task = ERRAND__CONTAINER(link, const errand_task, waiting);

        add_path(&report, task);
        add_wait(&report, task);
        add(&report, "\n");
    }
    for (const errand__cleanup *entry = errand__cleanup_stuck(runtime, NULL);
         entry != NULL; entry = errand__cleanup_stuck(runtime, entry))
        add(&report, "cleanup of wait %llu is stuck after %u errors: %s\n",
            (unsigned long long)entry->wait_id, entry->errors, entry->text);
    return report.length;
}
