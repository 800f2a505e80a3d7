/* SPDX-License-Identifier: MIT */
/* help: what the program says about itself, and how it says that something is wrong. */
#include "program.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char text_all[] =
    "errand: run Lua scripts whose work goes out and comes back exactly once.\n"
    "\n"
    "  errand run SCRIPT [ARGUMENTS]   run a Lua 5.4 script (- = standard input)\n"
    "  errand explore SCRIPT [...]     run it under many seeds, find what fails, make it "
    "small\n"
    "  errand tour [--tree DIR]        the built-in script: files, names, child "
    "processes, cancel\n"
    "  errand log FILE [--json] [--bytes]   print a log that --record wrote\n"
    "  errand diff A B [--json]        the first event in which two logs differ\n"
    "  errand call LIB SYMBOL SIGNATURE [ARGUMENTS]   one foreign call, in a sandbox\n"
    "  errand doctor [--json]          what this machine offers to sandboxes, and what "
    "follows\n"
    "  errand help [COMMAND | codes]   more about a command, or the exit codes\n"
    "  errand --version\n"
    "\n"
    "Each command takes --help, -h.  Of an option's name as much is enough as no other "
    "has "
    "too.\n"
    "\n";

static const char text_options[] =
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
    "  --reactor NAME    io_uring or epoll: what waits for sockets (default: the "
    "better)\n"
    "  --deadline S      end the run after so many seconds of its clock\n"
    "  --no-catch        end the run when the first task fails, awaited or not\n"
    "  --policy P        seeded: who runs next: shuffle (the default), fifo, pick, "
    "pct:DEPTH,\n"
    "                    delay:DEPTH, starve:DEPTH, each with :STEPS of a run, or "
    "portfolio\n"
    "  --save-tape FILE  seeded: write every choice of the run, a line each\n"
    "  --tape FILE       seeded: make the choices of this tape; give the same --policy\n"
    "  --trace FILE      write every step of the run, a line each\n"
    "  --record FILE     write a log of the run, for errand log and errand diff\n"
    "  --record-payloads with the bytes of results, not only their digests\n"
    "  --replay FILE     run what such a log has, without any job: order, seed and "
    "policy are\n"
    "                    its own, results come from it (of --record-payloads)\n"
    "  --traps MODE      seeded: native jobs that read clocks, random numbers and the "
    "like:\n"
    "                    refuse (the default: they panic), warn, off\n"
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
                               "--.  The native jobs errand.job(\"primes\", n), "
                               "errand.job(\"clock\") and\n"
                               "errand.job(\"panic\", text) are there.\n"
                               "\n"
                               "Prints each completion as it is drained, a summary and a "
                               "digest.  errand help codes\n"
                               "lists the exit codes.\n"
                               "\n";

static const char text_explore[] =
    "errand explore SCRIPT [ARGUMENTS] [OPTIONS]\n"
    "\n"
    "Runs SCRIPT under many seeds, each in a process of its own, and prints each "
    "distinct\n"
    "failure once, with the command line that shows it again.  Ctrl-C prints what was "
    "found so\n"
    "far.  Exit code 0: nothing failed; 1: something did, also where Ctrl-C ended the "
    "search; 130:\n"
    "Ctrl-C, and nothing had failed.\n"
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
    "  --from-step auto   names the step that decides: from behind it every branch "
    "fails\n"
    "  --from-step N      goes on from before step N with other choices; how many fail?\n"
    "  --branches M       so many ways to go on (20)\n"
    "  --seed S           the same as --seeds S..S\n"
    "  --tape FILE        one run, of this tape; give its --policy\n"
    "  --keep DIR         where tapes and logs go (the current folder)\n"
    "  --report FILE      write what was found as JSON\n"
    "  --order, --workers, --reactor, --deadline   as in errand run (--order inline)\n"
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
    "--seed it prints the same lines; with another seed it does not.  Four completions "
    "of each\n"
    "kind get a line; errand run examples/tour.lua prints them all.\n"
    "\n";

static const char text_log[] =
    "errand log FILE [--json] [--bytes]\n"
    "\n"
    "Prints the log that errand run --record FILE wrote: a line for each step, with its "
    "time, the\n"
    "task or operation by its path (run/worker#2: the second worker of the task run) and "
    "what\n"
    "happened.  --json: a JSON object on each line instead.  --bytes: also all bytes of "
    "results and\n"
    "notes, if they were recorded.  Exit code 2: it is no log, or it is torn or damaged; "
    "what stands\n"
    "before that place is printed.\n";

static const char text_diff[] =
    "errand diff A B [--json]\n"
    "\n"
    "Compares two logs that errand run --record wrote.  Prints the last 20 steps that "
    "are "
    "equal in\n"
    "both, the first that differs, field by field, of recorded bytes those around the "
    "first that\n"
    "differs, and a hint at the cause:\n"
    "  other-task   the same tasks were ready, another one was chosen: seed or policy\n"
    "  ready-set    another set was ready: a wake that no event tells of\n"
    "  result       the same operation, another result: a job that is no function of its "
    "input\n"
    "  time         another time: a real clock got in\n"
    "  address      values that look like addresses: an order of pointers\n"
    "  order        the same events in another order: hash tables, folders, addresses\n"
    "  draw         another random number\n"
    "  value        the program noted another value of its own\n"
    "  extra        B has an event more     missing  B has one less\n"
    "  choice       another choice of seed, policy or tape, which no event shows yet\n"
    "  other-event  another event           seed     other seed, order or policy\n"
    "  build        another script, errand or arguments\n"
    "  arrival      two runs of arrival order, which no seed makes equal\n"
    "--json prints one object: answer, step, hint, cause, mend, a, b, common, headers.\n"
    "Two runs of one seed should have equal logs:\n"
    "  errand run s.lua --seed 7 --record a.log; errand run s.lua --seed 7 --record "
    "b.log\n"
    "  errand diff a.log b.log\n"
    "Exit codes: 0 equal, 1 different, 2 a log is none, torn or damaged, and no "
    "difference "
    "stands\n"
    "before that place.\n";

static const char text_call[] =
    "errand call [OPTIONS] LIB SYMBOL SIGNATURE [ARGUMENTS]\n"
    "\n"
    "Calls one foreign function and prints what it gave back, then its out parameters "
    "and errno.\n"
    "LIB as for dlopen (./NAME.so for a file here), or - for the C library.  Without "
    "--isolation thread\n"
    "it runs in a locked-down process, and whatever it does, errand says so and goes on. "
    " "
    "There it has\n"
    "no output (what it prints is lost, and may set errno) and no environment (getenv "
    "gives null).\n"
    "Of root's calls it is user 65534, nobody: LIB and files must be readable, with "
    "wpath "
    "writable,\n"
    "for that user.  Options come before LIB.\n"
    "\n"
    "  errand call libz.so.1 crc32 'u64 (u64, bytes, u32)' 0 hello 5\n"
    "  errand call - snprintf 'i32 (out bytes, u64, string, ..., i32, f64)' 64 64 '%d "
    "%.2f' 7 2.5\n"
    "\n"
    "Types: void bool i8..i64 u8..u64 f32 f64, C's int long size_t double ..., pointer, "
    "string,\n"
    "bytes (read), out bytes, inout bytes, {TYPE, ...} a structure, [N]TYPE an array in "
    "one, ...\n"
    "before the variadic ones.  Arguments: numbers; true, false; words; null for a null "
    "pointer; for\n"
    "bytes also @FILE and x:0a0b; t:WORD for a text or bytes that begin like these "
    "(t:null); for\n"
    "out bytes how many; {1, 2} for structures.  @FILE: up to --input, in a thread "
    "256M.\n"
    "\n"
    "  --isolation process | thread   a thread contains mistakes, not faults (process)\n"
    "  --deadline S                   end it after so many seconds (25; in a thread: "
    "never,\n"
    "                                 and what cannot be ended is told a grace of 1 s "
    "later)\n"
    "  --promise P,...                what else it may: rpath, wpath, inet, thread, "
    "callback (pure)\n"
    "  --path PATH[=rwx]              with rpath and wpath: below what (=r)\n"
    "  --port N                       with inet: TCP to this port\n"
    "  --memory 64M                   address space (512M)\n"
    "  --cpu S                        processor seconds\n"
    "  --input 8M                     of the arguments (1M)\n"
    "  --output 1M                    of a result (16M)\n"
    "  --report-denied                name system calls that were denied or got an error "
    "(not those\n"
    "                                 that landlock refuses: other paths and ports)\n"
    "  --worker FILE                  the program errand-worker\n"
    "Exit codes: 0 it returned, 1 it did not, 2 the command line is wrong, 5 deadline, 6 "
    "no sandbox\n"
    "as strict as wanted could be made.\n";

static const char text_doctor[] =
    "errand doctor [--json]\n"
    "\n"
    "Says what this machine offers to sandboxes and asynchronous operations: seccomp, "
    "landlock,\n"
    "namespaces, control groups, limits, io_uring; and what follows from what is "
    "missing.\n";

static const char text_codes[] =
    "Exit codes:\n"
    "  0      the script ended well\n"
    "  1      the script cannot be read, is empty, is no Lua, or raised an error\n"
    "  2      the command line is wrong\n"
    "  4      stall: every task waits for what can never come\n"
    "  5      the deadline passed\n"
    "  6      the run could not start: memory, threads\n"
    "  7      standard output, the trace or the log could not be written\n"
    "  8      something real went wrong that virtual time cannot express: a worker that "
    "does\n"
    "         not end, a thread that cannot be made\n"
    "  9      a replay left its log: the message says where\n"
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
    else if (strcmp(topic, "log") == 0)
        text = text_log;
    else if (strcmp(topic, "diff") == 0)
        text = text_diff;
    else if (strcmp(topic, "call") == 0)
        text = text_call;
    else if (strcmp(topic, "doctor") == 0)
        text = text_doctor;
    else if (strcmp(topic, "codes") == 0)
        text = text_codes;
    else if (strcmp(topic, "version") == 0)
        text = "errand --version\n\nPrints the version, and what this build can do.\n";
    if (text != NULL)
        fputs(text, file);
    if (text == text_all || text == text_run || text == text_tour)
        fputs(text_options, file);
    return text != NULL;
}

void
errand__help_version(FILE *file)
{
    fprintf(file, "errand %s\n%s\n%s\n", errand_version(), errand_features(),
            LUA_RELEASE);
}

/* What a name from outside holds must not steer the terminal; lines and tabs are texts' own. */
static void
put_lines(char *text, FILE *file)
{
    for (char *end = text;; text = end + 1) {
        end = text + strcspn(text, "\n\t");
        char between = *end;
        *end = '\0';
        errand__progress_text(file, text);
        if (between == '\0')
            return;
        fputc(between, file);
    }
}

void
errand__help_problem(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int length;

    errand__output_problem_line();
    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    fputs("errand: ", stderr);
    if (length < 0) {
        fputs("memory ran out for a message\n", stderr);
        return;
    }
    put_lines(text, stderr);
    fputc('\n', stderr);
    free(text);
}
