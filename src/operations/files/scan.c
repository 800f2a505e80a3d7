/* SPDX-License-Identifier: MIT */
/* scan: a directory's entries, on a reactor.
 *
 * Design notes: the system has no request for them, so they are read by the body, some hundred at a
 * time; between two pieces it wakes itself and lets others go first. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "operations/files/files.h"

enum { SCAN_DEFAULT = 1 << 20 };

typedef struct scan_state {
    errand__file_state base;
    size_t max;
    DIR *stream;
    errand__dir_names list;
    char path[];
} scan_state;

static int32_t scan_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t begin(errand_job *job, scan_state *scan);
static void scan_drop(void *state);

static const errand_job_type scan_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "scan",
    .poll = scan_poll,
    .drop = scan_drop,
};

errand_status
errand_spec_scan(errand_spec *out_spec, const char *path, size_t max)
{
    void *made;

    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    size_t length = strlen(path) + 1;
    errand_status status =
        errand__file_state_create(NULL, path, sizeof(scan_state), length, &made);
    if (status != ERRAND_OK)
        return status;
    scan_state *state = made;
    memcpy(state->path, path, length);
    state->max = max == 0 ? SCAN_DEFAULT : max;
    errand__wait_spec(out_spec, ERRAND_KIND_SCAN, &scan_job, state);
    return ERRAND_OK;
}

static int32_t
scan_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    scan_state *scan = state;
    errand__wait *wait = &scan->base.wait;
    int32_t code = errand__wait_ready(job, wait);
    bool more = true;

    if (code == 0 && !wait->asked) {
        wait->io = (errand_io){.kind = ERRAND_IO_OPEN,
                               .fd = AT_FDCWD,
                               .path = scan->path,
                               .flags = O_RDONLY | O_DIRECTORY};
        return errand__wait_ask(job, wait);
    }
    if (code == 0 && scan->stream == NULL)
        code = begin(job, scan);
    if (code == 0)
        code = errand__dir_piece(job, scan->stream, scan->base.shown.text, scan->max,
                                 &scan->list, &more);
    if (code == 0 && more) {
        errand_waker *waker = errand_job_waker(job);

        errand_waker_wake(waker);
        errand_waker_abandon(&waker);
        return ERRAND_PENDING;
    }
    return code != 0 ? code : errand__dir_give(job, &scan->list, out_payload);
}

static int32_t
begin(errand_job *job, scan_state *scan)
{
    errand__wait *wait = &scan->base.wait;

    if (wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, "open",
                                         "cannot open directory '%s'",
                                         scan->base.shown.text);
    int fd = errand__file_opened(wait);
    scan->stream = fd < 0 ? NULL : fdopendir(fd);
    if (scan->stream != NULL)
        return 0;
    int32_t code = errand__operation_refused(
        job, errno, "fdopendir", "cannot read directory '%s'", scan->base.shown.text);
    errand__operation_fd_close(&fd);
    return code;
}

static void
scan_drop(void *state)
{
    scan_state *scan = state;

    if (scan->stream != NULL)
        closedir(scan->stream);
    errand__operation_block_free(scan->list.text);
    errand__file_drop(scan);
}
