/* SPDX-License-Identifier: MIT */
/* Design notes: what the runtimes see of a host's executor.
 *
 * Refusals come from the host's attach and reserve; submit only hands over.  At the end of a
 * lease pending async jobs are asked to end first, then the host drops what it has queued and
 * lets bodies end, then what is still pending is dropped.  A body that is still running holds
 * the lease, so tickets and records stay until it is back. */
#include "errand/async.h"
#include "workers/custom/custom.h"

#define SPARE_LEAST 1024

static const errand__executor_ops custom_ops;

errand_status
errand_executor_create(const errand_executor_type *held_type, void *data,
                       errand_executor **out_executor)
{
    errand__custom *executor;

    ERRAND_REQUIRE_ARG(held_type != NULL && out_executor != NULL, ERRAND_EINVAL,
                       "held_type and out_executor are needed");
    ERRAND_REQUIRE_ARG(held_type->struct_size == sizeof *held_type, ERRAND_EINVAL,
                       "held_type->struct_size must be sizeof(errand_executor_type)");
    ERRAND_REQUIRE_ARG(held_type->attach != NULL && held_type->reserve != NULL &&
                           held_type->submit != NULL && held_type->detach != NULL,
                       ERRAND_EINVAL,
                       "the type needs attach, reserve, submit and detach");
    executor = errand__mem_alloc(NULL, sizeof *executor);
    if (executor == NULL)
        return ERRAND_ENOMEM;
    executor->type = held_type;
    executor->data = data;
    errand__list_init(&executor->rosters);
    errand__executor_init(&executor->base, &custom_ops);
    *out_executor = &executor->base;
    return ERRAND_OK;
}

static errand__custom *
custom_of(errand_executor *executor)
{
    return ERRAND__CONTAINER(executor, errand__custom, base);
}

static uint32_t
custom_cells(errand_executor *executor)
{
    (void)executor;
    return ERRAND__CUSTOM_CELLS;
}

static void
lease_free(errand__custom_lease *mine)
{
    errand__roster_fini(&mine->roster);
    if (mine->tickets != NULL)
        errand__mem_unmap(mine->tickets, mine->mapped);
    errand__mem_free(NULL, mine, sizeof *mine);
}

static errand_status
custom_attach(errand_executor *executor, errand_lease *lease)
{
    errand__custom *self = custom_of(executor);
    errand__custom_lease *mine = errand__mem_alloc(NULL, sizeof *mine);
    uint32_t spare =
        lease->owed_max / 2 > SPARE_LEAST ? lease->owed_max / 2 : SPARE_LEAST;
    errand_status status;

    if (mine == NULL)
        return ERRAND_ENOMEM;
    mine->ticket_count = lease->owed_max + spare;
    mine->mapped = mine->ticket_count * sizeof *mine->tickets;
    mine->tickets = errand__mem_map(mine->mapped);
    status = mine->tickets == NULL ||
                     !errand__roster_init(&mine->roster, lease, &self->lock, NULL)
                 ? ERRAND_ENOMEM
                 : self->type->attach(self->data, lease->block->runtime_id,
                                      lease->owed_max, &mine->theirs);
    if (status != ERRAND_OK) {
        lease_free(mine);
        return status;
    }
    lease->impl = mine;
    errand__lock_acquire(&self->lock);
    errand__list_append(&self->rosters, &mine->roster.link);
    errand__lock_release(&self->lock);
    return ERRAND_OK;
}

static errand_status
custom_ready(errand_lease *lease, const errand__record *record)
{
    (void)lease;
    (void)record;
    return ERRAND_OK;
}

static errand_status
custom_reserve(errand_lease *lease, uint32_t count)
{
    errand__custom_lease *mine = lease->impl;

    if (!errand__tickets_free(mine, count))
        return ERRAND_EFULL;
    return custom_of(lease->executor)->type->reserve(mine->theirs, count);
}

static void
custom_submit(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__custom_lease *mine = lease->impl;
    const errand__extra *extra = record->extra;
    errand__ticket *ticket = errand__ticket_take(mine);
    errand_dispatch dispatch = {ticket, 0};

    errand__ages_submitted(&mine->roster.ages, record, generation, errand__cycles());
    ticket->lease = mine;
    ticket->record = record;
    ticket->generation = generation;
    ticket->waker = NULL;
    ticket->view = (errand_dispatch_view){
        .identity = errand__record_identity(lease->block->runtime_id, record),
        .resource_class = (errand_resource_class)record->resource_class,
        .lane = errand__lane_of(record),
        .priority = record->priority,
        .name = errand__record_name(record),
    };
    if (extra != NULL && !extra->brief) {
        ticket->view.key = extra->key;
        ticket->view.begin_ns = extra->begin;
        ticket->view.due_ns = extra->due;
    }
    if (record->resource_class == ERRAND_INTERRUPTIBLE_ASYNC)
        ticket->waker =
            errand__roster_enter(&mine->roster, record, generation, errand__cycles());
    dispatch.stamp =
        1 + atomic_fetch_add_explicit(&ticket->stamp, 1,
                                      memory_order_acq_rel); /* Pairs: ticket-stamp */
    custom_of(lease->executor)->type->submit(mine->theirs, dispatch);
}

static void
custom_stale(errand_lease *lease, uint8_t lane, uint8_t priority)
{
    (void)lease; /* the host's queue: its dispatch answers false */
    (void)lane;
    (void)priority;
}

static bool
custom_write_off(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__custom_lease *mine = lease->impl;

    (void)generation;
    return errand__roster_write_off(&mine->roster, record);
}

static void
custom_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__custom_lease *mine = lease->impl;
    errand__custom *self = custom_of(lease->executor);

    errand__roster_close(&mine->roster);
    self->type->detach(mine->theirs, deadline_ns);
    errand__roster_drop(&mine->roster);
    errand__lock_acquire(&self->lock);
    errand__list_unlink(&mine->roster.link);
    errand__lock_release(&self->lock);
}

static void
custom_forget(errand_lease *lease)
{
    lease_free(lease->impl);
}

static void
custom_snapshot(errand_executor *executor, const errand_lease *only,
                errand_executor_snapshot *out_snapshot)
{
    errand__custom *self = custom_of(executor);
    errand_snapshot sums = {0};

    errand__lock_acquire(&self->lock);
    for (errand__link *link = self->rosters.next; link != &self->rosters;
         link = link->next) {
        errand__roster *roster = ERRAND__CONTAINER(link, errand__roster, link);

        if (only != NULL && roster->lease != only)
            continue;
        errand__lease_account(roster->lease, &sums);
        errand__roster_ages(roster, out_snapshot);
    }
    errand__lock_release(&self->lock);
    out_snapshot->queued =
        sums.queued; /* its threads are the host's: no figures of them */
    out_snapshot->running = sums.running;
}

static void
custom_destroy(errand_executor *executor)
{
    errand__custom *self = custom_of(executor);
    const errand_executor_type *type = self->type;
    void *data = self->data;

    errand__mem_free(NULL, self, sizeof *self);
    if (type->destroy != NULL)
        type->destroy(data);
}

static const errand__executor_ops custom_ops = {
    .name = "custom",
    .is_hosts = true,
    .cells = custom_cells,
    .attach = custom_attach,
    .ready = custom_ready,
    .reserve = custom_reserve,
    .submit = custom_submit,
    .stale = custom_stale,
    .write_off = custom_write_off,
    .nudge = errand__roster_nudge,
    .detach = custom_detach,
    .snapshot = custom_snapshot,
    .destroy = custom_destroy,
    .forget = custom_forget,
};
