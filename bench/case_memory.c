/* SPDX-License-Identifier: MIT */
/* memory: bytes per operation in flight: two worlds that differ only in how many operations they
 * are made for and hold, behind a gate; the difference of their bytes by that of the numbers.
 * So threads, stacks and what is there once do not count, and slab, ring and nodes do.  The
 * slots, which are the host's own states, are taken off for everyone.
 * allocations: calls of the allocator per operation, once warm. */
#include "meter.h"
#include "report.h"

#include <stdio.h>

enum { SMALL = 4096, LARGE = 69632, COUNTED = 200000, CONFIGS = 4 };

static void
memory_sample(const bench_peer *peer, const bench_config *config,
              bench_sample *out_sample)
{
    bench_set_gate(0);
    int64_t resident = bench_meter_resident();
    int64_t mallinfo = bench_meter_mallinfo();
    bench_meter_start();
    void *world = peer->open(&config->plan);
    if (world == NULL) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        return;
    }
    bench_run run = {.total = config->plan.in_flight, .left = config->plan.in_flight};
    bool good = peer->fill(world, &run);
    bench_wait_at_gate();
    double slots = (double)config->plan.in_flight * sizeof(bench_slot);
    out_sample->values[0] = (double)bench_meter_read().bytes - slots;
    out_sample->values[1] = (double)(bench_meter_resident() - resident) - slots;
    out_sample->values[2] =
        (double)(bench_meter_mallinfo() - mallinfo + bench_meter_read().mapped) - slots;
    bench_meter_stop();
    bench_open_gate();
    if (good)
        peer->collect(world, &run);
    bench_sample_check(peer, world, config, &run, out_sample);
}

static void
allocations_sample(const bench_peer *peer, const bench_config *config,
                   bench_sample *out_sample)
{
    void *world = peer->open(&config->plan);
    if (world == NULL) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        return;
    }
    bench_run run = {.total = 0};
    if (!bench_sample_run(peer, world, COUNTED, &run, out_sample))
        return;
    bench_meter_start();
    if (!bench_sample_run(peer, world, COUNTED, &run, out_sample))
        return;
    out_sample->values[0] = (double)bench_meter_read().calls / COUNTED;
    bench_meter_stop();
    bench_sample_check(peer, world, config, &run, out_sample);
}

/* slopes: turn each pair of samples into bytes per operation, kept in the larger config. */
static void
slopes(const bench_table *table)
{
    for (uint32_t c = 1; c < table->config_count; c += 2) {
        for (uint32_t p = 0; p < BENCH_PEERS; p++) {
            for (uint32_t s = 0; s < table->sample_count; s++) {
                bench_sample *large = bench_table_at(table, c, p, s);
                const bench_sample *small = bench_table_at(table, c - 1, p, s);
                if (!bench_sample_valid(small))
                    large->checked = 0;
                for (uint32_t v = 0; v < BENCH_VALUES; v++)
                    large->values[v] =
                        (large->values[v] - small->values[v]) / (LARGE - SMALL);
            }
        }
    }
}

void
bench_case_memory(const bench_options *options, bench_report *report)
{
    static bench_config configs[CONFIGS];
    for (uint32_t c = 0; c < CONFIGS; c++) {
        configs[c] = (bench_config){.plan = {.workers = 1,
                                             .in_flight = c % 2 == 0 ? SMALL : LARGE,
                                             .exact = c >= 2},
                                    .processors = 2};
    }
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 2 : 5;
    bench_table *table =
        bench_table_fill("memory", configs, CONFIGS, samples, memory_sample, NULL, 0);
    slopes(table);
    static const char *const works[2][3] = {
        {"no-op, allocated", "no-op, resident", "no-op, mallinfo2 + mapped"},
        {"decoder, name, exact times", "the same, resident",
         "the same, mallinfo2 + map"}};
    for (uint32_t c = 1; c < CONFIGS; c += 2) {
        for (uint32_t value = 0; value < 3; value++) {
            for (uint32_t p = 1; p < (c == 1 ? BENCH_PEERS : 2);
                 p++) { /* peers have no exact */
                bench_pairing pairing = {.table = table,
                                         .errand_config = c,
                                         .peer_config = c,
                                         .peer = p,
                                         .value = value};
                bench_row *row = bench_report_pair(report, "memory", works[c / 2][value],
                                                   "bytes/op", &pairing);
                if (value == 0 && p == 1)
                    bench_row_aim(row, BENCH_AIM_VALUE, c == 1 ? 208 : 256);
            }
        }
    }
    bench_table_destroy(table);
}

void
bench_case_allocations(const bench_options *options, bench_report *report)
{
    static bench_config config;
    config = (bench_config){.work = "no-op, once warm",
                            .plan = {.workers = 1, .in_flight = 1024},
                            .processors = 2};
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 2 : 5;
    bench_table *table =
        bench_table_fill("allocations", &config, 1, samples, allocations_sample, NULL, 0);
    for (uint32_t p = 1; p < BENCH_PEERS; p++) {
        bench_pairing pairing = {.table = table, .peer = p, .from_one = true};
        bench_row *row =
            bench_report_pair(report, "allocations", config.work, "calls/op", &pairing);
        if (p == 1)
            bench_row_aim(row, BENCH_AIM_VALUE, 0);
    }
    bench_table_destroy(table);
}
