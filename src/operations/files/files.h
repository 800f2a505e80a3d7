/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_OPERATIONS_FILES_FILES_H
#define ERRAND_OPERATIONS_FILES_FILES_H
/* files, inside: open files as objects, and operations on a reactor.  See README.md. */
#include <sys/stat.h>
#include "errand/files.h"
#include "errand/record.h"
#include "operations/operations.h"

struct errand_file {
    /* refs: the host's references and those of operations.
     * Writers: whoever holds or abandons.   Readers: the same.
     * Order:   fetch_sub acq_rel; acquire where one asks whether it is alone.
     * Pairs:   file-refs.
     * Why:     the last one closes what the others used. */
    atomic_uint refs;
    /* fd: -1 = closed by a close operation, or of a replay.
     * Writers: the close operation's body, which is the only one then.   Readers: bodies, owner.
     * Order:   relaxed.
     * Pairs:   none.
     * Why:     completions order it; the owner may see either. */
    atomic_int fd;
    /* position: where it stands; -1 = it has no position.
     * Writers: bodies of operations at the position, one at a time.   Readers: the same, owner.
     * Order:   relaxed.
     * Pairs:   none.
     * Why:     completions order them; where a host has two at once, either counts. */
    _Atomic int64_t position;
    /* helpers: of the reactor that had the last operation on it: a reference; NULL = none yet.
     * Writers: bodies, when they begin.   Readers: bodies, whoever abandons it last.
     * Order:   exchange acq_rel, a load that only compares relaxed.
     * Pairs:   file-helpers.
     * Why:     whoever takes one out gives it up; file-refs orders it for the last one. */
    _Atomic(errand_helpers *) helpers;
    bool appends;
};
errand_file *errand__file_create(int fd); /* takes fd, if there is memory */

/* What the states of all file operations begin with. */
typedef struct errand__file_state {
    errand__wait wait;
    errand_file *file; /* a reference; NULL = none */
    errand__operation_shown shown;
} errand__file_state;
/* A state with so many bytes behind its size for texts; OK or ENOMEM. */
errand_status errand__file_state_create(errand_file *file, const char *shown, size_t size,
                                        size_t extra, void **out_state);
void errand__file_drop(void *state);
/* Closes a descriptor that nobody asks for any more, on a helper thread: it may wait for the disk. */
void errand__file_let(errand_helpers *helpers, int *take_fd);
/* ready, and whether the file is closed.  The same answers as errand__wait_ready. */
int32_t errand__file_ready(errand_job *job, errand__file_state *state);
/* The descriptor of a good OPEN, above 2; -1 and errno.  One that no body takes is closed by drop, on
 * wait's helpers. */
int errand__file_opened(errand__wait *wait);
/* Asks for its close: it is nobody's any more, whatever the answer.  closed: what came of it: 0, or
 * -errno: something was not written. */
int32_t errand__file_ask_close(errand_job *job, errand__wait *wait, int fd);
int32_t errand__file_closed(const errand__wait *wait);
/* Of a file that was decoded: nothing is behind it. */
errand_file *errand__file_create_detached(bool seekable);
/* Where it stands, or -1; and then there. */
int64_t errand__file_position(const errand_file *file);
void errand__file_move(errand_file *file, int64_t position);
extern const errand_payload_codec errand__file_place_codec;
/* The payload of a file's status. */
int32_t errand__file_give_stat(errand_job *job, const struct statx *status,
                               errand_payload *out_payload);
#endif
