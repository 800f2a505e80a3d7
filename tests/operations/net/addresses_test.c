/* SPDX-License-Identifier: MIT */
/* Goal: an address that does not answer costs a request no more than its share of the time.
 * Method: a listener whose queue is full, so that a connection neither comes nor fails. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/http.h"
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

int
main(void)
{
#define WITH_SILENCE(test)                                                               \
    cmocka_unit_test_setup_teardown(test, silent_setup, silent_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_SILENCE(the_next_address_is_tried_when_one_does_not_answer),
    };
    return test_group("operations/net/addresses", tests, NULL, NULL);
}
