/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SNAPSHOT_H
#define ERRAND_SNAPSHOT_H
/* snapshot: a run in the middle, as a process.  Where a process has one thread, fork copies
 * the whole run: one of the two can stand still as a mark while the other goes on, and a
 * mark can be woken many times by forking again, each time with other choices.
 * (errand/checkpoint.h keeps runs that have ended, as bytes.) */
#include "errand.h"
ERRAND_BEGIN

/* errand_snapshot_fork: fork, and the child goes on with all that this process made; after
 * any other fork it would get EFORKED.  Both processes return from here, with the child's
 * process id in the parent and 0 in the child; both go on, or wait, as they like.
 * It needs inline order, no executor but manual ones, exactly one thread in the process, and no
 * recorder, replay or wake descriptor of the runtime, for the two would share it.
 * What the host has opened is shared, too, and the time that a process stands still is real
 * time; virtual time knows nothing of it.  The parent has to wait for its child.
 * Call it anywhere but in a job; a handler of errand_trace may call it.
 * Thread: [owner].   Errors: EUNSUPPORTED (what is above) · EBUSY (in a job) · ESYSTEM
 *   (the system refuses a process) · ETHREAD.  message, of room bytes, says why; it may be
 *   NULL with room 0. */
ERRAND_API ERRAND_MUST_USE errand_status errand_snapshot_fork(
    errand_runtime *runtime, char *message, size_t room, int64_t *out_child);

/* errand_snapshot_branch: from here on seed decides, whatever did so far.  The policy stays, and
 * so does what was chosen already; change points, delays and windows of a policy that lie
 * ahead are chosen anew.  A tape that records goes on, so the tape of a branch makes it
 * again from the start.  A handler of errand_trace may call it.
 * Thread: [owner].   Errors: EUNSUPPORTED (arrival order, a replay) · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_snapshot_branch(errand_runtime *runtime, uint64_t seed);

ERRAND_END
#endif
