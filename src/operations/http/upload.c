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
#include "operations/codec.h"
#include "operations/http/http.h"

struct errand_http_upload {
    /* refs: the host's references and those of operations.
     * Writers: whoever holds or abandons.   Readers: the same.
     * Order:   fetch_sub acq_rel.
     * Pairs:   upload-refs.
     * Why:     the last one gives up what the others used. */
    atomic_uint refs;
#if ERRAND_HAS_CURL
    errand__transfer *transfer; /* NULL: of a replay, or it was finished as a stream */
#endif
    errand__seat seat;
    bool detached;
    uint64_t limit_ns;
    size_t left; /* SIZE_UNKNOWN, or what has to come */
};

size_t
errand_http_upload_left(const errand_http_upload *upload)
{
    return upload == NULL ? 0 : upload->left;
}

errand_http_upload *
errand_http_upload_hold(errand_http_upload *upload)
{
    if (upload != NULL)
        atomic_fetch_add_explicit(&upload->refs, 1, memory_order_relaxed);
    return upload;
}

void
errand_http_upload_abandon(errand_http_upload **take_upload)
{
    if (take_upload == NULL || *take_upload == NULL)
        return;
    errand_http_upload *upload = *take_upload;
    *take_upload = NULL;
    /* Pairs: upload-refs */
    if (atomic_fetch_sub_explicit(&upload->refs, 1, memory_order_acq_rel) != 1)
        return;
#if ERRAND_HAS_CURL
    errand__transfer_destroy(upload->transfer);
#endif
    errand__seat_fini(&upload->seat);
    errand__operation_block_free(upload);
}

static errand_http_upload *
create(size_t size)
{
    errand_http_upload *made = errand__operation_block_alloc(sizeof *made);

    if (made == NULL)
        return NULL;
    atomic_init(&made->refs, 1);
    made->left = size;
    return made;
}

/* ---- specs ------------------------------------------------------------------------------- */

#if ERRAND_HAS_CURL
typedef struct upload_state {
    errand_http_upload *upload; /* a reference */
    uint32_t ticket;
    bool seated, turned, over; /* over: the seat is free again */
    errand__http_drive drive;
    size_t size;
    char bytes[]; /* of a send */
} upload_state;

static int32_t begin_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t send_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t finish_poll(errand_job *job, void *state, errand_payload *out_payload);
static void upload_drop(void *state);

#define UPLOAD_JOB(what, text)                                                           \
    static const errand_job_type what##_job = {                                          \
        .struct_size = sizeof(errand_job_type),                                          \
        .name = text,                                                                    \
        .poll = what##_poll,                                                             \
        .drop = upload_drop,                                                             \
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
    if (!errand__seat_take(&upload->seat, &state->ticket) && !upload->detached) {
        errand__operation_block_free(state);
        return ERRAND_EBUSY;
    }
    state->upload = errand_http_upload_hold(upload);
    state->seated = true;
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
    errand_http_upload *upload = create(config->body_size);
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

/* The begin of each poll; first: the transfer was not looked at before.  Answers as the drive's. */
static int32_t
turn(errand_job *job, upload_state *state, bool *out_first)
{
    errand_http_upload *upload = state->upload;

    if (!state->drive.begun &&
        (!errand__seat_begin(&upload->seat, state->ticket) || upload->transfer == NULL))
        return errand__operation_failed(
            job, ERRAND_OPERATION_CLOSED,
            "it is finished, or what came before on it failed or was cancelled");
    int32_t code = errand__http_drive_turn(job, &state->drive, upload->transfer);
    *out_first = code == 0 && !state->turned;
    state->turned = state->turned || code == 0;
    return code;
}

/* Passes PENDING on; anything else leaves the seat. */
static int32_t
done(upload_state *state, int32_t code, bool last)
{
    if (code == ERRAND_PENDING)
        return code;
    state->over = true;
    errand__seat_end(&state->upload->seat, state->ticket, code != 0 || last);
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
    errand__transfer *transfer = self->upload->transfer;
    bool first = false;
    int32_t code = turn(job, self, &first);

    if (code == 0 && transfer->over)
        code = errand__transfer_result(job, transfer);
    else if (code == 0 && !transfer->starved && !is_over(transfer) &&
             self->upload->left > 0)
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
    errand_http_upload *upload = self->upload;
    errand__transfer *transfer = upload->transfer;
    bool first = false;
    int32_t code = turn(job, self, &first);

    if (first) {
        look(transfer);
        transfer->piece = self->bytes;
        transfer->piece_left = is_over(transfer) ? 0 : self->size;
        errand__transfer_feed(transfer);
        code = errand__http_drive_hear(job, &self->drive, transfer);
    }
    /* The last bytes of a known size are not asked beyond. */
    bool sent = code == 0 && transfer->piece_left == 0 &&
                (transfer->starved || upload->left == 0);
    if (code == 0 && transfer->over)
        code = errand__transfer_result(job, transfer);
    else if (code == 0 && !sent && !is_over(transfer))
        code = errand__http_drive_wait(job, &self->drive, transfer);
    if (code == ERRAND_PENDING)
        return code;
    if (upload->transfer != NULL) { /* the bytes go with this state */
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
    errand__transfer *transfer = upload->transfer;
    bool first = false;
    int32_t code = turn(job, self, &first);

    if (first && !transfer->over) {
        look(transfer);
        if (!is_over(transfer) && upload->left != 0 &&
            upload->left != ERRAND_HTTP_SIZE_UNKNOWN)
            return done(self,
                        errand__operation_failed(
                            job, ERRAND_OPERATION_SEND_FAILED,
                            "the body lacks %zu of the bytes that it was to have",
                            upload->left),
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
upload_drop(void *state)
{
    upload_state *self = state;

    if (self->seated && !self->over)
        errand__seat_drop(&self->upload->seat, self->ticket);
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

/* ---- payload --------------------------------------------------------------------------------- */

static void
drop_upload(void *data, size_t size)
{
    errand_http_upload *upload = data;

    (void)size;
    errand_http_upload_abandon(&upload);
}

const errand_payload_type errand_http_upload_type = {"http upload", drop_upload};

uint64_t
errand_http_upload_digest(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return errand__digest_plain("upload", 6);
}

static bool
encode_upload(const void *data, size_t size, errand_sink *sink)
{
    (void)size;
    errand_sink_word(sink, errand_http_upload_left(data));
    return true;
}

static errand_status
decode_upload(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    uint64_t left = errand__codec_read_word(&in);

    if (!in.good || in.left != 0)
        return ERRAND_EDECODE;
    errand_http_upload *made = create((size_t)left);
    if (made == NULL)
        return ERRAND_ENOMEM;
    made->detached = true;
    errand__operation_payload(out_payload, &errand_http_upload_type, made,
                              sizeof(uint64_t));
    return ERRAND_OK;
}

const errand_payload_codec errand__http_upload_codec = {sizeof errand__http_upload_codec,
                                                        encode_upload, decode_upload};
