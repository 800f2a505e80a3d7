/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WAIT_H
#define ERRAND_WAIT_H
/* wait: what a blocking body waits with, so that a cancel ends the wait.  Conventions:
 * errand.h. */
#include "errand.h"
ERRAND_BEGIN

/* errand_wait_fd: sleep until one of the events (of poll.h: POLLIN, POLLOUT ...) is there,
 * the job is asked to end, or deadline_ns has passed (CLOCK_MONOTONIC, as from
 * errand_deadline_in; UINT64_MAX = none), whichever is first; a cancel goes before the
 * others.  fd -1 = no descriptor: until the cancel or the deadline.  *out_events gets what
 * poll answered, POLLERR and POLLHUP as well; it may be NULL.
 * No cancel is lost, however shortly before the sleep it comes, and no signal is needed:
 * the recommended way to wait for a pipe or a socket, which should be non-blocking.
 * In a blocking pool the cancel wakes it; on the manual executor and a host's own it is
 * looked for every 10 ms.
 * Thread: [worker], the one that entered the body.   Errors: ECANCELLED · ETIMEOUT ·
 *   EMISUSE (another thread than the body's) · EUNSUPPORTED (an async job, which may not
 *   wait) · EINVAL (fd is not open) · ESYSTEM (errno says why). */
ERRAND_API ERRAND_MUST_USE errand_status errand_wait_fd(
    errand_job *job, int fd, short events, uint64_t deadline_ns, short *out_events);

ERRAND_END
#endif
