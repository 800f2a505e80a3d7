/* SPDX-License-Identifier: MIT */
/* copy: a regular file's bytes into another, without passing through this process.
 *
 * Design notes: the kernel moves pages from the file into a pipe and from there into the other one.
 * The second file is not emptied before it is known to be another file than the first.  What is
 * in the pipe when it ends early is lost with it; what was written stays.  Some file systems say
 * only when it is closed that there was no room, so that is part of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/pause.h"
#include "operations/files/files.h"

enum { PIPE_SIZE = 1 << 20 };

typedef enum copy_step {
    COPY_BEGIN,
    COPY_FROM, /* is being opened */
    COPY_LOOK,
    COPY_TO,
    COPY_LOOK_TO,
    COPY_EMPTY,
    COPY_IN, /* into the pipe */
    COPY_OUT,
    COPY_CLOSE
} copy_step;
typedef struct copy_state {
    errand__file_state base;
    copy_step step;
    int from, to, pipe[2];
    uint64_t done, held; /* bytes: written; in the pipe */
    struct statx status, to_status;
    const char *to_path;
    char path[];
} copy_state;

static int32_t copy_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t go_on(errand_job *job, copy_state *copy);
static int32_t ask_open(errand_job *job, copy_state *copy, const char *path, int flags,
                        uint32_t mode);
static int32_t ask_status(errand_job *job, copy_state *copy, int fd,
                          struct statx *out_status);
static int32_t looked_to(errand_job *job, copy_state *copy);
static int32_t ask_splice(errand_job *job, copy_state *copy);
static int32_t move(errand_job *job, copy_state *copy);
static int32_t ask_close(errand_job *job, copy_state *copy);
static int32_t refused(errand_job *job, const copy_state *copy, int error,
                       const char *call);
static void copy_drop(void *state);

static const errand_job_type copy_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "copy",
    .poll = copy_poll,
    .drop = copy_drop,
};

errand_status
errand_spec_copy(errand_spec *out_spec, const char *from, const char *to)
{
    void *made;

    ERRAND_REQUIRE_ARG(out_spec != NULL && from != NULL && from[0] != 0 && to != NULL &&
                           to[0] != 0,
                       ERRAND_EINVAL, "out_spec, from or to is missing");
    size_t length = strlen(from) + 1, to_length = strlen(to) + 1;
    errand_status status = errand__file_state_create(NULL, from, sizeof(copy_state),
                                                     length + to_length, &made);
    if (status != ERRAND_OK)
        return status;
    copy_state *state = made;
    memcpy(state->path, from, length);
    state->to_path = memcpy(state->path + length, to, to_length);
    state->from = state->to = state->pipe[0] = state->pipe[1] = -1;
    errand__wait_spec(out_spec, ERRAND_KIND_COPY, &copy_job, state);
    return ERRAND_OK;
}

static int32_t
copy_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    copy_state *copy = state;
    int32_t code = errand__wait_ready(job, &copy->base.wait);

    if (code == 0)
        code = go_on(job, copy);
    return code != 0 ? code : errand__operation_written(job, copy->done, out_payload);
}

static int32_t
go_on(errand_job *job, copy_state *copy)
{
    errand__wait *wait = &copy->base.wait;
    int32_t result = wait->io.result;

    switch (copy->step) {
    case COPY_BEGIN:
        copy->step = COPY_FROM;
        errand__wait_helpers(job, &copy->base.wait);
        /* What would wait for a writer is not copied. */
        return ask_open(job, copy, copy->path, O_RDONLY | O_NONBLOCK, 0);
    case COPY_FROM:
        if (result < 0)
            return refused(job, copy, -result, "open");
        copy->from = errand__file_opened(wait);
        copy->step = COPY_LOOK;
        return ask_status(job, copy, copy->from, &copy->status);
    case COPY_LOOK:
        if (result < 0)
            return refused(job, copy, -result, "statx");
        if (!S_ISREG(copy->status.stx_mode))
            return errand__operation_failed(
                job,
                S_ISDIR(copy->status.stx_mode) ? ERRAND_OPERATION_IS_DIRECTORY
                                               : ERRAND_OPERATION_NOT_REGULAR,
                "'%s' is no regular file", copy->base.shown.text);
        copy->step = COPY_TO;
        return ask_open(job, copy, copy->to_path, O_WRONLY | O_CREAT | O_NOCTTY,
                        copy->status.stx_mode & 07777);
    case COPY_TO:
        if (result < 0)
            return refused(job, copy, -result, "open");
        copy->to = errand__file_opened(wait);
        copy->step = COPY_LOOK_TO;
        return ask_status(job, copy, copy->to, &copy->to_status);
    case COPY_LOOK_TO:
        if (result < 0)
            return refused(job, copy, -result, "statx");
        return looked_to(job, copy);
    case COPY_EMPTY:
        if (result < 0)
            return refused(job, copy, -result, "ftruncate");
        if (!errand__operation_fd_pipe(copy->pipe))
            return refused(job, copy, errno, "pipe2");
        fcntl(copy->pipe[1], F_SETPIPE_SZ, PIPE_SIZE); /* or whatever is allowed */
        copy->step = COPY_IN;
        return ask_splice(job, copy);
    case COPY_IN:
    case COPY_OUT:
        break;
    case COPY_CLOSE:
        result = errand__file_closed(wait);
        return result < 0 ? refused(job, copy, -result, "close") : 0;
    }
    return move(job, copy);
}

static int32_t
ask_open(errand_job *job, copy_state *copy, const char *path, int flags, uint32_t mode)
{
    copy->base.shown = errand__operation_show(path);
    copy->base.wait.io = (errand_io){.kind = ERRAND_IO_OPEN,
                                     .fd = AT_FDCWD,
                                     .path = path,
                                     .flags = (uint32_t)flags,
                                     .mode = mode};
    return errand__wait_ask(job, &copy->base.wait);
}

static int32_t
ask_splice(errand_job *job, copy_state *copy)
{
    errand__wait *wait = &copy->base.wait;

    wait->io = (errand_io){.kind = ERRAND_IO_SPLICE, .offset = -1, .to_offset = -1};
    if (copy->step == COPY_IN) {
        wait->io.fd = copy->from;
        wait->io.to_fd = copy->pipe[1];
        wait->io.length = PIPE_SIZE;
    } else {
        wait->io.fd = copy->pipe[0];
        wait->io.to_fd = copy->to;
        wait->io.length = copy->held;
    }
    return errand__wait_ask(job, wait);
}

static int32_t
ask_status(errand_job *job, copy_state *copy, int fd, struct statx *out_status)
{
    copy->base.wait.io = (errand_io){.kind = ERRAND_IO_STAT,
                                     .fd = fd,
                                     .path = "",
                                     .flags = AT_EMPTY_PATH,
                                     .mask = STATX_BASIC_STATS,
                                     .out_stat = out_status};
    return errand__wait_ask(job, &copy->base.wait);
}

static int32_t
looked_to(errand_job *job, copy_state *copy)
{
    const struct statx *from = &copy->status, *to = &copy->to_status;

    if (from->stx_dev_major == to->stx_dev_major &&
        from->stx_dev_minor == to->stx_dev_minor && from->stx_ino == to->stx_ino)
        return errand__operation_failed(job, ERRAND_OPERATION_EXISTS,
                                        "'%s' is the file itself", copy->base.shown.text);
    if (!S_ISREG(to->stx_mode))
        return errand__operation_failed(job, ERRAND_OPERATION_NOT_REGULAR,
                                        "'%s' is no regular file", copy->base.shown.text);
    copy->step = COPY_EMPTY;
    copy->base.wait.io =
        (errand_io){.kind = ERRAND_IO_TRUNCATE, .fd = copy->to, .offset = 0};
    return errand__wait_ask(job, &copy->base.wait);
}

static int32_t
move(errand_job *job, copy_state *copy)
{
    int32_t result = copy->base.wait.io.result;

    if (result < 0 && result != -EINTR)
        return refused(job, copy, -result, "splice");
    if (copy->step == COPY_IN) {
        if (result == 0)
            return ask_close(job, copy);
        if (result > 0) {
            copy->held = (uint64_t)result;
            copy->step = COPY_OUT;
        }
    } else if (result > 0) {
        copy->done += (uint64_t)result;
        copy->held -= (uint64_t)result;
        if (copy->held == 0)
            copy->step = COPY_IN;
    } else if (result == 0) {
        return refused(job, copy, EIO, "splice");
    }
    return ask_splice(job, copy);
}

static int32_t
ask_close(errand_job *job, copy_state *copy)
{
    int fd = copy->to;

    copy->to = -1;
    copy->step = COPY_CLOSE;
    ERRAND__PAUSE("copy-close");
    return errand__file_ask_close(job, &copy->base.wait, fd);
}

static int32_t
refused(errand_job *job, const copy_state *copy, int error, const char *call)
{
    return errand__operation_refused(job, error, call, "cannot copy: '%s'",
                                     copy->base.shown.text);
}

static void
copy_drop(void *state)
{
    copy_state *copy = state;

    errand__file_let(copy->base.wait.helpers, &copy->from);
    errand__file_let(copy->base.wait.helpers, &copy->to);
    errand__operation_fd_close(&copy->pipe[0]);
    errand__operation_fd_close(&copy->pipe[1]);
    errand__file_drop(copy);
}
