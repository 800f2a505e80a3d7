/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_PORTABLE_H
#define ERRAND_PORTABLE_H
/* portable: jobs that can be written down as bytes, so that another process can run them.
 * Conventions: errand.h.  errand_spec_call (errand/ffi.h) makes such jobs; a host can make
 * its own: see held_portable of errand_job_type. */
#include "errand.h"
ERRAND_BEGIN

/* One function that worker processes may call: found when one starts, called by number. */
typedef struct errand_entry {
    const char
        *library; /* as for dlopen; NULL = what the worker has already (libc, libm) */
    const char *symbol;
    const char *signature; /* of errand/ffi.h; NULL = a plug-in's, see errand/plugin.h */
} errand_entry;

/* How a job is written down.  entry, request_size and write_request are called by [owner]
 * before its worker is asked, on the state of the spec; the bytes are 16-aligned.
 * read_response and answer [any one thread at a time], on bytes that were copied out of the
 * worker's reach before: they are not to be trusted. */
typedef struct errand_portable_type {
    uint32_t struct_size;
    const errand_entry *(*entry)(const void *state); /* lives as long as the state */
    size_t (*request_size)(const void *state);
    void (*write_request)(const void *state, unsigned char *out_bytes);
    /* Answers as a body does, codes and messages of its own by errand_job_fail; or
     * ERRAND_PORTABLE_BROKEN: these bytes are no answer to that request. */
    int32_t (*read_response)(
        errand_job *job, void *state, const unsigned char *bytes, size_t size,
        errand_payload *out_payload);
    /* The worker asks its host while the job runs, for example for a callback: writes at
     * most room bytes of an answer and answers their number; 0 = refused: the question breaks
     * the protocol.  NULL = it may not ask. */
    size_t (*answer)(errand_job *job, void *state, const unsigned char *question,
                     size_t size, unsigned char *out_answer, size_t room);
    /* A buffer for which errand_ffi_buffer_shared is true and whose bytes the worker is to read
     * where they lie: a plug-in's function gets them as its input, in place of the request.  The
     * state has it pinned.  NULL answered = none, NULL = never. */
    const struct errand_ffi_buffer *(*borrowed)(const void *state);
} errand_portable_type;
enum { ERRAND_PORTABLE_BROKEN = -1 };

/* errand_portable_take: in read_response, of a response of 128 KiB or more: its bytes stay where they
 * are, for a payload that points to them instead of copying them.  They are the caller's until it gives
 * *out_held to errand_payload_drop, as the drop of that payload has to, or read_response
 * itself where it answers anything but 0.  False, and nothing is changed: it is shorter, its block is
 * more than twice as long, or it was taken; copy what is needed.
 * Thread: [worker], on the job that read_response was given. */
ERRAND_API bool errand_portable_take(errand_job *job, errand_payload *out_held);

ERRAND_END
#endif
