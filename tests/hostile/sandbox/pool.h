/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_SANDBOX_POOL_H
#define ERRAND_TESTS_HOSTILE_SANDBOX_POOL_H
/* pool: a runtime with one sandbox, jobs one after the other, and what of this process must be the same
 * after each.  Nothing here asserts: it is used in forked children too, which tell by their status. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "errand/executor.h"
#include "errand/sandbox.h"

/* Ways for an operation to end, or-ed: what a job may do to itself. */
enum {
    ENDS_OK = 1,  /* COMPLETED, with the bytes "ok" */
    ENDS_ODD = 2, /* COMPLETED, with others: what a worker answers is its own business */
    ENDS_JOB = 4,
    ENDS_DEADLINE = 8,
    ENDS_CANCELLED = 16,
    ENDS_CRASHED = 32,
    ENDS_POLICY = 64,
    ENDS_EXITED = 128,
    ENDS_PROTOCOL = 256,
    ENDS_CPU = 512,
    ENDS_OUTPUT = 1024,
    ENDS_KILLED = 2048,
    ENDS_MEMORY = 4096,
    ENDS_LOST = 8192,
    ENDS_SPAWN = 16384,
    ENDS_WRONG = 32768 /* an outcome and code that do not belong together */
};

typedef struct hostile_pool {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    const char *object; /* of the jobs */
    uint32_t rest;      /* workers when nothing is to be done */
    uint64_t submitted, heard;
    /* The last completion. */
    int ends;
    int32_t job_code, signal_number;
    errand_sandbox_outcome outcome;
    size_t size;
    uint64_t took_ns;
    char message[256];
} hostile_pool;

/* What a host must find unchanged. */
typedef struct hostile_process {
    unsigned descriptors, threads, children, mappings;
} hostile_process;

/* Fills in struct_size, the program and values that suit a list of hostile jobs; the rest is zero. */
void hostile_config(errand_sandbox_config *out_config, errand_sandbox_policy *out_policy);
/* False: out_text says why. */
bool hostile_begin(hostile_pool *self, const errand_sandbox_config *config,
                   const char *object, char *out_text, size_t size);
/* False: the runtime was not clean at its end. */
bool hostile_end(hostile_pool *self);
/* Calls a plug-in's function; answers how it ended, one of ENDS_. */
int hostile_run(hostile_pool *self, const char *function, const void *bytes, size_t size,
                uint64_t deadline_ns);
/* The same for a spec, which is used up. */
int hostile_run_spec(hostile_pool *self, errand_spec *spec);
/* How it ended; COMPLETED is ENDS_ODD. */
int hostile_ends_of(const errand_completion *completion);
/* Waits until no worker runs, starts or dies.  False: not within ten seconds. */
bool hostile_settle(hostile_pool *self);

/* Ends workers until one was forked from the template: from now on that is there.  False: none was. */
bool hostile_warm(hostile_pool *self);

void hostile_process_read(hostile_process *out_process);
const char *hostile_ends_text(int ends); /* names, by "|"; static */
uint64_t hostile_now(void);

/* Runs fn(arg) in a child process, as nobody where asked: answers its value, or minus its signal.
 * What it may not reach is copied before. */
int hostile_in_child(bool as_nobody, int (*fn)(void *arg), void *arg);
/* Copies what workers or other users may not reach; before who cannot is forked. */
void hostile_reach(void);
/* This process is that user from now on.  False: it may not. */
bool hostile_become(unsigned user);

#endif
