/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_IO_H
#define ERRAND_IO_H
/* io: requests to the kernel that an async job makes and does not wait for, and the
 * reactor that carries them.  Conventions: errand.h, errand/async.h.
 *
 * A job that runs on a reactor keeps errand_io blocks in its state.  start or poll fills
 * one in, hands it over with errand_io_start and answers ERRAND_PENDING; the job is polled
 * when the request is done (and may be polled without news, so it looks at `done`).  Until
 * then the block and all memory that it names are the kernel's: nothing gives them back
 * before, not a cancel, not a deadline, not a panic, not a shutdown.  A job that ends with
 * requests under way has them asked back, and its end is told when the last one is.
 *
 * A cancel of the job asks all requests back that are under way then, each once: they end
 * as -ECANCELED, or with their result if that came first.  What the job starts afterwards,
 * to clean up, is not asked back. */
#include "errand/async.h"
#include "errand/executor.h"
ERRAND_BEGIN

struct iovec;
struct msghdr;
struct sockaddr;
struct statx;

/* The kinds, with what they read besides fd, and what a good result is.  Every other result
 * is -errno.
 *   NOTHING                                           0, at once
 *   TIMEOUT   until_ns (CLOCK_MONOTONIC)              0: it has come; 50 us late at best
 *   POLL      events (POLLIN ...)                     what there is of them, POLLERR, POLLHUP
 *   OPEN      path, flags (O_...), mode               the descriptor; O_CLOEXEC is added
 *   CLOSE                                             0
 *   READ      buffer, length, offset                  bytes; offset -1: where the file stands
 *   WRITE     bytes, length, offset                   bytes
 *   READV     vectors, count, offset                  bytes
 *   WRITEV    vectors, count, offset                  bytes
 *   SYNC      flags: 0, or ERRAND_IO_DATA_ONLY        0
 *   STAT      path, flags (AT_...), mask, out_stat    0
 *   RENAME    path, to_fd, to_path, flags             0 (flags: RENAME_...)
 *   UNLINK    path, flags: 0 or AT_REMOVEDIR          0
 *   MKDIR     path, mode                              0
 *   SPLICE    fd, offset; to_fd, to_offset; length, flags   bytes (-1: no offset)
 *   SOCKET    family (in fd), flags (SOCK_...), mode (protocol)   the descriptor, CLOEXEC
 *   CONNECT   address, length                         0
 *   ACCEPT    out_address, out_length (or NULL)       the descriptor, CLOEXEC
 *   RECV      buffer, length, flags (MSG_...)         bytes; 0 = the end
 *   SEND      bytes, length, flags                    bytes; MSG_NOSIGNAL is added
 *   RECVMSG   message, flags                          bytes
 *   SENDMSG   message, flags                          bytes; MSG_NOSIGNAL is added
 *   SHUTDOWN  flags (SHUT_...)                        0
 *   ACCEPT_MANY, RECV_MANY: see errand_io_consume.
 *   TRUNCATE  offset (the size)                       0
 *   CALL      function, arg                           what it answers; see below
 * fd of OPEN, STAT, RENAME, UNLINK, MKDIR: the folder that a relative path begins in, or
 * AT_FDCWD.  A descriptor may be in blocking mode or not.  Where the back end is epoll, a
 * socket that is connected or accepted on is put into non-blocking mode; so is one that is
 * connected to a path, on either.
 * Nothing raises SIGPIPE.  MSG_WAITALL and MSG_DONTWAIT are no flags here.  An OPEN of a
 * FIFO waits for the other side, without a thread; a reader may hear of it up to 20 ms
 * late.  What has requests under way is not to be closed: ask them back first. */
typedef enum errand_io_kind {
    ERRAND_IO_NOTHING = 1,
    ERRAND_IO_TIMEOUT = 2,
    ERRAND_IO_POLL = 3,
    ERRAND_IO_OPEN = 4,
    ERRAND_IO_CLOSE = 5,
    ERRAND_IO_READ = 6,
    ERRAND_IO_WRITE = 7,
    ERRAND_IO_READV = 8,
    ERRAND_IO_WRITEV = 9,
    ERRAND_IO_SYNC = 10,
    ERRAND_IO_STAT = 11,
    ERRAND_IO_RENAME = 12,
    ERRAND_IO_UNLINK = 13,
    ERRAND_IO_MKDIR = 14,
    ERRAND_IO_SPLICE = 15,
    ERRAND_IO_SOCKET = 16,
    ERRAND_IO_CONNECT = 17,
    ERRAND_IO_ACCEPT = 18,
    ERRAND_IO_RECV = 19,
    ERRAND_IO_SEND = 20,
    ERRAND_IO_RECVMSG = 21,
    ERRAND_IO_SENDMSG = 22,
    ERRAND_IO_SHUTDOWN = 23,
    ERRAND_IO_ACCEPT_MANY = 24,
    ERRAND_IO_RECV_MANY = 25,
    ERRAND_IO_TRUNCATE = 26,
    ERRAND_IO_CALL = 27,
    ERRAND_IO_KINDS /* one more than the last */
} errand_io_kind;
#define ERRAND_IO_DATA_ONLY 1u /* flags of SYNC: as fdatasync */

/* A request.  Begin with {.kind = ..., .fd = ..., arguments}: the rest is 0.  After it is
 * done the block may be filled in again. */
typedef struct errand_io {
    errand_io_kind kind;
    int32_t fd;
    union {
        void *buffer; /* ACCEPT_MANY: of int32_t */
        const void *bytes;
        const char *path;
        const struct iovec *vectors;
        struct msghdr *message;
        const struct sockaddr *address;
        struct sockaddr *out_address;
        int64_t to_offset; /* SPLICE */
        int32_t (*function)(void *arg);
    };
    union {
        size_t length; /* of buffer, bytes, address; ACCEPT_MANY: descriptors */
        size_t count;  /* of vectors */
        uint32_t mask; /* STAT: STATX_... */
        uint32_t events;
        uint32_t *out_length; /* ACCEPT: in: room of out_address; out: its length */
        const char *to_path;
        void *arg; /* CALL */
    };
    union {
        int64_t offset;
        uint64_t until_ns;
        struct statx *out_stat;
    };
    union {
        int32_t to_fd;
        uint32_t first; /* a MANY's: see errand_io_consume */
    };
    union {
        uint32_t mode;
        uint32_t ready; /* the same */
    };
    uint32_t flags;
    /* Of the reactor. */
    int32_t result; /* as the system call's, or -errno; when done */
    bool done;
    uint32_t delay;
    void *library[6];
} errand_io;

/* CALL: function(arg) on a helper thread of the reactor, for what waits for a disk and is
 * none of the other kinds: a folder's entries, a program's start.  Called once, and never
 * on the loop's thread while a helper is there or can be made.  On a helper all signals but
 * those of faults are blocked, on another thread SIGPIPE alone.
 * It returns (it neither panics nor ends its thread), calls nothing of the job's or the
 * runtime's, and touches only what arg names, which is its own until the request is done.
 * Asked back while it waits for a helper: it is not called, and the result is -ECANCELED.
 * Once it has begun nothing stops it: the request is done when it returns, with what it
 * answers.  The job may end or be written off meanwhile: its completion comes by the same
 * rules as with any other request, and its state is dropped when the function has returned.
 * Where the loop could not be set up anew (no descriptor is left) the function is not called and
 * the result is that -errno, as with any other request: let yours answer no less than 0. */

/* errand_io_start: hand a request to the reactor.  It is under way from here on, and goes
 *   to the kernel with others at the end of the loop's round.  done is false until then,
 *   also if the result is there at once.  Neither blocks nor allocates; what finds no
 *   place in the kernel's queue waits in the reactor's.
 * errand_io_cancel: ask for it back.  It still ends by being done: -ECANCELED, or its
 *   result.  Nothing happens if it is done, or was asked for before, or is a CLOSE: whether
 *   the descriptor is still there could not be told.
 * Thread: [worker], inside the job's own start or poll.   Errors: EINVAL (no such kind; a
 *   CALL of nothing) ·
 *   EUNSUPPORTED (the job does not run on a reactor) · EMISUSE (start: it is under way). */
ERRAND_API ERRAND_MUST_USE errand_status errand_io_start(errand_job *job, errand_io *io);
ERRAND_API errand_status errand_io_cancel(errand_job *job, errand_io *io);

/* ACCEPT_MANY and RECV_MANY go on until they are asked back or fail (RECV_MANY: 0 = the
 * end of the stream).  What comes is put into buffer, which is used as a ring of length
 * items (descriptors, or bytes): `ready` of them, from index `first` on, wrapping round at
 * length; the job is polled when there are more.  When it is full, no more is asked for.
 * With io_uring they go on in the kernel, one queue entry for many items, where the ring
 * has room for 8 descriptors or 8 KiB.  Connections that it accepted before it heard that
 * the ring is full are kept beside it, and follow when the ring is consumed.
 * errand_io_consume: the job has taken count items from the front; what is full goes on.
 *   Also after `done`, until ready is 0: nothing that was accepted or received is lost.
 *   Descriptors in the ring are the job's to close; those beside it, if it ends or starts
 *   the block again without them, or where there is no memory to keep them, are closed.
 * Thread: [worker], as above.   Errors: EINVAL (count > ready) · EUNSUPPORTED. */
ERRAND_API errand_status
errand_io_consume(errand_job *job, errand_io *io, uint32_t count);

/* ---- what nobody waits for ------------------------------------------------------------ */
/* The helper threads of a reactor, for whoever lets something go: a close or a removal may
 * wait for a disk. */
typedef struct errand_helpers errand_helpers;
/* errand_job_helpers: those of the reactor that the job runs on: a reference, which
 *   errand_helpers_abandon is owed.  It keeps neither the reactor nor its threads.  NULL:
 *   on no reactor.   Thread: [worker], inside the job's own start or poll.
 * errand_helpers_call: function(arg) once, some time, on one of them, as of a CALL.  The
 *   reactor's end waits for it.  On the caller's thread, before this returns, where that
 *   cannot be: helpers is NULL, the reactor has ended, this is a forked child, there is no
 *   memory, or no helper and none can be made; what others have queued there may then run on
 *   it, too, so hold no lock that they want.   Thread: [any].
 * errand_helpers_abandon: NULL-safe.   Thread: [any]. */
ERRAND_API ERRAND_MUST_USE errand_helpers *errand_job_helpers(errand_job *job);
ERRAND_API void
errand_helpers_call(errand_helpers *helpers, int32_t (*function)(void *arg), void *arg);
ERRAND_API void errand_helpers_abandon(errand_helpers **take_helpers);

/* ---- the reactor: the executor of such jobs ---------------------------------------- */
enum {                         /* errand_reactor_config.backend */
       ERRAND_REACTOR_ANY = 0, /* io_uring, or epoll where the kernel refuses that */
       ERRAND_REACTOR_URING = 1,
       ERRAND_REACTOR_EPOLL = 2
};
typedef struct errand_reactor_config {
    uint32_t struct_size;
    /* 0: each runtime's own thread carries its jobs and requests, in its submits, cancels,
     * drains, drives and parks: nothing crosses threads.  Else loop threads, at most 64, over
     * which the leases are spread. */
    uint32_t threads;
    uint32_t backend;
    uint32_t entries; /* of a loop's submission queue; 0 = 256; at most 4096 */
    /* At most so many threads for what cannot be done without blocking: files, opens.  With
     * epoll they are the process's, 0 = 4; with io_uring the kernel's, so many of each kind
     * that it has, 0 = 4 for each processor, and for what it cannot do (TRUNCATE, CALL) the
     * process's, as with epoll.  Where the system lets the process have none, the loop's
     * thread does it itself, and blocks meanwhile. */
    uint32_t helpers;
    uint32_t flags;   /* none yet; must be 0 */
    const char *name; /* of the threads, at most 11 bytes; NULL = "errand-io" */
} errand_reactor_config;

/* errand_reactor_create: an executor for async jobs, with or without requests.  config NULL
 *   = all defaults.  A lease with threads = 0 runs its jobs on the runtime's thread, so a
 *   job there must not end its thread; the runtime is not released while requests are under
 *   way; and the lease is attached before the wake descriptor is asked for.
 * Thread: [any].   Errors: ENOMEM · EINVAL · ENOTHREAD · ESYSTEM (no descriptors) ·
 *   EUNSUPPORTED (backend URING, and the kernel refuses it: see errno). */
ERRAND_API ERRAND_MUST_USE errand_status errand_reactor_create(
    const errand_reactor_config *config, errand_executor **out_executor);
/* errand_reactor_backend: which back end it has, and why if it is not io_uring:
 *   "io_uring", "epoll", "epoll (io_uring: Operation not permitted)".  executor NULL: what
 *   ANY would choose in this process.  NULL: another executor.   Thread: [any]. */
ERRAND_API const char *errand_reactor_backend(const errand_executor *executor);

ERRAND_END
#endif
