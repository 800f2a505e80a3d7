/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TRAPS_H
#define ERRAND_TRAPS_H
/* traps: hidden input of jobs in the seeded orders.  Conventions: errand.h.
 *
 * A run can be repeated if its jobs are functions of what they were given.  A body that reads
 * a clock, random numbers, the environment or the number of its process, or starts a thread,
 * is none.  A program that links errand_traps (CMake: errand::traps; see docs/determinism.md)
 * has such calls caught while a body runs, in inline and paced order; without it nothing is
 * caught, and nothing costs anything.
 *
 * What is caught: time, clock, clock_gettime, gettimeofday, timespec_get; rand, random, drand48,
 * lrand48, mrand48, getrandom, getentropy, arc4random and its two variants; pthread_create,
 * thrd_create; getenv, secure_getenv; getpid, getppid, gettid, sched_getcpu.  Not what the C
 * library, an allocator or a sanitizer calls for itself, and not what is called by a system
 * call of one's own. */
#include "errand.h"
ERRAND_BEGIN

/* errand_job_impure: what this job answers is no function of what it was given, and it is
 * meant so: it reads a file, asks a clock, runs a program.  From here to its end nothing is
 * caught.  The ready-made operations say it of themselves.   Thread: [worker]. */
ERRAND_API void errand_job_impure(errand_job *job);

/* ---- for programs that link errand_traps ------------------------------------------------- */

typedef enum errand_traps_mode {
    ERRAND_TRAPS_REFUSE = 0, /* the job ends PANICKED; the message names call and mend */
    ERRAND_TRAPS_WARN = 1, /* a line on standard error for each, and it is let through */
    ERRAND_TRAPS_OFF = 2
} errand_traps_mode;
/* errand_traps_set: for the whole process; REFUSE before the first call.
 * errand_traps_caught: how many calls were refused or warned about.
 * errand_traps_present: false where this build catches nothing (under a sanitizer, which
 *   stands in these calls itself).   Thread: [any]. */
void errand_traps_set(errand_traps_mode mode);
uint64_t errand_traps_caught(void);
bool errand_traps_present(void);

/* ---- between the library and errand_traps ------------------------------------------------- */
/* The library calls attach, if anybody has it, with what a trap may ask.
 *   inside: does a body of a seeded runtime run on this thread, of a job that is not impure?
 *     Its name.
 *   panic: errand_panic. */
typedef struct errand_traps_port {
    uint32_t struct_size;
    bool (*inside)(const char **out_name);
    void (*panic)(const char *format, ...);
} errand_traps_port;
void errand_traps_attach(const errand_traps_port *held_port);

ERRAND_END
#endif
