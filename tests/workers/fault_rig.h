/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_FAULT_RIG_H
#define ERRAND_TESTS_WORKERS_FAULT_RIG_H
/* fault_rig: a pool_rig whose pool catches faults. */
#include "core/core.h"
#include "errand/faults.h"
#include "pool_rig.h"

static volatile uintptr_t nowhere = 16; /* an address that nobody has */

static inline errand_blocking_config
fault_rig_config(uint32_t workers)
{
    return (errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                    .workers_min = workers,
                                    .workers_max = workers,
                                    .flags = ERRAND_BLOCKING_CATCH_FAULTS};
}

static inline void
fault_rig_needed(void)
{
    if (ERRAND_SANITIZED)
        test_skip("a sanitizer has fault handlers of its own");
    if (test_under("valgrind"))
        test_skip("valgrind has fault handlers of its own");
}

/* A pool that goes on whatever happens; its trouble is configured before the first lease. */
static inline void
fault_rig_init(pool_rig *rig, uint32_t workers, const errand_faults_config *trouble)
{
    errand_blocking_config config = fault_rig_config(workers);
    errand_faults_config usual = {.struct_size = sizeof usual,
                                  .flags = ERRAND_FAULTS_GO_ON,
                                  .breaker_events = UINT32_MAX};
    errand_executor *executor;

    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_OK);
    assert_int_equal(errand_faults_set(executor, trouble != NULL ? trouble : &usual),
                     ERRAND_OK);
    rig_join(rig, executor, 0);
    rig->shares = false;
}

static inline errand_faults
fault_rig_read(const pool_rig *rig)
{
    errand_faults out;

    assert_int_equal(errand_faults_read(rig->executor, &out), ERRAND_OK);
    return out;
}

#endif
