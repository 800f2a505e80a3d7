/* SPDX-License-Identifier: MIT */
/* reactor, errand: each read and each timer is an operation of its own. */
#include "reactor.h"

#include "errand.h"
#include "errand/executor.h"
#include "errand/io.h"

#include <stdio.h>
#include <stdlib.h>

enum { KIND = 7 };

typedef struct job {
    errand_io io;
    uint32_t place;
    bool begun;
} job;

static int32_t
job_start(errand_job *running, void *state, errand_payload *out_payload)
{
    job *self = state;

    (void)out_payload;
    return errand_io_start(running, &self->io) == ERRAND_OK ? 0 : 1;
}

static int32_t
job_poll(errand_job *running, void *state, errand_payload *out_payload)
{
    job *self = state;

    (void)running;
    (void)out_payload;
    return self->io.done ? 0 : ERRAND_PENDING;
}

static const errand_job_type job_type = {.struct_size = sizeof(errand_job_type),
                                         .name = "io",
                                         .start = job_start,
                                         .poll = job_poll};

typedef struct world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_spec spec;
    job *jobs;
    reactor_reads *reads;
    reactor_timers *timers;
    errand_status status;
} world;

static void
note(world *self, errand_status status)
{
    if (self->status == ERRAND_OK)
        self->status = status;
}

static bool
world_open(world *self, uint32_t jobs)
{
    errand_runtime_config config = {.struct_size = sizeof config, .operations_max = jobs};

    self->spec = (errand_spec){.struct_size = sizeof self->spec,
                               .kind = KIND,
                               .resource_class = ERRAND_INTERRUPTIBLE_ASYNC,
                               .held_job = &job_type};
    self->jobs = calloc(jobs, sizeof *self->jobs);
    return self->jobs != NULL &&
           errand_reactor_create(NULL, &self->executor) == ERRAND_OK &&
           errand_runtime_create(&config, &self->runtime) == ERRAND_OK &&
           errand_attach(self->runtime, self->executor, jobs, &self->lease) == ERRAND_OK;
}

static bool
world_close(world *self, char *text, size_t size)
{
    errand_report report;

    note(self, errand_runtime_shutdown(&self->runtime, UINT64_MAX, ERRAND_SHUTDOWN_QUIET,
                                       &report));
    errand_executor_abandon(&self->executor);
    free(self->jobs);
    if (self->status != ERRAND_OK)
        snprintf(text, size, "%s", errand_status_text(self->status));
    return self->status == ERRAND_OK;
}

static void
submit_read(world *self, job *one)
{
    int64_t block = reactor_next(self->reads, one->place);

    if (block < 0)
        return;
    one->io = (errand_io){.kind = ERRAND_IO_READ,
                          .fd = self->reads->fd,
                          .buffer = self->reads->buffers[one->place],
                          .length = REACTOR_BLOCK,
                          .offset = block * REACTOR_BLOCK};
    self->spec.state = one;
    note(self, errand_start(self->lease, &self->spec, one, NULL));
}

static void
hear_read(void *arg, errand_completion *completion)
{
    world *self = arg;
    job *one = completion->wait;

    reactor_read(self->reads, one->place,
                 completion->outcome == ERRAND_COMPLETED ? one->io.result : -1);
    submit_read(self, one);
}

bool
reactor_reads_errand(reactor_reads *reads, char *text, size_t size)
{
    world self = {.reads = reads};
    uint64_t total = reads->left;

    if (!world_open(&self, reads->in_flight * 2)) {
        snprintf(text, size, "open failed");
        return false;
    }
    for (uint32_t i = 0; i < reads->in_flight; i++) {
        self.jobs[i].place = i;
        submit_read(&self, &self.jobs[i]);
    }
    while (reads->done < total && self.status == ERRAND_OK) {
        size_t count = 0;

        note(&self, errand_drain(self.runtime, SIZE_MAX, hear_read, &self, &count));
        if (count == 0)
            note(&self, errand_park(self.runtime, UINT64_MAX));
    }
    return world_close(&self, text, size);
}

static void
hear_timer(void *arg, errand_completion *completion)
{
    world *self = arg;
    job *one = completion->wait;

    self->timers->heard++;
    if (!self->timers->cancels)
        self->timers->wrong +=
            completion->outcome != ERRAND_COMPLETED || bench_now() < one->io.until_ns;
}

static bool
drain_all(world *self)
{
    size_t count = 0;

    note(self, errand_drain(self->runtime, SIZE_MAX, hear_timer, self, &count));
    return count != 0;
}

static void
go_through(world *self, reactor_timers *timers, errand_identity *names)
{
    uint64_t begun = bench_now();

    timers->heard = 0;
    for (uint32_t i = 0; i < timers->count; i++) {
        job *one = &self->jobs[i];

        one->io = (errand_io){.kind = ERRAND_IO_TIMEOUT,
                              .until_ns = begun + reactor_due_ms(timers, i) * 1000000};
        self->spec.state = one;
        note(self, errand_start(self->lease, &self->spec, one, &names[i]));
    }
    (void)drain_all(self);
    timers->armed_ns = bench_now() - begun;
    begun = bench_now();
    for (uint32_t i = 0; timers->cancels && i < timers->count; i++)
        note(self, errand_cancel(self->runtime, &names[i], ERRAND_REASON_EXPLICIT, NULL));
    while (timers->heard < timers->count && self->status == ERRAND_OK)
        if (!drain_all(self))
            note(self, errand_park(self->runtime, UINT64_MAX));
    timers->ended_ns = bench_now() - begun;
}

bool
reactor_timers_errand(reactor_timers *timers, char *text, size_t size)
{
    world self = {.timers = timers};
    errand_identity *names = calloc(timers->count, sizeof *names);

    if (names == NULL || !world_open(&self, timers->count)) {
        snprintf(text, size, "open failed");
        return false;
    }
    for (int round = 0; round < 2; round++) /* the first warms up */
        go_through(&self, timers, names);
    free(names);
    return world_close(&self, text, size);
}
