/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_OPERATIONS_NET_NET_RIG_H
#define ERRAND_TESTS_OPERATIONS_NET_NET_RIG_H
/* net_rig: a runtime on a reactor, any number of operations at once, and plain blocking sockets as
 * their peers, which the library knows nothing of.
 *
 *     net_run(rig, &spec, &result);            to its end; result says how
 *     net_start(rig, &spec, &result);          with something between
 *     net_await(rig, &result);
 *
 * ERRAND_NET_BACKEND says which reactor: "uring", "epoll", or "here" (no thread: requests are carried
 * by the runtime's own).  Teardown finds what is left: operations, bytes, descriptors. */
#include "errand/executor.h"
#include "errand/io.h"
#include "errand/net.h"
#include "errand/testing.h"
#include "group.h"

struct net_rig;
typedef struct net_result {
    bool started, done;
    errand_identity identity;
    errand_outcome outcome;
    errand_code code;
    int32_t job_code, sys_errno;
    char message[256];
    errand_payload payload;
    void (*then)(struct net_rig *rig, struct net_result *result); /* in the handler */
    void *arg;
} net_result;
typedef struct net_rig {
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    int fds;
    int64_t bytes;
} net_rig;

int net_setup(void **state);
int net_teardown(void **state);

void net_start(net_rig *rig, errand_spec *spec, net_result *result);
void net_await(net_rig *rig, net_result *result);
void net_run(net_rig *rig, errand_spec *spec, net_result *result);
errand_cancel_answer net_ask_back(net_rig *rig,
                                  net_result *result); /* also what has not begun */
void net_cancel(net_rig *rig, net_result *result);
/* Until so many operations have begun and not ended. */
void net_await_running(net_rig *rig, uint64_t count);
/* One round of whatever there is to do; waits at most so many ms for something. */
void net_turn(net_rig *rig, unsigned ms);

/* What a result must be; each drops what it had before. */
void net_clear(net_result *result);
void net_assert_failed(net_result *result, errand_operation_code code);
void net_assert_late(net_result *result);    /* its deadline stopped it on its way */
void net_assert_nothing(net_result *result); /* completed without a payload */
void net_assert_bytes(net_result *result, const void *bytes, size_t size);
errand_stream *net_take_stream(net_result *result);

/* The usual. */
errand_endpoint net_endpoint(const char *text);
errand_listener *net_listen(net_rig *rig, const char *at);
errand_stream *net_accept(net_rig *rig, errand_listener *listener);
/* A stream, and the blocking socket at its other end. */
errand_stream *net_pair(net_rig *rig, int *out_peer);
int net_peer_connect(const errand_endpoint *to); /* a blocking socket */
void net_peer_write(int fd, const void *bytes, size_t size);
void net_peer_read(int fd, void *bytes, size_t size);
void net_peer_reset(int fd); /* closes it so that the other end gets a reset */

#endif
