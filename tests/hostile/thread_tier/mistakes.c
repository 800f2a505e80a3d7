/* SPDX-License-Identifier: MIT */
/* Mistakes that leave nothing locked: the host goes on. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bodies.h"
#include "errand/executor.h"

#define BODY(name)                                                                       \
    static int32_t name(errand_job *job, void *state, errand_payload *out_payload)
#define UNUSED ((void)job, (void)state, (void)out_payload)

static volatile int zero, sink;
static void (*volatile give)(void *) = free; /* the compiler knows free too well */
static size_t (*volatile measure)(const char *) = strlen;

BODY(null_write)
{
    UNUSED;
    *(volatile int *)(uintptr_t)zero = 1;
    return 0;
}

BODY(wild_jump)
{
    void (*volatile nowhere)(void) = (void (*)(void))0x1000;

    UNUSED;
    nowhere();
    return 0;
}

BODY(non_canonical)
{
    UNUSED;
    *(volatile int *)(uintptr_t)UINT64_C(0x5a5a000000000010) = 1;
    return 0;
}

BODY(truncated_map)
{
    FILE *file = tmpfile();
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);

    UNUSED;
    sink = page[0];
    return 0;
}

BODY(divide_by_zero)
{
    UNUSED;
    sink = 7 / zero;
    return 0;
}

BODY(undefined_instruction)
{
    UNUSED;
    __builtin_trap();
    return 0;
}

BODY(bad_strlen)
{
    UNUSED;
    sink = (int)measure((const char *)8);
    return 0;
}

BODY(wild_free)
{
    UNUSED;
    give((char *)malloc(64) + 24);
    return 0;
}

BODY(call_abort)
{
    UNUSED;
    abort();
}

BODY(failed_assert)
{
    UNUSED;
    assert(zero == 1);
    return 0;
}

static __attribute__((noinline)) int
recurse(volatile char *above, int depth)
{
    volatile char frame[512];

    frame[0] = (char)(above[0] + 1);
    return depth == 0 ? frame[0] : recurse(frame, depth - 1) + frame[0];
}

BODY(stack_overflow)
{
    volatile char start[1] = {0};

    UNUSED;
    sink = recurse(start, 1 << 24);
    return 0;
}

BODY(tcache_double_free)
{
    void *block = malloc(32);

    UNUSED;
    give(block);
    give(block);
    return 0;
}

static __attribute__((noinline)) void
overrun(volatile char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = 0x5a;
}

BODY(stack_smash)
{
    volatile char small[16];

    UNUSED;
    overrun(small, 16 + (zero == 0 ? 24 : 0)); /* over the canary, which calls abort */
    return small[0] & 0x0f;
}

BODY(thread_exit)
{
    UNUSED;
    pthread_exit(NULL);
}

BODY(fork_whose_child_faults)
{
    pid_t child = fork();
    int status = 0;

    UNUSED;
    if (child == 0) {
        *(volatile int *)(uintptr_t)zero = 1;
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 2;
}

BODY(panic_again)
{
    UNUSED;
    errand_panic("the inner one");
}

/* A body may have a runtime of its own, whose jobs it steps itself. */
BODY(panic_in_a_job_of_its_own)
{
    static const errand_job_type inner = {
        .struct_size = sizeof inner, .name = "inner", .run = panic_again};
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_runtime *runtime = NULL;
    errand_executor *manual = NULL;
    errand_lease *lease = NULL;
    errand_snapshot snapshot;
    size_t count = 0;

    UNUSED;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &inner;
    if (errand_runtime_create(NULL, &runtime) != ERRAND_OK ||
        errand_manual_create(NULL, &manual) != ERRAND_OK ||
        errand_attach(runtime, manual, 0, &lease) != ERRAND_OK ||
        errand_start(lease, &spec, NULL, NULL) != ERRAND_OK ||
        errand_manual_step(manual, 1, &count) != ERRAND_OK || count != 1 ||
        errand_drain(runtime, 1, NULL, NULL, &count) != ERRAND_OK || count != 1 ||
        errand_runtime_snapshot(runtime, &snapshot) != ERRAND_OK ||
        snapshot.panicked != 1)
        return 1;
    errand_executor_abandon(&manual);
    (void)!errand_lease_snapshot(lease, &snapshot);
    return 0;
}

static void *
fork_often(void *arg)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();

        if (child == 0)
            _exit(0);
        if (child > 0)
            (void)waitpid(child, NULL, 0);
    }
    return arg;
}

static pthread_t forking;

BODY(fault_while_another_forks)
{
    UNUSED;
    (void)pthread_create(&forking, NULL, fork_often, NULL);
    usleep(1000);
    *(volatile int *)(uintptr_t)zero = 1;
    return 0;
}

static void
join_forking(void)
{
    (void)pthread_join(forking, NULL);
}

const tier_case tier_mistakes[] = {
    {"null_write", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, false, null_write, NULL},
    {"wild_jump", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, true, wild_jump, NULL},
    {"non_canonical", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, false, non_canonical, NULL},
    {"truncated_map", TIER_GOES_ON, ERRAND_CRASHED, SIGBUS, false, truncated_map, NULL},
    {"divide_by_zero", TIER_GOES_ON, ERRAND_CRASHED, SIGFPE, false, divide_by_zero, NULL},
    {"undefined_instruction", TIER_GOES_ON, ERRAND_CRASHED, SIGILL, false,
     undefined_instruction, NULL},
    {"bad_strlen", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, true, bad_strlen, NULL},
    {"wild_free", TIER_GOES_ON, ERRAND_CRASHED, SIGABRT, true, wild_free, NULL},
    {"abort", TIER_GOES_ON, ERRAND_CRASHED, SIGABRT, true, call_abort, NULL},
    {"failed_assert", TIER_GOES_ON, ERRAND_CRASHED, SIGABRT, true, failed_assert, NULL},
    {"stack_overflow", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, false, stack_overflow,
     NULL},
    {"tcache_double_free", TIER_GOES_ON, ERRAND_CRASHED, SIGABRT, true,
     tcache_double_free, NULL},
    {"stack_smash", TIER_GOES_ON, ERRAND_CRASHED, SIGABRT, true, stack_smash, NULL},
    {"thread_exit", TIER_GOES_ON, ERRAND_PANICKED, 0, false, thread_exit, NULL},
    {"fork_whose_child_faults", TIER_GOES_ON, ERRAND_COMPLETED, 0, false,
     fork_whose_child_faults, NULL},
    {"panic_in_a_job_of_its_own", TIER_GOES_ON, ERRAND_COMPLETED, 0, false,
     panic_in_a_job_of_its_own, NULL},
    {"fault_while_another_forks", TIER_GOES_ON, ERRAND_CRASHED, SIGSEGV, false,
     fault_while_another_forks, join_forking},
};
const size_t tier_mistake_count = sizeof tier_mistakes / sizeof tier_mistakes[0];
