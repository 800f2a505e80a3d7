/* SPDX-License-Identifier: MIT */
/* child: start a process, signal its group, reap it.
 *
 * Design notes: posix_spawn does not copy the host's memory and runs none of its fork handlers.
 * The input is known in full, so stdin is a sealed file in memory instead of a pipe: nobody has
 * to feed it, so input and output cannot wait for each other, and no write of ours can meet a
 * closed end.  What posix_spawn answers cannot tell a missing directory from a missing command,
 * so cwd is opened and the command is looked for first.  A process is named by its pid only
 * while it is ours and not reaped: until then the number cannot be given to another. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "operations/operations.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

enum { PATH_ROOM = 4096 };

typedef struct ends {                  /* descriptors that are needed until the start */
    int in, feed, out[2], err[2], cwd; /* feed: our end of in */
} ends;

static bool find(const errand__child_plan *plan, char *room, const char **out_file,
                 errand__child_failure *failure);
static bool open_ends(errand_job *job, errand__stop *stop, const errand__child_plan *plan,
                      ends *made, errand__child_failure *failure);
static bool pipe_for(int *out_child, int *out_ours, bool feeds);
static bool output_for(bool unwanted, int made[2]);
static bool open_input(errand_job *job, errand__stop *stop,
                       const errand__child_plan *plan, int *out_fd,
                       errand__child_failure *failure);
static bool start(const errand__child_plan *plan, const char *file, const ends *made,
                  errand__child *child, errand__child_failure *failure);
static int spawn(const errand__child_plan *plan, const char *file, const ends *made,
                 pid_t *out_pid);
static int describe(const ends *made, posix_spawn_file_actions_t *actions,
                    posix_spawnattr_t *attributes);
static bool refuse_start(const errand__child_plan *plan, int error,
                         errand__child_failure *failure);
static bool ours(const errand__child *child, int options, siginfo_t *out_info);

/* Both answer false. */
static bool
fail_as(errand__child_failure *failure, int32_t code, int error, const char *call,
        const char *before, const char *name, const char *after)
{
    *failure = (errand__child_failure){code, error, call, before, name, after};
    return false;
}

static bool
fail(errand__child_failure *failure, int error, const char *call, const char *before,
     const char *name, const char *after)
{
    return fail_as(failure, 0, error, call, before, name, after);
}

int32_t
errand__child_refused(errand_job *job, const errand__child_failure *failure)
{
    errand__operation_shown name = errand__operation_show(failure->name);

    if (failure->error == 0)
        return errand__operation_failed(job, failure->code, "%s'%s'%s", failure->before,
                                        name.text, failure->after);
    return errand__operation_refused_as(
        job, failure->code != 0 ? failure->code : errand__operation_code(failure->error),
        failure->error, failure->call, "%s'%s'%s", failure->before, name.text,
        failure->after);
}

bool
errand__child_start(errand_job *job, errand__stop *stop, const errand__child_plan *plan,
                    errand__child *out_child, errand__child_failure *out_failure)
{
    char room[PATH_ROOM];
    const char *file = NULL;
    ends made = {-1, -1, {-1, -1}, {-1, -1}, -1};
    errand__child child = {0, -1, -1, -1, -1};

    bool started = find(plan, room, &file, out_failure) &&
                   open_ends(job, stop, plan, &made, out_failure) &&
                   start(plan, file, &made, &child, out_failure);
    if (started) {
        child.out = made.out[0];
        child.err = made.err[0];
        child.in = made.feed;
        made.out[0] = made.err[0] = made.feed = -1;
        *out_child = child;
    }
    int *const all[] = {&made.in,     &made.feed,   &made.out[0], &made.out[1],
                        &made.err[0], &made.err[1], &made.cwd};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        errand__operation_fd_close(all[i]);
    return started;
}

bool
errand__child_ended(const errand__child *child)
{
    siginfo_t info;

    return !ours(child, WNOWAIT | WNOHANG, &info) || info.si_pid != 0;
}

void
errand__child_signal(const errand__child *child, int signal_number)
{
    siginfo_t info;

    if (ours(child, WNOWAIT | WNOHANG, &info))
        kill(-child->pid, signal_number);
}

bool
errand__child_reap(errand__child *child, int32_t *out_status, int32_t *out_signal)
{
    siginfo_t info;

    bool reaped = ours(child, 0, &info);
    if (reaped) {
        bool exited = info.si_code == CLD_EXITED;
        *out_status = exited ? info.si_status : -1;
        *out_signal = exited ? 0 : info.si_status;
    }
    errand__operation_fd_close(&child->pidfd);
    errand__operation_fd_close(&child->out);
    errand__operation_fd_close(&child->err);
    errand__operation_fd_close(&child->in);
    child->pid = 0;
    return reaped;
}

/* Looks for argv[0] as execvp does, but only in absolute directories. */
static bool
find(const errand__child_plan *plan, char *room, const char **out_file,
     errand__child_failure *failure)
{
    const char *name = plan->argv[0];
    size_t length = strlen(name);
    int error = ENOENT;

    *out_file = name;
    if (strchr(name, '/') != NULL)
        return true;
    const char *at = plan->search_path != NULL ? plan->search_path : "/usr/bin:/bin";
    for (;;) {
        size_t size = strcspn(at, ":");
        if (size > 0 && at[0] == '/' && size + 1 + length < PATH_ROOM) {
            struct stat status;
            memcpy(room, at, size);
            room[size] = '/';
            memcpy(room + size + 1, name, length + 1);
            if (stat(room, &status) == 0 && S_ISREG(status.st_mode)) {
                if (faccessat(AT_FDCWD, room, X_OK, AT_EACCESS) == 0) {
                    *out_file = room;
                    return true;
                }
                error = EACCES;
            }
        }
        if (at[size] == 0)
            break;
        at += size + 1;
    }
    return fail(failure, error, "execve", "cannot find command ", name, " in PATH");
}

static bool
open_ends(errand_job *job, errand__stop *stop, const errand__child_plan *plan, ends *made,
          errand__child_failure *failure)
{
    if (plan->cwd != NULL) {
        made->cwd = errand__operation_fd_open(plan->cwd, O_PATH | O_DIRECTORY, 0);
        if (made->cwd < 0)
            return fail(failure, errno, "open", "cannot enter directory ", plan->cwd, "");
    }
    if (!plan->pipe_in && !open_input(job, stop, plan, &made->in, failure))
        return false;
    if ((plan->pipe_in && !pipe_for(&made->in, &made->feed, true)) ||
        !output_for(plan->no_out, made->out) ||
        (!plan->together && !output_for(plan->no_err, made->err)))
        return fail(failure, errno, "pipe2", "cannot make pipes for ", plan->argv[0], "");
    return true;
}

/* A pipe whose one end is the child's; ours does not block.  Only ours: the child's is a
 * description of its own and stays as it expects. */
static bool
pipe_for(int *out_child, int *out_ours, bool feeds)
{
    int both[2];

    if (!errand__operation_fd_pipe(both))
        return false;
    *out_child = both[feeds ? 0 : 1];
    *out_ours = both[feeds ? 1 : 0];
    return fcntl(*out_ours, F_SETFL, O_NONBLOCK) == 0;
}

static bool
output_for(bool unwanted, int made[2])
{
    if (!unwanted)
        return pipe_for(&made[1], &made[0], false);
    made[1] = errand__operation_fd_open("/dev/null", O_WRONLY, 0);
    return made[1] >= 0;
}

static bool
open_input(errand_job *job, errand__stop *stop, const errand__child_plan *plan,
           int *out_fd, errand__child_failure *failure)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const char *name = plan->argv[0];
    size_t written = 0;

    if (plan->input_size == 0) {
        *out_fd = errand__operation_fd_open("/dev/null", O_RDONLY, 0);
        return *out_fd >= 0 ||
               fail(failure, errno, "open", "cannot open ", "/dev/null", "");
    }
    int fd = memfd_create("errand stdin", flags | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) /* an older kernel */
        fd = memfd_create("errand stdin", flags);
    *out_fd = fd = errand__operation_fd_raise(fd);
    if (fd < 0)
        return fail(failure, errno, "memfd_create", "cannot hold the input of ", name,
                    "");
    while (written < plan->input_size) {
        size_t left = plan->input_size - written;
        if (errand__operation_stop_asked(stop) || errand_job_cancelled(job))
            return fail_as(failure, ERRAND_OPERATION_STOPPED, 0, NULL, "", name,
                           " was cancelled before it began");
        ssize_t count =
            pwrite(fd, (const char *)plan->input + written,
                   left < OPERATION_PIECE ? left : OPERATION_PIECE, (off_t)written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return fail(failure, count < 0 ? errno : EIO, "write",
                        "cannot hold the input of ", name, "");
        written += (size_t)count;
    }
    if (fcntl(fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        return fail(failure, errno, "fcntl", "cannot seal the input of ", name, "");
    return true;
}

static bool
start(const errand__child_plan *plan, const char *file, const ends *made,
      errand__child *child, errand__child_failure *failure)
{
    pid_t pid = 0;
    int32_t status, signal_number;

    int error = spawn(plan, file, made, &pid);
    if (error != 0)
        return refuse_start(plan, error, failure);
    child->pid = pid;
    child->pidfd = errand__operation_fd_raise((int)syscall(SYS_pidfd_open, pid, 0));
    error = errno;
    if (child->pidfd >= 0 || error == ENOSYS)
        return true;
    if (error == ESRCH) /* it has ended, and was reaped by somebody else */
        return fail_as(failure, ERRAND_OPERATION_LOST, 0, NULL, "the exit status of ",
                       plan->argv[0], " was taken");
    errand__child_signal(child, SIGKILL);
    errand__child_reap(child, &status, &signal_number);
    return fail(failure, error, "pidfd_open", "cannot watch ", plan->argv[0], "");
}

/* Answers an errno. */
static int
spawn(const errand__child_plan *plan, const char *file, const ends *made, pid_t *out_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = describe(made, &actions, &attributes);
        if (error == 0)
            error =
                posix_spawn(out_pid, file, &actions, &attributes, plan->argv, plan->env);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int
describe(const ends *made, posix_spawn_file_actions_t *actions,
         posix_spawnattr_t *attributes)
{
    const int standard[] = {made->in, made->out[1],
                            made->err[1] >= 0 ? made->err[1] : made->out[1]};
    sigset_t none, all;
    int error = 0;

    sigemptyset(&none);
    /* sigfillset leaves out the two signals that glibc keeps for itself, and posix_spawn would
     * let the command ignore them for ever. */
    memset(&all, 0xff, sizeof all);
    if (made->cwd >= 0)
        error = posix_spawn_file_actions_addfchdir_np(actions, made->cwd);
    for (int i = 0; i < 3 && error == 0; i++)
        error = posix_spawn_file_actions_adddup2(actions, standard[i], i);
    if (error == 0)
        error = posix_spawn_file_actions_addclosefrom_np(actions, 3);
    if (error == 0)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    if (error == 0)
        error = posix_spawnattr_setpgroup(attributes, 0);
    if (error == 0)
        error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK |
                                                         POSIX_SPAWN_SETSIGDEF |
                                                         POSIX_SPAWN_SETPGROUP);
    return error;
}

static bool
refuse_start(const errand__child_plan *plan, int error, errand__child_failure *failure)
{
    const char *name = plan->argv[0];

    if (error == EAGAIN) /* of clone: no process is left */
        return fail_as(failure, ERRAND_OPERATION_LIMIT, error, "clone", "cannot start ",
                       name, "");
    if (error == E2BIG)
        return fail_as(failure, ERRAND_OPERATION_TOO_LARGE, error, "execve",
                       "arguments and environment of ", name, "");
    if (error == EISDIR || error == ELIBBAD || error == EINVAL)
        return fail_as(failure, ERRAND_OPERATION_EXEC, error, "execve",
                       "cannot run command ", name, "");
    return fail(failure, error, "execve", "cannot run command ", name, "");
}

/* Waits with these options.  False if the process is not our child any more. */
static bool
ours(const errand__child *child, int options, siginfo_t *out_info)
{
    int answer;

    memset(out_info, 0, sizeof *out_info);
    do {
        answer = child->pidfd >= 0
                     ? waitid(P_PIDFD, (id_t)child->pidfd, out_info, WEXITED | options)
                     : waitid(P_PID, (id_t)child->pid, out_info, WEXITED | options);
    } while (answer != 0 && errno == EINTR);
    return answer == 0;
}
