/* SPDX-License-Identifier: MIT */
/* Goal: when the next operation on a thing may be made hangs on what its owner did alone: as soon as the
 * one before was told to end, whether or not its body has left, and never while it is waited for,
 * whether or not it has ended.
 * Method: the loop stands still (halt.h) while the owner cancels and makes the next ones, so nothing
 * that was told to end can leave meanwhile. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/process.h"
#include "errand/source.h"
#include "halt.h"

enum { ROUNDS = 5 };

/* ---- things that serve one at a time -------------------------------------------------------------- */

typedef struct served {
    errand_listener *listener;
    errand_datagram *datagram;
    errand_source *source;
    int peer;
} served;
typedef struct kind {
    void (*set_up)(net_rig *rig, served *thing);
    errand_status (*next)(served *thing, errand_spec *out_spec);
    void (*serve)(served *thing); /* what the last one waits for */
} kind;

static void
listener_set_up(net_rig *rig, served *thing)
{
    thing->listener = net_listen(rig, "127.0.0.1:0");
}

static errand_status
listener_next(served *thing, errand_spec *out_spec)
{
    return errand_spec_accept(out_spec, thing->listener);
}

static void
listener_serve(served *thing)
{
    errand_endpoint at = errand_listener_local(thing->listener);

    thing->peer = net_peer_connect(&at);
}

static void
items_set_up(net_rig *rig, served *thing)
{
    listener_set_up(rig, thing);
    assert_int_equal(errand_source_accept(thing->listener, NULL, &thing->source),
                     ERRAND_OK);
}

static errand_status
items_next(served *thing, errand_spec *out_spec)
{
    return errand_source_next(thing->source, out_spec);
}

static void
signals_set_up(net_rig *rig, served *thing)
{
    const int32_t number = SIGUSR2;

    (void)rig;
    assert_int_equal(errand_source_signals(&number, 1, NULL, &thing->source), ERRAND_OK);
}

static void
signals_serve(served *thing)
{
    (void)thing;
    kill(getpid(), SIGUSR2);
}

static void
packets_set_up(net_rig *rig, served *thing)
{
    net_result result = {.started = false};
    errand_endpoint at = net_endpoint("127.0.0.1:0");
    errand_spec spec;

    assert_int_equal(errand_spec_datagram(&spec, &at, NULL), ERRAND_OK);
    net_run(rig, &spec, &result);
    thing->datagram = result.payload.data;
    result.payload = (errand_payload){.data = NULL};
}

static errand_status
packets_next(served *thing, errand_spec *out_spec)
{
    return errand_spec_receive_packet(out_spec, thing->datagram, 1);
}

static void
packets_serve(served *thing)
{
    errand_endpoint at = errand_datagram_local(thing->datagram);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(at.port)};

    memcpy(&to.sin_addr, at.bytes, 4);
    thing->peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(sendto(thing->peer, "x", 1, 0, (struct sockaddr *)&to, sizeof to),
                     1);
}

static void
let(served *thing)
{
    errand_source_abandon(&thing->source);
    errand_listener_abandon(&thing->listener);
    errand_datagram_abandon(&thing->datagram);
    if (thing->peer >= 0)
        close(thing->peer);
}

static const kind kinds[] = {
    {listener_set_up, listener_next, listener_serve},
    {items_set_up, items_next, listener_serve},
    {signals_set_up, items_next, signals_serve},
    {packets_set_up, packets_next, packets_serve},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* O37, O79 */
static void
the_next_may_be_made_as_soon_as_one_was_told_to_end(void **state)
{
    net_rig *rig = *state;

    for (int k = 0; k < KINDS; k++) {
        served thing = {.peer = -1};
        net_result results[ROUNDS + 1] = {{.started = false}};
        errand_spec spec, third;

        kinds[k].set_up(rig, &thing);
        assert_int_equal(kinds[k].next(&thing, &spec), ERRAND_OK);
        net_start(rig, &spec, &results[0]);
        net_await_running(rig, 1);
        halt *halted = halt_begin(rig);
        for (int i = 0; i < ROUNDS; i++) {
            net_ask_back(rig, &results[i]);
            assert_int_equal(kinds[k].next(&thing, &spec), ERRAND_OK);
            assert_int_equal(kinds[k].next(&thing, &third), ERRAND_EBUSY);
            net_start(rig, &spec, &results[i + 1]);
        }
        halt_end(rig, halted);
        for (int i = 0; i < ROUNDS; i++) {
            net_await(rig, &results[i]);
            assert_int_not_equal(results[i].outcome, ERRAND_COMPLETED);
        }
        assert_false(results[ROUNDS].done);
        kinds[k].serve(&thing);
        net_await(rig, &results[ROUNDS]);
        assert_int_equal(results[ROUNDS].outcome, ERRAND_COMPLETED);
        net_clear(&results[ROUNDS]);
        let(&thing);
    }
}

/* Of a completion: its own handler may make the next one. */
typedef struct handled {
    const kind *kind;
    served *thing;
    errand_status said;
} handled;

static void
make_next(net_rig *rig, net_result *result)
{
    handled *self = result->arg;
    errand_spec next;

    (void)rig;
    self->said = self->kind->next(self->thing, &next);
    if (self->said == ERRAND_OK)
        errand_spec_abandon(&next);
}

/* O79: else it would hang on when a thread got somewhere. */
static void
what_has_ended_is_out_until_its_owner_hears_of_it(void **state)
{
    net_rig *rig = *state;
    errand_snapshot snapshot = {.running = 1};

    for (int k = 0; k < KINDS; k++) {
        served thing = {.peer = -1};
        handled by = {&kinds[k], &thing, ERRAND_EBUSY};
        net_result result = {.then = make_next, .arg = &by};
        errand_spec spec, second;

        kinds[k].set_up(rig, &thing);
        kinds[k].serve(&thing);
        assert_int_equal(kinds[k].next(&thing, &spec), ERRAND_OK);
        net_start(rig, &spec, &result);
        do { /* it ends, and is not drained */
            assert_int_equal(
                errand_park(rig->runtime, errand_runtime_now(rig->runtime) + 1000000000u),
                ERRAND_OK);
            assert_int_equal(errand_runtime_snapshot(rig->runtime, &snapshot), ERRAND_OK);
        } while (snapshot.running + snapshot.queued != 0);
        assert_int_equal(kinds[k].next(&thing, &second), ERRAND_EBUSY);
        net_await(rig, &result);
        assert_int_equal(by.said, ERRAND_OK);
        net_clear(&result);
        assert_int_equal(kinds[k].next(&thing, &second), ERRAND_OK);
        errand_spec_abandon(&second);
        let(&thing);
    }
}

/* ---- what else has a place ------------------------------------------------------------------------- */

/* O79 */
static void
a_source_that_was_closed_is_in_nobodys_way(void **state)
{
    net_rig *rig = *state;
    net_result item = {.started = false}, result = {.started = false};
    served thing = {.peer = -1};
    errand_spec spec;

    items_set_up(rig, &thing);
    assert_int_equal(items_next(&thing, &spec), ERRAND_OK);
    net_start(rig, &spec, &item);
    net_await_running(rig, 1);
    halt *halted = halt_begin(rig);
    errand_source_close(thing.source);
    assert_int_equal(errand_spec_accept(&spec, thing.listener), ERRAND_OK);
    net_start(rig, &spec, &result);
    halt_end(rig, halted);
    net_await(rig, &item);
    net_assert_failed(&item, ERRAND_OPERATION_STOPPED);
    listener_serve(&thing);
    net_await(rig, &result);
    net_clear(&result);
    let(&thing);
}

static void
an_input_ends_behind_a_write_that_was_told_to_end(void **state)
{
    net_rig *rig = *state;
    const char *const argv[] = {"sh", "-c", "kill -STOP $$; cat >/dev/null; exit 7",
                                NULL};
    const errand_process_config config = {
        .struct_size = sizeof config, .argv = argv, .flags = ERRAND_PROCESS_INPUT};
    net_result result = {.started = false};
    char *large = calloc(1, 1 << 20);
    errand_spec spec;

    assert_non_null(large);
    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_process *process = result.payload.data;
    result.payload = (errand_payload){.data = NULL};
    assert_int_equal(errand_spec_process_write(&spec, process, large, 1 << 20),
                     ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    halt *halted = halt_begin(rig);
    assert_int_equal(errand_process_end_input(process), ERRAND_EBUSY);
    net_ask_back(rig, &result);
    assert_int_equal(errand_process_end_input(process), ERRAND_OK);
    halt_end(rig, halted);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    /* It sees the end, once it goes on. */
    assert_int_equal(errand_spec_process_wait(&spec, process), ERRAND_OK);
    net_start(rig, &spec, &result);
    while (!result.done) {
        assert_int_not_equal(errand_process_signal(process, SIGCONT), ERRAND_EINVAL);
        net_turn(rig, 10);
    }
    assert_int_equal(((const errand_exit *)result.payload.data)->exit_status, 7);
    net_clear(&result);
    errand_process_abandon(&process);
    free(large);
}

/* A cancelled wait ends its process, and the next one hears how. */
static void
the_next_wait_hears_how_a_process_ended(void **state)
{
    net_rig *rig = *state;
    const char *const argv[] = {"sleep", "1000", NULL};
    const errand_process_config config = {.struct_size = sizeof config, .argv = argv};
    net_result result = {.started = false}, next = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_process *process = result.payload.data;
    result.payload = (errand_payload){.data = NULL};
    assert_int_equal(errand_spec_process_wait(&spec, process), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    halt *halted = halt_begin(rig);
    net_ask_back(rig, &result);
    assert_int_equal(errand_spec_process_wait(&spec, process), ERRAND_OK);
    net_start(rig, &spec, &next);
    halt_end(rig, halted);
    net_await(rig, &next);
    assert_int_equal(((const errand_exit *)next.payload.data)->signal_number, SIGTERM);
    net_await(rig, &result);
    net_clear(&result);
    net_clear(&next);
    errand_process_abandon(&process);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_NET(the_next_may_be_made_as_soon_as_one_was_told_to_end),
        WITH_NET(what_has_ended_is_out_until_its_owner_hears_of_it),
        WITH_NET(a_source_that_was_closed_is_in_nobodys_way),
        WITH_NET(an_input_ends_behind_a_write_that_was_told_to_end),
        WITH_NET(the_next_wait_hears_how_a_process_ended),
    };
    return test_group("operations/net/next", tests, NULL, NULL);
}
