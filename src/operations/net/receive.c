/* SPDX-License-Identifier: MIT */
/* receive: what a peer sent: exactly so much, or what is there.
 *
 * Design notes: somebody who waits holds no memory for what has not come: the body asks whether
 * something is there, and then takes it by a call that does not wait: into the stack where
 * that is enough, because only then it is known how much there is.  The rest of an exact
 * receive is the kernel's to fill in. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include "errand/traps.h"
#include "operations/net/net.h"

enum { PARTS_MAX = 1024 };

typedef struct receive_state {
    errand__net_state net;
    size_t size; /* exactly, or at most */
    size_t got;
    errand_file_bytes *block; /* exact: from its first byte on */
    size_t count;             /* of parts; 0 = they are not asked for */
    size_t sizes[];
} receive_state;

static int32_t exact_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t fill(errand_job *job, receive_state *receive);
static int32_t take_first(errand_job *job, receive_state *receive);
static int32_t some_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t peek_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t give_parts(errand_job *job, receive_state *receive,
                          errand_payload *out_payload);
static int32_t ended(errand_job *job, const receive_state *receive);
static int32_t refused(errand_job *job, errand__socket *socket, int error);
static void receive_drop(void *state);

static const errand_job_type exact_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "receive",
    .poll = exact_poll,
    .drop = receive_drop,
    .told = errand__wait_told,
};
static const errand_job_type some_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "receive",
    .poll = some_poll,
    .drop = receive_drop,
    .told = errand__wait_told,
};
static const errand_job_type peek_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "peek",
    .poll = peek_poll,
    .drop = receive_drop,
};

static errand_status
prepare(errand_spec *out_spec, errand_stream *stream, const errand_job_type *type,
        size_t size, size_t parts, receive_state **out_state)
{
    void *state;
    bool peeks = type == &peek_job;
    errand__socket *socket = &stream->socket;
    errand_status status = errand__net_create(
        socket, peeks ? NULL : &socket->source, peeks ? 0 : socket->limits_ns[0],
        sizeof(receive_state), parts * sizeof(size_t), &state);

    if (status != ERRAND_OK)
        return status;
    ((receive_state *)state)->size = size;
    errand__wait_spec(out_spec, peeks ? ERRAND_KIND_PEEK : ERRAND_KIND_RECEIVE, type,
                      state);
    if (out_state != NULL)
        *out_state = state;
    return ERRAND_OK;
}

errand_status
errand_spec_receive(errand_spec *out_spec, errand_stream *stream, size_t size)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && stream != NULL && size > 0 &&
                           size <= ERRAND_RECEIVE_MAX,
                       ERRAND_EINVAL, "out_spec, stream or size is missing");
    return prepare(out_spec, stream, &exact_job, size, 0, NULL);
}

errand_status
errand_spec_receive_some(errand_spec *out_spec, errand_stream *stream, size_t max)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && stream != NULL && max > 0 &&
                           max <= ERRAND_RECEIVE_MAX,
                       ERRAND_EINVAL, "out_spec, stream or max is missing");
    return prepare(out_spec, stream, &some_job, max, 0, NULL);
}

errand_status
errand_spec_receive_parts(errand_spec *out_spec, errand_stream *stream,
                          const size_t *sizes, size_t count)
{
    receive_state *state;
    size_t sum = 0;

    ERRAND_REQUIRE_ARG(out_spec != NULL && stream != NULL && sizes != NULL && count > 0 &&
                           count <= PARTS_MAX,
                       ERRAND_EINVAL, "out_spec, stream, sizes or count is missing");
    for (size_t i = 0; i < count; i++) {
        ERRAND_REQUIRE_ARG(sizes[i] <= ERRAND_RECEIVE_MAX - sum, ERRAND_EINVAL,
                           "sizes are too large");
        sum += sizes[i];
    }
    ERRAND_REQUIRE_ARG(sum > 0, ERRAND_EINVAL, "sizes are 0");
    errand_status status = prepare(out_spec, stream, &exact_job, sum, count, &state);
    if (status != ERRAND_OK)
        return status;
    state->count = count;
    memcpy(state->sizes, sizes, count * sizeof *sizes);
    return ERRAND_OK;
}

errand_status
errand_spec_peek(errand_spec *out_spec, errand_stream *stream, size_t max)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && stream != NULL && max > 0 &&
                           max <= ERRAND_RECEIVE_MAX,
                       ERRAND_EINVAL, "out_spec, stream or max is missing");
    return prepare(out_spec, stream, &peek_job, max, 0, NULL);
}

/* ---- exactly so much ------------------------------------------------------------------------- */

static int32_t
exact_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    receive_state *receive = state;
    int32_t code = errand__wait_ready(job, &receive->net.wait);

    if (code == 0)
        code = fill(job, receive);
    if (code == 0 && receive->count > 0)
        code = give_parts(job, receive, out_payload);
    else if (code == 0) {
        errand__operation_payload_bytes(out_payload, receive->block, receive->size);
        receive->block = NULL;
    }
    return errand__wait_done(&receive->net.wait, code);
}

static int32_t
fill(errand_job *job, receive_state *receive)
{
    errand__wait *wait = &receive->net.wait;
    int fd = errand__socket_fd(receive->net.socket);
    int32_t code;

    if (wait->asked && wait->io.kind == ERRAND_IO_RECV) {
        int32_t result = wait->io.result;

        if (result == -EAGAIN)
            return errand__wait_poll(job, wait, fd, POLLIN);
        if (result == 0)
            return ended(job, receive);
        if (result < 0 && result != -EINTR)
            return refused(job, receive->net.socket, -result);
        receive->got += result > 0 ? (size_t)result : 0;
    } else {
        code = take_first(job, receive);
        if (code != 0)
            return code == ERRAND_PENDING ? errand__wait_poll(job, wait, fd, POLLIN)
                                          : code;
    }
    if (receive->got == receive->size)
        return 0;
    wait->io = (errand_io){
        .kind = ERRAND_IO_RECV,
        .fd = fd,
        .buffer = (char *)(receive->block + 1) + receive->got,
        .length = receive->size - receive->got,
        .flags = MSG_WAITALL,
    };
    return errand__wait_ask(job, wait);
}

static int32_t
take_first(errand_job *job, receive_state *receive)
{
    char scratch[NET_SCRATCH];
    int fd = errand__socket_fd(receive->net.socket);
    bool small = receive->block == NULL && receive->size <= sizeof scratch;
    ssize_t count;

    if (receive->block == NULL && !small) {
        if (!receive->net.wait.asked)
            return ERRAND_PENDING;
        receive->block = errand__operation_bytes_alloc(receive->size);
        if (receive->block == NULL)
            return errand__operation_no_memory(job, receive->size);
    }
    do
        count = recv(fd, small ? scratch : (char *)(receive->block + 1) + receive->got,
                     receive->size - receive->got, MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return ERRAND_PENDING;
    if (count < 0)
        return refused(job, receive->net.socket, errno);
    if (count == 0)
        return ended(job, receive);
    if (small) {
        receive->block = errand__operation_bytes_alloc(receive->size);
        if (receive->block == NULL)
            return errand__operation_no_memory(job, receive->size);
        memcpy(receive->block + 1, scratch, (size_t)count);
    }
    receive->got += (size_t)count;
    return 0;
}

/* The parts get a 0 behind each, like all bytes: moved apart from the last one on. */
static int32_t
give_parts(errand_job *job, receive_state *receive, errand_payload *out_payload)
{
    size_t table = sizeof(errand_parts) + receive->count * sizeof(errand_file_bytes);
    size_t size = table + receive->size + receive->count;
    errand_parts *parts = errand__operation_block_alloc_for(table, size - table);

    if (parts == NULL)
        return errand__operation_no_memory(job, size);
    errand_file_bytes *part = (errand_file_bytes *)(void *)(parts + 1);
    unsigned char *into = (unsigned char *)parts + table;
    const unsigned char *from = (const unsigned char *)(receive->block + 1);
    parts->parts = part;
    parts->count = receive->count;
    for (size_t i = 0; i < receive->count; i++) {
        memcpy(into, from, receive->sizes[i]);
        into[receive->sizes[i]] = 0;
        part[i] = (errand_file_bytes){.bytes = into, .size = receive->sizes[i]};
        from += receive->sizes[i];
        into += receive->sizes[i] + 1;
    }
    errand__operation_payload(out_payload, &errand_parts_type, parts, size);
    return 0;
}

/* ---- what is there ------------------------------------------------------------------------------ */

int32_t
errand__net_take(errand_job *job, errand__socket *socket, size_t max, void **out_block,
                 size_t *out_size)
{
    char scratch[NET_SCRATCH];
    int fd = errand__socket_fd(socket), there = 0;
    char *block = NULL;
    ssize_t count;

    if (max > sizeof scratch && ioctl(fd, FIONREAD, &there) == 0 &&
        there > (int)sizeof scratch) {
        max = max < (size_t)there ? max : (size_t)there;
        block = errand__operation_bytes_alloc(max);
        if (block == NULL)
            return errand__operation_no_memory(job, max);
    } else if (max > sizeof scratch) {
        max = sizeof scratch;
    }
    do
        count = recv(fd, block == NULL ? scratch : block + sizeof(errand_file_bytes), max,
                     MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count < 0) {
        int error = errno;

        errand__operation_block_free(block);
        return error == EAGAIN ? ERRAND_PENDING : refused(job, socket, error);
    }
    if (block == NULL) {
        block = errand__operation_bytes_alloc((size_t)count);
        if (block == NULL)
            return errand__operation_no_memory(job, (size_t)count);
        memcpy(block + sizeof(errand_file_bytes), scratch, (size_t)count);
    }
    *out_block = block;
    *out_size = (size_t)count;
    return 0;
}

static int32_t
some_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    receive_state *receive = state;
    errand__wait *wait = &receive->net.wait;
    void *block = NULL;
    size_t size = 0;
    int32_t code = errand__wait_ready(job, wait);

    if (code == 0) {
        code = errand__net_take(job, receive->net.socket, receive->size, &block, &size);
        if (code == ERRAND_PENDING)
            code = errand__wait_poll(job, wait, errand__socket_fd(receive->net.socket),
                                     POLLIN);
    }
    if (block != NULL)
        errand__operation_payload_bytes(out_payload, block, size);
    return errand__wait_done(wait, code);
}

static int32_t
peek_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const receive_state *peek = state;
    errand__socket *socket = peek->net.socket;
    int fd = errand__socket_fd(socket), there = 0;
    ssize_t count = 0;

    if (errand__seat_gone(&socket->source))
        return errand__operation_failed(job, ERRAND_OPERATION_CLOSED,
                                        "there is nothing to look at: it is closed");
    if (ioctl(fd, FIONREAD, &there) != 0 || there < 0)
        there = 0;
    size_t size = peek->size < (size_t)there ? peek->size : (size_t)there;
    char *block = errand__operation_bytes_alloc(size);
    if (block == NULL)
        return errand__operation_no_memory(job, size);
    if (size > 0)
        do
            count = recv(fd, block + sizeof(errand_file_bytes), size,
                         MSG_DONTWAIT | MSG_PEEK);
        while (count < 0 && errno == EINTR);
    errand__operation_payload_bytes(out_payload, block, count > 0 ? (size_t)count : 0);
    return 0;
}

/* ---- ends ----------------------------------------------------------------------------------------- */

static int32_t
ended(errand_job *job, const receive_state *receive)
{
    return errand__operation_failed(job, ERRAND_OPERATION_RECEIVE_FAILED,
                                    "the peer ended after %zu of %zu bytes", receive->got,
                                    receive->size);
}

static int32_t
refused(errand_job *job, errand__socket *socket, int error)
{
    return errand__net_refused(job, ERRAND_OPERATION_RECEIVE_FAILED, error, "recv",
                               socket, "nothing more is received");
}

static void
receive_drop(void *state)
{
    errand__operation_block_free(((receive_state *)state)->block);
    errand__net_drop(state);
}
