/* SPDX-License-Identifier: MIT */
/* digest: of payloads, for the audit.
 *
 * Design notes: XXH3 comes from libxxhash's header alone, and is named in this file only. */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "operations/codec.h"

_Static_assert(sizeof(XXH3_state_t) <= sizeof((errand__digest){0}.room),
               "the state fits into its room");

void
errand__digest_begin(errand__digest *digest)
{
    digest->state = (XXH3_state_t *)(void *)digest->room;
    XXH3_64bits_reset(digest->state);
}

void
errand__digest_number(errand__digest *digest, uint64_t number)
{
    unsigned char bytes[8];

    errand__word_write(bytes, number);
    XXH3_64bits_update(digest->state, bytes, sizeof bytes);
}

void
errand__digest_bytes(errand__digest *digest, const void *bytes, size_t size)
{
    errand__digest_number(digest, size);
    if (size > 0)
        XXH3_64bits_update(digest->state, bytes, size);
}

uint64_t
errand__digest_end(errand__digest *digest)
{
    return XXH3_64bits_digest(digest->state);
}

uint64_t
errand__digest_plain(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}
