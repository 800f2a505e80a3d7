/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_RUNTIME_BOTH_H
#define ERRAND_TESTS_RUNTIME_BOTH_H
/* both: one suite on the live and on the simulated runtime. */
#include "world.h"

/* A test's two entries: in arrival order (manual executor, test clock) and in inline order. */
#define BOTH_ORDERS(fn)                                                                  \
    {#fn " (arrival)", fn, world_setup, world_teardown, NULL},                           \
    {                                                                                    \
#fn " (inline)", fn, world_setup_inline, world_teardown, NULL                    \
    }
#endif
