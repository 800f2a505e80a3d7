/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_TIER_H
#define ERRAND_TESTS_HOSTILE_TIER_H
/* tier: functions of real libraries, called by the same description on a thread and in a sandbox. */
#include <string.h>
#include "errand/ffi.h"
#include "group.h"
#include "pool.h"

typedef struct tier {
    hostile_pool pool; /* the executor is the tier's */
    bool sandboxed;
    errand_ffi_library
        *kept; /* a thread's library goes with who holds it, and all that it made */
    /* Of the last call; outputs are copied. */
    int64_t number;
    double real;
    char text[256];
    unsigned char *out[4];
    size_t out_size[4];
} tier;

/* Functions whose results are addresses that later calls are given: a sandbox must know all of them from
 * the start.  One that it does not know yet is for a worker that is started then, who knows nothing of them. */
typedef struct known {
    const char *library, *signature;
} known;

bool tier_installed(const char *library); /* else it has said which is not */
/* The list may be NULL. */
void tier_begin(tier *self, bool sandboxed, const known *list);
void tier_end(tier *self);
/* Calls library's function of that signature; answers how it ended (ENDS_ODD: it came back). */
int tier_call(tier *self, const char *library, const char *signature,
              const errand_ffi_value *arguments, size_t count);
#define CALL(self, library, signature, ...)                                              \
    tier_call(self, library, signature, (const errand_ffi_value[]){__VA_ARGS__},         \
              sizeof((const errand_ffi_value[]){__VA_ARGS__}) /                          \
                  sizeof(errand_ffi_value))
/* The test on a thread, then in a sandbox that knows the list (NULL = none) from the start. */
void tier_in_both(void (*test)(tier *self), const known *list);

#endif
