/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SANDBOX_BPF_RUN_H
#define ERRAND_TESTS_WORKERS_SANDBOX_BPF_RUN_H
/* bpf_run: what the kernel would do with a system call under a seccomp program. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

#if defined(__x86_64__)
#define BPF_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define BPF_MACHINE AUDIT_ARCH_AARCH64
#else
#define BPF_MACHINE 0
#endif

/* Fails the test at an instruction that it does not know, and where the program has no end. */
uint32_t bpf_run(const struct sock_filter *program, uint32_t length,
                 const struct seccomp_data *data);

#endif
