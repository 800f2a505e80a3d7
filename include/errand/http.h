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
 *   sockets: no thread is made.  So names are looked up before; nothing here does.
 * Certificates are checked against the system's authorities.  Proxies, cookies, user
 *   names and the environment are not looked at.  HTTP 1.1; each request has a connection
 *   of its own.
 * A status of 400 and more is a result.  Failures: CONNECTION_FAILED, TIMEOUT, CERTIFICATE,
 *   PROTOCOL, RECEIVE_FAILED, SEND_FAILED, REDIRECTS, TOO_LARGE, STOPPED, MEMORY, IO. */
#include "errand/source.h"
ERRAND_BEGIN

enum {                           /* errand_http_config.flags */
       ERRAND_HTTP_POST = 1,     /* else GET */
       ERRAND_HTTP_STREAM = 2,   /* complete with the head; the body is a source */
       ERRAND_HTTP_UNCHECKED = 4 /* accept any certificate: for tests */
};
typedef struct errand_http_config {
    uint32_t struct_size;
    uint32_t flags;
    const char *url;  /* "http://..." or "https://..." */
    const void *body; /* of a POST */
    size_t body_size;
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
 * errand_spec_http: GET or POST; everything is copied.  Gives:
 *   errand_http_response_type.
 * Thread: [any].
 * Errors: ENOMEM · EINVAL (no such url, a line break in a header or no name of one, a host
 *   without addresses, host_size too small) · EUNSUPPORTED. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_http_origin(const char *url, char *out_host, size_t host_size, uint16_t *out_port);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_http(errand_spec *out_spec, const errand_http_config *config);

ERRAND_END
#endif
