/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_MODEL_PROGRAM_H
#define ERRAND_TESTS_MODEL_PROGRAM_H
/* program: bytes as calls of the public interface, made on one thread against a manual
 * executor, and compared with the model (arrival order) or with themselves (seeded orders).
 *
 * The first four bytes configure, each four after them are one call {verb, a, b, c}; bodies,
 * handlers and continuations take their calls from the same list. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRAM_HEAD = 4, PROGRAM_CALL = 4, PROGRAM_CALLS_MAX = 1024 };

typedef struct program_result {
    char text[512];       /* empty if all agreed; else the first disagreement */
    uint64_t log, digest; /* of every answer and event; the library's, of runtime 0 */
    uint64_t calls, completions, bodies;
} program_result;

/* Runs it.  seed: odd of inline order, even of paced; 0 = arrival order, with the model.  trace prints each call.
 * False if something disagreed; the runtimes are then left as they are. */
bool program_run(const uint8_t *bytes, size_t size, uint64_t inline_seed, bool trace,
                 program_result *out_result);
/* Writes a program of some calls that follows from the seed; answers its size. */
size_t program_make(uint64_t seed, size_t calls, uint8_t *out_bytes);
/* Leaves away calls as long as fails(arg, ...) still answers true; answers the new size. */
size_t program_shrink(uint8_t *bytes, size_t size,
                      bool (*fails)(void *arg, const uint8_t *bytes, size_t size),
                      void *arg);

#endif
