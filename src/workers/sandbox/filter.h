/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_FILTER_H
#define ERRAND_SANDBOX_FILTER_H
/* filter: promises of a policy -> seccomp programs, made by the host once per policy. */
#include "errand/sandbox.h"
#include "workers/sandbox/wire.h"

struct sock_filter;
typedef enum errand__filter_stage {
    ERRAND__FILTER_LOADING =
        0, /* while libraries are opened: the final list and what that needs */
    ERRAND__FILTER_SERVING = 1 /* from then on */
} errand__filter_stage;
typedef struct errand__filter {
    struct sock_filter *program;
    uint32_t length;
    uint32_t tgid_count, tgid_patch[ERRAND__WIRE_TGIDS]; /* whose k is the process id */
} errand__filter;

/* Where it cannot be made, answers ENOMEM or EUNSUPPORTED and says in out_text why. */
ERRAND_MUST_USE errand_status errand__filter_create(uint32_t promises,
                                                    errand_on_deny on_deny,
                                                    errand__filter_stage stage,
                                                    errand__filter *out_filter,
                                                    char *out_text, size_t size);
void errand__filter_destroy(errand__filter *filter); /* zeroed: nothing */
/* "openat", or "call 999": into out, of size bytes. */
void errand__filter_call_name(int number, char *out, size_t size);

#endif
