/* SPDX-License-Identifier: MIT */
/* Design notes: what filers do: calls on files, which may wait for a disk and for nothing else.
 *
 * A FIFO's open waits for the other side, so it is never done by a blocking call: it is opened
 * without blocking and tried again.  For the writing side the open itself says when there is a
 * reader.  For the reading side the descriptor is kept, and a tee into a scratch pipe, which
 * takes nothing out, says whether there is a writer. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "workers/reactor/calls.h"

static int32_t
result_of(ssize_t answer)
{
    return answer < 0 ? -errno : (int32_t)answer;
}

/* ---- open --------------------------------------------------------------------------------------- */
/* The descriptor of a FIFO that waits for a writer is kept in to_fd, plus one. */

void
errand__fifo_forget(errand_io *io)
{
    if (io->to_fd > 0)
        close(io->to_fd - 1);
    io->to_fd = 0;
}

/* 1: a writer is, or was, there; 0: none was yet; or -errno. */
static int
has_writer(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int scratch[2];
    ssize_t copied;

    if (poll(&one, 1, 0) > 0 && one.revents != 0)
        return 1; /* bytes, or it went again */
    if (pipe2(scratch, O_CLOEXEC) != 0)
        return -errno;
    copied = tee(fd, scratch[1], 1, SPLICE_F_NONBLOCK);
    int found = copied > 0 || (copied < 0 && errno == EAGAIN);
    close(scratch[0]);
    close(scratch[1]);
    return found;
}

static int32_t
opened(errand_io *io, int fd)
{
    int flags = fcntl(fd, F_GETFL);

    io->to_fd = 0;
    if (flags >= 0)
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

static int32_t
open_fifo(errand_io *io)
{
    int flags = (int)io->flags | O_CLOEXEC | O_NONBLOCK;
    int fd = io->to_fd - 1, found;

    if (fd < 0)
        fd = openat(io->fd, io->path, flags, io->mode);
    if (fd < 0)
        return errno == ENXIO ? ERRAND__TRY_LATER : -errno;
    if ((flags & O_ACCMODE) != O_RDONLY)
        return opened(io, fd);
    io->to_fd = fd + 1;
    found = has_writer(fd);
    if (found == 0)
        return ERRAND__TRY_LATER;
    if (found > 0)
        return opened(io, fd);
    errand__fifo_forget(io);
    return found;
}

int32_t
errand__block_open(errand_io *io)
{
    int flags = (int)io->flags | O_CLOEXEC;
    struct stat found;

    if (io->to_fd > 0 ||
        ((flags & (O_NONBLOCK | O_PATH)) == 0 && (flags & O_ACCMODE) != O_RDWR &&
         fstatat(io->fd, io->path, &found, 0) == 0 && S_ISFIFO(found.st_mode)))
        return open_fifo(io);
    return result_of(openat(io->fd, io->path, flags, io->mode));
}

int32_t
errand__fifo_check(errand_io *io, int32_t result)
{
    int flags = (int)io->flags;

    if ((flags & (O_NONBLOCK | O_PATH)) != 0)
        return result;
    if (result == -ENXIO && (flags & O_ACCMODE) == O_WRONLY)
        return ERRAND__TRY_LATER;
    if (result < 0 || (flags & O_ACCMODE) != O_RDONLY ||
        errand__what_is(result) != S_IFIFO)
        return result;
    io->to_fd = result + 1;
    return open_fifo(io);
}

int32_t
errand__block_close(errand_io *io)
{
    return result_of(close(io->fd));
}

/* ---- the rest ------------------------------------------------------------------------------------ */

static bool
has_vectors(const errand_io *io)
{
    return io->kind == ERRAND_IO_READV || io->kind == ERRAND_IO_WRITEV;
}

int32_t
errand__block_read(errand_io *io)
{
    struct iovec one = {io->buffer, io->length};
    const struct iovec *vectors = has_vectors(io) ? io->vectors : &one;
    int count = has_vectors(io) ? (int)io->count : 1;

    return result_of(preadv2(io->fd, vectors, count, io->offset, 0));
}

int32_t
errand__block_write(errand_io *io)
{
    struct iovec one = {io->buffer, io->length};
    const struct iovec *vectors = has_vectors(io) ? io->vectors : &one;
    int count = has_vectors(io) ? (int)io->count : 1;

    return result_of(pwritev2(io->fd, vectors, count, io->offset, 0));
}

int32_t
errand__block_sync(errand_io *io)
{
    return result_of((io->flags & ERRAND_IO_DATA_ONLY) != 0 ? fdatasync(io->fd)
                                                            : fsync(io->fd));
}

int32_t
errand__block_stat(errand_io *io)
{
    return result_of(statx(io->fd, io->path, (int)io->flags, io->mask, io->out_stat));
}

int32_t
errand__block_rename(errand_io *io)
{
    return result_of(renameat2(io->fd, io->path, io->to_fd, io->to_path, io->flags));
}

int32_t
errand__block_unlink(errand_io *io)
{
    return result_of(unlinkat(io->fd, io->path, (int)io->flags));
}

int32_t
errand__block_mkdir(errand_io *io)
{
    return result_of(mkdirat(io->fd, io->path, io->mode));
}

ssize_t
errand__splice_now(const errand_io *io)
{
    loff_t from = io->offset, to = io->to_offset;

    return splice(io->fd, from < 0 ? NULL : &from, io->to_fd, to < 0 ? NULL : &to,
                  io->length, io->flags | SPLICE_F_NONBLOCK);
}

/* A pipe was ready, and may not be any more. */
int32_t
errand__block_splice(errand_io *io)
{
    ssize_t moved = errand__splice_now(io);

    return moved < 0 && errno == EAGAIN ? ERRAND__TRY_IN : result_of(moved);
}

int32_t
errand__block_truncate(errand_io *io)
{
    return result_of(ftruncate(io->fd, io->offset));
}

int32_t
errand__block_call(errand_io *io)
{
    return io->function(io->arg);
}
