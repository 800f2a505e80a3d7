/* SPDX-License-Identifier: MIT */
/* scheduler: the whole of it begins and ends here; and time.
 *
 * Design notes.  In seeded orders time is a number that only the drive moves, between passes
 * (D20).  In arrival order it is the monotonic clock, read when somebody asks, because a sleep
 * that is reckoned from an old reading would be too short (D25); with a test clock it is a number
 * that the test moves. */
#include "scheduler/scheduler.h"

#define GRACE_DEFAULT UINT64_C(1000000000)
#define CYCLE_DEFAULT UINT64_C(1000000)
#define DIGEST_START                                                                     \
    UINT64_C(0x65727261646f6e65) /* any number but 0; part of the format */

void
errand__scheduler_init(errand__scheduler *scheduler, const errand_runtime_config *config,
                       const errand_allocator *allocator, errand__registrar *registrar,
                       const errand__outside *outside, void *context)
{
    bool seeded = config->order != ERRAND_ORDER_ARRIVAL;
    bool test_clock = (config->flags & ERRAND_RUNTIME_TEST_CLOCK) != 0;

    *scheduler = (errand__scheduler){
        .allocator = allocator,
        .registrar = registrar,
        .context = context,
        .outside = outside,
        .order = config->order,
        .seed = config->seed,
        .grace = config->grace_ns == 0 ? GRACE_DEFAULT : config->grace_ns,
        .real_clock = !seeded && !test_clock,
        .now = config->start_ns,
        .cycle = config->cycle_ns == 0 ? CYCLE_DEFAULT : config->cycle_ns,
        .registrations = 1,
        .next_task = 1,
        .propagates = (config->flags & ERRAND_RUNTIME_PROPAGATE) != 0,
        .audit = {.seeded = seeded,
                  .only_folds = seeded,
                  .mix = seeded ? DIGEST_START : 0,
                  .plain = errand__mix_words(0, 0, 0, 0)},
    };
    errand__heap_init(&scheduler->timers, allocator);
    errand__dues_init(&scheduler->due, allocator);
    errand__dues_init(&scheduler->begins, allocator);
    errand__list_init(&scheduler->ready);
    errand__list_init(&scheduler->pass);
    errand__list_init(&scheduler->all);
    errand__list_init(&scheduler->waiting);
    errand__list_init(&scheduler->roots);
    errand__list_init(&scheduler->ending);
    errand__list_init(&scheduler->cancelling);
    errand__scheduler_time(scheduler);
    errand__chooser_init(scheduler, seeded ? config->choices : NULL);
    errand__policy_init(scheduler);
}

void
errand__scheduler_fini(errand__scheduler *scheduler)
{
    ERRAND_ASSERT(scheduler->live == 0);
    while (!errand__list_empty(&scheduler->all)) { /* held ones */
        errand_task *task = ERRAND__CONTAINER(scheduler->all.next, errand_task, all);

        task->holds = 0;
        errand__task_release(task);
    }
    for (size_t i = 0; i < ERRAND__TASK_CHUNKS; i++) {
        errand_task *chunk = scheduler->tasks.chunks[i];

        errand__mem_free(scheduler->allocator, chunk,
                         sizeof *chunk << (i + ERRAND__TASK_CHUNK_FIRST));
    }
    scheduler->tasks = (errand__task_table){.fresh = 0};
    errand__mem_free(scheduler->allocator, scheduler->latencies,
                     scheduler->latency_room * sizeof *scheduler->latencies);
    scheduler->latencies = NULL;
    scheduler->latency_count = scheduler->latency_room = 0;
    errand__heap_fini(&scheduler->timers);
    errand__dues_fini(&scheduler->due);
    errand__dues_fini(&scheduler->begins);
}

uint64_t
errand__scheduler_time(errand__scheduler *scheduler)
{
    if (scheduler->real_clock)
        scheduler->now = errand__clock_now();
    return scheduler->now;
}

uint64_t
errand__scheduler_read(errand__scheduler *scheduler)
{
    const errand__audit *audit = &scheduler->audit;
    uint64_t now;

    if (!audit->inputs)
        return errand__scheduler_time(scheduler);
    if (audit->replay != NULL && audit->replay_time(audit->replay_arg, &now))
        scheduler->now = now;
    else
        errand__scheduler_time(scheduler);
    errand__audit_step(scheduler, ERRAND_STEP_TIME, 0, 0, scheduler->now, NULL);
    return scheduler->now;
}
