/* SPDX-License-Identifier: MIT */
/* errand-bench: errand beside its peers, on the same work, in one run. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    bench_case_fn *run;
} cases[] = {
    {"throughput", bench_case_throughput},
    {"round_trip", bench_case_round_trip},
    {"fairness", bench_case_fairness},
    {"cancel", bench_case_cancel},
    {"memory", bench_case_memory},
    {"allocations", bench_case_allocations},
    {"idle", bench_case_idle},
    {"inline", bench_case_inline},
    {"paced", bench_case_paced},
    {"call", bench_case_call},
    {"isolation", bench_case_isolation},
#if BENCH_REACTOR
    {"reactor", bench_case_reactor},
    {"net", bench_case_net},
#endif
};
enum { CASES = sizeof cases / sizeof *cases };

static void
usage(FILE *file)
{
    fputs(
        "usage: errand-bench [--quick] [--json FILE] [--only CASE] [--samples N]\ncases:",
        file);
    for (size_t i = 0; i < CASES; i++)
        fprintf(file, " %s", cases[i].name);
    fputs("\nexit: 0 measured, targets met or not; 1 a check failed or a file cannot be "
          "written; "
          "2 usage\n",
          file);
}

static bool
case_exists(const char *name)
{
    for (size_t i = 0; i < CASES; i++) {
        if (strcmp(name, cases[i].name) == 0)
            return true;
    }
    fprintf(stderr, "errand-bench: no case is called %s\n", name);
    return false;
}

/* options_read: false: usage. */
static bool
options_read(int argc, char **argv, bench_options *options)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0) {
            options->quick = true;
        } else if (strcmp(argv[i], "--json") == 0 && more) {
            options->json = argv[++i];
        } else if (strcmp(argv[i], "--only") == 0 && more) {
            options->only = argv[++i];
            if (!case_exists(options->only))
                return false;
        } else if (strcmp(argv[i], "--samples") == 0 && more) {
            char *end;
            unsigned long samples = strtoul(argv[++i], &end, 10);
            if (*end != '\0' || samples == 0 || samples > BENCH_SAMPLES_MAX) {
                fprintf(stderr, "errand-bench: --samples takes 1 to %d\n",
                        BENCH_SAMPLES_MAX);
                return false;
            }
            options->samples = (uint32_t)samples;
        } else {
            fprintf(stderr, "errand-bench: %s is not an option, or lacks its value\n",
                    argv[i]);
            return false;
        }
    }
    return true;
}

int
main(int argc, char **argv)
{
    bench_options options = {.quick = false};
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        usage(stdout);
        return 0;
    }
    if (!options_read(argc, argv, &options)) {
        usage(stderr);
        return 2;
    }
    if (options.json != NULL) { /* better now than after minutes */
        FILE *file = fopen(options.json, "a");
        if (file == NULL) {
            perror(options.json);
            return 1;
        }
        fclose(file);
    }
    bench_calibrate();
    printf("errand-bench: %ld processors, %.2f cycles/ns, median of ratios of "
           "interleaved samples\n",
           sysconf(_SC_NPROCESSORS_ONLN), bench_cycles_per_ns());
    bench_report report = {.rows = NULL};
    for (size_t i = 0; i < CASES; i++) {
        if (options.only == NULL || strcmp(options.only, cases[i].name) == 0)
            cases[i].run(&options, &report);
    }
    bench_report_print(&report, &options);
    int code = bench_report_clean(&report) ? 0 : 1;
    if (options.json != NULL && !bench_report_json(&report, options.json)) {
        perror(options.json);
        code = 1;
    }
    bench_report_destroy(&report);
    return code;
}
