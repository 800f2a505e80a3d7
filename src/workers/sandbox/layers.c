/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Everything is tried, nothing is concluded from a version: containers, hooks and settings
 *   refuse what the kernel could do.
 * - A namespace is tried by a child that is created in it and ends at once.  It is made by the
 *   bare call, so that nothing of the host runs in it, and has no exit signal, so that no handler
 *   and no waiting for any child sees it.
 * - Constants that older headers lack are written here. */
#include "workers/sandbox/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/core.h"
#include "workers/sandbox/group.h"
#include "workers/sandbox/landlock.h"

enum { CALL_IO_URING_SETUP = 425, CALL_PIDFD_OPEN = 434 };
enum { CALL_CLOSE_RANGE = 436, CALL_FUTEX_WAITV = 449, SEAL_FUTURE_WRITE = 0x10 };
typedef struct pidfd_state { /* struct pidfd_info, as it was first */
    uint64_t mask, cgroup;
    uint32_t ids[10];
    int32_t exit_code, reserved;
} pidfd_state;
_Static_assert(sizeof(pidfd_state) == 64, "the kernel looks at its size");
#define PIDFD_STATE _IOWR(0xff, 11, pidfd_state)

/* 0, or why no process can be made in such namespaces. */
static int
try_namespaces(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
    if (pid == 0)
        syscall(SYS_exit_group, 0);
    if (pid < 0)
        return errno;
    int status = 0;
    while (waitpid((pid_t)pid, &status, __WALL) < 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

static int
try_seccomp(void)
{
    uint32_t action = SECCOMP_RET_KILL_PROCESS;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 ? 0 : errno;
}

static int
try_seal(void)
{
    int file = memfd_create("errand-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return errno;
    int error = fcntl(file, F_ADD_SEALS, SEAL_FUTURE_WRITE) == 0 ? 0 : errno;
    close(file);
    return error;
}

static void
try_pidfd(errand__layers *out)
{
    int descriptor = (int)syscall(CALL_PIDFD_OPEN, getpid(), 0);
    if (descriptor < 0) {
        out->pidfd_error = out->pidfd_info_error = errno;
        return;
    }
    pidfd_state state = {.mask = 1};
    out->pidfd_error = 0;
    out->pidfd_info_error = ioctl(descriptor, PIDFD_STATE, &state) == 0 ? 0 : errno;
    close(descriptor);
}

static int
try_io_uring(void)
{
    uint64_t parameters[15] = {0};
    int ring = (int)syscall(CALL_IO_URING_SETUP, 1, parameters);
    if (ring < 0)
        return errno;
    close(ring);
    return 0;
}

/* A call that is there answers EINVAL to nonsense. */
static int
try_nonsense(long number, long first, long second, long third)
{
    long answer = syscall(number, first, second, third, 0, 0, 0);
    return answer == 0 || errno == EINVAL ? 0 : errno;
}

static int
read_number(const char *path)
{
    char text[16] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    return size > 0 ? atoi(text) : -1;
}

static void
try_groups(errand__layers *out)
{
    errand__groups groups;
    char link[32];
    errand__groups_init(&groups, true);
    out->group_error = groups.place < 0 ? groups.error : 0;
    out->group_unified = groups.unified;
    if (groups.place < 0)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", groups.place);
    ssize_t size = readlink(link, out->group_place, sizeof out->group_place - 1);
    out->group_place[size > 0 ? size : 0] = '\0';
    errand__groups_fini(&groups);
}

void
errand__layers_probe(errand__layers *out_layers)
{
    errand__layers found = {.io_uring_disabled = -1};
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(found.kernel, sizeof found.kernel, "%.63s", name.release);
    found.root = geteuid() == 0;
    found.processors = errand__cpus_allowed();
    found.seccomp_error = try_seccomp();
    found.landlock_abi = errand__landlock_abi();
    found.landlock_error = found.landlock_abi > 0 ? 0 : errno;
    found.landlock_abi = found.landlock_abi > 0 ? found.landlock_abi : 0;
    found.user_error = try_namespaces(CLONE_NEWUSER);
    found.net_error = try_namespaces(CLONE_NEWUSER | CLONE_NEWNET);
    found.ipc_error = try_namespaces(CLONE_NEWUSER | CLONE_NEWIPC);
    found.pid_error = try_namespaces(CLONE_NEWUSER | CLONE_NEWPID);
    try_groups(&found);
    found.future_write_error = try_seal();
    try_pidfd(&found);
    found.close_range_error = try_nonsense(CALL_CLOSE_RANGE, 1, 0, 0);
    found.futex_waitv_error = try_nonsense(CALL_FUTEX_WAITV, 0, 0, 0);
    found.io_uring_error = try_io_uring();
    found.io_uring_disabled = read_number("/proc/sys/kernel/io_uring_disabled");
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        found.descriptors = limit.rlim_cur;
    *out_layers = found;
}
