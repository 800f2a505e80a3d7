/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FILES_H
#define ERRAND_FILES_H
/* files: open files as objects, and what is done with files and folders without a thread
 * for each.  Whole files at once, on a pool of threads: errand/operations.h, which also
 * has the failures.  Conventions: errand.h.
 *
 *     status = errand_spec_open(&spec, "notes.txt", ERRAND_OPEN_READ, 0);
 *     errand_file *file = errand_completion_take(completion).data;
 *     status = errand_spec_read_at(&spec, file, 4096, 0);
 *     errand_file_abandon(&file);
 *
 * Class: all are interruptible and async: for a reactor (errand/io.h), where even an open
 *   that never ends (a FIFO that nobody writes to) can be cancelled and has a deadline.
 *   How many the system does at once: helpers of errand_reactor_config; more wait.
 * Cancelled, or beyond its deadline: it ends when the system has given it back, as
 *   STOPPED or with ERRAND_CODE_DEADLINE; what a write did until then is done.
 * Ownership: files are counted; a completion's payload is one reference, each operation
 *   has one until its state is dropped; the last one closes the descriptor: on a helper thread of the
 *   reactor that had the last operation on it, soon, and before that reactor has ended; where
 *   there is none, or it has ended, on the caller's, before errand_file_abandon returns.  An object is used by one thread at
 *   a time, its runtime's.
 * At once: any number of operations per file; where they overlap the system decides.  Those
 *   at its position are for one at a time, or for a domain of the file's own (spec.domain):
 *   then they run as submitted, each where the one before it left off.
 * Failures: NOT_FOUND, PERMISSION, EXISTS, IS_DIRECTORY, NOT_DIRECTORY, NO_SPACE, LIMIT,
 *   TOO_LARGE, MEMORY, STOPPED, UNSUPPORTED, IO, and CLOSED (it was closed before).
 * All functions are [any] unless they say otherwise.
 * Errors of errand_spec_*: ENOMEM · EINVAL (NULL, an empty path, unknown flags). */
#include "errand/operations.h"
ERRAND_BEGIN

/* An open file.   Thread: [any]. */
typedef struct errand_file errand_file;
ERRAND_API extern const errand_payload_type errand_file_type; /* data: the file */
ERRAND_API uint64_t errand_file_digest(const void *data, size_t size);

enum {
    ERRAND_OPEN_READ = 1,
    ERRAND_OPEN_WRITE = 2,
    ERRAND_OPEN_CREATE = 4,    /* with mode, if it is not there */
    ERRAND_OPEN_EXCLUSIVE = 8, /* with CREATE: EXISTS if it is */
    ERRAND_OPEN_EMPTY = 16,    /* what it held is gone */
    ERRAND_OPEN_APPEND = 32,   /* each write goes to its end */
    ERRAND_OPEN_SYNCED = 64    /* a write is done when it is on the disk */
};
/* errand_spec_open: mode 0 = 0666; less the umask.   Gives: errand_file_type.
 * Errors: ENOMEM · EINVAL (neither READ nor WRITE; CREATE without WRITE). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_open(errand_spec *out_spec, const char *path, uint32_t flags, uint32_t mode);
/* errand_file_adopt: a descriptor of the host's becomes a file.
 * errand_file_hold, errand_file_abandon: one reference more, or less.  NULL-safe.
 * errand_file_fd: the descriptor, which stays the file's; -1 once it is closed.
 * errand_file_is_seekable: has it a position?  Pipes, sockets and terminals have none.
 * Errors: ENOMEM · EINVAL.  Then *take_fd is untouched. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_file_adopt(int *take_fd, errand_file **out_file);
ERRAND_API errand_file *errand_file_hold(errand_file *file);
ERRAND_API void errand_file_abandon(errand_file **take_file);
ERRAND_API int errand_file_fd(const errand_file *file);
ERRAND_API bool errand_file_is_seekable(const errand_file *file);

/* offset: where the file stands.  The object keeps that itself, from where the descriptor
 * stood when it became a file: what succeeds moves it, and what fails or is cancelled does
 * not.  A write of APPEND does not either.  Without a position: what comes next. */
enum { ERRAND_AT_POSITION = -1 };
/* errand_spec_read_at: size bytes from offset on; fewer at the end of the file (0: it is
 *   there), or, without a position, what is there.   Gives: errand_file_bytes_type.
 * errand_spec_read_rest: all from offset on to the end, as errand_file_bytes; more than max
 *   bytes fail as TOO_LARGE (0 = 64 MiB).
 * errand_spec_write_at: all of the bytes, which are copied.  Gives: errand_file_written_type.
 * errand_spec_seek: moves the position to offset bytes behind from; gives it as
 *   errand_file_place_type.  UNSUPPORTED: it has none.
 * errand_spec_truncate: it has size bytes from then on; what it gains reads as zero bytes.
 *   Moves no position.  UNSUPPORTED: it has none.
 * errand_spec_sync: what was written before is on the disk; data_only: not its times.
 * errand_spec_file_stat: of an open file.   Gives: errand_file_stat_type.
 * errand_spec_file_close: closes it and says if that failed.  EBUSY: operations on it are
 *   out, or somebody else holds it.
 * Thread: [owner].   Errors: ENOMEM · EINVAL (more than 2^30 bytes; a size above 2^63 - 1) ·
 *   EBUSY. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_read_at(
    errand_spec *out_spec, errand_file *file, size_t size, int64_t offset);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_read_rest(
    errand_spec *out_spec, errand_file *file, size_t max, int64_t offset);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_write_at(
    errand_spec *out_spec, errand_file *file, const void *bytes, size_t size,
    int64_t offset);
typedef enum errand_from {
    ERRAND_FROM_BEGIN = 0,
    ERRAND_FROM_POSITION = 1,
    ERRAND_FROM_END = 2
} errand_from;
typedef struct errand_file_place {
    uint64_t offset;
} errand_file_place;
ERRAND_API extern const errand_payload_type errand_file_place_type;
ERRAND_API uint64_t errand_file_place_digest(const void *data, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_seek(
    errand_spec *out_spec, errand_file *file, int64_t offset, errand_from from);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_truncate(errand_spec *out_spec, errand_file *file, uint64_t size);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_sync(errand_spec *out_spec, errand_file *file, bool data_only);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_file_stat(errand_spec *out_spec, errand_file *file);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_file_close(errand_spec *out_spec, errand_file *file);

/* errand_spec_stat: follow = of what a symbolic link points to.  Gives:
 *   errand_file_stat_type.
 * errand_spec_rename: replace = also over something that is there, else that is a
 *   failure.
 * errand_spec_unlink: a file, or with directory an empty folder.
 * errand_spec_mkdir: mode 0 = 0777; less the umask.
 * errand_spec_scan: as errand_spec_list_dir gives it (errand_dir_list_type); a helper of
 *   the reactor reads it, in pieces, so that a large one does not hold up others.
 *   max = entries, 0 = 2^20.
 * errand_spec_copy: the bytes of a regular file into another, which is made, or emptied;
 *   with its permission bits where it is made.  In the kernel, in pieces.  A failure or
 *   cancel on the way leaves the pieces that were written; what the system says when the
 *   copy is closed (no room, a quota) is a failure too.  Gives:
 *   errand_file_written_type.
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_stat(errand_spec *out_spec, const char *path, bool follow);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_rename(errand_spec *out_spec, const char *from, const char *to, bool replace);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_unlink(errand_spec *out_spec, const char *path, bool directory);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_mkdir(errand_spec *out_spec, const char *path, uint32_t mode);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_scan(errand_spec *out_spec, const char *path, size_t max);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_copy(errand_spec *out_spec, const char *from, const char *to);

ERRAND_END
#endif
