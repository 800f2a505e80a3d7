/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTING_H
#define ERRAND_TESTING_H
/* testing: what tests of errand and of hosts need and programs do not.  Conventions:
 * errand.h.  The functions marked [testing library] exist only in the static library
 * errand_testing. */
#include "errand.h"
ERRAND_BEGIN

/* errand_testing_clock: move a runtime's clock (ERRAND_RUNTIME_TEST_CLOCK) forward by ns.
 * Thread: [owner].   Errors: EUNSUPPORTED (it has a real or virtual clock) · EINVAL
 *   (overflow) · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_testing_clock(errand_runtime *runtime, uint64_t ns);

/* errand_testing_counters: let the runtime's counters go on from these numbers, to see
 * what happens at their end (O5).  0 = leave.   Thread: [owner].   Errors: ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_testing_counters(
    errand_runtime *runtime, uint64_t next_wait, uint64_t next_generation,
    uint64_t next_operation);

/* errand_testing_deliver: route a forged completion with this identity, as if it had been
 * drained (O46).  payload is consumed.  *out_woke: did a wait end?   Thread: [owner].
 * Errors: ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_testing_deliver(
    errand_runtime *runtime, const errand_identity *identity, errand_outcome outcome,
    errand_payload payload, bool *out_woke);

/* Pause points [testing library]: named places in the library where fn is called.  The
 * names are in src/core/pause.h.  fn may block (a gate) or call the library.
 * NULL takes it away.   Thread: [any]. */
typedef void errand_pause_fn(void *arg, const char *place);
ERRAND_API void errand_testing_pause(errand_pause_fn *fn, void *arg);
/* [testing library] Let the next n thread creations be refused (EAGAIN), UINT32_MAX =
 * all of them.   Thread: [any]. */
ERRAND_API void errand_testing_refuse_threads(uint32_t n);
/* [testing library] Let the n-th allocation from now fail (0 = none); answers how many
 * were asked for since the last call.   Thread: [any]. */
ERRAND_API uint64_t errand_testing_fail_allocation(uint64_t n);
/* [testing library] Bytes live in the library's allocations.   Thread: [any]. */
ERRAND_API int64_t errand_testing_live_bytes(void);
/* [testing library] Move a blocking pool's clock for idle retirement forward and wake its
 * sleepers.   Thread: [any]. */
ERRAND_API void errand_testing_idle_clock(errand_executor *executor, uint64_t ns);

ERRAND_END
#endif
