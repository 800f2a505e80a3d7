/* SPDX-License-Identifier: MIT */
/* connect: a stream to an endpoint.
 *
 * Design notes: the object is made before the system is asked, so that nothing can fail once there
 * is a connection.  A Unix listener whose backlog is full answers EAGAIN and tells nobody when it
 * has room: it is asked again after a while, as long as the limit allows. */
#include <errno.h>
#include "core/pause.h"
#include "operations/net/net.h"

static const uint64_t again_ns = 2000000; /* between two tries at a full backlog */

typedef struct connect_state {
    errand__wait wait;
    errand__socket *socket; /* from its first poll on, until it is given */
    errand_endpoint to;
    errand__name name, local;
    socklen_t name_size, local_size;
} connect_state;

static int32_t connect_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t go_on(errand_job *job, connect_state *connect,
                     errand_payload *out_payload);
static int32_t open_socket(errand_job *job, connect_state *connect);
static int32_t bind_local(void *arg);
static int32_t ask(errand_job *job, connect_state *connect);
static void connect_drop(void *state);

static const errand_job_type connect_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "connect",
    .poll = connect_poll,
    .drop = connect_drop,
};

errand_status
errand_spec_connect(errand_spec *out_spec, const errand_endpoint *to,
                    const errand_connect_config *config)
{
    errand__name name, local;

    ERRAND_REQUIRE_ARG(out_spec != NULL && to != NULL, ERRAND_EINVAL,
                       "out_spec or to is NULL");
    ERRAND_REQUIRE_ARG(config == NULL ||
                           (config->struct_size == sizeof *config && config->flags == 0),
                       ERRAND_EINVAL, "struct_size or flags are wrong");
    socklen_t name_size = errand__name_fill(&name, to), local_size = 0;
    ERRAND_REQUIRE_ARG(name_size != 0, ERRAND_EINVAL, "to is no endpoint");
    if (config != NULL && config->local != NULL) {
        local_size = errand__name_fill(&local, config->local);
        ERRAND_REQUIRE_ARG(local_size != 0 && local.any.sa_family == name.any.sa_family,
                           ERRAND_EINVAL, "local is no endpoint of the same family");
    }
    connect_state *state =
        errand__wait_create(sizeof *state, 0, config == NULL ? 0 : config->limit_ns);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->to = *to;
    state->name = name;
    state->name_size = name_size;
    if (local_size > 0)
        state->local = local;
    state->local_size = local_size;
    errand__wait_spec(out_spec, ERRAND_KIND_CONNECT, &connect_job, state);
    return ERRAND_OK;
}

static int32_t
connect_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    connect_state *connect = state;
    int32_t code = errand__wait_ready(job, &connect->wait);

    if (code == 0)
        code = go_on(job, connect, out_payload);
    return errand__wait_done(&connect->wait, code);
}

static int32_t
go_on(errand_job *job, connect_state *connect, errand_payload *out_payload)
{
    int32_t result = connect->wait.io.result;

    if (!connect->wait.asked) {
        int32_t code = open_socket(job, connect);

        if (code == 0 && connect->local_size > 0)
            code = errand__net_call(
                job, &connect->wait,
                errand__name_is_path(&connect->local, connect->local_size), bind_local,
                connect);
        if (code != 0)
            return code;
        result = connect->wait.io.result; /* of the bind, if there was one */
    }
    if (connect->wait.io.kind == ERRAND_IO_CALL && result < 0)
        return errand__operation_refused_as(job, ERRAND_OPERATION_BIND_FAILED, -result,
                                            "bind", "cannot connect to %s from there",
                                            errand__name_show(&connect->to).text);
    if (connect->wait.io.kind != ERRAND_IO_CONNECT)
        return ask(job, connect);
    if (result == -EAGAIN && connect->to.family == ERRAND_ENDPOINT_UNIX) {
        connect->wait.io = (errand_io){.kind = ERRAND_IO_TIMEOUT,
                                       .until_ns = errand__clock_now() + again_ns};
        return errand__wait_ask(job, &connect->wait);
    }
    if (result != 0 && result != -EISCONN) {
        errand__name_shown shown = errand__name_show(&connect->to);

        return errand__operation_refused_as(
            job,
            result == -ETIMEDOUT ? ERRAND_OPERATION_TIMEOUT
                                 : ERRAND_OPERATION_CONNECTION_FAILED,
            -result, "connect", "cannot connect to %s", shown.text);
    }
    errand__socket_payload(out_payload, &errand_stream_type, connect->socket);
    connect->socket = NULL;
    return 0;
}

static int32_t
open_socket(errand_job *job, connect_state *connect)
{
    errand__name_shown shown = errand__name_show(&connect->to);
    int fd = errand__name_socket(&connect->name, SOCK_STREAM);

    if (fd < 0)
        return errand__operation_refused(job, errno, "socket", "cannot connect to %s",
                                         shown.text);
    errand__socket_tune(fd, &connect->name);
    connect->socket =
        errand__socket_create(fd, &connect->name, connect->name_size, NULL, 0);
    if (connect->socket == NULL) {
        errand__operation_fd_close(&fd);
        return errand__operation_no_memory(job, sizeof(errand__socket));
    }
    return 0;
}

/* 0, or -errno. */
static int32_t
bind_local(void *arg)
{
    connect_state *connect = arg;

    ERRAND__PAUSE("bind");
    return errand__path_bind(errand__socket_fd(connect->socket), &connect->local,
                             connect->local_size)
               ? 0
               : -errno;
}

static int32_t
ask(errand_job *job, connect_state *connect)
{
    connect->wait.io = (errand_io){
        .kind = ERRAND_IO_CONNECT,
        .fd = errand__socket_fd(connect->socket),
        .address = &connect->name.any,
        .length = connect->name_size,
    };
    return errand__wait_ask(job, &connect->wait);
}

static void
connect_drop(void *state)
{
    connect_state *connect = state;

    errand__wait_fini(&connect->wait);
    errand__socket_abandon(connect->socket);
    errand__operation_block_free(connect);
}
