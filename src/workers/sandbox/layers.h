/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_LAYERS_H
#define ERRAND_SANDBOX_LAYERS_H
/* layers: what of the kernel can be used here, found by trying. */
#include <stdbool.h>
#include <stdint.h>

typedef struct errand__layers {
    char kernel[64]; /* release */
    bool root;
    uint32_t processors;
    /* Confinement; errors are 0 where it works. */
    int seccomp_error, landlock_abi, landlock_error;
    int user_error, net_error, ipc_error,
        pid_error;        /* namespaces: each inside a user's own */
    int group_error;      /* a control group that counts memory, made as for a worker */
    bool group_unified;   /* of version 2 */
    char group_place[96]; /* below which folder; cut */
    /* What the host's side uses. */
    int future_write_error; /* a file that one side may only read */
    int pidfd_error, pidfd_info_error, close_range_error;
    int futex_waitv_error;
    int io_uring_error;
    int io_uring_disabled; /* the sysctl: 0 1 2; -1 = there is none */
    uint64_t descriptors;  /* the limit */
} errand__layers;

void errand__layers_probe(errand__layers *out_layers);

#endif
