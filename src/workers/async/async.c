/* SPDX-License-Identifier: MIT */
/* Design notes: the async executor, seen from the runtimes.
 *
 * A submit and a wake are the same push into the one port, so neither takes a lock, and neither
 * makes a system call unless the thread sleeps.  The lock is for the lists of pending jobs and
 * of leases: the thread takes it around a poll, owners at the start and end of a lease.
 *
 * The thread holds no reference of the executor: whoever gives up the last one stops and joins
 * it.  If that is the thread itself, with the last job of the last lease, it frees the executor
 * when its loop ends. */
#include <string.h>
#include "errand/async.h"
#include "workers/async/async.h"

static const errand__executor_ops async_ops;

errand_status
errand_async_create(const errand_async_config *config, errand_executor **out_executor)
{
    errand__async *executor;
    errand_status status = ERRAND_ENOMEM;

    ERRAND_REQUIRE_ARG(out_executor != NULL, ERRAND_EINVAL, "out_executor is NULL");
    ERRAND_REQUIRE_ARG(config == NULL || config->struct_size == sizeof *config,
                       ERRAND_EINVAL,
                       "config->struct_size must be sizeof(errand_async_config)");
    ERRAND_REQUIRE_ARG(config == NULL || config->flags == 0, ERRAND_EINVAL,
                       "config->flags has unknown bits");
    ERRAND_REQUIRE_ARG(config == NULL || config->name == NULL ||
                           strlen(config->name) < sizeof executor->name,
                       ERRAND_EINVAL, "config->name has more than 15 bytes");
    executor = errand__mem_alloc(NULL, sizeof *executor);
    if (executor == NULL)
        return ERRAND_ENOMEM;
    errand__text_format(executor->name, sizeof executor->name, "%s",
                        config != NULL && config->name != NULL ? config->name
                                                               : "errand-async");
    errand__list_init(&executor->turns);
    errand__list_init(&executor->rosters);
    errand__executor_init(&executor->base, &async_ops);
    executor->port = errand__port_create();
    if (executor->port != NULL)
        status = errand__async_start(executor);
    if (status != ERRAND_OK) {
        errand__async_free(executor);
        return status;
    }
    *out_executor = &executor->base;
    return ERRAND_OK;
}

static errand__async *
async_of(errand_executor *executor)
{
    return ERRAND__CONTAINER(executor, errand__async, base);
}

static uint32_t
async_cells(errand_executor *executor)
{
    (void)executor;
    return 1; /* the thread's */
}

static errand_status
async_attach(errand_executor *executor, errand_lease *lease)
{
    errand__async *self = async_of(executor);
    errand__async_lease *mine = errand__mem_alloc(NULL, sizeof *mine);

    if (mine == NULL ||
        !errand__roster_init(&mine->roster, lease, &self->lock, self->port)) {
        errand__mem_free(NULL, mine, sizeof *mine);
        return ERRAND_ENOMEM;
    }
    errand__port_hold(self->port);
    lease->impl = mine;
    errand__lock_acquire(&self->lock);
    errand__list_append(&self->rosters, &mine->roster.link);
    errand__lock_release(&self->lock);
    return ERRAND_OK;
}

static errand_status
async_ready(errand_lease *lease, const errand__record *record)
{
    (void)lease;
    if (record->resource_class != ERRAND_INTERRUPTIBLE_ASYNC)
        return errand__misuse(ERRAND_EUNSUPPORTED, "errand_submit",
                              "the async executor polls and cannot run a blocking job");
    return ERRAND_OK;
}

static errand_status
async_reserve(errand_lease *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_OK;
}

static void
async_submit(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__async_lease *mine = lease->impl;
    uint64_t now = errand__cycles();

    errand__ages_submitted(&mine->roster.ages, record, generation, now);
    errand__port_push(mine->roster.port,
                      errand__roster_enter(&mine->roster, record, generation, now));
}

static void
async_stale(errand_lease *lease, uint8_t lane, uint8_t priority)
{
    (void)lease; /* the thread meets it soon: nothing waits in its queues but for polls */
    (void)lane;
    (void)priority;
}

static bool
async_write_off(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__async_lease *mine = lease->impl;

    (void)generation;
    return errand__roster_write_off(&mine->roster, record);
}

static void
async_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__async_lease *mine = lease->impl;
    errand__async *self = async_of(lease->executor);

    errand__roster_close(&mine->roster);
    errand__roster_await(&mine->roster, deadline_ns);
    errand__roster_drop(&mine->roster);
    errand__lock_acquire(&self->lock);
    errand__list_unlink(&mine->roster.link);
    errand__lock_release(&self->lock);
}

static void
async_forget(errand_lease *lease)
{
    errand__async_lease *mine = lease->impl;

    errand__roster_fini(&mine->roster);
    errand__mem_free(NULL, mine, sizeof *mine);
}

static void
async_snapshot(errand_executor *executor, const errand_lease *only,
               errand_executor_snapshot *out_snapshot)
{
    errand__async *self = async_of(executor);
    errand_snapshot sums = {0};
    bool shown = only == NULL;

    errand__lock_acquire(&self->lock);
    for (errand__link *link = self->rosters.next; link != &self->rosters;
         link = link->next) {
        errand__roster *roster = ERRAND__CONTAINER(link, errand__roster, link);

        if (only != NULL && roster->lease != only)
            continue;
        shown = true;
        errand__lease_account(roster->lease, &sums);
        errand__roster_ages(roster, out_snapshot);
    }
    errand__lock_release(&self->lock);
    if (!shown)
        return;
    out_snapshot->queued = sums.queued;
    out_snapshot->running = sums.running;
    out_snapshot->workers = 1;
    out_snapshot->idle = errand__port_asleep(self->port);
    out_snapshot->threads_replaced =
        atomic_load_explicit(&self->replaced, memory_order_acquire);
    out_snapshot->threads_started = 1 + out_snapshot->threads_replaced;
    errand__spans_add(&self->spans, out_snapshot);
}

static void
async_destroy(errand_executor *executor)
{
    errand__async *self = async_of(executor);
    errand__port *port = self->port;

    if (errand__async_is_own_thread(self)) {
        self->orphan = true;
        atomic_store_explicit(&self->stopping, true, memory_order_release);
        return;
    }
    errand__port_hold(port); /* the ring may come after the thread's end */
    atomic_store_explicit(&self->stopping, true,
                          memory_order_release); /* Pairs: port-bell */
    errand__port_ring(port);
    ERRAND_ASSERT(pthread_join(self->thread, NULL) == 0);
    errand__port_let(port);
    errand__async_free(self);
}

void
errand__async_free(errand__async *executor)
{
    if (executor->port != NULL)
        errand__port_let(executor->port);
    errand__mem_free(NULL, executor, sizeof *executor);
}

static const errand__executor_ops async_ops = {
    .name = "async",
    .cells = async_cells,
    .attach = async_attach,
    .ready = async_ready,
    .reserve = async_reserve,
    .submit = async_submit,
    .stale = async_stale,
    .write_off = async_write_off,
    .nudge = errand__roster_nudge,
    .detach = async_detach,
    .snapshot = async_snapshot,
    .destroy = async_destroy,
    .forget = async_forget,
};
