/* SPDX-License-Identifier: MIT */
/* Jobs that lie on the memory that they share with their host. */
#include "jobs.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "workers/sandbox/program/program.h"

static void
wake(errand_plugin_call *call)
{
    syscall(SYS_futex, errand__wire_futex(jobs_worker(call)->response), FUTEX_WAKE,
            INT32_MAX, NULL, NULL, 0);
}
static void
put(errand_plugin_call *call, uint32_t sequence, uint32_t status, uint32_t length)
{
    errand__worker *worker = jobs_worker(call);
    atomic_store_explicit(&worker->response->answer,
                          errand__wire_answer(sequence, status, length),
                          memory_order_seq_cst);
    wake(call);
}
static uint32_t
now(errand_plugin_call *call)
{
    return jobs_worker(call)->request->sequence;
}
static void
for_ever(void)
{
    for (;;)
        usleep(100000);
}

typedef struct
    lie { /* input of job_lies: an answer, sequence relative to the right one */
    int32_t ahead;
    uint32_t status, length;
} lie;

/* Answers so, then goes on for ever. */
JOB(job_lies)
{
    lie told;
    memcpy(&told, call->input, sizeof told);
    put(call, now(call) + (uint32_t)told.ahead, told.status, told.length);
    for_ever();
    return 0;
}
/* Answers so, then as it should. */
JOB(job_lies_and_answers)
{
    lie told;
    memcpy(&told, call->input, sizeof told);
    put(call, now(call) + (uint32_t)told.ahead, told.status, told.length);
    return jobs_ok(call);
}
static void
right(errand_plugin_call *call)
{
    errand__worker *worker = jobs_worker(call);
    memcpy(worker->response_bytes, "ok", 2);
    put(call, now(call), ERRAND__WIRE_DONE, 2);
}
JOB(job_answers_and_crashes)
{
    right(call);
    *(volatile int *)8 = 1;
    return 0;
}
JOB(job_answers_and_exits)
{
    right(call);
    _exit(3);
}
JOB(job_answers_and_hangs)
{
    right(call);
    for_ever();
    return 0;
}
JOB(job_answers_twice)
{
    right(call);
    return jobs_ok(call);
}
JOB(job_answers_without_a_wake)
{
    errand__worker *worker = jobs_worker(call);
    memcpy(worker->response_bytes, "ok", 2);
    atomic_store_explicit(&worker->response->answer,
                          errand__wire_answer(now(call), ERRAND__WIRE_DONE, 2),
                          memory_order_seq_cst);
    for_ever();
    return 0;
}
JOB(job_answers_ahead)
{
    /* For the job that comes after this one, before that is asked. */
    errand__worker *worker = jobs_worker(call);
    right(call);
    for (;;)
        atomic_store_explicit(&worker->response->answer,
                              errand__wire_answer(now(call) + 1, ERRAND__WIRE_DONE, 2),
                              memory_order_seq_cst);
    return 0;
}
JOB(job_changes_its_mind)
{
    /* Right and wrong answers in turn, faster than they can be read. */
    errand__worker *worker = jobs_worker(call);
    uint32_t sequence = now(call);
    for (uint32_t i = 0;; i++) {
        memset(worker->response_bytes, (int)i, 64);
        atomic_store_explicit(
            &worker->response->answer,
            i % 3 == 0   ? errand__wire_answer(sequence, ERRAND__WIRE_DONE, i % 64)
            : i % 3 == 1 ? errand__wire_answer(sequence - 1, 7, i)
                         : errand__wire_answer(sequence, ERRAND__WIRE_ERROR, i % 300),
            memory_order_seq_cst);
    }
    return 0;
}
JOB(job_storms)
{
    for (;;)
        wake(call);
    return 0;
}
JOB(job_stutters)
{
    /* The answer changes all the time, and never is one. */
    errand__worker *worker = jobs_worker(call);
    for (uint32_t i = 0;; i++) {
        atomic_store_explicit(&worker->response->answer,
                              errand__wire_answer(now(call) - 1, i & 255, i),
                              memory_order_seq_cst);
        wake(call);
    }
    return 0;
}
JOB(job_sends_pieces_for_ever)
{
    errand__worker *worker = jobs_worker(call);
    for (;;) {
        put(call, now(call), ERRAND__WIRE_MORE, (uint32_t)worker->response_size);
        usleep(1);
    }
    return 0;
}
JOB(job_sends_a_piece_and_stops)
{
    put(call, now(call), ERRAND__WIRE_MORE, 1000);
    for_ever();
    return 0;
}
JOB(job_asks_its_host)
{
    put(call, now(call), ERRAND__WIRE_CALLBACK, 16);
    for_ever();
    return 0;
}
JOB(job_scribbles)
{
    errand__worker *worker = jobs_worker(call);
    uint32_t seed = 1;
    unsigned char *bytes = (unsigned char *)worker->response;
    size_t size = sizeof *worker->response;
    for (int round = 0; round < 200; round++)
        for (size_t i = 0; i < size; i++)
            bytes[i] = (unsigned char)((seed = seed * 1103515245u + 12345u) >> 16);
    return jobs_ok(call);
}
JOB(job_wipes)
{
    memset(jobs_worker(call)->response, 0xff, 4096);
    for_ever();
    return 0;
}
JOB(job_says_it_is_someone_else)
{
    errand__worker *worker = jobs_worker(call);
    errand__wire_response *response = worker->response;
    response->layers = 0;
    response->landlock_abi = 0xffffffff;
    atomic_store_explicit(&response->ready, 92, memory_order_seq_cst);
    memset(response->setup_text, 'A', sizeof response->setup_text);
    memset(response->entry_text, 'B', sizeof response->entry_text);
    memset(response->entry_state, 1, sizeof response->entry_state);
    atomic_store_explicit(&response->worker_cpu, 0xfffffff0u, memory_order_seq_cst);
    return jobs_ok(call);
}
JOB(job_names_a_false_call)
{
    atomic_store_explicit(&jobs_worker(call)->response->denied_call, 0xffffffffu,
                          memory_order_seq_cst);
    syscall(39000);
#if defined(__x86_64__) /* ptrace */
    __asm__ __volatile__("syscall" ::"a"(101L), "D"(0L) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number __asm__("x8") = 117, first __asm__("x0") = 0;
    __asm__ __volatile__("svc 0" : "+r"(first) : "r"(number) : "memory");
#endif
    return 0;
}
JOB(job_writes_its_request)
{
    *(volatile unsigned char *)(uintptr_t)call->input = 1;
    return jobs_evil(call);
}
JOB(job_makes_its_request_writable)
{
    void *request = (void *)(uintptr_t)jobs_worker(call)->request;
    return jobs_tried(call, mprotect(request, 4096, PROT_READ | PROT_WRITE));
}
JOB(job_unmaps_the_ring)
{
    errand__worker *worker = jobs_worker(call);
    munmap(worker->response, 4096);
    return jobs_ok(call);
}
JOB(job_unmaps_everything)
{
    munmap((void *)4096, (size_t)0x7ffffffff000 - 8192);
    return 0;
}
JOB(job_moves_the_ring)
{
    errand__worker *worker = jobs_worker(call);
    void *to = mremap(worker->response, 4096, 8192, MREMAP_MAYMOVE);
    if (to != MAP_FAILED)
        ((volatile char *)to)[8191] = 1;
    return jobs_ok(call);
}
JOB(job_drops_the_rings_pages)
{
    errand__worker *worker = jobs_worker(call);
    (void)madvise(worker->response, 4096, MADV_DONTNEED);
    (void)madvise((void *)(uintptr_t)worker->request, 4096, MADV_DONTNEED);
    return jobs_ok(call);
}
JOB(job_punches_the_ring)
{
    return madvise(jobs_worker(call)->response, 4096, MADV_REMOVE) != 0 ? EINVAL
                                                                        : jobs_evil(call);
}
JOB(job_answers_an_error_of_nothing)
{
    errand__worker *worker = jobs_worker(call);
    memset(worker->response_bytes, 0, 256);
    put(call, now(call), ERRAND__WIRE_ERROR, 256);
    for_ever();
    return 0;
}
JOB(job_answers_an_unended_error)
{
    errand__worker *worker = jobs_worker(call);
    memset(worker->response_bytes, 0x41, 256);
    put(call, now(call), ERRAND__WIRE_ERROR, 256);
    for_ever();
    return 0;
}
