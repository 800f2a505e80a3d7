/* SPDX-License-Identifier: MIT */
/* Goal: a request over https trusts nobody who cannot prove who he is, and holds no loop up while the
 * authorities' certificates are read.
 * Method: openssl's own server; a pipe with a name as the file of certificates, which the test fills
 * when it likes. */
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/process.h"
#include "errand/waits.h"
#include "http_rig.h"

static const uint64_t short_ns = 1000000, limit_ns = 100000000;
static char dir[64];
static errand_process *server;
static uint16_t port;

static const char *
path_of(const char *name)
{
    static char path[96];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static bool
make_certificate(void)
{
    char command[512];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
             "-days 2 -subj /CN=secure.invalid -addext "
             "subjectAltName=DNS:secure.invalid -keyout %s/key.pem -out %s/cert.pem "
             "2>/dev/null",
             dir, dir);
    return system(command) == 0;
}

static void
start_server(net_rig *rig)
{
    char at[32], cert[96], key[96];
    const char *const argv[] = {"openssl", "s_server", "-accept", at,     "-cert",
                                cert,      "-key",     key,       "-www", NULL};
    const errand_process_config config = {.struct_size = sizeof config,
                                          .argv = argv,
                                          .flags = ERRAND_PROCESS_OUTPUT |
                                                   ERRAND_PROCESS_TOGETHER};
    net_result result = {.started = false};
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_source *output;
    errand_spec spec;

    port = errand_listener_local(listener).port;
    errand_listener_abandon(&listener); /* a port that is free */
    snprintf(at, sizeof at, "127.0.0.1:%u", port);
    snprintf(cert, sizeof cert, "%s", path_of("cert.pem"));
    snprintf(key, sizeof key, "%s", path_of("key.pem"));
    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    server = result.payload.data;
    result.payload.data = NULL;
    assert_int_equal(errand_source_output(server, ERRAND_OUTPUT_OUT, NULL, &output),
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
}

static int
secure_setup(void **state)
{
    char host[8];
    int status = net_setup(state);

    server = NULL;
    snprintf(dir, sizeof dir, "/tmp/errand-secure-XXXXXX");
    assert_non_null(mkdtemp(dir));
    if (errand_http_origin("http://x/", host, sizeof host, &port) ==
            ERRAND_EUNSUPPORTED ||
        !make_certificate()) {
        net_teardown(state);
        test_skip("libcurl or openssl is not there");
    }
    start_server(*state);
    return status;
}

static int
secure_teardown(void **state)
{
    char command[128];

    errand_process_abandon(&server);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
    return net_teardown(state);
}

static errand_http_config
config_for(const char *host)
{
    static const errand_address address = {
        .family = 4, .bytes = {127, 0, 0, 1}, .text = "127.0.0.1"};
    static const errand_addresses addresses = {.addresses = &address, .count = 1};
    static char url[128];

    snprintf(url, sizeof url, "https://%s:%u/", host, port);
    return (errand_http_config){
        .struct_size = sizeof(errand_http_config), .url = url, .addresses = &addresses};
}

static void
a_timer_goes_on(net_rig *rig, uint64_t length_ns)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_timer(&spec, length_ns), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
}

static void
a_certificate_is_refused(net_rig *rig, const errand_http_config *config)
{
    net_result result = {.started = false};

    assert_null(http_request(rig, config, &result));
    net_assert_failed(&result, ERRAND_OPERATION_CERTIFICATE);
}

/* ---- who is trusted ------------------------------------------------------------------------------- */

static void
certificates_are_checked_unless_it_is_asked_for(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_for("secure.invalid");

    a_certificate_is_refused(rig, &config);
    config.ca_file = path_of("cert.pem");
    const errand_http_response *response = http_request(rig, &config, &result);
    if (response == NULL)
        print_error("%s\n", result.message);
    assert_non_null(response);
    assert_int_equal(response->status, 200);
    config = config_for("wrong.invalid"); /* the right authority, and another name */
    config.ca_file = path_of("cert.pem");
    a_certificate_is_refused(rig, &config);
    config.ca_file = NULL;
    config.flags = ERRAND_HTTP_UNCHECKED;
    assert_non_null(http_request(rig, &config, &result));
    net_clear(&result);
}

static void
authorities_that_are_missing_or_none_are_a_failure(void **state)
{
    net_rig *rig = *state;
    errand_http_config config = config_for("secure.invalid");

    config.ca_file = path_of("nothing");
    a_certificate_is_refused(rig, &config);
    config.ca_file = "/etc/passwd";
    a_certificate_is_refused(rig, &config);
}

/* ---- beside the loop ------------------------------------------------------------------------------ */

/* The other end of the pipe that is read in place of certificates, once somebody has opened it; -1:
 * the request has ended before. */
static int
await_reader(net_rig *rig, const net_result *result)
{
    int fd = -1;

    while (fd < 0 && !result->done) {
        net_turn(rig, 1);
        fd = open(path_of("authorities"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    }
    return fd;
}

static void
write_certificate(int fd)
{
    char bytes[4096];
    int from = open(path_of("cert.pem"), O_RDONLY | O_CLOEXEC);
    ssize_t size = read(from, bytes, sizeof bytes);

    assert_true(size > 0 && size < (ssize_t)sizeof bytes);
    assert_int_equal(write(fd, bytes, (size_t)size), size);
    close(from);
    close(fd);
}

/* L11 */
static void
authorities_are_read_beside_the_loop(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_for("secure.invalid");
    errand_spec spec;

    assert_int_equal(mkfifo(path_of("authorities"), 0600), 0);
    config.ca_file = path_of("authorities");
    assert_int_equal(errand_spec_http(&spec, &config), ERRAND_OK);
    net_start(rig, &spec, &result);
    int fd = await_reader(rig, &result);
    a_timer_goes_on(rig, short_ns);
    assert_false(result.done);
    write_certificate(fd);
    net_await(rig, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_int_equal(((const errand_http_response *)result.payload.data)->status, 200);
    net_clear(&result);
}

/* L11: its end is told when whoever reads has ended, too. */
static void
a_request_whose_authorities_are_read_can_be_given_up(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_for("secure.invalid");
    errand_spec spec;

    assert_int_equal(mkfifo(path_of("authorities"), 0600), 0);
    for (int i = 0; i < 2; i++) {
        config.ca_file = path_of("authorities");
        config.limit_ns = i == 0 ? 0 : limit_ns;
        assert_int_equal(errand_spec_http(&spec, &config), ERRAND_OK);
        net_start(rig, &spec, &result);
        int fd = await_reader(rig, &result);
        if (i == 0)
            net_cancel(rig, &result);
        a_timer_goes_on(rig, i == 0 ? short_ns : limit_ns);
        if (fd >= 0)
            write_certificate(fd);
        net_await(rig, &result);
        net_assert_failed(&result,
                          i == 0 ? ERRAND_OPERATION_STOPPED : ERRAND_OPERATION_TIMEOUT);
    }
}

/* L11 */
static void
an_upload_reads_its_authorities_beside_the_loop(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_for("secure.invalid");
    errand_spec spec;

    assert_int_equal(mkfifo(path_of("authorities"), 0600), 0);
    config.ca_file = path_of("authorities");
    config.body_size = 5;
    assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_OK);
    net_start(rig, &spec, &result);
    int fd = await_reader(rig, &result);
    a_timer_goes_on(rig, short_ns);
    assert_false(result.done);
    write_certificate(fd);
    net_await(rig, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    assert_ptr_equal(result.payload.held_type, &errand_http_upload_type);
    net_clear(&result);
}

/* ---- in a forked child ---------------------------------------------------------------------------- */

/* To the server, over the only connection to it; what the system sent again counts once. */
static uint64_t
bytes_sent(void)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer = {.sin_family = AF_UNSPEC};
        struct tcp_info info = {.tcpi_bytes_sent = 0};
        socklen_t size = sizeof peer, room = sizeof info;

        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
            peer.sin_family == AF_INET && ntohs(peer.sin_port) == port &&
            getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &room) == 0)
            return info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
    }
    return 0;
}

/* O61: what a forked child lets go of is closed there, and goes on here. */
static void
a_connection_is_its_makers_and_no_forked_childs(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_http_config config = config_for("secure.invalid");
    errand_spec spec;
    int status = -1;

    config.ca_file = path_of("cert.pem");
    config.body_size = 5;
    assert_int_equal(errand_spec_http_upload(&spec, &config), ERRAND_OK);
    net_run(rig, &spec, &result);
    if (result.outcome != ERRAND_COMPLETED)
        print_error("%s\n", result.message);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    errand_http_upload *upload = result.payload.data;
    result.payload.data = NULL;
    uint64_t sent = bytes_sent();
    pid_t child = fork();
    if (child == 0) {
        errand_http_upload_abandon(&upload);
        _exit(bytes_sent() != 0); /* closed */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_not_equal(sent, 0);
    assert_int_equal(bytes_sent(), sent);
    errand_http_upload_abandon(&upload);
}

int
main(void)
{
#define WITH_SERVER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, secure_setup, secure_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_SERVER(certificates_are_checked_unless_it_is_asked_for),
        WITH_SERVER(authorities_that_are_missing_or_none_are_a_failure),
        WITH_SERVER(authorities_are_read_beside_the_loop),
        WITH_SERVER(a_request_whose_authorities_are_read_can_be_given_up),
        WITH_SERVER(an_upload_reads_its_authorities_beside_the_loop),
        WITH_SERVER(a_connection_is_its_makers_and_no_forked_childs),
    };
    return test_group("operations/net/secure", tests, NULL, NULL);
}
