/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TOOLS_LOG_VIEW_H
#define ERRAND_TOOLS_LOG_VIEW_H
/* log_view: what the commands log and diff share: who is who in a log, and a step as text. */
#include <stdio.h>
#include "program.h"
#include "errand/record.h"

/* ---- log_names.c: tasks and operations by their keys -------------------------------------------- */
typedef struct errand__name {
    uint64_t key;
    uint64_t above; /* key of the parent, or of the task that submitted */
    char *label;    /* "worker", "worker#2" */
    bool operation;
} errand__name;
typedef struct errand__names { /* zero-initialise */
    errand__name *slots;       /* by key; label NULL = free */
    size_t room, count;
    struct errand__name_count {
        uint64_t above, label;
        uint32_t count;
    } * counts; /* of labels below one parent; count 0 = free */
    size_t counts_room, counts_count;
} errand__names;
/* Learns of a step's task or operation.  False: memory ran out. */
bool errand__names_learn(errand__names *names, const errand_step *step);
/* "run/worker#2/child", as long as it fits; a key that nobody learnt of is its number. */
void errand__names_path(const errand__names *names, uint64_t key, char *out, size_t size);
void errand__names_fini(errand__names *names);

/* ---- log_text.c: a step as text ------------------------------------------------------------------- */
const char *errand__log_order(errand_order order);
/* "pct:3", "shuffle, from a tape". */
void errand__log_policy(const errand_log_header *header, char *out, size_t size);
/* 1.402 ms */
void errand__log_time(uint64_t ns, char *out, size_t size);
/* One line without its end: step, time, kind, who, what. */
void errand__log_line(FILE *file, const errand__names *names,
                      const errand_log_step *step);
/* The fields of a step, by name, for comparing: at most ERRAND__FIELDS. */
enum { ERRAND__FIELDS = 24 };
typedef struct errand__field {
    const char *name;
    char text[160];
    bool counts; /* it is in the digest: two equal runs have the same */
} errand__field;
/* around: of bytes those around this one are shown. */
size_t errand__log_fields(const errand__names *names, const errand_log_step *step,
                          size_t around, errand__field *out_fields);
/* {"step": 1, "kind": "task", ...} */
#define ERRAND__LOG_ALL_BYTES SIZE_MAX /* around: each of them, without their text */
void errand__log_json_step(FILE *file, const errand__names *names,
                           const errand_log_step *step, size_t around);
/* Opens a log; false, with a message, if it is none. */
bool errand__log_open_named(const char *path, errand_log **out_log);

/* ---- log_bytes.c: what was recorded of a result or a note ---------------------------------------- */
/* NULL = nothing. */
const unsigned char *errand__log_bytes(const errand_log_step *step, size_t *out_size);
/* Sixteen of them, with the one that has this number: "at 32: 6162... ab... ...". */
enum { ERRAND__LOG_WINDOW = 120 };
void errand__log_window(const void *bytes, size_t size, size_t around,
                        char out[ERRAND__LOG_WINDOW]);
/* Prints them all, 16 a line. */
void errand__log_dump(FILE *file, const errand_log_step *step);
/* The value of "bytes", all or those of the window, which then has "bytes_from" behind it. */
void errand__log_json_bytes(FILE *file, const errand_log_step *step, size_t around);

/* ---- diff_find.c, diff_hint.c, diff.c --------------------------------------------------------------- */
typedef struct errand__diff_step { /* a copy that outlives its log's next */
    errand_log_step at;
    errand_log_completion completion;
    char *texts; /* label and the completion's strings and bytes */
    bool there;
} errand__diff_step;
enum { ERRAND__DIFF_COMMON = 20, ERRAND__DIFF_AHEAD = 64 };
typedef struct errand__diff {
    const char *paths[2];
    errand_log *logs[2];
    errand_log_end ends[2];
    bool no_times;       /* arrival order: times are real, and differ */
    bool differs;        /* steps[0][0] and steps[1][0] do; one may be not there */
    uint64_t step;       /* where, or how many were compared */
    size_t around;       /* the first byte of the two steps' that differs, or 0 */
    uint64_t closing[2]; /* the first step of the shutdown; 0 = not seen */
    bool in_shutdown;    /* they differ there alone */
    errand__diff_step steps[2][1 + ERRAND__DIFF_AHEAD]; /* the two, and what follows */
    errand__diff_step common[ERRAND__DIFF_COMMON];      /* before, the oldest first */
    size_t common_count;
    errand__diff_step note; /* the last before: what the difference may hang on */
    errand__names names[2];
    const char *hint;  /* a word for programs */
    const char *cause; /* a sentence for people */
    const char *mend;
} errand__diff;
/* False: memory ran out, or a log could not be read; a message said so. */
bool errand__diff_find(errand__diff *diff);
void errand__diff_fini(errand__diff *diff);
void errand__diff_hint(errand__diff *diff);
/* Are they the same step, but for its number?  times: must they be at one time? */
bool errand__diff_same(const errand_step *a, const errand_step *b, bool times);

#endif
