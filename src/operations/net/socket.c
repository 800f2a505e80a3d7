/* SPDX-License-Identifier: MIT */
/* socket: the life of streams, listeners and datagrams, which are one thing inside.
 *
 * Design notes: closing does not close the descriptor, because bodies may use it on another thread,
 * and its number would soon be somebody else's.  It marks the seats, wakes who waits there,
 * and shuts the connection down, so that the peer sees the end at once.  The descriptor goes with
 * the last reference, and each operation has one, or by a close operation that waited for all
 * bodies that had begun. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>
#include "operations/net/net.h"

errand__socket *
errand__socket_create(int fd, const errand__name *peer, socklen_t peer_size,
                      const errand__name *local, socklen_t local_size)
{
    errand__socket *made =
        errand__operation_block_alloc(sizeof *made + peer_size + local_size);

    if (made == NULL)
        return NULL;
    atomic_init(&made->refs, 1);
    atomic_init(&made->fd, fd);
    made->peer_size = peer_size;
    made->local_size = local_size;
    if (peer_size > 0)
        memcpy(made->names, peer, peer_size);
    if (local_size > 0)
        memcpy(made->names + peer_size, local, local_size);
    return made;
}

errand__socket *
errand__socket_hold(errand__socket *socket)
{
    if (socket != NULL)
        atomic_fetch_add_explicit(&socket->refs, 1, memory_order_relaxed);
    return socket;
}

void
errand__socket_abandon(errand__socket *socket)
{
    /* Pairs: socket-refs */
    if (socket == NULL ||
        atomic_fetch_sub_explicit(&socket->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (socket->path != ERRAND__PATH_NONE)
        errand__path_let(socket);
    else
        errand__socket_end(socket);
}

void
errand__socket_end(errand__socket *socket)
{
    int fd = atomic_load_explicit(&socket->fd, memory_order_relaxed);

    errand__operation_fd_close(&fd);
    errand__seat_fini(&socket->source);
    errand__seat_fini(&socket->sink);
    errand__operation_block_free(socket);
}

void
errand__socket_close(errand__socket *socket)
{
    if (socket == NULL)
        return;
    errand__seat_close(&socket->source, ERRAND__SEAT_CLOSED);
    errand__seat_close(&socket->sink, ERRAND__SEAT_CLOSED);
    errand__lock_acquire(&socket->lock);
    int fd = atomic_load_explicit(&socket->fd, memory_order_relaxed);
    if (!socket->closed && fd >= 0)
        shutdown(fd, SHUT_RDWR);
    socket->closed = true;
    errand__lock_release(&socket->lock);
    errand__path_close(socket);
}

errand_endpoint
errand__socket_local(errand__socket *socket)
{
    errand__name name = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = sizeof name;

    if (socket->local_size > 0) {
        memcpy(&name, socket->names + socket->peer_size, socket->local_size);
        return errand__name_endpoint(&name, socket->local_size);
    }
    errand__lock_acquire(&socket->lock);
    if (getsockname(atomic_load_explicit(&socket->fd, memory_order_relaxed), &name.any,
                    &size) != 0)
        size = 0;
    errand__lock_release(&socket->lock);
    return errand__name_endpoint(&name, size);
}

errand_endpoint
errand__socket_peer(const errand__socket *socket)
{
    errand__name name = {.any = {.sa_family = AF_UNSPEC}};

    if (socket->peer_size > 0)
        memcpy(&name, socket->names, socket->peer_size);
    return errand__name_endpoint(&name, socket->peer_size);
}

int
errand__socket_fd(const errand__socket *socket)
{
    return atomic_load_explicit(&socket->fd, memory_order_relaxed);
}

void
errand__socket_tune(int fd, const errand__name *name)
{
    const int on = 1;

    if (name->any.sa_family == AF_INET || name->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

errand_status
errand__net_create(errand__socket *socket, errand__seat *seat, uint64_t limit_ns,
                   size_t front, size_t bytes, void **out_state)
{
    errand__net_state *state = errand__wait_create(front, bytes, limit_ns);
    uint32_t ticket = 0;

    if (state == NULL)
        return ERRAND_ENOMEM;
    if (seat != NULL && !errand__seat_take(seat, &ticket)) {
        errand__operation_block_free(state);
        return ERRAND_EBUSY;
    }
    state->wait.seat = seat;
    state->wait.ticket = ticket;
    state->socket = errand__socket_hold(socket);
    *out_state = state;
    return ERRAND_OK;
}

void
errand__net_drop(void *state)
{
    errand__net_state *net = state;

    errand__wait_fini(&net->wait);
    errand__socket_abandon(net->socket);
    errand__operation_block_free(net);
}

int32_t
errand__net_refused(errand_job *job, int32_t code, int error, const char *call,
                    errand__socket *socket, const char *what)
{
    errand_endpoint endpoint = errand__socket_peer(socket);

    if (endpoint.family == 0 ||
        (endpoint.family == ERRAND_ENDPOINT_UNIX && endpoint.path_size == 0))
        endpoint = errand__socket_local(socket);
    errand__name_shown shown = errand__name_show(&endpoint);
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS)
        code = errand__operation_code(error == ENOBUFS ? ENOMEM : error);
    return errand__operation_refused_as(job, code, error, call, "%s: %s", shown.text,
                                        what);
}

void
errand__socket_payload(errand_payload *out_payload, const errand_payload_type *type,
                       void *own_socket)
{
    errand__operation_payload(out_payload, type, own_socket, sizeof(uint64_t));
}
