/* SPDX-License-Identifier: MIT */
/* report: the table for people, and the same rows for programs. */
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORK_WIDTH = 26 };

static void
print_head(const char *case_name)
{
    printf("\n%s\n%-*s %7s %9s %5s  %-16s %11s %11s %-8s %9s %7s  %s\n", case_name,
           WORK_WIDTH, "work", "workers", "in flight", "procs", "peer", "errand", "peer",
           "unit", "ratio", "spread", "target");
}

static const char *
digits(double value, char *out, size_t size)
{
    int after = fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : 2;
    if (value != 0 && fabs(value) < 0.1)
        after = 4;
    snprintf(out, size, "%.*f", after, value);
    return out;
}

static void
print_row(const bench_row *row)
{
    char errand[32], peer[32], ratio[32], target[32];
    printf("%-*s %7u %9u %5u  %-16s %11s %11s %-8s %9s %6.0f%%", WORK_WIDTH, row->work,
           row->workers, row->in_flight, row->processors, row->peer,
           digits(row->errand, errand, sizeof errand),
           digits(row->peer_value, peer, sizeof peer), row->unit,
           digits(row->ratio, ratio, sizeof ratio), row->spread * 100);
    if (row->aim != BENCH_AIM_NONE)
        printf("  %s %s %s", row->aim == BENCH_AIM_RATIO ? "ratio >=" : "errand <=",
               digits(row->target, target, sizeof target),
               bench_row_met(row) ? "met" : "MISSED");
    putchar('\n');
    if (row->error[0] != '\0')
        printf("    ERROR (%u of %u pairs rejected) %s\n", row->rejected,
               row->rejected + row->samples, row->error);
}

void
bench_report_print(const bench_report *report, const bench_options *options)
{
    (void)options;
    const char *case_name = "";
    size_t aims = 0, met = 0;
    uint32_t low = UINT32_MAX, high = 0, rejected = 0;
    for (size_t i = 0; i < report->count; i++) {
        const bench_row *row = &report->rows[i];
        if (strcmp(row->case_name, case_name) != 0)
            print_head(case_name = row->case_name);
        print_row(row);
        aims += row->aim != BENCH_AIM_NONE;
        met += row->aim != BENCH_AIM_NONE && bench_row_met(row);
        low = row->samples < low ? row->samples : low;
        high = row->samples > high ? row->samples : high;
        rejected += row->rejected;
    }
    if (report->count == 0) {
        printf("no rows\n");
        return;
    }
    printf("\n%zu rows, %u to %u pairs of samples each, %u rejected (a pair with a "
           "failed check)."
           "\nTargets: %zu, met: %zu.\n",
           report->count, low, high, rejected, aims, met);
    for (size_t i = 0; i < report->count; i++) {
        const bench_row *row = &report->rows[i];
        if (row->aim == BENCH_AIM_NONE || bench_row_met(row))
            continue;
        char have[32], want[32];
        bool ratio = row->aim == BENCH_AIM_RATIO;
        printf(
            "missed: %s, %s, %u workers, %u in flight, %u processors, against %s: %s %s, "
            "target %s\n",
            row->case_name, row->work, row->workers, row->in_flight, row->processors,
            row->peer, ratio ? "ratio" : "errand",
            digits(ratio ? row->ratio : row->errand, have, sizeof have),
            digits(row->target, want, sizeof want));
    }
}

/* json_number: JSON has no infinities. */
static void
json_number(FILE *file, const char *name, double value)
{
    if (isfinite(value))
        fprintf(file, ", \"%s\": %.6g", name, value);
    else
        fprintf(file, ", \"%s\": null", name);
}

/* json_text: our own words and the system's; quotes and controls are left out. */
static void
json_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, "\"%s\": \"", name);
    for (; *text != '\0'; text++)
        fputc(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? ' ' : *text,
              file);
    fputc('"', file);
}

static void
json_row(FILE *file, const bench_row *row)
{
    fputs("  {", file);
    json_text(file, "case", row->case_name);
    fputs(", ", file);
    json_text(file, "work", row->work);
    fprintf(file, ", \"workers\": %u, \"in_flight\": %u, \"processors\": %u, ",
            row->workers, row->in_flight, row->processors);
    json_text(file, "peer", row->peer);
    json_number(file, "errand", row->errand);
    json_number(file, "peer_value", row->peer_value);
    json_number(file, "ratio", row->ratio);
    json_number(file, "spread", row->spread);
    json_number(file, "ratio_low", row->ratio_low);
    json_number(file, "ratio_high", row->ratio_high);
    json_number(file, "errand_low", row->errand_low);
    json_number(file, "errand_high", row->errand_high);
    fputs(", ", file);
    json_text(file, "unit", row->unit);
    fprintf(file, ", \"samples\": %u, \"rejected\": %u", row->samples, row->rejected);
    if (row->aim != BENCH_AIM_NONE) {
        fprintf(file, ", \"aim\": \"%s\"",
                row->aim == BENCH_AIM_RATIO ? "ratio" : "errand");
        json_number(file, "target", row->target);
        fprintf(file, ", \"met\": %s", bench_row_met(row) ? "true" : "false");
    }
    if (row->error[0] != '\0') {
        fputs(", ", file);
        json_text(file, "error", row->error);
    }
    fputc('}', file);
}

bool
bench_report_json(const bench_report *report, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    fputs("{\"rows\": [\n", file);
    for (size_t i = 0; i < report->count; i++) {
        json_row(file, &report->rows[i]);
        fputs(i + 1 < report->count ? ",\n" : "\n", file);
    }
    fputs("]}\n", file);
    bool good = ferror(file) == 0;
    return fclose(file) == 0 && good;
}

bool
bench_report_clean(const bench_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        if (report->rows[i].error[0] != '\0' || report->rows[i].samples == 0)
            return false;
    }
    return true;
}
