/* SPDX-License-Identifier: MIT */
/* Design notes
 * - A fault's handler notes and returns: the handler is gone by then, the instruction faults again,
 *   and the process dies by the signal that it deserves.  It runs on a stack of its own, so that
 *   an overflow is noted too.
 * - A signal that somebody sent does not come again by itself; only outside can it come from (the
 *   filter denies sending), and the second one ends the process.  SIGABRT alone a job can send to
 *   itself: the handler sends it on.
 * - Who could not allocate mostly ends soon: by what it wrote to address 0, by abort, by exit.  Then
 *   errno still says so, or an eighth of its memory cannot be had.
 * - A program that was started by vfork has its parent's memory at that moment as its own peak: what is
 *   noted first tells the two apart.
 * - To report, a call that the filter answers with an error comes here as a trap: it is noted, and the
 *   error is put where the call's result is looked for.  So that no trap finds SIGSYS blocked,
 *   which would be the end, changes of the mask come here too, and leave that signal out.
 * - What is noted is in memory that the job can write: a hint for people, no evidence. */
#include "program.h"

#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    STACK_SIZE = 64 * 1024,
    FRAME = 64 * 1024 /* a fault so near to the stack pointer is the stack's */
};
static unsigned char stack[STACK_SIZE];
static errand__wire_response *noted;
static bool reporting, served;
static size_t room; /* without so much more it is short of memory; 0 = unknown */

static void
note_memory(void)
{
    bool is_short = errno == ENOMEM;
    if (!is_short && room != 0) {
        void *more = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        is_short = more == MAP_FAILED;
        if (!is_short)
            munmap(more, room);
    }
    if (is_short)
        atomic_store_explicit(&noted->short_of_memory, 1, memory_order_relaxed);
}

#if defined(__x86_64__)
#define STACK_POINTER(context) ((uint64_t)(context)->uc_mcontext.gregs[REG_RSP])
#elif defined(__aarch64__)
#define STACK_POINTER(context) ((uint64_t)(context)->uc_mcontext.sp)
#endif

static void
note_fault(int number, siginfo_t *info, void *context)
{
    if (info->si_code <= 0)
        return;
    note_memory();
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    uint64_t pointer = STACK_POINTER((const ucontext_t *)context);
    if (number == SIGSEGV && address + FRAME > pointer && address < pointer + FRAME)
        atomic_store_explicit(&noted->short_of_stack, 1, memory_order_relaxed);
    atomic_store_explicit(&noted->fault_address, address, memory_order_relaxed);
    atomic_store_explicit(&noted->fault_signal, (uint32_t)number, memory_order_relaxed);
}

/* Blocked until this returns, and by default then. */
static void
note_abort(int number, siginfo_t *info, void *context)
{
    (void)context;
    (void)info;
    note_memory();
    atomic_store_explicit(&noted->fault_signal, (uint32_t)number, memory_order_relaxed);
    (void)tgkill(getpid(), gettid(), SIGABRT);
}

#if defined(__x86_64__)
enum { NATIVE = (int)AUDIT_ARCH_X86_64 };
static long long *
register_of(ucontext_t *context, unsigned argument)
{
    static const int numbers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};
    return &context->uc_mcontext.gregs[numbers[argument]];
}
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
enum { NATIVE = (int)AUDIT_ARCH_AARCH64 };
static unsigned long long *
register_of(ucontext_t *context, unsigned argument)
{
    return &context->uc_mcontext.regs[argument];
}
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#else
#error "a trapped call's registers are not known for this machine"
#endif

/* Each call once. */
static void
note_refused(uint32_t call, uint32_t error)
{
    for (int i = 0; i < ERRAND__WIRE_REFUSED; i++) {
        uint32_t seen = 0;
        if (atomic_compare_exchange_strong_explicit(
                &noted->refused[i], &seen, call | error << 16, memory_order_relaxed,
                memory_order_relaxed) ||
            (seen & 0xffff) == call)
            return;
    }
}

/* rt_sigprocmask(how, set, old, size) of the context that was trapped, as the kernel does it. */
static long
change_mask(ucontext_t *context)
{
    uint64_t mask, set = 0, never = 0;
    const void *from = (const void *)(uintptr_t)*register_of(context, 1);
    void *old = (void *)(uintptr_t)*register_of(context, 2);
    long how = (long)*register_of(context, 0);
    static const int kept[] = {SIGSYS, SIGKILL, SIGSTOP};
    if (*register_of(context, 3) != sizeof mask)
        return -EINVAL;
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    uint64_t before = mask;
    if (from != NULL) {
        memcpy(&set, from, sizeof set);
        if (how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
            return -EINVAL;
        mask = how == SIG_BLOCK ? mask | set : how == SIG_UNBLOCK ? mask & ~set : set;
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
            never |= UINT64_C(1) << (kept[i] - 1);
        mask &= ~never;
        memcpy(&context->uc_sigmask, &mask, sizeof mask);
    }
    if (old != NULL)
        memcpy(old, &before, sizeof before);
    return 0;
}

static void
note_denied(int number, siginfo_t *info, void *context)
{
    (void)number;
    ucontext_t *trapped = context;
    uint32_t call = (uint32_t)info->si_syscall + 1, data = (uint32_t)info->si_errno;
    bool native = info->si_arch == (unsigned)NATIVE;
    if (native && data == ERRAND__WIRE_TRAP_MASK) {
        RESULT(trapped) = change_mask(trapped);
        return;
    }
    if (native && data != 0) {
        note_refused(call, data - 1);
        RESULT(trapped) = -(long)(data - 1);
        return;
    }
    atomic_store_explicit(&noted->denied_call, call, memory_order_relaxed);
    _exit(ERRAND__EXIT_DENIED);
}

/* A host's children inherit what it ignores and blocks. */
static void
signals_reset(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &plain, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void
errand__report_init(errand__wire_response *response, bool denied_too)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct rusage used;
    noted = response;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        atomic_store_explicit(&noted->peak_before, (uint64_t)used.ru_maxrss << 10,
                              memory_order_relaxed);
    signals_reset();
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_sigaction = note_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigaction(faults[i], &action, NULL);
    action.sa_sigaction = note_abort;
    sigaction(SIGABRT, &action, NULL);
    (void)atexit(note_memory);
    if (denied_too) {
        reporting = true;
        action.sa_sigaction = note_denied;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSYS, &action, NULL);
    }
}

void
errand__report_limit(uint64_t memory_bytes)
{
    room = (size_t)(memory_bytes / 8);
}

void
errand__report_begin(void)
{
    for (int i = 0; reporting && served && i < ERRAND__WIRE_REFUSED; i++)
        atomic_store_explicit(&noted->refused[i], 0, memory_order_relaxed);
    served = true;
}
