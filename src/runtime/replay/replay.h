/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_REPLAY_H
#define ERRAND_RUNTIME_REPLAY_H
/* replay: a log that a run follows: where it is, and what is in hand of it.  Owner thread only. */
#include "runtime/runtime.h"

struct errand_replay {
    errand_log *log;
    bool run_jobs;
    errand_log_step next; /* if has: read and not met yet */
    bool has;
    bool begun, ended; /* its runtime */
    bool live;         /* it is followed */
    uint64_t met;      /* steps */
    errand_runtime *runtime;
    const _Atomic uintptr_t *owner; /* of its runtime while that lives */
    uint32_t found;                 /* slot of the operation that was looked for last */
    /* The result in hand: the payload that was made of the next step's bytes. */
    const errand__record *settled;
    errand_payload payload;
    errand_status status;
    char text[1024];
};

/* replay_text.c: the run has left the log.  instead NULL: it came to this step. */
void errand__replay_say(errand_replay *replay, const errand_step *step,
                        const char *instead);
/* A sentence that says all. */
void errand__replay_end(errand_runtime *runtime);

#endif
