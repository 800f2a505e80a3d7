/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SCHEDULER_CHOICES_H
#define ERRAND_SCHEDULER_CHOICES_H
/* choices: the part of scheduler.h, which includes it, that decides and writes down: choices,
 * policies, the draws of operations, the audit.  Owner thread only. */
#include "errand/choice.h"
#include "errand/order.h"
#include "scheduler/queue.h"

typedef struct errand__scheduler errand__scheduler;

/* ---- choices (choice.c) ------------------------------------------------------------------------ */
typedef struct errand__chooser {
    bool plain; /* by the seed alone, and nobody records */
    errand_choices given;
    size_t bytes_used;
} errand__chooser;
/* OK, or what is wrong with them. */
errand_status errand__choices_check(const errand_choices *choices, const char **out_text);
void errand__chooser_init(errand__scheduler *scheduler, const errand_choices *choices);
/* From here on by this seed; what a policy chose and has not come to yet is chosen anew. */
void errand__chooser_branch(errand__scheduler *scheduler, uint64_t seed);
/* By the seed, in the place of an earlier choice: one of least .. n - 1. */
uint64_t errand__choose_again(errand__scheduler *scheduler, errand_site site,
                              uint64_t key, uint64_t ordinal, uint64_t least, uint64_t n);
/* The one seam: one of 0 .. n - 1, n = 0 meaning 2^64.  Nothing else draws. */
uint64_t errand__choose(errand__scheduler *scheduler, errand_site site, uint64_t key,
                        uint64_t ordinal, uint64_t n);
/* The four choices of an operation, as errand__choose would make them one by one. */
typedef struct errand__operation_choices {
    uint64_t latency, begin, tie; /* of 2^32 */
    uint64_t fate;                /* of 2^64 */
} errand__operation_choices;
errand__operation_choices errand__choose_operation(errand__scheduler *scheduler,
                                                   uint64_t key);
/* tape.c: the choice's value, if the tape has it; put what was chosen, or count it as lost. */
bool errand__tape_ask(errand_tape *tape, const errand_choice *asked, uint64_t *out_value);
void errand__tape_record(errand_tape *tape, const errand_choice *choice);
bool errand__tape_has_lost(const errand_tape *tape);
static inline bool
errand__site_known(errand_site site)
{
    return (unsigned)site - 1 < (unsigned)ERRAND_SITES;
}
/* NULL = it is well formed. */
const char *errand__choice_fault(const errand_choice *choice);
/* enumerate.c */
uint64_t errand__enumerator_choose(errand_enumerator *enumerator, errand_site site,
                                   uint64_t n);

/* ---- policies (policy.c) ------------------------------------------------------------------------- */
typedef struct errand__policy {
    errand_policy kind; /* shuffle in arrival order, where it does nothing */
    bool fair;
    uint32_t depth;
    uint64_t steps;
    uint64_t picks; /* by unfair policies */
    size_t left;    /* picks of this instant */
    struct {
        uint64_t first, length; /* picks count from 1; 0 = never */
    } points[ERRAND_DEPTH_MAX];
} errand__policy;
void errand__policy_init(errand__scheduler *scheduler);
void errand__policy_branch(errand__scheduler *scheduler);
/* Unfair: an item was readied; the next one, which stays in the ready list (not empty). */
void errand__policy_readied(errand__scheduler *scheduler, errand__ready *ready);
errand__ready *errand__policy_pick(errand__scheduler *scheduler);

#define ERRAND__LABELS_KNOWN 8
typedef struct errand__label_known {
    char text[24]; /* "" = none */
    uint64_t hash;
} errand__label_known;

/* ---- audit (audit.c) ----------------------------------------------------------------------------- */
typedef struct errand__audit {
    bool seeded;
    bool only_folds; /* seeded, and no trace, record or replay: see errand__audit_heard */
    uint64_t mix, steps;
    uint64_t chosen; /* values since the last step, folded */
    uint64_t ready;  /* hash of what was ready when the pass was taken */
    uint64_t
        plain; /* errand__mix_words of four zeros: a completion with nothing to tell */
    errand_trace_fn *trace;
    void *trace_arg;
    /* A recorder hears of each step: with its bytes and its label's hash. */
    void (*record)(void *arg, const errand_step *step, const unsigned char *bytes,
                   uint64_t label_hash);
    void *record_arg;
    /* A replay compares each step, and says what time it is where the program asks. */
    void (*replay)(void *arg, const errand_step *step);
    bool (*replay_time)(void *arg, uint64_t *out_now);
    void *replay_arg;
    bool inputs; /* arrival order: what is real gets steps, too */
} errand__audit;
static inline bool
errand__audit_listens(const errand__audit *audit)
{
    return audit->seeded || audit->trace != NULL || audit->record != NULL ||
           audit->replay != NULL;
}
/* The common case: nobody hears of a step, the digest takes it in. */
static inline bool
errand__audit_only_folds(const errand__audit *audit)
{
    return audit->only_folds;
}
/* trace, record or replay has changed. */
static inline void
errand__audit_heard(errand__audit *audit)
{
    audit->only_folds =
        audit->seeded && ((uintptr_t)audit->trace | (uintptr_t)audit->record |
                          (uintptr_t)audit->replay) == 0;
}
/* One step: folded into the digest in seeded orders, handed to trace and recorder in all. */
void errand__audit_step(errand__scheduler *scheduler, errand_step_kind kind,
                        uint32_t detail, uint64_t key, uint64_t value, const char *label);
/* The same, with what it hangs on, and the label's hash known already (errand__label_hash).
 * step: all but its number and time are the caller's. */
void errand__audit_event(errand__scheduler *scheduler, const errand_step *step,
                         uint64_t label_hash);

/* errand__label_hash, remembered: names come again and again, and to compare one takes a third of
 * hashing it. */
uint64_t errand__label_recall(errand__scheduler *scheduler, const char *label);

/* The digest, with the choices that no step followed yet. */
uint64_t errand__audit_digest(const errand__audit *audit);

/* ---- draws (order.c) ------------------------------------------------------------------------------ */
typedef struct errand__latency {
    uint32_t kind;
    uint64_t estimate;
} errand__latency;
#define ERRAND__LATENCY_DEFAULT UINT64_C(1000000) /* 1 ms */
#define ERRAND__LATENCY_MAX     (UINT64_C(1) << 62)
errand_status errand__latency_set(errand__scheduler *scheduler, uint32_t kind,
                                  uint64_t estimate);
uint64_t errand__latency_of(const errand__scheduler *scheduler, uint32_t kind);
/* Room for count queued operations at once: asked for where memory may still run out (bind). */
bool errand__order_reserve(errand__scheduler *scheduler, size_t count);
/* draw: key, begin, due, tie and fate of an operation that is submitted now, and its place in the due
 * heap (paced: and in that of begins, if it does not begin at once).  A function of (seed, key, kind's estimate, now) and, in a
 * domain, of the one before it: its due is no earlier, its tie behind it, its begin not before its
 * due (D142).  forget: takes it out again; harmless twice. */
void errand__order_draw(errand__scheduler *scheduler, errand__extra *extra, uint64_t key,
                        uint32_t kind);
void errand__order_forget(errand__scheduler *scheduler, errand__extra *extra);
uint64_t errand__order_next(errand__scheduler *scheduler); /* earliest due; UINT64_MAX */
#endif
