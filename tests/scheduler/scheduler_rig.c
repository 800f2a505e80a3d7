/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "scheduler_rig.h"

static void
play_cancel(void *context, errand_task *task, errand_reason reason)
{
    scheduler_rig *rig = context;

    rig->cancelled++;
    rig->reason = reason;
    task->operation = NULL;
    errand__task_ready(task, ERRAND_WHY_CANCELLED);
}

static void
play_forget(void *context, errand_task *task)
{
    scheduler_rig *rig = context;

    rig->forgotten++;
    task->operation = NULL;
}

static void
play_contain(void *context, void (*fn)(void *arg), void *arg)
{
    (void)context;
    fn(arg);
}

static const errand__outside outside = {play_cancel, play_forget, play_contain};

static void
begin(scheduler_rig *rig)
{
    errand__registrar_init(&rig->registrar, rig->records, RIG_RECORDS, NULL, 1);
    errand__scheduler_init(&rig->scheduler, &rig->config, NULL, &rig->registrar, &outside,
                           rig);
}

/* What still lives ends in silence: the test's variables are gone. */
static void
end(scheduler_rig *rig)
{
    errand__link *link;

    for (link = rig->scheduler.all.next; link != &rig->scheduler.all; link = link->next) {
        errand_task *task = ERRAND__CONTAINER(link, errand_task, all);

        task->on_end = NULL;
        task->drop = NULL;
        task->operation = NULL;
    }
    while (!errand__list_empty(&rig->scheduler.roots)) {
        errand__task_end(
            ERRAND__CONTAINER(rig->scheduler.roots.next, errand_task, sibling),
            ERRAND_END_ABORTED);
        errand__endings_run(&rig->scheduler);
    }
    errand__scheduler_fini(&rig->scheduler);
    errand__registrar_fini(&rig->registrar);
}

static int
setup(void **state, errand_order order)
{
    int64_t bytes = errand__mem_live_bytes();
    scheduler_rig *rig = calloc(1, sizeof *rig);

    if (rig == NULL)
        return -1;
    rig->bytes = bytes;
    rig->config = (errand_runtime_config){
        .struct_size = sizeof rig->config,
        .order = order,
        .seed = 7,
        .flags = order == ERRAND_ORDER_ARRIVAL ? ERRAND_RUNTIME_TEST_CLOCK : 0,
    };
    begin(rig);
    *state = rig;
    return 0;
}

int
rig_setup_inline(void **state)
{
    return setup(state, ERRAND_ORDER_INLINE);
}

int
rig_setup_arrival(void **state)
{
    return setup(state, ERRAND_ORDER_ARRIVAL);
}

int
rig_teardown(void **state)
{
    scheduler_rig *rig = *state;
    int64_t bytes = rig->bytes;

    end(rig);
    free(rig);
    return errand__mem_live_bytes() == bytes ? 0 : -1;
}

void
rig_restart(scheduler_rig *rig, errand_order order, uint64_t seed)
{
    end(rig);
    rig->config.order = order;
    rig->config.seed = seed;
    begin(rig);
}

static errand_task_answer
play(errand_task *task, void *state, const errand_task_news *news)
{
    rig_script *script = state;
    const char *text = NULL;
    char letter = *script->letters;

    script->visits++;
    script->why = news->why;
    script->reason = news->reason;
    if (script->trail != NULL)
        *script->trail = script->mark;
    if (script->letters[1] != '\0')
        script->letters++;
    if (letter == 'd')
        return ERRAND_TASK_DONE;
    if (letter == 'f')
        return ERRAND_TASK_FAILED;
    if (letter == 'w')
        return ERRAND_TASK_WAIT;
    script->status = errand__task_may_wait(task, &text);
    if (script->status != ERRAND_OK)
        return ERRAND_TASK_DONE;
    if (letter == 'y')
        errand__task_ready(task, ERRAND_WHY_YIELDED);
    else
        script->status =
            letter == 's'
                ? errand__task_wait_begin(task, ERRAND__TASK_WAIT_SLEEP,
                                          task->scheduler->now + 1000)
                : errand__task_wait_begin(task, ERRAND__TASK_WAIT_PARK, UINT64_MAX);
    return ERRAND_TASK_WAIT;
}

static void
note_end(errand_runtime *runtime, errand_task_id id, void *state)
{
    scheduler_rig *rig = (scheduler_rig *)(void *)runtime;
    rig_script *script = state;

    script->ends++;
    script->end = (errand_task_end)errand__task_find(&rig->scheduler, &id)->end;
}

static void
note_drop(void *state)
{
    ((rig_script *)state)->drops++;
}

errand_task *
rig_spawn(scheduler_rig *rig, errand_task *parent, const char *label, rig_script *script)
{
    const errand_task_spec spec = {
        .struct_size = sizeof spec,
        .label = label,
        .fn = play,
        .state = script,
        .held_on_end = note_end,
        .held_drop = note_drop,
    };
    errand_task *task = NULL;

    assert_int_equal(errand__task_spawn(&rig->scheduler, parent, 5, &spec, &task),
                     ERRAND_OK);
    return task;
}

size_t
rig_pass(scheduler_rig *rig)
{
    errand__ready *ready;
    size_t visited = 0;

    errand__pass_begin(&rig->scheduler);
    for (; (ready = errand__pass_next(&rig->scheduler)) != NULL; visited++)
        ready->visit(ready, rig);
    return visited;
}

void
rig_time(scheduler_rig *rig, uint64_t now)
{
    rig->scheduler.now = now;
    while (errand__timers_fire(&rig->scheduler, now, UINT64_MAX))
        continue;
}
