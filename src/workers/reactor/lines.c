/* SPDX-License-Identifier: MIT */
/* Design notes: requests that wait at a descriptor, for the epoll back end.
 *
 * - Each descriptor is registered once, for one event, with all that its requests wait for.
 * - Descriptors are numbers that others close and open again, so what the kernel knows of one is
 *   only believed when it answers: ENOENT and EEXIST are mended at once. */
#include <errno.h>
#include <sys/epoll.h>
#include "workers/reactor/epoll.h"

#define CHUNK      256 /* descriptors whose lines are allocated together */
#define WAIT_SHIFT 16  /* what a request waits for, in its state */

struct errand__line {
    errand__link requests;
    uint32_t registered; /* what the kernel was told, as far as it is believed */
};

void
errand__lines_free(errand__epoll *self)
{
    for (size_t i = 0; i < ERRAND__LINE_CHUNKS; i++)
        errand__mem_free(NULL, self->chunks[i], CHUNK * sizeof(errand__line));
}

static errand__line *
line_of(errand__epoll *self, int fd, bool make)
{
    size_t chunk = (size_t)fd / CHUNK;

    if (fd < 0 || chunk >= ERRAND__LINE_CHUNKS)
        return NULL;
    if (self->chunks[chunk] == NULL && make) {
        self->chunks[chunk] = errand__mem_alloc(NULL, CHUNK * sizeof(errand__line));
        for (size_t i = 0; self->chunks[chunk] != NULL && i < CHUNK; i++)
            errand__list_init(&self->chunks[chunk][i].requests);
    }
    return self->chunks[chunk] == NULL ? NULL : &self->chunks[chunk][(size_t)fd % CHUNK];
}

static uint32_t
waits_for(errand__link *link)
{
    return (uint32_t)(errand__request_of(errand__request_io(link))->state >> WAIT_SHIFT);
}

/* Tells the kernel what this descriptor's requests wait for.  An errno. */
static int
register_fd(errand__epoll *self, int fd, errand__line *mine)
{
    struct epoll_event event = {.events = EPOLLONESHOT,
                                .data.u64 = (uint64_t)fd + ERRAND__MARK_FIRST_FD};
    int known = mine->registered != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    for (errand__link *link = mine->requests.next; link != &mine->requests;
         link = link->next)
        event.events |= waits_for(link);
    mine->registered = event.events;
    if (epoll_ctl(self->fd, known, fd, &event) == 0)
        return 0;
    if (errno == ENOENT || errno == EEXIST)
        known = known == EPOLL_CTL_MOD ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    else
        return errno;
    return epoll_ctl(self->fd, known, fd, &event) == 0 ? 0 : errno;
}

/* An errno. */
int
errand__lines_wait(errand__loop *loop, errand_io *io, int fd, uint32_t events)
{
    errand__epoll *self = loop->state;
    errand__request *request = errand__request_of(io);
    errand__line *mine = line_of(self, fd, true);
    int error;

    if (mine == NULL)
        return ENOMEM;
    request->state = (request->state & ((1U << WAIT_SHIFT) - 1)) |
                     (uintptr_t)events << WAIT_SHIFT | ERRAND__IO_POLLING |
                     ERRAND__IO_LISTED;
    errand__list_append(&mine->requests, &request->link);
    if ((mine->registered & events) == events && (mine->registered & EPOLLONESHOT) != 0 &&
        mine->requests.next != &request->link)
        return 0; /* another waits for the same */
    error = register_fd(self, fd, mine);
    if (error != 0) {
        errand__list_unlink(&request->link);
        request->state &= ~(uintptr_t)ERRAND__IO_LISTED;
    }
    return error;
}

/* An event: all that wait here are tried again. */
void
errand__lines_ready(errand__loop *loop, int fd)
{
    errand__epoll *self = loop->state;
    errand__line *mine = line_of(self, fd, false);
    errand__link stop;

    if (mine == NULL || errand__list_empty(&mine->requests))
        return;
    /* Registered once: who goes on waiting registers again, behind the mark. */
    mine->registered = EPOLLONESHOT;
    errand__list_append(&mine->requests, &stop);
    while (mine->requests.next != &stop) {
        errand__request *request =
            errand__request_of(errand__request_io(mine->requests.next));

        errand__list_unlink(&request->link);
        errand__list_append(&self->fresh, &request->link);
    }
    errand__list_unlink(&stop);
}

/* Nobody waits at a descriptor that is being closed. */
void
errand__lines_close(errand__loop *loop, int fd)
{
    errand__epoll *self = loop->state;
    errand__line *mine = line_of(self, fd, false);

    if (mine == NULL)
        return;
    mine->registered = 0;
    while (!errand__list_empty(&mine->requests)) {
        errand_io *io = errand__request_io(mine->requests.next);

        errand__list_unlink(mine->requests.next);
        errand__request_finish_later(loop, io, -ECANCELED);
    }
}
