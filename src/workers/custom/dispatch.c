/* SPDX-License-Identifier: MIT */
/* dispatch: what a host's executor does with an armed operation.
 *
 * Design notes.
 * - A dispatch names a ticket of its lease, not a record: the record of an operation that was
 *   cancelled is given back at once and may carry another one when the host comes to it.  The
 *   ticket holds copies of what the host may read, and is free again when it was run or
 *   dropped; a second use of a dispatch finds a newer stamp.
 * - Tickets are used up by dispatches of cancelled operations that the host still holds, so
 *   reserve asks for free ones before it asks the host.  There are as many as owed_max and half
 *   as many again (at least 1024 more).
 * - Any number of the host's threads may run dispatches of one lease at once, but each cell has
 *   one writer: a run takes a free one of 64, or waits for one.
 * - An async job that is pending waits on its waker's state.  It stands in the roster
 *   meanwhile, so the end of the lease can drop it under its runner. */
#include "errand/async.h"
#include "workers/custom/custom.h"

/* ---- cells ---------------------------------------------------------------------------------- */

static errand__cell *
cell_take(errand__custom_lease *lease)
{
    for (;;) {
        unsigned bell = atomic_load_explicit(&lease->cells_bell, memory_order_acquire);
        uint64_t taken = atomic_load_explicit(&lease->cells_taken, memory_order_seq_cst);

        while (taken != UINT64_MAX) {
            unsigned bit = (unsigned)__builtin_ctzll(~taken);

            if (atomic_compare_exchange_weak_explicit(
                    &lease->cells_taken, &taken, taken | UINT64_C(1) << bit,
                    memory_order_seq_cst, memory_order_seq_cst)) /* Pairs: custom-cells */
                return &lease->roster.lease->cells[1 + bit];
        }
        atomic_fetch_add_explicit(&lease->cells_wanted, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&lease->cells_taken, memory_order_seq_cst) == UINT64_MAX)
            errand__futex_wait(&lease->cells_bell, bell, UINT64_MAX);
        atomic_fetch_sub_explicit(&lease->cells_wanted, 1, memory_order_seq_cst);
    }
}

static void
cell_give(errand__custom_lease *lease, const errand__cell *cell)
{
    uint64_t bit = UINT64_C(1) << (cell - lease->roster.lease->cells - 1);

    atomic_fetch_and_explicit(&lease->cells_taken, ~bit, memory_order_seq_cst);
    if (atomic_load_explicit(&lease->cells_wanted, memory_order_seq_cst) == 0)
        return;
    atomic_fetch_add_explicit(&lease->cells_bell, 1, memory_order_release);
    errand__futex_wake(&lease->cells_bell, 1);
}

/* ---- tickets ---------------------------------------------------------------------------------- */

/* Owner. */
bool
errand__tickets_free(errand__custom_lease *lease, uint32_t count)
{
    errand__ticket *back;

    if (lease->free_count + (lease->ticket_count - lease->fresh) >= count)
        return true;
    back = atomic_exchange_explicit(&lease->back, NULL,
                                    memory_order_acq_rel); /* Pairs: ticket-back */
    while (back != NULL) {
        errand__ticket *next = back->next_free;

        back->next_free = lease->free_first;
        lease->free_first = back;
        lease->free_count++;
        back = next;
    }
    return lease->free_count + (lease->ticket_count - lease->fresh) >= count;
}

errand__ticket *
errand__ticket_take(errand__custom_lease *lease)
{
    errand__ticket *taken = lease->free_first;

    ERRAND_ASSERT(errand__tickets_free(lease, 1)); /* reserve said so */
    if (lease->free_first == NULL)
        return &lease->tickets[lease->fresh++];
    taken = lease->free_first;
    lease->free_first = taken->next_free;
    lease->free_count--;
    return taken;
}

/* Makes the dispatch used up: its one use is the caller's.  NULL = it was used before. */
static errand__ticket *
ticket_use(errand_dispatch dispatch)
{
    errand__ticket *used = dispatch.held_record;
    uint64_t stamp = dispatch.stamp;

    if (used != NULL && atomic_compare_exchange_strong_explicit(
                            &used->stamp, &stamp, stamp + 1,
                            memory_order_acq_rel, /* Pairs: ticket-stamp */
                            memory_order_relaxed))
        return used;
    (void)errand__misuse(ERRAND_ESPENT, "errand_dispatch_run or _drop",
                         "the dispatch was run or dropped before");
    return NULL;
}

static void
ticket_give(errand__ticket *used)
{
    errand__custom_lease *lease = used->lease;
    errand__ticket *head = atomic_load_explicit(&lease->back, memory_order_relaxed);

    do {
        used->next_free = head;
    } while (!atomic_compare_exchange_weak_explicit(
        &lease->back, &head, used, memory_order_acq_rel, /* Pairs: ticket-back */
        memory_order_relaxed));
}

/* ---- what a dispatch can do ------------------------------------------------------------------ */

bool
errand_dispatch_view_read(errand_dispatch dispatch, errand_dispatch_view *out_view)
{
    errand__ticket *seen = dispatch.held_record;
    uint64_t control;

    if (seen == NULL || out_view == NULL ||
        atomic_load_explicit(&seen->stamp, memory_order_acquire) !=
            dispatch.stamp) /* Pairs: ticket-stamp */
        return false;
    control = atomic_load_explicit(&seen->record->control, memory_order_acquire);
    if (errand__control_generation(control) != seen->generation ||
        errand__control_state(control) != ERRAND__QUEUED)
        return false;
    *out_view = seen->view;
    return true;
}

typedef struct run { /* in memory, so that a panic finds it as it was */
    errand__poller poller;
    errand__cell *cell;
    bool entered;
} run;

static void
run_blocking(run *self, const errand__ticket *used)
{
    errand__hands *hands = &self->poller.hands;

    hands->epoch = used->lease->roster.lease->epoch;
    errand__ages_began(&used->lease->roster.ages, used->record, used->generation,
                       errand__cycles());
    self->entered = true;
    if (ERRAND__CATCH(&self->poller.hands.frame))
        errand__hands_panicked(&self->poller.hands, self->poller.hands.frame.message);
    else
        self->entered =
            errand__hands_execute(&self->poller.hands, used->lease->roster.lease->block,
                                  used->record, used->generation, self->cell);
    errand__frame_leave(&self->poller.hands.frame);
}

static void
poll_one(run *self, errand_waker *waker)
{
    if (ERRAND__CATCH(&self->poller.hands.frame)) {
        errand__poller_panicked(&self->poller, self->poller.hands.frame.message);
        self->entered = true;
    } else if (errand__poller_run(&self->poller, errand_waker_hold(waker), self->cell)) {
        self->entered = true;
    }
    errand__frame_leave(&self->poller.hands.frame);
}

/* Polls until the job has ended, here or by the end of the lease; sleeps in between. */
static void
run_async(run *self, errand_lease *lease, errand_waker *waker)
{
    for (;;) {
        switch (atomic_load_explicit(&waker->state,
                                     memory_order_acquire)) { /* Pairs: waker-state */
        case ERRAND__WAKER_DEAD:
            return;
        case ERRAND__WAKER_QUIET:
            errand__hands_ring(&self->poller.hands, lease->block);
            errand__futex_wait(&waker->state, ERRAND__WAKER_QUIET, UINT64_MAX);
            break;
        default:
            errand__hands_clock(&self->poller.hands);
            if (errand__waker_quieten(waker))
                poll_one(self, waker);
        }
    }
}

bool
errand_dispatch_run(errand_dispatch dispatch)
{
    errand__ticket *used = ticket_use(dispatch);
    errand_waker *waker;
    errand_lease *lease;
    run self = {.entered = false};

    if (used == NULL)
        return false;
    lease = used->lease->roster.lease;
    waker = used->waker;
    used->waker = NULL;
    errand__lease_hold(lease);
    errand__poller_init(&self.poller, NULL);
    self.cell = cell_take(used->lease);
    if (waker != NULL)
        run_async(&self, lease, waker);
    else
        run_blocking(&self, used);
    cell_give(used->lease, self.cell);
    ticket_give(used);
    errand__hands_ring(&self.poller.hands, lease->block);
    errand__hands_tell(&self.poller.hands, lease->block);
    errand__poller_fini(&self.poller);
    errand_waker_abandon(&waker);
    errand__lease_let(lease);
    return self.entered;
}

bool
errand_dispatch_drop(errand_dispatch dispatch)
{
    errand__ticket *used = ticket_use(dispatch);
    errand__cell *cell;
    errand_lease *lease;
    bool settled;

    if (used == NULL)
        return false;
    lease = used->lease->roster.lease;
    errand__lease_hold(lease);
    cell = cell_take(used->lease);
    settled = errand__settle_queued(lease->block, used->record, used->generation,
                                    ERRAND_CANCELLED, ERRAND_CODE_CANCELLED, cell, NULL);
    cell_give(used->lease, cell);
    if (used->waker != NULL)
        errand__waker_end(used->waker);
    used->waker = NULL;
    ticket_give(used);
    errand__lease_let(lease);
    return settled;
}
