/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SANDBOX_PROBE_RIG_H
#define ERRAND_TESTS_WORKERS_SANDBOX_PROBE_RIG_H
/* probe_rig: jobs of a real pool, one after the other; those of hostile.c by their names. */
#include <stdio.h>
#include "hostile.h"
#include "inside_rig.h"
#include "pool_rig.h"
#include "reach.h"

/* A rig whose real workers know the probe. */
static inline void
probe_setup(void **state)
{
    static errand_entry entry = {NULL, "probe", NULL};
    rig *self;

    entry.library = test_reachable(ERRAND_TEST_HOSTILE);
    rig_setup(state);
    self = *state;
    self->worker_path = test_reachable(ERRAND_TEST_WORKER);
    self->policy.entries = &entry;
    self->policy.entry_count = 1;
    self->config.crash_limit = 1000;
}

/* The real user of a process. */
static inline unsigned
process_user(int32_t pid)
{
    char path[64], line[128];
    unsigned user = 0, found = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        found += sscanf(line, "Uid: %u", &user) == 1;
    fclose(file);
    assert_int_equal(found, 1);
    return user;
}

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
