/* SPDX-License-Identifier: MIT */
/* Design notes: what snapshots of all executors have in common (O49). */
#include "workers/workers.h"

#define OVERRUNS_SHOWN                                                                   \
    (sizeof((errand_executor_snapshot *)0)->overrun / sizeof(errand_overrun))

void
errand__age_raise(uint64_t *oldest, uint64_t age)
{
    if (age > *oldest)
        *oldest = age;
}

/* Keeps the oldest of them, oldest first. */
void
errand__overrun_note(errand_executor_snapshot *out, const errand_overrun *overrun)
{
    uint32_t at = out->overruns < OVERRUNS_SHOWN ? out->overruns : OVERRUNS_SHOWN;

    out->overruns++;
    while (at > 0 && out->overrun[at - 1].age_ns < overrun->age_ns) {
        if (at < OVERRUNS_SHOWN)
            out->overrun[at] = out->overrun[at - 1];
        at--;
    }
    if (at < OVERRUNS_SHOWN)
        out->overrun[at] = *overrun;
}

void
errand__ages_add(errand_executor_snapshot *out, const errand_executor_snapshot *more)
{
    uint32_t shown = more->overruns < OVERRUNS_SHOWN ? more->overruns : OVERRUNS_SHOWN;

    errand__age_raise(&out->oldest_queued_ns, more->oldest_queued_ns);
    errand__age_raise(&out->oldest_running_ns, more->oldest_running_ns);
    for (uint32_t i = 0; i < shown; i++)
        errand__overrun_note(out, &more->overrun[i]);
    out->overruns += more->overruns - shown;
    out->queued += more->queued;
    out->running += more->running;
    out->workers += more->workers;
    out->idle += more->idle;
    out->written_off += more->written_off;
    out->threads_refused += more->threads_refused;
    out->threads_started += more->threads_started;
    out->threads_retired += more->threads_retired;
    out->threads_replaced += more->threads_replaced;
    out->destructor_panics += more->destructor_panics;
    out->leaked += more->leaked;
    for (int i = 0; i < 40; i++) {
        out->wait_histogram[i] += more->wait_histogram[i];
        out->run_histogram[i] += more->run_histogram[i];
    }
}

void
errand__lease_ages(const errand_lease *lease, errand_executor_snapshot *out)
{
    errand_snapshot accounts = {.accepted = 0};

    lease->executor->ops->snapshot(lease->executor, lease, out);
    errand__lease_account(lease, &accounts);
    out->queued = accounts.queued;
    out->running = accounts.running;
}
