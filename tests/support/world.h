/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_WORLD_H
#define ERRAND_TESTS_SUPPORT_WORLD_H
/* world: a runtime, a manual executor and a lease for one test, and jobs that count themselves.
 *
 * Each test has its own (world_setup, world_teardown).  Teardown shuts the runtime down and finds
 * what is left: bytes, jobs whose state was not dropped exactly once, terms of the conservation
 * law.  world_check is the law O4 on a snapshot; call it after every step. */
#include "errand/executor.h"
#include "errand/task.h"
#include "errand/testing.h"
#include "group.h"

#define WORLD_NEWS 4096

typedef struct world_job { /* the state of a counting job */
    struct test_world *world;
    int ran, dropped, payload_dropped;
    int32_t answer;    /* what the body answers */
    const char *panic; /* non-NULL: it panics with this */
    bool give_payload; /* it answers a payload whose drop is counted */
    void (*inside)(errand_job *job,
                   struct world_job *self); /* called in the body, if set */
    void *arg;
} world_job;

typedef struct world_news { /* one completion, as the handler saw it */
    errand_identity identity;
    errand_outcome outcome;
    errand_code code;
    uint32_t flags;
    int32_t job_code;
    void *wait;
    char message[256], operation[64];
    uint64_t t_submit, t_start, t_end;
    uint64_t trace_id;
    size_t payload_size;
} world_news;

typedef struct test_world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_executor *pool; /* of world_pool */
    errand_runtime_config config;
    world_news news[WORLD_NEWS];
    size_t news_count;
    int misuses;
    errand_status last_misuse;
    char misuse_text[256];
    errand_report report; /* of teardown or world_end */
    int64_t bytes;        /* live before */
    bool ended;
    bool threads; /* world_pool: their memory is gone a little later */
} test_world;

extern const errand_job_type world_job_type;
extern const errand_payload_type world_payload_type;

int world_setup(void **state);        /* arrival order, manual executor, test clock */
int world_setup_inline(void **state); /* inline order, seed 7 */
int world_setup_seeded(void **state, errand_order order);
int world_teardown(void **state);
void world_begin(test_world *world, const errand_runtime_config *config,
                 uint32_t owed_max);
/* Attaches a blocking pool too; its lease takes the place of the manual executor's. */
void world_pool(test_world *world, uint32_t workers);
/* Drains and parks until so many completions were heard of in all. */
void world_await(test_world *world, size_t news_count);
void world_end(test_world *world);   /* shutdown QUIET; report is filled */
void world_check(test_world *world); /* O4, and what hangs on it */

errand_spec world_spec(world_job *job); /* interruptible blocking, kind 1 */
errand_identity world_start(test_world *world, world_job *job); /* must be accepted */
/* The five steps one by one. */
errand_submission world_submission(test_world *world, world_job *job,
                                   errand_identity *out_identity);
size_t world_step(test_world *world, size_t budget); /* manual executor; law checked */
size_t world_drain(test_world *world, size_t budget);
const world_news *world_last(const test_world *world);
void world_handler(void *arg, errand_completion *completion); /* records into news */

#endif
