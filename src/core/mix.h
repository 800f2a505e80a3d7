/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_MIX_H
#define ERRAND_MIX_H
/* mix: the audit's mix of one step, inlined; see random.c for the others. */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "core/core.h"

#define ERRAND__AUDIT_BYTES 64 /* of a step, as it is hashed */

/* What errand__mix_bytes answers for as many bytes. */
static inline uint64_t
errand__mix_step(uint64_t mix, const unsigned char *bytes)
{
    return XXH3_64bits_withSeed(bytes, ERRAND__AUDIT_BYTES, mix);
}
#endif
