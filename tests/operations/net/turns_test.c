/* SPDX-License-Identifier: MIT */
/* Goal: what is made behind an operation that was told to end has its turn when that one's body has left,
 * as if its end had been waited for, and leaves no trace if it is told to end before.
 * Method: the loop stands still (halt.h) with the first one on it; the second one is an async executor's,
 * whose body comes as far as it can meanwhile. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "errand/async.h"
#include "errand/process.h"
#include "errand/testing.h"
#include "halt.h"
#include "operations/operations.h"

enum { ROUNDS = 5 };

/* An operation that was told to end and has the turn still, and one behind it that waits, on another
 * executor. */
typedef struct couple {
    net_rig *rig;
    errand_executor *other;
    errand_lease *lease;
    halt *halted;
    net_result first, second;
} couple;

static void
pair_begin(couple *pair, net_rig *rig)
{
    *pair = (couple){.rig = rig};
    assert_int_equal(errand_async_create(NULL, &pair->other), ERRAND_OK);
    assert_int_equal(errand_attach(rig->runtime, pair->other, 0, &pair->lease),
                     ERRAND_OK);
}

static void
pair_first(couple *pair, errand_spec *spec)
{
    net_start(pair->rig, spec, &pair->first);
    net_await_running(pair->rig, 1);
    pair->halted = halt_begin(pair->rig);
    net_ask_back(pair->rig, &pair->first);
}

/* Until its body has said that it waits. */
static void
pair_second(couple *pair, errand_spec *spec)
{
    errand_executor_snapshot snapshot;

    net_clear(&pair->second);
    assert_int_equal(
        errand_start(pair->lease, spec, &pair->second, &pair->second.identity),
        ERRAND_OK);
    pair->second.started = true;
    do
        assert_int_equal(errand_executor_snapshot_read(pair->other, &snapshot),
                         ERRAND_OK);
    while (snapshot.running != 1 || snapshot.idle != 1);
}

static void
pair_go_on(couple *pair)
{
    halt_end(pair->rig, pair->halted);
    net_await(pair->rig, &pair->first);
    net_await(pair->rig, &pair->second);
}

static void
pair_end(couple *pair)
{
    net_clear(&pair->first);
    net_clear(&pair->second);
    errand_executor_abandon(&pair->other);
}

static void
accept_pair(couple *pair, errand_listener *listener)
{
    errand_spec spec;

    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
    pair_first(pair, &spec);
    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
    pair_second(pair, &spec);
}

static void
the_next_one_has_its_turn_when_the_one_before_has_left(void **state)
{
    net_rig *rig = *state;
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    couple pair;

    pair_begin(&pair, rig);
    accept_pair(&pair, listener);
    int peer = net_peer_connect(&at); /* it would be taken at once */
    assert_false(pair.second.done);
    pair_go_on(&pair);
    net_assert_failed(&pair.first, ERRAND_OPERATION_STOPPED);
    errand_stream *stream = net_take_stream(&pair.second);
    errand_stream_abandon(&stream);
    close(peer);
    pair_end(&pair);
    errand_listener_abandon(&listener);
}

static void
who_is_told_to_end_before_its_turn_leaves_no_trace(void **state)
{
    net_rig *rig = *state;
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);
    couple pair;
    errand_spec spec;

    pair_begin(&pair, rig);
    accept_pair(&pair, listener);
    for (int i = 0; i < ROUNDS; i++) { /* while the first one has not left */
        net_ask_back(rig, &pair.second);
        while (pair.halted->threaded && !pair.second.done)
            net_turn(rig, 1);
        if (!pair.halted->threaded)
            break; /* there the first one leaves when its owner drives */
        net_assert_failed(&pair.second, ERRAND_OPERATION_STOPPED);
        assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
        pair_second(&pair, &spec);
    }
    net_ask_back(rig, &pair.second);
    pair_go_on(&pair);
    net_assert_failed(&pair.first, ERRAND_OPERATION_STOPPED);
    assert_int_not_equal(pair.second.outcome, ERRAND_COMPLETED);
    int peer = net_peer_connect(&at);
    errand_stream *stream = net_accept(rig, listener);
    errand_stream_abandon(&stream);
    close(peer);
    pair_end(&pair);
    errand_listener_abandon(&listener);
}

static void
a_close_reaches_who_waits_for_its_turn(void **state)
{
    net_rig *rig = *state;
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    couple pair;

    pair_begin(&pair, rig);
    accept_pair(&pair, listener);
    errand_listener_close(listener);
    net_await(rig, &pair.second); /* the first one has not left */
    net_assert_failed(&pair.second, ERRAND_OPERATION_CLOSED);
    halt_end(rig, pair.halted);
    net_await(rig, &pair.first);
    pair_end(&pair);
    errand_listener_abandon(&listener);
}

static void
what_poisons_a_half_ends_who_waits_behind_it_but_a_shutdown(void **state)
{
    net_rig *rig = *state;

    for (int shuts = 0; shuts < 2; shuts++) {
        int peer;
        errand_stream *stream = net_pair(rig, &peer);
        couple pair;
        errand_spec spec;

        pair_begin(&pair, rig);
        assert_int_equal(errand_spec_receive(&spec, stream, 2), ERRAND_OK);
        pair_first(&pair, &spec);
        if (shuts)
            assert_int_equal(errand_spec_shutdown(&spec, stream, ERRAND_HALF_BOTH),
                             ERRAND_OK);
        else
            assert_int_equal(errand_spec_receive(&spec, stream, 2), ERRAND_OK);
        pair_second(&pair, &spec);
        net_peer_write(peer, "ab", 2);
        pair_go_on(&pair);
        net_assert_failed(&pair.first, ERRAND_OPERATION_STOPPED);
        if (shuts)
            net_assert_nothing(&pair.second);
        else
            net_assert_failed(&pair.second, ERRAND_OPERATION_CLOSED);
        pair_end(&pair);
        close(peer);
        errand_stream_abandon(&stream);
    }
}

/* A body that was told to end while it was on its way, and comes after the next one has left. */
static void
stop_once(void *arg, const char *place)
{
    test_gate *gate = arg;

    if (strcmp(place, "turn") != 0)
        return;
    errand_testing_pause(NULL, NULL);
    gate_wait(gate);
}

/* Started, and told to end before it asked for its turn. */
static void
start_late(net_rig *rig, errand_lease *lease, errand_spec *spec, net_result *result,
           test_gate *gate)
{
    gate_init(gate, "turn");
    errand_testing_pause(stop_once, gate);
    net_clear(result);
    assert_int_equal(errand_start(lease, spec, result, &result->identity), ERRAND_OK);
    result->started = true;
    gate_await_arrival(gate);
    net_ask_back(rig, result);
}

static void
who_comes_after_the_next_one_does_nothing(void **state)
{
    net_rig *rig = *state;

    for (int shuts = 0; shuts < 2; shuts++) {
        int peer;
        errand_stream *stream = net_pair(rig, &peer);
        net_result next = {.started = false};
        test_gate gate;
        couple pair;
        errand_spec spec;
        char got[3] = "";

        pair_begin(&pair, rig);
        if (shuts)
            assert_int_equal(errand_spec_shutdown(&spec, stream, ERRAND_HALF_SINK),
                             ERRAND_OK);
        else
            assert_int_equal(errand_spec_send(&spec, stream, "1", 1), ERRAND_OK);
        start_late(rig, pair.lease, &spec, &pair.first, &gate);
        assert_int_equal(errand_spec_send(&spec, stream, "2", 1), ERRAND_OK);
        net_run(rig, &spec, &next);
        net_assert_nothing(&next);
        gate_open(&gate);
        net_await(rig, &pair.first);
        net_assert_failed(&pair.first, ERRAND_OPERATION_STOPPED);
        assert_int_equal(errand_spec_send(&spec, stream, "3", 1), ERRAND_OK);
        net_run(rig, &spec, &next);
        net_assert_nothing(&next);
        net_peer_read(peer, got, 2);
        assert_string_equal(got, "23");
        gate_fini(&gate);
        pair_end(&pair);
        close(peer);
        errand_stream_abandon(&stream);
    }
}

/* It is no process's wait that does nothing: the process has to end. */
static void
a_wait_that_was_told_to_end_on_its_way_ends_its_process(void **state)
{
    net_rig *rig = *state;
    const char *backend = getenv("ERRAND_NET_BACKEND");
    const char *const argv[] = {"sleep", "1000", NULL};
    const errand_process_config config = {.struct_size = sizeof config, .argv = argv};
    net_result result = {.started = false};
    test_gate gate;
    errand_spec spec;

    if (backend != NULL && strcmp(backend, "here") == 0)
        test_skip("nothing is on its way there while its owner does something else");
    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_process *process = result.payload.data;
    result.payload = (errand_payload){.data = NULL};
    assert_int_equal(errand_spec_process_wait(&spec, process), ERRAND_OK);
    start_late(rig, rig->lease, &spec, &result, &gate);
    gate_open(&gate);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    assert_int_equal(errand_process_signal(process, SIGCONT), ERRAND_EGONE);
    gate_fini(&gate);
    errand_process_abandon(&process);
}

/* One of two that wait for the same body to leave may be told to end. */
static void
each_close_hears_that_the_last_one_has_left(void **state)
{
    net_rig *rig = *state;

    for (int cancels = 0; cancels < 2; cancels++) {
        int peer;
        errand_stream *stream = net_pair(rig, &peer);
        net_result third = {.started = false};
        errand_executor_snapshot snapshot;
        couple pair;
        errand_spec spec;

        pair_begin(&pair, rig);
        assert_int_equal(errand_spec_receive(&spec, stream, 2), ERRAND_OK);
        pair_first(&pair, &spec);
        assert_int_equal(errand_spec_close(&spec, stream), ERRAND_OK);
        pair_second(&pair, &spec);
        if (cancels)
            net_ask_back(rig, &pair.second);
        assert_int_equal(errand_spec_close(&spec, stream), ERRAND_OK);
        assert_int_equal(errand_start(pair.lease, &spec, &third, &third.identity),
                         ERRAND_OK);
        third.started = true;
        do /* until it has begun, and the other one has heard */
            assert_int_equal(errand_executor_snapshot_read(pair.other, &snapshot),
                             ERRAND_OK);
        while (snapshot.running != 2U - (unsigned)cancels || snapshot.queued != 0 ||
               snapshot.idle != 1);
        pair_go_on(&pair);
        net_await(rig, &third);
        if (cancels)
            net_assert_failed(&pair.second, ERRAND_OPERATION_STOPPED);
        net_result *closed =
            pair.second.started && pair.second.outcome == ERRAND_COMPLETED ? &pair.second
                                                                           : &third;
        net_assert_nothing(closed);
        if (!cancels)
            net_assert_failed(closed == &third ? &pair.second : &third,
                              ERRAND_OPERATION_CLOSED);
        pair_end(&pair);
        close(peer);
        errand_stream_abandon(&stream);
    }
}

/* A source whose items fail once the test lets them. */
typedef struct failing {
    test_gate gate;
} failing;

static int32_t
take_nothing(errand_job *job, void *thing, size_t chunk_max, errand_payload *out_item)
{
    (void)chunk_max;
    (void)out_item;
    gate_wait(&((failing *)thing)->gate);
    return errand__operation_failed(job, ERRAND_OPERATION_IO, "it fails");
}

static int
no_fd(void *thing)
{
    (void)thing;
    return -1;
}

static void
let_nothing(void *thing)
{
    (void)thing;
}

static const errand__source_type failing_type = {
    .name = "failing",
    .take = take_nothing,
    .fd = no_fd,
    .let = let_nothing,
};

static void
an_item_behind_one_that_failed_is_not_told_that_its_source_was_closed(void **state)
{
    net_rig *rig = *state;
    errand_executor *third;
    errand_lease *lease;
    errand_source *source;
    failing thing;
    couple pair;
    errand_spec spec;

    pair_begin(&pair, rig);
    gate_init(&thing.gate, "take");
    assert_int_equal(errand_async_create(NULL, &third), ERRAND_OK);
    assert_int_equal(errand_attach(rig->runtime, third, 0, &lease), ERRAND_OK);
    assert_int_equal(
        errand__source_create(__func__, &failing_type, &thing, NULL, NULL, &source),
        ERRAND_OK);
    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    assert_int_equal(errand_start(lease, &spec, &pair.first, &pair.first.identity),
                     ERRAND_OK);
    pair.first.started = true;
    gate_await_arrival(&thing.gate);
    net_ask_back(rig, &pair.first);
    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    pair_second(&pair, &spec);
    gate_open(&thing.gate);
    net_await(rig, &pair.first);
    net_await(rig, &pair.second);
    net_assert_failed(&pair.first, ERRAND_OPERATION_IO);
    net_assert_failed(&pair.second, ERRAND_OPERATION_CLOSED);
    errand_source_abandon(&source);
    gate_fini(&thing.gate);
    pair_end(&pair);
    errand_executor_abandon(&third);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_NET(the_next_one_has_its_turn_when_the_one_before_has_left),
        WITH_NET(who_is_told_to_end_before_its_turn_leaves_no_trace),
        WITH_NET(a_close_reaches_who_waits_for_its_turn),
        WITH_NET(what_poisons_a_half_ends_who_waits_behind_it_but_a_shutdown),
        WITH_NET(who_comes_after_the_next_one_does_nothing),
        WITH_NET(a_wait_that_was_told_to_end_on_its_way_ends_its_process),
        WITH_NET(an_item_behind_one_that_failed_is_not_told_that_its_source_was_closed),
        WITH_NET(each_close_hears_that_the_last_one_has_left),
    };
    return test_group("operations/net/turns", tests, NULL, NULL);
}
