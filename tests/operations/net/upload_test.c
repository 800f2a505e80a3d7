/* SPDX-License-Identifier: MIT */
/* Goal: a body that is sent in pieces arrives as it was given, holds nothing back and nothing up, and
 * ends honestly where the server, the caller or the clock ends it.
 * Method: the test itself is the server, by blocking calls on the connection that it accepts. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "http_rig.h"

static int listening = -1;
static uint16_t port;

static int
setup(void **state)
{
    return http_listen_setup(state, &listening, &port);
}

static int
teardown(void **state)
{
    close(listening);
    return net_teardown(state);
}

static errand_http_config
config_of(size_t size)
{
    static char url[64];

    snprintf(url, sizeof url, "http://127.0.0.1:%u/up", port);
    return (errand_http_config){.struct_size = sizeof(errand_http_config),
                                .flags = ERRAND_HTTP_POST,
                                .url = url,
                                .body_size = size};
}

/* An upload that has begun, and the server's end of it, with the head read. */
static errand_http_upload *
begin(net_rig *rig, const errand_http_config *config, int *out_peer, char *head)
{
    net_result result = {.started = false};
    errand_spec spec;
    size_t used = 0;

    assert_int_equal(errand_spec_http_upload(&spec, config), ERRAND_OK);
    net_run(rig, &spec, &result);
    if (result.outcome != ERRAND_COMPLETED)
        print_error("%s\n", result.message);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_http_upload_type);
    errand_http_upload *upload = errand_http_upload_hold(result.payload.data);
    net_clear(&result);
    *out_peer = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(*out_peer >= 0);
    while (used < 4 || memcmp(head + used - 4, "\r\n\r\n", 4) != 0) {
        assert_true(used < 1023);
        net_peer_read(*out_peer, head + used++, 1);
    }
    head[used] = 0;
    return upload;
}

static uint64_t
send_bytes(net_rig *rig, errand_http_upload *upload, const void *bytes, size_t size)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_http_send(&spec, upload, bytes, size), ERRAND_OK);
    net_run(rig, &spec, &result);
    if (result.outcome != ERRAND_COMPLETED)
        print_error("%s\n", result.message);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    uint64_t written = ((const errand_file_written *)result.payload.data)->written;
    net_clear(&result);
    return written;
}

static void
finish(net_rig *rig, errand_http_upload *upload, net_result *result)
{
    errand_spec spec;

    assert_int_equal(errand_spec_http_finish(&spec, upload), ERRAND_OK);
    net_start(rig, &spec, result);
}

static void
expect_read(int peer, const char *text)
{
    char got[256] = "";

    net_peer_read(peer, got, strlen(text));
    assert_string_equal(got, text);
}

static void
pieces_arrive_one_by_one_and_the_answer_is_given(void **state) /* L6 */
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(ERRAND_HTTP_SIZE_UNKNOWN);
    char head[1024];
    int peer;
    errand_http_upload *upload = begin(rig, &config, &peer, head);

    assert_non_null(strstr(head, "POST /up HTTP/1.1\r\n"));
    assert_non_null(strstr(head, "Transfer-Encoding: chunked\r\n"));
    assert_null(strstr(head, "Expect"));
    assert_true(errand_http_upload_left(upload) == ERRAND_HTTP_SIZE_UNKNOWN);
    assert_int_equal(send_bytes(rig, upload, "first", 5), 5);
    expect_read(peer, "5\r\nfirst\r\n"); /* before there is a second */
    assert_int_equal(send_bytes(rig, upload, "second", 6), 6);
    expect_read(peer, "6\r\nsecond\r\n");
    finish(rig, upload, &result);
    net_await_running(rig, 1);
    while (recv(peer, head, 5, MSG_PEEK | MSG_DONTWAIT) < 5)
        net_turn(rig, 1);
    expect_read(peer, "0\r\n\r\n");
    net_peer_write(peer, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nthey", 42);
    net_await(rig, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    const errand_http_response *response = result.payload.data;
    assert_int_equal(response->status, 200);
    assert_string_equal((const char *)response->body.bytes, "they");
    net_clear(&result);
    finish(rig, upload, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_http_upload_abandon(&upload);
    close(peer);
}

static void
a_size_that_is_known_is_told_and_kept(void **state) /* L7, L9 */
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(10);
    char head[1024];
    int peer;
    errand_spec spec;
    errand_http_upload *upload = begin(rig, &config, &peer, head);

    assert_non_null(strstr(head, "Content-Length: 10\r\n"));
    assert_null(strstr(head, "chunked"));
    assert_int_equal(send_bytes(rig, upload, "012345", 6), 6);
    expect_read(peer, "012345");
    assert_int_equal(errand_http_upload_left(upload), 4);
    assert_int_equal(errand_spec_http_send(&spec, upload, "01234", 5), ERRAND_EINVAL);
    assert_int_equal(errand_http_upload_left(upload), 4);
    finish(rig, upload, &result); /* too early */
    net_await(rig, &result);
    assert_non_null(strstr(result.message, "lacks 4"));
    net_assert_failed(&result, ERRAND_OPERATION_SEND_FAILED);
    errand_http_upload_abandon(&upload);
    assert_int_equal(recv(peer, head, 1, 0), 0); /* the connection has ended */
    close(peer);
    upload = begin(rig, &config, &peer, head); /* what never had its turn was not sent */
    assert_int_equal(errand_spec_http_send(&spec, upload, "01234", 5), ERRAND_OK);
    errand_spec_abandon(&spec);
    assert_int_equal(send_bytes(rig, upload, "56789", 5), 5);
    finish(rig, upload, &result);
    net_await(rig, &result);
    assert_non_null(strstr(result.message, "lacks 5"));
    net_assert_failed(&result, ERRAND_OPERATION_SEND_FAILED);
    errand_http_upload_abandon(&upload);
    close(peer);
    config.method = "HEAD";
    assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_EINVAL);
    config.method = "PUT";
    upload = begin(rig, &config, &peer, head);
    assert_non_null(strstr(head, "PUT /up HTTP/1.1\r\n"));
    assert_null(strstr(head, "Content-Type"));
    assert_int_equal(send_bytes(rig, upload, "0123456789", 10), 10);
    finish(rig, upload, &result);
    net_peer_write(peer, "HTTP/1.1 204 None\r\n\r\n", 21);
    net_await(rig, &result);
    assert_int_equal(((const errand_http_response *)result.payload.data)->status, 204);
    net_clear(&result);
    expect_read(peer, "0123456789");
    errand_http_upload_abandon(&upload);
    close(peer);
}

/* What is not read fills the system's buffers and no others. */
static void
a_server_that_stops_reading_holds_the_send_up_until_its_limit(void **state) /* L6 */
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(ERRAND_HTTP_SIZE_UNKNOWN);
    char head[1024], *large = calloc(1, 16 << 20);
    int peer;
    errand_spec spec;

    config.limit_ns = 200000000;
    errand_http_upload *upload = begin(rig, &config, &peer, head);
    int64_t before = errand_testing_live_bytes();
    assert_int_equal(errand_spec_http_send(&spec, upload, large, 16 << 20), ERRAND_OK);
    free(large);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    assert_true(errand_testing_live_bytes() - before < 1 << 20);
    assert_int_equal(errand_spec_http_send(&spec, upload, "x", 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_http_upload_abandon(&upload);
    close(peer);
}

static void
a_cancel_in_the_middle_breaks_the_connection_off(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(16 << 20);
    char *large = calloc(1, 16 << 20), head[1024];
    int peer;
    errand_spec spec;
    errand_http_upload *upload = begin(rig, &config, &peer, head);

    assert_int_equal(errand_spec_http_send(&spec, upload, large, 16 << 20), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    while (recv(peer, head, 1, MSG_PEEK | MSG_DONTWAIT) < 1)
        net_turn(rig, 1); /* some of it has come */
    net_cancel(rig, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
    finish(rig, upload, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CLOSED);
    errand_http_upload_abandon(&upload);
    ssize_t count;
    size_t got = 0;
    while ((count = recv(peer, large, 1 << 20, 0)) > 0)
        got += (size_t)count;
    assert_true(got < 16 << 20);
    free(large);
    close(peer);
}

static void
a_server_that_answers_early_is_heard(void **state) /* L8 */
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(ERRAND_HTTP_SIZE_UNKNOWN);
    const char *no = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
    char head[1024];
    int peer;
    errand_http_upload *upload = begin(rig, &config, &peer, head);

    assert_int_equal(send_bytes(rig, upload, "first", 5), 5);
    net_peer_write(peer, no, strlen(no));
    shutdown(peer, SHUT_WR);
    assert_int_equal(send_bytes(rig, upload, "second", 6), 0);
    finish(rig, upload, &result);
    net_await(rig, &result);
    const errand_http_response *response = result.payload.data;
    assert_int_equal(response->status, 413);
    assert_string_equal((const char *)response->body.bytes, "no");
    net_clear(&result);
    errand_http_upload_abandon(&upload);
    close(peer);
}

static void
a_server_that_resets_is_a_failure(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(ERRAND_HTTP_SIZE_UNKNOWN);
    char head[1024];
    int peer;
    errand_spec spec;
    errand_http_upload *upload = begin(rig, &config, &peer, head);

    net_peer_reset(peer);
    assert_int_equal(errand_spec_http_send(&spec, upload, "x", 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_FAILED);
    assert_true(result.job_code == ERRAND_OPERATION_RECEIVE_FAILED ||
                result.job_code == ERRAND_OPERATION_SEND_FAILED);
    net_clear(&result);
    errand_http_upload_abandon(&upload);
    config.url = "http://127.0.0.1:1/";
    assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_CONNECTION_FAILED);
}

static void
the_answer_can_be_streamed(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(1);
    char head[1024];
    int peer;
    errand_spec spec;

    config.flags |= ERRAND_HTTP_STREAM;
    errand_http_upload *upload = begin(rig, &config, &peer, head);
    assert_int_equal(send_bytes(rig, upload, "x", 1), 1);
    finish(rig, upload, &result);
    net_await_running(rig, 1);
    while (recv(peer, head, 1, MSG_PEEK | MSG_DONTWAIT) < 1)
        net_turn(rig, 1);
    expect_read(peer, "x");
    net_peer_write(peer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 38);
    net_await(rig, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    errand_source *pieces =
        errand_source_hold(((const errand_http_response *)result.payload.data)->pieces);
    net_clear(&result);
    errand_http_upload_abandon(&upload); /* the source has the connection */
    net_peer_write(peer, "part", 4);
    assert_int_equal(errand_source_next(pieces, &spec), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_bytes(&result, "part", 4);
    close(peer);
    assert_int_equal(errand_source_next(pieces, &spec), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    errand_source_abandon(&pieces);
}

static void
what_does_not_fit_is_refused_and_changes_nothing(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of(ERRAND_HTTP_SIZE_UNKNOWN);
    char head[1024], *large = calloc(1, 16 << 20);
    int peer;
    errand_spec spec, other;

    config.body = "x";
    assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_EINVAL);
    config.body = NULL;
    config.redirects_max = 1;
    assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_EINVAL);
    config.redirects_max = 0;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        (void)errand_testing_fail_allocation(nth);
        assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_ENOMEM);
        (void)errand_testing_fail_allocation(0);
    }
    assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_OK);
    errand_spec_abandon(&spec); /* never started */
    errand_http_upload *upload = begin(rig, &config, &peer, head);
    assert_int_equal(errand_spec_http_send(&spec, upload, "", 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_http_send(&spec, NULL, "x", 1), ERRAND_EINVAL);
    assert_int_equal(errand_spec_http_finish(&spec, NULL), ERRAND_EINVAL);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_spec_http_send(&spec, upload, "x", 1), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    assert_int_equal(errand_spec_http_send(&spec, upload, large, 16 << 20), ERRAND_OK);
    assert_int_equal(errand_spec_http_send(&other, upload, "x", 1), ERRAND_EBUSY);
    assert_int_equal(errand_spec_http_finish(&other, upload), ERRAND_EBUSY);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    assert_int_equal(errand_spec_http_finish(&other, upload), ERRAND_EBUSY);
    net_peer_reset(peer);
    net_await(rig, &result);
    net_clear(&result);
    free(large);
    errand_http_upload_abandon(&upload);
    errand_http_upload_abandon(&upload);
}

int
main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    static const struct CMUnitTest tests[] = {
        WITH_SERVER(pieces_arrive_one_by_one_and_the_answer_is_given),
        WITH_SERVER(a_size_that_is_known_is_told_and_kept),
        WITH_SERVER(a_server_that_stops_reading_holds_the_send_up_until_its_limit),
        WITH_SERVER(a_cancel_in_the_middle_breaks_the_connection_off),
        WITH_SERVER(a_server_that_answers_early_is_heard),
        WITH_SERVER(a_server_that_resets_is_a_failure),
        WITH_SERVER(the_answer_can_be_streamed),
        WITH_SERVER(what_does_not_fit_is_refused_and_changes_nothing),
    };
    return test_group("operations/net/upload", tests, NULL, NULL);
}
