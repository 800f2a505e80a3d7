/* SPDX-License-Identifier: MIT */
/* Goal: what is refused says why and changes nothing; what a log holds of an object becomes one again.
 * Method: each call once with each thing wrong, and once without memory (O10); payloads go through
 * their codecs, then each of their bytes is changed. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/files.h"
#include "errand/process.h"
#include "errand/waits.h"
#include "net_rig.h"
#include "operations/codec.h"
#include "recording/recording.h"
#include "runtime/runtime.h"

/* The call once without memory, then with it. */
#define TWICE(call)                                                                      \
    do {                                                                                 \
        (void)errand_testing_fail_allocation(1);                                         \
        errand_status without_ = (call);                                                 \
        (void)errand_testing_fail_allocation(0);                                         \
        assert_int_equal(without_, ERRAND_ENOMEM);                                       \
        assert_int_equal((call), ERRAND_OK);                                             \
        errand_spec_abandon(&spec);                                                      \
    } while (0)

static void
addresses_are_read_and_written(void **state)
{
    static const char *const good[] = {
        "127.0.0.1:80",      "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80",
        "[fe80::1%2]:65535", "unix:/a/b", "unix:@abstract",        "unix:",
        "[2001:db8::1]:0",   "unix:rel",
    };
    static const char *const bad[] = {
        "",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "localhost:80",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[::1%x]:80",
        "[::1",
        "1.2.3:80",
        "1.2.3.4.5:80",
        "127.0.0.1:-1",
        "127.0.0.1: 80",
        ":80",
        "[1.2.3.4]:1",
        "tcp:1.2.3.4:80",
        "127.0.0.1:99999999999999999999",
    };
    char text[ERRAND_ENDPOINT_TEXT];
    char path[6 + 200] = "unix:";
    errand_endpoint endpoint;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(errand_endpoint_parse(good[i], &endpoint), ERRAND_OK);
        assert_int_equal(errand_endpoint_print(&endpoint, text, sizeof text),
                         strlen(good[i]));
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(errand_endpoint_parse(bad[i], &endpoint), ERRAND_EINVAL);
    memset(path + 5, 'p', 107);
    assert_int_equal(errand_endpoint_parse(path, &endpoint), ERRAND_OK);
    path[5 + 107] = 'p';
    assert_int_equal(errand_endpoint_parse(path, &endpoint), ERRAND_EINVAL);
    assert_int_equal(errand_endpoint_parse(NULL, &endpoint), ERRAND_EINVAL);
    const errand_address address = {.family = 4, .bytes = {1, 2, 3, 4}, .port = 5};
    endpoint = errand_endpoint_of(&address);
    errand_endpoint_print(&endpoint, text, sizeof text);
    assert_string_equal(text, "1.2.3.4:5");
}

static void
network_specs_refuse_what_is_wrong_or_has_no_memory(void **state)
{
    net_rig *rig = *state;
    const size_t sizes[] = {1, 2}, none[] = {0};
    const errand_file_bytes part = {.bytes = NULL, .size = 1};
    const errand_connect_config wrong = {.struct_size = 1};
    const errand_listen_config wrong_listen = {.struct_size = sizeof wrong_listen,
                                               .flags = 2};
    errand_endpoint at = net_endpoint("127.0.0.1:0"), nowhere = {.family = 5};
    int peer;
    errand_stream *stream = net_pair(rig, &peer);
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    net_result result = {.started = false};
    errand_spec spec;

    TWICE(errand_spec_connect(&spec, &at, NULL));
    assert_int_equal(errand_spec_connect(&spec, &nowhere, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_spec_connect(&spec, &at, &wrong), ERRAND_EINVAL);
    TWICE(errand_spec_listen(&spec, &at, NULL));
    assert_int_equal(errand_spec_listen(&spec, &at, &wrong_listen), ERRAND_EINVAL);
    TWICE(errand_spec_accept(&spec, listener));
    assert_int_equal(errand_spec_accept(&spec, NULL), ERRAND_EINVAL);
    TWICE(errand_spec_receive(&spec, stream, 1));
    TWICE(errand_spec_receive_some(&spec, stream, 1));
    TWICE(errand_spec_receive_parts(&spec, stream, sizes, 2));
    TWICE(errand_spec_peek(&spec, stream, 1));
    assert_int_equal(errand_spec_receive(&spec, stream, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_receive(&spec, stream, (size_t)ERRAND_RECEIVE_MAX + 1),
                     ERRAND_EINVAL);
    assert_int_equal(errand_spec_receive_some(&spec, NULL, 1), ERRAND_EINVAL);
    assert_int_equal(errand_spec_receive_parts(&spec, stream, none, 1), ERRAND_EINVAL);
    assert_int_equal(errand_spec_peek(&spec, stream, 0), ERRAND_EINVAL);
    TWICE(errand_spec_send(&spec, stream, "x", 1));
    TWICE(errand_spec_shutdown(&spec, stream, ERRAND_HALF_BOTH));
    TWICE(errand_spec_close(&spec, stream));
    assert_int_equal(errand_spec_send_parts(&spec, stream, &part, 1), ERRAND_EINVAL);
    assert_int_equal(errand_spec_shutdown(&spec, stream, (errand_half)4), ERRAND_EINVAL);
    TWICE(errand_spec_datagram(&spec, &at, NULL));
    assert_int_equal(errand_spec_datagram(&spec, NULL, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_spec_datagram(&spec, &at, NULL), ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_datagram *datagram = result.payload.data;
    TWICE(errand_spec_receive_packet(&spec, datagram, 1));
    TWICE(errand_spec_send_packet(&spec, datagram, &at, "x", 1));
    assert_int_equal(errand_spec_send_packet(&spec, datagram, &at, "x", 65508),
                     ERRAND_EINVAL);
    errand_spec second;
    assert_int_equal(errand_spec_receive_packet(&spec, datagram, 1), ERRAND_OK);
    assert_int_equal(errand_spec_receive_packet(&second, datagram, 1), ERRAND_EBUSY);
    errand_spec_abandon(&spec);
    net_clear(&result);
    errand_listener_abandon(&listener);
    errand_stream_abandon(&stream);
    close(peer);
}

static void
other_specs_refuse_what_is_wrong_or_has_no_memory(void **state)
{
    net_rig *rig = *state;
    const char *const argv[] = {"true", NULL};
    const errand_process_config process = {
        .struct_size = sizeof process, .argv = argv, .flags = ERRAND_PROCESS_ERRORS};
    const errand_process_config wrong = {.struct_size = sizeof wrong,
                                         .argv = argv,
                                         .flags = ERRAND_PROCESS_ERRORS |
                                                  ERRAND_PROCESS_TOGETHER};
    net_result result = {.started = false};
    errand_source *source;
    errand_spec spec = ERRAND_SPEC_INIT;

    TWICE(errand_spec_timer(&spec, 1));
    assert_int_equal(errand_spec_timer(NULL, 1), ERRAND_EINVAL);
    TWICE(errand_spec_wait_fd(&spec, 0, ERRAND_WAIT_READABLE));
    TWICE(errand_spec_open(&spec, "/dev/null", ERRAND_OPEN_READ, 0));
    assert_int_equal(errand_spec_open(&spec, "/dev/null", ERRAND_OPEN_READ, 0),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_file *file = result.payload.data;
    TWICE(errand_spec_read_at(&spec, file, 1, 0));
    TWICE(errand_spec_write_at(&spec, file, "x", 1, 0));
    TWICE(errand_spec_sync(&spec, file, false));
    TWICE(errand_spec_truncate(&spec, file, 0));
    TWICE(errand_spec_file_stat(&spec, file));
    TWICE(errand_spec_file_close(&spec, file));
    assert_int_equal(errand_spec_read_at(&spec, file, 0, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_write_at(&spec, file, NULL, 1, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_read_at(&spec, file, 1, -2), ERRAND_EINVAL);
    net_clear(&result);
    TWICE(errand_spec_stat(&spec, "x", true));
    TWICE(errand_spec_rename(&spec, "x", "y", true));
    TWICE(errand_spec_unlink(&spec, "x", false));
    TWICE(errand_spec_mkdir(&spec, "x", 0));
    TWICE(errand_spec_scan(&spec, "x", 0));
    TWICE(errand_spec_copy(&spec, "x", "y"));
    assert_int_equal(errand_spec_stat(&spec, "", true), ERRAND_EINVAL);
    assert_int_equal(errand_spec_copy(&spec, "x", NULL), ERRAND_EINVAL);
    TWICE(errand_spec_spawn(&spec, &process));
    assert_int_equal(errand_spec_spawn(&spec, &wrong), ERRAND_EINVAL);
    assert_int_equal(errand_spec_spawn(&spec, &process), ERRAND_OK);
    net_run(rig, &spec, &result);
    errand_process *child = result.payload.data;
    TWICE(errand_spec_process_wait(&spec, child));
    assert_int_equal(errand_spec_process_write(&spec, child, "x", 1), ERRAND_EINVAL);
    assert_int_equal(errand_source_output(child, ERRAND_OUTPUT_OUT, NULL, &source),
                     ERRAND_EINVAL);
    TWICE(errand_source_output(child, ERRAND_OUTPUT_ERR, NULL, &source));
    errand_source_abandon(&source);
    assert_int_equal(errand_process_signal(child, 0), ERRAND_EINVAL);
    assert_int_equal(errand_process_end_input(NULL), ERRAND_EINVAL);
    errand_spec second;
    assert_int_equal(errand_spec_process_wait(&spec, child), ERRAND_OK);
    assert_int_equal(errand_spec_process_wait(&second, child), ERRAND_EBUSY);
    errand_spec_abandon(&spec);
    net_clear(&result);
}

static void
objects_without_memory_are_not_made(void **state)
{
    net_rig *rig = *state;
    const int32_t numbers[] = {SIGWINCH};
    const errand_source_config wrong = {.struct_size = sizeof wrong, .items_max = 5000};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_source *source = NULL;
    errand_stream *stream;
    errand_file *file;
    errand_spec spec = ERRAND_SPEC_INIT;
    int ends[2], fd;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fd = ends[0];
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_stream_adopt(&fd, &stream), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    assert_int_equal(fd, ends[0]);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_file_adopt(&fd, &file), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    assert_int_equal(fd, ends[0]);
    fd = -1;
    assert_int_equal(errand_file_adopt(&fd, &file), ERRAND_EINVAL);
    fd = ends[0];
    assert_int_equal(errand_stream_adopt(&fd, &stream), ERRAND_OK);
    TWICE(errand_source_receive(stream, NULL, &source));
    errand_source_abandon(&source);
    assert_int_equal(errand_source_receive(NULL, NULL, &source), ERRAND_EINVAL);
    TWICE(errand_source_accept(listener, NULL, &source));
    TWICE(errand_source_next(source, &spec));
    assert_int_equal(errand_source_next(NULL, &spec), ERRAND_EINVAL);
    errand_source_abandon(&source);
    assert_int_equal(errand_source_accept(listener, &wrong, &source), ERRAND_EINVAL);
    TWICE(errand_source_signals(numbers, 1, NULL, &source));
    errand_source_abandon(&source);
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(errand_source_signals(numbers, 1, NULL, &source), ERRAND_ESYSTEM);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    errand_listener_abandon(&listener);
    errand_stream_abandon(&stream);
    close(ends[1]);
}

static void
without_a_reactor_what_must_wait_says_so(void **state)
{
    errand_endpoint at = net_endpoint("127.0.0.1:0");
    net_rig rig = {.executor = NULL};
    net_result result = {.started = false};
    errand_spec spec, specs[3];
    size_t count;

    (void)state;
    assert_int_equal(errand_manual_create(NULL, &rig.executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &rig.runtime), ERRAND_OK);
    assert_int_equal(errand_attach(rig.runtime, rig.executor, 0, &rig.lease), ERRAND_OK);
    assert_int_equal(errand_spec_listen(&spec, &at, NULL), ERRAND_OK);
    net_start(&rig, &spec, &result);
    assert_int_equal(errand_manual_step(rig.executor, 10, &count), ERRAND_OK);
    net_await(&rig, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    errand_listener *listener = result.payload.data;
    result.payload.data = NULL;
    at = errand_listener_local(listener);
    assert_int_equal(errand_spec_accept(&specs[0], listener), ERRAND_OK);
    assert_int_equal(errand_spec_connect(&specs[1], &at, NULL), ERRAND_OK);
    assert_int_equal(errand_spec_timer(&specs[2], 1), ERRAND_OK);
    for (size_t i = 0; i < 3; i++) {
        net_start(&rig, &specs[i], &result);
        assert_int_equal(errand_manual_step(rig.executor, 10, &count), ERRAND_OK);
        net_await(&rig, &result);
        assert_non_null(strstr(result.message, "start it on a lease of a reactor"));
        net_assert_failed(&result, ERRAND_OPERATION_UNSUPPORTED);
    }
    int peer = net_peer_connect(&at); /* what is there already needs no wait */
    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
    net_start(&rig, &spec, &result);
    assert_int_equal(errand_manual_step(rig.executor, 10, &count), ERRAND_OK);
    net_await(&rig, &result);
    errand_stream *stream = net_take_stream(&result);
    errand_stream_abandon(&stream);
    errand_listener_abandon(&listener);
    close(peer);
    assert_int_equal(errand_runtime_shutdown(&rig.runtime, errand_deadline_in(5000000000),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    errand_executor_abandon(&rig.executor);
}

/* ---- logs ------------------------------------------------------------------------------------- */

static errand__bytes
encode(const errand_payload_codec *codec, const void *data, size_t size)
{
    errand__bytes bytes = {.data = NULL};
    uint64_t digest;
    bool kept = false;

    assert_true(errand__sink_encode(codec, data, size, &bytes, &digest, &kept));
    assert_true(kept);
    return bytes;
}

static void
expect_there_and_back(net_rig *rig, const errand_payload *payload)
{
    const errand_payload_codec *codec =
        errand__digester_find(rig->runtime, payload->held_type)->codec;
    errand__bytes bytes = encode(codec, payload->data, payload->size);
    errand_payload back = {.data = NULL};
    unsigned char *copy = malloc(bytes.size + 1);

    assert_int_equal(codec->decode(bytes.data, bytes.size, &back), ERRAND_OK);
    assert_ptr_equal(back.held_type, payload->held_type);
    errand__bytes again = encode(codec, back.data, back.size);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    errand__bytes_fini(&again);
    errand_payload_drop(&back);
    memcpy(copy, bytes.data, bytes.size);
    for (size_t i = 0; i < bytes.size; i++) {
        errand_payload other = {.data = NULL};

        copy[i] ^= 0xff;
        if (codec->decode(copy, bytes.size, &other) == ERRAND_OK)
            errand_payload_drop(&other);
        copy[i] ^= 0xff;
        other.data = NULL;
        if (codec->decode(copy, i, &other) == ERRAND_OK)
            errand_payload_drop(&other);
        assert_null(other.data);
    }
    free(copy);
    errand__bytes_fini(&bytes);
}

/* Of a replay nothing runs, and the owner hears the same: an object answers as the one it was. */
static void
expect_as_busy(net_rig *rig, const errand_payload *payload)
{
    const errand_payload_codec *codec =
        errand__digester_find(rig->runtime, payload->held_type)->codec;
    errand__bytes bytes = encode(codec, payload->data, payload->size);
    errand_payload back = {.data = NULL};
    errand_spec spec, second;
    errand_source *source;

    assert_int_equal(codec->decode(bytes.data, bytes.size, &back), ERRAND_OK);
    assert_int_equal(errand_spec_receive(&spec, back.data, 1), ERRAND_OK);
    assert_int_equal(errand_spec_receive(&second, back.data, 1), ERRAND_EBUSY);
    assert_int_equal(errand_source_receive(back.data, NULL, &source), ERRAND_EBUSY);
    errand_spec_abandon(&spec);
    assert_int_equal(errand_source_receive(back.data, NULL, &source), ERRAND_OK);
    assert_int_equal(errand_source_next(source, &spec), ERRAND_OK);
    assert_int_equal(errand_source_next(source, &second), ERRAND_EBUSY);
    errand_spec_abandon(&spec);
    errand_source_abandon(&source);
    errand_payload_drop(&back);
    errand__bytes_fini(&bytes);
}

static void
payloads_go_through_their_codecs(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const size_t sizes[] = {2, 0, 3};
    const char *const argv[] = {"true", NULL};
    const errand_process_config process = {.struct_size = sizeof process, .argv = argv};
    errand_endpoint at = net_endpoint("127.0.0.1:0");
    errand_spec spec, specs[4];
    int peer;
    errand_stream *stream = net_pair(rig, &peer);

    assert_int_equal(errand_operations_codecs(rig->runtime), ERRAND_OK);
    net_peer_write(peer, "hello", 5);
    assert_int_equal(errand_spec_receive_parts(&specs[0], stream, sizes, 3), ERRAND_OK);
    assert_int_equal(errand_spec_listen(&specs[1], &at, NULL), ERRAND_OK);
    assert_int_equal(errand_spec_spawn(&specs[2], &process), ERRAND_OK);
    assert_int_equal(errand_spec_wait_fd(&specs[3], peer, ERRAND_WAIT_WRITABLE),
                     ERRAND_OK);
    for (size_t i = 0; i < 4; i++) {
        net_run(rig, &specs[i], &result);
        assert_int_equal(result.outcome, ERRAND_COMPLETED);
        expect_there_and_back(rig, &result.payload);
    }
    assert_int_equal(errand_spec_open(&spec, "/dev/null", ERRAND_OPEN_READ, 0),
                     ERRAND_OK);
    net_run(rig, &spec, &result);
    expect_there_and_back(rig, &result.payload);
    errand_caught_signal told = {
        .number = 1, .code = -2, .pid = 3, .uid = 4, .status = -5};
    expect_there_and_back(
        rig, &(errand_payload){&errand_caught_signal_type, &told, sizeof told});
    errand_exit ended = {.exit_status = -1, .signal_number = 9};
    expect_there_and_back(rig,
                          &(errand_payload){&errand_exit_type, &ended, sizeof ended});
    errand_packet packet = {.bytes = {(const unsigned char *)"abc", 3}, .cut = true};
    packet.from = net_endpoint("unix:@from");
    expect_there_and_back(rig,
                          &(errand_payload){&errand_packet_type, &packet, sizeof packet});
    errand_payload object = {&errand_stream_type, stream, 8};
    expect_there_and_back(rig, &object);
    expect_as_busy(rig, &object);
    net_clear(&result);
    errand_stream_abandon(&stream);
    close(peer);
}

int
main(void)
{
#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written),
        WITH_NET(network_specs_refuse_what_is_wrong_or_has_no_memory),
        WITH_NET(other_specs_refuse_what_is_wrong_or_has_no_memory),
        WITH_NET(objects_without_memory_are_not_made),
        cmocka_unit_test(without_a_reactor_what_must_wait_says_so),
        WITH_NET(payloads_go_through_their_codecs),
    };
    return test_group("operations/net/refusals", tests, NULL, NULL);
}
