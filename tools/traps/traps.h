/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TOOLS_TRAPS_H
#define ERRAND_TOOLS_TRAPS_H
/* traps: between the calls that are caught (calls.c) and who decides about them (traps.c). */
#include "errand/traps.h"

typedef enum errand__trap_kind {
    ERRAND__TRAP_CLOCK = 0,
    ERRAND__TRAP_RANDOM = 1,
    ERRAND__TRAP_THREAD = 2,
    ERRAND__TRAP_ENVIRONMENT = 3,
    ERRAND__TRAP_PROCESS = 4
} errand__trap_kind;
/* Does not return if the call is refused.  caller: where it returns to. */
void errand__trap_check(const char *call, errand__trap_kind kind, const void *caller);
#endif
