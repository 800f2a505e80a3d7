/* SPDX-License-Identifier: MIT */
/* Design notes: connections that were accepted when their job's ring was full.
 *
 * An accept that goes on by itself goes on until it is told to stop, so a few may come that have no
 * place.  They are kept, in order, and go into the ring when that is consumed, also after the
 * request is done.  What is left when the block is started again or the job ends is closed: a
 * deferred cleanup of the job does it, so whatever ends the job, nothing stays open.
 *
 * The block leads to them by a field that such a request does not use otherwise; a flag in its
 * state says that it does. */
#include <unistd.h>
#include "workers/reactor/reactor.h"

enum { ROOM_FIRST = 16 };

typedef struct surplus {
    uint32_t first, count, room;
    int32_t *descriptors;
} surplus;

static surplus *
of(const errand_io *io)
{
    return (surplus *)(void *)io->out_stat;
}

static void
close_all(surplus *self)
{
    for (; self->count > 0; self->count--)
        close(self->descriptors[self->first++]);
    self->first = 0;
}

static void
drop(void *arg)
{
    surplus *self = arg;

    close_all(self);
    errand__mem_free(NULL, self->descriptors, self->room * sizeof(int32_t));
    errand__mem_free(NULL, self, sizeof *self);
}

static bool
begin(errand_job *job, errand_io *io)
{
    errand__request *request = errand__request_of(io);
    surplus *made;

    if ((request->state & ERRAND__IO_SURPLUS) != 0)
        return true;
    made = errand__mem_alloc(NULL, sizeof *made);
    if (made == NULL)
        return false;
    if (errand_job_defer(job, drop, made) != ERRAND_OK) {
        errand__mem_free(NULL, made, sizeof *made);
        return false;
    }
    io->out_stat = (struct statx *)(void *)made;
    request->state |= ERRAND__IO_SURPLUS;
    return true;
}

static bool
make_room(surplus *self)
{
    uint32_t room = self->room == 0 ? ROOM_FIRST : self->room * 2;
    int32_t *more;

    if (self->first + self->count < self->room)
        return true;
    more = errand__mem_alloc(NULL, room * sizeof *more);
    if (more == NULL)
        return false;
    for (uint32_t i = 0; i < self->count; i++)
        more[i] = self->descriptors[self->first + i];
    errand__mem_free(NULL, self->descriptors, self->room * sizeof *more);
    self->descriptors = more;
    self->first = 0;
    self->room = room;
    return true;
}

void
errand__surplus_put(errand_job *job, errand_io *io, int32_t descriptor)
{
    surplus *self;

    if (!begin(job, io) || !make_room(of(io))) {
        close(descriptor); /* its peer hears of it */
        return;
    }
    self = of(io);
    self->descriptors[self->first + self->count++] = descriptor;
}

void
errand__surplus_move(errand_io *io)
{
    surplus *self;

    if ((errand__request_of(io)->state & ERRAND__IO_SURPLUS) == 0)
        return;
    self = of(io);
    for (; self->count > 0 && io->ready < io->length; io->ready++, self->count--)
        ((int32_t *)io->buffer)[((uint64_t)io->first + io->ready) % io->length] =
            self->descriptors[self->first++];
}

void
errand__surplus_close(errand_io *io)
{
    errand__request *request = errand__request_of(io);

    if ((request->state & ERRAND__IO_SURPLUS) == 0)
        return;
    close_all(of(io));
    request->state &= ~(uintptr_t)ERRAND__IO_SURPLUS;
}
