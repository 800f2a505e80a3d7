/* SPDX-License-Identifier: MIT */
/* Design notes: io_uring.
 *
 * - One thread fills the queue in and reaps: the ring is made for a single issuer, and the kernel
 *   does its completion work inside that thread's calls (DEFER_TASKRUN), where it has that; older
 *   kernels do it at the next system call of the thread.
 * - start fills an entry in and nothing more; a turn hands all of them over in one call, which
 *   also waits.  With a full queue what is there is handed over at once; what the kernel does not
 *   take for now (EAGAIN, EBUSY) waits in the loop's list.
 * - The completion queue may overflow: the kernel keeps what finds no place and says so in a flag,
 *   upon which a turn asks for it.
 * - A ring's own descriptor does not tell of work that is put off (DEFER_TASKRUN), an event
 *   descriptor that is registered with it does.  It is silenced while the thread looks itself.
 * - A request is asked back by its user data.  Gone, too late and not found are all followed by
 *   the request's own completion, which came before or will come, so nothing is made of the
 *   answer.
 * - A descriptor in non-blocking mode makes the kernel answer EAGAIN instead of waiting: then a
 *   poll stands for the request, and it is tried again. */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "workers/reactor/calls.h"
#include "workers/reactor/entries.h"

enum { TAG_REQUEST = 0, TAG_NOBODY = 1, TAG_BELL = 2, TAG_ALARM = 3, TAGS = 7 };
#define SPARE_COMPLETIONS 8 /* entries of the completion queue for each of the other */

typedef struct uring {
    struct io_uring ring;
    int bell;
    int signal; /* see uring_descriptor; -1 = nobody asked */
    bool bell_polled, deferred;
    uint32_t pipers; /* requests under way that may raise SIGPIPE */
    struct __kernel_timespec alarm;
} uring;

/* ---- is it there? ------------------------------------------------------------------------------ */

static int
make_ring(struct io_uring *ring, uint32_t entries, bool *out_deferred)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
            IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0};
    int error = 0;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        struct io_uring_params parameters = {.flags = flags[i] | IORING_SETUP_CQSIZE |
                                                      IORING_SETUP_CLAMP,
                                             .cq_entries = entries * SPARE_COMPLETIONS};

        error = -io_uring_queue_init_params(entries, ring, &parameters);
        *out_deferred = i == 0;
        if (error != EINVAL)
            break;
    }
    return error;
}

/* The newest that is needed: without it nothing of the rest is worth it. */
static int
probe(void)
{
    static const int needed[] = {IORING_OP_SHUTDOWN, IORING_OP_RENAMEAT,
                                 IORING_OP_UNLINKAT, IORING_OP_MKDIRAT, IORING_OP_SPLICE};
    struct io_uring ring;
    struct io_uring_probe *answers;
    bool deferred;
    int error = make_ring(&ring, 4, &deferred);

    if (error != 0)
        return error;
    answers = io_uring_get_probe_ring(&ring);
    if (answers == NULL || (ring.features & IORING_FEAT_NODROP) == 0 ||
        (ring.features & IORING_FEAT_EXT_ARG) == 0)
        error = EOPNOTSUPP;
    for (size_t i = 0; error == 0 && i < sizeof needed / sizeof needed[0]; i++)
        if (!io_uring_opcode_supported(answers, needed[i]))
            error = EOPNOTSUPP;
    if (answers != NULL)
        io_uring_free_probe(answers);
    io_uring_queue_exit(&ring);
    return error;
}

int
errand__uring_refused(void)
{
    return probe();
}

static int
uring_init(errand__loop *loop, int bell)
{
    uring *self = errand__mem_alloc(NULL, sizeof *self);
    unsigned workers[2] = {loop->reactor->helpers, loop->reactor->helpers};
    int error;

    if (self == NULL)
        return ENOMEM;
    error = make_ring(&self->ring, loop->reactor->entries, &self->deferred);
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
    uring *self = loop->state;

    io_uring_queue_exit(&self->ring);
    if (self->signal >= 0)
        close(self->signal);
    errand__mem_free(NULL, self, sizeof *self);
    loop->state = NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Calls the kernel, with SIGPIPE kept from a thread that is the host's while that may come. */
static int
enter(errand__loop *loop, struct __kernel_timespec *timeout)
{
    uring *self = loop->state;
    errand__pipe_guard guard = {.active = loop->local && self->pipers != 0};
    struct io_uring_cqe *first;
    int answer;

    if (guard.active)
        errand__pipe_guard_enter(&guard);
    if (timeout != NULL)
        answer = io_uring_submit_and_wait_timeout(&self->ring, &first, 1, timeout, NULL);
    else
        answer = io_uring_submit_and_get_events(&self->ring);
    if (guard.active)
        errand__pipe_guard_leave(&guard);
    return answer;
}

/* NULL: the kernel takes nothing just now. */
static struct io_uring_sqe *
next_entry(errand__loop *loop)
{
    uring *self = loop->state;
    struct io_uring_sqe *entry = io_uring_get_sqe(&self->ring);

    if (entry != NULL)
        return entry;
    (void)enter(loop, NULL);
    return io_uring_get_sqe(&self->ring);
}

static void
fill(errand__loop *loop, struct io_uring_sqe *entry, errand_io *io)
{
    errand__request *request = errand__request_of(io);
    const errand__kind *kind = &errand__kinds[io->kind];

    (void)loop;
    if ((request->state & ERRAND__IO_POLLING) != 0)
        io_uring_prep_poll_add(entry, io->fd, kind->waits);
    else
        kind->fill(entry, io);
    io_uring_sqe_set_data64(entry, (uint64_t)(uintptr_t)io | TAG_REQUEST);
    request->state |= ERRAND__IO_KERNEL;
}

static void
hand_in(errand__loop *loop, errand_io *io)
{
    errand__request *request = errand__request_of(io);
    struct io_uring_sqe *entry =
        errand__list_empty(&loop->waiting) ? next_entry(loop) : NULL;

    if (entry != NULL) {
        fill(loop, entry, io);
        return;
    }
    request->state |= ERRAND__IO_LISTED;
    errand__list_append(&loop->waiting, &request->link);
}

static bool
may_pipe(const errand_io *io)
{
    return errand__kinds[io->kind].writes &&
           (io->kind == ERRAND_IO_SPLICE || io->offset < 0);
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
uring_start(errand__loop *loop, errand_io *io)
{
    uring *self = loop->state;

    if (io->kind == ERRAND_IO_OPEN &&
        io->to_fd > 0) { /* a FIFO that waits for its writer */
        open_waits(loop, io, errand__block_open(io));
        return;
    }
    if (may_pipe(io))
        self->pipers++;
    hand_in(loop, io);
}

static void
tagged(struct io_uring_sqe *entry, unsigned tag)
{
    io_uring_sqe_set_data64(entry, tag);
}

static void
uring_recall(errand__loop *loop, errand_io *io)
{
    errand__request *request = errand__request_of(io);
    struct io_uring_sqe *entry;

    if ((request->state & ERRAND__IO_LISTED) != 0) {
        if ((request->state & ERRAND__IO_KERNEL) != 0)
            return; /* it waits to be asked back */
        errand__list_unlink(&request->link);
        request->state &= ~(uintptr_t)ERRAND__IO_LISTED;
        if (may_pipe(io))
            ((uring *)loop->state)->pipers--;
        errand__request_finish_later(loop, io, -ECANCELED);
        return;
    }
    entry = errand__list_empty(&loop->waiting) ? next_entry(loop) : NULL;
    if (entry == NULL) { /* KERNEL and LISTED: to be asked back */
        request->state |= ERRAND__IO_LISTED;
        errand__list_append(&loop->waiting, &request->link);
        return;
    }
    io_uring_prep_cancel64(entry, (uint64_t)(uintptr_t)io, 0);
    tagged(entry, TAG_NOBODY);
}

/* What found no place before, in order. */
static void
refill(errand__loop *loop)
{
    while (!errand__list_empty(&loop->waiting)) {
        errand_io *io = errand__request_io(loop->waiting.next);
        errand__request *request = errand__request_of(io);
        struct io_uring_sqe *entry = next_entry(loop);

        if (entry == NULL)
            return;
        errand__list_unlink(&request->link);
        request->state &= ~(uintptr_t)ERRAND__IO_LISTED;
        if ((request->state & ERRAND__IO_KERNEL) == 0) {
            fill(loop, entry, io);
            continue;
        }
        io_uring_prep_cancel64(entry, (uint64_t)(uintptr_t)io, 0);
        tagged(entry, TAG_NOBODY);
    }
}

/* ---- completions -------------------------------------------------------------------------------- */

static int32_t
connected(const errand_io *io)
{
    int error = 0;
    socklen_t size = sizeof error;

    return getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? -errno : -error;
}

/* Did the kernel only say that the descriptor is in non-blocking mode?  Then it goes on. */
static bool
goes_on(errand__loop *loop, errand_io *io, int32_t *result)
{
    errand__request *request = errand__request_of(io);
    bool polled = (request->state & ERRAND__IO_POLLING) != 0;

    if ((request->state & ERRAND__IO_ASKED) != 0) {
        if (*result == -EAGAIN || polled)
            *result = -ECANCELED;
        return false;
    }
    if (polled) {
        request->state &= ~(uintptr_t)ERRAND__IO_POLLING;
        if (*result >= 0 && io->kind != ERRAND_IO_CONNECT) {
            hand_in(loop, io);
            return true;
        }
        if (*result >= 0)
            *result = connected(io);
        return false;
    }
    if ((*result != -EAGAIN &&
         !(*result == -EINPROGRESS && io->kind == ERRAND_IO_CONNECT)) ||
        errand__kinds[io->kind].waits == 0)
        return false;
    request->state |= ERRAND__IO_POLLING;
    hand_in(loop, io);
    return true;
}

static void
complete(errand__loop *loop, errand_io *io, int32_t result)
{
    errand__request *request = errand__request_of(io);

    if ((request->state & ERRAND__IO_LISTED) != 0) /* it waited to be asked back */
        errand__list_unlink(&request->link);
    request->state &= ~(uintptr_t)(ERRAND__IO_KERNEL | ERRAND__IO_LISTED);
    if (goes_on(loop, io, &result))
        return;
    if (may_pipe(io))
        ((uring *)loop->state)->pipers--;
    if (io->kind == ERRAND_IO_OPEN &&
        (result = errand__fifo_check(io, result)) == ERRAND__TRY_LATER) {
        if ((request->state & ERRAND__IO_ASKED) == 0) {
            errand__request_put_off(loop, io);
            return;
        }
        errand__fifo_forget(io);
        result = -ECANCELED;
    }
    if (errand__kinds[io->kind].many)
        errand__request_item(loop, io, result);
    else
        errand__request_done(loop, io, result);
}

static void
take(errand__loop *loop, uint64_t data, int32_t result)
{
    uring *self = loop->state;
    uint64_t count;

    switch (data & TAGS) {
    case TAG_REQUEST:
        complete(loop, (errand_io *)(uintptr_t)data, result);
        return;
    case TAG_BELL:
        self->bell_polled = false;
        if (!loop->local) {
            ssize_t got = read(self->bell, &count, sizeof count);

            (void)got;
        }
        return;
    case TAG_ALARM:
        if (result == -ETIME)
            loop->alarm_ns = UINT64_MAX;
        return;
    default:
        return;
    }
}

/* Those that are there now: what they lead to is the next turn's. */
static void
reap(errand__loop *loop)
{
    uring *self = loop->state;

    for (unsigned left = io_uring_cq_ready(&self->ring); left > 0; left--) {
        struct io_uring_cqe *entry;

        if (io_uring_peek_cqe(&self->ring, &entry) != 0)
            break;
        uint64_t data = entry->user_data;
        int32_t result = entry->res;
        io_uring_cqe_seen(&self->ring, entry); /* before a poll that may panic */
        take(loop, data, result);
    }
}

static bool
kernel_waits(const uring *self)
{
    return (IO_URING_READ_ONCE(*self->ring.sq.kflags) &
            (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) != 0;
}

static bool
uring_wanted(errand__loop *loop)
{
    uring *self = loop->state;

    return !errand__list_empty(&loop->waiting) || io_uring_sq_ready(&self->ring) != 0 ||
           io_uring_cq_ready(&self->ring) != 0 || kernel_waits(self);
}

static void
poll_bell(errand__loop *loop)
{
    uring *self = loop->state;
    struct io_uring_sqe *entry;

    if (self->bell_polled || (entry = next_entry(loop)) == NULL)
        return;
    io_uring_prep_poll_add(entry, self->bell, POLLIN);
    tagged(entry, TAG_BELL);
    self->bell_polled = true;
}

static void
uring_turn(errand__loop *loop, uint64_t timeout_ns)
{
    uring *self = loop->state;
    struct __kernel_timespec timeout;

    refill(loop);
    if (timeout_ns != 0 && io_uring_cq_ready(&self->ring) == 0) {
        if (timeout_ns > UINT64_C(3600000000000))
            timeout_ns = UINT64_C(3600000000000);
        timeout.tv_sec = (int64_t)(timeout_ns / 1000000000);
        timeout.tv_nsec = (long long)(timeout_ns % 1000000000);
        poll_bell(loop);
        (void)enter(loop, &timeout);
    } else if (io_uring_sq_ready(&self->ring) != 0 || kernel_waits(self)) {
        (void)enter(loop, NULL);
    }
    reap(loop);
}

static int
uring_descriptor(errand__loop *loop)
{
    uring *self = loop->state;

    if (self->signal >= 0)
        return self->signal;
    self->signal = errand__bell_create();
    if (self->signal >= 0 && io_uring_register_eventfd(&self->ring, self->signal) != 0) {
        close(self->signal);
        self->signal = -1;
    }
    if (self->signal >= 0)
        (void)io_uring_cq_eventfd_toggle(&self->ring, false);
    return self->signal;
}

static void
set_alarm(errand__loop *loop, uint64_t at_ns)
{
    uring *self = loop->state;
    struct io_uring_sqe *entry;
    bool armed = loop->alarm_ns != UINT64_MAX;

    if (at_ns == loop->alarm_ns || (entry = next_entry(loop)) == NULL)
        return;
    self->alarm.tv_sec = (int64_t)(at_ns / 1000000000);
    self->alarm.tv_nsec = (long long)(at_ns % 1000000000);
    if (!armed)
        io_uring_prep_timeout(entry, &self->alarm, 0, IORING_TIMEOUT_ABS);
    else if (at_ns == UINT64_MAX)
        io_uring_prep_timeout_remove(entry, TAG_ALARM, 0);
    else
        io_uring_prep_timeout_update(entry, &self->alarm, TAG_ALARM, IORING_TIMEOUT_ABS);
    tagged(entry, armed ? TAG_NOBODY : TAG_ALARM);
    loop->alarm_ns = at_ns;
    (void)enter(loop, NULL);
}

static void
uring_rest(errand__loop *loop, uint64_t at_ns)
{
    uring *self = loop->state;
    uint64_t count;

    set_alarm(loop, at_ns);
    if (self->signal < 0)
        return;
    ssize_t got = read(self->signal, &count, sizeof count); /* of the last time */
    (void)got;
    (void)io_uring_cq_eventfd_toggle(&self->ring, true);
}

static void
uring_rouse(errand__loop *loop)
{
    uring *self = loop->state;

    if (self->signal >= 0)
        (void)io_uring_cq_eventfd_toggle(&self->ring, false);
}

const errand__backend errand__uring_backend = {
    .name = "io_uring",
    .init = uring_init,
    .fini = uring_fini,
    .start = uring_start,
    .recall = uring_recall,
    .turn = uring_turn,
    .wanted = uring_wanted,
    .descriptor = uring_descriptor,
    .rest = uring_rest,
    .rouse = uring_rouse,
};
