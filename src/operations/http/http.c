/* SPDX-License-Identifier: MIT */
/* http: a request as an operation: waits for what libcurl waits for.
 *
 * Design notes: libcurl changes its mind about sockets while requests to wait for them are under way.
 * A slot's request is asked back when it no longer fits, and made anew once it has come;
 * what it then says of a socket that is gone is not passed on.
 * As long as a server sends faster than it is read, libcurl wants to go on at once, for ever: it gets
 * a bounded number of steps per poll, so that limits, cancels and other jobs have their turn. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "errand/traps.h"
#include "operations/http/http.h"

#if ERRAND_HAS_CURL
static const uint64_t limit_default_ns = 60000000000u;

typedef struct http_state {
    errand__transfer *transfer;
    errand__origin origin; /* whose addresses are known */
    bool begun, posts, has_addresses;
    uint64_t limit_ns, until;
    uint32_t redirects, redirects_max;
    errand_io polls[HTTP_SOCKETS], timer;
    bool polling[HTTP_SOCKETS], timing;
} http_state;

static int32_t http_poll(errand_job *job, void *state, errand_payload *out_payload);
static void hear(http_state *http);
static int32_t arm(errand_job *job, http_state *http);
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

errand_status
errand_spec_http(errand_spec *out_spec, const errand_http_config *config)
{
    errand__origin origin;

    ERRAND_REQUIRE_ARG(out_spec != NULL && config != NULL &&
                           config->struct_size == sizeof *config && config->flags < 8 &&
                           config->url != NULL,
                       ERRAND_EINVAL, "out_spec, config or url is missing");
    ERRAND_REQUIRE_ARG((config->body != NULL || config->body_size == 0) &&
                           config->body_size <= ERRAND_RECEIVE_MAX &&
                           good_headers(config->headers),
                       ERRAND_EINVAL, "body is NULL or too large, or headers are wrong");
    if (errand__curl_load() == NULL)
        return ERRAND_EUNSUPPORTED;
    if (!errand__origin_of(config->url, &origin) || strpbrk(config->url, "\r\n") != NULL)
        return ERRAND_EINVAL;
    bool known = config->addresses != NULL && config->addresses->count > 0;
    ERRAND_REQUIRE_ARG(origin.numeric || known, ERRAND_EINVAL,
                       "the url's host is a name: look its addresses up first");
    http_state *state = errand__operation_block_alloc(sizeof *state);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->transfer = errand__transfer_create(config, &origin);
    if (state->transfer == NULL) {
        errand__operation_block_free(state);
        return ERRAND_ENOMEM;
    }
    state->origin = origin;
    state->posts = (config->flags & ERRAND_HTTP_POST) != 0;
    state->limit_ns = config->limit_ns == 0 ? limit_default_ns : config->limit_ns;
    state->redirects_max = config->redirects_max;
    errand__wait_spec(out_spec, ERRAND_KIND_HTTP, &http_job, state);
    return ERRAND_OK;
}

static int32_t
http_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    http_state *http = state;
    errand__transfer *transfer = http->transfer;
    uint64_t now = errand__clock_now();

    if (!http->begun) {
        errand_job_impure(job);
        http->begun = true;
        http->until =
            http->limit_ns > UINT64_MAX - now ? UINT64_MAX : now + http->limit_ns;
    } else if (errand_job_cancelled(job)) {
        return errand__operation_failed(
            job, ERRAND_OPERATION_STOPPED, "%s: it was cancelled",
            errand__operation_show(errand__transfer_url(transfer)).text);
    }
    hear(http);
    if (transfer->over || (transfer->streams && transfer->head_done))
        return finish(job, http, out_payload);
    if (errand__clock_now() >= http->until)
        return errand__operation_failed(
            job, ERRAND_OPERATION_TIMEOUT, "%s: it took longer than %s",
            errand__operation_show(errand__transfer_url(transfer)).text,
            errand__operation_length(http->limit_ns).text);
    return arm(job, http);
}

/* Passes on what came, and what is due. */
static void
hear(http_state *http)
{
    errand__transfer *transfer = http->transfer;

    for (size_t i = 0; i < HTTP_SOCKETS && !transfer->over; i++) {
        errand_io *io = &http->polls[i];

        if (!http->polling[i] || !io->done)
            continue;
        http->polling[i] = false;
        if (transfer->wants[i].fd == io->fd && io->result > 0)
            errand__transfer_act(transfer, io->fd, (uint32_t)io->result);
        else if (transfer->wants[i].fd == io->fd && io->result < 0 &&
                 io->result != -ECANCELED)
            errand__transfer_act(transfer, io->fd, POLLERR);
    }
    if (http->timing && http->timer.done)
        http->timing = false;
    errand__transfer_timers(transfer);
}

static int32_t
arm(errand_job *job, http_state *http)
{
    errand__transfer *transfer = http->transfer;
    uint64_t until = transfer->timer_at < http->until ? transfer->timer_at : http->until;
    errand_status status = ERRAND_OK;

    for (size_t i = 0; i < HTTP_SOCKETS && status == ERRAND_OK; i++) {
        errand_io *io = &http->polls[i];
        int fd = transfer->wants[i].fd;
        uint32_t events = transfer->wants[i].events;

        if (http->polling[i] && (io->fd != fd || io->events != events)) {
            errand_io_cancel(job, io);
        } else if (!http->polling[i] && fd >= 0 && events != 0) {
            *io = (errand_io){.kind = ERRAND_IO_POLL, .fd = fd, .events = events};
            status = errand_io_start(job, io);
            http->polling[i] = status == ERRAND_OK;
        }
    }
    if (http->timing && until < http->timer.until_ns) {
        errand_io_cancel(job, &http->timer);
    } else if (!http->timing && status == ERRAND_OK) {
        http->timer = (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = until};
        status = errand_io_start(job, &http->timer);
        http->timing = status == ERRAND_OK;
    }
    if (status != ERRAND_OK)
        return errand__operation_failed(job, ERRAND_OPERATION_UNSUPPORTED,
                                        "it has to wait, and runs on no reactor");
    return ERRAND_PENDING;
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
    hear(http);
    return transfer->over ? errand__transfer_result(job, transfer) : arm(job, http);
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
    http->posts = http->posts && (status == 307 || status == 308);
    if (!errand__transfer_again(http->transfer, url, http->posts))
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
