/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Order: what needs a right comes before what takes it away.  Group, namespaces, descriptors, user,
 *   parent's death (a change of user forgets it), limits, no new privileges, files and network,
 *   system calls.  Constructors of libraries run after all that; the second ruleset and filter
 *   only narrow it.
 * - A hostile constructor owns this process and may keep it from the second stage.  What it then
 *   keeps is reading the loader's folders and mapping files there: that is why the first stage is
 *   the final one and nothing more.
 * - A layer that is wanted and cannot be had is missing from the report; one that is required
 *   ends the program.
 * - As root with a user namespace the user is dropped first: inside it there would be no other
 *   user to become. */
#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A layer cannot be had: the end, if it is required. */
static void
missing(errand__worker *self, uint32_t layer, int error, const char *name)
{
    if ((self->setup->require_layers & layer) != 0)
        errand__worker_fail(self, ERRAND__SETUP_LAYER, error,
                            "%s: required and not to be had", name);
}

static bool
wanted(const errand__worker *self, uint32_t layer)
{
    return (self->setup->want_layers & layer) != 0;
}

/* Everything that it takes from now on is counted there. */
static void
group_join(errand__worker *self)
{
    const errand__wire_request *head = self->request;
    int descriptor = ERRAND__WIRE_PATH_FD + (int)self->setup->path_count +
                     (head->input_file_size != 0);
    if (!wanted(self, ERRAND_LAYER_CGROUP))
        return;
    if (head->group == 0)
        missing(self, ERRAND_LAYER_CGROUP, (int)head->group_error, "control group");
    else if (write(descriptor, "0", 1) == 1)
        self->layers |= ERRAND_LAYER_CGROUP;
    else
        missing(self, ERRAND_LAYER_CGROUP, errno, "control group");
}

static void
namespaces(errand__worker *self, uint32_t layers)
{
    static const struct {
        uint32_t layer;
        int flag;
        const char *name;
    } kinds[] = {{ERRAND_LAYER_USER_NS, CLONE_NEWUSER, "user namespace"},
                 {ERRAND_LAYER_NET_NS, CLONE_NEWNET, "network namespace"},
                 {ERRAND_LAYER_IPC_NS, CLONE_NEWIPC, "ipc namespace"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((layers & kinds[i].layer) == 0 || !wanted(self, kinds[i].layer))
            continue;
        if (unshare(kinds[i].flag) == 0)
            self->layers |= kinds[i].layer;
        else
            missing(self, kinds[i].layer, errno, kinds[i].name);
    }
}

void
errand__worker_close(unsigned first, unsigned last)
{
    if (first > last)
        return;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, last, 0) == 0)
        return;
#endif
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > (1u << 20))
        limit.rlim_cur = 1u << 20;
    for (unsigned i = first; i <= last && i < limit.rlim_cur; i++)
        close((int)i);
}

/* Everything above 2 but what this file needs later. */
static void
close_others(const errand__worker *self)
{
    int kept[] = {self->rulesets[0], self->rulesets[1], self->tasks,
                  ERRAND__WIRE_LIFELINE_FD};
    unsigned from = 3;
    for (;;) {
        unsigned next = ~0u;
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
            if (kept[i] >= 0 && (unsigned)kept[i] >= from && (unsigned)kept[i] < next)
                next = (unsigned)kept[i];
        }
        if (next == ~0u)
            break;
        if (next > from)
            errand__worker_close(from, next - 1);
        from = next + 1;
    }
    errand__worker_close(from, ~0u);
}

static void
user_drop(errand__worker *self)
{
    const errand__wire_setup *setup = self->setup;
    if (!wanted(self, ERRAND_LAYER_UID_DROP) || geteuid() != 0 || setup->uid == 0)
        return;
    bool dropped = setgroups(0, NULL) == 0 &&
                   setresgid(setup->gid, setup->gid, setup->gid) == 0 &&
                   setresuid(setup->uid, setup->uid, setup->uid) == 0;
    if (!dropped && geteuid() == 0)
        missing(self, ERRAND_LAYER_UID_DROP, errno, "user that is not root");
    else if (!dropped)
        errand__worker_fail(self, ERRAND__SETUP_LAYER, errno,
                            "the user changed by halves");
}

static void
capabilities_drop(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    (void)syscall(SYS_capset, &head, none);
}

static void
user_and_namespaces(errand__worker *self)
{
    bool own_users = wanted(self, ERRAND_LAYER_USER_NS);
    if (own_users)
        user_drop(self);
    namespaces(self, ERRAND_LAYER_USER_NS | ERRAND_LAYER_NET_NS | ERRAND_LAYER_IPC_NS);
    close_others(self);
    if (!own_users)
        user_drop(self);
    capabilities_drop();
    self->user = (uint32_t)geteuid();
    if (self->user != 0)
        self->layers |= ERRAND_LAYER_UID_DROP;
    else if (wanted(self, ERRAND_LAYER_UID_DROP))
        missing(self, ERRAND_LAYER_UID_DROP, 0, "user that is not root");
}

/* The end of the host, or its wish, is a signal on the pipe that it holds: the kernel compares its sender
 * with whoever set this, who is this process.  The filter keeps the descriptor as it is. */
static void
lifeline_hold(errand__worker *self)
{
    const int fd = ERRAND__WIRE_LIFELINE_FD;
    struct pollfd looked = {.fd = fd, .events = POLLIN};
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode) ||
        fcntl(fd, F_SETOWN, getpid()) != 0 || fcntl(fd, F_SETSIG, SIGKILL) != 0 ||
        fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
        errand__worker_fail(self, ERRAND__SETUP_PARENT, errno,
                            "its lifeline cannot be held");
    /* It may have been let go of before that. */
    if (poll(&looked, 1, 0) != 0)
        errand__worker_fail(self, ERRAND__SETUP_PARENT, 0, "the host is gone");
}

/* The first needs that the host may signal this process when it ends, the second does not. */
void
errand__worker_follow(errand__worker *self)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        errand__worker_fail(self, ERRAND__SETUP_PARENT, errno,
                            "its end cannot follow the host's");
    /* It may have ended before that. */
    if ((uint32_t)getppid() != self->setup->parent_pid)
        errand__worker_fail(self, ERRAND__SETUP_PARENT, 0, "the host is gone");
    lifeline_hold(self);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static bool
limit_set(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0)
        return false;
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
    if (now.rlim_max != RLIM_INFINITY && limit.rlim_max > now.rlim_max)
        limit.rlim_max = now.rlim_max;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    return setrlimit(resource, &limit) == 0;
}

static void
limits(errand__worker *self)
{
    const errand__wire_setup *setup = self->setup;
    if (!wanted(self, ERRAND_LAYER_RLIMITS))
        return;
    uint64_t rings = self->request->request_file_size +
                     self->request->response_file_size + self->request->input_file_size;
    bool threads = (setup->promises & ERRAND_PROMISE_THREAD) != 0;
    bool done =
        limit_set(RLIMIT_CORE, 0, 0) && limit_set(RLIMIT_MEMLOCK, 0, 0) &&
        limit_set(RLIMIT_MSGQUEUE, 0, 0) && limit_set(RLIMIT_RTPRIO, 0, 0) &&
        limit_set(RLIMIT_NICE, 0, 0) && limit_set(RLIMIT_SIGPENDING, 16, 16) &&
        limit_set(RLIMIT_FSIZE, setup->file_bytes, setup->file_bytes) &&
        limit_set(RLIMIT_NOFILE, setup->descriptors, setup->descriptors) &&
        limit_set(RLIMIT_STACK, setup->stack_bytes, setup->stack_bytes) &&
        limit_set(RLIMIT_AS, setup->memory_bytes + rings, setup->memory_bytes + rings);
    if (done && setup->cpu_soft != 0)
        done = limit_set(RLIMIT_CPU, setup->cpu_soft, setup->cpu_hard);
    /* The kernel counts threads of the user, not of the process: with threads of its own only a
     * user namespace makes the number this worker's. */
    if (done && !threads)
        done = limit_set(RLIMIT_NPROC, 0, 0);
    else if (done && setup->processes != 0 && (self->layers & ERRAND_LAYER_USER_NS) != 0)
        done = limit_set(RLIMIT_NPROC, setup->processes + 1, setup->processes + 1);
    if (done) {
        self->layers |= ERRAND_LAYER_RLIMITS;
        errand__report_limit(setup->memory_bytes);
    } else {
        missing(self, ERRAND_LAYER_RLIMITS, errno, "limits");
    }
    if (threads) {
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) == 0) {
            (void)pthread_attr_setstacksize(&attributes, setup->stack_bytes);
            (void)pthread_setattr_default_np(&attributes);
            pthread_attr_destroy(&attributes);
        }
    }
}

static void
no_new_privileges(errand__worker *self)
{
    if (!wanted(self, ERRAND_LAYER_NO_NEW_PRIVS))
        return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        self->layers |= ERRAND_LAYER_NO_NEW_PRIVS;
    else
        missing(self, ERRAND_LAYER_NO_NEW_PRIVS, errno, "no new privileges");
}

/* What rests on the ruleset needs an ABI that covers it. */
static void
ruleset_check(errand__worker *self)
{
    uint32_t promises = self->setup->promises, abi = self->landlock_abi;
    if ((self->setup->require_layers & ERRAND_LAYER_LANDLOCK) == 0)
        return;
    if ((promises & ERRAND_PROMISE_INET) != 0 && abi < 4)
        errand__worker_fail(
            self, ERRAND__SETUP_LAYER, 0,
            "landlock: ABI %u cannot restrict ports; INET needs 4 (Linux 6.7)",
            (unsigned)abi);
    if ((promises & ERRAND_PROMISE_WPATH) != 0 && abi < 3)
        errand__worker_fail(
            self, ERRAND__SETUP_LAYER, 0,
            "landlock: ABI %u cannot keep files from being cut; WPATH needs 3 "
            "(Linux 6.2)",
            (unsigned)abi);
}

static void
restrict_files(errand__worker *self, int stage, bool threads)
{
    if (self->rulesets[stage] < 0)
        return;
    if (errand__ruleset_enforce(self, stage, threads))
        self->layers |= ERRAND_LAYER_LANDLOCK;
    else
        missing(self, ERRAND_LAYER_LANDLOCK, errno, "landlock");
}

static void
restrict_calls(errand__worker *self, int stage)
{
    const errand__wire_setup *setup = self->setup;
    if (!wanted(self, ERRAND_LAYER_SECCOMP))
        return;
    uint32_t length = setup->filter_length[stage];
    struct sock_filter *program = malloc(length * sizeof *program);
    if (program == NULL)
        errand__worker_fail(self, ERRAND__SETUP_MEMORY, ENOMEM, "system call filter");
    memcpy(program, self->setup_bytes + setup->filter[stage], length * sizeof *program);
    for (uint32_t i = 0; i < setup->tgid_count[stage]; i++) {
        uint32_t at = setup->tgid_patch[stage][i];
        if (at >= length)
            errand__worker_fail(self, ERRAND__SETUP_FILTER, 0,
                                "the filter contradicts itself");
        program[at].k = (uint32_t)getpid();
    }
    struct sock_fprog filter = {.len = (unsigned short)length, .filter = program};
    bool done =
        length <= BPF_MAXINSNS && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                          SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
    int error = errno;
    free(program);
    if (done)
        self->layers |= ERRAND_LAYER_SECCOMP;
    else if ((self->layers & ERRAND_LAYER_SECCOMP) != 0)
        errand__worker_fail(self, ERRAND__SETUP_FILTER, error,
                            "the final system call filter");
    else
        missing(self, ERRAND_LAYER_SECCOMP, error, "system call filter");
}

/* How many threads there are; 0 = unknown. */
static unsigned
threads_now(const errand__worker *self)
{
    struct stat status;
    if (self->tasks < 0 || fstat(self->tasks, &status) != 0 || status.st_nlink < 3)
        return 0;
    return (unsigned)status.st_nlink - 2;
}

void
errand__worker_confine(errand__worker *self)
{
    errand__worker_follow(self); /* a change of user makes the kernel forget it */
    group_join(self);
    if (!self->preloaded)
        errand__worker_preload(self);
    self->tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (threads_now(self) > 1)
        errand__worker_fail(self, ERRAND__SETUP_LIBRARY, 0,
                            "there is a second thread before anything is confined");
    if (wanted(self, ERRAND_LAYER_LANDLOCK) && !errand__rulesets_create(self))
        missing(self, ERRAND_LAYER_LANDLOCK, errno, "landlock");
    ruleset_check(self);
    user_and_namespaces(self);
    errand__worker_follow(self);
    limits(self);
    no_new_privileges(self);
    restrict_files(self, 0, false);
    restrict_calls(self, 0);
}

void
errand__worker_check_threads(errand__worker *self)
{
    unsigned threads = threads_now(self);
    if (threads > 1 && (self->setup->promises & ERRAND_PROMISE_THREAD) == 0)
        errand__worker_fail(self, ERRAND__SETUP_LIBRARY, 0,
                            "a library has started %u threads: its policy needs "
                            "ERRAND_PROMISE_THREAD",
                            threads - 1);
}

void
errand__worker_seal(errand__worker *self)
{
    unsigned threads = threads_now(self);
    errand__worker_check_threads(self);
    /* Threads of libraries keep the first ruleset where the kernel cannot reach them: the filter
     * then must keep them from opening anything. */
    uint32_t opens = ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH;
    if (threads > 1 && self->landlock_abi != 0 && self->landlock_abi < 8 &&
        (self->setup->promises & opens) != 0)
        errand__worker_fail(
            self, ERRAND__SETUP_LIBRARY, 0,
            "a library has started threads while it was opened, which landlock "
            "before ABI 8 cannot narrow: leave RPATH and WPATH out");
    if (self->tasks >= 0)
        close(self->tasks);
    self->tasks = -1;
    restrict_files(self, 1, threads > 1);
    restrict_calls(self, 1);
}
