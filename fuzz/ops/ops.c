/* SPDX-License-Identifier: MIT */
/* Goal: find calls after which the library and the model disagree.  Method: the input is a program
 * (tests/model/program.h); the highest bit of its fourth byte asks for a seeded order, where a
 * program is run twice and must do the same. */
#include <stdio.h>
#include <stdlib.h>
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
disagree(const uint8_t *data, size_t size, uint64_t inline_seed, const char *text)
{
    program_result result;

    fprintf(stderr, "%s\n", text);
    program_run(data, size, inline_seed, true, &result);
    abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    program_result result, again;
    uint64_t inline_seed = size > 3 && data[3] >= 128 ? 1 + data[3] : 0;

    if (!program_run(data, size, inline_seed, false, &result))
        disagree(data, size, inline_seed, result.text);
    if (inline_seed == 0)
        return 0;
    if (!program_run(data, size, inline_seed, false, &again))
        disagree(data, size, inline_seed, again.text);
    if (again.log != result.log || again.digest != result.digest)
        disagree(data, size, inline_seed, "two runs differ");
    return 0;
}
