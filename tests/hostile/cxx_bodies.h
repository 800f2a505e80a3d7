/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_HOSTILE_CXX_BODIES_H
#define ERRAND_TESTS_HOSTILE_CXX_BODIES_H
/* cxx_bodies: bodies written in C++, for a test written in C. */
#include "errand.h"
ERRAND_BEGIN

typedef enum cxx_case {
    CXX_WORDS = 0,
    CXX_PANIC,
    CXX_NUMBER,
    CXX_LONG,
    CXX_ANSWER,
    CXX_THREAD_END,
    CXX_IN_DEFER,
    CXX_OR_FAIL
} cxx_case;
extern int cxx_destroyed; /* objects whose destructor ran */
const errand_job_type *cxx_body(cxx_case which);

ERRAND_END
#endif
