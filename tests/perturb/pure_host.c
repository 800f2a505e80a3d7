/* SPDX-License-Identifier: MIT */
/* pure_host: a program whose jobs are functions of what they were given, however long they take.
 *
 *     pure_host SEED inline|paced WORKERS JITTER_US
 *
 * Twelve tasks send out jobs (some effect-free, some in a domain, some with a deadline or a
 * follow-up), sleep for drawn times, cancel jobs and each other.  Each body spins for a random real
 * time of at most JITTER_US, drawn from the processor's clock: nothing of that may be seen.  Prints
 * every completion as it is drained, what each task saw, and the digest. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "errand/executor.h"
#include "errand/order.h"
#include "errand/task.h"

enum { TASKS = 12, ROUNDS = 24 };

typedef struct part { /* what a job works on and gives back */
    uint64_t number;
    bool follows;
} part;

typedef struct walker {
    unsigned name, round;
    uint64_t seen; /* folded: the answers and results that it got */
    errand_task_id id;
    errand_identity out; /* what it started and did not await */
    bool has_out;
} walker;

static errand_runtime *runtime;
static errand_lease *lease;
static walker walkers[TASKS];
static uint64_t jitter_us;

static void
require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "pure_host: %s\n", what);
    exit(3);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static uint64_t
mix(uint64_t word)
{
    word = (word ^ word >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

static uint64_t
real_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A different time in each process and for each job. */
static void
spin(void)
{
    static atomic_uint count;
    uint64_t now = real_ns();
    uint64_t end;

    if (jitter_us == 0)
        return;
    end = now + mix(now + atomic_fetch_add_explicit(&count, 1, memory_order_relaxed)) %
                    (jitter_us * 1000);
    while (real_ns() < end)
        ;
}

static void
drop_part(void *data, size_t size)
{
    (void)size;
    free(data);
}

static const errand_payload_type part_type = {"part", drop_part};

static uint64_t
part_digest(const void *data, size_t size)
{
    (void)size;
    return ((const part *)data)->number;
}

static int32_t work(errand_job *job, void *state, errand_payload *out_payload);

static const errand_job_type work_type = {
    .struct_size = sizeof work_type, .name = "work", .run = work, .drop = free};

static errand_spec
spec_of(uint64_t number, bool follows)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    part *state = calloc(1, sizeof *state);

    require(state != NULL, "no memory");
    *state = (part){number, follows};
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &work_type;
    spec.state = state;
    return spec;
}

static int32_t
work(errand_job *job, void *state, errand_payload *out_payload)
{
    const part *self = state;
    part *made;

    spin();
    if (self->number % 7 == 3) {
        errand_job_message(job, "%" PRIu64 " is none of ours", self->number % 1000);
        return 5;
    }
    if (self->number % 11 == 4)
        errand_panic("%" PRIu64 " is too much", self->number % 1000);
    if (self->follows) {
        errand_spec next = spec_of(mix(self->number), false);

        if (errand_job_follow(job, &next, NULL) != ERRAND_OK)
            free(next.state);
    }
    made = calloc(1, sizeof *made);
    require(made != NULL, "no memory");
    made->number = mix(self->number);
    *out_payload = (errand_payload){&part_type, made, sizeof *made};
    return 0;
}

/* ---- tasks ------------------------------------------------------------------------------------ */

static void
see(walker *self, uint64_t word)
{
    self->seen = mix(self->seen ^ word) + word;
}

static void
hear(walker *self, const errand_task_news *news)
{
    see(self, (uint64_t)news->why << 32 | (uint64_t)news->reason);
    see(self, errand_runtime_now(runtime));
    if (news->why != ERRAND_WHY_COMPLETION)
        return;
    see(self, (uint64_t)news->completion->outcome << 32 |
                  (uint64_t)(uint32_t)news->completion->code);
    if (news->completion->outcome == ERRAND_COMPLETED)
        see(self, ((const part *)news->completion->payload.data)->number);
}

/* Something that nobody waits for, and that may be cancelled later. */
static void
start_one(walker *self, errand_task *task)
{
    errand_spec spec = spec_of(errand_task_random(task), true);

    spec.flags = errand_task_random(task) % 2 == 0 ? ERRAND_SPEC_EFFECT_FREE : 0;
    spec.domain = errand_task_random(task) % 3;
    if (errand_task_random(task) % 4 == 0)
        spec.deadline_ns = 1 + errand_task_random(task) % 2000000;
    self->has_out = errand_start(lease, &spec, NULL, &self->out) == ERRAND_OK;
    if (!self->has_out)
        free(spec.state);
    see(self, self->has_out);
}

static void
cancel_one(walker *self)
{
    errand_cancel_answer answer = (errand_cancel_answer)0;

    if (!self->has_out)
        return;
    self->has_out = false;
    require(errand_cancel(runtime, &self->out, ERRAND_REASON_EXPLICIT, &answer) ==
                ERRAND_OK,
            "cancel");
    see(self, answer);
}

static errand_task_answer
walk(errand_task *task, void *state, const errand_task_news *news)
{
    walker *self = state;
    errand_snapshot accounts;
    errand_status status;

    hear(self, news);
    if (news->why == ERRAND_WHY_CANCELLED || self->round++ == ROUNDS)
        return ERRAND_TASK_DONE;
    require(errand_runtime_snapshot(runtime, &accounts) == ERRAND_OK, "snapshot");
    see(self, accounts.queued << 40 | accounts.running << 20 | accounts.drained);
    cancel_one(self);
    if (self->name != 0 && errand_task_random(task) % 64 == 0)
        see(self, (uint64_t)errand_task_cancel(
                      runtime, &walkers[1 + errand_task_random(task) % (TASKS - 1)].id,
                      ERRAND_REASON_EXPLICIT));
    if (errand_task_cancelled(task) != ERRAND_REASON_NONE)
        return ERRAND_TASK_DONE;
    switch (errand_task_random(task) % 4) {
    case 0:
        status = errand_task_yield(task);
        break;
    case 1:
        status = errand_task_sleep(task, errand_task_random(task) % 3000000);
        break;
    default: {
        errand_spec spec = spec_of(errand_task_random(task), false);
        uint64_t now = errand_runtime_now(runtime);
        uint64_t limit = errand_task_random(task) % 3 == 0
                             ? now + errand_task_random(task) % 2000000
                             : UINT64_MAX;

        start_one(self, task);
        status = errand_task_await(task, lease, &spec, limit, NULL);
        if (status == ERRAND_EFULL) {
            see(self, ERRAND_EFULL);
            free(spec.state);
            status = errand_task_sleep(task, 500000);
        }
        break;
    }
    }
    require(status == ERRAND_OK, "wait");
    return ERRAND_TASK_WAIT;
}

/* ---- the program ------------------------------------------------------------------------------- */

static void
print_completion(void *arg, errand_completion *completion)
{
    (void)arg;
    printf("%" PRIu64 " %" PRIu64 " outcome %d code %d flags %u: %s, %" PRIu64
           " to %" PRIu64 "\n",
           completion->identity.operation, errand_runtime_now(runtime),
           (int)completion->outcome, (int)completion->code, (unsigned)completion->flags,
           completion->outcome == ERRAND_COMPLETED ? "good" : completion->message,
           completion->t_submit_ns, completion->t_end_ns);
}

static void
begin(char **words)
{
    errand_blocking_config pool = {.struct_size = sizeof pool};
    errand_runtime_config config = {
        .struct_size = sizeof config,
        .order =
            strcmp(words[2], "inline") == 0 ? ERRAND_ORDER_INLINE : ERRAND_ORDER_PACED,
        .seed = strtoull(words[1], NULL, 10),
        .on_completion = print_completion,
    };
    errand_executor *executor;

    pool.workers_max = (uint32_t)strtoul(words[3], NULL, 10);
    jitter_us = strtoull(words[4], NULL, 10);
    require(errand_runtime_create(&config, &runtime) == ERRAND_OK, "runtime");
    require(errand_blocking_create(&pool, &executor) == ERRAND_OK, "executor");
    require(errand_attach(runtime, executor, 32, &lease) == ERRAND_OK, "attach");
    require(errand_audit_payload(runtime, &part_type, part_digest) == ERRAND_OK,
            "payload");
    errand_executor_abandon(&executor);
}

int
main(int argc, char **argv)
{
    require(argc == 5, "usage: pure_host SEED inline|paced WORKERS JITTER_US");
    begin(argv);
    for (unsigned i = 0; i < TASKS; i++) {
        errand_task_spec spec = {.struct_size = sizeof spec,
                                 .label = "walker",
                                 .fn = walk,
                                 .state = &walkers[i]};

        walkers[i].name = i;
        require(errand_spawn(runtime, NULL, &spec, &walkers[i].id) == ERRAND_OK, "spawn");
    }
    require(errand_run(runtime, &walkers[0].id, UINT64_MAX) == ERRAND_OK, "run");
    for (unsigned i = 0; i < TASKS; i++)
        printf("walker %u: %u rounds, saw %016" PRIx64 "\n", i, walkers[i].round,
               walkers[i].seen);
    printf("now %" PRIu64 "\n", errand_runtime_now(runtime));
    printf("digest: %016" PRIx64 "\n", errand_digest(runtime));
    require(errand_runtime_shutdown(&runtime, errand_deadline_in(10000000000u),
                                    ERRAND_SHUTDOWN_QUIET, NULL) == ERRAND_OK,
            "shutdown");
    return 0;
}
