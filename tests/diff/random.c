/* SPDX-License-Identifier: MIT */
/* random: the victim throws a die that is not errand's, and notes it. */
#include <sys/random.h>
#include "diff_rig.h"

bool
diff_inject(diff_run *run, errand_task *task)
{
    unsigned char die = 0;

    (void)task;
    if (run->injected) {
        diff_require(getrandom(&die, 1, 0) == 1, "getrandom");
        die |= 1; /* so that it differs from the other run's for sure */
    }
    diff_next(run);
    diff_require(errand_audit_note(run->runtime, "die", &die, 1) == ERRAND_OK, "note");
    return false;
}
