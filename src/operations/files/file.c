/* SPDX-License-Identifier: MIT */
/* file: open files: the object, open, close. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/pause.h"
#include "operations/codec.h"
#include "operations/files/files.h"

typedef struct open_state {
    errand__file_state base;
    uint32_t mode;
    int flags;
    char path[];
} open_state;

static int32_t open_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t close_poll(errand_job *job, void *state, errand_payload *out_payload);
static void drop_file(void *data, size_t size);

const errand_payload_type errand_file_type = {"file", drop_file};
static const errand_job_type open_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "open",
    .poll = open_poll,
    .drop = errand__file_drop,
};
static const errand_job_type close_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "close file",
    .poll = close_poll,
    .drop = errand__file_drop,
};

errand_file *
errand__file_create(int fd)
{
    errand_file *made = errand__operation_block_alloc(sizeof *made);

    if (made == NULL)
        return NULL;
    atomic_init(&made->refs, 1);
    atomic_init(&made->fd, fd);
    atomic_init(&made->position, fd < 0 ? -1 : lseek(fd, 0, SEEK_CUR));
    made->appends = fd >= 0 && (fcntl(fd, F_GETFL) & O_APPEND) != 0;
    return made;
}

errand_file *
errand__file_create_detached(bool seekable)
{
    errand_file *made = errand__file_create(-1);

    if (made != NULL && seekable)
        atomic_init(&made->position, 0);
    return made;
}

errand_status
errand_file_adopt(int *take_fd, errand_file **out_file)
{
    ERRAND_REQUIRE_ARG(take_fd != NULL && *take_fd >= 0 && out_file != NULL,
                       ERRAND_EINVAL, "take_fd or out_file is missing");
    if (fcntl(*take_fd, F_SETFD, FD_CLOEXEC) != 0)
        return ERRAND_EINVAL;
    errand_file *made = errand__file_create(*take_fd);
    if (made == NULL)
        return ERRAND_ENOMEM;
    *take_fd = -1;
    *out_file = made;
    return ERRAND_OK;
}

errand_file *
errand_file_hold(errand_file *file)
{
    if (file != NULL)
        atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
    return file;
}

void
errand_file_abandon(errand_file **take_file)
{
    if (take_file == NULL || *take_file == NULL)
        return;
    errand_file *file = *take_file;
    *take_file = NULL;
    /* Pairs: file-refs */
    if (atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1)
        return;
    int fd = atomic_load_explicit(&file->fd, memory_order_relaxed);
    errand_helpers *helpers = atomic_load_explicit(&file->helpers, memory_order_relaxed);
    if (errand_file_is_seekable(file))
        errand__file_let(helpers, &fd);
    errand__operation_fd_close(&fd);
    errand_helpers_abandon(&helpers);
    errand__operation_block_free(file);
}

static int32_t
close_one(void *arg)
{
    ERRAND__PAUSE("file-let");
    return close((int)(intptr_t)arg);
}

void
errand__file_let(errand_helpers *helpers, int *take_fd)
{
    if (*take_fd >= 0)
        errand_helpers_call(helpers, close_one, (void *)(intptr_t)*take_fd);
    *take_fd = -1;
}

/* Whoever drops the last reference finds there who may wait for its close: of the reactor that was
 * the last one to begin something on it, since those before may have ended. */
static void
know_helpers(errand_job *job, errand_file *file)
{
    errand_helpers *helpers = errand_job_helpers(job);

    if (helpers != NULL && /* Pairs: file-helpers */
        helpers != atomic_load_explicit(&file->helpers, memory_order_relaxed))
        helpers = atomic_exchange_explicit(&file->helpers, helpers, memory_order_acq_rel);
    errand_helpers_abandon(&helpers);
}

int
errand_file_fd(const errand_file *file)
{
    return file == NULL ? -1 : atomic_load_explicit(&file->fd, memory_order_relaxed);
}

bool
errand_file_is_seekable(const errand_file *file)
{
    return file != NULL &&
           atomic_load_explicit(&file->position, memory_order_relaxed) >= 0;
}

/* ---- what all states have --------------------------------------------------------------------- */

errand_status
errand__file_state_create(errand_file *file, const char *shown, size_t size, size_t extra,
                          void **out_state)
{
    errand__file_state *state = errand__wait_create(size, extra, 0);

    if (state == NULL)
        return ERRAND_ENOMEM;
    state->file = errand_file_hold(file);
    state->shown = errand__operation_show(shown);
    *out_state = state;
    return ERRAND_OK;
}

void
errand__file_drop(void *state)
{
    errand__file_state *base = state;
    errand__wait *wait = &base->wait;

    /* Something was opened, after its body had ended. */
    if (wait->asked && wait->io.kind == ERRAND_IO_OPEN && wait->io.done &&
        wait->io.result >= 0) {
        int unwanted = errand__file_opened(wait);

        errand__file_let(wait->helpers, &unwanted);
    }
    errand_helpers_abandon(&wait->helpers);
    errand_file_abandon(&base->file);
    errand__operation_block_free(base);
}

int
errand__file_opened(errand__wait *wait)
{
    wait->io.kind = ERRAND_IO_NOTHING;
    return errand__operation_fd_raise(wait->io.result);
}

int32_t
errand__file_ready(errand_job *job, errand__file_state *state)
{
    int32_t code = errand__wait_ready(job, &state->wait);

    if (code == 0 && state->file != NULL && errand_file_fd(state->file) < 0)
        return errand__operation_failed(job, ERRAND_OPERATION_CLOSED,
                                        "the file is closed");
    if (code == 0 && state->file != NULL)
        know_helpers(job, state->file);
    return code;
}

/* ---- open and close ------------------------------------------------------------------------------ */

errand_status
errand_spec_open(errand_spec *out_spec, const char *path, uint32_t flags, uint32_t mode)
{
    const uint32_t both = ERRAND_OPEN_READ | ERRAND_OPEN_WRITE;
    void *made;

    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    ERRAND_REQUIRE_ARG(flags < 128 && (flags & both) != 0 && mode <= 07777, ERRAND_EINVAL,
                       "unknown flags, neither READ nor WRITE, or a wrong mode");
    ERRAND_REQUIRE_ARG((flags & ERRAND_OPEN_CREATE) == 0 ||
                           (flags & ERRAND_OPEN_WRITE) != 0,
                       ERRAND_EINVAL, "CREATE needs WRITE");
    size_t length = strlen(path) + 1;
    errand_status status =
        errand__file_state_create(NULL, path, sizeof(open_state), length, &made);
    if (status != ERRAND_OK)
        return status;
    open_state *state = made;
    memcpy(state->path, path, length);
    state->mode = mode == 0 ? 0666 : mode;
    state->flags = (flags & both) == both        ? O_RDWR
                   : (flags & ERRAND_OPEN_WRITE) ? O_WRONLY
                                                 : O_RDONLY;
    state->flags |= (flags & ERRAND_OPEN_CREATE) != 0 ? O_CREAT : 0;
    state->flags |= (flags & ERRAND_OPEN_EXCLUSIVE) != 0 ? O_EXCL : 0;
    state->flags |= (flags & ERRAND_OPEN_EMPTY) != 0 ? O_TRUNC : 0;
    state->flags |= (flags & ERRAND_OPEN_APPEND) != 0 ? O_APPEND : 0;
    state->flags |= (flags & ERRAND_OPEN_SYNCED) != 0 ? O_SYNC : 0;
    state->flags |= O_NOCTTY;
    errand__wait_spec(out_spec, ERRAND_KIND_OPEN, &open_job, state);
    return ERRAND_OK;
}

static int32_t
open_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    open_state *opens = state;
    errand__wait *wait = &opens->base.wait;
    int32_t code = errand__wait_ready(job, wait);

    if (code == 0 && !wait->asked) {
        errand__wait_helpers(job, wait);
        wait->io = (errand_io){
            .kind = ERRAND_IO_OPEN,
            .fd = AT_FDCWD,
            .path = opens->path,
            .flags = (uint32_t)opens->flags,
            .mode = opens->mode,
        };
        return errand__wait_ask(job, wait);
    }
    if (code != 0)
        return code;
    if (wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, "open",
                                         "cannot open '%s'", opens->base.shown.text);
    int fd = errand__file_opened(wait);
    if (fd < 0)
        return errand__operation_refused(job, errno, "fcntl", "cannot open '%s'",
                                         opens->base.shown.text);
    errand_file *made = errand__file_create(fd);
    if (made == NULL) {
        errand__file_let(wait->helpers, &fd);
        return errand__operation_no_memory(job, sizeof *made);
    }
    atomic_init(&made->helpers, wait->helpers);
    wait->helpers = NULL;
    errand__operation_payload(out_payload, &errand_file_type, made, sizeof(uint64_t));
    return 0;
}

errand_status
errand_spec_file_close(errand_spec *out_spec, errand_file *file)
{
    void *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && file != NULL, ERRAND_EINVAL,
                       "out_spec or file is NULL");
    /* Pairs: file-refs */
    if (atomic_load_explicit(&file->refs, memory_order_acquire) != 1)
        return ERRAND_EBUSY;
    errand_status status =
        errand__file_state_create(file, "", sizeof(errand__file_state), 0, &state);
    if (status != ERRAND_OK)
        return status;
    errand__wait_spec(out_spec, ERRAND_KIND_FILE_CLOSE, &close_job, state);
    return ERRAND_OK;
}

static int32_t
close_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    errand__file_state *closes = state;
    errand__wait *wait = &closes->wait;
    int32_t code;

    (void)out_payload;
    /* Once asked for, a close cannot be taken back: the number may be somebody else's. */
    if (wait->asked) {
        if (!wait->io.done)
            return ERRAND_PENDING;
        code = errand__file_closed(wait);
        if (code < 0)
            return errand__operation_refused(job, -code, "close",
                                             "something was not written");
        return 0;
    }
    code = errand__file_ready(job, closes);
    if (code != 0)
        return code;
    int fd = atomic_exchange_explicit(&closes->file->fd, -1, memory_order_relaxed);
    return errand__file_ask_close(job, wait, fd);
}

int32_t
errand__file_ask_close(errand_job *job, errand__wait *wait, int fd)
{
    wait->io = (errand_io){.kind = ERRAND_IO_CLOSE, .fd = fd};
    int32_t code = errand__wait_ask(job, wait);
    if (code != ERRAND_PENDING)
        errand__file_let(wait->helpers, &fd);
    return code;
}

int32_t
errand__file_closed(const errand__wait *wait)
{
    int32_t result = wait->io.result;

    /* Neither says anything of the bytes, and the descriptor is gone. */
    return result == -EINTR || result == -ECANCELED ? 0 : result;
}

/* ---- payload ---------------------------------------------------------------------------------------- */

static void
drop_file(void *data, size_t size)
{
    errand_file *file = data;

    (void)size;
    errand_file_abandon(&file);
}

uint64_t
errand_file_digest(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return errand__digest_plain("file", 4);
}

static bool
encode_file(const void *data, size_t size, errand_sink *sink)
{
    (void)size;
    errand_sink_word(sink, errand_file_is_seekable(data));
    return true;
}

static errand_status
decode_file(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};

    uint64_t seekable = errand__codec_read_word(&in);
    if (seekable > 1 || !in.good || in.left != 0)
        return ERRAND_EDECODE;
    errand_file *made = errand__file_create_detached(seekable == 1);
    if (made == NULL)
        return ERRAND_ENOMEM;
    errand__operation_payload(out_payload, &errand_file_type, made, sizeof(uint64_t));
    return ERRAND_OK;
}

static const errand_payload_codec file_codec = {sizeof file_codec, encode_file,
                                                decode_file};
const errand__codec_row errand__files_rows[] = {
    {&errand_file_type, errand_file_digest, &file_codec},
    {&errand_file_place_type, errand_file_place_digest, &errand__file_place_codec},
    {NULL, NULL, NULL},
};
