/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_HTTP_H
#define ERRAND_HTTP_H
/* http: requests to web servers.  Conventions: errand.h; failures: errand/operations.h;
 * streamed bodies: errand/source.h.
 *
 *     errand_http_config config = {.struct_size = sizeof config, .url = url};
 *     status = errand_http_origin(url, host, sizeof host, &port);
 *     ... errand_spec_resolve(&spec, host, NULL, 0), unless host is a number
 *     config.addresses = found;
 *     status = errand_spec_http(&spec, &config);
 *
 * An optional part: it needs libcurl, when the library is built (errand_features:
 *   "http=libcurl", else "http=no") and when it runs, which is when it is loaded, at first
 *   use.  Without it, and while it cannot be loaded, all answer EUNSUPPORTED.
 * Class: interruptible, async, for a reactor (errand/io.h), which waits for libcurl's
 *   sockets: libcurl makes no thread.  So names are looked up before; nothing here does.
 *   A connection of https is made secure by a helper of the reactor, since certificates are
 *   read from the disk for each; a helper that has begun ends when the disk lets it.
 * Certificates are checked against the system's authorities.  Proxies, cookies, user
 *   names and the environment are not looked at.  HTTP 1.1; each request has a connection
 *   of its own.
 * Redirects keep method and body by 307 and 308; by 303 all but GET and HEAD become GET, by the
 *   others POST does.
 * A status of 400 and more is a result.  Failures: CONNECTION_FAILED, TIMEOUT, CERTIFICATE,
 *   PROTOCOL, RECEIVE_FAILED, SEND_FAILED, REDIRECTS, TOO_LARGE, STOPPED, MEMORY, IO. */
#include "errand/source.h"
ERRAND_BEGIN

enum {                           /* errand_http_config.flags */
       ERRAND_HTTP_POST = 1,     /* it has a body; its method is POST, else GET */
       ERRAND_HTTP_STREAM = 2,   /* complete with the head; the body is a source */
       ERRAND_HTTP_UNCHECKED = 4 /* accept any certificate: for tests */
};
typedef struct errand_http_config {
    uint32_t struct_size;
    uint32_t flags;
    const char *url;  /* "http://..." or "https://..." */
    const void *body; /* with POST */
    size_t body_size; /* of an upload: what it will have, or ERRAND_HTTP_SIZE_UNKNOWN */
    const char *const *headers; /* "Name: value", "Name:", ends in NULL; or NULL */
    /* Of the url's host, in the order in which they are tried; NULL where it is a number. */
    const errand_addresses *addresses;
    uint64_t limit_ns;         /* for all of it (STREAM: to the head); 0 = 60 s */
    uint64_t connect_limit_ns; /* for a connection; 0 = 10 s */
    /* Followed to the same host or to a number, never from https to http.  To other hosts:
     * the response is the redirect itself, and says where to. */
    uint32_t redirects_max; /* more fail as REDIRECTS; 0 = none is followed */
    size_t body_max;        /* of the response; 0 = 64 MiB; not of a streamed one */
    const char *ca_file;    /* authorities (PEM) instead of the system's; NULL = those */
    /* "PUT", "DELETE" ...: see errand_http_is_method; NULL = POST with that flag, else GET.
     * HEAD and a body do not go together. */
    const char *method;
} errand_http_config;

typedef struct errand_http_header {
    const char *name, *value;
} errand_http_header;
/* In the digest: status, body, and the headers but Date. */
typedef struct errand_http_response {
    uint32_t status;                   /* 200 ... */
    const char *url;                   /* that answered, after redirects */
    const char *location;              /* of a redirect that was not followed; or NULL */
    const errand_http_header *headers; /* in their order */
    size_t header_count;
    errand_file_bytes body;
    /* STREAM: the body's pieces, as errand_file_bytes; the payload's reference: hold it to
     * keep it.  Else NULL. */
    errand_source *pieces;
} errand_http_response;
ERRAND_API extern const errand_payload_type errand_http_response_type; /* [any] */
ERRAND_API uint64_t errand_http_response_digest(const void *data, size_t size);

/* errand_http_origin: whose addresses an url needs: host without brackets, and port.
 * errand_spec_http: one request; everything is copied.  Gives:
 *   errand_http_response_type.
 * Thread: [any].
 * errand_http_is_method: can it be sent?  Capitals and '-', shorter than its room, and not
 *   CONNECT, which is for proxies.  NULL: false.
 * errand_http_repeats: is a request with this method (NULL: POST or GET) sent again as it was
 *   after an answer with such a status?  false: as GET, without its body.
 * Errors: ENOMEM · EINVAL (no such url, a line break in a header or no name of one, no method, a
 *   host without addresses, host_size too small) · EUNSUPPORTED. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_http_origin(const char *url, char *out_host, size_t host_size, uint16_t *out_port);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_http(errand_spec *out_spec, const errand_http_config *config);
enum { ERRAND_HTTP_METHOD_ROOM = 24 }; /* for any method, with its end */
ERRAND_API bool errand_http_is_method(const char *method);
ERRAND_API bool errand_http_repeats(const char *method, uint32_t flags, uint32_t status);

/* ---- a body that is sent in pieces ----------------------------------------------------- */
/*     status = errand_spec_http_upload(&spec, &config);       connects, sends the head
 *     errand_http_upload *upload = errand_completion_take(completion).data;
 *     status = errand_spec_http_send(&spec, upload, bytes, size);    for each piece
 *     status = errand_spec_http_finish(&spec, upload);        the answer
 *     errand_http_upload_abandon(&upload);
 *
 * Each of the three is an operation for the same reactor.  In between nothing is sent and
 *   nothing is kept: a send completes when the system has its bytes, so the next piece can
 *   be made then, and a server that stops reading holds the send up.
 * A body of known size has a Content-Length, another one comes chunked.  "Expect" is sent
 *   only if the headers have it: then the upload completes when the server wants the body.
 * limit_ns is of each of the three (of finish with STREAM: to the head).
 * A server may answer before it has all: then a send takes less than it was given, or
 *   nothing, and finish gives the answer.  Redirects are not followed: location says where to.
 * One at a time, as per stream (errand/net.h, At once).  A failure, or a cancel of what had
 *   begun, spoils the upload: what follows is CLOSED.
 * Ownership: counted; the payload is one reference, each operation has one until its state is
 *   dropped.  The last one ends the connection, in the middle of the body if it is there. */
#define ERRAND_HTTP_SIZE_UNKNOWN SIZE_MAX
typedef struct errand_http_upload errand_http_upload;
ERRAND_API extern const errand_payload_type errand_http_upload_type; /* [any] */
ERRAND_API uint64_t errand_http_upload_digest(const void *data, size_t size);

/* errand_spec_http_upload: a POST, or what method says, whose body is not there yet: body is
 *   NULL, flags at most POST, STREAM and UNCHECKED, redirects_max 0.   Gives:
 *   errand_http_upload_type.
 * errand_spec_http_send: the next bytes, which are copied; a spec that was made counts as
 *   sent.   Gives: errand_file_written_type: fewer than size: it has answered.
 * errand_spec_http_finish: there are no more; with fewer than body_size SEND_FAILED, unless
 *   the server has answered.   Gives: errand_http_response_type.
 * Thread: [owner], of upload: [any].   Errors: those of errand_spec_http · EBUSY · EINVAL
 *   (a send beyond body_size; no bytes). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_http_upload(errand_spec *out_spec, const errand_http_config *config);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_http_send(
    errand_spec *out_spec, errand_http_upload *upload, const void *bytes, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_http_finish(errand_spec *out_spec, errand_http_upload *upload);
/* errand_http_upload_left: how many bytes of a known size are to come; SIZE_UNKNOWN.
 * errand_http_upload_hold, _abandon: one reference more, or less.  NULL-safe.
 * Thread: [owner] · [any]. */
ERRAND_API size_t errand_http_upload_left(const errand_http_upload *upload);
ERRAND_API errand_http_upload *errand_http_upload_hold(errand_http_upload *upload);
ERRAND_API void errand_http_upload_abandon(errand_http_upload **take_upload);

ERRAND_END
#endif
