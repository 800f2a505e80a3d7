/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SCHEDULER_RIG_H
#define ERRAND_TESTS_SCHEDULER_RIG_H
/* scheduler_rig: a scheduler without a runtime: its outside is played here and counted. */
#include "group.h"
#include "scheduler/scheduler.h"

enum { RIG_RECORDS = 64 };

typedef struct scheduler_rig {
    errand__scheduler scheduler;
    errand__registrar registrar;
    errand__record records[RIG_RECORDS + 1];
    errand_runtime_config config;
    int64_t bytes;
    unsigned cancelled, forgotten; /* operations */
    errand_reason reason;          /* of the last cancelled one */
} scheduler_rig;

/* cmocka fixtures: a scheduler in inline order with seed 7, or in arrival order with a test clock. */
int rig_setup_inline(void **state);
int rig_setup_arrival(void **state);
int rig_teardown(void **state);
/* Starts over with another order and seed. */
void rig_restart(scheduler_rig *rig, errand_order order, uint64_t seed);

/* A task that answers what its script says: one letter per visit, the last one repeats.
 * y yield · s sleep 1000 ns · p park · d done · f failed · w answers WAIT without a wait. */
typedef struct rig_script {
    const char *letters;
    unsigned visits, ends, drops;
    errand_why why; /* of the last visit */
    errand_reason reason;
    errand_status status; /* of the last wait */
    errand_task_end end;
    size_t *trail; /* where to write this script's mark when it is visited, or NULL */
    size_t mark;
} rig_script;
errand_task *rig_spawn(scheduler_rig *rig, errand_task *parent, const char *label,
                       rig_script *script);
/* One pass; answers how many were visited. */
size_t rig_pass(scheduler_rig *rig);
/* Moves time and fires what is due. */
void rig_time(scheduler_rig *rig, uint64_t now);
#endif
