/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SANDBOX_POOL_RIG_H
#define ERRAND_TESTS_WORKERS_SANDBOX_POOL_RIG_H
/* pool_rig: a runtime in arrival order, on the real clock, and a sandbox with simulated workers;
 * every completion is written down. */
#include "errand.h"
#include "errand/config.h"
#include "errand/executor.h"
#include "errand/sandbox.h"
#include "errand/testing.h"
#include "group.h"
#include "sim.h"

enum { RIG_NEWS = 8192 };
typedef struct rig_news {
    uintptr_t wait;
    errand_outcome outcome;
    errand_code code;
    int32_t job_code, sys_errno, signal_number;
    size_t size;
    uint64_t sum; /* of the result's bytes; UINT64_MAX: not the pattern's */
    char message[256], system_call[48];
    errand_sandbox_outcome more;
    errand_status more_status;
    uint64_t submit_ns, start_ns, end_ns;
} rig_news;
typedef struct rig {
    sim sim;
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_sandbox_policy policy;
    errand_sandbox_config config;
    errand_runtime_config runtime_config;
    rig_news news[RIG_NEWS];
    size_t count;
    unsigned char first[16]; /* bytes of the last result */
    unsigned dropped;        /* states */
    unsigned taken;
    errand_payload held; /* the test's to drop */
    const unsigned char *held_bytes;
    char text[256];
    const char *worker_path; /* not NULL: real workers, of this program */
    int descriptors;         /* open before */
    int64_t bytes;
} rig;

/* setup: everything zeroed but the sizes; begin: creates the three.  teardown: ends what is left,
 * and finds descriptors, memory, threads that are. */
int rig_setup(void **state);
int rig_teardown(void **state);
void rig_begin(rig *self);
void rig_end(rig *self); /* all three, QUIET, at most 10 s */

/* A job: in spec, with a copy of the bytes. */
errand_spec rig_spec(rig *self, sim_act act, uint64_t number, const void *bytes,
                     size_t size);
/* A plug-in's function called with these bytes alone. */
errand_spec rig_plugin_spec(rig *self, const char *library, const char *symbol,
                            const void *bytes, size_t size);
/* Its read_response panics. */
void rig_make_unreadable(const errand_spec *spec);
/* Its read_response tries twice to take the response, into held: taken, how often it could. */
void rig_make_taking(const errand_spec *spec);
errand_identity rig_start(rig *self, uintptr_t wait, sim_act act, uint64_t number);
errand_identity rig_start_spec(rig *self, uintptr_t wait, const errand_spec *spec);
/* Parks and drains until so many completions were heard of in all. */
void rig_await(rig *self, size_t count);
void rig_drain(rig *self);
/* Starts one job and waits for it. */
const rig_news *rig_run(rig *self, sim_act act, uint64_t number);
errand_sandbox_snapshot rig_snapshot(rig *self);
/* Waits until so many workers are ready. */
void rig_await_ready(rig *self, uint32_t count);
/* Waits until so many were started in all, and one is ready. */
void rig_await_started(rig *self, uint64_t started);
extern const errand_job_type rig_job_type;
/* The entry's symbol of jobs that are made from now on. */
extern const char *rig_symbol;
#endif
