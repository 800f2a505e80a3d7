/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_REACTOR_EPOLL_H
#define ERRAND_WORKERS_REACTOR_EPOLL_H
/* epoll: what the parts of that back end share: tries and turns (epoll.c), and what waits at a
 * descriptor (lines.c). */
#include "workers/reactor/reactor.h"

enum { /* what an event leads to; from the last on a descriptor */
       ERRAND__MARK_BELL = 1,
       ERRAND__MARK_RETURNED = 2,
       ERRAND__MARK_ALARM = 3,
       ERRAND__MARK_FIRST_FD = 4
};
enum { ERRAND__LINE_CHUNKS = 4096 };
typedef struct errand__line errand__line; /* a descriptor's */
typedef struct errand__epoll {
    int fd, bell, alarm;
    errand__link fresh; /* to be tried */
    errand__line *chunks[ERRAND__LINE_CHUNKS];
} errand__epoll;

/* lines.c.  wait: until one of these events; an errno.  ready: an event: all that wait at it are tried
 * again.  close: it is being closed, and nobody waits at it. */
int errand__lines_wait(errand__loop *loop, errand_io *io, int fd, uint32_t events);
void errand__lines_ready(errand__loop *loop, int fd);
void errand__lines_close(errand__loop *loop, int fd);
void errand__lines_free(errand__epoll *self);
#endif
