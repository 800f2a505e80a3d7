/* SPDX-License-Identifier: MIT */
/* Design notes: the executor without threads, for tests and for hosts that have none.
 *
 * What it does is what the pool does, one body at a time, when it is told: so a test decides what
 * has happened when it looks, and needs no sleep.  The lock is there because one thread may
 * step what another's runtime submits. */
#include <string.h>
#include "workers/manual/manual.h"

static const errand__executor_ops manual_ops;

errand_status
errand_manual_create(const errand_manual_config *config, errand_executor **out_executor)
{
    static const errand_manual_config defaults = {.struct_size = sizeof defaults};
    errand__manual *executor;
    uint32_t quarantined;

    ERRAND_REQUIRE_ARG(out_executor != NULL, ERRAND_EINVAL, "out_executor is NULL");
    if (config == NULL)
        config = &defaults;
    ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config, ERRAND_EINVAL,
                       "config->struct_size must be sizeof(errand_manual_config)");
    ERRAND_REQUIRE_ARG(config->flags == 0, ERRAND_EINVAL,
                       "config->flags has unknown bits");
    executor = errand__mem_alloc(NULL, sizeof *executor);
    if (executor == NULL)
        return ERRAND_ENOMEM;
    executor->workers = config->workers > 0 ? config->workers : 1;
    quarantined = config->quarantined_limit;
    if (quarantined == 0)
        quarantined = executor->workers > 1 ? executor->workers / 2 : 1;
    executor->lanes[ERRAND_LANE_MAIN].limit = executor->workers;
    executor->lanes[ERRAND_LANE_QUARANTINED].limit = quarantined;
    errand__list_init(&executor->leases);
    errand__poller_init(&executor->poller, &executor->spans);
    errand__executor_init(&executor->base, &manual_ops);
    *out_executor = &executor->base;
    return ERRAND_OK;
}

static errand_status
manual_lane_define(errand_executor *executor, const char *name, uint32_t limit,
                   uint8_t *out_lane)
{
    errand__manual *self = errand__manual_of(executor);
    errand_status status = ERRAND_EFULL;

    (void)name; /* there is no thread or report that would show it */
    errand__lock_acquire(&self->lock);
    if (self->lanes_fixed)
        status = ERRAND_EBUSY;
    for (uint8_t lane = ERRAND_LANE_FIRST_OWN;
         status == ERRAND_EFULL && lane < ERRAND_LANES; lane++) {
        if (self->lanes[lane].limit != 0)
            continue;
        self->lanes[lane].limit = limit;
        *out_lane = lane;
        status = ERRAND_OK;
    }
    errand__lock_release(&self->lock);
    if (status == ERRAND_EBUSY)
        return errand__misuse(status, "errand_lane_define",
                              "the executor has had a lease");
    return status;
}

static uint32_t
manual_cells(errand_executor *executor)
{
    (void)executor;
    return 1; /* the stepping thread's */
}

static errand_status
manual_attach(errand_executor *executor, errand_lease *lease)
{
    errand__manual *self = errand__manual_of(executor);
    errand__manual_lease *mine = errand__mem_alloc(NULL, sizeof *mine);
    errand__port *port = mine == NULL ? NULL : errand__port_create();

    if (port == NULL || !errand__roster_init(&mine->roster, lease, &self->lock, port)) {
        if (port != NULL)
            errand__port_let(port);
        errand__mem_free(NULL, mine, sizeof *mine);
        return ERRAND_ENOMEM;
    }
    errand__poller_init(&mine->own, NULL);
    lease->impl = mine;
    errand__lock_acquire(&self->lock);
    self->lanes_fixed = true;
    errand__list_append(&self->leases, &mine->turn);
    errand__lock_release(&self->lock);
    return ERRAND_OK;
}

static errand_status
manual_reserve(errand_lease *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_OK;
}

static bool
manual_write_off(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__manual_lease *mine = lease->impl;

    (void)generation;
    return errand__roster_write_off(&mine->roster, record);
}

static void
manual_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__manual_lease *mine = lease->impl;

    (void)deadline_ns; /* nobody would end a job while the owner waited */
    errand__roster_close(&mine->roster);
    errand__manual_poll_once(mine);
    errand__roster_drop(&mine->roster);
    errand__manual_forget_queues(errand__manual_of(lease->executor), mine);
    errand__poller_fini(&mine->own);
}

static void
manual_forget(errand_lease *lease)
{
    errand__manual_lease *mine = lease->impl;

    errand__roster_fini(&mine->roster);
    errand__mem_free(NULL, mine, sizeof *mine);
}

static void
manual_snapshot(errand_executor *executor, const errand_lease *only,
                errand_executor_snapshot *out_snapshot)
{
    errand__manual *self = errand__manual_of(executor);
    errand_snapshot sums = {0};
    bool shown = only == NULL;

    errand__lock_acquire(&self->lock);
    for (errand__link *link = self->leases.next; link != &self->leases;
         link = link->next) {
        errand__manual_lease *lease = ERRAND__CONTAINER(link, errand__manual_lease, turn);

        if (only != NULL && lease->roster.lease != only)
            continue;
        shown = true;
        errand__lease_account(lease->roster.lease, &sums);
        errand__roster_ages(&lease->roster, out_snapshot);
    }
    errand__lock_release(&self->lock);
    if (!shown)
        return;
    out_snapshot->queued = sums.queued;
    out_snapshot->running = sums.running;
    out_snapshot->workers = self->workers;
    out_snapshot->idle =
        self->workers - atomic_load_explicit(&self->busy, memory_order_relaxed);
    errand__spans_add(&self->spans, out_snapshot);
}

static void
manual_destroy(errand_executor *executor)
{
    errand__manual *self = errand__manual_of(executor);

    errand__poller_fini(&self->poller);
    errand__mem_free(NULL, self, sizeof *self);
}

static const errand__executor_ops manual_ops = {
    .name = "manual",
    .cells = manual_cells,
    .attach = manual_attach,
    .ready = errand__manual_ready,
    .reserve = manual_reserve,
    .submit = errand__manual_submit,
    .stale = errand__manual_stale,
    .write_off = manual_write_off,
    .nudge = errand__roster_nudge,
    .detach = manual_detach,
    .step = errand__manual_step_lease,
    .run_here = errand__manual_run_here,
    .snapshot = manual_snapshot,
    .destroy = manual_destroy,
    .forget = manual_forget,
    .lane_define = manual_lane_define,
};
