/* SPDX-License-Identifier: MIT */
/* Design notes: a due operation whose executor has no threads.
 *
 * Its job is run here and now by the executor's own hands (workers/manual/here.c).  Async jobs
 * go the long way: they may be pending, and what wakes them comes in as news. */
#include "runtime/runtime.h"

bool
errand__due_run_here(errand_lease *lease, errand__record *record)
{
    const errand__executor_ops *ops = lease->executor->ops;

    return ops->run_here != NULL &&
           record->resource_class != ERRAND_INTERRUPTIBLE_ASYNC &&
           ops->run_here(lease, record);
}
