/* SPDX-License-Identifier: MIT */
/* Design notes: a list of woken jobs in one word.
 *
 * The same idea as the inbox: the head is a waker or, while the list is empty, what the consumer
 * does, so a push that finds SLEEPING owes a wake and no other push makes a system call.
 *
 * A port is counted on its own and small.  A pusher may be the last to touch it: between its
 * push and its ring the job can end, and lease and executor go; the waker, which the pusher's
 * caller holds, keeps the port. */
#include <errno.h>
#include <unistd.h>
#include "workers/async/async.h"

static void
rouse(errand_waker *waker)
{
    errand__port_push(ERRAND__CONTAINER(waker->port, errand__port, base),
                      errand_waker_hold(waker));
}

errand__port *
errand__port_create(void)
{
    errand__port *port = errand__mem_alloc(NULL, sizeof *port);

    if (port == NULL)
        return NULL;
    port->base = (errand__waker_port){rouse, errand__port_let};
    port->fd = -1;
    atomic_store_explicit(&port->refs, 1, memory_order_relaxed);
    return port;
}

void
errand__port_hold(errand__port *port)
{
    atomic_fetch_add_explicit(&port->refs, 1, memory_order_relaxed);
}

void
errand__port_let(void *port)
{
    errand__port *self = port;

    if (atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) ==
        1) { /* Pairs: port-refs */
        if (self->fd >= 0)
            close(self->fd);
        if (self->block != NULL)
            errand__block_let(self->block);
        errand__mem_free(NULL, self, sizeof *self);
    }
}

void
errand__port_push(errand__port *port, errand_waker *waker)
{
    uintptr_t head = atomic_load_explicit(&port->head, memory_order_relaxed);

    do {
        if (head == ERRAND__PORT_CLOSED) {
            if (errand__waker_pop(waker))
                errand_waker_abandon(&waker);
            return;
        }
        waker->next = head <= ERRAND__PORT_CLOSED ? NULL : (errand_waker *)head;
    } while (!atomic_compare_exchange_weak_explicit(
        &port->head, &head, (uintptr_t)waker, memory_order_acq_rel, /* Pairs: port-head */
        memory_order_relaxed));
    if (head == ERRAND__PORT_SLEEPING)
        errand__port_ring(port);
}

/* Turns a chain round: oldest first. */
static errand_waker *
turn_round(uintptr_t head)
{
    errand_waker *waker = head <= ERRAND__PORT_CLOSED ? NULL : (errand_waker *)head;
    errand_waker *done = NULL;

    while (waker != NULL) {
        errand_waker *older = waker->next;

        waker->next = done;
        done = waker;
        waker = older;
    }
    return done;
}

errand_waker *
errand__port_take(errand__port *port)
{
    uintptr_t head = atomic_load_explicit(&port->head, memory_order_relaxed);

    if (head <= ERRAND__PORT_CLOSED)
        return NULL;
    return turn_round(atomic_exchange_explicit(
        &port->head, ERRAND__PORT_EMPTY, memory_order_acq_rel)); /* Pairs: port-head */
}

unsigned
errand__port_bell(errand__port *port)
{
    return atomic_load_explicit(&port->bell, memory_order_acquire); /* Pairs: port-bell */
}

void
errand__port_sleep(errand__port *port, unsigned bell, uint64_t timeout_ns)
{
    uintptr_t state = ERRAND__PORT_EMPTY;

    if (!atomic_compare_exchange_strong_explicit(
            &port->head, &state, ERRAND__PORT_SLEEPING,
            memory_order_acq_rel, /* Pairs: port-head */
            memory_order_acquire))
        return;
    errand__futex_wait(&port->bell, bell, timeout_ns);
    state = ERRAND__PORT_SLEEPING;
    atomic_compare_exchange_strong_explicit(&port->head, &state, ERRAND__PORT_EMPTY,
                                            memory_order_acq_rel, memory_order_acquire);
}

bool
errand__port_empty(const errand__port *port)
{
    return atomic_load_explicit(&port->head, memory_order_relaxed) <= ERRAND__PORT_CLOSED;
}

bool
errand__port_asleep(const errand__port *port)
{
    return atomic_load_explicit(&port->head, memory_order_relaxed) ==
           ERRAND__PORT_SLEEPING;
}

bool
errand__port_rest(errand__port *port)
{
    uintptr_t state = ERRAND__PORT_EMPTY;

    return atomic_compare_exchange_strong_explicit(
               &port->head, &state, ERRAND__PORT_SLEEPING,
               memory_order_acq_rel, /* Pairs: port-head */
               memory_order_acquire) ||
           state == ERRAND__PORT_SLEEPING;
}

void
errand__port_rouse(errand__port *port)
{
    uintptr_t state = ERRAND__PORT_SLEEPING;

    atomic_compare_exchange_strong_explicit(&port->head, &state, ERRAND__PORT_EMPTY,
                                            memory_order_acq_rel, /* Pairs: port-head */
                                            memory_order_acquire);
}

static void
write_fd(int fd)
{
    const uint64_t one = 1;
    int saved = errno;
    ssize_t written;

    do
        written = write(fd, &one, sizeof one);
    while (written < 0 && errno == EINTR);
    errno = saved;
}

void
errand__port_ring(errand__port *port)
{
    if (port->block != NULL) {
        errand__inbox_ring(port->block);
        return;
    }
    if (port->fd >= 0) {
        write_fd(port->fd);
        return;
    }
    atomic_fetch_add_explicit(&port->bell, 1,
                              memory_order_release); /* Pairs: port-bell */
    errand__futex_wake(&port->bell, 1);
}

errand_waker *
errand__port_close(errand__port *port)
{
    return turn_round(atomic_exchange_explicit(
        &port->head, ERRAND__PORT_CLOSED, memory_order_acq_rel)); /* Pairs: port-head */
}

bool
errand__waker_quieten(errand_waker *waker)
{
    unsigned woken = ERRAND__WAKER_WOKEN;

    return atomic_compare_exchange_strong_explicit(
        &waker->state, &woken, ERRAND__WAKER_QUIET,
        memory_order_acq_rel, /* Pairs: waker-state */
        memory_order_acquire);
}

bool
errand__waker_pop(errand_waker *waker)
{
    errand__roster *roster = waker->lease;

    if (errand__waker_quieten(waker))
        return true;
    errand_waker_abandon(&waker);
    errand__roster_keep_less(
        roster); /* it ended while it was linked: see errand__waker_end */
    return false;
}
