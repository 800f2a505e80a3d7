/* SPDX-License-Identifier: MIT */
/* Design notes: leases without a thread.
 *
 * The loop is the owner's: jobs are started when a submit is flushed, polled in collect, and put
 * by the owner to itself, without a wake.  Only wakes come from other threads: they push into
 * the port, and ring the runtime's inbox if the owner has gone to rest.
 *
 * To sleep, the inbox is armed as for a foreign loop and its descriptor watched by the back end,
 * so one system call waits for both, and hands over what was started since the last.  What jobs start
 * when they are polled after a wait is left to the next one, or to the next drain.
 *
 * A lease that ends while the kernel still has something of it leaves its loop behind, among the
 * thread's left ones: its runtime, while that lives, the thread's other leases, and the next that
 * it attaches look after them.  Until then everything that the kernel has stays as it is. */
#include "workers/reactor/reactor.h"

#define ROUNDS_AT_ONCE 8
#define SUBMITS_SHARED                                                                   \
    15 /* handlers that are quick at submitting share a reading of the clock */
#define SHARED_US 50

/* left: loops of this thread whose leases have ended. */
static _Thread_local errand__link left;

static void
look_after_left(void)
{
    errand__link *link, *next;

    if (left.next == NULL)
        return;
    for (link = left.next; link != &left; link = next) {
        errand__loop *loop = ERRAND__CONTAINER(link, errand__loop, left);
        errand_lease *lease = loop->lease;

        next = link->next;
        errand__lease_hold(lease);
        errand__loop_round(loop, 0);
        errand__lease_let(lease); /* its loop goes with the last job */
    }
}

static uint32_t
local_cells(errand_executor *executor)
{
    (void)executor;
    return 0; /* the owner's will do */
}

typedef struct local { /* a lease and its loop, allocated as one */
    errand__loop_lease lease;
    errand__loop loop;
} local;

static errand_status
local_attach(errand_executor *executor, errand_lease *lease)
{
    errand__reactor *self = errand__reactor_of(executor);
    errand_status status = errand__inbox_open_fd(lease->block);
    errand__port *port;
    local *mine;

    if (status != ERRAND_OK)
        return status;
    look_after_left();
    mine = errand__mem_alloc(NULL, sizeof *mine);
    port = mine == NULL ? NULL : errand__port_create();
    if (port == NULL || !errand__roster_init(&mine->lease.roster, lease, NULL, port)) {
        if (port != NULL)
            errand__port_let(port);
        errand__mem_free(NULL, mine, sizeof *mine);
        return ERRAND_ENOMEM;
    }
    errand__block_hold(lease->block);
    port->block = lease->block;
    errand__port_hold(port); /* the loop's */
    errand__loop_init(&mine->loop, self, port);
    mine->loop.local = true;
    mine->loop.lease = lease;
    mine->loop.poller.hands.owned = true;
    mine->loop.poller.cell = 0;
    mine->lease.loop = &mine->loop;
    if (errand__loop_begin(&mine->loop, lease->block->wake_fd) != 0) {
        errand__loop_fini(&mine->loop);
        errand__roster_fini(&mine->lease.roster);
        errand__mem_free(NULL, mine, sizeof *mine);
        return ERRAND_ESYSTEM;
    }
    lease->impl = &mine->lease;
    errand__reactor_join(self, &mine->lease);
    return ERRAND_OK;
}

static uint64_t
submit_cycles(errand__loop *loop, uint64_t now)
{
    if (now == 0 && loop->submits_left > 0) {
        loop->submits_left--;
        return loop->submitted;
    }
    loop->submits_left = 0;
    if (now == 0)
        now = errand__cycles();
    if (now - loop->submitted < SHARED_US * errand__cycles_per_us())
        loop->submits_left = SUBMITS_SHARED;
    return loop->submitted = now;
}

static void
local_submit(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__loop_lease *mine = lease->impl;
    uint64_t now = submit_cycles(mine->loop, lease->submit_cycles);

    errand__ages_submitted(&mine->roster.ages, record, generation, now);
    errand__loop_queue(mine->loop,
                       errand__roster_enter(&mine->roster, record, generation, now));
}

/* After another thread's runtime was adopted: what the kernel gives one thread is made anew. */
static void
begin_again(errand__loop *loop)
{
    if (!loop->ready)
        (void)errand__loop_begin(loop, loop->lease->block->wake_fd);
}

static void
rouse(errand__loop *loop)
{
    if (!loop->resting)
        return;
    loop->resting = false;
    errand__port_rouse(loop->port);
    if (loop->ready)
        loop->backend->rouse(loop);
}

/* Does what can be done now, and what that leads to, but not for ever. */
static void
go_round(errand__loop *loop)
{
    begin_again(loop);
    loop->submits_left = 0;
    rouse(loop);
    for (int rounds = 0; rounds < ROUNDS_AT_ONCE; rounds++) {
        errand__loop_round(loop, 0);
        if (!errand__loop_busy(loop))
            return;
    }
}

/* Hands what was submitted to the jobs, and what they start to the kernel.  No more: what is done
 * at once is told by the next drain. */
static void
local_flush(errand_lease *lease)
{
    errand__loop_lease *mine = lease->impl;

    begin_again(mine->loop);
    mine->loop->submits_left = 0;
    mine->loop->flushing = true;
    /* At once after a submission: that was now. */
    mine->loop->flushed_at = lease->unflushed ? 0 : lease->submit_cycles;
    lease->submit_cycles = 0;
    errand__loop_round(mine->loop, 0);
    mine->loop->flushing = false;
}

/* May a round find something?  Often the flush, which asks the kernel too, has left nothing. */
static bool
any_news(errand__loop *loop)
{
    return loop->resting || !loop->ready || loop->wheel.count != 0 ||
           errand__loop_holds(loop) || loop->backend->idle == NULL ||
           !loop->backend->idle(loop);
}

static void
local_collect(errand_lease *lease)
{
    errand__loop_lease *mine = lease->impl;

    if (any_news(mine->loop))
        go_round(mine->loop);
    look_after_left();
}

static bool
local_rest(errand_lease *lease)
{
    errand__loop_lease *mine = lease->impl;
    errand__loop *loop = mine->loop;

    if (loop->ready)
        loop->backend->rest(loop, errand__wheel_next(&loop->wheel));
    loop->resting = true;
    return errand__port_rest(loop->port) && !errand__loop_busy(loop);
}

static void
local_sleep(errand_lease *lease, uint64_t length_ns)
{
    errand__loop_lease *mine = lease->impl;
    errand__loop *loop = mine->loop;
    bool was_armed, waits;

    if (!errand__inbox_watch(lease->block, &was_armed))
        return;
    loop->resting = true;
    waits =
        errand__port_rest(loop->port) && !errand__loop_pressed(loop) && length_ns != 0;
    if (waits)
        errand__loop_round(loop, length_ns);
    errand__inbox_unwatch(lease->block, was_armed);
    rouse(loop);
    if (!waits || errand__loop_pressed(loop))
        go_round(loop);
}

/* As a wake, but without the port: the loop is this thread's. */
static void
local_nudge(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__loop_lease *mine = lease->impl;
    unsigned quiet = ERRAND__WAKER_QUIET;
    errand_waker *waker;

    (void)generation;
    if (record->resource_class != ERRAND_INTERRUPTIBLE_ASYNC)
        return;
    waker = record->extra->waker;
    if (errand__waker_is_alone(&mine->roster, waker, 2) &&
        atomic_load_explicit(&waker->state, memory_order_relaxed) == quiet) {
        atomic_store_explicit(&waker->state, ERRAND__WAKER_WOKEN, memory_order_relaxed);
        atomic_store_explicit(&waker->refs, 3, memory_order_relaxed);
    } else if (atomic_compare_exchange_strong_explicit(
                   &waker->state, &quiet, ERRAND__WAKER_WOKEN,
                   memory_order_acq_rel, /* Pairs: waker-state */
                   memory_order_relaxed)) {
        (void)errand_waker_hold(waker);
    } else {
        return;
    }
    errand__prefetch_own(&waker->job.requests);
    errand__loop_queue(mine->loop, waker);
    if (mine->loop->resting)
        errand__inbox_ring(lease->block);
}

static int
local_descriptor(errand_lease *lease)
{
    errand__loop_lease *mine = lease->impl;

    begin_again(mine->loop);
    return mine->loop->ready ? mine->loop->backend->descriptor(mine->loop) : -1;
}

/* The back end's descriptor is this thread's: the next owner's makes its own. */
static bool
local_leave(errand_lease *lease)
{
    errand__loop_lease *mine = lease->impl;

    if (mine->loop->under_way != 0)
        return false;
    errand__loop_end(mine->loop);
    mine->loop->alarm_ns = UINT64_MAX;
    return true;
}

static void
local_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__loop_lease *mine = lease->impl;
    errand__loop *loop = mine->loop;

    errand__roster_close(&mine->roster);
    go_round(loop);
    go_round(loop); /* what was asked back is back, but for what really blocks */
    while (errand__roster_busy(&mine->roster) != 0) {
        uint64_t now = errand__clock_now();

        if (now >= deadline_ns)
            break;
        local_sleep(lease, deadline_ns - now < UINT64_C(10000000) ? deadline_ns - now
                                                                  : UINT64_C(10000000));
        go_round(loop);
    }
    errand__roster_drop(&mine->roster);
    errand__reactor_part(errand__reactor_of(lease->executor), mine);
    if (errand__roster_busy(&mine->roster) == 0)
        return;
    if (left.next == NULL)
        errand__list_init(&left);
    errand__list_append(&left, &loop->left);
}

static bool
local_lingers(const errand_lease *lease)
{
    const errand__loop_lease *mine = lease->impl;

    return errand__roster_busy(&mine->roster) != 0;
}

static void
local_forget(errand_lease *lease)
{
    errand__loop_lease *mine = lease->impl;
    errand__loop *loop = mine->loop;

    errand__list_unlink(&loop->left);
    errand__loop_end(loop);
    errand__loop_fini(loop);
    errand__roster_fini(&mine->roster);
    errand__mem_free(NULL, mine, sizeof(local));
}

const errand__executor_ops errand__reactor_local_ops = {
    .name = "reactor",
    .cells = local_cells,
    .attach = local_attach,
    .ready = errand__reactor_ready,
    .reserve = errand__reactor_reserve,
    .submit = local_submit,
    .flush = local_flush,
    .stale = errand__reactor_stale,
    .write_off = errand__reactor_write_off,
    .nudge = local_nudge,
    .detach = local_detach,
    .snapshot = errand__reactor_snapshot,
    .destroy = errand__reactor_destroy,
    .lingers = local_lingers,
    .forget = local_forget,
    .collect = local_collect,
    .rest = local_rest,
    .sleep = local_sleep,
    .descriptor = local_descriptor,
    .leave = local_leave,
};
