/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_PROCESS_H
#define ERRAND_PROCESS_H
/* process: a child process as an object: written to, read from and waited for while it
 * runs.  One that is run to its end with all it wrote: errand_spec_command, a pool's.
 * Conventions: errand.h; failures: errand/operations.h; items: errand/source.h.
 *
 *     status = errand_spec_spawn(&spec, &config);
 *     errand_process *process = errand_completion_take(completion).data;
 *     status = errand_source_output(process, ERRAND_OUTPUT_OUT, NULL, &source);
 *     status = errand_spec_process_wait(&spec, process);
 *     errand_process_abandon(&process);
 *
 * Class: all specs are interruptible and async: for a reactor (errand/io.h).
 * The process leads a group of its own, with default signal actions, no blocked signals
 *   and no descriptor but 0, 1, 2: what is not piped is /dev/null.
 * Ownership: counted; a completion's payload is one reference, operations and sources
 *   have one each.  With the last one the group gets SIGKILL, if the process has not been
 *   waited for, and it is reaped (which waits for its end).
 * At once: one wait, one write, one source per output; more answer EBUSY.  When the next one may
 *   be made: errand/net.h, At once.
 * All functions are [owner] unless they say otherwise. */
#include "errand/source.h"
ERRAND_BEGIN

/* A child process.   Thread: [any]. */
typedef struct errand_process errand_process;
ERRAND_API extern const errand_payload_type errand_process_type; /* data: the process */
ERRAND_API uint64_t errand_process_digest(const void *data, size_t size);

enum {                             /* errand_process_config.flags */
       ERRAND_PROCESS_INPUT = 1,   /* stdin is a pipe: errand_spec_process_write */
       ERRAND_PROCESS_OUTPUT = 2,  /* stdout is: errand_source_output */
       ERRAND_PROCESS_ERRORS = 4,  /* stderr is */
       ERRAND_PROCESS_TOGETHER = 8 /* with OUTPUT: stderr goes where stdout does */
};
typedef struct errand_process_config {
    uint32_t struct_size;
    uint32_t flags;
    const char *const *argv; /* ends in NULL; argv[0] is the command, as of a command's */
    const char *const *env;  /* "NAME=value", ends in NULL; NULL = this process's now */
    const char *cwd;         /* NULL = the process's */
    uint64_t term_ns;        /* between SIGTERM and SIGKILL; 0 = 200 ms */
} errand_process_config;
/* errand_spec_spawn: start it; completes when it runs.  A helper of the reactor looks for it
 * and reads it; needs no reactor, then the body does.  Cancelled meanwhile: STOPPED, and
 * what has started gets SIGKILL and is reaped by a helper.
 * Thread: [any].   Gives: errand_process_type.
 * Errors: ENOMEM · EINVAL (stderr both piped and together, too). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_spawn(errand_spec *out_spec, const errand_process_config *config);

typedef struct errand_exit {
    int32_t exit_status;   /* 0 .. 255, or -1 when a signal ended it */
    int32_t signal_number; /* 0 when it exited */
} errand_exit;
ERRAND_API extern const errand_payload_type errand_exit_type;
ERRAND_API uint64_t errand_exit_digest(const void *data, size_t size);
/* errand_spec_process_wait: until it has ended; reaps it; later ones give the same.  A
 *   status other than 0 and a signal are results.  Cancelled, or beyond its deadline:
 *   SIGTERM to the group, SIGKILL to it after term_ns or when its leader has ended,
 *   whichever is first; then STOPPED, or ERRAND_CODE_DEADLINE.  LOST: somebody else took its status.
 *   Gives: errand_exit_type.
 * errand_spec_process_write: all of the bytes, which are copied, to its stdin; waits
 *   while it does not read.  SEND_FAILED: it reads no more.  Poisons as a stream's sink.
 * errand_process_end_input: its stdin ends; behind a write that was told to end, when that has
 *   left.
 * errand_process_signal: to the group, while the process has not been reaped.
 * errand_process_id: its pid, also the group's; 0 in a replay.
 * errand_process_hold, errand_process_abandon: NULL-safe.
 * Errors: ENOMEM · EINVAL (no such pipe or signal) · EBUSY (the place is taken) · EGONE
 *   (errand_process_signal: it has been reaped). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_process_wait(errand_spec *out_spec, errand_process *process);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_process_write(
    errand_spec *out_spec, errand_process *process, const void *bytes, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status
errand_process_end_input(errand_process *process);
ERRAND_API ERRAND_MUST_USE errand_status
errand_process_signal(errand_process *process, int32_t number);
ERRAND_API int32_t errand_process_id(const errand_process *process);
ERRAND_API errand_process *errand_process_hold(errand_process *process);
ERRAND_API void errand_process_abandon(errand_process **take_process);

typedef enum errand_output { ERRAND_OUTPUT_OUT = 1, ERRAND_OUTPUT_ERR = 2 } errand_output;
/* errand_source_output: what it writes, in pieces of at most chunk_max, as
 * errand_file_bytes; the end when nobody can write there any more, which may be a
 * descendant.
 * Errors: ENOMEM · EINVAL (no such pipe) · EBUSY. */
ERRAND_API ERRAND_MUST_USE errand_status errand_source_output(
    errand_process *process, errand_output output, const errand_source_config *config,
    errand_source **out_source);

ERRAND_END
#endif
