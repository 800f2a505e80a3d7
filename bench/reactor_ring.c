/* SPDX-License-Identifier: MIT */
/* reactor, liburing alone: what the kernel's queues allow, without identities, cancel or lifetimes.
 * What was completed is submitted again at once, all in one call. */
#include "reactor.h"

#include <liburing.h>
#include <stdio.h>
#include <string.h>

static bool
queue_read(struct io_uring *ring, reactor_reads *reads, uint32_t place)
{
    int64_t block = reactor_next(reads, place);
    struct io_uring_sqe *entry;

    if (block < 0)
        return false;
    entry = io_uring_get_sqe(ring);
    io_uring_prep_read(entry, reads->fd, reads->buffers[place], REACTOR_BLOCK,
                       (uint64_t)block * REACTOR_BLOCK);
    io_uring_sqe_set_data64(entry, place);
    return true;
}

bool
reactor_reads_ring(reactor_reads *reads, char *text, size_t size)
{
    struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                                  IORING_SETUP_DEFER_TASKRUN};
    struct io_uring ring;
    uint64_t total = reads->left;
    int error = io_uring_queue_init_params(REACTOR_WINDOW_MAX, &ring, &parameters);

    if (error != 0) {
        snprintf(text, size, "io_uring: %s", strerror(-error));
        return false;
    }
    io_uring_register_ring_fd(&ring);
    for (uint32_t i = 0; i < reads->in_flight; i++)
        queue_read(&ring, reads, i);
    while (reads->done < total) {
        struct io_uring_cqe *entry;
        unsigned at, count = 0;

        io_uring_submit_and_wait(&ring, 1);
        io_uring_for_each_cqe(&ring, at, entry)
        {
            uint32_t place = (uint32_t)entry->user_data;

            reactor_read(reads, place, entry->res);
            queue_read(&ring, reads, place);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
    io_uring_queue_exit(&ring);
    return true;
}
