/* SPDX-License-Identifier: MIT */
/* seat: a thing's place for one operation at a time, and how closing the thing reaches it.
 *
 * Design notes: who makes an operation takes a ticket; the place is free again when its body has
 * ended, or its state is dropped unrun.  So the handler of a completion finds the place free,
 * although the state is dropped behind it, and an operation that never ran cannot keep it.
 *
 * A closer cannot reach into a body.  It marks the seat and wakes the body's waker, which the body
 * left here before it said PENDING: either the closer finds it, or the body finds the mark.
 * Wakers are called with no lock held. */
#include "operations/operations.h"

bool
errand__seat_take(errand__seat *seat, uint32_t *out_ticket)
{
    bool is_free;

    errand__lock_acquire(&seat->lock);
    is_free = seat->taken == 0;
    if (is_free) {
        if (++seat->tickets == 0)
            seat->tickets = 1;
        seat->taken = *out_ticket = seat->tickets;
        seat->begun = false;
    }
    errand__lock_release(&seat->lock);
    return is_free;
}

/* Frees it, if ticket has it; or ends the body and stays. */
static void
leave(errand__seat *seat, uint32_t ticket, bool poison, bool stays)
{
    errand_waker *waker = NULL, *watcher = NULL;

    errand__lock_acquire(&seat->lock);
    if (seat->taken == ticket) {
        seat->taken = stays ? ticket : 0;
        seat->begun = false;
        if (poison && seat->gone == ERRAND__SEAT_OPEN)
            seat->gone = ERRAND__SEAT_POISONED;
        waker = seat->waker;
        watcher = seat->watcher;
        seat->waker = seat->watcher = NULL;
    }
    errand__lock_release(&seat->lock);
    errand_waker_abandon(&waker);
    errand_waker_wake(watcher);
    errand_waker_abandon(&watcher);
}

void
errand__seat_drop(errand__seat *seat, uint32_t ticket)
{
    leave(seat, ticket, false, false);
}

void
errand__seat_end(errand__seat *seat, uint32_t ticket, bool poison)
{
    leave(seat, ticket, poison, false);
}

void
errand__seat_pause(errand__seat *seat, uint32_t ticket, bool poison)
{
    leave(seat, ticket, poison, true);
}

void
errand__seat_close(errand__seat *seat, uint8_t gone)
{
    errand_waker *waker;

    errand__lock_acquire(&seat->lock);
    if (seat->gone < gone)
        seat->gone = gone;
    waker = errand_waker_hold(seat->waker);
    errand__lock_release(&seat->lock);
    errand_waker_wake(waker);
    errand_waker_abandon(&waker);
}

uint8_t
errand__seat_gone(errand__seat *seat)
{
    uint8_t gone;

    errand__lock_acquire(&seat->lock);
    gone = seat->gone;
    errand__lock_release(&seat->lock);
    return gone;
}

void
errand__seat_fini(errand__seat *seat)
{
    errand_waker_abandon(&seat->waker);
    errand_waker_abandon(&seat->watcher);
}

bool
errand__seat_begin(errand__seat *seat, uint32_t ticket)
{
    bool open;

    errand__lock_acquire(&seat->lock);
    open = seat->gone == ERRAND__SEAT_OPEN;
    if (seat->gone != ERRAND__SEAT_CLOSED && seat->taken == ticket)
        seat->begun = true; /* also of a poisoned one: who shuts it down uses it */
    errand__lock_release(&seat->lock);
    return open;
}

bool
errand__seat_wait(errand__seat *seat, uint32_t ticket, errand_job *job)
{
    errand_waker *waker = errand_job_waker(job);
    bool open;

    errand__lock_acquire(&seat->lock);
    open = seat->gone == ERRAND__SEAT_OPEN;
    if (open && seat->taken == ticket && seat->waker == NULL) {
        seat->waker = waker;
        waker = NULL;
    }
    errand__lock_release(&seat->lock);
    errand_waker_abandon(&waker);
    return open;
}

bool
errand__seat_watch(errand__seat *seat, errand_job *job)
{
    errand_waker *waker = errand_job_waker(job);
    bool still;

    errand__lock_acquire(&seat->lock);
    still = !seat->begun;
    if (!still && seat->watcher == NULL) {
        seat->watcher = waker;
        waker = NULL;
    }
    errand__lock_release(&seat->lock);
    errand_waker_abandon(&waker);
    return still;
}
