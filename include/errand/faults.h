/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FAULTS_H
#define ERRAND_FAULTS_H
/* faults: what a pool of threads does when bodies go wrong.  Conventions: errand.h.
 *
 * A thread contains mistakes, a process contains faults, only a process contains malice.
 * A caught fault is no isolation: what the body held stays held (a mutex, a lock of the
 * allocator, of stdio, of the loader), what it wrote stays written, and what it should
 * have freed stays.  docs/containment.md has a table: what is caught, and what is left of
 * the process afterwards. */
#include "errand/executor.h"
ERRAND_BEGIN

/* ERRAND_BLOCKING_CATCH_FAULTS in errand_blocking_config.flags: SIGSEGV, SIGBUS, SIGFPE
 * and SIGILL that the body's own instruction raised on the worker, and SIGABRT that the
 * worker raised itself (abort, assert), end the job as CRASHED with code CRASHED.
 *
 * - The completion has signal_number, and a message with the address, the instruction and
 *   its module; errand_faults_find has them as numbers.  It is put by a thread of the pool
 *   that looks after the others; the worker that met the fault ends, held_on_stop is not
 *   called, and another takes its place.
 * - The verdict is clean where the instruction lies in the module of the job's function,
 *   else suspect: a C library, allocator or loader may have been left in the middle of
 *   something.  SIGABRT is always suspect, since an allocator aborts with its lock held.
 *   It is a guess by module, not a proof.
 * - Deferred cleanups of the body do not run.  Memory of errand_job_alloc is given back
 *   after a clean verdict and given up after a suspect one, as is a payload that the body
 *   left; follow-ups are handed on.  What was given up is counted.
 * - Any fault taints the pool, for ever.  After a suspect one a restart is advised, and
 *   submit answers ETAINTED from then on, unless ERRAND_FAULTS_GO_ON; what was queued is
 *   still run.
 * - Not caught, the process dies of them: a fault on another thread, in the library's or
 *   the host's own code, sent by raise or kill, with the signal blocked or its handler
 *   taken away, or without the alternate stack that a stack overflow needs.  Handlers
 *   that the process had before are called for whatever is not the pool's; a handler that
 *   comes later has to hand such signals on.
 * - Workers have a guard of 64 KiB below their stack.  A larger frame jumps over it, where
 *   its code was not compiled with -fstack-clash-protection.
 * - Never in a build with a sanitizer, nor under valgrind: errand_blocking_create answers
 *   EUNSUPPORTED. */

/* errand_faults_config.flags */
enum { ERRAND_FAULTS_GO_ON = 1 /* take jobs also after a suspect verdict */ };

typedef enum errand_verdict_on_fault {
    ERRAND_FAULT_CLEAN = 1,  /* in the code of the job's own module */
    ERRAND_FAULT_SUSPECT = 2 /* anywhere else, and every SIGABRT */
} errand_verdict_on_fault;
typedef struct errand_fault {
    errand_identity identity; /* of the operation */
    int32_t signal_number;
    int32_t signal_code;    /* as in siginfo_t */
    uint64_t address;       /* that could not be reached; 0 = not told (SIGABRT) */
    uint64_t pc, pc_offset; /* the instruction; its distance from its module's start */
    errand_verdict_on_fault verdict;
    bool stack_overflow; /* the address is in the guard of the worker's stack */
    char module[55];     /* the last part of its file name; "" = in none that is known */
} errand_fault;

/* For any blocking pool, catching or not. */
typedef struct errand_faults_config {
    uint32_t struct_size;
    uint32_t flags; /* ERRAND_FAULTS_... */
    /* Threads whose body outlived its operation and has not come back (O45): with so many,
     * submit answers EFULL until one comes back.  0 = 64, which is the most. */
    uint32_t abandoned_max;
    /* So many faults and panics within breaker_window_ns (0 = 1 s) open the breaker: submit
     * answers EBREAKER for breaker_open_ns (0 = 1 s).  At most 256, or UINT32_MAX =
     * never; 0 = 64 in a pool that catches faults, never in another. */
    uint32_t breaker_events;
    uint64_t breaker_window_ns, breaker_open_ns;
    /* All that one job may have of errand_job_alloc, which answers NULL beyond; 0 = no
     * bound. */
    size_t job_memory_max;
    /* Called for each caught fault, after its completion was put, on the thread that looks
     * after the others; no lock is held.  What it may do is what a signal handler may, if
     * the verdict is suspect: malloc may never return. */
    void (*held_on_taint)(void *arg, const errand_fault *fault);
    void *held_arg;
} errand_faults_config;
/* errand_faults_set: before the pool's first lease.
 * Thread: [any].   Errors: EBUSY (it has leases) · EUNSUPPORTED (not a blocking pool) ·
 *   EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_faults_set(errand_executor *executor, const errand_faults_config *config);

/* errand_faults.flags */
enum {
    ERRAND_FAULTS_CATCHING = 1,
    ERRAND_FAULTS_TAINTED = 2,         /* a fault was caught */
    ERRAND_FAULTS_RESTART_ADVISED = 4, /* a suspect one */
    ERRAND_FAULTS_REFUSING = 8,        /* submit answers ETAINTED */
    ERRAND_FAULTS_BREAKER_OPEN = 16    /* submit answers EBREAKER */
};
typedef struct errand_faults {
    uint32_t flags;
    uint32_t abandoned; /* threads whose body has not come back, now */
    uint64_t caught, suspect;
    uint64_t segv, bus, fpe, ill, abrt; /* caught, by signal */
    uint64_t panics;                    /* of bodies, thread exits among them */
    uint64_t memory_given_up;           /* blocks of errand_job_alloc */
    uint64_t cleanups_given_up;         /* of errand_job_defer */
    uint64_t breaker_opened;            /* how often */
    errand_fault last;                  /* if caught > 0 */
} errand_faults;
/* errand_faults_read: what happened so far.
 * errand_faults_find: what the operation met; the pool remembers the last 32.
 * Thread: [any], while the executor lives.   Errors: EUNSUPPORTED (not a blocking pool) ·
 *   EUNKNOWN (errand_faults_find: not among the last 32) · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_faults_read(errand_executor *executor, errand_faults *out_faults);
ERRAND_API ERRAND_MUST_USE errand_status errand_faults_find(
    errand_executor *executor, const errand_identity *identity, errand_fault *out_fault);

ERRAND_END
#endif
