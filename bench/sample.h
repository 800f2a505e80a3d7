/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_SAMPLE_H
#define ERRAND_BENCH_SAMPLE_H
/* sample: one figure of one peer, taken in a process of its own, so that no peer finds the
 * memory, threads or settings that another left behind. */
#include "peer.h"

#include <sys/types.h>

enum { BENCH_VALUES = 6, BENCH_SAMPLES_MAX = 64 };

/* What is measured. */
typedef struct bench_config {
    const char *work; /* as the report says it */
    bench_plan plan;
    uint32_t processors;
    uint32_t job_ns;
    uint32_t measure_ms; /* about so long */
    bool apart;          /* the host's thread on one processor, the others on the other */
    uint32_t variant;    /* a case's own */
} bench_config;

typedef struct bench_sample {
    double values[BENCH_VALUES];
    uint64_t checked; /* operations whose completion was checked; 0 = not valid */
    bool absent;      /* this peer has no such thing */
    bench_fault fault;
} bench_sample;

/* Runs in the new process; writes values; ends by bench_sample_check. */
typedef void bench_sample_fn(const bench_peer *peer, const bench_config *config,
                             bench_sample *out_sample);
/* Runs meanwhile in the first process.  fd: what the new one tells, by bench_sample_tell. */
typedef void bench_watch_fn(pid_t process, int fd, bench_sample *sample);

/* bench_sample_take: false if the sample is not valid; then fault says why. */
bool bench_sample_take(const bench_peer *peer, const bench_config *config,
                       bench_sample_fn *fn, bench_watch_fn *watch,
                       bench_sample *out_sample);
void bench_sample_tell(void);
/* bench_sample_part: keep this thread on the first processor and all others, which must have
 * started, on the second.  False: there is no second. */
bool bench_sample_part(void);

/* bench_sample_check: every job ran once, every operation completed once, none is missing. */
void bench_sample_check(const bench_peer *peer, void *world, const bench_config *config,
                        const bench_run *run, bench_sample *sample);
/* bench_sample_rate: warms up, then fills values[0] with operations per microsecond. */
bench_sample_fn bench_sample_rate;
/* bench_sample_run: total operations through the window, to the end. */
bool bench_sample_run(const bench_peer *peer, void *world, uint64_t total, bench_run *run,
                      bench_sample *sample);
/* bench_sample_valid. */
bool bench_sample_valid(const bench_sample *sample);

/* A table of samples: [config][peer][sample]. */
typedef struct bench_table {
    const bench_config *configs;
    uint32_t config_count, sample_count;
    bench_sample *samples;
} bench_table;

/* bench_table_fill: for each sample, for each config, one peer after the other.  skip: peers
 * (bits) that are left out. */
bench_table *bench_table_fill(const char *title, const bench_config *configs,
                              uint32_t config_count, uint32_t sample_count,
                              bench_sample_fn *fn, bench_watch_fn *watch, uint32_t skip);
bench_sample *bench_table_at(const bench_table *table, uint32_t config, uint32_t peer,
                             uint32_t sample);
void bench_table_destroy(bench_table *table);

#endif
