/* SPDX-License-Identifier: MIT */
/* errand: with everything on that a host uses: identities, cancel, accounts, containment, and the
 * times that a default runtime keeps.  An operation is started by errand_start, again from
 * the drain's handler; the host waits by errand_park. */
#include "peer.h"

#include "errand.h"
#include "errand/executor.h"
#include "errand/order.h"

#include <stdio.h>
#include <stdlib.h>

enum { KIND = 7, SPARE = 1 }; /* SPARE: the one in the handler's hand is still owed */

typedef struct errand_world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_spec spec;
    bench_slot *slots;           /* the jobs' states */
    errand_identity *identities; /* if some will be cancelled */
    uint32_t count;
    bench_run *run;
} errand_world;

static int32_t
world_work(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    bench_body(state);
    return 0;
}

static void
world_decode(void *own_data, errand_completion *completion, errand_verdict *out_verdict)
{
    (void)own_data;
    *out_verdict = (errand_verdict){.status = ERRAND_OK, .value = completion->wait};
}

static const errand_job_type job_type = {
    .struct_size = sizeof(errand_job_type), .name = "bench", .run = world_work};
static const errand_decoder_type decoder_type = {
    .struct_size = sizeof(errand_decoder_type), .decode = world_decode};

/* fault: note the first call that failed. */
static bool
fault(bench_run *run, const char *call, errand_status status)
{
    if (run->fault.text[0] == '\0')
        snprintf(run->fault.text, sizeof run->fault.text, "%s: %s", call,
                 errand_status_text(status));
    return false;
}

static void *
world_second(void *first, const bench_plan *plan)
{
    errand_world *world = calloc(1, sizeof *world);
    bench_slot *slots = calloc(plan->in_flight, sizeof *slots);
    if (world == NULL || slots == NULL)
        return NULL; /* the process ends */
    errand_runtime_config config = {
        .struct_size = sizeof config,
        .operations_max = plan->in_flight + SPARE,
        .order = plan->paced ? ERRAND_ORDER_PACED : ERRAND_ORDER_ARRIVAL,
        .times = plan->exact ? ERRAND_TIMES_EXACT : ERRAND_TIMES_COARSE};
    errand_blocking_config pool = {.struct_size = sizeof pool,
                                   .workers_min = plan->workers,
                                   .workers_max = plan->workers};
    if (errand_runtime_create(&config, &world->runtime) != ERRAND_OK)
        return NULL;
    if (first != NULL)
        world->executor = ((errand_world *)first)->executor;
    else if (errand_blocking_create(&pool, &world->executor) != ERRAND_OK)
        return NULL;
    if (errand_attach(world->runtime, world->executor, plan->in_flight + SPARE,
                      &world->lease) != ERRAND_OK)
        return NULL;
    if (plan->in_order && errand_order_latency(world->runtime, KIND, 1) != ERRAND_OK)
        return NULL;
    world->spec = (errand_spec){.struct_size = sizeof(errand_spec),
                                .kind = KIND,
                                .resource_class = ERRAND_INTERRUPTIBLE_BLOCKING,
                                .held_job = &job_type,
                                .held_decoder = plan->exact ? &decoder_type : NULL,
                                .decoder_data = plan->exact ? world : NULL,
                                .held_name = plan->exact ? "exact" : NULL};
    if (plan->cancels)
        world->identities = calloc(plan->in_flight, sizeof *world->identities);
    for (uint32_t i = 0; i < plan->in_flight; i++)
        slots[i].index = i;
    world->slots = slots;
    world->count = plan->in_flight;
    return world;
}

static void *
world_open(const bench_plan *plan)
{
    return world_second(NULL, plan);
}

static inline bool
world_submit(errand_world *world, bench_slot *slot, errand_identity *out_identity)
{
    world->spec.state = slot;
    errand_status status = errand_start(world->lease, &world->spec, slot, out_identity);
    return status == ERRAND_OK || fault(world->run, "errand_start", status);
}

static void
world_hear(void *arg, errand_completion *completion)
{
    errand_world *world = arg;
    bool cancelled = completion->outcome == ERRAND_CANCELLED;
    if (completion->outcome != ERRAND_COMPLETED && !cancelled)
        world->run->fault.wrong++;
    if (bench_completed(world->run, completion->wait, cancelled))
        world_submit(world, completion->wait, NULL);
}

static bool
world_fill(void *opaque, bench_run *run)
{
    errand_world *world = opaque;
    world->run = run;
    for (uint32_t i = 0; i < world->count && bench_begin(run); i++) {
        if (!world_submit(world, &world->slots[i],
                          world->identities == NULL ? NULL : &world->identities[i]))
            return false;
    }
    return true;
}

static bool
world_collect(void *opaque, bench_run *run)
{
    errand_world *world = opaque;
    world->run = run;
    while (!bench_ended(run) && run->fault.text[0] == '\0') {
        size_t count = 0;
        errand_status status =
            errand_drain(world->runtime, SIZE_MAX, world_hear, world, &count);
        if (status == ERRAND_OK && count == 0)
            status = errand_park(world->runtime, UINT64_MAX);
        if (status != ERRAND_OK)
            fault(run, "errand_drain or errand_park", status);
    }
    return run->fault.text[0] == '\0';
}

static bool
world_cancel(void *opaque, bench_run *run)
{
    errand_world *world = opaque;
    for (uint32_t i = 1; i < world->count; i++) {
        errand_cancel_answer answer;
        errand_status status = errand_cancel(world->runtime, &world->identities[i],
                                             ERRAND_REASON_EXPLICIT, &answer);
        if (status != ERRAND_OK)
            return fault(run, "errand_cancel", status);
        if (answer != ERRAND_CANCEL_CANCELLED)
            run->fault.wrong++;
    }
    return true;
}

static bool
world_rest(void *opaque, uint64_t ns)
{
    errand_world *world = opaque;
    uint64_t until_ns = errand_runtime_now(world->runtime) + ns;
    do {
        if (errand_park(world->runtime, until_ns) != ERRAND_OK)
            return false;
    } while (errand_runtime_now(world->runtime) < until_ns);
    return true;
}

static bench_slot *
world_slot(void *opaque, uint32_t index)
{
    errand_world *world = opaque;
    return &world->slots[index];
}

static bool
world_settled(void *opaque, uint64_t heard)
{
    errand_world *world = opaque;
    errand_snapshot accounts;
    size_t count = 0;
    return errand_drain(world->runtime, SIZE_MAX, NULL, NULL, &count) == ERRAND_OK &&
           count == 0 &&
           errand_runtime_snapshot(world->runtime, &accounts) == ERRAND_OK &&
           accounts.accepted == heard && accounts.drained == heard;
}

const bench_peer bench_peer_errand = {.name = "errand",
                                      .open = world_open,
                                      .second = world_second,
                                      .fill = world_fill,
                                      .collect = world_collect,
                                      .cancel = world_cancel,
                                      .rest = world_rest,
                                      .slot = world_slot,
                                      .settled = world_settled};
