/* SPDX-License-Identifier: MIT */
/* paced: a window kept full on real workers, told in virtual order, beside the same in arrival
 * order: what two heaps, the draws and the digest cost, and what waiting for the due one costs.
 * "in order": every operation takes 1 virtual ns, so the due order follows the order of submission
 * but for ties; else each takes 0.5 to 2 virtual ms, and the due order is shuffled. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

enum { ERRAND = 0, SHAPES = 3, KINDS = 4 };

void
bench_case_paced(const bench_options *options, bench_report *report)
{
    static const uint32_t jobs[KINDS] = {0, 1000, 10000, 100000};
    static const char *const works[SHAPES][KINDS] = {
        {"no-op, arrival", "1 us, arrival", "10 us, arrival", "100 us, arrival"},
        {"no-op, in order", "1 us, in order", "10 us, in order", "100 us, in order"},
        {"no-op, shuffled", "1 us, shuffled", "10 us, shuffled", "100 us, shuffled"}};
    static bench_config configs[SHAPES * KINDS];
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 7;
    for (uint32_t k = 0; k < KINDS; k++) {
        for (uint32_t shape = 0; shape < SHAPES; shape++)
            configs[k * SHAPES + shape] =
                (bench_config){.work = works[shape][k],
                               .plan = {.workers = 2,
                                        .in_flight = 1024,
                                        .paced = shape != 0,
                                        .in_order = shape == 1},
                               .processors = 2,
                               .job_ns = jobs[k],
                               .measure_ms = options->quick ? 25 : 60};
    }
    bench_table *table = bench_table_fill("paced", configs, SHAPES * KINDS, samples,
                                          bench_sample_rate, NULL, 0);
    for (uint32_t c = 0; c < SHAPES * KINDS; c++) {
        if (c % SHAPES == 0)
            continue;
        bench_pairing pairing = {.table = table,
                                 .errand_config = c,
                                 .peer_config = c - c % SHAPES,
                                 .peer = ERRAND,
                                 .more_is_better = true};
        bench_row *row =
            bench_report_pair(report, "paced", configs[c].work, "M/s", &pairing);
        if (row == NULL)
            continue;
        snprintf(row->peer, sizeof row->peer, "arrival");
        if (configs[c].plan.in_order)
            bench_row_aim(row, BENCH_AIM_RATIO, 0.9);
    }
    bench_table_destroy(table);
}
