/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TOOLS_EXPLORE_H
#define ERRAND_TOOLS_EXPLORE_H
/* explore: what the files of `errand explore` share.  docs/explore.md is its manual.
 *
 * The exploring process has one thread and no runtime: it forks a child for each run, reads
 * how it ended from a pipe, and gives equal failures one entry.  Words: a trial is one run in a
 * child; a verdict is what the child says about its end; a fingerprint is what makes two failures
 * the same; a finding is a failure with all trials that showed it. */
#include <sys/types.h>
#include "program.h"

/* ---- verdict.c: how a run ended, from the child that ran it -------------------------------------- */
typedef enum errand__class {
    ERRAND__CLASS_GOOD = 0,
    ERRAND__CLASS_ERROR = 1, /* of Lua */
    ERRAND__CLASS_STALL = 2,
    ERRAND__CLASS_DEADLINE = 3,
    ERRAND__CLASS_PANIC = 4,    /* an error that a job's panic raised */
    ERRAND__CLASS_CRASH = 5,    /* a signal ended the process */
    ERRAND__CLASS_TIMEOUT = 6,  /* it took too much real time, and was killed */
    ERRAND__CLASS_EXIT = 7,     /* it left by os.exit with a code other than 0 */
    ERRAND__CLASS_DIFFERS = 8,  /* the same seed again gave another digest */
    ERRAND__CLASS_REFUSED = 9,  /* it could not start */
    ERRAND__CLASS_EXTERNAL = 10 /* what virtual time cannot express */
} errand__class;
const char *errand__class_name(errand__class class);

typedef struct errand__verdict {
    bool sent; /* false: the child ended without a word */
    errand__class class;
    uint64_t digest, elapsed_ns, picks;
    char *text; /* the message, with its traceback; NULL = none */
    char *tape; /* the choices that were made; NULL = not asked for */
    size_t tape_size;
} errand__verdict;
/* The child's side: writes to options->verdict_fd, if there is one. */
void errand__verdict_send(const errand__options *options,
                          const errand__progress *progress,
                          const errand_lua_result *result);
/* The parent's side: bytes is all that came.  false = no memory, or they are no verdict. */
bool errand__verdict_read(const char *bytes, size_t size, errand__verdict *out_verdict);
void errand__verdict_fini(errand__verdict *verdict);

/* ---- fingerprint.c: which failures are the same ---------------------------------------------------- */
typedef struct errand__fingerprint {
    errand__class class;
    char site[128];    /* "bank.lua:31", "SIGSEGV", where the waiters are; may be "" */
    char message[256]; /* numbers and addresses are replaced by # */
} errand__fingerprint;
void errand__fingerprint_make(errand__class class, const char *text,
                              errand__fingerprint *out);
/* Of a process that left no verdict: its signal or its code is the site. */
void errand__fingerprint_ended(int wait_status, errand__fingerprint *out);
bool errand__fingerprint_same(const errand__fingerprint *a, const errand__fingerprint *b);
/* The same failure, found in what `errand run` printed and in how it ended. */
bool errand__fingerprint_in(const errand__fingerprint *wanted, const char *printed,
                            int wait_status);

/* ---- trial.c: one run in a child ------------------------------------------------------------------- */
#define ERRAND__TRIALS_MAX 64 /* at once */

typedef struct errand__trial {
    /* What to run: filled by the caller, which keeps what the pointers point to. */
    errand__options options;
    errand_choices choices; /* who decides */
    struct errand__marks
        *from;    /* NULL, or the marks of which one goes on (marks.h) ... */
    size_t mark;  /* ... this one, by the seed of options */
    char **words; /* instead of options: the program anew, with this command line */
    uint64_t timeout_ns;
    /* How it ended; owned: errand__trial_fini. */
    bool timed_out;
    int wait_status;
    errand__verdict verdict;
    errand__fingerprint fingerprint;
    char *output; /* the last of what it printed, ended by 0 */
    size_t output_size;
    /* trial.c's own. */
    bool running;
    pid_t pid;
    int process_fd, verdict_fd, output_fd;
    uint64_t deadline_ns;
    char *sent;
    size_t sent_size, sent_room;
} errand__trial;
/* false = the system refuses another process; a message said why. */
bool errand__trial_start(errand__trial *trial);
/* Kills it, with its process group; errand__trial_wait reports it then. */
void errand__trial_kill(errand__trial *trial);
/* Waits until one of these ends, until until_ns (CLOCK_MONOTONIC) or a signal.  Returns the ended
 * one, or NULL. */
errand__trial *errand__trial_wait(errand__trial *trials, size_t count, uint64_t until_ns);
void errand__trial_fini(errand__trial *trial);
/* Kills what ended trials have left behind: the processes that became this one's children. */
void errand__trial_sweep(const errand__trial *trials, size_t count);
uint64_t errand__trial_now(void);

/* ---- explore_options.c ------------------------------------------------------------------------------- */
typedef struct errand__explore {
    errand__options run; /* what each seed runs with, but for the seed */
    uint64_t first, last;
    uint32_t jobs;
    uint32_t repeat;
    bool minimise, quiet, help;
    uint64_t budget_ns;  /* of the minimiser */
    uint64_t timeout_ns; /* real, of one run */
    uint64_t stop_after; /* distinct failures; 0 = never */
    const char *report_path;
    const char *deadline;  /* as it was given */
    const char *keep;      /* the folder for tapes and logs */
    const char *policy;    /* as it was given, or "portfolio" */
    const char *tape_path; /* --tape: one run of this tape, no seeds; or NULL */
    errand_tape *tape;     /* it, read */
    uint64_t from_step;    /* 0 = not asked for */
    uint64_t branches;     /* of a mark */
    uint64_t steps;        /* picks of a run in plain order: what policies are told */
} errand__explore;
#define ERRAND__FROM_STEP_AUTO UINT64_MAX
/* The choices of a seed: its policy, by the text that was given, or the tape. */
errand_choices errand__explore_choices(const errand__explore *explore, uint64_t seed);
bool errand__explore_options_read(int argc, char **argv, errand__explore *out);

/* ---- findings.c: distinct failures --------------------------------------------------------------------- */
#define ERRAND__FINDING_SEEDS 16

typedef struct errand__minimised errand__minimised;

#define ERRAND__PATH_SIZE 4608 /* a folder, a script's name, a seed and what it is */

/* --from-step auto: where a failure is decided. */
typedef struct errand__decided {
    uint64_t
        step; /* the last one of which it hangs whether the run fails; 0 = not found */
    uint64_t steps, time_ns, branches, failed; /* failed: of the branches from it on */
    char kind[16], who[160];
    char tape[ERRAND__PATH_SIZE]; /* of a branch that does not fail, or "" */
} errand__decided;

typedef struct errand__finding {
    errand__fingerprint fingerprint;
    uint64_t count; /* trials that showed it */
    uint64_t seed;  /* the smallest of them */
    uint64_t seeds[ERRAND__FINDING_SEEDS];
    size_t seeds_count;
    char *text, *output; /* of the trial with the smallest seed */
    bool proof_tried, proven;
    errand__minimised *minimised; /* NULL = not asked for */
    errand__decided decided;
    char *logs[2]; /* of two runs that differ; or NULL */
} errand__finding;

typedef struct errand__findings {
    errand__finding *list;
    size_t count, room;
    uint64_t failed; /* trials */
} errand__findings;
/* Takes text and output of the trial, when they are wanted.  Returns the finding, or NULL without
 * memory; *out_new: it is the first of its kind. */
errand__finding *errand__findings_add(errand__findings *findings, errand__trial *trial,
                                      bool *out_new);
/* By their smallest seeds. */
void errand__findings_sort(errand__findings *findings);
void errand__findings_fini(errand__findings *findings);

/* ---- reproduce.c: the command line that shows a failure again -------------------------------------------- */
typedef struct errand__reproduce {
    const char *tape;   /* instead of the seed; or NULL */
    const char *record; /* write the log of the run; or NULL */
} errand__reproduce;
/* The words of `errand run ...`; NULL without memory.  Freed by one free(). */
char **errand__reproduce_words(const errand__explore *explore, uint64_t seed,
                               const errand_choices *choices, errand__reproduce with);
/* "FOLDER/bank-seed17": what names of kept files begin with. */
void errand__keep_name(const errand__explore *explore, uint64_t seed, char *name,
                       size_t size);
/* The words as a shell takes them, for free(); NULL without memory. */
char *errand__reproduce_line(char *const *words);
/* Runs the line in a process of its own: does the failure come again? */
bool errand__reproduce_prove(const errand__explore *explore, char **words,
                             const errand__fingerprint *wanted);

/* ---- repeat.c: each seed twice ------------------------------------------------------------------------------- */

typedef struct errand__repeat {
    uint64_t digest; /* of the first run */
    char **words;
    char logs[2][ERRAND__PATH_SIZE];
} errand__repeat;
/* Before the first run is started: it leaves a log. */
void errand__repeat_first(const errand__explore *explore, errand__trial *trial,
                          errand__repeat *repeat);
/* When the first has ended with a verdict: starts the second in its place. */
bool errand__repeat_again(const errand__explore *explore, errand__trial *trial,
                          errand__repeat *repeat);
/* When the second has ended: true = the digests differ, and that is the fingerprint now. */
bool errand__repeat_differs(errand__trial *trial, const errand__repeat *repeat);
void errand__repeat_fini(errand__repeat *repeat, bool keep);

/* ---- meter.c: the progress bar of an exploration ------------------------------------------------------------ */
typedef struct errand__meter {
    bool shown; /* standard error is a terminal, and it is wanted */
    bool drawn;
    uint64_t begun_ns, next_ns;
    unsigned ticks;
} errand__meter;
void errand__meter_init(errand__meter *meter, bool quiet);
/* It is time for the next picture. */
bool errand__meter_due(const errand__meter *meter);
/* "412 of 1000  83/s  7 s left". */
void errand__meter_count(const errand__meter *meter, uint64_t done, uint64_t total,
                         char *out, size_t size);
/* Draws it, with done of total cells, and a text. */
void errand__meter_draw(errand__meter *meter, uint64_t done, uint64_t total,
                        const char *text);
void errand__meter_wipe(errand__meter *meter);
/* When the next picture is due. */
uint64_t errand__meter_next(const errand__meter *meter);

/* ---- findings_report.c: what was found, for people and for programs -------------------------------------------- */
typedef struct errand__explored {
    uint64_t done;       /* seeds */
    uint64_t elapsed_ns; /* real */
    int signal;          /* that ended it, or 0 */
} errand__explored;
void errand__findings_print(const errand__explore *explore,
                            const errand__findings *findings,
                            const errand__explored *explored);
/* false = it could not be written; a message said why. */
bool errand__findings_write(const errand__explore *explore,
                            const errand__findings *findings,
                            const errand__explored *explored);

/* ---- explore.c ---------------------------------------------------------------------------------------------- */
/* The signal that asked for the end, or 0. */
int errand__explore_signal(void);
#endif
