/* SPDX-License-Identifier: MIT */
/* Goal: who asks a template for a worker cannot have one that may do more than the template was started
 * for, and nobody but its host is answered (S16).  Method: the real program, started and asked by this
 * process without a pool. */
#include "inside_rig.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"
#include "reach.h"

#define SEAL_FUTURE_WRITE 0x0010

typedef struct file {
    void *bytes;
    size_t size;
    int fd;
} file;

typedef struct world {
    errand__launcher launcher;
    int32_t pid;
    int fd, socket, lifeline; /* of the template */
    file request, response;   /* of a worker */
    int ends[2];
} world;

static size_t
pages(size_t size)
{
    return (size + ERRAND__WIRE_PAGE - 1) & ~(size_t)(ERRAND__WIRE_PAGE - 1);
}

static file
make_file(size_t size, int seals)
{
    file made = {.size = pages(size)};

    made.bytes = mmap(NULL, made.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(made.bytes, MAP_FAILED);
    assert_int_equal(
        errand__sandbox_map_file("file", made.bytes, made.size, seals, &made.fd), 0);
    return made;
}

static void
drop_file(file *self)
{
    munmap(self->bytes, self->size);
    close(self->fd);
}

/* A request file with that policy, and the policy's entries or none. */
static file
make_request(const errand_sandbox_policy *values, bool entries, size_t response_size)
{
    errand__policy policy;
    char text[256];
    const size_t at = pages(sizeof(errand__wire_request));

    assert_int_equal(errand__policy_create(values, &policy, text, sizeof text),
                     ERRAND_OK);
    size_t count = entries ? policy.values.entry_count : 0;
    size_t setup = errand__setup_size(&policy, policy.values.entries, count);
    file made = make_file(at + pages(setup) + ERRAND__WIRE_PAGE * 2, SEAL_FUTURE_WRITE);
    errand__wire_request *request = made.bytes;

    errand__sandbox_sign(request);
    request->request_file_size = made.size;
    request->response_file_size = response_size;
    request->setup_offset = at;
    request->setup_size = setup;
    request->body_offset = at + pages(setup);
    request->body_size = request->return_size = ERRAND__WIRE_PAGE;
    request->return_offset = request->body_offset + ERRAND__WIRE_PAGE;
    request->response_offset = pages(sizeof(errand__wire_response));
    request->response_size = response_size - request->response_offset;
    errand__setup_write(&policy, policy.values.entries, count, (uint32_t)getpid(),
                        (unsigned char *)made.bytes + at);
    errand__policy_destroy(&policy);
    return made;
}

static errand__wire_birth
hear(const world *self, int *out_fd)
{
    errand__wire_birth birth = {.ticket = 77};
    struct iovec part = {&birth, sizeof birth};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } more;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &more,
                             .msg_controllen = sizeof more.room};

    *out_fd = -1;
    if (recvmsg(self->socket, &message, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof birth &&
        CMSG_FIRSTHDR(&message) != NULL)
        memcpy(out_fd, CMSG_DATA(&more.head), sizeof *out_fd);
    return birth;
}

static void
start_template(world *self, const errand_sandbox_policy *policy)
{
    file request = make_request(policy, false, pages(sizeof(errand__wire_response)) * 2);
    int sockets[2], pipes[2], none;

    assert_true(
        errand__launcher_make(test_reachable(ERRAND_TEST_WORKER), &self->launcher));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    const errand__worker_files files = {.request_fd = request.fd,
                                        .response_fd = sockets[1],
                                        .lifeline_fd = pipes[0],
                                        .input_fd = -1,
                                        .join_fd = -1,
                                        .template = true};

    assert_int_equal(
        self->launcher.start(self->launcher.arg, &files, &self->pid, &self->fd), 0);
    close(sockets[1]);
    close(pipes[0]);
    drop_file(&request);
    self->socket = sockets[0];
    self->lifeline = pipes[1];
    assert_int_equal(hear(self, &none).ticket, 0);
}

static void
end_template(world *self)
{
    errand__worker_end end = {.known = false};

    close(self->socket);
    self->launcher.reap(self->launcher.arg, self->pid, self->fd, &end);
    assert_true(end.known);
    assert_int_equal(end.code, CLD_EXITED);
    assert_int_equal(end.status, 0);
    close(self->lifeline);
    self->launcher.destroy(self->launcher.arg);
}

static void
make_files(world *self, const errand_sandbox_policy *policy)
{
    self->response = make_file(pages(sizeof(errand__wire_response)) * 2, 0);
    self->request = make_request(policy, true, self->response.size);
    assert_int_equal(pipe2(self->ends, O_CLOEXEC), 0);
}

static void
drop_files(world *self)
{
    drop_file(&self->request);
    drop_file(&self->response);
    close(self->ends[0]);
    close(self->ends[1]);
}

static void
ask(const world *self)
{
    const errand__wire_ask question = {.ticket = 5};
    const int fds[3] = {self->request.fd, self->response.fd, self->ends[0]};
    struct iovec part = {(void *)(uintptr_t)&question, sizeof question};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fds)];
    } more = {.room = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &more,
                             .msg_controllen = sizeof more.room};

    more.head = (struct cmsghdr){CMSG_LEN(sizeof fds), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&more.head), fds, sizeof fds);
    assert_int_equal(sendmsg(self->socket, &message, MSG_NOSIGNAL), sizeof question);
}

static void
who_asks_cannot_have_a_worker_that_may_do_more(void **state) /* S16 */
{
    const uint32_t held =
        ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP | ERRAND_LAYER_RLIMITS;
    errand_sandbox_policy strict = inside_policy(ERRAND_PROMISE_PURE);
    errand_sandbox_policy lax = inside_policy(ERRAND_PROMISE_THREAD);
    world self;
    siginfo_t info;
    int fd;

    (void)state;
    lax.want_layers = lax.require_layers = ERRAND_LAYER_NO_NEW_PRIVS;
    start_template(&self, &strict);
    make_files(&self, &lax);
    ask(&self);
    errand__wire_birth birth = hear(&self, &fd);
    assert_int_equal(birth.ticket, 5);
    assert_int_equal(birth.error, 0);
    assert_true(errand__pidfd_names(fd, birth.pid));
    assert_false(errand__pidfd_names(fd, getpid()));
    assert_int_equal(errand__pidfd_shown(fd),
                     birth.pid); /* all that older kernels tell */
    assert_int_equal(errand__pidfd_shown(STDIN_FILENO), 0);
    errand__wire_response *response = self.response.bytes;
    while (atomic_load_explicit(&response->ready, memory_order_acquire) == 0)
        errand__wire_sleep(&response->ready, 0, UINT64_C(1000000)); /* watchdog */
    assert_int_equal(response->ready, 1);
    assert_int_equal(response->layers & held, held);
    assert_int_equal(kill(birth.pid, SIGKILL), 0); /* it is this process's child */
    assert_int_equal(waitid(P_PID, (id_t)birth.pid, &info, WEXITED), 0);
    assert_int_equal(info.si_status, SIGKILL);
    close(fd);
    drop_files(&self);
    end_template(&self);
}

static void
nobody_but_the_host_is_answered(void **state) /* S16 */
{
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    world self;
    int fd, status;

    (void)state;
    start_template(&self, &policy);
    make_files(&self, &policy);
    pid_t child = fork(); /* it has the socket, too */
    if (child == 0) {
        ask(&self);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(hear(&self, &fd).ticket, 77); /* it has ended */
    assert_int_equal(fd, -1);
    drop_files(&self);
    end_template(&self);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_cannot_have_a_worker_that_may_do_more),
        cmocka_unit_test(nobody_but_the_host_is_answered),
    };
    return test_group("workers/sandbox/inside_template", tests, NULL, NULL);
}
