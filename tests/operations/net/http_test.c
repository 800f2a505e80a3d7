/* SPDX-License-Identifier: MIT */
/* Goal: a request gives what the server said, within its limits, and trusts nobody who cannot prove who
 * he is.
 * Method: a small server on a thread, which answers by path; openssl's own for certificates. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/http.h"
#include "errand/process.h"
#include "net_rig.h"

enum { LARGE = 3000000 };

typedef struct server {
    pthread_t thread;
    int fd;
    uint16_t port;
} server;
static server the_server;

static void
say(int fd, const char *text)
{
    net_peer_write(fd, text, strlen(text));
}

/* Reads a request; answers its body's size. */
static size_t
read_request(int fd, char *request, size_t room)
{
    size_t used = 0, body = 0;
    char *end = NULL;

    while (end == NULL || used < (size_t)(end + 4 - request) + body) {
        ssize_t count = recv(fd, request + used, room - 1 - used, 0);

        if (count <= 0)
            return 0;
        used += (size_t)count;
        request[used] = 0;
        if (end == NULL && (end = strstr(request, "\r\n\r\n")) != NULL) {
            const char *length = strstr(request, "Content-Length: ");

            body = length == NULL ? 0 : (size_t)atoi(length + 16);
        }
    }
    return body;
}

static void
say_large(int fd)
{
    char *bytes = malloc(LARGE);

    say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)('a' + i % 23);
    for (size_t sent = 0; sent < LARGE;) {
        ssize_t count = send(fd, bytes + sent, LARGE - sent, MSG_NOSIGNAL);

        if (count <= 0)
            break;
        sent += (size_t)count;
    }
    free(bytes);
}

/* As fast as it goes, until nobody listens. */
static void
flood(int fd, const char *text)
{
    static char bytes[65536];
    size_t length = strlen(text), count = sizeof bytes / length;

    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * length, text, length);
    while (send(fd, bytes, count * length, MSG_NOSIGNAL) > 0) {
    }
}

/* The method, the type that the body is said to have, the body. */
static void
say_method(int fd, const char *request, size_t body)
{
    const char *from = strstr(request, "\r\n\r\n") + 4;
    const char *type = strstr(request, "Content-Type: ");
    int length = (int)strcspn(request, " "), types = 0;
    char text[512], said[256];

    if (type != NULL)
        types = (int)strcspn(type += 14, "\r");
    snprintf(said, sizeof said, "%.*s|%.*s|%.*s", length, request, types,
             type == NULL ? "" : type, (int)body, from);
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(said), said);
    say(fd, text);
}

static void
answer(int fd, const char *request, size_t body)
{
    char text[512];
    int status;

    if (strncmp(request, "GET /plain ", 11) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nhello");
    } else if (strncmp(request, "POST /echo ", 11) == 0) {
        const char *from = strstr(request, "\r\n\r\n") + 4;

        snprintf(text, sizeof text,
                 "HTTP/1.1 201 Made\r\nX-Seen: %s\r\nContent-Length: %zu\r\n\r\n",
                 strstr(request, "X-Mine: yes") != NULL ? "yes" : "no", body);
        say(fd, text);
        net_peer_write(fd, from, body);
    } else if (strncmp(request, "HEAD /", 6) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nX-Seen: head\r\nContent-Length: 5\r\n\r\n");
    } else if (strstr(request, " /method ") != NULL) {
        say_method(fd, request, body);
    } else if (sscanf(request, "%*[A-Z] /sent/%d", &status) == 1) {
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d Elsewhere\r\nLocation: /method\r\nContent-Length: "
                 "0\r\n\r\n",
                 status);
        say(fd, text);
    } else if (strncmp(request, "GET /around ", 12) == 0) {
        say(fd, "HTTP/1.1 302 Found\r\nLocation: /around\r\nContent-Length: 0\r\n\r\n");
    } else if (strncmp(request, "GET /moved ", 11) == 0) {
        say(fd, "HTTP/1.1 301 Moved\r\nLocation: /plain\r\nContent-Length: 3\r\n\r\nold");
    } else if (strncmp(request, "GET /other ", 11) == 0) {
        say(fd, "HTTP/1.1 302 Found\r\nLocation: http://other.invalid/x\r\n"
                "Content-Length: 0\r\n\r\n");
    } else if (strncmp(request, "GET /large ", 11) == 0) {
        say_large(fd);
    } else if (strncmp(request, "GET /short ", 11) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort");
    } else if (strncmp(request, "GET /rubbish ", 13) == 0) {
        say(fd, "this is no protocol at all\r\n\r\n");
    } else if (strncmp(request, "GET /flood ", 11) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;");
        flood(fd, "x"); /* the chunk's head never ends */
    } else if (strncmp(request, "GET /head ", 10) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\n");
        flood(fd, "X-Head: of a thousand lines\r\n");
    } else if (strncmp(request, "GET /seen ", 10) == 0) {
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                 strlen(request));
        say(fd, text);
        say(fd, request);
    } else if (strncmp(request, "GET /silent ", 12) == 0) {
        char byte;

        while (recv(fd, &byte, 1, 0) > 0) {
        }
    } else {
        say(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
    }
}

static void *
serve(void *arg)
{
    const server *self = arg;
    char request[4096];

    for (;;) {
        int fd = accept4(self->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            return NULL;
        size_t body = read_request(fd, request, sizeof request);
        answer(fd, request, body);
        close(fd);
    }
}

static int
setup(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    char host[8];
    uint16_t port;
    int status = net_setup(state);

    if (errand_http_origin("http://x/", host, sizeof host, &port) ==
        ERRAND_EUNSUPPORTED) {
        net_teardown(state);
        test_skip("libcurl is not there");
    }
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    the_server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(the_server.fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(the_server.fd, 16), 0);
    assert_int_equal(getsockname(the_server.fd, (struct sockaddr *)&at, &size), 0);
    the_server.port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&the_server.thread, NULL, serve, &the_server), 0);
    return status;
}

static int
teardown(void **state)
{
    shutdown(the_server.fd, SHUT_RDWR);
    pthread_join(the_server.thread, NULL);
    close(the_server.fd);
    return net_teardown(state);
}

static const char *
url_of(const char *path)
{
    static char url[128];

    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", the_server.port, path);
    return url;
}

static errand_http_config
config_of(const char *path)
{
    return (errand_http_config){.struct_size = sizeof(errand_http_config),
                                .url = url_of(path)};
}

static const errand_http_response *
request(net_rig *rig, const errand_http_config *config, net_result *result)
{
    errand_spec spec;

    assert_int_equal(errand_spec_http(&spec, config), ERRAND_OK);
    net_run(rig, &spec, result);
    if (result->outcome != ERRAND_COMPLETED)
        return NULL;
    assert_ptr_equal(result->payload.held_type, &errand_http_response_type);
    return result->payload.data;
}

static const char *
header_of(const errand_http_response *response, const char *name)
{
    for (size_t i = 0; i < response->header_count; i++)
        if (strcmp(response->headers[i].name, name) == 0)
            return response->headers[i].value;
    return NULL;
}

static void
a_get_gives_status_headers_and_body(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of("/plain");
    const errand_http_response *response = request(rig, &config, &result);

    assert_non_null(response);
    assert_int_equal(response->status, 200);
    assert_string_equal(response->url, url_of("/plain"));
    assert_string_equal(header_of(response, "X-One"), "1");
    assert_int_equal(response->body.size, 5);
    assert_string_equal((const char *)response->body.bytes, "hello");
    assert_null(response->location);
    config.url = url_of("/none");
    response = request(rig, &config, &result); /* a result, too */
    assert_int_equal(response->status, 404);
    net_clear(&result);
}

static void
a_post_sends_its_body_and_headers(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of("/echo");
    const char *const headers[] = {"X-Mine: yes", NULL}, *const bad[] = {"X: a\nb", NULL};

    config.flags = ERRAND_HTTP_POST;
    config.body = "some body";
    config.body_size = 9;
    config.headers = headers;
    const errand_http_response *response = request(rig, &config, &result);
    assert_non_null(response);
    assert_int_equal(response->status, 201);
    assert_string_equal(header_of(response, "X-Seen"), "yes");
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

    config->url = url_of(path);
    const errand_http_response *response = request(rig, config, &result);
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
    errand_http_config config = config_of("/method");
    errand_spec spec;

    config.method = "DELETE";
    expect_method(rig, &config, "/method", "DELETE||");
    config.method = "HEAD";
    const errand_http_response *response = request(rig, &config, &result);
    assert_non_null(response);
    assert_int_equal(response->body.size, 0);
    assert_string_equal(header_of(response, "X-Seen"), "head");
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
    errand_http_config config = config_of("/method");
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
    assert_true(errand_http_repeats("HEAD", 0, 303));
    assert_true(errand_http_repeats(NULL, 0, 303));
    assert_false(errand_http_repeats("DELETE", 0, 303));
}

static void
redirects_are_followed_as_far_as_they_may(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of("/moved");
    const errand_http_response *response = request(rig, &config, &result);

    assert_int_equal(response->status, 301);
    assert_string_equal(response->location, url_of("/plain"));
    config.url = url_of("/moved");
    config.redirects_max = 3;
    response = request(rig, &config, &result);
    assert_int_equal(response->status, 200);
    assert_string_equal(response->url, url_of("/plain"));
    assert_string_equal((const char *)response->body.bytes, "hello");
    config.url = url_of("/around");
    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_REDIRECTS);
    config.url = url_of("/other");
    response = request(rig, &config, &result);
    assert_int_equal(response->status, 302);
    assert_string_equal(response->location, "http://other.invalid/x");
    net_clear(&result);
}

static void
limits_of_size_and_time_end_a_request(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of("/large");
    const errand_http_response *response = request(rig, &config, &result);
    errand_spec spec;

    assert_int_equal(response->body.size, LARGE);
    for (size_t i = 0; i < LARGE; i++)
        assert_int_equal(response->body.bytes[i], 'a' + i % 23);
    config.body_max = LARGE - 1;
    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_TOO_LARGE);
    config = config_of("/silent");
    config.limit_ns = 30000000;
    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    config = config_of("/silent");
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
    errand_http_config config = config_of("/short");

    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_RECEIVE_FAILED);
    config = config_of("/rubbish");
    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_PROTOCOL);
    config.url = "http://127.0.0.1:1/";
    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_CONNECTION_FAILED);
}

static void
a_server_that_sends_for_ever_holds_nobody_beyond_the_limit(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of("/flood");
    uint64_t before = errand_deadline_in(0);

    config.limit_ns = 100000000;
    assert_null(request(rig, &config, &result));
    assert_non_null(strstr(result.message, "longer than 100 ms"));
    net_assert_failed(&result, ERRAND_OPERATION_TIMEOUT);
    assert_true(errand_deadline_in(0) - before < UINT64_C(20000000000));
    config = config_of("/head");
    config.body_max = 10;
    assert_null(request(rig, &config, &result));
    assert_non_null(strstr(result.message, "head is larger than 262144 bytes"));
    net_assert_failed(&result, ERRAND_OPERATION_PROTOCOL);
}

static void
a_server_sees_the_headers_that_were_given_and_no_user_of_the_url(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_of("/seen");
    const char *const headers[] = {"X-Empty:", "X-Blank: ", "X-One: 1", NULL};
    const char *bad[] = {NULL, NULL};
    static const char *const wrong[] = {": 1",    "X One: 1", "X",
                                        "X\t: 1", "X;",       "\xc3: 1"};
    char url[160];
    errand_spec spec;

    config.headers = headers;
    snprintf(url, sizeof url, "http://me:secret@%s", url_of("/seen") + strlen("http://"));
    config.url = url;
    const errand_http_response *response = request(rig, &config, &result);
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
    errand_http_config config = config_of("/plain");

    snprintf(url, sizeof url, "http://some.invalid:%u/plain", the_server.port);
    config.url = url;
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_EINVAL);
    config.addresses = &addresses;
    const errand_http_response *response = request(rig, &config, &result);
    assert_non_null(response);
    assert_int_equal(response->status, 200);
    net_clear(&result);
    assert_int_equal(errand_http_origin(url, host, sizeof host, &port), ERRAND_OK);
    assert_string_equal(host, "some.invalid");
    assert_int_equal(port, the_server.port);
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
    errand_http_config config = config_of("/large");
    size_t got = 0;
    errand_spec spec;

    config.flags = ERRAND_HTTP_STREAM;
    config.body_max = 1; /* not of a streamed one */
    const errand_http_response *response = request(rig, &config, &result);
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
    assert_int_equal(got, LARGE);
    net_clear(&item);
    errand_source_abandon(&pieces);
    response = request(rig, &config, &result); /* left in the middle */
    assert_non_null(response);
    net_clear(&result);
}

/* ---- certificates ------------------------------------------------------------------------------- */

static errand_process *
start_secure_server(net_rig *rig, const char *dir, uint16_t port)
{
    char at[32], cert[96], key[96], command[512];
    const char *const argv[] = {"openssl", "s_server", "-accept", at,     "-cert",
                                cert,      "-key",     key,       "-www", NULL};
    const errand_process_config config = {.struct_size = sizeof config,
                                          .argv = argv,
                                          .flags = ERRAND_PROCESS_OUTPUT |
                                                   ERRAND_PROCESS_TOGETHER};
    net_result result = {.started = false};
    errand_source *output;
    errand_spec spec;

    snprintf(at, sizeof at, "127.0.0.1:%u", port);
    snprintf(cert, sizeof cert, "%s/cert.pem", dir);
    snprintf(key, sizeof key, "%s/key.pem", dir);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
             "-days 2 -subj /CN=secure.invalid -addext "
             "subjectAltName=DNS:secure.invalid -keyout %s -out %s 2>/dev/null",
             key, cert);
    if (system(command) != 0)
        return NULL;
    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    errand_process *process = result.payload.data;
    result.payload.data = NULL;
    assert_int_equal(errand_source_output(process, ERRAND_OUTPUT_OUT, NULL, &output),
                     ERRAND_OK);
    bool ready = false;
    while (!ready) {
        assert_int_equal(errand_source_next(output, &spec), ERRAND_OK);
        net_run(rig, &spec, &result);
        assert_non_null(result.payload.data);
        ready = strstr((const char *)((errand_file_bytes *)result.payload.data)->bytes,
                       "ACCEPT") != NULL;
    }
    net_clear(&result);
    errand_source_abandon(&output);
    return process;
}

static void
certificates_are_checked_unless_it_is_asked_for(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    const errand_address address = {
        .family = 4, .bytes = {127, 0, 0, 1}, .text = "127.0.0.1"};
    const errand_addresses addresses = {.addresses = &address, .count = 1};
    char dir[] = "/tmp/errand-http-XXXXXX", url[128], other[128], ca[96], command[64];
    errand_http_config config = {.struct_size = sizeof config};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    uint16_t port = errand_listener_local(listener).port;

    errand_listener_abandon(&listener); /* a port that is free */
    assert_non_null(mkdtemp(dir));
    errand_process *process = start_secure_server(rig, dir, port);
    if (process == NULL)
        test_skip("openssl is not there");
    snprintf(url, sizeof url, "https://secure.invalid:%u/", port);
    snprintf(other, sizeof other, "https://wrong.invalid:%u/", port);
    snprintf(ca, sizeof ca, "%s/cert.pem", dir);
    config.url = url;
    config.addresses = &addresses;
    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_CERTIFICATE);
    config.ca_file = ca;
    const errand_http_response *response = request(rig, &config, &result);
    if (response == NULL)
        print_error("%s\n", result.message);
    assert_non_null(response);
    assert_int_equal(response->status, 200);
    config.url = other; /* the right authority, and another name */
    assert_null(request(rig, &config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_CERTIFICATE);
    config.ca_file = NULL;
    config.flags = ERRAND_HTTP_UNCHECKED;
    assert_non_null(request(rig, &config, &result));
    net_clear(&result);
    errand_process_abandon(&process);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

int
main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    static const struct CMUnitTest tests[] = {
        WITH_SERVER(a_get_gives_status_headers_and_body),
        WITH_SERVER(a_post_sends_its_body_and_headers),
        WITH_SERVER(a_method_is_sent_as_it_was_given),
        WITH_SERVER(a_redirect_repeats_what_it_may),
        WITH_SERVER(redirects_are_followed_as_far_as_they_may),
        WITH_SERVER(limits_of_size_and_time_end_a_request),
        WITH_SERVER(servers_that_break_off_or_babble_are_failures),
        WITH_SERVER(a_server_that_sends_for_ever_holds_nobody_beyond_the_limit),
        WITH_SERVER(a_server_sees_the_headers_that_were_given_and_no_user_of_the_url),
        WITH_SERVER(names_need_addresses_and_get_them),
        WITH_SERVER(a_streamed_body_is_a_source),
        WITH_SERVER(certificates_are_checked_unless_it_is_asked_for),
    };
    return test_group("operations/net/http", tests, NULL, NULL);
}
