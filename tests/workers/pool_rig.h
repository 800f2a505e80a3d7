/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_POOL_RIG_H
#define ERRAND_TESTS_WORKERS_POOL_RIG_H
/* pool_rig: a runtime and a blocking pool with real threads for one test.
 *
 * rig_init makes them, rig_fini ends them and finds what is left: jobs that did not run or were
 * not dropped as often as they should, bytes, an unclean report.  A second runtime on the same
 * pool is a rig of its own (rig_join). */
#include <stdatomic.h>
#include <stdint.h>
#include "errand/executor.h"
#include "errand/testing.h"
#include "gate.h"
#include "group.h"

typedef struct pool_rig {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_report report;
    uint64_t heard, outcomes[6], codes[ERRAND_CODES], held;
    char message[256]; /* of the last failure */
    bool shares;       /* the pool is another rig's */
    bool unclean;      /* the report may name exceptions */
} pool_rig;

/* A job: what it does is fn(arg); both are the test's.  ran and dropped are counted. */
typedef struct rig_job {
    void (*fn)(struct rig_job *self, errand_job *job);
    void *arg;
    int number;
    atomic_int ran;
    int dropped;
    errand_identity identity;
} rig_job;

void rig_init(pool_rig *rig, uint32_t workers_min, uint32_t workers_max);
void rig_init_config(pool_rig *rig, const errand_blocking_config *config,
                     uint32_t owed_max);
void rig_join(pool_rig *rig, errand_executor *executor, uint32_t owed_max);
void rig_fini(pool_rig *rig);

/* A job of the interruptible class in the main lane, normal priority. */
errand_spec rig_spec(rig_job *job);
void rig_start_spec(pool_rig *rig, const errand_spec *spec); /* must be accepted */
void rig_start(pool_rig *rig, rig_job *job);
/* Drains and parks until so many completions in all were heard of; the law is checked. */
void rig_await(pool_rig *rig, uint64_t heard);
/* Busy for so long, on the caller's processor. */
void rig_spin(uint64_t ns);
uint64_t rig_now(void);
/* Waits until the predicate holds; 20 s, then the test fails. */
void rig_until(bool (*holds)(void *arg), void *arg);
errand_executor_snapshot rig_snapshot(const pool_rig *rig);

#endif
