/* SPDX-License-Identifier: MIT */
/* Faults that leave a lock held: the job is told, and the host hangs as soon as it needs that lock. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bodies.h"

#define BODY(name)                                                                       \
    static int32_t name(errand_job *job, void *state, errand_payload *out_payload)
#define UNUSED ((void)job, (void)state, (void)out_payload)

static volatile int zero;
static void (*volatile give)(void *) = free;
static void *(*volatile take)(size_t) = malloc;

/* Blocks that no thread's cache takes, and that do not lie at the end of the heap. */
static size_t *
block_between(size_t size)
{
    size_t *block = take(size);

    (void)!take(size);
    return block;
}

BODY(double_free)
{
    void *block = block_between(4000);

    UNUSED;
    give(block);
    give(block);
    return 0;
}

BODY(corrupt_top)
{
    volatile size_t *block = take(100000); /* from the end of the heap */

    UNUSED;
    block[100000 / sizeof *block] = (size_t)-1 - zero;
    block[100000 / sizeof *block + 1] = (size_t)-1 - zero;
    return take(110000) == NULL;
}

static size_t elsewhere[8];

BODY(corrupt_bins)
{
    volatile size_t *block = block_between(4000);

    UNUSED;
    give((void *)block);
    block[0] = block[1] = (size_t)elsewhere; /* its neighbours in a list */
    return take(8000) == NULL;
}

static void
need_memory(void)
{
    for (size_t size = 2000; size < 200000; size *= 2)
        (void)!take(size);
}

BODY(write_bad_bytes)
{
    UNUSED;
    return fwrite((void *)(uintptr_t)(8 + zero), 1, 5000, stdout) == 0;
}

static void
need_stdout(void)
{
    (void)putchar('x');
}

BODY(bad_constructor)
{
    UNUSED;
    return dlopen(ERRAND_TEST_CONSTRUCTOR, RTLD_NOW) == NULL;
}

static void
need_loader(void)
{
    (void)dlopen("libm.so.6", RTLD_NOW);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

BODY(fault_with_a_mutex)
{
    UNUSED;
    pthread_mutex_lock(&mutex);
    *(volatile int *)(uintptr_t)zero = 1;
    return 0;
}

static void
need_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static pthread_mutex_t robust;

BODY(fault_with_a_robust_mutex)
{
    pthread_mutexattr_t attributes;

    UNUSED;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_mutex_lock(&robust);
    *(volatile int *)(uintptr_t)zero = 1;
    return 0;
}

static void
need_robust(void)
{
    if (pthread_mutex_lock(&robust) != EOWNERDEAD)
        abort();
}

/* ---- the guard -------------------------------------------------------------------------------------------- */

#define VICTIM ((size_t)65536)
static volatile unsigned char *victim;

/* A neighbour's memory below the guard of this thread's stack; answers how far it is. */
static size_t
place_victim(void)
{
    pthread_attr_t attributes;
    char here = 0;
    size_t size, guard;
    void *low;

    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_getguardsize(&attributes, &guard);
    char *wanted = (char *)low - guard - VICTIM;
    do { /* where nothing is yet */
        victim = mmap(wanted, VICTIM, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        wanted -= VICTIM;
    } while (victim == MAP_FAILED);
    return (size_t)(&here - (char *)(uintptr_t)victim) - 4096;
}

BODY(jump_over_the_guard)
{
    UNUSED;
    tier_jump_plain(place_victim(), 64);
    return 0;
}

BODY(jump_that_is_probed)
{
    UNUSED;
    tier_jump_probed(place_victim(), 64);
    return 0;
}

static bool
victim_is_hit(void)
{
    for (size_t i = 0; i < VICTIM; i++)
        if (victim[i] == 0x5a)
            return true;
    return false;
}

static void
victim_was_hit(void)
{
    if (!victim_is_hit())
        abort();
}

static void
victim_was_not_hit(void)
{
    if (victim_is_hit())
        abort();
}

const tier_case tier_locks[] = {
    {"double_free", TIER_HANGS, ERRAND_CRASHED, SIGABRT, true, double_free, need_memory},
    {"corrupt_top", TIER_HANGS, ERRAND_CRASHED, SIGABRT, true, corrupt_top, need_memory},
    {"corrupt_bins", TIER_HANGS, ERRAND_CRASHED, SIGABRT, true, corrupt_bins,
     need_memory},
    {"write_bad_bytes", TIER_HANGS, ERRAND_CRASHED, SIGSEGV, true, write_bad_bytes,
     need_stdout},
    {"bad_constructor", TIER_HANGS, ERRAND_CRASHED, SIGSEGV, true, bad_constructor,
     need_loader},
    {"fault_with_a_mutex", TIER_HANGS, ERRAND_CRASHED, SIGSEGV, false, fault_with_a_mutex,
     need_mutex},
    {"fault_with_a_robust_mutex", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, false,
     fault_with_a_robust_mutex, need_robust},
    {"jump_over_the_guard", TIER_GOES_ON, ERRAND_COMPLETED, 0, false, jump_over_the_guard,
     victim_was_hit},
    {"jump_that_is_probed", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, false,
     jump_that_is_probed, victim_was_not_hit},
};
const size_t tier_lock_count = sizeof tier_locks / sizeof tier_locks[0];
