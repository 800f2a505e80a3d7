/* SPDX-License-Identifier: MIT */
/* Goal: a request gives what the server said, within its limits.
 * Method: a small server on a thread, which answers by path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "http_rig.h"

static void
a_get_gives_status_headers_and_body(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/plain");
    const errand_http_response *response = http_request(rig, &config, &result);

    assert_non_null(response);
    assert_int_equal(response->status, 200);
    assert_string_equal(response->url, http_url_of("/plain"));
    assert_string_equal(http_header_of(response, "X-One"), "1");
    assert_int_equal(response->body.size, 5);
    assert_string_equal((const char *)response->body.bytes, "hello");
    assert_null(response->location);
    config.url = http_url_of("/none");
    response = http_request(rig, &config, &result); /* a result, too */
    assert_int_equal(response->status, 404);
    net_clear(&result);
}

static void
a_post_sends_its_body_and_headers(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/echo");
    const char *const headers[] = {"X-Mine: yes", NULL}, *const bad[] = {"X: a\nb", NULL};

    config.flags = ERRAND_HTTP_POST;
    config.body = "some body";
    config.body_size = 9;
    config.headers = headers;
    const errand_http_response *response = http_request(rig, &config, &result);
    assert_non_null(response);
    assert_int_equal(response->status, 201);
    assert_string_equal(http_header_of(response, "X-Seen"), "yes");
    assert_string_equal((const char *)response->body.bytes, "some body");
    net_clear(&result);
    errand_spec spec;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        (void)errand_testing_fail_allocation(nth);
        assert_int_equal(errand_spec_http(&spec, &config), ERRAND_ENOMEM);
        (void)errand_testing_fail_allocation(0);
    }
    config.headers = bad;
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_EINVAL);
}

static void
expect_method(net_rig *rig, errand_http_config *config, const char *path,
              const char *expected)
{
    net_result result = {.started = false};

    config->url = http_url_of(path);
    const errand_http_response *response = http_request(rig, config, &result);
    if (response == NULL)
        print_error("%s\n", result.message);
    assert_non_null(response);
    assert_int_equal(response->status, 200);
    assert_string_equal((const char *)response->body.bytes, expected);
    net_clear(&result);
}

/* L9 */
static void
a_method_is_sent_as_it_was_given(void **state)
{
    static const char *const bad[] = {
        "",         "get",     "GE T", "G\r\nET",
        "GET ",     "CONNECT", "A/B",  "ABCDEFGHIJKLMNOPQRSTUVWX",
        "D\xc3\x96"};
    static const char *const types[] = {"Content-Type: text/plain", NULL};
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/method");
    errand_spec spec;

    config.method = "DELETE";
    expect_method(rig, &config, "/method", "DELETE||");
    config.method = "HEAD";
    const errand_http_response *response = http_request(rig, &config, &result);
    assert_non_null(response);
    assert_int_equal(response->body.size, 0);
    assert_string_equal(http_header_of(response, "X-Seen"), "head");
    net_clear(&result);
    config.flags = ERRAND_HTTP_POST;
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_EINVAL);
    config.body = "all of it";
    config.body_size = 9;
    config.method = "PUT";
    expect_method(rig, &config, "/method", "PUT||all of it");
    config.headers = types;
    expect_method(rig, &config, "/method", "PUT|text/plain|all of it");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        config.method = bad[i];
        assert_int_equal(errand_spec_http(&spec, &config), ERRAND_EINVAL);
    }
}

/* L9: what a redirect makes of it hangs on the status, and on nothing else. */
static void
a_redirect_repeats_what_it_may(void **state)
{
    static const struct {
        const char *method, *path, *expected;
    } rows[] = {
        {NULL, "/sent/302", "GET"},      {NULL, "/sent/307", "POST"},
        {"POST", "/sent/301", "GET"},    {"POST", "/sent/308", "POST"},
        {"PUT", "/sent/302", "PUT"},     {"PUT", "/sent/303", "GET"},
        {"PATCH", "/sent/307", "PATCH"},
    };
    net_rig *rig = *state;
    errand_http_config config = http_config_of("/method");
    static const char *const types[] = {"Content-Type: t", NULL};
    char expected[64];

    config.flags = ERRAND_HTTP_POST;
    config.body = "body";
    config.body_size = 4;
    config.headers = types;
    config.redirects_max = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool gets = strcmp(rows[i].expected, "GET") == 0;

        config.method = rows[i].method;
        snprintf(expected, sizeof expected, "%s|t|%s", rows[i].expected,
                 gets ? "" : "body");
        expect_method(rig, &config, rows[i].path, expected);
    }
    config.flags = 0;
    config.headers = NULL;
    config.method = "DELETE";
    expect_method(rig, &config, "/sent/302", "DELETE||");
    assert_true(errand_http_is_method("VERSION-CONTROL"));
    assert_true(errand_http_is_method("ABCDEFGHIJKLMNOPQRSTUVW"));
    static const char *const wrong[] = {
        NULL, "", "get", "GET ", "CONNECT", "A\r\nB", "ABCDEFGHIJKLMNOPQRSTUVWX"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(errand_http_is_method(wrong[i]));
    assert_true(errand_http_repeats("HEAD", 0, 303));
    assert_true(errand_http_repeats(NULL, 0, 303));
    assert_false(errand_http_repeats("DELETE", 0, 303));
}

static void
redirects_are_followed_as_far_as_they_may(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/moved");
    const errand_http_response *response = http_request(rig, &config, &result);

    assert_int_equal(response->status, 301);
    assert_string_equal(response->location, http_url_of("/plain"));
    config.url = http_url_of("/moved");
    config.redirects_max = 3;
    response = http_request(rig, &config, &result);
    assert_int_equal(response->status, 200);
    assert_string_equal(response->url, http_url_of("/plain"));
    assert_string_equal((const char *)response->body.bytes, "hello");
    config.url = http_url_of("/around");
    assert_null(http_request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_REDIRECTS);
    config.url = http_url_of("/other");
    response = http_request(rig, &config, &result);
    assert_int_equal(response->status, 302);
    assert_string_equal(response->location, "http://other.invalid/x");
    net_clear(&result);
}

static void
limits_of_size_and_time_end_a_request(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/large");
    const errand_http_response *response = http_request(rig, &config, &result);
    errand_spec spec;

    assert_int_equal(response->body.size, HTTP_LARGE);
    for (size_t i = 0; i < HTTP_LARGE; i++)
        assert_int_equal(response->body.bytes[i], 'a' + i % 23);
    config.body_max = HTTP_LARGE - 1;
    assert_null(http_request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_TOO_LARGE);
    config = http_config_of("/silent");
    config.limit_ns = 30000000;
    assert_null(http_request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    config = http_config_of("/silent");
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_OK);
    net_start(rig, &spec, &result);
    net_await_running(rig, 1);
    net_cancel(rig, &result);
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
}

static void
servers_that_break_off_or_babble_are_failures(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/short");

    assert_null(http_request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_RECEIVE_FAILED);
    config = http_config_of("/rubbish");
    assert_null(http_request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_PROTOCOL);
    config.url = "http://127.0.0.1:1/";
    assert_null(http_request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_CONNECTION_FAILED);
}

static void
an_answer_whose_end_is_not_clear_is_a_failure(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config;
    char path[16];

    for (int i = 0; i < HTTP_UNCLEAR; i++) {
        snprintf(path, sizeof path, "/unclear/%d", i);
        config = http_config_of(path);
        if (http_request(rig, &config, &result) != NULL)
            fail_msg("the answer of %s is believed", path);
        assert_non_null(strstr(result.message, "or it has two that differ"));
        net_assert_failed(&result, ERRAND_OPERATION_PROTOCOL);
    }
    config = http_config_of("/twice");
    assert_non_null(http_request(rig, &config, &result));
    config = http_config_of("/behind"); /* what stands behind a body is no head */
    const errand_http_response *response = http_request(rig, &config, &result);
    assert_non_null(response);
    assert_string_equal(http_header_of(response, "X-One"), "1");
    assert_string_equal((const char *)response->body.bytes, "hello");
    net_clear(&result);
}

static void
a_server_that_sends_for_ever_holds_nobody_beyond_the_limit(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/flood");
    uint64_t before = errand_deadline_in(0);

    config.limit_ns = 100000000;
    assert_null(http_request(rig, &config, &result));
    assert_non_null(strstr(result.message, "longer than 100 ms"));
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    assert_true(errand_deadline_in(0) - before < UINT64_C(20000000000));
    config = http_config_of("/head");
    config.body_max = 10;
    assert_null(http_request(rig, &config, &result));
    assert_non_null(strstr(result.message, "head is larger than 262144 bytes"));
    net_assert_failed(&result, ERRAND_OPERATION_PROTOCOL);
}

static void
a_server_sees_the_headers_that_were_given_and_no_user_of_the_url(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = http_config_of("/seen");
    const char *const headers[] = {"X-Empty:", "X-Blank: ", "X-One: 1", NULL};
    const char *bad[] = {NULL, NULL};
    static const char *const wrong[] = {": 1",    "X One: 1", "X",
                                        "X\t: 1", "X;",       "\xc3: 1"};
    char url[160];
    errand_spec spec;

    config.headers = headers;
    snprintf(url, sizeof url, "http://me:secret@%s",
             http_url_of("/seen") + strlen("http://"));
    config.url = url;
    const errand_http_response *response = http_request(rig, &config, &result);
    assert_non_null(response);
    const char *seen = (const char *)response->body.bytes;
    assert_null(strstr(seen, "Authorization"));
    assert_non_null(strstr(seen, "\r\nX-Empty:\r\n"));
    assert_non_null(strstr(seen, "\r\nX-Blank:\r\n"));
    assert_non_null(strstr(seen, "\r\nX-One: 1\r\n"));
    net_clear(&result);
    config.headers = bad;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bad[0] = wrong[i];
        assert_int_equal(errand_spec_http(&spec, &config), ERRAND_EINVAL);
    }
}

static void
names_need_addresses_and_get_them(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const errand_address address = {
        .family = 4, .bytes = {127, 0, 0, 1}, .text = "127.0.0.1"};
    const errand_addresses addresses = {.addresses = &address, .count = 1};
    char url[128], host[64];
    uint16_t port;
    errand_spec spec;
    errand_http_config config = http_config_of("/plain");

    snprintf(url, sizeof url, "http://some.invalid:%u/plain", http_port());
    config.url = url;
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_EINVAL);
    config.addresses = &addresses;
    const errand_http_response *response = http_request(rig, &config, &result);
    assert_non_null(response);
    assert_int_equal(response->status, 200);
    net_clear(&result);
    assert_int_equal(errand_http_origin(url, host, sizeof host, &port), ERRAND_OK);
    assert_string_equal(host, "some.invalid");
    assert_int_equal(port, http_port());
    assert_int_equal(errand_http_origin("https://[::1]/", host, sizeof host, &port),
                     ERRAND_OK);
    assert_string_equal(host, "::1");
    assert_int_equal(port, 443);
    assert_int_equal(errand_http_origin("ftp://x/", host, sizeof host, &port),
                     ERRAND_EINVAL);
    assert_int_equal(errand_http_origin("http://x/", host, 1, &port), ERRAND_EINVAL);
    config.url = "file:///etc/passwd";
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_EINVAL);
}

static void
a_streamed_body_is_a_source(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false}, item = {.started = false};
    errand_http_config config = http_config_of("/large");
    size_t got = 0;
    errand_spec spec;

    config.flags = ERRAND_HTTP_STREAM;
    config.body_max = 1; /* not of a streamed one */
    const errand_http_response *response = http_request(rig, &config, &result);
    assert_non_null(response);
    assert_int_equal(response->status, 200);
    assert_int_equal(response->body.size, 0);
    assert_non_null(response->pieces);
    errand_source *pieces = errand_source_hold(response->pieces);
    net_clear(&result);
    for (;;) {
        assert_int_equal(errand_source_next(pieces, &spec), ERRAND_OK);
        net_run(rig, &spec, &item);
        assert_int_equal(item.outcome, ERRAND_COMPLETED);
        if (item.payload.data == NULL)
            break;
        const errand_file_bytes *piece = item.payload.data;
        for (size_t i = 0; i < piece->size; i++)
            assert_int_equal(piece->bytes[i], 'a' + (got + i) % 23);
        got += piece->size;
    }
    assert_int_equal(got, HTTP_LARGE);
    net_clear(&item);
    errand_source_abandon(&pieces);
    response = http_request(rig, &config, &result); /* left in the middle */
    assert_non_null(response);
    net_clear(&result);
}

int
main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, http_setup, http_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_SERVER(a_get_gives_status_headers_and_body),
        WITH_SERVER(a_post_sends_its_body_and_headers),
        WITH_SERVER(a_method_is_sent_as_it_was_given),
        WITH_SERVER(a_redirect_repeats_what_it_may),
        WITH_SERVER(redirects_are_followed_as_far_as_they_may),
        WITH_SERVER(limits_of_size_and_time_end_a_request),
        WITH_SERVER(servers_that_break_off_or_babble_are_failures),
        WITH_SERVER(an_answer_whose_end_is_not_clear_is_a_failure),
        WITH_SERVER(a_server_that_sends_for_ever_holds_nobody_beyond_the_limit),
        WITH_SERVER(a_server_sees_the_headers_that_were_given_and_no_user_of_the_url),
        WITH_SERVER(names_need_addresses_and_get_them),
        WITH_SERVER(a_streamed_body_is_a_source),
    };
    return test_group("operations/net/http", tests, NULL, NULL);
}
