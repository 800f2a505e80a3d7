/* SPDX-License-Identifier: MIT */
/* idle: what a host costs that waits for nothing: traffic, then quiet; after 5 ms, processor time
 * and context switches of the whole process in 3 s.  They are read from outside, so that the
 * reading costs the process nothing. */
#include "report.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_MS = 5, WATCH_MS = 3000, SLACK_MS = 300, TRAFFIC = 100000 };

static void
idle_sample(const bench_peer *peer, const bench_config *config, bench_sample *out_sample)
{
    void *world = peer->open(&config->plan);
    bench_run run = {.total = 0};
    if (world == NULL || !bench_sample_run(peer, world, TRAFFIC, &run, out_sample)) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        bench_sample_tell();
        return;
    }
    bench_sample_tell();
    if (!peer->rest(world, (uint64_t)(WATCH_MS + QUIET_MS + SLACK_MS) * 1000000))
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text,
                 "its wait failed");
    bench_sample_check(peer, world, config, &run, out_sample);
}

static void
sleep_ms(long ms)
{
    struct timespec length = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&length, &length) != 0)
        continue;
}

/* switches_of: the context switches that one status file tells of. */
static uint64_t
switches_of(const char *path)
{
    char line[256];
    uint64_t sum = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0; /* that thread has ended */
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "voluntary_ctxt_switches:"); /* and nonvoluntary */
        if (at != NULL)
            sum += strtoull(strchr(at, ':') + 1, NULL, 10);
    }
    fclose(file);
    return sum;
}

static uint64_t
switches(pid_t process)
{
    char path[320];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)process,
                 entry->d_name);
        sum += switches_of(path);
    }
    closedir(folder);
    return sum;
}

static double
processor_ns(pid_t process)
{
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return -1;
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

static void
idle_watch(pid_t process, int fd, bench_sample *sample)
{
    char told;
    if (read(fd, &told, 1) != 1)
        return; /* it ended; the caller finds out */
    sleep_ms(QUIET_MS);
    double from_ns = processor_ns(process);
    uint64_t from_switches = switches(process);
    sleep_ms(WATCH_MS);
    double to_ns = processor_ns(process);
    sample->values[0] = (to_ns - from_ns) / 1000;
    sample->values[1] = (double)(switches(process) - from_switches);
    if (from_ns < 0 || to_ns < 0)
        snprintf(sample->fault.text, sizeof sample->fault.text,
                 "its clock cannot be read");
}

void
bench_case_idle(const bench_options *options, bench_report *report)
{
    static bench_config config;
    config = (bench_config){.plan = {.workers = 2, .in_flight = 64}, .processors = 2};
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 1 : 3;
    bench_table *table =
        bench_table_fill("idle", &config, 1, samples, idle_sample, idle_watch, 0);
    static const char *const works[2] = {"3 s of quiet, processor",
                                         "3 s of quiet, wake-ups"};
    static const char *const units[2] = {"us", "switches"};
    for (uint32_t value = 0; value < 2; value++) {
        for (uint32_t p = 1; p < BENCH_PEERS; p++) {
            bench_pairing pairing = {
                .table = table, .peer = p, .value = value, .from_one = true};
            bench_row *row =
                bench_report_pair(report, "idle", works[value], units[value], &pairing);
            if (p == 1)
                bench_row_aim(row, BENCH_AIM_VALUE, value == 0 ? 60 : 0);
        }
    }
    bench_table_destroy(table);
}
