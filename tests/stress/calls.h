/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_STRESS_CALLS_H
#define ERRAND_TESTS_STRESS_CALLS_H
/* calls: the linker puts these read, write and syscall in front of the C library's; they count.
 *
 * Link with stress_counted_calls.  Any thread. */
#include <stdatomic.h>
#include "gate.h"

/* sleeps: futex waits; unanswered: reads that had nothing to read. */
extern atomic_ulong call_reads, call_writes, call_futexes, call_sleeps, call_unanswered;

unsigned long call_count(atomic_ulong *counter);
void calls_reset(void);
/* Each write waits there before it does anything; NULL = go on. */
void calls_hold_writes(test_gate *gate);

#endif
