/* SPDX-License-Identifier: MIT */
/* report: the end of a run: summary, digest, accounts, and what went wrong.
 *
 * Design notes.  Standard output gets nothing of real time in seeded orders.  What went wrong and
 * the closing report of a stopped run go to standard error, in every mode. */
#include "program.h"
#include <inttypes.h>
#include <string.h>

static void
print_summary(const errand__options *options, const errand__progress *progress,
              const errand_lua_result *result)
{
    static const char *const words[] = {"",          "completed", "failed",
                                        "cancelled", "panicked",  "crashed"};
    errand__output_line();
    printf("summary: %" PRIu64 " completion%s", progress->drained,
           progress->drained == 1 ? "" : "s");
    for (size_t i = 1; i < sizeof words / sizeof words[0]; i++) {
        if (progress->outcomes[i] != 0)
            printf(", %" PRIu64 " %s", progress->outcomes[i], words[i]);
    }
    if (progress->late != 0)
        printf(", %" PRIu64 " of them late", progress->late);
    if (progress->seeded && result->snapshot.accepted != result->snapshot.drained)
        printf("; %" PRIu64 " ended with the script",
               result->snapshot.accepted - result->snapshot.drained);
    printf("; ");
    printf("%" PRIu64 ".%06" PRIu64 " s%s\n", result->elapsed_ns / 1000000000U,
           result->elapsed_ns % 1000000000U / 1000U,
           options->order == ERRAND_ORDER_ARRIVAL ? "" : " virtual");
    uint64_t digest =
        options->order == ERRAND_ORDER_ARRIVAL ? progress->contents : result->digest;
    printf("digest: %016" PRIx64 "\n", digest);
}

static void
print_accounts(const errand__progress *progress, const errand_lua_result *result)
{
    /* What the shutdown makes of the rest hangs on real time. */
    const errand_snapshot *all =
        progress->seeded ? &result->snapshot : &result->report.accounts;
    errand__output_line();
    printf("accounts: accepted %" PRIu64 " = queued %" PRIu64 " + running %" PRIu64
           " + undrained %" PRIu64 " + drained %" PRIu64 " + undeliverable %" PRIu64 "\n",
           all->accepted, all->queued, all->running, all->undrained, all->drained,
           all->undeliverable);
    printf("accounts: drained %" PRIu64 " = resumed %" PRIu64 " + late %" PRIu64
           " + reaped %" PRIu64 "\n",
           all->drained, all->resumed, all->late, all->reaped);
    printf("accounts: completed %" PRIu64 ", failed %" PRIu64 ", cancelled %" PRIu64
           ", panicked %" PRIu64 ", crashed %" PRIu64 "\n",
           all->completed, all->failed, all->cancelled, all->panicked, all->crashed);
    for (int code = 1; code < ERRAND_CODES; code++) {
        if (all->codes[code] != 0)
            printf("accounts: code %s %" PRIu64 "\n", errand_code_name((errand_code)code),
                   all->codes[code]);
    }
}

static void
print_report(const errand_lua_result *result)
{
    const errand_report *report = &result->report;
    char unheard[80] = "";
    if (result->unheard != 0)
        snprintf(unheard, sizeof unheard,
                 "%" PRIu64 " task%s failed and nobody awaited %s; ", result->unheard,
                 result->unheard == 1 ? "" : "s", result->unheard == 1 ? "it" : "them");
    errand__help_problem("report: accepted %" PRIu64 ", drained %" PRIu64
                         ", undeliverable %" PRIu64 "; %s%s",
                         report->accounts.accepted, report->accounts.drained,
                         report->undeliverable, unheard,
                         report->clean ? "clean" : "not clean, this is left:");
    if (!report->clean)
        errand__help_problem("report: waits %" PRIu64 ", tasks %" PRIu64
                             ", entries %" PRIu64 ", running %" PRIu64 ", held %" PRIu64
                             ", posts %" PRIu64,
                             report->live_waits, report->live_tasks, report->entries,
                             report->running, report->held, report->posts_dropped);
}

/* The stop is one of the log that is replayed, which does not say what asked for it. */
static bool
stopped_by_log(const errand__options *options)
{
    return options->replay_path != NULL && errand__signals_first() == 0 &&
           errand__output_error() == 0;
}

static int
exit_code(const errand__options *options, const errand_lua_result *result)
{
    static const errand__exit codes[] = {
        [ERRAND_LUA_OK] = ERRAND__EXIT_GOOD,
        [ERRAND_LUA_SCRIPT_ERROR] = ERRAND__EXIT_SCRIPT,
        [ERRAND_LUA_STALL] = ERRAND__EXIT_STALL,
        [ERRAND_LUA_DEADLINE] = ERRAND__EXIT_DEADLINE,
        [ERRAND_LUA_STOPPED] = ERRAND__EXIT_SIGNAL,
        [ERRAND_LUA_REFUSED] = ERRAND__EXIT_REFUSED,
        [ERRAND_LUA_EXTERNAL] = ERRAND__EXIT_EXTERNAL,
        [ERRAND_LUA_DEPARTED] = ERRAND__EXIT_DEPARTED,
    };
    int signal_number = errand__signals_first();
    if (result->kind != ERRAND_LUA_OK && signal_number != 0)
        return ERRAND__EXIT_SIGNAL + signal_number;
    if (result->kind == ERRAND_LUA_STOPPED && !stopped_by_log(options))
        return ERRAND__EXIT_OUTPUT;
    return (int)codes[result->kind];
}

static void
print_problem(const errand__options *options, const errand_lua_result *result)
{
    static const char *const mends[] = {
        [ERRAND_LUA_STALL] = "\nwake, cancel or end one of them, or give one a timeout",
        [ERRAND_LUA_DEADLINE] = "; raise --deadline, or make the work smaller",
        [ERRAND_LUA_REFUSED] = "",
        [ERRAND_LUA_EXTERNAL] = "",
        [ERRAND_LUA_DEPARTED] = "",
    };
    const char *text = result->message != NULL ? result->message : "it did not end well";
    int error = errand__output_error();
    if (result->kind == ERRAND_LUA_STOPPED && error != 0)
        errand__help_problem("stopped: standard output cannot be written: %s: %s",
                             strerror(error), errand__output_mend(error));
    else if (result->kind == ERRAND_LUA_STOPPED && stopped_by_log(options))
        errand__help_problem("%s, as the recorded run was", text);
    else if (result->kind == ERRAND_LUA_STOPPED)
        errand__help_problem("%s by %s", text,
                             errand__signals_name(errand__signals_first()));
    else if (result->kind == ERRAND_LUA_SCRIPT_ERROR)
        errand__help_problem("%s", text);
    else
        errand__help_problem("%s%s", text, mends[result->kind]);
    if (options->quiet && options->order != ERRAND_ORDER_ARRIVAL)
        errand__help_problem("the seed was %" PRIu64, result->seed);
}

/* The script ended well, and took tasks with it that it may have meant to wait for. */
static void
print_aborted(const errand_lua_result *result)
{
    errand__help_problem("%" PRIu64 " task%s aborted when the script ended: await or "
                         "cancel what should not end with it",
                         result->aborted, result->aborted == 1 ? " was" : "s were");
}

int
errand__report_print(const errand__options *options, errand__progress *progress,
                     const errand_lua_result *result)
{
    bool begun = result->kind != ERRAND_LUA_REFUSED;
    errand__progress_more(progress);
    if (begun && !options->quiet)
        print_summary(options, progress, result);
    if (begun && options->stats)
        print_accounts(progress, result);
    errand__output_flush();
    if (result->kind != ERRAND_LUA_OK)
        print_problem(options, result);
    else if (result->aborted != 0 && !options->quiet)
        print_aborted(result);
    if (begun && (errand__signals_first() != 0 || !result->report.clean))
        print_report(result);
    return exit_code(options, result);
}
