/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_REACTOR_RIG_H
#define ERRAND_TESTS_WORKERS_REACTOR_RIG_H
/* rig: every kind of reactor in turn, and jobs that carry out requests. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "errand/io.h"
#include "workers/scene.h"

typedef struct rig_config {
    const char *name;
    uint32_t backend, threads;
} rig_config;
static const rig_config rig_configs[] = {
    {"io_uring, own thread", ERRAND_REACTOR_URING, 0},
    {"epoll, own thread", ERRAND_REACTOR_EPOLL, 0},
    {"io_uring, one thread", ERRAND_REACTOR_URING, 1},
    {"epoll, one thread", ERRAND_REACTOR_EPOLL, 1},
};
enum { RIG_CONFIGS = sizeof rig_configs / sizeof rig_configs[0] };

/* False: the kernel refuses this one here. */
static inline bool
rig_create(const rig_config *config, uint32_t entries, errand_executor **out_executor)
{
    errand_reactor_config wanted = {.struct_size = sizeof wanted,
                                    .threads = config->threads,
                                    .backend = config->backend,
                                    .entries = entries};
    errand_status status = errand_reactor_create(&wanted, out_executor);

    if (status == ERRAND_EUNSUPPORTED && config->backend == ERRAND_REACTOR_URING)
        return false;
    assert_int_equal(status, ERRAND_OK);
    return true;
}

static inline bool
rig_open(scene *world, const rig_config *config, int runtimes, uint32_t owed_max)
{
    errand_executor *executor;
    errand_runtime_config wanted = {.struct_size = sizeof wanted,
                                    .operations_max = owed_max};

    scene_begin(world);
    if (!rig_create(config, 0, &executor))
        return false;
    scene_open(world, executor, runtimes, owed_max == 0 ? NULL : &wanted, owed_max);
    return true;
}

/* Runs body once for each kind of reactor; skipped if none is there. */
static inline void
rig_each(void (*body)(scene *world, const rig_config *config))
{
    for (int i = 0; i < RIG_CONFIGS; i++) {
        scene world;

        if (!rig_open(&world, &rig_configs[i], 1, 0)) {
            printf("    not here: %s\n", rig_configs[i].name);
            continue;
        }
        if (getenv("RIG_SHOW") != NULL)
            printf("    %s\n", rig_configs[i].name), fflush(stdout);
        body(&world, &rig_configs[i]);
        scene_close(&world);
    }
}

/* ---- a job that carries out requests, one after the other --------------------------------------- */
enum { RIG_STEPS = 8 };
typedef struct rig_script {
    errand_io steps[RIG_STEPS];
    int count, at; /* at: the one that is under way, plus one */
    bool goes_on;  /* also after a failure */
    /* The descriptor of a step is the result of the one before it. */
    bool chain;
    atomic_int drops, polls;
} rig_script;

static inline int32_t
rig_script_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    rig_script *self = state;

    (void)out_payload;
    atomic_fetch_add_explicit(&self->polls, 1, memory_order_relaxed);
    if (self->at > 0) {
        errand_io *io = &self->steps[self->at - 1];

        if (!io->done)
            return ERRAND_PENDING;
        if (io->result < 0 && !self->goes_on)
            return -io->result;
        if (self->chain && self->at < self->count)
            self->steps[self->at].fd = io->result;
    }
    if (self->at == self->count)
        return 0;
    if (errand_io_start(job, &self->steps[self->at++]) != ERRAND_OK)
        return 1000;
    return ERRAND_PENDING;
}
static inline void
rig_script_drop(void *state)
{
    atomic_fetch_add_explicit(&((rig_script *)state)->drops, 1, memory_order_relaxed);
}
static const errand_job_type rig_script_job = {.struct_size = sizeof(errand_job_type),
                                               .name = "script",
                                               .poll = rig_script_poll,
                                               .drop = rig_script_drop};

/* Carries out one request and answers its result. */
static inline int32_t
rig_do(scene *world, errand_io io)
{
    rig_script script = {.steps = {io}, .count = 1, .goes_on = true};

    scene_poll(world, 0, &rig_script_job, &script);
    while (script.drops == 0)
        if (scene_drain(world, 0) == 0)
            assert_int_equal(errand_park(world->runtimes[0], SCENE_NONE), ERRAND_OK);
    assert_true(script.steps[0].done);
    return script.steps[0].result;
}

/* A folder of its own, gone at the end. */
static inline void
rig_folder(char *room, size_t size)
{
    const char *base = getenv("TMPDIR");

    snprintf(room, size, "%s/errand-reactor-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(room));
}
#endif
