/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SANDBOX_INSIDE_RIG_H
#define ERRAND_TESTS_WORKERS_SANDBOX_INSIDE_RIG_H
/* inside_rig: a host of the smallest kind for one errand-worker: it writes the set-up, starts the
 * program, rings, waits for at most some seconds, and reads the answer.  The pool is not needed. */
#include <sys/types.h>
#include "group.h"
#include "workers/sandbox/policy.h"
#include "workers/sandbox/wire.h"

typedef struct inside {
    pid_t pid;
    int lifeline;    /* its other end */
    int wait_status; /* when it was reaped; else -1 */
    errand__wire_request *request;
    errand__wire_response *response;
    size_t request_size, response_size;
    errand__wire_waiter waiter;
    uint32_t sequence;
    uint64_t seen;
    unsigned patience_s; /* how long a wait may last; 0 = 20 */
} inside;

/* How a start differs from the usual one; zeroed: in nothing. */
typedef struct inside_start_how {
    const errand_sandbox_policy
        *policy; /* NULL = defaults, with an entry for each symbol of hostile.so */
    const errand_entry *entries; /* NULL = those of the policy */
    size_t entry_count;
    size_t response_bytes; /* 0 = 64 KiB */
    size_t body_bytes;     /* 0 = 64 KiB; a borrowed region of the same size follows it */
    bool unsealed;         /* the request file can be written by the worker */
    bool other_version, other_parent;
    void (*prepare)(void *arg); /* in the child, before it becomes the worker */
    void *prepare_arg;
    const char *const *before; /* words of a program that starts it, for example strace */
} inside_start_how;

/* Starts one; does not wait until it is ready. */
void inside_start(inside *self, const inside_start_how *how);
/* Waits until ready is not 0; answers it; 0 = it ended without a word (it is reaped then). */
uint32_t inside_ready(inside *self);
void inside_start_ready(inside *self,
                        const inside_start_how *how); /* asserts that it is */
/* Writes the fields of a CALL and rings. */
void inside_ask(inside *self, uint32_t entry, const void *bytes, size_t size);
void inside_command(inside *self, uint32_t command); /* GO_ON, RETURN, EXIT */
/* Waits for the answer to the last command; its status, or 0 if the worker ended (reaped). */
uint32_t inside_answer(inside *self, uint32_t *out_length);
const unsigned char *inside_bytes(const inside *self);            /* of the answer */
unsigned char *inside_region(inside *self, uint64_t *out_offset); /* the borrowed one */
/* Ends it, if it still runs, and gives everything back. */
void inside_end(inside *self);
/* Waits until it has ended: wait_status; fails the test after some seconds. */
int inside_wait(inside *self);

/* A policy with these promises and the entries of the hostile object. */
errand_sandbox_policy inside_policy(uint32_t promises);
/* Before the start: becomes nobody.  Skips the test where that cannot start the program. */
void inside_become_nobody(void *unused);
void inside_need_root(void);
void inside_need_nobody(void);
/* Before the start: this system call answers error (arguments: only with that size, if not 0). */
typedef struct inside_refusal {
    const char *call;
    int error;
    unsigned argument; /* index */
    uint64_t equals;   /* 0 = whatever it is */
} inside_refusal;
void inside_refuse_call(void *refusal);
/* Does this machine have it?  Skips the test, with that reason, where not. */
void inside_need_layer(uint32_t layer);
/* Landlock's ABI here; 0 = none. */
int inside_landlock_abi(void);

#endif
