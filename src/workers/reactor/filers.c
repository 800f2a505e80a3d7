/* SPDX-License-Identifier: MIT */
/* Design notes: threads that do what cannot be waited for.
 *
 * There are as many as there is work for, up to the limit; one that finds none for ten seconds
 * ends.  A request that still stands in the queue can be taken back; one that a filer has ends
 * when its call does, and until then its block is the filer's.
 *
 * What they have done comes back through a stack of the loop's and a descriptor: whoever pushes onto
 * an empty one writes, and the loop takes all of it when it has read that, so each write belongs
 * to one batch, and no filer touches the descriptor after the loop has its request.
 *
 * Filers are detached: the last to go says so in the count, which is all that the reactor's end
 * waits for. */
#include <errno.h>
#include <unistd.h>
#include "workers/reactor/calls.h"

#define IDLE_NS UINT64_C(10000000000)

void
errand__filers_init(errand__filers *filers, uint32_t limit, const char *name)
{
    filers->limit = limit;
    filers->name = name;
    errand__list_init(&filers->queue);
}

void
errand__filers_fini(errand__filers *filers)
{
    unsigned left;

    errand__lock_acquire(&filers->lock);
    filers->stopping = true;
    errand__lock_release(&filers->lock);
    atomic_fetch_add_explicit(&filers->bell, 1,
                              memory_order_release); /* Pairs: filer-bell */
    errand__futex_wake(&filers->bell, INT32_MAX);
    while ((left = atomic_load_explicit(&filers->threads, memory_order_acquire)) != 0)
        errand__futex_wait(&filers->threads, left, UINT64_MAX); /* Pairs: filer-count */
}

/* The next request; NULL: this filer ends. */
static errand_io *
next_request(errand__filers *filers)
{
    for (;;) {
        unsigned bell = atomic_load_explicit(
            &filers->bell, memory_order_acquire); /* Pairs: filer-bell */
        errand_io *io = NULL;
        bool ended, timely;

        errand__lock_acquire(&filers->lock);
        if (!errand__list_empty(&filers->queue)) {
            io = errand__request_io(filers->queue.next);
            errand__list_unlink(filers->queue.next);
            filers->queued--;
        } else {
            filers->idle++;
        }
        ended = filers->stopping;
        errand__lock_release(&filers->lock);
        if (io != NULL)
            return io;
        timely = ended || errand__futex_wait(&filers->bell, bell, IDLE_NS);
        errand__lock_acquire(&filers->lock);
        filers->idle--;
        ended = filers->stopping || (!timely && errand__list_empty(&filers->queue));
        errand__lock_release(&filers->lock);
        if (ended)
            return NULL;
    }
}

/* Runs in a filer. */
static void
give_back(errand__loop *loop, errand_io *io)
{
    const uint64_t one = 1;
    errand__request *request = errand__request_of(io);
    int fd = loop->returned_fd;
    uintptr_t head = atomic_load_explicit(&loop->returned, memory_order_relaxed);
    ssize_t written;

    do
        request->link.next = (errand__link *)head;
    while (!atomic_compare_exchange_weak_explicit(
        &loop->returned, &head, (uintptr_t)&request->link,
        memory_order_acq_rel, /* Pairs: filer-return */
        memory_order_relaxed));
    if (head != 0)
        return;
    do
        written = write(fd, &one, sizeof one);
    while (written < 0 && errno == EINTR);
}

/* The same. */
static void
do_request(errand_io *io)
{
    errand__request *request = errand__request_of(io);
    errand__loop_lease *mine = request->waker->lease;

    io->result = errand__kinds[io->kind].block(io);
    give_back(mine->loop, io);
}

static void *
run_filer(void *arg)
{
    errand__filers *filers = arg;
    errand_io *io;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setname_np(pthread_self(), filers->name);
    while ((io = next_request(filers)) != NULL)
        do_request(io);
    pthread_detach(pthread_self());
    if (atomic_fetch_sub_explicit(&filers->threads, 1, memory_order_acq_rel) ==
        1) /* Pairs: filer-count */
        errand__futex_wake(&filers->threads, 1);
    return NULL;
}

bool
errand__filers_give(errand__filers *filers, errand_io *io)
{
    unsigned threads = atomic_load_explicit(
        &filers->threads, memory_order_acquire); /* Pairs: filer-count */
    pthread_t thread;
    bool wanted;

    errand__request_of(io)->state |= ERRAND__IO_FILER;
    errand__lock_acquire(&filers->lock);
    errand__list_append(&filers->queue, &errand__request_of(io)->link);
    filers->queued++;
    wanted = filers->queued > filers->idle && threads < filers->limit;
    errand__lock_release(&filers->lock);
    if (wanted) {
        threads =
            1 + atomic_fetch_add_explicit(&filers->threads, 1, memory_order_acq_rel);
        if (threads > filers->limit ||
            errand__thread_create(&thread, NULL, run_filer, filers) != 0)
            threads =
                atomic_fetch_sub_explicit(&filers->threads, 1, memory_order_acq_rel) - 1;
    }
    if (threads == 0)
        return !errand__filers_take_back(filers, io);
    atomic_fetch_add_explicit(&filers->bell, 1,
                              memory_order_release); /* Pairs: filer-bell */
    errand__futex_wake(&filers->bell, 1);
    return true;
}

bool
errand__filers_take_back(errand__filers *filers, errand_io *io)
{
    errand__link *link = &errand__request_of(io)->link;
    bool taken; /* previous: next also links what filers give back */

    errand__lock_acquire(&filers->lock);
    taken = link->previous != NULL;
    if (taken) {
        errand__list_unlink(link);
        filers->queued--;
    }
    errand__lock_release(&filers->lock);
    return taken;
}

void
errand__filers_collect(errand__loop *loop)
{
    uint64_t count;
    errand__link *link;

    if (read(loop->returned_fd, &count, sizeof count) != sizeof count)
        return;
    link = (errand__link *)atomic_exchange_explicit(
        &loop->returned, 0, memory_order_acq_rel); /* Pairs: filer-return */
    while (link != NULL) {
        errand__link *next = link->next;
        errand_io *io = errand__request_io(link);
        errand__request *request = errand__request_of(io);
        bool again = io->result == ERRAND__TRY_LATER || io->result == ERRAND__TRY_IN;

        link->next = link->previous = NULL;
        request->state &= ~(uintptr_t)ERRAND__IO_FILER;
        if (!again) {
            errand__request_finish_later(loop, io, io->result);
        } else if ((request->state & ERRAND__IO_ASKED) != 0) {
            if (io->kind == ERRAND_IO_OPEN)
                errand__fifo_forget(io);
            errand__request_finish_later(loop, io, -ECANCELED);
        } else if (io->result == ERRAND__TRY_LATER) {
            errand__request_put_off(loop, io);
        } else {
            loop->backend->start(loop, io);
        }
        link = next;
    }
}
