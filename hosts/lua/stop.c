/* SPDX-License-Identifier: MIT */
/* stop: the switch that a signal handler may touch.  See the notes on its words in host.h.
 *
 * Design notes.  A handler on the run's own thread runs to its end before hide goes on, so users
 * is zero for it; a handler on another thread makes hide wait for a few instructions. */
#include "lua_host.h"
#include <sched.h>

int
errand_lua_interrupt(errand_lua_stop *stop)
{
    atomic_fetch_add_explicit(&stop->users, 1,
                              memory_order_seq_cst); /* Pairs: lua-stop */
    unsigned count = atomic_fetch_add_explicit(&stop->count, 1, memory_order_seq_cst) + 1;
    errand_inbox *inbox = atomic_load_explicit(&stop->inbox, memory_order_seq_cst);
    if (inbox != NULL)
        errand_interrupt(inbox);
    atomic_fetch_sub_explicit(&stop->users, 1, memory_order_seq_cst);
    return (int)count;
}

void
errand_lua_stop_reset(errand_lua_stop *stop)
{
    atomic_store_explicit(&stop->count, 0, memory_order_seq_cst);
}

void
errand__lua_stop_show(errand_lua_stop *stop, errand_inbox *inbox)
{
    if (stop == NULL)
        return;
    atomic_store_explicit(&stop->inbox, inbox,
                          memory_order_seq_cst); /* Pairs: lua-stop */
    if (errand__lua_stop_asked(stop))
        errand_interrupt(inbox);
}

void
errand__lua_stop_hide(errand_lua_stop *stop)
{
    if (stop == NULL)
        return;
    atomic_store_explicit(&stop->inbox, NULL, memory_order_seq_cst);
    while (atomic_load_explicit(&stop->users, memory_order_seq_cst) != 0)
        sched_yield();
}

bool
errand__lua_stop_asked(errand_lua_stop *stop)
{
    return stop != NULL && atomic_load_explicit(&stop->count, memory_order_seq_cst) != 0;
}
