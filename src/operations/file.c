/* SPDX-License-Identifier: MIT */
/* file: read, hash, write and append regular files, in pieces.
 *
 * Design notes: each body looks at what the path names before it opens it, because merely
 * opening a FIFO lets its other end go on, and some devices act when opened; and it looks again
 * at the open descriptor, because the path may name something else by then.  The open itself is
 * non-blocking, so nothing in between can hold the worker.  A file is emptied only when it is
 * known to be one. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "errand/traps.h"
#include "operations/operations.h"

enum { READ_DEFAULT = 64 * 1024 * 1024, GROWTH = 64 * 1024 };

typedef struct file_state {
    const char *path;
    errand__operation_shown shown; /* the path in messages */
    const char *bytes;
    size_t size; /* of bytes, or the most that may be read */
    uint32_t mode;
    int flags; /* of open */
} file_state;

static errand_status file_spec(errand_spec *out_spec, const char *path, const void *bytes,
                               size_t size, file_state **out_state);
static errand_status write_spec(errand_spec *out_spec, const char *path,
                                const void *bytes, size_t size, uint32_t mode, int flags);
static int32_t open_regular(errand_job *job, const file_state *file, int *out_fd,
                            uint64_t *out_size);
static int32_t refuse_irregular(errand_job *job, const file_state *file, mode_t mode);
static ssize_t read_piece(int fd, void *bytes, size_t size);
static int32_t stopped(errand_job *job, const file_state *file, const char *doing,
                       uint64_t done);
static int32_t read_run(errand_job *job, void *state, errand_payload *out_payload);
static int32_t read_all(errand_job *job, const file_state *file, int fd, size_t room,
                        errand_payload *out_payload);
static int32_t hash_run(errand_job *job, void *state, errand_payload *out_payload);
static int32_t hash_all(errand_job *job, const file_state *file, int fd, char *piece,
                        errand_hash *out_hash);
static int32_t write_run(errand_job *job, void *state, errand_payload *out_payload);
static int32_t write_all(errand_job *job, const file_state *file, int fd,
                         errand_file_written *done);

#define FILE_JOB(type, text, body)                                                       \
    static const errand_job_type type = {                                                \
        .struct_size = sizeof(errand_job_type),                                          \
        .name = text,                                                                    \
        .run = body,                                                                     \
        .drop = errand__operation_block_free,                                            \
    }
FILE_JOB(read_job, "read_file", read_run);
FILE_JOB(hash_job, "hash_file", hash_run);
FILE_JOB(write_job, "write_file", write_run);
FILE_JOB(append_job, "append_file", write_run);

errand_status
errand_spec_read_file(errand_spec *out_spec, const char *path, size_t max)
{
    file_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    errand_status status = file_spec(out_spec, path, NULL, 0, &state);
    if (status != ERRAND_OK)
        return status;
    state->size = max == 0 ? READ_DEFAULT : max;
    state->flags = O_RDONLY;
    errand__operation_spec_fill(out_spec, ERRAND_KIND_READ_FILE, &read_job, state);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    return ERRAND_OK;
}

errand_status
errand_spec_hash_file(errand_spec *out_spec, const char *path)
{
    file_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    errand_status status = file_spec(out_spec, path, NULL, 0, &state);
    if (status != ERRAND_OK)
        return status;
    state->flags = O_RDONLY;
    errand__operation_spec_fill(out_spec, ERRAND_KIND_HASH_FILE, &hash_job, state);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    return ERRAND_OK;
}

errand_status
errand_spec_write_file(errand_spec *out_spec, const char *path, const void *bytes,
                       size_t size, uint32_t mode)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    ERRAND_REQUIRE_ARG(bytes != NULL || size == 0, ERRAND_EINVAL, "bytes is NULL");
    ERRAND_REQUIRE_ARG(mode <= 07777, ERRAND_EINVAL,
                       "mode has more than permission bits");
    return write_spec(out_spec, path, bytes, size, mode, O_WRONLY | O_CREAT);
}

errand_status
errand_spec_append_file(errand_spec *out_spec, const char *path, const void *bytes,
                        size_t size, uint32_t mode)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    ERRAND_REQUIRE_ARG(bytes != NULL || size == 0, ERRAND_EINVAL, "bytes is NULL");
    ERRAND_REQUIRE_ARG(mode <= 07777, ERRAND_EINVAL,
                       "mode has more than permission bits");
    return write_spec(out_spec, path, bytes, size, mode, O_WRONLY | O_CREAT | O_APPEND);
}

static errand_status
file_spec(errand_spec *out_spec, const char *path, const void *bytes, size_t size,
          file_state **out_state)
{
    size_t length = strlen(path) + 1;

    (void)out_spec;
    if (size > PTRDIFF_MAX - sizeof(file_state) - length)
        return ERRAND_ENOMEM;
    file_state *state = errand__operation_block_alloc_for(sizeof *state, length + size);
    if (state == NULL)
        return ERRAND_ENOMEM;
    errand__operation_cursor cursor = {(char *)(state + 1)};
    state->path = errand__operation_copy(&cursor, path, length);
    state->bytes = errand__operation_copy(&cursor, bytes, size);
    state->size = size;
    state->shown = errand__operation_show(path);
    *out_state = state;
    return ERRAND_OK;
}

static errand_status
write_spec(errand_spec *out_spec, const char *path, const void *bytes, size_t size,
           uint32_t mode, int flags)
{
    bool append = (flags & O_APPEND) != 0;
    file_state *state;

    errand_status status = file_spec(out_spec, path, bytes, size, &state);
    if (status != ERRAND_OK)
        return status;
    state->mode = mode == 0 ? 0666 : mode;
    state->flags = flags;
    errand__operation_spec_fill(out_spec,
                                append ? ERRAND_KIND_APPEND_FILE : ERRAND_KIND_WRITE_FILE,
                                append ? &append_job : &write_job, state);
    return ERRAND_OK;
}

static int32_t
open_regular(errand_job *job, const file_state *file, int *out_fd, uint64_t *out_size)
{
    struct stat status;

    if (errand_job_cancelled(job))
        return stopped(job, file, "opening", 0);
    if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode))
        return refuse_irregular(job, file, status.st_mode);
    int fd = errand__operation_fd_open(file->path, file->flags, file->mode);
    if (fd < 0)
        return errand__operation_refused(job, errno, "open", "cannot open '%s'",
                                         file->shown.text);
    if (fstat(fd, &status) != 0) {
        errand__operation_fd_close(&fd);
        return errand__operation_refused(job, errno, "fstat", "cannot look at '%s'",
                                         file->shown.text);
    }
    if (!S_ISREG(status.st_mode)) {
        errand__operation_fd_close(&fd);
        return refuse_irregular(job, file, status.st_mode);
    }
    *out_fd = fd;
    *out_size = (uint64_t)status.st_size;
    return 0;
}

static int32_t
refuse_irregular(errand_job *job, const file_state *file, mode_t mode)
{
    if (S_ISDIR(mode))
        return errand__operation_refused(job, EISDIR, "open", "cannot open '%s'",
                                         file->shown.text);
    return errand__operation_failed(job, ERRAND_OPERATION_NOT_REGULAR,
                                    "'%s' is a %s, not a file", file->shown.text,
                                    S_ISFIFO(mode)   ? "fifo"
                                    : S_ISSOCK(mode) ? "socket"
                                                     : "device");
}

/* Reads until size bytes or the end; -1 and errno on failure. */
static ssize_t
read_piece(int fd, void *bytes, size_t size)
{
    ssize_t count;

    do {
        count = read(fd, bytes, size < OPERATION_PIECE ? size : OPERATION_PIECE);
    } while (count < 0 && errno == EINTR);
    return count;
}

static int32_t
stopped(errand_job *job, const file_state *file, const char *doing, uint64_t done)
{
    return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                    "%s '%s' was cancelled after %llu bytes", doing,
                                    file->shown.text, (unsigned long long)done);
}

static int32_t
read_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const file_state *file = state;
    uint64_t size = 0;
    int fd = -1;

    int32_t code = open_regular(job, file, &fd, &size);
    if (code != 0)
        return code;
    if (size > file->size)
        code = errand__operation_failed(job, ERRAND_OPERATION_TOO_LARGE,
                                        "'%s' has %llu bytes, at most %zu were allowed",
                                        file->shown.text, (unsigned long long)size,
                                        file->size);
    else
        code = read_all(job, file, fd, (size_t)size + 1, out_payload);
    errand__operation_fd_close(&fd);
    return code;
}

/* room: how many bytes to make room for first: one more than there should be, so that the end
 * is seen without growing.  The file may grow or shrink meanwhile, or hide its size. */
static int32_t
read_all(errand_job *job, const file_state *file, int fd, size_t room,
         errand_payload *out_payload)
{
    const size_t front = sizeof(errand_file_bytes);
    size_t used = 0;
    int32_t code = 0;

    char *block = errand__operation_bytes_alloc(room);
    if (block == NULL)
        return errand__operation_no_memory(job, room);
    for (;;) {
        if (errand_job_cancelled(job)) {
            code = stopped(job, file, "reading", used);
            break;
        }
        ssize_t count = read_piece(fd, block + front + used, room - used);
        if (count < 0) {
            code = errand__operation_refused(job, errno, "read", "cannot read '%s'",
                                             file->shown.text);
            break;
        }
        used += (size_t)count;
        if (used > file->size) {
            code = errand__operation_failed(job, ERRAND_OPERATION_TOO_LARGE,
                                            "'%s' has more than the %zu bytes allowed",
                                            file->shown.text, file->size);
            break;
        }
        if (count == 0) {
            errand__operation_payload_bytes(out_payload, block, used);
            return 0;
        }
        if (used == room) {
            size_t wider = room > PTRDIFF_MAX / 4 ? PTRDIFF_MAX : 2 * room + GROWTH;
            wider = file->size < wider ? file->size + 1 : wider;
            char *larger = errand__operation_block_grow(block, front + wider + 1);
            if (larger == NULL) {
                code = errand__operation_no_memory(job, wider);
                break;
            }
            block = larger;
            room = wider;
        }
    }
    errand__operation_block_free(block);
    return code;
}

static int32_t
hash_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const file_state *file = state;
    uint64_t size;
    int fd = -1;

    int32_t code = open_regular(job, file, &fd, &size);
    if (code != 0)
        return code;
    char *piece = errand__operation_block_alloc_bare(OPERATION_PIECE);
    errand_hash *hash = errand__operation_block_alloc(sizeof *hash);
    if (piece == NULL || hash == NULL)
        code = errand__operation_no_memory(job, OPERATION_PIECE);
    else
        code = hash_all(job, file, fd, piece, hash);
    errand__operation_fd_close(&fd);
    errand__operation_block_free(piece);
    if (code == 0)
        errand__operation_payload(out_payload, &errand_hash_type, hash, sizeof *hash);
    else
        errand__operation_block_free(hash);
    return code;
}

static int32_t
hash_all(errand_job *job, const file_state *file, int fd, char *piece,
         errand_hash *out_hash)
{
    XXH3_state_t mix;

    XXH3_64bits_reset(&mix);
    for (;;) {
        if (errand_job_cancelled(job))
            return stopped(job, file, "hashing", out_hash->size);
        ssize_t count = read_piece(fd, piece, OPERATION_PIECE);
        if (count < 0)
            return errand__operation_refused(job, errno, "read", "cannot read '%s'",
                                             file->shown.text);
        if (count == 0)
            break;
        XXH3_64bits_update(&mix, piece, (size_t)count);
        out_hash->size += (uint64_t)count;
    }
    out_hash->value = XXH3_64bits_digest(&mix);
    return 0;
}

static int32_t
write_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const file_state *file = state;
    uint64_t size;
    int fd = -1;

    errand_file_written *done = errand__operation_block_alloc(sizeof *done);
    if (done == NULL)
        return errand__operation_no_memory(job, sizeof *done);
    int32_t code = open_regular(job, file, &fd, &size);
    if (code == 0 && (file->flags & O_APPEND) == 0 && size > 0 && ftruncate(fd, 0) != 0)
        code = errand__operation_refused(job, errno, "ftruncate", "cannot empty '%s'",
                                         file->shown.text);
    if (code == 0)
        code = write_all(job, file, fd, done);
    /* Some file systems report a full disk only here; EINTR says nothing about the bytes. */
    if (fd >= 0 && close(fd) != 0 && errno != EINTR && code == 0)
        code = errand__operation_refused(job, errno, "close",
                                         "cannot finish writing '%s'", file->shown.text);
    if (code == 0)
        errand__operation_payload(out_payload, &errand_file_written_type, done,
                                  sizeof *done);
    else
        errand__operation_block_free(done);
    return code;
}

static int32_t
write_all(errand_job *job, const file_state *file, int fd, errand_file_written *done)
{
    while (done->written < file->size) {
        size_t left = file->size - (size_t)done->written;
        if (errand_job_cancelled(job))
            return stopped(job, file, "writing", done->written);
        ssize_t count = write(fd, file->bytes + done->written,
                              left < OPERATION_PIECE ? left : OPERATION_PIECE);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return errand__operation_refused(job, count < 0 ? errno : EIO, "write",
                                             "cannot write '%s' after %llu bytes",
                                             file->shown.text,
                                             (unsigned long long)done->written);
        done->written += (uint64_t)count;
    }
    return 0;
}
