/* SPDX-License-Identifier: MIT */
/* pointer_order: the victim takes the one of two items that comes first by its number, or by its
 * address, and that is what it notes it as. */
#include <stdint.h>
#include <stdlib.h>
#include "diff_rig.h"

bool
diff_inject(diff_run *run, errand_task *task)
{
    char *items[2] = {malloc(100), malloc(100)};
    uint64_t first = 1;

    (void)task;
    if (run->injected)
        first = (uint64_t)(uintptr_t)(items[0] < items[1] ? items[0] : items[1]);
    diff_next(run);
    diff_require(errand_audit_note(run->runtime, "item", &first, sizeof first) ==
                     ERRAND_OK,
                 "note");
    free(items[0]);
    free(items[1]);
    return false;
}
