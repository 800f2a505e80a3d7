/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SOURCE_H
#define ERRAND_SOURCE_H
/* source: what yields many items: connections, pieces of a stream, signals, a command's
 * output.  Conventions: errand.h; specs and failures: errand/operations.h, errand/net.h.
 *
 *     status = errand_source_accept(listener, NULL, &source);
 *     status = errand_source_next(source, &spec);      submit it like any other; when it
 *     errand_stream *stream = errand_completion_take(completion).data;      completed,
 *     status = errand_source_next(source, &spec);      ask for the next one
 *     errand_source_close(source);
 *     errand_source_abandon(&source);
 *
 * A source is no operation.  Each item is one: asked for by errand_source_next, completed
 * once, cancelled like any other.  One at a time may be out per source, as
 * per stream (errand/net.h, At once).  In seeded orders
 * its due is drawn when it is submitted, as for all.
 * Behind a source is a buffer of at most items_max items, filled while somebody takes one,
 *   with what is there already; when it is full, nothing more is taken from the system.
 *   A cancelled item loses none: what it would have got is the next one's.
 * The end of a stream or of a command's output is an item without a payload, each time.
 *   A failure ends the source: what follows is CLOSED.  A failed accept does not.
 * Closing: the item that is out ends as STOPPED, what is asked for later as CLOSED; the
 *   buffered ones are counted and dropped.
 * Ownership: counted; items that are out count.  Until a source is closed, that half of
 *   its stream or that listener is its: a receive or accept beside it answers EBUSY.
 * All functions are [owner] unless they say otherwise. */
#include "errand/net.h"
ERRAND_BEGIN

typedef struct errand_source errand_source;
typedef struct errand_source_config {
    uint32_t struct_size;
    uint32_t flags;     /* none yet; must be 0 */
    uint32_t items_max; /* buffered, at most 4096; 0 = 16; streams buffer none */
    size_t chunk_max;   /* bytes of an item of a stream; 0 = 64 KiB */
} errand_source_config;

/* errand_source_accept: items are streams.
 * errand_source_receive: items are errand_file_bytes, of what is there.
 * errand_source_signals: items are errand_caught_signal.  The signals are blocked in the calling
 *   thread and stay so; a host blocks them in all threads that it makes (the library's
 *   block all).  Each is told once: two sources of one signal share it.
 * config NULL = all defaults.
 * Errors: ENOMEM · EINVAL · EBUSY (something is out there, or it has a source) · ESYSTEM. */
ERRAND_API ERRAND_MUST_USE errand_status errand_source_accept(
    errand_listener *listener, const errand_source_config *config,
    errand_source **out_source);
ERRAND_API ERRAND_MUST_USE errand_status errand_source_receive(
    errand_stream *stream, const errand_source_config *config,
    errand_source **out_source);
ERRAND_API ERRAND_MUST_USE errand_status errand_source_signals(
    const int32_t *numbers, size_t count, const errand_source_config *config,
    errand_source **out_source);

/* In the digest: number and code, not who sent it. */
typedef struct errand_caught_signal {
    int32_t number, code; /* code: SI_USER ... */
    int32_t pid;          /* who sent it, where the system says */
    uint32_t uid;
    int32_t status; /* SIGCHLD: exit status or signal */
} errand_caught_signal;
ERRAND_API extern const errand_payload_type errand_caught_signal_type;
ERRAND_API uint64_t errand_caught_signal_digest(const void *data, size_t size);

/* errand_source_next: the next item, as an operation.   Class: interruptible, async.
 *   Errors: ENOMEM · EINVAL · EBUSY (one is out). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_source_next(errand_source *source, errand_spec *out_spec);
/* errand_source_buffered: how many are; 0 for NULL.
 * errand_source_close: see above; answers how many were buffered.  NULL-safe.
 * errand_source_hold, errand_source_abandon: one reference more, or less; the last closes.
 *   NULL-safe.   Thread: [any]. */
ERRAND_API size_t errand_source_buffered(errand_source *source);
ERRAND_API size_t errand_source_close(errand_source *source);
ERRAND_API errand_source *errand_source_hold(errand_source *source);
ERRAND_API void errand_source_abandon(errand_source **take_source);

ERRAND_END
#endif
