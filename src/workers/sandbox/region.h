/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_REGION_H
#define ERRAND_SANDBOX_REGION_H
/* region: bytes that all workers of a pool can read. */
#include "errand/sandbox.h"

typedef struct errand__region errand__region; /* counted: the pool, and each buffer */
errand_status errand__region_create(uint64_t size, errand__region **out_region,
                                    char *out_text, size_t text_size);
void errand__region_let(errand__region *region); /* NULL: nothing */
int errand__region_fd(const errand__region *region);
uint64_t errand__region_size(const errand__region *region);
errand_status errand__region_buffer(errand__region *region, size_t size,
                                    struct errand_ffi_buffer **out_buffer);
/* Is it a buffer of this region?  Where does it lie there? */
bool errand__region_holds(const errand__region *region,
                          const struct errand_ffi_buffer *buffer, uint64_t *out_offset);

#endif
