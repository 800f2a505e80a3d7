/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TOOLS_MINIMISE_H
#define ERRAND_TOOLS_MINIMISE_H
/* minimise: what the files of the minimiser share.
 *
 * It holds the best candidate so far: a policy and a tape whose missing choices are 0.  A smaller
 * one takes its place only if a run of it, in a child, ends with the very same fingerprint.
 * The tape that this run recorded is the next best, so it holds only what was really asked. */
#include "explore/explore.h"

struct errand__minimised {
    bool tried, made;               /* a tape was written */
    bool proven;                    /* the line with the tape failed in the same way */
    bool in_time;                   /* nothing is left that could be tried */
    size_t items_before, items;     /* of workloads, 0 = there is none */
    size_t choices_before, choices; /* that are not 0, but for workloads */
    uint64_t runs, elapsed_ns;
    errand_choices choices_of; /* the policy */
    char path[ERRAND__PATH_SIZE];
    const char *why; /* not made: the reason */
};

typedef struct errand__minimiser {
    const errand__explore *explore;
    errand__script *held_script;
    const errand__fingerprint *wanted;
    uint64_t seed;
    uint64_t end_ns, timeout_ns;
    uint64_t runs;
    errand_choices choices; /* of the best one: its policy, depth and steps */
    errand_tape *best;
    errand_tape *record; /* empty: a child's copy takes what the child chooses */
    errand__trial *trials;
    errand__meter meter;
    const char *phase;
} errand__minimiser;

/* One thing to try; the tape is the candidate's. */
typedef struct errand__candidate {
    errand_choices choices;
    errand_tape *tape;
    bool from_seed; /* what the tape lacks comes from this seed */
    uint64_t seed;
} errand__candidate;

/* ---- candidate.c --------------------------------------------------------------------------------- */
/* Runs count candidates, at most explore->jobs, and takes the first that fails as wanted for the
 * best.  Gives their tapes up.  Returns its index, or -1. */
int errand__candidate_try(errand__minimiser *minimiser, errand__candidate *candidates,
                          size_t count);
/* A candidate like the best one; false = no memory. */
bool errand__candidate_copy(const errand__minimiser *minimiser, errand__candidate *out);
/* Time is over, or a signal came. */
bool errand__candidate_late(const errand__minimiser *minimiser);
/* How many choices of the tape are left: items that stay, or choices that are not 0. */
size_t errand__candidate_items(errand_tape *tape);
size_t errand__candidate_choices(errand_tape *tape);
/* Copies what still can be taken away, of one sort, into a list for free(). */
errand_choice *errand__candidate_list(errand_tape *tape, bool items, size_t *out_count);

/* ---- reduce.c: what is taken away ---------------------------------------------------------------- */
void errand__reduce_policy(errand__minimiser *minimiser);
/* Items of workloads, or choices of the tape, block by block. */
void errand__reduce_blocks(errand__minimiser *minimiser, bool items);
/* Items of workloads, where a run under a few other seeds may show the failure too. */
void errand__reduce_items_anew(errand__minimiser *minimiser);
/* Everything behind the failure, or behind what is needed for it. */
void errand__reduce_end(errand__minimiser *minimiser);
void errand__reduce_values(errand__minimiser *minimiser);

/* ---- minimise.c ------------------------------------------------------------------------------------ */
/* Makes the failure of a seed small, writes the tape and proves it. */
void errand__minimise(const errand__explore *explore, errand__script *held_script,
                      errand__trial *trials, const errand__fingerprint *wanted,
                      uint64_t seed, errand__minimised *out);
#endif
