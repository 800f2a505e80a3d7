/* SPDX-License-Identifier: MIT */
/* help: what the program says about itself, and how it says that something is wrong. */
#include "program.h"
#include <stdarg.h>
#include <string.h>

static const char text_all[] =
    "errand: run Lua scripts whose work goes out and comes back exactly once.\n"
    "\n"
    "  errand run SCRIPT [ARGUMENTS]   run a Lua 5.4 script (- = standard input)\n"
    "  errand explore SCRIPT [...]     run it under many seeds, find what fails, make it "
    "small\n"
    "  errand tour [--tree DIR]        the built-in script: files, names, child "
    "processes, cancel\n"
    "  errand help [COMMAND | codes]   more about a command, or the exit codes\n"
    "  errand --version\n"
    "\n"
    "Options of run and tour, anywhere on the line:\n"
    "  --order arrival   completions come as real workers end them (the default)\n"
    "  --order paced     seeded: real workers; the same seed gives the same completions "
    "in the\n"
    "                    same order at the same virtual time\n"
    "  --order inline    the same, one job at a time\n"
    "  --seed N          the seed; alone it means --order paced; without it one is "
    "drawn and\n"
    "                    printed\n"
    "  --workers N       threads for the work, 1 .. 1024\n"
    "  --deadline S      end the run after so many seconds of its clock\n"
    "  --policy P        seeded: who runs next: shuffle (the default), fifo, pick, "
    "pct:DEPTH,\n"
    "                    delay:DEPTH, starve:DEPTH, each with :STEPS of a run, or "
    "portfolio\n"
    "  --save-tape FILE  seeded: write every choice of the run, a line each\n"
    "  --tape FILE       seeded: make the choices of this tape; give the same --policy\n"
    "  --trace FILE      write every step of the run, a line each\n"
    "  --stats           print the accounts at the end\n"
    "  --quiet, -q       print only what the script prints, and what goes wrong; no bar\n"
    "  --                what follows belongs to the script, also words that begin with "
    "-\n"
    "\n"
    "Ctrl-C asks the run to end and gives its cleanup a second, or as long as the "
    "script's\n"
    "errand.shield asks for; a second Ctrl-C ends it at once.\n";

static const char text_run[] = "errand run SCRIPT [ARGUMENTS] [OPTIONS]\n"
                               "\n"
                               "Runs SCRIPT as the root task of a run: require "
                               "\"errand\" gives the module, whose verbs\n"
                               "await.  ARGUMENTS arrive as ... and in the table arg.  "
                               "Words that begin with - stand behind\n"
                               "--.  The native jobs errand.job(\"primes\", n) and "
                               "errand.job(\"panic\", text) are there.\n"
                               "\n"
                               "Prints each completion as it is drained, a summary and a "
                               "digest; errand help lists the\n"
                               "options, errand help codes the exit codes.\n";

static const char text_explore[] =
    "errand explore SCRIPT [ARGUMENTS] [OPTIONS]\n"
    "\n"
    "Runs SCRIPT under many seeds, each in a process of its own, and prints each "
    "distinct\n"
    "failure once, with the command line that shows it again.  Ctrl-C prints what was "
    "found so\n"
    "far.  Exit code 0: nothing failed; 1: something did.\n"
    "\n"
    "  --seeds N | A..B   the seeds 1 to N, or A to B (1000)\n"
    "  --jobs N           so many processes at once (the number of processors)\n"
    "  --policy P         as in errand run; portfolio, the default, takes another one "
    "per seed\n"
    "  --timeout S        real seconds that one run may take (60); more is a failure\n"
    "  --stop-after N     begin no seed after N distinct failures\n"
    "  --minimise         make each failure small: a plain policy, few items of\n"
    "                     errand.workload, few choices; writes a tape, and the line for "
    "it\n"
    "  --budget S         seconds for each failure to be made small (60)\n"
    "  --repeat 2         run each seed twice; a digest that differs is a failure\n"
    "  --keep DIR         where tapes and logs go (the current folder)\n"
    "  --report FILE      write what was found as JSON\n"
    "  --order, --workers, --deadline   as in errand run (--order inline)\n"
    "  --quiet, -q        print failures only; no bar\n";

static const char text_tour[] =
    "errand tour [--tree DIR] [OPTIONS]\n"
    "\n"
    "Runs the script examples/tour.lua, which is built in: hashes every file below DIR "
    "(or the\n"
    "current folder) but build output and version control, looks up localhost, runs "
    "child\n"
    "processes, cancels one, times one out and survives a panicking job.  Twice with the "
    "same\n"
    "--seed it prints the same lines; with another seed it does not.\n";

static const char text_codes[] =
    "Exit codes:\n"
    "  0      the script ended well\n"
    "  1      the script cannot be read, is empty, is no Lua, or raised an error\n"
    "  2      the command line is wrong\n"
    "  4      stall: every task waits for what can never come\n"
    "  5      the deadline passed\n"
    "  6      the run could not start: memory, threads\n"
    "  7      standard output or the trace file could not be written\n"
    "  8      something real went wrong that virtual time cannot express: a worker that "
    "does\n"
    "         not end, a thread that cannot be made\n"
    "  128+n  signal n ended the run: 130 SIGINT, 143 SIGTERM, 129 SIGHUP; 141: nobody "
    "reads\n"
    "         standard output any more\n";

bool
errand__help_print(FILE *file, const char *topic)
{
    const char *text = NULL;
    if (topic == NULL || strcmp(topic, "help") == 0)
        text = text_all;
    else if (strcmp(topic, "run") == 0)
        text = text_run;
    else if (strcmp(topic, "explore") == 0)
        text = text_explore;
    else if (strcmp(topic, "tour") == 0)
        text = text_tour;
    else if (strcmp(topic, "codes") == 0)
        text = text_codes;
    else if (strcmp(topic, "version") == 0)
        text = "errand --version\n\nPrints the version, and what this build can do.\n";
    if (text != NULL)
        fputs(text, file);
    return text != NULL;
}

void
errand__help_version(FILE *file)
{
    fprintf(file, "errand %s\n%s\n%s\n", errand_version(), errand_features(),
            LUA_RELEASE);
}

void
errand__help_problem(const char *format, ...)
{
    va_list arguments;
    errand__output_problem_line();
    va_start(arguments, format);
    fputs("errand: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}
