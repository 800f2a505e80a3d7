/* SPDX-License-Identifier: MIT */
/* real_timeout: the victim ends a task because a real clock says that it took too long. */
#include <time.h>
#include "diff_rig.h"

bool
diff_inject(diff_run *run, errand_task *task)
{
    struct timespec now;
    bool late;

    (void)task;
    clock_gettime(CLOCK_MONOTONIC, &now);
    late = run->injected && (now.tv_sec > 0 || now.tv_nsec > 0);
    diff_next(run);
    if (late)
        diff_require(errand_task_cancel(run->runtime, &run->parked,
                                        ERRAND_REASON_TIMEOUT) == ERRAND_OK,
                     "cancel");
    return false;
}
