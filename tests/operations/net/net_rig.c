/* SPDX-License-Identifier: MIT */
/* Goal: tests say what goes over a connection and what comes of it, and nothing else.
 * Method: see net_rig.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "net_rig.h"
#include "descriptors.h"

static void take(void *arg, errand_completion *completion);

int
net_setup(void **state)
{
    net_rig *made = calloc(1, sizeof *made);
    errand_reactor_config config = {.struct_size = sizeof config, .threads = 1};
    const char *backend = getenv("ERRAND_NET_BACKEND");

    assert_non_null(made);
    made->fds = test_count_descriptors();
    made->bytes = errand_testing_live_bytes();
    if (backend != NULL && strcmp(backend, "uring") == 0)
        config.backend = ERRAND_REACTOR_URING;
    else if (backend != NULL && strcmp(backend, "epoll") == 0)
        config.backend = ERRAND_REACTOR_EPOLL;
    else if (backend != NULL && strcmp(backend, "here") == 0)
        config.threads = 0;
    errand_status status = errand_reactor_create(&config, &made->executor);
    if (status == ERRAND_EUNSUPPORTED) {
        free(made);
        test_skip("this kernel refuses io_uring");
    }
    assert_int_equal(status, ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &made->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(made->runtime, made->executor, 0, &made->lease),
                     ERRAND_OK);
    *state = made;
    return 0;
}

int
net_teardown(void **state)
{
    net_rig *done = *state;
    errand_report report;

    assert_int_equal(errand_runtime_shutdown(&done->runtime,
                                             errand_deadline_in(30000000000u),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_true(report.clean);
    errand_executor_abandon(&done->executor);
    /* The loop's thread may have had the last reference, and end later. */
    uint64_t until = errand_deadline_in(20000000000u);
    while ((test_count_descriptors() != done->fds ||
            errand_testing_live_bytes() != done->bytes) &&
           errand_deadline_in(0) < until)
        sched_yield();
    assert_int_equal(test_count_descriptors(), done->fds);
    assert_int_equal(errand_testing_live_bytes(), done->bytes);
    free(done);
    return 0;
}

void
net_start(net_rig *rig, errand_spec *spec, net_result *result)
{
    void (*then)(net_rig *, net_result *) = result->then;
    void *arg = result->arg;

    net_clear(result);
    result->then = then;
    result->arg = arg;
    assert_int_equal(errand_start(rig->lease, spec, result, &result->identity),
                     ERRAND_OK);
    result->started = true;
}

void
net_turn(net_rig *rig, unsigned ms)
{
    size_t count;

    assert_int_equal(errand_park(rig->runtime, errand_runtime_now(rig->runtime) +
                                                   (uint64_t)ms * 1000000u),
                     ERRAND_OK);
    assert_int_equal(errand_drain(rig->runtime, 64, take, rig, &count), ERRAND_OK);
}

void
net_await(net_rig *rig, net_result *result)
{
    assert_true(result->started);
    while (!result->done)
        net_turn(rig, 1000);
}

void
net_run(net_rig *rig, errand_spec *spec, net_result *result)
{
    net_start(rig, spec, result);
    net_await(rig, result);
}

errand_cancel_answer
net_ask_back(net_rig *rig, net_result *result)
{
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(rig->runtime, &result->identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    return answer;
}

void
net_cancel(net_rig *rig, net_result *result)
{
    assert_int_equal(net_ask_back(rig, result), ERRAND_CANCEL_RUNNING);
}

void
net_await_running(net_rig *rig, uint64_t count)
{
    errand_snapshot snapshot;

    for (;;) {
        assert_int_equal(errand_runtime_snapshot(rig->runtime, &snapshot), ERRAND_OK);
        if (snapshot.running == count && snapshot.queued == 0)
            return;
        net_turn(rig, 1);
    }
}

static void
take(void *arg, errand_completion *completion)
{
    net_rig *rig = arg;
    net_result *result = completion->wait;

    assert_false(result->done);
    result->done = true;
    result->outcome = completion->outcome;
    result->code = completion->code;
    result->job_code = completion->job_code;
    result->sys_errno = completion->sys_errno;
    snprintf(result->message, sizeof result->message, "%s",
             completion->message == NULL ? "" : completion->message);
    result->payload = errand_completion_take(completion);
    if (result->then != NULL)
        result->then(rig, result);
}

void
net_clear(net_result *result)
{
    errand_payload_drop(&result->payload);
    *result = (net_result){.started = false};
}

void
net_assert_failed(net_result *result, errand_operation_code code)
{
    assert_true(result->done);
    if (result->job_code != (int32_t)code)
        print_error("%s\n", result->message);
    assert_int_equal(result->outcome, ERRAND_FAILED);
    assert_int_equal(result->code, ERRAND_CODE_JOB);
    assert_string_equal(errand_operation_code_name(result->job_code),
                        errand_operation_code_name((int32_t)code));
    assert_null(result->payload.data);
    net_clear(result);
}

void
net_assert_late(net_result *result)
{
    assert_true(result->done);
    assert_int_equal(result->outcome, ERRAND_FAILED);
    assert_int_equal(result->code, ERRAND_CODE_DEADLINE);
    assert_int_equal(result->job_code, ERRAND_OPERATION_STOPPED);
    assert_null(result->payload.data);
    net_clear(result);
}

static void
assert_completed(net_result *result)
{
    assert_true(result->done);
    if (result->outcome != ERRAND_COMPLETED)
        print_error("%s\n", result->message);
    assert_int_equal(result->outcome, ERRAND_COMPLETED);
}

void
net_assert_nothing(net_result *result)
{
    assert_completed(result);
    assert_null(result->payload.data);
    net_clear(result);
}

void
net_assert_bytes(net_result *result, const void *bytes, size_t size)
{
    assert_completed(result);
    assert_ptr_equal(result->payload.held_type, &errand_file_bytes_type);
    const errand_file_bytes *got = result->payload.data;
    assert_int_equal(got->size, size);
    assert_int_equal(got->bytes[size], 0);
    if (size > 0)
        assert_memory_equal(got->bytes, bytes, size);
    net_clear(result);
}

errand_stream *
net_take_stream(net_result *result)
{
    assert_completed(result);
    assert_ptr_equal(result->payload.held_type, &errand_stream_type);
    errand_stream *stream = result->payload.data;
    result->payload = (errand_payload){.data = NULL};
    net_clear(result);
    return stream;
}

/* ---- the usual ------------------------------------------------------------------------------- */

errand_endpoint
net_endpoint(const char *text)
{
    errand_endpoint endpoint;

    assert_int_equal(errand_endpoint_parse(text, &endpoint), ERRAND_OK);
    return endpoint;
}

errand_listener *
net_listen(net_rig *rig, const char *at)
{
    errand_endpoint endpoint = net_endpoint(at);
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_listen(&spec, &endpoint, NULL), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_completed(&result);
    assert_ptr_equal(result.payload.held_type, &errand_listener_type);
    return result.payload.data;
}

errand_stream *
net_accept(net_rig *rig, errand_listener *listener)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(errand_spec_accept(&spec, listener), ERRAND_OK);
    net_run(rig, &spec, &result);
    return net_take_stream(&result);
}

errand_stream *
net_pair(net_rig *rig, int *out_peer)
{
    errand_listener *listener = net_listen(rig, "127.0.0.1:0");
    errand_endpoint at = errand_listener_local(listener);

    *out_peer = net_peer_connect(&at);
    errand_stream *stream = net_accept(rig, listener);
    errand_listener_abandon(&listener);
    return stream;
}

int
net_peer_connect(const errand_endpoint *to)
{
    int fd;

    if (to->family == 4) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(to->port)};

        memcpy(&four.sin_addr, to->bytes, 4);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&four, sizeof four), 0);
    } else {
        struct sockaddr_un path = {.sun_family = AF_UNIX};

        assert_int_equal(to->family, ERRAND_ENDPOINT_UNIX);
        memcpy(path.sun_path, to->path, to->path_size);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(
            connect(fd, (struct sockaddr *)&path,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + to->path_size)),
            0);
    }
    return fd;
}

void
net_peer_write(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;

    while (size > 0) {
        ssize_t count = send(fd, at, size, MSG_NOSIGNAL);

        assert_true(count > 0);
        at += count;
        size -= (size_t)count;
    }
}

void
net_peer_read(int fd, void *bytes, size_t size)
{
    char *at = bytes;

    while (size > 0) {
        ssize_t count = read(fd, at, size);

        assert_true(count > 0);
        at += count;
        size -= (size_t)count;
    }
}

void
net_peer_reset(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
}
