/* SPDX-License-Identifier: MIT */
/* Goal: an address that does not answer costs a request no more than its share of the time, and nobody
 * else anything.
 * Method: a listener whose queue is full, so that a connection neither comes nor fails. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/http.h"
#include "errand/waits.h"
#include "gate.h"
#include "net_rig.h"

enum { FILLERS = 4 };
static int silent, fillers[FILLERS];
static uint16_t port;
static char url[64];
static const errand_address both[] = {
    {.family = 4, .bytes = {127, 0, 0, 1}, .text = "127.0.0.1"},
    {.family = 4, .bytes = {127, 0, 0, 2}, .text = "127.0.0.2"},
};

static int
listen_at(const char *address, int backlog)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    at.sin_addr.s_addr = inet_addr(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    port = ntohs(at.sin_port);
    return fd;
}

static int
silent_setup(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char host[8];
    int status = net_setup(state);

    if (errand_http_origin("http://x/", host, sizeof host, &port) ==
        ERRAND_EUNSUPPORTED) {
        net_teardown(state);
        test_skip("libcurl is not there");
    }
    port = 0;
    silent = listen_at("127.0.0.1", 0);
    at.sin_addr.s_addr = inet_addr("127.0.0.1");
    at.sin_port = htons(port);
    for (int i = 0; i < FILLERS; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fillers[i], (struct sockaddr *)&at, sizeof at);
    }
    return status;
}

static int
silent_teardown(void **state)
{
    for (int i = 0; i < FILLERS; i++)
        close(fillers[i]);
    close(silent);
    return net_teardown(state);
}

static void
start_request(net_rig *rig, const char *scheme, size_t count, uint64_t connect_ms,
              net_result *result)
{
    const errand_addresses addresses = {.addresses = both, .count = count};
    errand_http_config config = {.struct_size = sizeof config,
                                 .url = url,
                                 .addresses = &addresses,
                                 .connect_limit_ns = connect_ms * 1000000};
    errand_spec spec;

    snprintf(url, sizeof url, "%s://two.invalid:%u/", scheme, port);
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_OK);
    net_start(rig, &spec, result);
}

static void
the_next_address_is_tried_when_one_does_not_answer(void **state)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    net_rig *rig = *state;
    net_result result = {.started = false};
    int good = listen_at("127.0.0.2", 4), peer = -1;
    char request[512];

    start_request(rig, "http", 2, 800, &result); /* half of it for the first */
    while (peer < 0 && !result.done) {
        net_turn(rig, 1);
        peer = accept4(good, NULL, NULL, SOCK_CLOEXEC);
    }
    assert_false(result.done);
    while (recv(peer, request, sizeof request, MSG_DONTWAIT) <= 0)
        net_turn(rig, 1);
    net_peer_write(peer, answer, sizeof answer - 1);
    net_await(rig, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    net_clear(&result);
    close(peer);
    close(good);
}

/* ---- a number that is free again ------------------------------------------------------------------ */

/* number: the socket of the request; -1 = not seen yet.
 * Writers: helpers, one at a time.  Readers: the test, once one stands at the gate.
 * Order: relaxed.  Pairs: none.  Why: the gate orders it. */
static atomic_int number = -1;
static atomic_bool held, passed;
static test_gate gate;

static int
connecting_fd(void)
{
    for (int fd = 3; fd < 256; fd++) {
        struct tcp_info info;
        socklen_t size = sizeof info;
        bool ours = false;

        for (int i = 0; i < FILLERS; i++)
            ours = ours || fd == fillers[i];
        if (!ours && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
            info.tcpi_state == TCP_SYN_SENT)
            return fd;
    }
    return -1;
}

/* Stops the helper that has closed the socket. */
static void
hold_at_close(void *arg, const char *place)
{
    int fd = atomic_load_explicit(&number, memory_order_relaxed);

    (void)arg;
    if (strcmp(place, "http-worked") != 0 ||
        atomic_load_explicit(&held, memory_order_relaxed))
        return;
    if (fd < 0) {
        atomic_store_explicit(&number, connecting_fd(), memory_order_relaxed);
    } else if (fcntl(fd, F_GETFD) < 0) {
        atomic_store_explicit(&held, true, memory_order_relaxed);
        gate_wait(&gate);
        atomic_store_explicit(&passed, true, memory_order_release);
    }
}

static void
fill(int fd)
{
    static const char bytes[4096];

    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

/* Until its end, or for so long. */
static void
await_briefly(net_rig *rig, const net_result *result)
{
    uint64_t until = errand_deadline_in(10000000000u);

    while (!result->done && errand_deadline_in(0) < until)
        net_turn(rig, 10);
}

/* L11 */
static void
a_number_that_a_helper_frees_can_be_waited_for(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false}, wait = {.started = false};
    char bytes[4096];
    int pair[2], fd;
    errand_spec spec;

    atomic_store_explicit(&number, -1, memory_order_relaxed);
    atomic_store_explicit(&held, false, memory_order_relaxed);
    atomic_store_explicit(&passed, false, memory_order_relaxed);
    gate_init(&gate, "http-worked");
    errand_testing_pause(hold_at_close, NULL);
    start_request(rig, "https", 1, 100, &result);
    while (!atomic_load_explicit(&held, memory_order_relaxed))
        net_turn(rig, 1);
    gate_await_arrival(&gate);
    fd = atomic_load_explicit(&number, memory_order_relaxed);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    if (pair[1] == fd) {
        pair[1] = pair[0];
        pair[0] = fd;
    } else if (pair[0] != fd) {
        assert_int_equal(dup3(pair[0], fd, O_CLOEXEC), fd);
        close(pair[0]);
    }
    fill(fd);
    assert_int_equal(errand_spec_wait_fd(&spec, fd, ERRAND_WAIT_WRITABLE), ERRAND_OK);
    net_start(rig, &spec, &wait);
    net_await_running(rig, 2);
    assert_int_equal(errand_spec_timer(&spec, 1000000), ERRAND_OK);
    net_result timer = {.started = false};
    net_run(rig, &spec, &timer); /* the wait stands there by then */
    while (recv(pair[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    await_briefly(rig, &wait);
    bool told = wait.done;
    gate_open(&gate);
    while (!atomic_load_explicit(&passed, memory_order_acquire))
        net_turn(rig, 1);
    errand_testing_pause(NULL, NULL);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    close(fd);
    close(pair[1]);
    gate_fini(&gate);
    assert_true(told);
    net_clear(&wait);
}

int
main(void)
{
#define WITH_SILENCE(test)                                                               \
    cmocka_unit_test_setup_teardown(test, silent_setup, silent_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_SILENCE(the_next_address_is_tried_when_one_does_not_answer),
        WITH_SILENCE(a_number_that_a_helper_frees_can_be_waited_for),
    };
    return test_group("operations/net/addresses", tests, NULL, NULL);
}
