/* SPDX-License-Identifier: MIT */
/* sink: what a codec writes, as a digest and as bytes.
 *
 * The digest is taken of the stream, so the pieces in which it comes change nothing (D43). */
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "recording/recording.h"

struct errand_sink {
    XXH3_state_t *state;
    errand__bytes *bytes; /* NULL = only the digest */
    bool kept;
};

void
errand_sink_put(errand_sink *sink, const void *bytes, size_t size)
{
    if (sink == NULL || (bytes == NULL && size > 0)) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "sink and bytes are needed");
        return;
    }
    if (size == 0)
        return;
    XXH3_64bits_update(sink->state, bytes, size);
    if (sink->bytes == NULL || !sink->kept)
        return;
    sink->kept = size <= ERRAND__PAYLOAD_MAX - sink->bytes->size &&
                 errand__bytes_put(sink->bytes, bytes, size);
}

void
errand_sink_word(errand_sink *sink, uint64_t word)
{
    unsigned char bytes[8];

    if (sink == NULL) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "the sink is NULL");
        return;
    }
    errand__word_write(bytes, word);
    errand_sink_put(sink, bytes, sizeof bytes);
}

bool
errand__sink_encode(const errand_payload_codec *codec, const void *data, size_t size,
                    errand__bytes *bytes, uint64_t *out_digest, bool *out_kept)
{
    XXH3_state_t state;
    errand_sink sink = {.state = &state, .bytes = bytes, .kept = bytes != NULL};

    XXH3_64bits_reset(&state);
    if (bytes != NULL)
        bytes->size = 0;
    if (!codec->encode(data, size, &sink))
        return false;
    *out_digest = XXH3_64bits_digest(&state);
    *out_kept = sink.kept;
    return true;
}
