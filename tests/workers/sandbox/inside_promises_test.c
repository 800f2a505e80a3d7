/* SPDX-License-Identifier: MIT */
/* Goal: each promise permits what it says, within its paths and ports, and nothing beside.
 * Method: a hostile object in a worker of each policy tries both; the outcome is one of a table. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hostile.h"
#include "inside_rig.h"

enum { DIES = -1 }; /* instead of an errno: of SIGSYS */

static char folder[40]; /* with readable, writable, and a file in each */

static void
text_of(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", folder, name);
}

static int
folders_make(void **state)
{
    (void)state;
    static const char *const names[] = {"readable", "writable", "outside"};
    strcpy(folder, "/tmp/errand-promises-XXXXXX");
    if (mkdtemp(folder) == NULL || chmod(folder, 0777) != 0)
        return -1;
    for (size_t i = 0; i < 3; i++) {
        char path[128], file[160];
        text_of(names[i], path, sizeof path);
        snprintf(file, sizeof file, "%s/file", path);
        if (mkdir(path, 0777) != 0 || chmod(path, 0777) != 0)
            return -1;
        int made = open(file, O_CREAT | O_WRONLY, 0666);
        if (made < 0 || write(made, "abc", 3) != 3 || fchmod(made, 0666) != 0)
            return -1;
        close(made);
    }
    return 0;
}

static int
folders_remove(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* One trial in a worker of its own: result and errno, or error DIES. */
static hostile_response
try_in(const errand_sandbox_policy *policy, const hostile_request *request)
{
    inside worker;
    hostile_response response = {0};
    inside_start_ready(&worker, &(inside_start_how){.policy = policy});
    inside_ask(&worker, 0, request, sizeof *request);
    uint32_t length, status = inside_answer(&worker, &length);
    if (status == ERRAND__WIRE_DONE) {
        assert_int_equal(length, sizeof response);
        memcpy(&response, inside_bytes(&worker), sizeof response);
    } else {
        int ended = inside_wait(&worker);
        if (!WIFSIGNALED(ended) || WTERMSIG(ended) != SIGSYS)
            fail_msg("%s %lld: status %u, wait status 0x%x", request->name,
                     (long long)request->number, status, (unsigned)ended);
        response.error = DIES;
    }
    inside_end(&worker);
    return response;
}

/* error 0: the result is not negative. */
static void
expect(const errand_sandbox_policy *policy, const char *name, int64_t number,
       const char *text, int error)
{
    hostile_request request = {.number = number};
    strcpy(request.name, name);
    if (text != NULL && text[0] != '/')
        snprintf(request.text, sizeof request.text, "%s/%s", folder, text);
    else if (text != NULL)
        snprintf(request.text, sizeof request.text, "%s", text);
    hostile_response got = try_in(policy, &request);
    bool right = error == 0 ? got.error != DIES && got.result >= 0 : got.error == error;
    if (!right)
        fail_msg("%s %lld %s: result %lld, errno %d, not %d", name, (long long)number,
                 request.text, (long long)got.result, got.error, error);
}

static void
expect_call(const errand_sandbox_policy *policy, int64_t number, int64_t a, int64_t b,
            int64_t c, int64_t d, const char *text, int error)
{
    hostile_request request = {
        .name = "call", .number = number, .arguments = {a, b, c, d}};
    if (text != NULL)
        snprintf(request.text, sizeof request.text, "%s/%s", folder, text);
    hostile_response got = try_in(policy, &request);
    bool right = error == 0 ? got.error != DIES && got.result >= 0 : got.error == error;
    if (!right)
        fail_msg("call %lld (%lld, %lld, %lld, %lld) %s: result %lld, errno %d, not %d",
                 (long long)number, (long long)a, (long long)b, (long long)c,
                 (long long)d, request.text, (long long)got.result, got.error, error);
}

static void
rpath_reads_below_its_paths_only(void **state)
{
    (void)state;
    inside_need_layer(ERRAND_LAYER_LANDLOCK);
    char path[128];
    text_of("readable", path, sizeof path);
    const errand_sandbox_path paths[] = {{path, ERRAND_PATH_READ}};
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_RPATH);
    policy.paths = paths;
    policy.path_count = 1;
    expect(&policy, "open", O_RDONLY, "readable/file", 0);
    expect(&policy, "open", O_RDONLY | O_DIRECTORY, "readable",
           EISDIR); /* opened; read says so */
    expect(&policy, "open", O_RDONLY, "readable/none", ENOENT);
    expect(&policy, "open", O_RDONLY, "outside/file", EACCES);
    expect(&policy, "open", O_RDONLY, "readable/../outside/file", EACCES);
    expect(&policy, "open", O_RDONLY, "/etc/passwd", EACCES);
    expect(&policy, "open", O_RDONLY, "/proc/self/maps", EACCES);
    /* Libraries were readable while they were opened, and are no more. */
    expect(&policy, "open", O_RDONLY, "/etc/ld.so.cache", EACCES);
    expect(&policy, "dlopen", 0, "/lib/x86_64-linux-gnu/libutil.so.1", EACCES);
    expect(&policy, "open", O_WRONLY, "readable/file", EACCES);
    expect(&policy, "open", O_RDWR, "readable/file", EACCES);
    expect(&policy, "open", O_RDONLY | O_TRUNC, "readable/file", EACCES);
    expect(&policy, "open", O_RDONLY | O_CREAT, "readable/new", EACCES);
    expect(&policy, "open", O_TMPFILE | O_RDWR, "readable", EACCES);
    expect_call(&policy, SYS_newfstatat, AT_FDCWD, HOSTILE_TEXT, HOSTILE_SCRATCH, 0,
                "readable/file", 0);
    expect_call(&policy, SYS_openat2, AT_FDCWD, HOSTILE_TEXT, HOSTILE_SCRATCH, 24,
                "readable/file", ENOSYS);
    expect_call(&policy, SYS_unlinkat, AT_FDCWD, HOSTILE_TEXT, 0, 0, "readable/file",
                DIES);
    expect_call(&policy, SYS_ftruncate, 0, 0, 0, 0, NULL, DIES);
    expect_call(&policy, SYS_socket, AF_INET, SOCK_STREAM, 0, 0, NULL, EACCES);
    expect_call(&policy, SYS_execve, HOSTILE_TEXT, 0, 0, 0, "readable/file", DIES);
    expect(&policy, "map code", 0, NULL, EACCES);
    expect_call(&policy, SYS_fcntl, 0, F_SETOWN, 1, 0, NULL, EINVAL);
    expect_call(&policy, SYS_fcntl, 0, F_GETFL, 0, 0, NULL, 0);
    /* The lifeline stays as it is, under whatever number. */
    expect_call(&policy, SYS_fcntl, ERRAND__WIRE_LIFELINE_FD, F_SETFL, 0, 0, NULL,
                EINVAL);
    expect_call(&policy, SYS_fcntl, ERRAND__WIRE_LIFELINE_FD, F_DUPFD, 0, 0, NULL,
                EINVAL);
    expect_call(&policy, SYS_fcntl, ERRAND__WIRE_LIFELINE_FD, F_DUPFD_CLOEXEC, 0, 0, NULL,
                EINVAL);
}

static void
one_file_can_be_named(void **state)
{
    (void)state;
    inside_need_layer(ERRAND_LAYER_LANDLOCK);
    char path[128];
    text_of("readable/file", path, sizeof path);
    const errand_sandbox_path paths[] = {{path, ERRAND_PATH_READ}};
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_RPATH);
    policy.paths = paths;
    policy.path_count = 1;
    expect(&policy, "open", O_RDONLY, "readable/file", 0);
    expect(&policy, "open", O_RDONLY, "outside/file", EACCES);
    expect(&policy, "open", O_RDONLY | O_DIRECTORY, "readable", EACCES);
}

static void
wpath_writes_below_its_paths_only(void **state)
{
    (void)state;
    if (inside_landlock_abi() < 3)
        test_skip("needs landlock ABI 3");
    char path[128];
    text_of("writable", path, sizeof path);
    const errand_sandbox_path paths[] = {{path, ERRAND_PATH_WRITE}};
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_WPATH);
    policy.paths = paths;
    policy.path_count = 1;
    policy.file_bytes = 1000;
    expect(&policy, "open", O_WRONLY, "writable/file", 0);
    expect(&policy, "open", O_WRONLY | O_TRUNC, "writable/file", 0);
    expect(&policy, "open", O_WRONLY | O_CREAT | O_EXCL, "writable/new", 0);
    expect(&policy, "open", O_RDONLY, "writable/file", EACCES);
    expect(&policy, "open", O_WRONLY, "outside/file", EACCES);
    expect(&policy, "open", O_WRONLY | O_CREAT, "outside/new", EACCES);
    expect(&policy, "open", O_WRONLY | O_TRUNC, "readable/file", EACCES);
#ifdef SYS_creat
    expect_call(&policy, SYS_creat, HOSTILE_TEXT, 0644, 0, 0, "writable/created", 0);
    expect_call(&policy, SYS_creat, HOSTILE_TEXT, 0644, 0, 0, "outside/created", EACCES);
#endif
    expect_call(&policy, SYS_mkdirat, AT_FDCWD, HOSTILE_TEXT, 0755, 0, "writable/made",
                0);
    expect_call(&policy, SYS_mkdirat, AT_FDCWD, HOSTILE_TEXT, 0755, 0, "outside/made",
                EACCES);
    expect_call(&policy, SYS_unlinkat, AT_FDCWD, HOSTILE_TEXT, 0, 0, "writable/new", 0);
    expect_call(&policy, SYS_unlinkat, AT_FDCWD, HOSTILE_TEXT, 0, 0, "outside/file",
                EACCES);
    /* What landlock does not cover is no part of the promise. */
    expect_call(&policy, SYS_fchmodat, AT_FDCWD, HOSTILE_TEXT, 0777, 0, "writable/file",
                DIES);
    expect_call(&policy, SYS_fchownat, AT_FDCWD, HOSTILE_TEXT, 0, 0, "writable/file",
                DIES);
    expect_call(&policy, SYS_utimensat, AT_FDCWD, HOSTILE_TEXT, 0, 0, "writable/file",
                DIES);
    expect_call(&policy, SYS_mknodat, AT_FDCWD, HOSTILE_TEXT, 0644, 0, "writable/x",
                DIES);
    expect_call(&policy, SYS_symlinkat, HOSTILE_TEXT, AT_FDCWD, HOSTILE_TEXT, 0,
                "writable/x", DIES);
    expect_call(&policy, SYS_linkat, AT_FDCWD, HOSTILE_TEXT, AT_FDCWD, HOSTILE_TEXT, "x",
                DIES);
    expect_call(&policy, SYS_truncate, HOSTILE_TEXT, 0, 0, 0, "writable/file", DIES);
    expect_call(&policy, SYS_sendfile, 0, 0, 0, 1, NULL, DIES);
}

static void
thread_makes_threads_and_no_processes(void **state)
{
    (void)state;
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_THREAD);
    expect(&policy, "thread", 0, NULL, 0);
    expect(&policy, "ordinary", 0, NULL, 0);
    expect(&policy, "fork", 0, NULL, EAGAIN);
    expect_call(&policy, SYS_clone3, HOSTILE_SCRATCH, 88, 0, 0, NULL, ENOSYS);
    expect_call(&policy, SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, NULL,
                EAGAIN);
    expect_call(&policy, SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, NULL, EAGAIN);
    /* A thread's flags and one more. */
    int64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                     CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                     CLONE_CHILD_CLEARTID;
    expect_call(&policy, SYS_clone, thread | CLONE_NEWNET, 0, 0, 0, NULL, DIES);
    expect_call(&policy, SYS_clone, thread & ~(int64_t)CLONE_FILES, 0, 0, 0, NULL, DIES);
    expect(&policy, "open", O_RDONLY, "readable/file", EACCES);
    expect_call(&policy, SYS_tgkill, 1, 1, SIGABRT, 0, NULL, DIES);
}

/* A listener on a port of its own; *out_port. */
static int
listener(uint16_t *out_port)
{
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_true(file >= 0);
    assert_int_equal(bind(file, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(file, 8), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&at, &size), 0);
    *out_port = ntohs(at.sin_port);
    return file;
}

static void
inet_connects_to_its_ports_only(void **state)
{
    (void)state;
    if (inside_landlock_abi() < 4)
        test_skip("needs landlock ABI 4");
    uint16_t port, other;
    int first = listener(&port), second = listener(&other);
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_INET);
    policy.tcp_ports = &port;
    policy.port_count = 1;
    expect(&policy, "connect", port, NULL, 0);
    expect(&policy, "connect", other, NULL, EACCES);
    expect_call(&policy, SYS_socket, AF_INET, SOCK_DGRAM, 0, 0, NULL, EACCES);
    expect_call(&policy, SYS_socket, AF_INET6, SOCK_RAW, 58, 0, NULL, EACCES);
    expect_call(&policy, SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, NULL, EACCES);
    expect_call(&policy, SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, NULL, EACCES);
    /* Multipath TCP, whose ports no ruleset sees. */
    expect_call(&policy, SYS_socket, AF_INET, SOCK_STREAM, 262, 0, NULL, DIES);
    expect_call(&policy, SYS_socket, AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP,
                0, NULL, 0);
    expect_call(&policy, SYS_bind, 0, HOSTILE_SCRATCH, 16, 0, NULL, DIES);
    expect_call(&policy, SYS_listen, 0, 1, 0, 0, NULL, DIES);
    expect_call(&policy, SYS_sendmsg, 0, HOSTILE_SCRATCH, MSG_FASTOPEN, 0, NULL, DIES);
    expect_call(&policy, SYS_sendto, 0, HOSTILE_SCRATCH, 1, MSG_FASTOPEN, NULL, DIES);
    expect_call(&policy, SYS_sendto, 0, HOSTILE_SCRATCH, 1, 0, NULL, ENOTSOCK);
    expect_call(&policy, SYS_sendmmsg, 0, HOSTILE_SCRATCH, 1, 0, NULL, DIES);
    expect_call(&policy, SYS_setsockopt, 0, SOL_SOCKET, SO_BINDTODEVICE, HOSTILE_SCRATCH,
                NULL, DIES);
    expect_call(&policy, SYS_setsockopt, 0, IPPROTO_TCP, 1, HOSTILE_SCRATCH, NULL,
                ENOTSOCK);
    expect(&policy, "open", O_RDONLY, "readable/file", EACCES);
    close(first);
    close(second);
}

static void
callback_permits_no_call_more(void **state)
{
    (void)state;
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_CALLBACK);
    expect(&policy, "map code", 0, NULL, EACCES);
    expect(&policy, "map code", 1, NULL, EACCES);
    expect(&policy, "protect code", 0, NULL, EACCES);
    expect(&policy, "open", O_RDONLY, "readable/file", EACCES);
    expect_call(&policy, SYS_execve, HOSTILE_TEXT, 0, 0, 0, "x", DIES);
}

/* Libraries below a path with EXECUTE can be opened at the start, and not be read later. */
static void
execute_is_for_the_start_only(void **state)
{
    (void)state;
    inside_need_layer(ERRAND_LAYER_LANDLOCK);
    char path[128];
    text_of("readable", path, sizeof path);
    const errand_sandbox_path paths[] = {{path, ERRAND_PATH_EXECUTE}};
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.paths = paths;
    policy.path_count = 1;
    expect(&policy, "open", O_RDONLY, "readable/file", EACCES);
    expect(&policy, "ordinary", 0, NULL, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rpath_reads_below_its_paths_only),
        cmocka_unit_test(one_file_can_be_named),
        cmocka_unit_test(wpath_writes_below_its_paths_only),
        cmocka_unit_test(thread_makes_threads_and_no_processes),
        cmocka_unit_test(inet_connects_to_its_ports_only),
        cmocka_unit_test(callback_permits_no_call_more),
        cmocka_unit_test(execute_is_for_the_start_only),
    };
    return test_group("workers/sandbox/inside_promises", tests, folders_make,
                      folders_remove);
}
