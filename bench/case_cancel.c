/* SPDX-License-Identifier: MIT */
/* cancel: a million operations queued behind one that waits at a gate; all are cancelled, and all
 * their completions are heard, before the gate opens.  The cost is that of both. */
#include "report.h"

#include <stdio.h>

enum { LIBUV = 1, QUEUED = 1000000 };

static void
cancel_sample(const bench_peer *peer, const bench_config *config,
              bench_sample *out_sample)
{
    bench_set_gate(0);
    void *world = peer->open(&config->plan);
    if (world == NULL) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        return;
    }
    uint64_t count = config->plan.in_flight - 1;
    bench_run run = {.total = count, .left = count + 1};
    uint64_t from = bench_now();
    bool good = peer->fill(world, &run);
    uint64_t filled = bench_now();
    if (good) {
        bench_wait_at_gate();
        uint64_t start = bench_now();
        good = peer->cancel(world, &run);
        uint64_t cancelled = bench_now();
        good = good && peer->collect(world, &run);
        uint64_t end = bench_now();
        out_sample->values[0] = (double)(end - start) / (double)count;
        out_sample->values[1] = (double)(filled - from) / (double)count;
        out_sample->values[2] = (double)(cancelled - start) / (double)count;
    }
    bench_open_gate();
    run.total++;
    if (good && peer->collect(world, &run) && run.cancelled != count)
        run.fault.lost = 1;
    bench_sample_check(peer, world, config, &run, out_sample);
}

void
bench_case_cancel(const bench_options *options, bench_report *report)
{
    static bench_config config;
    config =
        (bench_config){.plan = {.workers = 1, .in_flight = QUEUED + 1, .cancels = true},
                       .processors = 2};
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 7;
    uint32_t skip = 0;
    for (uint32_t p = 0; p < BENCH_PEERS; p++)
        skip |= bench_peers[p]->cancel == NULL ? 1u << p : 0;
    bench_table *table =
        bench_table_fill("cancel", &config, 1, samples, cancel_sample, NULL, skip);
    static const char *const works[3] = {"cancel and completion", "submit a million",
                                         "the cancel alone"};
    for (uint32_t value = 0; value < 3; value++) {
        for (uint32_t p = 1; p < BENCH_PEERS; p++) {
            bench_pairing pairing = {.table = table, .peer = p, .value = value};
            bench_row *row =
                bench_report_pair(report, "cancel", works[value], "ns", &pairing);
            if (value == 0 && p == LIBUV)
                bench_row_aim(row, BENCH_AIM_RATIO, 1 / 0.6);
        }
    }
    bench_table_destroy(table);
}
