/* SPDX-License-Identifier: MIT */
/* Design notes: how a worker process is started and ended.
 *
 * - The host's memory is not copied, however large it is: as with vfork, the child runs in it, on a
 *   stack of its own, until it has become the program; the starting thread sleeps meanwhile.  What
 *   it does there are system calls and nothing else.  No signal is let through, since a handler of the
 *   host's would run in the child.
 * - Nothing of the host's goes along: no environment, no descriptor but the files and the policy's
 *   paths, no blocked or ignored signal; a process group of its own, so that a terminal's keys do
 *   not reach it.
 * - It is named by a pidfd from its first moment, given by the call that makes it: a number that is
 *   used again later cannot be mistaken, however fast the worker dies and whoever reaps it.
 * - A host may reap our children, or have the system do it.  The kernel keeps what happened with the
 *   pidfd, where it is new enough; else the end is known and its reason is not. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* What the kernel tells of a pidfd; newer than some headers. */
typedef struct pidfd_info {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ids[8];
    int32_t exit_code;
    uint32_t more[2];
} pidfd_info;
#define INFO_EXIT 8u /* asked, and answered: the exit code */
#define GET_INFO  _IOWR(0xFF, 11, pidfd_info)
_Static_assert(sizeof(pidfd_info) == 72, "a length that the kernel knows");

typedef struct program {
    size_t size;
    char *stack; /* of a child until it has become the program */
    char path[];
} program;

/* By its other name: ThreadSanitizer takes every clone for a fork of all memory. */
#if defined(__GLIBC__)
extern int __clone(int (*body)(void *), void *stack, int flags, void *arg, ...);
#define BARE_CLONE __clone
#else
#define BARE_CLONE clone
#endif
#define STACK_SIZE ((size_t)64 * 1024)
#define SIGNALS    64

typedef struct birth {
    const char *path;
    char *stack;
    const char *word;   /* what it is started as */
    const int *sources; /* the last is for descriptors 0 to 2 */
    size_t count;
    int error; /* written by the child: why there is no program */
} birth;

/* Sanitizers would take the child for the host's thread, which calls and never returns. */
#if defined(__clang__) && __has_attribute(disable_sanitizer_instrumentation)
#define UNSEEN __attribute__((disable_sanitizer_instrumentation))
#else
#define UNSEEN __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

/* Inside the child, in the host's memory. */
UNSEEN static int
become_program(void *arg)
{
    birth *self = arg;
    const char *const arguments[] = {"errand-worker", self->word, NULL};
    const char *const environment[] = {NULL};
    const uint64_t none = 0, by_default[8] = {0};

    for (int fd = 0; fd < ERRAND__WIRE_REQUEST_FD; fd++)
        if (syscall(SYS_dup3, self->sources[self->count - 1], fd, 0) < 0)
            goto failed;
    for (size_t i = 0; i + 1 < self->count; i++)
        if (syscall(SYS_dup3, self->sources[i], ERRAND__WIRE_REQUEST_FD + (int)i, 0) < 0)
            goto failed;
    /* Where there is no such call the worker closes the rest before it opens anything. */
    (void)syscall(SYS_close_range, ERRAND__WIRE_REQUEST_FD + self->count - 1, ~0u, 0);
    for (int number = 1; number <= SIGNALS; number++)
        (void)syscall(SYS_rt_sigaction, number, by_default, NULL, sizeof none);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
    (void)syscall(SYS_setpgid, 0, 0);
    (void)syscall(SYS_execve, self->path, arguments, environment);
failed:
    self->error = errno;
    syscall(SYS_exit, 127);
    return 0;
}

/* Whoever took its status before is welcome to it. */
static void
forget_child(int fd)
{
    siginfo_t info;

    while (waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED) != 0 && errno == EINTR) {
    }
    close(fd);
}

static int
give_birth(birth *self, int32_t *out_pid, int *out_fd)
{
    const uint64_t all = UINT64_MAX;
    const int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
    uint64_t before;
    int error, pid, fd = -1;

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    pid = BARE_CLONE(become_program, self->stack + STACK_SIZE, flags, self, &fd);
    error = pid < 0 ? errno : self->error;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof all);
    if (error != 0) {
        if (pid >= 0)
            forget_child(fd);
        return error;
    }
    *out_pid = pid;
    *out_fd = fd;
    return 0;
}

/* The files' numbers must not be among those that they are given in the worker: a later dup2 would
 * close an earlier source. */
static int
start(void *arg, const errand__worker_files *files, int32_t *out_pid, int *out_fd)
{
    const program *self = arg;
    int sources[6 + ERRAND__WIRE_PATHS];
    const size_t paths = 3 + files->path_count, inputs = paths + (files->input_fd >= 0);
    const size_t joins = inputs + (files->join_fd >= 0);
    birth child = {.path = self->path,
                   .stack = self->stack,
                   .word =
                       files->template ? ERRAND__WIRE_TEMPLATE : ERRAND__WIRE_ARGUMENT,
                   .sources = sources,
                   .count = joins + 1};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), error = null < 0 ? errno : 0;
    size_t moved = 0;

    for (; moved < child.count && error == 0; moved++) {
        int fd = moved == 0       ? files->request_fd
                 : moved == 1     ? files->response_fd
                 : moved == 2     ? files->lifeline_fd
                 : moved < paths  ? files->path_fds[moved - 3]
                 : moved < inputs ? files->input_fd
                 : moved < joins  ? files->join_fd
                                  : null;

        sources[moved] =
            fcntl(fd, F_DUPFD_CLOEXEC, ERRAND__WIRE_REQUEST_FD + (int)child.count);
        if (sources[moved] < 0) {
            error = errno;
            break;
        }
    }
    if (error == 0)
        error = give_birth(&child, out_pid, out_fd);
    while (moved-- > 0)
        close(sources[moved]);
    if (null >= 0)
        close(null);
    return error;
}

static void
kill_worker(void *arg, int32_t pid, int fd)
{
    (void)arg;
    (void)pid;
    (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

bool
errand__pidfd_names(int fd, int32_t pid)
{
    pidfd_info more = {.mask = 0};

    if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) != 0 && errno == EBADF)
        return false;
    if (ioctl(fd, GET_INFO, &more) == 0)
        return more.tgid == (uint32_t)pid;
    return errand__pidfd_shown(fd) == pid; /* before Linux 6.13 */
}

int32_t
errand__pidfd_shown(int fd)
{
    static const char name[] = "\nPid:\t";
    char path[64], text[1024];
    const char *line = NULL;

    errand__text_format(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return 0;
    ssize_t size = read(from, text, sizeof text - 1);
    close(from);
    if (size > 0) {
        text[size] = '\0';
        line = strstr(text, name);
    }
    return line == NULL ? 0 : (int32_t)strtol(line + sizeof name - 1, NULL, 10);
}

static uint64_t
time_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_usec * 1000;
}

/* A raw status, as of wait, into what a siginfo would say. */
static void
split_status(int32_t status, errand__worker_end *out_end)
{
    out_end->known = true;
    out_end->wait_status = status;
    if (WIFEXITED(status)) {
        out_end->code = CLD_EXITED;
        out_end->status = WEXITSTATUS(status);
    } else {
        out_end->code = WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
        out_end->status = WTERMSIG(status);
    }
}

static void
reap(void *arg, int32_t pid, int fd, errand__worker_end *out_end)
{
    siginfo_t info = {.si_pid = 0};
    struct rusage used;
    long answer;

    (void)arg;
    (void)pid;
    do
        answer = syscall(SYS_waitid, P_PIDFD, fd, &info, WEXITED, &used);
    while (answer != 0 && errno == EINTR);
    if (answer == 0) {
        out_end->known = true;
        out_end->code = info.si_code;
        out_end->status = info.si_status;
        out_end->wait_status =
            info.si_code == CLD_EXITED
                ? info.si_status << 8
                : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
        out_end->user_ns = time_of(&used.ru_utime);
        out_end->system_ns = time_of(&used.ru_stime);
        out_end->peak_bytes = (uint64_t)used.ru_maxrss * 1024;
    } else {
        pidfd_info more = {.mask = INFO_EXIT};

        if (ioctl(fd, GET_INFO, &more) == 0 && (more.mask & INFO_EXIT) != 0)
            split_status(more.exit_code, out_end);
    }
    close(fd);
}

static void
destroy(void *arg)
{
    program *self = arg;

    errand__mem_unmap(self->stack, STACK_SIZE);
    errand__mem_free(NULL, self, self->size);
}

bool
errand__launcher_make(const char *path, errand__launcher *out_launcher)
{
    size_t size = sizeof(program) + strlen(path) + 1;
    program *self = errand__mem_alloc(NULL, size);

    if (self == NULL)
        return false;
    self->size = size;
    self->stack = errand__mem_map(STACK_SIZE);
    if (self->stack == NULL) {
        errand__mem_free(NULL, self, size);
        return false;
    }
    memcpy(self->path, path, strlen(path) + 1);
    *out_launcher =
        (errand__launcher){start, kill_worker, reap, destroy, self, self->path, true};
    return true;
}
