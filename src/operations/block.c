/* SPDX-License-Identifier: MIT */
/* block: memory of states and payloads.
 *
 * Design notes: a drop gets no size that the allocator could use (a state's has none, a
 * payload's counts what is valid), so each block carries its size in front of it. */
#include <string.h>
#include "operations/operations.h"

enum { PREFIX = 16 };
_Static_assert(sizeof(size_t) <= PREFIX, "the size fits in front of the block");

static void *
behind_its_size(char *base, size_t size)
{
    if (base == NULL)
        return NULL;
    memcpy(base, &size, sizeof size);
    return base + PREFIX;
}

void *
errand__operation_block_alloc(size_t size)
{
    if (size > PTRDIFF_MAX - PREFIX)
        return NULL;
    return behind_its_size(errand__mem_alloc_used(PREFIX + size), size);
}

void *
errand__operation_block_alloc_bare(size_t size)
{
    if (size > PTRDIFF_MAX - PREFIX)
        return NULL;
    return behind_its_size(errand__mem_alloc_bare(PREFIX + size), size);
}

void *
errand__operation_block_alloc_for(size_t front, size_t bytes)
{
    void *block = bytes > PTRDIFF_MAX - PREFIX - front
                      ? NULL
                      : errand__operation_block_alloc_bare(front + bytes);

    return block != NULL ? memset(block, 0, front) : NULL;
}

void *
errand__operation_block_grow(void *block, size_t new_size)
{
    char *base = (char *)block - PREFIX;
    size_t size;

    if (new_size > PTRDIFF_MAX - PREFIX)
        return NULL;
    memcpy(&size, base, sizeof size);
    base = errand__mem_grow(NULL, base, PREFIX + size, PREFIX + new_size);
    if (base == NULL)
        return NULL;
    memcpy(base, &new_size, sizeof new_size);
    return base + PREFIX;
}

void
errand__operation_block_free(void *block)
{
    size_t size;

    if (block == NULL)
        return;
    memcpy(&size, (char *)block - PREFIX, sizeof size);
    errand__mem_free(NULL, (char *)block - PREFIX, PREFIX + size);
}

char *
errand__operation_copy(errand__operation_cursor *cursor, const void *bytes, size_t size)
{
    char *copy = cursor->at;

    if (size > 0)
        memcpy(copy, bytes, size);
    cursor->at += size;
    return copy;
}
