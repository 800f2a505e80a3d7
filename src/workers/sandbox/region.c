/* SPDX-License-Identifier: MIT */
/* Design notes: bytes that all workers of a pool can read.
 *
 * - One file for the pool's life, mapped for reading by each worker before it is locked down, since
 *   nothing can be mapped afterwards.  The host has the only mapping that can be written: the file
 *   is sealed against others, and against any change of size.
 * - Its pages are allocated when a buffer first gets them, so that a write of the host's cannot
 *   fail, and stay: a sealed file gives none back.  What had a buffer before is zeroed for the
 *   next one.
 * - What is taken is a list in the order of the offsets, a block for each; a buffer gets the first
 *   gap that is wide enough.  Giving back needs no memory.
 * - It is counted by the pool and by each buffer, which may live longer.  After a fork the child has
 *   the counts of its parent at some moment and no mapping: it leaves all as it is. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "foreign/buffer.h"
#include "workers/sandbox/sandbox.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

typedef struct extent { /* what a buffer has */
    errand__link link;
    size_t offset, size; /* whole pages */
} extent;

struct errand__region {
    int fd;
    unsigned char *bytes;
    size_t size;
    uint32_t fork_epoch;
    /* holds: the pool, and each buffer.
     * Writers, Readers: whoever holds it.
     * Order:   acq_rel on the way down.
     * Pairs:   region-holds.
     * Why:     what was done with the bytes must be done before they are unmapped. */
    atomic_uint holds;
    errand__lock lock;
    /* Guarded by lock. */
    errand__link taken; /* extents, by offset */
    size_t used;        /* pages below have been a buffer's before, or are */
};

static void *region_alloc(void *owner, size_t size);
static void region_free(void *owner, void *data, size_t size);
static bool region_offset(void *owner, const void *data, uint64_t *out_offset);
static void region_drop(void *owner);

static const errand__buffer_memory region_memory = {
    .alloc = region_alloc,
    .free = region_free,
    .region = region_offset,
    .drop = region_drop,
};

static bool
map_sealed(errand__region *region)
{
    void *bytes;

    region->fd = memfd_create("errand-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (region->fd < 0 || ftruncate(region->fd, (off_t)region->size) != 0)
        return false;
    bytes = mmap(NULL, region->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                 region->fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    region->bytes = bytes;
    (void)madvise(bytes, region->size, MADV_DONTFORK);
    return fcntl(region->fd, F_ADD_SEALS,
                 F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

errand_status
errand__region_create(uint64_t size, errand__region **out_region, char *out_text,
                      size_t text_size)
{
    errand__region *region = errand__mem_alloc(NULL, sizeof *region);

    if (region == NULL)
        return ERRAND_ENOMEM;
    region->size = (size_t)size;
    region->fork_epoch = errand__fork_epoch();
    errand__list_init(&region->taken);
    atomic_init(&region->holds, 1);
    if (!map_sealed(region)) {
        errand__text_format(out_text, text_size, "shared_in_bytes: %s", strerror(errno));
        errand__region_let(region);
        return ERRAND_ESYSTEM;
    }
    *out_region = region;
    return ERRAND_OK;
}

static bool
is_of_parent(const errand__region *region)
{
    return region->fork_epoch != errand__fork_epoch();
}

void
errand__region_let(errand__region *region)
{
    if (region == NULL || is_of_parent(region))
        return;
    /* Pairs: region-holds */
    if (atomic_fetch_sub_explicit(&region->holds, 1, memory_order_acq_rel) != 1)
        return;
    if (region->bytes != NULL)
        munmap(region->bytes, region->size);
    if (region->fd >= 0)
        close(region->fd);
    errand__mem_free(NULL, region, sizeof *region);
}

int
errand__region_fd(const errand__region *region)
{
    return region->fd;
}

uint64_t
errand__region_size(const errand__region *region)
{
    return region->size;
}

/* ---- buffers --------------------------------------------------------------------------------------- */

errand_status
errand__region_buffer(errand__region *region, size_t size, errand_ffi_buffer **out_buffer)
{
    errand_status status;

    atomic_fetch_add_explicit(&region->holds, 1, memory_order_relaxed);
    status = errand__buffer_create(&region_memory, region, size, out_buffer);
    if (status != ERRAND_OK)
        errand__region_let(region);
    return status;
}

bool
errand__region_holds(const errand__region *region, const errand_ffi_buffer *buffer,
                     uint64_t *out_offset)
{
    return errand__buffer_owner(buffer, &region_memory) == region &&
           errand__buffer_region(buffer, out_offset);
}

/* Takes the first gap of that size for it; false: there is none. */
static bool
take_gap_locked(errand__region *region, extent *own_extent)
{
    errand__link *next = region->taken.next;
    size_t offset = 0;

    for (; next != &region->taken; next = next->next) {
        const extent *taken = ERRAND__CONTAINER(next, extent, link);

        if (taken->offset - offset >= own_extent->size)
            break;
        offset = taken->offset + taken->size;
    }
    if (region->size - offset < own_extent->size)
        return false;
    own_extent->offset = offset;
    errand__list_append(next, &own_extent->link); /* before next */
    return true;
}

static void
give_back(errand__region *region, extent *take_extent)
{
    errand__lock_acquire(&region->lock);
    errand__list_unlink(&take_extent->link);
    errand__lock_release(&region->lock);
    errand__mem_free(NULL, take_extent, sizeof *take_extent);
}

static void *
region_alloc(void *owner, size_t size)
{
    errand__region *region = owner;
    extent *taken = is_of_parent(region) ? NULL : errand__mem_alloc(NULL, sizeof *taken);
    size_t used, end;
    bool found;

    if (taken == NULL)
        return NULL;
    taken->size = errand__whole_pages(size);
    errand__lock_acquire(&region->lock);
    found = take_gap_locked(region, taken);
    used = region->used;
    end = taken->offset + taken->size;
    if (found && end > used)
        region->used = end;
    errand__lock_release(&region->lock);
    if (!found) {
        errand__mem_free(NULL, taken, sizeof *taken);
        return NULL;
    }
    if (fallocate(region->fd, 0, (off_t)taken->offset, (off_t)taken->size) != 0) {
        give_back(region, taken);
        return NULL;
    }
    if (taken->offset < used)
        memset(region->bytes + taken->offset, 0,
               end < used ? taken->size : used - taken->offset);
    return region->bytes + taken->offset;
}

static void
region_free(void *owner, void *data, size_t size)
{
    errand__region *region = owner;
    extent *found = NULL;

    (void)size;
    if (is_of_parent(region))
        return;
    errand__lock_acquire(&region->lock);
    for (errand__link *link = region->taken.next; link != &region->taken;
         link = link->next) {
        found = ERRAND__CONTAINER(link, extent, link);
        if (region->bytes + found->offset == data)
            break;
    }
    errand__lock_release(&region->lock);
    give_back(region, found); /* nobody else takes this one out */
}

static bool
region_offset(void *owner, const void *data, uint64_t *out_offset)
{
    const errand__region *region = owner;

    *out_offset = (uint64_t)((const unsigned char *)data - region->bytes);
    return true;
}

static void
region_drop(void *owner)
{
    errand__region_let(owner);
}

errand_status
errand_sandbox_buffer(errand_executor *executor, size_t size,
                      errand_ffi_buffer **out_buffer)
{
    errand__region *region;

    ERRAND_REQUIRE_ARG(executor != NULL && out_buffer != NULL && size > 0, ERRAND_EINVAL,
                       "an executor, out_buffer and a size above 0 are needed");
    ERRAND_REQUIRE_ARG(executor->ops == &errand__sandbox_ops, ERRAND_EINVAL,
                       "the executor is no sandbox");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor belongs to the parent process");
    region = errand__sandbox_of(executor)->region;
    ERRAND_REQUIRE_ARG(region != NULL, ERRAND_EUNSUPPORTED,
                       "the policy has no shared_in_bytes");
    return errand__region_buffer(region, size, out_buffer);
}
