/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Calls are named, never numbered: a name that this machine or the library at hand does not
 *   know is left out, and with it the call falls to the default.
 * - Default is to end the whole process (or, to report, a trap).  What libraries try by habit
 *   and can do without gets the error they expect, so that they go on.
 * - A rule's arguments are compared once each, so "else" is written as the opposite rule, or
 *   as several that cover it.  No two rules of one call with different actions overlap.
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
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <seccomp.h>
#include "core/core.h"
#include "workers/sandbox/wire.h"

#define TGID_MARK     0x5e47a9d3u /* no process id: above what the kernel gives */
#define UNKNOWN_CALLS 450u        /* from here on: newer than this file */
#define X32_CALLS     0x40000000u
#define THREAD_FLAGS                                                                     \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |  \
     CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define MAP_KIND ((uint64_t)0x0f | MAP_ANONYMOUS)
/* What makes an open more than reading; O_TMPFILE holds O_DIRECTORY, which is none. */
#define OPEN_WRITES ((uint64_t)O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

enum { FCNTL_MAX = 40, F_LINUX = 1024 };

typedef struct rules {
    scmp_filter_ctx context;
    uint32_t promises;
    errand__filter_stage stage;
    int error; /* the first; 0 = none */
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
     "pwrite64 pwritev ftruncate fsync fdatasync fallocate mkdir mkdirat "
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

/* Conditions on argument at: masked, or (of an int, whose upper half may hold anything) equal. */
static struct scmp_arg_cmp
masked(unsigned at, uint64_t mask, uint64_t value)
{
    return (struct scmp_arg_cmp){
        .arg = at, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

static struct scmp_arg_cmp
is(unsigned at, uint32_t value)
{
    return masked(at, UINT32_MAX, value);
}

static void
rule(rules *self, uint32_t action, const char *name, unsigned count,
     const struct scmp_arg_cmp *arguments)
{
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || self->error != 0)
        return;
    int answer = seccomp_rule_add_array(self->context, action, number, count, arguments);
    if (answer != 0)
        self->error = -answer;
}

static void
rule_one(rules *self, uint32_t action, const char *name, struct scmp_arg_cmp argument)
{
    rule(self, action, name, 1, &argument);
}

/* Is name one of the words of names? */
static bool
has_word(const char *names, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = strstr(names, name); at != NULL; at = strstr(at + 1, name)) {
        bool starts = at == names || at[-1] == ' ';
        if (starts && (at[size] == ' ' || at[size] == '\0'))
            return true;
    }
    return false;
}

static bool
is_granted(const rules *self, const char *name)
{
    if (self->stage == ERRAND__FILTER_LOADING && has_word(loading_calls, name))
        return true;
    for (size_t i = 0; i < sizeof granted_calls / sizeof granted_calls[0]; i++) {
        const granted *item = &granted_calls[i];
        if ((item->promises == 0 || (item->promises & self->promises) != 0) &&
            has_word(item->names, name))
            return true;
    }
    return false;
}

/* Allows name for every descriptor (argument 0) but the lifeline, where argument 1 is command or there
 * is none (commands == 0).  One rule for each bit in which a descriptor can differ from it. */
static void
rule_but_lifeline(rules *self, uint32_t error, const char *name, unsigned commands,
                  uint32_t command)
{
    const uint32_t lifeline = ERRAND__WIRE_LIFELINE_FD;
    for (unsigned bit = 0; bit < 32; bit++) {
        uint32_t mask = UINT32_C(1) << bit;
        struct scmp_arg_cmp other[] = {masked(0, mask, ~lifeline & mask), is(1, command)};
        rule(self, SCMP_ACT_ALLOW, name, 1 + commands, other);
    }
    struct scmp_arg_cmp same[] = {is(0, lifeline), is(1, command)};
    rule(self, SCMP_ACT_ERRNO(error), name, 1 + commands, same);
}

/* One rule for each word; granted: those that are granted, else those that are not. */
static void
rule_words(rules *self, uint32_t action, const char *names, bool for_granted)
{
    while (*names != '\0') {
        char name[32];
        size_t size = strcspn(names, " ");
        ERRAND_ASSERT(size < sizeof name);
        memcpy(name, names, size);
        name[size] = '\0';
        if (is_granted(self, name) == for_granted)
            rule(self, action, name, 0, NULL);
        names += size + (names[size] == ' ');
    }
}

static void
rules_of_memory(rules *self)
{
    uint32_t denied = SCMP_ACT_ERRNO(EACCES);
    struct scmp_arg_cmp plain[] = {masked(2, PROT_EXEC, 0),
                                   masked(3, MAP_KIND, MAP_PRIVATE | MAP_ANONYMOUS)};
    rule(self, SCMP_ACT_ALLOW, "mmap", 2, plain);
    if (self->stage == ERRAND__FILTER_LOADING) {
        /* Files: read, written (copies), or executed, but not the last two at once. */
        static const uint64_t modes[] = {0, PROT_WRITE, PROT_EXEC};
        uint64_t mask = PROT_WRITE | PROT_EXEC;
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
            struct scmp_arg_cmp file[] = {masked(2, mask, modes[i]),
                                          masked(3, MAP_KIND, MAP_PRIVATE)};
            rule(self, SCMP_ACT_ALLOW, "mmap", 2, file);
        }
        struct scmp_arg_cmp both[] = {masked(2, mask, mask)};
        rule(self, denied, "mmap", 1, both);
        struct scmp_arg_cmp nowhere[] = {
            masked(2, mask, PROT_EXEC), masked(3, MAP_KIND, MAP_PRIVATE | MAP_ANONYMOUS)};
        rule(self, denied, "mmap", 2, nowhere);
    } else {
        rule_one(self, denied, "mmap", masked(2, PROT_EXEC, PROT_EXEC));
        if ((self->promises & (ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH)) != 0) {
            struct scmp_arg_cmp file[] = {masked(2, PROT_EXEC, 0),
                                          masked(3, MAP_KIND, MAP_PRIVATE)};
            rule(self, SCMP_ACT_ALLOW, "mmap", 2, file);
        }
    }
    rule_one(self, SCMP_ACT_ALLOW, "mprotect", masked(2, PROT_EXEC, 0));
    rule_one(self, denied, "mprotect", masked(2, PROT_EXEC, PROT_EXEC));
    static const uint32_t advices[] = {MADV_NORMAL,   MADV_DONTNEED,   MADV_FREE,
                                       MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP};
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        rule_one(self, SCMP_ACT_ALLOW, "madvise", is(2, advices[i]));
}

static void
rules_of_waiting(rules *self)
{
    static const uint32_t operations[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET,
                                          FUTEX_WAKE_BITSET};
    uint32_t mask = ~(uint32_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        rule_one(self, SCMP_ACT_ALLOW, "futex", masked(1, mask, operations[i]));
    struct scmp_arg_cmp abort_self[] = {is(0, TGID_MARK), is(2, SIGABRT)};
    rule(self, SCMP_ACT_ALLOW, "tgkill", 2, abort_self);
    uint32_t again = SCMP_ACT_ERRNO(EAGAIN);
    if ((self->promises & ERRAND_PROMISE_THREAD) == 0) {
        rule(self, again, "clone", 0, NULL);
        return;
    }
    /* CLONE_DETACHED has no meaning any more, but some C libraries still set it. */
    rule_one(self, SCMP_ACT_ALLOW, "clone",
             masked(0, ~(uint32_t)CLONE_DETACHED, THREAD_FLAGS));
    uint32_t mask_thread = CLONE_VM | CLONE_THREAD;
    rule_one(self, again, "clone", masked(0, mask_thread, 0));
    rule_one(self, again, "clone", masked(0, mask_thread, CLONE_VM));
}

/* open and openat, whose flags are argument at. */
static void
rules_of_open(rules *self, const char *name, unsigned at)
{
    uint32_t denied = SCMP_ACT_ERRNO(EACCES);
    bool reads = (self->promises & ERRAND_PROMISE_RPATH) != 0 ||
                 self->stage == ERRAND__FILTER_LOADING;
    if ((self->promises & ERRAND_PROMISE_WPATH) != 0) {
        rule(self, SCMP_ACT_ALLOW, name, 0, NULL); /* landlock says where */
    } else if (!reads) {
        rule(self, denied, name, 0, NULL);
    } else {
        rule_one(self, SCMP_ACT_ALLOW, name, masked(at, OPEN_WRITES, 0));
        static const uint64_t bits[] = {1, 2, O_CREAT, O_TRUNC, O_TMPFILE & ~O_DIRECTORY};
        for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
            rule_one(self, denied, name, masked(at, bits[i], bits[i]));
    }
}

static void
rules_of_sockets(rules *self)
{
    uint32_t denied = SCMP_ACT_ERRNO(EACCES);
    if ((self->promises & ERRAND_PROMISE_INET) == 0) {
        rule(self, denied, "socket", 0, NULL);
        return;
    }
    /* Streams of TCP alone: the ruleset's ports count for no other protocol. */
    static const uint32_t families[] = {AF_INET, AF_INET6};
    static const uint32_t protocols[] = {0, IPPROTO_TCP};
    uint32_t kind = ~(uint32_t)(SOCK_NONBLOCK | SOCK_CLOEXEC);
    for (unsigned i = 0; i < 4; i++) {
        struct scmp_arg_cmp stream[] = {is(0, families[i & 1]),
                                        masked(1, kind, SOCK_STREAM),
                                        is(2, protocols[i >> 1])};
        rule(self, SCMP_ACT_ALLOW, "socket", 3, stream);
    }
    for (uint32_t family = 0; family < AF_MAX; family++) {
        if (family != AF_INET && family != AF_INET6)
            rule_one(self, denied, "socket", is(0, family));
    }
    static const uint32_t others[] = {SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        rule_one(self, denied, "socket", masked(1, kind, others[i]));
    /* A send that connects is not seen by the ruleset. */
    struct scmp_arg_cmp plain[] = {masked(3, MSG_FASTOPEN, 0), masked(4, UINT64_MAX, 0)};
    rule(self, SCMP_ACT_ALLOW, "sendto", 2, plain);
    rule_one(self, SCMP_ACT_ALLOW, "sendmsg", masked(2, MSG_FASTOPEN, 0));
    static const struct {
        uint32_t level, name;
    } options[] = {{SOL_SOCKET, SO_REUSEADDR},      {SOL_SOCKET, SO_SNDBUF},
                   {SOL_SOCKET, SO_RCVBUF},         {SOL_SOCKET, SO_KEEPALIVE},
                   {SOL_SOCKET, SO_LINGER},         {SOL_SOCKET, SO_RCVTIMEO},
                   {SOL_SOCKET, SO_SNDTIMEO},       {IPPROTO_TCP, TCP_NODELAY},
                   {IPPROTO_TCP, TCP_CORK},         {IPPROTO_TCP, TCP_KEEPIDLE},
                   {IPPROTO_TCP, TCP_KEEPINTVL},    {IPPROTO_TCP, TCP_KEEPCNT},
                   {IPPROTO_TCP, TCP_USER_TIMEOUT}, {IPPROTO_TCP, TCP_QUICKACK}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct scmp_arg_cmp option[] = {is(1, options[i].level), is(2, options[i].name)};
        rule(self, SCMP_ACT_ALLOW, "setsockopt", 2, option);
    }
}

static void
rules_all(rules *self)
{
    for (size_t i = 0; i < sizeof granted_calls / sizeof granted_calls[0]; i++) {
        const granted *item = &granted_calls[i];
        if (item->promises == 0 || (item->promises & self->promises) != 0)
            rule_words(self, SCMP_ACT_ALLOW, item->names, true);
    }
    if (self->stage == ERRAND__FILTER_LOADING) {
        rule_words(self, SCMP_ACT_ALLOW, loading_calls, true);
        rule_one(self, SCMP_ACT_ALLOW, "seccomp", is(0, SECCOMP_SET_MODE_FILTER));
    }
    for (size_t i = 0; i < sizeof refused_calls / sizeof refused_calls[0]; i++)
        rule_words(self, SCMP_ACT_ERRNO((uint32_t)refused_calls[i].error),
                   refused_calls[i].names, false);
    rules_of_memory(self);
    rules_of_waiting(self);
    rules_of_open(self, "open", 1);
    rules_of_open(self, "openat", 2);
    rules_of_sockets(self);
    rule_but_lifeline(self, EBADF, "close", 0, 0);
    uint32_t invalid = SCMP_ACT_ERRNO(EINVAL);
    uint32_t files = ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH | ERRAND_PROMISE_INET;
    if ((self->promises & files) == 0) {
        rule(self, invalid, "fcntl", 0, NULL);
    } else { /* up to locks; no owner, no lease, no seal */
        rule_but_lifeline(self, EINVAL, "fcntl", 1, F_SETFL);
        for (uint32_t command = 0; command <= FCNTL_MAX; command++)
            if (command != F_SETFL)
                rule_one(self, command <= F_SETLKW ? SCMP_ACT_ALLOW : invalid, "fcntl",
                         is(1, command));
        for (uint32_t command = F_LINUX; command <= F_LINUX + FCNTL_MAX; command++)
            rule_one(self, invalid, "fcntl", is(1, command));
    }
}

/* Errors become traps that carry them. */
static void
trap_errors(struct sock_filter *program, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        struct sock_filter *at = &program[i];
        if (at->code == (BPF_RET | BPF_K) &&
            (at->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
            at->k = SECCOMP_RET_TRAP | ((at->k & SECCOMP_RET_DATA) + 1);
    }
}

/* The finished program, with what comes before it, into out_filter.  To report, who changes the mask of
 * signals is trapped: the C library blocks them all around clone, and a trap while SIGSYS is blocked is the
 * end. */
static int
export_program(scmp_filter_ctx context, bool reports, errand__filter *out_filter)
{
    const struct sock_filter first[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* Only to report: else no call has that number. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, reports ? __NR_rt_sigprocmask : UINT32_MAX, 0,
                 1),
        BPF_STMT(BPF_RET | BPF_K, reports ? SECCOMP_RET_TRAP | ERRAND__WIRE_TRAP_MASK
                                          : SECCOMP_RET_KILL_PROCESS),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, UNKNOWN_CALLS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
    struct sock_filter *program = NULL;
    int file = memfd_create("errand-filter", MFD_CLOEXEC);
    int error = file < 0 ? errno : -seccomp_export_bpf(context, file);
    off_t size = error == 0 ? lseek(file, 0, SEEK_END) : 0;
    if (error == 0 && (size <= 0 || (size_t)size % sizeof *program != 0))
        error = EPROTO;
    if (error == 0) {
        program = errand__mem_alloc(NULL, sizeof first + (size_t)size);
        if (program == NULL) {
            error = ENOMEM;
        } else if (pread(file, (char *)program + sizeof first, (size_t)size, 0) != size) {
            error = EIO;
            errand__mem_free(NULL, program, sizeof first + (size_t)size);
        }
    }
    if (file >= 0)
        close(file);
    if (error != 0)
        return error;
    memcpy(program, first, sizeof first);
    if (reports)
        trap_errors(program, (uint32_t)((sizeof first + (size_t)size) / sizeof *program));
    out_filter->program = program;
    out_filter->length = (uint32_t)((sizeof first + (size_t)size) / sizeof *program);
    return 0;
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
    uint32_t action =
        on_deny == ERRAND_DENY_REPORT ? SCMP_ACT_TRAP : SCMP_ACT_KILL_PROCESS;
    rules self = {.promises = promises, .stage = stage};
    self.context = seccomp_init(action);
    if (self.context == NULL) {
        self.error = ENOMEM;
    } else {
        int answer = seccomp_attr_set(self.context, SCMP_FLTATR_ACT_BADARCH,
                                      SCMP_ACT_KILL_PROCESS);
        self.error = -answer;
        rules_all(&self);
    }
    if (self.error == 0)
        self.error = export_program(self.context, on_deny == ERRAND_DENY_REPORT, &made);
    if (self.error == 0)
        self.error = find_marks(&made);
    if (self.context != NULL)
        seccomp_release(self.context);
    if (self.error != 0) {
        errand__filter_destroy(&made);
        errand__text_format(out_text, size, "no seccomp program could be made: %s",
                            strerror(self.error));
        return self.error == ENOMEM ? ERRAND_ENOMEM : ERRAND_EUNSUPPORTED;
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
