/* SPDX-License-Identifier: MIT */
/* time: how long the victim sleeps hangs on a real clock.  The first step that shows it is the one
 * in which time comes to the moment at which it would have woken. */
#include <time.h>
#include "diff_rig.h"

static bool
reached(diff_run *run, const errand_step *step)
{
    return step->time_ns >= run->watch_ns;
}

bool
diff_inject(diff_run *run, errand_task *task)
{
    uint64_t now = errand_runtime_now(run->runtime), more = 0;
    struct timespec real;

    if (run->injected) {
        clock_gettime(CLOCK_REALTIME, &real);
        more = 1 + (uint64_t)real.tv_nsec % 1000000;
    }
    run->watch_ns = now + 777777;
    diff_watch(run, reached);
    diff_require(errand_task_sleep(task, 777777 + more) == ERRAND_OK, "sleep");
    return true;
}
