/* SPDX-License-Identifier: MIT */
/* Jobs that end their process, or keep it from ending, by what is in it. */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "workers/sandbox/program/program.h"

errand__worker *
jobs_worker(errand_plugin_call *call)
{
    struct {
        errand_plugin_call call;
        errand__worker *worker;
    } *serving = (void *)call;

    return serving->worker;
}

int32_t
jobs_ok(errand_plugin_call *call)
{
    return call->write(call, "ok", 2) ? 0 : EFBIG;
}

int32_t
jobs_evil(errand_plugin_call *call)
{
    return call->write(call, "evil", 4) ? 0 : EFBIG;
}

int32_t
jobs_tried(errand_plugin_call *call, long answer)
{
    int error = errno;

    return answer < 0 ? (error == 0 ? ENOTSUP : error) : jobs_evil(call);
}

JOB(job_ok)
{
    return jobs_ok(call);
}

/* input: the code */
JOB(job_exit)
{
    int code;
    memcpy(&code, call->input, sizeof code);
    exit(code);
}
JOB(job_exit_now)
{
    int code;
    memcpy(&code, call->input, sizeof code);
    _exit(code);
}
static void
for_ever(void)
{
    for (;;) {
        __asm__ __volatile__("");
    }
}
JOB(job_exit_hangs)
{
    atexit(for_ever);
    exit(0);
}
JOB(job_ends_its_thread)
{
    pthread_exit(NULL);
}
JOB(job_aborts)
{
    abort();
}
JOB(job_writes_null)
{
    *(volatile int *)8 = 1;
    return 0;
}
JOB(job_jumps)
{
    void (*volatile nowhere)(void) = (void (*)(void))(uintptr_t)0xdeadbeef000;
    nowhere();
    return 0;
}
JOB(job_divides)
{
    volatile int zero = 0;
    return 7 / zero;
}
static int
deeper(volatile char *before)
{
    volatile char here[4096];
    here[0] = before[0];
    if (here[0] == 'y')
        return 0;
    return deeper(here) + here[0];
}
JOB(job_overflows_its_stack)
{
    return deeper((volatile char *)"x");
}
JOB(job_frees_twice)
{
    void *volatile block = malloc(4000), *volatile other = malloc(4000);
    free(block);
    free(block);
    free(other);
    return 0;
}
#if defined(__x86_64__)
JOB(job_undefined)
{
    __asm__ __volatile__("ud2");
    return 0;
}
JOB(job_privileged)
{
    __asm__ __volatile__("hlt");
    return 0;
}
JOB(job_traps)
{
    __asm__ __volatile__("int3");
    return 0;
}
JOB(job_misaligns)
{
    __asm__ __volatile__("pushf\n orl $0x40000, (%%rsp)\n popf\n movl $1, 1(%%rsp)" ::
                             : "memory");
    for (;;) {
    }
}
JOB(job_loses_its_thread_pointer)
{
    /* A kernel that does not keep what this instruction wrote puts the old one back whenever it
       gives the processor to somebody else; so once may not be enough. */
    for (int i = 0; i < 1000; i++) {
        __asm__ __volatile__("wrfsbase %0" ::"r"(0L));
        errno = 1;
    }
    return errno;
}
JOB(job_forges_a_return)
{
    __asm__ __volatile__("mov $15, %eax\n syscall");
    for (;;) {
    }
}
JOB(job_int80)
{
    long answer = 20; /* getpid there; rt_sigreturn, writev or so elsewhere */
    __asm__ __volatile__("int $0x80" : "+a"(answer)::"memory");
    return answer > 0 ? jobs_evil(call) : ENOSYS;
}
JOB(job_old_page)
{
    /* A fixed page of the kernel's: time of day, which is permitted by number. */
    long answer = ((long (*)(void *, void *))(uintptr_t)0xffffffffff600000)(NULL, NULL);
    (void)answer;
    return jobs_ok(call);
}
#endif

/* ---- signals ------------------------------------------------------------------------------------- */

static void
nothing(int number)
{
    (void)number;
}
static void
block_all(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}
JOB(job_loops)
{
    for_ever();
    return 0;
}
JOB(job_loops_without_files)
{
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    for_ever();
    return 0;
}
JOB(job_cuts_its_lifeline)
{
    /* Whatever a descriptor's signal can be taken off with; then it loops. */
    const int nobody = 0;
    for (int fd = 0; fd < 64; fd++) {
        int other = fcntl(fd, F_DUPFD, 100);
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        (void)fcntl(fd, F_SETOWN, nobody);
        (void)fcntl(fd, F_SETSIG, SIGWINCH);
        (void)ioctl(fd, FIOASYNC, &nobody);
        (void)fcntl(other, F_SETFL, O_NONBLOCK);
        close(fd);
        close(other);
    }
    (void)syscall(SYS_close, 0x100000005L);
    for_ever();
    return 0;
}
JOB(job_loops_deaf)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    block_all();
    for_ever();
    return 0;
}
JOB(job_sleeps)
{
    const struct timespec hour = {3600, 0};
    for (;;)
        nanosleep(&hour, NULL);
    return jobs_ok(call);
}
JOB(job_takes_its_time)
{
    int ms;
    memcpy(&ms, call->input, sizeof ms);
    const struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&nap, NULL);
    return jobs_ok(call);
}
JOB(job_catches_faults)
{
    /* The handler returns, the instruction faults again, for ever. */
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_NODEFER};
    sigset_t most;
    sigaction(SIGSEGV, &action, NULL);
    sigfillset(&most);
    sigdelset(&most, SIGSEGV);
    sigprocmask(SIG_SETMASK, &most, NULL);
    *(volatile int *)8 = 1;
    return 0;
}
static void
again(int number)
{
    (void)number;
    *(volatile int *)8 = 1;
}
JOB(job_faults_in_its_handler)
{
    struct sigaction action = {.sa_handler = again, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    *(volatile int *)8 = 1;
    return 0;
}
static sigjmp_buf back;
static void
jump_back(int number)
{
    (void)number;
    siglongjmp(back, 1);
}
JOB(job_survives_a_fault)
{
    signal(SIGSEGV, jump_back);
    if (sigsetjmp(back, 1) == 0)
        *(volatile int *)8 = 1;
    return jobs_ok(call);
}
JOB(job_raises)
{
    int number;
    memcpy(&number, call->input, sizeof number);
    return jobs_tried(call, raise(number));
}
JOB(job_ignores_denials)
{
    signal(SIGSYS, SIG_IGN);
    return jobs_tried(call, syscall(SYS_getppid));
}
JOB(job_catches_denials)
{
    signal(SIGSYS, nothing);
    return jobs_tried(call, syscall(SYS_getppid));
}
JOB(job_waits_for_a_signal)
{
    return jobs_tried(call, pause());
}

/* ---- what it may use ------------------------------------------------------------------------------ */

JOB(job_eats_memory)
{
    for (;;) {
        char *block = malloc(1 << 20);
        if (block == NULL)
            return ENOMEM;
        memset(block, 1, 1 << 20);
    }
    return jobs_evil(call);
}
JOB(job_eats_memory_blindly)
{
    for (;;) {
        volatile char *block = malloc(1 << 20);
        for (int i = 0; i < 1 << 20; i += 4096)
            block[i] = 1;
    }
}
JOB(job_eats_addresses)
{
    for (;;)
        if (mmap(NULL, 1 << 24, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
            return errno;
}
JOB(job_eats_mappings)
{
    long count = 0;
    for (; count < 200000; count++)
        if (mmap(NULL, 4096, count % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            break;
    return ENOMEM;
}
JOB(job_grows_the_heap)
{
    while (sbrk(1 << 24) != (void *)-1) {
    }
    return errno;
}
JOB(job_burns)
{
    for_ever();
    return 0;
}
JOB(job_burns_deaf)
{
    signal(SIGXCPU, SIG_IGN);
    for_ever();
    return 0;
}
JOB(job_burns_in_the_kernel)
{
    for (;;)
        syscall(SYS_sched_yield);
}
JOB(job_raises_its_limits)
{
    const struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    return jobs_tried(call, setrlimit(RLIMIT_AS, &most));
}
static void *
idle(void *arg)
{
    return arg;
}
JOB(job_starts_a_thread)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, idle, NULL);
    return error != 0 ? error : jobs_evil(call);
}
JOB(job_forks)
{
    pid_t pid = fork();
    if (pid == 0)
        for_ever();
    return jobs_tried(call, pid);
}
JOB(job_clones_memory)
{
    return jobs_tried(call, syscall(SYS_clone, 0x4100L /* VM, VFORK */, 0L, 0L, 0L, 0L));
}
JOB(job_clones_untraced)
{
    return jobs_tried(call, syscall(SYS_clone, 0x00800000L | SIGCHLD, 0L, 0L, 0L, 0L));
}
JOB(job_clones_a_sibling)
{
    return jobs_tried(call, syscall(SYS_clone, 0x8000L | SIGCHLD, 0L, 0L, 0L, 0L));
}
