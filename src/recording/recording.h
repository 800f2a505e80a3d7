/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RECORDING_H
#define ERRAND_RECORDING_H
/* recording: the log file of a run, written and read.  Knows nothing of runtimes: the glue that
 * feeds it is runtime/replay/record.c.  The format is described in README.md.
 *
 * Threads: one at a time. */
#include "core/core.h"
#include "errand/record.h"

/* ---- the format --------------------------------------------------------------------------- */
#define ERRAND__LOG_MAGIC   UINT64_C(0x676c646e61727265) /* "errandlg" */
#define ERRAND__BLOCK_MAGIC UINT64_C(0x6b62646e61727265) /* "errandbk" */
enum {
    ERRAND__LOG_FORMAT = 1,
    ERRAND__LOG_PROVIDER_SHIFT =
        8,                    /* in the header's policy: who decided, errand_provider */
    ERRAND__HEAD_BYTES = 24,  /* before the header's body */
    ERRAND__FRAME_BYTES = 80, /* before a block's body */
    ERRAND__STEP_BYTES = 64,
    ERRAND__PLACE_BYTES = 8, /* {label, more}: each 0 = none, else one more than where */
    ERRAND__MORE_BYTES = 8,  /* {size, what} before each piece of more */
    ERRAND__COMPLETION_BYTES = 104, /* of it, then the payload's bytes */
    ERRAND__BLOCK_STEPS = 4096,     /* a block ends behind each step that this divides */
    ERRAND__END_BYTES = 40
};
enum { ERRAND__BLOCK_OF_STEPS = 1, ERRAND__BLOCK_OF_END = 2 }; /* kinds of blocks */
enum { ERRAND__MORE_COMPLETION = 1, ERRAND__MORE_PLAIN = 2 };  /* kinds of more */
#define ERRAND__TEXT_MAX 4095U /* bytes of one string; longer ones are cut */
#define ERRAND__PAYLOAD_MAX                                                              \
    (UINT32_C(1) << 30)                       /* bytes of one payload; larger: left out */
#define ERRAND__MORE_FULL (UINT32_C(1) << 20) /* a block with more than this ends */

static inline void
errand__write_half(unsigned char *out, uint32_t half)
{
    out[0] = (unsigned char)half;
    out[1] = (unsigned char)(half >> 8);
    out[2] = (unsigned char)(half >> 16);
    out[3] = (unsigned char)(half >> 24);
}
static inline uint32_t
errand__read_half(const unsigned char *in)
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 |
           (uint32_t)in[3] << 24;
}
static inline uint64_t
errand__read_word(const unsigned char *in)
{
    return (uint64_t)errand__read_half(in) | (uint64_t)errand__read_half(in + 4) << 32;
}

/* ---- bytes.c: a buffer that grows; strings of a block ------------------------------------- */
typedef struct errand__bytes {
    unsigned char *data;
    size_t size, room;
} errand__bytes;
/* False: memory ran out, or it would be larger than 2^31; then nothing is added. */
bool errand__bytes_reserve(errand__bytes *bytes, size_t more);
bool errand__bytes_put(errand__bytes *bytes, const void *data, size_t size);
void errand__bytes_fini(errand__bytes *bytes);

typedef struct errand__strings { /* each once: {length : 16, bytes, 0} */
    errand__bytes text;
    uint32_t count;
    struct errand__string_slot {
        uint64_t hash;
        uint32_t number, at; /* number 0 = free */
    } * slots;
    uint32_t room; /* a power of two */
} errand__strings;
/* The string's number, from 1; 0 = memory ran out.  hash: errand__label_hash of it. */
uint32_t errand__strings_add(errand__strings *strings, const char *text, uint64_t hash);
void errand__strings_clear(errand__strings *strings);
void errand__strings_fini(errand__strings *strings);

/* ---- sink.c --------------------------------------------------------------------------------- */
/* What a codec writes: its digest, which does not depend on how it was cut into pieces, and with
 * bytes not NULL all of it, at most ERRAND__PAYLOAD_MAX.  False: the codec refused.  *out_kept:
 * false = the bytes are not whole, for want of memory or as too many. */
bool errand__sink_encode(const errand_payload_codec *codec, const void *data, size_t size,
                         errand__bytes *bytes, uint64_t *out_digest, bool *out_kept);

/* ---- recorder.c, write.c: writing ------------------------------------------------------------ */
struct errand_recorder {
    /* Immutable after open. */
    errand_record_payloads payloads;
    bool (*redact)(void *arg, const char *operation, void *bytes, size_t size);
    void *redact_arg;
    uint64_t build, config;
    char *build_text, *config_text;
    /* The runtime's thread, or whoever has it outside of a runtime's life. */
    int fd;
    int32_t process;                /* that opened it */
    const _Atomic uintptr_t *owner; /* of its runtime while that lives: who may call */
    bool begun;                     /* it has or had a runtime */
    bool ended;                     /* the record of the end was written */
    uint64_t seal;   /* checksum of the header: what blocks of this log are keyed with */
    uint64_t number; /* of the next block */
    uint64_t first;  /* of the block in hand */
    uint32_t count;
    uint64_t mix;
    unsigned char *steps, *places; /* of the block in hand */
    errand__strings strings;
    errand__bytes more;
    errand__bytes scratch; /* of the glue: a payload's bytes */
    /* The trouble that ended the log, and the last step that is in it. */
    errand_status status;
    int error;
    uint64_t last;
};

/* Its runtime begins, the only one that it ever has, whose owner is read there: the header is
 * written; build and config are the recorder's. */
void errand__recorder_begin(errand_recorder *recorder, const errand_log_header *header,
                            const _Atomic uintptr_t *owner);
/* One step: its canonical bytes, its label (NULL = none) with its hash, and the digest after it.
 * With it a completion, or bytes, or neither. */
typedef struct errand__record_step {
    const unsigned char *bytes; /* ERRAND__STEP_BYTES */
    uint64_t step, label_hash, mix;
    const char *label;
    const errand_log_completion *completion;
    const void *more;
    size_t more_size;
} errand__record_step;
void errand__recorder_step(errand_recorder *recorder, const errand__record_step *step);
/* The runtime has ended: digest, time_ns, run and clean count. */
void errand__recorder_end(errand_recorder *recorder, const errand_log_end *end);
/* Writes the block in hand, if there is one.  Trouble is remembered. */
void errand__recorder_flush(errand_recorder *recorder);
/* write.c: a whole piece of the log; trouble is remembered, and no more is written then. */
typedef struct errand__piece {
    const void *data;
    size_t size;
} errand__piece;
/* A new file; -1 and errno.  No pipe and no socket: whoever reads it could stop the run, or end the
 * process by SIGPIPE. */
int errand__recorder_file(const char *path);
void errand__recorder_write(errand_recorder *recorder, const errand__piece *pieces,
                            size_t count);
void errand__recorder_frame(errand_recorder *recorder, uint32_t kind, uint64_t digest,
                            const errand__piece *body, size_t count);

/* ---- log.c, log_scan.c, log_read.c: reading ---------------------------------------------------- */
struct errand_log {
    /* Where it comes from: a file, or memory if fd is -1. */
    int fd;
    const unsigned char *memory;
    uint64_t size;
    errand_log_header header;
    char *texts; /* of the header */
    size_t texts_size;
    uint64_t seal;
    errand_log_block *blocks;
    size_t block_count, block_room;
    errand_log_end end;
    /* The block in hand. */
    uint64_t block; /* block_count = none */
    uint64_t place; /* of the next step in it */
    unsigned char *body;
    size_t body_size, body_room;
    uint32_t strings, more; /* where they begin in the body */
    uint32_t *string_at;    /* offsets of the strings in the body */
    uint32_t string_count, string_room;
    bool loaded;
    errand_log_completion completion;
};
/* As errand_log_open, of bytes that stay where they are. */
errand_status errand__log_open_memory(const void *bytes, size_t size,
                                      errand_log **out_log, char *out_text,
                                      size_t text_size);
/* log_scan.c: all blocks are looked at; end says where they stop. */
errand_status errand__log_scan(errand_log *log, char *out_text, size_t text_size);
/* False: not all of it is there, or reading failed. */
bool errand__log_get(const errand_log *log, uint64_t offset, void *out, size_t size);
/* A block's frame, if these are the bytes of one of this log. */
typedef struct errand__frame_view {
    uint32_t kind, size, count, string_count, string_bytes, more_bytes;
    uint64_t number, first, mix, digest, checksum;
} errand__frame_view;
bool errand__frame_read(const errand_log *log, const unsigned char *bytes,
                        errand__frame_view *out_frame);
/* log_read.c: the body of a frame into the block in hand, checked as far as its structure goes. */
typedef enum errand__load {
    ERRAND__LOAD_GOOD = 0,
    ERRAND__LOAD_SHORT = 1,  /* the file ends before it does */
    ERRAND__LOAD_WRONG = 2,  /* not what was written */
    ERRAND__LOAD_MEMORY = 3, /* memory ran out */
    ERRAND__LOAD_FAILED = 4  /* reading failed */
} errand__load;
errand__load errand__log_load(errand_log *log, uint64_t offset,
                              const errand__frame_view *frame);
#endif
