/* SPDX-License-Identifier: MIT */
/* net, errand: an operation for each connection, whose job receives and sends on the runtime's own
 * thread; one operation that accepts. */
#include "net.h"

#include "errand.h"
#include "errand/executor.h"
#include "errand/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KIND = 7, RING = 64 };

typedef struct world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_status status;
    uint32_t heard;
    uint64_t *wrong;
} world;

static bool
world_open(world *self, uint32_t jobs)
{
    errand_runtime_config config = {.struct_size = sizeof config, .operations_max = jobs};

    return errand_reactor_create(NULL, &self->executor) == ERRAND_OK &&
           errand_runtime_create(&config, &self->runtime) == ERRAND_OK &&
           errand_attach(self->runtime, self->executor, jobs, &self->lease) == ERRAND_OK;
}

static void
note(world *self, errand_status status)
{
    if (self->status == ERRAND_OK)
        self->status = status;
}

static void
begin(world *self, const errand_job_type *type, void *state)
{
    errand_spec spec = {.struct_size = sizeof spec,
                        .kind = KIND,
                        .resource_class = ERRAND_INTERRUPTIBLE_ASYNC,
                        .held_job = type,
                        .state = state};

    note(self, errand_start(self->lease, &spec, state, NULL));
}

static void
hear(void *arg, errand_completion *completion)
{
    world *self = arg;

    self->heard++;
    *self->wrong += completion->outcome != ERRAND_COMPLETED;
}

static bool
go_through(world *self, uint32_t jobs, char *text, size_t size)
{
    errand_report report;

    while (self->heard < jobs && self->status == ERRAND_OK) {
        size_t count = 0;

        note(self, errand_drain(self->runtime, SIZE_MAX, hear, self, &count));
        if (count == 0)
            note(self, errand_park(self->runtime, UINT64_MAX));
    }
    note(self, errand_runtime_shutdown(&self->runtime, UINT64_MAX, ERRAND_SHUTDOWN_QUIET,
                                       &report));
    errand_executor_abandon(&self->executor);
    if (self->status != ERRAND_OK)
        snprintf(text, size, "%s", errand_status_text(self->status));
    return self->status == ERRAND_OK;
}

/* ---- echo ---------------------------------------------------------------------------------- */

typedef struct connection {
    errand_io io;
    net_echo *echo;
    int fd;
    bool begun, sends;
    char bytes[NET_MESSAGE];
} connection;

static int32_t
serve(errand_job *job, void *state, errand_payload *out_payload)
{
    connection *self = state;
    errand_io *io = &self->io;

    (void)out_payload;
    if (self->begun && !io->done)
        return ERRAND_PENDING;
    if (self->begun && io->result <= 0)
        return self->sends || io->result < 0;
    if (self->begun && self->sends)
        self->echo->bytes += (uint64_t)io->result;
    if (self->begun && !self->sends) {
        *io = (errand_io){.kind = ERRAND_IO_SEND,
                          .fd = self->fd,
                          .bytes = self->bytes,
                          .length = (size_t)io->result};
        self->sends = true;
    } else if (self->begun && (size_t)io->result < io->length) {
        *io = (errand_io){.kind = ERRAND_IO_SEND,
                          .fd = self->fd,
                          .bytes = (const char *)io->bytes + io->result,
                          .length = io->length - (size_t)io->result};
    } else {
        *io = (errand_io){.kind = ERRAND_IO_RECV,
                          .fd = self->fd,
                          .buffer = self->bytes,
                          .length = NET_MESSAGE};
        self->sends = false;
    }
    self->begun = true;
    return errand_io_start(job, io) == ERRAND_OK ? ERRAND_PENDING : 2;
}

static const errand_job_type serve_type = {
    .struct_size = sizeof(errand_job_type), .name = "echo", .poll = serve};

bool
net_echo_errand(net_echo *echo, char *text, size_t size)
{
    world self = {.wrong = &echo->wrong};
    connection *all = calloc(echo->count, sizeof *all);

    if (all == NULL || !world_open(&self, echo->count)) {
        snprintf(text, size, "open failed");
        return false;
    }
    for (uint32_t i = 0; i < echo->count; i++) {
        all[i].fd = echo->fds[i];
        all[i].echo = echo;
        begin(&self, &serve_type, &all[i]);
    }
    bool good = go_through(&self, echo->count, text, size);
    free(all);
    return good;
}

/* ---- accepts ------------------------------------------------------------------------------------ */

typedef struct acceptor {
    errand_io io;
    net_accepts *accepts;
    bool begun, asked;
    int32_t ring[RING];
} acceptor;

static int32_t
take(errand_job *job, void *state, errand_payload *out_payload)
{
    acceptor *self = state;
    errand_io *io = &self->io;

    (void)out_payload;
    if (!self->begun) {
        self->begun = true;
        *io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                          .fd = self->accepts->listener,
                          .buffer = self->ring,
                          .length = RING};
        return errand_io_start(job, io) == ERRAND_OK ? ERRAND_PENDING : 2;
    }
    for (uint32_t i = 0; i < io->ready; i++)
        close(self->ring[(io->first + i) % RING]);
    self->accepts->done += io->ready;
    (void)errand_io_consume(job, io, io->ready);
    if (io->done)
        return self->accepts->done == self->accepts->left ? 0 : 1;
    if (self->accepts->done == self->accepts->left && !self->asked) {
        self->asked = true;
        (void)errand_io_cancel(job, io);
    }
    return ERRAND_PENDING;
}

static const errand_job_type take_type = {
    .struct_size = sizeof(errand_job_type), .name = "accept", .poll = take};

bool
net_accepts_errand(net_accepts *accepts, char *text, size_t size)
{
    world self = {.wrong = &accepts->wrong};
    acceptor state = {.accepts = accepts};

    if (!world_open(&self, 1)) {
        snprintf(text, size, "open failed");
        return false;
    }
    begin(&self, &take_type, &state);
    return go_through(&self, 1, text, size);
}
