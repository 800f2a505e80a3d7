/* SPDX-License-Identifier: MIT */
/* Jobs that ask the kernel for what they may not have, and jobs that use the library's calls wrongly. */
#include "jobs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "workers/sandbox/program/program.h"

static unsigned char scratch[65536];

JOB(job_call)
{
    jobs_call wanted;
    long *a = wanted.arguments;
    memcpy(&wanted, call->input, sizeof wanted);
    for (int i = 0; i < 6; i++)
        if ((wanted.scratch & 1u << i) != 0)
            a[i] = (long)(uintptr_t)(scratch + (size_t)i * 8192);
    errno = 0;
    return jobs_tried(call, syscall(wanted.number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

/* ---- files; input: a path ---------------------------------------------------------------------- */

static const char *
path_of(errand_plugin_call *call)
{
    static char path[4096];
    memcpy(path, call->input, call->input_size);
    path[call->input_size] = '\0';
    return path;
}
JOB(job_reads)
{
    return jobs_tried(call, open(path_of(call), O_RDONLY));
}
JOB(job_writes)
{
    return jobs_tried(call, open(path_of(call), O_WRONLY | O_TRUNC));
}
JOB(job_creates)
{
    return jobs_tried(call, open(path_of(call), O_RDWR | O_CREAT, 0600));
}
JOB(job_looks)
{
    struct stat status;
    return jobs_tried(call, stat(path_of(call), &status));
}
JOB(job_unlinks)
{
    return jobs_tried(call, unlink(path_of(call)));
}
JOB(job_changes_mode)
{
    return jobs_tried(call, chmod(path_of(call), 0777));
}
JOB(job_truncates)
{
    return jobs_tried(call, truncate(path_of(call), 0));
}
JOB(job_executes)
{
    char *const words[] = {"sh", "-c", "rm -rf /tmp/errand-hostile-*", NULL};
    return jobs_tried(call, execv(path_of(call), words));
}
JOB(job_opens_a_library)
{
    return dlopen(path_of(call), RTLD_NOW) == NULL ? ENOENT : jobs_evil(call);
}

/* ---- descriptors --------------------------------------------------------------------------------- */

JOB(job_closes_all)
{
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    return jobs_ok(call);
}
JOB(job_writes_to_all)
{
    for (int fd = 0; fd < 1024; fd++)
        for (int i = 0; i < 64; i++)
            if (write(fd, scratch, sizeof scratch) < 0)
                break;
    return jobs_ok(call);
}
JOB(job_reads_from_all)
{
    struct iovec room = {scratch, sizeof scratch};
    for (int fd = 0; fd < 1024; fd++)
        if (lseek(fd, 0, SEEK_SET) >= 0 && readv(fd, &room, 1) > 0)
            return jobs_evil(call);
    return jobs_ok(call);
}
JOB(job_opens_sockets)
{
    return jobs_tried(call, socket(AF_INET, SOCK_STREAM, 0));
}
JOB(job_types_for_a_terminal)
{
    long answer = -1;
    for (int fd = 0; fd < 64 && answer < 0; fd++)
        answer = ioctl(fd, TIOCSTI, "x");
    return jobs_tried(call, answer);
}

/* ---- memory and itself ------------------------------------------------------------------------------ */

JOB(job_maps_code)
{
    void *code =
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return jobs_tried(call, code == MAP_FAILED ? -1 : 0);
}
JOB(job_makes_data_code)
{
    return jobs_tried(call, mprotect(scratch, 4096, PROT_READ | PROT_EXEC));
}
JOB(job_makes_code_data)
{
    uintptr_t page = (uintptr_t)&jobs_ok & ~(uintptr_t)4095;
    return jobs_tried(call,
                      mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
}
JOB(job_makes_code_writable)
{
    /* Its own copy of its own code: it can be changed, but never executed again. */
    uintptr_t page = (uintptr_t)&jobs_call_me & ~(uintptr_t)4095;
    (void)mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
    return jobs_call_me(call);
}
int32_t
jobs_call_me(errand_plugin_call *call)
{
    return jobs_ok(call);
}
JOB(job_shares_memory)
{
    void *shared =
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return jobs_tried(call, shared == MAP_FAILED ? -1 : 0);
}
JOB(job_forgets_its_parent)
{
    return jobs_tried(call, prctl(PR_SET_PDEATHSIG, 0));
}
JOB(job_can_be_dumped)
{
    return jobs_tried(call, prctl(PR_SET_DUMPABLE, 1));
}
JOB(job_filters_itself)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    return jobs_tried(call, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}
JOB(job_has_the_kernel_write_the_request)
{
    errand__worker *worker = jobs_worker(call);
    void *request = (void *)(uintptr_t)worker->request;
    return jobs_tried(call, syscall(SYS_getrandom, request, 4096L, 0L));
}
JOB(job_moves_a_waiter)
{
    uint32_t *word = (uint32_t *)(void *)&jobs_worker(call)->response->answer;
    return jobs_tried(
        call, syscall(SYS_futex, word + 1, FUTEX_CMP_REQUEUE, 1, 100, scratch, 0));
}
JOB(job_lends_priority)
{
    uint32_t *word = (uint32_t *)(void *)&jobs_worker(call)->response->answer;
    return jobs_tried(call,
                      syscall(SYS_futex, word + 1, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
}
JOB(job_kills_its_parent)
{
    return jobs_tried(call, kill((pid_t)jobs_worker(call)->setup->parent_pid, SIGKILL));
}
JOB(job_aborts_its_parent)
{
    long parent = jobs_worker(call)->setup->parent_pid;
    return jobs_tried(call, syscall(SYS_tgkill, parent, parent, SIGABRT));
}
JOB(job_kills_all)
{
    return jobs_tried(call, kill(-1, SIGKILL));
}

/* ---- the library's calls ---------------------------------------------------------------------------- */

JOB(job_writes_too_much)
{
    size_t size = 2u << 20;
    char *bytes = calloc(1, size);
    if (call->write(call, bytes, size))
        return jobs_evil(call);
    return call->write(call, bytes, SIZE_MAX) ? jobs_evil(call) : EFBIG;
}
JOB(job_writes_from_nowhere)
{
    call->write(call, (void *)8, 100);
    return jobs_ok(call);
}
JOB(job_says_it_twice)
{
    return call->write(call, call->input, call->input_size) &&
                   call->write(call, call->input, call->input_size)
               ? 0
               : EFBIG;
}
JOB(job_writes_bytewise)
{
    for (int i = 0; i < 100000; i++)
        if (!call->write(call, "x", 1))
            return EFBIG;
    return 0;
}
JOB(job_writes_all_it_may)
{
    char *bytes = calloc(1, 1u << 20);
    return call->write(call, bytes, 1u << 20) && !call->write(call, "x", 1) ? 0 : EFBIG;
}
JOB(job_says_too_much)
{
    char *text = malloc(1 << 20);
    memset(text, '%', (1 << 20) - 1);
    text[(1 << 20) - 1] = '\0';
    call->message(call, text);
    return 77;
}
JOB(job_says_nothing)
{
    call->message(call, NULL);
    return 78;
}
JOB(job_says_bytes)
{
    call->message(call, "\x1b[2J\x01\xff\xfe%s%n");
    return 79;
}
JOB(job_answers_negative)
{
    return -1;
}
JOB(job_answers_least)
{
    return INT32_MIN;
}
JOB(job_destroys_its_call)
{
    memset(call, 0x5a, sizeof *call);
    return 0;
}
