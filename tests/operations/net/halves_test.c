/* SPDX-License-Identifier: MIT */
/* Goal: a receive gives exactly what was asked for, and a half that failed or was cancelled is
 * over, while the other one goes on.
 * Method: a stream of the library's, and a plain socket at its other end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "net_rig.h"

static void
start_receive(net_rig *rig, errand_stream *stream, size_t size, net_result *result)
{
    errand_spec spec;

    assert_int_equal(errand_spec_receive(&spec, stream, size), ERRAND_OK);
    net_start(rig, &spec, result);
}

static void
run_receive(net_rig *rig, errand_stream *stream, size_t size, net_result *result)
{
    start_receive(rig, stream, size, result);
    net_await(rig, result);
}

static void
run_send(net_rig *rig, errand_stream *stream, const void *bytes, size_t size,
         net_result *result)
{
    errand_spec spec;

    assert_int_equal(errand_spec_send(&spec, stream, bytes, size), ERRAND_OK);
    net_run(rig, &spec, result);
}

/* D130 */
static void
a_receive_gives_exactly_so_many_bytes_however_they_were_sent(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);

    start_receive(rig, stream, 6, &result);
    net_await_running(rig, 1);
    net_peer_write(peer, "a", 1);
    net_turn(rig, 5);
    net_peer_write(peer, "bc", 2);
    net_turn(rig, 5);
    assert_false(result.done);
    net_peer_write(peer, "defghij", 7);
    net_await(rig, &result);
    net_assert_bytes(&result, "abcdef", 6);
    run_receive(rig, stream, 1, &result);
    net_assert_bytes(&result, "g", 1);
    run_receive(rig, stream, 3, &result);
    net_assert_bytes(&result, "hij", 3);
    errand_stream_abandon(&stream);
    close(peer);
}

/* D130 */
static void
a_large_receive_and_a_large_send_meet(void **state)
{
    net_rig *rig = *state;
    net_result received = {.started = false}, sent = {.started = false};
    const size_t size = 5000000;
    unsigned char *bytes = malloc(size);
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    errand_spec spec;

    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    assert_int_equal(errand_spec_connect(&spec, &at, NULL), ERRAND_OK);
    net_run(rig, &spec, &sent);
    errand_stream *client = net_take_stream(&sent);
    errand_stream *server = net_accept(rig, listener);
    assert_int_equal(errand_spec_send(&spec, client, bytes, size), ERRAND_OK);
    net_start(rig, &spec, &sent);
    start_receive(rig, server, size, &received);
    net_await(rig, &sent);
    net_await(rig, &received);
    net_assert_nothing(&sent);
    net_assert_bytes(&received, bytes, size);
    free(bytes);
    errand_stream_abandon(&client);
    errand_stream_abandon(&server);
    errand_listener_abandon(&listener);
}

static void
a_receive_of_some_gives_what_is_there_and_nothing_at_the_end(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;
    char *large = calloc(1, 100000);

    assert_int_equal(errand_spec_receive_some(&spec, stream, 100000), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    net_peer_write(peer, "some", 4);
    net_await(rig, &result);
    net_assert_bytes(&result, "some", 4);
    net_peer_write(peer, large, 100000);
    size_t got = 0;
    while (got < 100000) {
        assert_int_equal(errand_spec_receive_some(&spec, stream, 70000), ERRAND_OK);
        net_run(rig, &spec, &result);
        assert_int_equal(result.outcome, ERRAND_COMPLETED);
        size_t size = ((const errand_file_bytes *)result.payload.data)->size;
        assert_in_range(size, 1, 70000);
        got += size;
    }
    assert_int_equal(got, 100000);
    close(peer);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(errand_spec_receive_some(&spec, stream, 10), ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_bytes(&result, "", 0);
    }
    free(large);
    errand_stream_abandon(&stream);
}

static void
parts_come_in_their_sizes(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const size_t sizes[] = {3, 0, 5};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;

    net_peer_write(peer, "abcdefgh", 8);
    assert_int_equal(errand_spec_receive_parts(&spec, stream, sizes, 3), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_parts_type);
    const errand_parts *parts = result.payload.data;
    assert_int_equal(parts->count, 3);
    assert_string_equal((const char *)parts->parts[0].bytes, "abc");
    assert_string_equal((const char *)parts->parts[1].bytes, "");
    assert_string_equal((const char *)parts->parts[2].bytes, "defgh");
    net_clear(&result);
    const errand_file_bytes out[] = {{(const unsigned char *)"one ", 4},
                                     {(const unsigned char *)"two", 3}};
    char back[8] = "";
    assert_int_equal(errand_spec_send_parts(&spec, stream, out, 2), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    net_peer_read(peer, back, 7);
    assert_string_equal(back, "one two");
    errand_stream_abandon(&stream);
    close(peer);
}

/* D131 */
static void
a_peek_never_waits_and_takes_nothing(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;

    assert_int_equal(errand_spec_peek(&spec, stream, 4), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "", 0);
    net_peer_write(peer, "abcdef", 6);
    for (int i = 0; i < 2; i++) {
        /* Loopback: it is there when the other end's call returned. */
        assert_int_equal(errand_spec_peek(&spec, stream, 4), ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_bytes(&result, "abcd", 4);
    }
    run_receive(rig, stream, 6, &result);
    net_assert_bytes(&result, "abcdef", 6);
    assert_int_equal(errand_spec_peek(&spec, stream, 4), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "", 0);
    errand_stream_abandon(&stream);
    close(peer);
}

/* Starts a send that the peer does not take; answers how much was to go. */
static size_t
start_stuck_send(net_rig *rig, errand_stream *stream, net_result *result)
{
    const size_t size = 16 * 1024 * 1024;
    char *bytes = malloc(size);
    errand_spec spec;

    assert_non_null(bytes);
    memset(bytes, 'x', size);
    assert_int_equal(errand_spec_send(&spec, stream, bytes, size), ERRAND_OK);
    net_start(rig, &spec, result);
    free(bytes);
    return size;
}

/* D132 */
static void
a_send_waits_while_the_peer_takes_nothing(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    size_t size = start_stuck_send(rig, stream, &result), got = 0;
    char *piece = malloc(65536);

    net_await_running(rig, 1);
    net_turn(rig, 20);
    assert_false(result.done);
    net_cancel(rig, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    errand_stream_abandon(&stream);
    for (;;) { /* what was accepted still arrives */
        ssize_t count = read(peer, piece, 65536);

        assert_true(count >= 0);
        if (count == 0)
            break;
        for (ssize_t i = 0; i < count; i++)
            assert_int_equal(piece[i], 'x');
        got += (size_t)count;
    }
    assert_true(got > 0 && got < size);
    free(piece);
    close(peer);
}

/* D133 */
static void
a_cancelled_receive_poisons_the_source_alone(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    char back[4] = "";
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;

    start_receive(rig, stream, 10, &result);
    net_await_running(rig, 1);
    net_cancel(rig, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    net_peer_write(peer, "abcdefghij", 10);
    run_receive(rig, stream, 10, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    assert_int_equal(errand_spec_peek(&spec, stream, 4), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    run_send(rig, stream, "hey", 3, &result);
    net_assert_nothing(&result);
    net_peer_read(peer, back, 3);
    assert_string_equal(back, "hey");
    errand_stream_abandon(&stream);
    close(peer);
}

/* D133 */
static void
a_cancelled_send_poisons_the_sink_alone(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);

    start_stuck_send(rig, stream, &result);
    net_await_running(rig, 1);
    net_cancel(rig, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    run_send(rig, stream, "hey", 3, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    net_peer_write(peer, "still", 5);
    run_receive(rig, stream, 5, &result);
    net_assert_bytes(&result, "still", 5);
    errand_stream_abandon(&stream);
    close(peer);
}

/* D134 */
static void
a_peer_that_ends_early_fails_the_receive_and_leaves_the_sink(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    char back[4] = "";
    int peer;
    errand_stream *stream = net_pair(rig, &peer);

    net_peer_write(peer, "abc", 3);
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    run_receive(rig, stream, 10, &result);
    assert_non_null(strstr(result.message, "3 of 10"));
    net_assert_failed(&result, ERRAND_OPERATION_RECEIVE_FAILED);
    run_receive(rig, stream, 3, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    run_send(rig, stream, "hey", 3, &result);
    net_assert_nothing(&result);
    net_peer_read(peer, back, 3);
    assert_string_equal(back, "hey");
    errand_stream_abandon(&stream);
    close(peer);
}

/* D135 */
static void
a_peer_that_is_gone_fails_the_send_in_the_end(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);

    net_peer_write(peer, "last words", 10);
    close(peer);
    int32_t code = 0;
    for (int i = 0; i < 1000 && code == 0; i++) {
        run_send(rig, stream, "anybody?", 8, &result);
        code = result.job_code;
        if (code == 0)
            net_assert_nothing(&result);
    }
    net_assert_failed(&result, ERRAND_OPERATION_SEND_FAILED);
    run_send(rig, stream, "anybody?", 8, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    run_receive(rig, stream, 10, &result);
    net_assert_bytes(&result, "last words", 10);
    errand_stream_abandon(&stream);
}

static void
a_reset_by_the_peer_fails_the_receive_with_its_errno(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);

    start_receive(rig, stream, 10, &result);
    net_await_running(rig, 1);
    net_peer_reset(peer);
    net_await(rig, &result);
    assert_int_equal(result.sys_errno, ECONNRESET);
    net_assert_failed(&result, ERRAND_OPERATION_RECEIVE_FAILED);
    run_receive(rig, stream, 10, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_stream_abandon(&stream);
}

/* D136 */
static void
a_limit_ends_a_receive_and_a_send_and_poisons_that_half(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const uint64_t limit = 30000000;
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    uint64_t start = errand_runtime_now(rig->runtime);

    assert_int_equal(errand_stream_set(stream, ERRAND_STREAM_RECEIVE_LIMIT, limit),
                     ERRAND_OK);
    net_peer_write(peer, "drip", 4); /* a peer that is slow on purpose */
    run_receive(rig, stream, 10, &result);
    assert_true(errand_runtime_now(rig->runtime) - start >= limit);
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    run_receive(rig, stream, 1, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);

    assert_int_equal(errand_stream_set(stream, ERRAND_STREAM_SEND_LIMIT, limit),
                     ERRAND_OK);
    start = errand_runtime_now(rig->runtime);
    start_stuck_send(rig, stream, &result);
    net_await(rig, &result);
    assert_true(errand_runtime_now(rig->runtime) - start >= limit);
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    run_send(rig, stream, "x", 1, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_stream_abandon(&stream);
    close(peer);
}

static void
a_deadline_ends_a_receive_like_any_other_operation(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_spec spec;

    for (uint64_t deadline = 20000000;; deadline *= 2) {
        assert_int_equal(errand_spec_receive(&spec, stream, 10), ERRAND_OK);
        spec.deadline_ns = deadline;
        net_run(rig, &spec, &result);
        if (result.job_code != 0)
            break;
        assert_int_equal(result.code, ERRAND_CODE_DEADLINE); /* it was queued so long */
        net_clear(&result);
    }
    net_assert_late(&result); /* O45 */
    run_receive(rig, stream, 1, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_stream_abandon(&stream);
    close(peer);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_NET(a_receive_gives_exactly_so_many_bytes_however_they_were_sent),
        WITH_NET(a_large_receive_and_a_large_send_meet),
        WITH_NET(a_receive_of_some_gives_what_is_there_and_nothing_at_the_end),
        WITH_NET(parts_come_in_their_sizes),
        WITH_NET(a_peek_never_waits_and_takes_nothing),
        WITH_NET(a_send_waits_while_the_peer_takes_nothing),
        WITH_NET(a_cancelled_receive_poisons_the_source_alone),
        WITH_NET(a_cancelled_send_poisons_the_sink_alone),
        WITH_NET(a_peer_that_ends_early_fails_the_receive_and_leaves_the_sink),
        WITH_NET(a_peer_that_is_gone_fails_the_send_in_the_end),
        WITH_NET(a_reset_by_the_peer_fails_the_receive_with_its_errno),
        WITH_NET(a_limit_ends_a_receive_and_a_send_and_poisons_that_half),
        WITH_NET(a_deadline_ends_a_receive_like_any_other_operation),
    };
    return test_group("operations/net/halves", tests, NULL, NULL);
}
