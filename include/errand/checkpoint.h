/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_CHECKPOINT_H
#define ERRAND_CHECKPOINT_H
/* checkpoint: what a seeded run leaves for the next one, as a crash leaves a disk.
 * Conventions: errand.h.
 *
 * A checkpoint holds the clock, the seed and how far each of its streams has come, the
 * digest, the latency models, the deadline, and the settings of the runtime's config and
 * policy.  It holds no task, wait, operation or stop signal.  Give it to one
 * errand_runtime_create by config.held_checkpoint: that runtime goes on where this one
 * ended. */
#include "errand.h"
ERRAND_BEGIN

typedef struct errand_checkpoint errand_checkpoint;

/* errand_runtime_checkpoint: of a runtime whose run has ended: no task and no wait is
 * left.  One that failed counts as ended (errand_run_root cleans up first).  What was
 * submitted and has not come back is not part of it.
 * Thread: [owner].   Errors: EBUSY (the run has not ended) · EUNSUPPORTED (arrival order:
 *   its clock cannot be taken along) · ENOMEM · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_runtime_checkpoint(errand_runtime *runtime, errand_checkpoint **out_checkpoint);

typedef struct errand_checkpoint_view {
    uint64_t seed, now_ns, digest, steps;
    uint64_t deadline_ns; /* absolute; 0 = none */
    uint32_t flags;       /* of the config */
    bool spent;           /* a runtime was made of it */
} errand_checkpoint_view;
/* errand_checkpoint_read: look into it.
 * errand_checkpoint_save: its bytes, the same on every machine.  Returns how many there
 *   are, and writes them if size is enough; 0 for a spent one: who saves it afterwards
 *   would use it twice.
 * errand_checkpoint_load: a new one of such bytes.
 * errand_checkpoint_abandon: NULL-safe.
 * Thread: [any], one at a time.   Errors: EINVAL (load: not a checkpoint, of another
 *   version, or damaged) · ENOMEM (load). */
ERRAND_API ERRAND_MUST_USE errand_status errand_checkpoint_read(
    const errand_checkpoint *checkpoint, errand_checkpoint_view *out_view);
ERRAND_API size_t
errand_checkpoint_save(const errand_checkpoint *checkpoint, void *out, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status errand_checkpoint_load(
    const void *bytes, size_t size, errand_checkpoint **out_checkpoint);
ERRAND_API void errand_checkpoint_abandon(errand_checkpoint **take_checkpoint);

ERRAND_END
#endif
