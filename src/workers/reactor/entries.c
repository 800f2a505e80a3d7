/* SPDX-License-Identifier: MIT */
/* entries: one function per kind, which fills in io_uring's queue entry.  The user data is the
 * block's address and is set by the caller. */
#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include "workers/reactor/calls.h"
#include "workers/reactor/entries.h"

typedef struct io_uring_sqe entry_t;

void
errand__entry_poll(entry_t *entry, errand_io *io)
{
    io_uring_prep_poll_add(entry, io->fd, io->events);
}

void
errand__entry_open(entry_t *entry, errand_io *io)
{
    io_uring_prep_openat(entry, io->fd, io->path, (int)io->flags | O_CLOEXEC, io->mode);
}

void
errand__entry_close(entry_t *entry, errand_io *io)
{
    io_uring_prep_close(entry, io->fd);
    if (errand__is_slow(io->fd)) /* else its end is the loop's thread's */
        io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
}

void
errand__entry_read(entry_t *entry, errand_io *io)
{
    io_uring_prep_read(entry, io->fd, io->buffer, (unsigned)io->length,
                       (uint64_t)io->offset);
}

void
errand__entry_write(entry_t *entry, errand_io *io)
{
    io_uring_prep_write(entry, io->fd, io->bytes, (unsigned)io->length,
                        (uint64_t)io->offset);
}

void
errand__entry_readv(entry_t *entry, errand_io *io)
{
    io_uring_prep_readv(entry, io->fd, io->vectors, (unsigned)io->count,
                        (uint64_t)io->offset);
}

void
errand__entry_writev(entry_t *entry, errand_io *io)
{
    io_uring_prep_writev(entry, io->fd, io->vectors, (unsigned)io->count,
                         (uint64_t)io->offset);
}

void
errand__entry_sync(entry_t *entry, errand_io *io)
{
    io_uring_prep_fsync(entry, io->fd,
                        (io->flags & ERRAND_IO_DATA_ONLY) != 0 ? IORING_FSYNC_DATASYNC
                                                               : 0);
}

void
errand__entry_stat(entry_t *entry, errand_io *io)
{
    io_uring_prep_statx(entry, io->fd, io->path, (int)io->flags, io->mask, io->out_stat);
}

void
errand__entry_rename(entry_t *entry, errand_io *io)
{
    io_uring_prep_renameat(entry, io->fd, io->path, io->to_fd, io->to_path, io->flags);
}

void
errand__entry_unlink(entry_t *entry, errand_io *io)
{
    io_uring_prep_unlinkat(entry, io->fd, io->path, (int)io->flags);
}

void
errand__entry_mkdir(entry_t *entry, errand_io *io)
{
    io_uring_prep_mkdirat(entry, io->fd, io->path, io->mode);
}

void
errand__entry_splice(entry_t *entry, errand_io *io)
{
    io_uring_prep_splice(entry, io->fd, io->offset, io->to_fd, io->to_offset,
                         (unsigned)io->length, io->flags);
}

void
errand__entry_connect(entry_t *entry, errand_io *io)
{
    io_uring_prep_connect(entry, io->fd, io->address, (socklen_t)io->length);
}

void
errand__entry_accept(entry_t *entry, errand_io *io)
{
    io_uring_prep_accept(entry, io->fd, io->out_address,
                         io->out_address == NULL ? NULL : (socklen_t *)io->out_length,
                         SOCK_CLOEXEC);
}

void
errand__entry_recv(entry_t *entry, errand_io *io)
{
    io_uring_prep_recv(entry, io->fd, io->buffer, io->length, ERRAND__RECV_FLAGS(io));
}

void
errand__entry_send(entry_t *entry, errand_io *io)
{
    io_uring_prep_send(entry, io->fd, io->bytes, io->length, ERRAND__SEND_FLAGS(io));
}

void
errand__entry_recvmsg(entry_t *entry, errand_io *io)
{
    io_uring_prep_recvmsg(entry, io->fd, io->message, (unsigned)ERRAND__RECV_FLAGS(io));
}

void
errand__entry_sendmsg(entry_t *entry, errand_io *io)
{
    io_uring_prep_sendmsg(entry, io->fd, io->message, (unsigned)ERRAND__SEND_FLAGS(io));
}

void
errand__entry_shutdown(entry_t *entry, errand_io *io)
{
    io_uring_prep_shutdown(entry, io->fd, (int)io->flags);
}

void
errand__entry_accept_many(entry_t *entry, errand_io *io)
{
    io_uring_prep_accept(entry, io->fd, NULL, NULL, SOCK_CLOEXEC);
}

void
errand__entry_recv_many(entry_t *entry, errand_io *io)
{
    size_t room;
    char *tail = errand__ring_tail(io, &room);

    io_uring_prep_recv(entry, io->fd, tail, room, ERRAND__RECV_FLAGS(io));
}
