/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_RUNTIME_ACTOR_H
#define ERRAND_TESTS_RUNTIME_ACTOR_H
/* actor: a task that counts what happens to it; each test gives it a step function. */
#include "errand/order.h"
#include "world.h"

/* The order of the worlds that actors make: some tests are built once for each. */
#ifndef ACTOR_ORDER
#define ACTOR_ORDER ERRAND_ORDER_INLINE
#endif

#define NEVER UINT64_MAX
#define MS    UINT64_C(1000000)

typedef struct actor {
    test_world *in;
    errand_task_answer (*step)(errand_task *task, struct actor *self,
                               const errand_task_news *news);
    void *arg;
    uint64_t number;
    errand_task_id id;
    unsigned visits, ends, drops;
    errand_task_news news;  /* of the last visit; completion and verdict are gone */
    errand_outcome outcome; /* of the last completion */
    errand_status status;   /* of the last wait */
    errand_task_end end;    /* as on_end read it */
    uint64_t time;          /* of the last visit */
} actor;

/* Spawns; the step's first news is WHY_START.  Must be accepted. */
errand_task_id actor_spawn(test_world *in, const errand_task_id *parent,
                           const char *label, actor *self);
errand_task_spec actor_spec(test_world *in, const char *label, actor *self);
int actors_setup(void **state); /* a world of ACTOR_ORDER, seed 7 */
/* Ends the world and begins one of ACTOR_ORDER. */
void actors_restart(test_world *in, uint64_t seed, errand_completion_fn *fn, void *arg);
/* Drives until a turn makes no progress; answers that turn. */
errand_turn drive_all(test_world *in);
/* One turn with a limit of items. */
errand_turn drive_items(test_world *in, uint32_t items);
errand_task_end actor_end(const actor *self); /* must have ended, and dropped, once */

/* Steps. */
errand_task_answer step_done(errand_task *task, actor *self,
                             const errand_task_news *news);
errand_task_answer step_park(errand_task *task, actor *self,
                             const errand_task_news *news);
errand_task_answer step_yield(errand_task *task, actor *self,
                              const errand_task_news *news);
/* Sleeps number ns, then is done. */
errand_task_answer step_sleep(errand_task *task, actor *self,
                              const errand_task_news *news);
/* Awaits the world_job arg, with a limit number (0 = none), then is done. */
errand_task_answer step_await(errand_task *task, actor *self,
                              const errand_task_news *news);
#endif
