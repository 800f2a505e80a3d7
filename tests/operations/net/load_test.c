/* SPDX-License-Identifier: MIT */
/* Goal: many connections at once give exact results, also beside peers that do not behave.
 * Method: an echo server and its clients, both of handlers that start the next operation; each message
 * says which it is, so that one that is lost, doubled or mixed up is seen. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/source.h"
#include "net_rig.h"

enum { MESSAGE = 4096 };

/* One end of a connection: receives and sends in turn. */
typedef struct end {
    errand_stream *stream;
    net_result result;
    bool client, over;
    uint32_t number;
    uint64_t round, rounds;
    struct load *load;
    unsigned char message[MESSAGE];
} end;
typedef struct load {
    size_t over;
} load;

static void received(net_rig *rig, net_result *result);
static void sent(net_rig *rig, net_result *result);

static void
fill(end *self)
{
    uint64_t word = (uint64_t)self->number << 40 | self->round;

    for (size_t i = 0; i < MESSAGE; i += 8) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        memcpy(self->message + i, &word, 8);
    }
}

static void
start(net_rig *rig, end *self, errand_spec *spec, void (*then)(net_rig *, net_result *))
{
    self->result.then = then;
    self->result.arg = self;
    net_start(rig, spec, &self->result);
}

static void
go_receive(net_rig *rig, end *self)
{
    errand_spec spec;

    assert_int_equal(errand_spec_receive(&spec, self->stream, MESSAGE), ERRAND_OK);
    start(rig, self, &spec, received);
}

static void
go_send(net_rig *rig, end *self)
{
    errand_spec spec;

    assert_int_equal(errand_spec_send(&spec, self->stream, self->message, MESSAGE),
                     ERRAND_OK);
    start(rig, self, &spec, sent);
}

static void
sent(net_rig *rig, net_result *result)
{
    end *self = result->arg;

    if (result->outcome != ERRAND_COMPLETED)
        print_error("%s\n", result->message);
    assert_int_equal(result->outcome, ERRAND_COMPLETED);
    go_receive(rig, self);
}

static void
received(net_rig *rig, net_result *result)
{
    end *self = result->arg;

    if (result->outcome != ERRAND_COMPLETED) { /* a client has gone */
        assert_false(self->client);
        self->over = true;
        return;
    }
    const errand_file_bytes *got = result->payload.data;
    assert_int_equal(got->size, MESSAGE);
    if (self->client) {
        assert_memory_equal(got->bytes, self->message, MESSAGE);
        self->round++;
        if (self->round == self->rounds) {
            self->over = true;
            self->load->over++;
            return;
        }
        fill(self);
    } else {
        memcpy(self->message, got->bytes, MESSAGE);
    }
    go_send(rig, self);
}

static void
run_echo(net_rig *rig, size_t clients, uint64_t rounds)
{
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    end *ends = calloc(2 * clients, sizeof *ends);
    load whole = {.over = 0};
    errand_spec spec;

    assert_non_null(ends);
    for (size_t i = 0; i < clients; i++) {
        end *client = &ends[2 * i], *server = &ends[2 * i + 1];

        assert_int_equal(errand_spec_connect(&spec, &at, NULL), ERRAND_OK);
        net_run(rig, &spec, &client->result);
        client->stream = net_take_stream(&client->result);
        server->stream = net_accept(rig, listener);
        client->client = true;
        client->number = (uint32_t)i;
        client->rounds = rounds;
        client->load = server->load = &whole;
        fill(client);
        go_receive(rig, server);
    }
    for (size_t i = 0; i < clients; i++)
        go_send(rig, &ends[2 * i]);
    while (whole.over < clients)
        net_turn(rig, 1000);
    for (size_t i = 0; i < clients; i++) {
        end *server = &ends[2 * i + 1];

        net_clear(&ends[2 * i].result);
        errand_stream_abandon(&ends[2 * i].stream);
        net_await(rig, &server->result);
        net_clear(&server->result);
        errand_stream_abandon(&server->stream);
    }
    free(ends);
    errand_listener_abandon(&listener);
}

/* D130 */
static void
ninety_six_connections_get_their_own_answers(void **state)
{
    run_echo(*state, 96, test_scaled(1024));
}

/* D130, as often as it says; of the long tier.  A sanitizer does an eighth. */
static void
ninety_six_connections_get_sixteen_thousand_answers_each(void **state)
{
    bool slow = test_under("asan") || test_under("tsan") || test_under("gcc-tsan");

    run_echo(*state, 96, test_scaled(slow ? 2048 : 16384));
}

/* D130 */
static void
one_connection_echoes_many_large_messages(void **state)
{
    run_echo(*state, 1, test_scaled(10000));
}

/* Those who drip, those who never read and those who reset hold up nobody else. */
static void
peers_that_misbehave_hold_up_nobody(void **state)
{
    net_rig *rig = *state;
    enum { BAD = 8 };
    net_result results[3 * BAD] = {{.started = false}};
    errand_stream *streams[3 * BAD];
    int peers[3 * BAD];
    char *large = calloc(1, 8 << 20);
    errand_spec spec;

    for (size_t i = 0; i < 3 * BAD; i++) {
        streams[i] = net_pair(rig, &peers[i]);
        if (i < BAD) { /* drips */
            net_peer_write(peers[i], "d", 1);
            assert_int_equal(errand_spec_receive(&spec, streams[i], 100000), ERRAND_OK);
        } else if (i < 2 * BAD) { /* never reads */
            assert_int_equal(errand_spec_send(&spec, streams[i], large, 8 << 20),
                             ERRAND_OK);
        } else { /* will reset */
            assert_int_equal(errand_spec_receive(&spec, streams[i], 100000), ERRAND_OK);
        }
        net_start(rig, &spec, &results[i]);
    }
    run_echo(rig, 4, 50);
    for (size_t i = 0; i < 3 * BAD; i++) {
        assert_false(results[i].done);
        if (i < BAD)
            net_peer_write(peers[i], "d", 1);
        net_peer_reset(peers[i]);
    }
    for (size_t i = 0; i < 3 * BAD; i++) {
        net_await(rig, &results[i]);
        net_assert_failed(&results[i], i / BAD == 1 ? ERRAND_OPERATION_SEND_FAILED
                                                    : ERRAND_OPERATION_RECEIVE_FAILED);
        errand_stream_abandon(&streams[i]);
    }
    free(large);
}

/* What is open and waits costs little, whatever it waits for; beside it are the library's records, which
 * the first round makes. */
static void
a_waiting_receive_keeps_no_buffer_and_a_small_state(void **state)
{
    net_rig *rig = *state;
    enum { WAITS = 1000 };
    net_result *results = calloc(WAITS, sizeof *results);
    errand_stream **streams = calloc(WAITS, sizeof *streams);
    int *peers = calloc(WAITS, sizeof *peers);
    errand_spec spec;

    for (size_t round = 0; round < 2; round++) { /* the first one makes what is kept */
        for (size_t i = 0; i < WAITS; i++) {
            int ends[2];

            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
            peers[i] = ends[1];
            assert_int_equal(errand_stream_adopt(&ends[0], &streams[i]), ERRAND_OK);
        }
        int64_t before = errand_testing_live_bytes();
        for (size_t i = 0; i < WAITS; i++) {
            assert_int_equal(errand_spec_receive(&spec, streams[i], 1 << 20), ERRAND_OK);
            net_start(rig, &spec, &results[i]);
        }
        net_await_running(rig, WAITS);
        int64_t each = (errand_testing_live_bytes() - before) / WAITS;
        assert_true(round == 0 || each <= 256);
        for (size_t i = 0; i < WAITS; i++) {
            close(peers[i]);
            net_await(rig, &results[i]);
            net_assert_failed(&results[i], ERRAND_OPERATION_RECEIVE_FAILED);
            errand_stream_abandon(&streams[i]);
        }
    }
    free(results);
    free(streams);
    free(peers);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_NET(ninety_six_connections_get_their_own_answers),
        WITH_NET(one_connection_echoes_many_large_messages),
        WITH_NET(peers_that_misbehave_hold_up_nobody),
        WITH_NET(a_waiting_receive_keeps_no_buffer_and_a_small_state),
    };
    static const struct CMUnitTest full[] = {
        WITH_NET(ninety_six_connections_get_sixteen_thousand_answers_each)};
    if (getenv("ERRAND_NET_FULL") != NULL)
        return test_group("operations/net/load_full", full, NULL, NULL);
    return test_group("operations/net/load", tests, NULL, NULL);
}
