/* SPDX-License-Identifier: MIT */
/* choices: what a program may choose, and ask, itself.
 *
 * Design notes.  A task's draws hang on its key and on how many it made before.  A draw of one
 * possible value is none: it takes no number and leaves no trace (D53).  The others are a step of
 * the audit each. */
#include <string.h>
#include "runtime/runtime.h"

#define KEY_WORKLOAD UINT64_C(0x776f726b6c6f6164)

static uint64_t
draw(errand_task *task, uint64_t n)
{
    errand__scheduler *scheduler = task->scheduler;
    uint64_t value;

    if (n == 1)
        return 0;
    value = errand__choose(scheduler, ERRAND_SITE_APPLICATION, task->key, task->draws, n);
    errand__audit_event(scheduler,
                        &(errand_step){
                            .kind = ERRAND_STEP_DRAW,
                            .key = task->key,
                            .value = value,
                            .context = task->draws++,
                            .label = task->label,
                        },
                        task->label_hash);
    return value;
}

uint64_t
errand_task_random(errand_task *task)
{
    errand_runtime *runtime = NULL;

    return errand__task_enter_own(task, __func__, &runtime) != ERRAND_OK ? 0
                                                                         : draw(task, 0);
}

uint64_t
errand_task_choose(errand_task *task, uint64_t n)
{
    errand_runtime *runtime = NULL;

    return errand__task_enter_own(task, __func__, &runtime) != ERRAND_OK ? 0
                                                                         : draw(task, n);
}

bool
errand_task_chance(errand_task *task, uint64_t part, uint64_t whole)
{
    errand_runtime *runtime = NULL;

    if (errand__task_enter_own(task, __func__, &runtime) != ERRAND_OK || part == 0)
        return false;
    return part >= whole || draw(task, whole) >= whole - part; /* value 0: no */
}

uint32_t
errand_task_random32(errand_task *task)
{
    errand_runtime *runtime = NULL;

    if (errand__task_enter_own(task, __func__, &runtime) != ERRAND_OK)
        return 0;
    return (uint32_t)draw(task, UINT64_C(1) << 32);
}

void
errand_task_fill(errand_task *task, void *out, size_t size)
{
    errand_runtime *runtime = NULL;
    unsigned char *bytes = out;

    if (errand__task_enter_own(task, __func__, &runtime) != ERRAND_OK)
        return;
    if (out == NULL && size != 0) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "out is NULL");
        return;
    }
    while (size > 0) {
        size_t part = size < 8 ? size : 8;
        uint64_t word = draw(task, part == 8 ? 0 : UINT64_C(1) << (8 * part));

        for (size_t i = 0; i < part; i++)
            *bytes++ = (unsigned char)(word >> (8 * i));
        size -= part;
    }
}

uint64_t
errand_runtime_picks(const errand_runtime *runtime)
{
    if (runtime == NULL || errand__runtime_check(runtime, __func__) != ERRAND_OK)
        return 0;
    return runtime->scheduler.visits;
}

bool
errand_workload_keeps(errand_runtime *runtime, const char *name, uint64_t ordinal)
{
    uint64_t key;

    if (errand__runtime_check(runtime, __func__) != ERRAND_OK)
        return true;
    if (name == NULL) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "the name is NULL");
        return true;
    }
    if (!errand__seeded(runtime))
        return true;
    key = errand__key_child(KEY_WORKLOAD, name, 0);
    return errand__choose(&runtime->scheduler, ERRAND_SITE_WORKLOAD, key, ordinal, 2) ==
           0;
}
