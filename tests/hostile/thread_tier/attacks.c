/* SPDX-License-Identifier: MIT */
/* Bodies that take the mechanism away, or end the process: no thread contains these. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bodies.h"

#define BODY(name)                                                                       \
    static int32_t name(errand_job *job, void *state, errand_payload *out_payload)
#define UNUSED ((void)job, (void)state, (void)out_payload)

static volatile int zero, sink;

static __attribute__((noinline)) int
recurse(volatile char *above, int depth)
{
    volatile char frame[512];

    frame[0] = (char)(above[0] + 1);
    return depth == 0 ? frame[0] : recurse(frame, depth - 1) + frame[0];
}

BODY(blocked_signal)
{
    sigset_t set;

    UNUSED;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    *(volatile int *)(uintptr_t)zero = 1;
    return 0;
}

BODY(reset_signal)
{
    UNUSED;
    signal(SIGSEGV, SIG_DFL);
    *(volatile int *)(uintptr_t)zero = 1;
    return 0;
}

BODY(no_alternate_stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    volatile char start[1] = {0};

    UNUSED;
    sigaltstack(&none, NULL);
    sink = recurse(start, 1 << 24);
    return 0;
}

BODY(unmapped_stack)
{
    pthread_attr_t attributes;
    size_t size;
    void *low;

    UNUSED;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    munmap(low, size);
    return 0;
}

static void *
fault_elsewhere(void *arg)
{
    *(volatile int *)(uintptr_t)zero = 1;
    return arg;
}

BODY(thread_of_its_own)
{
    pthread_t thread;

    UNUSED;
    (void)pthread_create(&thread, NULL, fault_elsewhere, NULL);
    pthread_join(thread, NULL);
    return 0;
}

BODY(raised_signal)
{
    UNUSED;
    raise(SIGSEGV);
    return 0;
}

static pthread_t body_thread;

static void *
abort_another(void *arg)
{
    pthread_kill(body_thread, SIGABRT);
    return arg;
}

/* Sent by a thread of the same process while the body computes: no jump out of that. */
BODY(abort_from_another_thread)
{
    pthread_t thread;

    UNUSED;
    body_thread = pthread_self();
    (void)pthread_create(&thread, NULL, abort_another, NULL);
    while (zero == 0)
        continue;
    return 0;
}

BODY(killed)
{
    UNUSED;
    kill(getpid(), SIGKILL);
    return 0;
}

BODY(smash_to_the_end)
{
    volatile char here = 0;

    UNUSED;
    for (volatile char *at = &here; zero == 0;
         at++) /* over the thread's own data, to its end */
        *at = 0x5a;
    return 0;
}

static void
host_handler(int number)
{
    volatile char start[1] = {(char)number};

    sink = recurse(start, 1 << 24);
}

/* The host's own handler is handed what is not ours, on our alternate stack, and needs more than
 * that has: a guard is below it. */
BODY(alternate_stack_overflow)
{
    struct sigaction action = {.sa_handler = host_handler, .sa_flags = SA_ONSTACK};

    UNUSED;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    raise(SIGSEGV);
    return 0;
}

BODY(exit_well)
{
    UNUSED;
    _exit(0);
}

const tier_case tier_attacks[] = {
    {"blocked_signal", TIER_KILLED, 0, SIGSEGV, false, blocked_signal, NULL},
    {"reset_signal", TIER_KILLED, 0, SIGSEGV, false, reset_signal, NULL},
    {"no_alternate_stack", TIER_KILLED, 0, SIGSEGV, false, no_alternate_stack, NULL},
    {"unmapped_stack", TIER_KILLED, 0, SIGSEGV, false, unmapped_stack, NULL},
    {"thread_of_its_own", TIER_KILLED, 0, SIGSEGV, false, thread_of_its_own, NULL},
    {"raised_signal", TIER_KILLED, 0, SIGSEGV, false, raised_signal, NULL},
    {"abort_from_another_thread", TIER_KILLED, 0, SIGABRT, false,
     abort_from_another_thread, NULL},
    {"killed", TIER_KILLED, 0, SIGKILL, false, killed, NULL},
    {"smash_to_the_end", TIER_KILLED, 0, SIGSEGV, false, smash_to_the_end, NULL},
    {"alternate_stack_overflow", TIER_KILLED, 0, SIGSEGV, false, alternate_stack_overflow,
     NULL},
    {"exit", TIER_EXITS, 0, 0, false, exit_well, NULL},
};
const size_t tier_attack_count = sizeof tier_attacks / sizeof tier_attacks[0];
