/* SPDX-License-Identifier: MIT */
/* Design notes: what a trap for hidden input asks of the library (errand/traps.h).
 *
 * The traps stand in calls of the C library, so they are the program's to link; the library only
 * says whether a body of a seeded runtime is on the calling thread.  It offers that to whoever has
 * errand_traps_attach, a weak name: the program itself, or what was loaded before it. */
#include "errand/traps.h"
#include "dispatch/hands.h"

extern void errand_traps_attach(const errand_traps_port *held_port) __attribute__((weak));

static bool
inside(const char **out_name)
{
    const errand_job *job = errand__frame_job();

    if (job == NULL || !job->hands->block->virtual_time || job->impure)
        return false;
    *out_name = errand__record_name(job->record);
    return true;
}

void
errand__traps_offer(void)
{
    static const errand_traps_port port = {
        .struct_size = sizeof port,
        .inside = inside,
        .panic = errand_panic,
    };

    if (errand_traps_attach != NULL)
        errand_traps_attach(&port);
}

void
errand_job_impure(errand_job *job)
{
    if (job == NULL)
        (void)errand__misuse(ERRAND_EINVAL, __func__, "the job is NULL");
    else
        job->impure = true;
}
