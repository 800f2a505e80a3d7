/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_RUNTIME_SEEDED_H
#define ERRAND_TESTS_RUNTIME_SEEDED_H
/* seeded: a world that begins anew in a seeded order, and what the runtime drew for an operation. */
#include "actor.h"
#include "runtime/runtime.h"

/* workers: threads of a pool; 0 = the manual executor. */
static inline void
restart(test_world *in, errand_order order, uint64_t seed, uint32_t workers)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = order,
                                    .seed = seed,
                                    .on_completion = world_handler,
                                    .held_on_completion_arg = in};

    world_end(in);
    in->news_count = 0;
    world_begin(in, &config, 0);
    if (workers > 0)
        world_pool(in, workers);
}

static inline const errand__extra *
extra_of(test_world *in, const errand_identity *identity)
{
    return errand__registrar_find(&in->runtime->registrar, identity)->extra;
}

#endif
