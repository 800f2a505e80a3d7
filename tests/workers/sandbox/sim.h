/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SANDBOX_SIM_H
#define ERRAND_TESTS_WORKERS_SANDBOX_SIM_H
/* sim: workers that are threads of this process, behind the pool's launcher: they map the files
 * themselves, as a process would, speak the wire, and behave as badly as their request says. */
#include "workers/sandbox/sandbox.h"

typedef enum sim_act {
    SIM_ECHO = 1, /* the bytes behind the request's head */
    SIM_PATTERN,  /* number bytes of sim_byte, in pieces */
    SIM_FAIL, /* ERROR with code number, text "sim failed", the errno above it or ENOMEM */
    SIM_HANG,           /* never answers */
    SIM_OBEY,           /* answers ERROR 7 when it is asked to end */
    SIM_DIE,            /* ends as number says: CLD_... << 8 | status */
    SIM_DONE_DIE,       /* answers, wakes, ends by SIGSEGV */
    SIM_DONE_DIE_QUIET, /* answers, ends without a wake */
    SIM_PIECE_DIE,      /* hands over one piece, ends at the next command */
    SIM_NO_WAKE,        /* answers without a wake, after number us */
    SIM_LENGTH,         /* DONE with that length, as 32 bits */
    SIM_STATUS,         /* that status */
    SIM_SEQUENCE,       /* DONE with the sequence plus number */
    SIM_SCRIBBLE,       /* writes random words over the whole response file */
    SIM_STORM,          /* wakes for ever and answers nothing */
    SIM_STUTTER,        /* changes the answer for ever, with the sequence before */
    SIM_TWICE,          /* answers, then answers again with other bytes */
    SIM_FLIP,           /* answers, then changes bytes and answer until it is killed */
    SIM_AHEAD,          /* answers, then answers the next command before it comes */
    SIM_EMPTY_PIECES,   /* MORE with no bytes, for ever */
    SIM_PIECES,         /* MORE with one byte, for ever */
    SIM_BIG_ERROR,      /* ERROR of more bytes than it has */
    SIM_LARGE,          /* LARGE with that length */
    SIM_PEEK,           /* answers one byte: is anything of a job before this one left? */
    SIM_ASK, /* asks the host with the bytes behind the head, answers what it says */
    SIM_SLOW /* echo after number us */
} sim_act;

typedef struct sim_request { /* the head of a request */
    uint32_t act, reserved;
    uint64_t number;
} sim_request;

typedef struct sim { /* the launcher's; zeroed, then set by the test before create */
    /* Set by a test; read by starts. */
    atomic_int start_error;  /* start answers it */
    atomic_int setup_status; /* not 0: not ready, exits with it */
    atomic_bool never_ready;
    atomic_bool thief; /* ends are not known */
    atomic_bool deaf;  /* a kill takes effect when this is false again */
    atomic_int
        ahead; /* of SIM_AHEAD: 1 = answer the question that is not there yet; 2 = done */
    /* Counted. */
    atomic_uint starts, kills, reaps;
    atomic_uint living; /* threads */
} sim;

static inline unsigned char
sim_byte(uint64_t index)
{
    return (unsigned char)(index * 31 + index / 251 + 7);
}
errand__launcher sim_launcher(sim *self);
#endif
