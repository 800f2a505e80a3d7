/* SPDX-License-Identifier: MIT */
/* Goal: each item of a source is an operation, one at a time, and whatever is cancelled or closed, no
 * item is lost or told twice.
 * Method: the peer counts what it sends; the items say what they are. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/source.h"
#include "net_rig.h"

static void
start_next(net_rig *rig, errand_source *source, net_result *result)
{
    errand_spec spec;

    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    net_start(rig, &spec, result);
}

static void
run_next(net_rig *rig, errand_source *source, net_result *result)
{
    start_next(rig, source, result);
    net_await(rig, result);
}

static errand_source *
accept_source(errand_listener *listener, uint32_t items_max)
{
    const errand_source_config config = {.struct_size = sizeof config,
                                         .items_max = items_max};
    errand_source *source;

    assert_int_equal(errand_source_accept(listener, &config, &source), ERRAND_OK);
    return source;
}

/* Connects a peer that says who it is. */
static int
connect_as(const errand_endpoint *at, char name)
{
    int peer = net_peer_connect(at);

    net_peer_write(peer, &name, 1);
    return peer;
}

static void
assert_is(net_rig *rig, net_result *item, char name)
{
    net_result result = {.started = false};
    errand_stream *stream = net_take_stream(item);
    errand_spec spec;

    assert_int_equal(errand_spec_receive(&spec, stream, 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, &name, 1);
    errand_stream_abandon(&stream);
}

/* O79 */
static void
each_connection_is_one_item_in_the_order_in_which_they_came(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    errand_source *source = accept_source(listener, 3);
    int peers[10];

    for (int i = 0; i < 10; i++)
        peers[i] = connect_as(&at, (char)('a' + i));
    for (int i = 0; i < 10; i++) {
        run_next(rig, source, &item);
        /* The first of four brings as many as there is room for. */
        int left = 9 - i, room = 3 - i % 4;
        assert_int_equal(errand_source_buffered(source), left < room ? left : room);
        assert_is(rig, &item, (char)('a' + i));
        close(peers[i]);
    }
    errand_source_abandon(&source);
    errand_listener_abandon(&listener);
}

/* O79 */
static void
one_item_at_a_time_may_be_out(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    errand_source *source = accept_source(listener, 0), *second;
    errand_spec spec;

    assert_int_equal(errand_source_accept(listener, NULL, &second), ERRAND_EBUSY);
    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_EBUSY);
    start_next(rig, source, &item);
    assert_int_equal(errand_source_next(source, &spec), ERRAND_EBUSY);
    int peer = connect_as(&at, 'x');
    net_await(rig, &item);
    assert_is(rig, &item, 'x');
    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    errand_spec_abandon(&spec);
    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    errand_spec_abandon(&spec);
    errand_source_abandon(&source);
    /* The listener is free again. */
    errand_stream *stream;
    close(peer);
    peer = connect_as(&at, 'y');
    stream = net_accept(rig, listener);
    errand_stream_abandon(&stream);
    errand_listener_abandon(&listener);
    close(peer);
}

/* O79 */
static void
a_cancelled_item_is_the_next_ones(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    errand_source *source = accept_source(listener, 0);
    char expected = 'a';
    int peers[20];

    for (int i = 0; i < 20; i++) {
        errand_cancel_answer answer;

        start_next(rig, source, &item);
        if (i % 2 == 0 && expected == 'a' + i) /* none is left over */
            net_await_running(rig, 1);
        peers[i] = connect_as(&at, (char)('a' + i));
        assert_int_equal(
            errand_cancel(rig->runtime, &item.identity, ERRAND_REASON_EXPLICIT, &answer),
            ERRAND_OK);
        net_await(rig, &item);
        if (item.outcome == ERRAND_COMPLETED)
            assert_is(rig, &item, expected++);
        else
            net_clear(&item);
    }
    while (expected < 'a' + 20) {
        run_next(rig, source, &item);
        assert_is(rig, &item, expected++);
    }
    for (int i = 0; i < 20; i++)
        close(peers[i]);
    errand_source_abandon(&source);
    errand_listener_abandon(&listener);
}

/* O79 */
static void
a_close_stops_the_item_that_is_out_and_counts_the_others(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    errand_source *source = accept_source(listener, 2);
    int peers[4];

    for (int i = 0; i < 4; i++)
        peers[i] = connect_as(&at, (char)('a' + i));
    run_next(rig, source, &item);
    assert_is(rig, &item, 'a');
    assert_int_equal(errand_source_buffered(source), 2);
    assert_int_equal(errand_source_close(source), 2);
    assert_int_equal(errand_source_close(source), 0);
    run_next(rig, source, &item);
    net_assert_failed(&item, ERRAND_OPERATION_CLOSED);
    errand_source_abandon(&source);
    source = accept_source(listener, 2); /* what was not taken in is still there */
    run_next(rig, source, &item);
    assert_is(rig, &item, 'd');
    start_next(rig, source, &item);
    net_await_running(rig, 1);
    assert_int_equal(errand_source_close(source), 0);
    net_await(rig, &item);
    net_assert_failed(&item, ERRAND_OPERATION_STOPPED);
    errand_source_abandon(&source);
    for (int i = 0; i < 4; i++)
        close(peers[i]);
    errand_listener_abandon(&listener);
}

/* O79 */
static void
pieces_of_a_stream_come_until_its_end_and_none_is_lost(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    const errand_source_config config = {.struct_size = sizeof config, .chunk_max = 1000};
    const size_t size = 100000;
    unsigned char *bytes = malloc(size);
    size_t got = 0;
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_source *source;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 256);
    assert_int_equal(errand_source_receive(stream, &config, &source), ERRAND_OK);
    start_next(rig, source, &item);
    net_await_running(rig, 1);
    net_cancel(rig, &item);
    net_await(rig, &item);
    net_assert_failed(&item, ERRAND_OPERATION_STOPPED);
    net_peer_write(peer, bytes, size);
    close(peer);
    while (got < size) {
        run_next(rig, source, &item);
        assert_int_equal(item.outcome, ERRAND_COMPLETED);
        const errand_file_bytes *piece = item.payload.data;
        assert_in_range(piece->size, 1, 1000);
        assert_memory_equal(piece->bytes, bytes + got, piece->size);
        got += piece->size;
    }
    for (int i = 0; i < 2; i++) {
        run_next(rig, source, &item);
        net_assert_nothing(&item);
    }
    errand_source_abandon(&source);
    errand_stream_abandon(&stream);
    free(bytes);
}

static void
a_stream_that_closes_ends_the_item_that_is_out(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_source *source;

    assert_int_equal(errand_source_receive(stream, NULL, &source), ERRAND_OK);
    start_next(rig, source, &item);
    net_await_running(rig, 1);
    errand_stream_close(stream);
    net_await(rig, &item);
    net_assert_failed(&item, ERRAND_OPERATION_CLOSED);
    errand_source_abandon(&source);
    errand_stream_abandon(&stream);
    close(peer);
}

static void
a_failure_ends_the_source_of_a_stream(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_source *source;

    assert_int_equal(errand_source_receive(stream, NULL, &source), ERRAND_OK);
    start_next(rig, source, &item);
    net_await_running(rig, 1);
    net_peer_reset(peer);
    net_await(rig, &item);
    assert_int_equal(item.sys_errno, ECONNRESET);
    net_assert_failed(&item, ERRAND_OPERATION_RECEIVE_FAILED);
    run_next(rig, source, &item);
    net_assert_failed(&item, ERRAND_OPERATION_CLOSED);
    errand_source_abandon(&source);
    errand_stream_abandon(&stream);
}

static void
signals_are_items_with_who_sent_them(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false};
    const int32_t numbers[] = {SIGUSR1, SIGUSR2}, wrong[] = {SIGKILL};
    errand_source *source;
    sigset_t before;

    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    assert_int_equal(errand_source_signals(wrong, 1, NULL, &source), ERRAND_EINVAL);
    assert_int_equal(errand_source_signals(numbers, 2, NULL, &source), ERRAND_OK);
    start_next(rig, source, &item);
    net_await_running(rig, 1);
    assert_int_equal(kill(getpid(), SIGUSR2), 0);
    net_await(rig, &item);
    assert_int_equal(item.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(item.payload.held_type, &errand_caught_signal_type);
    const errand_caught_signal *told = item.payload.data;
    assert_int_equal(told->number, SIGUSR2);
    assert_int_equal(told->code, SI_USER);
    assert_int_equal(told->pid, getpid());
    net_clear(&item);
    errand_source_abandon(&source);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_NET(each_connection_is_one_item_in_the_order_in_which_they_came),
        WITH_NET(one_item_at_a_time_may_be_out),
        WITH_NET(a_cancelled_item_is_the_next_ones),
        WITH_NET(a_close_stops_the_item_that_is_out_and_counts_the_others),
        WITH_NET(pieces_of_a_stream_come_until_its_end_and_none_is_lost),
        WITH_NET(a_stream_that_closes_ends_the_item_that_is_out),
        WITH_NET(a_failure_ends_the_source_of_a_stream),
        WITH_NET(signals_are_items_with_who_sent_them),
    };
    return test_group("operations/net/source", tests, NULL, NULL);
}
