/* SPDX-License-Identifier: MIT */
/* send: all of it, and how a stream ends.
 *
 * Design notes: what the system takes at once is sent by a call that does not wait, which is nearly
 * always all; the kernel waits for the rest.  A peer that is gone is a failure, never a signal. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "errand/traps.h"
#include "operations/net/net.h"

typedef struct send_state {
    errand__net_state net;
    size_t size, sent;
    const char *bytes;
} send_state;

static int32_t send_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t go_on(errand_job *job, send_state *send);

static const errand_job_type send_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "send",
    .poll = send_poll,
    .drop = errand__net_drop,
    .told = errand__wait_told,
};

errand_status
errand_spec_send(errand_spec *out_spec, errand_stream *stream, const void *bytes,
                 size_t size)
{
    const errand_file_bytes part = {.bytes = bytes, .size = size};

    ERRAND_REQUIRE_ARG(bytes != NULL || size == 0, ERRAND_EINVAL, "bytes is NULL");
    return errand_spec_send_parts(out_spec, stream, &part, 1);
}

errand_status
errand_spec_send_parts(errand_spec *out_spec, errand_stream *stream,
                       const errand_file_bytes *parts, size_t count)
{
    size_t size = 0;
    void *made;

    ERRAND_REQUIRE_ARG(out_spec != NULL && stream != NULL &&
                           (parts != NULL || count == 0),
                       ERRAND_EINVAL, "out_spec, stream or parts is NULL");
    for (size_t i = 0; i < count; i++) {
        ERRAND_REQUIRE_ARG(parts[i].size <= ERRAND_RECEIVE_MAX - size &&
                               (parts[i].bytes != NULL || parts[i].size == 0),
                           ERRAND_EINVAL, "parts are too large, or NULL");
        size += parts[i].size;
    }
    /* The limit's block must stay aligned behind the bytes: it does, see errand__wait_create. */
    errand_status status =
        errand__net_create(&stream->socket, &stream->socket.sink,
                           stream->socket.limits_ns[1], sizeof(send_state), size, &made);
    if (status != ERRAND_OK)
        return status;
    send_state *state = made;
    errand__operation_cursor cursor = {(char *)(state + 1)};
    state->bytes = cursor.at;
    state->size = size;
    for (size_t i = 0; i < count; i++)
        errand__operation_copy(&cursor, parts[i].bytes, parts[i].size);
    errand__wait_spec(out_spec, ERRAND_KIND_SEND, &send_job, state);
    return ERRAND_OK;
}

static int32_t
send_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    send_state *send = state;
    int32_t code = errand__wait_ready(job, &send->net.wait);

    (void)out_payload;
    if (code == 0)
        code = go_on(job, send);
    return errand__wait_done(&send->net.wait, code);
}

static int32_t
refused(errand_job *job, send_state *send, int error)
{
    return errand__net_refused(job, ERRAND_OPERATION_SEND_FAILED, error, "send",
                               send->net.socket, "not all was sent");
}

static int32_t
go_on(errand_job *job, send_state *state)
{
    errand__wait *wait = &state->net.wait;
    int fd = errand__socket_fd(state->net.socket);
    ssize_t count;

    if (wait->asked && wait->io.kind == ERRAND_IO_SEND) {
        int32_t result = wait->io.result;

        if (result == -EAGAIN)
            return errand__wait_poll(job, wait, fd, POLLOUT);
        if (result < 0 && result != -EINTR)
            return refused(job, state, -result);
        state->sent += result > 0 ? (size_t)result : 0;
    }
    while (state->sent < state->size) {
        count = send(fd, state->bytes + state->sent, state->size - state->sent,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count >= 0)
            state->sent += (size_t)count;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            return refused(job, state, errno);
    }
    if (state->sent == state->size)
        return 0;
    wait->io = (errand_io){
        .kind = ERRAND_IO_SEND,
        .fd = fd,
        .bytes = state->bytes + state->sent,
        .length = state->size - state->sent,
        .flags = MSG_WAITALL,
    };
    return errand__wait_ask(job, wait);
}
