/* SPDX-License-Identifier: MIT */
/* upload_object: the life of an upload, and its way through a log.  What it does: upload.c. */
#include "operations/codec.h"
#include "operations/http/http.h"

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

errand_http_upload *
errand__http_upload_create(size_t size)
{
    errand_http_upload *made = errand__operation_block_alloc(sizeof *made);

    if (made == NULL)
        return NULL;
    atomic_init(&made->refs, 1);
    made->left = made->lacks = size;
    return made;
}

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
    errand_http_upload *made = errand__http_upload_create((size_t)left);
    if (made == NULL)
        return ERRAND_ENOMEM;
    errand__operation_payload(out_payload, &errand_http_upload_type, made,
                              sizeof(uint64_t));
    return ERRAND_OK;
}

const errand_payload_codec errand__http_upload_codec = {sizeof errand__http_upload_codec,
                                                        encode_upload, decode_upload};
