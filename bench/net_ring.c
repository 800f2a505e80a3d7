/* SPDX-License-Identifier: MIT */
/* net, liburing alone: a receive or a send for each connection, all that was completed handed in
 * again in one call; one accept that goes on. */
#include "net.h"

#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct connection {
    int fd;
    bool sends;
    uint32_t length, at;
    char bytes[NET_MESSAGE];
} connection;

static bool
ring_open(struct io_uring *ring, char *text, size_t size)
{
    struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                                  IORING_SETUP_DEFER_TASKRUN};
    int error = io_uring_queue_init_params(NET_CONNECTIONS_MAX, ring, &parameters);

    if (error != 0) {
        snprintf(text, size, "io_uring: %s", strerror(-error));
        return false;
    }
    io_uring_register_ring_fd(ring);
    return true;
}

static void
queue(struct io_uring *ring, connection *self)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);

    if (self->sends)
        io_uring_prep_send(entry, self->fd, self->bytes + self->at,
                           self->length - self->at, MSG_NOSIGNAL);
    else
        io_uring_prep_recv(entry, self->fd, self->bytes, NET_MESSAGE, 0);
    io_uring_sqe_set_data(entry, self);
}

/* False: it is at its end. */
static bool
next(net_echo *echo, connection *self, int32_t result)
{
    if (result <= 0) {
        echo->wrong += self->sends || result < 0;
        return false;
    }
    if (self->sends) {
        echo->bytes += (uint64_t)result;
        self->at += (uint32_t)result;
        self->sends = self->at < self->length;
    } else {
        self->sends = true;
        self->length = (uint32_t)result;
        self->at = 0;
    }
    return true;
}

bool
net_echo_ring(net_echo *echo, char *text, size_t size)
{
    connection *all = calloc(echo->count, sizeof *all);
    uint32_t open = echo->count;
    struct io_uring ring;

    if (all == NULL || !ring_open(&ring, text, size))
        return false;
    for (uint32_t i = 0; i < echo->count; i++) {
        all[i].fd = echo->fds[i];
        queue(&ring, &all[i]);
    }
    while (open > 0) {
        struct io_uring_cqe *entry;
        unsigned at, count = 0;

        io_uring_submit_and_wait(&ring, 1);
        io_uring_for_each_cqe(&ring, at, entry)
        {
            connection *self = io_uring_cqe_get_data(entry);

            if (next(echo, self, entry->res))
                queue(&ring, self);
            else
                open--;
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
    io_uring_queue_exit(&ring);
    free(all);
    return true;
}

bool
net_accepts_ring(net_accepts *accepts, char *text, size_t size)
{
    struct io_uring ring;
    bool more = false;

    if (!ring_open(&ring, text, size))
        return false;
    while (accepts->done < accepts->left) {
        struct io_uring_cqe *entry;
        unsigned at, count = 0;

        if (!more)
            io_uring_prep_multishot_accept(io_uring_get_sqe(&ring), accepts->listener,
                                           NULL, NULL, SOCK_CLOEXEC);
        more = true;
        io_uring_submit_and_wait(&ring, 1);
        io_uring_for_each_cqe(&ring, at, entry)
        {
            accepts->wrong += entry->res < 0;
            if (entry->res >= 0)
                close(entry->res);
            more = more && (entry->flags & IORING_CQE_F_MORE) != 0;
            accepts->done++;
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
    io_uring_queue_exit(&ring);
    return true;
}
