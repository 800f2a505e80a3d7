/* SPDX-License-Identifier: MIT */
/* bell: sleeping until something happened to one of many things, which are rung by number.
 *
 * Design notes.
 * - Who waits for an answer also waits for the end of an operation, which is a bit of a word that
 *   is not the answer's.  So neither is slept on: both are followed by a ring of the bell that the
 *   operation's number falls on, and the sleeper looks at both when it is rung.
 * - Two operations may fall on one bell.  Then each wakes the other's sleepers, who look and sleep
 *   again: that costs them a look, and changes nothing else.
 * - Who rings where nobody listens pays one step by nothing on `listeners`: both sides change that
 *   word, so whoever comes second sees what the first did before. */
#include <limits.h>
#include "core/core.h"

#define BELLS 64

struct errand__bell {
    /* listeners: threads between listen and leave.
     * Writers, Readers: listeners and who rings.
     * Order:   acq_rel.
     * Pairs:   bell-listeners.
     * Why:     who rings stored something before; who listens looks at it afterwards. */
    _Alignas(64) atomic_uint listeners;
    /* rings: grows with each that somebody may hear; a futex word.
     * Writers: who rings.   Readers: listeners.
     * Order:   acq_rel, acquire.
     * Pairs:   bell-rings.
     * Why:     who reads the new count sees what was rung for. */
    atomic_uint rings;
};
static errand__bell bells[BELLS];

errand__bell *
errand__bell_of(uint64_t number, uint64_t more)
{
    return &bells[(number * 31 + more) % BELLS];
}

void
errand__bell_listen(errand__bell *bell)
{
    /* Pairs: bell-listeners */
    atomic_fetch_add_explicit(&bell->listeners, 1, memory_order_acq_rel);
}

void
errand__bell_leave(errand__bell *bell)
{
    atomic_fetch_sub_explicit(&bell->listeners, 1, memory_order_acq_rel);
}

unsigned
errand__bell_rings(const errand__bell *bell)
{
    /* Pairs: bell-rings */
    return atomic_load_explicit(&bell->rings, memory_order_acquire);
}

void
errand__bell_await(errand__bell *bell, unsigned rings)
{
    (void)errand__futex_wait(&bell->rings, rings, UINT64_MAX);
}

void
errand__bell_ring(errand__bell *bell)
{
    /* By nothing.  Pairs: bell-listeners */
    if (atomic_fetch_add_explicit(&bell->listeners, 0, memory_order_acq_rel) == 0)
        return;
    atomic_fetch_add_explicit(&bell->rings, 1,
                              memory_order_acq_rel); /* Pairs: bell-rings */
    errand__futex_wake(&bell->rings, INT_MAX);
}
