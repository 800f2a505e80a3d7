/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FOREIGN_BUFFER_H
#define ERRAND_FOREIGN_BUFFER_H
/* buffer: memory that a call works on in place, wherever it comes from (buffer.c). */
#include "errand/ffi.h"

/* Where a buffer's memory comes from. */
typedef struct errand__buffer_memory {
    void *(*alloc)(void *owner, size_t size); /* zeroed, 16-aligned; NULL = none */
    void (*free)(void *owner, void *data, size_t size);
    /* Where in a region that a sandbox's workers can read it lies; false: nowhere.  May be NULL. */
    bool (*region)(void *owner, const void *data, uint64_t *out_offset);
    void (*drop)(void *owner); /* the buffer is gone; may be NULL */
} errand__buffer_memory;
errand_status errand__buffer_create(const errand__buffer_memory *held_memory, void *owner,
                                    size_t size, errand_ffi_buffer **out_buffer);
bool errand__buffer_region(const errand_ffi_buffer *buffer, uint64_t *out_offset);
/* Have both the same owner? */
bool errand__buffer_beside(const errand_ffi_buffer *buffer,
                           const errand_ffi_buffer *other);
/* Whose memory it has; NULL: of other memory. */
void *errand__buffer_owner(const errand_ffi_buffer *buffer,
                           const errand__buffer_memory *memory);

#endif
