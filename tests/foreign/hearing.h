/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_FOREIGN_HEARING_H
#define ERRAND_TESTS_FOREIGN_HEARING_H
/* hearing: a callback "i32(i32, string)" that remembers what it heard. */
#include <pthread.h>
#include "rig.h"

typedef struct heard {
    ffi_rig *rig;
    int count;
    pthread_t thread;
    int64_t number;
    char text[32];
    uint64_t virtual_ns;
    errand_ffi_value answer;
} heard;

extern const char hearing_plain[];

void hear(void *arg, const errand_ffi_value *arguments, uint32_t count,
          errand_ffi_value *out_result);
/* Any callback; of hearing_plain the default is -77. */
errand_ffi_callback *hearing_of(heard *self, const char *signature,
                                errand_ffi_callback_fn *handler, uint32_t flags);
/* The plain one: answers 42. */
errand_ffi_callback *hearing(heard *self, ffi_rig *rig, uint32_t flags);
void hearing_end(errand_ffi_callback **callback); /* must be free to end */

#endif
