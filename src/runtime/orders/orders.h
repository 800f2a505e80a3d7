/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_ORDERS_H
#define ERRAND_RUNTIME_ORDERS_H
/* orders: the part of runtime.h, which includes it, that is this folder's: the seeded orders. */
#include "runtime/runtime.h"

/* What is known of a payload type. */
typedef struct errand__digesters {
    struct errand__digesters *next;
    const errand_payload_type *type;
    uint64_t (*digest)(const void *data, size_t size); /* or NULL */
    const errand_payload_codec *codec;                 /* or NULL */
    const char *codec_name;
} errand__digesters;

/* ---- due.c ---- */
/* Seeded orders, after the count and before the arming cannot fail any more: draws begin, due, tie and
 * fate into record->extra, puts it into the due heap, audits. */
void errand__order_queue(errand_runtime *runtime, errand__record *record,
                         errand_task *task);
/* Key of the operation that is submitted now, by this task or (NULL) outside of any. */
uint64_t errand__submit_key(errand_runtime *runtime, errand_task *task);
/* Seeded orders: moves virtual time; the only place that does.  event: the earliest of dues, timers,
 * deadlines and reaps; UINT64_MAX = none. */
void errand__order_move(errand_runtime *runtime, uint64_t to);
uint64_t errand__order_event(errand_runtime *runtime);

/* Seeded orders: the earliest due operation is run to its end (manual step, or its worker is waited for) and
 * delivered.  False: none is due at or before limit, which is now at most: time is moved before. */
bool errand__due_next(errand_runtime *runtime, uint64_t limit, errand_completion_fn *fn,
                      void *arg);
/* due_here.c: runs the job on this very thread if its executor can, and has it in hand then, settled
 * and not put; false: it goes the way of all others. */
bool errand__due_run_here(errand_lease *lease, errand__record *record);
/* Moves virtual time towards limit: to the next due, timer or deadline, or limit, whichever is first. */
void errand__order_advance(errand_runtime *runtime, uint64_t limit);

/* ---- order.c ---- */
/* One audit step for the completion in hand, which nobody has been told of yet; in arrival order
 * for a submission. */
void errand__completion_audit(errand_runtime *runtime, errand__record *record);
void errand__submit_audit(errand_runtime *runtime, errand__record *record,
                          errand_task *task);
void errand__order_fini(errand_runtime *runtime); /* digesters */
/* What is known of the type, or NULL; need: made if it is not there, NULL = no memory. */
errand__digesters *errand__digester_find(const errand_runtime *runtime,
                                         const errand_payload_type *type);
errand__digesters *errand__digester_need(errand_runtime *runtime,
                                         const errand_payload_type *type);

/* ---- paced.c, watchdog.c ---- */
/* Its begin has come: it is handed over. */
void errand__paced_hand(errand_runtime *runtime, errand__record *record);
/* Virtual time was moved: whoever has begun is handed over. */
void errand__paced_begin(errand_runtime *runtime);
/* Completions of a chain that are not due stay aside; answers the rest of it. */
uintptr_t errand__paced_sift(errand_runtime *runtime, uintptr_t first, uintptr_t *last);
/* The first due operation, once its completion is there; NULL: none is due, or it cannot be waited
 * for (the end, or something real). */
errand__record *errand__paced_due(errand_runtime *runtime, uint64_t limit);
/* The end: what has come is told, earliest due first; dues are over. */
void errand__paced_release(errand_runtime *runtime);
/* Sleeps for an operation that is due, until news come or it is time to look again; *since: when
 * the wait began, 0 at first.  False: the end's deadline passed, or the watchdog ended the run. */
bool errand__due_sleep(errand_runtime *runtime, errand__record *record, uint64_t *since);
/* Did its completion come because nobody was there to run it?  Then the run has ended. */
bool errand__due_lost(errand_runtime *runtime, const errand__record *record);
/* It says DEADLINE: if its executor's own limit did that, the run is not the seed's alone. */
void errand__due_limited(errand_runtime *runtime, const errand__record *record);
/* The run ends: no thread could be made for this operation. */
void errand__external_thread(errand_runtime *runtime, const char *name, uint32_t kind);

/* ---- asked.c ---- */
/* Commands of jobs.  aside: kept for the due of its job; false: it is none.  sift: the same with a
 * chain; answers the rest.  run: what a job asked; true if there was something.  release: all of it
 * becomes news, from now on. */
bool errand__asked_aside(errand_runtime *runtime, uintptr_t link);
uintptr_t errand__asked_sift(errand_runtime *runtime, uintptr_t first, uintptr_t *last);
bool errand__asked_run(errand_runtime *runtime, const errand__record *record);
void errand__asked_release(errand_runtime *runtime);
#endif
