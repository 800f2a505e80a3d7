/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_DELIVER_H
#define ERRAND_RUNTIME_DELIVER_H
/* deliver: the part of runtime.h, which includes it, that is this folder's: an operation comes back. */
#include "runtime/runtime.h"

/* Who is resumed when a wait ends, and with what: made by errand_await or a task's await, readied by
 * delivery or cancel, visited once. */
typedef struct errand__resume {
    errand__ready ready; /* link: in the scheduler's ready list once the wait ended */
    errand__link
        waiting; /* in runtime->waits while active, wait key order of registration */
    uint64_t wait_id, generation;
    errand__record *record;           /* while the wait is active; NULL once it ended */
    errand_continuation continuation; /* resume NULL: task's wait */
    errand_task *task;
    errand_reason reason; /* of a cancel */
    bool completed;       /* completion and verdict count */
    bool decoding;        /* its decoder is being called, or was left */
    errand_completion completion;
    errand_verdict verdict;
    errand__failure *failure; /* keeps completion.message alive */
    struct errand__resume *next_free;
} errand__resume;

/* ---- waits.c ---- */
errand__resume *errand__resume_take(errand_runtime *runtime); /* NULL = no memory */
void errand__resume_give(errand_runtime *runtime, errand__resume *resume);
/* Ties a resume object (its continuation or task set) to a record: active. */
void errand__wait_begin(errand_runtime *runtime, errand__record *record,
                        errand__resume *resume);
/* Visit function of a continuation's resume; a task's is errand__task_resume_visit. */
void errand__resume_visit(errand__ready *ready, void *context);
/* Ends an active wait by its completion, which the caller has put into it: readied. */
void errand__wait_complete(errand_runtime *runtime, errand__resume *resume);
/* After a continuation returned, or was left: what it was told is dropped. */
void errand__visit_finish(errand_runtime *runtime);
/* Ends an active wait with a reason: unlinked, decoder dropped, continuation readied. */
void errand__wait_end(errand_runtime *runtime, errand__resume *resume,
                      errand_reason reason);
/* ends without resuming: the continuation's drop is called (abandon, abort, QUIET). */
void errand__wait_forget(errand_runtime *runtime, errand__resume *resume);
/* Drained but not resumed yet (O39): the reason takes the place of the verdict.  False: there is
 * no such wait. */
bool errand__wait_recall(errand_runtime *runtime, const errand_identity *identity,
                         errand_reason reason);
/* Drops verdict and payload that nobody was resumed with; after a visit too. */
void errand__resume_clear(errand_runtime *runtime, errand__resume *resume);

/* ---- drain.c, deliver.c ---- */
/* Takes an operation's completion out of what has come and was not told; false: it is not there. */
bool errand__pending_take(errand_runtime *runtime, errand__record *record);
/* answers.c: jobs that run in other processes.  watch: adds what else the owner has to wait for;
 * NULL = nothing. */
errand__watch *errand__answers_watch(errand_runtime *runtime, errand__watch *watch);
/* Moves what is in the inbox behind pending. */
void errand__collect_some(errand_runtime *runtime);
/* own_leases.c: leases whose ends this thread collects: collect puts what has ended.  Of those whose
 * work is its own too:
 * rest: the thread goes elsewhere, false: there is something to collect; sleep: false: there are
 * none, the inbox is slept on.  See errand__executor_ops. */
void errand__collect_leases(errand_runtime *runtime);
bool errand__leases_own(errand_runtime *runtime); /* is there one */
bool errand__leases_rest(errand_runtime *runtime);
bool errand__leases_sleep(errand_runtime *runtime, uint64_t length_ns);
bool errand__leases_leave(errand_runtime *runtime);
/* What a foreign loop polls.  ESYSTEM. */
errand_status errand__leases_descriptor(errand_runtime *runtime, int *out_fd);
static inline void
errand__collect(errand_runtime *runtime)
{
    if (__builtin_expect(runtime->collectors != 0, 0))
        errand__collect_leases(runtime);
    if (!errand__inbox_empty(runtime->block))
        errand__collect_some(runtime);
}
/* Takes the next item of pending: a completion is routed, given to fn and dropped; a command runs.
 * Answers what it was. */
typedef enum errand__item {
    ERRAND__ITEM_NONE = 0,
    ERRAND__ITEM_COMPLETION = 1,
    ERRAND__ITEM_COMMAND = 2
} errand__item;
errand__item errand__deliver_next(errand_runtime *runtime, errand_completion_fn *fn,
                                  void *arg);
/* What an unwind left in hand, or the end of a delivery: drops, follow-ups, recycling. */
void errand__hand_finish(errand_runtime *runtime);
/* The body of a held operation came back and its completion was drained: the rest is dropped. */
void errand__held_finish(errand_runtime *runtime, errand__record *record);
/* Keeps the wake descriptor's promise at the end of a drain or turn (fd_wanted). */
void errand__fd_update(errand_runtime *runtime);
/* The same for what became buffered outside of them: by a call, a park or an unwind. */
void errand__fd_news(errand_runtime *runtime);
/* Sleeps until something comes, whatever the clock says (a test clock stands still meanwhile). */
void errand__park_news(errand_runtime *runtime);
/* One completion, of a record that is not in the chain any more. */
void errand__deliver(errand_runtime *runtime, errand__record *record,
                     errand_completion_fn *fn, void *arg);

/* ---- follows.c ---- */
/* What the operation in hand handed on: for the next run, or dropped: how far a body came that was
 * stopped early shows in nothing. */
void errand__follows_take(errand_runtime *runtime, errand__record *record);
void errand__follows_drop(errand_runtime *runtime, errand__record *record);
/* Submits those that find room, in call order (O54). */
void errand__follows_run(errand_runtime *runtime);
/* At the end those that found none are dropped. */
void errand__follows_fini(errand_runtime *runtime);

/* ---- park.c ---- */
uint64_t errand__next_deadline(const errand_runtime *runtime);
void errand__park(errand_runtime *runtime, uint64_t deadline_ns);
/* Sleeps on the inbox after the executors were asked; true: one of them wants to be asked again. */
bool errand__sleep_at_most(errand_runtime *runtime, uint64_t length_ns);
#endif
