/* SPDX-License-Identifier: MIT */
/* scan: a directory's entries, on a reactor.
 *
 * Design notes: the system has no request for them, so a helper thread reads them, some thousand at
 * a time; between two pieces others have their turn there, and a cancel comes through. */
#include <errno.h>
#include <string.h>
#include "core/pause.h"
#include "operations/files/files.h"

enum { SCAN_DEFAULT = 1 << 20, PIECES = 16 };

typedef struct scan_state {
    errand__file_state base;
    size_t max;
    DIR *stream;  /* of the helper while a call is under way */
    bool refused; /* it could not be opened */
    errand__dir_names list;
    char path[];
} scan_state;

static int32_t scan_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t ask(errand_job *job, scan_state *scan);
static int32_t end_stream(void *arg);
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

/* On a helper thread.  0 = open, or as errand__dir_read answers. */
static int32_t
read_some(void *arg)
{
    scan_state *scan = arg;
    int32_t answer = ERRAND__DIR_MORE;

    ERRAND__PAUSE("scan");
    if (scan->stream == NULL) {
        scan->stream = errand__dir_open(scan->path);
        scan->refused = scan->stream == NULL;
        if (scan->refused)
            return -errno;
    }
    for (int i = 0; i < PIECES && answer == ERRAND__DIR_MORE; i++)
        answer = errand__dir_read(scan->stream, scan->max, &scan->list);
    if (answer != ERRAND__DIR_MORE) {
        (void)end_stream(scan->stream);
        scan->stream = NULL;
    }
    return answer;
}

static int32_t
scan_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    scan_state *scan = state;
    errand__wait *wait = &scan->base.wait;
    int32_t code = errand__wait_ready(job, wait), answer;

    if (code != 0)
        return code; /* a helper may still write its answer */
    answer = wait->io.result;
    if (!wait->asked || answer == ERRAND__DIR_MORE)
        return ask(job, scan);
    if (scan->refused)
        return errand__operation_refused(
            job, -answer, "open", "cannot open directory '%s'", scan->base.shown.text);
    return answer == ERRAND__DIR_END
               ? errand__dir_give(job, &scan->list, out_payload)
               : errand__dir_refused(job, answer, scan->base.shown.text, scan->max,
                                     &scan->list);
}

static int32_t
ask(errand_job *job, scan_state *scan)
{
    errand__wait *wait = &scan->base.wait;

    errand__wait_helpers(job, wait);
    return wait->helpers != NULL ? errand__wait_call(job, wait, read_some, scan)
                                 : errand__operation_no_reactor(job);
}

static int32_t
end_stream(void *arg)
{
    return closedir(arg);
}

static void
scan_drop(void *state)
{
    scan_state *scan = state;

    if (scan->stream != NULL)
        errand_helpers_call(scan->base.wait.helpers, end_stream, scan->stream);
    errand__operation_block_free(scan->list.text);
    errand__file_drop(scan);
}
