/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SANDBOX_PROBE_RIG_H
#define ERRAND_TESTS_WORKERS_SANDBOX_PROBE_RIG_H
/* probe_rig: jobs of a real pool, one after the other; those of hostile.c by their names. */
#include <stdio.h>
#include "hostile.h"
#include "inside_rig.h"
#include "pool_rig.h"
#include "reach.h"

static inline const rig_news *
await_one(rig *self, const errand_spec *spec)
{
    rig_start_spec(self, 0, spec);
    rig_await(self, self->count + 1);
    return &self->news[(self->count - 1) % RIG_NEWS];
}

static inline errand_spec
probe_spec(rig *self, const char *name, int64_t number)
{
    hostile_request request = {.number = number};

    snprintf(request.name, sizeof request.name, "%s", name);
    return rig_plugin_spec(self, test_reachable(ERRAND_TEST_HOSTILE), "probe", &request,
                           sizeof request);
}

static inline const rig_news *
probe(rig *self, const char *name, int64_t number)
{
    errand_spec spec = probe_spec(self, name, number);

    return await_one(self, &spec);
}

#endif
