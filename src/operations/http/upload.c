/* SPDX-License-Identifier: MIT */
/* upload: a request whose body is sent in pieces.
 *
 * Design notes: three kinds of operations drive one transfer, one at a time: the first until
 * libcurl asks for the body, each send until libcurl has sent what it was given and asks for more,
 * the last to the answer.  Between them nobody drives it, so nothing is sent and nothing is
 * kept.  A server that answers early ends the transfer, or stops its sending; then a send takes
 * nothing more. */
#include <poll.h>
#include <string.h>
#include "operations/http/http.h"

/* ---- specs ------------------------------------------------------------------------------- */

#if ERRAND_HAS_CURL
typedef struct upload_state {
    errand_http_upload *upload; /* a reference */
    uint32_t ticket;
    bool turned, seen; /* seen: the transfer was looked at */
    errand__seat_place place;
    errand__http_drive drive;
    size_t left; /* of the body, once it has ended; from its turn on */
    size_t size;
    char bytes[]; /* of a send */
} upload_state;

static int32_t begin_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t send_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t finish_poll(errand_job *job, void *state, errand_payload *out_payload);
static void upload_drop(void *state);
static void upload_told(void *state);

#define UPLOAD_JOB(what, text)                                                           \
    static const errand_job_type what##_job = {                                          \
        .struct_size = sizeof(errand_job_type),                                          \
        .name = text,                                                                    \
        .poll = what##_poll,                                                             \
        .drop = upload_drop,                                                             \
        .told = upload_told,                                                             \
    }
UPLOAD_JOB(begin, "http upload");
UPLOAD_JOB(send, "http send");
UPLOAD_JOB(finish, "http finish");

/* A state with a reference and the seat: OK, EBUSY or ENOMEM. */
static errand_status
state_create(errand_http_upload *upload, size_t extra, upload_state **out_state)
{
    upload_state *state = errand__operation_block_alloc_for(sizeof *state, extra);

    if (state == NULL)
        return ERRAND_ENOMEM;
    if (!errand__seat_take(&upload->seat, &state->ticket)) {
        errand__operation_block_free(state);
        return ERRAND_EBUSY;
    }
    state->upload = errand_http_upload_hold(upload);
    state->drive.limit_ns = upload->limit_ns;
    *out_state = state;
    return ERRAND_OK;
}

errand_status
errand_spec_http_upload(errand_spec *out_spec, const errand_http_config *config)
{
    errand__origin origin;
    upload_state *state = NULL;

    ERRAND_REQUIRE_ARG(out_spec != NULL && config != NULL, ERRAND_EINVAL,
                       "out_spec or config is NULL");
    errand_status status = errand__http_check(config, &origin, __func__);
    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(
        config->body == NULL && config->redirects_max == 0 &&
            (config->method == NULL || strcmp(config->method, "HEAD") != 0) &&
            (config->body_size <= INT64_MAX ||
             config->body_size == ERRAND_HTTP_SIZE_UNKNOWN),
        ERRAND_EINVAL, "an upload has no body yet, and follows nothing");
    errand_http_upload *upload = errand__http_upload_create(config->body_size);
    if (upload == NULL)
        return ERRAND_ENOMEM;
    upload->limit_ns = errand__http_limit(config);
    upload->transfer = errand__transfer_create(config, &origin, true);
    status = upload->transfer == NULL ? ERRAND_ENOMEM : state_create(upload, 0, &state);
    errand_http_upload_abandon(&upload); /* the state has it */
    if (status == ERRAND_OK)
        errand__wait_spec(out_spec, ERRAND_KIND_HTTP_UPLOAD, &begin_job, state);
    return status;
}

errand_status
errand_spec_http_send(errand_spec *out_spec, errand_http_upload *upload,
                      const void *bytes, size_t size)
{
    upload_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && upload != NULL && bytes != NULL && size > 0 &&
                           size <= ERRAND_RECEIVE_MAX,
                       ERRAND_EINVAL, "out_spec, upload or bytes is missing");
    ERRAND_REQUIRE_ARG(upload->left == ERRAND_HTTP_SIZE_UNKNOWN || size <= upload->left,
                       ERRAND_EINVAL, "the body has fewer bytes than that");
    errand_status status = state_create(upload, size, &state);
    if (status != ERRAND_OK)
        return status;
    state->size = size;
    memcpy(state->bytes, bytes, size);
    upload->left -= upload->left == ERRAND_HTTP_SIZE_UNKNOWN ? 0 : size;
    errand__wait_spec(out_spec, ERRAND_KIND_HTTP_SEND, &send_job, state);
    return ERRAND_OK;
}

errand_status
errand_spec_http_finish(errand_spec *out_spec, errand_http_upload *upload)
{
    upload_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && upload != NULL, ERRAND_EINVAL,
                       "out_spec or upload is NULL");
    errand_status status = state_create(upload, 0, &state);
    if (status == ERRAND_OK)
        errand__wait_spec(out_spec, ERRAND_KIND_HTTP_FINISH, &finish_job, state);
    return status;
}

/* ---- bodies -------------------------------------------------------------------------------- */

/* At each poll until it has its turn. */
static int32_t
take_turn(errand_job *job, upload_state *state)
{
    errand_http_upload *upload = state->upload;
    errand__seat_answer answer = errand__seat_enter(
        &upload->seat, &state->place, state->ticket, ERRAND__SEAT_OPEN, job);

    if (answer == ERRAND__SEAT_GONE ||
        (answer == ERRAND__SEAT_HAS && upload->transfer == NULL))
        return errand__operation_failed(
            job, ERRAND_OPERATION_CLOSED,
            "it is finished, or what came before on it failed or was cancelled");
    if (errand_job_cancelled(
            job)) /* also with its turn: the next one may have been here */
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "it was cancelled before its turn came");
    if (answer == ERRAND__SEAT_WAITS)
        return ERRAND_PENDING;
    state->turned = true;
    upload->lacks -= upload->lacks == ERRAND_HTTP_SIZE_UNKNOWN ? 0 : state->size;
    state->left = upload->lacks;
    return 0;
}

/* The begin of each poll; first: the transfer was not looked at before.  Answers as the drive's. */
static int32_t
turn(errand_job *job, upload_state *state, errand__transfer **out_transfer,
     bool *out_first)
{
    int32_t code = state->turned ? 0 : take_turn(job, state);

    if (code != 0)
        return code;
    *out_transfer = state->upload->transfer;
    code = errand__http_drive_turn(job, &state->drive, *out_transfer);
    *out_first = code == 0 && !state->seen;
    state->seen = state->seen || code == 0;
    return code;
}

/* Passes PENDING on; anything else leaves the seat. */
static int32_t
done(upload_state *state, int32_t code, bool last)
{
    if (code != ERRAND_PENDING)
        errand__seat_leave(&state->upload->seat, &state->place, state->ticket,
                           state->turned && (code != 0 || last));
    return code;
}

/* It takes nothing more: it failed, or the server has answered. */
static bool
is_over(const errand__transfer *transfer)
{
    return transfer->over || transfer->head_done;
}

static int32_t
begin_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    upload_state *self = state;
    errand__transfer *transfer = NULL;
    bool first = false;
    int32_t code = turn(job, self, &transfer, &first);

    if (code == 0 && transfer->over)
        code = errand__transfer_result(job, transfer);
    else if (code == 0 && !transfer->starved && !is_over(transfer) && self->left > 0)
        code = errand__http_drive_wait(job, &self->drive, transfer);
    if (code == 0)
        errand__operation_payload(out_payload, &errand_http_upload_type,
                                  errand_http_upload_hold(self->upload),
                                  sizeof(uint64_t));
    return done(self, code, false);
}

/* What the server said meanwhile comes first: it may want no more.  A helper hears it all the same. */
static void
look(errand__transfer *transfer)
{
    for (size_t i = 0; i < HTTP_SOCKETS && !transfer->over && !transfer->apart; i++)
        if (transfer->wants[i].fd >= 0)
            errand__transfer_act(transfer, transfer->wants[i].fd, POLLIN);
}

static int32_t
send_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    upload_state *self = state;
    errand__transfer *transfer = NULL;
    bool first = false;
    int32_t code = turn(job, self, &transfer, &first);

    if (first) {
        look(transfer);
        transfer->piece = self->bytes;
        transfer->piece_left = is_over(transfer) ? 0 : self->size;
        errand__transfer_feed(transfer);
        code = errand__http_drive_hear(job, &self->drive, transfer);
    }
    /* The last bytes of a known size are not asked beyond. */
    bool sent =
        code == 0 && transfer->piece_left == 0 && (transfer->starved || self->left == 0);
    if (code == 0 && transfer->over)
        code = errand__transfer_result(job, transfer);
    else if (code == 0 && !sent && !is_over(transfer))
        code = errand__http_drive_wait(job, &self->drive, transfer);
    if (code == ERRAND_PENDING)
        return code;
    if (transfer != NULL) { /* the bytes go with this state */
        transfer->piece = NULL;
        transfer->piece_left = 0;
    }
    if (code == 0)
        code = errand__operation_written(job, sent ? self->size : 0, out_payload);
    return done(self, code, false);
}

static int32_t
finish_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    upload_state *self = state;
    errand_http_upload *upload = self->upload;
    errand__transfer *transfer = NULL;
    bool first = false;
    int32_t code = turn(job, self, &transfer, &first);

    if (first && !transfer->over) {
        look(transfer);
        if (!is_over(transfer) && self->left != 0 &&
            self->left != ERRAND_HTTP_SIZE_UNKNOWN)
            return done(self,
                        errand__operation_failed(
                            job, ERRAND_OPERATION_SEND_FAILED,
                            "the body lacks %zu of the bytes that it was to have",
                            self->left),
                        true);
        transfer->piece_last = true;
        errand__transfer_feed(transfer);
        code = errand__http_drive_hear(job, &self->drive, transfer);
    }
    if (code == 0 && transfer->over)
        code = errand__transfer_result(job, transfer);
    else if (code == 0 && !(transfer->streams && transfer->head_done))
        code = errand__http_drive_wait(job, &self->drive, transfer);
    if (code == 0)
        code = errand__http_give(job, &upload->transfer,
                                 errand__transfer_location(transfer), out_payload);
    return done(self, code, true);
}

static void
upload_told(void *state)
{
    const upload_state *self = state;

    errand__seat_told(&self->upload->seat, self->ticket);
}

static void
upload_drop(void *state)
{
    upload_state *self = state;

    upload_told(self);
    errand__seat_leave(&self->upload->seat, &self->place, self->ticket, false);
    errand_http_upload_abandon(&self->upload);
    errand__operation_block_free(self);
}
#else
errand_status
errand_spec_http_upload(errand_spec *out_spec, const errand_http_config *config)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && config != NULL, ERRAND_EINVAL,
                       "out_spec or config is NULL");
    return ERRAND_EUNSUPPORTED;
}

errand_status
errand_spec_http_send(errand_spec *out_spec, errand_http_upload *upload,
                      const void *bytes, size_t size)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && upload != NULL && bytes != NULL && size > 0,
                       ERRAND_EINVAL, "out_spec, upload or bytes is missing");
    return ERRAND_EUNSUPPORTED;
}

errand_status
errand_spec_http_finish(errand_spec *out_spec, errand_http_upload *upload)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && upload != NULL, ERRAND_EINVAL,
                       "out_spec or upload is NULL");
    return ERRAND_EUNSUPPORTED;
}
#endif
