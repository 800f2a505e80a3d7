/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_BPF_H
#define ERRAND_SANDBOX_BPF_H
/* bpf: a seccomp program, written one system call after the other.
 *
 * Each call gets rules; the first that matches decides.  Who names a call first decides it: its later
 * rules have no say, and those of a call that has no number here are left out.  Other machines' calls
 * and x32's end the process.  The first error stays and is told at the end. */
#include <linux/filter.h>
#include "core/core.h"

enum {
    ERRAND__BPF_CALLS = 450, /* from here on: newer than what is written here */
    ERRAND__BPF_TESTS = 3    /* of one rule */
};
/* (argument & mask) == value; value has no bit beside those of mask. */
typedef struct errand__bpf_test {
    unsigned argument;
    uint64_t mask, value;
} errand__bpf_test;
typedef struct errand__bpf {
    struct sock_filter *code;
    uint32_t length;
    uint32_t otherwise; /* the action of what no rule matches */
    uint32_t opened;    /* where the call at hand asks for its number; 0: there is none */
    bool decided;       /* it has a rule that always matches */
    int error;          /* an errno; 0 = none */
} errand__bpf;

/* machine: an AUDIT_ARCH_ value.  Actions are SECCOMP_RET_ values; newer: that of calls from
 * ERRAND__BPF_CALLS on. */
void errand__bpf_begin(errand__bpf *self, uint32_t machine, uint32_t newer,
                       uint32_t otherwise);
/* The rules that follow are that call's; number < 0: nobody's. */
void errand__bpf_call(errand__bpf *self, int number);
/* Where all of count tests hold. */
void errand__bpf_rule(errand__bpf *self, uint32_t action, unsigned count,
                      const errand__bpf_test *tests);
/* An errno: ENOMEM, E2BIG.  Else the program is the caller's, to be freed with that length. */
int errand__bpf_finish(errand__bpf *self, struct sock_filter **out_program,
                       uint32_t *out_length);

#endif
