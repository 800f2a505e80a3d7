/* SPDX-License-Identifier: MIT */
/* Design notes: how a worker process is started and ended.
 *
 * - posix_spawn: the host's memory is not copied, however large it is.  Nothing of the host's goes
 *   along: no environment, no descriptor but the files and the policy's paths, no blocked or ignored
 *   signal; a process group of its own, so that a terminal's keys do not reach it.
 * - From then on it is named by a pidfd: a number that is used again later cannot be mistaken.  (The
 *   descriptor is opened right after the start; a host whose other threads reap any child could take
 *   a worker that died within those microseconds.  Then the descriptor is somebody else's child, or
 *   nobody's, which waitid tells, and the start has failed.)
 * - A host may reap our children, or have the system do it.  The kernel keeps what happened with the
 *   pidfd, where it is new enough; else the end is known and its reason is not. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
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
    char path[];
} program;

static int
describe(posix_spawn_file_actions_t *actions, const int *sources, size_t count)
{
    int error = 0;

    for (int fd = 0; fd < 3 && error == 0; fd++)
        error = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    for (size_t i = 0; i < count && error == 0; i++)
        error = posix_spawn_file_actions_adddup2(actions, sources[i],
                                                 ERRAND__WIRE_REQUEST_FD + (int)i);
    if (error == 0)
        error = posix_spawn_file_actions_addclosefrom_np(
            actions, ERRAND__WIRE_REQUEST_FD + (int)count);
    return error;
}

static int
attribute(posix_spawnattr_t *attributes)
{
    sigset_t all, none;

    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETPGROUP);
}

static int
spawn(const char *path, const int *sources, size_t count, pid_t *out_pid)
{
    char name[] = "errand-worker", serve[] = ERRAND__WIRE_ARGUMENT;
    char *const arguments[] = {name, serve, NULL}, *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);

    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = describe(&actions, sources, count);
        if (error == 0)
            error = attribute(&attributes);
        if (error == 0)
            error =
                posix_spawn(out_pid, path, &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* A pidfd that certainly is our child's. */
static int
open_child(pid_t pid, int *out_fd)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    siginfo_t info = {.si_pid = 0};
    int error;

    if (fd < 0) {
        error = errno;
        kill(pid, SIGKILL); /* not reaped yet, so it still is that one */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        return error;
    }
    if (waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        error = errno;
        close(fd);
        return error;
    }
    *out_fd = fd;
    return 0;
}

/* The files' numbers must not be among those that they are given in the worker: a later dup2 would
 * close an earlier source. */
static int
start(void *arg, const errand__worker_files *files, int32_t *out_pid, int *out_fd)
{
    const program *self = arg;
    int sources[5 + ERRAND__WIRE_PATHS];
    const size_t paths = 3 + files->path_count, inputs = paths + (files->input_fd >= 0);
    size_t count = inputs + (files->join_fd >= 0), moved = 0;
    int error = 0;
    pid_t pid;

    for (; moved < count && error == 0; moved++) {
        int fd = moved == 0       ? files->request_fd
                 : moved == 1     ? files->response_fd
                 : moved == 2     ? files->lifeline_fd
                 : moved < paths  ? files->path_fds[moved - 3]
                 : moved < inputs ? files->input_fd
                                  : files->join_fd;

        sources[moved] = fcntl(fd, F_DUPFD_CLOEXEC, ERRAND__WIRE_REQUEST_FD + (int)count);
        if (sources[moved] < 0) {
            error = errno;
            break;
        }
    }
    if (error == 0)
        error = spawn(self->path, sources, count, &pid);
    if (error == 0)
        error = open_child(pid, out_fd);
    while (moved-- > 0)
        close(sources[moved]);
    if (error == 0)
        *out_pid = (int32_t)pid;
    return error;
}

static void
kill_worker(void *arg, int32_t pid, int fd)
{
    (void)arg;
    (void)pid;
    (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
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
    memcpy(self->path, path, strlen(path) + 1);
    *out_launcher =
        (errand__launcher){start, kill_worker, reap, destroy, self, self->path};
    return true;
}
