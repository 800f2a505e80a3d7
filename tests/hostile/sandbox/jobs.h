/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_SANDBOX_JOBS_H
#define ERRAND_TESTS_HOSTILE_SANDBOX_JOBS_H
/* jobs: an object of plug-in functions that attack the worker, the host or the kernel.
 *
 * A function writes "ok" and answers 0 where nothing was to be refused; an errno where the attack was
 * refused; and "evil" where it succeeded. */
#include <stdint.h>
#include "errand/plugin.h"

/* JOB(name) { ... }: a function, with call. */
#define JOB(name)                                                                        \
    int32_t name(errand_plugin_call *call);                                              \
    int32_t name(__attribute__((unused)) errand_plugin_call *call)

typedef struct jobs_call { /* input of job_call: a system call */
    long number, arguments[6];
    uint32_t scratch; /* bit n: argument n is the address of zeroed memory */
} jobs_call;

struct errand__worker;
struct errand__worker *jobs_worker(errand_plugin_call *call); /* what serves this call */
int32_t jobs_ok(errand_plugin_call *call);
int32_t jobs_call_me(errand_plugin_call *call);
int32_t jobs_evil(errand_plugin_call *call);
/* Refused with errno, or done. */
int32_t jobs_tried(errand_plugin_call *call, long answer);

#endif
