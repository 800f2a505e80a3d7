/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_NET_H
#define ERRAND_BENCH_NET_H
/* net: what the case of that name has each peer serve on one thread, and the load, which is a
 * process of its own and the same for all: it checks every byte. */
#include "work.h"

enum { NET_MESSAGE = 64, NET_CONNECTIONS_MAX = 1024, NET_WINDOW = 64 };

/* Echo: connections that stand; what comes on one is sent back on it, until its end. */
typedef struct net_echo {
    const int *fds; /* the server closes none of them */
    uint32_t count;
    uint64_t bytes, wrong; /* sent back; calls that failed */
} net_echo;

/* Accepts: each connection is accepted and closed. */
typedef struct net_accepts {
    int listener; /* of one loop; it stays the case's */
    uint64_t left, done, wrong;
} net_accepts;

/* Each answers false, with a text, if it could not begin. */
typedef bool net_echo_fn(net_echo *echo, char *text, size_t size);
typedef bool net_accepts_fn(net_accepts *accepts, char *text, size_t size);
net_echo_fn net_echo_errand, net_echo_libuv, net_echo_ring;
net_accepts_fn net_accepts_errand, net_accepts_libuv, net_accepts_ring;

/* What the load's process says at its end. */
typedef struct net_answer {
    uint64_t ns, counted;  /* the stretch that is measured, what was done in it */
    uint64_t total, wrong; /* with what came before it */
} net_answer;
/* So many connections, on each one message after the other: a warm-up, then so long. */
void net_load_echo(uint16_t port, uint32_t connections, uint32_t measure_ms,
                   net_answer *answer);
/* NET_WINDOW at once: connect, wait for the server's close, close; total times. */
void net_load_accepts(uint16_t port, uint64_t total, net_answer *answer);

#endif
