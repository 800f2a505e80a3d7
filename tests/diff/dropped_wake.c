/* SPDX-License-Identifier: MIT */
/* dropped_wake: a parked task is not woken that should be.  It shows when the next pass is taken. */
#include "diff_rig.h"

static bool
is_next_pass(diff_run *run, const errand_step *step)
{
    return step->kind == ERRAND_STEP_TASK && step->time_ns > run->watch_ns;
}

bool
diff_inject(diff_run *run, errand_task *task)
{
    if (!run->injected)
        diff_require(errand_task_wake(run->runtime, &run->parked) == ERRAND_OK, "wake");
    run->watch_ns = errand_runtime_now(run->runtime);
    diff_watch(run, is_next_pass);
    diff_require(errand_task_yield(task) == ERRAND_OK, "yield");
    return true;
}
