/* SPDX-License-Identifier: MIT */
/* Design notes: one request's life.
 *
 * Under way from errand_io_start to errand__request_done, which is called exactly once for each
 * start, whatever became of a cancel: it gives the block back and polls the job.  In between the
 * request stands in its job's list, and the job in its roster's list of those that nobody may
 * drop; so neither block nor buffer nor state can go.
 *
 * A MANY is one request that the kernel, or the loop, repeats: its items go into the job's ring.
 * When that is full (FULL) the kernel is told to stop, and consume starts it again.  What was
 * accepted until it had stopped is kept beside the ring (surplus.c); of bytes nothing comes that
 * has no place.
 *
 * All of it happens on the loop's thread: nothing here is shared. */
#include <errno.h>
#include "workers/reactor/calls.h"

/* How long a try that nothing announces is put off: twice as long each time. */
#define LATER_LEAST_NS UINT64_C(500000)
#define LATER_MOST_NS  UINT64_C(20000000)

/* The loop that carries this job's requests; NULL: the call is not inside its own poll. */
static errand__loop *
loop_of(errand_job *job)
{
    errand__loop *loop = errand__loop_current();

    if (loop == NULL || job == NULL || loop->poller.hands.job != job || !job->is_async)
        return NULL;
    return loop;
}

static void
link_to_job(errand_job *job, errand_io *io)
{
    errand__request *request = errand__request_of(io);

    request->previous = NULL;
    request->next = job->requests;
    if (job->requests != NULL)
        errand__request_of(job->requests)->previous = io;
    job->requests = io;
}

static void
unlink_from_job(errand_job *job, errand_io *io)
{
    errand__request *request = errand__request_of(io);

    if (request->next != NULL)
        errand__request_of(request->next)->previous = request->previous;
    if (request->previous != NULL)
        errand__request_of(request->previous)->next = request->next;
    else
        job->requests = request->next;
}

/* Gives it to whoever does it. */
static void
hand_over(errand__loop *loop, errand_io *io)
{
    const errand__kind *kind = &errand__kinds[io->kind];

    if (!kind->of_loop && !loop->ready) /* see errand__loop_begin */
        errand__request_finish_later(
            loop, io, io->kind == ERRAND_IO_CLOSE ? errand__block_close(io) : -EMFILE);
    else if (!kind->of_loop)
        loop->backend->start(loop, io);
    else if (io->kind == ERRAND_IO_TIMEOUT)
        errand__wheel_insert(&loop->wheel, io);
    else
        errand__request_finish_later(loop, io,
                                     kind->attempt != NULL ? kind->attempt(io) : 0);
}

errand_status
errand_io_start(errand_job *job, errand_io *io)
{
    errand__loop *loop = loop_of(job);
    errand__request *request;

    ERRAND_REQUIRE_ARG(io != NULL && io->kind >= ERRAND_IO_NOTHING &&
                           io->kind < ERRAND_IO_KINDS,
                       ERRAND_EINVAL, "io is NULL, or its kind is none");
    ERRAND_REQUIRE_ARG(!errand__kinds[io->kind].many ||
                           (io->length > 0 && io->length <= UINT32_MAX &&
                            io->first < io->length && io->ready <= io->length),
                       ERRAND_EINVAL, "a ring has 1 to 2^32 - 1 places");
    ERRAND_REQUIRE_ARG(io->kind != ERRAND_IO_CALL || io->function != NULL, ERRAND_EINVAL,
                       "function is NULL");
    if (loop == NULL)
        return errand__misuse(ERRAND_EUNSUPPORTED, __func__,
                              "only inside start or poll of a job on a reactor");
    request = errand__request_of(io);
    ERRAND_REQUIRE_ARG((request->state & ERRAND__IO_UNDER_WAY) == 0, ERRAND_EMISUSE,
                       "it is under way");
    errand__surplus_close(io);
    io->done = false;
    io->result = 0;
    if (io->kind == ERRAND_IO_OPEN)
        io->to_fd = 0; /* see blocking.c */
    io->delay = 0;     /* how long a try was put off last, ns */
    request->waker = ERRAND__CONTAINER(job, errand_waker, job);
    request->link.next = request->link.previous = NULL;
    request->state = ERRAND__IO_UNDER_WAY;
    link_to_job(job, io);
    loop->under_way++;
    if (errand__kinds[io->kind].many && io->ready == io->length)
        request->state |= ERRAND__IO_FULL;
    else
        hand_over(loop, io);
    return ERRAND_OK;
}

/* It is the job's again. */
static errand_waker *
give_back(errand__loop *loop, errand_io *io, int32_t result)
{
    errand__request *request = errand__request_of(io);
    errand_waker *waker = request->waker;

    io->result = result;
    unlink_from_job(&waker->job, io);
    request->state &= (uintptr_t)ERRAND__IO_SURPLUS;
    request->waker = NULL;
    io->done = true;
    loop->under_way--;
    return waker;
}

void
errand__request_recall(errand__loop *loop, errand_io *io, bool here)
{
    errand__request *request = errand__request_of(io);

    if ((request->state & ERRAND__IO_UNDER_WAY) == 0 ||
        (request->state & ERRAND__IO_ASKED) != 0)
        return;
    request->state |= ERRAND__IO_ASKED;
    if ((request->state & ERRAND__IO_FINISHED) != 0 || io->kind == ERRAND_IO_CLOSE)
        return; /* too late: its result is here, or the descriptor may be gone */
    if ((request->state & (ERRAND__IO_TIMED | ERRAND__IO_FULL)) == 0 ||
        (request->state & ERRAND__IO_KERNEL) != 0) {
        if (!errand__kinds[io->kind].of_loop)
            loop->backend->recall(loop, io);
        return;
    }
    if ((request->state & ERRAND__IO_TIMED) != 0) {
        errand__wheel_remove(&loop->wheel, io);
        if (io->kind == ERRAND_IO_OPEN)
            errand__fifo_forget(io);
    }
    request->state &= ~(uintptr_t)ERRAND__IO_FULL;
    if (here)
        (void)give_back(loop, io, -ECANCELED);
    else
        errand__request_finish_later(loop, io, -ECANCELED);
}

errand_status
errand_io_cancel(errand_job *job, errand_io *io)
{
    errand__loop *loop = loop_of(job);

    ERRAND_REQUIRE_ARG(io != NULL, ERRAND_EINVAL, "io is NULL");
    if (loop == NULL)
        return errand__misuse(ERRAND_EUNSUPPORTED, __func__,
                              "only inside start or poll of a job on a reactor");
    errand__request_recall(loop, io, false);
    return ERRAND_OK;
}

errand_status
errand_io_consume(errand_job *job, errand_io *io, uint32_t count)
{
    errand__loop *loop = loop_of(job);
    errand__request *request;

    ERRAND_REQUIRE_ARG(io != NULL && io->kind > 0 && io->kind < ERRAND_IO_KINDS &&
                           errand__kinds[io->kind].many && count <= io->ready,
                       ERRAND_EINVAL, "it has no ring, or less in it");
    if (loop == NULL)
        return errand__misuse(ERRAND_EUNSUPPORTED, __func__,
                              "only inside start or poll of a job on a reactor");
    request = errand__request_of(io);
    io->ready -= count;
    io->first = (uint32_t)(((uint64_t)io->first + count) % io->length);
    errand__surplus_move(io);
    if (io->ready < io->length && (request->state & ERRAND__IO_FULL) != 0) {
        request->state &= ~(uintptr_t)ERRAND__IO_FULL;
        if ((request->state & ERRAND__IO_KERNEL) == 0) /* else when it has stopped */
            hand_over(loop, io);
    }
    return ERRAND_OK;
}

errand_helpers *
errand_job_helpers(errand_job *job)
{
    errand__loop *loop = loop_of(job);

    if (loop == NULL)
        return NULL;
    atomic_fetch_add_explicit(&loop->reactor->filers->refs, 1, memory_order_relaxed);
    return loop->reactor->filers;
}

void
errand__request_recall_all(errand__poller *poller, errand_waker *waker)
{
    errand__loop *loop = ERRAND__CONTAINER(poller, errand__loop, poller);
    errand_job *job = &waker->job;

    if (!job->keeps) { /* not for its own sake: only a cancel asks, and once */
        if (job->recalled || job->requests == NULL ||
            (atomic_load_explicit(&job->record->control, memory_order_acquire) &
             ERRAND__FLAG_CANCEL) == 0)
            return;
        job->recalled = true;
    }
    for (errand_io *io = job->requests, *next; io != NULL; io = next) {
        next = errand__request_of(io)->next;
        errand__request_recall(loop, io, !job->keeps);
    }
}

/* ---- its end ------------------------------------------------------------------------------- */

void
errand__request_finish_later(errand__loop *loop, errand_io *io, int32_t result)
{
    io->result = result;
    errand__request_of(io)->state |= ERRAND__IO_LISTED | ERRAND__IO_FINISHED;
    errand__list_append(&loop->finished, &errand__request_of(io)->link);
}

void
errand__request_put_off(errand__loop *loop, errand_io *io)
{
    uint64_t length = (uint64_t)io->delay * 2;

    if (length < LATER_LEAST_NS)
        length = LATER_LEAST_NS;
    if (length > LATER_MOST_NS)
        length = LATER_MOST_NS;
    io->delay = (uint32_t)length;
    io->until_ns = errand__clock_now() + length;
    errand__wheel_insert(&loop->wheel, io);
}

void
errand__request_done(errand__loop *loop, errand_io *io, int32_t result)
{
    errand_waker *waker;

    if (result == -EINTR && io->kind != ERRAND_IO_CALL &&
        (errand__request_of(io)->state & ERRAND__IO_ASKED) != 0)
        result = -ECANCELED;
    waker = give_back(loop, io, result);
    loop->moved = true;
    errand__loop_serve(loop, ((errand__roster *)waker->lease)->lease);
    errand__poller_again(&loop->poller, waker);
}

/* RECV: result bytes stand in the ring already. */
static void
put_item(errand_io *io, errand_job *job, int32_t result)
{
    if (io->kind == ERRAND_IO_RECV_MANY)
        io->ready += (uint32_t)result;
    else if (io->ready == io->length)
        errand__surplus_put(job, io, result);
    else
        ((int32_t *)io->buffer)[((uint64_t)io->first + io->ready++) % io->length] =
            result;
}

/* What a recv or accept brought. */
void
errand__request_item(errand__loop *loop, errand_io *io, int32_t result, bool more)
{
    errand__request *request = errand__request_of(io);
    errand_waker *waker = request->waker;

    if (!more && (result < 0 || (result == 0 && io->kind == ERRAND_IO_RECV_MANY))) {
        errand__request_done(loop, io, result);
        return;
    }
    put_item(io, &waker->job, result);
    if ((request->state & ERRAND__IO_ASKED) != 0) {
        if (!more)
            errand__request_done(loop, io, -ECANCELED);
        return;
    }
    if (io->ready == io->length)
        request->state |= ERRAND__IO_FULL;
    else if (!more)
        hand_over(loop, io);
    loop->moved = true;
    errand__loop_serve(loop, ((errand__roster *)waker->lease)->lease);
    errand__poller_again(&loop->poller, waker);
}
