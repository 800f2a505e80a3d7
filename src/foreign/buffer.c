/* SPDX-License-Identifier: MIT */
/* buffer: memory that a call works on in place.
 *
 * Design notes: pins and the creator's hold are one word, so that the last of both frees.  Pins are
 * taken when a call is described and let go of when its state is dropped, which is after its
 * completion's handler.  Resizing is the creator's own doing, on the thread that also describes its
 * calls, so a pin cannot come in between. */
#include <string.h>
#include "foreign/foreign.h"

enum { PIN = 2 };

struct errand_ffi_buffer {
    const errand__buffer_memory *memory;
    void *owner;
    void *data; /* both change while nothing is pinned alone */
    size_t size;
    /* uses: the creator's hold, and a PIN for each call.
     * Writers, Readers: whoever holds or pins it.
     * Order:   acq_rel on the way down, acquire before it is resized.
     * Pairs:   buffer-uses.
     * Why:     what a call wrote must be done before the memory goes or moves. */
    atomic_uint uses;
};

static void *
plain_alloc(void *owner, size_t size)
{
    (void)owner;
    return errand__mem_alloc_used(size);
}

static void
plain_free(void *owner, void *data, size_t size)
{
    (void)owner;
    errand__mem_free(NULL, data, size);
}

static const errand__buffer_memory plain = {.alloc = plain_alloc, .free = plain_free};

errand_status
errand_ffi_buffer_create(size_t size, errand_ffi_buffer **out_buffer)
{
    ERRAND_REQUIRE_ARG(out_buffer != NULL, ERRAND_EINVAL, "out_buffer is NULL");
    ERRAND_REQUIRE_ARG(size > 0, ERRAND_EINVAL, "a buffer needs a size above 0");
    return errand__buffer_create(&plain, NULL, size, out_buffer);
}

errand_status
errand__buffer_create(const errand__buffer_memory *held_memory, void *owner, size_t size,
                      errand_ffi_buffer **out_buffer)
{
    errand_ffi_buffer *buffer;

    if (size >= SIZE_MAX / 4)
        return ERRAND_ENOMEM;
    buffer = errand__mem_alloc(NULL, sizeof *buffer);
    if (buffer == NULL)
        return ERRAND_ENOMEM;
    buffer->data = held_memory->alloc(owner, size);
    if (buffer->data == NULL) {
        errand__mem_free(NULL, buffer, sizeof *buffer);
        return ERRAND_ENOMEM;
    }
    buffer->memory = held_memory;
    buffer->owner = owner;
    buffer->size = size;
    atomic_init(&buffer->uses, 1);
    *out_buffer = buffer;
    return ERRAND_OK;
}

errand_status
errand_ffi_buffer_resize(errand_ffi_buffer *buffer, size_t size)
{
    void *moved;

    ERRAND_REQUIRE_ARG(buffer != NULL && size > 0, ERRAND_EINVAL,
                       "a buffer and a size above 0 are needed");
    ERRAND_REQUIRE_ARG(!errand_ffi_buffer_pinned(buffer), ERRAND_EBUSY,
                       "a call works on the buffer; resize it when that was drained");
    moved = size >= SIZE_MAX / 4 ? NULL : buffer->memory->alloc(buffer->owner, size);
    if (moved == NULL)
        return ERRAND_ENOMEM;
    memcpy(moved, buffer->data, size < buffer->size ? size : buffer->size);
    buffer->memory->free(buffer->owner, buffer->data, buffer->size);
    buffer->data = moved;
    buffer->size = size;
    return ERRAND_OK;
}

static void
let(errand_ffi_buffer *buffer, unsigned use)
{
    /* Pairs: buffer-uses */
    if (atomic_fetch_sub_explicit(&buffer->uses, use, memory_order_acq_rel) != use)
        return;
    buffer->memory->free(buffer->owner, buffer->data, buffer->size);
    if (buffer->memory->drop != NULL)
        buffer->memory->drop(buffer->owner);
    errand__mem_free(NULL, buffer, sizeof *buffer);
}

void
errand_ffi_buffer_abandon(errand_ffi_buffer **take_buffer)
{
    errand_ffi_buffer *buffer;

    if (take_buffer == NULL || *take_buffer == NULL)
        return;
    buffer = *take_buffer;
    *take_buffer = NULL;
    let(buffer, 1);
}

void *
errand_ffi_buffer_data(const errand_ffi_buffer *buffer)
{
    return buffer == NULL ? NULL : buffer->data;
}

size_t
errand_ffi_buffer_size(const errand_ffi_buffer *buffer)
{
    return buffer == NULL ? 0 : buffer->size;
}

bool
errand_ffi_buffer_pinned(const errand_ffi_buffer *buffer)
{
    return buffer != NULL &&
           atomic_load_explicit(&buffer->uses, memory_order_acquire) >= PIN;
}

void
errand_ffi_buffer_pin(errand_ffi_buffer *buffer)
{
    if (buffer != NULL)
        atomic_fetch_add_explicit(&buffer->uses, PIN, memory_order_relaxed);
}

void
errand_ffi_buffer_unpin(errand_ffi_buffer *buffer)
{
    if (buffer != NULL)
        let(buffer, PIN);
}

bool
errand__buffer_region(const errand_ffi_buffer *buffer, uint64_t *out_offset)
{
    return buffer->memory->region != NULL &&
           buffer->memory->region(buffer->owner, buffer->data, out_offset);
}

bool
errand_ffi_buffer_shared(const errand_ffi_buffer *buffer)
{
    uint64_t offset;

    return buffer != NULL && errand__buffer_region(buffer, &offset);
}

void *
errand__buffer_owner(const errand_ffi_buffer *buffer, const errand__buffer_memory *memory)
{
    return buffer->memory == memory ? buffer->owner : NULL;
}

bool
errand__buffer_beside(const errand_ffi_buffer *buffer, const errand_ffi_buffer *other)
{
    return buffer->memory == other->memory && buffer->owner == other->owner;
}
