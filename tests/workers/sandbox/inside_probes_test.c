/* SPDX-License-Identifier: MIT */
/* Goal: under the policy PURE a job in a worker can do what computing needs, and everything else ends
 * in the error or the death that is designed for it; nothing of it reaches anybody else.
 * Method: a table of what a hostile object tries and what is to become of it, each in a worker of
 * its own, by a host of a few lines (inside_rig). */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hostile.h"
#include "inside_rig.h"

typedef enum verdict {
    ANSWERS, /* with that result, and errno 0 unless one is given */
    FAILS,   /* with -1 and that errno */
    DIES,    /* of that signal */
    EXITS    /* with that code */
} verdict;
typedef struct trial {
    const char *label;
    hostile_request request;
    verdict verdict;
    int64_t value;
} trial;

#define CALL(name, ...)                                                                  \
#name,                                                                               \
    {                                                                                    \
        "call", SYS_##name, {__VA_ARGS__}, ""                                            \
    }
#define PROBE(name, number)                                                              \
    name,                                                                                \
    {                                                                                    \
        name, number, {0}, ""                                                            \
    }
#define TEXT HOSTILE_TEXT
#define HERE HOSTILE_SCRATCH
#define SELF HOSTILE_SELF

/* Tries it in that worker: what became of it. */
static void
try_once(inside *worker, const trial *now)
{
    uint32_t length = 0;
    inside_ask(worker, 0, &now->request, sizeof now->request);
    uint32_t status = inside_answer(worker, &length);
    if (now->verdict == DIES || now->verdict == EXITS) {
        int ended = status == 0 ? worker->wait_status : -1;
        bool right =
            now->verdict == DIES
                ? ended != -1 && WIFSIGNALED(ended) && WTERMSIG(ended) == now->value
                : ended != -1 && WIFEXITED(ended) && WEXITSTATUS(ended) == now->value;
        if (!right)
            fail_msg("%s: answered %u, wait status 0x%x", now->label, status,
                     (unsigned)ended);
        return;
    }
    if (status == 0)
        fail_msg("%s: ended with wait status 0x%x", now->label,
                 (unsigned)worker->wait_status);
    hostile_response response;
    if (status != ERRAND__WIRE_DONE || length != sizeof response)
        fail_msg("%s: status %u, %u bytes", now->label, status, length);
    memcpy(&response, inside_bytes(worker), sizeof response);
    bool right = now->verdict == FAILS
                     ? response.result == -1 && response.error == now->value
                     : response.result == now->value;
    if (!right)
        fail_msg("%s: result %lld, errno %d", now->label, (long long)response.result,
                 response.error);
}

static void
try_all(const trial *trials, size_t count, const errand_sandbox_policy *policy)
{
    inside worker;
    bool alive = false;
    for (size_t i = 0; i < count; i++) {
        if (!alive)
            inside_start_ready(&worker, &(inside_start_how){.policy = policy});
        try_once(&worker, &trials[i]);
        alive = trials[i].verdict == ANSWERS || trials[i].verdict == FAILS;
        if (!alive)
            inside_end(&worker);
    }
    if (alive)
        inside_end(&worker);
}
#define TRY_ALL(trials, policy)                                                          \
    try_all(trials, sizeof(trials) / sizeof((trials)[0]), policy)

/* C-L1, C-L2, C-L3: what the C library and its habits need. */
static void
computing_goes_on_as_usual(void **state)
{
    (void)state;
    static const trial trials[] = {
        {PROBE("ordinary", 0), ANSWERS, 0},
        {PROBE("speak", 0), ANSWERS, 0},
        {PROBE("signals", 0), ANSWERS, 0}, /* C-G3 */
        {PROBE("close everything", 0), ANSWERS, 0},
        {PROBE("ordinary", 0), ANSWERS, 0},
        {CALL(getpid), ANSWERS, 0},
    };
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){0});
    for (size_t i = 0; i + 1 < sizeof trials / sizeof trials[0]; i++)
        try_once(&worker, &trials[i]);
    trial own = trials[sizeof trials / sizeof trials[0] - 1];
    own.value = worker.pid;
    try_once(&worker, &own);
    inside_end(&worker);
}

static void
what_can_be_done_without_gets_an_error(void **state)
{
    (void)state;
    static const trial trials[] = {
        {CALL(clone3, HERE, 88), FAILS, ENOSYS}, /* C-L1 */
        {CALL(openat2, -100, TEXT, HERE, 24), FAILS, ENOSYS},
        {CALL(faccessat2, -100, TEXT), FAILS, ENOSYS},
        {CALL(statx, -100, TEXT, 0, 0, HERE), FAILS, ENOSYS},
        {CALL(rseq, HERE, 32), FAILS, ENOSYS},
        {CALL(set_robust_list, HERE, 24), FAILS, ENOSYS},
        {CALL(membarrier), FAILS, ENOSYS},
        {CALL(memfd_create, TEXT), FAILS, ENOSYS},
        {CALL(io_uring_setup, 8, HERE), FAILS, ENOSYS},
        {CALL(userfaultfd), FAILS, ENOSYS},
        {CALL(sched_getaffinity, 0, 128, HERE), FAILS, ENOSYS},
        {CALL(sysinfo, HERE), FAILS, ENOSYS},
        {"a call of the future", {"call", 470, {0}, ""}, FAILS, ENOSYS},
        {"the first after those known", {"call", 450, {0}, ""}, FAILS, ENOSYS},
        {CALL(clone, SIGCHLD), FAILS, EAGAIN},
        {CALL(clone, CLONE_VM | CLONE_VFORK | SIGCHLD), FAILS, EAGAIN},
        {PROBE("fork", 0), FAILS, EAGAIN},
        {PROBE("fork bomb", 0), ANSWERS, 0},
        {PROBE("thread", 0), FAILS, EAGAIN},
        {CALL(prlimit64, 0, 3, HERE), FAILS, EPERM},
        {CALL(prctl, 1 /* PR_SET_PDEATHSIG */, 0), FAILS, EPERM},
        {CALL(prctl, 4 /* PR_SET_DUMPABLE */, 1), FAILS, EPERM},
        {CALL(prctl, 22 /* PR_SET_SECCOMP */, 2, HERE), FAILS, EPERM},
        {CALL(ioctl, 0, 0x5401, HERE), FAILS, ENOTTY},
        {CALL(fcntl, 0, F_DUPFD, 0), FAILS, EINVAL},
        {CALL(uname, HERE), FAILS, EFAULT},
        {CALL(getuid), ANSWERS, 0},
        {"open", {"open", O_RDONLY, {0}, "/etc/passwd"}, FAILS, EACCES},
        {"open to write",
         {"open", O_WRONLY | O_CREAT, {0}, "/tmp/errand-x"},
         FAILS,
         EACCES},
        {"dlopen", {"dlopen", 0, {0}, "libutil.so.1"}, ANSWERS, -1},
        {CALL(socket, AF_INET, SOCK_STREAM, 0), FAILS, EACCES},
        {CALL(socket, AF_UNIX, SOCK_STREAM, 0), FAILS, EACCES},
        {PROBE("map code", 0), FAILS, EACCES},
        {PROBE("map code", 1), FAILS, EACCES},
        {PROBE("protect code", 0), FAILS, EACCES},
        {PROBE("protect request", 0), FAILS, EACCES},
        {CALL(getrandom, HOSTILE_REQUEST, 16, 0), FAILS, EFAULT},
        {CALL(clock_gettime, 0, HOSTILE_REQUEST), FAILS, EFAULT},
    };
    TRY_ALL(trials, NULL);
}

#if defined(__x86_64__)
/* What a worker that uses the gate of 32 bits dies of: some virtual machines have none, and nobody
 * passes there. */
static int
end_at_the_old_gate(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        long answer;

        signal(SIGSEGV, SIG_DFL);
        __asm__ volatile("int $0x80" : "=a"(answer) : "0"(20L) : "memory");
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : SIGSYS;
}
#endif

/* The old calls of x86-64, which other machines never had. */
static void
old_calls_get_an_error(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static const trial trials[] = {
        {CALL(open, TEXT, O_RDONLY), FAILS, EACCES},
        {CALL(access, TEXT, 0), FAILS, EACCES},
        {CALL(stat, TEXT, HERE), FAILS, EACCES},
        {CALL(lstat, TEXT, HERE), FAILS, EACCES},
        {CALL(fstat, 0, HERE), FAILS, EACCES},
        {CALL(newfstatat, -100, TEXT, HERE, 0), FAILS, EACCES},
        {CALL(newfstatat, 0, TEXT, HERE, 0x1000), FAILS, EACCES},
        {CALL(readlink, TEXT, HERE, 64), FAILS, EACCES},
    };
    const trial deadly[] = {
        {CALL(fork), DIES, SIGSYS},
        {CALL(vfork), DIES, SIGSYS},
        {PROBE("old gate", 0), DIES, end_at_the_old_gate()},
        {"x32", {"call", 0x40000000 + 39, {0}, ""}, DIES, SIGSYS},
    };
    TRY_ALL(trials, NULL);
    TRY_ALL(deadly, NULL);
#else
    test_skip("not an x86-64");
#endif
}

static const trial deadly_calls[] = {
    {CALL(execve, TEXT, 0, 0), DIES, SIGSYS},
    {CALL(execveat, 0, TEXT, 0, 0, 0x1000), DIES, SIGSYS},
    {CALL(ptrace, PTRACE_TRACEME), DIES, SIGSYS},
    {CALL(kill, -1, SIGKILL), DIES, SIGSYS},
    {CALL(kill, SELF, SIGSTOP), DIES, SIGSYS},
    {CALL(tkill, SELF, SIGABRT), DIES, SIGSYS},
    {CALL(tgkill, SELF, SELF, SIGSTOP), DIES, SIGSYS},
    {CALL(tgkill, 1, 1, SIGABRT), DIES, SIGSYS},
    {CALL(rt_sigqueueinfo, SELF, SIGUSR1, HERE), DIES, SIGSYS},
    {CALL(process_vm_readv, 1, HERE, 1, HERE, 1, 0), DIES, SIGSYS},
    {CALL(process_vm_writev, 1, HERE, 1, HERE, 1, 0), DIES, SIGSYS},
    {CALL(pidfd_open, 1, 0), DIES, SIGSYS},
    {CALL(pidfd_getfd, 0, 0, 0), DIES, SIGSYS},
    {CALL(pidfd_send_signal, 0, 9, 0, 0), DIES, SIGSYS},
    {CALL(connect, 0, HERE, 16), DIES, SIGSYS},
    {CALL(bind, 0, HERE, 16), DIES, SIGSYS},
    {CALL(sendto, 0, HERE, 1), DIES, SIGSYS},
    {CALL(recvmsg, 0, HERE, 0), DIES, SIGSYS},
    {CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, HERE), DIES, SIGSYS},
    {CALL(mmap, 0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0), DIES, SIGSYS},
    {CALL(mmap, 0, 4096, PROT_READ, MAP_PRIVATE, 0, 0), DIES, SIGSYS},
    {CALL(madvise, HERE, 4096, MADV_REMOVE), DIES, SIGSYS},
    {CALL(madvise, HERE, 4096, MADV_WILLNEED), DIES, SIGSYS},
    {CALL(mlockall, 1), DIES, SIGSYS},
    {CALL(remap_file_pages, HERE, 4096, 0, 0, 0), DIES, SIGSYS},
    {CALL(pkey_mprotect, HERE, 4096, 7, -1), DIES, SIGSYS},
    {CALL(process_madvise, 0, HERE, 1, 4, 0), DIES, SIGSYS},
    {CALL(dup, 0), DIES, SIGSYS},
    {CALL(pipe2, HERE, 0), DIES, SIGSYS},
    {CALL(eventfd2, 0, 0), DIES, SIGSYS},
    {CALL(epoll_create1, 0), DIES, SIGSYS},
    {CALL(timerfd_create, 0, 0), DIES, SIGSYS},
    {CALL(signalfd4, -1, HERE, 8, 0), DIES, SIGSYS},
    {CALL(inotify_init1, 0), DIES, SIGSYS},
    {CALL(ftruncate, 3, 0), DIES, SIGSYS},
    {CALL(fallocate, 3, 0, 0, 1), DIES, SIGSYS},
    {CALL(sendfile, 0, 0, 0, 1), DIES, SIGSYS},
    {CALL(splice, 0, 0, 0, 0, 1, 0), DIES, SIGSYS},
    {CALL(copy_file_range, 0, 0, 0, 0, 1, 0), DIES, SIGSYS},
    {CALL(pread64, 0, HERE, 1, 0), DIES, SIGSYS},
    {CALL(unlinkat, -100, TEXT, 0), DIES, SIGSYS},
    {CALL(fchmodat, -100, TEXT, 0777), DIES, SIGSYS},
    {CALL(utimensat, -100, TEXT, 0, 0), DIES, SIGSYS},
    {CALL(chdir, TEXT), DIES, SIGSYS},
    {CALL(open_by_handle_at, -100, HERE, 0), DIES, SIGSYS},
    {CALL(mount, TEXT, TEXT, TEXT, 0, 0), DIES, SIGSYS},
    {CALL(chroot, TEXT), DIES, SIGSYS},
    {CALL(pivot_root, TEXT, TEXT), DIES, SIGSYS},
    {CALL(futex, HERE, FUTEX_CMP_REQUEUE, 1, 1, HERE, 0), DIES, SIGSYS},
    {CALL(futex, HERE, FUTEX_LOCK_PI, 0, 0), DIES, SIGSYS},
    {CALL(futex, HERE, FUTEX_WAKE_OP, 1, 1, HERE, 0), DIES, SIGSYS},
    {CALL(futex, HERE, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 1, 1, HERE, 0), DIES,
     SIGSYS},
    {CALL(setrlimit, 3, HERE), DIES, SIGSYS},
    {CALL(setsid), DIES, SIGSYS},
    {CALL(setpgid, 0, 0), DIES, SIGSYS},
    {CALL(getppid), DIES, SIGSYS},
    {CALL(wait4, -1, 0, 0, 0), DIES, SIGSYS},
    {CALL(io_uring_enter, 0, 0, 0, 0, 0, 0), DIES, SIGSYS},
    {CALL(io_uring_register, 0, 0, 0, 0), DIES, SIGSYS},
    {CALL(unshare, CLONE_NEWUSER), DIES, SIGSYS},
    {CALL(setns, 0, 0), DIES, SIGSYS},
    {CALL(bpf, 0, HERE, 8), DIES, SIGSYS},
    {CALL(perf_event_open, HERE, 0, -1, -1, 0), DIES, SIGSYS},
    {CALL(keyctl, 0, 0, 0), DIES, SIGSYS},
    {CALL(add_key, TEXT, TEXT, HERE, 1, 0), DIES, SIGSYS},
    {CALL(sched_setscheduler, 0, 0, HERE), DIES, SIGSYS},
    {CALL(sched_setaffinity, 0, 8, HERE), DIES, SIGSYS},
    {CALL(setpriority, 0, 0, -10), DIES, SIGSYS},
    {CALL(setitimer, 0, HERE, 0), DIES, SIGSYS},
    {CALL(timer_create, 0, 0, HERE), DIES, SIGSYS},
    {CALL(shmget, 0, 4096, 0), DIES, SIGSYS},
    {CALL(msgget, 0, 0), DIES, SIGSYS},
    {CALL(semget, 0, 1, 0), DIES, SIGSYS},
    {CALL(mq_open, TEXT, 0, 0, 0), DIES, SIGSYS},
    {CALL(setuid, 0), DIES, SIGSYS},
    {CALL(capset, HERE, HERE), DIES, SIGSYS},
    {CALL(personality, 0), DIES, SIGSYS},
    {CALL(clock_settime, 0, HERE), DIES, SIGSYS},
    {CALL(init_module, HERE, 1, TEXT), DIES, SIGSYS},
    {CALL(kexec_load, 0, 0, 0, 0), DIES, SIGSYS},
    {CALL(reboot, 0, 0, 0, 0), DIES, SIGSYS},
    {CALL(seccomp, 1, 0, HERE), DIES, SIGSYS},
    {CALL(landlock_create_ruleset, 0, 0, 1), DIES, SIGSYS},
    {CALL(landlock_restrict_self, 0, 0), DIES, SIGSYS},
    {CALL(close_range, 3, 100, 0), DIES, SIGSYS},
    {CALL(futex_waitv, HERE, 1, 0, 0, 0), DIES, SIGSYS},
};

static void
everything_else_ends_the_worker(void **state)
{
    (void)state;
    TRY_ALL(deadly_calls, NULL);
}

static void
the_parent_cannot_be_reached(void **state)
{
    (void)state;
    int64_t parent = getpid();
    const trial trials[] = {
        {CALL(kill, parent, SIGKILL), DIES, SIGSYS},
        {CALL(kill, parent, 0), DIES, SIGSYS},
        {CALL(tgkill, parent, parent, SIGABRT), DIES, SIGSYS},
        {CALL(ptrace, PTRACE_ATTACH, parent, 0, 0), DIES, SIGSYS},
        {CALL(process_vm_writev, parent, HERE, 1, HERE, 1, 0), DIES, SIGSYS},
        {CALL(prlimit64, parent, 3, HERE), FAILS, EPERM},
        {CALL(pidfd_open, parent, 0), DIES, SIGSYS},
    };
    TRY_ALL(trials, NULL);
}

/* The same calls, in the policy that reports: the number is told, and the worker ends by itself. */
static void
a_denied_call_is_named_where_that_is_asked(void **state)
{
    (void)state;
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.on_deny = ERRAND_DENY_REPORT;
    for (size_t i = 0; i < sizeof deadly_calls / sizeof deadly_calls[0]; i++) {
        trial now = deadly_calls[i];
        now.verdict = EXITS;
        now.value = ERRAND__EXIT_DENIED;
        inside worker;
        inside_start_ready(&worker, &(inside_start_how){.policy = &policy});
        try_once(&worker, &now);
        uint32_t told =
            atomic_load_explicit(&worker.response->denied_call, memory_order_relaxed);
        if ((int64_t)told != now.request.number + 1)
            fail_msg("%s: told %u", now.label, told);
        inside_end(&worker);
    }
}

/* Each fault ends the worker by its own signal, and its address is told. */
static void
faults_keep_their_signal(void **state)
{
    (void)state;
    static const trial trials[] = {
        {PROBE("write null", 0x18), DIES, SIGSEGV},
        {PROBE("divide", 0), DIES, SIGFPE},
        {PROBE("illegal", 0), DIES, SIGILL},
        {PROBE("write request", 0), DIES, SIGSEGV},
        {PROBE("grow request", 0), DIES, SIGSEGV},
        {PROBE("stack bomb", 0), DIES, SIGSEGV}, /* C-F9 */
        {PROBE("abort", 0), DIES, SIGABRT},
        {PROBE("double free", 0), DIES, SIGABRT},
        {PROBE("memory unchecked", 0), DIES, SIGSEGV},
        {PROBE("raise", SIGABRT), DIES, SIGABRT},
        {PROBE("raise", SIGSEGV), DIES, SIGSYS},
    };
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        inside worker;
        inside_start_ready(&worker, &(inside_start_how){0});
        try_once(&worker, &trials[i]);
        uint32_t told =
            atomic_load_explicit(&worker.response->fault_signal, memory_order_relaxed);
        uint64_t at =
            atomic_load_explicit(&worker.response->fault_address, memory_order_relaxed);
        bool faulted = trials[i].value != SIGSYS;
        assert_int_equal(told, faulted ? (uint32_t)trials[i].value : 0);
        if (i == 0)
            assert_int_equal(at, 0x18);
        inside_end(&worker);
    }
}

static void
ends_of_its_own_are_seen_as_they_are(void **state)
{
    (void)state;
    static const trial trials[] = {
        {PROBE("exit", 0), EXITS, 0},         {PROBE("exit", 7), EXITS, 7},
        {PROBE("_exit", 42), EXITS, 42},      {PROBE("exit", 124), EXITS, 124},
        {PROBE("_exit", 159), EXITS, 159},    {PROBE("_exit", 90), EXITS, 90},
        {PROBE("pthread_exit", 0), EXITS, 0},
    };
    TRY_ALL(trials, NULL);
}

static void
memory_is_bounded_and_refused_politely(void **state)
{
    (void)state;
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.memory_bytes = UINT64_C(64) << 20;
    inside worker;
    inside_start_ready(
        &worker, &(inside_start_how){.policy = &policy, .response_bytes = 32u << 20});
    hostile_request request = {.name = "memory checked", .number = 10000};
    inside_ask(&worker, 0, &request, sizeof request);
    uint32_t length;
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_DONE);
    hostile_response response;
    memcpy(&response, inside_bytes(&worker), sizeof response);
    assert_int_equal(response.error, ENOMEM);
    /* The rings do not count. */
    assert_in_range(response.result, 40, 64);
    inside_end(&worker);
}

/* A second of processor time, on a machine that may be busy with others. */
static void
burns_up_to_its_limit(const char *name, int64_t number, int signal_number)
{
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.cpu_seconds = 1;
    trial now = {name, {.number = number}, DIES, signal_number};
    strcpy(now.request.name, name);
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){.policy = &policy});
    worker.patience_s = 55;
    (void)setpriority(PRIO_PROCESS, (id_t)worker.pid, -15);
    try_once(&worker, &now);
    inside_end(&worker);
}

static void
processor_time_is_bounded(void **state)
{
    (void)state;
    burns_up_to_its_limit("burn", 0, SIGXCPU);
}

static void
processor_time_is_bounded_for_the_deaf_too(void **state)
{
    (void)state;
    burns_up_to_its_limit("burn deaf", 0, SIGKILL);
}

/* Nothing that a job does with its signals keeps it alive. */
static void
the_host_can_end_it_whatever_it_does(void **state)
{
    (void)state;
    static const char *const names[] = {"burn", "burn deaf", "sleep", "catch own"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        inside worker;
        inside_start_ready(&worker, &(inside_start_how){0});
        hostile_request request = {.number = 1000};
        strcpy(request.name, names[i]);
        inside_ask(&worker, 0, &request, sizeof request);
        errand__wire_await_answer(&worker.waiter, worker.request, worker.response,
                                  worker.seen, 20 * 1000000);
        assert_int_equal(kill(worker.pid, SIGKILL), 0);
        int status = inside_wait(&worker);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        inside_end(&worker);
    }
}

/* Only /dev/null is open, and the rings are not. */
static void
it_has_three_descriptors(void **state)
{
    (void)state;
    static const trial trials[] = {{PROBE("write everywhere", 0), ANSWERS, 3}};
    TRY_ALL(trials, NULL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_goes_on_as_usual),
        cmocka_unit_test(what_can_be_done_without_gets_an_error),
        cmocka_unit_test(old_calls_get_an_error),
        cmocka_unit_test(everything_else_ends_the_worker),
        cmocka_unit_test(the_parent_cannot_be_reached),
        cmocka_unit_test(a_denied_call_is_named_where_that_is_asked),
        cmocka_unit_test(faults_keep_their_signal),
        cmocka_unit_test(ends_of_its_own_are_seen_as_they_are),
        cmocka_unit_test(memory_is_bounded_and_refused_politely),
        cmocka_unit_test(processor_time_is_bounded),
        cmocka_unit_test(processor_time_is_bounded_for_the_deaf_too),
        cmocka_unit_test(the_host_can_end_it_whatever_it_does),
        cmocka_unit_test(it_has_three_descriptors),
    };
    return test_group("workers/sandbox/inside_probes", tests, NULL, NULL);
}
