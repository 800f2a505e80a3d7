/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_REPORT_H
#define ERRAND_BENCH_REPORT_H
/* report: rows of errand beside one peer, as a table and as JSON. */
#include "sample.h"

typedef enum bench_aim {
    BENCH_AIM_NONE = 0,
    BENCH_AIM_RATIO = 1, /* the ratio must be at least the target */
    BENCH_AIM_VALUE = 2  /* errand's value must be at most the target */
} bench_aim;

typedef struct bench_row {
    const char *case_name, *work, *unit;
    char peer[24];
    uint32_t workers, in_flight, processors;
    double errand, peer_value; /* medians */
    double
        ratio; /* median of the ratios of neighbouring samples; > 1: errand is better */
    double spread; /* of these ratios: third less first quartile, by the median */
    double ratio_low, ratio_high;
    double errand_low, errand_high;
    uint32_t samples, rejected;
    bench_aim aim;
    double target;
    char error[160]; /* of the first sample that was rejected; empty = none was */
} bench_row;

typedef struct bench_report {
    bench_row *rows;
    size_t count, room;
} bench_report;

typedef struct bench_options {
    bool quick;
    const char *only; /* one case, or NULL */
    const char *json; /* a file, or NULL */
    uint32_t samples; /* 0 = as the case likes */
} bench_options;

/* What a row is made of: one value of errand's samples beside one of the peer's. */
typedef struct bench_pairing {
    const bench_table *table;
    uint32_t errand_config, peer_config,
        peer; /* peer 0 = errand itself, in another config */
    uint32_t value;
    bool other;          /* peer_value is another one: of the same sample, say */
    uint32_t peer_value; /* else value counts for both */
    bool more_is_better;
    bool from_one; /* values may be 0: the ratio is of (1 + value) */
    double (*of)(const bench_sample *sample,
                 uint32_t value); /* NULL = the value as it is */
} bench_pairing;

/* bench_report_pair: append a row.  NULL if the peer has no such thing.  The caller may set the
 * target and other words in it until the next one is made. */
bench_row *bench_report_pair(bench_report *report, const char *case_name,
                             const char *work, const char *unit,
                             const bench_pairing *pairing);
void bench_row_aim(bench_row *row, bench_aim aim, double target);
bool bench_row_met(const bench_row *row);

void bench_report_print(const bench_report *report, const bench_options *options);
/* Both answer false if that failed: a file that cannot be written; a row with an error. */
bool bench_report_json(const bench_report *report, const char *path);
bool bench_report_clean(const bench_report *report);
void bench_report_destroy(bench_report *report);

/* The cases: each appends its rows. */
typedef void bench_case_fn(const bench_options *options, bench_report *report);
bench_case_fn bench_case_throughput, bench_case_round_trip, bench_case_fairness,
    bench_case_cancel, bench_case_memory, bench_case_allocations, bench_case_idle,
    bench_case_inline, bench_case_paced, bench_case_reactor, bench_case_net,
    bench_case_call, bench_case_isolation;
/* round trip's sample: median, 99th percentile and maximum in ns. */
bench_sample_fn bench_round_trip_sample;
double bench_percentile(uint64_t *sorted, uint64_t count, double part);
void bench_sort(uint64_t *values, uint64_t count);

#endif
