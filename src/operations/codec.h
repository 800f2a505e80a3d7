/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_OPERATIONS_CODEC_H
#define ERRAND_OPERATIONS_CODEC_H
/* codec, inside: what the digests and codecs of payload types share (digest.c, codec.c). */
#include "errand/order.h"
#include "errand/record.h"
#include "operations/operations.h"

/* A digest goes over fields in a fixed order: integers as eight bytes, the low one first, texts and
 * bytes behind their length. */
typedef struct errand__digest {
    struct XXH3_state_s *state; /* in room */
    _Alignas(64) unsigned char room[640];
} errand__digest;
void errand__digest_begin(errand__digest *digest);
void errand__digest_number(errand__digest *digest, uint64_t number);
void errand__digest_bytes(errand__digest *digest, const void *bytes, size_t size);
uint64_t errand__digest_end(errand__digest *digest);
uint64_t errand__digest_plain(const void *bytes,
                              size_t size); /* of bytes, without length */

/* Reading: what is not there, or too large, makes it bad, and is read as 0 or NULL. */
typedef struct errand__codec_reader {
    const unsigned char *at;
    size_t left;
    bool good;
} errand__codec_reader;
uint64_t errand__codec_read_word(errand__codec_reader *in);
uint64_t errand__codec_read_below(errand__codec_reader *in, uint64_t max); /* at most */
const unsigned char *errand__codec_read_bytes(errand__codec_reader *in, size_t size);
void errand__codec_put_bytes(errand_sink *sink, const void *bytes, size_t size);

/* The types of one file; the last row's type is NULL. */
typedef struct errand__codec_row {
    const errand_payload_type *type;
    uint64_t (*digest)(const void *data, size_t size);
    const errand_payload_codec *codec;
} errand__codec_row;
extern const errand__codec_row errand__http_rows[];    /* http/response.c */
extern const errand__codec_row errand__process_rows[]; /* process.c */
extern const errand__codec_row errand__signal_rows[];  /* signal.c */
extern const errand__codec_row errand__waits_rows[];   /* waits.c */
extern const errand__codec_row errand__files_rows[];   /* files/file.c */
extern const errand__codec_row *const errand__codec_table[];
extern const size_t errand__codec_tables;
extern const errand__codec_row errand__net_rows[]; /* net/payload.c */
#endif
