/* SPDX-License-Identifier: MIT */
/* Design notes: io_uring.
 *
 * - One thread fills the queue in and reaps: the ring is made for a single issuer, and the kernel
 *   does its completion work inside that thread's calls (DEFER_TASKRUN), where it has that; older
 *   kernels do it at the next system call of the thread.
 * - start fills an entry in and nothing more; a turn hands all of them over in one call, which
 *   also waits.  With a full queue what is there is handed over at once; what the kernel does not
 *   take for now (EAGAIN, EBUSY) waits in the loop's list.
 * - A MANY goes on by itself in the kernel where its ring has some room: one entry for many items.
 *   When the ring is full it is told to stop, and ends with a completion like any other.
 * - The completion queue may overflow: the kernel keeps what finds no place and says so in a flag,
 *   upon which a turn asks for it.  So it says that it has put work off, but that flag may stay set
 *   with no work left: the kernel sets it after it has queued the work, which another call may
 *   have done meanwhile.  So a call that asked is believed more than the flag, until the next
 *   turn asks again.
 * - What io_uring knows no request for, or does on the thread that hands it in (a socket's path is
 *   looked up there), is the filers'; the ring polls for what they have done from the
 *   first of them on.
 * - A request is asked back by its user data.  Gone, too late and not found are all followed by
 *   the request's own completion, which came before or will come, so nothing is made of the
 *   answer. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "workers/reactor/calls.h"
#include "workers/reactor/entries.h"
#include "workers/reactor/uring.h"

enum {
    MULTI_LEAST = 8
}; /* free places of a ring for which an accept goes on by itself */

/* ---- life ------------------------------------------------------------------------------------ */

static int
uring_init(errand__loop *loop, int bell)
{
    errand__uring *self = errand__mem_alloc(NULL, sizeof *self);
    unsigned workers[2] = {loop->reactor->helpers, loop->reactor->helpers};
    int error;

    if (self == NULL)
        return ENOMEM;
    error = errand__ring_make(&self->ring, loop->reactor->entries, &self->deferred);
    if (error != 0) {
        errand__mem_free(NULL, self, sizeof *self);
        return error;
    }
    io_uring_ring_dontfork(&self->ring);
    (void)io_uring_register_ring_fd(&self->ring);
    if (workers[0] == 0)
        workers[0] = workers[1] = 4 * errand__cpus_allowed();
    (void)io_uring_register_iowq_max_workers(&self->ring, workers);
    self->bell = bell;
    self->signal = -1;
    loop->state = self;
    return 0;
}

static void
uring_fini(errand__loop *loop)
{
    errand__uring *self = loop->state;

    errand__pieces_destroy(self);
    io_uring_queue_exit(&self->ring);
    if (self->signal >= 0)
        close(self->signal);
    errand__mem_free(NULL, self, sizeof *self);
    loop->state = NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Calls the kernel, with SIGPIPE kept from a thread that is the host's while that may come. */
int
errand__uring_enter(errand__loop *loop, struct __kernel_timespec *timeout)
{
    errand__uring *self = loop->state;
    errand__pipe_guard guard = {.active = loop->local && self->pipers != 0};
    struct io_uring_cqe *first;
    int answer;

    if (guard.active)
        errand__pipe_guard_enter(&guard);
    if (timeout != NULL)
        answer = io_uring_submit_and_wait_timeout(&self->ring, &first, 1, timeout, NULL);
    else
        answer = io_uring_submit_and_get_events(&self->ring);
    self->looked = true;
    if (guard.active)
        errand__pipe_guard_leave(&guard);
    return answer;
}

struct io_uring_sqe *
errand__uring_entry(errand__loop *loop)
{
    errand__uring *self = loop->state;
    struct io_uring_sqe *entry = io_uring_get_sqe(&self->ring);

    if (entry != NULL)
        return entry;
    (void)errand__uring_enter(loop, NULL);
    return io_uring_get_sqe(&self->ring);
}

/* Is it one that goes on by itself now?  Fills it in then. */
static bool
fill_multi(errand__uring *self, struct io_uring_sqe *entry, errand_io *io)
{
    errand__request *request = errand__request_of(io);

    if ((request->state & (ERRAND__IO_ONCE | ERRAND__IO_SINGLE)) != 0) {
        request->state &= ~(uintptr_t)ERRAND__IO_ONCE;
        return false;
    }
    if (io->kind == ERRAND_IO_RECV_MANY)
        return errand__pieces_fill(self, entry, io);
    if (io->length - io->ready < MULTI_LEAST)
        return false;
    io_uring_prep_multishot_accept(entry, io->fd, NULL, NULL, SOCK_CLOEXEC);
    return true;
}

static void
fill(errand__loop *loop, struct io_uring_sqe *entry, errand_io *io)
{
    errand__request *request = errand__request_of(io);
    const errand__kind *kind = &errand__kinds[io->kind];

    if ((request->state & ERRAND__IO_POLLING) != 0)
        io_uring_prep_poll_add(entry, io->fd, kind->waits);
    else if (kind->many && fill_multi(loop->state, entry, io))
        request->state |= ERRAND__IO_MULTI;
    else
        kind->fill(entry, io);
    io_uring_sqe_set_data64(entry, (uint64_t)(uintptr_t)io | ERRAND__TAG_REQUEST);
    request->state |= ERRAND__IO_KERNEL;
}

void
errand__uring_hand_in(errand__loop *loop, errand_io *io)
{
    errand__request *request = errand__request_of(io);
    struct io_uring_sqe *entry =
        errand__list_empty(&loop->waiting) ? errand__uring_entry(loop) : NULL;

    if (entry != NULL) {
        fill(loop, entry, io);
        return;
    }
    request->state |= ERRAND__IO_LISTED;
    errand__list_append(&loop->waiting, &request->link);
}

bool
errand__uring_may_pipe(const errand_io *io)
{
    return errand__kinds[io->kind].writes &&
           (io->kind == ERRAND_IO_SPLICE || io->offset < 0);
}

static void
tagged(struct io_uring_sqe *entry, unsigned tag)
{
    io_uring_sqe_set_data64(entry, tag);
}

static void
open_waits(errand__loop *loop, errand_io *io, int32_t result)
{
    if (result != ERRAND__TRY_LATER)
        errand__request_finish_later(loop, io, result);
    else
        errand__request_put_off(loop, io);
}

static void
poll_for(errand__loop *loop, int fd, unsigned tag, bool *polled)
{
    struct io_uring_sqe *entry;

    if (*polled || (entry = errand__uring_entry(loop)) == NULL)
        return;
    io_uring_prep_poll_add(entry, fd, POLLIN);
    tagged(entry, tag);
    *polled = true;
}

static void
poll_returned(errand__loop *loop)
{
    errand__uring *self = loop->state;

    if (self->filing)
        poll_for(loop, loop->returned_fd, ERRAND__TAG_RETURNED, &self->returned_polled);
}

static void
give_to_filer(errand__loop *loop, errand_io *io)
{
    errand__uring *self = loop->state;

    self->filing = true;
    (void)errand__filers_give(loop->reactor->filers, io);
    poll_returned(loop);
}

static void
uring_start(errand__loop *loop, errand_io *io)
{
    errand__uring *self = loop->state;

    if (io->kind == ERRAND_IO_OPEN &&
        io->to_fd > 0) { /* a FIFO that waits for its writer */
        open_waits(loop, io, errand__block_open(io));
        return;
    }
    if (errand__kinds[io->kind].fill == NULL || errand__looks_up(io)) {
        give_to_filer(loop, io);
        return;
    }
    if (errand__uring_may_pipe(io))
        self->pipers++;
    errand__uring_hand_in(loop, io);
}

void
errand__uring_stop(errand__loop *loop, errand_io *io)
{
    errand__request *request = errand__request_of(io);
    struct io_uring_sqe *entry =
        errand__list_empty(&loop->waiting) ? errand__uring_entry(loop) : NULL;

    request->state |= ERRAND__IO_STOPPING;
    if (entry == NULL) { /* KERNEL and LISTED: to be asked back */
        request->state |= ERRAND__IO_LISTED;
        errand__list_append(&loop->waiting, &request->link);
        return;
    }
    io_uring_prep_cancel64(entry, (uint64_t)(uintptr_t)io, 0);
    tagged(entry, ERRAND__TAG_NOBODY);
}

static void
uring_recall(errand__loop *loop, errand_io *io)
{
    errand__request *request = errand__request_of(io);

    if (errand__filers_recall(loop, io))
        return;
    if ((request->state & ERRAND__IO_LISTED) != 0) {
        if ((request->state & ERRAND__IO_KERNEL) != 0)
            return; /* it waits to be asked back */
        errand__list_unlink(&request->link);
        request->state &= ~(uintptr_t)ERRAND__IO_LISTED;
        if (errand__uring_may_pipe(io))
            ((errand__uring *)loop->state)->pipers--;
        errand__request_finish_later(loop, io, -ECANCELED);
        return;
    }
    if ((request->state & ERRAND__IO_STOPPING) == 0)
        errand__uring_stop(loop, io);
}

/* What found no place before, in order. */
static void
refill(errand__loop *loop)
{
    while (!errand__list_empty(&loop->waiting)) {
        errand_io *io = errand__request_io(loop->waiting.next);
        errand__request *request = errand__request_of(io);
        struct io_uring_sqe *entry = errand__uring_entry(loop);

        if (entry == NULL)
            return;
        errand__list_unlink(&request->link);
        request->state &= ~(uintptr_t)ERRAND__IO_LISTED;
        if ((request->state & ERRAND__IO_KERNEL) == 0) {
            fill(loop, entry, io);
            continue;
        }
        io_uring_prep_cancel64(entry, (uint64_t)(uintptr_t)io, 0);
        tagged(entry, ERRAND__TAG_NOBODY);
    }
}

bool
errand__uring_waits(const errand__uring *self)
{
    unsigned flags = IO_URING_READ_ONCE(*self->ring.sq.kflags);

    return (flags & IORING_SQ_CQ_OVERFLOW) != 0 ||
           ((flags & IORING_SQ_TASKRUN) != 0 && !self->looked);
}

static bool
uring_wanted(errand__loop *loop)
{
    errand__uring *self = loop->state;

    return !errand__list_empty(&loop->waiting) ||
           (self->filing && !self->returned_polled) ||
           io_uring_cq_ready(&self->ring) != 0 || errand__uring_waits(self);
}

static bool
uring_filled(errand__loop *loop)
{
    errand__uring *self = loop->state;

    return io_uring_sq_ready(&self->ring) != 0;
}

/* The kernel's flag counts here, whether or not a call has asked since the last turn. */
static bool
uring_idle(errand__loop *loop)
{
    errand__uring *self = loop->state;

    return !uring_wanted(loop) && !uring_filled(loop) &&
           (IO_URING_READ_ONCE(*self->ring.sq.kflags) & IORING_SQ_TASKRUN) == 0;
}

static void
uring_turn(errand__loop *loop, uint64_t timeout_ns)
{
    errand__uring *self = loop->state;
    struct __kernel_timespec timeout;

    self->looked = false;
    refill(loop);
    poll_returned(loop);
    if (timeout_ns != 0 && io_uring_cq_ready(&self->ring) == 0) {
        if (timeout_ns > UINT64_C(3600000000000))
            timeout_ns = UINT64_C(3600000000000);
        timeout.tv_sec = (int64_t)(timeout_ns / 1000000000);
        timeout.tv_nsec = (long long)(timeout_ns % 1000000000);
        poll_for(loop, self->bell, ERRAND__TAG_BELL, &self->bell_polled);
        (void)errand__uring_enter(loop, &timeout);
    } else if (io_uring_sq_ready(&self->ring) != 0 || errand__uring_waits(self)) {
        (void)errand__uring_enter(loop, NULL);
    }
    errand__uring_reap(loop);
}

const errand__backend errand__uring_backend = {
    .name = "io_uring",
    .init = uring_init,
    .fini = uring_fini,
    .start = uring_start,
    .recall = uring_recall,
    .turn = uring_turn,
    .wanted = uring_wanted,
    .filled = uring_filled,
    .idle = uring_idle,
    .descriptor = errand__uring_descriptor,
    .rest = errand__uring_rest,
    .rouse = errand__uring_rouse,
};
