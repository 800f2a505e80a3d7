/* SPDX-License-Identifier: MIT */
/* Design notes: what io_uring's completions mean.
 *
 * - A descriptor in non-blocking mode makes the kernel answer EAGAIN instead of waiting: then a
 *   poll stands for the request, and it is tried again.
 * - A request that goes on by itself has ended when a completion says so (no MORE), whatever its
 *   result: it may be an item, that it was stopped because the ring is full, that the buffers of
 *   pieces.c are all in use, or that the kernel does not know it.  Only then is the block the
 *   job's again, or handed in once more.
 * - Completions lie side by side, but what they lead to lies all over the memory: it is fetched a
 *   few ahead. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "workers/reactor/calls.h"
#include "workers/reactor/uring.h"

enum { AHEAD = 4 };

static int32_t
connected(const errand_io *io)
{
    int error = 0;
    socklen_t size = sizeof error;

    return getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? -errno : -error;
}

/* Did the kernel only say that the descriptor is in non-blocking mode?  Then it goes on. */
static bool
goes_on(errand__loop *loop, errand_io *io, int32_t *result)
{
    errand__request *request = errand__request_of(io);
    bool polled = (request->state & ERRAND__IO_POLLING) != 0;

    if ((request->state & ERRAND__IO_ASKED) != 0) {
        if (*result == -EAGAIN || polled)
            *result = -ECANCELED;
        return false;
    }
    if (polled) {
        request->state &= ~(uintptr_t)ERRAND__IO_POLLING;
        if (*result >= 0 && io->kind != ERRAND_IO_CONNECT) {
            errand__uring_hand_in(loop, io);
            return true;
        }
        if (*result >= 0)
            *result = connected(io);
        return false;
    }
    if ((*result != -EAGAIN &&
         !(*result == -EINPROGRESS && io->kind == ERRAND_IO_CONNECT)) ||
        errand__kinds[io->kind].waits == 0)
        return false;
    request->state |= ERRAND__IO_POLLING;
    errand__uring_hand_in(loop, io);
    return true;
}

/* One that went on by itself has stopped without an item.  True: not for its job. */
static bool
only_stopped(errand__loop *loop, errand_io *io, uintptr_t was, int32_t *result)
{
    errand__request *request = errand__request_of(io);

    if ((request->state & ERRAND__IO_ASKED) != 0) {
        if (*result == -ENOBUFS || *result == -EINVAL)
            *result = -ECANCELED;
        return false;
    }
    if (*result == -ENOBUFS)
        request->state |= ERRAND__IO_ONCE; /* into its own ring, so that it goes on */
    else if (*result == -EINVAL)
        request->state |= ERRAND__IO_SINGLE;
    else if (*result != -ECANCELED || (was & ERRAND__IO_STOPPING) == 0)
        return false;
    if ((request->state & ERRAND__IO_FULL) == 0)
        errand__uring_hand_in(loop, io);
    return true;
}

/* Its job has it again, or it is handed in once more. */
static void
complete(errand__loop *loop, errand_io *io, int32_t result)
{
    errand__request *request = errand__request_of(io);
    uintptr_t was = request->state;

    if ((was & ERRAND__IO_LISTED) != 0) /* it waited to be asked back */
        errand__list_unlink(&request->link);
    request->state &= ~(uintptr_t)(ERRAND__IO_KERNEL | ERRAND__IO_LISTED |
                                   ERRAND__IO_MULTI | ERRAND__IO_STOPPING);
    if (result < 0 && (was & ERRAND__IO_MULTI) != 0 &&
        only_stopped(loop, io, was, &result))
        return;
    if (goes_on(loop, io, &result))
        return;
    if (errand__uring_may_pipe(io))
        ((errand__uring *)loop->state)->pipers--;
    if (io->kind == ERRAND_IO_OPEN &&
        (result = errand__fifo_check(io, result)) == ERRAND__TRY_LATER) {
        if ((request->state & ERRAND__IO_ASKED) == 0) {
            errand__request_put_off(loop, io);
            return;
        }
        errand__fifo_forget(io);
        result = -ECANCELED;
    }
    if (errand__kinds[io->kind].many)
        errand__request_item(loop, io, result, false);
    else
        errand__request_done(loop, io, result);
}

/* An item of a request that goes on: it stays the kernel's, whatever its job does here. */
static void
another(errand__loop *loop, errand_io *io, int32_t result)
{
    errand__request *request = errand__request_of(io);

    if (result < 0)
        return;
    errand__request_item(loop, io, result, true);
    if ((request->state & ERRAND__IO_FULL) != 0 &&
        (request->state & (ERRAND__IO_STOPPING | ERRAND__IO_ASKED)) == 0)
        errand__uring_stop(loop, io);
}

static void
take(errand__loop *loop, const struct io_uring_cqe *entry)
{
    errand__uring *self = loop->state;
    errand_io *io = (errand_io *)(uintptr_t)entry->user_data;
    int32_t result = entry->res;
    uint64_t count;

    switch (entry->user_data & ERRAND__TAGS) {
    case ERRAND__TAG_REQUEST:
        if ((entry->flags & IORING_CQE_F_BUFFER) != 0)
            result = errand__pieces_take(self, io, result, entry->flags);
        if ((entry->flags & IORING_CQE_F_MORE) != 0)
            another(loop, io, result);
        else
            complete(loop, io, result);
        return;
    case ERRAND__TAG_BELL:
        self->bell_polled = false;
        if (!loop->local) {
            ssize_t got = read(self->bell, &count, sizeof count);

            (void)got;
        }
        return;
    case ERRAND__TAG_RETURNED:
        self->returned_polled = false;
        errand__filers_collect(loop);
        return;
    case ERRAND__TAG_ALARM:
        if (result == -ETIME)
            loop->alarm_ns = UINT64_MAX;
        return;
    default:
        return;
    }
}

static errand_io *
request_at(const struct io_uring *ring, unsigned at)
{
    uint64_t data = ring->cq.cqes[at & ring->cq.ring_mask].user_data;

    return (data & ERRAND__TAGS) == ERRAND__TAG_REQUEST ? (errand_io *)(uintptr_t)data
                                                        : NULL;
}

/* The block of one that comes soon, and the waker and record of one that comes sooner. */
static void
fetch(const struct io_uring *ring, unsigned at, unsigned left)
{
    errand_io *far = left > AHEAD ? request_at(ring, at + AHEAD) : NULL;
    errand_io *near = left > AHEAD / 2 ? request_at(ring, at + AHEAD / 2) : NULL;

    if (far != NULL) {
        errand__prefetch_own(far);
        errand__prefetch_own((char *)far + ERRAND_LINE);
    }
    if (near != NULL) {
        const char *waker = (const char *)errand__request_of(near)->waker;

        errand__prefetch_own(waker);
        errand__prefetch_own(waker + ERRAND_LINE);
        errand__prefetch_own(waker + 2 * ERRAND_LINE);
    }
}

/* Those that are there now: what they lead to is the next turn's. */
void
errand__uring_reap(errand__loop *loop)
{
    errand__uring *self = loop->state;
    errand__hands *hands = &loop->poller.hands;
    unsigned count = io_uring_cq_ready(&self->ring);
    uint64_t begun;

    if (count == 0)
        return;
    errand__hands_read(hands); /* a wait may have been between */
    begun = hands->cycles;
    hands->lazy_left = hands->lazy;
    for (unsigned left = count; left > 0; left--) {
        unsigned head = *self->ring.cq.khead;
        struct io_uring_cqe entry = self->ring.cq.cqes[head & self->ring.cq.ring_mask];

        fetch(&self->ring, head, left);
        io_uring_cq_advance(&self->ring, 1); /* before a poll that may panic */
        take(loop, &entry);
    }
    errand__loop_pace(hands, begun, count);
}
