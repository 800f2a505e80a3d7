/* SPDX-License-Identifier: MIT */
/* Design notes: buffers that a loop's many receives share.
 *
 * - A receive that goes on by itself takes one of them for each piece that comes.  The piece is
 *   copied into its job's ring, and the buffer is the kernel's again, before the next is looked
 *   at; so however many streams are open, this is all that they need beside their rings.
 * - It is given a limit that its job's ring has room for, so nothing comes that has no place: the
 *   last piece may be a whole one, whatever is left of the limit.  Kernels that do not know the
 *   limit answer EINVAL, and what follows is received one by one, as where the room is small.
 * - All are in use (ENOBUFS) only until the thread has been through its queue. */
#include <string.h>
#include <sys/mman.h>
#include "workers/reactor/calls.h"
#include "workers/reactor/uring.h"

#define PIECES 32 /* a power of two */
#define PIECE  4096
#define GROUP  0

struct errand__pieces {
    struct io_uring_buf_ring *ring; /* what the kernel may take; on a page of its own */
    char *bytes;
};
enum { RING_SIZE = 4096, MAPPED = RING_SIZE + PIECES * PIECE };
_Static_assert(PIECES * sizeof(struct io_uring_buf) <= RING_SIZE, "one page");

static void
offer(errand__pieces *pieces, unsigned which)
{
    io_uring_buf_ring_add(pieces->ring, pieces->bytes + (size_t)which * PIECE, PIECE,
                          (unsigned short)which, io_uring_buf_ring_mask(PIECES), 0);
    io_uring_buf_ring_advance(pieces->ring, 1);
}

static bool
create(errand__uring *self)
{
    errand__pieces *made = errand__mem_alloc(NULL, sizeof *made);
    struct io_uring_buf_reg wanted = {.ring_entries = PIECES, .bgid = GROUP};
    char *mapped = made == NULL ? NULL : errand__mem_map(MAPPED);

    if (mapped == NULL) {
        errand__mem_free(NULL, made, sizeof *made);
        return false;
    }
    (void)madvise(mapped, MAPPED, MADV_DONTFORK);
    wanted.ring_addr = (uint64_t)(uintptr_t)mapped;
    if (io_uring_register_buf_ring(&self->ring, &wanted, 0) != 0) {
        errand__mem_unmap(mapped, MAPPED);
        errand__mem_free(NULL, made, sizeof *made);
        self->pieces_refused = true;
        return false;
    }
    made->ring = (struct io_uring_buf_ring *)(void *)mapped;
    made->bytes = mapped + RING_SIZE;
    io_uring_buf_ring_init(made->ring);
    for (unsigned i = 0; i < PIECES; i++)
        offer(made, i);
    self->pieces = made;
    return true;
}

void
errand__pieces_destroy(errand__uring *self)
{
    errand__pieces *pieces = self->pieces;

    if (pieces == NULL)
        return;
    (void)io_uring_unregister_buf_ring(&self->ring, GROUP);
    errand__mem_unmap(pieces->ring, MAPPED);
    errand__mem_free(NULL, pieces, sizeof *pieces);
    self->pieces = NULL;
}

bool
errand__pieces_fill(errand__uring *self, struct io_uring_sqe *entry, errand_io *io)
{
    size_t room = io->length - io->ready;

    if (room < 2 * PIECE || io->flags != 0 || self->pieces_refused)
        return false;
    if (self->pieces == NULL && !create(self))
        return false;
    io_uring_prep_recv_multishot(entry, io->fd, NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = GROUP;
    entry->file_index = (uint32_t)(room - PIECE + 1); /* the limit */
    return true;
}

int32_t
errand__pieces_take(errand__uring *self, errand_io *io, int32_t result, uint32_t flags)
{
    unsigned which = flags >> IORING_CQE_BUFFER_SHIFT;
    const char *from;
    size_t left;

    if ((flags & IORING_CQE_F_BUFFER) == 0)
        return result;
    from = self->pieces->bytes + (size_t)which * PIECE;
    left = result > 0 ? (size_t)result : 0;
    for (size_t at = io->ready; left > 0;) {
        size_t tail = (size_t)(((uint64_t)io->first + at) % io->length);
        size_t part = left < io->length - tail ? left : io->length - tail;

        memcpy((char *)io->buffer + tail, from, part);
        from += part;
        at += part;
        left -= part;
    }
    offer(self->pieces, which);
    return result;
}
