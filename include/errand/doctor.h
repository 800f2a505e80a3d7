/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_DOCTOR_H
#define ERRAND_DOCTOR_H
/* doctor: what this machine offers.  Conventions: errand.h. */
#include "errand/base.h"
ERRAND_BEGIN

typedef struct errand_doctor_fact {
    const char *name;   /* "landlock", "seccomp", "user-namespaces" ... */
    bool available;     /* whether it can be used by this process, as it is */
    const char *value;  /* "ABI 7" */
    const char *advice; /* what follows from that, or what to do */
} errand_doctor_fact;

/* errand_doctor: tries what sandboxes and reactors rest on: one call of visit per fact, always
 * the same facts in the same order.  Strings live until visit returns.  Short-lived children
 * try namespaces; nothing stays changed.
 *
 * Thread:   [any].
 * Errors:   EINVAL (visit is NULL). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_doctor(void (*visit)(void *arg, const errand_doctor_fact *fact), void *arg);

ERRAND_END
#endif
