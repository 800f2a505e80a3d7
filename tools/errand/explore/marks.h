/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TOOLS_MARKS_H
#define ERRAND_TOOLS_MARKS_H
/* marks: processes that stand still behind certain steps of a run, and what is done with them.
 * Words: a mark is such a process; a branch is a process that goes on from a mark with choices of
 * another seed.  How it works: marks.c. */
#include <sys/types.h>
#include "explore/explore.h"

#define ERRAND__MARKS_MAX 16

typedef struct errand__mark {
    uint64_t step, time_ns; /* it stands behind this step; step 0 = there is none */
    char kind[16];          /* of the step */
    char who[160];          /* the step's task or operation, by its path */
    pid_t pid, branch;      /* branch: the last one */
} errand__mark;

typedef struct errand__marks {
    uint64_t plan[ERRAND__MARKS_MAX]; /* steps, in order */
    size_t count;
    int own[ERRAND__MARKS_MAX], theirs[ERRAND__MARKS_MAX]; /* sockets, an end each */
    struct errand__marks_shared {
        errand__mark marks[ERRAND__MARKS_MAX];
        uint64_t steps;    /* that the run has had so far */
        char problem[200]; /* why no mark could be set; "" = none */
        uint64_t refused;  /* the first step at which that was so */
    } * shared;            /* with the run's process */
} errand__marks;

/* ---- marks.c: the exploring process ------------------------------------------------------------ */
/* Before the trial is started that will set them; false = the system refuses something. */
bool errand__marks_init(errand__marks *marks, const uint64_t *plan, size_t count);
/* Once it is started. */
void errand__marks_started(errand__marks *marks);
/* After the trial has ended: a branch of mark index by this seed, with these descriptors for its
 * verdict and output.  Returns its process, which is a child of the caller, or -1. */
pid_t errand__marks_wake(errand__marks *marks, size_t index, uint64_t seed,
                         int verdict_fd, int output_fd);
/* Ends the marks. */
void errand__marks_fini(errand__marks *marks);

/* ---- marks.c: the run's process ------------------------------------------------------------------ */
/* Before the first step.  verdict_fd: the run's. */
void errand__marks_begin(errand__marks *marks, errand_runtime *runtime, lua_State *L,
                         int verdict_fd);
/* Sets a mark, if one is planned there.  In a branch this returns a second time. */
void errand__marks_step(errand__marks *marks, const errand_step *step);

/* ---- from_step.c: --from-step ----------------------------------------------------------------------- */
/* Finds and prints where this failure is decided, or how it goes on from one step.  trials: as many
 * as jobs, none running.  false = it could not be done; a message said why. */
bool errand__from_step(const errand__explore *explore, errand__script *script,
                       errand__trial *trials, errand__finding *finding);
#endif
