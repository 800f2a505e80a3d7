/* SPDX-License-Identifier: MIT */
/* fairness: one host has a deep queue of 10 us jobs; another, on the same workers, sends one at a
 * time and measures its round trips while the flood lasts.  Both hosts live on one thread, so
 * that what is measured is the workers' order and not the kernel's. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

enum { MUTEX = 3, DEPTH = 20000, JOB_NS = 10000, TRIPS_MAX = 20000, JOBS = 10 };

/* fair_probe: round trips until three quarters of the flood must be done. */
static bool
fair_probe(const bench_peer *peer, void *world, bench_run *probe, uint64_t flood_ns,
           bench_sample *out_sample)
{
    uint64_t from = bench_cycles();
    probe->until_cycles =
        from + (uint64_t)((double)flood_ns * 0.75 * bench_cycles_per_ns());
    probe->last_cycles = from;
    probe->total = probe->left = 1;
    do {
        if (!peer->fill(world, probe) || !peer->collect(world, probe)) {
            out_sample->fault = probe->fault;
            return false;
        }
        probe->total++;
        probe->left = bench_cycles() < probe->until_cycles;
        probe->last_cycles = bench_cycles();
    } while (probe->left != 0 && probe->stamp_count < TRIPS_MAX);
    return true;
}

static void
fair_sample(const bench_peer *peer, const bench_config *config, bench_sample *out_sample)
{
    if (peer->second == NULL) {
        out_sample->absent = true;
        return;
    }
    bench_set_job(config->job_ns);
    bench_config second = *config;
    second.plan.in_flight = 1;
    void *world = peer->open(&config->plan);
    void *other = world == NULL ? NULL : peer->second(world, &second.plan);
    uint64_t *stamps = calloc(TRIPS_MAX, sizeof *stamps);
    if (other == NULL || stamps == NULL) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        return;
    }
    bench_run flood = {.total = 0};
    bench_run probe = {.stamps = stamps, .stamp_max = TRIPS_MAX};
    uint64_t hands = config->plan.workers < config->processors ? config->plan.workers
                                                               : config->processors;
    uint64_t flood_ns = (uint64_t)config->plan.in_flight * config->job_ns / hands;
    flood.total = flood.left = config->plan.in_flight;
    if (!peer->fill(world, &flood) ||
        !fair_probe(peer, other, &probe, flood_ns, out_sample) ||
        !peer->collect(world, &flood)) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "a call failed");
        return;
    }
    bench_sort(stamps, probe.stamp_count);
    double per_ns = bench_cycles_per_ns();
    out_sample->values[0] = bench_percentile(stamps, probe.stamp_count, 0.5) / per_ns;
    out_sample->values[1] = bench_percentile(stamps, probe.stamp_count, 0.99) / per_ns;
    out_sample->values[2] = bench_percentile(stamps, probe.stamp_count, 1) / per_ns;
    out_sample->values[3] = (double)probe.stamp_count;
    bench_sample_check(peer, world, config, &flood, out_sample);
    bench_sample_check(peer, other, &second, &probe, out_sample);
}

/* wake_ns: what a sleep and a wake cost here: the median of the mutex peer's round trips. */
static double
wake_ns(const bench_options *options)
{
    bench_config config = {.work = "wake",
                           .plan = {.workers = 1, .in_flight = 1},
                           .processors = 2,
                           .apart = true,
                           .measure_ms = options->quick ? 30 : 100};
    bench_sample sample;
    if (!bench_sample_take(bench_peers[MUTEX], &config, bench_round_trip_sample, NULL,
                           &sample))
        return 0;
    return sample.values[0];
}

void
bench_case_fairness(const bench_options *options, bench_report *report)
{
    static bench_config configs[2];
    for (uint32_t c = 0; c < 2; c++) {
        configs[c] = (bench_config){.work = "10 us, another floods",
                                    .plan = {.workers = 1 + c, .in_flight = DEPTH},
                                    .processors = 2,
                                    .job_ns = JOB_NS};
    }
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 2 : 5;
    uint32_t skip = 0;
    for (uint32_t p = 0; p < BENCH_PEERS; p++)
        skip |= bench_peers[p]->second == NULL ? 1u << p : 0;
    bench_table *table =
        bench_table_fill("fairness", configs, 2, samples, fair_sample, NULL, skip);
    double wake = wake_ns(options);
    static const char *const works[3] = {"10 us flood, median", "10 us flood, 99th pct",
                                         "10 us flood, maximum"};
    for (uint32_t c = 0; c < 2; c++) {
        for (uint32_t value = 0; value < 3; value++) {
            for (uint32_t p = 1; p < BENCH_PEERS; p++) {
                bench_pairing pairing = {.table = table,
                                         .errand_config = c,
                                         .peer_config = c,
                                         .peer = p,
                                         .value = value};
                bench_row *row =
                    bench_report_pair(report, "fairness", works[value], "ns", &pairing);
                if (value == 1 && p == 1)
                    bench_row_aim(row, BENCH_AIM_VALUE, (double)JOBS * JOB_NS + wake);
            }
        }
    }
    bench_table_destroy(table);
}
