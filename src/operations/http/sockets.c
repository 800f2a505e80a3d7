/* SPDX-License-Identifier: MIT */
/* sockets: which ones libcurl has open for a transfer, and what it waits for at them. */
#include <poll.h>
#include <unistd.h>
#include "operations/http/http.h"

#if ERRAND_HAS_CURL
/* Puts one socket in the place of another, or of none. */
static void
exchange(errand__transfer *transfer, int old, int fd)
{
    for (size_t i = 0; i < HTTP_SOCKETS; i++)
        if (transfer->sockets[i] == old) {
            transfer->sockets[i] = fd;
            return;
        }
}

static int
on_open(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    (void)purpose;
    exchange(arg, -1, fd);
    return CURL_SOCKOPT_OK;
}

static int
on_close(void *arg, curl_socket_t fd)
{
    exchange(arg, fd, -1);
    return close(fd);
}

static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    errand__transfer *transfer = arg;
    size_t at = HTTP_SOCKETS;

    (void)easy;
    (void)socket_arg;
    for (size_t i = 0; i < HTTP_SOCKETS; i++)
        if (transfer->wants[i].fd == fd)
            at = i;
    for (size_t i = 0; i < HTTP_SOCKETS && at == HTTP_SOCKETS; i++)
        if (transfer->wants[i].fd < 0)
            at = i;
    if (at == HTTP_SOCKETS)
        return -1;
    transfer->wants[at].fd = what == CURL_POLL_REMOVE ? -1 : fd;
    transfer->wants[at].events = what == CURL_POLL_IN      ? POLLIN
                                 : what == CURL_POLL_OUT   ? POLLOUT
                                 : what == CURL_POLL_INOUT ? POLLIN | POLLOUT
                                                           : 0;
    return 0;
}

void
errand__transfer_watch_sockets(errand__transfer *transfer)
{
    const errand__curl *curl = errand__curl_load();
    CURL *easy = transfer->easy;

    curl->curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_open);
    curl->curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, transfer);
    curl->curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl->curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer);
    curl->curl_multi_setopt(transfer->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl->curl_multi_setopt(transfer->multi, CURLMOPT_SOCKETDATA, transfer);
}

void
errand__transfer_close_sockets(errand__transfer *transfer)
{
    for (size_t i = 0; i < HTTP_SOCKETS; i++)
        if (transfer->sockets[i] >= 0)
            close(transfer->sockets[i]);
}
#endif
