/* SPDX-License-Identifier: MIT */
/* pair: from samples to a row.  A sample of errand is compared with the peer's sample of the same
 * round, which was taken a moment later, so that a slow spell of the machine meets both.  A
 * pair with a faulty sample is rejected, counted, and makes the row an error. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int
compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void
bench_sort(uint64_t *values, uint64_t count)
{
    qsort(values, count, sizeof *values, compare_numbers);
}

double
bench_percentile(uint64_t *sorted, uint64_t count, double part)
{
    return count == 0 ? 0 : (double)sorted[(uint64_t)((double)(count - 1) * part + 0.5)];
}

/* quantile: of sorted values, between neighbours. */
static double
quantile(const double *sorted, uint32_t count, double part)
{
    double at = (count - 1) * part;
    uint32_t below = (uint32_t)at;
    uint32_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (at - below);
}

static bench_row *
row_append(bench_report *report)
{
    if (report->count == report->room) {
        size_t room = report->room == 0 ? 64 : report->room * 2;
        bench_row *rows = realloc(report->rows, room * sizeof *rows);
        if (rows == NULL)
            abort();
        report->rows = rows;
        report->room = room;
    }
    bench_row *row = &report->rows[report->count++];
    *row = (bench_row){.case_name = NULL};
    return row;
}

static void
reject(bench_row *row, const char *who, const bench_sample *sample)
{
    if (bench_sample_valid(sample))
        return;
    if (row->error[0] != '\0')
        return;
    const bench_fault *fault = &sample->fault;
    if (fault->text[0] != '\0')
        snprintf(row->error, sizeof row->error, "%s: %s", who, fault->text);
    else if (fault->wrong != 0 || fault->lost != 0)
        snprintf(row->error, sizeof row->error,
                 "%s: %llu operations did not run or complete exactly once", who,
                 (unsigned long long)(fault->wrong + fault->lost));
    else
        snprintf(row->error, sizeof row->error, "%s: nothing was checked", who);
}

static double
value_of(const bench_pairing *pairing, const bench_sample *sample, uint32_t value)
{
    return pairing->of == NULL ? sample->values[value] : pairing->of(sample, value);
}

/* row_measure: the row's numbers from the pairs that count. */
static void
row_measure(bench_row *row, const bench_pairing *pairing)
{
    double errand[BENCH_SAMPLES_MAX], peer[BENCH_SAMPLES_MAX], ratio[BENCH_SAMPLES_MAX];
    uint32_t n = 0;
    for (uint32_t s = 0; s < pairing->table->sample_count; s++) {
        const bench_sample *a =
            bench_table_at(pairing->table, pairing->errand_config, 0, s);
        const bench_sample *b =
            bench_table_at(pairing->table, pairing->peer_config, pairing->peer, s);
        if (!bench_sample_valid(a) || !bench_sample_valid(b)) {
            row->rejected++;
            reject(row, bench_peers[0]->name, a);
            reject(row, row->peer, b);
            continue;
        }
        errand[n] = value_of(pairing, a, pairing->value);
        peer[n] =
            value_of(pairing, b, pairing->other ? pairing->peer_value : pairing->value);
        double more = pairing->from_one ? 1 : 0;
        ratio[n] = pairing->more_is_better ? (more + errand[n]) / (more + peer[n])
                                           : (more + peer[n]) / (more + errand[n]);
        n++;
    }
    row->samples = n;
    if (n == 0)
        return;
    qsort(errand, n, sizeof *errand, compare_doubles);
    qsort(peer, n, sizeof *peer, compare_doubles);
    qsort(ratio, n, sizeof *ratio, compare_doubles);
    row->errand = quantile(errand, n, 0.5);
    row->peer_value = quantile(peer, n, 0.5);
    row->ratio = quantile(ratio, n, 0.5);
    row->spread = (quantile(ratio, n, 0.75) - quantile(ratio, n, 0.25)) / row->ratio;
    row->ratio_low = ratio[0];
    row->ratio_high = ratio[n - 1];
    row->errand_low = errand[0];
    row->errand_high = errand[n - 1];
}

bench_row *
bench_report_pair(bench_report *report, const char *case_name, const char *work,
                  const char *unit, const bench_pairing *pairing)
{
    if (bench_table_at(pairing->table, pairing->peer_config, pairing->peer, 0)->absent ||
        bench_table_at(pairing->table, pairing->errand_config, 0, 0)->absent)
        return NULL;
    const bench_config *config = &pairing->table->configs[pairing->errand_config];
    bench_row *row = row_append(report);
    row->case_name = case_name;
    row->work = work;
    row->unit = unit;
    row->workers = config->plan.workers;
    row->in_flight = config->plan.in_flight;
    row->processors = config->processors;
    snprintf(row->peer, sizeof row->peer, "%s", bench_peers[pairing->peer]->name);
    row_measure(row, pairing);
    return row;
}

void
bench_row_aim(bench_row *row, bench_aim aim, double target)
{
    if (row == NULL)
        return;
    row->aim = aim;
    row->target = target;
}

bool
bench_row_met(const bench_row *row)
{
    if (row->error[0] != '\0' || row->samples == 0)
        return false;
    if (row->aim == BENCH_AIM_RATIO)
        return row->ratio >= row->target;
    return row->aim != BENCH_AIM_VALUE || row->errand <= row->target;
}

void
bench_report_destroy(bench_report *report)
{
    free(report->rows);
    *report = (bench_report){.rows = NULL};
}
