/* SPDX-License-Identifier: MIT */
/* ready_order: of the tasks that are ready another one goes first.  Three tasks are
 * spawned, and when their pass has been taken the first of them that runs puts the next one to its
 * end, as if it had been shuffled otherwise. */
#include "diff_rig.h"
#include "runtime/runtime.h"

static bool
is_run(diff_run *run, const errand_step *step)
{
    (void)run;
    return step->kind == ERRAND_STEP_TASK;
}

static errand_task_answer
run_once(errand_task *task, void *state, const errand_task_news *news)
{
    diff_run *run = state;
    errand__link *pass = &run->runtime->scheduler.pass;

    (void)task;
    if (news->why != ERRAND_WHY_START || errand__list_empty(pass))
        return ERRAND_TASK_DONE;
    if (run->found == 0 && run->watch == NULL)
        diff_watch(run, is_run);
    if (run->injected) {
        errand__link *next = pass->next;

        errand__list_unlink(next);
        errand__list_append(pass, next);
    }
    return ERRAND_TASK_DONE;
}

bool
diff_inject(diff_run *run, errand_task *task)
{
    errand_task_id self = errand_task_self(task);

    for (char label[] = "a"; label[0] <= 'c'; label[0]++) {
        errand_task_spec spec = {
            .struct_size = sizeof spec, .label = label, .fn = run_once, .state = run};
        errand_task_id id;

        diff_require(errand_spawn(run->runtime, &self, &spec, &id) == ERRAND_OK, "spawn");
    }
    return false;
}
