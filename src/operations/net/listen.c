/* SPDX-License-Identifier: MIT */
/* listen: who waits for connections, and taking them.
 *
 * Design notes: accept asks for readiness alone and takes the connection by a call that does not
 * wait, so a cancel that comes at the same moment leaves it in the backlog.  A path is bound on a
 * helper thread. */
#include <errno.h>
#include <poll.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include "core/pause.h"
#include "operations/net/net.h"

typedef struct listen_state {
    errand__bind bind;
    errand_endpoint at;
    errand__name name;
    socklen_t name_size;
    uint32_t flags, backlog, mode;
} listen_state;

static int32_t listen_poll(errand_job *job, void *state, errand_payload *out_payload);
static const char *set_up(int fd, const listen_state *wanted, bool *out_bound);
static int32_t accept_poll(errand_job *job, void *state, errand_payload *out_payload);

static const errand_job_type listen_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "listen",
    .poll = listen_poll,
    .drop = errand__bind_drop,
};
static const errand_job_type accept_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "accept",
    .poll = accept_poll,
    .drop = errand__net_drop,
    .told = errand__wait_told,
};

errand_status
errand_spec_listen(errand_spec *out_spec, const errand_endpoint *at,
                   const errand_listen_config *config)
{
    errand__name name;

    ERRAND_REQUIRE_ARG(out_spec != NULL && at != NULL, ERRAND_EINVAL,
                       "out_spec or at is NULL");
    ERRAND_REQUIRE_ARG(config == NULL ||
                           (config->struct_size == sizeof *config &&
                            (config->flags & ~(uint32_t)ERRAND_LISTEN_SHARED) == 0 &&
                            config->mode <= 0777),
                       ERRAND_EINVAL, "struct_size, flags or mode are wrong");
    socklen_t name_size = errand__name_fill(&name, at);
    ERRAND_REQUIRE_ARG(name_size != 0, ERRAND_EINVAL, "at is no endpoint");
    listen_state *state = errand__operation_block_alloc(sizeof *state);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->at = *at;
    state->name = name;
    state->name_size = name_size;
    state->backlog = SOMAXCONN;
    if (config != NULL) {
        state->flags = config->flags;
        state->mode = config->mode;
        if (config->backlog != 0)
            state->backlog = config->backlog < INT32_MAX ? config->backlog : INT32_MAX;
    }
    errand__wait_spec(out_spec, ERRAND_KIND_LISTEN, &listen_job, state);
    return ERRAND_OK;
}

/* 0, or -errno. */
static int32_t
open_listener(void *arg)
{
    listen_state *wanted = arg;
    ERRAND__PAUSE("bind");
    int fd = errand__name_socket(&wanted->name, SOCK_STREAM);
    if (fd < 0) {
        wanted->bind.refused = "socket";
        return -errno;
    }
    bool bound = false;
    wanted->bind.refused = set_up(fd, wanted, &bound);
    int error = wanted->bind.refused == NULL ? ENOMEM : errno;
    if (wanted->bind.refused == NULL)
        wanted->bind.made =
            errand__path_create(fd, NULL, 0, &wanted->name, wanted->name_size);
    if (wanted->bind.made == NULL) {
        if (bound)
            errand__path_undo(&wanted->name, wanted->name_size);
        errand__operation_fd_close(&fd);
        return -error;
    }
    return 0;
}

static int32_t
listen_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    listen_state *wanted = state;
    errand__wait *wait = &wanted->bind.wait;
    int32_t code = errand__wait_ready(job, wait);

    if (code == 0 && !wait->asked)
        code = errand__net_call(job, wait,
                                errand__name_is_path(&wanted->name, wanted->name_size),
                                open_listener, wanted);
    if (code != 0)
        return code;
    if (wait->io.result < 0)
        return errand__bind_refused(job, &wanted->bind, "cannot listen at", &wanted->at);
    errand__socket_payload(out_payload, &errand_listener_type,
                           errand__bind_take(&wanted->bind));
    return 0;
}

/* Answers the call that was refused, or NULL. */
static const char *
set_up(int fd, const listen_state *wanted, bool *out_bound)
{
    const int on = 1;

    if (wanted->at.family != ERRAND_ENDPOINT_UNIX &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
        return "setsockopt";
    if ((wanted->flags & ERRAND_LISTEN_SHARED) != 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
        return "setsockopt";
    if (wanted->at.family == 6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)
        return "setsockopt";
    if (wanted->mode != 0 && wanted->at.family == ERRAND_ENDPOINT_UNIX &&
        fchmod(fd, wanted->mode) != 0)
        return "fchmod";
    if (!errand__path_bind(fd, &wanted->name, wanted->name_size))
        return "bind";
    *out_bound = true;
    if (listen(fd, (int)wanted->backlog) != 0)
        return "listen";
    return NULL;
}

errand_status
errand_spec_accept(errand_spec *out_spec, errand_listener *listener)
{
    void *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && listener != NULL, ERRAND_EINVAL,
                       "out_spec or listener is NULL");
    errand_status status = errand__net_create(&listener->socket, &listener->socket.source,
                                              0, sizeof(errand__net_state), 0, &state);
    if (status != ERRAND_OK)
        return status;
    ((errand__net_state *)state)->wait.keeps = true;
    errand__wait_spec(out_spec, ERRAND_KIND_ACCEPT, &accept_job, state);
    return ERRAND_OK;
}

int32_t
errand__net_accept(errand_job *job, errand__socket *listener, errand__socket **out_socket)
{
    errand__name peer = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = sizeof peer;
    int fd;

    do
        fd = accept4(errand__socket_fd(listener), &peer.any, &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
    if (fd < 0 && errno == EAGAIN)
        return ERRAND_PENDING;
    fd = errand__operation_fd_raise(fd);
    if (fd < 0)
        return errand__net_refused(job, ERRAND_OPERATION_ACCEPT_FAILED, errno, "accept4",
                                   listener, "no connection was taken");
    errand__socket_tune(fd, &peer);
    *out_socket =
        errand__socket_create(fd, &peer, size <= sizeof peer ? size : 0, NULL, 0);
    if (*out_socket != NULL)
        return 0;
    errand__operation_fd_close(&fd);
    return errand__operation_no_memory(job, sizeof **out_socket);
}

static int32_t
accept_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    errand__net_state *net = state;
    errand__socket *made = NULL;
    int32_t code = errand__wait_ready(job, &net->wait);

    if (code == 0) {
        code = errand__net_accept(job, net->socket, &made);
        if (code == ERRAND_PENDING)
            code = errand__wait_poll(job, &net->wait, errand__socket_fd(net->socket),
                                     POLLIN);
    }
    if (made != NULL)
        errand__socket_payload(out_payload, &errand_stream_type, made);
    return errand__wait_done(&net->wait, code);
}
