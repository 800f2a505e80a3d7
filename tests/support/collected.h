/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_COLLECTED_H
#define ERRAND_TESTS_SUPPORT_COLLECTED_H
/* collected: the memory of a very small interpreter, with a collector that moves what it keeps.
 *
 * A collection marks from the roots that a runtime shows (errand_runtime_trace), copies what it
 * reaches to the other half and writes the new addresses back; what nobody showed is overwritten.
 * So a forgotten edge loses an object, and an edge shown too long keeps one alive. */
#include "errand.h"

enum { COLLECTED_MAX = 64 };

typedef struct collected_object {
    uint64_t magic;
    int number;
    struct collected_object *next;     /* an edge of its own */
    struct collected_object *moved_to; /* during a collection */
} collected_object;

typedef struct collected_heap {
    collected_object halves[2][COLLECTED_MAX];
    int half;
    size_t used;             /* objects that are alive, or not yet collected */
    size_t visits;           /* slots of the last collection */
    int seen[COLLECTED_MAX]; /* the numbers behind them, in their order */
    uint64_t allocations;    /* that the library made during all collections */
} collected_heap;

void collected_init(collected_heap *heap);
collected_object *collected_new(collected_heap *heap, int number);
/* Fails the test if the object was lost or is another one. */
void collected_check(const collected_object *object, int number);
/* Answers how many objects are alive. */
size_t collected_collect(collected_heap *heap, errand_runtime *runtime);

#endif
