/* SPDX-License-Identifier: MIT */
/* net: the load.  One thread and epoll.  A message tells its connection and its number in every
 * word, and comes back whole before the next is sent. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct client {
    int fd;
    uint32_t number, got;
    uint64_t sent;
    uint64_t message[NET_MESSAGE / 8];
} client;

static int
open_client(uint16_t port, int flags)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 &&
        errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool
watch(int set, int fd, void *whose)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = whose};

    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* ---- echo ---------------------------------------------------------------------------------- */

static uint64_t
word(const client *self, uint32_t at)
{
    return (self->sent << 16 | self->number) * 0x9e3779b97f4a7c15u + at;
}

static bool
send_next(client *self)
{
    self->sent++;
    self->got = 0;
    for (uint32_t i = 0; i < NET_MESSAGE / 8; i++)
        self->message[i] = word(self, i);
    return send(self->fd, self->message, NET_MESSAGE, MSG_NOSIGNAL) == NET_MESSAGE;
}

/* Something came.  1: a whole message, and a right one; 0: not whole yet; -1: wrong. */
static int
receive(client *self)
{
    ssize_t got = recv(self->fd, (char *)self->message + self->got,
                       NET_MESSAGE - self->got, MSG_DONTWAIT);

    if (got <= 0)
        return got < 0 && errno == EAGAIN ? 0 : -1;
    self->got += (uint32_t)got;
    if (self->got < NET_MESSAGE)
        return 0;
    for (uint32_t i = 0; i < NET_MESSAGE / 8; i++) {
        if (self->message[i] != word(self, i))
            return -1;
        self->message[i] = 0; /* the next has to write it */
    }
    return 1;
}

static bool
open_all(client *clients, uint32_t count, uint16_t port, int set)
{
    const int one = 1;

    for (uint32_t i = 0; i < count; i++) {
        clients[i] = (client){.fd = open_client(port, 0), .number = i};
        if (clients[i].fd < 0 || !watch(set, clients[i].fd, &clients[i]))
            return false;
        setsockopt(clients[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!send_next(&clients[i]))
            return false;
    return true;
}

/* All that has come is answered until the time is over; then it is only heard. */
static void
go_on(int set, uint32_t open, uint64_t begin_ns, uint64_t end_ns, net_answer *answer)
{
    struct epoll_event events[256];
    uint64_t now = bench_now(), first = 0;

    while (open > 0 && answer->wrong == 0) {
        int count = epoll_wait(set, events, 256, 5000);

        answer->wrong += count == 0;
        now = bench_now();
        if (first == 0 && now >= begin_ns) {
            first = now;
            answer->counted = answer->total;
        }
        for (int i = 0; i < count; i++) {
            client *one = events[i].data.ptr;
            int came = receive(one);

            answer->wrong += came < 0;
            answer->total += came > 0;
            if (came > 0 && now >= end_ns)
                open--;
            else if (came > 0)
                answer->wrong += !send_next(one);
        }
    }
    answer->counted = answer->total - answer->counted;
    answer->ns = now - first;
}

void
net_load_echo(uint16_t port, uint32_t connections, uint32_t measure_ms,
              net_answer *answer)
{
    client *clients = calloc(connections, sizeof *clients);
    int set = epoll_create1(0);
    uint64_t measure = measure_ms * (uint64_t)1000000, now;

    if (clients == NULL || set < 0 || !open_all(clients, connections, port, set)) {
        answer->wrong++;
        return; /* the process ends, and so do its connections */
    }
    now = bench_now();
    go_on(set, connections, now + measure / 4, now + measure / 4 + measure, answer);
}

/* ---- accepts ------------------------------------------------------------------------------------ */

/* It ends by a reset, so that no side keeps it for a minute. */
static void
close_client(int fd)
{
    const struct linger none = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(fd);
}

static bool
open_next(int set, uint16_t port, client *one)
{
    one->fd = open_client(port, SOCK_NONBLOCK);
    return one->fd >= 0 && watch(set, one->fd, one);
}

void
net_load_accepts(uint16_t port, uint64_t total, net_answer *answer)
{
    static client clients[NET_WINDOW];
    struct epoll_event events[NET_WINDOW];
    int set = epoll_create1(0);
    uint64_t begun = bench_now(), left = total;
    char byte;

    for (uint32_t i = 0; i < NET_WINDOW && left > 0; i++, left--)
        answer->wrong += !open_next(set, port, &clients[i]);
    while (answer->total < total && answer->wrong == 0) {
        int count = epoll_wait(set, events, NET_WINDOW, 5000);

        answer->wrong += count == 0;
        for (int i = 0; i < count; i++) {
            client *one = events[i].data.ptr;

            answer->wrong += recv(one->fd, &byte, 1, 0) != 0; /* the server closed it */
            close_client(one->fd);
            answer->total++;
            if (left > 0 && answer->wrong == 0) {
                left--;
                answer->wrong += !open_next(set, port, one);
            }
        }
    }
    answer->counted = answer->total;
    answer->ns = bench_now() - begun;
}
