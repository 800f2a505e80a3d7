/* SPDX-License-Identifier: MIT */
/* place: where a file stands, and how it is moved.
 *
 * Design notes: the position is the object's own, not the descriptor's.  The kernel moves its own
 * also for a read that was cancelled and whose bytes nobody gets; this one moves only with what
 * succeeds, so that it is the same in every order. */
#include <errno.h>
#include <fcntl.h>
#include "operations/codec.h"
#include "operations/files/files.h"

typedef struct seek_state {
    errand__file_state base;
    int64_t offset;
    errand_from from;
    struct statx status;
} seek_state;

static int32_t seek_poll(errand_job *job, void *state, errand_payload *out_payload);
static void drop_place(void *data, size_t size);

const errand_payload_type errand_file_place_type = {"file place", drop_place};
static const errand_job_type seek_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "seek",
    .poll = seek_poll,
    .drop = errand__file_drop,
};

int64_t
errand__file_position(const errand_file *file)
{
    return atomic_load_explicit(&file->position, memory_order_relaxed);
}

void
errand__file_move(errand_file *file, int64_t position)
{
    atomic_store_explicit(&file->position, position, memory_order_relaxed);
}

errand_status
errand_spec_seek(errand_spec *out_spec, errand_file *file, int64_t offset,
                 errand_from from)
{
    void *made;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL && from >= ERRAND_FROM_BEGIN &&
                           from <= ERRAND_FROM_END &&
                           (from != ERRAND_FROM_BEGIN || offset >= 0),
                       ERRAND_EINVAL, "out_spec, file, offset or from is missing");
    errand_status status =
        errand__file_state_create(file, "", sizeof(seek_state), 0, &made);
    if (status != ERRAND_OK)
        return status;
    seek_state *state = made;
    state->offset = offset;
    state->from = from;
    errand__wait_spec(out_spec, ERRAND_KIND_SEEK, &seek_job, state);
    return ERRAND_OK;
}

static int32_t
give_place(errand_job *job, int64_t position, errand_payload *out_payload)
{
    errand_file_place *place = errand__operation_block_alloc(sizeof *place);

    if (place == NULL)
        return errand__operation_no_memory(job, sizeof *place);
    place->offset = (uint64_t)position;
    errand__operation_payload(out_payload, &errand_file_place_type, place, sizeof *place);
    return 0;
}

static int32_t
seek_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    seek_state *seek = state;
    errand_file *file = seek->base.file;
    errand__wait *wait = &seek->base.wait;
    int32_t code = errand__file_ready(job, &seek->base);
    int64_t base = 0, to;

    if (code != 0)
        return code;
    if (!errand_file_is_seekable(file))
        return errand__operation_no_position(job);
    if (seek->from == ERRAND_FROM_END && !wait->asked) {
        wait->io = (errand_io){.kind = ERRAND_IO_STAT,
                               .fd = errand_file_fd(file),
                               .path = "",
                               .flags = AT_EMPTY_PATH,
                               .mask = STATX_SIZE,
                               .out_stat = &seek->status};
        return errand__wait_ask(job, wait);
    }
    if (wait->asked && wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, "statx",
                                         "cannot look at the file");
    if (seek->from == ERRAND_FROM_POSITION)
        base = errand__file_position(file);
    else if (seek->from == ERRAND_FROM_END)
        base = (int64_t)seek->status.stx_size;
    if (__builtin_add_overflow(base, seek->offset, &to) || to < 0)
        return errand__operation_refused(job, EINVAL, "lseek",
                                         "cannot go %lld bytes from %lld on",
                                         (long long)seek->offset, (long long)base);
    code = give_place(job, to, out_payload);
    if (code == 0)
        errand__file_move(file, to);
    return code;
}

/* ---- payload ------------------------------------------------------------------------------ */

static void
drop_place(void *data, size_t size)
{
    (void)size;
    errand__operation_block_free(data);
}

uint64_t
errand_file_place_digest(const void *data, size_t size)
{
    const errand_file_place *place = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, place->offset);
    return errand__digest_end(&mix);
}

static bool
encode_place(const void *data, size_t size, errand_sink *sink)
{
    (void)size;
    errand_sink_word(sink, ((const errand_file_place *)data)->offset);
    return true;
}

static errand_status
decode_place(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    uint64_t offset = errand__codec_read_word(&in);

    if (!in.good || in.left != 0)
        return ERRAND_EDECODE;
    errand_file_place *place = errand__operation_block_alloc(sizeof *place);
    if (place == NULL)
        return ERRAND_ENOMEM;
    place->offset = offset;
    errand__operation_payload(out_payload, &errand_file_place_type, place, sizeof *place);
    return ERRAND_OK;
}

const errand_payload_codec errand__file_place_codec = {sizeof errand__file_place_codec,
                                                       encode_place, decode_place};
