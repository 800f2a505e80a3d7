/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_SANDBOX_LIST_H
#define ERRAND_TESTS_HOSTILE_SANDBOX_LIST_H
/* list: hostile jobs, and what may become of each. */
#include <stddef.h>
#include <stdint.h>

typedef enum list_input {
    LIST_NOTHING,
    LIST_NUMBER, /* one int */
    LIST_LIE,    /* three: sequence, status, length */
    LIST_FILE,   /* the path of a file of the host's */
    LIST_SECRET, /* of one that others may not read */
    LIST_TEXT
} list_input;

typedef struct list_row {
    const char *function;
    int allowed; /* ENDS_..., or-ed */
    uint32_t deadline_ms;
    list_input input;
    int32_t numbers[3];
    const char *text;
    int32_t code; /* of ENDS_JOB and ENDS_EXITED; 0 = any */
} list_row;

extern const list_row list_rows[];
extern const size_t list_row_count;

/* System calls that a pure job has no use for: each ends its worker. */
typedef struct list_call {
    const char *name;
    long number;
} list_call;
extern const list_call list_calls[];
extern const size_t list_call_count;

#endif
