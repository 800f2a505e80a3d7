/* SPDX-License-Identifier: MIT */
/* Design notes: the async jobs of one lease, and how they end with it.
 *
 * A job is queued (WOKEN, not started), in a poller's hand, or pending: then its waker stands in
 * the roster's list, under the executor's lock.  Whoever takes it out of the list owns the job, so
 * the owner can drop what is pending without waiting for the thread that polls, however long
 * another job's poll takes.
 *
 * The owner counts what it drops in its own cell, since each cell has one writer. */
#include "workers/async/async.h"

#define AWAITED 0x80000000U

bool
errand__roster_init(errand__roster *roster, errand_lease *lease, errand__lock *lock,
                    errand__port *port)
{
    if (!errand__ages_init(&roster->ages, lease))
        return false;
    roster->lease = lease;
    roster->lock = lock;
    roster->port = port;
    errand__list_init(&roster->pending);
    errand__list_init(&roster->held);
    return true;
}

void
errand__roster_fini(errand__roster *roster)
{
    if (roster->port != NULL)
        errand__port_let(roster->port);
    roster->port = NULL;
    errand__ages_fini(&roster->ages);
}

/* One more job, or one less, keeps the lease. */
static void
enter_one(errand__roster *roster)
{
    if (roster->lock != NULL) {
        errand__lease_hold(roster->lease);
        atomic_fetch_add_explicit(&roster->live, 1, memory_order_relaxed);
        return;
    }
    if (roster->kept++ == 0)
        errand__lease_hold(roster->lease);
    atomic_store_explicit(&roster->live,
                          atomic_load_explicit(&roster->live, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void
errand__roster_keep_less(errand__roster *roster)
{
    if (roster->lock != NULL || --roster->kept == 0)
        errand__lease_let(roster->lease);
}

/* True: it was the last, and somebody waits for that. */
static bool
live_less(errand__roster *roster)
{
    if (roster->lock != NULL)
        return atomic_fetch_sub_explicit(&roster->live, 1, memory_order_acq_rel) ==
               (AWAITED | 1); /* Pairs: roster-live */
    atomic_store_explicit(&roster->live,
                          atomic_load_explicit(&roster->live, memory_order_relaxed) - 1,
                          memory_order_relaxed);
    return false;
}

errand_waker *
errand__roster_enter(errand__roster *roster, errand__record *record, uint32_t generation,
                     uint64_t cycles)
{
    errand_waker *waker = record->extra->waker;
    errand__waker_port *port = roster->port != NULL ? &roster->port->base : NULL;

    waker->lease = roster;
    if (waker->port != port) { /* another than its last job's */
        if (waker->port != NULL)
            waker->port->forget(waker->port);
        if (port != NULL)
            errand__port_hold(roster->port);
        waker->port = port;
    }
    waker->job.record = record;
    waker->job.generation = generation;
    waker->job.t_start = cycles; /* until it starts */
    enter_one(roster);
    /* The record's reference and the queue's: until the job runs nobody else has one. */
    atomic_store_explicit(&waker->refs, 2, memory_order_relaxed); /* Pairs: waker-refs */
    atomic_store_explicit(&waker->state, ERRAND__WAKER_WOKEN,
                          memory_order_release); /* Pairs: waker-state */
    return waker;
}

void
errand__roster_close(errand__roster *roster)
{
    errand__roster_acquire(roster);
    roster->closing = true;
    for (errand__link *link = roster->pending.next; link != &roster->pending;
         link = link->next) {
        errand_waker *waker = ERRAND__CONTAINER(link, errand_waker, pending);

        errand__token_set(waker->job.record);
        errand_waker_wake(waker);
    }
    for (errand__link *link = roster->held.next; link != &roster->held; link = link->next)
        errand_waker_wake(ERRAND__CONTAINER(link, errand_waker, pending));
    errand__roster_release(roster);
}

void
errand__roster_await(errand__roster *roster, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = errand__clock_now();
        unsigned live =
            atomic_fetch_or_explicit(&roster->live, AWAITED, memory_order_acq_rel);

        if ((live & ~AWAITED) == 0 || now >= deadline_ns) /* Pairs: roster-live */
            return;
        errand__futex_wait(&roster->live, live | AWAITED,
                           deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns - now);
    }
}

void
errand__waker_end(errand_waker *waker)
{
    errand__roster *roster = waker->lease;
    bool has_port = roster->port != NULL;
    unsigned before;

    if (live_less(roster))
        errand__futex_wake(&roster->live, 1);
    if (errand__waker_is_alone(roster, waker, 2)) { /* no port has it */
        atomic_store_explicit(&waker->state, ERRAND__WAKER_DEAD, memory_order_relaxed);
        atomic_store_explicit(&waker->refs, 1, memory_order_relaxed);
        errand__roster_keep_less(roster);
        return;
    }
    /* From here on a woken one may be popped and take its roster along. */
    before = atomic_exchange_explicit(&waker->state, ERRAND__WAKER_DEAD,
                                      memory_order_acq_rel); /* Pairs: waker-state */
    if (!has_port)
        errand__futex_wake(&waker->state, 1);
    errand_waker_abandon(&waker);
    if (!has_port || before != ERRAND__WAKER_WOKEN)
        errand__roster_keep_less(roster);
}

unsigned
errand__roster_busy(const errand__roster *roster)
{
    return atomic_load_explicit(&roster->live, memory_order_acquire) & ~AWAITED;
}

/* Drops one job that was taken out of the list.  Owner. */
static void
drop_taken(errand__roster *roster, errand__hands *hands, errand_waker *waker)
{
    hands->block = roster->lease->block;
    hands->cell = &roster->lease->cells[0];
    errand__hands_drop_pending(hands, waker);
    errand__hands_tell(hands, roster->lease->block);
    errand__waker_end(waker);
}

void
errand__roster_drop(errand__roster *roster)
{
    errand_waker *waker;
    errand__hands hands;

    errand__hands_init(&hands);
    do { /* one by one: what is linked is anybody's who has the lock */
        waker = NULL;
        errand__roster_acquire(roster);
        roster->dropping = true;
        if (!errand__list_empty(&roster->pending)) {
            waker = ERRAND__CONTAINER(roster->pending.next, errand_waker, pending);
            errand__list_unlink(&waker->pending);
        }
        errand__roster_release(roster);
        if (waker != NULL)
            drop_taken(roster, &hands, waker);
    } while (waker != NULL);
    errand__hands_fini(&hands);
}

void
errand__roster_nudge(errand_lease *lease, errand__record *record, uint32_t generation)
{
    (void)lease;
    (void)generation;
    if (record->resource_class == ERRAND_INTERRUPTIBLE_ASYNC)
        errand_waker_wake(record->extra->waker);
}

bool
errand__roster_write_off(errand__roster *roster, errand__record *record)
{
    errand_waker *waker;
    errand__hands hands;
    bool taken;

    if (record->resource_class != ERRAND_INTERRUPTIBLE_ASYNC)
        return false;
    waker = record->extra->waker;
    errand__roster_acquire(roster);
    taken = errand__list_linked(&waker->pending) && !waker->job.held;
    if (taken)
        errand__list_unlink(&waker->pending);
    errand__roster_release(roster);
    if (!taken)
        return false;
    errand__hands_init(&hands);
    drop_taken(roster, &hands, waker);
    errand__hands_fini(&hands);
    return true;
}

void
errand__roster_ages(const errand__roster *roster, errand_executor_snapshot *out_snapshot)
{
    errand__ages_read(&roster->ages, roster->lease->block, out_snapshot);
}
