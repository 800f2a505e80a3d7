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
    errand__loop_lease *mine = waker->lease;

    waker->next = NULL;
    if (mine->first == NULL) {
        mine->first = waker;
        errand__list_append(&loop->turns, &mine->turn);
    } else {
        mine->last->next = waker;
    }
    mine->last = waker;
}

static void
sort_news(errand__loop *loop)
{
    errand_waker *waker = errand__port_take(loop->port);

    while (waker != NULL) {
        errand_waker *newer = waker->next;

        errand__loop_queue(loop, waker);
        waker = newer;
    }
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
    bool several = loop->local && mine->first != NULL && mine->first->next != NULL;
    unsigned bodies = 0;

    if (several) {
        errand__hands_read(&loop->poller.hands);
        start = loop->poller.hands.cycles;
        loop->poller.hands.lazy_left = loop->poller.hands.lazy;
    }
    while (mine->first != NULL &&
           (loop->local || (bodies < TURN_BODIES && errand__cycles() - start < limit))) {
        errand_waker *waker = mine->first;

        mine->first = waker->next;
        fetch_woken(mine->first);
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
    errand__loop_lease *mine =
        ERRAND__CONTAINER(loop->turns.next, errand__loop_lease, turn);

    errand__list_unlink(&mine->turn);
    if (mine->first != NULL)
        errand__list_append(&loop->turns, &mine->turn);
}

void
errand__loop_run_woken(errand__loop *loop)
{
    /* Each lease that has something now, once; leases come and go while their jobs end. */
    sort_news(loop);
    for (errand__link *last = loop->turns.previous;
         !errand__list_empty(&loop->turns) && last != &loop->turns;) {
        errand__link *first = loop->turns.next;
        errand_lease *lease =
            ERRAND__CONTAINER(first, errand__loop_lease, turn)->roster.lease;

        loop->serving = lease;
        loop->moved = true;
        if (!loop->local) /* its last job may end here */
            errand__lease_hold(lease);
        errand__loop_serve(loop, lease);
        take_turn(loop, ERRAND__CONTAINER(first, errand__loop_lease, turn));
        errand__loop_end_turn(loop);
        loop->serving = NULL;
        if (!loop->local)
            errand__lease_let(lease);
        if (first == last)
            break;
    }
}
