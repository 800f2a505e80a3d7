/* SPDX-License-Identifier: MIT */
/* seat: a thing's place for one operation at a time, and how closing the thing reaches it.
 *
 * Design notes: two questions are kept apart.  May the next operation be made?  Its owner's alone:
 * while it waits for one, no.  It no longer does when that one was told to end, or is about to be
 * delivered (errand_job_type.told), or its state is dropped: so the answer hangs on nothing that a
 * thread does.  Whose turn is it?  The bodies': one has the turn at a time, and what was told to end
 * may have it still, so the next one's body may have to wait for its turn.  It leaves its place,
 * a part of its state, in a ring, and its waker there.  Whoever leaves passes the turn on to the
 * first of them, in the order in which they came.  A chain of operations, each told to end before the next is
 * made, is a ring as long as that chain, and takes no other memory.
 *
 * A closer cannot reach into a body.  It marks the seat and wakes the body's waker, which the body
 * left here before it said PENDING: either the closer finds it, or the body finds the mark.
 * Those that wait for their turn are woken one after the other: each wakes the next as it leaves.
 * Wakers are called with no lock held. */
#include "core/pause.h"
#include "operations/operations.h"

/* ---- the owner's ---------------------------------------------------------------------------- */

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
    }
    errand__lock_release(&seat->lock);
    return is_free;
}

void
errand__seat_told(errand__seat *seat, uint32_t ticket)
{
    errand__lock_acquire(&seat->lock);
    if (seat->taken == ticket)
        seat->taken = 0;
    errand__lock_release(&seat->lock);
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

bool
errand__seat_is_left(errand__seat *seat)
{
    bool is_left;

    errand__lock_acquire(&seat->lock);
    is_left = seat->gone >= ERRAND__SEAT_ENDED && seat->turn == 0;
    errand__lock_release(&seat->lock);
    return is_left;
}

void
errand__seat_fini(errand__seat *seat)
{
    errand_waker_abandon(&seat->waker);
}

/* ---- those that wait for their turn --------------------------------------------------------------- */

static void
link_last(errand__seat_place **last, errand__seat_place *place, errand_job *job)
{
    place->waker = errand_job_waker(job);
    place->next = *last == NULL ? place : (*last)->next;
    if (*last != NULL)
        (*last)->next = place;
    *last = place;
}

/* Answers its waker, which is the caller's then. */
static errand_waker *
unlink_place(errand__seat_place **last, errand__seat_place *place)
{
    errand__seat_place *before = *last;
    errand_waker *waker = place->waker;

    while (before->next != place)
        before = before->next;
    before->next = place->next;
    if (*last == place)
        *last = before == place ? NULL : before;
    place->next = NULL;
    place->waker = NULL;
    return waker;
}

/* Who is next, if nobody has the turn, or if all are to end; a reference, or NULL. */
static errand_waker *
pass_on(errand__seat *seat)
{
    errand__seat_place *first = seat->last == NULL ? NULL : seat->last->next;

    if (first != NULL && seat->gone == ERRAND__SEAT_CLOSED)
        return errand_waker_hold(first->waker);
    if (first == NULL || seat->turn != 0)
        return NULL;
    seat->turn = first->ticket;
    return unlink_place(&seat->last, first);
}

/* The first of those that watch, once nobody has the turn: each wakes the next as it goes. */
static errand_waker *
pass_watch(errand__seat *seat)
{
    return seat->last_watcher == NULL || seat->turn != 0
               ? NULL
               : errand_waker_hold(seat->last_watcher->next->waker);
}

static void
wake(errand_waker *take_waker)
{
    errand_waker_wake(take_waker);
    errand_waker_abandon(&take_waker);
}

/* ---- both sides' -------------------------------------------------------------------------------- */

void
errand__seat_leave(errand__seat *seat, errand__seat_place *place, uint32_t ticket,
                   bool poison)
{
    errand_waker *waker = NULL, *watcher = NULL, *next;

    errand__lock_acquire(&seat->lock);
    if (place != NULL && place->next != NULL)
        waker = unlink_place(&seat->last, place);
    if (seat->turn == ticket) {
        seat->turn = 0;
        if (poison && seat->gone == ERRAND__SEAT_OPEN)
            seat->gone = ERRAND__SEAT_POISONED;
        waker = seat->waker;
        seat->waker = NULL;
        watcher = pass_watch(seat);
    }
    next = pass_on(seat);
    errand__lock_release(&seat->lock);
    errand_waker_abandon(&waker);
    wake(watcher);
    wake(next);
}

bool
errand__seat_close(errand__seat *seat, uint8_t gone)
{
    errand_waker *waker, *next;
    bool used;

    errand__lock_acquire(&seat->lock);
    if (seat->gone < gone)
        seat->gone = gone;
    used = seat->turn != 0;
    waker = errand_waker_hold(seat->waker);
    next = pass_on(seat);
    errand__lock_release(&seat->lock);
    wake(waker);
    wake(next);
    return used;
}

/* ---- a body's ------------------------------------------------------------------------------------- */

errand__seat_answer
errand__seat_enter(errand__seat *seat, errand__seat_place *place, uint32_t ticket,
                   uint8_t bears, errand_job *job)
{
    errand__seat_answer answer = ERRAND__SEAT_HAS;

    ERRAND__PAUSE("turn");
    errand__lock_acquire(&seat->lock);
    if (seat->gone > bears) {
        answer = ERRAND__SEAT_GONE;
    } else if (seat->turn == 0) {
        seat->turn = ticket;
    } else if (seat->turn != ticket) {
        answer = ERRAND__SEAT_WAITS;
        if (place->next == NULL) {
            place->ticket = ticket;
            link_last(&seat->last, place, job);
        }
    }
    errand__lock_release(&seat->lock);
    return answer;
}

bool
errand__seat_wait(errand__seat *seat, uint32_t ticket, errand_job *job)
{
    errand_waker *waker = errand_job_waker(job);
    bool open;

    errand__lock_acquire(&seat->lock);
    open = seat->gone == ERRAND__SEAT_OPEN;
    if (open && seat->turn == ticket && seat->waker == NULL) {
        seat->waker = waker;
        waker = NULL;
    }
    errand__lock_release(&seat->lock);
    errand_waker_abandon(&waker);
    return open;
}

bool
errand__seat_watch(errand__seat *seat, errand__seat_place *place, errand_job *job)
{
    bool still;

    errand__lock_acquire(&seat->lock);
    still = seat->turn == 0;
    if (!still && place->next == NULL)
        link_last(&seat->last_watcher, place, job);
    errand__lock_release(&seat->lock);
    if (still)
        errand__seat_unwatch(seat, place);
    return still;
}

void
errand__seat_unwatch(errand__seat *seat, errand__seat_place *place)
{
    errand_waker *waker = NULL, *next = NULL;

    errand__lock_acquire(&seat->lock);
    if (place->next != NULL) {
        waker = unlink_place(&seat->last_watcher, place);
        next = pass_watch(seat);
    }
    errand__lock_release(&seat->lock);
    errand_waker_abandon(&waker);
    wake(next);
}
