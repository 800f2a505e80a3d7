/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_CUSTOM_H
#define ERRAND_WORKERS_CUSTOM_H
/* custom: an executor of the host's own, behind the interface of the library's. */
#include "workers/async/async.h"

#define ERRAND__CUSTOM_CELLS 64 /* bodies of one lease at once */

typedef struct errand__custom {
    errand_executor base;
    /* Immutable after create. */
    const errand_executor_type *type;
    void *data;
    errand__lock lock;
    /* Guarded by lock. */
    errand__link rosters;
} errand__custom;

typedef struct errand__ticket {
    /* stamp: odd while its dispatch is neither run nor dropped.  Writers: owner (to odd), who runs
     * or drops it (to even, by compare-exchange).  Readers: views.  Order: acquire-release.
     * Pairs: ticket-stamp.  Why: one use per dispatch, and its winner reads the rest. */
    _Atomic uint64_t stamp;
    struct errand__custom_lease *lease;
    errand__record *record;
    uint32_t generation;
    errand_waker *waker; /* async: a reference */
    errand_dispatch_view view;
    struct errand__ticket *next_free;
} errand__ticket;

typedef struct errand__custom_lease { /* lease->impl */
    errand__roster roster;            /* without a port */
    void *theirs;
    errand__ticket *tickets;
    size_t mapped;
    /* Owner thread only. */
    uint32_t ticket_count, fresh; /* tickets from fresh on were never used */
    uint32_t free_count;
    errand__ticket *free_first;
    /* back: tickets that were given back, newest first.  Writers: who runs or drops (push), owner
     * (takes all).  Readers: the same.  Order: acquire-release.  Pairs: ticket-back.
     * Why: the owner writes into a ticket what its last user read before. */
    _Atomic(errand__ticket *) back;
    /* cells_taken: bit i: cell 1 + i has a writer.  Writers, Readers: who runs or drops.
     * Order: acquire-release.  Pairs: custom-cells.
     * Why: a cell's counts go from one writer to the next. */
    _Atomic uint64_t cells_taken;
    /* cells_bell: stepped when a cell is given back.  Writers, Readers: as cells_taken.
     * Order: release, acquire.  Pairs: custom-cells.  Why: a futex word. */
    atomic_uint cells_bell;
    /* cells_wanted: how many wait for a cell.  Writers, Readers: as cells_taken.
     * Order: sequentially consistent, as the bit beside it.  Pairs: none.
     * Why: who gives back must see the waiter, or the waiter the free bit. */
    atomic_uint cells_wanted;
} errand__custom_lease;

/* dispatch.c */
/* Are so many tickets free?  take: needs a free one.  Owner. */
bool errand__tickets_free(errand__custom_lease *lease, uint32_t count);
errand__ticket *errand__ticket_take(errand__custom_lease *lease);
#endif
