/* SPDX-License-Identifier: MIT */
/* Design notes: jobs that run in other processes.
 *
 * Such a process cannot put a completion, it can only write its answer into memory that both share.
 * So the owner looks there wherever it looks for news, and while it waits it sleeps on those words
 * too: an answer takes one wake, as a put does, and no thread passes it on. */
#include "runtime/runtime.h"

errand__watch *
errand__answers_watch(errand_runtime *runtime, errand__watch *watch)
{
    if (runtime->collectors == 0 || errand__leases_own(runtime))
        return NULL; /* who sleeps elsewhere is told by a put */
    watch->count = 0;
    watch->spins = false;
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
        errand_lease *lease = runtime->leases[i];

        if (!lease->closed && lease->executor->ops->watch != NULL)
            lease->executor->ops->watch(lease, watch);
    }
    return watch->count != 0 ? watch : NULL;
}
