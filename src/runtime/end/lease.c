/* SPDX-License-Identifier: MIT */
/* Design notes: a lease ends alone (O57): nothing new is admitted, what is queued is cancelled, what
 * runs is waited for, and nobody is told before the next drain. */
#include "runtime/end/end.h"

void
errand__end_lease(errand_lease *lease, uint64_t deadline_ns)
{
    if (lease->closed)
        return;
    const errand__executor_ops *ops = lease->executor->ops;
    lease->closed = true;
    ops->detach(lease, deadline_ns);
    lease->lingers = ops->lingers != NULL && ops->lingers(lease);
    if (ops->collect != NULL && !lease->lingers)
        ((errand_runtime *)lease->runtime)->collectors--;
}

bool
errand__end_clean(const errand_report *report)
{
    return report->live_waits == 0 && report->live_tasks == 0 && report->entries == 0 &&
           report->undeliverable == 0 && report->held == 0 &&
           report->posts_dropped == 0 && report->running == 0;
}

errand_status
errand_lease_shutdown(errand_lease **take_lease, uint64_t deadline_ns,
                      errand_report *out_report)
{
    errand_report report = {.clean = false};
    errand_runtime *runtime;
    errand_lease *lease;

    ERRAND_REQUIRE_ARG(take_lease != NULL && *take_lease != NULL, ERRAND_EINVAL,
                       "take_lease is NULL, or spent");
    lease = *take_lease;
    runtime = lease->runtime;
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(!errand__on_worker(), ERRAND_EDEADLOCK,
                       "a job may not shut a lease");
    if (runtime->draining || runtime->driving)
        return errand__misuse(ERRAND_EBUSY, __func__, "a drain or drive is in progress");
    if (lease->closed)
        return errand__misuse(ERRAND_ESPENT, __func__, "the lease was shut already");
    runtime->frame = errand__frame_innermost();
    runtime->draining = true;
    lease->refusing = true;
    errand__end_cancel(runtime, lease, true);
    errand__end_settle(runtime, lease, deadline_ns, ERRAND_SHUTDOWN_RUN);
    errand__end_lease(lease, deadline_ns);
    runtime->draining = false;
    if (runtime->fd_wanted)
        errand__fd_update(runtime);
    errand__lease_account(lease, &report.accounts);
    report.accounts.owed = report.accounts.accepted - report.accounts.drained;
    report.running = report.accounts.running;
    report.undeliverable = report.accounts.undeliverable;
    report.clean = errand__end_clean(&report);
    if (out_report != NULL)
        *out_report = report;
    *take_lease = NULL;
    return ERRAND_OK;
}
