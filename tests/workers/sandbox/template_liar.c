/* SPDX-License-Identifier: MIT */
/* template_liar: a program in the place of errand-worker whose workers are the real one's (the file
 * "real" in its folder) and whose template does what its own file's name says. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "workers/sandbox/wire.h"

enum { SOCKET = ERRAND__WIRE_RESPONSE_FD };

static void
say(const void *bytes, size_t size, int fd)
{
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } more = {.room = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd >= 0) {
        message.msg_control = &more;
        message.msg_controllen = sizeof more.room;
        more.head = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&more.head), &fd, sizeof fd);
    }
    if (sendmsg(SOCKET, &message, MSG_NOSIGNAL) < 0)
        _exit(1);
}

static void
say_birth(uint32_t ticket, int32_t pid, uint32_t error, int fd)
{
    const errand__wire_birth birth = {.ticket = ticket, .error = error, .pid = pid};

    say(&birth, sizeof birth, fd);
}

/* A process that stays; of the host, or of this one. */
static pid_t
fork_one(unsigned long parent, int *out_pidfd)
{
    pid_t pid = (pid_t)syscall(SYS_clone, parent | CLONE_PIDFD | SIGCHLD, NULL, out_pidfd,
                               NULL, NULL);

    if (pid == 0)
        for (;;)
            pause();
    return pid;
}

static void
answer(const char *mode, uint32_t ticket)
{
    int fd = -1;
    pid_t pid;

    if (strcmp(mode, "leaves") == 0)
        _exit(0);
    if (strcmp(mode, "silent") == 0)
        return;
    if (strcmp(mode, "short") == 0)
        say("abc", 3, -1);
    else if (strcmp(mode, "long") == 0)
        say((char[4096]){0}, 4096, -1);
    else if (strcmp(mode, "refuses") == 0)
        say_birth(ticket, -1, EAGAIN, -1);
    else if (strcmp(mode, "bare") == 0)
        say_birth(ticket, getpid(), 0, -1);
    else if (strcmp(mode, "null") == 0)
        say_birth(ticket, getpid(), 0, open("/dev/null", O_RDONLY));
    else if (strcmp(mode, "itself") == 0)
        say_birth(ticket, getpid(), 0, (int)syscall(SYS_pidfd_open, getpid(), 0));
    else if (strcmp(mode, "host") == 0)
        say_birth(ticket, getppid(), 0, (int)syscall(SYS_pidfd_open, getppid(), 0));
    else if (strcmp(mode, "strays") == 0) { /* and says nothing of it */
        fork_one(CLONE_PARENT, &fd);
        fork_one(CLONE_PARENT, &fd);
    } else if (strcmp(mode, "ticket") == 0) {
        pid = fork_one(CLONE_PARENT, &fd);
        say_birth(ticket + 7, pid, 0, fd);
    } else if (strcmp(mode, "own") == 0) {
        pid = fork_one(0, &fd);
        say_birth(ticket, pid, 0, fd);
    } else if (strcmp(mode, "another") == 0) { /* pid and pidfd of two */
        pid = fork_one(CLONE_PARENT, &fd);
        fork_one(CLONE_PARENT, &fd);
        say_birth(ticket, pid, 0, fd);
    }
}

int
main(int count, char **words)
{
    char path[PATH_MAX], *mode;
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 16);
    errand__wire_ask ask;

    if (count != 2 || size <= 0)
        return 2;
    path[size] = '\0';
    mode = strrchr(path, '/') + 1;
    if (strcmp(words[1], ERRAND__WIRE_TEMPLATE) != 0) {
        char *const none[] = {NULL};

        strcpy(mode, "real");
        execve(path, words, none);
        return 3;
    }
    mode = strdup(mode);
    strcpy(strrchr(path, '/') + 1, "count"); /* a byte for each template */
    int counted = open(path, O_WRONLY | O_APPEND);
    if (counted >= 0 && write(counted, "x", 1) == 1)
        close(counted);
    if (strcmp(mode, "ends") == 0)
        return 0;
    if (strcmp(mode, "mute") != 0)
        say_birth(strcmp(mode, "greets") == 0 ? 9 : 0, getpid(), 0, -1);
    for (;;) {
        if (recv(SOCKET, &ask, sizeof ask, 0) <= 0)
            return 0;
        answer(mode, ask.ticket);
    }
}
