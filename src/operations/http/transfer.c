/* SPDX-License-Identifier: MIT */
/* transfer: one request in libcurl's hands.
 *
 * Design notes: libcurl says which sockets it waits for and until when; whoever drives it waits for
 * them and says what came of it.  Redirects are followed by the operation. */
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "operations/http/http.h"

#if ERRAND_HAS_CURL
enum {
    HEAD_MAX = 256 * 1024,
    BODY_DEFAULT = 64 * 1024 * 1024,
    STREAM_AHEAD = 256 * 1024,
    STEPS_AT_ONCE = 64,
    SOON_NS = 5000000
};

static int on_timer(CURLM *multi, long ms, void *arg);
static size_t on_body(char *bytes, size_t size, size_t count, void *arg);
static size_t on_read(char *out, size_t size, size_t count, void *arg);
static bool listen_to(errand__transfer *transfer);

errand__transfer *
errand__transfer_create(const errand_http_config *config, const errand__origin *origin,
                        bool uploads)
{
    const errand__curl *curl = errand__curl_load();
    errand__transfer *made = errand__operation_block_alloc(sizeof *made);

    if (made == NULL)
        return NULL;
    for (size_t i = 0; i < HTTP_SOCKETS; i++)
        made->wants[i].fd = made->sockets[i] = -1;
    made->owner = getpid();
    made->timer_at = UINT64_MAX;
    made->apart = origin->secure;
    made->shown = errand__operation_show(config->url);
    made->head.max = HEAD_MAX;
    made->streams = (config->flags & ERRAND_HTTP_STREAM) != 0;
    made->body.max = made->streams           ? STREAM_AHEAD
                     : config->body_max == 0 ? BODY_DEFAULT
                                             : config->body_max;
    made->multi = curl->curl_multi_init();
    made->easy = curl->curl_easy_init();
    if (made->multi == NULL || made->easy == NULL ||
        !errand__transfer_set_up(made, config, origin, uploads) || !listen_to(made)) {
        errand__transfer_destroy(made);
        return NULL;
    }
    return made;
}

/* And it begins. */
static bool
listen_to(errand__transfer *transfer)
{
    const errand__curl *curl = errand__curl_load();
    CURL *easy = transfer->easy;

    curl->curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, errand__transfer_on_head);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl->curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl->curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    errand__transfer_watch_sockets(transfer);
    curl->curl_multi_setopt(transfer->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl->curl_multi_setopt(transfer->multi, CURLMOPT_TIMERDATA, transfer);
    return curl->curl_multi_add_handle(transfer->multi, easy) == CURLM_OK;
}

/* libcurl tells the server that a secure connection ends.  In a forked child it goes on elsewhere: only
 * sockets are closed there. */
static void
end(errand__transfer *transfer)
{
    const errand__curl *curl = errand__curl_load();

    if (transfer->multi != NULL && transfer->easy != NULL)
        curl->curl_multi_remove_handle(transfer->multi, transfer->easy);
    if (transfer->easy != NULL)
        curl->curl_easy_cleanup(transfer->easy);
    if (transfer->multi != NULL)
        curl->curl_multi_cleanup(transfer->multi);
}

void
errand__transfer_destroy(errand__transfer *transfer)
{
    const errand__curl *curl = errand__curl_load();

    if (transfer == NULL)
        return;
    if (transfer->owner == getpid())
        end(transfer);
    errand__transfer_close_sockets(transfer);
    curl->curl_slist_free_all(transfer->headers);
    curl->curl_slist_free_all(transfer->resolve);
    errand__operation_block_free(transfer->head.bytes);
    errand__operation_block_free(transfer->body.bytes);
    errand__operation_block_free(transfer);
}

bool
errand__transfer_again(errand__transfer *transfer, const char *url, bool secure,
                       bool repeats)
{
    const errand__curl *curl = errand__curl_load();

    curl->curl_multi_remove_handle(transfer->multi, transfer->easy);
    transfer->head.used = transfer->body.used = 0;
    transfer->head_open = transfer->head_done = transfer->over = transfer->paused = false;
    transfer->apart = secure;
    transfer->shown = errand__operation_show(url);
    if (!repeats) {
        curl->curl_easy_setopt(transfer->easy, CURLOPT_CUSTOMREQUEST, NULL);
        curl->curl_easy_setopt(transfer->easy, CURLOPT_HTTPGET, 1L);
    }
    return curl->curl_easy_setopt(transfer->easy, CURLOPT_URL, url) == CURLE_OK &&
           curl->curl_multi_add_handle(transfer->multi, transfer->easy) == CURLM_OK;
}

/* When an address took too long, libcurl 7.88 waits for somebody to have it go on to the next. */
static bool
waits_for_nothing(const errand__transfer *transfer)
{
    for (size_t i = 0; i < HTTP_SOCKETS; i++)
        if (transfer->wants[i].fd >= 0)
            return false;
    return !transfer->over && !transfer->paused && !transfer->starved;
}

/* libcurl has read its certificates when the peer has shown its own. */
static bool
is_secure(const errand__transfer *transfer)
{
    double seconds = 0;

    errand__curl_load()->curl_easy_getinfo(transfer->easy, CURLINFO_APPCONNECT_TIME,
                                           &seconds);
    return seconds > 0;
}

void
errand__transfer_act(errand__transfer *transfer, int fd, uint32_t events)
{
    const errand__curl *curl = errand__curl_load();
    int mask = ((events & (POLLIN | POLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
               ((events & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
               ((events & POLLERR) != 0 ? CURL_CSELECT_ERR : 0);
    int running, left;

    if (fd < 0)
        transfer->timer_at = UINT64_MAX; /* set again, if it is wanted */
    if (fd < 0 && transfer->forgotten)
        curl->curl_multi_socket_all(transfer->multi, &running);
    else
        curl->curl_multi_socket_action(transfer->multi, fd < 0 ? CURL_SOCKET_TIMEOUT : fd,
                                       fd < 0 ? 0 : mask, &running);
    transfer->apart = transfer->apart && !is_secure(transfer);
    for (CURLMsg *news;
         (news = curl->curl_multi_info_read(transfer->multi, &left)) != NULL;)
        if (news->msg == CURLMSG_DONE) {
            transfer->over = true;
            transfer->result = news->data.result;
        }
    transfer->forgotten = false;
    if (waits_for_nothing(transfer)) {
        uint64_t soon = errand__clock_now() + SOON_NS;

        transfer->forgotten = transfer->timer_at > soon;
        if (transfer->forgotten)
            transfer->timer_at = soon;
    }
}

void
errand__transfer_timers(errand__transfer *transfer)
{
    for (int steps = 0; steps < STEPS_AT_ONCE && !transfer->over &&
                        transfer->timer_at <= errand__clock_now();
         steps++)
        errand__transfer_act(transfer, -1, 0);
}

void
errand__transfer_feed(errand__transfer *transfer)
{
    if (!transfer->starved)
        return;
    transfer->starved = false;
    errand__curl_load()->curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
}

/* ---- what libcurl says ------------------------------------------------------------------------- */

static int
on_timer(CURLM *multi, long ms, void *arg)
{
    errand__transfer *transfer = arg;

    (void)multi;
    transfer->timer_at =
        ms < 0 ? UINT64_MAX : errand__clock_now() + (uint64_t)ms * UINT64_C(1000000);
    return 0;
}

bool
errand__transfer_grow(errand__transfer *transfer, errand__growing *into,
                      const char *bytes, size_t size)
{
    if (size > into->max - into->used) {
        transfer->trouble = TRANSFER_TOO_LARGE;
        transfer->trouble_in = into;
        return false;
    }
    if (size > into->room - into->used) {
        size_t room = into->room == 0 ? 4096 : into->room;

        while (room - into->used < size)
            room *= 2;
        char *wider = into->bytes == NULL
                          ? errand__operation_block_alloc(room)
                          : errand__operation_block_grow(into->bytes, room);
        if (wider == NULL) {
            transfer->trouble = TRANSFER_NO_MEMORY;
            transfer->trouble_in = into;
            return false;
        }
        into->bytes = wider;
        into->room = room;
    }
    memcpy(into->bytes + into->used, bytes, size);
    into->used += size;
    return true;
}

static size_t
on_body(char *bytes, size_t size, size_t count, void *arg)
{
    errand__transfer *transfer = arg;

    size *= count;
    if (transfer->streams && size > transfer->body.max - transfer->body.used) {
        transfer->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return errand__transfer_grow(transfer, &transfer->body, bytes, size) ? size : 0;
}

static size_t
on_read(char *out, size_t size, size_t count, void *arg)
{
    errand__transfer *transfer = arg;

    size *= count;
    if (transfer->piece_left == 0) {
        if (transfer->piece_last)
            return 0;
        transfer->starved = true;
        return CURL_READFUNC_PAUSE;
    }
    size = size < transfer->piece_left ? size : transfer->piece_left;
    memcpy(out, transfer->piece, size);
    transfer->piece += size;
    transfer->piece_left -= size;
    return size;
}

/* ---- what came of it ----------------------------------------------------------------------------- */

static int32_t
code_of(CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return ERRAND_OPERATION_NOT_FOUND;
    case CURLE_COULDNT_CONNECT:
        return ERRAND_OPERATION_CONNECTION_FAILED;
    case CURLE_OPERATION_TIMEDOUT:
        return ERRAND_OPERATION_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return ERRAND_OPERATION_CERTIFICATE;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        return ERRAND_OPERATION_RECEIVE_FAILED;
    case CURLE_SEND_ERROR:
        return ERRAND_OPERATION_SEND_FAILED;
    case CURLE_OUT_OF_MEMORY:
        return ERRAND_OPERATION_MEMORY;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
        return ERRAND_OPERATION_PROTOCOL;
    default:
        return ERRAND_OPERATION_IO;
    }
}

int32_t
errand__transfer_result(errand_job *job, const errand__transfer *transfer)
{
    const char *shown = transfer->shown.text;

    if (transfer->result == CURLE_OK)
        return 0;
    if (transfer->trouble == TRANSFER_NO_MEMORY)
        return errand__operation_no_memory(job, transfer->trouble_in->room * 2);
    if (transfer->trouble == TRANSFER_LENGTH)
        return errand__operation_failed(
            job, ERRAND_OPERATION_PROTOCOL,
            "%s: the answer's length is no number, or it has two that differ", shown);
    if (transfer->trouble == TRANSFER_TOO_LARGE &&
        transfer->trouble_in == &transfer->head)
        return errand__operation_failed(job, ERRAND_OPERATION_PROTOCOL,
                                        "%s: the answer's head is larger than %zu bytes",
                                        shown, transfer->head.max);
    if (transfer->trouble == TRANSFER_TOO_LARGE)
        return errand__operation_failed(job, ERRAND_OPERATION_TOO_LARGE,
                                        "%s: the answer is larger than %zu bytes", shown,
                                        transfer->body.max);
    if (transfer->result == CURLE_OUT_OF_MEMORY && !transfer->head_done)
        return errand__operation_failed(
            job, ERRAND_OPERATION_MEMORY,
            "%s: memory ran out, or a line of the answer's head is too long", shown);
    return errand__operation_failed(
        job, code_of(transfer->result), "%s: %s", shown,
        errand__curl_load()->curl_easy_strerror(transfer->result));
}

uint32_t
errand__transfer_status(const errand__transfer *transfer)
{
    long status = 0;

    errand__curl_load()->curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE,
                                           &status);
    return status < 0 ? 0 : (uint32_t)status;
}

const char *
errand__transfer_location(const errand__transfer *transfer)
{
    char *url = NULL;
    uint32_t status = errand__transfer_status(transfer);

    if (status < 300 || status > 399)
        return NULL;
    errand__curl_load()->curl_easy_getinfo(transfer->easy, CURLINFO_REDIRECT_URL, &url);
    return url;
}

const char *
errand__transfer_url(const errand__transfer *transfer)
{
    char *url = NULL;

    errand__curl_load()->curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url);
    return url == NULL ? "" : url;
}
#endif
