/* SPDX-License-Identifier: MIT */
/* at: what is done with an open file.
 *
 * Design notes: the kernel may do less than it was asked for; a file's reads and writes go on until
 * all is done or the file ends, a pipe's read takes what it gets.  The block that is read into
 * is the state's, and becomes the payload when the kernel is done with it.  Where the rest is
 * asked for it grows while nothing is under way. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include "operations/files/files.h"

enum { BYTES_MAX = 1 << 30, REST_FIRST = 1 << 16, REST_DEFAULT = 64 << 20 };

typedef struct at_state {
    errand__file_state base;
    size_t size, done;
    size_t max;               /* of the rest; 0 = so many bytes as size says */
    int64_t offset;           /* -1 = it has no position; of a truncate: the size */
    bool moves;               /* the position, when it is done */
    errand_file_bytes *block; /* of a read */
    const char *bytes;        /* of a write */
    uint32_t flags;           /* of a sync */
    struct statx status;
} at_state;

static int32_t read_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t write_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t sync_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t stat_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t truncate_poll(errand_job *job, void *state, errand_payload *out_payload);
static void at_drop(void *state);

#define AT_JOB(what, text)                                                               \
    static const errand_job_type what##_job = {                                          \
        .struct_size = sizeof(errand_job_type),                                          \
        .name = text,                                                                    \
        .poll = what##_poll,                                                             \
        .drop = at_drop,                                                                 \
    }
AT_JOB(read, "read");
AT_JOB(write, "write");
AT_JOB(sync, "sync");
AT_JOB(stat, "stat");
AT_JOB(truncate, "truncate");

static errand_status
prepare(errand_spec *out_spec, errand_file *file, uint32_t kind,
        const errand_job_type *type, size_t extra, at_state **out_state)
{
    void *made;
    errand_status status =
        errand__file_state_create(file, "", sizeof(at_state), extra, &made);

    if (status != ERRAND_OK)
        return status;
    *out_state = made;
    errand__wait_spec(out_spec, kind, type, made);
    return ERRAND_OK;
}

errand_status
errand_spec_read_at(errand_spec *out_spec, errand_file *file, size_t size, int64_t offset)
{
    at_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL && size > 0 &&
                           size <= BYTES_MAX && offset >= ERRAND_AT_POSITION,
                       ERRAND_EINVAL, "out_spec, file, size or offset is missing");
    errand_status status =
        prepare(out_spec, file, ERRAND_KIND_READ_AT, &read_job, 0, &state);
    if (status != ERRAND_OK)
        return status;
    state->size = size;
    state->offset = offset;
    return ERRAND_OK;
}

errand_status
errand_spec_read_rest(errand_spec *out_spec, errand_file *file, size_t max,
                      int64_t offset)
{
    at_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL && max <= BYTES_MAX &&
                           offset >= ERRAND_AT_POSITION,
                       ERRAND_EINVAL, "out_spec, file, max or offset is missing");
    errand_status status =
        prepare(out_spec, file, ERRAND_KIND_READ_AT, &read_job, 0, &state);
    if (status != ERRAND_OK)
        return status;
    state->max = max == 0 ? REST_DEFAULT : max;
    state->size = state->max < REST_FIRST ? state->max + 1 : REST_FIRST;
    state->offset = offset;
    return ERRAND_OK;
}

errand_status
errand_spec_write_at(errand_spec *out_spec, errand_file *file, const void *bytes,
                     size_t size, int64_t offset)
{
    at_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL && (bytes != NULL || size == 0) &&
                           size <= BYTES_MAX && offset >= ERRAND_AT_POSITION,
                       ERRAND_EINVAL, "out_spec, file, bytes or offset is missing");
    errand_status status =
        prepare(out_spec, file, ERRAND_KIND_WRITE_AT, &write_job, size, &state);
    if (status != ERRAND_OK)
        return status;
    state->size = size;
    state->offset = offset;
    state->bytes = memcpy(state + 1, bytes == NULL ? "" : bytes, size);
    return ERRAND_OK;
}

errand_status
errand_spec_sync(errand_spec *out_spec, errand_file *file, bool data_only)
{
    at_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL, ERRAND_EINVAL,
                       "out_spec or file is NULL");
    errand_status status =
        prepare(out_spec, file, ERRAND_KIND_SYNC, &sync_job, 0, &state);
    if (status == ERRAND_OK)
        state->flags = data_only ? ERRAND_IO_DATA_ONLY : 0;
    return status;
}

errand_status
errand_spec_file_stat(errand_spec *out_spec, errand_file *file)
{
    at_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL, ERRAND_EINVAL,
                       "out_spec or file is NULL");
    return prepare(out_spec, file, ERRAND_KIND_STAT, &stat_job, 0, &state);
}

errand_status
errand_spec_truncate(errand_spec *out_spec, errand_file *file, uint64_t size)
{
    at_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL && size <= INT64_MAX,
                       ERRAND_EINVAL, "out_spec or file is NULL, or size is too large");
    errand_status status =
        prepare(out_spec, file, ERRAND_KIND_TRUNCATE, &truncate_job, 0, &state);
    if (status == ERRAND_OK)
        state->offset = (int64_t)size;
    return status;
}

/* ---- bodies --------------------------------------------------------------------------------------- */

/* Before the first request. */
static void
find_position(at_state *at)
{
    if (at->base.wait.asked || at->offset >= 0)
        return;
    at->offset = errand__file_position(at->base.file);
    at->moves = at->offset >= 0;
}

static int64_t
next_offset(const at_state *at)
{
    return at->offset < 0 ? -1 : at->offset + (int64_t)at->done;
}

/* Room for what is asked for next. */
static int32_t
make_room(errand_job *job, at_state *at)
{
    size_t size = at->size;
    errand_file_bytes *wider;

    if (at->block != NULL && at->done < size)
        return 0;
    if (at->block != NULL)
        size = size > at->max / 2 ? at->max + 1 : size * 2;
    wider = at->block == NULL
                ? errand__operation_bytes_alloc(size)
                : errand__operation_block_grow(at->block, sizeof *wider + size + 1);
    if (wider == NULL)
        return errand__operation_no_memory(job, size);
    at->block = wider;
    at->size = size;
    return 0;
}

static int32_t
read_on(errand_job *job, at_state *at)
{
    errand__wait *wait = &at->base.wait;

    find_position(at);
    int32_t code = make_room(job, at);
    if (code != 0)
        return code;
    wait->io = (errand_io){
        .kind = ERRAND_IO_READ,
        .fd = errand_file_fd(at->base.file),
        .buffer = (char *)(at->block + 1) + at->done,
        .length = at->size - at->done,
        .offset = next_offset(at),
    };
    return errand__wait_ask(job, wait);
}

static int32_t
read_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    at_state *at = state;
    errand__wait *wait = &at->base.wait;
    int32_t code = errand__file_ready(job, &at->base), result;

    if (code != 0)
        return code; /* a helper may still write its result */
    result = wait->io.result;
    if (!wait->asked || wait->io.kind == ERRAND_IO_POLL)
        return read_on(job, at);
    if (result == -EAGAIN)
        return errand__wait_poll(job, wait, errand_file_fd(at->base.file), POLLIN);
    if (result < 0 && result != -EINTR)
        return errand__operation_refused(job, -result, "read", "the file cannot be read");
    at->done += result > 0 ? (size_t)result : 0;
    if (at->max != 0 && at->done > at->max)
        return errand__operation_failed(job, ERRAND_OPERATION_TOO_LARGE,
                                        "there are more than %zu bytes", at->max);
    if (result == -EINTR ||
        (result > 0 && (at->max != 0 || (at->done < at->size && at->offset >= 0))))
        return read_on(job, at);
    if (at->moves)
        errand__file_move(at->base.file, at->offset + (int64_t)at->done);
    errand__operation_payload_bytes(out_payload, at->block, at->done);
    at->block = NULL;
    return 0;
}

static int32_t
write_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    at_state *at = state;
    errand__wait *wait = &at->base.wait;
    int32_t code = errand__file_ready(job, &at->base), result;

    if (code != 0)
        return code; /* a helper may still write its result */
    result = wait->io.result;
    if (wait->asked && wait->io.kind != ERRAND_IO_POLL) {
        if (result == -EAGAIN)
            return errand__wait_poll(job, wait, errand_file_fd(at->base.file), POLLOUT);
        if (result < 0 && result != -EINTR)
            return errand__operation_refused(job, -result, "write",
                                             "the file cannot be written");
        at->done += result > 0 ? (size_t)result : 0;
    }
    find_position(at);
    if (at->done < at->size) {
        wait->io = (errand_io){
            .kind = ERRAND_IO_WRITE,
            .fd = errand_file_fd(at->base.file),
            .bytes = at->bytes + at->done,
            .length = at->size - at->done,
            .offset = next_offset(at),
        };
        return errand__wait_ask(job, wait);
    }
    code = errand__operation_written(job, at->size, out_payload);
    if (code == 0 && at->moves && !at->base.file->appends)
        errand__file_move(at->base.file, at->offset + (int64_t)at->size);
    return code;
}

static int32_t
sync_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    at_state *at = state;
    errand__wait *wait = &at->base.wait;
    int32_t code = errand__file_ready(job, &at->base);

    (void)out_payload;
    if (code != 0)
        return code;
    if (!wait->asked) {
        wait->io = (errand_io){.kind = ERRAND_IO_SYNC,
                               .fd = errand_file_fd(at->base.file),
                               .flags = at->flags};
        return errand__wait_ask(job, wait);
    }
    if (wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, "fsync",
                                         "the file is not on the disk");
    return 0;
}

static int32_t
stat_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    at_state *at = state;
    errand__wait *wait = &at->base.wait;
    int32_t code = errand__file_ready(job, &at->base);

    if (code != 0)
        return code;
    if (!wait->asked) {
        wait->io = (errand_io){.kind = ERRAND_IO_STAT,
                               .fd = errand_file_fd(at->base.file),
                               .path = "",
                               .flags = AT_EMPTY_PATH,
                               .mask = STATX_BASIC_STATS,
                               .out_stat = &at->status};
        return errand__wait_ask(job, wait);
    }
    if (wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, "statx",
                                         "cannot look at the file");
    return errand__file_give_stat(job, &at->status, out_payload);
}

static int32_t
truncate_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    at_state *at = state;
    errand__wait *wait = &at->base.wait;
    int32_t code = errand__file_ready(job, &at->base);

    (void)out_payload;
    if (code != 0)
        return code;
    if (!errand_file_is_seekable(at->base.file))
        return errand__operation_no_position(job);
    if (!wait->asked || wait->io.result == -EINTR) {
        wait->io = (errand_io){.kind = ERRAND_IO_TRUNCATE,
                               .fd = errand_file_fd(at->base.file),
                               .offset = at->offset};
        return errand__wait_ask(job, wait);
    }
    if (wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, "ftruncate",
                                         "the file cannot be made %lld bytes long",
                                         (long long)at->offset);
    return 0;
}

static void
at_drop(void *state)
{
    errand__operation_block_free(((at_state *)state)->block);
    errand__file_drop(state);
}
