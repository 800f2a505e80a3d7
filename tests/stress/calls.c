/* SPDX-License-Identifier: MIT */
/* Design notes: see calls.h. */
#include "calls.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_ulong call_reads, call_writes, call_futexes, call_sleeps, call_unanswered;
static _Atomic(test_gate *) write_gate;

ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static void
count(atomic_ulong *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

unsigned long
call_count(atomic_ulong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void
calls_reset(void)
{
    atomic_ulong *all[] = {&call_reads, &call_writes, &call_futexes, &call_sleeps,
                           &call_unanswered};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        atomic_store_explicit(all[i], 0, memory_order_relaxed);
}

void
calls_hold_writes(test_gate *gate)
{
    atomic_store_explicit(&write_gate, gate, memory_order_release);
}

ssize_t
__wrap_read(int fd, void *bytes, size_t size)
{
    ssize_t got = __real_read(fd, bytes, size);

    count(&call_reads);
    if (got < 0)
        count(&call_unanswered);
    return got;
}

ssize_t
__wrap_write(int fd, const void *bytes, size_t size)
{
    test_gate *gate = atomic_load_explicit(&write_gate, memory_order_acquire);

    if (gate != NULL)
        gate_wait(gate);
    count(&call_writes);
    return __real_write(fd, bytes, size);
}

long
__wrap_syscall(long number, ...)
{
    long words[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex) {
        count(&call_futexes);
        if ((words[1] & FUTEX_CMD_MASK) == FUTEX_WAIT)
            count(&call_sleeps);
    }
    return __real_syscall(number, words[0], words[1], words[2], words[3], words[4],
                          words[5]);
}
