/* SPDX-License-Identifier: MIT */
/* net, libuv: a uv_tcp_t for each connection, read from its start to its end, and written to
 * at once from the callback; uv_listen, uv_accept and uv_close. */
#include "net.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

typedef struct connection {
    uv_tcp_t tcp;
    net_echo *echo;
    char bytes[NET_MESSAGE];
} connection;

static void
room(uv_handle_t *handle, size_t suggested, uv_buf_t *out_room)
{
    (void)suggested;
    *out_room = uv_buf_init(((connection *)handle)->bytes, NET_MESSAGE);
}

static void
was_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *bytes)
{
    connection *self = (connection *)stream;
    uv_buf_t answer = uv_buf_init(bytes->base, count > 0 ? (unsigned)count : 0);

    if (count == 0)
        return;
    if (count < 0) {
        self->echo->wrong += count != UV_EOF;
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    /* Its quickest way; one message's bytes always find room. */
    self->echo->wrong += uv_try_write(stream, &answer, 1) != count;
    self->echo->bytes += (uint64_t)count;
}

bool
net_echo_libuv(net_echo *echo, char *text, size_t size)
{
    connection *all = calloc(echo->count, sizeof *all);
    uv_loop_t loop;

    if (all == NULL || uv_loop_init(&loop) != 0) {
        snprintf(text, size, "uv_loop_init failed");
        return false;
    }
    for (uint32_t i = 0; i < echo->count; i++) {
        all[i].echo = echo;
        uv_tcp_init(&loop, &all[i].tcp);
        echo->wrong +=
            uv_tcp_open(&all[i].tcp, fcntl(echo->fds[i], F_DUPFD_CLOEXEC, 3)) != 0 ||
            uv_read_start((uv_stream_t *)&all[i].tcp, room, was_read) != 0;
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    free(all);
    return true;
}

/* ---- accepts ------------------------------------------------------------------------------------ */

static void
was_closed(uv_handle_t *handle)
{
    free(handle);
}

static void
has_come(uv_stream_t *listener, int status)
{
    net_accepts *accepts = listener->data;
    uv_tcp_t *tcp = malloc(sizeof *tcp);

    if (tcp == NULL)
        abort();
    uv_tcp_init(listener->loop, tcp);
    accepts->wrong += status != 0 || uv_accept(listener, (uv_stream_t *)tcp) != 0;
    uv_close((uv_handle_t *)tcp, was_closed);
    if (++accepts->done == accepts->left)
        uv_close((uv_handle_t *)listener, NULL);
}

bool
net_accepts_libuv(net_accepts *accepts, char *text, size_t size)
{
    uv_loop_t loop;
    uv_tcp_t listener;

    if (uv_loop_init(&loop) != 0) {
        snprintf(text, size, "uv_loop_init failed");
        return false;
    }
    uv_tcp_init(&loop, &listener);
    listener.data = accepts;
    if (uv_tcp_open(&listener, fcntl(accepts->listener, F_DUPFD_CLOEXEC, 3)) != 0 ||
        uv_listen((uv_stream_t *)&listener, 4096, has_come) != 0) {
        snprintf(text, size, "uv_listen failed");
        return false;
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return true;
}
