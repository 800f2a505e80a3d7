/* SPDX-License-Identifier: MIT */
/* Design notes: from a popped waker to a body and back.
 *
 * Between run and done the waker is in the poller's hand, so a panic, which jumps over the rest
 * of run, finds there what it ended.
 *
 * A job that goes pending is linked under the lock that close and drop take: either they see it
 * in the list, or it sees what they said. */
#include "workers/async/async.h"

void
errand__poller_init(errand__poller *poller, errand__spans *spans)
{
    errand__hands_init(&poller->hands);
    poller->waker = NULL;
    poller->spans = spans;
    poller->recall = NULL;
    poller->cell = 1;
}

void
errand__poller_fini(errand__poller *poller)
{
    errand__hands_fini(&poller->hands);
}

/* Is this job to stay pending?  False: the roster drops its jobs, or the owner settled this one.
 * One with requests under way stays, whatever happens. */
static bool
keep(errand__roster *roster, errand_waker *waker)
{
    errand__record *record = waker->job.record;
    bool told = false, holds = waker->job.requests != NULL, kept;

    errand__roster_acquire(roster);
    while (roster->closing && !told) {
        errand__roster_release(roster);
        if ((errand__token_set(record) & ERRAND__FLAG_CANCEL) == 0)
            errand_waker_wake(waker);
        told = true;
        errand__roster_acquire(roster);
    }
    errand__list_unlink(&waker->pending);
    kept = holds || (!roster->dropping &&
                     errand__control_state(atomic_load_explicit(
                         &record->control, memory_order_acquire)) == ERRAND__RUNNING);
    waker->job.held = holds;
    if (kept)
        errand__list_append(holds ? &roster->held : &roster->pending, &waker->pending);
    errand__roster_release(roster);
    return kept;
}

/* A job that was polled while it stood in the list of those with requests. */
static void
leave(errand__roster *roster, errand_waker *waker)
{
    if (!waker->job.held)
        return;
    errand__roster_acquire(roster);
    errand__list_unlink(&waker->pending);
    waker->job.held = false;
    errand__roster_release(roster);
}

/* The body came back, one way or the other. */
static void
done(errand__poller *poller, errand__poll answer)
{
    errand_waker *waker = poller->waker;
    errand__roster *roster = waker->lease;
    errand__hands *hands = &poller->hands;

    poller->waker = NULL;
    if (answer == ERRAND__POLL_PENDING) {
        if (waker->job.keeps && poller->recall != NULL)
            poller->recall(poller, waker);
        if (waker->job.held && waker->job.requests != NULL)
            return; /* it stands there */
        if (keep(roster, waker))
            return;
        errand__hands_drop_pending(hands, waker);
    } else if (answer == ERRAND__POLL_ENDED && poller->spans != NULL) {
        uint64_t end = hands->now_ns;

        errand__spans_count(poller->spans->run,
                            end > waker->job.t_start ? end - waker->job.t_start : 0);
    }
    leave(roster, waker);
    errand__waker_end(waker);
}

/* Takes a started job out of the pending ones.  False: it was dropped meanwhile. */
static bool
take_pending(errand__roster *roster, errand_waker *waker)
{
    bool taken, told;

    errand__roster_acquire(roster);
    taken = errand__list_linked(&waker->pending);
    told = taken && waker->job.held && roster->closing;
    if (!waker->job.held)
        errand__list_unlink(&waker->pending);
    errand__roster_release(roster);
    if (told)
        errand__token_set(
            waker->job.record); /* it may be polled while the owner closes */
    if (taken &&
        errand__waker_is_alone(roster, waker, 3)) /* the port's; the list's is left */
        atomic_store_explicit(&waker->refs, 2, memory_order_relaxed);
    else
        errand_waker_abandon(&waker);
    return taken;
}

bool
errand__poller_run(errand__poller *poller, errand_waker *waker, errand__cell *cell)
{
    errand__roster *roster = waker->lease;
    errand__hands *hands = &poller->hands;
    errand__poll answer;

    hands->epoch = roster->lease->epoch;
    hands->block = roster->lease->block;
    hands->cell = cell;
    if (waker->job.is_async) { /* set by its start */
        if (!take_pending(roster, waker))
            return false;
        poller->waker = waker;
        if (waker->job.held && poller->recall != NULL)
            poller->recall(poller, waker);
        answer = errand__hands_poll(hands, waker);
    } else {
        uint64_t since = waker->job.t_start; /* see errand__roster_enter */
        uint64_t waited;

        errand__hands_glance(hands);
        waited = hands->cycles > since ? hands->cycles - since : 0;
        poller->waker = waker;
        errand__ages_began(&roster->ages, waker->job.record, waker->job.generation,
                           hands->cycles);
        answer = errand__hands_start(hands, roster->lease->block, waker->job.record,
                                     waker->job.generation, cell);
        if (answer != ERRAND__POLL_NOTHING && poller->spans != NULL)
            errand__spans_count(poller->spans->wait,
                                (uint64_t)((double)waited * hands->ns_per_cycle));
        if (answer == ERRAND__POLL_PENDING)
            answer = errand__hands_poll(hands, waker);
    }
    done(poller, answer);
    return answer != ERRAND__POLL_NOTHING;
}

void
errand__poller_again(errand__poller *poller, errand_waker *waker)
{
    errand__roster *roster = waker->lease;

    poller->hands.epoch = roster->lease->epoch;
    poller->hands.block = roster->lease->block;
    poller->hands.cell = &roster->lease->cells[poller->cell];
    poller->waker = waker;
    done(poller, errand__hands_poll(&poller->hands, waker));
}

void
errand__poller_panicked(errand__poller *poller, const char *message)
{
    errand_waker *waker = poller->waker;

    errand__hands_panicked(&poller->hands, message);
    if (waker != NULL)
        done(poller, waker->job.keeps ? ERRAND__POLL_PENDING : ERRAND__POLL_ENDED);
}

void
errand__spans_count(_Atomic uint64_t *histogram, uint64_t ns)
{
    unsigned at = ns < 2 ? 0 : 63U - (unsigned)__builtin_clzll(ns);

    errand__count(&histogram[at < 40 ? at : 39]);
}

void
errand__spans_hands(errand__spans *spans, const errand__hands *hands)
{
    atomic_store_explicit(&spans->panics, hands->destructor_panics,
                          memory_order_release); /* Pairs: cell-count */
    atomic_store_explicit(&spans->leaked, hands->leaked, memory_order_release);
}

void
errand__spans_add(const errand__spans *spans, errand_executor_snapshot *out_snapshot)
{
    for (unsigned i = 0; i < 40; i++) {
        out_snapshot->wait_histogram[i] +=
            atomic_load_explicit(&spans->wait[i], memory_order_acquire);
        out_snapshot->run_histogram[i] +=
            atomic_load_explicit(&spans->run[i], memory_order_acquire);
    }
    out_snapshot->destructor_panics +=
        atomic_load_explicit(&spans->panics, memory_order_acquire);
    out_snapshot->leaked += atomic_load_explicit(&spans->leaked, memory_order_acquire);
}
