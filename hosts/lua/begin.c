/* SPDX-License-Identifier: MIT */
/* begin: a run gets what the library gives it: a runtime, a pool, what a log has to know. */
#include "io.h"
#include "errand/ffi.h"

/* How long operations seem to take in seeded orders, where the library's default is 1 ms: of the
 * size that they really have, so that a script's limits mean the same in all orders. */
static errand_status
run_latencies(errand__lua_run *run)
{
    static const struct {
        uint32_t kind;
        uint64_t estimate_ns;
    } models[] = {
        {ERRAND_KIND_RESOLVE, 10000000},
        {ERRAND_KIND_COMMAND, 100000000},
        {ERRAND_KIND_PROCESS_WAIT, 100000000},
        {ERRAND_KIND_HTTP, 100000000},
    };
    errand_status status = ERRAND_OK;
    if (run->options.order == ERRAND_ORDER_ARRIVAL)
        return status;
    for (size_t i = 0; i < sizeof models / sizeof models[0] && status == ERRAND_OK; i++)
        status =
            errand_order_latency(run->runtime, models[i].kind, models[i].estimate_ns);
    return status;
}

static errand_status
run_executor(errand__lua_run *run)
{
    if (run->options.alone && run->options.order == ERRAND_ORDER_INLINE)
        return errand_manual_create(NULL, &run->executor);
    errand_blocking_config pool = {
        .struct_size = sizeof pool,
        .workers_max = run->options.workers,
        .name = "errand-lua",
    };
    return errand_blocking_create(&pool, &run->executor);
}

static errand_status
run_attach(errand__lua_run *run)
{
    errand_status status = run_executor(run);
    if (status == ERRAND_OK)
        status = errand_attach(run->runtime, run->executor, ERRAND__LUA_OPERATIONS,
                               &run->lease);
    if (status == ERRAND_OK)
        status = errand_inbox_open(run->runtime, &run->inbox);
    if (status == ERRAND_OK)
        status = errand_operations_codecs(run->runtime);
    if (status == ERRAND_OK)
        status = errand_ffi_codecs(run->runtime);
    if (status == ERRAND_OK)
        status = errand__lua_work_codecs(run->L, run->runtime);
    if (status == ERRAND_OK)
        status = run_latencies(run);
    if (status == ERRAND_OK && run->options.trace != NULL)
        status =
            errand_trace(run->runtime, run->options.trace, run->options.held_trace_arg);
    return status;
}

errand_status
errand__lua_run_begin(errand__lua_run *run)
{
    errand_runtime_config config = {
        .struct_size = sizeof config,
        .operations_max = ERRAND__LUA_OPERATIONS,
        .order =
            run->options.held_replay != NULL ? ERRAND_ORDER_REPLAY : run->options.order,
        .held_replay = run->options.held_replay,
        .seed = run->seed,
        .grace_ns = run->options.grace_ns,
        .watchdog_ns = run->options.watchdog_ns,
        .choices = run->options.choices,
        .on_completion =
            run->options.on_completion != NULL ? errand__lua_report_completion : NULL,
        .held_on_completion_arg = run,
        .held_recorder = run->options.held_recorder,
    };
    errand_status status = errand_runtime_create(&config, &run->runtime);
    if (status != ERRAND_OK)
        return status;
    run->start_ns = errand_runtime_now(run->runtime);
    run->watch_start = run->watch_visit = errand__lua_watch_now();
    return run_attach(run);
}
