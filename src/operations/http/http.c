/* SPDX-License-Identifier: MIT */
/* http: a request as an operation, and the redirects that it follows. */
#include <string.h>
#include "operations/http/http.h"

bool
errand_http_repeats(const char *method, uint32_t flags, uint32_t status)
{
    bool posts =
        method == NULL ? (flags & ERRAND_HTTP_POST) != 0 : strcmp(method, "POST") == 0;
    bool reads = method == NULL
                     ? !posts
                     : strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    if (reads || status == 307 || status == 308)
        return true;
    return !posts && status != 303;
}

/* In capitals: a server takes "get" for another method than GET. */
bool
errand_http_is_method(const char *method)
{
    size_t length = method == NULL ? 0 : strnlen(method, ERRAND_HTTP_METHOD_ROOM);

    return length > 0 && length < ERRAND_HTTP_METHOD_ROOM &&
           strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == length &&
           strcmp(method, "CONNECT") != 0;
}

#if ERRAND_HAS_CURL
typedef struct http_state {
    errand__transfer *transfer;
    errand__origin origin; /* whose addresses are known */
    uint32_t flags, redirects, redirects_max;
    char method[ERRAND_HTTP_METHOD_ROOM]; /* "" = as flags say */
    errand__http_drive drive;
} http_state;

static int32_t http_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t finish(errand_job *job, http_state *http, errand_payload *out_payload);
static int32_t follow(errand_job *job, http_state *http, const char *location,
                      bool *out_may);
static void http_drop(void *state);

static const errand_job_type http_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "http",
    .poll = http_poll,
    .drop = http_drop,
};

/* "Name: value", and no character in the name that a server might read as its end. */
static bool
good_headers(const char *const *headers)
{
    static const char token[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (; headers != NULL && *headers != NULL; headers++) {
        size_t name = strspn(*headers, token);

        if (strpbrk(*headers, "\r\n") != NULL || name == 0 || (*headers)[name] != ':')
            return false;
    }
    return true;
}

/* Does a body go with it, if there is one? */
static bool
good_method(const errand_http_config *config)
{
    const char *method = config->method;
    bool posts = (config->flags & ERRAND_HTTP_POST) != 0;

    return method == NULL ||
           (errand_http_is_method(method) && (!posts || strcmp(method, "HEAD") != 0));
}

errand_status
errand__http_check(const errand_http_config *config, errand__origin *out_origin,
                   const char *function)
{
    ERRAND_REQUIRE_OF(function,
                      config != NULL && config->struct_size == sizeof *config &&
                          config->flags < 8 && config->url != NULL,
                      ERRAND_EINVAL, "config or url is missing");
    ERRAND_REQUIRE_OF(function, good_headers(config->headers), ERRAND_EINVAL,
                      "headers have no colon, or a line break");
    ERRAND_REQUIRE_OF(function, good_method(config), ERRAND_EINVAL,
                      "method is none, or one without a body that has one");
    if (errand__curl_load() == NULL)
        return ERRAND_EUNSUPPORTED;
    if (!errand__origin_of(config->url, out_origin) ||
        strpbrk(config->url, "\r\n") != NULL)
        return ERRAND_EINVAL;
    bool known = config->addresses != NULL && config->addresses->count > 0;
    ERRAND_REQUIRE_OF(function, out_origin->numeric || known, ERRAND_EINVAL,
                      "the url's host is a name: look its addresses up first");
    return ERRAND_OK;
}

errand_status
errand_spec_http(errand_spec *out_spec, const errand_http_config *config)
{
    errand__origin origin;

    ERRAND_REQUIRE_ARG(out_spec != NULL && config != NULL, ERRAND_EINVAL,
                       "out_spec or config is NULL");
    errand_status status = errand__http_check(config, &origin, __func__);
    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG((config->body != NULL || config->body_size == 0) &&
                           config->body_size <= ERRAND_RECEIVE_MAX,
                       ERRAND_EINVAL, "body is NULL or too large");
    http_state *state = errand__operation_block_alloc(sizeof *state);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->transfer = errand__transfer_create(config, &origin, false);
    if (state->transfer == NULL) {
        errand__operation_block_free(state);
        return ERRAND_ENOMEM;
    }
    state->origin = origin;
    state->flags = config->flags;
    strcpy(state->method, config->method == NULL ? "" : config->method);
    state->drive.limit_ns = errand__http_limit(config);
    state->redirects_max = config->redirects_max;
    errand__wait_spec(out_spec, ERRAND_KIND_HTTP, &http_job, state);
    return ERRAND_OK;
}

static int32_t
http_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    http_state *http = state;
    errand__transfer *transfer = http->transfer;
    int32_t code = errand__http_drive_turn(job, &http->drive, transfer);

    if (code != 0)
        return code;
    if (transfer->over || (transfer->streams && transfer->head_done))
        return finish(job, http, out_payload);
    return errand__http_drive_wait(job, &http->drive, transfer);
}

static int32_t
finish(errand_job *job, http_state *http, errand_payload *out_payload)
{
    errand__transfer *transfer = http->transfer;
    const char *location = NULL;
    bool may = false;
    int32_t code = transfer->over ? errand__transfer_result(job, transfer) : 0;

    if (code == 0)
        location = errand__transfer_location(transfer);
    if (location != NULL && http->redirects_max > 0)
        code = follow(job, http, location, &may);
    if (code != 0)
        return code;
    if (!may)
        return errand__http_give(job, &http->transfer, location, out_payload);
    code = errand__http_drive_hear(job, &http->drive, transfer);
    if (code != 0)
        return code;
    return transfer->over ? errand__transfer_result(job, transfer)
                          : errand__http_drive_wait(job, &http->drive, transfer);
}

/* May it be followed?  Then it is under way. */
static int32_t
follow(errand_job *job, http_state *http, const char *location, bool *out_may)
{
    errand__origin next;
    uint32_t status = errand__transfer_status(http->transfer);
    char url[8192];

    if (strlen(location) >= sizeof url || !errand__origin_of(location, &next))
        return errand__operation_failed(job, ERRAND_OPERATION_REDIRECTS,
                                        "it was sent to '%s'",
                                        errand__operation_show(location).text);
    if (http->origin.secure && !next.secure)
        return errand__operation_failed(job, ERRAND_OPERATION_REDIRECTS,
                                        "it was sent from https to '%s'",
                                        errand__operation_show(location).text);
    if (++http->redirects > http->redirects_max)
        return errand__operation_failed(job, ERRAND_OPERATION_REDIRECTS,
                                        "it was sent elsewhere %u times, last to '%s'",
                                        http->redirects,
                                        errand__operation_show(location).text);
    /* Addresses are known for one host and port. */
    if (!next.numeric &&
        (strcmp(next.host, http->origin.host) != 0 || next.port != http->origin.port))
        return 0;
    strcpy(url, location);
    bool repeats = errand_http_repeats(http->method[0] == 0 ? NULL : http->method,
                                       http->flags, status);
    if (!repeats) {
        http->flags &= ~(uint32_t)ERRAND_HTTP_POST;
        http->method[0] = 0;
    }
    if (!errand__transfer_again(http->transfer, url, next.secure, repeats))
        return errand__operation_no_memory(job, sizeof url);
    *out_may = true;
    return 0;
}

static void
http_drop(void *state)
{
    http_state *http = state;

    errand__transfer_destroy(http->transfer);
    errand__operation_block_free(http);
}
#else
errand_status
errand_spec_http(errand_spec *out_spec, const errand_http_config *config)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && config != NULL, ERRAND_EINVAL,
                       "out_spec or config is NULL");
    return ERRAND_EUNSUPPORTED;
}
#endif
