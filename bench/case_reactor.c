/* SPDX-License-Identifier: MIT */
/* reactor: file reads from warm memory and from a cold file, and timers, beside libuv and liburing alone.  Each of
 * errand's is an operation with identity, cancel and completion; nothing is left out for it. */
#include "reactor.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOWS = 4, READS = 2 * WINDOWS, CONFIGS = READS + 2, LIBUV = 1, RING = 4 };
enum { ARM = 0, END = 1 };   /* values of timers */
enum { WARM = 0, COLD = 1 }; /* variants of reads */
static const uint32_t windows[WINDOWS] = {1, 16, 64, 256};
static int cold_fd = -1; /* made once: each sample's process has it */

static int
open_blocks(void)
{
    char path[] = "/tmp/errand-bench-XXXXXX", block[REACTOR_BLOCK] = "";
    int fd = mkstemp(path);

    if (fd < 0 || unlink(path) != 0)
        return -1;
    for (uint64_t i = 0; i < REACTOR_BLOCKS; i++) {
        memcpy(block, &i, sizeof i);
        if (write(fd, block, sizeof block) != sizeof block)
            return -1;
    }
    return fd;
}

static void
sample_reads(const bench_peer *peer, const bench_config *config, bench_sample *out)
{
    static char buffers[REACTOR_WINDOW_MAX][REACTOR_BLOCK];
    bool cold = config->variant == COLD;

    if (cold && cold_fd < 0) {
        out->absent = true;
        return;
    }
    reactor_reads reads = {.fd = cold ? cold_fd : open_blocks(),
                           .in_flight = config->plan.in_flight,
                           .buffers = buffers,
                           .cold = cold};
    reactor_reads_fn *run = peer == &bench_peer_errand  ? reactor_reads_errand
                            : peer == &bench_peer_libuv ? reactor_reads_libuv
                                                        : reactor_reads_ring;
    uint64_t total =
        config->measure_ms * (uint64_t)(config->plan.in_flight == 1 ? 50 : 300);

    if (cold) /* no block twice */
        total = config->measure_ms * (uint64_t)(config->plan.in_flight == 1 ? 4 : 20);
    if (cold && !reactor_cold_make(cold_fd, out->fault.text, sizeof out->fault.text))
        return;
    for (int round = 0; round < 2; round++) { /* the first warms up */
        reads.left = round == 0 ? total / 8 : total;
        reads.done = 0;
        uint64_t begun = bench_now();
        if (reads.fd < 0 || !run(&reads, out->fault.text, sizeof out->fault.text))
            return;
        out->values[0] = (double)reads.done * 1000 / (double)(bench_now() - begun);
    }
    if (cold && !reactor_cold_was(cold_fd, total + total / 8, out->fault.text,
                                  sizeof out->fault.text))
        return;
    out->checked = reads.done;
    out->fault.wrong = reads.wrong;
    out->fault.lost = total - reads.done;
}

static void
sample_timers(const bench_peer *peer, const bench_config *config, bench_sample *out)
{
    reactor_timers timers = {.count = config->plan.in_flight,
                             .cancels = config->plan.cancels};
    reactor_timers_fn *run =
        peer == &bench_peer_errand ? reactor_timers_errand : reactor_timers_libuv;

    if (peer != &bench_peer_errand && peer != &bench_peer_libuv) {
        out->absent = true;
        return;
    }
    if (!run(&timers, out->fault.text, sizeof out->fault.text))
        return;
    out->values[ARM] = (double)timers.armed_ns / timers.count;
    out->values[END] = (double)(timers.armed_ns + timers.ended_ns) / timers.count;
    out->checked = timers.heard;
    out->fault.wrong = timers.wrong;
    out->fault.lost = timers.count - timers.heard;
}

static void
sample(const bench_peer *peer, const bench_config *config, bench_sample *out)
{
    if (config->plan.workers == 0)
        sample_timers(peer, config, out);
    else
        sample_reads(peer, config, out);
}

static void
add_row(const bench_options *options, bench_report *report, const bench_table *table,
        uint32_t config, uint32_t peer)
{
    bool timers = table->configs[config].plan.workers == 0;
    bench_pairing pairing = {.table = table,
                             .errand_config = config,
                             .peer_config = config,
                             .peer = peer,
                             .value = timers ? END : 0,
                             .more_is_better = !timers};
    bench_row *row = bench_report_pair(report, "reactor", table->configs[config].work,
                                       timers ? "ns/timer" : "M/s", &pairing);

    (void)options;
    if (row == NULL)
        return;
    row->workers = timers ? 0 : row->workers;
    if (peer == RING)
        snprintf(row->peer, sizeof row->peer, "liburing");
    bench_row_aim(row, BENCH_AIM_RATIO, peer == RING ? 0.8 : 1.5);
}

void
bench_case_reactor(const bench_options *options, bench_report *report)
{
    static bench_config configs[CONFIGS];
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 7;

    cold_fd = reactor_cold_open();
    if (cold_fd < 0)
        fprintf(stderr, "errand-bench: no rows of cold reads: %s\n", strerror(errno));
    for (uint32_t c = 0; c < CONFIGS; c++)
        configs[c] = (bench_config){.work = c < WINDOWS  ? "reads of 4 KiB"
                                            : c < READS  ? "cold reads of 4 KiB"
                                            : c == READS ? "timers fired"
                                                         : "timers cancelled",
                                    .plan = {.workers = c < READS ? 4 : 0,
                                             .in_flight = c < READS ? windows[c % WINDOWS]
                                                          : options->quick ? 200000
                                                                           : 1000000,
                                             .cancels = c > READS},
                                    .processors = 2,
                                    .variant = c < WINDOWS ? WARM : COLD,
                                    .measure_ms = options->quick ? 300 : 1000};
    bench_table *table = bench_table_fill("reactor", configs, CONFIGS, samples, sample,
                                          NULL, ~(1u | 1u << LIBUV | 1u << RING));
    for (uint32_t c = 0; c < CONFIGS; c++) {
        add_row(options, report, table, c, LIBUV);
        if (c < READS)
            add_row(options, report, table, c, RING);
    }
    bench_table_destroy(table);
    if (cold_fd >= 0)
        close(cold_fd);
}
