/* SPDX-License-Identifier: MIT */
/* hash_order: the victim goes through a hash table whose order hangs on a number drawn anew by each
 * process, as many hash tables have one. */
#include <stdint.h>
#include "diff_rig.h"

bool
diff_inject(diff_run *run, errand_task *task)
{
    static const char *const names[] = {"ash", "birch", "cedar", "elm"};
    uint64_t salt = run->injected ? 2 : 0; /* of a table of four */

    (void)task;
    diff_next(run);
    for (uint64_t bucket = 0; bucket < 4; bucket++)
        diff_require(errand_audit_note(run->runtime, names[bucket ^ salt], NULL, 0) ==
                         ERRAND_OK,
                     "note");
    return false;
}
