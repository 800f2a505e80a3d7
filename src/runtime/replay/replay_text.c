/* SPDX-License-Identifier: MIT */
/* replay_text: where a run left its log, in words.
 *
 * Design notes.  A step has numbers only; the tasks that live say which paths they mean.  A task that
 * the log has and the run has not keeps its number. */
#include <stdio.h>
#include <string.h>
#include "runtime/replay/replay.h"

enum { PATH_MAX_LABELS = 8 };

typedef struct sentence {
    char *out;
    size_t size, length;
} sentence;

static void ERRAND_PRINTF(2, 3) add(sentence *text, const char *format, ...)
{
    va_list arguments;
    int length;

    if (text->length + 1 >= text->size)
        return;
    va_start(arguments, format);
    length =
        vsnprintf(text->out + text->length, text->size - text->length, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->length += (size_t)length;
    if (text->length >= text->size)
        text->length = text->size - 1;
}

static const errand_task *
task_of(const errand_runtime *runtime, uint64_t key)
{
    const errand__link *head = &runtime->scheduler.all, *link;

    for (link = head->next; key != 0 && link != head; link = link->next) {
        const errand_task *task = ERRAND__CONTAINER(link, const errand_task, all);

        if (task->key == key)
            return task;
    }
    return NULL;
}

/* "run/server/session" */
static void
add_path(sentence *text, const errand_task *task)
{
    const errand_task *path[PATH_MAX_LABELS];
    size_t count = 0;

    for (; task != NULL && count < PATH_MAX_LABELS; task = task->parent)
        path[count++] = task;
    if (task != NULL)
        add(text, ".../");
    while (count-- > 0)
        add(text, "%s%s", path[count]->label, count == 0 ? "" : "/");
}

static void
add_task(sentence *text, const errand_runtime *runtime, uint64_t key, const char *label)
{
    const errand_task *task = task_of(runtime, key);

    add(text, "task '");
    if (task != NULL)
        add_path(text, task);
    else
        add(text, "%s", label == NULL ? "?" : label);
    add(text, "'");
}

static void
add_below(sentence *text, const errand_runtime *runtime, uint64_t key)
{
    if (key == 0) {
        add(text, ", outside of any task");
        return;
    }
    add(text, " by ");
    add_task(text, runtime, key, NULL);
}

static void
add_turn(sentence *text, const errand_runtime *runtime, const errand_step *step)
{
    switch (step->detail) {
    case ERRAND_TURN_STEP_VISIT:
        add(text, "the turn of ");
        add_task(text, runtime, step->key, "or continuation");
        break;
    case ERRAND_TURN_STEP_DEADLINE:
        add(text, "an operation's deadline");
        break;
    case ERRAND_TURN_STEP_LATER:
        add(text, "what was put off");
        break;
    case ERRAND_TURN_STEP_END:
        add(text, "the end of a turn or drain");
        break;
    case ERRAND_TURN_STEP_BACK:
        add(text, "the end of a body that outlived its operation");
        break;
    case ERRAND_TURN_STEP_RUN:
        add(text, "the end of errand_run with '%s'",
            errand_status_text((errand_status)step->value));
        break;
    default:
        add(text, "the end of a wait");
        break;
    }
}

static void
add_step(sentence *text, const errand_runtime *runtime, const errand_step *step)
{
    const char *label = step->label == NULL ? "" : step->label;

    switch (step->kind) {
    case ERRAND_STEP_SUBMIT:
        add(text, "submission of operation '%s'", label);
        add_below(text, runtime, step->context);
        break;
    case ERRAND_STEP_COMPLETION:
        add(text, "completion of operation '%s', %s (its result's digest %016llx)", label,
            errand_outcome_name((errand_outcome)step->detail),
            (unsigned long long)step->value);
        break;
    case ERRAND_STEP_SPAWN:
        add(text, "spawn of task '%s'", label);
        add_below(text, runtime, step->context);
        break;
    case ERRAND_STEP_TASK:
    case ERRAND_STEP_END:
        add(text, step->kind == ERRAND_STEP_TASK ? "a turn of " : "the end of ");
        add_task(text, runtime, step->key, label);
        add(text, " (%u)", step->detail);
        break;
    case ERRAND_STEP_NOTE:
        add(text, "the note '%s' (%llu bytes, digest %016llx)", label,
            (unsigned long long)step->context, (unsigned long long)step->value);
        break;
    case ERRAND_STEP_COMMAND:
        add(text, "%s", label);
        break;
    case ERRAND_STEP_REFUSED:
        add(text, "a refused submission (%s)",
            errand_status_text((errand_status)step->detail));
        add_below(text, runtime, step->context);
        break;
    case ERRAND_STEP_TURN:
        add_turn(text, runtime, step);
        break;
    case ERRAND_STEP_TIME:
        add(text, "the clock at %llu ns", (unsigned long long)step->value);
        break;
    default:
        add(text, "%s", errand_step_name(step->kind));
        if (label[0] != '\0')
            add(text, " of '%s'", label);
        else if (task_of(runtime, step->key) != NULL) {
            add(text, " of ");
            add_task(text, runtime, step->key, NULL);
        }
        break;
    }
}

/* Steps that read alike differ in what a reader does not see. */
static const char *
difference(const errand_step *logged, const errand_step *step, bool seeded)
{
    if (logged->kind != step->kind || strcmp(logged->label == NULL ? "" : logged->label,
                                             step->label == NULL ? "" : step->label) != 0)
        return "";
    if (logged->key != step->key)
        return "; their keys differ";
    if (logged->value != step->value)
        return "; their values differ";
    if (logged->detail != step->detail || logged->context != step->context)
        return "; their details differ";
    if (seeded && logged->time_ns != step->time_ns)
        return "; their times differ";
    if (logged->chosen != step->chosen)
        return "; the choices before them differ";
    return "";
}

static void
add_log_end(sentence *text, const errand_replay *replay)
{
    errand_log_end end = {.state = ERRAND_LOG_OPEN};
    errand_status status = errand_log_end_read(replay->log, &end);

    (void)status;
    if (end.state == ERRAND_LOG_ENDED)
        add(text, "the log has nothing more: the recorded run ended here");
    else
        add(text, "the log ends here, without the run's end: %s", end.text);
}

void
errand__replay_say(errand_replay *replay, const errand_step *step, const char *instead)
{
    const errand_runtime *runtime = replay->runtime;
    const errand_log_step *next = errand__replay_peek(runtime);
    const errand_task *running = runtime->scheduler.running;
    sentence text = {.out = replay->text, .size = sizeof replay->text};

    add(&text, "the replay left the log at step %llu",
        (unsigned long long)(next == NULL ? replay->met + 1 : next->step.step));
    if (running != NULL) {
        add(&text, ", in task '");
        add_path(&text, running);
        add(&text, "'");
    }
    add(&text, ": ");
    if (next == NULL) {
        add_log_end(&text, replay);
    } else {
        add(&text, "the log has ");
        add_step(&text, runtime, &next->step);
    }
    add(&text, "; %s", step != NULL ? "the run came to " : instead);
    if (step != NULL)
        add_step(&text, runtime, step);
    if (step != NULL && next != NULL)
        add(&text, "%s", difference(&next->step, step, errand__seeded(runtime)));
}
