/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WAITS_H
#define ERRAND_WAITS_H
/* waits: for time, and for a descriptor of somebody else's.  Conventions: errand.h; what
 * specs have in common: errand/operations.h.
 *
 * Class: interruptible, async, for a reactor (errand/io.h): none of them holds a thread.
 * Failures: STOPPED (cancelled), UNSUPPORTED (no reactor), IO.
 * Thread: [any].   Errors of all: ENOMEM · EINVAL. */
#include "errand/operations.h"
ERRAND_BEGIN

/* errand_spec_timer: completes, without a payload, once so many real ns have passed since
 * its begin: not before, and some 50 us after at best.
 * Thread: [any].   Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_timer(errand_spec *out_spec, uint64_t ns);

enum { /* as poll(2) has them */
       ERRAND_WAIT_READABLE = 1,
       ERRAND_WAIT_WRITABLE = 4,
       ERRAND_WAIT_ERROR = 8,
       ERRAND_WAIT_HANGUP = 16
};
typedef struct errand_readiness {
    uint32_t events; /* ERRAND_WAIT_... that there are */
} errand_readiness;
ERRAND_API extern const errand_payload_type errand_readiness_type; /* [any] */
ERRAND_API uint64_t errand_readiness_digest(const void *data, size_t size);
/* errand_spec_wait_fd: until there is one of events (READABLE, WRITABLE), an error or a
 * hang-up; at once if there is.  The descriptor stays the host's, which keeps it open until
 * the completion: it is not closed, read or changed here.  One that the system cannot wait
 * for (a regular file) is ready at once or fails as IO.
 * Thread: [any].   Gives: errand_readiness_type.
 * Errors: ENOMEM · EINVAL (fd below 0, no or unknown events). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_wait_fd(errand_spec *out_spec, int fd, uint32_t events);

ERRAND_END
#endif
