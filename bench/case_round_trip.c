/* SPDX-License-Identifier: MIT */
/* round_trip: one operation in flight: the cycles from one completion to the next, with a submit
 * at the start and, where the peer sleeps, a wake each way.  With two processors the host's
 * thread and the worker are kept apart, or the kernel may place them as it likes: it often puts
 * both on one, and on a busy machine always. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

enum { LIBUV = 1, YARDSTICK = 4, TRIPS_MAX = 40000, WARM_TRIPS = 300 };

void
bench_round_trip_sample(const bench_peer *peer, const bench_config *config,
                        bench_sample *out_sample)
{
    bench_set_job(config->job_ns);
    void *world = peer->open(&config->plan);
    uint64_t *stamps = calloc(TRIPS_MAX, sizeof *stamps);
    if (world == NULL || stamps == NULL) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        return;
    }
    bench_run run = {.total = 0};
    if (!bench_sample_run(peer, world, WARM_TRIPS, &run, out_sample))
        return;
    if (config->apart && !bench_sample_part()) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text,
                 "cannot be kept apart");
        return;
    }
    run.stamps = stamps;
    run.stamp_max = TRIPS_MAX;
    uint64_t until = bench_now() + config->measure_ms * (uint64_t)1000000;
    while (bench_now() < until && run.stamp_count < TRIPS_MAX) {
        if (!bench_sample_run(peer, world, 100, &run, out_sample))
            return;
    }
    bench_sort(stamps, run.stamp_count);
    double per_ns = bench_cycles_per_ns();
    out_sample->values[0] = bench_percentile(stamps, run.stamp_count, 0.5) / per_ns;
    out_sample->values[1] = bench_percentile(stamps, run.stamp_count, 0.99) / per_ns;
    out_sample->values[2] = bench_percentile(stamps, run.stamp_count, 1) / per_ns;
    bench_sample_check(peer, world, config, &run, out_sample);
}

void
bench_case_round_trip(const bench_options *options, bench_report *report)
{
    static bench_config configs[3];
    static const char *const works[3][2] = {
        {"no-op, apart, median", "no-op, apart, 99th pct"},
        {"no-op, free, median", "no-op, free, 99th pct"},
        {"no-op, median", "no-op, 99th percentile"}};
    for (uint32_t c = 0; c < 3; c++) {
        configs[c] = (bench_config){.work = "no-op",
                                    .plan = {.workers = 1, .in_flight = 1},
                                    .processors = c == 2 ? 1 : 2,
                                    .apart = c == 0,
                                    .measure_ms = options->quick ? 60 : 150};
    }
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 9;
    bench_table *table = bench_table_fill("round_trip", configs, 3, samples,
                                          bench_round_trip_sample, NULL, 0);
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t value = 0; value < 2; value++) {
            for (uint32_t p = 1; p < BENCH_PEERS; p++) {
                bench_pairing pairing = {.table = table,
                                         .errand_config = c,
                                         .peer_config = c,
                                         .peer = p,
                                         .value = value};
                bench_row *row = bench_report_pair(report, "round_trip", works[c][value],
                                                   "ns", &pairing);
                if (value == 0 && p == LIBUV && c != 1)
                    bench_row_aim(row, BENCH_AIM_RATIO, c == 0 ? 100 : 1 / 0.45);
                if (value == 0 && p == YARDSTICK && c == 2)
                    bench_row_aim(row, BENCH_AIM_RATIO, 1 / 1.15);
            }
        }
    }
    bench_table_destroy(table);
}
