/* SPDX-License-Identifier: MIT */
/* stream: what a host can do with a stream by itself, without an operation; and the same of
 * listeners and datagrams. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include "operations/net/net.h"

static errand_status set_option(int fd, errand_stream_option option, uint64_t value);
static errand_status set_number(int fd, int level, int name, uint64_t value);
static errand_status set_keepalive(int fd, uint64_t seconds);

errand_status
errand_stream_adopt(int *take_fd, errand_stream **out_stream)
{
    int type = 0, flags;
    socklen_t size = sizeof type;
    errand__name peer = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t peer_size = sizeof peer;

    ERRAND_REQUIRE_ARG(take_fd != NULL && *take_fd >= 0 && out_stream != NULL,
                       ERRAND_EINVAL, "take_fd or out_stream is missing");
    if (getsockopt(*take_fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
        type != SOCK_STREAM)
        return ERRAND_EINVAL;
    flags = fcntl(*take_fd, F_GETFL);
    if (flags < 0 || fcntl(*take_fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(*take_fd, F_SETFD, FD_CLOEXEC) < 0)
        return ERRAND_ESYSTEM;
    if (getpeername(*take_fd, &peer.any, &peer_size) != 0)
        peer_size = 0;
    errand__socket *made = errand__socket_create(*take_fd, &peer, peer_size, NULL, 0);
    if (made == NULL)
        return ERRAND_ENOMEM;
    *take_fd = -1;
    *out_stream = (errand_stream *)made;
    return ERRAND_OK;
}

errand_status
errand_stream_set(errand_stream *stream, errand_stream_option option, uint64_t value)
{
    ERRAND_REQUIRE_ARG(stream != NULL, ERRAND_EINVAL, "stream is NULL");
    switch (option) {
    case ERRAND_STREAM_RECEIVE_LIMIT:
        stream->socket.limits_ns[0] = value;
        return ERRAND_OK;
    case ERRAND_STREAM_SEND_LIMIT:
        stream->socket.limits_ns[1] = value;
        return ERRAND_OK;
    case ERRAND_STREAM_NODELAY:
    case ERRAND_STREAM_LINGER:
        if (value > 1)
            return ERRAND_EINVAL;
        break;
    case ERRAND_STREAM_KEEPALIVE:
        if (value > 32767)
            return ERRAND_EINVAL;
        break;
    case ERRAND_STREAM_RECEIVE_BUFFER:
    case ERRAND_STREAM_SEND_BUFFER:
        if (value == 0 || value > ERRAND_RECEIVE_MAX)
            return ERRAND_EINVAL;
        break;
    default:
        return ERRAND_EINVAL;
    }
    if (stream->socket.detached)
        return ERRAND_OK;
    errand__lock_acquire(&stream->socket.lock);
    errand_status status = set_option(errand__socket_fd(&stream->socket), option, value);
    errand__lock_release(&stream->socket.lock);
    return status;
}

static errand_status
set_option(int fd, errand_stream_option option, uint64_t value)
{
    const struct linger linger = {.l_onoff = (int)value, .l_linger = 0};

    switch (option) {
    case ERRAND_STREAM_NODELAY:
        return set_number(fd, IPPROTO_TCP, TCP_NODELAY, value);
    case ERRAND_STREAM_KEEPALIVE:
        return set_keepalive(fd, value);
    case ERRAND_STREAM_RECEIVE_BUFFER:
        return set_number(fd, SOL_SOCKET, SO_RCVBUF, value);
    case ERRAND_STREAM_SEND_BUFFER:
        return set_number(fd, SOL_SOCKET, SO_SNDBUF, value);
    default:
        return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0
                   ? ERRAND_OK
                   : ERRAND_ESYSTEM;
    }
}

static errand_status
set_number(int fd, int level, int name, uint64_t value)
{
    const int number = (int)value;

    if (setsockopt(fd, level, name, &number, sizeof number) == 0)
        return ERRAND_OK;
    return errno == ENOPROTOOPT || errno == EOPNOTSUPP ? ERRAND_EINVAL : ERRAND_ESYSTEM;
}

static errand_status
set_keepalive(int fd, uint64_t seconds)
{
    errand_status status = ERRAND_OK;

    if (seconds > 0)
        status = set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
    return status == ERRAND_OK ? set_number(fd, SOL_SOCKET, SO_KEEPALIVE, seconds > 0)
                               : status;
}

/* ---- the same for each kind of object ------------------------------------------------------ */

#define OBJECT(kind)                                                                     \
    errand_##kind *errand_##kind##_hold(errand_##kind *kind)                             \
    {                                                                                    \
        if (kind != NULL)                                                                \
            errand__socket_hold(&kind->socket);                                          \
        return kind;                                                                     \
    }                                                                                    \
    void errand_##kind##_abandon(errand_##kind **take_##kind)                            \
    {                                                                                    \
        if (take_##kind == NULL || *take_##kind == NULL)                                 \
            return;                                                                      \
        errand__socket_abandon(&(*take_##kind)->socket);                                 \
        *take_##kind = NULL;                                                             \
    }                                                                                    \
    void errand_##kind##_close(errand_##kind *kind)                                      \
    {                                                                                    \
        if (kind != NULL)                                                                \
            errand__socket_close(&kind->socket);                                         \
    }                                                                                    \
    errand_endpoint errand_##kind##_local(errand_##kind *kind)                           \
    {                                                                                    \
        return kind == NULL ? (errand_endpoint){.family = 0}                             \
                            : errand__socket_local(&kind->socket);                       \
    }                                                                                    \
    int errand_##kind##_fd(const errand_##kind *kind)                                    \
    {                                                                                    \
        return kind == NULL ? -1 : errand__socket_fd(&kind->socket);                     \
    }
OBJECT(stream)
OBJECT(listener)
OBJECT(datagram)

errand_endpoint
errand_stream_peer(const errand_stream *stream)
{
    return stream == NULL ? (errand_endpoint){.family = 0}
                          : errand__socket_peer(&stream->socket);
}
