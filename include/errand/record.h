/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RECORD_H
#define ERRAND_RECORD_H
/* record: a run of any order as a file, its log, and reading it again.
 * Conventions: errand.h.
 *
 * A log is a header with who made it, then blocks of the audit's steps, each with its own
 * checksum and readable alone, then how the run ended.  What is missing at its end (the
 * process died, the disk was full) takes nothing from what stands before.  The format is
 * described in src/recording/README.md. */
#include "errand.h"
#include "errand/order.h"
ERRAND_BEGIN

/* ---- Recording --------------------------------------------------------------------- */

typedef enum errand_record_payloads {
    ERRAND_RECORD_DIGESTS = 0, /* of payloads only a digest, and of notes */
    ERRAND_RECORD_PAYLOADS = 1 /* their bytes too, as their codecs write them */
} errand_record_payloads;

typedef struct errand_recorder_config {
    uint32_t struct_size;
    errand_record_payloads payloads;
    const char *path; /* made anew; no pipe and no socket (ESYSTEM) */
    /* Two logs can be compared, and a log replayed, where both are equal: the host's own
     * build and program, and what it was started with. */
    uint64_t build, config;
    const char *build_text, *config_text; /* for people; NULL = "" */
    /* Called with the bytes of each payload or note before they are written: it may
     * overwrite them in place, or answer false: they are left out.  The digest stays that
     * of the whole.  operation: its name, or the note's label.  May call nothing of this
     * runtime.  NULL = all are written. */
    bool (*redact)(void *arg, const char *operation, void *bytes, size_t size);
    void *held_redact_arg;
} errand_recorder_config;

/* errand_recorder_open: a recorder for one runtime: give it to errand_runtime_create as
 *   held_recorder.  The file is empty until then.
 * errand_recorder_sync: write what is buffered, and have the disk keep it.  Without it
 *   the file grows by blocks of 4096 steps.
 * errand_recorder_status: OK, or why the log ends before the run did: trouble never stops
 *   or changes a run.  out_text names it; may be NULL.  The errno is that of the trouble.
 * errand_recorder_close: after its runtime has ended (EBUSY before): write the rest and
 *   close the file.  But for EBUSY the recorder is gone, whatever it answers; OK = the
 *   log is whole.
 * Thread: [any] for open, of a recorder whose runtime has ended, else [owner].
 * Errors: EINVAL · ENOMEM · ESYSTEM (see errno) · EBUSY (close) · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_recorder_open(
    const errand_recorder_config *config, errand_recorder **out_recorder);
ERRAND_API ERRAND_MUST_USE errand_status errand_recorder_sync(errand_recorder *recorder);
ERRAND_API ERRAND_MUST_USE errand_status
errand_recorder_status(const errand_recorder *recorder, char *out_text, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status
errand_recorder_close(errand_recorder **take_recorder);

/* How payloads of a type become bytes and are made again.  The bytes must be canonical:
 * nothing that differs between two equal runs (D151). */
typedef struct errand_sink errand_sink;
typedef struct errand_payload_codec {
    uint32_t struct_size;
    /* Writes to the sink; false = this one cannot be written. */
    bool (*encode)(const void *data, size_t size, errand_sink *sink);
    /* Makes the payload of what encode wrote; OK, ENOMEM or EDECODE. */
    errand_status (*decode)(const void *bytes, size_t size, errand_payload *out_payload);
} errand_payload_codec;
/* Inside encode.  Memory that runs out is remembered: the payload counts as not written.
 * errand_sink_word: eight bytes, the low one first.   Thread: [owner]. */
ERRAND_API void errand_sink_put(errand_sink *sink, const void *bytes, size_t size);
ERRAND_API void errand_sink_word(errand_sink *sink, uint64_t word);

/* errand_record_codec: how payloads of a type are recorded and replayed, and, without a
 * function of errand_audit_payload's, what of them enters the digest.  name: of the type
 * in logs.  A second one for a type takes the first one's place.
 * Thread: [owner].   Errors: ENOMEM · EINVAL · ETHREAD. */
ERRAND_API ERRAND_MUST_USE errand_status errand_record_codec(
    errand_runtime *runtime, const errand_payload_type *held_type, const char *held_name,
    const errand_payload_codec *held_codec);

/* ---- Reading ------------------------------------------------------------------------- */

typedef struct errand_log errand_log;

typedef struct errand_log_header { /* strings live as long as the log is open */
    uint32_t format;
    const char *version; /* of the errand that wrote it */
    uint64_t build, config;
    const char *build_text, *config_text;
    errand_order order;
    errand_record_payloads payloads;
    uint64_t seed, start_ns;
    uint32_t policy;         /* errand_policy of a seeded run, and errand_provider << 8 */
    const char *policy_text; /* as errand_choices_parse reads it */
} errand_log_header;

typedef enum errand_log_state {
    ERRAND_LOG_ENDED = 0,     /* with the record of the run's end */
    ERRAND_LOG_OPEN = 1,      /* without: the run goes on, or its process died */
    ERRAND_LOG_TORN = 2,      /* cut within a block: what stands before is good */
    ERRAND_LOG_DAMAGED = 3,   /* a block is not what was written: steps end before it */
    ERRAND_LOG_UNREADABLE = 4 /* reading it failed: memory, or the file changed */
} errand_log_state;
typedef struct errand_log_end {
    errand_log_state state;
    uint64_t steps, blocks; /* that can be read */
    uint64_t offset;        /* where what can be read ends */
    char text[192];         /* the state as a sentence */
    /* ENDED only. */
    uint64_t digest, time_ns;
    errand_status run; /* of the last errand_run, or OK */
    bool clean;        /* as the closing report says */
} errand_log_end;

typedef struct errand_log_block {
    uint64_t first, count; /* steps */
    uint64_t offset, size; /* in the file */
    uint64_t mix;          /* the audit's digest after its last step */
    uint64_t digest;       /* of its own steps alone */
} errand_log_block;

typedef enum errand_log_payload {
    ERRAND_LOG_PAYLOAD_NONE = 0,
    ERRAND_LOG_PAYLOAD_DIGEST = 1,   /* only its digest was recorded */
    ERRAND_LOG_PAYLOAD_BYTES = 2,    /* as the codec wrote them, or redacted */
    ERRAND_LOG_PAYLOAD_LEFT_OUT = 3, /* redacted as a whole, or too large */
    ERRAND_LOG_PAYLOAD_UNKNOWN = 4   /* its type has no codec, or that refused */
} errand_log_payload;

/* A completion as its job's end made it: no decoder has seen it. */
typedef struct errand_log_completion {
    errand_outcome outcome;
    errand_code code;
    uint32_t flags;
    int32_t job_code, sys_errno, signal_number;
    const char *message, *system_call; /* "" = none */
    uint64_t operation;                /* its identity's number */
    uint64_t trace_id, t_submit_ns, t_start_ns, t_end_ns;
    errand_log_payload payload;
    const char *payload_type; /* the codec's name, else the type's; "" = untyped */
    uint64_t payload_size, payload_digest; /* as the audit takes it */
    const void *bytes;                     /* PAYLOAD_BYTES only */
    size_t size;
} errand_log_completion;

typedef struct errand_log_step {
    errand_step step;
    const errand_log_completion *completion; /* of COMPLETION, else NULL */
    const void *bytes;                       /* of a note or command; NULL = none */
    size_t size;
} errand_log_step;

/* errand_log_open: look at a whole log and find its end.  A log that is torn or damaged
 *   is opened; errand_log_end says so.  out_text (may be NULL) names what is wrong with
 *   what is no log.
 * errand_log_close: NULL-safe.
 * Thread: [any], one at a time.
 * Errors: EINVAL (no log, or of a newer format) · ESYSTEM (see errno) · ENOMEM. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_log_open(const char *path, errand_log **out_log, char *out_text, size_t size);
ERRAND_API void errand_log_close(errand_log **take_log);
/* errand_log_header_of: NULL for NULL.
 * errand_log_next: the next step; false: there is none that can be read.  What it points
 *   at lives until the next call with this log.
 * errand_log_seek: go on with the first step of a block.
 * errand_log_end_read: what is known of the log's end.
 * errand_log_block_read: the index-th block, from 0.
 * Thread: [any], one at a time.   Errors: EINVAL (no such block). */
ERRAND_API const errand_log_header *errand_log_header_of(const errand_log *log);
ERRAND_API bool errand_log_next(errand_log *log, errand_log_step *out_step);
ERRAND_API ERRAND_MUST_USE errand_status errand_log_seek(errand_log *log, uint64_t block);
ERRAND_API ERRAND_MUST_USE errand_status
errand_log_end_read(const errand_log *log, errand_log_end *out_end);
ERRAND_API ERRAND_MUST_USE errand_status
errand_log_block_read(const errand_log *log, uint64_t index, errand_log_block *out_block);

/* ---- Replaying ------------------------------------------------------------------------- */

typedef struct errand_replay errand_replay;
typedef struct errand_replay_config {
    uint32_t struct_size;
    /* Jobs run, and what they bring is compared with the log.  Not of arrival order. */
    bool run_jobs;
    const char *path;
    uint64_t build, config; /* as the recorder's: they must be equal */
    const char *build_text, *config_text;
} errand_replay_config;

/* A runtime of ERRAND_ORDER_REPLAY with held_replay does what the log has: order, seed,
 * clock and choices are the log's.  No job is run and no hook is called: at its place in
 * the log each operation ends as it did there, and its payload is made by its type's codec
 * (of logs with ERRAND_RECORD_PAYLOADS).  Of arrival order the clock's readings, the
 * answers of cancel and the refusals of submit come from the log, too.
 * Each step is compared with the log's.  At the first that differs the run ends:
 * errand_run, _drive, _drain and submissions answer EREPRODUCE from there on.  So they do
 * where the log ends (it may be torn), and where something is needed that it has not: a
 * payload without bytes, what another thread posted, what a job submitted.
 * The shutdown follows no log.  Executors must be attached, and get nothing.
 *
 * errand_replay_open: look at a log before a run.  out_text (may be NULL) names what is
 *   wrong; with EREPRODUCE the identity that differs, and both its values.
 * errand_replay_header_of: what the log is of; NULL for NULL.
 * errand_replay_status: OK, or EREPRODUCE once the run has left the log.  out_text (may be
 *   NULL): where, what the log has there, with task and operation, and what came instead.
 * errand_replay_close: after its runtime has ended (EBUSY before).   NULL-safe.
 * Thread: [any] before and after its runtime's life, else [owner].
 * Errors: EINVAL (no log, or of a newer format) · EREPRODUCE (another build,
 *   configuration or version) · EUNSUPPORTED (run_jobs) · ESYSTEM (see errno) · ENOMEM.
 * errand_runtime_create answers EREPRODUCE for a log whose choices came from a tape,
 * bytes or an enumeration, unless config.choices gives them again. */
ERRAND_API ERRAND_MUST_USE errand_status errand_replay_open(
    const errand_replay_config *config, errand_replay **out_replay, char *out_text,
    size_t size);
ERRAND_API const errand_log_header *errand_replay_header_of(const errand_replay *replay);
ERRAND_API ERRAND_MUST_USE errand_status
errand_replay_status(const errand_replay *replay, char *out_text, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status errand_replay_close(errand_replay **take_replay);

ERRAND_END
#endif
