/* SPDX-License-Identifier: MIT */
/* Design notes: jobs that were woken.
 *
 * They are sorted by lease, and some of each are polled in turn.  A lease's turn is at most 16 bodies or
 * 20 us (O51); one whose jobs go on being woken holds nobody up for longer. */
#include "workers/reactor/reactor.h"

#define TURN_BODIES 16
#define TURN_US     20

void
errand__loop_queue(errand__loop *loop, errand_waker *waker)
{
    errand__woken_add(&loop->turns, waker);
}

static errand__cell *
cell_of(const errand__loop *loop, errand_lease *lease)
{
    return &lease->cells[loop->local ? 0 : 1];
}

/* Does nobody else know it?  A job that has not begun has the record's reference and the queue's. */
static bool
is_woken_here(const errand__loop_lease *mine, const errand_waker *waker)
{
    return atomic_load_explicit(&waker->state, memory_order_relaxed) ==
               ERRAND__WAKER_WOKEN &&
           errand__waker_is_alone(&mine->roster, waker, waker->job.is_async ? 3 : 2);
}

/* Those that are woken may lie far away: of the next the request that it waits for and its state, of
 * the one after it the waker. */
static inline void
fetch_woken(const errand_waker *next)
{
    const char *request;

    if (next == NULL)
        return;
    request = (const char *)next->job.requests;
    if (request != NULL) {
        errand__prefetch_own(request);
        errand__prefetch_own(request + ERRAND_LINE);
    }
    if (next->next != NULL) {
        errand__prefetch_own(&next->next->next);
        errand__prefetch_own(&next->next->job.requests);
    }
}

static void
take_turn(errand__loop *loop, errand__loop_lease *mine)
{
    errand_lease *lease = mine->roster.lease;
    uint64_t limit = TURN_US * errand__cycles_per_us();
    uint64_t start = loop->local ? 0 : errand__cycles();
    bool several =
        loop->local && mine->woken.first != NULL && mine->woken.first->next != NULL;
    unsigned bodies = 0;

    if (several) {
        errand__hands_read(&loop->poller.hands);
        start = loop->poller.hands.cycles;
        loop->poller.hands.lazy_left = loop->poller.hands.lazy;
    }
    while (mine->woken.first != NULL &&
           (loop->local || (bodies < TURN_BODIES && errand__cycles() - start < limit))) {
        errand_waker *waker = errand__woken_take(&mine->woken);

        fetch_woken(mine->woken.first);
        if (is_woken_here(mine, waker))
            atomic_store_explicit(&waker->state, ERRAND__WAKER_QUIET,
                                  memory_order_relaxed);
        else if (!errand__waker_pop(waker))
            continue;
        bodies += errand__poller_run(&loop->poller, waker, cell_of(loop, lease));
    }
    if (several)
        errand__loop_pace(&loop->poller.hands, start, bodies);
}

void
errand__loop_end_turn(errand__loop *loop)
{
    errand__woken_end_turn(&loop->turns,
                           ERRAND__CONTAINER(loop->turns.next, errand__woken, turn));
}

void
errand__loop_run_woken(errand__loop *loop)
{
    /* Each lease that has something now, once; leases come and go while their jobs end. */
    errand__woken_sort(&loop->turns, loop->port);
    for (errand__link *last = loop->turns.previous;
         !errand__list_empty(&loop->turns) && last != &loop->turns;) {
        errand__link *first = loop->turns.next;
        errand_lease *lease =
            ERRAND__CONTAINER(first, errand__loop_lease, woken.turn)->roster.lease;

        loop->serving = lease;
        loop->moved = true;
        if (!loop->local) /* its last job may end here */
            errand__lease_hold(lease);
        errand__loop_serve(loop, lease);
        take_turn(loop, ERRAND__CONTAINER(first, errand__loop_lease, woken.turn));
        errand__loop_end_turn(loop);
        loop->serving = NULL;
        if (!loop->local)
            errand__lease_let(lease);
        if (first == last)
            break;
    }
}
