/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_LAUNCHER_H
#define ERRAND_SANDBOX_LAUNCHER_H
/* launcher: workers as processes: how they are started, ended and reaped (spawn.c), and where their program
 * is (locate.c). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct errand__worker_end {
    bool known;          /* false: somebody else took its status */
    int code, status;    /* as of a siginfo: CLD_EXITED and the like */
    int32_t wait_status; /* as of wait, or -1 */
    uint64_t user_ns, system_ns, peak_bytes;
} errand__worker_end;
typedef struct errand__worker_files { /* what a start is given; its caller closes them */
    int request_fd, response_fd, lifeline_fd;
    const int *path_fds;
    size_t path_count;
    int input_fd;  /* -1 = none; the pool's */
    int join_fd;   /* of its group; -1 = none */
    bool template; /* it is no worker: response_fd is its socket */
} errand__worker_files;
/* How workers are started and ended.  Monitor. */
typedef struct errand__launcher {
    /* Answers an errno.  *out_fd: the launcher's, readable when it has ended. */
    int (*start)(void *arg, const errand__worker_files *files, int32_t *out_pid,
                 int *out_fd);
    void (*kill)(void *arg, int32_t pid, int fd);
    /* It has ended: takes its status and closes fd. */
    void (*reap)(void *arg, int32_t pid, int fd, errand__worker_end *out_end);
    void (*destroy)(void *arg); /* NULL = nothing to do */
    void *arg;
    const char *program; /* for messages; lives as long as arg; NULL = none */
    bool templates;      /* its program can be started as one */
} errand__launcher;
/* The real one: path is copied.  False: no memory. */
bool errand__launcher_make(const char *path, errand__launcher *out_launcher);
/* Is it a pidfd, and of that process?  No, where nothing tells.  shown: what /proc says; 0 = nothing, or
 * that it is none.  is_child: of a child that nobody has reaped, dead or alive. */
bool errand__pidfd_names(int fd, int32_t pid);
int32_t errand__pidfd_shown(int fd);
bool errand__pidfd_is_child(int fd);
/* Where errand-worker is, if nobody says: beside this code, or where it was to be installed.  False: it
 * is not there; out_where says where it was looked for. */
bool errand__worker_find(char *out, size_t size, char *out_where, size_t where_size);

#endif
