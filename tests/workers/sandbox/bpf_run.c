/* SPDX-License-Identifier: MIT */
#include "bpf_run.h"

#include <string.h>
#include "group.h"

uint32_t
bpf_run(const struct sock_filter *program, uint32_t length,
        const struct seccomp_data *data)
{
    uint32_t a = 0;
    for (uint32_t at = 0; at < length; at++) {
        const struct sock_filter *now = &program[at];
        bool yes = false;
        switch (now->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(now->k + 4 <= sizeof *data && now->k % 4 == 0);
            memcpy(&a, (const char *)data + now->k, 4);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= now->k;
            continue;
        case BPF_RET | BPF_K:
            return now->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == now->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= now->k;
            break;
        default:
            fail_msg("instruction 0x%x is none that is known here", now->code);
        }
        at += yes ? now->jt : now->jf;
    }
    fail_msg("the program runs over its end");
    return 0;
}
