/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TOOLS_PROGRAM_H
#define ERRAND_TOOLS_PROGRAM_H
/* program: what the files of the command-line program share.  It is a host like any other: it
 * sees the Lua host's header and the public headers.  docs/errand.md is its manual.
 *
 * What goes where: standard output gets what a run produces and what the same seed makes the
 * same: completions, summary, digest, accounts.  Standard error gets the rest: a drawn seed,
 * the progress bar, what a signal did, problems. */
#include <stdio.h>
#include "host.h"
#include "errand/io.h"
#include "errand/record.h"
#include "errand/traps.h"

/* Exit codes.  3 is left to ./run, which says by it that packages are missing. */
typedef enum errand__exit {
    ERRAND__EXIT_GOOD = 0,
    ERRAND__EXIT_SCRIPT = 1, /* it cannot be read, is no Lua, or raised */
    ERRAND__EXIT_USAGE = 2,
    ERRAND__EXIT_STALL = 4,
    ERRAND__EXIT_DEADLINE = 5,
    ERRAND__EXIT_REFUSED = 6,  /* the run could not start: memory, threads */
    ERRAND__EXIT_OUTPUT = 7,   /* standard output or the trace could not be written */
    ERRAND__EXIT_EXTERNAL = 8, /* what virtual time cannot express */
    ERRAND__EXIT_DEPARTED = 9, /* a replay left its log */
    ERRAND__EXIT_SIGNAL = 128  /* and the signal's number */
} errand__exit;

/* ---- main.c ----------------------------------------------------------------------------- */
/* How the user called it, for lines that are to be typed: "errand", or a path where one was given. */
extern const char *errand__program_name;

/* ---- options.c -------------------------------------------------------------------------- */
typedef enum errand__command {
    ERRAND__COMMAND_RUN = 1,
    ERRAND__COMMAND_TOUR = 2,
    ERRAND__COMMAND_HELP = 3,
    ERRAND__COMMAND_VERSION = 4,
    ERRAND__COMMAND_LOG = 5,
    ERRAND__COMMAND_DIFF = 6
} errand__command;

typedef struct errand__script errand__script;

typedef struct errand__options {
    errand__command command;
    const char *topic;  /* help: a command's name, or NULL */
    const char *script; /* run: a path, or "-" */
    const char *tree;   /* tour: the folder to go to, or NULL */
    int argc;           /* of the script */
    char **argv;
    errand_order order;
    bool has_seed;
    uint64_t seed;
    uint32_t workers;     /* 0 = the host's default */
    uint32_t reactor;     /* ERRAND_REACTOR_... */
    uint64_t deadline_ns; /* 0 = none */
    bool no_catch;        /* the first failure of a task ends the run */
    errand_traps_mode traps;
    const char *trace_path;
    const char *policy, *tape_path, *save_tape_path; /* NULL = not given */
    const char *record_path;
    bool record_payloads;
    const char *replay_path;
    const char *logs[2]; /* log: the first; diff: both */
    bool json;           /* log, diff */
    bool bytes;          /* log: all bytes that were recorded */
    bool stats, quiet;
    errand__script *held_script;        /* read before, or NULL: run reads it */
    const errand_choices *held_choices; /* who decides, or NULL: policy and tapes say */
    struct errand__marks *marks;        /* that the run sets (marks.h), or NULL */
    int verdict_fd; /* 0 = nobody wants a verdict (verdict.c); else the run is a child's */
} errand__options;
/* Reads the command line, whose words may be put into another order.  false = it was wrong,
 * and a message has said why and how to mend it. */
bool errand__options_read(int argc, char **argv, errand__options *out_options);
/* The parts that explore shares.  A number without sign, decimal or 0x...; seconds above 0; an
 * order by its name; what is wrong with a word, as getopt_long's '?' or ':' says (false). */
struct option;
bool errand__options_number(const char *text, uint64_t max, uint64_t *out_number);
bool errand__options_seconds(const char *option, const char *text, uint64_t *out_ns);
bool errand__options_order(errand__options *options, const char *text);
bool errand__options_workers(errand__options *options, const char *text);
bool errand__options_reactor(errand__options *options, const char *text);
bool errand__options_seed(errand__options *options, const char *text);
bool errand__options_traps(errand__options *options, const char *text);
bool errand__options_policy(errand__options *options, const char *text);
bool errand__options_explain(const struct option *table, int problem, char **argv);

/* ---- help.c ------------------------------------------------------------------------------ */
/* false = there is no such topic. */
bool errand__help_print(FILE *file, const char *topic);
void errand__help_version(FILE *file);
/* "errand: " and the text and a line end on standard error. */
void errand__help_problem(const char *format, ...) ERRAND_PRINTF(1, 2);

/* ---- run.c ------------------------------------------------------------------------------- */
/* A whole run, from the script's text to the report.  Returns the exit code. */
int errand__run_script(const errand__options *options);
/* paths.c.  false = a file would be written over another one of the run; a message said which. */
bool errand__paths_check(const errand__options *options);
/* The same of two of them: what names the other one, which may be NULL. */
bool errand__paths_apart(const char *option, const char *path, const char *what,
                         const char *other);

/* ---- explore.c ----------------------------------------------------------------------------- */
/* errand explore, whose options are its own: argv[0] is "explore".  Returns the exit code. */
int errand__explore_main(int argc, char **argv);

/* ---- call.c, doctor.c ------------------------------------------------------------------------ */
/* errand call and errand doctor: argv[0] is the command.  Both return the exit code. */
int errand__call_main(int argc, char **argv);
int errand__doctor_main(int argc, char **argv);

/* ---- script.c: where the text comes from --------------------------------------------------- */
struct errand__script {
    char *text;        /* freed by errand__script_fini, unless it is the tour's */
    size_t size;       /* 0 is possible before a check only */
    const char *chunk; /* "@path": what messages name */
    char *own_chunk;
    bool built_in;
};
/* false = it cannot be read; a message said why. */
bool errand__script_init(errand__script *script, const errand__options *options);
void errand__script_fini(errand__script *script);

/* Made from examples/tour.lua by embed.cmake. */
extern const char errand__tour_text[];
extern const size_t errand__tour_size;

/* ---- jobs.c: native jobs that every script may call ----------------------------------------- */
void errand__jobs_register(lua_State *L);

/* ---- signals.c -------------------------------------------------------------------------------- */
/* From here on SIGINT, SIGTERM and SIGHUP stop the run: the first one asks, a second one ends the
 * process at once.  Returns the switch, for errand_lua_options. */
errand_lua_stop *errand__signals_install(void);
/* The first signal that came, or 0. */
int errand__signals_first(void);
/* Standard output could not be written: the run is stopped; with EPIPE as if SIGPIPE had come. */
void errand__signals_output_lost(int error);
const char *errand__signals_name(int number);

/* ---- trace_file.c ----------------------------------------------------------------------------- */
typedef struct errand__trace_file {
    FILE *file; /* NULL = no trace was asked for */
    const char *path;
    int error; /* errno of the first write that failed, or 0 */
} errand__trace_file;
/* false = it cannot be written; a message said why. */
bool errand__trace_file_init(errand__trace_file *trace, const char *path);
void errand__trace_file_step(errand__trace_file *trace, const errand_step *step);
/* false = not everything was written; a message said so. */
bool errand__trace_file_fini(errand__trace_file *trace);

/* ---- tape_file.c ------------------------------------------------------------------------------ */
typedef struct errand__tape_file {
    const errand__options *options;
    errand_choices choices;
    FILE *file; /* where the record goes, or NULL */
    bool ran;   /* a run asked the tape */
} errand__tape_file;
/* false = a file cannot be used; a message said why.  Give it to fini in any case. */
bool errand__tape_file_init(errand__tape_file *tape, const errand__options *options);
/* For errand_lua_options, once the seed is known; NULL in arrival order. */
const errand_choices *errand__tape_file_choices(errand__tape_file *tape, uint64_t seed);
/* false = the tape could not be saved; a message said so. */
bool errand__tape_file_fini(errand__tape_file *tape);
/* ---- recording.c: the log of a run ------------------------------------------------------------- */
typedef struct errand__recording {
    errand_recorder *recorder; /* NULL = none was asked for */
    const char *path;
} errand__recording;
/* false = it cannot be written; a message said why. */
bool errand__recording_init(errand__recording *recording, const errand__options *options,
                            const errand__script *script);
/* false = the log is not whole; a message said so. */
bool errand__recording_fini(errand__recording *recording);

/* ---- replaying.c: a log again --------------------------------------------------------------------- */
/* Of the script and of what it is started with: equal where a log can be compared or replayed. */
typedef struct errand__identity {
    uint64_t build, config;
    char build_text[128], config_text[256];
} errand__identity;
void errand__recording_identity(const errand__options *options,
                                const errand__script *script,
                                errand__identity *out_identity);
/* Opens options->replay_path, if it is given; then *out_replay is not NULL and order and seed of
 * the options become the log's.  false = it cannot be replayed; a message said why. */
bool errand__replaying_init(errand__options *options, const errand__script *script,
                            errand_replay **out_replay);

/* ---- log_print.c, diff.c: logs; each returns the exit code ------------------------------------- */
int errand__log_run(const errand__options *options);
int errand__diff_run(const errand__options *options);

/* ---- bar.c: the progress bar of a terminal ------------------------------------------------------ */
/* Shows a bar below everything else while a run is long, if standard error is a terminal and
 * the run is not quiet. */
void errand__bar_start(bool with_clock, bool quiet);
void errand__bar_stop(void);
/* Counts: one more operation was submitted; one more is done, and what it was. */
void errand__bar_submitted(void);
void errand__bar_done(const char *name, const char *subject);
/* Writes to a terminal, above the bar.  Returns how much. */
size_t errand__bar_write(int fd, const char *bytes, size_t size);
/* What a handler's text on standard error begins with, so that it stands on a line of its own.
 * last: the process ends now, and no bar is drawn any more.  Thread: [signal]. */
const char *errand__bar_prefix(bool last);

/* ---- output.c: standard output and standard error -------------------------------------------------- */
/* Makes both streams of the program's own.  Must come before the lua_State: io.stdout is made of
 * stdout then. */
void errand__output_start(void);
/* Ends a line that the script left open, before a line of the program's own on standard output;
 * the second before one on standard error, if both are terminals. */
void errand__output_line(void);
void errand__output_problem_line(void);
/* fflush of standard output; an error is kept for the next. */
void errand__output_flush(void);
/* The errno of the first write to standard output that failed, or 0; and what to do about it. */
int errand__output_error(void);
const char *errand__output_mend(int error);
/* The exit code, or another one if standard output did not take everything; a message said so. */
int errand__output_code(int code);
/* write, until all is written or it fails (errno).  Returns how much. */
size_t errand__output_write(int fd, const char *bytes, size_t size);

/* ---- progress.c: completions as they are drained -------------------------------------------------- */
typedef struct errand__progress {
    bool quiet, seeded;
    bool brief;      /* of each kind of completion only the first few get a line */
    uint64_t hidden; /* that got none since errand__progress_more */
    struct {
        char name[32];
        errand_outcome outcome;
        unsigned shown;
    } kinds[16];
    uint64_t drained, late;
    uint64_t outcomes[6]; /* by errand_outcome */
    uint64_t contents;    /* the digest of arrival order */
    char panic[128];      /* what the last panic said, or "" */
} errand__progress;
void errand__progress_init(errand__progress *progress, const errand__options *options);
/* Prints how many completions got no line, if there are any; and sees to it that it comes before
 * what the script prints.  The second raises for want of memory. */
void errand__progress_more(errand__progress *progress);
void errand__progress_open(lua_State *L, errand__progress *progress);
/* An errand_lua_event_fn; arg is the progress. */
void errand__progress_event(void *arg, const errand_lua_event *event);
/* Writes text with its control characters escaped, so that no name can forge a line. */
void errand__progress_text(FILE *file, const char *text);

/* ---- json.c ------------------------------------------------------------------------------------------- */
/* Writes a text as a string; NULL is "".  Bytes that are no UTF-8 are taken as Latin 1. */
void errand__json_text(FILE *file, const char *text);

/* ---- report.c: the end of a run ----------------------------------------------------------------------- */
/* Prints summary, digest, accounts and what went wrong.  Returns the exit code. */
int errand__report_print(const errand__options *options, errand__progress *progress,
                         const errand_lua_result *result);
#endif
