/* SPDX-License-Identifier: MIT */
/* paths: what is done with a name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "operations/files/files.h"

typedef struct path_state {
    errand__file_state base;
    errand_io io; /* what is asked for */
    const char *call, *what;
    struct statx status;
    char text[];
} path_state;

static int32_t path_poll(errand_job *job, void *state, errand_payload *out_payload);

#define PATH_JOB(what, text)                                                             \
    static const errand_job_type what##_job = {                                          \
        .struct_size = sizeof(errand_job_type),                                          \
        .name = text,                                                                    \
        .poll = path_poll,                                                               \
        .drop = errand__file_drop,                                                       \
    }
PATH_JOB(stat, "stat");
PATH_JOB(rename, "rename");
PATH_JOB(unlink, "unlink");
PATH_JOB(mkdir, "mkdir");

static errand_status
prepare(errand_spec *out_spec, uint32_t kind, const errand_job_type *type,
        const char *path, const char *to, path_state **out_state)
{
    size_t length = strlen(path) + 1, to_length = to == NULL ? 0 : strlen(to) + 1;
    void *made;
    errand_status status = errand__file_state_create(NULL, path, sizeof(path_state),
                                                     length + to_length, &made);

    if (status != ERRAND_OK)
        return status;
    path_state *state = made;
    memcpy(state->text, path, length);
    if (to != NULL)
        memcpy(state->text + length, to, to_length);
    state->io.fd = AT_FDCWD;
    state->io.path = state->text;
    *out_state = state;
    errand__wait_spec(out_spec, kind, type, state);
    return ERRAND_OK;
}

errand_status
errand_spec_stat(errand_spec *out_spec, const char *path, bool follow)
{
    path_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    errand_status status =
        prepare(out_spec, ERRAND_KIND_STAT, &stat_job, path, NULL, &state);
    if (status != ERRAND_OK)
        return status;
    state->io.kind = ERRAND_IO_STAT;
    state->io.flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
    state->io.mask = STATX_BASIC_STATS;
    state->io.out_stat = &state->status;
    state->call = "statx";
    state->what = "cannot look at";
    return ERRAND_OK;
}

errand_status
errand_spec_rename(errand_spec *out_spec, const char *from, const char *to, bool replace)
{
    path_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && from != NULL && from[0] != 0 && to != NULL &&
                           to[0] != 0,
                       ERRAND_EINVAL, "out_spec, from or to is missing");
    errand_status status =
        prepare(out_spec, ERRAND_KIND_RENAME, &rename_job, from, to, &state);
    if (status != ERRAND_OK)
        return status;
    state->io.kind = ERRAND_IO_RENAME;
    state->io.to_fd = AT_FDCWD;
    state->io.to_path = state->text + strlen(from) + 1;
    state->io.flags = replace ? 0 : RENAME_NOREPLACE;
    state->call = "renameat2";
    state->what = "cannot rename";
    return ERRAND_OK;
}

errand_status
errand_spec_unlink(errand_spec *out_spec, const char *path, bool directory)
{
    path_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    errand_status status =
        prepare(out_spec, ERRAND_KIND_UNLINK, &unlink_job, path, NULL, &state);
    if (status != ERRAND_OK)
        return status;
    state->io.kind = ERRAND_IO_UNLINK;
    state->io.flags = directory ? AT_REMOVEDIR : 0;
    state->call = "unlinkat";
    state->what = "cannot remove";
    return ERRAND_OK;
}

errand_status
errand_spec_mkdir(errand_spec *out_spec, const char *path, uint32_t mode)
{
    path_state *state;

    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0 && mode <= 07777,
                       ERRAND_EINVAL, "out_spec or path is missing, or a wrong mode");
    errand_status status =
        prepare(out_spec, ERRAND_KIND_MKDIR, &mkdir_job, path, NULL, &state);
    if (status != ERRAND_OK)
        return status;
    state->io.kind = ERRAND_IO_MKDIR;
    state->io.mode = mode == 0 ? 0777 : mode;
    state->call = "mkdirat";
    state->what = "cannot make";
    return ERRAND_OK;
}

static int32_t
path_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    path_state *path = state;
    errand__wait *wait = &path->base.wait;
    int32_t code = errand__wait_ready(job, wait);

    if (code != 0)
        return code;
    if (!wait->asked) {
        wait->io = path->io;
        return errand__wait_ask(job, wait);
    }
    if (wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, path->call, "%s '%s'",
                                         path->what, path->base.shown.text);
    return path->io.kind == ERRAND_IO_STAT
               ? errand__file_give_stat(job, &path->status, out_payload)
               : 0;
}

int32_t
errand__file_give_stat(errand_job *job, const struct statx *status,
                       errand_payload *out_payload)
{
    errand_file_stat *result = errand__operation_block_alloc(sizeof *result);

    if (result == NULL)
        return errand__operation_no_memory(job, sizeof *result);
    result->kind = errand__file_kind(status->stx_mode);
    result->mode = status->stx_mode & 07777;
    result->size = status->stx_size;
    result->mtime_ns = status->stx_mtime.tv_sec * 1000000000 + status->stx_mtime.tv_nsec;
    errand__operation_payload(out_payload, &errand_file_stat_type, result,
                              sizeof *result);
    return 0;
}
