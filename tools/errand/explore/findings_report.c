/* SPDX-License-Identifier: MIT */
/* findings_report: what was found, for people on standard output, for programs as JSON. */
#include "explore/minimise.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static double
seconds_of(const errand__explored *explored)
{
    return (double)explored->elapsed_ns / 1e9;
}

static double
rate_of(const errand__explored *explored)
{
    return (double)explored->done * 1e9 / (double)(explored->elapsed_ns + 1);
}

/* ---- for people -------------------------------------------------------------------------------- */

/* The first lines of a text, indented: a stall has a line for each task. */
static void
print_text(const char *text, bool stall)
{
    for (int lines = stall ? 12 : 1; *text != '\0' && lines > 0; lines--) {
        char line[512];
        int length = (int)strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", length, text);
        fputs("  ", stdout);
        errand__progress_text(stdout, line);
        putchar('\n');
        text += length + (text[length] == '\n');
    }
}

static void
print_words(char **take_words)
{
    char *line = take_words != NULL ? errand__reproduce_line(take_words) : NULL;
    printf("  %s\n", line != NULL ? line : "(no memory for its line)");
    free(line);
    free(take_words);
}

static void
print_minimised(const errand__explore *explore, const errand__finding *finding)
{
    const errand__minimised *small = finding->minimised;
    if (!small->made) {
        printf("  not minimised: %s\n", small->why != NULL ? small->why : "no time");
        return;
    }
    fputs("  minimised: ", stdout);
    if (small->items_before > 0)
        printf("%zu of %zu items, ", small->items, small->items_before);
    printf("%zu of %zu choices, %" PRIu64 " runs in %.1f s%s\n", small->choices,
           small->choices_before, small->runs, (double)small->elapsed_ns / 1e9,
           small->in_time ? "" : ", ended by the budget");
    print_words(errand__reproduce_words(explore, finding->seed, &small->choices_of,
                                        (errand__reproduce){.tape = small->path}));
    if (!small->proven)
        puts("  (this line did not fail in the same way)");
}

static void
print_diff(const errand__finding *finding)
{
    char **words = calloc(5, sizeof *words);
    static char verb[] = "diff";
    if (words != NULL) {
        words[0] = (char *)(uintptr_t)errand__program_name;
        words[1] = verb;
        words[2] = finding->logs[0];
        words[3] = finding->logs[1];
    }
    print_words(words);
}

static void
print_finding(const errand__explore *explore, const errand__finding *finding,
              size_t number, const errand__explored *explored)
{
    const errand__fingerprint *what = &finding->fingerprint;
    printf("failure %zu: %s", number, errand__class_name(what->class));
    if (what->site[0] != '\0') {
        fputs(what->class == ERRAND__CLASS_CRASH || what->class == ERRAND__CLASS_EXIT
                  ? " with "
                  : " at ",
              stdout);
        errand__progress_text(stdout, what->site);
    }
    printf(", %" PRIu64 " of %" PRIu64 " seeds\n", finding->count, explored->done);
    print_text(finding->text != NULL && finding->text[0] != '\0' ? finding->text
                                                                 : what->message,
               what->class == ERRAND__CLASS_STALL);
    errand_choices choices = errand__explore_choices(explore, finding->seed);
    print_words(errand__reproduce_words(explore, finding->seed, &choices,
                                        (errand__reproduce){0}));
    if (finding->proof_tried && !finding->proven)
        printf("  (this line did not fail again: something besides the seed takes part; "
               "--repeat 2 tells more)\n");
    if (finding->logs[0] != NULL && finding->logs[1] != NULL)
        print_diff(finding);
    if (finding->minimised != NULL)
        print_minimised(explore, finding);
}

void
errand__findings_print(const errand__explore *explore, const errand__findings *findings,
                       const errand__explored *explored)
{
    for (size_t i = 0; i < findings->count; i++) {
        print_finding(explore, &findings->list[i], i + 1, explored);
        putchar('\n');
    }
    if (!explore->quiet || findings->count == 0)
        printf("explored %" PRIu64 " seed%s in %.1f s, %.1f/s with %" PRIu32 " job%s: ",
               explored->done, explored->done == 1 ? "" : "s", seconds_of(explored),
               rate_of(explored), explore->jobs, explore->jobs == 1 ? "" : "s");
    if (findings->count == 0)
        puts("nothing failed");
    else if (!explore->quiet)
        printf("%" PRIu64 " failed, in %zu way%s\n", findings->failed, findings->count,
               findings->count == 1 ? "" : "s");
    (void)errand__output_error(); /* its cause is known now only */
}

/* ---- for programs --------------------------------------------------------------------------------- */

static void
json_field(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\n      \"%s\": ", name);
    errand__json_text(file, text);
}

static void
json_line(FILE *file, const char *name, char **take_words)
{
    char *line = take_words != NULL ? errand__reproduce_line(take_words) : NULL;
    json_field(file, name, line);
    free(line);
    free(take_words);
}

static void
json_minimised(FILE *file, const errand__explore *explore, const errand__finding *finding)
{
    const errand__minimised *small = finding->minimised;
    char **words =
        small->made ? errand__reproduce_words(explore, finding->seed, &small->choices_of,
                                              (errand__reproduce){.tape = small->path})
                    : NULL;
    json_field(file, "minimised_tape", small->path);
    json_line(file, "minimised_reproduce", words);
    fprintf(file, ",\n      \"minimised_proven\": %s", small->proven ? "true" : "false");
    fprintf(file, ",\n      \"items_before\": %zu,\n      \"items\": %zu",
            small->items_before, small->items);
    fprintf(file, ",\n      \"choices_before\": %zu,\n      \"choices\": %zu",
            small->choices_before, small->choices);
    fprintf(file, ",\n      \"minimiser_runs\": %" PRIu64, small->runs);
    fprintf(file, ",\n      \"minimiser_seconds\": %.3f",
            (double)small->elapsed_ns / 1e9);
}

static void
json_decided(FILE *file, const errand__decided *decided)
{
    fprintf(file,
            ",\n      \"deciding_step\": %" PRIu64 ",\n      \"steps\": %" PRIu64
            ",\n      \"deciding_time_ns\": %" PRIu64 ",\n      \"branches\": %" PRIu64
            ",\n      \"branches_failed\": %" PRIu64,
            decided->step, decided->steps, decided->time_ns, decided->branches,
            decided->failed);
    json_field(file, "deciding_kind", decided->kind);
    json_field(file, "deciding_path", decided->who);
    json_field(file, "good_tape", decided->tape);
}

static void
json_finding(FILE *file, const errand__explore *explore, const errand__finding *finding)
{
    errand_choices choices = errand__explore_choices(explore, finding->seed);
    fprintf(file, "    {\n      \"class\": \"%s\"",
            errand__class_name(finding->fingerprint.class));
    json_field(file, "site", finding->fingerprint.site);
    json_field(file, "message", finding->fingerprint.message);
    json_field(file, "text", finding->text);
    json_field(file, "output", finding->output);
    json_line(file, "reproduce",
              errand__reproduce_words(explore, finding->seed, &choices,
                                      (errand__reproduce){0}));
    fprintf(file, ",\n      \"proven\": %s", finding->proven ? "true" : "false");
    fprintf(file, ",\n      \"count\": %" PRIu64 ",\n      \"seed\": %" PRIu64,
            finding->count, finding->seed);
    if (finding->logs[0] != NULL && finding->logs[1] != NULL) {
        json_field(file, "log_a", finding->logs[0]);
        json_field(file, "log_b", finding->logs[1]);
    }
    if (finding->decided.step != 0)
        json_decided(file, &finding->decided);
    if (finding->minimised != NULL)
        json_minimised(file, explore, finding);
    fputs(",\n      \"seeds\": [", file);
    for (size_t i = 0; i < finding->seeds_count; i++)
        fprintf(file, "%s%" PRIu64, i == 0 ? "" : ", ", finding->seeds[i]);
    fputs("]\n    }", file);
}

static void
json_whole(FILE *file, const errand__explore *explore, const errand__findings *findings,
           const errand__explored *explored)
{
    fputs("{\n  \"script\": ", file);
    errand__json_text(file, explore->run.script);
    fputs(",\n  \"arguments\": [", file);
    for (int i = 0; i < explore->run.argc; i++) {
        fputs(i == 0 ? "" : ", ", file);
        errand__json_text(file, explore->run.argv[i]);
    }
    fputs("],\n  \"policy\": ", file);
    errand__json_text(file, explore->policy);
    fprintf(file, ",\n  \"first_seed\": %" PRIu64 ",\n  \"last_seed\": %" PRIu64,
            explore->first, explore->last);
    fprintf(file, ",\n  \"seeds_run\": %" PRIu64 ",\n  \"failed\": %" PRIu64,
            explored->done, findings->failed);
    fprintf(file, ",\n  \"jobs\": %" PRIu32 ",\n  \"seconds\": %.3f", explore->jobs,
            seconds_of(explored));
    fprintf(file, ",\n  \"seeds_per_second\": %.2f,\n  \"interrupted\": %s",
            rate_of(explored), explored->signal != 0 ? "true" : "false");
    fputs(",\n  \"failures\": [", file);
    for (size_t i = 0; i < findings->count; i++) {
        fputs(i == 0 ? "\n" : ",\n", file);
        json_finding(file, explore, &findings->list[i]);
    }
    fputs(findings->count == 0 ? "]\n}\n" : "\n  ]\n}\n", file);
}

bool
errand__findings_write(const errand__explore *explore, const errand__findings *findings,
                       const errand__explored *explored)
{
    const char *path = explore->report_path;
    if (path == NULL)
        return true;
    FILE *file = fopen(path, "we");
    if (file != NULL)
        json_whole(file, explore, findings, explored);
    bool good = file != NULL && fflush(file) == 0 && !ferror(file);
    int error = errno;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (!good)
        errand__help_problem("--report %s: %s: give a file that can be written", path,
                             strerror(error));
    return good;
}
