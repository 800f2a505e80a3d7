/* SPDX-License-Identifier: MIT */
/* inline: empty operations in a seeded order, on the manual executor, all on one thread, with the
 * digest on (there is no switch for it).  Beside it the same 1024 operations in arrival order,
 * stepped by the same thread: what neither draws, nor virtual time, nor the digest costs. */
#include "meter.h"
#include "report.h"

#include "errand.h"
#include "errand/executor.h"
#include "errand/order.h"
#include "errand/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KIND = 7, WINDOW = 1024, CONFIGS = 4, TIME = 0, CALLS = 1 };

typedef enum world_shape {
    SHAPE_QUEUED = 0, /* a window is submitted, then driven to its end */
    SHAPE_ONE = 1,    /* a task awaits one operation after the other */
    SHAPE_MANY = 2,   /* as many tasks as the window do */
    SHAPE_ARRIVAL = 3 /* like the first, in arrival order */
} world_shape;

typedef struct world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_spec spec;
    bench_slot *slots;
    uint64_t left, heard, wrong;
    errand_status status; /* of the first call that failed */
} world;

static int32_t
world_body(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    ((bench_slot *)state)->ran++;
    return 0;
}

static const errand_job_type job_type = {
    .struct_size = sizeof(errand_job_type), .name = "empty", .run = world_body};

static void
note(world *self, errand_status status)
{
    if (self->status == ERRAND_OK)
        self->status = status;
}

static void
hear_slot(world *self, bench_slot *slot, errand_outcome outcome)
{
    self->wrong += outcome != ERRAND_COMPLETED || slot->ran != ++slot->done;
    self->heard++;
}

static void
world_hear(void *arg, errand_completion *completion)
{
    if (completion->wait != NULL) /* those that no task awaits */
        hear_slot(arg, completion->wait, completion->outcome);
}

typedef struct actor { /* a task's state */
    world *self;
    bench_slot *slot;
} actor;

static errand_task_answer
actor_run(errand_task *task, void *state, const errand_task_news *news)
{
    actor *me = state;
    world *self = me->self;
    if (news->why == ERRAND_WHY_COMPLETION)
        hear_slot(self, me->slot, news->completion->outcome);
    if (self->left == 0 || self->status != ERRAND_OK)
        return ERRAND_TASK_DONE;
    self->left--;
    self->spec.state = me->slot;
    note(self, errand_task_await(task, self->lease, &self->spec, UINT64_MAX, NULL));
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_FAILED;
}

static bool
world_open(world *self, world_shape shape)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = shape == SHAPE_ARRIVAL ? ERRAND_ORDER_ARRIVAL
                                                                    : ERRAND_ORDER_INLINE,
                                    .seed = 1,
                                    .operations_max = WINDOW,
                                    .on_completion = world_hear,
                                    .held_on_completion_arg = self};
    *self = (world){.slots = calloc(WINDOW, sizeof *self->slots)};
    self->spec = (errand_spec){.struct_size = sizeof self->spec,
                               .kind = KIND,
                               .resource_class = ERRAND_INTERRUPTIBLE_BLOCKING,
                               .held_job = &job_type};
    return self->slots != NULL &&
           errand_manual_create(NULL, &self->executor) == ERRAND_OK &&
           errand_runtime_create(&config, &self->runtime) == ERRAND_OK &&
           errand_attach(self->runtime, self->executor, WINDOW, &self->lease) ==
               ERRAND_OK;
}

static void
submit_window(world *self)
{
    for (uint32_t i = 0; i < WINDOW; i++) {
        self->spec.state = &self->slots[i];
        note(self, errand_start(self->lease, &self->spec, &self->slots[i], NULL));
    }
}

static void
run_queued(world *self, uint64_t total)
{
    const errand_budget all = {.struct_size = sizeof all};
    while (self->heard < total && self->status == ERRAND_OK) {
        uint64_t until = self->heard + WINDOW;
        submit_window(self);
        while (self->heard < until && self->status == ERRAND_OK)
            note(self, errand_drive(self->runtime, &all, NULL));
    }
}

static void
run_arrival(world *self, uint64_t total)
{
    while (self->heard < total && self->status == ERRAND_OK) {
        size_t count;
        submit_window(self);
        note(self, errand_manual_step(self->executor, SIZE_MAX, &count));
        note(self, errand_drain(self->runtime, SIZE_MAX, world_hear, self, &count));
    }
}

static void
run_tasks(world *self, uint64_t total, uint32_t count)
{
    static actor actors[WINDOW];
    errand_task_id ids[WINDOW];
    self->left = total - self->heard;
    for (uint32_t i = 0; i < count; i++) {
        errand_task_spec spec = {
            .struct_size = sizeof spec, .fn = actor_run, .state = &actors[i]};
        actors[i] = (actor){.self = self, .slot = &self->slots[i]};
        note(self, errand_spawn(self->runtime, NULL, &spec, &ids[i]));
    }
    for (uint32_t i = 0; i < count && self->status == ERRAND_OK; i++) {
        errand_status status = errand_run(self->runtime, &ids[i], UINT64_MAX);
        note(self, status == ERRAND_EUNKNOWN ? ERRAND_OK : status); /* it has ended */
    }
}

static void
run(world *self, world_shape shape, uint64_t total)
{
    switch (shape) {
    case SHAPE_QUEUED:
        run_queued(self, total);
        break;
    case SHAPE_ONE:
        run_tasks(self, total, 1);
        break;
    case SHAPE_MANY:
        run_tasks(self, total, WINDOW);
        break;
    case SHAPE_ARRIVAL:
        run_arrival(self, total);
        break;
    }
}

/* All of it is this thread's, so other processes on the machine need not count. */
static uint64_t
processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
inline_sample(const bench_peer *peer, const bench_config *config,
              bench_sample *out_sample)
{
    world self;
    world_shape shape = (world_shape)config->plan.workers;
    (void)peer;
    if (!world_open(&self, shape)) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        return;
    }
    uint64_t counted = config->measure_ms * (uint64_t)1000; /* a million a second */
    counted -= counted % WINDOW;
    run(&self, shape, counted / 4 - counted / 4 % WINDOW);
    uint64_t warm = self.heard;
    uint64_t start = processor_ns();
    run(&self, shape, warm + counted);
    uint64_t end = processor_ns();
    out_sample->values[TIME] = (double)(end - start) / (double)counted;
    uint64_t timed = self.heard;
    bench_meter_start();
    run(&self, shape, timed + counted);
    out_sample->values[CALLS] = (double)bench_meter_read().calls / (double)counted;
    bench_meter_stop();
    if (self.status != ERRAND_OK)
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "%s",
                 errand_status_text(self.status));
    if (shape != SHAPE_ARRIVAL && errand_digest(self.runtime) == 0)
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "no digest");
    out_sample->fault.wrong = self.wrong;
    out_sample->fault.lost = timed + counted - self.heard;
    out_sample->checked = self.heard;
}

void
bench_case_inline(const bench_options *options, bench_report *report)
{
    static const char *const works[CONFIGS] = {"empty, queued", "empty, one task",
                                               "empty, 1024 tasks", "arrival"};
    static bench_config configs[CONFIGS];
    for (uint32_t c = 0; c < CONFIGS; c++)
        configs[c] = (bench_config){
            .work = works[c],
            .plan = {.workers = c, .in_flight = c == SHAPE_ONE ? 1 : WINDOW},
            .processors = 1,
            .measure_ms = options->quick ? 300 : 1000};
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 7;
    bench_table *table =
        bench_table_fill("inline", configs, CONFIGS, samples, inline_sample, NULL, ~1u);
    for (uint32_t value = TIME; value <= CALLS; value++) {
        for (uint32_t c = 0; c < SHAPE_ARRIVAL; c++) {
            bench_pairing pairing = {.table = table,
                                     .errand_config = c,
                                     .peer_config = SHAPE_ARRIVAL,
                                     .value = value,
                                     .from_one = value == CALLS};
            bench_row *row =
                bench_report_pair(report, "inline", works[c],
                                  value == TIME ? "ns/op" : "calls/op", &pairing);
            if (row == NULL)
                continue;
            row->workers = 0;
            snprintf(row->peer, sizeof row->peer, "arrival, stepped");
            bench_row_aim(row, BENCH_AIM_VALUE, value == TIME ? 200 : 0);
        }
    }
    bench_table_destroy(table);
}
