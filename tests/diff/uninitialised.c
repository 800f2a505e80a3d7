/* SPDX-License-Identifier: MIT */
/* uninitialised: a job answers a structure as it lies in memory, and its padding holds whatever was
 * there before.  (Written on purpose here, so that tools which find the real thing stay quiet.) */
#include <string.h>
#include "diff_rig.h"

typedef struct answer {
    char tag; /* then seven bytes that nobody writes */
    uint64_t number;
} answer;

static bool
is_its_completion(diff_run *run, const errand_step *step)
{
    (void)run;
    return step->kind == ERRAND_STEP_COMPLETION && strcmp(step->label, "padded") == 0;
}

bool
diff_inject(diff_run *run, errand_task *task)
{
    unsigned char memory[sizeof(answer)];
    const uint64_t number = 5;

    (void)task;
    memset(memory, run->injected ? 0xa5 : 0, sizeof memory);
    memory[offsetof(answer, tag)] = 'x';
    memcpy(memory + offsetof(answer, number), &number, sizeof number);
    diff_watch(run, is_its_completion);
    diff_start(run, "padded", memory, sizeof memory);
    return false;
}
