/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SCHEDULER_QUEUE_H
#define ERRAND_SCHEDULER_QUEUE_H
/* queue: the part of scheduler.h, which includes it, that says what is next: timers and ready items.
 * Owner thread only. */
#include "inbox/inbox.h"
#include "errand/task.h"

typedef struct errand__scheduler errand__scheduler;

/* ---- timers (timers.c): (deadline, registration) order ------------------------------------ */
typedef struct errand__timer {
    errand__heap_entry
        entry; /* major = deadline, minor = registration, last = key (audit) */
    void (*fire)(struct errand__timer *timer,
                 void *context); /* context: the scheduler's */
} errand__timer;
/* Room for count timers at once, so that add cannot fail. */
bool errand__timers_reserve(errand__scheduler *scheduler, size_t count);
/* A deadline of UINT64_MAX counts as no timer: nothing is added. */
void errand__timer_add(errand__scheduler *scheduler, errand__timer *timer,
                       uint64_t deadline, uint64_t key);
void errand__timer_remove(errand__scheduler *scheduler,
                          errand__timer *timer);                  /* harmless twice */
uint64_t errand__timers_next(const errand__scheduler *scheduler); /* UINT64_MAX = none */
/* Fires the first timer with a deadline of at most until that was registered before registration
 * (scheduler->registrations at the start of a turn, so that a turn ends). */
bool errand__timers_fire(errand__scheduler *scheduler, uint64_t until,
                         uint64_t registration);

/* ---- ready items (pass.c): what one visit of a turn runs ------------------------------------- */
typedef struct errand__ready {
    void (*visit)(struct errand__ready *ready, void *context);
    errand_task *task; /* whose visit it is, or NULL */
    uint64_t key;      /* what its choices hang on; a task's is the task's */
    uint64_t ordinal;  /* of this visit */
    uint64_t place;    /* chosen: the smallest goes first (shuffle, pct) */
    /* What an item keeps from visit to visit; see errand__ready_item. */
    uint64_t rank;           /* pct: its place + 1; 0 = not chosen yet */
    uint32_t asked, starves; /* starve: by window */
    /* Last what an item needs that is visited through another, beside what a task has next. */
    uint64_t visits; /* readied so often */
    errand__link link;
} errand__ready;
/* A task that awaits an operation is visited through another object: both are one item. */
errand__ready *errand__ready_item(errand__ready *ready);
void errand__ready_append(errand__scheduler *scheduler, errand__ready *ready);
/* For this very pass. */
void errand__ready_append_soon(errand__scheduler *scheduler, errand__ready *ready);
/* Under fair policies a pass is a snapshot of the ready list (D3): begin takes all of it, permuted
 * by choice if there are two or more (D4, D5).  Under the others it is a number of picks.  next
 * unlinks and answers what is to be visited; NULL = the pass is over.  pending: it is not. */
void errand__pass_begin(errand__scheduler *scheduler);
errand__ready *errand__pass_next(errand__scheduler *scheduler);
bool errand__pass_pending(const errand__scheduler *scheduler);
#endif
