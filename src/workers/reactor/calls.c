/* SPDX-License-Identifier: MIT */
/* Design notes: tries that do not block, for the epoll back end.
 *
 * A descriptor may be in blocking mode: sockets are asked with MSG_DONTWAIT, files and pipes with
 * RWF_NOWAIT, and where the kernel does not know that for a pipe, it is polled first and written
 * to in parts that never block once it is writable.  Sockets that are connected or accepted on
 * have no such flag, so they are put into non-blocking mode.
 *
 * A name that is a path is looked up by a filer, whatever the back end.
 *
 * A file of a disk is read and written at once if that needs no waiting (its pages are there), else
 * by a filer. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include "workers/reactor/calls.h"

static int32_t
result_of(ssize_t answer)
{
    return answer < 0 ? -errno : (int32_t)answer;
}

/* What a socket's try answered. */
static int32_t
waits_for(ssize_t answer, int32_t what)
{
    return answer < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? what
                                                                   : result_of(answer);
}

static short
poll_now(int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};

    return poll(&one, 1, 0) > 0 ? one.revents : 0;
}

int32_t
errand__try_poll(errand_io *io)
{
    struct pollfd one = {.fd = io->fd, .events = (short)io->events};

    if (poll(&one, 1, 0) < 0)
        return -errno;
    if ((one.revents & POLLNVAL) != 0)
        return -EBADF;
    return one.revents != 0 ? one.revents : ERRAND__TRY_IN; /* its own events count */
}

int32_t
errand__try_filer(errand_io *io)
{
    (void)io;
    return ERRAND__TRY_FILER;
}

/* ---- files and pipes ---------------------------------------------------------------------------- */

uint32_t
errand__what_is(int fd)
{
    struct statx found;

    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &found) == 0
               ? found.stx_mode & S_IFMT
               : 0;
}

bool
errand__is_slow(int fd)
{
    uint32_t what = errand__what_is(fd);

    return what == S_IFREG || what == S_IFBLK || what == S_IFDIR;
}

/* A file's may wait for what was written to be taken. */
int32_t
errand__try_close(errand_io *io)
{
    return errand__is_slow(io->fd) ? ERRAND__TRY_FILER : result_of(close(io->fd));
}

static const struct iovec *
vectors_of(const errand_io *io, struct iovec *one, int *out_count)
{
    if (io->kind == ERRAND_IO_READV || io->kind == ERRAND_IO_WRITEV) {
        *out_count = (int)io->count;
        return io->vectors;
    }
    one->iov_base = io->buffer;
    one->iov_len = io->length;
    *out_count = 1;
    return one;
}

int32_t
errand__try_read(errand_io *io)
{
    struct iovec one;
    int count;
    const struct iovec *vectors = vectors_of(io, &one, &count);
    ssize_t got = preadv2(io->fd, vectors, count, io->offset, RWF_NOWAIT);

    if (got >= 0 || (errno != EAGAIN && errno != EOPNOTSUPP))
        return result_of(got);
    if (errand__is_slow(io->fd))
        return ERRAND__TRY_FILER;
    if (errno == EAGAIN || poll_now(io->fd, POLLIN) == 0)
        return ERRAND__TRY_IN;
    got = io->offset < 0 ? readv(io->fd, vectors, count)
                         : preadv(io->fd, vectors, count, io->offset);
    return waits_for(got, ERRAND__TRY_IN);
}

/* A writable pipe takes this much without blocking, whatever its mode. */
static ssize_t
write_part(const errand_io *io, const struct iovec *vectors, int count)
{
    struct iovec first = {NULL, 0};
    int flags = fcntl(io->fd, F_GETFL);

    if (flags >= 0 && (flags & O_NONBLOCK) != 0)
        return io->offset < 0 ? writev(io->fd, vectors, count)
                              : pwritev(io->fd, vectors, count, io->offset);
    for (int i = 0; i < count && first.iov_len == 0; i++)
        first = vectors[i];
    if (first.iov_len > PIPE_BUF)
        first.iov_len = PIPE_BUF;
    return io->offset < 0 ? writev(io->fd, &first, 1)
                          : pwritev(io->fd, &first, 1, io->offset);
}

int32_t
errand__try_write(errand_io *io)
{
    struct iovec one;
    int count;
    const struct iovec *vectors = vectors_of(io, &one, &count);
    ssize_t put = pwritev2(io->fd, vectors, count, io->offset, RWF_NOWAIT);

    if (put >= 0 || (errno != EAGAIN && errno != EOPNOTSUPP))
        return result_of(put);
    if (errand__is_slow(io->fd))
        return ERRAND__TRY_FILER;
    if (errno == EAGAIN || poll_now(io->fd, POLLOUT) == 0)
        return ERRAND__TRY_OUT;
    return waits_for(write_part(io, vectors, count), ERRAND__TRY_OUT);
}

int32_t
errand__try_splice(errand_io *io)
{
    if (poll_now(io->fd, POLLIN) == 0)
        return ERRAND__TRY_IN;
    if (poll_now(io->to_fd, POLLOUT) == 0)
        return ERRAND__TRY_OUT; /* of to_fd */
    if (errand__is_slow(io->fd) || errand__is_slow(io->to_fd))
        return ERRAND__TRY_FILER; /* the flag is for pipes alone */
    return waits_for(errand__splice_now(io), ERRAND__TRY_IN);
}

/* ---- sockets -------------------------------------------------------------------------------------- */

static int
unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    if ((flags & O_NONBLOCK) != 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        return 0;
    return -errno;
}

int32_t
errand__try_socket(errand_io *io)
{
    return result_of(socket(io->fd, (int)io->flags | SOCK_CLOEXEC, (int)io->mode));
}

/* A Unix socket's name may be a path. */
bool
errand__looks_up(const errand_io *io)
{
    const struct sockaddr_un *name = NULL;
    size_t size = 0;

    if (io->kind == ERRAND_IO_CONNECT) {
        name = (const struct sockaddr_un *)(const void *)io->address;
        size = io->length;
    } else if (io->kind == ERRAND_IO_SENDMSG) {
        name = io->message->msg_name;
        size = io->message->msg_namelen;
    }
    return name != NULL && size > offsetof(struct sockaddr_un, sun_path) &&
           name->sun_family == AF_UNIX && name->sun_path[0] != 0;
}

int32_t
errand__block_connect(errand_io *io)
{
    int error = unblock(io->fd);

    if (error != 0)
        return error;
    if (connect(io->fd, io->address, (socklen_t)io->length) == 0)
        return 0;
    return errno == EAGAIN ? ERRAND__TRY_LATER : -errno; /* as below */
}

int32_t
errand__block_sendmsg(errand_io *io)
{
    /* Nothing announces when another socket has room. */
    return waits_for(sendmsg(io->fd, io->message, ERRAND__SEND_FLAGS(io) | MSG_DONTWAIT),
                     ERRAND__TRY_LATER);
}

int32_t
errand__try_connect(errand_io *io)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (errand__looks_up(io))
        return ERRAND__TRY_FILER;
    if ((errand__request_of(io)->state & ERRAND__IO_POLLING) != 0)
        return getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? -errno
                                                                            : -error;
    error = unblock(io->fd);
    if (error != 0)
        return error;
    if (connect(io->fd, io->address, (socklen_t)io->length) == 0)
        return 0;
    if (errno ==
        EAGAIN) /* a Unix socket whose listener is busy: nothing announces room */
        return ERRAND__TRY_LATER;
    return errno == EINPROGRESS ? ERRAND__TRY_OUT : -errno;
}

static int32_t
accept_one(const errand_io *io, struct sockaddr *address, socklen_t *length)
{
    int error = unblock(io->fd);

    if (error != 0)
        return error;
    return waits_for(accept4(io->fd, address, length, SOCK_CLOEXEC), ERRAND__TRY_IN);
}

int32_t
errand__try_accept(errand_io *io)
{
    return accept_one(io, io->out_address,
                      io->out_address == NULL ? NULL : (socklen_t *)io->out_length);
}

int32_t
errand__try_accept_many(errand_io *io)
{
    return accept_one(io, NULL, NULL);
}

int32_t
errand__try_recv(errand_io *io)
{
    return waits_for(
        recv(io->fd, io->buffer, io->length, ERRAND__RECV_FLAGS(io) | MSG_DONTWAIT),
        ERRAND__TRY_IN);
}

int32_t
errand__try_recv_many(errand_io *io)
{
    size_t room;
    char *tail = errand__ring_tail(io, &room);

    return waits_for(recv(io->fd, tail, room, ERRAND__RECV_FLAGS(io) | MSG_DONTWAIT),
                     ERRAND__TRY_IN);
}

int32_t
errand__try_send(errand_io *io)
{
    return waits_for(
        send(io->fd, io->bytes, io->length, ERRAND__SEND_FLAGS(io) | MSG_DONTWAIT),
        ERRAND__TRY_OUT);
}

int32_t
errand__try_recvmsg(errand_io *io)
{
    return waits_for(recvmsg(io->fd, io->message, ERRAND__RECV_FLAGS(io) | MSG_DONTWAIT),
                     ERRAND__TRY_IN);
}

int32_t
errand__try_sendmsg(errand_io *io)
{
    if (errand__looks_up(io))
        return ERRAND__TRY_FILER;
    return waits_for(sendmsg(io->fd, io->message, ERRAND__SEND_FLAGS(io) | MSG_DONTWAIT),
                     ERRAND__TRY_OUT);
}

int32_t
errand__try_shutdown(errand_io *io)
{
    return result_of(shutdown(io->fd, (int)io->flags));
}
