/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_CANCEL_H
#define ERRAND_RUNTIME_CANCEL_H
/* cancel: the part of runtime.h, which includes it, that is this folder's: a change of mind. */
#include "runtime/runtime.h"

/* What is left of a cancelled operation that was running: reap it (O39, O41). */
typedef struct errand__cleanup {
    errand__link link; /* in runtime->cleanups, round-robin */
    uint64_t wait_id, generation;
    errand__record *record; /* until its completion was drained */
    const errand_hook_type *hook;
    void *hook_data;
    uint64_t bound_ns;      /* quarantine */
    uint64_t due_ns;        /* next reap; UINT64_MAX = only waits for the completion */
    uint32_t tries, errors; /* errors: in a row */
    bool sealed;            /* seeded: nothing is reaped before its due */
    bool asked;             /* its hook's cancel was called */
    char text[128];         /* of the last error */
    struct errand__cleanup *next_free;
} errand__cleanup;

/* ---- cancel.c, deadlines.c, commands.c ---- */
/* Settles a queued operation; false: it runs, or has ended, for everyone who can see it. */
bool errand__cancel_queued(errand_runtime *runtime, errand__record *record,
                           errand_outcome outcome, errand_code code);
/* Its owner waits for it no longer: told of its job's type, if it has one and was not heard of yet. */
void errand__tell_job(errand_runtime *runtime, errand__record *record);
/* Asks it to end, once for life: the token and the hook.  code: of an effect-free one in the seeded
 * orders, where one that is not effect-free hears nothing (D143). */
void errand__ask_to_end(errand_runtime *runtime, errand__record *record,
                        errand_code code);
/* What comes first counts: a later limit never puts off one that is set already. */
void errand__deadline_set(errand_runtime *runtime, errand__record *record, unsigned stage,
                          uint64_t in_ns);
enum { /* extra->deadline_stage: what the entry in the deadline heap waits for */
       ERRAND__STAGE_NONE = 0,
       ERRAND__STAGE_OWN = 1,   /* the operation's deadline, from submit */
       ERRAND__STAGE_GRACE = 2, /* asked to end: now it is settled without its body */
       ERRAND__STAGE_BOUND = 3  /* beyond its finite work */
};
errand_cancel_answer errand__cancel_record(errand_runtime *runtime,
                                           errand__record *record, errand_reason reason);
/* Out of the deadline heap, if it is in. */
void errand__deadline_forget(errand_runtime *runtime, errand__record *record);
/* Starts the deadline of an armed record, if it has one (room was reserved). */
void errand__deadline_begin(errand_runtime *runtime, errand__record *record);
/* A posted node was taken from the chain. */
void errand__posted_run(errand_runtime *runtime, errand__record *record);
/* asked: to cancel it; else its job has told of its work. */
void errand__posted_apply(errand_runtime *runtime, errand__record *record, bool asked,
                          bool reported);
/* A command of errand_post was taken from the chain. */
void errand__command_run(errand_runtime *runtime, errand_command *command);
/* Deadlines that are due, at most budget. */
size_t errand__deadlines_fire(errand_runtime *runtime, size_t budget);
/* That of this operation, whatever the clock says; false: it has none. */
bool errand__deadline_replay(errand_runtime *runtime, errand__record *record);
void errand__later_run(errand_runtime *runtime);

/* ---- cleanup.c ---- */
/* Cannot fail: without memory there is no entry, and the completion alone ends it. */
void errand__cleanup_add(errand_runtime *runtime, errand__record *record,
                         const char *error, /* the hook's, or NULL */
                         bool sealed, bool asked);
/* Its hook is called, if it was not: virtual time does not count any more. */
void errand__cleanup_ask(errand_runtime *runtime, errand__record *record);
/* The stuck entry (32 errors in a row) that follows this one by wait and generation (NULL = the
 * first); NULL: there is none. */
const errand__cleanup *errand__cleanup_stuck(const errand_runtime *runtime,
                                             const errand__cleanup *after);
/* The completion of a record with an entry was drained: true if it was a quarantine's (reaped). */
bool errand__cleanup_completed(errand_runtime *runtime, errand__record *record);
void errand__cleanups_fini(errand_runtime *runtime);
/* One reap; true if it made progress.  See O41. */
bool errand__cleanup_visit(errand_runtime *runtime);
uint64_t
errand__cleanup_next(const errand_runtime *runtime); /* earliest due, or UINT64_MAX */
#endif
