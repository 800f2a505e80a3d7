/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_REACTOR_MANY_RIG_H
#define ERRAND_TESTS_WORKERS_REACTOR_MANY_RIG_H
/* many_rig: a job that takes from the ring of an accept or receive that goes on, and peers for it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include "rig.h"

enum { CLIENTS = 60 };

/* ---- a job with a ring --------------------------------------------------------------------------- */
typedef struct taker {
    errand_io io;
    size_t most;     /* takes at most so much in one poll */
    bool holds;      /* takes nothing before it is told */
    bool stops;      /* asks its request back as soon as it takes */
    bool stops_full; /* asks it back when its ring is full, and takes nothing before */
    bool leaves;     /* answers when it is told, and takes nothing */
    bool told_panic; /* the same by a panic */
    bool begun, asked;
    atomic_bool told, waker_there;
    errand_waker *waker;
    void *seen; /* descriptors or bytes */
    size_t taken,
        wanted; /* wanted: asks its request back when it has so many; 0 = never */
    int32_t end;
    atomic_int *drops;
} taker;

static inline void
take_some(errand_job *job, taker *self)
{
    for (size_t i = 0; self->io.ready > 0 && i < self->most; i++) {
        if (self->io.kind == ERRAND_IO_ACCEPT_MANY)
            ((int32_t *)self->seen)[self->taken++] =
                ((int32_t *)self->io.buffer)[self->io.first];
        else
            ((char *)self->seen)[self->taken++] =
                ((char *)self->io.buffer)[self->io.first];
        assert_int_equal(errand_io_consume(job, &self->io, 1), ERRAND_OK);
    }
    if (self->io.ready > 0)
        errand_waker_wake(self->waker);
}

static inline int32_t
taker_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    taker *self = state;
    bool told = atomic_load_explicit(&self->told, memory_order_acquire) || !self->holds;

    (void)out_payload;
    if (!self->begun) {
        self->begun = true;
        self->waker = errand_job_waker(job);
        atomic_store_explicit(&self->waker_there, true, memory_order_release);
        return errand_io_start(job, &self->io) == ERRAND_OK ? ERRAND_PENDING : 99;
    }
    if (!told)
        return ERRAND_PENDING;
    if (self->told_panic)
        errand_panic("left with a ring that fills");
    if (self->leaves)
        return 0;
    if ((!self->stops && !self->stops_full) || self->io.done)
        take_some(job, self);
    if ((self->stops || (self->stops_full && self->io.ready == self->io.length) ||
         (self->wanted > 0 && self->taken >= self->wanted)) &&
        !self->asked) {
        self->asked = true;
        assert_int_equal(errand_io_cancel(job, &self->io), ERRAND_OK);
    }
    if (!self->io.done)
        return ERRAND_PENDING;
    while (self->io.ready > 0) /* also after it is done */
        take_some(job, self);
    self->end = self->io.result;
    return 0;
}

static inline void
taker_drop(void *state)
{
    taker *self = state;

    assert_true(self->io.done || !self->begun);
    errand_waker_abandon(&self->waker);
    if (self->drops != NULL)
        atomic_fetch_add_explicit(self->drops, 1, memory_order_release);
}
static const errand_job_type taker_job = {.struct_size = sizeof(errand_job_type),
                                          .name = "taker",
                                          .poll = taker_poll,
                                          .drop = taker_drop};

static inline void
tell(scene *world, taker *self)
{
    errand_waker *waker;

    while (!atomic_load_explicit(&self->waker_there, memory_order_acquire))
        scene_drain(world, 0);
    waker = errand_waker_hold(self->waker);
    atomic_store_explicit(&self->told, true, memory_order_release);
    errand_waker_wake(waker);
    errand_waker_abandon(&waker);
}

/* The loop has been through what was there. */
static inline void
settle_down(scene *world)
{
    for (int i = 0; i < 3; i++)
        (void)rig_do(world, (errand_io){.kind = ERRAND_IO_NOTHING});
}

/* ---- peers ----------------------------------------------------------------------------------------- */
typedef struct crowd {
    int listener, clients[CLIENTS];
    uint16_t ports[CLIENTS];
} crowd;

static inline void
crowd_come(crowd *self, int mode)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | mode, 0);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, sizeof address),
                     0);
    assert_int_equal(listen(self->listener, 128), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &length),
                     0);
    for (int i = 0; i < CLIENTS; i++) {
        struct sockaddr_in mine;
        struct tcp_info
            about; /* of one that listens: unacked is the length of its queue */

        length = sizeof mine;
        self->clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(
            connect(self->clients[i], (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(getsockname(self->clients[i], (struct sockaddr *)&mine, &length),
                         0);
        self->ports[i] = mine.sin_port;
        /* The next one may not overtake it on another processor. */
        do {
            length = sizeof about;
            assert_int_equal(
                getsockopt(self->listener, IPPROTO_TCP, TCP_INFO, &about, &length), 0);
        } while (about.tcpi_unacked <= (unsigned)i && sched_yield() == 0);
    }
}

static inline void
crowd_go(crowd *self)
{
    for (int i = 0; i < CLIENTS; i++)
        close(self->clients[i]);
    close(self->listener);
}

/* These descriptors are the connections of the crowd from this one on; closes them. */
static inline void
are_of(const crowd *self, size_t from, const int32_t *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;

        assert_int_equal(getpeername(descriptors[i], (struct sockaddr *)&peer, &length),
                         0);
        assert_int_equal(peer.sin_port, self->ports[from + i]);
        assert_true((fcntl(descriptors[i], F_GETFD) & FD_CLOEXEC) != 0);
        close(descriptors[i]);
    }
}

#endif
