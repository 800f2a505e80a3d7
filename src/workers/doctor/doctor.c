/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Advice says what follows for this library, not how an administrator works.
 * - What a reactor would choose is asked of the reactor; the rest is tried by the sandbox's layers. */
#include "errand/doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "core/core.h"
#include "errand/io.h"
#include "workers/sandbox/layers.h"

typedef struct telling {
    void (*visit)(void *arg, const errand_doctor_fact *fact);
    void *arg;
    char value[128];
} telling;

static void
tell(telling *self, const char *name, bool available, const char *advice)
{
    errand_doctor_fact fact = {
        .name = name, .available = available, .value = self->value, .advice = advice};
    self->visit(self->arg, &fact);
}

/* Something that either works or answers an error. */
static void
tell_tried(telling *self, const char *name, int error, const char *good, const char *bad)
{
    snprintf(self->value, sizeof self->value, "%s",
             error == 0 ? "works" : strerror(error));
    tell(self, name, error == 0, error == 0 ? good : bad);
}

static void
tell_machine(telling *self, const errand__layers *found)
{
    snprintf(self->value, sizeof self->value, "%s", found->kernel);
    tell(self, "kernel", true, "everything below was tried, nothing follows from this");
    snprintf(self->value, sizeof self->value, "%u", (unsigned)found->processors);
    tell(self, "processors", found->processors > 1,
         found->processors > 1 ? "waiting for a worker spins shortly before it sleeps"
                               : "nothing spins; a pool of one worker is enough");
    snprintf(self->value, sizeof self->value, "%s", found->root ? "root" : "not root");
    tell(self, "user", !found->root,
         found->root
             ? "workers of sandboxes drop to nobody (65534): libraries must be readable "
               "by others, and what they write (wpath) writable; processes of one user "
               "cannot be counted apart"
             : "workers of sandboxes run as the same user");
    snprintf(self->value, sizeof self->value, "%llu",
             (unsigned long long)found->descriptors);
    tell(self, "descriptors", found->descriptors >= 256,
         found->descriptors >= 256
             ? "enough: a worker takes one of the host's"
             : "raise RLIMIT_NOFILE: a worker takes one of the host's");
}

/* Beyond such a limit a write raises a signal on the thread that writes: SIGXFSZ. */
static void
tell_file_sizes(telling *self)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    struct sigaction action = {.sa_handler = SIG_DFL};

    getrlimit(RLIMIT_FSIZE, &limit);
    sigaction(SIGXFSZ, NULL, &action);
    bool bounded = limit.rlim_cur != RLIM_INFINITY;
    bool ends = bounded && action.sa_handler == SIG_DFL;
    if (bounded)
        snprintf(self->value, sizeof self->value, "%llu bytes, SIGXFSZ %s",
                 (unsigned long long)limit.rlim_cur,
                 ends ? "ends the process" : "ends nothing");
    else
        snprintf(self->value, sizeof self->value, "unlimited");
    tell(self, "file-sizes", !ends,
         ends ? "ignore SIGXFSZ: then what is too large for a file fails as TOO_LARGE"
         : bounded ? "what is too large for a file fails as TOO_LARGE"
                   : "the disk's room is the limit");
}

static void
tell_confinement(telling *self, const errand__layers *found)
{
    tell_tried(
        self, "seccomp", found->seccomp_error, "system calls of sandboxes are filtered",
        "no sandbox starts where its policy requires SECCOMP, which is the default");
    int abi = found->landlock_abi;
    if (abi > 0)
        snprintf(self->value, sizeof self->value, "ABI %d", abi);
    else
        snprintf(self->value, sizeof self->value, "%s", strerror(found->landlock_error));
    tell(self, "landlock", abi > 0,
         abi >= 6   ? "files, ports, signals and abstract sockets are restricted"
         : abi >= 4 ? "files and ports are restricted"
         : abi >= 3 ? "files are restricted; the promise INET is refused (needs ABI 4)"
         : abi > 0  ? "reading is restricted; the promises INET and WPATH are refused"
                   : "the promises RPATH, WPATH and INET are refused; PURE goes without");
    tell_tried(self, "user-namespaces", found->user_error,
               "the layer USER_NS can be had, and with it the others",
               "the layers of namespaces can be had by root alone");
    tell_tried(self, "network-namespaces", found->net_error,
               "the layer NET_NS can be had",
               "the layer NET_NS is missing; seccomp denies sockets all the same");
    tell_tried(self, "ipc-namespaces", found->ipc_error, "the layer IPC_NS can be had",
               "the layer IPC_NS is missing; seccomp denies such calls all the same");
    tell_tried(self, "process-namespaces", found->pid_error,
               "possible here; sandboxes make none: a worker has no children",
               "not possible here; sandboxes make none");
    if (found->group_error == 0)
        snprintf(self->value, sizeof self->value, "works, version %d, in %s",
                 found->group_unified ? 2 : 1, found->group_place);
    else
        snprintf(self->value, sizeof self->value, "%s", strerror(found->group_error));
    tell(self, "cgroups", found->group_error == 0,
         found->group_error == 0
             ? "memory of a worker can be counted as a whole"
             : "memory of a worker is bounded by its address space alone, until this "
               "process may make groups that count memory (systemd: Delegate=memory)");
}

static void
tell_reactor(telling *self, const errand__layers *found)
{
    const char *chosen = errand_reactor_backend(NULL);
    bool works = strcmp(chosen, "io_uring") == 0;

    snprintf(self->value, sizeof self->value, "%s, io_uring_disabled %s", chosen,
             found->io_uring_disabled == 0   ? "0"
             : found->io_uring_disabled == 1 ? "1 (others than its group)"
             : found->io_uring_disabled == 2 ? "2 (all)"
                                             : "is not there");
    tell(self, "io_uring", works,
         works ? "a reactor chooses it: files and sockets wait in the kernel"
               : "a reactor chooses epoll, and a few threads for files");
}

static void
tell_host(telling *self, const errand__layers *found)
{
    tell_tried(self, "write-seals", found->future_write_error,
               "requests are in memory that workers cannot write",
               "no sandbox starts: Linux 5.1 is needed");
    tell_tried(self, "pidfd", found->pidfd_error,
               "ends of workers are waited for by poll",
               "no sandbox starts: Linux 5.3 is needed");
    tell_tried(self, "pidfd-exit-status", found->pidfd_info_error,
               "an end is known even if somebody else reaps the worker",
               "let nobody else wait for all children, or an end's reason is lost");
    tell_tried(self, "close-range", found->close_range_error,
               "descriptors are closed at once",
               "descriptors are closed one by one when a worker starts");
    tell_tried(self, "futex-waitv", found->futex_waitv_error,
               "several words can be waited for at once",
               "words are waited for one by one");
    tell_reactor(self, found);
}

errand_status
errand_doctor(void (*visit)(void *arg, const errand_doctor_fact *fact), void *arg)
{
    errand__layers found;
    ERRAND_REQUIRE_ARG(visit != NULL, ERRAND_EINVAL, "visit must not be NULL");
    errand__layers_probe(&found);
    telling self = {.visit = visit, .arg = arg};
    tell_machine(&self, &found);
    tell_file_sizes(&self);
    tell_confinement(&self, &found);
    tell_host(&self, &found);
    return ERRAND_OK;
}
