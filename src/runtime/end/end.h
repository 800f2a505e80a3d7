/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_END_H
#define ERRAND_RUNTIME_END_H
/* end: what the two shutdowns share; of no use to anybody else. */
#include "runtime/runtime.h"

/* One round of news; true if there was any. */
bool errand__end_news(errand_runtime *runtime, errand_shutdown_mode mode);
/* Settles as cancelled what no worker has begun (O57), and asks nothing else to end.  A wait for it
 * stays for its turn, in key order.  waited_only: what nobody waits for stays queued. */
void errand__end_queued(errand_runtime *runtime, bool waited_only);
/* Asks everything armed to end, in slot order within key order of the waits before.  only: of this
 * lease; NULL = of all. */
void errand__end_cancel(errand_runtime *runtime, const errand_lease *only,
                        bool queued_only);
/* Until nothing of the lease is unsettled, or the deadline.  NULL = of any: drains meanwhile. */
void errand__end_settle(errand_runtime *runtime, const errand_lease *only,
                        uint64_t deadline_ns, errand_shutdown_mode mode);
/* Lets its executor go; harmless twice. */
void errand__end_lease(errand_lease *lease, uint64_t deadline_ns);
bool errand__end_clean(const errand_report *report);
#endif
