/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Calls are named, never numbered: a name that this machine or libseccomp does not know is left
 *   out, and with it the call falls to the default.
 * - Default is to end the whole process (or, to report, a trap).  What libraries try by habit
 *   and can do without gets the error they expect, so that they go on.
 * - A call's first rule that matches decides, and who names a call first decides it: so what is granted
 *   comes before what is refused.  Those that workers make most come first of all.
 * - To report, what would get an error is a trap as well, whose data is that error + 1: the worker
 *   notes the call and answers the error itself (program/report.c).
 * - writev is allowed since the C library writes its last words with it: denied, a crash would
 *   be taken for a forbidden call.
 * - futex is wait and wake alone: requeue and priority inheritance on a shared word could move
 *   the host's waiter away.  clone3 and openat2 hide their arguments in memory: ENOSYS, then the
 *   older call is tried.
 * - Calls newer than those known here get ENOSYS, as on an older kernel.
 * - The lifeline's descriptor cannot be closed, nor its signal be taken off.
 * - tgkill wants the process id, which is known in the worker: a mark stands in its place, whose
 *   places are found again in the finished program. */
#include "workers/sandbox/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include "core/core.h"
#include "workers/sandbox/bpf.h"
#include "workers/sandbox/wire.h"

#define TGID_MARK 0x5e47a9d3u /* no process id: above what the kernel gives */
#define THREAD_FLAGS                                                                     \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |  \
     CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define MAP_KIND ((uint64_t)0x0f | MAP_ANONYMOUS)
/* What makes an open more than reading; O_TMPFILE holds O_DIRECTORY, which is none. */
#define OPEN_WRITES ((uint64_t)O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

enum { FCNTL_MAX = 40, F_LINUX = 1024 };

typedef struct rules {
    errand__bpf bpf;
    uint32_t promises;
    errand__filter_stage stage;
    bool reports;
} rules;

typedef struct granted { /* without a look at arguments */
    uint32_t promises;   /* any of them; 0 = always */
    const char *names;   /* separated by spaces */
} granted;
static const granted granted_calls[] = {
    {0, "exit exit_group rt_sigreturn restart_syscall clock_gettime clock_getres "
        "gettimeofday time clock_nanosleep nanosleep getpid gettid getcpu sched_yield "
        "getrandom brk munmap mremap rt_sigprocmask rt_sigaction sigaltstack lseek "
        "read write readv writev poll ppoll getrusage"},
    {ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH,
     "access faccessat faccessat2 stat lstat fstat newfstatat statx readlink readlinkat "
     "getdents64 pread64 preadv getcwd fadvise64 fstatfs"},
    {ERRAND_PROMISE_WPATH,
     "creat pwrite64 pwritev ftruncate fsync fdatasync fallocate mkdir mkdirat "
     "rmdir unlink unlinkat rename renameat renameat2"},
    {ERRAND_PROMISE_THREAD, "set_robust_list rseq sched_getaffinity"},
    {ERRAND_PROMISE_INET, "connect recvfrom recvmsg getsockname getpeername getsockopt "
                          "shutdown select pselect6"},
};
static const char *const loading_calls =
    "fstat newfstatat pread64 landlock_restrict_self";

typedef struct refused { /* with an error, where nothing above grants them */
    int error;
    const char *names;
} refused;
static const refused refused_calls[] = {
    {EACCES, "access faccessat stat lstat fstat newfstatat readlink readlinkat"},
    {ENOSYS,
     "clone3 openat2 faccessat2 statx rseq set_robust_list membarrier memfd_create "
     "io_uring_setup userfaultfd sched_getaffinity sysinfo"},
    {EPERM, "prlimit64 prctl"},
    {ENOTTY, "ioctl"},
    {EFAULT, "uname"},
    {0, "getuid"},
};

/* Argument at: masked, or (of an int, whose upper half may hold anything) equal. */
static errand__bpf_test
masked(unsigned at, uint64_t mask, uint64_t value)
{
    return (errand__bpf_test){.argument = at, .mask = mask, .value = value};
}

static errand__bpf_test
is(unsigned at, uint32_t value)
{
    return masked(at, UINT32_MAX, value);
}

static uint32_t
refuse(const rules *self, int error)
{
    return self->reports ? SECCOMP_RET_TRAP | ((uint32_t)error + 1)
                         : SECCOMP_RET_ERRNO | (uint32_t)error;
}

/* The rules that follow are its. */
static void
call(rules *self, const char *name)
{
    errand__bpf_call(&self->bpf, seccomp_syscall_resolve_name(name));
}

static void
rule(rules *self, uint32_t action, unsigned count, const errand__bpf_test *tests)
{
    errand__bpf_rule(&self->bpf, action, count, tests);
}

static void
rule_one(rules *self, uint32_t action, errand__bpf_test test)
{
    rule(self, action, 1, &test);
}

/* What no rule before it matched. */
static void
rule_else(rules *self, uint32_t action)
{
    rule(self, action, 0, NULL);
}

/* An int from first to last: by blocks whose size is a power of two and divides their start. */
static void
rule_range(rules *self, uint32_t action, unsigned at, uint32_t first, uint32_t last)
{
    while (first <= last) {
        uint32_t size = first == 0 ? UINT32_C(1) << 31 : first & -first;

        while (size - 1 > last - first)
            size /= 2;
        rule_one(self, action, masked(at, ~(size - 1), first));
        first += size;
    }
}

/* One rule for each word. */
static void
rule_words(rules *self, uint32_t action, const char *names)
{
    while (*names != '\0') {
        char name[32];
        size_t size = strcspn(names, " ");
        ERRAND_ASSERT(size < sizeof name);
        memcpy(name, names, size);
        name[size] = '\0';
        call(self, name);
        rule_else(self, action);
        names += size + (names[size] == ' ');
    }
}

static void
rules_of_memory(rules *self)
{
    uint32_t denied = refuse(self, EACCES);
    call(self, "mmap");
    errand__bpf_test plain[] = {masked(2, PROT_EXEC, 0),
                                masked(3, MAP_KIND, MAP_PRIVATE | MAP_ANONYMOUS)};
    rule(self, SECCOMP_RET_ALLOW, 2, plain);
    if (self->stage == ERRAND__FILTER_LOADING) {
        /* Files: read, written (copies), or executed, but not the last two at once. */
        uint64_t both = PROT_WRITE | PROT_EXEC;
        rule_one(self, denied, masked(2, both, both));
        rule_one(self, SECCOMP_RET_ALLOW, masked(3, MAP_KIND, MAP_PRIVATE));
        errand__bpf_test nowhere[] = {masked(2, PROT_EXEC, PROT_EXEC),
                                      masked(3, MAP_KIND, MAP_PRIVATE | MAP_ANONYMOUS)};
        rule(self, denied, 2, nowhere);
    } else {
        rule_one(self, denied, masked(2, PROT_EXEC, PROT_EXEC));
        if ((self->promises & (ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH)) != 0)
            rule_one(self, SECCOMP_RET_ALLOW, masked(3, MAP_KIND, MAP_PRIVATE));
    }
    call(self, "mprotect");
    rule_one(self, SECCOMP_RET_ALLOW, masked(2, PROT_EXEC, 0));
    rule_else(self, denied);
    call(self, "madvise");
    static const uint32_t advices[] = {MADV_NORMAL,   MADV_DONTNEED,   MADV_FREE,
                                       MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP};
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        rule_one(self, SECCOMP_RET_ALLOW, is(2, advices[i]));
}

static void
rules_of_waiting(rules *self)
{
    static const uint32_t operations[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET,
                                          FUTEX_WAKE_BITSET};
    uint32_t mask = ~(uint32_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    call(self, "futex");
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        rule_one(self, SECCOMP_RET_ALLOW, masked(1, mask, operations[i]));
    errand__bpf_test abort_self[] = {is(0, TGID_MARK), is(2, SIGABRT)};
    call(self, "tgkill");
    rule(self, SECCOMP_RET_ALLOW, 2, abort_self);
    uint32_t again = refuse(self, EAGAIN);
    call(self, "clone");
    if ((self->promises & ERRAND_PROMISE_THREAD) == 0) {
        rule_else(self, again);
        return;
    }
    /* CLONE_DETACHED has no meaning any more, but some C libraries still set it. */
    rule_one(self, SECCOMP_RET_ALLOW, masked(0, ~(uint32_t)CLONE_DETACHED, THREAD_FLAGS));
    rule_one(self, again, masked(0, CLONE_THREAD, 0));
}

/* open and openat, whose flags are argument at. */
static void
rules_of_open(rules *self, const char *name, unsigned at)
{
    bool reads = (self->promises & ERRAND_PROMISE_RPATH) != 0 ||
                 self->stage == ERRAND__FILTER_LOADING;
    call(self, name);
    if ((self->promises & ERRAND_PROMISE_WPATH) != 0)
        rule_else(self, SECCOMP_RET_ALLOW); /* landlock says where */
    else if (reads)
        rule_one(self, SECCOMP_RET_ALLOW, masked(at, OPEN_WRITES, 0));
    rule_else(self, refuse(self, EACCES));
}

static void
rules_of_sockets(rules *self)
{
    uint32_t denied = refuse(self, EACCES);
    call(self, "socket");
    if ((self->promises & ERRAND_PROMISE_INET) == 0) {
        rule_else(self, denied);
        return;
    }
    /* Streams of TCP alone: the ruleset's ports count for no other protocol. */
    static const uint32_t families[] = {AF_INET, AF_INET6};
    static const uint32_t protocols[] = {0, IPPROTO_TCP};
    uint32_t kind = ~(uint32_t)(SOCK_NONBLOCK | SOCK_CLOEXEC);
    for (unsigned i = 0; i < 4; i++) {
        errand__bpf_test stream[] = {is(0, families[i & 1]), masked(1, kind, SOCK_STREAM),
                                     is(2, protocols[i >> 1])};
        rule(self, SECCOMP_RET_ALLOW, 3, stream);
    }
    static const uint32_t others[] = {SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        rule_one(self, denied, masked(1, kind, others[i]));
    rule_range(self, denied, 0, 0, AF_INET - 1);
    rule_range(self, denied, 0, AF_INET + 1, AF_INET6 - 1);
    rule_range(self, denied, 0, AF_INET6 + 1, AF_MAX - 1);
    /* A send that connects is not seen by the ruleset. */
    errand__bpf_test plain[] = {masked(3, MSG_FASTOPEN, 0), masked(4, UINT64_MAX, 0)};
    call(self, "sendto");
    rule(self, SECCOMP_RET_ALLOW, 2, plain);
    call(self, "sendmsg");
    rule_one(self, SECCOMP_RET_ALLOW, masked(2, MSG_FASTOPEN, 0));
    static const struct {
        uint32_t level, name;
    } options[] = {{SOL_SOCKET, SO_REUSEADDR},      {SOL_SOCKET, SO_SNDBUF},
                   {SOL_SOCKET, SO_RCVBUF},         {SOL_SOCKET, SO_KEEPALIVE},
                   {SOL_SOCKET, SO_LINGER},         {SOL_SOCKET, SO_RCVTIMEO},
                   {SOL_SOCKET, SO_SNDTIMEO},       {IPPROTO_TCP, TCP_NODELAY},
                   {IPPROTO_TCP, TCP_CORK},         {IPPROTO_TCP, TCP_KEEPIDLE},
                   {IPPROTO_TCP, TCP_KEEPINTVL},    {IPPROTO_TCP, TCP_KEEPCNT},
                   {IPPROTO_TCP, TCP_USER_TIMEOUT}, {IPPROTO_TCP, TCP_QUICKACK}};
    call(self, "setsockopt");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        errand__bpf_test option[] = {is(1, options[i].level), is(2, options[i].name)};
        rule(self, SECCOMP_RET_ALLOW, 2, option);
    }
}

static void
rules_of_descriptors(rules *self)
{
    const uint32_t files =
        ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH | ERRAND_PROMISE_INET;
    const uint32_t invalid = refuse(self, EINVAL);
    call(self, "close");
    rule_one(self, refuse(self, EBADF), is(0, ERRAND__WIRE_LIFELINE_FD));
    rule_else(self, SECCOMP_RET_ALLOW);
    call(self, "fcntl");
    if ((self->promises & files) == 0) {
        rule_else(self, invalid);
        return;
    }
    /* No second lifeline, nor other flags of it: they are those of the file, whatever number it has. */
    errand__bpf_test lifeline[] = {is(0, ERRAND__WIRE_LIFELINE_FD),
                                   masked(1, ~(uint32_t)(F_DUPFD | F_SETFL), 0)};
    rule(self, invalid, 2, lifeline);
    /* Up to locks; no owner, no lease, no seal. */
    rule_range(self, SECCOMP_RET_ALLOW, 1, 0, F_SETLKW);
    rule_range(self, invalid, 1, F_SETLKW + 1, FCNTL_MAX);
    rule_range(self, invalid, 1, F_LINUX, F_LINUX + FCNTL_MAX);
}

/* To report, who changes the mask of signals is trapped: the C library blocks them all around clone, and a
 * trap while SIGSYS is blocked is the end. */
static void
rules_all(rules *self)
{
    if (self->reports) {
        call(self, "rt_sigprocmask");
        rule_else(self, SECCOMP_RET_TRAP | ERRAND__WIRE_TRAP_MASK);
    }
    rules_of_waiting(self);
    for (size_t i = 0; i < sizeof granted_calls / sizeof granted_calls[0]; i++) {
        const granted *item = &granted_calls[i];
        if (item->promises == 0 || (item->promises & self->promises) != 0)
            rule_words(self, SECCOMP_RET_ALLOW, item->names);
    }
    if (self->stage == ERRAND__FILTER_LOADING) {
        rule_words(self, SECCOMP_RET_ALLOW, loading_calls);
        call(self, "seccomp");
        rule_one(self, SECCOMP_RET_ALLOW, is(0, SECCOMP_SET_MODE_FILTER));
    }
    for (size_t i = 0; i < sizeof refused_calls / sizeof refused_calls[0]; i++)
        rule_words(self, refuse(self, refused_calls[i].error), refused_calls[i].names);
    rules_of_memory(self);
    rules_of_open(self, "open", 1);
    rules_of_open(self, "openat", 2);
    rules_of_sockets(self);
    rules_of_descriptors(self);
}

static int
find_marks(errand__filter *filter)
{
    filter->tgid_count = 0;
    for (uint32_t i = 0; i < filter->length; i++) {
        const struct sock_filter *at = &filter->program[i];
        if (at->code != (BPF_JMP | BPF_JEQ | BPF_K) || at->k != TGID_MARK)
            continue;
        if (filter->tgid_count == ERRAND__WIRE_TGIDS)
            return E2BIG;
        filter->tgid_patch[filter->tgid_count++] = i;
    }
    return filter->tgid_count == 0 ? EPROTO : 0;
}

errand_status
errand__filter_create(uint32_t promises, errand_on_deny on_deny,
                      errand__filter_stage stage, errand__filter *out_filter,
                      char *out_text, size_t size)
{
    errand__filter made = {0};
    rules self = {
        .promises = promises, .stage = stage, .reports = on_deny == ERRAND_DENY_REPORT};
    errand__bpf_begin(&self.bpf, seccomp_arch_native(), refuse(&self, ENOSYS),
                      self.reports ? SECCOMP_RET_TRAP : SECCOMP_RET_KILL_PROCESS);
    rules_all(&self);
    int error = errand__bpf_finish(&self.bpf, &made.program, &made.length);
    if (error == 0)
        error = find_marks(&made);
    if (error != 0) {
        errand__filter_destroy(&made);
        errand__text_format(out_text, size, "no seccomp program could be made: %s",
                            strerror(error));
        return error == ENOMEM ? ERRAND_ENOMEM : ERRAND_EUNSUPPORTED;
    }
    *out_filter = made;
    return ERRAND_OK;
}

void
errand__filter_destroy(errand__filter *filter)
{
    if (filter->program != NULL)
        errand__mem_free(NULL, filter->program, filter->length * sizeof *filter->program);
    *filter = (errand__filter){0};
}

void
errand__filter_call_name(int number, char *out, size_t size)
{
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    if (name != NULL)
        errand__text_format(out, size, "%s", name);
    else
        errand__text_format(out, size, "call %d", number);
    free(name);
}
