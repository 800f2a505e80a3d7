/* SPDX-License-Identifier: MIT */
/* log_print: errand log FILE: a log as text, a line for each step, or a line of JSON each. */
#include "log/log_view.h"
#include <inttypes.h>

static void
print_header(const errand_log_header *header)
{
    char policy[160];

    errand__log_policy(header, policy, sizeof policy);
    printf("# errand %s, order %s, policy %s, seed %" PRIu64 ", %s\n", header->version,
           errand__log_order(header->order), policy, header->seed,
           header->payloads == ERRAND_RECORD_PAYLOADS ? "with payloads"
                                                      : "digests of payloads");
    if (header->build_text[0] != '\0' || header->config_text[0] != '\0') {
        fputs("# ", stdout);
        errand__progress_text(stdout, header->build_text);
        fputs(" | ", stdout);
        errand__progress_text(stdout, header->config_text);
        putchar('\n');
    }
    puts("#   step               time  event      who and what");
}

static void
print_end(const errand_log_end *end)
{
    if (end->state == ERRAND_LOG_ENDED)
        printf("# %" PRIu64 " steps, digest %016" PRIx64 ", the run ended %s, %s\n",
               end->steps, end->digest, errand_status_name(end->run),
               end->clean ? "clean" : "not clean");
}

int
errand__log_run(const errand__options *options)
{
    errand_log *log = NULL;
    errand__names names = {.room = 0};
    errand_log_step step;
    errand_log_end end = {.state = ERRAND_LOG_UNREADABLE};
    bool good = true;
    if (!errand__log_open_named(options->logs[0], &log))
        return 2;
    if (!options->json)
        print_header(errand_log_header_of(log));
    while (good && errand__output_error() == 0 && errand_log_next(log, &step)) {
        good = errand__names_learn(&names, &step.step);
        if (options->json)
            errand__log_json_step(stdout, &names, &step,
                                  options->bytes ? ERRAND__LOG_ALL_BYTES : 0);
        else
            errand__log_line(stdout, &names, &step);
        putchar('\n');
        if (options->bytes && !options->json)
            errand__log_dump(stdout, &step);
    }
    if (good && errand_log_end_read(log, &end) == ERRAND_OK && !options->json)
        print_end(&end);
    if (!good)
        errand__help_problem("memory ran out");
    else if (end.state != ERRAND_LOG_ENDED)
        errand__help_problem("%s: %s", options->logs[0], end.text);
    errand__names_fini(&names);
    errand_log_close(&log);
    return good && end.state <= ERRAND_LOG_OPEN ? 0 : 2;
}
