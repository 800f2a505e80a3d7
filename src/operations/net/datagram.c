/* SPDX-License-Identifier: MIT */
/* datagram: packets, each for itself.  Nothing is poisoned: a packet that was lost or refused says
 * nothing about the next. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "core/pause.h"
#include "operations/net/net.h"

enum { PACKET_MAX = 65536, SEND_MAX = 65507 };
static const uint64_t again_ns = 2000000; /* between two tries at a full receiver */

typedef struct open_state {
    errand__bind bind;
    errand_endpoint at, to;
    errand__name at_name, to_name;
    socklen_t at_size, to_size;
} open_state;
typedef struct packet_state {
    errand__net_state net;
    size_t size;
    errand__name to;
    socklen_t to_size;
    char bytes[];
} packet_state;

static int32_t open_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t receive_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t take(errand_job *job, packet_state *receive, errand_payload *out_payload);
static int32_t send_poll(errand_job *job, void *state, errand_payload *out_payload);

static const errand_job_type open_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "datagram",
    .poll = open_poll,
    .drop = errand__bind_drop,
};
static const errand_job_type receive_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "receive packet",
    .poll = receive_poll,
    .drop = errand__net_drop,
    .told = errand__wait_told,
};
static const errand_job_type send_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "send packet",
    .poll = send_poll,
    .drop = errand__net_drop,
    .told = errand__wait_told,
};

errand_status
errand_spec_datagram(errand_spec *out_spec, const errand_endpoint *at,
                     const errand_endpoint *to)
{
    open_state wanted = {.at_size = 0};

    ERRAND_REQUIRE_ARG(out_spec != NULL && (at != NULL || to != NULL), ERRAND_EINVAL,
                       "out_spec, or both at and to, are NULL");
    if (at != NULL) {
        wanted.at = *at;
        wanted.at_size = errand__name_fill(&wanted.at_name, at);
        ERRAND_REQUIRE_ARG(wanted.at_size != 0, ERRAND_EINVAL, "at is no endpoint");
    }
    if (to != NULL) {
        wanted.to = *to;
        wanted.to_size = errand__name_fill(&wanted.to_name, to);
        ERRAND_REQUIRE_ARG(wanted.to_size != 0, ERRAND_EINVAL, "to is no endpoint");
    }
    ERRAND_REQUIRE_ARG(at == NULL || to == NULL || at->family == to->family,
                       ERRAND_EINVAL, "at and to are of different families");
    open_state *state = errand__operation_block_alloc(sizeof *state);
    if (state == NULL)
        return ERRAND_ENOMEM;
    *state = wanted;
    errand__wait_spec(out_spec, ERRAND_KIND_DATAGRAM, &open_job, state);
    return ERRAND_OK;
}

/* 0, or -errno. */
static int32_t
open_socket(void *arg)
{
    open_state *wanted = arg;
    bool binds = wanted->at_size > 0;
    int error = ENOMEM;

    ERRAND__PAUSE("bind");
    int fd = errand__name_socket(binds ? &wanted->at_name : &wanted->to_name, SOCK_DGRAM);
    if (fd < 0) {
        wanted->bind.refused = "socket";
        return -errno;
    }
    bool bound = binds && errand__path_bind(fd, &wanted->at_name, wanted->at_size);
    if (binds && !bound)
        wanted->bind.refused = "bind";
    else if (wanted->to_size > 0 &&
             connect(fd, &wanted->to_name.any, wanted->to_size) != 0)
        wanted->bind.refused = "connect";
    if (wanted->bind.refused != NULL)
        error = errno;
    else
        wanted->bind.made = errand__path_create(fd, &wanted->to_name, wanted->to_size,
                                                &wanted->at_name, wanted->at_size);
    if (wanted->bind.made == NULL) {
        if (bound)
            errand__path_undo(&wanted->at_name, wanted->at_size);
        errand__operation_fd_close(&fd);
        return -error;
    }
    return 0;
}

static int32_t
open_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    open_state *wanted = state;
    errand__wait *wait = &wanted->bind.wait;
    bool looks_up = errand__name_is_path(&wanted->at_name, wanted->at_size) ||
                    errand__name_is_path(&wanted->to_name, wanted->to_size);
    int32_t code = errand__wait_ready(job, wait);

    if (code == 0 && !wait->asked)
        code = errand__net_call(job, wait, looks_up, open_socket, wanted);
    if (code != 0)
        return code;
    if (wait->io.result < 0) {
        const char *refused = wanted->bind.refused;
        bool to =
            wanted->at_size == 0 || (refused != NULL && strcmp(refused, "connect") == 0);

        return errand__bind_refused(job, &wanted->bind,
                                    to ? "no datagrams to" : "no datagrams at",
                                    to ? &wanted->to : &wanted->at);
    }
    errand__socket_payload(out_payload, &errand_datagram_type,
                           errand__bind_take(&wanted->bind));
    return 0;
}

/* ---- receive ----------------------------------------------------------------------------------- */

errand_status
errand_spec_receive_packet(errand_spec *out_spec, errand_datagram *datagram, size_t max)
{
    void *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && datagram != NULL && max > 0, ERRAND_EINVAL,
                       "out_spec, datagram or max is missing");
    errand_status status = errand__net_create(&datagram->socket, &datagram->socket.source,
                                              0, sizeof(packet_state), 0, &state);
    if (status != ERRAND_OK)
        return status;
    ((packet_state *)state)->net.wait.keeps = true;
    ((packet_state *)state)->size = max < PACKET_MAX ? max : PACKET_MAX;
    errand__wait_spec(out_spec, ERRAND_KIND_RECEIVE_PACKET, &receive_job, state);
    return ERRAND_OK;
}

static int32_t
receive_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    packet_state *receive = state;
    errand__wait *wait = &receive->net.wait;
    int32_t code = errand__wait_ready(job, wait);

    if (code == 0) {
        code = take(job, receive, out_payload);
        if (code == ERRAND_PENDING)
            code = errand__wait_poll(job, wait, errand__socket_fd(receive->net.socket),
                                     POLLIN);
    }
    return errand__wait_done(wait, code);
}

static int32_t
take(errand_job *job, packet_state *receive, errand_payload *out_payload)
{
    char scratch[PACKET_MAX];
    errand__name from = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t from_size = sizeof from;
    ssize_t count;

    do
        count = recvfrom(errand__socket_fd(receive->net.socket), scratch, receive->size,
                         MSG_DONTWAIT | MSG_TRUNC, &from.any, &from_size);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return ERRAND_PENDING;
    if (count < 0)
        return errand__net_refused(job, ERRAND_OPERATION_RECEIVE_FAILED, errno,
                                   "recvfrom", receive->net.socket,
                                   "a packet did not arrive");
    /* What a close lets through is empty and from nobody. */
    if (errand__seat_gone(&receive->net.socket->source) != ERRAND__SEAT_OPEN)
        return errand__operation_failed(job, ERRAND_OPERATION_CLOSED, "it is closed");
    size_t size = (size_t)count < receive->size ? (size_t)count : receive->size;
    errand_packet *packet = errand__operation_block_alloc(sizeof *packet + size + 1);
    if (packet == NULL)
        return errand__operation_no_memory(job, size);
    memcpy(packet + 1, scratch, size);
    packet->bytes = (errand_file_bytes){.bytes = (unsigned char *)(packet + 1), size};
    packet->from = errand__name_endpoint(&from, from_size);
    packet->cut = (size_t)count > size;
    errand__operation_payload(out_payload, &errand_packet_type, packet,
                              sizeof *packet + size);
    return 0;
}

/* ---- send --------------------------------------------------------------------------------------- */

errand_status
errand_spec_send_packet(errand_spec *out_spec, errand_datagram *datagram,
                        const errand_endpoint *to, const void *bytes, size_t size)
{
    errand__name name = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t name_size = 0;
    void *made;

    ERRAND_REQUIRE_ARG(out_spec != NULL && datagram != NULL &&
                           (bytes != NULL || size == 0) && size <= SEND_MAX,
                       ERRAND_EINVAL,
                       "out_spec, datagram or bytes is NULL, or size too large");
    if (to != NULL) {
        name_size = errand__name_fill(&name, to);
        ERRAND_REQUIRE_ARG(name_size != 0, ERRAND_EINVAL, "to is no endpoint");
    }
    errand_status status = errand__net_create(&datagram->socket, &datagram->socket.sink,
                                              0, sizeof(packet_state), size, &made);
    if (status != ERRAND_OK)
        return status;
    packet_state *state = made;
    state->net.wait.keeps = true;
    state->to = name;
    state->to_size = name_size;
    state->size = size;
    if (size > 0)
        memcpy(state->bytes, bytes, size);
    errand__wait_spec(out_spec, ERRAND_KIND_SEND_PACKET, &send_job, state);
    return ERRAND_OK;
}

/* 0, or -errno. */
static int32_t
send_now(void *arg)
{
    packet_state *packet = arg;
    ssize_t count;

    do
        count = sendto(errand__socket_fd(packet->net.socket), packet->bytes, packet->size,
                       MSG_DONTWAIT | MSG_NOSIGNAL,
                       packet->to_size == 0 ? NULL : &packet->to.any, packet->to_size);
    while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : 0;
}

static int32_t
send_on(errand_job *job, packet_state *packet)
{
    errand__wait *wait = &packet->net.wait;
    bool looks_up = errand__name_is_path(&packet->to, packet->to_size);
    int32_t code = 0;

    if (!wait->asked || wait->io.kind != ERRAND_IO_CALL)
        code = errand__net_call(job, wait, looks_up, send_now, packet);
    if (code != 0)
        return code;
    if (wait->io.result == -EAGAIN && looks_up) { /* this socket is always writable */
        wait->io = (errand_io){.kind = ERRAND_IO_TIMEOUT,
                               .until_ns = errand__clock_now() + again_ns};
        return errand__wait_ask(job, wait);
    }
    if (wait->io.result == -EAGAIN)
        return errand__wait_poll(job, wait, errand__socket_fd(packet->net.socket),
                                 POLLOUT);
    if (wait->io.result < 0)
        return errand__net_refused(job, ERRAND_OPERATION_SEND_FAILED, -wait->io.result,
                                   "sendto", packet->net.socket,
                                   "the packet was not sent");
    return 0;
}

static int32_t
send_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    packet_state *packet = state;
    int32_t code = errand__wait_ready(job, &packet->net.wait);

    (void)out_payload;
    if (code == 0)
        code = send_on(job, packet);
    return errand__wait_done(&packet->net.wait, code);
}
