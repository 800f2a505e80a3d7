/* SPDX-License-Identifier: MIT */
/* Goal: listeners, streams and datagrams live and end as documented: who gets what, who is refused,
 * and what a close does to what is out.
 * Method: both ends are the library's, or one is a plain socket. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "net_rig.h"

static void
start_listen(net_rig *rig, const errand_endpoint *at, net_result *result)
{
    errand_spec spec;

    assert_int_equal(errand_spec_listen(&spec, at, NULL), ERRAND_OK);
    net_run(rig, &spec, result);
}

/* D127 */
static void
a_listener_says_where_and_a_second_one_there_is_refused(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    char text[ERRAND_ENDPOINT_TEXT];

    assert_int_equal(at.family, 4);
    assert_int_not_equal(at.port, 0);
    start_listen(rig, &at, &result);
    assert_int_equal(result.sys_errno, EADDRINUSE);
    errand_endpoint_print(&at, text, sizeof text);
    assert_non_null(strstr(result.message, text));
    net_assert_failed(&result, ERRAND_OPERATION_BIND_FAILED);
    errand_listener_abandon(&listener);
    start_listen(rig, &at, &result); /* gone with the listener */
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    net_clear(&result);
}

/* D127 */
static void
an_address_where_nobody_listens_fails_as_connection_failed(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    errand_endpoint path = net_endpoint("unix:/nowhere/at/all");
    errand_spec spec;

    errand_listener_abandon(&listener);
    assert_int_equal(errand_spec_connect(&spec, &at, NULL), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.sys_errno, ECONNREFUSED);
    net_assert_failed(&result, ERRAND_OPERATION_CONNECTION_FAILED);
    assert_int_equal(errand_spec_connect(&spec, &path, NULL), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.sys_errno, ENOENT);
    net_assert_failed(&result, ERRAND_OPERATION_CONNECTION_FAILED);
}

/* D136: with a full backlog nobody answers. */
static void
a_connect_waits_its_whole_limit_before_it_fails(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const errand_listen_config small = {.struct_size = sizeof small, .backlog = 1};
    const errand_connect_config limit = {.struct_size = sizeof limit,
                                         .limit_ns = 50000000};
    errand_endpoint at = net_endpoint("127.0.0.1:0");
    int peers[8], count = 0;
    errand_spec spec;

    assert_int_equal(errand_spec_listen(&spec, &at, &small), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    errand_listener *listener = result.payload.data;
    result.payload.data = NULL;
    at = errand_listener_local(listener);
    for (; count < 2; count++) /* the backlog is one more than asked for */
        peers[count] = net_peer_connect(&at);
    uint64_t start = errand_runtime_now(rig->runtime);
    assert_int_equal(errand_spec_connect(&spec, &at, &limit), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_true(errand_runtime_now(rig->runtime) - start >= limit.limit_ns);
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    while (count > 0)
        close(peers[--count]);
    errand_listener_abandon(&listener);
}

/* D129: each connects before anybody accepts. */
static void
connections_are_accepted_in_the_order_in_which_they_came(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    int peers[5];
    errand_spec spec;

    for (size_t i = 0; i < 5; i++) {
        char name = (char)('a' + i);

        peers[i] = net_peer_connect(&at);
        net_peer_write(peers[i], &name, 1);
    }
    for (size_t i = 0; i < 5; i++) {
        const char name = (char)('a' + i);
        errand_stream *stream = net_accept(rig, listener);
        errand_endpoint peer = errand_stream_peer(stream);

        assert_int_equal(peer.family, 4);
        assert_int_equal(errand_spec_receive(&spec, stream, 1), ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_bytes(&result, &name, 1);
        errand_stream_abandon(&stream);
        close(peers[i]);
    }
    errand_listener_abandon(&listener);
}

static void
a_cancelled_accept_loses_no_connection(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    errand_spec spec;

    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    int peer = net_peer_connect(&at);
    errand_cancel_answer answer;
    assert_int_equal(
        errand_cancel(rig->runtime, &result.identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    net_await(rig, &result);
    errand_stream *stream;
    if (result.outcome == ERRAND_COMPLETED) { /* it was taken before the cancel */
        stream = net_take_stream(&result);
    } else {
        net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
        stream = net_accept(rig, listener);
    }
    net_peer_write(peer, "x", 1);
    assert_int_equal(errand_spec_receive(&spec, stream, 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "x", 1);
    errand_stream_abandon(&stream);
    errand_listener_abandon(&listener);
    close(peer);
}

static void
a_second_operation_at_a_place_is_refused_as_busy(void **state)
{
    net_rig *rig = *state;
    net_result one = {.started = false}, other = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec first, second;

    assert_int_equal(errand_spec_receive(&first, stream, 1), ERRAND_OK);
    assert_int_equal(errand_spec_receive(&second, stream, 1), ERRAND_EBUSY);
    assert_int_equal(errand_spec_receive_some(&second, stream, 1), ERRAND_EBUSY);
    assert_int_equal(errand_spec_shutdown(&second, stream, ERRAND_HALF_BOTH),
                     ERRAND_EBUSY);
    assert_int_equal(errand_spec_send(&second, stream, "a", 1), ERRAND_OK);
    assert_int_equal(errand_spec_send(&(errand_spec){.kind = 0}, stream, "b", 1),
                     ERRAND_EBUSY);
    errand_spec_abandon(&second);
    errand_spec_abandon(&first); /* the place is free, and nothing is poisoned */
    assert_int_equal(errand_spec_receive(&first, stream, 1), ERRAND_OK);
    assert_int_equal(errand_spec_send(&second, stream, "b", 1), ERRAND_OK);
    net_start(rig, &first, &one);
    net_start(rig, &second, &other);
    net_peer_write(peer, "x", 1);
    net_await(rig, &one);
    net_await(rig, &other);
    net_assert_bytes(&one, "x", 1);
    net_assert_nothing(&other);
    errand_stream_abandon(&stream);
    close(peer);
}

typedef struct chain {
    errand_stream *stream;
    net_result *next;
} chain;

static void
receive_next(net_rig *rig, net_result *result)
{
    const chain *links = result->arg;
    errand_spec spec;

    if (links->next == NULL)
        return;
    assert_int_equal(errand_spec_receive(&spec, links->stream, 1), ERRAND_OK);
    net_start(rig, &spec, links->next);
}

static void
the_handler_of_a_receive_may_make_the_next_one(void **state)
{
    net_rig *rig = *state;
    net_result results[3] = {{.started = false}};
    chain links[3];
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;

    for (size_t i = 0; i < 3; i++) {
        links[i] = (chain){stream, i < 2 ? &results[i + 1] : NULL};
        results[i].then = receive_next;
        results[i].arg = &links[i];
    }
    net_peer_write(peer, "abc", 3);
    assert_int_equal(errand_spec_receive(&spec, stream, 1), ERRAND_OK);
    net_start(rig, &spec, &results[0]);
    while (!results[2].done)
        net_turn(rig, 1000);
    for (size_t i = 0; i < 3; i++)
        net_assert_bytes(&results[i], &"abc"[i], 1);
    errand_stream_abandon(&stream);
    close(peer);
}

static void
a_close_ends_what_is_out_and_the_peer_sees_it(void **state)
{
    net_rig *rig = *state;
    net_result receive = {.started = false}, send = {.started = false},
               closed = {.started = false};
    const size_t size = 16 * 1024 * 1024;
    char *bytes = calloc(1, size), byte;
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;

    assert_int_equal(errand_spec_receive(&spec, stream, 5), ERRAND_OK);
    net_start(rig, &spec, &receive);
    assert_int_equal(errand_spec_send(&spec, stream, bytes, size), ERRAND_OK);
    net_start(rig, &spec, &send);
    net_await_running(rig, 2);
    assert_int_equal(errand_spec_close(&spec, stream), ERRAND_OK);
    net_start(rig, &spec, &closed);
    net_await(rig, &closed);
    net_assert_nothing(&closed);
    assert_int_equal(errand_stream_fd(stream), -1);
    assert_int_equal(errand_stream_set(stream, ERRAND_STREAM_NODELAY, 1), ERRAND_ESYSTEM);
    net_await(rig, &receive);
    net_await(rig, &send);
    net_assert_failed(&receive, ERRAND_OPERATION_CLOSED);
    net_assert_failed(&send, ERRAND_OPERATION_CLOSED);
    assert_int_equal(errand_spec_send(&spec, stream, "x", 1), ERRAND_OK);
    net_run(rig, &spec, &send);
    net_assert_failed(&send, ERRAND_OPERATION_CLOSED);
    assert_int_equal(errand_spec_close(&spec, stream), ERRAND_OK);
    net_run(rig, &spec, &closed);
    net_assert_failed(&closed, ERRAND_OPERATION_CLOSED);
    while (read(peer, bytes, size) > 0) {
    }
    assert_true(recv(peer, &byte, 1, 0) <= 0);
    errand_stream_abandon(&stream);
    close(peer);
    free(bytes);
}

static void
a_listener_that_closes_ends_the_accept_that_is_out(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_spec spec;

    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    errand_listener_close(listener);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_listener_abandon(&listener);
}

static void
a_shutdown_ends_the_sink_and_the_source_goes_on(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    char byte;
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;

    assert_int_equal(errand_spec_shutdown(&spec, stream, ERRAND_HALF_SINK), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(read(peer, &byte, 1), 0);
    assert_int_equal(errand_spec_send(&spec, stream, "x", 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    net_peer_write(peer, "after", 5);
    assert_int_equal(errand_spec_receive(&spec, stream, 5), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "after", 5);
    errand_stream_abandon(&stream);
    close(peer);
}

static void
a_unix_path_is_made_and_goes_with_its_listener(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    char text[96], path[64];
    errand_spec spec;

    snprintf(path, sizeof path, "/tmp/errand-net-%d", (int)getpid());
    snprintf(text, sizeof text, "unix:%s", path);
    errand_listener *listener = net_listen(rig, text);
    errand_endpoint at = errand_listener_local(listener);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(errand_spec_connect(&spec, &at, NULL), ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_stream *client = net_take_stream(&result);
    errand_stream *server = net_accept(rig, listener);
    assert_int_equal(errand_spec_send(&spec, client, "unix", 4), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(errand_spec_receive(&spec, server, 4), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "unix", 4);
    errand_stream_abandon(&client);
    errand_stream_abandon(&server);
    errand_listener_abandon(&listener);
    while (access(path, F_OK) == 0) /* a helper removes it */
        sched_yield();

    snprintf(text, sizeof text, "unix:@errand-net-%d", (int)getpid());
    listener = net_listen(rig, text);
    at = errand_listener_local(listener);
    errand_endpoint_print(&at, path, sizeof path);
    assert_string_equal(path, text);
    int peer = net_peer_connect(&at);
    server = net_accept(rig, listener);
    net_peer_write(peer, "q", 1);
    assert_int_equal(errand_spec_receive(&spec, server, 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "q", 1);
    errand_stream_abandon(&server);
    errand_listener_abandon(&listener);
    close(peer);
}

static errand_datagram *
open_datagram(net_rig *rig, const char *at, const errand_endpoint *to)
{
    net_result result = {.started = false};
    errand_endpoint endpoint;
    errand_spec spec;

    if (at != NULL)
        endpoint = net_endpoint(at);
    assert_int_equal(errand_spec_datagram(&spec, at == NULL ? NULL : &endpoint, to),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_datagram_type);
    return result.payload.data;
}

static void
packets_arrive_whole_with_who_sent_them(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false}, sent = {.started = false};
    errand_datagram *server = open_datagram(rig, "127.0.0.1:0", NULL);
    errand_endpoint at = errand_datagram_local(server);
    errand_datagram *client = open_datagram(rig, NULL, &at);
    errand_spec spec;

    assert_int_equal(errand_spec_receive_packet(&spec, server, 100), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    net_cancel(rig, &result); /* loses none, poisons nothing */
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    assert_int_equal(errand_spec_send_packet(&spec, client, NULL, "ping", 4), ERRAND_OK);
    net_run(rig, &spec, &sent);
    net_assert_nothing(&sent);
    assert_int_equal(errand_spec_receive_packet(&spec, server, 3), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_packet_type);
    const errand_packet *packet = result.payload.data;
    errand_endpoint from = packet->from, local = errand_datagram_local(client);
    assert_int_equal(packet->bytes.size, 3);
    assert_memory_equal(packet->bytes.bytes, "pin", 3);
    assert_true(packet->cut);
    assert_int_equal(from.port, local.port);
    net_clear(&result);
    assert_int_equal(errand_spec_send_packet(&spec, server, &from, "pong", 4), ERRAND_OK);
    net_run(rig, &spec, &sent);
    net_assert_nothing(&sent);
    assert_int_equal(errand_spec_receive_packet(&spec, client, 100), ERRAND_OK);
    net_run(rig, &spec, &result);
    packet = result.payload.data;
    assert_int_equal(packet->bytes.size, 4);
    assert_false(packet->cut);
    net_clear(&result);
    errand_datagram_abandon(&client);
    errand_datagram_abandon(&server);
}

static void
a_datagram_socket_that_closes_ends_its_receive(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_datagram *socket = open_datagram(rig, "127.0.0.1:0", NULL);
    errand_spec spec;

    assert_int_equal(errand_spec_receive_packet(&spec, socket, 100), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    errand_datagram_close(socket);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_datagram_abandon(&socket);
}

static void
a_socket_of_the_host_can_be_adopted(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int ends[2], wrong[2];
    errand_stream *stream;
    errand_spec spec;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(pipe(wrong), 0);
    assert_int_equal(errand_stream_adopt(&wrong[0], &stream), ERRAND_EINVAL);
    close(wrong[0]);
    close(wrong[1]);
    assert_int_equal(errand_stream_adopt(&ends[0], &stream), ERRAND_OK);
    assert_int_equal(ends[0], -1);
    net_peer_write(ends[1], "abc", 3);
    assert_int_equal(errand_spec_receive(&spec, stream, 3), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "abc", 3);
    assert_int_equal(errand_stream_set(stream, ERRAND_STREAM_NODELAY, 1), ERRAND_EINVAL);
    assert_int_equal(errand_stream_set(stream, ERRAND_STREAM_SEND_BUFFER, 65536),
                     ERRAND_OK);
    assert_int_equal(errand_stream_set(stream, (errand_stream_option)99, 1),
                     ERRAND_EINVAL);
    errand_stream_abandon(&stream);
    close(ends[1]);
}

/* C-D3 */
static void
what_is_out_at_a_shutdown_ends_with_it(void **state)
{
    net_rig *rig = *state;
    net_result results[3] = {{.started = false}};
    const size_t size = 16 * 1024 * 1024;
    char *bytes = calloc(1, size);
    errand_report report;
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_spec spec;

    assert_int_equal(
        errand_stream_set(stream, ERRAND_STREAM_RECEIVE_LIMIT, 1000000000000), ERRAND_OK);
    assert_int_equal(errand_spec_receive(&spec, stream, 5), ERRAND_OK);
    net_start(rig, &spec, &results[0]);
    assert_int_equal(errand_spec_send(&spec, stream, bytes, size), ERRAND_OK);
    net_start(rig, &spec, &results[1]);
    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
    net_start(rig, &spec, &results[2]);
    net_await_running(rig, 3);
    assert_int_equal(errand_runtime_shutdown(&rig->runtime,
                                             errand_deadline_in(20000000000u),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_int_equal(report.running, 0);
    assert_int_equal(report.accounts.accepted,
                     report.accounts.drained + report.accounts.undeliverable);
    assert_int_equal(errand_runtime_create(NULL, &rig->runtime), ERRAND_OK);
    errand_stream_abandon(&stream);
    errand_listener_abandon(&listener);
    close(peer);
    free(bytes);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_NET(a_listener_says_where_and_a_second_one_there_is_refused),
        WITH_NET(an_address_where_nobody_listens_fails_as_connection_failed),
        WITH_NET(a_connect_waits_its_whole_limit_before_it_fails),
        WITH_NET(connections_are_accepted_in_the_order_in_which_they_came),
        WITH_NET(a_cancelled_accept_loses_no_connection),
        WITH_NET(a_second_operation_at_a_place_is_refused_as_busy),
        WITH_NET(the_handler_of_a_receive_may_make_the_next_one),
        WITH_NET(a_close_ends_what_is_out_and_the_peer_sees_it),
        WITH_NET(a_listener_that_closes_ends_the_accept_that_is_out),
        WITH_NET(a_shutdown_ends_the_sink_and_the_source_goes_on),
        WITH_NET(a_unix_path_is_made_and_goes_with_its_listener),
        WITH_NET(packets_arrive_whole_with_who_sent_them),
        WITH_NET(a_datagram_socket_that_closes_ends_its_receive),
        WITH_NET(a_socket_of_the_host_can_be_adopted),
        WITH_NET(what_is_out_at_a_shutdown_ends_with_it),
    };
    return test_group("operations/net/objects", tests, NULL, NULL);
}
