/* SPDX-License-Identifier: MIT */
/* throughput: operations per second with a window kept full: the host's thread submits, a worker
 * runs, the host's thread hears of it and submits the same one again.  A warm-up doubles until
 * it takes long enough to foretell how many operations the measured stretch needs.
 * On two processors one worker is also measured apart from the host's thread: left alone, the
 * kernel of a busy machine keeps both on one processor. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

enum { ERRAND = 0, LIBUV = 1, YARDSTICK = 4, CONFIGS_MAX = 64 };

/* Which windows count, and what is asked of them. */
static const uint32_t windows[3] = {64, 1024, 8192};
static const double libuv_two[3] = {10, 4, 3.5};
static const double libuv_one[3] = {1.5, 1.2, 1.0};

static void
aim(bench_row *row, const bench_config *config, uint32_t peer, uint32_t window)
{
    bool short_job = config->job_ns == 0;
    if (peer == LIBUV && short_job)
        bench_row_aim(row, BENCH_AIM_RATIO,
                      config->processors == 2 ? libuv_two[window] : libuv_one[window]);
    if (peer == LIBUV && !short_job && config->processors == 2 &&
        config->plan.workers == 2 && window == 1)
        bench_row_aim(row, BENCH_AIM_RATIO, 1.7);
    if (peer == YARDSTICK && short_job && config->processors == 2 && window == 1)
        bench_row_aim(row, BENCH_AIM_RATIO, 0.8);
}

static uint32_t
window_of(const bench_config *config)
{
    uint32_t window = 0;
    while (windows[window] != config->plan.in_flight)
        window++;
    return window;
}

/* four_beside_two: the config before it is the same with two workers. */
static void
four_beside_two(const bench_table *table, uint32_t config, bench_report *report)
{
    const bench_config *four = &table->configs[config];
    if (four->plan.workers != 4 || config == 0 || four->processors != 2 ||
        table->configs[config - 1].plan.workers != 2)
        return;
    bench_pairing pairing = {.table = table,
                             .errand_config = config,
                             .peer_config = config - 1,
                             .peer = ERRAND,
                             .more_is_better = true};
    bench_row *row = bench_report_pair(report, "throughput", four->work, "M/s", &pairing);
    if (row != NULL)
        snprintf(row->peer, sizeof row->peer, "errand, 2 wkrs");
    bench_row_aim(row, BENCH_AIM_RATIO, 0.8);
}

/* config_of: one of the grid; apart: see above. */
static bench_config
config_of(const bench_options *options, uint32_t processors, uint32_t job_ns,
          uint32_t in_flight, uint32_t workers, bool apart)
{
    static const char *const works[2][2] = {{"no-op", "no-op, apart"},
                                            {"1 us", "1 us, apart"}};
    return (bench_config){.work = works[job_ns != 0][apart],
                          .plan = {.workers = workers, .in_flight = in_flight},
                          .processors = processors,
                          .job_ns = job_ns,
                          .apart = apart,
                          .measure_ms = options->quick ? 25 : 60};
}

static uint32_t
configs_make(const bench_options *options, bench_config *configs)
{
    uint32_t count = 0;
    for (uint32_t processors = 2; processors >= 1; processors--) {
        for (uint32_t job_ns = 0; job_ns <= 1000; job_ns += 1000) {
            for (uint32_t window = 0; window < 3; window++) {
                for (uint32_t workers = 1; workers <= 4; workers *= 2) {
                    uint32_t in_flight = windows[window];
                    bool few = job_ns != 0
                                   ? processors == 2 && workers == 2 && window == 1
                                   : processors == 2 || workers == 1;
                    if (options->quick && !few)
                        continue;
                    if (processors == 2 && workers == 1)
                        configs[count++] = config_of(options, processors, job_ns,
                                                     in_flight, workers, true);
                    configs[count++] =
                        config_of(options, processors, job_ns, in_flight, workers, false);
                }
            }
        }
    }
    return count;
}

void
bench_case_throughput(const bench_options *options, bench_report *report)
{
    static bench_config configs[CONFIGS_MAX];
    uint32_t count = configs_make(options, configs);
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 7;
    bench_table *table = bench_table_fill("throughput", configs, count, samples,
                                          bench_sample_rate, NULL, 0);
    for (uint32_t c = 0; c < count; c++) {
        for (uint32_t p = 1; p < BENCH_PEERS; p++) {
            bench_pairing pairing = {.table = table,
                                     .errand_config = c,
                                     .peer_config = c,
                                     .peer = p,
                                     .more_is_better = true};
            bench_row *row =
                bench_report_pair(report, "throughput", configs[c].work, "M/s", &pairing);
            aim(row, &configs[c], p, window_of(&configs[c]));
        }
        four_beside_two(table, c, report);
    }
    bench_table_destroy(table);
}
