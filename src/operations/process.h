/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_OPERATIONS_PROCESS_H
#define ERRAND_OPERATIONS_PROCESS_H
/* process, inside: the object (process.c), its start (spawn.c) and its pipes (pipes.c). */
#include "errand/process.h"
#include "operations/operations.h"

typedef struct errand__pipe {
    errand_process *process;
    errand__seat seat;
    int fd;       /* -1 = none */
    bool missing; /* it was none from the start: a replay knows that, too */
} errand__pipe;
struct errand_process {
    /* refs: the host's references and those of operations and sources.
     * Writers: whoever holds or abandons.   Readers: the same.
     * Order:   fetch_sub acq_rel.
     * Pairs:   process-refs.
     * Why:     the last one ends and reaps what the others used. */
    atomic_uint refs;
    int32_t pid; /* immutable */
    uint64_t term_ns;
    errand__pipe in, out, err; /* each used by who has its seat */
    errand__seat seat;         /* of a wait */
    errand__lock lock;
    /* Guarded by lock. */
    errand__child child; /* pid 0 = reaped, and its number somebody else's */
    bool lost;
    errand_exit exit;
};
errand_process *errand__process_create(void); /* without a child; NULL = no memory */
#endif
