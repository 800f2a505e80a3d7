/* SPDX-License-Identifier: MIT */
/* meter: malloc and its family, replaced by ones that count and pass on. */
#include "meter.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own, under the names that it keeps for this. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

/* metering, calls, bytes, mapped: counters of the whole process.
 * Writers: any thread (calls, bytes, mapped); the one that measures (metering).   Readers: the same.
 * Order:   relaxed.   Pairs: none.
 * Why:     they are read while nothing else runs, or as a sum that may be a moment old. */
static _Atomic bool metering;
static _Atomic uint64_t calls;
static _Atomic int64_t bytes, mapped;

static void
count(uint64_t added_calls, int64_t added_bytes)
{
    if (!atomic_load_explicit(&metering, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&calls, added_calls, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, added_bytes, memory_order_relaxed);
}

static void
count_mapped(uint64_t added_calls, int64_t added_bytes)
{
    count(added_calls, added_bytes);
    if (atomic_load_explicit(&metering, memory_order_relaxed))
        atomic_fetch_add_explicit(&mapped, added_bytes, memory_order_relaxed);
}

static int64_t
block_bytes(void *block)
{
    return block == NULL ? 0 : (int64_t)(malloc_usable_size(block) + sizeof(size_t));
}

static void *
counted(void *block)
{
    count(1, block_bytes(block));
    return block;
}

void *
malloc(size_t size)
{
    return counted(__libc_malloc(size));
}

void *
calloc(size_t number, size_t size)
{
    return counted(__libc_calloc(number, size));
}

void *
realloc(void *block, size_t size)
{
    int64_t before = block_bytes(block);
    void *moved = __libc_realloc(block, size);
    if (moved != NULL || size == 0)
        count(1, block_bytes(moved) - before);
    return moved;
}

void
free(void *block)
{
    count(0, -block_bytes(block));
    __libc_free(block);
}

void *
memalign(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

void *
aligned_alloc(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

int
posix_memalign(void **out_block, size_t alignment, size_t size)
{
    void *block = counted(__libc_memalign(alignment, size));
    if (block == NULL)
        return ENOMEM;
    *out_block = block;
    return 0;
}

void *
mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *block = (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
    if (block != MAP_FAILED)
        count_mapped(1, (int64_t)size);
    return block;
}

int
munmap(void *block, size_t size)
{
    int answer = (int)syscall(SYS_munmap, block, size);
    if (answer == 0)
        count_mapped(0, -(int64_t)size);
    return answer;
}

void
bench_meter_start(void)
{
    atomic_store_explicit(&calls, 0, memory_order_relaxed);
    atomic_store_explicit(&bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&mapped, 0, memory_order_relaxed);
    atomic_store_explicit(&metering, true, memory_order_relaxed);
}

bench_meter
bench_meter_read(void)
{
    return (bench_meter){.calls = atomic_load_explicit(&calls, memory_order_relaxed),
                         .bytes = atomic_load_explicit(&bytes, memory_order_relaxed),
                         .mapped = atomic_load_explicit(&mapped, memory_order_relaxed)};
}

void
bench_meter_stop(void)
{
    atomic_store_explicit(&metering, false, memory_order_relaxed);
}

int64_t
bench_meter_resident(void)
{
    long long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld %lld", &all, &pages) != 2)
        pages = 0;
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

int64_t
bench_meter_mallinfo(void)
{
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
}
