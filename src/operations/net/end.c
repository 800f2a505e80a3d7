/* SPDX-License-Identifier: MIT */
/* end: operations that end a half of a stream, or all of it. */
#include <errno.h>
#include "errand/traps.h"
#include "operations/net/net.h"

typedef struct end_state {
    errand__net_state net;
    errand_half half;
    uint32_t tickets[2]; /* of a shutdown's; 0 = that half is none of its */
    bool turned[2];
    unsigned left; /* a close's: so many halves have nobody in them any more */
} end_state;

static int32_t shutdown_poll(errand_job *job, void *state, errand_payload *out_payload);
static void shutdown_drop(void *state);
static void shutdown_told(void *state);
static int32_t close_poll(errand_job *job, void *state, errand_payload *out_payload);
static void close_drop(void *state);

static const errand_job_type shutdown_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "shutdown",
    .poll = shutdown_poll,
    .drop = shutdown_drop,
    .told = shutdown_told,
};
static const errand_job_type close_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "close",
    .poll = close_poll,
    .drop = close_drop,
};

errand_status
errand_spec_shutdown(errand_spec *out_spec, errand_stream *stream, errand_half half)
{
    void *made;

    ERRAND_REQUIRE_ARG(out_spec != NULL && stream != NULL && half >= ERRAND_HALF_SOURCE &&
                           half <= ERRAND_HALF_BOTH,
                       ERRAND_EINVAL, "out_spec, stream or half is missing");
    errand__socket *socket = &stream->socket;
    errand_status status =
        errand__net_create(socket, NULL, 0, sizeof(end_state), 0, &made);
    if (status != ERRAND_OK)
        return status;
    end_state *state = made;
    state->half = half;
    if (((half & ERRAND_HALF_SOURCE) != 0 &&
         !errand__seat_take(&socket->source, &state->tickets[0])) ||
        ((half & ERRAND_HALF_SINK) != 0 &&
         !errand__seat_take(&socket->sink, &state->tickets[1]))) {
        shutdown_drop(state);
        return ERRAND_EBUSY;
    }
    errand__wait_spec(out_spec, ERRAND_KIND_SHUTDOWN, &shutdown_job, state);
    return ERRAND_OK;
}

/* Its halves; fewer are left NULL. */
static void
seats(end_state *end, errand__seat *out_seats[2])
{
    out_seats[0] = end->tickets[0] == 0 ? NULL : &end->net.socket->source;
    out_seats[1] = end->tickets[1] == 0 ? NULL : &end->net.socket->sink;
}

/* A poisoned half is ended like another: only what was closed before is not. */
static int32_t
take_turns(errand_job *job, end_state *end)
{
    errand__seat *halves[2];

    seats(end, halves);
    for (int i = 0; i < 2; i++) {
        errand__seat_answer answer = ERRAND__SEAT_HAS;

        if (halves[i] == NULL || end->turned[i])
            continue;
        answer = errand__seat_enter(halves[i], &end->net.wait.place, end->tickets[i],
                                    ERRAND__SEAT_ENDED, job);
        if (answer == ERRAND__SEAT_GONE)
            return errand__operation_failed(job, ERRAND_OPERATION_CLOSED, "it is closed");
        if (answer == ERRAND__SEAT_WAITS && errand_job_cancelled(job))
            return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                            "it was cancelled before its turn came");
        if (answer == ERRAND__SEAT_WAITS)
            return ERRAND_PENDING;
        end->turned[i] = true;
    }
    if (errand_job_cancelled(job)) /* then the next one may have been there before it */
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "it was cancelled before its turn came");
    return 0;
}

static void
leave(end_state *end, bool ended)
{
    errand__seat_place *place = &end->net.wait.place;
    errand__seat *halves[2];

    seats(end, halves);
    for (int i = 0; i < 2; i++) {
        if (halves[i] == NULL)
            continue;
        if (ended)
            errand__seat_close(halves[i], ERRAND__SEAT_ENDED);
        /* Its place is where it waits for its turn first. */
        errand__seat_leave(halves[i], end->turned[i] ? NULL : place, end->tickets[i],
                           false);
        if (!end->turned[i])
            place = NULL;
    }
}

static int32_t
shutdown_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    end_state *end = state;
    errand__socket *socket = end->net.socket;
    int how = end->half == ERRAND_HALF_SOURCE ? SHUT_RD
              : end->half == ERRAND_HALF_SINK ? SHUT_WR
                                              : SHUT_RDWR;
    int32_t code = take_turns(job, end);

    (void)out_payload;
    if (code == ERRAND_PENDING)
        return code;
    bool turned = code == 0;
    if (turned && shutdown(errand__socket_fd(socket), how) != 0 && errno != ENOTCONN)
        code = errand__net_refused(job, ERRAND_OPERATION_IO, errno, "shutdown", socket,
                                   "it could not be ended");
    leave(end, turned);
    return code;
}

static void
shutdown_told(void *state)
{
    end_state *end = state;
    errand__seat *halves[2];

    seats(end, halves);
    for (int i = 0; i < 2; i++)
        if (halves[i] != NULL)
            errand__seat_told(halves[i], end->tickets[i]);
}

static void
shutdown_drop(void *state)
{
    shutdown_told(state);
    leave(state, false);
    errand__net_drop(state);
}

/* ---- close ------------------------------------------------------------------------------------ */

errand_status
errand_spec_close(errand_spec *out_spec, errand_stream *stream)
{
    void *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && stream != NULL, ERRAND_EINVAL,
                       "out_spec or stream is NULL");
    errand_status status =
        errand__net_create(&stream->socket, NULL, 0, sizeof(end_state), 0, &state);
    if (status != ERRAND_OK)
        return status;
    errand__wait_spec(out_spec, ERRAND_KIND_CLOSE, &close_job, state);
    return ERRAND_OK;
}

/* The half that it watches; NULL = none. */
static errand__seat *
watched(const end_state *end)
{
    errand__socket *socket = end->net.socket;

    return end->left == 0 ? &socket->source : end->left == 1 ? &socket->sink : NULL;
}

static void
unwatch(end_state *end)
{
    if (watched(end) != NULL)
        errand__seat_unwatch(watched(end), &end->net.wait.place);
}

static int32_t
close_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    end_state *end = state;
    errand__socket *socket = end->net.socket;

    (void)out_payload;
    if (!end->net.wait.begun) {
        errand_job_impure(job);
        end->net.wait.begun = true;
        errand__socket_close(socket);
    }
    /* One after the other: nobody comes in any more. */
    while (end->left < 2 && errand__seat_watch(watched(end), &end->net.wait.place, job))
        end->left++;
    if (end->left < 2 && errand_job_cancelled(job)) {
        unwatch(end);
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "it is closed, and something is still out");
    }
    if (end->left < 2)
        return ERRAND_PENDING;
    errand__lock_acquire(&socket->lock);
    int fd = atomic_exchange_explicit(&socket->fd, -1, memory_order_relaxed);
    errand__lock_release(&socket->lock);
    if (fd < 0)
        return errand__operation_failed(job, ERRAND_OPERATION_CLOSED,
                                        "it was closed before");
    errand__operation_fd_close(&fd);
    return 0;
}

static void
close_drop(void *state)
{
    unwatch(state);
    errand__net_drop(state);
}
