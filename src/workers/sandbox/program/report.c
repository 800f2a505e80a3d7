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
 * - What is noted is in memory that the job can write: a hint for people, no evidence. */
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK_SIZE = 64 * 1024 };
static unsigned char stack[STACK_SIZE];
static errand__wire_response *noted;
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

static void
note_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0)
        return;
    note_memory();
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
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

static void
note_denied(int number, siginfo_t *info, void *context)
{
    (void)context;
    (void)number;
    uint32_t call = (uint32_t)info->si_syscall + 1;
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
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
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
        action.sa_sigaction = note_denied;
        sigaction(SIGSYS, &action, NULL);
    }
}

void
errand__report_limit(uint64_t memory_bytes)
{
    room = (size_t)(memory_bytes / 8);
}
