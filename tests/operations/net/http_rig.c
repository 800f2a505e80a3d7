/* SPDX-License-Identifier: MIT */
/* http_rig: a small web server on a thread, which answers by path. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "http_rig.h"

typedef struct server {
    pthread_t thread;
    int fd;
    uint16_t port;
} server;
static server the_server;

static void
say(int fd, const char *text)
{
    net_peer_write(fd, text, strlen(text));
}

/* Reads a request; answers its body's size. */
static size_t
read_request(int fd, char *request, size_t room)
{
    size_t used = 0, body = 0;
    char *end = NULL;

    while (end == NULL || used < (size_t)(end + 4 - request) + body) {
        ssize_t count = recv(fd, request + used, room - 1 - used, 0);

        if (count <= 0)
            return 0;
        used += (size_t)count;
        request[used] = 0;
        if (end == NULL && (end = strstr(request, "\r\n\r\n")) != NULL) {
            const char *length = strstr(request, "Content-Length: ");

            body = length == NULL ? 0 : (size_t)atoi(length + 16);
        }
    }
    return body;
}

static void
say_large(int fd)
{
    char *bytes = malloc(HTTP_LARGE);

    say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    for (size_t i = 0; i < HTTP_LARGE; i++)
        bytes[i] = (char)('a' + i % 23);
    for (size_t sent = 0; sent < HTTP_LARGE;) {
        ssize_t count = send(fd, bytes + sent, HTTP_LARGE - sent, MSG_NOSIGNAL);

        if (count <= 0)
            break;
        sent += (size_t)count;
    }
    free(bytes);
}

/* As fast as it goes, until nobody listens. */
static void
flood(int fd, const char *text)
{
    static char bytes[65536];
    size_t length = strlen(text), count = sizeof bytes / length;

    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * length, text, length);
    while (send(fd, bytes, count * length, MSG_NOSIGNAL) > 0) {
    }
}

/* The method, the type that the body is said to have, the body. */
static void
say_method(int fd, const char *request, size_t body)
{
    const char *from = strstr(request, "\r\n\r\n") + 4;
    const char *type = strstr(request, "Content-Type: ");
    int length = (int)strcspn(request, " "), types = 0;
    char text[512], said[256];

    if (type != NULL)
        types = (int)strcspn(type += 14, "\r");
    snprintf(said, sizeof said, "%.*s|%.*s|%.*s", length, request, types,
             type == NULL ? "" : type, (int)body, from);
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(said), said);
    say(fd, text);
}

static const char *const unclear[HTTP_UNCLEAR] = {
    "Content-Length: 7\r\ncontent-length: 5",
    "Content-Length: 5, 7",
    "Content-Length: 5,",
    "Content-Length: 5 7",
    "Content-Length: 5x",
    "Content-Length: 0x5",
    "Content-Length: +5",
    "Content-Length: 5\r\nContent-Length: 18446744073709551621", /* 2^64 + 5 */
    "Content-Length: 5\r\n 7",
    "Transfer-Encoding: chunked\r\n\t, gzip",
    "Content-Length : 7\r\nContent-Length: 5",
    "Transfer-Encoding : chunked\r\nContent-Length: 5",
    "Content-Length: 7\r\nHTTP/1.1: 1\r\nContent-Length: 5",
};

/* Answers that say where they end, in a way of their own; false: it is another path. */
static bool
say_where_it_ends(int fd, const char *request)
{
    char text[512];
    unsigned which;

    if (strncmp(request, "GET /twice ", 11) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length:5 , 05\r\n\r\n"
                "hello");
    } else if (strncmp(request, "GET /behind ", 12) == 0) {
        say(fd, "HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n"
                "HTTP/1.1 200 OK\r\nX-One: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                "5\r\nhello\r\n0\r\nHTTP/1.1: 2\r\nContent-Length: 9\r\n\r\n");
    } else if (sscanf(request, "GET /unclear/%u", &which) == 1 && which < HTTP_UNCLEAR) {
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n\r\nhello, you",
                 unclear[which]);
        say(fd, text);
    } else {
        return false;
    }
    return true;
}

static void
answer(int fd, const char *request, size_t body)
{
    char text[512];
    int status;

    if (strncmp(request, "GET /plain ", 11) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nhello");
    } else if (strncmp(request, "POST /echo ", 11) == 0) {
        const char *from = strstr(request, "\r\n\r\n") + 4;

        snprintf(text, sizeof text,
                 "HTTP/1.1 201 Made\r\nX-Seen: %s\r\nContent-Length: %zu\r\n\r\n",
                 strstr(request, "X-Mine: yes") != NULL ? "yes" : "no", body);
        say(fd, text);
        net_peer_write(fd, from, body);
    } else if (strncmp(request, "HEAD /", 6) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nX-Seen: head\r\nContent-Length: 5\r\n\r\n");
    } else if (strstr(request, " /method ") != NULL) {
        say_method(fd, request, body);
    } else if (sscanf(request, "%*[A-Z] /sent/%d", &status) == 1) {
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d Elsewhere\r\nLocation: /method\r\nContent-Length: "
                 "0\r\n\r\n",
                 status);
        say(fd, text);
    } else if (strncmp(request, "GET /around ", 12) == 0) {
        say(fd, "HTTP/1.1 302 Found\r\nLocation: /around\r\nContent-Length: 0\r\n\r\n");
    } else if (strncmp(request, "GET /moved ", 11) == 0) {
        say(fd, "HTTP/1.1 301 Moved\r\nLocation: /plain\r\nContent-Length: 3\r\n\r\nold");
    } else if (strncmp(request, "GET /other ", 11) == 0) {
        say(fd, "HTTP/1.1 302 Found\r\nLocation: http://other.invalid/x\r\n"
                "Content-Length: 0\r\n\r\n");
    } else if (strncmp(request, "GET /large ", 11) == 0) {
        say_large(fd);
    } else if (strncmp(request, "GET /short ", 11) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort");
    } else if (strncmp(request, "GET /rubbish ", 13) == 0) {
        say(fd, "this is no protocol at all\r\n\r\n");
    } else if (strncmp(request, "GET /flood ", 11) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;");
        flood(fd, "x"); /* the chunk's head never ends */
    } else if (strncmp(request, "GET /head ", 10) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\n");
        flood(fd, "X-Head: of a thousand lines\r\n");
    } else if (strncmp(request, "GET /seen ", 10) == 0) {
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                 strlen(request));
        say(fd, text);
        say(fd, request);
    } else if (strncmp(request, "GET /silent ", 12) == 0) {
        char byte;

        while (recv(fd, &byte, 1, 0) > 0) {
        }
    } else if (!say_where_it_ends(fd, request)) {
        say(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
    }
}

static void *
serve(void *arg)
{
    const server *self = arg;
    char request[4096];

    for (;;) {
        int fd = accept4(self->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            return NULL;
        size_t body = read_request(fd, request, sizeof request);
        answer(fd, request, body);
        close(fd);
    }
}

int
http_listen_setup(void **state, int *out_fd, uint16_t *out_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    char host[8];
    int status = net_setup(state);

    if (errand_http_origin("http://x/", host, sizeof host, out_port) ==
        ERRAND_EUNSUPPORTED) {
        net_teardown(state);
        test_skip("libcurl is not there");
    }
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *out_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*out_fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(*out_fd, 16), 0);
    assert_int_equal(getsockname(*out_fd, (struct sockaddr *)&at, &size), 0);
    *out_port = ntohs(at.sin_port);
    return status;
}

int
http_setup(void **state)
{
    int status = http_listen_setup(state, &the_server.fd, &the_server.port);

    assert_int_equal(pthread_create(&the_server.thread, NULL, serve, &the_server), 0);
    return status;
}

int
http_teardown(void **state)
{
    shutdown(the_server.fd, SHUT_RDWR);
    pthread_join(the_server.thread, NULL);
    close(the_server.fd);
    return net_teardown(state);
}

uint16_t
http_port(void)
{
    return the_server.port;
}

const char *
http_url_of(const char *path)
{
    static char url[128];

    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", the_server.port, path);
    return url;
}

errand_http_config
http_config_of(const char *path)
{
    return (errand_http_config){.struct_size = sizeof(errand_http_config),
                                .url = http_url_of(path)};
}

const errand_http_response *
http_request(net_rig *rig, const errand_http_config *config, net_result *result)
{
    errand_spec spec;

    assert_int_equal(errand_spec_http(&spec, config), ERRAND_OK);
    net_run(rig, &spec, result);
    if (result->outcome != ERRAND_COMPLETED)
        return NULL;
    assert_ptr_equal(result->payload.held_type, &errand_http_response_type);
    return result->payload.data;
}

const char *
http_header_of(const errand_http_response *response, const char *name)
{
    for (size_t i = 0; i < response->header_count; i++)
        if (strcmp(response->headers[i].name, name) == 0)
            return response->headers[i].value;
    return NULL;
}
