/* SPDX-License-Identifier: MIT */
/* Goal: what waits on a reactor keeps the orders' promises: a seeded run is a function of its seed, and a
 * recorded one can be replayed without a socket.
 * Method: one small program, run again with the same seed, with another one, and from its log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "errand/order.h"
#include "errand/record.h"
#include "errand/source.h"
#include "net_rig.h"

enum { ITEMS = 5 };

typedef struct run {
    errand_order order;
    uint64_t seed;
    uint32_t items_max;
    errand_recorder *recorder;
    errand_replay *replay;
    void (*program)(struct run *self, errand_runtime *runtime, errand_lease *lease);
    /* What came of it. */
    uint64_t took[ITEMS]; /* of an item, from submit to its due */
    uint64_t digest;
    char bytes[ITEMS + 1];
    errand_status said[3 * ITEMS]; /* when an operation was made */
} run;

typedef struct got {
    bool done;
    errand_outcome outcome;
    uint64_t took;
    errand_payload payload;
} got;

static void
take(void *arg, errand_completion *completion)
{
    got *result = completion->wait;

    (void)arg;
    result->done = true;
    result->outcome = completion->outcome;
    result->took = completion->t_end_ns - completion->t_submit_ns;
    result->payload = errand_completion_take(completion);
}

static got
perform(errand_runtime *runtime, errand_lease *lease, errand_spec *spec)
{
    got result = {.done = false};
    size_t count;

    assert_int_equal(errand_start(lease, spec, &result, NULL), ERRAND_OK);
    while (!result.done) {
        assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(runtime, 64, take, NULL, &count), ERRAND_OK);
    }
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    return result;
}

static void
items(run *self, errand_runtime *runtime, errand_lease *lease)
{
    const errand_source_config config = {.struct_size = sizeof config,
                                         .items_max = self->items_max};
    errand_endpoint at = net_endpoint("127.0.0.1:0");
    int peers[ITEMS];
    errand_source *source;
    errand_spec spec;

    assert_int_equal(errand_spec_listen(&spec, &at, NULL), ERRAND_OK);
    errand_listener *listener = perform(runtime, lease, &spec).payload.data;
    at = errand_listener_local(listener);
    assert_int_not_equal(at.port, 0);
    for (int i = 0; i < ITEMS && self->replay == NULL; i++) {
        const char name = (char)('a' + i);

        peers[i] = net_peer_connect(&at);
        net_peer_write(peers[i], &name, 1);
    }
    assert_int_equal(errand_source_accept(listener, &config, &source), ERRAND_OK);
    for (int i = 0; i < ITEMS; i++) {
        assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
        got item = perform(runtime, lease, &spec);
        self->took[i] = item.took;
        errand_stream *stream = item.payload.data;
        assert_int_equal(errand_stream_peer(stream).family, 4);
        assert_int_equal(errand_spec_receive(&spec, stream, 1), ERRAND_OK);
        got byte = perform(runtime, lease, &spec);
        self->bytes[i] = (char)((errand_file_bytes *)byte.payload.data)->bytes[0];
        errand_payload_drop(&byte.payload);
        errand_stream_abandon(&stream);
    }
    for (int i = 0; i < ITEMS && self->replay == NULL; i++)
        close(peers[i]);
    errand_source_abandon(&source);
    errand_listener_abandon(&listener);
    assert_string_equal(self->bytes, "abcde");
}

/* Each receive is told to end and the next one made at once; one more is too many.  Nothing is drained
 * before the last one. */
static void
crowd(run *self, errand_runtime *runtime, errand_lease *lease)
{
    errand_endpoint at = net_endpoint("127.0.0.1:0");
    got results[ITEMS + 1] = {{.done = false}};
    errand_identity identity;
    errand_spec spec, more;
    size_t count;

    assert_int_equal(errand_spec_datagram(&spec, &at, NULL), ERRAND_OK);
    errand_datagram *datagram = perform(runtime, lease, &spec).payload.data;
    at = errand_datagram_local(datagram);
    for (int i = 0; i <= ITEMS; i++) { /* in a seeded order what has begun takes one */
        assert_int_equal(errand_spec_send_packet(&spec, datagram, &at, "x", 1),
                         ERRAND_OK);
        (void)perform(runtime, lease, &spec);
    }
    for (int i = 0; i <= ITEMS; i++) {
        assert_int_equal(errand_spec_receive_packet(&spec, datagram, 1), ERRAND_OK);
        assert_int_equal(errand_start(lease, &spec, &results[i], &identity), ERRAND_OK);
        if (i == ITEMS)
            break;
        self->said[3 * i] = errand_spec_receive_packet(&more, datagram, 1);
        assert_int_equal(errand_park(runtime, errand_runtime_now(runtime) + 1),
                         ERRAND_OK); /* its begin may come */
        self->said[3 * i + 1] = errand_spec_receive_packet(&more, datagram, 1);
        assert_int_equal(errand_cancel(runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
                         ERRAND_OK);
        self->said[3 * i + 2] = errand_spec_receive_packet(&more, datagram, 1);
        assert_int_equal(self->said[3 * i + 2], ERRAND_OK);
        errand_spec_abandon(&more);
    }
    for (int i = 0; i <= ITEMS; i++) {
        while (!results[i].done) {
            assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK);
            assert_int_equal(errand_drain(runtime, 64, take, NULL, &count), ERRAND_OK);
        }
        errand_payload_drop(&results[i].payload);
    }
    assert_int_equal(results[ITEMS].outcome, ERRAND_COMPLETED);
    errand_datagram_abandon(&datagram);
}

static void
do_run(run *self)
{
    const errand_runtime_config config = {
        .struct_size = sizeof config,
        .order = self->order,
        .seed = self->seed,
        .held_recorder = self->recorder,
        .held_replay = self->replay,
    };
    errand_reactor_config reactor = {.struct_size = sizeof reactor, .threads = 1};
    const char *backend = getenv("ERRAND_NET_BACKEND");
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;

    if (backend != NULL && strcmp(backend, "epoll") == 0)
        reactor.backend = ERRAND_REACTOR_EPOLL;
    if (backend != NULL && strcmp(backend, "here") == 0)
        reactor.threads = 0;
    assert_int_equal(errand_reactor_create(&reactor, &executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_OK);
    assert_int_equal(errand_operations_codecs(runtime), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, executor, 0, &lease), ERRAND_OK);
    (self->program == NULL ? items : self->program)(self, runtime, lease);
    self->digest = errand_digest(runtime);
    assert_int_equal(errand_runtime_shutdown(&runtime, errand_deadline_in(10000000000u),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    errand_executor_abandon(&executor);
}

/* O79: an item's due is drawn when it is asked for, whatever is buffered. */
static void
a_seeded_run_is_a_function_of_its_seed(void **state)
{
    static const errand_order orders[] = {ERRAND_ORDER_INLINE, ERRAND_ORDER_PACED};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        run first = {.order = orders[i], .seed = 7, .items_max = 16};
        run again = {.order = orders[i], .seed = 7, .items_max = 1};
        run other = {.order = orders[i], .seed = 8, .items_max = 16};

        do_run(&first);
        do_run(&again);
        do_run(&other);
        assert_memory_equal(first.took, again.took, sizeof first.took);
        assert_int_equal(first.digest, again.digest);
        assert_memory_not_equal(first.took, other.took, sizeof first.took);
        assert_int_not_equal(first.digest, other.digest);
    }
}

/* O37: and who is one too many hears so, whatever a body has come to. */
static void
in_each_order_the_next_may_be_made_when_one_was_told_to_end(void **state)
{
    static const errand_order orders[] = {ERRAND_ORDER_ARRIVAL, ERRAND_ORDER_INLINE,
                                          ERRAND_ORDER_PACED};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        run crowded = {.order = orders[i], .seed = 7, .program = crowd};

        do_run(&crowded);
        for (size_t k = 0; k < ITEMS; k++) {
            assert_int_equal(crowded.said[3 * k], ERRAND_EBUSY);
            assert_int_equal(crowded.said[3 * k + 1], ERRAND_EBUSY);
        }
    }
}

static void
record_and_replay(run *recorded, run *replayed)
{
    char path[] = "/tmp/errand-orders-XXXXXX", text[512];
    const errand_recorder_config recording = {.struct_size = sizeof recording,
                                              .payloads = ERRAND_RECORD_PAYLOADS,
                                              .path = path};
    const errand_replay_config replaying = {.struct_size = sizeof replaying,
                                            .path = path};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(errand_recorder_open(&recording, &recorded->recorder), ERRAND_OK);
    do_run(recorded);
    assert_int_equal(errand_recorder_close(&recorded->recorder), ERRAND_OK);
    assert_int_equal(errand_replay_open(&replaying, &replayed->replay, text, sizeof text),
                     ERRAND_OK);
    do_run(replayed);
    assert_int_equal(errand_replay_close(&replayed->replay), ERRAND_OK);
    unlink(path);
}

static void
a_recorded_run_is_replayed_without_a_socket(void **state)
{
    run recorded = {.order = ERRAND_ORDER_ARRIVAL, .items_max = 16};
    run replayed = {.order = ERRAND_ORDER_REPLAY, .items_max = 16};

    (void)state;
    record_and_replay(&recorded, &replayed);
}

/* Nothing runs there, and nothing has to. */
static void
a_replay_answers_who_is_one_too_many_as_the_run_did(void **state)
{
    run recorded = {.order = ERRAND_ORDER_ARRIVAL, .program = crowd};
    run replayed = {.order = ERRAND_ORDER_REPLAY, .program = crowd};

    (void)state;
    record_and_replay(&recorded, &replayed);
    assert_memory_equal(recorded.said, replayed.said, sizeof recorded.said);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seeded_run_is_a_function_of_its_seed),
        cmocka_unit_test(in_each_order_the_next_may_be_made_when_one_was_told_to_end),
        cmocka_unit_test(a_recorded_run_is_replayed_without_a_socket),
        cmocka_unit_test(a_replay_answers_who_is_one_too_many_as_the_run_did),
    };
    return test_group("operations/net/orders", tests, NULL, NULL);
}
