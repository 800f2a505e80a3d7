/* SPDX-License-Identifier: MIT */
/* wait_fd: a body's wait that a cancel ends.
 *
 * Design notes.
 * - Each worker of a pool has a descriptor of its own, made at its first such wait, which the
 *   canceller writes.  The body registers first and looks at its token then; the canceller sets the
 *   token first and looks for the body then, both with the lock: one of the two sees the other.
 * - Cancels of bodies that do not wait pay one step by nothing on a counter of the pool's waiting
 *   bodies: both sides change that word, so whoever comes second sees what the first did before.
 * - What was written is read by the worker before it leaves, so that the next wait finds the
 *   descriptor empty.
 * - Elsewhere, and where no descriptor is to be had, the token is looked at every 10 ms. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "core/pause.h"
#include "dispatch/hands.h"
#include "errand/wait.h"

#define SLICE_NS UINT64_C(10000000)

void
errand__ringer_init(errand__ringer *ringer, _Atomic uint32_t *waiters)
{
    errand__lock_acquire(&ringer->lock); /* it may have been a former thread's */
    ringer->waiters = waiters;
    errand__lock_release(&ringer->lock);
}

void
errand__ringer_fini(errand__ringer *ringer)
{
    int fd;

    errand__lock_acquire(&ringer->lock);
    fd = ringer->fd;
    ringer->fd = 0;
    ringer->record = NULL;
    errand__lock_release(&ringer->lock);
    if (fd > 0)
        close(fd);
}

/* Above 2, whatever the host closed. */
static int
descriptor_make(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd >= 0 && fd <= 2) {
        int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);

        close(fd);
        fd = higher;
    }
    return fd > 0 ? fd : 0;
}

static void
ringer_open(errand__ringer *ringer, const errand_job *job)
{
    int fresh =
        ringer->fd == 0 ? descriptor_make() : 0; /* written by this thread alone */

    errand__lock_acquire(&ringer->lock);
    if (fresh != 0)
        ringer->fd = fresh;
    ringer->record = job->record;
    ringer->generation = job->generation;
    errand__lock_release(&ringer->lock);
    /* Pairs: pool-waiters */
    atomic_fetch_add_explicit(ringer->waiters, 1, memory_order_acq_rel);
}

static void
ringer_close(errand__ringer *ringer)
{
    uint64_t count;
    bool rung;

    /* Pairs: pool-waiters */
    atomic_fetch_sub_explicit(ringer->waiters, 1, memory_order_acq_rel);
    errand__lock_acquire(&ringer->lock);
    ringer->record = NULL;
    rung = ringer->rung;
    ringer->rung = false;
    errand__lock_release(&ringer->lock);
    if (rung)
        (void)!read(ringer->fd, &count, sizeof count);
}

void
errand__ringer_ring(errand__ringer *ringer, const errand__record *record,
                    uint32_t generation)
{
    uint64_t one = 1;

    errand__lock_acquire(&ringer->lock);
    if (ringer->record == record && ringer->generation == generation && !ringer->rung &&
        ringer->fd > 0) {
        ringer->rung = true;
        (void)!write(ringer->fd, &one, sizeof one);
    }
    errand__lock_release(&ringer->lock);
}

/* One sleep; true: wait is over and *out_status says how. */
static bool
sleep_once(const errand_job *job, struct pollfd fds[2], uint64_t deadline_ns,
           errand_status *out_status)
{
    struct timespec timeout;
    uint64_t now = errand__clock_now();
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    int count;

    if (errand_job_cancelled(job)) {
        *out_status = ERRAND_ECANCELLED;
        return true;
    }
    ERRAND__PAUSE("wait-fd");
    if (fds[1].fd < 0 && left > SLICE_NS)
        left = SLICE_NS;
    timeout.tv_sec = (time_t)(left / 1000000000);
    timeout.tv_nsec = (long)(left % 1000000000);
    count = ppoll(fds, 2, deadline_ns == UINT64_MAX && fds[1].fd >= 0 ? NULL : &timeout,
                  NULL);
    *out_status = ERRAND_OK;
    if (count < 0 && errno != EINTR && errno != EAGAIN)
        *out_status = ERRAND_ESYSTEM;
    else if (errand_job_cancelled(job))
        *out_status = ERRAND_ECANCELLED;
    else if (count > 0 && fds[0].revents != 0)
        return true;
    else if (left == 0 && deadline_ns != UINT64_MAX && count == 0)
        *out_status = ERRAND_ETIMEOUT;
    return *out_status != ERRAND_OK;
}

errand_status
errand_wait_fd(errand_job *job, int fd, short events, uint64_t deadline_ns,
               short *out_events)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events}, {.fd = -1, .events = POLLIN}};
    errand__ringer *ringer;
    errand_status status;
    bool impure;

    ERRAND_REQUIRE_ARG(job != NULL, ERRAND_EINVAL, "the job is NULL");
    ERRAND_REQUIRE_ARG(fd >= -1, ERRAND_EINVAL, "fd is neither a descriptor nor -1");
    ERRAND_REQUIRE_ARG(!job->is_async, ERRAND_EUNSUPPORTED,
                       "an async job may not wait: hold its waker and answer pending");
    ERRAND_REQUIRE_ARG(errand__frame_job() == job, ERRAND_EMISUSE,
                       "only the thread that entered the body waits for it");
    impure = job->impure; /* the clock is asked by us */
    job->impure = true;
    ringer = job->hands->ringer;
    if (ringer != NULL) {
        ringer_open(ringer, job);
        fds[1].fd = ringer->fd > 0 ? ringer->fd : -1;
    }
    while (!sleep_once(job, fds, deadline_ns, &status))
        continue;
    if (ringer != NULL) {
        int error = errno;

        ringer_close(ringer);
        errno = error;
    }
    job->impure = impure;
    if (status == ERRAND_OK && (fds[0].revents & POLLNVAL) != 0)
        return errand__misuse(ERRAND_EINVAL, __func__, "fd is not open");
    if (status == ERRAND_OK && out_events != NULL)
        *out_events = fds[0].revents;
    return status;
}
