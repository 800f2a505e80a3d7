/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_REACTOR_URING_H
#define ERRAND_WORKERS_REACTOR_URING_H
/* uring: what the parts of the io_uring back end share: the ring itself (ring.c), what is handed in
 * (uring.c, entries.c), what comes back (reap.c), and the buffers of many receives (pieces.c). */
#include <liburing.h>
#include "workers/reactor/reactor.h"

enum { ERRAND__TAG_REQUEST = 0, ERRAND__TAG_NOBODY = 1, ERRAND__TAG_BELL = 2 };
enum { ERRAND__TAG_ALARM = 3, ERRAND__TAG_RETURNED = 4, ERRAND__TAGS = 7 };

typedef struct errand__pieces errand__pieces;
typedef struct errand__uring {
    struct io_uring ring;
    int bell;
    int signal; /* see descriptor; -1 = nobody asked */
    bool bell_polled, returned_polled, deferred;
    bool filing; /* filers have had something: what they give back is polled for */
    bool
        looked; /* the kernel was asked for what it had put off: see errand__uring_waits */
    uint32_t pipers; /* requests under way that may raise SIGPIPE */
    struct __kernel_timespec alarm;
    errand__pieces *pieces; /* NULL: nobody received many yet, or the kernel cannot */
    bool pieces_refused;
} errand__uring;

/* ring.c: an errno. */
int errand__ring_make(struct io_uring *ring, uint32_t entries, bool *out_deferred);

/* uring.c.  entry: one to fill in; NULL: the kernel takes nothing just now.  enter: hands over what is filled in and takes what is there, waiting for the first if
 * there is a timeout.  hand_in: a request to the kernel, or to the list of those that wait.  stop:
 * asks one back.  waits: has the kernel put something off that only a call brings? */
int errand__uring_enter(errand__loop *loop, struct __kernel_timespec *timeout);
struct io_uring_sqe *errand__uring_entry(errand__loop *loop);
void errand__uring_hand_in(errand__loop *loop, errand_io *io);
void errand__uring_stop(errand__loop *loop, errand_io *io);
bool errand__uring_waits(const errand__uring *self);
bool errand__uring_may_pipe(const errand_io *io);

/* rest.c: see errand__backend. */
int errand__uring_descriptor(errand__loop *loop);
void errand__uring_rest(errand__loop *loop, uint64_t at_ns);
void errand__uring_rouse(errand__loop *loop);

/* reap.c */
void errand__uring_reap(errand__loop *loop);

/* pieces.c.  fill: a receive that goes on by itself; false: not this one, or not now.  take: copies
 * what came to where it belongs, and gives the piece back; answers the result. */
bool errand__pieces_fill(errand__uring *self, struct io_uring_sqe *entry, errand_io *io);
int32_t errand__pieces_take(errand__uring *self, errand_io *io, int32_t result,
                            uint32_t flags);
void errand__pieces_destroy(errand__uring *self);
#endif
