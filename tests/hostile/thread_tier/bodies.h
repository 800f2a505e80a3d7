/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_THREAD_TIER_BODIES_H
#define ERRAND_TESTS_HOSTILE_THREAD_TIER_BODIES_H
/* bodies: what a job on a thread may do wrong, and what its host does next, one case each. */
#include "errand.h"

/* How the process of the case ends.  Before that its host says whether it heard of the job. */
typedef enum tier_end {
    TIER_GOES_ON = 1, /* heard of the job, and what the host does next works */
    TIER_HANGS = 2,   /* heard of the job; what the host does next never returns */
    TIER_KILLED = 3,  /* by the signal, before it heard */
    TIER_EXITS = 4    /* by itself, before it heard */
} tier_end;

typedef struct tier_case {
    const char *name;
    tier_end end;
    errand_outcome outcome; /* of the job, where it is heard of */
    int signal_number;      /* of the completion, or that kills the process; -1 = any */
    bool suspect;           /* the verdict on a crash */
    int32_t (*run)(errand_job *job, void *state, errand_payload *out_payload);
    void (*probe)(void); /* what the host does next; NULL = memory, a stream, a library */
} tier_case;
/* Mistakes; locks that stay held; attacks on the mechanism. */
extern const tier_case tier_mistakes[], tier_locks[], tier_attacks[];
extern const size_t tier_mistake_count, tier_lock_count, tier_attack_count;

/* Writes one word a page below the stack's guard, in one step of size bytes: compiled twice (jump.c). */
void tier_jump_plain(size_t size, size_t low);
void tier_jump_probed(size_t size, size_t low);
#endif
