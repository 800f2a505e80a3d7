/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_CALLS_H
#define ERRAND_TESTS_HOSTILE_CALLS_H
/* calls: what the functions of the tables of calls are written with. */
#include "stage.h"

/* The k-th pointer of a call, NULL when that one is to be broken. */
#define N(k, pointer) (broken == (k) ? NULL : (pointer))
#define RUNTIME       (self->tokens.runtime)
#define LEASE         (self->tokens.lease)

/* What a function without a status told the misuse hook. */
static inline errand_status
told(const stage *self)
{
    return self->misuses == 0 ? ERRAND_OK : self->misuse;
}

#endif
