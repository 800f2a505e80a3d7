/* SPDX-License-Identifier: MIT */
/* fault: signals of a body's own instruction, caught on its worker.
 *
 * Design notes.
 * - The handlers belong to the process.  They act only if the calling thread is a worker of a pool
 *   that catches, a body runs on it, and the signal is synchronous: the kernel says so by a
 *   positive si_code; of SIGABRT the registers do, which show the thread's own tgkill to itself.
 *   A jump out of anything else would tear code in the middle of a list.  All other signals go to
 *   the handler that was there before, or do what they do by default.
 * - The handler reads a thread-local pointer that needs no allocation (initial-exec), compares the
 *   kernel's number of the thread, because a child of fork has a copy of the pointer, writes what
 *   happened into a mapping of its own and jumps to the thread's first frame.  Nothing else.
 * - It runs on an alternate stack between guards, else a stack overflow could not be told.
 * - It blocks every signal while it runs, and a fault in it ends the process.  The mask stays: the
 *   thread ends.
 * - A handler that was put in over ours stays when the last user goes, and may go on calling ours. A
 *   pool that comes later puts ours over it again; from then on two handlers may each have the other
 *   for the one before.  So ours, called while it hands on, goes to the one that was there first. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "dispatch/hands.h"
#include "dispatch/fault.h"

#define PAGE           ((size_t)4096)
#define ALTERNATE_SIZE ((size_t)65536)
/* guard, alternate stack, guard, errand__fault, guard; guards of 64 KiB, where pages may be large. */
#define AT_ALTERNATE ERRAND__GUARD_SIZE
#define AT_FAULT     (AT_ALTERNATE + ALTERNATE_SIZE + ERRAND__GUARD_SIZE)
#define REGION_SIZE  (AT_FAULT + 2 * ERRAND__GUARD_SIZE)

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

typedef struct place { /* one signal's */
    bool in;           /* ours is in place, or a later one may call it */
    bool layered;      /* ours was put over a later one that may call it */
    struct sigaction first, before;
} place;

/* Guarded by handlers_lock; the handler reads what was written before it was put in. */
static errand__lock handlers_lock;
static uint32_t handlers_users;
static place places[CAUGHT];

/* current: the calling thread's, NULL if it catches nothing.  The handler may run on any thread. */
static _Thread_local errand__fault *volatile current
    __attribute__((tls_model("initial-exec")));
static _Thread_local volatile sig_atomic_t handing_on
    __attribute__((tls_model("initial-exec")));

/* ---- the handler ------------------------------------------------------------------------------ */

static uintptr_t
instruction_of(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return 0; /* in no module: suspect */
#endif
}

/* Did the interrupted thread just send itself this signal?  Where the registers cannot tell, the
 * process that sent it must do. */
static bool
raised_here(const ucontext_t *context, const errand__fault *fault, int number)
{
#if defined(__x86_64__)
    const greg_t *registers = context->uc_mcontext.gregs;

    return registers[REG_RDI] == fault->process && registers[REG_RSI] == fault->thread &&
           registers[REG_RDX] == number && registers[REG_RAX] == 0;
#elif defined(__aarch64__)
    const ucontext_t *at = context;

    return at->uc_mcontext.regs[8] == SYS_tgkill &&
           (pid_t)at->uc_mcontext.regs[1] == fault->thread &&
           (int)at->uc_mcontext.regs[2] == number;
#else
    (void)context;
    (void)fault;
    (void)number;
    return true;
#endif
}

static bool
is_synchronous(int number, const siginfo_t *info, const ucontext_t *context,
               const errand__fault *fault)
{
    if (number != SIGABRT)
        return info->si_code > 0;
    return info->si_code == SI_TKILL && info->si_pid == fault->process &&
           raised_here(context, fault, number);
}

/* By default: a fault meets its instruction again, another signal is sent again; either ends the
 * process, because the mask holds it back no longer than this handler runs. */
static void
by_default(int number, const siginfo_t *info)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};

    sigemptyset(&usual.sa_mask);
    sigaction(number, &usual, NULL);
    if (info->si_code <= 0)
        syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), (long)number);
}

static void
call(const struct sigaction *next, int number, siginfo_t *info, void *context)
{
    if ((next->sa_flags & SA_SIGINFO) != 0)
        next->sa_sigaction(number, info, context);
    else if (next->sa_handler == SIG_DFL ||
             (next->sa_handler == SIG_IGN && info->si_code > 0))
        by_default(number, info);
    else if (next->sa_handler != SIG_IGN)
        next->sa_handler(number);
}

static void
hand_on(int number, siginfo_t *info, void *context)
{
    const place *at = NULL;

    for (int i = 0; i < CAUGHT; i++)
        if (caught[i] == number)
            at = &places[i];
    if (at == NULL)
        return;
    if (!at->layered) {
        call(&at->before, number, info, context);
    } else if (handing_on) {
        call(&at->first, number, info, context);
    } else {
        handing_on = 1;
        call(&at->before, number, info, context);
        handing_on = 0;
    }
}

static void
handle(int number, siginfo_t *info, void *context)
{
    errand__fault *fault = current;
    int error = errno;

    if (fault != NULL && fault->armed && fault->thread == (pid_t)syscall(SYS_gettid) &&
        is_synchronous(number, info, context, fault)) {
        fault->armed = 0;
        fault->signal_number = number;
        fault->signal_code = info->si_code;
        fault->address = number == SIGABRT ? 0 : (uintptr_t)info->si_addr;
        fault->pc = instruction_of(context);
        siglongjmp(fault->jump, 1);
    }
    errno = error;
    hand_on(number, info, context);
}

/* ---- putting it in place ----------------------------------------------------------------------- */

bool
errand__fault_possible(void)
{
    if (ERRAND_SANITIZED)
        return false;
    errand__modules_refresh();
    return !errand__modules_named("vgpreload");
}

static bool
is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle;
}

static bool
handler_put(int i)
{
    struct sigaction own = {.sa_flags = SA_SIGINFO | SA_ONSTACK}, now;
    place *at = &places[i];

    own.sa_sigaction = handle;
    sigfillset(&own.sa_mask);
    if (sigaction(caught[i], NULL, &now) != 0)
        return false;
    if (is_ours(&now))
        return true;
    if (!at->in)
        at->first = now;
    at->layered = at->in;
    at->before = now; /* from the moment ours is in place it may hand on */
    at->in = sigaction(caught[i], &own, NULL) == 0 || at->in;
    return at->in;
}

/* One that somebody put over ours stays, and so may ours below it. */
static void
handlers_remove(void)
{
    struct sigaction now;

    for (int i = 0; i < CAUGHT; i++) {
        place *at = &places[i];

        if (at->in && sigaction(caught[i], NULL, &now) == 0 && is_ours(&now)) {
            sigaction(caught[i], &at->before, NULL);
            at->in = at->layered;
        }
    }
}

bool
errand__fault_handlers_take(void)
{
    bool put = true;

    errand__lock_acquire(&handlers_lock);
    for (int i = 0; i < CAUGHT; i++)
        put = handler_put(i) && put;
    if (put)
        handlers_users++;
    else if (handlers_users == 0)
        handlers_remove();
    errand__lock_release(&handlers_lock);
    return put;
}

void
errand__fault_handlers_give(void)
{
    errand__lock_acquire(&handlers_lock);
    if (--handlers_users == 0)
        handlers_remove();
    errand__lock_release(&handlers_lock);
}

/* ---- a worker's part ---------------------------------------------------------------------------- */

errand__fault *
errand__fault_create(void)
{
    char *region = errand__mem_map(REGION_SIZE);

    _Static_assert(sizeof(errand__fault) <= PAGE, "it has one page");
    if (region == NULL)
        return NULL;
    if (mprotect(region, AT_ALTERNATE, PROT_NONE) != 0 ||
        mprotect(region + AT_ALTERNATE + ALTERNATE_SIZE, ERRAND__GUARD_SIZE, PROT_NONE) !=
            0 ||
        mprotect(region + AT_FAULT + ERRAND__GUARD_SIZE, ERRAND__GUARD_SIZE, PROT_NONE) !=
            0) {
        errand__mem_unmap(region, REGION_SIZE);
        return NULL;
    }
    return (errand__fault *)(void *)(region + AT_FAULT);
}

void
errand__fault_destroy(errand__fault *fault)
{
    if (fault != NULL)
        errand__mem_unmap((char *)fault - AT_FAULT, REGION_SIZE);
}

bool
errand__fault_enter(errand__fault *fault)
{
    stack_t stack = {.ss_sp = (char *)fault - AT_FAULT + AT_ALTERNATE,
                     .ss_size = ALTERNATE_SIZE};
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size;

    fault->armed = 0;
    fault->process = getpid();
    fault->thread = (pid_t)syscall(SYS_gettid);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    fault->stack_low = (uintptr_t)low;
    if (sigaltstack(&stack, NULL) != 0)
        return false;
    current = fault;
    return true;
}

void
errand__fault_leave(errand__fault *fault)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    fault->armed = 0;
    current = NULL;
    (void)sigaltstack(&none, NULL);
}

void
errand__fault_know(errand__fault *fault, uintptr_t function)
{
    errand__module module;
    bool found = errand__modules_find(function, &module);

    if (!found) {
        errand__modules_refresh();
        found = errand__modules_find(function, &module);
    }
    /* In none: code that was made at run time; it is not asked for again. */
    fault->known = found ? module.start : function;
    fault->known_size = found ? module.size : 1;
}

/* ---- what happened ------------------------------------------------------------------------------- */

void
errand__fault_read(const errand__fault *fault, uintptr_t function, bool in_library,
                   errand_fault *out)
{
    errand__module at, own;
    bool known = errand__modules_find(fault->pc, &at);

    memset(out, 0, sizeof *out);
    out->signal_number = fault->signal_number;
    out->signal_code = fault->signal_code;
    out->address = fault->address;
    out->pc = fault->pc;
    out->stack_overflow = fault->signal_number == SIGSEGV && fault->stack_low != 0 &&
                          fault->address < fault->stack_low &&
                          fault->stack_low - fault->address <= ERRAND__GUARD_SIZE;
    out->verdict = ERRAND_FAULT_SUSPECT;
    if (!known)
        return;
    out->pc_offset = fault->pc - at.base;
    memcpy(out->module, at.name, sizeof out->module);
    if (fault->signal_number != SIGABRT && !in_library && !at.lonely &&
        errand__modules_find(function, &own) && own.number == at.number)
        out->verdict = ERRAND_FAULT_CLEAN;
}

static const char *
name_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    default:
        return "SIGABRT";
    }
}

void
errand__fault_text(const errand_fault *fault, char *text, size_t size)
{
    const char *verdict =
        fault->verdict == ERRAND_FAULT_CLEAN ? "clean" : "suspect, a restart is advised";

    errand__text_format(text, size, "%s%s",
                        fault->stack_overflow ? "stack overflow: " : "",
                        name_of(fault->signal_number));
    if (fault->signal_number != SIGABRT)
        errand__text_append(text, size, " at address 0x%llx",
                            (unsigned long long)fault->address);
    errand__text_append(text, size, ", instruction 0x%llx",
                        (unsigned long long)fault->pc);
    if (fault->module[0] != '\0')
        errand__text_append(text, size, " (%s+0x%llx)", fault->module,
                            (unsigned long long)fault->pc_offset);
    errand__text_append(text, size, "; %s", verdict);
}

void
errand__fault_note(const errand_fault *fault, errand__hands *hands)
{
    errand_job *job = hands->job;
    char text[256];

    for (; job->defers != NULL; job->defers = job->defers->next)
        hands->cleanups_lost++; /* their blocks too: the allocator may be locked */
    hands->leaked += hands->cleanups_lost;
    if (fault->verdict == ERRAND_FAULT_SUSPECT) {
        hands->memory_lost = hands->arena_blocks;
        hands->leaked += hands->arena_blocks + (job->payload.held_type != NULL);
        job->payload = (errand_payload){.data = NULL};
        hands->arena_blocks = hands->arena_bytes = 0;
        hands->arena = NULL;
    }
    errand__fault_text(fault, text, sizeof text);
    errand_job_fail(job, 0, fault->signal_number, NULL, "%s", text);
}
