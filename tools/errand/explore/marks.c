/* SPDX-License-Identifier: MIT */
/* marks: processes that stand still behind certain steps of a run.
 *
 * Design notes.  The run's process forks at each planned step: the child is the mark and waits at
 * a socket, the run goes on.  A mark leads a process group of its own, so that it outlives the run;
 * it ends when the exploring process closes its end of the socket, or dies.  A branch is made
 * by two forks, of which the one between ends at once: so the branch becomes a child of the
 * exploring process, which is a subreaper, and is watched like any trial.  Its pipes come with the
 * message that asks for it.
 * What explore knows of marks stands in memory that both share. */
#include "explore/marks.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "errand/snapshot.h"
#include "log/log_view.h"

#define PATIENCE_MS 20000 /* for a mark that is to fork */

/* The run's process has one of these. */
static struct {
    errand_runtime *runtime;
    lua_State *L;
    errand__names names;
    size_t next; /* of the plan */
    int verdict_fd;
} here;

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the exploring process ------------------------------------------------------------------------ */

bool
errand__marks_init(errand__marks *marks, const uint64_t *plan, size_t count)
{
    memset(marks, 0, sizeof *marks);
    memset(marks->own, 0xff, sizeof marks->own);
    memset(marks->theirs, 0xff, sizeof marks->theirs);
    marks->shared = mmap(NULL, sizeof *marks->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (marks->shared == MAP_FAILED)
        marks->shared = NULL;
    for (size_t i = 0; i < count && marks->shared != NULL; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
            break;
        marks->own[i] = ends[0];
        marks->theirs[i] = ends[1];
        marks->plan[i] = plan[i];
        marks->count++;
    }
    if (marks->shared != NULL && marks->count == count)
        return true;
    errand__help_problem("--from-step: the system refuses memory or sockets: %s",
                         strerror(errno));
    errand__marks_fini(marks);
    return false;
}

void
errand__marks_started(errand__marks *marks)
{
    for (size_t i = 0; i < marks->count; i++)
        close_fd(&marks->theirs[i]);
}

static bool
send_order(int fd, uint64_t seed, const int *pipes)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec data = {&seed, sizeof seed};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    memset(&control, 0, sizeof control);
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(&control.head), pipes, 2 * sizeof(int));
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof seed;
}

pid_t
errand__marks_wake(errand__marks *marks, size_t index, uint64_t seed, int verdict_fd,
                   int output_fd)
{
    const int pipes[2] = {verdict_fd, output_fd};
    struct pollfd answer = {marks->own[index], POLLIN, 0};
    pid_t branch = -1;
    if (!send_order(answer.fd, seed, pipes))
        return -1;
    if (poll(&answer, 1, PATIENCE_MS) != 1 ||
        recv(answer.fd, &branch, sizeof branch, 0) != (ssize_t)sizeof branch)
        return -1;
    return branch;
}

void
errand__marks_fini(errand__marks *marks)
{
    for (size_t i = 0; i < marks->count; i++) {
        close_fd(&marks->own[i]);
        close_fd(&marks->theirs[i]);
        pid_t mark = marks->shared->marks[i].pid;
        if (mark > 0 && kill(mark, SIGKILL) == 0) {
            while (waitpid(mark, NULL, 0) < 0 && errno == EINTR)
                continue;
        }
    }
    if (marks->shared != NULL)
        munmap(marks->shared, sizeof *marks->shared);
    memset(marks, 0, sizeof *marks);
}

/* ---- the run's process ------------------------------------------------------------------------------ */

void
errand__marks_begin(errand__marks *marks, errand_runtime *runtime, lua_State *L,
                    int verdict_fd)
{
    for (size_t i = 0; i < marks->count; i++)
        close_fd(&marks->own[i]);
    here.runtime = runtime;
    here.L = L;
    here.verdict_fd = verdict_fd;
}

/* false = nobody will ask any more. */
static bool
receive_order(int fd, uint64_t *out_seed, int *out_pipes)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec data = {out_seed, sizeof *out_seed};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t got;
    do
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof *out_seed || message.msg_controllen < sizeof control.head)
        return false;
    memcpy(out_pipes, CMSG_DATA(&control.head), 2 * sizeof(int));
    return true;
}

/* The process between must have ended first: a parent's end would be told to this one. */
static void
become_branch(errand__marks *marks, pid_t between, uint64_t seed, int *pipes)
{
    const struct timespec moment = {0, 50000};
    setpgid(0, 0);
    while (getppid() == between)
        nanosleep(&moment, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1 || dup2(pipes[0], here.verdict_fd) < 0 ||
        dup2(pipes[1], STDOUT_FILENO) < 0 || dup2(pipes[1], STDERR_FILENO) < 0)
        _exit(ERRAND__EXIT_REFUSED);
    close_fd(&pipes[0]);
    close_fd(&pipes[1]);
    for (size_t i = 0; i < marks->count; i++)
        close_fd(&marks->theirs[i]);
    errand_lua_rested(here.L);
    if (errand_snapshot_branch(here.runtime, seed) != ERRAND_OK)
        _exit(ERRAND__EXIT_REFUSED);
    here.runtime = NULL; /* no marks any more */
}

/* In the mark, whose process does nothing else any more: returns in branches alone. */
static void
wait_as_mark(errand__marks *marks, size_t index)
{
    errand__mark *mark = &marks->shared->marks[index];
    uint64_t seed;
    int pipes[2];
    setpgid(0, 0);
    for (size_t i = 0; i < marks->count; i++) {
        if (i != index)
            close_fd(&marks->theirs[i]);
    }
    while (receive_order(marks->theirs[index], &seed, pipes)) {
        int64_t between, branch;
        mark->branch = -1;
        if (errand_snapshot_fork(here.runtime, NULL, 0, &between) != ERRAND_OK)
            between = -1;
        if (between == 0) {
            pid_t self = getpid();
            if (errand_snapshot_fork(here.runtime, NULL, 0, &branch) != ERRAND_OK)
                _exit(ERRAND__EXIT_REFUSED);
            if (branch == 0) {
                become_branch(marks, self, seed, pipes);
                return;
            }
            mark->branch = (pid_t)branch;
            _exit(ERRAND__EXIT_GOOD);
        }
        close_fd(&pipes[0]);
        close_fd(&pipes[1]);
        while (between > 0 && waitpid((pid_t)between, NULL, 0) < 0 && errno == EINTR)
            continue;
        pid_t answer = mark->branch;
        if (send(marks->theirs[index], &answer, sizeof answer, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(ERRAND__EXIT_GOOD);
}

static void
set_mark(errand__marks *marks, const errand_step *step)
{
    size_t index = here.next++;
    errand__mark *mark = &marks->shared->marks[index];
    char *problem = marks->shared->problem;
    int64_t child;
    mark->time_ns = step->time_ns;
    snprintf(mark->kind, sizeof mark->kind, "%s", errand_step_name(step->kind));
    errand__names_path(&here.names, step->key, mark->who, sizeof mark->who);
    errand_status status = errand_snapshot_fork(here.runtime, problem,
                                                sizeof marks->shared->problem, &child);
    if (status != ERRAND_OK) {
        if (marks->shared->refused == 0)
            marks->shared->refused = step->step;
        return;
    }
    if (child == 0) {
        wait_as_mark(marks, index);
        return;
    }
    setpgid((pid_t)child, (pid_t)child); /* it does so, too; who is first counts */
    mark->pid = (pid_t)child;
    mark->step = step->step;
    close_fd(&marks->theirs[index]);
}

void
errand__marks_step(errand__marks *marks, const errand_step *step)
{
    if (here.runtime == NULL)
        return;
    bool known = errand__names_learn(&here.names, step);
    (void)known; /* else its key is its name */
    marks->shared->steps = step->step;
    if (here.next < marks->count && step->step == marks->plan[here.next])
        set_mark(marks, step);
}
