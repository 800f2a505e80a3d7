/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_NET_H
#define ERRAND_NET_H
/* net: sockets: streams (TCP, Unix), who listens for them, and datagrams (UDP, Unix).
 * Conventions: errand.h; what specs have in common: errand/operations.h.
 *
 *     errand_endpoint to;
 *     status = errand_endpoint_parse("127.0.0.1:80", &to);
 *     status = errand_spec_connect(&spec, &to, NULL);  submit it to a reactor, then
 *     errand_stream *stream = errand_completion_take(completion).data;
 *     status = errand_spec_send(&spec, stream, "hello", 5);
 *     status = errand_spec_receive(&spec, stream, 5);
 *     errand_stream_abandon(&stream);
 *
 * Class: all specs are interruptible and async: for a reactor (errand/io.h).  On another
 *   executor those that would have to wait fail as UNSUPPORTED.
 * Ownership: streams, listeners and datagrams are counted.  A completion's payload is one
 *   reference; each operation has one until its state is dropped.  The last one closes
 *   the descriptor.  An object is used by one thread at a time, its runtime's; operations
 *   that are out do not count as a use.
 * At once: one receive and one send per stream, one accept per listener, one receive and
 *   one send per datagram; more answer EBUSY when they are made.  The next one may be made
 *   as soon as the one before was told to end (a cancel, its deadline), is delivered (its
 *   own handler may make it) or was abandoned.  Behind one that was told to end it waits
 *   for its turn until that one's body has left; its limit counts meanwhile.  Has that
 *   one poisoned the half, it fails as CLOSED; told to end before its turn came, it has
 *   changed nothing.
 * A stream has two halves: the source (receive, peek) and the sink (send).  After an
 *   operation failed, or was cancelled once it had begun, its half is poisoned: nobody
 *   knows where in the conversation it is, and what follows on that half fails as CLOSED.
 *   The other half goes on.  An operation cancelled before it began changed nothing and
 *   poisons nothing; so do peek, and accept and datagrams, whose cancel loses none.
 * Failures: job codes, ERRAND_OPERATION_TABLE: CLOSED, TIMEOUT, BIND_FAILED,
 *   CONNECTION_FAILED, ACCEPT_FAILED, RECEIVE_FAILED, SEND_FAILED; STOPPED (cancelled),
 *   LIMIT, MEMORY, PERMISSION.  A spec's deadline_ns stops one that has begun as a
 *   cancel does, and it fails with ERRAND_CODE_DEADLINE; a limit (below) as TIMEOUT.
 * Replay: nothing is out; objects made from a log have addresses and no descriptor.
 *   EBUSY is answered as in the run: it hangs on what the owner did and heard alone, not
 *   on how far a body had come.
 * All functions are [any] unless they say otherwise.
 * Names are looked up before, by errand_spec_resolve; errand_endpoint_of makes an
 * endpoint of what it found.   Errors of errand_spec_*: ENOMEM · EINVAL. */
#include "errand/operations.h"
ERRAND_BEGIN

/* ---- endpoints ----------------------------------------------------------------------- */

enum { ERRAND_ENDPOINT_UNIX = 1, ERRAND_ENDPOINT_TEXT = 160 };
typedef struct errand_endpoint {
    uint32_t family;         /* 4, 6, ERRAND_ENDPOINT_UNIX; 0 = none */
    uint32_t scope;          /* of a link-local address of family 6 */
    unsigned char bytes[16]; /* network order; family 4 uses the first four */
    uint16_t port;
    uint16_t path_size; /* Unix: bytes of path; 0 = unnamed */
    char path[108];     /* an abstract name begins with a 0, a path does not end in one */
} errand_endpoint;
/* errand_endpoint_parse: "127.0.0.1:80", "[::1]:80", "[fe80::1%2]:80", "unix:/path",
 *   "unix:@abstract", "unix:" (unnamed).  Numbers only: no names are looked up.
 *   Errors: EINVAL (it is none of these; *out_endpoint is untouched).
 * errand_endpoint_print: the same text; at most size - 1 bytes of it and a 0.  Answers
 *   its length.  An unnamed one of family 0 is "".
 * errand_endpoint_of: an address that was looked up.   Thread: [any]. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_endpoint_parse(const char *text, errand_endpoint *out_endpoint);
ERRAND_API size_t
errand_endpoint_print(const errand_endpoint *endpoint, char *out, size_t size);
ERRAND_API errand_endpoint errand_endpoint_of(const errand_address *address);

/* ---- streams ------------------------------------------------------------------------- */

typedef struct errand_stream errand_stream;
ERRAND_API extern const errand_payload_type errand_stream_type; /* data: the stream */
ERRAND_API uint64_t errand_stream_digest(const void *data, size_t size);

typedef struct errand_connect_config {
    uint32_t struct_size;
    uint32_t flags;               /* none yet; must be 0 */
    const errand_endpoint *local; /* to connect from; NULL = the system's choice */
    uint64_t limit_ns;            /* then TIMEOUT, and not before; 0 = the system's */
} errand_connect_config;
/* errand_spec_connect: a stream to an endpoint.  TCP streams have NODELAY set.  Fails as
 * CONNECTION_FAILED, TIMEOUT, BIND_FAILED (of local).  config NULL = all defaults.
 * Thread: [any].   Gives: errand_stream_type.   Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_connect(
    errand_spec *out_spec, const errand_endpoint *to,
    const errand_connect_config *config);

/* errand_stream_adopt: a connected stream socket of the host's own becomes a stream; it
 *   is set to non-blocking and close-on-exec.
 * errand_stream_hold: one reference more.
 * errand_stream_abandon: one less; NULL-safe.
 * errand_stream_close: ends both halves now, whoever else has references: what is out
 *   fails as CLOSED, what follows, too; the peer sees an end.  NULL-safe; once counts.
 * errand_stream_local, errand_stream_peer: who talks to whom; family 0 where the system
 *   does not say.
 * errand_stream_fd: the descriptor, which stays the stream's; -1 in a replay.
 * Thread: [owner] (hold and abandon: [any]).
 * Errors: ENOMEM · EINVAL (no stream socket) · ESYSTEM.  Then *take_fd is untouched. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_stream_adopt(int *take_fd, errand_stream **out_stream);
ERRAND_API errand_stream *errand_stream_hold(errand_stream *stream);
ERRAND_API void errand_stream_abandon(errand_stream **take_stream);
ERRAND_API void errand_stream_close(errand_stream *stream);
ERRAND_API errand_endpoint errand_stream_local(errand_stream *stream);
ERRAND_API errand_endpoint errand_stream_peer(const errand_stream *stream);
ERRAND_API int errand_stream_fd(const errand_stream *stream);

typedef enum errand_stream_option {
    ERRAND_STREAM_RECEIVE_LIMIT =
        1, /* ns that a receive may take, from its begin; 0 = none */
    ERRAND_STREAM_SEND_LIMIT = 2, /* the same of a send */
    ERRAND_STREAM_NODELAY = 3,    /* TCP: 0 or 1 */
    ERRAND_STREAM_KEEPALIVE =
        4, /* seconds of silence before the peer is asked; 0 = never */
    ERRAND_STREAM_RECEIVE_BUFFER = 5, /* bytes that the kernel keeps for us */
    ERRAND_STREAM_SEND_BUFFER = 6,
    ERRAND_STREAM_LINGER = 7 /* TCP: the last abandon resets the connection: 0 or 1 */
} errand_stream_option;
/* errand_stream_set: counts for operations made from now on.
 * Thread: [owner].   Errors: EINVAL (unknown, out of range, not for such a stream) ·
 *   ESYSTEM. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_stream_set(errand_stream *stream, errand_stream_option option, uint64_t value);

enum { ERRAND_RECEIVE_MAX = 1 << 30 }; /* bytes of one receive or send */
/* errand_spec_receive: exactly size bytes, in order, however they were sent.  The peer
 *   ended before: RECEIVE_FAILED, what came of them is lost.
 * errand_spec_receive_some: what is there, at least one byte, at most max; none at the
 *   end of the stream (each time), which poisons nothing.
 * errand_spec_receive_parts: exactly the sum of sizes, in as many parts; up to 1024.
 * errand_spec_peek: what is there and stays there, at most max, none if nothing is or the
 *   peer has ended; never waits, so it needs no reactor.
 * Memory is taken when something has come, not while one waits.
 * Thread: [owner].   Gives: errand_file_bytes_type; parts: errand_parts_type.
 * Errors: ENOMEM · EINVAL (0 bytes, more than ERRAND_RECEIVE_MAX) · EBUSY. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_receive(errand_spec *out_spec, errand_stream *stream, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_receive_some(errand_spec *out_spec, errand_stream *stream, size_t max);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_receive_parts(
    errand_spec *out_spec, errand_stream *stream, const size_t *sizes, size_t count);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_peek(errand_spec *out_spec, errand_stream *stream, size_t max);

typedef struct errand_parts {
    const errand_file_bytes *parts;
    size_t count;
} errand_parts;
ERRAND_API extern const errand_payload_type errand_parts_type;
ERRAND_API uint64_t errand_parts_digest(const void *data, size_t size);

/* errand_spec_send: all of the bytes, which are copied; waits while the peer does not
 *   take them.  Completes without a payload when the system has them all.  Cancelled or
 *   failed on the way, those that it had may still arrive.
 * errand_spec_send_parts: the same of several pieces, one behind the other.
 * errand_spec_shutdown: ends one half or both: the peer sees the end of the sink.  What
 *   follows on that half fails as CLOSED.  Needs no reactor.
 * errand_spec_close: errand_stream_close, and completes when all that was out has ended
 *   and the descriptor is closed.  What is out fails as CLOSED.  A second one is CLOSED.
 * Thread: [owner].   Errors: ENOMEM · EINVAL · EBUSY (something is waited for on a half;
 *   not of close). */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_send(
    errand_spec *out_spec, errand_stream *stream, const void *bytes, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_send_parts(
    errand_spec *out_spec, errand_stream *stream, const errand_file_bytes *parts,
    size_t count);
typedef enum errand_half {
    ERRAND_HALF_SOURCE = 1,
    ERRAND_HALF_SINK = 2,
    ERRAND_HALF_BOTH = 3
} errand_half;
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_shutdown(errand_spec *out_spec, errand_stream *stream, errand_half half);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_close(errand_spec *out_spec, errand_stream *stream);

/* ---- listeners ----------------------------------------------------------------------- */

typedef struct errand_listener errand_listener;
ERRAND_API extern const errand_payload_type errand_listener_type;
ERRAND_API uint64_t errand_listener_digest(const void *data, size_t size);

enum { ERRAND_LISTEN_SHARED = 1 }; /* others may listen at the same port (SO_REUSEPORT) */
typedef struct errand_listen_config {
    uint32_t struct_size;
    uint32_t flags;   /* ERRAND_LISTEN_... */
    uint32_t backlog; /* connections that wait to be accepted; 0 = the system's most */
    uint32_t mode;    /* of a Unix path; 0 = 0777 less the umask */
} errand_listen_config;
/* errand_spec_listen: port 0 is a free port, see errand_listener_local.  An address of
 * family 6 takes no connections of family 4.  A path that it made goes with it, if it is
 * still the same: nobody can connect any more when the last reference is dropped, and the
 * file goes soon after, by a helper of the reactor, and before this process listens there
 * again; it is made there, too.  A relative path is looked up in the folder in which the
 * process is then.  A forked child removes none.  Fails as BIND_FAILED.  Needs no reactor:
 * without one a path is made where the body runs.  config NULL = all defaults.
 * Thread: [any].   Gives: errand_listener_type.   Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_listen(
    errand_spec *out_spec, const errand_endpoint *at, const errand_listen_config *config);
/* errand_spec_accept: the next connection, in the order in which they came.
 * Thread: [owner].   Gives: errand_stream_type.   Errors: ENOMEM · EINVAL · EBUSY. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_accept(errand_spec *out_spec, errand_listener *listener);
/* As of streams.  Connections that nobody accepted are reset.
 * Thread: [owner] (hold and abandon: [any]). */
ERRAND_API errand_listener *errand_listener_hold(errand_listener *listener);
ERRAND_API void errand_listener_abandon(errand_listener **take_listener);
ERRAND_API void errand_listener_close(errand_listener *listener);
ERRAND_API errand_endpoint errand_listener_local(errand_listener *listener);
ERRAND_API int errand_listener_fd(const errand_listener *listener);

/* ---- datagrams ----------------------------------------------------------------------- */

typedef struct errand_datagram errand_datagram;
ERRAND_API extern const errand_payload_type errand_datagram_type;
ERRAND_API uint64_t errand_datagram_digest(const void *data, size_t size);

/* errand_spec_datagram: a socket bound to at, or to the system's choice (NULL); with to it
 * talks to that one alone.  One of the two is needed.  Paths as of a listener.  Fails as
 * BIND_FAILED, CONNECTION_FAILED.  Needs no reactor.
 * Thread: [any].   Gives: errand_datagram_type.   Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_datagram(
    errand_spec *out_spec, const errand_endpoint *at, const errand_endpoint *to);

typedef struct errand_packet {
    errand_file_bytes bytes;
    errand_endpoint from;
    bool cut; /* it had more bytes than max */
} errand_packet;
ERRAND_API extern const errand_payload_type errand_packet_type;
ERRAND_API uint64_t errand_packet_digest(const void *data, size_t size); /* bytes, cut */
/* errand_spec_receive_packet: the next packet; a cancel loses none.  RECEIVE_FAILED: the
 *   system reports that an earlier packet did not arrive; receive again.
 * errand_spec_send_packet: one packet of at most 65507 bytes, to an endpoint or, with
 *   NULL, to the one that it was made with.  Completes when the system has it.  One to a path
 *   that is cancelled may still be sent, later than what is sent after it.
 * Thread: [owner].   Gives: errand_packet_type; none.   Errors: ENOMEM · EINVAL · EBUSY. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_receive_packet(errand_spec *out_spec, errand_datagram *datagram, size_t max);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_send_packet(
    errand_spec *out_spec, errand_datagram *datagram, const errand_endpoint *to,
    const void *bytes, size_t size);
/* As of streams.   Thread: [owner] (hold and abandon: [any]). */
ERRAND_API errand_datagram *errand_datagram_hold(errand_datagram *datagram);
ERRAND_API void errand_datagram_abandon(errand_datagram **take_datagram);
ERRAND_API void errand_datagram_close(errand_datagram *datagram);
ERRAND_API errand_endpoint errand_datagram_local(errand_datagram *datagram);
ERRAND_API int errand_datagram_fd(const errand_datagram *datagram);

ERRAND_END
#endif
