/* SPDX-License-Identifier: MIT */
/* Design notes: wakers.
 *
 * A waker is counted on its own, so that it may outlive job, runtime and executor.  Its state
 * goes quiet -> woken by whoever wakes first (that one queues it), back to quiet by the executor
 * just before it polls, and to dead at the job's end, after which a wake does nothing.
 *
 * One that nobody else holds at its job's end stays with the extra, for the next async job. */
#include <string.h>
#include "dispatch/hands.h"

errand_waker *
errand__waker_create(void)
{
    errand_waker *waker = errand__mem_alloc(NULL, sizeof *waker);

    if (waker != NULL)
        atomic_store_explicit(&waker->refs, 1,
                              memory_order_relaxed); /* Pairs: waker-refs */
    return waker;
}

void
errand__waker_renew(errand_waker **take_waker)
{
    errand_waker *waker = *take_waker;
    errand__waker_port *port;

    if (waker == NULL)
        return;
    if (atomic_load_explicit(&waker->refs, memory_order_acquire) != 1) {
        errand_waker_abandon(take_waker); /* Pairs: waker-refs */
        return;
    }
    port = waker->port; /* most often it is pushed into the same one again */
    /* In parts that the compiler clears with a few stores; a longer one is a slow instruction. */
    memset(waker, 0, ERRAND_LINE);
    memset((char *)waker + ERRAND_LINE, 0, ERRAND_LINE);
    memset((char *)waker + 2 * ERRAND_LINE, 0, sizeof *waker - 2 * ERRAND_LINE);
    waker->port = port;
    atomic_store_explicit(&waker->refs, 1, memory_order_relaxed);
}

errand_waker *
errand_job_waker(errand_job *job)
{
    if (job == NULL || !job->is_async)
        return NULL;
    return errand_waker_hold(job->record->extra->waker);
}

errand_waker *
errand_waker_hold(errand_waker *waker)
{
    if (waker != NULL)
        atomic_fetch_add_explicit(&waker->refs, 1, memory_order_relaxed);
    return waker;
}

void
errand_waker_wake(errand_waker *waker)
{
    unsigned state;

    if (waker == NULL)
        return;
    /* Also a wake that counts with the one before it writes the word: the poll that follows has to
     * see what this thread wrote. */
    state = atomic_load_explicit(&waker->state, memory_order_relaxed);
    do {
        if (state == 2)
            return;
    } while (!atomic_compare_exchange_weak_explicit(
        &waker->state, &state, 1, memory_order_acq_rel, /* Pairs: waker-state */
        memory_order_relaxed));
    if (state != 0)
        return;
    if (waker->port != NULL)
        waker->port->rouse(waker);
    else
        errand__futex_wake(&waker->state, 1);
}

void
errand_waker_abandon(errand_waker **take_waker)
{
    errand_waker *waker;

    if (take_waker == NULL || *take_waker == NULL)
        return;
    waker = *take_waker;
    *take_waker = NULL;
    if (atomic_fetch_sub_explicit(&waker->refs, 1, memory_order_acq_rel) !=
        1) /* Pairs: waker-refs */
        return;
    if (waker->port != NULL)
        waker->port->forget(waker->port);
    errand__mem_free(NULL, waker, sizeof *waker);
}
