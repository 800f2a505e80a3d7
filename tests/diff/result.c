/* SPDX-License-Identifier: MIT */
/* result: one bit of what a job answers is another. */
#include <string.h>
#include "diff_rig.h"

static bool
is_its_completion(diff_run *run, const errand_step *step)
{
    (void)run;
    return step->kind == ERRAND_STEP_COMPLETION && strcmp(step->label, "flaky") == 0;
}

bool
diff_inject(diff_run *run, errand_task *task)
{
    unsigned char bytes[8] = "answer";

    (void)task;
    bytes[3] ^= run->injected;
    diff_watch(run, is_its_completion);
    diff_start(run, "flaky", bytes, sizeof bytes);
    return false;
}
