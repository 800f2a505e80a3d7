/* SPDX-License-Identifier: MIT */
/* Design notes: epoll, where the kernel refuses io_uring.
 *
 * - What was started is tried at the next turn, and if it would block, waits at its descriptor
 *   (lines.c).  An event has all that wait there tried again.
 * - What cannot be waited for (files) is the filers'. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "workers/reactor/calls.h"
#include "workers/reactor/epoll.h"

#define EVENTS 64

/* ---- life ---------------------------------------------------------------------------------------- */

/* Clear of the standard descriptors (O62). */
static int
clear_of_standard(int fd)
{
    int higher;

    if (fd < 0 || fd > 2)
        return fd;
    higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return higher;
}

static int
watch(const errand__epoll *self, int fd, uint32_t events, uint64_t mark)
{
    struct epoll_event event = {.events = events, .data.u64 = mark};

    return epoll_ctl(self->fd, EPOLL_CTL_ADD, fd, &event);
}

static void
epoll_fini(errand__loop *loop)
{
    errand__epoll *self = loop->state;

    errand__lines_free(self);
    if (self->fd >= 0)
        close(self->fd);
    if (self->alarm >= 0)
        close(self->alarm);
    errand__mem_free(NULL, self, sizeof *self);
    loop->state = NULL;
}

static int
epoll_init(errand__loop *loop, int bell)
{
    errand__epoll *self = errand__mem_alloc(NULL, sizeof *self);
    int error;

    if (self == NULL)
        return ENOMEM;
    loop->state = self;
    errand__list_init(&self->fresh);
    self->bell = bell;
    self->alarm = -1;
    self->fd = clear_of_standard(epoll_create1(EPOLL_CLOEXEC));
    if (self->fd >= 0)
        self->alarm = clear_of_standard(
            timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (self->alarm >= 0 &&
        watch(self, bell, EPOLLIN | EPOLLET, ERRAND__MARK_BELL) == 0 &&
        watch(self, loop->returned_fd, EPOLLIN, ERRAND__MARK_RETURNED) == 0 &&
        watch(self, self->alarm, EPOLLIN, ERRAND__MARK_ALARM) == 0)
        return 0;
    error = errno;
    epoll_fini(loop);
    return error;
}

/* ---- a try ------------------------------------------------------------------------------------------ */

static void
finish(errand__loop *loop, errand_io *io, int32_t result)
{
    errand__request *request = errand__request_of(io);

    request->state &= (uintptr_t)(ERRAND__IO_UNDER_WAY | ERRAND__IO_ASKED);
    if (errand__kinds[io->kind].many)
        errand__request_item(loop, io, result, false);
    else
        errand__request_done(loop, io, result);
}

static void
attempt(errand__loop *loop, errand_io *io)
{
    const errand__kind *kind = &errand__kinds[io->kind];
    errand__pipe_guard guard = {.active = loop->local && kind->writes};
    errand__request *request = errand__request_of(io);
    int32_t result;
    int error = 0;

    if (io->kind == ERRAND_IO_CLOSE)
        errand__lines_close(loop, io->fd);
    if (guard.active)
        errand__pipe_guard_enter(&guard);
    result = kind->attempt(io);
    if (guard.active)
        errand__pipe_guard_leave(&guard);
    request->state &= ~(uintptr_t)ERRAND__IO_POLLING;
    if (result == ERRAND__TRY_LATER) {
        errand__request_put_off(loop, io);
    } else if (result == ERRAND__TRY_FILER) {
        (void)errand__filers_give(loop->reactor->filers, io);
    } else if (result == ERRAND__TRY_IN || result == ERRAND__TRY_OUT) {
        uint32_t events = io->kind == ERRAND_IO_POLL ? io->events
                          : result == ERRAND__TRY_IN ? (uint32_t)EPOLLIN
                                                     : (uint32_t)EPOLLOUT;
        bool other = io->kind == ERRAND_IO_SPLICE && result == ERRAND__TRY_OUT;

        error = errand__lines_wait(loop, io, other ? io->to_fd : io->fd, events);
    } else {
        finish(loop, io, result);
        return;
    }
    if (error != 0)
        finish(loop, io, -error);
}

static void
epoll_start(errand__loop *loop, errand_io *io)
{
    errand__epoll *self = loop->state;
    errand__request *request = errand__request_of(io);

    request->state |= ERRAND__IO_LISTED;
    errand__list_append(&self->fresh, &request->link);
}

static void
epoll_recall(errand__loop *loop, errand_io *io)
{
    errand__request *request = errand__request_of(io);

    if (errand__filers_recall(loop, io) || (request->state & ERRAND__IO_LISTED) == 0)
        return;
    errand__list_unlink(&request->link);
    if (io->kind == ERRAND_IO_OPEN)
        errand__fifo_forget(io);
    request->state &= (uintptr_t)(ERRAND__IO_UNDER_WAY | ERRAND__IO_ASKED);
    errand__request_finish_later(loop, io, -ECANCELED);
}

/* ---- a turn -------------------------------------------------------------------------------------- */

/* Those that were there: what they lead to is the next turn's. */
static void
try_fresh(errand__loop *loop)
{
    errand__epoll *self = loop->state;
    size_t count = 0;

    for (errand__link *link = self->fresh.next; link != &self->fresh; link = link->next)
        count++;
    for (; count > 0 && !errand__list_empty(&self->fresh); count--) {
        errand_io *io = errand__request_io(self->fresh.next);

        errand__list_unlink(&errand__request_of(io)->link);
        errand__request_of(io)->state &= ~(uintptr_t)ERRAND__IO_LISTED;
        attempt(loop, io);
    }
}

static void
heed(errand__loop *loop, uint64_t mark)
{
    errand__epoll *self = loop->state;
    uint64_t count;
    ssize_t got = 0;

    if (mark >= ERRAND__MARK_FIRST_FD) {
        errand__lines_ready(loop, (int)(mark - ERRAND__MARK_FIRST_FD));
    } else if (mark == ERRAND__MARK_RETURNED) {
        errand__filers_collect(loop);
    } else if (mark == ERRAND__MARK_ALARM) {
        got = read(self->alarm, &count, sizeof count);
        loop->alarm_ns = UINT64_MAX;
    } else if (!loop->local) {
        got = read(self->bell, &count, sizeof count);
    }
    (void)got;
}

static bool
epoll_wanted(errand__loop *loop)
{
    errand__epoll *self = loop->state;

    return !errand__list_empty(&self->fresh);
}

static void
epoll_turn(errand__loop *loop, uint64_t timeout_ns)
{
    errand__epoll *self = loop->state;
    struct epoll_event events[EVENTS];
    struct timespec timeout;
    int count;

    try_fresh(loop);
    if (errand__loop_busy(loop))
        timeout_ns = 0;
    if (timeout_ns == 0 && loop->under_way == 0)
        return;
    if (timeout_ns > UINT64_C(3600000000000))
        timeout_ns = UINT64_C(3600000000000);
    timeout.tv_sec = (time_t)(timeout_ns / 1000000000);
    timeout.tv_nsec = (long)(timeout_ns % 1000000000);
    count = epoll_pwait2(self->fd, events, EVENTS, &timeout, NULL);
    if (count < 0 && errno == ENOSYS)
        count =
            epoll_wait(self->fd, events, EVENTS, (int)((timeout_ns + 999999) / 1000000));
    for (int i = 0; i < count; i++)
        heed(loop, events[i].data.u64);
    if (count > 0)
        try_fresh(loop);
}

static int
epoll_descriptor(errand__loop *loop)
{
    errand__epoll *self = loop->state;

    return self->fd;
}

static void
epoll_rest(errand__loop *loop, uint64_t at_ns)
{
    errand__epoll *self = loop->state;
    struct itimerspec when = {.it_value = {0, 0}};

    if (at_ns == loop->alarm_ns)
        return;
    if (at_ns != UINT64_MAX) {
        when.it_value.tv_sec = (time_t)(at_ns / 1000000000);
        when.it_value.tv_nsec = (long)(at_ns % 1000000000);
        if (at_ns == 0)
            when.it_value.tv_nsec = 1;
    }
    (void)timerfd_settime(self->alarm, TFD_TIMER_ABSTIME, &when, NULL);
    loop->alarm_ns = at_ns;
}

static void
epoll_rouse(errand__loop *loop)
{
    (void)loop;
}

const errand__backend errand__epoll_backend = {
    .name = "epoll",
    .init = epoll_init,
    .fini = epoll_fini,
    .start = epoll_start,
    .recall = epoll_recall,
    .turn = epoll_turn,
    .wanted = epoll_wanted,
    .descriptor = epoll_descriptor,
    .rest = epoll_rest,
    .rouse = epoll_rouse,
};
